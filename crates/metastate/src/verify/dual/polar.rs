//! The polar of Omega, by local search.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::rows::{beside, by_rows, column_norms};
use super::{DEAR_STATES, DENSE_STATES, Point};
use crate::linalg::Mat;

/// Random starts.
const RANDOM: usize = 20;

/// `max u^T W v` over nonnegative unit vectors, by alternating ascent from many starts. Each is a local search: the result
/// is a LOWER bound of the maximum, so GE may be too small and relDG is no proof.
pub(in crate::verify) fn polar(point: &Point, singular: Option<&Mat>, seed: u64) -> f64 {
    let d = point.rows.cols();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let uniform = Mat::from_fn(d, 1, |_, _| 1.0);
    let random = Mat::from_fn(d, RANDOM, |_, _| {
        let x: f64 = StandardNormal.sample(&mut rng);
        x.abs()
    });
    let mut v = beside(&[point.b, &uniform, &random]);
    if let Some(singular) = singular {
        let opposite = by_rows(d, singular.cols(), |i, out| out.iter_mut().zip(singular.row(i)).for_each(|(o, x)| *o = -x));
        v = beside(&[&v, singular, &opposite]);
    }
    positive_unit_columns(&mut v);
    // All starts for a while, then the best few to the end; with fewer digits where a product is dear.
    let (first, few, last, settle) = if point.rows.side() <= DEAR_STATES { (10, 6, 300, 1e-14) } else { (4, 3, 60, 1e-9) };
    let mut values = vec![0.0; v.cols()];
    for _ in 0..first {
        values = ascend(point, &mut v);
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    let chosen = &order[..order.len().min(few)];
    v = by_rows(d, chosen.len(), |i, out| (0..out.len()).for_each(|k| out[k] = v[(i, chosen[k])]));
    let mut best = values.iter().copied().fold(0.0, f64::max);
    for _ in 0..last {
        let now = ascend(point, &mut v).into_iter().fold(0.0, f64::max);
        let settled = now - best <= settle * now;
        best = best.max(now);
        if settled {
            break;
        }
    }
    if best > 0.0 { best } else { greatest_value(point) }
}

/// What one round from the solution's own columns finds: every search that starts from them finds at least this.
pub(in crate::verify) fn polar_of_columns(point: &Point) -> f64 {
    let mut v = point.b.clone();
    positive_unit_columns(&mut v);
    ascend(point, &mut v).into_iter().fold(f64::NEG_INFINITY, f64::max)
}

/// One round of `u = [W v]_+ / ||.||`, `v = [W^T u]_+ / ||.||` for every column; the values `u^T W v`.
fn ascend(point: &Point, v: &mut Mat) -> Vec<f64> {
    let mut u = point.times(v);
    positive_unit_columns(&mut u);
    *v = point.transposed_times(&u);
    positive_unit_columns(v)
}

/// Negative entries become zero and columns get length one (zero columns stay); the lengths before.
fn positive_unit_columns(m: &mut Mat) -> Vec<f64> {
    m.as_mut_slice().iter_mut().for_each(|x| *x = x.max(0.0));
    let lengths = column_norms(m);
    for i in 0..m.rows() {
        m.row_mut(i).iter_mut().zip(&lengths).for_each(|(x, l)| *x = if *l > 0.0 { *x / l } else { 0.0 });
    }
    lengths
}

/// Where no start climbed above zero: the largest entry of W, which is the maximum if W has no positive entry.
fn greatest_value(point: &Point) -> f64 {
    if point.rows.side() > DENSE_STATES {
        return 0.0;
    }
    point.dense().as_slice().iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
