//! Cuts a text file into pieces that end where a record ends.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr, memchr2, memrchr};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::source::Source;

/// No record of a table is longer than this; what is, is a quote that was never closed, or no table.
const LONGEST_RECORD: usize = 16 << 20;

/// The rest of a file, piece by piece.
pub(super) struct Pieces {
    reader: Box<dyn Read + Send>,
    position: Arc<AtomicU64>,
    /// Read and not handed out yet.
    carry: Vec<u8>,
    /// Line on which `carry` begins, from 1.
    line: u64,
    /// For CSV, the delimiter: a line break inside quotes ends no record.
    delimiter: Option<u8>,
    ended: bool,
}

impl Pieces {
    /// From the start, one record a line.
    pub fn plain(source: &Source) -> Result<Self> {
        Pieces::start(source, None)
    }

    /// From the first record on, after the header where there is one.
    pub fn of_table(source: &Source, delimiter: u8, header: bool) -> Result<Self> {
        let mut pieces = Pieces::start(source, None)?; // a header is one line, whatever its quotes
        if header {
            pieces.header(source)?;
        }
        pieces.delimiter = Some(delimiter);
        Ok(pieces)
    }

    fn start(source: &Source, delimiter: Option<u8>) -> Result<Self> {
        let (reader, position) = source.open_counted()?;
        let mut pieces = Pieces { reader, position, carry: Vec::new(), line: 1, delimiter, ended: false };
        pieces.fill(1 << 16).map_err(|e| source.read_error(e))?;
        if pieces.carry.starts_with(b"\xef\xbb\xbf") {
            pieces.carry.drain(..3);
        }
        Ok(pieces)
    }

    /// Takes the first record that is not blank; `None` when there is none.
    pub fn header(&mut self, source: &Source) -> Result<Option<(Vec<u8>, u64)>> {
        loop {
            let end = loop {
                match record_end(&self.carry, 0, self.delimiter) {
                    Some(end) => break end,
                    None if self.ended => break self.carry.len(),
                    None => self.grow(source)?,
                }
            };
            if end == 0 {
                return Ok(None);
            }
            let rest = self.carry.split_off(end);
            let record = std::mem::replace(&mut self.carry, rest);
            let at = self.line;
            self.line += count_lines(&record);
            if !record.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some((record, at)));
            }
        }
    }

    /// About `size` bytes of whole records and the line on which they begin.
    pub fn next_piece(&mut self, source: &Source, size: usize) -> Result<Option<(Vec<u8>, u64)>> {
        self.fill(size).map_err(|e| source.read_error(e))?;
        if self.carry.is_empty() {
            return Ok(None);
        }
        let end = loop {
            if self.ended {
                break self.carry.len();
            }
            match last_end(&self.carry, self.delimiter) {
                0 => self.grow(source)?,
                end => break end,
            }
        };
        let rest = self.carry[end..].to_vec();
        self.carry.truncate(end);
        let piece = std::mem::replace(&mut self.carry, rest);
        let line = self.line;
        self.line += count_lines(&piece);
        Ok(Some((piece, line)))
    }

    /// Stored bytes read so far.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    fn grow(&mut self, source: &Source) -> Result<()> {
        if self.carry.len() > LONGEST_RECORD {
            return Err(IngestError::new(Code::Line, format!("the record that begins here is longer than {LONGEST_RECORD} bytes"))
                .file(&source.name)
                .line(self.line)
                .remedy("look for a quote that is never closed, or for a file that is no table"));
        }
        self.fill(self.carry.len() * 2).map_err(|e| source.read_error(e))
    }

    fn fill(&mut self, size: usize) -> io::Result<()> {
        if self.ended || self.carry.len() >= size {
            return Ok(());
        }
        let missing = (size - self.carry.len()) as u64;
        self.ended = (&mut self.reader).take(missing).read_to_end(&mut self.carry)? as u64 != missing;
        Ok(())
    }
}

fn count_lines(data: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', data).count() as u64
}

/// The end of the last whole record, 0 if there is none.
fn last_end(data: &[u8], delimiter: Option<u8>) -> usize {
    // Without any quote, every line break ends a record, and the search can begin at the back.
    if delimiter.is_none() || memchr(b'"', data).is_none() {
        return memrchr(b'\n', data).map_or(0, |at| at + 1);
    }
    let mut end = 0;
    while let Some(next) = record_end(data, end, delimiter) {
        end = next;
    }
    end
}

/// The place after the line break that ends the record beginning at `start`; `None` when it does not end in `data`.
pub(super) fn record_end(data: &[u8], start: usize, delimiter: Option<u8>) -> Option<usize> {
    let line_end = start + memchr(b'\n', &data[start..])? + 1;
    let Some(delimiter) = delimiter else { return Some(line_end) };
    if memchr(b'"', &data[start..line_end]).is_none() {
        return Some(line_end);
    }
    let mut at = start;
    loop {
        if data.get(at) == Some(&b'"') {
            at = quoted_end(data, at)?;
        }
        let stop = at + memchr2(delimiter, b'\n', &data[at..])?;
        at = stop + 1;
        if data[stop] == b'\n' {
            return Some(at);
        }
    }
}

/// The place after the quote that closes the one at `open`.
pub(super) fn quoted_end(data: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    loop {
        at += memchr(b'"', &data[at..])? + 1;
        if data.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_inside_quotes_end_nothing() {
        let data = b"a,\"x\ny\"\nb,c\n\"un";
        assert_eq!(record_end(data, 0, Some(b',')), Some(8));
        assert_eq!(record_end(data, 8, Some(b',')), Some(12));
        assert_eq!(record_end(data, 12, Some(b',')), None);
        assert_eq!(last_end(data, Some(b',')), 12);
        // a quote inside an unquoted field is a letter like any other
        assert_eq!(record_end(b"5\" pipe,b\nx", 0, Some(b',')), Some(10));
    }
}
