//! Matrices and the few products that the method needs. Nothing here is specific to Markov chains.

pub(crate) mod assignment;
mod csr;
mod logarithm;
mod mat;
mod operator;
pub(crate) mod simplex;
pub(crate) mod singular;
pub(crate) mod small;
pub(crate) mod thin;
mod wide;

pub use csr::Csr;
pub(crate) use logarithm::ln;
pub use mat::Mat;
pub use operator::{DenseOperator, LowRankOperator, Operator, Row, SparseOperator};
pub(crate) use wide::{multiply_add, wide};

/// Where the largest entry of a row is, the lower place when two are equal: the meta-state that a state belongs to most. Zero for an
/// empty row.
#[must_use]
pub fn largest_entry(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best })
}
