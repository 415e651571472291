//! What the options about inputs mean to the reader.

use metastate::CountMode;
use metastate_ingest::{As, CellSize, Delimiter, InputSettings, TextTable};

use crate::args::{Cell, CountKind, InputArgs, InputKind};
use crate::error::{CliError, Result};

/// The settings of the reader that go with these options.
pub fn settings(input: &InputArgs) -> Result<InputSettings> {
    let bbox = input.bbox.as_deref().map(str::parse).transpose();
    let bbox = bbox.map_err(|e: String| CliError::bad("E-CLI-ARGUMENT", format!("--bbox: {e}")))?;
    let delimiter = input.delimiter.as_deref().map(str::parse::<Delimiter>).transpose();
    let delimiter = delimiter.map_err(|e| CliError::bad("E-CLI-ARGUMENT", format!("--delimiter: {e}")))?;
    Ok(InputSettings {
        second: None,
        text: TextTable { no_header: input.no_header, delimiter, columns: input.columns.clone() },
        as_: input.as_.map(|kind| match kind {
            InputKind::Trips => As::Trips,
            InputKind::Trajectories => As::Trajectories,
            InputKind::Counts => As::Counts,
            InputKind::Matrix => As::Matrix,
        }),
        from: input.from.clone(),
        to: input.to.clone(),
        from_lon: input.from_lon.clone(),
        from_lat: input.from_lat.clone(),
        to_lon: input.to_lon.clone(),
        to_lat: input.to_lat.clone(),
        cell: match input.cell {
            Cell::Degrees(side) => CellSize::Degrees(side),
            Cell::H3(level) => CellSize::H3(level),
        },
        bbox,
        weight: input.weight.clone(),
        where_: input.where_.clone(),
        min_share: input.min_share,
        max_self_share: input.max_self_share,
        id: input.id.clone(),
        time: input.time.clone(),
        state: input.state.clone(),
        lag: input.lag,
        count: match input.count {
            CountKind::Sliding => CountMode::Sliding,
            CountKind::Strided => CountMode::Strided,
        },
        labels: input.labels.clone(),
        weights: input.weights.clone(),
        memory_limit: input.memory_limit,
        part: None,
        reader: None,
        keep_frames: false,
    })
}
