//! Chains given as probabilities: a dense or sparse P, or an exact low-rank one (the paper's section 6.1).

use std::sync::Arc;

use super::empirical::divide_rows;
use super::estimate::NOT_CONNECTED;
use super::stationary::{StationaryLaw, StationaryOptions, closed_classes, stationary_law};
use super::{Chain, Connected, WeightPower, WeightsBy};
use crate::counts::StateIndex;
use crate::error::{Error, Result};
use crate::graph::peel;
use crate::ledger::{Ledger, LedgerUnit};
use crate::linalg::{Csr, DenseOperator, LowRankOperator, Mat, Operator, SparseOperator, thin};

/// Sums of float32 probabilities may differ from one by this much.
const ROW_SUM_ALLOWED: f64 = 1e-6;
/// Rows whose sum is further from one than this are divided by it and listed in the ledger.
const ROW_SUM_TOLD: f64 = 1e-8;
const ROW_SUM_EXACT: f64 = 1e-12;

/// Where xi comes from.
///
/// ```
/// use metastate::{Chain, Given, Mat, RowWeights};
///
/// let p = Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8])?;
/// let chain = Chain::from_dense(p, Given { weights: RowWeights::Stationary, ..Given::default() })?;
/// assert!((chain.xi()[0] - 2.0 / 3.0).abs() < 1e-12); // xi^T P = xi^T
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub enum RowWeights {
    /// The stationary law of P.
    #[default]
    Stationary,
    /// These weights, one a state: non-negative, not all zero; divided by their sum.
    Given(Vec<f64>),
}

/// What comes with a matrix of probabilities.
///
/// The matrix is checked first: entries must be finite and non-negative, and rows must sum to one within 1e-6. Rows within 1e-12 are not
/// changed; others are divided by their sum, and the ledger lists those beyond 1e-8. Where states are transient the stationary law gives them no weight; then every state weighs the
/// same, `1 / d`. A state whose given weight is zero is left out, as row
/// and as column; the rows of the others are divided by what remains of them, and a row of which nothing remains goes too.
///
/// ```
/// use metastate::{Chain, Given, Mat};
///
/// let p = Mat::from_fn(2, 2, |i, j| if i == j { 0.9 } else { 0.1 });
/// let chain = Chain::from_dense(p, Given::weights(vec![0.5, 0.5]))?;
/// assert_eq!(chain.states(), 2);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Where xi comes from.
    pub weights: RowWeights,
    /// The power of xi in the objective.
    pub weight_power: WeightPower,
    /// Labels; numbers from 0 when absent.
    pub index: Option<StateIndex>,
    /// Which states are kept. A matrix given by factors keeps all.
    pub connected: Connected,
}

impl Given {
    /// Weights given, all else by default.
    #[must_use]
    pub fn weights(xi: Vec<f64>) -> Self {
        Given { weights: RowWeights::Given(xi), ..Given::default() }
    }
}

impl Chain {
    /// From all entries of P.
    pub fn from_dense(mut p: Mat, given: Given) -> Result<Chain> {
        let index = checked_index(p.rows(), p.cols(), &given)?;
        check_entries(&p, "the transition matrix")?;
        let mut rounded = Vec::new();
        for i in 0..p.rows() {
            let sum: f64 = p.row(i).iter().sum();
            if row_needs_division(i, sum)? {
                p.row_mut(i).iter_mut().for_each(|x| *x /= sum);
                rounded.extend(told(i, sum));
            }
        }
        let operator = DenseOperator::new(p.clone());
        if let Some(class) = largest(&operator, given.connected) {
            let part = |a: usize| class.iter().map(|&b| p[(class[a], b)]).sum::<f64>();
            let sums: Vec<f64> = (0..class.len()).map(part).collect();
            let inner = Mat::from_fn(class.len(), class.len(), |a, b| p[(class[a], class[b])] / sums[a]);
            return within(&class, index, given, &rounded, |given| Chain::from_dense(inner, given));
        }
        let weights = Weights::new(&given, &operator)?;
        if !weights.xi.contains(&0.0) {
            return weights.into_chain(Arc::new(operator), KeptStates::all(index), given.weight_power).map(|c| note(c, &rounded));
        }
        let d = p.rows();
        let mut gone = weights.without_weight();
        let exits = (0..d).map(|i| p.row(i).iter().filter(|x| **x > 0.0).count()).collect();
        peel(&mut gone, exits, |j, f| (0..d).filter(|&i| p[(i, j)] > 0.0).for_each(f));
        let (weights, states) = weights.leave_out(&gone, &index)?;
        let keep = &states.kept;
        let mut q = Mat::from_fn(keep.len(), keep.len(), |i, j| p[(keep[i], keep[j])]);
        for i in 0..q.rows() {
            let sum: f64 = q.row(i).iter().sum();
            q.row_mut(i).iter_mut().for_each(|x| *x /= sum);
        }
        weights.into_chain(Arc::new(DenseOperator::new(q)), states, given.weight_power).map(|c| note(c, &rounded))
    }

