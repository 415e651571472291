//! How the solver sees a transition matrix: two products and its rows. Where P lives (sparse in memory, dense, exact low
//! rank, and later mapped or shared between processes) is known to nobody else.

use super::team::Share;
use super::thin;
use super::{Csr, Mat, wide};
use crate::error::{Error, Result};

/// One row of an operator, as it is stored.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// Columns (ascending) and values; all else is zero.
    Sparse(&'a [u32], &'a [f64]),
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

/// A matrix P known by its products with thin matrices: rows are origins, columns destinations. In a chain that goes on from where it arrives they are the same set.
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
    /// Row `i`.
    fn row(&self, i: usize) -> Row<'_>;
    /// Which rows this process holds, where several work together: [`Operator::row`] then knows those only, and the products are those of the whole all the same.
    fn share(&self) -> Option<&Share> {
        None
    }
    /// `(L, R)` with `P = L R^T`, when that is how P is given.
    fn low_rank(&self) -> Option<(&Mat, &Mat)> {
        None
    }
    /// `|| diag(w) P ||_F^2`.
    fn weighted_norm_squared(&self, w: &[f64]) -> f64 {
        let (m, n) = (self.rows(), self.cols());
        let of_rows = |rows: std::ops::Range<usize>| {
            let of_row = |i: usize| {
                let mut sum = 0.0;
                self.row(i).for_each(n, |_, x| sum += x * x);
                w[i] * w[i] * sum
            };
            vec![rows.map(of_row).sum::<f64>()]
        };
        thin::sum_blocks_among(self.share(), m, 1, 2 * self.nonzeros() / m, of_rows)[0]
    }
}

/// Sparse rows, with the transpose beside them so that both products stream; rows without data are uniform and implicit.
#[derive(Debug, Clone)]
pub struct SparseOperator {
    p: Csr,
    p_transposed: Csr,
    uniform: Vec<u32>,
    /// The same matrix with its zeros, when there are so few that a dense product is faster.
    filled: Option<DenseOperator>,
    /// Of all processes.
    nonzeros: usize,
}

/// From this share of non-zeros on, a dense product takes less time than a sparse one (measured: about 0.15 at s = 20).
const NEARLY_FULL: f64 = 0.2;

impl SparseOperator {
    /// `uniform` lists the rows (ascending, empty in `p`) that stand for `1/n` everywhere, n the number of columns.
    pub fn new(p: Csr, uniform: Vec<u32>) -> Result<Self> {
        SparseOperator::with_transpose(p, uniform, Csr::transposed)
    }

    /// The same for one who knows how to make the transpose of `p` more cheaply.
    pub(crate) fn with_transpose(p: Csr, uniform: Vec<u32>, transpose: impl FnOnce(&Csr) -> Csr) -> Result<Self> {
        for &i in &uniform {
            if i as usize >= p.rows() {
                return Err(Error::IndexOutOfRange { what: "state", index: i.into(), len: p.rows() });
            }
        }
        let (m, n) = (p.rows(), p.cols());
        let nonzeros = p.all_nonzeros();
        if p.share().is_none() && nonzeros as f64 > NEARLY_FULL * (m * n) as f64 {
            let mut filled = Mat::zeros(m, n);
            p.triplets().for_each(|(i, j, x)| filled[(i as usize, j as usize)] = x);
            uniform.iter().for_each(|&i| filled.row_mut(i as usize).fill(1.0 / n as f64));
            return Ok(SparseOperator { p, p_transposed: Csr::default(), uniform, filled: Some(DenseOperator::new(filled)), nonzeros });
        }
        let p_transposed = transpose(&p);
        Ok(SparseOperator { p, p_transposed, uniform, filled: None, nonzeros })
    }

    /// The stored entries.
    pub fn csr(&self) -> &Csr {
        &self.p
    }

    /// The rows that are uniform.
    pub fn uniform_rows(&self) -> &[u32] {
        &self.uniform
    }
}

impl Operator for SparseOperator {
    fn rows(&self) -> usize {
        self.p.rows()
    }

    fn cols(&self) -> usize {
        self.p.cols()
    }

    fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    fn share(&self) -> Option<&Share> {
        self.p.share()
    }

    fn apply(&self, x: &Mat, out: &mut Mat) {
        if let Some(filled) = &self.filled {
            return filled.apply(x, out);
        }
        sparse_times_thin(&self.p, x, out);
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
        sparse_times_thin(&self.p_transposed, x, out);
        if !self.uniform.is_empty() {
            let mut share = vec![0.0; x.cols()];
            for &i in &self.uniform {
                share.iter_mut().zip(x.row(i as usize)).for_each(|(s, x)| *s += x);
            }
            share.iter_mut().for_each(|s| *s /= self.cols() as f64);
            thin::for_each_row_mut(out, |_, row| row.iter_mut().zip(&share).for_each(|(o, s)| *o += s));
        }
    }

    fn row(&self, i: usize) -> Row<'_> {
        if self.uniform.binary_search(&(i as u32)).is_ok() {
            return Row::Uniform;
        }
        let (columns, values) = self.p.row(i);
        Row::Sparse(columns, values)
    }
}

/// A matrix with all its entries in memory.
#[derive(Debug, Clone)]
pub struct DenseOperator {
    p: Mat,
}

impl DenseOperator {
    /// Takes all entries.
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

/// `out = A x`, rows shared out in fixed blocks: the sum for a row is the same whatever the number of threads.
fn sparse_times_thin(a: &Csr, x: &Mat, out: &mut Mat) {
    let s = x.cols();
    out.resize(a.rows(), s);
    if s == 0 {
        return;
    }
    thin::for_each_chunk_among(a.share(), out.as_mut_slice(), s, 2 * a.nonzeros() * s, |first, rows| {
        sparse_rows_times_thin(a, first, x, rows);
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
