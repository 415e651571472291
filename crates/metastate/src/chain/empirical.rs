//! P from counts, (2.2) of the paper: the one place, with the one convention for states that were never left.

use std::ops::RangeInclusive;

use crate::error::Result;
use crate::linalg::{Csr, SparseOperator};

/// Divides each row by its sum; rows with sum zero do not change.
pub(crate) fn divide_rows(csr: &mut Csr, sums: &[f64]) {
    let indptr = csr.indptr().to_vec();
    let values = csr.values_mut();
    for (i, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum != 0.0) {
        values[indptr[i]..indptr[i + 1]].iter_mut().for_each(|x| *x /= sum);
    }
}

/// `p_ij = n_ij / n_i`. The row of a state that was never left (`n_i = 0`) is uniform, `1/d`, and is not stored.
pub(crate) fn transition_matrix(counts: &Csr) -> Result<SparseOperator> {
    from_departures(counts, &counts.row_sums(), Csr::transposed)
}

/// The same where the counts are there by columns, too: P costs nothing beside them.
pub(crate) fn transition_matrix_both_ways(by_row: &Csr, by_column: &Csr) -> Result<SparseOperator> {
    from_departures(by_row, &by_row.row_sums(), |_| by_column.clone())
}

/// Row sums whose inverses, and whose products with numbers about one, stay far from the ends of what a number can be.
const ORDINARY: RangeInclusive<f64> = 1e-100..=1e100;

fn from_departures(counts: &Csr, departures: &[f64], transpose: impl FnOnce(&Csr) -> Csr) -> Result<SparseOperator> {
    if departures.iter().all(|n| *n == 0.0 || ORDINARY.contains(n)) {
        return SparseOperator::of_counts(counts, departures, transpose);
    }
    // Else P has values of its own: the counts themselves are no numbers to calculate with.
    let never_left = (0..departures.len() as u32).filter(|&i| departures[i as usize] == 0.0).collect();
    let mut p = counts.clone();
    divide_rows(&mut p, departures);
    SparseOperator::new(p, never_left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Mat, Operator};

    #[test]
    fn both_ways_are_the_same_bits() {
        // Few enough entries to stay sparse; state 29 is never left.
        let triplets: Vec<(u32, u32, f64)> =
            (0..29u32).flat_map(|i| (1..4u32).map(move |k| (i, (i * k + 7) % 30, f64::from(i + k) / 3.0))).collect();
        let counts = Csr::from_triplets(30, 30, &triplets).unwrap();
        let (one, other) = (transition_matrix(&counts).unwrap(), transition_matrix_both_ways(&counts, &counts.transposed()).unwrap());
        assert_eq!((one.stored(), one.uniform_rows()), (other.stored(), &[29][..]));
        assert_eq!(other.stored().values().as_ptr(), counts.values().as_ptr());
        let x = Mat::from_fn(30, 5, |i, j| ((i * 5 + j) as f64).sin());
        let (mut a, mut b) = (Mat::default(), Mat::default());
        one.apply_transpose(&x, &mut a);
        other.apply_transpose(&x, &mut b);
        assert_eq!(a, b);
        // With weights, the same as when x is weighed beforehand.
        let w: Vec<f64> = (0..30).map(|i| 0.5 + f64::from(i)).collect();
        one.apply_transpose_weighted(&w, &x, &mut a);
        one.apply_transpose(&Mat::from_fn(30, 5, |i, j| w[i] * x[(i, j)]), &mut b);
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() <= 1e-13 * (1.0 + b.abs())));
        // Rows sum to one, the uniform one too.
        one.apply(&Mat::from_fn(30, 1, |_, _| 1.0), &mut a);
        assert!(a.as_slice().iter().all(|sum| (sum - 1.0).abs() < 1e-15));
    }
}
