//! The default local solver: exact block majorisation with Anderson acceleration.
//!
//! One sweep, V fixed: `||U_j|| <= (||U_j||^2 / n_j + n_j) / 2` with `n_j` the present norm, so the majorised problem falls
//! into one strongly convex quadratic a row on the simplex, with Hessian `Xi_i^2 G + lambda diag(||V_j|| / n_j)`, and step
//! sizes of its own. It needs P only through `Q = P V`. Then U fixed: columns of V one after the other, each by one exact
//! projection. Both blocks lower F, so a sweep does; an accelerated point is kept only if F after it is no higher than
//! after the plain one. F never rises.
//!
//! With prices of directions `||L U_j||^2 = ||U_j||^2 - (1 - delta^2) ||Q^T U_j||^2`; the second part is concave, so its tangent at the present point lies above it: the
//! majorised problem gets a linear term, `lambda ||R V_j|| / ||L U_j|| (1 - delta^2) Q Q^T U_j`, and stays one quadratic a row. V likewise.

use std::collections::VecDeque;

use super::palm::{project_columns_in, project_rows_in};
use super::{LocalSolver, Sweep, drop_empty_columns};
use crate::linalg::simplex::{LANES, Lane, project, project_lanes_scaled, project_weighted};
use crate::linalg::{Mat, small, thin, wide};
use crate::solve::kkt::Products;
use crate::solve::problem::{Factors, Problem, regularizer};

/// Rounds of majorisation a U-block (the norms n_j are refreshed between them).
const ROUNDS: usize = 2;
/// Accelerated projected-gradient steps a round, at most.
const INNER_STEPS: usize = 12;
/// Passes over the columns of V a sweep.
const COLUMN_PASSES: usize = 2;
/// Inner steps end when no membership moves by more than this: rounding.
const STILL: f64 = 1e-13;
/// In the acceleration, directions below this share of the largest eigenvalue are lost in rounding, ...
const LOST: f64 = 1e-9;
/// ... and weights as large as this combine nothing but rounding.
const LARGEST_WEIGHT: f64 = 1e6;
/// Bytes that the acceleration may hold.
const HISTORY_BYTES: usize = 1 << 28;

/// State kept from sweep to sweep.
#[derive(Debug)]
pub struct Fast {
    memory: usize,
    products: Products,
    history: History,
    value: Option<f64>,
    /// Thresholds of the last projection of each column of V: the next one starts there.
    thresholds: Vec<f64>,
    plain: Factors,
    transposed: (Mat, Mat),
}

impl Fast {
    /// `memory` points are combined by the acceleration; 0 switches it off.
    #[must_use]
    pub fn new(memory: usize) -> Self {
        Fast {
            memory,
            products: Products::default(),
            history: History::default(),
            value: None,
            thresholds: Vec::new(),
            plain: Factors::default(),
            transposed: Default::default(),
        }
    }

    /// One plain sweep from `x`; returns F after it.
    fn sweep_blocks(&mut self, problem: &Problem, x: &mut Factors) -> f64 {
        self.products.update_v(problem, x);
        update_u(problem, x, &self.products);
        self.products.update_u(problem, x);
        self.update_v(problem, x)
    }

