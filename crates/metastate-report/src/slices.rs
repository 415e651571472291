//! The files of a fit with slices: flows of each slice, profiles of each slice, which zones change, and which row of V is what.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use metastate::Mat;
use metastate::aggregate::SliceFlows;
use metastate::{Label, Slices, StateIndex};

use crate::error::{Result, damaged};
use crate::npz::{Array, npz_bytes, read_npz};
use crate::parquet_table;
use crate::summary::{SlicesRecord, ZoneChangeRecord};
use crate::tables::{csv_field, number};

/// The names of the files.
pub const SLICES_FILE: &str = "slices.csv";
/// Where each meta-state leads in each slice.
pub const PROFILES_FILE: &str = "profiles.parquet";
/// Which zones change.
pub const CHANGES_FILE: &str = "changes.csv";
/// Which row of V is which slice and which state.
pub const SLICE_ROWS_FILE: &str = "slices.npz";

/// `slices.csv`: one line for each slice and pair of meta-states, with the share of all transitions that goes from one to the other in that slice.
pub fn slices_csv(slices: &Slices, found: &SliceFlows) -> String {
    let mut out = String::from("slice,from_metastate,to_metastate,flow\n");
    for (label, flow) in slices.labels().labels().zip(&found.flows) {
        let name = csv_field(&label.to_string());
        for j in 0..flow.rows() {
            for (k, x) in flow.row(j).iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "{name},{},{},{}", j + 1, k + 1, number(*x));
            }
        }
    }
    out
}

/// `changes.csv`: one line a zone.
pub fn changes_csv(zones: &[ZoneChangeRecord]) -> String {
    let mut out = String::from("zone,transitions,log_ratio,gain,p_value\n");
    for (z, c) in zones.iter().enumerate() {
        let fields = [c.transitions, c.log_ratio, c.gain, c.p_value].map(number).join(",");
        out += &format!("{},{fields}\n", z + 1);
    }
    out
}

/// `profiles.parquet`: one row for each row of V, with its slice, its state and the transitions that were counted into it.
pub fn profiles_parquet(slices: &Slices, labels: &[Label], v: &Mat, arrivals: &[f64]) -> std::result::Result<Vec<u8>, String> {
    let texts =
        |f: &dyn Fn(&(u32, u32)) -> String| -> ArrayRef { Arc::new(slices.columns().iter().map(|c| Some(f(c))).collect::<StringArray>()) };
    let names: Vec<String> = slices.labels().labels().map(|l| l.to_string()).collect();
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("slice".into(), texts(&|c| names[c.0 as usize].clone())),
        ("label".into(), texts(&|c| labels[c.1 as usize].to_string())),
        ("transitions".into(), Arc::new(Float64Array::from_iter_values(arrivals.iter().copied()))),
    ];
    for j in 0..v.cols() {
        let profile = Float64Array::from_iter_values((0..v.rows()).map(|c| v[(c, j)]));
        columns.push((format!("profile_{}", j + 1), Arc::new(profile)));
    }
    parquet_table::bytes(columns, None)
}

/// `slices.npz`: the numbers of the slice and of the state of each row of V, from 0.
pub fn slice_rows_npz(slices: &Slices) -> std::io::Result<Vec<u8>> {
    let list = |f: fn(&(u32, u32)) -> u32| slices.columns().iter().map(|c| f64::from(f(c))).collect::<Vec<f64>>();
    npz_bytes(&[Array::list("slice", &list(|c| c.0)), Array::list("state", &list(|c| c.1))])
}

/// Reads `slices.npz` again, for so many states.
pub(crate) fn load_slice_rows(folder: &Path, record: &SlicesRecord, states: usize) -> Result<Slices> {
    let path = folder.join(SLICE_ROWS_FILE);
    let all = read_npz(&path)?;
    let list = |name: &str| -> Result<Vec<u32>> {
        let array = all.iter().find(|a| a.name == name).ok_or_else(|| damaged(&path, format!("holds no array `{name}`")))?;
        let whole = |x: &f64| (x.fract() == 0.0 && (0.0..f64::from(u32::MAX)).contains(x)).then_some(*x as u32);
        match array.data.iter().map(whole).collect::<Option<Vec<u32>>>() {
            Some(list) if array.shape == [record.rows] => Ok(list),
            _ => Err(damaged(&path, format!("holds an array `{name}` that is no list of {} numbers from 0", record.rows))),
        }
    };
    let columns: Vec<(u32, u32)> = list("slice")?.into_iter().zip(list("state")?).collect();
    if all.len() != 2 {
        return Err(damaged(&path, "holds other arrays"));
    }
    let labels = StateIndex::from_labels(record.labels.iter().map(|l| Label::from(l.as_str())).collect())
        .map_err(|e| damaged(&folder.join("summary.json"), format!("names slices that cannot be told apart ({e})")))?;
    Slices::new(labels, columns, states)
        .map_err(|_| damaged(&path, "holds rows that are not in order, or of slices or states that there are not"))
}
