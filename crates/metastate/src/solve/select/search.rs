//! The fits behind a choice: each rank and prior is fitted on folds held out in turn, once. What was tried is kept, so that a search that was
//! cut off goes on from there; fits that later ones start from are made again then, to the same bits.

use rayon::prelude::*;

use super::SelectSettings;
use super::held_out::{Attempt, HeldOut};
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::linalg::Csr;
use crate::solve::problem::Factors;
use crate::solve::refit::{LikelihoodSettings, SpectralFits, likelihood_watched, merge_nearest};
use crate::solve::score::{Model, Score, score};

/// What a fit may still gain a pass when it is compared, in units of `d / n`: one meta-state too many is behind by about `d / n` a transition, so a fit is
/// ready when what it still gains is little beside that. With few transitions that is soon, with very many only after hundreds of passes.
const NEGLIGIBLE: f64 = 3e-3;
/// Passes over which that is judged: two extrapolated pairs.
const JUDGED: usize = 4;
/// How much longer than asked for a fit may take to get there.
const LONGEST: usize = 10;
/// How much sooner than asked for a first look ends.
const ROUGH: usize = 3;
/// Folds that a first look sees, and after which a careful comparison may be over.
const FIRST_FOLDS: usize = 2;
/// Standard errors behind, on those folds, at which it is.
const CLEARLY: f64 = 5.0;
/// Careful fits that are kept for others to start from.
const KEPT: usize = 3;

/// Where the careful fits of a rank and a prior start, fold by fold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// From the fold's own directions: see [`SpectralFits::near`].
    Spectral,
    /// From the fits with this other prior.
    OtherPrior(f64),
    /// From the fits with one meta-state more and the same prior, the two most alike made one.
    Merged,
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

pub(super) type Found<T> = std::result::Result<T, Stop>;

/// A fold with what all ranks need.
struct Prepared<'a> {
    fits: SpectralFits,
    held_out: &'a Csr,
}

impl Prepared<'_> {
    /// A few passes from the plain spectral start: tells about where the best rank lies.
    fn first_look(&self, rank: usize, prior: f64, settings: &SelectSettings) -> Result<Score> {
        let refit =
            LikelihoodSettings { prior, max_passes: settings.passes.div_ceil(ROUGH), tolerance: self.negligible(), accelerate: true };
        let x = likelihood_watched(self.fits.observed(), &self.fits.start(rank)?, &refit, |_, _| true)?.factors;
        self.score(Model::LowRank(&x), settings)
    }

    /// The likelihood from a start until what it still gains is negligible, after at least so many passes.
    fn careful(&self, start: &Factors, prior: f64, least_passes: usize, settings: &SelectSettings) -> Result<Factors> {
        let negligible = self.negligible();
        let refit = LikelihoodSettings { prior, max_passes: LONGEST * settings.passes, tolerance: negligible, accelerate: true };
        let mut values: Vec<f64> = Vec::new();
        let goes_on = |done: usize, value: f64| {
            values.push(value);
            let before = values[(values.len() - 1).saturating_sub(JUDGED)];
            done < least_passes || value - before > JUDGED as f64 * negligible
        };
        Ok(likelihood_watched(self.fits.observed(), start, &refit, goes_on)?.factors)
    }

    fn negligible(&self) -> f64 {
        let observed = self.fits.observed();
        (NEGLIGIBLE * observed.rows() as f64 / observed.transitions()).min(1e-7)
    }

    fn score(&self, model: Model, settings: &SelectSettings) -> Result<Score> {
        score(model, self.fits.observed().counts(), self.held_out, settings.smoothing)
    }
}

/// The fits of a rank and a prior on the first folds.
struct Fitted {
    rank: usize,
    prior: f64,
    folds: Vec<Factors>,
}

/// The folds and the fits on them.
struct Fits<'a> {
    settings: &'a SelectSettings,
    /// The first folds, as far as they were needed.
    prepared: Vec<Prepared<'a>>,
    origins: Vec<(usize, f64, Origin)>,
    /// The last fits.
    kept: Vec<Fitted>,
}

