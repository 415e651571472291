//! The JSON inside the page. Long arrays are base64 of their little-endian bytes; at a hundred thousand states only the
//! busiest ones keep their labels and memberships, so that the page still opens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metastate::Mat;
use metastate::aggregate::latent::LatentChain;
use metastate::solve::Factors;
use metastate::workspace::polygons::Corner;
use metastate::workspace::territory::UNIT;
use serde_json::{Value, json};

use super::extras::{Extras, PathStory, StoryMode};
use super::heat::Heat;
use super::slices;
use crate::colours;
use crate::ground::{Ground, Outline};
use crate::map::{dot_radius, scale};
use crate::plots::OUTSIDE;
use crate::result::{FitResult, LargestMembership};
use crate::spread::spread;
use crate::summary::{BoundProof, StatusWord, Summary};
use crate::tables::{NAMED, largest};

/// States with labels and memberships, at most.
const MOST_SHOWN: usize = 10_000;
/// Memberships, at most.
const MOST_MEMBERSHIPS: usize = 600_000;
/// Entries of V, at most; above that the map cannot show forecasts.
const MOST_PROFILES: usize = 300_000;
/// A membership of one, as it is kept for the states that are shown and for all.
const FULL_WORD: f64 = 65535.0;
const FULL_BYTE: f64 = 255.0;
/// A gap below this is written as a share of the objective: in percent it would be 0.00.
const TINY_GAP: f64 = 5e-5;
/// A forecast looks ahead by this many of the slowest timescale, which counts as no longer than so many steps, and by this many steps at least.
const TIMESCALES_AHEAD: f64 = 2.5;
const LONGEST_TIMESCALE: f64 = 50.0;
const LEAST_STEPS: usize = 10;

/// What was found, in one sentence.
pub fn sentence(summary: &Summary, result: &FitResult) -> String {
    // Zones without states do not count as found.
    let (rank, all) = (result.model.rank(), result.partition.clusters());
    let zones = result.partition.sizes.iter().filter(|n| **n > 0).count();
    if let (Some(control), Some(_)) = (&summary.control, result.destinations) {
        let what = if rank == 1 { "meta-state" } else { "meta-states" };
        return format!("{rank} {what} behind {} states under {} actions", control.states, control.actions);
    }
    if let Some(destinations) = result.destinations {
        let what = if rank == 1 { "meta-state" } else { "meta-states" };
        return format!("{rank} {what} between {} origins and {} destinations", summary.states, destinations.len());
    }
    let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let places = if result.ground.is_some_and(Ground::is_cells) { "cells" } else { "places" };
    match (result.coordinates.is_some(), all == rank && zones == rank) {
        (true, true) => format!("{} behind {} {places}", counted(rank, "zone"), summary.states),
        (true, false) => format!("{} behind {} {places}, in {}", counted(rank, "meta-state"), summary.states, counted(zones, "zone")),
        (false, true) => format!("{} behind {} states", counted(rank, "meta-state"), summary.states),
        (false, false) => format!("{} behind {} states, in {}", counted(rank, "meta-state"), summary.states, counted(zones, "zone")),
    }
}

/// What the badge says: of the model that is shown. A refit is not proven, whatever is proven of the solution beside it.
fn badge(summary: &Summary) -> String {
    match &summary.refit {
        Some(_) => "refit".to_owned(),
        None => summary.status.to_string(),
    }
}

/// The status in plain words: first what is shown, then what is proven, with its own rank and lambda.
fn verdict(summary: &Summary) -> String {
    let of = match &summary.refit {
        Some(refit) => format!(
            "This page shows a refit with {} meta-states; nothing is proven about the refit. The result also holds the solution of the penalised problem at lambda = {:.3e}, with {} meta-states: ",
            refit.rank(),
            summary.lambda,
            summary.rank
        ),
        None => String::new(),
    };
    let white = summary.whitened.as_ref().filter(|_| summary.refit.is_none()).map_or_else(String::new, |w| {
        format!(
            "This page shows the solution of a convex problem, and the proof is about this solution. In the problem, directions that the likelihood found cost {} of what all others cost, and lambda is {} times the noise. On held-out transitions the same recipe has a log-likelihood of {:.4} for each transition, the likelihood alone {:.4}. ",
            w.price, w.lambda_over_noise, w.held_out, w.likelihood
        )
    });
    of + &white + &proven(summary)
}

