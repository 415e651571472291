//! The states' own chain: hitting times, committors, fates and reactive fluxes between sets of states, without any model in between.

use super::solve::reward_until_exit;
use super::{Classes, Flux};
use crate::chain::stationary::{StationaryOptions, stationary_law};
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat, Operator, thin};

/// A set of states, by row.
pub type Set = Vec<bool>;

/// The chain of the states, with functions that span what is slow in it.
///
/// ```
/// use metastate::kinetics::Microstates;
/// use metastate::{DenseOperator, Mat};
///
/// let p = DenseOperator::new(Mat::from_vec(3, 3, vec![0.9, 0.1, 0.0, 0.05, 0.9, 0.05, 0.0, 0.1, 0.9])?);
/// let states = Microstates::new(&p, &Mat::from_fn(3, 1, |_, _| 1.0))?;
/// let steps = states.steps_to(&[false, false, true])?;
/// assert!((steps[0] - 40.0).abs() < 1e-9); // 10 to state 1, and 30 from there
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Microstates {
    p: Csr,
    classes: Classes,
    coarse: Mat,
    law: Vec<f64>,
}

impl Microstates {
    /// Of a chain and its memberships (`d x s`), which only make large systems quick to solve.
    pub fn new(p: &dyn Operator, u: &Mat) -> Result<Self> {
        let law = stationary_law(p, &StationaryOptions::default()).xi;
        Microstates::weighted(p, u, law)
    }

