//! The slices: which row of V is what, flows and profiles of each of them, and which zones change.

use metastate::workspace::plain;
use metastate_report::SlicesRecord;

use super::checks::{Checks, ExpectedCell, Named, header, near};
use super::subject::Subject;
use super::twin::{self, Column};
use crate::args::InputArgs;

/// Likelihood ratios are sums over all transitions, in another order here.
const SAME_RATIO: f64 = 1e-8;

/// A p-value times the number of deals is whole but for this.
const WHOLE: f64 = 1e-6;

/// `summary.slices`, `slices.csv`, `profiles.parquet` and `changes.csv`. That `slices.npz` names the columns of these data is known before.
pub fn check(checks: &mut Checks, subject: &Subject, input: &InputArgs) {
    let told = &subject.result.summary.slices;
    let (Some(record), Some(_)) = (told, subject.data.data.slices()) else {
        return checks.table("slices", (told.is_some() || input.slice.is_some()).then(|| "there are none".to_owned()));
    };
    checks.table("slices", wrong_record(record, subject, input));
    checks.table("slices.csv", wrong_flows(subject));
    checks.table("profiles.parquet", wrong_profiles(subject));
    checks.table("changes.csv", wrong_change(record, subject).err());
    if record.change.is_some() {
        checks.hash_only("slices: p-values", "from slices that were dealt anew at random");
    }
}

fn wrong_record(record: &SlicesRecord, subject: &Subject, input: &InputArgs) -> Option<String> {
    let slices = subject.data.data.slices()?;
    let labels: Vec<String> = slices.labels().labels().map(|l| l.to_string()).collect();
    let wrong = [
        ("expression", Some(&record.expression) != input.slice.as_ref()),
        ("labels", record.labels != labels),
        ("rows", record.rows != subject.model().v.rows()),
    ];
    wrong.iter().find(|(_, is)| *is).map(|(name, _)| format!("{name}: another one"))
}

/// Every flow, from the factors.
fn wrong_flows(subject: &Subject) -> Option<String> {
    let slices = subject.data.data.slices()?;
    let (model, s) = (subject.model(), subject.model().rank());
    let flows = plain::slice_flows(&model.u, &model.v, subject.data.chain().xi(), slices.columns(), slices.len());
    let mut rows = Vec::with_capacity(slices.len() * s * s);
    for (label, flow) in slices.labels().labels().zip(&flows) {
        for at in 0..s * s {
            let (j, k) = (at / s, at % s);
            rows.push(vec![
                ExpectedCell::Is(label.to_string()),
                ExpectedCell::Is((j + 1).to_string()),
                ExpectedCell::Is((k + 1).to_string()),
                ExpectedCell::Near(flow[(j, k)]),
            ]);
        }
    }
    match Named::read(subject.folder, "slices.csv") {
        Ok(table) => table.difference(&["slice", "from_metastate", "to_metastate", "flow"].map(str::to_owned), &rows),
        Err(why) => Some(why),
    }
}

/// Slice, state and transitions of each row from the data, its profiles from the factors to the bit.
fn wrong_profiles(subject: &Subject) -> Option<String> {
    let slices = subject.data.data.slices()?;
    let v = &subject.model().v;
    let file = match twin::read(subject.folder, "profiles.parquet", v.rows()) {
        Ok(file) => file,
        Err(why) => return Some(why),
    };
    let names = header(&["slice", "label", "transitions"], v.cols(), &["profile"]);
    if !file.columns.iter().map(|c| &c.0).eq(&names) {
        return Some("other columns".to_owned());
    }
    let chain = subject.data.chain();
    let mut arrivals = vec![0.0; v.rows()];
    for i in 0..chain.states() {
        chain.p().row(i).for_each(v.rows(), |c, p| arrivals[c] += chain.departures()[i] * p);
    }
    for (number, (name, column)) in file.columns.iter().enumerate() {
        let wrong = match (number, column) {
            (0, Column::Texts(told)) => {
                (0..v.rows()).find(|&c| told.get(c) != Some(&slices.labels().label(slices.columns()[c].0 as usize).to_string()))
            }
            (1, Column::Texts(told)) => (0..v.rows()).find(|&c| told.get(c) != Some(&subject.labels[slices.columns()[c].1 as usize])),
            (2, Column::Numbers(told)) => (0..v.rows()).find(|&c| !told.get(c).is_some_and(|x| near(x / arrivals[c], 1.0))),
            (_, Column::Numbers(told)) if number > 2 => (0..v.rows()).find(|&c| told.get(c) != Some(&v[(c, number - 3)])),
            _ => Some(0),
        };
        if let Some(c) = wrong {
            return Some(format!("row {}, {name}: another value", c + 1));
        }
    }
    None
}

