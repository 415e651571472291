//! Square matrices of counts or of probabilities, from `.npy`, SciPy's `.npz` and MatrixMarket; labels and weights beside them.

use std::io::{BufReader, Read};

use metastate::{Counts, Csr, Label, Mat, StateIndex};

use crate::assemble::CountedStates;
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::machine::available_memory;
use crate::npy::{ElementKind, NpyReader};
use crate::progress::{Phase, ReadProgress, tell};
use crate::settings::{As, InputSettings};
use crate::source::{Format, Source, resolve};
use crate::{mtx, npz};

/// Rows must sum to one within this; the same as the library's own check.
/// Rows of float32 probabilities miss one by this much.
const ROW_SUM_ALLOWED: f64 = 1e-6;
/// Sparse matrices may have some more states than entries, but not any number of them.
const SPARE_STATES: u64 = 1_000_000;

/// What a header says, checked against the file by its reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub rows: u64,
    pub cols: u64,
    pub entries: u64,
    pub dense: bool,
}

/// Takes the entries of a matrix, from 0.
pub(crate) trait Sink {
    fn begin(&mut self, shape: Shape, file: &str) -> Result<()>;
    fn entry(&mut self, row: u64, column: u64, value: f64) -> Result<()>;
    /// Whether all entries may come as one sparse matrix.
    fn takes_whole(&self) -> bool {
        false
    }
    /// All entries, where [`takes_whole`](Sink::takes_whole) says so.
    fn whole(&mut self, entries: Csr) -> Result<()> {
        entries.triplets().try_for_each(|(i, j, x)| self.entry(u64::from(i), u64::from(j), x))
    }
}

/// A transition matrix that was given.
#[derive(Debug, Clone)]
pub struct GivenMatrix {
    /// The probabilities.
    pub values: MatrixValues,
    /// Labels; numbers from 0 unless `--labels` gave others.
    pub index: StateIndex,
    /// Row weights from `--weights`.
    pub weights: Option<Vec<f64>>,
    /// Entries read.
    pub entries: u64,
    /// Things worth telling the user.
    pub hints: Vec<String>,
}

/// As the file had them.
#[derive(Debug, Clone, PartialEq)]
pub enum MatrixValues {
    /// Stored entries only.
    Sparse(Csr),
    /// All entries.
    Dense(Mat),
}

/// What came out of matrix files.
pub(crate) enum Gathered {
    Counts(CountedStates),
    Matrix(GivenMatrix),
}

pub(crate) struct Collector<'s> {
    settings: &'s InputSettings,
    as_: Option<As>,
    d: Option<u64>,
    triplets: Vec<(u32, u32, f64)>,
    dense: Option<Mat>,
    /// Given as a whole, in place of the triplets.
    sparse: Option<Csr>,
    file: String,
    entries: u64,
    /// All values whole, some above one: what counts look like.
    whole: bool,
    above_one: bool,
    /// Whether there is one file only, so that nothing is added to what it holds.
    alone: bool,
}

