//! `metastate verify`: the claims of a result, computed a second time from its files and its inputs. Each room has one kind of claim; what nobody
//! computes a second time is named in the table.

mod checks;
mod choice;
mod command;
mod control;
mod core;
mod deep;
mod files;
mod grounds;
mod kinetics;
mod page;
mod plan;
mod refit;
mod shapes;
mod slices;
mod status;
mod subject;
mod tables;
mod twin;
mod uncertainty;
mod zones;

use std::io::IsTerminal;
use std::path::Path;

use metastate_report::{FileRecord, LedgerRecord, Mismatch, SavedResult, Summary, hash, inside};
use serde_json::Value;

pub use checks::{Line, Outcome, Verdict};

use crate::args::{Clusters, FitArgs, Init, InputArgs, MEMORY, Options};
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::{Doing, Stopper};
use crate::watch::WatchReading;
use crate::zone_names::ROLE as ZONE_NAMES;
use crate::{data, truth};
use checks::Checks;
use subject::Subject;

/// How standard input is named among the inputs.
const STANDARD_INPUT: &str = "-";

/// Rereads, recounts, recomputes; `deep` takes the costly checks, too.
pub fn run(folder: &Path, deep: bool, reporter: &mut Reporter, stopper: &Stopper) -> Result<Outcome> {
    // The inputs may be found from another folder.
    let folder = &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if let Some(mismatch) = Mismatch::find(folder)? {
        return Ok(out_of_contract(folder, &mismatch));
    }
    let opened = match open(folder) {
        Ok(opened) => opened,
        Err(Unopened::Line(name, why)) => return Ok(not_opened(folder, &name, why)),
        Err(Unopened::Error(e)) => return Err(e),
    };
    if opened.1.inputs == [MEMORY] {
        return Err(CliError::failed("E-CLI-INPUTS-GONE", "this result rests on data in the memory of a Python program")
            .at(folder.display().to_string())
            .remedy("recheck it there: metastate.verify(folder, data)"));
    }
    find_inputs(&opened.0.summary, "objective, errors, gap and tables could not be rechecked")?;
    stopper.doing(Doing::Reading);
    let data = data::load(&opened.1, &opened.2, &mut WatchReading { reporter, stopper })?;
    stopper.doing(Doing::Working);
    recheck(folder, &opened, &data, deep, reporter)
}

/// A summary that is not as the contract has it: that is what was found, and nothing else can be looked at.
fn out_of_contract(folder: &Path, mismatch: &Mismatch) -> Outcome {
    let mut checks = Checks::default();
    checks.table(&mismatch.field, Some(mismatch.what.clone()));
    checks.not_checked("everything else", "as in the folder", "the summary cannot be read");
    Outcome::new(folder, checks)
}

/// Why a folder could not be opened: a claim that does not stand, or an error.
pub enum Unopened {
    /// The file or field that is not what it should be, and why.
    Line(String, String),
    /// Anything else.
    Error(CliError),
}

impl From<Unopened> for CliError {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Line(name, why) => CliError::failed("E-CLI-RESULT", format!("{name}: {why}")),
            Unopened::Error(e) => e,
        }
    }
}

/// A file that is there and is not what it should be: that is what was found, and nothing else can be looked at.
fn not_opened(folder: &Path, name: &str, why: String) -> Outcome {
    let mut checks = Checks::default();
    checks.table(name, Some(why));
    checks.not_checked("everything else", "as in the folder", "this file cannot be used");
    Outcome::new(folder, checks)
}

/// The result in a folder, with the options that it was made with.
pub fn open(folder: &Path) -> std::result::Result<(SavedResult, InputArgs, FitArgs), Unopened> {
    let result = metastate_report::load(folder).map_err(|e| match e {
        metastate_report::Error::Damaged { path, what } => {
            Unopened::Line(path.file_name().unwrap_or_default().to_string_lossy().into_owned(), format!("this file {what}"))
        }
        other => Unopened::Error(other.into()),
    })?;
    let (input, fit) = options_of(&result).map_err(|why| Unopened::Line("settings".to_owned(), why))?;
    Ok((result, input, fit))
}

