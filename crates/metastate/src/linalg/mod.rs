//! Matrices and the few products that the method needs. Nothing here knows of Markov chains.

mod csr;
mod mat;
mod operator;
pub mod simplex;
pub mod singular;
pub mod small;
pub mod thin;
mod wide;

pub use csr::Csr;
pub use mat::Mat;
pub use operator::{DenseOperator, LowRankOperator, Operator, Row, SparseOperator};
pub(crate) use wide::{multiply_add, wide};
