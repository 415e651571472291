//! Algorithm 1 as a whole: ranks, reasons to stop, resuming, threads, and the steps that change the number of columns.

mod common;

use common::{
    Stream, exact, exact_dense, formed, outer, sampled, scaled, solved, sparse_with_near_absorbing_states, verified, widely_weighted,
};
use metastate::simulate::planted_groups;
use metastate::solve::{
    BbFormula, Control, Event, Factors, LocalStop, Observer, Phase, Progress, Removal, Settings, Silent, Snapshot, Solution, Solver, Start,
    Status, StopRule, resume, solve,
};
use metastate::workspace::grow::{self, Append, AscentSearch};
use metastate::workspace::kkt::{Products, multiplier_and_errors};
use metastate::workspace::shrink;
use metastate::{Chain, Estimate, Given, Mat};

fn certified(gap: f64) -> Settings {
    Settings { stop: StopRule::Certificate { gap }, ..Settings::default() }
}

#[test]
fn planted_ranks_are_found() {
    let chain = exact(200, 4, 1);
    // From so dear that one column is best to so cheap that all four are worth their price.
    let ranks: Vec<usize> = [0.5, 5e-2, 5e-3]
        .iter()
        .map(|share| {
            let solution = solved(&scaled(&chain, *share), &Settings::default());
            assert_eq!(solution.status, Status::Certified, "{share:e}");
            assert!(gap(&solution) <= 1e-3, "{share:e}: {}", gap(&solution));
            println!("{share:e}: rank {}, gap {:.1e}, {} sweeps", solution.rank(), gap(&solution), solution.sweeps);
            solution.rank()
        })
        .collect();
    println!("ranks {ranks:?}");
    assert_eq!((ranks[0], ranks[2]), (1, 4), "{ranks:?}");
    assert!(ranks.is_sorted(), "a lower price never means fewer columns here: {ranks:?}");
}

#[test]
fn every_fixture_passes_verify() {
    let fixtures = [
        ("exact, as factors", exact(120, 3, 2), 1e-3),
        ("exact, dense", exact_dense(80, 3, 3), 1e-4),
        ("sampled", sampled(80, 3, 60_000, 4), 5e-3),
        ("near-absorbing", sparse_with_near_absorbing_states(121, 4, 5), 1e-2),
        ("widely weighted", widely_weighted(60, 3, 6), 1e-2),
        ("groups", Chain::estimate(&planted_groups(300, 4, 40, 7).unwrap().counts, &Estimate::default()).unwrap(), 2e-2),
    ];
    let solvers = [Solver::Fast, Solver::PalmBb(BbFormula::Alternating), Solver::PalmLipschitz];
    for (name, chain, share) in &fixtures {
        let problem = scaled(chain, *share);
        for solver in solvers {
            let settings = Settings { solver, max_rank: 8, max_sweeps: 150, ..Settings::default() };
            let solution = solved(&problem, &settings);
            println!("{name}, {solver:?}: {:?}, rank {}, gap {:.1e}", solution.status, solution.rank(), gap(&solution));
            assert!(gap(&solution) > -1e-12 && solution.rank() <= 8);
            // Meta-states come by mass, largest first.
            let mass: Vec<f64> =
                (0..solution.rank()).map(|j| solution.factors.u.column(j).iter().zip(chain.weights()).map(|(u, w)| u * w).sum()).collect();
            assert!(mass.windows(2).all(|m| m[0] >= m[1] * (1.0 - 1e-12)), "{mass:?}");
        }
    }
}

#[test]
fn status_words() {
    let words = [
        (Status::Certified, "certified"),
        (Status::Stationary, "stationary"),
        (Status::Early, "early"),
        (Status::RankCap, "rank-cap"),
        (Status::IterationLimit, "iteration-limit"),
        (Status::TimeLimit, "time-limit"),
        (Status::Interrupted, "interrupted"),
    ];
    words.iter().for_each(|(status, word)| assert_eq!(status.as_str(), *word));
}

