//! lambda and rank from the data: the rank by held-out likelihood, then the path down to the first lambda that reaches it.

use metastate::Folds;
use metastate::solve::path::{FoldPaths, first_with_rank, lambda_grid, solve_point};
use metastate::solve::score::Smoothing;
use metastate::solve::select::{Choice, HeldOut, SelectSettings, select_watched};
use metastate::solve::{Effort, Factors, Problem, Settings, Solution, Start, StopRule};
use metastate_report::number;
use metastate_report::page::{PathPoint, PathStory};
use serde_json::{Value, json};

use crate::data::Loaded;
use crate::error::{CliError, Result};
use crate::fit::Job;
use crate::parts::Parts;
use crate::path_checkpoint::{self, Point, Progress};
use crate::progress::Reporter;
use crate::stop::Stopper;
use crate::watch::PathWatch;

/// The path is solved to this gap (or to the one asked for, down to 1e-3) and this KKT residual; the chosen point in full afterwards.
const PATH_PRECISION: (f64, f64) = (1e-2, 1e-4);

/// Up to this number of states the page keeps the zones of every point.
const MOST_STATES_ON_PAGE: usize = 20_000;

/// What was chosen.
pub struct Chosen {
    /// lambda.
    pub lambda: f64,
    /// The rank; the solution at lambda may have fewer, where no lambda of the path gives it.
    pub rank: usize,
    /// The strength of the prior for the likelihood refit.
    pub prior: f64,
    /// The solver's settings for the final solve.
    pub settings: Settings,
    /// For `summary.json`.
    pub record: Value,
    /// `path.csv` and `ranks.csv`.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// What was chosen and why.
    pub sentence: String,
    /// The same for the page.
    pub story: PathStory,
}

/// The counts in parts, or why there are none.
pub fn parts_of(loaded: &Loaded, lambda_max: f64) -> Result<&Parts> {
    loaded.parts.as_ref().ok_or_else(|| {
        CliError::bad("E-CLI-LAMBDA", format!("a transition matrix has no transitions to hold out, so nothing can be chosen on them; lambda_max of this matrix is {lambda_max:.6e}"))
            .remedy(format!("give --lambda-ratio, such as 0.5 (the same as --lambda {:.3e}), and --prior for a likelihood refit; or give counts", 0.5 * lambda_max))
    })
}

/// The settings of the selection that go with these options.
pub fn select_settings(job: &Job) -> SelectSettings {
    let settings = SelectSettings { max_rank: job.fit.max_rank(), seed: job.seed, ..SelectSettings::default() };
    // A prior that is given is the one that all ranks are judged with: the score reported is that of the model returned.
    match job.fit.prior {
        Some(given) => SelectSettings { first_prior: given, priors: vec![given], ..settings },
        None => settings,
    }
}

