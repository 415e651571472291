//! Small files beside the data: a table of what users know about the states, and a matrix to compare with. They are read as trips and
//! matrices are, compressed or not, with the same refusals: regular files only, and nothing allocated on the word of a header.

use std::io::BufReader;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use metastate::Mat;

use crate::arrays;
use crate::codes::Code;
use crate::error::{IngestError, Result, did_you_mean};
use crate::progress::Silent;
use crate::settings::{InputSettings, TextTable};
use crate::source::{Format, Source};
use crate::table::{Batch, Tables};

pub use crate::table::csv_records;

/// Whole numbers that a `float64` holds exactly.
const EXACT: f64 = 9.0e15;

/// A table with a header, all its values as texts.
#[derive(Debug, Clone, PartialEq)]
pub struct SideTable {
    file: String,
    names: Vec<String>,
    columns: Vec<Vec<Option<String>>>,
    /// Line (of texts) or row (of Parquet) of each row, from 1.
    places: Vec<u64>,
    lines: bool,
}

impl SideTable {
    /// Reads the columns needed, and of the others named those that are there. CSV, TSV, JSON lines or Parquet.
    pub fn read(path: &Path, needed: &[&str], if_there: &[&str]) -> Result<Self> {
        let source = [Source::file(path.to_owned())?];
        let limit = InputSettings::default().unpack_limit(source[0].bytes);
        if matches!(source[0].format, Format::Npy | Format::Npz | Format::Mtx) {
            return Err(IngestError::new(Code::Format, "this is a matrix file, where a table with named columns is needed")
                .file(&source[0].name)
                .remedy("give a csv, tsv, jsonl or parquet file"));
        }
        let there = Tables::columns_of(&source[0], limit, &TextTable::default())?;
        let mut names: Vec<String> = Vec::new();
        let also = if_there.iter().filter(|name| there.iter().any(|t| t == *name));
        for name in needed.iter().chain(also) {
            if !names.iter().any(|n| n == name) {
                names.push((*name).to_owned());
            }
        }
        let mut table = SideTable {
            file: source[0].name.clone(),
            columns: vec![Vec::new(); names.len()],
            names: names.clone(),
            places: Vec::new(),
            lines: false,
        };
        Tables::open(&source, &names, limit, &TextTable::default())?.scan(
            &mut Silent,
            |feed, _| {
                let mut part = SideTable { columns: vec![Vec::new(); names.len()], ..SideTable::empty() };
                feed(&mut |batch| part.take(batch, &names))?;
                Ok(part)
            },
            |parts| {
                for part in parts {
                    table.lines = part.lines;
                    table.places.extend(part.places);
                    table.columns.iter_mut().zip(part.columns).for_each(|(all, more)| all.extend(more));
                }
                Ok(())
            },
        )?;
        Ok(table)
    }

    fn empty() -> Self {
        SideTable { file: String::new(), names: Vec::new(), columns: Vec::new(), places: Vec::new(), lines: false }
    }

    fn take(&mut self, batch: &Batch<'_>, names: &[String]) -> Result<()> {
        for ((all, array), name) in self.columns.iter_mut().zip(&batch.columns).zip(names) {
            all.extend(texts(array).ok_or_else(|| {
                IngestError::new(Code::Type, format!("a column of type {} cannot be read as text", array.data_type()))
                    .file(batch.file)
                    .column(name)
                    .remedy("store it as text or as numbers")
            })?);
        }
        self.lines = batch.places.lines;
        self.places.extend((0..batch.rows).map(|i| batch.places.number(i)));
        Ok(())
    }

    /// Number of rows, the header not counted.
    pub fn rows(&self) -> usize {
        self.places.len()
    }

    /// The number of a column that was read, by its name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// The same for a column that must be there.
    pub fn required(&self, name: &str) -> Result<usize> {
        self.column(name).ok_or_else(|| {
            IngestError::new(Code::Column, format!("there is no column `{name}`")).file(&self.file).remedy(did_you_mean(name, &self.names))
        })
    }

    /// A value; none where the field is empty or null.
    pub fn value(&self, row: usize, column: usize) -> Option<&str> {
        self.columns.get(column)?.get(row)?.as_deref()
    }

    /// Puts file, line or row, and column to an error.
    pub fn at(&self, error: IngestError, row: usize, column: usize) -> IngestError {
        let error = error.file(&self.file).column(self.names.get(column).map_or("", String::as_str));
        match self.places.get(row) {
            Some(&n) if self.lines => error.line(n),
            Some(&n) => error.row(n),
            None => error,
        }
    }

    /// A value as a finite number.
    pub fn number(&self, row: usize, column: usize) -> Result<f64> {
        let text = self.value(row, column).unwrap_or("");
        let number = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
        let refusal =
            || IngestError::new(Code::Number, "a finite number is needed here").value(text).remedy("correct it, or remove the row");
        number.ok_or_else(|| self.at(refusal(), row, column))
    }
}

/// Texts as they are, numbers as they are written; whole numbers without a point, as labels are.
fn texts(array: &ArrayRef) -> Option<Vec<Option<String>>> {
    if array.data_type().is_floating() {
        let wide = cast(array, &DataType::Float64).ok()?;
        let text = |x: f64| if x.fract() == 0.0 && x.abs() < EXACT { format!("{}", x as i64) } else { x.to_string() };
        return Some(wide.as_primitive::<Float64Type>().iter().map(|x| x.filter(|x| !x.is_nan()).map(text)).collect());
    }
    let texts = cast(array, &DataType::Utf8).ok()?;
    Some(texts.as_string::<i32>().iter().map(|t| t.filter(|t| !t.is_empty()).map(str::to_owned)).collect())
}

