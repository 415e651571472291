//! The nuclear relaxation `min 1/2 ||Xi (P - X)||_F^2 + lambda ||X||_* over X 1 = 1`, solved densely and slowly, with no
//! code of the library. Its optimum L lies below that of the stated problem, and every bound that the library certifies
//! is a bound of this relaxation: `library's lower bound <= L <= objective of any feasible U, V`.
//!
//! Plain ADMM on `X = Z`: X keeps the row sums, Z the nuclear norm.

#![allow(dead_code)] // not every test uses all of it

use faer::Mat;

pub struct Nuclear {
    /// Objective at `x`, whose rows sum to one: an upper bound of L.
    pub upper: f64,
    /// Dual value at `w`, whose spectral norm is at most 1: a lower bound of L.
    pub lower: f64,
    pub x: Mat<f64>,
    /// Multipliers of the row sums at the dual point.
    pub mu: Vec<f64>,
}

pub fn solve(p: &Mat<f64>, xi: &[f64], lambda: f64, iterations: usize) -> Nuclear {
    let (m, n) = (p.nrows(), p.ncols());
    let rho = xi.iter().map(|x| x * x).sum::<f64>() / m as f64;
    let (mut x, mut z, mut y) = (p.clone(), p.clone(), Mat::<f64>::zeros(m, n));
    let mut w = Mat::<f64>::zeros(m, n);
    for _ in 0..iterations {
        for i in 0..m {
            let w2 = xi[i] * xi[i];
            for j in 0..n {
                x[(i, j)] = (w2 * p[(i, j)] + rho * (z[(i, j)] - y[(i, j)])) / (w2 + rho);
            }
            let shift = (1.0 - (0..n).map(|j| x[(i, j)]).sum::<f64>()) / n as f64;
            (0..n).for_each(|j| x[(i, j)] += shift);
        }
        let sum = &x + &y;
        let svd = sum.thin_svd().unwrap();
        let s = svd.S().column_vector();
        let shrunk =
            Mat::from_fn(m, n, |i, j| (0..m.min(n)).map(|k| svd.U()[(i, k)] * (s[k] - lambda / rho).max(0.0) * svd.V()[(j, k)]).sum());
        // The dual point: what the shrinking took away has singular values at most lambda / rho.
        w = Mat::from_fn(m, n, |i, j| (sum[(i, j)] - shrunk[(i, j)]) * rho / lambda);
        y = &y + &x - &shrunk;
        z = shrunk;
    }
    let nuclear: f64 = x.singular_values().unwrap().iter().sum();
    let mut fit = 0.0;
    for i in 0..m {
        for j in 0..n {
            fit += 0.5 * (xi[i] * (p[(i, j)] - x[(i, j)])).powi(2);
        }
    }
    let norm = w.singular_values().unwrap()[0].max(1.0);
    let dual = Mat::from_fn(m, n, |i, j| -lambda * w[(i, j)] / norm);
    let mu = (0..m).map(|i| (0..n).map(|j| lambda * w[(i, j)] + xi[i] * xi[i] * (x[(i, j)] - p[(i, j)])).sum::<f64>() / n as f64).collect();
    Nuclear { upper: fit + lambda * nuclear, lower: -conjugate(p, xi, &dual), x, mu }
}

/// `g*(M)` in the form that the paper prints (section 6.1), for P with row sums one.
pub fn conjugate(p: &Mat<f64>, xi: &[f64], m: &Mat<f64>) -> f64 {
    let n = p.ncols();
    let mut total = 0.0;
    for i in 0..p.nrows() {
        let mut row = 0.0;
        for j in 0..n {
            total += 0.5 * (m[(i, j)] / xi[i] + xi[i] * p[(i, j)]).powi(2) - 0.5 * (xi[i] * p[(i, j)]).powi(2);
            row += m[(i, j)] / xi[i];
        }
        total -= row * row / (2.0 * n as f64);
    }
    total
}
