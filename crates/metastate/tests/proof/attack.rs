//! One problem after the other: fits, restarts, and the verdict.

use std::time::Instant;

use metastate::solve::{Factors, Problem, Settings, Silent, Solution, Start, StopRule, lambda_max, rank_one, solve};
use metastate::verify::{Check, compare};
use metastate::workspace::grow::{self, Append, AscentSearch};
use metastate::workspace::kkt::{Products, multiplier_and_errors};
use metastate::workspace::local::{Fast, LocalSolver};
use metastate::workspace::start;

use super::families::Instance;
use super::published;

/// Shares of lambda_max at which every chain is solved; 1.001 is there for lambda_max itself.
pub const SHARES: [f64; 9] = [1.5, 1.001, 0.9, 0.5, 0.2, 0.05, 0.01, 1e-4, 1e-8];
/// The first so many of them for chains of many states: a tiny lambda asks for as many columns as there are states.
const SHARES_OF_MANY: usize = 7;
const MANY_STATES: usize = 32;
/// A value below another by more than this share is better, whatever rounding did.
const CLEARLY: f64 = 1e-9;
/// What a bound may exceed the best value by, relative to it.
const BEYOND: f64 = 1e-12;
/// The command's own limit of columns.
const COMMAND_RANK: usize = 50;
/// Chains of more states than this are fitted with default settings only.
const ONE_MODE: usize = 500;
/// Shares of lambda_max below this are tiny.
const TINY: f64 = 1e-3;
/// A restart that is farther than this behind the best after its first sweeps is given up: it gets no new columns.
const BEHIND: f64 = 1e-2;
/// A descent ends when this many sweeps gain less than a millionth.
const LOOK: usize = 10;

/// How hard to search for a better point.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Random starts.
    pub restarts: usize,
    /// Sweeps from each, before and after columns are added.
    pub sweeps: usize,
    /// Sweeps of the last polish, at most.
    pub polish: usize,
    /// Sweeps of a fit, at most.
    pub most_sweeps: usize,
    /// Columns of a start, at most.
    pub most_columns: usize,
}

impl Effort {
    /// Twenty restarts; large problems get fewer sweeps from each.
    pub fn full(states: usize) -> Effort {
        match states {
            0..=20 => Effort { restarts: 20, sweeps: 60, polish: 500, most_sweeps: 1000, most_columns: 16 },
            21..=200 => Effort { restarts: 20, sweeps: 40, polish: 200, most_sweeps: 400, most_columns: 16 },
            201..=500 => Effort { restarts: 20, sweeps: 10, polish: 60, most_sweeps: 400, most_columns: 12 },
            _ => Effort { restarts: 20, sweeps: 5, polish: 30, most_sweeps: 150, most_columns: 8 },
        }
    }

    /// Five restarts, for the test-suite.
    pub fn quick() -> Effort {
        Effort { restarts: 5, sweeps: 40, polish: 300, most_sweeps: 1000, most_columns: 12 }
    }
}

/// What one fit published, and what became of it.
pub struct Fit {
    /// Which settings.
    pub mode: &'static str,
    pub status: &'static str,
    pub rank: usize,
    pub objective: f64,
    pub lower_bound: Option<f64>,
    pub certified_gap: Option<f64>,
    pub proof: String,
    /// The bound that the checker itself proves.
    pub checker_bound: f64,
    /// Claims that the checker does not confirm.
    pub refused: Vec<Check>,
    /// Why the checker gave no answer at all.
    pub failed: Option<String>,
    pub seconds: f64,
}

/// All that happened at one lambda.
pub struct Outcome {
    pub family: &'static str,
    pub name: String,
    pub states: usize,
    pub share: f64,
    pub lambda: f64,
    pub fits: Vec<Fit>,
    /// The least value of any feasible point found, recomputed by the checker.
    pub best: f64,
    /// Where that point came from.
    pub best_from: String,
    pub best_rank: usize,
    /// By how much a bound may exceed `best` before it is false: rounding, and what the point misses its constraints by.
    pub slack: f64,
    /// The best value with one meta-state.
    pub rank_one: f64,
    pub seconds: f64,
}

