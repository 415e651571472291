//! The recipe: from data to meta-states in one call.
//!
//! 1. `lambda_max`, above which one meta-state is best.
//! 2. The rank and the prior, on transitions that were held out (or the rank as given): `choose`.
//! 3. lambda, the smallest found at which no further meta-state pays, or a smaller one where that keeps too few (on the whole path, the largest whose solution has that rank).
//! 4. The penalised problem at that lambda, solved and proven.
//! 5. The same rank once more without the penalty, by likelihood: `refit`; with intervals where they are asked for.
//! 6. The one zone of each state, and what flows between zones.
//!    With slices, the flows in each of them, and which zones change over them.
//! 7. The chain of the meta-states once more on the data, for times that neither prior nor penalty makes: [`crate::kinetics`].
//!
//! The command, the Python package and the experiments all call [`fit`]. It reads no file and no clock: whoever wants to watch, stop, time or keep a run does so
//! through a [`FitObserver`].

mod choose;
mod data;
mod model;
mod observe;
mod options;
mod refit;
mod resume;
mod whitened;

pub use choose::Chosen;
pub use data::{Data, Parts};
pub use model::{Model, Moves, Recovery, SlicedModel};
pub use observe::{FitObserver, Stage, Unfinished};
pub use options::{Clusters, FOLDS, FitOptions, Lambda, ObjectiveKind, PAPER_MAX_RANK, PATH_FLOOR, PATH_POINTS, Path, Rank, RefitKind};
use refit::Wanted;
pub use refit::{CONFIDENCE, Intervals, Refit};
pub use whitened::{ABOVE_NOISE, PRICE, Scores, Stated};

use std::sync::Arc;

// All that a model holds can be named from here.
pub use crate::solve::bootstrap::Uncertainty;
pub use crate::solve::path::LambdaPoint;
pub use crate::solve::refit::{BestRefit, LeastSquares, Likelihood};
pub use crate::solve::score::Score;
pub use crate::solve::select::{Attempt, Choice, HeldOut};

use crate::aggregate::{Change, ChangeSettings, Partition, SliceFlows, ZoneFlows};
use crate::chain::empirical::transition_matrix;
use crate::chain::{Chain, Slices};
use crate::counts::folds::sum;
use crate::error::{Error, Result};
use crate::kinetics::{Kinetics, LagLook, Observations, Uncertain};
use crate::linalg::Mat;
use crate::solve::bootstrap::Resample;
use crate::solve::{self, Problem};

/// Finds the meta-states behind the data.
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// // Two groups of two pages, 40 clicks inside a group for each one between them.
/// let inside = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40);
/// let clicks = inside.into_iter().chain([(1, 2), (2, 1)]);
/// let counts = Counts::from_pairs(StateIndex::numbered(4), clicks)?;
/// let data = Data::from_counts(&counts, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// assert_eq!(model.memberships().rows(), 4);
/// assert!(model.proof().is_some());
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn fit(data: &Data, options: &FitOptions, observer: &mut dyn FitObserver) -> Result<Model> {
    fit_from(data, options, Unfinished::default(), observer)
}

