//! Plain loops over the rows of P and over thin matrices, for the use of the checker alone.
//!
//! Sums run in fixed blocks of rows, added in order: the last digit does not depend on the number of threads.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::linalg::{Mat, Operator, Row};

/// Rows per block.
const BLOCK: usize = 512;
/// Blocks of rows in a product with the transpose, each with an accumulator of its own.
const PANELS: usize = 8;
/// Columns of a product with the transpose that are done at once: bounds the memory of the accumulators.
const STRIP: usize = 16;
/// Up to this many multiplications a residual is summed entry by entry; above, from the expanded square.
const DIRECT: f64 = 2e10;

/// Inner product.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `sum_i f(i)` over `0..n`.
pub(super) fn sum(n: usize, f: impl Fn(usize) -> f64 + Sync) -> f64 {
    let parts: Vec<f64> =
        (0..n.div_ceil(BLOCK)).into_par_iter().map(|block| (block * BLOCK..n.min((block + 1) * BLOCK)).map(&f).sum()).collect();
    parts.iter().sum()
}

/// A matrix whose row `i` is written by `f(i, row)`.
pub(super) fn by_rows(rows: usize, cols: usize, f: impl Fn(usize, &mut [f64]) + Sync) -> Mat {
    let mut out = Mat::zeros(rows, cols);
    if cols > 0 {
        out.as_mut_slice().par_chunks_mut(cols).enumerate().for_each(|(i, row)| f(i, row));
    }
    out
}

/// `A B`, B small.
pub(super) fn product(a: &Mat, b: &Mat) -> Mat {
    by_rows(a.rows(), b.cols(), |i, out| {
        for (k, &x) in a.row(i).iter().enumerate() {
            out.iter_mut().zip(b.row(k)).for_each(|(o, y)| *o += x * y);
        }
    })
}

/// `A^T diag(w) B`; without weights `A^T B`.
pub(super) fn cross(a: &Mat, b: &Mat, w: Option<&[f64]>) -> Mat {
    let (n, k, l) = (a.rows(), a.cols(), b.cols());
    let parts: Vec<Mat> = (0..n.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let mut part = Mat::zeros(k, l);
            for i in block * BLOCK..n.min((block + 1) * BLOCK) {
                let weight = w.map_or(1.0, |w| w[i]);
                for (p, &x) in a.row(i).iter().enumerate() {
                    let x = weight * x;
                    part.row_mut(p).iter_mut().zip(b.row(i)).for_each(|(o, y)| *o += x * y);
                }
            }
            part
        })
        .collect();
    let mut total = Mat::zeros(k, l);
    for part in &parts {
        total.as_mut_slice().iter_mut().zip(part.as_slice()).for_each(|(t, p)| *t += p);
    }
    total
}

/// `sum_i w_i A_i` for every column; without weights the column sums.
pub(super) fn column_sums(a: &Mat, w: Option<&[f64]>) -> Vec<f64> {
    let ones = Mat::from_fn(a.rows(), 1, |_, _| 1.0);
    cross(&ones, a, w).into_vec()
}

/// Euclidean length of every column.
pub(super) fn column_norms(a: &Mat) -> Vec<f64> {
    (0..a.cols()).map(|j| sum(a.rows(), |i| a[(i, j)] * a[(i, j)]).sqrt()).collect()
}

/// Matrices with the same number of rows, side by side.
pub(super) fn beside(parts: &[&Mat]) -> Mat {
    let rows = parts.first().map_or(0, |p| p.rows());
    by_rows(rows, parts.iter().map(|p| p.cols()).sum(), |i, out| {
        let mut at = 0;
        for part in parts {
            out[at..at + part.cols()].copy_from_slice(part.row(i));
            at += part.cols();
        }
    })
}

/// The first columns.
pub(super) fn leading(a: &Mat, count: usize) -> Mat {
    by_rows(a.rows(), count, |i, row| row.copy_from_slice(&a.row(i)[..count]))
}

/// P, seen row by row.
pub(super) struct Rows<'a> {
    p: &'a dyn Operator,
    m: usize,
    n: usize,
    /// `(L, R)` with `P = L R^T`, when every row says so with the same R.
    factored: Option<(Mat, &'a Mat)>,
    /// `||p_i||^2`.
    pub norms2: Vec<f64>,
    /// `sum_j p_ij`.
    pub sums: Vec<f64>,
}

