//! How many meta-states, and how strong a prior: chosen by the likelihood of held-out transitions. No truth is used.
//!
//! For each rank, and each fold held out in turn: spectral start, least squares and likelihood refit on the other folds, score on this
//! one. Folds differ from each other far more than models do on one fold, so models are compared fold by fold: rank r is *behind* the
//! best by the mean of its differences, with the standard error of that mean. The smallest rank that is behind by no more than one
//! standard error is chosen.

use rayon::prelude::*;

use super::problem::Factors;
use super::refit::{LikelihoodSettings, SpectralFits, likelihood_watched};
use super::score::{Model, Score, Smoothing, score};
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::linalg::Csr;

/// Choices of the selection.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectSettings {
    /// Ranks are tried up to this one.
    pub max_rank: usize,
    /// Ranks tried beyond the best before the search ends.
    pub patience: usize,
    /// Passes of the likelihood at each rank, up to ten times as many where it still gains (see `compared`).
    pub passes: usize,
    /// Strength of the prior while ranks are compared for the first time.
    pub first_prior: f64,
    /// Strengths to choose from.
    pub priors: Vec<f64>,
    /// How scores are smoothed.
    pub smoothing: Smoothing,
    /// Seed of the spectral bases.
    pub seed: u64,
}

impl Default for SelectSettings {
    fn default() -> Self {
        SelectSettings {
            max_rank: 40,
            patience: 3,
            passes: 30,
            first_prior: 5.0,
            priors: vec![0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0],
            smoothing: Smoothing::default(),
            seed: 0,
        }
    }
}

/// The scores of one model on all folds.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    /// Score on each fold.
    pub folds: Vec<Score>,
}

impl HeldOut {
    /// Mean log-likelihood a transition.
    pub fn log_likelihood(&self) -> f64 {
        mean(self.folds.iter().map(|s| s.log_likelihood))
    }

    /// Standard error of that mean over the folds.
    pub fn standard_error(&self) -> f64 {
        standard_error(self.folds.iter().map(|s| s.log_likelihood))
    }

    /// Mean weighted squared error.
    pub fn squared_error(&self) -> f64 {
        mean(self.folds.iter().map(|s| s.squared_error))
    }

    /// By how much this is behind the other, fold by fold: mean and standard error of the differences in log-likelihood.
    pub fn behind(&self, other: &HeldOut) -> (f64, f64) {
        let differences = || other.folds.iter().zip(&self.folds).map(|(a, b)| a.log_likelihood - b.log_likelihood);
        (mean(differences()), standard_error(differences()))
    }
}

/// A rank and how it did.
#[derive(Debug, Clone, PartialEq)]
pub struct RankScore {
    /// Number of meta-states.
    pub rank: usize,
    /// Scores at this rank.
    pub held_out: HeldOut,
}

/// A strength of the prior and how it did at the chosen rank.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorScore {
    /// Transitions that the prior adds to every state.
    pub prior: f64,
    /// Scores with it.
    pub held_out: HeldOut,
}

/// What was chosen, and what it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The rank.
    pub rank: usize,
    /// The strength of the prior.
    pub prior: f64,
    /// The rank with the best mean score.
    pub best_rank: usize,
    /// All ranks tried, ascending.
    pub ranks: Vec<RankScore>,
    /// Strengths tried at the chosen rank.
    pub priors: Vec<PriorScore>,
    /// Rank one: the next place does not depend on the present one.
    pub independent: HeldOut,
    /// The empirical P with as many pseudo-counts a state as served it best.
    pub empirical: (f64, HeldOut),
    /// Whether the search ended because no higher rank was allowed.
    pub at_the_limit: bool,
}

impl Choice {
    /// The entry of a rank.
    pub fn at(&self, rank: usize) -> Option<&RankScore> {
        self.ranks.iter().find(|r| r.rank == rank)
    }

    /// By how many standard errors the next smaller rank is behind the chosen one: how clear the choice is. Infinite at rank one.
    pub fn clearness(&self) -> f64 {
        match (self.at(self.rank), self.rank.checked_sub(1).and_then(|r| self.at(r))) {
            (Some(chosen), Some(smaller)) => {
                let (behind, error) = smaller.held_out.behind(&chosen.held_out);
                behind / error
            }
            _ => f64::INFINITY,
        }
    }

    /// One sentence: what was chosen, why, and how clear it was.
    pub fn sentence(&self) -> String {
        let (Some(chosen), Some(best)) = (self.at(self.rank), self.at(self.best_rank)) else { return String::new() };
        let why = if self.rank == self.best_rank {
            "the best held-out log-likelihood, and no smaller rank is within one standard error of it".to_owned()
        } else {
            let (behind, error) = chosen.held_out.behind(&best.held_out);
            format!(
                "the smallest rank within one standard error of the best (rank {}, ahead by {behind:.1e} with standard error {error:.1e})",
                self.best_rank
            )
        };
        let clear = match self.clearness() {
            c if c.is_infinite() => "there is no smaller rank".to_owned(),
            c if c >= 3.0 => format!("clear: rank {} is {c:.0} standard errors worse", self.rank - 1),
            c => format!("not clear: rank {} is only {c:.1} standard errors worse", self.rank - 1),
        };
        let limit = if self.at_the_limit { "; the best rank is the highest that was allowed, more may be better" } else { "" };
        let number = if self.rank == 1 { "meta-state" } else { "meta-states" };
        format!(
            "{} {number}: {why} ({:.5} a transition over {} folds; empirical P {:.5}, independent {:.5}); {clear}{limit}.",
            self.rank,
            chosen.held_out.log_likelihood(),
            chosen.held_out.folds.len(),
            self.empirical.1.log_likelihood(),
            self.independent.log_likelihood()
        )
    }
}

