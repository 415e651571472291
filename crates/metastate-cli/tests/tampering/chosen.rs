//! Lies about a choice, its refit and its bootstrap.

use metastate_report::npz::read_npz;
use metastate_report::parse_csv;
use serde_json::{Value, json};

use crate::judge::Found::{By, Deep, Named};
use crate::judge::Lie;
use crate::tools::{Copy, Rows, other, times, word};

/// Which rank was chosen, and how well each did.
pub const CHOICE: &[Lie] = &[
    ("another rank chosen", By("ranks.csv"), |c, _| c.set("/choice/rank", json!(2))),
    ("another rank chosen in record and table", By("ranks.csv"), |c, _| {
        c.set("/choice/rank", json!(2));
        c.csv("ranks.csv", |rows| rows.swap_with("yes", 6, 2, 1));
    }),
    ("another best rank", By("ranks.csv"), |c, _| c.set("/choice/best_rank", json!(4))),
    ("at the limit, or not", By("ranks.csv"), |c, _| c.set("/choice/at_the_limit", json!(true))),
    ("another prior", By("choice"), |c, _| c.set("/choice/prior", json!(0.01))),
    ("a better score in the record", By("choice"), |c, _| c.grow("/choice/held_out/log_likelihood", 0.9)),
    ("more folds in the record", By("choice"), |c, _| c.set("/choice/folds", json!(10))),
    ("folds of another kind", By("choice"), |c, _| c.set("/choice/folds_are", json!("days"))),
    ("another smoothing", By("choice"), |c, _| c.set("/choice/smoothing", json!(0.5))),
    ("clearer than it is", By("choice"), |c, _| c.set("/choice/clearness_standard_errors", json!(300.0))),
    ("a sentence with another rank", By("choice"), |c, _| {
        c.json("summary.json", |s| s["choice"]["sentence"] = s["choice"]["sentence"].as_str().unwrap().replace("3 meta", "5 meta").into());
    }),
    ("a sentence that is less sure", By("choice"), |c, _| {
        c.json("summary.json", |s| {
            s["choice"]["sentence"] = s["choice"]["sentence"].as_str().unwrap().replace("clear:", "not clear:").into()
        });
    }),
    ("a sentence that is not among the hints", By("choice"), |c, _| c.set("/hints", json!([]))),
    ("no record of the choice", By("choice"), |c, _| c.set("/choice", Value::Null)),
    ("empirical P worse than it is", By("empirical P on the folds"), |c, _| worse(c, "empirical", 4)),
    ("empirical P with other pseudo-counts", By("empirical P: pseudo-counts"), |c, _| c.set("/choice/empirical/pseudo_counts", json!(1.0))),
    ("independent law worse than it is", By("independent law on the folds"), |c, _| worse(c, "independent", 5)),
    ("a rank worse than it is, told as such", By("ranks.csv"), |c, _| c.field("ranks.csv", 1, "held_out", times(1.1))),
    ("names exchanged in ranks.csv", By("ranks.csv"), |c, _| c.swap_names("ranks.csv", 2, 3)),
    ("a model renamed", By("ranks.csv"), |c, _| c.field("ranks.csv", 4, "model", word("7"))),
    ("another rank marked", By("ranks.csv"), |c, _| c.field("ranks.csv", 1, "chosen", word("yes"))),
    ("a rank behind by less", By("ranks.csv"), |c, _| c.field("ranks.csv", 1, "behind_best", times(0.5))),
    ("a neighbour left out", By("ranks.csv"), |c, _| {
        c.csv("ranks.csv", |rows| {
            rows.remove(1);
        })
    }),
    ("all scores a little better, told everywhere", Named("held-out scores of the ranks and priors"), |c, _| better(c, 0.02)),
    ("all scores a little better, and a deep look", Deep("held-out score of rank 3, fitted again"), |c, _| better(c, 0.02)),
];