impl Outcome {
    /// Fits whose published bound lies above a feasible point.
    pub fn false_bounds(&self) -> impl Iterator<Item = &Fit> {
        self.fits.iter().filter(|fit| fit.lower_bound.is_some_and(|bound| self.is_false(bound)))
    }

    /// Fits at which the checker's own bound does.
    pub fn false_checker_bounds(&self) -> impl Iterator<Item = &Fit> {
        self.fits.iter().filter(|fit| self.is_false(fit.checker_bound))
    }

    // Written so that NaN is false, too.
    #[allow(clippy::neg_cmp_op_on_partial_ord)]
    fn is_false(&self, bound: f64) -> bool {
        !(bound <= self.best + self.slack)
    }

    /// Fits with a claim that the checker refuses.
    pub fn refused(&self) -> impl Iterator<Item = &Fit> {
        self.fits.iter().filter(|fit| !fit.refused.is_empty() || fit.failed.is_some())
    }

    /// Above lambda_max nothing may beat one meta-state; by how much something does.
    pub fn lambda_max_wrong_by(&self) -> Option<f64> {
        let gain = (self.rank_one - self.best) / self.rank_one;
        (self.share > 1.0 && gain > CLEARLY).then_some(gain)
    }

    /// Below lambda_max something should beat one meta-state.
    pub fn lambda_max_too_large(&self) -> bool {
        self.share < 1.0 && (self.rank_one - self.best) / self.rank_one <= CLEARLY
    }
}

/// The best feasible point so far.
struct Best {
    factors: Factors,
    value: f64,
    from: String,
}

impl Best {
    fn offer(&mut self, problem: &Problem, factors: Factors, from: impl FnOnce() -> String) {
        let value = problem.objective(&factors).value;
        if value < self.value {
            *self = Best { factors, value, from: from() };
        }
    }
}

/// The shares for a chain of so many states.
pub fn shares(states: usize) -> &'static [f64] {
    if states <= MANY_STATES { &SHARES } else { &SHARES[..SHARES_OF_MANY] }
}

/// Attacks one chain at the shares given, from the largest down. The best point at one lambda is a start at the next.
pub fn attack(instance: &Instance, shares: &[f64], effort: &Effort) -> Vec<Outcome> {
    let chain = &instance.chain;
    let scale = Problem::new(chain.p(), chain.weights(), 1.0).expect("weights are positive").data_norm2;
    let largest = lambda_max(chain.p(), chain.weights(), 0).expect("weights are positive");
    // Where P has rank one, lambda_max is zero: shares of the data instead.
    let unit = if largest > 1e-12 * scale { largest } else { 1e-2 * scale };
    let mut before: Option<(Factors, Factors)> = None;
    let mut outcomes = Vec::new();
    for (k, &share) in shares.iter().enumerate() {
        let problem = Problem::new(chain.p(), chain.weights(), share * unit).expect("lambda is positive");
        let (outcome, fitted, best) = attack_at(instance, &problem, share, k, before.as_ref(), effort);
        outcomes.push(outcome);
        before = Some((fitted, best));
    }
    outcomes
}

