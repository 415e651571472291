//! The likelihood refit: the aggregate Markov model on the counts, fitted by expectation and maximisation in two blocks.
//!
//! Each transition i -> j passes through a hidden meta-state k with probability `u_ik v_jk / p_ij`, `p_ij = sum_k u_ik v_jk`. A pass is
//!
//! `u_ik <- u_ik sum_j (n_ij / p_ij) v_jk + c a_k`, rows divided by their sums, then, with the new U,
//! `v_jk <- v_jk sum_i (n_ij / p_ij) u_ik + c d a_k m_j`, columns divided by theirs (d the number of rows).
//!
//! c is the strength of the prior: every state is given c further transitions that leave by meta-state k with share `a_k` and arrive at
//! j by the marginal law `m_j`, whatever the state. That is a Dirichlet prior on each row of U and each column of V, and it
//! shrinks sparse rows towards the model of rank one. Each block raises
//!
//! `L(U, V) = sum n_ij ln p_ij + c sum_ik a_k ln u_ik + c d sum_jk a_k m_j ln v_jk`.
//!
//! Passes are extrapolated in pairs (SQUAREM, Varadhan and Roland 2008). An extrapolated point is kept only if L there is no lower
//! than at the last plain point that was measured, so L never falls. A pass costs `O(nnz s)`, allocates nothing, and gives the same
//! bits for any number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::kernel::{Padded, gather};
use super::observed::Observed;
use super::table::{MOST_COLUMNS, Table, Tables};
use crate::error::{Error, Result};
use crate::linalg::thin::BLOCK;
use crate::linalg::{Mat, thin, wide};
use crate::solve::problem::Factors;

/// Share of the start that is replaced by `a` and `m`: a zero would stay zero for ever.
const LIFT: f64 = 1e-3;
/// An extrapolated entry keeps at least this share of the plain one, for the same reason.
const KEEP: f64 = 0.05;
/// Factor between the longest extrapolations that are tried.
const LONGER: f64 = 4.0;

/// `a_k` of the prior is at least this part of an even share.
const LEAST_MASS: f64 = 1e-3;

/// Choices of the likelihood refit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LikelihoodSettings {
    /// c: transitions that the prior adds to every state.
    pub prior: f64,
    /// Passes at most.
    pub max_passes: usize,
    /// It ends when two plain passes gain less than this in L a transition.
    pub tolerance: f64,
    /// Extrapolate between passes.
    pub accelerate: bool,
}

impl Default for LikelihoodSettings {
    fn default() -> Self {
        LikelihoodSettings { prior: 0.1, max_passes: 500, tolerance: 1e-8, accelerate: true }
    }
}

/// What the likelihood refit gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Likelihood {
    /// U and V.
    pub factors: Factors,
    /// `a_k`, one a column of the factors: the shares of the prior, which come from the start.
    pub prior_shares: Vec<f64>,
    /// `sum n_ij ln p_ij / n` at the end.
    pub log_likelihood: f64,
    /// L / n at the end: with the prior.
    pub penalised: f64,
    /// Passes over the data.
    pub passes: usize,
    /// Whether the tolerance was met.
    pub converged: bool,
    /// L / n at each point that was kept and measured; it never falls.
    pub history: Vec<f64>,
}

/// Fits from the start given, at its rank.
pub fn likelihood(observed: &Observed, start: &Factors, settings: &LikelihoodSettings) -> Result<Likelihood> {
    likelihood_watched(observed, start, settings, |_, _| true)
}

