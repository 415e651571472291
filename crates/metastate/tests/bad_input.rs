//! Bad input gives a typed error whose sentence names the value met; it never panics.

mod common;

use common::{Stream, exact_dense, outer};
use metastate::simulate::planted;
use metastate::solve::{Factors, LocalStop, Problem, Redundancy, Settings, Silent, Start, StopRule, resume, solve};
use metastate::{Chain, Counts, Csr, DenseOperator, Error, Estimate, Given, Mat, StateIndex, WeightsBy};

/// The code of the error, and that its sentence is one sentence which names `value`.
fn refused<T: std::fmt::Debug>(result: metastate::Result<T>, code: &str, value: &str) -> Error {
    let error = result.expect_err(&format!("{code} ({value}) was let through"));
    let sentence = error.to_string();
    assert_eq!(error.code(), code, "{sentence}");
    assert!(sentence.contains(value), "{sentence:?} does not name {value:?}");
    assert!(!sentence.contains('\n') && !sentence.contains(". ") && !sentence.ends_with('.'), "{sentence:?} is not one sentence");
    error
}

fn from_triplets(d: usize, triplets: &[(u32, u32, f64)]) -> metastate::Result<Chain> {
    Chain::estimate(&Counts::from_triplets(StateIndex::numbered(d), triplets)?, &Estimate::default())
}

fn dense(rows: &[&[f64]]) -> Mat {
    Mat::from_vec(rows.len(), rows.first().map_or(0, |r| r.len()), rows.concat()).unwrap()
}

#[test]
fn counts() {
    refused(from_triplets(3, &[(0, 1, 1.0), (2, 1, f64::NAN)]), "E-DATA-NOT-FINITE", "NaN at row 2, column 1");
    refused(from_triplets(3, &[(0, 1, f64::INFINITY)]), "E-DATA-NOT-FINITE", "inf at row 0, column 1");
    refused(from_triplets(3, &[(0, 1, 1.0), (1, 2, -4.5)]), "E-DATA-NEGATIVE", "-4.5 at row 1, column 2");
    refused(from_triplets(3, &[(0, 1, f64::MAX), (1, 0, f64::MAX)]), "E-DATA-NOT-FINITE", "inf");
    refused(from_triplets(3, &[(0, 7, 1.0)]), "E-DATA-INDEX", "7");
    refused(from_triplets(3, &[]), "E-DATA-EMPTY", "empty");
    refused(from_triplets(0, &[]), "E-DATA-EMPTY", "empty");
    refused(from_triplets(3, &[(0, 1, 0.0)]), "E-DATA-EMPTY", "empty");
    refused(from_triplets(1, &[(0, 0, 5.0)]), "E-DATA-ONE-STATE", "(0)");
    // Two states, but only one of them is ever left.
    refused(from_triplets(2, &[(0, 0, 5.0), (0, 1, 1.0)]), "E-DATA-ONE-STATE", "(0)");
    refused(from_triplets(2, &[(0, 1, 1.0)]), "E-DATA-EMPTY", "empty");
    let csr = Csr::from_triplets(2, 2, &[(0, 1, -1.0)]).unwrap();
    refused(Counts::from_csr(StateIndex::numbered(2), csr.clone()), "E-DATA-NEGATIVE", "-1");
    refused(Counts::from_csr(StateIndex::numbered(3), csr), "E-DATA-NEGATIVE", "-1");
    let csr = Csr::from_triplets(2, 2, &[(0, 1, 1.0)]).unwrap();
    refused(Counts::from_csr(StateIndex::numbered(3), csr), "E-DATA-SIZE", "2");
    let arrivals = Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() };
    let empty = Counts::from_triplets(StateIndex::numbered(4), &[]).unwrap();
    refused(Chain::estimate(&empty, &arrivals), "E-DATA-EMPTY", "empty");
}

