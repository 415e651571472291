//! NumPy's archives of float64 arrays, written so that equal numbers give equal bytes: entries stored, in the order given,
//! with one fixed date.

use std::io::{self, Cursor, Write};
use std::path::Path;

use metastate::Mat;
use metastate_ingest::arrays::{self, NumberArray};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::disk::Target;
use crate::error::{Result, damaged, writing};
use crate::folder;
use crate::inside;

/// Bytes handed on at a time.
const PIECE: usize = 1 << 16;

/// A named array, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Name, without `.npy`.
    pub name: String,
    /// One or two lengths.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: Vec<f64>,
}

impl Array {
    /// A matrix.
    pub fn matrix(name: &str, m: &Mat) -> Self {
        Array { name: name.to_owned(), shape: vec![m.rows(), m.cols()], data: m.as_slice().to_vec() }
    }

    /// A list.
    pub fn list(name: &str, data: &[f64]) -> Self {
        Array { name: name.to_owned(), shape: vec![data.len()], data: data.to_vec() }
    }

    /// As a matrix, when it has two dimensions.
    pub fn into_matrix(self) -> Option<Mat> {
        match self.shape[..] {
            [rows, cols] => Mat::from_vec(rows, cols, self.data).ok(),
            _ => None,
        }
    }
}

/// One array as an `.npy` file, version 1.0.
pub fn npy_bytes(shape: &[usize], data: &[f64]) -> Vec<u8> {
    let mut out = npy_header("<f8", shape);
    out.reserve_exact(8 * data.len());
    data.iter().for_each(|x| out.extend(x.to_le_bytes()));
    out
}

/// What stands before the numbers, padded as NumPy pads it.
fn npy_header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = if let [one] = &lengths[..] { format!("({one},)") } else { format!("({})", lengths.join(", ")) };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let padding = 63 - (10 + header.len()) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut out = Vec::with_capacity(10 + header.len());
    out.extend(b"\x93NUMPY\x01\x00");
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out
}

/// The arrays as an `.npz` file.
pub fn npz_bytes(arrays: &[Array]) -> io::Result<Vec<u8>> {
    let views: Vec<View> = arrays.iter().map(|a| View { name: &a.name, shape: a.shape.clone(), data: &a.data }).collect();
    let mut bytes = Cursor::new(Vec::new());
    write_npz(&mut bytes, &views)?;
    Ok(bytes.into_inner())
}

/// A named array where it lies.
#[derive(Debug, Clone)]
pub struct View<'a> {
    name: &'a str,
    shape: Vec<usize>,
    data: &'a [f64],
}

impl<'a> View<'a> {
    /// A matrix.
    pub fn matrix(name: &'a str, m: &'a Mat) -> Self {
        View { name, shape: vec![m.rows(), m.cols()], data: m.as_slice() }
    }

    /// A list.
    pub fn list(name: &'a str, data: &'a [f64]) -> Self {
        View { name, shape: vec![data.len()], data }
    }
}

/// The same bytes as those of [`npz_bytes`], written as they are made.
pub(crate) fn write_npz(target: &mut dyn Target, arrays: &[View]) -> io::Result<()> {
    let mut zip = ZipWriter::new(target);
    for array in arrays {
        let header = npy_header("<f8", &array.shape);
        zip.start_file(format!("{}.npy", array.name), stored(header.len() + 8 * array.data.len()))?;
        zip.write_all(&header)?;
        write_numbers(&mut zip, array.data.iter().map(|x| x.to_le_bytes()))?;
    }
    zip.finish()?;
    Ok(())
}

/// An entry of so many bytes: not packed, with one fixed date.
fn stored(bytes: usize) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .large_file(bytes as u64 >= u32::MAX as u64)
        .unix_permissions(0o644)
}

/// Many small numbers in few writes.
fn write_numbers<const N: usize>(to: &mut impl Write, numbers: impl Iterator<Item = [u8; N]>) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE + N);
    for number in numbers {
        piece.extend_from_slice(&number);
        if piece.len() >= PIECE {
            to.write_all(&piece)?;
            piece.clear();
        }
    }
    to.write_all(&piece)
}

/// Hands the columns and counts of every row to a taker, in order. Asked twice, it must hand out the same.
pub type Rows<'a> = dyn Fn(&mut dyn FnMut(&[u32], &[u32]) -> io::Result<()>) -> io::Result<()> + 'a;

