//! The latent chain behind `X = U V^T`, and what follows from it for all `d` states without ever forming X.
//!
//! From state i the chain picks a meta-state `z ~ U_i` and then the next state from `V_z`. The meta-states picked one after another
//! are a Markov chain of their own, `K = V^T U` (`s x s`), and
//!
//! - X and K have the same non-zero eigenvalues ([`LatentChain::spectrum`]),
//! - `X^n = U K^(n-1) V^T` ([`LatentChain::after`]),
//! - `a^T K = a^T` gives `pi = V a` with `pi^T X = pi^T` ([`LatentChain::stationary`]),
//! - hitting times and committors of X between sets of states solve `s x s` systems ([`Lumped`]).
//!
//! Linear systems are solved without subtractions (`elimination`), so that a chain that all but never leaves a
//! set still gets every digit of its passage times.

mod aligned;
mod check;
mod classes;
mod committor;
mod elimination;
mod forecast;
mod identify;
mod lagged;
mod passage;
mod rotation;
mod spectrum;
mod stationary;

pub use aligned::{Aligned, aligned};
pub use check::{CheckEntry, chapman_kolmogorov, wilson};
pub use classes::{ClosedClass, Structure};
pub use committor::Committor;
pub(crate) use committor::first_met;
pub(crate) use elimination::collected;
pub use identify::{Identity, identify};
pub use lagged::projected_spectrum;
pub(crate) use lagged::through_counts;
pub use passage::{Lumped, steps_from};
pub use rotation::{Rotation, largest_rotation};
pub(crate) use spectrum::modes;
pub use spectrum::{Mode, timescale_intervals};
pub use stationary::StationaryLaws;

use crate::error::{Error, Result};
use crate::linalg::{Mat, thin};

/// Rows of U and columns of V may miss one by this much; rounding in files stays far below.
const SUM_TOLERANCE: f64 = 1e-6;

/// The chain on meta-states.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::LatentChain;
///
/// // States 0 and 1 act as meta-state 0, state 2 as meta-state 1.
/// let u = Mat::from_vec(3, 2, vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
/// let v = Mat::from_vec(3, 2, vec![0.4, 0.1, 0.4, 0.1, 0.2, 0.8])?;
/// let chain = LatentChain::new(&u, &v)?;
/// assert!((chain.k()[(0, 1)] - 0.2).abs() < 1e-12); // K = V^T U
/// assert!((chain.spectrum()[1].re - 0.6).abs() < 1e-12); // the eigenvalues of X, but for a zero
/// let later = chain.after(&[1.0, 0.0, 0.0], 1000)?;
/// assert!((later[2] - 0.5).abs() < 1e-12); // the stationary law
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LatentChain<'a> {
    u: &'a Mat,
    v: &'a Mat,
    k: Mat,
}

