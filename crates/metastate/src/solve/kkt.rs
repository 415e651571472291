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
pub struct LocalErrors {
    /// Relative l1 residual of the condition on U.
    pub rel_le1: f64,
    /// Relative l1 residual of the condition on V.
    pub rel_le2: f64,
}

impl LocalErrors {
    /// The larger of the two.
    pub fn worst(&self) -> f64 {
        self.rel_le1.max(self.rel_le2)
    }
}

/// mu (one number a row) and the two local errors.
pub fn multiplier_and_errors(problem: &Problem, x: &Factors, products: &Products) -> (Vec<f64>, LocalErrors) {
    let s = x.rank();
    let (u_norms, v_norms) = (problem.u_norms(&x.u), problem.v_norms(&x.v, &products.g));
    let lambda = problem.lambda;
    // lambda ||V_j|| / ||U_j|| and its inverse for the other block.
    let on_u: Vec<f64> = (0..s).map(|j| ratio(lambda * v_norms[j], u_norms[j])).collect();
    let on_v: Vec<f64> = (0..s).map(|j| ratio(lambda * u_norms[j], v_norms[j])).collect();

    // (1 - delta^2) Q Q^T U and its like for V: what the gradient of the norms lacks of U and V. Nothing without prices.
    let metric = problem.frame.metric.as_deref();
    let spared = metric.map(|m| (m.left.inside(&x.u), m.right.inside(&x.v), m.left.saved(), m.right.saved()));
    let spared_u = |i: usize, j: usize| spared.as_ref().map_or(0.0, |(u, _, saved, _)| saved * u[(i, j)]);
    let spared_v = |i: usize, j: usize| spared.as_ref().map_or(0.0, |(_, v, _, saved)| saved * v[(i, j)]);

    let mut mu = vec![0.0; problem.rows()];
    let (mut error1, mut scale1) = (0.0, 0.0);
    {
        use rayon::prelude::*;
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
                            sum += on_u[j] * (u[j] - spared_u(i, j)) + gradient[j];
                            count += 1.0;
                        }
                    }
                    // A row without memberships asks for mu <= gradient everywhere.
                    *mu = if count > 0.0 { sum / count } else { gradient.iter().copied().fold(f64::INFINITY, f64::min) };
                    for j in 0..s {
                        let target = on_u[j] * u[j];
                        error += ((*mu - gradient[j] + on_u[j] * spared_u(i, j)).max(0.0) - target).abs();
                        scale += target;
                    }
                }
                (error, scale)
            })
            .collect();
        for (error, scale) in parts {
            error1 += error;
            scale1 += scale;
        }
    }

    // mu^T U, the same for every destination of the second condition.
    let level = thin::fold_rows(&x.u, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, u)| *s += mu[i] * u));
    let part = |rows: std::ops::Range<usize>| {
        let (mut error, mut scale) = (0.0, 0.0);
        let mut gradient = vec![0.0; s];
        for i in rows {
            let (v, b) = (x.v.row(i), products.b.row(i));
            thin::row_times(v, &products.a, &mut gradient);
            for j in 0..s {
                let target = on_v[j] * v[j];
                error += ((problem.frame.measure[i] * level[j] - (gradient[j] - b[j]) + on_v[j] * spared_v(i, j)).max(0.0) - target).abs();
                scale += target;
            }
        }
        (error, scale)
    };
    let (error2, scale2) = thin::sum_blocks(problem.cols(), 2 * s * s, part, |a, b| {
        a.0 += b.0;
        a.1 += b.1;
    })
    .unwrap_or((0.0, 1.0));
    (mu, LocalErrors { rel_le1: relative(error1, scale1), rel_le2: relative(error2, scale2) })
}

/// The error as it is where there is nothing to compare it with.
fn relative(error: f64, scale: f64) -> f64 {
    if scale > 0.0 { error / scale } else { error }
}
