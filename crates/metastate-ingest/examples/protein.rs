//! A discretised molecular trajectory becomes metastable sets with timescales. The same as `examples/python/protein.ipynb`.
//!
//! `cargo run --release -p metastate-ingest --example protein TRAJECTORY.parquet STATE_COLUMN LAG`

use metastate::fit::{FitOptions, Rank};
use metastate::solve::Silent;
use metastate::{Data, Estimate, WeightPower, fit};
use metastate_ingest::{As, Data as Read, InputSettings, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [file, state, lag] =
        std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "give a file, the column of states and the lag")?;
    let lag: usize = lag.parse()?;
    let settings = InputSettings { as_: Some(As::Trajectories), state: Some(state), lag, keep_frames: true, ..InputSettings::default() };
    let Read::Counts(counted) = read(&[file], &settings, &mut metastate_ingest::Silent)?.data else {
        return Err("this is no trajectory".into());
    };
    // Weights by the square root count every transition once: slow, rare states are seen better.
    let estimate = Estimate { weight_power: WeightPower::Half, ..Estimate::default() };
    let data = match &counted.frames {
        Some(frames) => Data::from_frames(&counted.counts, frames, &estimate)?,
        None => Data::from_counts(&counted.counts, &estimate)?,
    };
    let model = fit(&data, &FitOptions::default().rank(Rank::Given(6))?, &mut Silent)?;
    println!("{} metastable sets of {} states", model.rank(), data.chain().states());
    for mode in model.latent_chain()?.spectrum().iter().skip(1) {
        println!("eigenvalue {:.4}, timescale {:.0} frames", mode.modulus(), mode.timescale * lag as f64);
    }
    Ok(())
}
