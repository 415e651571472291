//! Every option of metastate, defined once.
//!
//! A group of options is a plain struct ([`FitArgs`], [`InputArgs`], ...) whose fields are written with their default, their help and their
//! bounds by the macro `options!`. From the same lines comes the group's catalogue ([`Entry`]), and from the catalogue everything that a user
//! sees: the command's parser and help, Python's parameters, and `docs/reference/options.md` ([`reference()`]).
//!
//! What a user gave becomes a [`Given`], whatever door it came through: the words of a command, or names and values from Python. It checks names
//! and values, and turns into the structs.
//!
//! ```
//! use metastate_options::{Door, FitArgs, Given, find};
//! # fn main() -> Result<(), metastate_options::OptionError> {
//! let fit = find("fit").expect("the command fit is in the catalogue");
//! let mut given = Given::new(fit, Door::Python);
//! given.give("max_rank", 12.into())?;
//! assert_eq!(given.checked::<FitArgs>()?.max_rank(), 12);
//! assert!(given.give("max_rang", 12.into()).unwrap_err().told(Door::Python).contains("max_rang"));
//! # Ok(())
//! # }
//! ```
//!
//! To add an option, add one field to its group in `groups/`.

#![forbid(unsafe_code)]

#[macro_use]
mod define;
mod commands;
mod entry;
mod error;
mod given;
mod groups;
mod reference;

pub use commands::{ABOUT, Command, EXAMPLES, Group, commands, find};
pub use entry::{Bounds, Entry, Kind, Many, Options, Word};
pub use error::{Door, OptionError, OptionProblem, option_name, python_name};
pub use given::{Given, read_words, shell_words};
pub use groups::*;
pub use reference::reference;
