//! The extension module `metastate._core`: the tasks of metastate, on data in memory. What users see is in `python/metastate`.

mod errors;
mod fitted;
mod input;
mod kinetics;
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
    use crate::kinetics::{
        at_lag, chain_committor, chain_fates, chain_flux, chain_modes, chain_passage, chain_stationary, intervals, lag_advice,
        share_interval, state_classes, state_committor, state_fates, state_flux, state_passage, state_steps,
    };
    #[pymodule_export]
    use crate::options::{count_sql, explain, option_name, options};
    #[pymodule_export]
    use crate::tasks::{compare, diff, estimate, fit, memberships, panics, plan, score, simulate, verify};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
