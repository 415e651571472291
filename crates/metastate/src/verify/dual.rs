//! Dual points, and what can be proven with them.
//!
//! A dual point is a matrix W; `M = -lambda W` is feasible for the dual problem when `u^T W v <= 1` for all nonnegative
//! unit vectors u, v, and surely when `||W||_2 <= 1`. Then `-g*(M)` is a lower bound of the optimum. With `m_i` the mean of
//! row i of M, `M_c` the rest and `c_i = 1 - sum_j p_ij` (zero but for rounding),
//!
//! `g*(M) = sum_i m_i + <M_c, P> + 1/2 ||Xi^-1 M_c||_F^2 - sum_i xi_i^2 c_i^2 / (2 d)`.
//!
//! A row with `xi_i = 0` is set to zero in M, which lowers the norm and keeps g* finite.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::ComputeSvdVectors;
use faer::linalg::{evd, svd};
use faer::{MatRef, Par};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::BoundProof;
use super::rows::{Rows, beside, by_rows, column_norms, column_sums, cross, dot, leading, product, sum};
use crate::linalg::Mat;

/// Up to this number of states W is formed and decomposed whole.
pub(super) const DENSE_STATES: usize = 1200;
/// Up to this number of states the dual is climbed when no witness is given.
const ASCENT_STATES: usize = 600;
/// Where the bound of the norm came out larger than this, the whole decomposition is worth its time ...
const LOOSE: f64 = 1.001;
/// ... up to this number of states (half a minute).
const DENSE_AT_NEED: usize = 3000;
/// Steps of that climb.
const ASCENT_STEPS: usize = 60;
/// Largest probability that a bound by Lanczos fails.
const FAILURE_PROBABILITY: f64 = 1e-12;

/// `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda`, known by its products.
#[derive(Clone, Copy)]
pub(super) struct Point<'a> {
    pub rows: &'a Rows<'a>,
    pub xi: &'a [f64],
    pub lambda: f64,
    pub a: &'a Mat,
    pub b: &'a Mat,
    pub mu: &'a [f64],
}

impl Point<'_> {
    /// `W x`.
    fn times(&self, x: &Mat) -> Mat {
        let (px, total) = (self.rows.times(x), column_sums(x, None));
        let ax = product(self.a, &cross(self.b, x, None));
        by_rows(x.rows(), x.cols(), |i, out| {
            for k in 0..out.len() {
                out[k] = (self.mu[i] * total[k] - self.xi[i] * self.xi[i] * (ax[(i, k)] - px[(i, k)])) / self.lambda;
            }
        })
    }

    /// `W^T y`.
    fn transposed_times(&self, y: &Mat) -> Mat {
        let weighted = by_rows(y.rows(), y.cols(), |i, out| {
            out.iter_mut().zip(y.row(i)).for_each(|(o, y)| *o = self.xi[i] * self.xi[i] * y);
        });
        let (py, total) = (self.rows.transposed_times(&weighted), column_sums(y, Some(self.mu)));
        let by = product(self.b, &cross(self.a, &weighted, None));
        by_rows(y.rows(), y.cols(), |j, out| {
            for k in 0..out.len() {
                out[k] = (total[k] - by[(j, k)] + py[(j, k)]) / self.lambda;
            }
        })
    }

    /// All of W.
    pub fn dense(&self) -> Mat {
        let d = self.rows.states();
        by_rows(d, d, |i, row| {
            for (j, w) in row.iter_mut().enumerate() {
                *w = -dot(self.a.row(i), self.b.row(j));
            }
            self.rows.each(i, |j, p| row[j] += p);
            row.iter_mut().for_each(|w| *w = (self.mu[i] + self.xi[i] * self.xi[i] * *w) / self.lambda);
        })
    }

    /// `-lambda W = -Xi^2 P + F H^T`: the factors F and H.
    fn factors_of_m(&self) -> (Mat, Mat) {
        let d = self.rows.states();
        let minus_mu = Mat::from_fn(d, 1, |i, _| -self.mu[i]);
        let ones = Mat::from_fn(d, 1, |_, _| 1.0);
        let weighted = Mat::from_fn(d, self.a.cols(), |i, k| self.xi[i] * self.xi[i] * self.a[(i, k)]);
        (beside(&[&minus_mu, &weighted]), beside(&[&ones, self.b]))
    }

    /// The dual function on the ray through this point, not clipped: what the paper's relDG rests on.
    pub fn ray(&self) -> Ray {
        let (f, h) = self.factors_of_m();
        Ray::low_rank(self.rows, self.xi, &f, &h)
    }
}

