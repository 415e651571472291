//! Tables that a program holds already, as Arrow batches: the columns are looked at where they lie.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;

use super::{Batch, Numbers, Places, Visitor, positions};
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::source::Source;

/// The batches of one source, and where the wanted columns are in them.
pub(super) struct Layout {
    batches: Arc<Vec<RecordBatch>>,
    pub names: Vec<String>,
    roots: Vec<usize>,
    /// Rows before each batch.
    first_rows: Vec<u64>,
}

impl Layout {
    pub fn open(source: &Source, wanted: &[String]) -> Result<Self> {
        let batches = source.tables.clone().unwrap_or_default();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        let Some(first) = batches.first().filter(|_| rows > 0) else {
            return Err(IngestError::new(Code::EmptyFile, "this table holds no rows").file(&source.name).remedy("check how it was made"));
        };
        let names: Vec<String> = first.schema().fields().iter().map(|f| f.name().clone()).collect();
        let roots = positions(&names, wanted, &source.name)?;
        for &k in &roots {
            let kind = first.column(k).data_type();
            if kind.is_nested() && !matches!(kind, DataType::Dictionary(..)) {
                return Err(IngestError::new(Code::Type, "this column holds lists or structures, where a text or a number is needed")
                    .file(&source.name)
                    .column(&names[k])
                    .value(kind.to_string())
                    .remedy("flatten it first"));
            }
        }
        let mut first_rows = vec![0u64];
        for batch in batches.iter() {
            first_rows.push(first_rows.last().copied().unwrap_or(0) + batch.num_rows() as u64);
        }
        Ok(Layout { batches, names, roots, first_rows })
    }

    /// Rows of a batch, `None` after the last.
    pub fn group_rows(&self, at: usize) -> Option<u64> {
        self.batches.get(at).map(|b| b.num_rows() as u64)
    }

    /// Hands out the wanted columns of one batch.
    pub fn decode(&self, name: &str, at: usize, visit: &mut Visitor<'_>) -> Result<()> {
        let (Some(batch), Some(&first)) = (self.batches.get(at), self.first_rows.get(at)) else { return Ok(()) };
        let columns = self.roots.iter().map(|&k| plain(batch.column(k), &self.names[k], name)).collect::<Result<Vec<ArrayRef>>>()?;
        let places = Places { lines: false, numbers: Numbers::From(first + 1) };
        visit(&Batch { file: name, columns, places, rows: batch.num_rows() })
    }
}

/// Texts of other layouts become what a Parquet file would have given; everything else stays.
fn plain(column: &ArrayRef, name: &str, file: &str) -> Result<ArrayRef> {
    let wanted = match column.data_type() {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Dictionary(key, value) if **key != DataType::Int32 || **value != DataType::Utf8 => match value.as_ref() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            other => other.clone(),
        },
        _ => return Ok(column.clone()),
    };
    arrow::compute::cast(column, &wanted).map_err(|e| {
        IngestError::new(Code::Type, format!("this column cannot be read as texts ({e})"))
            .file(file)
            .column(name)
            .remedy("use a column of texts or whole numbers")
    })
}
