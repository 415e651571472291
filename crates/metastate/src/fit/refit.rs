//! What is done after the solve: the same rank without the penalty, and how sure its memberships are.

use super::choose::{Chosen, select_settings};
use super::data::Data;
use super::observe::{FitObserver, Stage};
use super::options::{FitOptions, RefitKind};
use crate::aggregate::latent::timescale_intervals;
use crate::error::{Error, Result};
use crate::solve::bootstrap::{BootstrapSettings, Uncertainty, bootstrap};
use crate::solve::refit::{BestRefit, LeastSquares, LikelihoodSettings, SpectralFits, Starts, least_squares, likelihood_best_start};
use crate::solve::select::select_prior;
use crate::solve::{Control, Factors, Problem, Solution};

/// Relative decrease and sweeps at which the least-squares refit ends.
const LEAST_SQUARES: (f64, usize) = (1e-8, 2000);
/// How often an interval contains the true value.
pub const CONFIDENCE: f64 = 0.9;
/// Passes and tolerance of the refit of each draw: it starts from the published solution, so few are enough.
const PASSES_A_DRAW: usize = 60;
const TOLERANCE_OF_A_DRAW: f64 = 1e-7;

/// The second fit.
///
/// See the example of [`RefitKind`](super::RefitKind).
#[derive(Debug, Clone)]
pub enum Refit {
    /// By least squares.
    LeastSquares(LeastSquares),
    /// By likelihood.
    Likelihood {
        /// The best of the starts.
        best: BestRefit,
        /// Transitions that the prior adds to every state; for a transition matrix, in units of what a state weighs on average.
        prior: f64,
    },
}

impl Refit {
    /// U and V.
    #[must_use]
    pub fn factors(&self) -> &Factors {
        match self {
            Refit::LeastSquares(fit) => &fit.factors,
            Refit::Likelihood { best, .. } => &best.fit.factors,
        }
    }
}

/// What the bootstrap found.
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default().bootstrap(20)?, &mut Silent)?;
/// let found = &model.intervals.as_ref().unwrap().uncertainty;
/// let (low, high) = (found.lower[(0, 0)], found.upper[(0, 0)]);
/// assert!(low <= model.memberships()[(0, 0)] && model.memberships()[(0, 0)] <= high);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Intervals {
    /// Intervals of the memberships, and how stable the meta-states are.
    pub uncertainty: Uncertainty,
    /// Intervals of the timescales of the latent chain, in steps; infinite where they have no end.
    pub timescales: Vec<(f64, f64)>,
    /// What was drawn, in words.
    pub drawn: String,
}

/// What a second fit is to have.
pub(super) struct Wanted {
    /// The rank.
    pub rank: usize,
    /// The prior, where it was chosen.
    pub prior: Option<f64>,
    /// The spectral start at that rank, where it was made on the way.
    pub near: Option<Factors>,
}

impl Wanted {
    /// What was chosen; else the rank of the solution.
    pub fn new(solution: &Solution, chosen: Option<&Chosen>) -> Self {
        match chosen {
            Some(chosen) => Wanted { rank: chosen.choice.rank, prior: Some(chosen.choice.prior), near: chosen.near.clone() },
            None => Wanted { rank: solution.rank(), prior: None, near: None },
        }
    }
}

/// Refits as asked for.
pub(super) fn refit(
    data: &Data,
    options: &FitOptions,
    solution: &Solution,
    wanted: Wanted,
    observer: &mut dyn FitObserver,
) -> Result<Option<Refit>> {
    let kind = options.refit_kind();
    if kind == RefitKind::None {
        return Ok(None);
    }
    observer.stage(Stage::Refit);
    let rank = wanted.rank;
    match kind {
        RefitKind::None => Ok(None),
        RefitKind::LeastSquares => {
            let problem = Problem::new(data.chain().p(), data.chain().weights(), solution.lambda)?;
            let start = match rank == solution.rank() {
                true => solution.factors.clone(),
                false => SpectralFits::of_observed(data.observed()?.0, options.seed).start(rank)?,
            };
            Ok(Some(Refit::LeastSquares(least_squares(&problem, &start, LEAST_SQUARES.0, LEAST_SQUARES.1))))
        }
        RefitKind::Likelihood => {
            let prior = match (options.prior.or(wanted.prior), data.parts()) {
                (Some(prior), _) => prior,
                (None, Some(parts)) => select_prior(&parts.folds(options.folds, options.seed)?, rank, &select_settings(options))?.0,
                // Nothing can be held out of a transition matrix, and it is no sample that a prior would have to smooth.
                (None, None) => 0.0,
            };
            let (observed, unit) = data.observed()?;
            let settings = LikelihoodSettings { prior: prior * unit, ..LikelihoodSettings::default() };
            let starts = Starts { spectral: wanted.near, ..Starts::new(&solution.factors, rank, options.seed) };
            let best = likelihood_best_start(&observed, starts, &settings, |passes, value| {
                observer.pass(passes, value);
                observer.look() == Control::Continue
            })?;
            super::not_interrupted(observer)?;
            Ok(Some(Refit::Likelihood { best, prior }))
        }
    }
}

/// Intervals for a refit by likelihood, where draws were asked for.
pub(super) fn intervals(
    data: &Data,
    options: &FitOptions,
    refit: Option<&Refit>,
    observer: &mut dyn FitObserver,
) -> Result<Option<Intervals>> {
    let (Some(Refit::Likelihood { best, prior }), true) = (refit, options.bootstrap > 0) else { return Ok(None) };
    let parts = data.parts().ok_or(Error::Empty { what: "the list of transitions" })?;
    observer.stage(Stage::Bootstrap);
    let refit =
        LikelihoodSettings { prior: *prior, max_passes: PASSES_A_DRAW, tolerance: TOLERANCE_OF_A_DRAW, ..LikelihoodSettings::default() };
    let settings = BootstrapSettings { replicates: options.bootstrap, confidence: CONFIDENCE, refit, seed: options.seed };
    let mut seen = Control::Continue;
    let drawn = bootstrap(parts.resample(), &best.fit.factors, &settings, || {
        seen = observer.look();
        seen == Control::Continue
    });
    let uncertainty = match drawn {
        // There is an answer, and no intervals of it.
        Err(Error::Interrupted) if seen == Control::TimeUp => return Ok(None),
        other => other?,
    };
    // A matrix that happens to be square has no latent chain where its sides are different sets.
    let latent = uncertainty.latent.as_ref().filter(|_| data.chain().goes_on());
    let timescales = latent.map_or_else(Vec::new, |latent| timescale_intervals(latent, CONFIDENCE));
    Ok(Some(Intervals { uncertainty, timescales, drawn: parts.drawn() }))
}
