//! Passage times, at two levels.
//!
//! *Between meta-states* ([`LatentChain::mean_first_passage`]): steps of the latent chain from z = j until z = k. Here "being in" a
//! meta-state means acting as it, and a state with memberships in several takes part in all of them.
//!
//! *Between sets of states* ([`Lumped`]): steps of X itself until the chain is in a set S. With T the other states,
//! `h_T = 1 + X_TT h_T` and `X_TT = U_T V_T^T`, so `w = V_T^T h_T` solves `(I - V_T^T U_T) w = V_T^T 1`, an `s x s` system, and
//! `h_i = 1 + u_i^T w` for every state. The rows of `V_T^T U_T` miss one by `V_S^T 1`, which is known without a subtraction.

use super::LatentChain;
use super::elimination::collected;
use crate::error::{Error, Result};
use crate::linalg::{Mat, thin};

impl LatentChain<'_> {
    /// Mean steps of the latent chain from j (row) to k (column), at least one: the diagonal holds the mean return times.
    /// Infinite where k may never be reached.
    #[must_use]
    pub fn mean_first_passage(&self) -> Mat {
        let s = self.rank();
        let mut times = Mat::zeros(s, s);
        for k in 0..s {
            let others: Vec<usize> = (0..s).filter(|&j| j != k).collect();
            let q = Mat::from_fn(others.len(), others.len(), |a, b| self.k[(others[a], others[b])]);
            let exit: Vec<f64> = others.iter().map(|&j| self.k[(j, k)]).collect();
            let steps = collected(&q, &exit, &vec![1.0; others.len()]);
            others.iter().zip(&steps).for_each(|(&j, m)| times[(j, k)] = *m);
            let away = others.iter().zip(&steps).filter(|(j, _)| self.k[(k, **j)] > 0.0);
            times[(k, k)] = 1.0 + away.map(|(&j, m)| self.k[(k, j)] * m).sum::<f64>();
        }
        times
    }
}

/// The states cut into parts, such as hard meta-states, or a set and the rest.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::{LatentChain, Lumped};
///
/// // The chain of the example of `LatentChain`: a step from states 0 and 1 leads to state 2 with probability 0.2.
/// let u = Mat::from_vec(3, 2, vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
/// let v = Mat::from_vec(3, 2, vec![0.4, 0.1, 0.4, 0.1, 0.2, 0.8])?;
/// let chain = LatentChain::new(&u, &v)?;
/// let parts = Lumped::new(&chain, &[0, 0, 1], 2)?;
/// let times = parts.mean_first_passage(&chain, &[0, 0, 1], &[0.25, 0.25, 0.5])?;
/// assert!((times[(0, 1)] - 5.0).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Lumped {
    /// `V_p^T U_p` of each part: K is their sum.
    k: Vec<Mat>,
    /// `V_p^T 1`: how likely each meta-state (column) leads into each part (row).
    arrivals: Mat,
    /// States in each part.
    sizes: Vec<usize>,
}

impl Lumped {
    /// `part[i]` (below `parts`) is the part of state i. Costs `O(d s^2)` once; what follows costs `O(s^3)` or `O(parts s^2)` each.
    pub fn new(chain: &LatentChain, part: &[usize], parts: usize) -> Result<Self> {
        let (d, s) = (chain.states(), chain.rank());
        if part.len() != d {
            return Err(Error::SizeMismatch { what: "the list of parts", expected: d, found: part.len() });
        }
        if let Some(&p) = part.iter().find(|&&p| p >= parts) {
            return Err(Error::IndexOutOfRange { what: "part", index: p as u64, len: parts });
        }
        let mut sizes = vec![0usize; parts];
        part.iter().for_each(|&p| sizes[p] += 1);
        // One stack of parts x s rows: row (p, j) is row j of V_p^T U_p, its last entry V_p^T 1.
        let sum = |rows: std::ops::Range<usize>| {
            let mut out = Mat::zeros(parts * s, s + 1);
            for i in rows {
                let u = chain.u.row(i);
                for (j, &v) in chain.v.row(i).iter().enumerate().filter(|(_, v)| **v > 0.0) {
                    let row = out.row_mut(part[i] * s + j);
                    row.iter_mut().zip(u).for_each(|(o, u)| *o += v * u);
                    row[s] += v;
                }
            }
            out
        };
        let add = |a: &mut Mat, b: Mat| a.as_mut_slice().iter_mut().zip(b.as_slice()).for_each(|(a, b)| *a += b);
        let stack = thin::sum_blocks(d, 2 * s * s, sum, add).unwrap_or_else(|| Mat::zeros(parts * s, s + 1));
        let k = (0..parts).map(|p| Mat::from_fn(s, s, |j, l| stack[(p * s + j, l)])).collect();
        let arrivals = Mat::from_fn(parts, s, |p, j| stack[(p * s + j, s)]);
        Ok(Lumped { k, arrivals, sizes })
    }