/// Goes on with an interrupted fit of the same data with the same options, to the same bits as if it had never stopped.
///
/// ```
/// use metastate::fit::{FitObserver, Unfinished};
/// use metastate::solve::{Control, Observer};
/// use metastate::{Counts, Data, Error, Estimate, FitOptions, Silent, StateIndex, fit, fit_from};
///
/// /// Keeps what is done so far, and stops at once.
/// struct Impatient(Unfinished);
/// impl Observer for Impatient {}
/// impl FitObserver for Impatient {
///     fn keep(&mut self, unfinished: &Unfinished) -> Control {
///         self.0 = unfinished.clone();
///         Control::Interrupt
///     }
/// }
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let (options, mut impatient) = (FitOptions::default(), Impatient(Unfinished::default()));
/// assert_eq!(fit(&data, &options, &mut impatient).err(), Some(Error::Interrupted));
/// let resumed = fit_from(&data, &options, impatient.0, &mut Silent)?;
/// assert_eq!(resumed.memberships(), fit(&data, &options, &mut Silent)?.memberships());
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn fit_from(data: &Data, options: &FitOptions, mut unfinished: Unfinished, observer: &mut dyn FitObserver) -> Result<Model> {
    let chain = data.chain();
    options.check(chain.states(), chain.p().cols(), data.parts().is_some())?;
    if options.objective == ObjectiveKind::Whitened {
        let found = whitened::fit(data, options, &mut unfinished, observer)?;
        return finish(data, options, found, observer);
    }
    observer.stage(Stage::LambdaMax);
    let frame = Arc::new(solve::Frame::plain(chain.p().rows(), chain.p().cols()));
    let mut going = || observer.look() == solve::Control::Continue;
    let lambda_max = solve::lambda_max_watched(chain.p(), chain.weights(), &frame, options.seed, &mut going)?;
    if data.parts().is_none() && options.must_hold_out() {
        return Err(Error::NothingToHoldOut { lambda_max });
    }
    unfinished.check(data, options, lambda_max)?;
    match options.chooses() {
        true => choose::go_on(observer)?,
        false => not_interrupted(observer)?,
    }

    let mut chosen = match (options.lambda, data.parts()) {
        (Lambda::Chosen, Some(_)) => Some(choose::choose(data, options, lambda_max, &mut unfinished, observer)?),
        _ => None,
    };
    // Nothing can be held out of a transition matrix: its rank is given, and only lambda is searched for.
    let of_matrix = match (options.lambda, options.rank, &chosen) {
        (Lambda::Chosen, Rank::Given(rank), None) => {
            observer.stage(Stage::Path);
            Some(choose::at_rank(data, options, lambda_max, rank, observer)?)
        }
        _ => None,
    };
    let lambda = match (options.lambda, &chosen, &of_matrix) {
        (Lambda::Given(x), ..) => x,
        (Lambda::Ratio(r), ..) => r * lambda_max,
        (Lambda::Chosen, Some(chosen), _) => chosen.lambda,
        (Lambda::Chosen, None, found) => found.as_ref().map_or(lambda_max, |f| f.lambda),
    };

    observer.stage(Stage::Solving);
    let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
    let settings = chosen.as_ref().map(|c| &c.settings).or(of_matrix.as_ref().map(|f| &f.settings)).unwrap_or(&options.solver);
    let solution = match unfinished.snapshot {
        Some(snapshot) => solve::resume(&problem, settings, snapshot, observer)?,
        None => solve::solve(&problem, settings, observer)?,
    };
    not_interrupted(observer)?;
    if let Some(chosen) = &mut chosen {
        chosen.solved(&solution, lambda_max);
    }
    let near_of_matrix = of_matrix.map(|found| found.near);
    finish(data, options, Solved { lambda_max, chosen, near_of_matrix, solution, stated: None }, observer)
}

/// The solved problem, and how rank and lambda were chosen for it.
struct Solved {
    lambda_max: f64,
    chosen: Option<Chosen>,
    /// The spectral start at the rank given, where lambda was searched for on a transition matrix.
    near_of_matrix: Option<solve::Factors>,
    /// The whitened problem, where that is the one stated.
    stated: Option<Stated>,
    solution: solve::Solution,
}

/// From a proven solution to the model: the second fit, zones, what moves between them.
fn finish(data: &Data, options: &FitOptions, solved: Solved, observer: &mut dyn FitObserver) -> Result<Model> {
    let chain = data.chain();
    let Solved { lambda_max, chosen, near_of_matrix, mut solution, stated } = solved;
    // The solver orders by its weights; people count by mass, whatever the power of the weights.
    solution.factors.order_by_mass(chain.xi());

    let wanted = match (&near_of_matrix, options.rank) {
        (Some(near), Rank::Given(rank)) => Wanted { rank, prior: None, near: Some(near.clone()) },
        _ => Wanted::new(&solution, chosen.as_ref()),
    };
    let refit = refit::refit(data, options, &solution, wanted, observer)?;
    let intervals = refit::intervals(data, options, refit.as_ref(), observer)?;
    observer.stage(Stage::Zones);
    not_interrupted(observer)?;
    let shown = refit.as_ref().map_or(&solution.factors, Refit::factors);
    let zones = model::zones(options.hard(), &shown.u, chain.xi(), options.seed)?;
    // With cheaper directions lambda may exceed the lambda_max of equal prices.
    let most = if stated.is_some() { f64::INFINITY } else { lambda_max };
    let mut hints = model::hints(&solution, chosen.as_ref(), most, options);
    if near_of_matrix.is_some() {
        hints.insert(0, model::rank_of_matrix(&solution, options));
    }
    hints.extend(model::without_states(&shown.u, chain.xi()));
    // Where the time was up before there were intervals, there are none of the kinetics either.
    let draws = if intervals.is_none() && observer.look() == solve::Control::TimeUp { 0 } else { options.bootstrap };
    if draws < options.bootstrap {
        hints
            .push("the time was up before the draws were made: there are no intervals; a larger --time-limit has room for them".to_owned());
    }
    let moves = moves(data, options, &shown.u, &zones, draws, observer)?;
    hints.extend(moves.as_ref().map_or_else(|| vec![Error::DoesNotGoOn.to_string()], |m| m.kinetics.sentences.clone()));
    let slices = data.slices().map(|slices| sliced(data, options, slices, shown, &zones, &mut hints)).transpose()?;
    observer.stage(Stage::Done);
    Ok(Model { lambda_max, chosen, stated, solution, refit, intervals, zones, moves, slices, hints })
}

