//! The whitened problem (`docs/whitened.md`), recomputed from the counts, the prior, the prices and the factors alone.
//!
//! Weights, data, objective, conditions and bound are written anew in plain loops; nothing is shared with the solver. Up to [`DENSE`] states the norm of the dual point is proven by a Cholesky
//! factor, beyond by Lanczos from a random start.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::dual::{LANCZOS_ROOM, Ray, defect, eigen, gram, lanczos_loss, positive_definite};
use super::rows::{beside, by_rows, check_finite, column_norms, column_sums, cross, dot, product, sum};
use super::{BoundProof, RecheckedErrors, Recomputed, SUPPORT, Witness, feasibility, rounding_share};
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat};

/// Up to this number of states the dual point is formed.
const DENSE: usize = 3000;
/// Norms of the dual point further above 1 are given up, and below this far above it nothing is gained by coming closer.
const MOST_EXCESS: f64 = 100.0;
const SHARP: f64 = 1e-9;
/// Lanczos steps beyond, and the probability that the bound then fails.
const LANCZOS: (usize, f64) = (480, 1e-12);
/// Power steps that look for the noise.
const POWER: usize = 120;
/// Where Lanczos finds no new direction longer than this, beside the largest eigenvalue, there is none.
const NO_MORE: f64 = 1e-13;
/// Steps for one meta-state, at most.
const ONE: usize = 20_000;

/// It has arrived where no destination moves by more than this.
const ARRIVED: f64 = 1e-14;

/// The stated problem, but for its data: what the result says that it is.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Transitions that the prior adds to every state.
    pub prior: f64,
    /// What the directions below cost beside all others.
    pub price: f64,
    /// Directions of memberships, orthonormal, in white coordinates.
    pub rows: &'a Mat,
    /// Directions of destinations.
    pub columns: &'a Mat,
    /// lambda.
    pub lambda: f64,
}

/// Beside the figures of the solution: what the terms rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Whiteness {
    /// How far the two bases are from orthonormal.
    pub defect: f64,
    /// Largest singular value of the data off the directions, from below.
    pub noise: f64,
}

/// `z_ij = t_i (n_ij + alpha c_j) / ((n_i + alpha) s_j)`, `t_i^2 = (n_i + alpha) / (n + m alpha)`, `s_j^2 = c_j = (arrivals_j + alpha) / (n + columns alpha)`.
struct White<'a> {
    counts: &'a Csr,
    prior: f64,
    departures: Vec<f64>,
    totals: Vec<f64>,
    measure: Vec<f64>,
}

impl<'a> White<'a> {
    fn new(counts: &'a Csr, prior: f64) -> Self {
        let (m, n) = (counts.rows(), counts.cols());
        let departures: Vec<f64> = (0..m).map(|i| counts.row(i).1.iter().sum()).collect();
        let mut arrivals = vec![0.0; n];
        for i in 0..m {
            let (columns, values) = counts.row(i);
            columns.iter().zip(values).for_each(|(&j, x)| arrivals[j as usize] += x);
        }
        let all: f64 = departures.iter().sum();
        let totals = departures.iter().map(|d| ((d + prior) / (all + prior * m as f64)).sqrt()).collect();
        let measure = arrivals.iter().map(|a| ((a + prior) / (all + prior * n as f64)).sqrt()).collect();
        White { counts, prior, departures, totals, measure }
    }

    /// Row i of Z.
    fn row(&self, i: usize, out: &mut [f64]) {
        let scale = self.totals[i] / (self.departures[i] + self.prior);
        out.iter_mut().zip(&self.measure).for_each(|(o, s)| *o = scale * self.prior * s);
        let (columns, values) = self.counts.row(i);
        columns.iter().zip(values).for_each(|(&j, x)| out[j as usize] += scale * x / self.measure[j as usize]);
    }

