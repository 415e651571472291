//! Controlled chains: the plan against value iteration on the model written out, planted chains with the rank not given, what was never tried, the bound against the loss itself, and held-out checks against the truth.

mod common;

use common::Stream;
use metastate::plan::{
    CheckSettings, Decisions, Log, Paid, Pairs, Plan, Records, Unit, check, latent_of_actions, loss_bound, rewards, with_untried,
};
use metastate::simulate::{Controlled, controlled};
use metastate::solve::Silent;
use metastate::{Data, Error, FitOptions, Mat, StateIndex, WeightPower, fit};

/// Values of the best policy by sweeps over all states: `p(pair, state)` written out, rewards of pairs, and which pairs there are.
fn value_iteration(pairs: &Pairs, p: &dyn Fn(usize) -> Vec<f64>, r: &[f64], allowed: &[bool], discount: f64) -> (Vec<f64>, Vec<f64>) {
    let rows: Vec<Vec<f64>> = (0..pairs.len()).map(p).collect();
    let mut v = vec![0.0; pairs.states()];
    let mut q = vec![0.0; pairs.len()];
    for _ in 0..100_000 {
        for x in 0..pairs.len() {
            q[x] = r[x] + discount * rows[x].iter().zip(&v).map(|(a, b)| a * b).sum::<f64>();
        }
        let next: Vec<f64> = (0..pairs.states())
            .map(|s| {
                pairs
                    .of(s)
                    .filter(|x| allowed[*x])
                    .map(|x| q[x])
                    .fold(None, |b: Option<f64>, x| Some(b.map_or(x, |b| b.max(x))))
                    .unwrap_or(0.0)
            })
            .collect();
        let step = v.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        v = next;
        if step < 1e-13 {
            break;
        }
    }
    (v, q)
}

/// Values of a policy in a process written out.
fn worth_of(choice: &[Option<usize>], p: &dyn Fn(usize) -> Vec<f64>, r: &[f64], discount: f64) -> Vec<f64> {
    let rows: Vec<Option<(Vec<f64>, f64)>> = choice.iter().map(|c| c.map(|x| (p(x), r[x]))).collect();
    let mut v = vec![0.0; choice.len()];
    for _ in 0..5000 {
        v = rows
            .iter()
            .map(|row| row.as_ref().map_or(0.0, |(p, r)| r + discount * p.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>()))
            .collect();
    }
    v
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// The row of `U V^T` at a pair, over all states.
fn row_of(u: &Mat, v: &Mat, reached: &[u32], states: usize, pair: usize) -> Vec<f64> {
    let mut row = vec![0.0; states];
    for (j, s) in reached.iter().enumerate() {
        row[*s as usize] = u.row(pair).iter().zip(v.row(j)).map(|(a, b)| a * b).sum();
    }
    row
}

fn everywhere(states: usize) -> Vec<u32> {
    (0..states as u32).collect()
}

fn true_row(chain: &Controlled) -> impl Fn(usize) -> Vec<f64> + '_ {
    let all = everywhere(chain.v.rows());
    move |pair| row_of(&chain.u, &chain.v, &all, chain.v.rows(), pair)
}

/// A plan from a log by the whole recipe: nothing given but the discount.
fn learnt(log: &Log, discount: f64) -> (Plan, usize) {
    let tried = log.tried().unwrap();
    let data = Data::between(&log.sides(&tried).unwrap(), WeightPower::One).unwrap();
    let model = fit(&data, &FitOptions::default(), &mut Silent).unwrap();
    let paid = rewards(&tried, tried.paid.as_ref().unwrap(), model.memberships()).pair;
    let allowed = vec![true; tried.pairs.len()];
    let (u, v) = (model.memberships(), model.destinations());
    let decisions = Decisions { pairs: &tried.pairs, reached: &tried.reached, u, v, rewards: &paid, allowed: &allowed };
    (decisions.solve(discount).unwrap(), model.rank())
}

