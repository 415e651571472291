//! A controlled chain with a known answer: many states, a few actions, a few hidden meta-states; and logs of it.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::AliasTable;
use crate::counts::StateIndex;
use crate::error::{Error, Result};
use crate::linalg::{Mat, thin};
use crate::plan::{Log, Pairs, Records};

/// Memberships are powers of exponentials: mostly of one meta-state.
const SHARP: f64 = 3.0;
/// Rewards of states are powers of uniform numbers, so that few of them are large.
const RARE: f64 = 3.0;

/// `P_a = U_a V^T` with what is paid on arrival.
///
/// See the example of [`controlled`].
#[derive(Debug, Clone)]
pub struct Controlled {
    /// All pairs of state and action.
    pub pairs: Pairs,
    /// Memberships, one row a pair.
    pub u: Mat,
    /// Profiles, one row a state.
    pub v: Mat,
    /// What is paid for arriving at each state.
    pub paid: Vec<f64>,
}

/// Draws a controlled chain: memberships by a power of exponentials, profiles uniform on the simplex times a power, rewards on arrival between 0 and 1.
///
/// ```
/// use metastate::simulate::controlled;
///
/// let world = controlled(20, 3, 2, 1)?;
/// let log = world.tries(5, 0.0, 1)?;
/// assert_eq!(log.records().len(), 20 * 3 * 5); // each of the 60 pairs of state and action five times
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn controlled(states: usize, actions: usize, rank: usize, seed: u64) -> Result<Controlled> {
    let wrong = |name, value: usize, allowed| Err(Error::Setting { name, value: value.to_string(), allowed });
    if !(2..=1 << 24).contains(&states) {
        return wrong("the number of states", states, "it must be between 2 and 16777216");
    }
    if actions == 0 || actions > 1 << 12 {
        return wrong("the number of actions", actions, "it must be between 1 and 4096");
    }
    if rank == 0 || rank > states.min(1000) {
        return wrong("the number of hidden states", rank, "it must be at least 1, at most 1000 and at most the number of states");
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = |n: usize, power: f64| -> Vec<f64> {
        let x: Vec<f64> = (0..n)
            .map(|_| {
                let e: f64 = Exp1.sample(&mut rng);
                e.powf(power)
            })
            .collect();
        let sum: f64 = x.iter().sum();
        x.into_iter().map(|x| x / sum).collect()
    };
    let m = states * actions;
    let mut u = Mat::zeros(m, rank);
    (0..m).for_each(|p| u.row_mut(p).copy_from_slice(&drawn(rank, SHARP)));
    let mut v = Mat::zeros(states, rank);
    for k in 0..rank {
        let column = drawn(states, SHARP);
        (0..states).for_each(|j| v[(j, k)] = column[j]);
    }
    let paid = (0..states).map(|_| rng.random::<f64>().powf(RARE)).collect();
    let state = (0..m).map(|p| (p / actions) as u32).collect();
    let action = (0..m).map(|p| (p % actions) as u32).collect();
    Ok(Controlled { pairs: Pairs::new(state, action, states, actions)?, u, v, paid })
}

impl Controlled {
    /// The mean reward of each pair, `U V^T paid`.
    #[must_use]
    pub fn rewards(&self) -> Vec<f64> {
        let mut theta = vec![0.0; self.v.cols()];
        (0..self.v.rows()).for_each(|j| theta.iter_mut().zip(self.v.row(j)).for_each(|(t, v)| *t += v * self.paid[j]));
        (0..self.u.rows()).map(|p| thin::dot(self.u.row(p), &theta)).collect()
    }

    /// A log in which every pair is tried so many times, independently. `noise` is the standard deviation of the noise in the rewards.
    pub fn tries(&self, each: usize, noise: f64, seed: u64) -> Result<Log> {
        let mut walk = ControlledWalk::new(self, noise, seed)?;
        let mut records = Records { reward: Some(Vec::new()), ..Records::default() };
        for p in 0..self.pairs.len() {
            for _ in 0..each {
                walk.record(p, &mut records);
            }
        }
        self.log(records)
    }

    /// A log of episodes that begin in a uniformly random state and in which actions are taken at random.
    pub fn episodes(&self, episodes: usize, length: usize, noise: f64, seed: u64) -> Result<Log> {
        let mut walk = ControlledWalk::new(self, noise, seed)?;
        let mut records = Records { reward: Some(Vec::new()), episodes: Some(Vec::new()), ..Records::default() };
        for e in 0..episodes {
            if let Some(starts) = &mut records.episodes {
                starts.push(e * length);
            }
            let mut state = walk.rng.random_range(0..self.pairs.states());
            for _ in 0..length {
                let pair = self.pairs.of(state).start + walk.rng.random_range(0..self.pairs.actions());
                state = walk.record(pair, &mut records);
            }
        }
        self.log(records)
    }

    fn log(&self, records: Records) -> Result<Log> {
        Log::new(StateIndex::numbered(self.pairs.states()), StateIndex::numbered(self.pairs.actions()), records)
    }
}

/// Draws records.
struct ControlledWalk<'a> {
    chain: &'a Controlled,
    through: Vec<AliasTable>,
    profiles: Vec<AliasTable>,
    noise: f64,
    rng: Xoshiro256PlusPlus,
}

impl<'a> ControlledWalk<'a> {
    fn new(chain: &'a Controlled, noise: f64, seed: u64) -> Result<Self> {
        let table = |weights: &[f64], name: &'static str| {
            let allowed = "it must be a distribution: finite, non-negative, not all zero";
            AliasTable::new(weights).ok_or(Error::Setting { name, value: "no distribution".into(), allowed })
        };
        if !(noise >= 0.0 && noise.is_finite()) {
            return Err(Error::Setting { name: "the noise of the rewards", value: noise.to_string(), allowed: "it must be zero or more" });
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        // Far from the numbers that drew the chain, even for the same seed.
        rng.long_jump();
        Ok(ControlledWalk {
            chain,
            through: (0..chain.u.rows()).map(|p| table(chain.u.row(p), "a row of U")).collect::<Result<_>>()?,
            profiles: (0..chain.v.cols()).map(|k| table(&chain.v.column(k), "a column of V")).collect::<Result<_>>()?,
            noise,
            rng,
        })
    }

    fn record(&mut self, pair: usize, records: &mut Records) -> usize {
        let k = self.through[pair].draw(&mut self.rng);
        let to = self.profiles[k as usize].draw(&mut self.rng);
        let shock: f64 = if self.noise > 0.0 { StandardNormal.sample(&mut self.rng) } else { 0.0 };
        records.from.push(self.chain.pairs.state[pair]);
        records.action.push(self.chain.pairs.action[pair]);
        records.to.push(to);
        if let Some(reward) = &mut records.reward {
            reward.push(self.chain.paid[to as usize] + self.noise * shock);
        }
        to as usize
    }
}
