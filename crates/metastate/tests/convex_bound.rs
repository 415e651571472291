//! The library's bounds against an independent solution of the relaxation that they are bounds of.

mod nuclear;

use metastate::verify::{Claimed, Witness, recompute};
use metastate::{DenseOperator, Mat};

/// A stream of numbers in (0, 1).
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn simplex(&mut self, n: usize) -> Vec<f64> {
        let x: Vec<f64> = (0..n).map(|_| -self.next().ln()).collect();
        let sum: f64 = x.iter().sum();
        x.iter().map(|x| x / sum).collect()
    }

    fn factors(&mut self, d: usize, s: usize) -> (Mat, Mat) {
        let rows: Vec<Vec<f64>> = (0..d).map(|_| self.simplex(s)).collect();
        let columns: Vec<Vec<f64>> = (0..s).map(|_| self.simplex(d)).collect();
        (Mat::from_fn(d, s, |i, j| rows[i][j]), Mat::from_fn(d, s, |i, j| columns[j][i]))
    }
}

#[test]
fn bounds_stay_below_the_relaxation_and_a_good_witness_reaches_it() {
    let mut stream = Stream(5);
    for d in 8..=12 {
        let rows: Vec<Vec<f64>> = (0..d).map(|_| stream.simplex(d)).collect();
        let weights: Vec<f64> = (0..d).map(|_| 0.3 + stream.next()).collect();
        let p = faer::Mat::from_fn(d, d, |i, j| rows[i][j]);
        let operator = DenseOperator::new(Mat::from_fn(d, d, |i, j| rows[i][j]));
        for lambda in [0.5, 0.05, 0.005] {
            let relaxed = nuclear::solve(&p, &weights, lambda, 4000);
            let width = (relaxed.upper - relaxed.lower) / relaxed.upper;
            assert!((-1e-13..1e-10).contains(&width), "the relaxation is not solved: {width:e}");

            let (mut best, mut lowest_objective) = (0.0f64, f64::INFINITY);
            for rank in [1, 2, 3, d] {
                let (u, v) = stream.factors(d, rank);
                let found = recompute(&Claimed { p: &operator, weights: &weights, lambda, u: &u, v: &v }, None, None, 1).unwrap();
                assert!(found.lower_bound <= relaxed.upper * (1.0 + 1e-8), "{} > {}", found.lower_bound, relaxed.upper);
                assert!(relaxed.lower <= found.objective);
                best = best.max(found.lower_bound);
                lowest_objective = lowest_objective.min(found.objective);
            }

            let a = Mat::from_fn(d, d, |i, j| relaxed.x[(i, j)]);
            let b = Mat::from_fn(d, d, |i, j| if i == j { 1.0 } else { 0.0 });
            let (u, v) = stream.factors(d, 2);
            let witness = Witness { a: &a, b: &b, mu: &relaxed.mu, clip: None };
            let found = recompute(&Claimed { p: &operator, weights: &weights, lambda, u: &u, v: &v }, Some(witness), None, 1).unwrap();
            assert!(found.lower_bound <= relaxed.upper * (1.0 + 1e-12));
            assert!(found.lower_bound >= relaxed.lower * (1.0 - 1e-9), "{} < {}", found.lower_bound, relaxed.lower);
            println!(
                "d {d} lambda {lambda}: L {:.12e} width {width:.1e}; best random-point bound {:.3e} below L; witness {:.1e} below L",
                relaxed.upper,
                1.0 - best / relaxed.upper,
                1.0 - found.lower_bound / relaxed.upper
            );
        }
    }
}
