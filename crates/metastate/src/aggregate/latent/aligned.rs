//! Counts made elsewhere, or at another lag, with their rows in the order of a result.

use crate::counts::{Counts, StateIndex};
use crate::error::Result;
use crate::linalg::Csr;

/// Counts over the states of a result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Aligned {
    /// Rows and columns in the order of the result.
    pub counts: Csr,
    /// Transitions from or to a state that the result does not know; left out.
    pub lost: f64,
}

/// Matches states by their labels.
///
/// ```
/// use metastate::aggregate::latent::aligned;
/// use metastate::{Counts, Label, StateIndex};
///
/// let names = |list: &[&str]| StateIndex::from_labels(list.iter().map(|s| Label::from(*s)).collect());
/// let counts = Counts::from_triplets(names(&["b", "a", "c"])?, &[(0, 1, 2.0), (1, 2, 1.0)])?;
/// let found = aligned(&counts, &names(&["a", "b"])?)?;
/// assert_eq!(found.counts.row(1), (&[0][..], &[2.0][..])); // from b to a
/// assert_eq!(found.lost, 1.0); // nothing is known of c
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn aligned(counts: &Counts, states: &StateIndex) -> Result<Aligned> {
    let place: Vec<Option<u32>> = counts.index().labels().map(|label| states.position(&label)).collect();
    let mut kept = Vec::with_capacity(counts.csr().nonzeros());
    let mut lost = 0.0;
    for (i, j, n) in counts.csr().triplets() {
        match (place[i as usize], place[j as usize]) {
            (Some(i), Some(j)) => kept.push((i, j, n)),
            _ => lost += n,
        }
    }
    Ok(Aligned { counts: Csr::from_triplets(states.len(), states.len(), &kept)?, lost })
}
