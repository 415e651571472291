//! `summary.json`: the names are a contract. `docs/result-folder.md` says what every field means, `docs/schema/summary.schema.json` is made from
//! these types.

mod choice;
mod control;
mod kinetics;
mod refit;
mod settings;
mod slices;
mod uncertainty;
mod whitened;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use metastate::Ledger;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use choice::{ChoiceFrame, ChoiceRecord, ChosenScore, EmpiricalRecord, PriorRecord, ScoreRecord};
pub use control::{ControlRecord, RewardsRecord};
pub use kinetics::KineticsRecord;
pub use refit::{LeastSquaresRecord, LikelihoodRecord, RefitRecord, StartWord, TriedStart};
pub use settings::SettingsRecord;
pub use slices::{ChangeRecord, SlicesRecord, ZoneChangeRecord};
pub use uncertainty::{Ends, UncertaintyRecord};
pub use whitened::WhitenedRecord;
pub use words::{BoundProof, StatusWord};

use crate::error::{Error, Result, damaged};
use crate::inside;

/// The version of the layout.
pub const SCHEMA: &str = "metastate-result-2";

/// What the name of every layout begins with.
pub(crate) const SCHEMA_FAMILY: &str = "metastate-result-";

/// Everything about a result that is no array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The version of the layout of the folder.
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// Why the solver stopped. Only `certified` may be called optimal.
    pub status: StatusWord,
    /// Number of states.
    pub states: usize,
    /// Number of destinations, where they are another set than the states, which are then the origins.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destinations: Option<usize>,
    /// Transitions that were counted, by weight.
    pub transitions: f64,
    /// Pairs of states with transitions.
    pub nonzeros: usize,
    /// The weight of the regularizer, given or chosen.
    pub lambda: f64,
    /// The lambda from which on one meta-state is the best answer.
    pub lambda_max: Option<f64>,
    /// Meta-states of the solution in `factors.npz`.
    pub rank: usize,
    /// `fidelity + lambda regularizer` of that solution.
    pub objective: f64,
    /// How far the solution is from the counted matrix: the first part of the objective.
    pub fidelity: f64,
    /// The second part of the objective, before it is multiplied by lambda.
    pub regularizer: f64,
    /// The objective of the best answer with one meta-state, at the same lambda.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub objective_of_one: Option<f64>,
    /// The lower bound of the objective that is proven; null where nothing was.
    pub lower_bound: Option<f64>,
    /// How it was proven.
    pub bound_proof: BoundProof,
    /// The probability that a proof by random starts does not hold; null where the proof is certain.
    #[serde(default)]
    pub bound_failure_probability: Option<f64>,
    /// The error measures.
    pub errors: ErrorMeasures,
    /// Seconds of each part of the work, and `total`.
    pub seconds: BTreeMap<String, f64>,
    /// Sweeps of the local solver.
    pub iterations: usize,
    /// Local solves.
    pub rounds: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// The options, as they were given or by default.
    pub settings: SettingsRecord,
    /// The command that does it again, typed in `directory`.
    pub command: String,
    /// The folder in which the command was typed.
    pub directory: String,
    /// The files that the result rests on.
    pub inputs: Vec<FileRecord>,
    /// What the inputs were read as, and how, in one line.
    #[serde(default)]
    pub read_as: String,
    /// Rows read; with the ledger's rows, those counted add up to it.
    pub rows: u64,
    /// Rows that were counted.
    pub rows_counted: u64,
    /// What was left out, by reason.
    pub ledger: Vec<LedgerRecord>,
    /// What the user should know, in sentences.
    pub hints: Vec<String>,
    /// How lambda and the rank were chosen, when they were not given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice: Option<ChoiceRecord>,
    /// The refit in `refit.npz`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refit: Option<RefitRecord>,
    /// Weights, prices and noise of the whitened problem, where that was solved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub whitened: Option<WhitenedRecord>,
    /// What the bootstrap found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncertainty: Option<UncertaintyRecord>,
    /// Times of the meta-states, and how the states hang together.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kinetics: Option<KineticsRecord>,
    /// What a log of a controlled chain holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub control: Option<ControlRecord>,
    /// The slices, where trips were told apart by one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slices: Option<SlicesRecord>,
    /// SHA-256 of the other files of the folder.
    pub files: BTreeMap<String, String>,
}

impl Summary {
    /// Time steps of the data in one transition.
    pub fn lag(&self) -> f64 {
        settings::lag(&self.settings)
    }

    /// Reads `summary.json` of a folder.
    pub fn read(folder: &Path) -> Result<Summary> {
        let (path, value) = document(folder)?;
        serde_json::from_value(value).map_err(|e| damaged(&path, format!("is no summary of a result ({e})")))
    }
}

/// Where a `summary.json` departs from the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The field of the summary; `summary.json` where it is about no single one.
    pub field: String,
    /// What is wrong with it.
    pub what: String,
}