impl Sink for Collector<'_> {
    fn begin(&mut self, shape: Shape, file: &str) -> Result<()> {
        self.file = file.to_owned();
        let size = |sentence: String, remedy: &str| {
            let value = format!("{} x {}, {} entries", shape.rows, shape.cols, shape.entries);
            Err(IngestError::new(Code::Size, sentence).file(file).value(value).remedy(remedy))
        };
        if shape.rows != shape.cols {
            return size("the matrix is not square".into(), "rows and columns must be the same states");
        }
        if shape.rows == 0 {
            return size("the matrix has no rows".into(), "check how it was written");
        }
        if self.d.is_some_and(|d| d != shape.rows) {
            return size("the matrices have different sizes".into(), "give matrices over the same states, or triplets with labels");
        }
        if !shape.dense && shape.rows > SPARE_STATES + 16 * shape.entries {
            return size("the matrix has far more states than entries".into(), "most states could have no transition; leave them out");
        }
        let d = u128::from(shape.rows);
        let bytes = if shape.dense && self.as_ == Some(As::Matrix) { d * d * 8 } else { u128::from(shape.entries) * 40 + d * 32 };
        let limit = u128::from(self.settings.memory_limit.unwrap_or_else(available_memory));
        if bytes > limit || shape.rows >= u64::from(u32::MAX) - 1 {
            return Err(IngestError::new(
                Code::TooLarge,
                format!("reading this matrix would need about {bytes} bytes, and there is memory for {limit}"),
            )
            .file(file)
            .value(format!("{} x {}", shape.rows, shape.cols))
            .remedy("store it as a sparse matrix, use a machine with more memory, or allow more with a larger --memory-limit"));
        }
        self.d = Some(shape.rows);
        if shape.dense && self.as_ == Some(As::Matrix) {
            self.dense = Some(Mat::zeros(shape.rows as usize, shape.rows as usize));
        }
        Ok(())
    }

    fn entry(&mut self, row: u64, column: u64, value: f64) -> Result<()> {
        self.entries += 1;
        self.look(row, column, value)?;
        match &mut self.dense {
            Some(mat) => mat[(row as usize, column as usize)] = value,
            None if value != 0.0 => self.triplets.push((row as u32, column as u32, value)),
            None => {}
        }
        Ok(())
    }

    fn takes_whole(&self) -> bool {
        self.alone && self.dense.is_none()
    }

    fn whole(&mut self, entries: Csr) -> Result<()> {
        self.entries += entries.nonzeros() as u64;
        for (i, j, x) in entries.triplets() {
            self.look(u64::from(i), u64::from(j), x)?;
        }
        self.sparse = Some(entries);
        Ok(())
    }
}

/// What headers say, where nothing else of a file is to be read.
struct Look(Option<Shape>);

impl Sink for Look {
    fn begin(&mut self, shape: Shape, file: &str) -> Result<()> {
        self.0 = Some(shape);
        // The reader ends here, and the refusal is not told.
        Err(IngestError::new(Code::Read, "only the header is read").file(file))
    }

    fn entry(&mut self, _: u64, _: u64, _: f64) -> Result<()> {
        Ok(())
    }
}

/// The sizes of matrix files by their headers: the states of the largest, the pairs of all together.
pub(crate) fn sizes(sources: &[Source], settings: &InputSettings) -> Result<Sizes> {
    let mut all = Sizes { states: 0, pairs: 0, dense: false, probabilities: settings.as_ == Some(As::Matrix), bytes: 0 };
    for source in sources {
        let mut look = Look(None);
        let refused = match source.format {
            Format::Npy => dense(source, settings, &mut look),
            Format::Npz => npz::read(source, settings.unpack_limit(source.bytes), &mut look),
            _ => mtx::read(source, &mut look),
        };
        let Some(shape) = look.0 else {
            refused?;
            continue;
        };
        all.states = all.states.max(shape.rows).max(shape.cols);
        all.pairs += shape.entries;
        all.dense |= shape.dense;
        all.bytes += source.bytes;
    }
    Ok(all)
}

/// How large matrix files are, as their headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Rows or columns, the larger number.
    pub states: u64,
    /// Stored entries; all of them where the matrix is dense, zeros too.
    pub pairs: u64,
    /// Whether zeros are stored.
    pub dense: bool,
    /// Whether they are said to hold probabilities.
    pub probabilities: bool,
    /// Bytes of the files.
    pub bytes: u64,
}

