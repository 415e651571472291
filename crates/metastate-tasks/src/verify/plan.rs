//! The plan in a folder: Bellman's equation on all states, the policy against the values, the bound row by row. Nothing of the planner is used.

use std::path::Path;

use metastate::plan::Tried;
use metastate_report::{PLAN_FILE, POLICY_FILE, PlanRecord, Q_FILE, hash, inside, load_plan};

use super::checks::{Checks, ExpectedCell, Named};
use super::control::alike;
use super::subject::Subject;
use super::twin::{self, Column};
use crate::control::ControlledData;
use crate::plan::GivenRewards;

/// How far a value may be from Bellman's equation, relative to the largest value.
const BELLMAN: f64 = 1e-8;
/// Beyond so many products the bound is not computed again.
const MOST_PRODUCTS: f64 = 2e9;
/// The files of a plan.
pub const FILES: [&str; 3] = [PLAN_FILE, POLICY_FILE, Q_FILE];

/// `plan.json`, `q.parquet` and `policy.csv`, where there is a plan.
pub fn check(checks: &mut Checks, subject: &Subject) {
    let record = match load_plan(subject.folder) {
        Ok(Some(record)) => record,
        Ok(None) => {
            // Tables without their document are nobody's.
            if let Some(name) = FILES.iter().find(|name| subject.folder.join(name).exists()) {
                checks.table(PLAN_FILE, Some(format!("is not there, and {name} is")));
            }
            return;
        }
        Err(e) => return checks.table(PLAN_FILE, Some(e.to_string())),
    };
    let Some(control) = &subject.data.control else { return checks.table(PLAN_FILE, Some("these data have no actions".to_owned())) };
    checks.table("plan.json: files", wrong_hash(subject.folder, &record));
    let q = match Q::read(subject, control, &record) {
        Ok(q) => q,
        Err(why) => {
            checks.table(Q_FILE, Some(why));
            return checks.not_checked(POLICY_FILE, "as in the file", "q.parquet cannot be used");
        }
    };
    checks.table("q.parquet: rewards", wrong_rewards(subject, control, &record, &q));
    checks.table(Q_FILE, wrong_values(subject, control, &record, &q));
    checks.table(POLICY_FILE, wrong_policy(subject, control, &q));
    checks.table("plan.json: counts and means", wrong_record(subject, control, &record, &q));
    match (&record.bound, record.untried) {
        (None, _) => {}
        (Some(_), true) => checks.table("plan.json: bound", Some("there is none where actions are guessed".to_owned())),
        (Some(_), false) if products(subject) > MOST_PRODUCTS => {
            checks.not_checked("plan.json: bound", "as in the file", "too many pairs for plain loops")
        }
        (Some(_), false) => checks.table("plan.json: bound", wrong_bound(subject, control, &record, &q)),
    }
    if let Some(c) = &record.check {
        checks.not_checked("plan.json: check", c.value, "it takes fits on the folds; plan again to see the same numbers");
    }
    if record.untried {
        checks.not_checked("plan.json: guesses", record.guessed, "memberships of pairs that were never tried");
    }
}

fn wrong_hash(folder: &Path, record: &PlanRecord) -> Option<String> {
    [POLICY_FILE, Q_FILE].into_iter().find_map(|name| {
        let found = inside::read(folder, name).map(|bytes| hash::of_bytes(&bytes));
        match (found, record.files.get(name)) {
            (Ok(found), Some(told)) if found == *told => None,
            _ => Some(format!("{name} was changed")),
        }
    })
}

/// `q.parquet` as the data number it.
struct Q {
    state: Vec<usize>,
    action: Vec<usize>,
    value: Vec<f64>,
    reward: Vec<f64>,
    records: Vec<f64>,
    /// The row of U of each; none where it was guessed.
    row: Vec<Option<usize>>,
    /// The largest value of each state, where it has a row.
    best: Vec<Option<f64>>,
}

