//! Prices of directions. `||L u||` with `L = I - (1 - delta) Q Q^T`, Q orthonormal: a direction in the span of Q pays delta of what every other direction pays.
//!
//! `L`, `L^-1` and `L^2` differ in what they do to the span alone: they multiply it by `delta`, `1 / delta` and `delta^2`. So each is as cheap as Q is thin.

use std::sync::Arc;

use super::problem::Factors;
use crate::error::{Error, Result};
use crate::linalg::{Mat, small, thin};

/// How far from orthonormal a basis may be.
const ORTHONORMAL: f64 = 1e-10;

/// One side of the prices.
///
/// ```
/// use metastate::Mat;
/// use metastate::solve::Side;
///
/// // The first coordinate direction costs half.
/// let side = Side::new(Mat::from_vec(2, 1, vec![1.0, 0.0])?, 0.5)?;
/// let x = Mat::from_vec(2, 1, vec![2.0, 3.0])?;
/// assert_eq!(side.times(&x).as_slice(), [1.0, 3.0]);
/// assert!((side.norms_squared(&x)[0] - 10.0).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    basis: Mat,
    delta: f64,
}

impl Side {
    /// Directions in the span of the columns pay the share `delta`. The columns must be orthonormal.
    pub fn new(basis: Mat, delta: f64) -> Result<Self> {
        if !(delta > 0.0 && delta <= 1.0) {
            return Err(Error::Setting {
                name: "the price of a direction",
                value: delta.to_string(),
                allowed: "it must be above 0 and at most 1",
            });
        }
        let gram = thin::gram(&basis);
        let far = |i: usize, j: usize| (gram[(i, j)] - if i == j { 1.0 } else { 0.0 }).abs();
        let worst = (0..gram.rows()).flat_map(|i| (0..gram.cols()).map(move |j| (i, j))).map(|(i, j)| far(i, j)).fold(0.0, f64::max);
        if worst.is_nan() || worst > ORTHONORMAL {
            return Err(Error::Setting {
                name: "a basis of directions",
                value: format!("columns off by {worst:.1e}"),
                allowed: "they must be orthonormal",
            });
        }
        Ok(Side { basis, delta })
    }

    /// Q.
    #[must_use]
    pub fn basis(&self) -> &Mat {
        &self.basis
    }

    /// delta.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// How far Q is from orthonormal, `||Q^T Q - I||_F`.
    pub(crate) fn defect(&self) -> f64 {
        let gram = thin::gram(&self.basis);
        let far = |i: usize, j: usize| gram[(i, j)] - if i == j { 1.0 } else { 0.0 };
        (0..gram.rows()).map(|i| (0..gram.cols()).map(|j| far(i, j).powi(2)).sum::<f64>()).sum::<f64>().sqrt()
    }

    /// `L x`.
    #[must_use]
    pub fn times(&self, x: &Mat) -> Mat {
        self.with_span_times(x, self.delta)
    }

    /// `L^-1 x`.
    #[must_use]
    pub fn inverse_times(&self, x: &Mat) -> Mat {
        self.with_span_times(x, 1.0 / self.delta)
    }

    /// `Q Q^T x`.
    #[must_use]
    pub fn inside(&self, x: &Mat) -> Mat {
        let mut inside = Mat::default();
        thin::product(&self.basis, &thin::cross_gram(&self.basis, x), &mut inside);
        inside
    }

    /// `||L x_j||^2` of every column: `||x_j||^2 - (1 - delta^2) ||Q^T x_j||^2`.
    #[must_use]
    pub fn norms_squared(&self, x: &Mat) -> Vec<f64> {
        let along = thin::column_norms(&thin::cross_gram(&self.basis, x));
        let saved = self.saved();
        thin::column_norms(x).iter().zip(&along).map(|(n, q)| (n * n - saved * q * q).max(0.0)).collect()
    }

    /// `1 - delta^2`: what of the square of a direction in the span is not paid.
    #[must_use]
    pub fn saved(&self) -> f64 {
        1.0 - self.delta * self.delta
    }

    /// The span multiplied by a number, the rest unchanged.
    fn with_span_times(&self, x: &Mat, factor: f64) -> Mat {
        let inside = self.inside(x);
        let mut out = x.clone();
        thin::for_each_row_mut(&mut out, |i, row| row.iter_mut().zip(inside.row(i)).for_each(|(o, q)| *o += (factor - 1.0) * q));
        out
    }
}

/// Prices of directions of memberships (left) and of destinations (right).
///
/// The example of [`Side`] shows what one side does.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// L.
    pub left: Side,
    /// R.
    pub right: Side,
}

impl Metric {
    /// The directions of these factors, in the coordinates of the problem, pay the share `delta` on both sides.
    pub fn of(x: &Factors, delta: f64) -> Result<Arc<Metric>> {
        let side = |m: &Mat| Side::new(small::orthonormalise(m), delta);
        Ok(Arc::new(Metric { left: side(&x.u)?, right: side(&x.v)? }))
    }
}
