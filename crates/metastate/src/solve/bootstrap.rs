//! How sure the memberships are: data are drawn many times from a world whose truth is known, each draw is fitted from the published solution on, and its meta-states are
//! matched to it. Trips are drawn from the fitted model (`world`), trajectories by blocks of frames, because frames depend on each other. The draws say how wide an interval must be to contain
//! the true value as often as stated (`intervals`); what the true value is, and what it is not, is explained in `docs/statistics.md`, with the measured coverage.

mod intervals;
mod world;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use self::intervals::{Seen, StateCounts, Thresholds, seen};
use self::world::World;
use super::problem::Factors;
use super::refit::{LikelihoodSettings, Observed, likelihood};
use crate::counts::folds::sum;
use crate::error::{Error, Result};
use crate::linalg::assignment::matching;
use crate::linalg::{Csr, Mat, largest_entry, thin};
use crate::stats::reflected;

/// Memory for the memberships of all replicates, at most.
const MOST_BYTES: u128 = 4 << 30;
/// Draws that are made side by side, before anybody may stop them.
const DRAWS_AT_ONCE: usize = 16;
/// States whose errors are looked at in every draw, at most.
const MOST_STATES: usize = 2000;
/// The same, at least.
const LEAST_STATES: usize = 20;

/// What is drawn anew.
#[derive(Debug, Clone, Copy)]
pub enum Resample<'a> {
    /// Single transitions: from the fitted model, as many out of each state as there were.
    Trips(&'a Csr),
    /// Whole blocks of a trajectory, as they are.
    Blocks(&'a [Csr]),
}

/// Choices of the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapSettings {
    /// Draws.
    pub replicates: usize,
    /// Share of the memberships whose interval holds the truth, in the draws; also the share that must agree on a state's meta-state for it to be decided.
    pub confidence: f64,
    /// The refit of each draw.
    pub refit: LikelihoodSettings,
    /// Seed of the draws.
    pub seed: u64,
}

/// What varies.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Uncertainty {
    /// Lower ends of the intervals of the memberships, `d x s`.
    pub lower: Mat,
    /// Upper ends.
    pub upper: Mat,
    /// For each meta-state, the mean over the draws of `sum_i xi_i min(u_i, u'_i) / sum_i xi_i max(u_i, u'_i)`: 1 when it always
    /// comes back the same.
    pub stability: Vec<f64>,
    /// For each state, the share of the draws that put it into the meta-state where it is in the reference.
    pub agreement: Vec<f64>,
    /// States on whose meta-state fewer draws than the confidence agree.
    pub undecided: Vec<bool>,
    /// The latent chains `V^T U`; none where there are not as many columns as rows.
    pub latent: Option<LatentDraws>,
    /// Draws.
    pub replicates: usize,
}

/// The latent chain as published, as it is in the world that the draws come from, and as they estimate it; meta-states in the same order.
#[derive(Debug, Clone, PartialEq)]
pub struct LatentDraws {
    /// Of the reference.
    pub published: Mat,
    /// True in the draws.
    pub truth: Mat,
    /// Estimated from each.
    pub drawn: Vec<Mat>,
}

impl LatentDraws {
    /// The interval of a number that depends on the latent chain.
    pub fn interval(&self, number: impl Fn(&Mat) -> f64, confidence: f64) -> (f64, f64) {
        reflected(number(&self.published), number(&self.truth), self.drawn.iter().map(&number), confidence)
    }
}

/// One draw, fitted.
struct Draw {
    /// Columns in the order of the reference.
    u: Mat,
    latent: Option<Mat>,
    /// The memberships of the states that are looked at.
    seen: Vec<Seen>,
}

