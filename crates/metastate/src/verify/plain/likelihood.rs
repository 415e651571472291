//! The likelihood of counts, and expectation and maximisation without any acceleration.

use crate::linalg::{Csr, Mat, Operator};

/// Share of a start that is replaced by the prior's laws: a zero would stay zero for ever.
const LIFT: f64 = 1e-3;

/// `m_j = (n_j + e) / (n + d e)`, `n_j` the arrivals at j; e is 1, or `n / d` where there are fewer transitions than states.
#[must_use]
pub fn marginal(counts: &Csr) -> Vec<f64> {
    let mut law = vec![0.0; counts.cols()];
    counts.triplets().for_each(|(_, j, n)| law[j as usize] += n);
    let (total, d) = (law.iter().sum::<f64>(), law.len() as f64);
    let e = if total > 0.0 { (total / d).min(1.0) } else { 1.0 };
    law.iter_mut().for_each(|n| *n = (*n + e) / (total + d * e));
    law
}

/// `sum n_ij ln (U V^T)_ij / n`.
#[must_use]
pub fn log_likelihood(counts: &Csr, u: &Mat, v: &Mat) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (i, j, n) in counts.triplets().filter(|t| t.2 > 0.0) {
        sum += n * dot(u.row(i as usize), v.row(j as usize)).ln();
        total += n;
    }
    sum / total
}

/// Up to this number of states every entry of `U V^T` is formed.
const ENTRIES: usize = 3000;

/// `1/2 ||Xi (P - U V^T)||_F^2`: every entry formed, or where there are too many by `||p||^2 - 2 p.x + u^T (V^T V) u` row by row.
pub fn fidelity(p: &dyn Operator, weights: &[f64], u: &Mat, v: &Mat) -> f64 {
    let (n, s) = (p.cols(), u.cols());
    let mut row = vec![0.0; n];
    let mut sum = 0.0;
    let gram = Mat::from_fn(s, s, |a, b| (0..n).map(|j| v[(j, a)] * v[(j, b)]).sum());
    for (i, w) in weights.iter().enumerate() {
        if weights.len().max(n) <= ENTRIES {
            row.fill(0.0);
            p.row(i).for_each(n, |j, x| row[j] += x);
            sum += w * w * (0..n).map(|j| (row[j] - dot(u.row(i), v.row(j))).powi(2)).sum::<f64>();
        } else {
            let (mut squares, mut cross) = (0.0, 0.0);
            p.row(i).for_each(n, |j, x| {
                squares += x * x;
                cross += x * dot(u.row(i), v.row(j));
            });
            let own: f64 = (0..s).map(|a| u[(i, a)] * dot(gram.row(a), u.row(i))).sum();
            sum += w * w * (squares - 2.0 * cross + own);
        }
    }
    0.5 * sum
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// c further transitions a state, by meta-state k with share `a_k` and on to j by `m_j`.
#[derive(Debug, Clone)]
pub struct Prior {
    /// c.
    pub strength: f64,
    /// `a_k`.
    pub shares: Vec<f64>,
    /// `m_j`.
    pub marginal: Vec<f64>,
}

/// `a_k` of a prior is at least this part of an even share.
const LEAST_MASS: f64 = 1e-3;

/// The mass of each column by departures, none below a thousandth of an even share: the `a_k` of a prior that starts here.
#[must_use]
pub fn shares(counts: &Csr, u: &Mat) -> Vec<f64> {
    let total: f64 = counts.values().iter().sum();
    let mut mass = vec![0.0; u.cols()];
    for i in 0..counts.rows() {
        let share = counts.row(i).1.iter().sum::<f64>() / total;
        mass.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += share * u);
    }
    let least = LEAST_MASS / mass.len() as f64;
    mass.iter_mut().for_each(|m| *m = m.max(least));
    let sum: f64 = mass.iter().sum();
    mass.iter().map(|m| m / sum).collect()
}

