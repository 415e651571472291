//! What a fit starts from: a chain, and where it was counted, the counts behind it and how they fall into parts.

use crate::chain::{Chain, Estimate, Sliced, SlicedCounts, Slices, TwoSided, WeightPower};
use crate::counts::folds::{NO_STATE, count_blocks};
use crate::counts::{CountMode, Counts, Folds};
use crate::error::{Error, Result};
use crate::kinetics::Uncertain;
use crate::linalg::Csr;
use crate::solve::bootstrap::Resample;
use crate::solve::refit::Observed;

/// Blocks that trajectories are cut into: divisible by the usual numbers of folds.
const BLOCKS: usize = 60;
/// No block is shorter than this many lags, or the pairs lost at borders would be too many.
const LAGS_A_BLOCK: usize = 20;
/// Where fewer blocks than this are left when some are held out, their transitions are dealt one by one.
const FEWEST_BLOCKS: usize = 10;
/// A transition matrix is taken for so many transitions a state on average: enough for the passes before a refit, whose own prior counts
/// transitions. The likelihood with its prior does not depend on it, since the prior asked for is multiplied by it as well.
const TRANSITIONS_A_STATE: f64 = 1000.0;

/// A chain with the data behind it.
///
/// ```
/// use metastate::{Counts, Data, Estimate, StateIndex};
///
/// let moves = [(0, 1), (1, 0), (0, 0), (1, 1)];
/// let counts = Counts::from_pairs(StateIndex::numbered(2), moves)?;
/// let data = Data::from_counts(&counts, &Estimate::default())?;
/// assert_eq!((data.chain().states(), data.chain().transitions()), (2, 4.0));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Data {
    chain: Chain,
    parts: Option<Parts>,
    sliced: Option<Sliced>,
}

impl Data {
    /// Transitions that do not depend on each other, such as trips: they are held out one by one.
    pub fn from_counts(counts: &Counts, estimate: &Estimate) -> Result<Self> {
        let chain = Chain::estimate(counts, estimate)?;
        let parts = Parts::new(counts, None, &chain)?;
        Ok(Data { chain, parts: Some(parts), sliced: None })
    }

    /// Trajectories, with their frames one after the other ([`NO_STATE`] between trajectories and at gaps): they are held out by blocks of
    /// frames, because frames depend on each other.
    pub fn from_frames(counts: &Counts, frames: &[u32], estimate: &Estimate) -> Result<Self> {
        let chain = Chain::estimate(counts, estimate)?;
        let parts = Parts::new(counts, Some(frames), &chain)?;
        Ok(Data { chain, parts: Some(parts), sliced: None })
    }

    /// Transitions from one set of states to another, such as from home to work: they are held out one by one.
    pub fn between(sides: &TwoSided, weight_power: WeightPower) -> Result<Self> {
        let chain = Chain::between(sides, weight_power)?;
        let counts = chain.counts().cloned().ok_or(Error::Empty { what: "the list of transitions" })?;
        Ok(Data { chain, parts: Some(Parts { overlap: 1.0, counts, blocks: None, frames: None }), sliced: None })
    }

    /// Transitions that fall into slices, such as hours of the day: one set of meta-states for all slices, and for each slice where they lead. They are held out one by one.
    pub fn sliced(counts: &Counts, sliced: &SlicedCounts, estimate: &Estimate) -> Result<Self> {
        let (chain, sliced) = Chain::sliced(counts, sliced, estimate)?;
        let counts = chain.counts().cloned().ok_or(Error::Empty { what: "the list of transitions" })?;
        Ok(Data { chain, parts: Some(Parts { overlap: 1.0, counts, blocks: None, frames: None }), sliced: Some(sliced) })
    }

    /// A transition matrix that was given as probabilities: nothing can be held out, so lambda must be given.
    #[must_use]
    pub fn from_matrix(chain: Chain) -> Self {
        Data { chain, parts: None, sliced: None }
    }

    /// The same data with other weights in the objective.
    #[must_use]
    pub fn with_weight_power(self, power: WeightPower) -> Self {
        let sliced = self.sliced.map(|s| Sliced { whole: s.whole.with_weight_power(power), ..s });
        Data { chain: self.chain.with_weight_power(power), sliced, ..self }
    }

