//! One shard of the counter: a block of a table, a hash table, or sorted runs on disk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::{PairBatch, SHARDS, write_error};
use crate::codes::Code;
use crate::error::{IngestError, Result};

/// Up to this many states all pairs have a place in a table: 32 MB over all shards.
const TABLE_SIDE: usize = 2048;
const EMPTY: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Shard {
    store: ShardStore,
    /// Where sorted runs stand, and how many pairs each holds.
    file: Option<PathBuf>,
    run_lengths: Vec<u64>,
}

#[derive(Debug)]
enum ShardStore {
    /// Rows of this shard (origin / SHARDS), `side` columns.
    Table { side: usize, cells: Vec<f64> },
    /// Open addressing; keys and sums side by side.
    Hash { slots: Vec<(u64, f64)>, used: usize },
}

impl Shard {
    pub fn new() -> Self {
        Shard { store: ShardStore::Table { side: 0, cells: Vec::new() }, file: None, run_lengths: Vec::new() }
    }

    pub fn runs(&self) -> usize {
        self.run_lengths.len()
    }

    /// Adds the pairs of one batch; writes a run when `limit` bytes would be exceeded.
    pub fn add(&mut self, batch: &PairBatch, limit: usize, file: Option<PathBuf>) -> Result<()> {
        self.make_room(batch);
        let each = |k: usize| batch.weights.as_ref().map_or(1.0, |w| w[k]);
        if let ShardStore::Table { side, cells } = &mut self.store {
            for (k, &pair) in batch.pairs.iter().enumerate() {
                cells[(pair >> 32) as usize * *side + (pair & 0xffff_ffff) as usize] += each(k);
            }
            return Ok(());
        }
        for (k, &pair) in batch.pairs.iter().enumerate() {
            if let ShardStore::Hash { slots, used } = &mut self.store
                && (*used + 1) * 10 > slots.len() * 7
            {
                let grown = (slots.len() * 2).max(1024);
                // Growing holds both tables for a moment.
                if (slots.len() + grown) * 16 > limit && *used > 0 {
                    self.spill(file.clone())?;
                } else {
                    grow(slots, grown);
                }
            }
            if let ShardStore::Hash { slots, used } = &mut self.store {
                let at = find(slots, pair);
                if slots[at].0 == EMPTY {
                    slots[at] = (pair, 0.0);
                    *used += 1;
                }
                slots[at].1 += each(k);
            }
        }
        Ok(())
    }

    /// Makes the table large enough for this batch, or turns it into a hash table.
    fn make_room(&mut self, batch: &PairBatch) {
        let ShardStore::Table { side, cells } = &mut self.store else { return };
        let (mut from, mut to) = (0, 0);
        for &pair in &batch.pairs {
            from = from.max(pair >> 32);
            to = to.max(pair & 0xffff_ffff);
        }
        if batch.pairs.is_empty() {
            return;
        }
        let needed = (to as usize + 1).max((from as usize + 1) * SHARDS);
        if needed <= *side {
            return;
        }
        let kept: Vec<(u64, f64)> = table_entries(*side, cells);
        if needed > TABLE_SIDE {
            let mut slots = Vec::new();
            grow(&mut slots, (kept.len() * 2).next_power_of_two().max(1024));
            for &(key, sum) in &kept {
                let at = find(&slots, key);
                slots[at] = (key, sum);
            }
            self.store = ShardStore::Hash { slots, used: kept.len() };
            return;
        }
        let grown = needed.next_power_of_two().clamp(64, TABLE_SIDE);
        let mut larger = vec![0.0; grown / SHARDS * grown];
        for (key, sum) in kept {
            larger[(key >> 32) as usize * grown + (key & 0xffff_ffff) as usize] = sum;
        }
        (*side, *cells) = (grown, larger);
    }

    /// What is in memory, in ascending order.
    fn entries(&self) -> Vec<(u64, f64)> {
        match &self.store {
            ShardStore::Table { side, cells } => table_entries(*side, cells),
            ShardStore::Hash { slots, .. } => {
                let mut all: Vec<(u64, f64)> = slots.iter().copied().filter(|e| e.0 != EMPTY).collect();
                all.sort_unstable_by_key(|e| e.0);
                all
            }
        }
    }

