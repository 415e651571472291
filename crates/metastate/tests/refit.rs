//! The refit and the scores: against dense computations written out in full, and as their definitions say.

mod common;

use common::{Stream, by_arrivals, outer, problem};
use metastate::simulate::planted;
use metastate::solve::Factors;
use metastate::workspace::refit::{
    LikelihoodSettings, Observed, RefitStart, Starts, least_squares, likelihood, likelihood_best_start, marginal_law,
};
use metastate::workspace::score::{Model, Score, Smoothing, score};
use metastate::workspace::{errors, start};
use metastate::{Chain, Counts, Csr, Mat, StateIndex};

/// Counts with gaps: some states never left, some never reached.
fn sparse_counts(d: usize, entries: usize, seed: u64) -> Csr {
    let mut stream = Stream(seed);
    let triplets: Vec<_> = (0..entries)
        .map(|_| {
            (stream.below(d - 1) as u32, stream.below(d - 2) as u32, if stream.next() < 0.6 { 1.0 } else { 1.0 + stream.below(9) as f64 })
        })
        .collect();
    Csr::from_triplets(d, d, &triplets).unwrap()
}

fn dense(csr: &Csr) -> Mat {
    let mut m = Mat::zeros(csr.rows(), csr.cols());
    csr.triplets().for_each(|(i, j, n)| m[(i as usize, j as usize)] = n);
    m
}

/// One pass as the formula in the text says, on full matrices.
fn dense_pass(n: &Mat, x: &Factors, prior: f64, mass: &[f64], marginal: &[f64]) -> Factors {
    let (d, s) = (n.rows(), x.rank());
    let ratios = |x: &Factors| {
        let p = outer(&x.u, &x.v);
        Mat::from_fn(d, d, |i, j| if n[(i, j)] > 0.0 { n[(i, j)] / p[(i, j)] } else { 0.0 })
    };
    let r = ratios(x);
    let mut u = Mat::from_fn(d, s, |i, k| x.u[(i, k)] * (0..d).map(|j| r[(i, j)] * x.v[(j, k)]).sum::<f64>() + prior * mass[k]);
    for i in 0..d {
        let sum: f64 = u.row(i).iter().sum();
        if sum > 0.0 { u.row_mut(i).iter_mut().for_each(|u| *u /= sum) } else { u.row_mut(i).copy_from_slice(x.u.row(i)) }
    }
    let half = Factors { u, v: x.v.clone() };
    let r = ratios(&half);
    let c = prior * d as f64;
    let mut v =
        Mat::from_fn(d, s, |j, k| x.v[(j, k)] * (0..d).map(|i| r[(i, j)] * half.u[(i, k)]).sum::<f64>() + c * mass[k] * marginal[j]);
    for k in 0..s {
        let sum: f64 = v.column(k).iter().sum();
        (0..d).for_each(|j| v[(j, k)] /= sum);
    }
    Factors { u: half.u, v }
}

fn largest_difference(a: &Mat, b: &Mat) -> f64 {
    a.as_slice().iter().zip(b.as_slice()).fold(0.0, |m, (a, b)| m.max((a - b).abs()))
}

/// `a_k`, as the prior takes it from the start.
fn mass_of(observed: &Observed, x: &Factors) -> Vec<f64> {
    let shares = observed.departure_shares();
    let raw: Vec<f64> =
        (0..x.rank()).map(|k| (0..shares.len()).map(|i| shares[i] * x.u[(i, k)]).sum::<f64>().max(1e-3 / x.rank() as f64)).collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|m| m / sum).collect()
}

