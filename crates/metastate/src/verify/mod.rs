//! Recomputes everything that a result claims, from P, the weights, lambda, U and V alone.
//!
//! Nothing here is shared with the solver: P is read row by row, and every sum, product and bound is written anew in plain
//! loops. A number that [`recompute`] confirms has been computed twice, by two programs.
//!
//! Two kinds of numbers come out. *Valid*: feasibility, objective, local errors, and `lower_bound` with `certified_gap`
//! (up to rounding, and for [`BoundProof::Lanczos`] up to its stated probability). *Heuristic*: `ge` and `rel_dg`, which
//! rest on a local search, as the paper's do.

mod compare;
mod dual;
mod lambda_max;
pub(crate) mod plain;
mod rows;
mod whitened;

pub use compare::{Check, Reported, compare};
pub use lambda_max::{LambdaMaxCheck, check_lambda_max};
pub use whitened::{Terms, Whiteness, recompute_whitened};

use crate::error::{Error, Result};
use crate::linalg::{Mat, Operator};
use dual::Point;
pub use dual::Ray;
use rows::{Rows, check_finite, column_norms, column_sums, cross, product, sum};

/// A membership at or below this share of the largest one in its row counts as zero in the estimate of mu.
const SUPPORT: f64 = 1e-9;

/// The problem `min 1/2 ||Xi (P - U V^T)||_F^2 + lambda sum_j ||U_j|| ||V_j||`, and the factors that are claimed to solve it.
#[derive(Debug, Clone, Copy)]
pub struct Claimed<'a> {
    /// P.
    pub p: &'a dyn Operator,
    /// The diagonal of Xi, a weight for each row of P.
    pub weights: &'a [f64],
    /// lambda.
    pub lambda: f64,
    /// Memberships (one row a row of P).
    pub u: &'a Mat,
    /// Destinations (one row a column of P).
    pub v: &'a Mat,
}

/// A dual point handed out by the solver: `W = (mu 1^T - Xi^2 (a b^T - P)) / lambda - left diag(excess) right^T`. That its spectral norm
/// is at most 1 is for the checker to prove.
///
/// See the example of [`recompute`].
#[derive(Debug, Clone, Copy)]
pub struct Witness<'a> {
    /// Left factor (one row a row of P).
    pub a: &'a Mat,
    /// Right factor (one row a column of P).
    pub b: &'a Mat,
    /// Multipliers of the row sums, one for every row.
    pub mu: &'a [f64],
    /// Left and right singular vectors along which something is taken off, and how much along each.
    pub clip: Option<(&'a Mat, &'a Mat, &'a [f64])>,
}

/// How far U and V are from the constraints.
///
/// Part of [`Recomputed`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Feasibility {
    /// Largest `|sum_j u_ij - 1|`.
    pub row_sum_error: f64,
    /// Largest `|sum_i v_ij - 1|`.
    pub column_sum_error: f64,
    /// The most negative entry of U and V, zero if there is none.
    pub most_negative: f64,
}

impl Feasibility {
    /// The largest of the three violations.
    #[must_use]
    pub fn worst(&self) -> f64 {
        self.row_sum_error.max(self.column_sum_error).max(-self.most_negative)
    }
}

/// What a lower bound rests on.
///
/// Part of [`Recomputed`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BoundProof {
    /// Zero: no objective is smaller.
    Trivial,
    /// All singular values of the dual point were computed.
    Dense,
    /// A Cholesky factor of `rho^2 I - W^T W` exists.
    Cholesky,
    /// P has a low-rank form, so the dual point has too, and its few singular values were computed.
    LowRank,
    /// Leading singular values computed; the rest bounded by Lanczos from a random start (Kuczynski and Wozniakowski 1992).
    Lanczos {
        /// Largest probability, over the random start, that the bound does not hold.
        failure_probability: f64,
    },
}

