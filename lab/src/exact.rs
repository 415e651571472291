//! Section 6.1: exact matrices.

use metastate::aggregate::WeightedChain;
use metastate::simulate::planted;
use metastate::solve::{LocalStop, Problem, Settings, Solver, StopRule};
use metastate::workspace::errors::relative_recovery_error;
use metastate::workspace::singular::{TruncatedSvd, truncated_svd};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::plan::Variant;
use crate::sampled::{Solved, Watch};

/// A row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExactResult {
    pub solved: Solved,
    pub sigma: [f64; 2],
}

/// The paper's threshold here.
const EPSILON: f64 = 5e-5;
/// The rank of the chains.
const RANK: usize = 5;
/// The paper's algorithm may cycle between appending and removing; the sweeps are bounded as well.
const MOST_SWEEPS: usize = 20_000;

/// Seconds that a variant may take.
const LIMIT: f64 = 240.0;
/// Columns at the start of the variant that solves to the end; far more than it ends with, like the paper's 300.
const START: usize = 60;
/// The small threshold.
const SMALL_EPSILON: f64 = 1e-5;

/// Solves one.
pub fn solve(d: usize, lambda: f64, paper_mode: bool, start: usize, seed: u64) -> Result<ExactResult> {
    let settings = if paper_mode { Settings { max_sweeps: MOST_SWEEPS, ..Settings::paper(start, EPSILON) } } else { Settings::default() };
    solve_by(d, lambda, &settings, Watch::new(paper_mode, None), seed)
}

/// Solves one with one thing changed.
pub fn variant(d: usize, lambda: f64, variant: Variant, start: usize, seed: u64) -> Result<ExactResult> {
    let settings = match variant {
        Variant::Strict => Settings {
            max_sweeps: MOST_SWEEPS,
            local_stop: LocalStop::Decrease { window: 30, decrease: 1e-5 },
            ..Settings::paper(start, EPSILON)
        },
        Variant::Converged => Settings {
            max_sweeps: MOST_SWEEPS,
            solver: Solver::Fast,
            local_stop: LocalStop::Kkt,
            tolerance: 1e-3,
            ..Settings::paper(START.min(start), EPSILON)
        },
        Variant::SmallThreshold => Settings { max_sweeps: MOST_SWEEPS, ..Settings::paper(start, SMALL_EPSILON) },
        Variant::MoreColumns => {
            Settings { stop: StopRule::Exact { tolerance: 1e-4 }, max_rank: 40, max_sweeps: 6000, ..Settings::default() }
        }
    };
    solve_by(d, lambda, &settings, Watch::new(variant != Variant::MoreColumns, Some(LIMIT)), seed)
}

fn solve_by(d: usize, lambda: f64, settings: &Settings, mut watch: Watch, seed: u64) -> Result<ExactResult> {
    let chain = planted(d, RANK, seed.wrapping_add(1))?.chain()?;
    let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
    let solution = metastate::solve::solve(&problem, settings, &mut watch)?;
    let recovery = relative_recovery_error(chain.weights(), &solution.factors, chain.p());
    let values = truncated_svd(&WeightedChain { p: chain.p(), weights: chain.weights() }, &TruncatedSvd::new(RANK, 0)).values;
    Ok(ExactResult { solved: Solved::new(&solution, recovery, &watch), sigma: [values[0], values[RANK - 1]] })
}
