//! Several processes started by `mpirun`: who they are, and how they end together. The program that `mpirun` has started hands over to `metastate-mpi` beside it, which starts it once more as its
//! child and carries what the processes say to each other.

use std::process::ExitCode;

use metastate_options::Given;
use metastate_tasks::error::{CliError, Result};

/// Set by the carrier for its child: number and count of the processes.
const TEAM: &str = "METASTATE_TEAM";

/// How many processes `mpirun`, or a launcher like it, has started.
fn started() -> usize {
    let told = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"].iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    told.unwrap_or(1)
}

/// Whether this is the first of them.
fn first() -> bool {
    ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().find_map(|name| std::env::var(name).ok()).is_none_or(|rank| rank == "0")
}

/// Where this is one of several processes: joins the others, or hands over to the carrier and ends with its exit code. Only `fit` is for several.
pub fn join(given: &Given) -> Result<Option<ExitCode>> {
    if started() < 2 {
        return Ok(None);
    }
    if !first() {
        crate::terminal::mute();
    }
    let name = given.command().name;
    if name != "fit" {
        return Err(CliError::bad("E-CLI-TEAM", format!("{} processes were started, and `metastate {name}` is for one", started()))
            .remedy("start it without mpirun"));
    }
    unix::join()
}

/// Threads for each process, where nobody said how many: the cores of this machine, shared.
pub fn threads() -> Option<usize> {
    let here: usize = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok()?.parse().ok().filter(|n| *n > 1)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Some((cores / here).max(1))
}

/// After an error. The first process has told it and ends all of them; what only another one has met, it tells itself.
pub fn failed(why: &str) {
    let Some(team) = metastate_tasks::team::here().filter(|_| !metastate_tasks::team::leads()) else { return };
    std::thread::sleep(PATIENCE);
    if unix::carried() {
        crate::terminal::unmute();
        crate::terminal::say(&format!("process {} of {}: {why}", team.rank() + 1, team.size()));
    }
}

/// The first process, where it met the same, ends all of them within this time.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, ExitCode};
    use std::sync::Arc;

    use metastate_tasks::carried::Carried;
    use metastate_tasks::error::{CliError, FAILED, Result};
    use metastate_tasks::team;

    use super::TEAM;
    use crate::{reproduce, run, terminal};

    const PROGRAM: &str = "metastate-mpi";

    /// Joins, or hands over.
    pub fn join() -> Result<Option<ExitCode>> {
        match std::env::var(TEAM) {
            Ok(told) => {
                let who = told.split_once('/').and_then(|(rank, size)| Some((rank.parse().ok()?, size.parse().ok()?)));
                let no_socket = |e: io::Error| CliError::failed("E-CLI-TEAM", format!("the carrier of messages cannot be reached ({e})"));
                let who = who.ok_or_else(|| no_socket(io::Error::other(format!("{TEAM} is `{told}`"))))?;
                let (from, to) = (socket().map_err(no_socket)?, socket().map_err(no_socket)?);
                team::join(Arc::new(Carried::new(who, from, to, lost)));
                Ok(None)
            }
            Err(_) => hand_over().map(Some),
        }
    }

    /// In place of this process: the carrier, which starts the command again.
    fn hand_over() -> Result<ExitCode> {
        let program = reproduce::find(PROGRAM).ok_or_else(|| {
            CliError::bad(
                "E-CLI-TEAM",
                format!("several processes were started, and the program {PROGRAM}, which carries what they say to each other, is neither beside this program nor on the PATH"),
            )
            .remedy("build it in the source tree of metastate, in the folder cluster/mpi: cargo build --release; it needs an MPI and libclang (Debian: apt-get install openmpi-bin libopenmpi-dev libclang-dev clang)")
        })?;
        let own = std::env::current_exe().unwrap_or_else(|_| "metastate".into());
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1)).env("METASTATE_PROGRAM", own);
        reproduce::start(&mut command).map_err(|e| {
            CliError::failed("E-CLI-TEAM", format!("this program could not be started ({e})")).at(program.display().to_string())
        })
    }

    /// The socket that the carrier has put in place of standard input.
    fn socket() -> io::Result<UnixStream> {
        Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
    }

    /// Whether the carrier is still there.
    pub fn carried() -> bool {
        let look = || {
            let socket = socket()?;
            socket.set_nonblocking(true)?;
            (&socket).take_error()?;
            io::Read::read(&mut &socket, &mut [0u8])
        };
        matches!(look(), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// The carrier is gone, because another process is: this one keeps what it has, and ends.
    fn lost() {
        if team::leads() {
            terminal::say(&format!("error: one of the processes is gone, so all of them end; {}", run::saved()));
        }
        std::process::exit(i32::from(FAILED));
    }
}

#[cfg(not(unix))]
mod unix {
    use std::process::ExitCode;

    use metastate_tasks::error::{CliError, Result};

    pub fn join() -> Result<Option<ExitCode>> {
        Err(CliError::bad("E-CLI-TEAM", "several processes were started, and on this system metastate works with one").remedy("start one"))
    }

    pub fn carried() -> bool {
        false
    }
}
