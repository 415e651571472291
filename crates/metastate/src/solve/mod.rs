//! From a chain to its meta-states: the objective, local solvers, the adaptive rank algorithm and its certificate.

mod adaptive;
pub(crate) mod bootstrap;
pub(crate) mod errors;
pub(crate) mod grow;
pub(crate) mod kkt;
mod lambda_max;
mod lambda_of_rank;
pub(crate) mod local;
mod metric;
mod observe;
pub(crate) mod path;
pub(crate) mod problem;
pub(crate) mod refit;
pub(crate) mod relaxation;
pub(crate) mod score;
pub(crate) mod select;
mod settings;
pub(crate) mod shrink;
mod solution;
pub(crate) mod start;
pub(crate) mod steer;

pub use adaptive::{Snapshot, resume, solve};
pub use kkt::LocalErrors;
pub use lambda_max::{lambda_max, lambda_max_in, lambda_max_watched, rank_one};
pub use lambda_of_rank::{LambdaOfRank, keeps_all, lambda_of_rank};
pub use local::BbFormula;
pub use metric::{Metric, Side};
pub use observe::{Control, Event, Observer, Phase, Progress, Silent};
pub use problem::{Factors, Frame, Objective, Problem};
pub(crate) use settings::check_factors;
pub use settings::{GAP, LocalStop, MAX_RANK, PAPER_MAX_RANK, Redundancy, Removal, Settings, Solver, Start, StopRule, TOLERANCE};
pub use solution::{Errors, Solution, Status};
pub use steer::Steering;

pub use crate::proof::Effort;
