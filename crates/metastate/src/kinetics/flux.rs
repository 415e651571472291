//! Transition path theory: the current from A to B, its rate, and the ways that it takes (Metzner, Schütte and Vanden-Eijnden 2009; nothing is assumed reversible).
//!
//! With the stationary law a, the forward committor q+ and the backward one q-, the current along j -> k is `f_jk = a_j q-_j K_jk q+_k`; what leaves A in total, F, divided by `sum_j a_j q-_j` is
//! the rate from A to B.

use crate::aggregate::latent::{Structure, first_met};
use crate::chain::stationary::irreducible;
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// The current from A to B.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::Flux;
///
/// let chain = Mat::from_vec(3, 3, vec![0.9, 0.1, 0.0, 0.05, 0.9, 0.05, 0.0, 0.1, 0.9])?;
/// let flux = Flux::of_chain(&chain, &[0], &[2])?;
/// let ways = flux.pathways(&[0], &[2], 0.99);
/// assert_eq!(ways[0].nodes, [0, 1, 2]); // there is no other way
/// assert!((ways[0].flux - flux.total).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Flux {
    /// `f_jk`, passages from A to B along j -> k in one lag.
    pub gross: Mat,
    /// `max(f_jk - f_kj, 0)`.
    pub net: Mat,
    /// Probability of reaching B before A.
    pub forward: Vec<f64>,
    /// Probability of having come from A rather than from B.
    pub backward: Vec<f64>,
    /// Passages from A to B in one lag.
    pub total: f64,
    /// Passages in one lag while on the way from A: `total / sum_j a_j q-_j`.
    pub rate: f64,
}

/// One way from A to B.
///
/// See the example of [`Flux`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Pathway {
    /// From A to B.
    pub nodes: Vec<usize>,
    /// What it carries.
    pub flux: f64,
}

impl Flux {
    pub(super) fn assembled(gross: Mat, forward: Vec<f64>, backward: Vec<f64>, total: f64, on_the_way: f64) -> Self {
        let n = gross.rows();
        let net = Mat::from_fn(n, n, |j, k| (gross[(j, k)] - gross[(k, j)]).max(0.0));
        Flux { gross, net, forward, backward, total, rate: total / on_the_way }
    }

    /// Between two sets of meta-states of a chain that has one stationary law.
    pub fn of_chain(chain: &Mat, from: &[usize], to: &[usize]) -> Result<Self> {
        let s = chain.rows();
        check(s, from, to)?;
        let structure = Structure::of(chain);
        let [class] = &structure.closed[..] else {
            let value = format!("the chain has {} closed classes", structure.closed.len());
            return Err(Error::Setting {
                name: "the reactive flux",
                value,
                allowed: "it is defined where there is one stationary law; see fates",
            });
        };
        let m = &class.members;
        let inner = irreducible(Mat::from_fn(m.len(), m.len(), |a, b| chain[(m[a], m[b])]));
        let mut law = vec![0.0; s];
        m.iter().zip(inner).for_each(|(&j, x)| law[j] = x);
        let forward = first_met(chain, from, to);
        let reversed = Mat::from_fn(s, s, |j, k| if law[j] > 0.0 { law[k] * chain[(k, j)] / law[j] } else { f64::from(u8::from(j == k)) });
        let backward = first_met(&reversed, to, from);
        let gross = Mat::from_fn(s, s, |j, k| if j == k { 0.0 } else { law[j] * backward[j] * chain[(j, k)] * forward[k] });
        let total = from.iter().map(|&j| (0..s).filter(|k| !from.contains(k)).map(|k| gross[(j, k)]).sum::<f64>()).sum();
        let on_the_way = law.iter().zip(&backward).map(|(a, q)| a * q).sum();
        Ok(Flux::assembled(gross, forward, backward, total, on_the_way))
    }

    /// The strongest ways from A to B, strongest first, until they carry this share of the current: each carries as much as its narrowest step can.
    #[must_use]
    pub fn pathways(&self, from: &[usize], to: &[usize], share: f64) -> Vec<Pathway> {
        let mut left = self.net.clone();
        let (mut found, mut told) = (Vec::new(), 0.0);
        while told < share * self.total {
            let Some(path) = widest(&left, from, to) else { break };
            told += path.flux;
            for step in path.nodes.windows(2) {
                left[(step[0], step[1])] = (left[(step[0], step[1])] - path.flux).max(0.0);
            }
            let narrowest = path.nodes.windows(2).min_by(|a, b| left[(a[0], a[1])].total_cmp(&left[(b[0], b[1])]));
            // The narrowest step is used up; rounding must not leave a rest.
            if let Some(step) = narrowest {
                left[(step[0], step[1])] = 0.0;
            }
            found.push(path);
        }
        found
    }
}

pub(super) fn check(s: usize, from: &[usize], to: &[usize]) -> Result<()> {
    for &j in from.iter().chain(to) {
        if j >= s {
            return Err(Error::IndexOutOfRange { what: "meta-state", index: j as u64, len: s });
        }
    }
    if from.is_empty() || to.is_empty() || from.iter().any(|j| to.contains(j)) {
        let allowed = "both must hold something, and nothing may be in both";
        return Err(Error::Setting { name: "the two sets", value: format!("{from:?} and {to:?}"), allowed });
    }
    Ok(())
}

/// The way whose narrowest step is widest: Dijkstra's search with the narrowest step in place of the length.
fn widest(net: &Mat, from: &[usize], to: &[usize]) -> Option<Pathway> {
    let n = net.rows();
    let mut width = vec![0.0; n];
    let mut before = vec![usize::MAX; n];
    let mut done = vec![false; n];
    from.iter().for_each(|&j| width[j] = f64::INFINITY);
    loop {
        let next = (0..n).filter(|&j| !done[j] && width[j] > 0.0).max_by(|&a, &b| width[a].total_cmp(&width[b]).then(b.cmp(&a)))?;
        if to.contains(&next) {
            let mut nodes = vec![next];
            while before[nodes[nodes.len() - 1]] != usize::MAX {
                nodes.push(before[nodes[nodes.len() - 1]]);
            }
            nodes.reverse();
            return Some(Pathway { nodes, flux: width[next] });
        }
        done[next] = true;
        for k in (0..n).filter(|&k| !done[k]) {
            let through = width[next].min(net[(next, k)]);
            if through > width[k] {
                (width[k], before[k]) = (through, next);
            }
        }
    }
}
