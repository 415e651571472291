//! Lies about a fit at a given lambda.

use serde_json::{Value, json};

use crate::judge::Found::{By, Named};
use crate::judge::Lie;
use crate::tools::{other, times, word};

/// What was asked, and how the run ended.
pub const TERMS: &[Lie] = &[
    ("a status that does not exist", By("status"), |c, _| c.set("/status", json!("optimal"))),
    ("rank-cap, and more were allowed", By("status"), |c, _| c.set("/status", json!("rank-cap"))),
    ("early, without its rule", By("status"), |c, _| c.set("/status", json!("early"))),
    ("time-limit, and there was none", By("status"), |c, _| c.set("/status", json!("time-limit"))),
    ("iteration-limit, after few sweeps", By("status"), |c, _| c.set("/status", json!("iteration-limit"))),
    ("another gap in the settings", By("settings and command"), |c, _| c.set("/settings/fit/gap", json!(1e-9))),
    ("another gap in settings and command", By("status"), |c, _| {
        c.set("/settings/fit/gap", json!(1e-30));
        c.json("summary.json", |s| s["command"] = s["command"].as_str().unwrap().replace("0.05", "1e-30").into());
    }),
    ("another stop rule in settings and command", By("status"), |c, _| {
        c.set("/settings/fit/stop", json!("exact"));
        c.json("summary.json", |s| s["command"] = (s["command"].as_str().unwrap().to_owned() + " --stop exact").into());
    }),
    ("another tolerance in the settings", By("settings and command"), |c, _| c.set("/settings/fit/tolerance", json!(1e-9))),
    ("another lambda ratio in the settings", By("settings and command"), |c, _| c.set("/settings/fit/lambda_ratio", json!(0.31))),
    ("another lambda ratio in settings and command", By("lambda"), |c, _| {
        c.set("/settings/fit/lambda_ratio", json!(0.31));
        c.json("summary.json", |s| s["command"] = s["command"].as_str().unwrap().replace("0.3 ", "0.31 ").into());
    }),
    ("another seed", By("settings and command"), |c, _| c.set("/seed", json!(7))),
    ("other cells in the settings", By("settings and command"), |c, _| c.set("/settings/input/cell", json!(0.5))),
    ("an option taken out of the settings", By("settings"), |c, _| c.set("/settings/fit/prior", Value::Null)),
    ("other words for the zones", By("settings"), |c, _| c.set("/settings/hard_metastates", json!("by hand"))),
    ("a command that is no command", By("settings and command"), |c, _| c.set("/command", json!("metastate fit --best"))),
    ("a call from Python instead", Named("settings and command"), |c, _| c.set("/command", json!("metastate.fit(data)"))),
    ("a further field in the summary", By("summary.json"), |c, _| c.set("/proven_by", json!("a referee"))),
];

/// What the summary says of the answer and of the data.
pub const FIGURES: &[Lie] = &[
    ("a lower objective", By("objective"), |c, _| c.grow("/objective", 0.99)),
    ("a lower fidelity", By("fidelity"), |c, _| c.grow("/fidelity", 0.99)),
    ("a lower regularizer", By("regularizer"), |c, _| c.grow("/regularizer", 0.99)),
    ("a higher bound", By("lower_bound"), |c, _| c.grow("/lower_bound", 1.01)),
    ("a smaller gap", By("certified_gap"), |c, _| c.set("/errors/certified_gap", json!(-1e-3))),
    ("a bound by magic", By("bound_proof"), |c, _| c.set("/bound_proof", json!("magic"))),
    ("a smaller local error", By("rel_le1"), |c, _| c.grow("/errors/rel_le1", 0.5)),
    ("a smaller second local error", By("rel_le2"), |c, _| c.grow("/errors/rel_le2", 0.5)),
    ("a smaller global error", By("ge"), |c, _| c.set("/errors/ge", json!(-0.1))),
    ("a smaller heuristic gap", By("rel_dg"), |c, _| c.set("/errors/rel_dg", json!(-0.1))),
    ("another rank", By("rank"), |c, _| c.set("/rank", json!(2))),
    ("another lambda_max", By("lambda_max"), |c, _| c.grow("/lambda_max", 1.5)),
    ("more transitions", By("transitions"), |c, _| c.grow("/transitions", 2.0)),
    ("more rows", By("rows"), |c, _| c.set("/rows", json!(1_000_000))),
    ("more pairs", By("nonzeros"), |c, _| c.set("/nonzeros", json!(1600))),
    ("a ledger of what was not left out", By("ledger"), |c, _| {
        c.set("/ledger", json!([{ "reason": "too rare", "unit": "rows", "count": 1, "weight": 1.0, "examples": [] }]));
    }),
];

