//! What a fit hands out.

use super::choose::Chosen;
use super::observe::FitObserver;
use super::options::{Clusters, FitOptions, RefitKind};
use super::refit::{Intervals, Refit, Wanted, refit};
use crate::aggregate::latent::LatentChain;
use crate::aggregate::{Change, KMeans, Partition, SliceFlows, ZoneFlows, kmeans};
use crate::chain::Slices;
use crate::error::{Error, Result};
use crate::kinetics::Kinetics;
use crate::linalg::{Mat, Operator};
use crate::proof::Proven;
use crate::solve::errors::{relative_recovery_error, relative_sampling_error};
use crate::solve::{Factors, Solution, Status};

use super::data::Data;
use super::whitened::Stated;

/// The meta-states behind a chain, and how good they are known to be.
///
/// There may be two sets of factors: the [`solution`](Model::solution) of the penalised problem, which the proof is about, and the [`refit`](Model::refit) at the same
/// rank without the penalty, which predicts better and has no proof. [`factors`](Model::factors) are the ones to show: those of the refit where there is one.
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let clicks = [(0, 1), (1, 0), (2, 3), (3, 2)].repeat(40).into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// assert_eq!(model.zones.labels.len(), 4);
/// assert_eq!(model.memberships().cols(), model.rank());
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Model {
    /// The smallest lambda at which one meta-state is best.
    pub lambda_max: f64,
    /// How rank, prior and lambda were chosen, where they were.
    pub chosen: Option<Chosen>,
    /// Weights, prices and noise of the whitened problem, where that was solved.
    pub stated: Option<Stated>,
    /// The penalised problem at its lambda, with its proof.
    pub solution: Solution,
    /// The second fit.
    pub refit: Option<Refit>,
    /// How sure the memberships are, where draws were asked for.
    pub intervals: Option<Intervals>,
    /// The one zone of each state.
    pub zones: Partition,
    /// What goes on between zones and between meta-states; none where origins and destinations are different sets.
    pub moves: Option<Moves>,
    /// When and where the transitions of each meta-state go, where the data have slices.
    pub slices: Option<SlicedModel>,
    /// What a user should know, in sentences.
    pub hints: Vec<String>,
}

/// What a model with slices says of them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SlicedModel {
    /// Which row of V is which slice and which state.
    pub slices: Slices,
    /// The model of the chain without its slices: the same memberships, profiles added up over the slices. Everything about more than one step uses it.
    pub whole: Factors,
    /// Flows between the meta-states in each slice.
    pub flows: SliceFlows,
    /// Which zones change over the slices; none where that cannot be tested.
    pub change: Option<Change>,
}

/// The moves between zones and the chain of the meta-states, for a chain whose rows and columns are the same states.
///
/// ```
/// use metastate::{Counts, Data, Estimate, FitOptions, Silent, StateIndex, fit};
///
/// let inside = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)].repeat(40);
/// let clicks = inside.into_iter().chain([(1, 2), (2, 1)]);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(4), clicks)?, &Estimate::default())?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// let moves = model.moves()?;
/// assert!(moves.flows.trade(0).self_share > 0.95); // the two groups of states are rarely left
/// assert!(moves.kinetics.modes[1].timescale > 10.0); // in steps
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Moves {
    /// What moves between the zones.
    pub flows: ZoneFlows,
    /// The chain of the meta-states as the data have it: times, rates and fates that neither prior nor penalty makes.
    pub kinetics: Kinetics,
}

impl Model {
    /// U and V to show, forecast and draw with.
    pub fn factors(&self) -> &Factors {
        self.refit.as_ref().map_or(&self.solution.factors, Refit::factors)
    }

