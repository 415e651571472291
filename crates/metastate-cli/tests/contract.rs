//! The contract of the result folder: real summaries against the schema, real folders against `docs/result-folder.md`, folders of an older layout.

mod common;

use std::collections::BTreeSet;

use common::{Place, planted_counts, text, triplets_csv};
use metastate_report::{parse_csv, summary_schema};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../docs/result-folder.md");

/// Where a value does not fit a JSON schema. Knows what the schema of `summary.json` uses, and refuses the rest.
struct Schema(Value);

impl Schema {
    /// The schemas that hold at once: the schema itself, and what it refers to.
    fn parts<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let mut parts = vec![schema];
        if let Some(name) = schema["$ref"].as_str() {
            parts.extend(self.parts(&self.0["$defs"][name.strip_prefix("#/$defs/").expect("a reference into $defs")]));
        }
        parts
    }

    fn faults(&self, value: &Value, schema: &Value, at: &str) -> Vec<String> {
        let parts = self.parts(schema);
        let mut faults: Vec<String> = parts.iter().flat_map(|part| self.own_faults(value, part, at)).collect();
        let named: Vec<&Value> = parts.iter().map(|part| &part["properties"]).filter(|p| p.is_object()).collect();
        if let (Some(fields), false) = (value.as_object(), named.is_empty()) {
            for (name, field) in fields {
                match named.iter().find_map(|p| p.get(name)) {
                    Some(schema) => faults.extend(self.faults(field, schema, &format!("{at}/{name}"))),
                    None => faults.push(format!("{at}/{name}: not in the schema")),
                }
            }
        }
        faults
    }

    fn own_faults(&self, value: &Value, schema: &Value, at: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let Some(schema) = schema.as_object() else { return faults };
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "type" => {
                    let allowed = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                    if !allowed.iter().any(|t| is_of_type(value, t.as_str().unwrap())) {
                        faults.push(format!("{at}: {value} is no {rule}"));
                    }
                }
                "const" if value != rule => faults.push(format!("{at}: {value} should be {rule}")),
                "enum" if !rule.as_array().unwrap().contains(value) => faults.push(format!("{at}: {value} is none of {rule}")),
                "minimum" if value.as_f64().is_some_and(|x| x < rule.as_f64().unwrap()) => faults.push(format!("{at}: below {rule}")),
                "required" => {
                    let missing = |name: &&Value| value.get(name.as_str().unwrap()).is_none();
                    faults.extend(rule.as_array().unwrap().iter().filter(missing).map(|name| format!("{at}: has no {name}")));
                }
                "items" => {
                    let each = value.as_array().into_iter().flatten().enumerate();
                    faults.extend(each.flat_map(|(k, item)| self.faults(item, rule, &format!("{at}/{k}"))));
                }
                "prefixItems" => {
                    let each = value.as_array().into_iter().flatten().zip(rule.as_array().unwrap()).enumerate();
                    faults.extend(each.flat_map(|(k, (item, rule))| self.faults(item, rule, &format!("{at}/{k}"))));
                }
                "additionalProperties" => {
                    let each = value.as_object().into_iter().flatten();
                    faults.extend(each.flat_map(|(name, field)| self.faults(field, rule, &format!("{at}/{name}"))));
                }
                "oneOf" | "anyOf" => {
                    let ways: Vec<Vec<String>> = rule.as_array().unwrap().iter().map(|way| self.faults(value, way, at)).collect();
                    if !ways.iter().any(Vec::is_empty) {
                        faults.extend(ways.into_iter().min_by_key(Vec::len).unwrap_or_default());
                    }
                }
                "const" | "enum" | "minimum" | "$ref" | "$defs" | "$schema" | "properties" | "title" | "description" | "format"
                | "default" | "minItems" | "maxItems" => {}
                other => panic!("{at}: this test does not know the keyword {other}"),
            }
        }
        faults
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("no type is called {other}"),
    }
}

fn summary(place: &Place, folder: &str) -> Value {
    serde_json::from_slice(&place.read(&format!("{folder}/summary.json"))).unwrap()
}

/// A city whose path is solved, with a bootstrap and zones of their own number: every file that there is.
fn with_all_extras() -> Place {
    let place = Place::new();
    place.expect(0, &["simulate", "city", "--trips", "20000", "--out", "trips.csv", "--seed", "3"]);
    let columns = ["--from-lon", "from_lon", "--from-lat", "from_lat", "--to-lon", "to_lon", "--to-lat", "to_lat", "--cell", "0.01"];
    let path = ["--min-share", "0.003", "--points", "4", "--floor", "0.2", "--folds", "2", "--max-rank", "4", "--clusters", "3"];
    let more = ["--refit", "likelihood", "--bootstrap", "4", "--out", "city"];
    place.expect(0, &[&["path", "trips.csv"][..], &columns, &path, &more].concat());
    place
}

