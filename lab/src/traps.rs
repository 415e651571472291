//! Where the paper's text leaves a choice, or cannot be followed to the letter: what each choice changes, on one small chain.

use metastate::solve::{Effort, Factors, LocalStop, Problem, Redundancy, Removal, Settings, Silent, Solution, StopRule, rank_one, solve};
use metastate::workspace::errors::relative_duality_gap;
use metastate::workspace::grow::{AscentSearch, ascend, probe};
use metastate::workspace::kkt::{Products, SUPPORT};
use metastate::workspace::local::{BbFormula, Fast, LocalSolver, Palm, StepRule};
use metastate::workspace::{relaxation, simplex, start, thin};
use metastate::{Chain, Estimate, WeightPower, WeightsBy};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::instance::Instance;
use crate::numbers::{proven, rough, short};
use crate::plan::{Key, Scale};
use crate::sampled::{Watch, proven_gap, relaxed};

/// What was measured, ready for the document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrapResult {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl TrapResult {
    fn new(head: &[&str]) -> Self {
        TrapResult { head: head.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }

    fn row(&mut self, fields: impl IntoIterator<Item = String>) {
        self.rows.push(fields.into_iter().collect());
    }
}

/// The share of `||Xi P||_F` that the paper's 5e-5 is at d = 1000.
const FINE: f64 = 0.04;
/// And its 1.5e-4.
const COARSE: f64 = 0.12;

/// The chain on which the choices are measured.
pub fn key(scale: Scale) -> Key {
    if scale == Scale::Full { Key { d: 300, r: 5, ratio: 10 } } else { Key { d: 100, r: 3, ratio: 10 } }
}

/// The chain with a lambda near its lambda*.
struct Bench {
    instance: Instance,
    lambda: f64,
}

impl Bench {
    fn problem(&self) -> Result<Problem<'_>> {
        Ok(Problem::new(self.instance.chain().p(), self.instance.chain().weights(), self.lambda)?)
    }

    /// The solution of rank r, to 1e-6.
    fn of_rank_r(&self, problem: &Problem) -> Result<Solution> {
        let settings = Settings { max_rank: self.instance.key.r, tolerance: 1e-6, ..Settings::default() };
        Ok(solve(problem, &settings, &mut Silent)?)
    }

    fn paper(&self, problem: &Problem, share: f64, decrease: f64, removal: Removal) -> Result<(Solution, Watch)> {
        let settings = Settings {
            local_stop: LocalStop::Decrease { window: 30, decrease },
            max_sweeps: 20_000,
            // Rank, F and relRE are told of these runs, and no gap.
            certificate: Effort::without_proof(),
            removal,
            ..Settings::paper(30, share * problem.data_norm2.sqrt())
        };
        let mut watch = Watch::new(true, None);
        let solution = solve(problem, &settings, &mut watch)?;
        Ok((solution, watch))
    }
}

/// Measures one of them.
pub fn measure(number: usize, scale: Scale, seed: u64) -> Result<TrapResult> {
    let instance = Instance::new(key(scale), 1, seed)?;
    let lambda = 1.2 * instance.noise_level();
    let bench = Bench { instance, lambda };
    match number {
        1 => steps(&bench),
        2 => line_search(&bench),
        3 => local_rule(&bench),
        4 => searches(&bench),
        5 => multiplier(&bench),
        6 => threshold(&bench),
        7 => early(&bench),
        8 => weights(&bench),
        9 => relaxation_against_factors(&bench),
        _ => removals(&bench),
    }
}

/// 1: the theoretical steps.
fn steps(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let from = start::random(&problem, 2 * bench.instance.key.r, 1);
    let best = bench.of_rank_r(&problem)?.objective.value;
    let mut table = TrapResult::new(&["steps", "F/F_best - 1 at the start", "after 30 sweeps", "after 300 sweeps"]);
    let solvers: [(&str, Box<dyn LocalSolver>); 3] = [
        ("(5.4), with lambda/eps0", Box::new(Palm::new(StepRule::Lipschitz { epsilon0: 1e-14 }))),
        ("Barzilai-Borwein", Box::new(Palm::new(StepRule::BarzilaiBorwein(BbFormula::default())))),
        ("our `fast`", Box::new(Fast::new(8))),
    ];
    for (name, mut solver) in solvers {
        let mut x = from.clone();
        let mut values = vec![problem.objective(&x).value];
        for _ in 0..300 {
            values.push(solver.sweep(&problem, &mut x).value);
        }
        let lowest = |n: usize| values[..=n].iter().copied().fold(f64::INFINITY, f64::min);
        table.row([name.to_owned()].into_iter().chain([0, 30, 300].map(|n| rough(lowest(n) / best - 1.0))));
    }
    Ok(table)
}

