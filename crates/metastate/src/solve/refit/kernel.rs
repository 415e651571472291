//! The inner loop of the likelihood: for one state, `p_j = sum_k own_k other_jk` and `sum_j (n_j / p_j) other_j`, in one look at each
//! entry. Rows are padded with zeros to a multiple of four numbers, and the common widths are compiled with their sums in
//! registers.

use crate::linalg::{Csr, Mat};

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

/// `sum n ln p` with few logarithms: exponents are added up, and mantissas (in [1, 2)) multiplied, n times where n is a small
/// whole number, until their product is large.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogSum {
    sum: f64,
    exponents: f64,
    product: f64,
}

/// Counts up to this one go into the product: `2^64` times the limit is still finite.
const SMALL_COUNT: f64 = 64.0;

impl LogSum {
    pub fn new() -> Self {
        LogSum { sum: 0.0, exponents: 0.0, product: 1.0 }
    }

    /// `p` is at least [`LEAST`], so it is no subnormal number.
    #[inline(always)]
    pub fn add(&mut self, n: f64, p: f64) {
        let bits = p.to_bits();
        let exponent = (bits >> 52) as i64 - 1023;
        let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
        self.exponents += n * exponent as f64;
        if n == 1.0 {
            self.product *= mantissa;
        } else if n <= SMALL_COUNT && n.fract() == 0.0 {
            let (mut left, mut power) = (n as u32, mantissa);
            while left > 0 {
                if left & 1 == 1 {
                    self.product *= power;
                }
                power *= power;
                left >>= 1;
            }
        } else {
            self.sum += n * mantissa.ln();
        }
        if self.product > 1e200 {
            self.sum += self.product.ln();
            self.product = 1.0;
        }
    }

    pub fn total(self) -> f64 {
        self.sum + self.product.ln() + self.exponents * std::f64::consts::LN_2
    }
}

/// For row `i` of `counts`: `into = sum_j (n_ij / p_ij) other_j`, and `n_ij ln p_ij` into `log` where that is wanted.
#[inline(always)]
pub(super) fn gather(counts: &Csr, i: usize, own: &[f64], other: &[f64], into: &mut [f64], log: Option<&mut LogSum>) {
    let (columns, values) = counts.row(i);
    match own.len() {
        4 => gather_fixed::<4>(columns, values, own, other, into, log),
        8 => gather_fixed::<8>(columns, values, own, other, into, log),
        12 => gather_fixed::<12>(columns, values, own, other, into, log),
        16 => gather_fixed::<16>(columns, values, own, other, into, log),
        20 => gather_fixed::<20>(columns, values, own, other, into, log),
        24 => gather_fixed::<24>(columns, values, own, other, into, log),
        28 => gather_fixed::<28>(columns, values, own, other, into, log),
        32 => gather_fixed::<32>(columns, values, own, other, into, log),
        _ => gather_any(columns, values, own, other, into, log),
    }
}

#[inline(always)]
fn gather_fixed<const W: usize>(
    columns: &[u32],
    values: &[f64],
    own: &[f64],
    other: &[f64],
    into: &mut [f64],
    mut log: Option<&mut LogSum>,
) {
    let mut x = [0.0; W];
    x.copy_from_slice(own);
    let mut sum = [0.0; W];
    for (&j, &n) in columns.iter().zip(values) {
        let start = j as usize * W;
        let y = &other[start..start + W];
        let mut lanes = [0.0; LANE];
        for c in 0..W / LANE {
            for k in 0..LANE {
                lanes[k] += x[c * LANE + k] * y[c * LANE + k];
            }
        }
        let p = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])).max(LEAST);
        if let Some(log) = log.as_deref_mut() {
            log.add(n, p);
        }
        let ratio = n / p;
        for k in 0..W {
            sum[k] += ratio * y[k];
        }
    }
    into.copy_from_slice(&sum);
}

/// The same for any width.
#[inline(always)]
fn gather_any(columns: &[u32], values: &[f64], own: &[f64], other: &[f64], into: &mut [f64], mut log: Option<&mut LogSum>) {
    let w = own.len();
    into.fill(0.0);
    for (&j, &n) in columns.iter().zip(values) {
        let y = &other[j as usize * w..(j as usize + 1) * w];
        let mut lanes = [0.0; LANE];
        for (x, y) in own.chunks_exact(LANE).zip(y.chunks_exact(LANE)) {
            for k in 0..LANE {
                lanes[k] += x[k] * y[k];
            }
        }
        let p = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])).max(LEAST);
        if let Some(log) = log.as_deref_mut() {
            log.add(n, p);
        }
        let ratio = n / p;
        into.iter_mut().zip(y).for_each(|(o, y)| *o += ratio * y);
    }
}

#[cfg(test)]
mod tests {
    use super::LogSum;

    #[test]
    fn the_sum_of_logarithms_is_exact_to_rounding() {
        let mut seed = 1u64;
        let (mut log, mut plain) = (LogSum::new(), 0.0);
        for k in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let p = ((seed >> 11) as f64 / (1u64 << 53) as f64).powi(1 + k % 20).max(1e-300);
            let n = [1.0, 2.0, 63.0, 64.0, 65.0, 0.25, 1.5, 1e6][(k % 8) as usize];
            log.add(n, p);
            plain += n * p.ln();
        }
        assert!((log.total() / plain - 1.0).abs() < 1e-12, "{} {plain}", log.total());
    }
}
