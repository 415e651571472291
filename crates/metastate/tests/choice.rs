//! Path, choice of rank, bootstrap.

mod common;

use common::{Stream, by_arrivals, problem, verified};
use metastate::simulate::AliasTable;
use metastate::simulate::planted;
use metastate::solve::{Settings, Silent, StopRule, lambda_max};
use metastate::workspace::assignment::cheapest_assignment;
use metastate::workspace::bootstrap::{BootstrapSettings, Resample, bootstrap};
use metastate::workspace::path::{FoldPaths, first_with_rank, lambda_grid, solve_point};
use metastate::workspace::refit::{LikelihoodSettings, SpectralFits};
use metastate::workspace::score::{Model, Smoothing, score};
use metastate::workspace::select::{Attempt, Outlook, SelectSettings, outlook, select, select_prior, select_watched};
use metastate::{Chain, Csr, Folds, Mat};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[test]
fn the_planted_rank_is_chosen() {
    for (d, r, seed) in [(80, 3, 5), (100, 5, 2)] {
        let counts = planted(d, r, seed).unwrap().sample_counts(20 * (d * d) as u64, seed).unwrap();
        let folds = Folds::of_trips(counts.csr(), 5, 1).unwrap();
        let settings = SelectSettings { max_rank: 9, ..SelectSettings::default() };
        let choice = select(&folds, &settings).unwrap();
        assert_eq!(choice.rank, r, "{}", choice.sentence());
        assert!(!choice.at_the_limit);
        assert!(choice.clearness() > 3.0);
        let chosen = choice.at(r).unwrap().held_out.log_likelihood();
        assert!(chosen > choice.empirical.1.log_likelihood() && chosen > choice.independent.log_likelihood(), "{}", choice.sentence());
        assert_eq!(choice.edge, Some(r), "the spectrum has its edge there");
        let looked_at: Vec<usize> = choice.ranks.iter().map(|a| a.rank).collect();
        assert_eq!(looked_at, [r - 1, r, r + 1], "and only the neighbours need a look");
        assert!(choice.sentence().starts_with(&format!("{r} meta-states:")), "{}", choice.sentence());
        let again = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| select(&folds, &settings));
        assert_eq!(choice, again.unwrap(), "the number of threads must not matter");
    }
}

#[test]
fn where_the_spectrum_has_an_edge_neighbours_may_be_out_after_two_folds() {
    let counts = planted(760, 4, 7).unwrap().sample_counts(8_000_000, 7).unwrap();
    let folds = Folds::of_trips(counts.csr(), 3, 1).unwrap();
    let choice = select(&folds, &SelectSettings::default()).unwrap();
    let looks: Vec<(usize, bool)> = choice.ranks.iter().map(|r| (r.rank, r.first_look)).collect();
    assert_eq!((choice.rank, &looks[..2]), (4, &[(3, true), (4, false)][..]), "{}", choice.sentence());
    // What was seen on two folds is told in the terms of all three.
    let (rough, none) = choice.mean_score(3).unwrap();
    let (on_two, best) = (&choice.at(3).unwrap().held_out, &choice.at(4).unwrap().held_out);
    let behind = (0..2).map(|f| best.folds[f].log_likelihood - on_two.folds[f].log_likelihood).sum::<f64>() / 2.0;
    assert!(on_two.folds.len() == 2 && none.is_none() && (best.log_likelihood() - behind - rough).abs() < 1e-12);
    assert_eq!(choice.mean_score(4).unwrap().0, choice.at(4).unwrap().held_out.log_likelihood());
}

/// A chain on a ring whose steps are exponentially distributed: its singular values fall like `1 / k^2`, and no number of meta-states is the true one.
fn ring(d: usize, width: f64, transitions: usize, seed: u64) -> Csr {
    let mut stream = Stream(seed);
    let spread = |stream: &mut Stream| {
        let length = -((1 + stream.below(1000)) as f64 / 1001.0).ln();
        if stream.below(2) == 0 { length } else { -length }
    };
    let triplets: Vec<(u32, u32, f64)> = (0..transitions)
        .map(|_| {
            let from = stream.below(d);
            let to = (from as f64 + width * spread(&mut stream)).rem_euclid(d as f64) as usize % d;
            (from as u32, to as u32, 1.0)
        })
        .collect();
    Csr::from_triplets(d, d, &triplets).unwrap()
}

