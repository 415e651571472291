//! The inner loop of the likelihood where a good share of all pairs occur: counts as a full table of `f32`, pairs that never occurred included. Neighbouring columns then lie side by side, so
//! `p_j = sum_k own_k other_jk` and `sum_j (n_j / p_j) other_j` are products of whole vectors without a sum across one: with r columns two times r multiplications for eight pairs, where a
//! list of pairs takes as many for four, two sums across vectors and a jump to each row. It serves fits that are compared with each other; what is published is made from the list, in `f64`.
//!
//! `f32` keeps seven digits. Profiles are scaled by the number of columns, so that numbers are about one; sums over rows and logarithms of rows are added up in `f64`.

use pulp::Simd;
use rayon::prelude::*;

use super::kernel::Padded;
use crate::linalg::{Csr, thin};

/// A table is worth its empty places up to so many places an occurring pair (at 2.6, lists are as fast),
const PLACES_A_PAIR: usize = 2;
/// and its memory up to so many places.
const MOST_PLACES: usize = 1 << 26;
/// Columns are filled up to a multiple of this: whole groups of vectors of any machine.
const STRIDE: usize = 128;
/// Vectors that are treated together.
const GROUP: usize = 8;
/// Meta-states at most.
pub(super) const MOST_COLUMNS: usize = 64;
/// No probability is taken for less.
const LEAST: f32 = 1e-30;

/// Counts by rows and by columns.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub by_row: Table,
    pub by_column: Table,
}

impl Tables {
    /// Where they are worth it.
    pub fn new(by_row: &Csr, by_column: &Csr) -> Option<Self> {
        let places = by_row.rows().next_multiple_of(STRIDE).checked_mul(by_row.cols().next_multiple_of(STRIDE))?;
        let worth = places <= MOST_PLACES && places <= PLACES_A_PAIR * by_row.nonzeros();
        worth.then(|| Tables { by_row: Table::new(by_row), by_column: Table::new(by_column) })
    }
}

/// One of the two.
#[derive(Debug, Clone)]
pub(super) struct Table {
    counts: Vec<f32>,
    stride: usize,
}

impl Table {
    fn new(counts: &Csr) -> Self {
        let stride = counts.cols().next_multiple_of(STRIDE);
        let mut table = Table { counts: vec![0.0; counts.rows() * stride], stride };
        table.counts.par_chunks_mut(stride).enumerate().for_each(|(i, row)| {
            let (columns, values) = counts.row(i);
            columns.iter().zip(values).for_each(|(&j, &n)| row[j as usize] = n as f32);
        });
        table
    }

    /// The other factor as a pass over this table reads it: one column after the other, times `scale`.
    pub fn profiles(&self, other: &Padded, scale: f64, out: &mut Vec<f32>) {
        out.resize(other.cols * self.stride, 0.0);
        let one = |(k, column): (usize, &mut [f32])| {
            column.iter_mut().zip(other.data.chunks_exact(other.width)).for_each(|(x, row)| *x = (scale * row[k]) as f32);
        };
        match other.data.len() < thin::BLOCK * thin::BLOCK {
            true => out.chunks_exact_mut(self.stride).enumerate().for_each(one),
            false => out.par_chunks_exact_mut(self.stride).enumerate().for_each(one),
        }
    }

    /// For row `i`: `into = sum_j (n_ij / p_ij) other_j`; returns `sum_j n_ij ln p_ij` where that is wanted. `other` comes from [`profiles`](Table::profiles).
    #[inline(always)]
    pub fn gather<S: Simd>(&self, simd: S, i: usize, own: &[f64], other: &[f32], into: &mut [f64], log: bool) -> f64 {
        let r = other.len() / self.stride;
        let (counts, _) = S::as_simd_f32s(&self.counts[i * self.stride..(i + 1) * self.stride]);
        let (other, _) = S::as_simd_f32s(other);
        let stride = counts.len();
        let zero = simd.splat_f32s(0.0);
        let least = simd.splat_f32s(LEAST);
        let mut sums = [zero; MOST_COLUMNS];
        let mut logs = 0.0;
        for (group, n) in counts.chunks_exact(GROUP).enumerate() {
            let at = |k: usize| &other[k * stride + group * GROUP..k * stride + (group + 1) * GROUP];
            let mut p = [zero; GROUP];
            for (k, x) in own[..r].iter().enumerate() {
                let (x, v) = (simd.splat_f32s(*x as f32), at(k));
                for g in 0..GROUP {
                    p[g] = simd.mul_add_e_f32s(x, v[g], p[g]);
                }
            }
            for g in 0..GROUP {
                p[g] = simd.max_f32s(p[g], least);
            }
            if log {
                logs += logarithms(simd, n, &p);
            }
            for g in 0..GROUP {
                p[g] = simd.div_f32s(n[g], p[g]);
            }
            for (k, sum) in sums[..r].iter_mut().enumerate() {
                let v = at(k);
                let (mut even, mut odd) = (*sum, zero);
                for g in 0..GROUP / 2 {
                    even = simd.mul_add_e_f32s(p[2 * g], v[2 * g], even);
                    odd = simd.mul_add_e_f32s(p[2 * g + 1], v[2 * g + 1], odd);
                }
                *sum = simd.add_f32s(even, odd);
            }
        }
        into.fill(0.0);
        into.iter_mut().zip(&sums[..r]).for_each(|(x, sum)| *x = f64::from(simd.reduce_sum_f32s(*sum)));
        logs
    }
}