    /// Number of meta-states.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.factors().rank()
    }

    /// Memberships, one row a state that is left: row i says how much state i belongs to each meta-state.
    #[must_use]
    pub fn memberships(&self) -> &Mat {
        &self.factors().u
    }

    /// Destinations, one row a state that is reached: column j is the law of the next state out of meta-state j. With slices, one row a slice and state that is reached in it.
    #[must_use]
    pub fn destinations(&self) -> &Mat {
        &self.factors().v
    }

    /// The factors of a chain that goes on: those of [`factors`](Model::factors), with slices their sum over the slices.
    #[must_use]
    pub fn going_on(&self) -> &Factors {
        self.slices.as_ref().map_or_else(|| self.factors(), |s| &s.whole)
    }

    /// What is proven of the penalised solution; none where nothing was.
    #[must_use]
    pub fn proof(&self) -> Option<&Proven> {
        self.solution.proof.as_ref()
    }

    /// The same solution refitted in another way, without a new choice: what the recipe would have shown had it been asked for `kind`.
    pub fn refitted(&self, data: &Data, options: &FitOptions, kind: RefitKind, observer: &mut dyn FitObserver) -> Result<Option<Refit>> {
        let options = options.clone().refit(kind);
        refit(data, &options, &self.solution, Wanted::new(&self.solution, self.chosen.as_ref()), observer)
    }

    /// `K = V^T U`, the chain on meta-states, with times and forecasts. Refused where origins and destinations are different sets.
    pub fn latent_chain(&self) -> Result<LatentChain<'_>> {
        self.moves()?;
        LatentChain::new(self.memberships(), &self.going_on().v)
    }

    /// What goes on between zones and meta-states. Refused where origins and destinations are different sets.
    pub fn moves(&self) -> Result<&Moves> {
        self.moves.as_ref().ok_or(Error::DoesNotGoOn)
    }

    /// The latent chain with the kinetics of the data: forecasts, passage times and committors that neither prior nor penalty makes.
    pub fn kinetic_chain(&self) -> Result<LatentChain<'_>> {
        self.moves()?.kinetics.latent(self.memberships(), &self.going_on().v)
    }

    /// How far the model is from the true transition matrix, where that is known.
    pub fn against(&self, truth: &dyn Operator, data: &Data) -> Recovery {
        let (chain, weights) = (data.chain(), data.chain().weights());
        Recovery {
            solution: relative_recovery_error(weights, &self.solution.factors, truth),
            sampling: relative_sampling_error(weights, chain.p(), truth),
            refit: self.refit.as_ref().map(|r| relative_recovery_error(weights, r.factors(), truth)),
        }
    }
}

/// Distances to the truth, relative to its size, in the norm of the objective.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::{Data, Estimate, FitOptions, Silent, WeightsBy, fit};
///
/// let truth = planted(30, 2, 1)?;
/// let estimate = Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() };
/// let data = Data::from_counts(&truth.sample_counts(20_000, 1)?, &estimate)?;
/// let model = fit(&data, &FitOptions::default(), &mut Silent)?;
/// let recovery = model.against(truth.chain()?.p(), &data);
/// assert!(recovery.refit.unwrap() < recovery.sampling); // nearer to the truth than the counts are
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Recovery {
    /// Of the penalised solution, relRE.
    pub solution: f64,
    /// Of the empirical P, relSE.
    pub sampling: f64,
    /// Of the refit.
    pub refit: Option<f64>,
}

/// The one zone of each state.
pub(super) fn zones(clusters: Clusters, u: &Mat, xi: &[f64], seed: u64) -> Result<Partition> {
    let by_kmeans = |k: usize| -> Result<Partition> { Ok(kmeans(u, xi, &KMeans::new(k, u.rows(), u.cols(), seed))?.partition) };
    match clusters {
        Clusters::Membership => Ok(Partition::by_membership(u, xi)),
        // More meta-states than states: there cannot be a zone for each of them.
        Clusters::Rank if u.cols() > u.rows() => Ok(Partition::by_membership(u, xi)),
        Clusters::Rank => Ok(by_kmeans(u.cols())?.numbered_as_columns(u, xi)),
        Clusters::Count(k) => by_kmeans(k),
    }
}

