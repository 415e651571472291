//! (P2) The value of a dual point. For stochastic X, W with `||W||_2 <= 1`, and any vector nu,
//!
//! `f(X) >= g(X) + lambda <W, X> + sum_i nu_i (1 - sum_j x_ij)
//!       >= sum_i nu_i + sum_ij min_{x >= 0} [ 1/2 Xi_i^2 (p_ij - x)^2 + (lambda w_ij - nu_i) x ]
//!        = sum_i nu_i + 1/2 ||Xi P||_F^2 - 1/2 sum_ij Xi_i^2 [t_ij]_+^2  =: D(W, nu)`,
//!
//! with `t_ij = p_ij - (lambda w_ij - nu_i) / Xi_i^2`. For `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda - L diag(e) R^T` the data drop
//! out of T: `t_i = a_i B^T + (lambda l_i diag(e) R^T + (nu_i - mu_i) 1^T) / Xi_i^2`, a low-rank matrix. The best nu makes the rows of
//! `[T]_+` sum to one; any other is valid too. Taking the positive part is what the constraint `X >= 0` is worth: it is the freedom to
//! add any `N >= 0` to W. Beyond [`POSITIVE_STATES`] it is not taken, T need not be formed, and the value is a little lower:
//! `[t]_+^2 <= t^2`.
//!
//! In a frame with totals t and measure c, `X c = t`: then `t_ij = ... + nu_i c_j`, and the rows of `[T]_+` have `sum_j c_j [t_ij]_+ = totals_i`. With prices, what is clipped off `L^-1 W R^-1`
//! comes off W as `L (left diag(e) right^T) R`.

use super::point::{Clipped, DualPoint, beside};
use crate::linalg::{Mat, simplex, thin};

/// Up to this number of rows and of columns all entries of T are looked at, a row at a time.
const POSITIVE_STATES: usize = 20_000;

/// Rows of T that are formed at once.
const ROWS_AT_ONCE: usize = 32;

/// What a row adds to the value, and to the size of the numbers that went into it.
#[derive(Clone, Copy, Default)]
struct Share {
    value: f64,
    size: f64,
}

/// D without the positive part, as computed: to steer by.
pub(crate) fn estimate(w: &DualPoint, clipped: &Clipped) -> f64 {
    let (f, h) = factors_of_t(w, clipped);
    by_grams(w, &f, &h).value + 0.5 * w.problem.data_norm2
}

/// `T = F H^T`, but for the shift nu.
fn factors_of_t(w: &DualPoint, clipped: &Clipped) -> (Mat, Mat) {
    let problem = w.problem;
    let (left, right) = clipped.scaled();
    let (left, right) = match problem.frame.metric.as_deref() {
        None => (left, right),
        Some(metric) => (metric.left.times(&left), metric.right.times(&right)),
    };
    let scaled = Mat::from_fn(left.rows(), left.cols(), |i, k| problem.lambda * left[(i, k)] / problem.xi2[i]);
    (beside(&[w.a, &scaled]), beside(&[w.b, &right]))
}

/// D, rounded down: no rounding error of its computation can have raised it above the exact value.
pub(super) fn lower(w: &DualPoint, clipped: &Clipped) -> f64 {
    let problem = w.problem;
    let (f, h) = factors_of_t(w, clipped);
    let total = if problem.larger_side() <= POSITIVE_STATES { by_rows(w, &f, &h) } else { by_grams(w, &f, &h) };
    let value = total.value + 0.5 * problem.data_norm2;
    let size = total.size + 0.5 * problem.data_norm2;
    // Every term is a sum of at most 2 d + k products, d the larger side, whatever the order of summation: gamma_n <= n eps with eps = 2 u, twice what
    // is needed (Higham 2002, section 3.1).
    let prices = problem.frame.metric.as_deref().map_or(0, |m| m.left.basis().cols() + m.right.basis().cols());
    let terms = 2 * problem.larger_side() + f.cols() + 64 + prices;
    value - terms as f64 * f64::EPSILON * size
}

