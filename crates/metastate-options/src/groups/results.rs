//! Options of `verify`, `report` and `diff`, which look at results.

use std::path::PathBuf;

use super::fit::OutlineKind;
use crate::entry::free;

options! {
    /// What is checked.
    VerifyArgs, None, free, {
        /// The result folder to check.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Also fit again on the held-out parts, with the chosen number of meta-states, with one fewer and with one more. This takes about as long as the
        /// choice took.
        deep: bool = false => |e| e;
    }
}

options! {
    /// Which page is made.
    ReportArgs, None, free, {
        /// The result folder of fit, path, demo or compare.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Table with a row for each named state, with its place and perhaps its name, as for fit: the result gets a map, and names. Its tables, zones.geojson,
        /// page and plots are written as fit would have written them; no number changes.
        places: Option<PathBuf> = None => |e| e;
        /// Name of the column of --places that has the states' labels.
        label: Option<String> = None => |e| e.value("COL").requires("places");
        /// Name of the column of --places with the names of the states, as readers know them. Without it, the column `name` where there is one.
        name: Option<String> = None => |e| e.value("COL").requires("places");
        /// Name of the column of --places with the longitude in degrees.
        lon: Option<String> = None => |e| e.value("COL").requires("places");
        /// Name of the column of --places with the latitude in degrees.
        lat: Option<String> = None => |e| e.value("COL").requires("places");
        /// Which area each place covers on the map and in zones.geojson.
        outline: Option<OutlineKind> = None => |e| e;
        /// Table with names for zones: the columns zone (its number) and name, or label (a state in it) and name.
        zone_names: Option<PathBuf> = None => |e| e.value("FILE");
        /// Also write the plots as PNG files.
        png: bool = false => |e| e;
        /// Write copies of the tables for spreadsheets into this folder: every field that a spreadsheet would take for a formula begins with an apostrophe. The
        /// result's own tables keep the labels as they were read.
        escape_formulas: Option<PathBuf> = None => |e| e.value("FOLDER");
    }
}

options! {
    /// Which results are compared.
    DiffArgs, None, free, {
        /// A result folder of fit, path or demo.
        first: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Another one. The two must have some states in common.
        second: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Write the tables and the page diff.html into this folder.
        out: Option<PathBuf> = None => |e| e.value("DIR");
        /// Replace the folder if there is one already.
        force: bool = false => |e| e.requires("out");
    }
}
