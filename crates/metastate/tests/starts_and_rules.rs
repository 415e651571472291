//! What a run does with a start that has empty columns, and that every stopping rule honours the tolerance asked for.

mod common;

use common::{Stream, exact, exact_dense, problem, sampled, scaled, solved};
use metastate::solve::{BbFormula, Factors, Problem, Settings, Silent, Solver, Start, Status, StopRule, solve};
use metastate::workspace::kkt::{Products, multiplier_and_errors};
use metastate::workspace::local::{Fast, LocalSolver, Palm, StepRule};
use metastate::workspace::thin;
use metastate::{Chain, Mat, WeightPower};

/// Random factors; nobody belongs to the columns of U named.
fn with_empty_memberships(d: usize, rank: usize, empty: &[usize]) -> Factors {
    let mut x = Stream(7).factors(d, rank);
    (0..d).for_each(|i| empty.iter().for_each(|&j| x.u[(i, j)] = 0.0));
    x.normalise_rows();
    x
}

/// Random factors; the columns of V named lead nowhere.
fn with_empty_destinations(d: usize, rank: usize, empty: &[usize]) -> Factors {
    let mut x = Stream(8).factors(d, rank);
    (0..d).for_each(|j| empty.iter().for_each(|&k| x.v[(j, k)] = 0.0));
    x
}

fn local_solvers() -> Vec<(&'static str, Box<dyn LocalSolver>)> {
    vec![
        ("fast, plain", Box::new(Fast::new(0))),
        ("fast", Box::new(Fast::new(8))),
        ("palm-bb", Box::new(Palm::new(StepRule::BarzilaiBorwein(BbFormula::default())))),
        ("palm-lipschitz", Box::new(Palm::new(StepRule::Lipschitz { epsilon0: 1e-14 }))),
    ]
}

/// Chains with a lambda: usual ones, and one so large that lambda over the smallest number is infinite.
fn instances() -> Vec<(&'static str, Chain, f64)> {
    let share = |chain: &Chain, share: f64| share * scaled(chain, 1.0).data_norm2;
    let (low_rank, dense, sparse) = (exact(60, 3, 1), exact_dense(50, 3, 2), sampled(60, 3, 20_000, 3));
    let unweighted = sampled(40, 3, 20_000, 4).with_weight_power(WeightPower::Zero);
    let lambdas = [share(&low_rank, 1e-2), share(&dense, 1e-4), share(&sparse, 1e-2)];
    let mut all = vec![("exact", low_rank), ("dense", dense), ("sampled", sparse)];
    let mut out: Vec<_> = all.drain(..).zip(lambdas).map(|((name, chain), lambda)| (name, chain, lambda)).collect();
    out.push(("unweighted, dear", unweighted, 1e3));
    out
}

fn assert_finite(x: &Factors, what: &str) {
    assert!(
        x.u.first_not_finite().is_none() && x.v.first_not_finite().is_none(),
        "{what}: {:?}",
        (x.u.first_not_finite(), x.v.first_not_finite())
    );
}

fn assert_feasible(x: &Factors, what: &str) {
    assert_finite(x, what);
    let near_one = |sum: f64| (sum - 1.0).abs() <= 1e-12;
    assert!((0..x.u.rows()).all(|i| near_one(x.u.row(i).iter().sum())), "{what}: a row of U does not sum to one");
    assert!(thin::column_sums(&x.v).into_iter().all(near_one), "{what}: a column of V does not sum to one");
}

fn assert_local_errors_are_finite(problem: &Problem, x: &Factors, what: &str) {
    let (mu, errors) = multiplier_and_errors(problem, x, &Products::at(problem, x));
    assert!(mu.iter().all(|m| m.is_finite()) && errors.worst().is_finite(), "{what}: {errors:?}");
}

#[test]
fn sweeps_from_empty_columns_are_finite_and_feasible() {
    for (name, chain, lambda) in instances() {
        let problem = problem(&chain, lambda);
        let d = problem.rows();
        let starts = [
            ("one empty column of U", with_empty_memberships(d, 4, &[1])),
            ("two empty columns of U", with_empty_memberships(d, 4, &[0, 3])),
            ("an empty column of V", with_empty_destinations(d, 4, &[2])),
        ];
        for (start, from) in &starts {
            for (solver_name, mut solver) in local_solvers() {
                let what = format!("{name}, {solver_name}, {start}");
                assert_local_errors_are_finite(&problem, from, &what);
                let mut x = from.clone();
                for k in 0..20 {
                    let value = solver.sweep(&problem, &mut x).value;
                    assert!(value.is_finite(), "{what}: F is {value} after sweep {k}");
                    assert_feasible(&x, &what);
                    let anew = problem.objective(&x).value;
                    assert!((value - anew).abs() <= 1e-10 * anew + 1e-13 * problem.data_norm2, "{what}, sweep {k}: {value:e}, {anew:e}");
                }
                assert_local_errors_are_finite(&problem, &x, &what);
                solver.settle(&mut x);
                assert_feasible(&x, &what);
            }
        }
    }
}

