//! Kinetics of planted chains whose times are known: what neither prior nor penalty may change, and what is infinite.

mod common;

use metastate::Mat;
use metastate::kinetics::{
    Classes, Flux, Kinetics, Microstates, Observations, Scale, fates_of_chain, interval, mean_first_passage, modes_of, reversible,
    with_detailed_balance,
};
use metastate::solve::Silent;
use metastate::workspace::small;
use metastate::{Chain, Connected, CountMode, Counts, Csr, Data, DenseOperator, Estimate, FitOptions, Given, Operator, StateIndex, fit};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Three groups of `size` states. Inside a group a walker goes around with a drift (nothing is reversible), and leaves it with a small probability.
fn rings(size: usize) -> Mat {
    let d = 3 * size;
    let leave = [[0.0, 0.004, 0.001], [0.002, 0.0, 0.006], [0.008, 0.0005, 0.0]];
    let mut p = Mat::zeros(d, d);
    for i in 0..d {
        let (group, at) = (i / size, i % size);
        let out: f64 = leave[group].iter().sum();
        for (step, share) in [(1, 0.5), (2, 0.3), (5, 0.2)] {
            p[(i, group * size + (at + step) % size)] += (1.0 - out) * share;
        }
        for (other, q) in leave[group].iter().enumerate() {
            p[(i, other * size + at)] += q;
        }
    }
    p
}

/// The stationary law of the three groups.
fn shares() -> Vec<f64> {
    let k = Mat::from_vec(3, 3, vec![0.995, 0.004, 0.001, 0.002, 0.992, 0.006, 0.008, 0.0005, 0.9915]).unwrap();
    let mut power = k;
    for _ in 0..40 {
        power = Mat::from_fn(3, 3, |i, j| (0..3).map(|l| power[(i, l)] * power[(l, j)]).sum());
        let sums: Vec<f64> = (0..3).map(|i| power.row(i).iter().sum()).collect();
        power = Mat::from_fn(3, 3, |i, j| power[(i, j)] / sums[i]);
    }
    power.row(0).to_vec()
}

/// Memberships that are one in the group and zero elsewhere, drawn towards their mean by what a prior would.
fn memberships(size: usize, shrunk: f64) -> Mat {
    let mean = shares();
    Mat::from_fn(3 * size, 3, |i, j| (1.0 - shrunk) * f64::from(u8::from(i / size == j)) + shrunk * mean[j])
}

fn times(p: &Mat) -> Vec<f64> {
    let mut moduli: Vec<f64> = small::eigenvalues(p).unwrap().iter().map(|(a, b)| a.hypot(*b)).collect();
    moduli.sort_by(|a, b| b.total_cmp(a));
    moduli.iter().skip(1).map(|m| -1.0 / m.ln()).collect()
}

fn estimate(p: &Mat, u: &Mat) -> Kinetics {
    let operator = DenseOperator::new(p.clone());
    let departures: Vec<f64> = (0..p.rows()).map(|i| 100.0 + i as f64).collect();
    Kinetics::estimate(u, &Observations { p: &operator, departures: &departures, overlap: 1.0, counted: false }, false, None).unwrap()
}

#[test]
fn shrinking_the_memberships_does_not_change_the_times() {
    let p = rings(8);
    let truth = times(&p);
    for shrunk in [0.0, 0.1, 0.6] {
        let found = estimate(&p, &memberships(8, shrunk));
        for place in 1..3 {
            let t = found.modes[place].timescale;
            assert!((t / truth[place - 1] - 1.0).abs() < 1e-6, "shrunk by {shrunk}: {t} for {}", truth[place - 1]);
        }
        assert!(found.carries && found.sentences.is_empty(), "{:?}", found.sentences);
        // P U = U K: drawn towards the stationary shares, the chain itself is found, too.
        assert!((found.chain[(0, 1)] - 0.004).abs() < 1e-6 && (found.chain[(2, 1)] - 0.0005).abs() < 1e-6, "{:?}", found.chain);
    }
}

