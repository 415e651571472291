//! A grid city whose zones shade into each other: a cell near a border belongs to both sides. The truth is a chain `P = U V^T` with as
//! many meta-states as zones, so that ranks, memberships and likelihoods found in its trips can be judged.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::AliasTable;
use crate::counts::{Counts, StateIndex};
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// Width of the border between two zones, as a share of the typical distance between centres.
const SOFTNESS: f64 = 0.12;
/// Share of a zone's trips that stay in it.
const STAY: f64 = 0.6;

/// A city with soft zones.
///
/// See the example of [`soft_city`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SoftCity {
    /// `cells x zones`: how much a cell belongs to each zone; rows sum to one.
    pub u: Mat,
    /// `cells x zones`: where the trips of each zone end; columns sum to one.
    pub v: Mat,
    /// Share of the trips that begin in each cell.
    pub activity: Vec<f64>,
}

/// Draws a city of `width x height` cells with so many zones. Memberships fall off smoothly with the distance to the zones'
/// centres; 60 % of a zone's trips end in it and the others in zones drawn at random weights; within a zone, busy cells (log-normal,
/// sigma 1/2) are likelier.
///
/// ```
/// use metastate::simulate::soft_city;
///
/// let city = soft_city(8, 6, 3, 1)?;
/// assert_eq!((city.u.rows(), city.u.cols()), (48, 3));
/// assert_eq!(city.sample_counts(1000, 1)?.transitions(), 1000.0);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn soft_city(width: usize, height: usize, zones: usize, seed: u64) -> Result<SoftCity> {
    let cells = width.saturating_mul(height);
    if zones < 2 || cells < zones || u32::try_from(cells).is_err() {
        return Err(Error::Setting {
            name: "the number of zones",
            value: zones.to_string(),
            allowed: "it must be at least 2 and at most the number of cells",
        });
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let spacing = (cells as f64 / zones as f64).sqrt();
    let centres = centres(width as f64, height as f64, zones, &mut rng);
    let mut u = Mat::zeros(cells, zones);
    for i in 0..cells {
        let (x, y) = ((i % width) as f64 + 0.5, (i / width) as f64 + 0.5);
        let row = u.row_mut(i);
        // exp(-distance^2 / (2 softness spacing^2)): at the middle between two centres both are equal.
        for (m, (cx, cy)) in row.iter_mut().zip(&centres) {
            *m = -((x - cx).powi(2) + (y - cy).powi(2)) / (2.0 * SOFTNESS * spacing * spacing);
        }
        let most = row.iter().fold(f64::MIN, |a, b| a.max(*b));
        row.iter_mut().for_each(|m| *m = (*m - most).exp());
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|m| *m /= sum);
    }
    let mut activity: Vec<f64> = (0..cells)
        .map(|_| {
            let z: f64 = StandardNormal.sample(&mut rng);
            (0.5 * z).exp()
        })
        .collect();
    let total: f64 = activity.iter().sum();
    activity.iter_mut().for_each(|a| *a /= total);
    // Where trips that end in zone z end, then what each zone mixes of them.
    let mut within = Mat::from_fn(cells, zones, |i, z| activity[i] * u[(i, z)]);
    for z in 0..zones {
        let sum: f64 = within.column(z).iter().sum();
        (0..cells).for_each(|i| within[(i, z)] /= sum);
    }
    let mut v = Mat::zeros(cells, zones);
    for k in 0..zones {
        let mut flow: Vec<f64> = (0..zones).map(|_| Exp1.sample(&mut rng)).collect();
        flow[k] = 0.0;
        let away: f64 = flow.iter().sum();
        for z in 0..zones {
            let share = if z == k { STAY } else { (1.0 - STAY) * flow[z] / away };
            (0..cells).for_each(|i| v[(i, k)] += share * within[(i, z)]);
        }
    }
    Ok(SoftCity { u, v, activity })
}

/// Centres far from each other: each the farthest from those before it among a few drawn at random.
fn centres(width: f64, height: f64, zones: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<(f64, f64)> {
    let mut centres: Vec<(f64, f64)> = Vec::with_capacity(zones);
    for _ in 0..zones {
        let nearest = |p: &(f64, f64)| centres.iter().map(|c| (c.0 - p.0).powi(2) + (c.1 - p.1).powi(2)).fold(f64::MAX, f64::min);
        let drawn: Vec<(f64, f64)> = (0..20).map(|_| (rng.random_range(0.0..width), rng.random_range(0.0..height))).collect();
        let best = drawn.iter().copied().max_by(|a, b| nearest(a).total_cmp(&nearest(b))).unwrap_or((0.0, 0.0));
        centres.push(best);
    }
    centres
}

impl SoftCity {
    /// The zone to which each cell belongs most.
    #[must_use]
    pub fn zone(&self) -> Vec<u32> {
        self.u.largest_entries().map(|j| j as u32).collect()
    }

    /// Counts of so many trips: the origin by activity, the zone by its memberships, the destination by the zone.
    pub fn sample_counts(&self, trips: usize, seed: u64) -> Result<Counts> {
        let table = |weights: &[f64]| AliasTable::new(weights).ok_or(Error::Empty { what: "a zone of the city" });
        let origin = table(&self.activity)?;
        let zone: Vec<AliasTable> = (0..self.u.rows()).map(|i| table(self.u.row(i))).collect::<Result<_>>()?;
        let end: Vec<AliasTable> = (0..self.v.cols()).map(|k| table(&self.v.column(k))).collect::<Result<_>>()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Far from the numbers that drew the city, even for the same seed.
        rng.long_jump();
        let trips = (0..trips).map(|_| {
            let from = origin.draw(&mut rng);
            let k = zone[from as usize].draw(&mut rng);
            (from, end[k as usize].draw(&mut rng))
        });
        Counts::from_pairs(StateIndex::numbered(self.u.rows()), trips)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_is_stochastic_and_the_trips_follow_it() {
        let city = soft_city(20, 10, 4, 3).unwrap();
        assert!((0..200).all(|i| (city.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12));
        assert!((0..4).all(|k| (city.v.column(k).iter().sum::<f64>() - 1.0).abs() < 1e-12));
        let counts = city.sample_counts(200_000, 1).unwrap();
        assert_eq!(counts.csr(), city.sample_counts(200_000, 1).unwrap().csr());
        // Arrivals at each cell: sum_i activity_i p_ij, within five standard deviations.
        let arrivals = counts.arrivals();
        for j in 0..200 {
            let expected: f64 = (0..200).map(|i| city.activity[i] * (0..4).map(|k| city.u[(i, k)] * city.v[(j, k)]).sum::<f64>()).sum();
            assert!((arrivals[j] - 200_000.0 * expected).abs() < 5.0 * (200_000.0 * expected).sqrt() + 1.0, "cell {j}");
        }
        let soft = (0..200).filter(|&i| city.u.row(i).iter().all(|m| *m < 0.9)).count();
        assert!((20..180).contains(&soft), "{soft} of 200 cells lie between zones");
        assert!(soft_city(2, 1, 5, 0).is_err());
    }
}
