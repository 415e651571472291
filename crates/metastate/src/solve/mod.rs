//! From a chain to its meta-states: the objective, local solvers, the adaptive rank algorithm and its certificate.

mod adaptive;
#[doc(hidden)]
pub mod bootstrap;
#[doc(hidden)]
pub mod errors;
#[doc(hidden)]
pub mod grow;
#[doc(hidden)]
pub mod kkt;
mod lambda_max;
mod lambda_of_rank;
#[doc(hidden)]
pub mod local;
mod metric;
mod observe;
#[doc(hidden)]
pub mod path;
#[doc(hidden)]
pub mod problem;
#[doc(hidden)]
pub mod refit;
#[doc(hidden)]
pub mod relaxation;
#[doc(hidden)]
pub mod score;
#[doc(hidden)]
pub mod select;
mod settings;
#[doc(hidden)]
pub mod shrink;
mod solution;
#[doc(hidden)]
pub mod start;
#[doc(hidden)]
pub mod steer;

pub use adaptive::{Snapshot, resume, solve};
pub use kkt::LocalErrors;
pub use lambda_max::{lambda_max, lambda_max_in, lambda_max_watched, rank_one};
pub use lambda_of_rank::{LambdaOfRank, keeps_all, lambda_of_rank};
pub use local::BbFormula;
pub use metric::{Metric, Side};
pub use observe::{Control, Event, Observer, Phase, Progress, Silent};
pub use problem::{Factors, Frame, Objective, Problem};
pub(crate) use settings::check_factors;
pub use settings::{GAP, LocalStop, MAX_RANK, Redundancy, Removal, Settings, Solver, Start, StopRule, TOLERANCE};
pub use solution::{Errors, Solution, Status};
pub use steer::Steering;

pub use crate::proof::Effort;
