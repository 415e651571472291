//! A lambda whose solution has a wanted rank: the smallest at which no further meta-state pays.
//!
//! At the solution of rank r for lambda, `m = max u^T W v` over nonnegative unit vectors says whether another column pays (`m > 1`). `lambda <- m lambda` climbs to the lambda where
//! none does. Below it the solution has more than r meta-states; far above it fewer. There the r that are wanted are shrunk as little as a proof of their number allows.
//!
//! Nothing is proven here, and a column counts as empty by its length alone: the solve at the lambda found decides.

use super::adaptive::RISE_BEFORE_GROWTH;
use super::grow::{self, AscentSearch};
use super::kkt::{Products, multiplier_and_errors};
use super::local::{Fast, descend};
use super::problem::{Factors, Problem};
use super::settings::Settings;
use super::shrink;
use crate::error::{Error, Result};
use crate::linalg::{Operator, thin};

/// Where the climb begins, as a share of lambda_max: small enough not to shrink anything.
const FIRST: f64 = 1e-3;
/// Values of lambda that are tried, at most.
const ROUNDS: usize = 16;
/// It ends where a further column would pay by less than this share.
const CLOSE: f64 = 2e-2;
/// A step is this power of m: at a point that is not quite settled m is above 1 for its own columns too, and plain steps would creep.
const BOLD: i32 = 2;
/// Only where m is near 1; far from it the first step lands about right.
const NEAR: f64 = 1.2;
/// Sweeps at one lambda, at most, and the share that five of them lower F by when that is enough.
const SWEEPS: usize = 60;
const ENOUGH: f64 = 1e-6;
/// The same where a point is brought near to its solution: little beside the gap that is proven of it.
const LONGEST: usize = 500;
const SETTLED: f64 = 1e-8;
/// A column shorter than this share of the longest has vanished.
const VANISHED: f64 = 1e-3;
/// Points that the acceleration combines.
const MEMORY: usize = 8;
/// Starts of the search for a further column.
const STARTS: usize = 4;

/// What was found.
///
/// See the example of [`lambda_of_rank`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LambdaOfRank {
    /// lambda.
    pub lambda: f64,
    /// The point there: a good start.
    pub factors: Factors,
}

/// The lambda for the rank of the start (where columns vanish before no further one pays, the largest tried that keeps them all). The start should be near a solution without penalty. `go_on` is asked after every sweep and may end the search with an error.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Factors, lambda_max, lambda_of_rank};
///
/// let truth = planted(20, 2, 1)?;
/// let chain = truth.chain()?;
/// let most = lambda_max(chain.p(), chain.weights(), 0)?;
/// let start = Factors { u: truth.u.clone(), v: truth.v.clone() };
/// let found = lambda_of_rank(chain.p(), chain.weights(), &start, most, 0, &mut || true)?;
/// assert!(0.0 < found.lambda && found.lambda < most);
/// assert_eq!(found.factors.rank(), 2);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn lambda_of_rank(
    p: &dyn Operator,
    weights: &[f64],
    start: &Factors,
    lambda_max: f64,
    seed: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<LambdaOfRank> {
    let mut lambda = FIRST * lambda_max;
    let mut found = LambdaOfRank { lambda, factors: start.clone() };
    // Here a column vanished.
    let mut too_large = lambda_max;
    for round in 0..ROUNDS {
        let problem = Problem::new(p, weights, lambda)?;
        let mut x = found.factors.clone();
        if !descend(&mut Fast::new(MEMORY), &problem, &mut x, ENOUGH, SWEEPS, go_on) {
            return Err(Error::Interrupted);
        }
        if columns(&x) < start.rank() {
            too_large = lambda;
        } else {
            let (mu, _) = multiplier_and_errors(&problem, &x, &Products::at(&problem, &x));
            let search =
                AscentSearch { starts: STARTS, steps: grow::STEPS_TO_GROW, seed: seed.wrapping_add(round as u64), thorough: false };
            let (support, _) = grow::ascend(&problem, &x, &mu, &search, f64::INFINITY);
            let closed = support <= 1.0 + CLOSE;
            found = LambdaOfRank { lambda: lambda * if closed { support.max(1.0) } else { 1.0 }, factors: x };
            lambda *= if support < NEAR { support.max(1.0).powi(BOLD) } else { support };
            if closed {
                return Ok(found);
            }
        }
        if lambda >= too_large {
            lambda = (found.lambda * too_large).sqrt();
        }
        if lambda <= found.lambda * (1.0 + CLOSE) {
            break;
        }
    }
    Ok(found)
}

/// Brings a point near to its solution and says whether the solver would keep all of its columns there: those that are alike it merges.
pub fn keeps_all(problem: &Problem, x: &mut Factors, settings: &Settings, go_on: &mut dyn FnMut() -> bool) -> Result<bool> {
    let rank = x.rank();
    if !descend(&mut Fast::new(MEMORY), problem, x, SETTLED, LONGEST, go_on) {
        return Err(Error::Interrupted);
    }
    let value = problem.objective(x).value;
    Ok(x.rank() == rank && shrink::without_redundant(problem, x, value, settings, RISE_BEFORE_GROWTH).is_none())
}

/// Columns that have not vanished.
fn columns(x: &Factors) -> usize {
    let norms = thin::column_norms(&x.u);
    let longest = norms.iter().copied().fold(0.0, f64::max);
    norms.iter().filter(|n| **n > VANISHED * longest).count()
}
