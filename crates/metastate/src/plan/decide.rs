//! The decision problem on the meta-states, solved.

use super::log::Pairs;
use crate::error::{Error, Result};
use crate::linalg::{Mat, small, thin};

/// An action must be better by this, relative to the largest value, to be taken: rounding must not make a policy change for ever.
const BETTER: f64 = 1e-12;
/// Policies that are tried at most; a dozen is usual.
const MOST_ROUNDS: usize = 1000;

/// A controlled chain `P_a = U_a V^T` with its rewards.
///
/// The example of [`solve`](Decisions::solve) finds the best policy of one.
#[derive(Debug, Clone, Copy)]
pub struct Decisions<'a> {
    /// Which pairs of state and action there are.
    pub pairs: &'a Pairs,
    /// The state of each row of V.
    pub reached: &'a [u32],
    /// Memberships, one row a pair.
    pub u: &'a Mat,
    /// Profiles, one row a state that is reached.
    pub v: &'a Mat,
    /// The reward of each pair.
    pub rewards: &'a [f64],
    /// Pairs that a policy may take.
    pub allowed: &'a [bool],
}

/// A policy with its values in the fitted model.
///
/// See the example of [`Decisions::solve`].
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is paid from the next step on where a step leads into each meta-state, `w`.
    pub worth: Vec<f64>,
    /// Value of each pair, `r + gamma U w`.
    pub q: Vec<f64>,
    /// The pair that each state takes; none where it has no allowed one.
    pub choice: Vec<Option<usize>>,
    /// Value of each state; zero where it has no allowed pair: nothing is known to follow.
    pub value: Vec<f64>,
    /// Policies that were evaluated.
    pub rounds: usize,
    /// By how much `w` is at most off the fixed point, in the largest entry.
    pub off: f64,
}

