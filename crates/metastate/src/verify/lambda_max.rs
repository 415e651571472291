//! lambda_max, checked from both sides: at it no pair of nonnegative directions improves on one meta-state, a tenth below it some pair
//! does. Both rest on a local search, so both are inequalities with room for two honest searches to differ.

use super::dual::{DENSE_STATES, Point, decompose, level, polar};
use super::rows::{Rows, leading};
use crate::error::Result;
use crate::linalg::{Mat, Operator};

/// Two honest searches may differ by this share.
const ROOM: f64 = 1e-2;
/// A pair that exceeds 1 by this much pays: well above rounding, and where the two sides touch instead of crossing there is no more to be seen.
const PAYS: f64 = 1e-8;
/// Where a search finds nothing below, it is made again from so many other starts, at this share; where there are few states.
const AGAIN: (u64, f64, usize) = (8, 0.5, 600);
/// A stated value is looked at this far below it, too.
const BELOW: f64 = 0.9;
/// Rows that leave less than this of `||Xi P||^2` to explain are alike.
const ALIKE: f64 = 1e-20;
/// Starts of a search: so many singular vectors, and the best partner of every state up to so many, beyond of so many with the largest weights.
const STARTS: (usize, usize, usize) = (8, 400, 24);
/// Halvings in the search for the best answer with one meta-state: more digits than a number has.
const HALVINGS: usize = 60;
/// The smallest lambda_max that is ever reported, as a share of `sum_i Xi_i^2`: rows that differ less are alike.
const SMALLEST: f64 = 1e-9;

/// What was found about a stated lambda_max.
///
/// See the example of [`check_lambda_max`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LambdaMaxCheck {
    /// Best `u^T W v` found at the stated value, where one meta-state should be optimal: at most 1 but for the search.
    pub at_it: f64,
    /// The same a tenth below it: above 1.
    pub below_it: f64,
    /// Whether one meta-state explains everything, so that every lambda is large enough.
    pub degenerate: bool,
    /// Whether the stated value is the smallest that is ever told: the true one may lie below it.
    pub smallest: bool,
    /// What rounding may make of a best pair: its terms are as large as `sum_i Xi_i^2 / lambda`.
    pub rounding: f64,
}

impl LambdaMaxCheck {
    /// Whether the stated value stands.
    #[must_use]
    pub fn stands(&self) -> bool {
        // Where rounding is larger than what pays, no search can tell.
        let untold = self.rounding > PAYS && self.below_it > 1.0 - self.rounding;
        self.degenerate || (self.at_it <= 1.0 + ROOM && (self.below_it > 1.0 + PAYS || self.smallest || untold))
    }
}

/// Looks at a stated lambda_max.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::lambda_max;
/// use metastate::verify::check_lambda_max;
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let most = lambda_max(chain.p(), chain.weights(), 0)?;
/// assert!(check_lambda_max(chain.p(), chain.weights(), most, 0)?.stands());
/// assert!(!check_lambda_max(chain.p(), chain.weights(), 2.0 * most, 0)?.stands()); // too large a claim
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn check_lambda_max(p: &dyn Operator, weights: &[f64], stated: f64, seed: u64) -> Result<LambdaMaxCheck> {
    let rows = Rows::new("the transition matrix", p)?;
    let (m, n) = (rows.rows(), rows.cols());
    let squares: Vec<f64> = weights.iter().map(|x| x * x).collect();
    let total: f64 = squares.iter().sum();
    let weighted = Mat::from_fn(m, 1, |i, _| squares[i] / total);
    let mean = rows.transposed_times(&weighted).into_vec();
    // All rows alike: nothing is left that a second meta-state could explain.
    let ones = Mat::from_fn(m, 1, |_, _| 1.0);
    let one_law = Mat::from_vec(n, 1, mean.clone())?;
    let left_over = rows.residual2(weights, &ones, &one_law);
    let degenerate = left_over <= ALIKE * rows.norm2(weights);
    if degenerate || !(stated > 0.0 && stated.is_finite()) {
        return Ok(LambdaMaxCheck { at_it: f64::NAN, below_it: f64::NAN, degenerate, smallest: false, rounding: 0.0 });
    }
    let found = |lambda: f64| search(&rows, weights, &squares, total, &mean, lambda, seed);
    let mut below_it = found(BELOW * stated);
    for k in 1..=AGAIN.0 {
        if below_it > 1.0 + PAYS || rows.side() > AGAIN.2 {
            break;
        }
        let share = if k % 2 == 0 { BELOW } else { AGAIN.1 };
        below_it = below_it.max(search(&rows, weights, &squares, total, &mean, share * stated, seed.wrapping_add(k)));
    }
    let smallest = stated <= SMALLEST * total * (1.0 + ROOM);
    let rounding = (rows.side() + 64) as f64 * f64::EPSILON * total / stated;
    Ok(LambdaMaxCheck { at_it: found(stated), below_it, degenerate, smallest, rounding })
}