    /// From the non-zero entries of P.
    pub fn from_sparse(mut p: Csr, given: Given) -> Result<Chain> {
        let index = checked_index(p.rows(), p.cols(), &given)?;
        for (i, j, value) in p.triplets() {
            check_entry("the transition matrix", i as usize, j as usize, value)?;
        }
        let mut sums = vec![1.0; p.rows()];
        let mut rounded = Vec::new();
        for i in 0..p.rows() {
            let sum: f64 = p.row(i).1.iter().sum();
            if row_needs_division(i, sum)? {
                sums[i] = sum;
                rounded.extend(told(i, sum));
            }
        }
        divide_rows(&mut p, &sums);
        let operator = SparseOperator::new(p, Vec::new())?;
        if let Some(class) = largest(&operator, given.connected) {
            let mut inner = operator.stored().restrict(&class);
            let sums = inner.row_sums();
            divide_rows(&mut inner, &sums);
            return within(&class, index, given, &rounded, |given| Chain::from_sparse(inner, given));
        }
        let weights = Weights::new(&given, &operator)?;
        if !weights.xi.contains(&0.0) {
            return weights.into_chain(Arc::new(operator), KeptStates::all(index), given.weight_power).map(|c| note(c, &rounded));
        }
        let p = operator.stored();
        let mut gone = weights.without_weight();
        // Stored zeros are no exits.
        let exits = (0..p.rows()).map(|i| p.row(i).1.iter().filter(|x| **x > 0.0).count()).collect();
        let reversed = p.transposed();
        peel(&mut gone, exits, |j, f| {
            let (sources, values) = reversed.row(j);
            sources.iter().zip(values).filter(|(_, x)| **x > 0.0).for_each(|(&i, _)| f(i as usize));
        });
        let (weights, states) = weights.leave_out(&gone, &index)?;
        let keep = &states.kept;
        let mut q = p.restrict(keep);
        let sums = q.row_sums();
        divide_rows(&mut q, &sums);
        weights.into_chain(Arc::new(SparseOperator::new(q, Vec::new())?), states, given.weight_power).map(|c| note(c, &rounded))
    }

    /// From `P = L R^T` (both `d x r`), with non-negative factors: that L R^T is non-negative could otherwise be known only
    /// by forming it.
    pub fn from_low_rank(mut left: Mat, right: Mat, given: Given) -> Result<Chain> {
        let index = checked_index(left.rows(), right.rows(), &given)?;
        if left.cols() != right.cols() {
            return Err(Error::SizeMismatch { what: "the right factor (columns)", expected: left.cols(), found: right.cols() });
        }
        check_entries(&left, "the left factor")?;
        check_entries(&right, "the right factor")?;
        // Row i of L R^T sums to L_i (R^T 1).
        let columns = thin::column_sums(&right);
        for i in 0..left.rows() {
            let sum = thin::dot(left.row(i), &columns);
            if row_needs_division(i, sum)? {
                left.row_mut(i).iter_mut().for_each(|x| *x /= sum);
            }
        }
        let operator = LowRankOperator::new(left.clone(), right.clone())?;
        let weights = Weights::new(&given, &operator)?;
        if !weights.xi.contains(&0.0) {
            return weights.into_chain(Arc::new(operator), KeptStates::all(index), given.weight_power);
        }
        let mut gone = weights.without_weight();
        // A further row falls only when a whole column of R has lost its support: at most r + 1 rounds.
        loop {
            let columns = thin::fold_rows(&right, |sums, i, row| {
                if !gone[i] {
                    sums.iter_mut().zip(row).for_each(|(s, x)| *s += x);
                }
            });
            let bare: Vec<usize> = (0..gone.len()).filter(|&i| !gone[i] && thin::dot(left.row(i), &columns) <= 0.0).collect();
            if bare.is_empty() {
                break;
            }
            bare.iter().for_each(|&i| gone[i] = true);
        }
        let (weights, states) = weights.leave_out(&gone, &index)?;
        let keep = &states.kept;
        let mut left = Mat::from_fn(keep.len(), left.cols(), |i, k| left[(keep[i], k)]);
        let right = Mat::from_fn(keep.len(), right.cols(), |i, k| right[(keep[i], k)]);
        let columns = thin::column_sums(&right);
        for i in 0..left.rows() {
            let sum = thin::dot(left.row(i), &columns);
            left.row_mut(i).iter_mut().for_each(|x| *x /= sum);
        }
        weights.into_chain(Arc::new(LowRankOperator::new(left, right)?), states, given.weight_power)
    }
}

