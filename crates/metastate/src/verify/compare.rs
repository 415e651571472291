//! What a result claims, compared with what was found.

use super::{BoundProof, Recomputed, relative_gap};

/// U and V may miss their constraints by this much.
const FEASIBLE: f64 = 1e-9;
/// Share of the objective by which a bound may be better than what was found here, at most.
const MOST_UNEXPLAINED: f64 = 0.02;

/// Sums that both sides make of the same numbers may differ by this share.
const SUM: f64 = 1e-9;
/// The fidelity by this share of itself and of the objective: rounding in a fit that is nearly perfect is relative to the data, not to the fit.
const FIDELITY: (f64, f64) = (1e-7, 1e-11);
/// Local errors by this share of themselves, and by this much.
const LOCAL: (f64, f64) = (1e-4, 1e-9);
/// GE by this share, relDG by this share and this much.
const GLOBAL: (f64, f64) = (1e-6, 1e-7);
/// Recovery and sampling errors by this share of themselves, and by this much.
const RECOVERY: (f64, f64) = (1e-7, 1e-13);
/// How loose a norm may be that another proof did better: all of what Lanczos left open, this share of what was decomposed or factorised.
const DONE_BETTER: f64 = 0.2;

/// The numbers that a result claims; those that it does not state are `None` and not compared.
///
/// See the example of [`compare`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[allow(missing_docs)] // the same names and meanings as in `Recomputed`
pub struct Reported {
    pub rank: Option<usize>,
    pub fidelity: Option<f64>,
    pub regularizer: Option<f64>,
    pub objective: Option<f64>,
    pub rel_le1: Option<f64>,
    pub rel_le2: Option<f64>,
    pub ge: Option<f64>,
    pub rel_dg: Option<f64>,
    pub lower_bound: Option<f64>,
    pub certified_gap: Option<f64>,
    pub objective_of_one: Option<f64>,
    pub explained_gap: Option<f64>,
    pub rel_re: Option<f64>,
    pub rel_se: Option<f64>,
}

impl From<&Recomputed> for Reported {
    fn from(r: &Recomputed) -> Self {
        Reported {
            rank: Some(r.rank),
            fidelity: Some(r.fidelity),
            regularizer: Some(r.regularizer),
            objective: Some(r.objective),
            rel_le1: Some(r.rel_le1),
            rel_le2: Some(r.rel_le2),
            ge: Some(r.ge),
            rel_dg: Some(r.rel_dg),
            lower_bound: Some(r.lower_bound),
            certified_gap: Some(r.certified_gap),
            objective_of_one: Some(r.objective_of_one),
            explained_gap: explained(r.objective, r.lower_bound, r.objective_of_one),
            rel_re: r.rel_re,
            rel_se: r.rel_se,
        }
    }
}

/// One claim, checked.
///
/// See the example of [`compare`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Check {
    /// Which number.
    pub name: &'static str,
    /// What the result claims.
    pub reported: f64,
    /// What was found.
    pub recomputed: f64,
    /// How far apart the two may be, in the number's own unit.
    pub tolerance: f64,
    /// Whether the claim stands.
    pub agrees: bool,
}

