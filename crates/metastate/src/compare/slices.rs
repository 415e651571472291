//! Slices on held-out transitions: zones that all slices share, against zones of each slice alone, zones that ignore the slice, and one law a slice.
//!
//! All are asked the same question, where a transition leads whose origin and slice are known, on the same folds. All are fitted by likelihood from the spectral start. Number of meta-states (for
//! zones of each slice alone), prior and smoothing are those that serve a method best on the *other* folds. What smooths is one law a slice: its arrivals, with as many further ones by the arrivals of
//! all slices as there are states.

use rayon::prelude::*;

use super::SHARES;
use crate::chain::Slices;
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::fit::Data;
use crate::linalg::{Csr, Mat, thin};
use crate::solve::Factors;
use crate::solve::refit::{LikelihoodSettings, SpectralFits};

/// Priors that are tried, in transitions a state.
const PRIORS: [f64; 3] = [2.0, 10.0, 50.0];
/// Numbers of meta-states that are tried for each slice alone, besides that of the shared zones.
const RANKS: [usize; 4] = [1, 2, 4, 8];

/// How a model uses the slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceMethod {
    /// One set of zones, and where they lead in each slice.
    Shared,
    /// Zones of each slice's own.
    Alone,
    /// One set of zones that lead to the same places in all slices.
    Ignoring,
    /// One law a slice, whatever the origin.
    OneLaw,
}

impl SliceMethod {
    /// All of them.
    pub const ALL: [SliceMethod; 4] = [SliceMethod::Shared, SliceMethod::Alone, SliceMethod::Ignoring, SliceMethod::OneLaw];

    /// A short name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SliceMethod::Shared => "shared-zones",
            SliceMethod::Alone => "each-slice-alone",
            SliceMethod::Ignoring => "ignoring-the-slice",
            SliceMethod::OneLaw => "one-law-a-slice",
        }
    }
}

/// How a method did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SliceScore {
    /// Mean log-likelihood a held-out transition of each fold.
    pub folds: Vec<f64>,
    /// What is best on all folds together.
    pub rank: usize,
    /// The same of the prior.
    pub prior: f64,
    /// The same of the share of the slice's own law.
    pub smoothing: f64,
}

/// A setting and the log-likelihood a transition with each smoothing.
type TriedSetting = ((usize, f64), Vec<f64>);

/// Scores a method on folds of data with slices; `rank` is that of zones which all slices share.
pub fn score_slices(data: &Data, folds: &Folds, method: SliceMethod, rank: usize, seed: u64) -> Result<SliceScore> {
    let slices = data.slices().ok_or(Error::Empty { what: "the list of slices" })?;
    let ranks: Vec<usize> = match method {
        SliceMethod::Alone => RANKS.into_iter().filter(|r| *r < rank).chain([rank]).collect(),
        _ => vec![rank],
    };
    let settings: Vec<(usize, f64)> = match method {
        SliceMethod::OneLaw => vec![(1, 0.0)],
        _ => ranks.iter().flat_map(|&r| PRIORS.map(|p| (r, p))).collect(),
    };
    let one = |f: usize| -> Result<Vec<TriedSetting>> {
        let (training, held_out) = (folds.training(f), folds.held_out(f));
        let base = base_laws(&training, slices);
        let prepared = SpectralStarts::new(method, &training, slices, seed)?;
        settings.iter().map(|&(r, p)| Ok(((r, p), prepared.fit(r, p)?.score(&held_out, slices, &base)))).collect()
    };
    let used: Vec<usize> = (0..folds.len()).filter(|&f| folds.held_out(f).nonzeros() > 0).collect();
    let tried = used.into_iter().map(one).collect::<Result<Vec<_>>>()?;
    let at = |f: usize, k: usize| tried[f][k / SHARES.len()].1[k % SHARES.len()];
    let best = |but: Option<usize>| {
        let sum = |k: usize| (0..tried.len()).filter(|f| Some(*f) != but).map(|f| at(f, k)).sum::<f64>();
        (0..settings.len() * SHARES.len()).reduce(|a, b| if sum(b) > sum(a) { b } else { a }).unwrap_or(0)
    };
    let all = best(None);
    let (rank, prior) = settings[all / SHARES.len()];
    Ok(SliceScore { folds: (0..tried.len()).map(|f| at(f, best(Some(f)))).collect(), rank, prior, smoothing: SHARES[all % SHARES.len()] })
}

/// Zones of each slice alone, fitted to all its transitions: for each slice the states that are left in it, with their largest membership.
pub fn zones_of_each(data: &Data, rank: usize, prior: f64, seed: u64) -> Result<Vec<(Vec<usize>, Vec<u32>)>> {
    let (slices, counts) = (
        data.slices().ok_or(Error::Empty { what: "the list of slices" })?,
        data.chain().counts().ok_or(Error::Empty { what: "the counts" })?,
    );
    let SliceModel::Alone(fits) = SpectralStarts::new(SliceMethod::Alone, counts, slices, seed)?.fit(rank, prior)? else {
        return Ok(Vec::new());
    };
    let zones = |(left, x): &(Vec<bool>, Factors)| {
        let states: Vec<usize> = (0..left.len()).filter(|&i| left[i]).collect();
        let all: Vec<usize> = x.u.largest_entries().collect();
        let labels = states.iter().map(|&i| all[i] as u32).collect();
        (states, labels)
    };
    Ok(fits.iter().map(zones).collect())
}

