//! What an engine has counted becomes counts, with the ledger of what it left out.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use metastate::{Ledger, LedgerUnit};

use crate::assemble::{CountedStates, Ends, Pairs};
use crate::codes::Code;
use crate::counter::{LocalCounter, PairBatch, PairCounter};
use crate::error::{IngestError, Result};
use crate::labels::{LabelSet, MISSING};
use crate::memory::NAME;
use crate::settings::{As, InputSettings};
use crate::table::{Batch, Numbers, Places};

/// Reads the answer to a query.
pub(crate) struct Counted<'c> {
    settings: &'c InputSettings,
    as_: As,
    weighted: bool,
    labels: LabelSet,
    ledger: Ledger,
    rows: u64,
    /// Signed, because short pieces may be told before the frames that they take back.
    kept: i64,
}

impl<'c> Counted<'c> {
    pub fn new(settings: &'c InputSettings, as_: As) -> Self {
        let weighted = settings.weight.is_some() || as_ == As::Counts;
        Counted { settings, as_, weighted, labels: LabelSet::default(), ledger: Ledger::new(), rows: 0, kept: 0 }
    }

    pub fn read(mut self, batches: &[RecordBatch]) -> Result<CountedStates> {
        let (mut sums, mut rows) =
            (PairBatch { pairs: Vec::new(), weights: Some(Vec::new()) }, PairBatch { pairs: Vec::new(), weights: Some(Vec::new()) });
        for batch in batches {
            self.take(batch, &mut sums, &mut rows)?;
        }
        let counter = |batch: PairBatch| -> Result<Box<dyn PairCounter>> {
            let mut counter = LocalCounter::new(self.settings.memory_limit);
            counter.add(vec![batch])?;
            Ok(Box::new(counter))
        };
        let pairs = Pairs {
            sum_of_parts: None,
            counter: counter(sums)?,
            rows_counter: if self.weighted { Some(counter(rows)?) } else { None },
            second: None,
            labels: self.labels.labels,
            pinned: Vec::new(),
            ends: Ends::Labels,
            ledger: self.ledger,
            noun: if self.as_ == As::Trajectories { "frames" } else { "rows" },
            rows: self.rows,
            kept: u64::try_from(self.kept).unwrap_or(0),
            hints: Vec::new(),
        };
        let mut counted = pairs.into_counts(self.settings, NAME)?;
        if self.as_ == As::Trajectories {
            counted = counted.with_lag(self.settings.lag, self.settings.count)?;
            counted.hints.push(
                "the trajectories were counted elsewhere, so transitions are held out one by one and not in blocks of frames".to_owned(),
            );
        } else if self.settings.from_lon.is_some() {
            counted.find_centres(self.settings.cell);
        }
        Ok(counted)
    }

    fn take(&mut self, table: &RecordBatch, sums: &mut PairBatch, numbers: &mut PairBatch) -> Result<()> {
        let column = |name: &str, kind: Option<DataType>| {
            let wrong = |why: &str| IngestError::new(Code::Column, format!("the engine's answer {why}")).file(NAME).column(name);
            let array = table.column_by_name(name).ok_or_else(|| wrong("lacks a column"))?;
            match kind {
                Some(kind) => cast(array, &kind).map_err(|e| wrong(&format!("has a column of the wrong type ({e})"))),
                None => Ok(array.clone()),
            }
        };
        let text = |array: arrow::array::ArrayRef| match array.data_type() {
            DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => cast(&array, &DataType::Utf8).unwrap_or(array),
            _ => array,
        };
        let columns = vec![text(column("from", None)?), text(column("to", None)?)];
        let (count, rows) = (column("count", Some(DataType::Float64))?, column("rows", Some(DataType::UInt64))?);
        let left_out = column("left_out", Some(DataType::Utf8))?;
        let (count, rows, left_out) = (count.as_primitive::<Float64Type>(), rows.as_primitive::<UInt64Type>(), left_out.as_string::<i32>());
        let batch = Batch { file: NAME, columns, places: Places { lines: false, numbers: Numbers::From(1) }, rows: table.num_rows() };
        let (from, to) = (self.labels.ids(&batch, 0, "from")?, self.labels.ids(&batch, 1, "to")?);
        for i in 0..table.num_rows() {
            let (n, weight) = (rows.value(i), if count.is_null(i) { 0.0 } else { count.value(i) });
            let reason = match left_out.is_null(i) {
                false => left_out.value(i),
                true if from[i] == MISSING || to[i] == MISSING => "label-missing",
                true => {
                    sums.push(from[i], to[i]);
                    sums.weights.iter_mut().for_each(|list| list.push(weight));
                    numbers.push(from[i], to[i]);
                    numbers.weights.iter_mut().for_each(|list| list.push(n as f64));
                    self.rows += n;
                    self.kept += n as i64;
                    continue;
                }
            };
            self.leave_out(reason, n, weight);
        }
        Ok(())
    }

    fn leave_out(&mut self, reason: &str, rows: u64, weight: f64) {
        self.rows += rows;
        let unit = match reason {
            // A frame that leads nowhere is a frame of its trajectory all the same.
            "no-later-frame" => {
                self.kept += rows as i64;
                return;
            }
            "unassigned-frame" => LedgerUnit::Frames,
            // Its weight is the number of frames; all but the last of each piece were taken for frames that lead nowhere.
            "too-short-for-lag" => {
                self.kept -= weight as i64 - rows as i64;
                LedgerUnit::Trajectories
            }
            _ => LedgerUnit::Rows,
        };
        let weight = if self.weighted && reason == "where-not-true" { 0.0 } else { weight };
        self.ledger.add(reason, unit, rows, weight, [] as [String; 0]);
    }
}
