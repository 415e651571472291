//! Rival methods, all from the same training counts at the same rank, so that they can be scored on the same held-out transitions ([`crate::compare`]).
//! Everything is matrix-free; nothing of size `d x d` is formed.

mod anchor;
mod lumped;
mod nmf;
mod reversible;
mod spectral;
mod training;

pub use spectral::{ClippedSvd, svd_partition};
pub use training::Training;

use super::clusters::{KMeans, Partition, kmeans};
use crate::error::{Error, Result};
use crate::solve::Factors;

/// Another method for a model of rank r.
///
/// The example of [`fit`] fits one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rival {
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
    /// The counts themselves.
    Empirical,
    /// One law for all states: rank one.
    RankOne,
}

impl Rival {
    /// All.
    pub const ALL: [Rival; 8] = [
        Rival::SvdPartition,
        Rival::SvdClipped,
        Rival::NmfLeastSquares,
        Rival::NmfLikelihood,
        Rival::Reversible,
        Rival::Anchor,
        Rival::Empirical,
        Rival::RankOne,
    ];

    /// A short name for tables and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rival::SvdPartition => "svd-partition",
            Rival::SvdClipped => "svd-clipped",
            Rival::NmfLeastSquares => "nmf-least-squares",
            Rival::NmfLikelihood => "nmf-kl",
            Rival::Reversible => "reversible-pcca",
            Rival::Anchor => "anchor-score",
            Rival::Empirical => "empirical",
            Rival::RankOne => "rank-one",
        }
    }
}

/// What all rivals are given.
///
/// See the example of [`fit`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RivalSettings {
    /// The rank.
    pub rank: usize,
    /// Seed of everything random.
    pub seed: u64,
}

/// A model and, where the method has one, its own partition of the states.
///
/// See the example of [`fit`].
#[derive(Debug, Clone)]
pub struct Fitted {
    /// What it says of transitions.
    pub model: FittedModel,
    /// Hard meta-states that are part of the method; for memberships see [`Fitted::partition`].
    pub own_partition: Option<Partition>,
}

/// What a method says of transitions.
///
/// See the example of [`fit`].
#[derive(Debug, Clone)]
pub enum FittedModel {
    /// `U V^T`.
    Factors(Factors),
    /// `max(0, L R^T)`, rows divided by their sums.
    Clipped(ClippedSvd),
    /// The training counts, each row shrunk towards `U V^T`.
    Blend(Factors),
    /// The training counts, each row shrunk towards the marginal law.
    Empirical,
    /// The marginal law.
    RankOne,
}

/// How memberships become hard meta-states.
///
/// See the example of [`fit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hard {
    /// k-means on the rows of U, as in the paper.
    #[default]
    KMeans,
    /// The largest membership.
    Membership,
}

impl Fitted {
    /// U and V, where there are memberships.
    #[must_use]
    pub fn factors(&self) -> Option<&Factors> {
        match &self.model {
            FittedModel::Factors(x) => Some(x),
            _ => None,
        }
    }

    /// Hard meta-states, ordered by mass; `None` where the method has none.
    pub fn partition(&self, weights: &[f64], hard: Hard, seed: u64) -> Result<Option<Partition>> {
        if let Some(own) = &self.own_partition {
            return Ok(Some(own.clone()));
        }
        let Some(x) = self.factors() else { return Ok(None) };
        let (d, s) = (x.u.rows(), x.u.cols());
        Ok(Some(match hard {
            Hard::Membership => Partition::by_membership(&x.u, weights),
            Hard::KMeans => kmeans(&x.u, weights, &KMeans::new(s, d, s, seed))?.partition,
        }))
    }
}

/// The chain of a partition from any source: all states of a part have the same transition probabilities, estimated from their training counts together.
pub fn lump(training: &Training, partition: Partition) -> Result<Fitted> {
    if partition.labels.len() != training.rows() {
        return Err(Error::SizeMismatch { what: "the partition", expected: training.rows(), found: partition.labels.len() });
    }
    Ok(Fitted { model: FittedModel::Factors(lumped::model(training, &partition)), own_partition: Some(partition) })
}

/// Fits one rival.
///
/// ```
/// use metastate::aggregate::rivals::{Hard, Rival, RivalSettings, Training, fit};
/// use metastate::{Chain, Counts, Estimate, StateIndex};
///
/// let inside = [(0, 1), (1, 0), (0, 0), (1, 1), (2, 3), (3, 2), (2, 2), (3, 3)].repeat(20);
/// let counts = Counts::from_pairs(StateIndex::numbered(4), inside.into_iter().chain([(1, 2), (2, 1)]))?;
/// let chain = Chain::estimate(&counts, &Estimate::default())?;
/// let found = fit(Rival::SvdPartition, &Training::new(&chain)?, &RivalSettings { rank: 2, seed: 0 })?;
/// let zones = found.partition(chain.weights(), Hard::default(), 0)?.unwrap();
/// assert_eq!(zones.labels[0], zones.labels[1]);
/// assert_ne!(zones.labels[0], zones.labels[2]);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn fit(rival: Rival, training: &Training, settings: &RivalSettings) -> Result<Fitted> {
    if settings.rank == 0 || settings.rank > training.rows().min(training.cols()) {
        return Err(Error::Setting {
            name: "the rank",
            value: settings.rank.to_string(),
            allowed: "it must be between 1 and the number of states",
        });
    }
    let alone = |model: FittedModel| Fitted { model, own_partition: None };
    let soft = |x: Factors| alone(FittedModel::Factors(x));
    Ok(match rival {
        Rival::SvdPartition => lump(training, spectral::partition(training, settings)?)?,
        Rival::SvdClipped => alone(FittedModel::Clipped(spectral::clipped(training, settings))),
        Rival::NmfLeastSquares => soft(nmf::least_squares_factors(training, settings)?),
        Rival::NmfLikelihood => soft(nmf::likelihood_factors(training, settings)?),
        Rival::Reversible => soft(reversible::memberships(training, settings)?),
        Rival::Anchor => soft(anchor::factors(training, settings)?),
        Rival::Empirical => alone(FittedModel::Empirical),
        Rival::RankOne => alone(FittedModel::RankOne),
    })
}
