//! The training counts as all methods see them.

use crate::chain::WeightPower;
use crate::error::{Error, Result};
use crate::linalg::{Csr, Operator, SparseOperator};
use crate::solve::refit::Observed;

/// Departures that a state without any is given in its weight: its row says nothing, and no weight may be zero.
const NO_DEPARTURES: f64 = 0.5;

/// Counts, and P and Xi made of them.
#[derive(Debug, Clone)]
pub struct Training {
    observed: Observed,
    p: SparseOperator,
    weights: Vec<f64>,
    departures: Vec<f64>,
}

impl Training {
    /// From counts; a state that was never left has the uniform row `1/n` and the weight of half a transition.
    pub fn new(counts: Csr, power: WeightPower) -> Result<Self> {
        let d = counts.rows();
        if d < 2 {
            return Err(Error::Empty { what: "the list of transitions" });
        }
        let observed = Observed::new(counts)?;
        let departures = observed.counts().row_sums();
        let total: f64 = departures.iter().sum();
        let weights = departures.iter().map(|n| (n.max(NO_DEPARTURES.min(total / d as f64)) / total).powf(power.exponent())).collect();
        Ok(Training { p: observed.transition_matrix()?, observed, weights, departures })
    }

    /// Number of rows, the states that are left.
    pub fn rows(&self) -> usize {
        self.weights.len()
    }

    /// Number of columns, the states that are reached.
    pub fn cols(&self) -> usize {
        self.observed.cols()
    }

    /// The counts.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// P.
    pub fn p(&self) -> &dyn Operator {
        &self.p
    }

    /// The diagonal of Xi.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Transitions out of each state.
    pub fn departures(&self) -> &[f64] {
        &self.departures
    }
}
