//! What a fit hands over, and how it becomes a folder.

use std::path::Path;

use metastate::Label;
use metastate::linalg::{Mat, thin};
use metastate::solve::Factors;

use crate::error::{Result, damaged, writing};
use crate::folder::Draft;
use crate::hash;
use crate::npz::{Array, npz_bytes};
use crate::summary::Summary;
use crate::{geojson, parquet_table, tables};

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
    /// U and V.
    pub factors: &'a Factors,
    /// The dual point behind the bound: its left factor,
    pub witness_a: &'a Mat,
    /// its right factor,
    pub witness_b: &'a Mat,
    /// and its multipliers.
    pub witness_mu: &'a [f64],
    /// Further files, by name.
    pub extra: &'a [(&'static str, Vec<u8>)],
}

/// Hard meta-states: each state goes where its membership is largest.
#[derive(Debug, Clone, PartialEq)]
pub struct Zones {
    /// The meta-state of each state, from 0.
    pub metastate: Vec<usize>,
    /// States in each.
    pub sizes: Vec<usize>,
    /// `sum_i xi_i u_ij`.
    pub masses: Vec<f64>,
}

impl Zones {
    /// The largest membership decides; the lower number when two are equal.
    pub fn by_membership(u: &Mat, xi: &[f64]) -> Self {
        let largest = |row: &[f64]| (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best });
        let metastate: Vec<usize> = (0..u.rows()).map(|i| largest(u.row(i))).collect();
        let mut sizes = vec![0; u.cols()];
        metastate.iter().for_each(|&j| sizes[j] += 1);
        let mut masses = vec![0.0; u.cols()];
        for (i, x) in xi.iter().enumerate() {
            masses.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += x * u);
        }
        Zones { metastate, sizes, masses }
    }
}

/// Writes the folder and hands back the summary with the hashes of its files.
pub fn write(place: &Path, force: bool, mut summary: Summary, result: &FitResult) -> Result<Summary> {
    let zones = Zones::by_membership(&result.factors.u, result.xi);
    let draft = Draft::begin(place)?;
    let mut put = |name: &str, bytes: &[u8]| {
        summary.files.insert(name.to_owned(), hash::of_bytes(bytes));
        draft.file(name, bytes)
    };
    let factors = [Array::matrix("U", &result.factors.u), Array::matrix("V", &result.factors.v), Array::list("xi", result.xi)];
    put("factors.npz", &npz_bytes(&factors).map_err(writing(place))?)?;
    let witness = [Array::matrix("a", result.witness_a), Array::matrix("b", result.witness_b), Array::list("mu", result.witness_mu)];
    put("certificate.npz", &npz_bytes(&witness).map_err(writing(place))?)?;
    put("states.csv", tables::states(result, &zones).as_bytes())?;
    put("states.parquet", &parquet_table::states(result, &zones).map_err(|e| damaged(place, format!("cannot be written ({e})")))?)?;
    put("metastates.csv", tables::metastates(result, &zones).as_bytes())?;
    let mut latent = Mat::default();
    thin::product(&result.factors.v.transposed(), &result.factors.u, &mut latent);
    put("latent.csv", tables::latent(&latent).as_bytes())?;
    if let Some(text) = geojson::zones(result, &zones) {
        put("zones.geojson", text.as_bytes())?;
    }
    for (name, bytes) in result.extra {
        put(name, bytes)?;
    }
    draft.file("summary.json", json(&summary).as_bytes())?;
    draft.finish(force)?;
    Ok(summary)
}

/// As it stands in the folder and on standard output.
fn json(summary: &Summary) -> String {
    // Maps with text keys and plain numbers always serialise.
    serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"
}
