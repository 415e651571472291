//! Folds of the data: parts that are held out in turn, so that a model is judged on transitions that it has not seen.
//!
//! Trips are dealt at random, each into any fold. Frames of a trajectory depend on each other, so trajectories are cut into
//! contiguous blocks that are held out whole; a pair of frames that spans a border belongs to no block.

use rand::{RngExt, SeedableRng};
use rand_distr::{Binomial, Distribution};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{CountMode, TransitionCounter};
use crate::counts::StateIndex;
use crate::error::{Error, Result};
use crate::linalg::Csr;

/// A frame without a state: the end of a trajectory, or a gap in it.
pub const NO_STATE: u32 = u32::MAX;
/// Beyond this many transitions, `f64` counts no longer tell neighbours apart.
const MOST_TRANSITIONS: f64 = 9e15;
/// Up to this many transitions of one pair are dealt one by one.
const DEALT_SINGLY: u64 = 8;

/// The data in K disjoint parts. A part is a list of places in the whole and what of them is in it: five bytes an entry where counts are small, and none of its own for the pattern.
///
/// ```
/// use metastate::{Csr, Folds};
///
/// let counts = Csr::from_triplets(2, 2, &[(0, 1, 50.0), (1, 0, 50.0)])?;
/// let folds = Folds::of_trips(&counts, 5, 0)?;
/// let held_out: f64 = (0..5).map(|f| folds.held_out(f).values().iter().sum::<f64>()).sum();
/// assert_eq!(held_out, 100.0);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Folds {
    parts: Vec<Dealt>,
    whole: Csr,
}

impl Folds {
    /// Deals the transitions into `k` folds: each falls into one of them by chance, all alike, so each count is split by the
    /// multinomial law. Of a count that is not whole, the broken rest is dealt as one.
    pub fn of_trips(counts: &Csr, k: usize, seed: u64) -> Result<Folds> {
        check_number(k)?;
        check_entries(counts)?;
        if let Some(n) = counts.values().iter().find(|n| **n > MOST_TRANSITIONS) {
            return Err(Error::Setting {
                name: "a count",
                value: n.to_string(),
                allowed: "folds are dealt for counts of at most 9e15; divide the weights by a common factor",
            });
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut parts = vec![Dealt::default(); k];
        let mut dealt = vec![0.0; k];
        for (entry, &n) in counts.values().iter().enumerate() {
            deal(n, &mut dealt, &mut rng);
            for (part, &n) in parts.iter_mut().zip(&dealt).filter(|(_, n)| **n > 0.0) {
                part.push(entry as u32, n);
            }
        }
        parts.iter_mut().for_each(Dealt::shrink);
        Ok(Folds { parts, whole: counts.clone() })
    }

    /// Block `b` of a trajectory goes to fold `b mod k`. The whole is the sum of the blocks: pairs across borders are in none.
    pub fn of_blocks(blocks: &[Csr], k: usize) -> Result<Folds> {
        check_number(k)?;
        if blocks.len() < k {
            return Err(Error::Setting {
                name: "the number of folds",
                value: k.to_string(),
                allowed: "there are fewer blocks of frames than folds; ask for fewer folds",
            });
        }
        let parts: Vec<Csr> = (0..k).map(|f| sum(blocks.iter().skip(f).step_by(k))).collect::<Result<_>>()?;
        let whole = sum(parts.iter())?;
        check_entries(&whole)?;
        let parts = parts.iter().map(|part| Dealt::of(part, &whole)).collect();
        Ok(Folds { parts, whole })
    }

    /// Number of folds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Never true: there are at least two.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The sum of all folds.
    #[must_use]
    pub fn whole(&self) -> &Csr {
        &self.whole
    }

    /// The transitions of fold `f`.
    #[must_use]
    pub fn held_out(&self, f: usize) -> Csr {
        self.together(self.parts[f..=f].iter())
    }

    /// How many transitions fold `f` has.
    #[must_use]
    pub fn size(&self, f: usize) -> f64 {
        let mut total = 0.0;
        self.parts[f].for_each(|_, n| total += n);
        total
    }

    /// Two halves that share no transition: the folds of even and of odd number.
    #[must_use]
    pub fn halves(&self) -> (Csr, Csr) {
        (self.together(self.parts.iter().step_by(2)), self.together(self.parts.iter().skip(1).step_by(2)))
    }

    /// All the others.
    #[must_use]
    pub fn training(&self, f: usize) -> Csr {
        self.together(self.parts.iter().enumerate().filter(|(g, _)| *g != f).map(|(_, part)| part))
    }

    /// The sum of some parts, added up in their order.
    fn together<'a>(&'a self, parts: impl Iterator<Item = &'a Dealt>) -> Csr {
        let mut values = vec![0.0; self.whole.nonzeros()];
        parts.for_each(|part| part.for_each(|entry, n| values[entry] += n));
        self.whole.with_values(values)
    }
}

