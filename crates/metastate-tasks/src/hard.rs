//! `--clusters`: from memberships to hard meta-states.

use metastate::aggregate::{KMeans, Partition, kmeans};
use metastate::linalg::Mat;

use crate::args::Clusters;
use crate::error::{CliError, Result};

/// Refuses a number of clusters that these states cannot have.
pub fn check(clusters: Clusters, states: usize) -> Result<()> {
    match clusters {
        Clusters::Count(k) if k == 0 || k > states => {
            Err(CliError::bad("E-CLI-ARGUMENT", format!("--clusters is {k}; there are {states} states"))
                .remedy("give a number between 1 and that"))
        }
        _ => Ok(()),
    }
}

/// The hard meta-states of these memberships.
pub fn metastates(clusters: Clusters, u: &Mat, xi: &[f64], seed: u64) -> Result<Partition> {
    let by_kmeans = |k: usize| -> Result<Partition> { Ok(kmeans(u, xi, &KMeans::new(k, u.rows(), u.cols(), seed))?.partition) };
    match clusters {
        Clusters::Membership => Ok(Partition::by_membership(u, xi)),
        // More meta-states than states: a zone for each cannot be had.
        Clusters::Rank if u.cols() > u.rows() => Ok(Partition::by_membership(u, xi)),
        Clusters::Rank => Ok(by_kmeans(u.cols())?.numbered_as_columns(u, xi)),
        Clusters::Count(k) => by_kmeans(k),
    }
}

/// In words, for `summary.json`.
pub fn describe(clusters: Clusters) -> String {
    match clusters {
        Clusters::Membership => "largest membership".to_owned(),
        Clusters::Rank => "k-means on the memberships, one zone for each meta-state".to_owned(),
        Clusters::Count(k) => format!("k-means on the memberships, {k} zones"),
    }
}
