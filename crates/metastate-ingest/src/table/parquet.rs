//! Parquet, one row group at a time. Texts stay dictionaries, so that each distinct label is looked at once a row group.

use std::fs::File;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;

use super::{Batch, Numbers, Places, Visitor, pages, positions};
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::guard;
use crate::source::{Seekable, Source};

/// Rows decoded at a time.
const BATCH: usize = 1 << 16;

/// What the footer says.
pub(super) struct Layout {
    file: Seekable,
    metadata: ArrowReaderMetadata,
    pub names: Vec<String>,
    /// Positions of the wanted columns in the file.
    roots: Vec<usize>,
    /// Rows before each group.
    first_rows: Vec<u64>,
}

impl Layout {
    pub fn open(source: &Source, wanted: &[String], unpack_limit: u64) -> Result<Self> {
        let file = source.seekable(unpack_limit)?;
        let handle = file.open().map_err(|e| source.read_error(e))?;
        if file.bytes < 12 {
            return Err(damaged("this file is too short to be Parquet", &source.name));
        }
        let metadata = guarded(&source.name, || load(&handle))?;
        let names: Vec<String> = metadata.schema().fields().iter().map(|f| f.name().clone()).collect();
        let roots = positions(&names, wanted, &source.name)?;
        for &k in &roots {
            let field = &metadata.schema().fields()[k];
            if field.data_type().is_nested() {
                return Err(IngestError::new(Code::Type, "this column holds lists or structures, where a text or a number is needed")
                    .file(&source.name)
                    .column(field.name())
                    .value(field.data_type().to_string())
                    .remedy("flatten it first"));
            }
        }
        let mut first_rows = vec![0u64];
        for group in metadata.metadata().row_groups() {
            check_group(group, file.bytes, &source.name)?;
            let before = first_rows.last().copied().unwrap_or(0);
            first_rows.push(before.saturating_add(group.num_rows() as u64));
        }
        if first_rows.last() == Some(&0) {
            return Err(IngestError::new(Code::EmptyFile, "this file holds columns and no rows")
                .file(&source.name)
                .remedy("check how it was written"));
        }
        Ok(Layout { file, metadata, names, roots, first_rows })
    }

    /// Rows of a group, `None` after the last.
    pub fn group_rows(&self, group: usize) -> Option<u64> {
        Some(self.first_rows.get(group + 1)? - self.first_rows.get(group)?)
    }

    /// An entry of the footer's key-value list.
    pub fn entry(&self, key: &str) -> Option<String> {
        let list = self.metadata.metadata().file_metadata().key_value_metadata()?;
        list.iter().find(|kv| kv.key == key).and_then(|kv| kv.value.clone())
    }

    /// Page headers of the wanted columns, before the decoder believes them.
    fn check_pages(&self, handle: &mut File, group: usize, name: &str) -> Result<()> {
        let columns = self.metadata.metadata().row_group(group).columns();
        // Wanted columns are not nested, so that each is one leaf of its own.
        let leaf_root = |leaf: usize| self.metadata.parquet_schema().get_column_root_idx(leaf);
        for (_, column) in columns.iter().enumerate().filter(|(leaf, _)| self.roots.contains(&leaf_root(*leaf))) {
            let (start, length) = column.byte_range();
            pages::check(handle, start, length).map_err(|why| damaged(&format!("the Parquet data cannot be read ({why})"), name))?;
        }
        Ok(())
    }

    /// Hands out the wanted columns of one row group, batch by batch.
    pub fn decode(&self, name: &str, group: usize, rows: u64, visit: &mut Visitor<'_>) -> Result<()> {
        let mut handle = self.file.open().map_err(|e| damaged(&format!("this file cannot be read ({e})"), name))?;
        self.check_pages(&mut handle, group, name)?;
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), self.roots.iter().copied());
        let mut reader = guarded(name, || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(handle, self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(BATCH.min(rows.max(1) as usize))
                .build()
        })?;
        let first = self.first_rows.get(group).copied().unwrap_or(0) + 1;
        let mut seen = 0u64;
        // The reader gives columns in the order of the file, each once.
        let mut in_file = self.roots.clone();
        in_file.sort_unstable();
        while let Some(batch) = guarded(name, || reader.next().transpose().map_err(ParquetError::from))? {
            let columns = self
                .roots
                .iter()
                .map(|k| in_file.binary_search(k).ok().and_then(|at| batch.columns().get(at)).cloned())
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| damaged("a column is missing from a row group", name))?;
            let places = Places { lines: false, numbers: Numbers::From(first + seen) };
            seen += batch.num_rows() as u64;
            visit(&Batch { file: name, columns, places, rows: batch.num_rows() })?;
        }
        if seen != rows {
            return Err(damaged(&format!("row group {} holds {seen} rows, its header promises {rows}", group + 1), name));
        }
        Ok(())
    }
}