/// The options in `summary.json`: the one place where they become types.
pub fn recorded_options(folder: &Path, result: &SavedResult) -> Result<(InputArgs, FitArgs)> {
    options_of(result).map_err(|why| {
        CliError::failed("E-CLI-RESULT", format!("the settings in summary.json cannot be used ({why})"))
            .at(folder.display().to_string())
            .remedy("they were changed after `metastate fit` wrote them; fit again")
    })
}

/// The same, with the reason: they must be options that could have been typed, for these states.
fn options_of(result: &SavedResult) -> std::result::Result<(InputArgs, FitArgs), String> {
    let (summary, states) = (&result.summary, result.xi.len());
    let input: InputArgs = serde_json::from_value(summary.settings["input"].clone()).map_err(|e| e.to_string())?;
    let fit: FitArgs = serde_json::from_value(summary.settings["fit"].clone()).map_err(|e| e.to_string())?;
    input.check().map_err(|e| e.to_string())?;
    fit.check().map_err(|e| e.to_string())?;
    match fit.hard() {
        Clusters::Count(k) if k == 0 || k > states => Err(format!("clusters is {k}; there are {states} states")),
        _ => Ok((input, fit)),
    }
}

/// Recomputes everything in a folder from its data.
pub fn recheck(
    folder: &Path,
    (result, input, fit): &(SavedResult, InputArgs, FitArgs),
    data: &data::Dataset,
    deep: bool,
    reporter: &mut Reporter,
) -> Result<Outcome> {
    reporter.spin("verifying");
    let summary = &result.summary;
    let mut checks = Checks::default();
    let truth = fit.truth.as_deref().map(|text| truth::load(text, data.chain())).transpose()?;
    let truth_files = truth.iter().flat_map(|(_, files)| files.clone()).collect();
    sources(&mut checks, summary, fit, data, truth_files);
    checks.table("summary.json", unknown_field(folder, summary));
    let typed = command::read(summary);
    command::check(&mut checks, summary, input, fit, &typed);
    let typed = typed.ok().flatten();
    let limited = typed.as_ref().is_some_and(|t| t.command.run.time_limit.is_some());
    checks.table("xi", (result.xi != data.chain().xi()).then(|| "other weights".to_owned()));
    let subject = match Subject::new(folder, result, fit, data, limited) {
        Ok(subject) => subject,
        Err(why) => {
            checks.table("sizes", Some(why));
            reporter.clear();
            return Ok(Outcome::new(folder, checks));
        }
    };
    let truth = truth.as_ref().map(|(p, _)| p.as_ref());
    let proven = core::check(&mut checks, &subject, truth)?;
    status::check(&mut checks, summary, fit, typed.as_ref(), &proven);
    tables::check(&mut checks, &subject);
    zones::check(&mut checks, &subject);
    refit::check(&mut checks, &subject, truth);
    choice::check(&mut checks, &subject, typed.as_ref(), &proven, deep)?;
    uncertainty::check(&mut checks, &subject);
    kinetics::check(&mut checks, &subject);
    control::check(&mut checks, &subject);
    plan::check(&mut checks, &subject);
    slices::check(&mut checks, &subject, input);
    let remade = page::check(&mut checks, &subject);
    files::check(&mut checks, &subject, &remade);
    checks.not_checked("seconds, iterations, rounds, directory", summary.iterations, "how it came about");
    reporter.clear();
    Ok(Outcome::new(folder, checks))
}

