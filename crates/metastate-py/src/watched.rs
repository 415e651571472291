//! Work that Python waits for: on a thread of its own, with the interpreter free, listening to Ctrl-C and telling how far it is.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use metastate_tasks::error::{CliError, Result};
use metastate_tasks::progress::{Reporter, Show};
use metastate_tasks::stop::Stopper;
use pyo3::prelude::*;

use crate::errors::{PANIC, to_python};

/// Between two looks at signals.
const LOOK: Duration = Duration::from_millis(25);
/// The work is given this long to end after Ctrl-C. Then Python goes on, and the work ends at its next look: it owns all its data.
const PATIENCE: Duration = Duration::from_millis(600);

/// Between two steps that a listener is told.
const TOLD: Duration = Duration::from_millis(60);

/// What a listener is told.
enum Told {
    /// A line worth keeping.
    Line(String),
    /// What is being done, and how far it is.
    Step(&'static str, String),
}

/// Shows the work's progress to Python: it is sent to the thread that waits there.
#[derive(Debug)]
struct Listener(Sender<Told>);

impl Listener {
    fn tell(&self, told: Told) {
        // A listener that went away has no wish to hear.
        let _ = self.0.send(told);
    }
}

impl Show for Listener {
    fn interval(&self) -> Option<Duration> {
        Some(TOLD)
    }

    fn line(&self, line: &str) {
        self.tell(Told::Line(line.to_owned()));
    }

    fn phase(&self, name: &'static str, _: Option<u64>) {
        self.tell(Told::Step(name, String::new()));
    }

    fn step(&self, phase: &'static str, text: &str, _: Option<(u64, u64)>) {
        self.tell(Told::Step(phase, text.to_owned()));
    }

    fn clear(&self) {}
}

/// Does `work` on `threads` threads of its own (all cores for none), so that a forked process never waits for threads it does not have.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    listener: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Reporter, &Stopper) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let stopper = Stopper::within_process();
    let (sender, told) = channel();
    let (give, mut take) = channel();
    let inner = stopper.clone();
    if threads == Some(0) {
        return Err(to_python(py, &CliError::bad("E-CLI-ARGUMENT", "threads is 0; at least one is needed")));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.unwrap_or(0))
        .build()
        .map_err(|e| to_python(py, &CliError::failed("E-CLI-THREADS", format!("threads could not be started ({e})"))))?;
    let worker = std::thread::Builder::new()
        .name("metastate".into())
        .spawn(move || {
            let done = pool.install(|| {
                let mut reporter = Reporter::new(Listener(sender));
                work(&mut reporter, &inner)
            });
            // Nobody waits any more after an interruption.
            let _ = give.send(done);
        })
        .map_err(|e| to_python(py, &CliError::failed("E-CLI-THREADS", format!("a thread could not be started ({e})"))))?;
    let mut outcome = None;
    while outcome.is_none() && !worker.is_finished() {
        (take, outcome) = wait(py, take, LOOK);
        if let Err(stop) = py.check_signals().and_then(|()| pass_on(&told, listener)) {
            stopper.ask();
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE && outcome.is_none() && !worker.is_finished() {
                (take, outcome) = wait(py, take, LOOK);
            }
            return Err(stop);
        }
    }
    pass_on(&told, listener)?;
    match outcome.or_else(|| take.recv().ok()) {
        Some(result) => result.map_err(|e| to_python(py, &e)),
        None => Err(to_python(py, &panicked(worker))),
    }
}

/// Waits with the interpreter free. The receiver goes along and comes back: it belongs to one thread at a time.
fn wait<T: Send>(py: Python<'_>, take: Receiver<T>, time: Duration) -> (Receiver<T>, Option<T>) {
    py.detach(move || {
        let got = take.recv_timeout(time).ok();
        (take, got)
    })
}

fn pass_on(told: &Receiver<Told>, listener: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    for said in told.try_iter() {
        let Some(listener) = listener else { continue };
        match said {
            Told::Line(line) => listener.call1(("line", line))?,
            Told::Step(phase, text) => listener.call1((phase, text))?,
        };
    }
    Ok(())
}

/// A panic is a bug of ours; Python gets an ordinary error.
fn panicked(worker: std::thread::JoinHandle<()>) -> CliError {
    let cause = worker.join().err();
    let said =
        cause.as_ref().and_then(|c| c.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| c.downcast_ref::<String>().cloned()));
    CliError::failed(PANIC, format!("there is a bug in metastate ({})", said.unwrap_or_else(|| "no message".into())))
        .remedy("please report it, with the data if you can")
}
