//! Which lag to take: implied timescales against the lag, and one sentence of advice.

use super::parts::{self, Scale, interval};
use super::project::{self, Basis, Moments};
use super::{Classes, Kinetics, Observations, Uncertain, short};
use crate::aggregate::latent::{CheckEntry, Mode, modes, wilson};
use crate::chain::empirical::transition_matrix;
use crate::error::Result;
use crate::linalg::{Csr, Mat, thin};
use crate::solve::bootstrap::Resample;

/// The slowest timescale at one lag, in frames, with its interval where there is one.
///
/// See the example of [`advice`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LagPoint {
    /// The lag in frames.
    pub lag: f64,
    /// The slowest timescale in frames.
    pub timescale: f64,
    /// Its interval; equal ends where none is known.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A number between the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)] // the names say it
pub struct Between {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Data counted at one lag: the projection on the memberships alone, no chain next to it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LagLook {
    /// The lag in frames.
    pub lag: f64,
    /// Finite timescales in frames, the slowest first.
    pub timescales: Vec<Between>,
    /// For each meta-state, the probability of being in it again one lag later.
    pub stays: Vec<Between>,
}

/// Processes that are looked at, at most.
const PROCESSES: usize = 6;

impl LagLook {
    /// The slowest timescale; none where every one is infinite.
    #[must_use]
    pub fn slowest(&self) -> Option<LagPoint> {
        self.timescales.first().map(|t| LagPoint { lag: self.lag, timescale: t.value, low: t.low, high: t.high })
    }
}

/// Timescales and stays at a lag, with their intervals. Stays are projected on the functions of the fit itself, `P^4 U` of `own`: the Chapman-Kolmogorov check compares the same meta-states at all lags.
pub fn look_at(u: &Mat, own: &Observations, data: &Observations, lag: f64, uncertain: &Uncertain, confidence: f64) -> Result<LagLook> {
    let classes = Classes::of(data.p);
    let basis = Basis::new(u, data.p, data.departures, &classes);
    let unit = classes.closed_by_size().len();
    let times = |k: &Mat| -> Vec<f64> {
        let finite = |m: Mode| Some(m.timescale).filter(|t| t.is_finite());
        modes(k, unit).into_iter().filter_map(finite).take(PROCESSES).collect()
    };
    let projections = |basis: &Basis| -> Result<(Mat, Vec<Mat>)> {
        let whole = project::projected(&Moments::of_operator(basis, data.p, data.departures));
        Ok((whole, parts::moments(uncertain, basis, false)?.iter().map(project::projected).collect()))
    };
    let (whole, lighter) = projections(&basis)?;
    let lighter_times: Vec<Vec<f64>> = lighter.iter().map(times).collect();
    let (same, same_lighter) = projections(&Basis::new(u, own.p, own.departures, &Classes::of(own.p)))?;
    let between = |value: f64, list: &mut dyn Iterator<Item = f64>, scale: Scale, unit: f64| {
        let (low, high) = interval(value, list, scale, confidence);
        Between { value: unit * value, low: unit * low, high: unit * high }
    };
    let timescales = times(&whole)
        .into_iter()
        .enumerate()
        .map(|(k, t)| between(t, &mut lighter_times.iter().map(|list| list.get(k).copied().unwrap_or(f64::NAN)), Scale::Times, lag))
        .collect();
    let stay = |k: &Mat, j: usize| k[(j, j)].clamp(0.0, 1.0);
    let stays = (0..u.cols()).map(|j| between(stay(&same, j), &mut same_lighter.iter().map(|k| stay(k, j)), Scale::Shares, 1.0)).collect();
    Ok(LagLook { lag, timescales, stays })
}

/// Counts at one lag, in the order of the memberships' states.
#[derive(Debug, Clone, Copy)]
pub struct LaggedCounts<'a> {
    /// All of them.
    pub counts: &'a Csr,
    /// The same in blocks, for bands; none without.
    pub blocks: &'a [Csr],
    /// The lag in frames.
    pub lag: f64,
    /// How many counted pairs share the information of one.
    pub overlap: f64,
}

impl LaggedCounts<'_> {
    /// The kinetics of these counts at given memberships; intervals only where there are blocks.
    pub fn kinetics(&self, u: &Mat, intervals: bool) -> Result<Kinetics> {
        let p = transition_matrix(self.counts)?;
        let departures = self.counts.row_sums();
        let data = Observations { p: &p, departures: &departures, overlap: self.overlap, counted: true };
        let parts = Uncertain { data: Resample::Blocks(self.blocks), seed: 0 };
        Kinetics::estimate(u, &data, false, Some(&parts).filter(|_| self.blocks.len() > 1 && intervals))
    }
}

