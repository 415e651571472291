//! Euclidean projection onto the simplex `{x >= 0, sum x = 1}`: `x = [y - tau]_+` with the one `tau` that makes the sum 1
//! (the paper's Lemma 5.1 with `eta = -tau`). `phi(tau) = sum [y - tau]_+ - 1` is convex and piecewise linear, so Newton
//! steps from the left of the root are exact after finitely many, without sorting.

use super::thin::sum_blocks;
use super::wide;

/// Rows treated side by side, one per SIMD lane.
pub const LANES: usize = 8;
/// One number for each of [`LANES`] rows.
pub type Lane = [f64; LANES];

/// Projects a vector, in place, onto the simplex; `tau` is the starting guess and returns the threshold found.
pub fn project(y: &mut [f64], tau: &mut f64) {
    *tau = threshold(y, *tau);
    cut(y, *tau);
    normalise(y);
}

/// The tau with `sum [y - tau]_+ = 1`, from a guess.
#[must_use]
pub fn threshold(y: &[f64], guess: f64) -> f64 {
    let mut t = guess;
    // A guess at or above the largest entry has no slope: fall back to the one bound that always lies left of the root.
    let (mut sum, mut count) = above(y, t);
    if count == 0.0 {
        t = (y.iter().sum::<f64>() - 1.0) / y.len() as f64;
        (sum, count) = above(y, t);
    }
    for _ in 0..200 {
        let next = t + (sum - 1.0) / count;
        if next == t {
            break;
        }
        let (s, c) = above(y, next);
        // Left of the root (sum >= 1) an unchanged count means that the last step was exact.
        let exact = c == count && s >= 1.0 - 1e-12;
        (t, sum, count) = (next, s, c);
        if exact || count == 0.0 {
            break;
        }
    }
    t
}

/// Projects a vector, in place, onto `{x >= 0, sum_j c_j x_j = total}` with `c > 0`: `x = [y - tau c]_+`; `tau` is the starting guess and returns the threshold found.
pub fn project_weighted(y: &mut [f64], c: &[f64], total: f64, tau: &mut f64) {
    *tau = threshold_weighted(y, c, total, *tau);
    y.iter_mut().zip(c).for_each(|(y, c)| *y = (*y - *tau * c).max(0.0));
    let sum = sum_blocks(y.len(), 2, |r| y[r.clone()].iter().zip(&c[r]).map(|(y, c)| c * y).sum::<f64>(), |a, b| *a += b).unwrap_or(total);
    if sum > 0.0 {
        y.iter_mut().for_each(|y| *y *= total / sum);
    }
}

/// The tau with `sum_j c_j [y_j - tau c_j]_+ = total`, from a guess: Newton steps as in [`threshold`].
#[must_use]
pub fn threshold_weighted(y: &[f64], c: &[f64], total: f64, guess: f64) -> f64 {
    let above = |t: f64| {
        let part = |rows: std::ops::Range<usize>| {
            let (mut sum, mut slope) = (0.0, 0.0);
            for (y, c) in y[rows.clone()].iter().zip(&c[rows]) {
                let x = y - t * c;
                if x > 0.0 {
                    sum += c * x;
                    slope += c * c;
                }
            }
            (sum, slope)
        };
        sum_blocks(y.len(), 3, part, |a, b| {
            a.0 += b.0;
            a.1 += b.1;
        })
        .unwrap_or((0.0, 0.0))
    };
    let mut t = guess;
    let (mut sum, mut slope) = if t.is_finite() { above(t) } else { (0.0, 0.0) };
    if slope == 0.0 {
        // All entries count: left of the root.
        let (all, square) = y.iter().zip(c).fold((0.0, 0.0), |(all, square), (y, c)| (all + c * y, square + c * c));
        t = (all - total) / square;
        (sum, slope) = above(t);
    }
    for _ in 0..200 {
        let next = t + (sum - total) / slope;
        if next == t {
            break;
        }
        let (s, at) = above(next);
        let exact = at == slope && s >= total * (1.0 - 1e-12);
        (t, sum, slope) = (next, s, at);
        if exact || slope == 0.0 {
            break;
        }
    }
    t
}

/// Rounding leaves the sum at `1 + O(1e-16 n)`; feasibility is worth one more pass.
fn normalise(y: &mut [f64]) {
    let sum = sum_blocks(y.len(), 1, |r| y[r].iter().sum::<f64>(), |a, b| *a += b).unwrap_or(1.0);
    if sum > 0.0 {
        let scale = 1.0 / sum;
        y.iter_mut().for_each(|x| *x *= scale);
    }
}

