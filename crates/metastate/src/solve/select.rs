//! How many meta-states, and how strong a prior: chosen by the likelihood of held-out transitions. No truth is used.
//!
//! For each rank, and each fold held out in turn: spectral start, least squares and likelihood refit on the other folds, score on this
//! one. Where there are many pairs, a first look with few passes finds about where the best rank lies, and only the ranks there are fitted
//! with care.
//!
//! Folds differ from each other far more than models do on one fold, so models are compared fold by fold: rank r is *behind* the best by the
//! mean of its differences, with the standard error of that mean. The smallest rank that is behind by no more than one standard error is
//! chosen.

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
    /// Passes of the likelihood at each rank that is fitted with care, up to ten times as many where it still gains;
    /// a third in the first look at large data.
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
    /// Whether they come from the first look at large data, with few passes on two folds: the rank is far from the best.
    pub first_look: bool,
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
    /// All ranks tried, ascending; those far below the chosen one with the first prior.
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
const ROOM_BELOW: usize = 1;
/// Pairs from which on the ranks are looked at roughly first: with fewer, fitting all of them with care takes seconds.
const MANY_PAIRS: usize = 500_000;

/// Chooses rank and prior: all ranks with the first prior, then the prior at the best of them, then with that prior the ranks about it.
/// `watch(rank, mean score)` is told of each rank tried and may end the search by returning false.
pub fn select(folds: &Folds, settings: &SelectSettings, mut watch: impl FnMut(usize, f64) -> bool) -> Result<Choice> {
    check(settings)?;
    let max_rank = settings.max_rank.min(folds.whole().rows());
    let prepared = prepare(folds, max_rank, settings.seed)?;
    let search = Search { prepared: &prepared, settings };
    let care = if folds.whole().nonzeros() >= MANY_PAIRS { Care::Rough } else { Care::Ready };
    let (mut ranks, mut at_the_limit) = search.try_ranks(settings.first_prior, care, 1..=max_rank, None, &mut watch)?;
    let (before, _) = smallest_within_one_error(&ranks);
    // At rank one every prior gives the same law: two meta-states tell whether another prior would have found something.
    let tried_at = before.max(2).min(max_rank);
    let mut priors = search.try_priors(tried_at, settings.first_prior)?;
    let mut prior = best_prior(&priors);
    // The ranks again: from a little below the first choice, and further down while the lowest of them is the one chosen. Ranks below those
    // keep their first scores; they are far behind.
    let mut lowest = 1;
    if care == Care::Rough || prior != settings.first_prior {
        lowest = before.saturating_sub(ROOM_BELOW).max(1);
        ranks.truncate(lowest - 1);
        let known = priors.iter().find(|p| p.prior == prior).map(|p| (tried_at, &p.held_out));
        let (again, limit) = search.try_ranks(prior, Care::Ready, lowest..=max_rank, known, &mut watch)?;
        ranks.extend(again);
        at_the_limit = limit;
    }
    let (rank, best_rank) = loop {
        let (rank, best_rank) = smallest_within_one_error(&ranks[lowest - 1..]);
        if rank > lowest || lowest == 1 {
            break (rank, best_rank);
        }
        lowest -= 1;
        let (below, _) = search.try_ranks(prior, Care::Ready, lowest..=lowest, None, &mut watch)?;
        ranks.splice(lowest - 1..lowest, below);
    };
    if rank != before {
        priors = search.try_priors(rank, prior)?;
        prior = best_prior(&priors);
    }
    let independent = baseline(&prepared, Model::Independent, settings.smoothing)?;
    let empirical = best_empirical(&prepared, settings)?;
    Ok(Choice { rank, prior, best_rank, ranks, priors, independent, empirical, at_the_limit })
}

/// Chooses the strength of the prior at a given rank: the best, and all that were tried.
pub fn select_prior(folds: &Folds, rank: usize, settings: &SelectSettings) -> Result<(f64, Vec<PriorScore>)> {
    check(settings)?;
    let prepared = prepare(folds, rank, settings.seed)?;
    let priors = Search { prepared: &prepared, settings }.try_priors(rank, settings.first_prior)?;
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
/// How much sooner than asked for a rough comparison ends, and the folds it looks at.
const ROUGH: usize = 3;
const ROUGH_FOLDS: usize = 2;

/// How far fits go before they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// A few passes on some of the folds.
    Rough,
    /// One meta-state too many is behind by about `d / n` a transition, so a fit is ready when what it still gains is little beside that: with few
    /// transitions soon, with very many only after hundreds of passes.
    Ready,
}

impl Care {
    fn start(self, fits: &SpectralFits, rank: usize) -> Result<Factors> {
        match self {
            Care::Rough => fits.roughly(rank),
            Care::Ready => fits.near(rank),
        }
    }