/// 2: the line search as printed asks for `eta c ||grad||^2`; what a projected step can give.
fn line_search(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let x = bench.of_rank_r(&problem)?.factors;
    let products = Products::at(&problem, &x);
    let (s, d) = (x.rank(), problem.rows());
    let ratio: Vec<f64> = thin::column_norms(&x.v).iter().zip(thin::column_norms(&x.u)).map(|(v, u)| problem.lambda * v / u).collect();
    // grad_U F = Xi^2 (U G - Q) + lambda U diag(||V_j|| / ||U_j||).
    let mut gradient = x.u.clone();
    let mut row = vec![0.0; s];
    for i in 0..d {
        thin::row_times(x.u.row(i), &products.g, &mut row);
        for j in 0..s {
            gradient[(i, j)] = problem.xi2[i] * (row[j] - products.q[(i, j)]) + ratio[j] * x.u[(i, j)];
        }
    }
    let norm2 = thin::dot(gradient.as_slice(), gradient.as_slice());
    let value = problem.objective(&x).value;
    let most = problem.xi2.iter().copied().fold(0.0, f64::max) * (0..s).map(|j| products.g[(j, j)]).sum::<f64>();
    let mut table =
        TrapResult::new(&["step c", "decrease asked for, eta c ||grad_U F||², over F", "decrease that the projected step gives, over F"]);
    for share in [1.0, 1e-3, 1e-6] {
        let c = share / most;
        let mut next = x.clone();
        for i in 0..d {
            for j in 0..s {
                next.u[(i, j)] -= c * gradient[(i, j)];
            }
            simplex::project(next.u.row_mut(i), &mut f64::INFINITY.clone());
        }
        let gained = (value - problem.objective(&next).value) / value;
        table.row([rough(c), rough(1e-4 * c * norm2 / value), rough(gained)]);
    }
    Ok(table)
}

/// 3: when a local solve ends.
fn local_rule(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let mut table = TrapResult::new(&["local solve ends at", "rank", "F", "relLE1", "relLE2", "GE", "relRE", "sweeps", "ended by"]);
    for decrease in [1e-3, 1e-4, 1e-5] {
        let (solution, watch) = bench.paper(&problem, FINE, decrease, Removal::AllAtOnce)?;
        table.row(told(&format!("decrease {decrease:.0e}"), bench, &solution, &watch));
    }
    let settings = Settings { max_rank: 40, stop: StopRule::Exact { tolerance: 1e-3 }, max_sweeps: 1500, ..Settings::default() };
    let mut watch = Watch::new(false, None);
    let solution = solve(&problem, &settings, &mut watch)?;
    table.row(told("KKT 1e-5 (`fast`)", bench, &solution, &watch));
    Ok(table)
}

fn told(name: &str, bench: &Bench, s: &Solution, watch: &Watch) -> Vec<String> {
    let e = &s.errors;
    let ended = if watch.cycled { "a cycle" } else { s.status.as_str() };
    vec![
        name.to_owned(),
        s.rank().to_string(),
        format!("{:.4e}", s.objective.value),
        rough(e.rel_le1),
        rough(e.rel_le2),
        rough(e.ge),
        short(bench.instance.recovery(&s.factors)),
        s.sweeps.to_string(),
        ended.to_owned(),
    ]
}

/// 4: GE and relDG by searches of different strength, beside the certified gap.
fn searches(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let mut table = TrapResult::new(&["solution", "search for Omega°", "GE", "relDG (heuristic)", "certified gap"]);
    for (name, rank) in [("rank r", bench.instance.key.r), ("rank 4 r", 4 * bench.instance.key.r)] {
        let settings = Settings { max_rank: rank, stop: StopRule::Certificate { gap: 1e-6 }, max_sweeps: 600, ..Settings::default() };
        let s = solve(&problem, &settings, &mut Silent)?;
        for (how, starts, steps) in [("1 start, 3 steps", 1, 3), ("1 start, 300 steps", 1, 300), ("256 starts, 300 steps", 256, 300)] {
            let support = ascend(&problem, &s.factors, &s.mu, &AscentSearch { starts, steps, seed: 1, thorough: false }, f64::INFINITY).0;
            let gap = relative_duality_gap(&problem, &s.factors, &s.mu, support, s.objective.value);
            table.row([name.to_owned(), how.to_owned(), rough(support - 1.0), rough(gap), proven(proven_gap(&s))]);
        }
    }
    Ok(table)
}

