//! The result folder: what a fit leaves behind, and how it is read again.
//!
//! A folder appears whole or not at all: see [`folder`]. Arrays are NumPy's (`.npz`), tables are CSV and Parquet, everything
//! else stands in `summary.json`. The bytes of `factors.npz` and `states.csv` depend on the numbers alone.

#![forbid(unsafe_code)]

mod bars;
mod chart;
mod claim;
mod colours;
pub mod disk;
mod error;
mod figure;
mod fit_tables;
pub mod folder;
mod forecast;
mod ground;
pub mod hash;
pub mod inside;
mod kinetic_plots;
mod kinetics;
mod load;
mod map;
mod multiples;
pub mod npz;
pub mod page;
mod parquet_table;
mod plan;
mod plots;
mod png;
mod result;
mod sheet;
mod slices;
mod spread;
mod summary;
mod tables;
mod zones;

pub use bars::bar_chart;
pub use claim::Claim;
pub use colours::colour as zone_colour;
pub use error::{Error, Result};
pub use figure::{Figure, Series};
pub use fit_tables::{path_csv, ranks_csv, uncertainty_csv};
pub use forecast::{
    BlendRecord, CheckRow, CommittorRow, FateRow, Forecast, HittingRow, IdentityRow, LawRow, PassageRow, PathwayRow, Prediction, RateRow,
    SliceForecast, StationaryClass, TimescaleRow, write_forecast,
};
pub use ground::{Ground, Outline, Shapes};
pub use kinetics::{KINETICS_FILE, SavedKinetics, kinetics_npz, load_kinetics};
pub use load::{Destinations, SavedResult, load, load_extras, load_zone_flows};
pub use map::{MapLook, zone_map};
pub use plan::{
    ACTIONS_FILE, BoundRecord, CheckRecord, MetastateRecord, PAIRS_FILE, PLAN_FILE, PLAN_SCHEMA, POLICY_FILE, PlanRecord, PolicyRow,
    Q_FILE, QRow, REWARDS_FILE, actions_csv, load_plan, pairs_csv, policy_csv, q_parquet, rewards_csv, write_plan,
};
pub use png::Painter;
pub use result::{FitResult, LargestMembership, SlicedV, pictures, put_places, remake, write};
pub use slices::{CHANGES_FILE, PROFILES_FILE, SLICE_ROWS_FILE, SLICES_FILE, changes_csv, profiles_parquet, slice_rows_npz, slices_csv};
pub use summary::{
    BoundProof, ChangeRecord, ChoiceFrame, ChoiceRecord, ChosenScore, ControlRecord, EmpiricalRecord, Ends, ErrorMeasures, FileRecord,
    KineticsRecord, LeastSquaresRecord, LedgerRecord, LikelihoodRecord, Mismatch, PriorRecord, RefitRecord, RewardsRecord, SCHEMA,
    ScoreRecord, SettingsRecord, SlicesRecord, StartWord, StatusWord, Summary, TriedStart, UncertaintyRecord, WhitenedRecord,
    ZoneChangeRecord, summary_schema,
};
pub use tables::{DESTINATIONS_FILE, csv_field, destinations_csv, number, parse_csv, spreadsheet_field};
pub use zones::{ZONE_FLOWS_FILE, ZoneSet};
