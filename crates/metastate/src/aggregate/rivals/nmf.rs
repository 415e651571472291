//! Plain nonnegative factors at the given rank, from the NNDSVD start (Boutsidis and Gallopoulos 2008).

use super::{RivalSettings, Training, spectral};
use crate::error::Result;
use crate::linalg::{Mat, thin};
use crate::solve::refit::{LikelihoodSettings, least_squares, likelihood};
use crate::solve::{Factors, Problem};

/// When five sweeps lower the error by less than this share, it ends.
const TOLERANCE: f64 = 1e-6;
/// Sweeps at most.
const SWEEPS: usize = 1000;

/// Share of the mean in every row and column of the start: what is zero there would stay zero.
const OF_THE_MEAN: f64 = 0.01;

/// From each singular pair the nonnegative part with the larger product of norms; what is zero is lifted to a little.
fn nndsvd(training: &Training, settings: &RivalSettings) -> Factors {
    let svd = spectral::svd(training, settings.rank, settings.seed);
    let (m, n, k) = (training.rows(), training.cols(), svd.values.len());
    let (mut u, mut v) = (Mat::zeros(m, settings.rank), Mat::zeros(n, settings.rank));
    for c in 0..k {
        let part = |m: &Mat, sign: f64| -> Vec<f64> { (0..m.rows()).map(|i| (sign * m[(i, c)]).max(0.0)).collect() };
        let norm = |x: &[f64]| thin::dot(x, x).sqrt();
        let sides = [1.0, -1.0].map(|sign| (part(&svd.left, sign), part(&svd.right, sign)));
        let weight = |side: &(Vec<f64>, Vec<f64>)| norm(&side.0) * norm(&side.1);
        let (x, y) = if weight(&sides[0]) >= weight(&sides[1]) { &sides[0] } else { &sides[1] };
        let scale = svd.values[c] * norm(y) / norm(y).max(f64::MIN_POSITIVE);
        (0..m).for_each(|i| u[(i, c)] = scale * x[i] / training.weights()[i]);
        (0..n).for_each(|j| v[(j, c)] = y[j]);
    }
    // Columns of V sum to one, their length goes to U, whose rows sum to one; a little of the mean everywhere.
    let sums = thin::column_sums(&v);
    let marginal = training.observed().marginal();
    thin::for_each_row_mut(&mut v, |i, row| {
        row.iter_mut()
            .zip(&sums)
            .for_each(|(x, s)| *x = (1.0 - OF_THE_MEAN) * if *s > 0.0 { *x / s } else { marginal[i] } + OF_THE_MEAN * marginal[i]);
    });
    thin::for_each_row_mut(&mut u, |_, row| row.iter_mut().zip(&sums).for_each(|(x, s)| *x *= s));
    let mut x = Factors { u, v };
    x.normalise_rows();
    let share = OF_THE_MEAN / settings.rank as f64;
    thin::for_each_row_mut(&mut x.u, |_, row| row.iter_mut().for_each(|x| *x = (1.0 - OF_THE_MEAN) * *x + share));
    x
}

/// lambda has no part in least squares; a problem must have one.
const NO_PENALTY: f64 = 1.0;

/// Least squares.
pub fn least_squares_factors(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let problem = Problem::new(training.p(), training.weights(), NO_PENALTY)?;
    Ok(least_squares(&problem, &nndsvd(training, settings), TOLERANCE, SWEEPS).factors)
}

/// Kullback-Leibler divergence of the counts.
pub fn likelihood_factors(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let plain = LikelihoodSettings { prior: 0.0, ..LikelihoodSettings::default() };
    Ok(likelihood(training.observed(), &nndsvd(training, settings), &plain)?.factors)
}
