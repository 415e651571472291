//! `metastate forecast`: what the latent chain of a result says. The numbers come from the library; here they get their names.

mod check;
mod start;

use std::path::{Path, PathBuf};

use metastate::aggregate::latent::{Identity, LatentChain, Lumped, Mode, Rotation, identify, largest_rotation};
use metastate::solve::Factors;
use metastate::{Label, StateIndex};
use metastate_ingest::expand_names;
use metastate_report::{
    Claim, CommittorRow, Forecast, HittingRow, IdentityRow, LawRow, PassageRow, Prediction, SavedResult, StationaryClass, TimescaleRow,
};

use crate::args::{ForecastArgs, ModelKind, Options};
use crate::error::{CliError, Result};
use crate::place;
use crate::progress::Reporter;
use crate::stop::Stopper;
use crate::verify::recorded_options;

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
}

impl Model<'_> {
    fn law(&self, probabilities: &[f64]) -> Vec<LawRow> {
        let row = |(i, p): (usize, &f64)| LawRow { label: self.labels[i].clone(), metastate: self.part[i] + 1, probability: *p };
        probabilities.iter().enumerate().map(row).collect()
    }

    fn time(&self, steps: f64) -> f64 {
        steps * self.lag as f64
    }
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
    let (input, _) = recorded_options(&command.result, &loaded)?;
    let model = model(factors(command, &loaded)?, &loaded, command.lag.unwrap_or(input.lag))?;
    let start = start::law(command, &model)?;
    let target = start::set(&command.to, &model)?;
    reporter.spin("latent chain");
    let mut forecast = gather(command, &model, &start)?;
    if loaded.changed.iter().any(|name| ["factors.npz", "refit.npz", "states.csv"].contains(&name.as_str())) {
        forecast.hints.push("files of the result were changed after the fit; `metastate verify` says which".to_owned());
    }
    if let Some(inside) = target {
        forecast.hitting = hitting(&model, &inside)?;
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

fn model<'a>((name, factors): (&'static str, &'a Factors), loaded: &SavedResult, lag: usize) -> Result<Model<'a>> {
    let damaged = |sentence: String| CliError::failed("E-CLI-RESULT", sentence).remedy("the result was changed or damaged; fit again");
    let labels: Vec<String> = loaded.states.iter().skip(1).filter_map(|row| row.first().cloned()).collect();
    if labels.len() != factors.u.rows() || loaded.xi.len() != labels.len() {
        return Err(damaged(format!("states.csv names {} states, the factors have {}", labels.len(), factors.u.rows())));
    }
    let states = StateIndex::from_labels(labels.iter().map(|l| Label::from(l.as_str())).collect())?;
    let chain = LatentChain::new(&factors.u, &factors.v).map_err(|e| damaged(format!("the factors cannot be used: {e}")))?;
    let part: Vec<usize> = factors.u.largest_entries().collect();
    let lumped = Lumped::new(&chain, &part, chain.rank())?;
    Ok(Model { name, chain, states, labels, xi: loaded.xi.clone(), part, lumped, lag })
}

fn gather(command: &ForecastArgs, model: &Model, start: &start::Start) -> Result<Forecast> {
    let (chain, s) = (&model.chain, model.chain.rank());
    let laws = chain.stationary(&model.xi)?;
    let passage = chain.mean_first_passage();
    let passage_states = model.lumped.mean_first_passage(chain, &model.part, &laws.limit_states)?;
    let (rotation, change) = match largest_rotation(chain) {
        Rotation::Unique => ("unique", None),
        Rotation::Turns(size) => ("turns", Some(size)),
        Rotation::Undecided => ("undecided", None),
    };
    let mut rows = Vec::new();
    for (from, to) in (0..s).flat_map(|a| (0..s).map(move |b| (a, b))) {
        let (steps, steps_states) = (passage[(from, to)], passage_states[(from, to)]);
        rows.push(PassageRow {
            from: from + 1,
            to: to + 1,
            steps,
            time: model.time(steps),
            steps_states,
            time_states: model.time(steps_states),
        });
    }
    let identities = identify(chain, &model.xi)?;
    let named = |list: &[usize]| list.iter().take(NAMED).map(|&i| model.labels[i].clone()).collect();
    let metastate = |(j, id): (usize, &Identity)| IdentityRow {
        metastate: j + 1,
        states: model.lumped.sizes()[j],
        stationary: laws.limit[j],
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
        timescales: timescales("model", 1, model.lag as u64, &chain.spectrum()),
        passage: rows,
        committors: committors(chain)?,
        start: start.words.clone(),
        forecasts: command.steps.iter().map(|&n| prediction(command, model, &start.law, n)).collect::<Result<_>>()?,
        hitting: Vec::new(),
        check: Vec::new(),
        hints: Vec::new(),
        stationary: model.law(&laws.limit_states),
    })
}

fn timescales(source: &'static str, steps: u64, lag: u64, modes: &[Mode]) -> Vec<TimescaleRow> {
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
    };
    modes.iter().enumerate().map(row).collect()
}

fn committors(chain: &LatentChain) -> Result<Vec<CommittorRow>> {
    let s = chain.rank();
    let mut rows = Vec::new();
    for (a, b) in (0..s).flat_map(|a| (a + 1..s).map(move |b| (a, b))) {
        let q = chain.committor(a, b)?;
        for j in (0..s).filter(|&j| j != a && j != b) {
            let backward = q.backward.as_ref().map_or(f64::NAN, |q| q[j]);
            rows.push(CommittorRow { from: a + 1, to: b + 1, metastate: j + 1, forward: q.forward[j], backward });
        }
    }
    Ok(rows)
}

fn prediction(command: &ForecastArgs, model: &Model, start: &[f64], steps: u64) -> Result<Prediction> {
    let probabilities = model.chain.after(start, steps)?;
    let law = model.law(&probabilities);
    let mut metastates = vec![0.0; model.chain.rank()];
    law.iter().for_each(|r| metastates[r.metastate - 1] += r.probability);
    let mut order: Vec<usize> = (0..law.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]).then(a.cmp(&b)));
    Ok(Prediction { steps, metastates, top: order.iter().take(command.top).map(|&i| law[i].clone()).collect(), law })
}

fn hitting(model: &Model, inside: &[bool]) -> Result<Vec<HittingRow>> {
    let steps = model.chain.hitting_times(inside)?;
    let row = |(i, &steps): (usize, &f64)| HittingRow {
        label: model.labels[i].clone(),
        metastate: model.part[i] + 1,
        inside: inside[i],
        steps,
        time: model.time(steps),
    };
    Ok(steps.iter().enumerate().map(row).collect())
}
