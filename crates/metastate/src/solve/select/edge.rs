//! How many directions of the counts repeat themselves: the rank in one singular value decomposition, where the spectrum has an edge.
//!
//! The folds are laid into two halves that share no transition. With `r_i`, `c_j` the row and column sums of the first half N, and tau a tenth of their mean (that of the rows by the rows, that of the columns by the columns), the matrix
//!
//! `A_ij = N_ij / sqrt((r_i + tau) (c_j + tau))`
//!
//! has noise of the same size everywhere. Its leading singular pairs `(a_k, b_k)` are measured on the *other* half M: with `u_ik = a_ik / sqrt(r_i + tau)`, `v_jk` likewise,
//!
//! `z_k = sum_ij M_ij u_ik v_jk / sqrt(sum_ij M_ij u_ik^2 v_jk^2)`.
//!
//! A direction that is noise of the first half is nothing special to the second, and there z is standard normal; a true one grows with the root of the number of transitions. So
//! where z falls from large values to a normal variable's, the number of large ones is the rank. Where it falls slowly, as in most real data, there is no edge, and nothing is claimed.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::counts::Folds;
use crate::error::Result;
use crate::linalg::thin::scale_rows;
use crate::linalg::{Csr, Mat, Operator, SparseOperator, small, thin};

/// A direction counts from this z on: one of 30,000 noise directions does.
const REAL: f64 = 4.0;
/// The last one that counts must stand out by this much more,
const CLEAR: f64 = 2.0 * REAL;
/// and so many after it must not count.
const QUIET: usize = 4;
/// Directions that are looked at first; twice as many as long as the last ones still count.
const FIRST: usize = 16;
/// Steps of subspace iteration: where there is an edge it converges fast, and where there is none nothing is claimed.
const ROUNDS: usize = 6;
/// tau as a share of the mean row sum, and of the mean column sum.
const TAU: f64 = 0.1;

/// The rank at which the spectrum has an edge, if it has one below `max_rank`.
pub(super) fn edge(folds: &Folds, max_rank: usize, seed: u64) -> Result<Option<usize>> {
    let halves = folds.halves();
    let scaled = Scaled::new(&halves.0)?;
    let most = (max_rank + QUIET).min(folds.whole().rows()).min(folds.whole().cols());
    let mut wanted = FIRST.min(most);
    loop {
        let (left, right) = scaled.leading(wanted, seed);
        let z = on_other_half(&halves.1, &left, &right);
        if let Some(rank) = edge_of(&z) {
            return Ok(Some(rank).filter(|r| *r <= max_rank));
        }
        if wanted == most || z.iter().rev().take(QUIET).all(|z| *z < REAL) {
            return Ok(None);
        }
        wanted = (2 * wanted).min(most);
    }
}

/// The number of leading z that count, where the last of them is clear and enough quiet ones follow.
fn edge_of(z: &[f64]) -> Option<usize> {
    let rank = z.iter().take_while(|z| **z >= REAL).count();
    let quiet = z[rank..].len() >= QUIET && z[rank..].iter().all(|z| *z < REAL);
    (rank >= 1 && z[rank - 1] >= CLEAR && quiet).then_some(rank)
}

/// A, by its products.
struct Scaled {
    counts: SparseOperator,
    rows: Vec<f64>,
    columns: Vec<f64>,
}

impl Scaled {
    fn new(counts: &Csr) -> Result<Self> {
        let (rows, columns) = (counts.row_sums(), counts.column_sums());
        let total = rows.iter().sum::<f64>();
        let root = |sums: Vec<f64>| {
            let tau = TAU * total / sums.len() as f64;
            sums.into_iter().map(|n| 1.0 / (n + tau).sqrt()).collect()
        };
        Ok(Scaled { counts: SparseOperator::new(counts.clone(), Vec::new())?, rows: root(rows), columns: root(columns) })
    }

    fn times(&self, x: &Mat) -> Mat {
        let (mut scaled, mut out) = (x.clone(), Mat::default());
        scale_rows(&mut scaled, &self.columns);
        self.counts.apply(&scaled, &mut out);
        scale_rows(&mut out, &self.rows);
        out
    }

    fn transposed_times(&self, y: &Mat) -> Mat {
        let (mut scaled, mut out) = (y.clone(), Mat::default());
        scale_rows(&mut scaled, &self.rows);
        self.counts.apply_transpose(&scaled, &mut out);
        scale_rows(&mut out, &self.columns);
        out
    }

    /// u and v of the leading pairs, in the order of their singular values.
    fn leading(&self, wanted: usize, seed: u64) -> (Mat, Mat) {
        let n = self.columns.len();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = small::orthonormalise(&Mat::from_fn(n, wanted, |_, _| StandardNormal.sample(&mut rng)));
        for _ in 0..ROUNDS {
            x = small::orthonormalise(&self.transposed_times(&small::orthonormalise(&self.times(&x))));
        }
        let image = self.times(&x);
        let q = small::orthonormalise(&image);
        let core = thin::cross_gram(&q, &image);
        let (mut left, mut right) = (Mat::default(), Mat::default());
        match small::thin_svd(&core) {
            Some((a, _, b)) => {
                thin::product(&q, &a, &mut left);
                thin::product(&x, &b, &mut right);
            }
            None => (left, right) = (q, x),
        }
        scale_rows(&mut left, &self.rows);
        scale_rows(&mut right, &self.columns);
        (left, right)
    }
}

/// `z_k`.
fn on_other_half(counts: &Csr, left: &Mat, right: &Mat) -> Vec<f64> {
    let k = left.cols().min(right.cols());
    let part = |rows: std::ops::Range<usize>| {
        let mut both = vec![0.0; 2 * k];
        let (sums, squares) = both.split_at_mut(k);
        for i in rows {
            let (columns, values) = counts.row(i);
            let u = left.row(i);
            for (&j, &n) in columns.iter().zip(values) {
                for (((sum, square), u), v) in sums.iter_mut().zip(&mut *squares).zip(u).zip(right.row(j as usize)) {
                    let t = u * v;
                    *sum += n * t;
                    *square += n * t * t;
                }
            }
        }
        both
    };
    let work = 4 * k * (counts.nonzeros() / counts.rows().max(1) + 1);
    let both = thin::sum_blocks_among(counts.share(), counts.rows(), 2 * k, work, part);
    let (sums, squares) = both.split_at(k);
    sums.iter().zip(squares).map(|(sum, square)| if *square > 0.0 { sum / square.sqrt() } else { 0.0 }).collect()
}
