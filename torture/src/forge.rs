//! Changes to a folder, each a line of text: the corpus keeps those that once did harm, the campaigns make new ones.

use std::path::Path;

use metastate_report::npz::{Array, npz_bytes, read_npz};
use metastate_report::{csv_field, hash, parse_csv};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chance::Chance;

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "change")]
#[allow(missing_docs)] // the fields are named as what they are
pub enum Change {
    /// Bytes from a place on.
    Bytes { file: String, at: usize, to: Vec<u8> },
    /// The file ends early.
    Cut { file: String, length: usize },
    /// Other content.
    Write { file: String, text: String },
    /// Gone.
    Remove { file: String },
    /// A link in its place.
    Link { file: String, to: String },
    /// A pipe in its place.
    Pipe { file: String },
    /// A value of a JSON document.
    Json { file: String, pointer: String, to: Value },
    /// An array of an archive: another size, filled with one number.
    Array { file: String, name: String, shape: Vec<usize>, fill: String },
    /// One number of an array.
    Number { file: String, name: String, at: usize, to: String },
    /// Another name for an array.
    Name { file: String, name: String, to: String },
    /// A field of a table.
    Field { file: String, row: usize, column: usize, to: String },
    /// Rows of a table, the first ones.
    Rows { file: String, keep: usize },
}

/// Texts that have done harm somewhere.
const TEXTS: [&str; 16] = [
    "",
    "NaN",
    "inf",
    "-inf",
    "1e308",
    "-1",
    "0",
    "1e-320",
    "18446744073709551615",
    "9223372036854775808",
    "/dev/zero",
    "../../etc/passwd",
    "\u{1b}[2J",
    "\"",
    "=1+1",
    "\u{202e}x",
];

impl Change {
    /// A change by chance to one of the files in a folder.
    pub fn any(chance: &mut Chance, folder: &Path) -> Option<Change> {
        let mut files: Vec<String> =
            std::fs::read_dir(folder).ok()?.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        let file = chance.of(&files).clone();
        let path = folder.join(&file);
        if path.is_dir() {
            return Some(Change::Link { file, to: "../elsewhere".to_owned() });
        }
        let bytes = std::fs::read(&path).ok()?;
        let general = |chance: &mut Chance| match chance.below(12) {
            0 => Change::Remove { file: file.clone() },
            1 => Change::Cut { file: file.clone(), length: chance.below(bytes.len()) },
            2 => {
                Change::Link { file: file.clone(), to: (*chance.of(&["/dev/zero", "../elsewhere/x", "nowhere", "states.csv"])).to_owned() }
            }
            3 => Change::Pipe { file: file.clone() },
            4 => Change::Write { file: file.clone(), text: "[".repeat(chance.below(100_000)) },
            5 => Change::Write { file: file.clone(), text: (*chance.of(&TEXTS)).to_owned() },
            _ => {
                let to = (0..1 + chance.below(8)).map(|_| chance.bits() as u8).collect();
                Change::Bytes { file: file.clone(), at: chance.below(bytes.len()), to }
            }
        };
        if chance.once_in(3) {
            return Some(general(chance));
        }
        Some(match path.extension().and_then(|e| e.to_str()) {
            Some("json" | "geojson") => Change::json(chance, &file, &bytes).unwrap_or_else(|| general(chance)),
            Some("npz") => Change::array(chance, &file, &path).unwrap_or_else(|| general(chance)),
            Some("csv") => Change::table(chance, &file, &bytes).unwrap_or_else(|| general(chance)),
            _ => general(chance),
        })
    }

