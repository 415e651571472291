use metastate::{CountMode, Counts, Csr, Error, Label, Ledger, LedgerUnit, StateIndex, TransitionCounter};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{dense, mat, with_threads};

fn frames(states: &[i64]) -> Vec<Option<u32>> {
    states.iter().map(|&i| u32::try_from(i).ok()).collect()
}

fn count(d: usize, trajectories: &[&[i64]], lag: usize, mode: CountMode) -> Counts {
    Counts::from_trajectories(StateIndex::numbered(d), trajectories.iter().map(|t| frames(t)), lag, mode).unwrap()
}

fn triplets(c: &Counts) -> Vec<(u32, u32, f64)> {
    c.csr().triplets().collect()
}

#[test]
fn one_trajectory_by_hand() {
    let c = count(3, &[&[0, 1, 1, 2, 0, 1]], 1, CountMode::Sliding);
    assert_eq!(dense(c.csr()), mat(&[&[0.0, 2.0, 0.0], &[0.0, 1.0, 1.0], &[1.0, 0.0, 0.0]]));
    assert_eq!(c.transitions(), 5.0);
    assert_eq!(c.departures(), [2.0, 2.0, 1.0]);
    assert_eq!(c.arrivals(), [1.0, 3.0, 1.0]);
    assert_eq!(c.self_counts(), [0.0, 1.0, 0.0]);
    assert!(c.ledger().is_empty());
}

#[test]
fn nothing_is_counted_from_one_trajectory_into_the_next() {
    let c = count(4, &[&[0, 1], &[2, 3]], 1, CountMode::Sliding);
    assert_eq!(triplets(&c), [(0, 1, 1.0), (2, 3, 1.0)]);
    let joined = count(4, &[&[0, 1, 2, 3]], 1, CountMode::Sliding);
    assert_eq!(joined.transitions(), 3.0);
}

#[test]
fn sliding_and_strided_lags() {
    let t: &[i64] = &[0, 1, 2, 3, 4, 5, 6];
    let sliding = count(7, &[t], 3, CountMode::Sliding);
    assert_eq!(triplets(&sliding), [(0, 3, 1.0), (1, 4, 1.0), (2, 5, 1.0), (3, 6, 1.0)]);
    let strided = count(7, &[t], 3, CountMode::Strided);
    assert_eq!(triplets(&strided), [(0, 3, 1.0), (3, 6, 1.0)]);
    assert_eq!((strided.lag(), strided.mode()), (3, CountMode::Strided));
}

#[test]
fn gaps_break_a_trajectory() {
    // 0 1 _ 2 3 4 _ _ 5: pieces [0 1], [2 3 4], [5].
    let c = count(6, &[&[0, 1, -1, 2, 3, 4, -1, -1, 5]], 1, CountMode::Sliding);
    assert_eq!(triplets(&c), [(0, 1, 1.0), (2, 3, 1.0), (3, 4, 1.0)]);
    assert_eq!(c.ledger().get("unassigned-frame", LedgerUnit::Frames).unwrap().count, 3);
    let short = c.ledger().get("too-short-for-lag", LedgerUnit::Trajectories).unwrap();
    assert_eq!((short.count, short.weight), (1, 1.0));
    assert_eq!(short.examples, ["trajectory 0 from frame 8"]);
    // With lag 2 a gap is never jumped, though frames 1 and 3 are both assigned.
    let c = count(6, &[&[0, 1, -1, 2, 3, 4]], 2, CountMode::Sliding);
    assert_eq!(triplets(&c), [(2, 4, 1.0)]);
    // Strided pairs begin anew in each piece.
    let c = count(9, &[&[0, -1, 1, 2, 3, 4, 5]], 2, CountMode::Strided);
    assert_eq!(triplets(&c), [(1, 3, 1.0), (3, 5, 1.0)]);
}

