//! The groups of options.

mod common;
mod compare;
mod fit;
mod forecast;
mod input;
mod plan;
mod reproduce;
mod results;
mod simulate;
mod values;

pub use common::{Common, CompletionsArgs, DemoArgs, ExplainArgs, ManArgs, ShellKind};
pub use compare::{AssignArgs, AssignCommand, AssignKind, CompareArgs, CompareCommand, HardKind};
pub use fit::{
    ConnectedKind, FitArgs, FitCommand, MAX_RANK, ObjectiveKind, OutlineKind, PAPER_MAX_RANK, RefitKind, RunArgs, SolverKind, StopKind,
    WeightsKind,
};
pub use forecast::{ForecastArgs, ModelKind};
pub use input::{CountArgs, CountCommand, CountKind, InputArgs, InputKind, MEMORY, SqlDialect};
pub use plan::PlanArgs;
pub use reproduce::{ReproduceArgs, ReproduceWhat};
pub use results::{DiffArgs, ReportArgs, VerifyArgs};
pub use simulate::{CityArgs, ControlledArgs, GroupsArgs, PlantedArgs, SimulateWhat, TrajectoryArgs};
pub use values::{Cell, Clusters, Init, weight_power};
