//! `metastate fit`: read, solve, write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use metastate::aggregate::Partition;
use metastate::fit::{Refit, Unfinished};
use metastate::{Label, Mat, Model, Operator, fit_from};
use metastate_ingest::Ingested;
use metastate_report::page::{ControlStory, Extras};
use metastate_report::{ChangeRecord, Claim, FileRecord, FitResult, KineticsRecord, SavedKinetics, SlicedV, Summary, folder};
use serde_json::{Value, json};

use crate::args::{FitArgs, Init, InputArgs, ObjectiveKind, Options, RefitKind, RunArgs};
use crate::checkpoint::{self, Checkpoint};
use crate::control;
use crate::data::{self, Dataset};
use crate::error::{CliError, Result};
use crate::memory::{self, Estimate, Work};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::watch::{FitWatch, Places, Trace, WatchReading};
use crate::{path_checkpoint, place, record, report, settings, times, truth};

/// A time limit beyond this is cut to it, so that a clock can hold its end.
const LONGEST_SECONDS: f64 = 1e9;

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
    keep_inputs(out, &job.input, &job.fit)?;
    let _claim = Claim::folder(out, job.run.force)?;
    for place in [&checkpoint::place(out), &path_checkpoint::place(out)] {
        folder::tidy(place);
    }

    memory::check_sizes(&job.input, &job.fit)?;
    stopper.doing(Doing::Reading);
    let loaded = data::load(&job.input, &job.fit, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    let solved = fit_dataset(job, loaded, start, reporter, stopper)?;
    reporter.spin("page");
    let extras = solved.extras()?;
    reporter.spin("writing");
    // Under the lock: a signal now waits until the folder stands.
    let mut state = stopper.lock();
    let summary = solved.write(out, job.run.force, &extras).map_err(|e| with_what_is_kept(e, out))?;
    if let Some(checkpoint) = state.checkpoint.take() {
        checkpoint.remove();
    }
    path_checkpoint::remove(&path_checkpoint::place(out));
    state.doing = Doing::Done;
    reporter.clear();
    Ok(summary)
}

/// A result that could not be written is not the end: what was found on the way stands in the checkpoints.
fn with_what_is_kept(error: CliError, out: &Path) -> CliError {
    match [checkpoint::place(out), path_checkpoint::place(out)].iter().find(|place| place.exists()) {
        Some(kept) => error.and_then_try(&format!("then say the same with --resume: what was found so far is kept in {}", kept.display())),
        None => error,
    }
}

/// What the run would take. Nothing is written; sizes come from headers where these tell them, else from what `ingest` reads.
pub fn estimate(
    job: &Job,
    reporter: &mut Reporter,
    stopper: &Stopper,
    ingest: impl FnOnce(&mut WatchReading) -> Result<Ingested>,
) -> Result<Estimate> {
    check(job)?;
    let work = |states, pairs, counted| Work { whole_path: job.whole_path, ..Work::new(&job.fit, states, pairs, counted) };
    let sized = memory::sizes(&job.input)?;
    if let Some(found) = sized {
        let counted = !found.probabilities;
        return Estimate::new(work(found.states, found.pairs, counted), &job.input, "from the headers".to_owned(), 1.0);
    }
    stopper.doing(Doing::Reading);
    let loaded = data::estimate(ingest(&mut WatchReading { reporter, stopper })?, &job.fit)?;
    stopper.doing(Doing::Working);
    reporter.clear();
    let (chain, counted) = (loaded.chain(), loaded.parts().is_some());
    let rows = loaded.rows;
    let work = Work { from_rows: true, ..work(chain.states().max(chain.p().cols()) as u64, chain.nonzeros() as u64, counted) };
    drop(loaded);
    Estimate::new(work, &job.input, format!("counted in {rows} rows"), 1.0)
}

