//! The counted matrix and the model as two pictures of the same bins: shares of all moves, `xi_i p_ij` and `xi_i x_ij`, states
//! ordered by zone and then by membership, summed over bins.

use metastate::Operator;
use metastate::aggregate::Partition;
use metastate::solve::Factors;
use metastate::workspace::Row;
use serde::{Deserialize, Serialize};

/// Bins a side, at most.
const MOST_BINS: usize = 160;

/// Two square pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heat {
    /// Bins a side.
    pub bins: usize,
    /// States in all.
    pub states: usize,
    /// What was counted, row by row.
    pub counted: Vec<f32>,
    /// What the model says.
    pub model: Vec<f32>,
    /// Number of states before the second, third, ... zone in the order of the pictures.
    pub borders: Vec<usize>,
}

impl Heat {
    /// One pass over P, and `(sum_i xi_i U_i) (sum_j V_j)^T` bin by bin for the model.
    pub fn new(p: &dyn Operator, xi: &[f64], factors: &Factors, zones: &Partition) -> Self {
        let (d, s) = (xi.len(), factors.rank());
        let bins = d.min(MOST_BINS);
        let mut order: Vec<usize> = (0..d).collect();
        let key = |&i: &usize| (zones.labels[i], -factors.u[(i, (zones.labels[i] as usize).min(s - 1))]);
        order.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(b)));
        let mut bin = vec![0; d];
        order.iter().enumerate().for_each(|(at, &i)| bin[i] = at * bins / d);

        let mut counted = vec![0.0; bins * bins];
        let (mut from, mut to) = (vec![0.0; bins * s], vec![0.0; bins * s]);
        let mut even = vec![0.0; bins];
        bin.iter().for_each(|&b| even[b] += 1.0 / d as f64);
        for i in 0..d {
            let out = &mut counted[bin[i] * bins..(bin[i] + 1) * bins];
            match p.row(i) {
                // Few states were never left, and each of them would touch all others.
                Row::Uniform => out.iter_mut().zip(&even).for_each(|(o, e)| *o += xi[i] * e),
                row => row.for_each(d, |j, x| out[bin[j]] += xi[i] * x),
            }
            for j in 0..s {
                from[bin[i] * s + j] += xi[i] * factors.u[(i, j)];
                to[bin[i] * s + j] += factors.v[(i, j)];
            }
        }
        let inner = |a: usize, b: usize| (0..s).map(|j| from[a * s + j] * to[b * s + j]).sum::<f64>() as f32;
        let model = (0..bins * bins).map(|at| inner(at / bins, at % bins)).collect();
        let mut borders = zones.sizes.clone();
        borders.pop();
        (1..borders.len()).for_each(|k| borders[k] += borders[k - 1]);
        Heat { bins, states: d, counted: counted.into_iter().map(|x: f64| x as f32).collect(), model, borders }
    }

    /// Says what is not as it must be, for so many states.
    pub fn check(&self, states: usize) -> Result<(), String> {
        let size = self.bins.checked_mul(self.bins);
        let right = (1..=MOST_BINS).contains(&self.bins)
            && self.states == states
            && size == Some(self.counted.len())
            && size == Some(self.model.len())
            && self.borders.iter().all(|b| *b <= states)
            && self.counted.iter().chain(&self.model).all(|x| x.is_finite());
        if right { Ok(()) } else { Err("has pictures of the matrix (`heat`) of another size, or numbers in them that are none".to_owned()) }
    }

    /// The same with fewer bins.
    pub fn coarser(&self, most: usize) -> Heat {
        let bins = self.bins.min(most.max(1));
        let summed = |fine: &[f32]| {
            let mut out = vec![0.0; bins * bins];
            for (at, x) in fine.iter().enumerate() {
                let (i, j) = (at / self.bins * bins / self.bins, at % self.bins * bins / self.bins);
                out[i * bins + j] += x;
            }
            out
        };
        Heat { bins, counted: summed(&self.counted), model: summed(&self.model), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::Heat;

    #[test]
    fn fewer_bins_hold_the_same_sum() {
        let counted: Vec<f32> = (0..49).map(|x| x as f32).collect();
        let heat = Heat { bins: 7, states: 70, model: counted.iter().rev().copied().collect(), counted, borders: vec![30] };
        let coarse = heat.coarser(3);
        assert_eq!((coarse.bins, coarse.counted.len()), (3, 9));
        assert_eq!(coarse.counted.iter().sum::<f32>(), heat.counted.iter().sum::<f32>());
        assert_eq!(coarse.counted[0], 0.0 + 1.0 + 2.0 + 7.0 + 8.0 + 9.0 + 14.0 + 15.0 + 16.0);
        assert_eq!(heat.coarser(100), heat);
    }
}
