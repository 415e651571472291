//! The one place where pairs of states are counted. Everything before it may be exchanged, and so may it: an engine on many
//! machines has only to implement [`PairCounter`].
//!
//! The counter here keeps its pairs in sixteen shards by origin. A shard is a block of a square table while states are few, then a
//! hash table, and beyond the memory limit sorted runs on disk. Threads share the shards, never a shard, and each takes the
//! batches in order: the sums are the same for any number of threads, also when weights are not whole.

mod shard;

use rayon::prelude::*;
use tempfile::TempDir;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use shard::Shard;

const SHARDS: usize = 16;
/// Below this a limit would only make thousands of tiny runs.
const LEAST_MEMORY: u64 = 16 << 20;

/// Pairs of state numbers, `from << 32 | to`, each with a weight (1 where none is given).
#[derive(Debug, Clone, Default)]
pub struct PairBatch {
    /// The pairs.
    pub pairs: Vec<u64>,
    /// As many weights, finite and zero or more; `None` means that each pair counts once.
    pub weights: Option<Vec<f64>>,
}

impl PairBatch {
    /// Adds one pair; for batches without weights.
    #[inline]
    pub fn push(&mut self, from: u32, to: u32) {
        self.pairs.push(u64::from(from) << 32 | u64::from(to));
    }
}

impl PairBatch {
    /// Adds up equal pairs, in the order in which they came, so that a long batch takes the room of its distinct pairs.
    pub fn compact(&mut self) {
        let weights = self.weights.take();
        let mut all: Vec<(u64, f64)> = self.pairs.iter().enumerate().map(|(k, &p)| (p, weights.as_ref().map_or(1.0, |w| w[k]))).collect();
        all.sort_by_key(|e| e.0); // stable
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0.0 };
            same
        });
        (self.pairs, self.weights) = (all.iter().map(|e| e.0).collect(), Some(all.iter().map(|e| e.1).collect()));
    }
}

/// Adds up the weight of each pair of states.
pub trait PairCounter {
    /// Adds batches, in their order.
    fn add(&mut self, batches: Vec<PairBatch>) -> Result<()>;

    /// Hands out each pair once with its sum, always in the same order. May be called again, and after further `add`s.
    fn visit(&mut self, each: &mut dyn FnMut(u32, u32, f64)) -> Result<()>;
}

/// Counts in this process.
#[derive(Debug)]
pub struct LocalCounter {
    shards: Vec<Shard>,
    /// Made when it is first needed; removed with the counter.
    directory: Option<TempDir>,
    limit: Option<u64>,
}

impl LocalCounter {
    /// With at most about `limit` bytes in memory.
    pub fn new(limit: Option<u64>) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::new()).collect();
        LocalCounter { shards, directory: None, limit: limit.map(|l| l.max(LEAST_MEMORY)) }
    }

    /// Runs written to disk so far.
    pub fn spilled_runs(&self) -> usize {
        self.shards.iter().map(Shard::runs).sum()
    }
}

impl PairCounter for LocalCounter {
    fn add(&mut self, batches: Vec<PairBatch>) -> Result<()> {
        if self.limit.is_some() && self.directory.is_none() {
            self.directory = Some(tempfile::Builder::new().prefix("metastate-").tempdir().map_err(write_error)?);
        }
        let directory = self.directory.as_ref().map(TempDir::path);
        let limit = self.limit.map_or(usize::MAX, |l| usize::try_from(l / SHARDS as u64).unwrap_or(usize::MAX));
        let parts: Vec<[PairBatch; SHARDS]> = batches.into_par_iter().map(split).collect();
        self.shards.par_iter_mut().enumerate().try_for_each(|(k, shard)| {
            parts.iter().try_for_each(|part| shard.add(&part[k], limit, directory.map(|d| d.join(format!("{k}.runs")))))
        })
    }

    fn visit(&mut self, each: &mut dyn FnMut(u32, u32, f64)) -> Result<()> {
        for (k, shard) in self.shards.iter_mut().enumerate() {
            // Inside a shard, origins are numbered without the bits that choose the shard.
            shard.visit(&mut |key, sum| each(((key >> 32) as u32) << SHARD_BITS | k as u32, key as u32, sum))?;
        }
        Ok(())
    }
}

