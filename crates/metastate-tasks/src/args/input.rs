//! Options that say what the inputs are; the same for `fit` and `count`.

use clap::{Args, ValueEnum};
use metastate::CountMode;
use metastate_ingest::{As, InputSettings};
use serde::{Deserialize, Serialize};

/// Stands for data that came from memory, where a file would be named.
pub const MEMORY: &str = "(memory)";

/// The inputs and how to read them.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Input")]
#[allow(missing_docs)] // each option's help says it
pub struct InputArgs {
    /// Files, patterns in quotes, or `-` for standard input; all of them are one data set
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<String>,
    /// What the inputs are; guessed where that is safe
    #[arg(long = "as", value_enum, value_name = "KIND")]
    #[serde(rename = "as")]
    pub as_: Option<InputKind>,
    /// Column of origins
    #[arg(long, value_name = "COL")]
    pub from: Option<String>,
    /// Column of destinations
    #[arg(long, value_name = "COL")]
    pub to: Option<String>,
    /// Column of the origin's longitude
    #[arg(long, value_name = "COL")]
    pub from_lon: Option<String>,
    /// Column of the origin's latitude
    #[arg(long, value_name = "COL")]
    pub from_lat: Option<String>,
    /// Column of the destination's longitude
    #[arg(long, value_name = "COL")]
    pub to_lon: Option<String>,
    /// Column of the destination's latitude
    #[arg(long, value_name = "COL")]
    pub to_lat: Option<String>,
    /// Side of a cell in degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 0.001)]
    pub cell: f64,
    /// Only trips with both ends inside west,south,east,north
    #[arg(long, value_name = "W,S,E,N", allow_hyphen_values = true)]
    pub bbox: Option<String>,
    /// Column of weights or counts
    #[arg(long, value_name = "COL")]
    pub weight: Option<String>,
    /// Only rows for which this condition (as in SQL) holds
    #[arg(long = "where", value_name = "CONDITION")]
    #[serde(rename = "where")]
    pub where_: Option<String>,
    /// Only states with at least this share of the departures
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub min_share: f64,
    /// Only states that stay with at most this share
    #[arg(long, value_name = "SHARE")]
    pub max_self_share: Option<f64>,
    /// Column that names the trajectory
    #[arg(long, value_name = "COL")]
    pub id: Option<String>,
    /// Column to sort by within a trajectory
    #[arg(long, value_name = "COL")]
    pub time: Option<String>,
    /// Column of states
    #[arg(long, value_name = "COL")]
    pub state: Option<String>,
    /// Frames between the two ends of a transition
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub lag: usize,
    /// Which pairs of frames count
    #[arg(long, value_enum, default_value = "sliding")]
    pub count: CountKind,
    /// File with one label a line, for matrices
    #[arg(long, value_name = "FILE")]
    pub labels: Option<String>,
    /// File with the row weights of a transition matrix; its stationary law without one
    #[arg(long, value_name = "FILE")]
    pub weights: Option<String>,
    /// Memory for counting, such as 4G; beyond it, sorted runs go to disk
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory_limit: Option<u64>,
}

/// `--as`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum InputKind {
    Trips,
    Trajectories,
    Counts,
    Matrix,
}

/// `--count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum CountKind {
    Sliding,
    Strided,
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        other => return Err(format!("`{other}` is no unit; use K, M, G or T")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is no size; write it like 4G"))?;
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too large"))
}

impl InputArgs {
    /// Reads these files with everything else by default.
    pub fn files(inputs: Vec<String>) -> Self {
        InputArgs {
            inputs,
            as_: None,
            from: None,
            to: None,
            from_lon: None,
            from_lat: None,
            to_lon: None,
            to_lat: None,
            cell: 0.001,
            bbox: None,
            weight: None,
            where_: None,
            min_share: 0.0,
            max_self_share: None,
            id: None,
            time: None,
            state: None,
            lag: 1,
            count: CountKind::Sliding,
            labels: None,
            weights: None,
            memory_limit: None,
        }
    }

    /// For the reader.
    pub fn settings(&self) -> Result<InputSettings, String> {
        let bbox = self.bbox.as_deref().map(str::parse).transpose().map_err(|e: String| format!("--bbox: {e}"))?;
        Ok(InputSettings {
            as_: self.as_.map(|kind| match kind {
                InputKind::Trips => As::Trips,
                InputKind::Trajectories => As::Trajectories,
                InputKind::Counts => As::Counts,
                InputKind::Matrix => As::Matrix,
            }),
            from: self.from.clone(),
            to: self.to.clone(),
            from_lon: self.from_lon.clone(),
            from_lat: self.from_lat.clone(),
            to_lon: self.to_lon.clone(),
            to_lat: self.to_lat.clone(),
            cell: self.cell,
            bbox,
            weight: self.weight.clone(),
            where_: self.where_.clone(),
            min_share: self.min_share,
            max_self_share: self.max_self_share,
            id: self.id.clone(),
            time: self.time.clone(),
            state: self.state.clone(),
            lag: self.lag,
            count: match self.count {
                CountKind::Sliding => CountMode::Sliding,
                CountKind::Strided => CountMode::Strided,
            },
            labels: self.labels.clone(),
            weights: self.weights.clone(),
            memory_limit: self.memory_limit,
            keep_frames: false,
        })
    }
}
