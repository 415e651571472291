//! What was typed becomes what it means.

use metastate::Chain;
use metastate::solve::{BbFormula, Factors, Redundancy, Settings, Solver, Start, StopRule};
use metastate_report::{FileRecord, hash};

use crate::args::{FitArgs, Init, SolverKind, StopKind};
use crate::error::{CliError, Result};

/// Random directions of the paper's early rule.
const EARLY_DIRECTIONS: usize = 5000;

/// The paper's threshold of redundancy.
const PAPER_THRESHOLD: f64 = 5e-5;
/// Meta-states that the paper starts with, at most; a tenth of the states otherwise.
const PAPER_START: usize = 300;

/// lambda where it is given, and lambda_max.
pub fn lambda(fit: &FitArgs, chain: &Chain, seed: u64) -> Result<(Option<f64>, f64)> {
    let most = metastate::solve::lambda_max(chain.p(), chain.weights(), seed)?;
    Ok((fit.lambda.or(fit.lambda_ratio.map(|ratio| ratio * most)), most))
}

/// The solver's settings, and the files that a start was read from.
pub fn solver(fit: &FitArgs, seed: u64, chain: &Chain) -> Result<(Settings, Vec<FileRecord>)> {
    let (start, files) = start(&fit.init(), chain)?;
    let (basis, start_rank) = if fit.as_in_paper { paper(fit, chain.states()) } else { (Settings::default(), fit.start_rank) };
    let settings = Settings {
        solver: match fit.solver() {
            SolverKind::Fast => Solver::Fast,
            SolverKind::PalmBb => Solver::PalmBb(BbFormula::default()),
            SolverKind::PalmLipschitz => Solver::PalmLipschitz,
        },
        stop: match fit.stop() {
            StopKind::Certificate => StopRule::Certificate { gap: fit.gap },
            StopKind::Exact => StopRule::Exact { tolerance: fit.gap },
            StopKind::Early => StopRule::Early { directions: EARLY_DIRECTIONS },
        },
        tolerance: fit.tolerance,
        start,
        start_rank,
        max_rank: fit.max_rank(),
        redundancy: match (fit.redundancy_absolute, fit.redundancy_relative) {
            (Some(x), _) => Redundancy::Absolute(x),
            (None, Some(x)) => Redundancy::Relative(x),
            (None, None) => basis.redundancy,
        },
        seed,
        ..basis
    };
    settings.check(chain.states())?;
    Ok((settings, files))
}

/// The paper's settings, and with how many meta-states they start.
fn paper(fit: &FitArgs, states: usize) -> (Settings, Option<usize>) {
    let start_rank = fit.start_rank.unwrap_or_else(|| (states / 10).min(PAPER_START).min(fit.max_rank()).max(1));
    (Settings::paper(start_rank, PAPER_THRESHOLD), Some(start_rank))
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
            .remedy("give random, spectral, or the folder of a result over the same states")
    };
    let result = metastate_report::load(folder).map_err(|e| bad(e.to_string()))?;
    let labels = result.states.iter().skip(1).map(|row| row.first().map_or("", String::as_str));
    if !labels.eq(chain.index().labels().map(|l| l.to_string()).collect::<Vec<_>>().iter().map(String::as_str)) {
        return Err(bad("its states are not those of these data".into()));
    }
    let file = folder.join("factors.npz");
    let (bytes, sha256) = hash::of_file(&file)?;
    let record = FileRecord { name: file.display().to_string(), role: "start".into(), bytes, sha256 };
    Ok((Start::Given(Box::new(Factors { u: result.factors.u, v: result.factors.v })), vec![record]))
}
