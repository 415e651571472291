//! A discretised trajectory against the experts' lumping: refits at a given rank from the penalised solution, from the spectral start
//! and from random starts, SVD with k-means and reversible spectral memberships, and the rank chosen on blocks of frames.
//!
//! `cargo run --release -p metastate-lab --example hp35 micro.npy macro.npy [lag [rank [chosen]]]`; the arrays hold one integer a
//! frame. With a third word the rank is chosen as well.

use std::time::Instant;

use metastate::aggregate::Overlap;
use metastate::aggregate::rivals::{self, Rival, RivalSettings, Training};
use metastate::solve::{Factors, Problem, Settings, Silent, StopRule, lambda_max, solve};
use metastate::workspace::folds::count_blocks;
use metastate::workspace::refit::{LikelihoodSettings, Observed, SpectralFits, likelihood};
use metastate::workspace::score::{Model, Smoothing, score};
use metastate::workspace::select::{SelectSettings, select, select_prior};
use metastate::workspace::start;
use metastate::{Chain, CountMode, Counts, Estimate, Folds, Mat, StateIndex, WeightPower};

fn numbers(path: &str) -> std::io::Result<Vec<i64>> {
    npyz::NpyFile::new(std::io::BufReader::new(std::fs::File::open(path)?))?.into_vec()
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(micro), Some(expert)) = (arguments.first(), arguments.get(1)) else { return Err("two .npy files are needed".into()) };
    let number = |k: usize, default: usize| arguments.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (lag, rank) = (number(2, 50), number(3, 12));
    let protein = Protein::read(micro, expert, lag)?;

    let blocks = count_blocks(&protein.frames, protein.states(), lag, CountMode::Sliding, 60)?;
    let folds = Folds::of_blocks(&blocks, 5)?;
    let clock = Instant::now();
    let (prior, tried) = select_prior(&folds, rank, &SelectSettings::default())?;
    println!(
        "prior {prior} at rank {rank} ({:.0} s): {:?}",
        clock.elapsed().as_secs_f64(),
        tried.iter().map(|p| (p.prior, p.held_out.log_likelihood())).collect::<Vec<_>>()
    );
    let refit = LikelihoodSettings { prior, ..LikelihoodSettings::default() };
    for power in [WeightPower::One, WeightPower::Half] {
        protein.penalised(power, rank, &refit)?;
    }
    protein.other_starts(rank, &refit)?;
    protein.rivals(rank)?;
    if arguments.len() > 4 {
        protein.with_chosen_rank(&folds, &refit)?;
    }
    Ok(())
}

/// Frames of a simulation, and the experts' word for each.
struct Protein {
    frames: Vec<u32>,
    expert: Vec<i64>,
    counts: Counts,
}

impl Protein {
    fn read(micro: &str, expert: &str, lag: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let (micro, expert) = (numbers(micro)?, numbers(expert)?);
        let mut names = micro.clone();
        names.sort_unstable();
        names.dedup();
        let frames: Vec<u32> = micro.iter().map(|m| names.binary_search(m).unwrap_or(0) as u32).collect();
        let whole: Vec<Option<u32>> = frames.iter().map(|f| Some(*f)).collect();
        let counts = Counts::from_trajectories(StateIndex::numbered(names.len()), [&whole], lag, CountMode::Sliding)?;
        println!("{} frames, {} states, {} transitions at lag {lag}", frames.len(), names.len(), counts.transitions());
        Ok(Protein { frames, expert, counts })
    }

    fn states(&self) -> usize {
        self.counts.index().len()
    }

    /// How far a model agrees with the experts, and the second eigenvalue of its chain.
    fn report(&self, name: &str, x: &Factors, clock: Instant) {
        let hard: Vec<u32> = x.u.largest_entries().map(|j| j as u32).collect();
        // The experts' numbers are names only, so it does not matter how a negative one is written.
        let overlap = Overlap::new(self.frames.iter().zip(&self.expert).map(|(f, e)| (hard[*f as usize], *e as u32, 1.0)));
        println!(
            "{name}: rank {}, ARI per frame {:.3}, second eigenvalue {:.4}, {:.1} s",
            x.rank(),
            overlap.adjusted_rand().unwrap_or(f64::NAN),
            second_eigenvalue(x),
            clock.elapsed().as_secs_f64()
        );
    }

