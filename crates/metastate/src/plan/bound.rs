//! How much the policy of the fitted model can lose.
//!
//! Let X be the fitted chain, P another one on the same pairs, v the values of the plan and r its rewards. The plan solves Bellman's equation of X, so in P it is off by
//! `e = gamma max |(P - X) v|`, and a policy that is greedy for values that are off by e loses at most `2 e / (1 - gamma)` at any state, against all policies on the same pairs. Since `|(P - X) v|` is at
//! most half the span of v times `||P - X||_1`, and v spans at most `span(r) / (1 - gamma)`, that is at most `2 gamma / (1 - gamma)^2 span(r) ||P - X||_1 / 2`: the first form is never worse.
//!
//! Here P is the counted chain. The bound is a theorem about a process whose next states fall exactly as often as they were counted, with these rewards. About the true process it proves nothing: with few
//! records of a pair the counts are further from it than the model is, and the bound is larger than what any policy could lose. [`LossBound::says_something`] says whether it is smaller.

use super::decide::Plan;
use super::log::Tried;
use crate::linalg::{Mat, thin};

/// What a policy can lose where next states fall as often as they were counted.
///
/// See the example of [`loss_bound`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LossBound {
    /// `2 gamma max |(P - X) v| / (1 - gamma)`.
    pub loss: f64,
    /// `2 gamma / (1 - gamma)^2 span(r) max ||P - X||_1 / 2`.
    pub by_norm: f64,
    /// What no policy can lose more than: the span of the rewards over `1 - gamma`.
    pub any: f64,
}

impl LossBound {
    /// Whether the bound says more than that rewards are bounded.
    #[must_use]
    pub fn says_something(&self) -> bool {
        self.loss < self.any
    }
}

/// Compares the counted chain with the fitted one, pair by pair.
///
/// ```
/// use metastate::plan::{Decisions, loss_bound};
/// use metastate::simulate::controlled;
///
/// let world = controlled(20, 2, 2, 1)?; // the truth
/// let tried = world.tries(50, 0.1, 1)?.tried()?; // what a log of it says
/// let (paid, all) = (world.rewards(), vec![true; tried.pairs.len()]);
/// let v = metastate::Mat::from_fn(tried.reached.len(), 2, |j, k| world.v[(tried.reached[j] as usize, k)]);
/// let decisions = Decisions { pairs: &tried.pairs, reached: &tried.reached, u: &world.u, v: &v, rewards: &paid, allowed: &all };
/// let plan = decisions.solve(0.5)?;
/// let bound = loss_bound(&tried, &world.u, &v, &paid, &plan, 0.5);
/// assert!(0.0 < bound.loss && bound.loss <= bound.by_norm);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn loss_bound(tried: &Tried, u: &Mat, v: &Mat, rewards: &[f64], plan: &Plan, discount: f64) -> LossBound {
    let values: Vec<f64> = tried.reached.iter().map(|s| plan.value[*s as usize]).collect();
    let (n, s) = (v.rows(), v.cols());
    // X v without X: U (V^T v).
    let mut worth = vec![0.0; s];
    (0..n).for_each(|j| worth.iter_mut().zip(v.row(j)).for_each(|(w, x)| *w += x * values[j]));
    let seen = || (0..tried.pairs.len()).filter(|p| tried.records[*p] > 0.0);
    let (mut off, mut norm, mut low, mut high) = (0.0f64, 0.0f64, f64::INFINITY, f64::NEG_INFINITY);
    for p in seen() {
        let (columns, counts) = tried.counts.row(p);
        let (mut counted, mut distance, mut covered) = (0.0, 0.0, 0.0);
        for (j, c) in columns.iter().zip(counts) {
            let (share, fitted) = (c / tried.records[p], thin::dot(u.row(p), v.row(*j as usize)));
            counted += share * values[*j as usize];
            distance += (share - fitted).abs();
            covered += fitted;
        }
        off = off.max((counted - thin::dot(u.row(p), &worth)).abs());
        norm = norm.max(distance + (1.0 - covered).max(0.0));
        (low, high) = (low.min(rewards[p]), high.max(rewards[p]));
    }
    // A state where nothing follows is worth zero, as if it were paid nothing for ever.
    let ends = plan.choice.iter().any(Option::is_none);
    let (low, high) = if ends { (low.min(0.0), high.max(0.0)) } else { (low, high) };
    let far = 1.0 - discount;
    LossBound {
        loss: 2.0 * discount * off / far + 2.0 * discount * plan.off / far,
        by_norm: discount / (far * far) * (high - low).max(0.0) * norm,
        any: (high - low).max(0.0) / far,
    }
}