    /// `Z x`.
    fn times(&self, x: &Mat) -> Mat {
        let all = column_sums(x, Some(&self.measure));
        by_rows(self.totals.len(), x.cols(), |i, out| {
            let scale = self.totals[i] / (self.departures[i] + self.prior);
            let (columns, values) = self.counts.row(i);
            for (k, o) in out.iter_mut().enumerate() {
                let seen: f64 = columns.iter().zip(values).map(|(&j, n)| n / self.measure[j as usize] * x[(j as usize, k)]).sum();
                *o = scale * (seen + self.prior * all[k]);
            }
        })
    }

    /// `Z^T y`, one column at a time.
    fn transposed_times(&self, y: &Mat) -> Mat {
        let scale = |i: usize| self.totals[i] / (self.departures[i] + self.prior);
        let columns: Vec<Vec<f64>> = (0..y.cols())
            .into_par_iter()
            .map(|k| {
                let mut out = vec![0.0; self.measure.len()];
                let mut all = 0.0;
                for i in 0..self.totals.len() {
                    let (columns, values) = self.counts.row(i);
                    let w = scale(i) * y[(i, k)];
                    all += w * self.prior;
                    columns.iter().zip(values).for_each(|(&j, n)| out[j as usize] += w * n / self.measure[j as usize]);
                }
                out.iter_mut().zip(&self.measure).for_each(|(o, s)| *o += all * s);
                out
            })
            .collect();
        Mat::from_fn(self.measure.len(), y.cols(), |j, k| columns[k][j])
    }

    /// `||E F^T - Z||^2`.
    fn residual2(&self, e: &Mat, f: &Mat) -> f64 {
        let n = self.measure.len();
        sum(self.totals.len(), |i| {
            let mut row = vec![0.0; n];
            self.row(i, &mut row);
            (0..n).for_each(|j| row[j] -= dot(e.row(i), f.row(j)));
            dot(&row, &row)
        })
    }

    /// `||Z||^2`.
    fn norm2(&self) -> f64 {
        let n = self.measure.len();
        sum(self.totals.len(), |i| {
            let mut row = vec![0.0; n];
            self.row(i, &mut row);
            dot(&row, &row)
        })
    }
}

/// x with its part in the span of Q multiplied by a number.
fn stretched(q: &Mat, x: &Mat, factor: f64) -> Mat {
    let inside = product(q, &cross(q, x, None));
    by_rows(x.rows(), x.cols(), |i, out| (0..out.len()).for_each(|k| out[k] = x[(i, k)] + (factor - 1.0) * inside[(i, k)]))
}

/// `||x_j - (1 - price) Q Q^T x_j||`.
fn priced_norms(q: &Mat, price: f64, x: &Mat) -> Vec<f64> {
    column_norms(&stretched(q, x, price))
}

/// All figures of the solution `(u, v)` of the whitened problem.
pub fn recompute_whitened(
    counts: &Csr,
    terms: &Terms<'_>,
    u: &Mat,
    v: &Mat,
    witness: Witness<'_>,
    seed: u64,
) -> Result<(Recomputed, Whiteness)> {
    check(counts, terms, u, v, &witness)?;
    let white = White::new(counts, terms.prior);
    let (m, n, s) = (u.rows(), v.rows(), u.cols());
    let (lambda, price) = (terms.lambda, terms.price);
    let e = by_rows(m, s, |i, out| (0..s).for_each(|k| out[k] = white.totals[i] * u[(i, k)]));
    let f = by_rows(n, s, |j, out| (0..s).for_each(|k| out[k] = v[(j, k)] / white.measure[j]));
    let (e_norms, f_norms) = (priced_norms(terms.rows, price, &e), priced_norms(terms.columns, price, &f));

    let norm2 = white.norm2();
    let fidelity = 0.5 * white.residual2(&e, &f);
    let share = rounding_share(s);
    let fidelity_rounding = 2.0 * share * (2.0 * fidelity * norm2).sqrt() + share * share * norm2;
    let regularizer = dot(&e_norms, &f_norms);
    let objective = fidelity + lambda * regularizer;

    let zf = white.times(&f);
    let local = local_errors(&white, terms, (&e, &e_norms), (&f, &f_norms), &zf);
    let point = Dual { white: &white, terms, witness: &witness };
    let bound = point.bound(norm2, seed);
    let linear = sum(m, |i| dot(zf.row(i), e.row(i))) - norm2 - dot(&local.mu, &white.totals);
    let of_one = one_metastate(&white, terms);
    let whiteness = Whiteness { defect: defect(terms.rows).max(defect(terms.columns)), noise: noise(&white, terms, seed) };
    let found = Recomputed {
        rank: s,
        feasibility: feasibility(u, v),
        fidelity,
        regularizer,
        objective,
        fidelity_rounding,
        rel_le1: local.rel_le1,
        rel_le2: local.rel_le2,
        // No search is made for these: what a local search finds is no claim that another could deny.
        ge: f64::NAN,
        ge_of_columns: f64::NAN,
        ge_rounding: 0.0,
        rel_dg: f64::NAN,
        ray: Ray::through(linear, fidelity, norm2),
        rel_le_rounding: local.rounding,
        lower_bound: bound.0,
        certified_gap: ((objective - bound.0) / objective).max(0.0),
        objective_of_one: 0.5 * white.residual2(&of_one.0, &of_one.1) + lambda * of_one.2,
        bound_proof: bound.1,
        bound_norm: bound.2,
        bound_rounding: bound.3,
        rel_re: None,
        rel_se: None,
    };
    Ok((found, whiteness))
}

