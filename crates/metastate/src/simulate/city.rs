//! A toy city: a coast, square cells on land, zones planted as the places nearest to a few centres, and trips between cells by
//! a gravity law on the zones.

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::AliasTable;
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// Side of a cell in degrees.
pub const CITY_CELL: f64 = 0.01;
/// Cells of the map, west to east and south to north. The sea takes some of them.
const WIDTH: i64 = 26;
const HEIGHT: i64 = 20;
/// The south-west corner, in cells: integers keep every cell exactly on the grid.
const WEST: i64 = -410;
const SOUTH: i64 = 4120;
/// Distance at which the pull of a zone has fallen to 1/e, in cells.
const REACH: f64 = 4.0;
/// Share of the trips that stay in their zone, before the gravity law is applied.
const STAY: f64 = 0.62;

/// A trip: origin and destination with coordinates.
///
/// See the example of [`city`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Trip {
    /// Cell of the origin.
    pub from: u32,
    /// Cell of the destination.
    pub to: u32,
    /// Longitude and latitude of the origin, somewhere in its cell.
    pub start: (f64, f64),
    /// Longitude and latitude of the destination, somewhere in its cell.
    pub end: (f64, f64),
}

/// A city with known zones.
///
/// See the example of [`city`].
#[derive(Debug, Clone)]
pub struct City {
    /// South-west corner of each cell on land, in whole cells.
    corners: Vec<(i64, i64)>,
    /// The planted zone of each cell.
    pub zone: Vec<u32>,
    /// `zones x zones`: where trips from a zone go.
    pub flows: Mat,
    /// How many trips begin (and end) in a cell, relative to the others.
    pub activity: Vec<f64>,
}

/// Draws a city with so many zones.
///
/// ```
/// use metastate::simulate::city;
///
/// let city = city(5, 1)?;
/// let trips = city.trips(100, 1)?;
/// assert_eq!((city.zones(), trips.len()), (5, 100));
/// assert!(trips.iter().all(|t| (t.from as usize) < city.cells()));
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn city(zones: usize, seed: u64) -> Result<City> {
    if !(2..=40).contains(&zones) {
        return Err(Error::Setting { name: "the number of zones", value: zones.to_string(), allowed: "it must be between 2 and 40" });
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let corners = land(&mut rng);
    let centres = spread(&corners, zones, &mut rng);
    let distance2 = |a: (i64, i64), b: (i64, i64)| ((a.0 - b.0).pow(2) + (a.1 - b.1).pow(2)) as f64;
    let nearest = |cell: &(i64, i64)| {
        (1..zones).fold(0, |best, z| if distance2(*cell, centres[z]) < distance2(*cell, centres[best]) { z } else { best }) as u32
    };
    let zone: Vec<u32> = corners.iter().map(nearest).collect();
    // Busy in the middle of a zone, quieter at its edge; some cells are busier than others.
    let activity: Vec<f64> = corners
        .iter()
        .zip(&zone)
        .map(|(cell, &z)| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            (0.35 * noise).exp() / (1.0 + 0.05 * distance2(*cell, centres[z as usize]))
        })
        .collect();
    let mut mass = vec![0.0; zones];
    zone.iter().zip(&activity).for_each(|(&z, a)| mass[z as usize] += a);
    let mut flows = Mat::zeros(zones, zones);
    for a in 0..zones {
        // Gravity: the other zones pull by their mass, less with distance.
        let pull: Vec<f64> =
            (0..zones).map(|b| if a == b { 0.0 } else { mass[b] * (-distance2(centres[a], centres[b]).sqrt() / REACH).exp() }).collect();
        let sum: f64 = pull.iter().sum();
        let jitter: f64 = Exp1.sample(&mut rng);
        let stay = (STAY + 0.05 * jitter).min(0.8);
        (0..zones).for_each(|b| flows[(a, b)] = if a == b { stay } else { (1.0 - stay) * pull[b] / sum });
    }
    Ok(City { corners, zone, flows, activity })
}

