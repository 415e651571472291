//! The solver against an independent solution of the relaxation: its bound below, its objective above, on random instances, square and with more rows or more columns.

mod common;
mod nuclear;

use common::{Stream, formed, solved};
use metastate::DenseOperator;
use metastate::solve::{Problem, Settings, StopRule};

#[test]
fn the_relaxation_lies_between_bound_and_objective() {
    let mut stream = Stream(21);
    for (instance, (m, n)) in [(10, 10), (10, 10), (10, 10), (10, 10), (6, 14), (14, 6), (2, 9), (12, 3)].into_iter().enumerate() {
        let operator = DenseOperator::new(stream.stochastic(m, n));
        let weights: Vec<f64> = (0..m).map(|_| 0.3 + stream.next()).collect();
        let entries = formed(&operator);
        let p = faer::Mat::from_fn(m, n, |i, j| entries[(i, j)]);
        for lambda in [0.5, 0.05, 0.005] {
            let relaxed = nuclear::solve(&p, &weights, lambda, 4000);
            assert!((relaxed.upper - relaxed.lower) / relaxed.upper < 1e-9, "the relaxation is not solved");
            let problem = Problem::new(&operator, &weights, lambda).unwrap();
            let settings = Settings { stop: StopRule::Certificate { gap: 1e-6 }, max_rank: 20, max_sweeps: 1000, ..Settings::default() };
            let solution = solved(&problem, &settings);
            let (bound, objective) = (solution.proof.as_ref().map_or(f64::NAN, |p| p.lower_bound()), solution.objective.value);
            println!(
                "instance {instance}, {m} x {n}, lambda {lambda}: bound {:.1e} below L, objective {:.1e} above L, rank {}, {}",
                1.0 - bound / relaxed.upper,
                objective / relaxed.lower - 1.0,
                solution.rank(),
                solution.status.as_str()
            );
            assert!(relaxed.lower * (1.0 - 1e-8) <= objective, "{objective:e} lies below {:e}", relaxed.lower);
            assert!(bound <= relaxed.upper * (1.0 + 1e-8), "{bound:e} lies above {:e}", relaxed.upper);
            // And the bound is no idle one: its relaxation is solved, too.
            assert!(bound >= relaxed.lower * (1.0 - 1e-3), "{bound:e} is far below {:e}", relaxed.lower);
        }
    }
}
