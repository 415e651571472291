//! The global check and the appending of columns.
//!
//! A stationary point is optimal for the convex problem if `Omega°(W) = max u^T W v <= 1` over nonnegative unit u, v (the
//! paper's Theorem 4.3). Where some pair exceeds 1, appending it lowers F (Theorem 5.3).

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::metric::Side;
use super::problem::{Factors, Problem};
use crate::linalg::{Mat, small, thin};
use crate::proof::point::{DualPoint, beside};

/// Ascent steps from one start that find directions worth appending.
pub const STEPS_TO_GROW: usize = 40;
/// Ascent steps from one start for a published value.
pub const STEPS_TO_REPORT: usize = 300;
/// Operations that one search should take; large problems make do with fewer starts and steps, down to the next two.
const SEARCH_BUDGET: usize = 10_000_000_000;
/// Operations spent on more starts for a published value.
const REPORT_BUDGET: usize = 1_000_000_000;
/// Starts of a search, at most (and as many single states).
const MOST_STARTS: usize = 256;
/// Steps of a search, at least.
const FEWEST_STEPS: usize = 8;
/// Random starts of a search, at least (and as many single states).
const FEWEST_STARTS: usize = 2;
/// Directions that are multiplied by W at once.
const DIRECTIONS_AT_ONCE: usize = 64;
/// Steps of the best response where directions have prices.
const RESPONSE_STEPS: usize = 4;
/// Up to this number of states a thorough search starts from every one of them, ...
const ALL_SINGLE_STATES: usize = 128;
/// ... beyond from so many with the largest weights.
const HEAVIEST: usize = 16;
/// Up to this number of states all singular vectors are computed at once.
const ALL_VECTORS: usize = 150;
/// Singular vectors that a thorough search starts from, both signs of each, ...
const SINGULAR: usize = 6;
/// ... found by so many power steps.
const POWER_STEPS: usize = 8;
/// Two atoms with a larger inner product than this are one.
const SAME_ATOM: f64 = 0.9;

/// A direction whose value grows by no more than this share in a step has arrived.
const ARRIVED: f64 = 1e-8;

/// A pair of nonnegative unit vectors and `u^T W v`.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Left vector.
    pub u: Vec<f64>,
    /// Right vector.
    pub v: Vec<f64>,
    /// `u^T W v`.
    pub value: f64,
}

/// How hard to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AscentSearch {
    /// Random directions to start from, and as many single states.
    pub starts: usize,
    /// Ascent steps from each.
    pub steps: usize,
    /// Seed of the starts.
    pub seed: u64,
    /// Whether to start from singular vectors and from the heaviest states too.
    pub thorough: bool,
}

impl AscentSearch {
    /// For a published value: as many starts as `REPORT_BUDGET` pays for.
    #[must_use]
    pub fn to_report(problem: &Problem, x: &Factors, at_least: usize, seed: u64) -> AscentSearch {
        let a_start = 2 * STEPS_TO_REPORT * operations_a_column(problem, x);
        let starts = (REPORT_BUDGET / a_start).clamp(at_least, MOST_STARTS.max(at_least));
        AscentSearch { starts, steps: STEPS_TO_REPORT, seed, thorough: true }
    }
}

/// Operations of one ascent step from one start.
fn operations_a_column(problem: &Problem, x: &Factors) -> usize {
    4 * (problem.p.nonzeros() + (problem.rows() + problem.cols()) * x.rank())
}

