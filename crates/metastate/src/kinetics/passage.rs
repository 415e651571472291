//! Passage times between sets of states with each part of the data weighing less, for intervals: first order in what a part adds.
//!
//! From A, as the data visit it, to B: `m = alpha^T h` with `(I - Q) h = 1` outside B. A part with counts `c_ij` and visits `n_i` changes it by
//!
//! ```text
//! sum_ij g_i / D_i c_ij (h_j - h_i + 1) + sum_(i in A) n_i / D_A (h_i - m),   (I - Q)^T g = alpha,
//! ```
//!
//! so that one more system for each pair of sets stands for as many as there are parts.

use rayon::prelude::*;

use super::parts::{LESS, part, parts};
use super::solve::adjoint;
use super::{Microstates, Set, Uncertain};
use crate::error::Result;
use crate::linalg::{Csr, Mat};

/// One pair of sets.
struct Pair {
    from: usize,
    to: usize,
    mean: f64,
    /// What the departures of A add up to.
    visits: f64,
    /// `g_i / D_i`, zero where it plays no part.
    weight: Vec<f64>,
}

impl Microstates {
    /// [`Microstates::passage_between`] once for each part of the data, which weighs less there. The law of the states must be their numbers of departures. NaN on the diagonal, and where a time is infinite.
    pub fn passage_lighter(&self, part_of: &[usize], sets: usize, passage: &Mat, data: &Uncertain) -> Result<Vec<Mat>> {
        let each = |to: usize| -> Result<Option<(Vec<f64>, Vec<Pair>)>> {
            let inside: Set = part_of.iter().map(|p| *p == to).collect();
            if !inside.contains(&true) {
                return Ok(None);
            }
            let steps = self.steps_to(&inside)?;
            let pairs = self.pairs(part_of, sets, to, passage, &steps);
            Ok(Some((steps, pairs)))
        };
        let targets: Vec<(Vec<f64>, Vec<Pair>)> =
            (0..sets).into_par_iter().map(each).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let one = |b: usize| -> Result<Mat> {
            let counts = part(data, b)?;
            let visits = counts.row_sums();
            let mut out = Mat::from_fn(sets, sets, |_, _| f64::NAN);
            for (steps, pairs) in &targets {
                for pair in pairs {
                    let change = pair.change(&counts, &visits, part_of, steps);
                    out[(pair.from, pair.to)] = pair.mean * (-LESS * change / pair.mean).exp();
                }
            }
            Ok(out)
        };
        (0..parts(data)).into_par_iter().map(one).collect()
    }

    /// The pairs that lead to one set.
    fn pairs(&self, part_of: &[usize], sets: usize, to: usize, passage: &Mat, steps: &[f64]) -> Vec<Pair> {
        let law = self.law();
        let live: Vec<usize> = (0..self.states()).filter(|&i| part_of[i] != to && steps[i].is_finite() && law[i] > 0.0).collect();
        let back = self.p().restrict(&live).transposed();
        let coarse = Mat::from_fn(live.len(), self.coarse().cols(), |k, j| law[live[k]] * self.coarse()[(live[k], j)]);
        let pair = |from: usize| {
            let mean = passage[(from, to)];
            let visits: f64 = (0..self.states()).filter(|&i| part_of[i] == from).map(|i| law[i]).sum();
            if from == to || !mean.is_finite() || mean <= 0.0 || visits <= 0.0 {
                return None;
            }
            let start: Vec<f64> = live.iter().map(|&i| if part_of[i] == from { law[i] / visits } else { 0.0 }).collect();
            let mut weight = vec![0.0; self.states()];
            live.iter().zip(adjoint(&back, &start, &coarse)?).for_each(|(&i, g)| weight[i] = g / law[i]);
            Some(Pair { from, to, mean, visits, weight })
        };
        (0..sets).filter_map(pair).collect()
    }
}

impl Pair {
    /// What the part adds to the mean time.
    fn change(&self, counts: &Csr, visits: &[f64], part_of: &[usize], steps: &[f64]) -> f64 {
        let moved: f64 = (0..counts.rows())
            .filter(|&i| self.weight[i] != 0.0)
            .map(|i| {
                let (columns, values) = counts.row(i);
                self.weight[i] * columns.iter().zip(values).map(|(&j, n)| n * (steps[j as usize] - steps[i] + 1.0)).sum::<f64>()
            })
            .sum();
        let started: f64 =
            (0..steps.len()).filter(|&i| part_of[i] == self.from && visits[i] > 0.0).map(|i| visits[i] * (steps[i] - self.mean)).sum();
        moved + started / self.visits
    }
}