/// The multipliers mu and both local errors, from E and F with the lengths of their columns, and `Z F`. The gradient of the fidelity is `E (F^T F) - Z F` in E and `F (E^T E) - Z^T E` in F,
/// that of the norms `lambda ||R f_j|| / ||L e_j|| L^2 e_j` and its like.
fn local_errors(white: &White, terms: &Terms, (e, e_norms): (&Mat, &[f64]), (f, f_norms): (&Mat, &[f64]), zf: &Mat) -> RecheckedErrors {
    let (m, n, s) = (e.rows(), f.rows(), e.cols());
    let (lambda, price) = (terms.lambda, terms.price);
    let ratio = |a: f64, b: f64| if b > 0.0 { lambda * a / b } else { 0.0 };
    let on_e: Vec<f64> = (0..s).map(|k| ratio(f_norms[k], e_norms[k])).collect();
    let on_f: Vec<f64> = (0..s).map(|k| ratio(e_norms[k], f_norms[k])).collect();
    let ze = white.transposed_times(e);
    let (eg, fa) = (product(e, &cross(f, f, None)), product(f, &cross(e, e, None)));
    let (le, rf) = (stretched(terms.rows, e, price * price), stretched(terms.columns, f, price * price));
    let mu: Vec<f64> = (0..m)
        .map(|i| {
            let floor = SUPPORT * e.row(i).iter().fold(0.0f64, |most, x| most.max(*x));
            let on: Vec<usize> = (0..s).filter(|&k| e[(i, k)] > floor).collect();
            on.iter().map(|&k| on_e[k] * le[(i, k)] + eg[(i, k)] - zf[(i, k)]).sum::<f64>() / on.len().max(1) as f64
        })
        .collect();
    let level = column_sums(e, Some(&mu));
    // What x should be were it free, against what it is: zero where the conditions hold.
    let off = |x: f64, ridge: f64, pull: f64| ((ridge * x + pull).max(0.0) - ridge * x).abs();
    let error1 = sum(m, |i| (0..s).map(|k| off(e[(i, k)], on_e[k], mu[i] - (eg[(i, k)] - zf[(i, k)]) - on_e[k] * le[(i, k)])).sum());
    let error2 = sum(n, |j| {
        (0..s).map(|k| off(f[(j, k)], on_f[k], white.measure[j] * level[k] - (fa[(j, k)] - ze[(j, k)]) - on_f[k] * rf[(j, k)])).sum()
    });
    let scale1 = sum(m, |i| (0..s).map(|k| on_e[k] * e[(i, k)]).sum());
    let scale2 = sum(n, |j| (0..s).map(|k| on_f[k] * f[(j, k)]).sum());
    let size1 = sum(m, |i| (0..s).map(|k| mu[i].abs() + eg[(i, k)].abs() + zf[(i, k)].abs()).sum());
    let size2 = sum(n, |j| (0..s).map(|k| (white.measure[j] * level[k]).abs() + fa[(j, k)].abs() + ze[(j, k)].abs()).sum());
    let share = rounding_share(s);
    let rounding = (share * size1 / scale1, (share + m as f64 * f64::EPSILON) * (size2 + n as f64 * share * size1) / scale2);
    RecheckedErrors { mu, rel_le1: error1 / scale1, rel_le2: error2 / scale2, rounding }
}

