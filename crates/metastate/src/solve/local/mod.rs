//! Local solvers: each takes a feasible point and makes it better, one sweep at a time. When to stop is not theirs to say.

mod fast;
mod palm;

pub use fast::Fast;
pub use palm::{BbFormula, Palm, StepRule};
pub(crate) use palm::{project_columns_in, project_rows, project_rows_in};

use super::problem::{Factors, Problem};
use crate::linalg::thin;

/// What a sweep reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    /// F after the sweep.
    pub value: f64,
}

/// Drops columns without length, as the paper does before each step: the norm has no gradient there. Says whether there were any.
fn drop_empty_columns(problem: &Problem, x: &mut Factors) -> bool {
    let (u_norms, v_norms) = (thin::column_norms(&x.u), thin::column_norms(&x.v));
    let keep: Vec<usize> = (0..x.rank()).filter(|&j| u_norms[j] > 0.0 && v_norms[j] > 0.0).collect();
    let some_go = keep.len() < x.rank() && !keep.is_empty();
    if some_go {
        x.keep_columns_in(&keep, &problem.frame);
    }
    some_go
}

/// A method that improves `(U, V)` at fixed rank.
pub trait LocalSolver: Send {
    /// One pass over both blocks; `x` stays feasible.
    fn sweep(&mut self, problem: &Problem, x: &mut Factors) -> Sweep;
    /// Called when `x` was changed from outside (columns appended or removed): forget what was learnt on the way.
    fn restart(&mut self);
    /// Ends a local solve: leaves the best point since the last restart in `x`. Nothing to do where F never rises.
    fn settle(&mut self, _x: &mut Factors) {}
}

/// Sweeps over which progress is judged by [`descend`].
const WINDOW: usize = 5;

/// Sweeps until five of them lower F by less than the share `tolerance`, or `most` were made, or `go_on` says no; whether it never did.
pub(crate) fn descend(
    solver: &mut dyn LocalSolver,
    problem: &Problem,
    x: &mut Factors,
    tolerance: f64,
    most: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> bool {
    let mut values: Vec<f64> = Vec::new();
    let mut goes_on = true;
    while goes_on && values.len() < most {
        values.push(solver.sweep(problem, x).value);
        let n = values.len();
        if n > WINDOW && values[n - 1 - WINDOW] - values[n - 1] <= tolerance * values[n - 1] {
            break;
        }
        goes_on = go_on();
    }
    solver.settle(x);
    goes_on
}