/// All figures of a solution, computed anew.
///
/// See the example of [`recompute`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Recomputed {
    /// Number of columns of U and V.
    pub rank: usize,
    /// How far U and V are from the constraints. Where they are far, the objective is not one of the problem.
    pub feasibility: Feasibility,
    /// `1/2 ||Xi (P - U V^T)||_F^2`.
    pub fidelity: f64,
    /// `sum_j ||U_j|| ||V_j||`, not multiplied by lambda.
    pub regularizer: f64,
    /// `fidelity + lambda regularizer`.
    pub objective: f64,
    /// What rounding alone may make of the fidelity: where X fits P to the last digits, nothing else is left of it.
    pub fidelity_rounding: f64,
    /// The paper's local error of the condition on U.
    pub rel_le1: f64,
    /// The paper's local error of the condition on V.
    pub rel_le2: f64,
    /// The paper's global error `Omega°(W) - 1`. Heuristic: a local search finds a lower bound of `Omega°`.
    pub ge: f64,
    /// The least that any search from the solution's own columns finds for it.
    pub ge_of_columns: f64,
    /// What rounding may make of it.
    pub ge_rounding: f64,
    /// The paper's relative duality gap at `M = -lambda W / Omega°(W)`. Heuristic, since `Omega°` is; where no positive
    /// `Omega°` was found, M = 0 is taken.
    pub rel_dg: f64,
    /// The dual function behind it, so that it can be had for another `Omega°` too.
    pub ray: Ray,
    /// What rounding alone may make of relLE1 and relLE2: their terms are differences of numbers much larger than lambda.
    pub rel_le_rounding: (f64, f64),
    /// A valid lower bound of the optimum.
    pub lower_bound: f64,
    /// `(objective - lower_bound) / objective`.
    pub certified_gap: f64,
    /// F of the best answer with one meta-state, at the same lambda.
    pub objective_of_one: f64,
    /// What the bound rests on.
    pub bound_proof: BoundProof,
    /// What the spectral norm of the clipped dual point was proven to be at most; the point was divided by it where it
    /// exceeds 1. Far above 1, the bound is valid and loose.
    pub bound_norm: f64,
    /// What was taken off the bound because rounding may have raised it.
    pub bound_rounding: f64,
    /// The paper's relative recovery error, when the truth is given.
    pub rel_re: Option<f64>,
    /// The paper's relative sampling error, when the truth is given.
    pub rel_se: Option<f64>,
}

/// Recomputes all figures of what is claimed, those against the truth where it is given.
///
/// Up to 1200 rows and columns the dual points are formed and decomposed whole; beyond, all is matrix-free. Up to 600 states, and
/// when there is no witness, the dual is climbed for 60 steps. Beyond 5000 states only the witness, if there is one, is
/// tried as a dual point. `seed` feeds the random starts; the result does not depend on the number of threads.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Problem, Settings, lambda_max, solve};
/// use metastate::verify::{Claimed, recompute};
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let lambda = 0.1 * lambda_max(chain.p(), chain.weights(), 0)?;
/// let found = solve(&Problem::new(chain.p(), chain.weights(), lambda)?, &Settings::default(), &mut metastate::Silent)?;
/// let (u, v) = (&found.factors.u, &found.factors.v);
/// let again = recompute(&Claimed { p: chain.p(), weights: chain.weights(), lambda, u, v }, Some(found.witness.for_checking()), None, 0)?;
/// assert!((again.objective - found.objective.value).abs() <= 1e-9 * again.objective);
/// assert!(again.lower_bound <= again.objective);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn recompute(claimed: &Claimed<'_>, witness: Option<Witness<'_>>, truth: Option<&dyn Operator>, seed: u64) -> Result<Recomputed> {
    check_input(claimed, witness, truth)?;
    let Claimed { weights, lambda, u, v, .. } = *claimed;
    let p = Rows::new("the transition matrix", claimed.p)?;

    let fidelity = 0.5 * p.residual2(weights, u, v);
    // An entry of X is wrong by its share at most, so `||Xi (P - X)||` by so much of `||Xi P||`, and its square by twice the product and the square.
    let share = rounding_share(u.cols());
    let norm2 = p.norm2(weights);
    let fidelity_rounding = 2.0 * share * (2.0 * fidelity * norm2).sqrt() + share * share * norm2;
    let (u_norms, v_norms) = (column_norms(u), column_norms(v));
    let regularizer: f64 = u_norms.iter().zip(&v_norms).map(|(u, v)| u * v).sum();
    let objective = fidelity + lambda * regularizer;

    let local = local_errors(&p, claimed, &u_norms, &v_norms);
    let own = Point { rows: &p, weights, lambda, a: u, b: v, mu: &local.mu, clip: None };

    let singular = if p.side() <= dual::DENSE_STATES { dual::decompose(&own.dense()) } else { None };
    let singular = singular.map(|(_, _, right)| rows::leading(&right, right.cols().min(u.cols() + 5)));
    let polar = dual::polar(&own, singular.as_ref(), seed);
    let ray = own.ray();

    let mut points = vec![own];
    if let Some(w) = witness {
        points.push(Point { a: w.a, b: w.b, mu: w.mu, clip: w.clip, ..own });
    }
    let bound = dual::best_bound(&points, seed);

    let (mut rel_re, mut rel_se) = (None, None);
    if let Some(truth) = truth {
        let truth = Rows::new("the true transition matrix", truth)?;
        let scale = truth.norm2(weights);
        rel_re = Some(truth.residual2(weights, u, v) / scale);
        rel_se = Some(p.distance2(weights, &truth) / scale);
    }

    Ok(Recomputed {
        rank: u.cols(),
        feasibility: feasibility(u, v),
        fidelity,
        regularizer,
        objective,
        fidelity_rounding,
        rel_le1: local.rel_le1,
        rel_le2: local.rel_le2,
        ge: polar - 1.0,
        ge_of_columns: dual::polar_of_columns(&own) - 1.0,
        ge_rounding: own.rounding(),
        rel_dg: relative_gap(&ray, polar, objective),
        ray,
        rel_le_rounding: local.rounding,
        lower_bound: bound.value,
        certified_gap: ((objective - bound.value) / objective).max(0.0),
        objective_of_one: lambda_max::objective_of_one(&p, weights, lambda),
        bound_proof: bound.proof,
        bound_norm: bound.norm,
        bound_rounding: bound.rounding,
        rel_re,
        rel_se,
    })
}

