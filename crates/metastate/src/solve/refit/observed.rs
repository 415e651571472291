//! The counts as the likelihood sees them: by rows and by columns, with their margins.

use crate::chain::empirical::transition_matrix_both_ways;
use crate::error::{Error, Result};
use crate::linalg::{Csr, SparseOperator};

/// Transition counts `n_ij`, stored twice so that both blocks of a pass stream.
#[derive(Debug, Clone)]
pub struct Observed {
    pub(super) by_row: Csr,
    pub(super) by_column: Csr,
    /// `n_i / n`.
    pub(super) share: Vec<f64>,
    pub(super) marginal: Vec<f64>,
    pub(super) total: f64,
}

impl Observed {
    /// From counts of any positive weight.
    pub fn new(counts: Csr) -> Result<Self> {
        let total = counts.sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::Empty { what: "the list of transitions" });
        }
        let share = counts.row_sums().into_iter().map(|n| n / total).collect();
        let marginal = marginal_law(&counts);
        Ok(Observed { by_column: counts.transposed(), by_row: counts, share, marginal, total })
    }

    /// P of the counts; a row that was never left is uniform.
    pub(crate) fn transition_matrix(&self) -> Result<SparseOperator> {
        transition_matrix_both_ways(&self.by_row, &self.by_column)
    }

    /// The counts, row by row.
    pub fn counts(&self) -> &Csr {
        &self.by_row
    }

    /// Number of rows, the states that are left.
    pub fn rows(&self) -> usize {
        self.by_row.rows()
    }

    /// Number of columns, the states that are reached.
    pub fn cols(&self) -> usize {
        self.by_row.cols()
    }

    /// Number of transitions.
    pub fn transitions(&self) -> f64 {
        self.total
    }

    /// Share of each state in the departures.
    pub fn departure_shares(&self) -> &[f64] {
        &self.share
    }

    /// Where transitions end: see [`marginal_law`].
    pub fn marginal(&self) -> &[f64] {
        &self.marginal
    }
}

/// `m_j = (n_j + 1) / (n + d)`, `n_j` the arrivals at j, d the number of columns: no state is impossible. Where there are fewer transitions than states
/// (or shares instead of counts), the 1 becomes `n / d`.
pub fn marginal_law(counts: &Csr) -> Vec<f64> {
    let d = counts.cols();
    let arrivals = counts.column_sums();
    let total: f64 = arrivals.iter().sum();
    let extra = if total >= d as f64 {
        1.0
    } else if total > 0.0 {
        total / d as f64
    } else {
        1.0
    };
    arrivals.iter().map(|n| (n + extra) / (total + extra * d as f64)).collect()
}
