//! Transitions of a trajectory as its frames come by: only `lag` frames are remembered, however long it is.

use metastate::workspace::folds::NO_STATE;
use metastate::{CountMode, Ledger, LedgerUnit};

use crate::counter::{LocalCounter, PairBatch, PairCounter};
use crate::error::Result;

/// Pairs waiting to be counted.
const WAITING: usize = 1 << 20;

/// Counts the lagged pairs of pieces without gaps.
pub(crate) struct Window {
    lag: usize,
    mode: CountMode,
    /// The last `lag` states, the oldest at `frames % lag` (sliding); or the last one on the stride (strided).
    ring: Vec<u32>,
    /// Frames of the piece so far.
    frames: u64,
    waiting: PairBatch,
    pub counter: LocalCounter,
    pub ledger: Ledger,
    /// Frames of pieces long enough.
    pub kept: u64,
    /// All frames in their order with [`NO_STATE`] between pieces, when they are wanted.
    pub recorded: Option<Vec<u32>>,
}

impl Window {
    pub fn new(lag: usize, mode: CountMode, memory_limit: Option<u64>) -> Self {
        let counter = LocalCounter::new(memory_limit);
        Window {
            lag,
            mode,
            ring: Vec::new(),
            frames: 0,
            waiting: PairBatch::default(),
            counter,
            ledger: Ledger::new(),
            kept: 0,
            recorded: None,
        }
    }

    /// The next frame.
    pub fn push(&mut self, state: u32) -> Result<()> {
        if let Some(frames) = &mut self.recorded {
            frames.push(state);
        }
        let at = (self.frames % self.lag as u64) as usize;
        match self.mode {
            CountMode::Sliding => match self.ring.get_mut(at) {
                Some(slot) => {
                    self.waiting.push(*slot, state);
                    *slot = state;
                }
                None => self.ring.push(state),
            },
            CountMode::Strided if at == 0 => match self.ring.first_mut() {
                Some(last) => {
                    self.waiting.push(*last, state);
                    *last = state;
                }
                None => self.ring.push(state),
            },
            CountMode::Strided => {}
        }
        self.frames += 1;
        if self.waiting.pairs.len() >= WAITING { self.flush() } else { Ok(()) }
    }

    /// The piece ends: at a gap, or with its trajectory. `place` names it when it was too short.
    pub fn end(&mut self, place: impl FnOnce() -> String) {
        if let Some(frames) = self.recorded.as_mut().filter(|f| f.last().is_some_and(|s| *s != NO_STATE)) {
            frames.push(NO_STATE);
        }
        if self.frames > 0 && self.frames <= self.lag as u64 {
            // The weight of this entry is the number of frames, as in the library.
            self.ledger.add("too-short-for-lag", LedgerUnit::Trajectories, 1, self.frames as f64, [place()]);
        } else {
            self.kept += self.frames;
        }
        self.frames = 0;
        self.ring.clear();
    }

    /// Counts what is waiting.
    pub fn flush(&mut self) -> Result<()> {
        self.counter.add(vec![std::mem::take(&mut self.waiting)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metastate::{Counts, StateIndex};

    #[test]
    fn agrees_with_the_library() {
        let mut seed = 7u64;
        let frames: Vec<Option<u32>> = (0..5000)
            .map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
                let n = (seed >> 40) % 400;
                (n > 3).then_some(n as u32 % 6)
            })
            .collect();
        for mode in [CountMode::Sliding, CountMode::Strided] {
            for lag in [1, 2, 7, 50] {
                let mut window = Window::new(lag, mode, None);
                for frame in &frames {
                    match frame {
                        Some(i) => window.push(*i).unwrap(),
                        None => window.end(String::new),
                    }
                }
                window.end(String::new);
                window.flush().unwrap();
                let mut triplets = Vec::new();
                window.counter.visit(&mut |i, j, w| triplets.push((i, j, w))).unwrap();
                let ours = Counts::from_triplets(StateIndex::numbered(6), &triplets).unwrap();
                let library = Counts::from_trajectories(StateIndex::numbered(6), [&frames], lag, mode).unwrap();
                assert_eq!(ours.csr(), library.csr(), "lag {lag}");
                let short = |l: &Ledger| l.get("too-short-for-lag", LedgerUnit::Trajectories).map(|e| (e.count, e.weight));
                assert_eq!(short(&window.ledger), short(library.ledger()));
            }
        }
    }
}
