//! How many meta-states, and how strong a prior: chosen by the likelihood of held-out transitions. No truth is used.
//!
//! For each rank, and each fold held out in turn: spectral start, least squares and likelihood refit on the other folds, score on this
//! one. Where the spectrum of the counts has an edge (`edge`) the rank lies there; else a first look with few passes on some folds at ranks 1, 2, 4, 8 and so on finds about where.
//! The ranks there are fitted with care.
//!
//! Folds differ from each other far more than models do on one fold, so models are compared fold by fold: rank r is *behind* the best by the
//! mean of its differences, with the standard error of that mean. The smallest rank that is behind by no more than one standard error is
//! chosen.
//!
//! The best of many scores is partly the luckiest, so what is reported is less: the mean over the folds of what the best model *of each fold* is ahead of the best model of all
//! is taken off (Tibshirani and Tibshirani 2009). It costs no further fit.

mod edge;
mod held_out;
mod search;

use edge::edge;
pub use held_out::{Attempt, HeldOut};
use held_out::{best, first_within_one_error, selection_bias};
use search::{Found, Origin, RankSearch, Stop};

use super::score::Smoothing;
use super::settings::MAX_RANK;
use crate::counts::Folds;
use crate::error::{Error, Result};

/// Choices of the selection.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectSettings {
    /// Ranks are tried up to this one.
    pub max_rank: usize,
    /// A rank that is fitted with care gets at most ten times as many passes of the likelihood, and mostly ends much sooner; a first look gets a third.
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
#[non_exhaustive]
pub struct Choice {
    /// The rank.
    pub rank: usize,
    /// The strength of the prior.
    pub prior: f64,
    /// That rank with that prior: its scores are the ones to report.
    pub chosen: Attempt,
    /// The rank with the best mean score.
    pub best_rank: usize,
    /// All ranks tried, ascending; those far from the chosen one by a first look, with the first prior.
    pub ranks: Vec<Attempt>,
    /// Strengths tried at the chosen rank.
    pub priors: Vec<Attempt>,
    /// Rank one: the next place does not depend on the present one.
    pub independent: HeldOut,
    /// The empirical P with as many pseudo-counts a state as served it best.
    pub empirical: (f64, HeldOut),
    /// The rank at which the spectrum of the counts has an edge, where it has one.
    pub edge: Option<usize>,
    /// Whether the best rank is the highest that was allowed.
    pub at_the_limit: bool,
    /// Whether the rank was given: only its prior was chosen, and no other rank was tried.
    pub given: bool,
}

impl Choice {
    /// The entry of a rank.
    #[must_use]
    pub fn at(&self, rank: usize) -> Option<&Attempt> {
        self.ranks.iter().find(|r| r.rank == rank)
    }

    /// Mean held-out log-likelihood of a rank over all folds, with its standard error. A first look saw some folds only, and folds differ: there
    /// it is the best rank's mean less what it is behind on those folds, and no error.
    #[must_use]
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
    #[must_use]
    pub fn selection_bias(&self) -> f64 {
        selection_bias(self.candidates())
    }

    /// The mean held-out log-likelihood a transition of what was chosen, less that bias.
    #[must_use]
    pub fn log_likelihood(&self) -> f64 {
        self.chosen.held_out.log_likelihood() - self.selection_bias()
    }

    /// By how many standard errors the next smaller rank is behind the chosen one: how clear the choice is. Infinite at rank one.
    #[must_use]
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
    #[must_use]
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
            c if c >= TOLD_CLEAR => format!("clear: rank {} is {c:.0} standard errors worse", self.rank - 1),
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

/// A choice is told to be clear where the rank below is worse by so many standard errors.
const TOLD_CLEAR: f64 = 3.0;
/// Ranks that a first look climbs by.
const LADDER: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Standard errors by which the last rank is behind when the first look goes no higher.
const CLEAR: f64 = 5.0;
/// The same where so many last ranks are behind, by however little.
const LAST_BEHIND: usize = 2;
/// Between two ranks closer than this share of the larger a first look does not tell which is better.
const CLOSE: f64 = 0.1;

/// How far a choice is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Fits on folds made so far,
    pub fits: usize,
    /// and about how many it takes in all: never fewer than one more attempt while it goes on.
    pub about: usize,
    /// The best rank so far and its mean held-out log-likelihood a transition: of the careful fits, where there are any.
    pub best: Option<(usize, f64)>,
}

/// First looks, and careful attempts, that a choice usually takes: three priors and two neighbours.
const USUAL_LOOKS: usize = 9;
const USUAL_ATTEMPTS: usize = 5;
/// Attempts where the rank is given: priors alone.
const USUAL_PRIORS: usize = 3;

