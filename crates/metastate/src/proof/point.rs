//! Dual points: `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda`, known by its products, and the same with singular values clipped,
//! (P4) `W' = W - L diag(e) R^T`. Whatever numbers L, e and R hold, W' is a well-defined matrix; nothing is assumed of them.

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
    /// `W x`.
    pub fn apply(&self, x: &Mat, out: &mut Mat) {
        let problem = self.problem;
        problem.p.apply(x, out);
        let sums = thin::column_sums(x);
        let inner = thin::cross_gram(self.b, x);
        let mut low = Mat::default();
        thin::product(self.a, &inner, &mut low);
        let scale = 1.0 / problem.lambda;
        thin::for_each_row_mut(out, |i, row| {
            let w = problem.xi2[i];
            for (j, o) in row.iter_mut().enumerate() {
                *o = scale * (self.mu[i] * sums[j] + w * (*o - low[(i, j)]));
            }
        });
    }

    /// `W^T y`.
    pub fn apply_transpose(&self, y: &Mat, out: &mut Mat) {
        let problem = self.problem;
        let mut weighted = y.clone();
        thin::for_each_row_mut(&mut weighted, |i, row| row.iter_mut().for_each(|x| *x *= problem.xi2[i]));
        problem.p.apply_transpose(&weighted, out);
        let level = thin::fold_rows(y, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, y)| *s += self.mu[i] * y));
        let inner = thin::cross_gram(self.a, &weighted);
        let mut low = Mat::default();
        thin::product(self.b, &inner, &mut low);
        let scale = 1.0 / problem.lambda;
        thin::for_each_row_mut(out, |i, row| {
            for (j, o) in row.iter_mut().enumerate() {
                *o = scale * (level[j] + *o - low[(i, j)]);
            }
        });
    }

    /// All of W, for proofs at a few thousand states.
    pub fn dense(&self) -> Mat {
        let n = self.problem.cols();
        let mut w = Mat::zeros(self.problem.rows(), n);
        let bt = self.b.transposed();
        thin::product(self.a, &bt, &mut w);
        thin::for_each_row_mut(&mut w, |i, row| {
            let xi2 = self.problem.xi2[i];
            row.iter_mut().for_each(|x| *x = -*x);
            self.problem.p.row(i).for_each(n, |j, p| row[j] += p);
            row.iter_mut().for_each(|x| *x = (self.mu[i] + xi2 * *x) / self.problem.lambda);
        });
        w
    }

    /// `S >= || |mu| |1|^T + Xi^2 |A| |B|^T + Xi^2 P ||_F / lambda`: no product with W, and no entry of it, is wrong by more than a few
    /// units in the last place of what goes into it, so S bounds the rounding of all of them together.
    pub fn size(&self) -> f64 {
        let problem = self.problem;
        let n = problem.cols() as f64;
        let all_b = thin::inner(self.b, self.b).sqrt();
        let rows = thin::sum_over_rows(problem.rows(), 4 * self.a.cols(), |i| {
            let a = thin::dot(self.a.row(i), self.a.row(i)).sqrt();
            (self.mu[i].abs() * n.sqrt() + problem.xi2[i] * a * all_b).powi(2)
        });
        // Rows of a stochastic matrix have length one at most.
        let data = problem.xi2.iter().map(|w| w * w).sum::<f64>().sqrt();
        (rows.sqrt() + data) / problem.lambda
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
