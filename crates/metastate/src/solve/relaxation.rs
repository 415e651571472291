//! The relaxation behind the certificate. `Omega(X) >= ||X||_*` (every nonnegative atom is an atom of the nuclear norm), so
//!
//! `min { 1/2 ||Xi (P - X)||_F^2 + lambda ||X||_* : X 1 = 1 }`
//!
//! bounds the optimum of the stated problem from below. It is solved here in balanced factors `X = A B^T`,
//! `||X||_* = min 1/2 (||A||^2 + ||B||^2)`, by alternating exact minimisation, `O(nnz k + (m + n) k^2)` a sweep, no `m x n` object.
//! Its near-solutions give the dual points that `proof` turns into proven bounds, and good starts for the solver:
//! on planted chains the two optima agree to about 1e-5. With prices of directions it is `||L X R||_*`, and all goes through with two divisions where there was one.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::metric::{Metric, Side};
use super::problem::Problem;
use super::steer::{self, Steering};
use crate::linalg::{Mat, small, thin};
use crate::proof::point::beside;

/// Singular values below this share of the largest are dropped.
const NEGLIGIBLE: f64 = 1e-9;

/// Eigenvalues of a Gram matrix below this share of the largest are taken for zero.
const NUMERICAL_RANGE: f64 = 1e-20;

/// A point of the relaxation: `X = A B^T`, `X 1 = 1`, and the multipliers mu of that constraint.
#[derive(Debug, Clone, Default)]
pub struct Relaxation {
    /// `m x k`.
    pub a: Mat,
    /// `n x k`, orthogonal columns.
    pub b: Mat,
    /// One multiplier a row: `grad g(X) B - mu (B^T 1)^T + lambda A = 0`.
    pub mu: Vec<f64>,
    /// Singular values of X at the last balanced point.
    pub spectrum: Vec<f64>,
    /// `1/2 ||Xi (P - X)||^2 + lambda/2 (||A||^2 + ||B||^2)`: no less than the relaxation's optimum.
    pub value: f64,
}

impl Relaxation {
    /// Starts from the row space spanned by the columns of `b` (`n x k`).
    #[must_use]
    pub fn from_row_space(problem: &Problem, b: Mat) -> Self {
        let mut x = Relaxation { b, ..Default::default() };
        x.update_a(problem);
        x
    }

