//! NumPy's archives of float64 arrays, written so that equal numbers give equal bytes: entries stored, in the order given,
//! with one fixed date.

use std::io::{Cursor, Write};
use std::path::Path;

use metastate::Mat;
use metastate_ingest::arrays::{self, NumberArray};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::error::{Result, damaged};
use crate::inside;

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