#[test]
fn the_plan_on_s_numbers_is_value_iteration_on_all_states() {
    for seed in 0..20 {
        let mut stream = Stream(seed);
        let (states, actions, s) = (12, 3, 1 + seed as usize % 4);
        // Some pairs are not there, some states are never left, some never reached.
        let there: Vec<(u32, u32)> = (0..states as u32)
            .flat_map(|i| (0..actions as u32).map(move |a| (i, a)))
            .filter(|(i, _)| *i != 3)
            .filter(|_| stream.next() < 0.8)
            .collect();
        let pairs = Pairs::new(there.iter().map(|p| p.0).collect(), there.iter().map(|p| p.1).collect(), states, actions).unwrap();
        let reached: Vec<u32> = (0..states as u32).filter(|i| *i != 5).collect();
        let u = stream.stochastic(pairs.len(), s);
        let v = stream.stochastic(s, reached.len()).transposed();
        let r: Vec<f64> = (0..pairs.len()).map(|_| stream.next() - 0.5).collect();
        let allowed: Vec<bool> = (0..pairs.len()).map(|_| stream.next() < 0.9).collect();
        for discount in [0.0, 0.7, 0.99] {
            let plan =
                Decisions { pairs: &pairs, reached: &reached, u: &u, v: &v, rewards: &r, allowed: &allowed }.solve(discount).unwrap();
            let (values, q) = value_iteration(&pairs, &|p| row_of(&u, &v, &reached, states, p), &r, &allowed, discount);
            for (a, b) in plan.value.iter().zip(&values).chain(plan.q.iter().zip(&q)) {
                assert!((a - b).abs() < 1e-9, "seed {seed}, discount {discount}: {a} and {b}");
            }
            assert!(plan.off < 1e-9 && plan.rounds < 30);
            assert_eq!(plan.choice[3], None);
            for (s, c) in plan.choice.iter().enumerate() {
                assert!(c.is_none_or(|p| pairs.state[p] as usize == s && allowed[p]));
            }
        }
    }
}

#[test]
fn a_discount_of_one_is_refused_and_sizes_are_checked() {
    let pairs = Pairs::new(vec![0, 1], vec![0, 0], 2, 1).unwrap();
    let (u, v) = (Mat::from_fn(2, 1, |_, _| 1.0), Mat::from_fn(2, 1, |_, _| 0.5));
    let good = Decisions { pairs: &pairs, reached: &[0, 1], u: &u, v: &v, rewards: &[0.0, 1.0], allowed: &[true, true] };
    for discount in [1.0, -0.1, f64::NAN, 2.0] {
        assert!(matches!(good.solve(discount), Err(Error::Setting { name: "the discount", .. })));
    }
    assert!(Decisions { rewards: &[0.0], ..good }.solve(0.5).is_err());
    assert!(Decisions { rewards: &[0.0, f64::NAN], ..good }.solve(0.5).is_err());
    assert!(Decisions { reached: &[0, 7], ..good }.solve(0.5).is_err());
    assert!(Pairs::new(vec![1, 0], vec![0, 0], 2, 1).is_err());
    let records = Records { from: vec![0], action: vec![0], to: vec![3], ..Records::default() };
    assert!(Log::new(StateIndex::numbered(2), StateIndex::numbered(1), records).is_err());
}

