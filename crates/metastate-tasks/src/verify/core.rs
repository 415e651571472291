//! The solution of the stated problem, by `metastate::verify`: objective, errors, bound and gap.

use metastate::Operator;
use metastate::fit::{ABOVE_NOISE, PRICE};
use metastate::proof::Effort;
use metastate::verify::{Claimed, Reported, Terms, check_lambda_max, compare, recompute, recompute_whitened};
use metastate::workspace::LEAST_PRIOR;
use metastate::workspace::errors::{relative_recovery_error, relative_sampling_error};
use metastate_report::{BoundProof, Summary, number};

use super::checks::Checks;
use super::status::ProvenAgain;
use super::subject::Subject;
use crate::args::ObjectiveKind;
use crate::error::{CliError, Result};
use crate::settings;

/// Power steps may end this share below the noise that the solver found.
const NOISE_ROOM: f64 = 0.02;

/// What follows from recorded numbers may differ by this share.
const FOLLOWS: f64 = 1e-12;
/// Directions are orthonormal but for this.
const ORTHONORMAL: f64 = 1e-9;
/// The noise is told to this.
const NOISE_DIGITS: f64 = 1e-6;
/// Recovery and sampling errors by this share, and by this much, as in `metastate::verify`.
const RECOVERY: (f64, f64) = (1e-7, 1e-13);

/// One line a number; hands back what was proven here.
pub fn check(checks: &mut Checks, subject: &Subject, truth: Option<&dyn Operator>) -> Result<ProvenAgain> {
    let (summary, chain) = (&subject.result.summary, subject.data.chain());
    if subject.fit.objective == ObjectiveKind::Whitened {
        return whitened(checks, subject, truth);
    }
    if summary.whitened.is_some() {
        checks.table("whitened", Some("these options state the paper's problem".to_owned()));
    }
    let (lambda, lambda_max) = settings::lambda(subject.fit, chain, summary.seed)?;
    // A lambda that was chosen is as it was chosen: the choice has checks of its own.
    match lambda.or(summary.choice.as_ref().map(|c| c.lambda)) {
        Some(lambda) => checks.same("lambda", summary.lambda, lambda),
        None if subject.data.parts().is_none() && subject.fit.rank.is_some() => {
            checks.not_checked(
                "lambda",
                "as in the file",
                "searched for until the solution has the rank asked for, which is not done again",
            );
        }
        None => checks.same("lambda", summary.lambda, f64::NAN),
    }
    let told = summary.lambda_max.unwrap_or(f64::NAN);
    checks.same("lambda_max", told, lambda_max);
    let cannot = |e: metastate::Error| {
        CliError::failed("E-CLI-RESULT", format!("the factors cannot be those of these data: {e}")).at(subject.folder.display().to_string())
    };
    // The same number by other code: a search at it finds nothing better than one meta-state, a search below it does.
    let looked = check_lambda_max(chain.p(), chain.weights(), told, summary.seed).map_err(cannot)?;
    let words = format!("best pair {} at it, {} a tenth below", number(looked.at_it), number(looked.below_it));
    checks.add(
        "lambda_max by another search",
        "at most 1, above 1",
        if looked.degenerate { "one law explains all".to_owned() } else { words },
        looked.stands(),
    );
    let found = recompute(
        &Claimed {
            p: chain.p(),
            weights: chain.weights(),
            lambda: summary.lambda,
            u: &subject.result.factors.u,
            v: &subject.result.factors.v,
        },
        Some(subject.result.witness.for_checking()),
        truth,
        summary.seed,
    )
    .map_err(cannot)?;
    for c in compare(&reported(summary), &found) {
        checks.add(c.name, number(c.reported), number(c.recomputed), c.agrees);
    }
    if truth.is_some() && (summary.errors.rel_re.is_none() || summary.errors.rel_se.is_none()) {
        checks.table("rel_re and rel_se", Some("the truth was given, and they are not told".to_owned()));
    }
    let wrong = wrong_proof(summary, chain.p());
    let told = match summary.bound_failure_probability {
        Some(p) => format!("{}, fails with probability {p:e}", summary.bound_proof),
        None => summary.bound_proof.to_string(),
    };
    checks.add("bound_proof", told, wrong.unwrap_or("the word for this matrix"), wrong.is_none());
    Ok(ProvenAgain { gap: Some(found.certified_gap), slack: found.bound_slack() })
}