#[test]
fn matrices_of_probabilities() {
    let given = |rows: &[&[f64]]| Chain::from_dense(dense(rows), Given::default());
    refused(given(&[&[0.5, 0.5], &[0.25, 0.5]]), "E-DATA-ROW-SUM", "row 1 of the transition matrix sums to 0.75");
    refused(given(&[&[0.5, 0.6], &[0.5, 0.5]]), "E-DATA-ROW-SUM", "1.1");
    refused(given(&[&[0.5, 0.5], &[0.0, 0.0]]), "E-DATA-ROW-SUM", "sums to 0");
    refused(given(&[&[0.5, 0.5], &[f64::NAN, 0.5]]), "E-DATA-NOT-FINITE", "NaN at row 1, column 0");
    refused(given(&[&[0.5, f64::NEG_INFINITY], &[0.5, 0.5]]), "E-DATA-NOT-FINITE", "-inf at row 0, column 1");
    refused(given(&[&[1.5, -0.5], &[0.5, 0.5]]), "E-DATA-NEGATIVE", "-0.5 at row 0, column 1");
    refused(given(&[&[0.5, 0.25, 0.25], &[0.5, 0.25, 0.25]]), "E-DATA-SIZE", "3");
    refused(given(&[]), "E-DATA-EMPTY", "empty");
    refused(given(&[&[1.0]]), "E-DATA-ONE-STATE", "(0)");

    let sparse = |triplets: &[(u32, u32, f64)]| Chain::from_sparse(Csr::from_triplets(2, 2, triplets).unwrap(), Given::default());
    refused(sparse(&[(0, 0, 1.0)]), "E-DATA-ROW-SUM", "row 1");
    refused(sparse(&[(0, 0, 1.0), (1, 0, f64::NAN)]), "E-DATA-NOT-FINITE", "NaN");
    refused(sparse(&[(0, 0, 2.0), (0, 1, -1.0), (1, 0, 1.0)]), "E-DATA-NEGATIVE", "-1");

    let x = Stream(1).factors(5, 2);
    let low = |u: &Mat, v: &Mat| Chain::from_low_rank(u.clone(), v.clone(), Given::default());
    refused(low(&x.u, &Mat::zeros(5, 2)), "E-DATA-ROW-SUM", "sums to 0");
    refused(low(&x.u, &Stream(2).factors(5, 3).v), "E-DATA-SIZE", "3");
    refused(low(&x.u, &Stream(2).factors(4, 2).v), "E-DATA-SIZE", "4");
    refused(low(&Mat::from_fn(5, 2, |_, _| f64::NAN), &x.v), "E-DATA-NOT-FINITE", "NaN");
}

#[test]
fn weights() {
    let p = outer(&Stream(3).factors(4, 2).u, &Stream(3).factors(4, 2).v);
    let with = |xi: &[f64]| Chain::from_dense(p.clone(), Given::weights(xi.to_vec()));
    assert!(with(&[1.0; 4]).is_ok());
    refused(with(&[1.0; 3]), "E-DATA-SIZE", "3");
    refused(with(&[]), "E-DATA-SIZE", "0");
    refused(with(&[0.5, 0.5, -0.25, 0.25]), "E-DATA-NEGATIVE", "-0.25");
    refused(with(&[0.5, f64::NAN, 0.25, 0.25]), "E-DATA-NOT-FINITE", "NaN");
    refused(with(&[0.0; 4]), "E-SETTING", "0");
    refused(with(&[f64::MAX; 4]), "E-SETTING", "inf");
    refused(with(&[0.0, 1.0, 0.0, 0.0]), "E-DATA-ONE-STATE", "(1)");

    let operator = DenseOperator::new(p);
    let problem = |xi: &[f64]| Problem::new(&operator, xi, 1.0).map(|p| p.lambda);
    assert!(problem(&[1.0; 4]).is_ok());
    refused(problem(&[1.0; 5]), "E-DATA-SIZE", "5");
    refused(problem(&[1.0, 1.0, -2.5, 1.0]), "E-SETTING", "-2.5");
    refused(problem(&[1.0, 0.0, 1.0, 1.0]), "E-SETTING", "0 for state 1");
    refused(problem(&[1.0, f64::NAN, 1.0, 1.0]), "E-SETTING", "NaN");
    refused(problem(&[1.0, f64::INFINITY, 1.0, 1.0]), "E-SETTING", "inf");
    for lambda in [0.0, -1e-3, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(Problem::new(&operator, &[1.0; 4], lambda).map(|p| p.lambda), "E-SETTING", &format!("lambda is {lambda}"));
    }
}

#[test]
fn settings() {
    let chain = exact_dense(12, 2, 4);
    let problem = common::scaled(&chain, 1e-2);
    let with = |settings: Settings| solve(&problem, &settings, &mut Silent).map(|s| s.rank());
    let usual = Settings::default();
    assert!(with(usual.clone()).is_ok());
    let refuse = |settings: Settings, value: &str| drop(refused(with(settings), "E-SETTING", value));
    for bad in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        let value = &bad.to_string();
        refuse(Settings { tolerance: bad, ..usual.clone() }, value);
        refuse(Settings { epsilon0: bad, ..usual.clone() }, value);
        refuse(Settings { stop: StopRule::Certificate { gap: bad }, ..usual.clone() }, value);
        refuse(Settings { stop: StopRule::Exact { tolerance: bad }, ..usual.clone() }, value);
        refuse(Settings { local_stop: LocalStop::Decrease { window: 30, decrease: bad }, ..usual.clone() }, value);
        let mut probable = usual.clone();
        probable.certificate.failure_probability = bad;
        refuse(probable, value);
    }
    for bad in [f64::NAN, f64::INFINITY, -0.1] {
        refuse(Settings { redundancy: Redundancy::Relative(bad), ..usual.clone() }, &bad.to_string());
        refuse(Settings { redundancy: Redundancy::Absolute(bad), ..usual.clone() }, &bad.to_string());
        refuse(Settings { append_decrease: bad, ..usual.clone() }, &bad.to_string());
    }
    refuse(Settings { redundancy: Redundancy::Relative(1.0), ..usual.clone() }, "1");
    refuse(Settings { max_rank: 0, ..usual.clone() }, "the largest rank is 0");
    refuse(Settings { start_rank: Some(0), ..usual.clone() }, "the rank at the start is 0");
    refuse(Settings { start_rank: Some(9), max_rank: 8, ..usual.clone() }, "the rank at the start is 9");
    refuse(Settings { append_at_once: 0, ..usual.clone() }, "0");
    refuse(Settings { max_sweeps: 0, ..usual.clone() }, "0");
    refuse(Settings { stop: StopRule::Early { directions: 0 }, ..usual.clone() }, "0");
    refuse(Settings { local_stop: LocalStop::Decrease { window: 0, decrease: 1e-3 }, ..usual.clone() }, "0");
}

