//! How far the meta-states are determined by X: anchor states, and the room each profile has while the others stay.
//!
//! `X = U V^T = (U Q)(V Q^-T)^T` for every Q with `Q 1 = 1`; what restricts Q is that both factors stay non-negative. Let only the
//! j-th profile move, to `V b / (1^T b)` with `b = e_j + sum_(k != j) r_k e_k`. The memberships become `u_ij (1 + sum r)` in j and
//! `u_ik - u_ij r_k` elsewhere, so X stays as it is exactly for the r with
//!
//! - `r_k <= min_i u_ik / u_ij` over the states with `u_ij > 0`: zero as soon as j has an anchor state, and
//! - `V b >= 0`, one inequality a state: with an exclusive destination of k, `r_k >= 0`.
//!
//! That is a polytope in `s - 1` dimensions. Linear programs measure it along every axis, with the inequalities that matter found
//! as they are violated. Moves of several profiles at once are looked for in [`super::largest_rotation`].

use microlp::{ComparisonOp, OptimizationDirection};
use rayon::prelude::*;

use super::LatentChain;
use crate::error::Result;
use crate::linalg::{Mat, thin};

/// A state with at least this membership is an anchor of its meta-state, a destination with at least this share of a row of V is
/// exclusive.
const PURE: f64 = 0.99;
/// Below this, in units of a row's largest entry, an inequality counts as kept.
const SLACK: f64 = 1e-11;
/// Profiles nearer to each other than this are the same.
const SAME: f64 = 1e-9;
// Inequalities added after each solve, and solves allowed for one program.
const ADDED: usize = 8;
const ROUNDS: usize = 200;

/// What is known about the identity of one meta-state.
///
/// See the example of [`identify`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Identity {
    /// Largest membership of any state.
    pub purest: f64,
    /// States that act as this meta-state only (membership at least 0.99), purest first, ties by weight.
    pub anchors: Vec<usize>,
    /// States that only this meta-state leads to (at least 0.99 of their row of V), likeliest first.
    pub exclusive: Vec<usize>,
    /// Its share `sum_i xi_i u_ij`,
    pub share: f64,
    /// and how small
    pub share_low: f64,
    /// or large it may be in another factorisation of the same X in which only this profile differs.
    pub share_high: f64,
    /// Largest total variation distance between this profile and one that could stand in its place: 0 = unique. NaN when a linear
    /// program was not solved.
    pub ambiguity: f64,
}

/// One [`Identity`] a meta-state; `weights` is the law of the states (xi).
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::{LatentChain, identify};
///
/// // The chain of the example of `LatentChain`.
/// let u = Mat::from_vec(3, 2, vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
/// let v = Mat::from_vec(3, 2, vec![0.4, 0.1, 0.4, 0.1, 0.2, 0.8])?;
/// let chain = LatentChain::new(&u, &v)?;
/// let found = identify(&chain, &[0.25, 0.25, 0.5])?;
/// assert_eq!(found[0].anchors, [0, 1]); // both act as meta-state 0 only
/// assert!(found[0].ambiguity > 0.1); // yet its profile is not determined: no state is reached through meta-state 1 alone
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn identify(chain: &LatentChain, weights: &[f64]) -> Result<Vec<Identity>> {
    let shares = chain.memberships_of(weights)?;
    let one = |j: usize| {
        // Where no state acts as j, any profile could stand in its place.
        let room = Room::around(chain, j).map_or([1.0; 3], |room| room.measured());
        let [low, high, ambiguity] = room;
        let column = |m: &Mat, i: usize| m[(i, j)];
        let total = |i: usize| chain.v.row(i).iter().sum::<f64>();
        let mut anchors: Vec<usize> = (0..chain.states()).filter(|&i| column(chain.u, i) >= PURE).collect();
        anchors.sort_by(|&a, &b| column(chain.u, b).total_cmp(&column(chain.u, a)).then(weights[b].total_cmp(&weights[a])).then(a.cmp(&b)));
        let mut exclusive: Vec<usize> =
            (0..chain.states()).filter(|&i| column(chain.v, i) > 0.0 && column(chain.v, i) >= PURE * total(i)).collect();
        exclusive.sort_by(|&a, &b| column(chain.v, b).total_cmp(&column(chain.v, a)).then(a.cmp(&b)));
        Identity {
            purest: (0..chain.states()).map(|i| column(chain.u, i)).fold(0.0, f64::max),
            anchors,
            exclusive,
            share: shares[j],
            share_low: shares[j] * low,
            share_high: shares[j] * high,
            ambiguity,
        }
    };
    Ok((0..chain.rank()).into_par_iter().map(one).collect())
}

/// The polytope of the r that leave X as it is.
struct Room<'a> {
    chain: &'a LatentChain<'a>,
    j: usize,
    /// The other meta-states: r_k belongs to `others[k]`.
    others: Vec<usize>,
    /// `low <= r <= high` follows from the inequalities.
    low: Vec<f64>,
    high: Vec<f64>,
    /// States whose inequality does not follow from the box.
    rows: Vec<usize>,
}

