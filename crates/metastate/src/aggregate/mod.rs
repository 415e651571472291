//! From a solution to its meta-states: hard zones, maps, agreement with other labels, and the rival methods.

mod clusters;

pub use clusters::{Clustered, KMeans, Partition, REPLICATES, kmeans};
