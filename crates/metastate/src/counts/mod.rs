//! Transition counts: sparse, labelled, with what was left out. The step between data and chain.

mod connectivity;
mod counter;
pub(crate) mod folds;
mod labels;

pub use connectivity::{Connectivity, StateClass};
pub use counter::TransitionCounter;
pub use folds::Folds;
pub use labels::{Label, StateIndex};

use crate::error::{Error, Result};
use crate::ledger::{Ledger, LedgerUnit};
use crate::linalg::Csr;

/// Which pairs of frames, `lag` apart, count as transitions.
///
/// ```
/// use metastate::{CountMode, Counts, StateIndex};
///
/// let frames: Vec<Option<u32>> = [0, 0, 1, 1, 0].map(Some).to_vec();
/// let counted = |mode| Counts::from_trajectories(StateIndex::numbered(2), [frames.clone()], 2, mode);
/// assert_eq!(counted(CountMode::Sliding)?.transitions(), 3.0); // frames 0 and 2, 1 and 3, 2 and 4
/// assert_eq!(counted(CountMode::Strided)?.transitions(), 2.0); // frames 0 and 2, 2 and 4
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CountMode {
    /// Every frame begins a transition: (0, lag), (1, 1 + lag), ... All the data is used; the pairs overlap.
    #[default]
    Sliding,
    /// Only every lag-th frame does: (0, lag), (lag, 2 lag), ... The pairs of a trajectory are a trajectory themselves.
    Strided,
}

/// How often each state was followed by each other state. Counts are `f64`: whole numbers up to 2^53 are exact, and they may be
/// weights, such as the passengers of each trip.
///
/// ```
/// use metastate::{Counts, StateIndex};
///
/// let counts = Counts::from_pairs(StateIndex::numbered(3), [(0, 1), (1, 2), (2, 0), (0, 1)])?;
/// assert_eq!((counts.states(), counts.transitions()), (3, 4.0));
/// assert_eq!(counts.departures(), [2.0, 1.0, 1.0]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    index: StateIndex,
    csr: Csr,
    lag: usize,
    mode: CountMode,
    transitions: f64,
    ledger: Ledger,
}

impl Counts {
    /// Counts trajectories of row numbers of `states`. `None` is an unassigned frame and breaks its trajectory: it is split
    /// there, and no pair spans the gap. Nothing is ever counted from one trajectory into the next.
    pub fn from_trajectories<T: AsRef<[Option<u32>]>>(
        states: StateIndex,
        trajectories: impl IntoIterator<Item = T>,
        lag: usize,
        mode: CountMode,
    ) -> Result<Self> {
        let mut counter = TransitionCounter::new(lag, mode)?;
        trajectories.into_iter().for_each(|t| counter.push_with_gaps(t.as_ref()));
        counter.finish(states)
    }

    /// Counts transitions given one by one, such as trips from pick-up to drop-off.
    pub fn from_pairs(states: StateIndex, pairs: impl IntoIterator<Item = (u32, u32)>) -> Result<Self> {
        let mut counter = TransitionCounter::new(1, CountMode::Sliding)?;
        let mut pairs = pairs.into_iter();
        let mut part = Vec::with_capacity(1 << 12);
        loop {
            part.clear();
            part.extend(pairs.by_ref().take(1 << 12));
            if part.is_empty() {
                break;
            }
            counter.push_pairs(&part);
        }
        counter.finish(states)
    }

    /// From (from, to, count) in any order; the same pair may come again and is added up.
    pub fn from_triplets(states: StateIndex, triplets: &[(u32, u32, f64)]) -> Result<Self> {
        for &(i, j, n) in triplets {
            check_count(i as usize, j as usize, n)?;
        }
        let csr = Csr::from_triplets(states.len(), states.len(), triplets)?;
        Counts::assemble(states, csr, 1, CountMode::Sliding, Ledger::new())
    }

    /// From a sparse matrix of counts.
    pub fn from_csr(states: StateIndex, csr: Csr) -> Result<Self> {
        for (i, j, n) in csr.triplets() {
            check_count(i as usize, j as usize, n)?;
        }
        let csr = if csr.values().contains(&0.0) { without_zeros(&csr)? } else { csr };
        Counts::assemble(states, csr, 1, CountMode::Sliding, Ledger::new())
    }

    /// The last checks, common to all ways in. Values are finite and positive by now.
    fn assemble(index: StateIndex, csr: Csr, lag: usize, mode: CountMode, ledger: Ledger) -> Result<Self> {
        for (what, found) in [("the count matrix (rows)", csr.rows()), ("the count matrix (columns)", csr.cols())] {
            if found != index.len() {
                return Err(Error::SizeMismatch { what, expected: index.len(), found });
            }
        }
        let transitions: f64 = csr.values().iter().sum();
        if !transitions.is_finite() {
            return Err(Error::NotFinite { what: "the sum of all counts", row: 0, column: 0, value: transitions });
        }
        Ok(Counts { index, csr, lag, mode, transitions, ledger })
    }