/// A row whose sum is so far from one that the ledger lists it.
fn told(row: usize, sum: f64) -> Option<usize> {
    ((sum - 1.0).abs() > ROW_SUM_TOLD).then_some(row)
}

/// The chain with a line in its ledger about the rows that were divided by their sums.
fn note(mut chain: Chain, rounded: &[usize]) -> Chain {
    let examples: Vec<String> = rounded.iter().take(5).map(|i| format!("row {i}")).collect();
    chain.ledger.add("row-divided-by-its-sum", LedgerUnit::States, rounded.len() as u64, 0.0, examples);
    chain
}

/// The largest class of states that can all reach each other, where it is asked for and is not all there is.
fn largest(p: &dyn Operator, connected: Connected) -> Option<Vec<usize>> {
    if connected == Connected::All {
        return None;
    }
    let (class_of, closed) = closed_classes(p);
    let mut sizes = vec![0usize; closed.len()];
    class_of.iter().for_each(|&c| sizes[c as usize] += 1);
    // Of equally large ones the one with the lowest row.
    let first = (0..class_of.len()).max_by_key(|&i| (sizes[class_of[i] as usize], std::cmp::Reverse(i)))?;
    let class: Vec<usize> = (0..class_of.len()).filter(|&i| class_of[i] == class_of[first]).collect();
    (class.len() < class_of.len()).then_some(class)
}

/// The chain of one class, made by `make`; the ledger names what is left out.
fn within(class: &[usize], index: StateIndex, given: Given, rounded: &[usize], make: impl FnOnce(Given) -> Result<Chain>) -> Result<Chain> {
    let weights = match given.weights {
        RowWeights::Stationary => RowWeights::Stationary,
        RowWeights::Given(xi) if xi.len() == index.len() => RowWeights::Given(class.iter().map(|&i| xi[i]).collect()),
        // The size is refused where it is checked.
        other => other,
    };
    if let [only] = class {
        return Err(Error::OneState { label: index.label(*only).to_string() });
    }
    let inside: std::collections::HashSet<usize> = class.iter().copied().collect();
    let gone: Vec<String> = (0..index.len()).filter(|i| !inside.contains(i)).map(|i| index.label(i).to_string()).collect();
    let mut chain =
        make(Given { weights, weight_power: given.weight_power, index: Some(index.restricted(class)), connected: Connected::All })?;
    chain.kept.iter_mut().for_each(|k| *k = class[*k]);
    chain.ledger.add(NOT_CONNECTED, LedgerUnit::States, gone.len() as u64, 0.0, gone);
    Ok(note(chain, rounded))
}

/// The states of the chain: their labels, their places in the matrix given, and what was left out.
struct KeptStates {
    index: StateIndex,
    kept: Vec<usize>,
    ledger: Ledger,
}

impl KeptStates {
    fn all(index: StateIndex) -> Self {
        KeptStates { kept: (0..index.len()).collect(), index, ledger: Ledger::new() }
    }
}

/// xi before states are left out: it sums to one and may hold zeros.
struct Weights {
    xi: Vec<f64>,
    residual: Option<f64>,
}

