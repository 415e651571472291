//! One type for everything that can go wrong: a stable code, a sentence, the place, the remedy, and the exit code.

use std::fmt;
use std::path::Path;

use metastate_ingest::IngestError;
use metastate_options::{Door, OptionError};

/// Bad arguments or bad input: nothing was written.
pub const BAD_INPUT: u8 = 2;
/// Anything else.
pub const FAILED: u8 = 1;
/// Stopped by a signal.
pub const INTERRUPTED: u8 = 130;

/// What the user reads when the command did not do its work.
#[derive(Debug, Clone, PartialEq)]
pub struct CliError {
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    code: &'static str,
    sentence: String,
    place: Option<String>,
    remedy: Option<String>,
    exit: u8,
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, CliError>;

impl CliError {
    /// Bad arguments or bad input.
    pub fn bad(code: &'static str, sentence: impl Into<String>) -> Self {
        CliError { inner: Box::new(Inner { code, sentence: sentence.into(), place: None, remedy: None, exit: BAD_INPUT }) }
    }

    /// Anything else.
    pub fn failed(code: &'static str, sentence: impl Into<String>) -> Self {
        let mut error = CliError::bad(code, sentence);
        error.inner.exit = FAILED;
        error
    }

    /// Stopped by a signal.
    pub fn interrupted(sentence: impl Into<String>) -> Self {
        let mut error = CliError::bad("E-CLI-INTERRUPTED", sentence);
        error.inner.exit = INTERRUPTED;
        error
    }

    /// Where.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.inner.place = Some(place.into());
        self
    }

    /// What to do.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.inner.remedy = Some(remedy.into());
        self
    }

    /// The same, with one thing more to do after the remedy.
    pub fn and_then_try(mut self, more: &str) -> Self {
        let first = self.inner.remedy.take();
        self.inner.remedy = Some(first.map_or_else(|| more.to_owned(), |first| format!("{first}; {more}")));
        self
    }

    /// The same, blamed on what was given: exit code 2.
    pub fn blame_input(mut self) -> Self {
        self.inner.exit = BAD_INPUT;
        self
    }

    /// The stable code, for `metastate explain`.
    pub fn code(&self) -> &'static str {
        self.inner.code
    }

    /// The exit code of the process.
    pub fn exit(&self) -> u8 {
        self.inner.exit
    }

    /// The place of a result is taken.
    pub fn exists(place: &Path) -> Self {
        CliError::bad("E-CLI-EXISTS", "there is something at this place already, and it is not overwritten")
            .at(place.display().to_string())
            .remedy("name another place, or say --force to replace it")
    }

    /// A file that could not be written.
    pub fn write(place: &Path, cause: impl fmt::Display) -> Self {
        CliError::failed("E-CLI-WRITE", format!("this cannot be written ({cause})"))
            .at(place.display().to_string())
            .remedy("check the place, its permissions and its free space")
    }
}

impl CliError {
    /// An option that cannot be used, in the words of the door it came through.
    pub fn option(e: &OptionError, door: Door) -> Self {
        let error = CliError::bad("E-CLI-ARGUMENT", e.told(door));
        match e.advice(door) {
            Some(advice) => error.remedy(advice),
            None => error,
        }
    }
}

impl From<OptionError> for CliError {
    fn from(e: OptionError) -> Self {
        CliError::option(&e, Door::Command)
    }
}

impl From<IngestError> for CliError {
    fn from(e: IngestError) -> Self {
        if e.is_cancelled() {
            return CliError::interrupted("interrupted while reading; nothing was written, so there is nothing to resume");
        }
        let met = e.value_met().map_or_else(String::new, |v| format!(" (met `{v}`)"));
        let mut error = CliError::bad(e.code(), format!("{}{met}", e.sentence()));
        // A disk that fails is no fault of the input.
        if matches!(e.code(), "E-INGEST-READ" | "E-INGEST-WRITE") {
            error.inner.exit = FAILED;
        }
        let place = e.place().to_string();
        error.inner.place = if place.is_empty() { None } else { Some(place) };
        error.inner.remedy = e.what_to_do().map(str::to_owned);
        error
    }
}

impl From<metastate::Error> for CliError {
    fn from(e: metastate::Error) -> Self {
        if let metastate::Error::Unfinished { .. } = e {
            return CliError::failed(e.code(), e.to_string())
                .remedy("remove the checkpoint folders beside the result and run without --resume");
        }
        let too_few = matches!(e, metastate::Error::Empty { what: "the held-out part" });
        let error = CliError::bad(e.code(), e.to_string());
        match too_few {
            true => error.remedy(
                "there are too few transitions to hold some of them out, which choosing needs: give more rows, or choose yourself, such as --lambda-ratio 0.5",
            ),
            false => error,
        }
    }
}

impl From<metastate_report::Error> for CliError {
    fn from(e: metastate_report::Error) -> Self {
        match e {
            metastate_report::Error::Exists(place) => CliError::exists(&place),
            metastate_report::Error::NoFolder(place) => CliError::bad(
                "E-CLI-EXISTS",
                "there is a file at this place, and a folder is to be written; a file is never replaced by a folder",
            )
            .at(place.display().to_string())
            .remedy("name another place with --out, or remove the file yourself"),
            metastate_report::Error::NotOurs(place) => CliError::bad(
                "E-CLI-EXISTS",
                "there is a folder at this place that metastate did not write, and --force replaces only what metastate wrote",
            )
            .at(place.display().to_string())
            .remedy("name another place with --out, or remove the folder yourself"),
            metastate_report::Error::Busy(place) => CliError::bad("E-CLI-BUSY", "another run is writing to this place")
                .at(place.display().to_string())
                .remedy("wait until it is done, or name another place with --out"),
            metastate_report::Error::Io { path, doing: "written", cause } => CliError::write(&path, cause),
            metastate_report::Error::Io { path, cause, .. }
                if path.ends_with("summary.json") && cause.kind() == std::io::ErrorKind::NotFound =>
            {
                let folder = path.parent().unwrap_or(&path);
                CliError::bad("E-CLI-RESULT", "there is no result here: no summary.json was found")
                    .at(folder.display().to_string())
                    .remedy("name a folder that `metastate fit` wrote")
            }
            metastate_report::Error::Io { path, cause, .. } => {
                CliError::failed("E-CLI-RESULT", format!("this file of a result cannot be read ({cause})"))
                    .at(path.display().to_string())
                    .remedy("name a folder that `metastate fit` wrote")
            }
            metastate_report::Error::OtherSchema { path, found, command } => {
                let sentence = format!("this result has the layout `{found}`, and this version reads `{}`", metastate_report::SCHEMA);
                let remedy = if command.is_empty() {
                    "fit again with this version".to_owned()
                } else {
                    format!("fit again with this version: {command}")
                };
                CliError::failed("E-CLI-RESULT", sentence).at(path.display().to_string()).remedy(remedy)
            }
            e @ metastate_report::Error::NoFont => CliError::failed("E-CLI-FONT", e.to_string()),
            metastate_report::Error::Damaged { path, what } => CliError::failed("E-CLI-RESULT", format!("this file {what}"))
                .at(path.display().to_string())
                .remedy("it was changed or damaged after `metastate fit` wrote it; fit again"),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.inner.code, self.inner.sentence)?;
        if let Some(place) = &self.inner.place {
            write!(f, "\n  at: {place}")?;
        }
        if let Some(remedy) = &self.inner.remedy {
            write!(f, "\n  try: {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CliError {}
