//! `states.parquet`: the table of states, typed; and how a Parquet file of a result is written.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::disk::Target;
use crate::result::FitResult;

/// The level of Zstandard: its own default.
const COMPRESSION: i32 = 3;

/// States of one row group: what is held while the table is written.
const GROUP: usize = 1 << 17;

/// The same columns as `states.csv`.
pub(crate) fn states(file: &mut dyn Target, result: &FitResult, metastate: &[usize]) -> io::Result<()> {
    let first = batch(result, metastate, 0..result.labels.len().min(GROUP)).map_err(io::Error::other)?;
    let properties = WriterProperties::builder().set_compression(level().map_err(io::Error::other)?).build();
    let mut writer = ArrowWriter::try_new(Shared(file), first.schema(), Some(properties)).map_err(io::Error::other)?;
    writer.write(&first).map_err(io::Error::other)?;
    for start in (GROUP..result.labels.len()).step_by(GROUP) {
        writer.flush().map_err(io::Error::other)?;
        let rows = start..(start + GROUP).min(result.labels.len());
        writer.write(&batch(result, metastate, rows).map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}

/// Parquet's writer wants to own what it writes to.
struct Shared<'a>(&'a mut dyn Target);

impl io::Write for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Some rows of it.
fn batch(result: &FitResult, metastate: &[usize], rows: Range<usize>) -> Result<RecordBatch, String> {
    let column = |values: &mut dyn Iterator<Item = f64>| -> ArrayRef { Arc::new(Float64Array::from_iter_values(values)) };
    let labels: StringArray = result.labels[rows.clone()].iter().map(|l| Some(l.to_string())).collect();
    let metastates = UInt32Array::from_iter_values(metastate[rows.clone()].iter().map(|&j| j as u32 + 1));
    let zones = UInt32Array::from_iter_values(result.partition.labels[rows.clone()].iter().map(|&z| z + 1));
    let mut columns: Vec<(String, ArrayRef)> = vec![("label".into(), Arc::new(labels))];
    if let Some(names) = result.names {
        columns.push(("name".into(), Arc::new(names[rows.clone()].iter().map(|n| Some(n.as_str())).collect::<StringArray>())));
    }
    let further: [(String, ArrayRef); 3] = [
        ("weight".into(), column(&mut result.xi[rows.clone()].iter().copied())),
        ("metastate".into(), Arc::new(metastates)),
        ("zone".into(), Arc::new(zones)),
    ];
    columns.extend(further);
    let u = &result.model.u;
    for j in 0..u.cols() {
        columns.push((format!("membership_{}", j + 1), column(&mut rows.clone().map(|i| u[(i, j)]))));
    }
    if let Some(coordinates) = result.coordinates {
        columns.push(("lon".into(), column(&mut coordinates[rows.clone()].iter().map(|c| c.0))));
        columns.push(("lat".into(), column(&mut coordinates[rows].iter().map(|c| c.1))));
    }
    RecordBatch::try_from_iter(columns).map_err(|e| e.to_string())
}

fn level() -> Result<Compression, String> {
    ZstdLevel::try_new(COMPRESSION).map(Compression::ZSTD).map_err(|e| e.to_string())
}

/// The bytes of a Parquet file, with a text of its own under a key where there is one.
pub(crate) fn bytes(columns: Vec<(String, ArrayRef)>, text: Option<KeyValue>) -> Result<Vec<u8>, String> {
    let batch = RecordBatch::try_from_iter(columns).map_err(|e| e.to_string())?;
    let properties = WriterProperties::builder().set_compression(level()?).set_key_value_metadata(text.map(|text| vec![text])).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).map_err(|e| e.to_string())?;
    writer.write(&batch).map_err(|e| e.to_string())?;
    writer.close().map_err(|e| e.to_string())?;
    Ok(bytes)
}
