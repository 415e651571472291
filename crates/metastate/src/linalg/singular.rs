//! The leading singular triplets of a matrix known by its two products, `A x` and `A^T y`, on blocks of vectors.
//!
//! Block Lanczos bidiagonalisation with full reorthogonalisation and thick restarts. Two orthonormal bases are kept with
//! `A V = U B` exactly; then `A^T U = V B^T + N R^T` with `N` the next block of `V`, so for the triplet `(x, sigma, y)` of the small B
//! the only residual is `||R^T x||`, and some singular value of A lies within it of sigma.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Mat, small, thin};

/// Both products of a matrix with blocks of vectors.
pub trait Products {
    /// Number of rows and of columns.
    fn shape(&self) -> (usize, usize);
    /// `out = A x`.
    fn times(&self, x: &Mat, out: &mut Mat);
    /// `out = A^T y`.
    fn transposed_times(&self, y: &Mat, out: &mut Mat);
}

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncatedSvd {
    /// Triplets wanted.
    pub rank: usize,
    /// Error of the values to reach, relative to the largest singular value.
    pub tolerance: f64,
    /// Blocks to multiply by, at most, each way.
    pub blocks: usize,
    /// Seed of the first block.
    pub seed: u64,
}

impl TruncatedSvd {
    /// So many triplets, to 1e-9 of the largest singular value.
    pub fn new(rank: usize, seed: u64) -> Self {
        TruncatedSvd { rank, tolerance: 1e-9, blocks: 600, seed }
    }
}

/// `A ~ left diag(values) right^T`.
#[derive(Debug, Clone, PartialEq)]
pub struct Svd {
    /// Left singular vectors, one a column.
    pub left: Mat,
    /// Singular values, falling.
    pub values: Vec<f64>,
    /// Right singular vectors, one a column.
    pub right: Mat,
    /// `||A^T u_k - sigma_k v_k||` of each triplet (`A v_k = sigma_k u_k` holds to rounding).
    pub residuals: Vec<f64>,
    /// Whether all residuals are within the tolerance.
    pub converged: bool,
}

/// Vectors multiplied at once: narrow blocks converge in fewer vectors; for large matrices a row of a wide block fills a cache line.
const NARROW: usize = 4;
const WIDE: usize = 8;
const LARGE: usize = 20_000;
/// The residual that is asked for in any case, relative to the largest singular value: the vectors should be good too.
const GOOD_VECTORS: f64 = 1e-6;

/// The leading triplets. Fewer than asked for where A has a smaller rank.
pub fn truncated_svd(a: &impl Products, settings: &TruncatedSvd) -> Svd {
    let (rows, columns) = a.shape();
    let smaller = rows.min(columns);
    let wanted = settings.rank.min(smaller);
    let width = if smaller < LARGE { NARROW } else { WIDE }.min(smaller);
    // Room for the wanted triplets, a few guards, and fresh blocks between two restarts.
    let keep = (wanted + wanted / 4 + width).min(smaller);
    let room = (2 * keep + 4 * width).min(smaller.max(width));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
    let start = Mat::from_fn(columns, width, |_, _| StandardNormal.sample(&mut rng));
    let mut run = Bidiagonal { v: Mat::zeros(columns, 0), u: Mat::zeros(rows, 0), b: Mat::zeros(0, 0), scale: 0.0 };
    let mut next = small::orthonormalise(&start);
    let mut coupling = Mat::zeros(0, 0);
    let mut converged = false;
    for step in 1..=settings.blocks {
        let fresh = run.extend(a, &next);
        let block;
        (block, coupling) = run.next_block(a, fresh);
        let full = run.v.cols() + block.cols() > room;
        // The small decomposition costs as much as a few blocks: not after each.
        if full || step % CHECK_EVERY == 0 || block.cols() == 0 {
            let small = run.small();
            run.scale = run.scale.max(small.values.first().copied().unwrap_or(0.0));
            let residuals = small.residuals(wanted, &coupling);
            // An empty block: the bases span an invariant space and every triplet in it is exact.
            converged =
                block.cols() == 0 || residuals.len() == wanted && small.within(&residuals, settings.tolerance * run.scale, run.scale);
            if converged {
                break;
            }
            if full && step < settings.blocks {
                run.restart(&small, keep);
            }
        }
        next = block;
    }
    let small = run.small();
    let (left, right) = run.lift(&small, wanted);
    let residuals = small.residuals(wanted, &coupling);
    Svd { left, values: small.values[..residuals.len()].to_vec(), right, residuals, converged }
}