/// The same; `watch(passes, L / n)` is told of every pass and may end it by returning false.
pub fn likelihood_watched(
    observed: &Observed,
    start: &Factors,
    settings: &LikelihoodSettings,
    mut watch: impl FnMut(usize, f64) -> bool,
) -> Result<Likelihood> {
    check(observed, start, settings)?;
    let mut pass = Pass::new(observed, start, settings.prior);
    let mut now = pass.lifted(start);
    let (mut first, mut second) = (now.clone(), now.clone());
    let mut history: Vec<f64> = Vec::new();
    let (mut passes, mut converged, mut longest) = (0, false, 1.0);
    // Whether `now` was extrapolated; `second` then holds the plain point to go back to.
    let mut extrapolated = false;
    while passes < settings.max_passes {
        // first = the point where this pair of passes begins.
        first.copy_from(&now);
        let value = pass.run(&mut now);
        passes += 1;
        if extrapolated && history.last().is_some_and(|last| value < *last) {
            now.copy_from(&second);
            longest = (longest / LONGER).max(1.0);
            extrapolated = false;
            continue;
        }
        if extrapolated {
            longest *= LONGER;
        }
        extrapolated = false;
        history.push(value);
        if !watch(passes, value) {
            break;
        }
        if !settings.accelerate {
            if gained_little(&history, 1, settings.tolerance) {
                converged = true;
                break;
            }
            continue;
        }
        if passes >= settings.max_passes {
            break;
        }
        second.copy_from(&now);
        let value = pass.run(&mut second);
        passes += 1;
        history.push(value);
        if !watch(passes, value) {
            now.copy_from(&second);
            break;
        }
        if gained_little(&history, 1, settings.tolerance) {
            now.copy_from(&second);
            converged = true;
            break;
        }
        // now = first passed once, second = passed twice; `now` becomes the extrapolated point.
        extrapolated = pass.extrapolate(&first, &mut now, &second, longest);
        if !extrapolated {
            now.copy_from(&second);
        }
    }
    if extrapolated {
        // Never measured: the plain point is the safe one.
        now.copy_from(&second);
    }
    let (log_likelihood, prior) = pass.value(&now);
    let penalised = (log_likelihood + prior) / observed.total;
    history.push(penalised);
    let factors = Factors { u: now.u.to_mat(), v: now.v.to_mat() };
    let prior_shares = pass.mass[..start.rank()].to_vec();
    Ok(Likelihood { factors, prior_shares, log_likelihood: log_likelihood / observed.total, penalised, passes, converged, history })
}

impl Likelihood {
    /// The columns in another order, and with them their shares of the prior.
    pub(super) fn reorder(&mut self, order: &[usize]) {
        self.factors = Factors { u: self.factors.u.select_columns(order), v: self.factors.v.select_columns(order) };
        self.prior_shares = order.iter().map(|&k| self.prior_shares[k]).collect();
    }
}

fn gained_little(history: &[f64], back: usize, tolerance: f64) -> bool {
    let n = history.len();
    n > back && history[n - 1] - history[n - 1 - back] < tolerance
}

fn check(observed: &Observed, start: &Factors, settings: &LikelihoodSettings) -> Result<()> {
    for (what, m, rows) in [("U of the start", &start.u, observed.rows()), ("V of the start", &start.v, observed.cols())] {
        if m.rows() != rows {
            return Err(Error::SizeMismatch { what, expected: rows, found: m.rows() });
        }
        if m.cols() != start.rank() || m.cols() == 0 {
            return Err(Error::SizeMismatch { what, expected: start.rank().max(1), found: m.cols() });
        }
        if let Some((row, column, value)) = m.first_not_finite() {
            return Err(Error::NotFinite { what, row, column, value });
        }
    }
    let wrong = |name, value: f64, allowed| Err(Error::Setting { name, value: value.to_string(), allowed });
    if !(settings.prior >= 0.0 && settings.prior.is_finite()) {
        return wrong("the strength of the prior", settings.prior, "it must be zero or a positive number of transitions a state");
    }
    if settings.tolerance.is_nan() {
        return wrong("the tolerance of the refit", settings.tolerance, "it must be a number");
    }
    Ok(())
}

/// `a_k`: the mass of each meta-state at the start, none below [`LEAST_MASS`].
pub(super) fn prior_mass(observed: &Observed, start: &Factors) -> Vec<f64> {
    let mut mass = start.mass(&observed.share);
    let least = LEAST_MASS / start.rank() as f64;
    mass.iter_mut().for_each(|m| *m = m.max(least));
    let sum: f64 = mass.iter().sum();
    mass.iter_mut().for_each(|m| *m /= sum);
    mass
}

