//! Stationary laws: `a^T K = a^T` over meta-states and `pi = V a` over states, one for each closed class.

use super::{LatentChain, Structure};
use crate::chain::stationary::{by_elimination, irreducible};
use crate::error::Result;
use crate::linalg::Mat;

/// One law for each closed class, and the one that a given start leads to.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::LatentChain;
///
/// // With U the identity and V = P^T the latent chain is P itself: 0, 1 and 2 in a row.
/// let p = Mat::from_vec(3, 3, vec![0.9, 0.1, 0.0, 0.05, 0.9, 0.05, 0.0, 0.1, 0.9])?;
/// let (u, v) = (Mat::from_fn(3, 3, |i, j| f64::from(u8::from(i == j))), p.transposed());
/// let chain = LatentChain::new(&u, &v)?;
/// let laws = chain.stationary(&[1.0, 0.0, 0.0])?;
/// assert_eq!(laws.laws.len(), 1); // one closed class, so the start does not matter
/// assert!((laws.limit_states[1] - 0.5).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StationaryLaws {
    /// Closed classes, in the order of `laws`.
    pub structure: Structure,
    /// Over meta-states, one a closed class.
    pub laws: Vec<Vec<f64>>,
    /// Over meta-states, the mean over time from the given start. The only one when there is one closed class.
    pub limit: Vec<f64>,
    /// The same over states, `pi = V a`.
    pub limit_states: Vec<f64>,
}

impl LatentChain<'_> {
    /// All stationary laws; `start` (a law over states) matters only where there are several.
    pub fn stationary(&self, start: &[f64]) -> Result<StationaryLaws> {
        let structure = self.structure();
        let s = self.rank();
        let law = |members: &[usize]| {
            let inner = Mat::from_fn(members.len(), members.len(), |a, b| self.k[(members[a], members[b])]);
            let mut law = vec![0.0; s];
            members.iter().zip(irreducible(inner)).for_each(|(&j, x)| law[j] = x);
            law
        };
        let laws: Vec<Vec<f64>> = structure.closed.iter().map(|c| law(&c.members)).collect();
        let start = self.memberships_of(start)?;
        let limit = if let [only] = &laws[..] { only.clone() } else { by_elimination(self.k.clone(), start).0 };
        let limit_states = self.destinations_of(&limit);
        Ok(StationaryLaws { structure, laws, limit, limit_states })
    }

    /// `V a`, the law over states that belongs to a law over meta-states.
    #[must_use]
    pub fn over_states(&self, law: &[f64]) -> Vec<f64> {
        self.destinations_of(law)
    }
}
