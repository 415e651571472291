//! Drawing from a discrete law in constant time (Walker's aliases, built by Vose's method).

use rand::Rng;

/// A discrete law on `0..len`, ready to draw from: one random word and one look-up a draw.
///
/// ```
/// use metastate::simulate::AliasTable;
/// use rand::SeedableRng;
///
/// let table = AliasTable::new(&[0.0, 1.0, 3.0]).unwrap();
/// let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(0);
/// let drawn: Vec<u32> = (0..1000).map(|_| table.draw(&mut rng)).collect();
/// assert!(!drawn.contains(&0)); // a weight of zero is never drawn
/// assert!(drawn.iter().filter(|&&k| k == 2).count() > 650);
/// ```
#[derive(Debug, Clone)]
pub struct AliasTable {
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Below this (as a fraction of 2^32) the slot's own number is drawn, else its alias.
    own: u32,
    alias: u32,
}

impl AliasTable {
    /// Probabilities in proportion to `weights`. `None` when they are not all finite and non-negative, or sum to zero.
    #[must_use]
    pub fn new(weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let valid = weights.iter().all(|w| w.is_finite() && *w >= 0.0) && total > 0.0 && total.is_finite();
        if !valid || u32::try_from(weights.len()).is_err() {
            return None;
        }
        let n = weights.len();
        let mut left: Vec<f64> = weights.iter().map(|w| w / total * n as f64).collect();
        let mut slots: Vec<Slot> = (0..n as u32).map(|k| Slot { own: u32::MAX, alias: k }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&k| left[k] < 1.0);
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            slots[s] = Slot { own: (left[s] * 4294967296.0) as u32, alias: l as u32 };
            left[l] -= 1.0 - left[s];
            if left[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        // What is left is full up to rounding and draws itself. A weight of zero must never be drawn, though: should
        // rounding have used up all donors, it takes the heaviest as its alias.
        let heaviest = (0..n).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap_or(0);
        for s in small {
            if weights[s] == 0.0 {
                slots[s] = Slot { own: 0, alias: heaviest as u32 };
            }
        }
        Some(AliasTable { slots })
    }

    /// Number of outcomes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Never true: a law has an outcome.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// One draw.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        // The high word of the product is the slot, the low word a uniform fraction within it.
        let product = u128::from(rng.next_u64()) * self.slots.len() as u128;
        let k = (product >> 64) as u32;
        let slot = self.slots[k as usize];
        if ((product as u64) >> 32) < u64::from(slot.own) { k } else { slot.alias }
    }
}
