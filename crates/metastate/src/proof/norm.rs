//! Three ways to prove `||W'||_2 <= n` for a clipped dual point W'. Each of them ends on every matrix.
//!
//! (P5) *Low rank.* `P = L R^T`: then W has rank `1 + k + r` at most, orthonormal bases hold all of it, and what rounding leaves outside
//! is measured.
//! (P6) *Cholesky*, up to a few thousand states: a floating-point Cholesky factor of `rho^2 I - G`, G the computed `W'^T W'`, exists only
//! if `||W'||^2 <= rho^2 + (d + 2) eps (d rho^2 + ||W'||_F^2)`, whatever the order of the sums (Rump 2006; Higham 2002, Theorem 10.3).
//! If rho is too small the next is larger; at `rho^2 >= trace G` nothing is left to factorise.
//! (P7) *Lanczos*, beyond: W' in bases whose leading part holds the known singular vectors; the rest is bounded by Lanczos from random
//! starts. After m steps on a positive semidefinite `d x d` matrix the largest Ritz value misses the largest eigenvalue by more than
//! the share eps with probability at most `1.648 sqrt(d) exp(-sqrt(eps) (2 m - 1))` (Kuczynski and Wozniakowski 1992, Theorem 4.2).
//! The probability that a caller allows is shared evenly by all starts that may be tried, and every start is drawn afresh.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::leading::{Explored, Leading, NEAR_ONE, normalise, orthogonalise, remove};
use super::point::{Clipped, DualPoint, beside};
use super::{Effort, Method};
use crate::linalg::{Mat, small, thin};

/// Up to this number of states all singular vectors are computed at once; it takes less than exploring.
const DECOMPOSED_STATES: usize = 400;
/// Where the norm after exploring stays above this, all singular vectors are worth their time.
const LOOSE: f64 = 1.0 + 2e-5;
/// Widenings of the bases by what exploring finds.
const ROUNDS: u64 = 3;
/// Singular vectors that exploring may add to those that are known.
const MOST_ADDED: usize = 64;
/// More than this many found at once, and there are many more.
const CROWD: usize = 32;
/// Lanczos runs that one proof may make.
const TRIES: usize = 4;
/// Where the rest exceeds 1, a bound that is looser by less than this share of the excess is not made sharper.
const WORTH_MORE_STEPS: f64 = 0.1;
/// Numbers that the vectors of a Lanczos run may take, all together: 1.6 GB.
const LANCZOS_ROOM: usize = 200_000_000;

/// What is clipped, what the norm of the rest is proven to be at most, and how. Where `enough` says so, a loose norm is not made tighter.
pub(super) fn clip_and_prove(w: &DualPoint, effort: &Effort, enough: &dyn Fn(&Clipped, f64) -> bool) -> Option<(Clipped, f64, Method)> {
    let found = if w.problem.p.low_rank().is_some() {
        low_rank(w)?
    } else if w.problem.larger_side() <= effort.cholesky_states {
        dense(w, effort, enough)?
    } else {
        large(w, effort)?
    };
    found.1.is_finite().then_some(found)
}

/// What products with W' and its entries may be wrong by: so many units in the last place of the numbers that go into them.
fn rounding(w: &DualPoint, clipped: &Clipped) -> f64 {
    let terms = w.problem.larger_side() + w.a.cols() + clipped.excess.len() + 64;
    terms as f64 * f64::EPSILON * (w.size() + clipped.excess.iter().sum::<f64>())
}

/// (P5)
fn low_rank(w: &DualPoint) -> Option<(Clipped, f64, Method)> {
    let problem = w.problem;
    let (m, n) = (problem.rows(), problem.cols());
    let (p_left, p_right) = problem.p.low_rank()?;
    let ones = Mat::from_fn(n, 1, |_, _| 1.0);
    let mu = Mat::from_vec(m, 1, w.mu.to_vec()).ok()?;
    let weighted = |a: &Mat| Mat::from_fn(m, a.cols(), |i, j| problem.xi2[i] * a[(i, j)]);
    // lambda W = F H^T, up to signs that do not matter for the spans.
    let (f, h) = (beside(&[&mu, &weighted(w.a), &weighted(p_left)]), beside(&[&ones, w.b, p_right]));
    let (left, right) = (small::orthonormalise(&f), small::orthonormalise(&h));
    let leading = Leading::new(w, &left, &right)?;
    // The rest is (I - L L^T) F H^T (I - R R^T) / lambda: column by column what the bases miss of F, times what they miss of H.
    let missed = |m: &Mat, q: &Mat| {
        let mut inside = Mat::default();
        thin::product(q, &thin::cross_gram(q, m), &mut inside);
        thin::column_norms(&Mat::from_fn(m.rows(), m.cols(), |i, j| m[(i, j)] - inside[(i, j)]))
    };
    let rest = missed(&f, &left).iter().zip(&missed(&h, &right)).map(|(f, h)| f * h).sum::<f64>() / problem.lambda;
    let clipped = leading.clip();
    let norm = leading.norm_with(rest, rounding(w, &clipped));
    Some((clipped, norm, Method::LowRank))
}

