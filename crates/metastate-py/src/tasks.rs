//! What Python asks for, task by task.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use metastate::aggregate::{AssignBy, Assigner};
use metastate::solve::Factors;
use metastate::workspace::score::{Model, Smoothing, score as score_of};
use metastate::{Csr, Label, Mat, StateIndex};
use metastate_ingest::Data;
use metastate_tasks::args::DiffArgs;
use metastate_tasks::error::{CliError, Result};
use metastate_tasks::stop::Stopper;
use metastate_tasks::watch::WatchReading;
use metastate_tasks::{
    compare as comparing, data, diff as differing, fit as fitting, plan as planning, simulate as simulating, verify as verifying,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::to_python;
use crate::fitted::{Fitted, labels, matrix};
use crate::input::{Input, Recognised};
use crate::{options, watched};

/// Fits, or solves the whole path.
#[pyfunction]
#[pyo3(signature = (given, values, whole_path, called, listener=None))]
pub fn fit(
    py: Python<'_>,
    given: Recognised<'_>,
    values: &Bound<'_, PyDict>,
    whole_path: bool,
    called: String,
    listener: Option<Bound<'_, PyAny>>,
) -> PyResult<Fitted> {
    let input = Input::new(given)?;
    let given = options::given(if whole_path { "path" } else { "fit" }, &input.files, values)?;
    let asked = options::fit(&given).map_err(|e| to_python(py, &e))?;
    let command = asked.command;
    let job = fitting::Job { input: command.input, fit: command.fit, run: command.run, whole_path, seed: asked.seed, command: called };
    let fit = job.fit.clone();
    let solved = watched::run(py, asked.threads, listener.as_ref(), move |reporter, stopper| {
        let start = Instant::now();
        fitting::check(&job)?;
        metastate_tasks::control::check(&job.input, &job.fit)?;
        let ingested = input.ingest(&job.input, job.fit.needs_parts(), &mut WatchReading { reporter, stopper })?;
        let loaded = data::estimate(ingested, &job.fit)?;
        stopper.go_on()?;
        fitting::fit_dataset(&job, loaded, start, reporter, stopper)
    })?;
    Ok(Fitted { solved: Arc::new(solved), fit })
}

/// What a fit would take, before it is made.
#[pyfunction]
pub fn estimate(py: Python<'_>, given: Recognised<'_>, values: &Bound<'_, PyDict>, whole_path: bool) -> PyResult<String> {
    let input = Input::new(given)?;
    let given = options::given(if whole_path { "path" } else { "fit" }, &input.files, values)?;
    let asked = options::fit(&given).map_err(|e| to_python(py, &e))?;
    let command = asked.command;
    let job =
        fitting::Job { input: command.input, fit: command.fit, run: command.run, whole_path, seed: asked.seed, command: String::new() };
    watched::run(py, asked.threads, None, move |reporter, stopper| {
        json(&fitting::estimate(&job, reporter, stopper, |watch| input.ingest(&job.input, job.fit.needs_parts(), watch))?)
    })
}

/// Compares with the rivals; the folder is written, and what stands in `compare.json` handed back.
#[pyfunction]
#[pyo3(signature = (given, values, listener=None))]
pub fn compare(py: Python<'_>, given: Recognised<'_>, values: &Bound<'_, PyDict>, listener: Option<Bound<'_, PyAny>>) -> PyResult<String> {
    let input = Input::new(given.without_weights())?;
    let asked = options::compare(&options::given("compare", &input.files, values)?).map_err(|e| to_python(py, &e))?;
    watched::run(py, asked.threads, listener.as_ref(), move |reporter, stopper| {
        let command = asked.command;
        let compared = comparing::run_on(&command, asked.seed, reporter, stopper, |watch| input.ingest(&command.input, true, watch))?;
        json(&compared)
    })
}

/// What is different between two result folders; what stands in `diff.json` is handed back.
#[pyfunction]
#[pyo3(signature = (first, second, out=None, force=false))]
pub fn diff(py: Python<'_>, first: PathBuf, second: PathBuf, out: Option<PathBuf>, force: bool) -> PyResult<String> {
    let asked = DiffArgs { first, second, out, force };
    watched::run(py, None, None, move |_, _| json(&differing::run(&asked)?))
}

/// Rechecks a result folder, from its own inputs or from the data given.
#[pyfunction]
#[pyo3(signature = (place, given=None, listener=None))]
pub fn verify(py: Python<'_>, place: PathBuf, given: Option<Recognised<'_>>, listener: Option<Bound<'_, PyAny>>) -> PyResult<String> {
    let input = given.map(Input::new).transpose()?;
    watched::run(py, None, listener.as_ref(), move |reporter, stopper| {
        let Some(input) = input else { return json(&verifying::run(&place, false, reporter, stopper)?) };
        let opened = verifying::open(&place)?;
        let (_, options, fit) = &opened;
        let ingested = input.ingest(options, fit.needs_parts(), &mut WatchReading { reporter, stopper })?;
        json(&verifying::recheck(&place, &opened, &data::estimate(ingested, fit)?, false, reporter)?)
    })
}

/// What to do in each state, from the folder of a result. Records for the check are those given, those of a fit that is still in memory, or those that the folder names.
/// Hands back `plan.json`, then the columns of `policy.csv` and of `q.parquet`.
#[pyfunction]
#[pyo3(signature = (values, given=None, live=None, listener=None))]
#[allow(clippy::type_complexity)] // the columns of two tables
pub fn plan<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyDict>,
    given: Option<Recognised<'py>>,
    live: Option<PyRef<'py, Fitted>>,
    listener: Option<Bound<'py, PyAny>>,
) -> PyResult<(String, Vec<Bound<'py, PyAny>>, Vec<Bound<'py, PyAny>>)> {
    let asked = options::plan(&options::given("plan", &[], values)?).map_err(|e| to_python(py, &e))?;
    let input = given.map(|given| Input::new(given.alone())).transpose()?;
    let held = live.and_then(|live| live.solved.loaded.control.as_ref().and_then(|c| c.log.clone()));
    let planned = watched::run(py, asked.threads, listener.as_ref(), move |reporter, stopper| {
        let (command, folder) = (&asked.command, asked.command.result.clone());
        let source = match (input, held) {
            (Some(input), _) => {
                let loaded = metastate_report::load(&folder)?;
                let (recorded, _) = verifying::recorded_options(&folder, &loaded)?;
                match input.ingest(&recorded, false, &mut WatchReading { reporter, stopper })?.data {
                    Data::Log(logged) => planning::LogSource::Held(logged.log),
                    _ => return Err(CliError::bad("E-CLI-ARGUMENT", "these data are no log of a controlled chain")),
                }
            }
            (None, Some(log)) => planning::LogSource::Held(log.as_ref().clone()),
            (None, None) => planning::LogSource::Inputs,
        };
        let source = if command.no_check { planning::LogSource::None("it was left out (check=False)".to_owned()) } else { source };
        planning::plan(&folder, command, source, asked.seed, reporter, stopper)
    })?;
    let texts = |list: Vec<&str>| labels(py, list.into_iter().map(Label::from)).map(Bound::into_any);
    let (policy, q) = (&planned.policy, &planned.q);
    let numbers = |list: Vec<f64>| PyArray1::from_vec(py, list).into_any();
    let policy = vec![
        texts(policy.iter().map(|r| r.state.as_str()).collect())?,
        texts(policy.iter().map(|r| r.action.as_deref().unwrap_or_default()).collect())?,
        numbers(policy.iter().map(|r| r.value).collect()),
        numbers(policy.iter().map(|r| r.records).collect()),
        numbers(policy.iter().map(|r| r.untried as f64).collect()),
    ];
    let q = vec![
        texts(q.iter().map(|r| r.state.as_str()).collect())?,
        texts(q.iter().map(|r| r.action.as_str()).collect())?,
        numbers(q.iter().map(|r| r.value).collect()),
        numbers(q.iter().map(|r| r.reward).collect()),
        numbers(q.iter().map(|r| r.records).collect()),
    ];
    Ok((serde_json::to_string(&planned.record).unwrap_or_default(), policy, q)) // numbers and texts always serialise
}

