//! The local solvers, sweep by sweep: what each promises about F, feasibility of every iterate, and one answer for all.

mod common;

use common::{Stream, exact, exact_dense, sampled, scaled, sparse_with_near_absorbing_states, widely_weighted};
use metastate::Chain;
use metastate::solve::{BbFormula, Factors, Problem};
use metastate::workspace::local::{Fast, LocalSolver, Palm, StepRule};

const SWEEPS: usize = 200;

/// Chains, columns to start with, and lambda as a share of `||Xi P||_F^2`.
fn instances() -> Vec<(&'static str, Chain, usize, f64)> {
    vec![
        ("exact, as factors", exact(100, 4, 1), 6, 1e-3),
        ("exact, dense", exact_dense(90, 3, 2), 3, 1e-5),
        ("sampled", sampled(100, 3, 50_000, 3), 5, 1e-3),
        ("sampled, many columns", sampled(60, 3, 20_000, 4), 17, 1e-4),
        ("sparse, near-absorbing", sparse_with_near_absorbing_states(151, 5, 5), 7, 1e-3),
        ("widely varying weights", widely_weighted(80, 4, 6), 6, 1e-3),
    ]
}

fn assert_feasible(x: &Factors, what: &str) {
    for i in 0..x.u.rows() {
        let sum: f64 = x.u.row(i).iter().sum();
        assert!((sum - 1.0).abs() <= 1e-12, "{what}: row {i} of U sums to {sum}");
    }
    for j in 0..x.rank() {
        let sum: f64 = x.v.column(j).iter().sum();
        assert!((sum - 1.0).abs() <= 1e-12, "{what}: column {j} of V sums to {sum}");
    }
    let least = x.u.as_slice().iter().chain(x.v.as_slice()).fold(f64::INFINITY, |m, x| m.min(*x));
    assert!(least >= 0.0, "{what}: an entry is {least}");
}

/// Sweeps, checks every iterate's feasibility and that the value reported is F; returns all values, F at the start first.
fn values(solver: &mut dyn LocalSolver, problem: &Problem, x: &mut Factors, sweeps: usize, what: &str) -> Vec<f64> {
    let mut values = vec![problem.objective(x).value];
    for k in 0..sweeps {
        let value = solver.sweep(problem, x).value;
        assert!(value.is_finite(), "{what}: F is {value} after sweep {k}");
        assert_feasible(x, what);
        let anew = problem.objective(x).value;
        // Steering values may lose what cancels in g; never more than rounding of ||Xi P||^2.
        let rounding = 1e-10 * anew + 1e-13 * problem.data_norm2;
        assert!((value - anew).abs() <= rounding, "{what}, sweep {k}: reported {value:e}, found {anew:e}");
        values.push(value);
    }
    values
}

fn assert_never_rises(values: &[f64], problem: &Problem, what: &str) {
    for (k, pair) in values.windows(2).enumerate() {
        let rounding = 1e-12 * pair[0] + 1e-14 * problem.data_norm2;
        assert!(pair[1] <= pair[0] + rounding, "{what}: F rose in sweep {k}, from {:e} to {:e}", pair[0], pair[1]);
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.len() as f64
}

#[test]
fn fast_never_rises() {
    for (name, chain, rank, share) in instances() {
        let problem = scaled(&chain, share);
        for seed in 0..2 {
            for memory in [0, 8] {
                let what = format!("{name}, start {seed}, memory {memory}");
                let mut x = Stream(100 + seed).factors(problem.rows(), rank);
                let values = values(&mut Fast::new(memory), &problem, &mut x, SWEEPS, &what);
                assert_never_rises(&values, &problem, &what);
                assert!(values[SWEEPS] < 0.99 * values[0], "{what}: from {:e} to {:e} only", values[0], values[SWEEPS]);
            }
        }
    }
}

#[test]
fn palm_bb_obeys_its_search() {
    for (name, chain, rank, share) in instances() {
        let problem = scaled(&chain, share);
        for formula in [BbFormula::First, BbFormula::Second, BbFormula::Alternating] {
            let what = format!("{name}, {formula:?}");
            let mut x = Stream(200).factors(problem.rows(), rank);
            let mut solver = Palm::new(StepRule::BarzilaiBorwein(formula));
            let values = values(&mut solver, &problem, &mut x, SWEEPS, &what);
            for k in 1..values.len() {
                // A sweep compares twice. After U: `f <= mean of the last five sweeps' F`. After V: `F <= mean of the last five
                // f`. So F stays below the mean of five such means, whatever the f were.
                let allowed = mean((k.saturating_sub(4).max(1)..k + 1).map(|m| mean(values[m.saturating_sub(5)..m].iter().copied())));
                let rounding = 1e-12 * allowed + 1e-14 * problem.data_norm2;
                assert!(values[k] <= allowed + rounding, "{what}, sweep {k}: {:e} above {allowed:e}", values[k]);
            }
            let lowest = values[1..].iter().copied().fold(f64::INFINITY, f64::min);
            assert!(lowest < 0.99 * values[0], "{what}: from {:e} to {lowest:e} only", values[0]);
            // At the end the best point of all is handed out.
            solver.settle(&mut x);
            let settled = problem.objective(&x).value;
            assert!((settled - lowest).abs() <= 1e-10 * lowest + 1e-13 * problem.data_norm2, "{what}: {settled:e} {lowest:e}");
        }
    }
}

#[test]
fn palm_lipschitz_never_rises() {
    for (name, chain, rank, share) in instances() {
        let problem = scaled(&chain, share);
        // The paper's eps0, with which it hardly moves, and one with which it does.
        for epsilon0 in [1e-14, 1e-2] {
            let what = format!("{name}, eps0 {epsilon0:e}");
            let mut x = Stream(300).factors(problem.rows(), rank);
            let values = values(&mut Palm::new(StepRule::Lipschitz { epsilon0 }), &problem, &mut x, SWEEPS, &what);
            assert_never_rises(&values, &problem, &what);
            if epsilon0 == 1e-2 {
                assert!(values[SWEEPS] < (1.0 - 1e-6) * values[0], "{what}: from {:e} to {:e}", values[0], values[SWEEPS]);
            }
        }
    }
}

#[test]
fn all_three_find_the_same_value_on_an_easy_instance() {
    let chain = exact_dense(40, 3, 7);
    let problem = scaled(&chain, 0.05);
    let mut reached = Vec::new();
    let solvers: [(&str, Box<dyn LocalSolver>, usize); 5] = [
        ("fast", Box::new(Fast::new(8)), 300),
        ("bb first", Box::new(Palm::new(StepRule::BarzilaiBorwein(BbFormula::First))), 1000),
        ("bb second", Box::new(Palm::new(StepRule::BarzilaiBorwein(BbFormula::Second))), 1000),
        ("bb alternating", Box::new(Palm::new(StepRule::BarzilaiBorwein(BbFormula::Alternating))), 1000),
        ("lipschitz", Box::new(Palm::new(StepRule::Lipschitz { epsilon0: 1e-2 })), 20_000),
    ];
    for (name, mut solver, sweeps) in solvers {
        let mut x = Stream(400).factors(problem.rows(), 3);
        for _ in 0..sweeps {
            solver.sweep(&problem, &mut x);
        }
        solver.settle(&mut x);
        assert_feasible(&x, name);
        reached.push((name, problem.objective(&x).value));
    }
    println!("{reached:?}");
    for (name, value) in &reached[1..] {
        assert!((value / reached[0].1 - 1.0).abs() < 1e-3, "{name}: {value:e} against {:e}", reached[0].1);
    }
}
