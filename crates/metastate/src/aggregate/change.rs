//! Which zones change over the slices: a likelihood ratio on held-out transitions, against no change, with its p-value by permutation.
//!
//! Zone z leads to zone k in slice h with a share of its own, or with one and the same share in all slices. Both are estimated on all folds but one and compared on that one, each fold in turn:
//! `sum n_hk ln(q_h(k) / q(k))` over the held-out transitions out of z. Shares of a slice are shrunk towards those of the whole by as many transitions as there are zones.
//!
//! If nothing changes, the slice of a transition says nothing about where it leads once its origin is known. So slices are dealt anew among the transitions of each state, again and again, and the p-value
//! is the share of deals (the real one counted in) that are as far from no change as the data.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::Partition;
use crate::chain::Slices;
use crate::counts::Folds;
use crate::error::{Error, Result};

/// How often slices are permuted at random.
const PERMUTATIONS: usize = 199;
/// With more transitions than this the test is not made.
const MOST_TRANSITIONS: f64 = 2e7;
/// Entries of the table of one zone (folds, slices, zones).
const MOST_ENTRIES: usize = 1 << 22;

/// How the test is made.
///
/// See the example of [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeSettings {
    /// Deals.
    pub permutations: usize,
    /// Seed of the deals.
    pub seed: u64,
}

impl ChangeSettings {
    /// With 199 random permutations.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        ChangeSettings { permutations: PERMUTATIONS, seed }
    }
}

/// The test of one zone against the hypothesis that nothing changes.
///
/// See the example of [`Change`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ZoneChange {
    /// Transitions out of it.
    pub transitions: f64,
    /// The likelihood ratio on held-out transitions, in all.
    pub log_ratio: f64,
    /// Share of the deals with a ratio as large, the data counted in.
    pub p_value: f64,
}

impl ZoneChange {
    /// By how many nats knowing the slice improves the prediction of one transition.
    #[must_use]
    pub fn gain(&self) -> f64 {
        if self.transitions > 0.0 { self.log_ratio / self.transitions } else { 0.0 }
    }
}

/// The test of all zones against the hypothesis that nothing changes.
///
/// ```
/// use metastate::aggregate::{Change, ChangeSettings, Partition};
/// use metastate::{Csr, Folds, Slices, StateIndex};
///
/// // In slice 0 everybody goes to state 0, in slice 1 to state 1.
/// let slices = Slices::new(StateIndex::numbered(2), vec![(0, 0), (0, 1), (1, 0), (1, 1)], 2)?;
/// let counts = Csr::from_triplets(2, 4, &[(0, 0, 50.0), (0, 3, 50.0), (1, 0, 50.0), (1, 3, 50.0)])?;
/// let zones = Partition::numbered(vec![0, 1], &[0.5, 0.5], 2);
/// let change = Change::test(&Folds::of_trips(&counts, 5, 0)?, &slices, &zones, &ChangeSettings::new(0))?.unwrap();
/// assert_eq!(change.zones[0].p_value, 1.0 / 200.0); // no deal of the slices comes near to the data
/// assert!(change.zones[0].gain() > 0.0);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// Deals.
    pub permutations: usize,
    /// Parts of the data that were held out in turn.
    pub folds: usize,
    /// Zone by zone.
    pub zones: Vec<ZoneChange>,
    /// All of them together.
    pub whole: ZoneChange,
}