    /// Number of columns.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.b.cols()
    }

    /// One sweep: A, B, balance, A. F of the relaxation does not rise.
    pub fn sweep(&mut self, problem: &Problem) {
        self.update_b(problem);
        self.balance(problem);
        self.update_a(problem);
    }

    /// Adds directions to the row space; the next sweep gives them their weight.
    pub fn append(&mut self, problem: &Problem, directions: &Mat, length: f64) {
        let k = self.b.cols();
        self.b =
            Mat::from_fn(self.b.rows(), k + directions.cols(), |i, j| if j < k { self.b[(i, j)] } else { length * directions[(i, j - k)] });
        self.update_a(problem);
    }

    /// For each row, `min 1/2 Xi_i^2 ||p - B a||^2 + lambda/2 ||a||^2` subject to `(B^T 1) . a = 1`: in the basis where
    /// `B^T B` is diagonal this is a division an entry and one multiplier a row.
    fn update_a(&mut self, problem: &Problem) {
        rotate_to_diagonal(&mut self.b);
        let k = self.b.cols();
        // A is made anew, in the place of the old one.
        let mut q = std::mem::take(&mut self.a);
        problem.times_v(&self.b, &mut q);
        let lambda = problem.lambda;
        let curvature: Vec<f64> = thin::column_norms(&self.b).iter().map(|n| n * n).collect();
        let sums = problem.frame.measured(&self.b);
        if let Some(metric) = problem.frame.metric.clone() {
            return self.update_priced_a(problem, &metric, q, &curvature, &sums);
        }
        self.mu = vec![0.0; problem.rows()];
        // <Xi^2 Q, A> comes out on the way, block by block.
        let rows_of_blocks = self.mu.par_chunks_mut(thin::BLOCK).zip(q.as_mut_slice().par_chunks_mut(thin::BLOCK * k));
        let cross: Vec<f64> = rows_of_blocks
            .enumerate()
            .map(|(block, (mus, rows))| {
                let mut cross = 0.0;
                for (i, (mu, row)) in mus.iter_mut().zip(rows.chunks_exact_mut(k)).enumerate() {
                    let w = problem.xi2[block * thin::BLOCK + i];
                    let (mut at, mut slope) = (0.0, 0.0);
                    for l in 0..k {
                        let scale = 1.0 / (w * curvature[l] + lambda);
                        at += sums[l] * w * row[l] * scale;
                        slope += sums[l] * sums[l] * scale;
                    }
                    *mu = (problem.frame.totals[block * thin::BLOCK + i] - at) / slope;
                    for l in 0..k {
                        let q = row[l];
                        row[l] = (w * q + *mu * sums[l]) / (w * curvature[l] + lambda);
                        cross += w * q * row[l];
                    }
                }
                cross
            })
            .collect();
        self.a = q;
        let gram = thin::weighted_gram(&self.a, &problem.xi2);
        let fit: f64 = (0..k).map(|l| gram[(l, l)] * curvature[l]).sum();
        let lengths = thin::inner(&self.a, &self.a) + curvature.iter().sum::<f64>();
        self.value = 0.5 * (problem.data_norm2 + fit + lambda * lengths) - cross.iter().sum::<f64>();
    }

    /// With A fixed, B is a ridge regression with the column sums held (`A b = 1` determines them).
    fn update_b(&mut self, problem: &Problem) {
        let frame = &problem.frame;
        let mut sums = frame.measured(&self.b);
        let gram = thin::weighted_gram(&self.a, &problem.xi2);
        let Some((values, vectors)) = small::symmetric_eigen(&gram) else { return };
        thin::turn(&mut self.a, &vectors);
        sums = (0..sums.len()).map(|l| (0..sums.len()).map(|m| sums[m] * vectors[(m, l)]).sum()).collect();
        let mut b = std::mem::take(&mut self.b);
        problem.transposed_times_u(&self.a, &mut b);
        if let Some(metric) = &frame.metric {
            self.b = priced_b(&metric.right, &b, &frame.measure, &values, problem.lambda, &sums);
            return;
        }
        let n = frame.squares().1;
        let totals = frame.measured(&b);
        let curvature: Vec<f64> = values.iter().map(|v| v.max(0.0) + problem.lambda).collect();
        let shift: Vec<f64> = (0..sums.len()).map(|l| (totals[l] - sums[l] * curvature[l]) / n).collect();
        thin::for_each_row_mut(&mut b, |j, row| {
            for l in 0..row.len() {
                row[l] = (row[l] - shift[l] * frame.measure[j]) / curvature[l];
            }
        });
        self.b = b;
    }

    /// A with prices of directions, all rows weighing one: `(g_l + lambda L^2) a_l = (P B)_l + s_l mu` for each column l, `s = B^T measure`. `(g + lambda L^2)^-1` is `1 / (g + lambda)` off the
    /// span of Q and `1 / (g + lambda delta^2)` on it, so mu follows from the totals on either part by one division.
    fn update_priced_a(&mut self, problem: &Problem, metric: &Metric, q: Mat, curvature: &[f64], sums: &[f64]) {
        let (side, lambda, k) = (&metric.left, problem.lambda, curvature.len());
        let delta2 = side.delta() * side.delta();
        let off: Vec<f64> = curvature.iter().map(|g| 1.0 / (g + lambda)).collect();
        let on: Vec<f64> = curvature.iter().map(|g| 1.0 / (g + lambda * delta2)).collect();
        let solve = |right: &Mat| {
            let inside = side.inside(right);
            Mat::from_fn(right.rows(), k, |i, l| off[l] * (right[(i, l)] - inside[(i, l)]) + on[l] * inside[(i, l)])
        };
        let first = solve(&q);
        let missing = Mat::from_fn(q.rows(), 1, |i, _| problem.frame.totals[i] - thin::dot(first.row(i), sums));
        let inside = side.inside(&missing);
        let slope = |by: &[f64]| (0..k).map(|l| sums[l] * sums[l] * by[l]).sum::<f64>();
        let (slope_off, slope_on) = (slope(&off), slope(&on));
        self.mu = (0..q.rows()).map(|i| (missing[(i, 0)] - inside[(i, 0)]) / slope_off + inside[(i, 0)] / slope_on).collect();
        self.a = solve(&Mat::from_fn(q.rows(), k, |i, l| q[(i, l)] + self.mu[i] * sums[l]));
        let cross = thin::inner(&q, &self.a);
        let gram = thin::gram(&self.a);
        let fit: f64 = (0..k).map(|l| gram[(l, l)] * curvature[l]).sum();
        let lengths = side.norms_squared(&self.a).iter().sum::<f64>() + metric.right.norms_squared(&self.b).iter().sum::<f64>();
        self.value = 0.5 * (problem.data_norm2 + fit + lambda * lengths) - cross;
    }

    /// Singular value decomposition of `A B^T` through the Gram matrices, split evenly between the factors.
    fn balance(&mut self, problem: &Problem) {
        let (a, b) = match problem.frame.metric.as_deref() {
            None => (thin::gram(&self.a), thin::gram(&self.b)),
            Some(metric) => (thin::gram(&metric.left.times(&self.a)), thin::gram(&metric.right.times(&self.b))),
        };
        let (Some((left, left_inverse)), Some((right, right_inverse))) = (gram_root(&a), gram_root(&b)) else {
            return;
        };
        let mut core = Mat::default();
        thin::product(&left.transposed(), &right, &mut core);
        let Some((x, s, y)) = small::thin_svd(&core) else { return };
        // A lambda so small that products with it vanish leaves no numbers to balance.
        if !s.first().is_some_and(|v| *v > 0.0 && v.is_finite()) {
            return;
        }
        let keep = s.iter().take_while(|v| **v > NEGLIGIBLE * s[0]).count();
        let map = |inverse: &Mat, vectors: &Mat| {
            let mut m = Mat::default();
            thin::product(inverse, &vectors.select_columns(&(0..keep).collect::<Vec<_>>()), &mut m);
            thin::for_each_row_mut(&mut m, |_, row| row.iter_mut().zip(&s).for_each(|(m, s)| *m *= s.sqrt()));
            m
        };
        thin::turn(&mut self.a, &map(&left_inverse, &x));
        thin::turn(&mut self.b, &map(&right_inverse, &y));
        self.spectrum = s[..keep].to_vec();
    }
}