#[test]
fn without_an_edge_a_few_looks_close_in_on_the_best_rank() {
    let folds = Folds::of_trips(&ring(150, 8.0, 60_000, 3), 4, 1).unwrap();
    let settings = SelectSettings { max_rank: 40, ..SelectSettings::default() };
    let choice = select(&folds, &settings).unwrap();
    assert_eq!(choice.edge, None);
    assert!(choice.ranks.len() < 20, "{} ranks were looked at", choice.ranks.len());
    assert!(choice.ranks.windows(2).all(|w| w[0].rank < w[1].rank));
    let careful: Vec<usize> = choice.ranks.iter().filter(|a| !a.first_look).map(|a| a.rank).collect();
    assert!(careful.contains(&(choice.rank - 1)) && careful.contains(&(choice.rank + 1)), "{careful:?} about {}", choice.rank);
    // No rank far from the chosen one does better than it by more than the noise of the comparison: the curve has one maximum.
    for far in [2, choice.rank / 2, 2 * choice.rank, 40] {
        let only = SelectSettings { priors: vec![choice.prior], first_prior: choice.prior, ..settings.clone() };
        let alone = &select_prior(&folds, far, &only).unwrap().1[0].held_out;
        let (ahead, error) = choice.chosen.held_out.behind(alone);
        assert!(ahead <= 3.0 * error, "rank {far} is ahead of {} by {ahead:.2e}, standard error {error:.1e}", choice.rank);
    }
}

#[test]
fn a_search_that_was_ended_goes_on_from_what_was_tried() {
    let counts = planted(80, 3, 5).unwrap().sample_counts(60_000, 5).unwrap();
    let folds = Folds::of_trips(counts.csr(), 4, 1).unwrap();
    let settings = SelectSettings { max_rank: 7, first_prior: 20.0, ..SelectSettings::default() };
    let mut all: Vec<Attempt> = Vec::new();
    let choice = select_watched(&folds, &settings, Vec::new(), &mut |attempts| {
        all = attempts.to_vec();
        true
    });
    let choice = choice.unwrap().unwrap();
    let distinct = |a: &Attempt, b: &Attempt| (a.rank, a.prior, a.first_look) != (b.rank, b.prior, b.first_look);
    assert!((0..all.len()).all(|k| all[..k].iter().all(|a| distinct(a, &all[k]))), "nothing is fitted twice");
    assert!(choice.prior != settings.first_prior, "a case in which ranks are tried with two priors");
    for end in [1, 4, all.len() - 1] {
        let mut tried: Vec<Attempt> = Vec::new();
        let ended = select_watched(&folds, &settings, Vec::new(), &mut |attempts| {
            tried = attempts.to_vec();
            attempts.len() < end
        });
        assert_eq!(ended.unwrap(), None);
        assert_eq!(tried, all[..end]);
        let mut fitted = 0;
        let resumed = select_watched(&folds, &settings, tried, &mut |_| {
            fitted += 1;
            true
        });
        assert_eq!((resumed.unwrap().as_ref(), fitted), (Some(&choice), all.len() - end));
    }
}

#[test]
fn a_choice_says_how_far_it_is() {
    let planted = planted(80, 3, 5).unwrap().sample_counts(60_000, 5).unwrap().csr().clone();
    for (counts, folds, max_rank) in [(planted, 4, 7), (ring(60, 8.0, 20_000, 3), 3, 20)] {
        let folds = Folds::of_trips(&counts, folds, 1).unwrap();
        let settings = SelectSettings { max_rank, ..SelectSettings::default() };
        let mut seen: Vec<Outlook> = Vec::new();
        let choice = select_watched(&folds, &settings, Vec::new(), &mut |attempts| {
            seen.push(outlook(attempts, folds.len(), false));
            true
        });
        let choice = choice.unwrap().unwrap();
        assert!(seen.windows(2).all(|w| w[0].fits < w[1].fits) && seen.iter().all(|o| o.about > o.fits));
        let total = seen[seen.len() - 1].fits as f64;
        // About is about: never off by more than a factor of three.
        assert!(seen.iter().all(|o| (o.about as f64 / total).ln().abs() < 3f64.ln()), "{total}: {seen:?}");
        let (rank, score) = seen[seen.len() - 1].best.unwrap();
        assert!(choice.at(rank).is_some() && score >= choice.chosen.held_out.log_likelihood());
    }
    assert_eq!(outlook(&[], 5, true), Outlook { fits: 0, about: 15, best: None });
}

