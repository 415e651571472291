//! Why a folder could not be written or read.

use std::path::{Path, PathBuf};

/// A refusal, with the file it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The place is taken.
    #[error("there is something at {} already", .0.display())]
    Exists(PathBuf),
    /// The place is taken by something that is no folder.
    #[error("{} is a file, where a folder is to be written", .0.display())]
    NoFolder(PathBuf),
    /// The place is taken by a folder that somebody else made.
    #[error("{} is a folder that metastate did not write", .0.display())]
    NotOurs(PathBuf),
    /// Another run has the place.
    #[error("another run is writing to {}", .0.display())]
    Busy(PathBuf),
    /// The operating system said no.
    #[error("{} cannot be {doing} ({cause})", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// "read" or "written".
        doing: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is there and is not what it should be.
    #[error("{} {what}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// "ends too early", ...
        what: String,
    },
    /// The folder has the layout of another version.
    #[error(
        "{} is of the layout `{found}`, and this version reads `{}`; fit again with this version{}",
        .path.display(), crate::SCHEMA, if .command.is_empty() { String::new() } else { format!(": {command}") }
    )]
    OtherSchema {
        /// `summary.json`.
        path: PathBuf,
        /// The layout that it names.
        found: String,
        /// The command that made it; empty where it names none.
        command: String,
    },
    /// Text cannot be drawn.
    #[error(
        "no font was found on this machine, so plots cannot be drawn as PNG; install one (Debian: fonts-dejavu-core), or use the SVG files"
    )]
    NoFont,
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn reading(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |cause| Error::Io { path: path.to_owned(), doing: "read", cause }
}

pub(crate) fn writing(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |cause| Error::Io { path: path.to_owned(), doing: "written", cause }
}

pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
    Error::Damaged { path: path.to_owned(), what: what.into() }
}
