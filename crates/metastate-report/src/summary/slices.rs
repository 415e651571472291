//! `slices` of `summary.json`: what a fit with slices was asked for and found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slices with shared meta-states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlicesRecord {
    /// What tells the slices apart, as `--slice` has it.
    pub expression: String,
    /// Their labels, in the order of their numbers.
    pub labels: Vec<String>,
    /// Rows of V: pairs of a slice and a state that is reached in it. `slices.npz` says which is which.
    pub rows: usize,
    /// How the flows of `slices.csv` are known, in words.
    pub flows_are: String,
    /// Which zones change over the slices; absent where that could not be tested, and a hint says why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<ChangeRecord>,
}

/// A likelihood ratio on held-out transitions, against zones that lead to the same zones in all slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeRecord {
    /// Parts of the data that were held out in turn.
    pub folds: usize,
    /// How often slices were dealt anew among the transitions of each state.
    pub permutations: usize,
    /// What the numbers are, in words.
    pub change_is: String,
    /// All zones together.
    pub whole: ZoneChangeRecord,
    /// Zone by zone.
    pub zones: Vec<ZoneChangeRecord>,
}

/// One zone against no change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneChangeRecord {
    /// Transitions out of it.
    pub transitions: f64,
    /// The logarithm of the likelihood ratio over all of them, each held out once.
    pub log_ratio: f64,
    /// The same for one transition.
    pub gain: f64,
    /// The share of deals with a ratio as large, the data counted in.
    pub p_value: f64,
}
