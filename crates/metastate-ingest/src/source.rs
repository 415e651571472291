//! What the user named: files, patterns and standard input, each with its compression and format.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use tempfile::{NamedTempFile, TempPath};

use crate::codes::Code;
use crate::error::{IngestError, Result};

/// How the bytes are wrapped, told by their first bytes and never by the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of one or many members.
    Gzip,
    /// Zstandard, of one or many frames.
    Zstd,
}

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text with a delimiter and a header.
    Csv,
    /// The same with tabs.
    Tsv,
    /// One JSON object a line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// A NumPy array.
    Npy,
    /// A SciPy sparse matrix (a zip of NumPy arrays).
    Npz,
    /// MatrixMarket.
    Mtx,
    /// Plain text: one trajectory a line.
    Text,
    /// Arrow batches that a program holds.
    Memory,
    /// Text of a kind that its name does not tell.
    Unknown,
}

impl Format {
    /// Rows and named columns.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Csv | Format::Tsv | Format::JsonLines | Format::Parquet | Format::Memory)
    }
}

/// One input, ready to be opened as often as needed.
#[derive(Debug)]
pub struct Source {
    /// As the user gave it (or as the pattern expanded); `-` for standard input.
    pub name: String,
    /// Size in bytes, as stored.
    pub bytes: u64,
    /// How it is wrapped.
    pub compression: Compression,
    /// What it is.
    pub format: Format,
    path: PathBuf,
    /// Removes the copy of standard input at the end.
    _spool: Option<TempPath>,
    /// The rows themselves, when there is no file.
    pub(crate) tables: Option<Arc<Vec<RecordBatch>>>,
}

impl Source {
    /// Stands for data that are in memory already.
    pub(crate) fn memory(name: &str, format: Format, tables: Option<Arc<Vec<RecordBatch>>>) -> Self {
        let bytes = tables.iter().flat_map(|t| t.iter()).map(|b| b.get_array_memory_size() as u64).sum();
        Source { name: name.to_owned(), bytes, compression: Compression::None, format, path: PathBuf::new(), _spool: None, tables }
    }
}

/// A file that can be read at any place; a decompressed copy where the source was compressed.
#[derive(Debug)]
pub struct Seekable {
    path: PathBuf,
    /// Size in bytes, after decompression.
    pub bytes: u64,
    _copy: Option<TempPath>,
}

impl Seekable {
    /// Opens the file anew: handles made by `try_clone` share one position and cannot be used by two threads.
    pub fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }
}

struct CountingFile(File, Arc<AtomicU64>);

impl Read for CountingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(buffer)?;
        self.1.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Expands patterns, spools standard input and looks at the first bytes of every file.
pub fn resolve(inputs: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for input in inputs {
        if input == "-" {
            if sources.iter().any(|s: &Source| s.name == "-") {
                return Err(IngestError::new(Code::Option, "standard input (`-`) is named twice").remedy("name it once"));
            }
            sources.push(Source::stdin()?);
        } else if is_pattern(input) && !Path::new(input).exists() {
            for path in expand(input)? {
                sources.push(Source::file(path)?);
            }
        } else {
            sources.push(Source::file(PathBuf::from(input))?);
        }
    }
    if sources.is_empty() {
        return Err(
            IngestError::new(Code::Option, "no input was named").remedy("name at least one file, a pattern, or `-` for standard input")
        );
    }
    for (i, s) in sources.iter().enumerate() {
        if sources[..i].iter().any(|t| t.path == s.path) {
            return Err(IngestError::new(Code::Option, "this file is named twice, so its rows would count twice")
                .file(&s.name)
                .remedy("name it once"));
        }
    }
    Ok(sources)
}

fn is_pattern(input: &str) -> bool {
    input.contains(['*', '?', '['])
}

/// The files that match, in alphabetical order so that the result does not depend on the disk.
/// The files that these names stand for: patterns expanded, standard input left out. Nothing is opened, and a pattern that matches nothing names nothing.
pub fn expand_names(inputs: &[String]) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for input in inputs.iter().filter(|i| *i != "-") {
        match is_pattern(input) && !Path::new(input).exists() {
            true => names.extend(expand(input).unwrap_or_default()),
            false => names.push(PathBuf::from(input)),
        }
    }
    names
}

fn expand(pattern: &str) -> Result<Vec<PathBuf>> {
    let bad = |e: String| IngestError::new(Code::Glob, e).file(pattern).remedy("put the pattern in quotes, or name the files");
    let mut files = Vec::new();
    for entry in glob::glob(pattern).map_err(|e| bad(format!("the pattern is not valid: {e}")))? {
        let path = entry.map_err(|e| bad(format!("a directory could not be listed: {}", e.error())))?;
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(bad("no file matches this pattern".into()));
    }
    Ok(files)
}

