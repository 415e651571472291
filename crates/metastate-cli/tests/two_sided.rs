//! `--bipartite`: origins that are not destinations, from the file to the folder, the page, and back through `verify`.

mod common;

use std::fmt::Write;

use common::{Place, text};
use serde_json::Value;

/// Homes go to work in one of three districts; towns are named alike on both sides, `h0` is never a destination and `w59` never an origin.
fn commuters() -> String {
    let mut out = String::from("home,work,people\n");
    for i in 0..40usize {
        for j in 0..60usize {
            let near = if i % 3 == j % 3 { 30 } else { 1 };
            let noise = (i * 7919 + j * 104_729 + i * j * 31) % 11;
            if (i + 2 * j) % 4 != 0 || near > 1 {
                // Every tenth town is on both sides; as an origin it is one state, as a destination another.
                let work = if j < 40 && usize::is_multiple_of(j, 10) { format!("h{j}") } else { format!("w{j}") };
                writeln!(out, "h{i},{work},{}", near + noise / 3).unwrap();
            }
        }
    }
    out
}

fn place() -> Place {
    let place = Place::new();
    place.write("commuters.csv", commuters());
    place
}

const INPUT: [&str; 10] = ["fit", "commuters.csv", "--as", "trips", "--from", "home", "--to", "work", "--weight", "people"];

#[test]
fn two_sets_are_fitted_written_shown_and_verified() {
    let place = place();
    let (out, _) = place.expect(0, &[&INPUT[..], &["--bipartite", "--rank", "3", "--bootstrap", "3", "--out", "out"]].concat());
    assert!(out.contains("40 origins and 60 destinations"), "{out}");
    let summary: Value = serde_json::from_slice(&place.read("out/summary.json")).unwrap();
    assert_eq!((summary["states"].as_u64(), summary["destinations"].as_u64(), summary["rank"].as_u64()), (Some(40), Some(60), Some(3)));
    assert!(summary["kinetics"].is_null());
    assert!(summary["ledger"].as_array().unwrap().is_empty(), "nothing is left out for being on one side: {}", summary["ledger"]);
    assert!(!place.path("out/latent.csv").exists() && !place.path("out/kinetics.npz").exists());
    let table = text(&place.read("out/destinations.csv"));
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("label,weight,metastate,profile_1,profile_2,profile_3"));
    // Columns of V are laws, and so are the arrivals.
    let rows: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 60);
    for column in [1, 3, 4, 5] {
        let sum: f64 = rows.iter().map(|r| r[column].parse::<f64>().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-9, "column {column}: {sum}");
    }
    // The districts come back: destinations of one third share their meta-state.
    let district = |j: usize| {
        let name = if j < 40 && usize::is_multiple_of(j, 10) { format!("h{j}") } else { format!("w{j}") };
        rows.iter().find(|r| r[0] == name).map(|r| r[2].to_owned()).unwrap()
    };
    assert!((0..60).all(|j| district(j) == district(j % 3)), "{table}");
    let (checked, _) = place.expect(0, &["verify", "out"]);
    assert!(checked.contains("destinations.csv") && !checked.contains("NO"), "{checked}");
    place.expect(0, &["report", "out"]);
    place.expect(0, &["verify", "out"]);
    // What needs a chain that goes on says so; memberships of new origins need none.
    let (_, refused) = place.expect(2, &["forecast", "out"]);
    assert!(refused.contains("E-DATA-TWO-SIDED") && refused.contains("two different sets"), "{refused}");
    place.write("more.csv", "home,work,people\nnew,w1,5\nnew,w4,6\nh1,w1,9\n");
    place.expect(0, &["assign", "out", "more.csv", "--out", "assigned.csv"]);
    let assigned = text(&place.read("assigned.csv"));
    assert!(assigned.contains("new,false") && assigned.contains("h1,true"), "{assigned}");
    let home = |name: &str| assigned.lines().find(|l| l.starts_with(name)).and_then(|l| l.split(',').nth(4)).map(str::to_owned);
    assert_eq!(home("new,"), home("h1,"));
}

#[test]
fn a_start_from_an_earlier_result_and_one_thread_give_the_same() {
    let place = place();
    let ratio = ["--bipartite", "--lambda-ratio", "0.2", "--refit", "least-squares"];
    place.expect(0, &[&INPUT[..], &ratio, &["--threads", "1", "--out", "one"]].concat());
    place.expect(0, &[&INPUT[..], &ratio, &["--threads", "2", "--out", "two"]].concat());
    for file in ["factors.npz", "refit.npz", "certificate.npz", "destinations.csv", "states.csv"] {
        assert!(place.read(&format!("one/{file}")) == place.read(&format!("two/{file}")), "{file}");
    }
    place.expect(0, &["verify", "one"]);
    place.expect(0, &[&INPUT[..], &ratio, &["--init", "one", "--out", "again"]].concat());
    place.expect(0, &["verify", "again"]);
    // The states that are both keep their rows and columns; where there are none, the start is refused.
    place.expect(0, &[&INPUT[..], &["--lambda-ratio", "0.2", "--init", "one", "--out", "square"]].concat());
    place.expect(0, &["verify", "square"]);
    place.write("strangers.csv", "home,work,people\nx,y,3\ny,x,2\nx,x,1\n");
    let strangers = ["fit", "strangers.csv", "--as", "trips", "--from", "home", "--to", "work", "--lambda-ratio", "0.2"];
    let (_, refused) = place.expect(2, &[&strangers[..], &["--init", "one", "--out", "strange"]].concat());
    assert!(refused.contains("E-CLI-INIT"), "{refused}");
}

#[test]
fn a_lie_about_a_destination_is_caught() {
    let place = place();
    place.expect(0, &[&INPUT[..], &["--bipartite", "--lambda-ratio", "0.2", "--out", "out"]].concat());
    let table = text(&place.read("out/destinations.csv"));
    let honest = table.lines().nth(5).unwrap();
    let fields: Vec<&str> = honest.split(',').collect();
    let other = if fields[2] == "1" { "2" } else { "1" };
    place.write("out/destinations.csv", table.replace(honest, &format!("{},{},{other},{}", fields[0], fields[1], fields[3..].join(","))));
    let (told, _) = place.expect(1, &["verify", "out"]);
    assert!(told.lines().any(|l| l.contains("destinations.csv") && l.contains("NO")), "{told}");
}

#[test]
fn what_one_set_alone_can_have_is_refused() {
    let place = place();
    for (more, word) in [
        (&["--weights-by", "arrivals"][..], "weights-by"),
        (&["--connected", "largest"], "connected"),
        (&["--reversible"], "reversible"),
        (&["--truth", "p.npy"], "truth"),
    ] {
        let (_, refused) = place.expect(2, &[&INPUT[..], more, &["--bipartite", "--out", "out"]].concat());
        assert!(refused.contains(word) && refused.contains("bipartite"), "{refused}");
    }
    place.write("walk.txt", "a b c a b c a b c a c b\n");
    let (_, refused) =
        place.expect(2, &["fit", "walk.txt", "--as", "trajectories", "--bipartite", "--lambda-ratio", "0.5", "--out", "out"]);
    assert!(refused.contains("one set"), "{refused}");
    assert!(!place.path("out").exists());
}
