//! Results that were changed afterwards. Whoever changes them also edits the hashes in `summary.json` and makes the page anew, so no hash gives them away:
//! each lie must be caught by the check that it is about, or be named by `verify` as not computed again. Each list reads: what is
//! changed, which check must fail, how it is done.

#[path = "../common/mod.rs"]
mod common;

mod chosen;
mod given;
mod judge;
mod map;
mod squares;
mod tools;

use common::Place;
use judge::all;

fn planted() -> Place {
    let place = Place::new();
    place.expect(0, &["simulate", "planted", "--states", "40", "--rank", "3", "--steps", "60000", "--out", "chain", "--seed", "5"]);
    place
}

#[test]
fn lies_about_a_fit_at_a_given_lambda() {
    let place = planted();
    place.expect(0, &["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--gap", "0.05", "--out", "given"]);
    all(
        &place,
        "given",
        &[given::TERMS, given::FIGURES, given::STATES, given::ZONES, given::FACTORS_AND_PAGES, given::FILES, given::RECORDS].concat(),
    );
}

#[test]
fn lies_about_a_choice_its_refit_and_its_bootstrap() {
    let place = planted();
    let fit = [
        "fit",
        "chain/counts.csv",
        "--bootstrap",
        "6",
        "--max-rank",
        "6",
        "--points",
        "8",
        "--folds",
        "3",
        "--gap",
        "0.05",
        "--out",
        "free",
    ];
    place.expect(0, &fit);
    all(&place, "free", &[chosen::CHOICE, chosen::PATH, chosen::REFIT, chosen::BOOTSTRAP, chosen::PAGE].concat());
}

#[test]
fn lies_about_zones_on_a_map() {
    let place = Place::new();
    place.expect(0, &["simulate", "city", "--trips", "20000", "--out", "trips.parquet", "--seed", "3"]);
    let columns = ["--from-lon", "from_lon", "--from-lat", "from_lat", "--to-lon", "to_lon", "--to-lat", "to_lat", "--cell", "0.01"];
    let more = ["--min-share", "0.003", "--lambda-ratio", "0.4", "--clusters", "3", "--gap", "0.05", "--out", "city"];
    place.expect(0, &[&["fit", "trips.parquet"][..], &columns, &more].concat());
    all(&place, "city", &[map::ZONES, map::PLACES, map::TABLES, map::SHAPES, map::PARQUET, map::PAGE].concat());
}

#[test]
fn lies_about_a_least_squares_refit() {
    let place = planted();
    let fit = ["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--gap", "0.05", "--refit", "least-squares"];
    place.expect(0, &[&fit[..], &["--truth", "chain/U.npy,chain/V.npy", "--out", "squares"]].concat());
    all(&place, "squares", squares::REFIT);
}