#[test]
fn a_planted_chain_is_planned_without_its_rank_and_beats_the_counts() {
    let chain = controlled(150, 3, 4, 1).unwrap();
    let r = chain.rewards();
    let all = vec![true; r.len()];
    let (best, _) = value_iteration(&chain.pairs, &true_row(&chain), &r, &all, 0.9);
    let log = chain.tries(20, 0.1, 5).unwrap();
    let (plan, rank) = learnt(&log, 0.9);
    assert_eq!(rank, 4);
    let ours = worth_of(&plan.choice, &true_row(&chain), &r, 0.9);
    // The counts themselves, with what was paid on average.
    let tried = log.tried().unwrap();
    let counted = |p: usize| {
        let mut row = vec![0.0; 150];
        let (columns, counts) = tried.counts.row(p);
        columns.iter().zip(counts).for_each(|(j, n)| row[tried.reached[*j as usize] as usize] = n / tried.records[p]);
        row
    };
    let paid = &tried.paid.as_ref().unwrap().mean;
    let (_, q) = value_iteration(&chain.pairs, &counted, paid, &all, 0.9);
    let greedy: Vec<Option<usize>> = (0..150).map(|s| chain.pairs.of(s).max_by(|a, b| q[*a].total_cmp(&q[*b]))).collect();
    let theirs = worth_of(&greedy, &true_row(&chain), &r, 0.9);
    let lost = |v: &[f64]| 1.0 - mean(v) / mean(&best);
    println!("lost: {:.4} (counts {:.4})", lost(&ours), lost(&theirs));
    assert!(lost(&ours) < 0.01 && lost(&ours) < 0.3 * lost(&theirs), "{} {}", lost(&ours), lost(&theirs));
}

#[test]
fn rewards_have_errors_that_hold_and_scarce_pairs_lean() {
    let chain = controlled(100, 2, 3, 4).unwrap();
    let truth = chain.rewards();
    let (mut inside, mut pairs, mut better, mut own) = (0, 0, 0.0, 0.0);
    for seed in 0..10 {
        let log = chain.tries(4, 0.3, seed).unwrap();
        let tried = log.tried().unwrap();
        let paid: &Paid = tried.paid.as_ref().unwrap();
        let found = rewards(&tried, paid, &chain.u);
        assert!(found.leaning > 150, "{}", found.leaning);
        for p in 0..truth.len() {
            inside += usize::from((found.pair[p] - truth[p]).abs() < 2.0 * found.pair_error[p]);
            better += (found.pair[p] - truth[p]).powi(2);
            own += (paid.mean[p] - truth[p]).powi(2);
            pairs += 1;
        }
    }
    println!("inside two errors: {inside} of {pairs}; squared error {better:.3}, of the means {own:.3}");
    assert!(better < 0.1 * own);
    assert!((0.9..=1.0).contains(&(inside as f64 / pairs as f64)));
    // Where what is paid has nothing to do with meta-states, many records speak for themselves.
    let mut stream = Stream(9);
    let odd: Vec<f64> = (0..truth.len()).map(|_| 5.0 * stream.next()).collect();
    let log = chain.tries(50, 0.3, 3).unwrap().paid_by(|s, a, t| odd[2 * s as usize + a as usize] + 0.01 * f64::from(t % 7));
    let tried = log.tried().unwrap();
    let found = rewards(&tried, tried.paid.as_ref().unwrap(), &chain.u);
    assert_eq!(found.leaning, 0);
    assert!((0..odd.len()).all(|p| (found.pair[p] - odd[p] - 0.03).abs() < 0.02));
}

#[test]
fn rewards_without_noise_stay_as_they_are() {
    let chain = controlled(40, 2, 2, 4).unwrap();
    let log = chain.tries(3, 0.0, 1).unwrap().paid_by(|s, a, _| f64::from(s) - 3.0 * f64::from(a));
    let tried = log.tried().unwrap();
    let found = rewards(&tried, tried.paid.as_ref().unwrap(), &chain.u);
    assert_eq!((found.leaning, found.within), (0, 0.0));
    for p in 0..tried.pairs.len() {
        assert_eq!(found.pair[p], f64::from(tried.pairs.state[p]) - 3.0 * f64::from(tried.pairs.action[p]));
    }
}

/// A log of one corridor: right pays at its end, and going left was never tried in state 2.
fn corridor() -> Log {
    let mut records = Records { reward: Some(Vec::new()), ..Records::default() };
    for round in 0..60 {
        for s in 0..4u32 {
            for a in 0..2u32 {
                if (s, a) == (2, 0) {
                    continue;
                }
                let to = if a == 1 { (s + 1).min(4) } else { s.saturating_sub(1) };
                let to = if round % 10 == 0 { s } else { to };
                records.from.push(s);
                records.action.push(a);
                records.to.push(to);
                records.reward.as_mut().unwrap().push(if a == 0 { 0.5 } else { f64::from(u8::from(to == 4)) });
            }
        }
    }
    Log::new(StateIndex::numbered(5), StateIndex::numbered(2), records).unwrap()
}

