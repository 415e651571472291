//! Checkpoints: `DIR.checkpoint/NUMBER/` with `snapshot.npz` (all numbers, bit for bit) and `snapshot.json` (the rest, and what
//! the run was asked for). Each appears whole or not at all, has checksums, and the one before it is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use metastate::Mat;
use metastate::solve::{Factors, Snapshot, Steering};
use metastate::workspace::relaxation::Relaxation;
use metastate_report::npz::{Array, npz_bytes, read_npz};
use metastate_report::{folder, hash, inside};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{CliError, Result};

const VERSION: u32 = 2;

/// A safe point in memory. The relaxation is large and changes seldom, so it is shared.
#[derive(Debug, Clone)]
pub struct Kept {
    snapshot: Snapshot,
    relaxation: Arc<Relaxation>,
    /// Whether it has been written.
    pub on_disk: bool,
}

impl Kept {
    /// Copies a safe point; the relaxation only when it is not that of `before`.
    pub fn new(s: &Snapshot, before: Option<&Kept>) -> Self {
        let relaxation = match before {
            Some(b) if same(&b.relaxation, &s.relaxation) => Arc::clone(&b.relaxation),
            _ => Arc::new(s.relaxation.clone()),
        };
        let snapshot = Snapshot {
            factors: s.factors.clone(),
            relaxation: Relaxation::default(),
            bound: s.bound,
            proved: s.proved,
            values: s.values.clone(),
            round: s.round,
            sweeps: s.sweeps,
            polishing: s.polishing,
            coarse: s.coarse,
            grown: s.grown,
            solving: s.solving,
        };
        Kept { snapshot, relaxation, on_disk: false }
    }
}

fn same(x: &Relaxation, y: &Relaxation) -> bool {
    (x.value.to_bits(), &x.spectrum, &x.mu) == (y.value.to_bits(), &y.spectrum, &y.mu) && x.a == y.a && x.b == y.b
}

/// What `snapshot.json` holds.
#[derive(Debug, Serialize, Deserialize)]
struct Body {
    version: u32,
    arrays_sha256: String,
    round: usize,
    sweeps: usize,
    polishing: bool,
    grown: bool,
    solving: bool,
    proved: bool,
    asked_for: Value,
}

/// The body as text, so that its checksum does not depend on how JSON is formatted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    sha256: String,
    body: String,
}

impl Envelope {
    /// A body with its checksum, as text.
    pub fn seal(body: String) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&Envelope { sha256: hash::of_bytes(body.as_bytes()), body })
    }

    /// The body, when its checksum matches and the text is exactly what [`Envelope::seal`] makes of it: no byte of the file is free.
    pub fn open(text: &str) -> std::result::Result<String, String> {
        let envelope: Envelope = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let sealed = Envelope::seal(envelope.body.clone()).map_err(|e| e.to_string())?;
        if sealed == text { Ok(envelope.body) } else { Err("the checksum does not match".to_owned()) }
    }
}

/// Beside the result folder.
pub fn place(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".checkpoint");
    out.with_file_name(name)
}

/// Where checkpoints of a run go.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    place: PathBuf,
    asked_for: Value,
    next: u64,
}

impl Checkpoint {
    /// Beside the result folder. `asked_for` is everything that the answer depends on.
    pub fn beside(out: &Path, asked_for: Value) -> Self {
        let place = place(out);
        let next = next_number(&place);
        Checkpoint { place, asked_for, next }
    }

    /// The folder.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Whether there is one on disk.
    pub fn written(&self) -> bool {
        !numbers(&self.place).is_empty()
    }

