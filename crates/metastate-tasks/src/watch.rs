//! The solver's observer: progress, the clock, and safe points for the checkpoint.

use std::time::{Duration, Instant};

use metastate::solve::{Control, Event, Observer, Progress, Snapshot};
use metastate_ingest::Update;
use metastate_report::page::{RankChange, TracePoint};

use crate::checkpoint::Kept;
use crate::progress::Reporter;
use crate::stop::Stopper;

/// Watches a solve.
pub struct Watch<'a> {
    /// Tells the user.
    pub reporter: &'a mut Reporter,
    /// Keeps the safe points.
    pub stopper: &'a Stopper,
    /// When time is up.
    pub deadline: Option<Instant>,
    /// Between two checkpoints.
    pub every: Duration,
    /// When the last one was written.
    pub last: Instant,
    /// The solver's way, for the page.
    pub trace: Trace,
}

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
            bound: p.steering.guess(),
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

impl Observer for Watch<'_> {
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
        if !self.stopper.keeps_checkpoints() {
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

/// Watches a solve of the path: each point is short, so there are no safe points within.
pub struct PathWatch<'a> {
    /// Tells the user.
    pub reporter: &'a mut Reporter,
    /// Knows of signals.
    pub stopper: &'a Stopper,
}

impl Observer for PathWatch<'_> {
    fn progress(&mut self, progress: &Progress) -> Control {
        self.reporter.solving(progress, None);
        if self.stopper.asked() { Control::Interrupt } else { Control::Continue }
    }
}

/// Watches the reader, and ends it when a signal came.
pub struct WatchReading<'a> {
    /// Tells the user.
    pub reporter: &'a mut Reporter,
    /// Knows of signals.
    pub stopper: &'a Stopper,
}

impl metastate_ingest::Progress for WatchReading<'_> {
    fn update(&mut self, update: &Update) -> bool {
        self.reporter.reading(update);
        !self.stopper.asked()
    }
}