#[test]
fn short_and_empty_trajectories_are_in_the_ledger() {
    let c = count(3, &[&[], &[0], &[0, 1], &[0, 1, 2]], 2, CountMode::Sliding);
    assert_eq!(triplets(&c), [(0, 2, 1.0)]);
    let entry = c.ledger().get("too-short-for-lag", LedgerUnit::Trajectories).unwrap();
    assert_eq!((entry.count, entry.weight), (3, 3.0));
    assert_eq!(entry.examples.len(), 3);
    // No data at all is no error here: the counts are empty, and can still be merged.
    let none = count(2, &[], 2, CountMode::Sliding);
    assert_eq!(none.transitions(), 0.0);
    assert_eq!(none.merge(&c).unwrap().transitions(), 1.0);
}

#[test]
fn pairs_triplets_and_csr_agree() {
    let states = || StateIndex::from_labels(vec!["b".into(), "a".into(), "c".into()]).unwrap();
    let pairs = Counts::from_pairs(states(), [(0, 1), (2, 2), (0, 1), (1, 0)]).unwrap();
    let triplets = Counts::from_triplets(states(), &[(2, 2, 1.0), (0, 1, 0.5), (1, 0, 1.0), (0, 1, 1.5), (1, 1, 0.0)]).unwrap();
    assert_eq!(pairs, triplets);
    let with_zero = Csr::from_parts(3, 3, vec![0, 2, 3, 4], vec![0, 1, 0, 2], vec![0.0, 2.0, 1.0, 1.0]).unwrap();
    assert_eq!(Counts::from_csr(states(), with_zero).unwrap(), pairs);
    assert_eq!(pairs.index().label(2), Label::from("c"));
}

#[test]
fn table_and_sorted_chunks_agree() {
    // 70,000 states do not fit the table; the same moves shifted by 65,000 must give the same numbers.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let walk: Vec<u32> = (0..200_000).map(|_| rng.random_range(0..300)).collect();
    let shifted: Vec<u32> = walk.iter().map(|i| i + 65_000).collect();
    let counted = |walk: &[u32], d: usize| {
        let mut counter = TransitionCounter::new(2, CountMode::Sliding).unwrap();
        walk.chunks(50_000).for_each(|t| counter.push(t));
        counter.finish(StateIndex::numbered(d)).unwrap()
    };
    let small = counted(&walk, 300);
    let large = counted(&shifted, 70_000);
    assert_eq!(large.transitions(), 4.0 * 49_998.0);
    let keep: Vec<usize> = (65_000..65_300).collect();
    assert_eq!(large.restrict(&keep, "test").unwrap().csr(), small.csr());
    // Growing from the table into chunks half way loses nothing.
    let mut counter = TransitionCounter::new(1, CountMode::Sliding).unwrap();
    counter.push(&walk);
    counter.push(&shifted);
    counter.push_pair(7, 69_999);
    let both = counter.finish(StateIndex::numbered(70_000)).unwrap();
    assert_eq!(both.transitions(), 2.0 * 199_999.0 + 1.0);
    let low = both.restrict(&(0..300).collect::<Vec<_>>(), "test").unwrap();
    let high = both.restrict(&keep, "test").unwrap();
    assert_eq!(low.csr(), high.csr());
}

#[test]
fn a_long_trajectory_counts_alike_on_any_number_of_threads() {
    // Above the length at which threads share the work, with both ways to choose pairs.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    let walk: Vec<u32> = (0..(9 << 20) + 17).map(|_| rng.random_range(0..50)).collect();
    for (lag, mode) in [(1, CountMode::Sliding), (7, CountMode::Sliding), (7, CountMode::Strided)] {
        let counts = with_threads(|| {
            let mut counter = TransitionCounter::new(lag, mode).unwrap();
            counter.push(&walk);
            counter.finish(StateIndex::numbered(50)).unwrap()
        });
        let starts = walk.len() - lag;
        let expected = if mode == CountMode::Sliding { starts } else { starts.div_ceil(lag) };
        assert_eq!(counts.transitions(), expected as f64);
    }
}