/// Refuses what can be refused before any data is read.
pub fn check(job: &Job) -> Result<()> {
    job.fit.check()?;
    job.run.check()?;
    if job.whole_path && job.fit.objective == ObjectiveKind::Whitened {
        return Err(CliError::bad(
            "E-CLI-ARGUMENT",
            "a path of lambda is about the paper's objective; the whitened one has the lambda that the noise asks for",
        )
        .remedy("leave out --objective whitened, or take `metastate fit`"));
    }
    if job.whole_path && !job.fit.chooses() {
        return Err(CliError::bad("E-CLI-ARGUMENT", "path solves for many values of lambda; --lambda and --lambda-ratio belong to fit"));
    }
    Ok(())
}

/// A fit in memory, before it becomes a folder.
pub struct FitOutcome {
    /// What will stand in `summary.json`, without the hashes of the files.
    pub summary: Summary,
    /// The data.
    pub loaded: Dataset,
    /// What was found.
    pub model: Model,
    /// `path.csv`, `ranks.csv`, `refit.npz` and the like.
    pub extra: Vec<(&'static str, Vec<u8>)>,
    /// What stands in `kinetics.npz`; none where origins and destinations are different sets.
    pub kinetics: Option<SavedKinetics>,
    labels: Vec<Label>,
    /// What the zones are called.
    zone_names: Vec<String>,
    /// Transitions between the zones, where they were counted.
    trips: Option<Mat>,
    /// The labels of the destinations, where they are another set.
    pub destinations: Option<Vec<Label>>,
    trace: Trace,
}

impl FitOutcome {
    fn result(&self) -> FitResult<'_> {
        FitResult {
            labels: &self.labels,
            destinations: self.destinations.as_deref(),
            xi: self.loaded.chain().xi(),
            coordinates: self.loaded.coordinates.as_deref(),
            names: self.loaded.names.as_deref(),
            ground: self.loaded.ground,
            zone_names: &self.zone_names,
            zones_have_names: self.loaded.zones_have_names(),
            factors: &self.model.solution.factors,
            model: self.model.going_on(),
            partition: &self.model.zones,
            flows: self.model.moves.as_ref().map(|m| &m.flows),
            trips: self.trips.as_ref(),
            refit: self.model.refit.as_ref().map(Refit::factors),
            witness: &self.model.solution.witness,
            slices: self.model.slices.as_ref().map(|s| SlicedV { slices: &s.slices, v: &self.model.factors().v }),
            extra: &self.extra,
        }
    }

    /// What the page shows beyond the tables.
    pub fn extras(&self) -> Result<Extras> {
        let path = self.model.chosen.as_ref().map(record::path_story);
        let ranks = self.model.chosen.as_ref().and_then(|c| record::ranks_story(&c.choice));
        let extras = report::extras(self.loaded.shown_chain(), &self.result(), self.trace.clone(), path, self.summary.seed)?;
        let extras = Extras { ranks, ..extras };
        let lag = self.summary.lag();
        let actions = self.extra.iter().find(|(name, _)| *name == metastate_report::ACTIONS_FILE);
        let control = actions.and_then(|(_, bytes)| ControlStory::of(&String::from_utf8_lossy(bytes), None).ok());
        let extras = Extras { control, ..extras };
        let Some(moves) = &self.model.moves else { return Ok(extras) };
        let timescale_intervals = record::timescales(&moves.kinetics, lag);
        Ok(Extras { timescale_intervals, kinetics: Some(times::story(&moves.kinetics, self.kinetics.as_ref(), lag)), ..extras })
    }

    /// Writes the folder, whole or not at all.
    pub fn write(&self, place: &Path, force: bool, extras: &Extras) -> Result<Summary> {
        Ok(metastate_report::write(place, force, self.summary.clone(), &self.result(), extras)?)
    }
}

/// Everything between the data and the folder. `start` is when the work began.
pub fn fit_dataset(job: &Job, loaded: Dataset, start: Instant, reporter: &mut Reporter, stopper: &Stopper) -> Result<FitOutcome> {
    check_data(job, &loaded)?;
    reporter.say(&loaded.read_as);
    reporter.say(sizes_in_words(&loaded));
    loaded.hints.iter().for_each(|hint| reporter.say(format!("hint: {hint}")));
    let solved = solve(job, &loaded, start, reporter, stopper)?;
    outcome(job, loaded, solved)
}

