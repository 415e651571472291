//! The inner loop of the likelihood: for one state, `p_j = sum_k own_k other_jk` and `sum_j (n_j / p_j) other_j`. A row's entries are taken
//! in chunks: their probabilities, then quotients and logarithms several at a time, then the sum, while the same rows of the other factor are
//! near. Rows are padded with zeros to a multiple of four numbers, and the common widths are compiled with their sums in registers.

use pulp::Simd;

use crate::linalg::{Csr, Mat, ln, multiply_add};

/// Numbers in a lane of the padding.
const LANE: usize = 4;
/// No probability is taken for less.
const LEAST: f64 = 1e-300;

/// A thin matrix whose rows are padded with zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct Padded {
    pub data: Vec<f64>,
    pub width: usize,
    pub cols: usize,
}

impl Padded {
    pub fn from(m: &Mat) -> Self {
        let (cols, width) = (m.cols(), m.cols().next_multiple_of(LANE));
        let mut data = vec![0.0; m.rows() * width];
        data.chunks_exact_mut(width).enumerate().for_each(|(i, row)| row[..cols].copy_from_slice(m.row(i)));
        Padded { data, width, cols }
    }

    pub fn to_mat(&self) -> Mat {
        let rows = self.data.len() / self.width;
        Mat::from_fn(rows, self.cols, |i, k| self.data[i * self.width + k])
    }
}

/// Entries of a row that are treated together: their rows of the other factor stay in the nearest cache between the two looks at them.
const CHUNK: usize = 32;

/// For row `i` of `counts`: `into = sum_j (n_ij / p_ij) other_j`; returns `sum_j n_ij ln p_ij` where that is wanted.
#[inline(always)]
pub(super) fn gather<S: Simd>(simd: S, counts: &Csr, i: usize, own: &[f64], other: &[f64], into: &mut [f64], log: bool) -> f64 {
    let (columns, values) = counts.row(i);
    match own.len() {
        4 => gather_fixed::<S, 4>(simd, columns, values, own, other, into, log),
        8 => gather_fixed::<S, 8>(simd, columns, values, own, other, into, log),
        12 => gather_fixed::<S, 12>(simd, columns, values, own, other, into, log),
        16 => gather_fixed::<S, 16>(simd, columns, values, own, other, into, log),
        20 => gather_fixed::<S, 20>(simd, columns, values, own, other, into, log),
        24 => gather_fixed::<S, 24>(simd, columns, values, own, other, into, log),
        28 => gather_fixed::<S, 28>(simd, columns, values, own, other, into, log),
        32 => gather_fixed::<S, 32>(simd, columns, values, own, other, into, log),
        _ => gather_any(simd, columns, values, own, other, into, log),
    }
}

#[inline(always)]
fn gather_fixed<S: Simd, const W: usize>(
    simd: S,
    columns: &[u32],
    values: &[f64],
    own: &[f64],
    other: &[f64],
    into: &mut [f64],
    log: bool,
) -> f64 {
    let mut x = [0.0; W];
    x.copy_from_slice(own);
    let mut sum = [0.0; W];
    let mut logs = 0.0;
    let row = |j: u32| &other[j as usize * W..(j as usize + 1) * W];
    for (columns, values) in columns.chunks(CHUNK).zip(values.chunks(CHUNK)) {
        let mut chunk = Chunk::new(values);
        for (p, &j) in chunk.p.iter_mut().zip(columns) {
            *p = dot(simd, &x, row(j));
        }
        if log {
            logs += chunk.logarithms(simd);
        }
        for (ratio, &j) in chunk.ratios().iter().zip(columns) {
            let y = row(j);
            for k in 0..W {
                sum[k] = multiply_add::<S>(*ratio, y[k], sum[k]);
            }
        }
    }
    into.copy_from_slice(&sum);
    logs
}

/// The same for any width.
#[inline(always)]
fn gather_any<S: Simd>(simd: S, columns: &[u32], values: &[f64], own: &[f64], other: &[f64], into: &mut [f64], log: bool) -> f64 {
    let w = own.len();
    into.fill(0.0);
    let mut logs = 0.0;
    let row = |j: u32| &other[j as usize * w..(j as usize + 1) * w];
    for (columns, values) in columns.chunks(CHUNK).zip(values.chunks(CHUNK)) {
        let mut chunk = Chunk::new(values);
        for (p, &j) in chunk.p.iter_mut().zip(columns) {
            *p = dot(simd, own, row(j));
        }
        if log {
            logs += chunk.logarithms(simd);
        }
        for (ratio, &j) in chunk.ratios().iter().zip(columns) {
            into.iter_mut().zip(row(j)).for_each(|(o, y)| *o = multiply_add::<S>(*ratio, *y, *o));
        }
    }
    logs
}

