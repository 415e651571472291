//! Data that a program holds already: matrices, trajectories, tables. From here on they take the way that files take.

use std::sync::Arc;

use arrow::array::RecordBatch;
use metastate::{Csr, Label, Mat, StateIndex};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::matrix::{self, Collector, Gathered};
use crate::progress::ReadProgress;
use crate::settings::{As, InputSettings};
use crate::source::{Format, Source};
use crate::{Data, Ingested, guess, read_data, sql, told, trajectories};

/// What errors call it.
pub const NAME: &str = "data in memory";

/// Rows looked at by one thread at a time.
const BATCH: usize = 1 << 18;

/// A square matrix, with what stands beside it.
#[derive(Debug, Clone)]
pub struct MemoryMatrix {
    /// The entries; no stored zeros.
    pub values: matrix::MatrixValues,
    /// Entries given, zeros included where they were stored.
    pub entries: u64,
    /// Labels; numbers from 0 without them.
    pub labels: Option<Vec<Label>>,
    /// Row weights of a transition matrix.
    pub weights: Option<Vec<f64>>,
}

/// One trajectory.
#[derive(Debug, Clone, Copy)]
pub enum Walk<'a> {
    /// Numbers of states, -1 where a frame belongs to none.
    Numbers(&'a [i64]),
    /// Names of states, empty or `-1` where a frame belongs to none.
    Names(&'a [String]),
}

/// Counts or a transition matrix; where the settings do not say, the values decide.
pub fn from_matrix(given: MemoryMatrix, settings: &InputSettings) -> Result<Ingested> {
    let source = Source::memory(NAME, Format::Npz, None);
    guess::check_options(settings.as_.filter(|a| *a == As::Counts || *a == As::Matrix), std::slice::from_ref(&source), settings)?;
    let MemoryMatrix { values, entries, labels, weights } = given;
    let d = match &values {
        matrix::MatrixValues::Sparse(csr) => csr.rows(),
        matrix::MatrixValues::Dense(mat) => mat.rows(),
    };
    let mut all = Collector::new(settings);
    all.take(values, entries, NAME)?;
    let index = match labels {
        None => StateIndex::numbered(d),
        Some(labels) if labels.len() != d => {
            return Err(IngestError::new(Code::Labels, format!("there are {} labels for the {d} states of the matrix", labels.len()))
                .file(NAME)
                .remedy("give one label a state"));
        }
        Some(labels) => StateIndex::from_labels(labels).map_err(|e| IngestError::from_core(e, Some(NAME)))?,
    };
    Ok(match all.finish(settings, index, weights, NAME)? {
        Gathered::Counts(counted) => ingested(Data::Counts(counted), As::Counts, &[source], settings)?,
        Gathered::Matrix(given) => ingested(Data::Matrix(given), As::Matrix, &[source], settings)?,
    })
}

/// Trajectories, each a list of states.
pub fn from_trajectories<'a>(
    walks: impl IntoIterator<Item = Walk<'a>>,
    settings: &InputSettings,
    progress: &mut dyn ReadProgress,
) -> Result<Ingested> {
    let source = Source::memory(NAME, Format::Npy, None);
    guess::check_options(Some(As::Trajectories), std::slice::from_ref(&source), settings)?;
    let counted = trajectories::read_walks(walks, settings, NAME, progress)?;
    ingested(Data::Counts(counted), As::Trajectories, &[source], settings)
}

/// A table with named columns, as Arrow batches of one schema.
pub fn from_batches(batches: Vec<RecordBatch>, settings: &InputSettings, progress: &mut dyn ReadProgress) -> Result<Ingested> {
    // Large batches are cut, so that all threads have something to do; nothing is copied.
    let cut =
        |b: RecordBatch| (0..b.num_rows().div_ceil(BATCH).max(1)).map(move |k| b.slice(k * BATCH, BATCH.min(b.num_rows() - k * BATCH)));
    let batches = batches.into_iter().flat_map(cut).collect();
    let sources = [Source::memory(NAME, Format::Memory, Some(Arc::new(batches)))];
    let as_ = guess::kind(&sources, settings)?;
    guess::check_options(as_, &sources, settings)?;
    let (data, as_) = read_data(&sources, as_, settings, progress)?;
    ingested(data, as_, &sources, settings)
}

