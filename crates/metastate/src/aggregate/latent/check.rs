//! The Chapman-Kolmogorov check: what the model predicts for n steps against what was counted at n lags.

use super::{LatentChain, Lumped};
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat, thin};

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// One pair of parts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CheckEntry {
    /// From this part,
    pub from: usize,
    /// to this one.
    pub to: usize,
    /// `sum_(i in A) w_i [X^n]_iB`, w the counted departures of A: both sides start alike.
    pub predicted: f64,
    /// Share of the counted transitions out of A that led into B.
    pub counted: f64,
    /// 95 % interval of the counted share,
    pub low: f64,
    /// by Wilson's score with the independent transitions only.
    pub high: f64,
    /// Transitions out of A.
    pub transitions: f64,
}

impl CheckEntry {
    /// Whether the prediction lies in the interval.
    #[must_use]
    pub fn agrees(&self) -> bool {
        (self.low..=self.high).contains(&self.predicted)
    }
}

/// All pairs of parts whose first was left at all. `counts` are those at `steps` lags, in the order of the states. `overlap` is the
/// number of counted pairs that share the information of one: the lag in frames for a sliding window, 1 for strided counts.
pub fn chapman_kolmogorov(
    chain: &LatentChain,
    lumped: &Lumped,
    part: &[usize],
    counts: &Csr,
    steps: u64,
    overlap: f64,
) -> Result<Vec<CheckEntry>> {
    let (d, parts) = (chain.states(), lumped.parts());
    for (what, found) in [("the count matrix (rows)", counts.rows()), ("the count matrix (columns)", counts.cols())] {
        if found != d {
            return Err(Error::SizeMismatch { what, expected: d, found });
        }
    }
    if steps == 0 || !(overlap >= 1.0 && overlap.is_finite()) {
        let value = format!("{steps} steps, overlap {overlap}");
        return Err(Error::Setting { name: "the check", value, allowed: "both must be at least 1" });
    }
    let departures = counts.row_sums();
    let starts = lumped.mean_memberships(chain, part, &departures)?;
    let between = lump(counts, part, parts);
    let mut entries = Vec::new();
    for a in 0..parts {
        let total: f64 = between.row(a).iter().sum();
        if total <= 0.0 {
            continue;
        }
        let mut law = starts.row(a).to_vec();
        chain.advance(&mut law, steps - 1);
        for b in 0..parts {
            let counted = between[(a, b)] / total;
            let (low, high) = wilson(counted, total / overlap);
            let predicted = thin::dot(&law, lumped.arrivals().row(b));
            entries.push(CheckEntry { from: a, to: b, predicted, counted, low, high, transitions: total });
        }
    }
    Ok(entries)
}

/// Counts between parts.
fn lump(counts: &Csr, part: &[usize], parts: usize) -> Mat {
    let mut between = Mat::zeros(parts, parts);
    counts.triplets().for_each(|(i, j, n)| between[(part[i as usize], part[j as usize])] += n);
    between
}

/// Wilson's 95 % interval for a share seen in n independent trials.
///
/// ```
/// use metastate::aggregate::latent::wilson;
///
/// let (low, high) = wilson(0.5, 100.0);
/// assert!((low - 0.404).abs() < 1e-3 && (high - 0.596).abs() < 1e-3);
/// ```
#[must_use]
pub fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z2 = Z * Z / n;
    let centre = (share + 0.5 * z2) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / n + 0.25 * z2 / n).max(0.0).sqrt();
    // At the ends the interval ends there; rounding must not say otherwise.
    let low = if share <= 0.0 { 0.0 } else { (centre - half).max(0.0) };
    let high = if share >= 1.0 { 1.0 } else { (centre + half).min(1.0) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn wilson_agrees_with_the_textbook() {
        // Newcombe (1998), table I: 81 of 263 and 0 of 20.
        let (low, high) = wilson(81.0 / 263.0, 263.0);
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5, "{low} {high}");
        let (low, high) = wilson(0.0, 20.0);
        assert!(low == 0.0 && (high - 0.1611).abs() < 5e-5, "{high}");
    }
}
