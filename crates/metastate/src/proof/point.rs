//! Dual points: `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda`, known by its products, and the same with singular values clipped,
//! (P4) `W' = W - L diag(e) R^T`. Whatever numbers L, e and R hold, W' is a well-defined matrix; nothing is assumed of them.
//!
//! In a frame with other totals and measures the ones become the measure, `mu c^T`. With prices of directions (P8) what must have norm one is `L^-1 W R^-1`: `apply`, `dense` and the singular
//! vectors are those of that matrix; `times` and `transposed_times` are those of W.

use super::leading::Leading;
use crate::linalg::{Mat, thin};
use crate::solve::Problem;

/// W as an operator.
pub(crate) struct DualPoint<'a> {
    pub problem: &'a Problem<'a>,
    pub a: &'a Mat,
    pub b: &'a Mat,
    pub mu: &'a [f64],
}

/// What is taken off W.
#[derive(Debug, Clone)]
pub(crate) struct Clipped {
    pub left: Mat,
    pub right: Mat,
    pub excess: Vec<f64>,
}

impl Clipped {
    /// `L diag(e)` and R, the columns without excess left out.
    pub fn scaled(&self) -> (Mat, Mat) {
        let over: Vec<usize> = (0..self.excess.len()).filter(|&k| self.excess[k] > 0.0).collect();
        let left = Mat::from_fn(self.left.rows(), over.len(), |i, k| self.left[(i, over[k])] * self.excess[over[k]]);
        (left, self.right.select_columns(&over))
    }
}