impl Q {
    fn read(subject: &Subject, control: &ControlledData, record: &PlanRecord) -> Result<Q, String> {
        let pairs = &control.tried.pairs;
        let left = (0..control.states.len()).filter(|s| !pairs.of(*s).is_empty()).count();
        let most = left * control.actions.len();
        let rows = metastate_ingest::side::check_parquet(&subject.folder.join(Q_FILE)).map_err(|e| e.sentence().to_owned())? as usize;
        if rows > most || (!record.untried && rows != pairs.len()) {
            return Err(format!("{rows} rows, and {} pairs were tried", pairs.len()));
        }
        let twin = twin::read(subject.folder, Q_FILE, rows)?;
        let names = ["state", "action", "value", "reward", "records"];
        if !twin.columns.iter().map(|c| c.0.as_str()).eq(names) {
            return Err("other columns".to_owned());
        }
        let texts = |k: usize| match &twin.columns[k].1 {
            Column::Texts(all) => Ok(all),
            _ => Err(format!("{} holds no texts", names[k])),
        };
        let numbers = |k: usize| match &twin.columns[k].1 {
            Column::Numbers(all) if all.iter().all(|x| x.is_finite()) => Ok(all.clone()),
            _ => Err(format!("{} holds no numbers", names[k])),
        };
        let place = |index: &metastate::StateIndex, text: &String| {
            index
                .position(&metastate::Label::from(text.as_str()))
                .map(|k| k as usize)
                .ok_or_else(|| format!("the data have no `{}`", text.escape_debug()))
        };
        let state: Vec<usize> = texts(0)?.iter().map(|t| place(&control.states, t)).collect::<Result<_, _>>()?;
        let action: Vec<usize> = texts(1)?.iter().map(|t| place(&control.actions, t)).collect::<Result<_, _>>()?;
        let (value, reward, records) = (numbers(2)?, numbers(3)?, numbers(4)?);
        let mut seen = std::collections::HashSet::new();
        let (mut row, mut best) = (Vec::new(), vec![None; control.states.len()]);
        for k in 0..rows {
            if !seen.insert((state[k], action[k])) {
                return Err(format!("row {}: a pair for the second time", k + 1));
            }
            let at = pairs.position(state[k] as u32, action[k] as u32);
            let tried = at.map_or(0.0, |p| control.tried.records[p]);
            if records[k] != tried {
                return Err(format!("row {}, records: should be {tried}", k + 1));
            }
            best[state[k]] = Some(best[state[k]].map_or(value[k], |b: f64| b.max(value[k])));
            row.push(at);
        }
        if row.iter().flatten().count() != pairs.len() {
            return Err("a pair that was tried is missing".to_owned());
        }
        Ok(Q { state, action, value, reward, records, row, best })
    }

    /// The largest value by size, at least one.
    fn size(&self) -> f64 {
        self.value.iter().fold(1.0, |a, x| a.max(x.abs()))
    }

    /// What each row of V is worth.
    fn at_reached(&self, tried: &Tried) -> Vec<f64> {
        tried.reached.iter().map(|s| self.best[*s as usize].unwrap_or(0.0)).collect()
    }
}

/// Rewards of the log as estimated, or those of the file where it is still what it was.
fn wrong_rewards(subject: &Subject, control: &ControlledData, record: &PlanRecord, q: &Q) -> Option<String> {
    let expected: Vec<f64> = match &record.rewards_file {
        None if record.rewards_from == "log" => {
            let table = match Named::read(subject.folder, "pairs.csv") {
                Ok(table) => table,
                Err(why) => return Some(why),
            };
            (0..control.tried.pairs.len()).map(|p| table.number(p, "reward")).collect()
        }
        None => return Some(format!("nobody knows rewards from `{}`", record.rewards_from.escape_debug())),
        Some(file) => {
            let path = Path::new(&file.name);
            if hash::of_file(path).map_or(true, |found| found != (file.bytes, file.sha256.clone())) {
                return Some(format!("the file of rewards {} is gone or was changed", file.name.escape_debug()));
            }
            let given = GivenRewards::read(path).ok().filter(|g| g.kind() == record.rewards_from);
            match given.map(|g| g.at_pairs((&control.states, &control.actions), &control.tried, subject.u(), &subject.model().v)) {
                Some(Ok(rewards)) => rewards,
                _ => return Some("the file of rewards does not give them".to_owned()),
            }
        }
    };
    let found: Vec<(usize, f64)> = q.row.iter().zip(&q.reward).filter_map(|(row, r)| row.map(|p| (p, *r))).collect();
    let mut in_order = vec![f64::NAN; expected.len()];
    found.into_iter().for_each(|(p, r)| in_order[p] = r);
    alike(&in_order, &expected).map(|p| format!("pair {}: should be paid {}", p + 1, expected[p]))
}

