//! Chains with a known answer, for tests, benchmarks and first steps. All randomness comes from the seeds given.

mod alias;
mod groups;
mod planted;

pub use alias::AliasTable;
pub use groups::{PlantedGroups, planted_groups};
pub use planted::{Planted, planted};
