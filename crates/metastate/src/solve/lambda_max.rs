//! `lambda_max`: the smallest lambda at which one meta-state is optimal. Raw lambdas are around 1e-6 to 1e-10 and scale as
//! about `1/d^2`; shares of lambda_max are numbers that people can use.

use super::grow;
use super::problem::{Factors, Problem};
use crate::error::Result;
use crate::linalg::simplex::project;
use crate::linalg::{Mat, Operator, thin};
use crate::proof::point::{DualPoint, beside};

/// Random directions, and single states, that the first search starts from.
const STARTS: usize = 6;
/// Directions that are followed after the first round.
const FOLLOWED: usize = 6;
/// Ascent steps a round.
const STEPS: usize = 12;
/// Ascent steps of a thorough search, at most, ...
const THOROUGH_STEPS: usize = 400;
/// ... and operations that it may take.
const THOROUGH_WORK: usize = 20_000_000_000;
/// A pair that exceeds lambda by this share pays: well above rounding.
const DETECTED: f64 = 1e-9;
/// Up to this number of states the answer is bracketed.
const BRACKETED_STATES: usize = 600;
/// Where the climb begins, as a share of `sum xi^2`: where all rows are alike every lambda is large enough, and this one is told.
const SMALLEST: f64 = 1e-12;
/// Rounds of the fixed point, at most.
const ROUNDS: usize = 100;
/// Relative precision of the answer.
const PRECISION: f64 = 1e-4;

/// The solution of rank one at lambda: `U = 1`, and V the minimiser of `c/2 ||v - p||^2 + lambda sqrt(d) ||v||` on the simplex,
/// `c = sum xi^2`, p the weighted mean row. It is the projection of a shrunken p: `v = proj(alpha p)` with
/// `alpha (c + lambda sqrt(d) / ||v||) = c`, found by bisection.
pub fn rank_one(problem: &Problem) -> Factors {
    let d = problem.states();
    let ones = Mat::from_fn(d, 1, |_, _| 1.0);
    let (mut scratch, mut b) = (Mat::default(), Mat::default());
    problem.transposed_times_u(&ones, &mut scratch, &mut b);
    let c: f64 = problem.xi2.iter().sum();
    let at = |alpha: f64| {
        let mut v: Vec<f64> = b.as_slice().iter().map(|b| alpha * b / c).collect();
        project(&mut v, &mut f64::INFINITY.clone());
        v
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let alpha = 0.5 * (low + high);
        let v = at(alpha);
        let norm = thin::dot(&v, &v).sqrt();
        if alpha * (c + problem.lambda * (d as f64).sqrt() / norm) < c { low = alpha } else { high = alpha }
    }
    let v = at(0.5 * (low + high));
    Factors { u: ones, v: Mat::from_fn(d, 1, |i, _| v[i]) }
}

/// Smallest lambda at which no pair of nonnegative directions improves on one meta-state, as projected ascent finds it.
///
/// `m(lambda) = max u^T (mu 1^T - grad g) v` at the rank-one solution is at least lambda (the solution's own pair reaches it) and
/// exceeds it exactly when a second column pays. So `lambda <- m(lambda)` climbs towards the answer. Where m touches lambda instead of crossing
/// it, the climb slows down before it is there: the rest of the way is bracketed, with a thorough search at every step.
pub fn lambda_max(p: &dyn Operator, weights: &[f64], seed: u64) -> Result<f64> {
    // Far below every lambda that matters, and far above numbers whose squares vanish.
    let mut low = SMALLEST * weights.iter().map(|w| w * w).sum::<f64>();
    let mut followed: Option<Mat> = None;
    for _ in 0..ROUNDS {
        let (best, starts) = best_pair(&Problem::new(p, weights, low)?, followed.take(), seed);
        if best <= low * (1.0 + PRECISION) {
            break;
        }
        (low, followed) = (best, Some(starts));
    }
    let thorough = |lambda: f64| -> Result<f64> { Ok(best_pair(&Problem::new(p, weights, lambda)?, None, seed.wrapping_add(1)).0) };
    // With many states one thorough search has to do.
    if weights.len() > BRACKETED_STATES {
        let best = thorough(low)?;
        return Ok(low.max(best));
    }
    let pays = |lambda: f64| -> Result<bool> { Ok(thorough(lambda)? > lambda * (1.0 + DETECTED)) };
    let (mut high, mut step) = (low, PRECISION);
    while pays(high)? && step < 1e9 {
        low = high;
        high *= 1.0 + step;
        step *= 2.0;
    }
    while high > low * (1.0 + PRECISION) {
        let middle = (low * high).sqrt();
        if pays(middle)? { low = middle } else { high = middle }
    }
    Ok(high)
}

/// `max u^T (mu 1^T - grad g) v` at the rank-one solution, from the directions given or else from everywhere, and the best directions.
fn best_pair(problem: &Problem, followed: Option<Mat>, seed: u64) -> (f64, Mat) {
    let (d, lambda) = (problem.states(), problem.lambda);
    let x = rank_one(problem);
    // mu_i = xi_i^2 (v.v - p_i.v) + lambda ||v|| / sqrt(d), from the first KKT condition with u_i = 1.
    let mut q = Mat::default();
    problem.times_v(&x.v, &mut q);
    let norm2 = thin::dot(x.v.as_slice(), x.v.as_slice());
    let level = lambda * (norm2 / d as f64).sqrt();
    let mu: Vec<f64> = (0..d).map(|i| problem.xi2[i] * (norm2 - q[(i, 0)]) + level).collect();
    let w = DualPoint { problem, a: &x.u, b: &x.v, mu: &mu };
    let thorough = followed.is_none();
    let first = followed.unwrap_or_else(|| grow::thorough_starts(&w, STARTS, seed));
    let from = beside(&[&x.v, &first]);
    let steps =
        if thorough { (THOROUGH_WORK / (8 * (problem.p.nonzeros() + 4 * d) * from.cols())).clamp(STEPS, THOROUGH_STEPS) } else { STEPS };
    let (_, v, values) = grow::alternate(&w, from, steps);
    let best = lambda * values.iter().copied().fold(0.0, f64::max);
    // Go on from the best directions; the solution's own column comes in again anyway.
    let mut order: Vec<usize> = (1..v.cols()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    order.truncate(FOLLOWED);
    (best, v.select_columns(&order))
}
