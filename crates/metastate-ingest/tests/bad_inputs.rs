//! Every file in `tests/bad` is refused with a stable code and a sentence, and costs little memory.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;

use common::{allowed, peak};
use metastate_ingest::{As, CellSize, InputSettings, Silent, TextTable, codes, read};

#[global_allocator]
static ALLOCATOR: common::Counting = common::Counting;

fn some(s: &str) -> Option<String> {
    Some(s.to_owned())
}

fn labelled() -> InputSettings {
    InputSettings { as_: Some(As::Trips), from: some("from"), to: some("to"), ..InputSettings::default() }
}

fn weighted() -> InputSettings {
    InputSettings { weight: some("n"), ..labelled() }
}

fn as_(kind: As) -> InputSettings {
    InputSettings { as_: Some(kind), ..InputSettings::default() }
}

fn points() -> InputSettings {
    InputSettings { from_lon: some("lon"), from_lat: some("lat"), to_lon: some("lon2"), to_lat: some("lat2"), ..InputSettings::default() }
}

fn condition(text: &str) -> InputSettings {
    InputSettings { where_: some(text), ..labelled() }
}

/// Tables that are damaged, or not what their name says, or hold nothing to count.
const TABLES: &[&str] = &[
    "truncated.parquet",
    "no-footer-magic.parquet",
    "footer-length-forged.parquet",
    "tiny.parquet",
    "not-parquet.parquet",
    "damaged-pages.parquet",
    "forged-page-size.parquet",
    "nested.parquet",
    "no-rows.parquet",
    "fraction-labels.parquet",
    "empty.csv",
    "header-only.csv",
    "blank.csv",
    "ragged.csv",
    "ragged-more.csv",
    "latin1.csv",
    "utf16.csv",
    "nul.csv",
    "open-quote.csv",
    "text-after-quote.csv",
    "twice-named.csv",
    "old-mac.csv",
    "one-state.csv",
    "all-missing.csv",
    "long-label.csv",
    "truncated.csv.gz",
    "damaged.csv.gz",
    "second-member-truncated.csv.gz",
    "broken.jsonl",
    "nested.jsonl",
    "array.jsonl",
    "missing-key.jsonl",
    "no-such-file.csv",
    "",
    "no-such-*.csv",
];

/// Matrices and arrays that are damaged, or that promise what they do not hold.
const MATRICES: &[&str] = &[
    "forged-shape.npy",
    "overflow-shape.npy",
    "object.npy",
    "complex.npy",
    "structure.npy",
    "header-length-forged.npy",
    "version.npy",
    "short.npy",
    "not-square.npy",
    "nan.npy",
    "negative.npy",
    "zeros.npy",
    "one-by-one.npy",
    "bsr.npz",
    "index-outside.npz",
    "indptr-descends.npz",
    "no-matrix.npz",
    "huge-shape.npz",
    "lengths-differ.npz",
    "pickled.npz",
    "huge-coo.npz",
    "forged-sizes.npz",
    "truncated.npz",
    "too-few.mtx",
    "too-few-padded.mtx",
    "too-many.mtx",
    "index-outside.mtx",
    "forged.mtx",
    "huge.mtx",
    "banner.mtx",
    "complex.mtx",
    "negative.mtx",
    "nan.mtx",
    "beyond-i64.mtx",
    "not-square.mtx",
    "array-forged.mtx",
];

/// Trajectories that are none.
const TRAJECTORIES: &[&str] = &[
    "three-dimensions.npy",
    "beyond-i64.npy",
    "float-trajectory.npy",
    "one-frame.npy",
    "column.txt",
    "latin1.txt",
    "nul.txt",
    "unassigned.txt",
];

