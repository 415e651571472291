//! What a model is told as: the records of `summary.json`, the further files of the folder, the story of the path on the page.

use std::collections::BTreeMap;

use metastate::aggregate::latent::Mode;
use metastate::fit::{ABOVE_NOISE, CONFIDENCE, Chosen, Intervals, Refit, Stated};
use metastate::kinetics::{Kinetics, Microstates};
use metastate::linalg::Mat;
use metastate::solve::path::LambdaPoint;
use metastate::solve::score::Smoothing;
use metastate::solve::select::{Attempt, Choice};
use metastate::solve::{Factors, errors};
use metastate::{Data, Label, Model, Operator};
use metastate_report::WhitenedRecord;
use metastate_report::npz::{Array, npz_bytes};
use metastate_report::page::{KineticsStory, PathPoint, PathStory, RankPoint, RanksStory, StoryMode};
use metastate_report::{
    ChoiceFrame, ChoiceRecord, ErrorMeasures, KINETICS_FILE, KineticsRecord, LeastSquaresRecord, LedgerRecord, LikelihoodRecord,
    RefitRecord, SCHEMA, SavedKinetics, Summary, TriedStart, UncertaintyRecord, kinetics_npz, path_csv, ranks_csv, uncertainty_csv,
};
use serde_json::json;

use crate::data::Dataset;
use crate::fit::Job;
use crate::settings;

/// What the intervals speak of, and what they do not; `docs/statistics.md` has the measured coverage.
const INTERVALS: &str = "of the memberships in the meta-states as they are here: so wide that, in draws where the truth is known, the stated share of them holds what endlessly many \
    transitions out of the state would give; whether the same transitions could be explained by other meta-states is not in them (metastate forecast says how far these are determined)";

/// All of `summary.json` but seconds, inputs and the hashes of files.
pub fn summary(job: &Job, loaded: &Dataset, model: &Model, truth: Option<&dyn Operator>) -> Summary {
    let (chain, solution) = (loaded.chain(), &model.solution);
    let proof = solution.proof.as_ref();
    let mut hints = loaded.hints.clone();
    hints.extend(model.hints.iter().cloned());
    Summary {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        status: solution.status.into(),
        states: chain.states(),
        destinations: (!chain.goes_on()).then(|| chain.p().cols()),
        transitions: chain.transitions(),
        nonzeros: chain.nonzeros(),
        lambda: solution.lambda,
        lambda_max: Some(model.lambda_max),
        rank: solution.rank(),
        objective: solution.objective.value,
        fidelity: solution.objective.fidelity,
        regularizer: solution.objective.regularizer,
        objective_of_one: Some(solution.objective_of_one).filter(|x| x.is_finite()),
        lower_bound: proof.map(|p| p.lower_bound()),
        bound_proof: proof.map(|p| p.method()).into(),
        bound_failure_probability: proof.and_then(|p| p.method().failure_probability()),
        errors: ErrorMeasures::from(solution),
        seconds: BTreeMap::new(),
        iterations: solution.sweeps,
        rounds: solution.rounds,
        seed: job.seed,
        settings: json!({
            "input": job.input, "fit": job.fit.resolved(), "hard_metastates": settings::clusters(&job.fit).describe()
        }),
        command: job.command.clone(),
        directory: std::env::current_dir().map_or_else(|_| String::new(), |d| d.display().to_string()),
        inputs: Vec::new(),
        read_as: loaded.read_as.clone(),
        rows: loaded.rows,
        rows_counted: loaded.rows_counted,
        ledger: LedgerRecord::list(chain.ledger()),
        hints,
        choice: model.chosen.as_ref().map(choice),
        refit: model.refit.as_ref().map(|r| refit(r, truth.map(|p| errors::relative_recovery_error(chain.weights(), r.factors(), p)))),
        whitened: model.stated.as_ref().map(whitened),
        uncertainty: model.intervals.as_ref().map(|found| uncertainty(found, model.moves.as_ref().map(|m| &m.kinetics), lag(job))),
        kinetics: model.moves.as_ref().map(|m| kinetics(model, &m.kinetics, chain.xi(), lag(job))),
        files: BTreeMap::new(),
    }
}