fn load(file: &File) -> parquet::errors::Result<ArrowReaderMetadata> {
    // The types an Arrow writer noted are left aside: a dictionary with 8-bit keys cannot hold every row group's values.
    let plain = ArrowReaderMetadata::load(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))?;
    let fields: Vec<Field> = plain.schema().fields().iter().map(|f| as_dictionary(f)).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, plain.schema().metadata().clone()));
    ArrowReaderMetadata::try_new(plain.metadata().clone(), ArrowReaderOptions::new().with_schema(schema))
}

fn as_dictionary(field: &Field) -> Field {
    match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            field.clone().with_data_type(kind)
        }
        _ => field.clone(),
    }
}

/// Looks at all that a file promises, footer and page headers, before a decoder believes it. Hands back its number of rows.
pub(crate) fn check_file(path: &std::path::Path) -> Result<u64> {
    let name = path.display().to_string();
    let open = |e: std::io::Error| damaged(&format!("this file cannot be read ({e})"), &name);
    let mut file = File::open(path).map_err(open)?;
    let bytes = file.metadata().map_err(open)?.len();
    let metadata = guarded(&name, || load(&file))?;
    let mut rows = 0u64;
    for group in metadata.metadata().row_groups() {
        check_group(group, bytes, &name)?;
        rows = rows.saturating_add(group.num_rows() as u64);
        for column in group.columns() {
            let (start, length) = column.byte_range();
            pages::check(&mut file, start, length).map_err(|why| damaged(&format!("the Parquet data cannot be read ({why})"), &name))?;
        }
    }
    Ok(rows)
}

/// What the footer promises must lie inside the file.
fn check_group(group: &parquet::file::metadata::RowGroupMetaData, bytes: u64, name: &str) -> Result<()> {
    if group.num_rows() < 0 {
        return Err(damaged("a row group has a negative number of rows", name));
    }
    for column in group.columns() {
        use parquet::basic::Compression;
        if let Some(codec) = match column.compression() {
            Compression::BROTLI(_) => Some("Brotli"),
            Compression::LZO => Some("LZO"),
            _ => None,
        } {
            return Err(IngestError::new(Code::Parquet, format!("the pages of this file are packed with {codec}, which is not read"))
                .file(name)
                .remedy("write it again with zstd, snappy, gzip or lz4"));
        }
        let (start, length) = match guard::guarded(|| column.byte_range()) {
            Some(range) => range,
            None => return Err(damaged("a column begins before the file does", name)),
        };
        if start.checked_add(length).is_none_or(|end| end > bytes) {
            return Err(IngestError::new(Code::Size, "the footer promises data beyond the end of the file")
                .file(name)
                .value(format!("{length} bytes at {start}, file of {bytes}"))
                .remedy("the file is damaged; fetch or write it again"));
        }
    }
    Ok(())
}

fn damaged(sentence: &str, name: &str) -> IngestError {
    IngestError::new(Code::Parquet, sentence).file(name).remedy("the file is damaged; fetch or write it again")
}

/// Runs the foreign decoder; on damaged bytes it may give an error or, seldom, panic, and both are an error here.
fn guarded<T>(name: &str, work: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    match guard::guarded(work) {
        Some(Ok(value)) => Ok(value),
        Some(Err(e)) => Err(damaged(&format!("the Parquet data cannot be read ({e})"), name)),
        None => Err(damaged("the Parquet data cannot be read (the decoder gave up)", name)),
    }
}
