//! How long a fit takes: what one sweep, one likelihood pass and one product cost on this machine, measured for about a second on a chain with as many pairs a state, times how many of them
//! fits have taken.

use std::time::{Duration, Instant};

use metastate::Mat;
use metastate::simulate::{PlantedGroups, planted_groups};
use metastate::solve::{Factors, Problem};
use metastate::workspace::local::{Fast, LocalSolver};
use metastate::workspace::refit::{LikelihoodSettings, Observed, likelihood};
use metastate::{Chain, Estimate};

use super::Work;
use crate::error::Result;

/// The chain that is measured on has at most so many pairs, ...
const PAIRS: u64 = 600_000;
/// ... states, so that factors are as far from the nearest caches as those of the work, ...
const STATES: u64 = 150_000;
/// ... and transitions out of a state.
const DENSEST: u64 = 2_000;
/// What is spent on each of the three, at least.
const EACH: Duration = Duration::from_millis(200);
/// Groups of that chain: how many there are hardly matters.
const GROUPS: u64 = 16;

/// Seconds a pair, and a state, that are read from a matrix; and a pair of rows that are counted first.
const READ: f64 = 8e-8;
const READ_ROWS: f64 = 6e-7;
/// Seconds a number that is written, into tables as text and as Parquet, and of the page.
const WRITTEN: f64 = 4e-7;
const PAGE: f64 = 0.3;

/// How often fits have done what (docs/performance.md, "The estimate"): products of one column, sweeps, passes. Rounds of the search for lambda_max and directions that it follows.
const LAMBDA_MAX: Counted = Counted { columns: 1400.0, sweeps: 0.0, passes: 0.0 };
/// One fit at one rank to one part of the data: basis, least squares, mergers, and likelihood.
const FIT_OF_A_PART: Counted = Counted { columns: 0.0, sweeps: 10.0, passes: 60.0 };
/// Products of the spectral basis, of as many columns as it has.
const BASIS_PRODUCTS: f64 = 26.0;
/// Ranks, and priors, that a search looks at in effect, races and first looks counted as parts of a fit.
const RANKS_SEARCHED: f64 = 6.0;
const PRIORS_TRIED: f64 = 1.5;
/// The search for lambda at a rank, and the solve there without a proof.
const LAMBDA_OF_RANK: Counted = Counted { columns: 800.0, sweeps: 120.0, passes: 0.0 };
/// The relaxation, the sweeps and the proof.
const SOLVE: Counted = Counted { columns: 2500.0, sweeps: 80.0, passes: 0.0 };
/// The refit by likelihood from two starts, and of one draw of the bootstrap.
const REFIT: Counted = Counted { columns: 0.0, sweeps: 0.0, passes: 120.0 };
const DRAW: Counted = Counted { columns: 0.0, sweeps: 0.0, passes: 20.0 };
/// Points of a whole path, each a solve on the data and on all folds.
const PATH_POINTS: f64 = 30.0;

/// Products of one column, sweeps, and passes.
#[derive(Debug, Clone, Copy)]
struct Counted {
    columns: f64,
    sweeps: f64,
    passes: f64,
}

/// What things cost, for the work as large as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    /// Seconds of a product of P, or its transpose, with one column.
    column: f64,
    /// Of a sweep of the solver.
    sweep: f64,
    /// Of a pass of the likelihood.
    pass: f64,
    /// Pairs that it was measured on.
    measured_on: usize,
}

/// Measures.
pub(super) fn calibrate(work: &Work) -> Result<Speed> {
    let a_state = (work.pairs / work.states.max(1)).clamp(1, DENSEST);
    let states = work.states.min(STATES).min(PAIRS / a_state).max(2 * GROUPS);
    let planted = planted_groups(states as usize, GROUPS as usize, a_state as usize, 1)?;
    let rank = (work.metastates as usize).clamp(2, states as usize / 2);
    let start = start_at(&planted, rank);
    let chain = Chain::estimate(&planted.counts, &Estimate::default())?;
    let problem = Problem::new(chain.p(), chain.weights(), 1e-6 * chain.weights().iter().map(|w| w * w).sum::<f64>())?;
    let mut image = Mat::default();
    let product = seconds(|| chain.p().apply(&start.v, &mut image));
    let (mut solver, mut x) = (Fast::new(8), start.clone());
    let sweep = seconds(|| {
        solver.sweep(&problem, &mut x);
    });
    let counts = planted.counts.csr().clone();
    let pairs = counts.nonzeros();
    let observed = Observed::new(counts)?;
    let settings = LikelihoodSettings { max_passes: 4, tolerance: -1.0, ..LikelihoodSettings::default() };
    let mut failed = None;
    // Four passes and the value at the end.
    let passes = seconds(|| failed = likelihood(&observed, &start, &settings).err());
    if let Some(e) = failed {
        return Err(e.into());
    }
    let times = work.pairs as f64 / pairs as f64;
    Ok(Speed { column: times * product / rank as f64, sweep: times * sweep, pass: times * passes / 4.5, measured_on: pairs })
}

/// Every state belongs mostly to one of so many meta-states.
fn start_at(planted: &PlantedGroups, rank: usize) -> Factors {
    let d = planted.group.len();
    let near = |i: usize, k: usize| if planted.group[i] as usize % rank == k { 1.0 } else { 0.1 };
    let mut x = Factors { u: Mat::from_fn(d, rank, near), v: Mat::from_fn(d, rank, near) };
    x.normalise_rows();
    let sums: Vec<f64> = (0..rank).map(|k| (0..d).map(|i| x.v[(i, k)]).sum()).collect();
    x.v = Mat::from_fn(d, rank, |i, k| x.v[(i, k)] / sums[k]);
    x
}

/// The shortest of a few runs.
fn seconds(mut run: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    while best.is_infinite() || begun.elapsed() < EACH {
        let one = Instant::now();
        run();
        best = best.min(one.elapsed().as_secs_f64());
    }
    best
}

impl Speed {
    fn of(&self, n: &Counted) -> f64 {
        n.columns * self.column + n.sweeps * self.sweep + n.passes * self.pass
    }

    /// Seconds of a stage.
    pub fn seconds(self, work: &Work) -> impl Fn(&str) -> f64 + use<> {
        let work = *work;
        move |stage| {
            let (d, pairs, s) = (work.states as f64, work.pairs as f64, work.metastates as f64);
            let basis = BASIS_PRODUCTS * (s + 8.0) * self.column;
            match stage {
                "reading" => pairs * if work.from_rows { READ_ROWS } else { READ },
                "lambda_max" => self.of(&LAMBDA_MAX),
                "choosing" => {
                    let tried = if work.searches { RANKS_SEARCHED } else { 1.0 } * PRIORS_TRIED;
                    let parts = work.folds as f64 * tried * (self.of(&FIT_OF_A_PART) + basis);
                    let path = if work.whole_path { PATH_POINTS * (1.0 + work.folds as f64) * 0.3 * self.of(&SOLVE) } else { 0.0 };
                    parts + basis + self.of(&LAMBDA_OF_RANK) + path
                }
                "solving" => self.of(&SOLVE),
                "refit" => self.of(&REFIT) + work.draws as f64 * self.of(&DRAW),
                _ => d * s * WRITTEN + PAGE,
            }
        }
    }

    /// In words.
    pub fn rests_on(&self) -> String {
        format!(
            "The times rest on a second of measuring with {} pairs: for the whole, {:.2e} s a sweep of the solver, {:.2e} s a pass of the likelihood and {:.2e} s a product with one column, times as many of each as fits have taken (docs/performance.md)",
            self.measured_on, self.sweep, self.pass, self.column
        )
    }
}
