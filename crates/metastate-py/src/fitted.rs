//! A fit in memory, and results in folders, as arrays.

use std::path::PathBuf;
use std::sync::Arc;

use metastate::{Label, Mat, Slices};
use metastate_report::Claim;
use metastate_report::folder::Draft;
use metastate_tasks::error::CliError;
use metastate_tasks::fit::FitOutcome;
use metastate_tasks::verify;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors::to_python;
use crate::{kinetics, watched};

/// A fit, with its data, as the solver left it.
#[pyclass(frozen, module = "metastate._core")]
pub struct Fitted {
    pub solved: Arc<FitOutcome>,
    pub fit: metastate_tasks::args::FitArgs,
}

#[pymethods]
impl Fitted {
    /// What stands in `summary.json`.
    fn summary(&self) -> String {
        // Numbers and texts always serialise.
        serde_json::to_string(&self.solved.summary).unwrap_or_default()
    }

    /// All arrays.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = &self.solved;
        let chain = s.loaded.chain();
        let out = PyDict::new(py);
        out.set_item("U", matrix(py, &s.model.solution.factors.u)?)?;
        out.set_item("V", matrix(py, &s.model.solution.factors.v)?)?;
        if let Some(x) = s.model.refit.as_ref().map(metastate::fit::Refit::factors) {
            out.set_item("refit_U", matrix(py, &x.u)?)?;
            out.set_item("refit_V", matrix(py, &x.v)?)?;
        }
        out.set_item("xi", PyArray1::from_slice(py, chain.xi()))?;
        out.set_item("zone", PyArray1::from_vec(py, s.model.zones.labels.iter().map(|l| i64::from(*l)).collect()))?;
        out.set_item("labels", labels(py, chain.index().labels())?)?;
        if let Some(places) = &s.loaded.coordinates {
            out.set_item("lon", PyArray1::from_vec(py, places.iter().map(|p| p.0).collect()))?;
            out.set_item("lat", PyArray1::from_vec(py, places.iter().map(|p| p.1).collect()))?;
        }
        out.set_item("cell", s.loaded.cell())?;
        if let Some(k) = &s.kinetics {
            kinetics::put(py, &out, k)?;
        }
        if let Some(ends) = &s.destinations {
            out.set_item("destinations", labels(py, ends.iter().cloned())?)?;
        }
        if let Some(slices) = s.loaded.data.slices() {
            put_slices(py, &out, slices)?;
        }
        // What the smoothing of a score needs of the training data.
        let shown = s.loaded.shown_chain();
        if let Some(counts) = shown.counts() {
            let mut arrivals = vec![0.0; shown.p().cols()];
            counts.indices().iter().zip(counts.values()).for_each(|(&j, n)| arrivals[j as usize] += n);
            out.set_item("arrivals", PyArray1::from_vec(py, arrivals))?;
        }
        Ok(out)
    }

    /// Further files of the folder: `path.csv`, `ranks.csv`, `uncertainty.csv`.
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (name, bytes) in &self.solved.extra {
            out.set_item(name, PyBytes::new(py, bytes))?;
        }
        Ok(out)
    }

    /// Writes the result folder of the command.
    fn save(&self, py: Python<'_>, place: PathBuf, force: bool) -> PyResult<()> {
        let solved = Arc::clone(&self.solved);
        watched::run(py, None, None, move |_, stopper| {
            let _claim = Claim::folder(&place, force)?;
            let extras = solved.extras()?;
            stopper.go_on()?;
            solved.write(&place, force, &extras).map(drop)
        })
    }

    /// Recomputes everything in a folder written by `save`, from the data that are still in memory.
    fn verify(&self, py: Python<'_>, place: PathBuf) -> PyResult<String> {
        let (solved, fit) = (Arc::clone(&self.solved), self.fit.resolved());
        watched::run(py, None, None, move |reporter, _| {
            let (result, input, _) = verify::open(&place)?;
            let outcome = verify::recheck(&place, &(result, input, fit), &solved.loaded, false, reporter)?;
            serde_json::to_string(&outcome).map_err(|e| CliError::failed("E-CLI-WRITE", e.to_string()))
        })
    }
}

