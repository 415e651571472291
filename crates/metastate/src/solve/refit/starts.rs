//! The likelihood refit from more than one start. L has many maxima, and expectation and maximisation climb the one they start under: so
//! the refit runs from the spectral start and from the factors given, and the higher of the two is kept. Passes gain less and less, so the second is
//! given up when what it gains a pass cannot bring it level in the passes that are left: at 100,000 states it crept for over 170 passes where the
//! first needed 19. Factors of another rank than wanted are no start: where no lambda gives the rank that the data support, the spectral one stands alone.

use super::likelihood::{Likelihood, LikelihoodSettings, likelihood_watched, prior_mass};
use super::{Observed, SpectralFits};
use crate::error::{Error, Result};
use crate::linalg::assignment::matching;
use crate::solve::problem::Factors;

/// Where a refit started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefitStart {
    /// The factors given.
    Given,
    /// The spectral start on the counts: see [`SpectralFits`].
    Spectral,
}

/// Passes before a refit may be given up, and those over which its gain is measured: two extrapolated pairs.
const FIRST_PASSES: usize = 30;
const GAIN_OVER: usize = 4;

/// One of the refits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StartOutcome {
    /// Where it started.
    pub start: RefitStart,
    /// `sum n_ij ln p_ij / n` at the end, or where it was given up.
    pub log_likelihood: f64,
    /// What the refits are compared by. The prior's shares `a_k` come from each start, and L holds `c sum_ik a_k ln u_ik`, whose highest
    /// value, `c d sum_k a_k ln a_k`, depends on them; so that is taken off: what is left is the log-likelihood less
    /// `c sum_i KL(a | u_i) + c d sum_k a_k KL(m | v_k)`, over n and but for a constant that all starts share.
    pub comparable: f64,
}

/// The best refit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BestRefit {
    /// It; columns in the order of the factors given, as well as they match, or by mass where the ranks differ.
    pub fit: Likelihood,
    /// Where it started.
    pub start: RefitStart,
    /// All that were tried, the factors given first.
    pub tried: Vec<StartOutcome>,
}

/// Where a refit may start.
#[derive(Debug, Clone)]
pub struct Starts<'a> {
    /// The rank wanted.
    pub rank: usize,
    /// Factors that are known; no start where they have another rank.
    pub given: &'a Factors,
    /// The spectral start at that rank; made where it is not known.
    pub spectral: Option<Factors>,
    /// Seed of the spectral start.
    pub seed: u64,
}

impl<'a> Starts<'a> {
    /// These factors, and the spectral start of this rank.
    #[must_use]
    pub fn new(given: &'a Factors, rank: usize, seed: u64) -> Self {
        Starts { rank, given, spectral: None, seed }
    }
}

/// Refits from both starts. `watch(passes, L / n)` is told of every pass of each and may end that one by returning false.
pub fn likelihood_best_start(
    observed: &Observed,
    starts: Starts,
    settings: &LikelihoodSettings,
    mut watch: impl FnMut(usize, f64) -> bool,
) -> Result<BestRefit> {
    let Starts { rank, given, spectral, seed } = starts;
    let is_a_start = given.rank() == rank;
    let spectral = match (spectral, rank) {
        // One law for all: there is nothing else to start from.
        (_, 0 | 1) if is_a_start => None,
        (Some(known), _) => Some(known),
        (None, _) => Some(SpectralFits::of_observed(observed.clone(), seed).near(rank)?),
    };
    let starts = [
        // Data with fewer directions than wanted have no such start.
        (RefitStart::Spectral, spectral.as_ref().filter(|x| x.rank() == rank || !is_a_start)),
        (RefitStart::Given, Some(given).filter(|_| is_a_start)),
    ];
    let mut best: Option<(Likelihood, StartOutcome)> = None;
    let mut tried = Vec::new();
    for (start, x) in starts.into_iter().filter_map(|(start, x)| Some((start, x?))) {
        let highest: f64 = prior_mass(observed, x).iter().map(|a| a * a.ln()).sum();
        let comparable = |penalised: f64| penalised - settings.prior * observed.rows() as f64 * highest / observed.transitions();
        let to_reach = best.as_ref().map_or(f64::NEG_INFINITY, |(_, before)| before.comparable);
        let mut values: Vec<f64> = Vec::new();
        let fit = likelihood_watched(observed, x, settings, |passes, value| {
            values.push(value);
            let gain = value - values[values.len().saturating_sub(1 + GAIN_OVER)];
            let left = settings.max_passes.saturating_sub(passes) as f64 / GAIN_OVER as f64;
            watch(passes, value) && (passes < FIRST_PASSES || comparable(value) + left * gain >= to_reach)
        })?;
        let this = StartOutcome { start, log_likelihood: fit.log_likelihood, comparable: comparable(fit.penalised) };
        tried.insert(0, this);
        // Where both starts end at the same value, the fit from the factors given is kept.
        if this.comparable >= to_reach {
            best = Some((fit, this));
        }
    }
    let (mut fit, StartOutcome { start, .. }) = best.ok_or(Error::Empty { what: "the list of starts" })?;
    if !is_a_start {
        fit.reorder(&fit.factors.by_mass(observed.departure_shares()));
    } else if start == RefitStart::Spectral {
        fit.reorder(&matching(&given.u, &fit.factors.u, observed.departure_shares()));
    }
    Ok(BestRefit { fit, start, tried })
}
