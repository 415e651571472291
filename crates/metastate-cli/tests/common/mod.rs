//! What the tests of the command share.
#![allow(dead_code)] // not every test file uses everything

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder for one test, removed at its end.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metastate"));
        command.current_dir(self.0.path()).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs and expects this exit code; hands back standard output and standard error.
    pub fn expect(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        (out, err)
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Counts with planted groups, by a rule without chance: `(from, to, count)`.
pub fn planted_counts(states: usize, groups: usize) -> Vec<(usize, usize, u64)> {
    let mut counts = Vec::new();
    for i in 0..states {
        for j in 0..states {
            let near = if i % groups == j % groups { 20 } else { 1 };
            let noise = ((i * 7919 + j * 104_729 + i * j * 31) % 11) as u64;
            if (i + 2 * j) % 3 != 0 || near > 1 {
                counts.push((i, j, near + noise / 3));
            }
        }
    }
    counts
}

pub fn triplets_csv(counts: &[(usize, usize, u64)]) -> String {
    let mut out = String::from("from,to,count\n");
    counts.iter().for_each(|(i, j, n)| writeln!(out, "{i},{j},{n}").unwrap());
    out
}

pub fn mtx(counts: &[(usize, usize, u64)], states: usize) -> String {
    let mut out = format!("%%MatrixMarket matrix coordinate integer general\n{states} {states} {}\n", counts.len());
    counts.iter().for_each(|(i, j, n)| writeln!(out, "{} {} {n}", i + 1, j + 1).unwrap());
    out
}

pub fn npy(counts: &[(usize, usize, u64)], states: usize) -> Vec<u8> {
    let mut dense = vec![0.0; states * states];
    counts.iter().for_each(|&(i, j, n)| dense[i * states + j] = n as f64);
    metastate_report::npz::npy_bytes(&[states, states], &dense)
}

/// Same bytes in both folders for the files whose bytes depend on the numbers alone.
pub fn assert_same_answer(a: &Path, b: &Path) {
    for file in ["factors.npz", "states.csv", "certificate.npz"] {
        let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
        assert!(read(a) == read(b), "{file} differs between {} and {}", a.display(), b.display());
    }
}
