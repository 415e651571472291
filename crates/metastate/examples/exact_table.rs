//! The tables of the paper's section 6.1: exact P, r = 5, four lambdas, by `fast` from its own start and, with `--palm`, by
//! `palm-bb` from 300 random columns.
//!
//! `cargo run --release -p metastate --example exact_table -- 1000 2000 5000 --palm`

use std::time::Instant;

use metastate::simulate::planted;
use metastate::solve::{Problem, Settings, Silent, errors, solve};

fn main() -> metastate::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let palm = arguments.iter().any(|a| a == "--palm");
    let seed = arguments.iter().find_map(|a| a.strip_prefix("--seed=")).and_then(|s| s.parse().ok()).unwrap_or(1);
    let only: Option<f64> = arguments.iter().find_map(|a| a.strip_prefix("--lambda=")).and_then(|s| s.parse().ok());
    let sizes: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    println!("solver       d lambda rank  objective   relRE     seconds  relLE1   relLE2   GE        relDG    certified lower      status");
    for d in sizes {
        let truth = planted(d, 5, seed)?;
        let chain = truth.chain()?;
        for lambda in [1e-6, 1e-7, 1e-8, 1e-9] {
            if only.is_some_and(|only| only != lambda) {
                continue;
            }
            let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
            let mut rows = vec![("fast", Settings::default())];
            if palm {
                rows.push(("palm-bb", Settings::paper(300, 5e-5)));
            }
            for (name, settings) in rows {
                let start = Instant::now();
                let solution = solve(&problem, &settings, &mut Silent)?;
                let seconds = start.elapsed().as_secs_f64();
                let e = solution.errors;
                let recovery = errors::relative_recovery_error(chain.weights(), &solution.factors, chain.p());
                println!(
                    "{name:8} {d:5} {lambda:.0e} {:4}  {:.5e} {:.2e} {seconds:8.2}  {:.1e}  {:.1e}  {:8.1e}  {:.1e}  {:.1e}  {:.5e} {} sweeps {}",
                    solution.rank(),
                    solution.objective.value,
                    recovery,
                    e.rel_le1,
                    e.rel_le2,
                    e.ge,
                    e.rel_dg,
                    e.certified_gap,
                    solution.bound.value,
                    solution.status.as_str(),
                    solution.sweeps,
                );
            }
        }
    }
    Ok(())
}
