//! How often the stated 90 % intervals hold the truth: planted chains, fitted as `metastate fit` does at the true rank (prior chosen on the
//! folds, likelihood refit), meta-states matched to the truth. Memberships over all, those that are 0 or 1 in truth, those in between, the
//! published value; then the latent chain: entries of K, its stationary law, timescales.
//!
//! `cargo run --release -p metastate-lab --example coverage [seeds [draws [structure|all [blocks]]]]`; with `blocks`, 60 parts of the data are resampled instead

use std::time::Instant;

use metastate::LowRankOperator;
use metastate::aggregate::latent::timescale_intervals;
use metastate::simulate::{Planted, planted, soft_city};
use metastate::solve::Factors;
use metastate::workspace::assignment::cheapest_assignment;
use metastate::workspace::bootstrap::{BootstrapSettings, LatentDraws, Resample, bootstrap};
use metastate::workspace::refit::{LikelihoodSettings, SpectralFits};
use metastate::workspace::select::{SelectSettings, select_prior};
use metastate::{Csr, Folds, Mat};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

const CONFIDENCE: f64 = 0.9;
const STRUCTURES: [&str; 6] = ["groups", "uneven groups", "sparse", "determined", "soft city", "paper"];
const PER_STATE: [usize; 4] = [20, 60, 200, 1000];

/// Hits and tries of one kind of quantity.
#[derive(Clone, Copy, Default)]
struct Share {
    hits: f64,
    tries: f64,
    width: f64,
}

impl Share {
    fn add(&mut self, truth: f64, (low, high): (f64, f64)) {
        self.tries += 1.0;
        // A truth at the border is met by an interval that ends there, but for rounding.
        self.hits += f64::from(u8::from(low - 1e-9 <= truth && truth <= high + 1e-9));
        self.width += high - low;
    }

    fn plus(&mut self, other: &Share) {
        self.hits += other.hits;
        self.tries += other.tries;
        self.width += other.width;
    }

    fn told(&self) -> String {
        if self.tries == 0.0 { "    -".into() } else { format!("{:5.1}", 100.0 * self.hits / self.tries) }
    }
}

const KINDS: [&str; 9] = ["all", "at 0/1", "between", "planted at 0/1", "published", "as planted", "as planted at 0/1", "times", "K"];
type Shares = [Share; 9];

fn main() -> metastate::Result<()> {
    let argument = |k: usize, default: usize| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (seeds, draws) = (argument(1, 11), argument(2, 50));
    let only = std::env::args().nth(3);
    println!("structure, transitions a state, data sets: coverage in % of {}; mean width; seconds a bootstrap", KINDS.join(", "));
    let (mut total, mut sets) = (Shares::default(), 0);
    for (number, structure) in STRUCTURES.into_iter().enumerate().filter(|(_, s)| only.as_ref().is_none_or(|o| o == s || o == "all")) {
        for per_state in PER_STATE {
            let (mut shares, mut seconds) = (Shares::default(), 0.0);
            for seed in 0..seeds {
                seconds += one(number, per_state, (1000 * number + seed) as u64, draws, &mut shares)?;
            }
            tell(&format!("{structure:14} {per_state:5} {seeds:4}"), &shares, seconds / seeds as f64);
            total.iter_mut().zip(&shares).for_each(|(t, s)| t.plus(s));
            sets += seeds;
        }
    }
    tell(&format!("all {sets}"), &total, 0.0);
    Ok(())
}

fn tell(name: &str, shares: &Shares, seconds: f64) {
    let told: Vec<String> = shares.iter().map(Share::told).collect();
    println!(
        "{name}: {}; width {:.3} (at 0/1 {:.3}); {seconds:.2} s",
        told.join(" "),
        shares[0].width / shares[0].tries,
        shares[1].width / shares[1].tries.max(1.0)
    );
}