#[test]
fn the_microstates_own_times_are_found_without_their_whole_spectrum() {
    let p = rings(40);
    let found = estimate(&p, &memberships(40, 0.2));
    let truth = times(&p);
    for place in 1..3 {
        assert!((found.microstates[place].timescale / truth[place - 1] - 1.0).abs() < 1e-6, "{:?}", found.microstates);
    }
}

#[test]
fn memberships_that_miss_the_slow_process_cannot_carry_it() {
    let p = rings(8);
    // Two meta-states that cut every group in halves.
    let u = Mat::from_fn(24, 2, |i, j| f64::from(u8::from((i % 8 < 4) == (j == 0))));
    let found = estimate(&p, &u);
    assert!(!found.carries && found.sentences.iter().any(|s| s.contains("cannot represent")), "{:?}", found.sentences);
}

#[test]
fn what_the_data_never_join_is_infinitely_far_apart() {
    let mut p = rings(6);
    // The third group by itself, with a state before it that is never reached again.
    for i in 0..18 {
        for j in 0..18 {
            if (i / 6 == 2) != (j / 6 == 2) {
                p[(i, j)] = 0.0;
            }
        }
        let sum: f64 = p.row(i).iter().sum();
        p.row_mut(i).iter_mut().for_each(|x| *x /= sum);
    }
    let found = estimate(&p, &memberships(6, 0.2));
    assert_eq!(found.structure.closed.iter().map(|c| c.members.clone()).collect::<Vec<_>>(), [vec![0, 1], vec![2]]);
    assert!(found.modes[1].timescale.is_infinite() && found.modes[2].timescale.is_finite());
    assert_eq!(mean_first_passage(&found.chain, 0, 2), f64::INFINITY);
    // 0.004 of what is left when the way to the third group is gone.
    let alone = estimate(&p, &memberships(6, 0.0));
    assert!((mean_first_passage(&alone.chain, 0, 1) - 249.75).abs() < 1e-6, "{:?}", alone.chain);
    assert!(found.sentences[0].contains("2 classes that no transition joins (12, 6 states)"), "{:?}", found.sentences);
    // One meta-state for both: it says so.
    let one = estimate(&p, &Mat::from_fn(18, 1, |_, _| 1.0));
    assert!(!one.carries && one.straddling == [0], "{:?}", one.sentences);
}

#[test]
fn absorbing_matrices_keep_their_transient_states_and_give_fates() {
    // The gambler's ruin on 0..=10 with p = 1/2: from i, the bank is broken with probability i / 10.
    let p = Mat::from_fn(11, 11, |i, j| match i {
        0 | 10 => f64::from(u8::from(i == j)),
        _ if i.abs_diff(j) == 1 => 0.5,
        _ => 0.0,
    });
    let chain = Chain::from_dense(p.clone(), Given::default()).unwrap();
    assert_eq!((chain.states(), chain.ledger().is_empty()), (11, true));
    assert!(chain.xi().iter().all(|x| (x - 1.0 / 11.0).abs() < 1e-15));
    let micro = Microstates::new(chain.p(), &Mat::from_fn(11, 1, |_, _| 1.0)).unwrap();
    let fates = micro.fates(&[(0..11).map(|i| i == 10).collect(), (0..11).map(|i| i == 0).collect()]).unwrap();
    for i in 0..11 {
        assert!((fates[(i, 0)] - i as f64 / 10.0).abs() < 1e-14 && (fates[(i, 0)] + fates[(i, 1)] - 1.0).abs() < 1e-14);
    }
    // Mean duration i (10 - i).
    let ends: Vec<bool> = (0..11).map(|i| i == 0 || i == 10).collect();
    let steps = micro.steps_to(&ends).unwrap();
    assert!((0..11).all(|i| (steps[i] - (i * (10 - i)) as f64).abs() < 1e-12), "{steps:?}");
    // The same on a small chain of meta-states.
    let (structure, found) = fates_of_chain(&p);
    assert_eq!((structure.closed.len(), structure.transient.len()), (2, 9));
    assert!((found[(3, 1)] - 0.3).abs() < 1e-14);
    // The largest connected class alone, said in the ledger.
    let largest = Chain::from_dense(p, Given { connected: Connected::Largest(1), ..Given::default() }).unwrap();
    assert_eq!((largest.states(), largest.kept()[0]), (9, 1));
    assert!(largest.ledger().iter().any(|e| e.reason == "not-in-the-largest-connected-class" && e.count == 2));
}

