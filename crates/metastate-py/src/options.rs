//! The options of the command, read off its own definitions: names, defaults and allowed words have one place.

use clap::{Command, CommandFactory, Parser};
use metastate_tasks::args::{Cli, Command as What, CompareCommand, FitCommand, MEMORY, SimulateArgs};
use metastate_tasks::error::{CliError, Result};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::{bad_option, to_python};

/// The command with what was given, as if it had been typed.
pub struct Typed<T> {
    /// Its options.
    pub command: T,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads to use.
    pub threads: Option<usize>,
}

fn parse(words: impl IntoIterator<Item = String>) -> Result<Cli> {
    Cli::try_parse_from(std::iter::once("metastate".to_owned()).chain(words)).map_err(|e| bad_option(&e))
}

fn with_inputs(name: &str, files: &[String], options: Vec<String>) -> Vec<String> {
    let mut words = vec![name.to_owned()];
    words.extend(options);
    // What follows two dashes is never an option, whatever a file is called.
    words.push("--".to_owned());
    if files.is_empty() {
        words.push(MEMORY.to_owned())
    } else {
        words.extend_from_slice(files)
    }
    words
}

/// `fit` or `path`.
pub fn fit(whole_path: bool, files: &[String], mut options: Vec<String>) -> Result<Typed<FitCommand>> {
    options.extend(["--out".to_owned(), MEMORY.to_owned()]);
    let cli = parse(with_inputs(if whole_path { "path" } else { "fit" }, files, options))?;
    match cli.command {
        What::Fit(command) | What::Path(command) => Ok(Typed { command: *command, seed: cli.common.seed, threads: cli.common.threads }),
        _ => Err(CliError::failed("E-CLI-ARGUMENT", "no options of fit")),
    }
}

/// `compare`.
pub fn compare(files: &[String], options: Vec<String>) -> Result<Typed<CompareCommand>> {
    let cli = parse(with_inputs("compare", files, options))?;
    match cli.command {
        What::Compare(command) => Ok(Typed { command: *command, seed: cli.common.seed, threads: cli.common.threads }),
        _ => Err(CliError::failed("E-CLI-ARGUMENT", "no options of compare")),
    }
}

/// `simulate`.
pub fn simulate(options: Vec<String>) -> Result<Typed<SimulateArgs>> {
    let cli = parse(std::iter::once("simulate".to_owned()).chain(options))?;
    match cli.command {
        What::Simulate(command) => Ok(Typed { command, seed: cli.common.seed, threads: cli.common.threads }),
        _ => Err(CliError::failed("E-CLI-ARGUMENT", "no options of simulate")),
    }
}

/// The options of a command (`fit`, or `simulate planted`): name, default, words allowed, whether it takes a value, help.
#[pyfunction]
pub fn options<'py>(py: Python<'py>, command: &str) -> PyResult<Bound<'py, PyList>> {
    let mut cli = Cli::command();
    cli.build();
    let mut found: &Command = &cli;
    for word in command.split_whitespace() {
        found = found
            .find_subcommand(word)
            .ok_or_else(|| to_python(py, &CliError::bad("E-CLI-ARGUMENT", format!("there is no command `{word}`"))))?;
    }
    let list = PyList::empty(py);
    for arg in found.get_arguments().filter(|a| !matches!(a.get_id().as_str(), "help" | "version")) {
        let entry = PyDict::new(py);
        entry.set_item("name", arg.get_long().unwrap_or_else(|| arg.get_id().as_str()))?;
        let default = arg.get_default_values().first().map(|v| v.to_string_lossy().into_owned());
        entry.set_item("default", default.filter(|_| arg.get_action().takes_values()))?;
        entry.set_item("words", arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect::<Vec<_>>())?;
        entry.set_item("takes_value", arg.get_action().takes_values())?;
        entry.set_item("positional", arg.is_positional())?;
        entry.set_item("help", arg.get_help().map(ToString::to_string))?;
        list.append(entry)?;
    }
    Ok(list)
}

/// What an error code means and what to do; all codes without one.
#[pyfunction]
#[pyo3(signature = (code=None))]
pub fn explain(py: Python<'_>, code: Option<&str>) -> PyResult<String> {
    metastate_tasks::explain::explain(code).map_err(|e| to_python(py, &e))
}
