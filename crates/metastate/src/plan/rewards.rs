//! The reward of each action, estimated from the rewards in the log.
//!
//! The mean over the few records of a pair is noisy. What is paid on arrival depends on the meta-state that the pair leads into, so that `r(s, a)` is near `U_a(s) . theta` with one
//! reward a meta-state, and every pair's own records say how far it is from there. With `y` the mean over `n` records, `sigma^2` the variance within pairs and `tau^2` that between pairs about
//! the line, the best guess is
//!
//! `r = U_a(s) . theta + b (y - U_a(s) . theta)`, `b = tau^2 / (tau^2 + sigma^2 / n)`:
//!
//! a pair with many records keeps what it saw, one with few is drawn towards its meta-states. Both variances are estimated (`tau^2` by moments), so that where meta-states say nothing of
//! rewards, `theta` is flat and `b` near one. Where rewards do not vary within a pair, no pair is drawn towards its meta-states.

use super::log::{Paid, Tried};
use crate::linalg::{Mat, small, thin};

/// Added to the diagonal of the normal equations, relative to its mean: two meta-states with the same members have one reward between them.
const RIDGE: f64 = 1e-9;
/// Rounds in which the variance between pairs and the rewards on the meta-states settle.
const ROUNDS: usize = 5;

/// Rewards with standard errors.
///
/// See the example of [`rewards`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Rewards {
    /// theta: what is paid for going to each meta-state.
    pub metastate: Vec<f64>,
    /// Standard error of each.
    pub metastate_error: Vec<f64>,
    /// What each pair is paid.
    pub pair: Vec<f64>,
    /// Standard error of each.
    pub pair_error: Vec<f64>,
    /// Standard deviation of single rewards within a pair, sigma.
    pub within: f64,
    /// Standard deviation of the pairs about the line, tau.
    pub between: f64,
    /// Pairs that rest more on their meta-states than on their own records.
    pub leaning: usize,
}

/// From what was paid at the pairs with records; the others get what their memberships say.
///
/// ```
/// use metastate::plan::rewards;
/// use metastate::simulate::controlled;
///
/// let world = controlled(20, 2, 2, 1)?; // the truth
/// let tried = world.tries(50, 0.1, 1)?.tried()?; // what a log of it says
/// let found = rewards(&tried, tried.paid.as_ref().unwrap(), &world.u);
/// let off = found.pair.iter().zip(world.rewards()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
/// assert!(off < 0.3);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn rewards(tried: &Tried, paid: &Paid, u: &Mat) -> Rewards {
    rewards_of(&tried.records, paid, u)
}

/// The same from the numbers of each pair.
pub(super) fn rewards_of(records: &[f64], paid: &Paid, u: &Mat) -> Rewards {
    let seen: Vec<usize> = (0..records.len()).filter(|p| records[*p] > 0.0).collect();
    let freedom: f64 = seen.iter().map(|p| records[*p] - 1.0).sum();
    let spread: f64 = seen.iter().map(|p| paid.spread[*p]).sum();
    let s = u.cols();
    let mut line = RewardLine::fit(&seen, |p| records[p], paid, u);
    let off = |line: &RewardLine, p: usize| paid.mean[p] - line.at(u.row(p));
    // Without repeated records noise and differences cannot be separated: everything off the line counts as noise.
    let about: f64 = seen.iter().map(|p| records[*p] * off(&line, *p).powi(2)).sum();
    let sigma2 = if freedom > 0.0 { spread / freedom } else { about / (seen.len() as f64 - s as f64).max(1.0) };
    let mut tau2 = 0.0;
    if sigma2 > 0.0 {
        for _ in 0..ROUNDS {
            tau2 = between(&seen, records, sigma2, |p| off(&line, p), s);
            line = RewardLine::fit(&seen, |p| 1.0 / (sigma2 / records[p] + tau2), paid, u);
        }
    }
    let mut found = Rewards {
        metastate: line.theta.clone(),
        metastate_error: (0..s).map(|k| line.covariance[(k, k)].max(0.0).sqrt()).collect(),
        pair: vec![0.0; records.len()],
        pair_error: vec![0.0; records.len()],
        within: sigma2.sqrt(),
        between: tau2.sqrt(),
        leaning: 0,
    };
    if sigma2 == 0.0 {
        // The weights were counts, not inverse variances: what is left about the line is their scale.
        let scale = about / (seen.len() as f64 - s as f64).max(1.0);
        found.metastate_error.iter_mut().for_each(|e| *e *= scale.sqrt());
        found.between = (about / seen.iter().map(|p| records[*p]).sum::<f64>().max(1.0)).sqrt();
    }
    for p in 0..records.len() {
        let on_line = line.at(u.row(p));
        let own = match (records[p] > 0.0, sigma2 > 0.0) {
            (false, _) => 0.0,
            (true, false) => 1.0,
            (true, true) => tau2 / (tau2 + sigma2 / records[p]),
        };
        found.leaning += usize::from(records[p] > 0.0 && own < 0.5);
        found.pair[p] = on_line + own * (paid.mean[p] - on_line);
        let noise = if records[p] > 0.0 { own * sigma2 / records[p] } else { found.between.powi(2) };
        found.pair_error[p] = (noise + (1.0 - own).powi(2) * line.variance(u.row(p))).max(0.0).sqrt();
    }
    found
}

/// Variance between pairs about the line, by moments: what the weighted squares exceed that of noise alone.
fn between(seen: &[usize], records: &[f64], sigma2: f64, off: impl Fn(usize) -> f64, s: usize) -> f64 {
    let weight = |p: usize| records[p] / sigma2;
    let (mut squares, mut sum, mut sum2) = (0.0, 0.0, 0.0);
    for &p in seen {
        squares += weight(p) * off(p).powi(2);
        sum += weight(p);
        sum2 += weight(p).powi(2);
    }
    // The line takes s of the degrees of freedom; their share of the weights is that of an average pair.
    let freedom = seen.len() as f64 - s as f64;
    let scale = sum - s as f64 * sum2 / sum.max(f64::MIN_POSITIVE);
    if freedom <= 0.0 || scale <= 0.0 { 0.0 } else { ((squares - freedom) / scale).max(0.0) }
}

/// A weighted regression of rewards on memberships.
struct RewardLine {
    theta: Vec<f64>,
    covariance: Mat,
}

impl RewardLine {
    fn fit(seen: &[usize], weight: impl Fn(usize) -> f64, paid: &Paid, u: &Mat) -> RewardLine {
        let s = u.cols();
        let (mut normal, mut right) = (Mat::zeros(s, s), vec![0.0; s]);
        for &p in seen {
            let (w, row) = (weight(p), u.row(p));
            for k in 0..s {
                right[k] += w * row[k] * paid.mean[p];
                (0..s).for_each(|l| normal[(k, l)] += w * row[k] * row[l]);
            }
        }
        let mean = (0..s).map(|k| normal[(k, k)]).sum::<f64>() / s as f64;
        (0..s).for_each(|k| normal[(k, k)] += RIDGE * mean);
        let covariance = small::inverse(&normal).unwrap_or_else(|| Mat::zeros(s, s));
        let theta = (0..s).map(|k| thin::dot(covariance.row(k), &right)).collect();
        RewardLine { theta, covariance }
    }

    fn at(&self, row: &[f64]) -> f64 {
        thin::dot(row, &self.theta)
    }

    fn variance(&self, row: &[f64]) -> f64 {
        (0..row.len()).map(|k| row[k] * thin::dot(self.covariance.row(k), row)).sum()
    }
}
