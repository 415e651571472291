//! A fit at a given rank from the counts alone: spectral start, least squares, likelihood.
//!
//! The spectral start takes single rows for meta-states, and in sparse data the outermost rows are the noisiest: one of them may stand for
//! no meta-state while two share a true one, and the likelihood climbs a poor maximum from there. With a few meta-states more than wanted
//! none of the true ones is missing; so the start has them, and the most alike are merged one by one, a few passes between.

use std::sync::{Arc, Mutex, PoisonError};

use super::merge::merge_nearest;
use super::{LeastSquares, Likelihood, LikelihoodSettings, Observed, least_squares, likelihood};
use crate::error::Result;
use crate::linalg::{Csr, Mat};
use crate::solve::problem::{Factors, Problem};
use crate::solve::relaxation::Relaxation;
use crate::solve::start;

/// A state without departures gets this share of the smallest weight: its row is not known.
const UNKNOWN_ROW: f64 = 1e-3;
/// Relative decrease and sweeps at which the least squares before the likelihood end: they only bring it near.
const NEAR: (f64, usize) = (1e-3, 40);
/// Meta-states more than wanted at the start of the likelihood.
const SPARE: usize = 3;
/// Passes of the likelihood before each merger, and their prior.
const BETWEEN_MERGERS: LikelihoodSettings = LikelihoodSettings { prior: 3.0, max_passes: 6, tolerance: 1e-7, accelerate: true };

/// Bases are made for so many ranks at a time,
const RANKS_A_BASIS: usize = 8;
/// and so many are kept.
const KEPT_BASES: usize = 2;

/// Counts with the leading directions of their transition matrix, from which fits of any rank start. Directions are found when a rank asks for them; what a rank gets does not
/// depend on which others were asked for before.
///
/// P itself is not kept: its values are two divisions an entry away from the counts, least squares go over them dozens of times, and a
/// search over ranks holds one of these for every fold.
#[derive(Debug)]
pub struct SpectralFits {
    observed: Observed,
    /// `sqrt(n_i / n)`: each transition weighs the same, so the noise of all rows is alike.
    weights: Vec<f64>,
    seed: u64,
    /// The last bases that were made, each with the highest rank that it serves.
    bases: Mutex<Vec<(usize, Arc<Relaxation>)>>,
}

impl SpectralFits {
    /// Prepares fits to these counts.
    pub fn new(counts: Csr, seed: u64) -> Result<Self> {
        Ok(SpectralFits::of_observed(Observed::new(counts)?, seed))
    }

    /// The same from counts that are there by rows and by columns already.
    pub(crate) fn of_observed(observed: Observed, seed: u64) -> Self {
        SpectralFits { weights: weights(&observed), observed, seed, bases: Mutex::default() }
    }

    /// The counts.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The leading directions for fits of this rank.
    fn basis(&self, rank: usize) -> Result<Arc<Relaxation>> {
        let limit = rank.next_multiple_of(RANKS_A_BASIS);
        let bases = || self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = bases().iter().find(|b| b.0 == limit) {
            return Ok(Arc::clone(known));
        }
        let p = self.observed.transition_matrix()?;
        let made = Arc::new(start::spectral_basis(&Problem::new(&p, &self.weights, 1.0)?, limit, self.seed));
        let mut bases = bases();
        if bases.len() == KEPT_BASES {
            bases.remove(0);
        }
        bases.push((limit, Arc::clone(&made)));
        Ok(made)
    }

    /// The start of this rank; with fewer columns where the data has fewer directions.
    pub fn start(&self, rank: usize) -> Result<Factors> {
        self.cut(rank, rank)
    }

    /// The start of `columns` columns, cut from the basis of a rank.
    fn cut(&self, columns: usize, rank: usize) -> Result<Factors> {
        let (m, n) = (self.observed.rows(), self.observed.cols());
        let one = || Factors { u: Mat::from_fn(m, 1, |_, _| 1.0), v: Mat::from_fn(n, 1, |j, _| self.observed.marginal()[j]) };
        if columns <= 1 {
            return Ok(one());
        }
        Ok(start::spectral(&*self.basis(rank)?, columns).unwrap_or_else(one))
    }

    /// Least squares from the spectral start.
    pub fn least_squares(&self, rank: usize, tolerance: f64, max_sweeps: usize) -> Result<LeastSquares> {
        self.least_squares_from(&self.start(rank)?, tolerance, max_sweeps)
    }

    fn least_squares_from(&self, start: &Factors, tolerance: f64, max_sweeps: usize) -> Result<LeastSquares> {
        let p = self.observed.transition_matrix()?;
        let problem = Problem::new(&p, &self.weights, 1.0)?;
        Ok(least_squares(&problem, start, tolerance, max_sweeps))
    }

    /// The start of the likelihood: least squares with a few meta-states too many, not to the end, then mergers.
    pub fn near(&self, rank: usize) -> Result<Factors> {
        if rank <= 1 {
            return self.start(rank);
        }
        // The basis of the rank carries a few directions more than its rank.
        let mut x = self.least_squares_from(&self.cut(rank + SPARE, rank)?, NEAR.0, NEAR.1)?.factors;
        while x.rank() > rank {
            x = likelihood(&self.observed, &x, &BETWEEN_MERGERS)?.factors;
            merge_nearest(&mut x, self.observed.departure_shares());
        }
        Ok(x)
    }

    /// The likelihood from there.
    pub fn likelihood(&self, rank: usize, settings: &LikelihoodSettings) -> Result<Likelihood> {
        likelihood(&self.observed, &self.near(rank)?, settings)
    }
}

/// Weights for all states: rows that were never left, which are uniform, have next to none.
fn weights(observed: &Observed) -> Vec<f64> {
    let shares = observed.departure_shares();
    let least = shares.iter().copied().filter(|s| *s > 0.0).fold(1.0, f64::min);
    shares.iter().map(|s| if *s > 0.0 { s.sqrt() } else { UNKNOWN_ROW * least.sqrt() }).collect()
}