impl Decisions<'_> {
    /// Checks sizes and discount.
    fn check(&self, discount: f64) -> Result<()> {
        let (m, n) = (self.pairs.len(), self.reached.len());
        let sizes = [
            ("U of the plan", self.u.rows(), m),
            ("V of the plan", self.v.rows(), n),
            ("the meta-states of V", self.v.cols(), self.u.cols()),
            ("the rewards of the plan", self.rewards.len(), m),
            ("the list of allowed pairs", self.allowed.len(), m),
        ];
        if let Some((what, found, expected)) = sizes.into_iter().find(|(_, found, expected)| found != expected) {
            return Err(Error::SizeMismatch { what, expected, found });
        }
        if let Some(s) = self.reached.iter().find(|s| **s as usize >= self.pairs.states()) {
            return Err(Error::IndexOutOfRange { what: "state", index: u64::from(*s), len: self.pairs.states() });
        }
        if let Some(row) = self.rewards.iter().position(|r| !r.is_finite()) {
            return Err(Error::NotFinite { what: "the rewards of the plan", row, column: 0, value: self.rewards[row] });
        }
        if !(0.0..1.0).contains(&discount) {
            return Err(Error::Setting {
                name: "the discount",
                value: discount.to_string(),
                allowed: "it must be at least 0 and below 1, such as 0.95: what is paid n steps ahead counts discount^n",
            });
        }
        Ok(())
    }

    /// The best policy of the model, by policy iteration: each policy is evaluated exactly by one system of s equations.
    ///
    /// ```
    /// use metastate::Mat;
    /// use metastate::plan::{Decisions, Pairs};
    ///
    /// // Two states, two actions (stay, go); being paid 1 for staying in the second.
    /// let pairs = Pairs::new(vec![0, 0, 1, 1], vec![0, 1, 0, 1], 2, 2)?;
    /// let u = Mat::from_vec(4, 2, vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0])?;
    /// let v = Mat::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
    /// let decisions = Decisions { pairs: &pairs, reached: &[0, 1], u: &u, v: &v, rewards: &[0.0, 0.0, 1.0, 0.0], allowed: &[true; 4] };
    /// let plan = decisions.solve(0.5)?;
    /// assert_eq!(plan.choice, [Some(1), Some(2)]);
    /// assert!((plan.value[1] - 2.0).abs() < 1e-12 && (plan.value[0] - 1.0).abs() < 1e-12);
    /// # Ok::<(), metastate::Error>(())
    /// ```
    pub fn solve(&self, discount: f64) -> Result<Plan> {
        self.check(discount)?;
        let mut q = self.rewards.to_vec();
        let mut choice: Vec<Option<usize>> = self.best(&q, None);
        let mut rounds = 0;
        loop {
            rounds += 1;
            let worth = self.evaluate(&choice, discount);
            q = self.q(&worth, discount);
            let better = self.best(&q, Some(&choice));
            if better == choice || rounds == MOST_ROUNDS {
                break;
            }
            choice = better;
        }
        // Once more by the equation itself: it contracts, so its last step bounds what is left.
        let value = |choice: &[Option<usize>], q: &[f64]| -> Vec<f64> { choice.iter().map(|c| c.map_or(0.0, |p| q[p])).collect() };
        let before = self.worth_of(&value(&self.best(&q, None), &q));
        let q = self.q(&before, discount);
        let worth = self.worth_of(&value(&self.best(&q, None), &q));
        let step = worth.iter().zip(&before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let q = self.q(&worth, discount);
        let choice = self.best(&q, None);
        Ok(Plan { value: value(&choice, &q), off: step * discount / (1.0 - discount), worth, q, choice, rounds })
    }

    /// `r + gamma U w`.
    fn q(&self, worth: &[f64], discount: f64) -> Vec<f64> {
        (0..self.pairs.len()).map(|p| self.rewards[p] + discount * thin::dot(self.u.row(p), worth)).collect()
    }

    /// The best allowed pair of each state; of several equally good ones the first. The pair that is taken now stays unless another is better by more than rounding.
    fn best(&self, q: &[f64], now: Option<&[Option<usize>]>) -> Vec<Option<usize>> {
        let size = q.iter().fold(0.0f64, |a, x| a.max(x.abs()));
        let of = |s: usize| {
            let allowed = self.pairs.of(s).filter(|p| self.allowed[*p]);
            let best = allowed.fold(None, |best: Option<usize>, p| match best {
                Some(b) if q[b] >= q[p] => Some(b),
                _ => Some(p),
            })?;
            match now.and_then(|now| now[s]) {
                Some(old) if q[old] >= q[best] - BETTER * size => Some(old),
                _ => Some(best),
            }
        };
        (0..self.pairs.states()).map(of).collect()
    }

    /// `V^T value`.
    fn worth_of(&self, value: &[f64]) -> Vec<f64> {
        let mut worth = vec![0.0; self.v.cols()];
        for (j, s) in self.reached.iter().enumerate() {
            worth.iter_mut().zip(self.v.row(j)).for_each(|(w, v)| *w += v * value[*s as usize]);
        }
        worth
    }

    /// `w = V^T (r + gamma U w)` on the pairs chosen: s equations. `I - gamma K` is diagonally dominant, so it has an inverse.
    fn evaluate(&self, choice: &[Option<usize>], discount: f64) -> Vec<f64> {
        let s = self.v.cols();
        let paid: Vec<f64> = choice.iter().map(|c| c.map_or(0.0, |p| self.rewards[p])).collect();
        let right = self.worth_of(&paid);
        let mut system = self.chain_of(choice);
        for k in 0..s {
            system.row_mut(k).iter_mut().for_each(|x| *x *= -discount);
            system[(k, k)] += 1.0;
        }
        match small::inverse(&system) {
            Some(inverse) => (0..s).map(|k| thin::dot(inverse.row(k), &right)).collect(),
            None => right,
        }
    }

    /// `V^T U` on the pairs chosen: the chain of the meta-states under a policy. Rows may sum to less than one, where states end.
    pub(super) fn chain_of(&self, choice: &[Option<usize>]) -> Mat {
        let s = self.v.cols();
        let mut chain = Mat::zeros(s, s);
        for (j, state) in self.reached.iter().enumerate() {
            let Some(p) = choice[*state as usize] else { continue };
            for k in 0..s {
                let share = self.v[(j, k)];
                chain.row_mut(k).iter_mut().zip(self.u.row(p)).for_each(|(x, u)| *x += share * u);
            }
        }
        chain
    }
}

/// `K_a = V^T U_a`, one matrix an action, rows divided by the share of each meta-state's arrivals where the action was tried; and those shares (zero: the row is empty).
#[must_use]
pub fn latent_of_actions(pairs: &Pairs, reached: &[u32], u: &Mat, v: &Mat) -> Vec<(Mat, Vec<f64>)> {
    let s = v.cols();
    let of = |a: u32| {
        let (mut chain, mut tried) = (Mat::zeros(s, s), vec![0.0; s]);
        for (j, state) in reached.iter().enumerate() {
            let Some(p) = pairs.position(*state, a) else { continue };
            for k in 0..s {
                let share = v[(j, k)];
                tried[k] += share;
                chain.row_mut(k).iter_mut().zip(u.row(p)).for_each(|(x, u)| *x += share * u);
            }
        }
        (0..s).filter(|k| tried[*k] > 0.0).for_each(|k| chain.row_mut(k).iter_mut().for_each(|x| *x /= tried[k]));
        (chain, tried)
    };
    (0..pairs.actions() as u32).map(of).collect()
}
