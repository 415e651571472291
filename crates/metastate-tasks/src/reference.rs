//! Labels and places that the user has for the states, to judge meta-states by.

use std::collections::HashMap;
use std::path::Path;

use metastate::aggregate::cell_of;
use metastate_ingest::{Data, Progress};
use metastate_report::parse_csv;

use crate::args::{CompareArgs, InputArgs, InputKind};
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

/// The reference labels of the states named, if any were asked for.
pub fn load(
    compare: &CompareArgs,
    input: &InputArgs,
    states: &[String],
    cells: Option<(&[(f64, f64)], f64)>,
    progress: &mut dyn Progress,
) -> Result<Option<Reference>> {
    let Some(column) = &compare.reference else { return Ok(None) };
    let reference = match &compare.reference_from {
        Some(file) => from_table(file, &compare.label, column, states, cells)?,
        None => from_inputs(column, input, states, progress)?,
    };
    if reference.pairs.is_empty() {
        return Err(bad(format!("no state has a value in the column `{column}`"))
            .remedy("check that the states in that table are named as in the inputs"));
    }
    Ok(Some(reference))
}

/// Counts (state, label) over the rows of the inputs themselves, with the reader's own counter: a row is a move from the one to the
/// other.
fn from_inputs(column: &str, input: &InputArgs, states: &[String], progress: &mut dyn Progress) -> Result<Reference> {
    let state = input.state.as_ref().or(input.from.as_ref()).ok_or_else(|| {
        bad("--reference names a column of the inputs, but the states come from no column")
            .remedy("give a table with --reference-from FILE")
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

fn from_table(file: &Path, label: &str, column: &str, states: &[String], cells: Option<(&[(f64, f64)], f64)>) -> Result<Reference> {
    let table = Table::read(file)?;
    let values = table.column(column)?;
    let rows = table.rows_of_states(label, states, cells)?;
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut pairs = Vec::new();
    for (i, row) in rows.into_iter().enumerate() {
        if let Some(value) = row.and_then(|r| table.rows[r].get(values)).filter(|v| !v.is_empty()) {
            let next = numbers.len() as u32;
            pairs.push((i, *numbers.entry(value).or_insert(next), 1.0));
        }
    }
    Ok(Reference { pairs })
}

/// Longitude and latitude of each state; NaN where the table has none.
pub fn places(file: &Path, label: &str, states: &[String]) -> Result<Vec<(f64, f64)>> {
    let table = Table::read(file)?;
    let (lon, lat) = (table.column("lon")?, table.column("lat")?);
    let rows = table.rows_of_states(label, states, None)?;
    let number = |r: usize, c: usize| -> Result<f64> {
        let text = table.rows[r].get(c).map_or("", String::as_str);
        text.trim().parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| {
            bad(format!("`{text}` is no coordinate"))
                .at(format!("{}, line {}", file.display(), r + 1))
                .remedy("give degrees in `lon` and `lat`")
        })
    };
    let place = |row: Option<usize>| row.map_or(Ok((f64::NAN, f64::NAN)), |r| Ok((number(r, lon)?, number(r, lat)?)));
    let places: Vec<(f64, f64)> = rows.into_iter().map(place).collect::<Result<_>>()?;
    if places.iter().all(|p| p.0.is_nan()) {
        return Err(bad("none of the states is in this table")
            .at(file.display().to_string())
            .remedy("name the column of labels with --label"));
    }
    Ok(places)
}

/// A CSV table with a header.
struct Table {
    name: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(file: &Path) -> Result<Self> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| bad(format!("this table cannot be read ({e})")).at(name.clone()))?;
        let rows = parse_csv(text.trim_start_matches('\u{feff}'))
            .filter(|rows| rows.len() > 1)
            .ok_or_else(|| bad("this is no CSV table with a header and rows").at(name.clone()))?;
        Ok(Table { name, rows })
    }

    fn find(&self, column: &str) -> Option<usize> {
        self.rows[0].iter().position(|c| c.trim() == column)
    }

    fn column(&self, column: &str) -> Result<usize> {
        self.find(column).ok_or_else(|| {
            bad(format!("there is no column `{column}`"))
                .at(self.name.clone())
                .remedy(format!("the columns are {}", self.rows[0].join(", ")))
        })
    }

    /// The row of each state, by its label, or by place where the table has no labels.
    fn rows_of_states(&self, label: &str, states: &[String], cells: Option<(&[(f64, f64)], f64)>) -> Result<Vec<Option<usize>>> {
        if let (None, Some((centres, side)), Some(lon), Some(lat)) = (self.find(label), cells, self.find("lon"), self.find("lat")) {
            let mut at = HashMap::new();
            for (r, row) in self.rows.iter().enumerate().skip(1) {
                let number = |c: usize| row.get(c).and_then(|t| t.trim().parse::<f64>().ok());
                // The table may give any point of a cell.
                let corner = |x: f64| (x / side).floor() * side + 0.5 * side;
                if let (Some(x), Some(y)) = (number(lon), number(lat)) {
                    at.insert(cell_of((corner(x), corner(y)), side), r);
                }
            }
            return Ok(centres.iter().map(|&place| cell_of(place, side).and_then(|c| at.get(&Some(c)).copied())).collect());
        }
        let column = self.column(label)?;
        let mut at: HashMap<&str, usize> = HashMap::new();
        for (r, row) in self.rows.iter().enumerate().skip(1) {
            if let Some(text) = row.get(column) {
                at.entry(text).or_insert(r);
            }
        }
        Ok(states.iter().map(|s| at.get(s.as_str()).copied()).collect())
    }
}