#[test]
fn what_was_never_tried_is_left_out_unless_it_is_asked_for() {
    let log = corridor();
    let tried = log.tried().unwrap();
    assert_eq!((tried.pairs.len(), tried.pairs.position(2, 0)), (7, None));
    let data = Data::between(&log.sides(&tried).unwrap(), WeightPower::One).unwrap();
    let model = fit(&data, &FitOptions::default(), &mut Silent).unwrap();
    let (u, v) = (model.memberships(), model.destinations());
    let paid = rewards(&tried, tried.paid.as_ref().unwrap(), u).pair;
    let allowed = vec![true; 7];
    let plan = Decisions { pairs: &tried.pairs, reached: &tried.reached, u, v, rewards: &paid, allowed: &allowed }.solve(0.5).unwrap();
    assert_eq!(tried.pairs.action[plan.choice[2].unwrap()], 1, "the only action that was tried");
    assert_eq!((plan.choice[4], plan.value[4]), (None, 0.0));
    let more = with_untried(&tried, u, v, &paid).unwrap();
    assert_eq!(
        (more.pairs.len(), more.guessed.iter().filter(|g| **g).count()),
        (8, 1),
        "state 4 was never left, so nothing is known of it"
    );
    let guessed = more.pairs.position(2, 0).unwrap();
    assert!(more.guessed[guessed] && (more.rewards[guessed] - 0.5).abs() < 0.2, "{}", more.rewards[guessed]);
    assert!((more.u.row(guessed).iter().sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn the_bound_holds_in_the_counted_process() {
    for seed in 0..5 {
        let chain = controlled(30, 2, 3, seed).unwrap();
        let log = chain.tries(if seed % 2 == 0 { 10 } else { 3000 }, 0.0, seed).unwrap();
        let tried = log.tried().unwrap();
        let reached: Vec<usize> = tried.reached.iter().map(|s| *s as usize).collect();
        let v = Mat::from_fn(reached.len(), 3, |j, k| chain.v[(reached[j], k)]);
        let paid = rewards(&tried, tried.paid.as_ref().unwrap(), &chain.u).pair;
        let allowed = vec![true; 60];
        let plan = Decisions { pairs: &tried.pairs, reached: &tried.reached, u: &chain.u, v: &v, rewards: &paid, allowed: &allowed }
            .solve(0.8)
            .unwrap();
        let bound = loss_bound(&tried, &chain.u, &v, &paid, &plan, 0.8);
        let counted = |p: usize| {
            let mut row = vec![0.0; 30];
            let (columns, counts) = tried.counts.row(p);
            columns.iter().zip(counts).for_each(|(j, n)| row[reached[*j as usize]] = n / tried.records[p]);
            row
        };
        let (best, _) = value_iteration(&tried.pairs, &counted, &paid, &allowed, 0.8);
        let ours = worth_of(&plan.choice, &counted, &paid, 0.8);
        let lost = best.iter().zip(&ours).map(|(a, b)| a - b).fold(0.0, f64::max);
        println!("lost {lost:.4}, bound {:.4}, by norm {:.4}, any {:.4}", bound.loss, bound.by_norm, bound.any);
        assert!(lost <= bound.loss && bound.loss <= bound.by_norm + 1e-9, "{lost} {bound:?}");
        assert!(lost <= bound.any);
        assert_eq!(bound.says_something(), bound.loss < bound.any);
    }
}

#[test]
fn held_out_episodes_tell_what_a_policy_earns() {
    let chain = controlled(60, 3, 3, 2).unwrap();
    let r = chain.rewards();
    let (best, _) = value_iteration(&chain.pairs, &true_row(&chain), &r, &vec![true; r.len()], 0.9);
    let settings = CheckSettings { rank: 3, prior: 1.0, discount: 0.9, untried: false, folds: 4, seed: 1 };
    let mut inside = 0;
    for seed in 0..20 {
        let log = chain.episodes(300, 40, 0.2, seed).unwrap();
        let found = check(&log, &log.tried().unwrap(), &settings, || true).unwrap();
        // With so many records a pair the policies are next to the best one.
        let slack = 0.003 * mean(&best);
        inside += usize::from(found.interval.0 - slack <= mean(&best) && mean(&best) <= found.interval.1 + slack);
        assert!(found.unit == Unit::Episodes && found.units == 300 && found.effective > 1000.0 && found.covered > 0.95, "{found:?}");
        assert!(found.log.unwrap() < found.value);
    }
    println!("inside: {inside} of 20");
    assert!(inside >= 16, "{inside} of 20");
    assert!(matches!(
        check(&chain.episodes(5, 9, 0.0, 1).unwrap(), &chain.episodes(5, 9, 0.0, 1).unwrap().tried().unwrap(), &settings, || true),
        Err(Error::Setting { .. })
    ));
}

#[test]
fn a_claim_of_a_wrong_model_is_corrected() {
    // Two halves; the first action leads into the upper one, the second into the lower one, and only the upper one pays. A single meta-state takes both actions for the same: it takes the
    // first by chance of its number, and claims half of what that earns, 10 from the upper half and 9 from the lower one.
    let mut stream = Stream(5);
    let mut records = Records { reward: Some(Vec::new()), ..Records::default() };
    for k in 0..8000u32 {
        let (state, action) = (k % 20, k / 20 % 2);
        records.from.push(state);
        records.action.push(action);
        records.to.push(10 * action + stream.below(10) as u32);
        records.reward.as_mut().unwrap().push(f64::from(u8::from(state < 10)));
    }
    let log = Log::new(StateIndex::numbered(20), StateIndex::numbered(2), records).unwrap();
    let tried = log.tried().unwrap();
    let settings = CheckSettings { rank: 1, prior: 1.0, discount: 0.9, untried: false, folds: 4, seed: 1 };
    let wrong = check(&log, &tried, &settings, || true).unwrap();
    assert_eq!(wrong.unit, Unit::Records);
    assert!((wrong.claimed - 5.0).abs() < 0.1, "{wrong:?}");
    assert!((wrong.value - 9.5).abs() < 0.2 && wrong.interval.0 > wrong.claimed, "{wrong:?}");
    let right = check(&log, &tried, &CheckSettings { rank: 2, ..settings }, || true).unwrap();
    // What the prior takes off the claim is given back.
    assert!((right.claimed - 9.5).abs() < 0.1 && (right.value - 9.5).abs() < 0.02, "{right:?}");
}

#[test]
fn each_action_has_its_chain() {
    let chain = controlled(50, 2, 3, 8).unwrap();
    let all = everywhere(50);
    for (a, (k, tried)) in latent_of_actions(&chain.pairs, &all, &chain.u, &chain.v).iter().enumerate() {
        for j in 0..3 {
            assert!((tried[j] - 1.0).abs() < 1e-12 && (k.row(j).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for l in 0..3 {
                let direct: f64 = (0..50).map(|s| chain.v[(s, j)] * chain.u[(2 * s + a, l)]).sum();
                assert!((k[(j, l)] - direct).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let chain = controlled(30, 2, 3, 2).unwrap();
    let settings = CheckSettings { rank: 3, prior: 1.0, discount: 0.9, untried: true, folds: 3, seed: 7 };
    let once = || {
        let log = chain.episodes(60, 10, 0.1, 3).unwrap();
        check(&log, &log.tried().unwrap(), &settings, || true).unwrap()
    };
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    assert_eq!(pool(1).install(once), pool(3).install(once));
}
