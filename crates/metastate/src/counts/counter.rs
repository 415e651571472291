//! Counting transitions as they come, without keeping the trajectory.

use rayon::prelude::*;

use super::{CountMode, Counts, StateIndex};
use crate::error::{Error, Result};
use crate::ledger::{Ledger, LedgerUnit};
use crate::linalg::Csr;

/// Up to so many cells (128 MB) the counts stand in a square table; beyond, pairs are sorted in chunks.
const TABLE_CELLS: usize = 32 << 20;
/// Pairs waiting to be sorted.
const CHUNK: usize = 4 << 20;
/// A slice of frames longer than this is counted by all threads.
const PARALLEL_FRAMES: usize = 4 << 20;

/// Counts transitions piece by piece; [`finish`](Self::finish) gives the [`Counts`]. States may turn up in any order and
/// their number need not be known beforehand. Whole numbers are added, so neither order nor threads change the result.
///
/// ```
/// use metastate::{CountMode, StateIndex, TransitionCounter};
///
/// let mut counter = TransitionCounter::new(1, CountMode::Sliding)?;
/// counter.push(&[0, 1, 1, 0]);
/// counter.push_with_gaps(&[Some(1), None, Some(0), Some(1)]); // nothing is counted across the gap
/// let counts = counter.finish(StateIndex::numbered(2))?;
/// assert_eq!(counts.csr().row(0), (&[1][..], &[2.0][..]));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TransitionCounter {
    lag: usize,
    mode: CountMode,
    store: Store,
    /// One more than the largest state met.
    states: usize,
    trajectories: u64,
    ledger: Ledger,
}

#[derive(Debug, Clone)]
enum Store {
    /// `side x side` cells. `filled` bounds every cell, so that none can overflow unseen.
    Table {
        side: usize,
        cells: Vec<u32>,
        filled: u64,
        spilled: Runs,
    },
    Chunks {
        waiting: Vec<u64>,
        runs: Runs,
    },
}

impl TransitionCounter {
    /// An empty counter. The lag is in frames and at least 1.
    pub fn new(lag: usize, mode: CountMode) -> Result<Self> {
        if lag == 0 {
            return Err(Error::Setting { name: "lag", value: "0".into(), allowed: "the lag must be at least 1 frame" });
        }
        let store = Store::Table { side: 0, cells: Vec::new(), filled: 0, spilled: Runs::default() };
        Ok(TransitionCounter { lag, mode, store, states: 0, trajectories: 0, ledger: Ledger::new() })
    }

    /// Counts the transitions of one whole trajectory.
    pub fn push(&mut self, trajectory: &[u32]) {
        let place = self.trajectories;
        self.trajectories += 1;
        self.push_piece(trajectory, || format!("trajectory {place}"));
    }

    /// Counts one trajectory with unassigned frames. These break it: no transition spans a gap.
    pub fn push_with_gaps(&mut self, trajectory: &[Option<u32>]) {
        let place = self.trajectories;
        self.trajectories += 1;
        if trajectory.is_empty() {
            return self.push_piece(&[], || format!("trajectory {place}"));
        }
        let mut piece = Vec::with_capacity(trajectory.len());
        let mut start = 0;
        for (t, frame) in trajectory.iter().enumerate() {
            match frame {
                Some(i) => {
                    if piece.is_empty() {
                        start = t;
                    }
                    piece.push(*i);
                }
                None => {
                    self.ledger.add("unassigned-frame", LedgerUnit::Frames, 1, 1.0, [format!("trajectory {place}, frame {t}")]);
                    if !piece.is_empty() {
                        self.push_piece(&piece, || format!("trajectory {place} from frame {start}"));
                        piece.clear();
                    }
                }
            }
        }
        if !piece.is_empty() {
            self.push_piece(&piece, || format!("trajectory {place} from frame {start}"));
        }
    }

    /// Counts one transition, whatever the lag.
    pub fn push_pair(&mut self, from: u32, to: u32) {
        self.make_room(from.max(to), 1);
        self.store.count(&[from, to], 1, 1);
    }

