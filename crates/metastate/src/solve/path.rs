//! The path: lambda on a logarithmic grid from lambda_max down, each solve started from the solution at the lambda before it, as in
//! the paper's section 6.2; and the same path on the training part of every fold, for the held-out score of the penalised solution itself.

use rayon::prelude::*;

use super::adaptive::solve;
use super::lambda_max::rank_one;
use super::observe::{Observer, Silent};
use super::problem::{Factors, Objective, Problem};
use super::score::{Model, Smoothing, score};
use super::select::HeldOut;
use super::settings::{Settings, Start, StopRule};
use super::solution::{Errors, Solution, Status};
use crate::chain::empirical::transition_matrix;
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::linalg::{Csr, SparseOperator};

/// `points` values from `largest` down to `floor * largest`, evenly spaced in their logarithm.
pub fn lambda_grid(largest: f64, floor: f64, points: usize) -> Result<Vec<f64>> {
    let wrong = |name, value: String, allowed| Err(Error::Setting { name, value, allowed });
    if !(largest > 0.0 && largest.is_finite()) {
        return wrong("the largest lambda of the path", largest.to_string(), "it must be a positive number");
    }
    if !(floor > 0.0 && floor < 1.0) {
        return wrong("the floor of the path", floor.to_string(), "it is a share of the largest lambda, above 0 and below 1");
    }
    if !(2..=10_000).contains(&points) {
        return wrong("the number of points of the path", points.to_string(), "it must be between 2 and 10000");
    }
    Ok((0..points).map(|k| largest * floor.powf(k as f64 / (points - 1) as f64)).collect())
}

/// Solves at one lambda from the solution at a larger one; from one meta-state at the first.
pub fn solve_point(problem: &Problem, settings: &Settings, before: Option<&Factors>, observer: &mut dyn Observer) -> Result<Solution> {
    let start = before.cloned().unwrap_or_else(|| rank_one(problem));
    solve(problem, &Settings { start: Start::Given(Box::new(start)), start_rank: None, ..settings.clone() }, observer)
}

/// The first point of the path, that is the largest lambda, with at least this rank; the last point if there is none.
#[must_use]
pub fn first_with_rank(ranks: &[usize], wanted: usize) -> Option<usize> {
    ranks.iter().position(|r| *r >= wanted).or(ranks.len().checked_sub(1))
}

/// One lambda of the path: what its solution is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct LambdaPoint {
    /// lambda.
    pub lambda: f64,
    /// The same as a share of lambda_max.
    pub lambda_ratio: f64,
    /// Meta-states of the solution.
    pub rank: usize,
    /// F and its two parts.
    pub objective: Objective,
    /// None where nothing was proven.
    pub certified_gap: Option<f64>,
    /// All error measures.
    pub errors: Errors,
    /// Why the solve ended.
    pub status: Status,
    /// Sweeps of the solve.
    pub sweeps: usize,
    /// Scores of the penalised solution on held-out transitions, where they were measured.
    pub held_out: Option<PointScore>,
    /// The largest membership of each state, where it was kept.
    pub zones: Vec<u16>,
}

/// Means over the folds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointScore {
    /// Log-likelihood a transition.
    pub log_likelihood: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Weighted squared error.
    pub squared_error: f64,
}

impl From<&HeldOut> for PointScore {
    fn from(h: &HeldOut) -> Self {
        PointScore { log_likelihood: h.log_likelihood(), standard_error: h.standard_error(), squared_error: h.squared_error() }
    }
}

impl LambdaPoint {
    /// Of a solution; with its zones where there are at most `most_zoned` states.
    pub fn new(s: &Solution, lambda_max: f64, held_out: Option<&HeldOut>, most_zoned: usize) -> Self {
        let u = &s.factors.u;
        let zones = if u.rows() <= most_zoned { u.largest_entries().map(|z| z as u16).collect() } else { Vec::new() };
        LambdaPoint {
            lambda: s.lambda,
            lambda_ratio: s.lambda / lambda_max,
            rank: s.rank(),
            objective: s.objective,
            certified_gap: s.certified_gap(),
            errors: s.errors,
            status: s.status,
            sweeps: s.sweeps,
            held_out: held_out.map(PointScore::from),
            zones,
        }
    }
}

/// KKT residual and gap at which the solves on folds end: a score needs no more.
const FOLD_PRECISION: (f64, f64) = (1e-3, 1e-2);

/// The paths on the training parts of all folds, one point at a time.
#[derive(Debug)]
pub struct FoldPaths<'a> {
    folds: &'a Folds,
    training: Vec<(Csr, SparseOperator)>,
    weights: &'a [f64],
    factors: Vec<Option<Factors>>,
}

impl<'a> FoldPaths<'a> {
    /// With the weights of the whole data, so that one lambda means the same on every fold.
    pub fn new(folds: &'a Folds, weights: &'a [f64]) -> Result<Self> {
        let training = (0..folds.len())
            .map(|f| {
                let counts = folds.training(f);
                let p = transition_matrix(&counts)?;
                Ok((counts, p))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(FoldPaths { folds, factors: vec![None; training.len()], training, weights })
    }

    /// The solutions at the last point, one a fold.
    #[must_use]
    pub fn factors(&self) -> &[Option<Factors>] {
        &self.factors
    }

    /// Goes on from these solutions.
    pub fn set_factors(&mut self, factors: Vec<Option<Factors>>) {
        self.factors = factors;
    }

    /// Solves on every fold at this lambda, folds in parallel, and scores what was held out.
    pub fn point(&mut self, lambda: f64, settings: &Settings, smoothing: Smoothing) -> Result<HeldOut> {
        let (folds, weights) = (self.folds, self.weights);
        let loose = Settings {
            tolerance: FOLD_PRECISION.0.max(settings.tolerance),
            stop: StopRule::Certificate { gap: FOLD_PRECISION.1 },
            ..settings.clone()
        };
        let scored = self
            .training
            .par_iter()
            .zip(self.factors.par_iter_mut())
            .enumerate()
            .map(|(f, ((counts, p), factors))| {
                let problem = Problem::new(p, weights, lambda)?;
                let x = solve_point(&problem, &loose, factors.as_ref(), &mut Silent)?.factors;
                let result = score(Model::LowRank(&x), counts, &folds.held_out(f), smoothing)?;
                *factors = Some(x);
                Ok(result)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(HeldOut { folds: scored })
    }
}