#[test]
fn too_few_columns_or_sweeps() {
    let chain = exact(120, 4, 8);
    let problem = scaled(&chain, 1e-4);
    let capped = solved(&problem, &Settings { max_rank: 2, ..certified(1e-5) });
    assert_eq!((capped.status, capped.rank()), (Status::RankCap, 2));
    assert!(gap(&capped) > 1e-5);
    for sweeps in [1, 4, 7, 33] {
        let settings = Settings { max_sweeps: sweeps, start: Start::Random, start_rank: Some(6), ..certified(1e-9) };
        let limited = solved(&problem, &settings);
        assert_eq!((limited.status, limited.sweeps), (Status::IterationLimit, sweeps));
    }
}

/// Says stop at its k-th question, and counts how often it is asked again afterwards.
struct Stop {
    after: usize,
    with: Control,
    asked: usize,
    sweeps_after: usize,
    phase: Option<Phase>,
}

impl Observer for Stop {
    fn progress(&mut self, progress: &Progress) -> Control {
        self.asked += 1;
        if self.asked == self.after {
            self.phase = Some(progress.phase);
        }
        if self.asked > self.after && progress.phase == Phase::Solving {
            self.sweeps_after += 1;
        }
        if self.asked >= self.after { self.with } else { Control::Continue }
    }
}

#[test]
fn a_stop_from_outside_leaves_a_feasible_point() {
    let chain = sampled(80, 3, 40_000, 9);
    let problem = scaled(&chain, 1e-3);
    let mut phases = Vec::new();
    for solver in [Solver::Fast, Solver::PalmBb(BbFormula::default())] {
        for (with, status) in [(Control::Interrupt, Status::Interrupted), (Control::TimeUp, Status::TimeLimit)] {
            for after in [1, 3, 20, 45, 90] {
                let mut stop = Stop { after, with, asked: 0, sweeps_after: 0, phase: None };
                let solution = solve(&problem, &Settings { solver, ..certified(1e-9) }, &mut stop).unwrap();
                assert_eq!(solution.status, status, "after {after}");
                assert_eq!(stop.sweeps_after, 0, "no sweep after the word");
                verified(&problem, &solution);
                phases.push(stop.phase.unwrap());
            }
        }
    }
    assert!(phases.contains(&Phase::Relaxing) && phases.contains(&Phase::Solving), "{phases:?}");
}

fn bound(s: &Solution) -> f64 {
    s.proof.as_ref().map_or(f64::NAN, |p| p.lower_bound())
}

fn gap(s: &Solution) -> f64 {
    s.certified_gap().unwrap_or(f64::NAN)
}

fn bits(m: &Mat) -> Vec<u64> {
    m.as_slice().iter().map(|x| x.to_bits()).collect()
}

fn assert_same_bits(a: &Solution, b: &Solution, what: &str) {
    assert_eq!((a.status, a.rank(), a.sweeps, a.rounds), (b.status, b.rank(), b.sweeps, b.rounds), "{what}");
    assert!(bits(&a.factors.u) == bits(&b.factors.u), "{what}: U differs");
    assert!(bits(&a.factors.v) == bits(&b.factors.v), "{what}: V differs");
    assert_eq!(a.objective.value.to_bits(), b.objective.value.to_bits(), "{what}");
    assert_eq!(bound(a).to_bits(), bound(b).to_bits(), "{what}");
    assert_eq!(a.mu, b.mu, "{what}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    // More than one block of rows (512), so that there is something to share.
    let sparse = Chain::estimate(&planted_groups(1100, 5, 20, 10).unwrap().counts, &Estimate::default()).unwrap();
    let dense = exact_dense(600, 3, 11);
    for (name, chain, share) in [("sparse", &sparse, 1e-2), ("dense", &dense, 1e-3)] {
        for solver in [Solver::Fast, Solver::PalmBb(BbFormula::default())] {
            let problem = scaled(chain, share);
            let settings = Settings { solver, max_rank: 6, max_sweeps: 12, ..certified(1e-3) };
            let run = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| solve(&problem, &settings, &mut Silent).unwrap())
            };
            let one = run(1);
            assert_same_bits(&one, &run(2), &format!("{name}, {solver:?}, two threads"));
            assert_same_bits(&one, &run(8), &format!("{name}, {solver:?}, eight threads"));
        }
    }
}

#[derive(Default)]
struct Record {
    snapshots: Vec<Snapshot>,
    events: Vec<Event>,
}

impl Observer for Record {
    fn safe_point(&mut self, snapshot: &Snapshot) {
        self.snapshots.push(snapshot.clone());
    }

