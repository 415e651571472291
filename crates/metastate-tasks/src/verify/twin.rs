//! Parquet files, column by column.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow::array::{Array, BinaryArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    Texts(Vec<String>),
    Numbers(Vec<f64>),
    Bytes(Vec<Vec<u8>>),
}

/// A file: its columns by name, and the text that it holds under the key `geo`.
#[derive(Debug, Default)]
pub struct Twin {
    pub columns: Vec<(String, Column)>,
    pub geo: Option<String>,
}

/// Reads a file of the folder. It may have been changed by anybody, so a panic inside the reader is a reason like any other.
pub fn read(folder: &Path, name: &str) -> Result<Twin, String> {
    let file = File::open(folder.join(name)).map_err(|e| format!("cannot be read ({e})"))?;
    catch_unwind(AssertUnwindSafe(|| columns(file))).unwrap_or_else(|_| Err("is damaged".to_owned()))
}

fn columns(file: File) -> Result<Twin, String> {
    let damaged = |e: &dyn std::fmt::Display| format!("is damaged ({e})");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
    let texts = builder.metadata().file_metadata().key_value_metadata();
    let geo = texts.and_then(|all| all.iter().find(|kv| kv.key == "geo")).and_then(|kv| kv.value.clone());
    let mut twin = Twin { columns: Vec::new(), geo };
    for field in builder.schema().fields() {
        twin.columns.push((field.name().clone(), Column::Numbers(Vec::new())));
    }
    for batch in builder.build().map_err(|e| damaged(&e))? {
        let batch: RecordBatch = batch.map_err(|e| damaged(&e))?;
        for (k, array) in batch.columns().iter().enumerate() {
            let more = values(array.as_ref()).ok_or_else(|| format!("the column {} has another type", twin.columns[k].0))?;
            append(&mut twin.columns[k].1, more)?;
        }
    }
    Ok(twin)
}

/// The types that results are written in; nothing is missing in any of them.
fn values(array: &dyn Array) -> Option<Column> {
    if array.null_count() > 0 {
        return None;
    }
    let any = array.as_any();
    if let Some(a) = any.downcast_ref::<Float64Array>() {
        return Some(Column::Numbers(a.values().to_vec()));
    }
    if let Some(a) = any.downcast_ref::<UInt32Array>() {
        return Some(Column::Numbers(a.values().iter().map(|x| f64::from(*x)).collect()));
    }
    if let Some(a) = any.downcast_ref::<UInt64Array>() {
        return Some(Column::Numbers(a.values().iter().map(|x| *x as f64).collect()));
    }
    if let Some(a) = any.downcast_ref::<StringArray>() {
        return Some(Column::Texts((0..a.len()).map(|i| a.value(i).to_owned()).collect()));
    }
    let a = any.downcast_ref::<BinaryArray>()?;
    Some(Column::Bytes((0..a.len()).map(|i| a.value(i).to_vec()).collect()))
}

fn append(column: &mut Column, more: Column) -> Result<(), String> {
    match (column, more) {
        (Column::Texts(all), Column::Texts(more)) => all.extend(more),
        (Column::Numbers(all), Column::Numbers(more)) => all.extend(more),
        (Column::Bytes(all), Column::Bytes(more)) => all.extend(more),
        (column, more) if *column == Column::Numbers(Vec::new()) => *column = more,
        _ => return Err("a column changes its type".to_owned()),
    }
    Ok(())
}
