//! The command `metastate`.

use std::process::ExitCode;

use metastate_cli::{parse, run, team};

fn main() -> ExitCode {
    // clap itself ends with 2 on bad arguments and with 0 after --help.
    let done = parse::typed(parse::program()).and_then(|given| match team::join(&given)? {
        Some(code) => Ok(code),
        None => run::run(&given),
    });
    let why = done.as_ref().err().map(ToString::to_string);
    let code = run::end(done);
    if let Some(why) = why {
        team::failed(&why);
    }
    code
}
