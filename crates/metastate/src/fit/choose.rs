//! Rank, prior and lambda from the data: the rank by held-out likelihood (or as given), then the smallest lambda at which no further meta-state pays. Where the whole path is asked for, or
//! the paper's own mode, lambda is the first on the path that reaches the rank.

use super::data::{Data, Parts};
use super::observe::{FitObserver, OnPath, Stage, Unfinished};
use super::options::{FitOptions, Rank};
use crate::counts::Folds;
use crate::error::{Error, Result};
use crate::solve::path::{FoldPaths, LambdaPoint, first_with_rank, lambda_grid, solve_point};
use crate::solve::refit::SpectralFits;
use crate::solve::score::Smoothing;
use crate::solve::select::{Choice, SelectSettings, outlook, select_at, select_watched};
use crate::solve::{Control, Effort, Factors, Problem, Settings, Solution, Start, StopRule, keeps_all, lambda_of_rank};

/// The path is solved to this gap (or to the one asked for, down to [`LEAST_PATH_GAP`]) and this KKT residual; the chosen point in full afterwards.
const PATH_GAP: f64 = 1e-2;
const LEAST_PATH_GAP: f64 = 1e-3;
const PATH_TOLERANCE: f64 = 1e-4;
/// Up to this number of states every point of the path keeps its zones, for pictures.
pub(super) const MOST_STATES_WITH_ZONES: usize = 20_000;

/// Where the solver keeps fewer meta-states than wanted, lambda is made smaller by this factor, so many times at most.
const SMALLER: f64 = 0.7;
const SMALLER_LAMBDAS: usize = 6;

/// What was chosen.
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let inside = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)].repeat(40);
/// let clicks = inside.into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// let chosen = model.chosen.as_ref().unwrap();
/// assert!(chosen.lambda <= model.lambda_max);
/// assert_eq!((chosen.choice.rank, chosen.folds), (2, 5));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chosen {
    /// The rank and the prior, and what they were chosen from.
    pub choice: Choice,
    /// lambda.
    pub lambda: f64,
    /// The points of the path, from the largest lambda down; only the chosen one where the path was not asked for.
    pub points: Vec<LambdaPoint>,
    /// The number of the point whose lambda was chosen. Its rank is lower than the chosen one where no lambda was found that gives that.
    pub at: usize,
    /// What was chosen and why, in one sentence.
    pub sentence: String,
    /// How the folds were made, in words.
    pub folds_are: String,
    /// How many there were.
    pub folds: usize,
    /// The settings of the solve at the lambda chosen.
    pub(super) settings: Settings,
    /// The spectral start at the chosen rank, where it was made on the way.
    pub(super) near: Option<Factors>,
}

impl Chosen {
    /// Told of the solve at the lambda chosen: where there is no path, that is its only point, and the sentence says what it gave.
    pub(super) fn solved(&mut self, solution: &Solution, lambda_max: f64) {
        if !self.points.is_empty() {
            return;
        }
        self.points.push(LambdaPoint::new(solution, lambda_max, None, MOST_STATES_WITH_ZONES));
        let (lambda, wanted) = (self.lambda, self.choice.rank);
        let how = match solution.rank() {
            r if r < wanted => format!("lambda {lambda:.4e} gives {r} of them, so only a refit has that many"),
            _ if wanted == 1 => format!("lambda {lambda:.4e} is the smallest at which one is best"),
            _ => format!("lambda {lambda:.4e} gives as many"),
        };
        self.sentence = format!("{}: {how}.", self.choice.sentence().trim_end_matches('.'));
    }
}

/// The data in parts, or why there are none.
pub(super) fn parts(data: &Data, lambda_max: f64) -> Result<&Parts> {
    data.parts().ok_or(Error::NothingToHoldOut { lambda_max })
}

/// How ranks and priors are compared.
pub(super) fn select_settings(options: &FitOptions) -> SelectSettings {
    let settings = SelectSettings { max_rank: options.solver.max_rank, seed: options.seed, ..SelectSettings::default() };
    // A prior that is given is the one that all ranks are judged with: the score reported is that of the model returned.
    match options.prior {
        Some(given) => SelectSettings { first_prior: given, priors: vec![given], ..settings },
        None => settings,
    }
}

