//! The same data through different doors, and what the doors say.

use std::path::Path;

use metastate::{CountMode, Counts, Label, LedgerUnit};
use metastate_ingest::{
    As, CountedStates, Data, Ingested, InputSettings, MatrixValues, ReadProgress, Silent, TextTable, Update, read, write_counts,
};

fn some(s: &str) -> Option<String> {
    Some(s.to_owned())
}

fn ingest(paths: &[&str], settings: &InputSettings) -> Ingested {
    let paths: Vec<String> = paths.iter().map(|p| p.to_string()).collect();
    read(&paths, settings, &mut Silent).unwrap_or_else(|e| panic!("{} {e}", e.code()))
}

fn counted(paths: &[&str], settings: &InputSettings) -> CountedStates {
    match ingest(paths, settings).data {
        Data::Counts(counted) => counted,
        _ => panic!("counts were expected"),
    }
}

fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

fn trips() -> InputSettings {
    InputSettings { from: some("from"), to: some("to"), ..InputSettings::default() }
}

const ROWS: &str = "from,to,n\na,7,1\n7,\"b, c\",2.5\n\"b, c\",a,0.25\na,7,4\n";

#[test]
fn tables_agree_in_every_dress() {
    let dir = tempfile::tempdir().unwrap();
    let settings = InputSettings { weight: some("n"), ..trips() };
    let plain = counted(&[&write(dir.path(), "a.csv", ROWS)], &settings);
    assert_eq!(plain.counts.transitions(), 7.75);
    let labels: Vec<Label> = plain.counts.index().labels().collect();
    assert_eq!(labels, [Label::Integer(7), Label::from("a"), Label::from("b, c")]);
    let crlf = format!("\u{feff}{}", ROWS.replace('\n', "\r\n"));
    let semicolons = "from;to;n\na;7;1\n7;b, c;2.5\nb, c;a;0.25\na;7;4";
    let json = "{\"n\":1,\"from\":\"a\",\"to\":7}\n{\"from\":\"7\",\"to\":\"b, c\",\"n\":2.5}\n\n{\"from\":\"b, c\",\"to\":\"a\",\"n\":\"0.25\"}\n{\"from\":\"a\",\"to\":7,\"n\":4}";
    let zstd = zstd::encode_all(ROWS.as_bytes(), 3).unwrap();
    for (name, bytes) in [
        ("b.csv", crlf.as_bytes()),
        ("c.csv", semicolons.as_bytes()),
        ("d.tsv", semicolons.replace(';', "\t").as_bytes()),
        ("e.jsonl", json.as_bytes()),
        ("f.csv.zst", &zstd),
        ("no-extension", ROWS.as_bytes()),
    ] {
        assert_eq!(counted(&[&write(dir.path(), name, bytes)], &settings).counts, plain.counts, "{name}");
    }
    let hints = ingest(&[dir.path().join("c.csv").to_str().unwrap()], &settings).hints;
    assert!(hints.iter().any(|h| h.contains("semicolons")), "{hints:?}");
}

/// Two gzip members in one file: the second must not be lost.
#[test]
fn packed_tables_are_read_to_their_end() {
    let plain = counted(&["tests/good/t.csv"], &InputSettings::default());
    let packed = counted(&["tests/good/t.csv.gz"], &InputSettings::default());
    assert_eq!((plain.rows, &plain.counts), (60, &packed.counts));
    let parquet = counted(&["tests/good/t-zstd.parquet"], &InputSettings::default());
    for name in ["snappy", "none", "lz4", "gzip", "plain"] {
        assert_eq!(counted(&[&format!("tests/good/t-{name}.parquet")], &InputSettings::default()).counts, parquet.counts, "{name}");
    }
}

