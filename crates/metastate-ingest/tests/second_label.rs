//! A second label of each record: the same from every format, left-out records told, and nothing else changed by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray};
use metastate::LedgerUnit;
use metastate_ingest::{As, CountedStates, Data, InputSettings, SecondLabel, Side, Silent, memory, read};

fn some(s: &str) -> Option<String> {
    Some(s.to_owned())
}

fn slice(expression: &str) -> InputSettings {
    let second = SecondLabel { option: "slice", expression: expression.parse().unwrap(), side: Side::Columns, value: None };
    InputSettings { from: some("from"), to: some("to"), second: Some(second), ..InputSettings::default() }
}

fn action(value: Option<&str>) -> InputSettings {
    let second = SecondLabel { option: "action", expression: "act".parse().unwrap(), side: Side::Rows, value: value.map(str::to_owned) };
    InputSettings { from: some("from"), to: some("to"), second: Some(second), ..InputSettings::default() }
}

fn counted(path: &str, settings: &InputSettings) -> CountedStates {
    match read(&[path.to_owned()], settings, &mut Silent).unwrap_or_else(|e| panic!("{} {e}", e.code())).data {
        Data::Counts(counted) => counted,
        _ => panic!("counts were expected"),
    }
}

/// Label, origin, destination and count by their names.
fn named(counted: &CountedStates) -> BTreeMap<(String, String, String), f64> {
    let second = counted.second.as_ref().unwrap();
    let state = |i: u32| counted.counts.index().label(i as usize).to_string();
    let label = |i: u32| second.labels.label(i as usize).to_string();
    let entries = second.counts.triplets().map(|(i, j, n)| match second.side {
        Side::Columns => ((label(second.pairs[j as usize].0), state(i), state(second.pairs[j as usize].1)), n),
        Side::Rows => ((label(second.pairs[i as usize].0), state(second.pairs[i as usize].1), state(j)), n),
    });
    entries.collect()
}

fn written(rows: &[(&str, &str, &str)]) -> String {
    rows.iter().map(|(f, t, w)| format!("{f},{t},{w}\n")).fold("from,to,when\n".to_owned(), |all, line| all + &line)
}

const ROWS: [(&str, &str, &str); 6] = [
    ("a", "b", "2015-12-01 08:30:00"),
    ("b", "a", "2015-12-01T08:59:59Z"),
    ("a", "b", "2015-12-02 18:00:00.250"),
    ("a", "a", "2015-12-06 08:00"),
    ("b", "a", ""),
    ("", "a", "2015-12-06 08:00:00"),
];

#[test]
fn every_format_tells_the_same_slices() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let csv = written(&ROWS);
    let json: String = ROWS.iter().map(|(f, t, w)| format!("{{\"when\":\"{w}\",\"from\":\"{f}\",\"to\":\"{t}\"}}\n")).collect();
    let zstd = zstd::encode_all(csv.as_bytes(), 3).unwrap();
    let files = [
        write("a.csv", csv.as_bytes()),
        write("b.tsv", csv.replace(',', "\t").as_bytes()),
        write("c.jsonl", json.as_bytes()),
        write("d.csv.zst", &zstd),
    ];
    let key = |h: &str, f: &str, t: &str| (h.to_owned(), f.to_owned(), t.to_owned());
    for (expression, expected) in [
        ("hour(when)", vec![(key("8", "a", "b"), 1.0), (key("8", "b", "a"), 1.0), (key("8", "a", "a"), 1.0), (key("18", "a", "b"), 1.0)]),
        ("weekday(when)", vec![(key("2", "a", "b"), 1.0), (key("2", "b", "a"), 1.0), (key("3", "a", "b"), 1.0), (key("7", "a", "a"), 1.0)]),
        ("Month(when)", vec![(key("12", "a", "b"), 2.0), (key("12", "b", "a"), 1.0), (key("12", "a", "a"), 1.0)]),
        (
            "date(\"when\")",
            vec![
                (key("2015-12-01", "a", "b"), 1.0),
                (key("2015-12-01", "b", "a"), 1.0),
                (key("2015-12-02", "a", "b"), 1.0),
                (key("2015-12-06", "a", "a"), 1.0),
            ],
        ),
    ] {
        for file in &files {
            let counted = counted(file, &slice(expression));
            assert_eq!(named(&counted), expected.iter().cloned().collect(), "{expression} {file}");
            let ledger = counted.counts.ledger();
            let left_out = |reason: &str| ledger.get(reason, LedgerUnit::Rows).map_or(0, |e| e.count);
            assert_eq!((counted.rows, counted.kept, left_out("slice-missing"), left_out("label-missing")), (6, 4, 1, 1), "{file}");
        }
    }
    // Hours are in the order of their numbers, and the whole is what it is without slices.
    let sliced = counted(&files[0], &slice("hour(when)"));
    let labels: Vec<String> = sliced.second.as_ref().unwrap().labels.labels().map(|l| l.to_string()).collect();
    assert_eq!(labels, ["8", "18"]);
    assert_eq!(sliced.counts.transitions(), 4.0);
    assert!(sliced.counts.csr().triplets().any(|entry| entry == (0, 1, 2.0)));
    // Many files are one data set.
    let all = read(&files, &slice("when"), &mut Silent);
    let Ok(all) = all else { panic!() };
    assert!(all.read_as.contains("; the slice is `when`"), "{}", all.read_as);
    assert_eq!(all.ledger().get("slice-missing", LedgerUnit::Rows).unwrap().count, 4);
}

