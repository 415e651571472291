//! Three ways to prove `||W'||_2 <= n` for a clipped dual point W'. Each of them ends on every matrix.
//!
//! (P5) *Low rank.* `P = L R^T`: then W has rank `1 + k + r` at most, orthonormal bases hold all of it, and what rounding leaves outside
//! is measured.
//! (P6) *Cholesky*, up to a few thousand states: a floating-point Cholesky factor of `rho^2 I - G`, G the computed `W'^T W'`, exists only
//! if `||W'||^2 <= rho^2 + (d + 2) eps (d rho^2 + ||W'||_F^2)`, whatever the order of the sums (Rump 2006; Higham 2002, Theorem 10.3).
//! If rho is too small the next is larger; at `rho^2 >= trace G` nothing is left to factorise.
//! (P7) *Random starts*, beyond: W' in bases whose leading part holds the singular vectors near and above 1 (`near_one`); the rest is bounded by what a Chebyshev polynomial makes of random vectors
//! (`rest`).

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::leading::Leading;
use super::near_one::settle;
use super::point::{Clipped, DualPoint, beside};
use super::{Effort, Method, rest};
use crate::linalg::{Mat, small, thin};

/// Up to this number of states all singular vectors are computed at once; it takes less than exploring.
const DECOMPOSED_STATES: usize = 400;
/// Where the norm after exploring stays above this, all singular vectors are worth their time.
const LOOSE: f64 = 1.0 + 2e-5;
/// Singular vectors beyond those that are known that are settled before a decomposition of the whole is the better way.
const MOST_ADDED: usize = 64;
/// The same where there is no other way, as long as their numbers fit: a block of them takes 200 MB at most.
const MOST_ADDED_LARGE: usize = 400;
const ROOM: usize = 25_000_000;
/// Where the rest came out above 1 by more than this, what it holds above 1 is looked for again.
const MISSED: f64 = 1e-4;

/// The largest eigenvalue is an estimate: the first rho that is tried is above it by this factor in what exceeds 1.
const FIRST_TRY: f64 = 1.01;

