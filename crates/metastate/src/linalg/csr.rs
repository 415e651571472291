//! Compressed sparse rows with `u32` column numbers: up to 4e9 states, 12 bytes an entry.
//!
//! Counts are kept in many places (the data, the chain, the folds, the refit) and are the same everywhere, so a clone shares its arrays
//! with the original. Who writes new values gets an array of its own for them and goes on sharing the pattern.

use std::sync::Arc;

use crate::error::{Error, Result};

/// Sparse matrix, row by row, columns ascending and distinct within a row. Cheap to clone: see the module.
///
/// ```
/// use metastate::Csr;
///
/// let counts = Csr::from_triplets(2, 3, &[(0, 2, 4.0), (1, 0, 1.0)])?;
/// assert_eq!((counts.nonzeros(), counts.row_sums()), (2, vec![4.0, 1.0]));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Csr {
    rows: usize,
    cols: usize,
    /// `indptr[i]..indptr[i + 1]` are the entries of row `i`.
    indptr: Arc<Vec<usize>>,
    indices: Arc<Vec<u32>>,
    values: Arc<Vec<f64>>,
}

impl Csr {
    /// From triplets in any order; entries of the same place are added up in the order given, and zeros are dropped.
    pub fn from_triplets(rows: usize, cols: usize, triplets: &[(u32, u32, f64)]) -> Result<Self> {
        let mut start = vec![0usize; rows + 1];
        for &(i, j, _) in triplets {
            check_index(i, rows)?;
            check_index(j, cols)?;
            start[i as usize + 1] += 1;
        }
        for i in 0..rows {
            start[i + 1] += start[i];
        }
        // Counting sort by row, then a stable sort by column inside each row.
        let mut next = start.clone();
        let mut entries = vec![(0u32, 0.0f64); triplets.len()];
        for &(i, j, x) in triplets {
            entries[next[i as usize]] = (j, x);
            next[i as usize] += 1;
        }
        let (mut indptr, mut indices, mut values) = (Vec::with_capacity(rows + 1), Vec::new(), Vec::new());
        indptr.push(0);
        for i in 0..rows {
            let row = &mut entries[start[i]..start[i + 1]];
            row.sort_by_key(|e| e.0);
            let mut k = 0;
            while k < row.len() {
                let (j, mut sum) = row[k];
                k += 1;
                while k < row.len() && row[k].0 == j {
                    sum += row[k].1;
                    k += 1;
                }
                if sum != 0.0 {
                    indices.push(j);
                    values.push(sum);
                }
            }
            indptr.push(indices.len());
        }
        Ok(Csr::assemble(rows, cols, indptr, indices, values))
    }

    /// From the three arrays of the format; columns must ascend strictly within each row.
    pub fn from_parts(rows: usize, cols: usize, indptr: Vec<usize>, indices: Vec<u32>, values: Vec<f64>) -> Result<Self> {
        if indptr.len() != rows + 1 {
            return Err(Error::SizeMismatch { what: "indptr", expected: rows + 1, found: indptr.len() });
        }
        if indices.len() != values.len() {
            return Err(Error::SizeMismatch { what: "the list of values", expected: indices.len(), found: values.len() });
        }
        if indptr[0] != 0 || indptr[rows] != indices.len() || indptr.windows(2).any(|w| w[0] > w[1]) {
            return Err(Error::SizeMismatch { what: "the end of indptr", expected: indices.len(), found: indptr[rows] });
        }
        for i in 0..rows {
            let row = &indices[indptr[i]..indptr[i + 1]];
            for &j in row {
                check_index(j, cols)?;
            }
            if row.windows(2).any(|w| w[0] >= w[1]) {
                return Err(Error::Setting {
                    name: "the column order of a sparse matrix",
                    value: format!("not ascending in row {i}"),
                    allowed: "columns must ascend strictly within each row",
                });
            }
        }
        Ok(Csr::assemble(rows, cols, indptr, indices, values))
    }

    fn assemble(rows: usize, cols: usize, indptr: Vec<usize>, indices: Vec<u32>, values: Vec<f64>) -> Self {
        Csr { rows, cols, indptr: Arc::new(indptr), indices: Arc::new(indices), values: Arc::new(values) }
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

    /// Number of stored entries.
    #[must_use]
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Columns and values of row `i`.
    #[inline]
    #[must_use]
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let span = self.indptr[i]..self.indptr[i + 1];
        (&self.indices[span.clone()], &self.values[span])
    }

    /// Row starts: `rows + 1` offsets.
    #[must_use]
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Column numbers of all entries.
    #[must_use]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values of all entries.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Values, writable; the pattern stays. Clones keep theirs.
    pub fn values_mut(&mut self) -> &mut [f64] {
        Arc::make_mut(&mut self.values).as_mut_slice()
    }

