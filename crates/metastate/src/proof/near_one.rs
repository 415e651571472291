//! The singular vectors of a dual point whose values lie near and above 1, all of them, to a stated residual.
//!
//! A block of vectors, the known spans first, is filtered by a Chebyshev polynomial of `W^T W` that is small below the block's least value and large above it, made orthonormal, and turned into Ritz
//! vectors; again until the residuals of those near and above 1 are small beside their distance from 1. Where none of the block is clearly below 1 it is widened. Nothing here proves anything.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::leading::{Leading, NEAR_ONE};
use super::point::{DualPoint, beside};
use crate::linalg::{Mat, small, thin};

/// Vectors of the block beyond those near and above 1: the more, the faster the others settle.
const SPARE: usize = 8;
/// Filters, at most.
const ROUNDS: usize = 32;
/// Filters, at least.
const LOOKS: usize = 2;
/// Degree of the filter.
const DEGREE: usize = 8;
/// No filter makes one wanted vector larger than another by more than this: the smaller would drown.
const DYNAMIC_RANGE: f64 = 1e3;
/// Residual at which a vector near or above 1 is settled: the norm of the clipped point exceeds 1 by a small multiple of its square.
const SETTLED: f64 = 1e-4;
/// The filter is flat below this, however small the least value of the block.
const LEAST_CUT: f64 = 0.85;

/// The known spans widened by all vectors near and above 1, and whether all of them fit into a block of `most`. `go_on` is asked before every filter.
pub(super) fn settle(w: &DualPoint, known: &Mat, most: usize, seed: u64, go_on: &mut dyn FnMut() -> bool) -> Option<(Leading, bool)> {
    let full = w.problem.rows().min(w.problem.cols());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut random = |count: usize| Mat::from_fn(w.problem.cols(), count, |_, _| StandardNormal.sample(&mut rng));
    let most = most.max(known.cols() + SPARE).min(full);
    let mut ritz = Ritz::of(w, &beside(&[known, &random(SPARE.min(most.saturating_sub(known.cols())))]))?;
    let mut before = None;
    for round in 0..ROUNDS {
        let (near, size) = (ritz.near(), ritz.values.len());
        // What no filter has brought up yet may still be missing.
        let looked = round >= LOOKS && before == Some(near) && near < size;
        if size >= full || looked && ritz.residual(w, near)? <= SETTLED {
            return Some((ritz.leading(w, near)?, true));
        }
        if near == size && size >= most || !go_on() {
            break;
        }
        before = Some(near);
        let mut block = filtered(w, &ritz);
        let wider = (near + SPARE).clamp(size, most);
        if wider > size {
            // What is new has to catch up: it goes through the same filter.
            let mut new = random(wider - size);
            take_off(&mut new, &ritz.right);
            block = beside(&[&block, &filtered_by(w, &new, ritz.cut(), DEGREE)]);
        }
        ritz = Ritz::of(w, &block)?;
    }
    let near = ritz.near();
    Some((ritz.leading(w, near)?, near < ritz.values.len() || near < most))
}

/// Ritz triplets on a space of right vectors: `W right = left diag(values)` holds by construction.
struct Ritz {
    left: Mat,
    right: Mat,
    values: Vec<f64>,
}

impl Ritz {
    fn of(w: &DualPoint, block: &Mat) -> Option<Ritz> {
        let basis = small::orthonormalise(block);
        let mut image = Mat::default();
        w.apply(&basis, &mut image);
        let (squares, vectors) = small::symmetric_eigen(&thin::gram(&image))?;
        squares.iter().all(|s| s.is_finite()).then_some(())?;
        let falling = vectors.select_columns(&(0..squares.len()).rev().collect::<Vec<_>>());
        let values: Vec<f64> = squares.iter().rev().map(|s| s.max(0.0).sqrt()).collect();
        let (mut left, mut right) = (Mat::default(), Mat::default());
        thin::product(&basis, &falling, &mut right);
        thin::product(&image, &falling, &mut left);
        let scale: Vec<f64> = values.iter().map(|s| if *s > 0.0 { 1.0 / s } else { 0.0 }).collect();
        thin::for_each_row_mut(&mut left, |_, row| row.iter_mut().zip(&scale).for_each(|(l, s)| *l *= s));
        Some(Ritz { left, right, values })
    }

