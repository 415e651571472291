//! Decompositions of small dense matrices (`s x s`), and one Cholesky test for proofs.
//!
//! All but the Cholesky test run on one thread, so that their last digits do not depend on the number of threads.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::svd::ComputeSvdVectors;
use faer::linalg::{evd, svd};
use faer::{MatRef, Par};

use super::{Mat, thin};

fn view(m: &Mat) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(m.as_slice(), m.rows(), m.cols())
}

fn back(m: faer::Mat<f64>) -> Mat {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)])
}

/// Eigenvalues (ascending) and orthonormal eigenvectors (columns) of a symmetric matrix; `None` if it is empty or has
/// entries that are not finite.
#[must_use]
pub fn symmetric_eigen(a: &Mat) -> Option<(Vec<f64>, Mat)> {
    let n = a.rows();
    if n == 0 {
        return None;
    }
    let mut values = Diag::<f64>::zeros(n);
    let mut vectors = faer::Mat::<f64>::zeros(n, n);
    let scratch = evd::self_adjoint_evd_scratch::<f64>(n, evd::ComputeEigenvectors::Yes, Par::Seq, Default::default());
    let mut buffer = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut buffer);
    evd::self_adjoint_evd(view(a), values.as_mut(), Some(vectors.as_mut()), Par::Seq, stack, Default::default()).ok()?;
    Some((values.column_vector().iter().copied().collect(), back(vectors)))
}

/// Thin singular value decomposition `A = X diag(s) Y^T`, values descending; `None` if A is empty or not finite.
#[must_use]
pub fn thin_svd(a: &Mat) -> Option<(Mat, Vec<f64>, Mat)> {
    let (m, n) = (a.rows(), a.cols());
    let k = m.min(n);
    if k == 0 {
        return None;
    }
    let mut values = Diag::<f64>::zeros(k);
    let (mut x, mut y) = (faer::Mat::<f64>::zeros(m, k), faer::Mat::<f64>::zeros(n, k));
    let scratch = svd::svd_scratch::<f64>(m, n, ComputeSvdVectors::Thin, ComputeSvdVectors::Thin, Par::Seq, Default::default());
    let mut buffer = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut buffer);
    svd::svd(view(a), values.as_mut(), Some(x.as_mut()), Some(y.as_mut()), Par::Seq, stack, Default::default()).ok()?;
    Some((back(x), values.column_vector().iter().copied().collect(), back(y)))
}

/// Eigenvalues (real part, imaginary part) of any square matrix; `None` if it is empty or not finite.
#[must_use]
pub fn eigenvalues(a: &Mat) -> Option<Vec<(f64, f64)>> {
    let n = a.rows();
    if n == 0 || a.first_not_finite().is_some() {
        return None;
    }
    let (mut re, mut im) = (Diag::<f64>::zeros(n), Diag::<f64>::zeros(n));
    let no = evd::ComputeEigenvectors::No;
    let mut buffer = MemBuffer::new(evd::evd_scratch::<f64>(n, no, no, Par::Seq, Default::default()));
    let stack = MemStack::new(&mut buffer);
    evd::evd_real(view(a), re.as_mut(), im.as_mut(), None, None, Par::Seq, stack, Default::default()).ok()?;
    Some(re.column_vector().iter().copied().zip(im.column_vector().iter().copied()).collect())
}

/// The inverse, by Gauss and Jordan with the largest pivots; `None` if a pivot vanishes.
#[must_use]
pub fn inverse(a: &Mat) -> Option<Mat> {
    let n = a.rows();
    let mut work = Mat::from_fn(n, 2 * n, |i, j| if j < n { a[(i, j)] } else { f64::from(u8::from(j - n == i)) });
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| work[(i, k)].abs().total_cmp(&work[(j, k)].abs()))?;
        let size = work[(pivot, k)];
        if size.is_nan() || size.abs() < 1e-300 {
            return None;
        }
        (0..2 * n).for_each(|j| work.as_mut_slice().swap(pivot * 2 * n + j, k * 2 * n + j));
        work.row_mut(k).iter_mut().for_each(|x| *x /= size);
        let row = work.row(k).to_vec();
        for i in (0..n).filter(|&i| i != k) {
            let factor = work[(i, k)];
            work.row_mut(i).iter_mut().zip(&row).for_each(|(x, r)| *x -= factor * r);
        }
    }
    Some(Mat::from_fn(n, n, |i, j| work[(i, n + j)]))
}

/// Moore-Penrose inverse; singular values below 1e-10 of the largest count as zero.
#[must_use]
pub fn pseudo_inverse(a: &Mat) -> Mat {
    let Some((x, values, y)) = thin_svd(a) else { return Mat::zeros(a.cols(), a.rows()) };
    let scaled = Mat::from_fn(y.rows(), values.len(), |i, l| if values[l] > 1e-10 * values[0] { y[(i, l)] / values[l] } else { 0.0 });
    let mut inverse = Mat::default();
    thin::product(&scaled, &x.transposed(), &mut inverse);
    inverse
}

/// Whether the symmetric matrix (its lower half is read, the buffer is overwritten) has a Cholesky factor.
pub fn has_cholesky_factor(a: &mut Mat) -> bool {
    let n = a.rows();
    let par = Par::rayon(0);
    let mut buffer = MemBuffer::new(llt::cholesky_in_place_scratch::<f64>(n, par, Default::default()));
    let stack = MemStack::new(&mut buffer);
    let matrix = faer::MatMut::from_row_major_slice_mut(a.as_mut_slice(), n, n);
    llt::cholesky_in_place(matrix, Default::default(), par, stack, Default::default()).is_ok()
}

/// Orthonormal basis of the columns of a thin matrix, numerically dependent directions left out. Two rounds of Gram
/// matrix and eigenvectors: the second cleans what the squared condition number of the first left behind.
#[must_use]
pub fn orthonormalise(a: &Mat) -> Mat {
    let mut basis = a.clone();
    // Columns of very different length would hide each other in one Gram matrix.
    let scale: Vec<f64> = thin::column_norms(a).iter().map(|n| if *n > 0.0 { 1.0 / n } else { 0.0 }).collect();
    thin::for_each_row_mut(&mut basis, |_, row| row.iter_mut().zip(&scale).for_each(|(x, s)| *x *= s));
    for _ in 0..2 {
        let Some((values, vectors)) = symmetric_eigen(&thin::gram(&basis)) else { return Mat::zeros(a.rows(), 0) };
        let largest = values.last().copied().unwrap_or(0.0);
        let keep: Vec<usize> = (0..values.len()).filter(|&k| values[k] > 1e-13 * largest).collect();
        let map = Mat::from_fn(values.len(), keep.len(), |i, k| vectors[(i, keep[k])] / values[keep[k]].sqrt());
        thin::turn(&mut basis, &map);
    }
    basis
}
