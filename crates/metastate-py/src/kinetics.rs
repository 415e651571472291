//! Times, fluxes and fates for Python: the library's functions on small arrays, and on the data of a fit that is still in memory.

use metastate::aggregate::latent::{aligned, wilson};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{
    Flux, LagPoint, LaggedCounts, Microstates, Scale, advice, committor_of_chain, fates_of_chain, interval, mean_first_passage, modes_of,
    stationary_of_chain,
};
use metastate::workspace::folds::{NO_STATE, count_blocks};
use metastate::{CountMode, Label, Mat, StateIndex};
use metastate_ingest::Data;
use metastate_report::SavedKinetics;
use metastate_tasks::error::{CliError, Result};
use metastate_tasks::watch::WatchReading;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::to_python;
use crate::fitted::{Fitted, matrix};
use crate::input::{Input, Recognised};
use crate::tasks::mat;
use crate::{options, watched};

type Matrix<'a, 'py> = &'a Bound<'py, PyArray2<f64>>;

fn told<T>(py: Python<'_>, found: metastate::Result<T>) -> PyResult<T> {
    found.map_err(|e| to_python(py, &CliError::from(e)))
}

/// Real and imaginary parts of the eigenvalues, and timescales in steps, largest modulus first.
#[pyfunction]
pub fn chain_modes(projected: Matrix, chain: Matrix) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let modes = modes_of(&mat(projected), &mat(chain));
    (modes.iter().map(|m| m.re).collect(), modes.iter().map(|m| m.im).collect(), modes.iter().map(|m| m.timescale).collect())
}

/// Mean first passage times of a chain in steps, return times on the diagonal.
#[pyfunction]
pub fn chain_passage<'py>(py: Python<'py>, chain: Matrix<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let k = mat(chain);
    matrix(py, &Mat::from_fn(k.rows(), k.rows(), |i, j| mean_first_passage(&k, i, j)))
}

/// The probability of meeting one of `to` before any of `from`.
#[pyfunction]
pub fn chain_committor(py: Python<'_>, chain: Matrix, from: Vec<usize>, to: Vec<usize>) -> PyResult<Vec<f64>> {
    told(py, committor_of_chain(&mat(chain), &from, &to))
}

/// Closed classes and their laws, and the law that a start leads to.
#[pyfunction]
pub fn chain_stationary(chain: Matrix, start: Vec<f64>) -> (Vec<Vec<usize>>, Vec<Vec<f64>>, Vec<f64>) {
    stationary_of_chain(&mat(chain), &start)
}

/// Closed classes, and the probability of ending in each.
#[pyfunction]
pub fn chain_fates<'py>(py: Python<'py>, chain: Matrix<'_, 'py>) -> PyResult<(Vec<Vec<usize>>, Bound<'py, PyAny>)> {
    let (structure, found) = fates_of_chain(&mat(chain));
    Ok((structure.closed.iter().map(|c| c.members.clone()).collect(), matrix(py, &found)?))
}

/// Reactive flux between two sets of meta-states, and its ways until this share.
#[pyfunction]
pub fn chain_flux<'py>(
    py: Python<'py>,
    chain: Matrix<'_, 'py>,
    from: Vec<usize>,
    to: Vec<usize>,
    share: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let flux = told(py, Flux::of_chain(&mat(chain), &from, &to))?;
    flux_dict(py, &flux, &from, &to, share)
}

fn flux_dict<'py>(py: Python<'py>, flux: &Flux, from: &[usize], to: &[usize], share: f64) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("gross", matrix(py, &flux.gross)?)?;
    out.set_item("net", matrix(py, &flux.net)?)?;
    out.set_item("forward", PyArray1::from_slice(py, &flux.forward))?;
    out.set_item("backward", PyArray1::from_slice(py, &flux.backward))?;
    out.set_item("total", flux.total)?;
    out.set_item("rate", flux.rate)?;
    let ways = PyList::empty(py);
    for way in flux.pathways(from, to, share) {
        ways.append((way.nodes, way.flux))?;
    }
    out.set_item("pathways", ways)?;
    Ok(out)
}

/// Intervals of several numbers, times or shares, of their values with each part of the data weighing less: one row a part.
#[pyfunction]
pub fn intervals(values: Vec<f64>, parts: Matrix, times: bool) -> (Vec<f64>, Vec<f64>) {
    let parts = mat(parts);
    let scale = if times { Scale::Times } else { Scale::Shares };
    let one = |(k, x): (usize, &f64)| interval(*x, (0..parts.rows()).map(|b| parts[(b, k)]), scale, CONFIDENCE);
    values.iter().enumerate().map(one).unzip()
}