/// The dual function along `z M`: `-g*(z M) = constant - z linear - z^2 quadratic`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ray {
    constant: f64,
    linear: f64,
    quadratic: f64,
}

impl Ray {
    /// M given as `-Xi^2 P + F H^T`.
    fn low_rank(rows: &Rows, xi: &[f64], f: &Mat, h: &Mat) -> Ray {
        let d = rows.states();
        let mean: Vec<f64> = column_sums(h, None).iter().map(|s| s / d as f64).collect();
        let centred = by_rows(d, h.cols(), |j, out| (0..out.len()).for_each(|k| out[k] = h[(j, k)] - mean[k]));
        let (ph, gram) = (rows.times(&centred), cross(&centred, &centred, None));
        let fg = product(f, &gram);
        let spread = |i: usize| rows.norms2[i] - rows.sums[i] * rows.sums[i] / d as f64;
        Ray {
            constant: Self::constant(rows, xi),
            linear: sum(d, |i| {
                let w = xi[i] * xi[i];
                if w == 0.0 {
                    return 0.0;
                }
                let row_mean = dot(f.row(i), &mean) - w * rows.sums[i] / d as f64;
                row_mean - w * spread(i) + dot(f.row(i), ph.row(i))
            }),
            quadratic: sum(d, |i| {
                let w = xi[i] * xi[i];
                if w == 0.0 {
                    return 0.0;
                }
                let square = w * w * spread(i) - 2.0 * w * dot(f.row(i), ph.row(i)) + dot(f.row(i), fg.row(i));
                0.5 * square.max(0.0) / w
            }),
        }
    }

    /// M given by `-lambda W`, entry by entry.
    fn dense(rows: &Rows, xi: &[f64], lambda: f64, w: &Mat) -> Ray {
        let d = rows.states();
        let mean = |i: usize| -lambda * w.row(i).iter().sum::<f64>() / d as f64;
        Ray {
            constant: Self::constant(rows, xi),
            linear: sum(d, |i| {
                if xi[i] == 0.0 {
                    return 0.0;
                }
                let (mean, mut inner) = (mean(i), 0.0);
                rows.each(i, |j, p| inner += (-lambda * w[(i, j)] - mean) * p);
                mean + inner
            }),
            quadratic: sum(d, |i| {
                if xi[i] == 0.0 {
                    return 0.0;
                }
                let mean = mean(i);
                let square: f64 = w.row(i).iter().map(|w| (-lambda * w - mean).powi(2)).sum();
                0.5 * square / (xi[i] * xi[i])
            }),
        }
    }

    fn constant(rows: &Rows, xi: &[f64]) -> f64 {
        let d = rows.states();
        sum(d, |i| 0.5 * (xi[i] * (1.0 - rows.sums[i])).powi(2) / d as f64)
    }

    /// `-g*(z M)`.
    pub fn value(&self, z: f64) -> f64 {
        self.constant - z * self.linear - z * z * self.quadratic
    }

    /// The largest value over `0 <= z <= 1 / norm`.
    fn best(&self, norm: f64) -> f64 {
        let peak = if self.quadratic > 0.0 { -self.linear / (2.0 * self.quadratic) } else { f64::INFINITY };
        let most = 1.0 / norm;
        let z = if peak < most { peak.max(0.0) } else { most };
        if z.is_finite() { self.value(z) } else { self.constant }
    }
}

/// A lower bound of the optimum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    pub value: f64,
    pub proof: BoundProof,
    /// What the norm of the clipped point was proven to be at most.
    pub norm: f64,
}

impl Bound {
    /// The objective is a sum of squares and norms: zero is always a bound (M = 0).
    const TRIVIAL: Bound = Bound { value: 0.0, proof: BoundProof::Trivial, norm: 1.0 };

    fn larger(self, other: Bound) -> Bound {
        if other.value > self.value { other } else { self }
    }
}

/// The best bound that the points give. The first point is the solution's own, a second one the witness.
pub(super) fn best_bound(points: &[Point], seed: u64) -> Bound {
    let mut best = Bound::TRIVIAL;
    let Some(own) = points.first() else { return best };
    let d = own.rows.states();
    if d <= DENSE_STATES {
        let steps = if points.len() == 1 && d <= ASCENT_STATES { ASCENT_STEPS } else { 0 };
        return points.iter().fold(best, |best, point| best.larger(dense_bound(point, steps)));
    }
    // Far from small, one point has to do: the witness where there is one.
    let tried = if d > 5000 { &points[points.len() - 1..] } else { points };
    for point in tried {
        best = best.larger(low_rank_bound(point).unwrap_or_else(|| matrix_free_bound(point, seed)));
    }
    // Where many singular values exceed 1, a few basis vectors bound the norm only loosely: then all of them, if that can be
    // had at all.
    if best.norm > LOOSE && d <= DENSE_AT_NEED {
        best = tried.iter().fold(best, |best, point| best.larger(dense_bound(point, 0)));
    }
    best
}

