//! What was typed becomes what it means.

use metastate::Chain;
use metastate::solve::{BbFormula, Factors, Redundancy, Settings, Solver, Start, StopRule};
use metastate_report::{FileRecord, hash};

use crate::args::{FitArgs, Init, RefitKind, SolverKind, StopKind};
use crate::error::{CliError, Result};

/// Random directions of the paper's early rule.
const EARLY_DIRECTIONS: usize = 5000;

/// Refuses what can be refused before any file is read.
pub fn check(fit: &FitArgs) -> Result<()> {
    if fit.refit != RefitKind::None {
        return Err(CliError::not_yet("--refit other than none", "leave it out: factors.npz holds the solution of the stated problem"));
    }
    for (name, value) in [("--lambda", fit.lambda), ("--lambda-ratio", fit.lambda_ratio)] {
        if let Some(x) = value.filter(|x| !(*x > 0.0 && x.is_finite())) {
            return Err(CliError::bad("E-CLI-ARGUMENT", format!("{name} is {x}; it must be a positive number")));
        }
    }
    if let Some(rank) = fit.start_rank.filter(|r| *r > fit.max_rank) {
        return Err(CliError::bad("E-CLI-ARGUMENT", format!("--start-rank {rank} is above --max-rank {}", fit.max_rank))
            .remedy("raise --max-rank or lower --start-rank"));
    }
    Ok(())
}

/// lambda and lambda_max.
pub fn lambda(fit: &FitArgs, chain: &Chain, seed: u64) -> Result<(f64, f64)> {
    let most = metastate::solve::lambda_max(chain.p(), chain.weights(), seed)?;
    match (fit.lambda, fit.lambda_ratio) {
        (Some(lambda), _) => Ok((lambda, most)),
        (None, Some(ratio)) => Ok((ratio * most, most)),
        (None, None) => {
            let example = 0.5 * most;
            Err(CliError::bad("E-CLI-LAMBDA", format!("neither --lambda nor --lambda-ratio was given, and lambda is not yet chosen by itself; lambda_max of these data is {most:.6e}"))
                .remedy(format!("give one of them, such as --lambda-ratio 0.5 (the same as --lambda {example:.3e})")))
        }
    }
}

/// The solver's settings, and the files that a start was read from.
pub fn solver(fit: &FitArgs, seed: u64, chain: &Chain) -> Result<(Settings, Vec<FileRecord>)> {
    let (start, files) = start(&fit.init, chain)?;
    let settings = Settings {
        solver: match fit.solver {
            SolverKind::Fast => Solver::Fast,
            SolverKind::PalmBb => Solver::PalmBb(BbFormula::default()),
            SolverKind::PalmLipschitz => Solver::PalmLipschitz,
        },
        stop: match fit.stop {
            StopKind::Certificate => StopRule::Certificate { gap: fit.gap },
            StopKind::Exact => StopRule::Exact { tolerance: fit.gap },
            StopKind::Early => StopRule::Early { directions: EARLY_DIRECTIONS },
        },
        tolerance: fit.tolerance,
        start,
        start_rank: fit.start_rank,
        max_rank: fit.max_rank,
        redundancy: match (fit.redundancy_absolute, fit.redundancy_relative) {
            (Some(x), _) => Redundancy::Absolute(x),
            (None, Some(x)) => Redundancy::Relative(x),
            (None, None) => Settings::default().redundancy,
        },
        seed,
        ..Settings::default()
    };
    settings.check(chain.states())?;
    Ok((settings, files))
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