/// How far a choice on so many folds is after these attempts; `given` says that only the prior is chosen.
#[must_use]
pub fn outlook(attempts: &[Attempt], folds: usize, given: bool) -> Outlook {
    let fits = attempts.iter().map(|a| a.held_out.folds.len()).sum();
    let careful: Vec<Attempt> = attempts.iter().filter(|a| !a.first_look).cloned().collect();
    // First looks come before all careful fits; where the spectrum has an edge there are none.
    let looking = !attempts.is_empty() && careful.is_empty();
    let looks = if looking { USUAL_LOOKS.saturating_sub(attempts.len()).max(1) * attempts[0].held_out.folds.len() } else { 0 };
    let usual = if given { USUAL_PRIORS } else { USUAL_ATTEMPTS };
    let after_looks = attempts.len() - attempts.iter().take_while(|a| a.first_look).count();
    let left = usual.saturating_sub(after_looks).max(1) * folds;
    let best = best(if careful.is_empty() { attempts } else { &careful }).map(|a| (a.rank, a.held_out.log_likelihood()));
    Outlook { fits, about: fits + looks + left, best }
}

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
    finished(choose_at(&mut RankSearch::new(folds, settings, tried, watch), rank, settings))
}

fn choose_at(search: &mut RankSearch, rank: usize, settings: &SelectSettings) -> Found<Choice> {
    let priors = search.climb_priors(rank, settings.first_prior)?;
    let chosen = best(&priors).cloned().ok_or(Error::Empty { what: "the list of priors" })?;
    let (independent, empirical) = search.baselines()?;
    let (prior, ranks) = (chosen.prior, vec![chosen.clone()]);
    Ok(Choice { rank, prior, chosen, best_rank: rank, ranks, priors, independent, empirical, edge: None, at_the_limit: false, given: true })
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
    let max_rank = settings.max_rank.min(folds.whole().rows()).min(folds.whole().cols());
    let edge = edge(folds, max_rank, settings.seed)?;
    finished(choose(&mut RankSearch::new(folds, settings, tried, watch), max_rank, edge, settings))
}

