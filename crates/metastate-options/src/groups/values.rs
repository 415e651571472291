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
