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

/// Counts drawn from a chain with known groups.
#[derive(Debug, Clone)]
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
pub fn planted_groups(d: usize, groups: usize, entries_per_row: usize, seed: u64) -> Result<PlantedGroups> {
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

    // Each block of rows has its own stream, 2^128 draws away from the next.
    let streams: Vec<Xoshiro256PlusPlus> = (0..d.div_ceil(BLOCK))
        .map(|_| {
            rng.jump();
            rng.clone()
        })
        .collect();
    let blocks: Vec<Block> = streams
        .into_par_iter()
        .enumerate()
        .map(|(block, mut rng)| {
            let mut out = Block::default();
            let mut row = Vec::new();
            for i in block * BLOCK..d.min((block + 1) * BLOCK) {
                let steps = ((entries_per_row as f64 * activity[i]).round() as usize).max(1);
                row.clear();
                row.extend((0..steps).map(|_| {
                    let g = next_group[group[i] as usize].draw(&mut rng) as usize;
                    members[g][within[g].draw(&mut rng) as usize]
                }));
                out.add_row(&mut row);
            }
            out
        })
        .collect();

    let mut indptr = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for block in blocks {
        indptr.extend(block.ends.iter().map(|end| indices.len() + end));
        indices.extend(block.columns);
        values.extend(block.counts);
    }
    let counts = Counts::from_csr(StateIndex::numbered(d), Csr::from_parts(d, d, indptr, indices, values)?)?;
    Ok(PlantedGroups { counts, group, latent })
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
    counts: Vec<f64>,
}

impl Block {
    fn add_row(&mut self, destinations: &mut [u32]) {
        destinations.sort_unstable();
        for same in destinations.chunk_by(|a, b| a == b) {
            self.columns.push(same[0]);
            self.counts.push(same.len() as f64);
        }
        self.ends.push(self.columns.len());
    }
}
