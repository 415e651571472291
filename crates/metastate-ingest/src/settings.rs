//! What the user asked for, as plain data. The command line and Python fill it in; nothing here parses options.

use metastate::CountMode;

use crate::log::LogColumns;
use crate::second::SecondLabel;

/// What the inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    /// One row a move.
    Trips,
    /// Sequences of states.
    Trajectories,
    /// Counts by pair of states.
    Counts,
    /// A transition matrix.
    Matrix,
}

impl As {
    /// The word for `--as`.
    pub fn name(self) -> &'static str {
        match self {
            As::Trips => "trips",
            As::Trajectories => "trajectories",
            As::Counts => "counts",
            As::Matrix => "matrix",
        }
    }
}

impl std::str::FromStr for As {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        [As::Trips, As::Trajectories, As::Counts, As::Matrix]
            .into_iter()
            .find(|a| a.name() == s)
            .ok_or_else(|| format!("`{s}` is none of trips, trajectories, counts, matrix"))
    }
}

/// West, south, east and north in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)] // the four words say it
pub struct BoundingBox {
    pub west: f64,
    pub south: f64,
    pub east: f64,
    pub north: f64,
}

impl std::str::FromStr for BoundingBox {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        let parts: Vec<f64> = s
            .split(',')
            .map(|p| p.trim().parse::<f64>().map_err(|_| format!("`{}` is not a number; give west,south,east,north in degrees", p.trim())))
            .collect::<Result<_, _>>()?;
        match parts[..] {
            [west, south, east, north] => Ok(BoundingBox { west, south, east, north }),
            _ => Err(format!("{} numbers were given; give west,south,east,north in degrees", parts.len())),
        }
    }
}

/// Side of a cell where trips are given by coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CellSize {
    /// A square with this side in degrees.
    Degrees(f64),
    /// A hexagon of the H3 grid at this resolution.
    H3(u8),
}

impl Default for CellSize {
    fn default() -> Self {
        CellSize::Degrees(0.001)
    }
}

impl CellSize {
    /// The side of squares in degrees.
    pub fn side(self) -> Option<f64> {
        match self {
            CellSize::Degrees(side) => Some(side),
            CellSize::H3(_) => None,
        }
    }

    /// The resolution of hexagons.
    pub fn resolution(self) -> Option<u8> {
        match self {
            CellSize::Degrees(_) => None,
            CellSize::H3(level) => Some(level),
        }
    }
}

impl std::fmt::Display for CellSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CellSize::Degrees(side) => write!(f, "{side}"),
            CellSize::H3(resolution) => write!(f, "h3:{resolution}"),
        }
    }
}

impl std::str::FromStr for CellSize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refusal =
            || format!("`{text}` is neither a side in degrees, such as 0.001, nor a resolution of H3 between 0 and 15, such as h3:8");
        match text.strip_prefix("h3:") {
            Some(resolution) => resolution.parse().ok().filter(|r| *r <= 15).map(CellSize::H3).ok_or_else(refusal),
            None => text.parse().map(CellSize::Degrees).map_err(|_| refusal()),
        }
    }
}

/// How text is cut into rows and columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextTable {
    /// The first line is a row like any other.
    pub no_header: bool,
    /// What separates the fields; found out from the first line where it is not given.
    pub delimiter: Option<Delimiter>,
    /// Names of the columns from left to right, in place of those of the header.
    pub columns: Vec<String>,
}

impl TextTable {
    /// Whether anything was said about it.
    pub fn is_given(&self) -> bool {
        *self != TextTable::default()
    }
}

/// What separates the fields of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiter {
    /// This letter.
    Letter(u8),
    /// Any number of blanks and tabs.
    Blanks,
}

impl Delimiter {
    /// The letter itself; a blank for any number of them.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Delimiter::Letter(letter) => letter,
            Delimiter::Blanks => b' ',
        }
    }

    pub(crate) fn of(byte: u8) -> Self {
        if byte == b' ' { Delimiter::Blanks } else { Delimiter::Letter(byte) }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Delimiter::Letter(b',') => "commas".to_owned(),
            Delimiter::Letter(b';') => "semicolons".to_owned(),
            Delimiter::Letter(b'\t') => "tabs".to_owned(),
            Delimiter::Letter(b'|') => "vertical bars".to_owned(),
            Delimiter::Letter(letter) => format!("`{}`", letter as char),
            Delimiter::Blanks => "blanks".to_owned(),
        }
    }
}

