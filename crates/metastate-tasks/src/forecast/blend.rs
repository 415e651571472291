//! `--blend`: the first step by each state's own counts, shrunk towards the model.

use metastate::compare::Blend;
use metastate_report::BlendRecord;

use super::{Model, Recount};
use crate::args::RefitKind;
use crate::error::{CliError, Result};
use crate::verify::find_inputs;

/// What was chosen, and the law after one step.
pub struct Blended {
    /// For the document.
    pub record: BlendRecord,
    /// Over all states.
    pub next: Vec<f64>,
}

/// Reads the inputs again, chooses the strength on held-out transitions, and takes one step from a law.
pub fn first_step(recount: &mut Recount, model: &Model, law: &[f64]) -> Result<Blended> {
    let (loaded, fit) = (recount.loaded, recount.fit);
    let refused = |why: &str, remedy: &str| CliError::bad("E-CLI-ARGUMENT", format!("--blend: {why}")).remedy(remedy);
    let (Some(refit), RefitKind::Likelihood) = (&loaded.refit, fit.refit_kind()) else {
        return Err(refused("this result has no refit by likelihood", "fit with --refit likelihood, or leave out --blend"));
    };
    let summary = &loaded.summary;
    find_inputs(summary, "their counts could not be blended with the model")
        .map_err(|e| e.blame_input().remedy(format!("put the inputs back (then: {}), or leave out --blend", summary.directory)))?;
    let dataset = recount.data()?;
    let Some(parts) = dataset.parts() else {
        return Err(refused("the result was fitted on a transition matrix, which holds no counts", "leave out --blend"));
    };
    let labels: Vec<String> = dataset.chain().index().labels().map(|l| l.to_string()).collect();
    if labels != model.labels {
        return Err(refused("the states of the inputs are no longer those of the result", "fit again, or put the inputs back"));
    }
    recount.reporter.spin("blend");
    let prior = summary.refit.as_ref().and_then(|r| r.prior()).unwrap_or(0.0);
    let blend = Blend::choose(&dataset.data, refit.rank(), prior, fit.folds, summary.seed)?;
    let (ahead, ahead_se) = blend.ahead();
    let record = BlendRecord {
        pseudo_counts: blend.pseudo,
        log_likelihood: blend.blend.log_likelihood(),
        log_likelihood_model: blend.model.log_likelihood(),
        log_likelihood_counts: blend.counts.log_likelihood(),
        ahead,
        ahead_se,
    };
    Ok(Blended { next: blend.step(parts.counts(), refit, law)?, record })
}

impl Blended {
    /// For people.
    pub fn sentence(&self) -> String {
        let r = &self.record;
        let (better, scores) = (
            if r.ahead > 0.0 { "better" } else { "no better" },
            format!(
                "{:.5} a held-out transition; model {:.5}, counts {:.5}",
                r.log_likelihood, r.log_likelihood_model, r.log_likelihood_counts
            ),
        );
        format!(
            "the first step blends each state's counts with {} transitions of the model, which predicts {better} than either alone ({scores}; ahead by {:.1e}, standard error {:.1e})",
            r.pseudo_counts, r.ahead, r.ahead_se
        )
    }
}
