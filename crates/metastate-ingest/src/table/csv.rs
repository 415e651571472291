//! Text with a delimiter. Every field is read as text: no type is guessed from the first rows only to fail on a later one.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};
use memchr::memchr;

use super::lines::{Pieces, quoted_end};
use super::{Batch, Numbers, Places, as_text, positions};
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::settings::{Delimiter, TextTable};
use crate::source::{Format, Source};

/// Stands for any number of blanks and tabs.
const BLANKS: u8 = b' ';

/// What the header says.
pub(super) struct Layout {
    pub delimiter: u8,
    /// Whether the first line names the columns.
    pub header: bool,
    pub names: Vec<String>,
    /// For each field, which wanted columns it fills (one at most: wanted columns are distinct).
    slots: Vec<Option<usize>>,
    wanted: usize,
}

impl Layout {
    /// Reads the header; finds the delimiter when neither the user nor the name of the file tells it.
    pub fn open(source: &Source, wanted: &[String], given: &TextTable, hints: &mut Vec<String>) -> Result<Self> {
        let mut pieces = Pieces::plain(source)?;
        let Some((raw, line)) = pieces.header(source)? else {
            return Err(IngestError::new(Code::EmptyFile, "this file holds no rows").file(&source.name).remedy("check how it was written"));
        };
        let header = as_text(&raw, line, &source.name)?.trim_end_matches(['\n', '\r']);
        if header.contains('\r') {
            return Err(IngestError::new(Code::Header, "the lines end in carriage returns alone (old Macintosh style)")
                .file(&source.name)
                .line(line)
                .remedy("convert them: tr '\\r' '\\n'"));
        }
        // The columns that the first line must have, where it names them.
        let named = if given.no_header || !given.columns.is_empty() { &[] } else { wanted };
        let (delimiter, first) = match (given.delimiter, source.format) {
            (Some(delimiter), _) => (delimiter.byte(), split(header, delimiter.byte(), line, &source.name)?),
            (None, Format::Tsv) => (b'\t', split(header, b'\t', line, &source.name)?),
            (None, format) => sniff(header, named, format != Format::Csv, line, &source.name)?,
        };
        if delimiter != b',' && source.format == Format::Csv && given.delimiter.is_none() {
            hints.push(format!("{} is separated by {}, as its first line shows", source.name, Delimiter::of(delimiter).name()));
        }
        let names = column_names(given, first, line, &source.name)?;
        let mut slots = vec![None; names.len()];
        let found = positions(&names, wanted, &source.name).map_err(|e| without_header(e, &names, given))?;
        for (slot, k) in found.into_iter().enumerate() {
            slots[k] = Some(slot);
        }
        if !given.no_header && pieces.next_piece(source, 1)?.is_none() {
            return Err(IngestError::new(Code::EmptyFile, "this file holds a header and no rows")
                .file(&source.name)
                .remedy("check how it was written"));
        }
        Ok(Layout { delimiter, header: !given.no_header, names, slots, wanted: wanted.len() })
    }

    /// The wanted columns of a piece.
    pub fn decode<'a>(&self, file: &'a str, data: &[u8], first_line: u64) -> Result<Batch<'a>> {
        let text = as_text(data, first_line, file)?;
        let rows = data.len() / 16;
        let mut columns: Vec<StringBuilder> = (0..self.wanted).map(|_| StringBuilder::with_capacity(rows, 0)).collect();
        let mut lines = Vec::with_capacity(rows);
        let mut records = CsvRecords { text, at: 0, line: first_line, delimiter: self.delimiter, file };
        while let Some(line) = records.begin() {
            let mut field = 0;
            loop {
                let (value, last) = records.field()?;
                if let Some(Some(slot)) = self.slots.get(field) {
                    // An empty field is a missing value, quoted or not.
                    columns[*slot].append_option(Some(value.as_ref()).filter(|v| !v.is_empty()));
                }
                field += 1;
                if last {
                    break;
                }
            }
            if field != self.slots.len() {
                return Err(IngestError::new(
                    Code::Ragged,
                    format!(
                        "this row has {field} fields, the {} has {}",
                        if self.header { "header" } else { "first row" },
                        self.slots.len()
                    ),
                )
                .file(file)
                .line(line)
                .value(text[records.start_of(line, first_line)..].lines().next().unwrap_or(""))
                .remedy("quote fields that hold the delimiter, or correct the row"));
            }
            lines.push(line);
        }
        let columns = columns.into_iter().map(|mut b| Arc::new(b.finish()) as ArrayRef).collect();
        Ok(Batch { file, columns, rows: lines.len(), places: Places { lines: true, numbers: Numbers::List(lines) } })
    }
}