fn finished<T>(found: Found<T>) -> Result<Option<T>> {
    match found {
        Ok(choice) => Ok(Some(choice)),
        Err(Stop::Ended) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// About where the rank lies: at the edge of the spectrum, or by a first look. The prior there, and with that prior and with care the ranks about it.
fn choose(search: &mut RankSearch, max_rank: usize, edge: Option<usize>, settings: &SelectSettings) -> Found<Choice> {
    let centre = match edge {
        Some(rank) => rank,
        None => first_look(search, max_rank)?,
    };
    // At rank one every prior gives the same law: two meta-states tell whether another prior would have found something.
    let mut priors = search.climb_priors(centre.max(2).min(max_rank), settings.first_prior)?;
    let mut prior = best(&priors).map_or(settings.first_prior, |a| a.prior);
    let compared = around(search, centre, prior, max_rank)?;
    let careful: Vec<Attempt> = compared.iter().filter(|a| !a.first_look).cloned().collect();
    let rank = first_within_one_error(&careful).map_or(centre, |a| a.rank);
    let best_rank = best(&careful).map_or(centre, |a| a.rank);
    if rank != centre {
        priors = search.climb_priors(rank, prior)?;
        prior = best(&priors).map_or(prior, |a| a.prior);
    }
    let looked_at = search.attempts().iter().filter(|a| a.first_look && compared.iter().all(|c| c.rank != a.rank));
    let mut ranks: Vec<Attempt> = looked_at.chain(&compared).cloned().collect();
    ranks.sort_by_key(|a| a.rank);
    let (independent, empirical) = search.baselines()?;
    // Known already, whether or not the prior was chosen anew after the rank had moved.
    let chosen = search.careful(rank, prior, Origin::Spectral, None)?;
    let at_the_limit = best_rank == max_rank;
    Ok(Choice { rank, prior, chosen, best_rank, ranks, priors, independent, empirical, edge, at_the_limit, given: false })
}

/// A first look at ranks 1, 2, 4, 8 and so on, then closer and closer to the best of them: the curve over ranks has one maximum. Hands back the smallest rank that is as good as the best,
/// as far as a first look can tell.
fn first_look(search: &mut RankSearch, max_rank: usize) -> Found<usize> {
    let mut tried: Vec<Attempt> = Vec::new();
    for rank in LADDER.into_iter().filter(|r| *r < max_rank).chain([max_rank]) {
        tried.push(search.first_look(rank)?);
        if best(&tried).is_some_and(|best| beyond(&tried, best)) {
            break;
        }
    }
    // The best lies between the neighbours of the best so far.
    while let Some(between) = best(&tried).and_then(|b| widest_gap_beside(&tried, b.rank)) {
        let at = tried.partition_point(|a| a.rank < between);
        tried.insert(at, search.first_look(between)?);
    }
    // The smallest that is within one standard error lies between the first of them that is and the one before it.
    while let Some(k) = first_within_one_error(&tried).and_then(|a| tried.iter().position(|t| t.rank == a.rank)).filter(|k| *k > 0) {
        let Some(between) = middle(tried[k - 1].rank, tried[k].rank) else { break };
        tried.insert(k, search.first_look(between)?);
    }
    Ok(first_within_one_error(&tried).map_or(1, |a| a.rank))
}

/// Whether the last rank is clearly behind the best, or the last ones are behind it.
fn beyond(tried: &[Attempt], best: &Attempt) -> bool {
    let (behind, error) = tried.last().map_or((0.0, 0.0), |last| last.held_out.behind(&best.held_out));
    behind > CLEAR * error || tried.iter().rev().take_while(|a| a.rank > best.rank).count() >= LAST_BEHIND
}

/// The middle of the wider gap between a rank and its neighbours among those tried, where one is wide enough to matter.
fn widest_gap_beside(tried: &[Attempt], rank: usize) -> Option<usize> {
    let at = tried.iter().position(|a| a.rank == rank)?;
    let below = at.checked_sub(1).map(|k| (tried[k].rank, rank));
    let above = tried.get(at + 1).map(|a| (rank, a.rank));
    let gaps = [below, above].into_iter().flatten().filter(|(a, b)| middle(*a, *b).is_some());
    gaps.max_by_key(|(a, b)| b - a).and_then(|(a, b)| middle(a, b))
}

/// The rank in the middle, if the two are not close.
fn middle(a: usize, b: usize) -> Option<usize> {
    (b - a > 1 && (b - a) as f64 > CLOSE * b as f64).then_some(a + (b - a) / 2)
}

/// With care: the centre, then the rank below the one that would be chosen and the rank above the best, until both are known; upwards in longer and longer strides as long as the highest is
/// the best. A rank that is clearly behind the best so far after the first folds is out.
fn around(search: &mut RankSearch, centre: usize, prior: f64, max_rank: usize) -> Found<Vec<Attempt>> {
    let mut tried = vec![search.careful(centre, prior, Origin::Spectral, None)?];
    let mut stride = 1;
    loop {
        let careful: Vec<Attempt> = tried.iter().filter(|a| !a.first_look).cloned().collect();
        let known = |rank: usize| tried.iter().any(|a| a.rank == rank);
        let highest = tried[tried.len() - 1].rank;
        let chosen = first_within_one_error(&careful).map_or(centre, |a| a.rank);
        let rival = best(&careful);
        let top = rival.map_or(centre, |a| a.rank);
        let (next, origin) = if chosen > 1 && !known(chosen - 1) && (top < highest || tried.len() == 1 || top == max_rank) {
            (chosen - 1, Origin::Merged)
        } else if top == highest && highest < max_rank {
            let next = (highest + stride).min(max_rank);
            stride *= 2;
            (next, if next == centre + 1 { Origin::Spare } else { Origin::Spectral })
        } else if top < max_rank && !known(top + 1) {
            (top + 1, Origin::Spectral)
        } else {
            return Ok(tried);
        };
        let attempt = search.careful(next, prior, origin, rival)?;
        let at = tried.partition_point(|a| a.rank < next);
        tried.insert(at, attempt);
    }
}

/// Chooses the strength of the prior at a given rank: the best, and all that were tried.
pub fn select_prior(folds: &Folds, rank: usize, settings: &SelectSettings) -> Result<(f64, Vec<Attempt>)> {
    check(settings)?;
    let go_on = &mut |_: &[Attempt]| true;
    let climbed = RankSearch::new(folds, settings, Vec::new(), go_on).climb_priors(rank, settings.first_prior);
    let priors = finished(climbed)?.unwrap_or_default();
    Ok((best(&priors).map_or(settings.first_prior, |a| a.prior), priors))
}

fn check(settings: &SelectSettings) -> Result<()> {
    let wrong = |name, value: String, allowed| Err(Error::Setting { name, value, allowed });
    if settings.max_rank == 0 || settings.passes == 0 {
        return wrong("the highest rank or the passes of the selection", "0".into(), "each must be at least 1");
    }
    let bad = |p: &f64| !(*p >= 0.0 && p.is_finite());
    if settings.priors.is_empty() || settings.priors.iter().any(bad) || bad(&settings.first_prior) {
        return wrong("the strengths of the prior", format!("{:?}", settings.priors), "give at least one; each must be zero or positive");
    }
    Ok(())
}