/// What a query of [`sql`] with [`WithLedger`](crate::sql::Answer::WithLedger) gave: columns `from, to, count, rows, left_out`.
pub fn from_counted(batches: Vec<RecordBatch>, settings: &InputSettings) -> Result<Ingested> {
    let as_ = sql::kind(settings)?;
    let counted = sql::Counted::new(settings, as_).read(&batches)?;
    let read_as = format!("counted where the data lie: {}", told::rows(as_, settings));
    Ok(Ingested { hints: counted.hints.clone(), data: Data::Counts(counted), as_, read_as, inputs: Vec::new() })
}

fn ingested(data: Data, as_: As, sources: &[Source], settings: &InputSettings) -> Result<Ingested> {
    let hints = match &data {
        Data::Counts(counted) => counted.hints.clone(),
        Data::Matrix(given) => given.hints.clone(),
        Data::Log(logged) => logged.hints.clone(),
    };
    let read_as = told::line(sources, as_, &data, settings)?;
    Ok(Ingested { data, as_, read_as, inputs: Vec::new(), hints })
}

/// The entries of a matrix by rows, each row sorted or not; zeros are dropped, entries of one place are added up.
pub fn sparse_rows(rows: usize, cols: usize, indptr: &[usize], entry: impl Fn(usize) -> Option<(u32, f64)>) -> Result<Csr> {
    let bad = |sentence: &str| IngestError::new(Code::Npz, sentence).file(NAME).remedy("make it anew, for instance with matrix.tocsr()");
    let stored = indptr.last().copied().unwrap_or(0);
    if indptr.len() != rows + 1 || indptr[0] != 0 || indptr.windows(2).any(|w| w[0] > w[1]) {
        return Err(bad("the row starts (indptr) of this sparse matrix do not fit its rows"));
    }
    let (mut starts, mut indices, mut values) = (Vec::with_capacity(rows + 1), Vec::with_capacity(stored), Vec::with_capacity(stored));
    starts.push(0);
    let mut ascending = true;
    for i in 0..rows {
        let mut last = None;
        for k in indptr[i]..indptr[i + 1] {
            let (j, x) = entry(k)
                .filter(|(j, _)| (*j as usize) < cols)
                .ok_or_else(|| bad("a column number of this sparse matrix lies outside it"))?;
            ascending &= last.is_none_or(|last| last < j);
            last = Some(j);
            if x != 0.0 {
                indices.push(j);
                values.push(x);
            }
        }
        starts.push(indices.len());
    }
    let core = |e| IngestError::from_core(e, Some(NAME));
    if ascending {
        return Csr::from_parts(rows, cols, starts, indices, values).map_err(core);
    }
    let row_of = |k: usize| (starts.partition_point(|s| *s <= k) - 1) as u32;
    let triplets: Vec<(u32, u32, f64)> = indices.iter().zip(&values).enumerate().map(|(k, (&j, &x))| (row_of(k), j, x)).collect();
    Csr::from_triplets(rows, cols, &triplets).map_err(core)
}

/// All entries of a dense matrix: as they are where a transition matrix was asked for, else those that are not zero, as for files.
pub fn dense_rows(mat: Mat, settings: &InputSettings) -> Result<matrix::MatrixValues> {
    if settings.as_ == Some(As::Matrix) {
        return Ok(matrix::MatrixValues::Dense(mat));
    }
    let (d, cols) = (mat.rows(), mat.cols());
    let starts: Vec<usize> = (0..=d).map(|i| i * cols).collect();
    Ok(matrix::MatrixValues::Sparse(sparse_rows(d, cols, &starts, |k| Some(((k % cols) as u32, mat.as_slice()[k])))?))
}
