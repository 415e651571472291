//! How sure the kinetics are: what each part of the data adds to them.
//!
//! The data are cut into parts: blocks of frames, or transitions dealt at random. One part after another weighs a little less, and every number is computed again. On the scale where errors are
//! alike on both sides, the logarithm of a time and the logit of a share, the change is `psi_b` for part b, and
//!
//! ```text
//! variance = B / (B - 1) sum_b psi_b^2,   degrees of freedom = (sum_b psi_b^2)^2 / sum_b psi_b^4
//! ```
//!
//! (the infinitesimal jackknife, with Satterthwaite's degrees of freedom). The interval is Student's. A time that rests on three crossings of a barrier has three parts that matter, hence three
//! degrees of freedom and a wide interval; draws with replacement would leave out all three every twentieth time and say little else. `docs/kinetics.md` has the coverage.

use rand::SeedableRng;
use rand_distr::{Distribution, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::project::{Basis, Moments, projected};
use super::{Uncertain, finish, moments_of_counts, reversible, sweeps};
use crate::aggregate::latent::{Mode, modes};
use crate::counts::folds::sum;
use crate::error::Result;
use crate::linalg::{Csr, Mat};
use crate::solve::bootstrap::Resample;
use crate::stats::student_quantile;

/// How much less a part weighs. Small, so that the change is a derivative and nothing falls apart; not so small that rounding shows.
pub const LESS: f64 = 0.1;
/// Parts that single transitions are dealt into.
const DEALT: usize = 60;

/// The chain with each part of the data weighing a little less.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Lighter {
    /// The stochastic chain.
    pub chains: Vec<Mat>,
    /// The modes of the projection.
    pub modes: Vec<Vec<Mode>>,
}

/// The scale on which errors are alike on both sides.
///
/// See the example of [`interval`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Times and rates: the logarithm.
    Times,
    /// Shares and probabilities: the logit.
    Shares,
}

impl Scale {
    fn there(self, x: f64) -> f64 {
        match self {
            Scale::Times => x.ln(),
            Scale::Shares => x.ln() - (-x).ln_1p(),
        }
    }

    fn back(self, y: f64) -> f64 {
        match self {
            Scale::Times => y.exp(),
            Scale::Shares => 1.0 / (1.0 + (-y).exp()),
        }
    }
}

/// The interval of a number, of its values with each part weighing less. An infinite time stays infinite; a share of nothing or of all, and whatever has not two parts, has no interval (NaN).
///
/// ```
/// use metastate::kinetics::{Scale, interval};
///
/// // A time of 10, and what it is with each of four parts of the data weighing a tenth less.
/// let (low, high) = interval(10.0, [9.9, 10.1, 10.05, 9.95].into_iter(), Scale::Times, 0.9);
/// assert!(low < 10.0 && 10.0 < high);
/// ```
pub fn interval(value: f64, lighter: impl Iterator<Item = f64>, scale: Scale, confidence: f64) -> (f64, f64) {
    let at = scale.there(value);
    let places: Vec<f64> = lighter.map(|x| scale.there(x)).collect();
    if value.is_nan() || places.len() < 2 {
        return (f64::NAN, f64::NAN);
    }
    if !at.is_finite() {
        return if scale == Scale::Times { (value, value) } else { (f64::NAN, f64::NAN) };
    }
    let b = places.len() as f64;
    let mean = places.iter().sum::<f64>() / b;
    let psi: Vec<f64> = places.iter().map(|x| (mean - x) / LESS).collect();
    let (second, fourth) = psi.iter().fold((0.0, 0.0), |(s, f), x| (s + x * x, f + x * x * x * x));
    if second.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    if fourth <= 0.0 {
        return (value, value);
    }
    let freedom = (second * second / fourth).max(1.0);
    let half = student_quantile(0.5 + 0.5 * confidence, freedom) * (second * b / (b - 1.0)).sqrt();
    (scale.back(at - half).min(value), scale.back(at + half).max(value))
}

/// The chain and its modes with each part weighing less. `unit` eigenvalues lie on the unit circle; `of_chain` takes the times of the stochastic chain instead of the projection's.
pub(super) fn lighter(data: &Uncertain, basis: &Basis, reversible: bool, (unit, of_chain): (usize, bool)) -> Result<Lighter> {
    let all = moments(data, basis, reversible)?;
    let one = |moments: &Moments| {
        let projected = projected(moments);
        let chain = finish(moments, &projected, basis, reversible, sweeps(projected.rows()));
        let modes = modes(if of_chain { &chain } else { &projected }, unit);
        (chain, modes)
    };
    let (chains, modes) = all.par_iter().map(one).collect::<Vec<_>>().into_iter().unzip();
    Ok(Lighter { chains, modes })
}