fn check(counts: &Csr, terms: &Terms, u: &Mat, v: &Mat, w: &Witness) -> Result<()> {
    let size = |what, found, expected| if found == expected { Ok(()) } else { Err(Error::SizeMismatch { what, expected, found }) };
    let (m, n) = (counts.rows(), counts.cols());
    let fine = |x: f64| x > 0.0 && x.is_finite();
    if !(fine(terms.lambda) && fine(terms.prior) && fine(terms.price) && terms.price <= 1.0) {
        return Err(Error::Setting {
            name: "a term of the whitened problem",
            value: format!("{}, {}, {}", terms.lambda, terms.prior, terms.price),
            allowed: "lambda and prior are positive, a price is at most 1",
        });
    }
    if u.cols() == 0 {
        return Err(Error::Empty { what: "U" });
    }
    size("U (rows)", u.rows(), m)?;
    size("V (rows)", v.rows(), n)?;
    size("V (columns)", v.cols(), u.cols())?;
    size("the directions of the rows", terms.rows.rows(), m)?;
    size("the directions of the columns", terms.columns.rows(), n)?;
    size("the witness a (rows)", w.a.rows(), m)?;
    size("the witness b (rows)", w.b.rows(), n)?;
    size("the witness b (columns)", w.b.cols(), w.a.cols())?;
    size("the witness mu", w.mu.len(), m)?;
    if let Some((left, right, excess)) = w.clip {
        size("the witness left (rows)", left.rows(), m)?;
        size("the witness right (rows)", right.rows(), n)?;
        size("the witness right (columns)", right.cols(), left.cols())?;
        size("the witness excess", excess.len(), left.cols())?;
        check_finite("the witness left", left)?;
        check_finite("the witness right", right)?;
    }
    for (what, x) in [
        ("U", u),
        ("V", v),
        ("the witness a", w.a),
        ("the witness b", w.b),
        ("the directions of the rows", terms.rows),
        ("the directions of the columns", terms.columns),
    ] {
        check_finite(what, x)?;
    }
    Ok(())
}

/// `W = (mu s^T - (A B^T - Z)) / lambda`, and `L^-1 W R^-1` with what the solver clipped taken off.
struct Dual<'a> {
    white: &'a White<'a>,
    terms: &'a Terms<'a>,
    witness: &'a Witness<'a>,
}

