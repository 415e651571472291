//! NumPy's `.npy`: its header and its numbers, read as a stream.
//!
//! Written here and not taken from a crate because every size in the header is checked against the file before anything is
//! allocated, and because objects (pickles) must never be read.

use std::io::{self, Read};

use crate::codes::Code;
use crate::error::{IngestError, Result};

/// Headers of arrays of numbers are below a kilobyte.
const LONGEST_HEADER: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ElementKind {
    Boolean,
    Signed,
    Unsigned,
    Float,
    /// Fixed texts, only for the name of a format inside `.npz`.
    Bytes,
    Unicode,
}

/// What the header says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub kind: ElementKind,
    /// Bytes an element.
    pub size: usize,
    pub big_endian: bool,
    pub fortran: bool,
    pub shape: Vec<u64>,
}

impl Header {
    /// Elements of the whole array; sizes were checked when the header was read.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    pub fn is_integer(&self) -> bool {
        matches!(self.kind, ElementKind::Signed | ElementKind::Unsigned | ElementKind::Boolean)
    }
}

/// An array being read from its start to its end.
pub(crate) struct NpyReader<R> {
    reader: R,
    pub header: Header,
    left: u64,
    file: String,
    buffer: Vec<u8>,
}

impl<R: Read> NpyReader<R> {
    /// Reads the header. `bytes` is the size of the whole file, header included.
    pub fn open(mut reader: R, bytes: u64, file: &str) -> Result<Self> {
        let fail = |sentence: &str| damaged(sentence, file);
        let mut start = [0u8; 8];
        exactly(&mut reader, &mut start, file)?;
        if start[..6] != *b"\x93NUMPY" {
            return Err(fail("this is not a .npy file"));
        }
        let (length, before) = match start[6] {
            1 => {
                let mut n = [0u8; 2];
                exactly(&mut reader, &mut n, file)?;
                (u64::from(u16::from_le_bytes(n)), 10)
            }
            2 | 3 => {
                let mut n = [0u8; 4];
                exactly(&mut reader, &mut n, file)?;
                (u64::from(u32::from_le_bytes(n)), 12)
            }
            other => return Err(fail("the version of this .npy file is not known").value(other.to_string())),
        };
        if length > LONGEST_HEADER as u64 || length > bytes {
            return Err(fail("the header of this .npy file is too long").value(format!("{length} bytes")));
        }
        let mut text = vec![0u8; length as usize];
        exactly(&mut reader, &mut text, file)?;
        let text = String::from_utf8_lossy(&text);
        let header = parse(&text, file)?;
        let data = header
            .shape
            .iter()
            .try_fold(header.size as u64, |n, &k| n.checked_mul(k))
            .ok_or_else(|| size_error("the header promises more elements than there are numbers", "overflow".into(), file))?;
        let held = bytes.saturating_sub(before + length);
        if data != held {
            let what = if data > held { "the header promises more than the file holds" } else { "the file goes on after the array" };
            return Err(size_error(what, format!("shape {:?} of {}-byte elements, {held} bytes of data", header.shape, header.size), file));
        }
        let left = header.elements();
        Ok(NpyReader { reader, header, left, file: file.to_owned(), buffer: Vec::new() })
    }

    /// The bytes of the next elements, at most `most`, in the machine's order; empty at the end.
    fn chunk(&mut self, most: usize) -> Result<&[u8]> {
        let n = (most as u64).min(self.left) as usize;
        let size = self.header.size;
        self.buffer.resize(n * size, 0);
        exactly(&mut self.reader, &mut self.buffer, &self.file)?;
        self.left -= n as u64;
        let unit = if self.header.kind == ElementKind::Unicode { 4 } else { size };
        if self.header.big_endian && unit > 1 {
            self.buffer.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
        }
        Ok(&self.buffer)
    }

    /// Appends up to `most` numbers; false when there were none.
    pub fn numbers(&mut self, most: usize, out: &mut Vec<f64>) -> Result<bool> {
        let (kind, size, file) = (self.header.kind, self.header.size, self.file.clone());
        let bytes = self.chunk(most)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let each = bytes.chunks_exact(size);
        match (kind, size) {
            (ElementKind::Float, 8) => out.extend(each.map(|b| f64::from_le_bytes(array(b)))),
            (ElementKind::Float, 4) => out.extend(each.map(|b| f64::from(f32::from_le_bytes(array(b))))),
            (ElementKind::Signed, _) => out.extend(each.map(|b| signed(b) as f64)),
            (ElementKind::Unsigned | ElementKind::Boolean, _) => out.extend(each.map(|b| unsigned(b) as f64)),
            _ => return Err(damaged("numbers are needed here", &file)),
        }
        Ok(true)
    }