/// Writes a square matrix of counts as SciPy's `scipy.sparse.save_npz(file, matrix.tocsr(), compressed=False)` does, without ever holding it: the rows are asked for twice, once for their
/// lengths and counts (packed to about a byte each), once for their columns.
pub fn write_counts_matrix(place: &Path, states: usize, rows: &Rows) -> Result<()> {
    let (mut ends, mut packed, mut largest) = (vec![0i64], Vec::new(), 0);
    let mut entries = 0;
    rows(&mut |_, counts| {
        entries += counts.len();
        ends.push(entries as i64);
        for &n in counts {
            pack(n, &mut packed);
            largest = largest.max(n);
        }
        Ok(())
    })
    .map_err(writing(place))?;
    folder::write_file_with(place, &mut |file| {
        let mut zip = ZipWriter::new(file);
        let member = |zip: &mut ZipWriter<_>, name: &str, kind: &str, shape: &[usize], size: usize| {
            let header = npy_header(kind, shape);
            zip.start_file(format!("{name}.npy"), stored(header.len() + size * shape.iter().product::<usize>()))?;
            zip.write_all(&header)
        };
        member(&mut zip, "indices", "<i4", &[entries], 4)?;
        let mut piece = Vec::with_capacity(PIECE);
        rows(&mut |columns, _| {
            columns.iter().for_each(|j| piece.extend_from_slice(&j.to_le_bytes()));
            if piece.len() >= PIECE {
                zip.write_all(&piece)?;
                piece.clear();
            }
            Ok(())
        })?;
        zip.write_all(&piece)?;
        member(&mut zip, "indptr", "<i8", &[states + 1], 8)?;
        write_numbers(&mut zip, ends.iter().map(|e| e.to_le_bytes()))?;
        member(&mut zip, "format", "|S3", &[], 3)?;
        zip.write_all(b"csr")?;
        member(&mut zip, "shape", "<i8", &[2], 8)?;
        write_numbers(&mut zip, [states as i64; 2].iter().map(|n| n.to_le_bytes()))?;
        let counts = Packed(&packed);
        if largest <= u32::from(u8::MAX) {
            member(&mut zip, "data", "|u1", &[entries], 1)?;
            write_numbers(&mut zip, counts.map(|n| [n as u8]))?;
        } else {
            member(&mut zip, "data", "<u4", &[entries], 4)?;
            write_numbers(&mut zip, counts.map(u32::to_le_bytes))?;
        }
        zip.finish()?;
        Ok(())
    })
}

/// Seven bits a byte, the last byte of a number below 128.
fn pack(mut n: u32, out: &mut Vec<u8>) {
    while n >= 128 {
        out.push(n as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Numbers out of such bytes.
struct Packed<'a>(&'a [u8]);

impl Iterator for Packed<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (mut n, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            n |= u32::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return Some(n);
            }
        }
    }
}

/// All arrays of an `.npz` file of float64. Nothing is allocated on the word of a header: sizes are checked against the file.
pub fn read_npz(path: &Path) -> Result<Vec<Array>> {
    let (folder, name) = inside::split(path);
    let bytes = inside::read(folder, name)?;
    parse_npz(&bytes).map_err(|what| damaged(path, what))
}

fn parse_npz(bytes: &[u8]) -> std::result::Result<Vec<Array>, String> {
    let arrays = arrays::from_npz(bytes, "").map_err(|e| {
        let met = e.value_met().map_or_else(String::new, |value| format!(", met `{value}`"));
        format!("cannot be read as arrays ({}{met})", e.sentence())
    })?;
    let mut out = Vec::with_capacity(arrays.len());
    for (name, NumberArray { shape, data, float64 }) in arrays {
        // Whoever wrote other numbers here was not this library, and their last bits are not those of the result.
        if !float64 {
            return Err(format!("holds an array `{name}` that is not of float64"));
        }
        out.push(Array { name, shape, data });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_come_back_bit_for_bit_and_bytes_do_not_change() {
        let m = Mat::from_fn(3, 2, |i, j| (i as f64 + 0.1) / (j as f64 + 3.0));
        let arrays = [Array::matrix("U", &m), Array::list("xi", &[1e-300, f64::INFINITY, -0.0])];
        let bytes = npz_bytes(&arrays).unwrap();
        assert_eq!(bytes, npz_bytes(&arrays).unwrap());
        assert_eq!(parse_npz(&bytes).unwrap(), arrays);
    }

    #[test]
    fn packed_numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, 16_383, 16_384, u32::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&n| pack(n, &mut bytes));
        assert_eq!(Packed(&bytes).collect::<Vec<_>>(), numbers);
        // A number that never ends is none.
        assert_eq!(Packed(&[1, 200]).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn no_prefix_and_no_flipped_byte_of_an_array_panics() {
        let bytes = npz_bytes(&[Array::list("x", &[1.0, 2.0])]).unwrap();
        for n in 0..bytes.len() {
            assert!(parse_npz(&bytes[..n]).is_err());
            let mut other = bytes.clone();
            other[n] ^= 0x55;
            let _ = parse_npz(&other);
        }
    }
}
