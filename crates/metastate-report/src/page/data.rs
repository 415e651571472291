//! The JSON inside the page. Long arrays are base64 of their little-endian bytes; at a hundred thousand states only the
//! busiest ones keep their labels and memberships, so that the page still opens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metastate::aggregate::latent::LatentChain;
use metastate::solve::Factors;
use serde_json::{Value, json};

use super::extras::{Extras, PathStory};
use super::heat::Heat;
use crate::result::FitResult;
use crate::summary::Summary;
use crate::tables::{NAMED, largest, sizes_and_masses};

/// States with labels and memberships, at most.
const MOST_SHOWN: usize = 10_000;
/// Memberships, at most.
const MOST_MEMBERSHIPS: usize = 600_000;
/// Entries of V, at most; above that the map cannot show forecasts.
const MOST_PROFILES: usize = 300_000;

/// What was found, in one sentence.
pub fn sentence(summary: &Summary, result: &FitResult) -> String {
    let (few, many) = if result.coordinates.is_some() { ("zone", "cells") } else { ("meta-state", "states") };
    let rank = result.model.rank();
    let end = if rank == 1 { "" } else { "s" };
    format!("{rank} {few}{end} behind {} {many}", summary.states)
}

/// The status in plain words.
fn verdict(summary: &Summary) -> String {
    let proof = match summary.errors.certified_gap {
        Some(gap) => {
            let share = if gap < 5e-5 { format!("{gap:.1e} of itself") } else { format!("{:.2} %", 100.0 * gap) };
            let how = proof_in_words(summary);
            format!(
                "No answer to the stated problem can have an objective lower than this one's by more than {share}; that is proven ({how})."
            )
        }
        None => "How far it is from the best possible objective was not proven.".to_owned(),
    };
    let why = match summary.status.as_str() {
        "certified" => return format!("{proof} The answer is optimal up to that gap."),
        "rank-cap" => {
            "The solver stopped at the largest allowed number of meta-states: more of them would fit this lambda better, a larger lambda asks for fewer."
        }
        "stationary" => "The solver found no way to improve the answer, but a proof of optimality is missing.",
        "early" => "The solver stopped by the early rule: random directions showed no improvement.",
        "iteration-limit" => "The solver stopped at its limit of sweeps.",
        "time-limit" => "The solver stopped because its time was up.",
        _ => "The solver was interrupted.",
    };
    format!("{why} {proof}")
}

/// How the bound was proven.
fn proof_in_words(summary: &Summary) -> String {
    match (summary.bound_proof.as_str(), summary.bound_failure_probability) {
        ("low-rank", _) => "all singular values of the dual point are known, because the matrix has low rank".to_owned(),
        ("cholesky", _) => "by a Cholesky factorisation".to_owned(),
        ("lanczos", Some(p)) => format!("by Lanczos iterations from random starts; the probability that this fails is at most {p:.0e}"),
        ("trivial", _) => "zero is a lower bound of every objective; nothing better could be proven".to_owned(),
        (other, _) => other.to_owned(),
    }
}

/// Everything that the script reads.
pub fn collect(summary: &Summary, result: &FitResult, extras: &Extras) -> Value {
    let (u, v) = (&result.model.u, &result.model.v);
    let (d, s) = (u.rows(), u.cols());
    let lag = summary.lag();
    let shown = shown_states(result.xi, s);
    let quantised: Vec<u16> = shown.iter().flat_map(|&i| u.row(i as usize).iter().map(|x| (x * 65535.0).round() as u16)).collect();
    let profiles = (d * s <= MOST_PROFILES).then(|| floats(v.as_slice().iter().map(|x| *x as f32)));
    let hard: Vec<u16> = result.partition.labels.iter().map(|&z| z as u16).collect();
    let top = (0..d).map(|i| (255.0 * u.row(i).iter().copied().fold(0.0, f64::max)).round() as u8);
    let (stationary, timescales, horizon) = latent(result.model, result.xi, lag, &extras.timescale_intervals);
    let mut told = json!(summary);
    if let Some(told) = told.as_object_mut() {
        told.remove("files");
    }
    json!({
        "states": d,
        "rank": s,
        "verdict": verdict(summary),
        "summary": told,
        "weight": floats(result.xi.iter().map(|x| *x as f32)),
        "hard": words(&hard),
        "top": STANDARD.encode(top.collect::<Vec<u8>>()),
        "lon": result.coordinates.map(|c| floats(c.iter().map(|p| p.0 as f32))),
        "lat": result.coordinates.map(|c| floats(c.iter().map(|p| p.1 as f32))),
        "cell": extras.cell,
        "shown": STANDARD.encode(shown.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<u8>>()),
        "labels": shown.iter().map(|&i| result.labels[i as usize].to_string()).collect::<Vec<_>>(),
        "u": words(&quantised),
        "v": profiles,
        "metastates": metastates(result),
        "latent": latent_rows(result.model),
        "stationary": stationary,
        "timescales": timescales,
        "time_unit": if lag == 1.0 { "steps".to_owned() } else { format!("time steps of the data (lag {lag})") },
        "horizon": horizon,
        "heat": extras.heat.as_ref().map(heat),
        "trace": extras.trace,
        "events": extras.events,
        "rival": extras.rival.as_ref().filter(|r| r.zones.len() == d).map(|r| json!({
            "name": r.name, "hard": words(&r.zones), "k": r.zones.iter().max().map_or(0, |m| m + 1),
        })),
        "path": extras.path.as_ref().map(path),
    })
}

