//! Bad inputs and bad arguments: exit code 2, a sentence, nothing written.

mod common;

use common::Place;

/// The bad files of the reader's own tests.
fn bad_files() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../metastate-ingest/tests/bad");
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path().into_os_string().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_bad_file_ends_with_two_and_leaves_nothing() {
    let place = Place::new();
    let mut refused = 0;
    for file in bad_files() {
        let name = file.rsplit('/').next().unwrap();
        // These are bad only together with options that other tests give, or help another file to be bad.
        let fine = ["labels-", "weights-", "missing-column", "counts.mtx", "stochastic.npy", "square-integers", "traj", "zero-weights"];
        if fine.iter().any(|f| name.starts_with(f)) {
            continue;
        }
        let kind: &[&str] = match name.rsplit('.').next().unwrap() {
            "npy" if ["three-d", "beyond", "float-t", "one-frame"].iter().any(|s| name.starts_with(s)) => &["--as", "trajectories"],
            "npy" if name.starts_with("not-stoch") => &["--as", "matrix"],
            "npy" | "npz" | "mtx" => &["--as", "counts"],
            "txt" => &["--as", "trajectories", "--lag", "3"],
            _ if ["out-of", "lat-b", "word-as-c", "swapped", "null-island"].iter().any(|s| name.starts_with(s)) => {
                &["--from-lon", "lon", "--from-lat", "lat", "--to-lon", "lon2", "--to-lat", "lat2", "--bbox", "-80,30,-60,50"]
            }
            _ if ["nan-w", "binary-w", "decimal-comma", "negative", "infinite", "word-as-w"].iter().any(|s| name.starts_with(s)) => {
                &["--as", "trips", "--from", "from", "--to", "to", "--weight", "n"]
            }
            _ => &["--as", "trips", "--from", "from", "--to", "to"],
        };
        let (out, err) = place.expect(2, &[&["fit", &file, "--lambda", "1e-3", "--out", "out"], kind].concat());
        assert!(out.is_empty() && err.starts_with("error[E-"), "{name}: {err}");
        assert!(place.names().is_empty(), "{name} left {:?}", place.names());
        refused += 1;
    }
    assert!(refused >= 40, "only {refused}");
}

#[test]
fn codes_are_explained() {
    let place = Place::new();
    let (list, _) = place.expect(0, &["explain"]);
    for code in list.lines() {
        let (text, _) = place.expect(0, &["explain", code]);
        assert!(text.len() > code.len() + 40, "{code}");
    }
    assert!(list.lines().count() > 50);
    place.expect(2, &["explain", "E-NO-SUCH"]);
}

#[test]
fn help_has_examples_and_bad_arguments_end_with_two() {
    let place = Place::new();
    for command in ["fit", "count", "verify", "forecast", "simulate", "demo", "explain", "completions"] {
        let (help, _) = place.expect(0, &[command, "--help"]);
        assert!(help.contains("Example"), "{command}");
    }
    place.expect(2, &["fit"]);
    place.expect(2, &["fit", "x.csv", "--out", "o", "--lambda", "1", "--lambda-ratio", "1"]);
    place.expect(2, &["no-such-command"]);
    let (script, _) = place.expect(0, &["completions", "bash"]);
    assert!(script.contains("_metastate"));
}

#[test]
fn count_never_overwrites() {
    let place = Place::new();
    place.write("t.csv", "from,to\na,b\nb,a\na,a\n");
    let count = ["count", "t.csv", "--as", "trips", "--from", "from", "--to", "to", "--out"];
    let (_, err) = place.expect(2, &[&count[..], &["t.csv", "--force"]].concat());
    assert!(err.contains("would be overwritten"), "{err}");
    let (_, err) = place.expect(2, &[&count[..], &["c.csv"]].concat());
    assert!(err.contains("ends in .csv") && err.contains("--out c.parquet") && !place.path("c.csv").exists(), "{err}");
    assert_eq!(place.read("t.csv"), b"from,to\na,b\nb,a\na,a\n");
    place.expect(0, &[&count[..], &["c.parquet"]].concat());
    place.expect(2, &[&count[..], &["c.parquet"]].concat());
    let (out, _) = place.expect(0, &[&count[..], &["c.parquet", "--force", "--json"]].concat());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["transitions"], 3.0);
}