impl DualPoint<'_> {
    /// `L^-1 W R^-1 x`.
    pub fn apply(&self, x: &Mat, out: &mut Mat) {
        match self.problem.frame.metric.as_deref() {
            None => self.times(x, out),
            Some(metric) => {
                self.times(&metric.right.inverse_times(x), out);
                *out = metric.left.inverse_times(out);
            }
        }
    }

    /// `R^-1 W^T L^-1 y`.
    pub fn apply_transpose(&self, y: &Mat, out: &mut Mat) {
        match self.problem.frame.metric.as_deref() {
            None => self.transposed_times(y, out),
            Some(metric) => {
                self.transposed_times(&metric.left.inverse_times(y), out);
                *out = metric.right.inverse_times(out);
            }
        }
    }

    /// The spans of A and B, where the largest singular values of a relaxation's point are.
    pub fn leading(&self) -> Option<Leading> {
        match self.problem.frame.metric.as_deref() {
            None => Leading::new(self, self.a, self.b),
            Some(metric) => Leading::new(self, &metric.left.times(self.a), &metric.right.times(self.b)),
        }
    }

    /// Directions of the columns of X behind right singular vectors.
    pub fn behind_right(&self, right: &Mat) -> Mat {
        self.problem.frame.metric.as_deref().map_or_else(|| right.clone(), |m| m.right.inverse_times(right))
    }

    /// `lambda L^-1 W R^-1 = F H^T`, up to signs that do not matter for the spans, where `P = left right^T`.
    pub fn factors(&self, left: &Mat, right: &Mat) -> (Mat, Mat) {
        let problem = self.problem;
        let mu = Mat::from_fn(problem.rows(), 1, |i, _| self.mu[i]);
        let measure = Mat::from_fn(problem.cols(), 1, |j, _| problem.frame.measure[j]);
        let weighted = |a: &Mat| Mat::from_fn(a.rows(), a.cols(), |i, j| problem.xi2[i] * a[(i, j)]);
        let (f, h) = (beside(&[&mu, &weighted(self.a), &weighted(left)]), beside(&[&measure, self.b, right]));
        match problem.frame.metric.as_deref() {
            None => (f, h),
            Some(metric) => (metric.left.inverse_times(&f), metric.right.inverse_times(&h)),
        }
    }

    /// `W x`.
    pub fn times(&self, x: &Mat, out: &mut Mat) {
        let problem = self.problem;
        problem.p.apply(x, out);
        let sums = problem.frame.measured(x);
        let inner = thin::cross_gram(self.b, x);
        let scale = 1.0 / problem.lambda;
        thin::with_product(self.a, &inner, out, |i, row, low| {
            let w = problem.xi2[i];
            for (j, o) in row.iter_mut().enumerate() {
                *o = scale * (self.mu[i] * sums[j] + w * (*o - low[j]));
            }
        });
    }

    /// `W^T y`.
    pub fn transposed_times(&self, y: &Mat, out: &mut Mat) {
        let problem = self.problem;
        problem.p.apply_transpose_weighted(&problem.xi2, y, out);
        let level = thin::fold_rows(y, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, y)| *s += self.mu[i] * y));
        let inner = thin::weighted_cross_gram(self.a, &problem.xi2, y);
        let scale = 1.0 / problem.lambda;
        thin::with_product(self.b, &inner, out, |i, row, low| {
            for (j, o) in row.iter_mut().enumerate() {
                *o = scale * (problem.frame.measure[i] * level[j] + *o - low[j]);
            }
        });
    }

    /// All of `L^-1 W R^-1`, for proofs at a few thousand states.
    pub fn dense(&self) -> Mat {
        let n = self.problem.cols();
        let mut w = Mat::zeros(self.problem.rows(), n);
        let bt = self.b.transposed();
        thin::product(self.a, &bt, &mut w);
        thin::for_each_row_mut(&mut w, |i, row| {
            let (xi2, measure) = (self.problem.xi2[i], &self.problem.frame.measure);
            row.iter_mut().for_each(|x| *x = -*x);
            self.problem.p.row(i).for_each(n, |j, p| row[j] += p);
            row.iter_mut().zip(measure).for_each(|(x, c)| *x = (self.mu[i] * c + xi2 * *x) / self.problem.lambda);
        });
        match self.problem.frame.metric.as_deref() {
            None => w,
            Some(metric) => metric.right.inverse_times(&metric.left.inverse_times(&w).transposed()).transposed(),
        }
    }

    /// `S >= || |mu| |1|^T + Xi^2 |A| |B|^T + Xi^2 P ||_F / lambda`: no product with W, and no entry of it, is wrong by more than a few
    /// units in the last place of what goes into it, so S bounds the rounding of all of them together.
    pub fn size(&self) -> f64 {
        let problem = self.problem;
        let ones = problem.frame.squares().1.sqrt();
        let all_b = thin::inner(self.b, self.b).sqrt();
        let rows = thin::sum_over_rows(problem.rows(), 4 * self.a.cols(), |i| {
            let a = thin::dot(self.a.row(i), self.a.row(i)).sqrt();
            (self.mu[i].abs() * ones + problem.xi2[i] * a * all_b).powi(2)
        });
        // Rows of a stochastic matrix have length one at most.
        let data = match problem.frame.is_plain() {
            true => problem.xi2.iter().map(|w| w * w).sum::<f64>().sqrt(),
            false => problem.weights.iter().fold(0.0f64, |most, w| most.max(*w)) * problem.data_norm2.sqrt(),
        };
        // L^-1 and R^-1 make numbers larger by 1 / delta at most, and sum over their bases.
        let prices = problem.frame.metric.as_deref().map_or(1.0, |m| {
            let side = |s: &crate::solve::Side| (1.0 + s.basis().cols() as f64) / s.delta();
            side(&m.left) * side(&m.right)
        });
        prices * (rows.sqrt() + data) / problem.lambda
    }
}

/// Matrices side by side.
pub(crate) fn beside(parts: &[&Mat]) -> Mat {
    let rows = parts.first().map_or(0, |p| p.rows());
    let cols = parts.iter().map(|p| p.cols()).sum();
    let mut out = Mat::zeros(rows, cols);
    thin::for_each_row_mut(&mut out, |i, row| {
        let mut at = 0;
        for part in parts {
            row[at..at + part.cols()].copy_from_slice(part.row(i));
            at += part.cols();
        }
    });
    out
}
