//! `metastate forecast`: what the latent chain of a result says. The numbers come from the library; here they get their names.

mod blend;
mod check;
mod hitting;
mod slice;
mod start;
mod tables;

use std::path::{Path, PathBuf};

use metastate::Mat;
use metastate::aggregate::latent::{LatentChain, Lumped, Mode, Rotation, largest_rotation};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{Scale, interval, modes_of};
use metastate::solve::Factors;
use metastate::{Label, StateIndex};
use metastate_ingest::{Ingested, expand_names};
use metastate_report::{Claim, Forecast, LawRow, Prediction, SavedKinetics, SavedResult, load_kinetics};

use crate::args::{FitArgs, ForecastArgs, InputArgs, ModelKind, Options};
use crate::data::{self, Dataset};
use crate::error::{CliError, Result};
use crate::place;
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::verify::recorded_options;
use crate::watch::WatchReading;

/// A result, its latent chain and the names of its states.
struct Model<'a> {
    /// `factors` or `refit`.
    name: &'static str,
    chain: LatentChain<'a>,
    states: StateIndex,
    labels: Vec<String>,
    xi: Vec<f64>,
    /// The meta-state of each state by its largest membership, from 0.
    part: Vec<usize>,
    lumped: Lumped,
    lag: usize,
    /// The chain of the data, where it is the one to use.
    kinetics: Option<SavedKinetics>,
}

impl Model<'_> {
    fn law(&self, probabilities: &[f64]) -> Vec<LawRow> {
        let row = |(i, p): (usize, &f64)| LawRow { label: self.labels[i].clone(), metastate: self.part[i] + 1, probability: *p };
        probabilities.iter().enumerate().map(row).collect()
    }

    fn time(&self, steps: f64) -> f64 {
        steps * self.lag as f64
    }

    /// The modes of the chain, in steps.
    fn modes(&self) -> Vec<Mode> {
        self.kinetics.as_ref().map_or_else(|| self.chain.spectrum(), |k| modes_of(&k.projected, &k.chain))
    }

    /// The interval of a number that depends on the chain, where the data have parts.
    fn interval(&self, published: f64, scale: Scale, number: impl Fn(&Mat) -> f64) -> Interval {
        let Some(k) = self.kinetics.as_ref().filter(|k| !k.part_chains.is_empty()) else { return (None, None) };
        ends(interval(published, k.part_chains.iter().map(number), scale, CONFIDENCE))
    }

    /// The interval of a passage time between the states of two meta-states.
    fn passage_interval(&self, steps: f64, from: usize, to: usize) -> Interval {
        let Some(k) = self.kinetics.as_ref().filter(|k| !k.part_passage.is_empty()) else { return (None, None) };
        ends(interval(steps, k.part_passage.iter().map(|m| m[(from, to)]), Scale::Times, CONFIDENCE))
    }
}

/// The two ends, where there is an interval.
type Interval = (Option<f64>, Option<f64>);

fn ends((low, high): (f64, f64)) -> Interval {
    (Some(low).filter(|x| !x.is_nan()), Some(high).filter(|x| !x.is_nan()))
}

