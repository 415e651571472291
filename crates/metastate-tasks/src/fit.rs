//! `metastate fit`: read, solve, write.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use metastate::aggregate::{Partition, ZoneFlows};
use metastate::solve::{self, Factors, Problem, Solution};
use metastate::{Chain, Label};
use metastate_report::page::{Extras, PathStory};
use metastate_report::{ErrorMeasures, FileRecord, FitResult, LedgerRecord, SCHEMA, Summary, folder};
use serde_json::{Value, json};

use crate::args::{FitArgs, InputArgs, Options, RunArgs};
use crate::checkpoint::{self, Checkpoint};
use crate::data::{self, Loaded};
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::watch::{Trace, Watch, WatchReading};
use crate::{choose, hard, path_checkpoint, refit, report, settings, truth};

/// What is to be done, as it was typed.
pub struct Job {
    /// Where from.
    pub input: InputArgs,
    /// What to solve.
    pub fit: FitArgs,
    /// How to run it.
    pub run: RunArgs,
    /// Whether the whole path of lambdas is asked for (`metastate path`).
    pub whole_path: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The command that does it again.
    pub command: String,
}

/// Reads, solves and writes; hands back what stands in `summary.json`.
pub fn run(job: &Job, reporter: &mut Reporter, stopper: &Stopper) -> Result<Summary> {
    let start = Instant::now();
    check(job)?;
    let out = &job.run.out;
    for place in [out, &checkpoint::place(out), &path_checkpoint::place(out)] {
        folder::tidy(place);
    }
    folder::check_free(&job.run.out, job.run.force)?;
    keep_inputs(&job.run.out, &job.input, &job.fit)?;

    stopper.doing(Doing::Reading);
    let loaded = data::load(&job.input, &job.fit, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    let solved = solve_loaded(job, loaded, start, reporter, stopper)?;
    reporter.spin("page");
    let extras = solved.extras()?;
    reporter.spin("writing");
    // Under the lock: a signal now waits until the folder stands.
    let mut state = stopper.lock();
    let summary = solved.write(&job.run.out, job.run.force, &extras)?;
    if let Some(checkpoint) = state.checkpoint.take() {
        checkpoint.remove();
    }
    path_checkpoint::remove(&path_checkpoint::place(&job.run.out));
    state.doing = Doing::Done;
    reporter.clear();
    Ok(summary)
}

/// Refuses what can be refused before any data is read.
pub fn check(job: &Job) -> Result<()> {
    job.fit.check()?;
    job.run.check()?;
    if job.whole_path && !job.fit.chooses() {
        return Err(CliError::bad("E-CLI-ARGUMENT", "path solves for many values of lambda; --lambda and --lambda-ratio belong to fit"));
    }
    Ok(())
}

/// A fit in memory, before it becomes a folder.
pub struct Solved {
    /// What will stand in `summary.json`, without the hashes of the files.
    pub summary: Summary,
    /// The data.
    pub loaded: Loaded,
    /// The solution of the stated problem.
    pub solution: Solution,
    /// U and V of the refit, when one was asked for.
    pub refit: Option<Factors>,
    /// Hard meta-states.
    pub partition: Partition,
    /// `path.csv`, `ranks.csv`, `refit.npz` and the like.
    pub extra: Vec<(&'static str, Vec<u8>)>,
    flows: ZoneFlows,
    labels: Vec<Label>,
    trace: Trace,
    path: Option<PathStory>,
    timescale_intervals: Vec<(Option<f64>, Option<f64>)>,
}

impl Solved {
    /// What forecasts and zones rest on: the refit where there is one.
    pub fn model(&self) -> &Factors {
        self.refit.as_ref().unwrap_or(&self.solution.factors)
    }

    fn result(&self) -> FitResult<'_> {
        FitResult {
            labels: &self.labels,
            xi: self.loaded.chain.xi(),
            coordinates: self.loaded.coordinates.as_deref(),
            cell: self.loaded.cell,
            factors: &self.solution.factors,
            model: self.model(),
            partition: &self.partition,
            flows: &self.flows,
            witness: &self.solution.witness,
            extra: &self.extra,
        }
    }

    /// What the page shows beyond the tables.
    pub fn extras(&self) -> Result<Extras> {
        let extras = report::extras(&self.loaded.chain, &self.result(), self.trace.clone(), self.path.clone(), self.summary.seed)?;
        Ok(Extras { timescale_intervals: self.timescale_intervals.clone(), ..extras })
    }

    /// Writes the folder, whole or not at all.
    pub fn write(&self, place: &Path, force: bool, extras: &Extras) -> Result<Summary> {
        Ok(metastate_report::write(place, force, self.summary.clone(), &self.result(), extras)?)
    }
}

/// Everything between the data and the folder. `start` is when the work began.
pub fn solve_loaded(job: &Job, loaded: Loaded, start: Instant, reporter: &mut Reporter, stopper: &Stopper) -> Result<Solved> {
    let chain = &loaded.chain;
    hard::check(job.fit.hard(), chain.states())?;
    reporter.say(format!("{} states, {} transitions, {} pairs", chain.states(), chain.transitions(), chain.nonzeros()));
    loaded.hints.iter().for_each(|hint| reporter.say(format!("hint: {hint}")));
    let mut seconds = BTreeMap::from([("reading".to_owned(), start.elapsed().as_secs_f64())]);

    let clock = Instant::now();
    reporter.spin("lambda_max");
    let (given, lambda_max) = settings::lambda(&job.fit, chain, job.seed)?;
    seconds.insert("lambda_max".into(), clock.elapsed().as_secs_f64());
    stopper.go_on()?;
    let (solver, start_files) = settings::solver(&job.fit, job.seed, chain)?;
    let truth = job.fit.truth.as_deref().map(|text| truth::load(text, chain)).transpose()?;
    let mut inputs = loaded.inputs.clone();
    inputs.extend(start_files);
    inputs.extend(truth.iter().flat_map(|(_, files)| files.iter().cloned()));

    let clock = Instant::now();
    let asked_for = asked_for(job, &inputs);
    let chosen = match given {
        Some(_) => None,
        None => Some(choose::choose(job, &loaded, lambda_max, &solver, &asked_for, reporter, stopper)?),
    };
    let lambda = given.or(chosen.as_ref().map(|c| c.lambda)).unwrap_or(lambda_max);
    seconds.insert("choosing".into(), clock.elapsed().as_secs_f64());

    let clock = Instant::now();
    let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
    let solver = chosen.as_ref().map_or(&solver, |c| &c.settings);
    let (mut solution, trace) = solve_or_resume(job, &problem, solver, asked_for, reporter, stopper)?;
    stopper.go_on()?;
    // The solver orders by its weights; people count by mass, whatever the power of the weights.
    solution.factors.order_by_mass(chain.xi());
    if let Some((p, _)) = &truth {
        let x = &solution.factors;
        solution.errors.rel_re = Some(solve::errors::relative_recovery_error(chain.weights(), x, p.as_ref()));
        solution.errors.rel_se = Some(solve::errors::relative_sampling_error(chain.weights(), chain.p(), p.as_ref()));
    }
    seconds.insert("solving".into(), clock.elapsed().as_secs_f64());
    let clock = Instant::now();
    let true_p = truth.as_ref().map(|(p, _)| p.as_ref());
    let refitted = refit::run(job, &loaded, &solution, chosen.as_ref(), lambda_max, true_p, reporter, stopper)?;
    if refitted.refit.is_some() {
        seconds.insert("refit".into(), clock.elapsed().as_secs_f64());
    }
    let clock = Instant::now();
    reporter.spin("zones");
    stopper.go_on()?;
    let model = refitted.factors.as_ref().unwrap_or(&solution.factors);
    let partition = hard::metastates(job.fit.hard(), &model.u, chain.xi(), job.seed)?;
    let flows = ZoneFlows::new(chain.p(), chain.departures(), &partition);
    seconds.insert("zones".into(), clock.elapsed().as_secs_f64());
    seconds.insert("total".into(), start.elapsed().as_secs_f64());

    let mut hints = loaded.hints.clone();
    hints.extend(chosen.iter().map(|c| c.sentence.clone()));
    hints.extend(hints_about(&solution, lambda, lambda_max, solver.max_rank));
    let (choice, mut extra, path) = chosen.map_or((None, Vec::new(), None), |c| (Some(c.record), c.files, Some(c.story)));
    extra.extend(refitted.files);
    let summary = Summary {
        inputs,
        rows: loaded.rows,
        rows_counted: loaded.rows_counted,
        seconds,
        hints,
        lambda_max: Some(lambda_max),
        choice,
        refit: refitted.refit,
        uncertainty: refitted.uncertainty,
        ..summarise(job, chain, &solution)
    };
    let labels: Vec<Label> = chain.index().labels().collect();
    let (refit, timescale_intervals) = (refitted.factors, refitted.timescale_intervals);
    Ok(Solved { summary, solution, refit, partition, extra, flows, labels, trace, path, timescale_intervals, loaded })
}

/// No input may lie in the folder that is to be replaced.
fn keep_inputs(out: &Path, input: &InputArgs, fit: &FitArgs) -> Result<()> {
    let Ok(place) = out.canonicalize() else { return Ok(()) };
    let mut names: Vec<&str> = input.inputs.iter().chain(&input.labels).chain(&input.weights).map(String::as_str).collect();
    names.extend(fit.truth.iter().flat_map(|t| t.split(',')));
    for name in names {
        if Path::new(name).canonicalize().is_ok_and(|file| file.starts_with(&place)) {
            return Err(CliError::bad("E-CLI-EXISTS", format!("the input {name} lies in the folder that would be replaced"))
                .at(out.display().to_string())
                .remedy("name another folder with --out"));
        }
    }
    Ok(())
}

/// Everything that the answer depends on.
fn asked_for(job: &Job, inputs: &[FileRecord]) -> Value {
    let hashes: Vec<&str> = inputs.iter().map(|f| f.sha256.as_str()).collect();
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "version": version, "input": job.input, "fit": job.fit.resolved(), "whole_path": job.whole_path, "seed": job.seed,
        "inputs_sha256": hashes
    })
}

