//! `Xi P` by its products: what the spectral rivals decompose.

use crate::linalg::singular::MatrixFree;
use crate::linalg::{Mat, Operator, thin};

/// `diag(weights) P`.
///
/// The rivals of [`rivals`](super::rivals) build it; see the example of [`rivals::fit`](super::rivals::fit).
#[derive(Debug, Clone, Copy)]
pub struct WeightedChain<'a> {
    /// P.
    pub p: &'a dyn Operator,
    /// The diagonal of Xi.
    pub weights: &'a [f64],
}

impl MatrixFree for WeightedChain<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.p.rows(), self.p.cols())
    }

    fn times(&self, x: &Mat, out: &mut Mat) {
        self.p.apply(x, out);
        thin::scale_rows(out, self.weights);
    }

    fn transposed_times(&self, y: &Mat, out: &mut Mat) {
        let mut scaled = y.clone();
        thin::scale_rows(&mut scaled, self.weights);
        self.p.apply_transpose(&scaled, out);
    }
}
