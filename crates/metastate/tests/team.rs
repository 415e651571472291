//! Several processes at one problem, played by threads: the same bits as one alone.

use std::sync::{Arc, Barrier, Mutex};

use metastate::fit::{Lambda, RefitKind};
use metastate::linalg::team::{Share, Team};
use metastate::simulate::soft_city;
use metastate::solve::StopRule;
use metastate::{Counts, Csr, Data, Estimate, FitOptions, Model, Operator, Silent, SparseOperator, fit};

/// Threads that hand each other numbers and bytes.
#[derive(Debug)]
struct Threads {
    rank: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    barrier: Barrier,
    numbers: Mutex<Vec<Vec<f64>>>,
    parcels: Mutex<Vec<Vec<Vec<u8>>>>,
}

impl Team for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.numbers.lock().unwrap().len()
    }

    fn gather(&self, whole: &mut [f64], ends: &[usize]) {
        let start = |r: usize| if r == 0 { 0 } else { ends[r - 1] };
        self.shared.numbers.lock().unwrap()[self.rank] = whole[start(self.rank)..ends[self.rank]].to_vec();
        self.shared.barrier.wait();
        self.shared.numbers.lock().unwrap().iter().enumerate().for_each(|(r, theirs)| whole[start(r)..ends[r]].copy_from_slice(theirs));
        self.shared.barrier.wait();
    }

    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.shared.parcels.lock().unwrap()[self.rank] = parcels;
        self.shared.barrier.wait();
        let mine = self.shared.parcels.lock().unwrap().iter().map(|theirs| theirs[self.rank].clone()).collect();
        self.shared.barrier.wait();
        mine
    }
}