/// What one part has of the whole.
#[derive(Debug, Clone, PartialEq, Default)]
struct Dealt {
    /// Places in the whole, ascending.
    entries: Vec<u32>,
    counts: PackedCounts,
}

/// Whole numbers up to 255 take a byte.
#[derive(Debug, Clone, PartialEq)]
enum PackedCounts {
    Small(Vec<u8>),
    Any(Vec<f64>),
}

impl Default for PackedCounts {
    fn default() -> Self {
        PackedCounts::Small(Vec::new())
    }
}

impl Dealt {
    fn of(part: &Csr, whole: &Csr) -> Self {
        let mut dealt = Dealt::default();
        for i in 0..whole.rows() {
            let ((columns, _), (own, counts)) = (whole.row(i), part.row(i));
            let first = whole.indptr()[i];
            let mut at = 0;
            for (j, &n) in own.iter().zip(counts) {
                // Every column of a part is one of the whole's, and both ascend.
                at += columns[at..].iter().take_while(|c| *c < j).count();
                dealt.push((first + at) as u32, n);
            }
        }
        dealt.shrink();
        dealt
    }

    fn push(&mut self, entry: u32, n: f64) {
        self.entries.push(entry);
        match &mut self.counts {
            PackedCounts::Any(counts) => counts.push(n),
            PackedCounts::Small(counts) if f64::from(n as u8) == n => counts.push(n as u8),
            PackedCounts::Small(counts) => {
                let wide = counts.iter().map(|n| f64::from(*n)).chain([n]).collect();
                self.counts = PackedCounts::Any(wide);
            }
        }
    }

    fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        match &mut self.counts {
            PackedCounts::Small(counts) => counts.shrink_to_fit(),
            PackedCounts::Any(counts) => counts.shrink_to_fit(),
        }
    }

    fn for_each(&self, mut f: impl FnMut(usize, f64)) {
        match &self.counts {
            PackedCounts::Small(counts) => self.entries.iter().zip(counts).for_each(|(&e, &n)| f(e as usize, f64::from(n))),
            PackedCounts::Any(counts) => self.entries.iter().zip(counts).for_each(|(&e, &n)| f(e as usize, n)),
        }
    }
}

fn check_entries(counts: &Csr) -> Result<()> {
    if u32::try_from(counts.nonzeros()).is_ok() {
        return Ok(());
    }
    Err(Error::Setting {
        name: "the number of pairs",
        value: counts.nonzeros().to_string(),
        allowed: "at most 4.2e9 different pairs can be dealt into folds; leave out states that hardly occur",
    })
}

/// Cuts frames ([`NO_STATE`] between trajectories and at gaps) into `blocks` contiguous blocks of equal length and counts each by
/// itself, `d` states. No pair spans a border.
pub fn count_blocks(frames: &[u32], d: usize, lag: usize, mode: CountMode, blocks: usize) -> Result<Vec<Csr>> {
    let length = frames.len().div_ceil(blocks.max(1)).max(1);
    let mut counted = Vec::with_capacity(blocks);
    for block in frames.chunks(length) {
        let mut counter = TransitionCounter::new(lag, mode)?;
        block.split(|s| *s == NO_STATE).filter(|piece| !piece.is_empty()).for_each(|piece| counter.push(piece));
        counted.push(counter.finish(StateIndex::numbered(d))?.csr);
    }
    counted.resize(blocks.max(counted.len()), Csr::from_triplets(d, d, &[])?);
    Ok(counted)
}

fn check_number(k: usize) -> Result<()> {
    if (2..=1000).contains(&k) {
        return Ok(());
    }
    Err(Error::Setting { name: "the number of folds", value: k.to_string(), allowed: "it must be between 2 and 1000" })
}

/// Splits one count.
fn deal(n: f64, dealt: &mut [f64], rng: &mut Xoshiro256PlusPlus) {
    let k = dealt.len();
    dealt.fill(0.0);
    let units = n.ceil() as u64;
    let singly = if units > DEALT_SINGLY { 1 } else { units };
    let mut rest = units - singly;
    for f in 0..if rest > 0 { k } else { 0 } {
        // Of those that are left, each falls into this fold with probability 1 / (folds left).
        let here = if f + 1 == k { rest } else { Binomial::new(rest, 1.0 / (k - f) as f64).map_or(0, |law| law.sample(rng)) };
        dealt[f] += here as f64;
        rest -= here;
    }
    for unit in 0..singly {
        // The last unit carries the broken rest.
        dealt[rng.random_range(0..k)] += if unit + 1 == singly { 1.0 - (n.ceil() - n) } else { 1.0 };
    }
}

