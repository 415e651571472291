//! Between the counts and the model: each row of counts shrunk towards its row of `U V^T`, `(n_ij + c x_ij) / (n_i + c)`. A state that was left often then follows its own counts, and a rare one its
//! meta-states; c, in transitions, is the number of departures at which both weigh the same, and is chosen on held-out transitions.

use rayon::prelude::*;

use super::{Judged, at_strengths, best_strength};
use crate::aggregate::rivals::FittedModel;
use crate::error::{Error, Result};
use crate::fit::Data;
use crate::linalg::{Csr, thin};
use crate::solve::Factors;
use crate::solve::refit::{LikelihoodSettings, SpectralFits};
use crate::solve::score::Score;
use crate::solve::select::HeldOut;

/// How strongly the counts are shrunk, and the scores on held-out transitions with and without it.
///
/// ```
/// use metastate::compare::Blend;
/// use metastate::{Counts, Data, Estimate, StateIndex};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let blend = Blend::choose(&data, 2, 1.0, 5, 0)?;
/// let (ahead, error) = blend.ahead();
/// assert!(blend.pseudo > 0.0 && ahead.is_finite() && error >= 0.0);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Blend {
    /// c.
    pub pseudo: f64,
    /// The blend.
    pub blend: HeldOut,
    /// The model alone, with the smoothing that serves it best.
    pub model: HeldOut,
    /// The counts alone, shrunk towards the marginal law as serves them best.
    pub counts: HeldOut,
}

impl Blend {
    /// Chooses c for a model fitted by likelihood at this rank and prior, on folds as `fit` makes them. On each fold c is that which is best on the others.
    pub fn choose(data: &Data, rank: usize, prior: f64, folds: usize, seed: u64) -> Result<Blend> {
        let folds = data.parts().ok_or(Error::Empty { what: "the list of transitions" })?.folds(folds, seed)?;
        let settings = LikelihoodSettings { prior, ..LikelihoodSettings::default() };
        let one = |f: usize| -> Result<Vec<Vec<(f64, Score)>>> {
            let (training, held_out) = (folds.training(f), folds.held_out(f));
            let x = SpectralFits::new(training.clone(), seed)?.likelihood(rank, &settings)?.factors;
            let models = [FittedModel::Blend(x.clone()), FittedModel::Factors(x), FittedModel::Empirical];
            models.iter().map(|model| at_strengths(model, &training, &held_out, None)).collect()
        };
        let used = (0..folds.len()).filter(|&f| folds.held_out(f).nonzeros() > 0).collect::<Vec<_>>();
        let scores = used.into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
        let of = |k: usize| Judged::of(&scores.iter().map(|s| s[k].clone()).collect::<Vec<_>>());
        let (blend, model, counts) = (of(0)?, of(1)?, of(2)?);
        Ok(Blend { pseudo: blend.smoothing, blend: blend.held_out, model: model.held_out, counts: counts.held_out })
    }

    /// By how much it is ahead of the better of the two a transition, with the standard error of the mean over the folds.
    #[must_use]
    pub fn ahead(&self) -> (f64, f64) {
        let better = if self.model.log_likelihood() >= self.counts.log_likelihood() { &self.model } else { &self.counts };
        better.behind(&self.blend)
    }

    /// The law of the next state from a law over states: `sum_i a_i (n_ij + c x_ij) / (n_i + c)`.
    pub fn step(&self, counts: &Csr, x: &Factors, law: &[f64]) -> Result<Vec<f64>> {
        let (m, n) = (counts.rows(), counts.cols());
        for (what, expected, found) in [("the law", m, law.len()), ("U", m, x.u.rows()), ("V", n, x.v.rows())] {
            if found != expected {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        let (mut next, mut latent) = (vec![0.0; n], vec![0.0; x.rank()]);
        for (i, &share) in law.iter().enumerate().filter(|(_, a)| **a > 0.0) {
            let (columns, seen) = counts.row(i);
            let all = self.pseudo + seen.iter().sum::<f64>();
            // Without counts and pseudo-counts the model alone speaks.
            let (of_counts, of_model) = if all > 0.0 { (share / all, share * self.pseudo / all) } else { (0.0, share) };
            columns.iter().zip(seen).for_each(|(&j, n)| next[j as usize] += of_counts * n);
            latent.iter_mut().zip(x.u.row(i)).for_each(|(s, u)| *s += of_model * u);
        }
        next.iter_mut().enumerate().for_each(|(j, p)| *p += thin::dot(&latent, x.v.row(j)));
        Ok(next)
    }
}

impl Judged {
    /// From the scores of each fold with each smoothing.
    pub(super) fn of(folds: &[Vec<(f64, Score)>]) -> Result<Judged> {
        let all = best_strength(folds, None).ok_or(Error::Empty { what: "the held-out part" })?;
        let scores = (0..folds.len()).map(|f| folds[f][best_strength(folds, Some(f)).unwrap_or(all)].1).collect();
        Ok(Judged { held_out: HeldOut { folds: scores }, smoothing: folds[0][all].0 })
    }
}
