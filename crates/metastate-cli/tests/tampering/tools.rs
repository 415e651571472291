//! How a result is changed.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use metastate_report::npz::{Array, npz_bytes, read_npz};
use metastate_report::{csv_field, hash, parse_csv};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use crate::common::{Place, text};
use crate::judge::verify;

/// A copy of an honest result that somebody is at work on.
pub struct Copy(pub PathBuf);

pub type Rows = Vec<Vec<String>>;

impl Copy {
    pub fn json(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.0.join(file);
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    }

    /// One field of `summary.json`, by its path; null takes it out.
    pub fn set(&self, pointer: &str, to: Value) {
        self.json("summary.json", |summary| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = summary.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            if to.is_null() {
                parent.remove(key)
            } else {
                parent.insert(key.to_owned(), to)
            };
        });
    }

    /// A number of `summary.json`, a little larger.
    pub fn grow(&self, pointer: &str, factor: f64) {
        self.json("summary.json", |summary| {
            let found = summary.pointer_mut(pointer).unwrap();
            *found = (found.as_f64().unwrap() * factor).into();
        });
    }

    pub fn csv(&self, file: &str, change: impl FnOnce(&mut Rows)) {
        let path = self.0.join(file);
        let mut rows = parse_csv(&text(&std::fs::read(&path).unwrap())).unwrap();
        change(&mut rows);
        let line = |row: &Vec<String>| row.iter().map(|f| csv_field(f)).collect::<Vec<_>>().join(",") + "\n";
        std::fs::write(path, rows.iter().map(line).collect::<String>()).unwrap();
    }

    /// A field of a table by its row (from 1) and the name of its column.
    pub fn field(&self, file: &str, row: usize, column: &str, to: impl Fn(&str) -> String) {
        self.csv(file, |rows| {
            let at = rows[0].iter().position(|name| name == column).unwrap();
            rows[row][at] = to(&rows[row][at]);
        });
    }

    /// Two names of columns exchanged.
    pub fn swap_names(&self, file: &str, a: usize, b: usize) {
        self.csv(file, |rows| rows[0].swap(a, b));
    }

    /// Every state's zone.
    pub fn zones(&self, to: impl Fn(&str) -> String) {
        self.csv("states.csv", |rows| rows[1..].iter_mut().for_each(|row| row[3] = to(&row[3])));
    }

    pub fn npz(&self, file: &str, change: impl FnOnce(&mut Vec<Array>)) {
        let path = self.0.join(file);
        let mut arrays = read_npz(&path).unwrap();
        change(&mut arrays);
        std::fs::write(path, npz_bytes(&arrays).unwrap()).unwrap();
    }

    /// Factors that are stochastic and else by chance.
    pub fn random_refit(&self) {
        self.npz("refit.npz", |arrays| {
            for array in arrays {
                let (rows, cols) = (array.shape[0], array.shape[1]);
                let value = |i: usize, k: usize| 0.05 + ((i * 7919 + k * 104_729 + i * k * 31) % 97) as f64;
                let sum = |i: usize, k: usize| match array.name.as_str() {
                    "U" => (0..cols).map(|k| value(i, k)).sum::<f64>(),
                    _ => (0..rows).map(|i| value(i, k)).sum::<f64>(),
                };
                array.data = (0..rows * cols).map(|at| value(at / cols, at % cols) / sum(at / cols, at % cols)).collect();
            }
        });
    }

    /// What `verify` finds for a number of `summary.json`, written there: the lie is consistent.
    pub fn make_consistent(&self, place: &Place, line: &str, pointer: &str) {
        self.rehash();
        let found = verify(place, &self.0, false);
        let told =
            found["checks"].as_array().unwrap().iter().find(|c| c["name"] == line).unwrap()["recomputed"].as_str().unwrap().to_owned();
        self.set(pointer, json!(told.parse::<f64>().unwrap()));
    }

    pub fn parquet(&self, file: &str, change: impl FnOnce(RecordBatch) -> RecordBatch) {
        let path = self.0.join(file);
        let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        let texts = builder.metadata().file_metadata().key_value_metadata().cloned();
        let batch = change(builder.build().unwrap().next().unwrap().unwrap());
        let kept = texts.map(|all| all.into_iter().filter(|t| t.key == "geo").collect());
        let properties = parquet::file::properties::WriterProperties::builder().set_key_value_metadata(kept).build();
        let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    /// A column of numbers, its first value changed; or under another name.
    pub fn parquet_column(&self, file: &str, name: &str, factor: f64, new_name: &str) {
        self.parquet(file, |batch| {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
                if field.name() != name {
                    return (field.name().clone(), Arc::clone(array));
                }
                let mut values = array.as_any().downcast_ref::<Float64Array>().unwrap().values().to_vec();
                values[0] *= factor;
                (new_name.to_owned(), Arc::new(Float64Array::from(values)) as ArrayRef)
            });
            RecordBatch::try_from_iter(columns.collect::<Vec<_>>()).unwrap()
        });
    }

    /// The first value of a column of whole numbers.
    pub fn parquet_number(&self, file: &str, name: &str, to: u32) {
        self.parquet(file, |batch| {
            let at = batch.schema().index_of(name).unwrap();
            let mut values = batch.column(at).as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec();
            values[0] = to;
            let mut columns = batch.columns().to_vec();
            columns[at] = Arc::new(UInt32Array::from(values));
            RecordBatch::try_new(batch.schema(), columns).unwrap()
        });
    }

    /// The hashes of all files that the summary lists, as they are now.
    pub fn rehash(&self) {
        self.json("summary.json", |summary| {
            for (name, sha256) in summary["files"].as_object_mut().into_iter().flatten() {
                if let Ok((_, found)) = hash::of_file(&self.0.join(name)) {
                    *sha256 = found.into();
                }
            }
        });
    }
}

pub fn times(factor: f64) -> impl Fn(&str) -> String {
    move |field| (field.parse::<f64>().unwrap() * factor).to_string()
}

/// Another number of a zone or a meta-state.
pub fn other(number: &str) -> String {
    if number == "1" { "2".to_owned() } else { "1".to_owned() }
}

pub fn word(to: &'static str) -> impl Fn(&str) -> String {
    move |_| to.to_owned()
}