impl Weights {
    fn new(given: &Given, p: &dyn Operator) -> Result<Self> {
        let what = "the list of weights";
        match &given.weights {
            RowWeights::Stationary => {
                let StationaryLaw { xi, residual, .. } = stationary_law(p, &StationaryOptions::default());
                // Probabilities near the smallest number that exists can defeat the elimination.
                for (i, &x) in xi.iter().enumerate() {
                    check_entry("the stationary law", i, 0, x)?;
                }
                // Transient states have no stationary share, and yet they are what an absorbing chain is about: every state weighs the same.
                if xi.contains(&0.0) && p.low_rank().is_none() {
                    return Ok(Weights { xi: vec![1.0 / xi.len() as f64; xi.len()], residual: None });
                }
                Ok(Weights { xi, residual: Some(residual) })
            }
            RowWeights::Given(xi) => {
                if xi.len() != p.rows() {
                    return Err(Error::SizeMismatch { what, expected: p.rows(), found: xi.len() });
                }
                for (i, &x) in xi.iter().enumerate() {
                    check_entry(what, i, 0, x)?;
                }
                let total: f64 = xi.iter().sum();
                if total <= 0.0 || !total.is_finite() {
                    return Err(Error::Setting {
                        name: "the sum of the weights",
                        value: total.to_string(),
                        allowed: "it must be positive and finite; give at least two states a weight",
                    });
                }
                // Weights that already sum to one come back bit for bit.
                let scale = if (total - 1.0).abs() <= ROW_SUM_EXACT { 1.0 } else { total };
                Ok(Weights { xi: xi.iter().map(|x| x / scale).collect(), residual: None })
            }
        }
    }

    fn without_weight(&self) -> Vec<bool> {
        self.xi.iter().map(|x| *x == 0.0).collect()
    }

    /// The weights of the states that stay, and these states with the ledger of the others.
    fn leave_out(self, gone: &[bool], index: &StateIndex) -> Result<(Weights, KeptStates)> {
        let keep: Vec<usize> = (0..gone.len()).filter(|&i| !gone[i]).collect();
        match keep[..] {
            [] => return Err(Error::Empty { what: "the chain without the states that carry no weight" }),
            [only] => return Err(Error::OneState { label: index.label(only).to_string() }),
            _ => {}
        }
        let mut ledger = Ledger::new();
        let zero = if self.residual.is_some() { "transient" } else { "weight-zero" };
        for (i, _) in gone.iter().enumerate().filter(|(_, gone)| **gone) {
            let reason = if self.xi[i] == 0.0 { zero } else { "leads-only-to-left-out-states" };
            ledger.add(reason, LedgerUnit::States, 1, self.xi[i], [index.label(i).to_string()]);
        }
        let total: f64 = keep.iter().map(|&i| self.xi[i]).sum();
        let xi = keep.iter().map(|&i| self.xi[i] / total).collect();
        Ok((Weights { xi, residual: self.residual }, KeptStates { index: index.restricted(&keep), kept: keep, ledger }))
    }

    fn into_chain(self, p: Arc<dyn Operator>, states: KeptStates, weight_power: WeightPower) -> Result<Chain> {
        Ok(Chain {
            p,
            weights: weight_power.raise(&self.xi),
            departures: self.xi.clone(),
            xi: self.xi,
            weights_by: WeightsBy::default(),
            weight_power,
            destinations: states.index.clone(),
            index: states.index,
            goes_on: true,
            counts: None,
            kept: states.kept,
            transitions: 0.0,
            stationary_residual: self.residual,
            ledger: states.ledger,
        })
    }
}

fn checked_index(rows: usize, cols: usize, given: &Given) -> Result<StateIndex> {
    if rows != cols {
        return Err(Error::SizeMismatch { what: "the transition matrix (columns)", expected: rows, found: cols });
    }
    let index = given.index.clone().unwrap_or_else(|| StateIndex::numbered(rows));
    if index.len() != rows {
        return Err(Error::SizeMismatch { what: "the list of labels", expected: rows, found: index.len() });
    }
    match rows {
        0 => Err(Error::Empty { what: "the transition matrix" }),
        1 => Err(Error::OneState { label: index.label(0).to_string() }),
        _ => Ok(index),
    }
}

fn check_entry(what: &'static str, row: usize, column: usize, value: f64) -> Result<()> {
    if !value.is_finite() {
        return Err(Error::NotFinite { what, row, column, value });
    }
    if value < 0.0 {
        return Err(Error::Negative { what, row, column, value });
    }
    Ok(())
}

fn check_entries(m: &Mat, what: &'static str) -> Result<()> {
    for i in 0..m.rows() {
        for (j, &value) in m.row(i).iter().enumerate() {
            check_entry(what, i, j, value)?;
        }
    }
    Ok(())
}

/// Whether a row must be divided by its sum; an error when it is no distribution.
fn row_needs_division(row: usize, sum: f64) -> Result<bool> {
    let off = (sum - 1.0).abs();
    if off.is_nan() || off > ROW_SUM_ALLOWED {
        return Err(Error::RowSum { row, sum });
    }
    Ok(off > ROW_SUM_EXACT)
}
