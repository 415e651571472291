//! `metastate fit`: read, solve, write.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use metastate::aggregate::Partition;
use metastate::fit::Unfinished;
use metastate::linalg::Mat;
use metastate::{Label, Model, fit_from};
use metastate_report::page::Extras;
use metastate_report::{Claim, FileRecord, FitResult, KineticsRecord, SavedKinetics, Summary, folder};
use serde_json::{Value, json};

use crate::args::{FitArgs, Init, InputArgs, ObjectiveKind, Options, RefitKind, RunArgs};
use crate::checkpoint::{self, Checkpoint};
use crate::data::{self, Dataset};
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::watch::{FitWatch, Places, Trace, WatchReading};
use crate::{memory, path_checkpoint, place, record, report, settings, team, truth};

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
    team::check(&job.input, &job.fit, job.whole_path)?;
    let out = &job.run.out;
    keep_inputs(out, &job.input, &job.fit)?;
    let _claim = team::leads().then(|| Claim::folder(out, job.run.force)).transpose()?;
    for place in [&checkpoint::place(out), &path_checkpoint::place(out)].into_iter().filter(|_| team::leads()) {
        folder::tidy(place);
    }

    stopper.doing(Doing::Reading);
    let loaded = data::load(&job.input, &job.fit, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    let solved = fit_dataset(job, loaded, start, reporter, stopper)?;
    reporter.spin("page");
    // All processes look at their rows for it; one of them writes.
    let extras = solved.extras()?;
    if !team::leads() {
        return Ok(solved.summary);
    }
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
            model: self.model.factors(),
            partition: &self.model.zones,
            flows: self.model.moves.as_ref().map(|m| &m.flows),
            trips: self.trips.as_ref(),
            witness: &self.model.solution.witness,
            extra: &self.extra,
        }
    }

    /// What the page shows beyond the tables.
    pub fn extras(&self) -> Result<Extras> {
        let path = self.model.chosen.as_ref().map(record::path_story);
        let extras = report::extras(self.loaded.chain(), &self.result(), self.trace.clone(), path, self.summary.seed)?;
        let lag = self.summary.lag();
        let Some(moves) = &self.model.moves else { return Ok(extras) };
        let timescale_intervals = record::timescales(&moves.kinetics, lag);
        Ok(Extras { timescale_intervals, kinetics: Some(record::kinetics_story(&moves.kinetics, lag)), ..extras })
    }

    /// Writes the folder, whole or not at all.
    pub fn write(&self, place: &Path, force: bool, extras: &Extras) -> Result<Summary> {
        Ok(metastate_report::write(place, force, self.summary.clone(), &self.result(), extras)?)
    }
}

/// Everything between the data and the folder. `start` is when the work began.
pub fn fit_dataset(job: &Job, loaded: Dataset, start: Instant, reporter: &mut Reporter, stopper: &Stopper) -> Result<FitOutcome> {
    let chain = loaded.chain();
    settings::check_clusters(&job.fit, chain.states())?;
    check_weights(chain)?;
    if loaded.parts().is_some() {
        check_total(&job.fit, chain)?;
    }
    let held = chain.nonzeros() / team::here().map_or(1, |team| team.size());
    memory::check(&job.input, &job.fit, chain.states().max(chain.p().cols()), held, loaded.parts().is_some())?;
    reporter.say(&loaded.read_as);
    let states = match chain.goes_on() {
        true => format!("{} states", chain.states()),
        false => format!("{} origins, {} destinations", chain.states(), chain.p().cols()),
    };
    reporter.say(format!("{states}, {} transitions, {} pairs", chain.transitions(), chain.nonzeros()));
    loaded.hints.iter().for_each(|hint| reporter.say(format!("hint: {hint}")));
    let reading = start.elapsed().as_secs_f64();

    let (options, start_files) = settings::recipe(&job.fit, job.whole_path, job.seed, chain)?;
    let truth = job.fit.truth.as_deref().map(|text| truth::load(text, chain)).transpose()?;
    let mut inputs = loaded.inputs.clone();
    inputs.extend(start_files);
    inputs.extend(truth.iter().flat_map(|(_, files)| files.iter().cloned()));
    let unfinished = take_up(job, &asked_for(job, &inputs), reporter, stopper)?;
    // The first checkpoint of this run must not be taken for one of the run before.
    team::wait();

    let mut watch = FitWatch::new(reporter, stopper);
    watch.deadline = job.run.time_limit.map(|s| start + Duration::from_secs_f64(s.min(1e9)));
    watch.every = Duration::try_from_secs_f64(job.run.checkpoint_every).unwrap_or(Duration::MAX);
    watch.tolerance = options.solver_settings().tolerance;
    if stopper.keeps_checkpoints() && team::leads() {
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
    if let Some((p, _)) = &truth {
        let found = model.against(p.as_ref(), &loaded.data);
        (model.solution.errors.rel_re, model.solution.errors.rel_se) = (Some(found.solution), Some(found.sampling));
    }
    seconds.insert("reading".to_owned(), reading);
    seconds.insert("total".into(), start.elapsed().as_secs_f64());

    let labels: Vec<Label> = loaded.chain().index().labels().collect();
    let true_p = truth.as_ref().map(|(p, _)| p.as_ref());
    let destinations = (!loaded.chain().goes_on()).then(|| loaded.chain().destinations().labels().collect::<Vec<Label>>());
    let kinetics = model.moves.as_ref().map(|_| record::kinetics_file(&loaded.data, &model)).transpose()?;
    let mut extra = record::files(kinetics.as_ref(), &model, &labels).map_err(|e| CliError::write(&job.run.out, e))?;
    if let Some(labels) = &destinations {
        let arrivals = loaded.chain().counts().map(metastate::Csr::column_sums).unwrap_or_default();
        let places = loaded.destination_coordinates.as_deref();
        let table = metastate_report::destinations_csv(labels, &arrivals, model.factors(), loaded.chain().xi(), places);
        extra.push((metastate_report::DESTINATIONS_FILE, table.into_bytes()));
    }
    let mut summary = Summary { inputs, seconds, ..record::summary(job, &loaded, &model, true_p) };
    all_numbers(&summary, &extra)?;
    let trips = model.moves.as_ref().and_then(|_| loaded.chain().counts()).map(|counts| between_zones(counts, &model.zones));
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
        if !team::leads() {
            return Ok(Unfinished::default());
        }
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
    let between = match s.destinations {
        None => format!("behind {} states", s.states),
        Some(n) => format!("between {} origins and {n} destinations", s.states),
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
