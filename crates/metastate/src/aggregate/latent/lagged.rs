//! Eigenvalues at another lag from counts alone, seen through the memberships.
//!
//! If X holds, `X^n U = U K^n`: the columns of U span an invariant subspace at every lag. The Galerkin projection of the counted
//! chain on it, `K_n = (U^T D U)^-1 U^T C_n U` with C_n the counts at n lags and D its row sums, corrects for the overlap of
//! soft memberships (`U^T D U` is not diagonal) and gives back `K^n` exactly when `C_n = D X^n`, for any D. It assumes neither
//! reversibility nor that V is right, so it shows what the fit itself made too fast.

use super::Mode;
use super::spectrum::modes;
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat, small, thin};

/// Directions of U that the counts hardly see are left out below this share of the largest.
const UNSEEN: f64 = 1e-12;

/// The eigenvalues of `K_n`, largest modulus first; at most `s` of them. Timescales are in steps of the counts' own lag.
pub fn projected_spectrum(u: &Mat, counts: &Csr) -> Result<Vec<Mode>> {
    let d = u.rows();
    for (what, found) in [("the count matrix (rows)", counts.rows()), ("the count matrix (columns)", counts.cols())] {
        if found != d {
            return Err(Error::SizeMismatch { what, expected: d, found });
        }
    }
    let departures = counts.row_sums();
    let overlap = thin::weighted_gram(u, &departures);
    let moved = through_counts(u, counts);
    let Some((values, vectors)) = small::symmetric_eigen(&overlap) else { return Ok(Vec::new()) };
    let largest = values.last().copied().unwrap_or(0.0);
    if largest <= 0.0 {
        return Err(Error::Empty { what: "the list of transitions at this lag" });
    }
    // With W = vectors / sqrt(values), W^T (U^T C U) W is similar to K_n.
    let seen: Vec<usize> = (0..values.len()).filter(|&k| values[k] > UNSEEN * largest).collect();
    let w = Mat::from_fn(u.cols(), seen.len(), |i, k| vectors[(i, seen[k])] / values[seen[k]].sqrt());
    let (mut right, mut similar) = (Mat::default(), Mat::default());
    thin::product(&moved, &w, &mut right);
    thin::product(&w.transposed(), &right, &mut similar);
    Ok(modes(&similar, 1))
}

/// `U^T C U` in `O(nnz s + d s^2)`.
pub(crate) fn through_counts(u: &Mat, counts: &Csr) -> Mat {
    let (d, s) = (u.rows(), u.cols());
    let sum = |rows: std::ops::Range<usize>| {
        let mut out = Mat::zeros(s, s);
        let mut image = vec![0.0; s];
        for i in rows {
            let (columns, values) = counts.row(i);
            image.fill(0.0);
            for (&j, n) in columns.iter().zip(values) {
                image.iter_mut().zip(u.row(j as usize)).for_each(|(x, u)| *x += n * u);
            }
            for (k, &weight) in u.row(i).iter().enumerate().filter(|(_, w)| **w > 0.0) {
                out.row_mut(k).iter_mut().zip(&image).for_each(|(o, x)| *o += weight * x);
            }
        }
        out
    };
    let add = |a: &mut Mat, b: Mat| a.as_mut_slice().iter_mut().zip(b.as_slice()).for_each(|(a, b)| *a += b);
    let work = 2 * s * (s + counts.nonzeros() / d.max(1));
    thin::sum_blocks(d, work, sum, add).unwrap_or_else(|| Mat::zeros(s, s))
}
