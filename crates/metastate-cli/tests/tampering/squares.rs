//! Lies about a refit by least squares.

use metastate_report::npz::read_npz;
use serde_json::{Value, json};

use crate::judge::Found::By;
use crate::judge::Lie;

/// The refit by least squares, and the truth beside it.
pub const REFIT: &[Lie] = &[
    ("a random refit", By("refit fidelity"), |c, _| c.random_refit()),
    ("a random refit, its fidelity taken out", By("refit"), |c, _| {
        c.random_refit();
        c.set("/refit/fidelity", Value::Null);
    }),
    ("a random refit, its fidelity told", By("refit is no worse than what it started from"), |c, place| {
        c.random_refit();
        c.make_consistent(place, "refit fidelity", "/refit/fidelity");
    }),
    ("the penalised solution for a refit, told as such", By("refit is at rest"), |c, place| {
        let kept = read_npz(&c.0.join("factors.npz")).unwrap();
        c.npz("refit.npz", |arrays| *arrays = kept.into_iter().filter(|a| a.name != "xi").collect());
        c.make_consistent(place, "refit fidelity", "/refit/fidelity");
    }),
    ("a refit that is not stochastic", By("refit.npz"), |c, _| c.npz("refit.npz", |arrays| arrays[0].data[0] += 0.1)),
    ("a lower fidelity of the refit", By("refit fidelity"), |c, _| c.grow("/refit/fidelity", 0.9)),
    ("another kind of refit", By("refit"), |c, _| c.set("/refit/kind", json!("likelihood"))),
    ("another kind of refit in record, settings and command", By("refit"), |c, _| {
        c.set("/refit/kind", json!("likelihood"));
        c.set("/settings/fit/refit", json!("likelihood"));
        c.json("summary.json", |s| s["command"] = s["command"].as_str().unwrap().replace("least-squares", "likelihood").into());
    }),
    ("another kind of refit, with a whole record, in settings and command", By("refit log_likelihood"), |c, _| {
        c.json("summary.json", |s| {
            s["refit"] = json!({
                "kind": "likelihood", "rank": s["refit"]["rank"], "prior": 1.0, "start": "spectral", "tried": [], "log_likelihood": -1.0,
                "penalised": -1.0, "passes": 10, "converged": true, "rel_re": s["refit"]["rel_re"]
            });
        });
        c.set("/settings/fit/refit", json!("likelihood"));
        c.json("summary.json", |s| s["command"] = s["command"].as_str().unwrap().replace("least-squares", "likelihood").into());
    }),
    ("a better recovery by the refit", By("refit rel_re"), |c, _| c.grow("/refit/rel_re", 0.5)),
    ("no recovery by the refit", By("refit rel_re"), |c, _| c.set("/refit/rel_re", Value::Null)),
    ("a better recovery", By("rel_re"), |c, _| c.grow("/errors/rel_re", 0.5)),
    ("no recovery", By("rel_re and rel_se"), |c, _| c.set("/errors/rel_re", Value::Null)),
    ("the truth was no input", By("inputs"), |c, _| {
        c.json("summary.json", |s| s["inputs"].as_array_mut().unwrap().retain(|f| f["role"] != "truth"));
    }),
    ("no refit at all", By("refit"), |c, _| {
        std::fs::remove_file(c.0.join("refit.npz")).unwrap();
        c.json("summary.json", |s| drop(s["files"].as_object_mut().unwrap().remove("refit.npz")));
    }),
    ("a hash that is not the file's, of a name that leads out of the folder", By("files"), |c, _| {
        c.json("summary.json", |s| s["files"]["../chain/counts.csv"] = json!("0"));
    }),
];
