//! MatrixMarket: array or coordinate; general or symmetric; real, integer or pattern.

use std::io::{BufRead, BufReader, Read};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::matrix::{Shape, Sink};
use crate::source::{Compression, Source};

/// Lines of numbers are short.
const LONGEST_LINE: usize = 1 << 16;

struct Lines<'s> {
    reader: BufReader<Box<dyn Read + Send>>,
    source: &'s Source,
    line: Vec<u8>,
    number: u64,
}

impl<'s> Lines<'s> {
    /// The next line that is neither blank nor a comment.
    fn next(&mut self) -> Result<Option<&str>> {
        loop {
            self.line.clear();
            let read =
                (&mut self.reader).take(LONGEST_LINE as u64).read_until(b'\n', &mut self.line).map_err(|e| self.source.read_error(e))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read == LONGEST_LINE {
                return Err(self.refuse("this line is too long for a matrix"));
            }
            let comment = self.line.first() == Some(&b'%') && self.number > 1;
            if comment || self.line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            // Numbers and keywords are ASCII; anything else cannot be meant.
            if !self.line.is_ascii() {
                return Err(self.refuse("this line is no text of numbers"));
            }
            return Ok(std::str::from_utf8(&self.line).ok().map(str::trim));
        }
    }

    fn refuse(&self, sentence: impl Into<String>) -> IngestError {
        IngestError::new(Code::Mtx, sentence.into()).file(&self.source.name).line(self.number)
    }
}

struct Banner {
    coordinate: bool,
    symmetric: bool,
    pattern: bool,
    integer: bool,
}

fn banner(lines: &mut Lines<'_>) -> Result<Banner> {
    let text = lines.next()?.unwrap_or("").to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let fail = |what: &str| {
        lines
            .refuse(format!("the banner is not valid: {what}"))
            .value(&text)
            .remedy("begin with: %%MatrixMarket matrix coordinate integer general")
    };
    let [start, object, format, field, symmetry] = words[..] else { return Err(fail("five words are needed")) };
    if start != "%%matrixmarket" || object != "matrix" {
        return Err(fail("it must begin with %%MatrixMarket matrix"));
    }
    let coordinate = match format {
        "coordinate" => true,
        "array" => false,
        _ => return Err(fail("the format must be coordinate or array")),
    };
    if !matches!(field, "real" | "integer" | "pattern" | "double" | "unsigned-integer") {
        return Err(fail("the field must be real, integer or pattern"));
    }
    if !matches!(symmetry, "general" | "symmetric") {
        return Err(fail("the symmetry must be general or symmetric"));
    }
    if field == "pattern" && !coordinate {
        return Err(fail("an array needs values"));
    }
    Ok(Banner { coordinate, symmetric: symmetry == "symmetric", pattern: field == "pattern", integer: field.contains("integer") })
}

/// Reads the whole matrix into `sink`, sizes checked first.
pub(crate) fn read(source: &Source, sink: &mut dyn Sink) -> Result<()> {
    let reader = BufReader::with_capacity(1 << 16, source.open()?);
    let mut lines = Lines { reader, source, line: Vec::new(), number: 0 };
    let banner = banner(&mut lines)?;
    let wanted = if banner.coordinate { 3 } else { 2 };
    let sizes: Vec<u64> = match lines.next()? {
        None => return Err(lines.refuse("the line of sizes is missing")),
        Some(text) => {
            let parsed = text.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<u64>, _>>();
            let text = text.to_owned();
            match parsed {
                Ok(sizes) if sizes.len() == wanted => sizes,
                _ => return Err(lines.refuse(format!("the line of sizes must hold {wanted} whole numbers")).value(text)),
            }
        }
    };
    let (rows, cols) = (sizes[0], sizes[1]);
    let entries = match sizes.get(2) {
        Some(&n) => u128::from(n),
        None if banner.symmetric => u128::from(rows) * (u128::from(rows) + 1) / 2,
        None => u128::from(rows) * u128::from(cols),
    };
    // The shortest entry is "0\n" or "1 1\n". A packed file can be a thousand times as long.
    let shortest = if !banner.coordinate {
        2
    } else if banner.pattern {
        4
    } else {
        6
    };
    let text_bytes = u128::from(source.bytes) * if source.compression == Compression::None { 1 } else { 1100 };
    if entries * shortest > text_bytes + 1 {
        return Err(IngestError::new(Code::Size, "the header promises more than the file holds")
            .file(&source.name)
            .line(lines.number)
            .value(format!("{entries} entries, {} bytes", source.bytes))
            .remedy("the file is truncated or forged; write it again"));
    }
    let entries = entries as u64;
    if banner.symmetric && rows != cols {
        return Err(lines.refuse("a symmetric matrix must be square").value(format!("{rows} x {cols}")));
    }
    sink.begin(Shape { rows, cols, entries, dense: !banner.coordinate }, &source.name)?;
    if banner.coordinate {
        coordinate(&mut lines, &banner, rows, cols, entries, sink)
    } else {
        array(&mut lines, &banner, rows, cols, sink)
    }?;
    if let Some(extra) = lines.next()?.map(str::to_owned) {
        return Err(lines
            .refuse(format!("there are more entries than the {entries} promised"))
            .value(extra)
            .remedy("correct the line of sizes"));
    }
    Ok(())
}

