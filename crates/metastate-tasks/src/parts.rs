//! The counts behind a chain, and how they fall into parts: trips one by one, trajectories by blocks of frames.

use metastate::counts::folds::{NO_STATE, count_blocks};
use metastate::solve::bootstrap::Resample;
use metastate::{Chain, Counts, Csr, Folds};

use crate::error::Result;

/// Blocks that trajectories are cut into: divisible by the usual numbers of folds.
const BLOCKS: usize = 60;
/// No block is shorter than this many lags, or borders would take too much.
const LAGS_A_BLOCK: usize = 20;

/// Folds inside the training part of a fold. Many, because how strong a prior helps depends on how much data there is: the inner fits
/// must see nearly as much as the outer ones. With three (January 2016, 20 trips a cell) the strongest prior won, with ten the best one.
const INNER_FOLDS: usize = 10;

/// The data of a chain, state by state in the chain's order.
#[derive(Debug, Clone)]
pub struct Parts {
    /// All transitions.
    pub counts: Csr,
    /// Those of each block of frames, without the pairs that span a border; for trajectories.
    pub blocks: Option<Vec<Csr>>,
}

impl Parts {
    /// Of the states that the chain kept.
    pub fn new(counts: &Counts, frames: Option<&[u32]>, chain: &Chain) -> Result<Self> {
        let mut number = vec![NO_STATE; counts.states()];
        chain.kept().iter().enumerate().for_each(|(new, &old)| number[old] = new as u32);
        let blocks = match frames {
            None => None,
            Some(frames) => {
                let frames: Vec<u32> = frames.iter().map(|&s| if s == NO_STATE { s } else { number[s as usize] }).collect();
                let blocks = (frames.len() / (LAGS_A_BLOCK * counts.lag())).clamp(2, BLOCKS);
                Some(count_blocks(&frames, chain.states(), counts.lag(), counts.mode(), blocks)?)
            }
        };
        let between = chain.counts().ok_or(metastate::Error::Empty { what: "the list of transitions" })?;
        Ok(Parts { counts: between.clone(), blocks })
    }

    /// The folds.
    pub fn folds(&self, k: usize, seed: u64) -> Result<Folds> {
        Ok(match &self.blocks {
            Some(blocks) => Folds::of_blocks(blocks, k)?,
            None => Folds::of_trips(&self.counts, k, seed)?,
        })
    }

    /// Folds inside what is left when the first of `k` folds is held out: choices made on them have not seen that fold.
    pub fn inner_folds(&self, k: usize, seed: u64) -> Result<Folds> {
        let kept = |blocks: &Vec<Csr>| blocks.iter().enumerate().filter(|(b, _)| b % k != 0).map(|(_, block)| block.clone()).collect();
        let left: Vec<Csr> = self.blocks.as_ref().map(kept).unwrap_or_default();
        // So few blocks that none can be held out of the rest: its transitions are dealt one by one.
        Ok(match left.len() >= INNER_FOLDS {
            true => Folds::of_blocks(&left, INNER_FOLDS)?,
            false => Folds::of_trips(&self.folds(k, seed)?.training(0)?, INNER_FOLDS, seed)?,
        })
    }

    /// What the bootstrap draws.
    pub fn resample(&self) -> Resample<'_> {
        match &self.blocks {
            Some(blocks) => Resample::Blocks(blocks),
            None => Resample::Trips(&self.counts),
        }
    }

    /// What the bootstrap draws, in words.
    pub fn drawn(&self) -> String {
        match &self.blocks {
            Some(blocks) => format!("{} contiguous blocks of frames, drawn with replacement", blocks.len()),
            None => "transitions of the fitted model, as many out of each state as there were".to_owned(),
        }
    }

    /// How the folds were made, in words.
    pub fn how(&self) -> String {
        match &self.blocks {
            Some(blocks) => format!("{} contiguous blocks of frames, pairs across borders left out", blocks.len()),
            None => "transitions dealt at random".to_owned(),
        }
    }
}
