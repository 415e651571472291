//! Extrapolation of the passes (Anderson 1965; for expectation and maximisation Henderson and Varadhan 2019). With the image `g(x)` of a point under a pass and its step `f(x) = g(x) - x`,
//! the last differences `dF_j`, `dG_j` of steps and images are combined so that the step vanishes to first order,
//!
//! `gamma = argmin |f - sum_j gamma_j dF_j|^2`, next point `g - sum_j gamma_j dG_j`.
//!
//! Steps are measured by both blocks in their own units, rows of U by how much of the data they carry. The differences are kept in single precision: they only steer.

use super::likelihood::Point;
use crate::linalg::thin::{self, BLOCK};
use crate::linalg::{Mat, small};
use rayon::prelude::*;

/// Differences that are combined, at most.
const MEMORY: usize = 6;
/// A pass over so many pairs a state is worth one difference: with fewer pairs the bookkeeping would cost more than the passes that it saves.
const PAIRS_A_DIFFERENCE: usize = 8;
/// What is added to the diagonal of the normal equations, as a share of it.
const RIDGE: f64 = 1e-8;
/// An extrapolated entry keeps at least this share of the plain one: a zero would stay zero for ever.
const KEEP: f64 = 0.05;

/// U's and V's entries of a difference, one after the other.
type Difference = Vec<f32>;

/// The last differences.
#[derive(Debug)]
pub(super) struct Anderson<'a> {
    /// `n_i / n`.
    share: &'a [f64],
    memory: usize,
    /// `dF_j` and `dG_j`, the oldest first.
    differences: Vec<(Difference, Difference)>,
    /// `g` and `f` of the point before.
    before: Option<(Point, Point)>,
}

impl<'a> Anderson<'a> {
    pub fn new(share: &'a [f64], pairs: usize) -> Self {
        let memory = (pairs / (PAIRS_A_DIFFERENCE * share.len().max(1))).clamp(2, MEMORY);
        Anderson { share, memory, differences: Vec::new(), before: None }
    }

    /// What was learnt where a pass gained nothing is of no use.
    pub fn forget(&mut self) {
        self.differences.clear();
        self.before = None;
    }

    /// From a point x and its image: x becomes the next point to try. False where nothing is known yet; then it is the image.
    pub fn extrapolate(&mut self, x: &mut Point, image: &Point) -> bool {
        // x = f(x) from here on.
        let step = x;
        each(step, image, |f, g| *f = g - *f);
        let Some((image_before, step_before)) = &mut self.before else {
            self.before = Some((image.clone(), step.clone()));
            step.copy_from(image);
            return false;
        };
        let mut room = if self.differences.len() == self.memory { self.differences.remove(0) } else { Default::default() };
        narrow(step, step_before, &mut room.0);
        narrow(image, image_before, &mut room.1);
        self.differences.push(room);
        step_before.copy_from(step);
        image_before.copy_from(image);
        let gamma = self.weights(step, image);
        step.copy_from(image);
        let Some(gamma) = gamma else { return false };
        self.combine(step, &gamma);
        true
    }

    /// gamma.
    fn weights(&self, step: &Point, image: &Point) -> Option<Vec<f64>> {
        let (m, width, d) = (self.differences.len(), step.u.width, self.share.len());
        let sizes = |rows: std::ops::Range<usize>| {
            let (mut u, mut v) = (0.0, 0.0);
            for i in rows {
                let square = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
                u += self.share[i] * square(&image.u.data[i * width..(i + 1) * width]);
                v += square(&image.v.data[i * width..(i + 1) * width]);
            }
            (u, v)
        };
        let (size_u, size_v) = thin::sum_blocks(d, 4 * width, sizes, |a, b| *a = (a.0 + b.0, a.1 + b.1))?;
        // <dF_j, dF_k> in the first m rows, <dF_j, f> in the last.
        let part = |rows: std::ops::Range<usize>| {
            let mut sums = vec![0.0; m * (m + 1)];
            for i in rows {
                for (weight, at, f) in [(self.share[i] / size_u, i, &step.u.data), (1.0 / size_v, d + i, &step.v.data)] {
                    let f = &f[i * width..(i + 1) * width];
                    for j in 0..m {
                        let a = &self.differences[j].0[at * width..(at + 1) * width];
                        for k in j..m {
                            let b = &self.differences[k].0[at * width..(at + 1) * width];
                            sums[j * m + k] += weight * f64::from(a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>());
                        }
                        sums[m * m + j] += weight * a.iter().zip(f).map(|(a, f)| f64::from(*a) * f).sum::<f64>();
                    }
                }
            }
            sums
        };
        let add = |sum: &mut Vec<f64>, part: Vec<f64>| sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
        let sums = thin::sum_blocks(d, 2 * width * m * (m + 1), part, add)?;
        let mut normal = Mat::from_fn(m, m, |j, k| sums[j.min(k) * m + j.max(k)]);
        (0..m).for_each(|j| normal[(j, j)] *= 1.0 + RIDGE);
        let inverse = small::inverse(&normal)?;
        let gamma: Vec<f64> = (0..m).map(|j| thin::dot(inverse.row(j), &sums[m * m..])).collect();
        gamma.iter().all(|g| g.is_finite()).then_some(gamma)
    }

    /// The image less `sum_j gamma_j dG_j`, no entry below a share of the image's, rows of U and columns of V summing to one again.
    fn combine(&self, x: &mut Point, gamma: &[f64]) {
        let size = x.u.data.len();
        let chunk = BLOCK * x.u.width;
        for (offset, data) in [(0, &mut x.u.data), (size, &mut x.v.data)] {
            data.par_chunks_mut(chunk).enumerate().for_each(|(block, entries)| {
                let first = offset + block * chunk;
                let least: Vec<f64> = entries.iter().map(|x| KEEP * x).collect();
                for ((_, dg), gamma) in self.differences.iter().zip(gamma) {
                    entries.iter_mut().zip(&dg[first..]).for_each(|(x, dg)| *x -= gamma * f64::from(*dg));
                }
                entries.iter_mut().zip(&least).for_each(|(x, least)| *x = x.max(*least));
            });
        }
    }
}

/// `f(a, b)` on all entries of two points.
fn each(a: &mut Point, b: &Point, f: impl Fn(&mut f64, f64) + Sync) {
    let chunk = BLOCK * a.u.width;
    for (a, b) in [(&mut a.u.data, &b.u.data), (&mut a.v.data, &b.v.data)] {
        a.par_chunks_mut(chunk).zip(b.par_chunks(chunk)).for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, b)| f(a, *b)));
    }
}

/// `a - b`.
fn narrow(a: &Point, b: &Point, into: &mut Difference) {
    let size = a.u.data.len();
    into.resize(2 * size, 0.0);
    let chunk = BLOCK * a.u.width;
    let (u, v) = into.split_at_mut(size);
    for ((a, b), out) in [((&a.u.data, &b.u.data), u), ((&a.v.data, &b.v.data), v)] {
        out.par_chunks_mut(chunk).zip(a.par_chunks(chunk)).zip(b.par_chunks(chunk)).for_each(|((out, a), b)| {
            out.iter_mut().zip(a).zip(b).for_each(|((out, a), b)| *out = (a - b) as f32);
        });
    }
}
