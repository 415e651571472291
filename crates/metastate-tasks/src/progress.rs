//! What the user is told on the way: phases, rates and how long it may still take. Where and how it is shown is the door's.

use std::time::{Duration, Instant};

use metastate::solve;
use metastate::workspace::select::Outlook;
use metastate_ingest::Update;

/// Shows how far the work is: a bar on a terminal, lines in a log, a call of somebody's function.
pub trait Show: std::fmt::Debug + Send {
    /// Between two steps that are shown; none where nothing is.
    fn interval(&self) -> Option<Duration>;
    /// A line worth keeping.
    fn line(&self, line: &str);
    /// Another phase begins. `total` bytes are to be read in it, where that is known.
    fn phase(&self, name: &'static str, total: Option<u64>);
    /// How far a phase is; and how many bytes of how many are read, where it reads.
    fn step(&self, phase: &'static str, text: &str, bytes: Option<(u64, u64)>);
    /// Nothing more is to be shown.
    fn clear(&self);
}

/// Shows nothing.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl Show for Quiet {
    fn interval(&self) -> Option<Duration> {
        None
    }
    fn line(&self, _: &str) {}
    fn phase(&self, _: &'static str, _: Option<u64>) {}
    fn step(&self, _: &'static str, _: &str, _: Option<(u64, u64)>) {}
    fn clear(&self) {}
}

/// Tells the user how far the work is.
#[derive(Debug)]
pub struct Reporter {
    show: Box<dyn Show>,
    phase: &'static str,
    phase_start: Instant,
    phase_start_count: u64,
    last: Instant,
    local: LocalEta,
}

/// How long the present local solve will take, if the KKT residual goes on falling as it did.
#[derive(Debug, Default)]
struct LocalEta {
    goal: Option<f64>,
    round: usize,
    /// Moments and logarithms of the residual.
    seen: std::collections::VecDeque<(Instant, f64)>,
}

/// Residuals that the rate of their fall is taken from.
const RESIDUALS: usize = 40;

impl LocalEta {
    fn look(&mut self, p: &solve::Progress) {
        let Some(residual) = p.local.map(|l| l.worst()).filter(|r| *r > 0.0) else { return };
        if p.round != self.round {
            self.round = p.round;
            self.seen.clear();
        }
        if self.seen.back().is_none_or(|last| last.1 != residual.ln()) {
            self.seen.push_back((Instant::now(), residual.ln()));
        }
        if self.seen.len() > RESIDUALS {
            self.seen.pop_front();
        }
    }

    /// `ln(residual / goal)` over the rate at which the logarithm falls; nothing while it does not.
    fn seconds(&self) -> Option<f64> {
        let (goal, first, last) = (self.goal?, self.seen.front()?, self.seen.back()?);
        let rate = (first.1 - last.1) / (last.0 - first.0).as_secs_f64();
        let left = (last.1 - goal.ln()) / rate;
        (rate > 0.0 && left.is_finite() && left >= 0.0).then_some(left)
    }
}

impl Reporter {
    /// Shows it there.
    pub fn new(show: impl Show + 'static) -> Self {
        let now = Instant::now();
        Reporter { show: Box::new(show), phase: "", phase_start: now, phase_start_count: 0, last: now, local: LocalEta::default() }
    }

    /// The KKT residual at which the solver will be content.
    pub fn aim(&mut self, tolerance: f64) {
        self.local.goal = Some(tolerance);
    }

    /// One line, unless quiet.
    pub fn say(&self, line: impl AsRef<str>) {
        self.show.line(line.as_ref());
    }

    /// Nothing more is to be shown.
    pub fn clear(&self) {
        self.show.clear();
    }

    fn enter(&mut self, phase: &'static str, total: Option<u64>, count: u64) {
        if self.phase != phase {
            (self.phase, self.phase_start, self.phase_start_count) = (phase, Instant::now(), count);
            self.show.phase(phase, total);
        }
    }

    /// Whether it is time to say something.
    fn due(&mut self) -> bool {
        let due = self.show.interval().is_some_and(|interval| self.last.elapsed() >= interval);
        if due {
            self.last = Instant::now();
        }
        due
    }

    fn rate(&self, count: u64) -> f64 {
        (count - self.phase_start_count.min(count)) as f64 / self.phase_start.elapsed().as_secs_f64().max(1e-9)
    }

    /// A phase without numbers.
    pub fn spin(&mut self, phase: &'static str) {
        self.enter(phase, None, 0);
    }

    /// From the choice of the rank.
    pub fn choosing(&mut self, so_far: &Outlook) {
        self.enter("choosing", None, 0);
        let taken = self.phase_start.elapsed().as_secs_f64();
        self.message("choosing", || choosing(so_far, taken));
    }

    /// From the likelihood refit.
    pub fn refitting(&mut self, passes: usize, value: f64) {
        self.message("refit", || format!("pass {passes}, log-likelihood with prior {value:.6} a transition"));
    }

    /// From `reproduce`: a piece of work begins.
    pub fn cell(&mut self, name: &str, number: usize, of: usize, left: f64) {
        self.message("cell", || format!("{number} of {of}, {name}, about {} left", brief(left)));
    }

    fn message(&mut self, phase: &'static str, text: impl FnOnce() -> String) {
        self.enter(phase, None, 0);
        if self.due() {
            self.show.step(phase, &text(), None);
        }
    }

    /// From the reader.
    pub fn reading(&mut self, u: &Update) {
        self.enter(u.phase.name(), Some(u.total_bytes), u.rows);
        if !self.due() {
            return;
        }
        let rows = format!("{} rows, {:.3e}/s", u.rows, self.rate(u.rows));
        self.show.step(u.phase.name(), &rows, Some((u.bytes, u.total_bytes)));
    }

    /// From the solver. `left` is what the time limit leaves.
    pub fn solving(&mut self, p: &solve::Progress, left: Option<Duration>) {
        let phase = match p.phase {
            solve::Phase::Relaxing => "relaxing",
            solve::Phase::Solving => "solving",
            solve::Phase::Checking => "checking",
            solve::Phase::Certifying => "proving",
        };
        self.enter(phase, None, p.sweep as u64);
        self.local.look(p);
        if !self.due() {
            return;
        }
        let mut text = format!("rank {}", p.rank);
        if p.objective.is_finite() {
            let rate = self.rate(p.sweep as u64);
            text += &format!(
                ", round {}, sweep {} ({rate:.1}/s), objective {:.9e}, gap about {:.2e}",
                p.round + 1,
                p.sweep,
                p.objective,
                p.steering.gap(p.objective)
            );
        } else {
            text += &format!(", lower bound about {:.9e}", p.steering.guess());
        }
        if let Some(errors) = &p.local {
            text += &format!(", KKT {:.1e}", errors.worst());
        }
        if let Some(seconds) = self.local.seconds().filter(|_| p.phase == solve::Phase::Solving) {
            text += &format!(", this rank: about {} left", brief(seconds));
        }
        if let Some(left) = left {
            text += &format!(", at most {} s more", left.as_secs());
        }
        self.show.step(phase, &text, None);
    }
}

/// How far the choice is. What is left is taken to go on at the pace so far: first looks are quicker than the careful fits that follow.
fn choosing(so_far: &Outlook, taken: f64) -> String {
    let Outlook { fits, about, best } = *so_far;
    let seen = best.map_or_else(String::new, |(rank, score)| {
        format!(", best so far {rank} meta-state{} with {score:.5} a transition held out", if rank == 1 { "" } else { "s" })
    });
    let left = if fits == 0 { String::new() } else { format!(", about {} left", brief(taken / fits as f64 * (about - fits) as f64)) };
    format!("{fits} of about {about} fits{seen}{left}")
}

/// Seconds, minutes or hours, whichever is shortest.
fn brief(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s if s < 360_000.0 => format!("{:.0} h", s / 3600.0),
        _ => "days".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_says_how_far_it_is() {
        let so_far = Outlook { fits: 10, about: 25, best: Some((8, -7.0123)) };
        assert_eq!(
            choosing(&so_far, 4.0),
            "10 of about 25 fits, best so far 8 meta-states with -7.01230 a transition held out, about 6 s left"
        );
        assert_eq!(choosing(&Outlook { fits: 0, about: 25, best: None }, 1.0), "0 of about 25 fits");
    }

    #[test]
    fn a_residual_that_falls_tenfold_a_second_needs_three_seconds_for_three_decades() {
        let start = Instant::now();
        let seen = (0..3).map(|k| (start + Duration::from_secs(k), (1e-1f64 * 0.1f64.powi(k as i32)).ln())).collect();
        let eta = LocalEta { goal: Some(1e-6), round: 0, seen };
        assert!((eta.seconds().unwrap() - 3.0).abs() < 1e-9);
        assert!(LocalEta { goal: Some(1e-6), ..LocalEta::default() }.seconds().is_none());
        assert_eq!((brief(12.3), brief(600.0), brief(7200.0)), ("12 s".into(), "10 min".into(), "2 h".into()));
    }
}
