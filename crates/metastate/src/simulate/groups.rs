//! A large sparse chain with planted groups of states: every state belongs to one group, and where it leads depends on the
//! group alone.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::AliasTable;
use crate::counts::{Counts, StateIndex};
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat};

/// Rows drawn with one stream of random numbers. A constant, so that threads do not matter.
const BLOCK: usize = 512;

/// Blocks of rows that are drawn side by side before they are handed out: what a stream holds at once.
const BLOCKS_AT_ONCE: usize = 64;

/// Counts drawn from a chain with known groups.
///
/// See the example of [`planted_groups`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlantedGroups {
    /// The transitions drawn.
    pub counts: Counts,
    /// The group of each state.
    pub group: Vec<u32>,
    /// `groups x groups`: probability of a step from a state of one group into another.
    pub latent: Mat,
}

/// Draws `d` states in `groups` groups and about `entries_per_row` transitions out of each state. A step stays in its group
/// with probability 0.6 to 0.8 (another one for each group) and else goes to a group drawn at random weights; within the
/// group, busy states are likelier. How busy a state is varies (log-normal, sigma 1/2): its departures vary likewise.
///
/// ```
/// use metastate::simulate::planted_groups;
///
/// let world = planted_groups(100, 4, 20, 1)?;
/// let (i, j, _) = world.counts.csr().triplets().next().unwrap();
/// let step = world.latent[(world.group[i as usize] as usize, world.group[j as usize] as usize)];
/// assert!(step > 0.0);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn planted_groups(d: usize, groups: usize, entries_per_row: usize, seed: u64) -> Result<PlantedGroups> {
    let world = GroupWorld::new(d, groups, entries_per_row, seed)?;
    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    world.for_each_row(|columns, counts| {
        indices.extend_from_slice(columns);
        values.extend(counts.iter().map(|n| f64::from(*n)));
        indptr.push(indices.len());
        Ok::<(), Error>(())
    })?;
    let counts = Counts::from_csr(StateIndex::numbered(d), Csr::from_parts(d, d, indptr, indices, values)?)?;
    Ok(PlantedGroups { counts, group: world.group, latent: world.latent })
}

/// What [`planted_groups`] draws from: rows come out one after the other, and nothing of them is kept.
///
/// See the example of [`planted_groups`], which draws from one.
#[derive(Debug, Clone)]
pub struct GroupWorld {
    /// The group of each state.
    pub group: Vec<u32>,
    /// `groups x groups`: probability of a step from a state of one group into another.
    pub latent: Mat,
    entries_per_row: usize,
    activity: Vec<f64>,
    members: Vec<Vec<u32>>,
    next_group: Vec<AliasTable>,
    within: Vec<AliasTable>,
    /// Where the streams of the rows begin.
    rng: Xoshiro256PlusPlus,
}

impl GroupWorld {
    /// See [`planted_groups`].
    pub fn new(d: usize, groups: usize, entries_per_row: usize, seed: u64) -> Result<Self> {
        check("the number of states", d, d >= 2 && u32::try_from(d).is_ok(), "it must be between 2 and 2^32 - 1")?;
        check("the number of groups", groups, groups >= 1 && groups <= d, "it must be at least 1 and at most the number of states")?;
        check("the number of transitions a state", entries_per_row, entries_per_row >= 1, "it must be at least 1")?;

        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let latent = latent_chain(groups, &mut rng);
        // The first states fill one place in each group, so that none is empty.
        let group: Vec<u32> = (0..d).map(|i| if i < groups { i as u32 } else { rng.random_range(0..groups as u32) }).collect();
        let normal = |rng: &mut Xoshiro256PlusPlus| -> f64 { StandardNormal.sample(rng) };
        let activity: Vec<f64> = (0..d).map(|_| (0.5 * normal(&mut rng) - 0.125).exp()).collect();

        let mut members = vec![Vec::new(); groups];
        group.iter().enumerate().for_each(|(i, &g)| members[g as usize].push(i as u32));
        let table = |weights: &[f64]| AliasTable::new(weights).ok_or(Error::Empty { what: "a planted group" });
        let next_group: Vec<AliasTable> = (0..groups).map(|g| table(latent.row(g))).collect::<Result<_>>()?;
        let within: Vec<AliasTable> =
            members.iter().map(|m| table(&m.iter().map(|&i| activity[i as usize]).collect::<Vec<_>>())).collect::<Result<_>>()?;
        Ok(GroupWorld { group, latent, entries_per_row, activity, members, next_group, within, rng })
    }

    /// Hands out the columns (ascending) and counts of every row, in order; always the same ones. It ends early where `each` fails.
    pub fn for_each_row<E>(&self, mut each: impl FnMut(&[u32], &[u32]) -> std::result::Result<(), E>) -> std::result::Result<(), E> {
        // Each block of rows has its own stream, 2^128 draws away from the next.
        let mut rng = self.rng.clone();
        let blocks: Vec<usize> = (0..self.group.len().div_ceil(BLOCK)).collect();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let streams: Vec<(usize, Xoshiro256PlusPlus)> = some
                .iter()
                .map(|&block| {
                    rng.jump();
                    (block, rng.clone())
                })
                .collect();
            let drawn: Vec<Block> = streams.into_par_iter().map(|(block, rng)| self.block(block, rng)).collect();
            for block in &drawn {
                let mut start = 0;
                for &end in &block.ends {
                    each(&block.columns[start..end], &block.counts[start..end])?;
                    start = end;
                }
            }
        }
        Ok(())
    }

    fn block(&self, block: usize, mut rng: Xoshiro256PlusPlus) -> Block {
        let mut out = Block::default();
        let mut row = Vec::new();
        for i in block * BLOCK..self.group.len().min((block + 1) * BLOCK) {
            let steps = ((self.entries_per_row as f64 * self.activity[i]).round() as usize).max(1);
            row.clear();
            row.extend((0..steps).map(|_| {
                let g = self.next_group[self.group[i] as usize].draw(&mut rng) as usize;
                self.members[g][self.within[g].draw(&mut rng) as usize]
            }));
            out.add_row(&mut row);
        }
        out
    }
}

fn check(name: &'static str, value: usize, ok: bool, allowed: &'static str) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::Setting { name, value: value.to_string(), allowed }) }
}

fn latent_chain(groups: usize, rng: &mut Xoshiro256PlusPlus) -> Mat {
    let mut latent = Mat::zeros(groups, groups);
    for g in 0..groups {
        if groups == 1 {
            latent[(0, 0)] = 1.0;
            break;
        }
        let stay = rng.random_range(0.6..0.8);
        let mut rest: Vec<f64> = (0..groups).map(|_| Exp1.sample(rng)).collect();
        rest[g] = 0.0;
        let sum: f64 = rest.iter().sum();
        for h in 0..groups {
            latent[(g, h)] = if h == g { stay } else { (1.0 - stay) * rest[h] / sum };
        }
    }
    latent
}

/// Rows of counts, in the order drawn.
#[derive(Default)]
struct Block {
    ends: Vec<usize>,
    columns: Vec<u32>,
    counts: Vec<u32>,
}

impl Block {
    fn add_row(&mut self, destinations: &mut [u32]) {
        destinations.sort_unstable();
        for same in destinations.chunk_by(|a, b| a == b) {
            self.columns.push(same[0]);
            self.counts.push(same.len() as u32);
        }
        self.ends.push(self.columns.len());
    }
}
