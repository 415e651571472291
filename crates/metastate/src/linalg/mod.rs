//! Matrices and the few products that the method needs. Nothing here knows of Markov chains.

mod csr;
mod mat;

pub use csr::Csr;
pub use mat::Mat;