/// Reads the result, asks the latent chain, writes what was asked for.
pub fn run(command: &ForecastArgs, reporter: &mut Reporter, stopper: &Stopper) -> Result<Forecast> {
    command.check()?;
    // Counting again may go back to the folder where the fit was run.
    let out = command.out.as_deref().map(absolute).transpose()?;
    let _claim = match &out {
        Some(out) => {
            let check = command.check.iter().flatten().cloned().collect::<Vec<_>>();
            let read = [command.result.clone()].into_iter().chain(command.from_law.clone()).chain(expand_names(&check));
            place::keep(out, read)?;
            Some(Claim::folder(out, command.force)?)
        }
        None => None,
    };
    let loaded = metastate_report::load(&command.result)?;
    if loaded.destinations.is_some() {
        return Err(metastate::Error::DoesNotGoOn.into());
    }
    slice::check(command, &loaded)?;
    let (input, fit) = recorded_options(&command.result, &loaded)?;
    let (name, told_apart) = factors(command, &loaded)?;
    // From step to step the chain knows no slices.
    let whole = loaded.slices.as_ref().map(|s| s.whole_model(told_apart));
    let chosen = (name, whole.as_ref().unwrap_or(told_apart));
    // Who names a model wants that model as it is; otherwise times come from the data.
    let saved = if command.model.is_none() { load_kinetics(&command.result).map_err(|e| CliError::from(e).blame_input())? } else { None };
    // A chain of another rank belongs to other factors.
    let saved = saved.filter(|k| k.chain.rows() == chosen.1.rank());
    let model = model(chosen, &loaded, command.lag.unwrap_or(input.lag), saved)?;
    let start = start::law(command, &model)?;
    let target = start::set(&command.to, &model)?;
    reporter.spin("latent chain");
    let mut forecast = gather(command, &model, &start)?;
    if loaded.changed.iter().any(|name| ["factors.npz", "refit.npz", "states.csv"].contains(&name.as_str())) {
        forecast.hints.push("files of the result were changed after the fit; `metastate verify` says which".to_owned());
    }
    let mut recount = Recount { input: &input, fit: &fit, loaded: &loaded, reporter, stopper };
    if let Some(inside) = target {
        let (rows, hint) = hitting::times(&mut recount, &model, &inside)?;
        forecast.hitting = rows;
        forecast.hints.extend(hint);
    }
    if command.blend {
        let found = blend::first_step(&mut recount, &model, &start.law)?;
        forecast.hints.push(found.sentence());
        forecast.forecasts =
            command.steps.iter().map(|&n| prediction_from(command, &model, &found, &start.law, n)).collect::<Result<_>>()?;
        forecast.blend = Some(found.record);
    }
    if let Some(label) = &command.slice
        && let Some((record, law)) = slice::look(label, &loaded, told_apart, &start.law)?
    {
        forecast.forecasts = vec![told(command, &model, law, 1)];
        forecast.slice = Some(record);
    }
    if let Some(files) = &command.check {
        check::against_counts(&mut recount, command, files, &model, &mut forecast)?;
    }
    if let Some(out) = &out {
        // Under the lock: a signal now waits until the folder stands.
        let _state = stopper.lock();
        metastate_report::write_forecast(out, command.force, &forecast)?;
    }
    recount.reporter.clear();
    Ok(forecast)
}

/// The inputs of the fit, for questions that the result alone does not answer: they are read once more, as the fit read them.
struct Recount<'a> {
    input: &'a InputArgs,
    fit: &'a FitArgs,
    loaded: &'a SavedResult,
    reporter: &'a mut Reporter,
    stopper: &'a Stopper,
}

impl Recount<'_> {
    /// The data of the fit.
    fn data(&mut self) -> Result<Dataset> {
        let (input, fit) = (self.input, self.fit);
        self.reading(|watch| data::load(input, fit, watch))
    }

    /// The inputs counted in another way.
    fn counted(&mut self, input: &InputArgs) -> Result<Ingested> {
        self.reading(|watch| data::ingest(input, true, watch))
    }

    /// While files are read, the reader itself looks whether a signal came.
    fn reading<T>(&mut self, read: impl FnOnce(&mut WatchReading) -> Result<T>) -> Result<T> {
        self.stopper.doing(Doing::Reading);
        let found = read(&mut WatchReading { reporter: self.reporter, stopper: self.stopper })?;
        self.stopper.doing(Doing::Working);
        Ok(found)
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| CliError::write(path, e))
}

/// The factors asked for, with their name; without a wish, those that the result's own tables speak of.
fn factors<'a>(command: &ForecastArgs, loaded: &'a SavedResult) -> Result<(&'static str, &'a Factors)> {
    match (command.model, &loaded.refit) {
        (None | Some(ModelKind::Refit), Some(refit)) => Ok(("refit", refit)),
        (None | Some(ModelKind::Factors), _) => Ok(("factors", &loaded.factors)),
        (Some(ModelKind::Refit), None) => Err(CliError::bad("E-CLI-RESULT", "this result has no refitted factors (refit.npz)")
            .at(command.result.display().to_string())
            .remedy("fit again with --refit likelihood, or leave out --model refit")),
    }
}

