//! Memberships for states that were not in the fit, computed from where their own transitions went. The destinations V do not change.

use crate::error::{Error, Result};
use crate::linalg::{Mat, small, thin};
use crate::solve::Factors;

/// How the membership of a state is computed from its transitions.
///
/// See the example of [`Assigner`].
#[derive(Debug, Clone, PartialEq)]
pub enum AssignBy {
    /// The row of the penalised problem, `min 1/2 w^2 ||p - V u||^2 + lambda/2 sum_j ||V_j|| / ||U_j|| u_j^2` on the simplex, w the weight that
    /// the state would have had: a state of the fit gets its own membership back.
    Penalised {
        /// lambda of the fit.
        lambda: f64,
    },
    /// `min ||p - V u||^2` on the simplex.
    LeastSquares,
    /// `max sum_j n_j ln (V u)_j + c sum_k a_k ln u_k` on the simplex: the row of the likelihood refit, which a state with few transitions
    /// leaves near to a.
    Likelihood {
        /// c, the transitions that the prior adds.
        prior: f64,
        /// a, the meta-states that they leave by: `U^T xi`. Not looked at without a prior.
        mass: Vec<f64>,
    },
}

/// Steps at most.
const STEPS: usize = 20_000;
/// A step that changes no membership by more than this ends it.
const STILL: f64 = 1e-13;
/// The same for the slower likelihood.
const STILL_LIKELIHOOD: f64 = 1e-10;

/// Computes memberships from transitions.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::{AssignBy, Assigner};
/// use metastate::solve::Factors;
///
/// // Meta-state 0 leads to state 0, meta-state 1 to state 1.
/// let identity = Mat::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
/// let factors = Factors { u: identity.clone(), v: identity };
/// let assigner = Assigner::new(&factors, AssignBy::LeastSquares)?;
/// // A state that was not in the fit, with three transitions to state 0 and one to state 1.
/// let membership = assigner.membership(&[(0, 3.0), (1, 1.0)], 1.0).unwrap();
/// assert!((membership[0] - 0.75).abs() < 1e-9);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Assigner<'a> {
    v: &'a Mat,
    gram: Mat,
    /// `||V_j|| / ||U_j||`.
    stiffness: Vec<f64>,
    by: AssignBy,
}

impl<'a> Assigner<'a> {
    /// From the factors of a fit.
    pub fn new(factors: &'a Factors, by: AssignBy) -> Result<Self> {
        if factors.rank() == 0 {
            return Err(Error::Empty { what: "the list of meta-states" });
        }
        if let AssignBy::Likelihood { prior, mass } = &by
            && *prior > 0.0
            && mass.len() != factors.rank()
        {
            return Err(Error::SizeMismatch { what: "the shares of the meta-states", expected: factors.rank(), found: mass.len() });
        }
        let (u, v) = (thin::column_norms(&factors.u), thin::column_norms(&factors.v));
        let stiffness = u.iter().zip(&v).map(|(u, v)| if *u > 0.0 { v / u } else { f64::MAX.sqrt() }).collect();
        Ok(Assigner { v: &factors.v, gram: thin::gram(&factors.v), stiffness, by })
    }

    /// The membership of a state with these transitions (destination among the states of the fit, count), `weight` its entry in the
    /// diagonal of Xi. `None` when there are none.
    #[must_use]
    pub fn membership(&self, transitions: &[(u32, f64)], weight: f64) -> Option<Vec<f64>> {
        let total: f64 = transitions.iter().map(|t| t.1).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        Some(match &self.by {
            AssignBy::Likelihood { prior, mass } => self.by_likelihood(transitions, *prior, mass),
            AssignBy::LeastSquares => self.by_squares(transitions, total, 0.0),
            AssignBy::Penalised { lambda } => self.by_squares(transitions, total, lambda / (weight * weight)),
        })
    }

    /// Accelerated projected gradient on `1/2 u^T G u - q^T u + ridge/2 sum_j c_j u_j^2`.
    fn by_squares(&self, transitions: &[(u32, f64)], total: f64, ridge: f64) -> Vec<f64> {
        let s = self.v.cols();
        let mut q = vec![0.0; s];
        for &(j, n) in transitions {
            q.iter_mut().zip(self.v.row(j as usize)).for_each(|(q, v)| *q += n / total * v);
        }
        let mut hessian = self.gram.clone();
        (0..s).for_each(|k| hessian[(k, k)] += ridge * self.stiffness[k]);
        let largest = small::symmetric_eigen(&hessian).and_then(|(values, _)| values.last().copied()).unwrap_or(0.0);
        let step = 1.0 / largest.max(f64::MIN_POSITIVE);
        let mut u = vec![1.0 / s as f64; s];
        let (mut ahead, mut momentum) = (u.clone(), 1.0_f64);
        let (mut gradient, mut next) = (vec![0.0; s], u.clone());
        for _ in 0..STEPS {
            thin::row_times(&ahead, &hessian, &mut gradient);
            next.iter_mut().zip(&ahead).zip(gradient.iter().zip(&q)).for_each(|((n, a), (g, q))| *n = a - step * (g - q));
            crate::linalg::simplex::project(&mut next, &mut f64::INFINITY.clone());
            let moved = next.iter().zip(&u).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            // Momentum in a direction in which the objective rises is dropped.
            let uphill: f64 = ahead.iter().zip(&next).zip(&u).map(|((a, n), u)| (a - n) * (n - u)).sum();
            let grown = if uphill > 0.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
            let carry = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / grown };
            ahead.iter_mut().zip(next.iter().zip(&u)).for_each(|(a, (n, u))| *a = n + carry * (n - u));
            momentum = grown;
            std::mem::swap(&mut u, &mut next);
            if moved <= STILL && carry == 0.0 || moved == 0.0 {
                break;
            }
        }
        u
    }

    /// Expectation and maximisation for one row: `u_k <- u_k sum_j n_j v_jk / (V u)_j + c a_k`, divided by the sum.
    fn by_likelihood(&self, transitions: &[(u32, f64)], prior: f64, mass: &[f64]) -> Vec<f64> {
        let s = self.v.cols();
        let before: Vec<f64> = if prior > 0.0 { mass.iter().map(|a| prior * a).collect() } else { vec![0.0; s] };
        let mut u = vec![1.0 / s as f64; s];
        let mut next = vec![0.0; s];
        for _ in 0..STEPS {
            next.copy_from_slice(&before);
            for &(j, n) in transitions {
                let v = self.v.row(j as usize);
                let p = thin::dot(&u, v);
                if p > 0.0 {
                    next.iter_mut().zip(v).zip(&u).for_each(|((x, v), u)| *x += n * u * v / p);
                }
            }
            let sum: f64 = next.iter().sum();
            if sum <= 0.0 {
                // No meta-state goes to any of these places: nothing is known.
                return vec![1.0 / s as f64; s];
            }
            next.iter_mut().for_each(|x| *x /= sum);
            let moved = next.iter().zip(&u).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
            std::mem::swap(&mut u, &mut next);
            if moved <= STILL_LIKELIHOOD {
                break;
            }
        }
        u
    }
}
