//! The solution of the stated problem, by `metastate::verify`: objective, errors, bound and gap.

use metastate::Operator;
use metastate::verify::{Reported, Witness, compare, recompute};
use metastate_report::{Summary, number};

use super::checks::Checks;
use super::status::Proven;
use super::subject::Subject;
use crate::error::{CliError, Result};
use crate::settings;

/// One line a number; hands back what was proven here.
pub fn check(checks: &mut Checks, subject: &Subject, truth: Option<&dyn Operator>) -> Result<Proven> {
    let (summary, chain) = (&subject.result.summary, &subject.data.chain);
    let (lambda, lambda_max) = settings::lambda(subject.fit, chain, summary.seed)?;
    // A lambda that was chosen is as it was chosen: the choice has checks of its own.
    let lambda = lambda.or(summary.choice.as_ref().and_then(|c| c["lambda"].as_f64())).unwrap_or(f64::NAN);
    checks.same("lambda", summary.lambda, lambda);
    checks.same("lambda_max", summary.lambda_max.unwrap_or(f64::NAN), lambda_max);
    let (a, b, mu) = &subject.result.witness;
    let found = recompute(
        chain.p(),
        chain.weights(),
        summary.lambda,
        &subject.result.factors.u,
        &subject.result.factors.v,
        Some(Witness { a, b, mu }),
        truth,
        summary.seed,
    )
    .map_err(|e| {
        CliError::failed("E-CLI-RESULT", format!("the factors cannot be those of these data: {e}")).at(subject.folder.display().to_string())
    })?;
    for c in compare(&reported(summary), &found) {
        checks.add(c.name, number(c.reported), number(c.recomputed), c.agrees);
    }
    if truth.is_some() && (summary.errors.rel_re.is_none() || summary.errors.rel_se.is_none()) {
        checks.table("rel_re and rel_se", Some("the truth was given, and they are not told".to_owned()));
    }
    let words = ["trivial", "dense", "low-rank", "cholesky", "lanczos", "estimate", "not proven"];
    checks.add("bound_proof", &summary.bound_proof, "one of the words for a proof", words.contains(&summary.bound_proof.as_str()));
    Ok(Proven { gap: Some(found.certified_gap), slack: slack(found.bound_norm) })
}

/// What a bound proven more loosely here explains, as in the comparison of gaps.
fn slack(bound_norm: f64) -> f64 {
    1e-7 + 2.0 * (bound_norm - 1.0).max(0.0)
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
        lower_bound: Some(s.lower_bound),
        certified_gap: Some(s.errors.certified_gap),
        rel_re: s.errors.rel_re,
        rel_se: s.errors.rel_se,
    }
}