impl Change {
    /// The test on these folds, whose columns are those of the slices. None where it cannot be made, with the reason: counts that are not whole, or too many.
    pub fn test(
        folds: &Folds,
        slices: &Slices,
        zones: &Partition,
        settings: &ChangeSettings,
    ) -> Result<std::result::Result<Change, &'static str>> {
        let counts = folds.whole();
        for (what, expected, found) in [
            ("the counts (rows)", slices.states(), counts.rows()),
            ("the counts (columns)", slices.columns().len(), counts.cols()),
            ("the zones", slices.states(), zones.labels.len()),
        ] {
            if expected != found {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        let count = zones.clusters();
        if counts.values().iter().any(|n| n.fract() != 0.0) {
            return Ok(Err("the counts are not whole numbers, so there are no single transitions whose slices could be dealt anew"));
        }
        if counts.values().iter().sum::<f64>() > MOST_TRANSITIONS {
            return Ok(Err("there are more than twenty million transitions, whose slices would have to be dealt anew hundreds of times"));
        }
        if folds.len() * slices.len() * count > MOST_ENTRIES {
            return Ok(Err("there are too many zones and slices for a table of all of them"));
        }
        let held_out: Vec<_> = (0..folds.len()).map(|f| folds.held_out(f)).collect();
        let of_zone = |z: usize| {
            let mut moves = ZoneTransitions { starts: vec![0], ..ZoneTransitions::default() };
            for i in (0..slices.states()).filter(|&i| zones.labels[i] as usize == z) {
                for (f, part) in held_out.iter().enumerate() {
                    let (columns, values) = part.row(i);
                    for (&c, &n) in columns.iter().zip(values) {
                        let (slice, state) = slices.columns()[c as usize];
                        let place = (f * count) as u32 + zones.labels[state as usize];
                        moves.places.extend(std::iter::repeat_n(place, n as usize));
                        moves.slices.extend(std::iter::repeat_n(slice, n as usize));
                    }
                }
                moves.starts.push(moves.places.len());
            }
            let seed = settings.seed ^ (z as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            moves.ratios(folds.len(), slices.len(), count, settings.permutations, seed)
        };
        // One zone after the other on each thread: its transitions are the room that this takes.
        let found: Vec<(usize, Vec<f64>)> = (0..count).into_par_iter().map(of_zone).collect();
        let mut sums = vec![0.0; settings.permutations + 1];
        found.iter().for_each(|(_, ratios)| sums.iter_mut().zip(ratios).for_each(|(sum, r)| *sum += r));
        let judged = |transitions: usize, ratios: &[f64]| {
            let as_far = ratios.iter().filter(|r| **r >= ratios[0]).count();
            ZoneChange { transitions: transitions as f64, log_ratio: ratios[0], p_value: as_far as f64 / ratios.len() as f64 }
        };
        Ok(Ok(Change {
            permutations: settings.permutations,
            folds: folds.len(),
            zones: found.iter().map(|(n, ratios)| judged(*n, ratios)).collect(),
            whole: judged(found.iter().map(|f| f.0).sum(), &sums),
        }))
    }
}

/// The transitions out of one zone, one by one, those of each state together.
#[derive(Default)]
struct ZoneTransitions {
    /// Fold and zone of arrival of each.
    places: Vec<u32>,
    /// Its slice.
    slices: Vec<u32>,
    /// Where the transitions of each state begin.
    starts: Vec<usize>,
}

impl ZoneTransitions {
    /// The number of transitions, and the likelihood ratio of the data, then of each deal.
    fn ratios(mut self, folds: usize, slices: usize, zones: usize, deals: usize, seed: u64) -> (usize, Vec<f64>) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut ratios = Vec::with_capacity(deals + 1);
        let mut table = vec![0.0; folds * slices * zones];
        for deal in 0..=deals {
            if deal > 0 {
                for w in self.starts.windows(2) {
                    shuffle(&mut self.slices[w[0]..w[1]], &mut rng);
                }
            }
            table.fill(0.0);
            for (&place, &slice) in self.places.iter().zip(&self.slices) {
                table[slice as usize * folds * zones + place as usize] += 1.0;
            }
            ratios.push(log_ratio(&table, folds, slices, zones));
        }
        (self.places.len(), ratios)
    }
}

fn shuffle(list: &mut [u32], rng: &mut Xoshiro256PlusPlus) {
    for i in (1..list.len()).rev() {
        list.swap(i, rng.random_range(0..=i));
    }
}

/// From the transitions out of one zone by slice, fold and zone of arrival.
fn log_ratio(table: &[f64], folds: usize, slices: usize, zones: usize) -> f64 {
    let at = |h: usize, f: usize| &table[(h * folds + f) * zones..(h * folds + f + 1) * zones];
    let weight = zones as f64;
    let mut sum = 0.0;
    for f in 0..folds {
        // One transition more to each zone, so that no share is nothing.
        let mut whole = vec![1.0; zones];
        let mut training = vec![0.0; slices * zones];
        for h in 0..slices {
            let own = &mut training[h * zones..(h + 1) * zones];
            (0..folds).filter(|g| *g != f).for_each(|g| own.iter_mut().zip(at(h, g)).for_each(|(a, b)| *a += b));
            whole.iter_mut().zip(own).for_each(|(a, b)| *a += *b);
        }
        let all: f64 = whole.iter().sum();
        for h in 0..slices {
            let own = &training[h * zones..(h + 1) * zones];
            let total: f64 = own.iter().sum::<f64>() + weight;
            for (k, n) in at(h, f).iter().enumerate().filter(|(_, n)| **n > 0.0) {
                let of_whole = whole[k] / all;
                sum += n * ((own[k] + weight * of_whole) / total / of_whole).ln();
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::StateIndex;
    use crate::linalg::Csr;

    /// Four states in two zones and two slices. State by state 100 transitions a slice; `change` says which zones lead elsewhere in the second slice.
    fn data(change: [bool; 2], seed: u64) -> (Csr, Slices, Partition) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let columns: Vec<(u32, u32)> = (0..2).flat_map(|h| (0..4).map(move |a| (h, a))).collect();
        let mut entries = Vec::new();
        for i in 0..4u32 {
            for h in 0..2u32 {
                let home = if change[i as usize / 2] && h == 1 { 0.2 } else { 0.7 };
                for _ in 0..100 {
                    let zone = if rng.random::<f64>() < home { i / 2 } else { 1 - i / 2 };
                    entries.push((i, 4 * h + 2 * zone + rng.random_range(0..2u32), 1.0));
                }
            }
        }
        let slices = Slices::new(StateIndex::numbered(2), columns, 4).unwrap();
        (Csr::from_triplets(4, 8, &entries).unwrap(), slices, Partition::ordered_by_mass(&[0, 0, 1, 1], &[0.3, 0.3, 0.2, 0.2], 2))
    }

    fn tested(change: [bool; 2], seed: u64) -> Change {
        let (counts, slices, zones) = data(change, seed);
        let folds = Folds::of_trips(&counts, 5, seed).unwrap();
        Change::test(&folds, &slices, &zones, &ChangeSettings { permutations: 99, seed }).unwrap().unwrap()
    }

    #[test]
    fn the_zone_that_changes_is_found() {
        let found = tested([true, false], 3);
        assert_eq!((found.zones[0].transitions, found.whole.transitions), (400.0, 800.0));
        assert!(found.zones[0].gain() > 0.05 && found.zones[0].p_value == 0.01, "{:?}", found.zones[0]);
        assert!(found.zones[1].p_value > 0.05 && found.zones[1].gain() < 0.01, "{:?}", found.zones[1]);
        assert!(found.whole.p_value == 0.01);
    }

    /// Where nothing changes, a p-value below 0.1 comes once in ten times.
    #[test]
    fn p_values_of_no_change_are_even() {
        let all: Vec<f64> = (0..60).flat_map(|seed| tested([false, false], 100 + seed).zones.into_iter().map(|z| z.p_value)).collect();
        let below = |p: f64| all.iter().filter(|x| **x <= p).count();
        // Of 120: 12 and 60 are expected, with standard deviations of 3.3 and 5.5.
        assert!((3..=23).contains(&below(0.1)), "{}", below(0.1));
        assert!((42..=78).contains(&below(0.5)), "{}", below(0.5));
    }

    #[test]
    fn the_same_for_any_number_of_threads() {
        let on = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| tested([true, true], 5));
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn what_cannot_be_tested_says_why() {
        let (counts, slices, zones) = data([true, true], 1);
        let halves: Vec<(u32, u32, f64)> = counts.triplets().map(|(i, j, n)| (i, j, n / 2.0)).collect();
        let folds = Folds::of_trips(&Csr::from_triplets(4, 8, &halves).unwrap(), 5, 0).unwrap();
        let why = Change::test(&folds, &slices, &zones, &ChangeSettings::new(0)).unwrap().unwrap_err();
        assert!(why.contains("not whole"), "{why}");
    }
}