    /// How many values are near or above 1.
    fn near(&self) -> usize {
        self.values.iter().take_while(|s| **s > NEAR_ONE).count()
    }

    /// The largest `||W^T l - s r||` of the first so many.
    fn residual(&self, w: &DualPoint, count: usize) -> Option<f64> {
        if count == 0 {
            return Some(0.0);
        }
        let first: Vec<usize> = (0..count).collect();
        let mut back = Mat::default();
        w.apply_transpose(&self.left.select_columns(&first), &mut back);
        thin::for_each_row_mut(&mut back, |i, row| {
            row.iter_mut().enumerate().for_each(|(k, b)| *b -= self.values[k] * self.right[(i, k)]);
        });
        let worst = thin::column_norms(&back).into_iter().fold(0.0, f64::max);
        worst.is_finite().then_some(worst)
    }

    /// The filter is small below this.
    fn cut(&self) -> f64 {
        self.values.last().copied().unwrap_or(0.0).clamp(LEAST_CUT, NEAR_ONE)
    }

    fn leading(&self, w: &DualPoint, count: usize) -> Option<Leading> {
        let first: Vec<usize> = (0..count).collect();
        if count == 0 {
            return Some(Leading::empty(w));
        }
        Leading::new(w, &self.left.select_columns(&first), &self.right.select_columns(&first))
    }
}

/// The block after one filter, of a degree that no wanted vector drowns in.
fn filtered(w: &DualPoint, ritz: &Ritz) -> Mat {
    let cut = ritz.cut();
    let growth = |value: f64, degree: usize| {
        let x = 2.0 * (value / cut).powi(2) - 1.0;
        (degree as f64 * x.max(1.0).acosh()).cosh()
    };
    let top = ritz.values.first().copied().unwrap_or(1.0);
    let degree = (2..=DEGREE).rev().find(|&k| growth(top, k) <= DYNAMIC_RANGE * growth(1.0, k)).unwrap_or(1);
    filtered_by(w, &ritz.right, cut, degree)
}

/// `x -= Q Q^T x`, twice.
pub(super) fn take_off(x: &mut Mat, basis: &Mat) {
    if basis.cols() == 0 {
        return;
    }
    let mut inside = Mat::default();
    for _ in 0..2 {
        thin::product(basis, &thin::cross_gram(basis, x), &mut inside);
        thin::for_each_row_mut(x, |i, row| row.iter_mut().zip(inside.row(i)).for_each(|(x, q)| *x -= q));
    }
}

/// `T_degree(2 W^T W / cut^2 - 1) x`.
fn filtered_by(w: &DualPoint, x: &Mat, cut: f64, degree: usize) -> Mat {
    let mut image = Mat::default();
    let apply = |x: &Mat, out: &mut Mat| {
        w.apply(x, &mut image);
        w.apply_transpose(&image, out);
    };
    chebyshev(apply, x, cut * cut, degree)
}

/// `T_degree(2 A / end - 1) x` by the recurrence of the Chebyshev polynomials, `T_(k+1)(y) = 2 y T_k(y) - T_(k-1)(y)`, A symmetric.
pub(super) fn chebyshev(mut times: impl FnMut(&Mat, &mut Mat), x: &Mat, end: f64, degree: usize) -> Mat {
    let mut before = x.clone();
    let mut now = Mat::default();
    times(&before, &mut now);
    thin::for_each_row_mut(&mut now, |i, row| row.iter_mut().zip(before.row(i)).for_each(|(n, b)| *n = 2.0 * *n / end - b));
    let mut next = Mat::default();
    for _ in 1..degree {
        times(&now, &mut next);
        thin::for_each_row_mut(&mut next, |i, row| {
            row.iter_mut().zip(now.row(i)).zip(before.row(i)).for_each(|((x, now), before)| *x = 2.0 * (2.0 * *x / end - now) - before);
        });
        std::mem::swap(&mut before, &mut now);
        std::mem::swap(&mut now, &mut next);
    }
    now
}