    /// Counts many transitions, whatever the lag.
    pub fn push_pairs(&mut self, pairs: &[(u32, u32)]) {
        let largest = pairs.iter().map(|&(i, j)| i.max(j)).max().unwrap_or(0);
        // In parts, so that no cell of the table can overflow.
        for part in pairs.chunks(CHUNK) {
            self.make_room(largest, part.len() as u64);
            if let Store::Table { side, cells, .. } = &mut self.store {
                part.iter().for_each(|&(i, j)| cells[i as usize * *side + j as usize] += 1);
            } else {
                part.iter().for_each(|&(i, j)| self.store.count_one(i, j));
            }
        }
    }

    /// The lagged pairs of a piece without gaps.
    fn push_piece(&mut self, piece: &[u32], place: impl FnOnce() -> String) {
        if piece.len() <= self.lag {
            // The weight of this entry is the number of frames.
            self.ledger.add("too-short-for-lag", LedgerUnit::Trajectories, 1, piece.len() as f64, [place()]);
            return;
        }
        let stride = match self.mode {
            CountMode::Sliding => 1,
            CountMode::Strided => self.lag,
        };
        let largest = piece.iter().copied().max().unwrap_or(0);
        // Parts overlap by the lag, begin on the stride, and hold each pair once.
        let step = (1 << 30) / stride * stride;
        let mut start = 0;
        while start + self.lag < piece.len() {
            let part = &piece[start..piece.len().min(start.saturating_add(step.max(stride)).saturating_add(self.lag))];
            self.make_room(largest, part.len() as u64);
            self.store.count(part, self.lag, stride);
            start += step.max(stride);
        }
    }

    fn make_room(&mut self, largest: u32, pairs: u64) {
        self.states = self.states.max(largest as usize + 1);
        self.store.make_room(self.states, pairs);
    }

    /// The counts, over the states given; the rows of `states` are the numbers that were pushed.
    pub fn finish(self, states: StateIndex) -> Result<Counts> {
        let d = states.len();
        if self.states > d {
            return Err(Error::IndexOutOfRange { what: "state", index: self.states as u64 - 1, len: d });
        }
        let csr = self.store.into_csr(d)?;
        Counts::assemble(states, csr, self.lag, self.mode, self.ledger)
    }
}

impl Store {
    /// Room for states below `states` and for so many more pairs.
    fn make_room(&mut self, states: usize, pairs: u64) {
        let Store::Table { side, cells, filled, spilled } = self else { return };
        if *filled + pairs > u64::from(u32::MAX) {
            spilled.add(table_run(*side, cells));
            cells.fill(0);
            *filled = 0;
        }
        *filled += pairs;
        if states <= *side {
            return;
        }
        if states.saturating_mul(states) > TABLE_CELLS {
            let mut runs = std::mem::take(spilled);
            runs.add(table_run(*side, cells));
            *self = Store::Chunks { waiting: Vec::with_capacity(CHUNK), runs };
            return;
        }
        // Grow by half as much again where the table stays small: states often turn up one by one.
        let grown = states.max(*side + *side / 2).max(64);
        // Near its limit it grows to the limit at once: growing by one would copy the table once a state.
        let grown = grown.min(TABLE_CELLS.isqrt());
        let mut larger = vec![0u32; grown * grown];
        for i in 0..*side {
            larger[i * grown..i * grown + *side].copy_from_slice(&cells[i * *side..(i + 1) * *side]);
        }
        *cells = larger;
        *side = grown;
    }

    #[inline]
    fn count_one(&mut self, i: u32, j: u32) {
        match self {
            Store::Table { side, cells, .. } => cells[i as usize * *side + j as usize] += 1,
            Store::Chunks { waiting, runs } => {
                waiting.push(key(i, j));
                if waiting.len() >= CHUNK {
                    runs.add(sorted_run(waiting));
                }
            }
        }
    }

