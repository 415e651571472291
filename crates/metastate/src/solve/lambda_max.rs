//! `lambda_max`: the smallest lambda at which one meta-state is optimal. Raw lambdas are around 1e-6 to 1e-10 and scale as
//! about `1/d^2`; shares of lambda_max are numbers that people can use.

use std::sync::Arc;

use super::grow;
use super::local::{Fast, LocalSolver, project_columns_in};
use super::problem::{Factors, Frame, Problem};
use crate::error::{Error, Result};
use crate::linalg::simplex::{project, project_weighted};
use crate::linalg::{Mat, Operator, thin};
use crate::proof::point::{DualPoint, beside};

/// Random directions, and single states, that the first search starts from.
const STARTS: usize = 6;
/// Directions that are followed after the first round.
const FOLLOWED: usize = 6;
/// Ascent steps a round.
const STEPS: usize = 12;
/// Ascent steps of a search, at most, ...
const MOST_STEPS: usize = 400;
/// ... and operations that one may take; from everywhere four times that.
const WORK: usize = 200_000_000;
/// Times that a thorough search may send the bracket on.
const CONFIRMATIONS: usize = 4;
/// A pair that exceeds lambda by this share pays: well above rounding.
const DETECTED: f64 = 1e-9;
/// With more non-zeros than this a search starts from fewer directions.
const DEAR: usize = 1_000_000;
/// Up to this number of states the answer is bracketed.
const BRACKETED_STATES: usize = 600;
/// Where the climb begins, as a share of `sum_i Xi_i^2`: where all rows are alike every lambda is large enough, and this one is returned.
const SMALLEST: f64 = 1e-9;
/// Rounds of the fixed point, at most.
const ROUNDS: usize = 100;
/// Sweeps for one meta-state with prices, at most.
const PRICED_SWEEPS: usize = 500;
/// Halvings in the search for the shrunken mean row of one meta-state: more digits than a number has.
const HALVINGS: usize = 60;
/// With prices it ends when a sweep lowers F by no more than this share: rounding.
const PRICED_ROUNDING: f64 = 1e-15;
/// A bracket that has not closed when its step is as long as this is given up.
const LONGEST_STEP: f64 = 1e6;
/// Relative precision of the answer.
const PRECISION: f64 = 1e-4;

/// The solution of rank one at lambda: `U = 1`, and V the minimiser of `c/2 ||v - p||^2 + lambda sqrt(m) ||v||` on the simplex,
/// m the number of rows, `c = sum_i Xi_i^2`, p the weighted mean row. It is the projection of a shrunken p: `v = proj(alpha p)` with
/// `alpha (c + lambda sqrt(m) / ||v||) = c`, found by bisection.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Problem, rank_one};
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let x = rank_one(&Problem::new(chain.p(), chain.weights(), 1e-4)?);
/// assert_eq!((x.rank(), x.u[(7, 0)]), (1, 1.0)); // every state belongs to the one meta-state
/// assert!((x.v.column(0).iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn rank_one(problem: &Problem) -> Factors {
    let frame = &problem.frame;
    let ones = Mat::from_fn(problem.rows(), 1, |i, _| frame.totals[i]);
    if frame.metric.is_some() {
        return priced_rank_one(problem, ones);
    }
    let length = frame.squares().0.sqrt();
    let mut b = Mat::default();
    problem.transposed_times_u(&ones, &mut b);
    let c: f64 = problem.xi2.iter().zip(&frame.totals).map(|(w, t)| w * t * t).sum();
    let at = |alpha: f64| {
        let mut v: Vec<f64> = b.as_slice().iter().map(|b| alpha * b / c).collect();
        match frame.is_plain() {
            true => project(&mut v, &mut f64::INFINITY.clone()),
            false => project_weighted(&mut v, &frame.measure, 1.0, &mut f64::INFINITY.clone()),
        }
        v
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let alpha = 0.5 * (low + high);
        let v = at(alpha);
        let norm = thin::dot(&v, &v).sqrt();
        if alpha * (c + problem.lambda * length / norm) < c { low = alpha } else { high = alpha }
    }
    let v = at(0.5 * (low + high));
    Factors { u: ones, v: Mat::from_fn(problem.cols(), 1, |j, _| v[j]) }
}