impl std::str::FromStr for Delimiter {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "comma" => Ok(Delimiter::Letter(b',')),
            "semicolon" => Ok(Delimiter::Letter(b';')),
            "tab" | "\t" | "\\t" => Ok(Delimiter::Letter(b'\t')),
            "bar" => Ok(Delimiter::Letter(b'|')),
            "blanks" | " " => Ok(Delimiter::Blanks),
            _ => match text.as_bytes() {
                [letter] if letter.is_ascii_punctuation() && *letter != b'"' => Ok(Delimiter::Letter(*letter)),
                _ => Err(format!("`{text}` is neither comma, semicolon, tab, bar, blanks nor a single character such as `:`")),
            },
        }
    }
}

/// How to read the inputs: the options of the same names.
#[derive(Debug, Clone, PartialEq)]
pub struct InputSettings {
    /// What the inputs are; guessed where that is safe.
    pub as_: Option<As>,
    /// How text is cut into a table.
    pub text: TextTable,
    /// Column of origins.
    pub from: Option<String>,
    /// Column of destinations.
    pub to: Option<String>,
    /// Column of the origin's longitude.
    pub from_lon: Option<String>,
    /// Column of the origin's latitude.
    pub from_lat: Option<String>,
    /// Column of the destination's longitude.
    pub to_lon: Option<String>,
    /// Column of the destination's latitude.
    pub to_lat: Option<String>,
    /// The cells that points fall into.
    pub cell: CellSize,
    /// Only trips with both ends inside.
    pub bbox: Option<BoundingBox>,
    /// Column of weights or counts.
    pub weight: Option<String>,
    /// A second label of each record.
    pub second: Option<SecondLabel>,
    /// The records are those of a log of a controlled chain.
    pub log: Option<LogColumns>,
    /// Only rows for which this condition holds.
    pub where_: Option<String>,
    /// Only states with at least this share of the departures.
    pub min_share: f64,
    /// Only states that stay with at most this share; `None` keeps all.
    pub max_self_share: Option<f64>,
    /// Column that names the trajectory.
    pub id: Option<String>,
    /// Column to sort by within a trajectory.
    pub time: Option<String>,
    /// Column of states.
    pub state: Option<String>,
    /// Frames between the two ends of a transition.
    pub lag: usize,
    /// Which pairs of frames count.
    pub count: CountMode,
    /// File with one label a line, for matrices.
    pub labels: Option<String>,
    /// File with the row weights of a matrix.
    pub weights: Option<String>,
    /// Bytes of memory for counting; beyond, sorted runs go to disk. `None` is no limit.
    pub memory_limit: Option<u64>,
    /// Keep the frames of trajectories (four bytes each), so that they can be cut into blocks.
    pub keep_frames: bool,
}

impl Default for InputSettings {
    fn default() -> Self {
        InputSettings {
            as_: None,
            text: TextTable::default(),
            from: None,
            to: None,
            from_lon: None,
            from_lat: None,
            to_lon: None,
            to_lat: None,
            cell: CellSize::default(),
            bbox: None,
            weight: None,
            second: None,
            log: None,
            where_: None,
            min_share: 0.0,
            max_self_share: None,
            id: None,
            time: None,
            state: None,
            lag: 1,
            count: CountMode::Sliding,
            labels: None,
            weights: None,
            memory_limit: None,
            keep_frames: false,
        }
    }
}

/// A file may unpack to this much when it must be read at any place; text is streamed and needs no limit.
const UNPACK_LIMIT: u64 = 1 << 40;

impl InputSettings {
    pub(crate) fn unpack_limit(&self, stored: u64) -> u64 {
        // No honest file shrinks more than a thousandfold; zeros packed with zstd do.
        stored.saturating_mul(1000).clamp(64 << 20, UNPACK_LIMIT)
    }

    /// The four coordinate columns, when the trips are given by coordinates.
    pub(crate) fn coordinate_columns(&self) -> [(&'static str, &Option<String>); 4] {
        [("--from-lon", &self.from_lon), ("--from-lat", &self.from_lat), ("--to-lon", &self.to_lon), ("--to-lat", &self.to_lat)]
    }
}