/// What the model says of each slice.
fn sliced(
    data: &Data,
    options: &FitOptions,
    slices: &Slices,
    shown: &solve::Factors,
    zones: &Partition,
    hints: &mut Vec<String>,
) -> Result<SlicedModel> {
    let parts = data.parts().ok_or(Error::Empty { what: "the list of transitions" })?;
    let change = Change::test(&parts.folds(options.folds, options.seed)?, slices, zones, &ChangeSettings::new(options.seed))?;
    if let Err(why) = &change {
        hints.push(format!("which zones change over the slices was not tested: {why}"));
    }
    let flows = SliceFlows::new(shown, slices, data.chain().xi())?;
    Ok(SlicedModel { slices: slices.clone(), whole: slices.whole_model(shown), flows, change: change.ok() })
}

/// What goes on between zones and meta-states, where the chain goes on at all.
fn moves(
    data: &Data,
    options: &FitOptions,
    u: &Mat,
    zones: &Partition,
    draws: usize,
    observer: &mut dyn FitObserver,
) -> Result<Option<Moves>> {
    let Some(chain) = data.going_on() else { return Ok(None) };
    let flows = ZoneFlows::new(chain.p(), chain.departures(), zones);
    not_interrupted(observer)?;
    Ok(Some(Moves { flows, kinetics: kinetics(data, chain, options, u, draws)? }))
}

/// The chain of the meta-states, estimated once more on the data at the memberships to be shown.
fn kinetics(data: &Data, chain: &Chain, options: &FitOptions, u: &Mat, draws: usize) -> Result<Kinetics> {
    let parts = data.parts();
    let observed =
        Observations { p: chain.p(), departures: chain.departures(), overlap: parts.map_or(1.0, Parts::overlap), counted: parts.is_some() };
    let uncertain = data.uncertain(draws > 0, options.reversible, options.seed);
    let mut kinetics = Kinetics::estimate(u, &observed, options.reversible, uncertain.as_ref())?;
    if let Some(parts) = parts {
        let looks =
            LAGS.iter().filter_map(|&times| look_at(u, &observed, parts, times, options).transpose()).collect::<Result<Vec<_>>>()?;
        if let Some((lag, _)) = parts.at_lag(1) {
            kinetics.look_at_lags(lag, looks);
        }
    }
    Ok(kinetics)
}

/// Multiples of the lag that timescales and stays are looked at.
const LAGS: [usize; 5] = [1, 2, 5, 10, 20];

/// A trajectory counted at a multiple of its lag.
fn look_at(u: &Mat, own: &Observations, parts: &Parts, times: usize, options: &FitOptions) -> Result<Option<LagLook>> {
    let Some((lag, blocks)) = parts.at_lag(times) else { return Ok(None) };
    let counts = sum(blocks.iter())?;
    let p = transition_matrix(&counts)?;
    let departures = counts.row_sums();
    let observed = Observations { p: &p, departures: &departures, overlap: lag, counted: true };
    let uncertain = Uncertain { data: Resample::Blocks(&blocks), seed: options.seed };
    crate::kinetics::look_at(u, own, &observed, lag, &uncertain, CONFIDENCE).map(Some)
}

/// From the solve on there is an answer: time that is up ends the work early, and only an interruption ends it without a result.
fn not_interrupted(observer: &mut dyn FitObserver) -> Result<()> {
    if observer.look() == solve::Control::Interrupt { Err(Error::Interrupted) } else { Ok(()) }
}
