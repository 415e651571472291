//! `metastate verify`: every number of a result, computed anew from its files and its inputs.

use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use metastate::Mat;
use metastate::solve::Factors;
use metastate::verify::{Reported, compare, recompute};
use metastate::{Chain, Operator};
use metastate_report::{LedgerRecord, Loaded, Summary, Zones, hash, number};
use serde::Serialize;

use crate::args::{Clusters, FitArgs, InputArgs, MEMORY};
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::watch::WatchReading;
use crate::{data, settings, truth};

/// A table of K or of masses is computed by other sums in another order; it may differ by rounding.
const ROUNDING: f64 = 1e-12;

/// A stationary law may miss being one by the rounding of U's row sums.
const STATIONARY: f64 = 1e-10;

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Line {
    name: String,
    reported: String,
    recomputed: String,
    agrees: bool,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    result: String,
    /// Whether every claim stands.
    pub agrees: bool,
    checks: Vec<Line>,
}

impl Outcome {
    /// For people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(NOTHING).set_header(["", "reported", "recomputed", "agrees"]);
        for line in &self.checks {
            table.add_row([line.name.as_str(), &line.reported, &line.recomputed, if line.agrees { "yes" } else { "NO" }]);
        }
        let failed = self.checks.iter().filter(|c| !c.agrees).count();
        let verdict = match failed {
            0 => format!("all {} checks of {} agree", self.checks.len(), self.result),
            n => format!("{n} of {} checks of {} DO NOT agree", self.checks.len(), self.result),
        };
        format!("{table}\n{verdict}")
    }
}

#[derive(Default)]
struct Checks(Vec<Line>);

impl Checks {
    fn add(&mut self, name: &str, reported: impl ToString, recomputed: impl ToString, agrees: bool) {
        self.0.push(Line { name: name.to_owned(), reported: reported.to_string(), recomputed: recomputed.to_string(), agrees });
    }

    fn same<T: PartialEq + ToString>(&mut self, name: &str, reported: T, recomputed: T) {
        let agrees = reported == recomputed;
        self.add(name, reported, recomputed, agrees);
    }

    /// For tables: told by the first place that differs.
    fn table(&mut self, name: &str, difference: Option<String>) {
        let found = difference.clone().unwrap_or_else(|| "the same".to_owned());
        self.add(name, "as in the file", found, difference.is_none());
    }
}

