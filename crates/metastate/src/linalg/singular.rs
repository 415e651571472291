//! The leading singular triplets of a matrix known by its two products, `A x` and `A^T y`.
//!
//! Lanczos bidiagonalisation, one vector at a time, with full reorthogonalisation and thick restarts. Two orthonormal bases are kept with
//! `A V = U B`; then `A^T U = V B^T + beta n e^T` with `n` the next vector and `e` the last unit vector, so for the triplet `(x, sigma, y)` of
//! the small B the only residual is `beta |x_last|`, and some singular value of A lies within it of sigma.
//!
//! A single starting vector sees one copy of a value that A has several times (a chain in pieces has such values). So when all have
//! converged, a fresh random vector is tried for a few steps; if a value comes up that belongs among the leading ones, it goes on.
//!
//! The general routine of faer was not taken: where a vector vanishes (the zero matrix, the identity) its reorthogonalisation does not end.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Mat, small, thin, wide};

/// Both products of a matrix with blocks of vectors.
pub trait MatrixFree: Sync {
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
    /// Vectors to multiply by, at most, each way.
    pub steps: usize,
    /// Seed of the first vector.
    pub seed: u64,
}

impl TruncatedSvd {
    /// So many triplets, to 1e-9 of the largest singular value.
    #[must_use]
    pub fn new(rank: usize, seed: u64) -> Self {
        TruncatedSvd { rank, tolerance: 1e-9, steps: 5000, seed }
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
    /// `||A^T u_k - sigma_k v_k||` of each triplet, computed (`A v_k = sigma_k u_k` holds to rounding).
    pub residuals: Vec<f64>,
    /// Whether all values are within the tolerance, as far as the residuals and the gap behind them tell.
    pub converged: bool,
}

/// The residual that is asked for in any case, relative to the largest singular value: the vectors should be good too.
const GOOD_VECTORS: f64 = 1e-6;
/// Room in the bases beside twice the wanted triplets.
const EXTRA_ROOM: usize = 16;
/// Steps from a fresh vector after convergence.
const PROBE: usize = 10;
/// A vector this much shorter than the largest singular value is rounding.
const ROUNDING: f64 = 1e-14;
/// A fresh vector of which less than this share is new: the row space is used up.
const NOTHING_NEW: f64 = 1e-10;

/// The leading triplets. Fewer than asked for where A has a smaller rank.
pub fn truncated_svd(a: &impl MatrixFree, settings: &TruncatedSvd) -> Svd {
    let (rows, columns) = a.shape();
    let wanted = settings.rank.min(rows.min(columns));
    let room = (2 * wanted + EXTRA_ROOM).min(rows.min(columns));
    // The wanted triplets and a good part of the next ones: they are what keeps the wanted ones from converging.
    let keep = (wanted + (room - wanted) / 2).min(room.saturating_sub(1));
    let mut run = Bidiagonal::new(a, room, settings.seed);
    let mut steps = settings.steps;
    // The smallest wanted value before a fresh vector was tried.
    let mut probed: Option<f64> = None;
    let mut ended = false;
    while wanted > 0 && !ended {
        let until = if probed.is_some() { (run.v.len() + PROBE).min(room) } else { room };
        run.extend(until, &mut steps);
        let small = run.small();
        run.scale = run.scale.max(small.values.first().copied().unwrap_or(0.0));
        let error = settings.tolerance * run.scale;
        let residuals = small.residuals(wanted, run.beta);
        ended = run.next.is_none() || steps == 0;
        if let Some(before) = probed.take() {
            // Nothing larger turned up: what was found is what there is.
            ended |= small.values[wanted - 1] <= before + 10.0 * error;
        } else if !ended && residuals.len() == wanted && small.within(&residuals, error, run.scale) {
            probed = Some(small.values[wanted - 1]);
            run.restart(&small, wanted);
            run.next = run.fresh();
            run.beta = 0.0;
            // With bases as wide as the matrix there may be no room to probe; then nothing is left to find.
            ended = run.next.is_none() || run.v.len() == room;
            continue;
        }
        if !ended && run.v.len() == room {
            run.restart(&small, keep);
        }
    }
    finish(a, &run, wanted, settings.tolerance)
}

/// The triplets that the bases hold, with their true residuals.
fn finish(a: &impl MatrixFree, run: &Bidiagonal<'_, impl MatrixFree>, wanted: usize, tolerance: f64) -> Svd {
    let small = run.small();
    let k = wanted.min(small.values.len());
    let (u, v) = run.lifted(&small, k);
    let (left, right) = (u.transposed(), v.transposed());
    let mut image = Mat::default();
    a.transposed_times(&left, &mut image);
    let values = small.values[..k].to_vec();
    thin::for_each_row_mut(&mut image, |i, row| row.iter_mut().zip(right.row(i)).zip(&values).for_each(|((x, v), s)| *x -= s * v));
    let residuals = thin::column_norms(&image);
    let converged = k == 0 || run.next.is_none() || small.within(&residuals, tolerance * run.scale, run.scale);
    Svd { left, values, right, residuals, converged }
}

/// `B = X diag(values) Y^T`.
struct Small {
    x: Mat,
    values: Vec<f64>,
    y: Mat,
}

impl Small {
    /// Whether the values are within `error` of singular values of A: by the residual itself, or, where the next value is far enough
    /// away, by its square over that distance.
    fn within(&self, residuals: &[f64], error: f64, scale: f64) -> bool {
        let k = residuals.len();
        let gap = if k < self.values.len() { self.values[k - 1] - self.values[k] } else { 0.0 };
        let next = residuals.iter().copied().fold(0.0, f64::max);
        // The next value is not known better than its own residual allows: only a gap well above it counts.
        residuals.iter().all(|r| *r <= error || *r <= GOOD_VECTORS * scale && gap > 100.0 * next && r * r <= error * (gap - next))
    }