/// Looks at footer and page headers of a Parquet file before anything else believes them; hands back its number of rows.
pub fn check_parquet(path: &Path) -> Result<u64> {
    crate::table::check_parquet(path)
}

/// One dense matrix of numbers: a `.npy` file, in either memory order.
pub fn matrix(path: &Path) -> Result<Mat> {
    let source = Source::file(path.to_owned())?;
    if source.format != Format::Npy {
        return Err(IngestError::new(Code::Format, "a matrix is needed here, as a .npy file")
            .file(&source.name)
            .remedy("save it with numpy.save"));
    }
    let file = source.seekable(InputSettings::default().unpack_limit(source.bytes))?;
    let handle = BufReader::new(file.open().map_err(|e| source.read_error(e))?);
    let array = arrays::from_npy(handle, file.bytes, &source.name)?;
    match array.shape[..] {
        [rows, cols] => Mat::from_vec(rows, cols, array.data).map_err(|e| IngestError::from_core(e, Some(&source.name))),
        _ => Err(IngestError::new(Code::Size, "a matrix has two dimensions")
            .file(&source.name)
            .value(format!("shape {:?}", array.shape))
            .remedy("save it with its rows and columns")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn refused<T>(result: Result<T>) -> String {
        result.err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn a_table_says_the_same_in_every_dress() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let csv = "\u{feff}label, lon,note\n7,1.5,\"x, y\"\n\nb,2,\n";
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(csv.as_bytes()).unwrap();
        for path in [
            write(dir.path(), "a.csv", csv.as_bytes()),
            write(dir.path(), "a.csv.gz", &packed.finish().unwrap()),
            write(dir.path(), "a.tsv", b"label\tlon\tnote\n7\t1.5\tx, y\n\nb\t2\t\n"),
        ] {
            let table = SideTable::read(&path, &["label", "note"], &["lon", "lat"]).unwrap();
            assert_eq!((table.rows(), table.column("lat")), (2, None));
            let (label, lon, note) = (table.column("label").unwrap(), table.column("lon").unwrap(), table.column("note").unwrap());
            assert_eq!([table.value(0, label), table.value(0, note), table.value(1, note)], [Some("7"), Some("x, y"), None]);
            assert_eq!((table.number(0, lon).unwrap(), table.number(1, lon).unwrap()), (1.5, 2.0));
            let sentence = refused(table.number(1, label));
            assert!(sentence.contains("line 4, column label: a finite number is needed here (met `b`)"), "{sentence}");
        }
    }

    #[test]
    fn parquet_numbers_become_the_texts_of_labels() {
        use arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
        use std::sync::Arc;
        let dir = tempfile::tempdir().unwrap();
        let columns: [(&str, ArrayRef); 3] = [
            ("label", Arc::new(Int64Array::from(vec![3, -4]))),
            ("kind", Arc::new(StringArray::from(vec![Some("low"), None]))),
            ("lon", Arc::new(Float64Array::from(vec![2.0, 0.1]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let path = write(dir.path(), "a.parquet", &writer.into_inner().unwrap());
        let table = SideTable::read(&path, &["label", "kind", "lon"], &[]).unwrap();
        let values: Vec<Option<&str>> = (0..2).flat_map(|r| (0..3).map(move |c| (r, c))).map(|(r, c)| table.value(r, c)).collect();
        assert_eq!(values, [Some("3"), Some("low"), Some("2"), Some("-4"), None, Some("0.1")]);
        assert!(refused(SideTable::read(&path, &["knid"], &[])).contains("did you mean `kind`?"));
    }

    #[test]
    fn what_is_no_file_of_this_kind_is_refused_in_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        assert!(refused(matrix(Path::new("/dev/zero"))).contains("this is not a regular file"));
        assert!(refused(SideTable::read(Path::new("/dev/zero"), &["a"], &[])).contains("this is not a regular file"));
        assert!(refused(SideTable::read(dir.path(), &["a"], &[])).contains("this is a directory"));
        assert!(refused(SideTable::read(&dir.path().join("no.csv"), &["a"], &[])).contains("there is no such file"));
        let header = |shape: &str, data: &[u8]| {
            let text = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': {shape}, }}\n");
            [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes(), data].concat()
        };
        let six: Vec<u8> = (0..6).flat_map(|k| f64::from(k).to_le_bytes()).collect();
        let by_columns = matrix(&write(dir.path(), "f.npy", &header("(2, 3)", &six))).unwrap();
        assert_eq!(by_columns.as_slice(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        let forged = write(dir.path(), "forged.npy", &header("(1000000, 1000000)", &six));
        assert!(refused(matrix(&forged)).contains("the header promises more than the file holds"));
        assert!(refused(matrix(&write(dir.path(), "list.npy", &header("(6,)", &six)))).contains("a matrix has two dimensions"));
        assert!(refused(matrix(&write(dir.path(), "m.csv", b"1,2\n3,4\n"))).contains("as a .npy file"));
        assert!(refused(SideTable::read(&forged, &["a"], &[])).contains("a table with named columns is needed"));
    }
}
