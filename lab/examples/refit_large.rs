//! The likelihood refit at scale: passes, seconds and likelihood at d = 1e5, nnz = 1e7, rank 20. With a folder named, the counts and the
//! start are written there as raw arrays, so that `benches/peers/nmf_kl.py` goes on from the same point.
//!
//! `cargo run --release -p metastate-lab --example refit_large [d [rank [transitions a state [passes [folder]]]]]`

use std::time::Instant;

use metastate::simulate::planted_groups;
use metastate::workspace::refit::{LikelihoodSettings, SpectralFits, likelihood_watched};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize, default: usize| arguments.get(k).and_then(|a| a.parse::<f64>().ok()).map_or(default, |x| x as usize);
    let (d, rank, row, passes) = (number(0, 100_000), number(1, 20), number(2, 100), number(3, 40));
    let planted = planted_groups(d, rank, row, 1)?;
    let csr = planted.counts.csr();
    println!("{d} states, {} pairs, {} transitions", csr.nonzeros(), planted.counts.transitions());
    let clock = Instant::now();
    let fits = SpectralFits::new(csr.clone(), 0)?;
    println!("spectral basis {:.1} s", clock.elapsed().as_secs_f64());
    let clock = Instant::now();
    let start = fits.start(rank)?;
    println!("start of rank {} in {:.1} s", start.rank(), clock.elapsed().as_secs_f64());
    if let Some(folder) = arguments.get(4).map(std::path::Path::new) {
        std::fs::create_dir_all(folder)?;
        let floats = |x: &[f64]| x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        std::fs::write(folder.join("indptr.u64"), csr.indptr().iter().flat_map(|x| (*x as u64).to_le_bytes()).collect::<Vec<u8>>())?;
        std::fs::write(folder.join("indices.u32"), csr.indices().iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
        std::fs::write(folder.join("data.f64"), floats(csr.values()))?;
        std::fs::write(folder.join("U.f64"), floats(start.u.as_slice()))?;
        std::fs::write(folder.join("V.f64"), floats(start.v.as_slice()))?;
    }
    for accelerate in [false, true] {
        let clock = Instant::now();
        let settings = LikelihoodSettings { prior: 0.0, max_passes: passes, tolerance: 0.0, accelerate };
        let fit = likelihood_watched(fits.observed(), &start, &settings, |pass, value| {
            if pass <= 2 || pass % 10 == 0 {
                println!("  pass {pass}: {value:.6} a transition, {:.2} s", clock.elapsed().as_secs_f64());
            }
            true
        })?;
        let seconds = clock.elapsed().as_secs_f64();
        let word = if accelerate { "extrapolated" } else { "plain" };
        println!(
            "{word}: {} passes in {seconds:.2} s ({:.3} s each), {:.6} a transition",
            fit.passes,
            seconds / fit.passes as f64,
            fit.log_likelihood
        );
    }
    Ok(())
}
