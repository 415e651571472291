//! The extension module `metastate._core`: the tasks of metastate, on data in memory. What users see is in `python/metastate`.

mod errors;
mod fitted;
mod input;
mod options;
mod tasks;
mod watched;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::errors::{FileError, InputError};
    #[pymodule_export]
    use crate::fitted::{Fitted, load, write_files};
    #[pymodule_export]
    use crate::options::{explain, option_name, options};
    #[pymodule_export]
    use crate::tasks::{compare, fit, memberships, panics, score, simulate, verify};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