/// Exact stopping rule: projected ascent from the solution's own columns, from single states and from random vectors.
/// Returns the best value found (a lower bound of `Omega°(W)`) and the distinct pairs above `threshold`, best first.
pub fn ascend(problem: &Problem, x: &Factors, mu: &[f64], search: &AscentSearch, threshold: f64) -> (f64, Vec<Violation>) {
    let w = DualPoint { problem, a: &x.u, b: &x.v, mu };
    // Where a step is dear, fewer starts and fewer steps.
    let a_column = operations_a_column(problem, x);
    let affordable = SEARCH_BUDGET / (FEWEST_STEPS * a_column);
    let random = search.starts.min((affordable.saturating_sub(x.rank()) / 2).max(FEWEST_STARTS));
    let from = beside(&[&x.v, &if search.thorough { thorough_starts(&w, random, search.seed) } else { starts(&w, random, search.seed) }]);
    let steps = search.steps.min((SEARCH_BUDGET / (a_column * from.cols())).max(FEWEST_STEPS));
    let (u, v, values) = alternate(&w, from, steps);
    let best = values.iter().copied().fold(0.0, f64::max);
    let mut order: Vec<usize> = (0..values.len()).filter(|&k| values[k] > threshold).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    let mut found: Vec<Violation> = Vec::new();
    for k in order {
        let candidate = Violation { u: u.column(k), v: v.column(k), value: values[k] };
        let same = |other: &Violation| thin::dot(&candidate.u, &other.u) * thin::dot(&candidate.v, &other.v) > SAME_ATOM;
        if !found.iter().any(same) {
            found.push(candidate);
        }
    }
    (best, found)
}

/// Early stopping rule: `count` random directions on the nonnegative sphere, without ascent. Returns the largest
/// `phi(v) = ||[W v]_+||` and the pair that reached it.
#[must_use]
pub fn probe(problem: &Problem, x: &Factors, mu: &[f64], count: usize, seed: u64) -> Violation {
    let w = DualPoint { problem, a: &x.u, b: &x.v, mu };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut best = Violation { u: Vec::new(), v: Vec::new(), value: 0.0 };
    let mut image = Mat::default();
    let mut left = count;
    while left > 0 {
        let block = left.min(DIRECTIONS_AT_ONCE);
        left -= block;
        let mut v = Mat::from_fn(problem.cols(), block, |_, _| normal(&mut rng).abs());
        let (left, right) = sides(problem);
        normalise_columns_in(&mut v, right);
        w.times(&v, &mut image);
        let values = best_response(&mut image, left);
        for k in 0..block {
            if values[k] > best.value {
                best = Violation { u: image.column(k), v: v.column(k), value: values[k] };
            }
        }
    }
    best
}

/// Where an ascent may begin: `count` random directions and as many single states.
pub(crate) fn starts(w: &DualPoint, count: usize, seed: u64) -> Mat {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let random = random_directions(w.problem.cols(), count, &mut rng);
    beside(&[&random, &single_states(w, count, &mut rng)])
}

/// The same, and the positive and negative parts of the leading right singular vectors, and the states with the largest weights (all of
/// them where there are few): structure that random starts miss shows in one of these.
pub(crate) fn thorough_starts(w: &DualPoint, count: usize, seed: u64) -> Mat {
    let d = w.problem.rows();
    let mut heaviest: Vec<usize> = (0..d).collect();
    heaviest.sort_by(|&i, &j| w.problem.xi2[j].total_cmp(&w.problem.xi2[i]).then(i.cmp(&j)));
    heaviest.truncate(if d <= ALL_SINGLE_STATES { d } else { HEAVIEST });
    beside(&[&starts(w, count, seed), &from_states(w, &heaviest), &singular_starts(w, seed)])
}

/// The positive and the negative parts of the leading right singular vectors.
pub(crate) fn singular_starts(w: &DualPoint, seed: u64) -> Mat {
    let singular = w.behind_right(&leading_right_vectors(w, seed));
    Mat::from_fn(w.problem.cols(), 2 * singular.cols(), |i, k| {
        let x = singular[(i, k / 2)];
        if k % 2 == 0 { x.max(0.0) } else { (-x).max(0.0) }
    })
}