#[test]
fn passes_and_their_fixed_point_equal_the_dense_formula() {
    for (d, s, prior) in [(12, 2, 0.0), (25, 3, 0.7), (40, 5, 0.1), (30, 35, 0.3)] {
        let counts = sparse_counts(d, 9 * d, 3);
        let observed = Observed::new(counts.clone()).unwrap();
        let begin = Stream(11).factors(d, s);
        let mass = mass_of(&observed, &begin);
        // The lift of the start, then 40 passes, both ways.
        let mut x = Factors {
            u: Mat::from_fn(d, s, |i, k| 0.999 * begin.u[(i, k)] + 0.001 * mass[k]),
            v: Mat::from_fn(d, s, |j, k| 0.999 * begin.v[(j, k)] + 0.001 * marginal_law(&counts)[j]),
        };
        for _ in 0..40 {
            x = dense_pass(&dense(&counts), &x, prior, &mass, &marginal_law(&counts));
        }
        let settings = LikelihoodSettings { prior, max_passes: 40, tolerance: f64::NEG_INFINITY, accelerate: false };
        let ours = likelihood(&observed, &begin, &settings).unwrap();
        assert_eq!(ours.passes, 40);
        assert!(largest_difference(&ours.factors.u, &x.u) < 1e-9, "d {d}: {}", largest_difference(&ours.factors.u, &x.u));
        assert!(largest_difference(&ours.factors.v, &x.v) < 1e-9);

        // Accelerated to the end: a pass by the dense formula no longer moves X.
        let settings = LikelihoodSettings { prior, max_passes: 20_000, tolerance: 1e-15, accelerate: true };
        let end = likelihood(&observed, &begin, &settings).unwrap();
        let again = dense_pass(&dense(&counts), &end.factors, prior, &mass, &marginal_law(&counts));
        let moved = largest_difference(&outer(&again.u, &again.v), &outer(&end.factors.u, &end.factors.v));
        assert!(moved < 2e-5, "d {d}, s {s}: moved by {moved}");
    }
}

