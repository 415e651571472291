//! How sure the memberships are: the data is drawn anew many times, each draw is fitted from its own spectral start, its meta-states
//! are matched to those of the reference, and what varies is told. Trips are resampled one by one (the multinomial law of the
//! counts), trajectories by blocks of frames, because frames depend on each other.

use rand::{RngExt, SeedableRng};
use rand_distr::{Binomial, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::problem::Factors;
use super::refit::{LikelihoodSettings, SpectralFits};
use crate::counts::folds::sum;
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat, thin};

/// Memory for the memberships of all replicates, at most.
const MOST_BYTES: u128 = 4 << 30;

/// What is drawn anew.
#[derive(Debug, Clone, Copy)]
pub enum Resample<'a> {
    /// Single transitions.
    Trips(&'a Csr),
    /// Whole blocks of a trajectory.
    Blocks(&'a [Csr]),
}

/// Choices of the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapSettings {
    /// Draws.
    pub replicates: usize,
    /// Share of the draws inside an interval; also the share that must agree on a state's meta-state for it to be decided.
    pub confidence: f64,
    /// The refit of each draw.
    pub refit: LikelihoodSettings,
    /// Seed of the draws.
    pub seed: u64,
}

/// What varies.
#[derive(Debug, Clone, PartialEq)]
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
    /// `V^T U` of each draw: its latent chain, meta-states in the draw's own order.
    pub latent: Vec<Mat>,
    /// Draws.
    pub replicates: usize,
}

/// Fits `replicates` draws at the rank of the reference and compares them with it. `watch` is told of each draw done.
pub fn bootstrap(data: Resample, reference: &Factors, settings: &BootstrapSettings, watch: impl Fn() + Sync) -> Result<Uncertainty> {
    let (d, s) = (reference.u.rows(), reference.rank());
    check(settings, d, s)?;
    let whole = match data {
        Resample::Trips(counts) => counts.clone(),
        Resample::Blocks(blocks) => sum(blocks.iter())?,
    };
    if whole.rows() != d {
        return Err(Error::SizeMismatch { what: "the counts to resample", expected: d, found: whole.rows() });
    }
    let total: f64 = whole.values().iter().sum();
    let share: Vec<f64> = (0..d).map(|i| whole.row(i).1.iter().sum::<f64>() / total).collect();
    let (draws, latent): (Vec<Mat>, Vec<Mat>) = (0..settings.replicates)
        .into_par_iter()
        .map(|b| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed.wrapping_add(b as u64));
            rng.jump();
            let drawn = match data {
                Resample::Trips(counts) => resample_trips(counts, &mut rng),
                Resample::Blocks(blocks) => {
                    let picked: Vec<&Csr> = (0..blocks.len()).map(|_| &blocks[rng.random_range(0..blocks.len())]).collect();
                    sum(picked.into_iter())?
                }
            };
            let x = SpectralFits::new(drawn, s, settings.seed)?.likelihood(s, &settings.refit)?.factors;
            let aligned = aligned(&reference.u, &x.u, &share);
            watch();
            Ok((aligned, thin::cross_gram(&x.v, &x.u)))
        })
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .unzip();
    Ok(Uncertainty { latent, ..summarise(reference, &draws, &share, settings) })
}

/// As many transitions as there were, drawn from the counts: one binomial a pair, given what is left.
fn resample_trips(counts: &Csr, rng: &mut Xoshiro256PlusPlus) -> Csr {
    let mut drawn = counts.clone();
    let mut mass: f64 = counts.values().iter().sum();
    let mut left = mass.round() as u64;
    for n in drawn.values_mut() {
        let chance = (*n / mass).clamp(0.0, 1.0);
        mass -= *n;
        let here = Binomial::new(left, chance).map_or(0, |law| law.sample(rng));
        left -= here;
        *n = here as f64;
    }
    without_zeros(drawn)
}

