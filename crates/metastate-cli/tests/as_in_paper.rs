//! The paper's own mode, a likelihood refit of a transition matrix, and starts with empty columns, from the command line.

mod common;

use common::{Place, planted_counts, triplets_csv};
use metastate::Mat;
use metastate::solve::{Problem, Settings, Silent, Solution, StopRule, lambda_max, solve};
use metastate_report::npz::{Array, npy_bytes, npz_bytes};
use metastate_tasks::args::{read_words, shell_words};
use serde_json::{Value, json};

const STATES: usize = 60;

fn counted() -> Place {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(STATES, 3)));
    place
}

fn summary(place: &Place, folder: &str) -> Value {
    serde_json::from_slice(&place.read(&format!("{folder}/summary.json"))).unwrap()
}

/// The library on the same data, with settings of its own.
fn by_the_library(place: &Place, ratio: f64, settings: &Settings) -> Solution {
    let counts = place.path("counts.csv").display().to_string();
    let given = read_words(&shell_words(&format!("fit '{counts}' --lambda-ratio 0.1 --out none"))).unwrap();
    let (input, fit) = (given.group().unwrap(), given.group().unwrap());
    let chain = metastate_tasks::data::load(&input, &fit, &mut metastate_ingest::Silent).unwrap().chain().clone();
    let lambda = ratio * lambda_max(chain.p(), chain.weights(), settings.seed).unwrap();
    let mut found = solve(&Problem::new(chain.p(), chain.weights(), lambda).unwrap(), settings, &mut Silent).unwrap();
    found.factors.order_by_mass(chain.xi());
    found
}

#[test]
fn as_in_paper_is_the_papers_mode_of_the_library_bit_for_bit() {
    let place = counted();
    let fit = ["fit", "counts.csv", "--lambda-ratio", "0.1", "--as-in-paper", "--seed", "3"];
    let other = ["--start-rank", "4", "--redundancy-absolute", "2e-4", "--stop", "early"];
    let cases = [
        ("printed", &[][..], Settings { seed: 3, ..Settings::paper(STATES / 10, 5e-5) }),
        ("other", &other[..], Settings { seed: 3, stop: StopRule::Early { directions: 5000 }, ..Settings::paper(4, 2e-4) }),
    ];
    for (name, options, settings) in cases {
        place.expect(0, &[&fit[..], options, &["--out", name]].concat());
        let found = metastate_report::load(&place.path(name)).unwrap().factors;
        let theirs = by_the_library(&place, 0.1, &settings);
        assert!(found.u == theirs.factors.u && found.v == theirs.factors.v, "{name}: other factors");
        let said = summary(&place, name);
        assert_eq!(said["status"], theirs.status.as_str(), "{name}");
        assert_eq!(said["iterations"], theirs.sweeps, "{name}");
        // What was meant stands in the result, written out.
        let fit = &said["settings"]["fit"];
        assert_eq!((&fit["as_in_paper"], &fit["solver"], &fit["init"]), (&json!(true), &json!("palm-bb"), &json!("random")));
        assert_eq!((&fit["stop"], &fit["max_rank"]), (&json!(if name == "other" { "early" } else { "exact" }), &json!(300)));
    }
    // It can fail: the default ends elsewhere.
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.1", "--seed", "3", "--out", "default"]);
    assert_ne!(place.read("default/factors.npz"), place.read("printed/factors.npz"));
}

#[test]
fn the_path_can_be_followed_as_in_the_paper() {
    let place = counted();
    place.expect(
        0,
        &["path", "counts.csv", "--as-in-paper", "--points", "5", "--floor", "0.1", "--max-rank", "4", "--folds", "2", "--out", "out"],
    );
    assert_eq!(summary(&place, "out")["settings"]["fit"]["solver"], "palm-bb");
    assert_eq!(summary(&place, "out")["settings"]["fit"]["max_rank"], 4);
}

#[test]
fn what_contradicts_the_paper_is_refused() {
    let place = counted();
    let refusals: [(&[&str], &str); 6] = [
        (&["--solver", "fast"], "--solver contradicts --as-in-paper"),
        (&["--solver", "palm-lipschitz"], "--solver contradicts --as-in-paper"),
        (&["--init", "spectral"], "--init contradicts --as-in-paper"),
        (&["--redundancy-relative", "1e-3"], "--redundancy-relative contradicts --as-in-paper"),
        (&["--tolerance", "1e-7"], "--tolerance contradicts --as-in-paper"),
        (&["--start-rank", "400"], "--start-rank 400 is above --max-rank 300"),
    ];
    for (options, sentence) in refusals {
        for command in ["fit", "path"] {
            let (_, err) = place.expect(2, &[&[command, "counts.csv", "--as-in-paper", "--out", "out"], options].concat());
            assert!(err.contains("E-CLI-ARGUMENT") && err.contains(sentence), "{err}");
        }
    }
    assert!(!place.path("out").exists());
}