// ---------------------------------------------------------------------------------------------------------------------
// Small: all singular values.

/// Clips W with its whole singular value decomposition, then climbs the dual by accelerated projected gradient steps.
fn dense_bound(point: &Point, steps: usize) -> Bound {
    let (rows, xi, lambda) = (point.rows, point.xi, point.lambda);
    let Some(mut w) = clip(&point.dense()) else { return Bound::TRIVIAL };
    let value = |w: &Mat| Ray::dense(rows, xi, lambda, w).best(1.0);
    let (mut best, mut best_value) = (w.clone(), value(&w));
    let smallest = xi.iter().copied().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
    let step = (smallest / lambda).powi(2);
    let (mut ahead, mut momentum) = (w.clone(), 1.0f64);
    for _ in 0..steps {
        let Some(next) = clip(&ascent_step(rows, xi, lambda, &ahead, step)) else { break };
        let next_value = value(&next);
        let grown = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
        let inertia = (momentum - 1.0) / grown;
        if next_value < best_value {
            momentum = 1.0;
            ahead = next.clone();
        } else {
            momentum = grown;
            ahead = by_rows(w.rows(), w.cols(), |i, out| {
                for j in 0..out.len() {
                    out[j] = next[(i, j)] + inertia * (next[(i, j)] - w[(i, j)]);
                }
            });
            (best, best_value) = (next.clone(), next_value);
        }
        w = next;
    }
    // The norm of what is handed out is measured anew, with room for the rounding of the decomposition.
    let Some(norm) = singular_values(&best).map(|s| s.first().copied().unwrap_or(0.0)) else { return Bound::TRIVIAL };
    let norm = norm * (1.0 + 4.0 * f64::EPSILON * w.rows() as f64);
    Bound { value: Ray::dense(rows, xi, lambda, &best).best(norm.max(f64::MIN_POSITIVE)), proof: BoundProof::Dense, norm }
}

/// `W + step * dD/dW`, where `dD/dW = lambda (P + Xi^-2 M_c + c 1^T / d)` is lambda times the X that attains g*.
fn ascent_step(rows: &Rows, xi: &[f64], lambda: f64, w: &Mat, step: f64) -> Mat {
    let d = rows.states();
    by_rows(d, d, |i, out| {
        if xi[i] == 0.0 {
            return;
        }
        let mean = w.row(i).iter().sum::<f64>() / d as f64;
        for j in 0..d {
            out[j] = -lambda * (w[(i, j)] - mean) / (xi[i] * xi[i]) + (1.0 - rows.sums[i]) / d as f64;
        }
        rows.each(i, |j, p| out[j] += p);
        for j in 0..d {
            out[j] = w[(i, j)] + step * lambda * out[j];
        }
    })
}

/// The nearest matrix of spectral norm at most 1: singular values above 1 become 1.
fn clip(w: &Mat) -> Option<Mat> {
    let (x, values, y) = decompose(w)?;
    let over = values.iter().filter(|s| **s > 1.0).count();
    Some(by_rows(w.rows(), w.cols(), |i, out| {
        out.copy_from_slice(w.row(i));
        let weight: Vec<f64> = (0..over).map(|k| x[(i, k)] * (values[k] - 1.0)).collect();
        for (j, out) in out.iter_mut().enumerate() {
            *out -= dot(&weight, &y.row(j)[..over]);
        }
    }))
}

// ---------------------------------------------------------------------------------------------------------------------
// Large: a leading part that is known, and a proof for the rest.

/// W in orthonormal bases whose first vectors are `left` and `right`: `[[C, E2], [E1, R]]` with C diagonal.
struct Split {
    left: Mat,
    right: Mat,
    /// Diagonal of C, descending.
    values: Vec<f64>,
    /// `||E1||`, `||E2||`.
    outside: (f64, f64),
    /// How far the bases are from orthonormal.
    defect: f64,
}

impl Split {
    fn new(point: &Point, left: &Mat, right: &Mat) -> Option<Split> {
        if left.cols() == 0 || right.cols() == 0 {
            let d = point.rows.states();
            let (left, right) = (Mat::zeros(d, 0), Mat::zeros(d, 0));
            return Some(Split { left, right, values: Vec::new(), outside: (0.0, 0.0), defect: 0.0 });
        }
        let (image, back) = (point.times(right), point.transposed_times(left));
        let core = cross(left, &image, None);
        let e1 = minus(&image, &product(left, &core));
        let e2 = minus(&back, &product(right, &core.transposed()));
        let (x, values, y) = decompose(&core)?;
        Some(Split {
            left: product(left, &x),
            right: product(right, &y),
            values,
            outside: (norm(&e1)?, norm(&e2)?),
            defect: defect(left).max(defect(right)),
        })
    }