/// Calls `f(column, value)` for all entries of a row that may differ from zero.
fn each(row: Row<'_>, n: usize, mut f: impl FnMut(usize, f64)) {
    match row {
        Row::Sparse(columns, values) => {
            for (&j, &x) in columns.iter().zip(values) {
                f(j as usize, x);
            }
        }
        Row::Counted(columns, counts, total) => {
            for (&j, &n) in columns.iter().zip(counts) {
                f(j as usize, n / total);
            }
        }
        Row::Dense(values) => {
            for (j, &x) in values.iter().enumerate() {
                f(j, x);
            }
        }
        Row::Uniform => {
            for j in 0..n {
                f(j, 1.0 / n as f64);
            }
        }
        Row::LowRank(left, right) => {
            for j in 0..n {
                f(j, dot(left, right.row(j)));
            }
        }
        Row::SparseAndOne(columns, values, left, right) => {
            let mut at = 0;
            for (j, r) in right.iter().enumerate() {
                let mut x = left * r;
                if columns.get(at).is_some_and(|c| *c as usize == j) {
                    x += values[at];
                    at += 1;
                }
                f(j, x);
            }
        }
    }
}

/// Whether the shape of a row fits `n` columns and all its entries are finite.
fn check_row(what: &'static str, i: usize, row: Row<'_>, n: usize) -> Result<()> {
    let size = |found, expected| if found == expected { Ok(()) } else { Err(Error::SizeMismatch { what, expected, found }) };
    let finite = |column: usize, value: f64| {
        if value.is_finite() { Ok(()) } else { Err(Error::NotFinite { what, row: i, column, value }) }
    };
    match row {
        Row::Uniform => Ok(()),
        Row::Dense(values) => {
            size(values.len(), n)?;
            values.iter().enumerate().try_for_each(|(j, &x)| finite(j, x))
        }
        Row::Sparse(columns, values) => {
            size(values.len(), columns.len())?;
            for (&j, &x) in columns.iter().zip(values) {
                if j as usize >= n {
                    return Err(Error::IndexOutOfRange { what: "column", index: j.into(), len: n });
                }
                finite(j as usize, x)?;
            }
            Ok(())
        }
        Row::Counted(columns, counts, total) => {
            finite(0, 1.0 / total)?;
            check_row(what, i, Row::Sparse(columns, counts), n)
        }
        Row::SparseAndOne(columns, values, left, right) => {
            size(right.len(), n)?;
            size(values.len(), columns.len())?;
            finite(0, left)?;
            right.iter().enumerate().try_for_each(|(j, &x)| finite(j, x))?;
            columns.iter().zip(values).try_for_each(|(&j, &x)| finite(j as usize, x))
        }
        Row::LowRank(left, right) => {
            size(right.rows(), n)?;
            size(left.len(), right.cols())?;
            left.iter().enumerate().try_for_each(|(j, &x)| finite(j, x))
        }
    }
}

impl<'a> Rows<'a> {
    /// Reads every row once and refuses what is not finite or does not fit.
    pub fn new(what: &'static str, p: &'a dyn Operator) -> Result<Self> {
        let (m, n) = (p.rows(), p.cols());
        let checks: Vec<Result<()>> = (0..m).into_par_iter().map(|i| check_row(what, i, p.row(i), n)).collect();
        checks.into_iter().collect::<Result<()>>()?;
        let factored = common_factor(p);
        if let Some((_, right)) = &factored {
            check_finite(what, right)?;
        }
        let (norms2, sums): (Vec<f64>, Vec<f64>) = match &factored {
            Some((left, right)) => {
                let (gram, total) = (cross(right, right, None), column_sums(right, None));
                let inner = product(left, &gram);
                let norms2 = (0..m).map(|i| dot(inner.row(i), left.row(i))).collect();
                (norms2, (0..m).map(|i| dot(left.row(i), &total)).collect())
            }
            None => (0..m)
                .into_par_iter()
                .map(|i| {
                    let (mut square, mut sum) = (0.0, 0.0);
                    each(p.row(i), n, |_, x| {
                        square += x * x;
                        sum += x;
                    });
                    (square, sum)
                })
                .unzip(),
        };
        // Catches a low-rank row whose own right factor is not finite, and squares that overflow.
        if let Some(row) = norms2.iter().position(|x| !x.is_finite()) {
            return Err(Error::NotFinite { what, row, column: 0, value: norms2[row] });
        }
        Ok(Rows { p, m, n, factored, norms2, sums })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.m
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.n
    }

    /// The larger of the two: sums have no more terms, and routines that cost its square go by it.
    pub fn side(&self) -> usize {
        self.m.max(self.n)
    }

    /// `(L, R)` with `P = L R^T`.
    pub fn factored(&self) -> Option<(&Mat, &Mat)> {
        self.factored.as_ref().map(|(left, right)| (left, *right))
    }

    /// `f(column, value)` for the entries of row `i`.
    pub fn each(&self, i: usize, f: impl FnMut(usize, f64)) {
        each(self.p.row(i), self.n, f);
    }