/// Blocks between two looks at the residuals.
const CHECK_EVERY: usize = 6;

/// `B = X diag(values) Y^T`.
struct Small {
    x: Mat,
    values: Vec<f64>,
    y: Mat,
}

impl Small {
    /// Whether the values are within `error` of singular values of A: by `||R^T x||` itself, or, where the next value is far enough away,
    /// by its square over that distance.
    fn within(&self, residuals: &[f64], error: f64, scale: f64) -> bool {
        let k = residuals.len();
        let gap = if k < self.values.len() { self.values[k - 1] - self.values[k] } else { 0.0 };
        let next = residuals.iter().copied().fold(0.0, f64::max);
        // The next value is not known better than its own residual allows: only a gap well above it counts.
        residuals.iter().all(|r| *r <= error || *r <= GOOD_VECTORS * scale && gap > 100.0 * next && r * r <= error * (gap - next))
    }

    /// `||R^T x||` of the leading triplets; `coupling` is R^T.
    fn residuals(&self, wanted: usize, coupling: &Mat) -> Vec<f64> {
        let k = wanted.min(self.values.len());
        if coupling.rows() == 0 {
            return vec![0.0; k];
        }
        let leading: Vec<usize> = (0..k).collect();
        let mut rest = Mat::default();
        thin::product(coupling, &self.x.select_columns(&leading), &mut rest);
        thin::column_norms(&rest)
    }
}

/// `A V = U B`.
struct Bidiagonal {
    v: Mat,
    u: Mat,
    b: Mat,
    /// The largest singular value met.
    scale: f64,
}

impl Bidiagonal {
    /// Appends a block to V and what A makes of it to U; hands back the number of columns by which U grew.
    fn extend(&mut self, a: &impl Products, block: &Mat) -> usize {
        let mut image = Mat::default();
        a.times(block, &mut image);
        let along = project_out(&self.u, &mut image);
        let norms = thin::column_norms(&image);
        self.scale = norms.iter().copied().fold(self.scale, f64::max);
        let fresh = independent(&self.u, &image, 1e-14 * self.scale);
        let inside = thin::cross_gram(&fresh, &image);
        let (m, n, grown, t) = (self.b.rows(), self.b.cols(), fresh.cols(), block.cols());
        self.b = Mat::from_fn(m + grown, n + t, |i, j| match (i < m, j < n) {
            (true, true) => self.b[(i, j)],
            (true, false) => along[(j - n, i)],
            (false, true) => 0.0,
            (false, false) => inside[(i - m, j - n)],
        });
        self.v = beside(&self.v, block);
        self.u = beside(&self.u, &fresh);
        grown
    }

    /// The part of `A^T U` outside V, from the columns of U that are new; with `R`, its coupling to all columns of U.
    ///
    /// For the older columns of U that part lies in the blocks already taken, except after a restart, where the block that was
    /// next came first: so the new columns are all that is left to look at.
    fn next_block(&self, a: &impl Products, fresh: usize) -> (Mat, Mat) {
        let m = self.u.cols();
        let newest: Vec<usize> = (m - fresh..m).collect();
        let mut image = Mat::default();
        a.transposed_times(&self.u.select_columns(&newest), &mut image);
        project_out(&self.v, &mut image);
        let block = independent(&self.v, &image, 1e-14 * self.scale);
        let coupling = thin::cross_gram(&block, &image);
        let all = Mat::from_fn(block.cols(), m, |i, j| if j < m - fresh { 0.0 } else { coupling[(i, j - (m - fresh))] });
        (block, all)
    }