/// U and V, padded.
#[derive(Debug, Clone)]
struct PaddedFactors {
    u: Padded,
    v: Padded,
}

impl PaddedFactors {
    fn copy_from(&mut self, other: &PaddedFactors) {
        self.u.data.copy_from_slice(&other.u.data);
        self.v.data.copy_from_slice(&other.v.data);
    }
}

/// A table of counts, the other factor as it reads it, and the factor by which probabilities are scaled.
#[derive(Debug, Clone, Copy)]
struct Tabled<'a> {
    table: &'a Table,
    other: &'a [f32],
    scale: f64,
}

impl Tabled<'_> {
    /// [`Table::gather`] for a row of U, with the logarithms of the probabilities as they are.
    #[inline(always)]
    fn logarithms<S: pulp::Simd>(&self, simd: S, i: usize, own: &[f64], into: &mut [f64], observed: &Observed) -> f64 {
        self.table.gather(simd, i, own, self.other, into, true) - observed.share[i] * observed.total * self.scale.ln()
    }
}

/// What every row is measured against: the counts, as a table where a fit goes by tables, and the prior with the mass of each meta-state.
#[derive(Debug, Clone, Copy)]
struct Evidence<'a> {
    observed: &'a Observed,
    table: Option<Tabled<'a>>,
    mass: &'a [f64],
    prior: f64,
}

/// What a pass needs besides the point: the prior, and room for sums by block.
struct Pass<'a> {
    observed: &'a Observed,
    prior: f64,
    /// `a_k`, padded.
    mass: Vec<f64>,
    /// One log-likelihood and one prior term a block of U, ...
    u_values: Vec<(f64, f64)>,
    /// ... and one prior term a block of V.
    v_values: Vec<f64>,
    /// One row of column sums a block of V.
    block_sums: Vec<f64>,
    sums: Vec<f64>,
    /// The counts as tables, where a fit goes by them, and room for the other factor as they read it.
    tables: Option<&'a Tables>,
    profiles: Vec<f32>,
}

impl<'a> Pass<'a> {
    fn new(observed: &'a Observed, start: &Factors, prior: f64) -> Self {
        let width = start.rank().next_multiple_of(4);
        let (u_blocks, v_blocks) = (observed.rows().div_ceil(BLOCK), observed.cols().div_ceil(BLOCK));
        let mut mass = prior_mass(observed, start);
        mass.resize(width, 0.0);
        Pass {
            observed,
            prior,
            mass,
            u_values: vec![(0.0, 0.0); u_blocks],
            v_values: vec![0.0; v_blocks],
            block_sums: vec![0.0; v_blocks * width],
            sums: vec![0.0; width],
            tables: observed.tables.as_ref().filter(|_| start.rank() <= MOST_COLUMNS),
            profiles: Vec::new(),
        }
    }

    /// The start, every entry positive.
    fn lifted(&self, start: &Factors) -> PaddedFactors {
        let (m, n, s) = (self.observed.rows(), self.observed.cols(), start.rank());
        let column_sums: Vec<f64> = thin::column_sums(&start.v).iter().map(|x| if *x > 0.0 { *x } else { 1.0 }).collect();
        let u = Mat::from_fn(m, s, |i, k| (1.0 - LIFT) * start.u[(i, k)].max(0.0) + LIFT * self.mass[k]);
        let v = Mat::from_fn(n, s, |j, k| (1.0 - LIFT) * start.v[(j, k)].max(0.0) / column_sums[k] + LIFT * self.observed.marginal[j]);
        let mut point = PaddedFactors { u: Padded::from(&u), v: Padded::from(&v) };
        self.normalise_rows(&mut point.u);
        let mut sums = vec![0.0; point.v.width];
        let mut block_sums = self.block_sums.clone();
        sum_columns(&point.v, &mut block_sums, &mut sums);
        divide_columns(&mut point.v, &sums);
        point
    }