/// Fits `replicates` draws from the reference on and compares them with the world they come from. `go_on` is asked before every few draws and may end them with
/// [`Error::Interrupted`].
pub fn bootstrap(
    data: Resample,
    reference: &Factors,
    settings: &BootstrapSettings,
    mut go_on: impl FnMut() -> bool,
) -> Result<Uncertainty> {
    let (d, s) = (reference.u.rows(), reference.rank());
    check(settings, d, s)?;
    let whole = match data {
        Resample::Trips(counts) => counts.clone(),
        Resample::Blocks(blocks) => sum(blocks.iter())?,
    };
    for (what, expected, found) in
        [("the counts to resample", d, whole.rows()), ("the counts to resample (columns)", reference.v.rows(), whole.cols())]
    {
        if found != expected {
            return Err(Error::SizeMismatch { what, expected, found });
        }
    }
    let total: f64 = whole.values().iter().sum();
    let share: Vec<f64> = whole.row_sums().into_iter().map(|n| n / total).collect();
    let world = World::new(data, &whole, reference, settings.refit.prior)?;
    let looked_at = looked_at(&whole);
    let everywhere: Vec<u32> = (0..whole.cols() as u32).collect();
    let draw = |b: usize| -> Result<Draw> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed.wrapping_add(b as u64));
        rng.jump();
        let observed = Observed::new(world.draw(&mut rng)?)?;
        let x = likelihood(&observed, reference, &settings.refit)?.factors;
        let order = matching(&world.truth.u, &x.u, &share);
        let x = Factors { u: x.u.select_columns(&order), v: x.v.select_columns(&order) };
        let mut memberships = Vec::new();
        for i in looked_at.clone().filter(|_| s > 1) {
            let ((ends, counts), law) = (observed.counts().row(i), world.law(i));
            let law = StateCounts { ends: &everywhere, counts: &law, v: &x.v };
            memberships.extend(seen(&StateCounts { ends, counts, v: &x.v }, &law, x.u.row(i), world.truth.u.row(i)));
        }
        Ok(Draw { latent: latent(&x), u: x.u, seen: memberships })
    };
    let mut draws: Vec<Draw> = Vec::with_capacity(settings.replicates);
    while draws.len() < settings.replicates {
        if !go_on() {
            return Err(Error::Interrupted);
        }
        let some = draws.len()..settings.replicates.min(draws.len() + DRAWS_AT_ONCE);
        draws.extend(some.into_par_iter().map(draw).collect::<Result<Vec<_>>>()?);
    }
    let thresholds = Thresholds::of(draws.iter().flat_map(|draw| draw.seen.iter().copied()).collect(), settings.confidence);
    let ends = intervals(&whole, reference, &thresholds);
    let (memberships, drawn): (Vec<Mat>, Vec<Option<Mat>>) = draws.into_iter().map(|draw| (draw.u, draw.latent)).unzip();
    let drawn: Option<Vec<Mat>> = drawn.into_iter().collect();
    let latent =
        latent(reference).zip(latent(&world.truth)).zip(drawn).map(|((published, truth), drawn)| LatentDraws { published, truth, drawn });
    Ok(summarise(reference, &memberships, &share, settings, ends, latent))
}

/// `V^T U`.
fn latent(x: &Factors) -> Option<Mat> {
    (x.u.rows() == x.v.rows()).then(|| thin::cross_gram(&x.v, &x.u))
}

/// The states whose memberships are held against their targets: so many that it costs no more than the fits, evenly spread.
fn looked_at(counts: &Csr) -> std::iter::StepBy<std::ops::Range<usize>> {
    let d = counts.rows();
    let many = (counts.nonzeros() / (4 * d)).clamp(LEAST_STATES, MOST_STATES);
    (0..d).step_by(d.div_ceil(many))
}

/// The intervals of all memberships: lower and upper ends.
fn intervals(whole: &Csr, reference: &Factors, thresholds: &Thresholds) -> (Mat, Mat) {
    let (d, s) = (reference.u.rows(), reference.rank());
    let of_row = |i: usize| {
        let (ends, counts) = whole.row(i);
        thresholds.intervals(&StateCounts { ends, counts, v: &reference.v }, reference.u.row(i))
    };
    let ends: Vec<Vec<(f64, f64)>> = (0..d).into_par_iter().map(of_row).collect();
    (Mat::from_fn(d, s, |i, k| ends[i][k].0), Mat::from_fn(d, s, |i, k| ends[i][k].1))
}

fn summarise(
    reference: &Factors,
    draws: &[Mat],
    share: &[f64],
    settings: &BootstrapSettings,
    (lower, upper): (Mat, Mat),
    latent: Option<LatentDraws>,
) -> Uncertainty {
    let (d, s) = (reference.u.rows(), reference.rank());
    let overlap = |draw: &Mat, k: usize| {
        let (mut both, mut either) = (0.0, 0.0);
        for i in 0..d {
            let (a, b) = (reference.u[(i, k)], draw[(i, k)]);
            both += share[i] * a.min(b);
            either += share[i] * a.max(b);
        }
        if either > 0.0 { both / either } else { 0.0 }
    };
    let count = draws.len() as f64;
    let stability = (0..s).map(|k| draws.iter().map(|draw| overlap(draw, k)).sum::<f64>() / count).collect();
    let agreement: Vec<f64> = (0..d)
        .map(|i| {
            let home = largest_entry(reference.u.row(i));
            draws.iter().filter(|draw| largest_entry(draw.row(i)) == home).count() as f64 / count
        })
        .collect();
    let undecided = agreement.iter().map(|a| *a < settings.confidence).collect();
    Uncertainty { lower, upper, stability, agreement, undecided, latent, replicates: draws.len() }
}

fn check(settings: &BootstrapSettings, d: usize, s: usize) -> Result<()> {
    let wrong = |name, value: String, allowed| Err(Error::Setting { name, value, allowed });
    if settings.replicates < 2 {
        return wrong("the number of bootstrap draws", settings.replicates.to_string(), "it must be at least 2");
    }
    if !(settings.confidence > 0.0 && settings.confidence < 1.0) {
        return wrong("the confidence of the intervals", settings.confidence.to_string(), "it must lie between 0 and 1");
    }
    let bytes = 8 * d as u128 * s as u128 * settings.replicates as u128;
    if bytes > MOST_BYTES {
        return Err(Error::TooLarge { what: "the memberships of all draws", bytes, remedy: "ask for fewer draws" });
    }
    Ok(())
}
