//! Least squares a little further, by projected gradient steps in turn on U and V.

use crate::linalg::{Mat, Operator};

/// The nearest point with entries of at least zero that sum to one: what is above a common level, the level found by sorting.
fn onto_simplex(x: &mut [f64]) {
    let mut sorted = x.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut level) = (0.0, 0.0);
    for (k, value) in sorted.iter().enumerate() {
        sum += value;
        let candidate = (sum - 1.0) / (k + 1) as f64;
        if *value > candidate {
            level = candidate;
        }
    }
    x.iter_mut().for_each(|v| *v = (*v - level).max(0.0));
}

/// A bound of the largest eigenvalue of a matrix of entries of at least zero: its largest row sum.
fn largest(gram: &Mat) -> f64 {
    (0..gram.rows()).map(|a| gram.row(a).iter().sum::<f64>()).fold(f64::MIN_POSITIVE, f64::max)
}

/// U and V after so many steps on each, none of which raises `1/2 ||Xi (P - U V^T)||^2`.
pub fn descend(p: &dyn Operator, weights: &[f64], u: &Mat, v: &Mat, steps: usize) -> (Mat, Mat) {
    let (m, n, s) = (u.rows(), v.rows(), u.cols());
    let (mut u, mut v) = (u.clone(), v.clone());
    for _ in 0..steps {
        // Row i of the gradient is Xi_i^2 (u_i V^T V - p_i V): with a step of 1 / (Xi_i^2 ||V^T V||) the weight drops out.
        let gram = Mat::from_fn(s, s, |a, b| (0..n).map(|j| v[(j, a)] * v[(j, b)]).sum());
        let step = 1.0 / largest(&gram);
        for i in 0..m {
            let mut aim = vec![0.0; s];
            p.row(i).for_each(n, |j, x| (0..s).for_each(|k| aim[k] += x * v[(j, k)]));
            let row = u.row(i).to_vec();
            let mut next: Vec<f64> =
                (0..s).map(|k| row[k] - step * ((0..s).map(|l| row[l] * gram[(l, k)]).sum::<f64>() - aim[k])).collect();
            onto_simplex(&mut next);
            u.row_mut(i).copy_from_slice(&next);
        }
        // V (U^T Xi^2 U) - P^T Xi^2 U.
        let gram = Mat::from_fn(s, s, |a, b| (0..m).map(|i| weights[i] * weights[i] * u[(i, a)] * u[(i, b)]).sum());
        let step = 1.0 / largest(&gram);
        let mut aim = Mat::zeros(n, s);
        for i in 0..m {
            let w = weights[i] * weights[i];
            p.row(i).for_each(n, |j, x| (0..s).for_each(|k| aim[(j, k)] += w * x * u[(i, k)]));
        }
        let before = v.clone();
        for k in 0..s {
            let moved = |j: usize| before[(j, k)] - step * ((0..s).map(|l| before[(j, l)] * gram[(l, k)]).sum::<f64>() - aim[(j, k)]);
            let mut column: Vec<f64> = (0..n).map(moved).collect();
            onto_simplex(&mut column);
            (0..n).for_each(|j| v[(j, k)] = column[j]);
        }
    }
    (u, v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::DenseOperator;
    use crate::verify::plain::fidelity;

    #[test]
    fn projections_and_descent() {
        let mut x = [0.9, 0.6, -0.3];
        onto_simplex(&mut x);
        assert!((x[0] - 0.65).abs() < 1e-15 && (x[1] - 0.35).abs() < 1e-15 && x[2] == 0.0, "{x:?}");
        // A matrix of rank two, and a start beside it.
        let law = |j: usize, k: usize| if (j < 3) == (k == 0) { 0.3 } else { 0.1 / 3.0 };
        let p = Mat::from_fn(6, 6, |i, j| law(j, usize::from(i % 2 == 0)));
        let p = DenseOperator::new(p);
        let u = Mat::from_fn(6, 2, |i, k| if (i % 2 == 0) == (k == 1) { 0.6 } else { 0.4 });
        let v = Mat::from_fn(6, 2, |j, k| if (j < 3) == (k == 0) { 0.2 } else { 0.4 / 3.0 });
        let weights = [1.0 / 6.0; 6];
        let mut before = fidelity(&p, &weights, &u, &v);
        let first = before;
        for steps in [1, 5, 50] {
            let (u, v) = descend(&p, &weights, &u, &v, steps);
            let now = fidelity(&p, &weights, &u, &v);
            assert!(now <= before, "{now} after {before}");
            before = now;
        }
        assert!(before < 0.2 * first, "{before} from {first}");
    }
}
