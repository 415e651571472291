//! Several processes at one problem. Every process runs the same program with the same factors; the counts and P are divided among them, by rows and by columns. What a process has computed
//! of its own rows it shows to the others, so that all of them hold the same bits afterwards and go the same way.
//!
//! Rows are divided at the borders of the blocks of [`thin`](super::thin), and sums over rows are gathered block by block and added in the order of the blocks: the answer has the same bits for any number of
//! processes, as it has for any number of threads. A team of one is no team: without a [`Share`] nothing here is called.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::thin::BLOCK;

/// Processes that work together. Each of them calls the same methods in the same order. A team that has lost a member does not come back from a call: the process ends.
pub trait Team: Send + Sync + Debug {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;
    /// How many there are.
    fn size(&self) -> usize;
    /// Process r has filled `whole[ends[r - 1]..ends[r]]`; afterwards everybody has all of it.
    fn gather(&self, whole: &mut [f64], ends: &[usize]);
    /// Bytes that this process has received from the others so far.
    fn received(&self) -> u64 {
        0
    }
    /// `parcels[r]` is for process r; what comes back is what everybody sent to this one, in the order of their numbers.
    fn exchange(&self, parcels: Vec<Vec<u8>>) -> Vec<Vec<u8>>;
}

/// Which rows (or columns) belong to which process of a team: contiguous, in whole blocks.
#[derive(Debug, Clone)]
pub struct Share {
    team: Arc<dyn Team>,
    ends: Arc<Vec<usize>>,
}

impl Share {
    /// Divides rows so that the processes have about the same `weight`, which the entries of a row and the row itself have.
    pub fn balanced(team: Arc<dyn Team>, entries: impl Fn(usize) -> f64, rows: usize) -> Self {
        let blocks: Vec<f64> = (0..rows.div_ceil(BLOCK)).map(|b| (b * BLOCK..((b + 1) * BLOCK).min(rows)).map(&entries).sum()).collect();
        let total: f64 = blocks.iter().sum();
        let (mut ends, mut block, mut done) = (Vec::with_capacity(team.size()), 0, 0.0);
        for process in 1..=team.size() {
            let goal = total * process as f64 / team.size() as f64;
            // The block on a border goes to the side that has more of it.
            while block < blocks.len() && (process == team.size() || done + 0.5 * blocks[block] <= goal) {
                done += blocks[block];
                block += 1;
            }
            ends.push((block * BLOCK).min(rows));
        }
        Share { team, ends: Arc::new(ends) }
    }

    /// The processes.
    pub fn team(&self) -> &Arc<dyn Team> {
        &self.team
    }

    /// Where the rows of each process end.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The rows of one process.
    pub fn of(&self, process: usize) -> Range<usize> {
        (if process == 0 { 0 } else { self.ends[process - 1] })..self.ends[process]
    }

    /// The rows of this process.
    pub fn mine(&self) -> Range<usize> {
        self.of(self.team.rank())
    }

    /// Whose row this is.
    pub fn owner(&self, row: usize) -> usize {
        self.ends.partition_point(|end| *end <= row)
    }

    /// Everybody has filled the rows that are theirs of a matrix with `width` columns; afterwards everybody has all.
    pub fn gather(&self, whole: &mut [f64], width: usize) {
        let ends: Vec<usize> = self.ends.iter().map(|end| end * width).collect();
        self.team.gather(whole, &ends);
    }

    /// The same with `width` numbers for each block of rows.
    pub fn gather_blocks(&self, whole: &mut [f64], width: usize) {
        let ends: Vec<usize> = self.ends.iter().map(|end| end.div_ceil(BLOCK) * width).collect();
        self.team.gather(whole, &ends);
    }

    /// Adds up everybody's list, number by number, in the order of the processes.
    pub fn add_up(&self, list: &mut [f64]) {
        let (rank, size) = (self.team.rank(), self.team.size());
        let mut all = Vec::new();
        for part in list.chunks_mut(ADDED_AT_ONCE) {
            let n = part.len();
            all.clear();
            all.resize(n * size, 0.0);
            all[rank * n..(rank + 1) * n].copy_from_slice(part);
            self.team.gather(&mut all, &(1..=size).map(|r| r * n).collect::<Vec<_>>());
            part.fill(0.0);
            all.chunks_exact(n).for_each(|theirs| part.iter_mut().zip(theirs).for_each(|(sum, x)| *sum += x));
        }
    }

    /// The sum of one number a process.
    pub fn add_one(&self, x: f64) -> f64 {
        let mut list = [x];
        self.add_up(&mut list);
        list[0]
    }
}

/// Numbers of each process that are added up at once: what a process holds for it is this many for each of the others.
const ADDED_AT_ONCE: usize = 1 << 16;

/// Shares are alike when they divide alike.
impl PartialEq for Share {
    fn eq(&self, other: &Share) -> bool {
        self.ends == other.ends && self.team.rank() == other.team.rank()
    }
}