    /// All pairs `(piece[t], piece[t + lag])` with t = 0, stride, 2 stride, ...
    fn count(&mut self, piece: &[u32], lag: usize, stride: usize) {
        let starts = piece.len() - lag;
        match self {
            Store::Table { side, cells, .. } => {
                let (side, threads) = (*side, rayon::current_num_threads());
                if starts <= PARALLEL_FRAMES || threads == 1 || cells.len() > PARALLEL_FRAMES {
                    return fill_table(cells, side, piece, lag, stride);
                }
                // One table a thread; adding whole numbers gives the same sum for any number of them.
                let step = starts.div_ceil(threads).next_multiple_of(stride);
                let tables: Vec<Vec<u32>> = (0..starts.div_ceil(step))
                    .into_par_iter()
                    .map(|k| {
                        let mut table = vec![0u32; cells.len()];
                        let part = &piece[k * step..piece.len().min((k + 1) * step + lag)];
                        fill_table(&mut table, side, part, lag, stride);
                        table
                    })
                    .collect();
                for table in tables {
                    cells.iter_mut().zip(table).for_each(|(c, t)| *c += t);
                }
            }
            Store::Chunks { .. } => {
                for t in (0..starts).step_by(stride) {
                    self.count_one(piece[t], piece[t + lag]);
                }
            }
        }
    }

    fn into_csr(self, d: usize) -> Result<Csr> {
        let run = match self {
            Store::Table { side, cells, mut spilled, .. } => {
                spilled.add(table_run(side, &cells));
                spilled.into_one()
            }
            Store::Chunks { mut waiting, mut runs } => {
                runs.add(sorted_run(&mut waiting));
                runs.into_one()
            }
        };
        let mut indptr = vec![0usize; d + 1];
        for &(key, _) in &run {
            indptr[(key >> 32) as usize + 1] += 1;
        }
        for i in 0..d {
            indptr[i + 1] += indptr[i];
        }
        let indices = run.iter().map(|&(key, _)| key as u32).collect();
        let values = run.iter().map(|&(_, n)| n as f64).collect();
        Csr::from_parts(d, d, indptr, indices, values)
    }
}

fn fill_table(cells: &mut [u32], side: usize, piece: &[u32], lag: usize, stride: usize) {
    let starts = piece.len() - lag;
    if stride == 1 {
        for (&i, &j) in piece[..starts].iter().zip(&piece[lag..]) {
            cells[i as usize * side + j as usize] += 1;
        }
    } else {
        for t in (0..starts).step_by(stride) {
            cells[piece[t] as usize * side + piece[t + lag] as usize] += 1;
        }
    }
}

fn key(i: u32, j: u32) -> u64 {
    u64::from(i) << 32 | u64::from(j)
}

/// Pairs in ascending order, each with its number.
type Run = Vec<(u64, u64)>;

fn table_run(side: usize, cells: &[u32]) -> Run {
    let mut run = Run::new();
    for (i, row) in cells.chunks_exact(side.max(1)).enumerate() {
        run.extend(row.iter().enumerate().filter(|(_, n)| **n > 0).map(|(j, &n)| (key(i as u32, j as u32), u64::from(n))));
    }
    run
}

fn sorted_run(waiting: &mut Vec<u64>) -> Run {
    waiting.par_sort_unstable();
    let run = waiting.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
    waiting.clear();
    run
}

/// Sorted runs, merged when two of like size meet: each pair is moved only a logarithmic number of times.
#[derive(Debug, Clone, Default)]
struct Runs {
    runs: Vec<Run>,
}

impl Runs {
    fn add(&mut self, run: Run) {
        if run.is_empty() {
            return;
        }
        let mut last = run;
        while let Some(previous) = self.runs.pop() {
            if previous.len() > 2 * last.len() {
                self.runs.push(previous);
                break;
            }
            last = merged(&previous, &last);
        }
        self.runs.push(last);
    }

    fn into_one(mut self) -> Run {
        let mut last = self.runs.pop().unwrap_or_default();
        while let Some(previous) = self.runs.pop() {
            last = merged(&previous, &last);
        }
        last
    }
}

fn merged(a: &Run, b: &Run) -> Run {
    let mut out = Run::with_capacity(a.len().max(b.len()));
    let (mut x, mut y) = (0, 0);
    while x < a.len() && y < b.len() {
        match a[x].0.cmp(&b[y].0) {
            std::cmp::Ordering::Less => {
                out.push(a[x]);
                x += 1;
            }
            std::cmp::Ordering::Greater => {
                out.push(b[y]);
                y += 1;
            }
            std::cmp::Ordering::Equal => {
                out.push((a[x].0, a[x].1 + b[y].1));
                x += 1;
                y += 1;
            }
        }
    }
    out.extend_from_slice(&a[x..]);
    out.extend_from_slice(&b[y..]);
    out
}