fn proven(summary: &Summary) -> String {
    let proof = match summary.errors.certified_gap {
        Some(gap) => {
            let share = if gap < TINY_GAP { format!("{gap:.1e} of its value") } else { format!("{:.2} %", 100.0 * gap) };
            let how = proof_in_words(summary);
            let explained = summary.errors.explained_gap.map_or_else(String::new, |e| {
                let share = if e < TINY_GAP { format!("{e:.1e}") } else { format!("{:.2} %", 100.0 * e) };
                format!(" Most of the objective is noise, which no model explains. Compared with what the meta-states explain beyond a single one, at most {share} could still be gained (the explained gap).")
            });
            format!(
                "It is proven that no other answer to this problem has an objective that is lower by more than {share} ({how}).{explained}"
            )
        }
        None => "How far it is from the best possible objective is not proven.".to_owned(),
    };
    let why = match summary.status {
        StatusWord::Certified => return format!("{proof} So that solution is optimal up to this gap."),
        StatusWord::RankCap => {
            "The solver stopped at the largest allowed number of meta-states: at this lambda more meta-states would be better; a larger lambda needs fewer."
        }
        StatusWord::Stationary => "The solver found no way to improve the answer, but a proof of optimality is missing.",
        StatusWord::Early => "The solver stopped by the early rule: random directions showed no improvement.",
        StatusWord::IterationLimit => "The solver stopped at its limit of sweeps.",
        StatusWord::TimeLimit => "The solver stopped because the time limit was reached.",
        StatusWord::Interrupted => "The solver was interrupted.",
    };
    format!("{why} {proof}")
}

/// How the bound was proven.
fn proof_in_words(summary: &Summary) -> String {
    match (summary.bound_proof, summary.bound_failure_probability) {
        (BoundProof::LowRank, _) => "all singular values of the dual point are known, because the matrix has low rank".to_owned(),
        (BoundProof::Cholesky, _) => "by a Cholesky factorisation".to_owned(),
        (BoundProof::Chebyshev, Some(p)) => {
            format!(
                "by Chebyshev polynomials of the dual point, applied to random vectors; the probability that this fails is at most {p:.0e}"
            )
        }
        (BoundProof::Lanczos, Some(p)) => {
            format!("by Lanczos iterations from random starts; the probability that this fails is at most {p:.0e}")
        }
        (BoundProof::Trivial, _) => "zero is a lower bound of every objective; nothing better could be proven".to_owned(),
        (other, _) => other.to_string(),
    }
}

