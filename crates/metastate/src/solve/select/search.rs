//! The fits behind a choice: each rank and prior is fitted on folds held out in turn, once. What was tried is kept, so that a search that was
//! cut off goes on from there; fits that later ones start from are made again then, to the same bits.
//!
//! A fit on a fold starts from that fold's own training part, or from another fit on it, never from a fit on the whole data or on another fold: those have seen what is held out here, and a
//! climb that ends before its maximum would carry some of it into the score.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::SelectSettings;
use super::held_out::{Attempt, HeldOut};
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::linalg::Csr;
use crate::solve::problem::Factors;
use crate::solve::refit::{LikelihoodSettings, Observed, SpectralFits, likelihood, merge_nearest};
use crate::solve::score::{Model, Score, pseudo_counts, score};

/// A fit is ready when a plain pass gains less than this, in units of `d / n`: one meta-state too many is behind by about `d / n` a transition, so what is then left to gain is
/// little beside that. With few transitions that is soon, with very many only after many passes.
const NEGLIGIBLE: f64 = 1e-3;
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
/// Up to this many pairs all folds stay in memory, by rows and by columns; beyond, one at a time, made anew for every fit: that takes as long as a pass or two.
const KEPT_PAIRS: usize = 10_000_000;

/// Where the careful fits of a rank and a prior start, fold by fold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Origin {
    /// From the fold's own directions: see [`SpectralFits::near`].
    Spectral,
    /// From what the spectral start of one meta-state fewer was merged from.
    Spare,
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
struct Prepared {
    fits: SpectralFits,
    held_out: Csr,
}

impl Prepared {
    /// A few passes from the plain spectral start: tells about where the best rank lies.
    fn first_look(&self, rank: usize, prior: f64, settings: &SelectSettings) -> Result<Score> {
        let x = self.climb(&self.fits.start(rank)?, prior, settings.passes.div_ceil(ROUGH))?;
        self.score(Model::LowRank(&x), settings)
    }

    /// The likelihood from a start until what it still gains is negligible.
    fn careful(&self, start: &Factors, prior: f64, settings: &SelectSettings) -> Result<Factors> {
        self.climb(start, prior, LONGEST * settings.passes)
    }

    fn climb(&self, start: &Factors, prior: f64, max_passes: usize) -> Result<Factors> {
        let refit = LikelihoodSettings { prior, max_passes, tolerance: self.negligible(), accelerate: true };
        Ok(likelihood(self.fits.observed(), start, &refit)?.factors)
    }

    fn negligible(&self) -> f64 {
        let observed = self.fits.observed();
        NEGLIGIBLE * observed.rows() as f64 / observed.transitions()
    }

    fn score(&self, model: Model, settings: &SelectSettings) -> Result<Score> {
        score(model, self.fits.observed().counts(), &self.held_out, settings.smoothing)
    }
}

/// The fits of a rank and a prior on the first folds.
struct RankOnFolds {
    rank: usize,
    prior: f64,
    folds: Vec<Factors>,
}

/// The folds and the fits on them.
struct Fits<'a> {
    folds: &'a Folds,
    settings: &'a SelectSettings,
    /// The folds that were needed so far, where they are kept.
    prepared: Vec<Mutex<Option<Arc<Prepared>>>>,
    origins: Vec<(usize, f64, Origin)>,
    /// The last fits.
    kept: Vec<RankOnFolds>,
}

impl Fits<'_> {
    /// `one` on some of the folds: at the same time where all are kept, else one after the other.
    fn on_folds<T: Send>(&self, folds: Range<usize>, one: impl Fn(usize, &Prepared) -> Result<T> + Sync) -> Result<Vec<T>> {
        let one = |f: usize| one(f, &*self.prepared(f)?);
        match self.keeps_folds() {
            true => folds.into_par_iter().map(one).collect(),
            false => folds.map(one).collect(),
        }
    }

    fn keeps_folds(&self) -> bool {
        self.folds.whole().nonzeros() <= KEPT_PAIRS
    }

    fn prepared(&self, f: usize) -> Result<Arc<Prepared>> {
        let known = || self.prepared[f].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known() {
            return Ok(Arc::clone(known));
        }
        let observed = Observed::new(self.folds.training(f))?.for_comparisons();
        let fits = SpectralFits::of_observed(observed, self.settings.seed);
        let made = Arc::new(Prepared { fits, held_out: self.folds.held_out(f) });
        if self.keeps_folds() {
            *known() = Some(Arc::clone(&made));
        }
        Ok(made)
    }

    /// The fit of a rank and a prior on one fold.
    fn fit(&self, rank: usize, prior: f64, f: usize, fold: &Prepared) -> Result<Factors> {
        let origin = self.origins.iter().find(|o| o.0 == rank && o.1 == prior).map_or(Origin::Spectral, |o| o.2);
        let start = match origin {
            Origin::Spectral => fold.fits.near(rank)?,
            Origin::Spare => fold.fits.above(rank - 1)?,
            Origin::OtherPrior(other) => self.fitted(rank, other, f, fold)?,
            Origin::Merged => {
                let mut x = self.fitted(rank + 1, prior, f, fold)?;
                merge_nearest(&mut x, fold.fits.observed().departure_shares());
                x
            }
        };
        fold.careful(&start, prior, self.settings)
    }

    /// The same, made again only where it is not at hand any more.
    fn fitted(&self, rank: usize, prior: f64, f: usize, fold: &Prepared) -> Result<Factors> {
        let kept = self.kept.iter().find(|x| x.rank == rank && x.prior == prior).and_then(|x| x.folds.get(f));
        kept.map_or_else(|| self.fit(rank, prior, f, fold), |x| Ok(x.clone()))
    }

    /// Fits and scores further folds, up to this number.
    fn extend(&self, fitted: &mut RankOnFolds, held_out: &mut HeldOut, folds: usize) -> Result<()> {
        let (rank, prior) = (fitted.rank, fitted.prior);
        let more = self.on_folds(fitted.folds.len()..folds, |f, fold| {
            let x = self.fit(rank, prior, f, fold)?;
            let score = fold.score(Model::LowRank(&x), self.settings)?;
            Ok((x, score))
        })?;
        for (x, score) in more {
            fitted.folds.push(x);
            held_out.folds.push(score);
        }
        Ok(())
    }
}

