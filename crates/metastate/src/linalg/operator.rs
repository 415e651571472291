//! How the solver sees a transition matrix: two products and its rows. Only this module knows how P is stored (sparse in memory,
//! dense, or in exact low rank).

use super::thin::{self, BLOCK};
use super::{Csr, Mat, wide};
use crate::error::{Error, Result};

/// One row of an operator, in the form in which it is stored.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// Columns (ascending) and values; all else is zero.
    Sparse(&'a [u32], &'a [f64]),
    /// Columns (ascending), counts, and what each count is divided by; all else is zero.
    Counted(&'a [u32], &'a [f64], f64),
    /// All entries.
    Dense(&'a [f64]),
    /// Every entry is `1 / n`, n the number of columns.
    Uniform,
    /// Entry `j` is the inner product of the vector with row `j` of the matrix.
    LowRank(&'a [f64], &'a Mat),
    /// Ascending columns and their values, and to every entry `j` the number times entry `j` of the vector is added.
    SparseAndOne(&'a [u32], &'a [f64], f64, &'a [f64]),
}

impl Row<'_> {
    /// Calls `f(column, value)` for every entry that is stored or implied.
    pub fn for_each(&self, cols: usize, mut f: impl FnMut(usize, f64)) {
        match self {
            Row::Sparse(columns, values) => columns.iter().zip(*values).for_each(|(&j, &x)| f(j as usize, x)),
            Row::Counted(columns, counts, total) => columns.iter().zip(*counts).for_each(|(&j, n)| f(j as usize, n / total)),
            Row::Dense(values) => values.iter().enumerate().for_each(|(j, &x)| f(j, x)),
            Row::Uniform => (0..cols).for_each(|j| f(j, 1.0 / cols as f64)),
            Row::LowRank(left, right) => (0..cols).for_each(|j| f(j, thin::dot(left, right.row(j)))),
            Row::SparseAndOne(columns, values, left, right) => {
                let mut stored = columns.iter().zip(*values).peekable();
                for j in 0..cols {
                    let here = stored.next_if(|(column, _)| **column as usize == j).map_or(0.0, |(_, x)| *x);
                    f(j, here + left * right[j]);
                }
            }
        }
    }
}

/// A matrix P known by its products with thin matrices: rows are origins, columns destinations. In a chain whose steps can follow each other they are the same set.
///
/// ```
/// use metastate::{DenseOperator, Mat, Operator};
///
/// let p = DenseOperator::new(Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8])?);
/// let (x, mut out) = (Mat::from_vec(2, 1, vec![1.0, 0.0])?, Mat::default());
/// p.apply(&x, &mut out); // the first column of P
/// assert_eq!(out.as_slice(), [0.9, 0.2]);
/// p.apply_transpose(&x, &mut out); // the first row
/// assert_eq!(out.as_slice(), [0.9, 0.1]);
/// # Ok::<(), metastate::Error>(())
/// ```
pub trait Operator: Send + Sync + std::fmt::Debug {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of columns.
    fn cols(&self) -> usize;
    /// Numbers stored.
    fn nonzeros(&self) -> usize;
    /// `out = P x`.
    fn apply(&self, x: &Mat, out: &mut Mat);
    /// `out = P^T x`.
    fn apply_transpose(&self, x: &Mat, out: &mut Mat);
    /// `out = P^T diag(w) x`.
    fn apply_transpose_weighted(&self, w: &[f64], x: &Mat, out: &mut Mat) {
        let mut weighted = x.clone();
        thin::scale_rows(&mut weighted, w);
        self.apply_transpose(&weighted, out);
    }
    /// Row `i`.
    fn row(&self, i: usize) -> Row<'_>;
    /// Counts by row and by column, where P is their rows divided by what they sum to.
    fn counted(&self) -> Option<(&Csr, &Csr)> {
        None
    }
    /// `(L, R)` with `P = L R^T`, when that is how P is given.
    fn low_rank(&self) -> Option<(&Mat, &Mat)> {
        None
    }
    /// `|| diag(w) P ||_F^2`.
    fn weighted_norm_squared(&self, w: &[f64]) -> f64 {
        let (m, n) = (self.rows(), self.cols());
        thin::sum_over_rows(m, 2 * self.nonzeros() / m, |i| {
            let mut sum = 0.0;
            self.row(i).for_each(n, |_, x| sum += x * x);
            w[i] * w[i] * sum
        })
    }
}