/// (P6)
fn dense(w: &DualPoint, effort: &Effort, enough: &dyn Fn(&Clipped, f64) -> bool) -> Option<(Clipped, f64, Method)> {
    let full = w.dense();
    full.first_not_finite().is_none().then_some(())?;
    if w.problem.larger_side() > DECOMPOSED_STATES {
        let clipped = explore(w, effort)?.clip();
        let norm = cholesky_norm(&minus(&full, &clipped)) + rounding(w, &clipped);
        if norm <= LOOSE || enough(&clipped, norm) {
            return Some((clipped, norm, Method::Cholesky));
        }
    }
    let clipped = all_above_one(&full)?;
    let norm = cholesky_norm(&minus(&full, &clipped)) + rounding(w, &clipped);
    Some((clipped, norm, Method::Cholesky))
}

/// The known bases widened by what Lanczos finds near and above 1, as long as that is not too much to be found a few at a time.
fn explore(w: &DualPoint, effort: &Effort) -> Option<Leading> {
    let mut leading = Leading::new(w, w.a, w.b)?;
    for round in 0..=ROUNDS {
        let seed = effort.seed.wrapping_mul(31).wrapping_add(round + 1);
        let found = Explored::run(w, &leading, effort.lanczos_steps, seed);
        let over = found.above(NEAR_ONE);
        let crowded = over > CROWD || leading.values.len() + over > w.b.cols() + MOST_ADDED;
        if over == 0 || crowded || round == ROUNDS {
            break;
        }
        let chosen: Vec<usize> = (0..over).collect();
        leading = leading.with(w, &found.left.select_columns(&chosen), &found.right.select_columns(&chosen))?;
    }
    Some(leading)
}

/// `W - L diag(e) R^T`.
fn minus(full: &Mat, clipped: &Clipped) -> Mat {
    let (left, right) = clipped.scaled();
    let mut product = Mat::default();
    thin::product(&left, &right.transposed(), &mut product);
    let mut out = full.clone();
    if left.cols() > 0 {
        thin::for_each_row_mut(&mut out, |i, row| row.iter_mut().zip(product.row(i)).for_each(|(w, p)| *w -= p));
    }
    out
}

/// Every singular pair of W above 1, from the eigenvectors of `W^T W`: `W r = sigma l`.
fn all_above_one(full: &Mat) -> Option<Clipped> {
    let mut square = Mat::default();
    thin::transposed_product(full, full, &mut square);
    let (values, vectors) = small::symmetric_eigen(&square)?;
    let first = values.partition_point(|v| *v <= 1.0);
    let right = vectors.select_columns(&(first..values.len()).rev().collect::<Vec<_>>());
    let sigma: Vec<f64> = values[first..].iter().rev().map(|v| v.sqrt()).collect();
    let mut left = Mat::default();
    thin::product(full, &right, &mut left);
    left.resize(full.rows(), right.cols());
    thin::for_each_row_mut(&mut left, |_, row| row.iter_mut().zip(&sigma).for_each(|(l, s)| *l /= s));
    Some(Clipped { left, right, excess: sigma.iter().map(|s| s - 1.0).collect() })
}

/// The smallest tried rho for which `rho^2 I - W^T W` has a Cholesky factor, with the rounding of the test added.
fn cholesky_norm(w: &Mat) -> f64 {
    let d = w.rows().max(w.cols());
    let mut square = Mat::default();
    thin::transposed_product(w, w, &mut square);
    let trace: f64 = (0..square.rows()).map(|i| square[(i, i)]).sum();
    let share = (d as f64 + 2.0) * f64::EPSILON;
    let with_rounding = |rho2: f64| (rho2 + share * (d as f64 * rho2 + trace)).sqrt();
    let mut over = largest_eigenvalue(&square).sqrt().max(1.0) - 1.0;
    over = 1.01 * over + share * d as f64;
    loop {
        let rho2 = (1.0 + over).powi(2);
        if rho2 >= trace || !rho2.is_finite() {
            return with_rounding(trace);
        }
        let mut shifted = square.clone();
        shifted.as_mut_slice().iter_mut().for_each(|x| *x = -*x);
        (0..square.rows()).for_each(|i| shifted[(i, i)] += rho2);
        if small::has_cholesky_factor(&mut shifted) {
            return with_rounding(rho2);
        }
        over *= 3.0;
    }
}

