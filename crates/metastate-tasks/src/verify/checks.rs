//! The table of checks, and how a file is compared with what it should hold.

use std::path::Path;

use metastate_report::{inside, parse_csv};
use serde::Serialize;

/// A figure that was summed in another order may differ by rounding.
pub const ROUNDING: f64 = 1e-12;

/// What was found about one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Computed a second time, and it stands.
    #[serde(rename = "yes")]
    Yes,
    /// It does not stand.
    #[serde(rename = "NO")]
    No,
    /// The bytes are those that `summary.json` names. Who changes both is not found out.
    #[serde(rename = "hash only")]
    HashOnly,
    /// Nothing was looked at.
    #[serde(rename = "not checked")]
    NotChecked,
}

impl Verdict {
    /// As it stands in the table.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::No => "NO",
            Verdict::HashOnly => "hash only",
            Verdict::NotChecked => "not checked",
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// What the claim is about.
    pub name: String,
    /// What the result says.
    pub reported: String,
    /// What was found.
    pub recomputed: String,
    /// False only where the claim does not stand.
    pub agrees: bool,
    /// How far the claim was looked at.
    pub verdict: Verdict,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// The folder.
    pub result: String,
    /// Whether every claim that was checked stands.
    pub agrees: bool,
    /// All lines.
    pub checks: Vec<Line>,
    /// Lines whose claim was computed a second time.
    pub checked: usize,
    /// Lines about what is only compared by hash.
    pub hash_only: usize,
    /// Lines about what was not looked at.
    pub not_checked: usize,
}

impl Outcome {
    pub(super) fn new(folder: &Path, checks: Checks) -> Self {
        let count = |verdict: Verdict| checks.0.iter().filter(|c| c.verdict == verdict).count();
        Outcome {
            result: folder.display().to_string(),
            agrees: count(Verdict::No) == 0,
            checked: count(Verdict::Yes) + count(Verdict::No),
            hash_only: count(Verdict::HashOnly),
            not_checked: count(Verdict::NotChecked),
            checks: checks.0,
        }
    }
}

/// The lines so far.
#[derive(Default)]
pub struct Checks(Vec<Line>);

impl Checks {
    fn push(&mut self, name: &str, reported: String, recomputed: String, verdict: Verdict) {
        self.0.push(Line { name: name.to_owned(), reported, recomputed, agrees: verdict != Verdict::No, verdict });
    }

    /// A claim and what was found.
    pub fn add(&mut self, name: &str, reported: impl ToString, recomputed: impl ToString, agrees: bool) {
        self.push(name, reported.to_string(), recomputed.to_string(), if agrees { Verdict::Yes } else { Verdict::No });
    }

    /// Two things that must be equal.
    pub fn same<T: PartialEq + ToString>(&mut self, name: &str, reported: T, recomputed: T) {
        let agrees = reported == recomputed;
        self.add(name, reported, recomputed, agrees);
    }

    /// Tables and the like: told by the first place that differs.
    pub fn table(&mut self, name: &str, difference: Option<String>) {
        let found = difference.clone().unwrap_or_else(|| "the same".to_owned());
        self.add(name, "as in the file", found, difference.is_none());
    }

    /// What nobody computes again; `why` says so in a few words.
    pub fn hash_only(&mut self, name: &str, why: &str) {
        self.push(name, "as in the file".to_owned(), why.to_owned(), Verdict::HashOnly);
    }

    /// What nobody looks at.
    pub fn not_checked(&mut self, name: &str, reported: impl ToString, why: &str) {
        self.push(name, reported.to_string(), why.to_owned(), Verdict::NotChecked);
    }
}

/// What a field of a table should be.
#[derive(Debug, Clone)]
pub enum ExpectedCell {
    /// This text to the letter.
    Is(String),
    /// This number but for rounding.
    Near(f64),
    /// Checked elsewhere.
    Free,
}