/// Sparse rows, with the transpose beside them so that both products stream; rows without data are uniform and implicit.
///
/// Where P comes from counts it has no values of its own: it is the counts, by row and by column, and what each row is divided by. Whoever needs the counts as well shares them.
///
/// ```
/// use metastate::{Csr, Mat, Operator, SparseOperator};
///
/// // Row 0 leads to state 1; nothing is known of row 1, so it is uniform.
/// let p = SparseOperator::new(Csr::from_triplets(2, 2, &[(0, 1, 1.0)])?, vec![1])?;
/// let (x, mut out) = (Mat::from_vec(2, 1, vec![1.0, 3.0])?, Mat::default());
/// p.apply(&x, &mut out);
/// assert_eq!(out.as_slice(), [3.0, 2.0]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SparseOperator {
    /// P, or counts.
    by_row: Csr,
    by_column: Csr,
    /// What each row of the counts is divided by.
    totals: Option<Vec<f64>>,
    uniform: Vec<u32>,
    /// The same matrix with its zeros, when there are so few that a dense product is faster.
    filled: Option<DenseOperator>,
}

/// From this share of non-zeros on, a dense product takes less time than a sparse one (measured: about 0.15 at s = 20).
const NEARLY_FULL: f64 = 0.2;

impl SparseOperator {
    /// `uniform` lists the rows (ascending, empty in `p`) that stand for `1/n` everywhere, n the number of columns.
    pub fn new(p: Csr, uniform: Vec<u32>) -> Result<Self> {
        for &i in &uniform {
            if i as usize >= p.rows() {
                return Err(Error::IndexOutOfRange { what: "state", index: i.into(), len: p.rows() });
            }
        }
        Ok(SparseOperator::made(p, uniform, None, Csr::transposed))
    }

    /// Counts divided by their row sums, `departures`; a row without any is uniform. `transpose` hands out the same counts by column.
    pub(crate) fn of_counts(by_row: &Csr, departures: &[f64], transpose: impl FnOnce(&Csr) -> Csr) -> Result<Self> {
        if departures.len() != by_row.rows() {
            return Err(Error::SizeMismatch { what: "the list of departures", expected: by_row.rows(), found: departures.len() });
        }
        let uniform = (0..departures.len() as u32).filter(|&i| departures[i as usize] == 0.0).collect();
        let totals = departures.iter().map(|&n| if n == 0.0 { 1.0 } else { n }).collect();
        Ok(SparseOperator::made(by_row.clone(), uniform, Some(totals), transpose))
    }

    fn made(by_row: Csr, uniform: Vec<u32>, totals: Option<Vec<f64>>, transpose: impl FnOnce(&Csr) -> Csr) -> Self {
        let (m, n) = (by_row.rows(), by_row.cols());
        let mut made = SparseOperator { by_row, by_column: Csr::default(), totals, uniform, filled: None };
        if made.by_row.nonzeros() as f64 > NEARLY_FULL * (m * n) as f64 {
            let mut filled = Mat::zeros(m, n);
            (0..m).for_each(|i| made.row(i).for_each(n, |j, x| filled[(i, j)] = x));
            made.filled = Some(DenseOperator::new(filled));
        } else {
            made.by_column = transpose(&made.by_row);
        }
        made
    }

    /// The entries as they are stored: those of P, where it was not made of counts.
    pub(crate) fn stored(&self) -> &Csr {
        &self.by_row
    }

    /// The rows that are uniform.
    #[must_use]
    pub fn uniform_rows(&self) -> &[u32] {
        &self.uniform
    }

    /// What the uniform rows add to every row of `P^T diag(w) x`.
    fn add_uniform(&self, w: Option<&[f64]>, x: &Mat, out: &mut Mat) {
        if self.uniform.is_empty() {
            return;
        }
        let mut share = vec![0.0; x.cols()];
        for &i in &self.uniform {
            let w = w.map_or(1.0, |w| w[i as usize]);
            share.iter_mut().zip(x.row(i as usize)).for_each(|(s, x)| *s += w * x);
        }
        share.iter_mut().for_each(|s| *s /= self.cols() as f64);
        thin::for_each_row_mut(out, |_, row| row.iter_mut().zip(&share).for_each(|(o, s)| *o += s));
    }
}

impl Operator for SparseOperator {
    fn rows(&self) -> usize {
        self.by_row.rows()
    }

    fn cols(&self) -> usize {
        self.by_row.cols()
    }

    fn nonzeros(&self) -> usize {
        self.by_row.nonzeros()
    }

    fn apply(&self, x: &Mat, out: &mut Mat) {
        if let Some(filled) = &self.filled {
            return filled.apply(x, out);
        }
        sparse_times_thin(&self.by_row, None, self.totals.as_deref(), x, out);
        if !self.uniform.is_empty() {
            let mut mean = thin::column_sums(x);
            mean.iter_mut().for_each(|m| *m /= x.rows() as f64);
            for &i in &self.uniform {
                out.row_mut(i as usize).copy_from_slice(&mean);
            }
        }
    }