/// Everything that the script reads.
pub fn collect(summary: &Summary, result: &FitResult, extras: &Extras) -> Value {
    let (u, v) = (&result.model.u, &result.model.v);
    let (d, s) = (u.rows(), u.cols());
    let lag = summary.lag();
    let shown = shown_states(result.xi, s);
    let quantised: Vec<u16> = shown.iter().flat_map(|&i| u.row(i as usize).iter().map(|x| (x * FULL_WORD).round() as u16)).collect();
    // The map shows where a cell leads among the same cells.
    let profiles = (d * s <= MOST_PROFILES && result.destinations.is_none()).then(|| floats(v.as_slice().iter().map(|x| *x as f32)));
    let zone: Vec<u16> = result.partition.labels.iter().map(|&z| z as u16).collect();
    let largest_membership = LargestMembership::new(u, result.xi);
    let metastate: Vec<u16> = largest_membership.metastate.iter().map(|&j| j as u16).collect();
    let top = (0..d).map(|i| (FULL_BYTE * u.row(i).iter().copied().fold(0.0, f64::max)).round() as u8);
    let chain = result.destinations.is_none().then(|| shown_chain(result.model, extras)).flatten();
    let (stationary, timescales, horizon) =
        chain.as_ref().map_or((None, Vec::new(), LEAST_STEPS), |chain| latent(chain, result.xi, lag, extras));
    let rows: Vec<Vec<f64>> = chain.as_ref().map(|c| (0..c.rank()).map(|i| c.k().row(i).to_vec()).collect()).unwrap_or_default();
    let ground = result.coordinates.zip(extras.ground(result.coordinates)).map(|(places, ground)| on_the_map(result, places, ground));
    let mut told = json!(summary);
    if let Some(told) = told.as_object_mut() {
        told.remove("files");
    }
    json!({
        "states": d,
        "rank": s,
        "verdict": verdict(summary),
        "badge": badge(summary),
        "summary": told,
        "weight": floats(result.xi.iter().map(|x| *x as f32)),
        "zones": result.partition.clusters(),
        "zones_are_metastates": result.zones_are_metastates(),
        "zone": words(&zone),
        "metastate": words(&metastate),
        "top": STANDARD.encode(top.collect::<Vec<u8>>()),
        "lon": result.coordinates.map(|c| floats(c.iter().map(|p| p.0 as f32))),
        "lat": result.coordinates.map(|c| floats(c.iter().map(|p| p.1 as f32))),
        "cell": extras.cell,
        "ground": ground,
        "colours": (0..s + colours_beyond(result, extras)).map(colours::colour).collect::<Vec<_>>(),
        "zone_names": if result.zones_have_names { result.zone_names } else { &[] },
        "shown": STANDARD.encode(shown.iter().flat_map(|i| i.to_le_bytes()).collect::<Vec<u8>>()),
        "labels": shown.iter().map(|&i| result.state_name(i as usize)).collect::<Vec<_>>(),
        "u": words(&quantised),
        "v": profiles,
        "metastates": metastates(result, &largest_membership),
        "latent": rows,
        "stationary": stationary,
        "timescales": timescales,
        "kinetics": (chain.is_some()).then_some(&extras.kinetics).and_then(|k| k.as_ref()).filter(|k| k.chain.len() == s).map(|k| json!({
            "lag": k.lag, "lags": k.lags, "passage": k.passage, "pair": k.pair, "fates": k.fates,
        })),
        "time_unit": if lag == 1.0 { "steps".to_owned() } else { format!("time steps of the data (lag {lag})") },
        "horizon": horizon,
        "heat": extras.heat.as_ref().map(heat),
        "trace": extras.trace,
        "events": extras.events,
        "rival": extras.rival.as_ref().filter(|r| r.zones.len() == d).map(|r| json!({
            "name": r.name, "hard": words(&r.zones), "k": r.zones.iter().max().map_or(0, |m| m + 1),
        })),
        "ranks": extras.ranks,
        "path": extras.path.as_ref().map(path),
        "actions": extras.control.as_ref().map(|c| &c.actions),
        "plan": extras.control.as_ref().and_then(|c| c.plan.as_ref()),
        "slices": result.slices.as_ref().and_then(|sliced| slices::collect(result, sliced)),
    })
}

/// Colours after those of the meta-states: for zones that are numbered by themselves, for those of a rival and along the path.
fn colours_beyond(result: &FitResult, extras: &Extras) -> usize {
    let highest = |zones: &Vec<u16>| zones.iter().max().map_or(0, |m| usize::from(*m) + 1);
    let rival = extras.rival.as_ref().map_or(0, |r| highest(&r.zones));
    let path = extras.path.iter().flat_map(|p| &p.points).filter_map(|p| p.zones.as_ref()).map(highest).max().unwrap_or(0);
    result.partition.clusters().max(rival).max(path)
}

/// Beyond so many places the page draws dots, not the ground of each.
const MOST_RINGS: usize = 20_000;

/// What the map is made of where it is not made of squares: a word for it, the ground of each place as one list of corners with where each begins, hulls around zones, and
/// places where dots are drawn that would lie on each other.
fn on_the_map(result: &FitResult, places: &[(f64, f64)], ground: Ground) -> Value {
    let word = ground.outline().map_or_else(|| json!("squares"), |o| json!(o));
    let pair = |c: &Corner| [(c.0 as f64 * UNIT) as f32, (c.1 as f64 * UNIT) as f32];
    let rings = ground.rings(result.labels, places).filter(|rings| rings.len() <= MOST_RINGS);
    let rings = rings.map(|rings| {
        let begins = rings.iter().scan(0u32, |sum, ring| {
            let begin = *sum;
            *sum += ring.len() as u32;
            Some(begin)
        });
        let begins: Vec<u8> = begins.flat_map(u32::to_le_bytes).collect();
        json!({ "begin": STANDARD.encode(begins), "corners": floats(rings.iter().flatten().flat_map(pair)) })
    });
    let hull = ground.outline() == Some(Outline::Hull);
    let hulls: Option<Vec<Vec<[f32; 2]>>> = hull.then(|| {
        let shapes = ground.shapes(result.labels, places, result.partition, result.xi);
        shapes.zones.iter().map(|z| z.iter().flat_map(|p| &p.outer).map(pair).collect()).collect()
    });
    let drawn = (rings.is_none() && !ground.is_cells()).then(|| {
        let shapes = ground.shapes(result.labels, places, result.partition, result.xi);
        apart(places, dot_radius(places.len()), scale(&shapes, OUTSIDE))
    });
    json!({
        "word": word, "rings": rings, "hulls": hulls,
        "lon": drawn.as_ref().map(|d| floats(d.iter().map(|p| p.0 as f32))), "lat": drawn.as_ref().map(|d| floats(d.iter().map(|p| p.1 as f32))),
    })
}