/// Goes through the fields of a piece of text.
struct CsvRecords<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    delimiter: u8,
    file: &'t str,
}

impl<'t> CsvRecords<'t> {
    /// Skips blank lines; the line of the next record, or `None` at the end.
    fn begin(&mut self) -> Option<u64> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                b' ' | b'\t' if self.delimiter == BLANKS => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                }
                b'\r' if bytes.get(self.at + 1) == Some(&b'\n') || self.at + 1 == bytes.len() => self.at += 1,
                _ => return Some(self.line),
            }
        }
    }

    /// The next field, and whether it was the last of its record.
    fn field(&mut self) -> Result<(Cow<'t, str>, bool)> {
        let bytes = self.text.as_bytes();
        let (value, mut stop) = if bytes.get(self.at) == Some(&b'"') { self.quoted()? } else { self.plain() };
        if self.delimiter == BLANKS {
            // Any number of blanks separates two fields, and ends none at the end of a line.
            let blanks = bytes[stop..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
            let more = bytes.get(stop + blanks).is_some_and(|b| *b != b'\n');
            stop += if more { blanks - 1 } else { blanks };
        }
        match bytes.get(stop) {
            Some(b) if self.separates(*b) => {
                self.at = stop + 1;
                Ok((value, false))
            }
            Some(_) => {
                self.line += 1;
                self.at = stop + 1;
                Ok((value, true))
            }
            None => {
                self.at = bytes.len();
                Ok((value, true))
            }
        }
    }

    fn separates(&self, byte: u8) -> bool {
        byte == self.delimiter || (self.delimiter == BLANKS && byte == b'\t')
    }

    fn plain(&self) -> (Cow<'t, str>, usize) {
        let rest = &self.text.as_bytes()[self.at..];
        // Fields are short: a plain loop beats a vectorised search.
        let length = rest.iter().position(|b| *b == b'\n' || self.separates(*b)).unwrap_or(rest.len());
        let stop = self.at + length;
        let ends_line = self.text.as_bytes().get(stop).is_none_or(|b| *b == b'\n');
        let value = &self.text[self.at..stop];
        (Cow::Borrowed(if ends_line { value.strip_suffix('\r').unwrap_or(value) } else { value }), stop)
    }

    fn quoted(&mut self) -> Result<(Cow<'t, str>, usize)> {
        let bytes = self.text.as_bytes();
        let refuse = |sentence: &str, line: u64| {
            let e = IngestError::new(Code::Quote, sentence).file(self.file).line(line);
            e.remedy("close the quote, and write a quote inside a quoted field twice")
        };
        let Some(end) = quoted_end(bytes, self.at) else {
            return Err(refuse("a quote is opened on this line and never closed", self.line));
        };
        let inner = &self.text[self.at + 1..end - 1];
        let mut stop = end;
        if bytes.get(stop) == Some(&b'\r') && bytes.get(stop + 1).is_none_or(|b| *b == b'\n') {
            stop += 1;
        }
        if bytes.get(stop).is_some_and(|b| !self.separates(*b) && *b != b'\n') {
            return Err(refuse("text follows a closing quote", self.line));
        }
        self.line += memchr::memchr_iter(b'\n', inner.as_bytes()).count() as u64;
        let value = if memchr(b'"', inner.as_bytes()).is_some() { Cow::Owned(inner.replace("\"\"", "\"")) } else { Cow::Borrowed(inner) };
        Ok((value, stop))
    }

    /// Where a line begins; only for messages.
    fn start_of(&self, line: u64, first_line: u64) -> usize {
        match line - first_line {
            0 => 0,
            n => memchr::memchr_iter(b'\n', self.text.as_bytes()).nth(n as usize - 1).map_or(0, |at| at + 1),
        }
    }
}

