//! Who watches the work: progress, the clock, and what is kept for a resumed run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use metastate::fit::{FitObserver, Stage, Unfinished};
use metastate::solve::{Control, Event, Observer, Progress, Snapshot};
use metastate::workspace::path::LambdaPoint;
use metastate::workspace::select::{Choice, Outlook};
use metastate_ingest::Update;
use metastate_report::page::{RankChange, TracePoint};

use crate::checkpoint::{Checkpoint, Kept};
use crate::error::CliError;
use crate::path_checkpoint;
use crate::progress::Reporter;
use crate::stop::Stopper;

/// Points kept of the solver's way; when there are twice as many, every second one goes.
const KEPT_POINTS: usize = 1000;

/// What the page tells of the solver's way.
#[derive(Debug, Clone)]
pub struct Trace {
    begun: Instant,
    /// Looks between two kept points.
    stride: usize,
    looks: usize,
    /// Looks at the solver.
    pub points: Vec<TracePoint>,
    /// Columns appended and removed.
    pub events: Vec<RankChange>,
}

impl Trace {
    /// Begins now.
    pub fn begin() -> Self {
        Trace { begun: Instant::now(), stride: 1, looks: 0, points: Vec::new(), events: Vec::new() }
    }

    fn look(&mut self, p: &Progress) {
        self.looks += 1;
        if !self.looks.is_multiple_of(self.stride) {
            return;
        }
        self.points.push(TracePoint {
            t: self.begun.elapsed().as_secs_f64(),
            sweep: p.sweep,
            rank: p.rank,
            objective: p.objective.is_finite().then_some(p.objective),
            // Where nothing is known yet, zero bounds every objective.
            bound: Some(p.steering.guess()).filter(|b| b.is_finite()).unwrap_or(0.0),
            kkt: p.local.map(|l| l.worst()),
        });
        if self.points.len() == 2 * KEPT_POINTS {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.stride *= 2;
        }
    }
}

/// Watches a fit: tells the user, takes the time, keeps what a resumed run needs.
pub struct FitWatch<'a> {
    /// Tells the user.
    pub reporter: &'a mut Reporter,
    /// Keeps the safe points.
    pub stopper: &'a Stopper,
    /// Where checkpoints go; nowhere within somebody else's process.
    pub places: Option<Places>,
    /// When the time is up, where it is limited.
    pub deadline: Option<Instant>,
    /// Between two checkpoints of the solve.
    pub every: Duration,
    /// The KKT residual that the solve aims at.
    pub tolerance: f64,
    /// The solver's way, for the page.
    pub trace: Trace,
    /// Seconds of each part of the work, as in `summary.json`.
    pub seconds: BTreeMap<String, f64>,
    /// Why the fit had to end, where it was not a signal.
    pub failure: Option<CliError>,
    last: Instant,
    stage: Option<(Stage, Instant)>,
}

/// Where what is unfinished is kept.
pub struct Places {
    /// Of the choice and the path.
    pub path: std::path::PathBuf,
    /// Of the solve.
    pub solve: Checkpoint,
    /// All that the answer depends on.
    pub asked_for: serde_json::Value,
    /// The command that goes on.
    pub resume_command: String,
}

/// The part of the work that a stage belongs to, as in `summary.json`; none for those that are not timed.
fn part(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::LambdaMax => Some("lambda_max"),
        Stage::Choosing | Stage::Path => Some("choosing"),
        Stage::Solving => Some("solving"),
        Stage::Refit | Stage::Bootstrap => Some("refit"),
        Stage::Zones => Some("zones"),
        Stage::Done => None,
    }
}

impl<'a> FitWatch<'a> {
    /// Begins now.
    pub fn new(reporter: &'a mut Reporter, stopper: &'a Stopper) -> Self {
        FitWatch {
            reporter,
            stopper,
            places: None,
            deadline: None,
            every: Duration::MAX,
            tolerance: 0.0,
            trace: Trace::begin(),
            // Where lambda is given, choosing takes no time, and says so.
            seconds: BTreeMap::from([("choosing".to_owned(), 0.0)]),
            failure: None,
            last: Instant::now(),
            stage: None,
        }
    }

    /// Whether the time is up.
    fn clock(&self) -> Control {
        if self.deadline.is_some_and(|d| Instant::now() >= d) { Control::TimeUp } else { Control::Continue }
    }

