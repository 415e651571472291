//! Rivals on an easy chain, and memberships of states that were not in the fit.

use metastate::aggregate::rivals::{FittedModel, Hard, Rival, RivalSettings, Training, fit};
use metastate::aggregate::{AssignBy, Assigner, Overlap, Partition};
use metastate::compare::{Arena, Blend, Contender, Judged, Part};
use metastate::fit::Rank;
use metastate::simulate::city;
use metastate::solve::{Problem, Settings, Silent, Start, StopRule, lambda_max, solve};
use metastate::workspace::refit::{LikelihoodSettings, SpectralFits};
use metastate::workspace::score::{Model, Smoothing, score};
use metastate::{Chain, Counts, Data, Estimate, FitOptions, Given, StateIndex, WeightPower};
use metastate::{Csr, Mat};

const ZONES: usize = 4;

fn easy_city(trips: usize) -> (Counts, Vec<u32>) {
    let city = city(ZONES, 5).unwrap();
    let pairs = city.trips(trips, 2).unwrap().into_iter().map(|t| (t.from, t.to));
    (Counts::from_pairs(StateIndex::numbered(city.cells()), pairs).unwrap(), city.zone.clone())
}

fn data(counts: &Counts) -> Data {
    Data::from_counts(counts, &Estimate::default()).unwrap()
}

fn mean(judged: &Judged) -> (f64, f64) {
    (judged.held_out.log_likelihood(), judged.held_out.squared_error())
}