/// One data set; the seconds of its bootstrap.
fn one(structure: usize, per_state: usize, seed: u64, draws: usize, shares: &mut Shares) -> metastate::Result<f64> {
    let (truth, counts) = drawn(structure, per_state, seed)?;
    let rank = truth.rank();
    let folds = Folds::of_trips(&counts, 5, seed)?;
    let prior = select_prior(&folds, rank, &SelectSettings::default())?.0;
    let refit = LikelihoodSettings { prior, ..LikelihoodSettings::default() };
    let x = SpectralFits::new(counts.clone(), seed)?.likelihood(rank, &refit)?.factors;
    let x = matched(&truth, x, &counts);
    let settings = BootstrapSettings {
        replicates: draws,
        confidence: CONFIDENCE,
        refit: LikelihoodSettings { max_passes: 60, tolerance: 1e-7, ..refit },
        seed,
    };
    let clock = Instant::now();
    let found = if std::env::args().nth(4).is_some() {
        let parts = Folds::of_trips(&counts, 60, seed)?;
        let blocks: Vec<Csr> = (0..60).map(|f| parts.held_out(f)).collect();
        bootstrap(Resample::Blocks(&blocks), &x, &settings, || true)?
    } else {
        bootstrap(Resample::Trips(&counts), &x, &settings, || true)?
    };
    let seconds = clock.elapsed().as_secs_f64();
    for i in 0..truth.u.rows() {
        let target = target(&truth, &x, i);
        for k in 0..rank {
            let (planted, target, ends) = (truth.u[(i, k)], target[k], (found.lower[(i, k)], found.upper[(i, k)]));
            // A membership below a thousandth is as good as none: the interval must hold it all the same.
            let sparse = |t: f64| !(1e-3..=1.0 - 1e-3).contains(&t);
            shares[0].add(target, ends);
            shares[if sparse(target) { 1 } else { 2 }].add(target, ends);
            if sparse(planted) {
                shares[3].add(target, ends);
                shares[6].add(planted, ends);
            }
            shares[4].add(x.u[(i, k)], ends);
            shares[5].add(planted, ends);
        }
    }
    let true_k = latent(&truth);
    let times = timescales(&true_k);
    let draws = found.latent.as_ref().ok_or(metastate::Error::DoesNotGoOn)?;
    for (t, ends) in times.iter().zip(timescale_intervals(draws, CONFIDENCE)) {
        shares[7].add(*t, ends);
    }
    for (a, b) in (0..rank).flat_map(|a| (0..rank).map(move |b| (a, b))) {
        shares[8].add(true_k[(a, b)], draws.interval(|k| k[(a, b)], CONFIDENCE));
    }
    Ok(seconds)
}

/// V^T U.
fn latent(x: &Factors) -> Mat {
    Mat::from_fn(x.rank(), x.rank(), |a, b| (0..x.u.rows()).map(|i| x.v[(i, a)] * x.u[(i, b)]).sum())
}

fn timescales(k: &Mat) -> Vec<f64> {
    let same = LatentDraws { published: k.clone(), truth: k.clone(), drawn: vec![k.clone(); 2] };
    timescale_intervals(&same, CONFIDENCE).into_iter().map(|t| t.0).collect()
}

/// What endlessly many transitions out of state i would give in the meta-states of the fit: `argmax_u sum_j p_ij ln (V u)_j`, from the planted memberships on.
fn target(truth: &Factors, x: &Factors, i: usize) -> Vec<f64> {
    let (d, s) = (truth.u.rows(), truth.rank());
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let law: Vec<f64> = (0..d).map(|j| dot(truth.u.row(i), truth.v.row(j))).collect();
    let mut u: Vec<f64> = truth.u.row(i).iter().map(|u| 0.99 * u + 0.01 / s as f64).collect();
    for _ in 0..1000 {
        let mut next = vec![0.0; s];
        for j in 0..d {
            let factor = law[j] / dot(&u, x.v.row(j));
            next.iter_mut().zip(x.v.row(j)).for_each(|(n, v)| *n += factor * v);
        }
        u.iter_mut().zip(next).for_each(|(u, n)| *u *= n);
    }
    u
}

/// The columns in the order of the truth's.
fn matched(truth: &Factors, x: Factors, counts: &Csr) -> Factors {
    let s = truth.rank();
    let weight: Vec<f64> = (0..counts.rows()).map(|i| counts.row(i).1.iter().sum()).collect();
    let order = cheapest_assignment(s, |k, l| -(0..counts.rows()).map(|i| weight[i] * truth.u[(i, k)] * x.u[(i, l)]).sum::<f64>());
    Factors { u: x.u.select_columns(&order), v: x.v.select_columns(&order) }
}

