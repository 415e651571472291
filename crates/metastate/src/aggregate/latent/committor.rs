//! Committors: the probability that B comes before A (forward), or that A was visited later than B (backward).
//!
//! As with passage times there are two levels: meta-states of the latent chain, and sets of states under X. For sets,
//! `q_T = X_TB 1 + X_TT q_T` gives `w = V_B^T 1 + V_T^T U_T w`, an `s x s` system, and `q_i = u_i^T w` outside both sets.

use super::elimination::collected;
use super::{LatentChain, Lumped};
use crate::chain::stationary::irreducible;
use crate::error::{Error, Result};
use crate::linalg::{Mat, thin};

/// The committor between two meta-states.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::LatentChain;
///
/// // With U the identity and V = P^T the latent chain is P itself: 0, 1 and 2 in a row.
/// let p = Mat::from_vec(3, 3, vec![0.9, 0.1, 0.0, 0.05, 0.9, 0.05, 0.0, 0.1, 0.9])?;
/// let (u, v) = (Mat::from_fn(3, 3, |i, j| f64::from(u8::from(i == j))), p.transposed());
/// let chain = LatentChain::new(&u, &v)?;
/// let found = chain.committor(0, 2)?;
/// assert!((found.forward[1] - 0.5).abs() < 1e-12); // from the middle both ends are as likely
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Committor {
    /// Probability that the latent chain meets B before A, from each meta-state: 0 at A, 1 at B.
    pub forward: Vec<f64>,
    /// Probability that it came from A rather than from B: 1 at A, 0 at B. `None` where several stationary laws exist; NaN at
    /// meta-states without stationary share.
    pub backward: Option<Vec<f64>>,
}

impl LatentChain<'_> {
    /// Between two different meta-states.
    pub fn committor(&self, from: usize, to: usize) -> Result<Committor> {
        let s = self.rank();
        for index in [from, to] {
            if index >= s {
                return Err(Error::IndexOutOfRange { what: "meta-state", index: index as u64, len: s });
            }
        }
        if from == to {
            return Err(Error::Setting {
                name: "the committor's second meta-state",
                value: (to + 1).to_string(),
                allowed: "it must differ from the first",
            });
        }
        let forward = first_met(&self.k, &[from], &[to]);
        let structure = self.structure();
        let backward = match &structure.closed[..] {
            [only] => {
                let members = &only.members;
                let n = members.len();
                let law = irreducible(Mat::from_fn(n, n, |j, k| self.k[(members[j], members[k])]));
                let place = |j: usize| members.iter().position(|&m| m == j);
                let mut q = vec![f64::NAN; s];
                if let (Some(a), Some(b)) = (place(from), place(to)) {
                    // Time reversed: K~_jk = a_k K_kj / a_j. Backwards, A is met before B.
                    let reversed = Mat::from_fn(n, n, |j, k| law[k] * self.k[(members[k], members[j])] / law[j]);
                    members.iter().zip(first_met(&reversed, &[b], &[a])).for_each(|(&j, x)| q[j] = x);
                }
                Some(q)
            }
            _ => None,
        };
        Ok(Committor { forward, backward })
    }
}

/// Probability of meeting one of `to` before any of `from`.
pub(crate) fn first_met(k: &Mat, from: &[usize], to: &[usize]) -> Vec<f64> {
    let s = k.rows();
    let others: Vec<usize> = (0..s).filter(|j| !from.contains(j) && !to.contains(j)).collect();
    let q = Mat::from_fn(others.len(), others.len(), |a, b| k[(others[a], others[b])]);
    let into = |set: &[usize]| others.iter().map(|&j| set.iter().map(|&l| k[(j, l)]).sum::<f64>()).collect::<Vec<f64>>();
    let reward = into(to);
    let exit: Vec<f64> = into(from).iter().zip(&reward).map(|(a, b)| a + b).collect();
    let mut out = vec![0.0; s];
    to.iter().for_each(|&j| out[j] = 1.0);
    others.iter().zip(collected(&q, &exit, &reward)).for_each(|(&j, x)| out[j] = x.min(1.0));
    out
}

impl Lumped {
    /// w of the forward committor between two parts: `q_i = u_i^T w` for states outside both.
    #[must_use]
    pub fn committor_to(&self, from: usize, to: usize) -> Vec<f64> {
        let arrivals = self.arrivals();
        let exit: Vec<f64> = arrivals.row(from).iter().zip(arrivals.row(to)).map(|(a, b)| a + b).collect();
        collected(&self.without(&[from, to]), &exit, arrivals.row(to))
    }
}

impl LatentChain<'_> {
    /// Probability that X is in part `to` before part `from`, from every state: 0 in `from`, 1 in `to`. `O(d s^2)`.
    pub fn committor_of_states(&self, part: &[usize], parts: usize, from: usize, to: usize) -> Result<Vec<f64>> {
        for index in [from, to] {
            if index >= parts {
                return Err(Error::IndexOutOfRange { what: "part", index: index as u64, len: parts });
            }
        }
        let w = Lumped::new(self, part, parts)?.committor_to(from, to);
        let mut q = Mat::zeros(self.states(), 1);
        thin::for_each_row_mut(&mut q, |i, x| {
            x[0] = match part[i] {
                p if p == from => 0.0,
                p if p == to => 1.0,
                _ => thin::dot(self.u.row(i), &w).min(1.0),
            }
        });
        Ok(q.into_vec())
    }
}
