//! From draws to intervals of memberships.
//!
//! What is meant: the membership of a state *in the meta-states as published*, that is, in the profiles V at hand. Endlessly many transitions out of state i
//! would tell its law `p_i`, and the memberships `argmax_u sum_j p_ij ln (V u)_j` with it: that is the **target**. (Which profiles are the right ones is another
//! question. `U V^T = (U Q)(V Q^-T)^T` for many Q, and no amount of data tells them apart: see `aggregate::latent::identify`.)
//!
//! How it is found: the likelihood of the state's own transitions, `l_i(u) = sum_j n_ij ln (V u)_j`, without the prior. The interval of `u_ik` holds all t for
//! which the best memberships with `u_ik = t` are behind the best of all by no more than half of a threshold. By Wilks' theorem 2.71 is right for 90 % far from the
//! borders and with V known; neither is so here. So the threshold is measured: in every draw the law of each state is known, hence the target, and hence how
//! far behind it is. By the size of the estimate, thresholds are chosen that let the stated share of the targets in.

use crate::linalg::{Mat, thin};
use crate::stats::quantile;

/// Memberships in a class, at least, and classes at most.
const CLASS: usize = 300;
const MOST_CLASSES: usize = 8;
/// No threshold is below this: half of a confidence of 0.68.
const LEAST: f64 = 0.5;
/// Steps of expectation and maximisation: to the best memberships of a row, to a target, and to the best with one of them fixed.
const TO_BEST: usize = 60;
const TO_TARGET: usize = 200;
const TO_FIXED: usize = 30;
/// Guesses on the way to an end, and how close to the threshold one may end.
const GUESSES: usize = 6;
const CLOSE: f64 = 0.02;
/// A guess goes at least this share of the way between the two nearest ones, and leaves as much.
const SHORTEST_WAY: f64 = 0.05;
/// A step that changes no membership by more than this is the last.
const STILL: f64 = 1e-7;
/// A probability below this counts as none.
const UNREACHED: f64 = 1e-200;
/// Share of the start that is spread evenly: what is zero would stay zero.
const LIFT: f64 = 1e-3;

/// One row of counts, or a law, against the profiles: destinations and how much goes there.
pub(super) struct StateCounts<'a> {
    pub ends: &'a [u32],
    pub counts: &'a [f64],
    pub v: &'a Mat,
}

impl StateCounts<'_> {
    /// `sum_j n_j ln (V u)_j`.
    fn value(&self, u: &[f64]) -> f64 {
        self.ends.iter().zip(self.counts).map(|(&j, n)| n * thin::dot(u, self.v.row(j as usize)).max(f64::MIN_POSITIVE).ln()).sum()
    }

    /// `u_k sum_j n_j v_jk / p_j`: what passes through each meta-state.
    fn through(&self, u: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (&j, n) in self.ends.iter().zip(self.counts) {
            let end = self.v.row(j as usize);
            let p = thin::dot(u, end);
            // A place that no meta-state leads to says nothing of them.
            let factor = if p > UNREACHED { n / p } else { 0.0 };
            out.iter_mut().zip(end).for_each(|(o, v)| *o += factor * v);
        }
        out.iter_mut().zip(u).for_each(|(o, u)| *o *= u);
    }

    /// The best memberships, from a start on, in so many steps.
    fn best(&self, start: &[f64], steps: usize) -> Vec<f64> {
        let mut u = lifted(start);
        let mut through = vec![0.0; u.len()];
        for _ in 0..steps {
            self.through(&u, &mut through);
            let sum: f64 = through.iter().sum();
            if sum <= 0.0 {
                break;
            }
            let mut moved: f64 = 0.0;
            u.iter_mut().zip(&through).for_each(|(u, t)| (moved, *u) = (moved.max((*u - t / sum).abs()), t / sum));
            if moved < STILL {
                break;
            }
        }
        u
    }

    /// The best memberships with `u_k = t`, from `u` on, so many steps.
    fn fix(&self, u: &mut [f64], k: usize, t: f64, steps: usize) {
        share_out(u, k, t);
        let mut through = vec![0.0; u.len()];
        for _ in 0..steps {
            self.through(u, &mut through);
            u.iter_mut().zip(&through).for_each(|(u, t)| *u = *t);
            share_out(u, k, t);
        }
    }

    /// Twice what the best memberships with `u_k = t` are behind `best`.
    fn behind(&self, best: &[f64], k: usize, t: f64) -> f64 {
        let mut u = lifted(best);
        self.fix(&mut u, k, t, TO_FIXED);
        2.0 * (self.value(best) - self.value(&u))
    }

    /// All t whose best memberships are behind by no more than the threshold.
    fn interval(&self, best: &[f64], k: usize, threshold: f64) -> (f64, f64) {
        let top = self.value(best);
        (self.end(best, k, top, threshold, 0.0), self.end(best, k, top, threshold, 1.0))
    }

    /// The end of the interval on the side of a border: the border itself, or where the threshold is passed. The square root of what is behind grows nearly in proportion to the
    /// distance, so that a few guesses along a line find it.
    fn end(&self, best: &[f64], k: usize, top: f64, threshold: f64, border: f64) -> f64 {
        let mut u = lifted(best);
        let mut behind = |t: f64| {
            self.fix(&mut u, k, t, TO_FIXED);
            (2.0 * (top - self.value(&u))).max(0.0).sqrt()
        };
        let allowed = threshold.sqrt();
        let (mut inside, mut outside) = ((best[k], 0.0), (border, behind(border)));
        if outside.1 <= allowed {
            return border;
        }
        for _ in 0..GUESSES {
            let share = ((allowed - inside.1) / (outside.1 - inside.1)).clamp(SHORTEST_WAY, 1.0 - SHORTEST_WAY);
            let t = inside.0 + share * (outside.0 - inside.0);
            let found = (t, behind(t));
            if found.1 <= allowed {
                inside = found
            } else {
                outside = found
            }
            if (found.1 - allowed).abs() <= CLOSE * allowed {
                break;
            }
        }
        // The last guess may lie on either side: the wider one is the safe one.
        outside.0
    }
}

