//! Options of `verify` and `report`, which look at a result.

use std::path::PathBuf;

use crate::entry::free;

options! {
    /// What is checked.
    VerifyArgs, None, free, {
        /// The result folder to check.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Fit the chosen number of meta-states and its two neighbours again on the folds, too. This takes about as long as the choice took.
        deep: bool = false => |e| e;
    }
}

options! {
    /// Which page is made.
    ReportArgs, None, free, {
        /// The result folder of fit, path, demo or compare.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Write the plots as PNG files, too.
        png: bool = false => |e| e;
        /// Write copies of the tables into this folder, for spreadsheets: an apostrophe stands before every field that one would take for a formula. The result's own tables keep
        /// the labels as they were read.
        escape_formulas: Option<PathBuf> = None => |e| e.value("FOLDER");
    }
}
