//! What a policy earns, estimated on records that it was not learnt from.
//!
//! The log is dealt into folds, whole episodes where it has them. On all folds but one the chain is fitted again at the rank and prior of the model, rewards are estimated and a plan is made; on the fold
//! that was held out the plan's own claim is corrected by what it missed there (the doubly robust estimate in its marginalised form, Kallus and Uehara 2020):
//!
//! `V = mean v(s_0) + sum_i w_i [ r_i + gamma v(s'_i) - q(s_i, a_i) ]`, `w_i = nu(s_i) [a_i = pi(s_i)] / (N p(s_i, a_i))`,
//!
//! nu the discounted visits that the policy pays each state in the fitted chain, p the share of a pair in the log. The estimate is right in the mean where either the values or the visits are; and with visits
//! instead of products of ratios along an episode, long episodes do no harm. The interval is that of a mean of independent episodes (or records).

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::decide::{Decisions, Plan};
use super::log::{Log, Paid, Tried};
use super::rewards::rewards;
use super::untried::with_untried;
use crate::error::{Error, Result};
use crate::linalg::{Mat, small, thin};
use crate::solve::refit::{LikelihoodSettings, SpectralFits};

/// Half the width of an interval that holds the mean 19 times of 20, in standard errors.
const NORMAL_95: f64 = 1.959964;

/// How a policy is checked.
///
/// See the example of [`check`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckSettings {
    /// Meta-states.
    pub rank: usize,
    /// Transitions that the prior adds to every pair.
    pub prior: f64,
    /// The discount.
    pub discount: f64,
    /// Whether policies may take pairs that were never tried, at a guess.
    pub untried: bool,
    /// Parts that are held out in turn.
    pub folds: usize,
    /// How they are dealt.
    pub seed: u64,
}

/// What is dealt to the folds.
///
/// See the example of [`check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Whole episodes; the value is that of where episodes begin.
    Episodes,
    /// Single records; the value is that of the states of the log.
    Records,
}

/// What held-out records say.
///
/// See the example of [`check`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Checked {
    /// What the policies earn, discounted: the estimate.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// The interval that holds it 19 times of 20.
    pub interval: (f64, f64),
    /// What the model predicts for the same policies.
    pub claimed: f64,
    /// What the episodes of the log earned themselves, discounted; none without episodes.
    pub log: Option<f64>,
    /// What was dealt.
    pub unit: Unit,
    /// How many of them.
    pub units: usize,
    /// Records with the weights of the sum squared: how many even ones would be as good.
    pub effective: f64,
    /// Share of the policies' visits at pairs that the held-out records hold, too.
    pub covered: f64,
    /// Parts that were held out in turn.
    pub folds: usize,
}

/// Checks policies that were learnt on a part of the log on the rest of it. `going` is asked between the parts and may end it.
///
/// ```
/// use metastate::plan::{CheckSettings, check};
/// use metastate::simulate::controlled;
///
/// let log = controlled(10, 2, 2, 1)?.episodes(100, 10, 0.1, 1)?;
/// let settings = CheckSettings { rank: 2, prior: 1.0, discount: 0.8, untried: false, folds: 2, seed: 0 };
/// let found = check(&log, &log.tried()?, &settings, || true)?;
/// assert!(found.interval.0 < found.value && found.value < found.interval.1);
/// assert_eq!(found.units, 100); // whole episodes were held out
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn check(log: &Log, tried: &Tried, settings: &CheckSettings, mut going: impl FnMut() -> bool) -> Result<Checked> {
    let (k, units) = (settings.folds, log.units());
    if k < 2 || units < 2 * k {
        return Err(Error::Setting {
            name: "the number of folds",
            value: k.to_string(),
            allowed: "at least 2 are needed, and two episodes (or records) for each",
        });
    }
    if log.records().reward.is_none() {
        return Err(Error::Empty { what: "the list of rewards" });
    }
    let dealt = deal(units, k, settings.seed);
    let mut sums = Sums::default();
    for f in 0..k {
        if !going() {
            return Err(Error::Interrupted);
        }
        let part = |inside: bool| {
            (0..units).filter(|e| (usize::from(dealt[*e]) == f) == inside).map(|e| log.unit(e)).collect::<Vec<Range<usize>>>()
        };
        let held_out = part(true);
        let learnt = Learnt::from(log, &tried.part(log, part(false).into_iter())?, settings)?;
        judge(log, tried, &learnt, &held_out, settings, &mut sums);
    }
    Ok(sums.told(log, units, k))
}

/// The fold of each unit: as even as can be, in an order by chance.
fn deal(units: usize, k: usize, seed: u64) -> Vec<u8> {
    let mut fold: Vec<u8> = (0..units).map(|e| (e % k) as u8).collect();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for e in (1..units).rev() {
        fold.swap(e, rng.random_range(0..=e));
    }
    fold
}

/// A plan from a part of the log.
struct Learnt {
    plan: Plan,
    /// State and action of each pair of the plan.
    action: Vec<u32>,
    /// Where each pair of the data stands in the plan's list.
    place: Vec<Option<usize>>,
    /// Discounted visits of each state.
    visits: Vec<f64>,
}

