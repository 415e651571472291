//! `--refit` and `--bootstrap`: what is done after the solve.

use metastate::aggregate::latent::timescale_intervals;
use metastate::solve::bootstrap::{BootstrapSettings, Uncertainty, bootstrap};
use metastate::solve::refit::{LikelihoodSettings, Observed, RefitStart, SpectralFits, least_squares, likelihood_best_start};
use metastate::solve::select::select_prior;
use metastate::solve::{Factors, Problem, Solution, errors};
use metastate::{Label, Operator};
use metastate_report::npz::{Array, npz_bytes};
use metastate_report::{csv_field, number};
use serde_json::{Value, json};

use crate::args::RefitKind;
use crate::choose::{Chosen, parts_of, select_settings};
use crate::data::Loaded;
use crate::error::{CliError, Result};
use crate::fit::Job;
use crate::progress::Reporter;
use crate::stop::Stopper;

/// Sweeps and relative decrease at which the least-squares refit ends.
const LEAST_SQUARES: (f64, usize) = (1e-8, 2000);
/// How often an interval holds what it speaks of.
const CONFIDENCE: f64 = 0.9;

/// What the intervals speak of, and what they do not; `docs/statistics.md` has the measured coverage.
const INTERVALS: &str = "of the memberships in the meta-states as they are here: so wide that, in draws where the truth is known, the stated share of them holds what endlessly many \
    transitions out of the state would give; whether the same transitions could be explained by other meta-states is not in them (metastate forecast says how far these are determined)";