    fn small(&self) -> Small {
        match small::thin_svd(&self.b) {
            Some((x, values, y)) => Small { x, values, y },
            None => Small { x: Mat::zeros(self.b.rows(), 0), values: Vec::new(), y: Mat::zeros(self.b.cols(), 0) },
        }
    }

    /// The leading singular vectors that the bases hold.
    fn lift(&self, small: &Small, wanted: usize) -> (Mat, Mat) {
        let leading: Vec<usize> = (0..wanted.min(small.values.len())).collect();
        let (mut left, mut right) = (Mat::default(), Mat::default());
        thin::product(&self.u, &small.x.select_columns(&leading), &mut left);
        thin::product(&self.v, &small.y.select_columns(&leading), &mut right);
        (left, right)
    }

    /// Keeps the leading triplets only.
    fn restart(&mut self, small: &Small, keep: usize) {
        let k = keep.min(small.values.len());
        (self.u, self.v) = self.lift(small, k);
        self.b = Mat::from_fn(k, k, |i, j| if i == j { small.values[i] } else { 0.0 });
    }
}

/// `x <- x - Q Q^T x`, twice, since once leaves rounding behind; hands back `x^T Q`.
fn project_out(q: &Mat, x: &mut Mat) -> Mat {
    let mut total = Mat::zeros(x.cols(), q.cols());
    if q.cols() == 0 {
        return total;
    }
    for _ in 0..2 {
        let shadow = along(q, x);
        take_away(q, &shadow, x);
        total.as_mut_slice().iter_mut().zip(shadow.as_slice()).for_each(|(t, a)| *t += a);
    }
    total
}

/// `x^T Q` for a wide Q and a few columns x, row by row: a general product spends more on arranging so narrow a matrix.
fn along(q: &Mat, x: &Mat) -> Mat {
    let (m, t) = (q.cols(), x.cols());
    if m == 0 {
        return Mat::zeros(t, 0);
    }
    let part = |rows: std::ops::Range<usize>| {
        let mut out = Mat::zeros(t, m);
        pulp::Arch::new().dispatch(|| {
            for i in rows.clone() {
                let row = q.row(i);
                for (sums, &x) in out.as_mut_slice().chunks_exact_mut(m).zip(x.row(i)) {
                    sums.iter_mut().zip(row).for_each(|(s, q)| *s += x * q);
                }
            }
        });
        out
    };
    let add = |a: &mut Mat, b: Mat| a.as_mut_slice().iter_mut().zip(b.as_slice()).for_each(|(a, b)| *a += b);
    thin::sum_blocks(q.rows(), 2 * m * t, part, add).unwrap_or_else(|| Mat::zeros(t, m))
}

/// `x <- x - Q shadow^T`.
fn take_away(q: &Mat, shadow: &Mat, x: &mut Mat) {
    let (m, t) = (q.cols(), x.cols());
    if m == 0 || t == 0 {
        return;
    }
    let work = 2 * x.as_slice().len() * m;
    thin::for_each_chunk_mut(x.as_mut_slice(), thin::BLOCK * t, work, |block, rows| {
        pulp::Arch::new().dispatch(|| {
            for (k, out) in rows.chunks_exact_mut(t).enumerate() {
                let row = q.row(block * thin::BLOCK + k);
                for (o, shadow) in out.iter_mut().zip(shadow.as_slice().chunks_exact(m)) {
                    *o -= wide_dot(row, shadow);
                }
            }
        });
    });
}

/// `<a, b>` in eight interleaved sums.
#[inline(always)]
fn wide_dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (mut x, mut y) = (a.chunks_exact(8), b.chunks_exact(8));
    for (p, q) in (&mut x).zip(&mut y) {
        for k in 0..8 {
            sums[k] += p[k] * q[k];
        }
    }
    let tail: f64 = x.remainder().iter().zip(y.remainder()).map(|(p, q)| p * q).sum();
    sums.iter().sum::<f64>() + tail
}

