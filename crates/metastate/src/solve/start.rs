//! Where the solver starts: a random point as in the paper, or the spectral start, which takes the relaxation's solution
//! `X = A B^T` and writes it with memberships.

use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::local::{project_columns_in, project_rows_in};
use super::problem::{Factors, Frame, Problem};
use super::relaxation::Relaxation;
use crate::linalg::{Mat, small, thin};
use crate::proof::point::beside;

/// Rows of U and columns of V uniform on their simplices.
#[must_use]
pub fn random(problem: &Problem, rank: usize, seed: u64) -> Factors {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = |_: usize, _: usize| -> f64 { Exp1.sample(&mut rng) };
    let mut x = Factors { u: Mat::from_fn(problem.rows(), rank, &mut draw), v: Mat::from_fn(problem.cols(), rank, &mut draw) };
    x.normalise_rows();
    thin::scale_rows(&mut x.u, &problem.frame.totals);
    let sums = problem.frame.measured(&x.v);
    thin::for_each_row_mut(&mut x.v, |_, row| row.iter_mut().zip(&sums).for_each(|(v, s)| *v /= s));
    x
}

/// Directions beyond the wanted rank that the spectral basis carries along: the last ones converge slowest.
const SPARE_DIRECTIONS: usize = 8;
/// Sweeps of the relaxation that make the basis: each is a step of subspace iteration with the constraint `X 1 = 1` kept.
const BASIS_SWEEPS: usize = 12;

/// A lambda that hardly shrinks, as a share of `||Xi P||^2`.
const HARDLY_SHRINKS: f64 = 1e-9;
/// Singular values of the vertices below this share of the largest are rounding, ...
const VERTEX_ROUNDING: f64 = 1e-10;
/// ... and so are rows of which no more is left after projections, by their squares.
const LEFT_OVER: f64 = 1e-12;

/// The leading directions of `Xi P`, rows summing to one, from which starts of any rank up to `rank` are cut by [`spectral`].
#[must_use]
pub fn spectral_basis(problem: &Problem, rank: usize, seed: u64) -> Relaxation {
    let wanted = (rank + SPARE_DIRECTIONS).min(problem.rows()).min(problem.cols());
    // With a lambda that hardly shrinks this is a truncated singular value decomposition.
    let flat = problem.at_lambda(HARDLY_SHRINKS * problem.data_norm2);
    let mut x = Relaxation::from_row_space(&flat, super::relaxation::random_row_space(&flat, wanted, seed));
    (0..BASIS_SWEEPS).for_each(|_| x.sweep(&flat));
    x
}

/// The spectral start in the paper's coordinates.
#[must_use]
pub fn spectral(x: &Relaxation, rank: usize) -> Option<Factors> {
    spectral_in(&Frame::plain(x.a.rows(), x.b.rows()), x, rank)
}

/// Rows of A lie in the plane `a . (B^T 1) = 1`, inside the convex hull of the meta-states. The outermost rows (successive
/// projections) stand in for the meta-states; memberships are the coordinates with respect to them.
#[must_use]
pub fn spectral_in(frame: &Frame, x: &Relaxation, rank: usize) -> Option<Factors> {
    let k = rank.min(x.rank());
    // The leading k directions of X: columns of B are orthogonal and sorted by length.
    let leading: Vec<usize> = (0..k).collect();
    let (a, b) = (x.a.select_columns(&leading), x.b.select_columns(&leading));
    // Rows with other totals are brought to one first, and back again at the end.
    let mut a = a;
    thin::for_each_row_mut(&mut a, |i, row| row.iter_mut().for_each(|x| *x /= frame.totals[i]));
    let anchors = successive_projections(&a, k);
    let k = anchors.len();
    let vertices = Mat::from_fn(k, a.cols(), |l, j| a[(anchors[l], j)]);
    // u_i = vertices^-T a_i, through the pseudo-inverse.
    let (p, s, q) = small::thin_svd(&vertices)?;
    let inverse = {
        let scaled = Mat::from_fn(q.rows(), s.len(), |i, l| if s[l] > VERTEX_ROUNDING * s[0] { q[(i, l)] / s[l] } else { 0.0 });
        let mut m = Mat::default();
        thin::product(&scaled, &p.transposed(), &mut m);
        m
    };
    let (mut u, mut v) = (Mat::default(), Mat::default());
    thin::product(&a, &inverse, &mut u);
    thin::product(&b, &vertices.transposed(), &mut v);
    thin::scale_rows(&mut u, &frame.totals);
    project_rows_in(&mut u, frame);
    project_columns_in(&mut v, frame);
    Some(Factors { u, v })
}

/// Row numbers of the longest row, then the longest after projecting that one out, and so on.
pub(crate) fn successive_projections(a: &Mat, count: usize) -> Vec<usize> {
    let mut rest = a.clone();
    let mut chosen = Vec::new();
    let mut first = None;
    for _ in 0..count {
        let (mut best, mut longest) = (0, 0.0);
        for i in 0..rest.rows() {
            let length = thin::dot(rest.row(i), rest.row(i));
            if length > longest {
                (best, longest) = (i, length);
            }
        }
        let reference = *first.get_or_insert(longest);
        if longest.is_nan() || longest <= LEFT_OVER * reference {
            break;
        }
        chosen.push(best);
        let direction: Vec<f64> = rest.row(best).iter().map(|x| x / longest.sqrt()).collect();
        thin::for_each_row_mut(&mut rest, |_, row| {
            let along = thin::dot(row, &direction);
            row.iter_mut().zip(&direction).for_each(|(x, d)| *x -= along * d);
        });
    }
    chosen
}

/// Adds random columns with little weight until there are `rank`.
#[must_use]
pub fn widen(problem: &Problem, x: Factors, rank: usize, seed: u64) -> Factors {
    let have = x.rank();
    let extra = random(problem, rank - have, seed);
    let share = (rank - have) as f64 / rank as f64;
    let mut u = beside(&[&x.u, &extra.u]);
    thin::for_each_row_mut(&mut u, |_, row| {
        let (old, new) = row.split_at_mut(have);
        old.iter_mut().for_each(|u| *u *= 1.0 - share);
        new.iter_mut().for_each(|u| *u *= share);
    });
    Factors { u, v: beside(&[&x.v, &extra.v]) }
}
