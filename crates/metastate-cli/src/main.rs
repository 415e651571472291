//! The command `metastate`.

mod args;
mod assign;
mod checkpoint;
mod choose;
mod compare;
mod count;
mod data;
mod demo;
mod error;
mod explain;
mod fit;
mod forecast;
mod hard;
mod parts;
mod path_checkpoint;
mod progress;
mod reference;
mod refit;
mod report;
mod reproduce;
mod run;
mod settings;
mod simulate;
mod stop;
mod truth;
mod verify;
mod watch;

use std::process::ExitCode;

use clap::Parser;

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
