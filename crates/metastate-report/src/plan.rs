//! The tables of a controlled chain, and what `metastate plan` writes beside them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use metastate::plan::{Paid, Pairs, Rewards, latent_of_actions};
use metastate::{Mat, StateIndex};
use serde::{Deserialize, Serialize};

use crate::error::{Result, damaged};
use crate::folder::write_file;
use crate::summary::FileRecord;
use crate::tables::csv_field;
use crate::{hash, inside, parquet_table};

/// One row a pair of state and action.
pub const PAIRS_FILE: &str = "pairs.csv";
/// What each meta-state pays.
pub const REWARDS_FILE: &str = "rewards.csv";
/// The latent chain of each action.
pub const ACTIONS_FILE: &str = "actions.csv";
/// One row a state.
pub const POLICY_FILE: &str = "policy.csv";
/// One row a pair.
pub const Q_FILE: &str = "q.parquet";
/// What is known of the plan.
pub const PLAN_FILE: &str = "plan.json";
/// The layout of `plan.json`.
pub const PLAN_SCHEMA: &str = "metastate-plan-1";

/// `state,action,records`, and with rewards `reward,reward_error,mean,spread`.
pub fn pairs_csv(pairs: &Pairs, states: &StateIndex, actions: &StateIndex, records: &[f64], paid: Option<(&Rewards, &Paid)>) -> String {
    let mut out =
        String::from(if paid.is_some() { "state,action,records,reward,reward_error,mean,spread\n" } else { "state,action,records\n" });
    for p in 0..pairs.len() {
        let (state, action) = (states.label(pairs.state[p] as usize).to_string(), actions.label(pairs.action[p] as usize).to_string());
        let _ = write!(out, "{},{},{:?}", csv_field(&state), csv_field(&action), records[p]); // into a String
        if let Some((rewards, paid)) = paid {
            let numbers = [rewards.pair[p], rewards.pair_error[p], paid.mean[p], paid.spread[p]];
            numbers.iter().for_each(|x| {
                let _ = write!(out, ",{x:?}"); // into a String
            });
        }
        out.push('\n');
    }
    out
}

/// `metastate,reward,error`.
pub fn rewards_csv(rewards: &Rewards) -> String {
    let mut out = String::from("metastate,reward,error\n");
    for (k, (reward, error)) in rewards.metastate.iter().zip(&rewards.metastate_error).enumerate() {
        let _ = writeln!(out, "{},{reward:?},{error:?}", k + 1); // into a String
    }
    out
}

/// `action,from_metastate,to_metastate,probability,tried`: `K_a`, row by row, and for each row the share of the meta-state's arrivals where the action was tried.
pub fn actions_csv(pairs: &Pairs, reached: &[u32], u: &Mat, v: &Mat, actions: &StateIndex) -> String {
    let mut out = String::from("action,from_metastate,to_metastate,probability,tried\n");
    for (a, (chain, tried)) in latent_of_actions(pairs, reached, u, v).iter().enumerate() {
        let name = csv_field(&actions.label(a).to_string());
        for j in 0..chain.rows() {
            for k in 0..chain.cols() {
                let _ = writeln!(out, "{name},{},{},{:?},{:?}", j + 1, k + 1, chain[(j, k)], tried[j]); // into a String
            }
        }
    }
    out
}

/// `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The layout of this document.
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// `refit` or `factors`: which U and V.
    pub model: String,
    /// The discount.
    pub discount: f64,
    /// `log`, or the columns of the file of rewards: `state`, `state and action`, `next state` or `metastate`.
    pub rewards_from: String,
    /// The file of rewards, where one was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewards_file: Option<FileRecord>,
    /// Whether pairs that were never tried may be taken, at a guess.
    pub untried: bool,
    /// Seed of the folds.
    pub seed: u64,
    /// States.
    pub states: usize,
    /// States that were reached and never left: their value is zero.
    pub ends: usize,
    /// States that take an action which was never tried there.
    pub guessed: usize,
    /// States at which some action was never tried.
    pub incomplete: usize,
    /// States whose action was tried at most twice there.
    pub barely: usize,
    /// What is paid from the next step on where a step leads into each meta-state.
    pub worth: Vec<f64>,
    /// By how much these are at most off the fixed point of the fitted model: proven.
    pub off: f64,
    /// Policies that were evaluated.
    pub rounds: usize,
    /// Mean value over the states that are left: what the model claims, an estimate.
    pub mean_value: f64,
    /// What the policy can lose at most in the process that was counted; none where the log was not read again, or actions were guessed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bound: Option<BoundRecord>,
    /// What held-out records say; none where they were not asked, `not_checked` says why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub check: Option<CheckRecord>,
    /// Why there is no check.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub not_checked: Option<String>,
    /// For each meta-state, what the plan does after a step into it.
    pub metastates: Vec<MetastateRecord>,
    /// What the user should know, in sentences.
    pub hints: Vec<String>,
    /// SHA-256 of the tables.
    pub files: BTreeMap<String, String>,
}