#[test]
fn the_likelihood_never_falls_and_acceleration_pays() {
    let mut saved = 0;
    for seed in 1..6 {
        let observed = Observed::new(sparse_counts(60, 1500, seed)).unwrap();
        let begin = Stream(seed + 50).factors(60, 4);
        for prior in [0.0, 0.5] {
            let run = |accelerate| {
                let settings = LikelihoodSettings { prior, max_passes: 5000, tolerance: 1e-9, accelerate };
                likelihood(&observed, &begin, &settings).unwrap()
            };
            let (plain, fast) = (run(false), run(true));
            for refit in [&plain, &fast] {
                assert!(refit.converged);
                assert!(refit.history.windows(2).all(|w| w[1] >= w[0] - 1e-12), "seed {seed}: {:?}", refit.history);
                for i in 0..60 {
                    assert!((refit.factors.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12);
                }
                for k in 0..4 {
                    assert!((refit.factors.v.column(k).iter().sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
            saved += usize::from(2 * fast.passes < plain.passes && fast.penalised > plain.penalised - 1e-4);
        }
    }
    assert!(saved >= 8, "acceleration helped in {saved} of 10 runs only");
}

#[test]
fn the_refit_is_the_same_for_any_number_of_threads() {
    // More than one block of rows, or the threads would have nothing to share.
    let counts = sparse_counts(1700, 30_000, 9);
    let begin = Stream(4).factors(1700, 6);
    let settings = LikelihoodSettings { max_passes: 12, ..LikelihoodSettings::default() };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let observed = Observed::new(counts.clone()).unwrap();
            let refit = likelihood(&observed, &begin, &settings).unwrap();
            let s = score(Model::LowRank(&refit.factors), &counts, &counts, Smoothing::default()).unwrap();
            let chain = Chain::estimate(&Counts::from_csr(StateIndex::numbered(1700), counts.clone()).unwrap(), &by_arrivals()).unwrap();
            let squares = least_squares(&problem(&chain, 1.0), &Stream(4).factors(chain.states(), 6), 1e-6, 10);
            (refit, s, squares)
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(8));
}

fn naive_score(p: &Mat, training: &Csr, held_out: &Csr, e: f64) -> Score {
    let (d, n, q) = (training.rows(), dense(training), dense(held_out));
    let all: f64 = n.as_slice().iter().sum();
    let marginal: Vec<f64> = (0..d).map(|j| (n.column(j).iter().sum::<f64>() + 1.0) / (all + d as f64)).collect();
    let total: f64 = q.as_slice().iter().sum();
    let (mut log, mut error, mut norm) = (0.0, 0.0, 0.0);
    for i in 0..d {
        let leaving: f64 = q.row(i).iter().sum();
        for j in 0..d {
            if q[(i, j)] > 0.0 {
                log += q[(i, j)] * ((1.0 - e) * p[(i, j)] + e * marginal[j]).ln();
            }
            if leaving > 0.0 {
                error += (leaving / total * (q[(i, j)] / leaving - p[(i, j)])).powi(2);
                norm += (leaving / total * q[(i, j)] / leaving).powi(2);
            }
        }
    }
    Score { log_likelihood: log / total, squared_error: error / norm, transitions: total }
}

#[test]
fn scores_equal_a_dense_computation() {
    let d = 30;
    let (training, held_out) = (sparse_counts(d, 400, 1), sparse_counts(d, 90, 2));
    let x = Stream(8).factors(d, 4);
    let n = dense(&training);
    let all: f64 = n.as_slice().iter().sum();
    let marginal: Vec<f64> = (0..d).map(|j| (n.column(j).iter().sum::<f64>() + 1.0) / (all + d as f64)).collect();
    let empirical = |c: f64| {
        Mat::from_fn(d, d, |i, j| {
            let leaving: f64 = n.row(i).iter().sum();
            if leaving + c > 0.0 { (n[(i, j)] + c * marginal[j]) / (leaving + c) } else { marginal[j] }
        })
    };
    let models = [
        (Model::LowRank(&x), outer(&x.u, &x.v)),
        (Model::Empirical { pseudo: 0.0 }, empirical(0.0)),
        (Model::Empirical { pseudo: 2.5 }, empirical(2.5)),
        (Model::Independent, Mat::from_fn(d, d, |_, j| marginal[j])),
    ];
    for (model, p) in models {
        for e in [1e-4, 1e-2, 1.0] {
            let (a, b) = (score(model, &training, &held_out, Smoothing { share: e }).unwrap(), naive_score(&p, &training, &held_out, e));
            assert!((a.log_likelihood - b.log_likelihood).abs() < 1e-12 * b.log_likelihood.abs(), "{model:?} {a:?} {b:?}");
            assert!((a.squared_error - b.squared_error).abs() < 1e-12 * b.squared_error.abs(), "{model:?} {a:?} {b:?}");
            assert_eq!(a.transitions, b.transitions);
        }
    }
    assert!(score(Model::Independent, &training, &held_out, Smoothing { share: 0.0 }).is_err());
}

#[test]
fn from_the_spectral_start_both_refits_come_near_the_truth() {
    let truth = planted(150, 4, 3).unwrap();
    let counts = truth.sample_counts(10 * 150 * 150, 3).unwrap();
    let chain = Chain::estimate(&counts, &by_arrivals()).unwrap();
    let problem = problem(&chain, 1.0);
    let begin = start::spectral(&start::spectral_basis(&problem, 8, 1), 4).unwrap();
    let exact = truth.chain().unwrap();
    let error = |x: &Factors| errors::relative_recovery_error(chain.weights(), x, exact.p());
    let squares = least_squares(&problem, &begin, 1e-7, 500);
    assert!(squares.converged);
    let settings = LikelihoodSettings { max_passes: 60, ..LikelihoodSettings::default() };
    let refit = likelihood(&Observed::new(counts.csr().clone()).unwrap(), &squares.factors, &settings).unwrap();
    let sampling = errors::relative_sampling_error(chain.weights(), chain.p(), exact.p());
    // r d (d - 1 + ...) parameters for d^2 numbers: about 2 r / d of the sampling error is what the best fit of rank r can leave.
    assert!(error(&squares.factors) < 0.15 * sampling, "{} {}", error(&squares.factors), sampling);
    assert!(error(&refit.factors) < error(&squares.factors), "{} {}", error(&refit.factors), error(&squares.factors));
}

#[test]
fn of_two_starts_the_higher_is_kept_in_the_order_of_the_factors_given() {
    let d = 150;
    let truth = planted(d, 4, 3).unwrap();
    let counts = truth.sample_counts(10 * (d * d) as u64, 3).unwrap().csr().clone();
    let observed = Observed::new(counts.clone()).unwrap();
    let settings = LikelihoodSettings { prior: 0.5, max_passes: 200, tolerance: 1e-9, accelerate: true };
    // Two columns that are alike stay alike: from here the likelihood cannot reach its height.
    let good = likelihood_best_start(&observed, Starts::new(&Stream(5).factors(d, 4), 4, 1), &settings, |_, _| true).unwrap().fit.factors;
    let merged = |m: &Mat| Mat::from_fn(d, 4, |i, k| m[(i, [2, 0, 3, 3][k])]);
    let poor = Factors { u: Mat::from_fn(d, 4, |i, k| if k < 2 { 1.0 } else { 0.5 } * merged(&good.u)[(i, k)]), v: merged(&good.v) };
    let mut told = 0;
    let found = likelihood_best_start(&observed, Starts::new(&poor, 4, 1), &settings, |_, _| {
        told += 1;
        true
    })
    .unwrap();
    assert_eq!(found.start, RefitStart::Spectral);
    assert!(found.fit.log_likelihood > likelihood(&observed, &poor, &settings).unwrap().log_likelihood + 1e-3);
    assert!(told > 0 && found.tried.len() == 2 && found.tried[1].comparable > found.tried[0].comparable);
    // The columns that the poor start has come first, in its order.
    for (k, column) in [(0, 2), (1, 0)] {
        let overlap = |l: usize| (0..d).map(|i| found.fit.factors.u[(i, l)] * good.u[(i, column)]).sum::<f64>();
        assert!((0..4).all(|l| l == k || overlap(l) < overlap(k)), "column {k}");
    }

    // What is compared, written out: the log-likelihood less the divergences from the prior's laws, but for what all starts share.
    let law = marginal_law(&counts);
    let entropy: f64 = law.iter().map(|m| m * m.ln()).sum();
    let by_hand = |start: &Factors| {
        let (a, fit) = (mass_of(&observed, start), likelihood(&observed, start, &settings).unwrap());
        let x = &fit.factors;
        let kl_u: f64 = (0..d).map(|i| (0..4).map(|k| a[k] * (a[k] / x.u[(i, k)]).ln()).sum::<f64>()).sum();
        let kl_v: f64 = (0..4).map(|k| a[k] * (0..d).map(|j| law[j] * (law[j] / x.v[(j, k)]).ln()).sum::<f64>()).sum();
        let n = observed.transitions();
        fit.log_likelihood - 0.5 * (kl_u + d as f64 * kl_v) / n + 0.5 * d as f64 * entropy / n
    };
    // The poor one was given up: to the end it would have been higher, and still lower than the other.
    let poor_to_the_end = by_hand(&poor);
    assert!(
        found.tried[0].comparable <= poor_to_the_end && poor_to_the_end < found.tried[1].comparable,
        "{:?} {poor_to_the_end}",
        found.tried
    );

    // Given the best already, nothing is lost and no column moves.
    let again = likelihood_best_start(&observed, Starts::new(&good, 4, 1), &settings, |_, _| true).unwrap();
    assert!(again.tried.iter().all(|t| t.comparable <= again.tried.iter().find(|t| t.start == again.start).unwrap().comparable));
    assert!((again.tried[0].comparable - by_hand(&good)).abs() < 1e-10, "{} {}", again.tried[0].comparable, by_hand(&good));
    assert!(largest_difference(&again.fit.factors.u, &good.u) < 0.05);

    // Factors of another rank are no start: the spectral one alone, largest meta-state first.
    let few = Factors { u: Mat::from_fn(d, 1, |_, _| 1.0), v: Mat::from_fn(d, 1, |j, _| law[j]) };
    let alone = likelihood_best_start(&observed, Starts::new(&few, 4, 1), &settings, |_, _| true).unwrap();
    assert_eq!((alone.start, alone.tried.len(), alone.fit.factors.rank()), (RefitStart::Spectral, 1, 4));
    assert!((alone.fit.log_likelihood - found.fit.log_likelihood).abs() < 1e-4);
    let mass = alone.fit.factors.mass(observed.departure_shares());
    assert!(mass.windows(2).all(|w| w[0] >= w[1]), "{mass:?}");
    let one = likelihood_best_start(&observed, Starts::new(&good, 1, 1), &settings, |_, _| true).unwrap();
    assert_eq!(one.fit.factors.rank(), 1);
}
