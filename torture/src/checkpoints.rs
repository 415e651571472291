//! Checkpoints that somebody has changed, with checksums that match: a run that resumes from one ends in a sentence, or in a result that `verify` accepts.

use std::path::{Path, PathBuf};

use metastate_report::disk::faults;
use metastate_report::hash;
use serde_json::Value;

use crate::chance::Chance;
use crate::doors;
use crate::forge::{Change, copy};
use crate::watch::Outcome;

/// A full disk.
const ENOSPC: i32 = 28;

/// Checkpoints of two runs: a choice with its path, and a solve.
pub struct Bench {
    place: tempfile::TempDir,
    jobs: [Vec<String>; 2],
}

impl Bench {
    /// Runs both until their results are to be written, and lets that fail: the checkpoints stay.
    pub fn new() -> Result<Bench, String> {
        let place = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut counts = String::from("from,to,count\n");
        for (i, j) in (0..8usize).flat_map(|i| (0..8usize).map(move |j| (i, j))) {
            counts += &format!("{i},{j},{}\n", if i % 2 == j % 2 { 15 + (i * j) % 3 } else { 1 + (i + j) % 2 });
        }
        let input = place.path().join("counts.csv");
        std::fs::write(&input, counts).map_err(|e| e.to_string())?;
        let input = input.display().to_string();
        let words = |command: &str, more: &[&str]| [command, &input].iter().chain(more).map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let jobs = [
            words("path", &["--folds", "3", "--max-rank", "3", "--points", "6", "--checkpoint-every", "0"]),
            words("fit", &["--lambda-ratio", "0.2", "--max-rank", "4", "--tolerance", "1e-7", "--checkpoint-every", "0"]),
        ];
        let bench = Bench { place, jobs };
        for job in 0..2 {
            bench.interrupt(job)?;
        }
        Ok(bench)
    }

    fn interrupt(&self, job: usize) -> Result<(), String> {
        let out = self.place.path().join(format!("base-{job}"));
        faults::arm(None);
        let end = self.run(job, &out, false);
        let changes = faults::disarm();
        if end.code != 0 || changes < 20 {
            return Err(format!("{:?}: {} after {changes} changes", self.jobs[job], end.told));
        }
        std::fs::remove_dir_all(&out).map_err(|e| e.to_string())?;
        // The last changes are those of the result itself.
        faults::arm(Some((changes - 15, ENOSPC)));
        let end = self.run(job, &out, false);
        faults::disarm();
        let kept = ["checkpoint", "path-checkpoint"].iter().any(|kind| beside(&out, kind).exists());
        if end.code == 1 && kept { Ok(()) } else { Err(format!("no checkpoint is left: {}", end.told)) }
    }

    fn run(&self, job: usize, out: &Path, resume: bool) -> doors::End {
        let out = out.display().to_string();
        let mut words: Vec<&str> = self.jobs[job].iter().map(String::as_str).collect();
        words.extend(["--out", &out]);
        words.extend(resume.then_some("--resume"));
        doors::run(&words)
    }

    /// One case: changed, resumed, verified.
    pub fn case(&self, seed: u64, case: u64) -> Outcome {
        let mut chance = Chance::new(seed, case);
        let (job, out) = (chance.below(2), self.place.path().join("forged"));
        let mut outcome = Outcome::default();
        let mut told = Vec::new();
        let mut bytes = 0;
        for kind in ["checkpoint", "path-checkpoint"] {
            let (from, to) = (beside(&self.place.path().join(format!("base-{job}")), kind), beside(&out, kind));
            if !from.exists() || copy(&from, &to).is_err() {
                continue;
            }
            for folder in std::fs::read_dir(&to).into_iter().flatten().flatten().map(|e| e.path()).filter(|p| p.is_dir()) {
                let changes = forge(&mut chance, &folder);
                told.push(serde_json::to_string(&changes).unwrap_or_default());
                bytes += std::fs::read_dir(&folder)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter_map(|e| e.metadata().ok())
                    .map(|m| m.len())
                    .sum::<u64>();
            }
        }
        let end = self.run(job, &out, true);
        outcome.kind = format!("exit {}", end.code);
        match end.code {
            0 => {
                let verified = doors::run(&["verify", &out.display().to_string()]);
                if verified.code != 0 {
                    outcome.wrong.push(format!("the resumed result fails: {}, after {told:?}", verified.told));
                }
            }
            1 | 2 => outcome.refused_file = Some(bytes),
            code => outcome.wrong.push(format!("resumed, it ends with {code} ({}) after {told:?}", end.told)),
        }
        for path in [out.clone(), beside(&out, "checkpoint"), beside(&out, "path-checkpoint")] {
            let _ = std::fs::remove_dir_all(path);
        }
        outcome
    }
}

fn beside(out: &Path, kind: &str) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{kind}"));
    out.with_file_name(name)
}

/// A change of the numbers or of the document, with checksums that match in most cases.
fn forge(chance: &mut Chance, folder: &Path) -> Vec<Change> {
    let document = ["snapshot.json", "points.json"].into_iter().find(|n| folder.join(n).exists()).unwrap_or_default();
    let arrays = if document == "snapshot.json" { "snapshot.npz" } else { "factors.npz" };
    let mut changes = Vec::new();
    if chance.once_in(2) {
        // The document inside of its envelope lies there under another name for a moment.
        let inner = folder.join("body.json");
        let envelope: Value = std::fs::read(folder.join(document)).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
        let _ = std::fs::write(&inner, envelope["body"].as_str().unwrap_or_default());
        if let Some(change) = only(chance, folder, "body.json") {
            let _ = change.apply(folder);
            changes.push(change);
        }
        let regular = inner.symlink_metadata().is_ok_and(|m| m.is_file());
        let body = if regular { std::fs::read_to_string(&inner).unwrap_or_default() } else { String::new() };
        let _ = std::fs::remove_file(&inner);
        seal(&folder.join(document), body);
    } else if let Some(change) = only(chance, folder, arrays) {
        let _ = change.apply(folder);
        changes.push(change);
    }
    if !chance.once_in(8) {
        let envelope: Value = std::fs::read(folder.join(document)).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
        let mut body: Value = serde_json::from_str(envelope["body"].as_str().unwrap_or_default()).unwrap_or_default();
        if body.is_object() && folder.join(arrays).symlink_metadata().is_ok_and(|m| m.is_file()) {
            body["arrays_sha256"] = hash::of_bytes(&std::fs::read(folder.join(arrays)).unwrap_or_default()).into();
            seal(&folder.join(document), body.to_string());
        }
    }
    changes
}

/// A change by chance to this file, and no other.
fn only(chance: &mut Chance, folder: &Path, file: &str) -> Option<Change> {
    let alone = tempfile::tempdir().ok()?;
    std::fs::copy(folder.join(file), alone.path().join(file)).ok()?;
    Change::any(chance, alone.path())
}

/// As the program writes it.
fn seal(path: &Path, body: String) {
    let sha256 = hash::of_bytes(body.as_bytes());
    let (sha256, body) = (Value::from(sha256), Value::from(body));
    let _ = std::fs::write(path, format!("{{\n  \"sha256\": {sha256},\n  \"body\": {body}\n}}"));
}
