//! The experiments of the paper's section 6: what is simulated, which grids, what the paper printed, regressions, figures and the
//! document that puts all of it side by side. The mathematics is the library's; here it is only called.
//!
//! An experiment is a list of cells (`plan::Cell`). A finished cell is one small JSON file, written whole or not at all (`store`), so a run
//! that was cut off goes on where it ended. The document (`document`) is made of those files alone.

#![forbid(unsafe_code)]

mod document;
mod exact;
mod instance;
mod maps;
mod numbers;
mod paper;
mod plan;
mod regress;
mod run;
mod sampled;
mod store;
mod taxi;
mod traps;

pub use plan::{Scale, What};
pub use run::{Asked, Host, Outcome, run};

/// What can go wrong.
#[derive(Debug)]
pub enum Error {
    /// In the library.
    Method(metastate::Error),
    /// In a file of trips.
    Data(metastate_ingest::IngestError),
    /// In writing the document or a cell.
    Files(metastate_report::Error),
    /// A cell that was written by another version, or not by this command.
    Cell(String),
    /// No trips to work on.
    NoData(String),
    /// Somebody asked to stop; what is finished is kept.
    Stopped,
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

impl From<metastate::Error> for Error {
    fn from(e: metastate::Error) -> Self {
        Error::Method(e)
    }
}

impl From<metastate_ingest::IngestError> for Error {
    fn from(e: metastate_ingest::IngestError) -> Self {
        Error::Data(e)
    }
}

impl From<metastate_report::Error> for Error {
    fn from(e: metastate_report::Error) -> Self {
        Error::Files(e)
    }
}