/// Refuses data that the job cannot be done on.
fn check_data(job: &Job, loaded: &Dataset) -> Result<()> {
    let chain = loaded.chain();
    settings::check_clusters(&job.fit, chain.states())?;
    check_weights(chain)?;
    if loaded.parts().is_some() {
        check_total(&job.fit, chain)?;
    }
    memory::check(&job.input, &job.fit, chain.states().max(chain.p().cols()), chain.nonzeros(), loaded.parts().is_some())
}

/// How much was read.
fn sizes_in_words(loaded: &Dataset) -> String {
    let chain = loaded.chain();
    let states = match (chain.goes_on(), loaded.data.slices(), &loaded.control) {
        (true, ..) => format!("{} states", chain.states()),
        (false, Some(slices), _) => format!("{} states, {} slices", chain.states(), slices.len()),
        (false, None, Some(c)) => format!("{} states, {} actions: {} pairs", c.states.len(), c.actions.len(), c.tried.pairs.len()),
        (false, None, None) => format!("{} origins, {} destinations", chain.states(), chain.p().cols()),
    };
    format!("{states}, {} transitions, {} pairs", chain.transitions(), chain.nonzeros())
}

/// What the fit found, and what goes with it into the folder.
struct FitFound {
    model: Model,
    /// The true chain, where it was given.
    truth: Option<Arc<dyn Operator>>,
    /// All files that the answer depends on.
    inputs: Vec<FileRecord>,
    seconds: BTreeMap<String, f64>,
    trace: Trace,
}

/// Takes up what an interrupted run left, and fits until the time is up or a signal comes.
fn solve(job: &Job, loaded: &Dataset, start: Instant, reporter: &mut Reporter, stopper: &Stopper) -> Result<FitFound> {
    let reading = start.elapsed().as_secs_f64();
    let chain = loaded.chain();
    let (options, start_files) = settings::recipe(&job.fit, job.whole_path, job.seed, chain)?;
    let truth = job.fit.truth.as_deref().map(|text| truth::load(text, chain)).transpose()?;
    let (truth, truth_files) = truth.map_or_else(Default::default, |(p, files)| (Some(p), files));
    let inputs = [loaded.inputs.clone(), start_files, truth_files].concat();
    let unfinished = take_up(job, &asked_for(job, &inputs), reporter, stopper)?;

    let mut watch = FitWatch::new(reporter, stopper);
    watch.deadline = job.run.time_limit.map(|s| start + Duration::from_secs_f64(s.min(LONGEST_SECONDS)));
    watch.every = Duration::try_from_secs_f64(job.run.checkpoint_every).unwrap_or(Duration::MAX);
    watch.tolerance = options.solver_settings().tolerance;
    if stopper.keeps_checkpoints() {
        watch.places = Some(places(job, asked_for(job, &inputs)));
    }
    let model = fit_from(&loaded.data, &options, unfinished, &mut watch);
    let FitWatch { failure, mut seconds, trace, deadline, .. } = watch;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if matches!(model, Err(metastate::Error::Interrupted)) && deadline.is_some_and(|d| Instant::now() >= d) {
        return Err(CliError::failed(
            "E-CLI-TIME-LIMIT",
            "the time was up before there was an answer: lambda_max, the rank or lambda were still being looked for",
        )
        .remedy("give the same command a larger --time-limit and --resume, or leave it less to look for: --rank, --lambda-ratio"));
    }
    let mut model = model?;
    if let Some(p) = &truth {
        let found = model.against(p.as_ref(), &loaded.data);
        (model.solution.errors.rel_re, model.solution.errors.rel_se) = (Some(found.solution), Some(found.sampling));
    }
    seconds.insert("reading".to_owned(), reading);
    seconds.insert("total".to_owned(), start.elapsed().as_secs_f64());
    Ok(FitFound { model, truth, inputs, seconds, trace })
}

