//! What a fit hands out.

use super::choose::Chosen;
use super::options::{Clusters, FitOptions};
use super::refit::{Intervals, Refit};
use crate::aggregate::latent::LatentChain;
use crate::aggregate::{KMeans, Partition, ZoneFlows, kmeans};
use crate::error::{Error, Result};
use crate::kinetics::Kinetics;
use crate::linalg::{Mat, Operator};
use crate::proof::Proven;
use crate::solve::errors::{relative_recovery_error, relative_sampling_error};
use crate::solve::{Factors, Solution, Status};

use super::data::Data;

/// The meta-states behind a chain, and how good they are known to be.
///
/// There may be two sets of factors: the [`solution`](Model::solution) of the penalised problem, which the proof speaks of, and the [`refit`](Model::refit) at the same
/// rank without the penalty, which predicts better and has no proof. [`factors`](Model::factors) are the ones to show: those of the refit where there is one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Model {
    /// The smallest lambda at which one meta-state is best.
    pub lambda_max: f64,
    /// How rank, prior and lambda were chosen, where they were.
    pub chosen: Option<Chosen>,
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
    /// What a user should know, in sentences.
    pub hints: Vec<String>,
}

/// What a chain that goes on from where it arrives does: moves between zones, and the chain of the meta-states.
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
    pub fn rank(&self) -> usize {
        self.factors().rank()
    }

    /// Memberships, one row a state that is left: row i says how much state i belongs to each meta-state.
    pub fn memberships(&self) -> &Mat {
        &self.factors().u
    }

    /// Destinations, one row a state that is reached: column j is the law of the next state out of meta-state j.
    pub fn destinations(&self) -> &Mat {
        &self.factors().v
    }

    /// What is proven of the penalised solution; none where nothing was.
    pub fn proof(&self) -> Option<&Proven> {
        self.solution.proof.as_ref()
    }

    /// `K = V^T U`, the chain on meta-states, with times and forecasts. Refused where origins and destinations are different sets.
    pub fn latent_chain(&self) -> Result<LatentChain<'_>> {
        self.moves()?;
        LatentChain::new(self.memberships(), self.destinations())
    }

    /// What goes on between zones and meta-states. Refused where origins and destinations are different sets.
    pub fn moves(&self) -> Result<&Moves> {
        self.moves.as_ref().ok_or(Error::DoesNotGoOn)
    }

    /// The latent chain with the kinetics of the data: forecasts, passage times and committors that neither prior nor penalty makes.
    pub fn kinetic_chain(&self) -> Result<LatentChain<'_>> {
        self.moves()?.kinetics.latent(self.memberships(), self.destinations())
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
#[derive(Debug, Clone, Copy, PartialEq)]
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
        // More meta-states than states: a zone for each cannot be had.
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
            "more than {max_rank} meta-states would lower the objective; a larger lambda asks for fewer, a larger --max-rank allows more"
        ));
    }
    if solution.status != Status::Certified {
        hints.push(match solution.certified_gap() {
            Some(gap) => format!(
                "the penalised solution is not proven optimal: its objective is proven to be within {gap:.2e} of the best possible one"
            ),
            None => "nothing was proven of how far the objective of the penalised solution is from the best possible one".to_owned(),
        });
    }
    hints
}
