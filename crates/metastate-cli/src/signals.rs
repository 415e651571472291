//! Ctrl-C and SIGTERM: within a second the latest safe point is on disk and the process is gone.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use metastate_tasks::error::{CliError, INTERRUPTED, Result};
use metastate_tasks::stop::{Doing, Stopper};

/// The reader is given this long to end by itself and remove its temporary files.
const PATIENCE: Duration = Duration::from_millis(700);

/// Listens from now on.
pub fn listen(bar: ProgressBar) -> Result<Stopper> {
    let stopper = Stopper::ending_process();
    let receiver = stopper.clone();
    ctrlc::set_handler(move || receive(&receiver, &bar))
        .map_err(|e| CliError::failed("E-CLI-SIGNAL", format!("signals cannot be received ({e})")))?;
    Ok(stopper)
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
    eprintln!("{}", state.save());
    std::process::exit(i32::from(INTERRUPTED));
}