    /// A set of states against all others: part 1 is the set.
    pub fn set(chain: &LatentChain, inside: &[bool]) -> Result<Self> {
        let part: Vec<usize> = inside.iter().map(|&x| usize::from(x)).collect();
        Lumped::new(chain, &part, 2)
    }

    /// Number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.k.len()
    }

    /// States in each part.
    #[must_use]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// `V_p^T 1` of each part, `parts x s`.
    #[must_use]
    pub fn arrivals(&self) -> &Mat {
        &self.arrivals
    }

    /// `sum of V_p^T U_p` over all parts but these.
    pub(super) fn without(&self, gone: &[usize]) -> Mat {
        let s = self.arrivals.cols();
        let mut q = Mat::zeros(s, s);
        for (_, k) in self.k.iter().enumerate().filter(|(p, _)| !gone.contains(p)) {
            q.as_mut_slice().iter_mut().zip(k.as_slice()).for_each(|(q, k)| *q += k);
        }
        q
    }

    /// w: after a meta-state is picked and the next state drawn from it, the mean steps that are still to come until the chain is in
    /// the part. See [`steps_from`].
    #[must_use]
    pub fn steps_to(&self, target: usize) -> Vec<f64> {
        let s = self.arrivals.cols();
        let elsewhere = |j: usize| (0..self.parts()).filter(|&p| p != target).map(|p| self.arrivals[(p, j)]).sum::<f64>();
        let reward: Vec<f64> = (0..s).map(elsewhere).collect();
        collected(&self.without(&[target]), self.arrivals.row(target), &reward)
    }

    /// Mean steps from part A (row), entered as `law` over states has it, to part B (column): `sum_(i in A) law_i h_i / law(A)`. On
    /// the diagonal the mean return times. NaN for a part without share in the law.
    pub fn mean_first_passage(&self, chain: &LatentChain, part: &[usize], law: &[f64]) -> Result<Mat> {
        let starts = self.mean_memberships(chain, part, law)?;
        let parts = self.parts();
        let mut times = Mat::zeros(parts, parts);
        for b in 0..parts {
            let w = self.steps_to(b);
            for a in 0..parts {
                let u = starts.row(a);
                times[(a, b)] = if u.iter().any(|x| x.is_nan()) { f64::NAN } else { steps_from(u, &w) };
            }
        }
        Ok(times)
    }

    /// The mean row of U in each part (`parts x s`), weighted by a law over states; NaN for a part without share in it.
    pub(super) fn mean_memberships(&self, chain: &LatentChain, part: &[usize], law: &[f64]) -> Result<Mat> {
        let (d, s, parts) = (chain.states(), chain.rank(), self.parts());
        for (what, found) in [("the list of parts", part.len()), ("the law over states", law.len())] {
            if found != d {
                return Err(Error::SizeMismatch { what, expected: d, found });
            }
        }
        let sum = |rows: std::ops::Range<usize>| {
            let mut out = Mat::zeros(parts, s + 1);
            for i in rows.filter(|&i| law[i] > 0.0) {
                let row = out.row_mut(part[i]);
                row.iter_mut().zip(chain.u.row(i)).for_each(|(o, u)| *o += law[i] * u);
                row[s] += law[i];
            }
            out
        };
        let add = |a: &mut Mat, b: Mat| a.as_mut_slice().iter_mut().zip(b.as_slice()).for_each(|(a, b)| *a += b);
        let sums = thin::sum_blocks(d, 2 * s, sum, add).unwrap_or_else(|| Mat::zeros(parts, s + 1));
        // 0 / 0 is the NaN that is promised.
        Ok(Mat::from_fn(parts, s, |p, j| sums[(p, j)] / sums[(p, s)]))
    }
}

/// `1 + u^T w`: mean steps, at least one, from a state with these memberships. For a state of the set itself this is the time
/// of its return.
#[must_use]
pub fn steps_from(u: &[f64], w: &[f64]) -> f64 {
    1.0 + u.iter().zip(w).filter(|(u, _)| **u > 0.0).map(|(u, w)| u * w).sum::<f64>()
}

impl LatentChain<'_> {
    /// Mean steps of X, at least one, from every state into the set: hitting times outside it, return times inside. `O(d s^2)`.
    pub fn hitting_times(&self, inside: &[bool]) -> Result<Vec<f64>> {
        let w = Lumped::set(self, inside)?.steps_to(1);
        let mut steps = Mat::zeros(self.states(), 1);
        thin::for_each_row_mut(&mut steps, |i, x| x[0] = steps_from(self.u.row(i), &w));
        Ok(steps.into_vec())
    }
}