/// What the refit adds to a result.
#[derive(Default)]
pub struct Refitted {
    /// For `summary.json`.
    pub refit: Option<Value>,
    /// The same for the bootstrap.
    pub uncertainty: Option<Value>,
    /// U and V of it.
    pub factors: Option<Factors>,
    /// The intervals of the timescales, in steps; none is infinite.
    pub timescale_intervals: Vec<(Option<f64>, Option<f64>)>,
    /// `refit.npz` and the tables of the bootstrap.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

/// Refits as asked for, from the solution.
#[allow(clippy::too_many_arguments)] // one step of the recipe in `fit`, with all that it left on the table
pub fn run(
    job: &Job,
    loaded: &Loaded,
    solution: &Solution,
    chosen: Option<&Chosen>,
    lambda_max: f64,
    truth: Option<&dyn Operator>,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<Refitted> {
    let chain = &loaded.chain;
    let mut out = Refitted::default();
    let recovery = |x: &Factors| truth.map(|p| errors::relative_recovery_error(chain.weights(), x, p));
    // The rank that was chosen, or else that lambda found.
    let rank = chosen.map_or(solution.rank(), |c| c.rank);
    match job.fit.refit_kind() {
        RefitKind::None => {}
        RefitKind::LeastSquares => {
            reporter.spin("refit");
            let problem = Problem::new(chain.p(), chain.weights(), solution.lambda)?;
            let start = match rank == solution.rank() {
                true => solution.factors.clone(),
                false => SpectralFits::new(parts_of(loaded, lambda_max)?.counts.clone(), rank, job.seed)?.start(rank)?,
            };
            let fit = least_squares(&problem, &start, LEAST_SQUARES.0, LEAST_SQUARES.1);
            out.refit = Some(json!({
                "kind": "least-squares", "rank": fit.factors.rank(), "fidelity": fit.fidelity, "sweeps": fit.sweeps,
                "converged": fit.converged, "rel_re": recovery(&fit.factors),
            }));
            out.files.push(("refit.npz", arrays(job, &fit.factors)?));
            out.factors = Some(fit.factors);
        }
        RefitKind::Likelihood => {
            reporter.spin("refit");
            let prior = match (job.fit.prior, chosen) {
                (Some(given), _) => given,
                (None, Some(chosen)) => chosen.prior,
                (None, None) => {
                    select_prior(&parts_of(loaded, lambda_max)?.folds(job.fit.folds, job.seed)?, rank, &select_settings(job))?.0
                }
            };
            let (transitions, unit) = loaded.transitions()?;
            let observed = Observed::new(transitions)?;
            let settings = LikelihoodSettings { prior: prior * unit, ..LikelihoodSettings::default() };
            let best = likelihood_best_start(&observed, &solution.factors, rank, &settings, job.seed, |passes, value| {
                reporter.refitting(passes, value);
                !stopper.must_end()
            })?;
            stopper.go_on()?;
            let tried: Vec<Value> = best
                .tried
                .iter()
                .map(|t| json!({ "start": name(t.start), "log_likelihood": t.log_likelihood, "comparable": t.comparable }))
                .collect();
            let (start, fit) = (name(best.start), best.fit);
            out.refit = Some(json!({
                "kind": "likelihood", "rank": fit.factors.rank(), "prior": prior, "start": start, "tried": tried, "log_likelihood": fit.log_likelihood, "penalised": fit.penalised,
                "passes": fit.passes, "converged": fit.converged, "rel_re": recovery(&fit.factors),
            }));
            out.files.push(("refit.npz", arrays(job, &fit.factors)?));
            if job.fit.bootstrap > 0 {
                let parts = parts_of(loaded, lambda_max)?;
                reporter.spin("bootstrap");
                let settings = BootstrapSettings {
                    replicates: job.fit.bootstrap,
                    confidence: CONFIDENCE,
                    refit: LikelihoodSettings { max_passes: 60, tolerance: 1e-7, ..settings },
                    seed: job.seed,
                };
                let found = bootstrap(parts.resample(), &fit.factors, &settings, || {})?;
                let labels: Vec<Label> = chain.index().labels().collect();
                out.files.push(("uncertainty.csv", table(&found, &fit.factors, &labels).into_bytes()));
                let finite = |t: f64| t.is_finite().then_some(t);
                out.timescale_intervals =
                    timescale_intervals(&found.latent, CONFIDENCE).into_iter().map(|(low, high)| (finite(low), finite(high))).collect();
                out.uncertainty = Some(json!({
                    "draws": found.replicates, "confidence": CONFIDENCE, "draws_are": parts.drawn(), "intervals_are": INTERVALS, "stability": found.stability,
                    "timescale_intervals": out.timescale_intervals, "undecided_states": found.undecided.iter().filter(|u| **u).count(),
                }));
            }
            out.factors = Some(fit.factors);
        }
    }
    Ok(out)
}

/// The start as the user knows it.
fn name(start: RefitStart) -> &'static str {
    match start {
        RefitStart::Given => "penalised solution",
        RefitStart::Spectral => "spectral",
    }
}

fn arrays(job: &Job, x: &Factors) -> Result<Vec<u8>> {
    npz_bytes(&[Array::matrix("U", &x.u), Array::matrix("V", &x.v)]).map_err(|e| CliError::write(&job.run.out, e))
}

/// One line a state: where it is, how many draws agree, and for each meta-state the membership with its interval, which always holds it.
fn table(found: &Uncertainty, x: &Factors, labels: &[Label]) -> String {
    let s = x.rank();
    let mut out = String::from("label,metastate,agreement,undecided");
    (1..=s).for_each(|k| out += &format!(",membership_{k},lower_{k},upper_{k}"));
    out.push('\n');
    for (i, label) in labels.iter().enumerate() {
        let row = x.u.row(i);
        let home = metastate::linalg::largest_entry(row);
        let undecided = if found.undecided[i] { "yes" } else { "no" };
        out += &format!("{},{},{},{undecided}", csv_field(&label.to_string()), home + 1, number(found.agreement[i]));
        (0..s).for_each(|k| out += &format!(",{},{},{}", number(row[k]), number(found.lower[(i, k)]), number(found.upper[(i, k)])));
        out.push('\n');
    }
    out
}