const SHARD_BITS: u32 = SHARDS.trailing_zeros();

/// Deals the pairs to the shards, by the low bits of the origin.
fn split(batch: PairBatch) -> [PairBatch; SHARDS] {
    let mut sizes = [0usize; SHARDS];
    for &pair in &batch.pairs {
        sizes[(pair >> 32) as usize % SHARDS] += 1;
    }
    let mut parts: [PairBatch; SHARDS] = std::array::from_fn(|k| PairBatch {
        pairs: Vec::with_capacity(sizes[k]),
        weights: batch.weights.as_ref().map(|_| Vec::with_capacity(sizes[k])),
    });
    for &pair in &batch.pairs {
        let from = pair >> 32;
        parts[from as usize % SHARDS].pairs.push((from >> SHARD_BITS) << 32 | (pair & 0xffff_ffff));
    }
    if let Some(weights) = &batch.weights {
        for (&pair, &w) in batch.pairs.iter().zip(weights) {
            if let Some(part) = &mut parts[(pair >> 32) as usize % SHARDS].weights {
                part.push(w);
            }
        }
    }
    parts
}

pub(super) fn write_error(e: std::io::Error) -> IngestError {
    IngestError::new(Code::Write, format!("sorted runs of counts could not be written to the temporary directory ({e})"))
        .remedy("free some space, set TMPDIR to another place, or raise --memory-limit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn random_batches(count: usize, states: u64, weighted: bool) -> Vec<PairBatch> {
        let mut seed = 42u64;
        let mut next = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 33
        };
        (0..count)
            .map(|_| {
                let pairs: Vec<u64> = (0..20_000).map(|_| (next() % states) << 32 | (next() % states)).collect();
                let weights = weighted.then(|| pairs.iter().map(|_| next() as f64 / 1000.0).collect());
                PairBatch { pairs, weights }
            })
            .collect()
    }

    fn total(counter: &mut LocalCounter) -> BTreeMap<(u32, u32), f64> {
        let mut all = BTreeMap::new();
        counter.visit(&mut |i, j, w| assert!(all.insert((i, j), w).is_none())).unwrap();
        all
    }

    #[test]
    fn a_compact_batch_counts_the_same() {
        for weighted in [false, true] {
            let batches = random_batches(3, 40, weighted);
            let (mut plain, mut compact) = (LocalCounter::new(None), LocalCounter::new(None));
            let mut short = batches.clone();
            short.iter_mut().for_each(PairBatch::compact);
            assert!(short[0].pairs.len() <= 1600);
            plain.add(batches).unwrap();
            compact.add(short).unwrap();
            let (a, b) = (total(&mut plain), total(&mut compact));
            assert!(a.len() == b.len() && a.iter().all(|(k, x)| (x - b[k]).abs() <= 1e-9 * x));
        }
    }

    #[test]
    fn table_hash_and_runs_agree_to_the_bit() {
        for (states, weighted) in [(50, true), (900, false), (5000, false), (60_000, true)] {
            let batches = random_batches(30, states, weighted);
            let mut plain: BTreeMap<(u32, u32), f64> = BTreeMap::new();
            for b in &batches {
                for (k, &p) in b.pairs.iter().enumerate() {
                    *plain.entry(((p >> 32) as u32, p as u32)).or_default() += b.weights.as_ref().map_or(1.0, |w| w[k]);
                }
            }
            let mut whole = LocalCounter::new(None);
            whole.add(batches.clone()).unwrap();
            assert!(total(&mut whole) == plain, "{states} states");
            let mut spilling = LocalCounter::new(Some(0));
            batches.chunks(7).for_each(|part| spilling.add(part.to_vec()).unwrap());
            assert_eq!(spilling.spilled_runs() > 0, states >= 5000);
            let first = total(&mut spilling);
            for (key, sum) in &first {
                assert!((sum - plain[key]).abs() <= 1e-12 * sum, "{key:?}");
            }
            assert!(first == total(&mut spilling) && first.len() == plain.len());
            // where the batches are cut must not matter
            let mut other = LocalCounter::new(Some(0));
            other.add(batches).unwrap();
            assert!(total(&mut other) == first);
        }
    }
}
