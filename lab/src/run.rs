//! Runs the cells that are not finished, tells how far it is, and writes the document.

use std::path::PathBuf;
use std::time::Instant;

use metastate_report::folder::write_file;
use serde::{Deserialize, Serialize};

use crate::instance::Instance;
use crate::plan::{Cell, Key, Scale, What, cells, exact_start};
use crate::store::Store;
use crate::taxi::Trips;
use crate::{Error, Result, document, exact, sampled, taxi, traps};

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Which part.
    pub what: What,
    /// How large.
    pub scale: Scale,
    /// The folder of the document, the figures and the cells.
    pub out: PathBuf,
    /// Go on from the cells that are there.
    pub resume: bool,
    /// Trajectories of each kind, at most.
    pub trajectories: u64,
    /// No cell begins after so many seconds; the document then says what is missing.
    pub time_limit: Option<f64>,
    /// Files of taxi trips.
    pub data: Vec<PathBuf>,
    /// Seed of everything random.
    pub seed: u64,
}

/// Hears how far it is.
pub trait Host {
    /// One line.
    fn say(&mut self, line: &str);
    /// A cell begins: its name, its number, how many there are, and the seconds that are left, as far as is known.
    fn begin(&mut self, name: &str, number: usize, of: usize, left: f64);
    /// Whether to stop before the next cell.
    fn stop(&self) -> bool;
}

/// What was done.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The document.
    pub document: PathBuf,
    /// The figures.
    pub figures: Vec<PathBuf>,
    /// Cells computed now.
    pub computed: usize,
    /// Cells found finished.
    pub found: usize,
    /// Seconds of this run.
    pub seconds: f64,
}

/// What finished cells depend on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Basis {
    quick: bool,
    seed: u64,
    data: Vec<String>,
}

/// Name of the file that holds it.
const BASIS: &str = "basis";

/// Does it.
pub fn run(asked: &Asked, host: &mut dyn Host) -> Result<Outcome> {
    let clock = Instant::now();
    if asked.what.holds(What::Taxi) && asked.data.is_empty() {
        return Err(Error::NoData("the taxi trips need a file".into()));
    }
    let store = Store::new(&asked.out);
    check_basis(asked, &store)?;
    let all = cells(asked.what, asked.scale, asked.trajectories, asked.data.len());
    let pending: Vec<Cell> = all.iter().copied().filter(|c| !store.has(&c.name())).collect();
    // From +0: the sum of nothing is -0, and would be told as such.
    let expected = pending.iter().map(Cell::seconds).fold(0.0, |sum, s| sum + s);
    host.say(&format!("{} cells, {} of them finished; about {} on two idle cores", all.len(), all.len() - pending.len(), span(expected)));
    let mut work = Work { asked, instance: None, trips: None };
    let mut done = 0.0;
    let mut computed = 0;
    for (k, cell) in pending.iter().enumerate() {
        if asked.time_limit.is_some_and(|limit| clock.elapsed().as_secs_f64() > limit) {
            host.say(&format!("the time is up with {} cells left; --resume goes on from here", pending.len() - k));
            break;
        }
        if host.stop() {
            return Err(Error::Stopped);
        }
        // The model's seconds, corrected by how it did so far.
        let pace = if done > 20.0 { clock.elapsed().as_secs_f64() / done } else { 1.0 };
        host.begin(&cell.name(), k + 1, pending.len(), pace * (expected - done));
        let start = Instant::now();
        work.compute(cell, &store, start)?;
        done += cell.seconds();
        computed += 1;
    }
    let (text, figures) = document::write(asked, &store, &all)?;
    let place = asked.out.join("reproduction.md");
    write_file(&place, text.as_bytes())?;
    let mut written = Vec::new();
    for (name, svg) in figures {
        let figure = asked.out.join("reproduction").join(&name);
        write_file(&figure, svg.as_bytes())?;
        written.push(figure);
    }
    Ok(Outcome { document: place, figures: written, computed, found: all.len() - pending.len(), seconds: clock.elapsed().as_secs_f64() })
}

