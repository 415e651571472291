//! From a solution to its meta-states: hard zones, maps, agreement with other labels, and the rival methods.

mod agreement;
mod clusters;
mod coherence;
pub mod polygons;
mod weighted;

pub use agreement::Overlap;
pub use clusters::{Clustered, KMeans, Partition, REPLICATES, kmeans};
pub use coherence::{Coherence, Neighbours, cell_of};
pub use weighted::WeightedChain;
