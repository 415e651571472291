//! Counts in coordinates in which their noise is white.
//!
//! A count `n_ij` varies by about `n_i p_ij`, and `p_ij` is about the share `c_j` of all arrivals. So in `Z_ij = a_i p_ij / sqrt(c_j)` with `a_i = sqrt(n_i / n)` every entry varies by the same,
//! `1 / n`: one lambda separates noise from structure, where with the paper's weights the busiest rows alone decide.
//!
//! A prior of `alpha` transitions a state keeps rows and columns with few records from having too much influence: every row gets alpha more transitions that end by the shares c, every column alpha more arrivals. It
//! is one more part of rank one, and is never formed.

use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat, Operator, Row, SparseOperator, thin};

/// The smallest prior: a state that was reached and never left would weigh nothing without one.
pub const LEAST_PRIOR: f64 = 1.0;

/// A sparse matrix and one of rank one: `P = S + l r^T`.
#[derive(Debug, Clone)]
pub struct SparseAndOne {
    sparse: SparseOperator,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Operator for SparseAndOne {
    fn rows(&self) -> usize {
        self.sparse.rows()
    }

    fn cols(&self) -> usize {
        self.sparse.cols()
    }

    fn nonzeros(&self) -> usize {
        self.sparse.nonzeros() + self.left.len() + self.right.len()
    }

    fn apply(&self, x: &Mat, out: &mut Mat) {
        self.sparse.apply(x, out);
        let inner = thin::fold_rows(x, |sums, j, row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += self.right[j] * x));
        thin::for_each_row_mut(out, |i, row| row.iter_mut().zip(&inner).for_each(|(o, s)| *o += self.left[i] * s));
    }

    fn apply_transpose(&self, x: &Mat, out: &mut Mat) {
        self.sparse.apply_transpose(x, out);
        let inner = thin::fold_rows(x, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += self.left[i] * x));
        thin::for_each_row_mut(out, |j, row| row.iter_mut().zip(&inner).for_each(|(o, s)| *o += self.right[j] * s));
    }

    fn row(&self, i: usize) -> Row<'_> {
        let (columns, values) = self.sparse.stored().row(i);
        Row::SparseAndOne(columns, values, self.left[i], &self.right)
    }
}

/// Counts in white coordinates: `Z` as an operator, the totals `a` and the measure `sqrt(c)` of its frame.
#[derive(Debug, Clone)]
pub struct Whitened {
    /// `a_i p_ij / sqrt(c_j)`, the prior in p and c.
    pub z: SparseAndOne,
    /// `a_i = sqrt((n_i + alpha) / (n + m alpha))`: what row i of the memberships sums to.
    pub totals: Vec<f64>,
    /// `sqrt(c_j)`, `c_j = (arrivals_j + alpha) / (n + columns alpha)`: what the destinations are measured by.
    pub measure: Vec<f64>,
    /// Every row weighs one.
    pub ones: Vec<f64>,
    /// alpha.
    pub prior: f64,
}

impl Whitened {
    /// The counts with a prior of so many transitions a state, [`LEAST_PRIOR`] at least.
    pub fn new(counts: &Csr, prior: f64) -> Result<Self> {
        let prior = prior.max(LEAST_PRIOR);
        let (m, n) = (counts.rows(), counts.cols());
        let departures = counts.row_sums();
        let mut arrivals = vec![0.0; n];
        counts.triplets().for_each(|(_, j, x)| arrivals[j as usize] += x);
        let all: f64 = departures.iter().sum();
        if !(all > 0.0 && all.is_finite()) {
            return Err(Error::Empty { what: "the list of transitions" });
        }
        let totals: Vec<f64> = departures.iter().map(|d| ((d + prior) / (all + m as f64 * prior)).sqrt()).collect();
        let measure: Vec<f64> = arrivals.iter().map(|a| ((a + prior) / (all + n as f64 * prior)).sqrt()).collect();
        let mut sparse = counts.clone();
        let (indptr, indices) = (counts.indptr().to_vec(), counts.indices().to_vec());
        let values = sparse.values_mut();
        for i in 0..m {
            let scale = totals[i] / (departures[i] + prior);
            for at in indptr[i]..indptr[i + 1] {
                values[at] *= scale / measure[indices[at] as usize];
            }
        }
        // The prior's part: alpha c_j / (n_i + alpha), and c_j / sqrt(c_j) is the measure again.
        let left = (0..m).map(|i| totals[i] * prior / (departures[i] + prior)).collect();
        let z = SparseAndOne { sparse: SparseOperator::new(sparse, Vec::new())?, left, right: measure.clone() };
        Ok(Whitened { z, totals, measure, ones: vec![1.0; m], prior })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Whitened {
        let counts = Csr::from_triplets(3, 4, &[(0, 0, 5.0), (0, 3, 1.0), (1, 2, 7.0), (2, 0, 2.0), (2, 2, 2.0)]).unwrap();
        Whitened::new(&counts, 2.0).unwrap()
    }

    #[test]
    fn rows_sum_to_their_totals_and_entries_are_those_of_the_definition() {
        let w = some();
        for i in 0..3 {
            let mut sum = 0.0;
            w.z.row(i).for_each(4, |j, x| sum += x * w.measure[j]);
            assert!((sum - w.totals[i]).abs() < 1e-15);
        }
        // n = 17, alpha = 2: p_03 = (1 + 2 c_3) / (6 + 2), c_3 = (1 + 2) / (17 + 8).
        let c = 3.0 / 25.0;
        let mut found = 0.0;
        w.z.row(0).for_each(4, |j, x| {
            if j == 3 {
                found = x
            }
        });
        assert!((found - (8.0f64 / 23.0).sqrt() * (1.0 + 2.0 * c) / 8.0 / c.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn products_agree_with_the_rows() {
        let w = some();
        let x = Mat::from_fn(4, 2, |i, j| ((3 * i + j) as f64).sin());
        let mut out = Mat::default();
        w.z.apply(&x, &mut out);
        let y = Mat::from_fn(3, 2, |i, j| ((i + 5 * j) as f64).cos());
        let mut back = Mat::default();
        w.z.apply_transpose(&y, &mut back);
        let (mut expected, mut norm2) = (Mat::zeros(4, 2), 0.0);
        for i in 0..3 {
            let mut row = [0.0; 2];
            w.z.row(i).for_each(4, |j, p| {
                norm2 += p * p;
                for k in 0..2 {
                    row[k] += p * x[(j, k)];
                    expected[(j, k)] += p * y[(i, k)];
                }
            });
            assert!((0..2).all(|k| (row[k] - out[(i, k)]).abs() < 1e-14));
        }
        assert!((0..4).all(|j| (0..2).all(|k| (expected[(j, k)] - back[(j, k)]).abs() < 1e-14)));
        assert!((w.z.weighted_norm_squared(&w.ones) - norm2).abs() < 1e-14);
    }
}
