//! `metastate report`: the page and the plots, made at the end of a fit and made anew from a folder.

use std::path::Path;

use metastate::aggregate::Partition;
use metastate::aggregate::rivals::svd_partition;
use metastate::linalg::assignment::cheapest_assignment;
use metastate::{Chain, Label};
use metastate_report::page::{Extras, Heat, PathStory, Rival, comparison};
use metastate_report::{FitResult, Painter, folder, inside};
use serde::Serialize;

use crate::args::{Clusters, ReportArgs};
use crate::error::Result;
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
        cell: result.cell,
        heat: Some(Heat::new(chain.p(), chain.xi(), result.model, result.partition)),
        trace: trace.points,
        events: trace.events,
        rival: rival.map(|r| Rival {
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
}

impl Made {
    /// For people.
    pub fn describe(&self) -> String {
        format!("written {} ({:.1} MB); open it in a browser", self.page, self.bytes as f64 / 1e6)
    }
}

/// Makes the page of a folder anew.
pub fn run(command: &ReportArgs) -> Result<Made> {
    let place = command.result.as_path();
    let painter = if command.png { Some(Painter::new()?) } else { None };
    let bytes = match place.join(COMPARISON).is_file() {
        true => comparison_anew(place, painter.as_ref())?,
        false => fit_anew(place, painter.as_ref())?,
    };
    Ok(Made { page: place.join("report.html").display().to_string(), bytes })
}

/// What a folder of `compare` is known by.
const COMPARISON: &str = "compare.json";

fn comparison_anew(place: &Path, painter: Option<&Painter>) -> Result<usize> {
    let read = |name: &str| inside::read_text(place, name);
    let record = serde_json::from_str(&read(COMPARISON)?)
        .map_err(|e| metastate_report::Error::Damaged { path: place.join(COMPARISON), what: format!("is not what compare wrote ({e})") })?;
    let mut names: Vec<String> = std::fs::read_dir(place)
        .map_err(|cause| metastate_report::Error::Io { path: place.to_owned(), doing: "read", cause })?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".svg"))
        .collect();
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

fn fit_anew(place: &Path, painter: Option<&Painter>) -> Result<usize> {
    let loaded = metastate_report::load(place)?;
    let extras = metastate_report::load_extras(place, loaded.xi.len())?;
    let labels: Vec<Label> = loaded.column("label")?.into_iter().map(|l| Label::from(l.as_str())).collect();
    // As many as there were, also where the last ones are empty.
    let count = match recorded_options(place, &loaded)?.1.hard() {
        Clusters::Count(k) => k,
        _ => loaded.model().rank(),
    };
    let partition = Partition::numbered(loaded.zones(count)?, &loaded.xi, count);
    let coordinates = loaded.coordinates()?;
    let result = FitResult {
        labels: &labels,
        xi: &loaded.xi,
        coordinates: coordinates.as_deref(),
        cell: extras.cell,
        factors: &loaded.factors,
        model: loaded.model(),
        partition: &partition,
        flows: None,
        witness: &loaded.witness,
        extra: &[],
    };
    Ok(metastate_report::remake(place, &loaded.summary, &result, &extras, painter)?)
}