    /// Exact cyclic minimisation over the columns of V, and F at the end of it.
    fn update_v(&mut self, problem: &Problem, x: &mut Factors) -> f64 {
        let s = x.rank();
        let (a, lambda) = (&self.products.a, problem.lambda);
        let u_norms = problem.u_norms(&x.u);
        let mut v_norms = problem.v_norms(&x.v, &self.products.g);
        let (frame, metric) = (&problem.frame, problem.frame.metric.as_deref());
        let (vt, bt) = (&mut self.transposed.0, &mut self.transposed.1);
        x.v.transpose_into(vt);
        self.products.b.transpose_into(bt);
        self.thresholds.resize(s, 0.0);
        let mut column = vec![0.0; problem.cols()];
        for _ in 0..COLUMN_PASSES {
            for j in 0..s {
                if v_norms[j] <= 0.0 {
                    continue;
                }
                let curvature = a[(j, j)] + lambda * u_norms[j] / v_norms[j];
                if curvature <= 0.0 {
                    continue;
                }
                residual_column(&mut column, bt.row(j), vt, a.row(j), j, 1.0 / curvature);
                if let Some(metric) = metric {
                    // The tangent of the concave part of the norm, at the present column.
                    let inside = metric.right.inside(&Mat::from_fn(column.len(), 1, |i, _| vt[(j, i)]));
                    let share = metric.right.saved() * lambda * u_norms[j] / v_norms[j] / curvature;
                    column.iter_mut().zip(inside.as_slice()).for_each(|(x, q)| *x += share * q);
                }
                match frame.is_plain() {
                    true => project(&mut column, &mut self.thresholds[j]),
                    false => project_weighted(&mut column, &frame.measure, 1.0, &mut self.thresholds[j]),
                }
                vt.row_mut(j).copy_from_slice(&column);
                v_norms[j] =
                    thin::sum_blocks(column.len(), 2, |r| thin::dot(&column[r.clone()], &column[r]), |a, b| *a += b).unwrap_or(0.0).sqrt();
                if let Some(metric) = metric {
                    v_norms[j] = metric.right.norms_squared(&Mat::from_fn(column.len(), 1, |i, _| column[i]))[0].sqrt();
                }
            }
        }
        vt.transpose_into(&mut x.v);
        let g = thin::gram(&x.v);
        let cross = thin::inner(&self.products.b, &x.v);
        let fidelity = problem.fidelity_from(cross, a, &g);
        fidelity + lambda * regularizer(&u_norms, &problem.v_norms(&x.v, &g))
    }
}

impl LocalSolver for Fast {
    fn restart(&mut self) {
        self.history.clear();
        self.value = None;
        self.thresholds.clear();
    }

    fn sweep(&mut self, problem: &Problem, x: &mut Factors) -> Sweep {
        if drop_empty_columns(problem, x) {
            self.restart();
        }
        let bytes = 16 * (x.u.as_slice().len() + x.v.as_slice().len()).max(1);
        let memory = self.memory.min(HISTORY_BYTES / bytes);
        let candidate = (memory > 0).then(|| self.history.propose(problem, &self.products)).flatten();
        let before = self.value.unwrap_or(f64::INFINITY);
        let (from, value) = match candidate {
            Some(mut point) => {
                self.plain.clone_from(x);
                let from = point.clone();
                let value = self.sweep_blocks(problem, &mut point);
                if value <= before {
                    *x = point;
                    (from, value)
                } else {
                    // The combination raised the objective: drop it and go on from the plain point.
                    self.history.clear();
                    let from = self.plain.clone();
                    let value = self.sweep_blocks(problem, x);
                    (from, value)
                }
            }
            None => {
                let from = if memory > 0 { x.clone() } else { Factors::default() };
                let value = self.sweep_blocks(problem, x);
                (from, value)
            }
        };
        if memory > 0 {
            self.history.push(problem, from, x, memory);
        }
        self.value = Some(value);
        Sweep { value }
    }
}

/// `out = (b - sum_{k != j} a_k V_k) * scale`, the unconstrained minimiser for column j.
fn residual_column(out: &mut [f64], b: &[f64], vt: &Mat, a: &[f64], j: usize, scale: f64) {
    let work = 2 * out.len() * a.len();
    thin::for_each_chunk_mut(out, 4 * thin::BLOCK, work, |block, out| {
        residual_part(out, block * 4 * thin::BLOCK, b, vt, a, j, scale);
    });
}

