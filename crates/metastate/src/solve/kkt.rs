//! First-order conditions of the factorised problem (the paper's Theorem 4.2): the multiplier mu and the local errors
//! relLE1 and relLE2. All of it comes from the four products that a sweep has computed anyway. With prices of directions the gradient of `||L u_j||` is `L^2 u_j / ||L u_j||`.

use super::problem::{Factors, Problem, ratio};
use crate::linalg::{Mat, thin};

/// A membership below this share of the largest one in its row counts as zero in the estimate of mu: after a projection
/// tiny positives are common, and they say nothing of the multiplier (math: the paper averages over `u_ij != 0`).
pub const SUPPORT: f64 = 1e-9;

/// `Q = P V`, `B = P^T Xi^2 U`, `G = V^T V`, `A = U^T Xi^2 U` at one point.
#[derive(Debug, Clone, Default)]
pub struct Products {
    /// P V (`m x s`).
    pub q: Mat,
    /// P^T Xi^2 U (`n x s`).
    pub b: Mat,
    /// V^T V (`s x s`).
    pub g: Mat,
    /// U^T Xi^2 U (`s x s`).
    pub a: Mat,
}

impl Products {
    /// All four at `x`.
    #[must_use]
    pub fn at(problem: &Problem, x: &Factors) -> Self {
        let mut products = Products::default();
        products.update_v(problem, x);
        products.update_u(problem, x);
        products
    }

    /// Those that depend on V.
    pub fn update_v(&mut self, problem: &Problem, x: &Factors) {
        problem.times_v(&x.v, &mut self.q);
        self.g = thin::gram(&x.v);
    }

    /// Those that depend on U.
    pub fn update_u(&mut self, problem: &Problem, x: &Factors) {
        problem.transposed_times_u(&x.u, &mut self.b);
        self.a = thin::weighted_gram(&x.u, &problem.xi2);
    }
}

/// How far a point is from satisfying the KKT conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LocalErrors {
    /// Relative l1 residual of the condition on U.
    pub rel_le1: f64,
    /// Relative l1 residual of the condition on V.
    pub rel_le2: f64,
}

impl LocalErrors {
    /// The larger of the two.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.rel_le1.max(self.rel_le2)
    }
}

/// mu (one number a row) and the two local errors.
#[must_use]
pub fn multiplier_and_errors(problem: &Problem, x: &Factors, products: &Products) -> (Vec<f64>, LocalErrors) {
    let pull = Pull::at(problem, x, products);
    let (mu, error1, scale1) = on_memberships(problem, x, products, &pull);
    let (error2, scale2) = on_destinations(problem, x, products, &pull, &mu);
    (mu, LocalErrors { rel_le1: relative(error1, scale1), rel_le2: relative(error2, scale2) })
}

/// The gradient of the norms, `on_u_j (U_j - spared)` and its like for V.
struct Pull {
    /// `lambda ||V_j|| / ||U_j||` and its inverse for the other block.
    on_u: Vec<f64>,
    on_v: Vec<f64>,
    /// `Q Q^T U` with the `1 - delta^2` of its price, and its like for V: together what the gradient of the norms lacks of U and V. Nothing without prices.
    spared_u: Option<(Mat, f64)>,
    spared_v: Option<(Mat, f64)>,
}

impl Pull {
    fn at(problem: &Problem, x: &Factors, products: &Products) -> Self {
        let (u_norms, v_norms) = (problem.u_norms(&x.u), problem.v_norms(&x.v, &products.g));
        let (s, lambda) = (x.rank(), problem.lambda);
        let metric = problem.frame.metric.as_deref();
        Pull {
            on_u: (0..s).map(|j| ratio(lambda * v_norms[j], u_norms[j])).collect(),
            on_v: (0..s).map(|j| ratio(lambda * u_norms[j], v_norms[j])).collect(),
            spared_u: metric.map(|m| (m.left.inside(&x.u), m.left.saved())),
            spared_v: metric.map(|m| (m.right.inside(&x.v), m.right.saved())),
        }
    }
}

/// What of an entry is spared.
#[inline]
fn spared(part: &Option<(Mat, f64)>, i: usize, j: usize) -> f64 {
    part.as_ref().map_or(0.0, |(inside, saved)| saved * inside[(i, j)])
}

/// mu, with the error and the scale of the condition on U.
fn on_memberships(problem: &Problem, x: &Factors, products: &Products, pull: &Pull) -> (Vec<f64>, f64, f64) {
    use rayon::prelude::*;
    let (s, on_u) = (x.rank(), &pull.on_u);
    let mut mu = vec![0.0; problem.rows()];
    let parts: Vec<(f64, f64)> = mu
        .par_chunks_mut(thin::BLOCK)
        .enumerate()
        .map(|(block, mu)| {
            let (mut error, mut scale) = (0.0, 0.0);
            let mut gradient = vec![0.0; s];
            for (k, mu) in mu.iter_mut().enumerate() {
                let i = block * thin::BLOCK + k;
                let (u, q) = (x.u.row(i), products.q.row(i));
                // (grad g(X) V)_i = Xi_i^2 (G u_i - q_i).
                thin::row_times(u, &products.g, &mut gradient);
                let floor = SUPPORT * u.iter().fold(0.0f64, |m, u| m.max(*u));
                let (mut sum, mut count) = (0.0, 0.0);
                for j in 0..s {
                    gradient[j] = problem.xi2[i] * (gradient[j] - q[j]);
                    if u[j] > floor {
                        sum += on_u[j] * (u[j] - spared(&pull.spared_u, i, j)) + gradient[j];
                        count += 1.0;
                    }
                }
                // A row without memberships asks for mu <= gradient everywhere.
                *mu = if count > 0.0 { sum / count } else { gradient.iter().copied().fold(f64::INFINITY, f64::min) };
                for j in 0..s {
                    let target = on_u[j] * u[j];
                    error += ((*mu - gradient[j] + on_u[j] * spared(&pull.spared_u, i, j)).max(0.0) - target).abs();
                    scale += target;
                }
            }
            (error, scale)
        })
        .collect();
    let (error, scale) = parts.into_iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    (mu, error, scale)
}

/// Error and scale of the condition on V.
fn on_destinations(problem: &Problem, x: &Factors, products: &Products, pull: &Pull, mu: &[f64]) -> (f64, f64) {
    let (s, on_v) = (x.rank(), &pull.on_v);
    // mu^T U, the same for every destination.
    let level = thin::fold_rows(&x.u, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, u)| *s += mu[i] * u));
    let part = |rows: std::ops::Range<usize>| {
        let (mut error, mut scale) = (0.0, 0.0);
        let mut gradient = vec![0.0; s];
        for i in rows {
            let (v, b) = (x.v.row(i), products.b.row(i));
            thin::row_times(v, &products.a, &mut gradient);
            for j in 0..s {
                let target = on_v[j] * v[j];
                let pulled = problem.frame.measure[i] * level[j] - (gradient[j] - b[j]) + on_v[j] * spared(&pull.spared_v, i, j);
                error += (pulled.max(0.0) - target).abs();
                scale += target;
            }
        }
        (error, scale)
    };
    let add = |a: &mut (f64, f64), b: (f64, f64)| {
        a.0 += b.0;
        a.1 += b.1;
    };
    thin::sum_blocks(problem.cols(), 2 * s * s, part, add).unwrap_or((0.0, 1.0))
}

/// The error as it is where there is nothing to compare it with.
fn relative(error: f64, scale: f64) -> f64 {
    if scale > 0.0 { error / scale } else { error }
}
