//! `metastate forecast`: what the latent chain of a result says. The numbers come from the library; here they get their names.

mod blend;
mod check;
mod hitting;
mod slice;
mod start;

use std::path::{Path, PathBuf};

use metastate::Mat;
use metastate::aggregate::latent::{Identity, LatentChain, Lumped, Mode, Rotation, identify, largest_rotation};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{Flux, Scale, fates_of_chain, interval, mean_first_passage, modes_of};
use metastate::solve::Factors;
use metastate::{Label, StateIndex};
use metastate_ingest::expand_names;
use metastate_report::{
    Claim, CommittorRow, FateRow, Forecast, IdentityRow, LawRow, PassageRow, PathwayRow, Prediction, RateRow, SavedKinetics, SavedResult,
    StationaryClass, TimescaleRow, load_kinetics,
};

use crate::args::{ForecastArgs, ModelKind, Options};
use crate::error::{CliError, Result};
use crate::place;
use crate::progress::Reporter;
use crate::stop::Stopper;
use crate::verify::recorded_options;

/// Up to so many meta-states all ways between them are told, until this share of the flux.
const MOST_WITH_WAYS: usize = 15;
const SHARE_TOLD: f64 = 0.9;
/// Anchor states and exclusive destinations named for each meta-state.
const NAMED: usize = 5;

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
    if let Some(inside) = target {
        let (rows, hint) = hitting::times((&input, &fit), &loaded, &model, &inside, reporter, stopper)?;
        forecast.hitting = rows;
        forecast.hints.extend(hint);
    }
    if command.blend {
        let found = blend::first_step((&input, &fit), &loaded, &model, &start.law, reporter, stopper)?;
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
        check::against_counts(command, files, input, &loaded.summary, &model, &mut forecast, reporter, stopper)?;
    }
    if let Some(out) = &out {
        // Under the lock: a signal now waits until the folder stands.
        let _state = stopper.lock();
        metastate_report::write_forecast(out, command.force, &forecast)?;
    }
    reporter.clear();
    Ok(forecast)
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

