//! The file that `metastate count` writes: a Parquet table `from, to, count` that anybody can read, with lag, ledger and inputs
//! in its footer. Such files can be added up.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use metastate::{CountMode, Label, Ledger, LedgerUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use crate::assemble::CountedStates;
use crate::cells::hexagon_centre;
use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::manifest::InputRecord;
use crate::progress::ReadProgress;
use crate::settings::{CellSize, InputSettings};
use crate::source::{Format, Source};
use crate::table::Tables;
use crate::trips;

const KEY: &str = "metastate:counts";
const VERSION: u32 = 1;
/// Pairs written at a time.
const BATCH: usize = 1 << 18;

#[derive(Debug, Serialize, Deserialize)]
struct Footer {
    version: u32,
    lag: usize,
    strided: bool,
    /// Side of square cells in degrees.
    cell: Option<f64>,
    /// Resolution of hexagonal cells.
    #[serde(default)]
    h3: Option<u8>,
    rows: u64,
    kept: u64,
    /// States that no pair has.
    lone_states: Vec<String>,
    ledger: Vec<LedgerRow>,
    inputs: Vec<InputRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LedgerRow {
    reason: String,
    unit: String,
    count: u64,
    weight: f64,
    examples: Vec<String>,
}

const UNITS: [LedgerUnit; 5] =
    [LedgerUnit::Rows, LedgerUnit::Transitions, LedgerUnit::States, LedgerUnit::Trajectories, LedgerUnit::Frames];

/// A temporary file that others may read as the user's umask says, as any file that is made by its name.
fn draft_in(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Writes counts beside their final place and renames: the file is there whole, or not at all.
pub fn write_counts(path: &Path, counted: &CountedStates, inputs: &[InputRecord]) -> Result<()> {
    let failed = |e: String| {
        IngestError::new(Code::Write, format!("the counts file cannot be written ({e})"))
            .file(path.display().to_string())
            .remedy("check the place and its free space")
    };
    let counts = &counted.counts;
    let labels: Vec<String> = counts.index().labels().map(|l| l.to_string()).collect();
    let mut lone = vec![true; labels.len()];
    for (i, j, _) in counts.csr().triplets() {
        (lone[i as usize], lone[j as usize]) = (false, false);
    }
    let ledger = counts.ledger().iter().map(|e| LedgerRow {
        reason: e.reason.clone(),
        unit: e.unit.to_string(),
        count: e.count,
        weight: e.weight,
        examples: e.examples.clone(),
    });
    let footer = Footer {
        version: VERSION,
        lag: counts.lag(),
        strided: counts.mode() == CountMode::Strided,
        cell: counted.cell.and_then(CellSize::side),
        h3: counted.cell.and_then(CellSize::resolution),
        rows: counted.rows,
        kept: counted.kept,
        lone_states: labels.iter().zip(&lone).filter(|(_, l)| **l).map(|(name, _)| name.clone()).collect(),
        ledger: ledger.collect(),
        inputs: inputs.to_vec(),
    };
    let json = serde_json::to_string(&footer).map_err(|e| failed(e.to_string()))?;
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let schema = Arc::new(Schema::new(vec![text("from"), text("to"), Field::new("count", DataType::Float64, false)]));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), json)]))
        .build();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = draft_in(folder).map_err(|e| failed(e.to_string()))?;
    let mut writer = ArrowWriter::try_new(file.as_file(), schema.clone(), Some(properties)).map_err(|e| failed(e.to_string()))?;
    let triplets: Vec<(u32, u32, f64)> = counts.csr().triplets().collect();
    for part in triplets.chunks(BATCH) {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(part.iter().map(|t| Some(labels[t.0 as usize].as_str())).collect::<StringArray>()),
            Arc::new(part.iter().map(|t| Some(labels[t.1 as usize].as_str())).collect::<StringArray>()),
            Arc::new(Float64Array::from_iter_values(part.iter().map(|t| t.2))),
        ];
        let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|e| failed(e.to_string()))?;
        writer.write(&batch).map_err(|e| failed(e.to_string()))?;
    }
    writer.close().map_err(|e| failed(e.to_string()))?;
    file.as_file().sync_all().map_err(|e| failed(e.to_string()))?;
    file.persist(path).map_err(|e| failed(e.error.to_string()))?;
    Ok(())
}

