//! `states.parquet`: the table of states, typed; and how a Parquet file of a result is written.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::result::FitResult;

/// The level of Zstandard: its own default.
const COMPRESSION: i32 = 3;

/// The same columns as `states.csv`.
pub(crate) fn states(result: &FitResult, metastate: &[usize]) -> Result<Vec<u8>, String> {
    let column = |values: &mut dyn Iterator<Item = f64>| -> ArrayRef { Arc::new(Float64Array::from_iter_values(values)) };
    let labels: StringArray = result.labels.iter().map(|l| Some(l.to_string())).collect();
    let metastates = UInt32Array::from_iter_values(metastate.iter().map(|&j| j as u32 + 1));
    let zones = UInt32Array::from_iter_values(result.partition.labels.iter().map(|&z| z + 1));
    let mut columns: Vec<(String, ArrayRef)> = vec![("label".into(), Arc::new(labels))];
    if let Some(names) = result.names {
        columns.push(("name".into(), Arc::new(names.iter().map(|n| Some(n.as_str())).collect::<StringArray>())));
    }
    let further: [(String, ArrayRef); 3] = [
        ("weight".into(), column(&mut result.xi.iter().copied())),
        ("metastate".into(), Arc::new(metastates)),
        ("zone".into(), Arc::new(zones)),
    ];
    columns.extend(further);
    let u = &result.model.u;
    for j in 0..u.cols() {
        columns.push((format!("membership_{}", j + 1), column(&mut (0..u.rows()).map(|i| u[(i, j)]))));
    }
    if let Some(coordinates) = result.coordinates {
        columns.push(("lon".into(), column(&mut coordinates.iter().map(|c| c.0))));
        columns.push(("lat".into(), column(&mut coordinates.iter().map(|c| c.1))));
    }
    bytes(columns, None)
}

/// The bytes of a Parquet file, with a text of its own under a key where there is one.
pub(crate) fn bytes(columns: Vec<(String, ArrayRef)>, text: Option<KeyValue>) -> Result<Vec<u8>, String> {
    let batch = RecordBatch::try_from_iter(columns).map_err(|e| e.to_string())?;
    let level = ZstdLevel::try_new(COMPRESSION).map_err(|e| e.to_string())?;
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(level)).set_key_value_metadata(text.map(|text| vec![text])).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).map_err(|e| e.to_string())?;
    writer.write(&batch).map_err(|e| e.to_string())?;
    writer.close().map_err(|e| e.to_string())?;
    Ok(bytes)
}