/// Ranks below the first choice that are tried again with the prior that suits the data.
const ROOM_BELOW: usize = 2;

/// Chooses rank and prior. `watch(rank, mean score)` is told of each rank tried and may end the search by returning false.
pub fn select(folds: &Folds, settings: &SelectSettings, mut watch: impl FnMut(usize, f64) -> bool) -> Result<Choice> {
    check(settings)?;
    let max_rank = settings.max_rank.min(folds.whole().rows());
    let prepared = prepare(folds, max_rank, settings.seed)?;
    let mut prior = settings.first_prior;
    let (mut ranks, mut at_the_limit) = try_ranks(&prepared, prior, 1..=max_rank, settings, &mut watch)?;
    let (mut rank, mut best_rank) = smallest_within_one_error(&ranks);
    // At rank one every prior gives the same law: two meta-states tell whether another prior would have found something.
    let mut priors = try_priors(&prepared, rank.max(2).min(max_rank), settings)?;
    let better = best_prior(&priors);
    if better != prior {
        // The ranks again with the prior that suits the data: from a little below the first choice, and further down while the
        // lowest of them is the one chosen. Ranks below those keep their first scores; they are far behind.
        prior = better;
        let before = rank;
        let mut lowest = rank.saturating_sub(ROOM_BELOW).max(1);
        let (again, limit) = try_ranks(&prepared, prior, lowest..=max_rank, settings, &mut watch)?;
        ranks.truncate(lowest - 1);
        ranks.extend(again);
        at_the_limit = limit;
        loop {
            (rank, best_rank) = smallest_within_one_error(&ranks[lowest - 1..]);
            if rank > lowest || lowest == 1 {
                break;
            }
            lowest -= 1;
            let (below, _) = try_ranks(&prepared, prior, lowest..=lowest, settings, &mut watch)?;
            ranks.splice(lowest - 1..lowest, below);
        }
        if rank != before {
            priors = try_priors(&prepared, rank, settings)?;
            prior = best_prior(&priors);
        }
    }
    let independent = baseline(&prepared, Model::Independent, settings.smoothing)?;
    let empirical = best_empirical(&prepared, settings)?;
    Ok(Choice { rank, prior, best_rank, ranks, priors, independent, empirical, at_the_limit })
}

/// Chooses the strength of the prior at a given rank: the best, and all that were tried.
pub fn select_prior(folds: &Folds, rank: usize, settings: &SelectSettings) -> Result<(f64, Vec<PriorScore>)> {
    check(settings)?;
    let priors = try_priors(&prepare(folds, rank, settings.seed)?, rank, settings)?;
    Ok((best_prior(&priors), priors))
}

/// A fold with what all ranks need.
struct Prepared<'a> {
    fits: SpectralFits,
    held_out: &'a Csr,
}

fn prepare(folds: &Folds, max_rank: usize, seed: u64) -> Result<Vec<Prepared<'_>>> {
    (0..folds.len())
        .into_par_iter()
        .map(|f| Ok(Prepared { fits: SpectralFits::new(folds.training(f)?, max_rank, seed)?, held_out: folds.held_out(f) }))
        .collect()
}

fn on_folds(prepared: &[Prepared], f: impl Fn(&Prepared) -> Result<Score> + Sync + Send) -> Result<HeldOut> {
    Ok(HeldOut { folds: prepared.par_iter().map(f).collect::<Result<_>>()? })
}

/// What a fit may still gain a pass when it is compared, in units of `d / n`.
const NEGLIGIBLE: f64 = 3e-3;
/// Passes over which that is judged: two extrapolated pairs.
const JUDGED: usize = 4;
/// How much longer than asked for a fit may take to get there.
const LONGEST: usize = 10;

/// The score of the likelihood refit from a start. One meta-state too many is behind by about `d / n` a transition, so a fit is ready to be compared
/// when what it still gains is little beside that: with few transitions soon, with very many only after hundreds of passes.
fn compared(fold: &Prepared, start: &Factors, prior: f64, settings: &SelectSettings) -> Result<Score> {
    let observed = fold.fits.observed();
    let negligible = NEGLIGIBLE * observed.states() as f64 / observed.transitions();
    let refit = LikelihoodSettings { prior, max_passes: LONGEST * settings.passes, tolerance: negligible.min(1e-7), accelerate: true };
    let mut values: Vec<f64> = Vec::new();
    let goes_on = |passes: usize, value: f64| {
        values.push(value);
        let before = values[(values.len() - 1).saturating_sub(JUDGED)];
        passes < settings.passes || value - before > JUDGED as f64 * negligible
    };
    let x = likelihood_watched(observed, start, &refit, goes_on)?.factors;
    score(Model::LowRank(&x), observed.counts(), fold.held_out, settings.smoothing)
}