/// The footers, when all sources are such files; `None` when none is.
fn footers(sources: &[Source], settings: &InputSettings) -> Result<Option<Vec<Footer>>> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.format == Format::Parquet) {
        if let Some(json) = Tables::footer_entry(source, KEY, settings.unpack_limit(source.bytes))? {
            let footer: Footer = serde_json::from_str(&json).map_err(|e| {
                IngestError::new(Code::Parquet, format!("the footer of this counts file cannot be read ({e})"))
                    .file(&source.name)
                    .remedy("count again with this version of metastate")
            })?;
            if footer.version != VERSION || footer.lag == 0 {
                return Err(IngestError::new(Code::Parquet, "this counts file is of another version")
                    .file(&source.name)
                    .value(footer.version.to_string())
                    .remedy("count again with this version of metastate"));
            }
            found.push(footer);
        }
    }
    match found.len() {
        0 => Ok(None),
        n if n == sources.len() => Ok(Some(found)),
        _ => Err(IngestError::new(Code::Format, "counts files and other tables are mixed")
            .file(&sources[0].name)
            .remedy("count the others first, then merge")),
    }
}

/// Whether these are counts files.
pub(crate) fn are_counts_files(sources: &[Source], settings: &InputSettings) -> Result<bool> {
    Ok(footers(sources, settings)?.is_some())
}

/// Reads triplets from tables, with all that the footers of counts files tell.
pub(crate) fn read(sources: &[Source], settings: &InputSettings, progress: &mut dyn ReadProgress) -> Result<CountedStates> {
    let names = Some(["from", "to", "count"]);
    let Some(footers) = footers(sources, settings)? else {
        return trips::read(sources, settings, names, progress)?.into_counts(settings, &sources[0].name);
    };
    let first = &footers[0];
    for (footer, source) in footers.iter().zip(sources) {
        if (footer.lag, footer.strided, footer.cell, footer.h3) != (first.lag, first.strided, first.cell, first.h3) {
            return Err(IngestError::new(Code::Lag, "this file was counted with another lag, mode or cell")
                .file(&source.name)
                .value(format!("lag {}, {} had {}", footer.lag, sources[0].name, first.lag))
                .remedy("count all files alike"));
        }
    }
    let mut pairs = trips::read(sources, settings, names, progress)?;
    let known: std::collections::HashSet<Label> = pairs.labels.iter().cloned().collect();
    let mut lone: Vec<Label> = footers.iter().flat_map(|f| f.lone_states.iter().map(|s| Label::from(s.as_str()))).collect();
    lone.sort();
    lone.dedup();
    for label in lone.into_iter().filter(|l| !known.contains(l)) {
        pairs.pinned.push(pairs.labels.len() as u32);
        pairs.labels.push(label);
    }
    let mut ledger = Ledger::new();
    for entry in footers.iter().flat_map(|f| &f.ledger) {
        if let Some(unit) = UNITS.into_iter().find(|u| u.to_string() == entry.unit) {
            ledger.add(&entry.reason, unit, entry.count, entry.weight, entry.examples.iter().cloned());
        }
    }
    ledger.merge(&pairs.ledger);
    pairs.ledger = ledger;
    // One row of the data is one count here, not one row of this file.
    pairs.rows_counter = None;
    pairs.rows = footers.iter().map(|f| f.rows).sum();
    pairs.kept = footers.iter().map(|f| f.kept).sum();
    let mode = if first.strided { CountMode::Strided } else { CountMode::Sliding };
    let mut counted = pairs.into_counts(settings, &sources[0].name)?.with_lag(first.lag, mode)?;
    let squares = first.cell.filter(|c| *c > 0.0).map(CellSize::Degrees);
    if let Some(cell) = first.h3.map(CellSize::H3).or(squares) {
        counted.find_centres(cell);
    }
    Ok(counted)
}

impl CountedStates {
    /// Where the states lie, from labels that print the corners of squares or the indices of hexagons.
    pub(crate) fn find_centres(&mut self, cell: CellSize) {
        let of_hexagon = |label: Label| u64::from_str_radix(&label.to_string(), 16).ok().and_then(hexagon_centre);
        let labels = self.counts.index().labels();
        self.coordinates = match cell {
            CellSize::Degrees(side) => labels.map(|l| centre(&l, side)).collect(),
            CellSize::H3(_) => labels.map(of_hexagon).collect(),
        };
        self.cell = self.coordinates.as_ref().map(|_| cell);
    }
}

/// The centre of the cell whose lower left corner a label prints.
fn centre(label: &Label, cell: f64) -> Option<(f64, f64)> {
    let Label::Text(text) = label else { return None };
    let (lon, lat) = text.split_once(',')?;
    let middle = |s: &str| s.parse::<f64>().ok().map(|x| ((x / cell).round() + 0.5) * cell);
    Some((middle(lon)?, middle(lat)?))
}
