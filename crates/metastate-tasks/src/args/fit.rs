//! Options of `fit`: what to solve ([`FitArgs`], part of the answer) and how to run it ([`RunArgs`], no part of it).

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What to solve.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Fit")]
#[allow(missing_docs)] // each option's help says it
pub struct FitArgs {
    /// The price of a meta-state
    #[arg(long, value_name = "X", conflicts_with = "lambda_ratio")]
    pub lambda: Option<f64>,
    /// The same as a share of lambda_max, above which one meta-state is best
    #[arg(long, value_name = "R")]
    pub lambda_ratio: Option<f64>,
    /// Meta-states to start with; by default as many as the relaxation has
    #[arg(long, value_name = "N")]
    pub start_rank: Option<usize>,
    /// Never more meta-states than this; 300 with --as-in-paper
    #[arg(long, value_name = "N", default_value_t = 50, default_value_if("as_in_paper", "true", "300"))]
    pub max_rank: usize,
    /// Solve as the paper does: PALM with Barzilai-Borwein steps from a random start of --start-rank meta-states (a tenth of the states unless
    /// given, at most 300), local solves that end when F falls by less than 1e-3 over 30 steps, one meta-state appended at a time for a decrease
    /// of 1e-5, meta-states merged below an absolute threshold (5e-5 unless --redundancy-absolute is given), exact rule at 1e-3 (--gap) unless
    /// --stop is given. Slower and further from the optimum than the default. The paper does not say what ends a cycle of appending and
    /// merging: it ends after 20,000 sweeps, or at --time-limit
    #[arg(long)]
    #[serde(default)]
    pub as_in_paper: bool,
    /// Local solver; palm-bb with --as-in-paper
    #[arg(long, value_enum, default_value = "fast", default_value_if("as_in_paper", "true", "palm-bb"))]
    pub solver: SolverKind,
    /// When to stop: at a certified gap, or by one of the paper's two rules; exact with --as-in-paper
    #[arg(long, value_enum, default_value = "certificate", default_value_if("as_in_paper", "true", "exact"))]
    pub stop: StopKind,
    /// KKT residual to reach
    #[arg(long, value_name = "X", default_value_t = 1e-5)]
    pub tolerance: f64,
    /// Certified gap to reach, relative to the objective
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    pub gap: f64,
    /// Merge meta-states that are this close, relative to the data (1e-4 unless given)
    #[arg(long, value_name = "X", conflicts_with = "redundancy_absolute")]
    pub redundancy_relative: Option<f64>,
    /// Merge meta-states that are this close, as it is (5e-5 with --as-in-paper)
    #[arg(long, value_name = "X")]
    pub redundancy_absolute: Option<f64>,
    /// What the weight of a state counts
    #[arg(long, value_enum, default_value = "departures")]
    pub weights_by: WeightsKind,
    /// Power of the weights in the objective: 1 as in the paper, 0.5 counts every transition once, 0 every state
    #[arg(long, value_name = "1|0.5|0", value_parser = ["1", "0.5", "0"], default_value = "1")]
    pub weight_power: String,
    /// Where to start: random, spectral, or the folder of an earlier result; random with --as-in-paper
    #[arg(long, value_name = "random|spectral|RESULT", default_value = "spectral", default_value_if("as_in_paper", "true", "random"))]
    pub init: Init,
    /// The true transition matrix, or its two factors, for the recovery error
    #[arg(long, value_name = "P.npy|U.npy,V.npy")]
    pub truth: Option<String>,
    /// Hard meta-states (zones): k-means on the memberships with K clusters or one for each meta-state, or the largest membership. Unless
    /// given, the largest membership after a refit, else k-means with one for each meta-state
    #[arg(long, value_name = "K|rank|membership")]
    pub clusters: Option<Clusters>,
    /// Fit once more at the rank found, without the price, into refit.npz. Unless given, by likelihood where lambda and rank are chosen, else
    /// none
    #[arg(long, value_enum)]
    pub refit: Option<RefitKind>,
    /// Transitions that the prior of the likelihood refit adds to every state; chosen on held-out data without it. A transition matrix has no
    /// transitions to hold out, so there it must be given: its rows count as one transition a state on average (state i as xi_i times the number
    /// of states), and C is in that unit
    #[arg(long, value_name = "C")]
    #[serde(default)]
    pub prior: Option<f64>,
    /// Folds that are held out in turn where something is chosen
    #[arg(long, value_name = "K", default_value_t = 5)]
    #[serde(default = "default_folds")]
    pub folds: usize,
    /// Values of lambda on the path, from lambda_max down
    #[arg(long, value_name = "N", default_value_t = 25)]
    #[serde(default = "default_points")]
    pub points: usize,
    /// Where the path ends, as a share of lambda_max
    #[arg(long, value_name = "SHARE", default_value_t = 0.003)]
    #[serde(default = "default_floor")]
    pub floor: f64,
    /// Draws from the fitted model (of blocks of frames, for trajectories) for 90 % intervals of memberships and timescales; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    pub bootstrap: usize,
}