/// `sum_i ln u_ik + d sum_j m_j ln v_jk` for each k, d the number of rows: what the prior adds to the log-likelihood is c times their mean by `a_k`.
fn prior_terms(u: &Mat, v: &Mat, marginal: &[f64]) -> Vec<f64> {
    let d = u.rows() as f64;
    let term = |k: usize| {
        // Where counts are huge, a share may be less than a number can be.
        let ln = |x: f64| x.max(f64::MIN_POSITIVE).ln();
        let (of_u, of_v) = (|i: usize| ln(u[(i, k)]), |j: usize| d * marginal[j] * ln(v[(j, k)]));
        (0..u.rows()).map(of_u).sum::<f64>() + (0..v.rows()).map(of_v).sum::<f64>()
    };
    (0..u.cols()).map(term).collect()
}

/// The log-likelihood a transition with the prior.
#[must_use]
pub fn penalised(counts: &Csr, u: &Mat, v: &Mat, prior: &Prior) -> f64 {
    let total: f64 = counts.values().iter().sum();
    let terms = prior_terms(u, v, &prior.marginal);
    let added = if prior.strength > 0.0 { prior.strength * dot(&prior.shares, &terms) } else { 0.0 };
    log_likelihood(counts, u, v) + added / total
}

/// The least and the most that [`penalised`] can be, whatever the shares `a_k`.
#[must_use]
pub fn most_penalised(counts: &Csr, u: &Mat, v: &Mat, strength: f64) -> (f64, f64) {
    let (plain, total) = (log_likelihood(counts, u, v), counts.values().iter().sum::<f64>());
    if strength == 0.0 {
        return (plain, plain);
    }
    let terms = prior_terms(u, v, &marginal(counts));
    let ends = terms.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), t| (low.min(*t), high.max(*t)));
    (plain + strength * ends.0 / total, plain + strength * ends.1 / total)
}

/// Where a climb ended.
#[derive(Debug, Clone)]
pub struct Climbed {
    /// U.
    pub u: Mat,
    /// V.
    pub v: Mat,
    /// The plain log-likelihood a transition at the start and after each pass.
    pub values: Vec<f64>,
    /// The same with the prior, which no pass lowers.
    pub aims: Vec<f64>,
}

impl Climbed {
    /// What the last pass has above this value, with the prior.
    #[must_use]
    pub fn gain(&self, value: f64) -> f64 {
        self.aims.last().copied().unwrap_or(f64::NAN) - value
    }
}

/// Passes of expectation and maximisation from a start, with a prior of this strength whose shares are those of the start, until ten gain
/// less than `tolerance` a transition.
#[must_use]
pub fn climb(counts: &Csr, u: &Mat, v: &Mat, strength: f64, passes: usize, tolerance: f64) -> Climbed {
    climb_with(counts, u, v, &Prior { strength, shares: shares(counts, u), marginal: marginal(counts) }, passes, tolerance)
}

/// The same with a prior that is known.
#[must_use]
pub fn climb_with(counts: &Csr, u: &Mat, v: &Mat, prior: &Prior, passes: usize, tolerance: f64) -> Climbed {
    let mut u = Mat::from_fn(u.rows(), u.cols(), |i, k| (1.0 - LIFT) * u[(i, k)] + LIFT * prior.shares[k]);
    let mut v = Mat::from_fn(v.rows(), v.cols(), |j, k| (1.0 - LIFT) * v[(j, k)] + LIFT * prior.marginal[j]);
    let mut values = vec![log_likelihood(counts, &u, &v)];
    let mut aims = vec![penalised(counts, &u, &v, prior)];
    while values.len() <= passes {
        pass(counts, &mut u, &mut v, prior);
        values.push(log_likelihood(counts, &u, &v));
        aims.push(penalised(counts, &u, &v, prior));
        let n = aims.len();
        if n > 10 && aims[n - 1] - aims[n - 11] < tolerance {
            break;
        }
    }
    Climbed { u, v, values, aims }
}

