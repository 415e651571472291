//! The command `metastate`.

use std::process::ExitCode;

use clap::Parser;
use metastate_cli::run;
use metastate_tasks::args;

fn main() -> ExitCode {
    // clap itself ends with 2 on bad arguments and with 0 after --help.
    let cli = args::Cli::parse();
    match run::run(cli) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(e.exit())
        }
    }
}
