//! Pairs of state and action that the log does not hold.
//!
//! What was never tried is not known. A policy does not use such pairs unless it is asked to guess; then a pair gets the mean of its neighbours: of states that are reached through the
//! same meta-states, under the same action. With `q_j(s)` the share of meta-state j in the arrivals at s, a meta-state has memberships and a reward under each action, the mean over
//! its states weighed by records and `q_j`, and the guess for (s, a) is their mean over `q(s)`.

use super::log::{Pairs, Tried};
use crate::error::Result;
use crate::linalg::Mat;

/// Pairs with the guessed ones among them.
///
/// See the example of [`with_untried`].
#[derive(Debug, Clone)]
pub struct Extended {
    /// All pairs, in order.
    pub pairs: Pairs,
    /// Memberships of each.
    pub u: Mat,
    /// Reward of each.
    pub rewards: Vec<f64>,
    /// Whether a pair was guessed.
    pub guessed: Vec<bool>,
}

/// Adds a guess for every pair that was not tried, at states where something was and under actions that were tried somewhere.
///
/// ```
/// use metastate::Mat;
/// use metastate::plan::with_untried;
/// use metastate::plan::{Log, Records};
/// use metastate::StateIndex;
///
/// // Of the four pairs of two states and two actions only two were tried.
/// let records = Records { from: vec![0, 1], action: vec![0, 1], to: vec![1, 0], reward: Some(vec![0.0, 1.0]), episodes: None };
/// let tried = Log::new(StateIndex::numbered(2), StateIndex::numbered(2), records)?.tried()?;
/// let identity = Mat::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
/// let all = with_untried(&tried, &identity, &identity, &[0.0, 1.0])?;
/// assert_eq!(all.guessed, [false, true, true, false]);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn with_untried(tried: &Tried, u: &Mat, v: &Mat, rewards: &[f64]) -> Result<Extended> {
    let (pairs, s) = (&tried.pairs, u.cols());
    let shares = arrivals_by_metastate(tried, u, v);
    // One row a meta-state and action: memberships and reward, then their weight.
    let width = s + 2;
    let mut sums = Mat::zeros(s * pairs.actions(), width);
    let mut of_action = Mat::zeros(pairs.actions(), width);
    for p in (0..pairs.len()).filter(|p| tried.records[*p] > 0.0) {
        let (state, a) = (pairs.state[p] as usize, pairs.action[p] as usize);
        let add = |row: &mut [f64], weight: f64| {
            row.iter_mut().zip(u.row(p)).for_each(|(x, u)| *x += weight * u);
            row[s] += weight * rewards[p];
            row[s + 1] += weight;
        };
        add(of_action.row_mut(a), tried.records[p]);
        for k in 0..s {
            add(sums.row_mut(a * s + k), tried.records[p] * shares[(state, k)]);
        }
    }
    let guess = |state: usize, a: usize| -> Option<Vec<f64>> {
        let mut row = vec![0.0; width];
        for k in 0..s {
            row.iter_mut().zip(sums.row(a * s + k)).for_each(|(x, y)| *x += shares[(state, k)] * y);
        }
        if row[s + 1] <= 0.0 {
            row.copy_from_slice(of_action.row(a));
        }
        let weight = row[s + 1];
        (weight > 0.0).then(|| row.iter().map(|x| x / weight).collect())
    };
    let (mut state_of, mut action_of, mut flat, mut paid, mut guessed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for state in 0..pairs.states() {
        let range = pairs.of(state);
        if range.clone().all(|p| tried.records[p] <= 0.0) {
            continue;
        }
        for a in 0..pairs.actions() {
            let known = pairs.position(state as u32, a as u32).filter(|p| tried.records[*p] > 0.0);
            let (row, reward) = match known {
                Some(p) => (u.row(p).to_vec(), rewards[p]),
                None => match guess(state, a) {
                    Some(row) => (row[..s].to_vec(), row[s]),
                    None => continue,
                },
            };
            state_of.push(state as u32);
            action_of.push(a as u32);
            flat.extend(row);
            paid.push(reward);
            guessed.push(known.is_none());
        }
    }
    let pairs = Pairs::new(state_of, action_of, pairs.states(), pairs.actions())?;
    Ok(Extended { u: Mat::from_vec(pairs.len(), s, flat)?, pairs, rewards: paid, guessed })
}

/// `q_j(s)`: through which meta-states each state is reached; evenly through all of them where it never is.
fn arrivals_by_metastate(tried: &Tried, u: &Mat, v: &Mat) -> Mat {
    let s = u.cols();
    let mut mass = vec![0.0; s];
    for p in 0..u.rows() {
        mass.iter_mut().zip(u.row(p)).for_each(|(m, u)| *m += tried.records[p] * u);
    }
    let mut shares = Mat::from_fn(tried.pairs.states(), s, |_, _| 1.0 / s as f64);
    for (j, state) in tried.reached.iter().enumerate() {
        let sum: f64 = (0..s).map(|k| mass[k] * v[(j, k)]).sum();
        if sum > 0.0 {
            (0..s).for_each(|k| shares[(*state as usize, k)] = mass[k] * v[(j, k)] / sum);
        }
    }
    shares
}