/// The loss in the counted process. It is a theorem about that process and proves nothing about another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundRecord {
    /// `2 gamma max |(P - X) v| / (1 - gamma)`.
    pub loss: f64,
    /// `2 gamma / (1 - gamma)^2 span(r) max ||P - X||_1 / 2`.
    pub by_norm: f64,
    /// What no policy can lose more than: the span of the rewards over `1 - gamma`.
    pub any: f64,
    /// Whether the first is below the last.
    pub says_something: bool,
}

/// The doubly robust estimate on held-out records: measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// What policies learnt on the other folds earn.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// The interval that holds it 19 times of 20.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What the same policies claim of themselves.
    pub claimed: f64,
    /// What the episodes of the log earned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log: Option<f64>,
    /// `episodes` or `records`.
    pub unit: String,
    /// How many.
    pub units: usize,
    /// Records of even weight that would be as good.
    pub effective: f64,
    /// Share of the policies' visits at pairs that the held-out records hold.
    pub covered: f64,
    /// Folds.
    pub folds: usize,
}

/// What the plan does after a step into a meta-state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetastateRecord {
    /// Its number, from 1.
    pub metastate: usize,
    /// What is paid from the next step on.
    pub worth: f64,
    /// Share of its arrivals that take each action, the largest first; ends take none.
    pub actions: Vec<(String, f64)>,
}

/// One row of `policy.csv`.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRow {
    /// The state.
    pub state: String,
    /// What to do; nothing where nothing was ever tried.
    pub action: Option<String>,
    /// Its value.
    pub value: f64,
    /// Records of that pair; zero where it was guessed.
    pub records: f64,
    /// Actions that were never tried there.
    pub untried: usize,
}

/// One row of `q.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub struct QRow {
    /// The state.
    pub state: String,
    /// The action.
    pub action: String,
    /// Its value.
    pub value: f64,
    /// What it is paid at once.
    pub reward: f64,
    /// Records of the pair; zero where it was guessed.
    pub records: f64,
}

/// `state,action,value,records,untried`.
pub fn policy_csv(rows: &[PolicyRow]) -> String {
    let mut out = String::from("state,action,value,records,untried\n");
    for row in rows {
        let action = row.action.as_deref().unwrap_or_default();
        let _ = writeln!(out, "{},{},{:?},{:?},{}", csv_field(&row.state), csv_field(action), row.value, row.records, row.untried); // into a String
    }
    out
}

/// `state, action, value, reward, records`.
pub fn q_parquet(rows: &[QRow]) -> std::result::Result<Vec<u8>, String> {
    let texts = |of: fn(&QRow) -> &str| -> ArrayRef { Arc::new(rows.iter().map(|r| Some(of(r))).collect::<StringArray>()) };
    let numbers = |of: fn(&QRow) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(rows.iter().map(of))) };
    let columns = [
        ("state", texts(|r| &r.state)),
        ("action", texts(|r| &r.action)),
        ("value", numbers(|r| r.value)),
        ("reward", numbers(|r| r.reward)),
        ("records", numbers(|r| r.records)),
    ];
    parquet_table::bytes(columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect(), None)
}

/// Writes the tables, then the document that names their hashes: a plan is there when its document is.
pub fn write_plan(folder: &Path, mut record: PlanRecord, policy: &[PolicyRow], q: &[QRow]) -> Result<PlanRecord> {
    let place = folder.join(PLAN_FILE);
    let q = q_parquet(q).map_err(|e| damaged(&folder.join(Q_FILE), format!("cannot be written ({e})")))?;
    // The old document goes first: half a plan must not look like a whole one.
    if inside::look(folder, PLAN_FILE)?.is_some() {
        std::fs::remove_file(&place).map_err(crate::error::writing(&place))?;
    }
    for (name, bytes) in [(POLICY_FILE, policy_csv(policy).into_bytes()), (Q_FILE, q)] {
        inside::look(folder, name)?;
        record.files.insert(name.to_owned(), hash::of_bytes(&bytes));
        write_file(&folder.join(name), &bytes)?;
    }
    // Texts and numbers always serialise.
    let text = serde_json::to_string_pretty(&record).unwrap_or_default() + "\n";
    write_file(&place, text.as_bytes())?;
    Ok(record)
}

/// The plan in a folder; none where there is none.
pub fn load_plan(folder: &Path) -> Result<Option<PlanRecord>> {
    let Some(bytes) = inside::read_if_there(folder, PLAN_FILE)? else { return Ok(None) };
    let path = folder.join(PLAN_FILE);
    let record: PlanRecord =
        serde_json::from_slice(&bytes).map_err(|e| damaged(&path, format!("is not what `metastate plan` wrote ({e})")))?;
    match record.schema == PLAN_SCHEMA {
        true => Ok(Some(record)),
        false => Err(damaged(&path, format!("has the layout {}; `metastate plan` writes it again", record.schema.escape_debug()))),
    }
}