/// How rank, prior and lambda were chosen.
fn choice(chosen: &Chosen) -> ChoiceRecord {
    let frame = ChoiceFrame {
        sentence: chosen.sentence.clone(),
        lambda: chosen.lambda,
        folds: chosen.folds,
        folds_are: chosen.folds_are.clone(),
        smoothing: Smoothing::default().share,
    };
    ChoiceRecord::new(&chosen.choice, frame)
}

/// What the second fit is worth.
fn refit(refit: &Refit, rel_re: Option<f64>) -> RefitRecord {
    match refit {
        Refit::LeastSquares(fit) => RefitRecord::LeastSquares(LeastSquaresRecord {
            rank: fit.factors.rank(),
            fidelity: fit.fidelity,
            sweeps: fit.sweeps,
            converged: fit.converged,
            rel_re,
        }),
        Refit::Likelihood { best, prior } => RefitRecord::Likelihood(LikelihoodRecord {
            rank: best.fit.factors.rank(),
            prior: *prior,
            start: best.start.into(),
            tried: best
                .tried
                .iter()
                .map(|t| TriedStart { start: t.start.into(), log_likelihood: t.log_likelihood, comparable: t.comparable })
                .collect(),
            log_likelihood: best.fit.log_likelihood,
            penalised: best.fit.penalised,
            passes: best.fit.passes,
            converged: best.fit.converged,
            rel_re,
        }),
    }
}

fn uncertainty(found: &Intervals, kinetics: Option<&Kinetics>, lag: f64) -> UncertaintyRecord {
    let u = &found.uncertainty;
    UncertaintyRecord {
        draws: u.replicates,
        confidence: CONFIDENCE,
        draws_are: found.drawn.clone(),
        intervals_are: INTERVALS.to_owned(),
        stability: u.stability.clone(),
        timescale_intervals: kinetics.map_or_else(Vec::new, |k| timescales(k, lag)),
        undecided_states: u.undecided.iter().filter(|u| **u).count(),
    }
}

/// Frames in one step.
pub fn lag(job: &Job) -> f64 {
    job.input.lag as f64
}

/// The intervals of the timescales, in frames; none is infinite.
pub fn timescales(kinetics: &Kinetics, lag: f64) -> Vec<(Option<f64>, Option<f64>)> {
    kinetics.timescale_intervals(CONFIDENCE).into_iter().map(|(low, high)| (finite(lag * low), finite(lag * high))).collect()
}

fn finite(t: f64) -> Option<f64> {
    t.is_finite().then_some(t)
}