/// The path of lambda.
pub const PATH: &[Lie] = &[
    ("a lower objective on the path", By("path.csv"), |c, _| c.field("path.csv", 1, "objective", times(0.9))),
    ("a lower objective on the path, with its parts", By("path.csv"), |c, _| {
        ["objective", "fidelity", "regularizer"].iter().for_each(|column| c.field("path.csv", 1, column, times(0.4)));
    }),
    ("a gap of the path that cannot be", By("path.csv"), |c, _| c.field("path.csv", 1, "certified_gap", word("-9"))),
    ("another lambda on the path", By("path.csv"), |c, _| c.field("path.csv", 1, "lambda", times(1.1))),
    ("another ratio on the path", By("path.csv"), |c, _| c.field("path.csv", 1, "lambda_ratio", times(1.1))),
    ("no point of the path chosen", By("choice"), |c, _| c.field("path.csv", 1, "chosen", word(""))),
    ("another rank on the path", By("path.csv"), |c, _| c.field("path.csv", 1, "rank", word("2"))),
    ("a word on the path that is none", By("path.csv"), |c, _| c.field("path.csv", 1, "status", word("perfect"))),
    ("a score of the path", By("path.csv"), |c, _| c.field("path.csv", 1, "refit_held_out", times(0.9))),
    ("names exchanged in path.csv", By("path.csv"), |c, _| c.swap_names("path.csv", 4, 5)),
    ("fewer sweeps on the path", Named("path.csv: errors, status and sweeps of each point"), |c, _| {
        c.field("path.csv", 1, "sweeps", word("1"))
    }),
    ("lambda of another point", By("choice"), |c, _| c.grow("/choice/lambda", 1.5)),
];

/// The refit by likelihood.
pub const REFIT: &[Lie] = &[
    ("a random refit", By("refit log_likelihood"), |c, _| c.random_refit()),
    ("a random refit, its likelihood taken out", By("refit"), |c, _| {
        c.random_refit();
        c.set("/refit/log_likelihood", Value::Null);
    }),
    ("a random refit, its likelihood told", By("refit is at rest"), |c, place| {
        c.random_refit();
        c.make_consistent(place, "refit log_likelihood", "/refit/log_likelihood");
    }),
    ("a refit that is the penalised solution, told as such", By("refit is at rest"), |c, place| {
        let kept = read_npz(&c.0.join("factors.npz")).unwrap();
        c.npz("refit.npz", |arrays| *arrays = kept.into_iter().filter(|a| a.name != "xi").collect());
        c.make_consistent(place, "refit log_likelihood", "/refit/log_likelihood");
    }),
    ("no record of the refit", By("refit"), |c, _| c.set("/refit", Value::Null)),
    ("another prior of the refit", By("refit"), |c, _| c.set("/refit/prior", json!(0.01))),
    ("another rank of the refit", By("refit"), |c, _| c.set("/refit/rank", json!(4))),
    ("a better penalised likelihood", By("refit penalised"), |c, _| c.grow("/refit/penalised", 0.9)),
    ("shares of the prior that are none", By("refit prior_shares"), |c, _| c.set("/refit/prior_shares", json!([1.0]))),
    ("other shares of the prior", By("refit penalised"), |c, _| {
        c.json("summary.json", |s| s["refit"]["prior_shares"].as_array_mut().unwrap().rotate_left(1));
    }),
    ("no shares of the prior and a penalised likelihood beyond its range", By("refit penalised"), |c, _| {
        c.set("/refit/prior_shares", json!([]));
        c.grow("/refit/penalised", 0.9);
    }),
    ("another kind of refit", By("refit"), |c, _| c.set("/refit/kind", json!("least-squares"))),
    ("fewer passes of the refit", Named("refit sweeps, passes, converged, tried"), |c, _| c.set("/refit/passes", json!(1))),
];

/// The bootstrap.
pub const BOOTSTRAP: &[Lie] = &[
    ("more draws", By("uncertainty"), |c, _| c.set("/uncertainty/draws", json!(1000))),
    ("more draws in settings and command", By("uncertainty"), |c, _| {
        c.set("/uncertainty/draws", json!(7));
        c.set("/settings/fit/bootstrap", json!(7));
        c.json("summary.json", |s| s["command"] = s["command"].as_str().unwrap().replace("--bootstrap 6", "--bootstrap 7").into());
    }),
    ("fewer states undecided", By("uncertainty"), |c, _| c.set("/uncertainty/undecided_states", json!(0))),
    ("another confidence", By("uncertainty"), |c, _| c.set("/uncertainty/confidence", json!(0.4))),
    ("another membership in uncertainty.csv", By("uncertainty"), |c, _| c.field("uncertainty.csv", 3, "membership_1", times(0.9))),
    ("another zone in uncertainty.csv", By("uncertainty"), |c, _| c.field("uncertainty.csv", 1, "metastate", other)),
    ("a state made undecided", By("uncertainty"), |c, _| c.field("uncertainty.csv", 1, "undecided", word("yes"))),
    ("names of the ends exchanged", By("uncertainty"), |c, _| c.swap_names("uncertainty.csv", 5, 6)),
    ("stability beyond one", By("uncertainty"), |c, _| c.set("/uncertainty/stability", json!([1.5, 1.0, 1.0]))),
    ("narrower timescales", By("uncertainty"), |c, _| c.set("/uncertainty/timescale_intervals", json!([[0.4, 0.4], [0.34, 0.34]]))),
    ("a narrower interval", Named("uncertainty: intervals, agreement, stability"), |c, _| {
        c.field("uncertainty.csv", 1, "lower_1", times(1.01));
    }),
    ("no record of the bootstrap", By("uncertainty"), |c, _| c.set("/uncertainty", Value::Null)),
];

