//! Slices with shared zones: one set of states that are left, and a column for each slice (an hour, a weekday) and each state that is reached in it. `X = U V^T` then has one U for all slices, and a
//! column of V splits into when, `p(slice | meta-state)`, and where in that slice.

use std::ops::Range;
use std::sync::Arc;

use super::empirical::transition_matrix;
use super::{Chain, Estimate};
use crate::counts::{Counts, StateIndex};
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat};
use crate::solve::Factors;

/// Counts for each slice: rows are states, columns are pairs of a slice and a state.
///
/// ```
/// use metastate::{Chain, Counts, Csr, Estimate, Label, SlicedCounts, StateIndex};
///
/// // In the morning from home (0) to work (1), in the evening back.
/// let slices = StateIndex::from_labels(vec![Label::from("morning"), Label::from("evening")])?;
/// let columns = vec![(0, 1), (1, 0)]; // (slice, state reached)
/// let sliced = SlicedCounts { slices, columns, counts: Csr::from_triplets(2, 2, &[(0, 0, 5.0), (1, 1, 5.0)])? };
/// let counts = Counts::from_triplets(StateIndex::numbered(2), &[(0, 1, 5.0), (1, 0, 5.0)])?; // the same without slices
/// let (chain, with) = Chain::sliced(&counts, &sliced, &Estimate::default())?;
/// assert_eq!((chain.p().cols(), with.slices.len(), with.whole.goes_on()), (2, 2, true));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SlicedCounts {
    /// The slices, in their order.
    pub slices: StateIndex,
    /// Slice and state of each column, by their numbers, ascending.
    pub columns: Vec<(u32, u32)>,
    /// The counts; summed over slices they are those of the states.
    pub counts: Csr,
}

/// Which column of a chain is which slice and which state.
///
/// ```
/// use metastate::{Slices, StateIndex};
///
/// // In slice 0 both states are reached, in slice 1 only state 1.
/// let slices = Slices::new(StateIndex::numbered(2), vec![(0, 0), (0, 1), (1, 1)], 2)?;
/// assert_eq!((slices.of(0), slices.of(1)), (0..2, 2..3));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Slices {
    labels: StateIndex,
    columns: Vec<(u32, u32)>,
    /// Where the columns of each slice begin; its end last.
    starts: Vec<usize>,
    states: usize,
}

impl Slices {
    /// Columns as pairs of a slice and a state, ascending and each once, every slice with at least one.
    pub fn new(labels: StateIndex, columns: Vec<(u32, u32)>, states: usize) -> Result<Self> {
        let wrong = |what| Err(Error::SizeMismatch { what, expected: labels.len(), found: columns.len() });
        if columns.windows(2).any(|w| w[0] >= w[1]) || columns.iter().any(|c| c.1 as usize >= states) {
            return wrong("the columns of the slices (ascending, of the states)");
        }
        let starts: Vec<usize> = (0..=labels.len() as u32).map(|h| columns.partition_point(|c| c.0 < h)).collect();
        if labels.is_empty() || starts.windows(2).any(|w| w[0] == w[1]) || starts.last() != Some(&columns.len()) {
            return wrong("the slices that have columns");
        }
        Ok(Slices { labels, columns, starts, states })
    }

    /// The slices.
    #[must_use]
    pub fn labels(&self) -> &StateIndex {
        &self.labels
    }