impl Fits<'_> {
    /// The fit of a rank and a prior on one fold.
    fn fit(&self, rank: usize, prior: f64, f: usize) -> Result<Factors> {
        let (fold, passes) = (&self.prepared[f], self.settings.passes);
        let origin = self.origins.iter().find(|o| o.0 == rank && o.1 == prior).map_or(Origin::Spectral, |o| o.2);
        match origin {
            Origin::Spectral => fold.careful(&fold.fits.near(rank)?, prior, passes, self.settings),
            Origin::OtherPrior(other) => fold.careful(&self.fitted(rank, other, f)?, prior, JUDGED + 1, self.settings),
            Origin::Merged => {
                let mut x = self.fitted(rank + 1, prior, f)?;
                merge_nearest(&mut x, fold.fits.observed().departure_shares());
                fold.careful(&x, prior, JUDGED + 1, self.settings)
            }
        }
    }

    /// The same, made again only where it is not at hand any more.
    fn fitted(&self, rank: usize, prior: f64, f: usize) -> Result<Factors> {
        let kept = self.kept.iter().find(|x| x.rank == rank && x.prior == prior).and_then(|x| x.folds.get(f));
        kept.map_or_else(|| self.fit(rank, prior, f), |x| Ok(x.clone()))
    }

    /// Fits and scores further folds, up to this number.
    fn extend(&self, fitted: &mut Fitted, held_out: &mut HeldOut, folds: usize) -> Result<()> {
        let (rank, prior) = (fitted.rank, fitted.prior);
        let one = |f: usize| -> Result<(Factors, Score)> {
            let x = self.fit(rank, prior, f)?;
            let score = self.prepared[f].score(Model::LowRank(&x), self.settings)?;
            Ok((x, score))
        };
        let more = (fitted.folds.len()..folds).into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
        for (x, score) in more {
            fitted.folds.push(x);
            held_out.folds.push(score);
        }
        Ok(())
    }
}

/// What all comparisons share, and what was tried so far.
pub(super) struct RankSearch<'a> {
    folds: &'a Folds,
    fits: Fits<'a>,
    attempts: Vec<Attempt>,
    /// Told of all attempts after each new one; false ends the search.
    watch: &'a mut dyn FnMut(&[Attempt]) -> bool,
}

impl<'a> RankSearch<'a> {
    /// With what an earlier search on the same folds has tried.
    pub fn new(
        folds: &'a Folds,
        settings: &'a SelectSettings,
        attempts: Vec<Attempt>,
        watch: &'a mut dyn FnMut(&[Attempt]) -> bool,
    ) -> Self {
        RankSearch { folds, fits: Fits { settings, prepared: Vec::new(), origins: Vec::new(), kept: Vec::new() }, attempts, watch }
    }

    /// All attempts so far.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Prepares the folds up to this number.
    fn prepare(&mut self, folds: usize) -> Result<()> {
        let (all, seed) = (self.folds, self.fits.settings.seed);
        let prepared = |f: usize| Ok(Prepared { fits: SpectralFits::new(all.training(f)?, seed)?, held_out: all.held_out(f) });
        let more = (self.fits.prepared.len()..folds).into_par_iter().map(prepared).collect::<Result<Vec<_>>>()?;
        self.fits.prepared.extend(more);
        Ok(())
    }

    /// A first look at a rank with the first prior, on some of the folds.
    pub fn first_look(&mut self, rank: usize) -> Found<Attempt> {
        let settings = self.fits.settings;
        let prior = settings.first_prior;
        if let Some(known) = self.attempts.iter().find(|a| a.rank == rank && a.prior == prior && a.first_look) {
            return Ok(known.clone());
        }
        let some = FIRST_FOLDS.min(self.folds.len());
        self.prepare(some)?;
        let folds = self.fits.prepared[..some].par_iter().map(|fold| fold.first_look(rank, prior, settings)).collect::<Result<_>>()?;
        self.tried(Attempt { rank, prior, first_look: true, held_out: HeldOut { folds } })
    }