#[test]
fn merging_equals_counting_all_at_once() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let names = |ids: &[u32]| StateIndex::from_labels(ids.iter().map(|i| Label::from(format!("s{i}"))).collect()).unwrap();
    let walks: Vec<Vec<u32>> = (0..6).map(|_| (0..400).map(|_| rng.random_range(0..8)).collect()).collect();
    // Two parts with labels in different orders, each unaware of some states of the other.
    let part = |ids: &[u32], walks: &[Vec<u32>], allowed: &dyn Fn(u32) -> bool| {
        let index = names(ids);
        let frame = |i: &u32| if allowed(*i) { index.position(&Label::from(format!("s{i}"))) } else { None };
        let frames: Vec<Vec<Option<u32>>> = walks.iter().map(|w| w.iter().map(frame).collect()).collect();
        Counts::from_trajectories(index, frames, 1, CountMode::Sliding).unwrap()
    };
    let first = part(&[3, 1, 0, 2, 5], &walks[..3], &|i| i < 6 && i != 4);
    let second = part(&[7, 6, 5, 4, 3, 2], &walks[3..], &|i| i >= 2);
    let merged = first.merge(&second).unwrap();
    let all = [3, 1, 0, 2, 5, 7, 6, 4];
    let at_once = part(&all, &walks[..3], &|i| i < 6 && i != 4);
    let rest = part(&all, &walks[3..], &|i| i >= 2);
    assert_eq!(merged.index(), at_once.index());
    let sum: Vec<f64> = dense(at_once.csr()).as_slice().iter().zip(dense(rest.csr()).as_slice()).map(|(a, b)| a + b).collect();
    assert_eq!(dense(merged.csr()).as_slice(), sum);
    assert_eq!(merged.transitions(), first.transitions() + second.transitions());
    let gaps = |c: &Counts| c.ledger().get("unassigned-frame", LedgerUnit::Frames).map_or(0, |e| e.count);
    assert_eq!(gaps(&merged), gaps(&first) + gaps(&second));
}

#[test]
fn merging_needs_the_same_lag() {
    let (one, two) = (count(3, &[&[0, 1, 2]], 1, CountMode::Sliding), count(3, &[&[0, 1, 2]], 2, CountMode::Sliding));
    assert!(matches!(one.merge(&two), Err(Error::Setting { .. })));
    let strided = count(3, &[&[0, 1, 2]], 2, CountMode::Strided);
    assert!(matches!(two.merge(&strided), Err(Error::Setting { .. })));
    // With lag 1 the two ways of counting are the same.
    assert!(one.merge(&count(3, &[&[0, 1, 2]], 1, CountMode::Strided)).is_ok());
}

#[test]
fn restricting_says_what_was_dropped() {
    let c = count(4, &[&[0, 1, 2, 3, 0, 1]], 1, CountMode::Sliding);
    let r = c.restrict(&[1, 0, 3, 0], "too-rare").unwrap();
    assert_eq!(dense(r.csr()), mat(&[&[0.0, 2.0, 0.0], &[0.0, 0.0, 0.0], &[1.0, 0.0, 0.0]]));
    assert_eq!(r.index().labels().collect::<Vec<_>>(), [Label::Integer(0), Label::Integer(1), Label::Integer(3)]);
    let states = r.ledger().get("too-rare", LedgerUnit::States).unwrap();
    assert_eq!((states.count, &states.examples[..]), (1, &["2".to_string()][..]));
    assert_eq!(r.ledger().get("too-rare", LedgerUnit::Transitions).unwrap().count, 2);
    assert!(matches!(c.restrict(&[4], "x"), Err(Error::IndexOutOfRange { index: 4, len: 4, .. })));
}

