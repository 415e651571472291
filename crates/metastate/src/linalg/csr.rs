//! Compressed sparse rows with `u32` column numbers: up to 4e9 states, 12 bytes an entry.
//!
//! Counts are kept in many places (the data, the chain, the folds, the refit) and are the same everywhere, so a clone shares its arrays
//! with the original. Who writes new values gets an array of its own for them and goes on sharing the pattern: P costs 8 bytes an entry
//! beside its counts.
//!
//! Where several processes work together, each holds some of the rows and the others are empty here ([`Csr::share`]): sums and transposes are then those of all rows together, and entries those of the own rows.

use std::sync::Arc;

use super::team::Share;
use crate::error::{Error, Result};

/// Bytes of an entry on its way: row, column, value.
const ENTRY: usize = 16;

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
    share: Option<Share>,
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
        Csr { rows, cols, indptr: Arc::new(indptr), indices: Arc::new(indices), values: Arc::new(values), share: None }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The same as the rows of this process among several: whatever stands in rows of others is theirs to hold.
    pub fn shared(self, share: Share) -> Csr {
        Csr { share: Some(share), ..self }
    }

    /// Which rows this process holds, where there are several.
    pub fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    /// Number of stored entries of all processes together.
    pub fn all_nonzeros(&self) -> usize {
        self.share.as_ref().map_or(self.values.len(), |share| share.add_one(self.values.len() as f64) as usize)
    }

    /// The sum of all entries.
    pub fn sum(&self) -> f64 {
        match &self.share {
            None => self.values.iter().sum(),
            Some(_) => self.row_sums().iter().sum(),
        }
    }

    /// Columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let span = self.indptr[i]..self.indptr[i + 1];
        (&self.indices[span.clone()], &self.values[span])
    }

    /// Row starts: `rows + 1` offsets.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// Column numbers of all entries.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values of all entries.
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
        Csr { share: self.share.clone(), ..Csr::assemble(self.rows, self.cols, indptr, indices, entries) }
    }

    /// All entries as (row, column, value), row by row.
    pub fn triplets(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        (0..self.rows).flat_map(move |i| {
            let (columns, values) = self.row(i);
            columns.iter().zip(values).map(move |(&j, &x)| (i as u32, j, x))
        })
    }

    /// The sum of each row.
    pub fn row_sums(&self) -> Vec<f64> {
        let mut sums: Vec<f64> = (0..self.rows).map(|i| self.row(i).1.iter().sum()).collect();
        if let Some(share) = &self.share {
            share.gather(&mut sums, 1);
        }
        sums
    }

    /// The sum of each column, added up row by row.
    pub fn column_sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.cols];
        self.indices.iter().zip(self.values.iter()).for_each(|(&j, x)| sums[j as usize] += x);
        if let Some(share) = &self.share {
            share.add_up(&mut sums);
        }
        sums
    }

    /// The transpose, also by rows.
    pub fn transposed(&self) -> Csr {
        if let Some(share) = &self.share {
            return self.transposed_among(share);
        }
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

    /// Every entry goes to the process that holds its column; columns are divided so that all have about as many entries.
    fn transposed_among(&self, share: &Share) -> Csr {
        let mut entries = vec![0.0; self.cols];
        self.indices.iter().for_each(|&j| entries[j as usize] += 1.0);
        share.add_up(&mut entries);
        let columns = Share::balanced(Arc::clone(share.team()), |j| 1.0 + entries[j], self.cols);
        Csr::dealt(self.cols, self.rows, self.triplets().map(|(i, j, x)| (j, i, x)), columns)
    }

    /// Every entry goes to the process that holds its row. The entries of a row must come from one process, columns ascending, or those of each process before those of the next.
    pub fn dealt(rows: usize, cols: usize, entries: impl Iterator<Item = (u32, u32, f64)>, share: Share) -> Csr {
        let mut parcels: Vec<Vec<u8>> = vec![Vec::new(); share.team().size()];
        for (i, j, x) in entries {
            let parcel = &mut parcels[share.owner(i as usize)];
            parcel.extend_from_slice(&i.to_le_bytes());
            parcel.extend_from_slice(&j.to_le_bytes());
            parcel.extend_from_slice(&x.to_le_bytes());
        }
        Csr::of_parcels(rows, cols, &share.team().exchange(parcels)).shared(share)
    }

    /// The sub-matrix, its rows divided anew.
    fn restrict_among(&self, share: &Share, rows: &[usize], cols: &[usize]) -> Csr {
        let places = |keep: &[usize], all: usize| {
            let mut place = vec![u32::MAX; all];
            keep.iter().enumerate().for_each(|(new, &old)| place[old] = new as u32);
            place
        };
        let (row, column) = (places(rows, self.rows), places(cols, self.cols));
        let kept = || {
            let named = self.triplets().map(|(i, j, x)| (row[i as usize], column[j as usize], x));
            named.filter(|(i, j, _)| *i != u32::MAX && *j != u32::MAX)
        };
        let mut entries = vec![0.0; rows.len()];
        kept().for_each(|(i, _, _)| entries[i as usize] += 1.0);
        share.add_up(&mut entries);
        let divided = Share::balanced(Arc::clone(share.team()), |i| 1.0 + entries[i], rows.len());
        Csr::dealt(rows.len(), cols.len(), kept(), divided)
    }

    /// From what [`Csr::dealt`] sends.
    fn of_parcels(rows: usize, cols: usize, parcels: &[Vec<u8>]) -> Csr {
        let entries = || {
            parcels.iter().flat_map(|p| p.chunks_exact(ENTRY)).map(|bytes| {
                let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                let value = u64::from(word(8)) | u64::from(word(12)) << 32;
                (word(0), word(4), f64::from_bits(value))
            })
        };
        let mut indptr = vec![0usize; rows + 1];
        entries().for_each(|(i, _, _)| indptr[i as usize + 1] += 1);
        for i in 0..rows {
            indptr[i + 1] += indptr[i];
        }
        let mut next = indptr.clone();
        let (mut indices, mut values) = (vec![0u32; indptr[rows]], vec![0.0; indptr[rows]]);
        for (i, j, x) in entries() {
            let at = next[i as usize];
            next[i as usize] += 1;
            (indices[at], values[at]) = (j, x);
        }
        Csr::assemble(rows, cols, indptr, indices, values)
    }

    /// The sub-matrix on the rows and columns of `keep` (ascending state numbers); a clone where that is all of them.
    pub fn restrict(&self, keep: &[usize]) -> Csr {
        self.restrict_sides(keep, keep)
    }

    /// The sub-matrix on these rows and those columns (ascending); a clone where that is all of them.
    pub fn restrict_sides(&self, rows: &[usize], cols: &[usize]) -> Csr {
        if rows.len() == self.rows && cols.len() == self.cols {
            return self.clone();
        }
        if let Some(share) = &self.share {
            return self.restrict_among(share, rows, cols);
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
