//! Parquet files, column by column.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, BinaryArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use metastate_ingest::{guarded, side};
use metastate_report::inside;
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

/// Reads a file of the folder, which has so many rows. It may have been changed by anybody: a few bytes can promise any number of rows, and a panic inside
/// the reader is a reason like any other.
pub fn read(folder: &Path, name: &str, rows: usize) -> Result<Twin, String> {
    inside::look(folder, name).map_err(|e| e.to_string())?.ok_or("is not there")?;
    let path = folder.join(name);
    let found = side::check_parquet(&path).map_err(|e| e.sentence().to_owned())?;
    if found != rows as u64 {
        return Err(format!("{found} rows, should be {rows}"));
    }
    let file = File::open(path).map_err(|e| format!("cannot be read ({e})"))?;
    guarded(|| columns(file)).unwrap_or_else(|| Err("is damaged".to_owned()))
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