#[test]
fn many_files_are_one_data_set_and_each_is_hashed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "2.csv", "from,to\na,b\n");
    write(dir.path(), "1.csv", "extra,to,from\nx,a,b\nx,c,b\n");
    let pattern = dir.path().join("*.csv").display().to_string();
    let both = ingest(&[&pattern], &trips());
    assert_eq!(both.inputs.len(), 2);
    assert!(both.inputs[0].name.ends_with("1.csv"));
    // printf "from,to\na,b\n" | sha256sum
    assert_eq!(both.inputs[1].bytes, 12);
    assert_eq!(both.inputs[1].sha256, "e1cf7b0c975b438627ddfd497ae865f2cc3a0d52e40f7062a7ac631fc63e3bd8");
    let Data::Counts(c) = both.data else { panic!() };
    assert_eq!((c.counts.transitions(), c.counts.states(), c.rows), (3.0, 3, 3));
    let twice = read(&[pattern.clone(), dir.path().join("1.csv").display().to_string()], &trips(), &mut Silent);
    assert_eq!(twice.unwrap_err().code(), "E-INGEST-OPTION");
}

#[test]
fn conditions_and_shares_account_for_every_row() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::from("from,to,n,kind\n");
    for i in 0..200 {
        text += &format!("{},{},{},{}\n", i % 7, (i * i) % 5, (i % 3) as f64 * 0.5, if i % 10 == 0 { "bus" } else { "taxi" });
    }
    text += "rare,0,1,taxi\n,1,1,taxi\n";
    let path = write(dir.path(), "t.csv", text);
    let settings = InputSettings { weight: some("n"), where_: some("kind = 'taxi'"), min_share: 0.03, ..trips() };
    let c = counted(&[&path], &settings);
    let rows: u64 = c.counts.ledger().iter().filter(|e| e.unit == LedgerUnit::Rows).map(|e| e.count).sum();
    assert_eq!((c.rows, c.kept + rows), (202, 202));
    for reason in ["where-not-true", "weight-zero", "label-missing", "below-min-share"] {
        assert!(c.counts.ledger().get(reason, LedgerUnit::Rows).is_some(), "{reason}");
    }
    assert_eq!(c.counts.index().position(&Label::from("rare")), None);
}

#[test]
fn trajectories_are_sorted_and_never_joined() {
    let dir = tempfile::tempdir().unwrap();
    let walk = |time: &str| InputSettings { id: some("id"), time: some(time), state: some("s"), ..InputSettings::default() };
    // Two walkers interleaved, one row late, one tie, one gap.
    let table = "id,t,day,s\nx,1,2015-12-01,a\ny,1,2015-12-01,b\nx,3,2015-12-03,c\nx,2,2015-12-02,b\ny,2,2015-12-02,\ny,3,2015-12-03,a\ny,3.0,2015-12-03,c\n";
    let path = write(dir.path(), "t.csv", table);
    for time in ["t", "day"] {
        let c = counted(&[&path], &walk(time)).counts;
        let pairs: Vec<String> =
            c.csr().triplets().map(|(i, j, n)| format!("{}{}{n}", c.index().label(i as usize), c.index().label(j as usize))).collect();
        assert_eq!(pairs, ["ab1", "ac1", "bc1"], "{time}");
        let count = |reason: &str, unit| c.ledger().get(reason, unit).map(|e| e.count);
        assert_eq!(count("out-of-time-order-sorted", LedgerUnit::Frames), Some(1));
        assert_eq!(count("equal-times-kept-in-file-order", LedgerUnit::Frames), Some(1));
        assert_eq!(count("unassigned-frame", LedgerUnit::Frames), Some(1));
        assert_eq!(count("too-short-for-lag", LedgerUnit::Trajectories), Some(1));
    }
    // A condition opens a gap, it does not close one.
    let path = write(dir.path(), "u.csv", "s,q\na,1\nb,1\nz,0\na,1\nb,1\n");
    let c = counted(&[&path], &InputSettings { state: some("s"), where_: some("q = 1"), ..InputSettings::default() });
    assert_eq!((c.counts.transitions(), c.counts.states()), (2.0, 2));
    // Two files without an id are two trajectories.
    let (p, q) = (write(dir.path(), "p.csv", "s\na\nb\n"), write(dir.path(), "q.csv", "s\nc\nd\n"));
    assert_eq!(counted(&[&p, &q], &InputSettings { state: some("s"), ..InputSettings::default() }).counts.transitions(), 2.0);
}