/// relDG for a value of `Omega°`.
fn relative_gap(ray: &Ray, polar: f64, objective: f64) -> f64 {
    (objective - ray.value(if polar > 0.0 { 1.0 / polar } else { 0.0 })) / objective
}

fn check_input(claimed: &Claimed<'_>, witness: Option<Witness<'_>>, truth: Option<&dyn Operator>) -> Result<()> {
    let Claimed { p, weights, lambda, u, v } = *claimed;
    let (m, n) = (p.rows(), p.cols());
    if m == 0 || n == 0 {
        return Err(Error::Empty { what: "the transition matrix" });
    }
    if !(lambda.is_finite() && lambda > 0.0) {
        return Err(Error::Setting { name: "lambda", value: lambda.to_string(), allowed: "it must be a positive number" });
    }
    let size = |what, found, expected| if found == expected { Ok(()) } else { Err(Error::SizeMismatch { what, expected, found }) };
    let numbers = |what, list: &[f64]| match list.iter().position(|x| !x.is_finite()) {
        Some(row) => Err(Error::NotFinite { what, row, column: 0, value: list[row] }),
        None => Ok(()),
    };
    size("the list of weights", weights.len(), m)?;
    numbers("the list of weights", weights)?;
    if let Some(row) = weights.iter().position(|x| *x < 0.0) {
        return Err(Error::Negative { what: "the list of weights", row, column: 0, value: weights[row] });
    }
    if u.cols() == 0 {
        return Err(Error::Empty { what: "U" });
    }
    size("U (rows)", u.rows(), m)?;
    size("V (rows)", v.rows(), n)?;
    size("V (columns)", v.cols(), u.cols())?;
    check_finite("U", u)?;
    check_finite("V", v)?;
    if let Some(w) = witness {
        size("the witness a (rows)", w.a.rows(), m)?;
        size("the witness b (rows)", w.b.rows(), n)?;
        size("the witness b (columns)", w.b.cols(), w.a.cols())?;
        size("the witness mu", w.mu.len(), m)?;
        check_finite("the witness a", w.a)?;
        check_finite("the witness b", w.b)?;
        numbers("the witness mu", w.mu)?;
        if let Some((left, right, excess)) = w.clip {
            size("the witness left (rows)", left.rows(), m)?;
            size("the witness right (rows)", right.rows(), n)?;
            size("the witness right (columns)", right.cols(), left.cols())?;
            size("the witness excess", excess.len(), left.cols())?;
            check_finite("the witness left", left)?;
            check_finite("the witness right", right)?;
            numbers("the witness excess", excess)?;
        }
    }
    let Some(truth) = truth else { return Ok(()) };
    size("the true transition matrix", truth.rows(), m)?;
    size("the true transition matrix (columns)", truth.cols(), n)
}

