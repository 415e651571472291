//! From counts to a chain: the estimates (2.1) and (2.2) of the paper.

use std::sync::Arc;

use super::empirical::transition_matrix;
use super::{Chain, WeightPower};
use crate::counts::{Counts, StateIndex};
use crate::error::{Error, Result};
use crate::graph::peel;
use crate::ledger::{Ledger, LedgerUnit};
use crate::linalg::Csr;

/// What the weight xi of a state counts.
///
/// ```
/// use metastate::{Chain, Counts, Estimate, StateIndex, WeightsBy};
///
/// // A trajectory that begins in state 0 and never comes back to it.
/// let counts = Counts::from_pairs(StateIndex::numbered(3), [(0, 1), (1, 2), (2, 1)])?;
/// let of = |weights_by| Chain::estimate(&counts, &Estimate { weights_by, ..Estimate::default() });
/// assert_eq!(of(WeightsBy::Departures)?.states(), 3); // state 0 was left once
/// assert_eq!(of(WeightsBy::Arrivals)?.states(), 2); // and never reached, so that its weight would be zero
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WeightsBy {
    /// Transitions out of the state, as for trips by pick-up place (the paper's section 6.3).
    #[default]
    Departures,
    /// Transitions into the state, as along a trajectory (2.1).
    Arrivals,
}

/// Which states a chain keeps.
///
/// ```
/// use metastate::{Chain, Connected, Counts, Estimate, StateIndex};
///
/// // From states 0 and 1 a step leads to state 2, and none leads back.
/// let counts = Counts::from_pairs(StateIndex::numbered(3), [(0, 1), (1, 0), (1, 2), (2, 2)])?;
/// let chain = Chain::estimate(&counts, &Estimate { connected: Connected::Largest(1), ..Estimate::default() })?;
/// assert_eq!(chain.kept(), [0, 1]);
/// assert!(!chain.ledger().is_empty()); // the ledger names state 2
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Connected {
    /// All.
    #[default]
    All,
    /// The largest set of states that can all reach each other, and of equally large ones that with more transitions. Pairs of states seen fewer times than this do not join.
    Largest(u64),
}

/// How a chain is estimated from counts.
///
/// ```
/// use metastate::{Connected, Estimate, WeightPower, WeightsBy};
///
/// let along_a_trajectory = Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() };
/// assert_eq!((along_a_trajectory.weight_power, along_a_trajectory.connected), (WeightPower::One, Connected::All));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Estimate {
    /// What xi counts.
    pub weights_by: WeightsBy,
    /// The power of xi in the objective.
    pub weight_power: WeightPower,
    /// Which states are kept.
    pub connected: Connected,
}

/// Transitions that a state without any is given in its weight where it must be kept: its row says nothing, and no weight may be zero.
const NOT_SEEN: f64 = 0.5;

/// The reason in the ledger for what [`Connected::Largest`] leaves out.
pub(super) const NOT_CONNECTED: &str = "not-in-the-largest-connected-class";