    /// The folds that are looked at.
    fn folds<'a>(self, all: &'a [Prepared<'a>]) -> &'a [Prepared<'a>] {
        match self {
            Care::Rough => &all[..ROUGH_FOLDS.min(all.len())],
            Care::Ready => all,
        }
    }

    /// Passes at most, of so many asked for.
    fn longest(self, passes: usize) -> usize {
        match self {
            Care::Rough => passes.div_ceil(ROUGH),
            Care::Ready => LONGEST * passes,
        }
    }
}

/// What all comparisons share.
struct Search<'a> {
    prepared: &'a [Prepared<'a>],
    settings: &'a SelectSettings,
}

impl Search<'_> {
    /// Ranks upwards, until `patience` of them in a row were no better than the best before. One of them may be known already, from the search of
    /// the prior.
    fn try_ranks(
        &self,
        prior: f64,
        care: Care,
        tried: std::ops::RangeInclusive<usize>,
        known: Option<(usize, &HeldOut)>,
        watch: &mut impl FnMut(usize, f64) -> bool,
    ) -> Result<(Vec<RankScore>, bool)> {
        let mut ranks: Vec<RankScore> = Vec::new();
        let (max_rank, mut best, mut best_value) = (*tried.end(), *tried.start(), f64::NEG_INFINITY);
        for rank in tried {
            let held_out = match known {
                Some((known, held_out)) if known == rank => held_out.clone(),
                _ => on_folds(care.folds(self.prepared), |fold| self.compared(fold, &care.start(&fold.fits, rank)?, prior, care))?,
            };
            let value = held_out.log_likelihood();
            ranks.push(RankScore { rank, held_out, first_look: care == Care::Rough });
            if value > best_value {
                (best, best_value) = (rank, value);
            }
            if !watch(rank, value) || rank >= best + self.settings.patience {
                return Ok((ranks, false));
            }
        }
        Ok((ranks, best == max_rank))
    }

    /// Strengths of the prior from the one nearest to `from`, uphill until the score falls: it has one maximum, a weak prior lets the fit follow the noise
    /// and a strong one holds it back. Those tried, ascending.
    fn try_priors(&self, rank: usize, from: f64) -> Result<Vec<PriorScore>> {
        let starts = self.prepared.par_iter().map(|fold| fold.fits.near(rank)).collect::<Result<Vec<_>>>()?;
        let attempt = |prior: f64| -> Result<PriorScore> {
            let scores = self.prepared.par_iter().zip(&starts).map(|(fold, start)| self.compared(fold, start, prior, Care::Ready));
            Ok(PriorScore { prior, held_out: HeldOut { folds: scores.collect::<Result<_>>()? } })
        };
        let uphill = |first: &PriorScore, next: &mut dyn Iterator<Item = &f64>| -> Result<Vec<PriorScore>> {
            let (mut tried, mut before) = (Vec::new(), first.held_out.log_likelihood());
            for &prior in next {
                tried.push(attempt(prior)?);
                let value = tried[tried.len() - 1].held_out.log_likelihood();
                if value <= before {
                    break;
                }
                before = value;
            }
            Ok(tried)
        };
        let mut strengths = self.settings.priors.clone();
        strengths.sort_by(f64::total_cmp);
        let distance = |prior: f64| ((prior + f64::MIN_POSITIVE).ln() - (from + f64::MIN_POSITIVE).ln()).abs();
        let Some(nearest) = (0..strengths.len()).min_by(|a, b| distance(strengths[*a]).total_cmp(&distance(strengths[*b]))) else {
            return Ok(Vec::new());
        };
        let first = attempt(strengths[nearest])?;
        let stronger = uphill(&first, &mut strengths[nearest + 1..].iter())?;
        // Where the next stronger one was better, weaker ones are not.
        let weaker = if stronger.len() > 1 { Vec::new() } else { uphill(&first, &mut strengths[..nearest].iter().rev())? };
        Ok(weaker.into_iter().rev().chain([first]).chain(stronger).collect())
    }

    /// The score of the likelihood refit from a start.
    fn compared(&self, fold: &Prepared, start: &Factors, prior: f64, care: Care) -> Result<Score> {
        let (observed, passes) = (fold.fits.observed(), self.settings.passes);
        let negligible = NEGLIGIBLE * observed.states() as f64 / observed.transitions();
        let refit = LikelihoodSettings { prior, max_passes: care.longest(passes), tolerance: negligible.min(1e-7), accelerate: true };
        let mut values: Vec<f64> = Vec::new();
        let goes_on = |done: usize, value: f64| {
            values.push(value);
            let before = values[(values.len() - 1).saturating_sub(JUDGED)];
            done < passes || value - before > JUDGED as f64 * negligible
        };
        let x = likelihood_watched(observed, start, &refit, goes_on)?.factors;
        score(Model::LowRank(&x), observed.counts(), fold.held_out, self.settings.smoothing)
    }
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