    /// Number of slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Never: there is at least one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Number of states.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states
    }

    /// Slice and state of each column.
    #[must_use]
    pub fn columns(&self) -> &[(u32, u32)] {
        &self.columns
    }

    /// The columns of a slice.
    #[must_use]
    pub fn of(&self, slice: usize) -> Range<usize> {
        self.starts[slice]..self.starts[slice + 1]
    }

    /// The profiles of all slices together: row `a` is the sum over the slices of the rows that lead to state a. `U` and this are a model of the chain without its slices.
    #[must_use]
    pub fn whole(&self, v: &Mat) -> Mat {
        let mut sum = Mat::zeros(self.states, v.cols());
        for (row, &(_, state)) in self.columns.iter().enumerate() {
            sum.row_mut(state as usize).iter_mut().zip(v.row(row)).for_each(|(sum, v)| *sum += v);
        }
        sum
    }

    /// The model of the chain without its slices.
    #[must_use]
    pub fn whole_model(&self, model: &Factors) -> Factors {
        Factors { u: model.u.clone(), v: self.whole(&model.v) }
    }

    /// Counts by column, added up over the slices.
    pub fn whole_counts(&self, counts: &Csr) -> Result<Csr> {
        let triplets: Vec<(u32, u32, f64)> = counts.triplets().map(|(i, c, n)| (i, self.columns[c as usize].1, n)).collect();
        Csr::from_triplets(counts.rows(), self.states, &triplets)
    }
}

/// A chain with its slices, and the same without them.
#[derive(Debug, Clone)]
pub struct Sliced {
    /// Which column is what.
    pub slices: Arc<Slices>,
    /// The chain of the same states without slices, in which each step begins where the step before ended.
    pub whole: Chain,
}

impl Chain {
    /// The empirical chain of counts with slices. The states are those that [`estimate`](Chain::estimate) keeps of the counts without slices, with its weights; a slice without any move between them goes, and its moves stand in the ledger with the states that they left or reached.
    pub fn sliced(counts: &Counts, sliced: &SlicedCounts, options: &Estimate) -> Result<(Chain, Sliced)> {
        for (what, expected, found) in [
            ("the counts by slice (rows)", counts.states(), sliced.counts.rows()),
            ("the counts by slice (columns)", sliced.columns.len(), sliced.counts.cols()),
        ] {
            if expected != found {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        let whole = Chain::estimate(counts, options)?;
        let mut place = vec![u32::MAX; counts.states()];
        whole.kept().iter().enumerate().for_each(|(new, &old)| place[old] = new as u32);
        let inside: Vec<usize> = (0..sliced.columns.len()).filter(|&c| place[sliced.columns[c].1 as usize] != u32::MAX).collect();
        let rows = sliced.counts.restrict_sides(whole.kept(), &inside);
        let reached = rows.column_sums();
        let seen: Vec<usize> = (0..inside.len()).filter(|&c| reached[c] > 0.0).collect();
        let all: Vec<usize> = (0..rows.rows()).collect();
        let rows = rows.restrict_sides(&all, &seen);
        let met: Vec<(u32, u32)> = seen.iter().map(|&c| sliced.columns[inside[c]]).collect();
        let mut kept: Vec<usize> = met.iter().map(|c| c.0 as usize).collect();
        kept.dedup();
        let number = |slice: u32| kept.partition_point(|k| *k < slice as usize) as u32;
        let columns = met.iter().map(|&(slice, state)| (number(slice), place[state as usize])).collect();
        let slices = Slices::new(sliced.slices.restricted(&kept), columns, whole.states())?;
        let chain = Chain {
            p: Arc::new(transition_matrix(&rows)?),
            destinations: StateIndex::numbered(rows.cols()),
            goes_on: false,
            departures: rows.row_sums(),
            counts: Some(rows),
            ..whole.clone()
        };
        Ok((chain, Sliced { slices: Arc::new(slices), whole }))
    }

    /// The same states and slices with some of the transitions only.
    pub(crate) fn sliced_on_part(&self, sliced: &Sliced, counts: Csr) -> Result<(Chain, Sliced)> {
        let whole = sliced.whole.on_part(sliced.slices.whole_counts(&counts)?)?;
        let chain = Chain {
            departures: counts.row_sums(),
            p: Arc::new(transition_matrix(&counts)?),
            counts: Some(counts),
            xi: whole.xi.clone(),
            weights: whole.weights.clone(),
            transitions: whole.transitions,
            ..self.clone()
        };
        Ok((chain, Sliced { slices: Arc::clone(&sliced.slices), whole }))
    }
}
