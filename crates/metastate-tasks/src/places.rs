//! Where named states are, and what people call them: a table of stations, airports or zones with their coordinates.

use std::collections::HashMap;
use std::path::Path;

use metastate_ingest::side::SideTable;
use metastate_report::{FileRecord, Ground, Outline, hash};

use crate::args::{FitArgs, OutlineKind};
use crate::data::Dataset;
use crate::error::{CliError, Result};

/// The column of names that is taken where none is named.
const NAME: &str = "name";

/// What the table knows.
pub struct Known {
    /// Longitude and latitude of each state; NaN where the table does not have it.
    pub coordinates: Vec<(f64, f64)>,
    /// What people call the states; empty for those that the table does not have.
    pub names: Option<Vec<String>>,
    /// Things worth telling the user.
    pub hints: Vec<String>,
    /// Which bytes this came from.
    pub record: FileRecord,
}

/// Gives the states of a data set the places, and the names, that the table of `--places` has for them.
pub fn apply(data: &mut Dataset, fit: &FitArgs) -> Result<()> {
    let Some(file) = &fit.places else { return Ok(()) };
    if data.coordinates.is_some() {
        return Err(cells_have_places(file));
    }
    let labels: Vec<String> = data.chain().index().labels().map(|l| l.to_string()).collect();
    let known = find(&labels, file, fit)?;
    data.hints.extend(known.hints);
    data.names = known.names;
    data.coordinates = Some(known.coordinates);
    data.ground = Some(ground(fit));
    data.inputs.push(known.record);
    Ok(())
}

/// What places of a table are on the map.
pub fn ground(fit: &FitArgs) -> Ground {
    Ground::Other(match fit.outline {
        OutlineKind::Voronoi => Outline::Voronoi,
        OutlineKind::Hull => Outline::Hull,
        OutlineKind::Points => Outline::Points,
    })
}

/// Cells are where they are.
pub fn cells_have_places(file: &Path) -> CliError {
    bad(file, "the states are cells of a map and have their places already".to_owned()).remedy("leave out --places")
}

fn bad(file: &Path, sentence: String) -> CliError {
    CliError::bad("E-CLI-PLACES", sentence).at(file.display().to_string())
}

/// Looks the states up in the table.
pub fn find(labels: &[String], file: &Path, fit: &FitArgs) -> Result<Known> {
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
    let rows: Vec<Option<usize>> = labels.iter().map(|l| row_of.get(l.as_str()).copied()).collect();
    let missing: Vec<&String> = labels.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(l, _)| l).collect();
    if missing.len() == labels.len() {
        return Err(none_is_there(file, &labels[0], labels.len(), &fit.label, &row_of));
    }
    let place = |row: usize| -> Result<(f64, f64)> {
        let at = (table.number(row, lon)?, table.number(row, lat)?);
        let on_earth = |(lon, lat): (f64, f64)| lon.abs() <= 180.0 && lat.abs() <= 90.0;
        if on_earth(at) {
            return Ok(at);
        }
        let refused = bad(file, format!("longitude {} and latitude {} are no place on earth", at.0, at.1));
        Err(match on_earth((at.1, at.0)) {
            true => refused.remedy(format!("exchanged they are one: --lon {} --lat {}", fit.lat, fit.lon)),
            false => {
                refused.remedy("longitudes lie within -180 and 180, latitudes within -90 and 90 degrees; --lon and --lat name the columns")
            }
        })
    };
    let coordinates: Vec<(f64, f64)> = rows.iter().map(|row| row.map_or(Ok((f64::NAN, f64::NAN)), place)).collect::<Result<_>>()?;
    let mut hints = Vec::new();
    if !missing.is_empty() {
        let such: Vec<&str> = missing.iter().take(3).map(|l| l.as_str()).collect();
        hints.push(format!(
            "{} of {} states are not in {} (such as {}) and are not on the map",
            missing.len(),
            labels.len(),
            file.display(),
            such.join(" and ")
        ));
    }
    if coordinates.contains(&(0.0, 0.0)) {
        hints.push(format!("{} has places at longitude 0, latitude 0, which often stands for an unknown place", file.display()));
    }
    let names = name.map(|column| rows.iter().map(|row| row.and_then(|r| table.value(r, column)).unwrap_or("").to_owned()).collect());
    Ok(Known { coordinates, names, hints, record: record(file, "places")? })
}

/// No state is in the table. `217` and `217.0` are told: somebody's program made numbers with a point of labels.
fn none_is_there(file: &Path, first: &str, states: usize, column: &str, there: &HashMap<&str, usize>) -> CliError {
    let sentence = format!("none of the {states} states, such as `{}`, is in the column `{column}`", first.escape_debug());
    let other = first.strip_suffix(".0").map_or_else(|| format!("{first}.0"), str::to_owned);
    if there.contains_key(other.as_str()) {
        return bad(file, format!("{sentence}, which has `{other}`"))
            .remedy("one of the files writes whole numbers with a decimal point: write both files with the same labels");
    }
    bad(file, sentence).remedy("name the column that has the states' labels with --label")
}

/// The file with its hash.
pub fn record(file: &Path, role: &str) -> Result<FileRecord> {
    let (bytes, sha256) = hash::of_file(file)?;
    Ok(FileRecord { name: file.display().to_string(), role: role.into(), bytes, sha256 })
}