    fn json(chance: &mut Chance, file: &str, bytes: &[u8]) -> Option<Change> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let (mut at, mut pointer) = (&value, String::new());
        // Down to a leaf, or seldom to a branch.
        loop {
            let (key, next) = match at {
                Value::Object(map) if !map.is_empty() => map.iter().nth(chance.below(map.len())).map(|(k, v)| (k.clone(), v))?,
                Value::Array(list) if !list.is_empty() => {
                    let k = chance.below(list.len());
                    (k.to_string(), &list[k])
                }
                _ => break,
            };
            pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            at = next;
            if chance.once_in(12) {
                break;
            }
        }
        let to = match chance.below(10) {
            0 => Value::Null,
            1 => json!([]),
            2 => json!({}),
            3 => json!(u64::MAX),
            4 => json!(i64::MIN),
            5 => json!(*chance.of(&[1e300, -1e300, 1e-300, 0.0, -0.0, 0.5, 1e18, 1e12, 3.0, 65536.0])),
            6 => json!(vec![vec![0.5; chance.below(4)]; chance.below(50)]),
            7 => json!(chance.once_in(2)),
            8 => json!(chance.below(100_000)),
            _ => json!(*chance.of(&TEXTS)),
        };
        Some(Change::Json { file: file.to_owned(), pointer, to })
    }

    fn array(chance: &mut Chance, file: &str, path: &Path) -> Option<Change> {
        let arrays = read_npz(path).ok().filter(|arrays| !arrays.is_empty())?;
        let array = chance.of(&arrays);
        let (file, name) = (file.to_owned(), array.name.clone());
        let number = |chance: &mut Chance| (*chance.of(&["NaN", "inf", "-1", "0", "1e300", "1e-320", "0.3", "1"])).to_owned();
        Some(match chance.below(6) {
            0 => Change::Name { file, name, to: (*chance.of(&["U", "V", "U.npy", "xi", "../U", ""])).to_owned() },
            1 | 2 => Change::Number { file, name, at: chance.below(array.data.len()), to: number(chance) },
            _ => {
                let mut shape = array.shape.clone();
                let k = chance.below(shape.len());
                shape[k] = *chance.of(&[0, 1, 2, shape[k] + 1, shape[k].saturating_sub(1), 2 * shape[k], 1000, 20_000]);
                if chance.once_in(6) {
                    shape.push(1);
                }
                Change::Array { file, name, shape, fill: number(chance) }
            }
        })
    }

    fn table(chance: &mut Chance, file: &str, bytes: &[u8]) -> Option<Change> {
        let rows = parse_csv(std::str::from_utf8(bytes).ok()?)?;
        let row = chance.below(rows.len());
        let file = file.to_owned();
        Some(match chance.below(5) {
            0 => Change::Rows { file, keep: chance.below(rows.len() + 1) },
            _ => Change::Field { file, row, column: chance.below(rows.get(row)?.len() + 1), to: (*chance.of(&TEXTS)).to_owned() },
        })
    }

    /// Makes the change. What cannot be made (the file is gone by another one) is left.
    pub fn apply(&self, folder: &Path) -> Option<()> {
        let path = |file: &str| folder.join(file);
        let gone = |path: &Path| if path.is_dir() { std::fs::remove_dir_all(path).ok() } else { std::fs::remove_file(path).ok() };
        // Never through a link or into a pipe that an earlier change put there.
        let regular = |file: &str| path(file).symlink_metadata().is_ok_and(|m| m.is_file()).then(|| path(file));
        match self {
            Change::Bytes { file, at, to } => {
                let mut bytes = std::fs::read(regular(file)?).ok()?;
                bytes.iter_mut().skip(*at).zip(to).for_each(|(b, t)| *b = *t);
                std::fs::write(path(file), bytes).ok()
            }
            Change::Cut { file, length } => {
                let bytes = std::fs::read(regular(file)?).ok()?;
                std::fs::write(path(file), &bytes[..(*length).min(bytes.len())]).ok()
            }
            Change::Write { file, text } => std::fs::write(regular(file)?, text).ok(),
            Change::Remove { file } => gone(&path(file)),
            Change::Link { file, to } => {
                gone(&path(file))?;
                #[cfg(unix)]
                std::os::unix::fs::symlink(to, path(file)).ok()?;
                Some(())
            }
            Change::Pipe { file } => {
                gone(&path(file))?;
                std::process::Command::new("mkfifo").arg(path(file)).status().ok().map(drop)
            }
            Change::Json { file, pointer, to } => change_json(&regular(file)?, |value| {
                if let Some(found) = value.pointer_mut(pointer) {
                    *found = to.clone();
                }
            }),
            Change::Array { file, name, shape, fill } => change_npz(&regular(file)?, name, |array| {
                let size = shape.iter().product();
                array.data = vec![fill.parse().unwrap_or(f64::NAN); size];
                array.shape = shape.clone();
            }),
            Change::Number { file, name, at, to } => change_npz(&regular(file)?, name, |array| {
                if let Some(x) = array.data.get_mut(*at) {
                    *x = to.parse().unwrap_or(f64::NAN);
                }
            }),
            Change::Name { file, name, to } => change_npz(&regular(file)?, name, |array| array.name = to.clone()),
            Change::Field { file, row, column, to } => change_csv(&regular(file)?, |rows| {
                let Some(row) = rows.get_mut(*row) else { return };
                match row.get_mut(*column) {
                    Some(field) => *field = to.clone(),
                    None => row.push(to.clone()),
                }
            }),
            Change::Rows { file, keep } => change_csv(&regular(file)?, |rows| rows.truncate(*keep)),
        }
    }
}

fn change_json(path: &Path, change: impl FnOnce(&mut Value)) -> Option<()> {
    let mut value: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    change(&mut value);
    std::fs::write(path, value.to_string()).ok()
}

fn change_npz(path: &Path, name: &str, change: impl FnOnce(&mut Array)) -> Option<()> {
    let mut arrays = read_npz(path).ok()?;
    change(arrays.iter_mut().find(|a| a.name == name)?);
    std::fs::write(path, npz_bytes(&arrays).ok()?).ok()
}

fn change_csv(path: &Path, change: impl FnOnce(&mut Vec<Vec<String>>)) -> Option<()> {
    let mut rows = parse_csv(&std::fs::read_to_string(path).ok()?)?;
    change(&mut rows);
    let line = |row: &Vec<String>| row.iter().map(|f| csv_field(f)).collect::<Vec<_>>().join(",") + "\n";
    std::fs::write(path, rows.iter().map(line).collect::<String>()).ok()
}

/// The hashes of all files that a summary lists, as they are now: who forges a result forges them, too.
pub fn rehash(folder: &Path) -> Option<()> {
    let path = folder.join("summary.json");
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    change_json(&path, |summary| {
        for (name, sha256) in summary.get_mut("files").and_then(Value::as_object_mut).into_iter().flatten() {
            let file = folder.join(name);
            if file.symlink_metadata().is_ok_and(|m| m.is_file())
                && let Ok(bytes) = std::fs::read(file)
            {
                *sha256 = hash::of_bytes(&bytes).into();
            }
        }
    })
}

/// A copy of a folder, all depths.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
