//! The command `metastate`.

use std::process::ExitCode;

use metastate_cli::{parse, run};

fn main() -> ExitCode {
    // clap itself ends with 2 on bad arguments and with 0 after --help.
    run::end(parse::typed(parse::program()).and_then(|given| run::run(&given)))
}