/// 5: which memberships count as zero in the average behind mu.
fn multiplier(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let mut table =
        TrapResult::new(&["solution", "u_ij counts above (share of the row's largest)", "memberships in the average", "relLE1", "GE"]);
    let ours = bench.of_rank_r(&problem)?.factors;
    let paper = bench.paper(&problem, FINE, 1e-3, Removal::AllAtOnce)?.0.factors;
    for (name, x) in [("`fast`, rank r", &ours), ("PALM, printed rule", &paper)] {
        for floor in [0.0, SUPPORT, 1e-4, 1e-2] {
            let (mu, error, counted) = multiplier_above(&problem, x, floor);
            let support = ascend(&problem, x, &mu, &AscentSearch { starts: 16, steps: 100, seed: 1, thorough: false }, f64::INFINITY).0;
            let shown = if floor == 0.0 { "0 (as printed)".to_owned() } else { format!("{floor:.0e}") };
            table.row([name.to_owned(), shown, counted.to_string(), rough(error), rough(support - 1.0)]);
        }
    }
    Ok(table)
}

/// mu_i, the mean of `lambda u_ij ||V_j||/||U_j|| + (grad g V)_ij` over the memberships above the floor; relLE1; how many there are.
fn multiplier_above(problem: &Problem, x: &Factors, floor: f64) -> (Vec<f64>, f64, usize) {
    let products = Products::at(problem, x);
    let (s, d) = (x.rank(), problem.rows());
    let ratio: Vec<f64> = thin::column_norms(&x.v).iter().zip(thin::column_norms(&x.u)).map(|(v, u)| problem.lambda * v / u).collect();
    let (mut mu, mut gradient) = (vec![0.0; d], vec![0.0; s]);
    let (mut error, mut scale, mut counted) = (0.0, 0.0, 0);
    for i in 0..d {
        let u = x.u.row(i);
        thin::row_times(u, &products.g, &mut gradient);
        let least = floor * u.iter().copied().fold(0.0, f64::max);
        let (mut sum, mut count) = (0.0, 0);
        for j in 0..s {
            gradient[j] = problem.xi2[i] * (gradient[j] - products.q[(i, j)]);
            if u[j] > least {
                sum += ratio[j] * u[j] + gradient[j];
                count += 1;
            }
        }
        mu[i] = sum / f64::from(count);
        counted += count as usize;
        for j in 0..s {
            error += ((mu[i] - gradient[j]).max(0.0) - ratio[j] * u[j]).abs();
            scale += ratio[j] * u[j];
        }
    }
    (mu, error / scale, counted)
}

/// 6: the threshold of the redundancy step, in units of `||Xi P||`.
fn threshold(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let norm = problem.data_norm2.sqrt();
    let sigma = bench.instance.sigma();
    let mut table =
        TrapResult::new(&["threshold over ||Xi P||", "over sigma_r", "rank", "F", "relLE1", "relLE2", "GE", "relRE", "sweeps", "ended by"]);
    for share in [0.01, 0.02, FINE, 0.08, COARSE, 0.2] {
        let (solution, watch) = bench.paper(&problem, share, 1e-3, Removal::AllAtOnce)?;
        let mut row = told(&format!("{share}"), bench, &solution, &watch);
        row.insert(1, format!("{:.2}", share * norm / sigma[1]));
        table.row(row);
    }
    let guarded = Settings { redundancy: Redundancy::Relative(COARSE), max_sweeps: 20_000, ..Settings::paper(30, 0.0) };
    let mut watch = Watch::new(true, None);
    let solution = solve(&problem, &guarded, &mut watch)?;
    let mut row = told("0.12, only where F rises by at most 1e-6", bench, &solution, &watch);
    row.insert(1, format!("{:.2}", COARSE * norm / sigma[1]));
    table.row(row);
    Ok(table)
}

/// 7: random directions against ascent.
fn early(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let mut table = TrapResult::new(&["solution", "100 random directions", "5,000", "50,000", "projected ascent"]);
    let mut row = |name: &str, x: &Factors| {
        let products = Products::at(&problem, x);
        let mu = metastate::workspace::kkt::multiplier_and_errors(&problem, x, &products).0;
        let mut fields = vec![name.to_owned()];
        fields.extend([100, 5000, 50_000].map(|n| format!("{:.4}", probe(&problem, x, &mu, n, 1).value)));
        fields.push(format!(
            "{:.4}",
            ascend(&problem, x, &mu, &AscentSearch { starts: 16, steps: 300, seed: 1, thorough: false }, f64::INFINITY).0
        ));
        table.row(fields);
    };
    row("rank 1", &rank_one(&problem));
    for rank in [2, bench.instance.key.r] {
        let settings = Settings { max_rank: rank, ..Settings::default() };
        row(&format!("rank {rank}"), &solve(&problem, &settings, &mut Silent)?.factors);
    }
    Ok(table)
}

