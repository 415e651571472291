//! Options of `forecast`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub const EXAMPLES: &str = "Examples:
  metastate forecast out/protein
  metastate forecast out/zones --from 'Penn Station' --steps 1,2,10 --out out/zones-forecast
  metastate forecast out/zones --to Airport --json
  metastate forecast out/protein --check --lags 1,2,5,10
  metastate forecast out/protein --check other-run.npy --lags 1,4

Times are in frames: steps of the chain times the lag of the fit. Numbers that are infinite or not defined are null in JSON.";

/// `metastate forecast`.
#[derive(Debug, Clone, Args)]
pub struct ForecastCommand {
    /// A result folder
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Start in this state; several times for several, in equal shares. Without it, as the data is distributed
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    pub from: Vec<String>,
    /// Start from this law: a CSV file with the columns label,weight
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub from_law: Option<PathBuf>,
    /// Steps ahead, separated by commas
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1")]
    pub steps: Vec<u64>,
    /// Likeliest states to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub top: usize,
    /// Mean steps from every state to this one; several times for a set
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    pub to: Vec<String>,
    /// Chapman-Kolmogorov check and timescales at several lags, counted from these files or, without any, from the result's own
    /// inputs. Write it after RESULT
    #[arg(long, value_name = "INPUT", num_args = 0..)]
    pub check: Option<Vec<String>>,
    /// For --check: lags to count at, as multiples of the fit's own
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,5,10", requires = "check")]
    pub lags: Vec<u64>,
    /// Frames a step stands for, when the result was fitted on counts made elsewhere; the lag of the fit unless given
    #[arg(long, value_name = "N")]
    pub lag: Option<usize>,
    /// Which factors to use; the refitted ones where there are any, unless given
    #[arg(long, value_enum)]
    pub model: Option<ModelKind>,
    /// Write the tables to this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it is there
    #[arg(long)]
    pub force: bool,
}

/// `--model`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModelKind {
    /// The solution of the stated problem, factors.npz
    Factors,
    /// The refitted factors, refit.npz
    Refit,
}