    /// `beta |x_last|` of the leading triplets.
    fn residuals(&self, wanted: usize, beta: f64) -> Vec<f64> {
        let last = self.x.rows().saturating_sub(1);
        (0..wanted.min(self.values.len())).map(|k| (beta * self.x[(last, k)]).abs()).collect()
    }
}

/// `A V = U B`, `A^T U = V B^T + beta next e^T`.
struct Bidiagonal<'a, A: MatrixFree> {
    a: &'a A,
    v: GrowingBasis,
    u: GrowingBasis,
    /// Only its first `v.len()` rows and columns are in use.
    b: Mat,
    beta: f64,
    /// `None` when V holds the whole row space.
    next: Option<Mat>,
    /// The largest singular value met.
    scale: f64,
    rng: Xoshiro256PlusPlus,
}

impl<'a, A: MatrixFree> Bidiagonal<'a, A> {
    fn new(a: &'a A, room: usize, seed: u64) -> Self {
        let (rows, columns) = a.shape();
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (v, u) = (GrowingBasis::new(columns), GrowingBasis::new(rows));
        let mut run = Bidiagonal { a, v, u, b: Mat::zeros(room, room), beta: 0.0, next: None, scale: 0.0, rng };
        run.next = run.fresh();
        run
    }

    /// A random vector of the row space, orthogonal to V.
    fn fresh(&mut self) -> Option<Mat> {
        let (rows, columns) = self.a.shape();
        if self.v.len() >= rows.min(columns) {
            return None;
        }
        let random = Mat::from_fn(rows, 1, |_, _| StandardNormal.sample(&mut self.rng));
        let mut x = Mat::default();
        self.a.transposed_times(&random, &mut x);
        let length = norm(&x);
        self.v.project_out(&mut x);
        let new = norm(&x);
        if new.is_nan() || new <= NOTHING_NEW * length {
            return None;
        }
        divide(&mut x, new);
        // A short rest is not orthogonal after one division.
        self.v.project_out(&mut x);
        let new = norm(&x);
        divide(&mut x, new);
        Some(x)
    }

