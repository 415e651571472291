//! A chain whose meta-states are known, seen through a trajectory, and found again. The same as `examples/python/planted.ipynb`.
//!
//! `cargo run --release -p metastate --example planted`

use metastate::simulate::planted;
use metastate::solve::Silent;
use metastate::{Data, Estimate, FitOptions, WeightsBy, fit};

fn main() -> metastate::Result<()> {
    let (states, rank, seed) = (200, 4, 1);
    let truth = planted(states, rank, seed)?;
    let counts = truth.sample_counts(400_000, seed)?;
    let data = Data::from_counts(&counts, &Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() })?;
    let model = fit(&data, &FitOptions::default().seed(seed), &mut Silent)?;
    let found = model.against(truth.chain()?.p(), &data);
    println!("{} meta-states were planted, {} were found", rank, model.rank());
    println!("distance to the truth: the counts {:.1e}, the penalised solution {:.1e}", found.sampling, found.solution);
    if let Some(refit) = found.refit {
        println!("and the refit by likelihood {refit:.1e}");
    }
    match model.solution.certified_gap() {
        Some(gap) => println!("proven: the penalised objective is within {gap:.1e} of the best possible one"),
        None => println!("nothing was proven of the penalised objective"),
    }
    Ok(())
}
