//! How a caller watches a fit, stops it, and stores what an interrupted fit needs to go on. What is stored is decided here, where it is stored by the caller.

use crate::solve::path::LambdaPoint;
use crate::solve::select::{Attempt, Choice, Outlook};
use crate::solve::{Control, Factors, Observer, Progress, Snapshot};

/// The steps of the recipe, in their order.
///
/// The example of [`FitObserver`] writes them down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The smallest lambda at which one meta-state is best.
    LambdaMax,
    /// Rank and prior on held-out transitions.
    Choosing,
    /// lambda from lambda_max down.
    Path,
    /// The problem at the lambda wanted, and its proof.
    Solving,
    /// The second fit, without the penalty.
    Refit,
    /// Draws for the intervals.
    Bootstrap,
    /// Hard zones and what flows between them.
    Zones,
    /// Nothing is left to do.
    Done,
}

/// What an interrupted fit has done so far, and can go on from to the same bits.
///
/// The example of [`fit_from`](super::fit_from) keeps one and goes on from it.
#[derive(Debug, Clone, Default)]
pub struct Unfinished {
    /// Ranks and priors tried on the folds.
    pub attempts: Vec<Attempt>,
    /// Points of the path.
    pub points: Vec<LambdaPoint>,
    /// The solution at the last of them.
    pub factors: Option<Factors>,
    /// The solutions on the folds there.
    pub fold_factors: Vec<Option<Factors>>,
    /// A safe point of the solve at the lambda wanted.
    pub snapshot: Option<Snapshot>,
}

/// Watches a fit. The methods of [`Observer`] are called during the solve at the chosen lambda; everything else has a method here. All have empty defaults.
///
/// ```
/// use metastate::fit::{FitObserver, Stage};
/// use metastate::solve::Observer;
/// use metastate::{Counts, Data, Estimate, FitOptions, StateIndex, fit};
///
/// #[derive(Default)]
/// struct Stages(Vec<Stage>);
/// impl Observer for Stages {}
/// impl FitObserver for Stages {
///     fn stage(&mut self, stage: Stage) {
///         self.0.push(stage);
///     }
/// }
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let mut seen = Stages::default();
/// fit(&data, &FitOptions::default(), &mut seen)?;
/// assert_eq!((seen.0.first(), seen.0.last()), (Some(&Stage::LambdaMax), Some(&Stage::Done)));
/// # Ok::<(), metastate::Error>(())
/// ```
pub trait FitObserver: Observer {
    /// A stage begins.
    fn stage(&mut self, _stage: Stage) {}

    /// A rank with a prior was tried on the folds.
    fn attempted(&mut self, _attempt: &Attempt) {}

    /// How far the choice is, after each attempt.
    fn choosing(&mut self, _so_far: &Outlook) {}

    /// The rank was chosen.
    fn chosen(&mut self, _choice: &Choice) {}

    /// While a point of the path is solved.
    fn path_progress(&mut self, _progress: &Progress) -> Control {
        Control::Continue
    }

    /// A point of the path was solved.
    fn path_point(&mut self, _point: &LambdaPoint) {}

    /// After every attempt and every point: what a resumed fit needs. Stops the fit by any answer but [`Control::Continue`].
    fn keep(&mut self, _unfinished: &Unfinished) -> Control {
        Control::Continue
    }

    /// After so many passes of the likelihood, at this value a transition with its prior.
    fn pass(&mut self, _passes: usize, _value: f64) {}

    /// Asked between steps; any answer but [`Control::Continue`] ends the fit.
    fn look(&mut self) -> Control {
        Control::Continue
    }
}

impl FitObserver for crate::solve::Silent {}

/// Lets a solve of the path be watched: no events, no safe points.
pub(super) struct OnPath<'a>(pub &'a mut dyn FitObserver);

impl Observer for OnPath<'_> {
    fn progress(&mut self, progress: &Progress) -> Control {
        self.0.path_progress(progress)
    }
}
