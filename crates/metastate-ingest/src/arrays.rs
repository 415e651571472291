//! Whole arrays of numbers out of NumPy's files, for those who need no stream. The parser is the one that reads users' matrices: every
//! size is checked against the bytes that are there before it is believed.

use std::io::{Cursor, Read};

use zip::{CompressionMethod, ZipArchive};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::npy::{ElementKind, NpyReader};
use crate::npz::{check_archive, member_reader, refuse};

/// Numbers read at a time.
const CHUNK: usize = 1 << 13;

/// An array of numbers, row by row whatever its order in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberArray {
    /// One or two lengths.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: Vec<f64>,
    /// Whether they are stored as `float64`, so that no bit was lost or made up.
    pub float64: bool,
}

/// The array of a `.npy` file of `bytes` bytes, header included.
pub fn from_npy(reader: impl Read, bytes: u64, file: &str) -> Result<NumberArray> {
    whole(NpyReader::open(reader, bytes, file)?, file)
}

/// The arrays of a `.npz` file with their names, in its order. They must be stored unpacked, each under a name and at a place of its own.
pub fn from_npz(bytes: &[u8], file: &str) -> Result<Vec<(String, NumberArray)>> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|e| refuse(format!("this is not a whole .npz file ({e})"), file))?;
    check_archive(&mut zip, file)?;
    let mut arrays = Vec::new();
    for k in 0..zip.len() {
        let entry = zip.by_index(k).map_err(|e| refuse(format!("array {} cannot be read ({e})", k + 1), file))?;
        let name = entry.name().map_err(|e| refuse(format!("array {} has no name ({e})", k + 1), file))?;
        // As NumPy does: one ending is taken off, so that `U.npy.npy` is not `U`.
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        // Stored bytes cannot become more than they are.
        if entry.compression() != CompressionMethod::Stored {
            return Err(refuse(format!("the array `{name}` is packed; these arrays are always stored as they are"), file));
        }
        let label = format!("{file} ({name})");
        let (declared, packed) = (entry.size(), entry.compressed_size());
        arrays.push((name, whole(member_reader(entry, declared, packed, &label)?, &label)?));
    }
    Ok(arrays)
}

fn whole<R: Read>(mut reader: NpyReader<R>, file: &str) -> Result<NumberArray> {
    let header = reader.header.clone();
    if header.shape.is_empty() || header.shape.len() > 2 {
        return Err(IngestError::new(Code::Size, "a list or a matrix is needed here")
            .file(file)
            .value(format!("shape {:?}", header.shape))
            .remedy("save an array of one or two dimensions"));
    }
    if matches!(header.kind, ElementKind::Bytes | ElementKind::Unicode) {
        return Err(IngestError::new(Code::Npy, "numbers are needed here, this array holds texts")
            .file(file)
            .remedy("save it with array.astype('float64')"));
    }
    // The header was checked against the bytes, so this is no more than there is.
    let mut data = Vec::new();
    data.try_reserve_exact(header.elements() as usize)
        .map_err(|_| IngestError::new(Code::TooLarge, "there is not enough memory for this array").file(file))?;
    while reader.numbers(CHUNK, &mut data)? {}
    // The header was checked against the bytes, so the lengths fit whatever holds the data.
    let shape: Vec<usize> = header.shape.iter().map(|&n| n as usize).collect();
    if let (true, &[rows, cols]) = (header.fortran, &shape[..]) {
        data = (0..rows * cols).map(|k| data[(k % cols) * rows + k / cols]).collect();
    }
    Ok(NumberArray { shape, data, float64: header.kind == ElementKind::Float && header.size == 8 })
}