/// Ranks upwards, until `patience` of them in a row were no better than the best before.
fn try_ranks(
    prepared: &[Prepared],
    prior: f64,
    tried: std::ops::RangeInclusive<usize>,
    settings: &SelectSettings,
    watch: &mut impl FnMut(usize, f64) -> bool,
) -> Result<(Vec<RankScore>, bool)> {
    let mut ranks: Vec<RankScore> = Vec::new();
    let (max_rank, mut best, mut best_value) = (*tried.end(), *tried.start(), f64::NEG_INFINITY);
    for rank in tried {
        let held_out = on_folds(prepared, |fold| compared(fold, &fold.fits.near(rank)?, prior, settings))?;
        let value = held_out.log_likelihood();
        ranks.push(RankScore { rank, held_out });
        if value > best_value {
            (best, best_value) = (rank, value);
        }
        if !watch(rank, value) || rank >= best + settings.patience {
            return Ok((ranks, false));
        }
    }
    Ok((ranks, best == max_rank))
}

/// The chosen rank and the best one.
fn smallest_within_one_error(ranks: &[RankScore]) -> (usize, usize) {
    let better = |a: &RankScore, b: &RankScore| a.held_out.log_likelihood() > b.held_out.log_likelihood();
    let Some(best) = ranks.iter().reduce(|a, b| if better(b, a) { b } else { a }) else { return (1, 1) };
    let within = |r: &&RankScore| {
        let (behind, error) = r.held_out.behind(&best.held_out);
        let transitions: f64 = best.held_out.folds.iter().map(|s| s.transitions).sum();
        // A lead that is consistent and adds up to less than one nat over all transitions is no evidence either.
        behind <= error.max(1.0 / transitions)
    };
    (ranks.iter().find(within).unwrap_or(best).rank, best.rank)
}

fn try_priors(prepared: &[Prepared], rank: usize, settings: &SelectSettings) -> Result<Vec<PriorScore>> {
    let starts = prepared.par_iter().map(|fold| fold.fits.near(rank)).collect::<Result<Vec<_>>>()?;
    settings
        .priors
        .iter()
        .map(|&prior| {
            let scores = prepared.par_iter().zip(&starts).map(|(fold, start)| compared(fold, start, prior, settings));
            Ok(PriorScore { prior, held_out: HeldOut { folds: scores.collect::<Result<_>>()? } })
        })
        .collect()
}

fn best_prior(priors: &[PriorScore]) -> f64 {
    let better = |a: &PriorScore, b: &PriorScore| a.held_out.log_likelihood() > b.held_out.log_likelihood();
    priors.iter().reduce(|a, b| if better(b, a) { b } else { a }).map_or(0.0, |p| p.prior)
}

fn baseline(prepared: &[Prepared], model: Model, smoothing: Smoothing) -> Result<HeldOut> {
    on_folds(prepared, |fold| score(model, fold.fits.observed().counts(), fold.held_out, smoothing))
}

/// The empirical P at its best: the rival gets its own smoothing chosen, too.
fn best_empirical(prepared: &[Prepared], settings: &SelectSettings) -> Result<(f64, HeldOut)> {
    let mut best: Option<(f64, HeldOut)> = None;
    for pseudo in (-2..=10).map(|k| 10f64.powf(0.5 * f64::from(k))) {
        let held_out = baseline(prepared, Model::Empirical { pseudo }, settings.smoothing)?;
        if best.as_ref().is_none_or(|(_, b)| held_out.log_likelihood() > b.log_likelihood()) {
            best = Some((pseudo, held_out));
        }
    }
    best.ok_or(Error::Empty { what: "the list of pseudo-counts" })
}

fn check(settings: &SelectSettings) -> Result<()> {
    let wrong = |name, value: String, allowed| Err(Error::Setting { name, value, allowed });
    if settings.max_rank == 0 || settings.passes == 0 || settings.patience == 0 {
        return wrong("the highest rank, the passes or the patience of the selection", "0".into(), "each must be at least 1");
    }
    let bad = |p: &f64| !(*p >= 0.0 && p.is_finite());
    if settings.priors.is_empty() || settings.priors.iter().any(bad) || bad(&settings.first_prior) {
        return wrong("the strengths of the prior", format!("{:?}", settings.priors), "give at least one; each must be zero or positive");
    }
    Ok(())
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(s, n), x| (s + x, n + 1));
    sum / f64::from(n)
}

/// Of the mean: `sqrt(sum (x - mean)^2 / (n - 1) / n)`.
fn standard_error(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let centre = mean(values.clone());
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), x| (s + (x - centre) * (x - centre), n + 1.0));
    (sum / (n - 1.0) / n).sqrt()
}
