//! `--slice`: shared zones, flows of each slice, from the file to the folder, the page, forecasts and back through `verify`.

mod common;

use std::fmt::Write;

use common::{Place, text};
use metastate_report::{hash, parse_csv};
use serde_json::Value;

/// Twenty-four places in three groups, by a rule without chance. In the morning the first two groups go to the second; in the evening the first goes home and the second to the third, which stays by itself all day.
fn trips() -> String {
    let mut out = String::from("start,end,began\n");
    let mut add = |i: usize, j: usize, hour: usize, count: usize| {
        (0..count).for_each(|_| writeln!(out, "p{i},p{j},2015-12-01 {hour:02}:10:00").unwrap());
    };
    for i in 0..24usize {
        for j in 0..24usize {
            let noise = (i * 7919 + j * 104_729 + i * j * 31) % 3;
            for hour in [8, 18] {
                let drawn = [[1, 0], [1, 2], [2, 2]][i / 8][usize::from(hour == 18)];
                add(i, j, hour, if j / 8 == drawn { 6 + noise } else { usize::from(noise == 0) });
            }
        }
    }
    out
}

const INPUT: [&str; 8] = ["fit", "trips.csv", "--from", "start", "--to", "end", "--slice", "hour(began)"];

fn fitted(more: &[&str]) -> Place {
    let place = Place::new();
    place.write("trips.csv", trips());
    place.expect(0, &[&INPUT[..], &["--rank", "3"], more, &["--out", "out"]].concat());
    place
}

fn summary(place: &Place) -> Value {
    serde_json::from_slice(&place.read("out/summary.json")).unwrap()
}