#[test]
fn the_baseline_gets_the_best_of_all_pseudo_counts() {
    for (d, r, ratio, seed) in [(120, 4, 3, 1), (90, 3, 40, 2)] {
        let counts = planted(d, r, seed).unwrap().sample_counts((ratio * d * d) as u64, seed).unwrap();
        let folds = Folds::of_trips(counts.csr(), 4, 0).unwrap();
        let settings = SelectSettings { max_rank: r + 1, ..SelectSettings::default() };
        let (found, held_out) = select(&folds, &settings).unwrap().empirical;
        let mean = |pseudo: f64| {
            let of_fold =
                |f: usize| score(Model::Empirical { pseudo }, &folds.training(f), &folds.held_out(f), settings.smoothing).unwrap();
            (0..4).map(|f| of_fold(f).log_likelihood).sum::<f64>() / 4.0
        };
        let best = (-2..=10).map(|k| mean(10f64.powf(0.5 * f64::from(k)))).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!((held_out.log_likelihood(), mean(found)), (best, best), "{found}");
    }
}

#[test]
fn the_prior_found_by_climbing_is_the_best_of_all() {
    for (d, r, ratio, seed) in [(120, 4, 3, 1), (90, 3, 40, 2), (100, 5, 1, 3)] {
        let counts = planted(d, r, seed).unwrap().sample_counts((ratio * d * d) as u64, seed).unwrap();
        let folds = Folds::of_trips(counts.csr(), 4, 0).unwrap();
        let settings = SelectSettings::default();
        let (found, tried) = select_prior(&folds, r, &settings).unwrap();
        assert!(tried.windows(2).all(|w| w[0].prior < w[1].prior) && tried.len() < settings.priors.len());
        let alone = |prior: f64| {
            let only = SelectSettings { priors: vec![prior], ..SelectSettings::default() };
            select_prior(&folds, r, &only).unwrap().1[0].held_out.log_likelihood()
        };
        let best = settings.priors.iter().map(|p| alone(*p)).fold(f64::NEG_INFINITY, f64::max);
        // A lead of less than one nat over all transitions is no evidence: two fits of one prior, from two starts, differ by as much.
        let (behind, nat) = (best - alone(found), 1.0 / folds.whole().values().iter().sum::<f64>());
        assert!(behind < nat, "{d} {r} {ratio}: {found} is behind by {behind:.1e}, {nat:.1e} would be one nat");
    }
}

#[test]
fn independent_steps_give_one_meta_state() {
    let mut stream = Stream(3);
    let triplets: Vec<_> = (0..40_000).map(|_| (stream.below(50) as u32, stream.below(50) as u32, 1.0)).collect();
    let folds = Folds::of_trips(&Csr::from_triplets(50, 50, &triplets).unwrap(), 5, 0).unwrap();
    let choice = select(&folds, &SelectSettings { max_rank: 6, ..SelectSettings::default() }).unwrap();
    assert_eq!(choice.rank, 1, "{}", choice.sentence());
}

#[test]
fn a_warm_path_reaches_what_cold_solves_reach() {
    let truth = planted(50, 3, 4).unwrap();
    let counts = truth.sample_counts(30 * 2500, 4).unwrap();
    let chain = Chain::estimate(&counts, &by_arrivals()).unwrap();
    let largest = lambda_max(chain.p(), chain.weights(), 0).unwrap();
    let lambdas = lambda_grid(largest, 0.1, 5).unwrap();
    assert!((lambdas[4] / largest - 0.1).abs() < 1e-12 && (lambdas[2] / largest - 0.1f64.sqrt()).abs() < 1e-12);
    let settings = Settings { stop: StopRule::Certificate { gap: 2e-3 }, ..Settings::default() };
    let folds = Folds::of_trips(counts.csr(), 3, 0).unwrap();
    let mut fold_paths = FoldPaths::new(&folds, chain.weights()).unwrap();
    let (mut before, mut ranks, mut scores) = (None, Vec::new(), Vec::new());
    for lambda in lambdas {
        let problem = problem(&chain, lambda);
        let warm = solve_point(&problem, &settings, before.as_ref(), &mut Silent).unwrap();
        verified(&problem, &warm);
        let cold = metastate::solve::solve(&problem, &settings, &mut Silent).unwrap();
        assert!((warm.objective.value / cold.objective.value - 1.0).abs() < 2e-3, "{} {}", warm.objective.value, cold.objective.value);
        ranks.push(warm.rank());
        scores.push(fold_paths.point(lambda, &settings, Smoothing::default()).unwrap().log_likelihood());
        before = Some(warm.factors);
    }
    assert_eq!(ranks[0], 1, "lambda_max");
    assert!(*ranks.last().unwrap() >= 3, "{ranks:?}");
    assert!(scores[4] > scores[0], "{scores:?}");
    assert_eq!(first_with_rank(&[1, 2, 4, 4, 7], 3), Some(2));
    assert_eq!(first_with_rank(&[1, 2], 3), Some(1));
}

