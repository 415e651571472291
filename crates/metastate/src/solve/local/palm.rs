//! The paper's local solver: proximal alternating linearised minimisation, (5.2) and (5.3), with the theoretical step sizes
//! (5.4) or Barzilai-Borwein steps with a non-monotone search (5.5).
//!
//! One deviation, on purpose: the search as printed asks for a decrease of `eta c ||grad||^2`. At a constrained optimum the
//! gradient is not zero, so that test can never hold and the step shrinks to nothing. Here the decrease is measured by the
//! projected step, `eta ||U_next - U||^2 / c`, which vanishes exactly at stationary points.

use std::collections::VecDeque;

use super::{LocalSolver, Sweep, drop_empty_columns};
use crate::linalg::simplex::{LANES, Lane, project, project_lanes, project_weighted};
use crate::linalg::{Mat, thin, wide};
use crate::solve::kkt::Products;
use crate::solve::problem::{Factors, Frame, Problem, ratio, regularizer};

/// Values that the non-monotone search averages over.
const WINDOW: usize = 5;
/// The share of the predicted decrease that is asked for (eta).
const SUFFICIENT: f64 = 1e-4;
/// Shrinking of the step (delta).
const SHRINK: f64 = 0.5;
/// Steps are tried at most this often before the last one is taken.
const TRIES: usize = 40;
/// gamma_1 and gamma_2 of (5.4).
const SAFETY: f64 = 1.01;

/// Which of the two Barzilai-Borwein formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BbFormula {
    /// `|<S, Y>| / ||Y||^2`, the shorter one.
    First,
    /// `||S||^2 / |<S, Y>|`, the longer one.
    Second,
    /// First and second in turn.
    #[default]
    Alternating,
}

/// How steps are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StepRule {
    /// (5.5), Barzilai-Borwein.
    BarzilaiBorwein(BbFormula),
    /// (5.4); contains `lambda / eps0`, so it is correct and very slow.
    Lipschitz {
        /// The norm below which columns are removed.
        epsilon0: f64,
    },
}

/// One block's memory: the step to try next and the last values.
#[derive(Debug, Default)]
struct BlockMemory {
    step: Option<f64>,
    values: VecDeque<f64>,
}

