//! `metastate plan`: what to do in each state, from the result of a fit with `--action`. The log is read again for the bound and for the check on held-out records; the plan itself needs the folder alone.

mod model;
mod rewards;

use std::path::Path;

use metastate::plan::{CheckSettings, Checked, Decisions, Extended, Log, Plan, Unit, check, loss_bound, with_untried};
use metastate_ingest::read_log;
use metastate_report::{
    BoundRecord, CheckRecord, Claim, MetastateRecord, PLAN_SCHEMA, PlanRecord, PolicyRow, QRow, SavedResult, write_plan,
};

use crate::args::{InputArgs, MEMORY, Options, PlanArgs};
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::verify::{find_inputs, recorded_options};
use crate::watch::WatchReading;
use crate::{inputs, report};

pub use model::ControlledResult;
pub use rewards::GivenRewards;

/// A pair that was tried this often or less hardly speaks for itself.
const BARELY: f64 = 2.0;
/// Actions named for each meta-state.
const NAMED: usize = 5;
/// A claim so many standard errors above what was measured is worth a word.
const BEYOND: f64 = 1.96;

/// Where the records for bound and check come from.
pub enum LogSource {
    /// The inputs that the result names.
    Inputs,
    /// Records that a program holds.
    Held(Log),
    /// Nowhere, and why.
    None(String),
}

/// A plan before it is written.
pub struct Planned {
    /// `plan.json`, without the hashes of the tables.
    pub record: PlanRecord,
    /// `policy.csv`.
    pub policy: Vec<PolicyRow>,
    /// `q.parquet`.
    pub q: Vec<QRow>,
}

/// Plans, and writes the plan into the folder of the result.
pub fn run(command: &PlanArgs, seed: u64, reporter: &mut Reporter, stopper: &Stopper) -> Result<PlanRecord> {
    command.check()?;
    // The inputs may be found from another folder.
    let folder = std::path::absolute(&command.result).map_err(|e| CliError::write(&command.result, e))?;
    let _claim = Claim::file(&folder.join(metastate_report::PLAN_FILE))?;
    let source = if command.no_check { LogSource::None("it was left out (--no-check)".to_owned()) } else { LogSource::Inputs };
    let planned = plan(&folder, command, source, seed, reporter, stopper)?;
    // Under the lock: a signal now waits until the plan stands.
    let _state = stopper.lock();
    let record = write_plan(&folder, planned.record, &planned.policy, &planned.q)?;
    report::page_anew(&folder)?;
    reporter.clear();
    Ok(record)
}

