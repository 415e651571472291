//! Why an input was refused: a stable code, one sentence, the place, the value met, and what to do.

use std::fmt;

use crate::codes::Code;

/// Where in the inputs something was met. Lines and rows are numbered from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// File name as the user gave it.
    pub file: Option<String>,
    /// Line of a text file.
    pub line: Option<u64>,
    /// Row of a file without lines (Parquet, matrices).
    pub row: Option<u64>,
    /// Column by name, or by number for matrices.
    pub column: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.file.clone());
        parts.extend(self.line.map(|n| format!("line {n}")));
        parts.extend(self.row.map(|n| format!("row {n}")));
        // An option stands for itself.
        parts.extend(self.column.as_ref().map(|c| if c.starts_with("--") { c.clone() } else { format!("column {c}") }));
        f.write_str(&parts.join(", "))
    }
}

/// An input that was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct IngestError {
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    code: &'static str,
    sentence: String,
    place: Place,
    value: Option<String>,
    remedy: Option<String>,
    /// The library's own error, when it was the library that refused.
    core: Option<metastate::Error>,
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, IngestError>;

/// Values from files are shown up to this length; a binary file read as text must not fill the screen.
const SHOWN: usize = 60;

impl IngestError {
    /// A refusal; `sentence` says what happened, without a full stop.
    pub fn new(code: Code, sentence: impl Into<String>) -> Self {
        let inner =
            Inner { code: code.as_str(), sentence: sentence.into(), place: Place::default(), value: None, remedy: None, core: None };
        IngestError { inner: Box::new(inner) }
    }

    /// What the library says about data that came from `file`.
    pub fn from_core(error: metastate::Error, file: Option<&str>) -> Self {
        let place = Place { file: file.map(str::to_owned), ..Place::default() };
        let inner = Inner { code: error.code(), sentence: error.to_string(), place, value: None, remedy: None, core: Some(error) };
        IngestError { inner: Box::new(inner) }
    }

    /// Names the file, unless one is named already.
    pub fn file(mut self, name: impl Into<String>) -> Self {
        self.inner.place.file.get_or_insert(name.into());
        self
    }

    /// Names the line of a text file, from 1.
    pub fn line(mut self, line: u64) -> Self {
        self.inner.place.line = Some(line);
        self
    }

    /// Names the row, from 1.
    pub fn row(mut self, row: u64) -> Self {
        self.inner.place.row = Some(row);
        self
    }

    /// Names the column.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.inner.place.column = Some(column.into());
        self
    }

    /// The value met.
    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.inner.value = Some(shorten(&value.into()));
        self
    }

    /// What to do about it.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.inner.remedy = Some(remedy.into());
        self
    }

    /// Stable code, for scripts and `metastate explain`.
    pub fn code(&self) -> &'static str {
        self.inner.code
    }

    /// What happened, in one sentence without place and remedy.
    pub fn sentence(&self) -> &str {
        &self.inner.sentence
    }

    /// Where it happened.
    pub fn place(&self) -> &Place {
        &self.inner.place
    }

    /// The value met, if there was one.
    pub fn value_met(&self) -> Option<&str> {
        self.inner.value.as_deref()
    }

    /// What to do, if there is something.
    pub fn what_to_do(&self) -> Option<&str> {
        self.inner.remedy.as_deref()
    }

    /// The library's error behind this one.
    pub fn core(&self) -> Option<&metastate::Error> {
        self.inner.core.as_ref()
    }

    /// Whether the caller's [`crate::ReadProgress`] asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.inner.code == Code::Cancelled.as_str()
    }
}

impl fmt::Display for IngestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.inner.place.to_string();
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.inner.sentence)?;
        if let Some(value) = &self.inner.value {
            write!(f, " (met `{value}`)")?;
        }
        if let Some(remedy) = &self.inner.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for IngestError {}

/// At most [`SHOWN`] characters, control characters escaped.
pub(crate) fn shorten(text: &str) -> String {
    let mut out: String =
        text.chars().take(SHOWN).flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// The name that is close enough to the wanted one to be what was meant.
pub fn nearest<'a>(wanted: &str, have: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let score = |name: &str| {
        let name = name.to_lowercase();
        strsim::jaro_winkler(&wanted, &name).max(strsim::normalized_damerau_levenshtein(&wanted, &name))
    };
    let best = have.into_iter().map(|name| (score(name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.8).map(|(_, name)| name)
}

/// "did you mean `x`?" when a name is close enough to be a slip, else the list of what there is.
pub(crate) fn did_you_mean(wanted: &str, have: &[String]) -> String {
    match nearest(wanted, have.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{}`?", shorten(name)),
        None if have.is_empty() => "there are no columns".to_owned(),
        None => {
            let shown: Vec<String> = have.iter().take(12).map(|n| format!("`{}`", shorten(n))).collect();
            let more = if have.len() > 12 { format!(" and {} more", have.len() - 12) } else { String::new() };
            format!("the columns are {}{more}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_one_sentence() {
        let e = IngestError::new(Code::Number, "this is not a number")
            .file("a.csv")
            .line(7)
            .column("fare")
            .value("x\u{7}y")
            .remedy("correct it");
        assert_eq!(e.to_string(), "a.csv, line 7, column fare: this is not a number (met `x\\u{7}y`); correct it");
        assert_eq!(e.code(), "E-INGEST-NUMBER");
    }

    #[test]
    fn slips_are_met_with_the_right_name() {
        let have = vec!["pickup_lon".to_owned(), "pickup_lat".to_owned()];
        assert_eq!(did_you_mean("pikup_lon", &have), "did you mean `pickup_lon`?");
        assert_eq!(did_you_mean("zzz", &have), "the columns are `pickup_lon`, `pickup_lat`");
    }
}
