//! From the command to the work.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;

pub use metastate_options::Common;
use metastate_options::{
    AssignCommand, CompareCommand, CompletionsArgs, CountCommand, ExplainArgs, Given, ManArgs, SimulateWhat, VerifyArgs,
};
use metastate_report::folder::{Draft, check_free};
use metastate_tasks::error::{CliError, FAILED, Result};
use metastate_tasks::progress::Reporter;
use metastate_tasks::stop::Stopper;
use metastate_tasks::{assign, compare, count, data, demo, diff, explain, fit, forecast, plan, report, simulate, verify};

use crate::{parse, reproduce, signals, tell as words, terminal};

/// Threads that are started at most, whatever is asked for; four for each core where that is more.
const MOST_THREADS: usize = 64;

/// What every command needs: its common options, somebody to tell the user, and somebody who listens to signals.
pub struct Session {
    /// Options of all commands.
    pub common: Common,
    /// Tells the user how far the work is.
    pub reporter: Reporter,
    /// Knows of signals.
    pub stopper: Stopper,
}

impl Session {
    /// Sets the number of threads, and listens to signals from now on.
    pub fn begin(given: &Given) -> Result<Self> {
        let common: Common = given.checked()?;
        // More threads than this share the same cores and only cost memory; the answer has the same bits with any number.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some(n) = common.threads.map(|n| n.min(MOST_THREADS.max(4 * cores))) {
            rayon::ThreadPoolBuilder::new()
                .num_threads(n)
                .build_global()
                .map_err(|e| CliError::failed("E-CLI-THREADS", format!("{n} threads could not be started ({e})")))?;
        }
        let (reporter, bar) = terminal::reporter(common.quiet);
        let stopper = signals::listen(bar)?;
        Ok(Session { common, reporter, stopper })
    }

    /// The outcome, for machines or for people.
    pub fn tell(&self, outcome: &impl serde::Serialize, describe: impl FnOnce() -> String) -> Result<()> {
        match (self.common.json, self.common.quiet) {
            (true, _) => print_json(outcome),
            (false, true) => Ok(()),
            (false, false) => print_line(&terminal::harmless(&describe())),
        }
    }
}

/// Says what went wrong, and ends the process with the right exit code.
pub fn end(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|e| {
        terminal::say(&e.to_string());
        ExitCode::from(e.exit())
    })
}

/// Does what was asked.
pub fn run(given: &Given) -> Result<ExitCode> {
    let name = given.command().name;
    if name == "reproduce" {
        return reproduce::hand_over();
    }
    let mut session = Session::begin(given)?;
    match name {
        "fit" | "path" => fitted(given, &mut session, name == "path")?,
        "verify" => return verified(given, &mut session),
        "compare" => compared(given, &mut session)?,
        "assign" => assigned(given, &mut session)?,
        "report" => {
            let made = report::run(&given.checked()?)?;
            session.tell(&made, || made.describe())?;
        }
        "diff" => {
            let found = diff::run(&given.checked()?)?;
            session.tell(&found, || words::diff::describe(&found))?;
        }
        "count" => counted(given, &mut session)?,
        "forecast" => {
            let asked: metastate_options::ForecastArgs = given.checked()?;
            let found = forecast::run(&asked, &mut session.reporter, &session.stopper)?;
            session.tell(&found, || words::forecast::describe(&found, asked.out.as_deref()))?;
        }
        "plan" => {
            let asked: metastate_options::PlanArgs = given.checked()?;
            let record = plan::run(&asked, session.common.seed, &mut session.reporter, &session.stopper)?;
            session.tell(&record, || plan::describe(&record, &asked.result))?;
        }
        "controlled" => simulated(&session, SimulateWhat::Controlled(given.checked()?))?,
        "planted" => simulated(&session, SimulateWhat::Planted(given.checked()?))?,
        "trajectory" => simulated(&session, SimulateWhat::Trajectory(given.checked()?))?,
        "city" => simulated(&session, SimulateWhat::City(given.checked()?))?,
        "groups" => simulated(&session, SimulateWhat::Groups(given.checked()?))?,
        "demo" => {
            let tour = demo::run(&given.checked()?, session.common.seed, &mut session.reporter, &session.stopper)?;
            session.tell(&tour, || tour.describe())?;
        }
        "explain" => print_line(&explain::explain(given.checked::<ExplainArgs>()?.code.as_deref())?)?,
        "completions" => completions(&given.checked()?)?,
        "man" => manual(&given.checked::<ManArgs>()?.folder)?,
        other => return Err(CliError::failed("E-CLI-ARGUMENT", format!("nothing is known of the command {other}"))),
    }
    Ok(ExitCode::SUCCESS)
}

