//! Rows and columns that are different sets: the recipe on a planted 300 x 900 chain with the rank not given, every proof by the checker's own code, and what must be refused.

mod common;

use common::{Stream, outer, solved};
use metastate::fit::{Rank, RefitKind};
use metastate::simulate::AliasTable;
use metastate::solve::{Factors, Problem, Settings, Silent, StopRule};
use metastate::workspace::assignment::matching;
use metastate::workspace::refit::{LikelihoodSettings, Observed, likelihood};
use metastate::{
    Csr, Data, Error, FitOptions, Ledger, LowRankOperator, Mat, Operator, SparseOperator, StateIndex, TwoSided, WeightPower, fit,
};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// `trips` transitions out of each row of `U V^T`: memberships mostly of one meta-state, profiles of their own.
fn planted(rows: usize, cols: usize, rank: usize, trips: usize, seed: u64) -> (Factors, Csr) {
    let mut stream = Stream(seed);
    let mut u = stream.stochastic(rows, rank);
    for i in 0..rows {
        u.row_mut(i).iter_mut().enumerate().for_each(|(k, x)| *x = 0.2 * *x + if i % rank == k { 0.8 } else { 0.0 });
    }
    let sharp = Mat::from_fn(rank, cols, |_, _| stream.next().powi(6) + 1e-4);
    let v = Mat::from_fn(cols, rank, |j, k| sharp[(k, j)] / sharp.row(k).iter().sum::<f64>());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let laws: Vec<AliasTable> = (0..rank).map(|k| AliasTable::new(&v.column(k)).unwrap()).collect();
    let mut triplets = Vec::new();
    for i in 0..rows {
        let through = AliasTable::new(u.row(i)).unwrap();
        triplets.extend((0..trips).map(|_| (i as u32, laws[through.draw(&mut rng) as usize].draw(&mut rng), 1.0)));
    }
    (Factors { u, v }, Csr::from_triplets(rows, cols, &triplets).unwrap())
}

fn two_sided(counts: Csr) -> TwoSided {
    let (origins, destinations) = (StateIndex::numbered(counts.rows()), StateIndex::numbered(counts.cols()));
    TwoSided { origins, destinations, counts, ledger: Ledger::new() }
}

#[test]
fn a_planted_chain_of_300_by_900_is_recovered_without_its_rank() {
    let (truth, counts) = planted(300, 900, 5, 400, 3);
    let data = Data::between(&two_sided(counts), WeightPower::One).unwrap();
    assert!(!data.chain().goes_on());
    let model = fit(&data, &FitOptions::default(), &mut Silent).unwrap();
    assert_eq!((model.rank(), model.memberships().rows()), (5, 300));
    // Destinations that nobody reached have no column.
    let reached: Vec<usize> = data.chain().destinations().labels().map(|l| l.to_string().parse().unwrap()).collect();
    assert_eq!(model.destinations().rows(), reached.len());
    let p = LowRankOperator::new(truth.u.clone(), Mat::from_fn(reached.len(), 5, |j, k| truth.v[(reached[j], k)])).unwrap();
    let found = model.against(&p, &data);
    println!("{found:?}, {:?}", model.solution.status);
    let refit = found.refit.unwrap();
    assert!(refit < 0.02 && refit < 0.1 * found.sampling, "{found:?}");
    let order = matching(&truth.u, model.memberships(), data.chain().xi());
    let off =
        (0..300).map(|i| (0..5).map(|k| (truth.u[(i, k)] - model.memberships()[(i, order[k])]).abs()).sum::<f64>()).sum::<f64>() / 300.0;
    assert!(off < 0.25, "memberships are off by {off} a row");
    assert!(model.proof().is_some_and(|p| p.gap(model.solution.objective.value) < 0.02));
    // What needs a chain that goes on is refused in one sentence, which the hints say too.
    assert_eq!(model.latent_chain().unwrap_err(), Error::DoesNotGoOn);
    assert!(model.moves().is_err() && model.hints.contains(&Error::DoesNotGoOn.to_string()));
}