#[test]
fn the_largest_class_of_counts_is_kept_and_rare_pairs_do_not_join() {
    let pairs = [(0, 1), (1, 0), (0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3), (2, 3)];
    let counts = Counts::from_pairs(StateIndex::numbered(5), pairs).unwrap();
    let kept = |connected| Chain::estimate(&counts, &Estimate { connected, ..Estimate::default() }).unwrap().kept().to_vec();
    assert_eq!(kept(Connected::Largest(1)), [0, 1, 2]);
    assert_eq!(kept(Connected::Largest(2)), [0, 1]);
    assert_eq!(Classes::of(Chain::estimate(&counts, &Estimate::default()).unwrap().p()).sizes.len(), 2);
}

#[test]
fn float32_rows_are_taken_and_told() {
    let p = Mat::from_fn(3, 3, |i, j| f64::from((1.0f32 + (i + 2 * j) as f32) / (9.0 + 3.0 * i as f32)));
    let chain = Chain::from_dense(p.clone(), Given::default()).unwrap();
    assert!((0..3).all(|i| {
        let mut s = 0.0;
        chain.p().row(i).for_each(3, |_, x| s += x);
        (s - 1.0).abs() < 1e-15
    }));
    let mut off = p;
    off[(0, 0)] += 5e-7;
    let told = Chain::from_dense(off.clone(), Given::default()).unwrap();
    assert!(told.ledger().iter().any(|e| e.reason == "row-divided-by-its-sum" && e.count >= 1));
    off[(0, 0)] += 5e-6;
    assert!(Chain::from_dense(off, Given::default()).is_err());
}