/// Draws and writes what `metastate simulate` does.
#[pyfunction]
pub fn simulate(py: Python<'_>, what: &str, values: &Bound<'_, PyDict>) -> PyResult<String> {
    let given = options::given(&format!("simulate {what}"), &[], values)?;
    let asked = options::simulate(&given).map_err(|e| to_python(py, &e))?;
    watched::run(py, asked.threads, None, move |_, _: &Stopper| json(&simulating::run(&asked.command, asked.seed)?))
}

/// Held-out log-likelihood a transition, squared error, transitions scored, and transitions that lead from or to states not in the fit.
#[pyfunction]
pub fn score(
    py: Python<'_>,
    u: &Bound<'_, PyArray2<f64>>,
    v: &Bound<'_, PyArray2<f64>>,
    arrivals: Vec<f64>,
    states: Vec<Bound<'_, PyAny>>,
    given: Recognised<'_>,
    values: &Bound<'_, PyDict>,
) -> PyResult<(f64, f64, f64, f64)> {
    let factors = Factors { u: mat(u), v: mat(v) };
    let input = Input::new(given.without_weights())?;
    let asked = options::fit(&options::given("fit", &input.files, values)?).map_err(|e| to_python(py, &e))?;
    let states: Vec<Label> = states.iter().map(|s| Ok(Label::from(s.str()?.to_cow()?.as_ref()))).collect::<PyResult<_>>()?;
    watched::run(py, asked.threads, None, move |reporter, stopper| {
        // States of the fit are told by their labels; none is left out for being rare here.
        let mut options = asked.command.input;
        (options.min_share, options.max_self_share) = (0.0, None);
        let ingested = input.ingest(&options, false, &mut WatchReading { reporter, stopper })?;
        let Data::Counts(counted) = ingested.data else {
            return Err(CliError::bad("E-CLI-ARGUMENT", "a transition matrix was given; a score needs transitions or their counts"));
        };
        let index = StateIndex::from_labels(states)?;
        let d = index.len();
        let place: Vec<Option<u32>> = counted.counts.index().labels().map(|l| index.position(&l)).collect();
        let known: Vec<(u32, u32, f64)> =
            counted.counts.csr().triplets().filter_map(|(i, j, n)| Some((place[i as usize]?, place[j as usize]?, n))).collect();
        let held_out = Csr::from_triplets(d, d, &known)?;
        let within: f64 = held_out.values().iter().sum();
        // The smoothing looks at the arrivals of the training data only: one row holds them all.
        let training: Vec<(u32, u32, f64)> = arrivals.iter().enumerate().map(|(j, n)| (0, j as u32, *n)).collect();
        let training = Csr::from_triplets(d, d, &training)?;
        let found = score_of(Model::LowRank(&factors), &training, &held_out, Smoothing::default())?;
        Ok((found.log_likelihood, found.squared_error, within, counted.counts.transitions() - within))
    })
}

