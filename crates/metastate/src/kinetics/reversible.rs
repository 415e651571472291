//! Detailed balance: the most likely reversible chain behind counts, and the reversible chain next to a small one.

use super::Observations;
use crate::chain::stationary::irreducible;
use crate::error::{Error, Result};
use crate::linalg::{Csr, Mat, SparseOperator};

/// Relative change at which the fixed point is reached, and steps at most.
const STILL: f64 = 1e-12;
const STEPS: usize = 100_000;

/// A chain with detailed balance, `pi_i p_ij = pi_j p_ji`.
///
/// See the example of [`reversible`].
#[derive(Debug, Clone)]
pub struct Reversible {
    p: SparseOperator,
    law: Vec<f64>,
    converged: bool,
}

impl Reversible {
    /// P.
    #[must_use]
    pub fn operator(&self) -> &SparseOperator {
        &self.p
    }

    /// pi, which sums to one.
    #[must_use]
    pub fn law(&self) -> &[f64] {
        &self.law
    }

    /// Whether the fixed point was reached.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.converged
    }
}

/// The most likely reversible chain behind counts: `x_ij = (c_ij + c_ji) / (c_i / x_i + c_j / x_j)` with `x_i = sum_j x_ij`, to a fixed point (Bowman and others 2009). A state that is never
/// left has no say in how it is left; with detailed balance it is left as it is entered.
///
/// ```
/// use metastate::Csr;
/// use metastate::kinetics::reversible;
///
/// // Seen 0 to 1 to 2 to 0 more often than the other way round.
/// let counts = Csr::from_triplets(3, 3, &[(0, 1, 8.0), (1, 2, 8.0), (2, 0, 8.0), (1, 0, 2.0), (2, 1, 2.0), (0, 2, 2.0)])?;
/// let found = reversible(&counts)?;
/// assert!(found.converged());
/// assert!(found.law().iter().all(|pi| (pi - 1.0 / 3.0).abs() < 1e-9)); // pi_i p_ij = pi_j p_ji
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn reversible(counts: &Csr) -> Result<Reversible> {
    let d = counts.rows();
    let both = symmetric(counts)?;
    let left = counts.row_sums();
    let total: f64 = both.values().iter().sum();
    if total <= 0.0 {
        return Err(Error::Empty { what: "the list of transitions" });
    }
    let mut x: Vec<f64> = both.row_sums().iter().map(|n| n / total).collect();
    let mut converged = false;
    let mut next = vec![0.0; d];
    for _ in 0..STEPS {
        let rate: Vec<f64> = (0..d).map(|i| if x[i] > 0.0 { left[i] / x[i] } else { 0.0 }).collect();
        for (i, out) in next.iter_mut().enumerate() {
            let (columns, values) = both.row(i);
            *out = columns.iter().zip(values).map(|(&j, n)| flow(*n, rate[i] + rate[j as usize])).sum();
        }
        let sum: f64 = next.iter().sum();
        let mut moved: f64 = 0.0;
        for (x, n) in x.iter_mut().zip(&next) {
            let value = n / sum;
            moved = moved.max((value - *x).abs() / value.max(f64::MIN_POSITIVE));
            *x = value;
        }
        if moved < STILL {
            converged = true;
            break;
        }
    }
    let rate: Vec<f64> = (0..d).map(|i| if x[i] > 0.0 { left[i] / x[i] } else { 0.0 }).collect();
    let mut flows = both;
    let columns = flows.indices().to_vec();
    for i in 0..d {
        for at in flows.indptr()[i]..flows.indptr()[i + 1] {
            let n = flows.values()[at];
            flows.values_mut()[at] = flow(n, rate[i] + rate[columns[at] as usize]);
        }
    }
    let sums = flows.row_sums();
    let all: f64 = sums.iter().sum();
    let law: Vec<f64> = sums.iter().map(|s| s / all).collect();
    for (i, sum) in sums.iter().enumerate() {
        let range = flows.indptr()[i]..flows.indptr()[i + 1];
        flows.values_mut()[range].iter_mut().for_each(|v| *v = if *sum > 0.0 { *v / sum } else { 0.0 });
    }
    Ok(Reversible { p: SparseOperator::new(flows, Vec::new())?, law, converged })
}

fn flow(both: f64, rate: f64) -> f64 {
    if rate > 0.0 { both / rate } else { 0.0 }
}

/// `C + C^T`.
fn symmetric(counts: &Csr) -> Result<Csr> {
    let both: Vec<(u32, u32, f64)> = counts.triplets().flat_map(|(i, j, n)| [(i, j, n), (j, i, n)]).filter(|t| t.2 > 0.0).collect();
    Csr::from_triplets(counts.rows(), counts.cols(), &both)
}

/// The same of a chain with departures.
pub(super) fn of_operator(data: &Observations) -> Result<Reversible> {
    let d = data.p.rows();
    let mut triplets = Vec::new();
    for (i, n) in data.departures.iter().enumerate() {
        data.p.row(i).for_each(d, |j, x| {
            if x * n > 0.0 {
                triplets.push((i as u32, j as u32, x * n));
            }
        });
    }
    reversible(&Csr::from_triplets(d, d, &triplets)?)
}

/// `(a_j K_jk + a_k K_kj) / (2 a_j)`, a the stationary law of K: it keeps that law. A chain with several closed classes, or transient meta-states, comes back as it is where it has no law.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::with_detailed_balance;
///
/// // A chain that goes round and round becomes one that goes both ways alike.
/// let round = Mat::from_vec(3, 3, vec![0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])?;
/// assert!((with_detailed_balance(&round)[(0, 2)] - 0.5).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn with_detailed_balance(chain: &Mat) -> Mat {
    let s = chain.rows();
    let structure = crate::aggregate::latent::Structure::of(chain);
    let mut out = chain.clone();
    for class in &structure.closed {
        let m = &class.members;
        let law = irreducible(Mat::from_fn(m.len(), m.len(), |a, b| chain[(m[a], m[b])]));
        for (a, &j) in m.iter().enumerate() {
            for (b, &k) in m.iter().enumerate() {
                out[(j, k)] = 0.5 * (chain[(j, k)] + law[b] * chain[(k, j)] / law[a]);
            }
        }
    }
    for j in 0..s {
        let row = out.row_mut(j);
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= sum);
    }
    out
}