/// Reads matrices: many are added up when they are counts.
pub(crate) fn read(sources: &[Source], settings: &InputSettings, progress: &mut dyn ReadProgress) -> Result<Gathered> {
    let mut all = Collector { alone: sources.len() == 1, ..Collector::new(settings) };
    let total: u64 = sources.iter().map(|s| s.bytes).sum();
    let mut done = 0;
    for source in sources {
        match source.format {
            Format::Npy => dense(source, settings, &mut all)?,
            Format::Npz => npz::read(source, settings.unpack_limit(source.bytes), &mut all)?,
            Format::Mtx => mtx::read(source, &mut all)?,
            _ => {
                return Err(IngestError::new(Code::Format, "a matrix must be a .npy, .npz or .mtx file")
                    .file(&source.name)
                    .remedy("tables of from, to and count are read with --as counts"));
            }
        }
        done += source.bytes;
        tell(progress, Phase::Reading, all.entries, done, total)?;
    }
    let file = sources[0].name.as_str();
    let index = labels(settings, all.d.unwrap_or(0), file)?;
    match all.kind(file)? {
        As::Matrix if sources.len() > 1 => {
            Err(IngestError::new(Code::Option, "several transition matrices are named").file(file).remedy("give one, or give counts"))
        }
        _ => all.finish(settings, index, None, file),
    }
}

/// A dense `.npy` in either memory order.
fn dense(source: &Source, settings: &InputSettings, sink: &mut dyn Sink) -> Result<()> {
    let file = source.seekable(settings.unpack_limit(source.bytes))?;
    let handle = BufReader::new(file.open().map_err(|e| source.read_error(e))?);
    let mut reader = NpyReader::open(handle, file.bytes, &source.name)?;
    let header = reader.header.clone();
    let [rows, cols] = header.shape[..] else {
        return Err(IngestError::new(Code::Size, "a matrix has two dimensions")
            .file(&source.name)
            .value(format!("{:?}", header.shape))
            .remedy("one-dimensional arrays of states are read with --as trajectories"));
    };
    if matches!(header.kind, ElementKind::Bytes | ElementKind::Unicode) {
        return Err(IngestError::new(Code::Npy, "a matrix of numbers is needed, this array holds texts").file(&source.name));
    }
    sink.begin(Shape { rows, cols, entries: header.elements(), dense: true }, &source.name)?;
    let (mut chunk, mut at) = (Vec::new(), 0u64);
    while reader.numbers(1 << 13, &mut chunk)? {
        for value in chunk.drain(..) {
            let (i, j) = if header.fortran { (at % rows, at / rows) } else { (at / cols, at % cols) };
            sink.entry(i, j, value)?;
            at += 1;
        }
    }
    Ok(())
}

impl<'s> Collector<'s> {
    pub fn new(settings: &'s InputSettings) -> Self {
        Collector {
            settings,
            as_: settings.as_,
            d: None,
            triplets: Vec::new(),
            dense: None,
            sparse: None,
            file: String::new(),
            entries: 0,
            whole: true,
            above_one: false,
            alone: false,
        }
    }

    /// A matrix as a whole, with the checks that entries get one by one.
    pub fn take(&mut self, values: MatrixValues, entries: u64, file: &str) -> Result<()> {
        let (rows, cols, dense) = match &values {
            MatrixValues::Sparse(csr) => (csr.rows(), csr.cols(), false),
            MatrixValues::Dense(mat) => (mat.rows(), mat.cols(), true),
        };
        let shape = Shape { rows: rows as u64, cols: cols as u64, entries, dense };
        self.begin(shape, file)?;
        self.entries = entries;
        match values {
            MatrixValues::Sparse(csr) => {
                for (i, j, x) in csr.triplets() {
                    self.look(u64::from(i), u64::from(j), x)?;
                }
                self.sparse = Some(csr);
            }
            MatrixValues::Dense(mat) => {
                for i in 0..rows {
                    for (j, &x) in mat.row(i).iter().enumerate() {
                        self.look(i as u64, j as u64, x)?;
                    }
                }
                self.dense = Some(mat);
            }
        }
        Ok(())
    }

    /// Checks a value and remembers what kind it is.
    fn look(&mut self, row: u64, column: u64, value: f64) -> Result<()> {
        if !value.is_finite() || value < 0.0 {
            let (code, what) = if value.is_finite() { (Code::Negative, "zero or more") } else { (Code::NotFinite, "finite") };
            return Err(IngestError::new(code, format!("every entry must be {what}"))
                .file(&self.file)
                .row(row + 1)
                .column((column + 1).to_string())
                .value(value.to_string())
                .remedy("correct the matrix"));
        }
        self.whole &= value.fract() == 0.0;
        self.above_one |= value > 1.0;
        Ok(())
    }

