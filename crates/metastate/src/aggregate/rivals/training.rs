//! The training data as all rivals see them.

use crate::chain::Chain;
use crate::error::{Error, Result};
use crate::linalg::Operator;
use crate::solve::refit::Observed;

/// A chain with the counts behind it, by rows and by columns.
///
/// See the example of [`fit`](super::fit).
#[derive(Debug, Clone)]
pub struct Training {
    chain: Chain,
    observed: Observed,
}

impl Training {
    /// Of a chain that was counted.
    pub fn new(chain: &Chain) -> Result<Self> {
        let counts = chain.counts().ok_or(Error::Empty { what: "the list of transitions" })?;
        Ok(Training { observed: Observed::new(counts.clone())?, chain: chain.clone() })
    }

    /// Number of rows, the states that are left.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.chain.states()
    }

    /// Number of columns, the states that are reached.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.observed.cols()
    }

    /// The counts.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// P.
    #[must_use]
    pub fn p(&self) -> &dyn Operator {
        self.chain.p()
    }

    /// The diagonal of Xi.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        self.chain.weights()
    }

    /// Transitions out of each state.
    #[must_use]
    pub fn departures(&self) -> &[f64] {
        self.chain.departures()
    }
}