/// B with prices of directions: `(h_l + lambda R^2) b_l = (P^T A)_l - shift_l measure` with the sums `measure . b_l` held.
fn priced_b(side: &Side, right: &Mat, measure: &[f64], values: &[f64], lambda: f64, sums: &[f64]) -> Mat {
    let (n, k) = (right.rows(), right.cols());
    let delta2 = side.delta() * side.delta();
    let off: Vec<f64> = values.iter().map(|h| 1.0 / (h.max(0.0) + lambda)).collect();
    let on: Vec<f64> = values.iter().map(|h| 1.0 / (h.max(0.0) + lambda * delta2)).collect();
    let inside = side.inside(right);
    let inside_measure = side.inside(&Mat::from_fn(n, 1, |j, _| measure[j]));
    let free = Mat::from_fn(n, k, |j, l| off[l] * (right[(j, l)] - inside[(j, l)]) + on[l] * inside[(j, l)]);
    let by_measure = |j: usize, l: usize| off[l] * (measure[j] - inside_measure[(j, 0)]) + on[l] * inside_measure[(j, 0)];
    let totals = thin::fold_rows(&free, |sums, j, row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += measure[j] * x));
    let slope = |l: usize| thin::sum_over_rows(n, 8, |j| measure[j] * by_measure(j, l));
    let shift: Vec<f64> = (0..k).map(|l| (totals[l] - sums[l]) / slope(l)).collect();
    Mat::from_fn(n, k, |j, l| free[(j, l)] - shift[l] * by_measure(j, l))
}

/// Sweeps between two looks at the bound.
const SWEEPS_A_LOOK: usize = 4;
/// Looks at the bound, at most.
const LOOKS: usize = 40;
/// At the rank limit, with more directions than this still missing, no number of sweeps helps.
const HOPELESS: usize = 8;
/// At the rank limit the relaxation cannot be solved: it ends when a look raises the bound by less than this share.
const SLOW_AT_THE_LIMIT: f64 = 5e-3;

