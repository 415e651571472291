//! The certificate: a lower bound of the optimum that is really valid.
//!
//! For nonnegative unit u, v: `u^T W v <= ||W||_2`, so every W with `||W||_2 <= 1` is dual feasible and
//! `D(W) = -g*(-lambda W) <= min f`, with `g*(M) = <M, P> + 1/2 ||Xi^-1 (M - rowmean(M) 1^T)||_F^2`.
//! Any point `X = A B^T` (`X 1 = 1`) with multipliers mu gives `W = (mu 1^T - Xi^2 (X - P)) / lambda`, known by its products.
//! Its singular values above 1 are clipped; that none is left is proven through
//!
//! `|| [[C, E2], [E1, R]] || <= || [[ ||C||, ||E2|| ], [ ||E1||, ||R|| ]] ||`
//!
//! in orthonormal bases whose leading part holds the computed singular vectors: C is clipped and small, E1 and E2 are the
//! measured residuals of the singular vectors, and R is the rest, bounded by [`Proof`]. What is not proven to be at most 1 is
//! divided out.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::problem::Problem;
use super::relaxation::Relaxation;
use crate::linalg::{Mat, small, thin};

/// How the norm of the rest R was bounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Proof {
    /// P has an exact low-rank form and the bases span all of W: R is zero but for rounding.
    LowRank,
    /// A Cholesky factor of `rho^2 I - R^T R` exists.
    Cholesky,
    /// Lanczos from a random start: the bound fails with at most this probability (Kuczynski and Wozniakowski 1992).
    Lanczos {
        /// Largest probability that the bound does not hold, over the random start vector.
        failure_probability: f64,
    },
    /// Nothing was proven: the Ritz value itself. For steering only, never published.
    Estimate,
}

/// A valid lower bound of the optimum and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct DualBound {
    /// Lower bound of `min f_lambda`.
    pub value: f64,
    /// Proven upper bound of `||W'||_2` after clipping; the dual point was divided by it where it exceeds 1.
    pub norm_bound: f64,
    /// Singular values that were clipped.
    pub clipped: usize,
    /// How the rest was bounded.
    pub proof: Proof,
}

/// Singular vectors found by Lanczos that a proof may add to the relaxation's own.
const MOST_ADDED: usize = 64;

/// More than this many found at once, and there are many more.
const CROWD: usize = 32;

/// Bound of the rest for an exact low-rank P: the bases span W but for directions that orthonormalisation drops, which are
/// shorter than 1e-6 of the others.
const DROPPED: f64 = 1e-3;

/// How much work to put into a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Up to this number of states the rest is bounded by a Cholesky factorisation.
    pub cholesky_states: usize,
    /// Lanczos steps at first.
    pub lanczos_steps: usize,
    /// Lanczos steps at most, where more would prove more.
    pub most_lanczos_steps: usize,
    /// Largest failure probability of the Lanczos bound.
    pub failure_probability: f64,
    /// Seed of the random start vectors.
    pub seed: u64,
    /// Whether the norm of the rest must be proven; an estimate is enough to steer by.
    pub prove: bool,
}

impl Effort {
    /// Enough to steer by: few steps, no proof.
    pub fn steering(&self) -> Effort {
        Effort { lanczos_steps: 24, prove: false, ..*self }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Effort { cholesky_states: 3000, lanczos_steps: 60, most_lanczos_steps: 480, failure_probability: 1e-12, seed: 0, prove: true }
    }
}

/// `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda` as an operator.
pub(crate) struct DualPoint<'a> {
    pub problem: &'a Problem<'a>,
    pub a: &'a Mat,
    pub b: &'a Mat,
    pub mu: &'a [f64],
}