fn fitted(given: &Given, session: &mut Session, whole_path: bool) -> Result<()> {
    let Session { common, reporter, stopper } = &mut *session;
    let (input, fit, run) = (given.checked()?, given.checked()?, given.checked()?);
    let job = fit::Job { input, fit, run, whole_path, seed: common.seed, command: command_line() };
    if job.run.estimate {
        let needs = fit::estimate(&job, reporter, stopper, |watch| data::ingest(&job.input, job.fit.needs_parts(), watch))?;
        return session.tell(&needs, || needs.describe());
    }
    let summary = fit::run(&job, reporter, stopper)?;
    session.tell(&summary, || fit::describe(&summary, &job.run.out))
}

/// The only command whose answer may be no.
fn verified(given: &Given, session: &mut Session) -> Result<ExitCode> {
    let asked: VerifyArgs = given.checked()?;
    let outcome = verify::run(&asked.result, asked.deep, &mut session.reporter, &session.stopper)?;
    session.tell(&outcome, || words::verify::table(&outcome))?;
    if session.common.quiet && !session.common.json {
        // The one thing that even a quiet answer must say: what does not stand.
        let wrong = outcome.checks.iter().filter(|line| !line.agrees);
        wrong.for_each(|line| terminal::say(&format!("{}: {}; found: {}", line.name, line.reported, line.recomputed)));
    }
    Ok(if outcome.agrees { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn compared(given: &Given, session: &mut Session) -> Result<()> {
    let Session { common, reporter, stopper } = &mut *session;
    let command = CompareCommand { input: given.checked()?, compare: given.checked()? };
    if command.compare.estimate {
        let needs = compare::estimate(&command, reporter, stopper)?;
        return session.tell(&needs, || needs.describe());
    }
    let compared = compare::run(&command, common.seed, reporter, stopper)?;
    session.tell(&compared, || words::compare::describe(&compared))
}

fn assigned(given: &Given, session: &mut Session) -> Result<()> {
    let named = given.names().map(str::to_owned).collect();
    let command = AssignCommand { input: given.checked()?, assign: given.checked()?, given: named };
    let assigned = assign::run(&command, &mut session.reporter, &session.stopper)?;
    session.tell(&assigned, || assigned.describe())
}

/// Counts, or the query with which a database counts.
fn counted(given: &Given, session: &mut Session) -> Result<()> {
    let command = CountCommand { input: given.checked()?, count: given.checked()? };
    if command.count.print_sql {
        let query = count::query(&command, count::Answer::Triplets)?;
        return if session.common.json { print_json(&query) } else { print_bytes(query.sql.as_bytes()) };
    }
    let counted = count::run(&command, &mut session.reporter, &session.stopper)?;
    session.tell(&counted, || counted.describe())
}

fn simulated(session: &Session, what: SimulateWhat) -> Result<()> {
    let simulated = simulate::run(&what, session.common.seed)?;
    session.tell(&simulated, || simulated.describe())
}

fn completions(asked: &CompletionsArgs) -> Result<()> {
    let shell = clap_complete::Shell::from_str(&asked.shell.word()).map_err(|e| CliError::bad("E-CLI-ARGUMENT", e))?;
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut parse::program(), "metastate", &mut bytes);
    print_bytes(&bytes)
}

/// One page a command, from the parser itself.
fn manual(folder: &Path) -> Result<()> {
    check_free(folder, false)?;
    let draft = Draft::begin(folder)?;
    let mut program = parse::program().disable_help_subcommand(true);
    program.build();
    let mut waiting = vec![program];
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let page = clap_mangen::Man::new(command);
        let mut bytes = Vec::new();
        page.render(&mut bytes).map_err(|e| CliError::write(folder, e))?;
        draft.file(&page.get_filename(), &bytes)?;
    }
    Ok(draft.finish(false)?)
}

/// What was typed, so that a shell understands it again.
fn command_line() -> String {
    let quote = |s: &std::ffi::OsStr| {
        let text = s.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
        if !text.is_empty() && text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let rest = std::env::args_os().skip(1).map(|s| quote(&s));
    std::iter::once("metastate".to_owned()).chain(rest).collect::<Vec<_>>().join(" ")
}

fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CliError::failed("E-CLI-WRITE", e.to_string()))?;
    print_line(&text)
}

fn print_line(text: &str) -> Result<()> {
    print_bytes(format!("{text}\n").as_bytes())
}

/// A reader that went away (`| head`) is no failure.
fn print_bytes(bytes: &[u8]) -> Result<()> {
    match std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::failed("E-CLI-WRITE", format!("standard output cannot be written ({e})")))
        }
        _ => Ok(()),
    }
}