fn lifted(u: &[f64]) -> Vec<f64> {
    let even = LIFT / u.len() as f64;
    u.iter().map(|u| (1.0 - LIFT) * u + even).collect()
}

/// `u_k = t`, the others in proportion.
fn share_out(u: &mut [f64], k: usize, t: f64) {
    let others: f64 = u.iter().enumerate().filter(|(l, _)| *l != k).map(|(_, u)| u).sum();
    let even = (1.0 - t) / (u.len() - 1) as f64;
    u.iter_mut().for_each(|u| *u = if others > 0.0 { *u * (1.0 - t) / others } else { even });
    u[k] = t;
}

/// One membership in one draw: the best value, and twice what its target is behind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub best: f64,
    pub behind: f64,
}

/// The memberships of one state in a draw, whose true law is known. The way to its target begins at the true memberships: those of the draw know its noise.
pub(super) fn seen(row: &StateCounts, law: &StateCounts, fitted: &[f64], truth: &[f64]) -> Vec<Seen> {
    let (best, target) = (row.best(fitted, TO_BEST), law.best(truth, TO_TARGET));
    (0..best.len()).map(|k| Seen { best: best[k], behind: row.behind(&best, k, target[k]) }).collect()
}

/// Thresholds by the size of the membership.
pub(super) struct Thresholds {
    /// Largest best value of each class, and its threshold.
    classes: Vec<(f64, f64)>,
}

impl Thresholds {
    pub fn of(mut seen: Vec<Seen>, confidence: f64) -> Self {
        seen.sort_by(|a, b| a.best.total_cmp(&b.best));
        let classes = (seen.len() / CLASS).clamp(1, MOST_CLASSES);
        let size = seen.len().div_ceil(classes).max(1);
        let threshold = |class: &[Seen]| {
            let mut behind: Vec<f64> = class.iter().map(|s| s.behind).collect();
            behind.sort_by(f64::total_cmp);
            (class[class.len() - 1].best, quantile(&behind, confidence).max(LEAST))
        };
        Thresholds { classes: seen.chunks(size).map(threshold).collect() }
    }

    fn at(&self, best: f64) -> f64 {
        self.classes.iter().find(|c| best <= c.0).or(self.classes.last()).map_or(LEAST, |c| c.1)
    }

    /// The intervals of a state's memberships. The published ones are always inside: the prior draws them away from the best.
    pub fn intervals(&self, row: &StateCounts, published: &[f64]) -> Vec<(f64, f64)> {
        if published.len() == 1 {
            return vec![(published[0], published[0])];
        }
        let best = row.best(published, TO_BEST);
        (0..best.len())
            .map(|k| {
                let (low, high) = row.interval(&best, k, self.at(best[k]));
                (low.min(published[k]), high.max(published[k]))
            })
            .collect()
    }
}
