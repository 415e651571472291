//! `--check`: the inputs counted again at several lags, beside what the model predicts.

use metastate::aggregate::latent::{CheckEntry, aligned, chapman_kolmogorov, projected_spectrum};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{LaggedCounts, advice};
use metastate::workspace::folds::{NO_STATE, count_blocks};
use metastate::{CountMode, Csr};
use metastate_ingest::{As, CountedStates, Data};
use metastate_report::{CheckRow, Forecast};

use super::tables::timescales;
use super::{Model, Recount};
use crate::args::{ForecastArgs, InputArgs};
use crate::error::{CliError, Result};
use crate::verify::find_inputs;

/// Adds the check and the timescales at each lag.
pub fn against_counts(
    recount: &mut Recount,
    command: &ForecastArgs,
    files: &[String],
    model: &Model,
    forecast: &mut Forecast,
) -> Result<()> {
    let mut input = inputs(recount, files)?;
    let base = input.lag;
    let mut points = Vec::new();
    for &steps in &command.lags {
        let lag = usize::try_from(steps).ok().and_then(|n| n.checked_mul(base));
        input.lag =
            lag.ok_or_else(|| CliError::bad("E-CLI-ARGUMENT", format!("--lags holds {steps}; that many lags cannot be counted")))?;
        let ingested = recount.counted(&input)?;
        let (As::Trajectories, Data::Counts(counted)) = (ingested.as_, ingested.data) else {
            return Err(CliError::bad(
                "E-CLI-ARGUMENT",
                "the inputs are single moves or counts; only trajectories can be counted at several lags",
            )
            .remedy("leave out --check, or name trajectories after it"));
        };
        let counts = on_our_states(&counted, model, input.lag, forecast)?;
        // Pairs of a sliding window overlap: only every lag-th is new.
        let overlap = if counted.counts.mode() == CountMode::Sliding { input.lag as f64 } else { 1.0 };
        let lag = input.lag as u64;
        let row = |e: &CheckEntry| CheckRow {
            steps,
            lag,
            from: e.from + 1,
            to: e.to + 1,
            predicted: e.predicted,
            counted: e.counted,
            low: e.low,
            high: e.high,
            transitions: e.transitions,
            agrees: e.agrees(),
        };
        if model.kinetics.is_none() {
            let entries = chapman_kolmogorov(&model.chain, &model.lumped, &model.part, &counts, steps, overlap)?;
            forecast.check.extend(entries.iter().map(row));
            forecast.timescales.extend(timescales("counted", steps, lag, &projected_spectrum(model.chain.u(), &counts)?, &[]));
            continue;
        }
        let blocks = blocks(&counted, model, input.lag)?;
        let data = LaggedCounts { counts: &counts, blocks: &blocks, lag: lag as f64, overlap };
        let found = data.kinetics(model.chain.u(), true)?;
        forecast.check.extend(found.chapman_kolmogorov(model.chain.u(), model.chain.k(), &data, steps).iter().map(row));
        forecast.timescales.extend(timescales("counted", steps, lag, &found.modes, &found.timescale_intervals(CONFIDENCE)));
        points.extend(found.lag_point(lag as f64, CONFIDENCE));
    }
    forecast.hints.extend(advice(&points, base as f64));
    Ok(())
}

/// What is to be counted: the files named after `--check`, else those of the fit, which must still be there as they were.
fn inputs(recount: &Recount, files: &[String]) -> Result<InputArgs> {
    let summary = &recount.loaded.summary;
    if !files.is_empty() {
        return Ok(InputArgs { inputs: files.to_vec(), ..recount.input.clone() });
    }
    match find_inputs(summary, "nothing could be counted at other lags") {
        Ok(()) => Ok(recount.input.clone()),
        Err(e) => Err(e.blame_input().remedy(format!("put the inputs back (then: {}), or name them after --check", summary.directory))),
    }
}

/// The counts over the states of the result. What the others have is told in a hint.
fn on_our_states(counted: &CountedStates, model: &Model, lag: usize, forecast: &mut Forecast) -> Result<Csr> {
    let counts = aligned(&counted.counts, &model.states)?;
    if counts.lost > 0.0 {
        let lost = 100.0 * (counts.lost / counted.counts.transitions());
        forecast.hints.push(format!("at lag {lag}, {lost:.3} % of the transitions touch states that the result does not have"));
    }
    if counts.counts.nonzeros() == 0 {
        return Err(CliError::bad("E-CLI-STATE", format!("at lag {lag} no transition joins two states of the result"))
            .remedy("check that these are the trajectories, the column and the labels of the fit"));
    }
    Ok(counts.counts)
}

/// The trajectories in blocks over the states of the result, counted at the lag.
fn blocks(counted: &CountedStates, model: &Model, lag: usize) -> Result<Vec<Csr>> {
    let Some(frames) = &counted.frames else { return Ok(Vec::new()) };
    let place: Vec<u32> = counted.counts.index().labels().map(|label| model.states.position(&label).unwrap_or(NO_STATE)).collect();
    let frames: Vec<u32> = frames.iter().map(|&s| if s == NO_STATE { s } else { place[s as usize] }).collect();
    let blocks = (frames.len() / (20 * lag)).clamp(2, 60);
    Ok(count_blocks(&frames, model.states.len(), lag, counted.counts.mode(), blocks)?)
}
