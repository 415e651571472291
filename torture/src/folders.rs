//! Result folders of strangers: an honest one is changed, its hashes are made to match, and every command that reads results is given it.

use std::path::{Path, PathBuf};

use crate::chance::Chance;
use crate::doors;
use crate::forge::{Change, copy, rehash};
use crate::watch::Outcome;

/// Two honest results: one with cells, a choice and a refit, one at a given lambda.
pub struct Bench {
    place: tempfile::TempDir,
    bases: [PathBuf; 2],
}

const CELLS: [&str; 10] = ["--from-lon", "a", "--from-lat", "b", "--to-lon", "c", "--to-lat", "d", "--cell", "0.1"];

impl Bench {
    /// Fits both; an error says which command failed.
    pub fn new() -> Result<Bench, String> {
        let place = tempfile::tempdir().map_err(|e| e.to_string())?;
        let path = |name: &str| place.path().join(name);
        let (mut trips, mut counts) = (String::from("a,b,c,d\n"), String::from("from,to,count\n"));
        for (k, (i, j)) in (0..9usize).flat_map(|i| (0..9usize).map(move |j| (i, j))).enumerate() {
            let near = if i % 3 == j % 3 { 12 } else { 1 + k % 2 };
            counts += &format!("{i},{j},{near}\n");
            (0..near).for_each(|_| trips += &format!("{:.2},0.05,{:.2},0.05\n", 0.1 * i as f64 + 0.05, 0.1 * j as f64 + 0.05));
        }
        std::fs::write(path("trips.csv"), trips).and_then(|()| std::fs::write(path("counts.csv"), counts)).map_err(|e| e.to_string())?;
        std::fs::create_dir(path("elsewhere")).map_err(|e| e.to_string())?;
        let bench = Bench { bases: [path("cells"), path("given")], place };
        let (trips, counts) = (bench.text("trips.csv"), bench.text("counts.csv"));
        let (cells, given) = (bench.text("cells"), bench.text("given"));
        for words in [
            [&["fit", &trips, "--out", &cells, "--folds", "3", "--max-rank", "4"][..], &CELLS].concat(),
            vec!["fit", &counts, "--lambda-ratio", "0.3", "--refit", "least-squares", "--clusters", "2", "--out", &given],
        ] {
            let end = doors::run(&words);
            if end.code != 0 {
                return Err(format!("{words:?}: {}", end.told));
            }
        }
        Ok(bench)
    }

    fn text(&self, name: &str) -> String {
        self.place.path().join(name).display().to_string()
    }

    /// The changes of a case.
    pub fn changes(&self, seed: u64, case: u64) -> (usize, Vec<Change>) {
        let mut chance = Chance::new(seed, case);
        let base = chance.below(2);
        let count = if chance.once_in(3) { 2 } else { 1 };
        (base, (0..count).filter_map(|_| Change::any(&mut chance, &self.bases[base])).collect())
    }

    /// One case: a forged folder and all commands.
    pub fn case(&self, seed: u64, case: u64) -> Outcome {
        let (base, changes) = self.changes(seed, case);
        self.forged(base, &changes, !case.is_multiple_of(4))
    }

    /// A copy with these changes, and what the commands make of it.
    pub fn forged(&self, base: usize, changes: &[Change], matching: bool) -> Outcome {
        let folder = self.place.path().join("forged");
        let mut outcome = Outcome::default();
        if let Err(e) = copy(&self.bases[base], &folder) {
            outcome.wrong.push(format!("no copy: {e}"));
            return outcome;
        }
        for change in changes {
            let _ = change.apply(&folder);
        }
        if matching {
            rehash(&folder);
        }
        let mut codes = Vec::new();
        for words in self.commands(&folder, base) {
            let end = doors::run(&words.iter().map(String::as_str).collect::<Vec<_>>());
            if end.code > 2 {
                outcome.wrong.push(format!("{} ends with {} ({}) after {}", words[0], end.code, end.told, told(changes)));
            }
            codes.push(end.code);
        }
        outcome.wrong.extend(self.left(&folder).map(|what| format!("{what} after {}", told(changes))));
        outcome.kind = format!("verify {}", codes.first().copied().unwrap_or(101));
        if codes.iter().all(|c| *c != 0) {
            outcome.refused_file = Some(size(&folder));
        }
        let _ = std::fs::remove_dir_all(&folder);
        outcome
    }

    fn commands(&self, folder: &Path, base: usize) -> Vec<Vec<String>> {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let (place, out) = (folder.display().to_string(), self.text("assigned.csv"));
        let (counts, again, input) =
            (self.text("counts.csv"), self.text("again"), self.text(if base == 0 { "trips.csv" } else { "counts.csv" }));
        let mut init = words(&["fit", &input, "--lambda-ratio", "0.6", "--max-rank", "4", "--init", &place, "--out", &again]);
        if base == 0 {
            init.extend(words(&CELLS));
        }
        vec![
            words(&["verify", &place]),
            words(&["verify", &place, "--deep"]),
            words(&["report", &place]),
            words(&["forecast", &place, "--steps", "1,7"]),
            words(&["assign", &place, &counts, "--as", "counts", "--out", &out]),
            init,
        ]
    }

    /// What stands where nothing should: results of the commands are taken away, all else is a file too many.
    fn left(&self, folder: &Path) -> Option<String> {
        let _ = std::fs::remove_file(self.place.path().join("assigned.csv"));
        let _ = std::fs::remove_dir_all(self.place.path().join("again"));
        let known = ["trips.csv", "counts.csv", "cells", "given", "elsewhere"];
        let entries = std::fs::read_dir(self.place.path()).into_iter().flatten().flatten();
        let other =
            entries.map(|e| e.file_name().to_string_lossy().into_owned()).find(|n| !known.contains(&n.as_str()) && !folder.ends_with(n));
        let through = std::fs::read_dir(self.place.path().join("elsewhere")).into_iter().flatten().flatten().next();
        other.map(|name| format!("{name} is left")).or(through.map(|e| format!("{} was written outside", e.path().display())))
    }
}

fn told(changes: &[Change]) -> String {
    serde_json::to_string(changes).unwrap_or_default()
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|e| e.path().symlink_metadata().ok()).filter(std::fs::Metadata::is_file).map(|m| m.len()).sum()
}