impl ExpectedCell {
    /// A number written with all its digits.
    pub fn number(x: f64) -> ExpectedCell {
        ExpectedCell::Is(metastate_report::number(x))
    }

    fn fits(&self, field: &str) -> bool {
        match self {
            ExpectedCell::Is(text) => text == field,
            ExpectedCell::Near(x) => field.parse::<f64>().is_ok_and(|found| near(found, *x)),
            ExpectedCell::Free => true,
        }
    }

    fn told(&self) -> String {
        match self {
            ExpectedCell::Is(text) => text.clone(),
            ExpectedCell::Near(x) => metastate_report::number(*x),
            ExpectedCell::Free => String::new(),
        }
    }
}

/// Equal but for rounding; both NaN is equal, too.
pub fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= ROUNDING * expected.abs().max(1.0) || (found.is_nan() && expected.is_nan())
}

/// A table with the names of its columns.
#[derive(Debug, Clone)]
pub struct Named {
    header: Vec<String>,
    /// Without the header.
    pub rows: Vec<Vec<String>>,
}

impl Named {
    /// Reads a CSV file of the folder.
    pub fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let text = inside::read_text(folder, name).map_err(|e| e.to_string())?;
        parse_csv(&text).ok_or_else(|| "a quote is never closed".to_owned()).map(Named::new)
    }

    /// Of rows whose first is the header.
    pub fn new(mut rows: Vec<Vec<String>>) -> Self {
        let header = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
        Named { header, rows }
    }

    /// A field by the name of its column.
    pub fn field(&self, row: usize, column: &str) -> Option<&str> {
        let at = self.header.iter().position(|h| h == column)?;
        self.rows.get(row)?.get(at).map(String::as_str)
    }

    /// The same as a number; NaN where there is none.
    pub fn number(&self, row: usize, column: &str) -> f64 {
        self.field(row, column).and_then(|f| f.parse().ok()).unwrap_or(f64::NAN)
    }

    /// The names of the columns, all of them and in this order; every row as long.
    pub fn wrong_shape(&self, header: &[String], rows: Option<usize>) -> Option<String> {
        let wrong = |k: &usize| self.header.get(*k) != header.get(*k);
        if let Some(k) = (0..header.len().max(self.header.len())).find(wrong) {
            let name = |h: &[String]| h.get(k).map_or("nothing", String::as_str).to_owned();
            return Some(format!("column {} is named {}, should be {}", k + 1, name(&self.header), name(header)));
        }
        if let Some(i) = self.rows.iter().position(|r| r.len() != header.len()) {
            return Some(format!("row {} has {} fields", i + 1, self.rows[i].len()));
        }
        rows.filter(|n| *n != self.rows.len()).map(|n| format!("{} rows, should be {n}", self.rows.len()))
    }

    /// The first field that is not what it should be.
    pub fn difference(&self, header: &[String], rows: &[Vec<ExpectedCell>]) -> Option<String> {
        if let Some(wrong) = self.wrong_shape(header, Some(rows.len())) {
            return Some(wrong);
        }
        for (i, (found, expected)) in self.rows.iter().zip(rows).enumerate() {
            if let Some(k) = (0..expected.len().max(found.len())).find(|&k| match (expected.get(k), found.get(k)) {
                (Some(cell), Some(field)) => !cell.fits(field),
                _ => true,
            }) {
                let told = expected.get(k).map_or_else(String::new, ExpectedCell::told);
                return Some(format!("row {}, {}: should be {told}", i + 1, header.get(k).map_or("", String::as_str)));
            }
        }
        None
    }
}

/// Names of columns: these, and for each number from 1 to `count` those of `each`.
pub fn header(first: &[&str], count: usize, each: &[&str]) -> Vec<String> {
    let numbered = (1..=count).flat_map(|k| each.iter().map(move |name| format!("{name}_{k}")));
    first.iter().map(|name| (*name).to_owned()).chain(numbered).collect()
}
