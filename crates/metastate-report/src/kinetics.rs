//! `kinetics.npz`: the chain of the meta-states as the data have it, and with each part of the data weighing a little less, for intervals.

use std::path::Path;

use metastate::Mat;

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
    /// The chain with each part of the data weighing less, [`metastate::kinetics::interval`].
    pub part_chains: Vec<Mat>,
    /// Timescales of the same in steps, without the stationary one, `parts x (s - 1)`.
    pub part_timescales: Mat,
    /// `passage_states` of the same; none where not computed.
    pub part_passage: Vec<Mat>,
}

/// The bytes of the file.
pub fn kinetics_npz(k: &SavedKinetics) -> std::io::Result<Vec<u8>> {
    let s = k.chain.rows();
    let mut arrays = vec![
        Array::matrix("chain", &k.chain),
        Array::matrix("projected", &k.projected),
        Array::matrix("passage_states", &k.passage_states),
    ];
    let stacked = |list: &[Mat]| list.iter().flat_map(|m| m.as_slice().iter().copied()).collect();
    for (name, list) in [("part_chains", &k.part_chains), ("part_passage", &k.part_passage)] {
        if !list.is_empty() {
            arrays.push(Array { name: name.to_owned(), shape: vec![list.len() * s, s], data: stacked(list) });
        }
    }
    if !k.part_chains.is_empty() {
        arrays.push(Array::matrix("part_timescales", &k.part_timescales));
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
    let cut = |name: &str| -> Result<Vec<Mat>> {
        let stacked = matrix(name).unwrap_or_default();
        if stacked.rows() == 0 {
            return Ok(Vec::new());
        }
        if stacked.cols() != s || !stacked.rows().is_multiple_of(s) {
            return Err(damaged(&path, format!("holds `{name}` of another size")));
        }
        Ok((0..stacked.rows() / s).map(|b| Mat::from_fn(s, s, |i, j| stacked[(b * s + i, j)])).collect())
    };
    let (part_chains, part_passage) = (cut("part_chains")?, cut("part_passage")?);
    let part_timescales = matrix("part_timescales").unwrap_or_default();
    if part_timescales.rows() != part_chains.len() || !(part_passage.is_empty() || part_passage.len() == part_chains.len()) {
        return Err(damaged(&path, "holds another number of parts in one of its arrays"));
    }
    Ok(Some(SavedKinetics { chain, projected, passage_states, part_chains, part_timescales, part_passage }))
}
