//! The tables of the paper's section 6.1: exact P, r = 5, four lambdas, by `fast` from its own start and, with `--palm`, by
//! `palm-bb` from 300 random columns. `--palm=1e-5` sets its local stopping rule (5.5); the paper prints 1e-3.
//!
//! `cargo run --release -p metastate-lab --example exact_table -- 1000 2000 5000 --palm`
//!
//! "solve" is the time up to the last iterate, relaxation and start included; "in all" adds the evaluation of GE, relDG and the
//! proven bound. "lower after" is when `fast` first had a lower objective than the `palm-bb` row that follows it ends with.

use std::time::Instant;

use metastate::simulate::planted;
use metastate::solve::{Control, LocalStop, Observer, Phase, Problem, Progress, Settings, solve};
use metastate::workspace::errors;

struct Clock {
    start: Instant,
    solved: Option<f64>,
    values: Vec<(f64, f64)>,
}

impl Observer for Clock {
    fn progress(&mut self, p: &Progress) -> Control {
        let now = self.start.elapsed().as_secs_f64();
        match p.phase {
            Phase::Certifying => self.solved = Some(now),
            _ => self.values.push((now, p.objective)),
        }
        Control::Continue
    }
}

fn main() -> metastate::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| arguments.iter().find_map(|a| a.strip_prefix(name).and_then(|a| a.strip_prefix('=')));
    let palm = arguments.iter().any(|a| a.starts_with("--palm"));
    let decrease = option("--palm").and_then(|a| a.parse().ok()).unwrap_or(1e-3);
    let seed = option("--seed").and_then(|s| s.parse().ok()).unwrap_or(1);
    let only: Option<f64> = option("--lambda").and_then(|s| s.parse().ok());
    let sizes: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    println!("seed {seed}; palm-bb ends local solves at a decrease below {decrease:.0e}");
    println!("solver       d lambda rank objective   relRE      solve  in all relLE1  relLE2   GE       relDG   certified sweeps status");
    for d in sizes {
        let truth = planted(d, 5, seed)?;
        let chain = truth.chain()?;
        for lambda in [1e-6, 1e-7, 1e-8, 1e-9] {
            if only.is_some_and(|only| only != lambda) {
                continue;
            }
            let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
            let paper = Settings { local_stop: LocalStop::Decrease { window: 30, decrease }, ..Settings::paper(300, 5e-5) };
            let runs = if palm { vec![("fast", Settings::default()), ("palm-bb", paper)] } else { vec![("fast", Settings::default())] };
            let mut fast: Option<Clock> = None;
            for (name, settings) in runs {
                let mut clock = Clock { start: Instant::now(), solved: None, values: Vec::new() };
                let solution = solve(&problem, &settings, &mut clock)?;
                let in_all = clock.start.elapsed().as_secs_f64();
                let solved = clock.solved.unwrap_or(in_all);
                let e = solution.errors;
                let recovery = errors::relative_recovery_error(chain.weights(), &solution.factors, chain.p());
                println!(
                    "{name:8} {d:5} {lambda:.0e} {:4} {:.5e} {recovery:.2e} {solved:8.3} {in_all:7.2} {:.1e} {:.1e} {:8.1e} {:8.1e} {:.1e}  {:6} {}",
                    solution.rank(),
                    solution.objective.value,
                    e.rel_le1,
                    e.rel_le2,
                    e.ge,
                    e.rel_dg,
                    solution.certified_gap().unwrap_or(f64::NAN),
                    solution.sweeps,
                    solution.status.as_str(),
                );
                match fast.take() {
                    None => fast = Some(clock),
                    Some(before) => {
                        let value = solution.objective.value;
                        let lower = before.values.iter().find(|(_, objective)| *objective < value).map_or(f64::NAN, |(at, _)| *at);
                        println!(
                            "         fast is {:.0} times faster to its end, and lower after {lower:.3} s: {:.0} times",
                            solved / before.solved.unwrap_or(f64::NAN),
                            solved / lower
                        );
                    }
                }
            }
        }
    }
    Ok(())
}
