//! Reads a result folder again. Everything in it may have been changed: nothing is taken on trust.

use std::path::Path;

use metastate::proof::Witness;
use metastate::solve::Factors;

use crate::error::{Result, damaged, reading};
use crate::hash;
use crate::npz::{Array, read_npz};
use crate::page::Extras;
use crate::summary::Summary;
use crate::tables::parse_csv;

/// A result as its files tell it.
#[derive(Debug, Clone)]
pub struct SavedResult {
    /// `summary.json`.
    pub summary: Summary,
    /// U and V of the stated problem.
    pub factors: Factors,
    /// U and V of the refit, where there is one.
    pub refit: Option<Factors>,
    /// Share of each state.
    pub xi: Vec<f64>,
    /// The dual point behind the bound.
    pub witness: Witness,
    /// `states.csv`, header included.
    pub states: Vec<Vec<String>>,
    /// `latent.csv`, header included.
    pub latent: Vec<Vec<String>>,
    /// `metastates.csv`, header included.
    pub metastates: Vec<Vec<String>>,
    /// Files whose bytes are not those that the summary names.
    pub changed: Vec<String>,
}

/// Reads all files of a result.
pub fn load(folder: &Path) -> Result<SavedResult> {
    let summary = Summary::read(folder)?;
    let [u, v, xi] = arrays(&folder.join("factors.npz"), ["U", "V", "xi"])?;
    let [a, b, mu, left, right, excess] = arrays(&folder.join("certificate.npz"), ["a", "b", "mu", "left", "right", "excess"])?;
    let matrix = |array: Array, file: &str| {
        let name = array.name.clone();
        array.into_matrix().ok_or_else(|| damaged(&folder.join(file), format!("holds an array `{name}` that is no matrix")))
    };
    let mut changed = Vec::new();
    for (name, sha256) in &summary.files {
        // A name from the file must not lead out of the folder.
        let plain = Path::new(name).components().count() == 1 && !name.contains("..");
        if !plain || hash::of_file(&folder.join(name))?.1 != *sha256 {
            changed.push(name.clone());
        }
    }
    Ok(SavedResult {
        factors: Factors { u: matrix(u, "factors.npz")?, v: matrix(v, "factors.npz")? },
        refit: load_refit(&folder.join("refit.npz"))?,
        xi: xi.data,
        witness: Witness {
            a: matrix(a, "certificate.npz")?,
            b: matrix(b, "certificate.npz")?,
            mu: mu.data,
            left: matrix(left, "certificate.npz")?,
            right: matrix(right, "certificate.npz")?,
            excess: excess.data,
        },
        states: table(&folder.join("states.csv"))?,
        latent: table(&folder.join("latent.csv"))?,
        metastates: table(&folder.join("metastates.csv"))?,
        changed,
        summary,
    })
}

impl SavedResult {
    /// What tables, page and forecasts speak of: the refit where there is one, else the solution of the stated problem.
    pub fn model(&self) -> &Factors {
        self.refit.as_ref().unwrap_or(&self.factors)
    }

    /// A column of `states.csv`.
    pub fn column(&self, name: &str) -> Result<Vec<String>> {
        let missing = || damaged(Path::new("states.csv"), format!("has no column `{name}`"));
        let at = self.states.first().and_then(|head| head.iter().position(|h| h == name)).ok_or_else(missing)?;
        self.states[1..].iter().map(|row| row.get(at).cloned().ok_or_else(missing)).collect()
    }

    /// The same as numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        let number = |text: String| {
            text.parse().map_err(|_| damaged(Path::new("states.csv"), format!("has `{text}` in the column `{name}`; a number is needed")))
        };
        self.column(name)?.into_iter().map(number).collect()
    }
}

/// What the page shows beyond the tables; nothing where the folder was written without it.
pub fn load_extras(folder: &Path) -> Result<Extras> {
    let path = folder.join("page.json");
    if !path.exists() {
        return Ok(Extras::default());
    }
    let text = std::fs::read_to_string(&path).map_err(reading(&path))?;
    serde_json::from_str(&text).map_err(|e| damaged(&path, format!("cannot be read ({e})")))
}

fn load_refit(path: &Path) -> Result<Option<Factors>> {
    if !path.exists() {
        return Ok(None);
    }
    let [u, v] = arrays(path, ["U", "V"])?;
    let matrix = |array: Array| array.into_matrix().ok_or_else(|| damaged(path, "holds an array that is no matrix"));
    Ok(Some(Factors { u: matrix(u)?, v: matrix(v)? }))
}

fn arrays<const N: usize>(path: &Path, names: [&str; N]) -> Result<[Array; N]> {
    let all = read_npz(path)?;
    let mut found = Vec::new();
    for name in names {
        found.push(all.iter().find(|a| a.name == name).cloned().ok_or_else(|| damaged(path, format!("holds no array `{name}`")))?);
    }
    found.try_into().map_err(|_| damaged(path, "holds other arrays"))
}

fn table(path: &Path) -> Result<Vec<Vec<String>>> {
    let text = std::fs::read_to_string(path).map_err(reading(path))?;
    parse_csv(&text).ok_or_else(|| damaged(path, "has a quote that is never closed"))
}