    /// Says at which lag and how these counts were made, when that happened elsewhere.
    pub fn with_lag(mut self, lag: usize, mode: CountMode) -> Result<Self> {
        TransitionCounter::new(lag, mode)?;
        self.lag = lag;
        self.mode = mode;
        Ok(self)
    }

    /// Number of states.
    #[must_use]
    pub fn states(&self) -> usize {
        self.index.len()
    }

    /// The labels of the states.
    #[must_use]
    pub fn index(&self) -> &StateIndex {
        &self.index
    }

    /// The counts, row = from, column = to; positive entries only.
    #[must_use]
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// Frames between the two ends of a transition.
    #[must_use]
    pub fn lag(&self) -> usize {
        self.lag
    }

    /// Which pairs of frames were counted.
    #[must_use]
    pub fn mode(&self) -> CountMode {
        self.mode
    }

    /// Number of transitions (the total weight).
    #[must_use]
    pub fn transitions(&self) -> f64 {
        self.transitions
    }

    /// What was left out so far.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The ledger, to add what a reader left out.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Transitions out of each state (row sums), `n_i` in (2.2).
    #[must_use]
    pub fn departures(&self) -> Vec<f64> {
        self.csr.row_sums()
    }

    /// Transitions into each state (column sums), `n xi_j` in (2.1).
    #[must_use]
    pub fn arrivals(&self) -> Vec<f64> {
        self.csr.column_sums()
    }

    /// Transitions of each state to itself (the diagonal).
    #[must_use]
    pub fn self_counts(&self) -> Vec<f64> {
        (0..self.states())
            .map(|i| {
                let (columns, values) = self.csr.row(i);
                columns.binary_search(&(i as u32)).map_or(0.0, |k| values[k])
            })
            .collect()
    }

    /// Adds the counts of both, state by state as the labels say. The rows of `self` come first, then the states that only
    /// `other` knows. Both must have been counted alike: the same lag and, when it is above 1, the same mode.
    pub fn merge(&self, other: &Counts) -> Result<Counts> {
        if self.lag != other.lag {
            return Err(Error::Setting {
                name: "the lag of the counts to merge",
                value: format!("{} against {}", other.lag, self.lag),
                allowed: "counts can be added only when they have the same lag; count both again with one lag",
            });
        }
        if self.lag > 1 && self.mode != other.mode {
            return Err(Error::Setting {
                name: "the way of counting of the counts to merge",
                value: format!("{:?} against {:?}", other.mode, self.mode),
                allowed: "counts can be added only when both are sliding or both are strided; count both again alike",
            });
        }
        let mut index = self.index.clone();
        let rows: Vec<u32> = other.index.labels().map(|label| index.get_or_insert(label)).collect();
        let mut triplets: Vec<_> = self.csr.triplets().collect();
        triplets.extend(other.csr.triplets().map(|(i, j, n)| (rows[i as usize], rows[j as usize], n)));
        let csr = Csr::from_triplets(index.len(), index.len(), &triplets)?;
        let mut ledger = self.ledger.clone();
        ledger.merge(&other.ledger);
        Counts::assemble(index, csr, self.lag, self.mode, ledger)
    }

    /// Only the states named, in the order they have now; transitions from or to any other state go. `reason` is the key
    /// under which the ledger lists it.
    pub fn restrict(&self, keep: &[usize], reason: &str) -> Result<Counts> {
        let d = self.states();
        let mut kept = vec![false; d];
        for &i in keep {
            *kept.get_mut(i).ok_or(Error::IndexOutOfRange { what: "state", index: i as u64, len: d })? = true;
        }
        let keep: Vec<usize> = (0..d).filter(|&i| kept[i]).collect();
        let csr = self.csr.restrict(&keep);
        let mut ledger = self.ledger.clone();
        let lost = self.transitions - csr.values().iter().sum::<f64>();
        let gone = (0..d).filter(|&i| !kept[i]).map(|i| self.index.label(i).to_string());
        ledger.add(reason, LedgerUnit::States, (d - keep.len()) as u64, 0.0, gone);
        ledger.add(reason, LedgerUnit::Transitions, lost.round() as u64, lost, [] as [String; 0]);
        Counts::assemble(self.index.restricted(&keep), csr, self.lag, self.mode, ledger)
    }
}

fn check_count(row: usize, column: usize, value: f64) -> Result<()> {
    let what = "the counts";
    if !value.is_finite() {
        return Err(Error::NotFinite { what, row, column, value });
    }
    if value < 0.0 {
        return Err(Error::Negative { what, row, column, value });
    }
    Ok(())
}

fn without_zeros(csr: &Csr) -> Result<Csr> {
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for i in 0..csr.rows() {
        let (columns, entries) = csr.row(i);
        for (&j, &n) in columns.iter().zip(entries).filter(|(_, n)| **n != 0.0) {
            indices.push(j);
            values.push(n);
        }
        indptr.push(indices.len());
    }
    Csr::from_parts(csr.rows(), csr.cols(), indptr, indices, values)
}