/// What all comparisons share, and what was tried so far.
pub(super) struct RankSearch<'a> {
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
        let prepared = (0..folds.len()).map(|_| Mutex::default()).collect();
        RankSearch { fits: Fits { folds, settings, prepared, origins: Vec::new(), kept: Vec::new() }, attempts, watch }
    }

    /// All attempts so far.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// A first look at a rank with the first prior, on some of the folds.
    pub fn first_look(&mut self, rank: usize) -> Found<Attempt> {
        let settings = self.fits.settings;
        let prior = settings.first_prior;
        if let Some(known) = self.attempts.iter().find(|a| a.rank == rank && a.prior == prior && a.first_look) {
            return Ok(known.clone());
        }
        let some = FIRST_FOLDS.min(self.fits.folds.len());
        let folds = self.fits.on_folds(0..some, |_, fold| fold.first_look(rank, prior, settings))?;
        self.tried(Attempt { rank, prior, first_look: true, held_out: HeldOut { folds } })
    }

    /// One rank with one prior on all folds: known already, or fitted now. Beside a `rival` it is over after the first folds where it is clearly behind there.
    pub fn careful(&mut self, rank: usize, prior: f64, origin: Origin, rival: Option<&Attempt>) -> Found<Attempt> {
        let origin = if rank == 1 { Origin::Spectral } else { origin };
        if !self.fits.origins.iter().any(|o| o.0 == rank && o.1 == prior) {
            self.fits.origins.push((rank, prior, origin));
        }
        // Rough first looks come before all careful fits; what is marked as one after them was a careful fit that was over early.
        let rough = self.attempts.iter().take_while(|a| a.first_look).count();
        let known = |a: &&Attempt| a.rank == rank && a.prior == prior && (!a.first_look || rival.is_some());
        if let Some(known) = self.attempts[rough..].iter().find(known) {
            return Ok(known.clone());
        }
        let mut fitted = RankOnFolds { rank, prior, folds: Vec::new() };
        let mut held_out = HeldOut { folds: Vec::new() };
        let all = self.fits.folds.len();
        let some = if rival.is_some() { FIRST_FOLDS.min(all) } else { all };
        self.fits.extend(&mut fitted, &mut held_out, some)?;
        let out = rival.is_some_and(|rival| {
            let (behind, error) = held_out.behind(&rival.held_out);
            behind > CLEARLY * error
        });
        if !out {
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

    /// The two models that need no fit, on all folds: rank one, and the empirical P at its best (the rival gets its own smoothing chosen, too), with its pseudo-counts a state.
    pub fn baselines(&mut self) -> Result<(HeldOut, (f64, HeldOut))> {
        let settings = self.fits.settings;
        let pseudo: Vec<f64> = pseudo_counts().collect();
        let of_folds = self.fits.on_folds(0..self.fits.folds.len(), |_, fold| {
            let models = [Model::Independent].into_iter().chain(pseudo.iter().map(|&pseudo| Model::Empirical { pseudo }));
            models.map(|model| fold.score(model, settings)).collect::<Result<Vec<Score>>>()
        })?;
        let of_model = |m: usize| HeldOut { folds: of_folds.iter().map(|scores| scores[m]).collect() };
        let mut best: Option<(f64, HeldOut)> = None;
        for (m, &pseudo) in pseudo.iter().enumerate() {
            let held_out = of_model(m + 1);
            if best.as_ref().is_none_or(|(_, b)| held_out.log_likelihood() > b.log_likelihood()) {
                best = Some((pseudo, held_out));
            }
        }
        let best = best.ok_or(Error::Empty { what: "the list of pseudo-counts" })?;
        Ok((of_model(0), best))
    }
}