/// 8: what xi counts, and its power.
fn weights(bench: &Bench) -> Result<TrapResult> {
    let mut table = TrapResult::new(&["weights", "rank", "F", "relRE (weights by arrivals)", "largest change of a weight"]);
    let arrivals = bench.instance.chain().weights().to_vec();
    let choices = [
        ("arrivals, xi (2.1)", WeightsBy::Arrivals, WeightPower::One),
        ("departures, xi (6.3)", WeightsBy::Departures, WeightPower::One),
        ("arrivals, xi^(1/2)", WeightsBy::Arrivals, WeightPower::Half),
    ];
    for (name, weights_by, weight_power) in choices {
        let chain = Chain::estimate(&bench.instance.counts, &Estimate { weights_by, weight_power, ..Estimate::default() })?;
        // The same share of ||Xi P||^2, so that lambda means the same.
        let reference = bench.problem()?.data_norm2;
        let lambda = bench.lambda * Problem::new(chain.p(), chain.weights(), 1.0)?.data_norm2 / reference;
        let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
        let s = solve(&problem, &Settings { max_rank: bench.instance.key.r, ..Settings::default() }, &mut Silent)?;
        let change = chain.weights().iter().zip(&arrivals).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
        let change = if weight_power == WeightPower::One { rough(change) } else { "another scale".into() };
        table.row([
            name.to_owned(),
            s.rank().to_string(),
            format!("{:.4e}", s.objective.value),
            format!("{:.3e}", bench.instance.recovery(&s.factors)),
            change,
        ]);
    }
    Ok(table)
}

/// 9: the convex problem's solution by the relaxation and by nonnegative factors, along lambda.
fn relaxation_against_factors(bench: &Bench) -> Result<TrapResult> {
    let key = bench.instance.key;
    let mut table = TrapResult::new(&[
        "lambda / (sigma_(r+1)/d)",
        "relRE, relaxation (rank)",
        "relRE, nonnegative factors (rank, certified gap)",
        "relRE at rank r",
    ]);
    let noise = bench.lambda / 1.2;
    let problem = bench.problem()?;
    let mut row_space = relaxation::random_row_space(&problem, key.r + 6, 1);
    let mut at_r = bench.of_rank_r(&problem.at_lambda(2.0 * noise))?.factors;
    for factor in [2.0, 1.5, 1.2, 1.0, 0.9] {
        let problem = problem.at_lambda(factor * noise);
        let Some((point, _)) = relaxed(&bench.instance, &problem, &mut row_space, key.d / 2) else { continue };
        let settings = Settings {
            stop: StopRule::Certificate { gap: 3e-4 },
            tolerance: 1e-4,
            max_rank: key.d / 2,
            max_sweeps: 1000,
            ..Settings::default()
        };
        let s = solve(&problem, &settings, &mut Silent)?;
        let mut solver = Fast::new(8);
        for _ in 0..60 {
            solver.sweep(&problem, &mut at_r);
        }
        let rank = s.rank();
        table.row([
            format!("{factor}"),
            format!("{:.3e} ({})", point.rel_re, point.rank),
            format!("{:.3e} ({rank}, {})", bench.instance.recovery(&s.factors), proven(proven_gap(&s))),
            format!("{:.3e}", bench.instance.recovery(&at_r)),
        ]);
    }
    Ok(table)
}

/// 10: where redundant columns are sought, at the shares of `||Xi P||` that the paper's two thresholds are at d = 1000.
fn removals(bench: &Bench) -> Result<TrapResult> {
    let problem = bench.problem()?;
    let mut table = TrapResult::new(&["sought", "threshold over ||Xi P||", "rank", "F", "relRE", "ended by"]);
    let ways = [
        ("combinations of the atoms, many columns at once (ours)", Removal::AllAtOnce),
        ("the same, one column at a time", Removal::OneByOne),
        ("combinations of the atoms scaled to length one", Removal::UnitAtoms),
    ];
    for share in [COARSE, FINE] {
        for (name, removal) in ways {
            let (s, watch) = bench.paper(&problem, share, 1e-3, removal)?;
            let ended = if watch.cycled { "a cycle" } else { s.status.as_str() };
            let recovery = short(bench.instance.recovery(&s.factors));
            table.row([
                name.to_owned(),
                share.to_string(),
                s.rank().to_string(),
                format!("{:.4e}", s.objective.value),
                recovery,
                ended.to_owned(),
            ]);
        }
    }
    Ok(table)
}
