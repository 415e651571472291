//! What a model is told as: the records of `summary.json`, the further files of the folder, the story of the path on the page.

use std::collections::BTreeMap;

use metastate::aggregate::ZoneChange;
use metastate::fit::{ABOVE_NOISE, CONFIDENCE, Chosen, Intervals, Refit, SlicedModel, Stated};
use metastate::kinetics::Kinetics;
use metastate::workspace::errors;
use metastate::workspace::path::LambdaPoint;
use metastate::workspace::score::Smoothing;
use metastate::workspace::select::{Attempt, Choice};
use metastate::{Data, Label, Model, Operator};
use metastate_report::WhitenedRecord;
use metastate_report::npz::{Array, npz_bytes};
use metastate_report::page::{PathPoint, PathStory, RankPoint, RanksStory};
use metastate_report::{
    CHANGES_FILE, ChangeRecord, ChoiceFrame, ChoiceRecord, ErrorMeasures, KINETICS_FILE, LeastSquaresRecord, LedgerRecord,
    LikelihoodRecord, PROFILES_FILE, RefitRecord, SCHEMA, SLICE_ROWS_FILE, SLICES_FILE, SavedKinetics, SlicesRecord, Summary, TriedStart,
    UncertaintyRecord, ZoneChangeRecord, changes_csv, kinetics_npz, path_csv, profiles_parquet, ranks_csv, slice_rows_npz, slices_csv,
    uncertainty_csv,
};
use serde_json::json;

use crate::data::Dataset;
use crate::fit::Job;
use crate::settings;
use crate::times;

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
        destinations: loaded.data.going_on().is_none().then(|| chain.p().cols()),
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
        kinetics: model.moves.as_ref().map(|m| times::record(model, &m.kinetics, chain.xi(), lag(job))),
        slices: model.slices.as_ref().map(|s| slices(job, s)),
        control: None,
        files: BTreeMap::new(),
    }
}

/// How the flows of slices are known.
const FLOWS: &str = "estimated: shares of all transitions, as the shown model has them";
/// What is told of change.
const CHANGE: &str = "measured on held-out transitions: the logarithm of the likelihood with shares of its own for each slice over that with one for all, from zone to zone; the p-value by dealing \
    the slices anew among the transitions of each state, with the zones as they are";

/// What was asked of the slices, and which zones change.
fn slices(job: &Job, found: &SlicedModel) -> SlicesRecord {
    let zone = |c: &ZoneChange| ZoneChangeRecord { transitions: c.transitions, log_ratio: c.log_ratio, gain: c.gain(), p_value: c.p_value };
    SlicesRecord {
        expression: job.input.slice.clone().unwrap_or_default(),
        labels: found.slices.labels().labels().map(|l| l.to_string()).collect(),
        rows: found.slices.columns().len(),
        flows_are: FLOWS.to_owned(),
        change: found.change.as_ref().map(|c| ChangeRecord {
            folds: c.folds,
            permutations: c.permutations,
            change_is: CHANGE.to_owned(),
            whole: zone(&c.whole),
            zones: c.zones.iter().map(zone).collect(),
        }),
    }
}

/// The files of the slices.
pub fn slice_files(
    found: &SlicedModel,
    record: Option<&SlicesRecord>,
    data: &Data,
    model: &Model,
    labels: &[Label],
) -> std::io::Result<Vec<(&'static str, Vec<u8>)>> {
    let arrivals = data.chain().counts().map(metastate::Csr::column_sums).unwrap_or_default();
    let profiles = profiles_parquet(&found.slices, labels, &model.factors().v, &arrivals).map_err(std::io::Error::other)?;
    let mut files = vec![
        (SLICES_FILE, slices_csv(&found.slices, &found.flows).into_bytes()),
        (PROFILES_FILE, profiles),
        (SLICE_ROWS_FILE, slice_rows_npz(&found.slices)?),
    ];
    if let Some(change) = record.and_then(|r| r.change.as_ref()) {
        files.push((CHANGES_FILE, changes_csv(&change.zones).into_bytes()));
    }
    Ok(files)
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
            prior_shares: best.fit.prior_shares.clone(),
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

pub(crate) fn finite(t: f64) -> Option<f64> {
    t.is_finite().then_some(t)
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

/// The smaller files that go with a choice, a second fit and intervals.
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
