//! From the command to the work.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::reproduce;
use metastate_tasks::args::{Cli, Command, Common};
use metastate_tasks::error::{CliError, Result};
use metastate_tasks::progress::Reporter;
use metastate_tasks::stop::Stopper;
use metastate_tasks::{assign, compare, count, demo, explain, fit, forecast, report, simulate, verify};

/// Does what was asked.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let common = cli.common;
    set_threads(common.threads)?;
    let mut reporter = Reporter::new(common.quiet);
    let stopper = Stopper::listen(reporter.bar())?;
    match cli.command {
        Command::Fit(command) => {
            let out = command.run.out.clone();
            let job = fit::Job {
                input: command.input,
                fit: command.fit,
                run: command.run,
                whole_path: false,
                seed: common.seed,
                command: command_line(),
            };
            let summary = fit::run(&job, &mut reporter, &stopper)?;
            tell(&common, &summary, || fit::describe(&summary, &out))?;
        }
        Command::Path(command) => {
            let out = command.run.out.clone();
            let job = fit::Job {
                input: command.input,
                fit: command.fit,
                run: command.run,
                whole_path: true,
                seed: common.seed,
                command: command_line(),
            };
            let summary = fit::run(&job, &mut reporter, &stopper)?;
            tell(&common, &summary, || fit::describe(&summary, &out))?;
        }
        Command::Verify(command) => {
            let outcome = verify::run(&command.result, command.deep, &mut reporter, &stopper)?;
            tell(&common, &outcome, || outcome.table())?;
            return Ok(if outcome.agrees { ExitCode::SUCCESS } else { ExitCode::from(metastate_tasks::error::FAILED) });
        }
        Command::Compare(command) => {
            let compared = compare::run(&command, common.seed, &mut reporter, &stopper)?;
            tell(&common, &compared, || compared.describe())?;
        }
        Command::Assign(command) => {
            let assigned = assign::run(&command, &mut reporter, &stopper)?;
            tell(&common, &assigned, || assigned.describe())?;
        }
        Command::Report(command) => {
            let made = report::run(&command)?;
            tell(&common, &made, || made.describe())?;
        }
        Command::Count(command) => {
            let counted = count::run(&command, &mut reporter, &stopper)?;
            tell(&common, &counted, || counted.describe())?;
        }
        Command::Forecast(command) => {
            let found = forecast::run(&command, &mut reporter, &stopper)?;
            tell(&common, &found, || forecast::describe(&found, command.out.as_deref()))?;
        }
        Command::Simulate(command) => {
            let simulated = simulate::run(&command.what, common.seed)?;
            tell(&common, &simulated, || simulated.describe())?;
        }
        Command::Reproduce(command) => {
            let outcome = reproduce::run(&command, common.seed, &mut reporter, &stopper)?;
            tell(&common, &outcome, || reproduce::describe(&outcome))?;
        }
        Command::Demo(command) => {
            let tour = demo::run(&command, common.seed, &mut reporter, &stopper)?;
            tell(&common, &tour, || tour.describe())?;
        }
        Command::Explain { code } => print_line(&explain::explain(code.as_deref())?)?,
        Command::Completions { shell } => {
            let mut bytes = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "metastate", &mut bytes);
            print_bytes(&bytes)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn set_threads(threads: Option<usize>) -> Result<()> {
    let Some(n) = threads else { return Ok(()) };
    if n == 0 {
        return Err(CliError::bad("E-CLI-ARGUMENT", "--threads is 0; at least one is needed"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(n)
        .build_global()
        .map_err(|e| CliError::failed("E-CLI-THREADS", format!("{n} threads could not be started ({e})")))
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

/// The outcome, for machines or for people.
fn tell(common: &Common, outcome: &impl serde::Serialize, describe: impl FnOnce() -> String) -> Result<()> {
    match (common.json, common.quiet) {
        (true, _) => print_json(outcome),
        (false, true) => Ok(()),
        (false, false) => print_line(&describe()),
    }
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
