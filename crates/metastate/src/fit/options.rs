//! The options of a fit. Every value is checked when it is set, so that all options that exist are valid.

use crate::error::{Error, Result};
use crate::solve::{Redundancy, Settings, Solver, Start, StopRule};

/// Which convex problem is stated and proven.
///
/// See [`FitOptions::objective`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectiveKind {
    /// The paper's: rows weighed by their share, every direction at the same price.
    #[default]
    Paper,
    /// Rows and columns weighed so that the noise is white, directions that the likelihood found at a lower price: the solution predicts, and is proven.
    Whitened,
}

/// lambda, the weight of Omega in the objective: the larger it is, the fewer meta-states the solution has.
///
/// The example of [`FitOptions`] sets one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Lambda {
    /// The smallest found at which no more meta-states pay than were chosen or given, or a smaller one where that keeps too few; with the whole path, the largest on it that gives as many.
    #[default]
    Chosen,
    /// This value.
    Given(f64),
    /// This share of lambda_max, the smallest lambda at which one meta-state is best.
    Ratio(f64),
}

/// How many meta-states.
///
/// The example of [`FitOptions`] sets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rank {
    /// The smallest number that held-out transitions support.
    #[default]
    Chosen,
    /// This number.
    Given(usize),
}

/// The second fit, at the rank of the first and without its penalty.
///
/// ```
/// use metastate::fit::RefitKind;
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default().refit(RefitKind::None), &mut Silent)?;
/// assert!(model.refit.is_none());
/// assert_eq!(model.factors(), &model.solution.factors); // what is shown is then the solution that is proven
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefitKind {
    /// No second fit.
    None,
    /// By least squares.
    LeastSquares,
    /// By maximum likelihood with a prior.
    Likelihood,
}

/// How each state gets its one zone.
///
/// ```
/// use metastate::fit::Clusters;
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let three = FitOptions::default().clusters(Clusters::Count(3))?;
/// assert_eq!(fit(&data, &three, &mut Silent)?.zones.clusters(), 3);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clusters {
    /// k-means on the memberships, one zone for each meta-state.
    Rank,
    /// Every state goes where its membership is largest.
    Membership,
    /// k-means on the memberships, so many zones.
    Count(usize),
}

impl RefitKind {
    /// The second fit that is made where nothing else is asked for: by likelihood where lambda is chosen, none otherwise. A whitened solution needs none.
    pub fn unless_given(lambda_is_chosen: bool, objective: ObjectiveKind) -> Self {
        if lambda_is_chosen && objective == ObjectiveKind::Paper { RefitKind::Likelihood } else { RefitKind::None }
    }
}

impl Clusters {
    /// How states get their zones where nothing else is asked for: by k-means where memberships are blurred by the penalty, as in the paper, by the largest
    /// membership otherwise.
    pub fn unless_given(refit: RefitKind, objective: ObjectiveKind) -> Self {
        let blurred = refit == RefitKind::None && objective == ObjectiveKind::Paper;
        if blurred { Clusters::Rank } else { Clusters::Membership }
    }

    /// In words.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Clusters::Membership => "largest membership".to_owned(),
            Clusters::Rank => "k-means on the memberships, one zone for each meta-state".to_owned(),
            Clusters::Count(k) => format!("k-means on the memberships, {k} zones"),
        }
    }
}

/// The grid of lambdas from lambda_max down.
///
/// ```
/// use metastate::fit::Path;
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let whole = FitOptions::default().path(Path { points: 4, whole: true, ..Path::default() })?;
/// let points = fit(&data, &whole, &mut Silent)?.chosen.unwrap().points;
/// assert_eq!(points.len(), 4);
/// assert!(points.windows(2).all(|p| p[0].lambda > p[1].lambda)); // from lambda_max down
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Values of lambda, at most.
    pub points: usize,
    /// The smallest one as a share of lambda_max.
    pub floor: f64,
    /// Whether all of them are solved, on the folds too; otherwise only those down to the rank wanted.
    pub whole: bool,
}

impl Default for Path {
    fn default() -> Self {
        Path { points: PATH_POINTS, floor: PATH_FLOOR, whole: false }
    }
}

/// The paper's threshold of redundancy.
const PAPER_THRESHOLD: f64 = 5e-5;
/// Meta-states that the paper starts with, at most; a tenth of the states otherwise.
const PAPER_START: usize = 300;
pub use crate::solve::PAPER_MAX_RANK;
/// Parts of the data that are held out in turn, unless the caller says otherwise.
pub const FOLDS: usize = 5;
/// Parts that may be held out in turn.
const FOLDS_ALLOWED: std::ops::RangeInclusive<usize> = 2..=1000;
/// Values of lambda on the path, unless the caller says otherwise.
pub const PATH_POINTS: usize = 25;
/// The smallest of them as a share of lambda_max: below it, noise pays for columns.
pub const PATH_FLOOR: f64 = 0.003;