/// Does `work` once a process, and hands back what each of them found.
fn together<T: Send>(size: usize, work: impl Fn(Arc<dyn Team>) -> T + Sync) -> Vec<T> {
    let shared = Arc::new(Shared {
        barrier: Barrier::new(size),
        numbers: Mutex::new(vec![Vec::new(); size]),
        parcels: Mutex::new(vec![Vec::new(); size]),
    });
    std::thread::scope(|scope| {
        let run = |rank: usize| {
            let team = Arc::new(Threads { rank, shared: Arc::clone(&shared) });
            let work = &work;
            // A pool of its own: the others may wait for it while they hold the threads of the common one.
            scope.spawn(move || rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| work(team)))
        };
        let all: Vec<_> = (0..size).map(run).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// What each process is given: every so many rows, as shards are dealt.
fn dealt(counts: &Counts, team: &Arc<dyn Team>) -> Counts {
    let (d, csr) = (counts.states(), counts.csr());
    let share = Share::balanced(Arc::clone(team), |i| 1.0 + csr.row(i).0.len() as f64, d);
    let own = csr.triplets().filter(|t| t.0 as usize % team.size() == team.rank());
    let shared = Csr::dealt(d, d, own, share);
    let held = shared.triplets().count();
    assert!(held < csr.nonzeros() * 2 / (team.size() + 1), "{held} of {}", csr.nonzeros());
    Counts::from_csr(counts.index().clone(), shared).unwrap()
}

fn city() -> Counts {
    // 2,480 cells, so that the last block of rows is not whole.
    soft_city(62, 40, 5, 3).unwrap().sample_counts(120_000, 3).unwrap()
}

fn same(one: &Model, other: &Model, who: &str) {
    assert_eq!(one.solution.factors, other.solution.factors, "{who}");
    assert_eq!(
        (one.lambda_max, one.solution.lambda, one.solution.objective),
        (other.lambda_max, other.solution.lambda, other.solution.objective)
    );
    assert_eq!((one.solution.sweeps, one.rank(), one.factors()), (other.solution.sweeps, other.rank(), other.factors()), "{who}");
    assert_eq!(one.zones.labels, other.zones.labels);
}

#[test]
fn products_and_sums_have_the_same_bits() {
    let counts = city();
    let alone = SparseOperator::new(counts.csr().clone(), vec![7]).unwrap();
    let x = metastate::Mat::from_fn(counts.states(), 5, |i, j| ((i * 5 + j) as f64).sin());
    let weights: Vec<f64> = (0..counts.states()).map(|i| 1.0 + (i % 3) as f64).collect();
    let look = |p: &SparseOperator| {
        let (mut a, mut b) = (metastate::Mat::default(), metastate::Mat::default());
        p.apply(&x, &mut a);
        p.apply_transpose(&x, &mut b);
        (a, b, p.weighted_norm_squared(&weights), p.nonzeros())
    };
    let expected = look(&alone);
    for size in [2, 3, 5] {
        for found in together(size, |team| look(&SparseOperator::new(dealt(&counts, &team).csr().clone(), vec![7]).unwrap())) {
            assert!(found == expected, "{size} processes");
        }
    }
    let keep: Vec<usize> = (0..counts.states()).filter(|i| i % 7 != 2).collect();
    let whole = counts.csr().restrict(&keep);
    for (rows, columns, transposed) in together(3, |team| {
        let part = dealt(&counts, &team).csr().restrict(&keep);
        (part.row_sums(), part.column_sums(), part.transposed().row_sums())
    }) {
        assert_eq!((rows, columns), (whole.row_sums(), whole.column_sums()));
        assert_eq!(transposed, whole.transposed().row_sums());
    }
}

#[test]
fn a_given_lambda_is_solved_proven_and_refitted_as_by_one() {
    let counts = city();
    let options = FitOptions::default().lambda(Lambda::Ratio(0.1)).unwrap().refit(RefitKind::Likelihood).prior(3.0).unwrap();
    let options = options.max_rank(8).unwrap().stop(StopRule::Certificate { gap: 1e-3 });
    let run = |counts: &Counts| fit(&Data::from_counts(counts, &Estimate::default()).unwrap(), &options, &mut Silent).unwrap();
    let alone = run(&counts);
    assert!(alone.moves.is_some() && alone.rank() > 2, "{}", alone.rank());
    for size in [2, 4] {
        for found in together(size, |team| run(&dealt(&counts, &team))) {
            same(&alone, &found, &format!("{size} processes"));
            // Up to 3,000 states one process proves by a decomposition that several do not make: their bound holds, and may be lower.
            let other = found.proof().unwrap();
            assert!(other.lower_bound() > 0.0 && other.lower_bound() <= alone.solution.objective.value, "{other:?}");
            assert!(found.moves.is_none() && found.hints.iter().any(|h| h.contains("several processes")));
        }
    }
}

#[test]
fn rank_prior_and_lambda_are_chosen_as_by_one() {
    let counts = city();
    let options = FitOptions::default().folds(3).unwrap().max_rank(6).unwrap();
    let run = |counts: &Counts| fit(&Data::from_counts(counts, &Estimate::default()).unwrap(), &options, &mut Silent).unwrap();
    let alone = run(&counts);
    for found in together(3, |team| run(&dealt(&counts, &team))) {
        same(&alone, &found, "3 processes");
        let (one, other) = (alone.chosen.as_ref().unwrap(), found.chosen.as_ref().unwrap());
        assert_eq!(one.choice, other.choice);
        println!("{}", other.sentence);
    }
}

#[test]
fn states_that_say_nothing_are_left_out_as_by_one() {
    // 0 .. 1399 in a ring; from 1400 on a chain that ends: never left, then leading only to what was left out; and one never seen.
    let ring = (0..1400u32).flat_map(|i| [(i, (i + 1) % 1400, 3.0), (i, (i + 9) % 1400, 2.0)]);
    let tail = [(5, 1400, 1.0), (1400, 1401, 1.0), (1401, 1402, 2.0), (1400, 1402, 1.0)];
    let triplets: Vec<(u32, u32, f64)> = ring.chain(tail).collect();
    let counts = Counts::from_triplets(metastate::StateIndex::numbered(1404), &triplets).unwrap();
    for by in [metastate::WeightsBy::Departures, metastate::WeightsBy::Arrivals] {
        let estimate = Estimate { weights_by: by, ..Estimate::default() };
        let look = |counts: &Counts| {
            let data = Data::from_counts(counts, &estimate).unwrap();
            let chain = data.chain();
            (chain.kept().to_vec(), chain.xi().to_vec(), chain.departures().to_vec(), chain.ledger().to_string(), chain.transitions())
        };
        let alone = look(&counts);
        assert!(alone.0.len() < 1404);
        together(4, |team| look(&dealt(&counts, &team))).into_iter().for_each(|found| assert_eq!(found, alone));
    }
}
