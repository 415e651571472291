//! The least-squares refit: `min 1/2 ||Xi (P - U V^T)||_F^2` at the rank of the start.

use crate::solve::local::{Fast, LocalSolver};
use crate::solve::problem::{Factors, Problem};

/// What is left of lambda, in units of `||Xi P||^2`: enough to keep the rows' problems strictly convex, too little to be seen ...
const VANISHING: f64 = 1e-12;
/// ... unless the fit is all but perfect: where less than so many times the penalty is left, the penalty is made smaller by this factor, so many times at most.
const SEEN: f64 = 1e3;
const SMALLER: f64 = 1e-4;
const STAGES: i32 = 4;
/// Points that the acceleration combines.
const MEMORY: usize = 8;
/// Sweeps over which progress is judged.
const WINDOW: usize = 5;

/// What the least-squares refit gives.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LeastSquares {
    /// U and V.
    pub factors: Factors,
    /// `1/2 ||Xi (P - U V^T)||_F^2`.
    pub fidelity: f64,
    /// Sweeps made.
    pub sweeps: usize,
    /// Whether the tolerance was met.
    pub converged: bool,
}

/// Refits from `start` until five sweeps lower the fidelity by less than the share `tolerance`, or `max_sweeps`. The problem's
/// lambda plays no part. It is never worse than its start.
#[must_use]
pub fn least_squares(problem: &Problem, start: &Factors, tolerance: f64, max_sweeps: usize) -> LeastSquares {
    let mut best =
        LeastSquares { factors: start.clone(), fidelity: problem.published_objective(start).fidelity, sweeps: 0, converged: false };
    let (mut sweeps, mut x) = (0, start.clone());
    for stage in 0..STAGES {
        let problem = problem.at_lambda(VANISHING * SMALLER.powi(stage) * problem.data_norm2);
        let mut solver = Fast::new(MEMORY);
        let mut values: Vec<f64> = Vec::new();
        let mut converged = false;
        while sweeps < max_sweeps && !converged {
            values.push(solver.sweep(&problem, &mut x).value);
            sweeps += 1;
            let n = values.len();
            converged = n > WINDOW && values[n - 1 - WINDOW] - values[n - 1] <= tolerance * values[n - 1];
        }
        let found = problem.published_objective(&x);
        let better = found.fidelity < best.fidelity;
        best = LeastSquares {
            factors: if better { x.clone() } else { best.factors },
            fidelity: if better { found.fidelity } else { best.fidelity },
            sweeps,
            converged,
        };
        if sweeps >= max_sweeps || found.fidelity > SEEN * problem.lambda * found.regularizer {
            break;
        }
    }
    best
}