#[test]
fn everybody_recovers_an_easy_city_and_beats_one_law_for_all() {
    let (counts, zone) = easy_city(300_000);
    let data = data(&counts);
    let mut arena = Arena::new(&data, 3, Some(ZONES), &FitOptions::default(), 1, &mut Silent).unwrap();
    let given = Some(Smoothing::default());
    let floor = mean(&arena.judge(&Contender::Rival(Rival::RankOne), given, &mut Silent).unwrap());
    for contender in Contender::all() {
        let name = contender.name();
        let found = mean(&arena.judge(&contender, given, &mut Silent).unwrap());
        if !matches!(contender, Contender::Rival(Rival::RankOne | Rival::Empirical)) {
            assert!(found.0 > floor.0 + 0.05 && found.1 < floor.1, "{name}: {found:?} against {floor:?}");
        }
        let fitted = arena.fit(&contender, Part::Whole, &mut Silent).unwrap();
        if let FittedModel::Factors(x) = &fitted.model {
            assert!((0..x.u.rows()).all(|i| (x.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-9), "{name}");
            assert!(metastate::workspace::thin::column_sums(&x.v).iter().all(|s| (s - 1.0).abs() < 1e-9), "{name}");
        }
        for hard in [Hard::KMeans, Hard::Membership] {
            if let Some(partition) = fitted.partition(data.chain().weights(), hard, 1).unwrap() {
                let ari = Overlap::of_labels(&partition.labels, &zone).adjusted_rand().unwrap();
                // The penalised solution is blurred at the lambda of the recipe: it is there for its proof, and zones come from the refit.
                let least = if matches!(contender, Contender::Penalised) { 0.75 } else { 0.9 };
                assert!(ari > least, "{name} {hard:?}: {ari}");
            } else {
                let without = [Rival::SvdClipped, Rival::Empirical, Rival::RankOne].map(Rival::name);
                assert!(without.contains(&name) || name == "blend", "{name}");
            }
        }
    }
    // A quarter of a transition a pair: the counts alone know too little, and must lose to one law for all.
    let bare = score(Model::Empirical { pseudo: 0.0 }, arena.folds().whole(), &arena.folds().held_out(0), Smoothing::default()).unwrap();
    let training = arena.folds().training(0);
    let held_out = score(Model::Empirical { pseudo: 0.0 }, &training, &arena.folds().held_out(0), Smoothing::default()).unwrap();
    assert!(held_out.log_likelihood < floor.0 && bare.log_likelihood > floor.0);
}

#[test]
fn what_is_scored_is_the_recipe_on_the_training_part_and_the_folds_are_those_of_fit() {
    let (counts, _) = easy_city(40_000);
    let data = data(&counts);
    let options = FitOptions::default();
    let mut arena = Arena::new(&data, 5, Some(ZONES), &options, 7, &mut Silent).unwrap();
    let ours = arena.judge(&Contender::LikelihoodRefit, Some(Smoothing::default()), &mut Silent).unwrap();
    let at_rank = options.clone().rank(Rank::Given(ZONES)).unwrap();
    for f in 0..5 {
        let part = data.without(arena.folds(), f).unwrap();
        assert_eq!((part.chain().states(), part.chain().counts()), (data.chain().states(), Some(&arena.folds().training(f))));
        let model = metastate::fit(&part, &at_rank.clone().seed(8 + f as u64), &mut Silent).unwrap();
        let expected =
            score(Model::LowRank(model.factors()), part.chain().counts().unwrap(), &arena.folds().held_out(f), Smoothing::default());
        assert_eq!(ours.held_out.folds[f], expected.unwrap());
    }
    // The baseline that fit reports is the same number, to the bit: same folds, same scores.
    let model = metastate::fit(&data, &at_rank.seed(7), &mut Silent).unwrap();
    let one_law = arena.judge(&Contender::Rival(Rival::RankOne), Some(Smoothing::default()), &mut Silent).unwrap();
    assert_eq!(one_law.held_out, model.chosen.unwrap().choice.independent);
}

#[test]
fn every_contender_gets_its_best_smoothing_chosen_on_other_folds() {
    let (counts, zone) = easy_city(20_000);
    let data = data(&counts);
    let mut arena = Arena::new(&data, 4, Some(ZONES), &FitOptions::default(), 0, &mut Silent).unwrap();
    for contender in [Contender::Rival(Rival::Empirical), Contender::Rival(Rival::NmfLikelihood), Contender::Blend] {
        let best = arena.judge(&contender, None, &mut Silent).unwrap();
        let stated = arena.judge(&contender, Some(Smoothing::default()), &mut Silent).unwrap();
        // The counts and the blend have pseudo-counts of their own beside the stated share.
        let gain = best.held_out.log_likelihood() - stated.held_out.log_likelihood();
        assert!(gain >= 0.0, "{}: {gain}", contender.name());
        assert!(!matches!(contender, Contender::Rival(Rival::NmfLikelihood)) || (gain > 0.0 && best.smoothing > 1e-3), "{best:?}");
    }
    let counts_at = |arena: &mut Arena, f: usize, pseudo: f64| {
        let training = arena.folds().training(f);
        score(Model::Empirical { pseudo }, &training, &arena.folds().held_out(f), Smoothing::default()).unwrap()
    };
    let judged = arena.judge(&Contender::Rival(Rival::Empirical), None, &mut Silent).unwrap();
    for f in 0..4 {
        let of_others = |arena: &mut Arena, c: f64| (0..4).filter(|g| *g != f).map(|g| counts_at(arena, g, c).log_likelihood).sum::<f64>();
        let grid: Vec<f64> = (-2..=10).map(|k| 10f64.powf(0.5 * f64::from(k))).collect();
        let values: Vec<f64> = grid.iter().map(|c| of_others(&mut arena, *c)).collect();
        let best = (0..grid.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap();
        assert_eq!(judged.held_out.folds[f], counts_at(&mut arena, f, grid[best]));
    }
    // The planted zones, given from elsewhere, do as well as what was found.
    let groups = Contender::Groups(Partition::numbered(zone, data.chain().xi(), ZONES));
    let theirs = arena.judge(&groups, None, &mut Silent).unwrap().held_out.log_likelihood();
    let ours = arena.judge(&Contender::LikelihoodRefit, None, &mut Silent).unwrap().held_out.log_likelihood();
    assert!((theirs - ours).abs() < 0.02, "{theirs} {ours}");
    // A model from elsewhere is scored as it is.
    let model = metastate::fit(&data, &FitOptions::default().rank(Rank::Given(ZONES)).unwrap(), &mut Silent).unwrap();
    let fixed = Contender::Fixed(Box::new(model.factors().clone()));
    let direct = score(Model::LowRank(model.factors()), &arena.folds().training(2), &arena.folds().held_out(2), Smoothing::default());
    assert_eq!(arena.judge(&fixed, Some(Smoothing::default()), &mut Silent).unwrap().held_out.folds[2], direct.unwrap());
}

#[test]
fn a_blend_is_between_counts_and_model() {
    let (counts, _) = easy_city(5000);
    let data = data(&counts);
    let folds = data.parts().unwrap().folds(3, 0).unwrap();
    let training = folds.training(0);
    let part = data.without(&folds, 0).unwrap();
    let fitted = fit(Rival::NmfLikelihood, &Training::new(part.chain()).unwrap(), &RivalSettings { rank: 3, seed: 0 }).unwrap();
    let x = fitted.factors().unwrap();
    let of = |model: Model| score(model, &training, &folds.held_out(0), Smoothing::default()).unwrap();
    let (model, counts) = (of(Model::LowRank(x)), of(Model::Empirical { pseudo: 0.0 }));
    let (much, little) = (of(Model::Blend { factors: x, pseudo: 1e12 }), of(Model::Blend { factors: x, pseudo: 1e-12 }));
    assert!((much.log_likelihood - model.log_likelihood).abs() < 1e-6 && (much.squared_error - model.squared_error).abs() < 1e-6);
    assert!((little.squared_error - counts.squared_error).abs() < 0.2);
    // Entry by entry.
    let (c, i) = (7.0, 4);
    let held_out = folds.held_out(0);
    let (row, held) = (training.row(i), held_out.row(i));
    let n: f64 = row.1.iter().sum();
    let marginal = metastate::workspace::refit::marginal_law(&training);
    let at = |j: u32| {
        let seen = row.0.iter().position(|k| *k == j).map_or(0.0, |k| row.1[k]);
        let model: f64 = (0..3).map(|k| x.u[(i, k)] * x.v[(j as usize, k)]).sum();
        0.999 * (seen + c * model) / (n + c) + 1e-3 * marginal[j as usize]
    };
    let only = Csr::from_triplets(
        training.rows(),
        training.rows(),
        &held.0.iter().zip(held.1).map(|(j, n)| (i as u32, *j, *n)).collect::<Vec<_>>(),
    );
    let found = score(Model::Blend { factors: x, pseudo: c }, &training, &only.unwrap(), Smoothing::default()).unwrap();
    let expected = held.0.iter().zip(held.1).map(|(j, n)| n * at(*j).ln()).sum::<f64>() / held.1.iter().sum::<f64>();
    assert!((found.log_likelihood - expected).abs() < 1e-12, "{} {expected}", found.log_likelihood);

    // Chosen on held-out transitions, it is ahead of both where rows are known well and rarely: the better of the two is a blend of strength 0 or infinity.
    let blend = Blend::choose(&data, ZONES, 2.0, 3, 0).unwrap();
    assert!(blend.ahead().0 > -1e-3 && blend.pseudo > 0.0, "{blend:?}");
    // One step from a law is the rows of the blend, weighed by it.
    let all = data.parts().unwrap().counts();
    let law: Vec<f64> = (0..all.rows()).map(|i| if i == 3 || i == 8 { 0.5 } else { 0.0 }).collect();
    let next = blend.step(all, x, &law).unwrap();
    assert!((next.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let row = |i: usize, j: usize| {
        let (columns, seen) = all.row(i);
        let count = columns.iter().position(|k| *k as usize == j).map_or(0.0, |k| seen[k]);
        let model: f64 = (0..3).map(|k| x.u[(i, k)] * x.v[(j, k)]).sum();
        (count + blend.pseudo * model) / (seen.iter().sum::<f64>() + blend.pseudo)
    };
    assert!((0..all.rows()).all(|j| (next[j] - 0.5 * (row(3, j) + row(8, j))).abs() < 1e-12));
}

#[test]
fn rivals_do_not_depend_on_the_number_of_threads_and_refuse_bad_ranks() {
    let (counts, _) = easy_city(20_000);
    let (data, settings) = (data(&counts), RivalSettings { rank: ZONES, seed: 3 });
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let training = Training::new(data.chain()).unwrap();
            Rival::ALL.map(|m| format!("{:?}", fit(m, &training, &settings).unwrap().model))
        })
    };
    assert!(run(1) == run(2));
    let training = Training::new(data.with_weight_power(WeightPower::Half).chain()).unwrap();
    for rank in [0, 100_000] {
        assert!(fit(Rival::SvdPartition, &training, &RivalSettings { rank, ..settings }).is_err());
    }
    let given = Chain::from_dense(Mat::from_fn(2, 2, |_, _| 0.5), Given::default()).unwrap();
    assert!(Training::new(&given).is_err());
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