impl DualPoint<'_> {
    /// `W x`.
    pub fn apply(&self, x: &Mat, out: &mut Mat) {
        let problem = self.problem;
        problem.p.apply(x, out);
        let sums = thin::column_sums(x);
        let inner = thin::cross_gram(self.b, x);
        let mut low = Mat::default();
        thin::product(self.a, &inner, &mut low);
        let scale = 1.0 / problem.lambda;
        thin::for_each_row_mut(out, |i, row| {
            let w = problem.xi2[i];
            for (j, o) in row.iter_mut().enumerate() {
                *o = scale * (self.mu[i] * sums[j] + w * (*o - low[(i, j)]));
            }
        });
    }

    /// `W^T y`.
    pub fn apply_transpose(&self, y: &Mat, out: &mut Mat) {
        let problem = self.problem;
        let mut weighted = y.clone();
        thin::for_each_row_mut(&mut weighted, |i, row| row.iter_mut().for_each(|x| *x *= problem.xi2[i]));
        problem.p.apply_transpose(&weighted, out);
        let level = thin::fold_rows(y, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, y)| *s += self.mu[i] * y));
        let inner = thin::cross_gram(self.a, &weighted);
        let mut low = Mat::default();
        thin::product(self.b, &inner, &mut low);
        let scale = 1.0 / problem.lambda;
        thin::for_each_row_mut(out, |i, row| {
            for (j, o) in row.iter_mut().enumerate() {
                *o = scale * (level[j] + *o - low[(i, j)]);
            }
        });
    }

    /// All of W, for proofs at a few thousand states.
    fn dense(&self) -> Mat {
        let d = self.problem.states();
        let mut w = Mat::zeros(d, d);
        thin::for_each_row_mut(&mut w, |i, row| {
            let xi2 = self.problem.xi2[i];
            for (j, x) in row.iter_mut().enumerate() {
                *x = -thin::dot(self.a.row(i), self.b.row(j));
            }
            self.problem.p.row(i).for_each(d, |j, p| row[j] += p);
            row.iter_mut().for_each(|x| *x = (self.mu[i] + xi2 * *x) / self.problem.lambda);
        });
        w
    }
}

/// Orthonormal singular bases of W near and above 1, `W ~ left diag(values) right^T`, with what they miss.
struct Leading {
    left: Mat,
    right: Mat,
    values: Vec<f64>,
    residual_left: f64,
    residual_right: f64,
}

impl Leading {
    /// Rayleigh-Ritz on the given bases.
    fn new(w: &DualPoint, left: &Mat, right: &Mat) -> Option<Leading> {
        let (left, right) = (small::orthonormalise(left), small::orthonormalise(right));
        let (mut y, mut z) = (Mat::default(), Mat::default());
        w.apply(&right, &mut y);
        w.apply_transpose(&left, &mut z);
        let (x, values, r) = small::thin_svd(&thin::cross_gram(&left, &y))?;
        let rotate = |m: &Mat, by: &Mat| {
            let mut out = Mat::default();
            thin::product(m, by, &mut out);
            out
        };
        // Residuals of the whole bases, also where their sizes differ: || (I - LL^T) W R || and || (I - RR^T) W^T L ||.
        let residual = |image: &Mat, basis: &Mat| {
            let mut inside = Mat::default();
            thin::product(basis, &thin::cross_gram(basis, image), &mut inside);
            let mut rest = image.clone();
            thin::for_each_row_mut(&mut rest, |i, row| row.iter_mut().zip(inside.row(i)).for_each(|(r, x)| *r -= x));
            small::symmetric_eigen(&thin::gram(&rest)).and_then(|(v, _)| v.last().copied()).unwrap_or(f64::INFINITY).max(0.0).sqrt()
        };
        Some(Leading {
            residual_left: residual(&y, &left),
            residual_right: residual(&z, &right),
            left: rotate(&left, &x),
            right: rotate(&right, &r),
            values,
        })
    }
}

