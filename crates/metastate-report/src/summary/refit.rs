//! `refit` of `summary.json`: the factors in `refit.npz`, which keep the rank and drop the penalty.

use std::fmt;

use metastate::workspace::refit::RefitStart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The refit, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RefitRecord {
    /// By likelihood, with a Dirichlet prior.
    Likelihood(LikelihoodRecord),
    /// By weighted least squares.
    LeastSquares(LeastSquaresRecord),
}

/// A refit by likelihood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LikelihoodRecord {
    /// Meta-states.
    pub rank: usize,
    /// The strength of the prior, in transitions a state.
    pub prior: f64,
    /// The start that led to it.
    pub start: StartWord,
    /// All starts that were tried.
    pub tried: Vec<TriedStart>,
    /// How the prior's transitions are shared among the meta-states: by the masses at the start. Empty in results of earlier versions.
    #[serde(default)]
    pub prior_shares: Vec<f64>,
    /// Log-likelihood a transition of the data it was fitted to.
    pub log_likelihood: f64,
    /// The same with the prior: what was maximised.
    pub penalised: f64,
    /// Passes over the data.
    pub passes: usize,
    /// Whether it came to rest before the limit of passes.
    pub converged: bool,
    /// Relative recovery error, where the truth was given.
    #[serde(default)]
    pub rel_re: Option<f64>,
}

/// A refit by least squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeastSquaresRecord {
    /// Meta-states.
    pub rank: usize,
    /// The first part of the objective, which was minimised alone.
    pub fidelity: f64,
    /// Sweeps.
    pub sweeps: usize,
    /// Whether it came to rest before the limit of sweeps.
    pub converged: bool,
    /// Relative recovery error, where the truth was given.
    #[serde(default)]
    pub rel_re: Option<f64>,
}

/// A start of the likelihood refit, and where it led.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedStart {
    /// Which one.
    pub start: StartWord,
    /// Log-likelihood a transition at the end, or where it was given up.
    pub log_likelihood: f64,
    /// What the starts are compared by: the penalised log-likelihood without what differs between the priors of the starts.
    pub comparable: f64,
}

/// Where a likelihood refit starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StartWord {
    /// From the solution in `factors.npz`.
    #[serde(rename = "penalised solution")]
    PenalisedSolution,
    /// From leading singular vectors of the data.
    #[serde(rename = "spectral")]
    Spectral,
}

impl From<RefitStart> for StartWord {
    fn from(start: RefitStart) -> Self {
        match start {
            RefitStart::Given => StartWord::PenalisedSolution,
            RefitStart::Spectral => StartWord::Spectral,
        }
    }
}

impl RefitRecord {
    /// The word for the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            RefitRecord::Likelihood(_) => "likelihood",
            RefitRecord::LeastSquares(_) => "least-squares",
        }
    }

    /// Meta-states.
    pub fn rank(&self) -> usize {
        match self {
            RefitRecord::Likelihood(r) => r.rank,
            RefitRecord::LeastSquares(r) => r.rank,
        }
    }

    /// The strength of the prior; a refit by least squares has none.
    pub fn prior(&self) -> Option<f64> {
        match self {
            RefitRecord::Likelihood(r) => Some(r.prior),
            RefitRecord::LeastSquares(_) => None,
        }
    }

    /// Relative recovery error, where the truth was given.
    pub fn rel_re(&self) -> Option<f64> {
        match self {
            RefitRecord::Likelihood(r) => r.rel_re,
            RefitRecord::LeastSquares(r) => r.rel_re,
        }
    }
}

/// The numbers that a person wants to know, in one line.
impl fmt::Display for RefitRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefitRecord::Likelihood(r) => write!(f, "likelihood, log likelihood {:.6e}, prior {:.6e}", r.log_likelihood, r.prior)?,
            RefitRecord::LeastSquares(r) => write!(f, "least-squares, fidelity {:.6e}", r.fidelity)?,
        }
        self.rel_re().map_or(Ok(()), |x| write!(f, ", rel re {x:.6e}"))
    }
}
