//! The ledger: everything that was left out on the way from the data to the answer, how much it was, and why.

use std::fmt;

/// At most so many examples are kept for each entry.
const EXAMPLES: usize = 5;

/// What an entry of the ledger counts.
///
/// See the example of [`Ledger`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LedgerUnit {
    /// Rows of a file.
    Rows,
    /// Observed transitions.
    Transitions,
    /// States of the chain.
    States,
    /// Trajectories, or their pieces between gaps.
    Trajectories,
    /// Frames of trajectories.
    Frames,
}

impl fmt::Display for LedgerUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LedgerUnit::Rows => "rows",
            LedgerUnit::Transitions => "transitions",
            LedgerUnit::States => "states",
            LedgerUnit::Trajectories => "trajectories",
            LedgerUnit::Frames => "frames",
        })
    }
}

/// One reason why something was left out.
///
/// ```
/// use metastate::{Ledger, LedgerUnit};
///
/// let mut ledger = Ledger::new();
/// ledger.add("no-destination", LedgerUnit::Rows, 2, 0.0, ["line 7", "line 9"]);
/// assert_eq!(ledger.get("no-destination", LedgerUnit::Rows).map(|e| e.count), Some(2));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// A stable key in kebab case, such as `never-left`.
    pub reason: String,
    /// What is counted.
    pub unit: LedgerUnit,
    /// How many were left out.
    pub count: u64,
    /// How much weight (transitions, unless the reason says otherwise) went with them.
    pub weight: f64,
    /// At most five labels or places, to know where to look.
    pub examples: Vec<String>,
}

/// What was left out, and why.
///
/// ```
/// use metastate::{Ledger, LedgerUnit};
///
/// let mut ledger = Ledger::new();
/// ledger.add("no-destination", LedgerUnit::Rows, 2, 0.0, ["line 7"]);
/// ledger.add("no-destination", LedgerUnit::Rows, 1, 0.0, ["line 9"]);
/// assert_eq!(ledger.to_string(), "no-destination: 3 rows (such as line 7, line 9, ...)");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ledger {
    entries: Vec<LedgerEntry>,
}

impl Ledger {
    /// Nothing left out.
    #[must_use]
    pub fn new() -> Self {
        Ledger::default()
    }

    /// Adds to the entry with this reason and unit, or begins it. A count of zero leaves no trace.
    pub fn add<E: Into<String>>(&mut self, reason: &str, unit: LedgerUnit, count: u64, weight: f64, examples: impl IntoIterator<Item = E>) {
        if count == 0 && weight == 0.0 {
            return;
        }
        let at = self.entries.iter().position(|e| e.unit == unit && e.reason == reason).unwrap_or_else(|| {
            self.entries.push(LedgerEntry { reason: reason.to_owned(), unit, count: 0, weight: 0.0, examples: Vec::new() });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[at];
        entry.count += count;
        entry.weight += weight;
        let room = EXAMPLES - entry.examples.len();
        entry.examples.extend(examples.into_iter().take(room).map(Into::into));
    }

    /// Adds all entries of another ledger.
    pub fn merge(&mut self, other: &Ledger) {
        for e in &other.entries {
            self.add(&e.reason, e.unit, e.count, e.weight, e.examples.iter().cloned());
        }
    }

    /// The entries, in the order in which their reasons first came up.
    pub fn iter(&self) -> std::slice::Iter<'_, LedgerEntry> {
        self.entries.iter()
    }

    /// The entry with this reason and unit.
    #[must_use]
    pub fn get(&self, reason: &str, unit: LedgerUnit) -> Option<&LedgerEntry> {
        self.entries.iter().find(|e| e.unit == unit && e.reason == reason)
    }

    /// True when nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<'a> IntoIterator for &'a Ledger {
    type Item = &'a LedgerEntry;
    type IntoIter = std::slice::Iter<'a, LedgerEntry>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for LedgerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.reason, self.count, self.unit)?;
        if self.weight != 0.0 && self.weight != self.count as f64 {
            write!(f, ", weight {}", self.weight)?;
        }
        if !self.examples.is_empty() {
            let more = if self.count > self.examples.len() as u64 { ", ..." } else { "" };
            write!(f, " (such as {}{more})", self.examples.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entries.is_empty() {
            return f.write_str("nothing was left out");
        }
        for (k, entry) in self.entries.iter().enumerate() {
            if k > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{entry}")?;
        }
        Ok(())
    }
}