/// U, then V with the new U. Where a row or a column has no mass at all, it stays as it was.
fn pass(counts: &Csr, u: &mut Mat, v: &mut Mat, prior: &Prior) {
    let s = u.cols();
    let d = counts.rows() as f64;
    for i in 0..counts.rows() {
        let (columns, values) = counts.row(i);
        let mut next: Vec<f64> = prior.shares.iter().map(|a| prior.strength * a).collect();
        for (&j, &n) in columns.iter().zip(values).filter(|(_, n)| **n > 0.0) {
            let v = v.row(j as usize);
            let p = dot(u.row(i), v);
            (0..s).for_each(|k| next[k] += n / p * u[(i, k)] * v[k]);
        }
        let sum: f64 = next.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            u.row_mut(i).iter_mut().zip(&next).for_each(|(u, x)| *u = x / sum);
        }
    }
    let mut next = Mat::from_fn(v.rows(), s, |j, k| prior.strength * d * prior.shares[k] * prior.marginal[j]);
    for (i, j, n) in counts.triplets().filter(|t| t.2 > 0.0) {
        let (u, v) = (u.row(i as usize), v.row(j as usize));
        let p = dot(u, v);
        next.row_mut(j as usize).iter_mut().enumerate().for_each(|(k, x)| *x += n / p * u[k] * v[k]);
    }
    for k in 0..s {
        let sum: f64 = (0..next.rows()).map(|j| next[(j, k)]).sum();
        if sum > 0.0 && sum.is_finite() {
            (0..next.rows()).for_each(|j| v[(j, k)] = next[(j, k)] / sum);
        }
    }
}

/// A start from the counts alone: the laws of states that lie far from each other (weighed by their departures), every membership the same.
#[must_use]
pub fn anchored(counts: &Csr, rank: usize) -> (Mat, Mat) {
    let d = counts.rows();
    let law = marginal(counts);
    let departures: Vec<f64> = (0..d).map(|i| counts.row(i).1.iter().sum()).collect();
    // Divided by two transitions too many, so that rare states are no outliers; where an anchor was never seen to go, the marginal law.
    let share = |i: usize, n: f64| n / (departures[i] + 2.0);
    let mut laws: Vec<Vec<f64>> = Vec::new();
    let mut far = vec![f64::INFINITY; d];
    for k in 0..rank {
        let key = |i: usize| if k == 0 { departures[i] } else { far[i] * departures[i] };
        let next = (1..d).fold(0, |best, i| if key(i) > key(best) { i } else { best });
        let mut new = vec![0.0; counts.cols()];
        counts.row(next).0.iter().zip(counts.row(next).1).for_each(|(&j, n)| new[j as usize] = share(next, *n));
        let length: f64 = dot(&new, &new);
        for (i, f) in far.iter_mut().enumerate() {
            let (columns, values) = counts.row(i);
            let there = columns.iter().zip(values).map(|(&j, n)| (share(i, *n) - new[j as usize]).powi(2) - new[j as usize].powi(2));
            *f = f.min((length + there.sum::<f64>()).max(0.0));
        }
        let left = 1.0 - new.iter().sum::<f64>();
        laws.push(new.iter().zip(&law).map(|(x, m)| x + left * m).collect());
    }
    (Mat::from_fn(d, rank, |_, _| 1.0 / rank as f64), Mat::from_fn(counts.cols(), rank, |j, k| laws[k][j]))
}

/// One column fewer: the two whose union loses least likelihood are put together. What the union of columns k and l loses is, to first
/// order, their masses times the distances of their laws to the law of both.
#[must_use]
pub fn merged(counts: &Csr, u: &Mat, v: &Mat) -> (Mat, Mat) {
    let (s, mass) = (u.cols(), shares(counts, u));
    let both = |j: usize, k: usize, l: usize| (mass[k] * v[(j, k)] + mass[l] * v[(j, l)]) / (mass[k] + mass[l]);
    let apart = |j: usize, k: usize, l: usize| if v[(j, k)] > 0.0 { mass[k] * v[(j, k)] * (v[(j, k)] / both(j, k, l)).ln() } else { 0.0 };
    let loss = |k: usize, l: usize| (0..v.rows()).map(|j| apart(j, k, l) + apart(j, l, k)).sum::<f64>();
    let pairs = (0..s).flat_map(|k| (k + 1..s).map(move |l| (k, l)));
    let Some((k, l)) = pairs.min_by(|a, b| loss(a.0, a.1).total_cmp(&loss(b.0, b.1))) else { return (u.clone(), v.clone()) };
    let kept: Vec<usize> = (0..s).filter(|c| *c != l).collect();
    let new_u = Mat::from_fn(u.rows(), s - 1, |i, c| if kept[c] == k { u[(i, k)] + u[(i, l)] } else { u[(i, kept[c])] });
    let new_v = Mat::from_fn(v.rows(), s - 1, |j, c| if kept[c] == k { both(j, k, l) } else { v[(j, kept[c])] });
    (new_u, new_v)
}