/// Seconds, minutes or hours.
pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn check_basis(asked: &Asked, store: &Store) -> Result<()> {
    let name = |p: &PathBuf| p.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let basis = Basis { quick: asked.scale == Scale::Quick, seed: asked.seed, data: asked.data.iter().map(name).collect() };
    match store.get::<Basis>(BASIS)? {
        None if store.is_empty() => store.put(BASIS, 0.0, &basis),
        Some(found) if asked.resume => {
            let data = found.data.is_empty() || basis.data.is_empty() || found.data == basis.data;
            if found.quick != basis.quick || found.seed != basis.seed || !data {
                return Err(Error::Cell(format!("the cells in {} belong to another run ({found:?})", asked.out.display())));
            }
            if found.data.is_empty() && !basis.data.is_empty() { store.put(BASIS, 0.0, &basis) } else { Ok(()) }
        }
        _ => Err(Error::Cell(format!("{} holds cells already; say --resume to go on from them", asked.out.display()))),
    }
}

/// What several cells share.
struct Work<'a> {
    asked: &'a Asked,
    instance: Option<Instance>,
    trips: Option<Trips>,
}

impl Work<'_> {
    fn compute(&mut self, cell: &Cell, store: &Store, start: Instant) -> Result<()> {
        let (name, seed, scale) = (cell.name(), self.asked.seed, self.asked.scale);
        let seconds = || start.elapsed().as_secs_f64();
        match *cell {
            Cell::Exact { d, lambda, paper_mode } => {
                let result = exact::solve(d, lambda, paper_mode, exact_start(scale), seed)?;
                store.put(&name, seconds(), &result)
            }
            Cell::ExactVariant { d, lambda, variant } => {
                let result = exact::variant(d, lambda, variant, exact_start(scale), seed)?;
                store.put(&name, seconds(), &result)
            }
            Cell::Path { key, trajectory } => {
                let result = sampled::path(self.instance(key, trajectory)?)?;
                store.put(&name, seconds(), &result)
            }
            Cell::Palm { key, trajectory, threshold, lambda } => {
                let result = sampled::palm(self.instance(key, trajectory)?, threshold, lambda)?;
                store.put(&name, seconds(), &result)
            }
            Cell::PalmPath { key, trajectory } => {
                let result = sampled::palm_path(self.instance(key, trajectory)?)?;
                store.put(&name, seconds(), &result)
            }
            Cell::Fixed { key, trajectory, lambda, rank } => {
                let result = sampled::fixed(self.instance(key, trajectory)?, lambda, rank)?;
                store.put(&name, seconds(), &result)
            }
            Cell::Default { key, trajectory } => {
                let result = sampled::default(self.instance(key, trajectory)?)?;
                store.put(&name, seconds(), &result)
            }
            Cell::Taxi { file, ratio } => {
                let result = taxi::zones(self.trips(file)?, ratio, seed)?;
                store.put(&name, seconds(), &result)
            }
            Cell::TaxiDefault { file } => {
                let result = taxi::default(self.trips(file)?, seed)?;
                store.put(&name, seconds(), &result)
            }
            Cell::Trap { number } => {
                let result = traps::measure(number, scale, seed)?;
                store.put(&name, seconds(), &result)
            }
        }
    }

    fn instance(&mut self, key: Key, trajectory: u64) -> Result<&Instance> {
        let same = self.instance.take().filter(|i| i.key == key && i.trajectory == trajectory);
        let instance = match same {
            Some(instance) => instance,
            None => Instance::new(key, trajectory, self.asked.seed)?,
        };
        Ok(self.instance.insert(instance))
    }

    fn trips(&mut self, file: usize) -> Result<&Trips> {
        let trips = match self.trips.take().filter(|t| t.file == file) {
            Some(trips) => trips,
            None => Trips::read(&self.asked.data, file, self.asked.seed)?,
        };
        Ok(self.trips.insert(trips))
    }
}