/// Times and how the states hang together.
fn kinetics(model: &Model, k: &Kinetics, xi: &[f64], lag: f64) -> KineticsRecord {
    let times = |modes: &[Mode]| modes.iter().skip(1).map(|m| finite(lag * m.timescale)).collect();
    let limit = model.kinetic_chain().and_then(|c| c.stationary(xi)).map(|laws| laws.limit).unwrap_or_default();
    KineticsRecord {
        carries: k.carries,
        lag,
        timescales: times(&k.modes),
        timescale_intervals: timescales(k, lag),
        microstate_timescales: times(&k.microstates),
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
pub fn kinetics_story(k: &Kinetics, lag: f64) -> KineticsStory {
    let chain = (0..k.rank()).map(|j| k.chain.row(j).to_vec()).collect();
    let modes = k.modes.iter().skip(1).map(|m| StoryMode { re: m.re, im: m.im, timescale: finite(lag * m.timescale) }).collect();
    KineticsStory { chain, modes }
}

/// Passage times between hard meta-states are looked for among so many states at most, and in so many products.
const MOST_STATES_WITH_PASSAGE: usize = 3000;
const MOST_WORK_WITH_PASSAGE: usize = 50_000_000;

/// `kinetics.npz`.
pub fn kinetics_file(data: &Data, model: &Model) -> metastate::Result<SavedKinetics> {
    let (k, chain) = (&model.moves()?.kinetics, data.chain());
    let s = k.rank();
    let quick = chain.states() <= MOST_STATES_WITH_PASSAGE && chain.nonzeros().saturating_mul(s) <= MOST_WORK_WITH_PASSAGE;
    let passage_states = if quick {
        let part: Vec<usize> = model.memberships().largest_entries().collect();
        Microstates::weighted(chain.p(), model.memberships(), chain.departures().to_vec())?.passage_between(&part, s)?
    } else {
        Mat::from_fn(s, s, |_, _| f64::NAN)
    };
    let drawn = k.draws.as_ref();
    let time = |modes: &[Mode], place: usize| modes.get(place).map_or(f64::NAN, |m| m.timescale);
    let draw_timescales = drawn.map_or_else(Mat::default, |d| Mat::from_fn(d.modes.len(), s - 1, |b, place| time(&d.modes[b], place + 1)));
    Ok(SavedKinetics {
        chain: k.chain.clone(),
        projected: k.projected.clone(),
        passage_states,
        draws: drawn.map(|d| d.chains.clone()).unwrap_or_default(),
        draw_timescales,
    })
}

/// The terms of the whitened problem.
fn whitened(s: &Stated) -> WhitenedRecord {
    let scores = &s.scores;
    WhitenedRecord {
        prior: s.prior,
        price: s.price,
        noise: s.noise,
        lambda_over_noise: ABOVE_NOISE,
        held_out: scores.held_out.0,
        held_out_error: scores.held_out.1,
        likelihood: scores.likelihood.0,
        likelihood_error: scores.likelihood.1,
        behind: scores.behind.0,
        behind_error: scores.behind.1,
    }
}

/// The files that go with a choice, a second fit and intervals.
pub fn files(kinetics: Option<&SavedKinetics>, model: &Model, labels: &[Label]) -> std::io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut files = Vec::new();
    if let Some(kinetics) = kinetics {
        files.push((KINETICS_FILE, kinetics_npz(kinetics)?));
    }
    if let Some(c) = &model.chosen {
        files.push(("path.csv", path_csv(&c.points, &c.choice, c.at).into_bytes()));
        files.push(("ranks.csv", ranks_csv(&c.choice).into_bytes()));
    }
    if let Some(stated) = &model.stated {
        files.push(("prices.npz", npz_bytes(&[Array::matrix("rows", &stated.rows), Array::matrix("columns", &stated.columns)])?));
    }
    if let Some(refit) = &model.refit {
        let Factors { u, v } = refit.factors();
        files.push(("refit.npz", npz_bytes(&[Array::matrix("U", u), Array::matrix("V", v)])?));
    }
    if let Some(found) = &model.intervals {
        files.push(("uncertainty.csv", uncertainty_csv(&found.uncertainty, model.factors(), labels).into_bytes()));
    }
    Ok(files)
}

/// The numbers of meta-states that were tried, as the page tells them; nothing where the number was given.
pub fn ranks_story(choice: &Choice) -> Option<RanksStory> {
    let best = &choice.at(choice.best_rank)?.held_out;
    let point = |r: &Attempt| {
        let (behind, error) = r.held_out.behind(best);
        let score = choice.mean_score(r.rank)?.0;
        let all_finite = [score, behind, error].iter().all(|x| x.is_finite());
        all_finite.then_some(RankPoint { rank: r.rank, score, behind, error, first_look: r.first_look })
    };
    let points: Vec<RankPoint> = choice.ranks.iter().filter_map(point).collect();
    let chosen = points.iter().position(|p| p.rank == choice.rank)?;
    let counts = choice.empirical.1.log_likelihood();
    (!choice.given && counts.is_finite()).then(|| RanksStory { sentence: choice.sentence(), chosen, points, counts })
}

/// The path as the page tells it.
pub fn path_story(chosen: &Chosen) -> PathStory {
    let points = chosen.points.iter().map(|p| on_page(p, &chosen.choice)).collect();
    PathStory { sentence: chosen.sentence.clone(), chosen: chosen.at, points }
}

/// The page shows the score of the penalised solution, and where the path was not held out, that of the refit at its rank.
fn on_page(p: &LambdaPoint, choice: &Choice) -> PathPoint {
    let score = p.held_out.map(|s| (s.log_likelihood, Some(s.standard_error))).or(choice.mean_score(p.rank));
    PathPoint {
        lambda: p.lambda,
        rank: p.rank,
        objective: p.objective.value,
        gap: p.certified_gap,
        score: score.map(|s| s.0),
        se: score.and_then(|s| s.1),
        zones: (!p.zones.is_empty()).then(|| p.zones.clone()),
    }
}