/// What was read: the same files, rows, states and transitions, and the same left out.
fn sources(checks: &mut Checks, summary: &Summary, fit: &FitArgs, data: &data::Dataset, truth: Vec<FileRecord>) {
    let chain = data.chain();
    let of_role = |role: &str| summary.inputs.iter().filter(|f| f.role == role).cloned().collect::<Vec<_>>();
    let start = match &fit.init() {
        Init::Result(folder) => vec![folder.join("factors.npz").display().to_string()],
        _ => Vec::new(),
    };
    let known: usize = ["data", "places", ZONE_NAMES, "truth", "start"].iter().map(|role| of_role(role).len()).sum();
    let same = data.inputs == [of_role("data"), of_role("places"), of_role(ZONE_NAMES)].concat()
        && truth == of_role("truth")
        && known == summary.inputs.len();
    let same_start = of_role("start").iter().map(|f| f.name.clone()).collect::<Vec<_>>() == start;
    checks.table("inputs", (!same || !same_start).then(|| "other files were read".to_owned()));
    checks.same("states", summary.states, chain.states());
    let destinations = data.data.going_on().is_none().then(|| chain.p().cols());
    checks.table("destinations", (summary.destinations != destinations).then(|| "another number of them".to_owned()));
    checks.same("transitions", summary.transitions, chain.transitions());
    checks.same("nonzeros", summary.nonzeros, chain.nonzeros());
    checks.table("read_as", (summary.read_as != data.read_as).then(|| format!("the data were {}", data.read_as)));
    checks.same("rows", summary.rows, data.rows);
    checks.same("rows_counted", summary.rows_counted, data.rows_counted);
    checks.table("ledger", (summary.ledger != LedgerRecord::list(chain.ledger())).then(|| "other entries".to_owned()));
    let told = data.hints.iter().all(|hint| summary.hints.contains(hint));
    checks.table("hints", (!told).then(|| "one about the data is missing".to_owned()));
    checks.not_checked("hints: their words", summary.hints.len(), "numbers that they repeat have lines of their own");
}

/// A field of `summary.json` that no result has.
fn unknown_field(folder: &Path, summary: &Summary) -> Option<String> {
    let text = inside::read_text(folder, "summary.json").unwrap_or_default();
    let (found, known): (Value, Value) =
        (serde_json::from_str(&text).unwrap_or_default(), serde_json::to_value(summary).unwrap_or_default());
    beyond(&found, &known, "").map(|name| format!("no result has a field {name}"))
}

/// The first field of `found`, at any depth, that `known` does not have.
fn beyond(found: &Value, known: &Value, at: &str) -> Option<String> {
    match (found, known) {
        (Value::Object(found), Value::Object(known)) => found.iter().find_map(|(name, value)| match known.get(name) {
            Some(known) => beyond(value, known, &format!("{at}{name}.")),
            None => Some(format!("{at}{name}")),
        }),
        (Value::Array(found), Value::Array(known)) => found.iter().zip(known).find_map(|(a, b)| beyond(a, b, at)),
        _ => None,
    }
}

/// The inputs must be where they were, seen from here or from where the fit was run, with the same bytes.
pub fn find_inputs(summary: &Summary, so_that: &str) -> Result<()> {
    // What came from standard input is read from there again, and compared by its hash afterwards.
    if summary.inputs.iter().any(|f| f.name == STANDARD_INPUT) && std::io::stdin().is_terminal() {
        return Err(CliError::failed("E-CLI-INPUTS-GONE", format!("this result rests on data from standard input, so that {so_that}"))
            .remedy("send the same data in again: ... | metastate verify RESULT"));
    }
    let missing = |base: &Path| {
        let changed = |f: &&FileRecord| hash::of_file(&base.join(&f.name)).map_or(true, |found| found != (f.bytes, f.sha256.clone()));
        summary.inputs.iter().filter(|f| f.name != STANDARD_INPUT).find(changed).map(|f| f.name.clone())
    };
    let Some(name) = missing(Path::new(".")) else { return Ok(()) };
    let then = Path::new(&summary.directory);
    if missing(then).is_none() && std::env::set_current_dir(then).is_ok() {
        return Ok(());
    }
    Err(CliError::failed(
        "E-CLI-INPUTS-GONE",
        format!("this input is not there any more, is not a regular file, or its bytes have changed, so that {so_that}"),
    )
    .at(name)
    .remedy(format!("put the inputs back where they were (then: {})", summary.directory)))
}
