//! Rivals on an easy chain, and memberships of states that were not in the fit.

use metastate::aggregate::rivals::{Fitted, FittedModel, Hard, Method, RivalSettings, Training, fit};
use metastate::aggregate::{AssignBy, Assigner, Overlap};
use metastate::linalg::{Csr, Mat};
use metastate::simulate::city;
use metastate::solve::refit::{LikelihoodSettings, SpectralFits};
use metastate::solve::score::{Smoothing, score};
use metastate::solve::{Problem, Settings, Silent, Start, StopRule, lambda_max, solve};
use metastate::{Counts, Estimate, Folds, StateIndex, WeightPower};

const ZONES: usize = 4;

fn easy_city(trips: usize) -> (Counts, Vec<u32>) {
    let city = city(ZONES, 5).unwrap();
    let pairs = city.trips(trips, 2).unwrap().into_iter().map(|t| (t.from, t.to));
    (Counts::from_pairs(StateIndex::numbered(city.cells()), pairs).unwrap(), city.zone.clone())
}

fn settings(training: &Training) -> RivalSettings {
    let lambda = 0.05 * lambda_max(training.p(), training.weights(), 0).unwrap();
    RivalSettings { rank: ZONES, lambda, likelihood: LikelihoodSettings::default(), seed: 3 }
}

#[test]
fn every_rival_recovers_an_easy_city_and_beats_one_law_for_all() {
    let (counts, zone) = easy_city(300_000);
    let folds = Folds::of_trips(counts.csr(), 3, 1).unwrap();
    let training = Training::new(folds.training(0), WeightPower::One).unwrap();
    let settings = settings(&training);
    let held_out =
        |fitted: &Fitted| score(fitted.score_model(), training.observed().counts(), &folds.held_out(0), Smoothing::default()).unwrap();
    let floor = held_out(&fit(Method::RankOne, &training, &settings).unwrap());
    for method in Method::ALL {
        let fitted = fit(method, &training, &settings).unwrap();
        let found = held_out(&fitted);
        // A quarter of a transition a pair: the counts themselves know too little, and must lose.
        if method == Method::Empirical {
            assert!(found.log_likelihood < floor.log_likelihood);
        } else if method != Method::RankOne {
            assert!(found.log_likelihood > floor.log_likelihood + 0.05, "{}: {found:?} against {floor:?}", method.name());
            assert!(found.squared_error < floor.squared_error, "{}: {found:?} against {floor:?}", method.name());
        }
        if let FittedModel::Factors(x) = &fitted.model {
            assert!((0..x.u.rows()).all(|i| (x.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-9), "{}", method.name());
            assert!(metastate::linalg::thin::column_sums(&x.v).iter().all(|s| (s - 1.0).abs() < 1e-9), "{}", method.name());
        }
        for hard in [Hard::KMeans, Hard::Membership] {
            if let Some(partition) = fitted.partition(training.weights(), hard, 1).unwrap() {
                let ari = Overlap::of_labels(&partition.labels, &zone).adjusted_rand().unwrap();
                assert!(ari > 0.9, "{} {hard:?}: {ari}", method.name());
            } else {
                assert!(matches!(method, Method::SvdClipped | Method::Empirical | Method::RankOne));
            }
        }
    }
}

#[test]
fn rivals_do_not_depend_on_the_number_of_threads_and_refuse_bad_ranks() {
    let (counts, _) = easy_city(20_000);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let training = Training::new(counts.csr().clone(), WeightPower::One).unwrap();
            let settings = settings(&training);
            Method::ALL.map(|m| format!("{:?}", fit(m, &training, &settings).unwrap().model))
        })
    };
    assert!(run(1) == run(2));
    let training = Training::new(counts.csr().clone(), WeightPower::Half).unwrap();
    for rank in [0, 100_000] {
        assert!(fit(Method::SvdPartition, &training, &RivalSettings { rank, ..settings(&training) }).is_err());
    }
    assert!(Training::new(Csr::from_triplets(3, 3, &[]).unwrap(), WeightPower::One).is_err());
}