    /// Singular values of C are clipped to 1; the rest is known to have norm at most `rho`. The bound at that point,
    /// divided by what the norm of the four blocks may be.
    fn bound(&self, point: &Point, rho: f64, proof: BoundProof) -> Bound {
        let over = self.values.iter().filter(|s| **s > 1.0).count();
        let (f, h) = point.factors_of_m();
        let excess = by_rows(f.rows(), over, |i, out| {
            for k in 0..over {
                out[k] = point.lambda * (self.values[k] - 1.0) * self.left[(i, k)];
            }
        });
        let ray = Ray::low_rank(point.rows, point.xi, &beside(&[&f, &excess]), &beside(&[&h, &leading(&self.right, over)]));
        let core = self.values.first().copied().unwrap_or(0.0).min(1.0);
        // 1e-12: rounding in the products with W.
        let norm = norm_of_blocks(core, self.outside.1, self.outside.0, rho) * (1.0 + 10.0 * self.defect + 1e-12);
        Bound { value: ray.best(norm.max(f64::MIN_POSITIVE)), proof, norm }
    }
}

/// `P = L R^T`: then W has the rank `1 + s + r` at most, and the bases hold all of it.
fn low_rank_bound(point: &Point) -> Option<Bound> {
    let (left, right) = point.rows.factored()?;
    let d = point.rows.states();
    let (f, h) = point.factors_of_m();
    let weighted = Mat::from_fn(d, left.cols(), |i, k| -point.xi[i] * point.xi[i] * left[(i, k)]);
    let (f, h) = (beside(&[&f, &weighted]), beside(&[&h, right]));
    let (qf, qh) = (orthonormalise(&f)?, orthonormalise(&h)?);
    let split = Split::new(point, &qf, &qh)?;
    // What the bases miss of F and of H, column by column: the rest R is -F_missed H_missed^T / lambda.
    let missed = |m: &Mat, q: &Mat| column_norms(&minus(m, &product(q, &cross(q, m, None))));
    let rho = missed(&f, &qf).iter().zip(&missed(&h, &qh)).map(|(f, h)| f * h).sum::<f64>() / point.lambda;
    Some(split.bound(point, rho, BoundProof::LowRank))
}

/// Leading singular vectors by block Krylov spaces with restarts, the rest by Lanczos from a random start.
fn matrix_free_bound(point: &Point, seed: u64) -> Bound {
    let d = point.rows.states();
    let (rounds, steps) = if d <= 20_000 { (6, 200) } else { (3, 100) };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(1));
    let loss = 1.0 / (1.0 - lanczos_loss(d, steps)).sqrt();
    let mut start = beside(&[point.b, &point.transposed_times(point.a)]);
    let mut previous = f64::INFINITY;
    for round in 0..rounds {
        let random = Mat::from_fn(d, 4, |_, _| StandardNormal.sample(&mut rng));
        let Some((left, right, values)) = krylov_ritz(point, &beside(&[&start, &random])) else { return Bound::TRIVIAL };
        let (count, estimate) = choose_leading(point, &left, &right, &values, loss);
        let improving = estimate - 1.0 < 0.5 * (previous - 1.0);
        if estimate > 1.0 + 1e-7 && improving && round + 1 < rounds {
            // Not yet sharp: go on from the vectors found so far.
            previous = estimate;
            let keep = values.iter().filter(|s| **s > 0.5).count().min(right.cols()).min(point.b.cols() + 40);
            start = leading(&right, keep);
            continue;
        }
        let Some(split) = Split::new(point, &leading(&left, count), &leading(&right, count)) else { return Bound::TRIVIAL };
        let Some(rho) = lanczos_bound(point, &split, steps, &mut rng) else { return Bound::TRIVIAL };
        return split.bound(point, rho, BoundProof::Lanczos { failure_probability: FAILURE_PROBABILITY });
    }
    Bound::TRIVIAL
}

