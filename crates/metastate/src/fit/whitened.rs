//! One answer that is proven and predicts (`docs/whitened.md`): the counts in white coordinates ([`Whitened`]), directions that the likelihood found at a fifth of the price of all others, lambda well above
//! the noise.
//!
//! 1. Rank and prior on held-out transitions, as always.
//! 2. The likelihood at that rank. Its memberships and destinations span the directions that cost less; apart from these, only the start is taken from it.
//! 3. The noise: the largest singular value of what it leaves of the data, off those directions. lambda is [`ABOVE_NOISE`] times that, so no further direction pays because of noise.
//! 4. The convex problem with those weights, prices and lambda, solved and proven. Its solution is the model.

use std::sync::Arc;

use rayon::prelude::*;

use super::Solved;
use super::choose::{self, Chosen, MOST_STATES_WITH_ZONES};
use super::data::Data;
use super::observe::{FitObserver, Stage, Unfinished};
use super::options::FitOptions;
use crate::chain::Whitened;
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::linalg::singular::{MatrixFree, TruncatedSvd, truncated_svd};
use crate::linalg::{Mat, Operator, thin};
use crate::solve::path::LambdaPoint;
use crate::solve::refit::{LikelihoodSettings, Observed, SpectralFits, likelihood, likelihood_watched};
use crate::solve::score::{Model, Score, Smoothing, score};
use crate::solve::select::HeldOut;
use crate::solve::{
    Control, Effort, Event, Factors, Frame, Metric, Observer, Problem, Progress, Settings, Side, Silent, Solution, Start, StopRule,
    lambda_max_in, solve,
};

/// What a direction that the likelihood found costs, beside any other.
pub const PRICE: f64 = 0.2;
/// lambda, as a multiple of the noise.
pub const ABOVE_NOISE: f64 = 2.5;
/// The smallest noise that is reported, relative to the largest singular value of the data (which is one): below it there is none.
const LEAST_NOISE: f64 = 1e-6;
/// Precision of the noise, and vectors that its search may multiply by.
const NOISE: (f64, usize) = (1e-4, 400);

/// On the folds a score needs no more than this KKT residual, this gap and these passes of the likelihood.
const FOLD_PRECISION: (f64, f64) = (1e-3, 1e-2);
const FOLD_PASSES: usize = 100;

/// The stated problem beside its lambda: all that a checker needs to state it again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Stated {
    /// Transitions that the prior adds to every state.
    pub prior: f64,
    /// The share of the price that the directions below pay.
    pub price: f64,
    /// Largest singular value of what is left of the data off those directions.
    pub noise: f64,
    /// Directions of memberships, an orthonormal basis in white coordinates.
    pub rows: Mat,
    /// Directions of destinations.
    pub columns: Mat,
    /// How the same recipe does on transitions that were held out, and how far it is behind the likelihood on the same folds.
    pub scores: Scores,
}

/// Held-out scores of the recipe at the rank chosen: log-likelihood a transition, means over the folds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Scores {
    /// Of the whitened model, with its standard error.
    pub held_out: (f64, f64),
    /// Of the likelihood that it took its directions from.
    pub likelihood: (f64, f64),
    /// By how much the whitened model is behind that, fold by fold: mean and standard error. Negative where it is ahead.
    pub behind: (f64, f64),
}

/// Chooses, states, solves and proves.
pub(super) fn fit(data: &Data, options: &FitOptions, unfinished: &mut Unfinished, observer: &mut dyn FitObserver) -> Result<Solved> {
    let Some(parts) = data.parts() else {
        let chain = data.chain();
        return Err(Error::NothingToHoldOut { lambda_max: crate::solve::lambda_max(chain.p(), chain.weights(), options.seed)? });
    };
    unfinished.check(data, options, f64::INFINITY)?;
    choose::go_on(observer)?;
    let folds = parts.folds(options.folds, options.seed)?;
    observer.stage(Stage::Choosing);
    let choice = choose::choose_rank(&folds, options, unfinished, observer)?;
    observer.chosen(&choice);

    observer.stage(Stage::Refit);
    let near = SpectralFits::new(parts.counts().clone(), options.seed)?.near(choice.rank)?;
    choose::go_on(observer)?;
    let observed = Observed::new(parts.counts().clone())?;
    let settings = LikelihoodSettings { prior: choice.prior, ..LikelihoodSettings::default() };
    let directions = likelihood_watched(&observed, &near, &settings, |passes, value| {
        observer.pass(passes, value);
        observer.look() == Control::Continue
    })?;
    super::not_interrupted(observer)?;

    observer.stage(Stage::LambdaMax);
    let white = Whitened::new(parts.counts(), choice.prior)?;
    let flat = Arc::new(Frame::new(white.totals.clone(), white.measure.clone(), None)?);
    let lambda_max = lambda_max_in(&white.z, &white.ones, &flat, options.seed)?;
    observer.stage(Stage::Solving);
    let most = Settings { max_rank: choice.rank, start_rank: None, ..options.solver.clone() };
    let held_out = on_folds(&folds, choice.rank, choice.prior, &most, options.seed)?;
    choose::go_on(observer)?;
    let (solution, metric, noise) = at_directions(&white, &directions.factors, &most, options.seed, &mut WatchedSolve(observer))?;
    super::not_interrupted(observer)?;
    let basis = |side: &Side| side.basis().clone();
    let worth = |scores: &HeldOut| (scores.log_likelihood(), scores.standard_error());
    let scores = Scores { held_out: worth(&held_out.0), likelihood: worth(&held_out.1), behind: held_out.0.behind(&held_out.1) };
    let stated = Stated { prior: white.prior, price: PRICE, noise, rows: basis(&metric.left), columns: basis(&metric.right), scores };
    let sentence = format!(
        "{}: lambda {:.4e} is {ABOVE_NOISE} times the noise, {:.4e}; the directions that the likelihood found pay {PRICE} of the price.",
        choice.sentence().trim_end_matches('.'),
        solution.lambda,
        stated.noise
    );
    let point = LambdaPoint::new(&solution, lambda_max, None, MOST_STATES_WITH_ZONES);
    let (lambda, folds_are, folds) = (solution.lambda, parts.how(), folds.len());
    let chosen = Chosen { choice, lambda, points: vec![point], at: 0, sentence, folds_are, folds, settings: most, near: Some(near) };
    Ok(Solved { lambda_max, chosen: Some(chosen), near_of_matrix: None, solution, stated: Some(stated) })
}