/// States and meta-states in their tables.
pub const STATES: &[Lie] = &[
    ("names of memberships exchanged in states.csv", By("states.csv"), |c, _| c.swap_names("states.csv", 4, 5)),
    ("names of weight and meta-state exchanged in states.csv", By("states.csv"), |c, _| c.swap_names("states.csv", 1, 2)),
    ("names of meta-state and zone exchanged in states.csv", By("states.csv"), |c, _| c.swap_names("states.csv", 2, 3)),
    ("labels exchanged in states.csv", By("states.csv"), |c, _| {
        c.csv("states.csv", |rows| (rows[1][0], rows[2][0]) = (rows[2][0].clone(), rows[1][0].clone()));
    }),
    ("another weight in states.csv", By("states.csv"), |c, _| c.field("states.csv", 4, "weight", times(1.1))),
    ("another membership in states.csv", By("states.csv"), |c, _| c.field("states.csv", 4, "membership_2", word("0.5"))),
    ("a row less in states.csv", By("states.csv"), |c, _| c.csv("states.csv", |rows| drop(rows.pop()))),
    ("another value in states.parquet", By("states.parquet"), |c, _| {
        c.parquet_column("states.parquet", "membership_1", 0.9, "membership_1")
    }),
    ("another name in states.parquet", By("states.parquet"), |c, _| c.parquet_column("states.parquet", "membership_1", 1.0, "truth_1")),
    ("states.parquet is no Parquet", By("states.parquet"), |c, _| std::fs::write(c.0.join("states.parquet"), "PAR1 no").unwrap()),
    ("names exchanged in latent.csv", By("latent.csv"), |c, _| c.swap_names("latent.csv", 1, 2)),
    ("another step in latent.csv", By("latent.csv"), |c, _| c.field("latent.csv", 1, "to_2", times(0.9))),
    ("anchors exchanged", By("metastates.csv"), |c, _| c.csv("metastates.csv", |rows| rows[1].swap(3, 5))),
    ("another membership of an anchor", By("metastates.csv"), |c, _| c.field("metastates.csv", 1, "membership_2", word("0.5"))),
    ("another destination", By("metastates.csv"), |c, _| c.csv("metastates.csv", |rows| rows[1][13] = rows[2][13].clone())),
    ("another share of a destination", By("metastates.csv"), |c, _| c.field("metastates.csv", 2, "share_1", times(2.0))),
    ("another size", By("metastates.csv"), |c, _| c.field("metastates.csv", 2, "size", word("40"))),
    ("another mass", By("metastates.csv"), |c, _| c.field("metastates.csv", 2, "mass", times(1.01))),
    ("another stationary law", By("metastates.csv"), |c, _| c.field("metastates.csv", 1, "stationary", times(0.9))),
    ("anchors named destinations", By("metastates.csv"), |c, _| c.swap_names("metastates.csv", 3, 13)),
];

/// Which zone a state is in, and what the zones are.
pub const ZONES: &[Lie] = &[
    ("all states in one zone", By("zones"), |c, _| c.zones(|_| "1".to_owned())),
    ("zones 1 and 2 exchanged", By("zones"), |c, _| {
        c.zones(|z| {
            if z == "1" {
                "2".to_owned()
            } else if z == "2" {
                "1".to_owned()
            } else {
                z.to_owned()
            }
        });
    }),
    ("one state in another zone", By("zones"), |c, _| {
        c.field("states.csv", 1, "zone", other);
    }),
    ("one state in another meta-state", By("states.csv"), |c, _| c.field("states.csv", 1, "metastate", other)),
    ("a meta-state that does not exist", By("states.csv"), |c, _| c.field("states.csv", 1, "metastate", word("9"))),
    ("another zone in states.parquet", By("states.parquet"), |c, _| c.parquet_number("states.parquet", "zone", 9)),
    ("another meta-state in states.parquet", By("states.parquet"), |c, _| c.parquet_number("states.parquet", "metastate", 9)),
    ("more inflow of a zone", By("zones.csv"), |c, _| c.field("zones.csv", 1, "inflow", times(1.1))),
    ("another anchor of a zone", By("zones.csv"), |c, _| c.csv("zones.csv", |rows| rows[1].swap(8, 10))),
    ("another destination of a zone", By("zones.csv"), |c, _| c.csv("zones.csv", |rows| rows[1].swap(18, 20))),
    ("inflow and outflow named each other", By("zones.csv"), |c, _| c.swap_names("zones.csv", 4, 5)),
    ("another name of a zone", By("zones.csv"), |c, _| c.field("zones.csv", 1, "name", word("Paradise"))),
    ("other trips between zones", By("zone_flows.csv"), |c, _| c.field("zone_flows.csv", 2, "transitions", times(1.5))),
    ("another share of the trips", By("zone_flows.csv"), |c, _| c.field("zone_flows.csv", 1, "share", times(1.1))),
    ("another leading meta-state of a zone", By("zones.csv"), |c, _| c.field("zones.csv", 1, "metastate", other)),
];

