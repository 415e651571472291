//! `metastate assign`: memberships for states that were not in the fit, from their own transitions.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use metastate::Counts;
use metastate::aggregate::{AssignBy, Assigner};
use metastate::solve::Factors;
use metastate::{Ledger, LedgerUnit};
use metastate_ingest::Data;
use metastate_report::{LedgerRecord, SavedResult, csv_field, folder, number};
use serde::Serialize;
use serde_json::Value;

use crate::args::{AssignCommand, AssignKind, FitArgs, InputArgs, Options, RefitKind};
use crate::count::check_place;
use crate::data;
use crate::error::{CliError, Result};
use crate::place;
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::verify::recorded_options;
use crate::watch::WatchReading;

/// What was assigned.
#[derive(Debug, Serialize)]
pub struct Assigned {
    result: String,
    out: String,
    states: usize,
    new_states: usize,
    by: &'static str,
    ledger: Vec<LedgerRecord>,
    hints: Vec<String>,
}

impl Assigned {
    /// For people.
    pub fn describe(&self) -> String {
        let mut text = format!("{} states assigned by {}, {} of them were not in the fit\n", self.states, self.by, self.new_states);
        self.ledger.iter().for_each(|e| text += &format!("left out, {}: {} {}\n", e.reason, e.count, e.unit));
        self.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
        text + &format!("written to {}", self.out)
    }
}

/// Reads the result and the inputs, writes the table.
pub fn run(command: &AssignCommand, reporter: &mut Reporter, stopper: &Stopper) -> Result<Assigned> {
    let mut read = place::inputs(&command.input);
    // The table must not stand in the place of the result that it is made of, nor of a file of it.
    read.extend(std::fs::read_dir(&command.assign.result).into_iter().flatten().flatten().map(|e| e.path()));
    let _claim = check_place(&command.assign.out, command.assign.force, &read)?;
    let result = metastate_report::load(&command.assign.result)?;
    if result.slices.is_some() {
        return Err(CliError::bad(
            "E-CLI-ASSIGN",
            "this result was fitted with --slice, and memberships of new states cannot be computed from slices",
        )
        .remedy("fit without --slice for memberships of further states"));
    }
    let summary = &result.summary;
    let (theirs, fit) = recorded_options(&command.assign.result, &result)?;
    let (input, inherited) = as_in_the_fit(&command.input, &command.given, &theirs)?;

    crate::inputs::refuse_actions(&input, "assign")?;
    stopper.doing(Doing::Reading);
    let ingested = data::ingest(&input, false, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    let Data::Counts(counted) = ingested.data else {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the input is a transition matrix; memberships are computed from counts")
            .remedy("give the transitions of the states or their counts"));
    };
    let (by, word, model) = method(command, &fit, &result);
    // Where transitions lead: to the states of the fit, or to its destinations where they are another set.
    let ends = result.destinations.as_ref().map_or(&result.states, |d| &d.table);
    let known: HashMap<&str, u32> =
        ends.iter().skip(1).enumerate().filter_map(|(i, row)| Some((row.first()?.as_str(), i as u32))).collect();
    if known.len() != model.v.rows() || result.xi.len() != model.u.rows() {
        return Err(CliError::failed("E-CLI-RESULT", "states.csv and factors.npz speak of different states").at(command
            .assign
            .result
            .display()
            .to_string()));
    }
    let assigner = Assigner::new(model, by)?;
    let exponent = fit.weight_power.exponent();
    let mut ledger = counted.counts.ledger().clone();
    let fitted: HashSet<&str> = result.states.iter().skip(1).filter_map(|row| Some(row.first()?.as_str())).collect();
    let rows = memberships(&counted.counts, (&fitted, &known), &assigner, &mut ledger, |departures| {
        (departures / summary.transitions).powf(exponent)
    });
    if rows.is_empty() {
        return Err(CliError::bad("E-CLI-ASSIGN", "no transition in these inputs leads to a state of the fit")
            .remedy("check that the states are named as in the fit, and that the columns are not exchanged"));
    }
    let new_states = rows.iter().filter(|r| !r.known).count();
    folder::write_file(&command.assign.out, table(&rows, model.rank()).as_bytes())?;
    reporter.clear();
    Ok(Assigned {
        result: command.assign.result.display().to_string(),
        out: command.assign.out.display().to_string(),
        states: rows.len(),
        new_states,
        by: word,
        ledger: LedgerRecord::list(&ledger),
        hints: inherited.into_iter().chain(ingested.hints).collect(),
    })
}

/// What memberships are the best answer to, in words too, and the factors whose destinations they go with: as asked for, else as the result's own memberships were found.
fn method<'a>(command: &AssignCommand, fit: &FitArgs, result: &'a SavedResult) -> (AssignBy, &'static str, &'a Factors) {
    let kind = command.assign.by.unwrap_or(match (&result.refit, fit.refit_kind()) {
        (Some(_), RefitKind::Likelihood) => AssignKind::Likelihood,
        (Some(_), RefitKind::LeastSquares) => AssignKind::LeastSquares,
        _ => AssignKind::Penalised,
    });
    let (summary, model) = (&result.summary, result.model());
    match kind {
        AssignKind::Penalised => (AssignBy::Penalised { lambda: summary.lambda }, "the penalised problem of the fit", &result.factors),
        AssignKind::LeastSquares => (AssignBy::LeastSquares, "least squares", model),
        AssignKind::Likelihood => {
            let prior = summary.refit.as_ref().and_then(|r| r.prior()).unwrap_or(0.0);
            (AssignBy::Likelihood { prior, mass: model.mass(&result.xi) }, "maximum likelihood", model)
        }
    }
}

