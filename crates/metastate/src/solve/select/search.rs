//! The fits behind a choice: each rank and prior is fitted on every fold held out in turn, once. What was tried is kept, so that a search that was
//! cut off goes on from there.

use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::SelectSettings;
use super::held_out::{Attempt, HeldOut, best};
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::linalg::Csr;
use crate::solve::problem::Factors;
use crate::solve::refit::{LikelihoodSettings, SpectralFits, likelihood_watched};
use crate::solve::score::{Model, Score, score};

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
pub(super) enum Care {
    /// A few passes from the plain spectral start, on some of the folds.
    Rough,
    /// One meta-state too many is behind by about `d / n` a transition, so a fit is ready when what it still gains is little beside that: with few
    /// transitions soon, with very many only after hundreds of passes.
    Ready,
}

/// Why there is no result.
pub(super) enum Stop {
    /// The one who watches has ended the search.
    Ended,
    /// Something is wrong with the data.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

type Found<T> = std::result::Result<T, Stop>;

/// A fold with what all ranks need.
struct Prepared<'a> {
    fits: SpectralFits,
    held_out: &'a Csr,
}

impl Prepared<'_> {
    /// The score of the likelihood refit from a start.
    fn compared(&self, start: &Factors, prior: f64, care: Care, settings: &SelectSettings) -> Result<Score> {
        let (observed, passes) = (self.fits.observed(), settings.passes);
        let negligible = NEGLIGIBLE * observed.states() as f64 / observed.transitions();
        let max_passes = match care {
            Care::Rough => passes.div_ceil(ROUGH),
            Care::Ready => LONGEST * passes,
        };
        let refit = LikelihoodSettings { prior, max_passes, tolerance: negligible.min(1e-7), accelerate: true };
        let mut values: Vec<f64> = Vec::new();
        let goes_on = |done: usize, value: f64| {
            values.push(value);
            let before = values[(values.len() - 1).saturating_sub(JUDGED)];
            done < passes || value - before > JUDGED as f64 * negligible
        };
        let x = likelihood_watched(observed, start, &refit, goes_on)?.factors;
        self.score(Model::LowRank(&x), settings)
    }

    fn score(&self, model: Model, settings: &SelectSettings) -> Result<Score> {
        score(model, self.fits.observed().counts(), self.held_out, settings.smoothing)
    }
}

/// What all comparisons share, and what was tried so far.
pub(super) struct RankSearch<'a> {
    prepared: Vec<Prepared<'a>>,
    settings: &'a SelectSettings,
    attempts: Vec<Attempt>,
    /// Told of all attempts after each new one; false ends the search.
    watch: &'a mut dyn FnMut(&[Attempt]) -> bool,
    /// Where the careful fits of a rank start, fold by fold: several priors are tried from there.
    starts: (usize, Vec<Factors>),
}

impl<'a> RankSearch<'a> {
    /// With what an earlier search on the same folds has tried.
    pub fn new(
        folds: &'a Folds,
        max_rank: usize,
        settings: &'a SelectSettings,
        attempts: Vec<Attempt>,
        watch: &'a mut dyn FnMut(&[Attempt]) -> bool,
    ) -> Result<Self> {
        let prepared = (0..folds.len())
            .into_par_iter()
            .map(|f| Ok(Prepared { fits: SpectralFits::new(folds.training(f)?, max_rank, settings.seed)?, held_out: folds.held_out(f) }))
            .collect::<Result<_>>()?;
        Ok(RankSearch { prepared, settings, attempts, watch, starts: (0, Vec::new()) })
    }

    /// Ranks upwards, until `enough(attempts, best)`; whether the best is the last allowed.
    pub fn ranks_upwards(
        &mut self,
        prior: f64,
        care: Care,
        ranks: RangeInclusive<usize>,
        enough: impl Fn(&[Attempt], &Attempt) -> bool,
    ) -> Found<(Vec<Attempt>, bool)> {
        let (max_rank, mut tried) = (*ranks.end(), Vec::new());
        for rank in ranks {
            tried.push(self.attempt(rank, prior, care)?);
            if best(&tried).is_some_and(|best| enough(&tried, best)) {
                return Ok((tried, false));
            }
        }
        let at_the_limit = best(&tried).is_some_and(|best| best.rank == max_rank);
        Ok((tried, at_the_limit))
    }

