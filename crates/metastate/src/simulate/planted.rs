//! The paper's test chains (section 6.1): `P* = U* V*^T` with factors drawn uniformly from simplices.

use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::AliasTable;
use crate::chain::{Chain, Given, StationaryOptions, stationary_law};
use crate::counts::{CountMode, Counts, StateIndex, TransitionCounter};
use crate::error::{Error, Result};
use crate::linalg::{LowRankOperator, Mat, thin};

/// Steps simulated before they are counted.
const PART: usize = 1 << 14;

/// A chain of nonnegative rank at most r, with its factors.
///
/// See the example of [`planted`].
#[derive(Debug, Clone, PartialEq)]
pub struct Planted {
    /// `U*`, `d x r`; rows sum to one.
    pub u: Mat,
    /// `V*`, `d x r`; columns sum to one.
    pub v: Mat,
    /// The stationary law of `U* V*^T`.
    pub xi: Vec<f64>,
}

/// Draws a chain with d states behind r hidden ones, as in the paper: the rows of U* and the columns of V* are independent and
/// uniform on their simplices (exponentials divided by their sum), and xi* is the stationary law.
///
/// ```
/// use metastate::simulate::planted;
///
/// let truth = planted(50, 3, 1)?;
/// assert_eq!((truth.states(), truth.rank()), (50, 3));
/// assert_eq!(truth.sample_counts(1000, 7)?.transitions(), 1000.0);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn planted(d: usize, r: usize, seed: u64) -> Result<Planted> {
    if d < 2 || u32::try_from(d).is_err() {
        return Err(Error::Setting { name: "the number of states", value: d.to_string(), allowed: "it must be between 2 and 2^32 - 1" });
    }
    if r == 0 || r > d {
        return Err(Error::Setting {
            name: "the number of hidden states",
            value: r.to_string(),
            allowed: "it must be at least 1 and at most the number of states",
        });
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut u = Mat::zeros(d, r);
    for i in 0..d {
        fill_uniform_on_simplex(u.row_mut(i), &mut rng);
    }
    let mut v = Mat::zeros(d, r);
    let mut column = vec![0.0; d];
    for k in 0..r {
        fill_uniform_on_simplex(&mut column, &mut rng);
        (0..d).for_each(|i| v[(i, k)] = column[i]);
    }
    let xi = stationary_law(&LowRankOperator::new(u.clone(), v.clone())?, &StationaryOptions::default()).xi;
    Ok(Planted { u, v, xi })
}

fn fill_uniform_on_simplex(x: &mut [f64], rng: &mut Xoshiro256PlusPlus) {
    x.iter_mut().for_each(|x| *x = Exp1.sample(rng));
    let sum: f64 = x.iter().sum();
    x.iter_mut().for_each(|x| *x /= sum);
}

impl Planted {
    /// Number of states, `d`.
    #[must_use]
    pub fn states(&self) -> usize {
        self.u.rows()
    }

    /// Number of hidden states, `r`.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.u.cols()
    }

    /// The exact chain, P* and xi*.
    pub fn chain(&self) -> Result<Chain> {
        Chain::from_low_rank(self.u.clone(), self.v.clone(), Given::weights(self.xi.clone()))
    }

    /// Row i of P*.
    #[must_use]
    pub fn p_row(&self, i: usize) -> Vec<f64> {
        (0..self.states()).map(|j| thin::dot(self.u.row(i), self.v.row(j))).collect()
    }

    /// Counts of one trajectory of `n` transitions from the stationary law, counted on the fly.
    pub fn sample_counts(&self, n: u64, seed: u64) -> Result<Counts> {
        let mut walk = PlantedWalk::new(self, seed)?;
        let mut counter = TransitionCounter::new(1, CountMode::Sliding)?;
        let mut part = vec![walk.state];
        let mut left = n;
        while left > 0 {
            let steps = left.min(PART as u64);
            part.extend((0..steps).map(|_| walk.step()));
            counter.push(&part);
            // The last frame begins the next part, so no transition is lost or counted twice.
            part.clear();
            part.push(walk.state);
            left -= steps;
        }
        counter.finish(StateIndex::numbered(self.states()))
    }

    /// The `n + 1` states of the trajectory that [`sample_counts`](Self::sample_counts) counts for the same seed.
    pub fn sample_trajectory(&self, n: usize, seed: u64) -> Result<Vec<u32>> {
        let mut walk = PlantedWalk::new(self, seed)?;
        let mut states = Vec::with_capacity(n + 1);
        states.push(walk.state);
        states.extend((0..n).map(|_| walk.step()));
        Ok(states)
    }
}

/// A walk through the chain: from state i to hidden state k by row i of U, then to state j by column k of V.
struct PlantedWalk {
    aggregate: Vec<AliasTable>,
    disaggregate: Vec<AliasTable>,
    rng: Xoshiro256PlusPlus,
    state: u32,
}

impl PlantedWalk {
    fn new(planted: &Planted, seed: u64) -> Result<Self> {
        let table = |weights: &[f64], name: &'static str| {
            let allowed = "it must be a distribution: finite, non-negative, not all zero";
            AliasTable::new(weights).ok_or(Error::Setting { name, value: "no distribution".into(), allowed })
        };
        let rows = (0..planted.states()).map(|i| table(planted.u.row(i), "a row of U"));
        let columns = (0..planted.rank()).map(|k| table(&planted.v.column(k), "a column of V"));
        // Far from the numbers that drew the chain, even for the same seed.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        rng.long_jump();
        let state = table(&planted.xi, "the stationary law")?.draw(&mut rng);
        Ok(PlantedWalk { aggregate: rows.collect::<Result<_>>()?, disaggregate: columns.collect::<Result<_>>()?, rng, state })
    }

    #[inline]
    fn step(&mut self) -> u32 {
        let k = self.aggregate[self.state as usize].draw(&mut self.rng);
        self.state = self.disaggregate[k as usize].draw(&mut self.rng);
        self.state
    }
}