/// The likelihood ratios on the folds, zone by zone, in the record and in the table.
fn wrong_change(record: &SlicesRecord, subject: &Subject) -> Result<(), String> {
    let Some(told) = &record.change else { return Ok(()) };
    let demand = |it_is: bool, what: &str| if it_is { Ok(()) } else { Err(what.to_owned()) };
    let (Some(slices), Some(parts)) = (subject.data.data.slices(), subject.data.parts()) else {
        return Err("there are no slices".to_owned());
    };
    let (zones, count) = (subject.zones()?, subject.zone_count());
    demand(told.folds == subject.fit.folds, "folds: another number")?;
    let folds = parts.folds(told.folds, subject.result.summary.seed).map_err(|e| e.to_string())?;
    let held_out: Vec<_> = (0..folds.len()).map(|f| folds.held_out(f)).collect();
    let found = plain::change(&held_out, slices.columns(), &zones, count, slices.len());
    demand(told.zones.len() == count, "not one line a zone")?;
    let p_value = |p: f64| {
        p > 0.0 && p <= 1.0 && (p * (told.permutations as f64 + 1.0) - (p * (told.permutations as f64 + 1.0)).round()).abs() < WHOLE
    };
    let close = |a: f64, b: f64| (a - b).abs() <= SAME_RATIO * (1.0 + b.abs());
    let (mut transitions, mut log_ratio) = (0.0, 0.0);
    for (z, (line, (n, ratio))) in told.zones.iter().zip(&found).enumerate() {
        let gain = if *n > 0.0 { ratio / n } else { 0.0 };
        demand(line.transitions == *n, &format!("zone {}, transitions: should be {n}", z + 1))?;
        demand(close(line.log_ratio, *ratio), &format!("zone {}, log_ratio: should be {ratio}", z + 1))?;
        demand(close(line.gain, gain), &format!("zone {}, gain: should be {gain}", z + 1))?;
        demand(p_value(line.p_value), &format!("zone {}, p_value: no share of the deals", z + 1))?;
        (transitions, log_ratio) = (transitions + n, log_ratio + ratio);
    }
    let whole = &told.whole;
    demand(whole.transitions == transitions && close(whole.log_ratio, log_ratio), "all zones: another sum")?;
    demand(close(whole.gain, log_ratio / transitions) && p_value(whole.p_value), "all zones: another gain or p-value")?;
    let row = |(z, c): (usize, &metastate_report::ZoneChangeRecord)| {
        let numbers = [c.transitions, c.log_ratio, c.gain, c.p_value].map(ExpectedCell::number);
        std::iter::once(ExpectedCell::Is((z + 1).to_string())).chain(numbers).collect()
    };
    let rows: Vec<Vec<ExpectedCell>> = told.zones.iter().enumerate().map(row).collect();
    let table = Named::read(subject.folder, "changes.csv")?;
    table.difference(&["zone", "transitions", "log_ratio", "gain", "p_value"].map(str::to_owned), &rows).map_or(Ok(()), Err)
}
