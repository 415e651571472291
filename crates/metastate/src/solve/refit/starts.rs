//! The likelihood refit from more than one start. L has many maxima, and expectation and maximisation climb the one they start under: so
//! the refit runs from the factors given and from the spectral start of the same rank, and the higher of the two is kept.

use super::likelihood::{Likelihood, LikelihoodSettings, likelihood_watched, prior_mass};
use super::{Observed, SpectralFits};
use crate::error::Result;
use crate::solve::bootstrap::matching;
use crate::solve::problem::Factors;

/// Where a refit started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefitStart {
    /// The factors given.
    Given,
    /// The spectral start on the counts: see [`SpectralFits`].
    Spectral,
}

/// One of the refits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Where it started.
    pub start: RefitStart,
    /// `sum n_ij ln p_ij / n` at the end.
    pub log_likelihood: f64,
    /// What the refits are compared by. The prior's shares `a_k` come from each start, and L holds `c sum_ik a_k ln u_ik`, whose highest
    /// value, `c d sum_k a_k ln a_k`, depends on them; so that is taken off: what is left is the log-likelihood less
    /// `c sum_i KL(a | u_i) + c d sum_k a_k KL(m | v_k)`, over n and but for a constant that all starts share.
    pub comparable: f64,
}

/// The best refit.
#[derive(Debug, Clone, PartialEq)]
pub struct BestRefit {
    /// It; columns in the order of the factors given, as well as they match.
    pub fit: Likelihood,
    /// Where it started.
    pub start: RefitStart,
    /// All that were tried.
    pub tried: Vec<Tried>,
}

/// Refits from both starts. `watch(passes, L / n)` is told of every pass of each and may end that one by returning false.
pub fn likelihood_best_start(
    observed: &Observed,
    given: &Factors,
    settings: &LikelihoodSettings,
    seed: u64,
    mut watch: impl FnMut(usize, f64) -> bool,
) -> Result<BestRefit> {
    let mut refit = |start: RefitStart, x: &Factors| -> Result<(Likelihood, Tried)> {
        let fit = likelihood_watched(observed, x, settings, &mut watch)?;
        let highest: f64 = prior_mass(observed, x).iter().map(|a| a * a.ln()).sum();
        let comparable = fit.penalised - settings.prior * observed.states() as f64 * highest / observed.transitions();
        let tried = Tried { start, log_likelihood: fit.log_likelihood, comparable };
        Ok((fit, tried))
    };
    let (fit, first) = refit(RefitStart::Given, given)?;
    let mut best = BestRefit { fit, start: RefitStart::Given, tried: vec![first] };
    let rank = given.rank();
    if rank < 2 {
        return Ok(best);
    }
    let spectral = SpectralFits::new(observed.counts().clone(), rank, seed)?.near(rank)?;
    // Data with fewer directions than the factors have columns: there is no such start.
    if spectral.rank() != rank {
        return Ok(best);
    }
    let (mut fit, second) = refit(RefitStart::Spectral, &spectral)?;
    best.tried.push(second);
    if second.comparable > first.comparable {
        let order = matching(&given.u, &fit.factors.u, observed.departure_shares());
        fit.factors = Factors { u: fit.factors.u.select_columns(&order), v: fit.factors.v.select_columns(&order) };
        (best.fit, best.start) = (fit, RefitStart::Spectral);
    }
    Ok(best)
}
