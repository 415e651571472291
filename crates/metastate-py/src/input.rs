//! What Python hands over: arrays and tables where they lie, trajectories, names of files.

use std::ptr::NonNull;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchReader, StringArray};
use arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use metastate::{Label, Mat};
use metastate_ingest::memory::{self, MemoryMatrix, Walk};
use metastate_ingest::{Ingested, MatrixValues, ReadProgress};
use metastate_tasks::args::InputArgs;
use metastate_tasks::data;
use metastate_tasks::error::{CliError, Result};
use metastate_tasks::inputs;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyTuple};

/// A NumPy array's memory, kept alive by a reference to it. It is not copied: an array must not be written to while a fit reads it, as with
/// every function of NumPy.
struct Borrowed<T> {
    start: NonNull<T>,
    length: usize,
    _keep: Py<PyAny>,
}

// SAFETY: plain numbers, read only; the reference is given back through PyO3, which waits for the interpreter.
unsafe impl<T: Send + Sync> Send for Borrowed<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Borrowed<T> {}

impl<T: Element> Borrowed<T> {
    fn list(array: &Bound<'_, PyArray1<T>>) -> PyResult<Self> {
        let start = nonnull(array.data());
        if !array.is_contiguous() || !start.as_ptr().is_aligned() {
            return Err(PyTypeError::new_err("a contiguous and aligned array is needed"));
        }
        Ok(Borrowed { start, length: array.len(), _keep: array.clone().into_any().unbind() })
    }
}

impl<T> Borrowed<T> {
    fn slice(&self) -> &[T] {
        // SAFETY: the array is contiguous and aligned (checked above), as long as `length`, and kept alive.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

fn nonnull<T>(start: *mut T) -> NonNull<T> {
    // Empty arrays may have no memory at all.
    NonNull::new(start).unwrap_or(NonNull::dangling())
}

/// Numbers of any type that NumPy users count with.
enum NumpyNumbers {
    F64(Borrowed<f64>),
    F32(Borrowed<f32>),
    I64(Borrowed<i64>),
    I32(Borrowed<i32>),
    U32(Borrowed<u32>),
}

impl NumpyNumbers {
    fn new(any: &Bound<'_, PyAny>) -> PyResult<Self> {
        macro_rules! try_type {
            ($($variant:ident, $type:ty);+) => {
                $(if let Ok(array) = any.cast::<PyArray1<$type>>() {
                    return Ok(NumpyNumbers::$variant(Borrowed::list(array)?));
                })+
            };
        }
        try_type!(F64, f64; F32, f32; I64, i64; I32, i32; U32, u32);
        Err(PyTypeError::new_err("an array of float64, float32, int64, int32 or uint32 is needed"))
    }

    fn len(&self) -> usize {
        match self {
            NumpyNumbers::F64(b) => b.length,
            NumpyNumbers::F32(b) => b.length,
            NumpyNumbers::I64(b) => b.length,
            NumpyNumbers::I32(b) => b.length,
            NumpyNumbers::U32(b) => b.length,
        }
    }

    #[inline]
    fn float(&self, k: usize) -> f64 {
        match self {
            NumpyNumbers::F64(b) => b.slice()[k],
            NumpyNumbers::F32(b) => f64::from(b.slice()[k]),
            NumpyNumbers::I64(b) => b.slice()[k] as f64,
            NumpyNumbers::I32(b) => f64::from(b.slice()[k]),
            NumpyNumbers::U32(b) => f64::from(b.slice()[k]),
        }
    }

    /// As a place in an array; nothing below zero is one.
    #[inline]
    fn place(&self, k: usize) -> Option<usize> {
        match self {
            NumpyNumbers::I64(b) => usize::try_from(b.slice()[k]).ok(),
            NumpyNumbers::I32(b) => usize::try_from(b.slice()[k]).ok(),
            NumpyNumbers::U32(b) => Some(b.slice()[k] as usize),
            _ => None,
        }
    }
}

/// The three arrays of SciPy's format.
pub struct Sparse {
    rows: usize,
    cols: usize,
    indptr: NumpyNumbers,
    indices: NumpyNumbers,
    data: NumpyNumbers,
}

impl Sparse {
    fn new(parts: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let at = |k: usize| parts.get_item(k);
        Ok(Sparse {
            indptr: NumpyNumbers::new(&at(1)?)?,
            indices: NumpyNumbers::new(&at(2)?)?,
            data: NumpyNumbers::new(&at(3)?)?,
            rows: at(4)?.extract()?,
            cols: at(5)?.extract()?,
        })
    }

    /// The entries, rows and columns in their order.
    pub fn csr(&self) -> Result<metastate::Csr> {
        let starts: Vec<usize> = (0..self.indptr.len()).map(|k| self.indptr.place(k).unwrap_or(usize::MAX)).collect();
        let stored = self.indices.len().min(self.data.len());
        let entry = |k: usize| (k < stored).then(|| Some((u32::try_from(self.indices.place(k)?).ok()?, self.data.float(k)))).flatten();
        if starts.last().is_some_and(|last| *last > stored) {
            return Err(CliError::bad("E-INGEST-NPZ", "this sparse matrix has fewer entries than its row starts say").at(memory::NAME));
        }
        Ok(memory::sparse_rows(self.rows, self.cols, &starts, entry)?)
    }
}

enum OwnWalk {
    Numbers(Borrowed<i64>),
    Names(Vec<String>),
}

enum Payload {
    Files,
    Sparse(Sparse),
    Dense(Mat),
    Walks(Vec<OwnWalk>),
    Table(Vec<RecordBatch>),
    /// What an engine gave for the query of [`options::count_sql`](crate::options::count_sql).
    Counted(Vec<RecordBatch>),
}

/// What `_data.recognise` hands over: the data in a form that the reader takes, with the labels and weights of their states.
#[derive(FromPyObject)]
pub struct Recognised<'py> {
    payload: Bound<'py, PyTuple>,
    labels: Option<Vec<Bound<'py, PyAny>>>,
    weights: Option<Vec<f64>>,
}

impl Recognised<'_> {
    /// For work that asks for no weights.
    pub fn without_weights(self) -> Self {
        Recognised { weights: None, ..self }
    }