impl Dual<'_> {
    /// `left diag(e)` and `right`.
    fn clip(&self) -> (Mat, Mat) {
        match self.witness.clip {
            None => (Mat::zeros(self.witness.a.rows(), 0), Mat::zeros(self.witness.b.rows(), 0)),
            Some((left, right, excess)) => {
                (by_rows(left.rows(), left.cols(), |i, out| (0..out.len()).for_each(|k| out[k] = left[(i, k)] * excess[k])), right.clone())
            }
        }
    }

    /// The bound, how it was proven, the norm, what was taken off for rounding.
    fn bound(&self, norm2: f64, seed: u64) -> (f64, BoundProof, f64, f64) {
        let trivial = (0.0, BoundProof::Trivial, 1.0, 0.0);
        let (m, n) = (self.witness.a.rows(), self.witness.b.rows());
        let side = m.max(n);
        let found = if side <= DENSE { self.cholesky() } else { self.lanczos(seed) };
        let Some((norm, proof)) = found else { return trivial };
        let price2 = self.terms.price * self.terms.price;
        let bases = (defect(self.terms.rows) + defect(self.terms.columns)) / price2;
        let norm = norm * (1.0 + 10.0 * bases) + self.rounding(norm2);
        let (value, rounding) = self.value(norm2);
        let bound = (value - rounding) / norm.max(1.0);
        if bound > 0.0 && bound.is_finite() { (bound, proof, norm, rounding) } else { trivial }
    }

    /// What products with the point may be wrong by.
    fn rounding(&self, norm2: f64) -> f64 {
        let w = self.witness;
        let measure = dot(&self.white.measure, &self.white.measure).sqrt();
        let size = dot(w.mu, w.mu).sqrt() * measure
            + dot(w.a.as_slice(), w.a.as_slice()).sqrt() * dot(w.b.as_slice(), w.b.as_slice()).sqrt()
            + norm2.sqrt();
        let prices =
            (1.0 + self.terms.rows.cols() as f64) * (1.0 + self.terms.columns.cols() as f64) / (self.terms.price * self.terms.price);
        let terms = w.a.rows().max(w.b.rows()) + w.a.cols() + 64;
        terms as f64 * f64::EPSILON * prices * size / self.terms.lambda
    }

    fn cholesky(&self) -> Option<(f64, BoundProof)> {
        let w = self.witness;
        let n = w.b.rows();
        let inverse = 1.0 / self.terms.price;
        let plain = by_rows(w.a.rows(), n, |i, row| {
            self.white.row(i, row);
            for j in 0..n {
                row[j] = (w.mu[i] * self.white.measure[j] - dot(w.a.row(i), w.b.row(j)) + row[j]) / self.terms.lambda;
            }
        });
        let left_done = stretched(self.terms.rows, &plain, inverse);
        let point = stretched(self.terms.columns, &left_done.transposed(), inverse).transposed();
        let (left, right) = self.clip();
        let point = by_rows(point.rows(), n, |i, row| (0..n).for_each(|j| row[j] = point[(i, j)] - dot(left.row(i), right.row(j))));
        let square = gram(&point)?;
        let d = point.rows().max(n) as f64;
        let trace: f64 = (0..square.rows()).map(|i| square[(i, i)]).sum();
        let square_of = |excess: f64| f64::powi(1.0 + excess, 2);
        let holds = |excess: f64| positive_definite(&square, square_of(excess));
        let (mut low, mut high) = (0.0, 1e-8);
        while !holds(high) {
            (low, high) = (high, 10.0 * high);
            if high > MOST_EXCESS {
                return None;
            }
        }
        // Close in, so that what is proven here is hardly more than what anybody could prove: only the rest is slack for an honest claim.
        while high > SHARP && high > 1.15 * low {
            let middle = if low > 0.0 { (low * high).sqrt() } else { 0.1 * high };
            if holds(middle) { high = middle } else { low = middle }
        }
        let rho2 = square_of(high);
        Some(((rho2 + (d + 2.0) * f64::EPSILON * (d * rho2 + trace)).sqrt(), BoundProof::Cholesky))
    }

    /// Lanczos on `M^T M`, M the point without what was clipped, every vector kept orthogonal to all before it.
    fn lanczos(&self, seed: u64) -> Option<(f64, BoundProof)> {
        let w = self.witness;
        let (n, inverse) = (w.b.rows(), 1.0 / self.terms.price);
        let (left, right) = self.clip();
        let lambda = self.terms.lambda;
        let times = |x: &Mat| {
            let y = stretched(self.terms.columns, x, inverse);
            let (zy, all, low) = (self.white.times(&y), column_sums(&y, Some(&self.white.measure)), product(w.a, &cross(w.b, &y, None)));
            let out = by_rows(w.a.rows(), x.cols(), |i, o| {
                (0..o.len()).for_each(|k| o[k] = (w.mu[i] * all[k] - low[(i, k)] + zy[(i, k)]) / lambda)
            });
            let (out, clip) = (stretched(self.terms.rows, &out, inverse), product(&left, &cross(&right, x, None)));
            by_rows(out.rows(), x.cols(), |i, o| (0..o.len()).for_each(|k| o[k] = out[(i, k)] - clip[(i, k)]))
        };
        let back = |y: &Mat| {
            let x = stretched(self.terms.rows, y, inverse);
            let (zx, all, low) = (self.white.transposed_times(&x), column_sums(&x, Some(w.mu)), product(w.b, &cross(w.a, &x, None)));
            let out = by_rows(n, y.cols(), |j, o| {
                (0..o.len()).for_each(|k| o[k] = (self.white.measure[j] * all[k] - low[(j, k)] + zx[(j, k)]) / lambda)
            });
            let (out, clip) = (stretched(self.terms.columns, &out, inverse), product(&right, &cross(&left, y, None)));
            by_rows(n, y.cols(), |j, o| (0..o.len()).for_each(|k| o[k] = out[(j, k)] - clip[(j, k)]))
        };
        let steps = LANCZOS.0.min(LANCZOS_ROOM / n).max(2);
        let loss = lanczos_loss(n, steps, LANCZOS.1);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(0x7768_6974));
        let mut vector = Mat::from_fn(n, 1, |_, _| StandardNormal.sample(&mut rng));
        let (mut basis, mut diagonal, mut beside_it) = (Vec::<Vec<f64>>::new(), Vec::new(), Vec::new());
        for _ in 0..steps {
            let length = column_norms(&vector)[0];
            if length <= NO_MORE * diagonal.first().copied().unwrap_or(0.0f64).max(f64::MIN_POSITIVE) {
                break;
            }
            if !basis.is_empty() {
                beside_it.push(length);
            }
            vector.as_mut_slice().iter_mut().for_each(|x| *x /= length);
            basis.push(vector.as_slice().to_vec());
            let mut next = back(&times(&vector));
            diagonal.push(dot(next.as_slice(), vector.as_slice()));
            for q in basis.iter().chain(&basis) {
                let inner = sum(n, |j| q[j] * next[(j, 0)]);
                next.as_mut_slice().iter_mut().zip(q).for_each(|(x, q)| *x -= inner * q);
            }
            vector = next;
        }
        let k = diagonal.len();
        let small = Mat::from_fn(k, k, |i, j| match i.abs_diff(j) {
            0 => diagonal[i],
            1 => beside_it[i.min(j)],
            _ => 0.0,
        });
        let largest = eigen(&small)?.0.last().copied().unwrap_or(0.0).max(0.0);
        (loss < 1.0).then(|| ((largest / (1.0 - loss)).sqrt(), BoundProof::Lanczos { failure_probability: LANCZOS.1 }))
    }

    /// `sum_i nu_i t_i + 1/2 ||Z||^2 - 1/2 sum_ij max(t_ij, 0)^2` with `T = A B^T + lambda L left diag(e) (R right)^T + (nu - mu) s^T` and the nu that makes `sum_j s_j max(t_ij, 0)` the total of row i.
    fn value(&self, norm2: f64) -> (f64, f64) {
        let w = self.witness;
        let (n, price, lambda) = (w.b.rows(), self.terms.price, self.terms.lambda);
        let (left, right) = self.clip();
        let (left, right) = (stretched(self.terms.rows, &left, price), stretched(self.terms.columns, &right, price));
        let scaled = by_rows(left.rows(), left.cols(), |i, out| (0..out.len()).for_each(|k| out[k] = lambda * left[(i, k)]));
        let (f, h) = (beside(&[w.a, &scaled]), beside(&[w.b, &right]));
        let length_of_h = dot(h.as_slice(), h.as_slice()).sqrt();
        let measure = dot(&self.white.measure, &self.white.measure).sqrt();
        let parts: Vec<(f64, f64)> = (0..w.a.rows())
            .into_par_iter()
            .map(|i| {
                let row: Vec<f64> = (0..n).map(|j| dot(f.row(i), h.row(j))).collect();
                let tau = weighted_level(&row, &self.white.measure, self.white.totals[i]);
                let square: f64 = row.iter().zip(&self.white.measure).map(|(t, s)| (t - tau * s).max(0.0).powi(2)).sum();
                let nu = w.mu[i] - tau;
                let inexact = dot(f.row(i), f.row(i)).sqrt() * length_of_h + tau.abs() * measure;
                let size = (nu.abs() + w.mu[i].abs()) * self.white.totals[i] + 0.5 * square + (dot(&row, &row).sqrt() + inexact) * inexact;
                (nu * self.white.totals[i] - 0.5 * square, size)
            })
            .collect();
        let (value, size) = parts.iter().fold((0.5 * norm2, 0.5 * norm2), |a, b| (a.0 + b.0, a.1 + b.1));
        let terms = 2 * n.max(w.a.rows()) + f.cols() + self.terms.rows.cols() + self.terms.columns.cols() + 64;
        (value, terms as f64 * f64::EPSILON * size)
    }
}

