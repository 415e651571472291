//! What the page shows of the slices: flows between meta-states in each of them, and where trips lead then.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metastate::aggregate::SliceFlows;
use metastate::solve::Factors;
use serde_json::{Value, json};

use crate::result::{FitResult, SlicedV};

/// Entries of V, at most; above that the map does not follow the slices.
const MOST_PROFILES: usize = 1_000_000;
/// Entries of all flows, at most; above that there is no slider.
const MOST_FLOWS: usize = 1_000_000;

/// Flows, and profiles where they are not too many.
pub fn collect(result: &FitResult, sliced: &SlicedV) -> Option<Value> {
    let SlicedV { slices, v } = sliced;
    let (u, s) = (&result.model.u, v.cols());
    if slices.len() * s * s > MOST_FLOWS {
        return None;
    }
    let told_apart = Factors { u: u.clone(), v: (*v).clone() };
    let found = SliceFlows::new(&told_apart, slices, result.xi).ok()?;
    let profiles = (v.rows() * s <= MOST_PROFILES).then(|| floats(v.as_slice().iter().map(|x| *x as f32)));
    let starts: Vec<usize> = (0..slices.len()).map(|h| slices.of(h).start).chain([v.rows()]).collect();
    Some(json!({
        "labels": slices.labels().labels().map(|l| l.to_string()).collect::<Vec<_>>(),
        "flows": floats(found.flows.iter().flat_map(|f| f.as_slice()).map(|x| *x as f32)),
        "starts": starts,
        "states": STANDARD.encode(slices.columns().iter().flat_map(|c| c.1.to_le_bytes()).collect::<Vec<u8>>()),
        "profiles": profiles,
    }))
}

fn floats(values: impl Iterator<Item = f32>) -> String {
    STANDARD.encode(values.flat_map(f32::to_le_bytes).collect::<Vec<u8>>())
}
