//! The chain to be aggregated: P, the weights xi of its rows, and the labels of its states. Rows and columns may be different sets. A chain *goes on from where it arrives* when they are the same
//! states, so that each step can begin where the step before ended.

pub(crate) mod empirical;
mod estimate;
mod given;
mod sliced;
pub(crate) mod stationary;
mod whitened;

pub use estimate::{Connected, Estimate, TwoSided, WeightsBy};
pub use given::{Given, RowWeights};
pub use sliced::{Sliced, SlicedCounts, Slices};
pub use stationary::{StationaryOptions, stationary_law};
pub use whitened::{LEAST_PRIOR, Whitened};

use std::sync::Arc;

use crate::counts::StateIndex;
use crate::ledger::Ledger;
use crate::linalg::{Csr, Operator};

/// The power to which xi is raised in the diagonal of Xi; row i of the objective weighs `xi_i^(2 power)`.
///
/// ```
/// use metastate::{Chain, Given, Mat, WeightPower};
///
/// let p = Mat::from_fn(2, 2, |_, _| 0.5);
/// let chain = Chain::from_dense(p, Given::weights(vec![0.64, 0.36]))?;
/// assert_eq!(chain.weights(), [0.64, 0.36]);
/// assert_eq!(chain.with_weight_power(WeightPower::Half).weights(), [0.8, 0.6]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WeightPower {
    /// `xi`, as in the paper.
    #[default]
    One,
    /// `sqrt(xi)`: each observed transition counts once. Shows slow, rare states better.
    Half,
    /// 1 for every state.
    Zero,
}

impl WeightPower {
    /// The exponent.
    #[must_use]
    pub fn exponent(self) -> f64 {
        match self {
            WeightPower::One => 1.0,
            WeightPower::Half => 0.5,
            WeightPower::Zero => 0.0,
        }
    }

    fn raise(self, xi: &[f64]) -> Vec<f64> {
        match self {
            WeightPower::One => xi.to_vec(),
            WeightPower::Half => xi.iter().map(|x| x.sqrt()).collect(),
            WeightPower::Zero => vec![1.0; xi.len()],
        }
    }
}

/// A Markov chain with weighted rows. Every state has `xi > 0`: where the weight is zero the data say nothing about the row,
/// and the dual problem would be unbounded, so such states are left out on the way in and named in the ledger.
///
/// ```
/// use metastate::{Chain, Counts, Estimate, StateIndex};
///
/// let counts = Counts::from_pairs(StateIndex::numbered(2), [(0, 1), (1, 0), (0, 0), (0, 1)])?;
/// let chain = Chain::estimate(&counts, &Estimate::default())?;
/// assert_eq!(chain.xi(), [0.75, 0.25]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chain {
    p: Arc<dyn Operator>,
    xi: Vec<f64>,
    weights_by: WeightsBy,
    weight_power: WeightPower,
    weights: Vec<f64>,
    index: StateIndex,
    destinations: StateIndex,
    goes_on: bool,
    counts: Option<Csr>,
    kept: Vec<usize>,
    transitions: f64,
    departures: Vec<f64>,
    stationary_residual: Option<f64>,
    ledger: Ledger,
}

impl Chain {
    /// The transition matrix, by its products and rows.
    #[must_use]
    pub fn p(&self) -> &dyn Operator {
        self.p.as_ref()
    }

    /// The transition matrix, shared.
    #[must_use]
    pub fn p_shared(&self) -> Arc<dyn Operator> {
        Arc::clone(&self.p)
    }

    /// Number of states that are left: the rows of P.
    #[must_use]
    pub fn states(&self) -> usize {
        self.xi.len()
    }

    /// The labels of the states that are left, row by row.
    #[must_use]
    pub fn index(&self) -> &StateIndex {
        &self.index
    }

    /// The labels of the states that are reached, column by column.
    #[must_use]
    pub fn destinations(&self) -> &StateIndex {
        &self.destinations
    }

    /// Whether rows and columns are the same states, so that each step can begin where the step before ended. Only then there is a latent chain, with its times and forecasts.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// The transitions between the states of the chain, in their order; none when P was given as probabilities.
    #[must_use]
    pub fn counts(&self) -> Option<&Csr> {
        self.counts.as_ref()
    }

    /// For each row of the chain its place in the index of the data that the chain was made of, ascending. The places that are missing
    /// are those of the states that were left out.
    #[must_use]
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Share of each state: positive, sums to one.
    #[must_use]
    pub fn xi(&self) -> &[f64] {
        &self.xi
    }

    /// The diagonal of Xi in the objective, `xi^power`.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The power that makes the weights of xi.
    #[must_use]
    pub fn weight_power(&self) -> WeightPower {
        self.weight_power
    }

    /// Number of observed transitions that P rests on; zero when P was given as probabilities.
    #[must_use]
    pub fn transitions(&self) -> f64 {
        self.transitions
    }

    /// Observed transitions out of each state, `n_i` in (2.2), zero where the row is the uniform one; `xi` when P was given as
    /// probabilities. So `departures[i] * p_ij` is the number (or share) of transitions from i to j.
    #[must_use]
    pub fn departures(&self) -> &[f64] {
        &self.departures
    }

    /// `|| xi^T P - xi^T ||_1` when xi was computed as the stationary law of P.
    #[must_use]
    pub fn stationary_residual(&self) -> Option<f64> {
        self.stationary_residual
    }

    /// What was left out between the data and this chain.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Numbers stored for P.
    #[must_use]
    pub fn nonzeros(&self) -> usize {
        self.p.nonzeros()
    }

    /// The same chain with other weights in the objective. The set of states does not depend on the power.
    #[must_use]
    pub fn with_weight_power(mut self, power: WeightPower) -> Self {
        self.weights = power.raise(&self.xi);
        self.weight_power = power;
        self
    }
}