/// A row without memberships is no point of the problem, but its multiplier is a number all the same.
#[test]
fn a_row_without_memberships_has_a_multiplier() {
    let chain = exact(40, 3, 5);
    let problem = scaled(&chain, 1e-2);
    let mut x = Stream(9).factors(40, 3);
    x.u.row_mut(4).fill(0.0);
    assert_local_errors_are_finite(&problem, &x, "an empty row");
    x.u = Mat::zeros(40, 3);
    assert_local_errors_are_finite(&problem, &x, "no memberships at all");
}

#[test]
fn a_run_from_empty_columns_ends_where_one_without_them_does() {
    let chain = sampled(60, 3, 40_000, 6);
    let problem = scaled(&chain, 2e-2);
    let from = with_empty_memberships(60, 4, &[0, 2]);
    let mut without = from.clone();
    without.keep_columns(&[1, 3]);
    for solver in [Solver::Fast, Solver::PalmBb(BbFormula::default()), Solver::PalmLipschitz] {
        let run = |x: &Factors| {
            let settings = Settings { solver, start: Start::Given(Box::new(x.clone())), max_sweeps: 300, ..Settings::default() };
            solved(&problem, &settings)
        };
        let (ours, plain) = (run(&from), run(&without));
        assert_feasible(&ours.factors, &format!("{solver:?}"));
        let e = ours.errors;
        let published = [ours.objective.value, e.rel_le1, e.rel_le2, e.ge, e.rel_dg];
        assert!(published.iter().chain(&ours.mu).all(|x| x.is_finite()), "{solver:?}: {published:?}");
        // The relaxation starts from V, which has other columns here: the same answer, not the same bits.
        let apart = (ours.objective.value / plain.objective.value - 1.0).abs();
        println!("{solver:?}: F {:.6e} and {:.6e}", ours.objective.value, plain.objective.value);
        assert!(apart < 2e-3, "{solver:?}: {:e} and {:e}", ours.objective.value, plain.objective.value);
    }
}

#[test]
fn a_start_whose_destinations_are_empty_is_refused() {
    let chain = exact(40, 3, 5);
    let problem = scaled(&chain, 1e-2);
    for solver in [Solver::Fast, Solver::PalmBb(BbFormula::default()), Solver::PalmLipschitz] {
        let start = Start::Given(Box::new(with_empty_destinations(40, 3, &[1])));
        let refused = solve(&problem, &Settings { solver, start, ..Settings::default() }, &mut Silent).unwrap_err().to_string();
        assert!(refused.contains("a column sum of V") && refused.contains("0 in column 1"), "{refused}");
    }
}

/// The paper's two rules say when columns stop coming; the tolerance says how well the last point is solved, whatever the rule.
#[test]
fn both_rules_of_the_paper_honour_the_tolerance() {
    let chain = exact(150, 4, 19);
    let problem = scaled(&chain, 5e-2);
    let (exact_rule, early) = (StopRule::Exact { tolerance: 1e-3 }, StopRule::Early { directions: 1000 });
    let palm = Solver::PalmBb(BbFormula::default());
    for (stop, solver, tolerance) in
        [(exact_rule, Solver::Fast, 1e-4), (early, Solver::Fast, 1e-4), (early, Solver::Fast, 1e-6), (early, palm, 1e-4)]
    {
        let found = solved(&problem, &Settings { stop, solver, tolerance, start_rank: Some(1), ..Settings::default() });
        let worst = found.errors.rel_le1.max(found.errors.rel_le2);
        println!("{stop:?}, {solver:?}, {tolerance:e}: {:?}, rank {}, {worst:.1e}, {} sweeps", found.status, found.rank(), found.sweeps);
        assert_eq!(found.status, if stop == early { Status::Early } else { Status::Stationary }, "{stop:?}, {solver:?}");
        assert!(worst <= tolerance, "{stop:?}, {solver:?}: asked for {tolerance:e}, ended at {worst:e}");
    }
}
