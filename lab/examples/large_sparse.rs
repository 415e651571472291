//! 100,000 states, about 1e7 non-zeros, 20 planted groups: counts to meta-states, with time and memory.
//!
//! `cargo run --release -p metastate-lab --example large_sparse -- 100000 20 100 0.5`

use std::time::Instant;

use metastate::aggregate::Overlap;
use metastate::simulate::planted_groups;
use metastate::solve::{Control, Event, Observer, Phase, Problem, Progress, Settings, StopRule, lambda_max, solve};
use metastate::{Chain, Estimate};

struct Log(Instant, Phase);

impl Observer for Log {
    fn progress(&mut self, p: &Progress) -> Control {
        if p.phase != self.1 {
            self.1 = p.phase;
            println!(
                "  {:7.2} s  {:?}: rank {}, sweep {}, objective {:.5e}, gap {:.2e}",
                self.0.elapsed().as_secs_f64(),
                p.phase,
                p.rank,
                p.sweep,
                p.objective,
                p.steering.gap(p.objective)
            );
        }
        Control::Continue
    }

    fn event(&mut self, event: &Event, p: &Progress) {
        println!("  {:7.2} s  {event:?}, lower bound {:.5e}, {}", self.0.elapsed().as_secs_f64(), p.steering.guess(), peak_memory());
    }
}

fn main() -> metastate::Result<()> {
    let argument = |k: usize, default: f64| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (d, groups, row) = (argument(1, 1e5) as usize, argument(2, 20.0) as usize, argument(3, 100.0) as usize);
    let start = Instant::now();
    let planted = planted_groups(d, groups, row, 1)?;
    let chain = Chain::estimate(&planted.counts, &Estimate::default())?;
    println!(
        "{d} states, {} non-zeros, simulated and estimated in {:.2} s, {}",
        chain.nonzeros(),
        start.elapsed().as_secs_f64(),
        peak_memory()
    );

    let start = Instant::now();
    let largest = lambda_max(chain.p(), chain.weights(), 0)?;
    println!("lambda_max {largest:.4e} in {:.2} s", start.elapsed().as_secs_f64());
    let problem = Problem::new(chain.p(), chain.weights(), argument(4, 0.5) * largest)?;
    let settings = Settings {
        stop: StopRule::Certificate { gap: argument(5, 1e-2) },
        tolerance: argument(6, 1e-2),
        max_rank: groups,
        ..Settings::default()
    };
    let start = Instant::now();
    let solution = solve(&problem, &settings, &mut Log(start, Phase::Relaxing))?;
    println!(
        "{} after {:.2} s: rank {}, {} sweeps, {:?}, {:?}",
        solution.status.as_str(),
        start.elapsed().as_secs_f64(),
        solution.rank(),
        solution.sweeps,
        solution.errors,
        solution.proof
    );

    let hard: Vec<u32> = solution.factors.u.largest_entries().map(|j| j as u32).collect();
    let truth: Vec<u32> = chain.kept().iter().map(|&i| planted.group[i]).collect();
    let known = Overlap::of_labels(&hard, &truth).normalised_mutual_information().unwrap_or(f64::NAN);
    println!("NMI with the planted groups: {known:.4}");
    println!("{}", peak_memory());
    Ok(())
}

/// The peak of the resident memory so far, where the system tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.map_or("peak memory unknown".to_string(), |kib| format!("peak memory {:.2} GB", kib * 1024.0 / 1e9))
}