    fn normalise_rows(&self, u: &mut Padded) {
        let width = u.width;
        u.data.par_chunks_mut(BLOCK * width).for_each(|rows| {
            for row in rows.chunks_exact_mut(width) {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|x| *x /= sum);
            }
        });
    }

    /// One pass in place; L / n where it began.
    fn run(&mut self, x: &mut PaddedFactors) -> f64 {
        self.update_u(x);
        let (log_likelihood, prior_u) = self.u_values.iter().fold((0.0, 0.0), |(a, b), (l, p)| (a + l, b + p));
        self.update_v(x);
        let prior_v: f64 = self.v_values.iter().sum();
        (log_likelihood + self.prior * (prior_u + self.observed.rows() as f64 * prior_v)) / self.observed.total
    }

    fn update_u(&mut self, x: &mut PaddedFactors) {
        let (observed, width) = (self.observed, x.u.width);
        let v = &x.v;
        if let Some(tables) = self.tables {
            tables.by_row.profiles(v, observed.cols() as f64, &mut self.profiles);
        }
        let table = self.tables.map(|t| Tabled { table: &t.by_row, other: &self.profiles, scale: observed.cols() as f64 });
        let evidence = Evidence { observed, table, mass: &self.mass, prior: self.prior };
        let blocks = x.u.data.par_chunks_mut(BLOCK * width).zip(self.u_values.par_iter_mut()).enumerate();
        blocks.for_each(|(block, (rows, value))| *value = update_rows_of_u(rows, block * BLOCK, v, evidence));
    }

    fn update_v(&mut self, x: &mut PaddedFactors) {
        let (observed, width) = (self.observed, x.v.width);
        let u = &x.u;
        if let Some(tables) = self.tables {
            tables.by_column.profiles(u, 1.0, &mut self.profiles);
        }
        let table = self.tables.map(|t| Tabled { table: &t.by_column, other: &self.profiles, scale: observed.cols() as f64 });
        let evidence = Evidence { observed, table, mass: &self.mass, prior: self.prior };
        let blocks = x.v.data.par_chunks_mut(BLOCK * width).zip(self.v_values.par_iter_mut()).enumerate();
        blocks.for_each(|(block, (rows, value))| *value = update_rows_of_v(rows, block * BLOCK, u, evidence));
        sum_columns(&x.v, &mut self.block_sums, &mut self.sums);
        divide_columns(&mut x.v, &self.sums);
    }

    /// `sum n ln p` and the prior's part of L.
    fn value(&mut self, x: &PaddedFactors) -> (f64, f64) {
        let scale = self.observed.cols() as f64;
        if let Some(tables) = self.tables {
            tables.by_row.profiles(&x.v, scale, &mut self.profiles);
        }
        let table = self.tables.map(|t| Tabled { table: &t.by_row, other: &self.profiles, scale });
        let evidence = Evidence { observed: self.observed, table, mass: &self.mass, prior: self.prior };
        let part = |rows| value_of_rows(rows, x, evidence);
        thin::sum_blocks(self.observed.rows().max(self.observed.cols()), 64 * x.u.width, part, |a, b| *a = (a.0 + b.0, a.1 + b.1))
            .unwrap_or((0.0, 0.0))
    }

    /// `x0 - 2 alpha r + alpha^2 w` with `r = x1 - x0`, `w = (x2 - x1) - r`, `alpha = -|r| / |w|`, made feasible, into `x1`. False when
    /// there is nothing to extrapolate.
    fn extrapolate(&mut self, x0: &PaddedFactors, x1: &mut PaddedFactors, x2: &PaddedFactors, longest: f64) -> bool {
        let lengths = |a: &Padded, b: &Padded, c: &Padded, weight: &(dyn Fn(usize) -> f64 + Sync)| {
            let width = a.width;
            let part = |range: std::ops::Range<usize>| {
                let (mut r2, mut w2, mut size2) = (0.0, 0.0, 0.0);
                for i in range {
                    let (mut row_r, mut row_w, mut row_size) = (0.0, 0.0, 0.0);
                    for k in i * width..(i + 1) * width {
                        let r = b.data[k] - a.data[k];
                        let w = c.data[k] - b.data[k] - r;
                        row_r += r * r;
                        row_w += w * w;
                        row_size += c.data[k] * c.data[k];
                    }
                    let scale = weight(i);
                    (r2, w2, size2) = (r2 + scale * row_r, w2 + scale * row_w, size2 + scale * row_size);
                }
                (r2, w2, size2)
            };
            thin::sum_blocks(a.data.len() / width, 8 * width, part, |x, y| *x = (x.0 + y.0, x.1 + y.1, x.2 + y.2))
                .unwrap_or((0.0, 0.0, 1.0))
        };
        // Both blocks in their own units, rows of U by how much of the data they carry.
        let on_u = lengths(&x0.u, &x1.u, &x2.u, &|i| self.observed.share[i]);
        let on_v = lengths(&x0.v, &x1.v, &x2.v, &|_| 1.0);
        let r2 = on_u.0 / on_u.2 + on_v.0 / on_v.2;
        let w2 = on_u.1 / on_u.2 + on_v.1 / on_v.2;
        let alpha = (r2 / w2).sqrt().min(longest.max(1.0) * LONGER);
        if !(alpha > 1.0 && alpha.is_finite()) {
            return false;
        }
        for (a, b, c) in [(&x0.u, &mut x1.u, &x2.u), (&x0.v, &mut x1.v, &x2.v)] {
            let chunk = BLOCK * a.width;
            b.data.par_chunks_mut(chunk).zip(a.data.par_chunks(chunk)).zip(c.data.par_chunks(chunk)).for_each(|((b, a), c)| {
                for ((b, a), c) in b.iter_mut().zip(a).zip(c) {
                    let r = *b - a;
                    let w = c - *b - r;
                    *b = (a + 2.0 * alpha * r + alpha * alpha * w).max(KEEP * c);
                }
            });
        }
        self.normalise_rows(&mut x1.u);
        sum_columns(&x1.v, &mut self.block_sums, &mut self.sums);
        divide_columns(&mut x1.v, &self.sums);
        true
    }
}

