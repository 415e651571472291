//! Reads what users have, trips, trajectories, counts and matrices, into labelled transition counts, and keeps a ledger of what
//! was left out and why.
//!
//! ```no_run
//! use metastate_ingest::{Data, InputSettings, Silent, read};
//!
//! let settings = InputSettings { from: Some("start".into()), to: Some("end".into()), ..InputSettings::default() };
//! let ingested = read(&["trips-*.parquet".into()], &settings, &mut Silent)?;
//! if let Data::Counts(counted) = &ingested.data {
//!     println!("{} states\n{}", counted.counts.states(), counted.counts.ledger());
//! }
//! # Ok::<(), metastate_ingest::IngestError>(())
//! ```

#![forbid(unsafe_code)]

pub mod arrays;
mod assemble;
mod cells;
mod codes;
mod columns;
mod counter;
mod countsfile;
mod error;
mod filter;
mod guard;
mod guess;
mod labels;
mod log;
mod machine;
mod manifest;
mod matrix;
pub mod memory;
mod mtx;
mod npy;
mod npz;
mod ordered;
mod progress;
mod second;
mod settings;
pub mod side;
mod source;
pub mod sql;
mod table;
mod told;
mod trajectories;
mod trips;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metastate::Ledger;

pub use assemble::CountedStates;
pub use cells::hexagon;
pub use codes::{Code, Explanation, codes};
pub use counter::{LocalCounter, PairBatch, PairCounter};
pub use countsfile::write_counts;
pub use error::{IngestError, Place, Result, nearest};
pub use filter::Filter;
pub use guard::guarded;
pub use log::{LogColumns, Logged, read_log};
pub use machine::available_memory;
pub use manifest::InputRecord;
pub use matrix::{GivenMatrix, MatrixValues, Sizes};
pub use progress::{Phase, ReadProgress, Silent, Update};
pub use second::{Expression, PartOfDate, SecondCounts, SecondLabel, Side, Tally};
pub use settings::{As, BoundingBox, CellSize, Delimiter, InputSettings, TextTable};
pub use source::{Compression, Format, Source, expand_names};

/// What was read.
#[derive(Debug, Clone)]
pub enum Data {
    /// Transition counts.
    Counts(CountedStates),
    /// A transition matrix.
    Matrix(GivenMatrix),
    /// Records of what was done in each state.
    Log(Logged),
}

/// What was read, from which bytes.
#[derive(Debug, Clone)]
pub struct Ingested {
    /// Counts or a matrix.
    pub data: Data,
    /// What the inputs were taken for.
    pub as_: As,
    /// The same in one line, with how they were read.
    pub read_as: String,
    /// Every input with its hash, files of labels and weights included.
    pub inputs: Vec<InputRecord>,
    /// Things worth telling the user.
    pub hints: Vec<String>,
}

impl Ingested {
    /// What was left out while reading.
    pub fn ledger(&self) -> Ledger {
        match &self.data {
            Data::Counts(counted) => counted.counts.ledger().clone(),
            Data::Matrix(_) => Ledger::new(),
            Data::Log(logged) => logged.log.ledger().clone(),
        }
    }
}

/// How large the inputs are, where headers tell: of matrix files. Nothing else of them is read.
pub fn sizes(inputs: &[String], settings: &InputSettings) -> Result<Option<Sizes>> {
    let sources = source::resolve(inputs)?;
    let matrices = sources.iter().all(|s| matches!(s.format, Format::Npy | Format::Npz | Format::Mtx));
    if !matrices || !matches!(guess::kind(&sources, settings)?, None | Some(As::Counts | As::Matrix)) {
        return Ok(None);
    }
    matrix::sizes(&sources, settings).map(Some)
}

/// Reads files, patterns and `-` as one data set. The inputs are hashed in the background.
pub fn read(inputs: &[String], settings: &InputSettings, progress: &mut dyn ReadProgress) -> Result<Ingested> {
    let sources = source::resolve(inputs)?;
    let beside: Vec<String> = settings.labels.iter().chain(&settings.weights).cloned().collect();
    let extra = if beside.is_empty() { Vec::new() } else { source::resolve(&beside)? };
    let as_ = guess::kind(&sources, settings)?;
    guess::check_options(as_, &sources, settings)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hashes = scope.spawn(|| {
            let mut records = manifest::hash_all(&sources, &stop)?;
            records.extend(manifest::hash_all(&extra, &stop)?);
            Ok::<_, IngestError>(records)
        });
        let finish = |data: Result<(Data, As)>, progress: &mut dyn ReadProgress| {
            let (data, as_) = data?;
            let total: u64 = sources.iter().map(|s| s.bytes).sum();
            while !hashes.is_finished() {
                progress::tell(progress, Phase::Hashing, 0, total, total)?;
                std::thread::sleep(Duration::from_millis(5));
            }
            let inputs = hashes.join().map_err(|_| IngestError::new(Code::Read, "the inputs could not be hashed"))??;
            let hints = match &data {
                Data::Counts(counted) => counted.hints.clone(),
                Data::Matrix(given) => given.hints.clone(),
                Data::Log(logged) => logged.hints.clone(),
            };
            let read_as = told::line(&sources, as_, &data, settings)?;
            Ok(Ingested { data, as_, read_as, inputs, hints })
        };
        let data = read_data(&sources, as_, settings, progress);
        let result = finish(data, progress);
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn read_data(sources: &[Source], as_: Option<As>, settings: &InputSettings, progress: &mut dyn ReadProgress) -> Result<(Data, As)> {
    match (as_, &settings.log) {
        (Some(As::Trips), Some(columns)) => Ok((Data::Log(log::read(sources, settings, columns, progress)?), As::Trips)),
        (_, Some(_)) => {
            Err(IngestError::new(Code::Option, "--action reads records of one step each, from a state by an action to the next state")
                .file(&sources[0].name)
                .remedy("name the columns of the states with --from and --to"))
        }
        (Some(As::Trips), None) => {
            let pairs = trips::read(sources, settings, None, progress)?;
            Ok((Data::Counts(pairs.into_counts(settings, &sources[0].name)?), As::Trips))
        }
        (Some(As::Trajectories), None) => Ok((Data::Counts(trajectories::read(sources, settings, progress)?), As::Trajectories)),
        (Some(As::Counts), None) if sources.iter().all(|s| guess::may_be_table(s.format)) => {
            Ok((Data::Counts(countsfile::read(sources, settings, progress)?), As::Counts))
        }
        // Matrix files; without a word from the user, their values decide.
        _ => Ok(match matrix::read(sources, settings, progress)? {
            matrix::Gathered::Counts(counted) => (Data::Counts(counted), As::Counts),
            matrix::Gathered::Matrix(given) => (Data::Matrix(given), As::Matrix),
        }),
    }
}
