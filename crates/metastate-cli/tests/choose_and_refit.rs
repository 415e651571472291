//! lambda and rank from the data, the path, the refit and the bootstrap, from the command line.

mod common;

use common::{Place, assert_same_answer};
use serde_json::Value;

/// A trajectory through a planted chain, as counts.
fn planted() -> Place {
    let place = Place::new();
    place.expect(0, &["simulate", "planted", "--states", "40", "--rank", "3", "--steps", "60000", "--out", "chain", "--seed", "5"]);
    place
}

fn summary(place: &Place, folder: &str) -> Value {
    serde_json::from_slice(&place.read(&format!("{folder}/summary.json"))).unwrap()
}

#[test]
fn fit_chooses_rank_and_lambda_and_refits() {
    let place = planted();
    let truth = "chain/U.npy,chain/V.npy";
    let fit =
        ["fit", "chain/counts.csv", "--truth", truth, "--refit", "likelihood", "--bootstrap", "8", "--max-rank", "8", "--gap", "0.05"];
    place.expect(0, &[&fit[..], &["--out", "out"]].concat());
    let s = summary(&place, "out");
    assert_eq!(s["choice"]["rank"], 3, "{}", s["choice"]);
    assert_eq!(s["choice"]["lambda"], s["lambda"]);
    assert!(s["rank"].as_u64().unwrap() <= 3);
    assert!(s["choice"]["sentence"].as_str().unwrap().starts_with("3 meta-states:"));
    assert_eq!(s["refit"]["kind"], "likelihood");
    assert_eq!(s["refit"]["prior"], s["choice"]["prior"]);
    let tried = s["refit"]["tried"].as_array().unwrap();
    let best = tried.iter().max_by(|a, b| a["comparable"].as_f64().unwrap().total_cmp(&b["comparable"].as_f64().unwrap())).unwrap();
    assert!(tried.len() == 2 && best["start"] == s["refit"]["start"], "{}", s["refit"]);
    assert!(s["refit"]["rel_re"].as_f64().unwrap() < s["errors"]["rel_re"].as_f64().unwrap(), "{s}");
    let (held_out, number) = (&s["choice"]["held_out"], |v: &Value| v.as_f64().unwrap());
    assert_eq!(held_out["prior"], s["refit"]["prior"]);
    let left = number(&held_out["uncorrected"]) - number(&held_out["selection_bias"]);
    assert!(number(&held_out["selection_bias"]) >= 0.0 && (number(&held_out["log_likelihood"]) - left).abs() < 1e-12, "{held_out}");
    assert_eq!(s["uncertainty"]["draws"], 8);
    let table = common::text(&place.read("out/uncertainty.csv"));
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let numbers: Vec<f64> = fields[4..].iter().map(|x| x.parse().unwrap()).collect();
        assert!(numbers.chunks(3).all(|m| m[1] <= m[0] && m[0] <= m[2]), "a membership outside its interval: {line}");
    }
    for file in ["refit.npz", "path.csv", "ranks.csv", "uncertainty.csv"] {
        assert!(s["files"][file].is_string(), "{file}");
    }
    let (table, _) = place.expect(0, &["verify", "out"]);
    assert!(table.contains("refit log_likelihood") && table.contains("refit rel_re"), "{table}");
    place.expect(0, &[&fit[..], &["--out", "one", "--threads", "1"]].concat());
    assert_same_answer(&place.path("out"), &place.path("one"));
    assert_eq!(place.read("out/refit.npz"), place.read("one/refit.npz"));
    assert_eq!(place.read("out/uncertainty.csv"), place.read("one/uncertainty.csv"));

    // A refit that was changed is found out.
    place.expect(0, &["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--gap", "0.05", "--refit", "least-squares", "--out", "squares"]);
    place.expect(0, &["verify", "squares"]);
    std::fs::copy(place.path("out/refit.npz"), place.path("squares/refit.npz")).unwrap();
    place.expect(1, &["verify", "squares"]);
}

/// The columns membership_1, membership_2, ... of a table.
fn memberships(place: &Place, table: &str) -> Vec<Vec<f64>> {
    let text = common::text(&place.read(table));
    let mut rows = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let columns: Vec<usize> =
        rows.next().unwrap().iter().enumerate().filter(|(_, c)| c.starts_with("membership_")).map(|(k, _)| k).collect();
    rows.map(|row| columns.iter().map(|&k| row[k].parse().unwrap()).collect()).collect()
}

