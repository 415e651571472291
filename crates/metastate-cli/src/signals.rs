//! Ctrl-C and SIGTERM: within a second the latest safe point is on disk and the process is gone.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use metastate_tasks::error::{CliError, INTERRUPTED, Result};
use metastate_tasks::stop::{Doing, Stopper};

use crate::terminal;

/// The reader is given this long to end by itself and remove its temporary files.
const PATIENCE: Duration = Duration::from_millis(700);

/// Listens from now on.
pub fn listen(bar: ProgressBar) -> Result<Stopper> {
    let stopper = Stopper::ending_process();
    let receiver = stopper.clone();
    on_signal(move || receive(&receiver, &bar))
        .map_err(|e| CliError::failed("E-CLI-SIGNAL", format!("signals cannot be received ({e})")))?;
    Ok(stopper)
}

/// Calls `handler` on a thread of its own each time that somebody asks the process to end.
#[cfg(unix)]
fn on_signal(handler: impl Fn() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A file above the limit of the shell (`ulimit -f`) is then an error of the write, which is told and leaves nothing behind.
    signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || signals.forever().for_each(|_| handler()))?;
    Ok(())
}

/// The same.
#[cfg(not(unix))]
fn on_signal(handler: impl Fn() + Send + 'static) -> std::result::Result<(), ctrlc::Error> {
    ctrlc::set_handler(handler)
}

fn receive(stopper: &Stopper, bar: &ProgressBar) {
    stopper.ask();
    let start = Instant::now();
    while stopper.lock().doing == Doing::Reading && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut state = stopper.lock();
    if state.doing == Doing::Done {
        return;
    }
    bar.finish_and_clear();
    terminal::say(&state.save().to_string());
    std::process::exit(i32::from(INTERRUPTED));
}
