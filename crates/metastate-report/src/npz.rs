//! NumPy's archives of float64 arrays, written so that equal numbers give equal bytes: entries stored, in the order given,
//! with one fixed date.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use metastate::Mat;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::error::{Result, damaged, reading};

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

/// One array as an `.npy` file, version 1.0, padded as NumPy pads it.
pub fn npy_bytes(shape: &[usize], data: &[f64]) -> Vec<u8> {
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = if let [one] = &lengths[..] { format!("({one},)") } else { format!("({})", lengths.join(", ")) };
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let padding = 63 - (10 + header.len()) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut out = Vec::with_capacity(10 + header.len() + 8 * data.len());
    out.extend(b"\x93NUMPY\x01\x00");
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    data.iter().for_each(|x| out.extend(x.to_le_bytes()));
    out
}

/// The arrays as an `.npz` file.
pub fn npz_bytes(arrays: &[Array]) -> std::io::Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for array in arrays {
        let bytes = npy_bytes(&array.shape, &array.data);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file(bytes.len() as u64 >= u32::MAX as u64)
            .unix_permissions(0o644);
        zip.start_file(format!("{}.npy", array.name), options)?;
        zip.write_all(&bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// All arrays of an `.npz` file of float64. Nothing is allocated on the word of a header: sizes are checked against the file.
pub fn read_npz(path: &Path) -> Result<Vec<Array>> {
    let bytes = std::fs::read(path).map_err(reading(path))?;
    parse_npz(&bytes).map_err(|what| damaged(path, what))
}

/// One `.npy` file of float64.
pub fn read_npy(path: &Path) -> Result<Array> {
    let bytes = std::fs::read(path).map_err(reading(path))?;
    let (shape, data) = parse_npy(&bytes).map_err(|what| damaged(path, what))?;
    Ok(Array { name: path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned()), shape, data })
}

fn parse_npz(bytes: &[u8]) -> std::result::Result<Vec<Array>, String> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|e| format!("is no npz archive ({e})"))?;
    let mut arrays = Vec::new();
    for k in 0..zip.len() {
        let mut entry = zip.by_index(k).map_err(|e| format!("cannot be unpacked ({e})"))?;
        let name = entry.name().map_err(|e| format!("has an entry without a name ({e})"))?.trim_end_matches(".npy").to_owned();
        let mut content = Vec::new();
        // Packed entries are as large as they say or smaller; a forged size ends the reading early.
        let most = entry.size().min(1000 * bytes.len() as u64 + 1024);
        (&mut entry).take(most + 1).read_to_end(&mut content).map_err(|e| format!("holds a damaged array `{name}` ({e})"))?;
        let (shape, data) = parse_npy(&content).map_err(|e| format!("holds an array `{name}` that {e}"))?;
        arrays.push(Array { name, shape, data });
    }
    Ok(arrays)
}

fn parse_npy(bytes: &[u8]) -> std::result::Result<(Vec<usize>, Vec<f64>), String> {
    let short = || "ends too early".to_owned();
    if bytes.get(..6) != Some(b"\x93NUMPY") {
        return Err("is no npy array".to_owned());
    }
    let (start, length) = match bytes.get(6) {
        Some(1) => (10, bytes.get(8..10).and_then(|b| b.try_into().ok()).map(|b| u16::from_le_bytes(b) as usize)),
        _ => (12, bytes.get(8..12).and_then(|b| b.try_into().ok()).map(|b| u32::from_le_bytes(b) as usize)),
    };
    let end = start + length.ok_or_else(short)?;
    let header = bytes.get(start..end).and_then(|h| std::str::from_utf8(h).ok()).ok_or_else(short)?;
    let value = |key: &str| header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    if !value("descr").is_some_and(|v| v.starts_with("'<f8'") || v.starts_with("\"<f8\"")) {
        return Err("is not of float64 (`<f8`)".to_owned());
    }
    let fortran = value("fortran_order").is_some_and(|v| v.starts_with("True"));
    let shape = value("shape").and_then(|v| v.strip_prefix('(')?.split_once(')')).map(|(inside, _)| inside).ok_or("has no shape")?;
    let shape: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(|s| s.parse().map_err(|_| "has a shape that is no list of sizes".to_owned()))
        .collect::<std::result::Result<_, _>>()?;
    let count = shape.iter().try_fold(1usize, |n, k| n.checked_mul(*k)).ok_or("has an impossible shape")?;
    if count.checked_mul(8) != Some(bytes.len() - end) {
        return Err(format!("promises {count} numbers and holds {} bytes", bytes.len() - end));
    }
    let numbers: Vec<f64> =
        bytes[end..].chunks_exact(8).map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])).collect();
    match (fortran, &shape[..]) {
        (true, &[rows, cols]) => {
            let by_rows = (0..rows * cols).map(|k| numbers[(k % cols) * rows + k / cols]).collect();
            Ok((shape, by_rows))
        }
        _ => Ok((shape, numbers)),
    }
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