impl<'a> Room<'a> {
    /// `None` when no state acts as j at all: its profile plays no part in X.
    fn around(chain: &'a LatentChain<'a>, j: usize) -> Option<Self> {
        let (d, u, v) = (chain.states(), chain.u, chain.v);
        let others: Vec<usize> = (0..chain.rank()).filter(|&k| k != j).collect();
        let mut high = vec![f64::INFINITY; others.len()];
        for i in (0..d).filter(|&i| u[(i, j)] > 0.0) {
            high.iter_mut().zip(&others).for_each(|(h, &k)| *h = h.min(u[(i, k)] / u[(i, j)]));
        }
        if high.iter().any(|h| h.is_infinite()) {
            return None;
        }
        // r_k is smallest where all others are largest.
        let mut low = vec![f64::NEG_INFINITY; others.len()];
        for i in 0..d {
            for (n, &k) in others.iter().enumerate().filter(|(_, k)| v[(i, **k)] > 0.0) {
                let rest: f64 = others.iter().zip(&high).filter(|(l, _)| **l != k).map(|(&l, h)| v[(i, l)] * h).sum();
                low[n] = low[n].max(-(v[(i, j)] + rest) / v[(i, k)]);
            }
        }
        let mut room = Room { chain, j, others, low, high, rows: Vec::new() };
        room.rows = (0..d).filter(|&i| room.value(i, &room.low) < 0.0).collect();
        Some(room)
    }

    /// `v_ij + sum_k v_ik r_k`.
    fn value(&self, i: usize, r: &[f64]) -> f64 {
        let row = self.chain.v.row(i);
        row[self.j] + self.others.iter().zip(r).map(|(&k, r)| row[k] * r).sum::<f64>()
    }

    fn scale(&self, i: usize) -> f64 {
        self.chain.v.row(i).iter().fold(0.0, |m: f64, x| m.max(*x))
    }

    /// Smallest and largest `1 + sum r` (the factor on the share), and the largest distance of profiles.
    fn measured(&self) -> [f64; 3] {
        let n = self.others.len();
        if (0..n).all(|k| self.low[k] == 0.0 && self.high[k] == 0.0) {
            return [1.0, 1.0, 0.0];
        }
        let mut active = Vec::new();
        let (mut low, mut high, mut distance): (f64, f64, f64) = (1.0, 1.0, 0.0);
        // Both ways along every axis and along the sum of all.
        for axis in 0..=n {
            let weight = |k: usize| if axis == n || axis == k { 1.0 } else { 0.0 };
            for direction in [OptimizationDirection::Maximize, OptimizationDirection::Minimize] {
                let Some(r) = self.farthest(direction, weight, &mut active) else { return [f64::NAN; 3] };
                let factor = 1.0 + r.iter().sum::<f64>();
                (low, high) = (low.min(factor), high.max(factor));
                distance = distance.max(self.distance(&r, factor));
            }
        }
        [low, high, if distance < SAME { 0.0 } else { distance }]
    }

    /// `1/2 || V b / (1^T b) - V_j ||_1`.
    fn distance(&self, r: &[f64], factor: f64) -> f64 {
        0.5 * thin::sum_over_rows(self.chain.states(), 2 * r.len(), |i| (self.value(i, r) / factor - self.chain.v[(i, self.j)]).abs())
    }

    /// An extreme point, pulled back towards r = 0 (which is always allowed) until every inequality holds.
    fn farthest(&self, direction: OptimizationDirection, weight: impl Fn(usize) -> f64, active: &mut Vec<usize>) -> Option<Vec<f64>> {
        for _ in 0..ROUNDS {
            let mut program = microlp::Problem::new(direction);
            let variables: Vec<_> =
                (0..self.others.len()).map(|k| program.add_var(weight(k), (self.low[k].min(self.high[k]), self.high[k]))).collect();
            for &i in active.iter() {
                let (row, scale) = (self.chain.v.row(i), self.scale(i));
                let terms: Vec<_> = variables.iter().zip(&self.others).map(|(x, &k)| (*x, row[k] / scale)).collect();
                program.add_constraint(terms.as_slice(), ComparisonOp::Ge, -row[self.j] / scale);
            }
            let solution = program.solve().ok()?.into_solution().ok()?;
            let mut r: Vec<f64> = variables.iter().map(|x| solution.var_value(*x)).collect();
            let mut broken: Vec<(f64, usize)> = self
                .rows
                .iter()
                .map(|&i| (self.value(i, &r) / self.scale(i), i))
                .filter(|(gap, i)| *gap < -SLACK && !active.contains(i))
                .collect();
            if broken.is_empty() {
                self.pull_back(&mut r);
                return Some(r);
            }
            broken.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            active.extend(broken.iter().take(ADDED).map(|(_, i)| *i));
        }
        None
    }

    /// What the program keeps up to its tolerance is made to hold.
    fn pull_back(&self, r: &mut [f64]) {
        let mut share = 1.0f64;
        for (k, r) in r.iter().enumerate().filter(|(k, r)| **r > self.high[*k]) {
            share = share.min(self.high[k] / r);
        }
        for &i in &self.rows {
            let here = self.chain.v[(i, self.j)];
            let change = self.value(i, r) - here;
            if here + change < 0.0 {
                share = share.min(here / -change);
            }
        }
        r.iter_mut().for_each(|x| *x *= share);
    }
}
