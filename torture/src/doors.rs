//! The commands, called in this process as the terminal's door calls them: words in, exit code and sentence out.

use metastate_options::{
    AssignCommand, CompareCommand, CountCommand, FitCommand, ForecastArgs, Given, ReportArgs, RunArgs, VerifyArgs, read_words,
};
use metastate_tasks::error::{CliError, Result};
use metastate_tasks::progress::{Quiet, Reporter};
use metastate_tasks::stop::Stopper;
use metastate_tasks::{assign, compare, count, fit, forecast, report, verify};

/// How a command ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// 0, 1, 2 as in the shell; 101 for a panic.
    pub code: u8,
    /// What it said.
    pub told: String,
}

/// Runs a command and catches its panic.
pub fn run(words: &[&str]) -> End {
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    let done = std::panic::catch_unwind(|| dispatch(&words));
    match done {
        Ok(Ok((code, told))) => End { code, told },
        Ok(Err(e)) => End { code: e.exit(), told: e.to_string() },
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            End { code: 101, told: format!("panicked: {}", text.unwrap_or_default()) }
        }
    }
}

fn quoted(words: &[String]) -> String {
    let quote = |w: &String| {
        if w.chars().all(|c| c.is_ascii_alphanumeric() || "-_./,:=".contains(c)) && !w.is_empty() { w.clone() } else { format!("'{w}'") }
    };
    std::iter::once("metastate".to_owned()).chain(words.iter().map(quote)).collect::<Vec<_>>().join(" ")
}

fn dispatch(words: &[String]) -> Result<(u8, String)> {
    let given: Given = read_words(words)?;
    let common: metastate_options::Common = given.checked()?;
    let (mut reporter, stopper) = (Reporter::new(Quiet), Stopper::ending_process());
    let (reporter, seed) = (&mut reporter, common.seed);
    let told = match given.command().name {
        name @ ("fit" | "path") => {
            let FitCommand { input, fit, run } =
                FitCommand { input: given.checked()?, fit: given.checked()?, run: given.checked::<RunArgs>()? };
            let job = fit::Job { input, fit, run, whole_path: name == "path", seed, command: quoted(words) };
            fit::run(&job, reporter, &stopper)?.status.to_string()
        }
        "verify" => {
            let asked: VerifyArgs = given.checked()?;
            let outcome = verify::run(&asked.result, asked.deep, reporter, &stopper)?;
            let wrong = |l: &&verify::Line| !l.agrees;
            let lines: Vec<String> =
                outcome.checks.iter().filter(wrong).map(|l| format!("{}: {} / {}", l.name, l.reported, l.recomputed)).collect();
            return Ok((u8::from(!outcome.agrees), lines.join("; ")));
        }
        "compare" => compare::run(&CompareCommand { input: given.checked()?, compare: given.checked()? }, seed, reporter, &stopper)?.out,
        "assign" => assign::run(
            &AssignCommand { input: given.checked()?, assign: given.checked()?, given: given.names().map(str::to_owned).collect() },
            reporter,
            &stopper,
        )?
        .describe(),
        "report" => report::run(&given.checked::<ReportArgs>()?)?.describe(),
        "count" => count::run(&CountCommand { input: given.checked()?, count: given.checked()? }, reporter, &stopper)?.describe(),
        "forecast" => forecast::run(&given.checked::<ForecastArgs>()?, reporter, &stopper)?.model,
        other => return Err(CliError::failed("E-CLI-ARGUMENT", format!("the torture knows no command {other}"))),
    };
    Ok((0, told))
}