/// Checks every claim, after the constraints on U and V (always there, as `feasibility`, with 0 as the claim).
///
/// Objective, local and recovery errors have one value each: both must agree within a small tolerance. `ge` comes from
/// a search, and two honest ones differ: it may not be smaller than what any search from the solution's own columns finds. `rel_dg`
/// follows from it. `lower_bound` and `certified_gap` may not be *better* than what is proven here by more than rounding and the
/// looseness of the proof explain. A number that is NaN, or was claimed and could not be recomputed, never stands.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::verify::{Claimed, Reported, compare, recompute};
///
/// let truth = planted(10, 2, 1)?;
/// let chain = truth.chain()?;
/// let claimed = Claimed { p: chain.p(), weights: chain.weights(), lambda: 1e-4, u: &truth.u, v: &truth.v };
/// let recomputed = recompute(&claimed, None, None, 0)?;
/// let honest = Reported::from(&recomputed);
/// assert!(compare(&honest, &recomputed).iter().all(|check| check.agrees));
/// let flattered = Reported { objective: Some(0.5 * recomputed.objective), ..honest };
/// assert!(compare(&flattered, &recomputed).iter().any(|check| check.name == "objective" && !check.agrees));
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn compare(reported: &Reported, recomputed: &Recomputed) -> Vec<Check> {
    let (r, f) = (recomputed, recomputed.objective.abs());
    let rounding = r.fidelity_rounding;
    let mut checks = vec![equal("feasibility", 0.0, r.feasibility.worst(), FEASIBLE)];
    let mut add = |claim: Option<f64>, check: &dyn Fn(f64) -> Check| checks.extend(claim.map(check));

    add(reported.rank.map(|k| k as f64), &|x| equal("rank", x, r.rank as f64, 0.0));
    add(reported.fidelity, &|x| equal("fidelity", x, r.fidelity, FIDELITY.0 * r.fidelity.abs() + FIDELITY.1 * f + rounding));
    add(reported.regularizer, &|x| equal("regularizer", x, r.regularizer, SUM * r.regularizer.abs()));
    add(reported.objective, &|x| equal("objective", x, r.objective, SUM * f + rounding));
    add(reported.rel_le1, &|x| equal("rel_le1", x, r.rel_le1, LOCAL.0 * r.rel_le1.abs() + LOCAL.1 + r.rel_le_rounding.0));
    add(reported.rel_le2, &|x| equal("rel_le2", x, r.rel_le2, LOCAL.0 * r.rel_le2.abs() + LOCAL.1 + r.rel_le_rounding.1));
    // Two honest searches find different things; but every search starts from the solution's own columns.
    add(reported.ge, &|x| at_least("ge", x, r.ge_of_columns, GLOBAL.0 * (1.0 + r.ge_of_columns.abs()) + r.ge_rounding));
    // relDG follows from the GE that the result states.
    let polar = reported.ge.unwrap_or(r.ge) + 1.0;
    let rel_dg = relative_gap(&r.ray, polar, r.objective);
    add(reported.rel_dg, &|x| {
        equal("rel_dg", x, rel_dg, GLOBAL.0 * rel_dg.abs() + GLOBAL.1 + (r.ray.rounding(polar) + 2.0 * rounding) / f)
    });
    let sharp = r.bound_slack();
    add(reported.lower_bound, &|x| at_most("lower_bound", x, r.lower_bound, sharp * f));
    add(reported.certified_gap, &|x| at_least("certified_gap", x, r.certified_gap, sharp));
    // The gap is nothing but the objective and the bound, and one without the other is no claim.
    let stated = match (reported.objective, reported.lower_bound) {
        (Some(objective), Some(bound)) => ((objective - bound) / objective).max(0.0),
        _ => f64::NAN,
    };
    add(reported.certified_gap, &|x| equal("certified_gap as stated", x, stated, SUM));
    add(reported.objective_of_one, &|x| equal("objective_of_one", x, r.objective_of_one, SUM * r.objective_of_one.abs() + rounding));
    // The explained gap is nothing but three numbers that have lines of their own. Where one meta-state is as good there is none to state.
    let stated = match (reported.objective, reported.lower_bound, reported.objective_of_one) {
        (Some(objective), Some(bound), Some(of_one)) => explained(objective, bound, of_one).unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    add(reported.explained_gap, &|x| equal("explained_gap as stated", x, stated, SUM * stated.abs()));
    add(reported.rel_re, &|x| equal("rel_re", x, r.rel_re.unwrap_or(f64::NAN), RECOVERY.0 * r.rel_re.unwrap_or(0.0).abs() + RECOVERY.1));
    add(reported.rel_se, &|x| equal("rel_se", x, r.rel_se.unwrap_or(f64::NAN), RECOVERY.0 * r.rel_se.unwrap_or(0.0).abs() + RECOVERY.1));
    checks
}

/// `(F - bound) / (F_1 - F)`; none where the meta-states explain nothing over one.
fn explained(objective: f64, bound: f64, of_one: f64) -> Option<f64> {
    (of_one > objective).then(|| (objective - bound).max(0.0) / (of_one - objective)).filter(|gap| gap.is_finite())
}

impl Recomputed {
    /// By what share of the objective an honest lower bound may lie above the one that was proven here: rounding, and how far the norm
    /// of the dual point was proven to be above 1, which another proof may have done better.
    #[must_use]
    pub fn bound_slack(&self) -> f64 {
        let loose = (self.bound_norm - 1.0).clamp(0.0, MOST_UNEXPLAINED);
        let share = if matches!(self.bound_proof, BoundProof::Lanczos { .. }) { 1.0 } else { DONE_BETTER };
        SUM + share * loose + (2.0 * self.bound_rounding + self.fidelity_rounding) / self.objective.abs()
    }
}

fn equal(name: &'static str, reported: f64, recomputed: f64, tolerance: f64) -> Check {
    Check { name, reported, recomputed, tolerance, agrees: (reported - recomputed).abs() <= tolerance }
}

/// The claim may be larger (weaker), not smaller.
fn at_least(name: &'static str, reported: f64, recomputed: f64, tolerance: f64) -> Check {
    // Where rounding has no bound (a lambda so small that W overflows), whatever number is claimed cannot be denied.
    let agrees = reported >= recomputed - tolerance || (tolerance == f64::INFINITY && reported.is_finite());
    Check { name, reported, recomputed, tolerance, agrees }
}

/// The claim may be smaller (weaker), not larger.
fn at_most(name: &'static str, reported: f64, recomputed: f64, tolerance: f64) -> Check {
    Check { name, reported, recomputed, tolerance, agrees: reported <= recomputed + tolerance }
}