fn model<'a>(
    (name, factors): (&'static str, &'a Factors),
    loaded: &SavedResult,
    lag: usize,
    kinetics: Option<SavedKinetics>,
) -> Result<Model<'a>> {
    let damaged = |sentence: String| CliError::failed("E-CLI-RESULT", sentence).remedy("the result was changed or damaged; fit again");
    let labels: Vec<String> = loaded.states.iter().skip(1).filter_map(|row| row.first().cloned()).collect();
    if labels.len() != factors.u.rows() || loaded.xi.len() != labels.len() {
        return Err(damaged(format!("states.csv names {} states, the factors have {}", labels.len(), factors.u.rows())));
    }
    let states = StateIndex::from_labels(labels.iter().map(|l| Label::from(l.as_str())).collect())?;
    let chain = match &kinetics {
        Some(k) => LatentChain::with_chain(&factors.u, &factors.v, k.chain.clone()),
        None => LatentChain::new(&factors.u, &factors.v),
    };
    let chain = chain.map_err(|e| damaged(format!("the factors cannot be used: {e}")))?;
    let part: Vec<usize> = factors.u.largest_entries().collect();
    let lumped = Lumped::new(&chain, &part, chain.rank())?;
    Ok(Model { name, chain, states, labels, xi: loaded.xi.clone(), part, lumped, lag, kinetics })
}

/// Everything that the chain alone says.
fn gather(command: &ForecastArgs, model: &Model, start: &start::Start) -> Result<Forecast> {
    let (chain, s) = (&model.chain, model.chain.rank());
    let laws = chain.stationary(&model.xi)?;
    let passage = chain.mean_first_passage();
    let (rotation, change) = match largest_rotation(chain) {
        Rotation::Unique => ("unique", None),
        Rotation::Turns(size) => ("turns", Some(size)),
        Rotation::Undecided => ("undecided", None),
    };
    let (rates, pathways) = tables::rates(model);
    Ok(Forecast {
        result: command.result.display().to_string(),
        model: model.name.to_owned(),
        kinetics: if model.kinetics.is_some() { "data" } else { "factors" }.to_owned(),
        states: chain.states(),
        rank: s,
        lag: model.lag,
        latent: (0..s).map(|j| chain.k().row(j).to_vec()).collect(),
        unique_stationary_law: laws.laws.len() == 1,
        structure: laws.structure.sentence(),
        classes: tables::classes(&laws),
        metastates: tables::metastates(model, &laws, &passage)?,
        joint_rotation: rotation.to_owned(),
        joint_rotation_change: change,
        timescales: tables::timescales("model", 1, model.lag as u64, &model.modes(), &tables::timescale_intervals(model)),
        passage: tables::passage(model, &laws, &passage)?,
        committors: tables::committors(model)?,
        rates,
        pathways,
        fates: tables::fates(chain.k()),
        start: start.words.clone(),
        forecasts: command.steps.iter().map(|&n| prediction(command, model, &start.law, n)).collect::<Result<_>>()?,
        blend: None,
        slice: None,
        hitting: Vec::new(),
        check: Vec::new(),
        hints: Vec::new(),
        stationary: model.law(&laws.limit_states),
    })
}

fn prediction(command: &ForecastArgs, model: &Model, start: &[f64], steps: u64) -> Result<Prediction> {
    Ok(told(command, model, model.chain.after(start, steps)?, steps))
}

/// The same with the first step blended with the counts.
fn prediction_from(command: &ForecastArgs, model: &Model, blended: &blend::Blended, start: &[f64], steps: u64) -> Result<Prediction> {
    match steps {
        0 => prediction(command, model, start, 0),
        1 => Ok(told(command, model, blended.next.clone(), 1)),
        n => Ok(told(command, model, model.chain.after(&blended.next, n - 1)?, n)),
    }
}

/// A law over states, and its likeliest ones.
fn told(command: &ForecastArgs, model: &Model, probabilities: Vec<f64>, steps: u64) -> Prediction {
    let law = model.law(&probabilities);
    let mut metastates = vec![0.0; model.chain.rank()];
    law.iter().for_each(|r| metastates[r.metastate - 1] += r.probability);
    let mut order: Vec<usize> = (0..law.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]).then(a.cmp(&b)));
    Prediction { steps, metastates, top: order.iter().take(command.top).map(|&i| law[i].clone()).collect(), law }
}
