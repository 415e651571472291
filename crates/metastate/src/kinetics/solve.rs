//! `x = b + Q x` for the states that a chain leaves: hitting times and committors of the states' own chain.
//!
//! Few states are eliminated without subtractions. Many are solved by iteration: BiCGSTAB, each step helped by a correction on the memberships of the meta-states, which is where
//! a metastable chain is slow. The residual is measured at the end.

use crate::aggregate::latent::collected;
use crate::linalg::{Csr, Mat, small, thin};

/// Up to so many states by elimination, `O(n^3)`.
const ELIMINATION: usize = 200;
/// Products at most, and the residual asked for, relative to the right-hand side.
const STEPS: usize = 4000;
const TOLERANCE: f64 = 1e-11;

/// A solution is taken whose residual is no more than this many times what was asked for.
const ACCEPTED: f64 = 1e3;

/// The mean reward collected until the chain leaves: Q (`n x n`) among the states that it leaves, `exit` the probability of leaving, `coarse` (`n x s`) functions that span what is slow.
/// Infinite where it may stay for ever and be rewarded; NaN where no solution was found.
pub(super) fn reward_until_exit(q: &Csr, exit: &[f64], reward: &[f64], coarse: &Mat) -> Vec<f64> {
    let n = q.rows();
    if n <= ELIMINATION {
        let mut dense = Mat::zeros(n, n);
        q.triplets().for_each(|(i, j, x)| dense[(i as usize, j as usize)] += x);
        return collected(&dense, exit, reward);
    }
    let leaves = reaches(q, exit.iter().map(|e| *e > 0.0).collect());
    let stuck: Vec<bool> = (0..n).map(|i| !leaves[i] && reward[i] > 0.0).collect();
    let endless = reaches(q, stuck);
    let live: Vec<usize> = (0..n).filter(|&i| leaves[i] && !endless[i]).collect();
    let mut x: Vec<f64> = endless.iter().map(|e| if *e { f64::INFINITY } else { 0.0 }).collect();
    if live.is_empty() {
        return x;
    }
    let inner = q.restrict(&live);
    let basis = Mat::from_fn(live.len(), coarse.cols(), |a, k| coarse[(live[a], k)]);
    let rewards: Vec<f64> = live.iter().map(|&i| reward[i]).collect();
    match iterate(&inner, &rewards, &basis) {
        Some(found) => live.iter().zip(found).for_each(|(&i, value)| x[i] = value),
        None => live.iter().for_each(|&i| x[i] = f64::NAN),
    }
    x
}

/// `(I - Q)^T g = b` of a chain that leaves from everywhere, with `back` for `Q^T`. None where no solution was found.
pub(super) fn adjoint(back: &Csr, b: &[f64], coarse: &Mat) -> Option<Vec<f64>> {
    iterate(back, b, coarse)
}

/// States from which a goal can be reached, itself included.
fn reaches(q: &Csr, mut found: Vec<bool>) -> Vec<bool> {
    let reversed = q.transposed();
    let mut queue: Vec<usize> = (0..found.len()).filter(|&i| found[i]).collect();
    while let Some(j) = queue.pop() {
        let (sources, values) = reversed.row(j);
        for (&i, x) in sources.iter().zip(values) {
            if *x > 0.0 && !found[i as usize] {
                found[i as usize] = true;
                queue.push(i as usize);
            }
        }
    }
    found
}

/// The system `(I - Q) x = b` with what helps to solve it.
struct System<'a> {
    q: &'a Csr,
    /// `1 - q_ii`.
    diagonal: Vec<f64>,
    coarse: &'a Mat,
    /// `(Z^T (I - Q) Z)^-1`.
    small: Mat,
}

impl System<'_> {
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        let mut out = Mat::zeros(x.len(), 1);
        thin::for_each_row_mut(&mut out, |i, y| {
            let (columns, values) = self.q.row(i);
            y[0] = x[i] - columns.iter().zip(values).map(|(&j, q)| q * x[j as usize]).sum::<f64>();
        });
        out.into_vec()
    }

    /// One step of Jacobi, then the correction on the memberships of what is left.
    fn help(&self, r: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = r.iter().zip(&self.diagonal).map(|(r, d)| r / d).collect();
        let rest: Vec<f64> = r.iter().zip(self.apply(&x)).map(|(r, a)| r - a).collect();
        let sums = thin::fold_rows(self.coarse, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, z)| *s += z * rest[i]));
        let step: Vec<f64> = (0..sums.len()).map(|k| thin::dot(self.small.row(k), &sums)).collect();
        x.iter_mut().enumerate().for_each(|(i, x)| *x += thin::dot(self.coarse.row(i), &step));
        x
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    thin::sum_over_rows(a.len(), 2, |i| a[i] * b[i])
}

