//! The command `metastate`: what was typed becomes options, and what was done becomes words. Everything that belongs to a terminal is here: the parser,
//! the help, progress bars, tables and signals.

#![forbid(unsafe_code)]

pub mod parse;
mod reproduce;
pub mod run;
mod signals;
pub mod team;
mod tell;
mod terminal;
