//! A chain whose states act alike within each part: `U` is the indicator of the parts, `V_j` the mean row of part j.

use super::Training;
use crate::aggregate::clusters::Partition;
use crate::linalg::thin::scale_rows;
use crate::linalg::{Mat, thin};
use crate::solve::Factors;

/// The model of a partition.
pub fn model(training: &Training, partition: &Partition) -> Factors {
    let u = Mat::from_fn(training.rows(), partition.clusters(), |i, j| f64::from(u8::from(partition.labels[i] as usize == j)));
    let v = destinations(training, &u);
    Factors { u, v }
}

/// `V_j` proportional to `sum_i u_ij n_i p_i`: where the states of meta-state j went. The marginal law where none of them was left.
pub fn destinations(training: &Training, u: &Mat) -> Mat {
    let mut weighted = u.clone();
    scale_rows(&mut weighted, training.departures());
    let mut v = Mat::default();
    training.p().apply_transpose(&weighted, &mut v);
    let sums = thin::column_sums(&v);
    let marginal = training.observed().marginal();
    thin::for_each_row_mut(&mut v, |i, row| {
        row.iter_mut().zip(&sums).for_each(|(x, sum)| *x = if *sum > 0.0 { *x / sum } else { marginal[i] });
    });
    v
}