    /// Steps until the bases hold `until` vectors, or none is left to go on with.
    fn extend(&mut self, until: usize, steps: &mut usize) {
        let mut image = Mat::default();
        while self.v.len() < until && *steps > 0 {
            let Some(next) = self.next.take() else { return };
            *steps -= 1;
            let j = self.v.len();
            self.a.times(&next, &mut image);
            self.v.push(&next);
            let along = self.u.project_out(&mut image);
            let mut alpha = norm(&image);
            self.scale = self.scale.max(alpha);
            if alpha > ROUNDING * self.scale {
                divide(&mut image, alpha);
            } else {
                // A v lies in U: any direction will do.
                alpha = 0.0;
                image = self.any_left();
            }
            along.iter().enumerate().for_each(|(i, h)| self.b[(i, j)] = *h);
            self.b[(j, j)] = alpha;
            self.u.push(&image);

            let mut next = Mat::default();
            self.a.transposed_times(&image, &mut next);
            self.v.project_out(&mut next);
            self.beta = norm(&next);
            if self.beta > ROUNDING * self.scale && self.v.len() < self.a.shape().0.min(self.a.shape().1) {
                divide(&mut next, self.beta);
                self.next = Some(next);
            } else {
                // An invariant space: every triplet in it is exact, but there may be others.
                self.beta = 0.0;
                self.next = self.fresh();
            }
        }
    }

    /// A random unit vector orthogonal to U.
    fn any_left(&mut self) -> Mat {
        let mut x = Mat::from_fn(self.a.shape().0, 1, |_, _| StandardNormal.sample(&mut self.rng));
        self.u.project_out(&mut x);
        let length = norm(&x);
        divide(&mut x, length);
        x
    }

    fn small(&self) -> Small {
        let m = self.v.len();
        match small::thin_svd(&Mat::from_fn(m, m, |i, j| self.b[(i, j)])) {
            Some((x, values, y)) => Small { x, values, y },
            None => Small { x: Mat::zeros(m, 0), values: Vec::new(), y: Mat::zeros(m, 0) },
        }
    }

    /// The leading `k` singular vectors that the bases hold, one a row.
    fn lifted(&self, small: &Small, k: usize) -> (Mat, Mat) {
        rayon::join(|| self.u.combined(&small.x, k), || self.v.combined(&small.y, k))
    }

    /// Keeps the leading triplets only; the next vector and its coupling `beta x_last` to them stay.
    fn restart(&mut self, small: &Small, keep: usize) {
        let k = keep.min(small.values.len());
        (self.u.vectors, self.v.vectors) = self.lifted(small, k);
        self.b.as_mut_slice().fill(0.0);
        (0..k).for_each(|i| self.b[(i, i)] = small.values[i]);
    }
}

/// Orthonormal vectors, one a row.
struct GrowingBasis {
    vectors: Mat,
}

impl GrowingBasis {
    fn new(length: usize) -> Self {
        GrowingBasis { vectors: Mat::zeros(0, length) }
    }

    fn len(&self) -> usize {
        self.vectors.rows()
    }

    fn push(&mut self, x: &Mat) {
        let (m, n) = (self.len(), self.vectors.cols());
        self.vectors.resize(m + 1, n);
        self.vectors.row_mut(m).copy_from_slice(x.as_slice());
    }

    /// `x <- x - Q^T Q x`; hands back `Q x`. The last vector first, since most of it lies there; again as long as what is left is so
    /// much shorter than before that rounding may show.
    fn project_out(&self, x: &mut Mat) -> Vec<f64> {
        let m = self.len();
        let mut total = vec![0.0; m];
        let Some(last) = m.checked_sub(1) else { return total };
        total[last] = dot(self.vectors.row(last), x.as_slice());
        self.take_away(last..m, &total[last..], x);
        let mut before = norm(x);
        for _ in 0..3 {
            let along = self.along(x);
            self.take_away(0..m, &along, x);
            total.iter_mut().zip(&along).for_each(|(t, a)| *t += a);
            let after = norm(x);
            if after >= 0.7 * before {
                break;
            }
            before = after;
        }
        total
    }