/// The whitened problem, stated again from the counts, the recorded prior and prices, and the directions in `prices.npz`.
fn whitened(checks: &mut Checks, subject: &Subject, truth: Option<&dyn Operator>) -> Result<ProvenAgain> {
    let (summary, chain) = (&subject.result.summary, subject.data.chain());
    let nothing = ProvenAgain { gap: None, slack: 0.0 };
    let (Some(told), Some((rows, columns)), Some(parts)) = (&summary.whitened, &subject.result.prices, subject.data.parts()) else {
        checks.table("whitened", Some("the terms of the problem, its directions or the counts are missing".to_owned()));
        return Ok(nothing);
    };
    // Prior, price and multiple are those of the recipe; lambda follows from them and the noise.
    let prior = subject.fit.prior.or(summary.choice.as_ref().map(|c| c.prior)).unwrap_or(f64::NAN).max(LEAST_PRIOR);
    checks.same("whitened: prior", told.prior, prior);
    checks.same("whitened: price", told.price, PRICE);
    checks.same("whitened: lambda over the noise", told.lambda_over_noise, ABOVE_NOISE);
    checks.add(
        "lambda",
        number(summary.lambda),
        number(told.lambda_over_noise * told.noise),
        (summary.lambda - told.lambda_over_noise * told.noise).abs() <= FOLLOWS * summary.lambda,
    );
    let terms = Terms { prior: told.prior, price: told.price, rows, columns, lambda: summary.lambda };
    let cannot = |e: metastate::Error| {
        CliError::failed("E-CLI-RESULT", format!("the factors cannot be those of these data: {e}")).at(subject.folder.display().to_string())
    };
    let factors = &subject.result.factors;
    let (found, whiteness) =
        recompute_whitened(parts.counts(), &terms, &factors.u, &factors.v, subject.result.witness.for_checking(), summary.seed)
            .map_err(cannot)?;
    checks.add("directions", "orthonormal", format!("off by {:.1e}", whiteness.defect), whiteness.defect <= ORTHONORMAL);
    // Power steps come from below: the noise told may be a little above what they find, and no more below it than rounding.
    let near = told.noise >= whiteness.noise * (1.0 - NOISE_DIGITS) && told.noise <= whiteness.noise * (1.0 + NOISE_ROOM) + NOISE_DIGITS;
    checks.add("whitened: noise", number(told.noise), format!("at least {}", number(whiteness.noise)), near);
    let claims = Reported { ge: None, rel_dg: None, rel_re: None, rel_se: None, ..reported(summary) };
    for c in compare(&claims, &found) {
        checks.add(c.name, number(c.reported), number(c.recomputed), c.agrees);
    }
    checks.not_checked("ge, rel_dg, lambda_max", number(summary.errors.ge), "heuristic: what a local search in white coordinates finds");
    checks.not_checked("whitened: scores", number(told.held_out), "measured on the folds; fit again to repeat them");
    let far = |claim: Option<f64>, here: f64| claim.is_some_and(|x| (x - here).abs() <= RECOVERY.0 * here + RECOVERY.1);
    if let Some(truth) = truth {
        let (re, se) =
            (relative_recovery_error(chain.weights(), factors, truth), relative_sampling_error(chain.weights(), chain.p(), truth));
        checks.add(
            "rel_re and rel_se",
            format!("{:?}, {:?}", summary.errors.rel_re, summary.errors.rel_se),
            format!("{re}, {se}"),
            far(summary.errors.rel_re, re) && far(summary.errors.rel_se, se),
        );
    }
    let wrong = wrong_proof(summary, chain.p());
    checks.add("bound_proof", summary.bound_proof, wrong.unwrap_or("the word for this matrix"), wrong.is_none());
    Ok(ProvenAgain { gap: Some(found.certified_gap), slack: found.bound_slack() })
}

/// The word for a proof must be the one that this matrix allows, with the numbers that go with it.
fn wrong_proof(s: &Summary, p: &dyn Operator) -> Option<&'static str> {
    let effort = Effort::default();
    let (low_rank, few) = (p.low_rank().is_some(), p.rows().max(p.cols()) <= effort.cholesky_states);
    let proven = s.lower_bound.is_some() && s.errors.certified_gap.is_some();
    let (fits, certain) = match s.bound_proof {
        BoundProof::NotProven => (s.lower_bound.is_none() && s.errors.certified_gap.is_none(), true),
        BoundProof::Trivial => (proven && s.lower_bound == Some(0.0), true),
        BoundProof::LowRank => (proven && low_rank, true),
        BoundProof::Cholesky => (proven && !low_rank && few, true),
        BoundProof::Chebyshev | BoundProof::Lanczos => (proven && !low_rank && !few, false),
    };
    match (fits, certain, s.bound_failure_probability) {
        (false, ..) => Some("not what was done with this matrix"),
        (_, true, None) => None,
        (_, false, Some(p)) if p > 0.0 && p <= effort.failure_probability => None,
        _ => Some("another probability of failure"),
    }
}

fn reported(s: &Summary) -> Reported {
    Reported {
        rank: Some(s.rank),
        fidelity: Some(s.fidelity),
        regularizer: Some(s.regularizer),
        objective: Some(s.objective),
        rel_le1: Some(s.errors.rel_le1),
        rel_le2: Some(s.errors.rel_le2),
        ge: Some(s.errors.ge),
        rel_dg: Some(s.errors.rel_dg),
        lower_bound: s.lower_bound,
        certified_gap: s.errors.certified_gap,
        objective_of_one: s.objective_of_one,
        explained_gap: s.errors.explained_gap,
        rel_re: s.errors.rel_re,
        rel_se: s.errors.rel_se,
    }
}