    /// Counts or a transition matrix. `weights` are those of the rows, where they do not come from a file.
    pub fn finish(self, settings: &InputSettings, index: StateIndex, weights: Option<Vec<f64>>, file: &str) -> Result<Gathered> {
        match self.kind(file)? {
            As::Matrix => self.into_matrix(settings, index, weights, file).map(Gathered::Matrix),
            _ if weights.is_some() => Err(IngestError::new(Code::Option, "weights were given, and the matrix holds counts")
                .file(file)
                .remedy("leave the weights out, or say that it is a transition matrix")),
            _ => self.into_counts(index, file).map(Gathered::Counts),
        }
    }

    /// What was asked for; else what the values can only be.
    fn kind(&self, file: &str) -> Result<As> {
        match self.as_ {
            Some(as_ @ (As::Counts | As::Matrix)) => return Ok(as_),
            Some(other) => {
                return Err(IngestError::new(Code::Format, format!("a matrix file cannot be read as {}", other.name()))
                    .file(file)
                    .remedy("use --as counts or --as matrix"));
            }
            None => {}
        }
        if self.whole && self.above_one {
            return Ok(As::Counts);
        }
        if !self.whole && self.row_sums().iter().all(|s| (s - 1.0).abs() <= ROW_SUM_ALLOWED) {
            return Ok(As::Matrix);
        }
        Err(IngestError::new(Code::As, "this could be counts or a transition matrix").file(file).remedy("say --as counts or --as matrix"))
    }

    fn row_sums(&self) -> Vec<f64> {
        let d = self.d.unwrap_or(0) as usize;
        match (&self.dense, &self.sparse) {
            (Some(mat), _) => (0..d).map(|i| mat.row(i).iter().sum()).collect(),
            (None, Some(csr)) => (0..d).map(|i| csr.row(i).1.iter().sum()).collect(),
            (None, None) => {
                let mut sums = vec![0.0; d];
                self.triplets.iter().for_each(|&(i, _, x)| sums[i as usize] += x);
                sums
            }
        }
    }

    fn into_counts(self, index: StateIndex, file: &str) -> Result<CountedStates> {
        let core = |e| IngestError::from_core(e, Some(file));
        if self.sparse.as_ref().map_or(self.triplets.len(), Csr::nonzeros) == 0 {
            return Err(IngestError::new(Code::NothingLeft, "every count is zero").file(file).remedy("check how the matrix was written"));
        }
        if index.len() == 1 {
            return Err(core(metastate::Error::OneState { label: index.label(0).to_string() }));
        }
        let counts = match self.sparse {
            Some(csr) => Counts::from_csr(index, csr),
            None => Counts::from_triplets(index, &self.triplets),
        }
        .map_err(core)?;
        Ok(CountedStates {
            counts,
            coordinates: None,
            cell: None,
            rows: self.entries,
            kept: self.entries,
            hints: Vec::new(),
            frames: None,
            second: None,
        })
    }

    fn into_matrix(self, settings: &InputSettings, index: StateIndex, given: Option<Vec<f64>>, file: &str) -> Result<GivenMatrix> {
        let sums = self.row_sums();
        if let Some(i) = sums.iter().position(|s| (s - 1.0).abs() > ROW_SUM_ALLOWED) {
            return Err(IngestError::new(Code::RowSum, format!("row {} of the transition matrix does not sum to 1", i + 1))
                .file(file)
                .value(sums[i].to_string())
                .remedy("normalise the rows, or give the matrix as counts with --as counts"));
        }
        let d = sums.len();
        let core = |e| IngestError::from_core(e, Some(file));
        if d == 1 {
            return Err(core(metastate::Error::OneState { label: index.label(0).to_string() }));
        }
        let from_file = settings.weights.as_ref().map(|path| weights(path, d as u64, settings)).transpose()?;
        let weights = given.or(from_file);
        let values = match (self.dense, self.sparse) {
            (Some(mat), _) => MatrixValues::Dense(mat),
            (None, Some(csr)) => MatrixValues::Sparse(csr),
            (None, None) => MatrixValues::Sparse(Csr::from_triplets(d, d, &self.triplets).map_err(core)?),
        };
        Ok(GivenMatrix { values, index, weights, entries: self.entries, hints: Vec::new() })
    }
}