    /// Which column of the chain is which slice, where there are slices.
    #[must_use]
    pub fn slices(&self) -> Option<&Slices> {
        self.sliced.as_ref().map(|s| s.slices.as_ref())
    }

    /// The chain in which each step begins where the step before ended: for data with slices, the chain without them. None where origins and destinations are different sets.
    #[must_use]
    pub fn going_on(&self) -> Option<&Chain> {
        match &self.sliced {
            Some(sliced) => Some(&sliced.whole),
            None => Some(&self.chain).filter(|chain| chain.goes_on()),
        }
    }

    /// The data in parts for the intervals of kinetics, where there are any: [`Parts::uncertain`]; with slices, the transitions of all of them together.
    #[must_use]
    pub fn uncertain(&self, bootstrap: bool, reversible: bool, seed: u64) -> Option<Uncertain<'_>> {
        match self.sliced.as_ref().map(|sliced| sliced.whole.counts()) {
            Some(counts) => counts.filter(|_| bootstrap).map(|counts| Uncertain { data: Resample::Trips(counts), seed }),
            None => self.parts()?.uncertain(bootstrap, reversible, seed),
        }
    }

    /// P, xi and labels.
    #[must_use]
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The counts and how they fall into parts; none for a transition matrix.
    #[must_use]
    pub fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// The data without fold `f` of those that [`Parts::folds`] made: the same states, and only the transitions that a model may see before it is judged on that fold.
    pub fn without(&self, folds: &Folds, f: usize) -> Result<Data> {
        let parts = self.parts.as_ref().ok_or(Error::Empty { what: "the list of transitions" })?;
        let counts = folds.training(f);
        let (chain, sliced) = match &self.sliced {
            None => (self.chain.on_part(counts.clone())?, None),
            Some(sliced) => {
                let (chain, sliced) = self.chain.sliced_on_part(sliced, counts.clone())?;
                (chain, Some(sliced))
            }
        };
        let left = |blocks: &Vec<Csr>| -> Vec<Csr> {
            blocks.iter().enumerate().filter(|(b, _)| b % folds.len() != f).map(|(_, block)| block.clone()).collect()
        };
        let blocks = parts.blocks.as_ref().map(left).filter(|left| left.len() >= FEWEST_BLOCKS);
        Ok(Data { chain, parts: Some(Parts { overlap: parts.overlap, counts, blocks, frames: None }), sliced })
    }

    /// What a likelihood is summed over, and how many transitions one unit of the prior is: the counts, one; for a transition matrix, which has
    /// none, `d xi_i p_ij` times 1000, so that a unit is what a state weighs on average.
    pub fn transitions(&self) -> Result<(Csr, f64)> {
        if let Some(parts) = &self.parts {
            return Ok((parts.counts.clone(), 1.0));
        }
        let (p, m, n) = (self.chain.p(), self.chain.states(), self.chain.p().cols());
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (i, share) in self.chain.departures().iter().enumerate() {
            p.row(i).for_each(n, |j, x| {
                if x > 0.0 {
                    indices.push(j as u32);
                    values.push(TRANSITIONS_A_STATE * m as f64 * share * x);
                }
            });
            indptr.push(indices.len());
        }
        Ok((Csr::from_parts(m, n, indptr, indices, values)?, TRANSITIONS_A_STATE))
    }

    /// The same as the likelihood sees it; counts are shared with P.
    pub(crate) fn observed(&self) -> Result<(Observed, f64)> {
        let (counts, unit) = self.transitions()?;
        Ok((Observed::of(self.chain.p(), counts)?, unit))
    }
}

/// The transitions between the states of a chain, in the chain's order.
///
/// ```
/// use metastate::{Counts, Data, Estimate, StateIndex};
///
/// let moves = [(0, 1), (1, 0)].repeat(50);
/// let data = Data::from_counts(&Counts::from_pairs(StateIndex::numbered(2), moves)?, &Estimate::default())?;
/// let folds = data.parts().unwrap().folds(5, 0)?;
/// assert_eq!((folds.len(), folds.size(0) + folds.training(0).values().iter().sum::<f64>()), (5, 100.0));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Parts {
    /// How many counted pairs share the information of one.
    overlap: f64,
    counts: Csr,
    blocks: Option<Vec<Csr>>,
    frames: Option<Frames>,
}