/// How to run it. None of this changes a converged answer.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Run")]
#[allow(missing_docs)] // each option's help says it
pub struct RunArgs {
    /// The result folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace the folder if it is there
    #[arg(long)]
    pub force: bool,
    /// Seconds between two checkpoints in DIR.checkpoint
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub checkpoint_every: f64,
    /// Go on from the checkpoint of an interrupted run with the same inputs and options
    #[arg(long)]
    pub resume: bool,
    /// Stop solving after so many seconds and write what there is
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
}

fn default_folds() -> usize {
    5
}

fn default_points() -> usize {
    25
}

fn default_floor() -> f64 {
    0.003
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    };
}

words!(
    /// `--solver`.
    SolverKind {
        /// Majorised blocks with Anderson acceleration
        Fast,
        /// The paper's PALM with Barzilai-Borwein steps
        PalmBb,
        /// The paper's PALM with the theoretical steps; very slow
        PalmLipschitz,
    }
);
words!(
    /// `--stop`.
    StopKind {
        /// The certified gap is at most --gap
        Certificate,
        /// The paper's exact rule, to --gap
        Exact,
        /// The paper's early rule with 5000 random directions
        Early,
    }
);
words!(
    /// `--weights-by`.
    WeightsKind {
        /// Transitions out of the state
        Departures,
        /// Transitions into the state
        Arrivals,
    }
);
words!(
    /// `--refit`.
    RefitKind {
        /// No second fit
        None,
        /// By least squares
        LeastSquares,
        /// By maximum likelihood
        Likelihood,
    }
);

/// `--init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Init {
    /// Uniform on the simplices, as in the paper.
    Random,
    /// From the relaxation.
    Spectral,
    /// From the factors in this folder.
    Result(PathBuf),
}

impl From<String> for Init {
    fn from(text: String) -> Self {
        match text.as_str() {
            "random" => Init::Random,
            "spectral" => Init::Spectral,
            _ => Init::Result(PathBuf::from(text)),
        }
    }
}

impl FromStr for Init {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.to_owned().into())
    }
}

impl From<Init> for String {
    fn from(init: Init) -> String {
        match init {
            Init::Random => "random".to_owned(),
            Init::Spectral => "spectral".to_owned(),
            Init::Result(folder) => folder.display().to_string(),
        }
    }
}

/// `--clusters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Clusters {
    /// k-means, one for each meta-state.
    Rank,
    /// Every state goes where its membership is largest.
    Membership,
    /// k-means, so many.
    Count(usize),
}

impl FromStr for Clusters {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "rank" => Ok(Clusters::Rank),
            "membership" => Ok(Clusters::Membership),
            _ => text.parse().map(Clusters::Count).map_err(|_| format!("`{text}` is neither a number nor `rank` nor `membership`")),
        }
    }
}

impl TryFrom<String> for Clusters {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Clusters> for String {
    fn from(clusters: Clusters) -> String {
        match clusters {
            Clusters::Rank => "rank".to_owned(),
            Clusters::Membership => "membership".to_owned(),
            Clusters::Count(k) => k.to_string(),
        }
    }
}

impl FitArgs {
    /// Whether lambda is to be chosen.
    pub fn chooses(&self) -> bool {
        self.lambda.is_none() && self.lambda_ratio.is_none()
    }

    /// Whether the data is needed in parts.
    pub fn needs_parts(&self) -> bool {
        self.chooses() || self.bootstrap > 0 || (self.refit_kind() == RefitKind::Likelihood && self.prior.is_none())
    }

    /// How to refit. The lambda that is chosen is a large one, which finds the rank and proves it; its solution is shrunk too far to predict
    /// or to make zones, so there the refit is part of the answer.
    pub fn refit_kind(&self) -> RefitKind {
        self.refit.unwrap_or(if self.chooses() { RefitKind::Likelihood } else { RefitKind::None })
    }

    /// How states get their one meta-state. Refitted memberships are near 0 and 1 and speak for themselves; those of the penalised solution
    /// are blurred, and the paper clusters them.
    pub fn hard(&self) -> Clusters {
        self.clusters.unwrap_or(if self.refit_kind() == RefitKind::None { Clusters::Rank } else { Clusters::Membership })
    }

    /// What was not given, written out: as it stands in the result.
    pub fn resolved(&self) -> Self {
        FitArgs { refit: Some(self.refit_kind()), clusters: Some(self.hard()), ..self.clone() }
    }

    /// This lambda ratio, everything else by default.
    pub fn with_ratio(ratio: f64) -> Self {
        FitArgs {
            lambda: None,
            lambda_ratio: Some(ratio),
            start_rank: None,
            max_rank: 50,
            as_in_paper: false,
            solver: SolverKind::Fast,
            stop: StopKind::Certificate,
            tolerance: 1e-5,
            gap: 1e-3,
            redundancy_relative: None,
            redundancy_absolute: None,
            weights_by: WeightsKind::Departures,
            weight_power: "1".to_owned(),
            init: Init::Spectral,
            truth: None,
            clusters: None,
            refit: None,
            prior: None,
            folds: default_folds(),
            points: default_points(),
            floor: default_floor(),
            bootstrap: 0,
        }
    }
}
