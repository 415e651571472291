//! Which states can reach which: strongly connected classes of the empirical chain.

use crate::chain::stationary::closed_classes;
use crate::graph::strong_classes;
use crate::linalg::{Mat, Operator, thin};

/// Above so many states a product of factors is not looked at entry by entry.
const MOST_LOW_RANK: usize = 2000;

/// Whether `R^T L` has one class, every state is in it and every state is reached.
fn latent_connected(left: &Mat, right: &Mat) -> bool {
    let k = thin::cross_gram(right, left);
    let r = k.rows();
    let (_, classes) = strong_classes(r, |i, cursor| (cursor..r).find(|&j| k[(i, j)] > 0.0).map(|j| (j + 1, j)));
    classes == 1 && (0..right.rows()).all(|i| right.row(i).iter().any(|x| *x > 0.0))
}

/// Which states can reach which.
///
/// ```
/// use metastate::kinetics::Classes;
/// use metastate::{DenseOperator, Mat};
///
/// // State 0 leads to state 1, which is never left.
/// let found = Classes::of(&DenseOperator::new(Mat::from_vec(2, 2, vec![0.5, 0.5, 0.0, 1.0])?));
/// assert!(!found.connected() && found.transient(0));
/// assert_eq!(found.absorbing_states(), 1);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Classes {
    /// The class of each state.
    pub class_of: Vec<u32>,
    /// For each class, whether nothing leads out of it.
    pub closed: Vec<bool>,
    /// States in each class.
    pub sizes: Vec<usize>,
}

impl Classes {
    /// Of a chain.
    pub fn of(p: &dyn Operator) -> Self {
        // Every entry of a product of factors would have to be looked at: its small latent chain tells whether all is connected.
        if let Some((left, right)) = p.low_rank()
            && p.rows() > MOST_LOW_RANK
            && latent_connected(left, right)
        {
            return Classes { class_of: vec![0; p.rows()], closed: vec![true], sizes: vec![p.rows()] };
        }
        let (class_of, closed) = closed_classes(p);
        let mut sizes = vec![0; closed.len()];
        class_of.iter().for_each(|&c| sizes[c as usize] += 1);
        Classes { class_of, closed, sizes }
    }

    /// Whether every state can reach every other.
    #[must_use]
    pub fn connected(&self) -> bool {
        self.closed.len() == 1
    }

    /// Whether a state can be left and never reached again.
    #[must_use]
    pub fn transient(&self, state: usize) -> bool {
        !self.closed[self.class_of[state] as usize]
    }

    /// The closed classes, largest first, then by their number.
    #[must_use]
    pub fn closed_by_size(&self) -> Vec<u32> {
        let mut list: Vec<u32> = (0..self.closed.len() as u32).filter(|&c| self.closed[c as usize]).collect();
        list.sort_by_key(|&c| (std::cmp::Reverse(self.sizes[c as usize]), std::cmp::Reverse(c)));
        list
    }

    /// States that can be left and never reached again.
    #[must_use]
    pub fn transient_states(&self) -> usize {
        (0..self.class_of.len()).filter(|&i| self.transient(i)).count()
    }

    /// Closed classes of one state.
    #[must_use]
    pub fn absorbing_states(&self) -> usize {
        self.closed.iter().zip(&self.sizes).filter(|(closed, size)| **closed && **size == 1).count()
    }

    /// What a user must know of it; `None` where every state can reach every other.
    #[must_use]
    pub fn sentence(&self, share: f64) -> Option<String> {
        if self.connected() {
            return None;
        }
        let (closed, transient) = (self.closed_by_size(), self.transient_states());
        let mut text = match closed.len() {
            1 => format!(
                "the states are not all connected: one class ({} of {} states) is never left again",
                self.sizes[closed[0] as usize],
                self.class_of.len()
            ),
            n => {
                let sizes: Vec<String> = closed.iter().take(5).map(|&c| self.sizes[c as usize].to_string()).collect();
                let more = if n > 5 { ", ..." } else { "" };
                format!(
                    "the data fall into {n} classes that no transition joins ({}{more} states): times between them are infinite",
                    sizes.join(", ")
                )
            }
        };
        if self.absorbing_states() > 0 {
            text += &match self.absorbing_states() {
                1 => "; one of them is a single absorbing state".to_owned(),
                n => format!("; {n} of them are single absorbing states"),
            };
        }
        if transient > 0 {
            text += &format!("; {transient} states are left for ever sooner or later and have fates instead of stationary shares");
            if share < 1.0 {
                text += &format!(" ({:.3} % of the transitions begin there; the times are those of the rest)", 100.0 * (1.0 - share));
            }
        }
        Some(text + "; --connected largest keeps the largest class alone")
    }
}