/// All records of a text whose fields are separated by commas, the header among them. Blank lines are none.
pub fn csv_records(text: &str, file: &str) -> Result<Vec<Vec<String>>> {
    let mut records = CsvRecords { text, at: 0, line: 1, delimiter: b',', file };
    let mut rows = Vec::new();
    while records.begin().is_some() {
        let mut row = Vec::new();
        loop {
            let (value, last) = records.field()?;
            row.push(value.into_owned());
            if last {
                break;
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The fields of one record.
fn split(record: &str, delimiter: u8, line: u64, file: &str) -> Result<Vec<String>> {
    let mut records = CsvRecords { text: record, at: 0, line, delimiter, file };
    let mut fields = Vec::new();
    loop {
        let (value, last) = records.field()?;
        fields.push(value.trim().to_owned());
        if last {
            return Ok(fields);
        }
    }
}

/// The names that the user gave, those of the first line, or numbers from 1.
fn column_names(given: &TextTable, first: Vec<String>, line: u64, file: &str) -> Result<Vec<String>> {
    if !given.columns.is_empty() && given.columns.len() != first.len() {
        return Err(IngestError::new(
            Code::Header,
            format!("--columns names {} columns, and the first line has {}", given.columns.len(), first.len()),
        )
        .file(file)
        .line(line)
        .value(first.join(" "))
        .remedy("name every column, in the order of the file; --delimiter says what separates them"));
    }
    Ok(match (given.columns.is_empty(), given.no_header) {
        (false, _) => given.columns.clone(),
        (true, true) => (1..=first.len()).map(|k| k.to_string()).collect(),
        (true, false) => first,
    })
}

/// A column that is not there may be the fault of a first line that is no header.
fn without_header(e: IngestError, names: &[String], given: &TextTable) -> IngestError {
    let data = |name: &String| name.parse::<f64>().is_ok();
    if e.code() != Code::Column.as_str() || given.is_given() || !names.iter().any(data) {
        return e;
    }
    e.remedy("the first line looks like a row, not like names of columns: say --no-header, and name the columns with --columns, or call them 1, 2, ...")
}

/// The delimiter whose header holds all wanted columns; among several, the one with most columns. Blanks only where nothing else separates anything, in files that are not called CSV.
fn sniff(header: &str, wanted: &[String], blanks: bool, line: u64, file: &str) -> Result<(u8, Vec<String>)> {
    let mut best: Option<(bool, u8, Vec<String>)> = None;
    for delimiter in *b",;\t|" {
        // A header that breaks under a wrong delimiter is no reason to refuse the right one.
        let Ok(names) = split(header, delimiter, line, file) else { continue };
        let fits = wanted.iter().all(|w| names.contains(w));
        let better = best.as_ref().is_none_or(|(f, _, n)| (fits, names.len()) > (*f, n.len()));
        if better {
            best = Some((fits, delimiter, names));
        }
    }
    match best {
        Some((fits, _, names)) if blanks && names.len() == 1 && (!fits || wanted.is_empty()) && header.trim().contains(' ') => {
            split(header, BLANKS, line, file).map(|names| (BLANKS, names))
        }
        Some((_, delimiter, names)) => Ok((delimiter, names)),
        None => split(header, b',', line, file).map(|names| (b',', names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};

    fn layout(names: &[&str], wanted: &[usize]) -> Layout {
        let mut slots = vec![None; names.len()];
        wanted.iter().enumerate().for_each(|(s, &k)| slots[k] = Some(s));
        Layout { delimiter: b',', header: true, names: names.iter().map(|s| s.to_string()).collect(), slots, wanted: wanted.len() }
    }

    #[test]
    fn quotes_blank_lines_and_line_numbers() {
        let data = b"1,\"a, \"\"b\"\"\nc\",x\r\n\r\n2,,y\n3,z,\"\"";
        let batch = layout(&["p", "q", "r"], &[1, 2]).decode("f", data, 2).unwrap();
        let q = batch.columns[0].as_string::<i32>();
        assert_eq!(q.value(0), "a, \"b\"\nc");
        assert!(q.is_null(1));
        let r = batch.columns[1].as_string::<i32>();
        assert_eq!((r.value(0), r.value(1), r.is_null(2)), ("x", "y", true));
        assert_eq!((0..3).map(|i| batch.places.number(i)).collect::<Vec<_>>(), [2, 5, 6]);
    }

    #[test]
    fn ragged_and_open_quotes_are_refused_with_their_line() {
        let ragged = layout(&["p", "q"], &[0]).decode("f", b"1,2\n3\n", 2).err().unwrap();
        assert_eq!((ragged.code(), ragged.place().line), ("E-INGEST-RAGGED", Some(3)));
        assert_eq!(ragged.value_met(), Some("3"));
        let open = layout(&["p", "q"], &[0]).decode("f", b"1,2\n3,\"4\n", 2).err().unwrap();
        assert_eq!((open.code(), open.place().line), ("E-INGEST-QUOTE", Some(3)));
    }

    #[test]
    fn the_delimiter_is_the_one_that_gives_the_columns() {
        let wanted = vec!["from".to_owned(), "to".to_owned()];
        assert_eq!(sniff("from;to;a,b,c,d", &wanted, true, 1, "f").unwrap().0, b';');
        assert_eq!(sniff("a,b", &[], true, 1, "f").unwrap().0, b',');
    }
}
