//! Finds the few hidden meta-states behind a Markov chain with many states, and proves how good its answer is.
//!
//! # The problem
//! A chain on `d` states is driven by few meta-states when its transition matrix is `P = U V^T` with memberships U (`d x s`, rows sum
//! to one) and destinations V (`d x s`, columns sum to one). From the empirical P and weights xi ((2.1) and (2.2) of the paper):
//!
//! `minimise 1/2 ||Xi (P - X)||_F^2 + lambda Omega(X)` over `X` with `X 1 = 1`,
//!
//! `Omega(X) = inf { sum_j ||U_j|| ||V_j|| : X = U V^T, U, V >= 0 }`, a convex surrogate of the nonnegative rank. It is solved in the
//! factors, `F(U, V) = 1/2 ||Xi (P - U V^T)||^2 + lambda sum_j ||U_j|| ||V_j||`, with a rank that grows and shrinks; and bounded from
//! below through `Omega(X) >= ||X||_*`.
//!
//! # The way through
//! [`Counts`] → [`Data`] → [`fit()`] → [`Model`]: one call chooses rank, prior and lambda on held-out transitions, solves and proves the problem above, fits the rank once
//! more by likelihood, and gives every state its zone. [`verify`] rechecks a result with code of its own, and [`aggregate::latent`] reads times and forecasts off the factors.
//! What is documented here is the library. What the other crates of this workspace need beyond it they take from a module of its own, `workspace`, of which nothing is promised; all else is private.
//! The steps are there one by one, too: [`Chain`], [`solve::Problem`], [`solve::solve`], [`solve::Solution`]. [`mathematics`] has all equations and references.

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