/// All states, or the busiest ones, in their own order.
fn shown_states(xi: &[f64], s: usize) -> Vec<u32> {
    let most = MOST_SHOWN.min(MOST_MEMBERSHIPS / s.max(1)).max(1);
    let mut order: Vec<u32> = (0..xi.len() as u32).collect();
    if order.len() > most {
        order.sort_by(|&a, &b| xi[b as usize].total_cmp(&xi[a as usize]));
        order.truncate(most);
        order.sort_unstable();
    }
    order
}

fn metastates(result: &FitResult) -> Vec<Value> {
    let (u, v) = (&result.model.u, &result.model.v);
    let (sizes, masses) = sizes_and_masses(u, result.xi);
    let label = |i: usize| result.labels[i].to_string();
    (0..u.cols())
        .map(|j| {
            let anchors: Vec<String> = largest(u.rows(), NAMED, |i| (u[(i, j)], result.xi[i])).into_iter().map(label).collect();
            let destinations: Vec<(String, f64)> =
                largest(v.rows(), NAMED, |i| (v[(i, j)], result.xi[i])).into_iter().map(|i| (label(i), v[(i, j)])).collect();
            json!({ "size": sizes[j], "mass": masses[j], "anchors": anchors, "destinations": destinations })
        })
        .collect()
}

fn latent_rows(x: &Factors) -> Vec<Vec<f64>> {
    LatentChain::new(&x.u, &x.v).map(|c| (0..c.rank()).map(|i| c.k().row(i).to_vec()).collect()).unwrap_or_default()
}

/// The stationary law, the timescales in time steps of the data, and how far a forecast should look.
fn latent(x: &Factors, xi: &[f64], lag: f64, intervals: &[(Option<f64>, Option<f64>)]) -> (Option<Vec<f64>>, Vec<Value>, usize) {
    let Ok(chain) = LatentChain::new(&x.u, &x.v) else { return (None, Vec::new(), 10) };
    let modes: Vec<_> = chain.spectrum().into_iter().skip(1).collect();
    let slowest = modes.first().map_or(1.0, |m| m.timescale).clamp(1.0, 50.0);
    let finite = |t: f64| t.is_finite().then_some(t * lag);
    let ends = |k: usize| intervals.get(k).map(|(low, high)| [low.map(|t| t * lag), high.map(|t| t * lag)]);
    let list = modes
        .iter()
        .enumerate()
        .map(|(k, m)| json!({ "re": m.re, "im": m.im, "timescale": finite(m.timescale), "interval": ends(k) }))
        .collect();
    (chain.stationary(xi).ok().map(|laws| laws.limit), list, ((2.5 * slowest).ceil() as usize).max(10))
}

fn heat(h: &Heat) -> Value {
    json!({
        "bins": h.bins,
        "states_a_bin": h.states as f64 / h.bins.max(1) as f64,
        "p": floats(h.counted.iter().copied()),
        "x": floats(h.model.iter().copied()),
        "borders": h.borders,
    })
}

fn path(p: &PathStory) -> Value {
    let row = |r: &super::extras::PathPoint| json!({ "lambda": r.lambda, "rank": r.rank, "objective": r.objective, "gap": r.gap, "score": r.score, "se": r.se });
    json!({
        "sentence": p.sentence,
        "chosen": p.chosen,
        "rows": p.points.iter().map(row).collect::<Vec<_>>(),
        "hard": p.points.iter().map(|r| r.zones.as_deref().map(words)).collect::<Vec<_>>(),
    })
}

fn floats(values: impl Iterator<Item = f32>) -> String {
    STANDARD.encode(values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>())
}

fn words(values: &[u16]) -> String {
    STANDARD.encode(values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}
