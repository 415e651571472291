use metastate::simulate::planted_groups;
use metastate::workspace::{StationaryOptions, stationary_law};
use metastate::{
    Chain, Connected, CountMode, Counts, Csr, DenseOperator, Error, Estimate, Given, LedgerUnit, LowRankOperator, Mat, Operator,
    SparseOperator, StateIndex, WeightPower, WeightsBy,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{assert_close, mat, with_threads};

const ARRIVALS: Estimate = Estimate { weights_by: WeightsBy::Arrivals, weight_power: WeightPower::One, connected: Connected::All };

fn counts(d: usize, triplets: &[(u32, u32, f64)]) -> Counts {
    Counts::from_triplets(StateIndex::numbered(d), triplets).unwrap()
}

/// All entries of P.
fn p_dense(p: &dyn Operator) -> Mat {
    let d = p.rows();
    let mut m = Mat::zeros(d, d);
    (0..d).for_each(|i| p.row(i).for_each(d, |j, x| m[(i, j)] = x));
    m
}

fn labels(chain: &Chain) -> Vec<String> {
    chain.index().labels().map(|l| l.to_string()).collect()
}

fn left_out(chain: &Chain, reason: &str) -> u64 {
    chain.ledger().get(reason, LedgerUnit::States).map_or(0, |e| e.count)
}

#[test]
fn the_estimates_of_the_paper_by_hand() {
    // 0 1 1 2 0 1: n = 5 transitions. (2.1): arrivals 1, 3, 1. (2.2): rows [0 1 0], [0 1/2 1/2], [1 0 0].
    let t = [0, 1, 1, 2, 0, 1].map(Some);
    let c = Counts::from_trajectories(StateIndex::numbered(3), [t], 1, CountMode::Sliding).unwrap();
    let chain = Chain::estimate(&c, &ARRIVALS).unwrap();
    assert_eq!(p_dense(chain.p()), mat(&[&[0.0, 1.0, 0.0], &[0.0, 0.5, 0.5], &[1.0, 0.0, 0.0]]));
    assert_close(chain.xi(), &[0.2, 0.6, 0.2], 1e-15);
    assert_eq!(chain.weights(), chain.xi());
    assert_eq!((chain.states(), chain.transitions(), chain.nonzeros()), (3, 5.0, 4));
    assert_eq!(chain.departures(), [2.0, 2.0, 1.0]);
    let chain = Chain::estimate(&c, &Estimate::default()).unwrap();
    assert_close(chain.xi(), &[0.4, 0.4, 0.2], 1e-15);
    let half = chain.clone().with_weight_power(WeightPower::Half);
    assert_close(half.weights(), &[0.4f64.sqrt(), 0.4f64.sqrt(), 0.2f64.sqrt()], 1e-15);
    assert_eq!(half.xi(), chain.xi());
    let zero = Chain::estimate(&c, &Estimate { weight_power: WeightPower::Zero, ..Estimate::default() }).unwrap();
    assert_eq!(zero.weights(), [1.0; 3]);
    assert_eq!(zero.weight_power(), WeightPower::Zero);
}

#[test]
fn by_arrivals_a_state_never_left_has_the_uniform_row() {
    // 0 <-> 1, then into 2 for good. State 3 is left once and never reached; 4 is reached from 3 only; 5 is never seen.
    let c = counts(6, &[(0, 1, 2.0), (1, 0, 2.0), (1, 2, 1.0), (3, 0, 1.0), (3, 4, 4.0)]);
    let chain = Chain::estimate(&c, &ARRIVALS).unwrap();
    assert_eq!(labels(&chain), ["0", "1", "2"]);
    let third = 1.0 / 3.0;
    assert_close(
        p_dense(chain.p()).as_slice(),
        mat(&[&[0.0, 1.0, 0.0], &[2.0 * third, 0.0, third], &[third, third, third]]).as_slice(),
        1e-15,
    );
    assert_close(chain.xi(), &[0.4, 0.4, 0.2], 1e-15);
    assert_eq!(chain.departures(), [2.0, 3.0, 0.0]);
    assert_eq!(left_out(&chain, "never-reached"), 1);
    assert_eq!(left_out(&chain, "reached-only-from-left-out-states"), 1);
    assert_eq!(left_out(&chain, "never-seen"), 1);
    let lost = chain.ledger().get("from-or-to-a-left-out-state", LedgerUnit::Transitions).unwrap();
    assert_eq!((lost.count, lost.weight), (5, 5.0));
}

#[test]
fn by_departures_a_state_never_left_goes_and_takes_others_with_it() {
    // 3 is never left; 2 leads to 3 only; 4 is never seen. Row 1 loses its transition to 2.
    let c = counts(5, &[(0, 1, 3.0), (1, 0, 1.0), (1, 1, 1.0), (1, 2, 2.0), (2, 3, 5.0)]);
    for power in [WeightPower::One, WeightPower::Half, WeightPower::Zero] {
        let chain = Chain::estimate(&c, &Estimate { weight_power: power, ..Estimate::default() }).unwrap();
        assert_eq!(labels(&chain), ["0", "1"]);
        assert_eq!(p_dense(chain.p()), mat(&[&[0.0, 1.0], &[0.5, 0.5]]));
        assert_close(chain.xi(), &[0.6, 0.4], 1e-15);
        assert_eq!(chain.transitions(), 5.0);
        assert_eq!(chain.kept(), [0, 1]);
        assert_eq!(chain.counts().unwrap().triplets().collect::<Vec<_>>(), [(0, 1, 3.0), (1, 0, 1.0), (1, 1, 1.0)]);
        assert_eq!(left_out(&chain, "never-left"), 1);
        assert_eq!(left_out(&chain, "leads-only-to-left-out-states"), 1);
        assert_eq!(left_out(&chain, "never-seen"), 1);
        assert_eq!(chain.ledger().get("from-or-to-a-left-out-state", LedgerUnit::Transitions).unwrap().count, 7);
        assert_eq!(chain.ledger().get("never-left", LedgerUnit::States).unwrap().examples, ["3"]);
    }
}

#[test]
fn leaving_out_agrees_with_repeating_the_rule() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for round in 0..300 {
        let d = rng.random_range(2..14u32);
        let by = if round % 2 == 0 { WeightsBy::Departures } else { WeightsBy::Arrivals };
        let triplets: Vec<_> = (0..rng.random_range(1..2 * d)).map(|_| (rng.random_range(0..d), rng.random_range(0..d), 1.0)).collect();
        let mut keep: Vec<u32> = (0..d).collect();
        loop {
            let inside = |&&(i, j, _): &&(u32, u32, f64)| keep.contains(&i) && keep.contains(&j);
            let alive: Vec<_> = triplets.iter().filter(inside).collect();
            let weighed = |s: &u32| alive.iter().any(|&&(i, j, _)| if by == WeightsBy::Departures { i == *s } else { j == *s });
            let next: Vec<u32> = keep.iter().copied().filter(weighed).collect();
            if next == keep {
                break;
            }
            keep = next;
        }
        let estimated = Chain::estimate(&counts(d as usize, &triplets), &Estimate { weights_by: by, ..Estimate::default() });
        match (keep.len(), estimated) {
            (0, result) => assert!(matches!(result, Err(Error::Empty { .. }))),
            (1, result) => assert!(matches!(result, Err(Error::OneState { .. }))),
            (_, result) => {
                let chain = result.unwrap();
                assert_eq!(labels(&chain), keep.iter().map(u32::to_string).collect::<Vec<_>>());
                assert!(chain.xi().iter().all(|x| *x > 0.0));
                assert!((chain.xi().iter().sum::<f64>() - 1.0).abs() < 1e-14);
                let p = p_dense(chain.p());
                (0..keep.len()).for_each(|i| assert!((p.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-14));
            }
        }
    }
}

#[test]
fn no_transitions_and_one_state_are_errors() {
    assert!(matches!(Chain::estimate(&counts(3, &[]), &Estimate::default()), Err(Error::Empty { .. })));
    let one = Chain::estimate(&counts(3, &[(1, 1, 4.0), (1, 2, 1.0)]), &Estimate::default());
    assert!(matches!(one, Err(Error::OneState { label }) if label == "1"));
}

#[test]
fn given_matrices_are_checked() {
    let dense = |rows: &[&[f64]]| Chain::from_dense(mat(rows), Given::default()).unwrap_err();
    assert!(matches!(dense(&[&[0.5, 0.5], &[f64::NAN, 1.0]]), Error::NotFinite { row: 1, column: 0, .. }));
    assert!(matches!(dense(&[&[0.5, 0.5], &[1.5, -0.5]]), Error::Negative { row: 1, column: 1, .. }));
    assert!(matches!(dense(&[&[0.5, 0.5], &[0.5, 0.5001]]), Error::RowSum { row: 1, .. }));
    assert!(matches!(dense(&[&[1.0]]), Error::OneState { .. }));
    assert!(matches!(dense(&[&[0.5, 0.5]]), Error::SizeMismatch { .. }));
    assert!(matches!(Chain::from_dense(Mat::zeros(0, 0), Given::default()), Err(Error::Empty { .. })));
    let sparse = |t: &[(u32, u32, f64)]| Chain::from_sparse(Csr::from_triplets(2, 2, t).unwrap(), Given::default()).unwrap_err();
    assert!(matches!(sparse(&[(0, 0, 1.0)]), Error::RowSum { row: 1, sum: 0.0 }));
    assert!(matches!(sparse(&[(0, 0, 1.0), (1, 0, f64::INFINITY)]), Error::NotFinite { row: 1, column: 0, .. }));
    assert!(matches!(sparse(&[(0, 0, 2.0), (0, 1, -1.0), (1, 0, 1.0)]), Error::Negative { row: 0, column: 1, .. }));
    let (u, v) = (mat(&[&[1.0, 0.0], &[0.0, 1.0]]), mat(&[&[0.5, 0.2], &[0.5, 0.8]]));
    let low = |u: &Mat, v: &Mat| Chain::from_low_rank(u.clone(), v.clone(), Given::default());
    assert!(low(&u, &v).is_ok());
    assert!(matches!(low(&mat(&[&[2.0, -1.0], &[0.0, 1.0]]), &v), Err(Error::Negative { what: "the left factor", .. })));
    assert!(matches!(low(&u, &mat(&[&[0.5, 0.2], &[0.5, 0.9]])), Err(Error::RowSum { row: 1, .. })));
    assert!(matches!(low(&u, &mat(&[&[0.5], &[0.5]])), Err(Error::SizeMismatch { .. })));
    assert!(matches!(low(&mat(&[&[1.0, 0.0]]), &v), Err(Error::SizeMismatch { .. })));
}

#[test]
fn given_weights_are_checked() {
    let p = || mat(&[&[0.5, 0.5], &[0.25, 0.75]]);
    let with = |xi: &[f64]| Chain::from_dense(p(), Given::weights(xi.to_vec()));
    assert_eq!(with(&[0.25, 0.75]).unwrap().xi(), [0.25, 0.75]);
    assert_eq!(with(&[1.0, 3.0]).unwrap().xi(), [0.25, 0.75]);
    assert!(matches!(with(&[1.0]), Err(Error::SizeMismatch { expected: 2, found: 1, .. })));
    assert!(matches!(with(&[1.0, f64::NAN]), Err(Error::NotFinite { row: 1, .. })));
    assert!(matches!(with(&[1.0, -1.0]), Err(Error::Negative { row: 1, .. })));
    assert!(matches!(with(&[0.0, 0.0]), Err(Error::Setting { .. })));
    assert!(matches!(with(&[0.0, 1.0]), Err(Error::OneState { label }) if label == "1"));
    let labelled = Given { index: Some(StateIndex::numbered(3)), ..Given::default() };
    assert!(matches!(Chain::from_dense(p(), labelled), Err(Error::SizeMismatch { expected: 2, found: 3, .. })));
}

#[test]
fn rows_off_by_rounding_are_divided_and_exact_ones_kept() {
    let chain = Chain::from_dense(mat(&[&[0.3, 0.7], &[0.5, 0.5 + 1e-9]]), Given::default()).unwrap();
    let p = p_dense(chain.p());
    assert_eq!(p.row(0), [0.3, 0.7]);
    assert!((p.row(1).iter().sum::<f64>() - 1.0).abs() < 1e-15);
}

#[test]
fn states_without_weight_are_left_out_alike_in_all_three_forms() {
    // P = U V^T; state 3 gets weight zero. State 2 leads to state 3 only, so it goes too.
    let u = mat(&[&[0.5, 0.5, 0.0], &[0.2, 0.7, 0.1], &[0.0, 0.0, 1.0], &[1.0, 0.0, 0.0]]);
    let v = mat(&[&[0.3, 0.4, 0.0], &[0.6, 0.5, 0.0], &[0.1, 0.1, 0.0], &[0.0, 0.0, 1.0]]);
    let p = p_dense(&LowRankOperator::new(u.clone(), v.clone()).unwrap());
    let triplets: Vec<(u32, u32, f64)> = (0..16).map(|k| (k / 4, k % 4, p[(k as usize / 4, k as usize % 4)])).collect();
    let given = || Given::weights(vec![0.4, 0.4, 0.2, 0.0]);
    let dense = Chain::from_dense(p.clone(), given()).unwrap();
    let sparse = Chain::from_sparse(Csr::from_triplets(4, 4, &triplets).unwrap(), given()).unwrap();
    let low = Chain::from_low_rank(u, v, given()).unwrap();
    for chain in [&dense, &sparse, &low] {
        assert_eq!(labels(chain), ["0", "1"]);
        assert_close(chain.xi(), &[0.5, 0.5], 1e-15);
        assert_eq!((chain.kept(), chain.counts()), (&[0, 1][..], None));
        assert_eq!(left_out(chain, "weight-zero"), 1);
        assert_eq!(left_out(chain, "leads-only-to-left-out-states"), 1);
        let q = p_dense(chain.p());
        let expected = [[0.35 / 0.9, 0.55 / 0.9], [0.34 / 0.81, 0.47 / 0.81]].concat();
        assert_close(q.as_slice(), &expected, 1e-15);
    }
}

/// A random chain with every entry positive.
fn random_chain(d: usize, seed: u64) -> Mat {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut p = Mat::from_fn(d, d, |_, _| rng.random_range(0.01..1.0));
    for i in 0..d {
        let sum: f64 = p.row(i).iter().sum();
        p.row_mut(i).iter_mut().for_each(|x| *x /= sum);
    }
    p
}

/// `|| xi^T P - xi ||_1`, by its definition.
fn residual(p: &Mat, xi: &[f64]) -> f64 {
    let moved = |j: usize| (0..p.rows()).map(|i| xi[i] * p[(i, j)]).sum::<f64>();
    (0..p.rows()).map(|j| (moved(j) - xi[j]).abs()).sum()
}

#[test]
fn stationary_laws_by_elimination_and_by_iteration() {
    for d in [2, 5, 60, 500, 1600] {
        let p = random_chain(d, d as u64);
        let law = stationary_law(&DenseOperator::new(p.clone()), &StationaryOptions::default());
        assert!(residual(&p, &law.xi) < 5e-14, "{d}: {}", residual(&p, &law.xi));
        assert!((law.residual - residual(&p, &law.xi)).abs() < 1e-13);
        assert_eq!(law.iterations > 0, d == 1600);
        assert_eq!(law.closed_classes, 1);
        assert!((law.xi.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
}

#[test]
fn a_nearly_uncoupled_chain_keeps_its_relative_accuracy() {
    // 0 <-> 1 and 2 <-> 3, joined by 1e-12 one way and 3e-12 back: the first pair holds 3/4 of the mass.
    let (a, b) = (1e-12, 3e-12);
    let p = mat(&[&[0.5, 0.5, 0.0, 0.0], &[0.5, 0.5 - a, a, 0.0], &[0.0, b, 0.5 - b, 0.5], &[0.0, 0.0, 0.5, 0.5]]);
    let law = stationary_law(&DenseOperator::new(p), &StationaryOptions::default());
    assert_close(&law.xi, &[0.375, 0.375, 0.125, 0.125], 1e-13);
}

#[test]
fn transient_states_have_no_stationary_share_and_are_kept_all_the_same() {
    // 0 leads to the periodic pair {1, 2} with probability 1/4 and to the absorbing 3 with 3/4. Uniform start.
    let rows: [&[f64]; 4] = [&[0.2, 0.2, 0.0, 0.6], &[0.0, 0.0, 1.0, 0.0], &[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 0.0, 1.0]];
    let expected = [0.0, 0.28125, 0.28125, 0.4375];
    let law = stationary_law(&DenseOperator::new(mat(&rows)), &StationaryOptions::default());
    assert_close(&law.xi, &expected, 1e-15);
    assert_eq!((law.xi[0], law.closed_classes), (0.0, 2));
    let chain = Chain::from_dense(mat(&rows), Given::default()).unwrap();
    assert_eq!(labels(&chain), ["0", "1", "2", "3"]);
    assert_close(chain.xi(), &[0.25; 4], 1e-16);
    assert!(chain.ledger().is_empty() && chain.stationary_residual().is_none());
    // The same shape, too large for elimination: one transient state before a well mixed class of 1998 and a periodic pair.
    let d = 2001u32;
    let mut t = vec![(0, 1, 0.5), (0, 1999, 0.5)];
    for i in 0..1998 {
        t.extend([(i + 1, (i + 1) % 1998 + 1, 0.25), (i + 1, (7 * i + 3) % 1998 + 1, 0.5), (i + 1, (11 * i + 8) % 1998 + 1, 0.25)]);
    }
    t.extend([(1999, 2000, 1.0), (2000, 1999, 1.0)]);
    let p = SparseOperator::new(Csr::from_triplets(d as usize, d as usize, &t).unwrap(), vec![]).unwrap();
    let law = stationary_law(&p, &StationaryOptions::default());
    assert!(law.iterations > 0);
    assert_eq!((law.xi[0], law.closed_classes), (0.0, 2));
    assert!(law.residual < 1e-13);
    assert!((law.xi[1999] + law.xi[2000] - 2.5 / 2001.0).abs() < 1e-12);
}

#[test]
fn a_slow_ring_is_solved_by_elimination() {
    // A ring mixes in about d^2 steps; iteration would still be far off.
    let t: Vec<(u32, u32, f64)> = (0..900).map(|i| (i, (i + 1) % 900, 1.0)).collect();
    let p = SparseOperator::new(Csr::from_triplets(900, 900, &t).unwrap(), vec![]).unwrap();
    let law = stationary_law(&p, &StationaryOptions::default());
    assert_close(&law.xi, &[1.0 / 900.0; 900], 1e-16);
}

#[test]
fn the_latent_chain_gives_the_same_law() {
    // Columns of R need not sum to one, and one of them is not used at all.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let (d, r) = (40, 4);
    let right = Mat::from_fn(d, r, |_, k| if k == 2 { 0.0 } else { rng.random_range(0.0..3.0) });
    let mut left = Mat::from_fn(d, r, |_, _| rng.random_range(0.0..1.0));
    let sums: Vec<f64> = (0..r).map(|k| right.column(k).iter().sum()).collect();
    for i in 0..d {
        let sum: f64 = left.row(i).iter().zip(&sums).map(|(l, s)| l * s).sum();
        left.row_mut(i).iter_mut().for_each(|x| *x /= sum);
    }
    let p = LowRankOperator::new(left, right).unwrap();
    let low = stationary_law(&p, &StationaryOptions::default());
    let full = stationary_law(&DenseOperator::new(p_dense(&p)), &StationaryOptions::default());
    assert_close(&low.xi, &full.xi, 1e-15);
    assert!(low.residual < 1e-14);
}

#[test]
fn estimating_and_iterating_do_not_depend_on_threads() {
    let counts = planted_groups(3000, 5, 20, 4).unwrap().counts;
    let law = with_threads(|| {
        let chain = Chain::estimate(&counts, &Estimate::default()).unwrap();
        let law = stationary_law(chain.p(), &StationaryOptions::default());
        (law, chain.xi().to_vec(), p_dense(chain.p()))
    });
    assert!(law.0.residual < 1e-13);
}
