//! `kinetics.npz`: the chain of the meta-states as the data have it, and as the draws have it.

use std::path::Path;

use metastate::linalg::Mat;

use crate::error::{Result, damaged};
use crate::inside;
use crate::npz::{Array, npz_bytes, read_npz};

/// The name of the file.
pub const KINETICS_FILE: &str = "kinetics.npz";

/// What the file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedKinetics {
    /// Stochastic, `s x s`.
    pub chain: Mat,
    /// The projection that it is next to, `s x s`.
    pub projected: Mat,
    /// Mean passage times between the states of one meta-state and those of another, by the states' own chain, in steps; NaN where not computed.
    pub passage_states: Mat,
    /// The chain of each draw.
    pub draws: Vec<Mat>,
    /// Timescales of each draw in steps, without the stationary one, `draws x (s - 1)`.
    pub draw_timescales: Mat,
}

/// The bytes of the file.
pub fn kinetics_npz(k: &SavedKinetics) -> std::io::Result<Vec<u8>> {
    let s = k.chain.rows();
    let mut arrays = vec![
        Array::matrix("chain", &k.chain),
        Array::matrix("projected", &k.projected),
        Array::matrix("passage_states", &k.passage_states),
    ];
    if !k.draws.is_empty() {
        let stacked = k.draws.iter().flat_map(|m| m.as_slice().iter().copied()).collect();
        arrays.push(Array { name: "draws".to_owned(), shape: vec![k.draws.len() * s, s], data: stacked });
        arrays.push(Array::matrix("draw_timescales", &k.draw_timescales));
    }
    npz_bytes(&arrays)
}

/// The kinetics of a folder; none where it was written without.
pub fn load_kinetics(folder: &Path) -> Result<Option<SavedKinetics>> {
    let path = folder.join(KINETICS_FILE);
    if inside::look(folder, KINETICS_FILE)?.is_none() {
        return Ok(None);
    }
    let all = read_npz(&path)?;
    let matrix = |name: &str| all.iter().find(|a| a.name == name).cloned().and_then(Array::into_matrix);
    let square =
        |name: &str| matrix(name).filter(|m| m.rows() == m.cols()).ok_or_else(|| damaged(&path, format!("holds no square `{name}`")));
    let (chain, projected, passage_states) = (square("chain")?, square("projected")?, square("passage_states")?);
    let s = chain.rows();
    if s == 0 || projected.rows() != s || passage_states.rows() != s {
        return Err(damaged(&path, "holds matrices of different sizes"));
    }
    let stacked = matrix("draws").unwrap_or_default();
    let draws = if stacked.rows() > 0 {
        if stacked.cols() != s || !stacked.rows().is_multiple_of(s) {
            return Err(damaged(&path, "holds draws of another size"));
        }
        (0..stacked.rows() / s).map(|b| Mat::from_fn(s, s, |i, j| stacked[(b * s + i, j)])).collect()
    } else {
        Vec::new()
    };
    let draw_timescales = matrix("draw_timescales").unwrap_or_default();
    if draw_timescales.rows() != draws.len() {
        return Err(damaged(&path, "holds timescales of another number of draws"));
    }
    Ok(Some(SavedKinetics { chain, projected, passage_states, draws, draw_timescales }))
}
