//! Reads a result folder again. Everything in it may have been changed: nothing is taken on trust.

use std::collections::HashSet;
use std::path::Path;

use metastate::proof::Witness;
use metastate::solve::Factors;
use metastate::{Label, Mat, Slices};

use crate::error::{Result, damaged};
use crate::npz::{Array, read_npz};
use crate::page::{ControlStory, Extras};
use crate::plan::{ACTIONS_FILE, load_plan};
use crate::summary::{RefitRecord, Summary};
use crate::tables::{DESTINATIONS_FILE, parse_csv};
use crate::zones::ZONE_FLOWS_FILE;
use crate::{hash, inside, slices};

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
    /// Directions of the rows and of the columns that the whitened problem charges less, where that was solved.
    pub prices: Option<(Mat, Mat)>,
    /// `states.csv`, header included.
    pub states: Vec<Vec<String>>,
    /// `latent.csv`, header included; empty where the chain does not go on from where it arrives.
    pub latent: Vec<Vec<String>>,
    /// The destinations, where they are another set than the states.
    pub destinations: Option<Destinations>,
    /// Which row of V is which slice and which state, where there are slices.
    pub slices: Option<Slices>,
    /// With slices, the model of the chain without them.
    pub whole: Option<Factors>,
    /// `metastates.csv`, header included.
    pub metastates: Vec<Vec<String>>,
    /// Files whose bytes are not those that the summary names.
    pub changed: Vec<String>,
}

/// `destinations.csv`.
#[derive(Debug, Clone)]
pub struct Destinations {
    /// All of it, header included; the first column holds the labels.
    pub table: Vec<Vec<String>>,
}

impl Destinations {
    /// The labels, one a row of V.
    pub fn labels(&self) -> Vec<Label> {
        labels(&self.table)
    }
}

/// The first column as labels.
fn labels(table: &[Vec<String>]) -> Vec<Label> {
    table.iter().skip(1).map(|row| Label::from(row.first().map_or("", String::as_str))).collect()
}

/// More meta-states than states are of no use; a few are allowed, whatever the number of states.
const SPARE_COLUMNS: usize = 64;
/// Degrees; everything on the map is nearer.
const FARTHEST: f64 = 400.0;

/// Reads all files of a result. Sizes, kinds and numbers are checked against each other here, so that nobody else has to: what comes out can be
/// computed with. Whether it is *true* is for `metastate verify` to say.
pub fn load(folder: &Path) -> Result<SavedResult> {
    let summary = Summary::read(folder)?;
    let file = |name: &str| folder.join(name);
    let [u, v, xi] = arrays(&file("factors.npz"), ["U", "V", "xi"])?;
    let sides = |u: &Factors| (u.u.rows(), u.v.rows());
    let two_sided = summary.slices.as_ref().map(|s| s.rows).or(summary.destinations);
    let factors = factors(&file("factors.npz"), u, v, two_sided, None)?;
    let (states, ends) = sides(&factors);
    let xi = list(&file("factors.npz"), xi, states)?;
    if xi.iter().any(|x| *x < 0.0) || xi.iter().sum::<f64>() <= 0.0 {
        return Err(damaged(&file("factors.npz"), "holds weights `xi` that are negative or all zero"));
    }
    let table = |name: &str| table(folder, name);
    let refit = load_refit(folder, two_sided, (states, ends))?;
    let slices = summary.slices.as_ref().map(|record| slices::load_slice_rows(folder, record, states)).transpose()?;
    let destinations = two_sided.filter(|_| slices.is_none());
    let loaded = SavedResult {
        whole: slices.as_ref().map(|s| s.whole_model(refit.as_ref().unwrap_or(&factors))),
        slices,
        refit,
        prices: load_prices(folder, &summary, (states, ends))?,
        witness: load_witness(&file("certificate.npz"), (states, ends))?,
        states: table("states.csv")?,
        latent: if destinations.is_none() { table("latent.csv")? } else { Vec::new() },
        destinations: destinations.map(|_| table(DESTINATIONS_FILE).map(|table| Destinations { table })).transpose()?,
        metastates: table("metastates.csv")?,
        changed: changed(folder, &summary)?,
        factors,
        xi,
        summary,
    };
    check_states(&file("states.csv"), &loaded.states, states)?;
    if let Some(d) = &loaded.destinations {
        check_states(&file(DESTINATIONS_FILE), &d.table, ends)?;
    }
    check_ranks(&file("summary.json"), &loaded)?;
    Ok(loaded)
}

