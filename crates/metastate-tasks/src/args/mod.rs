//! What can be typed. Every option is defined here once; the same structs are written into `summary.json`, so that `verify`
//! and `--resume` know exactly what was asked for.

mod compare;
mod fit;
mod forecast;
mod input;
mod reproduce;
mod simulate;

pub use compare::{AssignCommand, AssignKind, CompareArgs, CompareCommand, HardKind};
pub use fit::{Clusters, FitArgs, Init, RefitKind, RunArgs, SolverKind, StopKind, WeightsKind};
pub use forecast::{ForecastCommand, ModelKind};
pub use input::{InputArgs, InputKind, MEMORY};
pub use reproduce::{ReproduceCommand, ReproduceWhat};
pub use simulate::{SimulateArgs, SimulateWhat};

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const EXAMPLES: &str = "Examples:
  metastate demo
  metastate fit trips.parquet --from pickup_zone --to dropoff_zone --lambda-ratio 0.5 --out out/zones
  metastate fit walk.npy --as trajectories --lag 50 --lambda-ratio 0.1 --out out/protein
  metastate verify out/zones
  metastate forecast out/zones --from 'Penn Station' --steps 3
  metastate explain E-INGEST-COLUMN

Exit codes: 0 done, 2 bad arguments or bad input (nothing written), 1 anything else, 130 interrupted (checkpoint kept).";

/// Finds the few hidden meta-states behind a Markov chain with many states, and says how good the answer is.
#[derive(Debug, Parser)]
#[command(name = "metastate", version, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// For all commands.
    #[command(flatten)]
    pub common: Common,
}

/// Options of all commands.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// One JSON document on standard output and nothing else there
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress, no report on the way; errors are still told
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Threads to use; all cores unless given. The answer does not depend on it
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<usize>,
    /// Seed of everything random
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the meta-states, write a result folder
    #[command(after_help = FIT_EXAMPLES)]
    Fit(Box<FitCommand>),
    /// Solve a whole path of lambdas, choose lambda and rank by held-out score, write a result folder with path.csv
    #[command(after_help = PATH_EXAMPLES)]
    Path(Box<FitCommand>),
    /// Only count, write a counts file that can be merged with others
    #[command(after_help = COUNT_EXAMPLES)]
    Count(Box<CountCommand>),
    /// Recheck a saved result with code that the solver does not share
    #[command(after_help = "Example:\n  metastate verify out/zones\n\nExit code 0 only if every number agrees.")]
    Verify(VerifyCommand),
    /// Make the page of a result anew
    #[command(after_help = "Example:\n  metastate report out/zones\n\nThen open out/zones/report.html; it needs no network.")]
    Report(ReportCommand),
    /// n-step forecasts, stationary law, timescales and passage times from the latent chain
    #[command(after_help = forecast::EXAMPLES)]
    Forecast(Box<ForecastCommand>),
    /// This method and its rivals on the same held-out folds
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<CompareCommand>),
    /// Memberships for states that were not in the fit, from their own transitions
    #[command(after_help = ASSIGN_EXAMPLES)]
    Assign(Box<AssignCommand>),
    /// Chains with a known answer: planted ones, trajectories, a toy city with trips
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    /// The paper's tables and figures, each value beside the printed one
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(ReproduceCommand),
    /// The two-minute tour: simulates a city, finds its zones, writes a result folder
    #[command(after_help = "Example:\n  metastate demo\n  metastate demo --out out/city --seed 7")]
    Demo(DemoCommand),
    /// What an error code means and what to do
    #[command(after_help = "Examples:\n  metastate explain E-INGEST-COLUMN\n  metastate explain          (lists all codes)")]
    Explain {
        /// The code, such as E-INGEST-COLUMN; all are listed without one
        code: Option<String>,
    },
    /// Completions for a shell, on standard output
    #[command(after_help = "Example:\n  metastate completions bash > ~/.local/share/bash-completion/completions/metastate")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

const FIT_EXAMPLES: &str = "Examples:
  metastate fit trips.csv --from start --to end --refit likelihood --out out/trips
  metastate fit 'taxi-*.parquet' --from-lon plon --from-lat plat --to-lon dlon --to-lat dlat --cell 0.001 --min-share 1e-4 \\
      --where \"service = 'yellow'\" --lambda 3e-8 --out out/taxi
  metastate fit counts.mtx --lambda-ratio 0.3 --stop exact --out out/exact --checkpoint-every 60
  metastate fit counts.mtx --lambda-ratio 0.3 --stop exact --out out/exact --resume";

const PATH_EXAMPLES: &str = "Examples:
  metastate path counts.csv --out out/path
  metastate path walk.npy --as trajectories --lag 50 --points 30 --floor 0.001 --max-rank 20 --refit likelihood --out out/protein

The folder is that of `fit` at the lambda chosen, with path.csv beside it. An interrupted path goes on with --resume.";

const COUNT_EXAMPLES: &str = "Examples:
  metastate count january.parquet --from start --to end --out january-counts.parquet
  metastate fit 'january-counts.parquet' 'february-counts.parquet' --lambda-ratio 0.5 --out out/both";

const COMPARE_EXAMPLES: &str = "Examples:
  metastate compare trips.csv --from start --to end --rank 8 --out out/compare
  metastate compare walk.parquet --as trajectories --state micro --lag 50 --rank 12 --reference macro --out out/protein
  metastate compare zones.csv --from pickup --to dropoff --weight trips --rank 6 --places centroids.csv --label zone_id --out out/od

The table says for each measure whether this package is the best or which rival is.";

const ASSIGN_EXAMPLES: &str = "Examples:
  metastate assign out/zones february.parquet --out february-states.csv
  metastate assign out/zones new.csv --from start --to end --by likelihood --out new-states.csv

Transitions to states that were not in the fit are left out and counted.";

const SIMULATE_EXAMPLES: &str = "Examples:
  metastate simulate planted --states 1000 --rank 10 --out planted
  metastate simulate trajectory --states 200 --rank 5 --steps 1000000 --out walk.npy
  metastate simulate city --trips 200000 --out trips.parquet";

/// `metastate fit`.
#[derive(Debug, Clone, Args)]
pub struct FitCommand {
    /// Where from.
    #[command(flatten)]
    pub input: InputArgs,
    /// What to solve.
    #[command(flatten)]
    pub fit: FitArgs,
    /// How to run it.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `metastate count`.
#[derive(Debug, Clone, Args)]
pub struct CountCommand {
    /// Where from.
    #[command(flatten)]
    pub input: InputArgs,
    /// The counts file to write (Parquet)
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}

/// `metastate report`.
#[derive(Debug, Clone, Args)]
pub struct ReportCommand {
    /// The result folder of fit, path, demo or compare
    pub result: PathBuf,
    /// The plots as PNG too
    #[arg(long)]
    pub png: bool,
}

/// `metastate verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyCommand {
    /// A result folder
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Fit the chosen rank and its neighbours again on the folds, too
    #[arg(long)]
    pub deep: bool,
}

/// `metastate demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoCommand {
    /// The result folder; without it, the first free of metastate-demo, metastate-demo-2, ...
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the folder if it is there
    #[arg(long)]
    pub force: bool,
    /// Trips to simulate
    #[arg(long, value_name = "N", default_value_t = 400_000)]
    pub trips: usize,
}