/// Rereads, recounts, recomputes.
pub fn run(folder: &Path, reporter: &mut Reporter, stopper: &Stopper) -> Result<Outcome> {
    let (result, input, fit) = open(folder)?;
    if input.inputs == [MEMORY] {
        return Err(CliError::failed("E-CLI-INPUTS-GONE", "this result rests on data in the memory of a Python program")
            .at(folder.display().to_string())
            .remedy("recheck it there: metastate.verify(folder, data)"));
    }
    find_inputs(&result.summary, "objective, errors, gap and tables could not be rechecked")?;
    stopper.doing(Doing::Reading);
    let data = data::load(&input, &fit, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    recheck(folder, &result, &fit, &data, reporter)
}

/// The result in a folder, with the options that it was made with.
pub fn open(folder: &Path) -> Result<(Loaded, InputArgs, FitArgs)> {
    let result = metastate_report::load(folder)?;
    let summary = &result.summary;
    let unreadable = |e: serde_json::Error| {
        CliError::failed("E-CLI-RESULT", format!("the settings in summary.json cannot be read ({e})")).at(folder.display().to_string())
    };
    let input: InputArgs = serde_json::from_value(summary.settings["input"].clone()).map_err(unreadable)?;
    let fit: FitArgs = serde_json::from_value(summary.settings["fit"].clone()).map_err(unreadable)?;
    Ok((result, input, fit))
}

/// Recomputes everything in a folder from its data.
pub fn recheck(folder: &Path, result: &Loaded, fit: &FitArgs, data: &data::Loaded, reporter: &mut Reporter) -> Result<Outcome> {
    let summary = &result.summary;
    let mut checks = Checks::default();
    checks.table("files", result.changed.first().map(|name| format!("{name} was changed")));
    let chain = &data.chain;
    let recorded: Vec<_> = summary.inputs.iter().filter(|f| f.role == "data").collect();
    checks.table("inputs", (!data.inputs.iter().eq(recorded)).then(|| "other files were read".to_owned()));
    checks.same("states", summary.states, chain.states());
    checks.same("transitions", summary.transitions, chain.transitions());
    checks.same("nonzeros", summary.nonzeros, chain.nonzeros());
    checks.same("rows", summary.rows, data.rows);
    checks.same("rows_counted", summary.rows_counted, data.rows_counted);
    checks.table("ledger", (summary.ledger != LedgerRecord::list(chain.ledger())).then(|| "other entries".to_owned()));
    checks.table("xi", (result.xi != chain.xi()).then(|| "other weights".to_owned()));
    let labels: Vec<String> = chain.index().labels().map(|l| l.to_string()).collect();
    checks.table("states.csv", states_table(result, &labels, data.coordinates.as_deref(), fit.hard()));
    checks.table("latent.csv", latent_table(result));
    checks.table("metastates.csv", metastates_table(result));

    reporter.spin("verifying");
    let (lambda, lambda_max) = settings::lambda(fit, chain, summary.seed)?;
    // A lambda that was chosen is as it was chosen: the choice itself is not made again.
    let lambda = lambda.or(summary.choice.as_ref().and_then(|c| c["lambda"].as_f64())).unwrap_or(f64::NAN);
    checks.same("lambda", summary.lambda, lambda);
    checks.same("lambda_max", summary.lambda_max.unwrap_or(f64::NAN), lambda_max);
    let truth = fit.truth.as_deref().map(|text| truth::load(text, chain)).transpose()?;
    let found = recompute(
        chain.p(),
        chain.weights(),
        summary.lambda,
        &result.factors.u,
        &result.factors.v,
        Some(result.witness.for_checking()),
        truth.as_ref().map(|(p, _)| p.as_ref()),
        summary.seed,
    )
    .map_err(|e| {
        CliError::failed("E-CLI-RESULT", format!("the factors cannot be those of these data: {e}")).at(folder.display().to_string())
    })?;
    for c in compare(&reported(summary), &found) {
        checks.add(c.name, number(c.reported), number(c.recomputed), c.agrees);
    }
    if let Some(told) = &summary.refit {
        match &result.refit {
            Some(refit) => refit_checks(&mut checks, told, refit, chain, truth.as_ref().map(|(p, _)| p.as_ref())),
            None => checks.table("refit.npz", Some("no such file".to_owned())),
        }
    }
    // Only a gap that was reached may be called certified.
    let allowed = summary.status != "certified" || found.certified_gap <= fit.gap + slack(found.bound_norm);
    checks.add("status", &summary.status, if allowed { "allowed" } else { "the gap was not reached" }, allowed);
    reporter.clear();
    let agrees = checks.0.iter().all(|c| c.agrees);
    Ok(Outcome { result: folder.display().to_string(), agrees, checks: checks.0 })
}

/// The refit: its factors are stochastic, and its likelihood or fidelity is what plain loops over the data give.
fn refit_checks(checks: &mut Checks, told: &serde_json::Value, refit: &Factors, chain: &Chain, truth: Option<&dyn Operator>) {
    let Factors { u, v } = refit;
    let d = chain.states();
    if (u.rows(), v.rows(), u.cols()) != (d, d, v.cols()) {
        return checks.table("refit.npz", Some("factors of another size".to_owned()));
    }
    let rows = (0..d).map(|i| (u.row(i).iter().sum::<f64>() - 1.0).abs());
    let columns = (0..v.cols()).map(|k| ((0..d).map(|j| v[(j, k)]).sum::<f64>() - 1.0).abs());
    let negative = u.as_slice().iter().chain(v.as_slice()).any(|x| !(*x >= 0.0 && x.is_finite()));
    let worst = rows.chain(columns).fold(0.0, f64::max);
    checks.table("refit.npz", (negative || worst > 1e-9).then(|| "factors that are not stochastic".to_owned()));
    let p = |i: usize, j: usize| (0..u.cols()).map(|k| u[(i, k)] * v[(j, k)]).sum::<f64>();
    if let Some(reported) = told["log_likelihood"].as_f64() {
        let (mut sum, mut total) = (0.0, 0.0);
        for i in 0..d {
            let n = chain.departures()[i];
            total += n;
            if n > 0.0 {
                chain.p().row(i).for_each(d, |j, share| sum += if share > 0.0 { n * share * p(i, j).ln() } else { 0.0 });
            }
        }
        let found = sum / total;
        checks.add("refit log_likelihood", number(reported), number(found), (reported - found).abs() <= 1e-9 * found.abs());
    }
    if let (Some(reported), Some(truth)) = (told["rel_re"].as_f64(), truth) {
        let (mut error, mut norm) = (0.0, 0.0);
        for i in 0..d {
            let w = chain.weights()[i] * chain.weights()[i];
            truth.row(i).for_each(d, |j, x| {
                error += w * (p(i, j) - x) * (p(i, j) - x);
                norm += w * x * x;
            });
        }
        checks.add("refit rel_re", number(reported), number(error / norm), (reported - error / norm).abs() <= 1e-6 * reported);
    }
}

/// What a bound proven more loosely here explains, as in the comparison of gaps.
fn slack(bound_norm: f64) -> f64 {
    1e-7 + 2.0 * (bound_norm - 1.0).max(0.0)
}

fn reported(s: &Summary) -> Reported {
    Reported {
        rank: Some(s.rank),
        fidelity: Some(s.fidelity),
        regularizer: Some(s.regularizer),
        objective: Some(s.objective),
        rel_le1: Some(s.errors.rel_le1),
        rel_le2: Some(s.errors.rel_le2),
        ge: Some(s.errors.ge),
        rel_dg: Some(s.errors.rel_dg),
        lower_bound: s.lower_bound,
        certified_gap: s.errors.certified_gap,
        rel_re: s.errors.rel_re,
        rel_se: s.errors.rel_se,
    }
}

/// The inputs must be where they were, seen from here or from where the fit was run, with the same bytes.
pub fn find_inputs(summary: &Summary, so_that: &str) -> Result<()> {
    let missing = |base: &Path| {
        let changed = |f: &&metastate_report::FileRecord| {
            hash::of_file(&base.join(&f.name)).map_or(true, |found| found != (f.bytes, f.sha256.clone()))
        };
        summary.inputs.iter().find(changed).map(|f| f.name.clone())
    };
    let Some(name) = missing(Path::new(".")) else { return Ok(()) };
    let then = Path::new(&summary.directory);
    if missing(then).is_none() && std::env::set_current_dir(then).is_ok() {
        return Ok(());
    }
    Err(CliError::failed("E-CLI-INPUTS-GONE", format!("this input is not there any more, or its bytes have changed, so that {so_that}"))
        .at(name)
        .remedy(format!("put the inputs back where they were (then: {})", summary.directory)))
}

/// Labels, weights, memberships, hard meta-states and coordinates, each exactly.
fn states_table(result: &Loaded, labels: &[String], coordinates: Option<&[(f64, f64)]>, clusters: Clusters) -> Option<String> {
    let u = &result.model().u;
    let rows = result.states.get(1..).unwrap_or_default();
    if rows.len() != labels.len() || rows.len() != u.rows() || result.xi.len() != rows.len() {
        return Some(format!("{} rows for {} states", rows.len(), labels.len()));
    }
    let zone = |row: &Vec<String>| row.get(2).and_then(|z| z.parse::<usize>().ok()).filter(|z| *z >= 1).map(|z| z - 1);
    let Some(zones) = rows.iter().map(zone).collect::<Option<Vec<usize>>>() else {
        return Some("a hard meta-state is no number".to_owned());
    };
    if let Some(wrong) = wrong_zone(u, &result.xi, &zones, clusters) {
        return Some(wrong);
    }
    for (i, row) in rows.iter().enumerate() {
        let mut expected = vec![labels[i].clone(), number(result.xi[i]), (zones[i] + 1).to_string()];
        expected.extend(u.row(i).iter().map(|x| number(*x)));
        expected.extend(coordinates.iter().flat_map(|c| [number(c[i].0), number(c[i].1)]));
        if let Some(k) = (0..expected.len().max(row.len())).find(|&k| expected.get(k) != row.get(k)) {
            return Some(format!("row {}, field {}", i + 1, k + 1));
        }
    }
    None
}

/// Every state must be where it belongs: with the largest membership, or nearest to the mean of its own cluster; clusters of a
/// given number must fall in mass.
fn wrong_zone(u: &Mat, xi: &[f64], zones: &[usize], clusters: Clusters) -> Option<String> {
    let s = u.cols();
    let k = match clusters {
        Clusters::Count(k) => k,
        _ => s,
    };
    if let Some(i) = zones.iter().position(|z| *z >= k) {
        return Some(format!("row {}: meta-state {} of {k}", i + 1, zones[i] + 1));
    }
    if clusters == Clusters::Membership {
        // Zones are numbered as the columns.
        let largest = |i: usize| (1..s).fold(0, |best, j| if u[(i, j)] > u[(i, best)] { j } else { best });
        return (0..zones.len()).find(|&i| zones[i] != largest(i)).map(|i| format!("row {}: not the largest membership", i + 1));
    }
    let (mut mass, mut size, mut centre) = (vec![0.0; k], vec![0.0; k], vec![vec![0.0; s]; k]);
    for (i, &z) in zones.iter().enumerate() {
        mass[z] += xi[i];
        size[z] += 1.0;
        (0..s).for_each(|j| centre[z][j] += u[(i, j)]);
    }
    if clusters != Clusters::Rank && mass.windows(2).any(|w| w[1] > w[0] + ROUNDING) {
        return Some("meta-states are not ordered by mass".to_owned());
    }
    centre.iter_mut().zip(&size).for_each(|(c, n)| c.iter_mut().for_each(|x| *x /= n));
    let distance = |i: usize, z: usize| (0..s).map(|j| (u[(i, j)] - centre[z][j]).powi(2)).sum::<f64>();
    let nearer = |i: usize| (0..k).any(|z| size[z] > 0.0 && distance(i, z) < distance(i, zones[i]) - ROUNDING);
    (0..zones.len()).find(|&i| nearer(i)).map(|i| format!("row {}: nearer to another meta-state", i + 1))
}

/// K = V^T U, summed in plain loops.
fn latent_table(result: &Loaded) -> Option<String> {
    let Factors { u, v } = result.model();
    let rows = result.latent.get(1..).unwrap_or_default();
    if rows.len() != u.cols() || u.rows() != v.rows() || v.cols() != u.cols() {
        return Some(format!("{} rows for rank {}", rows.len(), u.cols()));
    }
    for (j, row) in rows.iter().enumerate() {
        for k in 0..u.cols() {
            let expected: f64 = (0..u.rows()).map(|i| v[(i, j)] * u[(i, k)]).sum();
            if !near(row.get(k + 1), expected) {
                return Some(format!("row {}, column {}", j + 1, k + 1));
            }
        }
    }
    None
}

/// Sizes, masses and stationary shares.
fn metastates_table(result: &Loaded) -> Option<String> {
    let zones = Zones::by_membership(&result.model().u, &result.xi);
    let rows = result.metastates.get(1..).unwrap_or_default();
    if rows.len() != zones.sizes.len() {
        return Some(format!("{} rows for rank {}", rows.len(), zones.sizes.len()));
    }
    let wrong = |(j, row): (usize, &Vec<String>)| row.get(1) != Some(&zones.sizes[j].to_string()) || !near(row.get(2), zones.masses[j]);
    rows.iter().enumerate().position(wrong).map(|j| format!("row {}", j + 1)).or_else(|| stationary_column(result))
}

/// The column `stationary`, where the file has it: a law a with `a^T V^T U = a^T`, summed in plain loops.
fn stationary_column(result: &Loaded) -> Option<String> {
    let at = result.metastates.first()?.iter().position(|name| name == "stationary")?;
    let share = |row: &Vec<String>| row.get(at).and_then(|f| f.parse::<f64>().ok()).filter(|a| *a >= 0.0);
    let law: Option<Vec<f64>> = result.metastates[1..].iter().map(share).collect();
    let Factors { u, v } = result.model();
    let Some(law) = law.filter(|law| law.len() == u.cols() && v.cols() == u.cols() && v.rows() == u.rows()) else {
        return Some("no law in the column stationary".to_owned());
    };
    let mut moved = vec![0.0; law.len()];
    for i in 0..u.rows() {
        let here: f64 = v.row(i).iter().zip(&law).map(|(v, a)| v * a).sum();
        moved.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += here * u);
    }
    let total: f64 = law.iter().sum();
    let wrong = |k: &usize| (moved[*k] - law[*k]).abs() > STATIONARY;
    match (0..law.len()).find(wrong) {
        _ if (total - 1.0).abs() > STATIONARY => Some(format!("the column stationary sums to {total}")),
        Some(k) => Some(format!("row {}: not stationary", k + 1)),
        None => None,
    }
}

fn near(field: Option<&String>, expected: f64) -> bool {
    field.and_then(|f| f.parse::<f64>().ok()).is_some_and(|x| (x - expected).abs() <= ROUNDING * expected.abs().max(1.0))
}
