//! What the latent chain says, as rows of the forecast's tables.

use metastate::Mat;
use metastate::aggregate::latent::{Identity, LatentChain, Mode, StationaryLaws, identify};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{Flux, Scale, fates_of_chain, interval, mean_first_passage};
use metastate_report::{CommittorRow, FateRow, IdentityRow, PassageRow, PathwayRow, RateRow, StationaryClass, TimescaleRow};

use super::Model;
use crate::error::Result;

/// Up to so many meta-states all ways between them are told, until this share of the flux.
const MOST_WITH_WAYS: usize = 15;
const SHARE_TOLD: f64 = 0.9;
/// Anchor states and exclusive destinations named for each meta-state.
const NAMED: usize = 5;

/// Mean times between every two meta-states: `passage` of the latent chain, and those of the states that belong to them.
pub fn passage(model: &Model, laws: &StationaryLaws, passage: &Mat) -> Result<Vec<PassageRow>> {
    let s = model.chain.rank();
    let passage_states = match &model.kinetics {
        Some(k) => k.passage_states.clone(),
        None => model.lumped.mean_first_passage(&model.chain, &model.part, &laws.limit_states)?,
    };
    let row = |(from, to): (usize, usize)| {
        let (steps, steps_states) = (passage[(from, to)], passage_states[(from, to)]);
        let (low, high) = model.interval(steps, Scale::Times, |k| mean_first_passage(k, from, to));
        let (low_states, high_states) = model.passage_interval(steps_states, from, to);
        PassageRow {
            time_low: low.map(|t| model.time(t)),
            time_high: high.map(|t| model.time(t)),
            time_states_low: low_states.map(|t| model.time(t)),
            time_states_high: high_states.map(|t| model.time(t)),
            from: from + 1,
            to: to + 1,
            steps,
            time: model.time(steps),
            steps_states,
            time_states: model.time(steps_states),
        }
    };
    Ok((0..s).flat_map(|a| (0..s).map(move |b| (a, b))).map(row).collect())
}

/// Closed classes of the latent chain, each with its law.
pub fn classes(laws: &StationaryLaws) -> Vec<StationaryClass> {
    let with_laws = laws.structure.closed.iter().zip(&laws.laws);
    with_laws
        .map(|(c, law)| StationaryClass { members: c.members.iter().map(|j| j + 1).collect(), period: c.period, law: law.clone() })
        .collect()
}

/// What each meta-state is: how much of the chain is there, how long it stays, and how far the data tell it from the others.
pub fn metastates(model: &Model, laws: &StationaryLaws, passage: &Mat) -> Result<Vec<IdentityRow>> {
    let chain = &model.chain;
    let share = |j: usize| model.interval(laws.limit[j], Scale::Shares, |k| stationary_share(model, k, &model.xi, j).unwrap_or(f64::NAN));
    let named = |list: &[usize]| list.iter().take(NAMED).map(|&i| model.labels[i].clone()).collect();
    let row = |(j, id): (usize, &Identity)| {
        let (stationary_low, stationary_high) = share(j);
        IdentityRow {
            metastate: j + 1,
            states: model.lumped.sizes()[j],
            stationary: laws.limit[j],
            stationary_low,
            stationary_high,
            stay: chain.k()[(j, j)],
            return_time: model.time(passage[(j, j)]),
            share: id.share,
            share_low: id.share_low,
            share_high: id.share_high,
            ambiguity: id.ambiguity,
            purest: id.purest,
            anchor_states: id.anchors.len(),
            anchors: named(&id.anchors),
            exclusive_destinations: id.exclusive.len(),
            exclusive: named(&id.exclusive),
        }
    };
    Ok(identify(chain, &model.xi)?.iter().enumerate().map(row).collect())
}

/// Of the timescales in steps, for the modes after the first.
pub fn timescale_intervals(model: &Model) -> Vec<(f64, f64)> {
    let Some(k) = model.kinetics.as_ref().filter(|k| k.part_timescales.rows() > 0) else { return Vec::new() };
    let parts = &k.part_timescales;
    let of = |place: usize, t: f64| interval(t, (0..parts.rows()).map(|b| parts[(b, place)]), Scale::Times, CONFIDENCE);
    model.modes().iter().skip(1).take(parts.cols()).enumerate().map(|(place, m)| of(place, m.timescale)).collect()
}

