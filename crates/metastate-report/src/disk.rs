//! Every change that this crate makes to a disk goes through here, so that a test can let each of them fail in turn: a full disk, a broken one, a call that a
//! signal interrupts.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// Failures on demand, of the calling thread alone.
pub mod faults {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static CHANGES: Cell<u64> = const { Cell::new(0) };
        static FAULT: Cell<Option<(u64, i32)>> = const { Cell::new(None) };
    }

    /// Lets the change with this number, from 0, fail with this error of the operating system; `None` counts only.
    pub fn arm(fault: Option<(u64, i32)>) {
        CHANGES.set(0);
        FAULT.set(fault);
    }

    /// Ends that, and says how many changes there were.
    pub fn disarm() -> u64 {
        FAULT.set(None);
        CHANGES.replace(0)
    }

    /// Before each change.
    pub(super) fn pass() -> io::Result<()> {
        let number = CHANGES.get();
        CHANGES.set(number + 1);
        match FAULT.get() {
            Some((at, errno)) if at == number => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }
}

/// Bytes that are collected before they go to the disk.
const PIECE: usize = 1 << 18;

/// A file whose every write may be made to fail.
struct WatchedFile(File);

impl Write for WatchedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        faults::pass()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for WatchedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// What a large file is written into, piece by piece.
pub(crate) trait Target: Write + Seek + Send {}
impl<T: Write + Seek + Send> Target for T {}

/// A target that keeps its first error to the end and takes all that comes after it without writing it: a writer of archives puts its pieces in order when it is dropped, and is not made for
/// places that cannot be told any more.
struct Steady<T> {
    inner: T,
    at: u64,
    length: u64,
    failed: Option<io::Error>,
}

impl<T: Write + Seek> Steady<T> {
    fn of(inner: T) -> Self {
        Steady { inner, at: 0, length: 0, failed: None }
    }

    /// What was written into, or the first error.
    fn into_inner(self) -> io::Result<T> {
        self.failed.map_or(Ok(self.inner), Err)
    }
}

impl<T: Write> Write for Steady<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self.failed {
            None => match self.inner.write(bytes) {
                Ok(written) => written,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
                Err(e) => {
                    self.failed = Some(e);
                    bytes.len()
                }
            },
            Some(_) => bytes.len(),
        };
        self.at += written as u64;
        self.length = self.length.max(self.at);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed.is_none() {
            self.failed = self.inner.flush().err();
        }
        Ok(())
    }
}

impl<T: Seek> Seek for Steady<T> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let place = match to {
            io::SeekFrom::Start(at) => Some(at),
            io::SeekFrom::End(by) => self.length.checked_add_signed(by),
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = place.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        if self.failed.is_none() {
            self.failed = self.inner.seek(io::SeekFrom::Start(self.at)).err();
        }
        Ok(self.at)
    }
}

pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    faults::pass()?;
    fs::create_dir(path)
}

pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    faults::pass()?;
    fs::create_dir_all(path)
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    faults::pass()?;
    fs::rename(from, to)
}

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    faults::pass()?;
    fs::remove_file(path)
}

pub(crate) fn remove_dir_all(path: &Path) -> io::Result<()> {
    faults::pass()?;
    fs::remove_dir_all(path)
}

/// Writes and flushes a file. It must be new: one that stands there may be a link to anywhere.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_new_with(path, &mut |file| file.write_all(bytes))
}

/// The same for a file too large to be held whole.
pub(crate) fn write_new_with(path: &Path, write: &mut dyn FnMut(&mut dyn Target) -> io::Result<()>) -> io::Result<()> {
    faults::pass()?;
    let create = || File::options().write(true).create_new(true).open(path);
    let file = match create() {
        // What a killed process with this number left there.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => remove_file(path).and_then(|()| create())?,
        other => other?,
    };
    let mut target = Steady::of(BufWriter::with_capacity(PIECE, WatchedFile(file)));
    write(&mut target)?;
    let file = target.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    faults::pass()?;
    file.0.sync_all()
}

/// The names in a folder are on disk only after the folder itself was flushed. Where folders cannot be opened (Windows) the rename is all that can be had.
pub(crate) fn flush_folder(path: &Path) -> io::Result<()> {
    faults::pass()?;
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