/// Chooses.
pub(super) fn choose(
    data: &Data,
    options: &FitOptions,
    lambda_max: f64,
    unfinished: &mut Unfinished,
    observer: &mut dyn FitObserver,
) -> Result<Chosen> {
    let parts = parts(data, lambda_max)?;
    let folds = parts.folds(options.folds, options.seed)?;
    observer.stage(Stage::Choosing);
    let choice = choose_rank(&folds, options, unfinished, observer)?;
    observer.chosen(&choice);

    observer.stage(Stage::Path);
    match options.path.whole || options.as_in_paper {
        true => on_path(data, options, lambda_max, choice, &folds, unfinished, observer),
        false => of_rank(data, options, lambda_max, choice, &folds, observer),
    }
}

/// Where a rank leads: a lambda that gives it, and how to solve there.
pub(super) struct AtRank {
    /// lambda.
    pub lambda: f64,
    /// The settings of the solve there.
    pub settings: Settings,
    /// The spectral start at that rank.
    pub near: Factors,
}

/// The smallest lambda at which no further meta-state than `rank` pays, or a smaller one where the solver then keeps too few.
pub(super) fn at_rank(data: &Data, options: &FitOptions, lambda_max: f64, rank: usize, observer: &mut dyn FitObserver) -> Result<AtRank> {
    let chain = data.chain();
    let near = SpectralFits::of_observed(data.observed()?.0, options.seed).near(rank)?;
    go_on(observer)?;
    let (mut lambda, mut start) = match near.rank() {
        1 => (lambda_max, near.clone()),
        _ => {
            let found =
                lambda_of_rank(chain.p(), chain.weights(), &near, lambda_max, options.seed, &mut || observer.look() == Control::Continue)?;
            (found.lambda, found.factors)
        }
    };
    // The rank that is wanted, no more: the certified gap says what that costs.
    let most = rank.min(options.most());
    let mut settings = Settings { max_rank: most, start_rank: None, ..options.solver.clone() };
    // The search tells columns by their length; the solver also merges those that are alike. Where it keeps fewer than wanted, lambda is too large.
    for _ in 0..if near.rank() > 1 { SMALLER_LAMBDAS } else { 0 } {
        let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
        let keeps = keeps_all(&problem, &mut start, &settings, &mut || observer.look() == Control::Continue)?;
        if keeps {
            break;
        }
        lambda *= SMALLER;
        start = near.clone();
    }
    settings.start = Start::Given(Box::new(start));
    Ok(AtRank { lambda, settings, near })
}

/// A rank that was chosen with its lambda.
fn of_rank(
    data: &Data,
    options: &FitOptions,
    lambda_max: f64,
    choice: Choice,
    folds: &Folds,
    observer: &mut dyn FitObserver,
) -> Result<Chosen> {
    let AtRank { lambda, settings, near } = at_rank(data, options, lambda_max, choice.rank, observer)?;
    let (folds_are, folds) = (parts(data, lambda_max)?.how(), folds.len());
    Ok(Chosen { choice, lambda, points: Vec::new(), at: 0, sentence: String::new(), folds_are, folds, settings, near: Some(near) })
}

/// The largest lambda of the path that gives the rank.
fn on_path(
    data: &Data,
    options: &FitOptions,
    lambda_max: f64,
    choice: Choice,
    folds: &Folds,
    unfinished: &mut Unfinished,
    observer: &mut dyn FitObserver,
) -> Result<Chosen> {
    let run = PathRun { data, options, lambda_max, settings: path_settings(options, choice.rank), rank: choice.rank };
    let mut fold_paths = if options.path.whole { Some(FoldPaths::new(folds, data.chain().weights())?) } else { None };
    let start = run.solve(unfinished, fold_paths.as_mut(), observer)?;
    let points = std::mem::take(&mut unfinished.points);

    let ranks: Vec<usize> = points.iter().map(|p| p.rank).collect();
    let at = first_with_rank(&ranks, choice.rank).ok_or(Error::Empty { what: "the path" })?;
    let (lambda, reached) = (points[at].lambda, points[at].rank >= choice.rank);
    let how = if reached {
        format!("lambda {lambda:.4e} is the largest of the path that gives it")
    } else {
        format!("no lambda of the path gives it; {lambda:.4e}, the smallest, gives {}, so only a refit has that many", points[at].rank)
    };
    let sentence = format!("{}: {how}.", choice.sentence().trim_end_matches('.'));
    let most = choice.rank.min(options.most());
    let start = start.filter(|x| x.rank() <= most).map_or(options.solver.start.clone(), |x| Start::Given(Box::new(x)));
    let settings = Settings { max_rank: most, start_rank: None, start, ..options.solver.clone() };
    let (folds_are, folds) = (parts(data, lambda_max)?.how(), folds.len());
    Ok(Chosen { choice, lambda, points, at, sentence, folds_are, folds, settings, near: None })
}