/// Files whose bytes are not those that the summary names.
fn changed(folder: &Path, summary: &Summary) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for (name, sha256) in &summary.files {
        // A name from the file must not lead out of the folder, and a file that is gone has changed.
        let plain = Path::new(name).components().count() == 1 && !name.contains("..") && !Path::new(name).is_absolute();
        let same = plain && inside::look(folder, name)?.is_some() && hash::of_file(&folder.join(name))?.1 == *sha256;
        if !same {
            changed.push(name.clone());
        }
    }
    Ok(changed)
}

/// One header, one row a state, all of the same length, no label twice.
fn check_states(path: &Path, table: &[Vec<String>], states: usize) -> Result<()> {
    let Some((header, rows)) = table.split_first() else { return Err(damaged(path, "is empty")) };
    if rows.len() != states {
        return Err(damaged(path, format!("names {} states, and the factors have {states}", rows.len())));
    }
    if let Some(at) = rows.iter().position(|row| row.len() != header.len()) {
        return Err(damaged(path, format!("has {} fields in row {}, and {} names of columns", rows[at].len(), at + 1, header.len())));
    }
    let Some(label) = header.iter().position(|name| name == "label") else { return Err(damaged(path, "has no column `label`")) };
    let mut seen = HashSet::new();
    match rows.iter().find(|row| !seen.insert(row[label].as_str())) {
        Some(row) => Err(damaged(path, format!("names the state `{}` twice", row[label].escape_debug()))),
        None => Ok(()),
    }
}

/// Numbers of meta-states that the records name: loops run up to them.
fn check_ranks(path: &Path, loaded: &SavedResult) -> Result<()> {
    let most = loaded.xi.len() + SPARE_COLUMNS;
    let choice = loaded.summary.choice.iter().flat_map(|c| [c.rank, c.best_rank]);
    let named = choice.chain(loaded.summary.refit.iter().map(RefitRecord::rank)).chain([loaded.summary.rank]);
    match named.into_iter().find(|rank| *rank > most) {
        Some(rank) => Err(damaged(path, format!("names a rank of {rank}; there are {} states", loaded.xi.len()))),
        None => Ok(()),
    }
}

impl SavedResult {
    /// The labels of the states.
    pub fn labels(&self) -> Vec<Label> {
        labels(&self.states)
    }

    /// What tables, page and forecasts speak of: the refit where there is one, else the solution of the stated problem.
    pub fn model(&self) -> &Factors {
        self.refit.as_ref().unwrap_or(&self.factors)
    }

    /// The same where the chain goes on: with slices, the model of the chain without them.
    pub fn going_on(&self) -> &Factors {
        self.whole.as_ref().unwrap_or(self.model())
    }

    /// A column of `states.csv`.
    pub fn column(&self, name: &str) -> Result<Vec<String>> {
        let missing = || damaged(Path::new("states.csv"), format!("has no column `{name}`"));
        let at = self.states.first().and_then(|head| head.iter().position(|h| h == name)).ok_or_else(missing)?;
        self.states[1..].iter().map(|row| row.get(at).cloned().ok_or_else(missing)).collect()
    }

    /// The zone of each state, from 0, of so many zones.
    pub fn zones(&self, count: usize) -> Result<Vec<u32>> {
        let zone = |text: String| match text.parse::<u32>() {
            Ok(z) if (1..=count).contains(&(z as usize)) => Ok(z - 1),
            _ => Err(damaged(
                Path::new("states.csv"),
                format!("has `{text}` in the column `zone`; the zones are numbered from 1 to {count}"),
            )),
        };
        self.column("zone")?.into_iter().map(zone).collect()
    }

    /// Longitude and latitude of each state, where the table has them.
    pub fn coordinates(&self) -> Result<Option<Vec<(f64, f64)>>> {
        let named = |name: &str| self.states.first().is_some_and(|header| header.iter().any(|h| h == name));
        if !named("lon") || !named("lat") {
            return Ok(None);
        }
        let places: Vec<(f64, f64)> = self.numbers("lon")?.into_iter().zip(self.numbers("lat")?).collect();
        // NaN stands for a place that nobody knows.
        match places.iter().find(|p| p.0.abs() > FARTHEST || p.1.abs() > FARTHEST) {
            Some((lon, lat)) => {
                Err(damaged(Path::new("states.csv"), format!("has a place at {lon}, {lat}, which is no longitude and latitude")))
            }
            None => Ok(Some(places)),
        }
    }

