//! K = V^T U and where it leads.

use crate::linalg::Mat;

/// Squarings of the lazy chain: `2^60` steps.
const SQUARINGS: usize = 60;

/// `V^T U`, entry by entry.
#[must_use]
pub fn latent_matrix(u: &Mat, v: &Mat) -> Mat {
    let mut k = Mat::zeros(u.cols(), u.cols());
    for i in 0..u.rows() {
        for (a, v) in v.row(i).iter().enumerate() {
            k.row_mut(a).iter_mut().zip(u.row(i)).for_each(|(k, u)| *k += v * u);
        }
    }
    k
}

/// The mean over time from the law `start` over states: `(U^T start)^T ((K + I) / 2)^n` for a very large n, by squaring. The lazy chain has no
/// period and the same stationary laws. All numbers are shares, so nothing cancels; rows are divided by their sums, so nothing drifts.
#[must_use]
pub fn limit_law(k: &Mat, u: &Mat, start: &[f64]) -> Vec<f64> {
    let s = k.rows();
    let mut power = Mat::from_fn(s, s, |i, j| 0.5 * (k[(i, j)] + f64::from(u8::from(i == j))));
    for _ in 0..SQUARINGS {
        let square = Mat::from_fn(s, s, |i, j| (0..s).map(|l| power[(i, l)] * power[(l, j)]).sum());
        let sums: Vec<f64> = (0..s).map(|i| square.row(i).iter().sum()).collect();
        power = Mat::from_fn(s, s, |i, j| square[(i, j)] / sums[i]);
    }
    let mut law = vec![0.0; s];
    for (i, x) in start.iter().enumerate() {
        for (l, u) in u.row(i).iter().enumerate() {
            law.iter_mut().zip(power.row(l)).for_each(|(a, p)| *a += x * u * p);
        }
    }
    law
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_classes_keep_what_they_are_given_and_a_period_does_no_harm() {
        // Meta-states 1 and 2 swap places for ever, 3 stays by itself.
        let k = Mat::from_vec(3, 3, vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
        let u = Mat::from_vec(2, 3, vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
        let law = limit_law(&k, &u, &[0.6, 0.4]);
        assert!(law.iter().zip([0.3, 0.3, 0.4]).all(|(a, b)| (a - b).abs() < 1e-14), "{law:?}");
    }
}