impl BlockMemory {
    fn remember(&mut self, value: f64) {
        if self.values.len() == WINDOW {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    fn reference(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }
}

/// PALM with either step rule.
#[derive(Debug)]
pub struct Palm {
    rule: StepRule,
    iteration: usize,
    u: BlockMemory,
    v: BlockMemory,
    products: Products,
    /// F may rise within the search's window, so the lowest point is kept.
    best: Option<(f64, Factors)>,
}

/// A projected step that was accepted.
struct Accepted {
    next: Mat,
    value: f64,
    step: f64,
    gram: Mat,
}

impl Palm {
    /// A solver with the given step rule.
    #[must_use]
    pub fn new(rule: StepRule) -> Self {
        Palm { rule, iteration: 0, u: BlockMemory::default(), v: BlockMemory::default(), products: Products::default(), best: None }
    }

    /// Shrinks the step until the search is satisfied.
    fn search(
        &self,
        block: &BlockMemory,
        mut step: f64,
        current: &Mat,
        gradient: &Mat,
        project: impl Fn(&mut Mat),
        value: impl Fn(&Mat) -> (f64, Mat),
    ) -> Accepted {
        let monotone = matches!(self.rule, StepRule::Lipschitz { .. });
        let mut tries = TRIES;
        loop {
            let mut next = current.clone();
            thin::for_each_row_mut(&mut next, |i, row| row.iter_mut().zip(gradient.row(i)).for_each(|(x, g)| *x -= step * g));
            project(&mut next);
            let (value, gram) = value(&next);
            let moved = squared_distance(&next, current);
            if monotone || value <= block.reference() - SUFFICIENT * moved / step || tries == 0 {
                return Accepted { next, value, step, gram };
            }
            step *= SHRINK;
            tries -= 1;
        }
    }

    fn next_step(&self, s: (f64, f64, f64)) -> Option<f64> {
        let StepRule::BarzilaiBorwein(formula) = self.rule else { return None };
        let (ss, sy, yy) = (s.0, s.1.abs(), s.2);
        let second = match formula {
            BbFormula::First => false,
            BbFormula::Second => true,
            BbFormula::Alternating => self.iteration % 2 == 1,
        };
        let step = if second { ss / sy } else { sy / yy };
        (step.is_finite() && step > 0.0).then_some(step)
    }
}

impl LocalSolver for Palm {
    fn restart(&mut self) {
        *self = Palm::new(self.rule);
    }

    fn settle(&mut self, x: &mut Factors) {
        if let Some((_, best)) = self.best.take() {
            *x = best;
        }
    }

    fn sweep(&mut self, problem: &Problem, x: &mut Factors) -> Sweep {
        if drop_empty_columns(problem, x) {
            self.restart();
        }
        self.products.update_v(problem, x);
        let mut products = std::mem::take(&mut self.products);
        let (value, a) = self.u_block(problem, x, &products.q, &products.g);
        problem.transposed_times_u(&x.u, &mut products.b);
        let value = self.v_block(problem, x, &products.b, &a, value);
        self.products = Products { b: products.b, ..Default::default() };
        self.iteration += 1;
        if self.best.as_ref().is_none_or(|(best, _)| value < *best) {
            self.best = Some((value, x.clone()));
        }
        Sweep { value }
    }
}

impl Palm {
    /// A step in U; the objective there, and `A = U^T Xi^2 U`.
    fn u_block(&mut self, problem: &Problem, x: &mut Factors, q: &Mat, g: &Mat) -> (f64, Mat) {
        let lambda = problem.lambda;
        let v_norms = problem.v_norms(&x.v, g);

        let value_u = |u: &Mat| {
            let a = thin::weighted_gram(u, &problem.xi2);
            let fidelity = problem.fidelity_from(problem.weighted_inner(q, u), &a, g);
            (fidelity + lambda * regularizer(&thin::column_norms(u), &v_norms), a)
        };
        let gradient_u = |u: &Mat| {
            let ridge: Vec<f64> = thin::column_norms(u).iter().zip(&v_norms).map(|(n, v)| ratio(lambda * v, *n)).collect();
            let mut gradient = Mat::default();
            thin::product(u, g, &mut gradient);
            thin::for_each_row_mut(&mut gradient, |i, row| {
                let (w, q, u) = (problem.xi2[i], q.row(i), u.row(i));
                for j in 0..row.len() {
                    row[j] = w * (row[j] - q[j]) + ridge[j] * u[j];
                }
            });
            gradient
        };
        self.u.remember(value_u(&x.u).0);
        let gradient = gradient_u(&x.u);
        let step = match self.rule {
            StepRule::Lipschitz { epsilon0 } => {
                let xi_norm2: f64 = problem.xi2.iter().sum();
                1.0 / (SAFETY * (xi_norm2 * frobenius(g) + lambda / epsilon0))
            }
            StepRule::BarzilaiBorwein(_) => {
                self.u.step.unwrap_or_else(|| 1.0 / (problem.xi2.iter().fold(0.0f64, |m, w| m.max(*w)) * frobenius(g)))
            }
        };
        let taken = self.search(&self.u, step, &x.u, &gradient, project_rows, value_u);
        if let StepRule::BarzilaiBorwein(_) = self.rule {
            let change = change_pairs(&taken.next, &x.u, &gradient_u(&taken.next), &gradient);
            self.u.step = self.next_step(change).or(Some(taken.step));
        }
        x.u = taken.next;
        (taken.value, taken.gram)
    }

    /// A step in V from a point whose objective is `value`; the objective after it.
    fn v_block(&mut self, problem: &Problem, x: &mut Factors, b: &Mat, a: &Mat, value: f64) -> f64 {
        let lambda = problem.lambda;
        let u_norms = problem.u_norms(&x.u);
        let value_v = |v: &Mat| {
            let g = thin::gram(v);
            let fidelity = problem.fidelity_from(thin::inner(b, v), a, &g);
            (fidelity + lambda * regularizer(&u_norms, &problem.v_norms(v, &g)), g)
        };
        let gradient_v = |v: &Mat| {
            let ridge: Vec<f64> = thin::column_norms(v).iter().zip(&u_norms).map(|(n, u)| ratio(lambda * u, *n)).collect();
            let mut gradient = Mat::default();
            thin::product(v, a, &mut gradient);
            thin::for_each_row_mut(&mut gradient, |i, row| {
                let (b, v) = (b.row(i), v.row(i));
                for j in 0..row.len() {
                    row[j] += ridge[j] * v[j] - b[j];
                }
            });
            gradient
        };
        self.v.remember(value);
        let gradient = gradient_v(&x.v);
        let step = match self.rule {
            StepRule::Lipschitz { .. } => 1.0 / (SAFETY * (frobenius(a) + lambda * (problem.cols() as f64).sqrt() * frobenius(&x.u))),
            StepRule::BarzilaiBorwein(_) => self.v.step.unwrap_or_else(|| 1.0 / frobenius(a)),
        };
        let taken = self.search(&self.v, step, &x.v, &gradient, project_columns, value_v);
        if let StepRule::BarzilaiBorwein(_) = self.rule {
            let change = change_pairs(&taken.next, &x.v, &gradient_v(&taken.next), &gradient);
            self.v.step = self.next_step(change).or(Some(taken.step));
        }
        x.v = taken.next;
        taken.value
    }
}

fn frobenius(m: &Mat) -> f64 {
    thin::inner(m, m).sqrt()
}

fn squared_distance(a: &Mat, b: &Mat) -> f64 {
    thin::sum_over_rows(a.rows(), 3 * a.cols(), |i| a.row(i).iter().zip(b.row(i)).map(|(x, y)| (x - y) * (x - y)).sum::<f64>())
}

/// `<S, S>`, `<S, Y>`, `<Y, Y>` with S the change of the variable and Y that of the gradient.
fn change_pairs(next: &Mat, current: &Mat, gradient_next: &Mat, gradient: &Mat) -> (f64, f64, f64) {
    let part = |rows: std::ops::Range<usize>| {
        let mut sums = (0.0, 0.0, 0.0);
        for i in rows {
            for j in 0..next.cols() {
                let (s, y) = (next[(i, j)] - current[(i, j)], gradient_next[(i, j)] - gradient[(i, j)]);
                sums = (sums.0 + s * s, sums.1 + s * y, sums.2 + y * y);
            }
        }
        sums
    };
    thin::sum_blocks(next.rows(), 8 * next.cols(), part, |a, b| *a = (a.0 + b.0, a.1 + b.1, a.2 + b.2)).unwrap_or((0.0, 0.0, 0.0))
}

/// Each row onto the simplex, eight rows at a time.
pub(crate) fn project_rows(m: &mut Mat) {
    let s = m.cols();
    let work = 16 * m.as_slice().len();
    thin::for_each_chunk_mut(m.as_mut_slice(), thin::BLOCK * s, work, |_, rows| project_some_rows(rows, s));
}

wide! {
    fn project_some_rows<'w>(rows: &'w mut [f64], s: usize) {
        let mut lanes: Vec<Lane> = vec![[0.0; LANES]; s];
        for group in rows.chunks_mut(LANES * s) {
            let present = group.len() / s;
            for (j, lane) in lanes.iter_mut().enumerate() {
                for k in 0..LANES {
                    lane[k] = group[k.min(present - 1) * s + j];
                }
            }
            project_lanes(&mut lanes);
            for k in 0..present {
                for (j, lane) in lanes.iter().enumerate() {
                    group[k * s + j] = lane[k];
                }
            }
        }
    }
}

/// Each row onto the simplex of its total.
pub(crate) fn project_rows_in(m: &mut Mat, frame: &Frame) {
    if frame.is_plain() {
        return project_rows(m);
    }
    thin::for_each_row_mut(m, |i, row| row.iter_mut().for_each(|x| *x /= frame.totals[i]));
    project_rows(m);
    thin::scale_rows(m, &frame.totals);
}

/// Each column onto `{v >= 0, sum_j measure_j v_j = 1}`.
pub(crate) fn project_columns_in(m: &mut Mat, frame: &Frame) {
    if frame.is_plain() {
        return project_columns(m);
    }
    let mut columns = m.transposed();
    let (n, work) = (columns.cols(), 16 * columns.as_slice().len());
    thin::for_each_chunk_mut(columns.as_mut_slice(), n, work, |_, column| {
        project_weighted(column, &frame.measure, 1.0, &mut f64::INFINITY.clone());
    });
    columns.transpose_into(m);
}

/// Each column onto the simplex.
pub(crate) fn project_columns(m: &mut Mat) {
    let mut columns = m.transposed();
    let d = columns.cols();
    let work = 16 * columns.as_slice().len();
    thin::for_each_chunk_mut(columns.as_mut_slice(), d, work, |_, column| project(column, &mut f64::INFINITY.clone()));
    columns.transpose_into(m);
}
