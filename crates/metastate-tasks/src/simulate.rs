//! `metastate simulate`: data with a known answer, in files.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch};
use metastate::simulate::{City, GroupWorld, Trip, city, controlled, planted};
use metastate_report::npz::{npy_bytes, write_counts_matrix};
use metastate_report::{Claim, folder, number};
use parquet::arrow::ArrowWriter;
use serde::Serialize;

use crate::args::{CityArgs, ControlledArgs, GroupsArgs, PlantedArgs, SimulateWhat, TrajectoryArgs};
use crate::count::check_place;
use crate::error::{CliError, Result};

/// Zones of a simulated city.
pub const CITY_ZONES: usize = 8;
/// Records of a simulated log, at most.
const MOST_RECORDS: usize = 100_000_000;
/// `P.npy` is written up to this size.
const DENSE_STATES: usize = 20_000;

/// What was written.
#[derive(Debug, Serialize)]
pub struct Simulated {
    what: &'static str,
    states: usize,
    rank: usize,
    files: Vec<String>,
}

impl Simulated {
    /// For people.
    pub fn describe(&self) -> String {
        format!("{}: {} states behind {} hidden ones\nwritten to {}", self.what, self.states, self.rank, self.files.join(", "))
    }
}

/// Draws and writes.
pub fn run(what: &SimulateWhat, seed: u64) -> Result<Simulated> {
    match what {
        SimulateWhat::Planted(PlantedArgs { states, rank, steps, out, force }) => {
            let _claim = Claim::folder(out, *force)?;
            write_planted(*states, *rank, *steps, out, *force, seed)
        }
        SimulateWhat::Trajectory(TrajectoryArgs { states, rank, steps, out, force }) => {
            let _claim = check_place(out, *force, &[])?;
            let walk = planted(*states, *rank, seed)?.sample_trajectory(*steps, seed)?;
            let bytes = match extension(out) {
                "npy" => npy_integers(&walk),
                "txt" => walk.iter().map(u32::to_string).collect::<Vec<_>>().join(" ").into_bytes(),
                _ => return Err(extensions(out, ".npy or .txt")),
            };
            folder::write_file(out, &bytes)?;
            Ok(Simulated { what: "trajectory", states: *states, rank: *rank, files: vec![out.display().to_string()] })
        }
        SimulateWhat::City(CityArgs { trips, out, force }) => {
            let zones = with_suffix(out, ".zones.csv");
            let _claims = [check_place(out, *force, &[])?, check_place(&zones, *force, &[])?];
            let city = city(CITY_ZONES, seed)?;
            write_trips(out, &city.trips(*trips, seed)?)?;
            write_zones(&zones, &city)?;
            let files = vec![out.display().to_string(), zones.display().to_string()];
            Ok(Simulated { what: "city", states: city.cells(), rank: city.zones(), files })
        }
        SimulateWhat::Controlled(asked) => {
            let _claim = Claim::folder(&asked.out, asked.force)?;
            write_controlled(asked, seed)
        }
        SimulateWhat::Groups(args) => groups(args, seed),
    }
}

/// A log and the truth behind it.
fn write_controlled(asked: &ControlledArgs, seed: u64) -> Result<Simulated> {
    let ControlledArgs { states, actions, rank, each, episodes, length, noise, out, force } = asked;
    let chain = controlled(*states, *actions, *rank, seed)?;
    let records =
        episodes.map_or_else(|| each.checked_mul(states * actions), |n| n.checked_mul(*length)).filter(|n| (1..=MOST_RECORDS).contains(n));
    if records.is_none() {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the log would have no record, or too many for this")
            .remedy(format!("stay at or below {MOST_RECORDS} records")));
    }
    let log = match episodes {
        Some(episodes) => chain.episodes(*episodes, *length, *noise, seed)?,
        None => chain.tries(*each, *noise, seed)?,
    };
    let r = log.records();
    let mut text = String::from(if episodes.is_some() { "episode,step,state,action,reward,next\n" } else { "state,action,reward,next\n" });
    for i in 0..r.len() {
        if episodes.is_some() {
            let _ = write!(text, "{},{},", i / length, i % length); // into a String
        }
        let reward = r.reward.as_ref().map_or(0.0, |list| list[i]);
        let _ = writeln!(text, "{},{},{reward:.6},{}", r.from[i], r.action[i], r.to[i]); // into a String
    }
    let draft = folder::Draft::begin(out)?;
    let rewards = chain.rewards();
    let files = ["log.csv", "U.npy", "V.npy", "rewards.npy"];
    draft.file("log.csv", text.as_bytes())?;
    draft.file("U.npy", &npy_bytes(&[states * actions, *rank], chain.u.as_slice()))?;
    draft.file("V.npy", &npy_bytes(&[*states, *rank], chain.v.as_slice()))?;
    draft.file("rewards.npy", &npy_bytes(&[rewards.len()], &rewards))?;
    draft.finish(*force)?;
    Ok(Simulated {
        what: "controlled",
        states: *states,
        rank: *rank,
        files: files.iter().map(|f| out.join(f).display().to_string()).collect(),
    })
}