wide! {
    /// The entries of it from `start` on.
    fn residual_part<'w>(out: &'w mut [f64], start: usize, b: &'w [f64], vt: &'w Mat, a: &'w [f64], j: usize, scale: f64) {
        let span = start..start + out.len();
        out.copy_from_slice(&b[span.clone()]);
        for (k, &ak) in a.iter().enumerate() {
            if k != j && ak != 0.0 {
                for (o, v) in out.iter_mut().zip(&vt.row(k)[span.clone()]) {
                    *o -= ak * v;
                }
            }
        }
        out.iter_mut().for_each(|o| *o *= scale);
    }
}

/// The U-block: rows in groups of [`LANES`], each lane one row.
fn update_u(problem: &Problem, x: &mut Factors, products: &Products) {
    let s = x.rank();
    if s < 2 {
        return; // one column: the row is 1
    }
    let v_norms = problem.v_norms(&x.v, &products.g);
    // G has no negative entry, so G <= diag(row sums): a step size of its own for every entry of every row.
    let reach: Vec<f64> = (0..s).map(|j| products.g.row(j).iter().sum()).collect();
    for _ in 0..ROUNDS {
        let u_norms = problem.u_norms(&x.u);
        // A column that the round before emptied stays empty: its ridge is as large as numbers go, but finite.
        let ridge: Vec<f64> = (0..s).map(|j| (problem.lambda * v_norms[j] / u_norms[j].max(f64::MIN_POSITIVE)).min(f64::MAX)).collect();
        // With prices, the tangent of the concave part joins Q = P V (all rows weigh one then).
        let tilted = problem.frame.metric.as_deref().map(|metric| {
            let (inside, saved) = (metric.left.inside(&x.u), metric.left.saved());
            Mat::from_fn(inside.rows(), s, |i, j| products.q[(i, j)] + saved * ridge[j] * inside[(i, j)])
        });
        let q = tilted.as_ref().unwrap_or(&products.q);
        let block_of_u = BlockOfU { g: &products.g, q, xi2: &problem.xi2, totals: &problem.frame.totals, ridge: &ridge, reach: &reach };
        let work = 2 * INNER_STEPS * s * s * problem.rows();
        thin::for_each_chunk_mut(x.u.as_mut_slice(), thin::BLOCK * s, work, |block, rows| {
            solve_rows(rows, block * thin::BLOCK, &block_of_u);
        });
    }
}

/// What the rows of U are solved with: `G`, `Q`, the weights and totals of the rows, the ridge and the reach of each column.
#[derive(Clone, Copy)]
struct BlockOfU<'a> {
    g: &'a Mat,
    q: &'a Mat,
    xi2: &'a [f64],
    totals: &'a [f64],
    ridge: &'a [f64],
    reach: &'a [f64],
}

wide! {
    /// The rows from `first` on.
    fn solve_rows<'w>(rows: &'w mut [f64], first: usize, block: &'w BlockOfU<'w>) {
        let s = block.ridge.len();
        let mut lanes = RowLanes::new(s);
        for (group, rows) in rows.chunks_mut(LANES * s).enumerate() {
            lanes.solve(rows, first + group * LANES, block);
        }
    }
}

/// Scratch for eight rows of U.
struct RowLanes {
    x: Vec<Lane>,
    y: Vec<Lane>,
    next: Vec<Lane>,
    q: Vec<Lane>,
    step: Vec<Lane>,
}

impl RowLanes {
    fn new(s: usize) -> Self {
        let zeros = || vec![[0.0; LANES]; s];
        RowLanes { x: zeros(), y: zeros(), next: zeros(), q: zeros(), step: zeros() }
    }

