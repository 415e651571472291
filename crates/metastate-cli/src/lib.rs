//! What the command `metastate` does, as a library: the Python package calls the same row.

pub mod args;
mod assign;
mod checkpoint;
pub mod choose;
pub mod compare;
mod count;
pub mod data;
mod demo;
pub mod error;
pub mod explain;
pub mod fit;
mod forecast;
mod hard;
mod parts;
mod path_checkpoint;
pub mod progress;
mod reference;
mod refit;
pub mod report;
mod reproduce;
pub mod run;
pub mod settings;
pub mod simulate;
pub mod stop;
mod truth;
pub mod verify;
pub mod watch;
