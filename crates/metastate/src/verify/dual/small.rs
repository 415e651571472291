//! Few states: all singular values of the dual point.

use super::super::rows::{Rows, by_rows, dot};
use super::decompositions::{decompose, singular_values};
use super::{Bound, Point, Ray};
use crate::linalg::Mat;
use crate::verify::BoundProof;

/// Clips W with its whole singular value decomposition, then climbs the dual by accelerated projected gradient steps.
pub(super) fn dense_bound(point: &Point, steps: usize) -> Bound {
    let (rows, xi, lambda) = (point.rows, point.xi, point.lambda);
    let Some(mut w) = clip(&point.dense()) else { return Bound::TRIVIAL };
    let value = |w: &Mat| Ray::dense(rows, xi, lambda, w).best(1.0);
    let (mut best, mut best_value) = (w.clone(), value(&w));
    let smallest = xi.iter().copied().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let step = (smallest / lambda).powi(2);
    let (mut ahead, mut momentum) = (w.clone(), 1.0f64);
    for _ in 0..steps {
        let Some(next) = clip(&ascent_step(rows, xi, lambda, &ahead, step)) else { break };
        let next_value = value(&next);
        let grown = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
        let inertia = (momentum - 1.0) / grown;
        if next_value < best_value {
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
    let norm = norm * (1.0 + 4.0 * f64::EPSILON * w.rows() as f64);
    Bound { value: Ray::dense(rows, xi, lambda, &best).best(norm.max(f64::MIN_POSITIVE)), proof: BoundProof::Dense, norm }
}

/// `W + step * dD/dW`, where `dD/dW = lambda (P + Xi^-2 M_c + c 1^T / d)` is lambda times the X that attains g*.
fn ascent_step(rows: &Rows, xi: &[f64], lambda: f64, w: &Mat, step: f64) -> Mat {
    let d = rows.states();
    by_rows(d, d, |i, out| {
        if xi[i] == 0.0 {
            return;
        }
        let mean = w.row(i).iter().sum::<f64>() / d as f64;
        for j in 0..d {
            out[j] = -lambda * (w[(i, j)] - mean) / (xi[i] * xi[i]) + (1.0 - rows.sums[i]) / d as f64;
        }
        rows.each(i, |j, p| out[j] += p);
        for j in 0..d {
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