/// `<x, y>`.
#[inline(always)]
fn dot<S: Simd>(simd: S, x: &[f64], y: &[f64]) -> f64 {
    let ((x, x_rest), (y, y_rest)) = (S::as_simd_f64s(x), S::as_simd_f64s(y));
    let mut sum = simd.splat_f64s(0.0);
    for (x, y) in x.iter().zip(y) {
        sum = simd.mul_add_e_f64s(*x, *y, sum);
    }
    // Nothing is left where four numbers are whole vectors.
    x_rest.iter().zip(y_rest).fold(simd.reduce_sum_f64s(sum), |sum, (x, y)| multiply_add::<S>(*x, *y, sum))
}

/// Counts and probabilities of some entries; those beyond the last have n = 0 and p = 1.
struct Chunk {
    n: [f64; CHUNK],
    p: [f64; CHUNK],
}

impl Chunk {
    #[inline(always)]
    fn new(values: &[f64]) -> Self {
        // Most are whole; a copy of known length needs no call.
        let n = <[f64; CHUNK]>::try_from(values).unwrap_or_else(|_| {
            let mut n = [0.0; CHUNK];
            n[..values.len()].copy_from_slice(values);
            n
        });
        Chunk { n, p: [1.0; CHUNK] }
    }

    /// `n / p`, no p below [`LEAST`].
    #[inline(always)]
    fn ratios(&self) -> [f64; CHUNK] {
        let mut ratios = [0.0; CHUNK];
        for k in 0..CHUNK {
            ratios[k] = self.n[k] / self.p[k].max(LEAST);
        }
        ratios
    }

    /// `sum n ln p`, no p below [`LEAST`].
    #[inline(always)]
    fn logarithms<S: Simd>(&self, simd: S) -> f64 {
        let mut logarithms = [0.0; CHUNK];
        for k in 0..CHUNK {
            logarithms[k] = ln::<S>(self.p[k].max(LEAST));
        }
        dot(simd, &self.n, &logarithms)
    }
}

#[cfg(test)]
mod tests {
    use pulp::Scalar;

    use super::*;
    use crate::linalg::wide;

    wide! {
        fn gather_wide<'w, S, simd>(counts: &'w Csr, own: &'w [f64], other: &'w [f64], into: &'w mut [f64]) -> f64 {
            gather(simd, counts, 0, own, other, into, true)
        }
    }

    #[test]
    fn a_row_of_any_width_and_length_is_gathered() {
        for (width, entries) in [(4, 0), (4, 1), (20, 31), (24, 32), (32, 33), (36, 100)] {
            let own: Vec<f64> = (0..width).map(|k| 0.1 + k as f64).collect();
            let other: Vec<f64> = (0..entries * width).map(|k| 0.01 + (k % 17) as f64).collect();
            let columns: Vec<u32> = (0..entries as u32).rev().collect();
            let values: Vec<f64> = (0..entries).map(|k| 1.0 + (k % 5) as f64).collect();
            let (mut into, mut wanted, mut log) = (vec![0.0; width], vec![0.0; width], 0.0);
            for (&j, n) in columns.iter().zip(&values) {
                let y = &other[j as usize * width..(j as usize + 1) * width];
                let p: f64 = own.iter().zip(y).map(|(a, b)| a * b).sum();
                log += n * p.ln();
                wanted.iter_mut().zip(y).for_each(|(w, y)| *w += n / p * y);
            }
            let mut triplets: Vec<(u32, u32, f64)> = columns.iter().zip(&values).map(|(&j, &n)| (0, j, n)).collect();
            triplets.sort_by_key(|t| t.1);
            let counts = Csr::from_triplets(1, entries.max(1), &triplets).unwrap();
            let plain = gather(Scalar, &counts, 0, &own, &other, &mut into, true);
            let mut again = vec![0.0; width];
            let wide = gather_wide(&counts, &own, &other, &mut again);
            for (found, into) in [(plain, into), (wide, again)] {
                assert!((found - log).abs() <= 1e-12 * log.abs(), "{found} {log}");
                assert!(into.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs()), "{into:?} {wanted:?}");
            }
        }
    }
}
