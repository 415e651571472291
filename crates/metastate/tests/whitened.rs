//! The problem in other coordinates and with prices of directions, and the recipe that states one: against brute force, by slope, by attack, and on planted chains.

mod common;

use std::sync::Arc;

use common::{Stream, outer};
use metastate::fit::{ObjectiveKind, Rank, RefitKind, fit};
use metastate::proof::{Candidate, Effort, prove};
use metastate::simulate::planted;
use metastate::solve::{Factors, Frame, Metric, Problem, Settings, Side, Silent, Start, StopRule, rank_one, solve};
use metastate::workspace::kkt::{Products, multiplier_and_errors};
use metastate::workspace::relaxation::{Relaxation, random_row_space};
use metastate::{Counts, Csr, Data, DenseOperator, Estimate, FitOptions, Mat, StateIndex};

/// A small problem: Z with the totals and the measure of a random stochastic matrix, directions of random nonnegative factors.
struct Instance {
    z: Mat,
    totals: Vec<f64>,
    measure: Vec<f64>,
    directions: Factors,
}

impl Instance {
    fn new(m: usize, n: usize, rank: usize, stream: &mut Stream) -> Instance {
        let totals: Vec<f64> = (0..m).map(|_| 0.2 + stream.next()).collect();
        let measure: Vec<f64> = (0..n).map(|_| 0.2 + stream.next()).collect();
        let p = stream.stochastic(m, n);
        let z = Mat::from_fn(m, n, |i, j| totals[i] * p[(i, j)] / measure[j]);
        let u = Mat::from_fn(m, rank, |_, _| stream.next());
        let v = Mat::from_fn(n, rank, |_, _| stream.next());
        Instance { z, totals, measure, directions: Factors { u, v } }
    }

    fn frame(&self, delta: f64) -> Arc<Frame> {
        let metric = if delta < 1.0 { Some(Metric::of(&self.directions, delta).unwrap()) } else { None };
        Arc::new(Frame::new(self.totals.clone(), self.measure.clone(), metric).unwrap())
    }
}

/// `||x - (1 - delta) Q Q^T x||` with all of L written out.
fn priced_length(side: &Side, x: &Mat, j: usize) -> f64 {
    let q = side.basis();
    (0..x.rows())
        .map(|i| {
            let inside: f64 = (0..q.cols()).map(|k| q[(i, k)] * (0..x.rows()).map(|l| q[(l, k)] * x[(l, j)]).sum::<f64>()).sum();
            (x[(i, j)] - (1.0 - side.delta()) * inside).powi(2)
        })
        .sum::<f64>()
        .sqrt()
}

fn stochastic_start(m: usize, n: usize, rank: usize, stream: &mut Stream) -> Factors {
    let v = stream.stochastic(rank, n);
    Factors { u: stream.stochastic(m, rank), v: Mat::from_fn(n, rank, |j, k| v[(k, j)]) }
}