    /// The same as numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        let number = |text: String| {
            text.parse().map_err(|_| damaged(Path::new("states.csv"), format!("has `{text}` in the column `{name}`; a number is needed")))
        };
        self.column(name)?.into_iter().map(number).collect()
    }
}

/// `zone_flows.csv` of so many zones: shares of all transitions, and the transitions where they were counted.
pub fn load_zone_flows(folder: &Path, zones: usize) -> Result<Option<(Mat, Option<Mat>)>> {
    let path = folder.join(ZONE_FLOWS_FILE);
    let Some(bytes) = inside::read_if_there(folder, ZONE_FLOWS_FILE)? else { return Ok(None) };
    let rows = String::from_utf8(bytes).ok().and_then(|text| parse_csv(&text)).ok_or_else(|| damaged(&path, "is no table"))?;
    let (header, rows) = rows.split_first().ok_or_else(|| damaged(&path, "is empty"))?;
    let column = |name: &str| header.iter().position(|h| h == name);
    let square = rows.len() == zones * zones && rows.iter().all(|row| row.len() == header.len());
    let in_order = |from: usize, to: usize| {
        rows.iter().enumerate().all(|(k, r)| r[from] == (k / zones + 1).to_string() && r[to] == (k % zones + 1).to_string())
    };
    let (Some(from), Some(to), Some(share), true) = (column("from_zone"), column("to_zone"), column("share"), square) else {
        return Err(damaged(&path, format!("has not one row for each pair of the {zones} zones, or other columns")));
    };
    if !in_order(from, to) {
        return Err(damaged(&path, "has its pairs of zones in another order"));
    }
    let numbers = |at: usize| -> Result<Mat> {
        let number = |row: &Vec<String>| row[at].parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
        let all: Option<Vec<f64>> = rows.iter().map(number).collect();
        all.and_then(|all| Mat::from_vec(zones, zones, all).ok()).ok_or_else(|| damaged(&path, "holds something that is no share"))
    };
    Ok(Some((numbers(share)?, column("transitions").map(numbers).transpose()?)))
}

/// What the page shows beyond the tables, for so many states; nothing where the folder was written without it.
pub fn load_extras(folder: &Path, states: usize) -> Result<Extras> {
    let path = folder.join("page.json");
    let Some(bytes) = inside::read_if_there(folder, "page.json")? else { return Ok(Extras::default()) };
    let extras: Extras = serde_json::from_slice(&bytes).map_err(|e| damaged(&path, format!("cannot be read ({e})")))?;
    extras.check(states).map_err(|why| damaged(&path, why))?;
    let control = match inside::read_if_there(folder, ACTIONS_FILE)? {
        None => None,
        Some(bytes) => {
            let path = folder.join(ACTIONS_FILE);
            let text = String::from_utf8(bytes).map_err(|_| damaged(&path, "is not UTF-8"))?;
            Some(ControlStory::of(&text, load_plan(folder)?).map_err(|why| damaged(&path, why))?)
        }
    };
    Ok(Extras { control, ..extras })
}

fn load_refit(folder: &Path, two_sided: Option<usize>, sides: (usize, usize)) -> Result<Option<Factors>> {
    let path = folder.join("refit.npz");
    if inside::look(folder, "refit.npz")?.is_none() {
        return Ok(None);
    }
    let [u, v] = arrays(&path, ["U", "V"])?;
    factors(&path, u, v, two_sided, Some(sides)).map(Some)
}