/// The sum of matrices of one size.
pub(crate) fn sum<'a>(matrices: impl Iterator<Item = &'a Csr> + Clone) -> Result<Csr> {
    let Some(first) = matrices.clone().next() else { return Err(Error::Empty { what: "the list of blocks" }) };
    let (rows, cols) = (first.rows(), first.cols());
    for m in matrices.clone() {
        if (m.rows(), m.cols()) != (rows, cols) {
            return Err(Error::SizeMismatch { what: "a block of counts", expected: rows, found: m.rows() });
        }
    }
    let mut total = GrowingCsr::default();
    let mut entries: Vec<(u32, f64)> = Vec::new();
    for i in 0..rows {
        entries.clear();
        matrices.clone().for_each(|m| entries.extend(m.row(i).0.iter().copied().zip(m.row(i).1.iter().copied())));
        entries.sort_by_key(|e| e.0); // stable: added up in the order of the matrices
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            total.indices.push(same[0].0);
            total.values.push(same.iter().map(|e| e.1).sum());
        }
        total.end_row();
    }
    total.into_csr(cols)
}

/// A sparse matrix in the making.
#[derive(Debug, Clone, Default)]
struct GrowingCsr {
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl GrowingCsr {
    fn end_row(&mut self) {
        self.ends.push(self.indices.len());
    }

    fn into_csr(self, cols: usize) -> Result<Csr> {
        let rows = self.ends.len();
        let indptr = std::iter::once(0).chain(self.ends).collect();
        Csr::from_parts(rows, cols, indptr, self.indices, self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_counts(d: u32, most: u32, broken: f64) -> Csr {
        let mut seed = 5u64;
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as u32
        };
        let triplets: Vec<_> = (0..d * 6).map(|_| (next() % d, next() % d, f64::from(1 + next() % most) + broken)).collect();
        Csr::from_triplets(d as usize, d as usize, &triplets).unwrap()
    }

    #[test]
    fn folds_of_trips_add_up_and_have_like_sizes() {
        for (most, broken) in [(1, 0.0), (3, 0.0), (5000, 0.0), (40, 0.25)] {
            let counts = random_counts(50, most, broken);
            let folds = Folds::of_trips(&counts, 5, 7).unwrap();
            let total = folds.together(folds.parts.iter());
            assert_eq!(total.indices(), counts.indices());
            for (a, b) in total.values().iter().zip(counts.values()) {
                assert!((a - b).abs() <= 1e-9 * b, "{a} {b}");
            }
            let sizes: Vec<f64> = (0..5).map(|f| folds.size(f)).collect();
            let all: f64 = sizes.iter().sum();
            // Five standard deviations of the binomial law of a fold's size.
            assert!(sizes.iter().all(|s| (s - all / 5.0).abs() < 5.0 * (0.16 * all).sqrt()), "{sizes:?}");
            for f in 0..5 {
                let both = sum([&folds.training(f), &folds.held_out(f)].into_iter()).unwrap();
                assert_eq!(both.indices(), counts.indices());
            }
            assert_eq!(folds, Folds::of_trips(&counts, 5, 7).unwrap());
            assert_ne!(folds.parts, Folds::of_trips(&counts, 5, 8).unwrap().parts);
        }
    }

    #[test]
    fn a_large_count_falls_on_all_folds_alike() {
        let counts = Csr::from_triplets(2, 2, &[(0, 1, 1e6), (1, 0, 1e6)]).unwrap();
        let folds = Folds::of_trips(&counts, 4, 1).unwrap();
        for f in 0..4 {
            for value in folds.held_out(f).values() {
                // 250,000 expected; the standard deviation is about 306.
                assert!((value - 250_000.0).abs() < 2000.0, "{value}");
            }
        }
    }

    #[test]
    fn no_pair_of_a_block_spans_a_border() {
        // State = number of the block: a pair across a border would be an entry off the diagonal.
        let frames: Vec<u32> = (0..12u32).flat_map(|b| [b; 10]).collect();
        for (lag, mode) in [(1, CountMode::Sliding), (3, CountMode::Sliding), (3, CountMode::Strided)] {
            let blocks = count_blocks(&frames, 12, lag, mode, 12).unwrap();
            assert_eq!(blocks.len(), 12);
            for (b, block) in blocks.iter().enumerate() {
                let expected = if mode == CountMode::Sliding { 10 - lag } else { 9 / lag } as f64;
                assert_eq!(block.triplets().collect::<Vec<_>>(), [(b as u32, b as u32, expected)]);
            }
            let folds = Folds::of_blocks(&blocks, 3).unwrap();
            assert_eq!(folds.held_out(1).triplets().map(|t| t.0).collect::<Vec<_>>(), [1, 4, 7, 10]);
            assert_eq!(folds.training(1).nonzeros(), 8);
        }
    }

    #[test]
    fn gaps_break_a_block() {
        let blocks = count_blocks(&[0, 0, NO_STATE, 1, 1, 1], 2, 1, CountMode::Sliding, 1).unwrap();
        assert_eq!(blocks[0].triplets().collect::<Vec<_>>(), [(0, 0, 1.0), (1, 1, 2.0)]);
    }

    #[test]
    fn too_few_blocks_or_folds_are_refused() {
        let empty = Csr::from_triplets(2, 2, &[]).unwrap();
        assert!(Folds::of_trips(&empty, 1, 0).is_err());
        assert!(Folds::of_blocks(&[empty], 2).is_err());
    }
}