/// Adds up `nu_i - 1/2 Xi_i^2 ||[t_i]_+||^2`, rows of T formed in blocks.
fn by_rows(w: &DualPoint, f: &Mat, h: &Mat) -> Share {
    let problem = w.problem;
    let (m, n, k) = (problem.rows(), problem.cols(), f.cols());
    let frame = &problem.frame;
    let ones = frame.squares().1.sqrt();
    let ht = h.transposed();
    let length_of_h = thin::inner(h, h).sqrt();
    let part = |rows: std::ops::Range<usize>| {
        let mut sum = Share::default();
        let mut at = rows.start;
        while at < rows.end {
            let end = rows.end.min(at + ROWS_AT_ONCE);
            let some = Mat::from_fn(end - at, k, |i, j| f[(at + i, j)]);
            let mut t = Mat::default();
            thin::product(&some, &ht, &mut t);
            for i in at..end {
                let length_of_f = thin::dot(f.row(i), f.row(i)).sqrt();
                let row = t.row(i - at);
                let before = thin::dot(row, row).sqrt();
                let (tau, square): (f64, f64) = if frame.is_plain() {
                    let tau = simplex::threshold(row, f64::INFINITY);
                    (tau, row.iter().map(|t| (t - tau).max(0.0)).map(|t| t * t).sum())
                } else {
                    let tau = simplex::threshold_weighted(row, &frame.measure, frame.totals[i], f64::INFINITY);
                    (tau, row.iter().zip(&frame.measure).map(|(t, c)| (t - tau * c).max(0.0)).map(|t| t * t).sum())
                };
                let xi2 = problem.xi2[i];
                let nu = w.mu[i] - xi2 * tau;
                sum.value += nu * frame.totals[i] - 0.5 * xi2 * square;
                // Rounding in t_ij is a share of |f_i| |h_j| + |tau|, and enters as Xi_i^2 t dt.
                let inexact = length_of_f * length_of_h + tau.abs() * ones;
                sum.size += (nu.abs() + w.mu[i].abs()) * frame.totals[i] + xi2 * (0.5 * square + (before + inexact) * inexact);
            }
            at = end;
        }
        sum
    };
    thin::sum_blocks(m, 2 * n * k, part, |a, b| {
        a.value += b.value;
        a.size += b.size;
    })
    .unwrap_or_default()
}

/// The same without the positive part: `t_i = (f_i + shift) H^T` with the shift that makes the row sum one, and all squares from the
/// Gram matrix of H.
fn by_grams(w: &DualPoint, f: &Mat, h: &Mat) -> Share {
    let problem = w.problem;
    let (m, frame) = (problem.rows(), &problem.frame);
    let n = frame.squares().1;
    let gram = thin::gram(h);
    let sums = frame.measured(h);
    let length_of_h = thin::inner(h, h).sqrt();
    let part = |rows: std::ops::Range<usize>| {
        let mut total = Share::default();
        let mut image = vec![0.0; f.cols()];
        for i in rows {
            let fi = f.row(i);
            let sum = thin::dot(fi, &sums);
            let tau = (sum - frame.totals[i]) / n;
            thin::row_times(fi, &gram, &mut image);
            let square = thin::dot(&image, fi) - 2.0 * tau * sum + tau * tau * n;
            let xi2 = problem.xi2[i];
            let nu = w.mu[i] - xi2 * tau;
            total.value += nu * frame.totals[i] - 0.5 * xi2 * square;
            let inexact = thin::dot(fi, fi).sqrt() * length_of_h + tau.abs() * n.sqrt();
            total.size += (nu.abs() + w.mu[i].abs()) * frame.totals[i] + xi2 * inexact * inexact;
        }
        total
    };
    thin::sum_blocks(m, 2 * f.cols() * f.cols(), part, |a, b| {
        a.value += b.value;
        a.size += b.size;
    })
    .unwrap_or_default()
}