    /// Minimises `1/2 Xi_i^2 u^T G u - Xi_i^2 q^T u + 1/2 sum_j ridge_j u_j^2` over the simplex, for up to eight rows at once. A row with another total is divided by it, and q with it.
    #[inline(always)]
    fn solve(&mut self, rows: &mut [f64], first: usize, block: &BlockOfU) {
        let BlockOfU { g, q, xi2, totals, ridge, reach } = *block;
        let s = ridge.len();
        let present = rows.len() / s;
        let mut weight = [1.0; LANES];
        for k in 0..LANES {
            // Lanes beyond the last row repeat it; their result is not written back.
            let row = k.min(present - 1);
            weight[k] = xi2[first + row];
            let (q, total) = (q.row(first + row), totals[first + row]);
            for j in 0..s {
                self.x[j][k] = rows[row * s + j] / total;
                self.q[j][k] = q[j] / total;
            }
        }
        for j in 0..s {
            for k in 0..LANES {
                self.step[j][k] = 1.0 / (weight[k] * reach[j] + ridge[j]);
            }
        }
        self.y.copy_from_slice(&self.x);
        let mut momentum = [1.0; LANES];
        for _ in 0..INNER_STEPS {
            for j in 0..s {
                let mut product = [0.0; LANES];
                for (gain, y) in g.row(j).iter().zip(&self.y) {
                    for k in 0..LANES {
                        product[k] += gain * y[k];
                    }
                }
                let (y, q) = (&self.y[j], &self.q[j]);
                for k in 0..LANES {
                    let gradient = weight[k] * (product[k] - q[k]) + ridge[j] * y[k];
                    self.next[j][k] = y[k] - self.step[j][k] * gradient;
                }
            }
            project_lanes_scaled(&mut self.next, &self.step);
            // Restart a lane whose momentum points in a direction in which the objective rises: (y - next) . (next - x) > 0 in the metric of the steps.
            let (mut uphill, mut moved) = ([0.0; LANES], [0.0; LANES]);
            for j in 0..s {
                for k in 0..LANES {
                    let change = self.next[j][k] - self.x[j][k];
                    uphill[k] += (self.y[j][k] - self.next[j][k]) * change / self.step[j][k];
                    moved[k] += change.abs();
                }
            }
            let mut beta = [0.0; LANES];
            let mut largest_move: f64 = 0.0;
            for k in 0..LANES {
                let t: f64 = if uphill[k] > 0.0 { 1.0 } else { momentum[k] };
                let grown: f64 = 0.5 * (1.0 + (1.0 + 4.0 * t * t).sqrt());
                beta[k] = if uphill[k] > 0.0 { 0.0 } else { (t - 1.0) / grown };
                momentum[k] = grown;
                largest_move = largest_move.max(moved[k]);
            }
            for j in 0..s {
                for k in 0..LANES {
                    let next = self.next[j][k];
                    self.y[j][k] = next + beta[k] * (next - self.x[j][k]);
                    self.x[j][k] = next;
                }
            }
            if largest_move < STILL {
                break;
            }
        }
        for (k, row) in rows.chunks_exact_mut(s).enumerate() {
            for j in 0..s {
                row[j] = self.x[j][k] * totals[first + k];
            }
        }
    }
}

/// Anderson acceleration of the map "one sweep": keeps the last sweeps' starts and ends, and combines the ends so that the
/// combined step is as short as possible in the metric of the data term's curvature.
#[derive(Debug, Default)]
struct History {
    sweeps: VecDeque<PastSweep>,
}

/// A sweep that led from `end - step` to `end`.
#[derive(Debug)]
struct PastSweep {
    step: Factors,
    end: Factors,
    /// `<Xi^2 step_u, other step_u>` and `<step_v, other step_v>` with the sweeps before it, oldest first, itself last.
    inner: VecDeque<(f64, f64)>,
}

impl History {
    fn clear(&mut self) {
        self.sweeps.clear();
    }

    /// Oldest first; each new sweep costs one inner product with every other.
    fn push(&mut self, problem: &Problem, from: Factors, to: &Factors, memory: usize) {
        if from.rank() != to.rank() || self.sweeps.back().is_some_and(|last| last.end.rank() != to.rank()) {
            self.sweeps.clear();
        }
        if from.rank() != to.rank() {
            return;
        }
        while self.sweeps.len() > memory {
            self.sweeps.pop_front();
            self.sweeps.iter_mut().for_each(|sweep| {
                sweep.inner.pop_front();
            });
        }
        let mut step = from;
        subtract_from(&to.u, &mut step.u);
        subtract_from(&to.v, &mut step.v);
        let inner = |other: &Factors| (problem.weighted_inner(&step.u, &other.u), thin::inner(&step.v, &other.v));
        let mut products: VecDeque<(f64, f64)> = self.sweeps.iter().map(|past| inner(&past.step)).collect();
        products.push_back(inner(&step));
        self.sweeps.push_back(PastSweep { step, end: to.clone(), inner: products });
    }

