//! Slices, by plain loops over all rows: when and where the transitions of each meta-state go, and which zones change.

use crate::linalg::{Csr, Mat};

/// Flows between meta-states in each slice, entry by entry from `xi_i u_ij v_(h,a),j u_ak`: `columns` says slice and state of each row of V.
#[must_use]
pub fn slice_flows(u: &Mat, v: &Mat, xi: &[f64], columns: &[(u32, u32)], slices: usize) -> Vec<Mat> {
    let s = u.cols();
    let mut flows = vec![Mat::zeros(s, s); slices];
    for j in 0..s {
        let mass: f64 = (0..u.rows()).map(|i| xi[i] * u[(i, j)]).sum();
        for (row, (slice, state)) in columns.iter().enumerate() {
            for k in 0..s {
                flows[*slice as usize][(j, k)] += mass * v[(row, j)] * u[(*state as usize, k)];
            }
        }
    }
    flows
}

/// For each zone the transitions out of it and the logarithm of the likelihood of those that each fold holds out: with shares of its own for each slice over that with one and the same for all, both of the other folds.
#[must_use]
pub fn change(held_out: &[Csr], columns: &[(u32, u32)], zones: &[usize], count: usize, slices: usize) -> Vec<(f64, f64)> {
    // n[f][z][h][k]
    let mut n = vec![vec![vec![vec![0.0f64; count]; slices]; count]; held_out.len()];
    for (f, part) in held_out.iter().enumerate() {
        for (i, c, x) in part.triplets() {
            let (slice, state) = columns[c as usize];
            n[f][zones[i as usize]][slice as usize][zones[state as usize]] += x;
        }
    }
    let prior = count as f64;
    (0..count)
        .map(|z| {
            let (mut transitions, mut log_ratio) = (0.0, 0.0);
            for (f, out) in n.iter().enumerate() {
                let others = |h: usize, k: usize| n.iter().enumerate().filter(|(g, _)| *g != f).map(|(_, part)| part[z][h][k]).sum::<f64>();
                let by_slice: Vec<Vec<f64>> = (0..slices).map(|h| (0..count).map(|k| others(h, k)).collect()).collect();
                let all: f64 = by_slice.iter().flatten().sum::<f64>() + prior;
                for (h, own) in by_slice.iter().enumerate() {
                    let total = own.iter().sum::<f64>() + prior;
                    for k in (0..count).filter(|&k| out[z][h][k] > 0.0) {
                        let one = (by_slice.iter().map(|of| of[k]).sum::<f64>() + 1.0) / all;
                        let its_own = (own[k] + prior * one) / total;
                        transitions += out[z][h][k];
                        log_ratio += out[z][h][k] * (its_own.ln() - one.ln());
                    }
                }
            }
            (transitions, log_ratio)
        })
        .collect()
}