/// Places as dots of this radius are drawn: those that would lie on each other moved apart, at so many pixels a degree.
fn apart(places: &[(f64, f64)], radius: f64, (wide, tall): (f64, f64)) -> Vec<(f64, f64)> {
    let known = |p: &(f64, f64)| p.0.is_finite() && p.1.is_finite();
    let pixels: Vec<(f64, f64)> = places.iter().filter(|p| known(p)).map(|p| (p.0 * wide, p.1 * tall)).collect();
    let mut moved = spread(&pixels, radius).into_iter();
    let back = |p: &(f64, f64)| match known(p) {
        true => moved.next().map_or(*p, |(x, y)| (x / wide, y / tall)),
        false => *p,
    };
    places.iter().map(back).collect()
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

fn metastates(result: &FitResult, by: &LargestMembership) -> Vec<Value> {
    let (u, v) = (&result.model.u, &result.model.v);
    let label = |i: usize| result.state_name(i);
    (0..u.cols())
        .map(|j| {
            let anchors: Vec<(String, f64)> =
                largest(u.rows(), NAMED, |i| (u[(i, j)], result.xi[i])).into_iter().map(|i| (label(i), u[(i, j)])).collect();
            let destinations: Vec<(String, f64)> = largest(v.rows(), NAMED, |i| (v[(i, j)], result.destination_weight(i)))
                .into_iter()
                .map(|i| (result.destination_name(i), v[(i, j)]))
                .collect();
            json!({ "size": by.sizes.get(j), "mass": by.masses.get(j), "anchors": anchors, "destinations": destinations })
        })
        .collect()
}

/// The chain that the page draws and forecasts with: that of the data where it is known, else `V^T U`.
fn shown_chain<'a>(x: &'a Factors, extras: &Extras) -> Option<LatentChain<'a>> {
    let own = LatentChain::new(&x.u, &x.v).ok()?;
    let Some(story) = &extras.kinetics else { return Some(own) };
    let s = own.rank();
    let fits = story.chain.len() == s && story.chain.iter().all(|row| row.len() == s);
    let chain = fits.then(|| LatentChain::with_chain(&x.u, &x.v, Mat::from_fn(s, s, |i, j| story.chain[i][j])).ok()).flatten();
    Some(chain.unwrap_or(own))
}

/// The stationary law, the timescales in time steps of the data, and how far a forecast should look.
fn latent(chain: &LatentChain, xi: &[f64], lag: f64, extras: &Extras) -> (Option<Vec<f64>>, Vec<Value>, usize) {
    let own = || {
        chain.spectrum().into_iter().skip(1).map(|m| StoryMode {
            re: m.re,
            im: m.im,
            timescale: m.timescale.is_finite().then_some(lag * m.timescale),
        })
    };
    let modes: Vec<StoryMode> = extras.kinetics.as_ref().map_or_else(|| own().collect(), |k| k.modes.clone());
    let slowest = modes.iter().find_map(|m| m.timescale).map_or(1.0, |t| t / lag).clamp(1.0, LONGEST_TIMESCALE);
    let list = modes
        .iter()
        .enumerate()
        .map(|(k, m)| json!({ "re": m.re, "im": m.im, "timescale": m.timescale, "interval": extras.timescale_intervals.get(k) }))
        .collect();
    (chain.stationary(xi).ok().map(|laws| laws.limit), list, ((TIMESCALES_AHEAD * slowest).ceil() as usize).max(LEAST_STEPS))
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
