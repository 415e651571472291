//! This package's own method at a fixed rank: the penalised problem from the spectral start, and its refits.

use super::{RivalSettings, Training};
use crate::error::{Error, Result};
use crate::linalg::thin;
use crate::solve::local::{Fast, descend};
use crate::solve::refit::{Starts, least_squares, likelihood_best_start};
use crate::solve::{Factors, Problem, start};

/// When five sweeps lower F by less than this share, it ends.
const TOLERANCE: f64 = 1e-6;
/// Sweeps at most.
const SWEEPS: usize = 1000;
/// Points that the acceleration combines.
const MEMORY: usize = 8;

fn problem<'a>(training: &'a Training, settings: &RivalSettings) -> Result<Problem<'a>> {
    Problem::new(training.p(), training.weights(), settings.lambda)
}

/// A stationary point of F at this rank. No column is appended or removed and nothing is certified: that is for `fit`.
pub fn penalised(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let problem = problem(training, settings)?;
    let mut x = spectral_start(&problem, settings)?;
    descend(&mut Fast::new(MEMORY), &problem, &mut x, TOLERANCE, SWEEPS, &mut || true);
    Ok(x)
}

fn spectral_start(problem: &Problem, settings: &RivalSettings) -> Result<Factors> {
    let basis = start::spectral_basis(problem, settings.rank, settings.seed);
    let x = start::spectral(&basis, settings.rank).ok_or(Error::Empty { what: "the spectral basis" })?;
    Ok(if x.rank() < settings.rank { start::widen(problem, x, settings.rank, settings.seed) } else { x })
}

/// The penalty dropped, least squares.
pub fn least_squares_refit(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let start = penalised(training, settings)?;
    Ok(least_squares(&problem(training, settings)?, &start, TOLERANCE, SWEEPS).factors)
}

/// The penalty dropped, likelihood with a prior; from the penalised solution and from the spectral start, the better of the two.
pub fn likelihood_refit(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let start = penalised(training, settings)?;
    Ok(likelihood_best_start(training.observed(), Starts::new(&start, start.rank(), settings.seed), &settings.likelihood, |_, _| true)?
        .fit
        .factors)
}

/// Shares of lambda_max that are tried, from above. Larger ones leave little of the columns: on taxi trips the fit at 0.3 was worse
/// than one law for all.
const RATIOS: [f64; 6] = [0.03, 0.02, 0.01, 0.005, 0.003, 0.001];
/// A column counts as long as it is not shorter than this share of the longest.
const VANISHED: f64 = 1e-3;

/// The largest of a few lambdas at which the penalised problem keeps all its columns: at larger ones fewer meta-states pay.
pub fn largest_lambda(training: &Training, settings: &RivalSettings, lambda_max: f64) -> Result<f64> {
    for ratio in RATIOS {
        let lambda = ratio * lambda_max;
        let x = penalised(training, &RivalSettings { lambda, ..*settings })?;
        let norms = thin::column_norms(&x.u);
        let longest = norms.iter().copied().fold(0.0, f64::max);
        if norms.iter().all(|n| *n > VANISHED * longest) {
            return Ok(lambda);
        }
    }
    Ok(RATIOS[RATIOS.len() - 1] * lambda_max)
}