    /// `Q x`.
    fn along(&self, x: &Mat) -> Vec<f64> {
        let m = self.len();
        let part = |range: std::ops::Range<usize>| {
            let x = &x.as_slice()[range.clone()];
            (0..m).map(|k| wide_dot(&self.vectors.row(k)[range.clone()], x)).collect::<Vec<f64>>()
        };
        let add = |a: &mut Vec<f64>, b: Vec<f64>| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        thin::sum_blocks(x.rows(), 2 * m, part, add).unwrap_or_else(|| vec![0.0; m])
    }

    /// `x <- x - sum_k along_k q_k` over some of the vectors.
    fn take_away(&self, which: std::ops::Range<usize>, along: &[f64], x: &mut Mat) {
        let work = 2 * x.rows() * along.len();
        thin::for_each_chunk_mut(x.as_mut_slice(), thin::BLOCK, work, |block, x| {
            let range = block * thin::BLOCK..block * thin::BLOCK + x.len();
            which.clone().zip(along).for_each(|(k, h)| subtract(x, *h, &self.vectors.row(k)[range.clone()]));
        });
    }

    /// `M^T Q` for the first `k` columns of M.
    fn combined(&self, m: &Mat, k: usize) -> Mat {
        let map = Mat::from_fn(k, self.len(), |i, j| m[(j, i)]);
        let mut out = Mat::default();
        thin::product(&map, &self.vectors, &mut out);
        out
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    thin::sum_blocks(a.len(), 2, |r| wide_dot(&a[r.clone()], &b[r]), |a, b| *a += b).unwrap_or(0.0)
}

fn norm(x: &Mat) -> f64 {
    dot(x.as_slice(), x.as_slice()).sqrt()
}

fn divide(x: &mut Mat, by: f64) {
    x.as_mut_slice().iter_mut().for_each(|x| *x /= by);
}

wide! {
    /// `<a, b>` in sixteen interleaved sums.
    fn wide_dot<'w>(a: &'w [f64], b: &'w [f64]) -> f64 {
        let mut sums = [0.0; 16];
        let (mut x, mut y) = (a.chunks_exact(16), b.chunks_exact(16));
        for (p, q) in (&mut x).zip(&mut y) {
            for k in 0..16 {
                sums[k] += p[k] * q[k];
            }
        }
        let tail: f64 = x.remainder().iter().zip(y.remainder()).map(|(p, q)| p * q).sum();
        sums.iter().sum::<f64>() + tail
    }
}

wide! {
    /// `x - h q`.
    fn subtract<'w>(x: &'w mut [f64], h: f64, q: &'w [f64]) {
        x.iter_mut().zip(q).for_each(|(x, q)| *x -= h * q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    struct Dense(Mat);

    impl MatrixFree for Dense {
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
    fn values_that_come_several_times_are_all_found() {
        // Three values four times each, far above the rest: one Krylov space holds one copy of each.
        let d = 400;
        let a = Mat::from_fn(d, d, |i, j| match i == j {
            true if i < 12 => 3.0 + (i / 4) as f64,
            true => 1.0 / (2.0 + i as f64),
            false => 0.0,
        });
        let found = truncated_svd(&Dense(a), &TruncatedSvd::new(12, 5));
        let exact = [5.0, 5.0, 5.0, 5.0, 4.0, 4.0, 4.0, 4.0, 3.0, 3.0, 3.0, 3.0];
        assert!(found.converged, "{:?}", found.residuals);
        assert_eq!(found.values.len(), 12);
        found.values.iter().zip(exact).for_each(|(x, y)| assert!((x - y).abs() < 1e-8, "{:?}", found.values));
        let identity = truncated_svd(&Dense(Mat::from_fn(50, 50, |i, j| f64::from(u8::from(i == j)))), &TruncatedSvd::new(5, 1));
        assert!(identity.converged && identity.values.len() == 5 && identity.values.iter().all(|s| (s - 1.0).abs() < 1e-12));
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