wide! {
    /// The rows of U from `first` on, in place; `sum n ln p` and `sum a_k ln u_ik` where they began.
    fn update_rows_of_u<'w, S, simd>(
        rows: &'w mut [f64],
        first: usize,
        v: &'w Padded,
        evidence: Evidence<'w>,
    ) -> (f64, f64) {
        let Evidence { observed, table, mass, prior } = evidence;
        let (mut log, mut prior_value) = (0.0, 0.0);
        let mut room = ShortRow::default();
        let gathered = room.of(v.width);
        for (k, row) in rows.chunks_exact_mut(v.width).enumerate() {
            log += match table {
                Some(table) => table.logarithms(simd, first + k, row, gathered, observed),
                None => gather(simd, &observed.by_row, first + k, row, &v.data, gathered, true),
            };
            if prior > 0.0 {
                prior_value += row[..v.cols].iter().zip(mass).map(|(u, a)| a * u.max(f64::MIN_POSITIVE).ln()).sum::<f64>();
            }
            let mut sum = 0.0;
            for ((g, u), a) in gathered.iter_mut().zip(row.iter()).zip(mass) {
                *g = *u * *g + prior * a;
                sum += *g;
            }
            // A state that was never left says nothing of itself and stays as it is.
            if sum > 0.0 && sum.is_finite() {
                row.iter_mut().zip(gathered.iter()).for_each(|(u, g)| *u = g / sum);
            }
        }
        (log, prior_value)
    }
}