/// Orthonormal basis of the columns longer than `threshold`, orthogonal to `q` to rounding.
fn independent(q: &Mat, x: &Mat, threshold: f64) -> Mat {
    let long: Vec<usize> = thin::column_norms(x).iter().enumerate().filter(|(_, n)| **n > threshold).map(|(j, _)| j).collect();
    let mut basis = small::orthonormalise(&x.select_columns(&long));
    // Where columns cancelled against each other, what they held of q grew with what was left.
    let drift = along(q, &basis);
    if thin::dot(drift.as_slice(), drift.as_slice()).sqrt() <= 1e-14 * (drift.as_slice().len() as f64).sqrt() {
        return basis;
    }
    project_out(q, &mut basis);
    let still: Vec<usize> = thin::column_norms(&basis).iter().enumerate().filter(|(_, n)| **n > 0.5).map(|(j, _)| j).collect();
    small::orthonormalise(&basis.select_columns(&still))
}

fn beside(a: &Mat, b: &Mat) -> Mat {
    let k = a.cols();
    let mut out = Mat::zeros(a.rows(), k + b.cols());
    for i in 0..a.rows() {
        let (left, right) = out.row_mut(i).split_at_mut(k);
        left.copy_from_slice(a.row(i));
        right.copy_from_slice(b.row(i));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    struct Dense(Mat);

    impl Products for Dense {
        fn shape(&self) -> (usize, usize) {
            (self.0.rows(), self.0.cols())
        }
        fn times(&self, x: &Mat, out: &mut Mat) {
            thin::product(&self.0, x, out);
        }
        fn transposed_times(&self, y: &Mat, out: &mut Mat) {
            thin::product(&self.0.transposed(), y, out);
        }
    }

    fn random(rows: usize, columns: usize, seed: u64) -> Mat {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Mat::from_fn(rows, columns, |_, _| rng.random::<f64>() - 0.3)
    }

    #[test]
    fn values_and_vectors_agree_with_the_dense_decomposition() {
        for (rows, columns, rank, seed) in [(300, 300, 12, 1), (150, 90, 5, 2), (80, 200, 20, 3), (12, 12, 12, 4), (40, 3, 3, 5)] {
            let a = random(rows, columns, seed);
            let (_, exact, _) = small::thin_svd(&a).unwrap();
            let found = truncated_svd(&Dense(a.clone()), &TruncatedSvd::new(rank, 9));
            assert!(found.converged);
            assert_eq!(found.values.len(), rank);
            for k in 0..rank {
                assert!((found.values[k] - exact[k]).abs() < 1e-11 * exact[0], "{rows} x {columns}, {k}: {} {}", found.values[k], exact[k]);
            }
            // The residuals are those that the products give.
            let mut image = Mat::default();
            thin::product(&a.transposed(), &found.left, &mut image);
            for k in 0..rank {
                let r = (0..columns).map(|i| (image[(i, k)] - found.values[k] * found.right[(i, k)]).powi(2)).sum::<f64>().sqrt();
                assert!((r - found.residuals[k]).abs() < 1e-11 * exact[0], "{r} {}", found.residuals[k]);
            }
            let gram = thin::gram(&found.right);
            (0..rank).for_each(|i| (0..rank).for_each(|j| assert!((gram[(i, j)] - f64::from(u8::from(i == j))).abs() < 1e-11)));
        }
    }

    #[test]
    fn a_matrix_of_lower_rank_gives_what_there_is() {
        let mut a = Mat::default();
        thin::product(&random(100, 4, 1), &random(4, 70, 2), &mut a);
        let found = truncated_svd(&Dense(a.clone()), &TruncatedSvd::new(10, 3));
        let (_, exact, _) = small::thin_svd(&a).unwrap();
        assert!(found.converged && found.values.len() >= 4);
        found.values.iter().zip(&exact).for_each(|(x, y)| assert!((x - y).abs() < 1e-12 * exact[0]));
        let zero = truncated_svd(&Dense(Mat::zeros(20, 20)), &TruncatedSvd::new(3, 3));
        assert!(zero.values.iter().all(|s| *s == 0.0));
    }

    #[test]
    fn the_same_bits_for_any_number_of_threads() {
        let a = Dense(random(1500, 300, 6));
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| truncated_svd(&a, &TruncatedSvd::new(6, 1)))
        };
        let one = run(1);
        assert!(run(2) == one && run(8) == one);
    }
}
