//! How many meta-states, and how strong a prior: chosen by the likelihood of held-out transitions. No truth is used.
//!
//! For each rank, and each fold held out in turn: spectral start, least squares and likelihood refit on the other folds, score on this
//! one. A first look with few passes on some folds finds about where the best rank lies, and the ranks there are fitted with care.
//!
//! Folds differ from each other far more than models do on one fold, so models are compared fold by fold: rank r is *behind* the best by the
//! mean of its differences, with the standard error of that mean. The smallest rank that is behind by no more than one standard error is
//! chosen.
//!
//! The best of many scores is partly the luckiest, so what is reported is less: the mean over the folds of what the best model *of each fold* is ahead of the best model of all
//! is taken off (Tibshirani and Tibshirani 2009). It costs no further fit.

mod held_out;
mod search;

pub use held_out::{Attempt, HeldOut};
use held_out::{best, first_within_one_error, selection_bias};
use search::{Care, RankSearch, Stop};

use super::score::{Model, Smoothing};
use super::settings::MAX_RANK;
use crate::counts::Folds;
use crate::error::{Error, Result};

/// Choices of the selection.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectSettings {
    /// Ranks are tried up to this one.
    pub max_rank: usize,
    /// Ranks tried beyond the best before the search ends.
    pub patience: usize,
    /// Passes of the likelihood at each rank that is fitted with care, up to ten times as many where it still gains;
    /// a third in the first look.
    pub passes: usize,
    /// Strength of the prior in the first look, and where the search of the best one begins.
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
            max_rank: MAX_RANK,
            patience: 3,
            passes: 30,
            first_prior: 5.0,
            priors: vec![0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0],
            smoothing: Smoothing::default(),
            seed: 0,
        }
    }
}

/// What was chosen, and what it was chosen from.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The rank.
    pub rank: usize,
    /// The strength of the prior.
    pub prior: f64,
    /// That rank with that prior: its scores are the ones to report.
    pub chosen: Attempt,
    /// The rank with the best mean score.
    pub best_rank: usize,
    /// All ranks tried, ascending; in large data those far from the chosen one by a first look, with the first prior.
    pub ranks: Vec<Attempt>,
    /// Strengths tried at the chosen rank.
    pub priors: Vec<Attempt>,
    /// Rank one: the next place does not depend on the present one.
    pub independent: HeldOut,
    /// The empirical P with as many pseudo-counts a state as served it best.
    pub empirical: (f64, HeldOut),
    /// Whether the search ended because no higher rank was allowed.
    pub at_the_limit: bool,
    /// Whether the rank was given: only its prior was chosen, and no other rank was tried.
    pub given: bool,
}

impl Choice {
    /// The entry of a rank.
    pub fn at(&self, rank: usize) -> Option<&Attempt> {
        self.ranks.iter().find(|r| r.rank == rank)
    }

    /// Mean held-out log-likelihood of a rank over all folds, with its standard error. A first look saw some folds only, and folds differ: there
    /// it is the best rank's mean less what it is behind on those folds, and no error.
    pub fn mean_score(&self, rank: usize) -> Option<(f64, Option<f64>)> {
        let (attempt, best) = (self.at(rank)?, &self.at(self.best_rank)?.held_out);
        Some(match attempt.first_look {
            true => (best.log_likelihood() - attempt.held_out.behind(best).0, None),
            false => (attempt.held_out.log_likelihood(), Some(attempt.held_out.standard_error())),
        })
    }

    /// All that was fitted with care on all folds, and so could have been chosen: ranks, then strengths of the prior.
    fn candidates(&self) -> impl Iterator<Item = &Attempt> {
        let folds = self.chosen.held_out.folds.len();
        let all = self.ranks.iter().chain(&self.priors).chain([&self.chosen]);
        all.filter(move |a| !a.first_look && a.held_out.folds.len() == folds)
    }

    /// By how much the reported score flatters, because rank and prior were chosen on the folds that score them: see the head of this module.
    pub fn selection_bias(&self) -> f64 {
        selection_bias(self.candidates())
    }

    /// The mean held-out log-likelihood a transition of what was chosen, less that bias.
    pub fn log_likelihood(&self) -> f64 {
        self.chosen.held_out.log_likelihood() - self.selection_bias()
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
        let number = if self.rank == 1 { "meta-state" } else { "meta-states" };
        if self.given {
            return format!(
                "{} {number}: as asked for ({:.5} a transition over {} folds, {:.1e} taken off for the choice of the prior; empirical P {:.5}, independent {:.5}).",
                self.rank,
                self.log_likelihood(),
                self.chosen.held_out.folds.len(),
                self.selection_bias(),
                self.empirical.1.log_likelihood(),
                self.independent.log_likelihood()
            );
        }
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
        format!(
            "{} {number}: {why} ({:.5} a transition over {} folds, {:.1e} taken off for having been chosen on them; empirical P {:.5}, independent {:.5}); {clear}{limit}.",
            self.rank,
            self.log_likelihood(),
            self.chosen.held_out.folds.len(),
            self.selection_bias(),
            self.empirical.1.log_likelihood(),
            self.independent.log_likelihood()
        )
    }
}

/// Ranks below the first look's choice that are fitted with care, too.
const ROOM_BELOW: usize = 1;
/// With fewer pairs all ranks are: it takes seconds, and people look at the curve.
const MANY_PAIRS: usize = 500_000;
/// Standard errors by which a rank fitted with care is behind when the first look need not be confirmed at higher ones.
const CLEAR: f64 = 5.0;

/// Chooses rank and prior.
pub fn select(folds: &Folds, settings: &SelectSettings) -> Result<Choice> {
    select_watched(folds, settings, Vec::new(), &mut |_| true)?.ok_or(Error::Empty { what: "the list of attempts" })
}

