//! The program `metastate-reproduce`, which `metastate reproduce` hands over to: the tables and figures of the paper's section 6.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use metastate_cli::{parse, run as cli};
use metastate_lab::{Asked, Error, Host, Outcome, Scale, What, run as run_lab};
use metastate_options::{Given, ReproduceArgs, ReproduceWhat, find};
use metastate_tasks::error::{CliError, Result};
use metastate_tasks::progress::Reporter;
use metastate_tasks::stop::{Doing, Stopper};

const PROGRAM: &str = "metastate-reproduce";

fn main() -> ExitCode {
    let Some(command) = find("reproduce") else { unreachable!("the catalogue has the command reproduce") };
    cli::end(parse::typed_of(PROGRAM, command).and_then(|given| reproduce(&given)))
}

fn reproduce(given: &Given) -> Result<ExitCode> {
    let mut session = cli::Session::begin(given)?;
    let seed = session.common.seed;
    let outcome = run(&given.checked()?, seed, &mut session.reporter, &session.stopper)?;
    session.tell(&outcome, || describe(&outcome))?;
    Ok(ExitCode::SUCCESS)
}

struct Told<'a> {
    reporter: &'a mut Reporter,
    stopper: &'a Stopper,
}

impl Host for Told<'_> {
    fn say(&mut self, line: &str) {
        self.reporter.say(line);
    }

    fn begin(&mut self, name: &str, number: usize, of: usize, left: f64) {
        self.reporter.cell(name, number, of, left);
    }

    fn stop(&self) -> bool {
        self.stopper.asked()
    }
}

/// Runs what is not finished, writes the document.
fn run(command: &ReproduceArgs, seed: u64, reporter: &mut Reporter, stopper: &Stopper) -> Result<Outcome> {
    let what = match command.what {
        ReproduceWhat::TableExact => What::TableExact,
        ReproduceWhat::TableD => What::TableD,
        ReproduceWhat::TableR => What::TableR,
        ReproduceWhat::TableN => What::TableN,
        ReproduceWhat::Taxi => What::Taxi,
        ReproduceWhat::All => What::All,
    };
    let data = if what.holds(What::Taxi) { trips(&command.data)? } else { Vec::new() };
    let asked = Asked {
        what,
        scale: if command.quick { Scale::Quick } else { Scale::Full },
        out: command.out.clone(),
        resume: command.resume,
        trajectories: command.trajectories,
        time_limit: command.time_limit,
        data,
        seed,
    };
    // A signal ends the process within a cell; the finished ones are on disk.
    let again = format!("say the same with --resume; finished cells are in {}", command.out.join("cells").display());
    stopper.lock().path_checkpoint = Some((command.out.join("cells"), again));
    let outcome = run_lab(&asked, &mut Told { reporter: &mut *reporter, stopper }).map_err(|e| told(e, &command.out))?;
    stopper.doing(Doing::Done);
    reporter.clear();
    Ok(outcome)
}

/// The files; of a folder, those that are trips of New York's taxis.
fn trips(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if given.is_empty() {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the taxi part needs trips, and no file of them was named").remedy(
            "name a file of the TLC's records or a folder that holds nyc_taxi_trips_*.parquet with --data, or ask for the tables one by one",
        ));
    }
    let mut files = Vec::new();
    for place in given {
        if !place.exists() {
            return Err(CliError::bad("E-CLI-ARGUMENT", "there is no such file or folder of trips")
                .at(place.display().to_string())
                .remedy("name a file of the TLC's records, or a folder that holds nyc_taxi_trips_*.parquet, with --data"));
        }
        if place.is_dir() {
            let found = in_folder(place);
            if found.is_empty() {
                return Err(CliError::bad("E-CLI-ARGUMENT", "no file in this folder is named nyc_taxi_trips_*.parquet")
                    .at(place.display().to_string())
                    .remedy("name the file itself with --data"));
            }
            files.extend(found);
        } else {
            files.push(place.clone());
        }
    }
    Ok(files)
}

fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let named = |p: &PathBuf| {
        let name = p.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        name.starts_with("nyc_taxi_trips_") && name.ends_with(".parquet")
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).filter(named).collect();
    files.sort();
    files
}

fn told(e: Error, out: &Path) -> CliError {
    match e {
        Error::Method(e) => CliError::from(e),
        Error::Data(e) => CliError::from(e),
        Error::Files(e) => CliError::from(e),
        Error::Cell(sentence) => CliError::bad("E-CLI-EXISTS", sentence)
            .remedy("say --resume with the options of the first run, or name another folder with --out"),
        Error::NoData(sentence) => CliError::bad("E-CLI-ARGUMENT", sentence).remedy("name the trips with --data"),
        Error::Stopped => CliError::interrupted("interrupted; the finished cells are kept")
            .at(out.display().to_string())
            .remedy("the same command with --resume goes on from them"),
    }
}

/// For people.
fn describe(outcome: &Outcome) -> String {
    format!(
        "{} cells computed, {} found finished, {:.0} s\nwritten to {} with {} figures",
        outcome.computed,
        outcome.found,
        outcome.seconds,
        outcome.document.display(),
        outcome.figures.len()
    )
}