fn solve_or_resume(
    job: &Job,
    problem: &Problem,
    solver: &solve::Settings,
    asked_for: Value,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<(Solution, Trace)> {
    // Within somebody else's process there is no folder that a checkpoint could lie beside.
    let checkpoint = stopper.keeps_checkpoints().then(|| Checkpoint::beside(&job.run.out, asked_for));
    let mut snapshot = None;
    if let Some(checkpoint) = checkpoint {
        snapshot = if job.run.resume { checkpoint.load()? } else { None };
        match &snapshot {
            Some(s) => reporter.say(format!("resuming at sweep {}, rank {}", s.sweeps, s.factors.rank())),
            // A choice or a path that was taken up has said so.
            None if job.run.resume && path_checkpoint::place(&job.run.out).exists() => {}
            None if job.run.resume => reporter.say("there is no checkpoint; starting from the beginning"),
            // Numbers must not mix with those of an older run.
            None => checkpoint.remove(),
        }
        let mut state = stopper.lock();
        state.checkpoint = Some(checkpoint);
        state.resume_command = Some(if job.run.resume { job.command.clone() } else { format!("{} --resume", job.command) });
    }
    reporter.aim(solver.tolerance);
    let now = Instant::now();
    let mut watch = Watch {
        reporter,
        stopper,
        deadline: job.run.time_limit.map(|s| now + Duration::from_secs_f64(s.min(1e9))),
        every: Duration::try_from_secs_f64(job.run.checkpoint_every).unwrap_or(Duration::MAX),
        last: now,
        trace: Trace::begin(),
    };
    let solution = match snapshot {
        Some(snapshot) => solve::resume(problem, solver, snapshot, &mut watch)?,
        None => solve::solve(problem, solver, &mut watch)?,
    };
    Ok((solution, watch.trace))
}

fn hints_about(solution: &Solution, lambda: f64, lambda_max: f64, max_rank: usize) -> Vec<String> {
    let mut hints = Vec::new();
    if lambda >= lambda_max {
        hints.push(format!("lambda is at or above lambda_max ({lambda_max:.3e}): one meta-state is best; a smaller lambda gives more"));
    }
    if solution.status == solve::Status::RankCap {
        hints.push(format!(
            "more than {max_rank} meta-states would lower the objective; a larger lambda asks for fewer, a larger --max-rank allows more"
        ));
    }
    if solution.status != solve::Status::Certified {
        hints.push(match solution.certified_gap() {
            Some(gap) => format!("not proven optimal: the objective is proven to be within {gap:.2e} of the best possible one"),
            None => "nothing was proven of how far the objective is from the best possible one".to_owned(),
        });
    }
    hints
}

fn summarise(job: &Job, chain: &Chain, solution: &Solution) -> Summary {
    Summary {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        status: solution.status.as_str().to_owned(),
        states: chain.states(),
        transitions: chain.transitions(),
        nonzeros: chain.nonzeros(),
        lambda: solution.lambda,
        lambda_max: None,
        rank: solution.rank(),
        objective: solution.objective.value,
        fidelity: solution.objective.fidelity,
        regularizer: solution.objective.regularizer,
        lower_bound: solution.proof.as_ref().map(|p| p.lower_bound()),
        bound_proof: solution.proof.as_ref().map_or("not proven", |p| p.method().as_str()).to_owned(),
        bound_failure_probability: solution.proof.as_ref().and_then(|p| p.method().failure_probability()),
        errors: ErrorMeasures::from(solution),
        seconds: BTreeMap::new(),
        iterations: solution.sweeps,
        rounds: solution.rounds,
        seed: job.seed,
        settings: json!({ "input": job.input, "fit": job.fit.resolved(), "hard_metastates": hard::describe(job.fit.hard()) }),
        command: job.command.clone(),
        directory: std::env::current_dir().map_or_else(|_| String::new(), |d| d.display().to_string()),
        inputs: Vec::new(),
        rows: 0,
        rows_counted: 0,
        ledger: LedgerRecord::list(chain.ledger()),
        hints: Vec::new(),
        choice: None,
        refit: None,
        uncertainty: None,
        files: BTreeMap::new(),
    }
}

/// What a person wants to know, in a few lines.
pub fn describe(s: &Summary, out: &Path) -> String {
    let rank = s.refit.as_ref().and_then(|r| r["rank"].as_u64()).unwrap_or(s.rank as u64);
    let word = if rank == 1 { "meta-state" } else { "meta-states" };
    let of_what = match (&s.refit, rank == s.rank as u64) {
        (None, _) => String::new(),
        (Some(_), true) => " (of the penalised solution)".to_owned(),
        (Some(_), false) => format!(" (of the penalised solution, which has {})", s.rank),
    };
    let gap = s.errors.certified_gap.map_or_else(|| "gap not proven".to_owned(), |gap| format!("certified gap {gap:.2e}"));
    let mut text = format!(
        "{rank} {word} behind {} states ({} transitions, {} pairs)\nstatus {}: objective {:.9e}, {gap}{of_what}\nlambda {:.4e} ({:.3e} of lambda_max), {} sweeps, {:.1} s\n",
        s.states,
        s.transitions,
        s.nonzeros,
        s.status,
        s.objective,
        s.lambda,
        s.lambda / s.lambda_max.unwrap_or(f64::NAN),
        s.iterations,
        s.seconds.get("total").copied().unwrap_or(f64::NAN)
    );
    if let (Some(re), Some(se)) = (s.errors.rel_re, s.errors.rel_se) {
        text += &format!("against the truth: recovery error {re:.3e}, sampling error {se:.3e}\n");
    }
    if let Some(refit) = &s.refit {
        let said = |key: &str| refit[key].as_f64().map_or_else(String::new, |x| format!(", {} {x:.6e}", key.replace('_', " ")));
        let kind = refit["kind"].as_str().unwrap_or_default();
        text += &format!(
            "refit by {kind}{}{}{}{}; tables, page and forecasts show it\n",
            said("fidelity"),
            said("log_likelihood"),
            said("prior"),
            said("rel_re")
        );
    }
    if !s.ledger.is_empty() {
        text += &format!("left out, of {} rows:\n", s.rows);
    }
    for e in &s.ledger {
        text += &format!("  {}: {} {}\n", e.reason, e.count, e.unit);
    }
    s.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
    text + &format!("written to {}", out.display())
}