/// The best valid bound from the relaxation's point, and directions in which W still exceeds 1 (columns of the second
/// matrix, right singular vectors), by which the relaxation may grow.
pub fn dual_bound(problem: &Problem, x: &Relaxation, effort: &Effort) -> Option<(DualBound, Mat)> {
    let w = DualPoint { problem, a: &x.a, b: &x.b, mu: &x.mu };
    let d = problem.states();
    if let Some((left, right)) = problem.p.low_rank() {
        let ones = Mat::from_fn(d, 1, |_, _| 1.0);
        let mu = Mat::from_vec(d, 1, x.mu.clone()).ok()?;
        let weighted = |m: &Mat| Mat::from_fn(d, m.cols(), |i, j| problem.xi2[i] * m[(i, j)]);
        let leading = Leading::new(&w, &beside(&[&mu, &weighted(&x.a), &weighted(left)]), &beside(&[&ones, &x.b, right]))?;
        let over: Vec<usize> = (0..leading.values.len()).filter(|&k| leading.values[k] > 1.0 + 1e-9).collect();
        let grow = leading.right.select_columns(&over);
        return Some((evaluate(&w, &leading, DROPPED, Proof::LowRank), grow));
    }
    let mut leading = Leading::new(&w, &x.a, &x.b)?;
    let mut grow = Mat::zeros(d, 0);
    // Widen the bases by what Lanczos finds above 1 in the rest: once to steer by, a few times for a proof.
    for round in 0..4 {
        let rest = Lanczos::run(&w, &leading, effort, round, effort.lanczos_steps);
        let over: Vec<usize> = (0..rest.values.len()).filter(|&k| rest.values[k] > 0.98).collect();
        let estimate = rest.values.first().copied().unwrap_or(0.0);
        // Where very many singular values exceed 1, Lanczos would find them a few at a time: all at once where W fits in
        // memory, and above that size clipping them costs more than the bound is worth.
        let crowded = over.len() > CROWD || leading.values.len() + over.len() > x.rank() + MOST_ADDED;
        if effort.prove && (estimate <= 1.0 || round == 3 || crowded) {
            let (rho, proof) = if d <= effort.cholesky_states {
                let mut estimate = estimate;
                if crowded {
                    (leading, estimate) = all_above_one(&w)?;
                }
                (cholesky_bound(&w, &leading, estimate)?, Proof::Cholesky)
            } else {
                let proof = Proof::Lanczos { failure_probability: effort.failure_probability };
                (prove_by_lanczos(&w, &leading, effort, rest, round), proof)
            };
            return Some((evaluate(&w, &leading, rho, proof), grow));
        }
        let above: Vec<usize> = over.iter().copied().filter(|&k| rest.values[k] > 1.0).collect();
        grow = beside(&[&grow, &rest.right.select_columns(&above)]);
        if !over.is_empty() {
            leading = Leading::new(
                &w,
                &beside(&[&leading.left, &rest.left.select_columns(&over)]),
                &beside(&[&leading.right, &rest.right.select_columns(&over)]),
            )?;
        }
        if !effort.prove {
            let below = rest.values.get(over.len()).copied().unwrap_or(0.0);
            return Some((evaluate(&w, &leading, below, Proof::Estimate), grow));
        }
    }
    None
}

/// Matrices side by side.
pub(crate) fn beside(parts: &[&Mat]) -> Mat {
    let rows = parts.first().map_or(0, |p| p.rows());
    let cols = parts.iter().map(|p| p.cols()).sum();
    let mut out = Mat::zeros(rows, cols);
    thin::for_each_row_mut(&mut out, |i, row| {
        let mut at = 0;
        for part in parts {
            row[at..at + part.cols()].copy_from_slice(part.row(i));
            at += part.cols();
        }
    });
    out
}

/// Largest singular value of a `2 x 2` matrix with entries at least zero.
fn norm_2x2(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let (sum, det) = (a * a + b * b + c * c + d * d, a * d - b * c);
    (0.5 * (sum + (sum * sum - 4.0 * det * det).max(0.0).sqrt())).sqrt()
}

/// D at the clipped point, scaled as well as the proven norm allows.
fn evaluate(w: &DualPoint, leading: &Leading, rho: f64, proof: Proof) -> DualBound {
    let over: Vec<usize> = (0..leading.values.len()).filter(|&k| leading.values[k] > 1.0).collect();
    let excess: Vec<f64> = over.iter().map(|&k| leading.values[k] - 1.0).collect();
    let conjugate = Conjugate::new(w, &leading.left.select_columns(&over), &leading.right.select_columns(&over), &excess);
    let top = leading.values.first().copied().unwrap_or(0.0).min(1.0);
    // 1e-12: rounding in the bases and in W itself.
    let norm = norm_2x2(top, leading.residual_right, leading.residual_left, rho) * (1.0 + 1e-12);
    DualBound { value: conjugate.best_dual_value(norm), norm_bound: norm, clipped: over.len(), proof }
}

