//! `metastate report`: the page and the plots, made at the end of a fit and made anew from a folder.

use std::path::Path;

use metastate::aggregate::Partition;
use metastate::aggregate::rivals::svd_partition;
use metastate::workspace::assignment::cheapest_assignment;
use metastate::{Chain, Label};
use metastate_report::folder::{self, Draft};
use metastate_report::page::{Extras, Heat, PathStory, RivalZones, comparison};
use metastate_report::{FitResult, Ground, Painter, SavedResult, SlicedV, inside, parse_csv, spreadsheet_field};
use serde::Serialize;

use crate::args::{Clusters, ReportArgs};
use crate::error::{CliError, Result};
use crate::named;
use crate::verify::recorded_options;
use crate::watch::Trace;

/// Above this number of states the rival's map is not worth its time.
const MOST_STATES_OF_RIVAL: usize = 20_000;

/// What the page shows beyond the tables.
pub fn extras(chain: &Chain, result: &FitResult, trace: Trace, mut path: Option<PathStory>, seed: u64) -> Result<Extras> {
    let rank = result.partition.clusters();
    let wanted = result.coordinates.is_some() && rank > 1 && chain.states() <= MOST_STATES_OF_RIVAL;
    let rival = wanted.then(|| svd_partition(chain.p(), chain.weights(), rank, seed)).transpose()?;
    // Colours on the map follow the numbers: what is alike along the path gets the same one.
    for zones in path.iter_mut().flat_map(|p| &mut p.points).filter_map(|p| p.zones.as_mut()) {
        *zones = in_our_order(result.partition, zones.iter().map(|z| u32::from(*z)), result.xi);
    }
    Ok(Extras {
        cell: result.ground.and_then(Ground::side),
        outline: result.ground.and_then(Ground::outline),
        zones_have_names: result.zones_have_names,
        // The pictures have the same states along both sides.
        heat: chain.goes_on().then(|| Heat::new(chain.p(), chain.xi(), result.model, result.partition)),
        trace: trace.points,
        events: trace.events,
        rival: rival.map(|r| RivalZones {
            name: "SVD with k-means".to_owned(),
            zones: in_our_order(result.partition, r.labels.iter().copied(), result.xi),
        }),
        path,
        ..Extras::default()
    })
}

/// Other zones, numbered so that they share as much weight as possible with ours of the same number.
fn in_our_order(ours: &Partition, theirs: impl Iterator<Item = u32> + Clone, xi: &[f64]) -> Vec<u16> {
    let k = ours.clusters().max(theirs.clone().max().map_or(0, |m| m as usize + 1));
    let mut shared = vec![0.0; k * k];
    for ((theirs, ours), x) in theirs.clone().zip(&ours.labels).zip(xi) {
        shared[theirs as usize * k + *ours as usize] += x;
    }
    let place = cheapest_assignment(k, |theirs, ours| -shared[theirs * k + ours]);
    theirs.map(|z| place[z as usize] as u16).collect()
}

/// What was made.
#[derive(Debug, Serialize)]
pub struct Made {
    page: String,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<String>,
}

impl Made {
    /// For people.
    pub fn describe(&self) -> String {
        let tables = self.tables.as_ref().map_or_else(String::new, |place| format!("\nthe tables for spreadsheets are in {place}"));
        format!("written {} ({:.1} MB); open it in a browser{tables}", self.page, self.bytes as f64 / 1e6)
    }
}

/// Makes the page of a folder anew.
pub fn run(command: &ReportArgs) -> Result<Made> {
    let place = command.result.as_path();
    let painter = if command.png { Some(Painter::new()?) } else { None };
    if let Some(out) = &command.escape_formulas {
        folder::check_free(out, false)?;
    }
    let bytes = match place.join(COMPARISON).is_file() {
        true if named::asks(command) => {
            return Err(CliError::bad(
                "E-CLI-ARGUMENT",
                "places and names belong to the result of a fit, and this folder is one of compare",
            )
            .at(place.display().to_string())
            .remedy("name the result folder of fit or path"));
        }
        true => comparison_anew(place, painter.as_ref())?,
        false => {
            if named::asks(command) {
                named::give(place, command)?;
            }
            fit_anew(place, painter.as_ref())?
        }
    };
    if let Some(out) = &command.escape_formulas {
        for_spreadsheets(place, out)?;
    }
    let tables = command.escape_formulas.as_ref().map(|out| out.display().to_string());
    Ok(Made { page: place.join("report.html").display().to_string(), bytes, tables })
}