/// `q = r + gamma X max q`, X state by state.
fn wrong_values(subject: &Subject, control: &ControlledData, record: &PlanRecord, q: &Q) -> Option<String> {
    if !(0.0..1.0).contains(&record.discount) {
        return Some(format!("a discount of {}", record.discount));
    }
    let (u, v) = (subject.u(), &subject.model().v);
    let values = q.at_reached(&control.tried);
    let ahead: Vec<f64> = (0..v.cols()).map(|k| values.iter().enumerate().map(|(j, x)| v[(j, k)] * x).sum()).collect();
    let worth = (alike(&record.worth, &ahead))
        .map(|k| format!("plan.json: the worth of meta-state {} should be {}", k + 1, ahead.get(k).copied().unwrap_or(f64::NAN)));
    let size = q.size();
    let off = |k: usize| q.row[k].map(|p| q.reward[k] + record.discount * (0..v.cols()).map(|l| u[(p, l)] * ahead[l]).sum::<f64>());
    let wrong = (0..q.value.len()).find_map(|k| {
        off(k).filter(|x| (x - q.value[k]).abs() > BELLMAN * size).map(|x| format!("row {}: Bellman's equation gives {x}", k + 1))
    });
    wrong.or(worth)
}

/// For every state its best row, to the letter; what ends is worth nothing.
fn wrong_policy(subject: &Subject, control: &ControlledData, q: &Q) -> Option<String> {
    let table = match Named::read(subject.folder, POLICY_FILE) {
        Ok(table) => table,
        Err(why) => return Some(why),
    };
    let names = ["state", "action", "value", "records", "untried"].map(str::to_owned);
    if let Some(wrong) = table.wrong_shape(&names, Some(control.states.len())) {
        return Some(wrong);
    }
    let mut place = std::collections::HashMap::new();
    (0..q.value.len()).for_each(|k| {
        place.insert((q.state[k], q.action[k]), k);
    });
    let size = q.size();
    let mut seen = vec![false; control.states.len()];
    for i in 0..table.rows.len() {
        let text = |name: &str| table.field(i, name).unwrap_or_default();
        let Some(s) = control.states.position(&metastate::Label::from(text("state"))).map(|s| s as usize) else {
            return Some(format!("row {}: the data have no such state", i + 1));
        };
        if std::mem::replace(&mut seen[s], true) {
            return Some(format!("row {}: the state for the second time", i + 1));
        }
        let tried = control.tried.pairs.of(s).len();
        let untried = if tried == 0 { 0 } else { control.actions.len() - tried };
        let wrong = |name: &str, should: String| Some(format!("row {}, {name}: should be {should}", i + 1));
        if text("untried") != untried.to_string() {
            return wrong("untried", untried.to_string());
        }
        let Some(best) = q.best[s] else {
            match text("action").is_empty() && table.number(i, "value") == 0.0 && table.number(i, "records") == 0.0 {
                true => continue,
                false => return wrong("action", "nothing, with the value 0".to_owned()),
            }
        };
        let chosen = control.actions.position(&metastate::Label::from(text("action"))).and_then(|a| place.get(&(s, a as usize)));
        match chosen {
            Some(&k) if q.value[k] >= best - BELLMAN * size => {
                if text("value") != metastate_report::number(q.value[k]) {
                    return wrong("value", metastate_report::number(q.value[k]));
                }
                if !matches!(ExpectedCell::number(q.records[k]), ExpectedCell::Is(t) if t == text("records")) {
                    return wrong("records", metastate_report::number(q.records[k]));
                }
            }
            _ => return wrong("action", format!("one of the value {best}")),
        }
    }
    None
}

