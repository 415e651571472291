//! The projection of the empirical chain on the memberships, and the stochastic matrix next to it.

use super::Classes;
use crate::aggregate::latent::{Mode, modes, through_counts};
use crate::linalg::{Csr, Mat, Operator, simplex, small, thin};

/// Steps of P that the memberships are carried along. `docs/kinetics.md`: one removes most of the projection's error, from four on nothing changes any more, many lose the faster meta-states.
const STEPS: usize = 4;
/// Meta-states can be distinguished where the correlations of their memberships have no eigenvalue below this.
const TOLD_APART: f64 = 1e-9;
/// Powers of P in the space that the microstates' own eigenvalues are sought in, and its largest size.
const POWERS: usize = 6;
const MOST_DIRECTIONS: usize = 160;
/// The change of a sweep at which the stochastic neighbour is found.
const STILL: f64 = 1e-12;

/// Where no meta-state belongs: every state may be in it.
const ANYWHERE: usize = usize::MAX;

/// The functions that the chain is projected on.
pub(super) struct Basis {
    /// Memberships with every state in meta-states of its own class only, `d x s`; zero rows are left out of the kinetics.
    pub u: Mat,
    /// The same some steps later.
    pub w: Mat,
    /// The closed class that each meta-state belongs to; `None` for those of transient states. All in one where every state can reach every other.
    pub home: Vec<Option<u32>>,
    pub straddling: Vec<usize>,
    pub share: f64,
    pub told_apart: bool,
    pub steps: usize,
}

impl Basis {
    pub fn new(u: &Mat, p: &dyn Operator, departures: &[f64], classes: &Classes) -> Self {
        let homes = if classes.connected() { Homes::one(u.cols()) } else { Homes::of(u, departures, classes) };
        let restricted = homes.restrict(u, classes);
        let total: f64 = departures.iter().sum();
        let used = |i: usize| restricted.row(i).iter().any(|x| *x > 0.0);
        let share = (0..u.rows()).filter(|&i| used(i)).map(|i| departures[i]).sum::<f64>() / total;
        let (mut told_apart, mut steps) = (false, 0);
        let mut w = restricted.clone();
        for fewer in 0..=STEPS {
            steps = STEPS - fewer;
            w = carried(&restricted, p, steps, classes);
            if correlations(&thin::weighted_gram(&w, departures)) > TOLD_APART {
                told_apart = true;
                break;
            }
        }
        let home = homes.home.iter().map(|&h| (h != ANYWHERE).then_some(h as u32)).collect();
        Basis { u: restricted, w, home, straddling: homes.straddling, share: share.min(1.0), told_apart, steps }
    }
}

/// `P^m U`, the rows of transient states as they are: theirs would leak into the classes that they lead to.
fn carried(u: &Mat, p: &dyn Operator, steps: usize, classes: &Classes) -> Mat {
    let (mut w, mut next) = (u.clone(), Mat::default());
    for _ in 0..steps {
        p.apply(&w, &mut next);
        for i in (0..u.rows()).filter(|&i| classes.transient(i)) {
            next.row_mut(i).copy_from_slice(u.row(i));
        }
        std::mem::swap(&mut w, &mut next);
    }
    w
}

/// The smallest eigenvalue of a Gram matrix whose diagonal is scaled to one; meta-states that are never used do not count.
fn correlations(gram: &Mat) -> f64 {
    let used: Vec<usize> = (0..gram.rows()).filter(|&j| gram[(j, j)] > 0.0).collect();
    // One root at a time: the product of two small numbers may be too small to be told from nothing.
    let scaled = |a: usize, b: usize| gram[(used[a], used[b])] / gram[(used[a], used[a])].sqrt() / gram[(used[b], used[b])].sqrt();
    let matrix = Mat::from_fn(used.len(), used.len(), scaled);
    small::symmetric_eigen(&matrix).and_then(|(values, _)| values.first().copied()).unwrap_or(0.0)
}

/// Which meta-states belong to which class.
struct Homes {
    /// The class of each meta-state; [`ANYWHERE`] for those of transient states.
    home: Vec<usize>,
    /// Meta-states that hold states of further closed classes, which have none of their own.
    straddling: Vec<usize>,
    /// The meta-state that a closed class without one of its own is put into.
    lodging: std::collections::BTreeMap<u32, usize>,
    any_for_transient: bool,
    all: bool,
}

impl Homes {
    fn one(s: usize) -> Self {
        Homes { home: vec![0; s], straddling: Vec::new(), lodging: Default::default(), any_for_transient: false, all: true }
    }

