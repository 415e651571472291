//! `metastate demo`: a city from nothing, its zones found again by `metastate fit` with nothing given.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use metastate::aggregate::Overlap;
use metastate::simulate::{CITY_CELL, City, city};
use metastate_report::{Summary, folder};
use serde::Serialize;

use crate::args::{DemoArgs, FitArgs, InputArgs, RunArgs};
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::simulate::{CITY_ZONES, write_trips};
use crate::stop::Stopper;
use crate::{count, fit};

/// What the tour showed.
#[derive(Debug, Serialize)]
pub struct Tour {
    trips: String,
    cells: usize,
    zones_planted: usize,
    zones_found: usize,
    /// Adjusted Rand index: 1 is a perfect match, 0 what chance gives.
    adjusted_rand_index: f64,
    out: String,
    summary: Summary,
}

impl Tour {
    /// For people.
    pub fn describe(&self) -> String {
        let page = Path::new(&self.out).join("report.html");
        let page = std::path::absolute(&page).unwrap_or(page);
        let open = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        format!(
            "{}\n\n{} zones were planted in {} cells; {} meta-states were found.\nMatch with the planted zones (adjusted Rand index): {:.3}\n\nThe command that does the same:\n  {}\nCheck the result again:\n  metastate verify {}\nOpen the page, in any browser and without a network:\n  {open} {}",
            fit::describe(&self.summary, Path::new(&self.out)),
            self.zones_planted,
            self.cells,
            self.zones_found,
            self.adjusted_rand_index,
            self.summary.command,
            self.out,
            page.display()
        )
    }
}

/// Simulates, fits, compares.
pub fn run(command: &DemoArgs, seed: u64, reporter: &mut Reporter, stopper: &Stopper) -> Result<Tour> {
    let out = command.out.clone().unwrap_or_else(first_free);
    folder::check_free(&out, command.force)?;
    let mut name = out.file_name().ok_or_else(|| CliError::exists(&out))?.to_owned();
    name.push("-trips.csv");
    let trips = out.with_file_name(name);
    let _claim = count::check_place(&trips, command.force, &[])?;
    let city = city(CITY_ZONES, seed)?;
    reporter.say(format!("a city of {} cells on a coast, {} planted zones, {} trips", city.cells(), city.zones(), command.trips));
    write_trips(&trips, &city.trips(command.trips, seed)?)?;

    let column = |name: &str| Some(name.to_owned());
    let input = InputArgs {
        from_lon: column("from_lon"),
        from_lat: column("from_lat"),
        to_lon: column("to_lon"),
        to_lat: column("to_lat"),
        cell: crate::args::Cell::Degrees(CITY_CELL),
        ..InputArgs::files(vec![trips.display().to_string()])
    };
    let command_line = format!(
        "metastate fit {} --from-lon from_lon --from-lat from_lat --to-lon to_lon --to-lat to_lat --cell {CITY_CELL} --seed {seed} --out {}",
        trips.display(),
        out.display()
    );
    let run = RunArgs { out: out.clone(), force: command.force, ..RunArgs::default() };
    let job = fit::Job { input, fit: FitArgs::default(), run, whole_path: false, seed, command: command_line };
    let summary = fit::run(&job, reporter, stopper)?;
    let result = metastate_report::load(&out)?;
    Ok(Tour {
        trips: trips.display().to_string(),
        cells: city.cells(),
        zones_planted: city.zones(),
        zones_found: summary.refit.as_ref().map_or(summary.rank, |r| r.rank()),
        adjusted_rand_index: Overlap::new(pairs(&city, &result.states)).adjusted_rand().unwrap_or(f64::NAN),
        out: out.display().to_string(),
        summary,
    })
}

fn first_free() -> PathBuf {
    let name = |k: usize| PathBuf::from(if k == 1 { "metastate-demo".to_owned() } else { format!("metastate-demo-{k}") });
    let taken = |path: &PathBuf| path.exists() || PathBuf::from(format!("{}-trips.csv", path.display())).exists();
    (1..).map(name).find(|path| !taken(path)).unwrap_or_default()
}

/// Planted zone and found zone of each cell, matched by the coordinates in `states.csv`; each cell weighs one.
fn pairs(city: &City, states: &[Vec<String>]) -> Vec<(u32, u32, f64)> {
    let key = |lon: f64, lat: f64| ((lon / CITY_CELL).floor() as i64, (lat / CITY_CELL).floor() as i64);
    let planted: HashMap<(i64, i64), u32> = (0..city.cells())
        .map(|i| {
            let (lon, lat) = city.centre(i);
            (key(lon, lat), city.zone[i])
        })
        .collect();
    let zone = states.first().and_then(|header| header.iter().position(|name| name == "zone")).unwrap_or(usize::MAX);
    let found = |row: &Vec<String>| {
        let n = row.len();
        let (lon, lat) = (row.get(n.checked_sub(2)?)?.parse().ok()?, row.last()?.parse().ok()?);
        Some((*planted.get(&key(lon, lat))?, row.get(zone)?.parse().ok()?, 1.0))
    };
    states.iter().skip(1).filter_map(found).collect()
}
