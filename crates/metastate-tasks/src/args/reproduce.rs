//! Options of `metastate reproduce`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Examples in the help.
pub const EXAMPLES: &str = "Examples:
  metastate reproduce all --quick --data trips.parquet --out out/quick
  metastate reproduce table-exact --out out/exact
  metastate reproduce all --data data --out out/paper
  metastate reproduce all --data data --out out/paper --resume

Writes reproduction.md, reproduction/*.svg and cells/*.json (finished pieces of work) into the folder. The whole run takes an hour or so
on two cores; it says beforehand how long.";

/// `metastate reproduce`.
#[derive(Debug, Clone, Args)]
pub struct ReproduceCommand {
    /// Which part of the paper's section 6
    #[arg(value_enum, value_name = "WHAT")]
    pub what: ReproduceWhat,
    /// Small chains: everything in about a minute. The paper has no values for them
    #[arg(long)]
    pub quick: bool,
    /// The folder of the document, its figures and the finished cells
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Go on from the finished cells in the folder
    #[arg(long)]
    pub resume: bool,
    /// Trajectories of each kind, at most; the paper has 5
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub trajectories: u64,
    /// Begin nothing new after so many seconds; the document then says what is missing
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
    /// Taxi trips: files of the TLC's records, or a folder that holds nyc_taxi_trips_*.parquet
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
}

/// What to reproduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)] // named as the tables
pub enum ReproduceWhat {
    TableExact,
    TableD,
    TableR,
    TableN,
    Taxi,
    All,
}