    /// For work that asks for neither labels nor weights.
    pub fn alone(self) -> Self {
        Recognised { labels: None, weights: None, ..self }
    }
}

/// Data from Python, ready to be read on any thread.
pub struct Input {
    payload: Payload,
    labels: Option<Vec<Label>>,
    weights: Option<Vec<f64>>,
    /// Names of files, when that is what was given.
    pub files: Vec<String>,
}

impl Input {
    /// From a tuple whose first item says what follows.
    pub fn new(recognised: Recognised<'_>) -> PyResult<Self> {
        let Recognised { payload: given, labels, weights } = recognised;
        let kind: String = given.get_item(0)?.extract()?;
        let mut files = Vec::new();
        let payload = match kind.as_str() {
            "files" => {
                files = given.get_item(1)?.extract()?;
                Payload::Files
            }
            "sparse" => Payload::Sparse(Sparse::new(&given)?),
            "dense" => Payload::Dense(dense(&given.get_item(1)?)?),
            "walks" => Payload::Walks(given.get_item(1)?.try_iter()?.map(|w| walk(&w?)).collect::<PyResult<_>>()?),
            "arrow" => Payload::Table(arrow_stream(&given.get_item(1)?)?),
            "counted" => Payload::Counted(arrow_stream(&given.get_item(1)?)?),
            "columns" => Payload::Table(vec![columns(given.get_item(1)?.cast::<PyDict>()?)?]),
            other => return Err(PyTypeError::new_err(format!("no data are of the kind {other}"))),
        };
        let labels = labels.map(|list| list.iter().map(label).collect::<PyResult<_>>()).transpose()?;
        Ok(Input { payload, labels, weights, files })
    }

