//! How a caller watches and stops a run. Progress bars, clocks, Ctrl-C and files are all behind this trait.

use super::adaptive::Snapshot;
use super::kkt::LocalErrors;
use super::steer::Steering;

/// What the run is doing.
///
/// See the example of [`Observer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Solving the nuclear relaxation: start and lower bound.
    Relaxing,
    /// A local solve at fixed rank.
    Solving,
    /// The global check.
    Checking,
    /// The proof at the end.
    Certifying,
}

/// Where the run stands.
///
/// See the example of [`Observer`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Local solves so far.
    pub round: usize,
    /// Sweeps so far.
    pub sweep: usize,
    /// Columns now.
    pub rank: usize,
    /// F now (infinite before the first sweep).
    pub objective: f64,
    /// KKT residuals, when they were last computed.
    pub local: Option<LocalErrors>,
    /// A guess at a lower bound of the optimum, by which the run steers. What is proven comes with the solution.
    pub steering: Steering,
}

/// Something that changed the number of columns, or ended a round.
///
/// See the example of [`Observer`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Redundant columns were removed.
    Removed {
        /// Columns before.
        from: usize,
        /// Columns after.
        to: usize,
    },
    /// Columns were appended.
    Appended {
        /// Columns before.
        from: usize,
        /// Columns after.
        to: usize,
    },
    /// The global check was made.
    Checked {
        /// Best `u^T W v` found: a lower bound of `Omega°(W)`.
        support: f64,
    },
    /// The relaxation's bound was looked at.
    Bounded {
        /// Columns of the relaxation.
        rank: usize,
    },
}

/// Whether to go on.
///
/// See the example of [`Observer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// Go on.
    #[default]
    Continue,
    /// Stop now: somebody asked.
    Interrupt,
    /// Stop now: time is up.
    TimeUp,
}

/// Watches a run. All methods have empty defaults.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Control, Observer, Problem, Progress, Settings, lambda_max, solve};
/// use metastate::Status;
///
/// /// Lets the run make ten sweeps.
/// struct TenSweeps;
/// impl Observer for TenSweeps {
///     fn progress(&mut self, progress: &Progress) -> Control {
///         if progress.sweep < 10 { Control::Continue } else { Control::Interrupt }
///     }
/// }
///
/// let chain = planted(20, 3, 1)?.chain()?;
/// let problem = Problem::new(chain.p(), chain.weights(), 0.01 * lambda_max(chain.p(), chain.weights(), 0)?)?;
/// let solution = solve(&problem, &Settings::default(), &mut TenSweeps)?;
/// assert_eq!(solution.status, Status::Interrupted); // no error: there is an answer, and what is proven of it
/// # Ok::<(), metastate::Error>(())
/// ```
pub trait Observer {
    /// After every sweep and at every change of phase.
    fn progress(&mut self, _progress: &Progress) -> Control {
        Control::Continue
    }

    /// At events.
    fn event(&mut self, _event: &Event, _progress: &Progress) {}

    /// At points from which [`resume`](super::resume) continues bit for bit. Cheap unless kept: the snapshot is borrowed.
    fn safe_point(&mut self, _snapshot: &Snapshot) {}
}

/// Watches nothing.
///
/// The example of [`fit`](crate::fit()) runs with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}