    /// A meta-state belongs to the closed class, or to the transient states together, where most of its weight is.
    fn of(u: &Mat, departures: &[f64], classes: &Classes) -> Self {
        let s = u.cols();
        let mut weight: Vec<std::collections::BTreeMap<usize, f64>> = vec![Default::default(); s];
        for i in 0..u.rows() {
            let key = if classes.transient(i) { ANYWHERE } else { classes.class_of[i] as usize };
            for (j, x) in u.row(i).iter().enumerate().filter(|(_, x)| **x > 0.0) {
                *weight[j].entry(key).or_insert(0.0) += x * departures[i];
            }
        }
        let most = |w: &std::collections::BTreeMap<usize, f64>| w.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or(ANYWHERE, |(k, _)| *k);
        let home: Vec<usize> = weight.iter().map(most).collect();
        let mut lodging = std::collections::BTreeMap::new();
        for class in classes.closed_by_size() {
            if !home.contains(&(class as usize)) {
                let in_class = |j: usize| weight[j].get(&(class as usize)).copied().unwrap_or(0.0);
                let host = (0..s).max_by(|&a, &b| in_class(a).total_cmp(&in_class(b)).then(b.cmp(&a))).unwrap_or(0);
                lodging.insert(class, host);
            }
        }
        let mut straddling: Vec<usize> = lodging.values().copied().collect();
        straddling.sort_unstable();
        straddling.dedup();
        Homes { any_for_transient: home.contains(&ANYWHERE), home, straddling, lodging, all: false }
    }

    /// Memberships in the meta-states of the state's own class, rows that sum to one. Transient states that no meta-state is for get none.
    fn restrict(&self, u: &Mat, classes: &Classes) -> Mat {
        if self.all {
            return u.clone();
        }
        let mut out = Mat::zeros(u.rows(), u.cols());
        for i in 0..u.rows() {
            let class = classes.class_of[i];
            if classes.transient(i) && !self.any_for_transient {
                continue;
            }
            if !classes.transient(i)
                && let Some(&host) = self.lodging.get(&class)
            {
                out[(i, host)] = 1.0;
                continue;
            }
            let wanted = if classes.transient(i) { ANYWHERE } else { class as usize };
            let allowed = |j: usize| self.home[j] == wanted;
            let sum: f64 = (0..u.cols()).filter(|&j| allowed(j)).map(|j| u[(i, j)]).sum();
            let count = (0..u.cols()).filter(|&j| allowed(j)).count() as f64;
            for j in (0..u.cols()).filter(|&j| allowed(j)) {
                out[(i, j)] = if sum > 0.0 { u[(i, j)] / sum } else { 1.0 / count };
            }
        }
        out
    }
}

/// `W^T D W` and `W^T D P W`, both `s x s`. They add up over parts of the data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    pub gram: Mat,
    pub moved: Mat,
}

impl Moments {
    pub(super) fn of_operator(basis: &Basis, p: &dyn Operator, departures: &[f64]) -> Self {
        let mut image = Mat::default();
        p.apply(&basis.w, &mut image);
        // States without membership are left out on both ends: what goes to them is shared out among the rest of the row.
        let left_out: Vec<bool> = (0..basis.u.rows()).map(|i| basis.u.row(i).iter().all(|x| *x <= 0.0)).collect();
        let weights: Vec<f64> = departures.iter().zip(&left_out).map(|(d, out)| if *out { 0.0 } else { *d }).collect();
        thin::for_each_row_mut(&mut image, |i, row| row.iter_mut().for_each(|x| *x *= weights[i]));
        Moments { gram: thin::weighted_gram(&basis.w, &weights), moved: thin::cross_gram(&basis.w, &image) }
    }

    pub fn of_counts(w: &Mat, counts: &Csr) -> Self {
        let departures = counts.row_sums();
        Moments { gram: thin::weighted_gram(w, &departures), moved: through_counts(w, counts) }
    }

    /// With a part weighing less.
    pub fn less(&self, part: &Moments, by: f64) -> Moments {
        let take = |a: &Mat, b: &Mat| Mat::from_fn(a.rows(), a.cols(), |i, j| a[(i, j)] - by * b[(i, j)]);
        Moments { gram: take(&self.gram, &part.gram), moved: take(&self.moved, &part.moved) }
    }
}

