//! Options of `compare` and `assign`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::InputArgs;

/// `metastate compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareCommand {
    /// Where from.
    #[command(flatten)]
    pub input: InputArgs,
    /// What to compare.
    #[command(flatten)]
    pub compare: CompareArgs,
}

/// What to compare.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Compare")]
#[allow(missing_docs)] // each option's help says it
pub struct CompareArgs {
    /// Meta-states of every method
    #[arg(long, value_name = "K")]
    pub rank: usize,
    /// Parts of the data, held out in turn
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub folds: usize,
    /// Only these methods, separated by commas; all without it
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// The price of a meta-state in our method; by default the largest at which K of them pay
    #[arg(long, value_name = "X", conflicts_with = "lambda_ratio")]
    pub lambda: Option<f64>,
    /// The same as a share of lambda_max
    #[arg(long, value_name = "R")]
    pub lambda_ratio: Option<f64>,
    /// Power of the weights: 1 as in the paper, 0.5 counts every transition once, 0 every state
    #[arg(long, value_name = "1|0.5|0", value_parser = ["1", "0.5", "0"], default_value = "1")]
    pub weight_power: String,
    /// Transitions that the prior of our likelihood refit adds to every state; by default chosen within the first fold's training part
    #[arg(long, value_name = "X")]
    pub prior: Option<f64>,
    /// Share of the marginal law that is mixed into every model before it is scored
    #[arg(long, value_name = "E", default_value_t = 1e-3)]
    pub smoothing: f64,
    /// How memberships become hard meta-states
    #[arg(long, value_enum, default_value = "kmeans")]
    pub hard: HardKind,
    /// Column with labels to compare the meta-states with, in the inputs or in --reference-from
    #[arg(long, value_name = "COL")]
    pub reference: Option<String>,
    /// CSV table with that column for each state, found by the column --label, or by `lon` and `lat` where states are cells
    #[arg(long, value_name = "FILE", requires = "reference")]
    pub reference_from: Option<PathBuf>,
    /// CSV table with `lon` and `lat` of each state, for the spatial coherence where states are no cells
    #[arg(long, value_name = "FILE")]
    pub places: Option<PathBuf>,
    /// Column that names the states in those tables
    #[arg(long, value_name = "COL", default_value = "label")]
    pub label: String,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace the folder if it is there
    #[arg(long)]
    pub force: bool,
}

/// `--hard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum HardKind {
    /// k-means on the memberships, as in the paper
    Kmeans,
    /// The largest membership
    Membership,
}

/// `metastate assign`.
#[derive(Debug, Clone, Args)]
pub struct AssignCommand {
    /// A result folder
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Where from; without options, read as the result's own inputs were.
    #[command(flatten)]
    pub input: InputArgs,
    /// How memberships are read off the transitions; as the result's own model was fitted, unless given
    #[arg(long, value_enum)]
    pub by: Option<AssignKind>,
    /// The table to write (CSV)
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

/// `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum AssignKind {
    /// As in the fit: a state of the fit with the same transitions gets its own membership back
    Penalised,
    /// Least squares, without the price
    LeastSquares,
    /// Maximum likelihood
    Likelihood,
}