impl Mismatch {
    /// The first field of a folder's summary that is not as the contract has it: missing, of another type, or a word that does not exist.
    pub fn find(folder: &Path) -> Result<Option<Mismatch>> {
        let (_, value) = document(folder)?;
        let Err(whole) = serde_json::from_value::<Summary>(value.clone()) else { return Ok(None) };
        let fields = [
            wrong::<StatusWord>(&value, "status"),
            wrong::<BoundProof>(&value, "bound_proof"),
            wrong::<ErrorMeasures>(&value, "errors"),
            wrong::<Option<ChoiceRecord>>(&value, "choice"),
            wrong::<Option<RefitRecord>>(&value, "refit"),
            wrong::<Option<WhitenedRecord>>(&value, "whitened"),
            wrong::<Option<UncertaintyRecord>>(&value, "uncertainty"),
            wrong::<Option<KineticsRecord>>(&value, "kinetics"),
            wrong::<Option<SlicesRecord>>(&value, "slices"),
        ];
        let first = fields.into_iter().flatten().next();
        Ok(Some(first.unwrap_or(Mismatch { field: "summary.json".to_owned(), what: whole.to_string() })))
    }
}

/// What is wrong with one field. A field that is missing is for the whole summary to tell.
fn wrong<T: DeserializeOwned>(summary: &Value, field: &str) -> Option<Mismatch> {
    let found = summary.get(field)?;
    let error = serde_json::from_value::<T>(found.clone()).err()?;
    Some(Mismatch { field: field.to_owned(), what: error.to_string() })
}

/// The document in `summary.json`, when it is one of this layout.
fn document(folder: &Path) -> Result<(std::path::PathBuf, Value)> {
    let path = folder.join("summary.json");
    let text = inside::read_text(folder, "summary.json")?;
    let value: Value = serde_json::from_str(&text).map_err(|e| damaged(&path, format!("is no summary of a result ({e})")))?;
    match value["schema"].as_str() {
        Some(SCHEMA) => Ok((path, value)),
        Some(found) => {
            let command = value["command"].as_str().unwrap_or_default().to_owned();
            Err(Error::OtherSchema { path, found: found.to_owned(), command })
        }
        None => Err(damaged(&path, "is no summary of a result (it names no `schema`)")),
    }
}

/// The JSON schema of `summary.json`, as it stands in `docs/schema/summary.schema.json`.
pub fn summary_schema() -> Value {
    let mut schema = schemars::schema_for!(Summary);
    schema.insert("title".to_owned(), format!("summary.json of a result folder ({SCHEMA})").into());
    schema.to_value()
}

/// The error measures, by the paper's names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorMeasures {
    /// Local error of U's optimality condition.
    pub rel_le1: f64,
    /// Local error of V's optimality condition.
    pub rel_le2: f64,
    /// What a local search finds to improve: no proof.
    pub ge: f64,
    /// The paper's relative duality gap, which rests on the same search: the heuristic gap.
    pub rel_dg: f64,
    /// `(objective - lower_bound) / objective`, proven; null where nothing was proven.
    pub certified_gap: Option<f64>,
    /// `(objective - lower_bound) / (objective_of_one - objective)`: how much of what the meta-states explain over one could still be missed, proven; absent where nothing was proven or where one
    /// meta-state is as good.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub explained_gap: Option<f64>,
    /// Relative recovery error, where the truth was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rel_re: Option<f64>,
    /// Relative sampling error, where the truth was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rel_se: Option<f64>,
}

impl From<&metastate::solve::Solution> for ErrorMeasures {
    fn from(s: &metastate::solve::Solution) -> Self {
        let e = &s.errors;
        ErrorMeasures {
            rel_le1: e.rel_le1,
            rel_le2: e.rel_le2,
            ge: e.ge,
            rel_dg: e.rel_dg,
            certified_gap: s.certified_gap(),
            explained_gap: s.explained_gap(),
            rel_re: e.rel_re,
            rel_se: e.rel_se,
        }
    }
}

/// A file that the result rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileRecord {
    /// As it was typed.
    pub name: String,
    /// `data` (inputs, labels and weights), `truth` or `start`.
    pub role: String,
    /// Its size.
    pub bytes: u64,
    /// Its hash, in hexadecimal.
    pub sha256: String,
}

/// One line of the ledger: what was left out for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRecord {
    /// Why.
    pub reason: String,
    /// What was left out: `rows`, `states`, `transitions`, ...
    pub unit: String,
    /// How many.
    pub count: u64,
    /// Their weight in transitions.
    pub weight: f64,
    /// A few of them.
    pub examples: Vec<String>,
}

impl LedgerRecord {
    /// All lines.
    pub fn list(ledger: &Ledger) -> Vec<LedgerRecord> {
        let record = |e: &metastate::LedgerEntry| LedgerRecord {
            reason: e.reason.clone(),
            unit: e.unit.to_string(),
            count: e.count,
            weight: e.weight,
            examples: e.examples.clone(),
        };
        ledger.iter().map(record).collect()
    }
}