    /// The same where the law of the states is known, or the data's own shares are to stand for it.
    pub fn weighted(p: &dyn Operator, u: &Mat, law: Vec<f64>) -> Result<Self> {
        let d = p.rows();
        for (what, found) in [("the law over states", law.len()), ("the memberships (rows)", u.rows())] {
            if found != d {
                return Err(Error::SizeMismatch { what, expected: d, found });
            }
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..d {
            p.row(i).for_each(d, |j, x| {
                if x > 0.0 {
                    indices.push(j as u32);
                    values.push(x);
                }
            });
            indptr.push(indices.len());
        }
        Ok(Microstates { p: Csr::from_parts(d, d, indptr, indices, values)?, classes: Classes::of(p), coarse: u.clone(), law })
    }

    pub(super) fn p(&self) -> &Csr {
        &self.p
    }

    pub(super) fn coarse(&self) -> &Mat {
        &self.coarse
    }

    /// Number of states.
    #[must_use]
    pub fn states(&self) -> usize {
        self.p.rows()
    }

    /// How they hang together.
    #[must_use]
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// The stationary law; zero for transient states. Where there are several laws, that of a uniform start.
    #[must_use]
    pub fn law(&self) -> &[f64] {
        &self.law
    }

    /// Mean steps from every state into the set, zero inside it; infinite where it may never be reached.
    pub fn steps_to(&self, target: &[bool]) -> Result<Vec<f64>> {
        self.check(target)?;
        let outside: Vec<usize> = (0..self.states()).filter(|&i| !target[i]).collect();
        let ones = vec![1.0; outside.len()];
        Ok(self.spread(&outside, &self.solve(&outside, &self.into(&outside, target), &ones), 0.0))
    }

    /// Mean steps from A, entered as the stationary law has it, to B.
    pub fn mean_first_passage(&self, from: &[bool], to: &[bool]) -> Result<f64> {
        self.check(from)?;
        let steps = self.steps_to(to)?;
        let flat = !(0..self.states()).any(|i| from[i] && self.law[i] > 0.0);
        let weight = |i: usize| if flat { 1.0 } else { self.law[i] };
        let total: f64 = (0..self.states()).filter(|&i| from[i]).map(weight).sum();
        Ok((0..self.states()).filter(|&i| from[i] && weight(i) > 0.0).map(|i| weight(i) * steps[i]).sum::<f64>() / total)
    }

    /// The probability of coming to B before A, from every state: 0 in A, 1 in B.
    pub fn committor(&self, from: &[bool], to: &[bool]) -> Result<Vec<f64>> {
        self.check_two(from, to)?;
        let between: Vec<usize> = (0..self.states()).filter(|&i| !from[i] && !to[i]).collect();
        let reward = self.into(&between, to);
        let exit: Vec<f64> = self.into(&between, from).iter().zip(&reward).map(|(a, b)| a + b).collect();
        let mut q = self.spread(&between, &self.solve(&between, &exit, &reward), 0.0);
        (0..self.states()).filter(|&i| to[i]).for_each(|i| q[i] = 1.0);
        q.iter_mut().for_each(|q| *q = q.min(1.0));
        Ok(q)
    }

    /// The probability of ending in each set, from every state, `d x sets`: absorption, where the sets are closed. Rows sum to less than one where the chain may end in none of them.
    pub fn fates(&self, sets: &[Set]) -> Result<Mat> {
        let mut home = vec![usize::MAX; self.states()];
        for (k, set) in sets.iter().enumerate() {
            self.check(set)?;
            for i in (0..self.states()).filter(|&i| set[i]) {
                if home[i] != usize::MAX {
                    return Err(Error::Setting {
                        name: "the sets",
                        value: format!("state {i} is in two"),
                        allowed: "they must not share states",
                    });
                }
                home[i] = k;
            }
        }
        let inside: Vec<bool> = home.iter().map(|h| *h != usize::MAX).collect();
        let outside: Vec<usize> = (0..self.states()).filter(|&i| !inside[i]).collect();
        let exit = self.into(&outside, &inside);
        let mut out = Mat::zeros(self.states(), sets.len());
        for (k, set) in sets.iter().enumerate() {
            let found = self.solve(&outside, &exit, &self.into(&outside, set));
            outside.iter().zip(found).for_each(|(&i, x)| out[(i, k)] = x.min(1.0));
        }
        (0..self.states()).filter(|&i| inside[i]).for_each(|i| out[(i, home[i])] = 1.0);
        Ok(out)
    }

    /// The closed classes as sets, largest first, at most so many.
    #[must_use]
    pub fn closed_sets(&self, most: usize) -> Vec<Set> {
        let member = |c: u32| self.classes.class_of.iter().map(|x| *x == c).collect();
        self.classes.closed_by_size().into_iter().take(most).map(member).collect()
    }

    /// The reactive flux from A to B, added up between the parts that `part` puts the states into (from 0, below `parts`).
    pub fn flux(&self, from: &[bool], to: &[bool], part: &[usize], parts: usize) -> Result<Flux> {
        self.check_two(from, to)?;
        if part.len() != self.states() {
            return Err(Error::SizeMismatch { what: "the list of parts", expected: self.states(), found: part.len() });
        }
        let forward = self.committor(from, to)?;
        let backward = self.reversed()?.committor(to, from)?;
        let d = self.states();
        let mut gross = Mat::zeros(parts, parts);
        let mut total = 0.0;
        for (i, j, p) in self.p.triplets() {
            let (i, j) = (i as usize, j as usize);
            let flow = self.law[i] * backward[i] * p * forward[j];
            if i != j && flow > 0.0 {
                gross[(part[i], part[j])] += flow;
                if from[i] {
                    total += flow;
                }
            }
        }
        let mean_backward: f64 = (0..d).filter(|&i| self.law[i] > 0.0).map(|i| self.law[i] * backward[i]).sum();
        let average = |q: &[f64]| {
            let (mut sum, mut weight) = (vec![0.0; parts], vec![0.0; parts]);
            (0..d).for_each(|i| {
                sum[part[i]] += self.law[i] * q[i];
                weight[part[i]] += self.law[i];
            });
            sum.iter().zip(&weight).map(|(s, w)| s / w).collect()
        };
        Ok(Flux::assembled(gross, average(&forward), average(&backward), total, mean_backward))
    }

    /// The chain backwards in time, `pi_j p_ji / pi_i`; states without stationary share lead nowhere.
    fn reversed(&self) -> Result<Microstates> {
        let mut back = self.p.transposed();
        let columns = back.indices().to_vec();
        for i in 0..self.states() {
            for at in back.indptr()[i]..back.indptr()[i + 1] {
                let j = columns[at] as usize;
                back.values_mut()[at] *= if self.law[i] > 0.0 { self.law[j] / self.law[i] } else { 0.0 };
            }
        }
        Ok(Microstates { p: back, ..self.clone() })
    }

    /// What the states of a list lead to in a set, in one step.
    fn into(&self, list: &[usize], set: &[bool]) -> Vec<f64> {
        let lands = |&i: &usize| {
            let (columns, values) = self.p.row(i);
            columns.iter().zip(values).filter(|(j, _)| set[**j as usize]).map(|(_, x)| x).sum()
        };
        list.iter().map(lands).collect()
    }

    fn solve(&self, list: &[usize], exit: &[f64], reward: &[f64]) -> Vec<f64> {
        let coarse = Mat::from_fn(list.len(), self.coarse.cols(), |a, k| self.coarse[(list[a], k)]);
        reward_until_exit(&self.p.restrict(list), exit, reward, &coarse)
    }

    fn spread(&self, list: &[usize], values: &[f64], elsewhere: f64) -> Vec<f64> {
        let mut out = vec![elsewhere; self.states()];
        list.iter().zip(values).for_each(|(&i, x)| out[i] = *x);
        out
    }

    fn check(&self, set: &[bool]) -> Result<()> {
        if set.len() != self.states() {
            return Err(Error::SizeMismatch { what: "the set of states", expected: self.states(), found: set.len() });
        }
        if !set.contains(&true) {
            return Err(Error::Setting { name: "a set of states", value: "empty".to_owned(), allowed: "it must hold a state" });
        }
        Ok(())
    }

    fn check_two(&self, from: &[bool], to: &[bool]) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        match (0..self.states()).find(|&i| from[i] && to[i]) {
            Some(i) => {
                Err(Error::Setting { name: "the two sets", value: format!("both hold state {i}"), allowed: "they must not share states" })
            }
            None => Ok(()),
        }
    }