/// The tau with `sum_j s_j max(t_j - tau s_j, 0) = total`: entries enter in the order of `t_j / s_j`.
fn weighted_level(t: &[f64], s: &[f64], total: f64) -> f64 {
    let mut order: Vec<usize> = (0..t.len()).collect();
    order.sort_by(|&i, &j| (t[j] / s[j]).total_cmp(&(t[i] / s[i])));
    let (mut sum, mut square, mut tau) = (0.0, 0.0, f64::NEG_INFINITY);
    for j in order {
        sum += s[j] * t[j];
        square += s[j] * s[j];
        let candidate = (sum - total) / square;
        if candidate >= t[j] / s[j] {
            break;
        }
        tau = candidate;
    }
    tau
}

/// The best answer with one meta-state: E, F and what its atom costs. Projected steps on a convex function of F alone.
fn one_metastate(white: &White, terms: &Terms) -> (Mat, Mat, f64) {
    let n = white.measure.len();
    let e = Mat::from_fn(white.totals.len(), 1, |i, _| white.totals[i]);
    let cost = priced_norms(terms.rows, terms.price, &e)[0];
    let curvature: f64 = dot(e.as_slice(), e.as_slice());
    let ze = white.transposed_times(&e);
    let scale = dot(&white.measure, &white.measure);
    let mut f = Mat::from_fn(n, 1, |j, _| white.measure[j] / scale);
    for _ in 0..ONE {
        let length = priced_norms(terms.columns, terms.price, &f)[0];
        let ridge = terms.lambda * cost / length;
        // R^2 f at the present f: the norm's square lies below its tangent plus the whole distance squared.
        let spared = stretched(terms.columns, &f, terms.price * terms.price);
        let free: Vec<f64> = (0..n).map(|j| (ze[(j, 0)] + ridge * (f[(j, 0)] - spared[(j, 0)])) / (curvature + ridge)).collect();
        let tau = weighted_level(&free, &white.measure, 1.0);
        let next = Mat::from_fn(n, 1, |j, _| (free[j] - tau * white.measure[j]).max(0.0));
        let moved = (0..n).map(|j| (next[(j, 0)] - f[(j, 0)]).abs()).fold(0.0, f64::max);
        f = next;
        if moved <= ARRIVED {
            break;
        }
    }
    let length = priced_norms(terms.columns, terms.price, &f)[0];
    (e, f, cost * length)
}

/// The largest singular value of Z off the directions, by power steps: at most the true one.
fn noise(white: &White, terms: &Terms, seed: u64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(0x6e6f_6973));
    let off = |q: &Mat, x: &Mat| stretched(q, x, 0.0);
    let mut x = off(terms.columns, &Mat::from_fn(white.measure.len(), 1, |_, _| StandardNormal.sample(&mut rng)));
    let mut value = 0.0;
    for _ in 0..POWER {
        let length = column_norms(&x)[0];
        if length <= 0.0 {
            return 0.0;
        }
        x.as_mut_slice().iter_mut().for_each(|x| *x /= length);
        let y = off(terms.rows, &white.times(&x));
        value = column_norms(&y)[0];
        x = off(terms.columns, &white.transposed_times(&y));
    }
    value
}