/// The factors themselves, the page and the pictures.
pub const FACTORS_AND_PAGES: &[Lie] = &[
    ("columns of U exchanged", By("states.csv"), |c, _| {
        c.npz("factors.npz", |arrays| {
            arrays.iter_mut().filter(|a| a.shape.len() == 2).for_each(|a| a.data.chunks_mut(3).for_each(|row| row.swap(0, 1)));
        });
    }),
    ("other weights of the states", By("xi"), |c, _| c.npz("factors.npz", |arrays| arrays[2].data.swap(0, 1))),
    ("a page that says something else", By("page.json"), |c, _| c.json("page.json", |page| page["heat"]["model"][0] = json!(0.5))),
    ("report.html replaced", By("report.html"), |c, _| std::fs::write(c.0.join("report.html"), "<h1>Optimal</h1>").unwrap()),
    ("report.html with another number", By("report.html"), |c, _| {
        let path = c.0.join("report.html");
        let html = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, html.replace("3 meta-states", "4 meta-states")).unwrap();
    }),
    ("a plot replaced", By("plots"), |c, _| std::fs::write(c.0.join("plots/matrices.svg"), "<svg/>").unwrap()),
];

/// Files on the list and off it.
pub const FILES: &[Lie] = &[
    ("no list of files", By("files"), |c, _| c.set("/files", json!({}))),
    ("a file taken off the list", By("files"), |c, _| {
        c.json("summary.json", |s| drop(s["files"].as_object_mut().unwrap().remove("latent.csv")))
    }),
    ("a file of one's own", Named("files that no result has"), |c, _| std::fs::write(c.0.join("proof.txt"), "it is optimal").unwrap()),
    ("a file of one's own, listed", Named("further files"), |c, _| {
        std::fs::write(c.0.join("proof.txt"), "it is optimal").unwrap();
        c.json("summary.json", |s| s["files"]["proof.txt"] = json!(""));
    }),
];

/// Records of what nobody did, and fields that nobody knows.
pub const RECORDS: &[Lie] = &[
    ("a choice that nobody made", By("choice"), |c, _| c.set("/choice", json!({ "rank": 3 }))),
    ("a whole choice that nobody made", By("choice"), |c, _| c.set("/choice", whole_choice())),
    ("a refit that nobody asked for", By("refit.npz"), |c, _| {
        std::fs::copy(c.0.join("factors.npz"), c.0.join("refit.npz")).unwrap();
    }),
    ("draws that nobody made", By("uncertainty"), |c, _| c.set("/uncertainty", json!({ "draws": 1000 }))),
    ("whole draws that nobody made", By("uncertainty"), |c, _| {
        c.set(
            "/uncertainty",
            json!({
                "draws": 1000, "confidence": 0.9, "draws_are": "all", "intervals_are": "narrow", "stability": [1.0, 1.0, 1.0],
                "timescale_intervals": [[1.0, null]], "undecided_states": 0
            }),
        );
    }),
    ("a further field inside the errors", By("summary.json"), |c, _| c.set("/errors/rel_best", json!(0.0))),
    ("a further field inside an input", By("summary.json"), |c, _| c.json("summary.json", |s| s["inputs"][0]["licence"] = json!("free"))),
    ("no number of states", By("summary.json"), |c, _| c.set("/states", Value::Null)),
    ("fewer seconds", Named("seconds, iterations, rounds, directory"), |c, _| c.set("/seconds/total", json!(0.001))),
    ("another version, whose page is not known", Named("report.html"), |c, _| c.set("/version", json!("0.0.1"))),
    ("the solver's way made smoother", Named("page.json: the solver's way, zones along the path, a rival's zones"), |c, _| {
        c.json("page.json", |page| page["trace"] = json!([]));
    }),
];

/// A record of a choice with all its fields.
fn whole_choice() -> Value {
    let score = json!({ "log_likelihood": -1.0, "standard_error": 0.1, "squared_error": 0.5 });
    json!({
        "sentence": "3 meta-states: the best", "rank": 3, "best_rank": 3, "lambda": 1e-3, "prior": 1.0, "clearness_standard_errors": null,
        "at_the_limit": false, "folds": 5, "folds_are": "transitions dealt at random", "smoothing": 1e-3,
        "held_out": {
            "log_likelihood": -1.0, "uncorrected": -1.0, "selection_bias": 0.0, "standard_error": 0.1, "squared_error": 0.5, "prior": 1.0
        },
        "empirical": { "pseudo_counts": 1.0, "held_out": score }, "independent": score, "priors": [{ "prior": 1.0, "held_out": score }]
    })
}
