//! Any table as a stream of column batches: CSV, TSV, JSON lines, Parquet; compressed or not; one file or many.
//!
//! Reading goes in rounds. The calling thread takes the next units in order (pieces of text, row groups of Parquet), all threads
//! decode them, and the results are folded in the order of the units, so that nothing depends on the number of threads.

mod csv;
mod jsonl;
mod lines;
mod memory;
mod pages;
mod parquet;

pub use csv::csv_records;
pub(crate) use parquet::check_file as check_parquet;

use arrow::array::{ArrayRef, BooleanArray};
use metastate::{Ledger, LedgerUnit};
use rayon::prelude::*;

use crate::codes::Code;
use crate::error::{IngestError, Result, did_you_mean};
use crate::progress::{Phase, ReadProgress, tell};
use crate::settings::{Delimiter, TextTable};
use crate::source::{Format, Source};

/// Text is cut into pieces of about this size.
const PIECE: usize = 2 << 20;
/// Rows of Parquet decoded in one round, for each thread.
const ROUND_ROWS: u64 = 2 << 20;

/// Rows of the wanted columns. Text formats give texts; Parquet gives its own types.
pub(crate) struct Batch<'a> {
    /// The file's name.
    pub file: &'a str,
    /// One array for each wanted column, in that order.
    pub columns: Vec<ArrayRef>,
    /// Where each row stands.
    pub places: Places,
    /// Number of rows.
    pub rows: usize,
}

/// Line or row numbers, from 1.
pub(crate) struct Places {
    pub lines: bool,
    pub numbers: Numbers,
}

pub(crate) enum Numbers {
    From(u64),
    List(Vec<u64>),
}

impl Places {
    pub fn number(&self, i: usize) -> u64 {
        match &self.numbers {
            Numbers::From(first) => first + i as u64,
            Numbers::List(list) => list.get(i).copied().unwrap_or(0),
        }
    }
}

impl Batch<'_> {
    /// Puts file, line or row, and column to an error about row `i`.
    pub fn at(&self, error: IngestError, i: usize, column: &str) -> IngestError {
        let n = self.places.number(i);
        let error = error.file(self.file).column(column);
        if self.places.lines { error.line(n) } else { error.row(n) }
    }

    /// "file, line 7", for the ledger.
    pub fn describe(&self, i: usize) -> String {
        format!("{}, {} {}", self.file, if self.places.lines { "line" } else { "row" }, self.places.number(i))
    }

    /// Puts row `i` into the ledger. Its place is written down only while the entry has room for examples.
    pub fn leave_out(&self, ledger: &mut Ledger, reason: &str, unit: LedgerUnit, weight: f64, i: usize) {
        ledger.add(reason, unit, 1, weight, std::iter::once_with(|| self.describe(i)));
    }

    /// Only the rows where `keep` is true.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        let columns = self
            .columns
            .iter()
            .map(|c| arrow::compute::filter(c, keep).map_err(|e| IngestError::new(Code::Type, e.to_string()).file(self.file)))
            .collect::<Result<Vec<_>>>()?;
        let list: Vec<u64> = (0..self.rows).filter(|&i| keep.value(i)).map(|i| self.places.number(i)).collect();
        let rows = list.len();
        Ok(Batch { file: self.file, columns, places: Places { lines: self.places.lines, numbers: Numbers::List(list) }, rows })
    }
}

/// A set of files with the columns wanted from each.
pub(crate) struct Tables<'a> {
    sources: &'a [Source],
    wanted: Vec<String>,
    files: Vec<TableFile>,
    /// The text file being read, if any.
    reading: Option<lines::Pieces>,
    next_file: usize,
    next_group: usize,
    bytes_before: u64,
    /// Things worth telling, such as a delimiter that was found out.
    pub hints: Vec<String>,
}

enum TableFile {
    Csv(csv::Layout),
    Json(jsonl::Layout),
    Parquet(parquet::Layout),
    Memory(memory::Layout),
}

/// A piece of work for one thread.
pub(crate) struct ReadUnit {
    file: usize,
    rows: u64,
    kind: UnitKind,
}

enum UnitKind {
    Text { data: Vec<u8>, first_line: u64 },
    Group(usize),
}

