//! The checkpoint of a choice and its path: `DIR.path-checkpoint/` with the ranks and priors tried so far, the points so far and the factors to
//! go on from, written anew after every attempt and every point, whole or not at all.

use std::path::{Path, PathBuf};

use metastate::solve::Factors;
use metastate::solve::score::Score;
use metastate::solve::select::{Attempt, HeldOut};
use metastate_report::folder::{self, Draft};
use metastate_report::npz::{Array, npz_bytes, read_npz};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{CliError, Result};

/// A point of the path, as it stands in `path.csv`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // named as the columns
pub struct Point {
    pub lambda: f64,
    pub lambda_ratio: f64,
    pub rank: usize,
    pub objective: f64,
    pub fidelity: f64,
    pub regularizer: f64,
    pub certified_gap: Option<f64>,
    pub rel_le1: f64,
    pub rel_le2: f64,
    pub ge: f64,
    pub rel_dg: f64,
    pub status: String,
    pub sweeps: usize,
    /// Held-out log-likelihood of the penalised solution, its standard error, and the weighted squared error.
    pub held_out: Option<(f64, f64, f64)>,
    /// Hard zones, for the page.
    #[serde(default)]
    pub zones: Vec<u16>,
}

/// An attempt of the choice, as it is kept: log-likelihood, squared error and transitions of each fold.
#[derive(Serialize, Deserialize)]
struct KeptAttempt {
    rank: usize,
    prior: f64,
    first_look: bool,
    folds: Vec<(f64, f64, f64)>,
}

impl From<&Attempt> for KeptAttempt {
    fn from(a: &Attempt) -> Self {
        let folds = a.held_out.folds.iter().map(|s| (s.log_likelihood, s.squared_error, s.transitions)).collect();
        KeptAttempt { rank: a.rank, prior: a.prior, first_look: a.first_look, folds }
    }
}

impl From<KeptAttempt> for Attempt {
    fn from(a: KeptAttempt) -> Self {
        let score = |(log_likelihood, squared_error, transitions)| Score { log_likelihood, squared_error, transitions };
        let held_out = HeldOut { folds: a.folds.into_iter().map(score).collect() };
        Attempt { rank: a.rank, prior: a.prior, first_look: a.first_look, held_out }
    }
}

/// What is kept.
#[derive(Debug, Default)]
pub struct Progress {
    /// The ranks and priors tried so far.
    pub attempts: Vec<Attempt>,
    /// The points so far.
    pub points: Vec<Point>,
    /// The solution at the last one.
    pub factors: Option<Factors>,
    /// Those on the folds.
    pub folds: Vec<Option<Factors>>,
}

#[derive(Serialize, Deserialize)]
struct Body {
    asked_for: Value,
    attempts: Vec<KeptAttempt>,
    points: Vec<Point>,
    folds: usize,
}

/// Beside the result folder.
pub fn place(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".path-checkpoint");
    out.with_file_name(name)
}

/// Replaces the checkpoint.
pub fn write(place: &Path, asked_for: &Value, progress: &Progress) -> Result<()> {
    let mut arrays = Vec::new();
    let mut add = |name: String, x: &Factors| {
        arrays.push(Array { name: format!("U{name}"), ..Array::matrix("", &x.u) });
        arrays.push(Array { name: format!("V{name}"), ..Array::matrix("", &x.v) });
    };
    progress.factors.iter().for_each(|x| add(String::new(), x));
    progress.folds.iter().enumerate().for_each(|(f, x)| x.iter().for_each(|x| add(f.to_string(), x)));
    let body = Body {
        asked_for: asked_for.clone(),
        attempts: progress.attempts.iter().map(KeptAttempt::from).collect(),
        points: progress.points.clone(),
        folds: progress.folds.len(),
    };
    let text = serde_json::to_string(&body).map_err(|e| CliError::write(place, e))?;
    let draft = Draft::begin(place)?;
    draft.file("points.json", text.as_bytes())?;
    draft.file("factors.npz", &npz_bytes(&arrays).map_err(|e| CliError::write(place, e))?)?;
    Ok(draft.finish(true)?)
}

/// The checkpoint of a run that was asked for the same; none if there is none.
pub fn load(place: &Path, asked_for: &Value) -> Result<Option<Progress>> {
    if !place.exists() {
        return Ok(None);
    }
    let bad = |why: String| {
        CliError::failed("E-CLI-CHECKPOINT", format!("this checkpoint cannot be used: {why}"))
            .at(place.display().to_string())
            .remedy("remove the checkpoint folder and run without --resume")
    };
    let text = std::fs::read_to_string(place.join("points.json")).map_err(|e| bad(e.to_string()))?;
    let body: Body = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if body.asked_for != *asked_for {
        return Err(CliError::bad("E-CLI-RESUME", "the checkpoint is of a run with other inputs or options")
            .at(place.display().to_string())
            .remedy("give the same inputs and options as then, or remove the checkpoint folder and run without --resume"));
    }
    let arrays = read_npz(&place.join("factors.npz")).map_err(|e| bad(e.to_string()))?;
    let matrix = |name: String| arrays.iter().find(|a| a.name == name).cloned().and_then(Array::into_matrix);
    let factors = |name: &str| Some(Factors { u: matrix(format!("U{name}"))?, v: matrix(format!("V{name}"))? });
    let folds = (0..body.folds).map(|f| factors(&f.to_string())).collect();
    let attempts = body.attempts.into_iter().map(Attempt::from).collect();
    Ok(Some(Progress { attempts, points: body.points, factors: factors(""), folds }))
}

/// After success nothing is left to resume.
pub fn remove(place: &Path) {
    // A folder that stays does no harm: it is checked before it is used.
    let _ = folder::remove(place);
}
