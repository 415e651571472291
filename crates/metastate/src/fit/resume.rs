//! What an interrupted run has left behind comes from a file, so it is checked against the data and the options before anything is computed from it. Numbers
//! that can be computed again are; what cannot be known without repeating the work (the score of a rank) must at least be possible.

use super::data::Data;
use super::observe::Unfinished;
use super::options::{FitOptions, Lambda};
use crate::error::{Error, Result};
use crate::solve::path::{LambdaPoint, lambda_grid};
use crate::solve::select::Attempt;
use crate::solve::{Factors, Problem, Snapshot, check_factors};

/// The objective at the last point, computed again from its factors, may differ by so much of itself.
const ROUNDING: f64 = 1e-9;

/// Rounds and sweeps that no run comes to.
const MOST_ROUNDS: usize = 1 << 40;

fn demand(it_is: bool, what: impl FnOnce() -> String) -> Result<()> {
    if it_is { Ok(()) } else { Err(Error::Unfinished { what: what() }) }
}

impl Unfinished {
    /// Refuses what cannot be left of this fit.
    pub(super) fn check(&self, data: &Data, options: &FitOptions, lambda_max: f64) -> Result<()> {
        let (rows, cols) = (data.chain().states(), data.chain().p().cols());
        let factors = |what: &str, x: &Factors| match check_factors(x, rows, cols) {
            Ok(()) => demand(x.rank() <= options.most().max(1), || format!("{what} have {} columns", x.rank())),
            Err(e) => Err(Error::Unfinished { what: format!("{what}: {e}") }),
        };
        self.factors.iter().try_for_each(|x| factors("the factors of the path", x))?;
        self.fold_factors.iter().flatten().try_for_each(|x| factors("the factors of a fold", x))?;
        if let Some(snapshot) = &self.snapshot {
            factors("the factors of the solve", &snapshot.factors)?;
            check_snapshot(snapshot, rows, cols)?;
        }
        if options.lambda != Lambda::Chosen {
            return demand(self.attempts.is_empty() && self.points.is_empty(), || "there is a path, and lambda was given".to_owned());
        }
        self.check_attempts(data, options)?;
        self.check_points(data, options, lambda_max)
    }

    fn check_attempts(&self, data: &Data, options: &FitOptions) -> Result<()> {
        let Some(parts) = data.parts().filter(|_| !self.attempts.is_empty()) else {
            return demand(self.attempts.is_empty(), || "there are scores, and no counts to score on".to_owned());
        };
        let folds = parts.folds(options.folds, options.seed)?;
        let held_out: Vec<f64> = (0..folds.len()).map(|f| folds.size(f)).collect();
        self.attempts.iter().try_for_each(|attempt| check_attempt(attempt, &held_out, options.most()))
    }

    fn check_points(&self, data: &Data, options: &FitOptions, lambda_max: f64) -> Result<()> {
        let Some(last) = self.points.last() else {
            return demand(self.factors.is_none() && self.fold_factors.is_empty(), || {
                "there are factors, and no point of the path".to_owned()
            });
        };
        let grid = lambda_grid(lambda_max, options.path.floor, options.path.points)?;
        demand(self.points.len() <= grid.len(), || format!("the path has {} points", self.points.len()))?;
        let whole = options.path.whole;
        for (k, (point, lambda)) in self.points.iter().zip(&grid).enumerate() {
            demand(point.lambda == *lambda, || {
                format!("point {} of the path has lambda {}, and should have {lambda}", k + 1, point.lambda)
            })?;
            demand(point.lambda_ratio == lambda / lambda_max, || format!("point {} of the path has another share of lambda_max", k + 1))?;
            demand(possible(point, data.chain().states(), options.most(), whole), || {
                format!("point {} of the path has numbers that are none", k + 1)
            })?;
        }
        demand(!whole || self.fold_factors.len() == options.folds, || format!("there are factors of {} folds", self.fold_factors.len()))?;
        let Some(factors) = &self.factors else { return demand(false, || "the factors of the last point are missing".to_owned()) };
        let found = Problem::new(data.chain().p(), data.chain().weights(), last.lambda)?.published_objective(factors);
        let same = (found.value - last.objective.value).abs() <= ROUNDING * found.value;
        demand(same && factors.rank() == last.rank, || "the factors are not those of the last point of the path".to_owned())?;
        // The solution there is an answer at every lambda, so no bound of another point lies above it.
        let worth = |p: &LambdaPoint| found.fidelity + p.lambda * found.regularizer;
        let contradicts =
            |p: &&LambdaPoint| p.certified_gap.is_some_and(|gap| p.objective.value * (1.0 - gap) > worth(p) * (1.0 + ROUNDING));
        demand(!self.points.iter().any(|p| contradicts(&p)), || "a bound on the path lies above a known solution".to_owned())
    }
}

