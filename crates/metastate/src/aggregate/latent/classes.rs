//! Where the latent chain can stay for ever, and in what rhythm. X has as many closed classes, with the same periods.

use super::LatentChain;
use crate::graph::strong_classes;
use crate::linalg::Mat;

/// Meta-states that the chain never leaves once it is among them.
///
/// See the example of [`Structure`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedClass {
    /// Meta-states, from 0, ascending.
    pub members: Vec<usize>,
    /// The chain comes back to a meta-state after multiples of so many steps only; 1 is the ordinary case.
    pub period: usize,
}

/// Closed classes and what lies between them.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::latent::Structure;
///
/// // 0 and 1 take turns; 2 leads to 0.
/// let found = Structure::of(&Mat::from_vec(3, 3, vec![0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.5])?);
/// assert_eq!((found.closed[0].members.as_slice(), found.closed[0].period), (&[0, 1][..], 2));
/// assert_eq!(found.transient, [2]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structure {
    /// By their first member. There is at least one.
    pub closed: Vec<ClosedClass>,
    /// Meta-states that the chain leaves for ever sooner or later.
    pub transient: Vec<usize>,
}

impl Structure {
    /// Of any stochastic matrix.
    #[must_use]
    pub fn of(k: &Mat) -> Self {
        let s = k.rows();
        let (class, number) = strong_classes(s, |i, cursor| (cursor..s).find(|&j| k[(i, j)] > 0.0).map(|j| (j + 1, j)));
        let is_closed = |c: usize| (0..s).all(|i| class[i] as usize != c || (0..s).all(|j| k[(i, j)] <= 0.0 || class[j] == class[i]));
        let members = |c: usize| (0..s).filter(|&i| class[i] as usize == c).collect::<Vec<_>>();
        let mut closed: Vec<ClosedClass> = (0..number)
            .filter(|&c| is_closed(c))
            .map(|c| {
                let members = members(c);
                ClosedClass { period: period(k, &members), members }
            })
            .collect();
        closed.sort_by(|a, b| a.members.cmp(&b.members));
        let transient = (0..s).filter(|i| !closed.iter().any(|c| c.members.contains(i))).collect();
        Structure { closed, transient }
    }

    /// Eigenvalues of modulus one: as many as the periods add up to.
    #[must_use]
    pub fn on_unit_circle(&self) -> usize {
        self.closed.iter().map(|c| c.period).sum()
    }

    /// What a user must know before trusting a single stationary law; `None` for an ordinary chain.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let names = |list: &[usize]| list.iter().map(|j| (j + 1).to_string()).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if self.closed.len() > 1 {
            let classes: Vec<String> = self.closed.iter().map(|c| format!("{{{}}}", names(&c.members))).collect();
            parts.push(format!(
                "the latent chain has {} closed classes of meta-states, {}, so there are several stationary laws and the start decides which one is approached",
                self.closed.len(),
                classes.join(" and ")
            ));
        }
        if !self.transient.is_empty() {
            parts.push(format!("meta-states {} are left for ever sooner or later and have no stationary share", names(&self.transient)));
        }
        for class in self.closed.iter().filter(|c| c.period > 1) {
            parts.push(format!(
                "meta-states {} are visited in turn with period {}, so n-step forecasts never settle; the stationary law is their mean over time",
                names(&class.members),
                class.period
            ));
        }
        if parts.is_empty() { None } else { Some(parts.join("; ")) }
    }
}

/// The greatest common divisor of `level_i + 1 - level_j` over the edges of one strong class, levels by breadth first.
fn period(k: &Mat, members: &[usize]) -> usize {
    let mut level = vec![usize::MAX; k.rows()];
    level[members[0]] = 0;
    let mut queue = std::collections::VecDeque::from([members[0]]);
    let mut divisor = 0usize;
    while let Some(i) = queue.pop_front() {
        for &j in members.iter().filter(|&&j| k[(i, j)] > 0.0) {
            if level[j] == usize::MAX {
                level[j] = level[i] + 1;
                queue.push_back(j);
            }
            divisor = gcd(divisor, (level[i] + 1).abs_diff(level[j]));
        }
    }
    divisor.max(1)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl LatentChain<'_> {
    /// Closed classes, transient meta-states, periods.
    #[must_use]
    pub fn structure(&self) -> Structure {
        Structure::of(&self.k)
    }
}
