//! The instances of ../shared/reference, solved to a certified gap: an independent implementation knows between which two
//! numbers the optimum of each lies.

mod common;

use std::path::Path;
use std::time::Instant;

use common::{npz_array, problem, verified};
use metastate::solve::{Settings, Silent, StopRule, solve};
use metastate::{Chain, Counts, Estimate, Given, Mat, StateIndex};

struct Row {
    instance: &'static str,
    lambda: f64,
    /// A feasible point's objective.
    upper: f64,
    /// A valid dual bound.
    lower: f64,
    /// The certified gap to aim at.
    gap: f64,
    max_rank: usize,
    max_sweeps: usize,
    /// How far above `upper` the objective may end, relative to it.
    above: f64,
    /// The certified gap that must be reached.
    proven: f64,
}

const fn row(instance: &'static str, lambda: f64, upper: f64, lower: f64, proven: f64) -> Row {
    Row { instance, lambda, upper, lower, gap: 1e-5, max_rank: 60, max_sweeps: 20_000, above: 1e-5, proven }
}

/// Where the reference's 40 columns were too few, ending below `upper` is easy and closing the gap takes minutes.
const WIDE_60: Row = row("noisy-60", 1.486e-06, 5.0376694354461876e-06, 4.857032066683226e-06, 1e-5);
const SLOW_150: Row = row("noisy-150", 1.856e-06, 4.989290439304681e-06, 4.9884917557407155e-06, 1e-5);
const WIDE_150: Row = row("noisy-150", 1.856e-07, 1.2855923353130435e-06, 8.392282551241749e-07, 1e-5);

const ROWS: [Row; 12] = [
    row("exact-60", 0.0001493, 0.00018653688066738519, 0.00018653688066738527, 1e-5),
    row("exact-60", 1.493e-05, 2.2696023392685058e-05, 2.269602339268506e-05, 1e-5),
    // Our bound and the reference's agree to 1e-8 here and at 1.081e-7: more is not to be had from the relaxation.
    row("exact-60", 1.493e-06, 2.3993404256051526e-06, 2.3992268682530006e-06, 6e-5),
    row("exact-200", 1.081e-05, 1.3849017555909592e-05, 1.3849017555909572e-05, 1e-5),
    row("exact-200", 1.081e-06, 1.7674036166362168e-06, 1.7673941284197858e-06, 1e-5),
    row("exact-200", 1.081e-07, 1.8541953282851874e-07, 1.8540015209015596e-07, 1.1e-4),
    row("noisy-60", 0.0001486, 0.00019671383802462246, 0.00019671383802462235, 1e-5),
    Row { gap: 1e-4, ..row("noisy-60", 1.486e-05, 3.2276857892768246e-05, 3.2276857892517266e-05, 1e-4) },
    Row { gap: 3e-2, max_sweeps: 400, proven: 4e-2, ..WIDE_60 },
    row("noisy-150", 1.856e-05, 2.6613348514864965e-05, 2.6613348514864846e-05, 1e-5),
    Row { gap: 2e-3, max_sweeps: 600, proven: 1.5e-3, above: 1e-3, ..SLOW_150 },
    Row { gap: 2e-1, max_rank: 80, max_sweeps: 100, proven: 2e-1, ..WIDE_150 },
];

/// Two of them with more sweeps: what they reach then.
const SLOW_ROWS: [Row; 2] = [Row { max_sweeps: 4000, proven: 1.1e-2, ..WIDE_60 }, Row { max_sweeps: 4000, proven: 2e-4, ..SLOW_150 }];

fn array(path: &Path, name: &str) -> Vec<f64> {
    npz_array(path, name).unwrap()
}

/// `None` where the instances are not at hand.
fn chain(instance: &str) -> Option<Chain> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference").join(format!("{instance}.npz"));
    if !path.exists() {
        return None;
    }
    if instance.starts_with("exact") {
        let xi = array(&path, "xi");
        let p = Mat::from_vec(xi.len(), xi.len(), array(&path, "P")).unwrap();
        return Some(Chain::from_dense(p, Given::weights(xi)).unwrap());
    }
    let counts = array(&path, "counts");
    let d = counts.len().isqrt();
    let triplets: Vec<_> = counts.iter().enumerate().map(|(at, n)| ((at / d) as u32, (at % d) as u32, *n)).collect();
    let counts = Counts::from_triplets(StateIndex::numbered(d), &triplets).unwrap();
    Some(Chain::estimate(&counts, &Estimate::default()).unwrap())
}

/// Solves a row, verifies it, prints a line and compares with what is known of the optimum.
fn check(row: &Row, chain: &Chain) {
    let problem = problem(chain, row.lambda);
    let settings = Settings {
        stop: StopRule::Certificate { gap: row.gap },
        max_rank: row.max_rank,
        max_sweeps: row.max_sweeps,
        ..Settings::default()
    };
    let clock = Instant::now();
    let solution = solve(&problem, &settings, &mut Silent).unwrap();
    let seconds = clock.elapsed().as_secs_f64();
    verified(&problem, &solution);
    let (objective, bound) = (solution.objective.value, solution.proof.as_ref().map_or(f64::NAN, |p| p.lower_bound()));
    println!(
        "{:9} {:.3e} {objective:.10e} {:.10e} {:.10e} {:9.1e} {:9.1e} {:9.1e} {:4} {:6} {:15} {seconds:7.2}",
        row.instance,
        row.lambda,
        row.upper,
        row.lower,
        objective / row.upper - 1.0,
        solution.certified_gap().unwrap_or(f64::NAN),
        solution.errors.rel_dg,
        solution.rank(),
        solution.sweeps,
        solution.status.as_str(),
    );
    let what = format!("{} {:e}: {objective:e}", row.instance, row.lambda);
    assert!(objective <= row.upper * (1.0 + row.above), "{what} is above {:e}", row.upper);
    assert!(objective >= row.lower * (1.0 - 1e-9), "{what} is below the proven bound {:e}", row.lower);
    assert!(bound <= row.upper * (1.0 + 1e-9), "{what}: the bound {bound:e} is above a feasible point's {:e}", row.upper);
    assert!(
        solution.certified_gap().unwrap_or(f64::NAN) <= row.proven,
        "{what}: certified to {:e} only",
        solution.certified_gap().unwrap_or(f64::NAN)
    );
}

fn check_all(rows: &[Row]) {
    println!(
        "instance  lambda   objective        upper            lower            F/upper-1 certified heuristic rank sweeps status seconds"
    );
    for row in rows {
        let Some(chain) = chain(row.instance) else {
            println!("skipped: the reference instances are not here");
            return;
        };
        check(row, &chain);
    }
}

/// With the sweeps that a test may take.
#[test]
fn optima_are_reached_and_never_passed() {
    check_all(&ROWS);
}

/// The slow rows without hurry: minutes. `cargo test --release --test reference -- --ignored --nocapture`.
#[test]
#[ignore = "4000 sweeps at 60 columns: minutes, not seconds"]
fn slow_rows_without_hurry() {
    check_all(&SLOW_ROWS);
}