/// F of the best answer with one meta-state.
pub(super) fn objective_of_one(rows: &Rows, weights: &[f64], lambda: f64) -> f64 {
    let m = rows.rows();
    let squares: Vec<f64> = weights.iter().map(|x| x * x).collect();
    let total: f64 = squares.iter().sum();
    let mean = rows.transposed_times(&Mat::from_fn(m, 1, |i, _| squares[i] / total)).into_vec();
    let v = one_metastate(&mean, m, total, lambda);
    let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (ones, v) = (Mat::from_fn(m, 1, |_, _| 1.0), Mat::from_fn(v.len(), 1, |j, _| v[j]));
    0.5 * rows.residual2(weights, &ones, &v) + lambda * (m as f64).sqrt() * length
}

/// The best pair at the rank-one solution of this lambda.
fn search(rows: &Rows, weights: &[f64], squares: &[f64], total: f64, mean: &[f64], lambda: f64, seed: u64) -> f64 {
    let (m, n) = (rows.rows(), rows.cols());
    let v = one_metastate(mean, m, total, lambda);
    let norm2: f64 = v.iter().map(|x| x * x).sum();
    let (u, v) = (Mat::from_fn(m, 1, |_, _| 1.0), Mat::from_fn(n, 1, |j, _| v[j]));
    let pv = rows.times(&v);
    // The first KKT condition with u_i = 1: mu_i = Xi_i^2 (v.v - p_i.v) + lambda ||v|| / sqrt(m), m rows.
    let mu: Vec<f64> = (0..m).map(|i| squares[i] * (norm2 - pv[(i, 0)]) + lambda * (norm2 / m as f64).sqrt()).collect();
    let point = Point { rows, weights, lambda, a: &u, b: &v, mu: &mu, clip: None };
    let singular = if rows.side() <= DENSE_STATES { decompose(&point.dense()) } else { None };
    let singular = singular.map(|(_, _, right)| leading(&right, right.cols().min(STARTS.0)));
    let states = if m <= STARTS.1 { (0..m).collect() } else { heaviest(squares, STARTS.2) };
    let images = point.transposed_times(&Mat::from_fn(m, states.len(), |i, k| if i == states[k] { 1.0 } else { 0.0 }));
    let starts = singular.map_or(images.clone(), |s| super::rows::beside(&[&s, &images]));
    polar(&point, Some(&starts), seed)
}

/// The minimiser of `c/2 ||v - p||^2 + lambda sqrt(m) ||v||` on the simplex, m rows: the projection of a shrunken p, by bisection on how much.
fn one_metastate(p: &[f64], rows: usize, c: f64, lambda: f64) -> Vec<f64> {
    let root = (rows as f64).sqrt();
    let at = |shrink: f64| {
        let tau = level(&p.iter().map(|x| shrink * x).collect::<Vec<f64>>());
        p.iter().map(|x| (shrink * x - tau).max(0.0)).collect::<Vec<f64>>()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        let length = at(middle).iter().map(|x| x * x).sum::<f64>().sqrt();
        if middle * (c + lambda * root / length) < c { low = middle } else { high = middle }
    }
    at(0.5 * (low + high))
}

fn heaviest(squares: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..squares.len()).collect();
    order.sort_by(|&i, &j| squares[j].total_cmp(&squares[i]));
    order.truncate(count);
    order
}
