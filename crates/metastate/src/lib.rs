//! Finds the few hidden meta-states behind a Markov chain with many states, and proves how good its answer is.

pub mod error;
pub mod linalg;
pub mod solve;
pub mod verify;

pub use error::{Error, Result};
pub use linalg::{Csr, DenseOperator, LowRankOperator, Mat, Operator, SparseOperator};
