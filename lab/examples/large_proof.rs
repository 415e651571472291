//! What a proof costs where there are many states, beside the solve, and what it is worth: planted chains drawn with noise, the rank given, lambda the smallest at which no further meta-state pays.
//!
//! `cargo run --release -p metastate-lab --example large_proof -- STATES GROUPS ENTRIES_A_ROW [share of that lambda [seed]]`
//!
//! Times are seconds of processor, all threads together.

use metastate::simulate::planted_groups;
use metastate::solve::{Control, Observer, Phase, Problem, Progress, Settings, Start, lambda_max, lambda_of_rank, solve};
use metastate::verify::{Claimed, recompute};
use metastate::workspace::refit::SpectralFits;
use metastate::{Chain, Estimate};

/// Processor seconds when the proof began.
struct Clock(Option<f64>);

impl Observer for Clock {
    fn progress(&mut self, p: &Progress) -> Control {
        if p.phase == Phase::Certifying && self.0.is_none() {
            self.0 = Some(seconds());
        }
        Control::Continue
    }
}

fn main() -> metastate::Result<()> {
    let argument = |k: usize, default: f64| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (d, groups, row) = (argument(1, 5000.0) as usize, argument(2, 10.0) as usize, argument(3, 400.0) as usize);
    let seed = argument(5, 1.0) as u64;
    let planted = planted_groups(d, groups, row, seed)?;
    let chain = Chain::estimate(&planted.counts, &Estimate::default())?;
    let from = seconds();
    let near = SpectralFits::new(planted.counts.csr().clone(), seed)?.near(groups)?;
    let largest = lambda_max(chain.p(), chain.weights(), seed)?;
    let found = lambda_of_rank(chain.p(), chain.weights(), &near, largest, seed, &mut || true)?;
    let lambda = argument(4, 1.0) * found.lambda;
    println!(
        "{d} states, {} pairs: lambda {lambda:.4e}, {:.4} of lambda_max, found in {:.1} s",
        chain.nonzeros(),
        lambda / largest,
        seconds() - from
    );
    let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
    let settings = Settings { max_rank: groups, start: Start::Given(Box::new(found.factors)), ..Settings::default() };
    let (from, mut clock) = (seconds(), Clock(None));
    let solution = solve(&problem, &settings, &mut clock)?;
    let (proving, end) = (clock.0.unwrap_or(from), seconds());
    println!(
        "  {} at rank {}: solve {:.1} s, proof {:.1} s, gap {:.2e}, explained {:.2e}, {:?}",
        solution.status.as_str(),
        solution.rank(),
        proving - from,
        end - proving,
        solution.certified_gap().unwrap_or(f64::NAN),
        solution.explained_gap().unwrap_or(f64::NAN),
        solution.proof
    );
    let from = seconds();
    let x = &solution.factors;
    let witness = solution.witness.for_checking();
    let again = recompute(&Claimed { p: chain.p(), weights: chain.weights(), lambda, u: &x.u, v: &x.v }, Some(witness), None, seed)?;
    println!(
        "  verify {:.1} s: gap {:.2e}, norm {:.8}, {:?}, room {:.1e}; the difference of the bounds {:.1e} of F",
        seconds() - from,
        again.certified_gap,
        again.bound_norm,
        again.bound_proof,
        again.bound_slack(),
        (solution.proof.as_ref().map_or(0.0, |p| p.lower_bound()) - again.lower_bound) / again.objective
    );
    println!("  {}", peak_memory());
    Ok(())
}

/// Seconds of processor of this process so far, where the system tells them.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = after.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// The peak of the resident memory so far, where the system tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.map_or("peak memory unknown".to_string(), |kib| format!("peak memory {:.2} GB", kib * 1024.0 / 1e9))
}