/// A truth and counts from it.
fn drawn(structure: usize, per_state: usize, seed: u64) -> metastate::Result<(Factors, Csr)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(77 + seed);
    let r = 3 + (seed % 4) as usize;
    let d = [60, 100, 150, 200][rng.random_range(0..4)];
    if STRUCTURES[structure] == "soft city" {
        let city = soft_city(15, d / 15, r, seed)?;
        let counts = city.sample_counts(per_state * city.u.rows(), seed)?;
        return Ok((Factors { u: city.u, v: city.v }, counts.csr().clone()));
    }
    let chain = match STRUCTURES[structure] {
        "paper" => planted(d, r, seed)?,
        name => groups(d, r, name, &mut rng)?,
    };
    let counts = chain.sample_counts((per_state * d) as u64, seed)?;
    Ok((Factors { u: chain.u, v: chain.v }, counts.csr().clone()))
}

/// Every state belongs to one group, or (sparse, determined) half of them to two or three; a group is left with probability 0.2 to 0.6. In a determined chain every
/// other state is reached from its own group alone, so that U and V are the only factors of their product.
fn groups(d: usize, r: usize, name: &str, rng: &mut Xoshiro256PlusPlus) -> metastate::Result<Planted> {
    let (uneven, mixed) = (name == "uneven groups", name == "sparse" || name == "determined");
    let inner = |j: usize| name == "determined" && (j / r).is_multiple_of(2);
    let exponential = |rng: &mut Xoshiro256PlusPlus| -> f64 { Exp1.sample(rng) };
    let sigma = if uneven { 1.0 } else { 0.4 };
    let size: Vec<f64> = (0..r).map(|k| if uneven { 0.6f64.powi(k as i32) } else { 1.0 }).collect();
    let home: Vec<usize> = (0..d)
        .map(|i| {
            let mut at = rng.random_range(0.0..size.iter().sum::<f64>());
            let drawn = size
                .iter()
                .position(|s| {
                    at -= s;
                    at < 0.0
                })
                .unwrap_or(r - 1);
            if i < 4 * r { i % r } else { drawn }
        })
        .collect();
    let mut u = Mat::zeros(d, r);
    for i in 0..d {
        u[(i, home[i])] = 1.0;
        if mixed && i >= 4 * r && rng.random_range(0.0..1.0) < 0.5 {
            for _ in 0..rng.random_range(1..3) {
                u[(i, rng.random_range(0..r))] += exponential(rng);
            }
        }
        let sum: f64 = u.row(i).iter().sum();
        u.row_mut(i).iter_mut().for_each(|x| *x /= sum);
    }
    let busy: Vec<f64> = (0..d)
        .map(|_| {
            let z: f64 = StandardNormal.sample(rng);
            (sigma * z).exp()
        })
        .collect();
    let within: Vec<f64> = (0..r).map(|k| (0..d).filter(|&j| home[j] == k).map(|j| busy[j]).sum()).collect();
    let border: Vec<f64> = (0..r).map(|k| (0..d).filter(|&j| home[j] == k && !inner(j)).map(|j| busy[j]).sum()).collect();
    let mut v = Mat::zeros(d, r);
    for k in 0..r {
        let stay = rng.random_range(0.4..0.8);
        let mut flow: Vec<f64> = (0..r).map(|_| exponential(rng)).collect();
        flow[k] = 0.0;
        let away: f64 = flow.iter().sum();
        for j in 0..d {
            v[(j, k)] = match home[j] {
                here if here == k => stay * busy[j] / within[here],
                _ if inner(j) => 0.0,
                there => (1.0 - stay) * flow[there] / away * busy[j] / border[there],
            };
        }
    }
    let operator = LowRankOperator::new(u.clone(), v.clone())?;
    let xi = metastate::workspace::stationary_law(&operator, &metastate::workspace::StationaryOptions::default()).xi;
    Ok(Planted { u, v, xi })
}
