//! `--check`: the inputs counted again at several lags, beside what the model predicts.

use metastate::aggregate::latent::{CheckEntry, aligned, chapman_kolmogorov, projected_spectrum};
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{LaggedCounts, advice};
use metastate::workspace::folds::{NO_STATE, count_blocks};
use metastate::{CountMode, Csr};
use metastate_ingest::{As, CountedStates, Data};
use metastate_report::{CheckRow, Forecast, Summary};

use super::{Model, timescales};
use crate::args::{ForecastArgs, InputArgs};
use crate::data;
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::verify::find_inputs;
use crate::watch::WatchReading;

/// Adds the check and the timescales at each lag.
#[allow(clippy::too_many_arguments)] // what is asked, what is known, where it goes, who watches
pub fn against_counts(
    command: &ForecastArgs,
    files: &[String],
    mut input: InputArgs,
    summary: &Summary,
    model: &Model,
    forecast: &mut Forecast,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<()> {
    if files.is_empty() {
        find_inputs(summary, "nothing could be counted at other lags").map_err(|e| {
            e.blame_input().remedy(format!("put the inputs back (then: {}), or name them after --check", summary.directory))
        })?;
    } else {
        input.inputs = files.to_vec();
    }
    let base = input.lag;
    let mut points = Vec::new();
    for &steps in &command.lags {
        let lag = usize::try_from(steps).ok().and_then(|n| n.checked_mul(base));
        input.lag =
            lag.ok_or_else(|| CliError::bad("E-CLI-ARGUMENT", format!("--lags holds {steps}; that many lags cannot be counted")))?;
        stopper.doing(Doing::Reading);
        let ingested = data::ingest(&input, true, &mut WatchReading { reporter, stopper })?;
        stopper.doing(Doing::Working);
        let (As::Trajectories, Data::Counts(counted)) = (ingested.as_, ingested.data) else {
            return Err(CliError::bad(
                "E-CLI-ARGUMENT",
                "the inputs are single moves or counts; only trajectories can be counted at several lags",
            )
            .remedy("leave out --check, or name trajectories after it"));
        };
        let counts = aligned(&counted.counts, &model.states)?;
        if counts.lost > 0.0 {
            let lost = counts.lost / counted.counts.transitions();
            forecast.hints.push(format!(
                "at lag {}, {:.3} % of the transitions touch states that the result does not have",
                input.lag,
                100.0 * lost
            ));
        }
        if counts.counts.nonzeros() == 0 {
            return Err(CliError::bad("E-CLI-STATE", format!("at lag {} no transition joins two states of the result", input.lag))
                .remedy("check that these are the trajectories, the column and the labels of the fit"));
        }
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
            let entries = chapman_kolmogorov(&model.chain, &model.lumped, &model.part, &counts.counts, steps, overlap)?;
            forecast.check.extend(entries.iter().map(row));
            forecast.timescales.extend(timescales("counted", steps, lag, &projected_spectrum(model.chain.u(), &counts.counts)?, &[]));
            continue;
        }
        let blocks = blocks(&counted, model, input.lag)?;
        let data = LaggedCounts { counts: &counts.counts, blocks: &blocks, lag: lag as f64, overlap };
        let found = data.kinetics(model.chain.u(), true)?;
        forecast.check.extend(found.chapman_kolmogorov(model.chain.u(), model.chain.k(), &data, steps).iter().map(row));
        forecast.timescales.extend(timescales("counted", steps, lag, &found.modes, &found.timescale_intervals(CONFIDENCE)));
        points.extend(found.lag_point(lag as f64, CONFIDENCE));
    }
    forecast.hints.extend(advice(&points, base as f64));
    Ok(())
}

/// The trajectories in blocks over the states of the result, counted at the lag.
fn blocks(counted: &CountedStates, model: &Model, lag: usize) -> Result<Vec<Csr>> {
    let Some(frames) = &counted.frames else { return Ok(Vec::new()) };
    let place: Vec<u32> = counted.counts.index().labels().map(|label| model.states.position(&label).unwrap_or(NO_STATE)).collect();
    let frames: Vec<u32> = frames.iter().map(|&s| if s == NO_STATE { s } else { place[s as usize] }).collect();
    let blocks = (frames.len() / (20 * lag)).clamp(2, 60);
    Ok(count_blocks(&frames, model.states.len(), lag, counted.counts.mode(), blocks)?)
}
