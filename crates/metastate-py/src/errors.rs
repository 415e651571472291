//! The command's errors as Python's: the same sentence, place and remedy, with the code as an attribute.

use metastate_tasks::error::{BAD_INPUT, CliError, INTERRUPTED};
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    metastate,
    InputError,
    PyValueError,
    "Data or an option that cannot be used. `code` is explained by `metastate.explain(code)`."
);
create_exception!(
    metastate,
    FileError,
    PyOSError,
    "A file or folder that cannot be read or written. `code` is explained by `metastate.explain(code)`."
);

/// A panic, met before it reaches Python.
pub const PANIC: &str = "E-PY-PANIC";

/// Errors of files, whatever the exit code of the command.
fn concerns_files(code: &str) -> bool {
    matches!(code, "E-CLI-WRITE" | "E-CLI-EXISTS" | "E-CLI-RESULT" | "E-CLI-INPUTS-GONE" | "E-INGEST-READ" | "E-INGEST-WRITE")
}

/// Bad input is a ValueError, a file that fails is an OSError, an interruption is KeyboardInterrupt.
pub fn to_python(py: Python<'_>, error: &CliError) -> PyErr {
    let text = error.to_string();
    if error.exit() == INTERRUPTED {
        return PyKeyboardInterrupt::new_err(text);
    }
    // A bug of ours is neither.
    if error.code() == PANIC {
        return PyRuntimeError::new_err(text);
    }
    let made = if concerns_files(error.code()) && error.exit() != BAD_INPUT || matches!(error.code(), "E-CLI-EXISTS" | "E-CLI-WRITE") {
        FileError::new_err(text)
    } else {
        InputError::new_err(text)
    };
    // An attribute that cannot be set must not hide the error itself.
    let _ = made.value(py).setattr("code", error.code());
    made
}
