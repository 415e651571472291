//! From a file to a folder and back.

mod common;

use common::{Place, assert_same_answer, mtx, npy, planted_counts, triplets_csv};
use serde_json::Value;

const LAMBDA: &[&str] = &["--lambda-ratio", "0.4"];

fn fit(place: &Place, input: &[&str], out: &str) -> (String, String) {
    place.expect(0, &[&["fit"], input, LAMBDA, &["--out", out]].concat())
}

fn small() -> Place {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(30, 3)));
    place
}

#[test]
fn a_small_fit_writes_the_folder_and_verify_agrees() {
    let place = small();
    let (out, _) = fit(&place, &["counts.csv"], "out");
    assert!(out.contains("3 meta-states behind 30 states"), "{out}");
    for file in ["summary.json", "factors.npz", "certificate.npz", "states.csv", "states.parquet", "metastates.csv", "latent.csv"] {
        assert!(place.path("out").join(file).is_file(), "{file}");
    }
    assert_eq!(place.names(), ["counts.csv", "out"], "nothing is left beside the folder");
    let summary: Value = serde_json::from_slice(&place.read("out/summary.json")).unwrap();
    for key in [
        "schema",
        "status",
        "states",
        "transitions",
        "nonzeros",
        "lambda",
        "lambda_max",
        "rank",
        "objective",
        "fidelity",
        "regularizer",
        "errors",
        "seconds",
        "iterations",
        "seed",
        "settings",
        "ledger",
        "command",
        "inputs",
        "version",
        "hints",
    ] {
        assert!(!summary[key].is_null(), "{key}");
    }
    assert_eq!(summary["inputs"][0]["name"], "counts.csv");
    assert_eq!(summary["status"], "certified");
    let (table, _) = place.expect(0, &["verify", "out"]);
    assert!(table.contains("objective") && table.contains("agree"), "{table}");
    assert!(!table.contains("NO"), "{table}");
}

#[test]
fn verify_catches_a_changed_summary() {
    let place = small();
    fit(&place, &["counts.csv"], "out");
    let good = common::text(&place.read("out/summary.json"));
    let parsed: Value = serde_json::from_str(&good).unwrap();
    // Each claim, made a little better than it is.
    for key in ["objective", "fidelity", "lower_bound", "transitions", "lambda"] {
        let mut forged = parsed.clone();
        forged[key] = (parsed[key].as_f64().unwrap() * 1.01).into();
        place.write("out/summary.json", forged.to_string());
        let (table, _) = place.expect(1, &["verify", "out"]);
        assert!(table.contains("NO"), "{key}\n{table}");
    }
    let mut forged = parsed.clone();
    forged["errors"]["certified_gap"] = (-1e-3).into();
    place.write("out/summary.json", forged.to_string());
    place.expect(1, &["verify", "out"]);
    place.write("out/summary.json", &good);
    place.expect(0, &["verify", "out"]);
    place.write("out/summary.json", &good[..good.len() / 2]);
    let (_, err) = place.expect(1, &["verify", "out"]);
    assert!(err.contains("E-CLI-RESULT"), "{err}");
}

#[test]
fn verify_catches_changed_factors_tables_and_inputs() {
    let place = small();
    fit(&place, &["counts.csv"], "out");
    for file in ["factors.npz", "certificate.npz", "states.csv", "latent.csv", "metastates.csv"] {
        let good = place.read(&format!("out/{file}"));
        let mut forged = good.clone();
        // A digit or a byte in the middle.
        let at = (forged.len() / 2..forged.len()).find(|&k| forged[k].is_ascii_digit()).unwrap();
        forged[at] = if forged[at] == b'7' { b'3' } else { b'7' };
        place.write(&format!("out/{file}"), &forged);
        place.expect(1, &["verify", "out"]);
        place.write(&format!("out/{file}"), &good);
    }
    place.expect(0, &["verify", "out"]);
    place.write("counts.csv", "from,to,count\n0,1,5\n1,0,5\n");
    let (_, err) = place.expect(1, &["verify", "out"]);
    assert!(err.contains("E-CLI-INPUTS-GONE") && err.contains("counts.csv"), "{err}");
    std::fs::remove_file(place.path("counts.csv")).unwrap();
    place.expect(1, &["verify", "out"]);
}

#[test]
fn verify_recomputes_the_stationary_shares() {
    let place = small();
    fit(&place, &["counts.csv"], "out");
    let table = common::text(&place.read("out/metastates.csv"));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].ends_with(",stationary"), "{table}");
    let share = |line: &str| line.rsplit(',').next().unwrap().parse::<f64>().unwrap();
    assert!((lines[1..].iter().map(|l| share(l)).sum::<f64>() - 1.0).abs() < 1e-12);
    // Two shares exchanged, and the file's hash made to match: only the law itself can tell.
    let (a, b) = (lines[1].rsplit_once(',').unwrap(), lines[3].rsplit_once(',').unwrap());
    let swapped = table.replace(lines[1], &format!("{},{}", a.0, b.1)).replace(lines[3], &format!("{},{}", b.0, a.1));
    assert_ne!(swapped, table);
    let summary = common::text(&place.read("out/summary.json"));
    let hash = |text: &str| metastate_report::hash::of_bytes(text.as_bytes());
    assert!(summary.contains(&hash(&table)));
    place.write("out/metastates.csv", &swapped);
    place.write("out/summary.json", summary.replace(&hash(&table), &hash(&swapped)));
    let (checks, _) = place.expect(1, &["verify", "out"]);
    assert!(checks.contains("not stationary"), "{checks}");
}

