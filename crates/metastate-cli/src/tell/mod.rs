//! What was found, in tables and sentences for people.

pub mod compare;
pub mod forecast;
pub mod verify;
