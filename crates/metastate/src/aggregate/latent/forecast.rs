//! `start^T X^n = ((start^T U) K^(n-1)) V^T` in `O(d s + s^3 log n)`.

use super::{LatentChain, normalise_rows};
use crate::error::Result;
use crate::linalg::{Mat, thin};

impl LatentChain<'_> {
    /// The law over states `steps` steps after a start from this law.
    pub fn after(&self, start: &[f64], steps: u64) -> Result<Vec<f64>> {
        let mut a = self.memberships_of(start)?;
        if steps == 0 {
            return Ok(start.to_vec());
        }
        self.advance(&mut a, steps - 1);
        Ok(self.destinations_of(&a))
    }

    /// `a^T K^n` by repeated squaring.
    pub(super) fn advance(&self, a: &mut Vec<f64>, mut n: u64) {
        let mut power = self.k.clone();
        let mut next = vec![0.0; a.len()];
        while n > 0 {
            if n & 1 == 1 {
                thin::row_times(a, &power, &mut next);
                std::mem::swap(a, &mut next);
            }
            n >>= 1;
            if n > 0 {
                power = squared(&power);
            }
        }
    }
}

/// Rounding in the row sums would double with every squaring; they are known, so they are restored.
fn squared(k: &Mat) -> Mat {
    let mut out = Mat::default();
    thin::product(k, k, &mut out);
    normalise_rows(&mut out);
    out
}