/// Ritz triplets of W on the space spanned by `X, W^T W X, (W^T W)^2 X, ...`, values descending.
fn krylov_ritz(point: &Point, x: &Mat) -> Option<(Mat, Mat, Vec<f64>)> {
    let widest = 240usize.min(point.rows.states());
    let mut block = orthonormalise(x)?;
    let (mut basis, mut image) = (block.clone(), point.times(&block));
    loop {
        let next = extend(&basis, &point.transposed_times(&trailing(&image, block.cols())))?;
        if next.cols() == 0 {
            break;
        }
        block = next;
        image = beside(&[&image, &point.times(&block)]);
        basis = beside(&[&basis, &block]);
        if basis.cols() + block.cols() > widest {
            break;
        }
    }
    let left = orthonormalise(&image)?;
    let (p, values, q) = decompose(&cross(&left, &image, None))?;
    Some((product(&left, &p), product(&basis, &q), values))
}

/// The last `count` columns.
fn trailing(m: &Mat, count: usize) -> Mat {
    let from = m.cols() - count;
    by_rows(m.rows(), count, |i, row| row.copy_from_slice(&m.row(i)[from..]))
}

/// How many triplets to take as known, and the norm that the four blocks would then have as far as the Ritz values tell.
fn choose_leading(point: &Point, left: &Mat, right: &Mat, values: &[f64], loss: f64) -> (usize, f64) {
    let candidates = values.iter().filter(|s| **s > 0.5).count().min(point.b.cols() + 60).min(right.cols());
    let (left, right) = (leading(left, candidates), leading(right, candidates));
    let back = if candidates > 0 { point.transposed_times(&left) } else { Mat::zeros(right.rows(), 0) };
    let mut residual2 = 0.0;
    let next = |k: usize| values.get(k).copied().unwrap_or(0.0) * loss;
    let mut best = (0, next(0));
    for k in 0..candidates {
        residual2 += sum(right.rows(), |i| (back[(i, k)] - values[k] * right[(i, k)]).powi(2));
        let norm = norm_of_blocks(values[0].min(1.0), residual2.sqrt(), 0.0, next(k + 1));
        if norm < best.1 {
            best = (k + 1, norm);
        }
    }
    best
}

/// The eps for which Lanczos on a positive semidefinite `d x d` matrix, `steps` steps from a random start, misses the
/// largest eigenvalue by more than the share eps with probability at most [`FAILURE_PROBABILITY`]:
/// `1.648 sqrt(d) exp(-sqrt(eps) (2 m - 1))` (Kuczynski and Wozniakowski 1992, Theorem 4.2).
fn lanczos_loss(d: usize, steps: usize) -> f64 {
    let exponent = (1.648 * (d as f64).sqrt() / FAILURE_PROBABILITY).ln();
    (exponent / (2.0 * steps as f64 - 1.0)).powi(2)
}

/// An upper bound of the norm of `R = (I - L L^T) W (I - Q Q^T)`: Lanczos on `R^T R`, every vector kept orthogonal to all
/// before it.
fn lanczos_bound(point: &Point, split: &Split, steps: usize, rng: &mut Xoshiro256PlusPlus) -> Option<f64> {
    let d = point.rows.states();
    let loss = lanczos_loss(d, steps);
    if loss >= 1.0 {
        return None;
    }
    let project = |x: &Mat, q: &Mat| if q.cols() == 0 { x.clone() } else { minus(x, &product(q, &cross(q, x, None))) };
    let mut vector = Mat::from_fn(d, 1, |_, _| StandardNormal.sample(rng));
    vector = project(&project(&vector, &split.right), &split.right);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside_it) = (Vec::new(), Vec::new());
    for _ in 0..steps {
        let length = column_norms(&vector)[0];
        // A space that W maps into itself holds, from a random start, the largest eigenvalue: nothing more to find.
        if length <= 1e-13 * diagonal.first().copied().unwrap_or(0.0f64).max(f64::MIN_POSITIVE) {
            break;
        }
        if !basis.is_empty() {
            beside_it.push(length);
        }
        vector.as_mut_slice().iter_mut().for_each(|x| *x /= length);
        basis.push(vector.as_slice().to_vec());
        let image = project(&point.times(&vector), &split.left);
        let image = project(&image, &split.left);
        let mut next = project(&point.transposed_times(&image), &split.right);
        diagonal.push(sum(d, |i| next[(i, 0)] * vector[(i, 0)]));
        for _ in 0..2 {
            next = project(&next, &split.right);
            for q in &basis {
                let inner = sum(d, |i| q[i] * next[(i, 0)]);
                next.as_mut_slice().iter_mut().zip(q).for_each(|(x, q)| *x -= inner * q);
            }
        }
        vector = next;
    }
    let m = diagonal.len();
    let tridiagonal = Mat::from_fn(m, m, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside_it[i.min(j)],
        _ => 0.0,
    });
    let (values, _) = eigen(&tridiagonal)?;
    Some((values.last().copied().unwrap_or(0.0).max(0.0) / (1.0 - loss)).sqrt())
}

