//! Products of thin matrices (`d x s`, s small). Every sum over the `d` rows goes through [`sum_blocks`]: rows are cut
//! into fixed blocks and the blocks' sums are added in order, so the result does not depend on the number of threads.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::{Mat, wide};

/// Rows in a block of parallel work. A constant: changing it with the machine would change the last digits.
pub const BLOCK: usize = 512;

fn view(m: &Mat) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(m.as_slice(), m.rows(), m.cols())
}

fn rows_view(m: &Mat, rows: Range<usize>) -> MatRef<'_, f64> {
    let cols = m.cols();
    MatRef::from_row_major_slice(&m.as_slice()[rows.start * cols..rows.end * cols], rows.len(), cols)
}

/// Below this many operations, waking a second thread costs more than it saves. The blocks stay the same, so do the results.
const WORTH_A_THREAD: usize = 1 << 18;

/// The one reduction point: `sum over blocks of f(block)`, added in the order of the blocks; `work` is the number of
/// operations a row, roughly.
pub fn sum_blocks<T: Send>(rows: usize, work: usize, f: impl Fn(Range<usize>) -> T + Sync, mut add: impl FnMut(&mut T, T)) -> Option<T> {
    let blocks = rows.div_ceil(BLOCK);
    let range = |b: usize| b * BLOCK..((b + 1) * BLOCK).min(rows);
    let parts: Vec<T> = if blocks <= 1 || rows * work < WORTH_A_THREAD {
        (0..blocks).map(|b| f(range(b))).collect()
    } else {
        (0..blocks).into_par_iter().map(|b| f(range(b))).collect()
    };
    let mut parts = parts.into_iter();
    let mut total = parts.next()?;
    parts.for_each(|part| add(&mut total, part));
    Some(total)
}

/// `sum_i f(i)`.
pub fn sum_over_rows(rows: usize, work: usize, f: impl Fn(usize) -> f64 + Sync) -> f64 {
    sum_blocks(rows, work, |range| range.map(&f).sum::<f64>(), |a, b| *a += b).unwrap_or(0.0)
}

/// Runs `f(number, chunk)` for every chunk of `data`, in parallel where the `work` (operations in all) is worth it.
pub fn for_each_chunk_mut(data: &mut [f64], chunk: usize, work: usize, f: impl Fn(usize, &mut [f64]) + Sync) {
    if data.len() <= chunk || work < WORTH_A_THREAD {
        data.chunks_mut(chunk).enumerate().for_each(|(number, chunk)| f(number, chunk));
    } else {
        data.par_chunks_mut(chunk).enumerate().for_each(|(number, chunk)| f(number, chunk));
    }
}

/// Runs `f(i, row)` for every row, blocks in parallel.
pub fn for_each_row_mut(m: &mut Mat, f: impl Fn(usize, &mut [f64]) + Sync) {
    let s = m.cols();
    if s == 0 {
        return;
    }
    let work = 4 * m.as_slice().len();
    for_each_chunk_mut(m.as_mut_slice(), BLOCK * s, work, |b, rows| {
        for (k, row) in rows.chunks_exact_mut(s).enumerate() {
            f(b * BLOCK + k, row);
        }
    });
}

/// Row i times `w[i]`.
pub fn scale_rows(m: &mut Mat, w: &[f64]) {
    for_each_row_mut(m, |i, row| row.iter_mut().for_each(|x| *x *= w[i]));
}

/// `<a, b>` in four interleaved sums.
#[inline]
#[must_use]
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let mut sums = [0.0; 4];
    let (mut x, mut y) = (a.chunks_exact(4), b.chunks_exact(4));
    for (p, q) in (&mut x).zip(&mut y) {
        for k in 0..4 {
            sums[k] += p[k] * q[k];
        }
    }
    let tail: f64 = x.remainder().iter().zip(y.remainder()).map(|(p, q)| p * q).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

/// `<A, B>` over large matrices.
#[must_use]
pub fn inner(a: &Mat, b: &Mat) -> f64 {
    let s = a.cols();
    sum_blocks(a.rows(), 2 * s, |r| dot(&a.as_slice()[r.start * s..r.end * s], &b.as_slice()[r.start * s..r.end * s]), |x, y| *x += y)
        .unwrap_or(0.0)
}

fn add_mat(total: &mut Mat, part: Mat) {
    total.as_mut_slice().iter_mut().zip(part.as_slice()).for_each(|(t, p)| *t += p);
}

