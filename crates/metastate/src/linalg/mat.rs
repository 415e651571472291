//! A dense matrix, row by row. Factors are thin (`d x s`), so a row is a short contiguous run.

use crate::error::{Error, Result};

/// Dense row-major matrix of `f64`.
///
/// ```
/// use metastate::Mat;
///
/// let identity = Mat::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
/// assert_eq!((identity.rows(), identity[(1, 1)]), (2, 1.0));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mat {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Mat {
    /// All zeros.
    #[must_use]
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Mat { rows, cols, data: vec![0.0; rows * cols] }
    }

    /// Entry `(i, j)` is `f(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut m = Mat::zeros(rows, cols);
        for i in 0..rows {
            for j in 0..cols {
                m.data[i * cols + j] = f(i, j);
            }
        }
        m
    }

    /// Takes over a row-major buffer.
    pub fn from_vec(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self> {
        if data.len() != rows * cols {
            return Err(Error::SizeMismatch { what: "the buffer of a matrix", expected: rows * cols, found: data.len() });
        }
        Ok(Mat { rows, cols, data })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, writable.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The whole buffer, row by row.
    #[must_use]
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// The whole buffer, writable.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The buffer itself.
    #[must_use]
    pub fn into_vec(self) -> Vec<f64> {
        self.data
    }

    /// Makes this `rows x cols`, contents unspecified; keeps the allocation when it is large enough.
    pub fn resize(&mut self, rows: usize, cols: usize) {
        self.rows = rows;
        self.cols = cols;
        self.data.resize(rows * cols, 0.0);
    }

    /// Copy of column `j`.
    #[must_use]
    pub fn column(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self[(i, j)]).collect()
    }

    /// The transpose as a new matrix.
    #[must_use]
    pub fn transposed(&self) -> Mat {
        let mut t = Mat::zeros(self.cols, self.rows);
        self.transpose_into(&mut t);
        t
    }

    /// Writes the transpose into `out`, in tiles that fit the cache.
    pub fn transpose_into(&self, out: &mut Mat) {
        const TILE: usize = 64;
        out.resize(self.cols, self.rows);
        for i0 in (0..self.rows).step_by(TILE) {
            let i1 = (i0 + TILE).min(self.rows);
            for j in 0..self.cols {
                let column = &mut out.data[j * self.rows + i0..j * self.rows + i1];
                for (o, i) in column.iter_mut().zip(i0..i1) {
                    *o = self.data[i * self.cols + j];
                }
            }
        }
    }

    /// The columns named, in that order.
    #[must_use]
    pub fn select_columns(&self, columns: &[usize]) -> Mat {
        Mat::from_fn(self.rows, columns.len(), |i, j| self[(i, columns[j])])
    }

    /// The column of the largest entry of each row, see [`super::largest_entry`].
    pub fn largest_entries(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows).map(|i| super::largest_entry(self.row(i)))
    }

    /// First entry that is not finite, as (row, column, value).
    #[must_use]
    pub fn first_not_finite(&self) -> Option<(usize, usize, f64)> {
        let at = self.data.iter().position(|x| !x.is_finite())?;
        Some((at / self.cols, at % self.cols, self.data[at]))
    }
}

impl std::ops::Index<(usize, usize)> for Mat {
    type Output = f64;
    #[inline]
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[i * self.cols + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Mat {
    #[inline]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[i * self.cols + j]
    }
}