/// Chooses. With the whole path asked for, all its points are solved, on the folds too; otherwise only down to the chosen rank.
pub fn choose(
    job: &Job,
    loaded: &Loaded,
    lambda_max: f64,
    solver: &Settings,
    asked_for: &Value,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<Chosen> {
    let parts = parts_of(loaded, lambda_max)?;
    let folds = parts.folds(job.fit.folds, job.seed)?;
    let mut kept = Kept::take_up(job, asked_for, reporter, stopper)?;
    let choice = choose_rank(&folds, job, &mut kept, reporter, stopper)?;
    let sentence = choice.sentence();
    reporter.say(&sentence);

    let settings = Settings {
        stop: if job.fit.as_in_paper { solver.stop } else { StopRule::Certificate { gap: job.fit.gap.clamp(1e-3, PATH_PRECISION.0) } },
        tolerance: PATH_PRECISION.1.max(job.fit.tolerance),
        max_rank: if job.whole_path { solver.max_rank } else { choice.rank },
        // Where the path only leads to the chosen rank, its points are not worth a proof each; the answer is.
        certificate: if job.whole_path { solver.certificate } else { Effort { prove: false, ..solver.certificate } },
        ..solver.clone()
    };
    let mut fold_paths = if job.whole_path { Some(FoldPaths::new(&folds, loaded.chain.weights())?) } else { None };
    let mut path = PathRun { job, loaded, lambda_max, settings: &settings, reporter, stopper };
    let (points, start) = path.run(&choice, kept, fold_paths.as_mut())?;

    let ranks: Vec<usize> = points.iter().map(|p| p.rank).collect();
    let at = first_with_rank(&ranks, choice.rank).ok_or_else(|| CliError::failed("E-CLI-LAMBDA", "the path has no points"))?;
    let lambda = points[at].lambda;
    let reached = points[at].rank >= choice.rank;
    let how = if reached {
        format!("lambda {lambda:.4e} is the largest of the path that gives it")
    } else {
        format!("no lambda of the path gives it; {lambda:.4e}, the smallest, gives {}, so only a refit has that many", points[at].rank)
    };
    let sentence = format!("{} {how}.", sentence.trim_end_matches('.').to_owned() + ":");
    // The rank that the data supports, no more: the certified gap says what that costs.
    let rank_limit = choice.rank.min(solver.max_rank);
    let start = start.filter(|x| x.rank() <= rank_limit).map_or(solver.start.clone(), |x| Start::Given(Box::new(x)));
    let final_settings = Settings { max_rank: rank_limit, start_rank: None, start, ..solver.clone() };
    let record = json!({
        "sentence": sentence,
        "rank": choice.rank,
        "best_rank": choice.best_rank,
        "lambda": lambda,
        "prior": choice.prior,
        "clearness_standard_errors": if choice.clearness().is_finite() { json!(choice.clearness()) } else { Value::Null },
        "at_the_limit": choice.at_the_limit,
        "folds": job.fit.folds,
        "folds_are": parts.how(),
        "smoothing": Smoothing::default().share,
        "held_out": reported(&choice),
        "empirical": { "pseudo_counts": choice.empirical.0, "held_out": scores(&choice.empirical.1) },
        "independent": scores(&choice.independent),
        "priors": choice.priors.iter().map(|p| json!({ "prior": p.prior, "held_out": scores(&p.held_out) })).collect::<Vec<_>>(),
    });
    let files = vec![("path.csv", path_csv(&points, &choice, at).into_bytes()), ("ranks.csv", ranks_csv(&choice).into_bytes())];
    let story = PathStory { sentence: sentence.clone(), chosen: at, points: points.iter().map(|p| on_page(p, &choice)).collect() };
    Ok(Chosen { lambda, rank: choice.rank, prior: choice.prior, settings: final_settings, record, files, sentence, story })
}

/// The page shows the score of the penalised solution, and where the path was not held out, that of the refit at its rank.
fn on_page(p: &Point, choice: &Choice) -> PathPoint {
    let score = p.held_out.map(|(value, error, _)| (value, Some(error))).or(choice.mean_score(p.rank));
    PathPoint {
        lambda: p.lambda,
        rank: p.rank,
        objective: p.objective,
        gap: p.certified_gap,
        score: score.map(|s| s.0),
        se: score.and_then(|s| s.1),
        zones: (!p.zones.is_empty()).then(|| p.zones.clone()),
    }
}

/// The scores of the rank and prior that were chosen; the log-likelihood less what choosing on the same folds flatters it by.
fn reported(choice: &Choice) -> Value {
    let h = &choice.chosen.held_out;
    json!({
        "log_likelihood": choice.log_likelihood(), "uncorrected": h.log_likelihood(), "selection_bias": choice.selection_bias(),
        "standard_error": h.standard_error(), "squared_error": h.squared_error(), "prior": choice.chosen.prior,
    })
}

fn scores(h: &HeldOut) -> Value {
    json!({ "log_likelihood": h.log_likelihood(), "standard_error": h.standard_error(), "squared_error": h.squared_error() })
}

/// What was tried and solved so far, and where it is kept on disk.
struct Kept<'a> {
    progress: Progress,
    place: std::path::PathBuf,
    asked_for: &'a Value,
    on_disk: bool,
}