    fn event(&mut self, event: &Event, _: &Progress) {
        self.events.push(*event);
    }
}

#[test]
fn a_resumed_run_ends_at_the_same_bits() {
    let chain = sampled(60, 3, 30_000, 12);
    let problem = scaled(&chain, 2e-3);
    let palm = Solver::PalmBb(BbFormula::default());
    let cases = [
        ("fast", Settings { start_rank: Some(1), max_rank: 8, max_sweeps: 700, ..certified(1e-4) }),
        // Slow, so that safe points lie within a local solve.
        (
            "slow",
            Settings {
                solver: Solver::PalmLipschitz,
                start_rank: Some(3),
                tolerance: 1e-9,
                max_sweeps: 900,
                stop: StopRule::Exact { tolerance: 10.0 },
                ..Settings::default()
            },
        ),
        ("palm", Settings { solver: palm, start_rank: Some(1), max_rank: 4, max_sweeps: 400, ..certified(1e-4) }),
        ("paper", Settings { max_rank: 12, max_sweeps: 400, ..Settings::paper(6, 1e-6) }),
        ("early", Settings { start_rank: Some(1), max_rank: 5, stop: StopRule::Early { directions: 500 }, ..Settings::default() }),
    ];
    for (name, settings) in cases {
        let mut record = Record::default();
        let whole = solve(&problem, &settings, &mut record).unwrap();
        verified(&problem, &whole);
        let n = record.snapshots.len();
        println!("{name}: {n} safe points, {:?}, rank {}, {} sweeps", whole.status, whole.rank(), whole.sweeps);
        assert!(n >= 1, "{name}");
        // A few, and all that lie within a local solve.
        let within = (0..n).filter(|&k| !record.snapshots[k].values.is_empty());
        let picks: std::collections::BTreeSet<usize> = [0, n / 3, n / 2, n - 1].into_iter().chain(within).collect();
        for k in picks {
            let mut rest = Record::default();
            let again = resume(&problem, &settings, record.snapshots[k].clone(), &mut rest).unwrap();
            assert_same_bits(&whole, &again, &format!("{name}, from safe point {k} of {n}"));
            // The way there is the same, too.
            assert_eq!(rest.snapshots.len(), n - k, "{name}, from safe point {k}");
            for (a, b) in record.snapshots[k..].iter().zip(&rest.snapshots) {
                assert!(a.factors == b.factors && a.values == b.values && (a.round, a.sweeps) == (b.round, b.sweeps), "{name}, from {k}");
            }
        }
        if name == "fast" {
            assert!(n > 3 && record.events.iter().any(|e| matches!(e, Event::Appended { .. })), "{:?}", record.events);
        }
        if name == "slow" {
            assert!(record.snapshots.iter().any(|s| s.sweeps > 0 && !s.values.is_empty()), "none within a local solve");
        }
    }
}

#[test]
fn the_order_of_the_states_does_not_matter() {
    for (name, chain, share) in [("exact", exact_dense(60, 3, 13), 0.05), ("sampled", sampled(60, 3, 30_000, 14), 0.05)] {
        let d = chain.states();
        let mut order: Vec<usize> = (0..d).collect();
        let mut stream = Stream(15);
        (1..d).rev().for_each(|i| order.swap(i, stream.below(i + 1)));
        let p = formed(chain.p());
        let permuted = Mat::from_fn(d, d, |i, j| p[(order[i], order[j])]);
        let xi = order.iter().map(|&i| chain.xi()[i]).collect();
        let permuted = Chain::from_dense(permuted, Given::weights(xi)).unwrap();

        let (here, there) = (scaled(&chain, share), scaled(&permuted, share));
        let settings = Settings { tolerance: 1e-9, ..certified(1e-9) };
        let (a, b) = (solved(&here, &settings), solved(&there, &settings));
        assert!((a.objective.value / b.objective.value - 1.0).abs() < 1e-9, "{name}: {:e} {:e}", a.objective.value, b.objective.value);
        // And the objective itself, at one and the same point.
        let move_rows = |m: &Mat| Mat::from_fn(d, m.cols(), |i, j| m[(order[i], j)]);
        let moved = there.objective(&Factors { u: move_rows(&a.factors.u), v: move_rows(&a.factors.v) }).value;
        assert!((moved / a.objective.value - 1.0).abs() < 1e-12, "{name}");
    }
}