#[test]
fn every_claim_of_a_solve_is_confirmed_whatever_the_sides() {
    let mut stream = Stream(8);
    for (m, n, rank) in [(40, 90, 3), (90, 40, 3), (25, 2, 2), (2, 25, 2)] {
        let (_, counts) = planted(m, n, rank, 60, 5 + m as u64);
        let sums = counts.row_sums();
        let rows: Vec<(u32, u32, f64)> = counts.triplets().map(|(i, j, x)| (i, j, x / sums[i as usize])).collect();
        // The last row was never left: it is 1/n everywhere.
        let kept: Vec<_> = rows.into_iter().filter(|t| t.0 as usize + 1 < m).collect();
        let sparse = SparseOperator::new(Csr::from_triplets(m, n, &kept).unwrap(), vec![m as u32 - 1]).unwrap();
        let hidden = stream.factors_between(m, n, rank);
        let low = LowRankOperator::new(hidden.u, hidden.v).unwrap();
        let xi: Vec<f64> = (0..m).map(|_| 0.5 + stream.next()).collect();
        for p in [&sparse as &dyn Operator, &low] {
            let one = Problem::new(p, &xi, 1.0).unwrap();
            for share in [0.05, 0.002] {
                let problem = one.at_lambda(share * one.data_norm2);
                let settings =
                    Settings { stop: StopRule::Certificate { gap: 1e-3 }, max_rank: 12, max_sweeps: 2000, ..Settings::default() };
                let solution = solved(&problem, &settings);
                println!("{m} x {n}, {share}: rank {}, gap {:?}", solution.rank(), solution.certified_gap());
                assert_eq!((solution.factors.u.rows(), solution.factors.v.rows()), (m, n));
            }
        }
    }
}

#[test]
fn the_likelihood_never_falls_and_ends_where_plain_loops_end() {
    for (m, n) in [(60, 700), (700, 60)] {
        let (truth, counts) = planted(m, n, 3, 80, 21);
        let settings = LikelihoodSettings { prior: 0.5, ..LikelihoodSettings::default() };
        let start = Stream(4).factors_between(m, n, 3);
        let fit = likelihood(&Observed::new(counts.clone()).unwrap(), &start, &settings).unwrap();
        assert!(fit.history.windows(2).all(|w| w[1] >= w[0] - 1e-12), "{:?}", fit.history);
        let x = outer(&fit.factors.u, &fit.factors.v);
        let total: f64 = counts.values().iter().sum();
        let plainly: f64 = counts.triplets().map(|(i, j, c)| c * x[(i as usize, j as usize)].ln()).sum::<f64>() / total;
        assert!((fit.log_likelihood - plainly).abs() < 1e-10, "{} {plainly}", fit.log_likelihood);
        let known: f64 = counts.triplets().map(|(i, j, c)| c * outer_entry(&truth, i, j).ln()).sum::<f64>() / total;
        assert!(plainly > known - 0.02, "{plainly} against {known} of the truth");
    }
}

fn outer_entry(x: &Factors, i: u32, j: u32) -> f64 {
    (0..x.rank()).map(|k| x.u[(i as usize, k)] * x.v[(j as usize, k)]).sum()
}

#[test]
fn what_is_never_left_or_reached_is_counted_and_intervals_hold_the_published_memberships() {
    let (_, counts) = planted(30, 50, 2, 100, 2);
    let mut triplets: Vec<_> = counts.triplets().filter(|t| t.1 < 47).collect();
    triplets.retain(|t| t.0 != 7);
    let data = Data::between(&two_sided(Csr::from_triplets(30, 50, &triplets).unwrap()), WeightPower::One).unwrap();
    let count = |reason: &str| data.chain().ledger().iter().filter(|e| e.reason == reason).map(|e| e.count).sum::<u64>();
    assert_eq!(count("never-left"), 1);
    assert!(count("never-reached") >= 3);
    let options = FitOptions::default().rank(Rank::Given(2)).unwrap().refit(RefitKind::Likelihood).bootstrap(3).unwrap();
    let model = fit(&data, &options, &mut Silent).unwrap();
    let (u, found) = (model.memberships(), &model.intervals.as_ref().unwrap().uncertainty);
    assert!(found.latent.is_none());
    assert!((0..u.rows()).all(|i| (0..2).all(|k| found.lower[(i, k)] <= u[(i, k)] && u[(i, k)] <= found.upper[(i, k)])));
}
