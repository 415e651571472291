//! Finds the few hidden meta-states behind a Markov chain with many states, and proves how good its answer is.
//!
//! # The problem
//! A chain on `d` states is driven by `s` meta-states, few where d is large, when its transition matrix is `P = U V^T` with memberships U (`d x s`,
//! rows sum to one) and destinations V (`d x s`, columns sum to one). The data give the empirical P and the share xi of each state ((2.2) and (2.1)
//! of the paper); `Xi = diag(xi)`, or a power of it. The problem is to
//!
//! `minimise 1/2 ||Xi (P - X)||_F^2 + lambda Omega(X)` over `X >= 0` with `X 1 = 1`,
//!
//! where lambda > 0 is the cost of a unit of `Omega(X) = inf { sum_j ||U_j|| ||V_j|| : X = U V^T, U, V >= 0 }`, a convex surrogate of the nonnegative
//! rank; `U_j` is column j of U. It is solved in the factors, `F(U, V) = 1/2 ||Xi (P - U V^T)||_F^2 + lambda sum_j ||U_j|| ||V_j||`, while the solver
//! adds and removes columns; and its optimum is bounded from below through `Omega(X) >= ||X||_*`, the sum of the singular values of X.
//!
//! # The way through
//! [`Counts`] → [`Data`] → [`fit()`] → [`Model`]: one call chooses rank, prior and lambda on held-out transitions, solves and proves the problem above, fits the rank once
//! more by likelihood, and gives every state its zone. [`verify`] checks a result again with code of its own, and [`aggregate::latent`] computes times and forecasts from the factors.
//! What is documented here is the library. What the other crates of this workspace need beyond it is in the module `workspace`, which is not part of the library's contract; everything else is private.
//! Each step can also be taken alone: [`Chain`], [`solve::Problem`], [`solve::solve`], [`solve::Solution`]. [`mathematics`] defines all symbols and has all equations and references.

#![forbid(unsafe_code)]

pub mod aggregate;
mod chain;
pub mod compare;
mod counts;
mod error;
pub mod fit;
mod graph;
pub mod kinetics;
mod ledger;
mod linalg;
#[doc = include_str!("mathematics.md")]
pub mod mathematics {}
pub mod plan;
pub mod proof;
pub mod simulate;
pub mod solve;
mod stats;
pub mod verify;
#[doc(hidden)]
pub mod workspace;

pub use chain::{Chain, Connected, Estimate, Given, RowWeights, SlicedCounts, Slices, TwoSided, WeightPower, WeightsBy};
pub use counts::{Connectivity, CountMode, Counts, Folds, Label, StateClass, StateIndex, TransitionCounter};
pub use error::{Error, Result};
pub use fit::{Data, FitOptions, Model, fit, fit_from};
pub use ledger::{Ledger, LedgerEntry, LedgerUnit};
pub use linalg::{Csr, DenseOperator, LowRankOperator, Mat, Operator, SparseOperator};
pub use proof::Proven;
pub use solve::{Silent, Solution, Status};

/// The example of the README, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