#[test]
fn bad_counts_are_refused_by_name() {
    let states = || StateIndex::numbered(2);
    let bad = |i, j, n| Counts::from_triplets(states(), &[(0, 1, 1.0), (i, j, n)]).unwrap_err();
    assert!(matches!(bad(1, 0, f64::NAN), Error::NotFinite { row: 1, column: 0, .. }));
    assert!(matches!(bad(1, 0, f64::INFINITY), Error::NotFinite { .. }));
    assert!(matches!(bad(1, 0, -1.0), Error::Negative { row: 1, column: 0, value: -1.0, .. }));
    assert!(matches!(bad(2, 0, 1.0), Error::IndexOutOfRange { index: 2, len: 2, .. }));
    assert!(matches!(bad(0, 2, 1.0), Error::IndexOutOfRange { index: 2, len: 2, .. }));
    let huge = Counts::from_triplets(states(), &[(0, 1, f64::MAX), (1, 0, f64::MAX)]);
    assert!(matches!(huge, Err(Error::NotFinite { .. })));
    assert!(matches!(Counts::from_pairs(states(), [(0, 5)]), Err(Error::IndexOutOfRange { index: 5, .. })));
    let far = Counts::from_trajectories(states(), [[Some(0), Some(u32::MAX)]], 1, CountMode::Sliding);
    assert!(matches!(far, Err(Error::IndexOutOfRange { .. })));
    assert!(matches!(TransitionCounter::new(0, CountMode::Sliding), Err(Error::Setting { name: "lag", .. })));
    let wide = Csr::from_triplets(2, 3, &[(0, 1, 1.0)]).unwrap();
    assert!(matches!(Counts::from_csr(states(), wide), Err(Error::SizeMismatch { expected: 2, found: 3, .. })));
    let nan = Csr::from_triplets(2, 2, &[(0, 1, f64::NAN)]).unwrap();
    assert!(matches!(Counts::from_csr(states(), nan), Err(Error::NotFinite { .. })));
}

#[test]
fn labels_come_back_unchanged() {
    for text in ["12", "-3", "0", "007", "-0", "+4", "1.0", " 5", "", "-", "Zürich", "9223372036854775807", "9223372036854775808"] {
        assert_eq!(Label::from(text).to_string(), text);
        assert_eq!(Label::from(text.to_string()), Label::from(text));
    }
    assert_eq!(Label::from("12"), Label::from(12));
    assert_ne!(Label::from("007"), Label::from(7));
    assert!(matches!(Label::from("9223372036854775808"), Label::Text(_)));
    assert!(Label::from(-5) < Label::from(3) && Label::from(30) < Label::from("a"));
}

#[test]
fn an_index_goes_both_ways() {
    let numbered = StateIndex::numbered(1_000_000);
    assert_eq!(numbered.position(&Label::from(999_999)), Some(999_999));
    assert_eq!(numbered.position(&Label::from(1_000_000)), None);
    assert_eq!(numbered.position(&Label::from(-1)), None);
    let mut index = StateIndex::new();
    let rows: Vec<u32> = ["0", "1", "x", "0", "2", "x"].map(|s| index.get_or_insert(s.into())).to_vec();
    assert_eq!(rows, [0, 1, 2, 0, 3, 2]);
    assert_eq!(index.label(3), Label::from(2));
    assert_eq!(index.position(&"x".into()), Some(2));
    let twice = StateIndex::from_labels(vec!["a".into(), "b".into(), "a".into()]);
    assert!(matches!(twice, Err(Error::DuplicateLabel { label }) if label == "a"));
    assert_eq!(StateIndex::numbered(3), StateIndex::from_labels(vec![0.into(), 1.into(), 2.into()]).unwrap());
    assert_ne!(StateIndex::numbered(3), StateIndex::numbered(4));
}