impl<'a> LatentChain<'a> {
    /// From memberships U (`d x s`, rows sum to one) and destinations V (`d x s`, columns sum to one).
    pub fn new(u: &'a Mat, v: &'a Mat) -> Result<Self> {
        if u.rows() == 0 || u.cols() == 0 {
            return Err(Error::Empty { what: "the list of meta-states" });
        }
        for (what, expected, found) in [("V (rows)", u.rows(), v.rows()), ("V (columns)", u.cols(), v.cols())] {
            if expected != found {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        for (what, m) in [("U", u), ("V", v)] {
            if let Some((row, column, value)) = m.first_not_finite() {
                return Err(Error::NotFinite { what, row, column, value });
            }
            if let Some(at) = m.as_slice().iter().position(|x| *x < 0.0) {
                return Err(Error::Negative { what, row: at / m.cols(), column: at % m.cols(), value: m.as_slice()[at] });
            }
        }
        let wrong = |sum: f64| (sum - 1.0).abs() > SUM_TOLERANCE;
        let allowed = "it must be 1; the factors are not those of a chain";
        if let Some((i, sum)) = (0..u.rows()).map(|i| (i, u.row(i).iter().sum())).find(|(_, sum)| wrong(*sum)) {
            return Err(Error::Setting { name: "the sum of a row of U", value: format!("{sum} in row {i}"), allowed });
        }
        if let Some((j, sum)) = thin::column_sums(v).into_iter().enumerate().find(|(_, sum)| wrong(*sum)) {
            return Err(Error::Setting { name: "the sum of a column of V", value: format!("{sum} in column {j}"), allowed });
        }
        let mut k = thin::cross_gram(v, u);
        normalise_rows(&mut k);
        Ok(LatentChain { u, v, k })
    }

    /// The same factors with another chain of the meta-states, `s x s` and stochastic, such as the one that the data have ([`crate::kinetics`]). What is
    /// asked between sets of states ([`Lumped`]) remains a matter of the factors.
    pub fn with_chain(u: &'a Mat, v: &'a Mat, k: Mat) -> Result<Self> {
        let chain = LatentChain::new(u, v)?;
        for (what, found) in [("the chain of the meta-states (rows)", k.rows()), ("the chain of the meta-states (columns)", k.cols())] {
            if found != chain.rank() {
                return Err(Error::SizeMismatch { what, expected: chain.rank(), found });
            }
        }
        let wrong =
            |j: &usize| k.row(*j).iter().any(|x| !x.is_finite() || *x < 0.0) || (k.row(*j).iter().sum::<f64>() - 1.0).abs() > SUM_TOLERANCE;
        if let Some(j) = (0..k.rows()).find(wrong) {
            let value = format!("{:?}", k.row(j));
            return Err(Error::Setting {
                name: "a row of the chain of the meta-states",
                value,
                allowed: "it must hold probabilities that sum to 1",
            });
        }
        Ok(LatentChain { k, ..chain })
    }

    /// K = V^T U, or the chain that was given; every row sums to one.
    #[must_use]
    pub fn k(&self) -> &Mat {
        &self.k
    }

    /// Memberships.
    #[must_use]
    pub fn u(&self) -> &Mat {
        self.u
    }

    /// Destinations.
    #[must_use]
    pub fn v(&self) -> &Mat {
        self.v
    }

    /// Number of meta-states, `s`.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.k.rows()
    }

    /// Number of states, `d`.
    #[must_use]
    pub fn states(&self) -> usize {
        self.u.rows()
    }

    /// `start^T U`: the meta-states that a law over states picks first.
    fn memberships_of(&self, start: &[f64]) -> Result<Vec<f64>> {
        if start.len() != self.states() {
            return Err(Error::SizeMismatch { what: "the law over states", expected: self.states(), found: start.len() });
        }
        Ok(thin::fold_rows(self.u, |sums, i, row| {
            if start[i] != 0.0 {
                sums.iter_mut().zip(row).for_each(|(s, u)| *s += start[i] * u);
            }
        }))
    }

    /// `V a`: the law over states after a meta-state was picked from `a`.
    fn destinations_of(&self, a: &[f64]) -> Vec<f64> {
        let mut law = Mat::zeros(self.states(), 1);
        thin::for_each_row_mut(&mut law, |i, x| x[0] = thin::dot(self.v.row(i), a));
        law.into_vec()
    }
}

/// The law over states that this many departures or shares stand for.
///
/// ```
/// use metastate::aggregate::latent::normalised;
///
/// assert_eq!(normalised(&[1.0, 3.0])?, [0.25, 0.75]);
/// assert!(normalised(&[0.0, 0.0]).is_err());
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn normalised(weights: &[f64]) -> Result<Vec<f64>> {
    for (column, &value) in weights.iter().enumerate() {
        let what = "the law over states";
        if !value.is_finite() {
            return Err(Error::NotFinite { what, row: 0, column, value });
        }
        if value < 0.0 {
            return Err(Error::Negative { what, row: 0, column, value });
        }
    }
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return Err(Error::Empty { what: "the law over states" });
    }
    Ok(weights.iter().map(|w| w / total).collect())
}

fn normalise_rows(m: &mut Mat) {
    for i in 0..m.rows() {
        let row = m.row_mut(i);
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
}