#[test]
fn verify_finds_the_inputs_from_another_folder() {
    let place = small();
    fit(&place, &["counts.csv"], "out");
    let elsewhere = Place::new();
    elsewhere.expect(0, &["verify", place.path("out").to_str().unwrap()]);
}

#[test]
fn json_is_all_that_standard_output_holds() {
    let place = small();
    let (out, _) = place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.4", "--out", "out", "--json"]);
    let printed: Value = serde_json::from_str(&out).unwrap();
    let written: Value = serde_json::from_slice(&place.read("out/summary.json")).unwrap();
    assert_eq!(printed, written);
    let (out, _) = place.expect(0, &["verify", "out", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["agrees"], true);
    let (out, err) = place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.4", "--out", "quiet", "--quiet"]);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
}

#[test]
fn a_folder_in_the_way_is_refused_before_any_work() {
    let place = small();
    std::fs::create_dir(place.path("out")).unwrap();
    place.write("out/mine.txt", "precious");
    let (_, err) = place.expect(2, &["fit", "no-such-file.csv", "--lambda", "1", "--out", "out"]);
    assert!(err.contains("E-CLI-EXISTS"), "the folder is looked at first: {err}");
    place.expect(2, &["fit", "out/mine.txt", "--as", "trajectories", "--lambda", "1", "--out", "out", "--force"]);
    assert_eq!(place.read("out/mine.txt"), b"precious");
    // What metastate did not write is not replaced, whatever is said.
    place.expect(2, &["fit", "counts.csv", "--lambda-ratio", "0.4", "--out", "out", "--force"]);
    assert_eq!(place.read("out/mine.txt"), b"precious");
    assert_eq!(place.names(), ["counts.csv", "out"]);
}

#[test]
fn options_out_of_range_are_refused() {
    let place = small();
    for more in [
        &["--lambda", "-1"][..],
        &["--lambda", "nan"],
        &["--lambda-ratio", "0"],
        &["--lambda", "1", "--time-limit", "-3"],
        &["--folds", "1"],
        &["--prior", "-1"],
    ] {
        place.expect(2, &[&["fit", "counts.csv", "--out", "out"], more].concat());
    }
    assert_eq!(place.names(), ["counts.csv"]);
}

#[test]
fn the_same_counts_in_any_format_and_on_any_number_of_threads_give_the_same_bytes() {
    let place = Place::new();
    let counts = planted_counts(40, 4);
    place.write("counts.csv", triplets_csv(&counts));
    place.write("counts.mtx", mtx(&counts, 40));
    place.write("counts.npy", npy(&counts, 40));
    fit(&place, &["counts.csv", "--threads", "1"], "one");
    fit(&place, &["counts.csv", "--threads", "2"], "two");
    fit(&place, &["counts.mtx"], "mtx");
    fit(&place, &["counts.npy", "--as", "counts"], "npy");
    place.expect(0, &["count", "counts.csv", "--out", "counted.parquet"]);
    fit(&place, &["counted.parquet"], "parquet");
    for other in ["two", "mtx", "npy", "parquet"] {
        assert_same_answer(&place.path("one"), &place.path(other));
    }
}

#[test]
fn a_start_from_a_result_and_the_truth_are_taken_up() {
    let place = Place::new();
    place.expect(0, &["simulate", "planted", "--states", "40", "--rank", "3", "--steps", "200000", "--out", "chain", "--seed", "5"]);
    let truth = "chain/U.npy,chain/V.npy";
    let fit = ["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--truth", truth];
    let (out, _) = place.expect(0, &[&fit[..], &["--out", "first", "--json"]].concat());
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert!(summary["errors"]["rel_re"].as_f64().unwrap() < 1.0);
    assert!(summary["errors"]["rel_se"].as_f64().unwrap() > 0.0);
    place.expect(0, &["verify", "first"]);
    place.expect(0, &[&fit[..], &["--out", "second", "--init", "first"]].concat());
    place.expect(0, &["verify", "second"]);
    let (_, err) = place.expect(2, &["fit", "chain/counts.csv", "--lambda", "1", "--init", "nowhere", "--out", "third"]);
    assert!(err.contains("E-CLI-INIT"), "{err}");
}

#[test]
fn the_demo_needs_nothing_and_finds_the_zones() {
    let place = Place::new();
    let (out, _) = place.expect(0, &["demo", "--json", "--trips", "120000"]);
    let tour: Value = serde_json::from_str(&out).unwrap();
    assert!(tour["adjusted_rand_index"].as_f64().unwrap() > 0.8, "{out}");
    let map: Value = serde_json::from_slice(&place.read("metastate-demo/zones.geojson")).unwrap();
    assert_eq!(map["features"].as_array().unwrap().len() as u64, tour["zones_found"].as_u64().unwrap());
    assert_eq!(place.names(), ["metastate-demo", "metastate-demo-trips.csv"]);
    place.expect(0, &["verify", "metastate-demo"]);
}
