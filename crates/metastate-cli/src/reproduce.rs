//! `metastate reproduce`: the paper's experiments are a program of their own, beside this one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use metastate_tasks::error::{CliError, Result};

const PROGRAM: &str = "metastate-reproduce";

/// Hands over to that program, with the arguments that were typed.
pub fn hand_over() -> Result<ExitCode> {
    let program = find(PROGRAM).ok_or_else(|| {
        CliError::bad(
            "E-CLI-PROGRAM",
            format!("the program {PROGRAM}, which does this work, is neither beside this program nor on the PATH"),
        )
        .remedy("build it in the source tree of metastate: cargo build --release -p metastate-lab")
    })?;
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Options of all commands may stand before the command; they take numbers, so the first such word is the command.
    if let Some(at) = words.iter().position(|word| word == "reproduce") {
        words.remove(at);
    }
    start(Command::new(&program).args(words)).map_err(|e| {
        CliError::failed("E-CLI-PROGRAM", format!("this program could not be started ({e})")).at(program.display().to_string())
    })
}

/// In place of this process, so that signals go to the one that does the work.
#[cfg(unix)]
pub fn start(command: &mut Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
pub fn start(command: &mut Command) -> std::io::Result<ExitCode> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(metastate_tasks::error::FAILED)))
}

/// A program beside this one, or on the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(PathBuf::from));
    let path = std::env::var_os("PATH").unwrap_or_default();
    beside.into_iter().chain(std::env::split_paths(&path)).map(|folder| folder.join(&name)).find(|file| file.is_file())
}