impl Chain {
    /// The empirical chain of the counts: `p_ij = n_ij / n_i` (2.2) and xi by arrivals (2.1) or departures.
    ///
    /// A state needs a positive weight. Which states have one depends on what the weight counts:
    ///
    /// - By departures (the taxi trips of section 6.3), a state that was never left has no weight. It is left out, as row and
    ///   as column, and the transitions into it go with it. A state whose every transition led to such a state is then never
    ///   left either, and so on until nothing changes. The rows that remain hold observed transitions only.
    /// - By arrivals (2.1), a state that was never reached has no weight, such as the first frame of a trajectory when the chain
    ///   never comes back to it. It is left out with the transitions out of it, and so on. A state that was reached and never
    ///   left stays, with the uniform row `1/d` of (2.2).
    ///
    /// A state never seen at all goes in both cases. The power of the weights plays no part in this, so that fits with different
    /// powers have the same states; in particular power zero gives weight 1 to the states above, not to the ones left out.
    ///
    /// The ledger of the chain names the states left out and counts the transitions that went with them.
    pub fn estimate(counts: &Counts, options: &Estimate) -> Result<Chain> {
        if counts.transitions() <= 0.0 {
            return Err(Error::Empty { what: "the list of transitions" });
        }
        let mut ledger = counts.ledger().clone();
        let keep = match options.connected {
            Connected::All => states_with_weight(counts, options.weights_by, &mut ledger),
            Connected::Largest(least) => {
                // Each of its states is reached and left inside, so that none is without weight.
                let class = counts.connectivity_at(least as f64).largest_class();
                let inside: std::collections::HashSet<usize> = class.iter().copied().collect();
                let gone = (0..counts.states()).filter(|i| !inside.contains(i)).map(|i| counts.index().label(i).to_string());
                ledger.add(NOT_CONNECTED, LedgerUnit::States, (counts.states() - class.len()) as u64, 0.0, gone);
                class
            }
        };
        match keep[..] {
            [] => return Err(Error::Empty { what: "the chain without the states that carry no weight" }),
            [only] => return Err(Error::OneState { label: counts.index().label(only).to_string() }),
            _ => {}
        }
        let csr = counts.csr().restrict(&keep);
        let d = keep.len();
        let departures = csr.row_sums();
        let total: f64 = departures.iter().sum();
        let lost = counts.transitions() - total;
        if d < counts.states() && lost > 0.0 {
            ledger.add("from-or-to-a-left-out-state", LedgerUnit::Transitions, lost.round() as u64, lost, [] as [String; 0]);
        }
        let mut xi = match options.weights_by {
            WeightsBy::Departures => departures.clone(),
            WeightsBy::Arrivals => csr.column_sums(),
        };
        xi.iter_mut().for_each(|x| *x /= total);
        let index = counts.index().restricted(&keep);
        Ok(Chain {
            p: Arc::new(transition_matrix(&csr)?),
            weights: options.weight_power.raise(&xi),
            xi,
            weights_by: options.weights_by,
            weight_power: options.weight_power,
            destinations: index.clone(),
            index,
            goes_on: true,
            counts: Some(csr),
            kept: keep,
            transitions: total,
            departures,
            stationary_residual: None,
            ledger,
        })
    }

    /// The same states with some of their transitions only, such as those that are left when others are held out. No state is left out, so that the two chains speak of the same
    /// states: one that was not left here has the uniform row of (2.2), and one without weight weighs half a transition.
    pub(crate) fn on_part(&self, counts: Csr) -> Result<Chain> {
        let departures = counts.row_sums();
        let total: f64 = departures.iter().sum();
        if total <= 0.0 {
            return Err(Error::Empty { what: "the list of transitions" });
        }
        let seen = match self.weights_by {
            WeightsBy::Departures => departures.clone(),
            WeightsBy::Arrivals => counts.column_sums(),
        };
        let least = NOT_SEEN.min(total / departures.len() as f64);
        let mut xi: Vec<f64> = seen.iter().map(|n| n.max(least)).collect();
        let sum: f64 = xi.iter().sum();
        xi.iter_mut().for_each(|x| *x /= sum);
        Ok(Chain {
            p: Arc::new(transition_matrix(&counts)?),
            weights: self.weight_power.raise(&xi),
            xi,
            counts: Some(counts),
            transitions: total,
            departures,
            ..self.clone()
        })
    }