/// `g*(z M) = z linear + z^2 quadratic` at `M = -lambda (W - L diag(e) R^T)`.
pub(crate) struct Conjugate {
    linear: f64,
    quadratic: f64,
    /// What rounding may have added to the two: they are differences of numbers as large as `||Xi P||^2`.
    rounding: f64,
}

/// Share of the largest terms that rounding may take, generously: some thousands of units in the last place.
const ROUNDING: f64 = 1e-12;

impl Conjugate {
    /// M = -mu 1^T + Xi^2 (X - P) + lambda L E R^T; its rows are centred by centring R, because `X 1 = P 1 = 1`.
    pub fn new(w: &DualPoint, left: &Mat, right: &Mat, excess: &[f64]) -> Self {
        let (problem, a, b) = (w.problem, w.a, w.b);
        let (d, lambda, k) = (problem.states(), problem.lambda, excess.len());
        let mut q = Mat::default();
        problem.times_v(b, &mut q);
        let cross = problem.weighted_inner(&q, a);
        let gram = thin::dot(thin::weighted_gram(a, &problem.xi2).as_slice(), thin::gram(b).as_slice());
        let fit2 = problem.data_norm2 - 2.0 * cross + gram;

        // <P, L E R^T>, and with R centred: P (R - 1 m^T) = P R - 1 m^T.
        let mut pr = Mat::default();
        problem.times_v(right, &mut pr);
        let means: Vec<f64> = thin::column_sums(right).iter().map(|s| s / d as f64).collect();
        let on_data = thin::sum_over_rows(d, 3 * k, |i| (0..k).map(|j| excess[j] * left[(i, j)] * pr[(i, j)]).sum::<f64>());
        let left_sums = thin::column_sums(left);
        let centred_on_data = on_data - (0..k).map(|j| excess[j] * left_sums[j] * means[j]).sum::<f64>();
        let mut centred = right.clone();
        thin::for_each_row_mut(&mut centred, |_, row| row.iter_mut().zip(&means).for_each(|(r, m)| *r -= m));

        // <X, L E C^T> and ||Xi^-1 L E C^T||^2.
        let (al, bc) = (thin::cross_gram(a, left), thin::cross_gram(b, &centred));
        let on_x: f64 = (0..k).map(|j| excess[j] * (0..a.cols()).map(|l| al[(l, j)] * bc[(l, j)]).sum::<f64>()).sum();
        let inverse: Vec<f64> = problem.xi2.iter().map(|w| 1.0 / w).collect();
        let (ll, cc) = (thin::weighted_gram(left, &inverse), thin::gram(&centred));
        let clip2: f64 = (0..k).map(|i| (0..k).map(|j| excess[i] * excess[j] * ll[(i, j)] * cc[(i, j)]).sum::<f64>()).sum();

        Conjugate {
            linear: -w.mu.iter().sum::<f64>() + (cross - problem.data_norm2) + lambda * on_data,
            quadratic: 0.5 * (fit2 + 2.0 * lambda * (on_x - centred_on_data) + lambda * lambda * clip2).max(0.0),
            rounding: ROUNDING * (problem.data_norm2 + w.mu.iter().map(|mu| mu.abs()).sum::<f64>()),
        }
    }

    /// `-g*(M / norm)`.
    pub fn dual_value(&self, norm: f64) -> f64 {
        -(self.linear / norm + self.quadratic / (norm * norm))
    }

    /// Any scale up to `1 / norm` is feasible: the best of them.
    fn best_dual_value(&self, norm: f64) -> f64 {
        let best = if self.quadratic > 0.0 { -2.0 * self.quadratic / self.linear } else { 0.0 };
        // Zero is a bound of F too, and the better one where rounding leaves less.
        (self.dual_value(if best.is_finite() { norm.max(best) } else { norm }) - self.rounding).max(0.0)
    }
}