    /// Writes one, keeps the one before it, removes older ones.
    pub fn write(&mut self, kept: &Kept) -> Result<()> {
        let (s, x) = (&kept.snapshot, &kept.relaxation);
        let scalars = [x.value, s.bound.guess(), s.coarse];
        let arrays = [
            Array::matrix("U", &s.factors.u),
            Array::matrix("V", &s.factors.v),
            Array::matrix("a", &x.a),
            Array::matrix("b", &x.b),
            Array::list("mu", &x.mu),
            Array::list("spectrum", &x.spectrum),
            Array::list("values", &s.values),
            Array::list("scalars", &scalars),
        ];
        let bytes = npz_bytes(&arrays).map_err(|e| CliError::write(&self.place, e))?;
        let body = Body {
            version: VERSION,
            arrays_sha256: hash::of_bytes(&bytes),
            round: s.round,
            sweeps: s.sweeps,
            polishing: s.polishing,
            grown: s.grown,
            solving: s.solving,
            proved: s.proved,
            asked_for: self.asked_for.clone(),
        };
        let text = |e: serde_json::Error| CliError::write(&self.place, e);
        let body = serde_json::to_string(&body).map_err(text)?;
        let envelope = Envelope::seal(body).map_err(text)?;
        write_next(&self.place, self.next, &[("snapshot.npz", &bytes), ("snapshot.json", envelope.as_bytes())])?;
        self.next += 1;
        Ok(())
    }

    /// The newest one that is whole. `None` when there is none at all.
    pub fn load(&self) -> Result<Option<Snapshot>> {
        newest(&self.place, |place| self.load_one(place))
    }

    fn load_one(&self, place: &Path) -> Result<Snapshot> {
        let bad = |why: String| {
            CliError::failed("E-CLI-CHECKPOINT", format!("this checkpoint cannot be used: {why}"))
                .at(place.display().to_string())
                .remedy("remove the checkpoint folder and run without --resume")
        };
        let text = inside::read_text(place, "snapshot.json").map_err(|e| bad(e.to_string()))?;
        let body = Envelope::open(&text).map_err(|why| bad(format!("snapshot.json: {why}")))?;
        let body: Body = serde_json::from_str(&body).map_err(|e| bad(e.to_string()))?;
        if body.version != VERSION {
            return Err(bad(format!("it is of version {}, this program writes version {VERSION}", body.version)));
        }
        if let Some(key) = difference(&body.asked_for, &self.asked_for) {
            return Err(CliError::bad("E-CLI-RESUME", format!("the checkpoint is of a run with another `{key}`"))
                .at(place.display().to_string())
                .remedy("give the same inputs and options as in that run, or remove the checkpoint folder and run without --resume"));
        }
        let file = place.join("snapshot.npz");
        if hash::of_file(&file).map_err(|e| bad(e.to_string()))?.1 != body.arrays_sha256 {
            return Err(bad("the checksum of snapshot.npz does not match".into()));
        }
        let arrays = read_npz(&file).map_err(|e| bad(e.to_string()))?;
        rebuild(&body, arrays).ok_or_else(|| bad("arrays are missing".into()))
    }

    /// After success nothing is left to resume.
    pub fn remove(&self) {
        clear(&self.place);
    }
}

fn rebuild(body: &Body, arrays: Vec<Array>) -> Option<Snapshot> {
    let find = |name: &str| arrays.iter().find(|a| a.name == name).cloned();
    let matrix = |name: &str| -> Option<Mat> { find(name)?.into_matrix() };
    let list = |name: &str| find(name).map(|a| a.data);
    let [value, bound, coarse] = list("scalars")?.try_into().ok()?;
    Some(Snapshot {
        factors: Factors { u: matrix("U")?, v: matrix("V")? },
        relaxation: Relaxation { a: matrix("a")?, b: matrix("b")?, mu: list("mu")?, spectrum: list("spectrum")?, value },
        bound: Steering::new(bound),
        proved: body.proved,
        round: body.round,
        sweeps: body.sweeps,
        polishing: body.polishing,
        coarse,
        grown: body.grown,
        solving: body.solving,
        values: list("values")?,
    })
}

/// The first key whose values differ, as `fit.lambda`.
fn difference(a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: std::collections::BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            keys.into_iter().find_map(|key| {
                let (x, y) = (x.get(key).unwrap_or(&Value::Null), y.get(key).unwrap_or(&Value::Null));
                difference(x, y).map(|rest| if rest.is_empty() { key.clone() } else { format!("{key}.{rest}") })
            })
        }
        _ => (a != b).then(String::new),
    }
}

