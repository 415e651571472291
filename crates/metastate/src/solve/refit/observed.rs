//! The counts as the likelihood sees them: by rows and by columns, with their margins.

use super::table::Tables;
use crate::chain::empirical::transition_matrix_both_ways;
use crate::error::{Error, Result};
use crate::linalg::{Csr, Operator, SparseOperator};

/// Transition counts `n_ij`, stored twice so that both blocks of a pass stream.
#[derive(Debug, Clone)]
pub struct Observed {
    pub(super) by_row: Csr,
    pub(super) by_column: Csr,
    /// `n_i / n`.
    pub(super) share: Vec<f64>,
    pub(super) marginal: Vec<f64>,
    pub(super) total: f64,
    /// The same counts in seven digits, for fits that are only compared with each other.
    pub(super) tables: Option<Tables>,
}

impl Observed {
    /// From counts of any positive weight.
    pub fn new(counts: Csr) -> Result<Self> {
        let total: f64 = counts.values().iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(Error::Empty { what: "the list of transitions" });
        }
        let by_column = counts.transposed();
        Ok(Observed::both_ways(counts, by_column, total))
    }

    /// Of the counts that P was made of, where it was: shared with it, so that they cost nothing more.
    pub(crate) fn of(p: &dyn Operator, counts: Csr) -> Result<Self> {
        match p.counted() {
            Some((by_row, by_column)) if by_row.shares_with(&counts) => {
                let total = counts.values().iter().sum();
                Ok(Observed::both_ways(counts, by_column.clone(), total))
            }
            _ => Observed::new(counts),
        }
    }

    fn both_ways(by_row: Csr, by_column: Csr, total: f64) -> Self {
        let share = by_row.row_sums().into_iter().map(|n| n / total).collect();
        let marginal = marginal_law(&by_row);
        Observed { by_row, by_column, share, marginal, total, tables: None }
    }

    /// The same counts for fits that are compared with each other, in seven digits where that is faster: see [`table`](super::table).
    pub(crate) fn for_comparisons(self) -> Self {
        Observed { tables: Tables::new(&self.by_row, &self.by_column), ..self }
    }

    /// P of the counts; a row that was never left is uniform.
    pub(crate) fn transition_matrix(&self) -> Result<SparseOperator> {
        transition_matrix_both_ways(&self.by_row, &self.by_column)
    }

    /// The counts, row by row.
    #[must_use]
    pub fn counts(&self) -> &Csr {
        &self.by_row
    }

    /// Number of rows, the states that are left.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.by_row.rows()
    }

    /// Number of columns, the states that are reached.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.by_row.cols()
    }

    /// Number of transitions.
    #[must_use]
    pub fn transitions(&self) -> f64 {
        self.total
    }

    /// Share of each state in the departures.
    #[must_use]
    pub fn departure_shares(&self) -> &[f64] {
        &self.share
    }

    /// Where transitions end: see [`marginal_law`].
    #[must_use]
    pub fn marginal(&self) -> &[f64] {
        &self.marginal
    }
}

/// `m_j = (n_j + 1) / (n + d)`, `n_j` the arrivals at j, d the number of columns: no state is impossible. Where there are fewer transitions than states
/// (or shares instead of counts), the 1 becomes `n / d`.
#[must_use]
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
