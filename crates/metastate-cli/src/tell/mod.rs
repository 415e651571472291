//! What was found, in tables and sentences for people.

pub mod compare;
pub mod diff;
pub mod forecast;
pub mod meanings;
pub mod verify;
