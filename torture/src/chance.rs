//! Chance with a seed: SplitMix64 (Steele, Lea, Flood 2014).

/// A stream of numbers that depends on its seed alone.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The stream of one case of one campaign.
    pub fn new(seed: u64, case: u64) -> Self {
        let mut chance = Chance(seed ^ case.wrapping_mul(0xD1B5_4A32_D192_ED03));
        chance.bits();
        chance
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`; zero for zero.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % (n.max(1) as u64)) as usize
    }

    /// From 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}