/// Twelve states in three groups; all rows and all columns of the counts have the same sum, so that counts and their shares weigh states alike.
fn balanced() -> (Vec<f64>, f64) {
    let d = 12;
    let count = |i: usize, j: usize| {
        let near = if i / 4 == j / 4 { 20.0 } else { 1.0 };
        near + if j == (i + 1) % d { 3.0 } else { 0.0 } + if j == (i + 5) % d { 5.0 } else { 0.0 }
    };
    let counts: Vec<f64> = (0..d * d).map(|k| count(k / d, k % d)).collect();
    let departures = counts[..d].iter().sum();
    (counts, departures)
}

#[test]
fn a_transition_matrix_is_refitted_by_likelihood() {
    let place = Place::new();
    let (counts, departures) = balanced();
    place.write("counts.npy", npy_bytes(&[12, 12], &counts));
    place.write("P.npy", npy_bytes(&[12, 12], &counts.iter().map(|n| n / departures).collect::<Vec<_>>()));
    let fit = |file: &str, kind: &str, prior: f64, out: &str| {
        let prior = prior.to_string();
        place.expect(0, &["fit", file, "--as", kind, "--lambda-ratio", "0.2", "--refit", "likelihood", "--prior", &prior, "--out", out]);
        summary(&place, out)["refit"].clone()
    };
    // One unit of the matrix is what a state weighs on average: here, as many transitions as leave each state.
    let (shares, whole) = (fit("P.npy", "matrix", 0.1, "shares"), fit("counts.npy", "counts", 0.1 * departures, "whole"));
    // From the same start, the same climb. (The spectral start has passes of its own, with a prior of its own.)
    let from_the_solution = |refit: &Value, key: &str| {
        let tried = refit["tried"].as_array().unwrap().iter().find(|t| t["start"] == "penalised solution").unwrap().clone();
        tried[key].as_f64().unwrap()
    };
    for key in ["log_likelihood", "comparable"] {
        let (a, b) = (from_the_solution(&shares, key), from_the_solution(&whole, key));
        assert!((a - b).abs() < 1e-9 * b.abs(), "{key}: {a} and {b}");
    }
    place.expect(0, &["verify", "shares"]);
    // The prior does something: with none, the likelihood is higher; with much, lower.
    let at = |prior: f64, out: &str| fit("P.npy", "matrix", prior, out)["log_likelihood"].as_f64().unwrap();
    let (none, some, much) = (at(0.0, "none"), shares["log_likelihood"].as_f64().unwrap(), at(100.0, "much"));
    assert!(none > some + 1e-6 && some > much + 1e-3, "{none}, {some}, {much}");

    // Nothing can be held out, so there is no prior unless one is given; and nothing can be drawn anew.
    let matrix = ["fit", "P.npy", "--as", "matrix", "--lambda-ratio", "0.2", "--refit", "likelihood", "--out"];
    place.expect(0, &[&matrix[..], &["without"]].concat());
    let without: Value = serde_json::from_slice(&place.read("without/summary.json")).unwrap();
    assert_eq!((without["refit"]["prior"].as_f64(), without["refit"]["log_likelihood"].as_f64()), (Some(0.0), Some(none)), "{without}");
    let (_, err) = place.expect(2, &[&matrix[..], &["out", "--prior", "0.1", "--bootstrap", "5"]].concat());
    assert!(err.contains("--bootstrap could draw anew"), "{err}");
    assert!(!place.path("out").exists());
}

/// A result whose U has a column to which nobody belongs.
fn with_an_empty_column(place: &Place, folder: &str) {
    let result = metastate_report::load(&place.path(folder)).unwrap();
    let found = result.factors;
    let (d, s) = (found.u.rows(), found.u.cols());
    let u = Mat::from_fn(d, s + 1, |i, j| if j < s { found.u[(i, j)] } else { 0.0 });
    let v = Mat::from_fn(d, s + 1, |i, j| if j < s { found.v[(i, j)] } else { 1.0 / d as f64 });
    place.write(
        &format!("{folder}/factors.npz"),
        npz_bytes(&[Array::matrix("U", &u), Array::matrix("V", &v), Array::list("xi", &result.xi)]).unwrap(),
    );
}

#[test]
fn a_start_with_an_empty_column_gives_numbers() {
    let place = counted();
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.3", "--out", "first"]);
    with_an_empty_column(&place, "first");
    for solver in ["fast", "palm-bb", "palm-lipschitz"] {
        let fit =
            ["fit", "counts.csv", "--lambda-ratio", "0.1", "--init", "first", "--solver", solver, "--gap", "0.05", "--tolerance", "1e-2"];
        place.expect(0, &[&fit[..], &["--time-limit", "10", "--out", solver]].concat());
        let said = summary(&place, solver);
        let numbers = [&said["objective"], &said["errors"]["rel_le1"], &said["errors"]["rel_le2"], &said["errors"]["ge"]];
        assert!(numbers.iter().all(|x| x.as_f64().is_some_and(f64::is_finite)), "{solver}: {said}");
        let found = metastate_report::load(&place.path(solver)).unwrap().factors;
        assert!(found.u.first_not_finite().is_none() && found.v.first_not_finite().is_none(), "{solver}");
    }
}
