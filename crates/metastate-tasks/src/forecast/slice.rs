//! `--slice H`: flows between the meta-states in one slice, and where the next step leads in it.

use metastate::Label;
use metastate::aggregate::SliceFlows;
use metastate::solve::Factors;
use metastate_ingest::nearest;
use metastate_report::{SavedResult, SliceForecast};

use crate::args::ForecastArgs;
use crate::error::{CliError, Result};

/// Refuses what a slice cannot be asked for, before anything is computed.
pub fn check(command: &ForecastArgs, loaded: &SavedResult) -> Result<()> {
    let refused = |why: String, remedy: &str| Err(CliError::bad("E-CLI-ARGUMENT", why).remedy(remedy));
    match (&command.slice, &loaded.slices) {
        (Some(_), None) => refused("this result has no slices".to_owned(), "fit with --slice, or leave out --slice"),
        (None, Some(_)) if command.blend => {
            refused("--blend mixes counts and model of a chain without slices".to_owned(), "fit without --slice, or leave out --blend")
        }
        (Some(_), Some(_)) if command.steps != [1] || command.blend || command.check.is_some() || !command.to.is_empty() => refused(
            "a forecast in a slice is one step ahead: in which slice a later step falls, the data do not say".to_owned(),
            "leave out --steps, --to, --check and --blend, or --slice: without it they speak of all slices together",
        ),
        _ => Ok(()),
    }
}

/// What happens in the slice, and the law of the states after one step in it; none where the model sends nothing from here then.
pub fn look(label: &str, loaded: &SavedResult, factors: &Factors, start: &[f64]) -> Result<Option<(SliceForecast, Vec<f64>)>> {
    let Some(slices) = &loaded.slices else { return Ok(None) };
    let names: Vec<String> = slices.labels().labels().map(|l| l.to_string()).collect();
    let Some(h) = slices.labels().position(&Label::from(label)).map(|h| h as usize) else {
        let remedy = match nearest(label, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("the slices are {}", names.iter().take(40).cloned().collect::<Vec<_>>().join(", ")),
        };
        return Err(CliError::bad("E-CLI-STATE", format!("--slice names `{label}`, which is no slice of the result")).remedy(remedy));
    };
    let found = SliceFlows::new(factors, slices, &loaded.xi)?;
    let rows = |m: &metastate::Mat| (0..m.rows()).map(|j| m.row(j).to_vec()).collect::<Vec<_>>();
    let record = SliceForecast {
        slice: names[h].clone(),
        share: found.flows[h].as_slice().iter().sum(),
        flows: rows(&found.flows[h]),
        chain: rows(&found.chain(h)),
    };
    match slices.step(factors, h, start)? {
        Some(law) => Ok(Some((record, law))),
        None => Err(CliError::bad("E-CLI-STATE", format!("in the slice `{label}` the model sends nothing from where the forecast starts"))
            .remedy("start elsewhere with --from, or look at another slice")),
    }
}