/// The fits and the restarts at one lambda; and the default fit's factors and the best ones found.
fn attack_at(
    instance: &Instance,
    problem: &Problem,
    share: f64,
    k: usize,
    before: Option<&(Factors, Factors)>,
    effort: &Effort,
) -> (Outcome, Factors, Factors) {
    let clock = Instant::now();
    // Chains of different sizes get their modes in different order.
    let turn = k + problem.rows();
    // A tiny lambda asks for very many columns, and sweeps without end: a fit that ran out of them must tell the truth, too.
    let most_sweeps = if share < TINY { effort.most_sweeps / 4 } else { effort.most_sweeps };
    let solved: Vec<(&'static str, Solution, f64)> = modes(problem, turn, before, most_sweeps)
        .into_iter()
        .map(|(mode, settings)| {
            let clock = Instant::now();
            let solution = solve(problem, &settings, &mut Silent).expect("settings are in their range");
            (mode, solution, clock.elapsed().as_secs_f64())
        })
        .collect();
    let one = rank_one(problem);
    let value_of_one = problem.objective(&one).value;
    let best = search(problem, &solved, one, before, effort);

    let (point, slack) = recomputed(problem, &best.factors, &solved[0].1);
    let fits = solved.iter().map(|(mode, solution, seconds)| examine(problem, mode, solution, *seconds)).collect();
    let outcome = Outcome {
        family: instance.family,
        name: instance.name.clone(),
        states: problem.rows(),
        share,
        lambda: problem.lambda,
        fits,
        best: point,
        best_from: best.from,
        best_rank: best.factors.rank(),
        slack,
        rank_one: value_of_one,
        seconds: clock.elapsed().as_secs_f64(),
    };
    (outcome, solved[0].1.factors.clone(), best.factors)
}

/// The default settings always, and one other way of stopping or starting, in turn: a bound is published by all of them.
fn modes(problem: &Problem, turn: usize, before: Option<&(Factors, Factors)>, max_sweeps: usize) -> Vec<(&'static str, Settings)> {
    let default = Settings { max_sweeps, max_rank: COMMAND_RANK, ..Settings::default() };
    let mut modes = vec![("default", default.clone())];
    if problem.rows() > ONE_MODE {
        return modes;
    }
    let warm = before.map(|(fitted, _)| Start::Given(Box::new(fitted.clone())));
    modes.push(match (turn % 4, warm) {
        (0, _) => ("gap 1e-6", Settings { stop: StopRule::Certificate { gap: 1e-6 }, ..default }),
        (1, _) => ("at most 2 columns", Settings { max_rank: 2.min(problem.rows()), ..default }),
        (2, Some(start)) => ("warm", Settings { start, ..default }),
        _ => ("random start", Settings { start: Start::Random, start_rank: Some(3.min(problem.rows())), seed: 1, ..default }),
    });
    modes
}

/// Random restarts at other ranks, the rank-one point, the fits themselves and the last lambda's best, each made better locally; then
/// the best of all polished by a whole run of the solver that may add and remove columns.
fn search(
    problem: &Problem,
    solved: &[(&'static str, Solution, f64)],
    one: Factors,
    before: Option<&(Factors, Factors)>,
    effort: &Effort,
) -> Best {
    let mut best = Best { value: problem.objective(&one).value, factors: one.clone(), from: "rank one".into() };
    for (mode, solution, _) in solved {
        best.offer(problem, solution.factors.clone(), || format!("fit, {mode}"));
    }
    let rank = solved[0].1.rank();
    for restart in 0..effort.restarts {
        let columns = columns_of_restart(restart, rank, problem.rows(), effort.most_columns);
        let x = descend(problem, start::random(problem, columns, 1000 + restart as u64), effort.sweeps, best.value, restart as u64);
        best.offer(problem, x, || format!("restart {restart} from {columns} columns"));
    }
    best.offer(problem, descend(problem, one, effort.sweeps, f64::INFINITY, 77), || "rank one, grown".into());
    if let Some((_, last)) = before {
        best.offer(problem, descend(problem, last.clone(), effort.sweeps, f64::INFINITY, 78), || "best at the last lambda, grown".into());
    }
    let polish = Settings {
        start: Start::Given(Box::new(best.factors.clone())),
        stop: StopRule::Exact { tolerance: 1e-9 },
        tolerance: 1e-9,
        append_decrease: 1e-13,
        max_rank: problem.rows().max(best.factors.rank()),
        max_sweeps: effort.polish,
        certificate: metastate::solve::Effort::without_proof(),
        ..Settings::default()
    };
    let polished = solve(problem, &polish, &mut Silent).expect("settings are in their range");
    let from = best.from.clone();
    best.offer(problem, polished.factors, || format!("{from}, polished"));
    best
}

/// One fewer and one more than the fit has, two, three, its double, and then all numbers from one up.
fn columns_of_restart(restart: usize, rank: usize, states: usize, most: usize) -> usize {
    let wanted = match restart {
        0 => rank + 1,
        1 => rank.saturating_sub(1),
        2 => 2,
        3 => 2 * rank,
        4 => 3,
        5 => rank,
        k => 1 + (k - 6) % 12,
    };
    wanted.clamp(1, states.min(most))
}

/// Sweeps, then new columns where a search finds some that pay, and sweeps again; as long as `best` is in sight.
fn descend(problem: &Problem, mut x: Factors, sweeps: usize, best: f64, seed: u64) -> Factors {
    const ROUNDS: u64 = 2;
    let settings = Append { at_once: 4, decrease: 1e-10, smallest_kappa: 1e-10 };
    for round in 0..ROUNDS {
        let value = sweep(problem, &mut x, sweeps);
        if value > (1.0 + BEHIND) * best || x.rank() >= problem.rows() {
            return x;
        }
        let (mu, _) = multiplier_and_errors(problem, &x, &Products::at(problem, &x));
        let search = AscentSearch { starts: 4, steps: 20, seed: seed + round, thorough: false };
        let (_, found) = grow::ascend(problem, &x, &mu, &search, 1.0 + 1e-9);
        match grow::append(problem, &x, &found, &settings) {
            Some(longer) if !found.is_empty() => x = longer,
            _ => return x,
        }
    }
    sweep(problem, &mut x, sweeps);
    x
}

/// A local descent at fixed rank; the value that it ends at.
fn sweep(problem: &Problem, x: &mut Factors, sweeps: usize) -> f64 {
    let mut solver = Fast::new(8);
    solver.restart();
    let (mut last, mut value) = (f64::INFINITY, f64::INFINITY);
    for k in 1..=sweeps {
        value = solver.sweep(problem, x).value;
        if k % LOOK == 0 {
            if last - value <= 1e-6 * value {
                break;
            }
            last = value;
        }
    }
    solver.settle(x);
    value
}

/// The value of a point by the checker's own sums, and how far from it the value of a point that meets the constraints exactly can
/// be. With `e` the largest violation and eps for every sum, F moves by at most
/// `(||Xi (P - X)|| ||Xi P|| + lambda Omega) (4 e + 32 eps)`, and by `BEYOND` of itself.
fn recomputed(problem: &Problem, x: &Factors, solution: &Solution) -> (f64, f64) {
    let found = published::checked(problem, &x.u, &x.v, solution).expect("the factors of a search are in their range");
    let off = 4.0 * found.feasibility.worst() + 32.0 * f64::EPSILON;
    let residual = (2.0 * found.fidelity).sqrt() * problem.data_norm2.sqrt();
    (found.objective, BEYOND * found.objective + off * (residual + problem.lambda * found.regularizer))
}

/// What the checker says of a fit.
fn examine(problem: &Problem, mode: &'static str, solution: &Solution, seconds: f64) -> Fit {
    let claims = published::claims(solution);
    let (checker_bound, refused, failed) = match published::checked(problem, &solution.factors.u, &solution.factors.v, solution) {
        Ok(found) => (found.lower_bound, compare(&claims, &found).into_iter().filter(|check| !check.agrees).collect(), None),
        Err(e) => (0.0, Vec::new(), Some(e.to_string())),
    };
    Fit {
        mode,
        status: solution.status.as_str(),
        rank: solution.rank(),
        objective: solution.objective.value,
        lower_bound: claims.lower_bound,
        certified_gap: claims.certified_gap,
        proof: published::proof(solution),
        checker_bound,
        refused,
        failed,
        seconds,
    }
}