/// `sum n ln p` of a group.
#[inline(always)]
fn logarithms<S: Simd>(simd: S, n: &[S::f32s], p: &[S::f32s; GROUP]) -> f64 {
    let mut room = [1.0f32; STRIDE];
    let (logs, _) = S::as_mut_simd_f32s(&mut room);
    logs[..GROUP].copy_from_slice(p);
    let some = GROUP * S::F32_LANES;
    room[..some].iter_mut().for_each(|p| *p = ln::<S>(*p));
    let (logs, _) = S::as_simd_f32s(&room);
    let mut sum = simd.splat_f32s(0.0);
    for g in 0..GROUP {
        sum = simd.mul_add_e_f32s(n[g], logs[g], sum);
    }
    f64::from(simd.reduce_sum_f32s(sum))
}

/// `ln p` as [`crate::linalg::ln`] takes it, to seven digits.
#[inline(always)]
fn ln<S: Simd>(p: f32) -> f32 {
    const ONE: u32 = 127 << 23;
    const MANTISSA: u32 = (1 << 23) - 1;
    /// `1 / sqrt 2` as bits.
    const LOW: u32 = 0x3f35_04f3;
    let shifted = p.to_bits().wrapping_sub(LOW).wrapping_add(ONE);
    let e = (shifted >> 23) as i32 - 127;
    let m = f32::from_bits((shifted & MANTISSA) + LOW);
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut series = 1.0 / 9.0;
    for c in [1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0f32] {
        series = if S::IS_SCALAR { series * s2 + c } else { series.mul_add(s2, c) };
    }
    e as f32 * std::f32::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Mat, wide};
    use crate::solve::problem::Factors;
    use crate::solve::refit::{LikelihoodSettings, Observed, likelihood};

    wide! {
        fn gathered<'w, S, simd>(table: &'w Table, i: usize, own: &'w [f64], other: &'w [f32], into: &'w mut [f64]) -> f64 {
            table.gather(simd, i, own, other, into, true)
        }
    }

    fn numbers(mut seed: u64) -> impl FnMut() -> f64 {
        move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((seed >> 11) as f64 + 1.0) / (1u64 << 53) as f64
        }
    }

    #[test]
    fn a_row_is_gathered_to_seven_digits() {
        for (cols, r) in [(5, 1), (127, 3), (128, 8), (300, 12), (700, 64)] {
            let mut next = numbers(7);
            let triplets: Vec<(u32, u32, f64)> =
                (0..cols as u32).filter(|j| j % 3 != 1).map(|j| (0, j, 1.0 + (next() * 40.0).floor())).collect();
            let counts = Csr::from_triplets(1, cols, &triplets).unwrap();
            let other = Mat::from_fn(cols, r, |_, _| next().powi(3));
            let own: Vec<f64> = (0..r).map(|_| next()).collect();
            let table = Table::new(&counts);
            let mut profiles = Vec::new();
            table.profiles(&Padded::from(&other), 1.0, &mut profiles);
            let (mut wanted, mut log) = (vec![0.0; r], 0.0);
            for &(_, j, n) in &triplets {
                let p = thin::dot(&own, other.row(j as usize));
                log += n * p.ln();
                wanted.iter_mut().zip(other.row(j as usize)).for_each(|(w, v)| *w += n / p * v);
            }
            for wide in [true, false] {
                let mut into = vec![7.0; r.next_multiple_of(4)];
                let found = match wide {
                    true => gathered(&table, 0, &own, &profiles, &mut into),
                    false => table.gather(pulp::Scalar, 0, &own, &profiles, &mut into, true),
                };
                assert!((found - log).abs() < 2e-6 * triplets.iter().map(|t| t.2).sum::<f64>(), "{found} {log}");
                assert!(into.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5 * b), "{into:?} {wanted:?}");
                assert!(into[r..].iter().all(|x| *x == 0.0));
            }
        }
    }

    #[test]
    fn a_fit_by_tables_is_the_fit_by_lists_to_seven_digits() {
        let (d, r) = (120, 4);
        let mut next = numbers(3);
        let triplets: Vec<(u32, u32, f64)> =
            (0..2 * d * d).map(|_| ((next() * (d - 1) as f64) as u32, (next() * d as f64) as u32, 1.0 + (next() * 5.0).floor())).collect();
        let observed = Observed::new(Csr::from_triplets(d, d, &triplets).unwrap()).unwrap();
        let mut start = Factors { u: Mat::from_fn(d, r, |_, _| next()), v: Mat::from_fn(d, r, |_, _| next()) };
        start.normalise_rows();
        let settings = LikelihoodSettings { prior: 0.5, max_passes: 40, tolerance: f64::NEG_INFINITY, accelerate: false };
        let by_lists = likelihood(&observed, &start, &settings).unwrap();
        let tabled = observed.for_comparisons();
        assert!(tabled.tables.is_some());
        let by_tables = likelihood(&tabled, &start, &settings).unwrap();
        let far = |a: &Mat, b: &Mat| a.as_slice().iter().zip(b.as_slice()).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
        assert!(far(&by_lists.factors.u, &by_tables.factors.u) < 1e-4 && far(&by_lists.factors.v, &by_tables.factors.v) < 1e-5);
        assert!((by_lists.penalised - by_tables.penalised).abs() < 1e-7, "{} {}", by_lists.penalised, by_tables.penalised);
        assert!((by_lists.history[20] - by_tables.history[20]).abs() < 1e-6);
    }

    #[test]
    fn hardly_filled_counts_get_no_table() {
        let few: Vec<(u32, u32, f64)> = (0..200).map(|i| (i, (7 * i) % 200, 2.0)).collect();
        let counts = Csr::from_triplets(200, 200, &few).unwrap();
        assert!(Tables::new(&counts, &counts.transposed()).is_none());
    }
}
