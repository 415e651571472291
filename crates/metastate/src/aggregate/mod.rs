//! From a solution to its meta-states: hard zones, maps, agreement with other labels, and the rival methods.

mod clusters;
mod weighted;

pub use clusters::{Clustered, KMeans, Partition, REPLICATES, kmeans};
pub use weighted::WeightedChain;
