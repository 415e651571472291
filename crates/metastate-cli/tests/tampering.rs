//! Results that were changed afterwards. Whoever changes them also edits the hashes in `summary.json` and makes the page anew, so no hash gives them away:
//! each lie must be caught by the check that it is about, or be named by `verify` as not computed again. Each list reads: what is
//! changed, which check must fail, how it is done.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use common::{Place, text};
use metastate_report::npz::{Array, npz_bytes, read_npz};
use metastate_report::{csv_field, hash, parse_csv};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

/// A copy of an honest result that somebody is at work on.
struct Copy(PathBuf);

type Rows = Vec<Vec<String>>;

impl Copy {
    fn json(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.0.join(file);
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    }

    /// One field of `summary.json`, by its path; null takes it out.
    fn set(&self, pointer: &str, to: Value) {
        self.json("summary.json", |summary| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = summary.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            if to.is_null() {
                parent.remove(key)
            } else {
                parent.insert(key.to_owned(), to)
            };
        });
    }

    /// A number of `summary.json`, a little larger.
    fn grow(&self, pointer: &str, factor: f64) {
        self.json("summary.json", |summary| {
            let found = summary.pointer_mut(pointer).unwrap();
            *found = (found.as_f64().unwrap() * factor).into();
        });
    }

    fn csv(&self, file: &str, change: impl FnOnce(&mut Rows)) {
        let path = self.0.join(file);
        let mut rows = parse_csv(&text(&std::fs::read(&path).unwrap())).unwrap();
        change(&mut rows);
        let line = |row: &Vec<String>| row.iter().map(|f| csv_field(f)).collect::<Vec<_>>().join(",") + "\n";
        std::fs::write(path, rows.iter().map(line).collect::<String>()).unwrap();
    }

    /// A field of a table by its row (from 1) and the name of its column.
    fn field(&self, file: &str, row: usize, column: &str, to: impl Fn(&str) -> String) {
        self.csv(file, |rows| {
            let at = rows[0].iter().position(|name| name == column).unwrap();
            rows[row][at] = to(&rows[row][at]);
        });
    }

    /// Two names of columns exchanged.
    fn swap_names(&self, file: &str, a: usize, b: usize) {
        self.csv(file, |rows| rows[0].swap(a, b));
    }

    /// Every state's zone.
    fn zones(&self, to: impl Fn(&str) -> String) {
        self.csv("states.csv", |rows| rows[1..].iter_mut().for_each(|row| row[3] = to(&row[3])));
    }

    fn npz(&self, file: &str, change: impl FnOnce(&mut Vec<Array>)) {
        let path = self.0.join(file);
        let mut arrays = read_npz(&path).unwrap();
        change(&mut arrays);
        std::fs::write(path, npz_bytes(&arrays).unwrap()).unwrap();
    }

    /// Factors that are stochastic and else by chance.
    fn random_refit(&self) {
        self.npz("refit.npz", |arrays| {
            for array in arrays {
                let (rows, cols) = (array.shape[0], array.shape[1]);
                let value = |i: usize, k: usize| 0.05 + ((i * 7919 + k * 104_729 + i * k * 31) % 97) as f64;
                let sum = |i: usize, k: usize| match array.name.as_str() {
                    "U" => (0..cols).map(|k| value(i, k)).sum::<f64>(),
                    _ => (0..rows).map(|i| value(i, k)).sum::<f64>(),
                };
                array.data = (0..rows * cols).map(|at| value(at / cols, at % cols) / sum(at / cols, at % cols)).collect();
            }
        });
    }

    /// What `verify` finds for a number of `summary.json`, written there: the lie is consistent.
    fn make_consistent(&self, place: &Place, line: &str, pointer: &str) {
        self.rehash();
        let found = verify(place, &self.0, false);
        let told =
            found["checks"].as_array().unwrap().iter().find(|c| c["name"] == line).unwrap()["recomputed"].as_str().unwrap().to_owned();
        self.set(pointer, json!(told.parse::<f64>().unwrap()));
    }

    fn parquet(&self, file: &str, change: impl FnOnce(RecordBatch) -> RecordBatch) {
        let path = self.0.join(file);
        let builder = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        let texts = builder.metadata().file_metadata().key_value_metadata().cloned();
        let batch = change(builder.build().unwrap().next().unwrap().unwrap());
        let kept = texts.map(|all| all.into_iter().filter(|t| t.key == "geo").collect());
        let properties = parquet::file::properties::WriterProperties::builder().set_key_value_metadata(kept).build();
        let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    /// A column of numbers, its first value changed; or under another name.
    fn parquet_column(&self, file: &str, name: &str, factor: f64, new_name: &str) {
        self.parquet(file, |batch| {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns()).map(|(field, array)| {
                if field.name() != name {
                    return (field.name().clone(), Arc::clone(array));
                }
                let mut values = array.as_any().downcast_ref::<Float64Array>().unwrap().values().to_vec();
                values[0] *= factor;
                (new_name.to_owned(), Arc::new(Float64Array::from(values)) as ArrayRef)
            });
            RecordBatch::try_from_iter(columns.collect::<Vec<_>>()).unwrap()
        });
    }

    /// The first value of a column of whole numbers.
    fn parquet_number(&self, file: &str, name: &str, to: u32) {
        self.parquet(file, |batch| {
            let at = batch.schema().index_of(name).unwrap();
            let mut values = batch.column(at).as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec();
            values[0] = to;
            let mut columns = batch.columns().to_vec();
            columns[at] = Arc::new(UInt32Array::from(values));
            RecordBatch::try_new(batch.schema(), columns).unwrap()
        });
    }

    /// The hashes of all files that the summary lists, as they are now.
    fn rehash(&self) {
        self.json("summary.json", |summary| {
            for (name, sha256) in summary["files"].as_object_mut().into_iter().flatten() {
                if let Ok((_, found)) = hash::of_file(&self.0.join(name)) {
                    *sha256 = found.into();
                }
            }
        });
    }
}