#[test]
fn the_objective_is_the_one_that_is_written_down() {
    let mut stream = Stream(11);
    for delta in [1.0, 0.3] {
        let instance = Instance::new(9, 7, 3, &mut stream);
        let (p, ones, frame) = (DenseOperator::new(instance.z.clone()), vec![1.0; 9], instance.frame(delta));
        let problem = Problem::in_frame(&p, &ones, 0.1, Arc::clone(&frame)).unwrap();
        let x = frame.enter(&stochastic_start(9, 7, 4, &mut stream));
        let fitted = outer(&x.u, &x.v);
        let fidelity: f64 = (0..9).map(|i| (0..7).map(|j| (instance.z[(i, j)] - fitted[(i, j)]).powi(2)).sum::<f64>()).sum::<f64>() / 2.0;
        let flat = Side::new(Mat::zeros(9, 0), 1.0).unwrap();
        let flat_right = Side::new(Mat::zeros(7, 0), 1.0).unwrap();
        let (left, right) = frame.metric.as_deref().map_or((&flat, &flat_right), |m| (&m.left, &m.right));
        let omega: f64 = (0..4).map(|j| priced_length(left, &x.u, j) * priced_length(right, &x.v, j)).sum();
        let found = problem.objective(&x);
        assert!((found.fidelity - fidelity).abs() < 1e-12 && (found.regularizer - omega).abs() < 1e-12, "{found:?} {fidelity} {omega}");
        // X measure = totals, and the way back leads to where it began.
        for i in 0..9 {
            let total: f64 = (0..7).map(|j| fitted[(i, j)] * instance.measure[j]).sum();
            assert!((total - instance.totals[i]).abs() < 1e-12);
        }
        let back = frame.leave(x.clone());
        assert!((0..9).all(|i| (back.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12));
    }
}

/// Solves at a fixed rank to the last digits.
fn solved(problem: &Problem, start: Factors, rank: usize) -> metastate::solve::Solution {
    let settings = Settings {
        max_rank: rank,
        start: Start::Given(Box::new(start)),
        stop: StopRule::Certificate { gap: 1e-9 },
        tolerance: 1e-9,
        max_sweeps: 4000,
        ..Settings::default()
    };
    solve(problem, &settings, &mut Silent).unwrap()
}

#[test]
fn solutions_satisfy_conditions_that_are_the_gradients_own() {
    let mut stream = Stream(5);
    for (delta, lambda) in [(1.0, 0.05), (0.3, 0.05), (0.1, 0.2)] {
        let instance = Instance::new(12, 10, 3, &mut stream);
        let (p, ones, frame) = (DenseOperator::new(instance.z.clone()), vec![1.0; 12], instance.frame(delta));
        let problem = Problem::in_frame(&p, &ones, lambda, Arc::clone(&frame)).unwrap();
        let solution = solved(&problem, stochastic_start(12, 10, 3, &mut stream), 3);
        let x = frame.enter(&solution.factors);
        let (mu, errors) = multiplier_and_errors(&problem, &x, &Products::at(&problem, &x));
        assert!(errors.worst() < 1e-6, "{errors:?}");
        // By slope, without a formula for the gradient: moving mass within a row of U, and along the measure within a column of V, never lowers F to first order.
        let f = problem.objective(&x).value;
        let t = 1e-6f64;
        for i in 0..12 {
            for (from, to) in [(0, 1), (1, 2), (2, 0)].into_iter().filter(|(from, _)| *from < x.rank()).filter(|(_, to)| *to < x.rank()) {
                let step = t.min(x.u[(i, from)]);
                let mut moved = x.clone();
                moved.u[(i, from)] -= step;
                moved.u[(i, to)] += step;
                assert!(problem.objective(&moved).value >= f - 1e-9 * step - 1e-14, "row {i}");
            }
        }
        for k in 0..x.rank() {
            for j in 0..10 {
                let other = (j + 3) % 10;
                let step = t.min(x.v[(j, k)] * instance.measure[j]);
                let mut moved = x.clone();
                moved.v[(j, k)] -= step / instance.measure[j];
                moved.v[(other, k)] += step / instance.measure[other];
                assert!(problem.objective(&moved).value >= f - 1e-9 * step - 1e-14, "column {k}");
            }
        }
        assert_eq!(mu.len(), 12);
    }
}

#[test]
fn no_bound_is_above_what_any_restart_reaches_and_good_points_come_near() {
    let mut stream = Stream(3);
    let mut near = 0;
    for case in 0..12u64 {
        let (delta, lambda) = ([1.0, 0.5, 0.2][case as usize % 3], [0.3, 0.08, 0.02][(case as usize / 3) % 3]);
        let (m, n) = (8 + case as usize % 4, 7 + case as usize % 5);
        let instance = Instance::new(m, n, 2 + case as usize % 2, &mut stream);
        let (p, ones, frame) = (DenseOperator::new(instance.z.clone()), vec![1.0; m], instance.frame(delta));
        let problem = Problem::in_frame(&p, &ones, lambda, Arc::clone(&frame)).unwrap();
        // The relaxation's own point, whatever its quality, and points that are nothing special.
        let mut relaxed = Relaxation::from_row_space(&problem, random_row_space(&problem, 6, case));
        let mut before = f64::INFINITY;
        for _ in 0..60 {
            relaxed.sweep(&problem);
            assert!(relaxed.value <= before * (1.0 + 1e-9), "a sweep of the relaxation raised it: {before} {}", relaxed.value);
            before = relaxed.value;
        }
        for i in 0..m {
            let total: f64 =
                (0..relaxed.rank()).map(|k| relaxed.a[(i, k)] * (0..n).map(|j| relaxed.b[(j, k)] * instance.measure[j]).sum::<f64>()).sum();
            assert!((total - instance.totals[i]).abs() < 1e-9, "row {i}: {total}");
        }
        let odd = stochastic_start(m, n, 3, &mut stream);
        let mu: Vec<f64> = (0..m).map(|_| stream.next() - 0.5).collect();
        let mut bounds = Vec::new();
        for (a, b, mu) in [(&relaxed.a, &relaxed.b, &relaxed.mu), (&odd.u, &odd.v, &mu)] {
            let (proven, _) = prove(&problem, &[Candidate { a, b, mu }], f64::INFINITY, &Effort::default());
            bounds.push(proven.lower_bound());
        }
        let mut lowest = f64::INFINITY;
        for rank in [1, 2, 3, 5, n] {
            for _ in 0..3 {
                let found = solved(&problem, stochastic_start(m, n, rank, &mut stream), rank);
                let own = found.proof.as_ref().unwrap().lower_bound();
                bounds.push(own);
                lowest = lowest.min(found.objective.value);
                assert!(own <= found.objective.value * (1.0 + 1e-12));
            }
        }
        let one = rank_one(&problem);
        assert!(problem.objective(&one).value >= lowest * (1.0 - 1e-9));
        for bound in &bounds {
            assert!(*bound <= lowest * (1.0 + 1e-9), "case {case}: {bound} > {lowest}");
        }
        let best = bounds.iter().copied().fold(0.0, f64::max);
        near += usize::from((lowest - best) / lowest < 0.05);
    }
    assert!(near >= 8, "{near} of 12 bounds are within 5 % of the best point");
}

#[test]
fn one_meta_state_is_solved_exactly_with_prices_too() {
    let mut stream = Stream(8);
    let instance = Instance::new(10, 8, 2, &mut stream);
    let (p, ones, frame) = (DenseOperator::new(instance.z.clone()), vec![1.0; 10], instance.frame(0.2));
    let problem = Problem::in_frame(&p, &ones, 0.3, Arc::clone(&frame)).unwrap();
    let best = rank_one(&problem);
    let f = problem.objective(&best).value;
    for _ in 0..200 {
        let other = frame.enter(&stochastic_start(10, 8, 1, &mut stream));
        // On the way from the best to any other, F rises from the first step on.
        let nearby = Factors { u: best.u.clone(), v: Mat::from_fn(8, 1, |j, _| 0.999 * best.v[(j, 0)] + 0.001 * other.v[(j, 0)]) };
        assert!(problem.objective(&nearby).value >= f * (1.0 - 1e-12));
    }
}

#[test]
fn prices_are_refused_where_they_mean_nothing() {
    assert!(Side::new(Mat::from_fn(4, 1, |_, _| 1.0), 0.3).is_err(), "not of length one");
    assert!(Side::new(Mat::from_fn(4, 1, |_, _| 0.5), 0.0).is_err());
    assert!(Side::new(Mat::from_fn(4, 1, |_, _| 0.5), 0.3).is_ok());
    assert!(Frame::new(vec![1.0, 0.0], vec![1.0], None).is_err());
    let counts = Counts::from_pairs(StateIndex::numbered(3), [(0, 1), (1, 2), (2, 0)].repeat(20)).unwrap();
    let data = Data::from_counts(&counts, &Estimate::default()).unwrap();
    let given = FitOptions::default().objective(ObjectiveKind::Whitened).lambda(metastate::fit::Lambda::Given(0.1)).unwrap();
    assert!(fit(&data, &given, &mut Silent).unwrap_err().to_string().contains("whitened"));
    let nothing = Data::from_matrix(
        metastate::Chain::from_low_rank(
            Mat::from_fn(3, 1, |_, _| 1.0),
            Mat::from_fn(3, 1, |_, _| 1.0 / 3.0),
            metastate::Given::weights(vec![1.0 / 3.0; 3]),
        )
        .unwrap(),
    );
    assert!(fit(&nothing, &FitOptions::default().objective(ObjectiveKind::Whitened), &mut Silent).is_err());
}

#[test]
fn the_proven_answer_is_as_near_to_the_truth_as_the_refit() {
    let truth = planted(200, 5, 4).unwrap();
    let counts = truth.sample_counts(400_000, 4).unwrap();
    let data = Data::from_counts(&counts, &Estimate::default()).unwrap();
    let p = metastate::LowRankOperator::new(truth.u.clone(), truth.v.clone()).unwrap();
    let paper = fit(&data, &FitOptions::default(), &mut Silent).unwrap();
    let white = fit(&data, &FitOptions::default().objective(ObjectiveKind::Whitened), &mut Silent).unwrap();
    let (by_refit, proven) = (paper.against(&p, &data), white.against(&p, &data));
    assert_eq!((white.rank(), white.solution.rank()), (5, 5));
    assert!(white.refit.is_none());
    println!("refit {:?}, penalised {:.3e}, whitened {:.3e}", by_refit.refit, by_refit.solution, proven.solution);
    assert!(proven.solution < 1.15 * by_refit.refit.unwrap(), "{} against {:?}", proven.solution, by_refit.refit);
    let (gap, explained) = (white.solution.certified_gap().unwrap(), white.solution.explained_gap().unwrap());
    assert!(gap < 2e-3 && explained < 1e-2, "{gap} {explained}");
    let stated = white.stated.as_ref().unwrap();
    assert!((white.solution.lambda - metastate::fit::ABOVE_NOISE * stated.noise).abs() < 1e-12);
    assert!((stated.scores.behind.0).abs() < 5e-4, "{:?}", stated.scores);
    // With the refit asked for, both stand side by side, at one rank.
    let both = FitOptions::default().objective(ObjectiveKind::Whitened).refit(RefitKind::Likelihood).rank(Rank::Given(5)).unwrap();
    let both = fit(&data, &both, &mut Silent).unwrap();
    assert_eq!((both.rank(), both.solution.rank()), (5, 5));
    assert!(both.refit.is_some());
}

#[test]
fn states_that_are_never_left_and_empty_columns_are_no_trouble() {
    let mut triplets = Vec::new();
    for i in 0..30u32 {
        for j in 0..30u32 {
            let same = (i < 15) == (j < 15);
            if i != 29 && j != 7 {
                triplets.push((i, j, if same { 9.0 } else { 1.0 }));
            }
        }
    }
    let csr = Csr::from_triplets(30, 30, &triplets).unwrap();
    let pairs = csr.triplets().flat_map(|(i, j, n)| std::iter::repeat_n((i, j), n as usize)).collect::<Vec<_>>();
    let counts = Counts::from_pairs(StateIndex::numbered(30), pairs).unwrap();
    let data = Data::from_counts(&counts, &Estimate::default()).unwrap();
    let model = fit(&data, &FitOptions::default().objective(ObjectiveKind::Whitened), &mut Silent).unwrap();
    assert_eq!(model.rank(), 2);
    let u = model.memberships();
    assert!((0..u.rows()).all(|i| (u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-9));
    assert!(model.solution.certified_gap().unwrap() < 1e-2);
}
