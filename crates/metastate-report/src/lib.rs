//! The result folder: what a fit leaves behind, and how it is read again.
//!
//! A folder appears whole or not at all: see [`folder`]. Arrays are NumPy's (`.npz`), tables are CSV and Parquet, everything
//! else stands in `summary.json`. The bytes of `factors.npz` and `states.csv` depend on the numbers alone.

mod chart;
mod error;
mod figure;
pub mod folder;
mod forecast;
pub mod hash;
mod load;
mod map;
pub mod npz;
pub mod page;
mod parquet_table;
mod plots;
mod png;
mod result;
mod summary;
mod tables;
mod zones;

pub use error::{Error, Result};
pub use figure::{Figure, Series};
pub use forecast::{
    CheckRow, CommittorRow, Forecast, HittingRow, IdentityRow, LawRow, PassageRow, Prediction, StationaryClass, TimescaleRow,
    write_forecast,
};
pub use load::{Loaded, load, load_extras};
pub use map::{bar_chart, zone_map};
pub use png::Painter;
pub use result::{FitResult, pictures, remake, write};
pub use summary::{ErrorMeasures, FileRecord, LedgerRecord, SCHEMA, Summary};
pub use tables::{csv_field, number, parse_csv};
pub use zones::ZoneSet;
