//! What `metastate` does for people, task by task: from options to data, through the recipe of the library, to a result folder. The
//! command and the Python package are two doors to the same tasks.

#![forbid(unsafe_code)]

pub mod assign;
pub mod carried;
mod checkpoint;
pub mod compare;
pub mod count;
pub mod data;
pub mod demo;
pub mod diff;
pub mod error;
pub mod explain;
pub mod fit;
pub mod forecast;
pub mod inputs;
pub mod memory;
mod named;
mod path_checkpoint;
mod place;
mod places;
pub mod progress;
mod record;
mod reference;
pub mod report;
pub mod settings;
pub mod simulate;
pub mod stop;
pub mod team;
mod truth;
pub mod verify;
pub mod watch;
mod zone_names;

/// The options of all tasks; they are defined in a crate of their own.
pub use metastate_options as args;