    /// Strengths of the prior from the one nearest to `from`, stronger or weaker as long as the score rises: it has one maximum, a weak prior lets the fit follow the noise
    /// and a strong one holds it back. Those tried, ascending.
    pub fn climb_priors(&mut self, rank: usize, from: f64) -> Found<Vec<Attempt>> {
        let mut strengths = self.settings.priors.clone();
        strengths.sort_by(f64::total_cmp);
        let distance = |prior: f64| ((prior + f64::MIN_POSITIVE).ln() - (from + f64::MIN_POSITIVE).ln()).abs();
        let Some(nearest) = (0..strengths.len()).min_by(|a, b| distance(strengths[*a]).total_cmp(&distance(strengths[*b]))) else {
            return Ok(Vec::new());
        };
        let first = self.attempt(rank, strengths[nearest], Care::Ready)?;
        let stronger = self.climb(rank, &first, strengths[nearest + 1..].iter().copied())?;
        // Where the next stronger one was better, weaker ones are not.
        let weaker = match stronger.len() {
            0 | 1 => self.climb(rank, &first, strengths[..nearest].iter().rev().copied())?,
            _ => Vec::new(),
        };
        Ok(weaker.into_iter().rev().chain([first]).chain(stronger).collect())
    }

    /// Further priors in the order given, until the score falls.
    fn climb(&mut self, rank: usize, first: &Attempt, priors: impl Iterator<Item = f64>) -> Found<Vec<Attempt>> {
        let (mut tried, mut before) = (Vec::new(), first.held_out.log_likelihood());
        for prior in priors {
            let attempt = self.attempt(rank, prior, Care::Ready)?;
            let value = attempt.held_out.log_likelihood();
            tried.push(attempt);
            if value <= before {
                break;
            }
            before = value;
        }
        Ok(tried)
    }

    /// One rank with one prior: known already, or fitted now.
    pub fn attempt(&mut self, rank: usize, prior: f64, care: Care) -> Found<Attempt> {
        let first_look = care == Care::Rough;
        if let Some(known) = self.attempts.iter().find(|a| a.rank == rank && a.prior == prior && a.first_look == first_look) {
            return Ok(known.clone());
        }
        let settings = self.settings;
        let folds = match care {
            Care::Rough => {
                let some = &self.prepared[..ROUGH_FOLDS.min(self.prepared.len())];
                some.par_iter().map(|fold| fold.compared(&fold.fits.start(rank)?, prior, care, settings)).collect::<Result<_>>()?
            }
            Care::Ready => {
                self.prepare_starts(rank)?;
                let starts = self.starts.1.par_iter();
                self.prepared
                    .par_iter()
                    .zip(starts)
                    .map(|(fold, start)| fold.compared(start, prior, care, settings))
                    .collect::<Result<_>>()?
            }
        };
        let attempt = Attempt { rank, prior, first_look, held_out: HeldOut { folds } };
        self.attempts.push(attempt.clone());
        if (self.watch)(&self.attempts) { Ok(attempt) } else { Err(Stop::Ended) }
    }

    fn prepare_starts(&mut self, rank: usize) -> Result<()> {
        if self.starts.0 != rank {
            self.starts = (rank, Vec::new());
            self.starts.1 = self.prepared.par_iter().map(|fold| fold.fits.near(rank)).collect::<Result<_>>()?;
        }
        Ok(())
    }

    /// A model that needs no fit, on all folds.
    pub fn baseline(&self, model: Model) -> Result<HeldOut> {
        let settings = self.settings;
        Ok(HeldOut { folds: self.prepared.par_iter().map(|fold| fold.score(model, settings)).collect::<Result<_>>()? })
    }

    /// The empirical P at its best: the rival gets its own smoothing chosen, too. Pseudo-counts a state and scores.
    pub fn best_empirical(&self) -> Result<(f64, HeldOut)> {
        let mut best: Option<(f64, HeldOut)> = None;
        for pseudo in (-2..=10).map(|k| 10f64.powf(0.5 * f64::from(k))) {
            let held_out = self.baseline(Model::Empirical { pseudo })?;
            if best.as_ref().is_none_or(|(_, b)| held_out.log_likelihood() > b.log_likelihood()) {
                best = Some((pseudo, held_out));
            }
        }
        best.ok_or(Error::Empty { what: "the list of pseudo-counts" })
    }
}