/// The stationary share of one meta-state under another chain.
fn stationary_share(model: &Model, k: &Mat, xi: &[f64], j: usize) -> Option<f64> {
    let chain = LatentChain::with_chain(model.chain.u(), model.chain.v(), k.clone()).ok()?;
    chain.stationary(xi).ok().map(|laws| laws.limit[j])
}

/// Flux, rate and ways between every two meta-states; none where there are several stationary laws.
pub fn rates(model: &Model) -> (Vec<RateRow>, Vec<PathwayRow>) {
    let (k, s, lag) = (model.chain.k(), model.chain.rank(), model.lag as f64);
    let (mut rates, mut ways) = (Vec::new(), Vec::new());
    for (from, to) in (0..s).flat_map(|a| (0..s).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let Ok(flux) = Flux::of_chain(k, &[from], &[to]) else { continue };
        let (low, high) = if s <= MOST_WITH_WAYS {
            model.interval(flux.rate, Scale::Times, |k| Flux::of_chain(k, &[from], &[to]).map_or(f64::NAN, |f| f.rate))
        } else {
            (None, None)
        };
        rates.push(RateRow {
            from: from + 1,
            to: to + 1,
            flux: flux.total / lag,
            rate: flux.rate / lag,
            rate_low: low.map(|r| r / lag),
            rate_high: high.map(|r| r / lag),
        });
        if s <= MOST_WITH_WAYS {
            ways.extend(flux.pathways(&[from], &[to], SHARE_TOLD).into_iter().map(|way| PathwayRow {
                from: from + 1,
                to: to + 1,
                way: way.nodes.iter().map(|j| j + 1).collect(),
                flux: way.flux / lag,
                share: way.flux / flux.total,
            }));
        }
    }
    (rates, ways)
}

/// Where each meta-state ends, where that is a question at all.
pub fn fates(chain: &Mat) -> Vec<FateRow> {
    let (structure, found) = fates_of_chain(chain);
    if structure.closed.len() == 1 && structure.transient.is_empty() {
        return Vec::new();
    }
    let class = |k: usize| structure.closed[k].members.iter().map(|j| j + 1).collect();
    let pairs = (0..chain.rows()).flat_map(|j| (0..structure.closed.len()).map(move |k| (j, k)));
    pairs.map(|(j, k)| FateRow { metastate: j + 1, class: class(k), probability: found[(j, k)] }).collect()
}

/// The timescales of these modes, each with its interval where there is one.
pub fn timescales(source: &'static str, steps: u64, lag: u64, modes: &[Mode], intervals: &[(f64, f64)]) -> Vec<TimescaleRow> {
    let row = |(n, m): (usize, &Mode)| TimescaleRow {
        source,
        steps,
        lag,
        mode: n + 1,
        re: m.re,
        im: m.im,
        modulus: m.modulus(),
        timescale: m.timescale * lag as f64,
        turn: m.turn * lag as f64,
        low: n.checked_sub(1).and_then(|k| intervals.get(k)).map(|i| i.0 * lag as f64),
        high: n.checked_sub(1).and_then(|k| intervals.get(k)).map(|i| i.1 * lag as f64),
    };
    modes.iter().enumerate().map(row).collect()
}

/// For every two meta-states A and B: how likely each other one leads to B before A, and was reached from A rather than from B.
pub fn committors(model: &Model) -> Result<Vec<CommittorRow>> {
    let chain = &model.chain;
    let s = chain.rank();
    let mut rows = Vec::new();
    for (a, b) in (0..s).flat_map(|a| (a + 1..s).map(move |b| (a, b))) {
        let q = chain.committor(a, b)?;
        for j in (0..s).filter(|&j| j != a && j != b) {
            let backward = q.backward.as_ref().map_or(f64::NAN, |q| q[j]);
            let (forward_low, forward_high) = if s <= MOST_WITH_WAYS {
                model.interval(q.forward[j], Scale::Shares, |k| Flux::of_chain(k, &[a], &[b]).map_or(f64::NAN, |f| f.forward[j]))
            } else {
                (None, None)
            };
            rows.push(CommittorRow {
                from: a + 1,
                to: b + 1,
                metastate: j + 1,
                forward: q.forward[j],
                backward,
                forward_low,
                forward_high,
            });
        }
    }
    Ok(rows)
}
