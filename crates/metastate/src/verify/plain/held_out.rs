//! Scores on what was held out. Every model is mixed with a share of the training data's marginal law before its likelihood is taken.

use super::likelihood::marginal;
use crate::linalg::{Csr, Mat};

/// One fold: what a model was made from, and what it is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Fold<'a> {
    /// All other folds.
    pub training: &'a Csr,
    /// This one.
    pub held_out: &'a Csr,
}

/// How a model did on one fold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FoldScore {
    /// A transition.
    pub log_likelihood: f64,
    /// `||Xi (Q - X)||^2 / ||Xi Q||^2` over the rows that were left in this fold; Q the held-out shares, Xi their weights.
    pub squared_error: f64,
}

/// The mean, and the standard error of the mean.
#[must_use]
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0) / n).sqrt())
}

/// Above this number of states the squared error, which needs every pair of states, is left out (NaN).
const WHOLE_ROWS: usize = 3000;

/// A model, given by its entries, against the held-out data.
fn score(fold: Fold, smoothing: f64, entry: impl Fn(usize, usize, &[f64]) -> f64) -> FoldScore {
    let (m, n) = (fold.training.rows(), fold.training.cols());
    let whole = m.max(n) <= WHOLE_ROWS;
    let law = marginal(fold.training);
    let total: f64 = fold.held_out.values().iter().sum();
    let (mut log, mut error, mut norm) = (0.0, if whole { 0.0 } else { f64::NAN }, 0.0);
    let mut seen = vec![0.0; n];
    for i in 0..m {
        let (columns, values) = fold.held_out.row(i);
        let departures: f64 = values.iter().sum();
        if departures <= 0.0 {
            continue;
        }
        for (&j, &n) in columns.iter().zip(values) {
            let j = j as usize;
            log += n * ((1.0 - smoothing) * entry(i, j, &law) + smoothing * law[j]).ln();
        }
        if whole {
            seen.fill(0.0);
            columns.iter().zip(values).for_each(|(&j, n)| seen[j as usize] += n / departures);
            let weight = (departures / total) * (departures / total);
            error += weight * seen.iter().enumerate().map(|(j, q)| (q - entry(i, j, &law)).powi(2)).sum::<f64>();
            norm += weight * seen.iter().map(|q| q * q).sum::<f64>();
        }
    }
    FoldScore { log_likelihood: log / total, squared_error: error / norm }
}

/// The marginal law, whatever the state.
#[must_use]
pub fn independent_scores(fold: Fold, smoothing: f64) -> FoldScore {
    score(fold, smoothing, |_, j, law| law[j])
}

/// The training counts with `pseudo` further transitions a state by the marginal law.
#[must_use]
pub fn empirical_scores(fold: Fold, pseudo: f64, smoothing: f64) -> FoldScore {
    let departures: Vec<f64> = (0..fold.training.rows()).map(|i| fold.training.row(i).1.iter().sum()).collect();
    score(fold, smoothing, |i, j, law| {
        let n = departures[i];
        if n + pseudo <= 0.0 {
            return law[j];
        }
        let (columns, values) = fold.training.row(i);
        let seen = columns.binary_search(&(j as u32)).map_or(0.0, |at| values[at]);
        (seen + pseudo * law[j]) / (n + pseudo)
    })
}

/// `U V^T`.
#[must_use]
pub fn factor_scores(fold: Fold, u: &Mat, v: &Mat, smoothing: f64) -> FoldScore {
    score(fold, smoothing, |i, j, _| u.row(i).iter().zip(v.row(j)).map(|(u, v)| u * v).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_hand() {
        let training = Csr::from_triplets(2, 2, &[(0, 0, 3.0), (0, 1, 1.0), (1, 0, 4.0)]).unwrap();
        let held_out = Csr::from_triplets(2, 2, &[(0, 1, 2.0)]).unwrap();
        let fold = Fold { training: &training, held_out: &held_out };
        // m = (8, 2) / 10; the empirical row is (3, 1) / 4.
        assert!((independent_scores(fold, 0.5).log_likelihood - 0.2f64.ln()).abs() < 1e-15);
        assert!((empirical_scores(fold, 0.0, 0.5).log_likelihood - (0.5 * 0.25 + 0.5 * 0.2f64).ln()).abs() < 1e-15);
        assert!((empirical_scores(fold, 4.0, 0.0).log_likelihood - ((1.0 + 4.0 * 0.2) / 8.0f64).ln()).abs() < 1e-15);
        assert!((empirical_scores(fold, 0.0, 0.5).squared_error - (0.75f64.powi(2) + 0.75f64.powi(2))).abs() < 1e-15);
        assert_eq!(mean_and_error(&[1.0, 3.0]), (2.0, 1.0));
    }
}
