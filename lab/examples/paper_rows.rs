//! Two rows of the paper's section 6.2 where our error at its lambda* is below its own (d = 1000, r = 5, n/d^2 = 20 and 200), taken apart: what the
//! chain is worth, what the paper's algorithm, which ends before the solution, and what the digits of lambda* that are not printed.
//!
//! `cargo run --release -p metastate-lab --example paper_rows` (six minutes).

use metastate::simulate::{Planted, planted};
use metastate::solve::{Control, Effort, Observer, Phase, Problem, Progress, Settings, Silent, Start, StopRule, solve};
use metastate::workspace::errors::{relative_recovery_error, relative_sampling_error};
use metastate::workspace::{small, thin};
use metastate::{Chain, Estimate, Mat, Result, WeightsBy};
use rayon::prelude::*;

const STATES: usize = 1000;
const RANK: usize = 5;

/// A row of the paper's table: `n/d^2`, `lambda*`, and what it prints for the data.
struct PaperRow {
    ratio: u64,
    lambda: f64,
    recovery: f64,
    sigma_r: f64,
    /// relSE times n/d^2: it depends on the chain alone, `1 / (d^2 ||Xi P*||_F^2)`.
    sampling: f64,
}

const ROWS: [PaperRow; 2] = [
    PaperRow { ratio: 20, lambda: 2.4e-8, recovery: 2.33e-3, sigma_r: 1.87e-4, sampling: 0.630 },
    PaperRow { ratio: 200, lambda: 9.0e-9, recovery: 3.91e-4, sigma_r: 1.72e-4, sampling: 0.646 },
];
/// Printed for both rows.
const SIGMA_1: f64 = 1.20e-3;

/// Who solves.
#[derive(Clone, Copy)]
enum By {
    Us,
    /// PALM with the paper's rules from 0.1 d random columns, threshold 1.5e-4.
    Paper,
    /// The same with warm restarts along lambda, as the paper did it: from three times lambda* down in steps of 1.25.
    PaperPath,
}

fn main() -> Result<()> {
    for row in &ROWS {
        let alike = nearest(row)?;
        // The largest lambda that is printed as lambda*: half a unit of its second digit more.
        let unit = 10f64.powf(row.lambda.log10().floor() - 1.0);
        let largest = row.lambda + 0.499 * unit;
        for (what, seeds, by, lambda) in [
            ("twenty chains, our solver", (1..=20).collect(), By::Us, row.lambda),
            ("the five chains nearest to the paper's, our solver", alike.clone(), By::Us, row.lambda),
            ("those chains, the paper's algorithm", alike.clone(), By::Paper, row.lambda),
            ("those chains, the paper's algorithm, the largest lambda printed as lambda*", alike.clone(), By::Paper, largest),
            ("those chains, the paper's algorithm, warm restarts along lambda", alike.clone(), By::PaperPath, row.lambda),
            ("those chains, our solver, the largest lambda printed as lambda*", alike, By::Us, largest),
        ] {
            let seeds: Vec<u64> = seeds;
            let values = seeds.iter().map(|&seed| measure(row, seed, by, lambda)).collect::<Result<Vec<_>>>()?;
            report(row, what, &values);
        }
    }
    Ok(())
}

/// How far a chain is from what the paper prints of its own: the largest relative difference in `sigma_1`, `sigma_r` and the sampling error. Nothing is
/// sampled or solved for this.
fn distance(row: &PaperRow, chain: &Planted) -> f64 {
    // The squared singular values of Xi U V^T are the eigenvalues of (U^T Xi^2 U)(V^T V).
    let weights2: Vec<f64> = chain.xi.iter().map(|x| x * x).collect();
    let mut product = Mat::zeros(RANK, RANK);
    thin::product(&thin::weighted_gram(&chain.u, &weights2), &thin::gram(&chain.v), &mut product);
    let norm2: f64 = (0..RANK).map(|k| product[(k, k)]).sum();
    let mut sigma: Vec<f64> = small::eigenvalues(&product).unwrap_or_default().iter().map(|(real, _)| real.max(0.0).sqrt()).collect();
    sigma.sort_by(f64::total_cmp);
    let off = |x: f64, printed: f64| (x / printed - 1.0).abs();
    let ends = off(sigma[RANK - 1], SIGMA_1).max(off(sigma[0], row.sigma_r));
    ends.max(off(1.0 / (norm2 * (STATES * STATES) as f64), row.sampling))
}

