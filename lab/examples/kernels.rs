//! One kernel, or one small fit, on one thread and always the same: what `scripts/instructions` counts the instructions of.
//!
//! `cargo run -p metastate-lab --example kernels -- product|sweep|pass|fit`

use metastate::simulate::planted_groups;
use metastate::solve::{Factors, Problem};
use metastate::workspace::local::{Fast, LocalSolver};
use metastate::workspace::refit::{LikelihoodSettings, Observed, likelihood};
use metastate::{Chain, Data, Estimate, FitOptions, Mat, Silent, fit};

const STATES: usize = 3000;
const GROUPS: usize = 12;
const TRANSITIONS: usize = 40;

fn main() -> metastate::Result<()> {
    let what = std::env::args().nth(1).unwrap_or_default();
    if what == "features" {
        // What this processor, or the one that valgrind plays, is seen to have.
        #[cfg(target_arch = "x86_64")]
        println!("{}", if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") { "avx2" } else { "older" });
        #[cfg(not(target_arch = "x86_64"))]
        println!("{}", std::env::consts::ARCH);
        return Ok(());
    }
    let (states, groups, transitions) = if what == "fit" { (240, 4, 60) } else { (STATES, GROUPS, TRANSITIONS) };
    let planted = planted_groups(states, groups, transitions, 1)?;
    let near = |i: usize, k: usize| if planted.group[i] as usize == k { 1.0 } else { 0.05 };
    let mut x = Factors { u: Mat::from_fn(states, groups, near), v: Mat::from_fn(states, groups, near) };
    x.normalise_rows();
    let sums: Vec<f64> = (0..groups).map(|k| (0..states).map(|i| x.v[(i, k)]).sum()).collect();
    x.v = Mat::from_fn(states, groups, |i, k| x.v[(i, k)] / sums[k]);

    let chain = Chain::estimate(&planted.counts, &Estimate::default())?;
    match what.as_str() {
        "product" => {
            let (mut there, mut back) = (Mat::default(), Mat::default());
            for _ in 0..20 {
                chain.p().apply(&x.v, &mut there);
                chain.p().apply_transpose_weighted(chain.weights(), &there, &mut back);
            }
            println!("{:e}", back.as_slice()[0]);
        }
        "sweep" => {
            let problem = Problem::new(chain.p(), chain.weights(), 1e-8)?;
            let mut solver = Fast::new(8);
            let values: Vec<f64> = (0..10).map(|_| solver.sweep(&problem, &mut x).value).collect();
            println!("{values:?}");
        }
        "pass" => {
            let settings = LikelihoodSettings { max_passes: 20, tolerance: -1.0, ..LikelihoodSettings::default() };
            println!("{}", likelihood(&Observed::new(planted.counts.csr().clone())?, &x, &settings)?.log_likelihood);
        }
        "fit" => {
            let data = Data::from_counts(&planted.counts, &Estimate::default())?;
            let model = fit(&data, &FitOptions::default(), &mut Silent)?;
            println!("rank {}", model.rank());
        }
        other => println!("`{other}` is none of product, sweep, pass, fit, features"),
    }
    Ok(())
}