#[test]
fn given_factors() {
    let chain = exact_dense(12, 2, 4);
    let problem = common::scaled(&chain, 1e-2);
    let start = |x: Factors| {
        let settings = Settings { start: Start::Given(Box::new(x)), ..Settings::default() };
        solve(&problem, &settings, &mut Silent).map(|s| s.rank())
    };
    let mut stream = Stream(5);
    let x = stream.factors(12, 3);
    assert!(start(x.clone()).is_ok());
    refused(start(stream.factors(11, 3)), "E-DATA-SIZE", "11");
    refused(start(Factors { v: stream.factors(13, 3).v, ..x.clone() }), "E-DATA-SIZE", "13");
    refused(start(Factors { v: stream.factors(12, 4).v, ..x.clone() }), "E-DATA-SIZE", "4");
    refused(start(Factors { u: Mat::zeros(12, 0), v: Mat::zeros(12, 0) }), "E-DATA-EMPTY", "empty");
    refused(start(Factors::default()), "E-DATA-SIZE", "0");
    let change = |f: &dyn Fn(&mut Factors)| {
        let mut y = x.clone();
        f(&mut y);
        y
    };
    refused(start(change(&|y| y.u[(3, 1)] = f64::NAN)), "E-DATA-NOT-FINITE", "NaN at row 3, column 1");
    refused(start(change(&|y| y.v[(3, 1)] = f64::INFINITY)), "E-DATA-NOT-FINITE", "inf at row 3, column 1");
    refused(start(change(&|y| y.v[(7, 2)] = -0.125)), "E-DATA-NEGATIVE", "-0.125 at row 7, column 2");
    refused(start(change(&|y| y.u.row_mut(4).fill(0.5))), "E-SETTING", "1.5 in row 4");
    refused(start(change(&|y| (0..12).for_each(|i| y.v[(i, 1)] = 0.25))), "E-SETTING", "3 in column 1");
}

#[test]
fn a_snapshot_of_another_problem_is_refused() {
    #[derive(Default)]
    struct Keep(Option<metastate::solve::Snapshot>);
    impl metastate::solve::Observer for Keep {
        fn safe_point(&mut self, snapshot: &metastate::solve::Snapshot) {
            self.0.get_or_insert_with(|| snapshot.clone());
        }
    }
    let (small, large) = (exact_dense(12, 2, 4), exact_dense(13, 2, 4));
    let mut keep = Keep::default();
    solve(&common::scaled(&small, 1e-2), &Settings::default(), &mut keep).unwrap();
    let snapshot = keep.0.unwrap();
    refused(resume(&common::scaled(&large, 1e-2), &Settings::default(), snapshot, &mut Silent).map(|s| s.rank()), "E-DATA-SIZE", "12");
}

#[test]
fn extreme_but_legal_input_is_no_reason_to_panic() {
    let chain = exact_dense(12, 2, 4);
    for lambda in [1e-300, 1e-12, 1e30, 1e300] {
        let solution = solve(&common::problem(&chain, lambda), &Settings { max_sweeps: 50, ..Settings::default() }, &mut Silent).unwrap();
        assert!(solution.factors.u.first_not_finite().is_none() && solution.factors.v.first_not_finite().is_none(), "{lambda:e}");
    }
    // Two states; more columns than states; a chain that never moves; one that moves in a ring.
    let tiny = Chain::from_dense(dense(&[&[0.9, 0.1], &[0.2, 0.8]]), Given::default()).unwrap();
    common::solved(&common::scaled(&tiny, 1e-2), &Settings { start_rank: Some(5), ..Settings::default() });
    let still = Mat::from_fn(6, 6, |i, j| if i == j { 1.0 } else { 0.0 });
    let still = Chain::from_dense(still, Given::weights(vec![1.0; 6])).unwrap();
    common::solved(&common::scaled(&still, 1e-2), &Settings::default());
    let ring = Mat::from_fn(6, 6, |i, j| if (i + 1) % 6 == j { 1.0 } else { 0.0 });
    common::solved(&common::scaled(&Chain::from_dense(ring, Given::default()).unwrap(), 1e-2), &Settings::default());
    assert!(matches!(planted(1, 1, 0), Err(Error::Setting { .. })));
}