    /// Reads the data as the options say.
    pub fn ingest(self, options: &InputArgs, keep_frames: bool, progress: &mut dyn ReadProgress) -> Result<Ingested> {
        let mut settings = inputs::settings(options)?;
        settings.keep_frames = keep_frames;
        let matrix = |values: MatrixValues, entries: u64| MemoryMatrix { values, entries, labels: self.labels, weights: self.weights };
        Ok(match self.payload {
            Payload::Files => return data::ingest(options, keep_frames, progress),
            Payload::Sparse(sparse) => {
                let (csr, entries) = (sparse.csr()?, sparse.data.len() as u64);
                drop(sparse);
                memory::from_matrix(matrix(MatrixValues::Sparse(csr), entries), &settings)?
            }
            Payload::Dense(mat) => {
                let entries = mat.as_slice().len() as u64;
                memory::from_matrix(matrix(memory::dense_rows(mat, &settings)?, entries), &settings)?
            }
            Payload::Walks(walks) => {
                let each = walks.iter().map(|w| match w {
                    OwnWalk::Numbers(b) => Walk::Numbers(b.slice()),
                    OwnWalk::Names(list) => Walk::Names(list),
                });
                memory::from_trajectories(each, &settings, progress)?
            }
            Payload::Table(batches) => memory::from_batches(batches, &settings, progress)?,
            Payload::Counted(batches) => memory::from_counted(batches, &settings)?,
        })
    }

    /// The entries of a matrix of any shape, for states that were not in the fit.
    pub fn rows(&self) -> Result<metastate::Csr> {
        match &self.payload {
            Payload::Sparse(sparse) => sparse.csr(),
            Payload::Dense(mat) => {
                let starts: Vec<usize> = (0..=mat.rows()).map(|i| i * mat.cols()).collect();
                Ok(memory::sparse_rows(mat.rows(), mat.cols(), &starts, |k| Some(((k % mat.cols()) as u32, mat.as_slice()[k])))?)
            }
            _ => Err(CliError::bad("E-CLI-ARGUMENT", "a matrix is needed, one row for each state")),
        }
    }
}

fn label(any: &Bound<'_, PyAny>) -> PyResult<Label> {
    if let Ok(n) = any.extract::<i64>() {
        return Ok(Label::Integer(n));
    }
    Ok(Label::from(any.str()?.to_cow()?.as_ref()))
}

fn dense(any: &Bound<'_, PyAny>) -> PyResult<Mat> {
    let array = any.cast::<PyArray2<f64>>()?;
    let view = array.readonly();
    let (rows, cols) = (view.shape()[0], view.shape()[1]);
    let view = view.as_array();
    Ok(Mat::from_fn(rows, cols, |i, j| view[(i, j)]))
}

fn walk(any: &Bound<'_, PyAny>) -> PyResult<OwnWalk> {
    match any.cast::<PyArray1<i64>>() {
        Ok(array) => Ok(OwnWalk::Numbers(Borrowed::list(array)?)),
        Err(_) => Ok(OwnWalk::Names(any.extract()?)),
    }
}

/// Takes the batches of an Arrow C stream, without copying them.
fn arrow_stream(any: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    let capsule = any.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule is of the Arrow C stream interface, as its name says; `from_raw` moves the stream out and leaves an
    // empty one behind, which the capsule may release again.
    let mut reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(|e| PyTypeError::new_err(e.to_string()))?;
    let schema = reader.schema();
    let mut batches = Vec::new();
    for batch in reader.by_ref() {
        batches.push(batch.map_err(|e| PyTypeError::new_err(e.to_string()))?);
    }
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema));
    }
    Ok(batches)
}

fn columns(dict: &Bound<'_, PyDict>) -> PyResult<RecordBatch> {
    let mut named: Vec<(String, ArrayRef)> = Vec::new();
    for (name, values) in dict.iter() {
        let array: ArrayRef = if let Ok(list) = values.cast::<PyArray1<i64>>() {
            std::sync::Arc::new(Int64Array::from(list.readonly().as_array().to_vec()))
        } else if let Ok(list) = values.cast::<PyArray1<f64>>() {
            std::sync::Arc::new(Float64Array::from(list.readonly().as_array().to_vec()))
        } else if let Ok(list) = values.cast::<PyArray1<bool>>() {
            std::sync::Arc::new(BooleanArray::from(list.readonly().as_array().to_vec()))
        } else {
            std::sync::Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?))
        };
        named.push((name.extract()?, array));
    }
    RecordBatch::try_from_iter_with_nullable(named.into_iter().map(|(n, a)| (n, a, true))).map_err(|e| PyTypeError::new_err(e.to_string()))
}