fn npy(kind: &str, fortran: &str, shape: &str, data: Vec<u8>) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00".as_slice(), &(header.len() as u16).to_le_bytes(), header.as_bytes(), &data].concat()
}

#[test]
fn text_and_arrays_agree() {
    let dir = tempfile::tempdir().unwrap();
    let walk = InputSettings { lag: 2, ..InputSettings::default() };
    let text = counted(&[&write(dir.path(), "a.txt", "# states\n0 1 2 -1 0 1\n2,1, 0 ,0,,1\n")], &walk);
    assert_eq!((text.counts.transitions(), text.counts.lag()), (3.0, 2));
    let frames: [i8; 12] = [0, 1, 2, -1, 0, 1, 2, 1, 0, 0, -1, 1];
    let rows = npy("|i1", "False", "(2, 6)", frames.iter().map(|n| *n as u8).collect());
    let columns = npy("|i1", "True", "(2, 6)", (0..6).flat_map(|j| [frames[j] as u8, frames[j + 6] as u8]).collect());
    for (name, bytes) in [("b.npy", rows), ("c.npy", columns)] {
        assert_eq!(counted(&[&write(dir.path(), name, bytes)], &walk).counts.csr(), text.counts.csr(), "{name}");
    }
    let strided = InputSettings { count: CountMode::Strided, ..walk };
    assert_eq!(counted(&[&write(dir.path(), "d.txt", "0 1 2 0 1")], &strided).counts.transitions(), 2.0);
}

#[test]
fn scipy_files_agree() {
    let as_counts = InputSettings { as_: Some(As::Counts), ..InputSettings::default() };
    let one = counted(&["tests/good/m-csr.npz"], &as_counts).counts;
    assert_eq!(one.states(), 12);
    for name in ["m-csc.npz", "m-coo.npz", "m.npy", "m-fortran.npy", "m.mtx"] {
        assert_eq!(counted(&[&format!("tests/good/{name}")], &as_counts).counts, one, "{name}");
    }
    // Whole numbers above one can only be counts.
    assert_eq!(ingest(&["tests/good/m-csr.npz"], &InputSettings::default()).as_, As::Counts);
    let twice = counted(&["tests/good/m-csr.npz", "tests/good/m.mtx"], &as_counts).counts;
    assert_eq!(twice.transitions(), 2.0 * one.transitions());
    let symmetric = counted(&["tests/good/m-array.mtx"], &InputSettings::default()).counts;
    assert_eq!(symmetric.csr().triplets().map(|t| t.2).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 2.0, 4.0, 5.0, 3.0, 5.0, 6.0]);
}

#[test]
fn a_transition_matrix_with_labels_and_weights() {
    let dir = tempfile::tempdir().unwrap();
    let labels = write(dir.path(), "labels.txt", "wake\nsleep\n");
    let weights = write(dir.path(), "xi.npy", npy("<f8", "False", "(2,)", [0.25f64, 0.75].iter().flat_map(|x| x.to_le_bytes()).collect()));
    let settings = InputSettings { labels: Some(labels), weights: Some(weights), ..InputSettings::default() };
    let ingested = ingest(&["tests/bad/stochastic.npy"], &settings);
    assert_eq!((ingested.as_, ingested.inputs.len()), (As::Matrix, 3));
    let Data::Matrix(given) = ingested.data else { panic!() };
    assert_eq!((given.weights, given.index.label(1)), (Some(vec![0.25, 0.75]), Label::from("sleep")));
    assert!(matches!(given.values, MatrixValues::Sparse(_)));
    let Data::Matrix(given) =
        ingest(&["tests/bad/stochastic.npy"], &InputSettings { as_: Some(As::Matrix), ..InputSettings::default() }).data
    else {
        panic!()
    };
    assert!(matches!(given.values, MatrixValues::Dense(_)));
}

