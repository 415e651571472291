//! Whether all meta-states together may turn: `U Q >= 0`, `V Q^-T >= 0`, `Q 1 = 1` with Q near the identity.
//!
//! To first order, `Q = I + t D` with `D 1 = 0` needs `sum_(k != j) u_ik D_kj >= 0` wherever `u_ij = 0`, and
//! `sum_(k != j) v_ik D_jk <= 0` wherever `v_ij = 0`. If only D = 0 does that, no factorisation of X lies near this one. A cone other
//! than {0} has a point with `c^T D != 0` for any c in general position, so two linear programs decide. A direction found is only a
//! first-order one: it is followed, and the factors are formed, before anything is said about it.

use microlp::{ComparisonOp, OptimizationDirection};

use super::LatentChain;
use crate::linalg::{Mat, small, thin};

/// Entries below this, in units of the row's largest, count as zero.
const ZERO: f64 = 1e-9;
/// Programs have `s (s - 1)` variables; beyond this rank they are not tried.
const MOST: usize = 30;
const ADDED: usize = 64;
const ROUNDS: usize = 60;
/// A turn smaller than this changes nothing that a reader could see.
const VISIBLE: f64 = 1e-6;

/// Columns whose Gram matrix has eigenvalues as far apart as this depend on each other.
const DEPENDENT: f64 = 1e-13;
/// Entries of a direction below this are rounding of the program.
const NO_DIRECTION: f64 = 1e-7;
/// An inequality broken by less than this counts as kept.
const SLACK: f64 = 1e-9;
/// The first step along a direction, and one so small that there is nowhere to go.
const STEPS: (f64, f64) = (0.25, 1e-12);
/// Halvings between the last step that is allowed and the first that is not.
const HALVINGS: usize = 30;

/// What was found out about joint moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rotation {
    /// No other non-negative factorisation of X lies near this one; entries below 1e-9 of their row's largest were taken as zero.
    Unique,
    /// One was formed: the largest change of a membership in it.
    Turns(f64),
    /// A first-order direction exists that could not be followed, the rank is above 30, or a program was not solved.
    Undecided,
}

/// Looks for another factorisation of the same X, all meta-states free.
#[must_use]
pub fn largest_rotation(chain: &LatentChain) -> Rotation {
    let s = chain.rank();
    if s == 1 {
        return Rotation::Unique;
    }
    let spread = |m: &Mat| small::symmetric_eigen(&thin::gram(m)).map_or(0.0, |(values, _)| values[0] / values[s - 1]);
    // Dependent columns allow more than rotations.
    if s > MOST || spread(chain.u) < DEPENDENT || spread(chain.v) < DEPENDENT {
        return Rotation::Undecided;
    }
    let cone = Cone::of(chain);
    let mut turned: f64 = 0.0;
    let mut some = false;
    for direction in [OptimizationDirection::Maximize, OptimizationDirection::Minimize] {
        let Some(d) = cone.farthest(direction) else { return Rotation::Undecided };
        if d.as_slice().iter().any(|x| x.abs() > NO_DIRECTION) {
            some = true;
            turned = turned.max(followed(chain, &d));
        }
    }
    match (some, turned > VISIBLE) {
        (false, _) => Rotation::Unique,
        (true, true) => Rotation::Turns(turned),
        (true, false) => Rotation::Undecided,
    }
}

/// First-order conditions.
struct Cone<'a> {
    chain: &'a LatentChain<'a>,
    /// Bounds of D, off the diagonal: the box, and what anchors and exclusive destinations say.
    low: Mat,
    high: Mat,
}

impl<'a> Cone<'a> {
    fn of(chain: &'a LatentChain<'a>) -> Self {
        let s = chain.rank();
        let (mut low, mut high) = (Mat::from_fn(s, s, |_, _| -1.0), Mat::from_fn(s, s, |_, _| 1.0));
        for i in 0..chain.states() {
            if let Some(k) = only_entry(chain.u.row(i)) {
                low.row_mut(k).fill(0.0);
            }
            if let Some(k) = only_entry(chain.v.row(i)) {
                (0..s).for_each(|j| high[(j, k)] = 0.0);
            }
        }
        Cone { chain, low, high }
    }

    /// The inequality of U at (i, j), as the coefficients of column j of D; or of V, as those of row j, with the sign turned.
    fn value(&self, inequality: (bool, usize, usize), d: &Mat) -> f64 {
        let (in_u, i, j) = inequality;
        let row = if in_u { self.chain.u.row(i) } else { self.chain.v.row(i) };
        let sum: f64 = (0..row.len()).filter(|&k| k != j).map(|k| row[k] * if in_u { d[(k, j)] } else { -d[(j, k)] }).sum();
        sum / largest(row)
    }

