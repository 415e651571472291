//! Where a forecast starts, and where it should lead: labels become rows.

use std::path::Path;

use metastate::Label;
use metastate::aggregate::latent::normalised;
use metastate_ingest::nearest;
use metastate_report::parse_csv;

use super::Model;
use crate::args::ForecastArgs;
use crate::error::{CliError, Result};

/// A law over states.
pub struct Start {
    /// Sums to one.
    pub law: Vec<f64>,
    /// For the heading.
    pub words: String,
}

/// From `--from`, `--from-law`, or the data itself.
pub fn law(command: &ForecastArgs, model: &Model) -> Result<Start> {
    if let Some(file) = &command.from_law {
        return from_file(file, model);
    }
    if command.from.is_empty() {
        return Ok(Start { law: normalised(&model.xi)?, words: "the law of the data".to_owned() });
    }
    let mut law = vec![0.0; model.labels.len()];
    for label in &command.from {
        law[row("--from", label, model)?] += 1.0;
    }
    Ok(Start { law: normalised(&law)?, words: command.from.join(", ") })
}

/// The set named by `--to`, when there is one.
pub fn set(labels: &[String], model: &Model) -> Result<Option<Vec<bool>>> {
    if labels.is_empty() {
        return Ok(None);
    }
    let mut inside = vec![false; model.labels.len()];
    for label in labels {
        inside[row("--to", label, model)?] = true;
    }
    Ok(Some(inside))
}

fn row(option: &str, label: &str, model: &Model) -> Result<usize> {
    let unknown = || {
        let remedy = match nearest(label, model.labels.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "the labels stand in the first column of states.csv".to_owned(),
        };
        CliError::bad("E-CLI-STATE", format!("{option} names the state `{label}`, which the result does not know")).remedy(remedy)
    };
    model.states.position(&Label::from(label)).map(|i| i as usize).ok_or_else(unknown)
}

fn from_file(file: &Path, model: &Model) -> Result<Start> {
    let bad = |sentence: String| CliError::bad("E-CLI-STATE", sentence).at(file.display().to_string());
    if file.metadata().is_ok_and(|m| !m.is_file()) {
        return Err(bad("--from-law is not a regular file".to_owned()));
    }
    let text = std::fs::read_to_string(file).map_err(|e| bad(format!("--from-law cannot be read ({e})")))?;
    let rows = parse_csv(&text).ok_or_else(|| bad("--from-law has a quote that is never closed".to_owned()))?;
    let column = |name: &str| {
        let found = rows.first().and_then(|header| header.iter().position(|c| c.trim() == name));
        found.ok_or_else(|| bad(format!("--from-law has no column `{name}`; it needs label,weight")))
    };
    let (labels, weights) = (column("label")?, column("weight")?);
    let mut law = vec![0.0; model.labels.len()];
    for (n, fields) in rows.iter().enumerate().skip(1) {
        let field = |k: usize| fields.get(k).map(String::as_str).unwrap_or_default();
        let weight: f64 =
            field(weights).trim().parse().ok().filter(|w: &f64| w.is_finite() && *w >= 0.0).ok_or_else(|| {
                bad(format!("line {} has the weight `{}`; it must be a number that is zero or more", n + 1, field(weights)))
            })?;
        law[row("--from-law", field(labels), model).map_err(|e| e.at(format!("{}, line {}", file.display(), n + 1)))?] += weight;
    }
    let law = normalised(&law).map_err(|_| bad("--from-law holds no weight above zero".to_owned()))?;
    Ok(Start { law, words: file.display().to_string() })
}
