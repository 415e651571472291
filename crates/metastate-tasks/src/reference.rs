//! Labels and places that the user has for the states, to judge meta-states by.

use std::collections::HashMap;
use std::path::Path;

use metastate::aggregate::cell_of;
use metastate_ingest::side::SideTable;
use metastate_ingest::{Data, ReadProgress};

use crate::args::{InputArgs, InputKind};
use crate::data;
use crate::error::{CliError, Result};

/// For each state, how often it carries which reference label.
pub struct Reference {
    /// (state, reference label, weight).
    pub pairs: Vec<(usize, u32, f64)>,
}

fn bad(sentence: impl Into<String>) -> CliError {
    CliError::bad("E-CLI-REFERENCE", sentence)
}

/// Centres of cells and their side, where states are cells.
pub type Cells<'a> = Option<(&'a [(f64, f64)], f64)>;

/// The labels that the states carry in a column, of a table or else of the inputs themselves.
pub fn load(
    column: &str,
    from: Option<&Path>,
    label: &str,
    input: &InputArgs,
    states: &[String],
    cells: Cells,
    progress: &mut dyn ReadProgress,
) -> Result<Reference> {
    let reference = match from {
        Some(file) => from_table(file, label, column, states, cells)?,
        None => from_inputs(column, input, states, progress)?,
    };
    if reference.pairs.is_empty() {
        return Err(bad(format!("no state has a value in the column `{column}`"))
            .remedy("check that the states in that table are named as in the inputs"));
    }
    Ok(reference)
}

/// Counts (state, label) over the rows of the inputs themselves, with the reader's own counter: a row is a move from the one to the
/// other.
fn from_inputs(column: &str, input: &InputArgs, states: &[String], progress: &mut dyn ReadProgress) -> Result<Reference> {
    let state = input.state.as_ref().or(input.from.as_ref()).ok_or_else(|| {
        bad(format!("`{column}` would be a column of the inputs, but the states come from no column"))
            .remedy("give a table with --reference-from or --groups-from")
    })?;
    let plain = InputArgs {
        as_: Some(InputKind::Trips),
        from: Some(state.clone()),
        to: Some(column.to_owned()),
        where_: input.where_.clone(),
        memory_limit: input.memory_limit,
        ..InputArgs::files(input.inputs.clone())
    };
    let Data::Counts(counted) = data::ingest(&plain, false, progress)?.data else { return Err(bad("the inputs are no table")) };
    let number: HashMap<&str, usize> = states.iter().enumerate().map(|(i, s)| (s.as_str(), i)).collect();
    let names: Vec<String> = counted.counts.index().labels().map(|l| l.to_string()).collect();
    let known = counted.counts.csr().triplets().filter_map(|(i, j, n)| Some((*number.get(names[i as usize].as_str())?, j, n)));
    Ok(Reference { pairs: known.collect() })
}

fn from_table(file: &Path, label: &str, column: &str, states: &[String], cells: Cells) -> Result<Reference> {
    let table = SideTable::read(file, &[column], &[label, "lon", "lat"])?;
    let values = table.required(column)?;
    let rows = rows_of_states(&table, file, label, states, cells)?;
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut pairs = Vec::new();
    for (i, row) in rows.into_iter().enumerate() {
        if let Some(value) = row.and_then(|r| table.value(r, values)) {
            let next = numbers.len() as u32;
            pairs.push((i, *numbers.entry(value).or_insert(next), 1.0));
        }
    }
    Ok(Reference { pairs })
}

/// Longitude and latitude of each state; NaN where the table has none.
pub fn places(file: &Path, label: &str, states: &[String]) -> Result<Vec<(f64, f64)>> {
    let table = SideTable::read(file, &["lon", "lat", label], &[])?;
    let (lon, lat) = (table.required("lon")?, table.required("lat")?);
    let rows = rows_of_states(&table, file, label, states, None)?;
    let place = |row: Option<usize>| row.map_or(Ok((f64::NAN, f64::NAN)), |r| Ok((table.number(r, lon)?, table.number(r, lat)?)));
    let places: Vec<(f64, f64)> = rows.into_iter().map(place).collect::<Result<_>>()?;
    if places.iter().all(|p| p.0.is_nan()) {
        return Err(bad("none of the states is in this table")
            .at(file.display().to_string())
            .remedy("name the column of labels with --label"));
    }
    Ok(places)
}

/// The row of each state, by its label, or by place where the table has no labels.
fn rows_of_states(table: &SideTable, file: &Path, label: &str, states: &[String], cells: Cells) -> Result<Vec<Option<usize>>> {
    if let Some(column) = table.column(label) {
        let mut at: HashMap<&str, usize> = HashMap::new();
        for r in 0..table.rows() {
            if let Some(text) = table.value(r, column) {
                at.entry(text).or_insert(r);
            }
        }
        return Ok(states.iter().map(|s| at.get(s.as_str()).copied()).collect());
    }
    let (Some((centres, side)), Some(lon), Some(lat)) = (cells, table.column("lon"), table.column("lat")) else {
        return Err(bad(format!("there is no column `{label}` that names the states"))
            .at(file.display().to_string())
            .remedy("name the column of labels with --label"));
    };
    let mut at = HashMap::new();
    for r in 0..table.rows() {
        // The table may give any point of a cell, and none for a row that is about no place.
        let corner = |x: f64| (x / side).floor() * side + 0.5 * side;
        if let (Ok(x), Ok(y)) = (table.number(r, lon), table.number(r, lat)) {
            at.insert(cell_of((corner(x), corner(y)), side), r);
        }
    }
    Ok(centres.iter().map(|&place| cell_of(place, side).and_then(|c| at.get(&Some(c)).copied())).collect())
}
