//! What a run reads must never lie inside what it replaces.

use std::path::{Path, PathBuf};

use metastate_ingest::expand_names;

use crate::args::InputArgs;
use crate::error::{CliError, Result};

/// Every file that these options name, patterns expanded.
pub fn inputs(input: &InputArgs) -> Vec<PathBuf> {
    let named: Vec<String> = input.inputs.iter().chain(&input.labels).chain(&input.weights).cloned().collect();
    expand_names(&named)
}

/// Refuses a place that holds one of the files or folders to be read.
pub fn keep(out: &Path, read: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    let Ok(place) = out.canonicalize() else { return Ok(()) };
    match read.into_iter().find(|file| file.canonicalize().is_ok_and(|file| file.starts_with(&place))) {
        None => Ok(()),
        Some(name) => {
            let what = if place.is_dir() { "lies in the folder that would be replaced" } else { "would be overwritten" };
            Err(CliError::bad("E-CLI-EXISTS", format!("the input {} {what}", name.display()))
                .at(out.display().to_string())
                .remedy("name another place with --out"))
        }
    }
}
