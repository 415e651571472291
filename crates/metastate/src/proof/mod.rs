//! What is proven. Only this module can make a [`Proven`], and only a `Proven` may become a certified gap, be written to a file or a
//! page, or be called *certified*. The estimate that steers the solver has another type, [`super::solve::steer::Steering`].
//!
//! The chain of inequalities, each step with its rounding, is written down in `docs/mathematics.md`; the numbers (P1) to
//! (P7) below and in the parts of this module are those of that page; (P8) is in `docs/whitened.md`.
//!
//! (P1) For nonnegative u, v: `u^T W v <= ||W||_2 ||u|| ||v||`. So `||W||_2 <= 1` gives `Omega(X) >= <W, X>`.
//! (P2) Then for every stochastic X and every vector nu, `f(X) >= D(W, nu)`: see `value`.
//! (P3) D is concave in W and `D(0) >= 0`, so a proven `||W||_2 <= n` gives the bound `D(W) / max(1, n)`.
//! (P4) W is a known point with its largest singular values clipped: see `point`.
//! (P5) to (P7) are the three ways to prove `||W||_2 <= n`: `norm`.

pub(crate) mod leading;
mod near_one;
mod norm;
pub(crate) mod point;
mod rest;
pub(crate) mod value;

use crate::linalg::Mat;
use crate::solve::Problem;
use point::{Clipped, DualPoint};

/// How a bound of the norm of the dual point was proven.
///
/// See the example of [`Proven`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// Zero is a lower bound of a sum of squares and norms: nothing better could be proven.
    Trivial,
    /// P has an exact low-rank form, so W has one too and its few singular values are known.
    LowRank,
    /// A Cholesky factor of `n^2 I - W^T W` exists.
    Cholesky,
    /// The leading singular values are known and the rest is bounded by what Chebyshev polynomials make of random vectors.
    Chebyshev {
        /// Largest probability, over all random starts that were tried, that the bound does not hold.
        failure_probability: f64,
    },
}

impl Method {
    /// The word in `summary.json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Trivial => "trivial",
            Method::LowRank => "low-rank",
            Method::Cholesky => "cholesky",
            Method::Chebyshev { .. } => "chebyshev",
        }
    }

    /// The probability that a proof by random starts does not hold; none where the proof is certain.
    #[must_use]
    pub fn failure_probability(self) -> Option<f64> {
        if let Method::Chebyshev { failure_probability } = self { Some(failure_probability) } else { None }
    }

    /// What was done, in half a sentence.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Method::Trivial => "zero is a lower bound of every objective; nothing better could be proven".to_owned(),
            Method::LowRank => "all singular values of the dual point are known, because the matrix has an exact low-rank form".to_owned(),
            Method::Cholesky => "a Cholesky factorisation proves that no singular value of the dual point exceeds its limit".to_owned(),
            Method::Chebyshev { failure_probability } => {
                format!(
                    "Chebyshev polynomials of the dual point, applied to random vectors, bound its singular values; the probability that this fails is at most {failure_probability:.0e}"
                )
            }
        }
    }
}

/// The dual point behind a bound, for others to check: `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda - L diag(e) R^T`.
///
/// The example of [`crate::verify::recompute`] hands one to the checker.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Witness {
    /// A (`m x k`).
    pub a: Mat,
    /// B (`n x k`).
    pub b: Mat,
    /// One multiplier a row.
    pub mu: Vec<f64>,
    /// Left singular vectors near and above 1 (one column each).
    pub left: Mat,
    /// Right singular vectors near and above 1 (one column each).
    pub right: Mat,
    /// What is taken off each of their singular values; zero for those that are not above 1.
    pub excess: Vec<f64>,
}

impl Witness {
    /// The point that gives the bound 0 whatever the data: W = 0 is not of the form above, but its bound needs no point.
    #[must_use]
    pub fn none(rows: usize, cols: usize) -> Self {
        let (a, b) = (Mat::zeros(rows, 1), Mat::zeros(cols, 1));
        Witness { a, b, mu: vec![0.0; rows], left: Mat::zeros(rows, 0), right: Mat::zeros(cols, 0), excess: vec![] }
    }

    /// The same as the checker takes it.
    #[must_use]
    pub fn for_checking(&self) -> crate::verify::Witness<'_> {
        crate::verify::Witness { a: &self.a, b: &self.b, mu: &self.mu, clip: Some((&self.left, &self.right, &self.excess)) }
    }
}

/// A lower bound of the optimum that is proven. There is no other way to make one than [`prove`].
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// let (proof, objective) = (model.proof().unwrap(), model.solution.objective.value);
/// assert!(proof.lower_bound() <= objective);
/// assert!(proof.gap(objective) <= 1e-3);
/// assert_eq!(proof.method().failure_probability(), None); // few states: the proof is certain
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    lower_bound: f64,
    norm: f64,
    clipped: usize,
    method: Method,
}

impl Proven {
    /// No stochastic X has a smaller objective.
    #[must_use]
    pub fn lower_bound(&self) -> f64 {
        self.lower_bound
    }

    /// What `||W||_2` was proven to be at most; the bound was divided by it where it exceeds 1.
    #[must_use]
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// Singular values that were clipped.
    #[must_use]
    pub fn clipped(&self) -> usize {
        self.clipped
    }