#[test]
fn zones_are_shared_and_flows_change() {
    let place = fitted(&["--bootstrap", "3"]);
    let told = summary(&place);
    assert_eq!(told["slices"]["labels"], serde_json::json!(["8", "18"]));
    assert_eq!((told["states"].as_u64(), told["destinations"].is_null(), told["rank"].as_u64()), (Some(24), true, Some(3)));
    // All flows sum to one, and each line is a slice and two meta-states.
    let flows = parse_csv(&text(&place.read("out/slices.csv"))).unwrap();
    assert_eq!(flows[0], ["slice", "from_metastate", "to_metastate", "flow"]);
    assert_eq!(flows.len(), 1 + 2 * 9);
    let sum: f64 = flows[1..].iter().map(|r| r[3].parse::<f64>().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    // The groups come back; that of p0 leads elsewhere in the morning than in the evening.
    let states = parse_csv(&text(&place.read("out/states.csv"))).unwrap();
    let home = |name: &str| states.iter().find(|r| r[0] == name).map(|r| r[2].clone()).unwrap();
    assert_eq!(home("p20"), home("p17"));
    assert_ne!(home("p20"), home("p0"));
    let changes = parse_csv(&text(&place.read("out/changes.csv"))).unwrap();
    let zone_of = |name: &str| states.iter().find(|r| r[0] == name).map(|r| r[3].parse::<usize>().unwrap()).unwrap();
    let (moving, staying) = (&changes[zone_of("p0")], &changes[zone_of("p20")]);
    let number = |field: &String| field.parse::<f64>().unwrap();
    assert!(number(&moving[3]) > 0.1 && number(&moving[4]) == 0.005, "{moving:?}");
    assert!(number(&staying[3]) < 0.02 && number(&staying[4]) > 0.02, "{staying:?}");
    let (checked, _) = place.expect(0, &["verify", "out"]);
    for line in ["slices.csv", "profiles.parquet", "changes.csv"] {
        assert!(checked.contains(line), "{checked}");
    }
    assert!(!checked.contains("NO"), "{checked}");
    place.expect(0, &["report", "out"]);
    place.expect(0, &["verify", "out"]);
    assert!(text(&place.read("out/plots/slices.svg")).matches("<rect").count() >= 3);
    // A step in a slice; beyond it the data say nothing.
    let (json, _) = place.expect(0, &["forecast", "out", "--slice", "8", "--from", "p0", "--json"]);
    let morning: Value = serde_json::from_str(&json).unwrap();
    let best = morning["forecasts"][0]["top"][0]["label"].as_str().unwrap().to_owned();
    assert!(["p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"].contains(&best.as_str()), "{best}");
    place.expect(0, &["forecast", "out", "--steps", "1,5"]);
    let (_, refused) = place.expect(2, &["forecast", "out", "--slice", "8", "--steps", "2"]);
    assert!(refused.contains("one step ahead"), "{refused}");
    let (_, refused) = place.expect(2, &["forecast", "out", "--slice", "80"]);
    assert!(refused.contains("no slice of the result"), "{refused}");
}

#[test]
fn lies_about_slices_are_caught() {
    let place = fitted(&[]);
    let honest = |name: &str| (name.to_owned(), place.read(&format!("out/{name}")));
    let files = ["summary.json", "slices.csv", "changes.csv", "slices.npz", "profiles.parquet"].map(honest);
    let signed = |name: &str| {
        let mut told = summary(&place);
        told["files"][name] = hash::of_bytes(&place.read(&format!("out/{name}"))).into();
        place.write("out/summary.json", told.to_string());
    };
    let caught = |line: &str| {
        place.expect(0, &["report", "out"]);
        let (told, _) = place.expect(1, &["verify", "out"]);
        assert!(told.lines().any(|l| l.trim_start().starts_with(line) && l.contains("NO")), "{line}: {told}");
        files.iter().for_each(|(name, bytes)| place.write(&format!("out/{name}"), bytes));
    };
    let table = |name: &str, row: usize, column: usize, to: &dyn Fn(f64) -> f64| {
        let mut rows = parse_csv(&text(&place.read(&format!("out/{name}")))).unwrap();
        rows[row][column] = metastate_report::number(to(rows[row][column].parse().unwrap()));
        place.write(&format!("out/{name}"), rows.iter().map(|r| r.join(",") + "\n").collect::<String>());
        signed(name);
    };
    table("slices.csv", 5, 3, &|x| x + 1e-6);
    caught("slices.csv");
    table("changes.csv", 1, 4, &|_| 0.01);
    caught("changes.csv");
    // The record and the table agree on a lie.
    table("changes.csv", 1, 2, &|x| x * 1.01);
    let mut told = summary(&place);
    told["slices"]["change"]["zones"][0]["log_ratio"] = (told["slices"]["change"]["zones"][0]["log_ratio"].as_f64().unwrap() * 1.01).into();
    place.write("out/summary.json", told.to_string());
    caught("changes.csv");
    // Slices exchanged in the record: the rows of V would be of other hours.
    let mut told = summary(&place);
    told["slices"]["labels"] = serde_json::json!(["18", "8"]);
    place.write("out/summary.json", told.to_string());
    caught("sizes");
    let mut told = summary(&place);
    told["slices"]["expression"] = "weekday(began)".into();
    place.write("out/summary.json", told.to_string());
    caught("slices");
    // Profiles of another fit.
    place.expect(0, &[&INPUT[..], &["--rank", "3", "--seed", "5", "--prior", "30", "--out", "other"]].concat());
    place.write("out/profiles.parquet", place.read("other/profiles.parquet"));
    signed("profiles.parquet");
    caught("profiles.parquet");
    place.expect(0, &["report", "out"]);
    place.expect(0, &["verify", "out"]);
}

#[test]
fn shared_zones_are_compared_with_each_alone() {
    let place = Place::new();
    place.write("trips.csv", trips());
    let compare =
        ["compare", "trips.csv", "--from", "start", "--to", "end", "--slice", "hour(began)", "--rank", "3", "--out", "ways", "--json"];
    let (out, _) = place.expect(0, &compare);
    let told: Value = serde_json::from_str(&out).unwrap();
    let score = |name: &str| {
        let row = told["methods"].as_array().unwrap().iter().find(|m| m["method"] == name).unwrap();
        row["log_likelihood"].as_f64().unwrap()
    };
    assert!(score("shared-zones") > score("ignoring-the-slice") + 0.2, "{out}");
    assert!(score("shared-zones") > score("one-law-a-slice") + 0.2, "{out}");
    assert!((score("shared-zones") - score("each-slice-alone")).abs() < 0.2, "{out}");
    let (_, refused) = place.expect(2, &[&compare[..8], &["--methods", "nmf", "--out", "more"]].concat());
    assert!(refused.contains("--methods"), "{refused}");
}

#[test]
fn what_slices_cannot_have_is_refused_and_threads_do_not_matter() {
    let place = Place::new();
    place.write("trips.csv", trips());
    for (more, word) in [
        (&["--bipartite"][..], "bipartite"),
        (&["--truth", "p.npy"], "truth"),
        (&["--init", "elsewhere"], "init"),
        (&["--slice", "minute(began)"], "hour, weekday, month, date"),
        (&["--slice", "date(began)"], "one slice"),
        (&["--slice", "nothing"], "no column"),
    ] {
        let base = if more[0] == "--slice" { &INPUT[..6] } else { &INPUT[..] };
        let (_, refused) = place.expect(2, &[base, more, &["--out", "out"]].concat());
        assert!(refused.contains(word), "{more:?}: {refused}");
        assert!(!place.path("out").exists());
    }
    for (threads, out) in [("1", "one"), ("3", "three")] {
        place.expect(0, &[&INPUT[..], &["--lambda-ratio", "0.2", "--refit", "least-squares", "--threads", threads, "--out", out]].concat());
    }
    for file in ["factors.npz", "refit.npz", "slices.csv", "changes.csv", "states.csv", "profiles.parquet"] {
        assert!(place.read(&format!("one/{file}")) == place.read(&format!("three/{file}")), "{file}");
    }
    place.expect(0, &["verify", "one"]);
    let (_, refused) =
        place.expect(2, &["count", "trips.csv", "--from", "start", "--to", "end", "--slice", "hour(began)", "--out", "c.parquet"]);
    assert!(refused.contains("--slice"), "{refused}");
    let (_, refused) = place.expect(2, &["assign", "one", "trips.csv", "--out", "a.csv"]);
    assert!(refused.contains("--slice"), "{refused}");
}
