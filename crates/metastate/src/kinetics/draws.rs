//! How sure the kinetics are: the chain in data drawn anew, at the memberships as they are.
//!
//! Blocks of frames are drawn with replacement; what the chain needs of each block, `W^T C_b W` and `W^T D_b W`, adds up, so that a draw costs `O(s^3)`. Single transitions are drawn
//! by Poisson's law around their counts.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::project::{Basis, Moments, projected};
use super::{DrawSettings, SWEEPS_A_DRAW, finish, moments_of_counts, reversible, times};
use crate::aggregate::latent::{Mode, Structure};
use crate::counts::folds::sum;
use crate::error::Result;
use crate::linalg::{Csr, Mat};
use crate::solve::bootstrap::Resample;
use crate::stats::quantile;

/// The chain in data drawn anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Draws {
    /// The stochastic chain of each draw.
    pub chains: Vec<Mat>,
    /// The modes of each draw's projection.
    pub modes: Vec<Vec<Mode>>,
}

/// The chain in every draw.
pub(super) fn draw(settings: &DrawSettings, basis: &Basis, reversible: bool) -> Result<Draws> {
    let all = all_moments(settings, basis, reversible)?;
    let one = |moments: &Moments| {
        let projected = projected(moments);
        let chain = finish(moments, &projected, basis, reversible, SWEEPS_A_DRAW);
        let modes = times(&projected, &chain, &Structure::of(&chain));
        (chain, modes)
    };
    let (chains, modes) = all.par_iter().map(one).collect::<Vec<_>>().into_iter().unzip();
    Ok(Draws { chains, modes })
}

/// `W^T D W` and `W^T D P W` in every draw.
pub(super) fn moments(settings: &DrawSettings, basis: &Basis) -> Result<Vec<Moments>> {
    all_moments(settings, basis, false)
}

fn all_moments(settings: &DrawSettings, basis: &Basis, reversible: bool) -> Result<Vec<Moments>> {
    let parts: Vec<Moments> = match (settings.data, reversible) {
        (Resample::Blocks(blocks), false) => blocks.iter().map(|b| moments_of_counts(&basis.w, &used(b, basis))).collect(),
        _ => Vec::new(),
    };
    let one = |n: usize| -> Result<Moments> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed.wrapping_add(n as u64));
        rng.jump();
        rng.jump();
        match settings.data {
            Resample::Blocks(blocks) => {
                let picked: Vec<usize> = (0..blocks.len()).map(|_| rng.random_range(0..blocks.len())).collect();
                if parts.is_empty() {
                    return moments_of_draw(basis, &sum(picked.iter().map(|&b| &blocks[b]))?, reversible);
                }
                let mut whole = parts[picked[0]].clone();
                picked[1..].iter().for_each(|&b| whole.add(&parts[b]));
                Ok(whole)
            }
            Resample::Trips(counts) => moments_of_draw(basis, &poisson(counts, &mut rng)?, reversible),
        }
    };
    (0..settings.draws).into_par_iter().map(one).collect()
}

fn moments_of_draw(basis: &Basis, counts: &Csr, detailed_balance: bool) -> Result<Moments> {
    let counts = used(counts, basis);
    if !detailed_balance {
        return Ok(moments_of_counts(&basis.w, &counts));
    }
    let found = reversible(&counts)?;
    Ok(Moments::of_operator(basis, found.operator(), found.law()))
}

/// Transitions from or to states that the kinetics leave out go.
fn used(counts: &Csr, basis: &Basis) -> Csr {
    let out = |i: usize| basis.u.row(i).iter().all(|x| *x <= 0.0);
    let mut kept = counts.clone();
    for i in 0..counts.rows() {
        let range = counts.indptr()[i]..counts.indptr()[i + 1];
        if out(i) {
            kept.values_mut()[range].fill(0.0);
        }
    }
    kept
}

fn poisson(counts: &Csr, rng: &mut Xoshiro256PlusPlus) -> Result<Csr> {
    let mut drawn = counts.clone();
    for value in drawn.values_mut() {
        // A positive mean always has a law.
        *value = Poisson::new(*value).map_or(*value, |law| law.sample(rng));
    }
    Ok(drawn)
}

/// The bias-corrected percentile interval: where the estimate stands among the draws says how far the draws are shifted, and the ends are taken from quantiles that are shifted
/// twice as far. Infinite draws are as good as any. The estimate is always inside.
pub fn bias_corrected(estimate: f64, drawn: impl Iterator<Item = f64>, confidence: f64) -> (f64, f64) {
    let mut sorted: Vec<f64> = drawn.filter(|x| !x.is_nan()).collect();
    if sorted.is_empty() || estimate.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let below = sorted.iter().filter(|x| **x < estimate).count() as f64;
    let equal = sorted.iter().filter(|x| **x == estimate).count() as f64;
    let share = ((below + 0.5 * equal + 0.5) / (n + 1.0)).clamp(0.5 / (n + 1.0), 1.0 - 0.5 / (n + 1.0));
    let shift = 2.0 * normal_quantile(share);
    let z = normal_quantile(0.5 + 0.5 * confidence);
    let at = |z: f64| finite_quantile(&sorted, normal_share(shift + z));
    (at(-z).min(estimate), at(z).max(estimate))
}

fn finite_quantile(sorted: &[f64], q: f64) -> f64 {
    let found = quantile(sorted, q);
    // Between a finite and an infinite value there is no middle.
    if found.is_nan() { f64::INFINITY } else { found }
}

/// The standard normal law's distribution function (Abramowitz and Stegun 26.2.17; absolute error below 7.5e-8).
fn normal_share(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let poly = t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * poly;
    if z >= 0.0 { 1.0 - tail } else { tail }
}

/// Its inverse, by bisection.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_law_is_the_textbooks() {
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-5 && (normal_share(1.0) - 0.841_344_7).abs() < 1e-6);
    }

    #[test]
    fn draws_around_the_estimate_give_plain_percentiles_and_shifted_draws_are_shifted_back() {
        let plain = bias_corrected(0.0, (0..1001).map(|k| f64::from(k) / 500.0 - 1.0), 0.9);
        assert!((plain.0 + 0.9).abs() < 0.01 && (plain.1 - 0.9).abs() < 0.01, "{plain:?}");
        // All draws lie lower than what they estimate: the interval leans the other way.
        let shifted = bias_corrected(0.0, (0..1001).map(|k| f64::from(k) / 500.0 - 1.5), 0.9);
        assert!(shifted.0 > -1.2 && shifted.1 > 0.49, "{shifted:?}");
    }
}