impl<'a> Tables<'a> {
    /// Reads all headers and footers, so that a missing column is told before the work begins.
    pub fn open(sources: &'a [Source], wanted: &[String], unpack_limit: u64, text: &TextTable) -> Result<Self> {
        let mut hints = Vec::new();
        let mut files = Vec::with_capacity(sources.len());
        for source in sources {
            files.push(match source.format {
                Format::Csv | Format::Tsv | Format::Unknown | Format::Text => {
                    TableFile::Csv(csv::Layout::open(source, wanted, text, &mut hints)?)
                }
                Format::JsonLines => TableFile::Json(jsonl::Layout::open(source, wanted)?),
                Format::Parquet => TableFile::Parquet(parquet::Layout::open(source, wanted, unpack_limit)?),
                Format::Memory => TableFile::Memory(memory::Layout::open(source, wanted)?),
                Format::Npy | Format::Npz | Format::Mtx => {
                    return Err(IngestError::new(Code::Format, "this is a matrix file, where a table with named columns is needed")
                        .file(&source.name)
                        .remedy("use --as counts or --as matrix, or give a csv, tsv, jsonl or parquet file"));
                }
            });
        }
        let wanted = wanted.to_vec();
        Ok(Tables { sources, wanted, files, reading: None, next_file: 0, next_group: 0, bytes_before: 0, hints })
    }

    /// The names of all columns of one source, as far as its first lines tell.
    pub fn columns_of(source: &Source, unpack_limit: u64, text: &TextTable) -> Result<Vec<String>> {
        match source.format {
            Format::JsonLines => Ok(jsonl::Layout::open(source, &[])?.names),
            Format::Parquet => Ok(parquet::Layout::open(source, &[], unpack_limit)?.names),
            Format::Memory => Ok(memory::Layout::open(source, &[])?.names),
            _ => Ok(csv::Layout::open(source, &[], text, &mut Vec::new())?.names),
        }
    }

    /// What the rows and columns of one source are made of, in words.
    pub fn layout_of(source: &Source, unpack_limit: u64, text: &TextTable) -> Result<String> {
        Ok(match source.format {
            Format::JsonLines => "JSON lines".to_owned(),
            Format::Parquet => {
                parquet::Layout::open(source, &[], unpack_limit)?;
                "Parquet".to_owned()
            }
            Format::Memory => "a table in memory".to_owned(),
            _ => {
                let layout = csv::Layout::open(source, &[], text, &mut Vec::new())?;
                let names = match (text.no_header, text.columns.is_empty()) {
                    (false, true) => "columns named by the first line",
                    (true, true) => "no header, columns numbered",
                    (_, false) => "columns named by --columns",
                };
                format!("text separated by {}, {names}", Delimiter::of(layout.delimiter).name())
            }
        })
    }

    /// The footer entry `key` of a Parquet source.
    pub fn footer_entry(source: &Source, key: &str, unpack_limit: u64) -> Result<Option<String>> {
        parquet::Layout::open(source, &[], unpack_limit).map(|layout| layout.entry(key))
    }