/// Options that contradict no fit, whatever they are: they are about these files alone.
const OWN: [&str; 11] =
    ["inputs", "labels", "weights", "where", "bbox", "min-share", "max-self-share", "memory-limit", "no-header", "delimiter", "columns"];
/// Options that are never taken from the fit.
const NEVER: [&str; 6] = ["inputs", "labels", "weights", "min-share", "max-self-share", "memory-limit"];
/// Options whose default says something, too.
const TELLING: [&str; 4] = ["cell", "lag", "count", "weight"];

/// Every option about the input that was not given is taken from the fit, and said. One that contradicts the fit is refused: other cells, another lag or
/// other columns would give memberships of something else. States are never left out for being small.
fn as_in_the_fit(mine: &InputArgs, given: &[String], theirs: &InputArgs) -> Result<(InputArgs, Option<String>)> {
    let json = |args: &InputArgs| serde_json::to_value(args).unwrap_or_default();
    let (own, fit, plain) = (json(mine), json(theirs), json(&InputArgs::default()));
    let said = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let (mut merged, mut inherited) = (own.clone(), Vec::new());
    for entry in InputArgs::entries() {
        let (name, key) = (entry.name.as_str(), entry.key());
        let (my, their) = (&own[&key], &fit[&key]);
        let by_default = their == &plain[&key];
        if !given.iter().any(|g| g == name) {
            if !by_default && !NEVER.contains(&name) {
                merged[&key] = their.clone();
                inherited.push(if their.is_boolean() { format!("--{name}") } else { format!("--{name} {}", said(their)) });
            }
        } else if my != their && !OWN.contains(&name) && (!by_default || TELLING.contains(&name)) {
            let did = if their.is_null() { "had none".to_owned() } else { format!("had {}", said(their)) };
            return Err(CliError::bad(
                "E-CLI-ASSIGN",
                format!("--{name} is {}, and the fit {did}: memberships computed so could not be compared with those of the fit", said(my)),
            )
            .remedy(format!("leave out --{name}; what is not given is taken from the fit")));
        }
    }
    let merged: InputArgs = serde_json::from_value(merged).map_err(|e| CliError::failed("E-CLI-ASSIGN", e.to_string()))?;
    let words = (!inherited.is_empty()).then(|| format!("options taken from the fit: {}", inherited.join(" ")));
    Ok((InputArgs { min_share: 0.0, max_self_share: None, ..merged }, words))
}

struct AssignedState {
    label: String,
    known: bool,
    departures: f64,
    unknown_share: f64,
    membership: Vec<f64>,
}

fn memberships(
    counts: &Counts,
    (fitted, known): (&HashSet<&str>, &HashMap<&str, u32>),
    assigner: &Assigner,
    ledger: &mut Ledger,
    weight: impl Fn(f64) -> f64,
) -> Vec<AssignedState> {
    let names: Vec<String> = counts.index().labels().map(|l| l.to_string()).collect();
    let position: Vec<Option<u32>> = names.iter().map(|n| known.get(n.as_str()).copied()).collect();
    let mut rows = Vec::new();
    let (mut unknown, mut strangers) = (0.0, Vec::new());
    for (i, name) in names.iter().enumerate() {
        let (columns, values) = counts.csr().row(i);
        let departures: f64 = values.iter().sum();
        if departures <= 0.0 {
            continue;
        }
        let transitions: Vec<(u32, f64)> = columns.iter().zip(values).filter_map(|(&j, &n)| Some((position[j as usize]?, n))).collect();
        let seen: f64 = transitions.iter().map(|t| t.1).sum();
        unknown += departures - seen;
        // A new state that stays where it is says nothing of where it leads in the fit.
        match assigner.membership(&transitions, weight(departures)) {
            Some(membership) => rows.push(AssignedState {
                label: name.clone(),
                known: fitted.contains(name.as_str()),
                departures,
                unknown_share: (departures - seen) / departures,
                membership,
            }),
            None => strangers.push(name.clone()),
        }
    }
    if unknown > 0.0 {
        ledger.add("to-a-state-not-in-the-fit", LedgerUnit::Transitions, unknown.round() as u64, unknown, [] as [String; 0]);
    }
    if !strangers.is_empty() {
        let examples: Vec<String> = strangers.iter().take(5).cloned().collect();
        ledger.add("leads-only-to-states-not-in-the-fit", LedgerUnit::States, strangers.len() as u64, 0.0, examples);
    }
    rows
}

fn table(rows: &[AssignedState], rank: usize) -> String {
    let mut out = String::from("label,in_fit,departures,unknown_share,metastate");
    (1..=rank).for_each(|j| {
        let _ = write!(out, ",membership_{j}"); // into a String
    });
    out.push('\n');
    for r in rows {
        let best = metastate::workspace::largest_entry(&r.membership);
        let _ = write!(out, "{},{},{},{},{}", csv_field(&r.label), r.known, number(r.departures), number(r.unknown_share), best + 1);
        r.membership.iter().for_each(|x| {
            let _ = write!(out, ",{}", number(*x));
        });
        out.push('\n');
    }
    out
}
