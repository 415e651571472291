//! The rank chosen without the truth on planted chains (d = 300, r = 3 to 8), and how that fades with less data.
//!
//! `cargo run --release -p metastate-lab --example chosen_rank [d] [chains] [n/d^2 ...]`

use std::time::Instant;

use metastate::Folds;
use metastate::simulate::planted;
use metastate::workspace::select::{SelectSettings, select};

fn main() -> metastate::Result<()> {
    let arguments: Vec<f64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let d = arguments.first().map_or(300, |d| *d as usize);
    let chains = arguments.get(1).map_or(20, |c| *c as u64);
    let ratios = if arguments.len() > 2 { arguments[2..].to_vec() } else { vec![10.0, 5.0, 2.0, 1.0, 0.5] };
    for ratio in ratios {
        let start = Instant::now();
        let (mut right, mut chosen) = (0, Vec::new());
        for chain in 0..chains {
            let r = 3 + (chain % 6) as usize;
            let seed = 1000 + chain;
            let counts = planted(d, r, seed)?.sample_counts((ratio * (d * d) as f64) as u64, seed)?;
            let folds = Folds::of_trips(counts.csr(), 5, seed)?;
            let choice = select(&folds, &SelectSettings { max_rank: 16, ..SelectSettings::default() })?;
            right += usize::from(choice.rank == r);
            chosen.push(format!(
                "{r}:{}{} c{} ({:.1})",
                choice.rank,
                if choice.rank == r { "" } else { "!" },
                choice.prior,
                choice.clearness()
            ));
        }
        println!(
            "n/d^2 = {ratio}: {right} of {chains} right, {:.1} s; r:chosen prior (clearness) {}",
            start.elapsed().as_secs_f64(),
            chosen.join(", ")
        );
    }
    Ok(())
}