    /// Mean passage times between the parts that the states are put into, `parts x parts`: from A as the stationary law has it to B, return times on the diagonal.
    pub fn passage_between(&self, part: &[usize], parts: usize) -> Result<Mat> {
        let mut out = Mat::from_fn(parts, parts, |_, _| f64::NAN);
        let mut share = vec![0.0; parts];
        part.iter().zip(&self.law).for_each(|(&p, x)| share[p] += x);
        for b in 0..parts {
            let inside: Set = part.iter().map(|p| *p == b).collect();
            if !inside.contains(&true) {
                continue;
            }
            let steps = self.steps_to(&inside)?;
            let mut sums = vec![0.0; parts];
            for i in (0..self.states()).filter(|&i| self.law[i] > 0.0) {
                let after = if part[i] == b { self.after_a_step(i, &steps) } else { steps[i] };
                sums[part[i]] += self.law[i] * after;
            }
            (0..parts).filter(|&a| share[a] > 0.0).for_each(|a| out[(a, b)] = sums[a] / share[a]);
        }
        Ok(out)
    }

    /// One step and what comes after it.
    fn after_a_step(&self, i: usize, steps: &[f64]) -> f64 {
        let (columns, values) = self.p.row(i);
        1.0 + columns.iter().zip(values).filter(|(j, _)| steps[**j as usize] > 0.0).map(|(&j, x)| x * steps[j as usize]).sum::<f64>()
    }

    /// `x^T P^n` of a law over states.
    pub fn after(&self, start: &[f64], steps: u64) -> Result<Vec<f64>> {
        if start.len() != self.states() {
            return Err(Error::SizeMismatch { what: "the law over states", expected: self.states(), found: start.len() });
        }
        let back = self.p.transposed();
        let mut law = Mat::from_vec(start.len(), 1, start.to_vec())?;
        for _ in 0..steps {
            let mut next = Mat::zeros(start.len(), 1);
            thin::for_each_row_mut(&mut next, |j, x| {
                let (sources, values) = back.row(j);
                x[0] = sources.iter().zip(values).map(|(&i, p)| p * law.as_slice()[i as usize]).sum();
            });
            law = next;
        }
        Ok(law.into_vec())
    }
}
