//! P from counts, (2.2) of the paper: the one place, with the one convention for states that were never left.

use crate::error::Result;
use crate::linalg::{Csr, SparseOperator};

/// Divides each row by its sum; rows with sum zero stay as they are.
pub(crate) fn divide_rows(csr: &mut Csr, sums: &[f64]) {
    let indptr = csr.indptr().to_vec();
    let values = csr.values_mut();
    for (i, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum != 0.0) {
        values[indptr[i]..indptr[i + 1]].iter_mut().for_each(|x| *x /= sum);
    }
}

/// `p_ij = n_ij / n_i`. The row of a state that was never left (`n_i = 0`) is uniform, `1/d`, and is not stored.
pub(crate) fn transition_matrix(counts: &Csr) -> Result<SparseOperator> {
    let departures = counts.row_sums();
    let mut p = counts.clone();
    divide_rows(&mut p, &departures);
    SparseOperator::new(p, never_left(&departures))
}

/// The states without departures, ascending.
fn never_left(departures: &[f64]) -> Vec<u32> {
    (0..departures.len() as u32).filter(|&i| departures[i as usize] == 0.0).collect()
}