impl<'a> Kept<'a> {
    /// From the checkpoint when the run is resumed; otherwise from nothing, and an old checkpoint goes.
    fn take_up(job: &Job, asked_for: &'a Value, reporter: &mut Reporter, stopper: &Stopper) -> Result<Self> {
        let place = path_checkpoint::place(&job.run.out);
        let on_disk = stopper.keeps_checkpoints();
        let progress = if job.run.resume { path_checkpoint::load(&place, asked_for)?.unwrap_or_default() } else { Progress::default() };
        if on_disk && !job.run.resume {
            path_checkpoint::remove(&place);
        }
        match (progress.attempts.len(), progress.points.len()) {
            (0, 0) => {}
            (attempts, 0) => reporter.say(format!("resuming the choice after {attempts} of its fits")),
            (_, points) => reporter.say(format!("resuming the path after {points} of its points")),
        }
        let command = if job.run.resume { job.command.clone() } else { format!("{} --resume", job.command) };
        if on_disk {
            stopper.lock().path_checkpoint = Some((place.clone(), command));
        }
        Ok(Kept { progress, place, asked_for, on_disk })
    }

    fn write(&self) -> Result<()> {
        if self.on_disk { path_checkpoint::write(&self.place, self.asked_for, &self.progress) } else { Ok(()) }
    }
}

/// Rank and prior on the folds; every attempt is kept.
fn choose_rank(folds: &Folds, job: &Job, kept: &mut Kept, reporter: &mut Reporter, stopper: &Stopper) -> Result<Choice> {
    reporter.spin("choosing");
    let mut written = Ok(());
    let tried = kept.progress.attempts.clone();
    let choice = select_watched(folds, &select_settings(job), tried, &mut |attempts| {
        attempts.last().into_iter().for_each(|a| reporter.choosing(a.rank, a.held_out.log_likelihood()));
        kept.progress.attempts = attempts.to_vec();
        written = kept.write();
        written.is_ok() && !stopper.must_end()
    })?;
    written?;
    stopper.go_on()?;
    choice.ok_or_else(|| CliError::interrupted("interrupted; nothing was written"))
}

struct PathRun<'a> {
    job: &'a Job,
    loaded: &'a Loaded,
    lambda_max: f64,
    settings: &'a Settings,
    reporter: &'a mut Reporter,
    stopper: &'a Stopper,
}

impl PathRun<'_> {
    /// The points, and the solution at the first that reaches the chosen rank.
    fn run(&mut self, choice: &Choice, mut kept: Kept, mut folds: Option<&mut FoldPaths>) -> Result<(Vec<Point>, Option<Factors>)> {
        let lambdas = lambda_grid(self.lambda_max, self.job.fit.floor, self.job.fit.points)?;
        let progress = &kept.progress;
        if let Some(folds) = folds.as_deref_mut().filter(|_| !progress.folds.is_empty()) {
            folds.set_factors(progress.folds.clone());
        }
        let mut found = None;
        self.reporter.spin("path");
        for (k, &lambda) in lambdas.iter().enumerate() {
            let progress = &mut kept.progress;
            if let Some(point) = progress.points.get(k) {
                if point.rank >= choice.rank && found.is_none() && k + 1 == progress.points.len() {
                    found = progress.factors.clone();
                }
                if self.ends(point, choice) {
                    break;
                }
                continue;
            }
            let problem = Problem::new(self.loaded.chain.p(), self.loaded.chain.weights(), lambda)?;
            let mut watch = PathWatch { reporter: self.reporter, stopper: self.stopper };
            let solution = solve_point(&problem, self.settings, progress.factors.as_ref(), &mut watch)?;
            self.stopper.go_on()?;
            let held_out = match folds.as_deref_mut() {
                Some(folds) => Some(folds.point(lambda, self.settings, Smoothing::default())?),
                None => None,
            };
            let point = point(&solution, self.lambda_max, held_out.as_ref());
            self.reporter.say(format!(
                "lambda {:.3e} ({:.4} of lambda_max): rank {}, objective {:.6e}, {}",
                lambda,
                point.lambda_ratio,
                point.rank,
                point.objective,
                point.certified_gap.map_or_else(|| "gap not proven".to_owned(), |gap| format!("certified gap {gap:.1e}"))
            ));
            if point.rank >= choice.rank && found.is_none() {
                found = Some(solution.factors.clone());
            }
            let last = self.ends(&point, choice);
            progress.points.push(point);
            progress.factors = Some(solution.factors);
            progress.folds = folds.as_deref().map_or_else(Vec::new, |f| f.factors().to_vec());
            kept.write()?;
            if last {
                break;
            }
        }
        Ok((kept.progress.points, found))
    }

    /// The path ends at the rank limit; without the whole path asked for, where the chosen rank is reached.
    fn ends(&self, point: &Point, choice: &Choice) -> bool {
        let limit = if self.job.whole_path { self.settings.max_rank } else { choice.rank };
        point.rank >= limit
    }
}

