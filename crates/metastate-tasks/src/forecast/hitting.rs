//! `--to`: the mean time from every state into a set of states.

use metastate::kinetics::Microstates;
use metastate_report::HittingRow;

use super::{Model, Recount};
use crate::error::Result;
use crate::verify::find_inputs;

/// By the states' own chain, which neither prior nor penalty touches. Where the inputs are not there to be counted again, or the factors were asked for by name, by the factors; then a sentence says so.
pub fn times(recount: &mut Recount, model: &Model, inside: &[bool]) -> Result<(Vec<HittingRow>, Option<String>)> {
    if model.kinetics.is_none() {
        return Ok((rows(model, inside, &model.chain.hitting_times(inside)?), None));
    }
    let by_factors = |why: &str| -> Result<(Vec<HittingRow>, Option<String>)> {
        let hint = format!(
            "{why}, so the times to single states are those of the factors, which the prior of the refit shrinks; passage times between meta-states do not rest on them"
        );
        Ok((rows(model, inside, &model.chain.hitting_times(inside)?), Some(hint)))
    };
    if find_inputs(&recount.loaded.summary, "").is_err() {
        return by_factors("the inputs of the fit are no longer as they were");
    }
    let dataset = recount.data()?;
    let labels: Vec<String> = dataset.chain().index().labels().map(|l| l.to_string()).collect();
    if labels != model.labels {
        return by_factors("the states of the inputs are no longer those of the result");
    }
    recount.reporter.spin("hitting times");
    let chain = dataset.chain();
    let steps = Microstates::weighted(chain.p(), model.chain.u(), chain.departures().to_vec())?.steps_to(inside)?;
    if steps.iter().any(|t| t.is_nan()) {
        return by_factors("the linear system of the states' own chain could not be solved");
    }
    Ok((rows(model, inside, &steps), None))
}

fn rows(model: &Model, inside: &[bool], steps: &[f64]) -> Vec<HittingRow> {
    let row = |(i, &steps): (usize, &f64)| HittingRow {
        label: model.labels[i].clone(),
        metastate: model.part[i] + 1,
        inside: inside[i],
        steps,
        time: model.time(steps),
    };
    steps.iter().enumerate().map(row).collect()
}
