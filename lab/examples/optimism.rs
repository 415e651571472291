//! How much the held-out score of a chosen rank and prior flatters: planted chains, rank and prior chosen on five folds. The models of the folds are scored on what was held
//! out, which took part in the choice, and on a large fresh sample, which did not; from both the score of the true chain is taken off, so that the luck of the draw is not
//! mistaken for it. Beside it what the program takes off.
//!
//! `cargo run --release -p metastate-lab --example optimism [chains]`

use metastate::Folds;
use metastate::simulate::planted;
use metastate::solve::Factors;
use metastate::workspace::refit::{LikelihoodSettings, SpectralFits};
use metastate::workspace::score::{Model, Smoothing, score};
use metastate::workspace::select::{SelectSettings, select};

const FOLDS: usize = 5;
const FRESH: u64 = 400_000;

fn main() -> metastate::Result<()> {
    let chains = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(40);
    println!("states, rank, transitions a state, chains: optimism (standard error); taken off; optimism left; in 1e-4 a transition");
    for (d, r, per_state) in [(60, 3, 20), (60, 3, 60), (60, 4, 200), (100, 4, 20), (100, 5, 60), (100, 5, 200)] {
        let (mut optimism, mut bias, mut from_chosen) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..chains {
            let (a, b, c) = one(d, r, (per_state * d) as u64, 500 + seed)?;
            optimism.push(a);
            bias.push(b);
            from_chosen.push(c);
        }
        let left: Vec<f64> = optimism.iter().zip(&bias).map(|(a, b)| a - b).collect();
        println!(
            "{d:4} {r:2} {per_state:4} {chains:4}: {}; {}; {}; with the chosen one as the measure {}",
            told(&optimism),
            told(&bias),
            told(&left),
            told(&from_chosen)
        );
    }
    Ok(())
}

fn told(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
    format!("{:6.2} ({:.2})", 1e4 * mean, 1e4 * spread)
}

/// Optimism of one choice, what is taken off for it, and what would be if the chosen model, not the best, were the measure.
fn one(d: usize, r: usize, n: u64, seed: u64) -> metastate::Result<(f64, f64, f64)> {
    let chain = planted(d, r, seed)?;
    let (counts, fresh) = (chain.sample_counts(n, seed)?, chain.sample_counts(FRESH, seed + 100_000)?);
    let folds = Folds::of_trips(counts.csr(), FOLDS, seed)?;
    let choice = select(&folds, &SelectSettings { max_rank: 12, ..SelectSettings::default() })?;
    let truth = Factors { u: chain.u.clone(), v: chain.v.clone() };
    let refit = LikelihoodSettings { prior: choice.prior, max_passes: 300, tolerance: 1e-8, accelerate: true };
    let mut optimism = 0.0;
    for f in 0..FOLDS {
        let training = SpectralFits::new(folds.training(f), 0)?;
        let x = training.likelihood(choice.rank, &refit)?.factors;
        let ahead = |test| -> metastate::Result<f64> {
            let at = |x| score(Model::LowRank(x), training.observed().counts(), test, Smoothing::default()).map(|s| s.log_likelihood);
            Ok(at(&x)? - at(&truth)?)
        };
        optimism += (ahead(&folds.held_out(f))? - ahead(fresh.csr())?) / FOLDS as f64;
    }
    let best = choice.at(choice.best_rank).unwrap_or(&choice.chosen);
    Ok((optimism, choice.selection_bias(), choice.selection_bias() + choice.chosen.held_out.behind(&best.held_out).0.max(0.0)))
}