/// Every singular pair of W above 1, from the eigenvectors of `W^T W`, and the largest singular value that is left.
fn all_above_one(w: &DualPoint) -> Option<(Leading, f64)> {
    let dense = w.dense();
    let mut square = Mat::default();
    thin::transposed_product(&dense, &dense, &mut square);
    let (values, vectors) = small::symmetric_eigen(&square)?;
    // Ascending; a little below 1, so that what rounding mixes across the border is in the bases too.
    let first = values.partition_point(|v| *v <= 0.98 * 0.98);
    let right = vectors.select_columns(&(first..values.len()).collect::<Vec<_>>());
    let mut left = Mat::default();
    thin::product(&dense, &right, &mut left);
    let below = first.checked_sub(1).map_or(0.0, |k| values[k].max(0.0).sqrt());
    Some((Leading::new(w, &left, &right)?, below))
}

/// Smallest tried rho such that `rho^2 I - R^T R` has a Cholesky factor: a proof that `||R|| <= rho`.
fn cholesky_bound(w: &DualPoint, leading: &Leading, estimate: f64) -> Option<f64> {
    let d = w.problem.states();
    let mut rest = w.dense();
    // R = (I - L L^T) W (I - R R^T).
    let subtract = |m: &mut Mat, x: &Mat, y: &Mat| {
        let yt = y.transposed();
        let mut product = Mat::default();
        thin::product(x, &yt, &mut product);
        thin::for_each_row_mut(m, |i, row| row.iter_mut().zip(product.row(i)).for_each(|(m, p)| *m -= p));
    };
    let mut image = Mat::default();
    thin::transposed_product(&rest, &leading.left, &mut image);
    subtract(&mut rest, &leading.left, &image);
    thin::product(&rest.clone(), &leading.right, &mut image);
    subtract(&mut rest, &image, &leading.right);
    let mut square = Mat::default();
    thin::transposed_product(&rest, &rest, &mut square);
    drop(rest);
    let trace: f64 = (0..d).map(|i| square[(i, i)]).sum();
    // Rounding of the product and of the factorisation, in the worst case (Higham 2002, Theorem 10.3).
    let rounding = 4.0 * (d as f64 + 2.0) * f64::EPSILON * trace;
    let mut rho = estimate * 1.002 + 1e-9;
    for _ in 0..40 {
        let mut shifted = square.clone();
        shifted.as_mut_slice().iter_mut().for_each(|x| *x = -*x);
        for i in 0..d {
            shifted[(i, i)] += rho * rho;
        }
        if small::has_cholesky_factor(&mut shifted) {
            return Some((rho * rho + rounding).sqrt());
        }
        rho *= 1.02;
    }
    None
}

/// More steps as long as the estimate is below 1 but its bound is not.
fn prove_by_lanczos(w: &DualPoint, leading: &Leading, effort: &Effort, first: Lanczos, round: u64) -> f64 {
    let mut steps = effort.lanczos_steps;
    let mut run = first;
    while run.bound > 1.0 && run.values.first().is_some_and(|top| *top < 0.999) && steps < effort.most_lanczos_steps {
        steps = (2 * steps).min(effort.most_lanczos_steps);
        run = Lanczos::run(w, leading, effort, round, steps);
    }
    run.bound
}

/// Golub-Kahan-Lanczos on the rest `R = (I - L L^T) W (I - R R^T)` with full reorthogonalisation.
struct Lanczos {
    /// Ritz values, descending.
    values: Vec<f64>,
    left: Mat,
    right: Mat,
    /// Upper bound of `||R||` with the stated failure probability.
    bound: f64,
}