/// What is clipped, what the norm of the rest is proven to be at most, and how. Where `enough` says so, or there is no time to `go_on`, a loose norm is not made tighter.
pub(super) fn clip_and_prove(
    w: &DualPoint,
    effort: &Effort,
    enough: &dyn Fn(&Clipped, f64) -> bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(Clipped, f64, Method)> {
    let found = if w.problem.p.low_rank().is_some() {
        low_rank(w)?
    } else if w.problem.larger_side() <= effort.cholesky_states {
        dense(w, effort, enough, go_on)?
    } else {
        large(w, effort, go_on)?
    };
    // (P8) L^-1 is the inverse of L as far as the bases are orthonormal.
    let off =
        w.problem.frame.metric.as_deref().map_or(0.0, |m| [&m.left, &m.right].iter().map(|s| s.defect() / s.delta().powi(2)).sum::<f64>());
    let found = (found.0, found.1 * (1.0 + 10.0 * off), found.2);
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
    let (p_left, p_right) = problem.p.low_rank()?;
    let (f, h) = w.factors(p_left, p_right);
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
fn dense(
    w: &DualPoint,
    effort: &Effort,
    enough: &dyn Fn(&Clipped, f64) -> bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Option<(Clipped, f64, Method)> {
    let full = w.dense();
    full.first_not_finite().is_none().then_some(())?;
    if w.problem.larger_side() > DECOMPOSED_STATES {
        let known = w.leading()?.right;
        let clipped = settle(w, &known, known.cols() + MOST_ADDED, effort.seed, go_on)?.0.clip();
        let norm = cholesky_norm(&minus(&full, &clipped)) + rounding(w, &clipped);
        if norm <= LOOSE || enough(&clipped, norm) || !go_on() {
            return Some((clipped, norm, Method::Cholesky));
        }
    }
    decomposed(w, &full)
}

/// All singular vectors above 1 clipped.
fn decomposed(w: &DualPoint, full: &Mat) -> Option<(Clipped, f64, Method)> {
    let clipped = all_above_one(full)?;
    let norm = cholesky_norm(&minus(full, &clipped)) + rounding(w, &clipped);
    Some((clipped, norm, Method::Cholesky))
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
    over = FIRST_TRY * over + share * d as f64;
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
fn large(w: &DualPoint, effort: &Effort, go_on: &mut dyn FnMut() -> bool) -> Option<(Clipped, f64, Method)> {
    let mut known = w.leading()?.right;
    let most = known.cols() + MOST_ADDED_LARGE.min(ROOM / w.problem.larger_side());
    let mut tried = 0;
    let mut best: Option<(Leading, f64)> = None;
    loop {
        let (leading, all) = settle(w, &known, most, effort.seed.wrapping_add(tried as u64), go_on)?;
        let rounding = rounding(w, &leading.clip());
        let found = rest::bound(w, &leading, rounding, effort, &mut tried, go_on);
        let norm = leading.norm_with(found.norm, rounding);
        let again = all && found.norm.is_finite() && found.norm > 1.0 + MISSED && tried < rest::TRIES && go_on();
        known = beside(&[&leading.right, &found.directions]);
        if best.as_ref().is_none_or(|(_, least)| norm < *least) {
            best = Some((leading, norm));
        }
        if !again {
            break;
        }
    }
    let failure_probability = rest::probability(effort, tried);
    best.map(|(leading, norm)| (leading.clip(), norm, Method::Chebyshev { failure_probability }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Chain, Estimate};
    use crate::simulate::planted_groups;
    use crate::solve::{Factors, Problem};

    /// A noisy chain with its true factors as the point, at a lambda where about `over` singular values exceed 1.
    fn with_point(over: usize, test: impl Fn(&DualPoint, Vec<f64>)) {
        let planted = planted_groups(700, 5, 40, 3).unwrap();
        let chain = Chain::estimate(&planted.counts, &Estimate::default()).unwrap();
        let (d, g) = (chain.states(), 5);
        let group = |i: usize| planted.group[chain.kept()[i] as usize] as usize;
        let mut sizes = [0.0; 5];
        (0..d).for_each(|i| sizes[group(i)] += 1.0);
        let u = Mat::from_fn(d, g, |i, k| planted.latent[(group(i), k)]);
        let v = Mat::from_fn(d, g, |j, k| if group(j) == k { 1.0 / sizes[k] } else { 0.0 });
        let x = Factors { u, v };
        let mu = vec![0.0; d];
        let at = |lambda: f64, run: &dyn Fn(&DualPoint, Vec<f64>)| {
            let problem = Problem::new(chain.p(), chain.weights(), lambda).unwrap();
            let w = DualPoint { problem: &problem, a: &x.u, b: &x.v, mu: &mu };
            let (_, values, _) = small::thin_svd(&w.dense()).unwrap();
            run(&w, values);
        };
        at(1.0, &|_, values| at(0.5 * (values[over] + values[over + 1]), &test));
    }

    /// The singular values of what is left after clipping.
    fn largest_left(w: &DualPoint, clipped: &Clipped) -> f64 {
        small::thin_svd(&minus(&w.dense(), clipped)).unwrap().1[0]
    }

    #[test]
    fn the_bound_by_random_starts_is_above_the_norm_and_close_to_it() {
        for over in [0, 3, 12, 40] {
            with_point(over, |w, values| {
                let (clipped, norm, method) = large(w, &Effort { seed: over as u64, ..Effort::default() }, &mut || true).unwrap();
                let exact = largest_left(w, &clipped);
                println!("{over} above 1, the largest {:.3}: norm {norm:.9}, exact {exact:.9}, {method:?}", values[0]);
                assert!(matches!(method, Method::Chebyshev { failure_probability } if failure_probability <= 1e-12));
                assert_eq!(clipped.excess.iter().filter(|e| **e > 0.0).count(), over + 1);
                assert!(norm >= exact && norm <= 1.0 + 2e-5);
            });
        }
    }

    #[test]
    fn a_rest_whose_largest_vector_is_unknown_is_bounded_all_the_same() {
        // Nothing is taken out: the bound has to find the norm of the whole by itself, whatever end the polynomial is given.
        with_point(3, |w, values| {
            let found = rest::bound(w, &Leading::empty(w), 1e-12, &Effort::default(), &mut 0, &mut || true);
            println!("norm {:.6}, exact {:.6}", found.norm, values[0]);
            assert!(found.norm >= values[0] && found.norm <= 1.02 * values[0]);
        });
    }

    #[test]
    fn more_values_above_one_than_a_block_holds_are_all_clipped_where_the_matrix_is_formed() {
        with_point(250, |w, _| {
            let (clipped, norm, method) = dense(w, &Effort::default(), &|_, _| false, &mut || true).unwrap();
            assert!(method == Method::Cholesky && norm <= 1.0 + 1e-6 && norm >= largest_left(w, &clipped));
            assert_eq!(clipped.excess.iter().filter(|e| **e > 0.0).count(), 251);
            let (clipped, norm, _) = large(w, &Effort::default(), &mut || true).unwrap();
            assert!(norm >= largest_left(w, &clipped));
        });
    }
}
