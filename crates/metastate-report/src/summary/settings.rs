//! `settings` of `summary.json`: the options of the fit. They are still plain JSON here, because their types (`input`, `fit`) live above this crate;
//! this is the one place to change when they come within reach.

use serde_json::Value;

/// `input` (how the data were read), `fit` (what was solved) and `hard_metastates` (how the zones were made, in words).
pub type SettingsRecord = Value;

/// Time steps of the data in one transition.
pub(super) fn lag(settings: &SettingsRecord) -> f64 {
    settings.pointer("/input/lag").and_then(Value::as_f64).filter(|l| *l >= 1.0).unwrap_or(1.0)
}