/// The same recipe on every fold: the scores of the whitened model and of the likelihood behind it.
fn on_folds(folds: &Folds, rank: usize, prior: f64, settings: &Settings, seed: u64) -> Result<(HeldOut, HeldOut)> {
    let loose = Settings {
        tolerance: FOLD_PRECISION.0.max(settings.tolerance),
        stop: StopRule::Certificate { gap: FOLD_PRECISION.1 },
        certificate: Effort { prove: false, ..settings.certificate },
        ..settings.clone()
    };
    let one = |f: usize| -> Result<(Score, Score)> {
        let training = folds.training(f);
        let near = SpectralFits::new(training.clone(), seed)?.near(rank)?;
        let by_likelihood = LikelihoodSettings { prior, max_passes: FOLD_PASSES, ..LikelihoodSettings::default() };
        let found = likelihood(&Observed::new(training.clone())?, &near, &by_likelihood)?.factors;
        let white = Whitened::new(&training, prior)?;
        let (solution, ..) = at_directions(&white, &found, &loose, seed, &mut Silent)?;
        let worth = |x: &Factors| score(Model::LowRank(x), &training, &folds.held_out(f), Smoothing::default());
        Ok((worth(&solution.factors)?, worth(&found)?))
    };
    let scores = (0..folds.len()).into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let (ours, theirs) = scores.into_iter().unzip();
    Ok((HeldOut { folds: ours }, HeldOut { folds: theirs }))
}

/// States the problem with the directions of these factors, solves it from them and proves it; the prices and the noise.
fn at_directions(
    white: &Whitened,
    found: &Factors,
    settings: &Settings,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<(Solution, Arc<Metric>, f64)> {
    let flat = Frame::new(white.totals.clone(), white.measure.clone(), None)?;
    let inside = flat.enter(found);
    let metric = Metric::of(&inside, PRICE)?;
    let noise = noise(white, &inside, &metric, seed);
    let problem = Problem::in_frame(&white.z, &white.ones, ABOVE_NOISE * noise, Arc::new(flat.with_metric(Some(Arc::clone(&metric)))?))?;
    let settings = Settings { start: Start::Given(Box::new(found.clone())), ..settings.clone() };
    Ok((solve(&problem, &settings, observer)?, metric, noise))
}

/// The largest singular value of `(I - Q Q^T) (Z - E F^T) (I - S S^T)`.
fn noise(white: &Whitened, inside: &Factors, metric: &Metric, seed: u64) -> f64 {
    let rest = OffDirections { white, inside, metric };
    let svd = truncated_svd(&rest, &TruncatedSvd { rank: 1, tolerance: NOISE.0, steps: NOISE.1, seed });
    svd.values.first().copied().unwrap_or(0.0).max(LEAST_NOISE)
}

/// What is left of the data off the directions found. E and F lie in them, so `Z - E F^T` and Z leave the same; what is subtracted keeps the numbers small.
struct OffDirections<'a> {
    white: &'a Whitened,
    inside: &'a Factors,
    metric: &'a Metric,
}

impl OffDirections<'_> {
    fn off(side: &Side, x: &Mat) -> Mat {
        let inside = side.inside(x);
        let mut out = x.clone();
        thin::for_each_row_mut(&mut out, |i, row| row.iter_mut().zip(inside.row(i)).for_each(|(o, q)| *o -= q));
        out
    }

    fn less(out: &mut Mat, a: &Mat, b: &Mat, x: &Mat) {
        let mut low = Mat::default();
        thin::product(a, &thin::cross_gram(b, x), &mut low);
        thin::for_each_row_mut(out, |i, row| row.iter_mut().zip(low.row(i)).for_each(|(o, l)| *o -= l));
    }
}

impl MatrixFree for OffDirections<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.white.z.rows(), self.white.z.cols())
    }

    fn times(&self, x: &Mat, out: &mut Mat) {
        let x = OffDirections::off(&self.metric.right, x);
        self.white.z.apply(&x, out);
        OffDirections::less(out, &self.inside.u, &self.inside.v, &x);
        *out = OffDirections::off(&self.metric.left, out);
    }

    fn transposed_times(&self, y: &Mat, out: &mut Mat) {
        let y = OffDirections::off(&self.metric.left, y);
        self.white.z.apply_transpose(&y, out);
        OffDirections::less(out, &self.inside.v, &self.inside.u, &y);
        *out = OffDirections::off(&self.metric.right, out);
    }
}

/// Lets the solve be watched. It takes seconds, and its points are in other coordinates: nothing of it is kept.
struct WatchedSolve<'a>(&'a mut dyn FitObserver);

impl Observer for WatchedSolve<'_> {
    fn progress(&mut self, progress: &Progress) -> Control {
        self.0.progress(progress)
    }

    fn event(&mut self, event: &Event, progress: &Progress) {
        self.0.event(event, progress);
    }
}
