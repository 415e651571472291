//! What was typed becomes what it means.

use std::collections::HashMap;

use metastate::Mat;
use metastate::fit::{FitOptions, Lambda, Path, Rank};
use metastate::solve::{BbFormula, Factors, Redundancy, Solver, Start, StopRule};
use metastate::{Chain, Label, StateIndex};
use metastate_report::{FileRecord, hash};

use crate::args::{Clusters, FitArgs, Init, SolverKind, StopKind};
use crate::error::{CliError, Result};

/// Random directions of the paper's early rule.
const EARLY_DIRECTIONS: usize = 5000;

/// lambda where it is given, and lambda_max.
pub fn lambda(fit: &FitArgs, chain: &Chain, seed: u64) -> Result<(Option<f64>, f64)> {
    let most = metastate::solve::lambda_max(chain.p(), chain.weights(), seed)?;
    Ok((fit.lambda.or(fit.lambda_ratio.map(|ratio| ratio * most)), most))
}

/// The options of the recipe, and the files that a start was read from.
pub fn recipe(fit: &FitArgs, whole_path: bool, seed: u64, chain: &Chain) -> Result<(FitOptions, Vec<FileRecord>)> {
    let (start, files) = start(&fit.init(), chain)?;
    let stop = match fit.stop() {
        StopKind::Certificate => StopRule::Certificate { gap: fit.gap },
        StopKind::Exact => StopRule::Exact { tolerance: fit.gap },
        StopKind::Early => StopRule::Early { directions: EARLY_DIRECTIONS },
    };
    let solver = match fit.solver() {
        SolverKind::Fast => Solver::Fast,
        SolverKind::PalmBb => Solver::PalmBb(BbFormula::default()),
        SolverKind::PalmLipschitz => Solver::PalmLipschitz,
    };
    let mut options = FitOptions::default().seed(seed).reversible(fit.reversible).path(Path {
        points: fit.points,
        floor: fit.floor,
        whole: whole_path,
    })?;
    options = match fit.as_in_paper {
        true => options.as_in_paper(chain.states(), fit.start_rank, fit.max_rank())?,
        false => options.max_rank(fit.max_rank())?.start_rank(fit.start_rank)?,
    };
    options = options.solver(solver).stop(stop).start(start).tolerance(fit.tolerance)?.bootstrap(fit.bootstrap)?;
    options = match (fit.lambda, fit.lambda_ratio) {
        (Some(x), _) => options.lambda(Lambda::Given(x))?,
        (None, Some(ratio)) => options.lambda(Lambda::Ratio(ratio))?,
        (None, None) => options,
    };
    options = options.objective(fit.objective.into());
    if let Some(k) = fit.rank {
        options = options.rank(Rank::Given(k))?;
    }
    options = match (fit.redundancy_absolute, fit.redundancy_relative) {
        (Some(x), _) => options.redundancy(Redundancy::Absolute(x)),
        (None, Some(x)) => options.redundancy(Redundancy::Relative(x)),
        (None, None) => options,
    };
    if fit.needs_parts() {
        options = options.folds(fit.folds)?;
    }
    if let Some(prior) = fit.prior {
        options = options.prior(prior)?;
    }
    Ok((options.refit(fit.refit_kind().into()).clusters(clusters(fit))?, files))
}

/// How states get their zones.
pub fn clusters(fit: &FitArgs) -> metastate::fit::Clusters {
    match fit.hard() {
        Clusters::Rank => metastate::fit::Clusters::Rank,
        Clusters::Membership => metastate::fit::Clusters::Membership,
        Clusters::Count(k) => metastate::fit::Clusters::Count(k),
    }
}

/// Refuses a number of zones that these states cannot have.
pub fn check_clusters(fit: &FitArgs, states: usize) -> Result<()> {
    match fit.hard() {
        Clusters::Count(k) if k == 0 || k > states => {
            Err(CliError::bad("E-CLI-ARGUMENT", format!("--clusters is {k}; there are {states} states"))
                .remedy("give a number between 1 and that"))
        }
        _ => Ok(()),
    }
}

fn start(init: &Init, chain: &Chain) -> Result<(Start, Vec<FileRecord>)> {
    let folder = match init {
        Init::Random => return Ok((Start::Random, Vec::new())),
        Init::Spectral => return Ok((Start::Spectral, Vec::new())),
        Init::Result(folder) => folder,
    };
    let bad = |why: String| {
        CliError::bad("E-CLI-INIT", format!("the fit cannot start from this result: {why}"))
            .at(folder.display().to_string())
            .remedy("give random, spectral, or the folder of a result over some of the same states")
    };
    let result = metastate_report::load(folder).map_err(|e| bad(e.to_string()))?;
    let carried = |index: &StateIndex, theirs: Vec<Label>| -> Vec<Option<usize>> {
        let known: HashMap<String, usize> = theirs.iter().enumerate().map(|(i, l)| (l.to_string(), i)).collect();
        index.labels().map(|l| known.get(&l.to_string()).copied()).collect()
    };
    let rows = carried(chain.index(), result.labels());
    let columns = carried(chain.destinations(), result.destinations.as_ref().map_or_else(|| result.labels(), |d| d.labels()));
    if rows.iter().all(Option::is_none) || columns.iter().all(Option::is_none) {
        return Err(bad("none of its states is among those of these data".into()));
    }
    let file = folder.join("factors.npz");
    let (bytes, sha256) = hash::of_file(&file)?;
    let record = FileRecord { name: file.display().to_string(), role: "start".into(), bytes, sha256 };
    let in_place = |places: &[Option<usize>], size: usize| places.len() == size && places.iter().enumerate().all(|(i, p)| *p == Some(i));
    let same = in_place(&rows, result.factors.u.rows()) && in_place(&columns, result.factors.v.rows());
    let factors = if same { result.factors } else { carried_over(&result.factors, &result.xi, &rows, &columns) };
    Ok((Start::Given(Box::new(factors)), vec![record]))
}

/// The factors over other states: those that are known keep their rows, new ones belong to all meta-states by their mass and are reached seldom; the columns
/// of V sum to one again.
fn carried_over(x: &Factors, xi: &[f64], rows: &[Option<usize>], columns: &[Option<usize>]) -> Factors {
    let (mass, total) = (x.mass(xi), xi.iter().sum::<f64>());
    let seldom = 1.0 / (columns.len() as f64 * 10.0);
    let u = Mat::from_fn(rows.len(), x.rank(), |i, j| rows[i].map_or(mass[j] / total, |r| x.u[(r, j)]));
    let mut v = Mat::from_fn(columns.len(), x.rank(), |i, j| columns[i].map_or(seldom, |r| x.v[(r, j)]));
    for j in 0..x.rank() {
        let sum: f64 = (0..v.rows()).map(|i| v[(i, j)]).sum();
        (0..v.rows()).for_each(|i| v[(i, j)] = if sum > 0.0 { v[(i, j)] / sum } else { 1.0 / columns.len() as f64 });
    }
    Factors { u, v }
}