impl Lanczos {
    fn run(w: &DualPoint, leading: &Leading, effort: &Effort, round: u64, steps: usize) -> Lanczos {
        let d = w.problem.states();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(effort.seed.wrapping_mul(31).wrapping_add(round + 1));
        let steps = steps.min(d);
        let (mut lefts, mut rights): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let (mut alphas, mut betas) = (Vec::new(), Vec::new());
        let mut v: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
        remove(&mut v, &leading.right);
        normalise(&mut v);
        let (mut x, mut out) = (Mat::zeros(d, 1), Mat::default());
        while lefts.len() < steps {
            x.as_mut_slice().copy_from_slice(&v);
            w.apply(&x, &mut out);
            let mut u = out.as_slice().to_vec();
            remove(&mut u, &leading.left);
            orthogonalise(&mut u, &lefts);
            let alpha = normalise(&mut u);
            rights.push(v);
            if alpha <= 1e-14 {
                rights.pop();
                break;
            }
            alphas.push(alpha);
            x.as_mut_slice().copy_from_slice(&u);
            lefts.push(u);
            w.apply_transpose(&x, &mut out);
            v = out.as_slice().to_vec();
            remove(&mut v, &leading.right);
            orthogonalise(&mut v, &rights);
            let beta = normalise(&mut v);
            betas.push(beta);
            if beta <= 1e-14 {
                break;
            }
        }
        let m = alphas.len();
        // R V_m = U_m T, T upper bidiagonal: alpha on the diagonal, beta above it.
        let t = Mat::from_fn(m, m, |i, j| {
            if i == j {
                alphas[i]
            } else if i + 1 == j {
                betas[i]
            } else {
                0.0
            }
        });
        let Some((p, values, q)) = small::thin_svd(&t).filter(|_| m > 0) else {
            return Lanczos { values: Vec::new(), left: Mat::zeros(d, 0), right: Mat::zeros(d, 0), bound: 0.0 };
        };
        let wanted: Vec<usize> = (0..values.len()).take_while(|&k| values[k] > 0.9).collect();
        let lift = |basis: &[Vec<f64>], small: &Mat| {
            Mat::from_fn(d, wanted.len(), |i, k| (0..m).map(|l| basis[l][i] * small[(l, wanted[k])]).sum())
        };
        // P(lambda_max(R^T R) > theta / (1 - eps)) <= 1.648 sqrt(d) exp(-sqrt(eps) (2 m - 1)).
        let eps = ((1.648 * (d as f64).sqrt() / effort.failure_probability).ln() / (2.0 * m as f64 - 1.0)).powi(2);
        let bound = if eps < 1.0 { values[0] / (1.0 - eps).sqrt() } else { f64::INFINITY };
        Lanczos { left: lift(&lefts, &p), right: lift(&rights, &q), values, bound }
    }
}

/// `x -= Q Q^T x`.
fn remove(x: &mut [f64], basis: &Mat) {
    let work = 2 * x.len() * basis.cols();
    for _ in 0..2 {
        let inner = thin::fold_rows(basis, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, q)| *s += q * x[i]));
        thin::for_each_chunk_mut(x, thin::BLOCK, work, |block, x| {
            for (k, x) in x.iter_mut().enumerate() {
                *x -= thin::dot(basis.row(block * thin::BLOCK + k), &inner);
            }
        });
    }
}

/// The same with a basis that grows vector by vector.
fn orthogonalise(x: &mut [f64], basis: &[Vec<f64>]) {
    let work = 2 * basis.len();
    let dots = |x: &[f64], span: std::ops::Range<usize>| basis.iter().map(|q| thin::dot(&q[span.clone()], &x[span.clone()])).collect();
    for _ in 0..2 {
        let add = |sums: &mut Vec<f64>, part: Vec<f64>| sums.iter_mut().zip(part).for_each(|(s, p)| *s += p);
        let Some(inner) = thin::sum_blocks(x.len(), work, |span| dots(x, span), add) else { return };
        thin::for_each_chunk_mut(x, thin::BLOCK, work * basis.first().map_or(0, Vec::len), |block, x| {
            let start = block * thin::BLOCK;
            for (q, inner) in basis.iter().zip(&inner) {
                x.iter_mut().zip(&q[start..]).for_each(|(x, q)| *x -= inner * q);
            }
        });
    }
}

fn normalise(x: &mut [f64]) -> f64 {
    let norm = thin::dot(x, x).sqrt();
    if norm > 0.0 {
        x.iter_mut().for_each(|x| *x /= norm);
    }
    norm
}
