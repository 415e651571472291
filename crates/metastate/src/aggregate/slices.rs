//! What a model with slices says of each of them: when the transitions of each meta-state happen, and where they lead then.

use crate::chain::Slices;
use crate::error::{Error, Result};
use crate::linalg::{Mat, thin};
use crate::solve::Factors;

/// Flows between meta-states in each slice.
///
/// ```
/// use metastate::aggregate::SliceFlows;
/// use metastate::solve::Factors;
/// use metastate::{Mat, Slices, StateIndex};
///
/// // Two slices, two states that are their own meta-states. In slice 0 state 0 goes to state 1, in slice 1 state 1 goes to state 0.
/// let slices = Slices::new(StateIndex::numbered(2), vec![(0, 0), (0, 1), (1, 0), (1, 1)], 2)?;
/// let u = Mat::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
/// let v = Mat::from_vec(4, 2, vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])?;
/// let flows = SliceFlows::new(&Factors { u, v }, &slices, &[0.5, 0.5])?;
/// assert_eq!(flows.flows[0].row(0), [0.0, 0.5]); // half of all transitions
/// assert_eq!(flows.when.row(1), [0.0, 1.0]); // meta-state 1 is left in slice 1 only
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SliceFlows {
    /// One matrix a slice: entry (j, k) is the share of all transitions that leave meta-state j for meta-state k in that slice, `mass_j sum_a V_(h,a),j U_ak`. All entries of all slices sum to one.
    pub flows: Vec<Mat>,
    /// `p(slice | meta-state)`: when the transitions out of each meta-state happen, one row a slice.
    pub when: Mat,
}

impl SliceFlows {
    /// From the factors, whose rows of V are the columns of the slices, and the shares of the states.
    pub fn new(model: &Factors, slices: &Slices, xi: &[f64]) -> Result<Self> {
        let Factors { u, v } = model;
        for (what, expected, found) in
            [("U", slices.states(), u.rows()), ("V", slices.columns().len(), v.rows()), ("the weights", slices.states(), xi.len())]
        {
            if expected != found {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        let (s, mass) = (u.cols(), model.mass(xi));
        let mut when = Mat::zeros(slices.len(), s);
        let mut flows = Vec::with_capacity(slices.len());
        for h in 0..slices.len() {
            let mut flow = Mat::zeros(s, s);
            for c in slices.of(h) {
                let arriving = u.row(slices.columns()[c].1 as usize);
                for (j, &p) in v.row(c).iter().enumerate().filter(|(_, p)| **p > 0.0) {
                    when[(h, j)] += p;
                    flow.row_mut(j).iter_mut().zip(arriving).for_each(|(f, u)| *f += mass[j] * p * u);
                }
            }
            flows.push(flow);
        }
        Ok(SliceFlows { flows, when })
    }

    /// `K_h`: where the meta-states lead in a slice, each row a law; a row of zeros where a meta-state sends nothing then.
    #[must_use]
    pub fn chain(&self, slice: usize) -> Mat {
        let mut k = self.flows[slice].clone();
        for j in 0..k.rows() {
            let sum: f64 = k.row(j).iter().sum();
            if sum > 0.0 {
                k.row_mut(j).iter_mut().for_each(|x| *x /= sum);
            }
        }
        k
    }
}

impl Slices {
    /// The law of where a transition from this law over states leads in a slice, one number a state: `sum_j w_j V_(h,a),j` over `sum_j w_j p(h | j)`, with `w = U^T start`. None where the model has no
    /// transition of these states in that slice.
    pub fn step(&self, model: &Factors, slice: usize, start: &[f64]) -> Result<Option<Vec<f64>>> {
        for (what, expected, found) in [("the law", self.states(), start.len()), ("V", self.columns().len(), model.v.rows())] {
            if expected != found {
                return Err(Error::SizeMismatch { what, expected, found });
            }
        }
        let mut w = vec![0.0; model.rank()];
        for (i, &share) in start.iter().enumerate().filter(|(_, x)| **x > 0.0) {
            w.iter_mut().zip(model.u.row(i)).for_each(|(w, u)| *w += share * u);
        }
        let mut law = vec![0.0; self.states()];
        for c in self.of(slice) {
            law[self.columns()[c].1 as usize] = thin::dot(&w, model.v.row(c));
        }
        let total: f64 = law.iter().sum();
        if total <= 0.0 {
            return Ok(None);
        }
        law.iter_mut().for_each(|x| *x /= total);
        Ok(Some(law))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::StateIndex;

    /// Two states, each its own meta-state: in slice 0 everything goes to state 1, in slice 1 state 0 stays and state 1 does nothing.
    fn model() -> (Factors, Slices) {
        let slices = Slices::new(StateIndex::numbered(2), vec![(0, 1), (1, 0)], 2).unwrap();
        let v = Mat::from_vec(2, 2, vec![0.25, 1.0, 0.75, 0.0]).unwrap();
        (Factors { u: Mat::from_vec(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap(), v }, slices)
    }

    #[test]
    fn flows_by_hand() {
        let (model, slices) = model();
        let found = SliceFlows::new(&model, &slices, &[0.8, 0.2]).unwrap();
        assert_eq!(found.when.as_slice(), [0.25, 1.0, 0.75, 0.0]);
        assert_eq!(found.flows[0].as_slice(), [0.0, 0.2, 0.0, 0.2]);
        assert!((found.flows[1][(0, 0)] - 0.6).abs() < 1e-15);
        assert_eq!(found.chain(1).as_slice(), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(slices.whole(&model.v).as_slice(), [0.75, 0.0, 0.25, 1.0]);
        assert_eq!(slices.step(&model, 0, &[1.0, 0.0]).unwrap(), Some(vec![0.0, 1.0]));
        assert_eq!(slices.step(&model, 1, &[0.0, 1.0]).unwrap(), None);
    }

    #[test]
    fn columns_must_be_what_they_say() {
        for columns in
            [vec![(0, 0), (0, 0), (1, 0)], vec![(1, 0), (0, 0)], vec![(0, 0), (1, 2)], vec![(0, 0), (0, 1)], vec![(0, 0), (2, 0)]]
        {
            assert!(Slices::new(StateIndex::numbered(2), columns, 2).is_err());
        }
    }
}