/// `sum [y - t]_+` and the number of terms.
fn above(y: &[f64], t: f64) -> (f64, f64) {
    sum_blocks(
        y.len(),
        2,
        |rows| block_above(&y[rows], t),
        |a, b| {
            a.0 += b.0;
            a.1 += b.1;
        },
    )
    .unwrap_or((0.0, 0.0))
}

wide! {
    fn block_above<'w>(y: &'w [f64], t: f64) -> (f64, f64) {
        let (mut sum, mut count) = ([0.0; LANES], [0.0; LANES]);
        let chunks = y.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks {
            for k in 0..LANES {
                let x = chunk[k] - t;
                let inside = if x > 0.0 { 1.0 } else { 0.0 };
                sum[k] += x * inside;
                count[k] += inside;
            }
        }
        for &y in rest {
            if y > t {
                sum[0] += y - t;
                count[0] += 1.0;
            }
        }
        (sum.iter().sum::<f64>(), count.iter().sum::<f64>())
    }
}

wide! {
    /// `[y - t]_+`.
    fn cut<'w>(y: &'w mut [f64], t: f64) {
        for x in y.iter_mut() {
            *x = (*x - t).max(0.0);
        }
    }
}

/// Projects [`LANES`] vectors at once; entry `j` of lane `k` is `y[j][k]`.
#[inline(always)]
pub fn project_lanes(y: &mut [Lane]) {
    threshold_lanes(y, |_| [1.0; LANES]);
}

/// The same in the metric `sum_j (x_j - y_j)^2 / slack_j`: `x_j = [y_j - tau slack_j]_+`.
#[inline(always)]
pub fn project_lanes_scaled(y: &mut [Lane], slack: &[Lane]) {
    threshold_lanes(y, |j| slack[j]);
}