/// `(W^T D W)^-1 W^T D P W`. The scale of the columns is taken out first, so that rare meta-states lose no digits.
pub(super) fn projected(moments: &Moments) -> Mat {
    let (s, gram) = (moments.gram.rows(), &moments.gram);
    let scale: Vec<f64> = (0..s).map(|j| if gram[(j, j)] > 0.0 { 1.0 / gram[(j, j)].sqrt() } else { 0.0 }).collect();
    let scaled = Mat::from_fn(s, s, |j, k| scale[j] * gram[(j, k)] * scale[k]);
    let inverse = small::inverse(&scaled).unwrap_or_else(|| small::pseudo_inverse(&scaled));
    let right = Mat::from_fn(s, s, |j, k| scale[j] * moments.moved[(j, k)]);
    let mut out = Mat::default();
    thin::product(&inverse, &right, &mut out);
    for j in 0..s {
        let row = out.row_mut(j);
        if scale[j] <= 0.0 {
            // A meta-state that no state is in: it stays where it is.
            row.fill(0.0);
            row[j] = 1.0;
            continue;
        }
        row.iter_mut().for_each(|x| *x *= scale[j]);
    }
    out
}

/// The stochastic K next to R: `min tr (K - R)^T G (K - R)` over rows in the simplex, row by row until nothing moves. With the other rows fixed, the best row j is the projection of
/// `R_j - sum_(l != j) G_jl (K_l - R_l) / G_jj` on the simplex. A closed class leads to its own meta-states only.
pub(super) fn stochastic(moments: &Moments, projected: &Mat, home: &[Option<u32>], sweeps: usize) -> Mat {
    let (s, gram) = (projected.rows(), &moments.gram);
    let allowed: Vec<Vec<usize>> =
        (0..s).map(|j| (0..s).filter(|&k| home[j].is_none() || home[k] == home[j] || k == j).collect()).collect();
    let mut chain = Mat::zeros(s, s);
    let mut place = vec![0.0; s];
    let mut update = |chain: &mut Mat, j: usize| -> f64 {
        let mut target: Vec<f64> = allowed[j].iter().map(|&k| projected[(j, k)]).collect();
        if gram[(j, j)] > 0.0 {
            for l in (0..s).filter(|&l| l != j && gram[(j, l)] != 0.0) {
                let factor = gram[(j, l)] / gram[(j, j)];
                target.iter_mut().zip(&allowed[j]).for_each(|(t, &k)| *t -= factor * (chain[(l, k)] - projected[(l, k)]));
            }
        }
        let mut tau = place[j];
        simplex::project(&mut target, &mut tau);
        place[j] = tau;
        let sum: f64 = target.iter().sum();
        let mut moved: f64 = 0.0;
        for (&k, t) in allowed[j].iter().zip(&target) {
            moved = moved.max((chain[(j, k)] - t / sum).abs());
            chain[(j, k)] = t / sum;
        }
        moved
    };
    // The first sweep looks at each row alone.
    chain.as_mut_slice().copy_from_slice(projected.as_slice());
    for _ in 0..sweeps.max(1) {
        let moved = (0..s).map(|j| update(&mut chain, j)).fold(0.0, f64::max);
        if moved < STILL {
            break;
        }
    }
    for j in 0..s {
        (0..s).filter(|k| !allowed[j].contains(k)).for_each(|k| chain[(j, k)] = 0.0);
    }
    chain
}

/// The leading eigenvalues of P itself, as many as meta-states: those of its projection on the space of `U, P U, P^2 U, ...`, in the inner product of the departures.
pub(super) fn ritz(u: &Mat, p: &dyn Operator, departures: &[f64], on_unit_circle: usize) -> Vec<Mode> {
    let (d, s) = (u.rows(), u.cols());
    let powers = POWERS.min((MOST_DIRECTIONS / s.max(1)).max(2));
    let root: Vec<f64> = departures.iter().map(|x| x.sqrt()).collect();
    let mut stack = Mat::zeros(d, powers * s);
    let (mut now, mut next) = (u.clone(), Mat::default());
    for k in 0..powers {
        thin::for_each_row_mut(&mut stack, |i, row| row[k * s..(k + 1) * s].copy_from_slice(now.row(i)));
        p.apply(&now, &mut next);
        std::mem::swap(&mut now, &mut next);
    }
    thin::for_each_row_mut(&mut stack, |i, row| row.iter_mut().for_each(|x| *x *= root[i]));
    let basis = small::orthonormalise(&stack);
    let plain = |i: usize| if root[i] > 0.0 { 1.0 / root[i] } else { 0.0 };
    let mut right = basis.clone();
    thin::for_each_row_mut(&mut right, |i, row| row.iter_mut().for_each(|x| *x *= plain(i)));
    let mut image = Mat::default();
    p.apply(&right, &mut image);
    thin::for_each_row_mut(&mut image, |i, row| row.iter_mut().for_each(|x| *x *= root[i]));
    let mut found = modes(&thin::cross_gram(&basis, &image), on_unit_circle);
    found.truncate(s);
    found
}
