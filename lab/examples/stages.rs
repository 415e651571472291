//! Where the time of a fit with nothing given goes: seconds of each stage, the fits behind the choice, and how good the answer is.
//!
//! `cargo run --release -p metastate-lab --example stages INSTANCE [seed]` with INSTANCE one of
//! - `a`: planted, 1,000 states, rank 10, 1e7 transitions
//! - `b`, `d`: a grid city of 2,000 cells with 8 soft zones, 4e6 and 2e5 trips
//! - `dense`: 229 states, 1e6 transitions of a dense chain that no low rank fits
//! - `c`: 100,000 states in 20 groups, about 1e7 pairs

use std::time::Instant;

use metastate::LowRankOperator;
use metastate::aggregate::Overlap;
use metastate::fit::{FitObserver, Stage};
use metastate::simulate::{planted, planted_groups, soft_city};
use metastate::solve::{Factors, Observer};
use metastate::workspace::path::LambdaPoint;
use metastate::workspace::score::{Model, Smoothing, score};
use metastate::workspace::select::Attempt;
use metastate::{Csr, Data, Estimate, FitOptions, fit};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Prints each stage when it ends.
struct Clock {
    now: Instant,
    stage: Option<Stage>,
    attempts: usize,
}

impl Observer for Clock {}

impl FitObserver for Clock {
    fn stage(&mut self, stage: Stage) {
        if let Some(before) = self.stage {
            println!(
                "  {before:?}: {:.2} s{}",
                self.now.elapsed().as_secs_f64(),
                if before == Stage::Choosing { format!(", {} attempts", self.attempts) } else { String::new() }
            );
        }
        (self.now, self.stage) = (Instant::now(), Some(stage));
    }

    fn path_point(&mut self, p: &LambdaPoint) {
        println!(
            "    {:6.2} s: ratio {:.4}, rank {}, {} sweeps, {:?}",
            self.now.elapsed().as_secs_f64(),
            p.lambda_ratio,
            p.rank,
            p.sweeps,
            p.status
        );
    }

    fn attempted(&mut self, a: &Attempt) {
        self.attempts += 1;
        println!(
            "    {:6.2} s: rank {}, prior {}, {} folds{}: {:.6}",
            self.now.elapsed().as_secs_f64(),
            a.rank,
            a.prior,
            a.held_out.folds.len(),
            if a.first_look { ", first look" } else { "" },
            a.held_out.log_likelihood()
        );
    }
}

/// The truth behind the counts, to judge by.
enum Truth {
    Factors(Factors),
    City { zones: Vec<u32>, fresh: Csr },
    Groups(Vec<u32>),
    Unknown,
}

fn main() -> metastate::Result<()> {
    let instance = std::env::args().nth(1).unwrap_or_else(|| "a".to_owned());
    let seed: u64 = std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(1);
    let (counts, truth) = match instance.as_str() {
        "b" | "d" => {
            let city = soft_city(50, 40, 8, seed)?;
            let trips = if instance == "b" { 4_000_000 } else { 200_000 };
            let fresh = city.sample_counts(trips, seed + 1000)?.csr().clone();
            (city.sample_counts(trips, seed)?, Truth::City { zones: city.zone(), fresh })
        }
        "c" => {
            let groups = planted_groups(100_000, 20, 100, seed)?;
            (groups.counts.clone(), Truth::Groups(groups.group.clone()))
        }
        "dense" => (dense(seed)?, Truth::Unknown),
        _ => {
            let planted = planted(1000, 10, seed)?;
            (planted.sample_counts(10_000_000, seed)?, Truth::Factors(Factors { u: planted.u.clone(), v: planted.v.clone() }))
        }
    };
    let clock = Instant::now();
    let data = Data::from_counts(&counts, &Estimate::default())?;
    println!(
        "{instance}, seed {seed}: {} states, {} pairs, data made in {:.2} s",
        data.chain().states(),
        counts.csr().nonzeros(),
        clock.elapsed().as_secs_f64()
    );
    let mut watch = Clock { now: Instant::now(), stage: None, attempts: 0 };
    let model = fit(&data, &FitOptions::default(), &mut watch)?;
    println!(
        "  {:.2} s in all: rank {}, proven gap {:?} at rank {}",
        clock.elapsed().as_secs_f64(),
        model.rank(),
        model.solution.certified_gap(),
        model.solution.rank()
    );
    if let Some(chosen) = &model.chosen {
        println!("  {} prior {}", chosen.sentence, chosen.choice.prior);
    }
    let found: Vec<u32> = model.memberships().largest_entries().map(|k| k as u32).collect();
    match truth {
        Truth::Factors(x) => println!("  {:?}", model.against(&LowRankOperator::new(x.u, x.v)?, &data)),
        Truth::City { zones, fresh } => {
            let at = |share| score(Model::LowRank(model.factors()), counts.csr(), &fresh, Smoothing { share }).map(|s| s.log_likelihood);
            println!(
                "  LL {:.4} (smoothing 1e-4) {:.4} (1e-2), ARI {:?}",
                at(1e-4)?,
                at(1e-2)?,
                Overlap::of_labels(&found, &zones).adjusted_rand()
            );
        }
        Truth::Groups(groups) => println!("  ARI {:?}", Overlap::of_labels(&found, &groups).adjusted_rand()),
        Truth::Unknown => {}
    }
    Ok(())
}

/// Airports, so to speak: hubs of very different size, and every pair with a liking of its own.
fn dense(seed: u64) -> metastate::Result<metastate::Counts> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let d = 229;
    let normal = |rng: &mut Xoshiro256PlusPlus| -> f64 { (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0 };
    let size: Vec<f64> = (0..d).map(|_| (1.2 * normal(&mut rng)).exp()).collect();
    let mut triplets: Vec<(u32, u32, f64)> = Vec::new();
    for i in 0..d {
        for j in (0..d).filter(|j| *j != i) {
            triplets.push((i as u32, j as u32, size[i] * size[j] * (1.5 * normal(&mut rng)).exp()));
        }
    }
    let total: f64 = triplets.iter().map(|t| t.2).sum();
    triplets.iter_mut().for_each(|t| t.2 = (t.2 / total * 1e6).round());
    triplets.retain(|t| t.2 > 0.0);
    let csr = Csr::from_triplets(d, d, &triplets)?;
    metastate::Counts::from_csr(metastate::StateIndex::numbered(d), csr)
}