/// Which row of V is which slice and which state.
fn put_slices<'py>(py: Python<'py>, out: &Bound<'py, PyDict>, slices: &Slices) -> PyResult<()> {
    out.set_item("slices", labels(py, slices.labels().labels())?)?;
    out.set_item("slice_of_row", PyArray1::from_vec(py, slices.columns().iter().map(|c| i64::from(c.0)).collect()))?;
    out.set_item("state_of_row", PyArray1::from_vec(py, slices.columns().iter().map(|c| i64::from(c.1)).collect()))
}

/// A matrix as a NumPy array.
pub fn matrix<'py>(py: Python<'py>, m: &Mat) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyArray1::from_slice(py, m.as_slice()).reshape([m.rows(), m.cols()])?.into_any())
}

/// Numbers stay numbers, texts stay texts.
pub fn labels<'py>(py: Python<'py>, all: impl Iterator<Item = Label>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for label in all {
        match label {
            Label::Integer(n) => list.append(n)?,
            Label::Text(text) => list.append(text.to_string())?,
        }
    }
    Ok(list)
}

/// A result folder: its summary and its arrays, named as those of a fit.
#[pyfunction]
pub fn load<'py>(py: Python<'py>, place: PathBuf) -> PyResult<(String, Bound<'py, PyDict>)> {
    let told = |e: metastate_report::Error| to_python(py, &CliError::from(e));
    let result = metastate_report::load(&place).map_err(told)?;
    if let Some(name) = result.changed.first() {
        let e = CliError::failed("E-CLI-RESULT", format!("{name} is not the file that `metastate fit` wrote"));
        return Err(to_python(py, &e.at(place.display().to_string()).remedy("it was changed or damaged afterwards; fit again")));
    }
    let extras = metastate_report::load_extras(&place, result.xi.len()).map_err(told)?;
    let out = PyDict::new(py);
    out.set_item("U", matrix(py, &result.factors.u)?)?;
    out.set_item("V", matrix(py, &result.factors.v)?)?;
    if let Some(x) = &result.refit {
        out.set_item("refit_U", matrix(py, &x.u)?)?;
        out.set_item("refit_V", matrix(py, &x.v)?)?;
    }
    out.set_item("xi", PyArray1::from_slice(py, &result.xi))?;
    let zones = result.numbers("zone").map_err(told)?;
    out.set_item("zone", PyArray1::from_vec(py, zones.into_iter().map(|z| z as i64 - 1).collect()))?;
    let names = result.column("label").map_err(told)?;
    out.set_item("labels", labels(py, names.iter().map(|n| Label::from(n.as_str())))?)?;
    if let (Ok(lon), Ok(lat)) = (result.numbers("lon"), result.numbers("lat")) {
        out.set_item("lon", PyArray1::from_vec(py, lon))?;
        out.set_item("lat", PyArray1::from_vec(py, lat))?;
    }
    out.set_item("cell", extras.cell)?;
    if let Some(k) = metastate_report::load_kinetics(&place).map_err(told)? {
        kinetics::put(py, &out, &k)?;
    }
    if let Some(ends) = &result.destinations {
        out.set_item("destinations", labels(py, ends.labels().into_iter())?)?;
    }
    if let Some(slices) = &result.slices {
        put_slices(py, &out, slices)?;
    }
    let summary = serde_json::to_string(&result.summary).unwrap_or_default(); // numbers and texts always serialise
    Ok((summary, out))
}

/// Writes files as a folder that appears whole or not at all.
#[pyfunction]
pub fn write_files(py: Python<'_>, place: PathBuf, files: Vec<(String, Vec<u8>)>, force: bool) -> PyResult<()> {
    let write = || -> metastate_report::Result<()> {
        let _claim = Claim::folder(&place, force)?;
        let draft = Draft::begin(&place)?;
        for (name, bytes) in &files {
            draft.file(name, bytes)?;
        }
        draft.finish(force)
    };
    py.detach(write).map_err(|e| to_python(py, &CliError::from(e)))
}