    /// Writes what is in memory as one sorted run, and begins anew.
    fn spill(&mut self, file: Option<PathBuf>) -> Result<()> {
        let path = file.ok_or_else(|| write_error(std::io::Error::other("no directory")))?;
        let entries = self.entries();
        let target = OpenOptions::new().create(true).append(true).open(&path).map_err(write_error)?;
        let mut out = BufWriter::with_capacity(1 << 18, target);
        for (key, sum) in &entries {
            out.write_all(&key.to_le_bytes()).and_then(|()| out.write_all(&sum.to_le_bytes())).map_err(write_error)?;
        }
        out.flush().map_err(write_error)?;
        self.run_lengths.push(entries.len() as u64);
        self.file = Some(path);
        if let ShardStore::Hash { slots, used } = &mut self.store {
            slots.fill((EMPTY, 0.0));
            *used = 0;
        }
        Ok(())
    }

    /// Each pair once, ascending; runs are added up from the oldest to what is still in memory.
    pub fn visit(&mut self, each: &mut dyn FnMut(u64, f64)) -> Result<()> {
        let memory = self.entries();
        let mut sources: Vec<ShardRun> = Vec::with_capacity(self.run_lengths.len() + 1);
        let mut start = 0u64;
        for &length in &self.run_lengths {
            if let Some(path) = &self.file {
                sources.push(ShardRun::open(path, start * 16, length)?);
            }
            start += length;
        }
        sources.push(ShardRun::Memory(memory.into_iter()));
        let mut heads = BinaryHeap::new();
        let mut values = vec![0.0; sources.len()];
        for (k, source) in sources.iter_mut().enumerate() {
            if let Some((key, value)) = source.next()? {
                heads.push(Reverse((key, k)));
                values[k] = value;
            }
        }
        let mut current: Option<(u64, f64)> = None;
        while let Some(Reverse((key, k))) = heads.pop() {
            current = Some(match current {
                Some((same, sum)) if same == key => (key, sum + values[k]),
                other => {
                    if let Some((done, sum)) = other {
                        each(done, sum);
                    }
                    (key, values[k])
                }
            });
            if let Some((next, value)) = sources[k].next()? {
                heads.push(Reverse((next, k)));
                values[k] = value;
            }
        }
        if let Some((done, sum)) = current {
            each(done, sum);
        }
        Ok(())
    }
}

enum ShardRun {
    Disk { reader: BufReader<File>, left: u64 },
    Memory(std::vec::IntoIter<(u64, f64)>),
}

impl ShardRun {
    fn open(path: &PathBuf, offset: u64, length: u64) -> Result<Self> {
        let mut file = File::open(path).map_err(read_error)?;
        file.seek(SeekFrom::Start(offset)).map_err(read_error)?;
        Ok(ShardRun::Disk { reader: BufReader::with_capacity(1 << 16, file), left: length })
    }

    fn next(&mut self) -> Result<Option<(u64, f64)>> {
        match self {
            ShardRun::Memory(entries) => Ok(entries.next()),
            ShardRun::Disk { left: 0, .. } => Ok(None),
            ShardRun::Disk { reader, left } => {
                let (mut key, mut sum) = ([0u8; 8], [0u8; 8]);
                reader.read_exact(&mut key).and_then(|()| reader.read_exact(&mut sum)).map_err(read_error)?;
                *left -= 1;
                Ok(Some((u64::from_le_bytes(key), f64::from_le_bytes(sum))))
            }
        }
    }
}

fn read_error(e: std::io::Error) -> IngestError {
    IngestError::new(Code::Read, format!("sorted runs of counts could not be read back ({e})"))
        .remedy("check the disk of TMPDIR and run again")
}

fn table_entries(side: usize, cells: &[f64]) -> Vec<(u64, f64)> {
    let mut all = Vec::new();
    for (i, row) in cells.chunks_exact(side.max(1)).enumerate() {
        all.extend(row.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(j, &x)| ((i as u64) << 32 | j as u64, x)));
    }
    all
}

/// The slot of a key, or the empty one where it belongs. There is always an empty one.
#[inline]
fn find(slots: &[(u64, f64)], key: u64) -> usize {
    let mask = slots.len() - 1;
    // Multiplication spreads the key over the upper bits; the lower bits of the product are poor.
    let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut at = (mixed ^ mixed >> 29) as usize & mask;
    while slots[at].0 != key && slots[at].0 != EMPTY {
        at = (at + 1) & mask;
    }
    at
}

fn grow(slots: &mut Vec<(u64, f64)>, size: usize) {
    let old = std::mem::replace(slots, vec![(EMPTY, 0.0); size.next_power_of_two()]);
    for (key, sum) in old.into_iter().filter(|e| e.0 != EMPTY) {
        let at = find(slots, key);
        slots[at] = (key, sum);
    }
}