/// `W^T D W` and `W^T D P W` with each part weighing less.
pub(super) fn moments(data: &Uncertain, basis: &Basis, reversible: bool) -> Result<Vec<Moments>> {
    let whole = match data.data {
        Resample::Blocks(blocks) => sum(blocks.iter())?,
        Resample::Trips(counts) => counts.clone(),
    };
    let whole = used(&whole, basis);
    let total = moments_of_counts(&basis.w, &whole);
    let one = |b: usize| -> Result<Moments> {
        let part = used(&part(data, b)?, basis);
        if reversible {
            return of_reversible(basis, &less(&whole, &part)?);
        }
        Ok(total.less(&moments_of_counts(&basis.w, &part), LESS))
    };
    (0..parts(data)).into_par_iter().map(one).collect()
}

/// How many parts there are.
pub(super) fn parts(data: &Uncertain) -> usize {
    match data.data {
        Resample::Blocks(blocks) => blocks.len(),
        Resample::Trips(_) => DEALT,
    }
}

/// One part: a block, or transitions dealt to it by Poisson's law.
pub(super) fn part(data: &Uncertain, b: usize) -> Result<Csr> {
    match data.data {
        Resample::Blocks(blocks) => Ok(blocks[b].clone()),
        Resample::Trips(counts) => {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(data.seed.wrapping_add(b as u64));
            rng.jump();
            rng.jump();
            let mut drawn = counts.clone();
            for value in drawn.values_mut() {
                let mean = *value / DEALT as f64;
                // A positive mean always has a law.
                *value = Poisson::new(mean).map_or(mean, |law| law.sample(&mut rng));
            }
            Ok(drawn)
        }
    }
}

/// The counts with a part weighing less; none below zero, where a part was dealt more than there was.
fn less(whole: &Csr, part: &Csr) -> Result<Csr> {
    let triplets: Vec<(u32, u32, f64)> = whole.triplets().chain(part.triplets().map(|(i, j, n)| (i, j, -LESS * n))).collect();
    let mut left = Csr::from_triplets(whole.rows(), whole.cols(), &triplets)?;
    left.values_mut().iter_mut().for_each(|n| *n = n.max(0.0));
    Ok(left)
}

fn of_reversible(basis: &Basis, counts: &Csr) -> Result<Moments> {
    let found = reversible(counts)?;
    Ok(Moments::of_operator(basis, found.operator(), found.law()))
}

/// Transitions from states that the kinetics leave out go.
fn used(counts: &Csr, basis: &Basis) -> Csr {
    let out = |i: usize| basis.u.row(i).iter().all(|x| *x <= 0.0);
    let mut kept = counts.clone();
    for i in (0..counts.rows()).filter(|&i| out(i)) {
        let range = counts.indptr()[i]..counts.indptr()[i + 1];
        kept.values_mut()[range].fill(0.0);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `1 / rate` with each of the parts lighter, where part b saw `events[b]` in `time[b]`.
    fn mean_times(events: &[f64], time: &[f64]) -> (f64, Vec<f64>) {
        let (n, t): (f64, f64) = (events.iter().sum(), time.iter().sum());
        (t / n, (0..events.len()).map(|b| (t - LESS * time[b]) / (n - LESS * events[b])).collect())
    }

    #[test]
    fn four_events_give_the_interval_that_poissons_law_gives() {
        let mut events = vec![0.0; 60];
        [3, 20, 37, 55].into_iter().for_each(|b: usize| events[b] = 1.0);
        let (mean, lighter) = mean_times(&events, &vec![100.0; 60]);
        let (low, high) = interval(mean, lighter.into_iter(), Scale::Times, 0.9);
        // Garwood's exact 90 % interval of four events: 1.366 to 9.154 of them.
        assert!(mean / low > 1.9 && mean / low < 3.6 && high / mean > 2.2 && high / mean < 3.6, "{low} {mean} {high}");
        let many: Vec<f64> = (0..60).map(|b| 90.0 + f64::from(b % 21)).collect();
        let (mean, lighter) = mean_times(&many, &vec![100.0; 60]);
        let (low, high) = interval(mean, lighter.into_iter(), Scale::Times, 0.9);
        assert!(high / mean < 1.03 && mean / low < 1.03, "{low} {mean} {high}");
    }

    #[test]
    fn shares_stay_between_nothing_and_all() {
        let lighter = (0..60).map(|b| 0.99 - if b == 7 { 0.02 } else { 0.0 });
        let (low, high) = interval(0.99, lighter, Scale::Shares, 0.9);
        assert!(low > 0.0 && low < 0.99 && high > 0.99 && high <= 1.0, "{low} {high}");
        assert!(interval(1.0, [1.0, 1.0].into_iter(), Scale::Shares, 0.9).0.is_nan());
        assert_eq!(interval(f64::INFINITY, [f64::INFINITY; 3].into_iter(), Scale::Times, 0.9), (f64::INFINITY, f64::INFINITY));
        assert!(interval(3.0, [3.0].into_iter(), Scale::Times, 0.9).0.is_nan());
    }
}
