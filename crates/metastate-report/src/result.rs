//! What a fit hands over, and how it becomes a folder.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use metastate::Mat;
use metastate::aggregate::{Partition, ZoneFlows};
use metastate::proof::Witness;
use metastate::solve::Factors;
use metastate::workspace::{largest_entry, thin};
use metastate::{Label, Slices};

use crate::error::{Result, damaged};
use crate::folder::{Draft, write_file};
use crate::ground::Ground;
use crate::hash;
use crate::inside;
use crate::npz::{View, write_npz};
use crate::page::{self, Extras};
use crate::png::Painter;
use crate::summary::Summary;
use crate::zones::{ZONE_FLOWS_FILE, ZoneSet};
use crate::{parquet_table, plots, tables};

/// A solution with the names of its states.
#[derive(Debug, Clone, Copy)]
pub struct FitResult<'a> {
    /// Labels, one a state.
    pub labels: &'a [Label],
    /// Labels of the destinations, where they are another set.
    pub destinations: Option<&'a [Label]>,
    /// Share of each state.
    pub xi: &'a [f64],
    /// Longitude and latitude of each state, where known.
    pub coordinates: Option<&'a [(f64, f64)]>,
    /// What people call the states, where that is known.
    pub names: Option<&'a [String]>,
    /// What the states are on the map, where they have places.
    pub ground: Option<Ground>,
    /// What the zones are called; empty where only numbers are known.
    pub zone_names: &'a [String],
    /// Whether people would know the zones by these names: names of cells are their corners.
    pub zones_have_names: bool,
    /// U and V of the stated problem, for `factors.npz`.
    pub factors: &'a Factors,
    /// What tables, zones, page and plots show: the refit where there is one, else the same.
    pub model: &'a Factors,
    /// The zones: hard, by the largest membership, by k-means, or as many as were asked for.
    pub partition: &'a Partition,
    /// What moves between them, for the tables of zones; none where the tables stand already, or origins and destinations are different sets.
    pub flows: Option<&'a ZoneFlows>,
    /// The same in transitions, where they were counted.
    pub trips: Option<&'a Mat>,
    /// The refit, for `refit.npz`, where there is one.
    pub refit: Option<&'a Factors>,
    /// The dual point behind the bound.
    pub witness: &'a Witness,
    /// The shown V with its slices told apart, where there are some; `model` is then their sum.
    pub slices: Option<SlicedV<'a>>,
    /// Further files, by name.
    pub extra: &'a [(&'static str, Vec<u8>)],
}

/// V, and which of its rows is which slice and which state.
#[derive(Debug, Clone, Copy)]
pub struct SlicedV<'a> {
    /// The rows.
    pub slices: &'a Slices,
    /// The profiles.
    pub v: &'a Mat,
}

