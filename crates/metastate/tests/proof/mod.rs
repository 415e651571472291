//! The campaign against the certificate: many small problems, each solved with the default settings, and every number that the
//! result publishes attacked. A lower bound is *false* when a feasible point lies below it; a result is *refused* when `verify`
//! does not confirm what it honestly says.

#![allow(dead_code)] // the test and the example each use a part

pub mod attack;
pub mod families;
pub mod published;
