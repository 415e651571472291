//! The largest singular values of a dual point: the bases that are known, and what an exploring Lanczos run finds beyond them.
//! Nothing here proves anything; it supplies vectors to clip along, and directions in which a relaxation may grow.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::point::{Clipped, DualPoint, beside};
use crate::linalg::{Mat, small, thin};

/// Singular values above this are put into the bases: a little below 1, so that the rest is clearly below.
pub(crate) const NEAR_ONE: f64 = 0.98;

/// Exploring keeps the vectors of values above this.
const KEPT: f64 = 0.9;
/// A new direction shorter than this is rounding: the space is exhausted.
const EXHAUSTED: f64 = 1e-14;

/// Orthonormal bases in which W is `[[diag(values), E2], [E1, R]]`.
pub(crate) struct Leading {
    pub left: Mat,
    pub right: Mat,
    pub values: Vec<f64>,
    /// `||E1||`: what W maps out of the left basis.
    pub residual_left: f64,
    /// `||E2||`: what `W^T` maps out of the right basis.
    pub residual_right: f64,
    /// How far the bases are from orthonormal, `||Q^T Q - I||_F`.
    pub defect: f64,
}

impl Leading {
    /// Rayleigh-Ritz on the spans of the given matrices.
    pub fn new(w: &DualPoint, left: &Mat, right: &Mat) -> Option<Leading> {
        let (mut left, mut right) = (small::orthonormalise(left), small::orthonormalise(right));
        // One image at a time, and no copy: with a million states these are what a look costs.
        let mut image = Mat::default();
        w.apply(&right, &mut image);
        let (x, values, r) = small::thin_svd(&thin::cross_gram(&left, &image))?;
        let residual_left = outside(&mut image, &left)?;
        w.apply_transpose(&left, &mut image);
        let residual_right = outside(&mut image, &right)?;
        drop(image);
        let defect = defect(&left).max(defect(&right));
        thin::turn(&mut left, &x);
        thin::turn(&mut right, &r);
        Some(Leading { residual_left, residual_right, defect, left, right, values })
    }

    /// Nothing known.
    pub fn empty(w: &DualPoint) -> Leading {
        let (left, right) = (Mat::zeros(w.problem.rows(), 0), Mat::zeros(w.problem.cols(), 0));
        Leading { left, right, values: Vec::new(), residual_left: 0.0, residual_right: 0.0, defect: 0.0 }
    }

    /// What to take off W so that these singular values are at most 1.
    pub fn clip(&self) -> Clipped {
        let excess = self.values.iter().map(|s| (s - 1.0).max(0.0)).collect();
        Clipped { left: self.left.clone(), right: self.right.clone(), excess }
    }

    /// The same bases, widened.
    pub fn with(&self, w: &DualPoint, left: &Mat, right: &Mat) -> Option<Leading> {
        Leading::new(w, &beside(&[&self.left, left]), &beside(&[&self.right, right]))
    }

    /// `|| [[C, E2], [E1, R]] || <= || [[ ||C||, ||E2|| ], [ ||E1||, ||R|| ]] ||` with C clipped and `||R|| <= rest`; `rounding` is
    /// added to every block.
    pub fn norm_with(&self, rest: f64, rounding: f64) -> f64 {
        let top = self.values.first().copied().unwrap_or(0.0).min(1.0);
        let norm = norm_2x2(top + rounding, self.residual_right + rounding, self.residual_left + rounding, rest + rounding);
        norm * (1.0 + 10.0 * self.defect)
    }
}

/// `||(I - Q Q^T) image||`; the image is used up.
fn outside(image: &mut Mat, basis: &Mat) -> Option<f64> {
    let along = thin::cross_gram(basis, image);
    thin::with_product(basis, &along, image, |_, row, inside| row.iter_mut().zip(inside).for_each(|(r, x)| *r -= x));
    let (values, _) = small::symmetric_eigen(&thin::gram(image))?;
    let largest = values.last().copied().unwrap_or(0.0);
    largest.is_finite().then(|| largest.max(0.0).sqrt())
}

/// `||Q^T Q - I||_F`.
fn defect(q: &Mat) -> f64 {
    let gram = thin::gram(q);
    let far = |i: usize, j: usize| gram[(i, j)] - if i == j { 1.0 } else { 0.0 };
    (0..gram.rows()).map(|i| (0..gram.cols()).map(|j| far(i, j).powi(2)).sum::<f64>()).sum::<f64>().sqrt()
}

/// Largest singular value of a `2 x 2` matrix with entries at least zero.
fn norm_2x2(a: f64, b: f64, c: f64, d: f64) -> f64 {
    let (sum, det) = (a * a + b * b + c * c + d * d, a * d - b * c);
    (0.5 * (sum + (sum * sum - 4.0 * det * det).max(0.0).sqrt())).sqrt()
}

