//! The inner loop of the likelihood: for one state, `p_j = sum_k own_k other_jk` and `sum_j (n_j / p_j) other_j`. A row's entries are taken
//! in chunks: their probabilities, then quotients and logarithms several at a time, then the sum, while the same rows of the other factor are
//! near. Rows are padded with zeros to a multiple of four numbers, and the common widths are compiled with their sums in registers.

use pulp::Simd;

use crate::linalg::{Csr, Mat, multiply_add};

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

/// `ln p` without a branch, for p neither zero nor subnormal, so that several are taken at once:
/// `p = 2^e m` with m in `[1/sqrt 2, sqrt 2)`, and `ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...)` with `s = (m - 1) / (m + 1)`. As
/// `s^2 < 0.0295`, ten terms leave less than rounding.
#[inline(always)]
fn ln<S: Simd>(p: f64) -> f64 {
    const ONE: u64 = 1023 << 52;
    const MANTISSA: u64 = (1 << 52) - 1;
    /// `1 / sqrt 2` as bits: numbers from there up to twice it have exponent 0 after it is taken off.
    const LOW: u64 = 0x3fe6_a09e_667f_3bcd;
    /// `2^52 + 2^51`: as bits, whole numbers in its last places are exact.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let shifted = p.to_bits().wrapping_sub(LOW).wrapping_add(ONE);
    // The exponent, biased by 1023, in the low bits of a number of known size.
    let e = f64::from_bits((shifted >> 52) + MAGIC.to_bits()) - MAGIC - 1023.0;
    let m = f64::from_bits((shifted & MANTISSA) + LOW);
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut series = 1.0 / 19.0;
    for k in [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = multiply_add::<S>(series, s2, 1.0 / k);
    }
    e * std::f64::consts::LN_2 + 2.0 * s * series
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
    fn the_logarithm_is_exact_to_rounding() {
        let mut seed = 1u64;
        for k in 0..200_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let p = ((seed >> 11) as f64 / (1u64 << 53) as f64).powi(1 + k % 20).max(1e-300);
            let near = 1.0 + (p - 0.5) * 1e-3;
            for x in [p, near, 1.0 / p] {
                assert!(
                    (ln::<Scalar>(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(1e-3),
                    "{x} {} {}",
                    ln::<Scalar>(x),
                    x.ln()
                );
            }
        }
        let edges = [1.0, LEAST, f64::MIN_POSITIVE, f64::MAX, 0.5, 2.0, std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::SQRT_2];
        edges.iter().for_each(|x| assert!((ln::<Scalar>(*x) - x.ln()).abs() <= 1e-15 * x.ln().abs(), "{x}"));
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
