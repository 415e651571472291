//! A folder appears whole or not at all: written beside its place, flushed, renamed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, writing};

/// Whether a result may be written here: nothing is there, or `force` allows to replace a folder.
pub fn check_free(place: &Path, force: bool) -> Result<()> {
    match fs::symlink_metadata(place) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(writing(place)(e)),
        Ok(found) if force && found.is_dir() => Ok(()),
        Ok(_) => Err(Error::Exists(place.to_owned())),
    }
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
        fs::create_dir_all(parent).map_err(writing(parent))?;
        let draft = beside(place, "new");
        // What a killed process with this number left there.
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(writing(&draft))?;
        }
        fs::create_dir(&draft).map_err(writing(&draft))?;
        Ok(Draft { place: place.to_owned(), draft, done: false })
    }

    /// Writes and flushes one file.
    pub fn file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.draft.join(name);
        if let Some(inner) = path.parent().filter(|p| *p != self.draft) {
            fs::create_dir_all(inner).map_err(writing(inner))?;
        }
        write_flushed(&path, bytes).map_err(writing(&path))
    }

    /// Puts the folder in its place; with `force`, in the place of another.
    pub fn finish(mut self, force: bool) -> Result<()> {
        flush_folder(&self.draft).map_err(writing(&self.draft))?;
        check_free(&self.place, force)?;
        let old = beside(&self.place, "old");
        let replaced = self.place.exists();
        if replaced {
            fs::rename(&self.place, &old).map_err(writing(&self.place))?;
        }
        if let Err(cause) = fs::rename(&self.draft, &self.place) {
            if replaced {
                // The old one goes back; the first cause is the one to tell.
                let _ = fs::rename(&old, &self.place);
            }
            return Err(writing(&self.place)(cause));
        }
        self.done = true;
        flush_folder(parent_of(&self.place)).map_err(writing(&self.place))?;
        if replaced {
            fs::remove_dir_all(&old).map_err(writing(&old))?;
        }
        Ok(())
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
    let parent = parent_of(place);
    fs::create_dir_all(parent).map_err(writing(parent))?;
    let draft = beside(place, "new");
    let written = write_flushed(&draft, bytes).and_then(|()| fs::rename(&draft, place)).and_then(|()| flush_folder(parent));
    written.map_err(|e| {
        let _ = fs::remove_file(&draft);
        writing(place)(e)
    })
}

fn write_flushed(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The names in a folder are on disk only after the folder itself was flushed. Where folders cannot be opened (Windows) the
/// rename is all that can be had.
fn flush_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

fn parent_of(place: &Path) -> &Path {
    match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// `.name.word-process` in the same folder, so that the rename stays on one disk.
fn beside(place: &Path, word: &str) -> PathBuf {
    let name = place.file_name().map_or_else(|| "result".into(), |n| n.to_string_lossy());
    parent_of(place).join(format!(".{name}.{word}-{}", std::process::id()))
}

/// Removes a folder so that it is whole until it is gone: moved to another name first. What a killed process leaves under that
/// name is for [`tidy`].
pub fn remove(place: &Path) -> std::io::Result<()> {
    let gone = beside(place, "gone");
    fs::rename(place, &gone)?;
    fs::remove_dir_all(gone)
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
