//! Recovery of planted chains from a trajectory (the paper's section 6.2): relRE at the paper's lambda* and rank, and after the
//! likelihood refit with rank and prior chosen without the truth.
//!
//! `cargo run --release -p metastate-lab --example recovery [rows [seeds]]`, rows such as `0,3` (all without).

use std::time::Instant;

use metastate::simulate::planted;
use metastate::solve::{Problem, Settings, Silent, StopRule, solve};
use metastate::workspace::errors::{relative_recovery_error, relative_sampling_error};
use metastate::workspace::refit::least_squares;
use metastate::{Data, Estimate, FitOptions, WeightsBy, fit};

/// d, r, n/d^2, lambda* and the rank there, as the paper prints them.
const ROWS: [(usize, usize, u64, f64, usize); 6] = [
    (500, 5, 10, 1.6e-7, 5),
    (1000, 10, 10, 2.4e-8, 10),
    (2000, 20, 10, 3.5e-9, 20),
    (1000, 5, 5, 4.1e-8, 6),
    (1000, 5, 20, 2.4e-8, 5),
    (1000, 5, 200, 9.0e-9, 5),
];

fn main() -> metastate::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows: Vec<usize> = arguments.first().map_or((0..6).collect(), |a| a.split(',').filter_map(|k| k.parse().ok()).collect());
    let seeds: u64 = arguments.get(1).and_then(|a| a.parse().ok()).unwrap_or(5);
    for (d, r, ratio, lambda, rank) in rows.into_iter().filter_map(|k| ROWS.get(k).copied()) {
        let mut columns: [Vec<f64>; 5] = Default::default();
        let mut ranks = Vec::new();
        for seed in 1..=seeds {
            let clock = Instant::now();
            let truth = planted(d, r, seed)?;
            let counts = truth.sample_counts(ratio * (d * d) as u64, seed)?;
            let estimate = Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() };
            let data = Data::from_counts(&counts, &estimate)?;
            let chain = data.chain();
            let exact = truth.chain()?;
            let error = |x| relative_recovery_error(chain.weights(), x, exact.p());
            let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
            let settings = Settings { max_rank: rank, stop: StopRule::Certificate { gap: 1e-2 }, ..Settings::default() };
            let penalised = solve(&problem, &settings, &mut Silent)?;
            let squares = least_squares(&problem, &penalised.factors, 1e-6, 300);

            // Nothing known: what `metastate fit` does.
            let model = fit(&data, &FitOptions::default().seed(seed), &mut Silent)?;
            let (rank_chosen, prior) = model.chosen.as_ref().map_or((model.rank(), 0.0), |c| (c.choice.rank, c.choice.prior));
            let sampling = relative_sampling_error(chain.weights(), chain.p(), exact.p());
            let values = [
                sampling,
                error(&penalised.factors),
                error(&squares.factors),
                error(model.factors()),
                penalised.certified_gap().unwrap_or(f64::NAN),
            ];
            println!(
                "d {d} r {r} n/d^2 {ratio} seed {seed}: relSE {:.3e}, at lambda* {:.3e} (rank {}, gap {:.1e}), least squares {:.3e}, likelihood {:.3e} (rank {} chosen, prior {}), {:.0} s",
                values[0],
                values[1],
                penalised.rank(),
                values[4],
                values[2],
                values[3],
                rank_chosen,
                prior,
                clock.elapsed().as_secs_f64()
            );
            columns.iter_mut().zip(values).for_each(|(c, x)| c.push(x));
            ranks.push(rank_chosen);
        }
        let [se, fixed, squares, likely, _] = columns.map(|c| mean_and_deviation(&c));
        println!(
            "| {d}, {r}, {ratio} | relSE {se} | lambda* {fixed} | least squares {squares} | likelihood, no truth {likely} | ranks chosen {ranks:?} |"
        );
    }
    Ok(())
}

fn mean_and_deviation(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{mean:.3e} ± {:.1e}", variance.sqrt())
}
