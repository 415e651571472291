//! What is looked after when the work is to end before it is done.
//!
//! The solver may be in the middle of a long product, so the thread that receives a signal does the work itself: safe points
//! are kept in memory as they come by. One lock guards them, the checkpoint files and the result folder, so nothing is cut in two.
//! Who receives signals, and what it does with the process, is the door's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::checkpoint::{Checkpoint, Kept};
use crate::error::{CliError, Result};

/// What the main thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Reading inputs: looks at [`Stopper::asked`] itself.
    Reading,
    /// Anything that may be left at any moment.
    Working,
    /// The work is done and written.
    Done,
}

/// What must be looked after when the process is to end.
#[derive(Debug)]
pub struct State {
    /// What the main thread is doing.
    pub doing: Doing,
    /// The latest safe point, and whether it is on disk.
    pub latest: Option<Kept>,
    /// Where checkpoints go.
    pub checkpoint: Option<Checkpoint>,
    /// How to go on after an interruption.
    pub resume_command: Option<String>,
    /// Where the points of a path, or the cells of an experiment, are kept, and how to go on from them.
    pub path_checkpoint: Option<(std::path::PathBuf, String)>,
}

/// Shared by the main thread and the thread that receives signals.
#[derive(Debug, Clone)]
pub struct Stopper {
    asked: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
    /// Whether a signal ends the process. Within somebody else's process the work ends itself, and keeps no checkpoints.
    ends_process: bool,
}

impl Stopper {
    fn new(ends_process: bool) -> Self {
        let state = State { doing: Doing::Working, latest: None, checkpoint: None, resume_command: None, path_checkpoint: None };
        Stopper { asked: Arc::new(AtomicBool::new(false)), state: Arc::new(Mutex::new(state)), ends_process }
    }

    /// For a process whose only purpose is this work: whoever receives a signal calls [`Stopper::ask`], saves the [`State`] and ends the process.
    pub fn ending_process() -> Self {
        Stopper::new(true)
    }

    /// For work within somebody else's process: the caller asks with [`Stopper::ask`], and the work ends with an error at its next look.
    pub fn within_process() -> Self {
        Stopper::new(false)
    }

    /// Asks the work to end.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether checkpoints are kept on disk.
    pub fn keeps_checkpoints(&self) -> bool {
        self.ends_process
    }

    /// Whether the work must end itself.
    pub fn must_end(&self) -> bool {
        !self.ends_process && self.asked()
    }

    /// An error when the work must end itself.
    pub fn go_on(&self) -> Result<()> {
        if self.must_end() { Err(CliError::interrupted("interrupted; nothing was written")) } else { Ok(()) }
    }

    /// Whether a signal came.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The state, for one reader or writer at a time.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make the safe point wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what the main thread is doing.
    pub fn doing(&self, doing: Doing) {
        self.lock().doing = doing;
    }
}

impl State {
    /// Writes the latest safe point, if it is not on disk, and says how to go on.
    pub fn save(&mut self) -> CliError {
        let State { latest, checkpoint, resume_command, path_checkpoint, .. } = self;
        let kept = |what: &str, place: &std::path::Path, command: &str| {
            CliError::interrupted(format!("interrupted; {what} kept")).at(place.display().to_string()).remedy(command)
        };
        if let (Some(checkpoint), Some(command)) = (&mut *checkpoint, resume_command) {
            if let Some(latest) = latest.as_mut().filter(|latest| !latest.on_disk) {
                match checkpoint.write(latest) {
                    Ok(()) => latest.on_disk = true,
                    Err(e) => return CliError::interrupted(format!("interrupted, and the checkpoint could not be written: {e}")),
                }
            }
            if checkpoint.written() {
                return kept("the checkpoint is", checkpoint.place(), command);
            }
        }
        if let Some((place, command)) = path_checkpoint.as_ref().filter(|(place, _)| place.exists()) {
            return kept("what was finished so far is", place, command);
        }
        match checkpoint {
            Some(_) => {
                CliError::interrupted("interrupted before the first safe point; nothing was written").remedy("run the same command again")
            }
            None => CliError::interrupted("interrupted; nothing was written"),
        }
    }
}