    /// Decodes everything: `map` runs on all threads, once a unit; `fold` takes the results in order on this one.
    pub fn scan<T: Send>(
        &mut self,
        progress: &mut dyn ReadProgress,
        map: impl Fn(&mut dyn FnMut(&mut Visitor<'_>) -> Result<()>, usize) -> Result<T> + Sync,
        mut fold: impl FnMut(Vec<T>) -> Result<()>,
    ) -> Result<u64> {
        let total: u64 = self.sources.iter().map(|s| s.bytes).sum();
        let mut rows = 0;
        loop {
            let round = self.next_round()?;
            if round.is_empty() {
                break;
            }
            // Only what all threads may look at: the open text file is this thread's own.
            let decoder = Decoder { sources: self.sources, wanted: &self.wanted, files: &self.files };
            let done: Vec<Result<(T, u64)>> = round
                .into_par_iter()
                .map(|unit| {
                    let mut seen = 0u64;
                    let result = map(
                        &mut |visit| {
                            decoder.decode(&unit, &mut |batch| {
                                seen += batch.rows as u64;
                                visit(batch)
                            })
                        },
                        unit.file,
                    )?;
                    Ok((result, seen))
                })
                .collect();
            let mut results = Vec::with_capacity(done.len());
            for one in done {
                let (result, seen) = one?;
                rows += seen;
                results.push(result);
            }
            fold(results)?;
            let bytes = self.bytes_before + self.reading.as_ref().map_or(0, lines::Pieces::position);
            tell(progress, Phase::Reading, rows, bytes.min(total), total)?;
        }
        for (file, source) in self.files.iter().zip(self.sources) {
            if let TableFile::Json(layout) = file {
                layout.check_seen(source, &self.wanted)?;
            }
        }
        Ok(rows)
    }

    /// The next units: one to four pieces of text a thread, or row groups of about [`ROUND_ROWS`] rows a thread.
    fn next_round(&mut self) -> Result<Vec<ReadUnit>> {
        let threads = rayon::current_num_threads() as u64;
        let (mut round, mut rows, mut pieces) = (Vec::new(), 0, 0);
        while rows < ROUND_ROWS * threads && pieces < 2 * threads && self.next_file < self.files.len() {
            let (at, source) = (self.next_file, &self.sources[self.next_file]);
            let mut file_done = false;
            match &self.files[at] {
                grouped @ (TableFile::Parquet(_) | TableFile::Memory(_)) => {
                    let group = match grouped {
                        TableFile::Parquet(layout) => layout.group_rows(self.next_group),
                        TableFile::Memory(layout) => layout.group_rows(self.next_group),
                        _ => None,
                    };
                    if let Some(n) = group {
                        rows += n;
                        round.push(ReadUnit { file: at, rows: n, kind: UnitKind::Group(self.next_group) });
                        self.next_group += 1;
                    } else {
                        file_done = true;
                    }
                }
                text => {
                    if self.reading.is_none() {
                        self.reading = Some(match text {
                            TableFile::Csv(layout) => lines::Pieces::of_table(source, layout.delimiter, layout.header)?,
                            _ => lines::Pieces::plain(source)?,
                        });
                    }
                    let piece = match &mut self.reading {
                        Some(pieces) => pieces.next_piece(source, PIECE)?,
                        None => None,
                    };
                    if let Some((data, first_line)) = piece {
                        pieces += 1;
                        round.push(ReadUnit { file: at, rows: 0, kind: UnitKind::Text { data, first_line } });
                    } else {
                        file_done = true;
                    }
                }
            }
            if file_done {
                self.bytes_before += source.bytes;
                self.reading = None;
                self.next_group = 0;
                self.next_file += 1;
            }
        }
        Ok(round)
    }
}

struct Decoder<'d> {
    sources: &'d [Source],
    wanted: &'d [String],
    files: &'d [TableFile],
}

impl Decoder<'_> {
    fn decode(&self, unit: &ReadUnit, visit: &mut Visitor<'_>) -> Result<()> {
        let source = &self.sources[unit.file];
        match (&self.files[unit.file], &unit.kind) {
            (TableFile::Csv(layout), UnitKind::Text { data, first_line }) => visit(&layout.decode(&source.name, data, *first_line)?),
            (TableFile::Json(layout), UnitKind::Text { data, first_line }) => {
                visit(&layout.decode(&source.name, data, *first_line, self.wanted)?)
            }
            (TableFile::Parquet(layout), UnitKind::Group(group)) => layout.decode(&source.name, *group, unit.rows, visit),
            (TableFile::Memory(layout), UnitKind::Group(group)) => layout.decode(&source.name, *group, visit),
            _ => Ok(()), // units are made by `next_round` from the same list of files
        }
    }
}

/// Sees one batch after the other.
pub(crate) type Visitor<'v> = dyn FnMut(&Batch<'_>) -> Result<()> + 'v;

/// Checks for the file's columns and gives their positions.
fn positions(names: &[String], wanted: &[String], file: &str) -> Result<Vec<usize>> {
    wanted
        .iter()
        .map(|want| {
            let mut found = names.iter().enumerate().filter(|(_, n)| *n == want).map(|(k, _)| k);
            match (found.next(), found.next()) {
                (Some(k), None) => Ok(k),
                (Some(_), Some(_)) => {
                    Err(IngestError::new(Code::Header, format!("two columns are called `{want}`")).file(file).remedy("rename one of them"))
                }
                (None, _) => {
                    Err(IngestError::new(Code::Column, format!("there is no column `{want}`")).file(file).remedy(did_you_mean(want, names)))
                }
            }
        })
        .collect()
}

/// The text of a piece, with the line of the first byte that is not UTF-8 or is NUL.
pub(crate) fn as_text<'d>(data: &'d [u8], first_line: u64, file: &str) -> Result<&'d str> {
    let line_of = |at: usize| first_line + memchr::memchr_iter(b'\n', &data[..at]).count() as u64;
    if let Some(at) = memchr::memchr(0, data) {
        return Err(IngestError::new(Code::Nul, "this line holds a NUL byte, so this is no text file")
            .file(file)
            .line(line_of(at))
            .remedy("check that the file is what its name says and is whole"));
    }
    std::str::from_utf8(data).map_err(|e| {
        let at = e.valid_up_to();
        let bytes = data[at..].iter().take(4).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        IngestError::new(Code::Utf8, "this line is not UTF-8")
            .file(file)
            .line(line_of(at))
            .value(bytes)
            .remedy("convert the file, for instance: iconv -f LATIN1 -t UTF-8")
    })
}
