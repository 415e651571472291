//! Kinetics as they are told: the record of `summary.json`, `kinetics.npz`, and what the page shows.

use metastate::Mat;
use metastate::aggregate::latent::{ClosedClass, Mode};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{
    Between, Kinetics, LagLook, Microstates, Scale, Uncertain, fates_of_chain, interval, mean_first_passage, power, stationary_of_chain,
};
use metastate::{Data, Model};
use metastate_report::page::{Ends, FateStory, KineticsStory, LagStory, StoryMode};
use metastate_report::{KineticsRecord, SavedKinetics};

use crate::record::{finite, timescales as intervals};

/// Times and how the states hang together.
pub fn record(model: &Model, k: &Kinetics, xi: &[f64], lag: f64) -> KineticsRecord {
    let list = |modes: &[Mode]| modes.iter().skip(1).map(|m| finite(lag * m.timescale)).collect();
    let limit = model.kinetic_chain().and_then(|c| c.stationary(xi)).map(|laws| laws.limit).unwrap_or_default();
    KineticsRecord {
        carries: k.carries,
        lag,
        timescales: list(&k.modes),
        timescale_intervals: intervals(k, lag),
        microstate_timescales: list(&k.microstates),
        stationary: limit,
        closed_metastates: k.structure.closed.iter().map(|c| c.members.iter().map(|j| j + 1).collect()).collect(),
        closed_classes: k.classes.closed_by_size().iter().map(|&c| k.classes.sizes[c as usize]).collect(),
        transient_states: k.classes.transient_states(),
        absorbing_states: k.classes.absorbing_states(),
        share: k.share,
        steps: k.steps,
        told_apart: k.told_apart,
        reversible: k.reversible,
    }
}

/// The chain of the meta-states as the page shows it.
pub fn story(k: &Kinetics, saved: Option<&SavedKinetics>, lag: f64) -> KineticsStory {
    let s = k.rank();
    let chain = (0..s).map(|j| k.chain.row(j).to_vec()).collect();
    let modes = k.modes.iter().skip(1).map(|m| StoryMode { re: m.re, im: m.im, timescale: finite(lag * m.timescale) }).collect();
    let between = |b: &Between| (finite(b.value), finite(b.low), finite(b.high));
    let look = |l: &LagLook| {
        let power = power(&k.chain, (l.lag / lag).round() as u64);
        LagStory {
            lag: l.lag,
            timescales: l.timescales.iter().map(between).collect(),
            stays: l.stays.iter().map(between).collect(),
            predicted: (0..s).map(|j| power[(j, j)]).collect(),
        }
    };
    let passage = saved.map_or_else(Vec::new, |saved| passage(saved, lag));
    KineticsStory { chain, modes, lag, lags: k.lags.iter().map(look).collect(), pair: pair(k, &passage), passage, fates: fates(k) }
}

/// Passage times between the states of meta-states, in frames, with their intervals; empty where they were not computed.
fn passage(saved: &SavedKinetics, lag: f64) -> Vec<Vec<Ends>> {
    let s = saved.chain.rows();
    let m = &saved.passage_states;
    let one = |i: usize, j: usize| {
        let (low, high) = interval(m[(i, j)], saved.part_passage.iter().map(|part| part[(i, j)]), Scale::Times, CONFIDENCE);
        (finite(lag * m[(i, j)]), finite(lag * low), finite(lag * high))
    };
    match m.as_slice().iter().any(|t| t.is_finite()) {
        true => (0..s).map(|i| (0..s).map(|j| one(i, j)).collect()).collect(),
        false => Vec::new(),
    }
}

/// The flux that is drawn first: from the meta-state with the largest share to the one that it takes longest to come to, among those that hold a hundredth. None where there is no single stationary law.
fn pair(k: &Kinetics, passage: &[Vec<Ends>]) -> Option<(usize, usize)> {
    let s = k.rank();
    let (closed, laws, _) = stationary_of_chain(&k.chain, &vec![1.0 / s as f64; s]);
    let ([_], [law]) = (&closed[..], &laws[..]) else { return None };
    let from = (0..s).max_by(|&a, &b| law[a].total_cmp(&law[b]).then(b.cmp(&a)))?;
    let far = |j: usize| match passage.get(from) {
        Some(row) => row[j].0.unwrap_or(f64::INFINITY),
        None => mean_first_passage(&k.chain, from, j),
    };
    let others = |least: f64| (0..s).filter(|&j| j != from && law[j] > least).max_by(|&a, &b| far(a).total_cmp(&far(b)).then(b.cmp(&a)));
    others(WORTH_GOING_TO).or_else(|| others(0.0)).map(|to| (from, to))
}

/// The least share of the meta-state that the first flux leads to.
const WORTH_GOING_TO: f64 = 0.01;

/// Where meta-states end; empty where all of them are in one class that is never left.
fn fates(k: &Kinetics) -> Vec<FateStory> {
    let (structure, found) = fates_of_chain(&k.chain);
    if structure.closed.len() == 1 && structure.transient.is_empty() {
        return Vec::new();
    }
    let one = |(c, class): (usize, &ClosedClass)| FateStory {
        members: class.members.iter().map(|j| j + 1).collect(),
        probability: (0..k.rank()).map(|j| found[(j, c)]).collect(),
    };
    structure.closed.iter().enumerate().map(one).collect()
}

/// Passage times between hard meta-states are looked for among so many states at most, and in so many products; their intervals where that many products do for every pair.
const MOST_STATES_WITH_PASSAGE: usize = 3000;
const MOST_WORK_WITH_PASSAGE: usize = 50_000_000;

/// `kinetics.npz`.
pub fn file(data: &Data, model: &Model, uncertain: Option<&Uncertain>) -> metastate::Result<SavedKinetics> {
    let (k, chain) = (&model.moves()?.kinetics, data.going_on().unwrap_or(data.chain()));
    let s = k.rank();
    let quick = |times: usize| chain.nonzeros().saturating_mul(times) <= MOST_WORK_WITH_PASSAGE;
    let (mut passage_states, mut part_passage) = (Mat::from_fn(s, s, |_, _| f64::NAN), Vec::new());
    if chain.states() <= MOST_STATES_WITH_PASSAGE && quick(s) {
        let part: Vec<usize> = model.memberships().largest_entries().collect();
        let states = Microstates::weighted(chain.p(), model.memberships(), chain.departures().to_vec())?;
        passage_states = states.passage_between(&part, s)?;
        if let Some(uncertain) = uncertain.filter(|_| k.lighter.is_some() && quick(s * s)) {
            part_passage = states.passage_lighter(&part, s, &passage_states, uncertain)?;
        }
    }
    let lighter = k.lighter.as_ref();
    let time = |modes: &[Mode], place: usize| modes.get(place).map_or(f64::NAN, |m| m.timescale);
    let part_timescales =
        lighter.map_or_else(Mat::default, |d| Mat::from_fn(d.modes.len(), s - 1, |b, place| time(&d.modes[b], place + 1)));
    Ok(SavedKinetics {
        chain: k.chain.clone(),
        projected: k.projected.clone(),
        passage_states,
        part_chains: lighter.map(|d| d.chains.clone()).unwrap_or_default(),
        part_timescales,
        part_passage,
    })
}
