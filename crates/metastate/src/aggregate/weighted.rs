//! `Xi P` by its products: what the spectral rivals decompose.

use crate::linalg::singular::Products;
use crate::linalg::{Mat, Operator, thin};

/// `diag(weights) P`.
#[derive(Debug, Clone, Copy)]
pub struct WeightedChain<'a> {
    /// P.
    pub p: &'a dyn Operator,
    /// The diagonal of Xi.
    pub weights: &'a [f64],
}

impl Products for WeightedChain<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.p.states(), self.p.states())
    }

    fn times(&self, x: &Mat, out: &mut Mat) {
        self.p.apply(x, out);
        scale_rows(out, self.weights);
    }

    fn transposed_times(&self, y: &Mat, out: &mut Mat) {
        let mut scaled = y.clone();
        scale_rows(&mut scaled, self.weights);
        self.p.apply_transpose(&scaled, out);
    }
}

/// Row i times `w[i]`.
pub(crate) fn scale_rows(m: &mut Mat, w: &[f64]) {
    thin::for_each_row_mut(m, |i, row| row.iter_mut().for_each(|x| *x *= w[i]));
}
