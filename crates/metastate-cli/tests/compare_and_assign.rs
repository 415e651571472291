//! `compare`, `assign`, hard meta-states and zones, from the command line.

mod common;

use common::{Place, planted_counts, triplets_csv};
use serde_json::Value;

const METHODS: usize = 12;

fn json(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&place.read(name)).unwrap()
}

fn rows(place: &Place, name: &str) -> Vec<Vec<String>> {
    metastate_report::parse_csv(&common::text(&place.read(name))).unwrap()
}

/// 60 states in 4 groups, with a table of the groups and of places on a ring of four towns.
fn four_groups() -> Place {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(60, 4)));
    let mut table = String::from("label,group,lon,lat\n");
    (0..60).for_each(|i| table += &format!("{i},town {},{},{}\n", i % 4, 10.0 * (i % 4) as f64 + 0.01 * (i / 4) as f64, 40.0));
    place.write("towns.csv", table);
    place
}

#[test]
fn assign_takes_its_options_from_the_fit_and_refuses_contradictions() {
    let place = Place::new();
    let mut trips = String::from("a,b,n,kind\n");
    for (i, j, n) in planted_counts(30, 3) {
        trips += &format!("{i},{j},{n},x\n");
    }
    place.write("trips.csv", &trips);
    place.expect(
        0,
        &["fit", "trips.csv", "--from", "a", "--to", "b", "--weight", "n", "--rank", "3", "--prior", "1", "--folds", "2", "--out", "out"],
    );
    let summary = json(&place, "out/summary.json");
    assert_eq!(
        summary["read_as"],
        "read as trips, one a row: from `a` to `b`, each counts `n` times (text separated by commas, columns named by the first line)"
    );
    let verdict = summary["choice"]["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("this model predicts held-out transitions (") && verdict.contains("better than one law for all states"),
        "{verdict}"
    );
    // A condition alone: columns and weight are those of the fit.
    let (told, _) = place.expect(0, &["assign", "out", "trips.csv", "--where", "kind = 'x'", "--out", "all.csv"]);
    assert!(told.contains("hint: options taken from the fit: --from a --to b --weight n"), "{told}");
    let (first, again) = (rows(&place, "all.csv"), rows(&place, "out/states.csv"));
    assert_eq!((first.len(), &first[1][4]), (again.len(), &again[1][2]), "the same transitions, the same meta-state");
    for (option, value, sentence) in [
        ("--weight", "kind", "--weight is kind, and the fit had n"),
        ("--from", "b", "--from is b, and the fit had a"),
        ("--cell", "0.01", "--cell is 0.01, and the fit had 0.001"),
    ] {
        let (_, error) = place.expect(2, &["assign", "out", "trips.csv", option, value, "--out", "no.csv"]);
        assert!(error.contains(sentence), "{error}");
    }
    // A fit may start from a result over other states: half of them are known.
    let fewer: String = trips.lines().filter(|l| !l.starts_with("1,") && !l.contains(",1,")).map(|l| format!("{l}\n")).collect();
    place.write("fewer.csv", fewer + "new,2,5,x\n2,new,5,x\n");
    place.expect(
        0,
        &["fit", "fewer.csv", "--from", "a", "--to", "b", "--weight", "n", "--lambda-ratio", "0.3", "--init", "out", "--out", "from-out"],
    );
    place.expect(0, &["verify", "from-out", "--quiet"]);
    let (_, error) =
        place.expect(2, &["fit", "trips.csv", "--from", "kind", "--to", "kind", "--lambda-ratio", "0.3", "--init", "out", "--out", "no"]);
    assert!(error.contains("E-DATA-ONE-STATE") || error.contains("none of its states"), "{error}");
}

#[test]
fn named_states_have_places_and_names() {
    let place = four_groups();
    let towns = common::text(&place.read("towns.csv")).replace("label,group,lon,lat", "id,called,x,y");
    // One state is in no row.
    place.write("places.csv", towns.lines().filter(|l| !l.starts_with("59,")).map(|l| format!("{l}\n")).collect::<String>());
    let named = ["--places", "places.csv", "--label", "id", "--name", "called", "--lon", "x", "--lat", "y"];
    let fit = ["fit", "counts.csv", "--lambda-ratio", "0.3", "--out"];
    let (told, _) = place.expect(0, &[&fit[..], &["out"], &named[..]].concat());
    assert!(told.contains("hint: 1 of 60 states are not in places.csv (such as 59) and are not on the map"), "{told}");
    let states = rows(&place, "out/states.csv");
    assert_eq!(states[0][..2], ["label", "name"]);
    let (lon, lat) = (states[0].len() - 2, states[0].len() - 1);
    assert_eq!((states[2][1].as_str(), states[2][lon].as_str(), states[2][lat].as_str()), ("town 1", "10.0", "40.0"));
    assert_eq!((states[60][1].as_str(), states[60][lon].as_str()), ("", "NaN"));
    place.expect(0, &["verify", "out", "--quiet"]);
    place.expect(0, &["report", "out"]);
    place.expect(0, &["verify", "out", "--quiet"]);
    // Another name, or another place, is a lie that verify sees.
    for (file, from, to) in [("out/states.csv", "town 1", "town 2"), ("places.csv", "town 1", "town 2")] {
        let kept = place.read(file);
        place.write(file, common::text(&kept).replacen(from, to, 1));
        place.expect(1, &["verify", "out", "--quiet"]);
        place.write(file, kept);
    }
    for (arguments, sentence) in [
        (&["--places", "places.csv"][..], "there is no column `label`"),
        (
            &["--places", "places.csv", "--label", "called", "--lon", "x", "--lat", "y"],
            "none of the 60 states, such as `0`, is in the column `called`",
        ),
        (&["--places", "places.csv", "--label", "id", "--lon", "id", "--lat", "id"], ""),
        (&["--name", "called"], "--places"),
    ] {
        let done = place.run(&[&fit[..], &["no"], arguments].concat());
        let error = common::text(&done.stderr);
        assert!(sentence.is_empty() || (done.status.code() == Some(2) && error.contains(sentence)), "{error}");
    }
}

#[test]
fn data_from_standard_input_are_rechecked_from_there() {
    use std::io::Write;
    let place = Place::new();
    let csv = triplets_csv(&planted_counts(30, 3));
    let piped = |arguments: &[&str], data: &str| {
        let mut child = place
            .command(arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(data.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        (done.status.code().unwrap(), common::text(&done.stdout) + &common::text(&done.stderr))
    };
    let (code, told) = piped(&["fit", "-", "--lambda-ratio", "0.3", "--out", "out"], &csv);
    assert!(code == 0 && told.contains("| metastate verify RESULT"), "{told}");
    let (code, told) = piped(&["verify", "out"], &csv);
    assert_eq!(code, 0, "{told}");
    let (code, told) = piped(&["verify", "out"], &(csv + "0,1,3\n"));
    assert!(code != 0 && told.contains("inputs"), "{told}");
}

#[test]
fn compare_writes_its_table_and_finds_the_groups() {
    let place = four_groups();
    let arguments = [
        "compare",
        "counts.csv",
        "--rank",
        "4",
        "--folds",
        "3",
        "--reference",
        "group",
        "--reference-from",
        "towns.csv",
        "--places",
        "towns.csv",
        "--out",
        "out",
    ];
    let (out, _) = place.expect(0, &arguments);
    assert!(out.contains("held-out log-likelihood: "), "{out}");
    let found = json(&place, "out/compare.json");
    let methods = found["methods"].as_array().unwrap();
    assert_eq!(methods.len(), METHODS);
    assert!(found["prior"].as_f64().unwrap() > 0.0 && found["prior_is"] == "on all data; chosen anew on each training part");
    assert!(found["smoothing"].is_null() && methods.iter().all(|m| m["smoothing"].as_f64().unwrap() > 0.0), "{found}");
    place.expect(
        0,
        &["compare", "counts.csv", "--rank", "4", "--folds", "2", "--methods", "refit-likelihood", "--prior", "0.25", "--out", "given"],
    );
    let given = json(&place, "given/compare.json");
    assert!(given["prior"] == 0.25 && given["prior_is"] == "given");
    for m in methods {
        let name = m["method"].as_str().unwrap();
        assert!(m["log_likelihood"].as_f64().unwrap() < 0.0 && m["log_likelihood_se"].as_f64().unwrap() >= 0.0, "{m}");
        if !["svd-clipped", "empirical", "rank-one", "blend"].contains(&name) {
            assert_eq!(m["ari"].as_f64(), Some(1.0), "{m}");
            assert_eq!(m["zones"], 4, "{m}");
            assert!(m["coherence"].as_f64().unwrap() > 0.9, "{m}");
        }
    }
    let table = rows(&place, "out/compare.csv");
    assert_eq!(table.len(), METHODS + 1);
    assert!(table.iter().all(|r| r.len() == table[0].len()));
    assert!(common::text(&place.read("out/compare.svg")).starts_with("<svg"));
    // The same seed gives the same scores, whatever the threads; the clock alone differs.
    place.expect(0, &[&arguments[..arguments.len() - 1], &["out1", "--threads", "1", "--quiet"]].concat());
    let again = json(&place, "out1/compare.json");
    for (a, b) in methods.iter().zip(again["methods"].as_array().unwrap()) {
        for field in ["log_likelihood", "squared_error", "ari", "coherence"] {
            assert_eq!(a[field], b[field], "{field} of {}", a["method"]);
        }
    }
}

#[test]
fn results_and_groups_from_elsewhere_take_part() {
    let place = four_groups();
    place.expect(0, &["fit", "counts.csv", "--rank", "4", "--out", "same"]);
    // The same states, other transitions, and one state that is not among ours.
    let mut other = triplets_csv(&planted_counts(60, 4)).replacen("0,0,", "0,0,1", 1);
    other += "new,3,5\n3,new,5\n";
    place.write("other.csv", other);
    place.expect(0, &["fit", "other.csv", "--rank", "4", "--out", "elsewhere"]);
    let base = ["compare", "counts.csv", "--folds", "2", "--methods", "refit-likelihood,rank-one", "--rank", "4", "--seed", "3"];
    let given = ["--with", "same", "--with", "elsewhere", "--groups", "group", "--groups-from", "towns.csv", "--out", "out"];
    place.expect(0, &[&base[..], &given].concat());
    let found = json(&place, "out/compare.json");
    let names: Vec<&str> = found["methods"].as_array().unwrap().iter().map(|m| m["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["refit-likelihood", "rank-one", "result same", "result elsewhere", "groups group"]);
    let score = |k: usize| found["methods"][k]["log_likelihood"].as_f64().unwrap();
    // A result of these very inputs is fitted anew on each part: with the same options it is our own row, to the bit.
    assert_eq!(score(2), score(0));
    assert!(found["methods"][2]["note"].as_str().unwrap().starts_with("fitted anew on each part"), "{found}");
    // One of other inputs is scored as it is; the planted groups are as good as anybody.
    assert!(found["methods"][3]["note"].as_str().unwrap().starts_with("as it is"), "{found}");
    assert!((2..5).all(|k| score(k) > score(1) + 0.1 && (score(k) - score(0)).abs() < 0.05), "{found}");
    // Without a rank, the recipe chooses it: the one that `fit` has.
    place.expect(0, &["fit", "counts.csv", "--out", "free"]);
    place.expect(0, &["compare", "counts.csv", "--folds", "2", "--methods", "svd-partition", "--out", "chosen"]);
    let chosen = json(&place, "chosen/compare.json");
    assert_eq!(chosen["rank"], json(&place, "free/summary.json")["choice"]["rank"]);
    assert_eq!(chosen["rank_is"], "chosen on all data by the recipe");
    for (case, said) in [
        (["--with", "same", "--with", "same"], "two rows of the table"),
        (["--with", "absent", "--seed", "1"], "absent"),
        (["--groups", "no-such", "--groups-from", "towns.csv"], "no-such"),
    ] {
        let (_, err) = place.expect(2, &[&["compare", "counts.csv", "--rank", "4", "--out", "bad"], &case[..]].concat());
        assert!(err.contains(said) && !place.path("bad").exists(), "{err}");
    }
}

#[test]
fn a_reference_column_of_the_inputs_is_counted_row_by_row() {
    let place = Place::new();
    let mut table = String::from("state,kind\n");
    // Four states in two pairs; the walk changes pair now and then, and the reference knows the pairs but for a few frames.
    (0..4000).for_each(|t: usize| {
        let pair = t / 10 % 2;
        let state = 2 * pair + (t * 7 + t / 3) % 2;
        table += &format!("s{state},{}\n", if t.is_multiple_of(100) { "odd" } else { ["low", "high"][pair] });
    });
    place.write("walk.csv", table);
    let arguments =
        ["compare", "walk.csv", "--as", "trajectories", "--state", "state", "--rank", "2", "--reference", "kind", "--out", "out"];
    place.expect(0, &arguments);
    let found = json(&place, "out/compare.json");
    let ari = found["methods"][2]["ari"].as_f64().unwrap();
    assert!(ari > 0.9 && ari < 1.0, "{ari}");
}

#[test]
fn compare_refuses_what_it_cannot_use() {
    let place = four_groups();
    let base = ["compare", "counts.csv", "--rank", "4", "--out", "out"];
    let cases: [&[&str]; 11] = [
        &["--methods", "svd-partition,no-such"],
        &["--folds", "1"],
        &["--smoothing", "0"],
        &["--prior=-1"],
        &["--lambda-ratio=-1"],
        &["--reference", "group", "--reference-from", "absent.csv"],
        &["--reference", "no-such", "--reference-from", "towns.csv"],
        &["--reference", "group", "--reference-from", "towns.csv", "--label", "group"],
        &["--places", "counts.csv"],
        // Endless, and no regular file.
        &["--reference", "group", "--reference-from", "/dev/zero"],
        &["--places", "/dev/zero"],
    ];
    for case in cases {
        let (out, err) = place.expect(2, &[&base, case].concat());
        assert!(out.is_empty() && err.starts_with("error[E-"), "{case:?}: {err}");
        assert!(!place.path("out").exists(), "{case:?}");
    }
    place.expect(2, &["compare", "counts.csv", "--rank", "0", "--out", "out"]);
    place.write("p.npy", common::npy(&[(0, 1, 1), (1, 0, 1)], 2));
    let (_, err) = place.expect(2, &["compare", "p.npy", "--as", "matrix", "--rank", "2", "--out", "out"]);
    assert!(err.contains("held out of counts"), "{err}");
    // A rank beyond the states is told in the table of every method that needs it.
    place.expect(0, &["compare", "counts.csv", "--rank", "4", "--methods", "rank-one", "--out", "out"]);
    place.expect(2, &["compare", "counts.csv", "--rank", "4", "--methods", "rank-one", "--out", "out"]);
}

#[test]
fn a_known_state_is_assigned_its_own_membership_and_a_new_one_its_group() {
    let place = four_groups();
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.1", "--tolerance", "1e-9", "--out", "fit"]);
    place.expect(0, &["assign", "fit", "counts.csv", "--out", "same.csv"]);
    let (fit, same) = (rows(&place, "fit/states.csv"), rows(&place, "same.csv"));
    let rank = fit[0].iter().filter(|c| c.starts_with("membership_")).count();
    assert_eq!(same.len(), fit.len());
    for (a, b) in fit.iter().zip(&same).skip(1) {
        assert_eq!((a[0].as_str(), b[1].as_str()), (b[0].as_str(), "true"));
        for j in 0..rank {
            let (x, y): (f64, f64) = (a[4 + j].parse().unwrap(), b[5 + j].parse().unwrap());
            assert!((x - y).abs() < 1e-3, "state {}: {x} {y}", a[0]);
        }
    }
    // A new state that goes where group 2 goes, and one that goes nowhere known.
    let mut new = String::from("from,to,count\n");
    (0..60).filter(|j| j % 4 == 2).for_each(|j| new += &format!("new,{j},20\n"));
    new += "new,elsewhere,5\nlost,elsewhere,3\n";
    place.write("new.csv", new);
    for by in ["penalised", "least-squares", "likelihood"] {
        let (out, _) = place.expect(0, &["assign", "fit", "new.csv", "--by", by, "--out", "new-states.csv", "--force"]);
        assert!(
            out.contains("to-a-state-not-in-the-fit: 8 transitions") && out.contains("leads-only-to-states-not-in-the-fit: 1 states"),
            "{out}"
        );
        let found = rows(&place, "new-states.csv");
        assert_eq!(found.len(), 2);
        assert_eq!((found[1][0].as_str(), found[1][1].as_str()), ("new", "false"));
        // State 2 is of that group: the same column leads.
        let leads = |row: &[String]| (0..rank).max_by(|&a, &b| row[a].parse::<f64>().unwrap().total_cmp(&row[b].parse().unwrap()));
        let of_group = fit.iter().find(|r| r[0] == "2").unwrap();
        assert_eq!(leads(&found[1][5..]), leads(&of_group[4..4 + rank]), "{by}");
    }
}

#[test]
fn assign_refuses_what_it_cannot_use() {
    let place = four_groups();
    place.expect(2, &["assign", "absent", "counts.csv", "--out", "x.csv"]);
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.3", "--out", "fit"]);
    place.write("strangers.csv", "from,to,count\na,b,3\nb,a,2\n");
    let (_, err) = place.expect(2, &["assign", "fit", "strangers.csv", "--out", "x.csv"]);
    assert!(err.contains("E-CLI-ASSIGN"), "{err}");
    place.expect(2, &["assign", "fit", "absent.csv", "--out", "x.csv"]);
    place.write("x.csv", "mine");
    place.expect(2, &["assign", "fit", "counts.csv", "--out", "x.csv"]);
    place.expect(2, &["assign", "fit", "counts.csv", "--out", "counts.csv", "--force"]);
    assert_eq!(place.read("x.csv"), b"mine");
}

#[test]
fn zones_are_as_many_as_asked_for_agree_with_their_tables_and_verify_knows_them() {
    let place = four_groups();
    for (clusters, zones) in [("3", 3), ("rank", 0), ("membership", 0)] {
        place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.1", "--clusters", clusters, "--out", "fit", "--force"]);
        let rank = json(&place, "fit/summary.json")["rank"].as_u64().unwrap() as usize;
        let table = rows(&place, "fit/zones.csv");
        assert_eq!(table.len() - 1, if zones == 0 { rank } else { zones }, "{clusters}");
        let masses: Vec<f64> = table[1..].iter().map(|r| r[3].parse().unwrap()).collect();
        assert!((zones == 0 || masses.windows(2).all(|w| w[0] >= w[1])) && (masses.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{masses:?}");
        // metastates.csv counts the column metastate, zones.csv the column zone, whichever rule makes the zones.
        let states = rows(&place, "fit/states.csv");
        assert_eq!(states[0][..4], ["label", "weight", "metastate", "zone"]);
        for (file, column, size) in [("metastates.csv", 2, 1), ("zones.csv", 3, 2)] {
            for row in &rows(&place, &format!("fit/{file}"))[1..] {
                let counted = states[1..].iter().filter(|s| s[column] == row[0]).count();
                assert_eq!(row[size], counted.to_string(), "--clusters {clusters}, {file}, row {}", row[0]);
            }
        }
        let differing = states[1..].iter().filter(|s| s[2] != s[3]).count();
        assert!(clusters != "membership" || differing == 0, "--clusters {clusters}: {differing}");
        assert!(clusters != "3" || differing > 0, "three zones of {rank} meta-states cannot be the meta-states");
        place.expect(0, &["verify", "fit"]);
    }
    // A state moved to another zone or to another meta-state is noticed.
    let states = common::text(&place.read("fit/states.csv"));
    for column in [2, 3] {
        let mut lines: Vec<String> = states.lines().map(str::to_owned).collect();
        let mut fields: Vec<&str> = lines[1].split(',').collect();
        fields[column] = if fields[column] == "1" { "2" } else { "1" };
        lines[1] = fields.join(",");
        place.write("fit/states.csv", lines.join("\n") + "\n");
        place.expect(1, &["verify", "fit"]);
    }
    place.expect(2, &["fit", "counts.csv", "--lambda-ratio", "0.1", "--clusters", "61", "--out", "other"]);
    place.expect(2, &["fit", "counts.csv", "--lambda-ratio", "0.1", "--clusters", "0", "--out", "other"]);
    assert!(!place.path("other").exists());
}