#[test]
fn counts_files_are_added_up() {
    let dir = tempfile::tempdir().unwrap();
    let count = |name: &str, text: &str, lag: usize| {
        let path = write(dir.path(), &format!("{name}.txt"), text);
        let c = counted(&[&path], &InputSettings { lag, ..InputSettings::default() });
        let out = dir.path().join(format!("{name}.parquet"));
        write_counts(&out, &c, &[]).unwrap();
        (out.display().to_string(), c)
    };
    let (a, one) = count("a", "x y z x y -1 z", 2);
    let (b, two) = count("b", "y z w y", 2);
    let (c, _) = count("c", "y z w y", 1);
    let both = counted(&[&a, &b], &InputSettings::default());
    assert_eq!((both.counts.lag(), both.rows), (2, one.rows + two.rows));
    let merged = one.counts.merge(&two.counts).unwrap();
    assert_eq!(both.counts.transitions(), merged.transitions());
    for (i, j, n) in merged.csr().triplets() {
        let at = |k: u32| both.counts.index().position(&merged.index().label(k as usize)).unwrap();
        let (columns, values) = both.counts.csr().row(at(i) as usize);
        assert_eq!(values[columns.binary_search(&at(j)).unwrap()], n);
    }
    assert_eq!(both.counts.ledger().get("unassigned-frame", LedgerUnit::Frames).unwrap().count, 1);
    assert_eq!(read(&[a, c], &InputSettings::default(), &mut Silent).unwrap_err().code(), "E-INGEST-LAG");
}

/// Fractional weights, many pieces of text: the bits may depend neither on threads nor on the memory limit's cuts.
#[test]
fn threads_change_no_bit() {
    let dir = tempfile::tempdir().unwrap();
    let mut seed = 3u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    let mut text = String::from("from,to,n\n");
    for _ in 0..400_000 {
        text += &format!("s{},s{},0.{}\n", next(3000), next(3000), next(1000));
    }
    let path = write(dir.path(), "t.csv", text);
    let settings = InputSettings { weight: some("n"), memory_limit: Some(1), ..trips() };
    let with = |threads: usize| -> Counts {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| counted(&[&path], &settings).counts)
    };
    let one = with(1);
    for threads in [2, 5] {
        assert!(with(threads) == one, "{threads} threads");
    }
}

struct Impatient(u32);

impl ReadProgress for Impatient {
    fn update(&mut self, update: &Update) -> bool {
        assert!(update.bytes <= update.total_bytes || update.total_bytes == 0);
        self.0 += 1;
        false
    }
}

#[test]
fn a_text_without_a_header_is_a_table_when_it_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let blanks = write(dir.path(), "pairs.txt", "the  cat 12\nthe\tdog 7 \n\n a cat 3\ncat the 1\n");
    let bars = write(dir.path(), "pairs.dat", "the:cat:12\nthe:dog:7\na:cat:3\ncat:the:1\n");
    let text = |delimiter: Option<&str>, columns: &[&str]| TextTable {
        no_header: true,
        delimiter: delimiter.map(|d| d.parse().unwrap()),
        columns: columns.iter().map(|c| c.to_string()).collect(),
    };
    let named = InputSettings { text: text(None, &["from", "to", "count"]), ..InputSettings::default() };
    let read_blanks = ingest(&[&blanks], &named);
    assert_eq!(
        read_blanks.read_as,
        "read as counts: `count` says how often `from` was followed by `to` (text separated by blanks, columns named by --columns); recognised from the file, --as changes it"
    );
    let numbered =
        InputSettings { text: text(Some(":"), &[]), from: some("1"), to: some("2"), weight: some("3"), ..InputSettings::default() };
    let read_bars = ingest(&[&bars], &numbered);
    assert_eq!(
        read_bars.read_as,
        "read as trips, one a row: from `1` to `2`, each counts `3` times (text separated by `:`, no header, columns numbered)"
    );
    let counts = |read: Ingested| match read.data {
        Data::Counts(counted) => counted.counts.csr().triplets().collect::<Vec<_>>(),
        _ => panic!("counts"),
    };
    let (a, b) = (counts(read_blanks), counts(read_bars));
    assert_eq!(a, b);
    assert_eq!(a.iter().map(|t| t.2).sum::<f64>(), 23.0);
    // The names of a header may be replaced; the header is then no row.
    let csv = write(dir.path(), "c.csv", "x,y\na,b\nb,a\n");
    let renamed = InputSettings { text: TextTable { columns: vec!["from".into(), "to".into()], ..TextTable::default() }, ..trips() };
    assert_eq!(counted(&[&csv], &InputSettings { weight: None, ..renamed }).rows, 2);
}

