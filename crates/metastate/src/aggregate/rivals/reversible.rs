//! Reversible spectral clustering with memberships, as metastable chains are treated: the counts are made symmetric, the slowest
//! eigenvectors found, and memberships read off the simplex that their rows span (the inner simplex algorithm of Weber 2003, the
//! start of PCCA+). The last optimisation of PCCA+ is not done.

use super::{RivalSettings, Training, lumped};
use crate::error::Result;
use crate::linalg::singular::{MatrixFree, TruncatedSvd, truncated_svd};
use crate::linalg::thin::scale_rows;
use crate::linalg::{Csr, Mat, Operator, SparseOperator, small, thin};
use crate::solve::Factors;

/// `(I + D^-1/2 (C + C^T) D^-1/2) / 2`: symmetric with eigenvalues in [0, 1], so singular values are eigenvalues in their order.
struct Symmetrised {
    sum: SparseOperator,
    scale: Vec<f64>,
}

impl MatrixFree for Symmetrised {
    fn shape(&self) -> (usize, usize) {
        (self.scale.len(), self.scale.len())
    }

    fn times(&self, x: &Mat, out: &mut Mat) {
        let mut scaled = x.clone();
        scale_rows(&mut scaled, &self.scale);
        self.sum.apply(&scaled, out);
        thin::for_each_row_mut(out, |i, row| row.iter_mut().zip(x.row(i)).for_each(|(o, x)| *o = 0.5 * (x + self.scale[i] * *o)));
    }

    fn transposed_times(&self, y: &Mat, out: &mut Mat) {
        self.times(y, out);
    }
}

/// Memberships and where they lead.
pub fn memberships(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let counts = training.observed().counts();
    let d = counts.rows();
    let both: Vec<(u32, u32, f64)> = counts.triplets().flat_map(|(i, j, n)| [(i, j, 0.5 * n), (j, i, 0.5 * n)]).collect();
    let sum = Csr::from_triplets(d, d, &both)?;
    let scale: Vec<f64> = (0..d)
        .map(|i| {
            let n: f64 = sum.row(i).1.iter().sum();
            if n > 0.0 { 1.0 / n.sqrt() } else { 0.0 }
        })
        .collect();
    let operator = Symmetrised { sum: SparseOperator::new(sum, Vec::new())?, scale };
    let svd = truncated_svd(&operator, &TruncatedSvd::new(settings.rank, settings.seed));
    // Right eigenvectors of the reversible transition matrix.
    let mut psi = svd.left;
    scale_rows(&mut psi, &operator.scale);
    let vertices = inner_simplex(&psi);
    let corners = Mat::from_fn(vertices.len(), psi.cols(), |l, j| psi[(vertices[l], j)]);
    let mut u = Mat::default();
    thin::product(&psi, &small::pseudo_inverse(&corners), &mut u);
    thin::for_each_row_mut(&mut u, |_, row| row.iter_mut().for_each(|x| *x = x.max(0.0)));
    let mut x = Factors { v: Mat::default(), u };
    x.normalise_rows();
    x.v = lumped::destinations(training, &x.u);
    Ok(x)
}

/// Where no row is farther than this from those that were chosen, as a share of the longest (both squared), there is no further vertex.
const NO_FURTHER: f64 = 1e-24;

/// The rows that span the largest simplex, one after another: the longest, then the farthest from it, then the farthest from their
/// line, and so on.
fn inner_simplex(psi: &Mat) -> Vec<usize> {
    let longest = |m: &Mat| {
        let length = |i: usize| thin::dot(m.row(i), m.row(i));
        let best = (1..m.rows()).fold(0, |best, i| if length(i) > length(best) { i } else { best });
        (best, length(best))
    };
    let mut rest = psi.clone();
    let (first, size) = longest(&rest);
    let mut chosen = vec![first];
    let origin = rest.row(first).to_vec();
    thin::for_each_row_mut(&mut rest, |_, row| row.iter_mut().zip(&origin).for_each(|(x, o)| *x -= o));
    while chosen.len() < psi.cols() {
        let (next, length) = longest(&rest);
        if length <= NO_FURTHER * size {
            break;
        }
        chosen.push(next);
        let direction: Vec<f64> = rest.row(next).iter().map(|x| x / length.sqrt()).collect();
        thin::for_each_row_mut(&mut rest, |_, row| {
            let along = thin::dot(row, &direction);
            row.iter_mut().zip(&direction).for_each(|(x, d)| *x -= along * d);
        });
    }
    chosen
}
