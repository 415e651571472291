//! Many states: a leading part of the dual point that is known, and a proof for the rest.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::rows::{beside, by_rows, column_norms, cross, leading, product, sum};
use super::decompositions::{decompose, defect, eigen, extend, minus, norm, orthonormalise};
use super::{Bound, DEAR_STATES, LANCZOS_ROOM, Point, value};
use crate::linalg::Mat;
use crate::verify::BoundProof;

/// Largest probability that a bound by Lanczos fails.
const FAILURE_PROBABILITY: f64 = 1e-12;

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
            let (left, right) = (Mat::zeros(point.rows.rows(), 0), Mat::zeros(point.rows.cols(), 0));
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
        let excess = by_rows(point.a.rows(), over, |i, out| {
            for k in 0..over {
                out[k] = (self.values[k] - 1.0) * self.left[(i, k)];
            }
        });
        let worth = value::low_rank(point, &excess, &leading(&self.right, over));
        let core = self.values.first().copied().unwrap_or(0.0).min(1.0);
        let small = point.rounding();
        let norm = norm_of_blocks(core + small, self.outside.1 + small, self.outside.0 + small, rho + small) * (1.0 + 10.0 * self.defect);
        Bound::at(worth, proof, norm)
    }
}

/// `P = L R^T`: then W has the rank `1 + s + r` at most, and the bases hold all of it.
pub(super) fn low_rank_bound(point: &Point) -> Option<Bound> {
    let (left, right) = point.rows.factored()?;
    let (f, h) = point.factors_of_m();
    let weighted = Mat::from_fn(left.rows(), left.cols(), |i, k| -point.weights[i] * point.weights[i] * left[(i, k)]);
    let (f, h) = (beside(&[&f, &weighted]), beside(&[&h, right]));
    let (qf, qh) = (orthonormalise(&f)?, orthonormalise(&h)?);
    let split = Split::new(point, &qf, &qh)?;
    // What the bases miss of F and of H, column by column: the rest R is -F_missed H_missed^T / lambda.
    let missed = |m: &Mat, q: &Mat| column_norms(&minus(m, &product(q, &cross(q, m, None))));
    let rho = missed(&f, &qf).iter().zip(&missed(&h, &qh)).map(|(f, h)| f * h).sum::<f64>() / point.lambda;
    Some(split.bound(point, rho, BoundProof::LowRank))
}

/// The singular vectors that the solver found, measured anew, and Lanczos from fresh starts for the rest. With more steps as long as the
/// bound is above 1; the probability is shared by all tries.
pub(super) fn given_bound(point: &Point, seed: u64) -> Option<Bound> {
    let (left, right, _) = point.clip?;
    let split = Split::new(point, &orthonormalise(left)?, &orthonormalise(right)?)?;
    let d = point.rows.cols();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(0x7665_7269));
    let most = GIVEN_STEPS.1.min(LANCZOS_ROOM / d).max(2);
    let (mut steps, mut best) = (GIVEN_STEPS.0.min(most), f64::INFINITY);
    for _ in 0..TRIES {
        best = lanczos_bound(point, &split, steps, FAILURE_PROBABILITY / TRIES as f64, &mut rng).map_or(best, |rho| best.min(rho));
        if best <= 1.0 || steps == most {
            break;
        }
        steps = (2 * steps).min(most);
    }
    best.is_finite().then(|| split.bound(point, best, BoundProof::Lanczos { failure_probability: FAILURE_PROBABILITY }))
}

/// Steps of the first Lanczos run beside given vectors, and of the longest.
const GIVEN_STEPS: (usize, usize) = (60, 480);
/// A norm nearer to 1 than this is sharp: nothing is gained by going on.
const SHARP: f64 = 1e-7;
/// Widest Krylov space.
const WIDEST: usize = 240;
/// Only singular vectors above this are worth knowing: what is left is far below 1.
const WORTH_KNOWING: f64 = 0.5;
/// Where Lanczos finds no new direction longer than this, beside the largest eigenvalue, there is none.
const NO_MORE: f64 = 1e-13;
/// Lanczos runs that one proof may make.
const TRIES: usize = 4;

/// Leading singular vectors by block Krylov spaces with restarts, the rest by Lanczos from a random start.
pub(super) fn matrix_free_bound(point: &Point, seed: u64) -> Bound {
    let d = point.rows.cols();
    let (rounds, steps) = if point.rows.side() <= DEAR_STATES { (6, 200) } else { (3, 100) };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(1));
    let loss = 1.0 / (1.0 - lanczos_loss(d, steps, FAILURE_PROBABILITY)).sqrt();
    let mut start = beside(&[point.b, &point.transposed_times(point.a)]);
    let mut previous = f64::INFINITY;
    for round in 0..rounds {
        let random = Mat::from_fn(d, 4, |_, _| StandardNormal.sample(&mut rng));
        let Some((left, right, values)) = krylov_ritz(point, &beside(&[&start, &random])) else { return Bound::TRIVIAL };
        let (count, estimate) = choose_leading(point, &left, &right, &values, loss);
        let improving = estimate - 1.0 < 0.5 * (previous - 1.0);
        if estimate > 1.0 + SHARP && improving && round + 1 < rounds {
            // Not yet sharp: go on from the vectors found so far.
            previous = estimate;
            let keep = values.iter().filter(|s| **s > WORTH_KNOWING).count().min(right.cols()).min(point.b.cols() + 40);
            start = leading(&right, keep);
            continue;
        }
        let Some(split) = Split::new(point, &leading(&left, count), &leading(&right, count)) else { return Bound::TRIVIAL };
        let Some(rho) = lanczos_bound(point, &split, steps, FAILURE_PROBABILITY, &mut rng) else { return Bound::TRIVIAL };
        return split.bound(point, rho, BoundProof::Lanczos { failure_probability: FAILURE_PROBABILITY });
    }
    Bound::TRIVIAL
}

/// Ritz triplets of W on the space spanned by `X, W^T W X, (W^T W)^2 X, ...`, values descending.
fn krylov_ritz(point: &Point, x: &Mat) -> Option<(Mat, Mat, Vec<f64>)> {
    let widest = WIDEST.min(point.rows.rows()).min(point.rows.cols());
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
    let candidates = values.iter().filter(|s| **s > WORTH_KNOWING).count().min(point.b.cols() + 60).min(right.cols());
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
/// largest eigenvalue by more than the share eps with probability at most the one given:
/// `1.648 sqrt(d) exp(-sqrt(eps) (2 m - 1))` (Kuczynski and Wozniakowski 1992, Theorem 4.2).
pub(in crate::verify) fn lanczos_loss(d: usize, steps: usize, probability: f64) -> f64 {
    let exponent = (1.648 * (d as f64).sqrt() / probability).ln();
    (exponent / (2.0 * steps as f64 - 1.0)).powi(2)
}

/// An upper bound of the norm of `R = (I - L L^T) W (I - Q Q^T)`: Lanczos on `R^T R`, every vector kept orthogonal to all
/// before it.
fn lanczos_bound(point: &Point, split: &Split, steps: usize, probability: f64, rng: &mut Xoshiro256PlusPlus) -> Option<f64> {
    let d = point.rows.cols();
    let loss = lanczos_loss(d, steps, probability);
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
        if length <= NO_MORE * diagonal.first().copied().unwrap_or(0.0f64).max(f64::MIN_POSITIVE) {
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