fn feasibility(u: &Mat, v: &Mat) -> Feasibility {
    let far_from_one = |sums: &[f64]| sums.iter().fold(0.0f64, |worst, s| worst.max((s - 1.0).abs()));
    let rows: Vec<f64> = (0..u.rows()).map(|i| u.row(i).iter().sum()).collect();
    Feasibility {
        row_sum_error: far_from_one(&rows),
        column_sum_error: far_from_one(&column_sums(v, None)),
        most_negative: u.as_slice().iter().chain(v.as_slice()).fold(0.0f64, |least, x| least.min(*x)),
    }
}

/// An entry of a product with so many columns is wrong by this share of itself at most.
fn rounding_share(columns: usize) -> f64 {
    (columns + 64) as f64 * f64::EPSILON
}

struct RecheckedErrors {
    mu: Vec<f64>,
    rel_le1: f64,
    rel_le2: f64,
    rounding: (f64, f64),
}

/// The multipliers mu and the paper's relLE1 and relLE2 (its section 6.1). With `grad g = Xi^2 (U V^T - P)`:
/// `grad g V = Xi^2 (U (V^T V) - P V)` and `grad g^T U = V (U^T Xi^2 U) - P^T Xi^2 U`.
fn local_errors(p: &Rows, claimed: &Claimed<'_>, u_norms: &[f64], v_norms: &[f64]) -> RecheckedErrors {
    let Claimed { weights, lambda, u, v, .. } = *claimed;
    let (m, n, s) = (u.rows(), v.rows(), u.cols());
    let squares: Vec<f64> = weights.iter().map(|x| x * x).collect();
    // A column of length zero has no direction; its terms are zero.
    let ratio = |above: f64, below: f64| if below > 0.0 { lambda * above / below } else { 0.0 };
    let on_u: Vec<f64> = (0..s).map(|j| ratio(v_norms[j], u_norms[j])).collect();
    let on_v: Vec<f64> = (0..s).map(|j| ratio(u_norms[j], v_norms[j])).collect();

    let (ug, pv) = (product(u, &cross(v, v, None)), p.times(v));
    let gradient_u = Mat::from_fn(m, s, |i, j| squares[i] * (ug[(i, j)] - pv[(i, j)]));
    let mu: Vec<f64> = (0..m)
        .map(|i| {
            let floor = SUPPORT * u.row(i).iter().fold(0.0f64, |most, x| most.max(*x));
            let support: Vec<usize> = (0..s).filter(|&j| u[(i, j)] > floor).collect();
            let total: f64 = support.iter().map(|&j| on_u[j] * u[(i, j)] + gradient_u[(i, j)]).sum();
            total / support.len().max(1) as f64
        })
        .collect();
    let error1 = sum(m, |i| (0..s).map(|j| ((mu[i] - gradient_u[(i, j)]).max(0.0) - on_u[j] * u[(i, j)]).abs()).sum());
    let scale1 = sum(m, |i| (0..s).map(|j| (on_u[j] * u[(i, j)]).abs()).sum());

    let weighted = Mat::from_fn(m, s, |i, j| squares[i] * u[(i, j)]);
    let (va, pu) = (product(v, &cross(u, u, Some(&squares))), p.transposed_times(&weighted));
    let level = column_sums(u, Some(&mu));
    let error2 = sum(n, |i| (0..s).map(|j| ((level[j] - (va[(i, j)] - pu[(i, j)])).max(0.0) - on_v[j] * v[(i, j)]).abs()).sum());
    let scale2 = sum(n, |i| (0..s).map(|j| (on_v[j] * v[(i, j)]).abs()).sum());

    // Each term is a difference of sums of products; rounding leaves a share of the sizes of both.
    let share = rounding_share(s);
    let size1 = sum(m, |i| (0..s).map(|j| mu[i].abs() + squares[i] * (ug[(i, j)].abs() + pv[(i, j)].abs())).sum());
    let level_size = column_sums(u, Some(&mu.iter().map(|m| m.abs()).collect::<Vec<_>>()));
    let size2 = sum(n, |i| (0..s).map(|j| level_size[j] + va[(i, j)].abs() + pu[(i, j)].abs()).sum());
    let rounding = (share * size1 / scale1, (share + m as f64 * f64::EPSILON) * (size2 + n as f64 * share * size1) / scale2);
    RecheckedErrors { mu, rel_le1: error1 / scale1, rel_le2: error2 / scale2, rounding }
}
