//! A grid city of 2,000 cells with 8 soft zones and 100 trips a cell: the rank chosen, held-out likelihood and adjusted Rand index of
//! the refit, beside truncated SVD with k-means (hard) and EM from there, all three in one run.
//!
//! `cargo run --release -p metastate-lab --example soft_zones [seeds [trips a cell]]`

use std::time::Instant;

use metastate::aggregate::Overlap;
use metastate::simulate::soft_city;
use metastate::solve::{Factors, Problem};
use metastate::workspace::refit::{LikelihoodSettings, Observed, SpectralFits, likelihood};
use metastate::workspace::relaxation::Relaxation;
use metastate::workspace::score::{Model, Smoothing, score};
use metastate::workspace::select::{SelectSettings, select};
use metastate::workspace::start;
use metastate::{Chain, Csr, Estimate, Folds, Mat, WeightPower};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ZONES: usize = 8;

fn main() -> metastate::Result<()> {
    let argument = |k: usize, default: usize| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (seeds, trips) = (argument(1, 5), 2000 * argument(2, 100));
    let mut better = [0; 4];
    for seed in 1..=seeds as u64 {
        let city = soft_city(50, 40, ZONES, seed)?;
        let (counts, fresh) = (city.sample_counts(trips, seed)?, city.sample_counts(trips, seed + 1000)?);
        let (training, test) = (counts.csr(), fresh.csr());
        let truth = Factors { u: city.u.clone(), v: city.v.clone() };
        let told = |name: &str, x: &Factors, seconds: f64| -> metastate::Result<(f64, f64)> {
            let at = |share| score(Model::LowRank(x), training, test, Smoothing { share }).map(|s| s.log_likelihood);
            let index = Overlap::of_labels(&hard(&x.u), &city.zone()).adjusted_rand().unwrap_or(f64::NAN);
            println!(
                "  {name}: rank {}, LL {:.4} (smoothing 1e-4) {:.4} (1e-2), ARI {index:.3}, {seconds:.1} s",
                x.rank(),
                at(1e-4)?,
                at(1e-2)?
            );
            Ok((at(1e-2)?, index))
        };
        println!("seed {seed}: {} trips, {} pairs", trips, training.nonzeros());
        told("truth", &truth, 0.0)?;
        let clock = Instant::now();
        let folds = Folds::of_trips(training, 5, seed)?;
        let choice = select(&folds, &SelectSettings { max_rank: 20, ..SelectSettings::default() })?;
        let choosing = clock.elapsed().as_secs_f64();
        println!("  {} prior {}, {choosing:.1} s", choice.sentence(), choice.prior);
        let clock = Instant::now();
        let refit = LikelihoodSettings { prior: choice.prior, max_passes: 100, ..LikelihoodSettings::default() };
        let ours = SpectralFits::new(training.clone(), 0)?.likelihood(choice.rank, &refit)?.factors;
        let ours = told("ours, rank chosen", &ours, clock.elapsed().as_secs_f64())?;
        let clock = Instant::now();
        let clustered = svd_with_k_means(training, &counts, seed)?;
        let svd = told("SVD with k-means, rank given", &clustered, clock.elapsed().as_secs_f64())?;
        let plain = LikelihoodSettings { prior: 0.0, max_passes: 20, tolerance: 0.0, accelerate: false };
        let em = likelihood(&Observed::new(training.clone())?, &clustered, &plain)?.factors;
        let em = told("EM from there, 20 steps, rank given", &em, clock.elapsed().as_secs_f64())?;
        for (k, (a, b)) in [(ours.0, svd.0), (ours.1, svd.1), (ours.0, em.0), (ours.1, em.1)].into_iter().enumerate() {
            better[k] += usize::from(a >= b);
        }
    }
    println!("ours no worse in {better:?} of {seeds}: LL and ARI against SVD with k-means, LL and ARI against EM from it");
    Ok(())
}

/// The leading directions of `Xi^(1/2) P`, k-means of its rows, and the chain between the clusters.
fn svd_with_k_means(training: &Csr, counts: &metastate::Counts, seed: u64) -> metastate::Result<Factors> {
    let chain = Chain::estimate(counts, &Estimate { weight_power: WeightPower::Half, ..Estimate::default() })?;
    let problem = Problem::new(chain.p(), chain.weights(), 1.0)?;
    let x: Relaxation = start::spectral_basis(&problem, ZONES, seed);
    // Rows of X = A B^T have the distances of the rows of A when the columns of B have length one.
    let lengths: Vec<f64> = (0..ZONES).map(|l| x.b.column(l).iter().map(|b| b * b).sum::<f64>().sqrt()).collect();
    let rows = Mat::from_fn(x.a.rows(), ZONES, |i, l| x.a[(i, l)] * lengths[l]);
    let home = (0..20).map(|k| k_means(&rows, ZONES, seed + k)).min_by(|a, b| a.1.total_cmp(&b.1)).map(|b| b.0).unwrap_or_default();
    let mut v = Mat::zeros(training.rows(), ZONES);
    training.triplets().for_each(|(i, j, n)| v[(j as usize, home[i as usize])] += n);
    for k in 0..ZONES {
        let sum: f64 = v.column(k).iter().sum();
        (0..v.rows()).for_each(|j| v[(j, k)] /= sum.max(1.0));
    }
    Ok(Factors { u: Mat::from_fn(training.rows(), ZONES, |i, k| f64::from(u8::from(home[i] == k))), v })
}

/// k-means++ and Lloyd: the cluster of each row, and the sum of squared distances.
fn k_means(rows: &Mat, k: usize, seed: u64) -> (Vec<usize>, f64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    let mut centres = vec![rows.row(rng.random_range(0..rows.rows())).to_vec()];
    while centres.len() < k {
        let near: Vec<f64> = (0..rows.rows()).map(|i| centres.iter().map(|c| distance(rows.row(i), c)).fold(f64::MAX, f64::min)).collect();
        let mut at = rng.random_range(0.0..near.iter().sum::<f64>());
        let chosen = near
            .iter()
            .position(|n| {
                at < *n || {
                    at -= n;
                    false
                }
            })
            .unwrap_or(0);
        centres.push(rows.row(chosen).to_vec());
    }
    let (mut home, mut total) = (vec![0; rows.rows()], f64::MAX);
    for _ in 0..100 {
        let mut sum = 0.0;
        for i in 0..rows.rows() {
            let (best, near) =
                centres.iter().map(|c| distance(rows.row(i), c)).enumerate().fold((0, f64::MAX), |a, b| if b.1 < a.1 { b } else { a });
            home[i] = best;
            sum += near;
        }
        if sum >= total * (1.0 - 1e-9) {
            break;
        }
        total = sum;
        for (c, centre) in centres.iter_mut().enumerate() {
            let members: Vec<usize> = (0..rows.rows()).filter(|&i| home[i] == c).collect();
            if !members.is_empty() {
                (0..centre.len()).for_each(|l| centre[l] = members.iter().map(|&i| rows[(i, l)]).sum::<f64>() / members.len() as f64);
            }
        }
    }
    (home, total)
}

fn hard(u: &Mat) -> Vec<u32> {
    u.largest_entries().map(|j| j as u32).collect()
}