    /// The solve begins: from now on a signal finds its safe points.
    fn solving(&mut self) {
        self.reporter.aim(self.tolerance);
        self.trace = Trace::begin();
        self.last = Instant::now();
        if let Some(Places { solve, resume_command, .. }) = &self.places {
            let mut state = self.stopper.lock();
            state.checkpoint = Some(solve.clone());
            state.resume_command = Some(resume_command.clone());
        }
    }
}

impl Observer for FitWatch<'_> {
    fn progress(&mut self, progress: &Progress) -> Control {
        let now = Instant::now();
        self.trace.look(progress);
        self.reporter.solving(progress, self.deadline.map(|d| d.saturating_duration_since(now)));
        if self.stopper.must_end() {
            return Control::Interrupt;
        }
        if self.deadline.is_some_and(|d| now >= d) { Control::TimeUp } else { Control::Continue }
    }

    fn event(&mut self, event: &Event, _: &Progress) {
        if let Event::Appended { from, to } | Event::Removed { from, to } = *event {
            self.trace.events.push(RankChange { t: self.trace.begun.elapsed().as_secs_f64(), from, to });
        }
    }

    fn safe_point(&mut self, snapshot: &Snapshot) {
        if self.places.is_none() {
            return;
        }
        let mut state = self.stopper.lock();
        let mut kept = Kept::new(snapshot, state.latest.as_ref());
        if self.last.elapsed() >= self.every
            && let Some(checkpoint) = &mut state.checkpoint
        {
            match checkpoint.write(&kept) {
                Ok(()) => kept.on_disk = true,
                // The run itself is well; a full disk must not end it.
                Err(e) => self.reporter.say(format!("warning: the checkpoint was not written: {e}")),
            }
            self.last = Instant::now();
        }
        state.latest = Some(kept);
    }
}

impl FitObserver for FitWatch<'_> {
    fn stage(&mut self, stage: Stage) {
        let now = Instant::now();
        if let Some((before, begun)) = self.stage.replace((stage, now))
            && let Some(part) = part(before)
        {
            *self.seconds.entry(part.to_owned()).or_default() += (now - begun).as_secs_f64();
        }
        match stage {
            Stage::LambdaMax => self.reporter.spin("lambda_max"),
            Stage::Choosing => self.reporter.spin("choosing"),
            Stage::Path => self.reporter.spin("path"),
            Stage::Solving => self.solving(),
            Stage::Refit => self.reporter.spin("refit"),
            Stage::Bootstrap => self.reporter.spin("bootstrap"),
            Stage::Zones => self.reporter.spin("zones"),
            Stage::Done => {}
        }
    }

    fn choosing(&mut self, so_far: &Outlook) {
        self.reporter.choosing(so_far);
    }

    fn chosen(&mut self, choice: &Choice) {
        self.reporter.say(choice.sentence());
    }

    fn path_progress(&mut self, progress: &Progress) -> Control {
        self.reporter.solving(progress, None);
        match self.stopper.asked() {
            true => Control::Interrupt,
            false => self.clock(),
        }
    }

    fn path_point(&mut self, point: &LambdaPoint) {
        self.reporter.say(format!(
            "lambda {:.3e} ({:.4} of lambda_max): rank {}, objective {:.6e}, {}",
            point.lambda,
            point.lambda_ratio,
            point.rank,
            point.objective.value,
            point.certified_gap.map_or_else(|| "gap not proven".to_owned(), |gap| format!("certified gap {gap:.1e}"))
        ));
    }

    fn keep(&mut self, unfinished: &Unfinished) -> Control {
        let written = self.places.as_ref().map_or(Ok(()), |p| path_checkpoint::write(&p.path, &p.asked_for, unfinished));
        if let Err(e) = written {
            self.failure = Some(e);
            return Control::Interrupt;
        }
        self.look()
    }

    fn pass(&mut self, passes: usize, value: f64) {
        self.reporter.refitting(passes, value);
    }

    fn look(&mut self) -> Control {
        if self.stopper.must_end() { Control::Interrupt } else { self.clock() }
    }
}

/// Watches the reader, and ends it when a signal came.
pub struct WatchReading<'a> {
    /// Tells the user.
    pub reporter: &'a mut Reporter,
    /// Knows of signals.
    pub stopper: &'a Stopper,
}

impl metastate_ingest::ReadProgress for WatchReading<'_> {
    fn update(&mut self, update: &Update) -> bool {
        self.reporter.reading(update);
        !self.stopper.asked()
    }
}