/// Opens a file that stands beside a matrix.
fn beside(path: &str) -> Result<Source> {
    let mut one = resolve(std::slice::from_ref(&path.to_owned()))?;
    match (one.pop(), one.is_empty()) {
        (Some(source), true) => Ok(source),
        _ => Err(IngestError::new(Code::Option, "several files match, one is needed").file(path)),
    }
}

/// One line each, without the empty last one; at most `most` lines and a million bytes a line on average.
fn lines_of(source: &Source, most: u64) -> Result<Vec<String>> {
    let mut text = Vec::new();
    let limit = most.saturating_mul(1 << 10).saturating_add(1 << 20);
    source.open()?.take(limit + 1).read_to_end(&mut text).map_err(|e| source.read_error(e))?;
    if text.len() as u64 > limit {
        return Err(IngestError::new(Code::Labels, "this file is far too long for so few states")
            .file(&source.name)
            .value(format!("{most} states")));
    }
    let text = crate::table::as_text(&text, 1, &source.name)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(text.lines().map(str::to_owned).collect())
}

fn labels(settings: &InputSettings, d: u64, file: &str) -> Result<StateIndex> {
    let Some(path) = &settings.labels else { return Ok(StateIndex::numbered(d as usize)) };
    let source = beside(path)?;
    let lines = lines_of(&source, d)?;
    if lines.len() as u64 != d {
        return Err(IngestError::new(Code::Labels, format!("there are {} labels for the {d} states of {file}", lines.len()))
            .file(path)
            .remedy("write one label a line, without a header"));
    }
    if let Some(empty) = lines.iter().position(String::is_empty) {
        return Err(IngestError::new(Code::Labels, "this label is empty").file(path).line(empty as u64 + 1).remedy("name every state"));
    }
    StateIndex::from_labels(lines.into_iter().map(Label::from).collect()).map_err(|e| IngestError::from_core(e, Some(path)))
}

fn weights(path: &str, d: u64, settings: &InputSettings) -> Result<Vec<f64>> {
    let source = beside(path)?;
    let mut values = Vec::new();
    if source.format == Format::Npy {
        let file = source.seekable(settings.unpack_limit(source.bytes))?;
        let handle = BufReader::new(file.open().map_err(|e| source.read_error(e))?);
        let mut reader = NpyReader::open(handle, file.bytes, path)?;
        while reader.numbers(1 << 13, &mut values)? {}
    } else {
        for (k, line) in lines_of(&source, d)?.iter().enumerate() {
            values.push(line.trim().parse().map_err(|_| {
                IngestError::new(Code::Number, "this is not a number")
                    .file(path)
                    .line(k as u64 + 1)
                    .value(line.as_str())
                    .remedy("write one weight a line")
            })?);
        }
    }
    if values.len() as u64 != d {
        return Err(IngestError::new(Code::Size, format!("there are {} weights for {d} states", values.len()))
            .file(path)
            .remedy("give one weight a state"));
    }
    if let Some(k) = values.iter().position(|w| !w.is_finite() || *w < 0.0) {
        let code = if values[k].is_finite() { Code::Negative } else { Code::NotFinite };
        return Err(IngestError::new(code, "every weight must be finite and zero or more")
            .file(path)
            .row(k as u64 + 1)
            .value(values[k].to_string())
            .remedy("correct the weights"));
    }
    if values.iter().all(|w| *w == 0.0) {
        return Err(IngestError::new(Code::NothingLeft, "all weights are zero")
            .file(path)
            .remedy("correct the weights, or leave --weights out"));
    }
    Ok(values)
}