/// Writes the next of a row of checkpoints, keeps the one before it, removes older ones.
pub fn write_next(place: &Path, number: u64, files: &[(&str, &[u8])]) -> Result<()> {
    let draft = folder::Draft::begin(&place.join(number.to_string()))?;
    for (name, bytes) in files {
        draft.file(name, bytes)?;
    }
    draft.finish(false)?;
    // What is older than the one before this one, and drafts of killed processes. Not being able to tidy up is no failure.
    for number in numbers(place).into_iter().skip(2) {
        let _ = folder::remove(&place.join(number.to_string()));
    }
    Ok(())
}

/// The newest checkpoint that is whole. `None` when there is none at all.
pub fn newest<T>(place: &Path, load: impl Fn(&Path) -> Result<T>) -> Result<Option<T>> {
    let mut first_error = None;
    for number in numbers(place) {
        match load(&place.join(number.to_string())) {
            Ok(found) => return Ok(Some(found)),
            Err(e) => first_error = first_error.or(Some(e)),
        }
    }
    first_error.map_or(Ok(None), Err)
}

/// Files of a checkpoint.
const FILES: [&str; 4] = ["snapshot.npz", "snapshot.json", "points.json", "factors.npz"];

/// Removes all checkpoints of a folder, drafts of killed processes too, and the folder itself where nothing else is in it. What somebody else put there
/// stays.
pub fn clear(place: &Path) {
    let names = |place: &Path| -> Vec<String> {
        std::fs::read_dir(place).into_iter().flatten().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    for name in names(place) {
        let plain = name.strip_prefix('.').and_then(|rest| rest.split('.').next()).unwrap_or(&name);
        let inner = place.join(&name);
        let ours = inner.symlink_metadata().is_ok_and(|m| m.is_dir()) && names(&inner).iter().all(|file| FILES.contains(&file.as_str()));
        if plain.parse::<u64>().is_ok() && ours {
            // A folder that stays does no harm: it is checked before it is used.
            let _ = folder::remove(&inner);
        }
    }
    let _ = std::fs::remove_dir(place);
}

/// The number of the next checkpoint in a folder.
pub fn next_number(place: &Path) -> u64 {
    numbers(place).first().map_or(1, |n| n.saturating_add(1))
}

/// The numbers of the checkpoints in a folder, newest first.
fn numbers(place: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<u64> = entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(sweeps: usize) -> Kept {
        let half = || Mat::from_fn(3, 2, |_, _| 0.5);
        let relaxation = Relaxation { a: half(), b: half(), mu: vec![0.1; 3], spectrum: vec![1.0, 0.5], value: 2.0 };
        let factors = Factors { u: half(), v: Mat::from_fn(3, 2, |_, _| 1.0 / 3.0) };
        let snapshot = Snapshot {
            factors,
            relaxation,
            bound: Steering::new(0.25),
            proved: false,
            values: vec![1.0, 0.5],
            round: 1,
            sweeps,
            polishing: false,
            coarse: 1e-3,
            grown: false,
            solving: true,
        };
        Kept::new(&snapshot, None)
    }

    /// Every byte of the newest checkpoint changed in turn, and each of its files cut at every place: found out, and the one before it is taken.
    #[test]
    fn no_byte_of_a_checkpoint_changes_unnoticed() {
        let place = tempfile::tempdir().unwrap();
        let mut checkpoint = Checkpoint::beside(&place.path().join("out"), serde_json::json!({ "fit": { "lambda": 1.0 }, "seed": 7 }));
        checkpoint.write(&kept(10)).unwrap();
        checkpoint.write(&kept(20)).unwrap();
        let sweeps = || checkpoint.load().unwrap().unwrap().sweeps;
        assert_eq!(sweeps(), 20);
        let mut changed = 0;
        for file in ["snapshot.json", "snapshot.npz"] {
            let path = checkpoint.place().join("2").join(file);
            let good = std::fs::read(&path).unwrap();
            for at in 0..good.len() {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << (at % 8);
                std::fs::write(&path, &bytes).unwrap();
                assert_eq!(sweeps(), 10, "{file}, byte {at}");
                changed += 1;
                if at % 16 == 0 {
                    std::fs::write(&path, &good[..at]).unwrap();
                    assert_eq!(sweeps(), 10, "{file}, cut at {at}");
                }
            }
            std::fs::write(&path, &good).unwrap();
        }
        assert!(changed > 2000 && sweeps() == 20, "{changed} bytes");
    }
}
