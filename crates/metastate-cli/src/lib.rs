//! The command `metastate`: what was typed becomes options, and what was done becomes words.

mod reproduce;
pub mod run;
