//! From a chain to its meta-states: the objective, local solvers, the adaptive rank algorithm and its certificate.

pub mod certificate;
pub mod grow;
pub mod kkt;
pub mod local;
pub mod problem;
pub mod relaxation;
pub mod shrink;
pub mod start;