/// The same with prices of directions: a convex problem in V alone, by sweeps that lower it until nothing is gained.
fn priced_rank_one(problem: &Problem, u: Mat) -> Factors {
    let mut v = Mat::from_fn(problem.cols(), 1, |j, _| problem.frame.measure[j]);
    project_columns_in(&mut v, &problem.frame);
    let mut x = Factors { u, v };
    let mut solver = Fast::new(0);
    let mut value = f64::INFINITY;
    for _ in 0..PRICED_SWEEPS {
        let next = solver.sweep(problem, &mut x).value;
        if value - next <= PRICED_ROUNDING * next {
            break;
        }
        value = next;
    }
    x
}

/// Smallest lambda at which no pair of nonnegative directions improves on one meta-state, as projected ascent finds it.
///
/// `m(lambda) = max u^T (mu 1^T - grad g) v` at the rank-one solution is at least lambda (the solution's own pair reaches it) and
/// exceeds it exactly when a second column pays. So `lambda <- m(lambda)` climbs towards the answer. Where m touches lambda instead of crossing
/// it, the climb slows down: its steps are extrapolated, and with few states the rest of the way is bracketed, with a thorough search at every step.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Problem, Settings, lambda_max, solve};
/// use metastate::Silent;
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let most = lambda_max(chain.p(), chain.weights(), 0)?;
/// let rank = |share: f64| -> metastate::Result<usize> {
///     let problem = Problem::new(chain.p(), chain.weights(), share * most)?;
///     Ok(solve(&problem, &Settings::default(), &mut Silent)?.rank())
/// };
/// assert_eq!(rank(1.1)?, 1); // above it one meta-state is best
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn lambda_max(p: &dyn Operator, weights: &[f64], seed: u64) -> Result<f64> {
    lambda_max_in(p, weights, &Arc::new(Frame::plain(p.rows(), p.cols())), seed)
}

/// The same in other coordinates, every direction at the same price.
///
/// See the example of [`lambda_max`].
pub fn lambda_max_in(p: &dyn Operator, weights: &[f64], frame: &Arc<Frame>, seed: u64) -> Result<f64> {
    lambda_max_watched(p, weights, frame, seed, &mut || true)
}

