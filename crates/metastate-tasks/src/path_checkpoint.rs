//! The checkpoints of a choice and its path: `DIR.path-checkpoint/NUMBER/` with the ranks and priors tried so far, the points so far and the factors to
//! go on from, written anew after every attempt and every point, whole or not at all.

use std::path::{Path, PathBuf};

use metastate::fit::Unfinished;
use metastate::solve::{Errors, Factors, Objective, Status};
use metastate::workspace::path::{LambdaPoint, PointScore};
use metastate::workspace::score::Score;
use metastate::workspace::select::{Attempt, HeldOut};
use metastate_report::npz::{Array, npz_bytes, read_npz};
use metastate_report::{hash, inside};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checkpoint::{self, Envelope};
use crate::error::{CliError, Result};

/// Folds that a choice may have, at most.
const MOST_FOLDS: usize = 1000;

/// A point of the path, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KeptPoint {
    lambda: f64,
    lambda_ratio: f64,
    rank: usize,
    objective: [f64; 3],
    certified_gap: Option<f64>,
    errors: [f64; 4],
    status: String,
    sweeps: usize,
    held_out: Option<[f64; 3]>,
    zones: Vec<u16>,
}

impl From<&LambdaPoint> for KeptPoint {
    fn from(p: &LambdaPoint) -> Self {
        KeptPoint {
            lambda: p.lambda,
            lambda_ratio: p.lambda_ratio,
            rank: p.rank,
            objective: [p.objective.fidelity, p.objective.regularizer, p.objective.value],
            certified_gap: p.certified_gap,
            errors: [p.errors.rel_le1, p.errors.rel_le2, p.errors.ge, p.errors.rel_dg],
            status: p.status.as_str().to_owned(),
            sweeps: p.sweeps,
            held_out: p.held_out.map(|s| [s.log_likelihood, s.standard_error, s.squared_error]),
            zones: p.zones.clone(),
        }
    }
}

impl KeptPoint {
    /// The point; none when its status is no word that this version knows.
    fn point(self) -> Option<LambdaPoint> {
        let [fidelity, regularizer, value] = self.objective;
        let [rel_le1, rel_le2, ge, rel_dg] = self.errors;
        let score =
            |[log_likelihood, standard_error, squared_error]: [f64; 3]| PointScore { log_likelihood, standard_error, squared_error };
        Some(LambdaPoint {
            lambda: self.lambda,
            lambda_ratio: self.lambda_ratio,
            rank: self.rank,
            objective: Objective { fidelity, regularizer, value },
            certified_gap: self.certified_gap,
            errors: Errors { rel_le1, rel_le2, ge, rel_dg, rel_re: None, rel_se: None },
            status: Status::parse(&self.status)?,
            sweeps: self.sweeps,
            held_out: self.held_out.map(score),
            zones: self.zones,
        })
    }
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

#[derive(Serialize, Deserialize)]
struct PathBody {
    arrays_sha256: String,
    asked_for: Value,
    attempts: Vec<KeptAttempt>,
    points: Vec<KeptPoint>,
    folds: usize,
}

/// Beside the result folder.
pub fn place(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".path-checkpoint");
    out.with_file_name(name)
}

/// Writes the next checkpoint; the one before it is kept.
pub fn write(place: &Path, asked_for: &Value, unfinished: &Unfinished) -> Result<()> {
    let mut arrays = Vec::new();
    let mut add = |name: String, x: &Factors| {
        arrays.push(Array { name: format!("U{name}"), ..Array::matrix("", &x.u) });
        arrays.push(Array { name: format!("V{name}"), ..Array::matrix("", &x.v) });
    };
    unfinished.factors.iter().for_each(|x| add(String::new(), x));
    unfinished.fold_factors.iter().enumerate().for_each(|(f, x)| x.iter().for_each(|x| add(f.to_string(), x)));
    let body = PathBody {
        arrays_sha256: String::new(),
        asked_for: asked_for.clone(),
        attempts: unfinished.attempts.iter().map(KeptAttempt::from).collect(),
        points: unfinished.points.iter().map(KeptPoint::from).collect(),
        folds: unfinished.fold_factors.len(),
    };
    let bytes = npz_bytes(&arrays).map_err(|e| CliError::write(place, e))?;
    let body = PathBody { arrays_sha256: hash::of_bytes(&bytes), ..body };
    let text = serde_json::to_string(&body).and_then(Envelope::seal).map_err(|e| CliError::write(place, e))?;
    checkpoint::write_next(place, checkpoint::next_number(place), &[("points.json", text.as_bytes()), ("factors.npz", &bytes)])
}

/// The checkpoint of a run that was asked for the same; none if there is none.
pub fn load(place: &Path, asked_for: &Value) -> Result<Option<Unfinished>> {
    checkpoint::newest(place, |place| load_one(place, asked_for))
}

fn load_one(place: &Path, asked_for: &Value) -> Result<Unfinished> {
    let bad = |why: String| {
        CliError::failed("E-CLI-CHECKPOINT", format!("this checkpoint cannot be used: {why}"))
            .at(place.display().to_string())
            .remedy("remove the checkpoint folder and run without --resume")
    };
    let text = inside::read_text(place, "points.json").map_err(|e| bad(e.to_string()))?;
    let body = Envelope::open(&text).map_err(|why| bad(format!("points.json: {why}")))?;
    let body: PathBody = serde_json::from_str(&body).map_err(|e| bad(e.to_string()))?;
    if body.asked_for != *asked_for {
        return Err(CliError::bad("E-CLI-RESUME", "the checkpoint is of a run with other inputs or options")
            .at(place.display().to_string())
            .remedy("give the same inputs and options as in that run, or remove the checkpoint folder and run without --resume"));
    }
    let file = place.join("factors.npz");
    let arrays = read_npz(&file).map_err(|e| bad(e.to_string()))?;
    if hash::of_file(&file).map_err(|e| bad(e.to_string()))?.1 != body.arrays_sha256 {
        return Err(bad("the checksum of factors.npz does not match".into()));
    }
    if body.folds > MOST_FOLDS {
        return Err(bad(format!("it names {} folds", body.folds)));
    }
    let matrix = |name: String| arrays.iter().find(|a| a.name == name).cloned().and_then(Array::into_matrix);
    let factors = |name: &str| Some(Factors { u: matrix(format!("U{name}"))?, v: matrix(format!("V{name}"))? });
    let folds = (0..body.folds).map(|f| factors(&f.to_string())).collect();
    let attempts = body.attempts.into_iter().map(Attempt::from).collect();
    let points: Option<Vec<LambdaPoint>> = body.points.into_iter().map(KeptPoint::point).collect();
    let points = points.ok_or_else(|| bad("a point of its path ended in a way that this version does not know".into()))?;
    Ok(Unfinished { attempts, points, factors: factors(""), fold_factors: folds, snapshot: None })
}

/// After success nothing is left to resume.
pub fn remove(place: &Path) {
    checkpoint::clear(place);
}