/// Numbers of states, and the mean.
fn wrong_record(subject: &Subject, control: &ControlledData, record: &PlanRecord, q: &Q) -> Option<String> {
    let pairs = &control.tried.pairs;
    let left: Vec<usize> = (0..control.states.len()).filter(|s| q.best[*s].is_some()).collect();
    let incomplete = left.iter().filter(|s| pairs.of(**s).len() < control.actions.len()).count();
    let counts = [
        ("states", record.states, control.states.len()),
        ("ends", record.ends, control.states.len() - left.len()),
        ("incomplete", record.incomplete, incomplete),
    ];
    if let Some((name, _, expected)) = counts.iter().find(|(_, a, b)| a != b) {
        return Some(format!("{name} should be {expected}"));
    }
    let table = Named::read(subject.folder, POLICY_FILE).ok()?;
    let taken = |i: &usize| table.field(*i, "action").is_some_and(|a| !a.is_empty());
    let rows: Vec<usize> = (0..table.rows.len()).filter(taken).collect();
    let guessed = rows.iter().filter(|i| table.number(**i, "records") == 0.0).count();
    let barely = rows.iter().filter(|i| (0.5..=2.0).contains(&table.number(**i, "records"))).count();
    if (record.guessed, record.barely) != (guessed, barely) {
        return Some(format!("{guessed} states take a guess, {barely} what was hardly tried"));
    }
    let mean = left.iter().filter_map(|s| q.best[*s]).sum::<f64>() / left.len().max(1) as f64;
    if (record.mean_value - mean).abs() > BELLMAN * q.size() {
        return Some(format!("mean_value should be {mean}"));
    }
    let model = if subject.result.refit.is_some() { "refit" } else { "factors" };
    (record.model != model).then(|| format!("the plan is of {model}"))
}

fn products(subject: &Subject) -> f64 {
    let x = subject.model();
    x.u.rows() as f64 * x.v.rows() as f64 * x.v.cols() as f64
}

/// The bound with X written out, row by row.
fn wrong_bound(subject: &Subject, control: &ControlledData, record: &PlanRecord, q: &Q) -> Option<String> {
    let bound = record.bound.as_ref()?;
    let (u, v, tried) = (subject.u(), &subject.model().v, &control.tried);
    let values = q.at_reached(tried);
    let (n, gamma) = (v.rows(), record.discount);
    let (mut off, mut norm) = (0.0f64, 0.0f64);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (k, p) in q.row.iter().enumerate().filter_map(|(k, p)| p.map(|p| (k, p))) {
        let mut row: Vec<f64> = (0..n).map(|j| -(0..v.cols()).map(|l| u[(p, l)] * v[(j, l)]).sum::<f64>()).collect();
        let (columns, counts) = tried.counts.row(p);
        columns.iter().zip(counts).for_each(|(j, c)| row[*j as usize] += c / tried.records[p]);
        off = off.max(row.iter().zip(&values).map(|(a, b)| a * b).sum::<f64>().abs());
        norm = norm.max(row.iter().map(|x| x.abs()).sum());
        (low, high) = (low.min(q.reward[k]), high.max(q.reward[k]));
    }
    if q.best.iter().any(Option::is_none) {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    let far = 1.0 - gamma;
    let expected = [2.0 * gamma * off / far, gamma / (far * far) * (high - low) * norm, (high - low) / far];
    // The published one adds what the fixed point is off by.
    let slack = 2.0 * gamma * BELLMAN * q.size() / (far * far);
    let found = [bound.loss, bound.by_norm, bound.any];
    let names = ["loss", "by_norm", "any"];
    let wrong = (0..3).find(|&k| (found[k] - expected[k]).abs() > slack + BELLMAN * expected[k].abs());
    let wrong = wrong.map(|k| format!("{} should be {}", names[k], expected[k]));
    wrong.or_else(|| (bound.says_something != (bound.loss < bound.any)).then(|| "says_something is wrong".to_owned()))
}
