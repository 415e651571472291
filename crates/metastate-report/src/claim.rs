//! A place that one run has for itself, from before its work until its result stands: two runs into one place would otherwise both be told that it is free.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::disk;
use crate::error::{Error, Result, writing};
use crate::folder::{self, beside, parent_of};

/// As long as any name in a folder that is written.
const LONGEST_NAME: &str = "plots-convergence.svg.new-0000000";

/// The right to write to a place. It ends when this is dropped, and when the process ends, however that comes about.
#[derive(Debug)]
pub struct Claim {
    lock: PathBuf,
    _held: File,
    /// Folders above the place that were made for it, the deepest first: they go when nothing was put there.
    made: Vec<PathBuf>,
}

impl Claim {
    /// For a folder: the place must be free, or hold a folder of ours where `force` allows to replace it. What killed runs left there is tidied up.
    pub fn folder(place: &Path, force: bool) -> Result<Claim> {
        let claim = Claim::new(place)?;
        folder::tidy(place);
        folder::check_free(place, force)?;
        Ok(claim)
    }

    /// For a file; whether it may be replaced is for the caller to say.
    pub fn file(place: &Path) -> Result<Claim> {
        Claim::new(place)
    }

    /// Whether anything can be written there is found out now, and not after hours of work.
    fn new(place: &Path) -> Result<Claim> {
        let parent = parent_of(place);
        let made: Vec<PathBuf> = parent.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists()).map(Path::to_owned).collect();
        let undo = |made: &[PathBuf]| made.iter().for_each(|p| drop(fs::remove_dir(p)));
        let lock = beside(place, "lock");
        let claimed = disk::create_dir_all(parent).and_then(|()| probe(place)).map_err(writing(place)).and_then(|()| hold(place, &lock));
        match claimed {
            Ok(held) => Ok(Claim { lock, _held: held, made }),
            Err(e) => {
                undo(&made);
                Err(e)
            }
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while it is held, so that nobody else can hold this one any more. What cannot be removed does no harm.
        let _ = fs::remove_file(&self.lock);
        self.made.iter().for_each(|p| drop(fs::remove_dir(p)));
    }
}

/// Makes and removes what the longest names need.
fn probe(place: &Path) -> std::io::Result<()> {
    let draft = beside(place, &format!("new-{}", std::process::id()));
    if draft.symlink_metadata().is_ok() {
        return Ok(());
    }
    disk::create_dir(&draft)?;
    let file = draft.join(LONGEST_NAME);
    let written = disk::write_new(&file, b"").and_then(|()| fs::remove_file(&file));
    fs::remove_dir(&draft)?;
    written
}

/// Takes the lock. The file may be gone by the time that it is locked, because its holder just ended: then it is taken again.
fn hold(place: &Path, lock: &Path) -> Result<File> {
    for _ in 0..100 {
        let file = File::options().create(true).append(true).open(lock).map_err(writing(place))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy(place.to_owned())),
            // A disk that knows no locks (some network disks): two runs there are as they were.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        if still_there(&file, lock) {
            return Ok(file);
        }
    }
    Err(Error::Busy(place.to_owned()))
}

/// Whether the file that was locked is the one that stands there.
fn still_there(file: &File, lock: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        match (file.metadata(), fs::symlink_metadata(lock)) {
            (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
            _ => false,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        lock.exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_belongs_to_one_and_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/b/out");
        let first = Claim::folder(&place, false).unwrap();
        assert!(matches!(Claim::folder(&place, false), Err(Error::Busy(_))));
        assert!(Claim::folder(&folder.path().join("a/b/other"), false).is_ok());
        drop(first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left, not even the folders above");
        assert!(Claim::folder(&place, false).is_ok());
    }

    #[test]
    fn what_cannot_be_written_is_found_out_at_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for place in [folder.path().join("x".repeat(250)), folder.path().join("file/out"), folder.path().join("y".repeat(300))] {
            assert!(matches!(Claim::folder(&place, false), Err(Error::Io { .. })), "{}", place.display());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