/// The plan itself, in memory.
pub fn plan(
    folder: &Path,
    command: &PlanArgs,
    source: LogSource,
    seed: u64,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<Planned> {
    let given = command.reward.as_deref().map(GivenRewards::read).transpose()?;
    let loaded = metastate_report::load(folder)?;
    let (input, _) = recorded_options(folder, &loaded)?;
    let model = ControlledResult::read(folder, &loaded)?;
    let rewards = match &given {
        Some(given) => given.at_pairs((&model.states, &model.actions), &model.tried, &loaded.model().u, &loaded.model().v)?,
        None => model.rewards.clone().ok_or_else(|| {
            CliError::bad("E-CLI-ARGUMENT", "the log of this result has no rewards, and a plan needs some")
                .remedy("fit again with --reward COL, or give --reward FILE with the columns state, action and reward")
        })?,
    };
    let (log, not_checked) = records(source, &loaded, &input, reporter, stopper)?;
    let log = log.map(|log| model.numbered(log, given.as_ref())).transpose()?;
    stopper.doing(Doing::Working);
    reporter.spin("planning");

    let (u, v) = (&loaded.model().u, &loaded.model().v);
    let more = command.untried.then(|| with_untried(&model.tried, u, v, &rewards)).transpose()?;
    let all = more.unwrap_or_else(|| Extended { pairs: model.tried.pairs.clone(), u: u.clone(), rewards, guessed: vec![false; u.rows()] });
    let allowed = vec![true; all.pairs.len()];
    let decisions = Decisions { pairs: &all.pairs, reached: &model.tried.reached, u: &all.u, v, rewards: &all.rewards, allowed: &allowed };
    let plan = decisions.solve(command.discount)?;

    let mut record = told(&model, &loaded, &all, &plan, command, seed);
    (record.rewards_from, record.rewards_file) = match given {
        None => ("log".to_owned(), None),
        Some(given) => (given.kind().to_owned(), Some(given.file)),
    };
    if let Some((log, tried)) = &log {
        if !command.untried {
            let bound = loss_bound(tried, u, v, &all.rewards, &plan, command.discount);
            record.bound =
                Some(BoundRecord { loss: bound.loss, by_norm: bound.by_norm, any: bound.any, says_something: bound.says_something() });
        }
        reporter.spin("held-out check");
        let settings = CheckSettings {
            rank: v.cols(),
            prior: model.prior,
            discount: command.discount,
            untried: command.untried,
            folds: command.folds,
            seed,
        };
        match check(log, tried, &settings, || stopper.go_on().is_ok()) {
            Ok(found) => record.check = Some(checked(&found)),
            Err(metastate::Error::Setting { .. }) => {
                record.not_checked = Some("there are fewer than two episodes or records for each fold".to_owned());
            }
            Err(metastate::Error::Empty { .. }) => record.not_checked = Some("the log has no rewards".to_owned()),
            Err(other) => return Err(other.into()),
        }
    }
    record.not_checked = record.not_checked.or(not_checked);
    record.hints = hints(&record);
    let (policy, q) = tables(&model, &all, &plan);
    Ok(Planned { record, policy, q })
}

/// The records, or why there are none.
fn records(
    source: LogSource,
    loaded: &SavedResult,
    input: &InputArgs,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<(Option<Log>, Option<String>)> {
    match source {
        LogSource::Held(log) => Ok((Some(log), None)),
        LogSource::None(why) => Ok((None, Some(why))),
        LogSource::Inputs if input.inputs == [MEMORY] => {
            Ok((None, Some("the log was in the memory of a Python program; there, result.plan(..., data=log) checks it".to_owned())))
        }
        LogSource::Inputs => {
            if let Err(e) = find_inputs(&loaded.summary, "the plan could not be checked on held-out records") {
                return Err(e.remedy("put the inputs back where they were, or plan with --no-check"));
            }
            stopper.doing(Doing::Reading);
            let settings = inputs::settings(input)?;
            let Some(columns) = &settings.log else { return Ok((None, Some("the result names no column of actions".to_owned()))) };
            let logged = read_log(&input.inputs, &settings, columns, &mut WatchReading { reporter, stopper })?;
            Ok((Some(logged.log), None))
        }
    }
}

fn checked(found: &Checked) -> CheckRecord {
    CheckRecord {
        value: found.value,
        error: found.error,
        low: found.interval.0,
        high: found.interval.1,
        claimed: found.claimed,
        log: found.log,
        unit: if found.unit == Unit::Episodes { "episodes" } else { "records" }.to_owned(),
        units: found.units,
        effective: found.effective,
        covered: found.covered,
        folds: found.folds,
    }
}

/// All of `plan.json` but rewards, bound, check, hints and hashes.
fn told(model: &ControlledResult, loaded: &SavedResult, all: &Extended, plan: &Plan, command: &PlanArgs, seed: u64) -> PlanRecord {
    let records = |p: usize| model.records(all, p);
    let left: Vec<usize> = (0..plan.choice.len()).filter(|s| plan.choice[*s].is_some()).collect();
    let chosen = || plan.choice.iter().flatten().copied();
    let actions = model.actions.len();
    PlanRecord {
        schema: PLAN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model: if loaded.refit.is_some() { "refit" } else { "factors" }.to_owned(),
        discount: command.discount,
        rewards_from: String::new(),
        rewards_file: None,
        untried: command.untried,
        seed,
        states: plan.choice.len(),
        ends: plan.choice.len() - left.len(),
        guessed: chosen().filter(|p| all.guessed[*p]).count(),
        incomplete: left.iter().filter(|s| model.tried.pairs.of(**s).len() < actions).count(),
        barely: chosen().filter(|p| !all.guessed[*p] && records(*p) <= BARELY).count(),
        worth: plan.worth.clone(),
        off: plan.off,
        rounds: plan.rounds,
        mean_value: left.iter().map(|s| plan.value[*s]).sum::<f64>() / left.len().max(1) as f64,
        bound: None,
        check: None,
        not_checked: None,
        metastates: metastates(model, loaded, all, plan),
        hints: Vec::new(),
        files: Default::default(),
    }
}

/// What the plan does after a step into each meta-state: the shares of its arrivals by the action that they take.
fn metastates(model: &ControlledResult, loaded: &SavedResult, all: &Extended, plan: &Plan) -> Vec<MetastateRecord> {
    let v = &loaded.model().v;
    let of = |k: usize| {
        let mut shares = vec![0.0; model.actions.len()];
        for (j, state) in model.tried.reached.iter().enumerate() {
            if let Some(p) = plan.choice[*state as usize] {
                shares[all.pairs.action[p] as usize] += v[(j, k)];
            }
        }
        let mut order: Vec<usize> = (0..shares.len()).filter(|a| shares[*a] > 0.0).collect();
        order.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]).then(a.cmp(&b)));
        order.truncate(NAMED);
        MetastateRecord {
            metastate: k + 1,
            worth: plan.worth[k],
            actions: order.into_iter().map(|a| (model.actions.label(a).to_string(), shares[a])).collect(),
        }
    };
    (0..v.cols()).map(of).collect()
}

