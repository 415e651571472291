//! Finds the few hidden meta-states behind a Markov chain with many states, and proves how good its answer is.

pub mod chain;
pub mod counts;
pub mod error;
mod graph;
pub mod ledger;
pub mod linalg;
pub mod simulate;

pub use chain::{Chain, Estimate, Given, RowWeights, WeightPower, WeightsBy};
pub use counts::{Connectivity, CountMode, Counts, Label, StateClass, StateIndex, TransitionCounter};
pub use error::{Error, Result};
pub use ledger::{Ledger, LedgerEntry, LedgerUnit};
pub use linalg::{Csr, DenseOperator, LowRankOperator, Mat, Operator, SparseOperator};
