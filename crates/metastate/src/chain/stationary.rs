//! The stationary law: `xi^T P = xi^T`.
//!
//! Small chains are solved by elimination (Grassmann, Taksar and Heyman: no subtractions, so every entry is accurate however
//! slowly the chain mixes), low-rank ones through their small latent chain, and large ones by iteration, with products only.
//!
//! A chain with several closed classes has many invariant laws. The one returned is the limit from a uniform start. Transient
//! states get exactly zero.

use crate::graph::strong_classes;
use crate::linalg::{Mat, Operator, Row, thin};

/// Chains up to this size are solved by elimination, `O(d^3)`: about a second at most.
const ELIMINATION: usize = 1500;

/// Where so many products bring no smaller residual, and it is below this, rounding has set a floor.
const FLOOR: (usize, f64) = (50, 1e-12);

/// When the iteration for a large chain stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StationaryOptions {
    /// Stop at this `|| xi^T P - xi^T ||_1`.
    pub tolerance: f64,
    /// Stop after this many products with P.
    pub max_iterations: usize,
}

impl Default for StationaryOptions {
    fn default() -> Self {
        StationaryOptions { tolerance: 1e-14, max_iterations: 20_000 }
    }
}

/// A stationary law and how well it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct StationaryLaw {
    /// Sums to one; exactly zero on transient states.
    pub xi: Vec<f64>,
    /// `|| xi^T P - xi^T ||_1`, measured on `xi` as returned.
    pub residual: f64,
    /// Products with P; zero when the law was found by elimination.
    pub iterations: usize,
    /// Number of closed classes; the law is unique when there is one.
    pub closed_classes: usize,
}

/// The stationary law of P, which must have non-negative rows that sum to one.
pub fn stationary_law(p: &dyn Operator, options: &StationaryOptions) -> StationaryLaw {
    let (xi, iterations, closed_classes) = if let Some((left, right)) = p.low_rank() {
        let (xi, classes) = through_latent_chain(left, right);
        (xi, 0, classes)
    } else if p.rows() <= ELIMINATION {
        let d = p.rows();
        let mut dense = Mat::zeros(d, d);
        (0..d).for_each(|i| p.row(i).for_each(d, |j, x| dense[(i, j)] = x));
        let (xi, classes) = by_elimination(dense, vec![1.0 / d as f64; d]);
        (xi, 0, classes)
    } else {
        by_iteration(p, options)
    };
    let mut law = Mat::from_vec(xi.len(), 1, xi).unwrap_or_default();
    let mut moved = Mat::default();
    p.apply_transpose(&law, &mut moved);
    let residual = distance(&law, &moved);
    StationaryLaw { xi: std::mem::take(&mut law).into_vec(), residual, iterations, closed_classes }
}

fn distance(a: &Mat, b: &Mat) -> f64 {
    thin::sum_over_rows(a.rows(), 2, |i| (a.as_slice()[i] - b.as_slice()[i]).abs())
}

/// `P = L R^T`. Scaled so that the columns of R sum to one, `K = R^T L` is a small chain, and `xi = R a` with `a^T K = a^T`.
fn through_latent_chain(left: &Mat, right: &Mat) -> (Vec<f64>, usize) {
    let (d, r) = (left.rows(), left.cols());
    let sums = thin::column_sums(right);
    // A column of R that is all zero takes no part in P.
    let used: Vec<usize> = (0..r).filter(|&k| sums[k] > 0.0).collect();
    let full = thin::cross_gram(right, left);
    let latent = Mat::from_fn(used.len(), used.len(), |a, b| full[(used[a], used[b])] / sums[used[a]] * sums[used[b]]);
    let mean = thin::column_sums(left);
    let start = used.iter().map(|&k| mean[k] * sums[k] / d as f64).collect();
    let (a, classes) = by_elimination(latent, start);
    let mut shares = vec![0.0; r];
    used.iter().zip(&a).for_each(|(&k, a)| shares[k] = a / sums[k]);
    let mut xi: Vec<f64> = (0..d).map(|i| thin::dot(right.row(i), &shares)).collect();
    normalise(&mut xi);
    (xi, classes)
}

/// The closed classes of a chain: the class of each state, and for each class whether it is closed.
pub(crate) fn closed_classes(p: &dyn Operator) -> (Vec<u32>, Vec<bool>) {
    let d = p.rows();
    let (class, number) = strong_classes(d, |i, cursor| match p.row(i) {
        Row::Sparse(columns, values) | Row::Counted(columns, values, _) => {
            (cursor..columns.len()).find(|&k| values[k] > 0.0).map(|k| (k + 1, columns[k] as usize))
        }
        Row::Dense(values) => (cursor..d).find(|&j| values[j] > 0.0).map(|j| (j + 1, j)),
        Row::Uniform => (cursor < d).then_some((cursor + 1, cursor)),
        // The part of rank one reaches every state.
        Row::SparseAndOne(..) => (cursor < d).then_some((cursor + 1, cursor)),
        Row::LowRank(left, right) => (cursor..d).find(|&j| thin::dot(left, right.row(j)) > 0.0).map(|j| (j + 1, j)),
    });
    let mut closed = vec![true; number];
    for i in 0..d {
        p.row(i).for_each(d, |j, x| {
            if x > 0.0 && class[j] != class[i] {
                closed[class[i] as usize] = false;
            }
        });
    }
    (class, closed)
}