fn gather(command: &ForecastArgs, model: &Model, start: &start::Start) -> Result<Forecast> {
    let (chain, s) = (&model.chain, model.chain.rank());
    let laws = chain.stationary(&model.xi)?;
    let passage = chain.mean_first_passage();
    let passage_states = match &model.kinetics {
        Some(k) => k.passage_states.clone(),
        None => model.lumped.mean_first_passage(chain, &model.part, &laws.limit_states)?,
    };
    let (rotation, change) = match largest_rotation(chain) {
        Rotation::Unique => ("unique", None),
        Rotation::Turns(size) => ("turns", Some(size)),
        Rotation::Undecided => ("undecided", None),
    };
    let mut rows = Vec::new();
    for (from, to) in (0..s).flat_map(|a| (0..s).map(move |b| (a, b))) {
        let (steps, steps_states) = (passage[(from, to)], passage_states[(from, to)]);
        let (low, high) = model.interval(steps, Scale::Times, |k| mean_first_passage(k, from, to));
        let (low_states, high_states) = model.passage_interval(steps_states, from, to);
        rows.push(PassageRow {
            time_low: low.map(|t| model.time(t)),
            time_high: high.map(|t| model.time(t)),
            time_states_low: low_states.map(|t| model.time(t)),
            time_states_high: high_states.map(|t| model.time(t)),
            from: from + 1,
            to: to + 1,
            steps,
            time: model.time(steps),
            steps_states,
            time_states: model.time(steps_states),
        });
    }
    let shares: Vec<Interval> = (0..s)
        .map(|j| model.interval(laws.limit[j], Scale::Shares, |k| stationary_share(model, k, &model.xi, j).unwrap_or(f64::NAN)))
        .collect();
    let identities = identify(chain, &model.xi)?;
    let (rates, pathways) = rates(model);
    let named = |list: &[usize]| list.iter().take(NAMED).map(|&i| model.labels[i].clone()).collect();
    let metastate = |(j, id): (usize, &Identity)| IdentityRow {
        metastate: j + 1,
        states: model.lumped.sizes()[j],
        stationary: laws.limit[j],
        stationary_low: shares[j].0,
        stationary_high: shares[j].1,
        stay: chain.k()[(j, j)],
        return_time: model.time(passage[(j, j)]),
        share: id.share,
        share_low: id.share_low,
        share_high: id.share_high,
        ambiguity: id.ambiguity,
        purest: id.purest,
        anchor_states: id.anchors.len(),
        anchors: named(&id.anchors),
        exclusive_destinations: id.exclusive.len(),
        exclusive: named(&id.exclusive),
    };
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
        classes: laws
            .structure
            .closed
            .iter()
            .zip(&laws.laws)
            .map(|(c, law)| StationaryClass { members: c.members.iter().map(|j| j + 1).collect(), period: c.period, law: law.clone() })
            .collect(),
        metastates: identities.iter().enumerate().map(metastate).collect(),
        joint_rotation: rotation.to_owned(),
        joint_rotation_change: change,
        timescales: timescales("model", 1, model.lag as u64, &model.modes(), &timescale_intervals(model)),
        passage: rows,
        committors: committors(model)?,
        rates,
        pathways,
        fates: fates(chain.k()),
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

/// Of the timescales in steps, for the modes after the first.
fn timescale_intervals(model: &Model) -> Vec<(f64, f64)> {
    let Some(k) = model.kinetics.as_ref().filter(|k| k.part_timescales.rows() > 0) else { return Vec::new() };
    let parts = &k.part_timescales;
    let of = |place: usize, t: f64| interval(t, (0..parts.rows()).map(|b| parts[(b, place)]), Scale::Times, CONFIDENCE);
    model.modes().iter().skip(1).take(parts.cols()).enumerate().map(|(place, m)| of(place, m.timescale)).collect()
}

/// The stationary share of one meta-state under another chain.
fn stationary_share(model: &Model, k: &Mat, xi: &[f64], j: usize) -> Option<f64> {
    let chain = LatentChain::with_chain(model.chain.u(), model.chain.v(), k.clone()).ok()?;
    chain.stationary(xi).ok().map(|laws| laws.limit[j])
}

/// Flux, rate and ways between every two meta-states; none where there are several stationary laws.
fn rates(model: &Model) -> (Vec<RateRow>, Vec<PathwayRow>) {
    let (k, s, lag) = (model.chain.k(), model.chain.rank(), model.lag as f64);
    let (mut rates, mut ways) = (Vec::new(), Vec::new());
    for (from, to) in (0..s).flat_map(|a| (0..s).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let Ok(flux) = Flux::of_chain(k, &[from], &[to]) else { continue };
        let (low, high) = if s <= MOST_WITH_WAYS {
            model.interval(flux.rate, Scale::Times, |k| Flux::of_chain(k, &[from], &[to]).map_or(f64::NAN, |f| f.rate))
        } else {
            (None, None)
        };
        rates.push(RateRow {
            from: from + 1,
            to: to + 1,
            flux: flux.total / lag,
            rate: flux.rate / lag,
            rate_low: low.map(|r| r / lag),
            rate_high: high.map(|r| r / lag),
        });
        if s <= MOST_WITH_WAYS {
            ways.extend(flux.pathways(&[from], &[to], SHARE_TOLD).into_iter().map(|way| PathwayRow {
                from: from + 1,
                to: to + 1,
                way: way.nodes.iter().map(|j| j + 1).collect(),
                flux: way.flux / lag,
                share: way.flux / flux.total,
            }));
        }
    }
    (rates, ways)
}

/// Where each meta-state ends, where that is a question at all.
fn fates(chain: &Mat) -> Vec<FateRow> {
    let (structure, found) = fates_of_chain(chain);
    if structure.closed.len() == 1 && structure.transient.is_empty() {
        return Vec::new();
    }
    let class = |k: usize| structure.closed[k].members.iter().map(|j| j + 1).collect();
    let pairs = (0..chain.rows()).flat_map(|j| (0..structure.closed.len()).map(move |k| (j, k)));
    pairs.map(|(j, k)| FateRow { metastate: j + 1, class: class(k), probability: found[(j, k)] }).collect()
}

fn timescales(source: &'static str, steps: u64, lag: u64, modes: &[Mode], intervals: &[(f64, f64)]) -> Vec<TimescaleRow> {
    let row = |(n, m): (usize, &Mode)| TimescaleRow {
        source,
        steps,
        lag,
        mode: n + 1,
        re: m.re,
        im: m.im,
        modulus: m.modulus(),
        timescale: m.timescale * lag as f64,
        turn: m.turn * lag as f64,
        low: n.checked_sub(1).and_then(|k| intervals.get(k)).map(|i| i.0 * lag as f64),
        high: n.checked_sub(1).and_then(|k| intervals.get(k)).map(|i| i.1 * lag as f64),
    };
    modes.iter().enumerate().map(row).collect()
}

fn committors(model: &Model) -> Result<Vec<CommittorRow>> {
    let chain = &model.chain;
    let s = chain.rank();
    let mut rows = Vec::new();
    for (a, b) in (0..s).flat_map(|a| (a + 1..s).map(move |b| (a, b))) {
        let q = chain.committor(a, b)?;
        for j in (0..s).filter(|&j| j != a && j != b) {
            let backward = q.backward.as_ref().map_or(f64::NAN, |q| q[j]);
            let (forward_low, forward_high) = if s <= MOST_WITH_WAYS {
                model.interval(q.forward[j], Scale::Shares, |k| Flux::of_chain(k, &[a], &[b]).map_or(f64::NAN, |f| f.forward[j]))
            } else {
                (None, None)
            };
            rows.push(CommittorRow {
                from: a + 1,
                to: b + 1,
                metastate: j + 1,
                forward: q.forward[j],
                backward,
                forward_low,
                forward_high,
            });
        }
    }
    Ok(rows)
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