/// Spectral norm of `[[a, b], [c, d]]`.
fn norm_of_blocks(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let (square, det) = (a * a + b * b + c * c + d * d, a * d - b * c);
    (0.5 * (square + (square * square - 4.0 * det * det).max(0.0).sqrt())).sqrt()
}

// ---------------------------------------------------------------------------------------------------------------------
// The polar of Omega, by local search.

/// `max u^T W v` over nonnegative unit vectors, by alternating ascent from many starts. Each is a local search: the result
/// is a LOWER bound of the maximum, so GE may be too small and relDG is no proof.
pub(super) fn polar(point: &Point, singular: Option<&Mat>, seed: u64) -> f64 {
    let d = point.rows.states();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let uniform = Mat::from_fn(d, 1, |_, _| 1.0);
    let random = Mat::from_fn(d, 20, |_, _| {
        let x: f64 = StandardNormal.sample(&mut rng);
        x.abs()
    });
    let mut v = beside(&[point.b, &uniform, &random]);
    if let Some(singular) = singular {
        let opposite = by_rows(d, singular.cols(), |i, out| out.iter_mut().zip(singular.row(i)).for_each(|(o, x)| *o = -x));
        v = beside(&[&v, singular, &opposite]);
    }
    positive_unit_columns(&mut v);
    // All starts for a while, then the best few to the end; with fewer digits where a product is dear.
    let (first, few, last, settle) = if d <= 20_000 { (10, 6, 300, 1e-14) } else { (4, 3, 60, 1e-9) };
    let mut values = vec![0.0; v.cols()];
    for _ in 0..first {
        values = ascend(point, &mut v);
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    let chosen = &order[..order.len().min(few)];
    v = by_rows(d, chosen.len(), |i, out| (0..out.len()).for_each(|k| out[k] = v[(i, chosen[k])]));
    let mut best = values.iter().copied().fold(0.0, f64::max);
    for _ in 0..last {
        let now = ascend(point, &mut v).into_iter().fold(0.0, f64::max);
        let settled = now - best <= settle * now;
        best = best.max(now);
        if settled {
            break;
        }
    }
    if best > 0.0 { best } else { largest_entry(point) }
}

/// One round of `u = [W v]_+ / ||.||`, `v = [W^T u]_+ / ||.||` for every column; the values `u^T W v`.
fn ascend(point: &Point, v: &mut Mat) -> Vec<f64> {
    let mut u = point.times(v);
    positive_unit_columns(&mut u);
    *v = point.transposed_times(&u);
    positive_unit_columns(v)
}

/// Negative entries become zero and columns get length one (zero columns stay); the lengths before.
fn positive_unit_columns(m: &mut Mat) -> Vec<f64> {
    m.as_mut_slice().iter_mut().for_each(|x| *x = x.max(0.0));
    let lengths = column_norms(m);
    for i in 0..m.rows() {
        m.row_mut(i).iter_mut().zip(&lengths).for_each(|(x, l)| *x = if *l > 0.0 { *x / l } else { 0.0 });
    }
    lengths
}

/// Where no start climbed above zero: the largest entry of W, which is the maximum if W has no positive entry.
fn largest_entry(point: &Point) -> f64 {
    if point.rows.states() > DENSE_STATES {
        return 0.0;
    }
    point.dense().as_slice().iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

// ---------------------------------------------------------------------------------------------------------------------
// Decompositions. One thread, so that the digits do not depend on the number of threads.

fn view(m: &Mat) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(m.as_slice(), m.rows(), m.cols())
}

fn all_finite(m: &Mat) -> Option<()> {
    m.as_slice().iter().all(|x| x.is_finite()).then_some(())
}

/// Thin singular value decomposition `X diag(s) Y^T`, values descending.
pub(super) fn decompose(a: &Mat) -> Option<(Mat, Vec<f64>, Mat)> {
    all_finite(a)?;
    let (m, n) = (a.rows(), a.cols());
    let k = m.min(n);
    if k == 0 {
        return Some((Mat::zeros(m, 0), Vec::new(), Mat::zeros(n, 0)));
    }
    let (mut x, mut y) = (faer::Mat::<f64>::zeros(m, k), faer::Mat::<f64>::zeros(n, k));
    let mut s = Diag::<f64>::zeros(k);
    let thin = ComputeSvdVectors::Thin;
    let mut memory = MemBuffer::new(svd::svd_scratch::<f64>(m, n, thin, thin, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    svd::svd(view(a), s.as_mut(), Some(x.as_mut()), Some(y.as_mut()), Par::Seq, stack, Default::default()).ok()?;
    let plain = |m: &faer::Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)]);
    Some((plain(&x), s.column_vector().iter().copied().collect(), plain(&y)))
}