/// Whether a solved point can look like this.
fn possible(p: &LambdaPoint, states: usize, most: usize, whole: bool) -> bool {
    let (f, e) = (&p.objective, &p.errors);
    let sum = f.fidelity + p.lambda * f.regularizer;
    let zones = p.zones.is_empty() || (p.zones.len() == states && p.zones.iter().all(|z| usize::from(*z) < p.rank));
    let scores = p.held_out.is_none_or(|s| s.log_likelihood.is_finite() && s.standard_error >= 0.0 && s.squared_error >= 0.0);
    (1..=most).contains(&p.rank)
        && f.fidelity >= 0.0
        && f.regularizer > 0.0
        && (f.value - sum).abs() <= ROUNDING * sum
        && p.certified_gap.is_none_or(|gap| gap.is_finite() && gap <= 1.0)
        && [e.rel_le1, e.rel_le2, e.ge, e.rel_dg].iter().all(|x| x.is_finite())
        && p.held_out.is_some() == whole
        && zones
        && scores
}

/// One score for each fold, over the transitions that it holds.
fn check_attempt(attempt: &Attempt, held_out: &[f64], most: usize) -> Result<()> {
    let Attempt { rank, prior, .. } = *attempt;
    demand((1..=most).contains(&rank) && prior >= 0.0 && prior.is_finite(), || {
        format!("{rank} meta-states with the prior {prior} were tried")
    })?;
    let scores = &attempt.held_out.folds;
    demand((1..=held_out.len()).contains(&scores.len()), || format!("{rank} meta-states have scores on {} folds", scores.len()))?;
    // A first look scores some of the folds only; each score is over the transitions of one of them.
    let known = |n: f64| held_out.iter().any(|h| (h - n).abs() <= ROUNDING * h);
    let fine = |s: &crate::solve::score::Score| s.log_likelihood.is_finite() && s.squared_error >= 0.0 && known(s.transitions);
    demand(scores.iter().all(fine), || format!("{rank} meta-states have a score that is none"))
}

/// Everything of the size of the problem, and all numbers finite.
fn check_snapshot(s: &Snapshot, rows: usize, cols: usize) -> Result<()> {
    let r = &s.relaxation;
    let sized = [r.a.rows(), r.b.rows(), r.mu.len()] == [rows, cols, rows]
        && r.a.cols() == r.b.cols()
        && r.a.cols() >= 1
        && r.spectrum.len() <= rows.min(cols);
    let lists = [r.a.as_slice(), r.b.as_slice(), &r.mu, &r.spectrum, &s.values, &[s.coarse]];
    let numbers = lists.iter().all(|list| list.iter().all(|x| x.is_finite()))
        && !r.spectrum.is_empty()
        && s.bound.guess().is_finite()
        && !r.value.is_nan();
    demand(s.round < MOST_ROUNDS && s.sweeps < MOST_ROUNDS, || format!("it stands at sweep {} of round {}", s.sweeps, s.round))?;
    demand(sized && numbers && s.coarse >= 0.0, || {
        "the bound of the solve is of another problem, or holds numbers that are none".to_owned()
    })
}