/// A rank that is given: its prior is chosen, and its score measured beside the two baselines. Goes on from what was tried, and may be ended, as [`select_watched`].
pub fn select_at(
    folds: &Folds,
    rank: usize,
    settings: &SelectSettings,
    tried: Vec<Attempt>,
    watch: &mut dyn FnMut(&[Attempt]) -> bool,
) -> Result<Option<Choice>> {
    check(settings)?;
    match choose_at(&mut RankSearch::new(folds, rank, settings, tried, watch)?, rank, settings) {
        Ok(choice) => Ok(Some(choice)),
        Err(Stop::Ended) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn choose_at(search: &mut RankSearch, rank: usize, settings: &SelectSettings) -> std::result::Result<Choice, Stop> {
    let priors = search.climb_priors(rank, settings.first_prior)?;
    let prior = best(&priors).map_or(settings.first_prior, |a| a.prior);
    let (independent, empirical) = (search.baseline(Model::Independent)?, search.best_empirical()?);
    let chosen = search.attempt(rank, prior, Care::Ready)?;
    let ranks = vec![chosen.clone()];
    Ok(Choice { rank, prior, chosen, best_rank: rank, ranks, priors, independent, empirical, at_the_limit: false, given: true })
}

/// Chooses rank and prior as [`select`] does, going on from what an earlier search on the same folds with the same settings has tried. `watch` is told of all attempts after each new one, and
/// may end the search by returning false: then nothing is chosen.
pub fn select_watched(
    folds: &Folds,
    settings: &SelectSettings,
    tried: Vec<Attempt>,
    watch: &mut dyn FnMut(&[Attempt]) -> bool,
) -> Result<Option<Choice>> {
    check(settings)?;
    let max_rank = settings.max_rank.min(folds.whole().rows());
    let whole_curve = folds.whole().nonzeros() < MANY_PAIRS;
    match choose(&mut RankSearch::new(folds, max_rank, settings, tried, watch)?, max_rank, whole_curve, settings) {
        Ok(choice) => Ok(Some(choice)),
        Err(Stop::Ended) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// A first look at all ranks, the prior at the best of them, then with that prior and with care the ranks about it.
fn choose(search: &mut RankSearch, max_rank: usize, whole_curve: bool, settings: &SelectSettings) -> std::result::Result<Choice, Stop> {
    // So many ranks in a row were no better than the best before.
    let patient = |tried: &[Attempt], best: &Attempt| tried.last().is_some_and(|last| last.rank >= best.rank + settings.patience);
    let clearly_behind = |tried: &[Attempt], best: &Attempt| {
        let (behind, error) = tried.last().map_or((0.0, 0.0), |last| last.held_out.behind(&best.held_out));
        behind > CLEAR * error
    };
    let (mut ranks, _) = search.ranks_upwards(settings.first_prior, Care::Rough, 1..=max_rank, patient)?;
    let before = first_within_one_error(&ranks).map_or(1, |a| a.rank);
    // At rank one every prior gives the same law: two meta-states tell whether another prior would have found something.
    let mut priors = search.climb_priors(before.max(2).min(max_rank), settings.first_prior)?;
    let mut prior = best(&priors).map_or(settings.first_prior, |a| a.prior);
    // From a little below the first look's choice, and further down while the lowest of them is the one chosen.
    let mut lowest = before.saturating_sub(ROOM_BELOW).max(1);
    let enough = |tried: &[Attempt], best: &Attempt| patient(tried, best) || (!whole_curve && clearly_behind(tried, best));
    let (with_care, at_the_limit) = search.ranks_upwards(prior, Care::Ready, lowest..=max_rank, enough)?;
    let highest = lowest - 1 + with_care.len();
    let above = ranks.split_off(highest.min(ranks.len()));
    ranks.truncate(lowest - 1);
    ranks.extend(with_care);
    if whole_curve {
        ranks[..lowest - 1].iter_mut().try_for_each(|r| search.attempt(r.rank, prior, Care::Ready).map(|a| *r = a))?;
        lowest = 1;
    }
    let (rank, best_rank) = loop {
        let compared = &ranks[lowest - 1..];
        let rank = first_within_one_error(compared).map_or(before, |a| a.rank);
        let best_rank = best(compared).map_or(before, |a| a.rank);
        if rank > lowest || lowest == 1 {
            break (rank, best_rank);
        }
        lowest -= 1;
        ranks[lowest - 1] = search.attempt(lowest, prior, Care::Ready)?;
    };
    if rank != before {
        priors = search.climb_priors(rank, prior)?;
        prior = best(&priors).map_or(prior, |a| a.prior);
    }
    if !whole_curve {
        ranks.extend(above);
    }
    let (independent, empirical) = (search.baseline(Model::Independent)?, search.best_empirical()?);
    // Known already, whether or not the prior was chosen anew after the rank had moved.
    let chosen = search.attempt(rank, prior, Care::Ready)?;
    Ok(Choice { rank, prior, chosen, best_rank, ranks, priors, independent, empirical, at_the_limit, given: false })
}

/// Chooses the strength of the prior at a given rank: the best, and all that were tried.
pub fn select_prior(folds: &Folds, rank: usize, settings: &SelectSettings) -> Result<(f64, Vec<Attempt>)> {
    check(settings)?;
    let go_on = &mut |_: &[Attempt]| true;
    let priors = match RankSearch::new(folds, rank, settings, Vec::new(), go_on)?.climb_priors(rank, settings.first_prior) {
        Ok(priors) => priors,
        Err(Stop::Ended) => Vec::new(),
        Err(Stop::Failed(error)) => return Err(error),
    };
    Ok((best(&priors).map_or(settings.first_prior, |a| a.prior), priors))
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
