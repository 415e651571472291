//! SciPy's sparse `.npz`: csr, csc and coo. A zip of `.npy` arrays; every size is checked before it is believed.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use metastate::Csr;
use zip::ZipArchive;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::matrix::{Shape, Sink};
use crate::npy::{ElementKind, Header, NpyReader};
use crate::source::Source;

/// Deflate cannot shrink more than this.
const BEST_DEFLATE: u64 = 1040;

struct Archive<'s> {
    zip: ZipArchive<BufReader<File>>,
    name: &'s str,
}

pub(crate) fn refuse(sentence: impl Into<String>, file: &str) -> IngestError {
    IngestError::new(Code::Npz, sentence).file(file).remedy("save it with scipy.sparse.save_npz(file, matrix.tocsr())")
}

/// Refuses an archive that is read differently by others, or whose parts are the same bytes several times over.
pub(crate) fn check_archive<R: Read + Seek>(zip: &mut ZipArchive<R>, file: &str) -> Result<()> {
    if zip.has_duplicate_names() {
        return Err(refuse("two arrays of this archive have the same name", file));
    }
    match zip.has_overlapping_entries() {
        Ok(false) => Ok(()),
        Ok(true) => Err(refuse("arrays of this archive overlap: the same bytes stand for several of them", file)),
        Err(e) => Err(refuse(format!("this is not a whole .npz file ({e})"), file)),
    }
}

/// One array of an archive, whose stored sizes are believed as far as packing can go.
pub(crate) fn member_reader<R: Read>(file: R, declared: u64, packed: u64, label: &str) -> Result<NpyReader<R>> {
    if declared > packed.saturating_mul(BEST_DEFLATE).saturating_add(1024) {
        return Err(IngestError::new(Code::Size, "an array in this archive is said to be larger than its packed bytes allow")
            .file(label)
            .value(format!("{declared} bytes from {packed}"))
            .remedy("the file is forged or damaged; write it again"));
    }
    NpyReader::open(file, declared, label)
}

impl Archive<'_> {
    fn has(&self, member: &str) -> bool {
        self.zip.file_names().flatten().any(|n| n.strip_suffix(".npy") == Some(member))
    }

    /// Opens one array.
    fn open(&mut self, member: &str) -> Result<NpyReader<impl Read>> {
        let name = self.name;
        let label = format!("{name} ({member})");
        let file =
            self.zip.by_name(&format!("{member}.npy")).map_err(|e| refuse(format!("the array `{member}` cannot be read ({e})"), name))?;
        let (declared, packed) = (file.size(), file.compressed_size());
        member_reader(file, declared, packed, &label)
    }

    fn header(&mut self, member: &str) -> Result<Header> {
        Ok(self.open(member)?.header)
    }

    fn integers(&mut self, member: &str) -> Result<Vec<i64>> {
        let mut reader = self.open(member)?;
        let mut all = Vec::new(); // grows with what is really there
        while reader.integers(1 << 13, &mut all)? {}
        Ok(all)
    }
}

/// Reads the whole matrix into `sink`.
pub(crate) fn read(source: &Source, unpack_limit: u64, sink: &mut dyn Sink) -> Result<()> {
    let name = source.name.as_str();
    let file = source.seekable(unpack_limit)?.open().map_err(|e| source.read_error(e))?;
    let zip = ZipArchive::new(BufReader::new(file)).map_err(|e| refuse(format!("this is not a whole .npz file ({e})"), name))?;
    let mut archive = Archive { zip, name };
    check_archive(&mut archive.zip, name)?;
    if !archive.has("format") || !archive.has("shape") {
        return Err(refuse("this .npz file holds no SciPy sparse matrix", name));
    }
    let format = archive.open("format")?.text()?;
    let shape = archive.header("shape")?;
    if shape.elements() != 2 {
        return Err(refuse("the matrix must have two dimensions", name));
    }
    let shape = archive.integers("shape")?;
    let size = |n: i64| u64::try_from(n).map_err(|_| refuse("a size is negative", name).value(n.to_string()));
    let (rows, cols) = (size(shape[0])?, size(shape[1])?);
    match format.as_str() {
        "csr" => compressed(&mut archive, rows, cols, rows, false, sink),
        "csc" => compressed(&mut archive, rows, cols, cols, true, sink),
        "coo" => coordinates(&mut archive, rows, cols, sink),
        other => Err(refuse("sparse matrices of this format cannot be read (csr, csc and coo can)", name).value(other)),
    }
}

