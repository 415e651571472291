//! From a solution to its meta-states: hard zones, maps, agreement with other labels, and the rival methods.

mod agreement;
mod assign;
mod change;
mod clusters;
mod coherence;
mod difference;
pub mod latent;
pub(crate) mod polygons;
pub mod rivals;
mod slices;
pub(crate) mod territory;
mod weighted;
mod zones;

pub use agreement::Overlap;
pub use assign::{AssignBy, Assigner};
pub use change::{Change, ChangeSettings, ZoneChange};
pub use clusters::{Clustered, KMeans, Partition, REPLICATES, kmeans};
pub use coherence::{Coherence, Neighbours, cell_of};
pub use difference::{Answer, Difference};
pub use slices::SliceFlows;
pub use weighted::WeightedChain;
pub use zones::{Trade, ZoneFlows};