#[test]
fn split_columns_are_merged_without_changing_x() {
    let chain = sampled(60, 3, 30_000, 16);
    let problem = scaled(&chain, 1e-3);
    let x = Stream(17).factors(60, 4);
    // Column 1 twice and column 3 three times: the same V, shares of U.
    let (from, share) = ([0, 1, 1, 2, 3, 3, 3], [1.0, 0.3, 0.7, 1.0, 0.2, 0.5, 0.3]);
    let split = Factors { u: Mat::from_fn(60, 7, |i, k| share[k] * x.u[(i, from[k])]), v: x.v.select_columns(&from) };
    let before = outer(&x.u, &x.v);
    assert!(distance(&before, &outer(&split.u, &split.v)) < 1e-15);
    let norm = problem.data_norm2.sqrt();
    let merged = shrink::remove_redundant(&problem, &split, 1e-8 * norm, Removal::AllAtOnce).expect("there is something to merge");
    assert_eq!(merged.rank(), 4);
    let one = shrink::remove_redundant(&problem, &split, 1e-8 * norm, Removal::OneByOne).expect("there is something to merge");
    assert_eq!(one.rank(), 6);
    let unit = shrink::remove_redundant(&problem, &split, 1e-8 * norm, Removal::UnitAtoms).expect("there is something to merge");
    assert_eq!(unit.rank(), 4);
    assert!([&one, &unit].iter().all(|x| distance(&before, &outer(&x.u, &x.v)) < 1e-10));
    let moved = distance(&before, &outer(&merged.u, &merged.v));
    assert!(moved < 1e-10, "X moved by {moved:e}");
    let (f, g) = (problem.objective(&split).value, problem.objective(&merged).value);
    assert!((g / f - 1.0).abs() < 1e-9, "columns with one direction cost the same apart and together: {f:e} {g:e}");
    merged.u.as_slice().iter().for_each(|u| assert!(*u >= 0.0));
    (0..60).for_each(|i| assert!((merged.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12));
    // Nothing is left to merge, and nothing that differs is merged.
    assert!(shrink::remove_redundant(&problem, &merged, 1e-8 * norm, Removal::AllAtOnce).is_none());
    assert!(shrink::remove_redundant(&problem, &x, 1e-8 * norm, Removal::AllAtOnce).is_none());

    // In a run from such a start, the duplicates go: three hidden states need three columns.
    let chain = exact_dense(60, 3, 16);
    let problem = scaled(&chain, 1e-2);
    let mut record = Record::default();
    let start = Start::Given(Box::new(split));
    let solution = solve(&problem, &Settings { start, max_rank: 7, ..certified(1e-3) }, &mut record).unwrap();
    verified(&problem, &solution);
    assert!(solution.rank() < 7, "{:?}", record.events);
    assert!(record.events.iter().any(|e| matches!(e, Event::Removed { from: 7, .. })), "{:?}", record.events);
}

#[test]
fn rows_sum_to_one_when_columns_go() {
    let x = Stream(20).factors(30, 5);
    let mut shorter = x.clone();
    shorter.keep_columns(&[4, 1]);
    for i in 0..30 {
        let sum = x.u[(i, 4)] + x.u[(i, 1)];
        assert!((shorter.u[(i, 0)] - x.u[(i, 4)] / sum).abs() < 1e-15 && (shorter.u[(i, 1)] - x.u[(i, 1)] / sum).abs() < 1e-15);
        assert_eq!(shorter.v.row(i), [x.v[(i, 4)], x.v[(i, 1)]]);
    }
    // A state that belonged to the lost columns alone belongs to all that stay alike.
    let mut lonely = x;
    lonely.u.row_mut(3).copy_from_slice(&[1.0, 0.0, 0.0, 0.0, 0.0]);
    lonely.keep_columns(&[1, 2]);
    assert_eq!(lonely.u.row(3), [0.5, 0.5]);
}

fn distance(a: &Mat, b: &Mat) -> f64 {
    a.as_slice().iter().zip(b.as_slice()).fold(0.0, |m, (x, y)| m.max((x - y).abs()))
}

#[test]
fn appending_lowers_f_at_a_stationary_point() {
    let chain = exact_dense(80, 3, 18);
    let problem = scaled(&chain, 1e-4);
    let one = solved(&problem, &Settings { max_rank: 1, tolerance: 1e-9, ..certified(1e-6) });
    assert_eq!((one.rank(), one.status), (1, Status::RankCap));
    assert!(one.errors.rel_le1 < 1e-8 && one.errors.rel_le2 < 1e-8 && one.errors.ge > 1e-3, "{:?}", one.errors);
    let (mu, _) = multiplier_and_errors(&problem, &one.factors, &Products::at(&problem, &one.factors));
    let search = AscentSearch { starts: 16, steps: 40, seed: 1, thorough: false };
    let (support, found) = grow::ascend(&problem, &one.factors, &mu, &search, 1.0 + 1e-7);
    assert!(support > 1.0 && !found.is_empty() && found[0].value == support);
    let before = problem.objective(&one.factors).value;
    for at_once in [1, 8] {
        let append = Append { at_once, decrease: 1e-5, smallest_kappa: 1e-8 };
        let longer = grow::append(&problem, &one.factors, &found, &append).expect("a violation lowers F");
        assert_eq!(longer.rank(), 1 + at_once.min(found.len()));
        assert!(problem.objective(&longer).value < (1.0 - 1e-5) * before);
        (0..80).for_each(|i| assert!((longer.u.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12));
        (0..longer.rank()).for_each(|j| assert!((longer.v.column(j).iter().sum::<f64>() - 1.0).abs() < 1e-12));
        assert!(longer.u.as_slice().iter().chain(longer.v.as_slice()).all(|x| *x >= 0.0));
    }

    // Where one column is optimal there is no violation.
    let dear = problem.at_lambda(problem.data_norm2);
    let best = solved(&dear, &Settings { tolerance: 1e-9, ..certified(1e-9) });
    assert_eq!((best.rank(), best.status), (1, Status::Certified));
    let (mu, _) = multiplier_and_errors(&dear, &best.factors, &Products::at(&dear, &best.factors));
    let (support, found) = grow::ascend(&dear, &best.factors, &mu, &search, 1.0 + 1e-7);
    assert!(found.is_empty() && support <= 1.0 + 1e-7, "{support}");
}

#[test]
fn the_rules_of_the_paper() {
    let chain = exact(150, 4, 19);
    let problem = scaled(&chain, 1e-2);
    let best = solved(&problem, &certified(1e-3)).objective.value;

    let early = Settings { stop: StopRule::Early { directions: 5000 }, start_rank: Some(1), ..Settings::default() };
    let found = solved(&problem, &early);
    println!("early: {:?}, rank {}, F {:.3e} above", found.status, found.rank(), found.objective.value / best - 1.0);
    assert_eq!(found.status, Status::Early);
    assert!(found.rank() > 1 && found.objective.value >= best * (1.0 - 1e-3));
    let (mu, _) = multiplier_and_errors(&problem, &found.factors, &Products::at(&problem, &found.factors));
    let probe = grow::probe(&problem, &found.factors, &mu, 500, 99);
    assert!(probe.value <= 1.0 + 1e-3, "other random directions find nothing either: {}", probe.value);

    let exact_rule = Settings { stop: StopRule::Exact { tolerance: 1e-3 }, start_rank: Some(1), ..Settings::default() };
    let found = solved(&problem, &exact_rule);
    println!("exact: {:?}, rank {}, GE {:.1e}", found.status, found.rank(), found.errors.ge);
    assert_eq!(found.status, Status::Stationary);
    assert!(found.errors.ge <= 2e-3 && (found.objective.value / best - 1.0).abs() < 2e-3, "{:?}", found.errors);

    let paper = Settings { max_sweeps: 1000, ..Settings::paper(10, 1e-3 * problem.data_norm2.sqrt()) };
    assert_eq!(paper.local_stop, LocalStop::Decrease { window: 30, decrease: 1e-3 });
    let found = solved(&problem, &paper);
    println!("paper: {:?}, rank {}, F {:.3e} above", found.status, found.rank(), found.objective.value / best - 1.0);
    assert!(found.rank() <= 10 && found.objective.value >= best * (1.0 - 1e-3));

    // One price in raw units, one in units of the data: the same problem.
    assert_eq!(common::problem(&chain, problem.lambda).objective(&found.factors), problem.objective(&found.factors));
}