#[test]
fn assignments_are_the_cheapest() {
    let mut stream = Stream(17);
    for n in 1..6 {
        let cost: Vec<f64> = (0..n * n).map(|_| stream.next() - 0.5).collect();
        let total = |p: &[usize]| (0..n).map(|k| cost[k * n + p[k]]).sum::<f64>();
        let found = cheapest_assignment(n, |k, l| cost[k * n + l]);
        let mut cheapest = f64::INFINITY;
        permutations(n, &mut Vec::new(), &mut |p| cheapest = cheapest.min(total(p)));
        assert!((total(&found) - cheapest).abs() < 1e-12, "{found:?}");
    }
}

fn permutations(n: usize, so_far: &mut Vec<usize>, each: &mut impl FnMut(&[usize])) {
    if so_far.len() == n {
        return each(so_far);
    }
    for k in 0..n {
        if !so_far.contains(&k) {
            so_far.push(k);
            permutations(n, so_far, each);
            so_far.pop();
        }
    }
}

/// Three groups by number mod 3, and one state, the last, that is torn between two of them.
fn groups_with_one_torn_state(d: usize, steps: usize, seed: u64) -> Csr {
    let mut stream = Stream(seed);
    let mut triplets = Vec::new();
    for i in 0..d {
        for step in 0..steps {
            let home = if i + 1 == d { step % 2 } else { i % 3 };
            let group = if stream.next() < 0.8 { home } else { stream.below(3) };
            triplets.push((i as u32, (stream.below((d - 1) / 3) * 3 + group) as u32, 1.0));
        }
    }
    Csr::from_triplets(d, d, &triplets).unwrap()
}

#[test]
fn the_bootstrap_knows_what_is_sure() {
    let counts = groups_with_one_torn_state(61, 300, 5);
    let refit = LikelihoodSettings { prior: 0.3, max_passes: 40, tolerance: 1e-7, accelerate: true };
    let reference = SpectralFits::new(counts.clone(), 0).unwrap().likelihood(3, &refit).unwrap().factors;
    let settings = BootstrapSettings { replicates: 20, confidence: 0.9, refit, seed: 1 };
    let found = bootstrap(Resample::Trips(&counts), &reference, &settings, || true).unwrap();
    assert!(found.stability.iter().all(|s| *s > 0.8), "{:?}", found.stability);
    let inside = |x: &Mat, low: &Mat, high: &Mat| (0..61).all(|i| (0..3).all(|k| low[(i, k)] <= x[(i, k)] && x[(i, k)] <= high[(i, k)]));
    assert!(inside(&reference.u, &found.lower, &found.upper), "every published membership lies in its own interval");
    assert!(found.lower.as_slice().iter().chain(found.upper.as_slice()).all(|x| (0.0..=1.0).contains(x)));
    let sure = (0..60).filter(|&i| !found.undecided[i]).count();
    assert!(sure >= 58, "{sure} of 60");
    let width = |i: usize| (0..3).map(|k| found.upper[(i, k)] - found.lower[(i, k)]).fold(0.0, f64::max);
    assert!(found.undecided[60] || found.agreement[60] < 1.0 || width(60) > 0.1, "the torn state: {}", found.agreement[60]);
    let again = bootstrap(Resample::Trips(&counts), &reference, &settings, || true).unwrap();
    assert_eq!(found, again);
    // Blocks: the same counts in six parts.
    let parts = Folds::of_trips(&counts, 6, 3).unwrap();
    let blocks: Vec<Csr> = (0..6).map(|f| parts.held_out(f)).collect();
    let by_blocks = bootstrap(Resample::Blocks(&blocks), &reference, &settings, || true).unwrap();
    assert!(by_blocks.stability.iter().all(|s| *s > 0.7), "{:?}", by_blocks.stability);
    assert!(inside(&reference.u, &by_blocks.lower, &by_blocks.upper));
}

