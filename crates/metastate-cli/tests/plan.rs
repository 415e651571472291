//! Controlled chains by the command: from a log in several formats to a policy, its check and its page, and back through `verify`; what is refused; lies about a plan.

mod common;

use common::{Place, text};
use serde_json::Value;

/// A log of 40 states and 3 actions by chance, and the fit of it in `out`.
fn fitted() -> Place {
    let place = Place::new();
    place.expect(
        0,
        &["simulate", "controlled", "--states", "40", "--actions", "3", "--rank", "3", "--episodes", "80", "--length", "40", "--out", "w"],
    );
    place.expect(0, &[&FIT[..], &["--id", "episode", "--time", "step", "--out", "out"]].concat());
    place
}

const FIT: [&str; 12] = ["fit", "w/log.csv", "--from", "state", "--action", "action", "--to", "next", "--reward", "reward", "--rank", "3"];

fn plan_of(place: &Place) -> Value {
    serde_json::from_slice(&place.read("out/plan.json")).unwrap()
}

/// Lines of `verify` that do not stand.
fn wrong(place: &Place) -> String {
    let (out, _) = place.expect(1, &["verify", "out"]);
    out.lines().filter(|line| line.contains(" NO ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_log_becomes_a_policy_that_is_checked_shown_and_verified() {
    let place = fitted();
    let summary: Value = serde_json::from_slice(&place.read("out/summary.json")).unwrap();
    let control = &summary["control"];
    assert_eq!((control["states"].as_u64(), control["actions"].as_u64()), (Some(40), Some(3)));
    assert_eq!(control["pairs"].as_u64().unwrap() + control["untried"].as_u64().unwrap(), 120);
    assert!(
        summary["read_as"]
            .as_str()
            .unwrap()
            .contains("the action is `action`, the reward is `reward`, an episode for each `episode` sorted by `step`")
    );
    let (out, _) = place.expect(0, &["plan", "out", "--discount", "0.9"]);
    assert!(out.contains("held out (80 episodes, 5 folds)") && out.contains("bound on the loss"), "{out}");
    let plan = plan_of(&place);
    let check = &plan["check"];
    let number = |name: &str| check[name].as_f64().unwrap();
    assert!(number("low") < number("value") && number("value") < number("high") && number("log") < number("value"), "{check}");
    let table = text(&place.read("out/policy.csv"));
    assert_eq!(table.lines().next(), Some("state,action,value,records,untried"));
    assert_eq!(table.lines().count(), 41);
    assert!(text(&place.read("out/report.html")).contains("what the model predicts for such policies there"));
    place.expect(0, &["verify", "out"]);
    // Another discount takes its place; so do rewards from a file, for arriving.
    let rewards: String = (0..40).map(|s| format!("{s},{}\n", s % 5)).collect();
    place.write("rewards.csv", format!("to,reward\n{rewards}"));
    place.expect(0, &["plan", "out", "--discount", "0.5", "--reward", "rewards.csv"]);
    let plan = plan_of(&place);
    assert_eq!((plan["rewards_from"].as_str(), plan["discount"].as_f64()), (Some("next state"), Some(0.5)));
    place.expect(0, &["verify", "out"]);
    place.expect(0, &["plan", "out", "--discount", "0.9", "--untried", "--no-check"]);
    let plan = plan_of(&place);
    assert!(plan["check"].is_null() && plan["bound"].is_null() && plan["not_checked"].as_str().unwrap().contains("--no-check"));
    place.expect(0, &["verify", "out"]);
}

#[test]
fn the_same_log_in_other_formats_and_orders_gives_the_same_plan() {
    let place = fitted();
    place.expect(0, &["plan", "out", "--discount", "0.9"]);
    let policy = text(&place.read("out/policy.csv"));
    let csv = text(&place.read("w/log.csv"));
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|l| l.split(',').collect()).collect();
    // Backwards, as JSON lines.
    let line = |r: &Vec<&str>| {
        format!("{{\"episode\":{},\"step\":{},\"state\":{},\"action\":{},\"reward\":{},\"next\":{}}}\n", r[0], r[1], r[2], r[3], r[4], r[5])
    };
    place.write("w/log.jsonl", rows.iter().rev().map(line).collect::<String>());
    let json: Vec<&str> = FIT.iter().map(|w| if *w == "w/log.csv" { "w/log.jsonl" } else { w }).collect();
    place.expect(0, &[&json[..], &["--id", "episode", "--time", "step", "--out", "again"]].concat());
    place.expect(0, &["plan", "again", "--discount", "0.9"]);
    let other: Value = serde_json::from_slice(&place.read("again/plan.json")).unwrap();
    let actions = |text: &str| text.lines().map(|l| l.split(',').take(2).collect::<Vec<_>>().join(",")).collect::<Vec<_>>();
    assert_eq!(actions(&policy), actions(&text(&place.read("again/policy.csv"))));
    let value = |plan: &Value| plan["check"]["value"].as_f64().unwrap();
    assert!((value(&other) - value(&plan_of(&place))).abs() < 1e-6);
}

#[test]
fn lies_about_a_plan_are_found() {
    let place = fitted();
    place.expect(0, &["plan", "out", "--discount", "0.9"]);
    let (policy, plan) = (text(&place.read("out/policy.csv")), text(&place.read("out/plan.json")));
    // Another action in the first state, with and without its hash.
    let first: Vec<&str> = policy.lines().nth(1).unwrap().split(',').collect();
    let other = if first[1] == "0" { "1" } else { "0" };
    let lie = policy.replacen(&first.join(","), &[first[0], other, first[2], first[3], first[4]].join(","), 1);
    place.write("out/policy.csv", lie);
    let told = wrong(&place);
    assert!(told.contains("policy.csv") && told.contains("row 1, action"), "{told}");
    place.write("out/policy.csv", policy.clone());
    // A better bound, a better mean, a better worth.
    let document: Value = serde_json::from_str(&plan).unwrap();
    for (pointer, line) in [("/bound/loss", "plan.json: bound"), ("/mean_value", "plan.json: counts and means"), ("/worth/0", "q.parquet")]
    {
        let mut lie = document.clone();
        let place_of = lie.pointer_mut(pointer).unwrap();
        *place_of = serde_json::json!(place_of.as_f64().unwrap() * 0.9 + 0.01);
        place.write("out/plan.json", serde_json::to_string_pretty(&lie).unwrap() + "\n");
        let told = wrong(&place);
        assert!(told.contains(line), "{pointer}: {told}");
    }
    place.write("out/plan.json", plan);
    place.expect(0, &["verify", "out"]);
    // Rewards of the log, written anew.
    let pairs = text(&place.read("out/pairs.csv"));
    let row: Vec<&str> = pairs.lines().nth(1).unwrap().split(',').collect();
    let lie = pairs.replacen(&row.join(","), &[row[0], row[1], row[2], "9.0", row[4], row[5], row[6]].join(","), 1);
    place.write("out/pairs.csv", lie);
    assert!(wrong(&place).contains("row 1, reward"));
    place.write("out/pairs.csv", pairs);
    std::fs::remove_file(place.path("out/plan.json")).unwrap();
    assert!(wrong(&place).contains("is not there, and policy.csv is"));
}

#[test]
fn what_cannot_be_planned_is_refused_in_one_sentence() {
    let place = fitted();
    let refused = |words: &[&str], sentence: &str| {
        let (_, err) = place.expect(2, words);
        assert!(err.contains(sentence), "{words:?}: {err}");
    };
    refused(&["plan", "out", "--discount", "1"], "it must be at least 0 and below 1");
    refused(&["plan", "w", "--discount", "0.9"], "there is no result here");
    refused(&[&FIT[..], &["--bipartite", "--out", "no"]].concat(), "--action and --bipartite do not go together");
    refused(&[&FIT[..], &["--time", "step", "--out", "no"]].concat(), "--id is missing");
    refused(&[&FIT[..], &["--min-share", "0.1", "--out", "no"]].concat(), "--min-share cannot be used with --action");
    refused(
        &["count", "w/log.csv", "--from", "state", "--to", "next", "--action", "action", "--out", "c.parquet"],
        "--action belongs to fit and path",
    );
    refused(
        &["fit", "w/log.csv", "--as", "counts", "--from", "state", "--to", "next", "--action", "action", "--out", "no"],
        "--action reads records of one step each",
    );
    place.write("short.csv", "state,reward\n0,1\n");
    refused(&["plan", "out", "--discount", "0.9", "--reward", "short.csv"], "has no row for the state `1`");
    place.write("odd.csv", "to,state,reward\n0,0,1\n");
    refused(&["plan", "out", "--discount", "0.9", "--reward", "odd.csv"], "it is not clear what this table of rewards pays for");
    // A reward that is no number, with its line.
    let log = text(&place.read("w/log.csv"));
    let line = log.lines().nth(1).unwrap();
    let fields: Vec<&str> = line.split(',').collect();
    place.write("bad.csv", log.replacen(line, &[fields[0], fields[1], fields[2], fields[3], "inf", fields[5]].join(","), 1));
    let bad: Vec<&str> = FIT.iter().map(|w| if *w == "w/log.csv" { "bad.csv" } else { w }).collect();
    refused(&[&bad[..], &["--out", "no"]].concat(), "a reward must be a finite number (met `inf`)");
    refused(&[&bad[..], &["--out", "no"]].concat(), "bad.csv, line 2, column reward");
    assert!(!place.path("no").exists());
    // Without rewards there is a fit and no plan.
    place.expect(0, &["fit", "w/log.csv", "--from", "state", "--action", "action", "--to", "next", "--rank", "3", "--out", "free"]);
    refused(&["plan", "free", "--discount", "0.9"], "the log of this result has no rewards");
    // The log is gone: that is said, and the plan can do without.
    std::fs::rename(place.path("w/log.csv"), place.path("w/gone.csv")).unwrap();
    let (_, err) = place.expect(1, &["plan", "out", "--discount", "0.9"]);
    assert!(err.contains("--no-check"), "{err}");
    place.expect(0, &["plan", "out", "--discount", "0.9", "--no-check"]);
}

#[test]
fn rows_that_say_too_little_go_to_the_ledger() {
    let place = fitted();
    let log = text(&place.read("w/log.csv"));
    let more = format!("{log}500,0,,1,0.5,3\n500,1,3,,0.5,3\n,2,3,1,0.5,3\n500,,3,1,0.5,3\n500,4,3,1,,3\n");
    place.write("holes.csv", more);
    let holes: Vec<&str> = FIT.iter().map(|w| if *w == "w/log.csv" { "holes.csv" } else { w }).collect();
    // Counting needs no order: rows without episode or step are told, and left out, where these are named.
    place.expect(0, &[&holes[..], &["--id", "episode", "--time", "step", "--out", "holes"]].concat());
    let summary: Value = serde_json::from_slice(&place.read("holes/summary.json")).unwrap();
    let reasons: Vec<&str> = summary["ledger"].as_array().unwrap().iter().map(|e| e["reason"].as_str().unwrap()).collect();
    for reason in ["label-missing", "action-missing", "id-missing", "time-missing", "reward-missing"] {
        assert!(reasons.contains(&reason), "{reason}: {reasons:?}");
    }
    assert_eq!((summary["rows"].as_u64(), summary["rows_counted"].as_u64()), (Some(3205), Some(3200)));
}