/// All that a fit depends on but the data.
///
/// By default rank, prior and lambda are chosen on held-out transitions, the solution at that lambda is proven, and the model is fitted once more by likelihood.
///
/// ```
/// use metastate::fit::{FitOptions, Lambda, Rank};
///
/// let nothing_given = FitOptions::default();
/// let six = FitOptions::default().rank(Rank::Given(6))?;
/// let half = FitOptions::default().lambda(Lambda::Ratio(0.5))?;
/// assert!(FitOptions::default().lambda(Lambda::Given(-1.0)).is_err());
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct FitOptions {
    pub(super) objective: ObjectiveKind,
    pub(super) lambda: Lambda,
    pub(super) rank: Rank,
    pub(super) path: Path,
    pub(super) solver: Settings,
    pub(super) as_in_paper: bool,
    pub(super) refit: Option<RefitKind>,
    pub(super) clusters: Option<Clusters>,
    pub(super) prior: Option<f64>,
    pub(super) folds: usize,
    pub(super) bootstrap: usize,
    pub(super) reversible: bool,
    pub(super) seed: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        FitOptions {
            objective: ObjectiveKind::Paper,
            lambda: Lambda::Chosen,
            rank: Rank::Chosen,
            path: Path::default(),
            solver: Settings::default(),
            as_in_paper: false,
            refit: None,
            clusters: None,
            prior: None,
            folds: FOLDS,
            bootstrap: 0,
            reversible: false,
            seed: 0,
        }
    }
}

fn refused<T>(name: &'static str, value: impl ToString, allowed: &'static str) -> Result<T> {
    Err(Error::Setting { name, value: value.to_string(), allowed })
}

impl FitOptions {
    /// The convex problem that is stated and proven.
    pub fn objective(mut self, objective: ObjectiveKind) -> Self {
        self.objective = objective;
        self
    }

    /// lambda. A rank that is given has its own lambda: the two exclude each other.
    pub fn lambda(mut self, lambda: Lambda) -> Result<Self> {
        if let Lambda::Given(x) | Lambda::Ratio(x) = lambda {
            if !(x > 0.0 && x.is_finite()) {
                return refused("lambda", x, "it must be a positive number");
            }
            if let Rank::Given(k) = self.rank {
                return refused("the rank beside a given lambda", k, "give one of the two: the rank follows from lambda");
            }
        }
        self.lambda = lambda;
        Ok(self)
    }

    /// The number of meta-states.
    pub fn rank(mut self, rank: Rank) -> Result<Self> {
        if let Rank::Given(k) = rank {
            if k == 0 {
                return refused("the rank", k, "at least one meta-state is needed");
            }
            if self.lambda != Lambda::Chosen {
                return refused("the rank beside a given lambda", k, "give one of the two: the rank follows from lambda");
            }
        }
        self.rank = rank;
        Ok(self)
    }

    /// The grid of lambdas.
    pub fn path(mut self, path: Path) -> Result<Self> {
        crate::solve::path::lambda_grid(1.0, path.floor, path.points)?;
        self.path = path;
        Ok(self)
    }

    /// Never more meta-states than this.
    pub fn max_rank(mut self, most: usize) -> Result<Self> {
        if most == 0 {
            return refused("the largest rank", most, "it must be at least 1");
        }
        self.solver.max_rank = most;
        Ok(self)
    }

    /// Columns to start with; by default as many as the relaxation has.
    pub fn start_rank(mut self, rank: Option<usize>) -> Result<Self> {
        if let Some(rank) = rank.filter(|r| *r == 0 || *r > self.solver.max_rank) {
            return refused("the rank at the start", rank, "it must be at least 1 and not exceed the largest rank");
        }
        self.solver.start_rank = rank;
        Ok(self)
    }

    /// The paper's own mode: PALM with Barzilai-Borwein steps from a random start of `start_rank` columns (a tenth of the states unless given, at most 300), its local rule, its
    /// absolute threshold, one column at a time, and never more than `max_rank` columns.
    pub fn as_in_paper(mut self, states: usize, start_rank: Option<usize>, max_rank: usize) -> Result<Self> {
        let start = start_rank.unwrap_or_else(|| (states / 10).min(PAPER_START).min(max_rank).max(1));
        self.solver = Settings { seed: self.seed, ..Settings::paper(start, PAPER_THRESHOLD) };
        self.as_in_paper = true;
        self.max_rank(max_rank)?.start_rank(Some(start))
    }