#[test]
fn the_ledger_adds_up_and_keeps_five_examples() {
    let mut ledger = Ledger::new();
    assert_eq!(ledger.to_string(), "nothing was left out");
    for k in 0..7 {
        ledger.add("bad-row", LedgerUnit::Rows, 1, 1.0, [format!("line {k}")]);
    }
    ledger.add("bad-row", LedgerUnit::States, 2, 0.0, ["a", "b"]);
    ledger.add("nothing", LedgerUnit::Rows, 0, 0.0, [] as [String; 0]);
    let mut other = Ledger::new();
    other.add("bad-row", LedgerUnit::States, 1, 3.5, ["c"]);
    ledger.merge(&other);
    assert_eq!(ledger.len(), 2);
    assert_eq!(ledger.get("bad-row", LedgerUnit::Rows).unwrap().examples.len(), 5);
    let lines = ledger.to_string();
    assert_eq!(
        lines,
        "bad-row: 7 rows (such as line 0, line 1, line 2, line 3, line 4, ...)\nbad-row: 3 states, weight 3.5 (such as a, b, c)"
    );
}

#[test]
fn connectivity_by_hand() {
    // {0, 1, 2} a cycle with a way out to 3 <-> 4; 5 leads to 6, which only stays; 7 is reached from 0 and never left; 8 unseen.
    let pairs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (5, 6), (6, 6), (0, 7)];
    let mut triplets: Vec<(u32, u32, f64)> = pairs.iter().map(|&(i, j)| (i, j, 1.0)).collect();
    triplets.push((3, 3, 99.0));
    let c = Counts::from_triplets(StateIndex::numbered(9), &triplets).unwrap().connectivity();
    assert_eq!(c.classes[0].states, 3);
    assert_eq!((c.classes[0].weight, c.classes[0].closed), (3.0, false));
    assert_eq!((c.classes[1].states, c.classes[1].weight, c.classes[1].closed), (2, 101.0, true));
    assert_eq!(c.class_of[..5], [0, 0, 0, 1, 1]);
    assert_eq!(c.classes.len(), 6);
    assert_eq!((c.transient_states, c.absorbing_states, c.near_absorbing_states, c.unseen_states), (4, 2, 1, 1));
    assert!((c.largest_share - 3.0 / 108.0).abs() < 1e-15);
    assert_eq!(c.largest_class(), [0, 1, 2]);
    assert!(!c.is_connected());
}

#[test]
fn classes_agree_with_reachability_on_random_graphs() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    for _ in 0..200 {
        let d = rng.random_range(1..12usize);
        let edges = rng.random_range(0..2 * d);
        let pairs: Vec<(u32, u32)> = (0..edges).map(|_| (rng.random_range(0..d as u32), rng.random_range(0..d as u32))).collect();
        let mut reach = vec![vec![false; d]; d];
        (0..d).for_each(|i| reach[i][i] = true);
        pairs.iter().for_each(|&(i, j)| reach[i as usize][j as usize] = true);
        for k in 0..d {
            for i in 0..d {
                for j in 0..d {
                    reach[i][j] |= reach[i][k] && reach[k][j];
                }
            }
        }
        let c = Counts::from_pairs(StateIndex::numbered(d), pairs).unwrap().connectivity();
        for i in 0..d {
            for j in 0..d {
                assert_eq!(c.class_of[i] == c.class_of[j], reach[i][j] && reach[j][i]);
            }
            let closed = (0..d).all(|j| !reach[i][j] || reach[j][i]);
            assert_eq!(c.classes[c.class_of[i] as usize].closed, closed);
        }
    }
}

#[test]
fn a_path_of_a_million_states_does_not_exhaust_the_stack() {
    let d = 1_000_000u32;
    let path = Counts::from_pairs(StateIndex::numbered(d as usize), (0..d - 1).map(|i| (i, i + 1))).unwrap();
    assert_eq!(path.connectivity().classes.len(), d as usize);
    let ring = Counts::from_pairs(StateIndex::numbered(d as usize), (0..d).map(|i| (i, (i + 1) % d))).unwrap();
    assert!(ring.connectivity().is_connected());
    // Leaving out its end unravels the whole path, and quickly.
    assert!(matches!(metastate::Chain::estimate(&path, &Default::default()), Err(Error::Empty { .. })));
}