/// The same; `go_on` is asked before every search and may end it with [`Error::Interrupted`]: there is no lambda_max that is half found.
///
/// See the example of [`lambda_max`].
pub fn lambda_max_watched(
    p: &dyn Operator,
    weights: &[f64],
    frame: &Arc<Frame>,
    seed: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<f64> {
    let mut at = |lambda: f64, from: From| -> Result<(f64, Mat)> {
        if !go_on() {
            return Err(Error::Interrupted);
        }
        Ok(best_pair(&Problem::in_frame(p, weights, lambda, Arc::clone(frame))?, from, seed))
    };
    // Far below every lambda that matters, and far above numbers whose squares vanish.
    let mut low = SMALLEST * weights.iter().zip(&frame.totals).map(|(w, t)| (w * t) * (w * t)).sum::<f64>();
    let dear = p.nonzeros() > DEAR;
    let (mut best, mut starts) = at(low, if dear { From::Random } else { From::Everywhere })?;
    // The step before, and a lambda at which no pair was found that pays.
    let (mut before, mut high) = (None, f64::INFINITY);
    for _ in 0..ROUNDS {
        if best <= low * (1.0 + PRECISION) || high <= best * (1.0 + PRECISION) {
            break;
        }
        let next = further(before, (low, best)).min((best * high).sqrt()).max(best);
        let (found, directions) = at(next, From::These(&starts))?;
        if found > next * (1.0 + DETECTED) {
            before = Some((low, best));
            (low, best, starts) = (next, found, directions);
        } else {
            high = next;
        }
    }
    low = best;
    for _ in 0..CONFIRMATIONS {
        let (best, found) = at(low, if dear { From::Near(&starts) } else { From::Everywhere })?;
        starts = found;
        if best <= low * (1.0 + DETECTED) {
            break;
        }
        low = low.max(best);
        // With many states one thorough search has to do.
        if p.rows().max(p.cols()) > BRACKETED_STATES {
            break;
        }
        let mut pays = |lambda: f64| -> Result<bool> { Ok(at(lambda, From::Near(&starts))?.0 > lambda * (1.0 + DETECTED)) };
        let (mut high, mut step) = (low * (1.0 + PRECISION), 2.0 * PRECISION);
        while pays(high)? && step < LONGEST_STEP {
            low = high;
            high *= 1.0 + step;
            step *= 2.0;
        }
        while high > low * (1.0 + PRECISION) {
            let middle = (low * high).sqrt();
            if pays(middle)? { low = middle } else { high = middle }
        }
        low = high;
    }
    Ok(low)
}

/// The next lambda to try after `(lambda, m)`. Where m touches lambda, `m - lambda` falls like a square, its root like a line: the line through the last two steps says where it
/// ends, and spares a hundred steps each shorter than the one before. Where m crosses lambda that is too far, which the search there tells.
fn further(before: Option<(f64, f64)>, now: (f64, f64)) -> f64 {
    let root = |(lambda, m): (f64, f64)| (m - lambda).max(0.0).sqrt();
    match before {
        Some(before) if root(before) > root(now) => now.0 + root(now) * (now.0 - before.0) / (root(before) - root(now)),
        _ => now.1,
    }
}

/// Where a search for a pair starts.
enum From<'a> {
    /// These directions, a few steps.
    These(&'a Mat),
    /// These directions and the leading singular vectors, many steps.
    Near(&'a Mat),
    /// A few random directions and single states.
    Random,
    /// These, singular vectors and the heaviest states.
    Everywhere,
}

/// `max u^T (mu 1^T - grad g) v` at the rank-one solution as an ascent finds it, and the best directions.
fn best_pair(problem: &Problem, from: From, seed: u64) -> (f64, Mat) {
    let (m, lambda) = (problem.rows(), problem.lambda);
    let x = rank_one(problem);
    // mu_i = Xi_i^2 (v.v - p_i.v) + lambda ||v|| / sqrt(m), from the first KKT condition with u_i = 1.
    let mut q = Mat::default();
    problem.times_v(&x.v, &mut q);
    let norm2 = thin::dot(x.v.as_slice(), x.v.as_slice());
    let level = lambda * (norm2 / problem.frame.squares().0).sqrt();
    let total = |i: usize| problem.frame.totals[i];
    let mu: Vec<f64> = (0..m).map(|i| problem.xi2[i] * (total(i) * norm2 - q[(i, 0)]) + level * total(i)).collect();
    let w = DualPoint { problem, a: &x.u, b: &x.v, mu: &mu };
    let (first, work) = match from {
        From::These(starts) => (starts.clone(), 0),
        From::Near(starts) => (beside(&[starts, &grow::singular_starts(&w, seed)]), WORK),
        From::Random => (grow::starts(&w, STARTS, seed), 0),
        From::Everywhere => (grow::thorough_starts(&w, STARTS, seed), 4 * WORK),
    };
    let from = beside(&[&x.v, &first]);
    let steps = (work / (8 * (problem.p.nonzeros() + 2 * (m + problem.cols())) * from.cols())).clamp(STEPS, MOST_STEPS);
    let (_, v, values) = grow::alternate(&w, from, steps);
    let best = lambda * values.iter().copied().fold(0.0, f64::max);
    // Go on from the best directions; the solution's own column comes in again anyway.
    let mut order: Vec<usize> = (1..v.cols()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    order.truncate(FOLLOWED);
    (best, v.select_columns(&order))
}
