//! `uncertainty` of `summary.json`: what the bootstrap found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The two ends of an interval; an end that is null is infinite.
pub type Ends = (Option<f64>, Option<f64>);

/// How sure the refit is, from refits to drawn data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncertaintyRecord {
    /// Number of draws.
    pub draws: usize,
    /// How often an interval holds what it speaks of.
    pub confidence: f64,
    /// What was drawn, in words.
    pub draws_are: String,
    /// What the intervals speak of, in words.
    pub intervals_are: String,
    /// For each meta-state, how much of it the draws find again: 1 is all.
    pub stability: Vec<f64>,
    /// Intervals of the timescales, in frames, the slowest first.
    pub timescale_intervals: Vec<Ends>,
    /// States whose meta-state is the same in fewer draws than `confidence` asks for.
    pub undecided_states: usize,
}