fn point(s: &Solution, lambda_max: f64, held_out: Option<&HeldOut>) -> Point {
    Point {
        lambda: s.lambda,
        lambda_ratio: s.lambda / lambda_max,
        rank: s.rank(),
        objective: s.objective.value,
        fidelity: s.objective.fidelity,
        regularizer: s.objective.regularizer,
        certified_gap: s.certified_gap(),
        rel_le1: s.errors.rel_le1,
        rel_le2: s.errors.rel_le2,
        ge: s.errors.ge,
        rel_dg: s.errors.rel_dg,
        status: s.status.as_str().to_owned(),
        sweeps: s.sweeps,
        held_out: held_out.map(|h| (h.log_likelihood(), h.standard_error(), h.squared_error())),
        zones: if s.factors.u.rows() <= MOST_STATES_ON_PAGE { hard_zones(s) } else { Vec::new() },
    }
}

/// The largest membership decides.
fn hard_zones(s: &Solution) -> Vec<u16> {
    let u = &s.factors.u;
    let largest = |row: &[f64]| (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best });
    (0..u.rows()).map(|i| largest(u.row(i)) as u16).collect()
}

/// One line a point. The scores of the penalised solution are there for the whole path only; those of the refit belong to the rank.
fn path_csv(points: &[Point], choice: &Choice, chosen: usize) -> String {
    let mut out = String::from(
        "lambda,lambda_ratio,rank,objective,fidelity,regularizer,certified_gap,rel_le1,rel_le2,ge,rel_dg,status,sweeps,held_out,standard_error,squared_error,refit_held_out,refit_standard_error,chosen\n",
    );
    for (k, p) in points.iter().enumerate() {
        let numbers = [p.lambda, p.lambda_ratio];
        let mut fields: Vec<String> = numbers.iter().map(|x| number(*x)).collect();
        fields.push(p.rank.to_string());
        fields.extend([p.objective, p.fidelity, p.regularizer].map(number));
        fields.push(p.certified_gap.map_or_else(String::new, number));
        fields.extend([p.rel_le1, p.rel_le2, p.ge, p.rel_dg].map(number));
        fields.extend([p.status.clone(), p.sweeps.to_string()]);
        match p.held_out {
            Some((a, b, c)) => fields.extend([a, b, c].map(number)),
            None => fields.extend([String::new(), String::new(), String::new()]),
        }
        let refit = choice.mean_score(p.rank);
        fields.extend([refit.map(|s| s.0), refit.and_then(|s| s.1)].map(|x| x.map_or_else(String::new, number)));
        fields.push(if k == chosen { "yes".into() } else { String::new() });
        out += &(fields.join(",") + "\n");
    }
    out
}

/// One line a rank, and the two baselines. A first look saw some folds only: its mean is made comparable, and it has no error of its own.
fn ranks_csv(choice: &Choice) -> String {
    let mut out = String::from("model,held_out,standard_error,squared_error,behind_best,behind_standard_error,chosen,first_look\n");
    let Some(best) = choice.at(choice.best_rank) else { return out };
    let yes = |it_is: bool| if it_is { "yes" } else { "" };
    let mut line = |name: &str, score: (f64, Option<f64>), h: &HeldOut, chosen: bool, first_look: bool| {
        let (behind, error) = h.behind(&best.held_out);
        let squared_error = (!first_look).then(|| h.squared_error());
        let fields =
            [Some(score.0), score.1, squared_error, Some(behind), Some(error)].map(|x| x.map_or_else(String::new, number)).join(",");
        out += &format!("{name},{fields},{},{}\n", yes(chosen), yes(first_look));
    };
    for r in &choice.ranks {
        let score = choice.mean_score(r.rank).unwrap_or((f64::NAN, None));
        line(&r.rank.to_string(), score, &r.held_out, r.rank == choice.rank, r.first_look);
    }
    for (name, h) in [("empirical", &choice.empirical.1), ("independent", &choice.independent)] {
        line(name, (h.log_likelihood(), Some(h.standard_error())), h, false, false);
    }
    out
}