/// Memberships of states from their own transitions: one row a state, one column a state of the fit. NaN where there are none. `weighing` is a number of transitions and an exponent: a state weighs its share of them to that power.
#[pyfunction]
pub fn memberships<'py>(
    py: Python<'py>,
    u: &Bound<'_, PyArray2<f64>>,
    v: &Bound<'_, PyArray2<f64>>,
    how: (String, f64, Vec<f64>),
    given: Recognised<'_>,
    columns: Vec<Option<u32>>,
    weighing: (f64, f64),
) -> PyResult<Bound<'py, PyAny>> {
    let (transitions, exponent) = weighing;
    let factors = Factors { u: mat(u), v: mat(v) };
    let input = Input::new(given.alone())?;
    let (kind, strength, mass) = how;
    let by = match kind.as_str() {
        "penalised" => AssignBy::Penalised { lambda: strength },
        "least-squares" => AssignBy::LeastSquares,
        _ => AssignBy::Likelihood { prior: strength, mass },
    };
    let found: Mat = watched::run(py, None, None, move |_, stopper| {
        use rayon::prelude::*;
        let rows = input.rows()?;
        if rows.cols() != columns.len() {
            return Err(CliError::bad(
                "E-DATA-SIZE",
                format!("X has {} features, but StateAggregation is expecting {} features as input", rows.cols(), columns.len()),
            ));
        }
        if let Some((i, j, x)) = rows.triplets().find(|t| !(t.2 >= 0.0 && t.2.is_finite())) {
            return Err(metastate::Error::Negative { what: "the counts", row: i as usize, column: j as usize, value: x }.into());
        }
        let assigner = Assigner::new(&factors, by)?;
        let row = |i: usize| -> Result<Vec<f64>> {
            stopper.go_on()?;
            let (places, counts) = rows.row(i);
            let departures: f64 = counts.iter().sum();
            let known: Vec<(u32, f64)> = places.iter().zip(counts).filter_map(|(&j, &n)| Some((columns[j as usize]?, n))).collect();
            let weight = (departures / transitions).powf(exponent);
            Ok(assigner.membership(&known, weight).unwrap_or_else(|| vec![f64::NAN; factors.rank()]))
        };
        let all: Vec<Vec<f64>> = (0..rows.rows()).into_par_iter().map(row).collect::<Result<_>>()?;
        Ok(Mat::from_fn(rows.rows(), factors.rank(), |i, k| all[i][k]))
    })?;
    matrix(py, &found)
}

/// Panics, so that a test can see that no panic reaches Python.
#[pyfunction]
pub fn panics(py: Python<'_>) -> PyResult<()> {
    watched::run(py, Some(1), None, |_, _| -> Result<()> { std::panic::panic_any("asked to") })
}

pub fn mat(array: &Bound<'_, PyArray2<f64>>) -> Mat {
    let view = array.readonly();
    let (rows, cols) = (view.shape()[0], view.shape()[1]);
    let view = view.as_array();
    Mat::from_fn(rows, cols, |i, j| view[(i, j)])
}

fn json(outcome: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(outcome).map_err(|e| CliError::failed("E-CLI-WRITE", e.to_string()))
}
