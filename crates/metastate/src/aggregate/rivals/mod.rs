//! This method and its rivals, all from the same training counts at the same rank, so that they can be scored on the same
//! held-out transitions. Everything is matrix-free; nothing of size `d x d` is formed.

mod anchor;
mod lumped;
mod nmf;
mod ours;
mod reversible;
mod spectral;
mod training;

pub use ours::largest_lambda;
pub use spectral::{ClippedSvd, svd_partition};
pub use training::Training;

use super::clusters::{KMeans, Partition, kmeans};
use crate::error::{Error, Result};
use crate::solve::Factors;
use crate::solve::refit::LikelihoodSettings;
use crate::solve::score::Model;

/// A way to a model of rank r.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The penalised problem of this package, at rank r.
    Penalised,
    /// The same, refitted by least squares.
    LeastSquaresRefit,
    /// The same, refitted by likelihood with a prior.
    LikelihoodRefit,
    /// Truncated SVD of Xi P, k-means on `Xi^-1` times the left vectors, one row for each cluster (the paper's reference).
    SvdPartition,
    /// Truncated SVD of Xi P, negative entries cut, rows divided by their sums.
    SvdClipped,
    /// Nonnegative factors by least squares from NNDSVD.
    NmfLeastSquares,
    /// Nonnegative factors by Kullback-Leibler divergence from NNDSVD, without prior.
    NmfLikelihood,
    /// Reversible spectral clustering: memberships by the inner simplex of the slowest eigenvectors (PCCA+ without its last optimisation).
    Reversible,
    /// Anchor states: ratios of singular vectors, vertex hunting (SCORE).
    Anchor,
    /// The counts as they are.
    Empirical,
    /// One law for all states: rank one.
    RankOne,
}

impl Method {
    /// All, ours first.
    pub const ALL: [Method; 11] = [
        Method::Penalised,
        Method::LeastSquaresRefit,
        Method::LikelihoodRefit,
        Method::SvdPartition,
        Method::SvdClipped,
        Method::NmfLeastSquares,
        Method::NmfLikelihood,
        Method::Reversible,
        Method::Anchor,
        Method::Empirical,
        Method::RankOne,
    ];

    /// A short name for tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Method::Penalised => "penalised",
            Method::LeastSquaresRefit => "refit-least-squares",
            Method::LikelihoodRefit => "refit-likelihood",
            Method::SvdPartition => "svd-partition",
            Method::SvdClipped => "svd-clipped",
            Method::NmfLeastSquares => "nmf-least-squares",
            Method::NmfLikelihood => "nmf-kl",
            Method::Reversible => "reversible-pcca",
            Method::Anchor => "anchor-score",
            Method::Empirical => "empirical",
            Method::RankOne => "rank-one",
        }
    }

    /// Whether it is this package's own.
    pub fn is_ours(self) -> bool {
        matches!(self, Method::Penalised | Method::LeastSquaresRefit | Method::LikelihoodRefit)
    }
}

/// What all methods are given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RivalSettings {
    /// The rank.
    pub rank: usize,
    /// lambda of the penalised problem.
    pub lambda: f64,
    /// Choices of the likelihood refit.
    pub likelihood: LikelihoodSettings,
    /// Seed of everything random.
    pub seed: u64,
}

/// A model and, where the method has one, its own partition of the states.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// What it says of transitions.
    pub model: FittedModel,
    /// Hard meta-states that are part of the method; for memberships see [`Fitted::partition`].
    pub own_partition: Option<Partition>,
}

/// What a method says of transitions.
#[derive(Debug, Clone)]
pub enum FittedModel {
    /// `U V^T`.
    Factors(Factors),
    /// `max(0, L R^T)`, rows divided by their sums.
    Clipped(ClippedSvd),
    /// The training counts.
    Empirical,
    /// The marginal law.
    RankOne,
}

/// How memberships become hard meta-states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hard {
    /// k-means on the rows of U, as in the paper.
    #[default]
    KMeans,
    /// The largest membership.
    Membership,
}

impl Fitted {
    /// For the score.
    pub fn score_model(&self) -> Model<'_> {
        match &self.model {
            FittedModel::Factors(x) => Model::LowRank(x),
            FittedModel::Clipped(x) => Model::Rows(x),
            FittedModel::Empirical => Model::Empirical { pseudo: 0.0 },
            FittedModel::RankOne => Model::Independent,
        }
    }

    /// Hard meta-states, ordered by mass; `None` where the method has none.
    pub fn partition(&self, weights: &[f64], hard: Hard, seed: u64) -> Result<Option<Partition>> {
        if let Some(own) = &self.own_partition {
            return Ok(Some(own.clone()));
        }
        let FittedModel::Factors(x) = &self.model else { return Ok(None) };
        let (d, s) = (x.u.rows(), x.u.cols());
        Ok(Some(match hard {
            Hard::Membership => Partition::by_membership(&x.u, weights),
            Hard::KMeans => kmeans(&x.u, weights, &KMeans::new(s, d, s, seed))?.partition,
        }))
    }
}

/// Fits one method.
pub fn fit(method: Method, training: &Training, settings: &RivalSettings) -> Result<Fitted> {
    if settings.rank == 0 || settings.rank > training.rows().min(training.cols()) {
        return Err(Error::Setting {
            name: "the rank",
            value: settings.rank.to_string(),
            allowed: "it must be between 1 and the number of states",
        });
    }
    let soft = |x: Factors| Fitted { model: FittedModel::Factors(x), own_partition: None };
    Ok(match method {
        Method::Penalised => soft(ours::penalised(training, settings)?),
        Method::LeastSquaresRefit => soft(ours::least_squares_refit(training, settings)?),
        Method::LikelihoodRefit => soft(ours::likelihood_refit(training, settings)?),
        Method::SvdPartition => {
            let partition = spectral::partition(training, settings)?;
            Fitted { model: FittedModel::Factors(lumped::model(training, &partition)), own_partition: Some(partition) }
        }
        Method::SvdClipped => Fitted { model: FittedModel::Clipped(spectral::clipped(training, settings)), own_partition: None },
        Method::NmfLeastSquares => soft(nmf::least_squares_factors(training, settings)?),
        Method::NmfLikelihood => soft(nmf::likelihood_factors(training, settings)?),
        Method::Reversible => soft(reversible::memberships(training, settings)?),
        Method::Anchor => soft(anchor::factors(training, settings)?),
        Method::Empirical => Fitted { model: FittedModel::Empirical, own_partition: None },
        Method::RankOne => Fitted { model: FittedModel::RankOne, own_partition: None },
    })
}