/// Data counted at one lag: timescales with bands, in frames, the projection there, and independent visits of each meta-state.
#[pyfunction]
pub fn at_lag<'py>(
    py: Python<'py>,
    u: Matrix<'_, 'py>,
    states: Vec<Bound<'py, PyAny>>,
    given: Recognised<'py>,
    values: &Bound<'py, PyDict>,
    lag: usize,
    bands: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let u = mat(u);
    let input = Input::new(given.without_weights())?;
    let asked = options::fit(&options::given("fit", &input.files, values)?).map_err(|e| to_python(py, &e))?;
    let states: Vec<Label> = states.iter().map(|s| Ok(Label::from(s.str()?.to_cow()?.as_ref()))).collect::<PyResult<_>>()?;
    let (k, visits) = watched::run(py, asked.threads, None, move |reporter, stopper| {
        let index = StateIndex::from_labels(states)?;
        let mut options = asked.command.input;
        options.lag = lag;
        let ingested = input.ingest(&options, true, &mut WatchReading { reporter, stopper })?;
        one_lag(&u, &index, ingested.data, lag, bands)
    })?;
    let ends = k.timescale_intervals(CONFIDENCE);
    let scaled = |x: f64| x * lag as f64;
    let entry = PyDict::new(py);
    entry.set_item("timescales", k.modes.iter().skip(1).map(|m| scaled(m.timescale)).collect::<Vec<f64>>())?;
    entry.set_item("low", ends.iter().map(|e| scaled(e.0)).collect::<Vec<f64>>())?;
    entry.set_item("high", ends.iter().map(|e| scaled(e.1)).collect::<Vec<f64>>())?;
    entry.set_item("projected", matrix(py, &k.projected)?)?;
    entry.set_item("visits", visits)?;
    Ok(entry)
}

/// What lag to take, from (lag, slowest timescale, lower end, upper end), in one sentence.
#[pyfunction]
pub fn lag_advice(points: Vec<(f64, f64, f64, f64)>, lag: f64) -> Option<String> {
    let points: Vec<LagPoint> = points.into_iter().map(|(lag, timescale, low, high)| LagPoint { lag, timescale, low, high }).collect();
    advice(&points, lag)
}

/// Wilson's interval of a share seen in n independent trials.
#[pyfunction]
pub fn share_interval(share: f64, n: f64) -> (f64, f64) {
    wilson(share, n)
}

type AtLag = (metastate::kinetics::Kinetics, Vec<f64>);

fn one_lag(u: &Mat, index: &StateIndex, data: Data, lag: usize, bands: bool) -> Result<AtLag> {
    let only = || {
        CliError::bad("E-CLI-ARGUMENT", "only trajectories can be counted at several lags")
            .remedy("give the trajectories of the fit, or further ones")
    };
    let Data::Counts(counted) = data else { return Err(only()) };
    let Some(frames) = &counted.frames else { return Err(only()) };
    let counts = aligned(&counted.counts, index)?;
    if counts.counts.nonzeros() == 0 {
        return Err(CliError::bad("E-CLI-STATE", format!("at lag {lag} no transition joins two states of the result")));
    }
    let place: Vec<u32> = counted.counts.index().labels().map(|label| index.position(&label).unwrap_or(NO_STATE)).collect();
    let frames: Vec<u32> = frames.iter().map(|&s| if s == NO_STATE { s } else { place[s as usize] }).collect();
    let blocks = count_blocks(&frames, index.len(), lag, counted.counts.mode(), (frames.len() / (20 * lag)).clamp(2, 60))?;
    let overlap = if counted.counts.mode() == CountMode::Sliding { lag as f64 } else { 1.0 };
    let data = LaggedCounts { counts: &counts.counts, blocks: &blocks, lag: lag as f64, overlap };
    let kinetics = data.kinetics(u, bands)?;
    let departures = counts.counts.row_sums();
    let visits = (0..u.cols()).map(|j| (0..u.rows()).map(|i| departures[i] * u[(i, j)]).sum::<f64>() / overlap).collect();
    Ok((kinetics, visits))
}