fn iterate(q: &Csr, b: &[f64], coarse: &Mat) -> Option<Vec<f64>> {
    let n = q.rows();
    let own = |i: usize| {
        let (columns, values) = q.row(i);
        columns.binary_search(&(i as u32)).map_or(0.0, |k| values[k])
    };
    let diagonal: Vec<f64> = (0..n).map(|i| (1.0 - own(i)).max(f64::EPSILON)).collect();
    let basis = small::orthonormalise(coarse);
    let mut system = System { q, diagonal, coarse: &basis, small: Mat::default() };
    let columns: Vec<Vec<f64>> = (0..basis.cols()).map(|k| system.apply(&basis.column(k))).collect();
    let reduced = Mat::from_fn(basis.cols(), basis.cols(), |k, l| (0..n).map(|i| basis[(i, k)] * columns[l][i]).sum());
    system.small = small::inverse(&reduced).unwrap_or_else(|| small::pseudo_inverse(&reduced));
    let mut x = system.help(b);
    let mut r: Vec<f64> = b.iter().zip(system.apply(&x)).map(|(b, a)| b - a).collect();
    let size = inner(b, b).sqrt();
    let shadow = r.clone();
    let (mut rho, mut alpha, mut omega) = (1.0, 1.0, 1.0);
    let (mut p, mut v) = (vec![0.0; n], vec![0.0; n]);
    for _ in 0..STEPS {
        if inner(&r, &r).sqrt() <= TOLERANCE * size {
            break;
        }
        let next = inner(&shadow, &r);
        let beta = next / rho * (alpha / omega);
        rho = next;
        (0..n).for_each(|i| p[i] = r[i] + beta * (p[i] - omega * v[i]));
        let helped = system.help(&p);
        v = system.apply(&helped);
        alpha = rho / inner(&shadow, &v);
        let s: Vec<f64> = r.iter().zip(&v).map(|(r, v)| r - alpha * v).collect();
        let helped_s = system.help(&s);
        let t = system.apply(&helped_s);
        let length = inner(&t, &t);
        omega = if length > 0.0 { inner(&t, &s) / length } else { 0.0 };
        (0..n).for_each(|i| x[i] += alpha * helped[i] + omega * helped_s[i]);
        r = s.iter().zip(&t).map(|(s, t)| s - omega * t).collect();
        if !rho.is_finite() || !alpha.is_finite() || omega == 0.0 {
            break;
        }
    }
    let residual: f64 = b.iter().zip(system.apply(&x)).map(|(b, a)| (b - a) * (b - a)).sum::<f64>().sqrt();
    (residual <= ACCEPTED * TOLERANCE * size && residual.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of states that are hardly joined; out of the second with a small probability.
    fn metastable(n: usize) -> (Csr, Vec<f64>, Mat) {
        let half = n / 2;
        let mut triplets = Vec::new();
        let mut exit = vec![0.0; n];
        for i in 0..n {
            let group = if i < half { 0 } else { half };
            let other = (i + half) % n;
            let (across, out) = (1e-3, if i >= half { 2e-4 } else { 0.0 });
            exit[i] = out;
            triplets.push((i as u32, other as u32, across));
            for k in 1..=4 {
                let j = group + (i - group + k * k) % half;
                triplets.push((i as u32, j as u32, (1.0 - across - out) / 4.0));
            }
        }
        let coarse = Mat::from_fn(n, 2, |i, k| f64::from(u8::from((i < half) == (k == 0))));
        (Csr::from_triplets(n, n, &triplets).unwrap(), exit, coarse)
    }

    #[test]
    fn iteration_agrees_with_elimination() {
        let (q, exit, coarse) = metastable(600);
        let reward = vec![1.0; 600];
        let found = reward_until_exit(&q, &exit, &reward, &coarse);
        let mut dense = Mat::zeros(600, 600);
        q.triplets().for_each(|(i, j, x)| dense[(i as usize, j as usize)] += x);
        let exact = collected(&dense, &exit, &reward);
        let worst = exact.iter().zip(&found).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-8 && exact[0] > 5000.0, "{worst:e} {}", exact[0]);
    }
}
