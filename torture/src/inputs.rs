//! Files of users, of every format that is read, damaged in every way that chance thinks of.

use std::path::{Path, PathBuf};

use crate::chance::Chance;
use crate::doors;
use crate::watch::Outcome;

/// The honest and the dishonest files that the tests of the readers keep.
pub struct Bench {
    place: tempfile::TempDir,
    seeds: Vec<(String, Vec<u8>)>,
}

/// Beside this package.
fn corpus() -> [PathBuf; 2] {
    ["good", "bad"].map(|kind| Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/metastate-ingest/tests").join(kind))
}

impl Bench {
    /// Reads the corpus.
    pub fn new() -> Result<Bench, String> {
        let mut seeds = Vec::new();
        for folder in corpus() {
            for entry in std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.len() < 100_000 {
                    seeds.push((entry.file_name().to_string_lossy().into_owned(), bytes));
                }
            }
        }
        seeds.sort();
        Ok(Bench { place: tempfile::tempdir().map_err(|e| e.to_string())?, seeds })
    }

    /// How many files there are to begin with.
    pub fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// The name and the bytes of a case; the first ones are the corpus itself.
    pub fn file(&self, seed: u64, case: u64) -> (String, Vec<u8>) {
        if let Some(seed) = self.seeds.get(case as usize) {
            return seed.clone();
        }
        let mut chance = Chance::new(seed, case);
        let (name, mut bytes) = chance.of(&self.seeds).clone();
        for _ in 0..1 + chance.below(3) {
            self.damage(&mut chance, &mut bytes);
        }
        (name, bytes)
    }

    fn damage(&self, chance: &mut Chance, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let at = chance.below(length);
        match chance.below(9) {
            0 => bytes.truncate(at),
            1 if length > 0 => bytes[at] ^= 1 << chance.below(8),
            2 => bytes.iter_mut().skip(at).take(1 + chance.below(8)).for_each(|b| *b = 0xff),
            3 => bytes.iter_mut().skip(at).take(1 + chance.below(8)).for_each(|b| *b = 0),
            4 => {
                let piece: Vec<u8> = bytes.iter().skip(at).take(chance.below(64)).copied().collect();
                let to = chance.below(length);
                bytes.splice(to..to, piece);
            }
            5 => {
                let other = &chance.of(&self.seeds).1;
                let from = Chance::new(chance.bits(), 0).below(other.len());
                let piece: Vec<u8> = other.iter().skip(from).take(chance.below(200)).copied().collect();
                bytes.splice(at..at, piece);
            }
            6 => {
                let text = *chance.of(&[
                    "999999999999999999999999999999",
                    "-1",
                    "NaN",
                    "1e999",
                    "\n",
                    ",",
                    "\"",
                    "\0",
                    "\u{feff}",
                    "{",
                    "(9223372036854775807, 2)",
                    "\t",
                ]);
                bytes.splice(at..at, text.bytes());
            }
            7 => drop(bytes.drain(at..(at + chance.below(50)).min(length))),
            _ => bytes.iter_mut().skip(at).take(1 + chance.below(20)).for_each(|b| *b = chance.bits() as u8),
        }
    }

    /// One case: counted, or fitted where it is a matrix.
    pub fn case(&self, seed: u64, case: u64) -> Outcome {
        let (name, bytes) = self.file(seed, case);
        let (path, out) = (self.place.path().join(&name), self.place.path().join("out.parquet"));
        let mut outcome = Outcome::default();
        if let Err(e) = std::fs::write(&path, &bytes) {
            outcome.wrong.push(e.to_string());
            return outcome;
        }
        let (input, target) = (path.display().to_string(), out.display().to_string());
        let kind = match () {
            () if name.starts_with("traj") => "trajectories",
            () if case.is_multiple_of(5) => "trips",
            () if case.is_multiple_of(7) => "matrix",
            () => "counts",
        };
        let mut words = match kind {
            "matrix" => {
                vec!["fit", &input, "--as", "matrix", "--lambda-ratio", "0.5", "--max-rank", "3", "--time-limit", "1", "--out", &target]
            }
            kind => vec!["count", &input, "--as", kind, "--out", &target],
        };
        if kind == "trips" {
            words.extend(["--from", "from", "--to", "to"]);
        }
        let end = doors::run(&words);
        if end.code > 2 {
            let kept = std::env::temp_dir().join(format!("metastate-torture-{case}-{name}"));
            let _ = std::fs::write(&kept, &bytes);
            outcome.wrong.push(format!("{} {name} ends with {} ({}); the file is {}", words[0], end.code, end.told, kept.display()));
        }
        outcome.kind = format!("exit {}", end.code);
        if end.code == 2 {
            outcome.refused_file = Some(bytes.len() as u64);
        }
        let _ = std::fs::remove_file(&path);
        let _ = if out.is_dir() { std::fs::remove_dir_all(&out) } else { std::fs::remove_file(&out) };
        if let Some(left) = std::fs::read_dir(self.place.path()).into_iter().flatten().flatten().next() {
            outcome.wrong.push(format!("{} is left", left.path().display()));
            let _ = std::fs::remove_file(left.path());
        }
        outcome
    }
}