/// Powers of the lazy chain `(I + P) / 2`, which cannot be periodic.
fn by_iteration(p: &dyn Operator, options: &StationaryOptions) -> (Vec<f64>, usize, usize) {
    let d = p.rows();
    let (class, closed) = closed_classes(p);
    let mut law = Mat::from_fn(d, 1, |_, _| 1.0 / d as f64);
    let mut moved = Mat::default();
    let (mut best, mut since_best, mut iterations) = (f64::INFINITY, 0, 0);
    while iterations < options.max_iterations {
        p.apply_transpose(&law, &mut moved);
        iterations += 1;
        let residual = distance(&law, &moved);
        law.as_mut_slice().iter_mut().zip(moved.as_slice()).for_each(|(x, y)| *x = 0.5 * (*x + y));
        if residual <= options.tolerance {
            break;
        }
        // The floor may lie above the tolerance.
        since_best = if residual < best { 0 } else { since_best + 1 };
        best = best.min(residual);
        if since_best >= FLOOR.0 && best < FLOOR.1 {
            break;
        }
    }
    let mut xi = law.into_vec();
    xi.iter_mut().zip(&class).for_each(|(x, &c)| {
        if !closed[c as usize] {
            *x = 0.0;
        }
    });
    normalise(&mut xi);
    (xi, iterations, closed.iter().filter(|c| **c).count())
}

/// The limit of `start^T P^n` in the mean, by elimination.
pub(crate) fn by_elimination(mut p: Mat, mut start: Vec<f64>) -> (Vec<f64>, usize) {
    let d = p.rows();
    let next = |i: usize, cursor: usize| (cursor..d).find(|&j| p[(i, j)] > 0.0).map(|j| (j + 1, j));
    let (class, number) = strong_classes(d, next);
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); number];
    (0..d).for_each(|i| members[class[i] as usize].push(i));
    let is_closed = |m: &Vec<usize>| m.iter().all(|&i| (0..d).all(|j| p[(i, j)] <= 0.0 || class[j] == class[i]));
    let closed: Vec<bool> = members.iter().map(is_closed).collect();
    // Transient states pass on their share of the start: edges lead from higher classes to lower ones, so highest first.
    let transient: Vec<usize> = (0..number).rev().filter(|&c| !closed[c]).flat_map(|c| members[c].clone()).collect();
    let mut here = vec![true; d];
    for &n in &transient {
        here[n] = false;
        let rest: Vec<usize> = (0..d).filter(|&j| here[j] && p[(n, j)] > 0.0).collect();
        let exit: f64 = rest.iter().map(|&j| p[(n, j)]).sum();
        for &j in &rest {
            let share = p[(n, j)] / exit;
            start[j] += start[n] * share;
            for i in (0..d).filter(|&i| here[i]) {
                let through = p[(i, n)] * share;
                p[(i, j)] += through;
            }
        }
        start[n] = 0.0;
    }
    let mut xi = vec![0.0; d];
    for class in (0..number).filter(|&c| closed[c]) {
        let states = &members[class];
        let mass: f64 = states.iter().map(|&i| start[i]).sum();
        let inner = Mat::from_fn(states.len(), states.len(), |a, b| p[(states[a], states[b])]);
        states.iter().zip(irreducible(inner)).for_each(|(&i, x)| xi[i] = mass * x);
    }
    normalise(&mut xi);
    (xi, closed.iter().filter(|c| **c).count())
}

/// Grassmann, Taksar and Heyman: censor the last state, again and again, then substitute back.
pub(crate) fn irreducible(mut p: Mat) -> Vec<f64> {
    let d = p.rows();
    for n in (1..d).rev() {
        let exit: f64 = p.row(n)[..n].iter().sum();
        let last: Vec<f64> = p.row(n)[..n].to_vec();
        for i in 0..n {
            let row = p.row_mut(i);
            row[n] /= exit;
            let into = row[n];
            if into > 0.0 {
                row[..n].iter_mut().zip(&last).for_each(|(x, l)| *x += into * l);
            }
        }
    }
    let mut xi = vec![0.0; d];
    if d > 0 {
        xi[0] = 1.0;
    }
    for n in 1..d {
        xi[n] = (0..n).map(|i| xi[i] * p[(i, n)]).sum();
    }
    normalise(&mut xi);
    xi
}

fn normalise(xi: &mut [f64]) {
    let total: f64 = xi.iter().sum();
    if total > 0.0 {
        xi.iter_mut().for_each(|x| *x /= total);
    }
}
