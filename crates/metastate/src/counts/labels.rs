//! Labels: what the user calls a state, and the number it has inside.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The name of a state, as it stood in the data. It prints exactly as it came in.
///
/// ```
/// use metastate::Label;
///
/// assert_eq!(Label::from("Harlem").to_string(), "Harlem");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A whole number.
    Integer(i64),
    /// Any other text.
    Text(Box<str>),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Integer(n) => n.fmt(f),
            Label::Text(s) => s.fmt(f),
        }
    }
}

impl From<i64> for Label {
    fn from(n: i64) -> Self {
        Label::Integer(n)
    }
}

/// The integer that is written exactly so. "7" is one; "007", "+7" and "-0" are not, since they would print differently.
fn canonical_integer(s: &str) -> Option<i64> {
    let digits = s.strip_prefix('-').unwrap_or(s);
    let plain = match digits.as_bytes() {
        [b'0'] => digits.len() == s.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if plain { s.parse().ok() } else { None }
}

/// A text that is the usual writing of an integer becomes that integer, so that `12` read from a text file and 12 read from
/// an array are one state; every other text (`007`, `12.0`, ` 12`, integers beyond 64 bits) is kept as it is.
impl From<&str> for Label {
    fn from(s: &str) -> Self {
        canonical_integer(s).map_or_else(|| Label::Text(s.into()), Label::Integer)
    }
}

/// As from `&str`.
impl From<String> for Label {
    fn from(s: String) -> Self {
        canonical_integer(&s).map_or_else(|| Label::Text(s.into_boxed_str()), Label::Integer)
    }
}

/// Labels and the rows they stand for, both ways. Cloning is cheap.
///
/// ```
/// use metastate::{Label, StateIndex};
///
/// let names = StateIndex::from_labels(vec![Label::from("home"), Label::from("work")])?;
/// assert_eq!(names.position(&Label::from("work")), Some(1));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct StateIndex {
    kind: Naming,
}

#[derive(Debug, Clone)]
enum Naming {
    /// Labels `0..d`, nothing stored.
    Numbered(u32),
    Listed(Arc<Listed>),
}

#[derive(Debug, Clone, Default)]
struct Listed {
    labels: Vec<Label>,
    positions: HashMap<Label, u32>,
}

impl Default for StateIndex {
    fn default() -> Self {
        StateIndex::new()
    }
}

impl PartialEq for StateIndex {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Naming::Numbered(a), Naming::Numbered(b)) => a == b,
            (Naming::Listed(a), Naming::Listed(b)) if Arc::ptr_eq(a, b) => true,
            _ => self.len() == other.len() && self.labels().eq(other.labels()),
        }
    }
}

impl StateIndex {
    /// No states yet.
    #[must_use]
    pub fn new() -> Self {
        StateIndex { kind: Naming::Numbered(0) }
    }

    /// Labels 0 to d - 1, each standing for its own row. Takes no memory.
    #[must_use]
    pub fn numbered(d: usize) -> Self {
        StateIndex { kind: Naming::Numbered(u32::try_from(d).unwrap_or(u32::MAX)) }
    }

    /// The labels in this order.
    pub fn from_labels(labels: Vec<Label>) -> Result<Self> {
        let mut positions = HashMap::with_capacity(labels.len());
        for (i, label) in labels.iter().enumerate() {
            if positions.insert(label.clone(), i as u32).is_some() {
                return Err(Error::DuplicateLabel { label: label.to_string() });
            }
        }
        Ok(StateIndex { kind: Naming::Listed(Arc::new(Listed { labels, positions })) })
    }

    /// Number of states.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.kind {
            Naming::Numbered(d) => *d as usize,
            Naming::Listed(list) => list.labels.len(),
        }
    }

    /// True when there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label of row `i`, which must be below [`len`](Self::len), as for a slice.
    #[must_use]
    pub fn label(&self, i: usize) -> Label {
        match &self.kind {
            Naming::Numbered(d) => {
                assert!(i < *d as usize, "row {i} of an index of {d} states");
                Label::Integer(i as i64)
            }
            Naming::Listed(list) => list.labels[i].clone(),
        }
    }

    /// All labels, row by row.
    pub fn labels(&self) -> impl Iterator<Item = Label> + '_ {
        (0..self.len()).map(|i| self.label(i))
    }

    /// The row of a label.
    #[must_use]
    pub fn position(&self, label: &Label) -> Option<u32> {
        match &self.kind {
            Naming::Numbered(d) => match label {
                Label::Integer(n) => u32::try_from(*n).ok().filter(|n| n < d),
                Label::Text(_) => None,
            },
            Naming::Listed(list) => list.positions.get(label).copied(),
        }
    }

    /// The row of a label; a new label gets the next row.
    pub fn get_or_insert(&mut self, label: Label) -> u32 {
        if let Some(i) = self.position(&label) {
            return i;
        }
        let next = self.len() as u32;
        if let Naming::Numbered(d) = &mut self.kind {
            if label == Label::Integer(i64::from(*d)) {
                *d += 1;
                return next;
            }
            let labels: Vec<Label> = (0..i64::from(*d)).map(Label::Integer).collect();
            let positions = labels.iter().cloned().zip(0..).collect();
            self.kind = Naming::Listed(Arc::new(Listed { labels, positions }));
        }
        if let Naming::Listed(list) = &mut self.kind {
            let list = Arc::make_mut(list);
            list.labels.push(label.clone());
            list.positions.insert(label, next);
        }
        next
    }

    /// The rows named (ascending), renumbered from 0.
    pub(crate) fn restricted(&self, keep: &[usize]) -> StateIndex {
        if keep.len() == self.len() {
            return self.clone();
        }
        let labels: Vec<Label> = keep.iter().map(|&i| self.label(i)).collect();
        let positions = labels.iter().cloned().zip(0..).collect();
        StateIndex { kind: Naming::Listed(Arc::new(Listed { labels, positions })) }
    }
}
