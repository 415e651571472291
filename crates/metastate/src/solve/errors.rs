//! The error measures of section 6.1 that need the data: GE, relDG, relRE, relSE.

use super::problem::{Factors, Problem};
use crate::linalg::{Mat, Operator, Row, thin};

/// The paper's relative duality gap at `M = -lambda W / Omega°(W)`, with the search's value for `Omega°`: heuristic. With
/// `-lambda W = -mu 1^T + Xi^2 (X - P)` and `z = 1 / Omega°`, `g*(z M) = z <M, P> + z^2/2 ||Xi (X - P)||^2`, because `X 1 = P 1 = 1`.
/// Where the search found nothing positive, M = 0 is taken, whose dual value is 0.
#[must_use]
pub fn relative_duality_gap(problem: &Problem, x: &Factors, mu: &[f64], support: f64, objective: f64) -> f64 {
    let mut q = Mat::default();
    problem.times_v(&x.v, &mut q);
    let cross = problem.weighted_inner(&q, &x.u);
    let linear = cross - problem.data_norm2 - mu.iter().zip(&problem.frame.totals).map(|(mu, t)| mu * t).sum::<f64>();
    let fidelity = problem.published_objective(x).fidelity;
    let z = if support > 0.0 { 1.0 / support } else { 0.0 };
    (objective + z * linear + z * z * fidelity) / objective
}

/// `||Xi (U V^T - P*)||_F^2 / ||Xi P*||_F^2`.
pub fn relative_recovery_error(weights: &[f64], x: &Factors, truth: &dyn Operator) -> f64 {
    // lambda plays no part in the fidelity.
    let Ok(problem) = Problem::new(truth, weights, 1.0) else { return f64::NAN };
    2.0 * problem.objective(x).fidelity / problem.data_norm2
}

/// `||Xi (P - P*)||_F^2 / ||Xi P*||_F^2`.
pub fn relative_sampling_error(weights: &[f64], p: &dyn Operator, truth: &dyn Operator) -> f64 {
    let (m, n) = (p.rows(), p.cols());
    let truth_norm2 = truth.weighted_norm_squared(weights);
    let distance2 = thin::sum_over_rows(m, 4 * n, |i| {
        let mut row = vec![0.0; n];
        match truth.row(i) {
            Row::Dense(values) => row.copy_from_slice(values),
            other => other.for_each(n, |j, x| row[j] = x),
        }
        p.row(i).for_each(n, |j, x| row[j] -= x);
        weights[i] * weights[i] * thin::dot(&row, &row)
    });
    distance2 / truth_norm2
}
