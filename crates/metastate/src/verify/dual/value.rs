//! The value of a dual point, by rows. For stochastic X, `||W||_2 <= 1` and any nu,
//! `f(X) >= sum_i nu_i + sum_ij min_{x >= 0} [Xi_i^2/2 (p_ij - x)^2 + (lambda w_ij - nu_i) x]`, and the minimum of an entry is
//! `Xi_i^2/2 (p_ij^2 - [t_ij]_+^2)` with `t_ij = p_ij - (lambda w_ij - nu_i) / Xi_i^2`. The best nu makes a row of `[t]_+` sum to one.
//!
//! Where W is divided by its proven norm n > 1, the value is divided too: it is concave in W, and not negative at W = 0.

use super::super::rows::{Rows, column_sums, cross, dot, product, sum};
use super::Point;
use crate::linalg::Mat;

/// Up to this number of states every entry of t is looked at; beyond, `[t]_+^2 <= t^2` is taken.
const POSITIVE_STATES: usize = 20_000;

/// A value that rounding cannot have raised, and what was taken off for that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth {
    pub value: f64,
    pub rounding: f64,
}

/// The value at `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda - L R^T`, L and R given (excess in L), rounded down.
pub(super) fn low_rank(point: &Point, left: &Mat, right: &Mat) -> Worth {
    let parts: Vec<(f64, f64)> = if point.rows.side() <= POSITIVE_STATES {
        use rayon::prelude::*;
        let length_b = dot(point.b.as_slice(), point.b.as_slice()).sqrt();
        let length_r = dot(right.as_slice(), right.as_slice()).sqrt();
        (0..point.rows.rows())
            .into_par_iter()
            .map(|i| {
                let w = point.weights[i] * point.weights[i];
                if w == 0.0 {
                    return (0.0, 0.0);
                }
                let scale = point.lambda / w;
                let t: Vec<f64> =
                    (0..point.rows.cols()).map(|j| dot(point.a.row(i), point.b.row(j)) + scale * dot(left.row(i), right.row(j))).collect();
                let size = dot(point.a.row(i), point.a.row(i)).sqrt() * length_b + scale * dot(left.row(i), left.row(i)).sqrt() * length_r;
                share(&t, w, point.mu[i], size)
            })
            .collect()
    } else {
        without_sign(point, left, right)
    };
    total(point.rows, point.weights, &parts, point.a.cols() + left.cols())
}

/// The value at a W that is given entry by entry.
pub(super) fn dense(rows: &Rows, weights: &[f64], lambda: f64, w: &Mat) -> Worth {
    use rayon::prelude::*;
    let parts: Vec<(f64, f64)> = (0..rows.rows())
        .into_par_iter()
        .map(|i| {
            let weight = weights[i] * weights[i];
            if weight == 0.0 {
                return (0.0, 0.0);
            }
            let mut t: Vec<f64> = w.row(i).iter().map(|w| -lambda * w / weight).collect();
            let size = dot(&t, &t).sqrt() + rows.norms2[i].sqrt();
            rows.each(i, |j, p| t[j] += p);
            share(&t, weight, 0.0, size)
        })
        .collect();
    total(rows, weights, &parts, 0)
}

/// `nu - w/2 ||[t - tau]_+||^2` with `nu = mu - w tau`, and the size of what went into it.
fn share(t: &[f64], w: f64, mu: f64, size: f64) -> (f64, f64) {
    let tau = level(t);
    let square: f64 = t.iter().map(|t| (t - tau).max(0.0).powi(2)).sum();
    let nu = mu - w * tau;
    let inexact = size + tau.abs() * (t.len() as f64).sqrt();
    (nu - 0.5 * w * square, nu.abs() + mu.abs() + w * (square + inexact * inexact))
}

/// The tau with `sum_j [t_j - tau]_+ = 1`, from the sorted entries.
pub(in crate::verify) fn level(t: &[f64]) -> f64 {
    let mut sorted = t.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut tau) = (0.0, f64::NEG_INFINITY);
    for (k, x) in sorted.iter().enumerate() {
        sum += x;
        let candidate = (sum - 1.0) / (k + 1) as f64;
        if candidate >= *x {
            break;
        }
        tau = candidate;
    }
    tau
}

/// The same for all rows at once without the positive part.
fn without_sign(point: &Point, left: &Mat, right: &Mat) -> Vec<(f64, f64)> {
    let d = point.rows.cols() as f64;
    let (bb, br, rr) = (cross(point.b, point.b, None), cross(point.b, right, None), cross(right, right, None));
    let (sum_b, sum_r) = (column_sums(point.b, None), column_sums(right, None));
    let (abb, abr, lrr) = (product(point.a, &bb), product(point.a, &br), product(left, &rr));
    let (length_b, length_r) =
        ((0..bb.rows()).map(|k| bb[(k, k)]).sum::<f64>().sqrt(), (0..rr.rows()).map(|k| rr[(k, k)]).sum::<f64>().sqrt());
    let one = |i: usize| {
        let w = point.weights[i] * point.weights[i];
        if w == 0.0 {
            return (0.0, 0.0);
        }
        let (a, l, scale) = (point.a.row(i), left.row(i), point.lambda / w);
        let square = dot(abb.row(i), a) + 2.0 * scale * dot(abr.row(i), l) + scale * scale * dot(lrr.row(i), l);
        let row_sum = dot(a, &sum_b) + scale * dot(l, &sum_r);
        let tau = (row_sum - 1.0) / d;
        let square = square - 2.0 * tau * row_sum + tau * tau * d;
        let nu = point.mu[i] - w * tau;
        let inexact = dot(a, a).sqrt() * length_b + scale * dot(l, l).sqrt() * length_r + tau.abs() * d.sqrt();
        (nu - 0.5 * w * square, nu.abs() + point.mu[i].abs() + w * inexact * inexact)
    };
    (0..point.rows.rows()).map(one).collect()
}

/// All rows and `1/2 ||Xi P||^2`, less what rounding may have added.
fn total(rows: &Rows, weights: &[f64], parts: &[(f64, f64)], columns: usize) -> Worth {
    let half = 0.5 * rows.norm2(weights);
    let value = half + sum(parts.len(), |i| parts[i].0);
    let size = half + sum(parts.len(), |i| parts[i].1);
    let rounding = (2 * rows.side() + columns + 64) as f64 * f64::EPSILON * size;
    Worth { value: value - rounding, rounding }
}