    /// `P x`.
    pub fn times(&self, x: &Mat) -> Mat {
        if let Some((left, right)) = self.factored() {
            return product(left, &cross(right, x, None));
        }
        let total = column_sums(x, None);
        by_rows(self.m, x.cols(), |i, out| match self.p.row(i) {
            Row::Uniform => out.iter_mut().zip(&total).for_each(|(o, t)| *o = t / self.n as f64),
            row => each(row, self.n, |j, p| out.iter_mut().zip(x.row(j)).for_each(|(o, x)| *o += p * x)),
        })
    }

    /// `P^T y`.
    pub fn transposed_times(&self, y: &Mat) -> Mat {
        if let Some((left, right)) = self.factored() {
            return product(right, &cross(left, y, None));
        }
        let mut out = Mat::zeros(self.n, y.cols());
        for from in (0..y.cols()).step_by(STRIP) {
            let to = y.cols().min(from + STRIP);
            self.transposed_strip(y, from, to, &mut out);
        }
        out
    }

    /// Columns `from..to` of `P^T y`: every row adds its entries to the columns it reaches.
    fn transposed_strip(&self, y: &Mat, from: usize, to: usize, out: &mut Mat) {
        let (m, n, width) = (self.m, self.n, to - from);
        let rows = m.div_ceil(PANELS);
        let panels: Vec<(Mat, Vec<f64>)> = (0..PANELS)
            .into_par_iter()
            .map(|panel| {
                let (mut part, mut uniform) = (Mat::zeros(n, width), vec![0.0; width]);
                for i in (panel * rows).min(m)..((panel + 1) * rows).min(m) {
                    let y = &y.row(i)[from..to];
                    match self.p.row(i) {
                        Row::Uniform => uniform.iter_mut().zip(y).for_each(|(u, y)| *u += y / n as f64),
                        row => each(row, n, |j, p| part.row_mut(j).iter_mut().zip(y).for_each(|(o, y)| *o += p * y)),
                    }
                }
                (part, uniform)
            })
            .collect();
        let cols = out.cols();
        out.as_mut_slice().par_chunks_mut(cols).enumerate().for_each(|(j, out)| {
            for (part, uniform) in &panels {
                for k in 0..width {
                    out[from + k] += part[(j, k)] + uniform[k];
                }
            }
        });
    }

    /// `|| Xi (P - A B^T) ||_F^2`: entry by entry where that is affordable, else from the expanded square, whose rounding
    /// is about 1e-16 of `|| Xi P ||_F^2`.
    pub fn residual2(&self, weights: &[f64], a: &Mat, b: &Mat) -> f64 {
        let (m, n) = (self.m, self.n);
        if m as f64 * n as f64 * (a.cols() as f64 + self.factored().map_or(0.0, |(l, _)| l.cols() as f64)) <= DIRECT {
            return sum(m, |i| {
                let mut row: Vec<f64> = (0..n).map(|j| -dot(a.row(i), b.row(j))).collect();
                self.each(i, |j, p| row[j] += p);
                weights[i] * weights[i] * dot(&row, &row)
            });
        }
        let (pb, gram) = (self.times(b), cross(b, b, None));
        let ag = product(a, &gram);
        sum(m, |i| weights[i] * weights[i] * (self.norms2[i] - 2.0 * dot(a.row(i), pb.row(i)) + dot(ag.row(i), a.row(i))))
    }

    /// `|| Xi (P - T) ||_F^2`.
    pub fn distance2(&self, weights: &[f64], other: &Rows) -> f64 {
        if let Some((left, right)) = other.factored() {
            return self.residual2(weights, left, right);
        }
        if let Some((left, right)) = self.factored() {
            return other.residual2(weights, left, right);
        }
        sum(self.m, |i| {
            let mut row = vec![0.0; self.n];
            self.each(i, |j, p| row[j] += p);
            other.each(i, |j, t| row[j] -= t);
            weights[i] * weights[i] * dot(&row, &row)
        })
    }

    /// `|| Xi P ||_F^2`.
    pub fn norm2(&self, weights: &[f64]) -> f64 {
        sum(self.m, |i| weights[i] * weights[i] * self.norms2[i])
    }
}

/// The left factors of all rows and the right factor they share, if they do.
fn common_factor(p: &dyn Operator) -> Option<(Mat, &Mat)> {
    let m = p.rows();
    let Row::LowRank(first, right) = (m > 0).then(|| p.row(0))? else { return None };
    let mut left = Mat::zeros(m, first.len());
    for i in 0..m {
        match p.row(i) {
            Row::LowRank(row, same) if std::ptr::eq(same, right) => left.row_mut(i).copy_from_slice(row),
            _ => return None,
        }
    }
    Some((left, right))
}

/// Refuses a matrix with an entry that is NaN or infinite.
pub(super) fn check_finite(what: &'static str, m: &Mat) -> Result<()> {
    match m.first_not_finite() {
        Some((row, column, value)) => Err(Error::NotFinite { what, row, column, value }),
        None => Ok(()),
    }
}