/// A trajectory as it was counted.
#[derive(Debug, Clone)]
struct Frames {
    /// States of the chain, [`NO_STATE`] elsewhere.
    states: Vec<u32>,
    lag: usize,
    mode: CountMode,
}

impl Parts {
    /// Of the states that the chain kept.
    fn new(counts: &Counts, frames: Option<&[u32]>, chain: &Chain) -> Result<Self> {
        let mut number = vec![NO_STATE; counts.states()];
        chain.kept().iter().enumerate().for_each(|(new, &old)| number[old] = new as u32);
        let frames = frames.map(|frames| Frames {
            states: frames.iter().map(|&s| if s == NO_STATE { s } else { number[s as usize] }).collect(),
            lag: counts.lag(),
            mode: counts.mode(),
        });
        let cut = |f: &Frames| {
            let blocks = (f.states.len() / (LAGS_A_BLOCK * f.lag)).clamp(2, BLOCKS);
            count_blocks(&f.states, chain.states(), f.lag, f.mode, blocks)
        };
        let blocks = frames.as_ref().map(cut).transpose()?;
        let between = chain.counts().ok_or(Error::Empty { what: "the list of transitions" })?;
        let overlap = if counts.mode() == CountMode::Sliding { counts.lag() as f64 } else { 1.0 };
        Ok(Parts { overlap, counts: between.clone(), blocks, frames })
    }

    /// How many counted pairs share the information of one: the lag for a sliding window, else 1.
    #[must_use]
    pub fn overlap(&self) -> f64 {
        self.overlap
    }

    /// The lag of the trajectory in frames, and its blocks counted at a multiple of it; none for transitions that are no trajectory, or too long a lag.
    #[must_use]
    pub fn at_lag(&self, times: usize) -> Option<(f64, Vec<Csr>)> {
        let frames = self.frames.as_ref()?;
        let lag = frames.lag.checked_mul(times)?;
        let blocks = (frames.states.len() / (LAGS_A_BLOCK * lag)).clamp(2, BLOCKS);
        let d = self.counts.rows();
        let long_enough = frames.states.len() / lag >= LAGS_A_BLOCK;
        let counted = count_blocks(&frames.states, d, lag, frames.mode, blocks).ok().filter(|_| long_enough)?;
        Some((lag as f64, counted))
    }

    /// All transitions.
    #[must_use]
    pub fn counts(&self) -> &Csr {
        &self.counts
    }

    /// `k` folds, each held out in turn.
    pub fn folds(&self, k: usize, seed: u64) -> Result<Folds> {
        match &self.blocks {
            Some(blocks) => Folds::of_blocks(blocks, k),
            None => Folds::of_trips(&self.counts, k, seed),
        }
    }

    /// What the bootstrap draws.
    #[must_use]
    pub fn resample(&self) -> Resample<'_> {
        match &self.blocks {
            Some(blocks) => Resample::Blocks(blocks),
            None => Resample::Trips(&self.counts),
        }
    }

    /// The data in parts for the intervals of kinetics: blocks of frames cost next to nothing; what has to be dealt, or made reversible each time, is done where a bootstrap was asked for.
    #[must_use]
    pub fn uncertain(&self, bootstrap: bool, reversible: bool, seed: u64) -> Option<Uncertain<'_>> {
        let cheap = self.blocks.as_ref().is_some_and(|b| b.len() > 1) && !reversible;
        (bootstrap || cheap).then(|| Uncertain { data: self.resample(), seed })
    }

    /// What the bootstrap draws, in words.
    #[must_use]
    pub fn drawn(&self) -> String {
        match &self.blocks {
            Some(blocks) => format!("{} contiguous blocks of frames, drawn with replacement", blocks.len()),
            None => "transitions of the fitted model, as many out of each state as there were".to_owned(),
        }
    }

    /// How the folds are made, in words.
    #[must_use]
    pub fn how(&self) -> String {
        match &self.blocks {
            Some(blocks) => format!("{} contiguous blocks of frames, pairs across borders left out", blocks.len()),
            None => "transitions dealt at random".to_owned(),
        }
    }
}
