//! Zones: how tight they are, how tight they could be, and what moves between them.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::linalg::{Mat, Operator};

/// Passes of Lloyd's method a start.
const PASSES: usize = 100;
/// Rows nearer than this are taken for the same.
const SAME_ROW: f64 = 1e-6;

/// The means of the zones; an empty zone has none.
fn means(points: &Mat, zone: &[usize], count: usize) -> Vec<Option<Vec<f64>>> {
    let mut sums = vec![(0.0, vec![0.0; points.cols()]); count];
    for (i, &z) in zone.iter().enumerate() {
        sums[z].0 += 1.0;
        sums[z].1.iter_mut().zip(points.row(i)).for_each(|(s, x)| *s += x);
    }
    sums.into_iter().map(|(n, sum)| (n > 0.0).then(|| sum.into_iter().map(|s| s / n).collect())).collect()
}

fn distance2(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The nearest mean and how far it is.
fn nearest(point: &[f64], means: &[Option<Vec<f64>>]) -> (usize, f64) {
    let all = means.iter().enumerate().filter_map(|(z, m)| Some((z, distance2(point, m.as_ref()?))));
    all.fold((0, f64::INFINITY), |best, this| if this.1 < best.1 { this } else { best })
}

/// The sum of squared distances to the zones' own means, and a state that is nearer to another mean by more than `slack`.
#[must_use]
pub fn inertia(points: &Mat, zone: &[usize], count: usize, slack: f64) -> (f64, Option<usize>) {
    let means = means(points, zone, count);
    let (mut sum, mut stray) = (0.0, None);
    for (i, &z) in zone.iter().enumerate() {
        let own = means[z].as_ref().map_or(0.0, |m| distance2(points.row(i), m));
        sum += own;
        if stray.is_none() && nearest(points.row(i), &means).1 < own - slack {
            stray = Some(i);
        }
    }
    (sum, stray)
}

/// The lowest inertia of a few starts of Lloyd's method from points drawn by their squared distance to those before them.
#[must_use]
pub fn best_inertia(points: &Mat, count: usize, starts: usize, seed: u64) -> f64 {
    let n = points.rows();
    let mut best = f64::INFINITY;
    for start in 0..starts {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(1 + start as u64).wrapping_mul(0x9e37_79b9));
        let mut means: Vec<Option<Vec<f64>>> = vec![Some(points.row(rng.random_range(0..n)).to_vec())];
        let mut far: Vec<f64> = vec![f64::INFINITY; n];
        while means.len() < count {
            if let Some(Some(last)) = means.last() {
                far.iter_mut().enumerate().for_each(|(i, d)| *d = d.min(distance2(points.row(i), last)));
            }
            let mut mark = rng.random::<f64>() * far.iter().sum::<f64>();
            let drawn = far.iter().position(|d| {
                mark -= d;
                mark < 0.0
            });
            means.push(Some(points.row(drawn.unwrap_or(n - 1)).to_vec()));
        }
        let mut before = f64::INFINITY;
        for _ in 0..PASSES {
            let found: Vec<(usize, f64)> = (0..n).map(|i| nearest(points.row(i), &means)).collect();
            let sum: f64 = found.iter().map(|f| f.1).sum();
            best = best.min(sum);
            if sum >= before {
                break;
            }
            before = sum;
            let zone: Vec<usize> = found.iter().map(|f| f.0).collect();
            means = self::means(points, &zone, count);
        }
    }
    best
}

/// How many rows are different ones, counted up to `most`.
#[must_use]
pub fn distinct_rows(points: &Mat, most: usize) -> usize {
    let mut seen = BTreeSet::new();
    for i in 0..points.rows() {
        seen.insert(points.row(i).iter().map(|x| (x / SAME_ROW).round() as i64).collect::<Vec<_>>());
        if seen.len() >= most {
            break;
        }
    }
    seen.len()
}

/// Whether zone j is, for all j at once, the zone that shares most weight with column j: no cycle of renamings shares more. The weight shared is
/// `S_zj = sum over zone z of xi_i u_ij`; a renaming along a cycle gains the sum of `S_z,next(z) - S_zz`.
#[must_use]
pub fn numbered_best(u: &Mat, xi: &[f64], zone: &[usize], slack: f64) -> bool {
    let s = u.cols();
    let mut shared = Mat::zeros(s, s);
    for (i, &z) in zone.iter().enumerate() {
        shared.row_mut(z).iter_mut().zip(u.row(i)).for_each(|(w, u)| *w += xi[i] * u);
    }
    // The longest paths between zones (Floyd and Warshall); a path from a zone to itself that gains anything is such a cycle.
    let mut gain = Mat::from_fn(s, s, |a, b| shared[(a, b)] - shared[(a, a)]);
    for via in 0..s {
        for a in 0..s {
            for b in 0..s {
                let longer = gain[(a, via)] + gain[(via, b)];
                if longer > gain[(a, b)] {
                    gain[(a, b)] = longer;
                }
            }
            if gain[(a, a)] > slack {
                return false;
            }
        }
    }
    true
}

/// Transitions from zone to zone as shares of all: every row of P times the departures of its state.
pub fn zone_flows(p: &dyn Operator, departures: &[f64], zone: &[usize], count: usize) -> Mat {
    let d = p.rows();
    let mut flows = Mat::zeros(count, count);
    let mut row = vec![0.0; count];
    for i in 0..d {
        row.fill(0.0);
        p.row(i).for_each(d, |j, x| row[zone[j]] += x);
        flows.row_mut(zone[i]).iter_mut().zip(&row).for_each(|(f, x)| *f += departures[i] * x);
    }
    let total: f64 = flows.as_slice().iter().sum();
    if total > 0.0 {
        flows.as_mut_slice().iter_mut().for_each(|f| *f /= total);
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_groups() -> Mat {
        Mat::from_fn(20, 2, |i, j| if (i < 10) == (j == 0) { 0.9 + 0.005 * (i % 10) as f64 } else { 0.1 - 0.005 * (i % 10) as f64 })
    }

    #[test]
    fn a_stray_state_and_a_loose_partition_are_seen() {
        let points = two_groups();
        let good: Vec<usize> = (0..20).map(|i| usize::from(i >= 10)).collect();
        let (tight, stray) = inertia(&points, &good, 2, 1e-12);
        assert_eq!(stray, None);
        assert!((best_inertia(&points, 2, 5, 0) - tight).abs() < 1e-12);
        let mut bad = good.clone();
        bad[3] = 1;
        assert_eq!(inertia(&points, &bad, 2, 1e-12).1, Some(3));
        assert!(inertia(&points, &[0; 20], 2, 1e-12).0 > 10.0 * tight);
    }

    #[test]
    fn numbers_that_could_be_swapped_are_seen() {
        let (points, xi) = (two_groups(), [0.05; 20]);
        let good: Vec<usize> = (0..20).map(|i| usize::from(i >= 10)).collect();
        let swapped: Vec<usize> = good.iter().map(|z| 1 - z).collect();
        assert!(numbered_best(&points, &xi, &good, 1e-12) && !numbered_best(&points, &xi, &swapped, 1e-12));
        assert_eq!(distinct_rows(&points, 100), 20);
    }
}