/// Singular values, descending.
fn singular_values(a: &Mat) -> Option<Vec<f64>> {
    all_finite(a)?;
    let (m, n) = (a.rows(), a.cols());
    let mut s = Diag::<f64>::zeros(m.min(n));
    let no = ComputeSvdVectors::No;
    let mut memory = MemBuffer::new(svd::svd_scratch::<f64>(m, n, no, no, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    svd::svd(view(a), s.as_mut(), None, None, Par::Seq, stack, Default::default()).ok()?;
    Some(s.column_vector().iter().copied().collect())
}

/// Eigenvalues (ascending) and eigenvectors of a symmetric matrix.
fn eigen(a: &Mat) -> Option<(Vec<f64>, Mat)> {
    all_finite(a)?;
    let n = a.rows();
    if n == 0 {
        return Some((Vec::new(), Mat::zeros(0, 0)));
    }
    let mut s = Diag::<f64>::zeros(n);
    let mut x = faer::Mat::<f64>::zeros(n, n);
    let yes = evd::ComputeEigenvectors::Yes;
    let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, yes, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    evd::self_adjoint_evd(view(a), s.as_mut(), Some(x.as_mut()), Par::Seq, stack, Default::default()).ok()?;
    Some((s.column_vector().iter().copied().collect(), Mat::from_fn(n, n, |i, j| x[(i, j)])))
}

/// Spectral norm of a thin matrix.
fn norm(a: &Mat) -> Option<f64> {
    let (values, _) = eigen(&cross(a, a, None))?;
    Some(values.last().copied().unwrap_or(0.0).max(0.0).sqrt())
}

fn minus(a: &Mat, b: &Mat) -> Mat {
    by_rows(a.rows(), a.cols(), |i, out| (0..out.len()).for_each(|k| out[k] = a[(i, k)] - b[(i, k)]))
}

/// `||Q^T Q - I||_F`.
fn defect(q: &Mat) -> f64 {
    let gram = cross(q, q, None);
    let mut square = 0.0;
    for i in 0..gram.rows() {
        for j in 0..gram.cols() {
            square += (gram[(i, j)] - if i == j { 1.0 } else { 0.0 }).powi(2);
        }
    }
    square.sqrt()
}

fn orthonormalise(a: &Mat) -> Option<Mat> {
    extend(&Mat::zeros(a.rows(), 0), a)
}

/// Orthonormal columns that add to the orthonormal `q` what `block` spans beyond it; what is numerically inside is dropped.
fn extend(q: &Mat, block: &Mat) -> Option<Mat> {
    let lengths = column_norms(block);
    let mut new = by_rows(block.rows(), block.cols(), |i, out| {
        for k in 0..out.len() {
            out[k] = if lengths[k] > 0.0 { block[(i, k)] / lengths[k] } else { 0.0 };
        }
    });
    // Three passes: each cleans what the squared condition number of the one before left behind.
    for _ in 0..3 {
        for _ in 0..2 {
            if q.cols() > 0 {
                new = minus(&new, &product(q, &cross(q, &new, None)));
            }
        }
        let (values, vectors) = eigen(&cross(&new, &new, None))?;
        let keep: Vec<usize> = (0..values.len()).filter(|&k| values[k] > 1e-13).collect();
        new = product(&new, &Mat::from_fn(values.len(), keep.len(), |i, k| vectors[(i, keep[k])] / values[keep[k]].sqrt()));
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{Csr, LowRankOperator, SparseOperator};

    /// A planted chain with r groups of equal size: true factors with some noise, weights, and sampled sparse rows.
    fn planted(d: usize, r: usize, per_row: usize) -> (Mat, Mat, Vec<f64>, SparseOperator) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut positive = || -> f64 {
            let x: f64 = StandardNormal.sample(&mut rng);
            x.abs() + 1e-3
        };
        let mut u = Mat::from_fn(d, r, |i, j| if i % r == j { 5.0 + positive() } else { 0.2 * positive() });
        let mut v = Mat::from_fn(d, r, |_, _| positive().powi(3));
        for i in 0..d {
            let sum: f64 = u.row(i).iter().sum();
            u.row_mut(i).iter_mut().for_each(|x| *x /= sum);
        }
        let sums = column_sums(&v, None);
        (0..d).for_each(|i| v.row_mut(i).iter_mut().zip(&sums).for_each(|(x, s)| *x /= s));
        let xi: Vec<f64> = (0..d).map(|_| (1.0 + positive()) / d as f64).collect();
        let mut triplets = Vec::new();
        for i in 0..d {
            let mut row: Vec<(u32, f64)> = Vec::new();
            for k in 0..per_row {
                let j = (i * 7919 + k * 104_729 + k * k * 31) % d;
                let weight = dot(u.row(i), v.row(j)) * d as f64 * positive();
                row.push((j as u32, weight));
            }
            let sum: f64 = row.iter().map(|x| x.1).sum();
            triplets.extend(row.into_iter().map(|(j, x)| (i as u32, j, x / sum)));
        }
        let p = SparseOperator::new(Csr::from_triplets(d, d, &triplets).unwrap(), Vec::new()).unwrap();
        (u, v, xi, p)
    }

    #[test]
    fn matrix_free_and_dense_agree() {
        let (u, v, xi, p) = planted(400, 4, 60);
        let rows = Rows::new("P", &p).unwrap();
        // From a rest far below 1 to one far above it; the rank-one part is 1.5.
        for (lambda, share) in [(1e-4, 1.0 - 1e-7), (6e-5, 1.0 - 1e-7), (5e-5, 0.99), (1e-5, 0.0)] {
            let mu = vec![1.5 * lambda / 400.0; 400];
            let point = Point { rows: &rows, xi: &xi, lambda, a: &u, b: &v, mu: &mu };
            let exact = dense_bound(&point, 0);
            let free = matrix_free_bound(&point, 5);
            let top: Vec<f64> = singular_values(&point.dense()).unwrap().into_iter().take(6).collect();
            println!("lambda {lambda:e}: dense {:e}, matrix-free {:e}, norm {:e}, {top:.3?}", exact.value, free.value, free.norm);
            assert!(matches!(free.proof, BoundProof::Lanczos { .. }));
            assert!(free.value <= exact.value * (1.0 + 1e-9));
            assert!(free.value >= exact.value * share);
        }
    }

    #[test]
    fn low_rank_and_dense_agree() {
        let (u, v, xi, _) = planted(300, 4, 10);
        let (left, right, _, _) = planted(300, 5, 10);
        let p = LowRankOperator::new(left, right).unwrap();
        let rows = Rows::new("P", &p).unwrap();
        let mu: Vec<f64> = xi.iter().map(|x| x * x * 1e-3).collect();
        for lambda in [1e-5, 1e-6, 1e-7] {
            let point = Point { rows: &rows, xi: &xi, lambda, a: &u, b: &v, mu: &mu };
            let (exact, low) = (dense_bound(&point, 0), low_rank_bound(&point).unwrap());
            println!("lambda {lambda:e}: dense {:e}, low rank {:e}", exact.value, low.value);
            assert!((low.value - exact.value).abs() <= 1e-9 * exact.value.abs());
        }
    }

    #[test]
    fn products_match_the_formed_matrix() {
        let (u, v, xi, p) = planted(90, 3, 20);
        let rows = Rows::new("P", &p).unwrap();
        let mu: Vec<f64> = xi.iter().map(|x| x * 0.3).collect();
        let point = Point { rows: &rows, xi: &xi, lambda: 1e-3, a: &u, b: &v, mu: &mu };
        let w = point.dense();
        let x = Mat::from_fn(90, 18, |i, k| ((i * 3 + k * 7) % 11) as f64 - 4.0);
        let same = |a: &Mat, b: &Mat| a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-11);
        assert!(same(&point.times(&x), &product(&w, &x)));
        assert!(same(&point.transposed_times(&x), &product(&w.transposed(), &x)));
        // Both forms of the dual function.
        let (low, dense) = (point.ray(), Ray::dense(&rows, &xi, point.lambda, &w));
        for z in [0.1, 1.0, 3.0] {
            assert!((low.value(z) - dense.value(z)).abs() < 1e-12 * dense.value(z).abs().max(1e-6));
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_digit() {
        let (u, v, xi, p) = planted(1300, 3, 30);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| crate::verify::recompute(&p, &xi, 1e-7, &u, &v, None, None, 3).unwrap())
        };
        let (one, three) = (run(1), run(3));
        println!("{one:?}");
        assert_eq!(one, three);
        assert!(one.lower_bound <= one.objective);
    }

    /// A minute or two; prints what it found: `cargo test --release -- --ignored --nocapture a_hundred_thousand`.
    #[test]
    #[ignore = "100,000 states: minutes, not seconds"]
    fn a_hundred_thousand_states() {
        let (d, r) = (100_000, 20);
        let (u, v, xi, p) = planted(d, r, 100);
        let clock = std::time::Instant::now();
        let found = crate::verify::recompute(&p, &xi, 7e-10, &u, &v, None, None, 3).unwrap();
        println!("{:.1?}: {found:?}", clock.elapsed());
        assert!(found.lower_bound <= found.objective);
    }
}