#[test]
fn with_nothing_given_the_refit_is_the_answer_even_where_no_lambda_gives_its_rank() {
    let place = planted();
    // A path so short that it ends at one meta-state, where the data ask for three.
    place.expect(0, &["path", "chain/counts.csv", "--points", "2", "--floor", "0.95", "--max-rank", "6", "--out", "out"]);
    let s = summary(&place, "out");
    assert_eq!((s["rank"].as_u64(), s["choice"]["rank"].as_u64(), s["refit"]["rank"].as_u64()), (Some(1), Some(3), Some(3)), "{s}");
    assert_eq!(
        (s["settings"]["fit"]["refit"].as_str(), s["settings"]["fit"]["clusters"].as_str()),
        (Some("likelihood"), Some("membership"))
    );
    assert!(s["choice"]["sentence"].as_str().unwrap().contains("no lambda of the path gives it"));
    // Tables and forecast speak of the refit, and verify knows.
    let arrays = metastate_report::npz::read_npz(&place.path("out/refit.npz")).unwrap();
    let u = arrays.into_iter().find(|a| a.name == "U").unwrap().into_matrix().unwrap();
    let table = memberships(&place, "out/states.csv");
    assert!(table.len() == 40 && (0..40).all(|i| table[i] == u.row(i)), "states.csv");
    for (file, lines) in [("latent.csv", 4), ("metastates.csv", 4)] {
        assert_eq!(common::text(&place.read(&format!("out/{file}"))).lines().count(), lines, "{file}");
    }
    place.expect(0, &["verify", "out"]);
    let (told, _) = place.expect(0, &["forecast", "out", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap()["rank"], 3);
    assert!(common::text(&place.read("out/report.html")).contains("3 meta-states behind 40 states"));

    // The states of the fit get their own memberships back, but for the shares that the prior leaves by.
    place.expect(0, &["assign", "out", "chain/counts.csv", "--out", "again.csv"]);
    let again = memberships(&place, "again.csv");
    let worst = table.iter().flatten().zip(again.iter().flatten()).fold(0.0_f64, |w, (a, b)| w.max((a - b).abs()));
    assert!(again.len() == 40 && worst < 0.02, "{worst}");

    // Without a path, a lambda is found that gives the rank: what is proven has as many meta-states as what is shown.
    place.expect(0, &["fit", "chain/counts.csv", "--max-rank", "6", "--out", "found"]);
    let s = summary(&place, "found");
    assert_eq!((s["rank"].as_u64(), s["choice"]["rank"].as_u64(), s["refit"]["rank"].as_u64()), (Some(3), Some(3), Some(3)), "{s}");
    place.expect(0, &["verify", "found"]);

    // Without a refit, and with a lambda, everything is of the solution of the stated problem.
    for (arguments, name) in [(&["--refit", "none"][..], "plain"), (&["--lambda-ratio", "0.3"][..], "given")] {
        place.expect(0, &[&["fit", "chain/counts.csv", "--max-rank", "6", "--out", name], arguments].concat());
        let s = summary(&place, name);
        assert!(s["refit"].is_null() && s["settings"]["fit"]["clusters"] == "rank" && !place.path(&format!("{name}/refit.npz")).exists());
        place.expect(0, &["verify", name]);
    }
}

#[test]
fn a_path_is_written_point_by_point_and_taken_up_again() {
    let place = planted();
    let path = ["path", "chain/counts.csv", "--points", "4", "--floor", "0.1", "--max-rank", "6", "--gap", "0.05", "--folds", "3"];
    place.expect(0, &[&path[..], &["--out", "out"]].concat());
    let text = common::text(&place.read("out/path.csv"));
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|c| *c == name).unwrap();
    assert!(rows.len() >= 3 && rows.iter().all(|r| r.len() == rows[0].len()), "{text}");
    let numbers = |name: &str| rows[1..].iter().map(|r| r[column(name)].parse::<f64>().unwrap()).collect::<Vec<_>>();
    assert!(numbers("lambda").windows(2).all(|w| w[1] < w[0]));
    assert_eq!(numbers("rank")[0], 1.0, "one meta-state at lambda_max");
    let scores = numbers("held_out");
    assert!(scores.last() > scores.first(), "{scores:?}");
    assert_eq!(rows[1..].iter().filter(|r| r[column("chosen")] == "yes").count(), 1);
    place.expect(0, &["verify", "out"]);
    assert_eq!(place.names(), ["chain", "out"], "no checkpoint is left");
    place.expect(2, &[&path[..], &["--out", "no", "--lambda", "1"]].concat());

    // Killed once an attempt of the choice stands, taken up, killed once a point stands, and taken up again: the same bytes.
    let again = [&path[..], &["--out", "again", "--resume"]].concat();
    let points = place.path("again.path-checkpoint");
    for part in ["first_look", "certified_gap"] {
        let mut running = place.command(&again).spawn().unwrap();
        let stands = || {
            let mut kept = std::fs::read_dir(&points).into_iter().flatten().flatten();
            let named = |e: &std::fs::DirEntry| !e.file_name().to_string_lossy().starts_with('.');
            kept.any(|e| named(&e) && std::fs::read_to_string(e.path().join("points.json")).is_ok_and(|text| text.contains(part)))
        };
        while !stands() && running.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(stands() && !place.path("again").exists(), "killed too late to show anything");
    }
    let (_, err) = place.expect(0, &again);
    assert!(err.contains("resuming the path after") && !err.contains("there is no checkpoint"), "{err}");
    for file in ["path.csv", "ranks.csv", "factors.npz", "states.csv"] {
        assert!(place.read(&format!("again/{file}")) == place.read(&format!("out/{file}")), "{file}");
    }
}

