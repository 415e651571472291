//! What steers the solver: guesses at a lower bound, from a few Lanczos steps. Nothing is proven here, so a [`Steering`] is a type of
//! its own with no way into a result; what a result may say comes from [`crate::proof`].

use super::problem::Problem;
use super::relaxation::Relaxation;
use crate::linalg::Mat;
use crate::proof::leading::{Explored, Leading, NEAR_ONE};
use crate::proof::point::DualPoint;
use crate::proof::value;

/// Lanczos steps of one look.
const STEPS: usize = 24;

/// Singular values above 1 by more than this are above it in truth, and not by rounding.
const ABOVE_ONE: f64 = 1e-9;

/// A guess at a lower bound of the optimum: good enough to decide what to do next.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Steering(f64);

impl Steering {
    /// A guess; zero is the one that is always right.
    #[must_use]
    pub fn new(guess: f64) -> Self {
        Steering(guess)
    }

    /// The guess as a number, to compare with an objective.
    #[must_use]
    pub fn guess(self) -> f64 {
        self.0
    }

    /// `(F - guess) / F`.
    #[must_use]
    pub fn gap(self, objective: f64) -> f64 {
        (objective - self.0) / objective
    }
}

/// A look at the relaxation's dual point: the bound that it would give if Lanczos saw everything, and right singular vectors of values
/// above 1 (columns), by which the relaxation may grow.
pub fn look(problem: &Problem, x: &Relaxation, seed: u64) -> Option<(Steering, Mat)> {
    let w = DualPoint { problem, a: &x.a, b: &x.b, mu: &x.mu };
    let guess =
        |leading: &Leading, rest: f64| Steering((value::estimate(&w, &leading.clip()) / leading.norm_with(rest, 0.0).max(1.0)).max(0.0));
    if let Some((left, right)) = problem.p.low_rank() {
        let (f, h) = w.factors(left, right);
        let leading = Leading::new(&w, &f, &h)?;
        let over: Vec<usize> = (0..leading.values.len()).filter(|&k| leading.values[k] > 1.0 + ABOVE_ONE).collect();
        let grow = w.behind_right(&leading.right.select_columns(&over));
        return Some((guess(&leading, 0.0), grow));
    }
    let leading = w.leading()?;
    let found = Explored::run(&w, &leading, STEPS, seed.wrapping_mul(31).wrapping_add(1));
    let near: Vec<usize> = (0..found.above(NEAR_ONE)).collect();
    let grow = w.behind_right(&found.right.select_columns(&(0..found.above(1.0)).collect::<Vec<_>>()));
    let below = found.values.get(near.len()).copied().unwrap_or(0.0);
    let leading =
        if near.is_empty() { leading } else { leading.with(&w, &found.left.select_columns(&near), &found.right.select_columns(&near))? };
    Some((guess(&leading, below), grow))
}
