//! Few states: all singular values of the dual point.

use super::super::rows::{Rows, by_rows, dot};
use super::decompositions::{decompose, gram, positive_definite, singular_values};
use super::{Bound, Point, value};
use crate::linalg::Mat;
use crate::verify::BoundProof;

/// Clips W with its whole singular value decomposition, then climbs the dual by accelerated projected gradient steps.
pub(super) fn dense_bound(point: &Point, steps: usize) -> Bound {
    let (rows, weights, lambda) = (point.rows, point.weights, point.lambda);
    let Some(mut w) = clip(&point.dense()) else { return Bound::TRIVIAL };
    let worth = |w: &Mat| value::dense(rows, weights, lambda, w);
    let (mut best, mut best_value) = (w.clone(), worth(&w));
    let smallest = weights.iter().copied().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let step = (smallest / lambda).powi(2);
    let (mut ahead, mut momentum) = (w.clone(), 1.0f64);
    for _ in 0..steps {
        let Some(next) = clip(&ascent_step(rows, weights, lambda, &ahead, step)) else { break };
        let next_value = worth(&next);
        let grown = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
        let inertia = (momentum - 1.0) / grown;
        if next_value.value < best_value.value {
            momentum = 1.0;
            ahead = next.clone();
        } else {
            momentum = grown;
            ahead = by_rows(w.rows(), w.cols(), |i, out| {
                for j in 0..out.len() {
                    out[j] = next[(i, j)] + inertia * (next[(i, j)] - w[(i, j)]);
                }
            });
            (best, best_value) = (next.clone(), next_value);
        }
        w = next;
    }
    // The norm of what is handed out is measured anew, with room for the rounding of the decomposition.
    let Some(norm) = singular_values(&best).map(|s| s.first().copied().unwrap_or(0.0)) else { return Bound::TRIVIAL };
    let norm = norm * (1.0 + 4.0 * f64::EPSILON * point.rows.side() as f64) + point.rounding();
    Bound::at(best_value, BoundProof::Dense, norm)
}

/// The point as the solver clipped it, with all its singular values.
pub(super) fn given_dense_bound(point: &Point) -> Option<Bound> {
    let (left, right) = point.clip_factors()?;
    let w = clipped(&point.dense(), &left, &right);
    let largest = singular_values(&w)?.first().copied().unwrap_or(0.0);
    let norm = largest * (1.0 + 4.0 * f64::EPSILON * point.rows.side() as f64) + point.rounding();
    Some(Bound::at(value::low_rank(point, &left, &right), BoundProof::Dense, norm))
}

/// The point as the solver clipped it, its norm proven by a Cholesky factor of `rho^2 I - W^T W`: that it exists proves
/// `||W||^2 <= rho^2 + (d + 2) eps (d rho^2 + ||W||_F^2)`.
pub(super) fn cholesky_bound(point: &Point) -> Option<Bound> {
    let (left, right) = point.clip_factors()?;
    let w = clipped(&point.dense(), &left, &right);
    let d = point.rows.side();
    let square = gram(&w)?;
    let trace: f64 = (0..square.rows()).map(|i| square[(i, i)]).sum();
    let share = (d as f64 + 2.0) * f64::EPSILON;
    for excess in EXCESSES {
        let rho2 = f64::powi(1.0 + excess, 2);
        if positive_definite(&square, rho2) {
            let rho2 = tightened(&square, 0.1 * excess, excess);
            let norm = (rho2 + share * (d as f64 * rho2 + trace)).sqrt() + point.rounding();
            return Some(Bound::at(value::low_rank(point, &left, &right), BoundProof::Cholesky, norm));
        }
    }
    None
}

/// Norms above 1 by this much are tried, the smallest first.
const EXCESSES: [f64; 10] = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];

/// The test passes at `1 + high`: the smallest rho^2, to a tenth or so, at which it still does.
fn tightened(square: &Mat, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..4 {
        let middle = 0.5 * (low + high);
        if positive_definite(square, (1.0 + middle).powi(2)) { high = middle } else { low = middle }
    }
    (1.0 + high).powi(2)
}

/// `W - L R^T`.
fn clipped(w: &Mat, left: &Mat, right: &Mat) -> Mat {
    by_rows(w.rows(), w.cols(), |i, out| (0..out.len()).for_each(|j| out[j] = w[(i, j)] - dot(left.row(i), right.row(j))))
}

/// `W + step * dD/dW`, where `dD/dW = lambda (P + Xi^-2 M_c + c 1^T / n)` is lambda times the X that attains g*.
fn ascent_step(rows: &Rows, weights: &[f64], lambda: f64, w: &Mat, step: f64) -> Mat {
    let n = rows.cols();
    by_rows(rows.rows(), n, |i, out| {
        if weights[i] == 0.0 {
            return;
        }
        let mean = w.row(i).iter().sum::<f64>() / n as f64;
        for j in 0..n {
            out[j] = -lambda * (w[(i, j)] - mean) / (weights[i] * weights[i]) + (1.0 - rows.sums[i]) / n as f64;
        }
        rows.each(i, |j, p| out[j] += p);
        for j in 0..n {
            out[j] = w[(i, j)] + step * lambda * out[j];
        }
    })
}

/// The nearest matrix of spectral norm at most 1: singular values above 1 become 1.
fn clip(w: &Mat) -> Option<Mat> {
    let (x, values, y) = decompose(w)?;
    let over = values.iter().filter(|s| **s > 1.0).count();
    Some(by_rows(w.rows(), w.cols(), |i, out| {
        out.copy_from_slice(w.row(i));
        let weight: Vec<f64> = (0..over).map(|k| x[(i, k)] * (values[k] - 1.0)).collect();
        for (j, out) in out.iter_mut().enumerate() {
            *out -= dot(&weight, &y.row(j)[..over]);
        }
    }))
}