    fn apply_transpose(&self, x: &Mat, out: &mut Mat) {
        if let Some(filled) = &self.filled {
            return filled.apply_transpose(x, out);
        }
        let shares: Option<Vec<f64>> = self.totals.as_ref().map(|totals| totals.iter().map(|n| 1.0 / n).collect());
        sparse_times_thin(&self.by_column, shares.as_deref(), None, x, out);
        self.add_uniform(None, x, out);
    }

    fn apply_transpose_weighted(&self, w: &[f64], x: &Mat, out: &mut Mat) {
        if let Some(filled) = &self.filled {
            return filled.apply_transpose_weighted(w, x, out);
        }
        let shares: Option<Vec<f64>> = self.totals.as_ref().map(|totals| totals.iter().zip(w).map(|(n, w)| w / n).collect());
        sparse_times_thin(&self.by_column, Some(shares.as_deref().unwrap_or(w)), None, x, out);
        self.add_uniform(Some(w), x, out);
    }

    fn row(&self, i: usize) -> Row<'_> {
        if self.uniform.binary_search(&(i as u32)).is_ok() {
            return Row::Uniform;
        }
        let (columns, values) = self.by_row.row(i);
        match &self.totals {
            None => Row::Sparse(columns, values),
            Some(totals) => Row::Counted(columns, values, totals[i]),
        }
    }

    fn counted(&self) -> Option<(&Csr, &Csr)> {
        (self.totals.is_some() && self.filled.is_none()).then_some((&self.by_row, &self.by_column))
    }
}

/// A matrix with all its entries in memory.
///
/// See the example of [`Operator`].
#[derive(Debug, Clone)]
pub struct DenseOperator {
    p: Mat,
}

impl DenseOperator {
    /// Takes all entries.
    #[must_use]
    pub fn new(p: Mat) -> Self {
        DenseOperator { p }
    }
}

impl Operator for DenseOperator {
    fn rows(&self) -> usize {
        self.p.rows()
    }

    fn cols(&self) -> usize {
        self.p.cols()
    }

    fn nonzeros(&self) -> usize {
        self.p.as_slice().len()
    }

    fn apply(&self, x: &Mat, out: &mut Mat) {
        thin::product(&self.p, x, out);
    }

    fn apply_transpose(&self, x: &Mat, out: &mut Mat) {
        thin::transposed_product(&self.p, x, out);
    }

    fn row(&self, i: usize) -> Row<'_> {
        Row::Dense(self.p.row(i))
    }
}

/// `P = L R^T` with thin factors, as for the paper's planted chains: products cost `O((m + n) r s)`.
///
/// ```
/// use metastate::{LowRankOperator, Mat, Operator};
///
/// // One meta-state: all three states lead to the same places.
/// let p = LowRankOperator::new(Mat::from_fn(3, 1, |_, _| 1.0), Mat::from_vec(3, 1, vec![0.5, 0.25, 0.25])?)?;
/// let mut out = Mat::default();
/// p.apply(&Mat::from_fn(3, 1, |i, _| i as f64), &mut out);
/// assert_eq!(out.as_slice(), [0.75; 3]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LowRankOperator {
    left: Mat,
    right: Mat,
}

impl LowRankOperator {
    /// Takes `L` (`m x r`) and `R` (`n x r`).
    pub fn new(left: Mat, right: Mat) -> Result<Self> {
        if left.cols() != right.cols() {
            return Err(Error::SizeMismatch { what: "the right factor (columns)", expected: left.cols(), found: right.cols() });
        }
        Ok(LowRankOperator { left, right })
    }
}

impl Operator for LowRankOperator {
    fn rows(&self) -> usize {
        self.left.rows()
    }

    fn cols(&self) -> usize {
        self.right.rows()
    }

    fn nonzeros(&self) -> usize {
        self.left.as_slice().len() + self.right.as_slice().len()
    }

    fn apply(&self, x: &Mat, out: &mut Mat) {
        thin::product(&self.left, &thin::cross_gram(&self.right, x), out);
    }

    fn apply_transpose(&self, x: &Mat, out: &mut Mat) {
        thin::product(&self.right, &thin::cross_gram(&self.left, x), out);
    }