    /// `end_k - sum_i gamma_i (end_{i+1} - end_i)`, gamma minimising the combined step, made feasible again.
    fn propose(&self, problem: &Problem, products: &Products) -> Option<Factors> {
        let m = self.sweeps.len().checked_sub(1).filter(|m| *m >= 1)?;
        let s = self.sweeps[m].end.rank();
        let (on_u, on_v) = (trace(&products.g) / s as f64, trace(&products.a) / s as f64);
        let weights = minimal_combination(m + 1, |i, j| {
            let (u, v) = self.sweeps[i.max(j)].inner[i.min(j)];
            on_u * u + on_v * v
        })?;
        let mut point = Factors { u: Mat::zeros(problem.rows(), s), v: Mat::zeros(problem.cols(), s) };
        for (past, c) in self.sweeps.iter().zip(&weights) {
            add_scaled(&mut point.u, &past.end.u, *c);
            add_scaled(&mut point.v, &past.end.v, *c);
        }
        project_rows_in(&mut point.u, &problem.frame);
        project_columns_in(&mut point.v, &problem.frame);
        Some(point)
    }
}

fn trace(m: &Mat) -> f64 {
    (0..m.rows()).map(|j| m[(j, j)]).sum()
}

/// Minimiser of `c^T S c` over `sum c = 1`, through differences to the last entry and a least-squares solve that ignores
/// directions lost in rounding.
fn minimal_combination(n: usize, s: impl Fn(usize, usize) -> f64) -> Option<Vec<f64>> {
    let last = n - 1;
    // Differences e_i = step_{i+1} - step_i; scale each to unit length.
    let m = n - 1;
    let difference = |i: usize, j: usize| s(i + 1, j + 1) - s(i + 1, j) - s(i, j + 1) + s(i, j);
    let norms: Vec<f64> = (0..m).map(|i| difference(i, i).max(0.0).sqrt()).collect();
    if norms.iter().any(|n| n.is_nan() || *n <= 0.0) {
        return None;
    }
    let normal = Mat::from_fn(m, m, |i, j| difference(i, j) / (norms[i] * norms[j]));
    let right: Vec<f64> = (0..m).map(|i| (s(i + 1, last) - s(i, last)) / norms[i]).collect();
    let (values, vectors) = small::symmetric_eigen(&normal)?;
    let largest = *values.last()?;
    let mut gamma = vec![0.0; m];
    for k in 0..m {
        if values[k] > LOST * largest {
            let along: f64 = (0..m).map(|i| vectors[(i, k)] * right[i]).sum::<f64>() / values[k];
            for i in 0..m {
                gamma[i] += along * vectors[(i, k)] / norms[i];
            }
        }
    }
    // end_k - sum gamma_i (end_{i+1} - end_i).
    let mut weights = vec![0.0; n];
    weights[last] = 1.0;
    for i in 0..m {
        weights[i + 1] -= gamma[i];
        weights[i] += gamma[i];
    }
    weights.iter().all(|w| w.is_finite() && w.abs() < LARGEST_WEIGHT).then_some(weights)
}

/// `out = a - out`.
fn subtract_from(a: &Mat, out: &mut Mat) {
    thin::for_each_row_mut(out, |i, row| row.iter_mut().zip(a.row(i)).for_each(|(o, a)| *o = a - *o));
}

fn add_scaled(out: &mut Mat, a: &Mat, scale: f64) {
    thin::for_each_row_mut(out, |i, row| row.iter_mut().zip(a.row(i)).for_each(|(o, a)| *o += scale * a));
}