/// Right singular vectors of W for its largest singular values: exactly where there are few states, else by a few block power steps.
fn leading_right_vectors(w: &DualPoint, seed: u64) -> Mat {
    let d = w.problem.cols();
    if w.problem.larger_side() <= ALL_VECTORS {
        let dense = w.dense();
        let mut square = Mat::default();
        thin::transposed_product(&dense, &dense, &mut square);
        if let Some((_, vectors)) = small::symmetric_eigen(&square) {
            return vectors.select_columns(&(d - SINGULAR.min(d)..d).collect::<Vec<_>>());
        }
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x7370_6563);
    let mut x = Mat::from_fn(d, SINGULAR.min(d), |_, _| normal(&mut rng));
    let mut image = Mat::default();
    for _ in 0..POWER_STEPS {
        x = small::orthonormalise(&x);
        w.apply(&x, &mut image);
        w.apply_transpose(&image, &mut x);
    }
    let basis = small::orthonormalise(&x);
    w.apply(&basis, &mut image);
    let Some((_, rotation)) = small::symmetric_eigen(&thin::gram(&image)) else { return basis };
    let mut vectors = Mat::default();
    thin::product(&basis, &rotation, &mut vectors);
    vectors
}

/// `u = [W v]_+ / ||.||`, `v = [W^T u]_+ / ||.||` for all columns at once, until none gains; the value never falls.
pub(crate) fn alternate(w: &DualPoint, mut v: Mat, steps: usize) -> (Mat, Mat, Vec<f64>) {
    let (left, right) = sides(w.problem);
    normalise_columns_in(&mut v, right);
    let (mut u, mut next) = (Mat::default(), Mat::default());
    let mut values = vec![0.0; v.cols()];
    for _ in 0..steps {
        w.times(&v, &mut u);
        best_response(&mut u, left);
        w.transposed_times(&u, &mut next);
        let found = best_response(&mut next, right);
        std::mem::swap(&mut v, &mut next);
        let settled = found.iter().zip(&values).all(|(new, old)| *new <= old * (1.0 + ARRIVED) || *new == 0.0);
        values = found;
        if settled {
            break;
        }
    }
    (u, v, values)
}

/// The two sides of the prices, where there are any.
fn sides<'a>(problem: &'a Problem) -> (Option<&'a Side>, Option<&'a Side>) {
    problem.frame.metric.as_deref().map_or((None, None), |m| (Some(&m.left), Some(&m.right)))
}

/// For each column y the `x >= 0` with `||L x|| = 1` and `y . x` as large as it is found; the values. Without prices that is `[y]_+ / ||[y]_+||`. With them `y . x - 1/2 ||L x||^2` is raised by
/// `x <- [y + (1 - delta^2) Q Q^T x]_+` (the concave part of the square at its tangent), x at its best length before each step.
fn best_response(y: &mut Mat, side: Option<&Side>) -> Vec<f64> {
    let Some(side) = side else { return keep_positive(y) };
    let mut x = y.clone();
    thin::for_each_row_mut(&mut x, |_, row| row.iter_mut().for_each(|x| *x = x.max(0.0)));
    for _ in 0..RESPONSE_STEPS {
        let (along, lengths) = (products_of_columns(y, &x), side.norms_squared(&x));
        let length = |k: usize| if lengths[k] > 0.0 { along[k] / lengths[k] } else { 0.0 };
        let inside = side.inside(&x);
        x = Mat::from_fn(y.rows(), y.cols(), |i, k| (y[(i, k)] + side.saved() * length(k) * inside[(i, k)]).max(0.0));
    }
    normalise_columns_in(&mut x, Some(side));
    let values = products_of_columns(y, &x);
    *y = x;
    values
}

/// `y_k . x_k` of every column.
fn products_of_columns(y: &Mat, x: &Mat) -> Vec<f64> {
    thin::fold_rows(y, |sums, i, row| (0..row.len()).for_each(|k| sums[k] += row[k] * x[(i, k)]))
}

/// Columns scaled to `||L x|| = 1`.
fn normalise_columns_in(m: &mut Mat, side: Option<&Side>) -> Vec<f64> {
    let Some(side) = side else { return normalise_columns(m) };
    let norms: Vec<f64> = side.norms_squared(m).iter().map(|n| n.sqrt()).collect();
    thin::for_each_row_mut(m, |_, row| row.iter_mut().zip(&norms).for_each(|(x, n)| *x = if *n > 0.0 { *x / n } else { 0.0 }));
    norms
}