impl City {
    /// Number of cells on land.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.corners.len()
    }

    /// Number of zones.
    #[must_use]
    pub fn zones(&self) -> usize {
        self.flows.rows()
    }

    /// Longitude and latitude of a cell's centre.
    #[must_use]
    pub fn centre(&self, cell: usize) -> (f64, f64) {
        let (x, y) = self.corners[cell];
        ((x as f64 + 0.5) * CITY_CELL, (y as f64 + 0.5) * CITY_CELL)
    }

    /// Draws trips. The origin is drawn by activity, the zone of the destination by the flows of the origin's zone, the
    /// destination in it by activity: so the chain has one meta-state for each zone.
    pub fn trips(&self, count: usize, seed: u64) -> Result<Vec<Trip>> {
        let zones = self.zones();
        let mut members = vec![Vec::new(); zones];
        self.zone.iter().enumerate().for_each(|(i, &z)| members[z as usize].push(i as u32));
        let table = |weights: &[f64]| AliasTable::new(weights).ok_or(Error::Empty { what: "a zone of the city" });
        let origin = table(&self.activity)?;
        let next: Vec<AliasTable> = (0..zones).map(|z| table(self.flows.row(z))).collect::<Result<_>>()?;
        let within: Vec<AliasTable> =
            members.iter().map(|m| table(&m.iter().map(|&i| self.activity[i as usize]).collect::<Vec<_>>())).collect::<Result<_>>()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Far from the numbers that drew the city, even for the same seed.
        rng.long_jump();
        Ok((0..count)
            .map(|_| {
                let from = origin.draw(&mut rng);
                let z = next[self.zone[from as usize] as usize].draw(&mut rng) as usize;
                let to = members[z][within[z].draw(&mut rng) as usize];
                let (start, end) = (self.somewhere(from, &mut rng), self.somewhere(to, &mut rng));
                Trip { from, to, start, end }
            })
            .collect())
    }

    /// A point well inside a cell, with the six digits of a receiver.
    fn somewhere(&self, cell: u32, rng: &mut impl Rng) -> (f64, f64) {
        let (x, y) = self.corners[cell as usize];
        let mut along = |corner: i64| ((corner as f64 + rng.random_range(0.02..0.98)) * CITY_CELL * 1e6).round() / 1e6;
        (along(x), along(y))
    }
}

/// Cells that are not sea: the coast runs from south to north in waves, and a bay cuts in.
fn land(rng: &mut Xoshiro256PlusPlus) -> Vec<(i64, i64)> {
    let (phase, second): (f64, f64) = (rng.random_range(0.0..6.0), rng.random_range(0.0..6.0));
    let bay = rng.random_range(0.35..0.65) * HEIGHT as f64;
    let coast = |y: i64| {
        let y = y as f64;
        let cut = 6.0 * (-((y - bay) / 2.2).powi(2)).exp();
        WIDTH as f64 - 4.0 - cut + 2.0 * (y / 3.1 + phase).sin() + (y / 1.3 + second).sin()
    };
    (0..HEIGHT)
        .flat_map(|y| (0..WIDTH).map(move |x| (x, y)))
        .filter(|&(x, y)| (x as f64) < coast(y))
        .map(|(x, y)| (WEST + x, SOUTH + y))
        .collect()
}

/// Centres far from each other: each is the farthest from those before it among a few drawn at random.
fn spread(corners: &[(i64, i64)], count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<(i64, i64)> {
    let mut centres: Vec<(i64, i64)> = Vec::with_capacity(count);
    for _ in 0..count {
        let distance = |c: &(i64, i64)| centres.iter().map(|d| (c.0 - d.0).pow(2) + (c.1 - d.1).pow(2)).min().unwrap_or(0);
        let drawn: Vec<(i64, i64)> = (0..30).map(|_| corners[rng.random_range(0..corners.len())]).collect();
        let best = drawn.iter().copied().max_by_key(distance).unwrap_or(corners[0]);
        centres.push(best);
    }
    centres
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_city_and_points_lie_in_their_cells() {
        let (a, b) = (city(8, 3).unwrap(), city(8, 3).unwrap());
        assert_eq!((a.zone.clone(), a.cells()), (b.zone.clone(), b.cells()));
        let trips = a.trips(2000, 1).unwrap();
        assert_eq!(trips, b.trips(2000, 1).unwrap());
        for t in trips {
            for (cell, (lon, lat)) in [(t.from, t.start), (t.to, t.end)] {
                let (x, y) = a.corners[cell as usize];
                assert_eq!(((lon / CITY_CELL).floor() as i64, (lat / CITY_CELL).floor() as i64), (x, y));
            }
        }
        assert!((0..8).all(|z| a.zone.contains(&z)), "every zone has cells");
        assert!((0..8).all(|z| (a.flows.row(z).iter().sum::<f64>() - 1.0).abs() < 1e-12));
    }
}
