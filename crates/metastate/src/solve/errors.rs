//! The error measures of section 6.1 that need the data: GE, relDG, relRE, relSE.

use super::certificate::{Conjugate, DualPoint};
use super::problem::{Factors, Problem};
use crate::linalg::{Mat, Operator, Row, thin};

/// The paper's relative duality gap at `M = -lambda W / Omega°(W)`, with the search's value for `Omega°`: heuristic.
pub fn relative_duality_gap(problem: &Problem, x: &Factors, mu: &[f64], support: f64, objective: f64) -> f64 {
    let w = DualPoint { problem, a: &x.u, b: &x.v, mu };
    let none = Mat::zeros(problem.states(), 0);
    let dual = Conjugate::new(&w, &none, &none, &[]).dual_value(support);
    (objective - dual) / objective
}

/// `||Xi (U V^T - P*)||_F^2 / ||Xi P*||_F^2`.
pub fn relative_recovery_error(xi: &[f64], x: &Factors, truth: &dyn Operator) -> f64 {
    // lambda plays no part in the fidelity.
    let Ok(problem) = Problem::new(truth, xi, 1.0) else { return f64::NAN };
    2.0 * problem.objective(x).fidelity / problem.data_norm2
}

/// `||Xi (P - P*)||_F^2 / ||Xi P*||_F^2`.
pub fn relative_sampling_error(xi: &[f64], p: &dyn Operator, truth: &dyn Operator) -> f64 {
    let d = p.states();
    let truth_norm2 = truth.weighted_norm_squared(xi);
    let distance2 = thin::sum_over_rows(d, 4 * d, |i| {
        let mut row = vec![0.0; d];
        match truth.row(i) {
            Row::Dense(values) => row.copy_from_slice(values),
            other => other.for_each(d, |j, x| row[j] = x),
        }
        p.row(i).for_each(d, |j, x| row[j] -= x);
        xi[i] * xi[i] * thin::dot(&row, &row)
    });
    distance2 / truth_norm2
}