/// The arrays of `kinetics.npz`.
pub fn put(py: Python<'_>, out: &Bound<'_, PyDict>, k: &SavedKinetics) -> PyResult<()> {
    out.set_item("kinetic_chain", matrix(py, &k.chain)?)?;
    out.set_item("projected", matrix(py, &k.projected)?)?;
    out.set_item("passage_states", matrix(py, &k.passage_states)?)?;
    let s = k.chain.rows();
    let stacked = |list: &[Mat]| Mat::from_fn(list.len() * s, s, |r, j| list[r / s][(r % s, j)]);
    out.set_item("part_chains", matrix(py, &stacked(&k.part_chains))?)?;
    out.set_item("part_passage", matrix(py, &stacked(&k.part_passage))?)?;
    out.set_item("part_timescales", matrix(py, &k.part_timescales)?)
}

/// A question to the states' own chain.
enum StateQuestion {
    Steps(Vec<bool>),
    Passage(Vec<bool>, Vec<bool>),
    Committor(Vec<bool>, Vec<bool>),
    Fates(Vec<Vec<bool>>),
}

/// Mean steps of the states' own chain from every state into a set.
#[pyfunction]
pub fn state_steps<'py>(py: Python<'py>, fitted: &Fitted, target: Vec<bool>) -> PyResult<Bound<'py, PyAny>> {
    fitted.ask(py, StateQuestion::Steps(target))
}

/// Mean steps from one set of states, as the stationary law has it, to another.
#[pyfunction]
pub fn state_passage<'py>(py: Python<'py>, fitted: &Fitted, from: Vec<bool>, to: Vec<bool>) -> PyResult<Bound<'py, PyAny>> {
    fitted.ask(py, StateQuestion::Passage(from, to))
}

/// The probability of coming to `to` before `from`, from every state.
#[pyfunction]
pub fn state_committor<'py>(py: Python<'py>, fitted: &Fitted, from: Vec<bool>, to: Vec<bool>) -> PyResult<Bound<'py, PyAny>> {
    fitted.ask(py, StateQuestion::Committor(from, to))
}

/// The probability of ending in each set, from every state; without sets, in each of the closed classes, largest first.
#[pyfunction]
pub fn state_fates<'py>(py: Python<'py>, fitted: &Fitted, sets: Vec<Vec<bool>>) -> PyResult<Bound<'py, PyAny>> {
    fitted.ask(py, StateQuestion::Fates(sets))
}

/// The class of each state, and for each class whether it is never left.
#[pyfunction]
pub fn state_classes(py: Python<'_>, fitted: &Fitted) -> PyResult<(Vec<u32>, Vec<bool>)> {
    let moves = fitted.solved.model.moves().map_err(|e| to_python(py, &CliError::from(e)))?;
    let classes = &moves.kinetics.classes;
    Ok((classes.class_of.clone(), classes.closed.clone()))
}

/// Reactive flux between two sets of states, added up between the meta-states of their largest memberships.
#[pyfunction]
pub fn state_flux<'py>(py: Python<'py>, fitted: &Fitted, from: Vec<bool>, to: Vec<bool>) -> PyResult<Bound<'py, PyDict>> {
    let solved = std::sync::Arc::clone(&fitted.solved);
    let flux = watched::run(py, None, None, move |_, _| {
        let u = solved.model.memberships();
        let part: Vec<usize> = u.largest_entries().collect();
        Ok(Microstates::new(solved.loaded.shown_chain().p(), u)?.flux(&from, &to, &part, u.cols())?)
    })?;
    flux_dict(py, &flux, &[], &[], 0.0)
}

impl Fitted {
    fn ask<'py>(&self, py: Python<'py>, question: StateQuestion) -> PyResult<Bound<'py, PyAny>> {
        let solved = std::sync::Arc::clone(&self.solved);
        let found: Mat = watched::run(py, None, None, move |_, _| {
            let (chain, u) = (solved.loaded.shown_chain(), solved.model.memberships());
            let column = |x: Vec<f64>| Mat::from_fn(x.len(), 1, |i, _| x[i]);
            // Only the mean over a set asks for the stationary law.
            let micro = match &question {
                StateQuestion::Passage(..) => Microstates::new(chain.p(), u)?,
                _ => Microstates::weighted(chain.p(), u, chain.xi().to_vec())?,
            };
            Ok(match question {
                StateQuestion::Steps(target) => column(micro.steps_to(&target)?),
                StateQuestion::Passage(from, to) => column(vec![micro.mean_first_passage(&from, &to)?]),
                StateQuestion::Committor(from, to) => column(micro.committor(&from, &to)?),
                StateQuestion::Fates(sets) => {
                    let sets = if sets.is_empty() { micro.closed_sets(MOST_CLASSES) } else { sets };
                    micro.fates(&sets)?
                }
            })
        })?;
        matrix(py, &found)
    }
}

/// Closed classes whose fates are told, largest first.
const MOST_CLASSES: usize = 50;
