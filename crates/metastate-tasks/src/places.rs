//! Where named states are, and what people call them: a table of stations, airports or zones with their coordinates.

use std::collections::HashMap;
use std::path::Path;

use metastate_ingest::side::SideTable;
use metastate_report::{FileRecord, hash};

use crate::args::FitArgs;
use crate::data::Dataset;
use crate::error::{CliError, Result};

/// The column of names that is taken where none is named.
const NAME: &str = "name";

/// Gives the states of a data set the places, and the names, that the table of `--places` has for them.
pub fn apply(data: &mut Dataset, fit: &FitArgs) -> Result<()> {
    let Some(file) = &fit.places else { return Ok(()) };
    let bad = |sentence: String| CliError::bad("E-CLI-PLACES", sentence).at(file.display().to_string());
    if data.coordinates.is_some() {
        return Err(bad("the states are cells of a map and have their places already".to_owned()).remedy("leave out --places"));
    }
    let wanted = [fit.label.as_str(), fit.lon.as_str(), fit.lat.as_str()];
    let table = match &fit.name {
        Some(name) => SideTable::read(file, &[&wanted[..], &[name.as_str()]].concat(), &[])?,
        None => SideTable::read(file, &wanted, &[NAME])?,
    };
    let (label, lon, lat) = (table.required(&fit.label)?, table.required(&fit.lon)?, table.required(&fit.lat)?);
    // A column of names that is also that of the labels says nothing new.
    let name = table.column(fit.name.as_deref().unwrap_or(NAME)).filter(|column| *column != label);
    let mut row_of: HashMap<&str, usize> = HashMap::new();
    for row in 0..table.rows() {
        if let Some(text) = table.value(row, label) {
            row_of.entry(text).or_insert(row);
        }
    }
    let labels: Vec<String> = data.chain().index().labels().map(|l| l.to_string()).collect();
    let rows: Vec<Option<usize>> = labels.iter().map(|l| row_of.get(l.as_str()).copied()).collect();
    let missing: Vec<&String> = labels.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(l, _)| l).collect();
    if missing.len() == labels.len() {
        return Err(bad(format!(
            "none of the {} states, such as `{}`, is in the column `{}`",
            labels.len(),
            labels[0].escape_debug(),
            fit.label
        ))
        .remedy("name the column that has the states' labels with --label"));
    }
    let place = |row: usize| -> Result<(f64, f64)> {
        let at = (table.number(row, lon)?, table.number(row, lat)?);
        match at.0.abs() <= 180.0 && at.1.abs() <= 90.0 {
            true => Ok(at),
            false => Err(bad(format!("longitude {} and latitude {} are no place on earth", at.0, at.1))
                .remedy("longitudes lie within -180 and 180, latitudes within -90 and 90 degrees; --lon and --lat name the columns")),
        }
    };
    let coordinates: Vec<(f64, f64)> = rows.iter().map(|row| row.map_or(Ok((f64::NAN, f64::NAN)), place)).collect::<Result<_>>()?;
    if !missing.is_empty() {
        let such: Vec<&str> = missing.iter().take(3).map(|l| l.as_str()).collect();
        data.hints.push(format!(
            "{} of {} states are not in {} (such as {}) and are not on the map",
            missing.len(),
            labels.len(),
            file.display(),
            such.join(" and ")
        ));
    }
    if coordinates.contains(&(0.0, 0.0)) {
        data.hints.push(format!("{} has places at longitude 0, latitude 0, where things are whose place nobody knows", file.display()));
    }
    data.names = name.map(|column| rows.iter().map(|row| row.and_then(|r| table.value(r, column)).unwrap_or("").to_owned()).collect());
    data.coordinates = Some(coordinates);
    data.inputs.push(record(file)?);
    Ok(())
}

fn record(file: &Path) -> Result<FileRecord> {
    let (bytes, sha256) = hash::of_file(file)?;
    Ok(FileRecord { name: file.display().to_string(), role: "places".into(), bytes, sha256 })
}