#[test]
fn a_state_of_the_fit_gets_its_own_membership_back() {
    let (counts, _) = easy_city(60_000);
    let chain = metastate::Chain::estimate(&counts, &Estimate::default()).unwrap();
    let lambda = 0.1 * lambda_max(chain.p(), chain.weights(), 0).unwrap();
    let problem = Problem::new(chain.p(), chain.weights(), lambda).unwrap();
    let choices = Settings {
        start: Start::Spectral,
        stop: StopRule::Early { directions: 100 },
        tolerance: 1e-9,
        start_rank: Some(ZONES),
        max_rank: ZONES,
        ..Settings::default()
    };
    let solution = solve(&problem, &choices, &mut Silent).unwrap();
    let assigner = Assigner::new(&solution.factors, AssignBy::Penalised { lambda }).unwrap();
    let departures = counts.departures();
    let mut worst = 0.0_f64;
    for i in 0..chain.states() {
        let (columns, values) = counts.csr().row(i);
        let transitions: Vec<(u32, f64)> = columns.iter().copied().zip(values.iter().copied()).collect();
        assert_eq!(departures[i], values.iter().sum::<f64>());
        let found = assigner.membership(&transitions, chain.weights()[i]).unwrap();
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        worst = found.iter().zip(solution.factors.u.row(i)).fold(worst, |w, (a, b)| w.max((a - b).abs()));
    }
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn a_state_that_behaves_like_one_meta_state_is_given_to_it() {
    // Two meta-states with destinations that hardly overlap.
    let v = Mat::from_vec(4, 2, vec![0.5, 0.0, 0.4, 0.1, 0.1, 0.4, 0.0, 0.5]).unwrap();
    let u = Mat::from_vec(4, 2, vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]).unwrap();
    let factors = metastate::solve::Factors { u, v };
    let likelihood = |prior: f64| AssignBy::Likelihood { prior, mass: vec![0.5, 0.5] };
    for by in [AssignBy::LeastSquares, likelihood(0.0), AssignBy::Penalised { lambda: 1e-9 }] {
        let assigner = Assigner::new(&factors, by.clone()).unwrap();
        let pure = assigner.membership(&[(0, 50.0), (1, 40.0), (2, 10.0)], 0.1).unwrap();
        assert!((pure[0] - 1.0).abs() < 1e-4, "{by:?} {pure:?}");
        let mixed = assigner.membership(&[(0, 25.0), (1, 25.0), (2, 25.0), (3, 25.0)], 0.1).unwrap();
        assert!((mixed[0] - 0.5).abs() < 1e-4, "{by:?} {mixed:?}");
        assert_eq!(assigner.membership(&[], 0.1), None);
    }
    // A prior draws a state with few transitions towards the shares of the meta-states, and one with many hardly.
    let assigner = Assigner::new(&factors, AssignBy::Likelihood { prior: 10.0, mass: vec![0.2, 0.8] }).unwrap();
    let share = |n: f64| assigner.membership(&[(0, n)], 0.1).unwrap()[0];
    // Only the first meta-state goes to state 0: u = (n + 10 * 0.2) / (n + 10).
    assert!((share(2.0) - 4.0 / 12.0).abs() < 1e-9 && (share(990.0) - 0.992).abs() < 1e-9, "{} {}", share(2.0), share(990.0));
    assert!(Assigner::new(&factors, AssignBy::Likelihood { prior: 1.0, mass: vec![1.0] }).is_err());
}

#[test]
fn a_state_of_a_likelihood_refit_gets_its_own_membership_back() {
    let (counts, _) = easy_city(60_000);
    let refit = LikelihoodSettings { prior: 2.0, max_passes: 4000, tolerance: 1e-14, accelerate: true };
    let fits = SpectralFits::new(counts.csr().clone(), 0).unwrap();
    let found = fits.likelihood(ZONES, &refit).unwrap().factors;
    let shares = fits.observed().departure_shares();
    let assigner = Assigner::new(&found, AssignBy::Likelihood { prior: 2.0, mass: found.mass(shares) }).unwrap();
    let mut worst = 0.0_f64;
    for i in 0..counts.states() {
        let (columns, values) = counts.csr().row(i);
        let transitions: Vec<(u32, f64)> = columns.iter().copied().zip(values.iter().copied()).collect();
        let again = assigner.membership(&transitions, 0.0).unwrap();
        worst = again.iter().zip(found.u.row(i)).fold(worst, |w, (a, b)| w.max((a - b).abs()));
    }
    // The refit's prior has the shares of its start, not of its end.
    assert!(worst < 0.01, "{worst}");
}
