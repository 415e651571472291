//! Python's parameters by the catalogue of options: names, defaults, bounds and allowed words have one place.

use metastate_ingest::sql::Answer;
use metastate_options::{Common, CompareCommand, CountCommand, Door, FitCommand, Given, MEMORY, OptionError, PlanArgs, SimulateWhat, find};
use metastate_tasks::error::{CliError, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use serde_json::Value;

use crate::errors::to_python;

/// What was asked for, with the options of all tasks.
pub struct Asked<T> {
    /// The task's own options.
    pub command: T,
    /// Seed of everything random.
    pub seed: u64,
    /// Threads to use.
    pub threads: Option<usize>,
}

/// What is wrong with an option, in Python's words.
pub fn refused(e: &OptionError) -> CliError {
    CliError::option(e, Door::Python)
}

fn asked<T>(given: &Given, command: impl FnOnce(&Given) -> std::result::Result<T, OptionError>) -> Result<Asked<T>> {
    let read = || -> std::result::Result<Asked<T>, OptionError> {
        // The data are an argument of their own, and results stay in memory.
        given.complete(&["inputs", "out"])?;
        let Common { seed, threads, .. } = given.checked()?;
        Ok(Asked { command: command(given)?, seed, threads })
    };
    read().map_err(|e| refused(&e))
}

/// Values by their Python names, as options of a command. The files are what is read; none for data in memory.
pub fn given(command: &str, files: &[String], values: &Bound<'_, PyDict>) -> PyResult<Given> {
    let py = values.py();
    let told = |e: OptionError| to_python(py, &refused(&e));
    let found = find(command).ok_or_else(|| no_command(py, command))?;
    let mut given = Given::new(found, Door::Python);
    for (name, value) in values.iter() {
        let name: String = name.extract()?;
        given.give(&name, json(&name, &value)?).map_err(told)?;
    }
    if found.entry("inputs").is_some() {
        let inputs = if files.is_empty() { vec![MEMORY.to_owned()] } else { files.to_vec() };
        given.give("inputs", inputs.into()).map_err(told)?;
    }
    Ok(given)
}

/// A value of Python, as the catalogue looks at it.
fn json(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned().into());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return Ok(Value::Array(value.try_iter()?.map(|item| json(name, &item?)).collect::<PyResult<_>>()?));
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<f64>() {
        // NaN and infinity have no place in JSON; as texts they are refused with what is allowed.
        return Ok(serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number));
    }
    if let Ok(path) = value.extract::<std::path::PathBuf>() {
        return Ok(path.to_string_lossy().into_owned().into());
    }
    Err(PyTypeError::new_err(format!(
        "{name} must be a number, a text, a path, true or false, or a list of them, not {}",
        value.get_type()
    )))
}

/// `fit` or `path`.
pub fn fit(given: &Given) -> Result<Asked<FitCommand>> {
    asked(given, |g| Ok(FitCommand { input: g.checked()?, fit: g.checked()?, run: g.checked()? }))
}

/// `compare`.
pub fn compare(given: &Given) -> Result<Asked<CompareCommand>> {
    asked(given, |g| Ok(CompareCommand { input: g.checked()?, compare: g.checked()? }))
}

/// A plan.
pub fn plan(given: &Given) -> Result<Asked<PlanArgs>> {
    asked(given, Given::checked)
}

/// One of the commands of `simulate`.
pub fn simulate(given: &Given) -> Result<Asked<SimulateWhat>> {
    asked(given, |g| match g.command().name {
        "planted" => Ok(SimulateWhat::Planted(g.checked()?)),
        "trajectory" => Ok(SimulateWhat::Trajectory(g.checked()?)),
        "controlled" => Ok(SimulateWhat::Controlled(g.checked()?)),
        "groups" => Ok(SimulateWhat::Groups(g.checked()?)),
        _ => Ok(SimulateWhat::City(g.checked()?)),
    })
}

/// The options of a command (`fit`, or `simulate planted`): name, default, words allowed, whether it takes a value, help.
#[pyfunction]
pub fn options<'py>(py: Python<'py>, command: &str) -> PyResult<Bound<'py, PyList>> {
    let found = find(command).ok_or_else(|| no_command(py, command))?;
    let list = PyList::empty(py);
    for option in found.entries() {
        let entry = PyDict::new(py);
        entry.set_item("name", &option.name)?;
        entry.set_item("default", option.default.as_deref())?;
        entry.set_item("words", option.words.iter().map(|w| w.name.as_str()).collect::<Vec<_>>())?;
        entry.set_item("takes_value", option.takes_value())?;
        entry.set_item("positional", option.positional)?;
        entry.set_item("help", &option.help)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn no_command(py: Python<'_>, name: &str) -> PyErr {
    to_python(py, &CliError::bad("E-CLI-ARGUMENT", format!("there is no command `{name}`")))
}

/// The query that counts a table where it lies, with the ledger beside the triplets.
#[pyfunction]
pub fn count_sql(py: Python<'_>, values: &Bound<'_, PyDict>, table: &str, dialect: &str) -> PyResult<String> {
    let given = given("count", &[table.to_owned()], values)?;
    let query = || -> Result<String> {
        let mut given = given.clone();
        given.give("dialect", dialect.into()).map_err(|e| refused(&e))?;
        given.give("print_sql", true.into()).map_err(|e| refused(&e))?;
        let command = CountCommand { input: given.checked().map_err(|e| refused(&e))?, count: given.checked().map_err(|e| refused(&e))? };
        Ok(metastate_tasks::count::query(&command, Answer::WithLedger)?.sql)
    };
    query().map_err(|e| to_python(py, &e))
}

/// The option that a parameter stands for, as the command calls it but for the dashes in front.
#[pyfunction]
pub fn option_name(parameter: &str) -> String {
    metastate_options::option_name(parameter)
}

/// What an error code means and what to do; all codes without one.
#[pyfunction]
#[pyo3(signature = (code=None))]
pub fn explain(py: Python<'_>, code: Option<&str>) -> PyResult<String> {
    metastate_tasks::explain::explain(code).map_err(|e| to_python(py, &e))
}