/// The contents of the folder: the summary, and the tables that only some fits have.
fn outcome(job: &Job, loaded: Dataset, solved: FitFound) -> Result<FitOutcome> {
    let FitFound { model, truth, inputs, seconds, trace } = solved;
    let unwritten = |e: std::io::Error| CliError::write(&job.run.out, e);
    let labels: Vec<Label> = loaded.chain().index().labels().collect();
    let destinations = loaded.data.going_on().is_none().then(|| loaded.chain().destinations().labels().collect::<Vec<Label>>());
    let uncertain = loaded.data.uncertain(job.fit.bootstrap > 0, job.fit.reversible, job.seed);
    let kinetics = model.moves.as_ref().map(|_| times::file(&loaded.data, &model, uncertain.as_ref())).transpose()?;
    let mut extra = record::files(kinetics.as_ref(), &model, &labels).map_err(unwritten)?;
    if let Some(labels) = &destinations {
        let arrivals = loaded.chain().counts().map(metastate::Csr::column_sums).unwrap_or_default();
        let places = loaded.destination_coordinates.as_deref();
        let table = metastate_report::destinations_csv(labels, &arrivals, model.factors(), loaded.chain().xi(), places);
        extra.push((metastate_report::DESTINATIONS_FILE, table.into_bytes()));
    }
    let mut summary = Summary { inputs, seconds, ..record::summary(job, &loaded, &model, truth.as_deref()) };
    if let Some(control) = &loaded.control {
        let rewards = control.rewards(&model);
        summary.control = Some(control.record(&model, rewards.as_ref()));
        extra.extend(control.files(&model, rewards.as_ref()));
    }
    if let Some(sliced) = &model.slices {
        extra.extend(record::slice_files(sliced, summary.slices.as_ref(), &loaded.data, &model, &labels).map_err(unwritten)?);
    }
    all_numbers(&summary, &extra)?;
    let trips = model.moves.as_ref().and_then(|_| loaded.shown_chain().counts()).map(|counts| between_zones(counts, &model.zones));
    let (given, hints) = loaded.zone_names.as_ref().map(|names| names.of(&model.zones, &texts(&labels))).unwrap_or_default();
    summary.hints.extend(hints);
    let mut outcome = FitOutcome { summary, model, extra, kinetics, labels, zone_names: given, trips, destinations, trace, loaded };
    outcome.zone_names = outcome.result().zone_set().zone_names();
    Ok(outcome)
}

fn texts(labels: &[Label]) -> Vec<String> {
    labels.iter().map(Label::to_string).collect()
}

/// How many transitions lead from zone to zone: whole numbers where they were counted as such.
fn between_zones(counts: &metastate::Csr, zones: &Partition) -> Mat {
    let mut trips = Mat::zeros(zones.clusters(), zones.clusters());
    counts.triplets().for_each(|(i, j, n)| trips[(zones.labels[i as usize] as usize, zones.labels[j as usize] as usize)] += n);
    trips
}

/// No input may lie in the folder that is to be replaced, nor in those of the checkpoints.
fn keep_inputs(out: &Path, input: &InputArgs, fit: &FitArgs) -> Result<()> {
    let mut read = place::inputs(input);
    read.extend(fit.places.iter().chain(&fit.zone_names).cloned());
    read.extend(fit.truth.iter().flat_map(|t| t.split(',')).map(PathBuf::from));
    if let Init::Result(folder) = fit.init() {
        read.push(folder);
    }
    [out.to_owned(), checkpoint::place(out), path_checkpoint::place(out)].iter().try_for_each(|place| place::keep(place, read.clone()))
}

/// Transitions that a likelihood can be computed of: beyond, squares of their shares vanish or overflow.
const TRANSITIONS: std::ops::RangeInclusive<f64> = 1e-150..=1e150;

/// Refuses counts that no likelihood can be computed of. The penalised problem itself knows shares only, and takes any.
fn check_total(fit: &FitArgs, chain: &metastate::Chain) -> Result<()> {
    let likelihood = fit.chooses() || fit.refit_kind() == RefitKind::Likelihood;
    if !likelihood || chain.counts().is_none() || TRANSITIONS.contains(&chain.transitions()) {
        return Ok(());
    }
    Err(CliError::bad(
        "E-DATA-SCALE",
        format!("the counts add up to {:e}, and a likelihood of so many transitions is no number", chain.transitions()),
    )
    .remedy("multiply or divide all counts by one number, so that they add up to something between 1 and 1e15"))
}

