//! Whether a lie comes out.

use std::path::Path;

use serde_json::Value;

use crate::common::{Place, text};
use crate::tools::Copy;

pub fn verify(place: &Place, folder: &Path, deep: bool) -> Value {
    let mut arguments = vec!["verify", folder.to_str().unwrap(), "--json"];
    arguments.extend(deep.then_some("--deep"));
    let output = place.run(&arguments);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert_eq!(output.status.code(), Some(if found["agrees"] == true { 0 } else { 1 }));
    found
}

/// The lines with this verdict.
pub fn names(found: &Value, verdict: &str) -> Vec<String> {
    let lines = found["checks"].as_array().unwrap().iter().filter(|c| c["verdict"] == verdict);
    lines.map(|c| c["name"].as_str().unwrap().to_owned()).collect()
}

/// How a lie comes out.
#[derive(Clone, Copy)]
pub enum Found {
    /// This check fails.
    By(&'static str),
    /// This check fails, with `--deep` only.
    Deep(&'static str),
    /// Accepted, and this line says that it is not computed again.
    Named(&'static str),
}
use Found::{By, Deep, Named};

pub type Lie = (&'static str, Found, fn(&Copy, &Place));

pub fn copy(from: &Path, to: &Path) {
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
pub fn all(place: &Place, base: &str, lies: &[Lie]) {
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
