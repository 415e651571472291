//! `control` of `summary.json`: what a log of a controlled chain holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was tried, and what could not be learnt from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ControlRecord {
    /// States, left or reached.
    pub states: usize,
    /// Actions.
    pub actions: usize,
    /// Pairs of state and action that were tried: the rows of U.
    pub pairs: usize,
    /// Pairs of a state that was left and an action that was never tried there: nothing is known of them.
    pub untried: usize,
    /// States that were reached and never left: a plan takes them for ends.
    pub ends: usize,
    /// Pairs with fewer records than the prior of the refit adds to each: they lean on all others. Zero without a likelihood refit.
    pub scarce: usize,
    /// What was paid, where the log says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rewards: Option<RewardsRecord>,
}

/// How rewards vary, and how many pairs lean on their meta-states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RewardsRecord {
    /// Standard deviation of single rewards within a pair.
    pub within: f64,
    /// Standard deviation of what pairs are paid about what their meta-states say.
    pub between: f64,
    /// Pairs whose reward rests more on their meta-states than on their own records.
    pub leaning: usize,
}
