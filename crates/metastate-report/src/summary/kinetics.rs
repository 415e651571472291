//! `kinetics` of `summary.json`: times, in frames, that neither prior nor penalty makes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::uncertainty::Ends;

/// The chain of the meta-states as the data have it; `kinetics.npz` holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KineticsRecord {
    /// Whether times of this model may be published; the hints say why not.
    pub carries: bool,
    /// Frames in one step.
    pub lag: f64,
    /// Timescales in frames, the slowest first, without the stationary one; null is infinite.
    pub timescales: Vec<Option<f64>>,
    /// Their 90 % intervals, from what each part of the data adds; empty where the data are not in parts.
    pub timescale_intervals: Vec<Ends>,
    /// Timescales of the states' own chain in frames, for comparison.
    pub microstate_timescales: Vec<Option<f64>>,
    /// Stationary share of each meta-state, in the limit from the law of the data.
    pub stationary: Vec<f64>,
    /// Closed classes of meta-states, from 1: each has its own stationary law.
    pub closed_metastates: Vec<Vec<usize>>,
    /// Sizes of the classes of states that are never left, largest first.
    pub closed_classes: Vec<usize>,
    /// States that are left for good sooner or later.
    pub transient_states: usize,
    /// States that are never left.
    pub absorbing_states: usize,
    /// Share of the transitions that the times rest on.
    pub share: f64,
    /// Steps of the states' chain that the memberships were carried along before the projection.
    pub steps: usize,
    /// Whether the memberships of all meta-states can be told apart; where not, so cannot their times, and `carries` is false.
    pub told_apart: bool,
    /// Whether detailed balance was imposed.
    pub reversible: bool,
}