impl Source {
    pub(crate) fn file(path: PathBuf) -> Result<Self> {
        let name = path.display().to_string();
        Source::look(name, path, None)
    }

    /// Standard input is copied to a temporary file: formats need to be read from their end, and hashes from the start.
    fn stdin() -> Result<Self> {
        let path = spool(&mut io::stdin().lock(), "-", |e| io_error(e, Code::Read, "standard input could not be read"))?.0;
        Source::look("-".into(), path.to_path_buf(), Some(path))
    }

    fn look(name: String, path: PathBuf, spool: Option<TempPath>) -> Result<Self> {
        let open_error = |e: io::Error| {
            let sentence = match e.kind() {
                io::ErrorKind::NotFound => "there is no such file".to_owned(),
                io::ErrorKind::PermissionDenied => "there is no permission to read this file".to_owned(),
                _ => format!("this file cannot be opened: {e}"),
            };
            IngestError::new(Code::Open, sentence).file(&name).remedy("check the spelling and the access rights")
        };
        let meta = std::fs::metadata(&path).map_err(open_error)?;
        if meta.is_dir() {
            let remedy = format!("name its files, such as '{}/*.parquet'", name.trim_end_matches('/'));
            return Err(IngestError::new(Code::Open, "this is a directory").file(&name).remedy(remedy));
        }
        if !meta.is_file() {
            return Err(IngestError::new(Code::Open, "this is not a regular file")
                .file(&name)
                .remedy("pipe it into standard input and name `-`"));
        }
        let mut file = File::open(&path).map_err(open_error)?;
        let head = read_head(&mut file).map_err(|e| io_error(e, Code::Read, "this file cannot be read").file(&name))?;
        if head.is_empty() {
            return Err(IngestError::new(Code::EmptyFile, "this file is empty (0 bytes)").file(&name).remedy("check how it was written"));
        }
        if let Some(refusal) = unread(&name, &head) {
            return Err(refusal.file(&name));
        }
        let compression = match head.as_slice() {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        };
        let mut source = Source { name, bytes: meta.len(), compression, format: Format::Unknown, path, _spool: spool, tables: None };
        let head = match compression {
            Compression::None => head,
            _ => read_head(&mut source.open()?).map_err(|e| source.read_error(e))?,
        };
        source.format = format_of(&source.name, &head);
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(IngestError::new(Code::Utf8, "this file is UTF-16, not UTF-8")
                .file(&source.name)
                .line(1)
                .remedy("convert it: iconv -f UTF-16 -t UTF-8"));
        }
        Ok(source)
    }

    /// The bytes, decompressed, from the start.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        Ok(self.open_counted()?.0)
    }

    /// The same, with the number of stored bytes read so far.
    pub fn open_counted(&self) -> Result<(Box<dyn Read + Send>, Arc<AtomicU64>)> {
        let position = Arc::new(AtomicU64::new(0));
        let file = CountingFile(File::open(&self.path).map_err(|e| self.read_error(e))?, position.clone());
        let reader: Box<dyn Read + Send> = match self.compression {
            Compression::None => Box::new(file),
            // `MultiGzDecoder` goes on after the first member; a plain `GzDecoder` would lose the rest without a word.
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, file))),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(file).map_err(|e| self.read_error(e))?),
        };
        Ok((reader, position))
    }

    /// The bytes as stored, for hashing.
    pub fn open_stored(&self) -> Result<File> {
        File::open(&self.path).map_err(|e| self.read_error(e))
    }

    /// A file that can be read at any place. Compressed sources are decompressed into a temporary file first, up to `limit` bytes.
    pub fn seekable(&self, limit: u64) -> Result<Seekable> {
        if self.compression == Compression::None {
            return Ok(Seekable { path: self.path.clone(), bytes: self.bytes, _copy: None });
        }
        let mut limited = self.open()?.take(limit.saturating_add(1));
        let (copy, bytes) = spool(&mut limited, &self.name, |e| self.read_error(e))?;
        if bytes > limit {
            return Err(IngestError::new(Code::TooLarge, format!("this file unpacks to more than {limit} bytes"))
                .file(&self.name)
                .remedy("unpack it yourself if you trust it"));
        }
        Ok(Seekable { path: copy.to_path_buf(), bytes, _copy: Some(copy) })
    }

    /// What an error while reading means: a damaged stream where there is one, else the disk.
    pub fn read_error(&self, e: io::Error) -> IngestError {
        match self.compression {
            Compression::None => io_error(e, Code::Read, "this file cannot be read"),
            Compression::Gzip => io_error(e, Code::Compressed, "the gzip stream ends early or is damaged"),
            Compression::Zstd => io_error(e, Code::Compressed, "the zstd stream ends early or is damaged"),
        }
        .file(&self.name)
    }
}