/// The seeds of the five chains of two thousand that are nearest to the paper's.
fn nearest(row: &PaperRow) -> Result<Vec<u64>> {
    let mut seeds =
        (1..=2000u64).into_par_iter().map(|seed| Ok((distance(row, &planted(STATES, RANK, seed)?), seed))).collect::<Result<Vec<_>>>()?;
    seeds.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("n/d^2 {}: five chains within {:.1} % of the paper's sigma_1, sigma_r and sampling error", row.ratio, 100.0 * seeds[4].0);
    Ok(seeds[..5].iter().map(|s| s.1).collect())
}

/// relSE, relRE, and the larger of relLE1 and relLE2.
fn measure(row: &PaperRow, seed: u64, by: By, lambda: f64) -> Result<[f64; 3]> {
    let truth = planted(STATES, RANK, seed)?;
    let exact = truth.chain()?;
    let counts = truth.sample_counts(row.ratio * (STATES * STATES) as u64, seed)?;
    let chain = Chain::estimate(&counts, &Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() })?;
    let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
    let solution = match by {
        By::Us => {
            solve(&problem, &Settings { max_rank: RANK, stop: StopRule::Certificate { gap: 1e-2 }, ..Settings::default() }, &mut Silent)?
        }
        By::Paper => solve(&problem, &paper(), &mut NoCycles::default())?,
        By::PaperPath => {
            let start = solve(&problem.at_lambda(lambda * 1.25f64.powi(5)), &paper(), &mut NoCycles::default())?;
            (0..5).rev().try_fold(start, |before, step| {
                let warm = Settings { start: Start::Given(Box::new(before.factors)), start_rank: None, ..paper() };
                solve(&problem.at_lambda(lambda * 1.25f64.powi(step)), &warm, &mut NoCycles::default())
            })?
        }
    };
    Ok([
        relative_sampling_error(chain.weights(), chain.p(), exact.p()),
        relative_recovery_error(chain.weights(), &solution.factors, exact.p()),
        solution.errors.rel_le1.max(solution.errors.rel_le2),
    ])
}

/// The paper's own rules.
fn paper() -> Settings {
    Settings { max_sweeps: 5000, certificate: Effort::without_proof(), ..Settings::paper(STATES / 10, 1.5e-4) }
}

/// Algorithm 1 may append a column and remove it again for ever; it ends when a locally solved point has no fewer columns than an earlier one and F
/// is not lower by 1e-5, the paper's measure of a decrease worth a column.
#[derive(Default)]
struct NoCycles(Vec<(usize, f64)>);

impl Observer for NoCycles {
    fn progress(&mut self, p: &Progress) -> Control {
        if p.phase != Phase::Checking {
            return Control::Continue;
        }
        let again = self.0.iter().any(|(rank, value)| *rank <= p.rank && value * (1.0 - 1e-5) <= p.objective);
        self.0.push((p.rank, p.objective));
        if again { Control::Interrupt } else { Control::Continue }
    }
}

fn report(row: &PaperRow, what: &str, values: &[[f64; 3]]) {
    let n = values.len() as f64;
    let mean = |k: usize| values.iter().map(|v| v[k]).sum::<f64>() / n;
    let deviation = |k: usize| (values.iter().map(|v| (v[k] - mean(k)).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let extreme = |worst: fn(f64, f64) -> f64, start: f64| values.iter().map(|v| v[1]).fold(start, worst);
    println!(
        "n/d^2 {}, {what}: relSE times n/d^2 {:.3}, relRE {:.3e} ± {:.0e} ({:.3e} to {:.3e}), {:+.1} % of the paper's {:.2e}; relLE {:.0e} on average",
        row.ratio,
        mean(0) * row.ratio as f64,
        mean(1),
        deviation(1),
        extreme(f64::min, f64::INFINITY),
        extreme(f64::max, 0.0),
        100.0 * (mean(1) / row.recovery - 1.0),
        row.recovery,
        mean(2)
    );
}