fn without_zeros(counts: Csr) -> Csr {
    let triplets: Vec<_> = counts.triplets().filter(|t| t.2 > 0.0).collect();
    Csr::from_triplets(counts.rows(), counts.cols(), &triplets).unwrap_or(counts)
}

/// The columns of `u` in the order of the reference's. A column that is missing becomes zero.
fn aligned(reference: &Mat, u: &Mat, share: &[f64]) -> Mat {
    let (s, t) = (reference.cols(), u.cols());
    let matched = matching(reference, u, share);
    Mat::from_fn(u.rows(), s, |i, k| if matched[k] < t { u[(i, matched[k])] } else { 0.0 })
}

/// For each column of the reference the column of `u` that stands for it: the matching with the largest `sum_k sum_i xi_i r_ik u_il`.
/// Where `u` has fewer columns, some get a number beyond them.
pub(crate) fn matching(reference: &Mat, u: &Mat, share: &[f64]) -> Vec<usize> {
    let (s, t) = (reference.cols(), u.cols());
    let weighted = Mat::from_fn(u.rows(), t, |i, l| share[i] * u[(i, l)]);
    let overlap = thin::cross_gram(reference, &weighted);
    assign(s.max(t), |k, l| if k < s && l < t { -overlap[(k, l)] } else { 0.0 })
}

/// The cheapest assignment of rows to columns (Hungarian method with potentials, `O(n^3)`): the column of each row.
pub fn assign(n: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    // Row and column 0 are sentinels; `row_of[j]` is the row matched to column j.
    let (mut row_price, mut column_price) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let (mut row_of, mut came_from) = (vec![0usize; n + 1], vec![0usize; n + 1]);
    for row in 1..=n {
        row_of[0] = row;
        let mut column = 0;
        let (mut slack, mut used) = (vec![f64::INFINITY; n + 1], vec![false; n + 1]);
        while row_of[column] != 0 {
            used[column] = true;
            let (from, mut step, mut next) = (row_of[column], f64::INFINITY, 0);
            for j in (1..=n).filter(|&j| !used[j]) {
                let reduced = cost(from - 1, j - 1) - row_price[from] - column_price[j];
                if reduced < slack[j] {
                    (slack[j], came_from[j]) = (reduced, column);
                }
                if slack[j] < step {
                    (step, next) = (slack[j], j);
                }
            }
            for j in 0..=n {
                if used[j] {
                    row_price[row_of[j]] += step;
                    column_price[j] -= step;
                } else {
                    slack[j] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[came_from[column]];
            column = came_from[column];
        }
    }
    let mut column_of = vec![0; n];
    (1..=n).for_each(|j| column_of[row_of[j] - 1] = j - 1);
    column_of
}

fn summarise(reference: &Factors, draws: &[Mat], share: &[f64], settings: &BootstrapSettings) -> Uncertainty {
    let (d, s) = (reference.u.rows(), reference.rank());
    let (mut lower, mut upper) = (Mat::zeros(d, s), Mat::zeros(d, s));
    let tail = 0.5 * (1.0 - settings.confidence);
    let mut values = vec![0.0; draws.len()];
    for i in 0..d {
        for k in 0..s {
            values.iter_mut().zip(draws).for_each(|(v, draw)| *v = draw[(i, k)]);
            values.sort_by(f64::total_cmp);
            lower[(i, k)] = quantile(&values, tail);
            upper[(i, k)] = quantile(&values, 1.0 - tail);
        }
    }
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
            let home = largest(reference.u.row(i));
            draws.iter().filter(|draw| largest(draw.row(i)) == home).count() as f64 / count
        })
        .collect();
    let undecided = agreement.iter().map(|a| *a < settings.confidence).collect();
    Uncertainty { lower, upper, stability, agreement, undecided, latent: Vec::new(), replicates: draws.len() }
}

/// Of sorted values, between the two nearest.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    if part == 0.0 {
        return sorted[below];
    }
    sorted[below] + part * (sorted[(below + 1).min(sorted.len() - 1)] - sorted[below])
}

fn largest(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best })
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