fn io_error(e: io::Error, code: Code, sentence: &str) -> IngestError {
    let remedy = if code == Code::Compressed { "fetch or compress it again" } else { "check the disk and run again" };
    IngestError::new(code, format!("{sentence} ({e})")).remedy(remedy)
}

/// Copies a stream to a temporary file.
fn spool(from: &mut dyn Read, name: &str, read_error: impl Fn(io::Error) -> IngestError) -> Result<(TempPath, u64)> {
    let write_error = |e| io_error(e, Code::Write, "a temporary copy could not be written").file(name);
    let mut file = NamedTempFile::new().map_err(write_error)?;
    let mut buffer = vec![0u8; 1 << 16];
    let mut total = 0;
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(read_error(e)),
        };
        file.write_all(&buffer[..n]).map_err(write_error)?;
        total += n as u64;
    }
    file.rewind().map_err(write_error)?;
    Ok((file.into_temp_path(), total))
}

fn read_head(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    from.take(64).read_to_end(&mut head)?;
    Ok(head)
}

/// Formats that are known and not read, each with the way to one that is.
fn unread(name: &str, head: &[u8]) -> Option<IngestError> {
    let packed = |what: &str, how: &str| {
        IngestError::new(Code::Format, format!("this file is {what}, which is not unpacked here"))
            .remedy(format!("{how} {name} | metastate ... -"))
    };
    let foreign =
        |what: &str, how: &str| IngestError::new(Code::Format, format!("this is {what}, which is not read")).remedy(how.to_owned());
    let entry = head.get(30..).unwrap_or_default();
    match head {
        [b'B', b'Z', b'h', ..] => Some(packed("packed with bzip2", "pipe it in, unpacked: bzip2 -dc")),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(packed("packed with xz", "pipe it in, unpacked: xz -dc")),
        [b'7', b'z', 0xbc, 0xaf, ..] => Some(packed("a 7z archive", "pipe it in, unpacked: 7z x -so")),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [b'F', b'E', b'A', b'1', ..] => Some(foreign(
            "an Arrow (Feather) file",
            "save it as Parquet: pandas.read_feather(FILE).to_parquet(NEW), or give the table to metastate in Python",
        )),
        [0x89, b'H', b'D', b'F', ..] => Some(foreign("an HDF5 file", "save the table or array in it as Parquet or .npy")),
        _ if head.starts_with(b"SQLite format 3") => {
            Some(foreign("a SQLite database", "write the table out: sqlite3 -csv -header FILE 'SELECT ...' > trips.csv"))
        }
        // A zip of NumPy's arrays is an .npz file; its first entry is named right after 30 bytes.
        [b'P', b'K', 3, 4, ..] if entry.starts_with(b"[Content_Types]") || entry.starts_with(b"xl/") || entry.starts_with(b"_rels/") => {
            Some(foreign("a spreadsheet (xlsx)", "save the sheet as CSV"))
        }
        [b'P', b'K', 3, 4, ..] if name.to_lowercase().ends_with(".zip") => Some(packed("a zip archive", "pipe it in, unpacked: unzip -p")),
        _ => None,
    }
}

/// Magic bytes first: they cannot be wrong by a careless rename. Then the name.
fn format_of(name: &str, head: &[u8]) -> Format {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    match head {
        [b'P', b'A', b'R', b'1', ..] => return Format::Parquet,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => return Format::Npy,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => return Format::Npz,
        _ if text.len() >= 14 && text[..14].eq_ignore_ascii_case(b"%%MatrixMarket") => return Format::Mtx,
        _ => {}
    }
    let lower = name.to_lowercase();
    let stem = [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    let extension = Path::new(stem).extension().and_then(|e| e.to_str()).unwrap_or("");
    match extension {
        "csv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        "jsonl" | "ndjson" => Format::JsonLines,
        "parquet" | "pq" => Format::Parquet,
        "npy" => Format::Npy,
        "npz" => Format::Npz,
        "mtx" => Format::Mtx,
        "txt" | "dat" | "traj" | "dtraj" => Format::Text,
        _ if text.first() == Some(&b'{') => Format::JsonLines,
        _ => Format::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_bytes_come_before_names() {
        assert_eq!(format_of("a.csv", b"PAR1...."), Format::Parquet);
        assert_eq!(format_of("a.CSV.gz", b"from,to\n"), Format::Csv);
        assert_eq!(format_of("-", b"\xef\xbb\xbf{\"a\":1}"), Format::JsonLines);
        assert_eq!(format_of("x", b"%%matrixmarket matrix"), Format::Mtx);
        assert_eq!(format_of("x.parquet", b"hello"), Format::Parquet);
        assert_eq!(format_of("noname", b"1 2 3"), Format::Unknown);
    }

    #[test]
    fn a_pattern_without_files_is_refused() {
        let e = resolve(&["/nowhere-at-all/*.csv".into()]).unwrap_err();
        assert_eq!(e.code(), "E-INGEST-GLOB");
    }
}
