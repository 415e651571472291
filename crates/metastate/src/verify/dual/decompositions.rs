//! Decompositions. One thread, so that the digits do not depend on the number of threads.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor;
use faer::linalg::svd::ComputeSvdVectors;
use faer::linalg::{evd, svd};
use faer::{MatRef, Par};

use super::super::rows::{by_rows, column_norms, cross, product};
use crate::linalg::Mat;

fn view(m: &Mat) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(m.as_slice(), m.rows(), m.cols())
}

fn all_finite(m: &Mat) -> Option<()> {
    m.as_slice().iter().all(|x| x.is_finite()).then_some(())
}

/// Thin singular value decomposition `X diag(s) Y^T`, values descending.
pub(in crate::verify) fn decompose(a: &Mat) -> Option<(Mat, Vec<f64>, Mat)> {
    all_finite(a)?;
    let (m, n) = (a.rows(), a.cols());
    let k = m.min(n);
    if k == 0 {
        return Some((Mat::zeros(m, 0), Vec::new(), Mat::zeros(n, 0)));
    }
    let (mut x, mut y) = (faer::Mat::<f64>::zeros(m, k), faer::Mat::<f64>::zeros(n, k));
    let mut s = Diag::<f64>::zeros(k);
    let thin = ComputeSvdVectors::Thin;
    let mut memory = MemBuffer::new(svd::svd_scratch::<f64>(m, n, thin, thin, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    svd::svd(view(a), s.as_mut(), Some(x.as_mut()), Some(y.as_mut()), Par::Seq, stack, Default::default()).ok()?;
    let plain = |m: &faer::Mat<f64>| Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)]);
    Some((plain(&x), s.column_vector().iter().copied().collect(), plain(&y)))
}

/// Singular values, descending.
pub(super) fn singular_values(a: &Mat) -> Option<Vec<f64>> {
    all_finite(a)?;
    let (m, n) = (a.rows(), a.cols());
    let mut s = Diag::<f64>::zeros(m.min(n));
    let no = ComputeSvdVectors::No;
    let mut memory = MemBuffer::new(svd::svd_scratch::<f64>(m, n, no, no, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    svd::svd(view(a), s.as_mut(), None, None, Par::Seq, stack, Default::default()).ok()?;
    Some(s.column_vector().iter().copied().collect())
}

/// Eigenvalues (ascending) and eigenvectors of a symmetric matrix.
pub(in crate::verify) fn eigen(a: &Mat) -> Option<(Vec<f64>, Mat)> {
    all_finite(a)?;
    let n = a.rows();
    if n == 0 {
        return Some((Vec::new(), Mat::zeros(0, 0)));
    }
    let mut s = Diag::<f64>::zeros(n);
    let mut x = faer::Mat::<f64>::zeros(n, n);
    let yes = evd::ComputeEigenvectors::Yes;
    let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<f64>(n, yes, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    evd::self_adjoint_evd(view(a), s.as_mut(), Some(x.as_mut()), Par::Seq, stack, Default::default()).ok()?;
    Some((s.column_vector().iter().copied().collect(), Mat::from_fn(n, n, |i, j| x[(i, j)])))
}

/// `A^T A` of a large matrix; none where it is not finite.
pub(in crate::verify) fn gram(a: &Mat) -> Option<Mat> {
    all_finite(a)?;
    let n = a.cols();
    let mut out = faer::Mat::<f64>::zeros(n, n);
    faer::linalg::matmul::matmul(out.as_mut(), faer::Accum::Replace, view(a).transpose(), view(a), 1.0, Par::rayon(0));
    Some(Mat::from_fn(n, n, |i, j| out[(i, j)]))
}

/// Whether `rho2 I - A` has a Cholesky factor.
pub(in crate::verify) fn positive_definite(a: &Mat, rho2: f64) -> bool {
    let n = a.rows();
    let mut shifted = faer::Mat::<f64>::from_fn(n, n, |i, j| if i == j { rho2 - a[(i, j)] } else { -a[(i, j)] });
    let mut memory = MemBuffer::new(factor::cholesky_in_place_scratch::<f64>(n, Par::rayon(0), Default::default()));
    let stack = MemStack::new(&mut memory);
    factor::cholesky_in_place(shifted.as_mut(), Default::default(), Par::rayon(0), stack, Default::default()).is_ok()
}

/// Spectral norm of a thin matrix.
pub(super) fn norm(a: &Mat) -> Option<f64> {
    let (values, _) = eigen(&cross(a, a, None))?;
    Some(values.last().copied().unwrap_or(0.0).max(0.0).sqrt())
}

pub(super) fn minus(a: &Mat, b: &Mat) -> Mat {
    by_rows(a.rows(), a.cols(), |i, out| (0..out.len()).for_each(|k| out[k] = a[(i, k)] - b[(i, k)]))
}

/// `||Q^T Q - I||_F`.
pub(in crate::verify) fn defect(q: &Mat) -> f64 {
    let gram = cross(q, q, None);
    let mut square = 0.0;
    for i in 0..gram.rows() {
        for j in 0..gram.cols() {
            square += (gram[(i, j)] - if i == j { 1.0 } else { 0.0 }).powi(2);
        }
    }
    square.sqrt()
}

pub(super) fn orthonormalise(a: &Mat) -> Option<Mat> {
    extend(&Mat::zeros(a.rows(), 0), a)
}

/// Of a direction of length one, squares below this are numerically inside what is there already.
const INSIDE: f64 = 1e-13;

/// Orthonormal columns that add to the orthonormal `q` what `block` spans beyond it; what is numerically inside is dropped.
pub(super) fn extend(q: &Mat, block: &Mat) -> Option<Mat> {
    let lengths = column_norms(block);
    let mut new = by_rows(block.rows(), block.cols(), |i, out| {
        for k in 0..out.len() {
            out[k] = if lengths[k] > 0.0 { block[(i, k)] / lengths[k] } else { 0.0 };
        }
    });
    // Three passes: each cleans what the squared condition number of the one before left behind.
    for _ in 0..3 {
        for _ in 0..2 {
            if q.cols() > 0 {
                new = minus(&new, &product(q, &cross(q, &new, None)));
            }
        }
        let (values, vectors) = eigen(&cross(&new, &new, None))?;
        let keep: Vec<usize> = (0..values.len()).filter(|&k| values[k] > INSIDE).collect();
        new = product(&new, &Mat::from_fn(values.len(), keep.len(), |i, k| vectors[(i, keep[k])] / values[keep[k]].sqrt()));
    }
    Some(new)
}
