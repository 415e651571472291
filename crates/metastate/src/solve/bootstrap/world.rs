//! The world that draws come from: a model whose truth is known, so that what the program says of a draw can be held against it.
//!
//! Its truth is the fitted model without the prior's pull (`sharpened`). Trips are drawn from that model, each state with its own number of departures. Trajectories are resampled
//! by blocks, because frames depend on each other in ways the model need not know; there the model is as near to the truth as can be known.

use rand::RngExt;
use rand_distr::{Binomial, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Resample;
use crate::counts::folds::sum;
use crate::error::{Error, Result};
use crate::linalg::{Csr, thin};
use crate::simulate::AliasTable;
use crate::solve::problem::Factors;
use crate::solve::refit::marginal_law;

/// A row with more departures than this many times the number of columns is drawn destination by destination, not trip by trip.
const MANY_TRIPS: usize = 2;

pub(super) struct World<'a> {
    data: Resample<'a>,
    /// What is true in it.
    pub truth: Factors,
    /// Where a trip of each meta-state ends.
    ends: Vec<AliasTable>,
}

impl<'a> World<'a> {
    /// `counts` are all the data.
    pub fn new(data: Resample<'a>, counts: &Csr, reference: &Factors, prior: f64) -> Result<Self> {
        let truth = sharpened(counts, reference, prior);
        match data {
            Resample::Blocks(_) => Ok(World { data, truth, ends: Vec::new() }),
            Resample::Trips(_) => {
                // A meta-state that leads nowhere is not passed through either: any law will do.
                let anywhere = || AliasTable::new(&vec![1.0; truth.v.rows()]);
                let table = |k| AliasTable::new(&truth.v.column(k)).or_else(anywhere).ok_or(Error::Empty { what: "a meta-state" });
                let ends = (0..truth.rank()).map(table).collect::<Result<_>>()?;
                Ok(World { data, truth, ends })
            }
        }
    }

    /// Where the transitions out of a state lead.
    pub fn law(&self, i: usize) -> Vec<f64> {
        (0..self.truth.v.rows()).map(|j| thin::dot(self.truth.u.row(i), self.truth.v.row(j))).collect()
    }

    /// Data of the same size.
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> Result<Csr> {
        match self.data {
            Resample::Blocks(blocks) => {
                let picked: Vec<&Csr> = (0..blocks.len()).map(|_| &blocks[rng.random_range(0..blocks.len())]).collect();
                sum(picked.into_iter())
            }
            Resample::Trips(counts) => self.draw_trips(counts, rng),
        }
    }

    fn draw_trips(&self, counts: &Csr, rng: &mut Xoshiro256PlusPlus) -> Result<Csr> {
        let (m, n) = (counts.rows(), counts.cols());
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut ends: Vec<u32> = Vec::new();
        for i in 0..m {
            // Shares of a transition become one by chance: weights need not be whole numbers.
            let trips = (counts.row(i).1.iter().sum::<f64>() + rng.random_range(0.0..1.0)).floor() as u64;
            if trips > (MANY_TRIPS * n) as u64 {
                let drawn = multinomial(trips, self.law(i).into_iter(), rng).enumerate().filter(|(_, n)| *n > 0);
                drawn.for_each(|(j, n)| {
                    indices.push(j as u32);
                    values.push(n as f64);
                });
            } else {
                ends.clear();
                let through: Vec<u64> = multinomial(trips, self.truth.u.row(i).iter().copied(), rng).collect();
                through.iter().zip(&self.ends).for_each(|(n, law)| ends.extend((0..*n).map(|_| law.draw(rng))));
                ends.sort_unstable();
                for same in ends.chunk_by(|a, b| a == b) {
                    indices.push(same[0]);
                    values.push(same.len() as f64);
                }
            }
            indptr.push(indices.len());
        }
        Csr::from_parts(m, n, indptr, indices, values)
    }
}

/// So many things dealt by a law that sums to one: one binomial a place, given what is left.
fn multinomial(things: u64, law: impl Iterator<Item = f64>, rng: &mut Xoshiro256PlusPlus) -> impl Iterator<Item = u64> {
    let (mut left, mut mass) = (things, 1.0);
    law.map(move |p| {
        let chance = if p >= mass { 1.0 } else { (p / mass).clamp(0.0, 1.0) };
        mass -= p;
        let here = if left == 0 || chance == 0.0 { 0 } else { Binomial::new(left, chance).map_or(0, |law| law.sample(rng)) };
        left -= here;
        here
    })
}

/// The reference without the prior's pull: at a fixed point `u_ik = (n_ik + c a_k) / (n_i + c)` with `n_ik` the departures by way of k, and
/// likewise for V; what stands here are the shares of `n_ik`. Without this step the draws would be pulled twice, and memberships that are
/// none would not be none in the world either.
fn sharpened(counts: &Csr, reference: &Factors, prior: f64) -> Factors {
    let (m, n, s) = (reference.u.rows(), reference.v.rows(), reference.rank());
    let departures = counts.row_sums();
    let total: f64 = departures.iter().sum();
    let share: Vec<f64> = departures.iter().map(|n| n / total).collect();
    let mass = reference.mass(&share);
    let marginal = marginal_law(counts);
    let mut x = reference.clone();
    for i in 0..m {
        let row = x.u.row_mut(i);
        row.iter_mut().zip(&mass).for_each(|(u, a)| *u = (*u * (departures[i] + prior) - prior * a).max(0.0));
        divide(row, reference.u.row(i));
    }
    for k in 0..s {
        let given = prior * m as f64 * mass[k];
        let mut column: Vec<f64> = (0..n).map(|j| (x.v[(j, k)] * (total * mass[k] + given) - given * marginal[j]).max(0.0)).collect();
        divide(&mut column, &reference.v.column(k));
        (0..n).for_each(|j| x.v[(j, k)] = column[j]);
    }
    x
}

/// By its sum; where nothing is left, as it was.
fn divide(x: &mut [f64], before: &[f64]) {
    let sum: f64 = x.iter().sum();
    if sum > 0.0 {
        x.iter_mut().for_each(|x| *x /= sum);
    } else {
        x.copy_from_slice(before);
    }
}