/// `A^T B` (`s x t`).
pub fn cross_gram(a: &Mat, b: &Mat) -> Mat {
    let (s, t) = (a.cols(), b.cols());
    let part = |rows: Range<usize>| {
        let mut out = Mat::zeros(s, t);
        if s * t <= 256 {
            small_cross_gram(a, b, None, rows, &mut out);
        } else {
            let (left, right) = (rows_view(a, rows.clone()), rows_view(b, rows));
            matmul(view_mut(&mut out), Accum::Replace, left.transpose(), right, 1.0, Par::Seq);
        }
        out
    };
    sum_blocks(a.rows(), 2 * s * t, part, add_mat).unwrap_or_else(|| Mat::zeros(s, t))
}

/// `A^T diag(w) B`, the rows of B weighed block by block.
pub fn weighted_cross_gram(a: &Mat, w: &[f64], b: &Mat) -> Mat {
    let (s, t) = (a.cols(), b.cols());
    let part = |rows: Range<usize>| {
        let mut weighed = Mat::from_vec(rows.len(), t, b.as_slice()[rows.start * t..rows.end * t].to_vec()).unwrap_or_default();
        for (k, i) in rows.clone().enumerate() {
            weighed.row_mut(k).iter_mut().for_each(|x| *x *= w[i]);
        }
        let some = Mat::from_vec(rows.len(), s, a.as_slice()[rows.start * s..rows.end * s].to_vec()).unwrap_or_default();
        let mut out = Mat::zeros(s, t);
        if s * t <= 256 {
            small_cross_gram(&some, &weighed, None, 0..rows.len(), &mut out);
        } else {
            matmul(view_mut(&mut out), Accum::Replace, view(&some).transpose(), view(&weighed), 1.0, Par::Seq);
        }
        out
    };
    sum_blocks(a.rows(), 2 * s * t, part, add_mat).unwrap_or_else(|| Mat::zeros(s, t))
}

/// `A^T A`.
#[must_use]
pub fn gram(a: &Mat) -> Mat {
    cross_gram(a, a)
}

/// `A^T diag(w) A`.
pub fn weighted_gram(a: &Mat, w: &[f64]) -> Mat {
    let s = a.cols();
    let part = |rows: Range<usize>| {
        let mut out = Mat::zeros(s, s);
        if s * s <= 256 {
            small_cross_gram(a, a, Some(w), rows, &mut out);
        } else {
            let mut scaled = Mat::from_vec(rows.len(), s, a.as_slice()[rows.start * s..rows.end * s].to_vec()).unwrap_or_default();
            for (k, i) in rows.clone().enumerate() {
                scaled.row_mut(k).iter_mut().for_each(|x| *x *= w[i]);
            }
            matmul(view_mut(&mut out), Accum::Replace, rows_view(a, rows).transpose(), view(&scaled), 1.0, Par::Seq);
        }
        out
    };
    sum_blocks(a.rows(), 2 * s * s, part, add_mat).unwrap_or_else(|| Mat::zeros(s, s))
}

wide! {
    /// For a handful of columns the call into a general product costs more than the product.
    fn small_cross_gram<'w>(a: &'w Mat, b: &'w Mat, w: Option<&'w [f64]>, rows: Range<usize>, out: &'w mut Mat) {
        let (s, t) = (a.cols(), b.cols());
        let out = out.as_mut_slice();
        for i in rows {
            let (x, y) = (a.row(i), b.row(i));
            let scale = w.map_or(1.0, |w| w[i]);
            for j in 0..s {
                let xj = scale * x[j];
                for (o, y) in out[j * t..(j + 1) * t].iter_mut().zip(y) {
                    *o += xj * y;
                }
            }
        }
    }
}

fn view_mut(m: &mut Mat) -> MatMut<'_, f64> {
    let (rows, cols) = (m.rows(), m.cols());
    MatMut::from_row_major_slice_mut(m.as_mut_slice(), rows, cols)
}

/// `out = A B` with `B` small or thin; blocks of rows of `A` in parallel.
pub fn product(a: &Mat, b: &Mat, out: &mut Mat) {
    let (s, t) = (a.cols(), b.cols());
    out.resize(a.rows(), t);
    if t == 0 {
        return;
    }
    for_each_chunk_mut(out.as_mut_slice(), BLOCK * t, 2 * a.rows() * s * t, |block, chunk| {
        product_rows(a, b, block * BLOCK..block * BLOCK + chunk.len() / t, chunk);
    });
}