fn tables(model: &ControlledResult, all: &Extended, plan: &Plan) -> (Vec<PolicyRow>, Vec<QRow>) {
    let state = |s: usize| model.states.label(s).to_string();
    let action = |p: usize| model.actions.label(all.pairs.action[p] as usize).to_string();
    let policy = |s: usize| PolicyRow {
        state: state(s),
        action: plan.choice[s].map(action),
        value: plan.value[s],
        records: plan.choice[s].map_or(0.0, |p| model.records(all, p)),
        untried: match model.tried.pairs.of(s).len() {
            0 => 0,
            tried => model.actions.len() - tried,
        },
    };
    let q = |p: usize| QRow {
        state: state(all.pairs.state[p] as usize),
        action: action(p),
        value: plan.q[p],
        reward: all.rewards[p],
        records: model.records(all, p),
    };
    ((0..plan.choice.len()).map(policy).collect(), (0..all.pairs.len()).map(q).collect())
}

/// What a user must know before the policy is used.
fn hints(r: &PlanRecord) -> Vec<String> {
    let mut hints = Vec::new();
    if r.incomplete > 0 && !r.untried {
        hints.push(format!(
            "in {} states some actions were never tried: nothing is known about them there, and the policy does not take them (column `untried`; with --untried their effect is guessed)",
            r.incomplete
        ));
    }
    if r.guessed > 0 {
        hints.push(format!(
            "{} states take an action that was never tried there: its value is guessed from states that are reached through the same meta-states (`records` is 0)",
            r.guessed
        ));
    }
    if r.ends > 0 {
        hints.push(format!("{} states were reached and never left: they count as end states, and their value is 0", r.ends));
    }
    if r.barely > 0 {
        hints.push(format!("{} states take an action that was tried there at most twice: its value rests on the meta-states", r.barely));
    }
    if let Some(c) = &r.check
        && c.claimed > c.value + BEYOND * c.error
    {
        hints.push(format!(
            "on held-out records the policy earns {:.4}, less than the {:.4} that the model predicts; trust the value on held-out records",
            c.value, c.claimed
        ));
    }
    if r.bound.is_some_and(|b| !b.says_something) {
        hints.push(
            "the bound on the loss is of no use here, because it is larger than what any policy could lose; use the value on held-out records"
                .to_owned(),
        );
    }
    hints
}

/// What a person wants to know, in a few lines.
pub fn describe(r: &PlanRecord, folder: &Path) -> String {
    let mut text = format!(
        "a policy for {} states, discount {}: mean value {:.6} in the fitted model (estimated)\n",
        r.states - r.ends,
        r.discount,
        r.mean_value
    );
    match (&r.check, &r.not_checked) {
        (Some(c), _) => {
            text += &format!(
                "held out ({} {}, {} folds): {:.4}, between {:.4} and {:.4} 19 times of 20; the model predicts {:.4} for such policies",
                c.units, c.unit, c.folds, c.value, c.low, c.high, c.claimed
            );
            text += &c.log.map_or_else(String::new, |log| format!(", the policy in the log earned {log:.4}"));
            text += &format!(
                "; this is as precise as {:.0} records of equal weight, and the records cover {:.0} % of the visits\n",
                c.effective,
                100.0 * c.covered
            );
        }
        (None, Some(why)) => text += &format!("not checked on held-out records: {why}\n"),
        (None, None) => {}
    }
    if let Some(b) = &r.bound {
        text += &format!(
            "bound on the loss, if next states occur as often as they were counted: {:.4} (no policy can lose more than {:.4})\n",
            b.loss, b.any
        );
    }
    r.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
    text + &format!("written policy.csv, q.parquet and plan.json to {}", folder.display())
}
