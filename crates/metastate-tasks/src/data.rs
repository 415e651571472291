//! From the inputs to a chain, the same way for `fit`, `verify` and `--resume`.

use metastate::{Chain, Csr, Estimate, Given, RowWeights, WeightsBy};
use metastate_ingest::{CountedStates, Data, Ingested, MatrixValues, Progress};
use metastate_report::FileRecord;

use crate::args::{FitArgs, InputArgs, RefitKind, WeightsKind};
use crate::error::{CliError, Result};
use crate::parts::Parts;

/// A chain with what is known about the data behind it.
pub struct Loaded {
    /// P, xi and labels.
    pub chain: Chain,
    /// Centres of the cells, in the order of the chain's states.
    pub coordinates: Option<Vec<(f64, f64)>>,
    /// Side of a cell in degrees, when the states are cells.
    pub cell: Option<f64>,
    /// Which bytes it came from.
    pub inputs: Vec<FileRecord>,
    /// Rows read.
    pub rows: u64,
    /// Rows counted.
    pub rows_counted: u64,
    /// Things worth telling the user.
    pub hints: Vec<String>,
    /// The counts behind the chain, and how they fall into parts; none for a transition matrix.
    pub parts: Option<Parts>,
}

/// A transition matrix is taken for so many transitions a state on average: enough for the passes before a refit, whose own prior counts
/// transitions. The likelihood with its prior does not depend on it, since the prior asked for is multiplied by it as well.
const TRANSITIONS_A_STATE: f64 = 1000.0;

impl Loaded {
    /// What a likelihood is summed over, and how many transitions one unit of the prior is: the counts, one; for a transition matrix, which has
    /// none, `d xi_i p_ij` times [`TRANSITIONS_A_STATE`], so that a unit is what a state weighs on average.
    pub fn transitions(&self) -> Result<(Csr, f64)> {
        if let Some(parts) = &self.parts {
            return Ok((parts.counts.clone(), 1.0));
        }
        let (p, d) = (self.chain.p(), self.chain.states());
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (i, share) in self.chain.departures().iter().enumerate() {
            p.row(i).for_each(d, |j, x| {
                if x > 0.0 {
                    indices.push(j as u32);
                    values.push(TRANSITIONS_A_STATE * d as f64 * share * x);
                }
            });
            indptr.push(indices.len());
        }
        Ok((Csr::from_parts(d, d, indptr, indices, values)?, TRANSITIONS_A_STATE))
    }
}

/// Refuses what a transition matrix cannot give, before anything is solved. Where lambda is to be chosen, the choice itself refuses.
fn check_matrix(fit: &FitArgs) -> Result<()> {
    if fit.chooses() {
        return Ok(());
    }
    if fit.bootstrap > 0 {
        return Err(CliError::bad("E-CLI-ARGUMENT", "a transition matrix has no transitions that --bootstrap could draw anew")
            .remedy("give counts, or leave out --bootstrap"));
    }
    if fit.refit_kind() == RefitKind::Likelihood && fit.prior.is_none() {
        return Err(CliError::bad(
            "E-CLI-ARGUMENT",
            "a transition matrix has no transitions to hold out, so the prior of its likelihood refit cannot be chosen",
        )
        .remedy("give --prior, such as 0.1: a tenth of what a state weighs on average; 0 for none"));
    }
    Ok(())
}

/// Reads the inputs.
pub fn ingest(input: &InputArgs, keep_frames: bool, progress: &mut dyn Progress) -> Result<Ingested> {
    let mut settings = crate::inputs::settings(input)?;
    settings.keep_frames = keep_frames;
    Ok(metastate_ingest::read(&input.inputs, &settings, progress)?)
}

/// Reads the inputs and estimates the chain.
pub fn load(input: &InputArgs, fit: &FitArgs, progress: &mut dyn Progress) -> Result<Loaded> {
    estimate(ingest(input, fit.needs_parts(), progress)?, fit)
}

/// Estimates the chain behind what was read.
pub fn estimate(ingested: Ingested, fit: &FitArgs) -> Result<Loaded> {
    let inputs = ingested
        .inputs
        .iter()
        .map(|r| FileRecord { name: r.name.clone(), role: "data".into(), bytes: r.bytes, sha256: r.sha256.clone() })
        .collect();
    match ingested.data {
        Data::Counts(counted) => Ok(from_counted(counted, fit, inputs, ingested.hints)?.loaded()),
        Data::Matrix(matrix) => {
            check_matrix(fit)?;
            let weights = matrix.weights.map_or(RowWeights::Stationary, RowWeights::Given);
            let given = Given { weights, weight_power: fit.weight_power, index: Some(matrix.index) };
            let chain = match matrix.values {
                MatrixValues::Sparse(p) => Chain::from_sparse(p, given)?,
                MatrixValues::Dense(p) => Chain::from_dense(p, given)?,
            };
            Ok(Loaded {
                chain,
                coordinates: None,
                cell: None,
                inputs,
                rows: matrix.entries,
                rows_counted: matrix.entries,
                hints: ingested.hints,
                parts: None,
            })
        }
    }
}

/// Counts, the chain estimated from them, and what is known about the data behind it.
pub struct FromCounts {
    /// P, xi and labels.
    pub chain: Chain,
    /// The counts between the chain's states, in their order, and how they fall into parts.
    pub parts: Parts,
    /// Centres of the cells, in the order of the chain's states.
    pub coordinates: Option<Vec<(f64, f64)>>,
    /// Side of a cell in degrees, when the states are cells.
    pub cell: Option<f64>,
    inputs: Vec<FileRecord>,
    rows: u64,
    rows_counted: u64,
    hints: Vec<String>,
}

impl FromCounts {
    fn loaded(self) -> Loaded {
        let FromCounts { chain, parts, coordinates, cell, inputs, rows, rows_counted, hints } = self;
        Loaded { chain, coordinates, cell, inputs, rows, rows_counted, hints, parts: Some(parts) }
    }
}

/// Estimates the chain; states without weight are left out, the others keep their labels and places.
pub fn from_counted(counted: CountedStates, fit: &FitArgs, inputs: Vec<FileRecord>, hints: Vec<String>) -> Result<FromCounts> {
    let weights_by = match fit.weights_by {
        WeightsKind::Departures => WeightsBy::Departures,
        WeightsKind::Arrivals => WeightsBy::Arrivals,
    };
    let chain = Chain::estimate(&counted.counts, &Estimate { weights_by, weight_power: fit.weight_power })?;
    let index = counted.counts.index();
    let kept: Vec<usize> = chain.index().labels().filter_map(|l| index.position(&l)).map(|i| i as usize).collect();
    let parts = Parts::new(&counted.counts, counted.frames.as_deref(), &chain)?;
    let coordinates = counted.coordinates.map(|all| kept.iter().map(|&i| all[i]).collect());
    Ok(FromCounts { chain, parts, coordinates, cell: counted.cell, inputs, rows: counted.rows, rows_counted: counted.kept, hints })
}
