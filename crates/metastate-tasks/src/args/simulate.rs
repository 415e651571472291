//! Options of `simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `metastate simulate`.
#[derive(Debug, Clone, Args)]
pub struct SimulateArgs {
    /// What to simulate.
    #[command(subcommand)]
    pub what: SimulateWhat,
}

/// What to simulate.
#[derive(Debug, Clone, Subcommand)]
pub enum SimulateWhat {
    /// The paper's chains P = U V^T: a folder with U.npy, V.npy, xi.npy and P.npy or counts.csv
    Planted {
        /// States
        #[arg(long, value_name = "N", default_value_t = 1000)]
        states: usize,
        /// Hidden states
        #[arg(long, value_name = "N", default_value_t = 10)]
        rank: usize,
        /// Transitions to draw into counts.csv; without it P.npy is written
        #[arg(long, value_name = "N")]
        steps: Option<u64>,
        /// The folder to write
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Replace the folder if it is there
        #[arg(long)]
        force: bool,
    },
    /// One trajectory of such a chain: .npy (64-bit integers) or .txt (one line)
    Trajectory {
        /// States
        #[arg(long, value_name = "N", default_value_t = 1000)]
        states: usize,
        /// Hidden states
        #[arg(long, value_name = "N", default_value_t = 10)]
        rank: usize,
        /// Transitions
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        steps: usize,
        /// The file to write, .npy or .txt
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Replace the file if it is there
        #[arg(long)]
        force: bool,
    },
    /// A toy city: trips with coordinates as .csv or .parquet, the zones of its cells beside them
    City {
        /// Trips
        #[arg(long, value_name = "N", default_value_t = 400_000)]
        trips: usize,
        /// The file to write, .csv or .parquet; the planted zones go to FILE.zones.csv
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Replace the files if they are there
        #[arg(long)]
        force: bool,
    },
}
