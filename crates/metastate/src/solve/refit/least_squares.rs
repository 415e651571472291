//! The least-squares refit: `min 1/2 ||Xi (P - U V^T)||_F^2` at the rank of the start.

use crate::solve::local::{Fast, LocalSolver};
use crate::solve::problem::{Factors, Problem};

/// What is left of lambda, in units of `||Xi P||^2`: enough to keep the rows' problems strictly convex, too little to be seen.
const VANISHING: f64 = 1e-12;
/// Points that the acceleration combines.
const MEMORY: usize = 8;
/// Sweeps over which progress is judged.
const WINDOW: usize = 5;

/// What the least-squares refit gives.
#[derive(Debug, Clone, PartialEq)]
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
/// lambda plays no part.
pub fn least_squares(problem: &Problem, start: &Factors, tolerance: f64, max_sweeps: usize) -> LeastSquares {
    let problem = problem.at_lambda(VANISHING * problem.data_norm2);
    let mut solver = Fast::new(MEMORY);
    let mut x = start.clone();
    let mut values: Vec<f64> = Vec::new();
    let mut converged = false;
    while values.len() < max_sweeps && !converged {
        values.push(solver.sweep(&problem, &mut x).value);
        let n = values.len();
        converged = n > WINDOW && values[n - 1 - WINDOW] - values[n - 1] <= tolerance * values[n - 1];
    }
    let fidelity = problem.objective(&x).fidelity;
    LeastSquares { factors: x, fidelity, sweeps: values.len(), converged }
}