#[test]
fn timestamps_of_any_unit_and_zone() {
    // 2015-12-01 23:30 UTC, and an hour later; New York is five hours behind, India half past five ahead.
    let seconds = [1_449_012_600i64, 1_449_016_200];
    let table = |when: ArrayRef| {
        let ends = |names: [&str; 2]| Arc::new(StringArray::from(names.to_vec())) as ArrayRef;
        RecordBatch::try_from_iter([("from", ends(["a", "b"])), ("to", ends(["b", "a"])), ("when", when)]).unwrap()
    };
    let s = || TimestampSecondArray::from(seconds.to_vec());
    let ms = || TimestampMillisecondArray::from(seconds.map(|t| t * 1000).to_vec());
    let ns = || TimestampNanosecondArray::from(seconds.map(|t| t * 1_000_000_000).to_vec());
    let cases: [(ArrayRef, [&str; 2], [&str; 2]); 7] = [
        (Arc::new(s()), ["23", "0"], ["2015-12-01", "2015-12-02"]),
        (Arc::new(ms()), ["23", "0"], ["2015-12-01", "2015-12-02"]),
        (Arc::new(ns()), ["23", "0"], ["2015-12-01", "2015-12-02"]),
        (Arc::new(ns().with_timezone("UTC")), ["23", "0"], ["2015-12-01", "2015-12-02"]),
        (Arc::new(ms().with_timezone("America/New_York")), ["18", "19"], ["2015-12-01", "2015-12-01"]),
        (Arc::new(s().with_timezone("+05:30")), ["5", "6"], ["2015-12-02", "2015-12-02"]),
        (Arc::new(ns().with_timezone("-0500")), ["18", "19"], ["2015-12-01", "2015-12-01"]),
    ];
    for (when, hours, days) in cases {
        let kind = when.data_type().clone();
        for (expression, expected) in [("hour(when)", hours), ("date(when)", days)] {
            let Ok(ingested) = memory::from_batches(vec![table(when.clone())], &slice(expression), &mut Silent) else { panic!("{kind}") };
            let Data::Counts(counted) = ingested.data else { panic!() };
            let of_a = named(&counted).into_keys().find(|k| k.1 == "a").unwrap().0;
            let of_b = named(&counted).into_keys().find(|k| k.1 == "b").unwrap().0;
            assert_eq!([of_a.as_str(), of_b.as_str()], expected, "{kind} {expression}");
        }
    }
    for zone in ["Mars/Olympus", "+aé1"] {
        let unknown = table(Arc::new(s().with_timezone(zone)));
        let e = memory::from_batches(vec![unknown], &slice("hour(when)"), &mut Silent).unwrap_err();
        assert!(e.to_string().contains(&format!("its zone `{zone}` is not known")), "{e}");
    }
    let Err(e) = memory::from_batches(vec![table(Arc::new(s()))], &slice("hour(from)"), &mut Silent) else { panic!() };
    assert_eq!(e.code(), "E-INGEST-NUMBER", "{e}");
}

#[test]
fn a_time_that_no_clock_of_its_zone_shows_has_no_slice() {
    let last = chrono::DateTime::<chrono::Utc>::MAX_UTC.timestamp();
    let when: ArrayRef = Arc::new(TimestampSecondArray::from(vec![last, 1_449_016_200]).with_timezone("Asia/Tokyo"));
    let ends = |names: [&str; 2]| Arc::new(StringArray::from(names.to_vec())) as ArrayRef;
    let table = RecordBatch::try_from_iter([("from", ends(["a", "b"])), ("to", ends(["b", "a"])), ("when", when)]).unwrap();
    let Ok(ingested) = memory::from_batches(vec![table], &slice("hour(when)"), &mut Silent) else { panic!() };
    let Data::Counts(counted) = ingested.data else { panic!() };
    assert_eq!(counted.counts.ledger().get("slice-missing", LedgerUnit::Rows).unwrap().count, 1);
    assert_eq!(counted.kept, 1);
}

