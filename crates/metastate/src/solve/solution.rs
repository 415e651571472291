//! What a run hands out: every number in it is recomputed from the factors at the end.

use super::problem::{Factors, Objective};
use crate::proof::{Proven, Witness};

/// How a result is to be read. Only `Certified` may be called optimal, and only a proof can make it.
///
/// ```
/// use metastate::Status;
///
/// assert_eq!(Status::parse("certified"), Some(Status::Certified));
/// assert_eq!(Status::RankCap.as_str(), "rank-cap");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The gap asked for was reached, and that is proven.
    Certified,
    /// No pair of directions lowers F: the global check passed, or kappa fell below its limit.
    Stationary,
    /// The early stopping rule was met.
    Early,
    /// No more columns were allowed.
    RankCap,
    /// No more sweeps were allowed.
    IterationLimit,
    /// Time was up.
    TimeLimit,
    /// Somebody stopped the run.
    Interrupted,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 7] = [
        Status::Certified,
        Status::Stationary,
        Status::Early,
        Status::RankCap,
        Status::IterationLimit,
        Status::TimeLimit,
        Status::Interrupted,
    ];

    /// The status that a word stands for.
    #[must_use]
    pub fn parse(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// The word in `summary.json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Certified => "certified",
            Status::Stationary => "stationary",
            Status::Early => "early",
            Status::RankCap => "rank-cap",
            Status::IterationLimit => "iteration-limit",
            Status::TimeLimit => "time-limit",
            Status::Interrupted => "interrupted",
        }
    }
}

/// The error measures of section 6.1, and ours.
///
/// Part of a [`Solution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Local error of U's condition.
    pub rel_le1: f64,
    /// Local error of V's condition.
    pub rel_le2: f64,
    /// `Omega°(W) - 1` as a local search finds it: a lower bound, so no proof.
    pub ge: f64,
    /// The paper's relative duality gap; rests on the same search. The *heuristic gap*.
    pub rel_dg: f64,
    /// Relative recovery error, when the truth is known.
    pub rel_re: Option<f64>,
    /// Relative sampling error, when the truth is known.
    pub rel_se: Option<f64>,
}

/// Factors, what they are worth, and how that is known.
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// let solution = &model.solution; // of the penalised problem, with its proof
/// assert!(solution.certified_gap().is_some_and(|gap| gap >= 0.0));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Solution {
    /// U and V, columns ordered by mass, largest first.
    pub factors: Factors,
    /// Why the run stopped.
    pub status: Status,
    /// The lambda of the problem solved.
    pub lambda: f64,
    /// g, Omega's factorised value and F.
    pub objective: Objective,
    /// All error measures.
    pub errors: Errors,
    /// The multipliers of the row sums.
    pub mu: Vec<f64>,
    /// The lower bound that was proven, and how; none where nothing was to be proven.
    pub proof: Option<Proven>,
    /// F of the best answer with one meta-state, at the same lambda.
    pub objective_of_one: f64,
    /// The dual point behind the bound, for others to check.
    pub witness: Witness,
    /// Local solves.
    pub rounds: usize,
    /// Sweeps in all.
    pub sweeps: usize,
}

impl Solution {
    /// Number of meta-states.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.factors.rank()
    }

    /// The *certified gap*: no objective is smaller than F by more than this share of it. None where nothing was proven.
    #[must_use]
    pub fn certified_gap(&self) -> Option<f64> {
        self.proof.as_ref().map(|p| p.gap(self.objective.value))
    }

    /// The *explained gap*: the same distance to the bound as a share of what the meta-states explain over one, `(F - lower bound) / (F_1 - F)`. On noisy data most of F is
    /// noise that no model explains, and a share of F flatters. None where nothing was proven, or where one meta-state is as good.
    #[must_use]
    pub fn explained_gap(&self) -> Option<f64> {
        self.proof.as_ref().and_then(|p| p.explained_gap(self.objective.value, self.objective_of_one))
    }
}
