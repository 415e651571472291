//! The paper's reference: the truncated SVD of Xi P, clustered; and the same as an estimator.

use super::{RivalSettings, Training};
use crate::aggregate::clusters::{KMeans, Partition, kmeans};
use crate::aggregate::weighted::WeightedChain;
use crate::error::Result;
use crate::linalg::singular::{Svd, TruncatedSvd, truncated_svd};
use crate::linalg::{Mat, Operator, thin};
use crate::solve::score::RowModel;

/// The leading triplets of Xi P.
pub(super) fn svd(training: &Training, rank: usize, seed: u64) -> Svd {
    truncated_svd(&WeightedChain { p: training.p(), weights: training.weights() }, &TruncatedSvd::new(rank, seed))
}

/// `Xi^-1` times the left vectors: rows that states with the same behaviour share, whatever their weight.
fn unweighted_left(weights: &[f64], svd: &Svd) -> Mat {
    let inverse: Vec<f64> = weights.iter().map(|w| 1.0 / w).collect();
    let mut left = svd.left.clone();
    thin::scale_rows(&mut left, &inverse);
    left
}

/// k-means on those rows.
pub fn partition(training: &Training, settings: &RivalSettings) -> Result<Partition> {
    svd_partition(training.p(), training.weights(), settings.rank, settings.seed)
}

/// The same for any P and Xi.
pub fn svd_partition(p: &dyn Operator, weights: &[f64], clusters: usize, seed: u64) -> Result<Partition> {
    let rows = unweighted_left(weights, &truncated_svd(&WeightedChain { p, weights }, &TruncatedSvd::new(clusters, seed)));
    let how = KMeans::new(clusters, rows.rows(), rows.cols(), seed);
    Ok(kmeans(&rows, weights, &how)?.partition)
}

/// `X = Xi^-1 L diag(sigma) R^T` with negative entries cut and rows divided by their sums.
#[derive(Debug, Clone, PartialEq)]
pub struct ClippedSvd {
    left: Mat,
    right: Mat,
}

/// The estimator of the leading triplets.
pub fn clipped(training: &Training, settings: &RivalSettings) -> ClippedSvd {
    let svd = svd(training, settings.rank, settings.seed);
    let mut left = unweighted_left(training.weights(), &svd);
    thin::for_each_row_mut(&mut left, |_, row| row.iter_mut().zip(&svd.values).for_each(|(x, s)| *x *= s));
    ClippedSvd { left, right: svd.right }
}

impl RowModel for ClippedSvd {
    fn size(&self) -> (usize, usize) {
        (self.left.rows(), self.right.rows())
    }

    fn row(&self, i: usize, out: &mut [f64]) {
        let x = self.left.row(i);
        let mut sum = 0.0;
        for (j, o) in out.iter_mut().enumerate() {
            *o = thin::dot(x, self.right.row(j)).max(0.0);
            sum += *o;
        }
        // A row that is cut to nothing says nothing: uniform.
        let d = out.len() as f64;
        out.iter_mut().for_each(|o| *o = if sum > 0.0 { *o / sum } else { 1.0 / d });
    }
}
