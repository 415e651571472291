//! A folder appears whole or not at all: written beside its place, flushed, renamed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::disk::{self, flush_folder};
use crate::error::{Error, Result, writing};
use crate::inside;
use crate::summary::SCHEMA_FAMILY;

/// Whether a folder may be written here: nothing is there, or `force` allows to replace a folder that is ours.
pub fn check_free(place: &Path, force: bool) -> Result<()> {
    match fs::symlink_metadata(place) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(writing(place)(e)),
        Ok(found) if !found.is_dir() => Err(Error::NoFolder(place.to_owned())),
        Ok(_) if !force => Err(Error::Exists(place.to_owned())),
        Ok(_) if is_ours(place) => Ok(()),
        Ok(_) => Err(Error::NotOurs(place.to_owned())),
    }
}

/// Files that `metastate` writes into folders without a document that names their kind: a simulated chain.
const SIMULATED: [&str; 7] = ["U.npy", "V.npy", "xi.npy", "P.npy", "counts.csv", "rewards.npy", "log.csv"];
/// What the document of a folder of ours begins its story with: a result, a comparison, a forecast, a difference.
const DOCUMENTS: [(&str, &str); 4] =
    [("summary.json", "schema"), ("compare.json", "methods"), ("forecast.json", "timescales"), ("diff.json", "zones")];

/// Whether a folder is one that `metastate` wrote, as far as its own document tells; an empty one is nobody's.
fn is_ours(place: &Path) -> bool {
    let names: Vec<String> =
        fs::read_dir(place).into_iter().flatten().flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        return true;
    }
    let simulated =
        [["U.npy", "V.npy", "xi.npy"], ["U.npy", "V.npy", "log.csv"]].iter().any(|all| all.iter().all(|n| names.iter().any(|m| m == n)))
            && names.iter().all(|n| SIMULATED.contains(&n.as_str()));
    let document = |(name, key): &(&str, &str)| {
        let value: Option<serde_json::Value> = inside::read(place, name).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        value.is_some_and(|v| {
            v.get(key).is_some_and(|found| *key != "schema" || found.as_str().is_some_and(|s| s.starts_with(SCHEMA_FAMILY)))
        })
    };
    simulated || DOCUMENTS.iter().any(document)
}

/// A folder that is being written.
#[derive(Debug)]
pub struct Draft {
    place: PathBuf,
    draft: PathBuf,
    done: bool,
}

impl Draft {
    /// Begins a folder that will stand at `place`.
    pub fn begin(place: &Path) -> Result<Self> {
        let parent = parent_of(place);
        disk::create_dir_all(parent).map_err(writing(parent))?;
        let draft = own(place, "new");
        // What a killed process with this number left there.
        if draft.exists() {
            disk::remove_dir_all(&draft).map_err(writing(&draft))?;
        }
        disk::create_dir(&draft).map_err(writing(&draft))?;
        Ok(Draft { place: place.to_owned(), draft, done: false })
    }

    /// Writes and flushes one file.
    pub fn file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.draft.join(name);
        if let Some(inner) = path.parent().filter(|p| *p != self.draft) {
            disk::create_dir_all(inner).map_err(writing(inner))?;
        }
        disk::write_new(&path, bytes).map_err(writing(&path))
    }

    /// The same for a file too large to be held whole; its hash, of what stands on the disk.
    pub(crate) fn large_file(&self, name: &str, write: &mut dyn FnMut(&mut dyn disk::Target) -> std::io::Result<()>) -> Result<String> {
        let path = self.draft.join(name);
        disk::write_new_with(&path, write).map_err(writing(&path))?;
        Ok(crate::hash::of_file(&path)?.1)
    }

    /// Puts the folder in its place; with `force`, in the place of another.
    pub fn finish(mut self, force: bool) -> Result<()> {
        flush_folder(&self.draft).map_err(writing(&self.draft))?;
        check_free(&self.place, force)?;
        let old = own(&self.place, "old");
        let replaced = self.place.exists();
        if replaced {
            disk::rename(&self.place, &old).map_err(writing(&self.place))?;
        }
        if let Err(cause) = disk::rename(&self.draft, &self.place) {
            if replaced {
                // The old one goes back; the first cause is the one to tell.
                let _ = fs::rename(&old, &self.place);
            }
            return Err(writing(&self.place)(cause));
        }
        self.done = true;
        let flushed = flush_folder(parent_of(&self.place)).map_err(writing(&self.place));
        if replaced {
            // The new one stands. An old one that cannot be removed is left for the next run to tidy up.
            let _ = disk::remove_dir_all(&old);
        }
        flushed
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.done {
            let _ = fs::remove_dir_all(&self.draft);
        }
    }
}

/// Writes one file beside its place, flushes it and renames it.
pub fn write_file(place: &Path, bytes: &[u8]) -> Result<()> {
    write_file_with(place, &mut |file| file.write_all(bytes))
}

/// The same for a file too large to be held whole.
pub(crate) fn write_file_with(place: &Path, write: &mut dyn FnMut(&mut dyn disk::Target) -> std::io::Result<()>) -> Result<()> {
    let parent = parent_of(place);
    disk::create_dir_all(parent).map_err(writing(parent))?;
    let draft = own(place, "new");
    let written = disk::write_new_with(&draft, write).and_then(|()| disk::rename(&draft, place)).and_then(|()| flush_folder(parent));
    written.map_err(|e| {
        let _ = fs::remove_file(&draft);
        writing(place)(e)
    })
}

/// The folder that a place is in.
pub(crate) fn parent_of(place: &Path) -> &Path {
    match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `.name.word` in the same folder, so that a rename stays on one disk.
pub(crate) fn beside(place: &Path, word: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(place.file_name().unwrap_or("result".as_ref()));
    name.push(format!(".{word}"));
    parent_of(place).join(name)
}

/// The same for this process alone: `.name.word-process`.
fn own(place: &Path, word: &str) -> PathBuf {
    beside(place, &format!("{word}-{}", std::process::id()))
}

/// Removes a folder so that it is whole until it is gone: moved to another name first. What a killed process leaves under that
/// name is for [`tidy`].
pub fn remove(place: &Path) -> std::io::Result<()> {
    let gone = own(place, "gone");
    disk::rename(place, &gone)?;
    disk::remove_dir_all(&gone)
}

/// Removes what killed processes left beside `place`, and puts back a folder that was moved away and never replaced.
pub fn tidy(place: &Path) {
    let Some(name) = place.file_name().map(|n| n.to_string_lossy().into_owned()) else { return };
    for entry in fs::read_dir(parent_of(place)).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let dead = |word: &str| {
            let process = file.strip_prefix(&format!(".{name}.{word}-")).and_then(|rest| rest.parse::<u32>().ok());
            process.is_some_and(|id| Path::new("/proc").is_dir() && !Path::new(&format!("/proc/{id}")).exists())
        };
        // All of this is tidying: what cannot be done now is left to the next run.
        if dead("old") && !place.exists() {
            let _ = fs::rename(entry.path(), place);
        } else if dead("old") || dead("new") || dead("gone") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