#[test]
fn trajectories_are_cut_into_blocks() {
    let place = Place::new();
    place.expect(0, &["simulate", "trajectory", "--states", "30", "--rank", "3", "--steps", "40000", "--out", "walk.npy", "--seed", "2"]);
    place.expect(
        0,
        &[
            "fit",
            "walk.npy",
            "--as",
            "trajectories",
            "--refit",
            "likelihood",
            "--bootstrap",
            "4",
            "--gap",
            "0.05",
            "--max-rank",
            "6",
            "--out",
            "out",
        ],
    );
    let s = summary(&place, "out");
    assert_eq!(s["choice"]["rank"], 3, "{}", s["choice"]);
    assert!(s["choice"]["folds_are"].as_str().unwrap().contains("60 contiguous blocks"), "{}", s["choice"]);
    place.expect(0, &["verify", "out"]);
}

#[test]
fn a_matrix_has_nothing_to_hold_out() {
    let place = planted();
    place.expect(0, &["simulate", "planted", "--states", "40", "--rank", "3", "--out", "exact"]);
    let (_, err) = place.expect(2, &["fit", "exact/P.npy", "--as", "matrix", "--out", "out"]);
    assert!(err.contains("E-CLI-LAMBDA") && err.contains("lambda_max of this matrix is"), "{err}");
    // A rank that is given needs no choice: lambda is searched for, the refit has no prior, and all of it can be verified.
    let rank = ["fit", "exact/P.npy", "--as", "matrix", "--rank", "3", "--out", "three"];
    place.expect(0, &rank);
    let s = summary(&place, "three");
    assert_eq!((s["rank"].as_u64(), s["refit"]["prior"].as_f64()), (Some(3), Some(0.0)), "{s}");
    assert!(s["choice"].is_null() && s["hints"][0].as_str().unwrap().starts_with("3 meta-states: as asked for"), "{s}");
    assert!(!place.path("three/ranks.csv").exists());
    place.expect(0, &["verify", "three"]);
    let (_, err) = place.expect(2, &[&rank[..7], &["out", "--bootstrap", "5"]].concat());
    assert!(err.contains("--bootstrap could draw anew"), "{err}");
    let (_, err) = place.expect(2, &["path", "exact/P.npy", "--as", "matrix", "--rank", "3", "--out", "out"]);
    assert!(err.contains("E-CLI-LAMBDA"), "{err}");
    let (_, err) = place.expect(2, &["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--bootstrap", "5", "--out", "out"]);
    assert!(err.contains("--refit likelihood"), "{err}");
}