#[test]
fn real_summaries_fit_the_schema_and_changed_ones_do_not() {
    let place = with_all_extras();
    place.expect(0, &["simulate", "planted", "--states", "30", "--rank", "3", "--steps", "20000", "--out", "chain", "--seed", "5"]);
    let fit = ["fit", "chain/counts.csv", "--lambda-ratio", "0.3", "--refit", "least-squares", "--truth", "chain/U.npy,chain/V.npy"];
    place.expect(0, &[&fit[..], &["--out", "squares"]].concat());
    let schema = Schema(summary_schema());
    for folder in ["city", "squares"] {
        assert_eq!(schema.faults(&summary(&place, folder), &schema.0, ""), Vec::<String>::new(), "{folder}");
    }
    for (pointer, to) in [
        ("/status", json!("optimal")),
        ("/bound_proof", json!("magic")),
        ("/states", json!("thirty")),
        ("/refit/kind", json!("guess")),
        ("/refit/sweeps", Value::Null),
        ("/errors/ge", json!([])),
        ("/inputs/0/bytes", json!(-1)),
    ] {
        let mut changed = summary(&place, "squares");
        *changed.pointer_mut(pointer).unwrap() = to;
        assert!(!schema.faults(&changed, &schema.0, "").is_empty(), "{pointer}");
    }
    let mut more = summary(&place, "squares");
    more["refit"]["proven"] = json!(true);
    assert_eq!(schema.faults(&more, &schema.0, ""), ["/refit/proven: not in the schema"]);
    let mut less = summary(&place, "city");
    less["choice"].as_object_mut().unwrap().remove("folds");
    assert!(!schema.faults(&less, &schema.0, "").is_empty());
}

/// `membership_3` stands as `membership_1..s`, `anchor_2` as `anchor_1..5`: by the name of its first.
fn first_of_its_kind(column: &str) -> String {
    match column.rsplit_once('_') {
        Some((name, number)) if number.parse::<usize>().is_ok() => format!("`{name}_1"),
        _ => format!("`{column}`"),
    }
}

/// All keys of a JSON document, at any depth, but those of maps whose keys are names of files, reasons and the like.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            found.insert(name.clone());
            if name != "files" {
                keys(field, found);
            }
        }),
        Value::Array(all) => all.iter().for_each(|x| keys(x, found)),
        _ => {}
    }
}

#[test]
fn every_file_column_array_and_field_stands_in_the_document() {
    let place = with_all_extras();
    let mut missing = Vec::new();
    let mut look_for = |what: String, mark: String| {
        if !DOCUMENT.contains(&mark) {
            missing.push(format!("{what}: {mark}"));
        }
    };
    let folder = place.path("city");
    let listed = |place: &std::path::Path| -> Vec<String> {
        std::fs::read_dir(place).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    };
    let files = listed(&folder);
    for expected in ["ranks.csv", "path.csv", "refit.npz", "uncertainty.csv", "zones.geojson", "zones.parquet", "page.json", "plots"] {
        assert!(files.iter().any(|f| f == expected), "{expected} is not in the folder, so nothing is shown about it");
    }
    for file in &files {
        look_for("file".to_owned(), format!("`{file}"));
        if file.ends_with(".csv") {
            let rows = parse_csv(&text(&place.read(&format!("city/{file}")))).unwrap();
            rows[0].iter().for_each(|column| look_for(file.clone(), first_of_its_kind(column)));
        }
        if file.ends_with(".npz") {
            let arrays = metastate_report::npz::read_npz(&folder.join(file)).unwrap();
            arrays.iter().for_each(|a| look_for(file.clone(), format!("`{}`", a.name)));
        }
    }
    listed(&folder.join("plots")).into_iter().for_each(|plot| look_for("plots".to_owned(), format!("`{plot}`")));
    let mut names = BTreeSet::new();
    let mut told = summary(&place, "city");
    // Options are described by `metastate fit --help`.
    told["settings"] = Value::Null;
    keys(&told, &mut names);
    let map: Value = serde_json::from_slice(&place.read("city/zones.geojson")).unwrap();
    keys(&map["features"][0]["properties"], &mut names);
    names.into_iter().for_each(|name| look_for("summary.json or zones.geojson".to_owned(), format!("`{name}`")));
    assert!(missing.is_empty(), "docs/result-folder.md does not tell of\n{}", missing.join("\n"));
}

#[test]
fn a_folder_of_the_first_layout_is_refused_with_the_command_that_makes_it_anew() {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(30, 3)));
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.4", "--out", "old"]);
    let mut old = summary(&place, "old");
    let command = old["command"].as_str().unwrap().to_owned();
    old["schema"] = json!("metastate-result-1");
    // As the first layout had it: nothing of the rest needs to be readable.
    old["status"] = json!("a word of another time");
    place.write("old/summary.json", old.to_string());
    for arguments in
        [&["verify", "old"][..], &["report", "old"], &["forecast", "old"], &["assign", "old", "counts.csv", "--out", "new.csv"]]
    {
        let output = place.run(arguments);
        let said = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {said}");
        assert!(said.contains("metastate-result-1") && said.contains("metastate-result-2"), "{arguments:?}: {said}");
        assert!(said.contains(&format!("fit again with this version: {command}")), "{arguments:?}: {said}");
        assert!(!said.contains("damaged"), "{arguments:?}: {said}");
    }
}
