//! `summary.json`: the names are a contract.

use std::collections::BTreeMap;

use metastate::Ledger;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the layout.
pub const SCHEMA: &str = "metastate-result-1";

/// Everything about a result that is no array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // named as in the documentation of the folder
pub struct Summary {
    pub schema: String,
    pub version: String,
    pub status: String,
    pub states: usize,
    pub transitions: f64,
    pub nonzeros: usize,
    pub lambda: f64,
    pub lambda_max: Option<f64>,
    pub rank: usize,
    pub objective: f64,
    pub fidelity: f64,
    pub regularizer: f64,
    /// The lower bound that is proven; null where nothing was.
    pub lower_bound: Option<f64>,
    /// How it was proven (`low-rank`, `cholesky`, `lanczos`, `trivial`), or `not proven`.
    pub bound_proof: String,
    /// The probability that a proof by random starts does not hold; null where the proof is certain.
    #[serde(default)]
    pub bound_failure_probability: Option<f64>,
    pub errors: ErrorMeasures,
    pub seconds: BTreeMap<String, f64>,
    /// Sweeps of the local solver.
    pub iterations: usize,
    /// Local solves.
    pub rounds: usize,
    pub seed: u64,
    pub settings: Value,
    /// The command that does it again, typed in `directory`.
    pub command: String,
    pub directory: String,
    pub inputs: Vec<FileRecord>,
    /// Rows read and rows counted; with the ledger's rows they add up.
    pub rows: u64,
    pub rows_counted: u64,
    pub ledger: Vec<LedgerRecord>,
    pub hints: Vec<String>,
    /// How lambda and the rank were chosen, when they were not given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice: Option<Value>,
    /// The refit in `refit.npz`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refit: Option<Value>,
    /// What the bootstrap found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncertainty: Option<Value>,
    /// SHA-256 of the other files of the folder.
    pub files: BTreeMap<String, String>,
}

impl Summary {
    /// Time steps of the data in one transition.
    pub fn lag(&self) -> f64 {
        self.settings.pointer("/input/lag").and_then(Value::as_f64).filter(|l| *l >= 1.0).unwrap_or(1.0)
    }
}

/// The error measures, by the paper's names.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // see `metastate::solve::Errors`
pub struct ErrorMeasures {
    pub rel_le1: f64,
    pub rel_le2: f64,
    pub ge: f64,
    pub rel_dg: f64,
    /// Null where nothing was proven.
    pub certified_gap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rel_re: Option<f64>,
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
            rel_re: e.rel_re,
            rel_se: e.rel_se,
        }
    }
}

/// A file that the result rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct FileRecord {
    pub name: String,
    /// `data` (inputs, labels and weights), `truth` or `start`.
    pub role: String,
    pub bytes: u64,
    pub sha256: String,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // see `metastate::LedgerEntry`
pub struct LedgerRecord {
    pub reason: String,
    pub unit: String,
    pub count: u64,
    pub weight: f64,
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