fn normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Random points of the nonnegative sphere, from nearly even ones to ones that live on few states: plain Gaussian
/// directions all lie near the uniform one when d is large.
fn random_directions(d: usize, count: usize, rng: &mut impl Rng) -> Mat {
    let spread: Vec<f64> = (0..count).map(|k| 1.0 + 4.0 * k as f64 / count.max(1) as f64).collect();
    Mat::from_fn(d, count, |_, k| (spread[k] * normal(rng)).exp())
}

/// `[W^T e_i]_+` for random states i.
fn single_states(w: &DualPoint, count: usize, rng: &mut impl Rng) -> Mat {
    let chosen: Vec<usize> = (0..count).map(|_| rng.random_range(0..w.problem.rows())).collect();
    from_states(w, &chosen)
}

/// `[W^T e_i]_+` for the states given.
fn from_states(w: &DualPoint, chosen: &[usize]) -> Mat {
    let mut states = Mat::zeros(w.problem.rows(), chosen.len());
    chosen.iter().enumerate().for_each(|(k, &i)| states[(i, k)] = 1.0);
    let mut image = Mat::default();
    w.transposed_times(&states, &mut image);
    thin::for_each_row_mut(&mut image, |_, row| row.iter_mut().for_each(|x| *x = x.max(0.0)));
    image
}

/// `[.]_+`, columns scaled to length one; their lengths.
fn keep_positive(m: &mut Mat) -> Vec<f64> {
    thin::for_each_row_mut(m, |_, row| row.iter_mut().for_each(|x| *x = x.max(0.0)));
    normalise_columns(m)
}

fn normalise_columns(m: &mut Mat) -> Vec<f64> {
    let norms = thin::column_norms(m);
    thin::for_each_row_mut(m, |_, row| {
        for (x, n) in row.iter_mut().zip(&norms) {
            *x = if *n > 0.0 { *x / n } else { 0.0 };
        }
    });
    norms
}

/// How columns are appended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Append {
    /// At most this many at once; the paper appends one.
    pub at_once: usize,
    /// Relative decrease of F that the backtracked kappa must reach (the paper: 1e-5).
    pub decrease: f64,
    /// Below this kappa the point is called stationary (the paper: 1e-8).
    pub smallest_kappa: f64,
}

/// `U <- [diag(1 - sum_k kappa u_k) U, kappa u_k]`, `V <- [V, v_k / sum(v_k)]` (the paper's (5.9)), kappa halved until F has
/// fallen enough; `None` when kappa ends below the smallest.
pub fn append(problem: &Problem, x: &Factors, violations: &[Violation], settings: &Append) -> Option<Factors> {
    let (m, n, s) = (problem.rows(), problem.cols(), x.rank());
    let chosen = &violations[..violations.len().min(settings.at_once)];
    let before = problem.objective(x).value;
    let mut load = vec![0.0; m];
    for c in chosen {
        load.iter_mut().zip(&c.u).zip(&problem.frame.totals).for_each(|((l, u), t)| *l += u / t);
    }
    let highest = load.iter().copied().fold(0.0, f64::max);
    if highest.is_nan() || highest <= 0.0 {
        return None;
    }
    let sums: Vec<f64> = chosen.iter().map(|c| c.v.iter().zip(&problem.frame.measure).map(|(v, c)| v * c).sum()).collect();
    let v = Mat::from_fn(n, s + chosen.len(), |i, j| if j < s { x.v[(i, j)] } else { chosen[j - s].v[i] / sums[j - s] });
    let mut kappa = 1.0 / highest;
    while kappa >= settings.smallest_kappa {
        let u = Mat::from_fn(m, s + chosen.len(), |i, j| {
            if j < s { (1.0 - kappa * load[i]).max(0.0) * x.u[(i, j)] } else { kappa * chosen[j - s].u[i] }
        });
        let mut longer = Factors { u, v: v.clone() };
        longer.normalise_rows();
        thin::scale_rows(&mut longer.u, &problem.frame.totals);
        if problem.objective(&longer).value < (1.0 - settings.decrease) * before {
            return Some(longer);
        }
        kappa *= 0.5;
    }
    None
}