/// The CSV tables once more, with nothing in them that a spreadsheet would run.
fn for_spreadsheets(place: &Path, out: &Path) -> Result<()> {
    let mut names = names_of(place, ".csv")?;
    names.sort();
    let draft = Draft::begin(out)?;
    for name in names {
        let damaged = || metastate_report::Error::Damaged { path: place.join(&name), what: "has a quote that is never closed".to_owned() };
        let rows = parse_csv(&inside::read_text(place, &name)?).ok_or_else(damaged)?;
        let line = |row: &Vec<String>| row.iter().map(|f| spreadsheet_field(f)).collect::<Vec<_>>().join(",") + "\n";
        draft.file(&name, rows.iter().map(line).collect::<String>().as_bytes())?;
    }
    Ok(draft.finish(false)?)
}

/// The names in a folder that end so.
fn names_of(place: &Path, end: &str) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(place).map_err(|cause| metastate_report::Error::Io { path: place.to_owned(), doing: "read", cause })?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(end)).collect())
}

/// What a folder of `compare` is known by.
const COMPARISON: &str = "compare.json";

fn comparison_anew(place: &Path, painter: Option<&Painter>) -> Result<usize> {
    let read = |name: &str| inside::read_text(place, name);
    let record = serde_json::from_str(&read(COMPARISON)?)
        .map_err(|e| metastate_report::Error::Damaged { path: place.join(COMPARISON), what: format!("is not what compare wrote ({e})") })?;
    let mut names = names_of(place, ".svg")?;
    names.sort();
    let pictures = names.into_iter().map(|name| Ok((read(&name)?, name))).collect::<Result<Vec<_>>>()?;
    if let Some(painter) = painter {
        for (svg, name) in &pictures {
            let file = place.join(name);
            folder::write_file(&file.with_extension("png"), &painter.png(&file, svg)?)?;
        }
    }
    let named: Vec<(String, String)> = pictures.into_iter().map(|(svg, name)| (name.trim_end_matches(".svg").to_owned(), svg)).collect();
    let html = comparison(&record, &read("compare.csv")?, &named);
    folder::write_file(&place.join("report.html"), html.as_bytes())?;
    Ok(html.len())
}

/// The zones as the folder has them; as many as there were, also where the last ones are empty.
pub fn partition(place: &Path, loaded: &SavedResult) -> Result<Partition> {
    let count = match recorded_options(place, loaded)?.1.hard() {
        Clusters::Count(k) => k,
        _ => loaded.model().rank(),
    };
    Ok(Partition::numbered(loaded.zones(count)?, &loaded.xi, count))
}

/// What `zones.csv` calls so many zones.
pub fn zone_names(place: &Path, zones: usize) -> Result<Vec<String>> {
    let damaged = || metastate_report::Error::Damaged {
        path: place.join("zones.csv"),
        what: "has not one row for each zone, or no names".to_owned(),
    };
    let rows = parse_csv(&inside::read_text(place, "zones.csv")?).ok_or_else(damaged)?;
    let at = rows.first().and_then(|header| header.iter().position(|h| h == "name")).ok_or_else(damaged)?;
    let names: Option<Vec<String>> = rows[1..].iter().map(|row| row.get(at).cloned()).collect();
    Ok(names.filter(|names| names.len() == zones).ok_or_else(damaged)?)
}

/// The page and the plots of a result, made anew.
pub fn page_anew(place: &Path) -> Result<usize> {
    fit_anew(place, None)
}

fn fit_anew(place: &Path, painter: Option<&Painter>) -> Result<usize> {
    let loaded = metastate_report::load(place)?;
    let extras = metastate_report::load_extras(place, loaded.xi.len())?;
    let labels: Vec<Label> = loaded.column("label")?.into_iter().map(|l| Label::from(l.as_str())).collect();
    let partition = partition(place, &loaded)?;
    let zone_names = zone_names(place, partition.clusters())?;
    let coordinates = loaded.coordinates()?;
    let destinations = loaded.destinations.as_ref().map(|d| d.labels());
    let names = loaded.column("name").ok();
    let result = FitResult {
        labels: &labels,
        destinations: destinations.as_deref(),
        xi: &loaded.xi,
        coordinates: coordinates.as_deref(),
        names: names.as_deref(),
        ground: extras.ground(coordinates.as_deref()),
        zone_names: &zone_names,
        zones_have_names: extras.zones_have_names,
        factors: &loaded.factors,
        model: loaded.going_on(),
        partition: &partition,
        flows: None,
        trips: None,
        refit: None,
        witness: &loaded.witness,
        slices: loaded.slices.as_ref().map(|slices| SlicedV { slices, v: &loaded.model().v }),
        extra: &[],
    };
    Ok(metastate_report::remake(place, &loaded.summary, &result, &extras, painter)?)
}