/// What the numbers mean for somebody who reads them for the first time.
pub(super) fn hints(solution: &Solution, chosen: Option<&Chosen>, lambda_max: f64, options: &FitOptions) -> Vec<String> {
    let mut hints: Vec<String> = chosen.iter().map(|c| c.sentence.clone()).collect();
    let max_rank = chosen.map_or(options.most(), |c| c.settings.max_rank);
    if solution.lambda >= lambda_max {
        hints.push(format!("lambda is at or above lambda_max ({lambda_max:.3e}): one meta-state is best; a smaller lambda gives more"));
    }
    if solution.status == Status::RankCap {
        hints.push(format!(
            "more than {max_rank} meta-states would lower the objective; a larger lambda needs fewer, a larger --max-rank allows more"
        ));
    }
    if solution.status != Status::Certified {
        hints.push(match solution.certified_gap() {
            Some(gap) => format!(
                "the penalised solution is not proven optimal: its objective is proven to be within {gap:.2e} of the best possible one"
            ),
            None => "nothing was proven about how far the objective of the penalised solution is from the best possible one".to_owned(),
        });
    }
    hints
}

/// A meta-state with less of all departures than this is nothing but rounding.
const NOTHING: f64 = 1e-9;

/// Meta-states that are the largest membership of no state: they are no zones that were found.
pub(super) fn without_states(u: &Mat, xi: &[f64]) -> Option<String> {
    let s = u.cols();
    let (mut most, mut mass) = (vec![false; s], vec![0.0; s]);
    for (i, home) in u.largest_entries().enumerate() {
        most[home] = true;
        mass.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += xi[i] * u);
    }
    let total: f64 = mass.iter().sum();
    let empty: Vec<usize> = (0..s).filter(|&k| !most[k]).collect();
    let numbers = |all: &[usize]| all.iter().map(|k| (k + 1).to_string()).collect::<Vec<_>>().join(", ");
    let share: f64 = empty.iter().map(|&k| mass[k]).sum::<f64>() / total;
    let (are, they, them) = if empty.len() == 1 { ("is", "it", "it") } else { ("are", "they", "them") };
    match empty.len() {
        0 => None,
        n if share < NOTHING => Some(format!(
            "{n} of the {s} meta-states ({}) {are} empty: no state belongs to {them}, and {} were found",
            numbers(&empty),
            s - n
        )),
        n => Some(format!(
            "{n} of the {s} meta-states ({}) {are} the largest membership of no state: {they} hold{} {:.2} % of all departures as a part of states that belong more to others, so {} zones have states",
            numbers(&empty),
            if n == 1 { "s" } else { "" },
            100.0 * share,
            s - n
        )),
    }
}

/// What became of the rank that was asked of a transition matrix.
pub(super) fn rank_of_matrix(solution: &Solution, options: &FitOptions) -> String {
    let (wanted, found, lambda) = (options.most(), solution.rank(), solution.lambda);
    let how = match found < wanted {
        true => format!("lambda {lambda:.4e} gives {found} of them, so only a refit has that many"),
        false => format!("lambda {lambda:.4e} gives as many"),
    };
    let prior = if options.prior.is_some() { "" } else { ", and the refit has no prior" };
    format!(
        "{wanted} meta-states: as asked for: {how}. Nothing can be held out of a transition matrix, so nothing says whether another number would be better{prior}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_state_without_states_is_said() {
        let xi = [0.5, 0.5];
        let told = |rows: Vec<f64>| without_states(&Mat::from_vec(2, 3, rows).unwrap(), &xi);
        assert_eq!(
            told(vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0]).unwrap(),
            "1 of the 3 meta-states (3) is empty: no state belongs to it, and 2 were found"
        );
        let blend = told(vec![0.7, 0.0, 0.3, 0.0, 0.9, 0.1]).unwrap();
        assert!(
            blend.contains("(3) is the largest membership of no state: it holds 20.00 % of all departures")
                && blend.ends_with("2 zones have states"),
            "{blend}"
        );
        assert_eq!(without_states(&Mat::from_vec(2, 2, vec![0.6, 0.4, 0.4, 0.6]).unwrap(), &xi), None);
    }
}