impl FitResult<'_> {
    /// The label of a destination.
    pub(crate) fn destination(&self, j: usize) -> String {
        self.destinations.unwrap_or(self.labels)[j].to_string()
    }

    /// What people call a destination, or its label.
    pub(crate) fn destination_name(&self, j: usize) -> String {
        if self.destinations.is_some() { self.destination(j) } else { self.state_name(j) }
    }

    /// What a destination weighs where two are equal otherwise: its share as an origin, nothing where it is none.
    pub(crate) fn destination_weight(&self, j: usize) -> f64 {
        if self.destinations.is_some() { 0.0 } else { self.xi[j] }
    }

    /// What people call a state, or its label.
    pub fn state_name(&self, i: usize) -> String {
        self.names.map(|names| names[i].clone()).filter(|name| !name.is_empty()).unwrap_or_else(|| self.labels[i].to_string())
    }

    /// The zones with all that their files tell.
    pub fn zone_set(&self) -> ZoneSet<'_> {
        ZoneSet {
            partition: self.partition,
            flows: self.flows,
            trips: self.trips,
            labels: self.labels,
            state_names: self.names,
            names: Some(self.zone_names).filter(|names| !names.is_empty()),
            xi: self.xi,
            u: &self.model.u,
            places: self.coordinates.zip(self.ground),
            alike: self.zones_are_metastates(),
        }
    }

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
    summary.files = large_files(&draft, result, &largest.metastate)?;
    let mut put = |name: &str, bytes: &[u8]| {
        summary.files.insert(name.to_owned(), hash::of_bytes(bytes));
        draft.file(name, bytes)
    };
    put("metastates.csv", tables::metastates(result, &largest).as_bytes())?;
    if result.destinations.is_none() {
        let mut latent = Mat::default();
        thin::product(&result.model.v.transposed(), &result.model.u, &mut latent);
        put("latent.csv", tables::latent(&latent).as_bytes())?;
    }
    for (name, bytes) in zone_files(place, result)? {
        put(name, &bytes)?;
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

type Files = Vec<(&'static str, Vec<u8>)>;

/// The table of states, twice, for a folder that is made anew.
fn state_files(place: &Path, result: &FitResult, largest: &LargestMembership) -> Result<Files> {
    let (mut table, mut twin) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
    tables::states(&mut table, result, &largest.metastate)
        .and_then(|()| parquet_table::states(&mut twin, result, &largest.metastate))
        .map_err(|e| damaged(place, format!("cannot be written ({e})")))?;
    Ok(vec![("states.csv", table.into_inner()), ("states.parquet", twin.into_inner())])
}

/// Everything about zones: their table, what moves between them, and where places are known their maps.
fn zone_files(place: &Path, result: &FitResult) -> Result<Files> {
    let set = result.zone_set();
    let mut files = vec![("zones.csv", set.table().into_bytes())];
    files.extend(set.flow_table().map(|text| (ZONE_FLOWS_FILE, text.into_bytes())));
    files.extend(set.geojson().map(|text| ("zones.geojson", text.into_bytes())));
    if let Some(bytes) = set.geoparquet() {
        files.push(("zones.parquet", bytes.map_err(|e| damaged(place, format!("cannot be written ({e})")))?));
    }
    Ok(files)
}

/// Writes the folder that stands anew with what has become known about places and zones: tables, maps, page and plots as a fit would have written them; everything
/// else stays as it is, byte by byte. Whole or not at all.
pub fn put_places(place: &Path, mut summary: Summary, result: &FitResult, extras: &Extras) -> Result<usize> {
    let largest = LargestMembership::new(&result.model.u, result.xi);
    let draft = Draft::begin(place)?;
    let mut anew: Files = state_files(place, result, &largest)?;
    anew.extend(zone_files(place, result)?);
    anew.push(("page.json", serde_json::to_vec(extras).unwrap_or_default()));
    // A map that is no more: places became points.
    if !anew.iter().any(|(name, _)| *name == "zones.parquet") {
        summary.files.remove("zones.parquet");
    }
    for name in summary.files.keys().filter(|name| !anew.iter().any(|(n, _)| n == name)) {
        draft.file(name, &inside::read(place, name)?)?;
    }
    for (name, bytes) in &anew {
        summary.files.insert((*name).to_owned(), hash::of_bytes(bytes));
        draft.file(name, bytes)?;
    }
    for (name, svg) in plots::all(result, summary.lag(), extras) {
        draft.file(&format!("plots/{name}"), svg.as_bytes())?;
    }
    let html = page::render(&summary, result, extras);
    draft.file("report.html", html.as_bytes())?;
    draft.file("summary.json", json(&summary).as_bytes())?;
    draft.finish(true)?;
    Ok(html.len())
}

/// What grows with the number of states, written piece by piece: nothing of it is held a second time. The names with their hashes.
fn large_files(draft: &Draft, result: &FitResult, metastate: &[usize]) -> Result<BTreeMap<String, String>> {
    let w = result.witness;
    let factors = vec![View::matrix("U", &result.factors.u), View::matrix("V", &result.factors.v), View::list("xi", result.xi)];
    let refit = result.refit.map(|x| ("refit.npz", vec![View::matrix("U", &x.u), View::matrix("V", &x.v)]));
    let witness = vec![
        View::matrix("a", &w.a),
        View::matrix("b", &w.b),
        View::list("mu", &w.mu),
        View::matrix("left", &w.left),
        View::matrix("right", &w.right),
        View::list("excess", &w.excess),
    ];
    let mut files = BTreeMap::new();
    for (name, arrays) in [("factors.npz", factors), ("certificate.npz", witness)].into_iter().chain(refit) {
        files.insert(name.to_owned(), draft.large_file(name, &mut |file| write_npz(file, &arrays))?);
    }
    files.insert("states.csv".to_owned(), draft.large_file("states.csv", &mut |file| tables::states(file, result, metastate))?);
    files.insert(
        "states.parquet".to_owned(),
        draft.large_file("states.parquet", &mut |file| parquet_table::states(file, result, metastate))?,
    );
    Ok(files)
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