wide! {
    /// The rows of V from `first` on, in place, columns not divided yet; `sum a_k m_j ln v_jk` where they began.
    fn update_rows_of_v<'w, S, simd>(
        rows: &'w mut [f64],
        first: usize,
        u: &'w Padded,
        evidence: Evidence<'w>,
    ) -> f64 {
        let Evidence { observed, table, mass, prior } = evidence;
        let mut prior_value = 0.0;
        let mut room = ShortRow::default();
        let gathered = room.of(u.width);
        let strength = prior * observed.rows() as f64;
        for (k, row) in rows.chunks_exact_mut(u.width).enumerate() {
            let j = first + k;
            match table {
                Some(Tabled { table, other, scale }) => {
                    let mut own = [0.0; MOST_COLUMNS];
                    own.iter_mut().zip(row.iter()).for_each(|(x, v)| *x = scale * v);
                    table.gather(simd, j, &own, other, gathered, false);
                    gathered.iter_mut().for_each(|x| *x *= scale);
                }
                None => {
                    gather(simd, &observed.by_column, j, row, &u.data, gathered, false);
                }
            }
            let m = observed.marginal[j];
            if prior > 0.0 {
                prior_value += m * row[..u.cols].iter().zip(mass).map(|(v, a)| a * v.max(f64::MIN_POSITIVE).ln()).sum::<f64>();
            }
            for ((v, g), a) in row.iter_mut().zip(gathered.iter()).zip(mass) {
                *v = *v * g + strength * a * m;
            }
        }
        prior_value
    }
}

wide! {
    /// `sum n ln p` and the prior's part of L, over some rows of both factors; the shorter of the two adds nothing beyond its end.
    fn value_of_rows<'w, S, simd>(
        rows: Range<usize>,
        x: &'w PaddedFactors,
        evidence: Evidence<'w>,
    ) -> (f64, f64) {
        let Evidence { observed, table, mass, prior } = evidence;
        let (width, cols) = (x.u.width, x.u.cols);
        let (mut log, mut prior_value) = (0.0, 0.0);
        let mut room = ShortRow::default();
        let ignored = room.of(width);
        for i in rows {
            let span = i * width..(i + 1) * width;
            let (u, v) = (x.u.data.get(span.clone()), x.v.data.get(span));
            if let Some(u) = u {
                log += match table {
                    Some(table) => table.logarithms(simd, i, u, ignored, observed),
                    None => gather(simd, &observed.by_row, i, u, &x.v.data, ignored, true),
                };
            }
            if prior > 0.0 {
                let ln = |row: Option<&[f64]>, k: usize| row.map_or(0.0, |row| row[k].max(f64::MIN_POSITIVE).ln());
                let weight = observed.rows() as f64 * observed.marginal.get(i).copied().unwrap_or(0.0);
                for k in 0..cols {
                    prior_value += mass[k] * (ln(u, k) + weight * ln(v, k));
                }
            }
        }
        (log, prior * prior_value)
    }
}

/// A short row on the stack, or on the heap beyond 64 numbers.
struct ShortRow {
    short: [f64; 64],
    long: Vec<f64>,
}

impl Default for ShortRow {
    fn default() -> Self {
        ShortRow { short: [0.0; 64], long: Vec::new() }
    }
}

impl ShortRow {
    fn of(&mut self, width: usize) -> &mut [f64] {
        if width <= self.short.len() {
            return &mut self.short[..width];
        }
        self.long.resize(width, 0.0);
        &mut self.long
    }
}

fn sum_columns(v: &Padded, block_sums: &mut [f64], sums: &mut [f64]) {
    let width = v.width;
    v.data.par_chunks(BLOCK * width).zip(block_sums.par_chunks_mut(width)).for_each(|(rows, sums)| {
        sums.fill(0.0);
        rows.chunks_exact(width).for_each(|row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += x));
    });
    sums.fill(0.0);
    block_sums.chunks_exact(width).for_each(|part| sums.iter_mut().zip(part).for_each(|(s, x)| *s += x));
}

fn divide_columns(v: &mut Padded, sums: &[f64]) {
    let width = v.width;
    v.data.par_chunks_mut(BLOCK * width).for_each(|rows| {
        rows.chunks_exact_mut(width).for_each(|row| row.iter_mut().zip(sums).for_each(|(x, s)| *x = if *s > 0.0 { *x / s } else { *x }));
    });
}