    /// The same pattern with these values, one an entry, where zeros are left out: the pattern is shared where there are none.
    pub(crate) fn with_values(&self, values: Vec<f64>) -> Csr {
        if values.iter().all(|x| *x != 0.0) {
            return Csr { values: Arc::new(values), ..self.clone() };
        }
        let kept = values.iter().filter(|x| **x != 0.0).count();
        let (mut indptr, mut indices, mut entries) =
            (Vec::with_capacity(self.rows + 1), Vec::with_capacity(kept), Vec::with_capacity(kept));
        indptr.push(0);
        for i in 0..self.rows {
            let span = self.indptr[i]..self.indptr[i + 1];
            for (&j, &x) in self.indices[span.clone()].iter().zip(&values[span]).filter(|(_, x)| **x != 0.0) {
                indices.push(j);
                entries.push(x);
            }
            indptr.push(indices.len());
        }
        Csr::assemble(self.rows, self.cols, indptr, indices, entries)
    }

    /// Whether this is a clone of the other, not only equal to it.
    pub(crate) fn shares_with(&self, other: &Csr) -> bool {
        Arc::ptr_eq(&self.values, &other.values) && Arc::ptr_eq(&self.indices, &other.indices) && Arc::ptr_eq(&self.indptr, &other.indptr)
    }

    /// All entries as (row, column, value), row by row.
    pub fn triplets(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        (0..self.rows).flat_map(move |i| {
            let (columns, values) = self.row(i);
            columns.iter().zip(values).map(move |(&j, &x)| (i as u32, j, x))
        })
    }

    /// The sum of each row.
    #[must_use]
    pub fn row_sums(&self) -> Vec<f64> {
        (0..self.rows).map(|i| self.row(i).1.iter().sum()).collect()
    }

    /// The sum of each column, added up row by row.
    #[must_use]
    pub fn column_sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.cols];
        self.indices.iter().zip(self.values.iter()).for_each(|(&j, x)| sums[j as usize] += x);
        sums
    }

    /// The transpose, also by rows.
    #[must_use]
    pub fn transposed(&self) -> Csr {
        let mut indptr = vec![0usize; self.cols + 1];
        for &j in self.indices.iter() {
            indptr[j as usize + 1] += 1;
        }
        for j in 0..self.cols {
            indptr[j + 1] += indptr[j];
        }
        let mut next = indptr.clone();
        let mut indices = vec![0u32; self.indices.len()];
        let mut values = vec![0.0; self.values.len()];
        for i in 0..self.rows {
            let (columns, entries) = self.row(i);
            for (&j, &x) in columns.iter().zip(entries) {
                let at = next[j as usize];
                next[j as usize] += 1;
                indices[at] = i as u32;
                values[at] = x;
            }
        }
        Csr::assemble(self.cols, self.rows, indptr, indices, values)
    }

    /// The sub-matrix on the rows and columns of `keep` (ascending state numbers); a clone where that is all of them.
    #[must_use]
    pub fn restrict(&self, keep: &[usize]) -> Csr {
        self.restrict_sides(keep, keep)
    }

    /// The sub-matrix on these rows and those columns (ascending); a clone where that is all of them.
    #[must_use]
    pub fn restrict_sides(&self, rows: &[usize], cols: &[usize]) -> Csr {
        if rows.len() == self.rows && cols.len() == self.cols {
            return self.clone();
        }
        let mut position = vec![u32::MAX; self.cols];
        for (new, &old) in cols.iter().enumerate() {
            position[old] = new as u32;
        }
        let mut indptr = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for &i in rows {
            let (columns, entries) = self.row(i);
            for (&j, &x) in columns.iter().zip(entries) {
                if position[j as usize] != u32::MAX {
                    indices.push(position[j as usize]);
                    values.push(x);
                }
            }
            indptr.push(indices.len());
        }
        Csr::assemble(rows.len(), cols.len(), indptr, indices, values)
    }
}

fn check_index(index: u32, len: usize) -> Result<()> {
    if (index as usize) < len { Ok(()) } else { Err(Error::IndexOutOfRange { what: "state", index: index.into(), len }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_shares_until_somebody_writes() {
        let counts = Csr::from_triplets(2, 2, &[(0, 1, 3.0), (1, 0, 4.0)]).unwrap();
        let mut p = counts.clone();
        assert_eq!(p.values().as_ptr(), counts.values().as_ptr());
        p.values_mut()[0] = 1.0;
        assert_eq!((counts.values(), p.values()), (&[3.0, 4.0][..], &[1.0, 4.0][..]));
        assert_eq!(p.indices().as_ptr(), counts.indices().as_ptr());
        assert_eq!(counts.restrict(&[0, 1]).values().as_ptr(), counts.values().as_ptr());
        assert_eq!(counts.restrict(&[1]).nonzeros(), 0);
    }
}