/// U and V of the same size (`d x s`), or with as many rows of V as there are destinations; all numbers finite.
fn factors(path: &Path, u: Array, v: Array, two_sided: Option<usize>, sides: Option<(usize, usize)>) -> Result<Factors> {
    let (u, v) = (matrix(path, u)?, matrix(path, v)?);
    let size = format!("U of {} x {} and V of {} x {}", u.rows(), u.cols(), v.rows(), v.cols());
    if (two_sided.unwrap_or(u.rows()), u.cols()) != (v.rows(), v.cols()) || u.cols() == 0 || u.rows() == 0 || v.rows() == 0 {
        let demand = match two_sided {
            None => "they must have the same size, and at least one row and column".to_owned(),
            Some(n) => format!("V must have a row for each of the {n} destinations, and as many columns as U"),
        };
        return Err(damaged(path, format!("holds {size}; {demand}")));
    }
    if let Some((states, _)) = sides.filter(|s| *s != (u.rows(), v.rows())) {
        return Err(damaged(path, format!("holds {size}; there are {states} states")));
    }
    if u.cols() > u.rows() + SPARE_COLUMNS {
        return Err(damaged(path, format!("holds {size}: more columns than states")));
    }
    Ok(Factors { u, v })
}

/// The directions of a whitened problem.
fn load_prices(folder: &Path, summary: &Summary, (states, ends): (usize, usize)) -> Result<Option<(Mat, Mat)>> {
    if summary.whitened.is_none() {
        return Ok(None);
    }
    let path = folder.join("prices.npz");
    let [rows, columns] = arrays(&path, ["rows", "columns"])?;
    let (rows, columns) = (matrix(&path, rows)?, matrix(&path, columns)?);
    if rows.rows() != states || columns.rows() != ends || rows.cols().max(columns.cols()) > states.min(ends) {
        return Err(damaged(
            &path,
            format!("holds directions of {} rows and {} columns; there are {states} and {ends}", rows.rows(), columns.rows()),
        ));
    }
    Ok(Some((rows, columns)))
}

/// The dual point: A, B, left and right a row for each state, as many multipliers, and one excess for each pair of vectors.
fn load_witness(path: &Path, (states, ends): (usize, usize)) -> Result<Witness> {
    let [a, b, mu, left, right, excess] = arrays(path, ["a", "b", "mu", "left", "right", "excess"])?;
    let (a, b, left, right) = (matrix(path, a)?, matrix(path, b)?, matrix(path, left)?, matrix(path, right)?);
    for (name, x, other) in [("a", &a, &b), ("left", &left, &right)] {
        if (x.rows(), other.rows()) != (states, ends) || x.cols() != other.cols() || x.cols() > states + SPARE_COLUMNS {
            return Err(damaged(
                path,
                format!(
                    "holds an array `{name}` of {} x {}, and its partner is of another size or there are {states} states",
                    x.rows(),
                    x.cols()
                ),
            ));
        }
    }
    let (mu, excess) = (list(path, mu, states)?, list(path, excess, left.cols())?);
    Ok(Witness { a, b, mu, left, right, excess })
}

/// A list of this length, all numbers finite.
fn list(path: &Path, array: Array, length: usize) -> Result<Vec<f64>> {
    if array.shape != [length] {
        return Err(damaged(path, format!("holds `{}` of the shape {:?}; {length} numbers are needed", array.name, array.shape)));
    }
    finite(path, &array.name, &array.data)?;
    Ok(array.data)
}

fn matrix(path: &Path, array: Array) -> Result<Mat> {
    finite(path, &array.name, &array.data)?;
    let name = array.name.clone();
    array.into_matrix().ok_or_else(|| damaged(path, format!("holds an array `{name}` that is no matrix")))
}

fn finite(path: &Path, name: &str, data: &[f64]) -> Result<()> {
    match data.iter().find(|x| !x.is_finite()) {
        Some(x) => Err(damaged(path, format!("holds `{x}` in the array `{name}`; finite numbers are needed"))),
        None => Ok(()),
    }
}

/// These arrays, each once.
fn arrays<const N: usize>(path: &Path, names: [&str; N]) -> Result<[Array; N]> {
    let mut all = read_npz(path)?;
    if let Some(other) = all.iter().find(|a| !names.contains(&a.name.as_str())) {
        return Err(damaged(path, format!("holds an array `{}` that no result has", other.name.escape_debug())));
    }
    let mut found = Vec::new();
    for name in names {
        let at = all.iter().position(|a| a.name == name).ok_or_else(|| damaged(path, format!("holds no array `{name}`")))?;
        found.push(all.swap_remove(at));
    }
    found.try_into().map_err(|_| damaged(path, "holds other arrays"))
}

fn table(folder: &Path, name: &str) -> Result<Vec<Vec<String>>> {
    let text = inside::read_text(folder, name)?;
    parse_csv(&text).ok_or_else(|| damaged(&folder.join(name), "has a quote that is never closed"))
}