/// Where the Cholesky tests begin: a few power steps on a block of vectors. A guess, no more.
fn largest_eigenvalue(square: &Mat) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut x = Mat::from_fn(square.rows(), 4.min(square.rows()), |_, _| StandardNormal.sample(&mut rng));
    let mut image = Mat::default();
    let mut value: f64 = 0.0;
    for _ in 0..12 {
        x = small::orthonormalise(&x);
        thin::product(square, &x, &mut image);
        let ritz = small::symmetric_eigen(&thin::cross_gram(&x, &image)).and_then(|(v, _)| v.last().copied());
        value = value.max(ritz.unwrap_or(0.0));
        std::mem::swap(&mut x, &mut image);
    }
    value
}

/// (P7)
fn large(w: &DualPoint, effort: &Effort) -> Option<(Clipped, f64, Method)> {
    let leading = explore(w, effort)?;
    let (rest, failure_probability) = lanczos_norm(w, &leading, effort);
    let clipped = leading.clip();
    let norm = leading.norm_with(rest, rounding(w, &clipped));
    Some((clipped, norm, Method::Lanczos { failure_probability }))
}

/// An upper bound of the norm of the rest, and the probability that it does not hold: more steps as long as the bound is above 1 and
/// more of them could bring it below.
fn lanczos_norm(w: &DualPoint, leading: &Leading, effort: &Effort) -> (f64, f64) {
    let d = w.problem.cols();
    let allowed = effort.failure_probability / TRIES as f64;
    let most = effort.most_lanczos_steps.min(LANCZOS_ROOM / d).max(2);
    let mut steps = effort.lanczos_steps.min(most);
    let (mut best, mut spent) = (f64::INFINITY, 0.0);
    for attempt in 0..TRIES as u64 {
        // Another stream than that of exploring: the start must not know of the matrix.
        let seed = effort.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x5851_f42d + attempt);
        let (largest, exhausted) = lanczos(w, leading, steps, seed);
        let share = ((1.648 * (d as f64).sqrt() / allowed).ln() / (2.0 * steps as f64 - 1.0)).powi(2);
        let bound = match exhausted {
            true => largest,
            false if share < 1.0 => largest / (1.0 - share).sqrt(),
            false => f64::INFINITY,
        };
        best = best.min(bound);
        spent += allowed;
        // What exceeds 1 stays above it, however many steps: more of them sharpen the bound, and are worth it only where it is loose.
        if best <= 1.0 || steps == most || best - largest <= WORTH_MORE_STEPS * (largest - 1.0) {
            break;
        }
        steps = (2 * steps).min(most);
    }
    (best, spent)
}

/// The largest Ritz value of the rest after so many steps of Lanczos on `R^T R` from a random start, every vector kept orthogonal to all
/// before it; and whether the vectors span everything, in which case it is exact. Where a step leaves nothing (the space is
/// invariant), the run goes on with a fresh random vector: nothing that is still to be found is missed.
fn lanczos(w: &DualPoint, leading: &Leading, steps: usize, seed: u64) -> (f64, bool) {
    let d = w.problem.cols();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside_it): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let (mut x, mut image, mut next) = (Mat::zeros(d, 1), Mat::default(), Mat::default());
    let mut vector: Option<Vec<f64>> = None;
    let mut exhausted = false;
    while basis.len() < steps {
        let v = match vector.take() {
            Some(v) => v,
            None => {
                let mut v: Vec<f64> = (0..d).map(|_| StandardNormal.sample(&mut rng)).collect();
                let before = thin::dot(&v, &v).sqrt();
                remove(&mut v, &leading.right);
                orthogonalise(&mut v, &basis);
                if normalise(&mut v) <= 1e-10 * before {
                    exhausted = true;
                    break;
                }
                if !basis.is_empty() {
                    beside_it.push(0.0);
                }
                v
            }
        };
        x.as_mut_slice().copy_from_slice(&v);
        w.apply(&x, &mut image);
        remove(image.as_mut_slice(), &leading.left);
        diagonal.push(thin::dot(image.as_slice(), image.as_slice()));
        w.apply_transpose(&image, &mut next);
        let mut r = next.as_slice().to_vec();
        basis.push(v);
        remove(&mut r, &leading.right);
        orthogonalise(&mut r, &basis);
        let length = normalise(&mut r);
        let scale = diagonal.iter().copied().fold(0.0, f64::max);
        if length > 1e-13 * scale {
            beside_it.push(length);
            vector = Some(r);
        }
    }
    let m = diagonal.len();
    let tridiagonal = Mat::from_fn(m, m, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside_it.get(i.min(j)).copied().unwrap_or(0.0),
        _ => 0.0,
    });
    let largest = small::symmetric_eigen(&tridiagonal).and_then(|(v, _)| v.last().copied()).unwrap_or(0.0);
    (largest.max(0.0).sqrt(), exhausted)
}
