//! What the user sees on the way: a bar or a spinner on a terminal, a plain line every half minute otherwise.

use std::io::IsTerminal;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use metastate::solve;
use metastate_ingest::Update;

/// Between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);
/// Between two changes of a bar.
const BAR_INTERVAL: Duration = Duration::from_millis(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Quiet,
    Plain,
    Bars,
    Told,
}

/// What is told to a program instead of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A line worth keeping.
    Line(String),
    /// What is being done, and how far it is.
    Step(&'static str, String),
}

/// Tells the user how far the work is, on standard error.
#[derive(Debug)]
pub struct Reporter {
    mode: Mode,
    bar: ProgressBar,
    phase: &'static str,
    phase_start: Instant,
    phase_start_count: u64,
    last: Instant,
    local: LocalEta,
    listener: Option<Sender<Told>>,
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
    /// Quiet, or as the terminal allows.
    pub fn new(quiet: bool) -> Self {
        let mode = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Mode::Quiet,
            (false, true) => Mode::Bars,
            (false, false) => Mode::Plain,
        };
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let now = Instant::now();
        Reporter { mode, bar, phase: "", phase_start: now, phase_start_count: 0, last: now, local: LocalEta::default(), listener: None }
    }

    /// Tells a program; nothing goes to standard error.
    pub fn telling(listener: Sender<Told>) -> Self {
        Reporter { mode: Mode::Told, listener: Some(listener), ..Reporter::new(true) }
    }

    fn tell(&self, told: Told) {
        // A listener that went away has no wish to hear.
        let _ = self.listener.as_ref().map(|listener| listener.send(told));
    }

    /// The bar, for those who must clear it from another thread.
    pub fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// The KKT residual at which the solver will be content.
    pub fn aim(&mut self, tolerance: f64) {
        self.local.goal = Some(tolerance);
    }

    /// One line, unless quiet.
    pub fn say(&self, line: impl AsRef<str>) {
        match self.mode {
            Mode::Quiet => {}
            Mode::Told => self.tell(Told::Line(line.as_ref().to_owned())),
            Mode::Plain | Mode::Bars => self.bar.suspend(|| eprintln!("{}", line.as_ref())),
        }
    }

    /// Clears the bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn enter(&mut self, phase: &'static str, total: Option<u64>, count: u64) {
        if self.phase == phase {
            return;
        }
        (self.phase, self.phase_start, self.phase_start_count) = (phase, Instant::now(), count);
        self.tell(Told::Step(phase, String::new()));
        if self.mode != Mode::Bars {
            return;
        }
        let style = match total {
            Some(total) => {
                self.bar.set_length(total);
                "{prefix:>10} [{bar:28}] {bytes}/{total_bytes} {bytes_per_sec}, ETA {eta}  {wide_msg}"
            }
            None => "{prefix:>10} {spinner} {elapsed}  {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.reset();
        self.bar.set_prefix(phase);
        if total.is_none() {
            self.bar.enable_steady_tick(Duration::from_millis(100));
        } else {
            self.bar.disable_steady_tick();
        }
    }

    /// Whether it is time to say something.
    fn due(&mut self) -> bool {
        let interval = match self.mode {
            Mode::Quiet => return false,
            Mode::Plain => PLAIN_INTERVAL,
            Mode::Bars | Mode::Told => BAR_INTERVAL,
        };
        let due = self.last.elapsed() >= interval;
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
        if self.mode == Mode::Bars {
            self.bar.set_message("");
        }
    }

    /// From the choice of the rank.
    pub fn choosing(&mut self, rank: usize, value: f64) {
        self.message("choosing", || format!("rank {rank}, held-out log-likelihood {value:.5} a transition"));
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
            match self.mode {
                Mode::Bars => self.bar.set_message(text()),
                Mode::Plain => eprintln!("{phase}: {}", text()),
                Mode::Told => self.tell(Told::Step(phase, text())),
                Mode::Quiet => {}
            }
        }
    }

    /// From the reader.
    pub fn reading(&mut self, u: &Update) {
        self.enter(u.phase.name(), Some(u.total_bytes), u.rows);
        if !self.due() {
            return;
        }
        let rows = format!("{} rows, {:.3e}/s", u.rows, self.rate(u.rows));
        match self.mode {
            Mode::Bars => {
                self.bar.set_position(u.bytes);
                self.bar.set_message(rows);
            }
            Mode::Told => self.tell(Told::Step(u.phase.name(), rows)),
            _ => eprintln!("{}: {} of {} bytes, {rows}", u.phase.name(), u.bytes, u.total_bytes),
        }
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
        match self.mode {
            Mode::Bars => self.bar.set_message(text),
            Mode::Told => self.tell(Told::Step(phase, text)),
            _ => eprintln!("{phase}: {text}"),
        }
    }
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
    fn a_residual_that_falls_tenfold_a_second_needs_three_seconds_for_three_decades() {
        let start = Instant::now();
        let seen = (0..3).map(|k| (start + Duration::from_secs(k), (1e-1f64 * 0.1f64.powi(k as i32)).ln())).collect();
        let eta = LocalEta { goal: Some(1e-6), round: 0, seen };
        assert!((eta.seconds().unwrap() - 3.0).abs() < 1e-9);
        assert!(LocalEta { goal: Some(1e-6), ..LocalEta::default() }.seconds().is_none());
        assert_eq!((brief(12.3), brief(600.0), brief(7200.0)), ("12 s".into(), "10 min".into(), "2 h".into()));
    }
}