fn groups(GroupsArgs { states, groups, transitions, out, force }: &GroupsArgs, seed: u64) -> Result<Simulated> {
    if extension(out) != "npz" {
        return Err(extensions(out, ".npz"));
    }
    let truth = with_suffix(out, ".groups.csv");
    let _claims = [check_place(out, *force, &[])?, check_place(&truth, *force, &[])?];
    let world = GroupWorld::new(*states, *groups, *transitions, seed)?;
    write_counts_matrix(out, *states, &|each| world.for_each_row(|columns, counts| each(columns, counts)))?;
    let mut text = String::from("state,group\n");
    for (i, g) in world.group.iter().enumerate() {
        let _ = writeln!(text, "{i},{}", g + 1); // into a String
    }
    folder::write_file(&truth, text.as_bytes())?;
    let files = vec![out.display().to_string(), truth.display().to_string()];
    Ok(Simulated { what: "groups", states: *states, rank: *groups, files })
}

fn write_planted(states: usize, rank: usize, steps: Option<u64>, out: &Path, force: bool, seed: u64) -> Result<Simulated> {
    let chain = planted(states, rank, seed)?;
    let draft = folder::Draft::begin(out)?;
    let mut files = vec!["U.npy", "V.npy", "xi.npy"];
    draft.file("U.npy", &npy_bytes(&[states, rank], chain.u.as_slice()))?;
    draft.file("V.npy", &npy_bytes(&[states, rank], chain.v.as_slice()))?;
    draft.file("xi.npy", &npy_bytes(&[states], &chain.xi))?;
    match steps {
        Some(steps) => {
            let mut text = String::from("from,to,count\n");
            for (i, j, n) in chain.sample_counts(steps, seed)?.csr().triplets() {
                let _ = writeln!(text, "{i},{j},{n}"); // into a String
            }
            draft.file("counts.csv", text.as_bytes())?;
            files.push("counts.csv");
        }
        None if states <= DENSE_STATES => {
            let p: Vec<f64> = (0..states).flat_map(|i| chain.p_row(i)).collect();
            draft.file("P.npy", &npy_bytes(&[states, states], &p))?;
            files.push("P.npy");
        }
        None => {
            return Err(CliError::bad("E-CLI-ARGUMENT", format!("P.npy of {states} states would be too large"))
                .remedy(format!("stay at or below {DENSE_STATES} states, or give --steps to draw counts")));
        }
    }
    draft.finish(force)?;
    let files = files.iter().map(|f| out.join(f).display().to_string()).collect();
    Ok(Simulated { what: "planted", states, rank, files })
}

/// Trips as `from_lon, from_lat, to_lon, to_lat`.
pub fn write_trips(out: &Path, trips: &[Trip]) -> Result<()> {
    let bytes = match extension(out) {
        "csv" => {
            let mut text = String::from("from_lon,from_lat,to_lon,to_lat\n");
            for t in trips {
                let _ = writeln!(text, "{:.6},{:.6},{:.6},{:.6}", t.start.0, t.start.1, t.end.0, t.end.1); // into a String
            }
            text.into_bytes()
        }
        "parquet" => {
            let column = |pick: &dyn Fn(&Trip) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(trips.iter().map(pick))) };
            let columns = [
                ("from_lon", column(&|t| t.start.0)),
                ("from_lat", column(&|t| t.start.1)),
                ("to_lon", column(&|t| t.end.0)),
                ("to_lat", column(&|t| t.end.1)),
            ];
            parquet_bytes(columns).map_err(|e| CliError::write(out, e))?
        }
        _ => return Err(extensions(out, ".csv or .parquet")),
    };
    Ok(folder::write_file(out, &bytes)?)
}

fn parquet_bytes(columns: [(&str, ArrayRef); 4]) -> std::result::Result<Vec<u8>, String> {
    let batch = RecordBatch::try_from_iter(columns).map_err(|e| e.to_string())?;
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).map_err(|e| e.to_string())?;
    writer.write(&batch).map_err(|e| e.to_string())?;
    writer.close().map_err(|e| e.to_string())?;
    Ok(bytes)
}

fn write_zones(out: &Path, city: &City) -> Result<()> {
    let mut text = String::from("lon,lat,zone,activity\n");
    for i in 0..city.cells() {
        let (lon, lat) = city.centre(i);
        let _ = writeln!(text, "{},{},{},{}", number(lon), number(lat), city.zone[i] + 1, number(city.activity[i])); // into a String
    }
    Ok(folder::write_file(out, text.as_bytes())?)
}

fn npy_integers(walk: &[u32]) -> Vec<u8> {
    // The header of float64 differs from that of int64 in one letter.
    let mut bytes = npy_bytes(&[walk.len()], &[]);
    if let Some(at) = bytes.windows(3).position(|w| w == b"<f8") {
        bytes[at + 1] = b'i';
    }
    walk.iter().for_each(|s| bytes.extend(i64::from(*s).to_le_bytes()));
    bytes
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or("")
}

fn extensions(path: &Path, allowed: &str) -> CliError {
    CliError::bad("E-CLI-ARGUMENT", format!("the name of this file must end in {allowed}")).at(path.display().to_string())
}

fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