fn number(lines: &Lines<'_>, word: &str, integer: bool) -> Result<f64> {
    let parsed = if integer { word.parse::<i64>().map(|n| n as f64).ok() } else { word.parse::<f64>().ok() };
    parsed.ok_or_else(|| {
        let what = if integer { "a whole number of at most 64 bits is needed" } else { "a number is needed" };
        IngestError::new(if integer { Code::Integer } else { Code::Number }, what)
            .file(&lines.source.name)
            .line(lines.number)
            .value(word)
            .remedy("correct the entry")
    })
}

fn missing(lines: &Lines<'_>, found: u64, entries: u64) -> IngestError {
    lines
        .refuse(format!("the file ends after {found} of the {entries} entries promised"))
        .remedy("the file is truncated, or its line of sizes is wrong")
}

fn coordinate(lines: &mut Lines<'_>, banner: &Banner, rows: u64, cols: u64, entries: u64, sink: &mut dyn Sink) -> Result<()> {
    for found in 0..entries {
        let Some(text) = lines.next()? else { return Err(missing(lines, found, entries)) };
        let text = text.to_owned();
        let mut words = text.split_whitespace();
        let (Some(i), Some(j), value, None) = (words.next(), words.next(), words.next(), words.next()) else {
            return Err(lines.refuse("an entry is: row column value").value(text));
        };
        let value = match (value, banner.pattern) {
            (None, true) => 1.0,
            (Some(word), false) => number(lines, word, banner.integer)?,
            _ => {
                return Err(lines
                    .refuse(if banner.pattern { "an entry is: row column" } else { "an entry is: row column value" })
                    .value(text));
            }
        };
        let index = |word: &str, len: u64| match word.parse::<u64>() {
            Ok(n) if (1..=len).contains(&n) => Ok(n - 1),
            _ => Err(lines
                .refuse(format!("an index must lie within 1 and {len}"))
                .value(word)
                .remedy("indices begin at 1; correct the entry or the line of sizes")),
        };
        let (i, j) = (index(i, rows)?, index(j, cols)?);
        if banner.symmetric && j > i {
            return Err(lines.refuse("a symmetric matrix holds its lower triangle only").value(text));
        }
        sink.entry(i, j, value)?;
        if banner.symmetric && i != j {
            sink.entry(j, i, value)?;
        }
    }
    Ok(())
}

/// Column by column, as the format has it.
fn array(lines: &mut Lines<'_>, banner: &Banner, rows: u64, cols: u64, sink: &mut dyn Sink) -> Result<()> {
    let mut found = 0;
    for j in 0..cols {
        for i in if banner.symmetric { j..rows } else { 0..rows } {
            let Some(text) = lines.next()? else {
                let entries = if banner.symmetric { rows * (rows + 1) / 2 } else { rows * cols };
                return Err(missing(lines, found, entries));
            };
            let text = text.to_owned();
            let value = number(lines, &text, banner.integer)?;
            found += 1;
            sink.entry(i, j, value)?;
            if banner.symmetric && i != j {
                sink.entry(j, i, value)?;
            }
        }
    }
    Ok(())
}