/// The arrays must be one-dimensional and of these lengths.
fn check(archive: &mut Archive<'_>, member: &str, length: u64, numbers: bool) -> Result<()> {
    let header = archive.header(member)?;
    let name = archive.name;
    if header.shape.len() != 1 || header.elements() != length {
        return Err(IngestError::new(Code::Size, format!("the array `{member}` must have {length} elements"))
            .file(name)
            .value(format!("{:?}", header.shape))
            .remedy("the file is damaged; write it again"));
    }
    let fits = header.is_integer() || (numbers && header.kind == ElementKind::Float);
    if fits { Ok(()) } else { Err(refuse(format!("the array `{member}` has a type that cannot be used"), name)) }
}

fn begin(archive: &mut Archive<'_>, rows: u64, cols: u64, index: &[&str], sink: &mut dyn Sink) -> Result<()> {
    let entries = archive.header("data")?.elements();
    check(archive, "data", entries, true)?;
    for member in index {
        check(archive, member, entries, false)?;
    }
    sink.begin(Shape { rows, cols, entries, dense: false }, archive.name)
}

fn outside(archive: &Archive<'_>, k: usize, index: i64, len: u64) -> IngestError {
    refuse(format!("entry {k} has an index outside 0 and {}", len.saturating_sub(1)), archive.name).value(index.to_string())
}

fn values(archive: &mut Archive<'_>) -> Result<Vec<f64>> {
    let mut reader = archive.open("data")?;
    let mut all = Vec::new();
    while reader.numbers(1 << 13, &mut all)? {}
    Ok(all)
}

fn compressed(archive: &mut Archive<'_>, rows: u64, cols: u64, major: u64, transposed: bool, sink: &mut dyn Sink) -> Result<()> {
    let pointers = major.checked_add(1).ok_or_else(|| refuse("the matrix is too large", archive.name))?;
    check(archive, "indptr", pointers, false)?;
    begin(archive, rows, cols, &["indices"], sink)?;
    let minor = if transposed { rows } else { cols };
    let (indptr, indices, data) = (archive.integers("indptr")?, numbers_below(archive, "indices", minor)?, values(archive)?);
    if indptr[0] != 0 || indptr.last().copied() != Some(data.len() as i64) || indptr.windows(2).any(|w| w[0] > w[1]) {
        return Err(refuse("the array `indptr` does not ascend from 0 to the number of entries", archive.name));
    }
    let span = |w: &[i64]| w[0] as usize..w[1] as usize;
    // Nearly every file that was written as one: its three arrays are ours already.
    let in_order = indptr.windows(2).all(|w| indices[span(w)].is_sorted_by(|a, b| a < b));
    if in_order && sink.takes_whole() && !data.contains(&0.0) {
        let indptr = indptr.iter().map(|&k| k as usize).collect();
        let stored = Csr::from_parts(major as usize, minor as usize, indptr, indices, data);
        let stored = stored.map_err(|e| IngestError::from_core(e, Some(archive.name)))?;
        return sink.whole(if transposed { stored.transposed() } else { stored });
    }
    for (i, w) in indptr.windows(2).enumerate() {
        for k in span(w) {
            let (row, col) = if transposed { (u64::from(indices[k]), i as u64) } else { (i as u64, u64::from(indices[k])) };
            sink.entry(row, col, data[k])?;
        }
    }
    Ok(())
}

/// An array of state numbers, four bytes each.
fn numbers_below(archive: &mut Archive<'_>, member: &str, len: u64) -> Result<Vec<u32>> {
    let (mut all, mut chunk) = (Vec::new(), Vec::new());
    let mut reader = archive.open(member)?;
    let mut wrong = None;
    while wrong.is_none() && reader.integers(1 << 13, &mut chunk)? {
        for &index in &chunk {
            match u32::try_from(index) {
                Ok(j) if u64::from(j) < len => all.push(j),
                _ => {
                    wrong = Some((all.len(), index));
                    break;
                }
            }
        }
        chunk.clear();
    }
    drop(reader);
    match wrong {
        None => Ok(all),
        Some((k, index)) => Err(outside(archive, k, index, len)),
    }
}

fn coordinates(archive: &mut Archive<'_>, rows: u64, cols: u64, sink: &mut dyn Sink) -> Result<()> {
    begin(archive, rows, cols, &["row", "col"], sink)?;
    let (row, col, data) = (archive.integers("row")?, archive.integers("col")?, values(archive)?);
    for k in 0..data.len() {
        match (u64::try_from(row[k]), u64::try_from(col[k])) {
            (Ok(i), Ok(j)) if i < rows && j < cols => sink.entry(i, j, data[k])?,
            (Ok(i), _) if i < rows => return Err(outside(archive, k, col[k], cols)),
            _ => return Err(outside(archive, k, row[k], rows)),
        }
    }
    Ok(())
}
