//! `whitened` of `summary.json`: the terms of the whitened problem. Its directions are in `prices.npz`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The terms of the problem beside lambda, and how the same recipe does on held-out transitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhitenedRecord {
    /// Transitions that the prior adds to every state, as origin and as destination.
    pub prior: f64,
    /// What the directions in `prices.npz` cost beside all others.
    pub price: f64,
    /// Largest singular value of the data off those directions, in white coordinates.
    pub noise: f64,
    /// lambda over the noise.
    pub lambda_over_noise: f64,
    /// Mean log-likelihood a held-out transition of the recipe at this rank and prior.
    pub held_out: f64,
    /// Its standard error over the folds.
    pub held_out_error: f64,
    /// The same of the likelihood that gave the directions, on the same folds.
    pub likelihood: f64,
    /// Its standard error.
    pub likelihood_error: f64,
    /// By how much the whitened model is behind it, fold by fold; negative where it is ahead.
    pub behind: f64,
    /// The standard error of that.
    pub behind_error: f64,
}
