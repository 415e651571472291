//! Which states can reach which: the first thing to look at before trusting a model of the counts.

use super::Counts;
use crate::graph::strong_classes;

/// A state that stays with at least this probability is called near-absorbing.
const NEAR_ABSORBING: f64 = 0.99;

/// States that can all reach each other.
///
/// The example of [`Connectivity`] shows one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StateClass {
    /// Number of states.
    pub states: usize,
    /// Transitions with both ends inside.
    pub weight: f64,
    /// True when no transition leads out.
    pub closed: bool,
    /// The lowest row in it.
    pub first_state: usize,
}

/// Which states can reach which in the counts.
///
/// ```
/// use metastate::{Counts, StateIndex};
///
/// let counts = Counts::from_pairs(StateIndex::numbered(3), [(0, 1), (1, 0), (1, 2)])?;
/// let found = counts.connectivity();
/// assert_eq!(found.largest_class(), [0, 1]);
/// assert_eq!((found.classes[0].states, found.classes[0].closed), (2, false)); // state 2 is reached from it
/// assert_eq!((found.transient_states, found.absorbing_states), (2, 1));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Connectivity {
    /// The strongly connected classes, most states first (then most weight, then lowest row).
    pub classes: Vec<StateClass>,
    /// The class (place in `classes`) of each state.
    pub class_of: Vec<u32>,
    /// States that were seen, in a class that can be left and never entered again.
    pub transient_states: usize,
    /// States reached or left whose only exit is to themselves, or that were reached and never left.
    pub absorbing_states: usize,
    /// States that stay with probability 0.99 or more, and are not absorbing.
    pub near_absorbing_states: usize,
    /// States neither left nor reached.
    pub unseen_states: usize,
    /// Share of all transitions inside the first class; zero when there are none.
    pub largest_share: f64,
}

impl Connectivity {
    /// True when every state can reach every other.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.classes.len() == 1
    }

    /// The rows of the first class, ascending.
    #[must_use]
    pub fn largest_class(&self) -> Vec<usize> {
        (0..self.class_of.len()).filter(|&i| self.class_of[i] == 0).collect()
    }
}

impl Counts {
    /// Strongly connected classes, transient and absorbing states.
    #[must_use]
    pub fn connectivity(&self) -> Connectivity {
        self.connectivity_at(0.0)
    }

    /// The same where pairs of states join only if they were seen at least so often.
    #[must_use]
    pub fn connectivity_at(&self, least: f64) -> Connectivity {
        let (d, csr) = (self.states(), self.csr());
        let (raw, number) = strong_classes(d, |i, cursor| {
            let (columns, values) = csr.row(i);
            (cursor..columns.len()).find(|&k| values[k] >= least).map(|k| (k + 1, columns[k] as usize))
        });
        let mut classes: Vec<StateClass> =
            (0..number).map(|_| StateClass { states: 0, weight: 0.0, closed: true, first_state: usize::MAX }).collect();
        let mut reached = vec![false; d];
        for i in 0..d {
            let c = raw[i] as usize;
            classes[c].states += 1;
            classes[c].first_state = classes[c].first_state.min(i);
            let (columns, values) = csr.row(i);
            for (&j, &n) in columns.iter().zip(values) {
                reached[j as usize] = true;
                if raw[j as usize] == raw[i] {
                    classes[c].weight += n;
                } else {
                    classes[c].closed = false;
                }
            }
        }
        let (mut transient, mut absorbing, mut near, mut unseen) = (0, 0, 0, 0);
        let loops = self.self_counts();
        for i in 0..d {
            let (columns, values) = csr.row(i);
            let exits = columns.iter().any(|&j| j as usize != i);
            if columns.is_empty() && !reached[i] {
                unseen += 1;
            } else if !exits {
                absorbing += 1;
            } else {
                transient += usize::from(!classes[raw[i] as usize].closed);
                near += usize::from(loops[i] >= NEAR_ABSORBING * values.iter().sum::<f64>());
            }
        }
        let mut order: Vec<usize> = (0..number).collect();
        order.sort_by(|&a, &b| {
            let (x, y) = (&classes[a], &classes[b]);
            y.states.cmp(&x.states).then(y.weight.total_cmp(&x.weight)).then(x.first_state.cmp(&y.first_state))
        });
        let mut place = vec![0u32; number];
        order.iter().enumerate().for_each(|(k, &c)| place[c] = k as u32);
        let classes: Vec<StateClass> = order.iter().map(|&c| classes[c].clone()).collect();
        let share = |c: &StateClass| if self.transitions() > 0.0 { c.weight / self.transitions() } else { 0.0 };
        Connectivity {
            largest_share: classes.first().map_or(0.0, share),
            class_of: raw.iter().map(|&c| place[c as usize]).collect(),
            classes,
            transient_states: transient,
            absorbing_states: absorbing,
            near_absorbing_states: near,
            unseen_states: unseen,
        }
    }
}