    /// Appends up to `most` whole numbers; false when there were none.
    pub fn integers(&mut self, most: usize, out: &mut Vec<i64>) -> Result<bool> {
        let (kind, size, file) = (self.header.kind, self.header.size, self.file.clone());
        let done = self.header.elements() - self.left;
        let bytes = self.chunk(most)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        match kind {
            ElementKind::Signed => out.extend(bytes.chunks_exact(size).map(signed)),
            ElementKind::Unsigned | ElementKind::Boolean => {
                for (k, b) in bytes.chunks_exact(size).enumerate() {
                    let n = unsigned(b);
                    out.push(i64::try_from(n).map_err(|_| {
                        IngestError::new(Code::Integer, "this integer does not fit into 64 bits with sign")
                            .file(&file)
                            .row(done + k as u64 + 1)
                            .value(n.to_string())
                            .remedy("renumber the states")
                    })?);
                }
            }
            _ => {
                return Err(IngestError::new(Code::Npy, "whole numbers are needed here, the array holds others")
                    .file(&file)
                    .remedy("save it with array.astype('int64')"));
            }
        }
        Ok(true)
    }

    /// The text of an array of one text.
    pub fn text(&mut self) -> Result<String> {
        if self.header.elements() != 1 || self.header.size > 256 {
            return Err(damaged("a single short text is needed here", &self.file));
        }
        let kind = self.header.kind;
        let bytes = self.chunk(1)?;
        let text: String = match kind {
            ElementKind::Bytes => bytes.iter().map(|b| char::from(*b)).collect(),
            ElementKind::Unicode => bytes.chunks_exact(4).filter_map(|b| char::from_u32(u32::from_le_bytes(array(b)))).collect(),
            _ => return Err(damaged("a text is needed here", &self.file)),
        };
        Ok(text.trim_end_matches('\0').to_owned())
    }
}

/// The first `N` bytes; chunks are made of that size, so nothing is ever missing.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0u8; N];
    out.iter_mut().zip(bytes).for_each(|(o, b)| *o = *b);
    out
}

fn unsigned(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(array(bytes))
}

fn signed(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes) << shift) as i64 >> shift
}

fn damaged(sentence: &str, file: &str) -> IngestError {
    IngestError::new(Code::Npy, sentence).file(file).remedy("save the array again with numpy.save")
}

fn size_error(sentence: &str, value: String, file: &str) -> IngestError {
    IngestError::new(Code::Size, sentence).file(file).value(value).remedy("the file is truncated or forged; write it again")
}

fn exactly(reader: &mut impl Read, buffer: &mut [u8], file: &str) -> Result<()> {
    reader.read_exact(buffer).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => size_error("the file ends before the array does", "end of file".into(), file),
        _ => damaged(&format!("the array cannot be read ({e})"), file),
    })
}

/// Reads `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse(text: &str, file: &str) -> Result<Header> {
    let fail = |what: &str| damaged(&format!("the header of this .npy file has no valid {what}"), file).value(text.trim());
    let after = |key: &str| {
        let at = text.find(&format!("'{key}'")).or_else(|| text.find(&format!("\"{key}\"")))?;
        text[at + key.len() + 2..].trim_start().strip_prefix(':').map(str::trim_start)
    };
    let descr = after("descr").ok_or_else(|| fail("descr"))?;
    let quoted = descr.strip_prefix(['\'', '"']).and_then(|d| d.split(['\'', '"']).next());
    let Some(descr) = quoted else {
        return Err(damaged("this array holds structures; only plain numbers can be read", file).value(descr));
    };
    let (kind, size, big_endian) = element(descr, file)?;
    let order = after("fortran_order").ok_or_else(|| fail("fortran_order"))?;
    let fortran = match () {
        () if order.starts_with("True") => true,
        () if order.starts_with("False") => false,
        () => return Err(fail("fortran_order")),
    };
    let inner = after("shape").and_then(|s| s.strip_prefix('(')).and_then(|s| s.split_once(')')).ok_or_else(|| fail("shape"))?.0;
    let mut shape = Vec::new();
    for part in inner.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        shape.push(part.trim_end_matches('L').parse::<u64>().map_err(|_| fail("shape"))?);
    }
    if shape.len() > 4 {
        return Err(fail("shape (at most four dimensions)"));
    }
    Ok(Header { kind, size, big_endian, fortran, shape })
}

