//! What a fit hands over, and how it becomes a folder.

use std::path::Path;

use metastate::Label;
use metastate::aggregate::{Partition, ZoneFlows};
use metastate::linalg::{Mat, largest_entry, thin};
use metastate::proof::Witness;
use metastate::solve::Factors;

use crate::error::{Result, damaged, writing};
use crate::folder::{Draft, write_file};
use crate::hash;
use crate::inside;
use crate::npz::{Array, npz_bytes};
use crate::page::{self, Extras};
use crate::png::Painter;
use crate::summary::Summary;
use crate::zones::ZoneSet;
use crate::{parquet_table, plots, tables};

/// A solution with the names of its states.
#[derive(Debug, Clone, Copy)]
pub struct FitResult<'a> {
    /// Labels, one a state.
    pub labels: &'a [Label],
    /// Share of each state.
    pub xi: &'a [f64],
    /// Longitude and latitude of each state, where known.
    pub coordinates: Option<&'a [(f64, f64)]>,
    /// Side of a cell in degrees, when the states are cells.
    pub cell: Option<f64>,
    /// U and V of the stated problem, for `factors.npz`.
    pub factors: &'a Factors,
    /// What tables, zones, page and plots show: the refit where there is one, else the same.
    pub model: &'a Factors,
    /// The zones: hard, by the largest membership, by k-means, or as many as were asked for.
    pub partition: &'a Partition,
    /// What moves between them, for the tables of zones; none where the tables stand already, or origins and destinations are different sets.
    pub flows: Option<&'a ZoneFlows>,
    /// The dual point behind the bound.
    pub witness: &'a Witness,
    /// Further files, by name.
    pub extra: &'a [(&'static str, Vec<u8>)],
}

impl FitResult<'_> {
    /// Whether there is a zone for each meta-state, numbered so that zone j shares most with meta-state j. A number of zones that was asked for
    /// (`--clusters 3`) is ordered by mass instead, also where it happens to be the rank.
    pub fn zones_are_metastates(&self) -> bool {
        let zones = self.partition;
        zones.clusters() == self.model.rank() && zones.numbered_as_columns(&self.model.u, self.xi).labels == zones.labels
    }
}

/// The meta-states as the largest membership of each state has them. Zones may be others: k-means makes them, or as many as were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct LargestMembership {
    /// The meta-state of each state, from 0.
    pub metastate: Vec<usize>,
    /// States in each.
    pub sizes: Vec<usize>,
    /// `sum_i xi_i u_ij`.
    pub masses: Vec<f64>,
}

impl LargestMembership {
    /// The largest membership decides; the lower number when two are equal.
    pub fn new(u: &Mat, xi: &[f64]) -> Self {
        let metastate: Vec<usize> = (0..u.rows()).map(|i| largest_entry(u.row(i))).collect();
        let mut sizes = vec![0; u.cols()];
        metastate.iter().for_each(|&j| sizes[j] += 1);
        let mut masses = vec![0.0; u.cols()];
        for (i, x) in xi.iter().enumerate() {
            masses.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += x * u);
        }
        LargestMembership { metastate, sizes, masses }
    }
}

/// Writes the folder and hands back the summary with the hashes of its files.
pub fn write(place: &Path, force: bool, mut summary: Summary, result: &FitResult, extras: &Extras) -> Result<Summary> {
    let largest = LargestMembership::new(&result.model.u, result.xi);
    let draft = Draft::begin(place)?;
    let mut put = |name: &str, bytes: &[u8]| {
        summary.files.insert(name.to_owned(), hash::of_bytes(bytes));
        draft.file(name, bytes)
    };
    let factors = [Array::matrix("U", &result.factors.u), Array::matrix("V", &result.factors.v), Array::list("xi", result.xi)];
    put("factors.npz", &npz_bytes(&factors).map_err(writing(place))?)?;
    let w = result.witness;
    let witness = [
        Array::matrix("a", &w.a),
        Array::matrix("b", &w.b),
        Array::list("mu", &w.mu),
        Array::matrix("left", &w.left),
        Array::matrix("right", &w.right),
        Array::list("excess", &w.excess),
    ];
    put("certificate.npz", &npz_bytes(&witness).map_err(writing(place))?)?;
    put("states.csv", tables::states(result, &largest.metastate).as_bytes())?;
    put(
        "states.parquet",
        &parquet_table::states(result, &largest.metastate).map_err(|e| damaged(place, format!("cannot be written ({e})")))?,
    )?;
    put("metastates.csv", tables::metastates(result, &largest).as_bytes())?;
    let mut latent = Mat::default();
    thin::product(&result.model.v.transposed(), &result.model.u, &mut latent);
    put("latent.csv", tables::latent(&latent).as_bytes())?;
    let map = ZoneSet {
        partition: result.partition,
        flows: result.flows,
        labels: result.labels,
        xi: result.xi,
        u: &result.model.u,
        cells: result.coordinates.zip(result.cell),
    };
    put("zones.csv", map.table().as_bytes())?;
    if let Some(text) = map.geojson() {
        put("zones.geojson", text.as_bytes())?;
    }
    if let Some(bytes) = map.geoparquet() {
        put("zones.parquet", &bytes.map_err(|e| damaged(place, format!("cannot be written ({e})")))?)?;
    }
    for (name, bytes) in result.extra {
        put(name, bytes)?;
    }
    // Serialising numbers and text cannot fail.
    put("page.json", serde_json::to_string(extras).unwrap_or_default().as_bytes())?;
    for (name, svg) in plots::all(result, summary.lag(), extras) {
        draft.file(&format!("plots/{name}"), svg.as_bytes())?;
    }
    draft.file("report.html", page::render(&summary, result, extras).as_bytes())?;
    draft.file("summary.json", json(&summary).as_bytes())?;
    draft.finish(force)?;
    Ok(summary)
}

/// `report.html` and the plots, by their names in the folder: what [`remake`] writes there.
pub fn pictures(summary: &Summary, result: &FitResult, extras: &Extras) -> Vec<(String, String)> {
    let plots = plots::all(result, summary.lag(), extras).into_iter().map(|(name, svg)| (format!("plots/{name}"), svg));
    plots.chain([("report.html".to_owned(), page::render(summary, result, extras))]).collect()
}

/// The page and the plots of a folder that stands; with a painter, the plots as PNG too.
pub fn remake(place: &Path, summary: &Summary, result: &FitResult, extras: &Extras, painter: Option<&Painter>) -> Result<usize> {
    inside::make_folder(place, "plots")?;
    for (name, svg) in plots::all(result, summary.lag(), extras) {
        let file = place.join("plots").join(name);
        write_file(&file, svg.as_bytes())?;
        if let Some(painter) = painter {
            write_file(&file.with_extension("png"), &painter.png(&file, &svg)?)?;
        }
    }
    let html = page::render(summary, result, extras);
    write_file(&place.join("report.html"), html.as_bytes())?;
    Ok(html.len())
}

/// As it stands in the folder and on standard output.
fn json(summary: &Summary) -> String {
    // Maps with text keys and plain numbers always serialise.
    serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"
}