    /// The penalised solution, and the refit that starts from it.
    fn penalised(&self, power: WeightPower, rank: usize, refit: &LikelihoodSettings) -> Done {
        let chain = Chain::estimate(&self.counts, &Estimate { weight_power: power, ..Estimate::default() })?;
        if chain.states() != self.states() {
            return Err("a state is never left; cut the trajectory".into());
        }
        let observed = Observed::new(self.counts.csr().clone())?;
        let clock = Instant::now();
        let lambda = 1e-3 * lambda_max(chain.p(), chain.weights(), 0)?;
        let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
        let settings = Settings {
            max_rank: rank,
            start_rank: Some(rank),
            stop: StopRule::Certificate { gap: 1e-2 },
            tolerance: 1e-4,
            ..Settings::default()
        };
        let solution = solve(&problem, &settings, &mut Silent)?;
        self.report(&format!("penalised, weights xi^{}", power.exponent()), &solution.factors, clock);
        let fit = likelihood(&observed, &solution.factors, refit)?;
        self.report(&format!("  likelihood refit ({:.4} a transition, {} passes)", fit.log_likelihood, fit.passes), &fit.factors, clock);
        Ok(())
    }

    /// Refits from the spectral start, and from random ones.
    fn other_starts(&self, rank: usize, refit: &LikelihoodSettings) -> Done {
        let fits = SpectralFits::new(self.counts.csr().clone(), 0)?;
        let clock = Instant::now();
        let fit = fits.likelihood(rank, refit)?;
        let how = format!("({:.4} a transition, {} passes)", fit.log_likelihood, fit.passes);
        self.report(&format!("spectral start, likelihood {how}"), &fit.factors, clock);
        let observed = Observed::new(self.counts.csr().clone())?;
        let chain = Chain::estimate(&self.counts, &Estimate::default())?;
        let problem = Problem::new(chain.p(), chain.weights(), 1.0)?;
        for seed in 0..3 {
            let clock = Instant::now();
            let fit = likelihood(&observed, &start::random(&problem, rank, seed), refit)?;
            let how = format!("({:.4} a transition, {} passes)", fit.log_likelihood, fit.passes);
            self.report(&format!("random start {seed}, likelihood {how}"), &fit.factors, clock);
        }
        Ok(())
    }

    /// SVD with k-means, and reversible spectral memberships.
    fn rivals(&self, rank: usize) -> Done {
        let chain = Chain::estimate(&self.counts, &Estimate::default())?;
        let training = Training::new(&chain.with_weight_power(WeightPower::Half))?;
        let given = RivalSettings { rank, seed: 0 };
        for rival in [Rival::SvdPartition, Rival::Reversible] {
            let clock = Instant::now();
            let fitted = rivals::fit(rival, &training, &given)?;
            if let Some(x) = fitted.factors() {
                let value = score(Model::LowRank(x), self.counts.csr(), self.counts.csr(), Smoothing::default())?.log_likelihood;
                self.report(&format!("{} ({value:.4} a transition)", rival.name()), x, clock);
            }
        }
        Ok(())
    }

    /// The rank chosen on blocks of frames.
    fn with_chosen_rank(&self, folds: &Folds, refit: &LikelihoodSettings) -> Done {
        let clock = Instant::now();
        let choice = select(folds, &SelectSettings { max_rank: 40, ..SelectSettings::default() })?;
        println!("{} prior {} ({:.0} s)", choice.sentence(), choice.prior, clock.elapsed().as_secs_f64());
        for r in &choice.ranks {
            println!("  rank {}: held-out {:.5} ± {:.5}", r.rank, r.held_out.log_likelihood(), r.held_out.standard_error());
        }
        let fits = SpectralFits::new(self.counts.csr().clone(), 0)?;
        let fit = fits.likelihood(choice.rank, &LikelihoodSettings { prior: choice.prior, ..*refit })?;
        self.report(&format!("chosen rank, likelihood ({:.4} a transition)", fit.log_likelihood), &fit.factors, clock);
        Ok(())
    }
}

/// Of `K = V^T U`, by iteration on what is orthogonal to the constant vector from the left.
fn second_eigenvalue(x: &Factors) -> f64 {
    let s = x.rank();
    let k = Mat::from_fn(s, s, |a, b| (0..x.u.rows()).map(|i| x.v[(i, a)] * x.u[(i, b)]).sum());
    let left = |p: &[f64]| (0..s).map(|b| (0..s).map(|a| p[a] * k[(a, b)]).sum()).collect::<Vec<f64>>();
    // Rows of K sum to one, so a row vector that sums to zero keeps doing so.
    let mut p: Vec<f64> = (0..s).map(|a| ((a * a + 1) as f64).sin()).collect();
    let mut value = 0.0;
    for _ in 0..2000 {
        let mean = p.iter().sum::<f64>() / s as f64;
        p.iter_mut().for_each(|x| *x -= mean);
        let length = p.iter().map(|x| x * x).sum::<f64>().sqrt();
        p.iter_mut().for_each(|x| *x /= length);
        let next = left(&p);
        value = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        p = next;
    }
    value
}