/// A state with a share below this counts for nothing beside the others: no number of the answer has a digit left for it.
const SMALLEST_SHARE: f64 = 1e-30;

/// Refuses weights that no number can hold beside each other.
fn check_weights(chain: &metastate::Chain) -> Result<()> {
    let most = chain.xi().iter().copied().fold(0.0, f64::max);
    match chain.xi().iter().position(|x| *x > 0.0 && *x < SMALLEST_SHARE * most) {
        None => Ok(()),
        Some(i) => {
            let label = chain.index().labels().nth(i).map(|l| l.to_string()).unwrap_or_default();
            Err(CliError::bad(
                "E-DATA-SCALE",
                format!(
                    "the state `{}` has a share of {:e} of all, too small to be told from nothing",
                    label.escape_debug(),
                    chain.xi()[i]
                ),
            )
            .remedy("--min-share 1e-12 leaves such states out and says so"))
        }
    }
}

/// Refuses a result in which something that should be a number is none: nobody could read it.
fn all_numbers(summary: &Summary, extra: &[(&'static str, Vec<u8>)]) -> Result<()> {
    let refused = |what: String| {
        CliError::bad("E-DATA-SCALE", format!("a number of the result would be none ({what}): counts or options are at the edge of what numbers can hold"))
            .remedy("scale the counts so that they add up to something between 1 and 1e15, leave out states that hardly occur with --min-share, or give a larger lambda")
    };
    let value = serde_json::to_value(summary).unwrap_or_default();
    serde_json::from_value::<Summary>(value).map_err(|e| refused(format!("summary.json: {e}")))?;
    for (name, bytes) in extra.iter().filter(|(name, _)| name.ends_with(".csv")) {
        let text = String::from_utf8_lossy(bytes);
        let none = text.lines().skip(1).flat_map(|line| line.split(',')).find(|field| matches!(*field, "NaN" | "inf" | "-inf"));
        if let Some(field) = none {
            return Err(refused(format!("{name}: {field}")));
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

/// Where checkpoints of this run go.
fn places(job: &Job, asked_for: Value) -> Places {
    let resume_command = if job.run.resume { job.command.clone() } else { format!("{} --resume", job.command) };
    let solve = Checkpoint::beside(&job.run.out, asked_for.clone());
    Places { path: path_checkpoint::place(&job.run.out), solve, asked_for, resume_command }
}

/// What an interrupted run of the same job left behind, where this one is to go on from it; otherwise nothing, and old checkpoints go, because numbers must not mix
/// with those of an older run.
fn take_up(job: &Job, asked_for: &Value, reporter: &mut Reporter, stopper: &Stopper) -> Result<Unfinished> {
    if !stopper.keeps_checkpoints() {
        return Ok(Unfinished::default());
    }
    let Places { path, solve, resume_command, .. } = places(job, asked_for.clone());
    stopper.lock().path_checkpoint = Some((path.clone(), resume_command));
    if !job.run.resume {
        path_checkpoint::remove(&path);
        solve.remove();
        return Ok(Unfinished::default());
    }
    let unfinished = path_checkpoint::load(&path, asked_for)?.unwrap_or_default();
    let snapshot = solve.load()?;
    match (unfinished.attempts.len(), unfinished.points.len(), &snapshot) {
        (_, _, Some(s)) => reporter.say(format!("resuming at sweep {}, rank {}", s.sweeps, s.factors.rank())),
        (0, 0, None) => reporter.say("there is no checkpoint; starting from the beginning"),
        (attempts, 0, None) => reporter.say(format!("resuming the choice after {attempts} of its fits")),
        (_, points, None) => reporter.say(format!("resuming the path after {points} of its points")),
    }
    Ok(Unfinished { snapshot, ..unfinished })
}

/// The slowest timescales in frames, with the states' own beside them.
fn kinetics_in_words(k: &KineticsRecord) -> String {
    let time = |t: &Option<f64>| t.map_or_else(|| "for ever".to_owned(), |t| format!("{t:.1}"));
    let list = |times: &[Option<f64>]| times.iter().take(3).map(time).collect::<Vec<_>>().join(", ");
    match (k.timescales.is_empty(), k.carries) {
        (true, _) => String::new(),
        (false, true) => format!(
            "slowest timescales, from the data: {} frames (the states' own: {})\n",
            list(&k.timescales),
            list(&k.microstate_timescales)
        ),
        (false, false) => "timescales: this model cannot carry them, see the hints\n".to_owned(),
    }
}

/// Which zones change over the slices, those that change most first.
fn change_in_words(change: &ChangeRecord) -> String {
    let mut order: Vec<usize> = (0..change.zones.len()).collect();
    order.sort_by(|&a, &b| change.zones[b].gain.total_cmp(&change.zones[a].gain));
    let one = |&z: &usize| format!("zone {} by {:.3} nats a transition (p = {:.3})", z + 1, change.zones[z].gain, change.zones[z].p_value);
    let most = order.iter().take(3).map(one).collect::<Vec<_>>().join(", ");
    format!(
        "over the slices, where trips lead changes by {:.3} nats a held-out transition (p = {:.3}, {} deals); most: {most}\n",
        change.whole.gain, change.whole.p_value, change.permutations
    )
}

/// What a person wants to know, in a few lines.
pub fn describe(s: &Summary, out: &Path) -> String {
    let rank = s.refit.as_ref().map_or(s.rank, |r| r.rank());
    let word = if rank == 1 { "meta-state" } else { "meta-states" };
    let gap = s.errors.certified_gap.map_or_else(|| "gap not proven".to_owned(), |gap| format!("certified gap {gap:.2e}"));
    let gap = gap + &s.errors.explained_gap.map_or_else(String::new, |e| format!(" ({e:.2e} of what the meta-states explain)"));
    // What is shown first, then the proof, as what it is.
    let (shown, of_what) = match &s.refit {
        None => (String::new(), String::new()),
        Some(refit) => (
            format!("shown: refit by {refit}; not certified\n"),
            format!("penalised solution beside it: {} {}, ", s.rank, if s.rank == 1 { "meta-state" } else { "meta-states" }),
        ),
    };
    let between = match (s.destinations, &s.slices, &s.control) {
        (Some(_), _, Some(c)) => format!("behind {} states under {} actions", c.states, c.actions),
        (Some(n), _, None) => format!("between {} origins and {n} destinations", s.states),
        (None, Some(slices), _) => format!("behind {} states, the same in all {} slices", s.states, slices.labels.len()),
        (None, None, _) => format!("behind {} states", s.states),
    };
    let mut text = format!(
        "{rank} {word} {between} ({} transitions, {} pairs)\n{shown}{of_what}status {}: objective {:.9e}, {gap}\nlambda {:.4e} ({:.3e} of lambda_max), {} sweeps, {:.1} s\n",
        s.transitions,
        s.nonzeros,
        s.status,
        s.objective,
        s.lambda,
        s.lambda / s.lambda_max.unwrap_or(f64::NAN),
        s.iterations,
        s.seconds.get("total").copied().unwrap_or(f64::NAN)
    );
    if let Some(choice) = s.choice.as_ref().filter(|c| !c.verdict.is_empty()) {
        text += &format!("verdict: {}\n", choice.verdict);
    }
    if let Some(w) = &s.whitened {
        text += &format!(
            "whitened: lambda is {} times the noise; held-out log-likelihood {:.5} ± {:.5} a transition, the likelihood's own {:.5} (behind by {:.5} ± {:.5})\n",
            w.lambda_over_noise, w.held_out, w.held_out_error, w.likelihood, w.behind, w.behind_error
        );
    }
    if let (Some(re), Some(se)) = (s.errors.rel_re, s.errors.rel_se) {
        text += &format!("against the truth: recovery error {re:.3e}, sampling error {se:.3e}\n");
    }
    text += &s.control.as_ref().map_or_else(String::new, control::in_words);
    if let Some(change) = s.slices.as_ref().and_then(|s| s.change.as_ref()) {
        text += &change_in_words(change);
    }
    if let Some(k) = &s.kinetics {
        text += &kinetics_in_words(k);
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