/// How far the two laws of a split column lean to their own destinations.
const LEAN: f64 = 0.2;

/// One column more: column k in two, whose laws lean to the destinations of even and of odd numbers.
#[must_use]
pub fn split(u: &Mat, v: &Mat, k: usize) -> (Mat, Mat) {
    let s = u.cols();
    let from = |c: usize| if c == s { k } else { c };
    let lean = |j: usize, c: usize| match (c == k, c == s) {
        (true, _) => 1.0 + LEAN * (1.0 - 2.0 * (j % 2) as f64),
        (_, true) => 1.0 - LEAN * (1.0 - 2.0 * (j % 2) as f64),
        _ => 1.0,
    };
    let new_u = Mat::from_fn(u.rows(), s + 1, |i, c| u[(i, from(c))] * if from(c) == k { 0.5 } else { 1.0 });
    let mut new_v = Mat::from_fn(v.rows(), s + 1, |j, c| v[(j, from(c))] * lean(j, c));
    for c in 0..=s {
        let sum: f64 = (0..new_v.rows()).map(|j| new_v[(j, c)]).sum();
        (0..new_v.rows()).for_each(|j| new_v[(j, c)] /= sum);
    }
    (new_u, new_v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Csr {
        let near = |i: u32, j: u32| if i % 3 == j % 3 { 30.0 } else { 2.0 + f64::from((i * 7 + j * 5) % 3) };
        let triplets: Vec<_> = (0..12u32).flat_map(|i| (0..12u32).map(move |j| (i, j, near(i, j)))).collect();
        Csr::from_triplets(12, 12, &triplets).unwrap()
    }

    fn random(rows: usize, cols: usize, by_row: bool) -> Mat {
        let m = Mat::from_fn(rows, cols, |i, j| 0.2 + ((i * 31 + j * 17 + i * j * 7) % 13) as f64);
        let sum = |i: usize, j: usize| -> f64 { if by_row { m.row(i).iter().sum() } else { (0..rows).map(|i| m[(i, j)]).sum() } };
        Mat::from_fn(rows, cols, |i, j| m[(i, j)] / sum(i, j))
    }

    #[test]
    fn passes_never_lower_the_aim_and_find_the_groups() {
        let counts = counts();
        for strength in [0.0, 2.0] {
            let (mut u, mut v) = (random(12, 3, true), random(12, 3, false));
            let prior = Prior { strength, shares: shares(&counts, &u), marginal: marginal(&counts) };
            let mut before = f64::NEG_INFINITY;
            for _ in 0..60 {
                pass(&counts, &mut u, &mut v, &prior);
                let now = penalised(&counts, &u, &v, &prior);
                assert!(now >= before - 1e-12, "{now} after {before}");
                before = now;
            }
        }
        let fitted = climb(&counts, &random(12, 3, true), &random(12, 3, false), 0.1, 500, 1e-9);
        let groups = |i: usize| fitted.u.row(i).iter().copied().fold(0.0, f64::max);
        assert!((0..12).all(|i| groups(i) > 0.8), "{:?}", fitted.u);
    }

    #[test]
    fn merging_and_splitting_keep_the_sums() {
        let counts = counts();
        let fitted = climb(&counts, &random(12, 3, true), &random(12, 3, false), 0.1, 200, 1e-9);
        for (u, v) in [merged(&counts, &fitted.u, &fitted.v), split(&fitted.u, &fitted.v, 1)] {
            assert!((0..12).all(|i| (u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12));
            assert!((0..v.cols()).all(|k| ((0..12).map(|j| v[(j, k)]).sum::<f64>() - 1.0).abs() < 1e-12));
        }
    }
}