/// Golub-Kahan-Lanczos on the rest `(I - L L^T) W (I - R R^T)` with full reorthogonalisation: its largest singular values, as far as
/// the steps go.
pub(crate) struct Explored {
    /// Ritz values, descending.
    pub values: Vec<f64>,
    /// Left Ritz vectors of the values above [`KEPT`].
    pub left: Mat,
    /// Right Ritz vectors of the same.
    pub right: Mat,
}

impl Explored {
    pub fn run(w: &DualPoint, leading: &Leading, steps: usize, seed: u64) -> Explored {
        let (m, n) = (w.problem.rows(), w.problem.cols());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut lefts, mut rights): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let (mut alphas, mut betas) = (Vec::new(), Vec::new());
        let mut v: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
        remove(&mut v, &leading.right);
        normalise(&mut v);
        let mut out = Mat::default();
        let column = |x: &[f64]| Mat::from_fn(x.len(), 1, |i, _| x[i]);
        while lefts.len() < steps.min(m).min(n) {
            w.apply(&column(&v), &mut out);
            let mut u = out.as_slice().to_vec();
            remove(&mut u, &leading.left);
            orthogonalise(&mut u, &lefts);
            let alpha = normalise(&mut u);
            if alpha <= EXHAUSTED {
                break;
            }
            rights.push(v);
            alphas.push(alpha);
            w.apply_transpose(&column(&u), &mut out);
            lefts.push(u);
            v = out.as_slice().to_vec();
            remove(&mut v, &leading.right);
            orthogonalise(&mut v, &rights);
            let beta = normalise(&mut v);
            betas.push(beta);
            if beta <= EXHAUSTED {
                break;
            }
        }
        let steps = alphas.len();
        // R V_m = U_m T, T upper bidiagonal: alpha on the diagonal, beta above it.
        let t = Mat::from_fn(steps, steps, |i, j| {
            if i == j {
                alphas[i]
            } else if i + 1 == j {
                betas[i]
            } else {
                0.0
            }
        });
        let Some((p, values, q)) = small::thin_svd(&t).filter(|_| steps > 0) else {
            return Explored { values: Vec::new(), left: Mat::zeros(m, 0), right: Mat::zeros(n, 0) };
        };
        let wanted: Vec<usize> = (0..values.len()).take_while(|&k| values[k] > KEPT).collect();
        let lift = |rows: usize, basis: &[Vec<f64>], small: &Mat| {
            Mat::from_fn(rows, wanted.len(), |i, k| (0..steps).map(|l| basis[l][i] * small[(l, wanted[k])]).sum())
        };
        Explored { left: lift(m, &lefts, &p), right: lift(n, &rights, &q), values }
    }

    /// How many values lie above a limit.
    pub fn above(&self, limit: f64) -> usize {
        self.values.iter().take_while(|v| **v > limit).count().min(self.right.cols())
    }
}

/// `x -= Q Q^T x`, twice.
fn remove(x: &mut [f64], basis: &Mat) {
    let work = 2 * x.len() * basis.cols();
    for _ in 0..2 {
        let inner = thin::fold_rows(basis, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, q)| *s += q * x[i]));
        thin::for_each_chunk_mut(x, thin::BLOCK, work, |block, x| {
            for (k, x) in x.iter_mut().enumerate() {
                *x -= thin::dot(basis.row(block * thin::BLOCK + k), &inner);
            }
        });
    }
}

/// The same with a basis that grows vector by vector.
fn orthogonalise(x: &mut [f64], basis: &[Vec<f64>]) {
    let work = 2 * basis.len();
    let dots = |x: &[f64], span: std::ops::Range<usize>| basis.iter().map(|q| thin::dot(&q[span.clone()], &x[span.clone()])).collect();
    for _ in 0..2 {
        let add = |sums: &mut Vec<f64>, part: Vec<f64>| sums.iter_mut().zip(part).for_each(|(s, p)| *s += p);
        let Some(inner) = thin::sum_blocks(x.len(), work, |span| dots(x, span), add) else { return };
        thin::for_each_chunk_mut(x, thin::BLOCK, work * basis.first().map_or(0, Vec::len), |block, x| {
            let start = block * thin::BLOCK;
            for (q, inner) in basis.iter().zip(&inner) {
                x.iter_mut().zip(&q[start..]).for_each(|(x, q)| *x -= inner * q);
            }
        });
    }
}

/// Scales to length one; the length.
fn normalise(x: &mut [f64]) -> f64 {
    let norm = thin::dot(x, x).sqrt();
    if norm > 0.0 {
        x.iter_mut().for_each(|x| *x /= norm);
    }
    norm
}