impl Kinetics {
    /// The Chapman-Kolmogorov check: the n-th power of a chain beside the chain that was estimated at n lags, with Wilson's interval of the latter.
    #[must_use]
    pub fn chapman_kolmogorov(&self, u: &Mat, chain: &Mat, data: &LaggedCounts, steps: u64) -> Vec<CheckEntry> {
        let s = self.rank();
        let departures = data.counts.row_sums();
        let visits = thin::fold_rows(u, |sums, i, row| sums.iter_mut().zip(row).for_each(|(v, u)| *v += departures[i] * u));
        let power = power(chain, steps);
        let mut out = Vec::new();
        for (from, to) in (0..s).flat_map(|a| (0..s).map(move |b| (a, b))).filter(|(a, _)| visits[*a] > 0.0) {
            let counted = self.projected[(from, to)].clamp(0.0, 1.0);
            let (low, high) = wilson(counted, (visits[from] / data.overlap).max(1.0));
            out.push(CheckEntry { from, to, predicted: power[(from, to)], counted, low, high, transitions: visits[from] });
        }
        out
    }
}

/// `K^n` by repeated squaring, rows divided by their sums so that rounding does not grow.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::power;
///
/// let chain = Mat::from_vec(2, 2, vec![0.5, 0.5, 0.25, 0.75])?;
/// assert_eq!(power(&chain, 2).row(0), [0.375, 0.625]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn power(chain: &Mat, mut n: u64) -> Mat {
    let s = chain.rows();
    let mut out = Mat::from_fn(s, s, |i, j| f64::from(u8::from(i == j)));
    let mut square = chain.clone();
    let product = |a: &Mat, b: &Mat| {
        let mut c = Mat::default();
        thin::product(a, b, &mut c);
        for i in 0..s {
            let sum: f64 = c.row(i).iter().sum();
            c.row_mut(i).iter_mut().for_each(|x| *x /= sum);
        }
        c
    };
    while n > 0 {
        if n & 1 == 1 {
            out = product(&out, &square);
        }
        n >>= 1;
        if n > 0 {
            square = product(&square, &square);
        }
    }
    out
}

/// A timescale that grows by less than this share up to the longest lag has levelled off.
const LEVEL: f64 = 0.15;

/// What lag to take, in one sentence. The shortest lag from which on the slowest timescale stays within 15 % of the ones at all longer lags (or within their intervals) is long enough; a lag beyond the
/// slowest timescale itself says nothing any more.
///
/// ```
/// use metastate::kinetics::{LagPoint, advice};
///
/// let at = |lag: f64, timescale: f64| LagPoint { lag, timescale, low: timescale, high: timescale };
/// let points = [at(1.0, 40.0), at(5.0, 98.0), at(10.0, 100.0), at(20.0, 101.0)];
/// assert!(advice(&points, 1.0).unwrap().starts_with("lag 1 is too short"));
/// assert!(advice(&points, 5.0).unwrap().starts_with("lag 5 is long enough"));
/// ```
#[must_use]
pub fn advice(points: &[LagPoint], lag: f64) -> Option<String> {
    let mut useful: Vec<LagPoint> = points.iter().copied().filter(|p| p.timescale.is_finite() && p.timescale > 0.0).collect();
    useful.sort_by(|a, b| a.lag.total_cmp(&b.lag));
    let known = useful.iter().filter(|p| p.timescale > p.lag).count();
    if useful.len() < 2 {
        return None;
    }
    if known == 0 {
        return Some(format!("lag {lag}: every timescale is shorter than its lag, so there is nothing slow to see; take a shorter lag"));
    }
    let level =
        |a: &LagPoint, b: &LagPoint| (b.timescale / a.timescale - 1.0).abs() <= LEVEL || (b.low <= a.timescale && a.timescale <= b.high);
    let settled = (0..useful.len()).find(|&k| useful[k + 1..].iter().filter(|p| p.timescale > p.lag).all(|p| level(&useful[k], p)));
    let last = useful[useful.len() - 1];
    match settled.map(|k| useful[k]) {
        Some(p) if p.lag <= lag => Some(format!(
            "lag {lag} is long enough: the slowest timescale, {} frames, has levelled off from lag {} on",
            short(p.timescale),
            p.lag
        )),
        Some(p) if p.lag < last.lag => Some(format!(
            "lag {lag} is too short: the slowest timescale grows with the lag and levels off from lag {} on, at {} frames; fit again with that lag",
            p.lag,
            short(p.timescale)
        )),
        _ => Some(format!(
            "no lag up to {} is long enough: the slowest timescale still grows, to {} frames; try longer lags, or finer states",
            last.lag,
            short(last.timescale)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(times: &[(f64, f64)]) -> Vec<LagPoint> {
        times.iter().map(|&(lag, t)| LagPoint { lag, timescale: t, low: t, high: t }).collect()
    }

    #[test]
    fn the_advice_names_the_lag_where_the_curve_is_level() {
        let rising = points(&[(1.0, 50.0), (2.0, 80.0), (5.0, 195.0), (10.0, 205.0), (20.0, 210.0)]);
        assert!(advice(&rising, 1.0).unwrap().contains("levels off from lag 5 on"));
        assert!(advice(&rising, 5.0).unwrap().starts_with("lag 5 is long enough"));
        let never = points(&[(1.0, 10.0), (10.0, 40.0), (20.0, 90.0)]);
        assert!(advice(&never, 1.0).unwrap().starts_with("no lag up to 20"));
        let fast = points(&[(1.0, 0.3), (10.0, 2.0)]);
        assert!(advice(&fast, 1.0).unwrap().contains("nothing slow"));
    }
}