/// Rank and prior on the folds; every attempt is kept.
pub(super) fn choose_rank(
    folds: &Folds,
    options: &FitOptions,
    unfinished: &mut Unfinished,
    observer: &mut dyn FitObserver,
) -> Result<Choice> {
    let settings = select_settings(options);
    let tried = unfinished.attempts.clone();
    let mut watch = |attempts: &[_]| {
        attempts.last().into_iter().for_each(|a| observer.attempted(a));
        observer.choosing(&outlook(attempts, folds.len(), matches!(options.rank, Rank::Given(_))));
        unfinished.attempts = attempts.to_vec();
        observer.keep(unfinished) == Control::Continue
    };
    let choice = match options.rank {
        Rank::Chosen => select_watched(folds, &settings, tried, &mut watch)?,
        Rank::Given(rank) => select_at(folds, rank, &settings, tried, &mut watch)?,
    };
    choice.ok_or(Error::Interrupted)
}

fn path_settings(options: &FitOptions, rank: usize) -> Settings {
    let solver = &options.solver;
    let gap = if let StopRule::Certificate { gap } | StopRule::Exact { tolerance: gap } = solver.stop { gap } else { LEAST_PATH_GAP };
    Settings {
        stop: if options.as_in_paper { solver.stop } else { StopRule::Certificate { gap: gap.clamp(LEAST_PATH_GAP, PATH_GAP) } },
        tolerance: PATH_TOLERANCE.max(solver.tolerance),
        max_rank: if options.path.whole { options.most() } else { rank },
        // Where the path only leads to the chosen rank, its points are not worth a proof each; the answer is.
        certificate: if options.path.whole { solver.certificate } else { Effort { prove: false, ..solver.certificate } },
        ..solver.clone()
    }
}

/// The path that leads to one rank.
struct PathRun<'a> {
    data: &'a Data,
    options: &'a FitOptions,
    lambda_max: f64,
    settings: Settings,
    rank: usize,
}

impl PathRun<'_> {
    /// Solves the points that `unfinished` does not hold yet; hands back the solution at the first that reaches the rank.
    fn solve(
        &self,
        unfinished: &mut Unfinished,
        mut folds: Option<&mut FoldPaths>,
        observer: &mut dyn FitObserver,
    ) -> Result<Option<Factors>> {
        let lambdas = lambda_grid(self.lambda_max, self.options.path.floor, self.options.path.points)?;
        if let Some(folds) = folds.as_deref_mut().filter(|_| !unfinished.fold_factors.is_empty()) {
            folds.set_factors(unfinished.fold_factors.clone());
        }
        let mut found = None;
        for (k, &lambda) in lambdas.iter().enumerate() {
            if let Some(point) = unfinished.points.get(k) {
                if point.rank >= self.rank && found.is_none() && k + 1 == unfinished.points.len() {
                    found = unfinished.factors.clone();
                }
                if self.ends(point) {
                    break;
                }
                continue;
            }
            let problem = Problem::new(self.data.chain().p(), self.data.chain().weights(), lambda)?;
            let solution = solve_point(&problem, &self.settings, unfinished.factors.as_ref(), &mut OnPath(observer))?;
            go_on(observer)?;
            let held_out = folds.as_deref_mut().map(|f| f.point(lambda, &self.settings, Smoothing::default())).transpose()?;
            let point = LambdaPoint::new(&solution, self.lambda_max, held_out.as_ref(), MOST_STATES_WITH_ZONES);
            observer.path_point(&point);
            if point.rank >= self.rank && found.is_none() {
                found = Some(solution.factors.clone());
            }
            let last = self.ends(&point);
            unfinished.points.push(point);
            unfinished.factors = Some(solution.factors);
            unfinished.fold_factors = folds.as_deref().map_or_else(Vec::new, |f| f.factors().to_vec());
            if observer.keep(unfinished) != Control::Continue {
                return Err(Error::Interrupted);
            }
            if last {
                break;
            }
        }
        Ok(found)
    }

    /// The path ends at the highest rank allowed; without the whole path asked for, where the chosen rank is reached.
    fn ends(&self, point: &LambdaPoint) -> bool {
        point.rank >= self.settings.max_rank
    }
}

/// An error when the outside asked the fit to end.
pub(super) fn go_on(observer: &mut dyn FitObserver) -> Result<()> {
    if observer.look() == Control::Continue { Ok(()) } else { Err(Error::Interrupted) }
}