    fn farthest(&self, direction: OptimizationDirection) -> Option<Mat> {
        let s = self.chain.rank();
        let mut active: Vec<(bool, usize, usize)> = Vec::new();
        for _ in 0..ROUNDS {
            let mut program = microlp::Problem::new(direction);
            let mut variables = Vec::new();
            for k in 0..s {
                for j in 0..s {
                    // General position: fixed numbers without a pattern.
                    let c = 0.5 + ((k * s + j + 1) as f64 * 0.618_033_988_749_894_9).fract();
                    let sign = if (k * 7 + j * 3) % 2 == 0 { 1.0 } else { -1.0 };
                    let bounds = if k == j { (0.0, 0.0) } else { (self.low[(k, j)], self.high[(k, j)]) };
                    variables.push(program.add_var(c * sign, bounds));
                }
            }
            for &(in_u, i, j) in &active {
                let row = if in_u { self.chain.u.row(i) } else { self.chain.v.row(i) };
                let scale = largest(row);
                let term = |k: usize| if in_u { (variables[k * s + j], row[k] / scale) } else { (variables[j * s + k], -row[k] / scale) };
                let terms: Vec<_> = (0..s).filter(|&k| k != j && row[k] > 0.0).map(term).collect();
                program.add_constraint(terms.as_slice(), ComparisonOp::Ge, 0.0);
            }
            let solution = program.solve().ok()?.into_solution().ok()?;
            let mut d = Mat::from_fn(s, s, |k, j| solution.var_value(variables[k * s + j]));
            let mut broken = self.broken(&d);
            if broken.is_empty() {
                for k in 0..s {
                    d[(k, k)] = -(0..s).filter(|&j| j != k).map(|j| d[(k, j)]).sum::<f64>();
                }
                return Some(d);
            }
            broken.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let new: Vec<_> = broken.into_iter().map(|(_, x)| x).filter(|x| !active.contains(x)).take(ADDED).collect();
            if new.is_empty() {
                return None;
            }
            active.extend(new);
        }
        None
    }

    fn broken(&self, d: &Mat) -> Vec<(f64, (bool, usize, usize))> {
        let mut out = Vec::new();
        for (in_u, m) in [(true, self.chain.u), (false, self.chain.v)] {
            for i in 0..m.rows() {
                let row = m.row(i);
                let zero = ZERO * largest(row);
                for j in (0..row.len()).filter(|&j| row[j] <= zero) {
                    let value = self.value((in_u, i, j), d);
                    if value < -SLACK {
                        out.push((value, (in_u, i, j)));
                    }
                }
            }
        }
        out
    }
}

fn largest(row: &[f64]) -> f64 {
    row.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(*x))
}

/// The column of the only entry that is not zero.
fn only_entry(row: &[f64]) -> Option<usize> {
    let zero = ZERO * largest(row);
    let mut entries = (0..row.len()).filter(|&k| row[k] > zero);
    match (entries.next(), entries.next()) {
        (Some(k), None) => Some(k),
        _ => None,
    }
}

/// Goes along `Q = I + t D` as far as both factors stay non-negative; the largest change of a membership at the end.
fn followed(chain: &LatentChain, d: &Mat) -> f64 {
    let s = chain.rank();
    let q = |t: f64| Mat::from_fn(s, s, |k, j| t * d[(k, j)] + if k == j { 1.0 } else { 0.0 });
    let allowed = |t: f64| {
        let q = q(t);
        let Some(inverse) = small::inverse(&q) else { return false };
        let (mut u, mut v) = (Mat::default(), Mat::default());
        thin::product(chain.u, &q, &mut u);
        thin::product(chain.v, &inverse.transposed(), &mut v);
        let fine = |m: &Mat| (0..m.rows()).all(|i| m.row(i).iter().all(|x| *x >= -2.0 * ZERO * largest(m.row(i))));
        fine(&u) && fine(&v)
    };
    // The set of allowed t need not be an interval; the first piece is what is asked for.
    let (mut low, mut high) = (0.0, STEPS.0);
    while low == 0.0 && high > STEPS.1 {
        if allowed(high) {
            low = high;
        } else {
            high /= 4.0;
        }
    }
    if low > 0.0 && low < STEPS.0 {
        high = 4.0 * low;
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if allowed(middle) { low = middle } else { high = middle }
        }
    }
    let mut moved = Mat::default();
    thin::product(chain.u, &q(low), &mut moved);
    moved.as_slice().iter().zip(chain.u.as_slice()).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()))
}
