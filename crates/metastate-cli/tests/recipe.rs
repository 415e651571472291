//! The command and the library are two ways to the same recipe: the same bytes. And `--rank K`, which says how many meta-states there are.

mod common;

use common::{Place, planted_counts};
use metastate::solve::{Factors, Silent};
use metastate::{Data, Estimate, FitOptions, fit};
use metastate_ingest::{Data as Read, InputSettings, read};
use metastate_report::load;
use serde_json::Value;

fn counts(place: &Place) {
    let mut text = String::from("from,to,count\n");
    planted_counts(24, 3).iter().for_each(|(i, j, n)| text += &format!("{i},{j},{n}\n"));
    place.write("counts.csv", text);
}

fn same_bits(a: &Factors, b: &Factors) -> bool {
    let bits = |m: &metastate::Mat| m.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    (bits(&a.u), bits(&a.v)) == (bits(&b.u), bits(&b.v))
}

#[test]
fn the_command_does_what_the_library_does() {
    let place = Place::new();
    counts(&place);
    place.expect(0, &["fit", "counts.csv", "--out", "out"]);
    let written = load(&place.path("out")).unwrap();

    let file = place.path("counts.csv").display().to_string();
    let Read::Counts(counted) = read(&[file], &InputSettings::default(), &mut metastate_ingest::Silent).unwrap().data else {
        panic!("no counts")
    };
    let data = Data::from_counts(&counted.counts, &Estimate::default()).unwrap();
    let model = fit(&data, &FitOptions::default(), &mut Silent).unwrap();
    assert!(same_bits(&written.factors, &model.solution.factors));
    assert!(same_bits(written.refit.as_ref().unwrap(), model.factors()));
    let zones: Vec<u32> = written.numbers("zone").unwrap().into_iter().map(|z| z as u32 - 1).collect();
    assert_eq!(zones, model.zones.labels);
    assert_eq!(Some(written.summary.objective), Some(model.solution.objective.value));
    assert_eq!(written.summary.errors.certified_gap, model.solution.certified_gap());
}

#[test]
fn a_rank_that_is_given_is_the_rank_of_every_table() {
    let place = Place::new();
    counts(&place);
    for rank in ["1", "2", "5"] {
        let (out, _) = place.expect(0, &["fit", "counts.csv", "--rank", rank, "--out", rank, "--json"]);
        let summary: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(summary["refit"]["rank"].to_string(), rank);
        assert_eq!(summary["choice"]["rank"].to_string(), rank);
        assert!(summary["choice"]["sentence"].as_str().unwrap().contains("as asked for"), "{summary}");
        let states = String::from_utf8(place.read(&format!("{rank}/states.csv"))).unwrap();
        assert_eq!(states.lines().next().unwrap().matches("membership_").count().to_string(), rank);
        place.expect(0, &["verify", rank]);
    }
}

#[test]
fn a_rank_excludes_what_would_say_otherwise() {
    let place = Place::new();
    counts(&place);
    for (options, said) in [
        (&["--rank", "3", "--lambda", "1e-3"][..], "--rank"),
        (&["--rank", "3", "--lambda-ratio", "0.5"], "--rank"),
        (&["--rank", "0"], "at least one meta-state is needed"),
        (&["--rank", "9", "--max-rank", "4"], "--rank 9 is above --max-rank 4"),
        (&["--rank", "25"], "the rank is 25; it must not exceed the number of states"),
    ] {
        let (_, err) = place.expect(2, &[&["fit", "counts.csv", "--out", "out"][..], options].concat());
        assert!(err.contains(said), "{options:?}: {err}");
        assert!(!place.path("out").exists());
    }
}