#[test]
fn what_was_read_and_how_is_told_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let walks = write(dir.path(), "w.txt", "a b c a\nb c\n");
    assert_eq!(
        ingest(&[&walks], &InputSettings::default()).read_as,
        "read as trajectories, one a line, labels separated by blanks or commas; recognised from the file, --as changes it"
    );
    let table = write(dir.path(), "t.csv", "id;t;s\n1;1;a\n1;2;b\n1;3;a\n1;4;a\n");
    let by_time = InputSettings { state: some("s"), id: some("id"), time: some("t"), lag: 2, ..InputSettings::default() };
    assert_eq!(
        ingest(&[&table], &by_time).read_as,
        "read as trajectories, one for each `id`, a frame a row: the state is `s`, sorted by `t`, counted at a lag of 2 frames (text separated by semicolons, columns named by the first line)"
    );
    let points = write(dir.path(), "p.csv", "a,b,c,d\n-74,40.7,-74,40.8\n-74,40.8,-74,40.7\n-74,40.7,0,0\n");
    let cells = |cell: &str| InputSettings {
        from_lon: some("a"),
        from_lat: some("b"),
        to_lon: some("c"),
        to_lat: some("d"),
        cell: cell.parse().unwrap(),
        ..InputSettings::default()
    };
    let read = ingest(&[&points], &cells("h3:7"));
    assert!(read.read_as.contains("between hexagons of H3, resolution 7, each counts once"), "{}", read.read_as);
    assert!(read.hints.iter().any(|h| h.starts_with("1 rows begin or end at longitude 0, latitude 0")), "{:?}", read.hints);
    assert!(read.hints.iter().any(|h| h.contains("little can be learnt from so few")), "{:?}", read.hints);
    // A counts file of hexagons knows their places.
    let Data::Counts(hexagons) = &read.data else { panic!("counts") };
    let file = dir.path().join("hexagons.parquet");
    write_counts(&file, hexagons, &read.inputs).unwrap();
    let again = counted(&[file.to_str().unwrap()], &InputSettings::default());
    assert_eq!((again.coordinates, again.cell), (hexagons.coordinates.clone(), hexagons.cell));
}

#[test]
fn slips_that_can_be_seen_are_hinted() {
    let dir = tempfile::tempdir().unwrap();
    let hints = |csv: &str, settings: &InputSettings| ingest(&[&write(dir.path(), "h.csv", csv)], settings).hints.join("\n");
    let same = InputSettings { from: some("a"), to: some("a"), ..InputSettings::default() };
    assert!(hints("a,b\n1,2\n2,1\n", &same).contains("name the same column `a`"));
    let pair = InputSettings { from: some("a"), to: some("b"), ..InputSettings::default() };
    assert!(hints("a,b\n217,3\n3,217.0\n217.0,217\n", &pair).contains("`217` and `217.0` are two states"));
    let lonlat = |a: &str, b: &str, c: &str, d: &str| InputSettings {
        from_lon: some(a),
        from_lat: some(b),
        to_lon: some(c),
        to_lat: some(d),
        ..InputSettings::default()
    };
    let swapped = "p,q,r,s\n40.7,-74,40.8,-74\n40.8,-74,40.7,-74\n";
    assert!(hints(swapped, &lonlat("p", "q", "r", "s")).contains("2 of 2 trips lie near a pole"));
    let named = "from_lat,from_lon,to_lat,to_lon\n51.5,0.1,51.6,0.2\n51.6,0.2,51.5,0.1\n";
    assert!(hints(named, &lonlat("from_lat", "from_lon", "to_lat", "to_lon")).contains("as their names say"));
    assert!(!hints(named, &lonlat("from_lon", "from_lat", "to_lon", "to_lat")).contains("exchanged"));
}

#[test]
fn the_caller_can_stop() {
    let mut impatient = Impatient(0);
    let e = read(&["tests/good/t.csv".into()], &InputSettings::default(), &mut impatient).unwrap_err();
    assert!(e.is_cancelled() && impatient.0 == 1);
}