impl Learnt {
    fn from(log: &Log, part: &Tried, settings: &CheckSettings) -> Result<Self> {
        let rank = settings.rank.min(part.pairs.len()).min(part.reached.len());
        let fit = SpectralFits::new(part.counts.clone(), settings.seed)?
            .likelihood(rank, &LikelihoodSettings { prior: settings.prior, ..LikelihoodSettings::default() })?;
        let (u, v) = (fit.factors.u, fit.factors.v);
        let none = Paid::default();
        let paid = rewards(part, part.paid.as_ref().unwrap_or(&none), &u).pair;
        let extended = settings.untried.then(|| with_untried(part, &u, &v, &paid)).transpose()?;
        let seen: Vec<bool> = part.records.iter().map(|n| *n > 0.0).collect();
        let all = extended.as_ref().map(|e| vec![true; e.pairs.len()]);
        let decisions = match (&extended, &all) {
            (Some(e), Some(all)) => {
                Decisions { pairs: &e.pairs, reached: &part.reached, u: &e.u, v: &v, rewards: &e.rewards, allowed: all }
            }
            _ => Decisions { pairs: &part.pairs, reached: &part.reached, u: &u, v: &v, rewards: &paid, allowed: &seen },
        };
        let plan = decisions.solve(settings.discount)?;
        let visits = visits(&decisions, &plan, &starts(log, part), settings.discount);
        let at = |p: usize| decisions.pairs.position(part.pairs.state[p], part.pairs.action[p]).filter(|q| decisions.allowed[*q]);
        let place = (0..part.pairs.len()).map(at).collect();
        Ok(Learnt { action: decisions.pairs.action.clone(), plan, place, visits })
    }
}

/// Where episodes begin, in all of the log (a property of the task, not of the policy); without episodes, the states of the part.
fn starts(log: &Log, part: &Tried) -> Vec<f64> {
    let mut law = vec![0.0; part.pairs.states()];
    match &log.records().episodes {
        Some(starts) => starts.iter().for_each(|i| law[log.records().from[*i] as usize] += 1.0),
        None => (0..part.pairs.len()).for_each(|p| law[part.pairs.state[p] as usize] += part.records[p]),
    }
    let sum: f64 = law.iter().sum();
    law.iter_mut().for_each(|x| *x /= sum);
    law
}

/// `nu = start + gamma V g`, `g = U^T nu` on the pairs chosen: s equations for g.
fn visits(decisions: &Decisions<'_>, plan: &Plan, start: &[f64], discount: f64) -> Vec<f64> {
    let s = decisions.v.cols();
    let mut first = vec![0.0; s];
    for (state, share) in start.iter().enumerate() {
        if let Some(p) = plan.choice[state] {
            first.iter_mut().zip(decisions.u.row(p)).for_each(|(g, u)| *g += share * u);
        }
    }
    // g = first + gamma K^T g.
    let chain = decisions.chain_of(&plan.choice);
    let system = Mat::from_fn(s, s, |k, l| f64::from(u8::from(k == l)) - discount * chain[(l, k)]);
    let inverse = small::inverse(&system).unwrap_or_else(|| Mat::zeros(s, s));
    let flow: Vec<f64> = (0..s).map(|k| thin::dot(inverse.row(k), &first)).collect();
    let mut visits = start.to_vec();
    for (j, state) in decisions.reached.iter().enumerate() {
        visits[*state as usize] += discount * thin::dot(decisions.v.row(j), &flow).max(0.0);
    }
    visits
}

/// What is added up over the folds.
#[derive(Default)]
struct Sums {
    /// One number an episode or record.
    told: f64,
    told2: f64,
    claimed: f64,
    earned: f64,
    weights: f64,
    weights2: f64,
    visits: f64,
    covered: f64,
}

/// The policy learnt elsewhere on what was held out.
fn judge(log: &Log, tried: &Tried, learnt: &Learnt, held_out: &[Range<usize>], settings: &CheckSettings, sums: &mut Sums) {
    let (r, plan, gamma) = (log.records(), &learnt.plan, settings.discount);
    let Some(reward) = &r.reward else { return };
    let all = r.len() as f64;
    let here: f64 = held_out.iter().map(|unit| unit.len() as f64).sum();
    let mut met = vec![false; tried.pairs.states()];
    for unit in held_out {
        let claimed = plan.value[r.from[unit.start] as usize];
        let (mut missed, mut earned, mut factor) = (0.0, 0.0, 1.0);
        for i in unit.clone() {
            earned += factor * reward[i];
            factor *= gamma;
            let state = r.from[i] as usize;
            let Some(chosen) = plan.choice[state].filter(|p| learnt.action[*p] == r.action[i]) else { continue };
            let Some(pair) = tried.pairs.position(r.from[i], r.action[i]) else { continue };
            debug_assert_eq!(learnt.place[pair], Some(chosen));
            let weight = learnt.visits[state] * all / (here * tried.records[pair]);
            missed += weight * (reward[i] + gamma * plan.value[r.to[i] as usize] - plan.q[chosen]);
            sums.weights += weight;
            sums.weights2 += weight * weight;
            met[state] = true;
        }
        let told = claimed + held_out.len() as f64 * missed;
        sums.told += told;
        sums.told2 += told * told;
        sums.claimed += claimed;
        sums.earned += earned;
    }
    for (state, visits) in learnt.visits.iter().enumerate().filter(|(state, _)| plan.choice[*state].is_some()) {
        sums.visits += visits;
        sums.covered += if met[state] { *visits } else { 0.0 };
    }
}

impl Sums {
    fn told(self, log: &Log, units: usize, folds: usize) -> Checked {
        let n = units as f64;
        let value = self.told / n;
        let error = ((self.told2 / n - value * value).max(0.0) / (n - 1.0).max(1.0)).sqrt();
        let episodes = log.records().episodes.is_some();
        Checked {
            value,
            error,
            interval: (value - NORMAL_95 * error, value + NORMAL_95 * error),
            claimed: self.claimed / n,
            log: episodes.then(|| self.earned / n),
            unit: if episodes { Unit::Episodes } else { Unit::Records },
            units,
            effective: if self.weights2 > 0.0 { self.weights * self.weights / self.weights2 } else { 0.0 },
            covered: if self.visits > 0.0 { self.covered / self.visits } else { 0.0 },
            folds,
        }
    }
}