/// Calls `f(i, row, product)` for every row of `out`, `product` being row i of `A B`: what [`product`] gives, without the matrix to hold it.
pub fn with_product(a: &Mat, b: &Mat, out: &mut Mat, f: impl Fn(usize, &mut [f64], &[f64]) + Sync) {
    let (s, t, width) = (a.cols(), b.cols(), out.cols());
    if width == 0 {
        return;
    }
    let work = 2 * a.rows() * s * t.max(1);
    for_each_chunk_mut(out.as_mut_slice(), BLOCK * width, work, |block, chunk| {
        let rows = block * BLOCK..block * BLOCK + chunk.len() / width;
        let mut some = vec![0.0; rows.len() * t];
        if t > 0 {
            product_rows(a, b, rows.clone(), &mut some);
        }
        for (k, row) in chunk.chunks_exact_mut(width).enumerate() {
            f(rows.start + k, row, &some[k * t..(k + 1) * t]);
        }
    });
}

/// `A <- A R` with a small R, without a second A where R is square.
pub fn turn(a: &mut Mat, r: &Mat) {
    let s = a.cols();
    if r.cols() != s || s == 0 {
        let mut out = Mat::default();
        product(a, r, &mut out);
        *a = out;
        return;
    }
    let work = 2 * a.rows() * s * s;
    for_each_chunk_mut(a.as_mut_slice(), BLOCK * s, work, |_, chunk| {
        let Ok(some) = Mat::from_vec(chunk.len() / s, s, chunk.to_vec()) else { return };
        product_rows(&some, r, 0..some.rows(), chunk);
    });
}

/// Some rows of `A B`.
fn product_rows(a: &Mat, b: &Mat, rows: Range<usize>, out: &mut [f64]) {
    let (s, t) = (a.cols(), b.cols());
    if s * t <= 256 {
        small_product(a, b, rows, out);
    } else {
        let out = MatMut::from_row_major_slice_mut(out, rows.len(), t);
        matmul(out, Accum::Replace, rows_view(a, rows), view(b), 1.0, Par::Seq);
    }
}

wide! {
    /// `rows` of `A B`, for a handful of columns.
    fn small_product<'w>(a: &'w Mat, b: &'w Mat, rows: Range<usize>, out: &'w mut [f64]) {
        for (i, out) in rows.zip(out.chunks_exact_mut(b.cols())) {
            row_times(a.row(i), b, out);
        }
    }
}

/// `out = x^T B` for one short row.
#[inline(always)]
pub fn row_times(x: &[f64], b: &Mat, out: &mut [f64]) {
    out.fill(0.0);
    let t = out.len();
    for (k, &xk) in x.iter().enumerate() {
        for (o, b) in out.iter_mut().zip(&b.as_slice()[k * t..(k + 1) * t]) {
            *o += xk * b;
        }
    }
}

/// `out = A^T B` where `A` is large and square: blocks of columns of `A` in parallel.
pub fn transposed_product(a: &Mat, b: &Mat, out: &mut Mat) {
    let t = b.cols();
    out.resize(a.cols(), t);
    if t == 0 {
        return;
    }
    for_each_chunk_mut(out.as_mut_slice(), BLOCK * t, 2 * a.as_slice().len() * t, |block, chunk| {
        let columns = chunk.len() / t;
        let out = MatMut::from_row_major_slice_mut(chunk, columns, t);
        matmul(out, Accum::Replace, view(a).subcols(block * BLOCK, columns).transpose(), view(b), 1.0, Par::Seq);
    });
}

/// Sum of each column.
#[must_use]
pub fn column_sums(a: &Mat) -> Vec<f64> {
    fold_rows(a, |sums, _, row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += x))
}

/// Euclidean norm of each column.
#[must_use]
pub fn column_norms(a: &Mat) -> Vec<f64> {
    let mut squares = fold_rows(a, |sums, _, row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += x * x));
    squares.iter_mut().for_each(|s| *s = s.sqrt());
    squares
}

/// A vector with one number a column, accumulated row by row through `f(sums, i, row)`.
pub fn fold_rows(a: &Mat, f: impl Fn(&mut [f64], usize, &[f64]) + Sync) -> Vec<f64> {
    let part = |rows: Range<usize>| {
        let mut sums = vec![0.0; a.cols()];
        rows.for_each(|i| f(&mut sums, i, a.row(i)));
        sums
    };
    sum_blocks(a.rows(), 2 * a.cols(), part, |x, y| x.iter_mut().zip(y).for_each(|(x, y)| *x += y)).unwrap_or_else(|| vec![0.0; a.cols()])
}