/// Three groups of twelve states and four states between them. Every other state of a group is reached from that group alone, so that these factors are the only ones of their product.
fn determined(steps: usize, rng: &mut Xoshiro256PlusPlus) -> (Mat, Csr) {
    let (d, s) = (40, 3);
    let v = Mat::from_fn(d, s, |j, k| match (j % s == k, (j / s) % 2 == 0) {
        (true, _) => 0.7,
        (false, true) => 0.0,
        (false, false) => 0.3,
    });
    let mut u = Mat::from_fn(d, s, |i, k| f64::from(u8::from(i % s == k)));
    for i in 36..d {
        let share = rng.random_range(0.2..0.8);
        u.row_mut(i).copy_from_slice(&[share, 1.0 - share, 0.0]);
    }
    let ends: Vec<AliasTable> = (0..s).map(|k| AliasTable::new(&v.column(k)).unwrap()).collect();
    let mut triplets = Vec::new();
    for i in 0..d {
        let through = AliasTable::new(u.row(i)).unwrap();
        triplets.extend((0..steps).map(|_| (i as u32, ends[through.draw(rng) as usize].draw(rng), 1.0)));
    }
    (u, Csr::from_triplets(d, d, &triplets).unwrap())
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let (mut held, mut all, mut width) = ([0.0; 2], [0.0; 2], 0.0);
    for seed in 0..16 {
        let (u, counts) = determined(60, &mut rng);
        let refit = LikelihoodSettings { prior: 1.0, max_passes: 60, tolerance: 1e-7, accelerate: true };
        let x = SpectralFits::new(counts.clone(), 0).unwrap().likelihood(3, &refit).unwrap().factors;
        let order = cheapest_assignment(3, |k, l| -(0..40).map(|i| u[(i, k)] * x.u[(i, l)]).sum::<f64>());
        let reference = metastate::solve::Factors { u: x.u.select_columns(&order), v: x.v.select_columns(&order) };
        let settings = BootstrapSettings { replicates: 20, confidence: 0.9, refit, seed };
        let found = bootstrap(Resample::Trips(&counts), &reference, &settings, || true).unwrap();
        for i in 0..40 {
            for k in 0..3 {
                let between = usize::from(i >= 36 && k < 2);
                all[between] += 1.0;
                held[between] += f64::from(u8::from(found.lower[(i, k)] <= u[(i, k)] && u[(i, k)] <= found.upper[(i, k)]));
                width += found.upper[(i, k)] - found.lower[(i, k)];
            }
        }
    }
    let (sparse, between, width) = (held[0] / all[0], held[1] / all[1], width / (all[0] + all[1]));
    assert!(sparse > 0.85, "memberships that are 0 or 1: {sparse}");
    assert!((0.8..0.98).contains(&between), "memberships in between: {between}");
    assert!(width < 0.2, "not by saying nothing: {width}");
}

#[test]
fn the_score_that_is_reported_belongs_to_the_prior_that_is_used() {
    let mut moved = 0;
    for seed in 0..12 {
        let counts = planted(50, 3, seed).unwrap().sample_counts(6_000, seed).unwrap();
        let folds = Folds::of_trips(counts.csr(), 4, seed).unwrap();
        let settings = SelectSettings { max_rank: 6, first_prior: 0.1, ..SelectSettings::default() };
        let mut fitted: Vec<Attempt> = Vec::new();
        let choice = select_watched(&folds, &settings, Vec::new(), &mut |attempts| {
            fitted = attempts.to_vec();
            true
        });
        let choice = choice.unwrap().unwrap();
        let same = |a: &&Attempt| (a.rank, a.prior, a.first_look) == (choice.rank, choice.prior, false);
        assert_eq!(fitted.iter().find(same), Some(&choice.chosen));
        let reported = choice.chosen.held_out.log_likelihood();
        moved += usize::from(choice.at(choice.rank).unwrap().prior != choice.prior);
        // What is taken off: never negative, by its definition, and the score is what is left.
        let all: Vec<&Attempt> = choice.ranks.iter().chain(&choice.priors).filter(|a| !a.first_look).collect();
        let score = |a: &Attempt, f: usize| a.held_out.folds[f].log_likelihood;
        let each = (0..4).map(|f| all.iter().map(|a| score(a, f)).fold(f64::MIN, f64::max)).sum::<f64>() / 4.0;
        let best = all.iter().map(|a| a.held_out.log_likelihood()).fold(f64::MIN, f64::max);
        assert!((choice.selection_bias() - (each - best)).abs() < 1e-12 && choice.selection_bias() >= 0.0);
        assert_eq!(choice.log_likelihood(), reported - choice.selection_bias());
    }
    assert!(moved > 0, "no case in which the rank moved and the prior with it");
    let counts = planted(50, 3, 1).unwrap().sample_counts(6_000, 1).unwrap();
    let folds = Folds::of_trips(counts.csr(), 4, 1).unwrap();
    let one = SelectSettings { max_rank: 1, first_prior: 2.0, priors: vec![2.0], ..SelectSettings::default() };
    assert_eq!(select(&folds, &one).unwrap().selection_bias(), 0.0, "nothing was chosen");
}