    /// The empirical chain between two sets: rows are the origins, columns the destinations, and no state of one side is one of the other. Nothing is left out but origins that were never
    /// left and destinations that were never reached: they say nothing. The weights count departures.
    pub fn between(sides: &TwoSided, weight_power: WeightPower) -> Result<Chain> {
        let TwoSided { origins, destinations, counts, ledger } = sides;
        for (what, expected, found) in
            [("the count matrix (rows)", origins.len(), counts.rows()), ("the count matrix (columns)", destinations.len(), counts.cols())]
        {
            if expected != found {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        let (left, reached) = (counts.row_sums(), counts.column_sums());
        let seen = |sums: &[f64]| -> Vec<usize> { (0..sums.len()).filter(|&i| sums[i] > 0.0).collect() };
        let (rows, cols) = (seen(&left), seen(&reached));
        for (keep, index) in [(&rows, origins), (&cols, destinations)] {
            match keep[..] {
                [] => return Err(Error::Empty { what: "the list of transitions" }),
                [only] => return Err(Error::OneState { label: index.label(only).to_string() }),
                _ => {}
            }
        }
        let mut ledger = ledger.clone();
        for (reason, keep, index) in [("never-left", &rows, origins), ("never-reached", &cols, destinations)] {
            let kept: std::collections::HashSet<usize> = keep.iter().copied().collect();
            let gone = (0..index.len()).filter(|i| !kept.contains(i)).map(|i| index.label(i).to_string());
            ledger.add(reason, LedgerUnit::States, (index.len() - keep.len()) as u64, 0.0, gone);
        }
        let csr = counts.restrict_sides(&rows, &cols);
        let departures = csr.row_sums();
        let total: f64 = departures.iter().sum();
        let xi: Vec<f64> = departures.iter().map(|n| n / total).collect();
        Ok(Chain {
            p: Arc::new(transition_matrix(&csr)?),
            weights: weight_power.raise(&xi),
            xi,
            weights_by: WeightsBy::Departures,
            weight_power,
            index: origins.restricted(&rows),
            destinations: destinations.restricted(&cols),
            goes_on: false,
            counts: Some(csr),
            kept: rows,
            transitions: total,
            departures,
            stationary_residual: None,
            ledger,
        })
    }
}

/// Transitions between two sets of labelled states.
///
/// ```
/// use metastate::{Chain, Counts, StateIndex, TwoSided, WeightPower};
///
/// // From homes 0 and 1 to workplaces 2, 3 and 4.
/// let counts = Counts::from_pairs(StateIndex::numbered(5), [(0, 2), (0, 3), (1, 3), (1, 4)])?;
/// let chain = Chain::between(&TwoSided::of(&counts), WeightPower::One)?;
/// assert_eq!((chain.p().rows(), chain.p().cols()), (2, 3));
/// assert!(!chain.goes_on()); // nobody leaves a workplace
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TwoSided {
    /// The labels of the rows.
    pub origins: StateIndex,
    /// The labels of the columns.
    pub destinations: StateIndex,
    /// The counts.
    pub counts: Csr,
    /// What was left out so far.
    pub ledger: Ledger,
}

impl TwoSided {
    /// Counts between labelled states, read as from one set to another: a label that stands on both sides is two states, one that is only left is an origin, and one that is only reached a destination.
    #[must_use]
    pub fn of(counts: &Counts) -> Self {
        let seen = |sums: &[f64]| -> Vec<usize> { (0..sums.len()).filter(|&i| sums[i] > 0.0).collect() };
        let (rows, cols) = (seen(&counts.departures()), seen(&counts.arrivals()));
        TwoSided {
            origins: counts.index().restricted(&rows),
            destinations: counts.index().restricted(&cols),
            counts: counts.csr().restrict_sides(&rows, &cols),
            ledger: counts.ledger().clone(),
        }
    }
}

/// The states that keep a positive weight when all others are left out; the ledger learns of the others.
fn states_with_weight(counts: &Counts, by: WeightsBy, ledger: &mut Ledger) -> Vec<usize> {
    let (d, csr) = (counts.states(), counts.csr());
    let exits: Vec<usize> = (0..d).map(|i| csr.row(i).0.len()).collect();
    let mut entries = vec![0usize; d];
    csr.indices().iter().for_each(|&j| entries[j as usize] += 1);
    // Number of transitions (as stored entries: whole numbers, no rounding) that give a state its weight.
    let supports = match by {
        WeightsBy::Departures => &exits,
        WeightsBy::Arrivals => &entries,
    };
    let bare: Vec<bool> = supports.iter().map(|&n| n == 0).collect();
    if !bare.contains(&true) {
        return (0..d).collect();
    }
    let mut gone = bare.clone();
    match by {
        WeightsBy::Departures => {
            let reversed = csr.transposed();
            peel(&mut gone, exits.clone(), |j, f| reversed.row(j).0.iter().for_each(|&i| f(i as usize)));
        }
        WeightsBy::Arrivals => peel(&mut gone, entries.clone(), |i, f| csr.row(i).0.iter().for_each(|&j| f(j as usize))),
    }
    let (bare_reason, later_reason) = match by {
        WeightsBy::Departures => ("never-left", "leads-only-to-left-out-states"),
        WeightsBy::Arrivals => ("never-reached", "reached-only-from-left-out-states"),
    };
    let unseen = |i: usize| exits[i] == 0 && entries[i] == 0;
    let mut note = |reason: &str, which: &dyn Fn(usize) -> bool| {
        let mut rows = (0..d).filter(|&i| gone[i] && which(i)).peekable();
        let examples: Vec<String> = rows.by_ref().take(5).map(|i| counts.index().label(i).to_string()).collect();
        let count = examples.len() + rows.count();
        ledger.add(reason, LedgerUnit::States, count as u64, 0.0, examples);
    };
    note("never-seen", &unseen);
    note(bare_reason, &|i| bare[i] && !unseen(i));
    note(later_reason, &|i| !bare[i]);
    (0..d).filter(|&i| !gone[i]).collect()
}