/// What the page and the tables make of it.
pub const PAGE: &[Lie] = &[
    ("another score on the page", By("page.json"), |c, _| c.json("page.json", |page| page["path"]["points"][0]["score"] = json!(-1.0))),
    ("another sentence on the page", By("page.json"), |c, _| c.json("page.json", |page| page["path"]["sentence"] = json!("9 meta-states"))),
    ("one state in another zone", By("zones"), |c, _| c.field("states.csv", 1, "zone", other)),
    ("one state in another meta-state", By("states.csv"), |c, _| c.field("states.csv", 1, "metastate", other)),
];

trait Swap {
    fn swap_with(&mut self, mark: &str, column: usize, from: usize, to: usize);
}

impl Swap for Rows {
    /// Moves a mark from one row to another.
    fn swap_with(&mut self, mark: &str, column: usize, from: usize, to: usize) {
        self[from][column] = String::new();
        self[to][column] = mark.to_owned();
    }
}

/// A baseline made worse, in the table with all that follows from it, and in the record.
fn worse(c: &Copy, model: &str, row: usize) {
    c.field("ranks.csv", row, "held_out", |x| (x.parse::<f64>().unwrap() - 0.01).to_string());
    c.field("ranks.csv", row, "behind_best", |x| (x.parse::<f64>().unwrap() + 0.01).to_string());
    let pointer = if model == "empirical" { "/choice/empirical/held_out/log_likelihood" } else { "/choice/independent/log_likelihood" };
    c.json("summary.json", |s| {
        let found = s.pointer_mut(pointer).unwrap();
        *found = (found.as_f64().unwrap() - 0.01).into();
    });
}

/// Every rank's score made better by so much, in every place that tells it.
fn better(c: &Copy, by: f64) {
    let more = |x: f64| x + by;
    let raise = |text: &str| more(text.parse().unwrap()).to_string();
    (1..=3).for_each(|row| c.field("ranks.csv", row, "held_out", raise));
    (4..=5).for_each(|row| c.field("ranks.csv", row, "behind_best", raise));
    let scores = parse_csv(&std::fs::read_to_string(c.0.join("ranks.csv")).unwrap()).unwrap();
    let of_rank = |rank: &str| scores.iter().find(|r| r[0] == rank).unwrap()[1].clone();
    let mut on_page = Vec::new();
    c.csv("path.csv", |rows| {
        for row in &mut rows[1..] {
            row[16] = of_rank(&row[2]);
            on_page.push(row[16].parse::<f64>().unwrap());
        }
    });
    let mut sentence = String::new();
    c.json("summary.json", |s| {
        let choice = &mut s["choice"];
        let old = choice["held_out"]["log_likelihood"].as_f64().unwrap();
        let key = if choice["held_out"]["uncorrected"].is_null() { "log_likelihood" } else { "uncorrected" };
        choice["held_out"]["log_likelihood"] = more(old).into();
        choice["held_out"][key] = of_rank("3").parse::<f64>().unwrap().into();
        for prior in choice["priors"].as_array_mut().unwrap() {
            let raised = more(prior["held_out"]["log_likelihood"].as_f64().unwrap());
            prior["held_out"]["log_likelihood"] = raised.into();
        }
        sentence = choice["sentence"].as_str().unwrap().replace(&format!("{old:.5}"), &format!("{:.5}", more(old)));
        choice["sentence"] = sentence.clone().into();
        let verdict = choice["verdict"].as_str().unwrap().replace(&format!("({old:.4} nats"), &format!("({:.4} nats", more(old)));
        choice["verdict"] = verdict.into();
        let hints = s["hints"].as_array_mut().unwrap();
        hints.iter_mut().filter(|h| h.as_str().unwrap().starts_with("3 meta-states:")).for_each(|h| *h = sentence.clone().into());
    });
    c.json("page.json", |page| {
        page["path"]["sentence"] = sentence.into();
        on_page.iter().enumerate().for_each(|(k, score)| page["path"]["points"][k]["score"] = (*score).into());
    });
}