fn verify(place: &Place, folder: &Path, deep: bool) -> Value {
    let mut arguments = vec!["verify", folder.to_str().unwrap(), "--json"];
    arguments.extend(deep.then_some("--deep"));
    let output = place.run(&arguments);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(output.status.code(), Some(if found["agrees"] == true { 0 } else { 1 }));
    found
}

/// The lines with this verdict.
fn names(found: &Value, verdict: &str) -> Vec<String> {
    let lines = found["checks"].as_array().unwrap().iter().filter(|c| c["verdict"] == verdict);
    lines.map(|c| c["name"].as_str().unwrap().to_owned()).collect()
}

/// How a lie comes out.
enum Found {
    /// This check fails.
    By(&'static str),
    /// This check fails, with `--deep` only.
    Deep(&'static str),
    /// Accepted, and this line says that it is not computed again.
    Named(&'static str),
}
use Found::{By, Deep, Named};

type Lie = (&'static str, Found, fn(&Copy, &Place));

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The honest result passes; each lie is told on a fresh copy of it.
fn all(place: &Place, base: &str, lies: &[Lie]) {
    for deep in [false, true] {
        let found = verify(place, &place.path(base), deep);
        assert_eq!(names(&found, "NO"), Vec::<String>::new(), "{base}, untouched: {found:#}");
    }
    let mut missed = Vec::new();
    for (k, (name, expected, change)) in lies.iter().enumerate() {
        let folder = Copy(place.path(&format!("{base}-{k}")));
        copy(&place.path(base), &folder.0);
        change(&folder, place);
        folder.rehash();
        if !name.starts_with("report.html") && !name.starts_with("a plot") {
            // A summary that cannot be shown any more keeps the page that it had.
            place.run(&["report", folder.0.to_str().unwrap()]);
            folder.rehash();
        }
        let found = verify(place, &folder.0, matches!(expected, Deep(_)));
        let right = match expected {
            By(line) | Deep(line) => names(&found, "NO").iter().any(|n| n == line),
            Named(line) => {
                found["agrees"] == true && [names(&found, "hash only"), names(&found, "not checked")].concat().iter().any(|n| n == line)
            }
        };
        if !right {
            missed.push(format!("{base}: {name}: fails {:?}", names(&found, "NO")));
        }
        std::fs::remove_dir_all(&folder.0).unwrap();
    }
    assert!(
        missed.is_empty(),
        "{} of {} lies on {base} are not caught as they should be:\n{}",
        missed.len(),
        lies.len(),
        missed.join("\n")
    );
}

fn planted() -> Place {
    let place = Place::new();
    place.expect(0, &["simulate", "planted", "--states", "40", "--rank", "3", "--steps", "60000", "--out", "chain", "--seed", "5"]);
    place
}

fn times(factor: f64) -> impl Fn(&str) -> String {
    move |field| (field.parse::<f64>().unwrap() * factor).to_string()
}

/// Another number of a zone or a meta-state.
fn other(number: &str) -> String {
    if number == "1" { "2".to_owned() } else { "1".to_owned() }
}

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

fn word(to: &'static str) -> impl Fn(&str) -> String {
    move |_| to.to_owned()
}

#[test]
fn lies_about_a_fit_at_a_given_lambda() {
    let place = planted();
    place.expect(0, &["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--gap", "0.05", "--out", "given"]);
    let lies: &[Lie] = &[
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
        ("no list of files", By("files"), |c, _| c.set("/files", json!({}))),
        ("a file taken off the list", By("files"), |c, _| {
            c.json("summary.json", |s| drop(s["files"].as_object_mut().unwrap().remove("latent.csv")))
        }),
        ("a file of one's own", Named("files that no result has"), |c, _| std::fs::write(c.0.join("proof.txt"), "it is optimal").unwrap()),
        ("a file of one's own, listed", Named("further files"), |c, _| {
            std::fs::write(c.0.join("proof.txt"), "it is optimal").unwrap();
            c.json("summary.json", |s| s["files"]["proof.txt"] = json!(""));
        }),
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
        ("a further field inside an input", By("summary.json"), |c, _| {
            c.json("summary.json", |s| s["inputs"][0]["licence"] = json!("free"))
        }),
        ("no number of states", By("summary.json"), |c, _| c.set("/states", Value::Null)),
        ("fewer seconds", Named("seconds, iterations, rounds, directory"), |c, _| c.set("/seconds/total", json!(0.001))),
        ("another version, whose page is not known", Named("report.html"), |c, _| c.set("/version", json!("0.0.1"))),
        ("the solver's way made smoother", Named("page.json: the solver's way, zones along the path, a rival's zones"), |c, _| {
            c.json("page.json", |page| page["trace"] = json!([]));
        }),
    ];
    all(&place, "given", lies);
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
    let lies: &[Lie] = &[
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
            c.json("summary.json", |s| {
                s["choice"]["sentence"] = s["choice"]["sentence"].as_str().unwrap().replace("3 meta", "5 meta").into()
            });
        }),
        ("a sentence that is less sure", By("choice"), |c, _| {
            c.json("summary.json", |s| {
                s["choice"]["sentence"] = s["choice"]["sentence"].as_str().unwrap().replace("clear:", "not clear:").into()
            });
        }),
        ("a sentence that is not among the hints", By("choice"), |c, _| c.set("/hints", json!([]))),
        ("no record of the choice", By("choice"), |c, _| c.set("/choice", Value::Null)),
        ("empirical P worse than it is", By("empirical P on the folds"), |c, _| worse(c, "empirical", 4)),
        ("empirical P with other pseudo-counts", By("empirical P: pseudo-counts"), |c, _| {
            c.set("/choice/empirical/pseudo_counts", json!(1.0))
        }),
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
        ("another kind of refit", By("refit"), |c, _| c.set("/refit/kind", json!("least-squares"))),
        ("fewer passes of the refit", Named("refit sweeps, passes, converged, tried"), |c, _| c.set("/refit/passes", json!(1))),
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
        ("another score on the page", By("page.json"), |c, _| c.json("page.json", |page| page["path"]["points"][0]["score"] = json!(-1.0))),
        ("another sentence on the page", By("page.json"), |c, _| {
            c.json("page.json", |page| page["path"]["sentence"] = json!("9 meta-states"))
        }),
        ("one state in another zone", By("zones"), |c, _| c.field("states.csv", 1, "zone", other)),
        ("one state in another meta-state", By("states.csv"), |c, _| c.field("states.csv", 1, "metastate", other)),
    ];
    all(&place, "free", lies);
}

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

#[test]
fn lies_about_zones_on_a_map() {
    let place = Place::new();
    place.expect(0, &["simulate", "city", "--trips", "20000", "--out", "trips.parquet", "--seed", "3"]);
    let columns = ["--from-lon", "from_lon", "--from-lat", "from_lat", "--to-lon", "to_lon", "--to-lat", "to_lat", "--cell", "0.01"];
    let more = ["--min-share", "0.003", "--lambda-ratio", "0.4", "--clusters", "3", "--gap", "0.05", "--out", "city"];
    place.expect(0, &[&["fit", "trips.parquet"][..], &columns, &more].concat());
    let lies: &[Lie] = &[
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
        ("zones by the label's last digit", By("zones"), |c, _| {
            c.csv("states.csv", |rows| rows.iter_mut().skip(1).enumerate().for_each(|(k, row)| row[3] = (k % 3 + 1).to_string()));
        }),
        ("a zone that does not exist", By("zones"), |c, _| c.field("states.csv", 1, "zone", word("9"))),
        ("one state in another meta-state", By("states.csv"), |c, _| c.field("states.csv", 1, "metastate", other)),
        ("zones told as meta-states", By("states.csv"), |c, _| {
            c.csv("states.csv", |rows| rows[1..].iter_mut().for_each(|row| row[2] = row[3].clone()))
        }),
        ("another place of a state", By("states.csv"), |c, _| c.field("states.csv", 1, "lon", times(1.001))),
        ("longitude and latitude named each other", By("states.csv"), |c, _| {
            c.csv("states.csv", |rows| {
                let n = rows[0].len();
                rows[0].swap(n - 2, n - 1);
            });
        }),
        ("another latitude in states.parquet", By("states.parquet"), |c, _| c.parquet_column("states.parquet", "lat", 1.1, "lat")),
        ("less outflow in zones.csv", By("zones.csv"), |c, _| c.field("zones.csv", 2, "outflow", times(0.5))),
        ("a larger zone in zones.csv", By("zones.csv"), |c, _| c.field("zones.csv", 2, "size", word("99"))),
        ("another share in zones.csv", By("zones.csv"), |c, _| c.field("zones.csv", 2, "share_1", times(1.1))),
        ("another property in zones.geojson", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| m["features"][0]["properties"]["inflow"] = json!(0.5))
        }),
        ("another meta-state of a zone in zones.geojson", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| m["features"][0]["properties"]["metastate"] = json!(99))
        }),
        ("another meta-state of a zone in zones.parquet", By("zones.parquet"), |c, _| c.parquet_number("zones.parquet", "metastate", 99)),
        ("a further property in zones.geojson", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| m["features"][0]["properties"]["title"] = json!("Centre"))
        }),
        ("a zone less in zones.geojson", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| drop(m["features"].as_array_mut().unwrap().pop()))
        }),
        ("shapes of two zones exchanged", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| {
                let (a, b) = (m["features"][0]["geometry"].clone(), m["features"][1]["geometry"].clone());
                (m["features"][0]["geometry"], m["features"][1]["geometry"]) = (b, a);
            });
        }),
        ("a corner moved", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| {
                let corner = &mut m["features"][0]["geometry"]["coordinates"][0][0][1][0];
                *corner = (corner.as_f64().unwrap() + 0.01).into();
            });
        }),
        ("a part of a zone left out", By("zones.geojson"), |c, _| {
            c.json("zones.geojson", |m| drop(m["features"][0]["geometry"]["coordinates"].as_array_mut().unwrap().pop()));
        }),
        ("another value in zones.parquet", By("zones.parquet"), |c, _| c.parquet_column("zones.parquet", "mass", 1.1, "mass")),
        ("another name in zones.parquet", By("zones.parquet"), |c, _| c.parquet_column("zones.parquet", "mass", 1.0, "weight")),
        ("shapes turned round in zones.parquet", By("zones.parquet"), |c, _| {
            c.parquet("zones.parquet", |batch| {
                let shapes = batch.column(8).as_any().downcast_ref::<arrow::array::BinaryArray>().unwrap();
                let turned: Vec<Vec<u8>> = (0..batch.num_rows()).rev().map(|k| shapes.value(k).to_vec()).collect();
                let turned: ArrayRef = Arc::new(arrow::array::BinaryArray::from_iter_values(&turned));
                let mut columns = batch.columns().to_vec();
                columns[8] = turned;
                RecordBatch::try_new(batch.schema(), columns).unwrap()
            });
        }),
        ("zones.parquet without its description", By("zones.parquet"), |c, _| {
            let path = c.0.join("zones.parquet");
            let batch = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap())
                .unwrap()
                .build()
                .unwrap()
                .next()
                .unwrap()
                .unwrap();
            let schema = Arc::new(arrow::datatypes::Schema::new(batch.schema().fields().clone()));
            let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), schema, None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }),
        ("larger cells on the page", By("page.json"), |c, _| c.json("page.json", |page| page["cell"] = json!(0.02))),
        ("a plot of the map replaced", By("plots"), |c, _| std::fs::write(c.0.join("plots/map.svg"), "<svg/>").unwrap()),
        ("another number of zones in the settings", By("settings and command"), |c, _| c.set("/settings/fit/clusters", json!("4"))),
    ];
    all(&place, "city", lies);
}

#[test]
fn lies_about_a_least_squares_refit() {
    let place = planted();
    let fit = ["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--gap", "0.05", "--refit", "least-squares"];
    place.expect(0, &[&fit[..], &["--truth", "chain/U.npy,chain/V.npy", "--out", "squares"]].concat());
    let lies: &[Lie] = &[
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
    all(&place, "squares", lies);
}