#[test]
fn detailed_balance_holds_on_all_states_and_on_meta_states() {
    let counts = Csr::from_triplets(
        3,
        3,
        &[(0, 0, 50.0), (0, 1, 9.0), (1, 0, 4.0), (1, 1, 30.0), (1, 2, 6.0), (2, 1, 5.0), (2, 2, 40.0), (2, 0, 1.0)],
    )
    .unwrap();
    let found = reversible(&counts).unwrap();
    let (mut p, law) = (Mat::zeros(3, 3), found.law());
    (0..3).for_each(|i| found.operator().row(i).for_each(3, |j, x| p[(i, j)] = x));
    for i in 0..3 {
        assert!((p.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        (0..3).for_each(|j| assert!((law[i] * p[(i, j)] - law[j] * p[(j, i)]).abs() < 1e-12));
    }
    // No reversible chain nearby is more likely.
    let worth = |x: &Mat| {
        counts.triplets().map(|(i, j, n)| n * (x[(i as usize, j as usize)] / x.row(i as usize).iter().sum::<f64>()).ln()).sum::<f64>()
    };
    let flows = Mat::from_fn(3, 3, |i, j| law[i] * p[(i, j)]);
    let best = worth(&flows);
    for (i, j) in [(0, 1), (1, 2), (0, 2), (0, 0), (2, 2)] {
        for factor in [0.98, 1.02] {
            let mut other = flows.clone();
            other[(i, j)] *= factor;
            if i != j {
                other[(j, i)] *= factor;
            }
            assert!(worth(&other) < best, "({i}, {j}) {factor}");
        }
    }
    let chain = with_detailed_balance(&Mat::from_vec(3, 3, vec![0.8, 0.15, 0.05, 0.05, 0.9, 0.05, 0.1, 0.1, 0.8]).unwrap());
    // A cycle of three has the same product both ways.
    assert!((chain[(0, 1)] * chain[(1, 2)] * chain[(2, 0)] - chain[(0, 2)] * chain[(2, 1)] * chain[(1, 0)]).abs() < 1e-15);
}

#[test]
fn the_reactive_flux_is_conserved_and_its_rate_is_that_of_the_passages() {
    let chain = Mat::from_vec(4, 4, vec![0.9, 0.06, 0.04, 0.0, 0.1, 0.7, 0.1, 0.1, 0.02, 0.08, 0.8, 0.1, 0.0, 0.05, 0.1, 0.85]).unwrap();
    let flux = Flux::of_chain(&chain, &[0], &[3]).unwrap();
    for j in [1, 2] {
        let (into, out): (f64, f64) = ((0..4).map(|k| flux.gross[(k, j)]).sum(), (0..4).map(|k| flux.gross[(j, k)]).sum());
        assert!((into - out).abs() < 1e-15, "{j}");
    }
    let arriving: f64 = (0..3).map(|k| flux.gross[(k, 3)]).sum();
    assert!((arriving - flux.total).abs() < 1e-15);
    // Renewal: every passage from A to B and back takes m_AB + m_BA steps in the mean.
    let cycle = mean_first_passage(&chain, 0, 3) + mean_first_passage(&chain, 3, 0);
    assert!((flux.total * cycle - 1.0).abs() < 1e-12, "{}", flux.total * cycle);
    // One over the rate is the mean time from A to B.
    assert!((flux.rate * mean_first_passage(&chain, 0, 3) - 1.0).abs() < 1e-12);
    let ways = flux.pathways(&[0], &[3], 1.0);
    assert!(
        (ways.iter().map(|w| w.flux).sum::<f64>() - flux.total).abs() < 1e-12 && ways.windows(2).all(|w| w[0].flux >= w[1].flux - 1e-15)
    );
    // The states' own chain gives the same where every state is its own part.
    let micro = Microstates::new(&DenseOperator::new(chain.clone()), &Mat::from_fn(4, 1, |_, _| 1.0)).unwrap();
    let set = |k: usize| (0..4).map(|i| i == k).collect::<Vec<bool>>();
    let same = micro.flux(&set(0), &set(3), &[0, 1, 2, 3], 4).unwrap();
    assert!((same.total - flux.total).abs() < 1e-14 && (same.rate - flux.rate).abs() < 1e-14);
}

fn walk(p: &Mat, frames: usize, seed: u64) -> Vec<Option<u32>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut now = 0usize;
    (0..frames)
        .map(|_| {
            let (mut x, mut next) = (rng.random_range(0.0..1.0), 0);
            while next + 1 < p.cols() && x >= p[(now, next)] {
                x -= p[(now, next)];
                next += 1;
            }
            now = next;
            Some(now as u32)
        })
        .collect()
}

/// The fit of issue 24: whatever the prior, the times are those of the data, and their interval holds the truth.
#[test]
fn a_prior_changes_the_factors_and_not_the_times() {
    let p = rings(6);
    let truth = times(&p);
    let frames = walk(&p, 60_000, 3);
    let counts = Counts::from_trajectories(StateIndex::numbered(18), [&frames], 2, CountMode::Sliding).unwrap();
    let rows: Vec<u32> = frames.iter().flatten().copied().collect();
    let data = Data::from_frames(&counts, &rows, &Estimate::default()).unwrap();
    let mut found = Vec::new();
    for prior in [0.0, 100.0] {
        let options = FitOptions::default().rank(metastate::fit::Rank::Given(3)).unwrap().prior(prior).unwrap().bootstrap(40).unwrap();
        let model = fit(&data, &options, &mut Silent).unwrap();
        let shrunk = modes_of(model.latent_chain().unwrap().k(), model.latent_chain().unwrap().k())[1].timescale;
        let own = &model.moves().unwrap().kinetics;
        let (low, high) = own.timescale_intervals(0.9)[0];
        assert!(2.0 * low < truth[0] && truth[0] < 2.0 * high, "{low} {high} {}", truth[0]);
        found.push((shrunk, own.modes[1].timescale));
        assert!(own.lags.len() >= 3 && own.carries);
    }
    let ([(free, first), (shrunk, second)], share) = ([found[0], found[1]], 0.02);
    assert!((first / second - 1.0).abs() < share, "{first} {second}");
    assert!(shrunk < 0.8 * free, "the prior must matter to the factors: {free} {shrunk}");
}

/// A trajectory of the three groups, with the memberships planted.
fn counted(frames: usize, seed: u64) -> (Data, Mat) {
    let frames = walk(&rings(6), frames, seed);
    let counts = Counts::from_trajectories(StateIndex::numbered(18), [&frames], 1, CountMode::Sliding).unwrap();
    let rows: Vec<u32> = frames.iter().flatten().copied().collect();
    (Data::from_frames(&counts, &rows, &Estimate::default()).unwrap(), memberships(6, 0.0))
}

/// What a part adds to a passage time, by one more linear system, is what the time changes by when the counts are.
#[test]
fn what_a_part_adds_to_a_passage_time_is_its_derivative() {
    let (data, u) = counted(20_000, 5);
    let part: Vec<usize> = (0..18).map(|i| i / 6).collect();
    let states = |counts: &Csr| {
        let left = counts.row_sums();
        let mut p = Mat::zeros(18, 18);
        counts.triplets().for_each(|(i, j, n)| p[(i as usize, j as usize)] += n / left[i as usize]);
        Microstates::weighted(&DenseOperator::new(p), &u, left).unwrap()
    };
    let passage = |counts: &Csr| states(counts).passage_between(&part, 3).unwrap();
    let uncertain = data.parts().unwrap().uncertain(false, false, 0).unwrap();
    let metastate::workspace::bootstrap::Resample::Blocks(blocks) = uncertain.data else { panic!("a trajectory has blocks") };
    let together: Vec<(u32, u32, f64)> = blocks.iter().flat_map(Csr::triplets).collect();
    let whole = Csr::from_triplets(18, 18, &together).unwrap();
    let all = passage(&whole);
    let lighter = states(&whole).passage_lighter(&part, 3, &all, &uncertain).unwrap();
    let mut compared = 0;
    for (b, block) in blocks.iter().enumerate().step_by(7) {
        let less: Vec<(u32, u32, f64)> = whole.triplets().chain(block.triplets().map(|(i, j, n)| (i, j, -0.1 * n))).collect();
        let exact = passage(&Csr::from_triplets(18, 18, &less).unwrap());
        for (from, to) in [(0, 1), (0, 2), (1, 0), (2, 1)] {
            let (told, is) = ((lighter[b][(from, to)] / all[(from, to)]).ln(), (exact[(from, to)] / all[(from, to)]).ln());
            assert!((told - is).abs() < 0.05 * is.abs() + 1e-5, "block {b}, {from} to {to}: {told:e}, not {is:e}");
            compared += usize::from(is.abs() > 1e-3);
        }
    }
    assert!(compared > 5, "only {compared} blocks change anything");
}

/// Intervals of 90 % hold the truth in about nine of ten trajectories; `docs/kinetics.md` has it at length.
#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let p = rings(6);
    let truth = times(&p)[0];
    let flat = Mat::from_fn(18, 1, |_, _| 1.0);
    let part: Vec<usize> = (0..18).map(|i| i / 6).collect();
    let states = Microstates::new(&DenseOperator::new(p), &flat).unwrap();
    let passage = states.passage_between(&part, 3).unwrap()[(0, 2)];
    let (mut held, mut held_passage, runs) = (0, 0, 60);
    for seed in 0..runs {
        let (data, u) = counted(6000, 100 + seed);
        let chain = data.chain();
        let uncertain = data.parts().unwrap().uncertain(false, false, 0).unwrap();
        let observed = Observations { p: chain.p(), departures: chain.departures(), overlap: 1.0, counted: true };
        let found = Kinetics::estimate(&u, &observed, false, Some(&uncertain)).unwrap();
        let (low, high) = found.timescale_intervals(0.9)[0];
        held += usize::from(low <= truth && truth <= high);
        let own = Microstates::weighted(chain.p(), &u, chain.departures().to_vec()).unwrap();
        let all = own.passage_between(&part, 3).unwrap();
        let lighter = own.passage_lighter(&part, 3, &all, &uncertain).unwrap();
        let (low, high) = interval(all[(0, 2)], lighter.iter().map(|m| m[(0, 2)]), Scale::Times, 0.9);
        held_passage += usize::from(low <= passage && passage <= high);
    }
    assert!((48..60).contains(&held) && (48..60).contains(&held_passage), "{held} and {held_passage} of {runs}");
}