fn element(descr: &str, file: &str) -> Result<(ElementKind, usize, bool)> {
    let refuse = |what: &str, remedy: &str| Err(IngestError::new(Code::Npy, what).file(file).value(descr).remedy(remedy));
    let mut letters = descr.chars();
    let (order, rest) = match letters.next() {
        Some(c @ ('<' | '>' | '|' | '=')) => (c, letters.as_str()),
        _ => ('=', descr),
    };
    let Some(kind) = rest.chars().next() else { return refuse("this array has no type", "save it again with numpy.save") };
    let size = rest[kind.len_utf8()..].parse::<usize>().unwrap_or(if rest == "?" { 1 } else { 0 });
    let kind = match (kind, size) {
        ('O', _) => {
            return refuse(
                "this array holds Python objects (pickles), which are never read",
                "save it as numbers: array.astype('float64')",
            );
        }
        ('b', 1) | ('?', 1) => ElementKind::Boolean,
        ('i', 1 | 2 | 4 | 8) => ElementKind::Signed,
        ('u', 1 | 2 | 4 | 8) => ElementKind::Unsigned,
        ('f', 4 | 8) => ElementKind::Float,
        ('S', 1..=64) => return Ok((ElementKind::Bytes, size, false)),
        ('U', 1..=64) => return Ok((ElementKind::Unicode, size * 4, order == '>')),
        _ => return refuse("arrays of this type cannot be read", "save it as numbers: array.astype('float64') or array.astype('int64')"),
    };
    Ok((kind, size, order == '>' || (order == '=' && cfg!(target_endian = "big"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    fn open(bytes: &[u8]) -> Result<NpyReader<&[u8]>> {
        NpyReader::open(bytes, bytes.len() as u64, "a.npy")
    }

    #[test]
    fn both_byte_orders_and_all_widths() {
        let mut out = Vec::new();
        open(&npy("'>i2'", "False", "(2,)", &[0xff, 0xfe, 0x01, 0x00])).unwrap().integers(10, &mut out).unwrap();
        assert_eq!(out, [-2, 256]);
        let mut out = Vec::new();
        open(&npy("'<f4'", "False", "(1, 1)", &1.5f32.to_le_bytes())).unwrap().numbers(10, &mut out).unwrap();
        assert_eq!(out, [1.5]);
        let mut out = Vec::new();
        open(&npy("'|b1'", "True", "(3,)", &[1, 0, 1])).unwrap().integers(10, &mut out).unwrap();
        assert_eq!(out, [1, 0, 1]);
        assert_eq!(open(&npy("'|S3'", "False", "()", b"csr")).unwrap().text().unwrap(), "csr");
        assert_eq!(open(&npy("'<U3'", "False", "()", b"c\0\0\0s\0\0\0c\0\0\0")).unwrap().text().unwrap(), "csc");
    }

    #[test]
    fn forged_headers_are_refused_before_anything_is_allocated() {
        for (shape, code) in [
            ("(1000000000000,)", "E-INGEST-SIZE"),
            ("(18446744073709551615, 18446744073709551615)", "E-INGEST-SIZE"),
            ("(99999999999999999999,)", "E-INGEST-NPY"),
            ("(0,)", "E-INGEST-SIZE"),
            ("(-1,)", "E-INGEST-NPY"),
        ] {
            assert_eq!(open(&npy("'<f8'", "False", shape, &[0; 8])).err().unwrap().code(), code, "{shape}");
        }
        for descr in ["'|O'", "'<c16'", "[('a', '<f8')]", "'<f2'", "''", "'é8'"] {
            assert_eq!(open(&npy(descr, "False", "(1,)", &[0; 8])).err().unwrap().code(), "E-INGEST-NPY", "{descr}");
        }
    }
}