/// For each slice the law of arrivals that smooths, one number a state.
fn base_laws(training: &Csr, slices: &Slices) -> Vec<Vec<f64>> {
    let (d, reached) = (slices.states(), training.column_sums());
    let mut all = vec![0.5; d];
    slices.columns().iter().zip(&reached).for_each(|(c, n)| all[c.1 as usize] += n);
    let total: f64 = all.iter().sum();
    (0..slices.len())
        .map(|h| {
            let mut law: Vec<f64> = all.iter().map(|n| n / total * d as f64).collect();
            slices.of(h).for_each(|c| law[slices.columns()[c].1 as usize] += reached[c]);
            let sum: f64 = law.iter().sum();
            law.iter().map(|x| x / sum).collect()
        })
        .collect()
}

/// The spectral starts, made once for all priors.
enum SpectralStarts {
    Shared(SpectralFits),
    Alone(Vec<(Vec<bool>, SpectralFits)>),
    Ignoring(SpectralFits),
    OneLaw,
}

enum SliceModel {
    /// With `p(slice | meta-state)`.
    Shared(Factors, Mat),
    /// Which states were left in the slice, and the model.
    Alone(Vec<(Vec<bool>, Factors)>),
    Ignoring(Factors),
    OneLaw,
}

impl SpectralStarts {
    fn new(method: SliceMethod, training: &Csr, slices: &Slices, seed: u64) -> Result<Self> {
        Ok(match method {
            SliceMethod::Shared => SpectralStarts::Shared(SpectralFits::new(training.clone(), seed)?),
            SliceMethod::Ignoring => SpectralStarts::Ignoring(SpectralFits::new(slices.whole_counts(training)?, seed)?),
            SliceMethod::OneLaw => SpectralStarts::OneLaw,
            SliceMethod::Alone => {
                let of = |h: usize| -> Result<(Vec<bool>, SpectralFits)> {
                    let inside = slices.of(h);
                    let own = training.triplets().filter(|t| inside.contains(&(t.1 as usize)));
                    let triplets: Vec<(u32, u32, f64)> = own.map(|(i, c, n)| (i, slices.columns()[c as usize].1, n)).collect();
                    let counts = Csr::from_triplets(slices.states(), slices.states(), &triplets)?;
                    let left = counts.row_sums().iter().map(|n| *n > 0.0).collect();
                    Ok((left, SpectralFits::new(counts, seed)?))
                };
                SpectralStarts::Alone((0..slices.len()).into_par_iter().map(of).collect::<Result<_>>()?)
            }
        })
    }

    fn fit(&self, rank: usize, prior: f64) -> Result<SliceModel> {
        let settings = LikelihoodSettings { prior, ..LikelihoodSettings::default() };
        let likelihood = |fits: &SpectralFits| -> Result<Factors> { Ok(fits.likelihood(rank, &settings)?.factors) };
        Ok(match self {
            SpectralStarts::Shared(fits) => SliceModel::Shared(likelihood(fits)?, Mat::default()),
            SpectralStarts::Ignoring(fits) => SliceModel::Ignoring(likelihood(fits)?),
            SpectralStarts::OneLaw => SliceModel::OneLaw,
            SpectralStarts::Alone(all) => {
                let one =
                    |(left, fits): &(Vec<bool>, SpectralFits)| -> Result<(Vec<bool>, Factors)> { Ok((left.clone(), likelihood(fits)?)) };
                SliceModel::Alone(all.into_par_iter().map(one).collect::<Result<_>>()?)
            }
        })
    }
}

impl SliceModel {
    /// The mean log-likelihood with each smoothing.
    fn score(mut self, held_out: &Csr, slices: &Slices, base: &[Vec<f64>]) -> Vec<f64> {
        if let SliceModel::Shared(x, when) = &mut self {
            *when = Mat::zeros(slices.len(), x.rank());
            for (c, &(h, _)) in slices.columns().iter().enumerate() {
                when.row_mut(h as usize).iter_mut().zip(x.v.row(c)).for_each(|(w, v)| *w += v);
            }
        }
        let (mut logs, mut total) = (vec![0.0; SHARES.len()], 0.0);
        for (i, c, n) in held_out.triplets() {
            let (i, c) = (i as usize, c as usize);
            let (slice, state) = (slices.columns()[c].0 as usize, slices.columns()[c].1 as usize);
            let own = base[slice][state];
            let p = match &self {
                SliceModel::Shared(x, when) => match thin::dot(x.u.row(i), when.row(slice)) {
                    often if often > 0.0 => thin::dot(x.u.row(i), x.v.row(c)) / often,
                    _ => own,
                },
                SliceModel::Ignoring(x) => thin::dot(x.u.row(i), x.v.row(state)),
                SliceModel::Alone(fits) if fits[slice].0[i] => thin::dot(fits[slice].1.u.row(i), fits[slice].1.v.row(state)),
                SliceModel::Alone(_) | SliceModel::OneLaw => own,
            };
            logs.iter_mut().zip(SHARES).for_each(|(log, e)| *log += n * ((1.0 - e) * p + e * own).ln());
            total += n;
        }
        logs.iter().map(|log| log / total).collect()
    }
}
