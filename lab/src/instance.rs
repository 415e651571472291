//! A planted chain and one trajectory of it, with the errors against the truth.

use metastate::aggregate::WeightedChain;
use metastate::simulate::planted;
use metastate::solve::Factors;
use metastate::workspace::errors::{relative_recovery_error, relative_sampling_error};
use metastate::workspace::singular::{TruncatedSvd, truncated_svd};
use metastate::{Chain, Counts, Data, Estimate, WeightsBy};

use crate::Result;
use crate::plan::Key;

/// P*, a trajectory's counts, and the estimates (2.1) and (2.2).
pub struct Instance {
    pub key: Key,
    pub trajectory: u64,
    pub exact: Chain,
    pub counts: Counts,
    pub data: Data,
}

impl Instance {
    /// The chain and its trajectory are both drawn anew for each number, so that the spread over trajectories holds both.
    pub fn new(key: Key, trajectory: u64, seed: u64) -> Result<Self> {
        let seed = seed.wrapping_add(trajectory);
        let truth = planted(key.d, key.r, seed)?;
        let counts = truth.sample_counts(key.ratio * (key.d * key.d) as u64, seed)?;
        let data = Data::from_counts(&counts, &Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() })?;
        Ok(Instance { key, trajectory, exact: truth.chain()?, counts, data })
    }

    /// The chain estimated from the trajectory.
    pub fn chain(&self) -> &Chain {
        self.data.chain()
    }

    /// relRE; any factors, also of mixed sign.
    pub fn recovery(&self, x: &Factors) -> f64 {
        relative_recovery_error(self.chain().weights(), x, self.exact.p())
    }

    /// relSE.
    pub fn sampling(&self) -> f64 {
        relative_sampling_error(self.chain().weights(), self.chain().p(), self.exact.p())
    }

    /// sigma_1, sigma_r, sigma_(r+1) of `Xi P`.
    pub fn sigma(&self) -> [f64; 3] {
        let weighted = WeightedChain { p: self.chain().p(), weights: self.chain().weights() };
        let values = truncated_svd(&weighted, &TruncatedSvd::new(self.key.r + 1, 0)).values;
        let at = |k: usize| values.get(k).copied().unwrap_or(0.0);
        [at(0), at(self.key.r - 1), at(self.key.r)]
    }

    /// A lambda near the best one, from the noise alone: sigma_(r+1) / d.
    pub fn noise_level(&self) -> f64 {
        self.sigma()[2] / self.key.d as f64
    }
}