    /// How the norm was proven.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// The certified gap of a point with this objective: `(F - lower bound) / F`.
    #[must_use]
    pub fn gap(&self, objective: f64) -> f64 {
        // An objective that is no number has no gap that could be small: `max` would make zero of it.
        match objective {
            o if o > 0.0 && o.is_finite() => ((o - self.lower_bound) / o).max(0.0),
            0.0 => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// The explained gap of a point with this objective, where the best answer with one meta-state has another: `(F - lower bound) / (F_1 - F)`. None where the meta-states explain nothing
    /// over one.
    #[must_use]
    pub fn explained_gap(&self, objective: f64, of_one: f64) -> Option<f64> {
        let gap = (objective - self.lower_bound).max(0.0) / (of_one - objective);
        (of_one > objective && gap.is_finite()).then_some(gap)
    }

    const TRIVIAL: Proven = Proven { lower_bound: 0.0, norm: 1.0, clipped: 0, method: Method::Trivial };
}

/// How much work to put into a proof.
///
/// ```
/// use metastate::proof::Effort;
/// use metastate::simulate::planted;
/// use metastate::solve::{Problem, Settings, solve};
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let problem = Problem::new(chain.p(), chain.weights(), 1e-5)?;
/// let settings = Settings { certificate: Effort::without_proof(), ..Settings::default() };
/// assert_eq!(solve(&problem, &settings, &mut metastate::Silent)?.certified_gap(), None);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Up to this number of states the norm is proven by a Cholesky factorisation.
    pub cholesky_states: usize,
    /// Largest failure probability of a proof by random vectors, all tries together.
    pub failure_probability: f64,
    /// Seed of the random start vectors.
    pub seed: u64,
    /// Whether anything is to be proven at all. Without, a result says `not proven`.
    pub prove: bool,
}

impl Effort {
    /// No proof at all, where only the factors are wanted: the result says `not proven`.
    #[must_use]
    pub fn without_proof() -> Self {
        Effort { prove: false, ..Effort::default() }
    }
}

impl Default for Effort {
    fn default() -> Self {
        Effort { cholesky_states: 3000, failure_probability: 1e-12, seed: 0, prove: true }
    }
}

/// A point of the dual that may give a good bound: `W = (mu 1^T - Xi^2 (A B^T - P)) / lambda`, before clipping.
///
/// The example of [`prove`] has two.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// A (`m x k`).
    pub a: &'a Mat,
    /// B (`n x k`).
    pub b: &'a Mat,
    /// One multiplier a row.
    pub mu: &'a [f64],
}

/// The best bound that one of the candidates gives, with its witness. It always ends, and always with a bound: at the worst zero. A bound
/// of `enough` is not made tighter at great cost; infinity asks for the best that can be had.
///
/// ```
/// use metastate::Mat;
/// use metastate::proof::{Candidate, Effort, prove};
/// use metastate::simulate::planted;
/// use metastate::solve::{Problem, Settings, lambda_max, solve};
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let problem = Problem::new(chain.p(), chain.weights(), 0.1 * lambda_max(chain.p(), chain.weights(), 0)?)?;
/// let found = solve(&problem, &Settings::default(), &mut metastate::Silent)?;
/// // The dual point of the solution gives a bound just below its objective, any other point one that is valid too.
/// let own = Candidate { a: &found.factors.u, b: &found.factors.v, mu: &found.mu };
/// let (proof, _) = prove(&problem, &[own], f64::INFINITY, &Effort::default());
/// assert!(0.0 < proof.lower_bound() && proof.lower_bound() <= found.objective.value);
/// let zero = Mat::zeros(20, 2);
/// let (poor, _) = prove(&problem, &[Candidate { a: &zero, b: &zero, mu: &[0.0; 20] }], f64::INFINITY, &Effort::default());
/// assert!(poor.lower_bound() <= found.objective.value);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn prove(problem: &Problem, candidates: &[Candidate], enough: f64, effort: &Effort) -> (Proven, Witness) {
    prove_watched(problem, candidates, enough, effort, &mut || true)
}

/// The same; `go_on` is asked before a bound is made tighter at great cost, and says whether there is time for that.
///
/// See the example of [`prove`].
pub fn prove_watched(
    problem: &Problem,
    candidates: &[Candidate],
    enough: f64,
    effort: &Effort,
    go_on: &mut dyn FnMut() -> bool,
) -> (Proven, Witness) {
    let mut best = (Proven::TRIVIAL, Witness::none(problem.rows(), problem.cols()));
    for c in candidates {
        let w = DualPoint { problem, a: c.a, b: c.b, mu: c.mu };
        let Some(found) = bound(&w, enough, effort, go_on) else { continue };
        if found.0.lower_bound > best.0.lower_bound {
            best = found;
        }
    }
    best
}

/// The bound of one point: clip, prove the norm of what is left, evaluate. None where the numbers are beyond the range of f64.
fn bound(w: &DualPoint, enough: f64, effort: &Effort, go_on: &mut dyn FnMut() -> bool) -> Option<(Proven, Witness)> {
    // (P3)
    let worth = |clipped: &Clipped, norm: f64| value::lower(w, clipped) / norm.max(1.0);
    let (clipped, norm, method) = norm::clip_and_prove(w, effort, &|clipped, norm| worth(clipped, norm) >= enough, go_on)?;
    let lower_bound = worth(&clipped, norm);
    if !(lower_bound > 0.0 && lower_bound.is_finite()) {
        return None;
    }
    let Clipped { left, right, excess } = clipped;
    let count = excess.iter().filter(|e| **e > 0.0).count();
    let witness = Witness { a: w.a.clone(), b: w.b.clone(), mu: w.mu.to_vec(), left, right, excess };
    Some((Proven { lower_bound, norm, clipped: count, method }, witness))
}
