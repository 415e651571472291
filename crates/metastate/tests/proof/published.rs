//! The one place that knows how a solution publishes what it claims.

use metastate::solve::{Problem, Solution};
use metastate::verify::{Claimed, Recomputed, Reported, recompute};
use metastate::{Error, Mat};

/// The proven lower bound; `None` where nothing was proven.
pub fn lower_bound(solution: &Solution) -> Option<f64> {
    solution.proof.as_ref().map(|proven| proven.lower_bound())
}

/// What the bound rests on, in words.
pub fn proof(solution: &Solution) -> String {
    solution.proof.as_ref().map_or("not proven".into(), |proven| proven.method().as_str().into())
}

/// Every number that the solution states.
pub fn claims(solution: &Solution) -> Reported {
    Reported {
        rank: Some(solution.rank()),
        fidelity: Some(solution.objective.fidelity),
        regularizer: Some(solution.objective.regularizer),
        objective: Some(solution.objective.value),
        rel_le1: Some(solution.errors.rel_le1),
        rel_le2: Some(solution.errors.rel_le2),
        ge: Some(solution.errors.ge),
        rel_dg: Some(solution.errors.rel_dg),
        lower_bound: lower_bound(solution),
        certified_gap: solution.certified_gap(),
        objective_of_one: Some(solution.objective_of_one),
        explained_gap: solution.explained_gap(),
        rel_re: None,
        rel_se: None,
    }
}

/// All figures of the factors `(u, v)`, computed anew by the checker, with the solution's witness.
pub fn checked(problem: &Problem, u: &Mat, v: &Mat, solution: &Solution) -> Result<Recomputed, Error> {
    recompute(
        &Claimed { p: problem.p, weights: problem.weights, lambda: problem.lambda, u, v },
        Some(solution.witness.for_checking()),
        None,
        0,
    )
}
