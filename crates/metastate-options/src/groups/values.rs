//! Values that are neither a number nor one of a few words.

use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::entry::{Kind, Typed, told};

/// `--init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Init {
    /// Uniform on the simplices, as in the paper.
    Random,
    /// From the relaxation.
    Spectral,
    /// From the factors in this folder.
    Result(PathBuf),
}

impl Typed for Init {
    const KIND: Kind = Kind::Text;
}

impl From<String> for Init {
    fn from(text: String) -> Self {
        match text.as_str() {
            "random" => Init::Random,
            "spectral" => Init::Spectral,
            _ => Init::Result(PathBuf::from(text)),
        }
    }
}

impl From<Init> for String {
    fn from(init: Init) -> String {
        match init {
            Init::Random => "random".to_owned(),
            Init::Spectral => "spectral".to_owned(),
            Init::Result(folder) => folder.display().to_string(),
        }
    }
}

/// `--cell`: a number in JSON where it is a side in degrees, otherwise a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// Squares with this side in degrees.
    Degrees(f64),
    /// Hexagons of H3 at this resolution.
    H3(u8),
}

impl Default for Cell {
    fn default() -> Self {
        Cell::Degrees(0.001)
    }
}

impl Typed for Cell {
    const KIND: Kind = Kind::Text;
}

impl FromStr for Cell {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let cell = match text.strip_prefix("h3:") {
            Some(level) => level.parse().ok().filter(|r| *r <= 15).map(Cell::H3),
            None => text.trim().parse().ok().filter(|x: &f64| x.is_finite()).map(Cell::Degrees),
        };
        cell.ok_or_else(|| format!("`{text}` is neither a side in degrees nor a resolution of H3"))
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Degrees(side) => write!(f, "{side}"),
            Cell::H3(level) => write!(f, "h3:{level}"),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Degrees(side) => to.serialize_f64(*side),
            Cell::H3(_) => to.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        told(&Value::deserialize(from)?).unwrap_or_default().parse().map_err(serde::de::Error::custom)
    }
}

/// `--clusters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Clusters {
    /// k-means, one cluster for each meta-state.
    Rank,
    /// Every state goes where its membership is largest.
    Membership,
    /// k-means, so many clusters.
    Count(usize),
}

impl Typed for Clusters {
    const KIND: Kind = Kind::Text;
}

impl FromStr for Clusters {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "rank" => Ok(Clusters::Rank),
            "membership" => Ok(Clusters::Membership),
            _ => text.parse().map(Clusters::Count).map_err(|_| format!("`{text}` is neither a number nor `rank` nor `membership`")),
        }
    }
}

impl TryFrom<String> for Clusters {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Clusters> for String {
    fn from(clusters: Clusters) -> String {
        match clusters {
            Clusters::Rank => "rank".to_owned(),
            Clusters::Membership => "membership".to_owned(),
            Clusters::Count(k) => k.to_string(),
        }
    }
}

/// The power of the weights stands as the number 1, 0.5 or 0 in JSON. Folders of earlier versions have it as a text, which is read as well.
pub mod weight_power {
    use super::*;
    use metastate::WeightPower;
    use serde::de::Error;

    /// As a number.
    pub fn serialize<S: Serializer>(power: &WeightPower, to: S) -> Result<S::Ok, S::Error> {
        match power {
            WeightPower::One => to.serialize_u64(1),
            WeightPower::Half => to.serialize_f64(0.5),
            WeightPower::Zero => to.serialize_u64(0),
        }
    }

    /// From a number, or from a text of older folders.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<WeightPower, D::Error> {
        let text = told(&Value::deserialize(from)?).unwrap_or_default();
        match text.as_str() {
            "1" => Ok(WeightPower::One),
            "0.5" => Ok(WeightPower::Half),
            "0" => Ok(WeightPower::Zero),
            _ => Err(D::Error::custom(format!("weight_power is {text}; it must be 1, 0.5 or 0"))),
        }
    }
}