/// Beyond so many numbers in its factors (a quarter of a gigabyte) there is no copy of the best point beside the present one: bounds hardly ever fall, and the last one is taken.
const HELD_TWICE: usize = 1 << 25;

/// Solves the relaxation: sweeps, and new directions where W exceeds 1, until bound and value are within `precision` of each
/// other. `watch` is told of every bound and may end it by returning false. Returns the point with the best bound.
pub fn solve(
    problem: &Problem,
    start: Mat,
    max_rank: usize,
    precision: f64,
    seed: u64,
    mut watch: impl FnMut(usize, Steering) -> bool,
) -> Option<(Relaxation, Steering)> {
    let mut x = Relaxation::from_row_space(problem, start);
    let mut best: Option<(Relaxation, Steering)> = None;
    let twice = (problem.rows() + problem.cols()) * max_rank <= HELD_TWICE;
    for _ in 0..LOOKS {
        (0..SWEEPS_A_LOOK).for_each(|_| x.sweep(problem));
        let (bound, grow) = steer::look(problem, &x, seed)?;
        let before = best.as_ref().map_or(f64::NEG_INFINITY, |(_, b)| b.guess());
        let gain = bound.guess() - before;
        let reached = bound.guess().max(before);
        match (gain > 0.0, twice) {
            (true, true) => best = Some((x.clone(), bound)),
            (true, false) => best = Some((Relaxation::default(), bound)),
            (false, _) => {}
        }
        if !watch(x.rank(), Steering::new(reached)) {
            break;
        }
        let room = max_rank.saturating_sub(x.rank()).min(grow.cols());
        if room > 0 && problem.p.low_rank().is_none() {
            let shortest = x.spectrum.last().copied().unwrap_or(1.0).sqrt();
            x.append(problem, &grow.select_columns(&(0..room).collect::<Vec<_>>()), shortest);
        } else if x.value - reached <= precision * x.value
            || (grow.cols() > 0 && (grow.cols() > HOPELESS || gain <= SLOW_AT_THE_LIMIT * bound.guess().abs()))
        {
            break;
        }
    }
    if twice { best } else { best.map(|(_, bound)| (x, bound)) }
}

/// A first row space: the constant vector and `P^T Xi^2` times random vectors.
#[must_use]
pub fn random_row_space(problem: &Problem, rank: usize, seed: u64) -> Mat {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let widest = rank.min(problem.rows()).min(problem.cols());
    let random = Mat::from_fn(problem.rows(), widest.saturating_sub(1).max(1), |_, _| StandardNormal.sample(&mut rng));
    let mut image = Mat::default();
    problem.transposed_times_u(&random, &mut image);
    let ones = Mat::from_fn(problem.cols(), 1, |j, _| problem.frame.measure[j]);
    // Comparable lengths, so that none is dropped as negligible.
    let image = small::orthonormalise(&image);
    beside(&[&ones, &image])
}

/// `R` and `R^-1` (on the numerical range) with `G = R R^T`.
fn gram_root(g: &Mat) -> Option<(Mat, Mat)> {
    let (values, vectors) = small::symmetric_eigen(g)?;
    let largest = values.last().copied().unwrap_or(0.0);
    let root = |v: f64| if v > NUMERICAL_RANGE * largest { v.sqrt() } else { 0.0 };
    let k = values.len();
    let r = Mat::from_fn(k, k, |i, j| vectors[(i, j)] * root(values[j]));
    let inverse = Mat::from_fn(k, k, |i, j| if root(values[j]) > 0.0 { vectors[(i, j)] / root(values[j]) } else { 0.0 });
    Some((r, inverse))
}

/// Rotates the columns so that their Gram matrix is diagonal, and drops those without length.
fn rotate_to_diagonal(b: &mut Mat) {
    let Some((values, vectors)) = small::symmetric_eigen(&thin::gram(b)) else { return };
    let largest = values.last().copied().unwrap_or(0.0);
    let keep: Vec<usize> = (0..values.len()).rev().filter(|&k| values[k] > NEGLIGIBLE * NEGLIGIBLE * largest).collect();
    if keep.is_empty() {
        return; // not even one direction has a length that f64 can tell from zero
    }
    thin::turn(b, &vectors.select_columns(&keep));
}
