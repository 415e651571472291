//! The chain of the meta-states a second time, by plain loops: the projection of P on the memberships some steps later, and whether the stochastic matrix is the one next to it.

use crate::linalg::{Mat, Operator};

/// Departures below this leave nothing in their products, and are divided by the largest.
const TINY: f64 = 1e-200;
/// A row of a stochastic matrix sums to one but for this.
const SUM_ALLOWED: f64 = 1e-9;
/// Probabilities above this are positive.
const POSITIVE: f64 = 1e-9;

/// `W^T D W` and `W^T D P W` with `W = P^m U`, for a chain whose states can all reach each other.
pub fn moments(u: &Mat, p: &dyn Operator, departures: &[f64], steps: usize) -> (Mat, Mat) {
    let mut w = u.clone();
    for _ in 0..steps {
        w = moved(&w, p);
    }
    let image = moved(&w, p);
    let s = u.cols();
    let (mut gram, mut through) = (Mat::zeros(s, s), Mat::zeros(s, s));
    // The chain knows shares only. Of departures at the end of the numbers nothing would be left in their products.
    let most = departures.iter().copied().fold(0.0, f64::max);
    let unit = if most < TINY { most } else { 1.0 };
    for (i, n) in departures.iter().map(|n| n / unit).enumerate() {
        for j in 0..s {
            for k in 0..s {
                gram[(j, k)] += n * w[(i, j)] * w[(i, k)];
                through[(j, k)] += n * w[(i, j)] * image[(i, k)];
            }
        }
    }
    (gram, through)
}

fn moved(x: &Mat, p: &dyn Operator) -> Mat {
    let (d, s) = (x.rows(), x.cols());
    let mut out = Mat::zeros(d, s);
    for i in 0..d {
        p.row(i).for_each(d, |j, q| (0..s).for_each(|k| out[(i, k)] += q * x[(j, k)]));
    }
    out
}

/// How far `G R = S` is from holding, relative to S.
#[must_use]
pub fn projection_residual(gram: &Mat, through: &Mat, projected: &Mat) -> f64 {
    let s = gram.rows();
    let largest = through.as_slice().iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let mut worst: f64 = 0.0;
    for j in 0..s {
        for k in 0..s {
            let left: f64 = (0..s).map(|l| gram[(j, l)] * projected[(l, k)]).sum();
            worst = worst.max((left - through[(j, k)]).abs() / largest);
        }
    }
    worst
}

/// How far a stochastic K is from the best one next to R: with `g = G (K - R)`, every row of g is constant where K is positive and no smaller elsewhere. Relative to G; infinite where K is not stochastic.
#[must_use]
pub fn neighbour_residual(gram: &Mat, projected: &Mat, chain: &Mat) -> f64 {
    let s = gram.rows();
    let mut worst: f64 = 0.0;
    for j in 0..s {
        let sum: f64 = chain.row(j).iter().sum();
        if (sum - 1.0).abs() > SUM_ALLOWED || chain.row(j).iter().any(|x| !x.is_finite() || *x < 0.0) {
            return f64::INFINITY;
        }
        let slope: Vec<f64> =
            (0..s).map(|k| (0..s).map(|l| gram[(j, l)] * (chain[(l, k)] - projected[(l, k)])).sum::<f64>() / gram[(j, j)]).collect();
        let level: f64 = slope.iter().zip(chain.row(j)).map(|(g, x)| g * x).sum();
        for (g, x) in slope.iter().zip(chain.row(j)) {
            worst = worst.max(if *x > POSITIVE { (g - level).abs() } else { (level - g).max(0.0) });
        }
    }
    worst
}
