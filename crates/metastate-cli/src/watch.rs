//! The solver's observer: progress, the clock, and safe points for the checkpoint.

use std::time::{Duration, Instant};

use metastate::solve::{Control, Observer, Progress, Snapshot};
use metastate_ingest::Update;

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
}

impl Observer for Watch<'_> {
    fn progress(&mut self, progress: &Progress) -> Control {
        let now = Instant::now();
        self.reporter.solving(progress, self.deadline.map(|d| d.saturating_duration_since(now)));
        if self.deadline.is_some_and(|d| now >= d) { Control::TimeUp } else { Control::Continue }
    }

    fn safe_point(&mut self, snapshot: &Snapshot) {
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
