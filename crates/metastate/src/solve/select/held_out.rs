//! How models did on the folds. Folds differ from each other far more than models do on one fold, so models are compared fold by fold.

use crate::solve::score::Score;

/// The scores of one model on all folds.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut {
    /// Score on each fold.
    pub folds: Vec<Score>,
}

impl HeldOut {
    /// Mean log-likelihood a transition.
    #[must_use]
    pub fn log_likelihood(&self) -> f64 {
        mean(self.folds.iter().map(|s| s.log_likelihood))
    }

    /// Standard error of that mean over the folds.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        standard_error(self.folds.iter().map(|s| s.log_likelihood))
    }

    /// Mean weighted squared error.
    #[must_use]
    pub fn squared_error(&self) -> f64 {
        mean(self.folds.iter().map(|s| s.squared_error))
    }

    /// By how much this is behind the other, fold by fold: mean and standard error of the differences in log-likelihood.
    #[must_use]
    pub fn behind(&self, other: &HeldOut) -> (f64, f64) {
        let differences = || other.folds.iter().zip(&self.folds).map(|(a, b)| a.log_likelihood - b.log_likelihood);
        (mean(differences()), standard_error(differences()))
    }
}

/// A rank with a prior, fitted on every fold held out in turn, and how it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Number of meta-states.
    pub rank: usize,
    /// Transitions that the prior adds to every state.
    pub prior: f64,
    /// Whether two folds were enough: after few passes far from the best rank, or with care where it was clearly behind.
    pub first_look: bool,
    /// The scores.
    pub held_out: HeldOut,
}

/// The attempt with the best mean score; of several with the same score the first.
pub(super) fn best(attempts: &[Attempt]) -> Option<&Attempt> {
    let better = |a: &Attempt, b: &Attempt| a.held_out.log_likelihood() > b.held_out.log_likelihood();
    attempts.iter().reduce(|a, b| if better(b, a) { b } else { a })
}

/// `mean_f max_a s_f(a) - max_a mean_f s_f(a)` over folds f and attempts a: what choosing anew on every fold would seem to gain. Never negative, and zero where
/// there is one attempt only, or one that is best on every fold.
pub(super) fn selection_bias<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> f64 {
    let (mut best_of_each, mut best_mean): (Vec<f64>, f64) = (Vec::new(), f64::NEG_INFINITY);
    for attempt in attempts {
        let folds = &attempt.held_out.folds;
        best_of_each.resize(folds.len(), f64::NEG_INFINITY);
        best_of_each.iter_mut().zip(folds).for_each(|(best, s)| *best = best.max(s.log_likelihood));
        best_mean = best_mean.max(attempt.held_out.log_likelihood());
    }
    if best_of_each.is_empty() { 0.0 } else { (mean(best_of_each.into_iter()) - best_mean).max(0.0) }
}

/// The first attempt that is behind the best by no more than one standard error.
pub(super) fn first_within_one_error(attempts: &[Attempt]) -> Option<&Attempt> {
    let best = best(attempts)?;
    let transitions: f64 = best.held_out.folds.iter().map(|s| s.transitions).sum();
    attempts.iter().find(|attempt| {
        let (behind, error) = attempt.held_out.behind(&best.held_out);
        // A lead that is consistent and adds up to less than one nat over all transitions is no evidence either.
        behind <= error.max(1.0 / transitions)
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(s, n), x| (s + x, n + 1));
    sum / f64::from(n)
}

/// Of the mean: `sqrt(sum (x - mean)^2 / (n - 1) / n)`.
fn standard_error(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let centre = mean(values.clone());
    let (sum, n) = values.fold((0.0, 0.0), |(s, n), x| (s + (x - centre) * (x - centre), n + 1.0));
    (sum / (n - 1.0) / n).sqrt()
}
