//! Chains with a known answer, for tests, benchmarks and first steps. All randomness comes from the seeds given.

mod alias;
mod city;
mod controlled;
mod groups;
mod planted;
mod soft_city;

pub use alias::AliasTable;
pub use city::{CITY_CELL, City, Trip, city};
pub use controlled::{Controlled, controlled};
pub use groups::{GroupWorld, PlantedGroups, planted_groups};
pub use planted::{Planted, planted};
pub use soft_city::{SoftCity, soft_city};