    fn row(&self, i: usize) -> Row<'_> {
        Row::LowRank(self.left.row(i), &self.right)
    }

    fn low_rank(&self) -> Option<(&Mat, &Mat)> {
        Some((&self.left, &self.right))
    }

    fn weighted_norm_squared(&self, w: &[f64]) -> f64 {
        // || diag(w) L R^T ||^2 = < L^T diag(w^2) L, R^T R >.
        let w2: Vec<f64> = w.iter().map(|w| w * w).collect();
        thin::dot(thin::weighted_gram(&self.left, &w2).as_slice(), thin::gram(&self.right).as_slice())
    }
}

/// `out = diag(1 / totals) A diag(weights) x`, rows shared out in fixed blocks: the sum for a row is the same whatever the number of threads.
fn sparse_times_thin(a: &Csr, weights: Option<&[f64]>, totals: Option<&[f64]>, x: &Mat, out: &mut Mat) {
    let s = x.cols();
    out.resize(a.rows(), s);
    if s == 0 {
        return;
    }
    thin::for_each_chunk_mut(out.as_mut_slice(), BLOCK * s, 2 * a.nonzeros() * s, |block, rows| {
        let first = block * BLOCK;
        match weights {
            None => sparse_rows_times_thin(a, first, x, rows),
            Some(weights) => weighted_rows_times_thin(a, first, weights, x, rows),
        }
        if let Some(totals) = totals {
            rows.chunks_exact_mut(s).zip(&totals[first..]).for_each(|(row, n)| row.iter_mut().for_each(|o| *o /= n));
        }
    });
}

wide! {
    /// The rows of `A x` from `first` on.
    fn sparse_rows_times_thin<'w>(a: &'w Csr, first: usize, x: &'w Mat, out: &'w mut [f64]) {
        let s = x.cols();
        for (k, out) in out.chunks_exact_mut(s).enumerate() {
            let (columns, values) = a.row(first + k);
            sparse_row_times_thin(columns, values, x.as_slice(), s, out);
        }
    }
}

/// Entries of a row that are weighed at a time: their products with the weights stay in the nearest cache.
const WEIGHED: usize = 256;

wide! {
    /// The rows of `A diag(weights) x` from `first` on.
    fn weighted_rows_times_thin<'w>(a: &'w Csr, first: usize, weights: &'w [f64], x: &'w Mat, out: &'w mut [f64]) {
        let s = x.cols();
        let mut weighed = [0.0; WEIGHED];
        let mut part = vec![0.0; s];
        for (k, out) in out.chunks_exact_mut(s).enumerate() {
            let (columns, values) = a.row(first + k);
            out.fill(0.0);
            for (columns, values) in columns.chunks(WEIGHED).zip(values.chunks(WEIGHED)) {
                for ((w, &j), value) in weighed.iter_mut().zip(columns).zip(values) {
                    *w = value * weights[j as usize];
                }
                sparse_row_times_thin(columns, &weighed[..columns.len()], x.as_slice(), s, &mut part);
                out.iter_mut().zip(&part).for_each(|(o, p)| *o += p);
            }
        }
    }
}

#[inline(always)]
fn sparse_row_times_thin(columns: &[u32], values: &[f64], x: &[f64], s: usize, out: &mut [f64]) {
    if s == 1 {
        out[0] = sparse_dot(columns, values, x);
        return;
    }
    let mut at = 0;
    while s - at >= 16 {
        panel::<16>(columns, values, x, s, at, out);
        at += 16;
    }
    if s - at >= 8 {
        panel::<8>(columns, values, x, s, at, out);
        at += 8;
    }
    if s - at >= 4 {
        panel::<4>(columns, values, x, s, at, out);
        at += 4;
    }
    while at < s {
        panel::<1>(columns, values, x, s, at, out);
        at += 1;
    }
}

/// One column: four sums, so that an addition need not wait for the one before.
#[inline(always)]
fn sparse_dot(columns: &[u32], values: &[f64], x: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (mut js, mut vs) = (columns.chunks_exact(4), values.chunks_exact(4));
    for (j, v) in (&mut js).zip(&mut vs) {
        for k in 0..4 {
            sums[k] += v[k] * x[j[k] as usize];
        }
    }
    let tail: f64 = js.remainder().iter().zip(vs.remainder()).map(|(&j, v)| v * x[j as usize]).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

/// `W` columns at once, their sums in registers.
#[inline(always)]
fn panel<const W: usize>(columns: &[u32], values: &[f64], x: &[f64], s: usize, at: usize, out: &mut [f64]) {
    let mut sum = [0.0; W];
    for (&j, &value) in columns.iter().zip(values) {
        let start = j as usize * s + at;
        let row = &x[start..start + W];
        for k in 0..W {
            sum[k] += value * row[k];
        }
    }
    out[at..at + W].copy_from_slice(&sum);
}
