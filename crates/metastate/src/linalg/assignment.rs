//! Which column stands for which: of two sets of meta-states, or of zones and meta-states.

use super::{Mat, thin};

/// For each column of the reference the column of `u` that stands for it: the matching with the largest `sum_k sum_i xi_i r_ik u_il`.
/// Where `u` has fewer columns, some get a number beyond them.
#[must_use]
pub fn matching(reference: &Mat, u: &Mat, share: &[f64]) -> Vec<usize> {
    let (s, t) = (reference.cols(), u.cols());
    let weighted = Mat::from_fn(u.rows(), t, |i, l| share[i] * u[(i, l)]);
    let overlap = thin::cross_gram(reference, &weighted);
    cheapest_assignment(s.max(t), |k, l| if k < s && l < t { -overlap[(k, l)] } else { 0.0 })
}

/// The cheapest assignment of rows to columns (Hungarian method with potentials, `O(n^3)`): the column of each row.
pub fn cheapest_assignment(n: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    // Row and column 0 are sentinels; `row_of[j]` is the row matched to column j.
    let (mut row_price, mut column_price) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let (mut row_of, mut came_from) = (vec![0usize; n + 1], vec![0usize; n + 1]);
    for row in 1..=n {
        row_of[0] = row;
        let mut column = 0;
        let (mut slack, mut used) = (vec![f64::INFINITY; n + 1], vec![false; n + 1]);
        while row_of[column] != 0 {
            used[column] = true;
            let (from, mut step, mut next) = (row_of[column], f64::INFINITY, 0);
            for j in (1..=n).filter(|&j| !used[j]) {
                let reduced = cost(from - 1, j - 1) - row_price[from] - column_price[j];
                if reduced < slack[j] {
                    (slack[j], came_from[j]) = (reduced, column);
                }
                if slack[j] < step {
                    (step, next) = (slack[j], j);
                }
            }
            for j in 0..=n {
                if used[j] {
                    row_price[row_of[j]] += step;
                    column_price[j] -= step;
                } else {
                    slack[j] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[came_from[column]];
            column = came_from[column];
        }
    }
    let mut column_of = vec![0; n];
    (1..=n).for_each(|j| column_of[row_of[j] - 1] = j - 1);
    column_of
}