    /// The local solver.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver.solver = solver;
        self
    }

    /// When the solver may stop.
    pub fn stop(mut self, stop: StopRule) -> Self {
        self.solver.stop = stop;
        self
    }

    /// The KKT residual to reach.
    pub fn tolerance(mut self, tolerance: f64) -> Result<Self> {
        if !(tolerance > 0.0 && tolerance.is_finite()) {
            return refused("the tolerance", tolerance, "it must be a positive number");
        }
        self.solver.tolerance = tolerance;
        Ok(self)
    }

    /// Where the solver starts.
    pub fn start(mut self, start: Start) -> Self {
        self.solver.start = start;
        self
    }

    /// When columns are merged.
    pub fn redundancy(mut self, redundancy: Redundancy) -> Self {
        self.solver.redundancy = redundancy;
        self
    }

    /// The second fit. Unless given, by likelihood where lambda is chosen, else none: a lambda that is chosen is a large one, which finds the rank and
    /// proves it; its solution is shrunk too far to predict or to make zones.
    pub fn refit(mut self, refit: RefitKind) -> Self {
        self.refit = Some(refit);
        self
    }

    /// How states get their zones. Unless given, by the largest membership after a second fit, whose memberships are near 0 and 1; by
    /// k-means without one, as in the paper, because penalised memberships are blurred.
    pub fn clusters(mut self, clusters: Clusters) -> Result<Self> {
        if clusters == Clusters::Count(0) {
            return refused("the number of zones", 0, "at least one is needed");
        }
        self.clusters = Some(clusters);
        Ok(self)
    }

    /// Transitions that the prior of the likelihood adds to every state; chosen on held-out transitions unless given.
    pub fn prior(mut self, prior: f64) -> Result<Self> {
        if !(prior >= 0.0 && prior.is_finite()) {
            return refused("the prior", prior, "it must be zero or a positive number");
        }
        self.prior = Some(prior);
        Ok(self)
    }

    /// Parts of the data that are held out in turn.
    pub fn folds(mut self, folds: usize) -> Result<Self> {
        if !FOLDS_ALLOWED.contains(&folds) {
            return refused("the number of folds", folds, "it must be between 2 and 1000");
        }
        self.folds = folds;
        Ok(self)
    }

    /// Kinetics with detailed balance, on the meta-states and on all states.
    pub fn reversible(mut self, reversible: bool) -> Self {
        self.reversible = reversible;
        self
    }

    /// Draws for the intervals of memberships and timescales; zero for none.
    pub fn bootstrap(mut self, draws: usize) -> Result<Self> {
        if draws == 1 {
            return refused("the number of draws", 1, "at least 2 draws are needed, 50 are usual");
        }
        self.bootstrap = draws;
        Ok(self)
    }

    /// Seed of everything random.
    pub fn seed(mut self, seed: u64) -> Self {
        (self.seed, self.solver.seed) = (seed, seed);
        self
    }

    /// Whether lambda is to be chosen.
    #[must_use]
    pub fn chooses(&self) -> bool {
        self.lambda == Lambda::Chosen
    }

    /// The second fit that will be made.
    #[must_use]
    pub fn refit_kind(&self) -> RefitKind {
        self.refit.unwrap_or_else(|| RefitKind::unless_given(self.chooses(), self.objective))
    }

    /// How states will get their zones.
    #[must_use]
    pub fn hard(&self) -> Clusters {
        self.clusters.unwrap_or_else(|| Clusters::unless_given(self.refit_kind(), self.objective))
    }

    /// Whether the data is needed in parts that can be held out or drawn anew.
    #[must_use]
    pub fn needs_parts(&self) -> bool {
        self.chooses() || self.bootstrap > 0 || (self.refit_kind() == RefitKind::Likelihood && self.prior.is_none())
    }

    /// Whether transitions must be held out, which a transition matrix does not have: where the number of meta-states or a path is to be judged.
    pub(super) fn must_hold_out(&self) -> bool {
        self.chooses() && (self.rank == Rank::Chosen || self.path.whole || self.as_in_paper)
    }

    /// The settings of the solver.
    #[must_use]
    pub fn solver_settings(&self) -> &Settings {
        &self.solver
    }

    /// Checks the options against each other.
    pub(super) fn check(&self, rows: usize, cols: usize, counted: bool) -> Result<()> {
        self.solver.check(rows, cols)?;
        if self.objective == ObjectiveKind::Whitened {
            let name = "the whitened objective";
            if !self.chooses() {
                return refused(name, "a given lambda", "its lambda follows from the noise: give the rank, or nothing");
            }
            if self.as_in_paper || self.path.whole {
                return refused(name, "the paper's mode or a path", "the paper's mode and paths of lambda are about the paper's objective");
            }
            if self.solver.solver != Solver::Fast || !matches!(self.solver.stop, StopRule::Certificate { .. }) {
                return refused(name, "another solver or stopping rule", "it is solved by the fast solver and stops at a proven gap");
            }
        }
        if let Clusters::Count(k) = self.hard()
            && k > rows
        {
            return refused("the number of zones", k, "it must not exceed the number of states");
        }
        if self.bootstrap > 0 && self.refit_kind() != RefitKind::Likelihood {
            return refused(
                "the number of draws",
                self.bootstrap,
                "intervals need the refit by likelihood: they say how sure that refit is",
            );
        }
        if !counted && !self.must_hold_out() && self.bootstrap > 0 {
            return refused(
                "the number of draws",
                self.bootstrap,
                "a transition matrix has no transitions that could be drawn anew; give counts",
            );
        }
        if let Rank::Given(k) = self.rank
            && k > rows.min(cols)
        {
            return refused("the rank", k, "it must not exceed the number of states");
        }
        Ok(())
    }

    /// The highest rank that the solution may have.
    pub(super) fn most(&self) -> usize {
        match self.rank {
            Rank::Given(k) => k,
            Rank::Chosen => self.solver.max_rank,
        }
    }
}