fn cases() -> Vec<(&'static str, InputSettings)> {
    let boxed = || InputSettings { bbox: Some("-80,30,-60,50".parse().unwrap()), ..points() };
    let mut all: Vec<(&str, InputSettings)> = Vec::new();
    for &name in TABLES {
        all.push((name, labelled()));
    }
    for name in ["nan-weight.parquet", "binary-weight.parquet", "negative.csv", "infinite.csv", "word-as-weight.csv", "zero-weights.csv"] {
        all.push((name, weighted()));
    }
    all.push(("missing-column.csv", InputSettings { from: some("form"), ..labelled() }));
    all.push(("missing-column.csv", InputSettings { to: some("destination"), ..labelled() }));
    all.push(("missing-column.csv", as_(As::Trips)));
    all.push(("missing-column.csv", InputSettings::default()));
    all.push(("missing-column.csv", InputSettings { lag: 5, ..labelled() }));
    all.push(("missing-column.csv", InputSettings { min_share: 0.9, ..labelled() }));
    all.push(("missing-column.csv", InputSettings { min_share: 10.0, ..labelled() }));
    for text in ["n > 100", "n >", "upper(from) = 'A'", "m = 1", "from > 5", "n = 1 AND (to = 'b'", "EXTRACT(HOUR FROM n) = 3"] {
        all.push(("missing-column.csv", condition(text)));
    }
    for name in ["out-of-range.csv", "lat-beyond-90.csv", "word-as-coordinate.csv"] {
        all.push((name, points()));
    }
    all.push(("swapped.csv", boxed()));
    all.push(("null-island.csv", boxed()));
    all.push(("swapped.csv", InputSettings { bbox: Some("-60,30,-80,50".parse().unwrap()), ..points() }));
    all.push(("swapped.csv", InputSettings { to_lat: None, ..points() }));
    all.push(("swapped.csv", InputSettings { cell: CellSize::Degrees(0.0), ..points() }));
    for &name in MATRICES {
        all.push((name, as_(As::Counts)));
    }
    all.push(("not-stochastic.npy", as_(As::Matrix)));
    all.push(("not-stochastic.npy", InputSettings::default()));
    all.push(("square-integers.npy", InputSettings::default()));
    all.push(("stochastic.npy", InputSettings { weights: some("tests/bad/weights-negative.txt"), ..as_(As::Matrix) }));
    all.push(("stochastic.npy", InputSettings { memory_limit: Some(8), ..as_(As::Matrix) }));
    for labels in ["labels-too-few.txt", "labels-twice.txt", "labels-empty.txt"] {
        all.push(("counts.mtx", InputSettings { labels: Some(format!("tests/bad/{labels}")), ..as_(As::Counts) }));
    }
    for &name in TRAJECTORIES {
        all.push((name, as_(As::Trajectories)));
    }
    all.push(("too-short.txt", InputSettings { lag: 3, ..as_(As::Trajectories) }));
    all.push(("too-short.txt", InputSettings { lag: 0, ..as_(As::Trajectories) }));
    let walk = || InputSettings { id: some("id"), time: some("t"), state: some("s"), ..InputSettings::default() };
    all.push(("traj.csv", walk()));
    all.push(("traj-mixed.csv", walk()));
    all.push(("traj.csv", as_(As::Trajectories)));
    all.push(("unknown.xyz", InputSettings::default()));
    // Known and not read, or read only when it is said how.
    for name in ["trips.csv.bz2", "trips.csv.xz", "trips.csv.zip", "trips.feather"] {
        all.push((name, labelled()));
    }
    all.push(("decimal-comma.csv", weighted()));
    all.push(("pairs.txt", InputSettings::default()));
    let text = |no_header: bool, columns: &[&str]| TextTable {
        no_header,
        columns: columns.iter().map(|c| c.to_string()).collect(),
        ..TextTable::default()
    };
    all.push(("pairs.txt", InputSettings { text: text(true, &["from", "to"]), ..InputSettings::default() }));
    all.push(("pairs.txt", InputSettings { text: text(true, &[]), ..InputSettings::default() }));
    all.push(("pairs.txt", InputSettings { from: some("1"), to: some("2"), ..InputSettings::default() }));
    all.push(("nan-weight.parquet", InputSettings { text: text(true, &[]), ..labelled() }));
    all
}

#[test]
fn bad_inputs_are_refused_in_one_sentence_and_little_memory() {
    let known: BTreeSet<&str> = codes().iter().map(|c| c.code).collect();
    // Threads and their pools are no part of any file's cost.
    let _ = read(&["tests/good/t.csv".into()], &InputSettings::default(), &mut Silent).unwrap();
    let cases = cases();
    assert!(cases.len() >= 40);
    let mut told = String::new();
    let mut used = BTreeSet::new();
    let mut worst = 0;
    for (name, settings) in &cases {
        let path = format!("tests/bad/{name}");
        let (result, bytes) = peak(|| read(std::slice::from_ref(&path), settings, &mut Silent));
        let e = result.err().unwrap_or_else(|| panic!("{name} was accepted"));
        assert!(known.contains(e.code()) || e.core().is_some(), "{} is not in the table", e.code());
        let size = std::fs::metadata(&path).map_or(0, |m| m.len());
        assert!(bytes <= allowed(size), "{name} of {size} bytes cost {bytes}");
        worst = worst.max(bytes);
        used.insert(name.to_string());
        writeln!(told, "{name}\n  {}\n  {e}\n", e.code()).unwrap();
    }
    println!("{} cases, the worst cost {worst} bytes", cases.len());
    insta::assert_snapshot!(told);
    // No file lies about unused.
    let helpers = ["labels-too-few.txt", "labels-twice.txt", "labels-empty.txt", "weights-negative.txt"];
    for entry in std::fs::read_dir("tests/bad").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(used.contains(&name) || helpers.contains(&name.as_str()), "{name} is not tested");
    }
}