    /// One rank with one prior on all folds: known already, or fitted now. Beside a `rival` it is over after the first folds where it is clearly behind there.
    pub fn careful(&mut self, rank: usize, prior: f64, origin: Origin, rival: Option<&Attempt>) -> Found<Attempt> {
        let origin = if rank == 1 { Origin::Spectral } else { origin };
        if !self.fits.origins.iter().any(|o| o.0 == rank && o.1 == prior) {
            self.fits.origins.push((rank, prior, origin));
        }
        let known = |a: &&Attempt| a.rank == rank && a.prior == prior && (!a.first_look || rival.is_some());
        if let Some(known) = self.attempts.iter().find(known) {
            return Ok(known.clone());
        }
        let mut fitted = Fitted { rank, prior, folds: Vec::new() };
        let mut held_out = HeldOut { folds: Vec::new() };
        let (all, some) = (self.folds.len(), if rival.is_some() { FIRST_FOLDS.min(self.folds.len()) } else { self.folds.len() });
        self.prepare(some)?;
        self.fits.extend(&mut fitted, &mut held_out, some)?;
        let out = rival.is_some_and(|rival| {
            let (behind, error) = held_out.behind(&rival.held_out);
            behind > CLEARLY * error
        });
        if !out {
            self.prepare(all)?;
            self.fits.extend(&mut fitted, &mut held_out, all)?;
        }
        self.fits.kept.push(fitted);
        if self.fits.kept.len() > KEPT {
            self.fits.kept.remove(0);
        }
        self.tried(Attempt { rank, prior, first_look: held_out.folds.len() < all, held_out })
    }

    fn tried(&mut self, attempt: Attempt) -> Found<Attempt> {
        self.attempts.push(attempt.clone());
        if (self.watch)(&self.attempts) { Ok(attempt) } else { Err(Stop::Ended) }
    }

    /// Strengths of the prior from the one nearest to `from`, stronger or weaker as long as the score rises: it has one maximum, a weak prior lets the fit follow the noise
    /// and a strong one holds it back. Those tried, ascending.
    pub fn climb_priors(&mut self, rank: usize, from: f64) -> Found<Vec<Attempt>> {
        let mut strengths = self.fits.settings.priors.clone();
        strengths.sort_by(f64::total_cmp);
        let distance = |prior: f64| ((prior + f64::MIN_POSITIVE).ln() - (from + f64::MIN_POSITIVE).ln()).abs();
        let Some(nearest) = (0..strengths.len()).min_by(|a, b| distance(strengths[*a]).total_cmp(&distance(strengths[*b]))) else {
            return Ok(Vec::new());
        };
        let first = self.careful(rank, strengths[nearest], Origin::Spectral, None)?;
        let stronger = self.climb(&first, strengths[nearest + 1..].iter().copied())?;
        // Where the next stronger one was better, weaker ones are not.
        let weaker = match stronger.len() {
            0 | 1 => self.climb(&first, strengths[..nearest].iter().rev().copied())?,
            _ => Vec::new(),
        };
        Ok(weaker.into_iter().rev().chain([first]).chain(stronger).collect())
    }

    /// Further priors in the order given, each from the fits of the one before, until the score falls.
    fn climb(&mut self, first: &Attempt, priors: impl Iterator<Item = f64>) -> Found<Vec<Attempt>> {
        let (mut tried, mut before) = (Vec::new(), (first.prior, first.held_out.log_likelihood()));
        for prior in priors {
            let attempt = self.careful(first.rank, prior, Origin::OtherPrior(before.0), None)?;
            let value = attempt.held_out.log_likelihood();
            tried.push(attempt);
            if value <= before.1 {
                break;
            }
            before = (prior, value);
        }
        Ok(tried)
    }

    /// A model that needs no fit, on all folds.
    pub fn baseline(&mut self, model: Model) -> Result<HeldOut> {
        self.prepare(self.folds.len())?;
        let settings = self.fits.settings;
        Ok(HeldOut { folds: self.fits.prepared.par_iter().map(|fold| fold.score(model, settings)).collect::<Result<_>>()? })
    }

    /// The empirical P at its best: the rival gets its own smoothing chosen, too. Pseudo-counts a state and scores.
    pub fn best_empirical(&mut self) -> Result<(f64, HeldOut)> {
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
