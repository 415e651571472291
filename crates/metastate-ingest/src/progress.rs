//! How the caller hears about the work, and stops it.

use crate::codes::Code;
use crate::error::{IngestError, Result};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Rows are read and counted.
    Reading,
    /// Rows of trajectories are brought into order.
    Sorting,
    /// Counts are put together.
    Finishing,
    /// The inputs are hashed for the manifest.
    Hashing,
}

impl Phase {
    /// One word for a progress bar.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Reading => "reading",
            Phase::Sorting => "sorting",
            Phase::Finishing => "finishing",
            Phase::Hashing => "hashing",
        }
    }
}

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// What is being done.
    pub phase: Phase,
    /// Rows (frames, entries) so far.
    pub rows: u64,
    /// Bytes of the inputs so far, as stored.
    pub bytes: u64,
    /// Bytes of all inputs.
    pub total_bytes: u64,
}

/// Told now and then, always from the calling thread.
pub trait ReadProgress {
    /// Returns false to stop: the work then ends with `E-INGEST-CANCELLED`.
    fn update(&mut self, update: &Update) -> bool;
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl ReadProgress for Silent {
    fn update(&mut self, _: &Update) -> bool {
        true
    }
}

/// Tells, and turns a wish to stop into an error.
pub(crate) fn tell(progress: &mut dyn ReadProgress, phase: Phase, rows: u64, bytes: u64, total_bytes: u64) -> Result<()> {
    if progress.update(&Update { phase, rows, bytes, total_bytes }) {
        Ok(())
    } else {
        Err(IngestError::new(Code::Cancelled, "reading was interrupted"))
    }
}