#[test]
fn actions_join_the_rows_and_rewards_are_summed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    std::fs::write(&path, "from,act,to,r\n1,left,2,1\n1,left,1,3\n1,right,2,-1\n2,left,1,0.5\n2,,1,9\n2,left,1,\n1,left,2,2\n").unwrap();
    let counted = counted(path.to_str().unwrap(), &action(Some("r")));
    let second = counted.second.as_ref().unwrap();
    assert_eq!((second.counts.rows(), second.counts.cols()), (3, 2));
    assert_eq!(second.pairs, [(0, 0), (1, 0), (0, 1)]);
    let entries: Vec<_> = second.counts.triplets().collect();
    assert_eq!(entries, [(0, 0, 1.0), (0, 1, 2.0), (1, 1, 1.0), (2, 0, 1.0)]);
    let tallies: Vec<[f64; 3]> = second.values.as_ref().unwrap().iter().map(|t| [t.weight, t.sum, t.squares]).collect();
    assert_eq!(tallies, [[3.0, 6.0, 14.0], [1.0, -1.0, 1.0], [1.0, 0.5, 0.25]]);
    let ledger = counted.counts.ledger();
    assert_eq!(ledger.get("action-missing", LedgerUnit::Rows).unwrap().count, 1);
    assert_eq!(ledger.get("reward-missing", LedgerUnit::Rows).unwrap().count, 1);
    assert_eq!(counted.kept, 5);
}

#[test]
fn states_that_are_left_out_go_with_their_slices() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let mut text = "from,to,h,n\nrare,a,9,0.5\na,rare,9,1\n".to_owned();
    (0..40).for_each(|k| text += &format!("a,b,{0},2\nb,a,{0},1\n", k % 2));
    std::fs::write(&path, &text).unwrap();
    let settings = InputSettings { weight: some("n"), min_share: 0.01, ..slice("h") };
    let few = counted(path.to_str().unwrap(), &settings);
    let labels: Vec<String> = few.second.as_ref().unwrap().labels.labels().map(|l| l.to_string()).collect();
    assert_eq!(labels, ["0", "1"]);
    let ledger = few.counts.ledger();
    let gone = ledger.get("below-min-share", LedgerUnit::Rows).unwrap();
    assert_eq!((gone.count, gone.weight, few.kept), (2, 1.5, 80));
    // The same without slices.
    let whole = counted(path.to_str().unwrap(), &InputSettings { second: None, ..settings.clone() });
    assert_eq!(whole.counts, few.counts);
    // Counts given as rows have slices, too.
    let counts = InputSettings { as_: Some(As::Counts), min_share: 0.0, ..settings };
    assert_eq!(counted(path.to_str().unwrap(), &counts).second.unwrap().labels.len(), 3);
}

#[test]
fn sums_do_not_depend_on_threads_and_spill_alike() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let mut text = "from,to,h\n".to_owned();
    (0u64..200_000).for_each(|k| {
        let mix = k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        text += &format!("{},{},{}\n", mix % 700, (mix / 700) % 700, mix % 23);
    });
    std::fs::write(&path, &text).unwrap();
    let at = |threads: usize, limit: Option<u64>| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let settings = InputSettings { memory_limit: limit, ..slice("h") };
        let counted = pool.install(|| counted(path.to_str().unwrap(), &settings));
        let second = counted.second.unwrap();
        (second.pairs, second.counts)
    };
    let one = at(1, None);
    assert_eq!(one.1.values().iter().sum::<f64>(), 200_000.0);
    assert!(one == at(3, None) && one == at(2, Some(1)));
}

#[test]
fn expressions_that_mean_nothing_are_refused() {
    let parsed = |text: &str| text.parse::<metastate_ingest::Expression>();
    assert_eq!(parsed("hour(pick up)").unwrap().to_string(), "hour(pick up)");
    assert_eq!(parsed("speed (km/h)").unwrap().column, "speed (km/h)");
    assert_eq!(parsed("\"hour(x)\"").unwrap().column, "hour(x)");
    assert!(parsed("minute(t)").unwrap_err().contains("none of hour, weekday, month, date"));
    assert!(parsed("hour()").unwrap_err().contains("names no column"));
    assert!(parsed(" ").unwrap_err().contains("no column is named"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv").display().to_string();
    std::fs::write(&path, "from,to,when\na,b,2015-12-01\nb,a,soon\n").unwrap();
    let e = read(std::slice::from_ref(&path), &slice("hour(when)"), &mut Silent).unwrap_err();
    assert_eq!((e.code(), e.place().line, e.value_met()), ("E-INGEST-NUMBER", Some(3), Some("soon")));
    let e = read(std::slice::from_ref(&path), &slice("hour(wen)"), &mut Silent).unwrap_err();
    assert!(e.to_string().contains("did you mean `when`"), "{e}");
    let walks = InputSettings { from: None, to: None, state: some("from"), ..slice("when") };
    let e = read(&[path], &walks, &mut Silent).unwrap_err();
    assert!(e.to_string().contains("--slice cannot be used with trajectories"), "{e}");
}