/// Newton on `sum_j [y_j - tau slack_j]_+ = 1`. From the tau at which all entries count, left of the root, each step drops
/// entries: at most as many steps as entries.
#[inline(always)]
fn threshold_lanes(y: &mut [Lane], slack: impl Fn(usize) -> Lane) {
    let (mut sum, mut slope) = ([-1.0; LANES], [0.0; LANES]);
    for (j, row) in y.iter().enumerate() {
        let slack = slack(j);
        for k in 0..LANES {
            sum[k] += row[k];
            slope[k] += slack[k];
        }
    }
    let mut tau = [0.0; LANES];
    for k in 0..LANES {
        tau[k] = sum[k] / slope[k];
    }
    for _ in 0..y.len() {
        let (mut sum, mut inside) = ([-1.0; LANES], [0.0; LANES]);
        for (j, row) in y.iter().enumerate() {
            let slack = slack(j);
            for k in 0..LANES {
                let x = row[k] - tau[k] * slack[k];
                let one = if x > 0.0 { 1.0 } else { 0.0 };
                sum[k] += x * one;
                inside[k] += slack[k] * one;
            }
        }
        let mut changed = false;
        for k in 0..LANES {
            changed |= inside[k] != slope[k];
            if inside[k] > 0.0 {
                tau[k] += sum[k] / inside[k];
            }
        }
        slope = inside;
        if !changed {
            break;
        }
    }
    let mut total = [0.0; LANES];
    for (j, row) in y.iter_mut().enumerate() {
        let slack = slack(j);
        for k in 0..LANES {
            row[k] = (row[k] - tau[k] * slack[k]).max(0.0);
            total[k] += row[k];
        }
    }
    for row in y.iter_mut() {
        for k in 0..LANES {
            row[k] /= total[k];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// x is the projection of y exactly if x is feasible and `y - x` is constant on the support, not larger off it.
    fn assert_optimal(y: &[f64], x: &[f64]) {
        let sum: f64 = x.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "sum {sum}");
        assert!(x.iter().all(|&x| x >= 0.0));
        let scale = y.iter().fold(1.0f64, |m, y| m.max(y.abs()));
        let tau: Vec<f64> = y.iter().zip(x).filter(|(_, x)| **x > 0.0).map(|(y, x)| y - x).collect();
        let (low, high) = tau.iter().fold((f64::MAX, f64::MIN), |(l, h), t| (l.min(*t), h.max(*t)));
        assert!(high - low < 1e-11 * scale, "support not level: {low} {high}");
        assert!(y.iter().zip(x).all(|(y, x)| *x > 0.0 || *y <= high + 1e-11 * scale));
    }

    fn random(rng: &mut impl Rng, n: usize) -> Vec<f64> {
        let scale = 10f64.powf(rng.random_range(-4.0..4.0));
        (0..n).map(|_| scale * rng.random_range(-1.0..1.0)).collect()
    }

    #[test]
    fn projection_meets_its_optimality_conditions() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for n in [1, 2, 3, 7, 8, 9, 100, 2000] {
            for _ in 0..50 {
                let y = random(&mut rng, n);
                let mut x = y.clone();
                let mut tau = rng.random_range(-2.0..2.0);
                project(&mut x, &mut tau);
                assert_optimal(&y, &x);
            }
        }
    }

    #[test]
    fn weighted_projection_meets_its_optimality_conditions() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for n in [1, 2, 3, 7, 100, 2000] {
            for _ in 0..20 {
                let y = random(&mut rng, n);
                let c: Vec<f64> = (0..n).map(|_| 10f64.powf(rng.random_range(-2.0..2.0))).collect();
                let total = 10f64.powf(rng.random_range(-2.0..2.0));
                let mut x = y.clone();
                project_weighted(&mut x, &c, total, &mut rng.random_range(-2.0..2.0));
                let sum: f64 = x.iter().zip(&c).map(|(x, c)| x * c).sum();
                assert!((sum / total - 1.0).abs() < 1e-12 && x.iter().all(|x| *x >= 0.0));
                // (y_j - x_j) / c_j is one number on the support and no larger off it.
                let pull: Vec<f64> = (0..n).map(|j| (y[j] - x[j]) / c[j]).collect();
                let scale = pull.iter().fold(1.0f64, |m, p| m.max(p.abs()));
                let (low, high) = (0..n).filter(|&j| x[j] > 0.0).fold((f64::MAX, f64::MIN), |(l, h), j| (l.min(pull[j]), h.max(pull[j])));
                assert!(high - low < 1e-8 * scale, "{low} {high}");
                assert!((0..n).all(|j| x[j] > 0.0 || pull[j] <= high + 1e-8 * scale));
            }
        }
    }

    #[test]
    fn lanes_agree_with_one_at_a_time() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        for n in [1, 2, 5, 20, 33] {
            let columns: Vec<Vec<f64>> = (0..LANES).map(|_| random(&mut rng, n)).collect();
            let mut lanes: Vec<Lane> = (0..n).map(|j| std::array::from_fn(|k| columns[k][j])).collect();
            project_lanes(&mut lanes);
            for k in 0..LANES {
                let x: Vec<f64> = lanes.iter().map(|row| row[k]).collect();
                assert_optimal(&columns[k], &x);
            }
        }
    }

    #[test]
    fn scaled_projection_meets_its_optimality_conditions() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for n in [1, 2, 5, 20, 33] {
            let columns: Vec<Vec<f64>> = (0..LANES).map(|_| random(&mut rng, n)).collect();
            let mut lanes: Vec<Lane> = (0..n).map(|j| std::array::from_fn(|k| columns[k][j])).collect();
            let slack: Vec<Lane> = (0..n).map(|_| std::array::from_fn(|_| 10f64.powf(rng.random_range(-3.0..3.0)))).collect();
            project_lanes_scaled(&mut lanes, &slack);
            for k in 0..LANES {
                let sum: f64 = lanes.iter().map(|x| x[k]).sum();
                assert!((sum - 1.0).abs() < 1e-12);
                // (y_j - x_j) / slack_j is one number tau on the support, and at most tau off it.
                let pull: Vec<f64> = (0..n).map(|j| (columns[k][j] - lanes[j][k]) / slack[j][k]).collect();
                let inside: Vec<f64> = (0..n).filter(|&j| lanes[j][k] > 0.0).map(|j| pull[j]).collect();
                let scale = pull.iter().fold(1.0f64, |m, p| m.max(p.abs()));
                let (low, high) = inside.iter().fold((f64::MAX, f64::MIN), |(l, h), t| (l.min(*t), h.max(*t)));
                assert!(high - low < 1e-9 * scale, "{low} {high}");
                assert!((0..n).all(|j| lanes[j][k] > 0.0 || pull[j] <= high + 1e-9 * scale));
            }
        }
    }
}
