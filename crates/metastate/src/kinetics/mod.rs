//! Kinetics: times, rates and fates (where the chain ends) that depend on neither a prior nor a penalty.
//!
//! The factors of a fit are shrunk: a prior or a penalty draws all memberships towards their mean, and the timescales of `K = V^T U` are shorter than those of the data. The memberships
//! themselves lose little by it, because shrinking all of them alike does not change the space that they span. So the chain of the meta-states is estimated once more
//! on the data, at the memberships found:
//!
//! ```text
//! W = P^m U,   K = (W^T D W)^-1 W^T D P W,   D the departures of the states, m = 4
//! ```
//!
//! the projection of the empirical chain on the memberships after m steps ([`project`](self), Galerkin). Where P has the invariant space that U spans, `P U = U K`, this is K
//! itself, whatever m, D and the shrinking. Elsewhere the few steps turn the space towards the slow processes. `docs/kinetics.md` measures bias and spread, beside the alternatives that
//! were tried.
//!
//! The projection may have small negative entries. [`Kinetics::chain`] is the stochastic matrix nearest to it in the norm of `W^T D W`; passage times, committors, fluxes and forecasts are
//! computed from this chain, timescales from the projection.
//!
//! Connectivity comes first (`classes`): where the data do not connect two states, there is no time between them, and no prior may make one.

mod classes;
mod flux;
mod lag;
mod microstates;
mod parts;
mod passage;
mod project;
mod reversible;
mod solve;

pub use classes::Classes;
pub use flux::{Flux, Pathway};
pub use lag::{Between, LagLook, LagPoint, LaggedCounts, advice, look_at, power};
pub use microstates::{Microstates, Set};
pub use parts::{Lighter, Scale, interval};
pub use reversible::{Reversible, reversible, with_detailed_balance};

use crate::aggregate::latent::{LatentChain, Mode, Structure, collected, first_met, modes};
use crate::chain::stationary::{by_elimination, irreducible};
use crate::error::Result;
use crate::linalg::{Csr, Mat, Operator, thin};
use crate::solve::bootstrap::Resample;
use project::{Basis, Moments};

/// The slowest timescale may be shorter than the microstates' own by this factor before the result says that its meta-states cannot represent it.
const CARRIES: f64 = 1.5;
/// A meta-state that the data leave fewer times than this is named.
const FEW_EXITS: f64 = 5.0;
/// The projection and its stochastic neighbour may differ by this share in the slowest timescale before a sentence says so.
const NEAR: f64 = 0.2;

/// Sweeps that the search for the stochastic neighbour may take, and the work (`s^3` a sweep) that it may take where it is done once for each part of the data: what is left after that is left in
/// all of them alike.
const SWEEPS: usize = 20_000;
const WORK_A_PART: usize = 200_000_000;

fn sweeps(s: usize) -> usize {
    (WORK_A_PART / (s * s * s).max(1)).clamp(20, SWEEPS)
}

/// What kinetics are estimated from: the empirical chain and how often each state was left.
///
/// See the example of [`Kinetics`].
#[derive(Debug, Clone, Copy)]
pub struct Observations<'a> {
    /// P.
    pub p: &'a dyn Operator,
    /// Transitions out of each state; shares, for a transition matrix.
    pub departures: &'a [f64],
    /// How many counted pairs share the information of one: the lag for a sliding window, else 1.
    pub overlap: f64,
    /// Whether departures are numbers of transitions.
    pub counted: bool,
}

/// The data in parts, where intervals are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Uncertain<'a> {
    /// Blocks of frames, or single transitions.
    pub data: Resample<'a>,
    /// Seed of what is dealt at random.
    pub seed: u64,
}

impl Uncertain<'_> {
    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> usize {
        parts::parts(self)
    }
}

/// The chain of the meta-states as the data have it.
///
/// ```
/// use metastate::kinetics::{Kinetics, Observations};
/// use metastate::{Chain, Counts, Estimate, Mat, StateIndex};
///
/// let inside = [(0, 1), (1, 0), (0, 0), (1, 1), (2, 3), (3, 2), (2, 2), (3, 3)].repeat(20);
/// let counts = Counts::from_pairs(StateIndex::numbered(4), inside.into_iter().chain([(1, 2), (2, 1)]))?;
/// let chain = Chain::estimate(&counts, &Estimate::default())?;
/// let u = Mat::from_fn(4, 2, |i, j| f64::from(u8::from((i < 2) == (j == 0))));
/// let data = Observations { p: chain.p(), departures: chain.departures(), overlap: 1.0, counted: true };
/// let found = Kinetics::estimate(&u, &data, false, None)?;
/// assert!(found.chain[(0, 0)] > 0.98); // 1 of 81 departures leaves the group
/// assert!(found.modes[1].timescale > 30.0 && found.carries);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Kinetics {
    /// A stochastic matrix, `s x s`: from meta-state (row) to meta-state (column) in one lag.
    pub chain: Mat,
    /// The projection that it is nearest to; its rows sum to one, entries may be slightly negative.
    pub projected: Mat,
    /// The eigenvalues of the projection, largest modulus first, times in lags. As many have modulus one as the structure says.
    pub modes: Vec<Mode>,
    /// Closed classes of the chain, transient meta-states, periods.
    pub structure: Structure,
    /// The leading eigenvalues of the microstates' own chain, as many as meta-states.
    pub microstates: Vec<Mode>,
    /// How the states hang together.
    pub classes: Classes,
    /// Meta-states that hold states of several closed classes: no chain of meta-states tells these apart.
    pub straddling: Vec<usize>,
    /// Share of the departures that kinetics rest on: transient states that no meta-state is for are left out of them.
    pub share: f64,
    /// Steps of P that the memberships were carried along, m.
    pub steps: usize,
    /// Whether the memberships of all meta-states are different enough to be distinguished. Where they are not, their times cannot be distinguished either.
    pub told_apart: bool,
    /// Whether detailed balance was imposed.
    pub reversible: bool,
    /// Whether times of this model may be published; the sentences say why not.
    pub carries: bool,
    /// What a user should know, in sentences.
    pub sentences: Vec<String>,
    /// The same numbers with each part of the data weighing a little less, where intervals were asked for.
    pub lighter: Option<Lighter>,
    /// The same data counted at longer lags, where they are a trajectory.
    pub lags: Vec<LagLook>,
}

impl Kinetics {
    /// From memberships U (`d x s`) and the data.
    pub fn estimate(u: &Mat, data: &Observations, reversible: bool, uncertain: Option<&Uncertain>) -> Result<Self> {
        let classes = Classes::of(data.p);
        let found = if reversible { Some(reversible::of_operator(data)?) } else { None };
        let lifted = lifted(data.departures);
        let (p, departures): (&dyn Operator, &[f64]) = match &found {
            Some(r) => (r.operator(), r.law()),
            None => (data.p, &lifted),
        };
        let basis = Basis::new(u, p, departures, &classes);
        let moments = Moments::of_operator(&basis, p, departures);
        let projected = project::projected(&moments);
        let chain = finish(&moments, &projected, &basis, reversible, SWEEPS);
        let structure = Structure::of(&chain);
        let times = times(&projected, &chain, &structure);
        let microstates = project::ritz(u, p, departures, structure.on_unit_circle());
        let unit = structure.on_unit_circle();
        let of_chain = takes_over(&modes(&projected, unit), &chain, unit);
        let lighter = uncertain.map(|d| parts::lighter(d, &basis, reversible, (unit, of_chain))).transpose()?;
        let mut kinetics = Kinetics {
            chain,
            projected,
            modes: times,
            structure,
            microstates,
            classes,
            straddling: basis.straddling.clone(),
            share: basis.share,
            steps: basis.steps,
            told_apart: basis.told_apart,
            reversible,
            carries: true,
            sentences: Vec::new(),
            lighter,
            lags: Vec::new(),
        };
        kinetics.judge(&basis, data);
        Ok(kinetics)
    }

    /// Number of meta-states.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.chain.rows()
    }

    /// The latent chain with these kinetics: forecasts, passage times and committors are then those of the data.
    pub fn latent<'a>(&self, u: &'a Mat, v: &'a Mat) -> Result<LatentChain<'a>> {
        LatentChain::with_chain(u, v, self.chain.clone())
    }

    /// Intervals of the timescales, in lags: one for each mode after the first.
    #[must_use]
    pub fn timescale_intervals(&self, confidence: f64) -> Vec<(f64, f64)> {
        let Some(lighter) = &self.lighter else { return Vec::new() };
        (1..self.modes.len())
            .map(|place| {
                let of = |modes: &Vec<Mode>| modes.get(place).map_or(f64::NAN, |m| m.timescale);
                interval(self.modes[place].timescale, lighter.modes.iter().map(of), Scale::Times, confidence)
            })
            .collect()
    }

    /// Looks at longer lags, and keeps one sentence where the lag is not long enough.
    pub fn look_at_lags(&mut self, lag: f64, looks: Vec<LagLook>) {
        self.lags = looks;
        let points: Vec<LagPoint> = self.lags.iter().filter_map(LagLook::slowest).collect();
        if let Some(sentence) = advice(&points, lag).filter(|s| !s.contains("is long enough:") || !s.starts_with("lag")) {
            self.sentences.push(sentence);
        }
    }

    /// The slowest timescale, in frames, with its interval where there were draws.
    #[must_use]
    pub fn lag_point(&self, lag: f64, confidence: f64) -> Option<LagPoint> {
        let place = self.modes.iter().skip(1).position(|m| m.timescale.is_finite())?;
        let t = lag * self.modes[place + 1].timescale;
        let (low, high) = self.timescale_intervals(confidence).get(place).map_or((t, t), |&(a, b)| (lag * a, lag * b));
        Some(LagPoint { lag, timescale: t, low, high })
    }

    /// Decides whether the times may be published, and says what a reader must know.
    fn judge(&mut self, basis: &Basis, data: &Observations) {
        self.sentences.extend(self.classes.sentence(self.share));
        let names = |list: &[usize]| list.iter().map(|j| (j + 1).to_string()).collect::<Vec<_>>().join(", ");
        if !self.straddling.is_empty() {
            self.carries = false;
            self.sentences.push(format!(
                "meta-states {} hold states that the data do not connect in both directions; times between such states are infinite and this model does not show it: take more meta-states, or --connected largest",
                names(&self.straddling)
            ));
        }
        if !basis.told_apart {
            self.carries = false;
            self.sentences.push(
                "the memberships of some meta-states are nearly the same, so that the data cannot tell their times apart: take fewer meta-states or a smaller penalty"
                    .to_owned(),
            );
        }
        let (own, micro) = (self.slowest(&self.modes), self.slowest(&self.microstates));
        if let (Some(own), Some(micro)) = (own, micro)
            && micro > CARRIES * own
            && micro > 1.0
        {
            self.carries = false;
            self.sentences.push(format!(
                "these meta-states cannot represent the slowest process: its timescale is {} lags here and {} in the states' own chain; take more meta-states, a longer lag or a refit by likelihood",
                short(own),
                short(micro)
            ));
        }
        let of_chain = modes(&self.chain, self.structure.on_unit_circle());
        if let (Some(own), Some(chain)) = (own, self.slowest(&of_chain))
            && (chain / own).ln().abs() > NEAR
        {
            self.sentences.push(format!(
                "a chain with non-negative probabilities has a slowest timescale of {} lags where the data have {}: passage times and fluxes are those of that chain",
                short(chain),
                short(own)
            ));
        }
        let rare = self.rarely_left(basis, data);
        if !rare.is_empty() {
            self.sentences.push(format!(
                "the data leave meta-states {} fewer than {FEW_EXITS:.0} times: the times to leave them are uncertain, see --bootstrap",
                names(&rare)
            ));
        }
    }

    /// The slowest finite timescale.
    fn slowest(&self, modes: &[Mode]) -> Option<f64> {
        modes.iter().skip(1).map(|m| m.timescale).find(|t| t.is_finite() && *t > 0.0)
    }

    /// Meta-states that few independent transitions leave, for ever closed ones aside.
    fn rarely_left(&self, basis: &Basis, data: &Observations) -> Vec<usize> {
        if !data.counted {
            return Vec::new();
        }
        let visits = thin::fold_rows(&basis.u, |sums, i, row| {
            sums.iter_mut().zip(row).for_each(|(s, u)| *s += data.departures[i] * u);
        });
        let exits = |j: usize| visits[j] / data.overlap * (1.0 - self.chain[(j, j)]);
        (0..self.rank()).filter(|&j| self.chain[(j, j)] < 1.0 && exits(j) < FEW_EXITS).collect()
    }
}

/// Departures below this are made larger by a power of two: their products would leave the numbers, and the chain knows shares only.
const TINY: f64 = 1e-200;
/// The power of two.
const LIFT: i32 = 1000;

fn lifted(departures: &[f64]) -> std::borrow::Cow<'_, [f64]> {
    let most = departures.iter().copied().fold(0.0, f64::max);
    match most < TINY {
        true => departures.iter().map(|n| n * 2f64.powi(LIFT)).collect(),
        false => departures.into(),
    }
}

/// The stochastic chain next to a projection, with detailed balance where it is asked for.
fn finish(moments: &Moments, projected: &Mat, basis: &Basis, reversible: bool, sweeps: usize) -> Mat {
    let chain = project::stochastic(moments, projected, &basis.home, sweeps);
    if reversible { with_detailed_balance(&chain) } else { chain }
}

/// The modes of a projection beside its stochastic neighbour, as [`Kinetics::modes`] has them.
#[must_use]
pub fn modes_of(projected: &Mat, chain: &Mat) -> Vec<Mode> {
    times(projected, chain, &Structure::of(chain))
}

/// Mean steps of a chain from one meta-state to another, at least one; the mean return time where both are the same.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::mean_first_passage;
///
/// let chain = Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8])?;
/// assert!((mean_first_passage(&chain, 0, 1) - 10.0).abs() < 1e-12);
/// assert!((mean_first_passage(&chain, 0, 0) - 1.5).abs() < 1e-12); // the mean return time is 1 / pi_0
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn mean_first_passage(chain: &Mat, from: usize, to: usize) -> f64 {
    let others: Vec<usize> = (0..chain.rows()).filter(|&j| j != to).collect();
    let q = Mat::from_fn(others.len(), others.len(), |a, b| chain[(others[a], others[b])]);
    let exit: Vec<f64> = others.iter().map(|&j| chain[(j, to)]).collect();
    let steps = collected(&q, &exit, &vec![1.0; others.len()]);
    match others.iter().position(|&j| j == from) {
        Some(a) => steps[a],
        None => 1.0 + others.iter().zip(&steps).filter(|(j, _)| chain[(to, **j)] > 0.0).map(|(&j, t)| chain[(to, j)] * t).sum::<f64>(),
    }
}

/// The probability of meeting one of `to` before any of `from`, from each meta-state of a chain.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::committor_of_chain;
///
/// let chain = Mat::from_vec(3, 3, vec![0.9, 0.1, 0.0, 0.05, 0.9, 0.05, 0.0, 0.1, 0.9])?;
/// let reaches = committor_of_chain(&chain, &[0], &[2])?;
/// assert!((reaches[1] - 0.5).abs() < 1e-12); // from the middle both ends are as likely
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn committor_of_chain(chain: &Mat, from: &[usize], to: &[usize]) -> Result<Vec<f64>> {
    flux::check(chain.rows(), from, to)?;
    Ok(first_met(chain, from, to))
}

/// The closed classes of a chain, the stationary law of each, and the mean over time that a law over meta-states leads to.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::stationary_of_chain;
///
/// let (classes, laws, _) = stationary_of_chain(&Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8])?, &[1.0, 0.0]);
/// assert_eq!(classes, [[0, 1]]);
/// assert!((laws[0][0] - 2.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn stationary_of_chain(chain: &Mat, start: &[f64]) -> (Vec<Vec<usize>>, Vec<Vec<f64>>, Vec<f64>) {
    let structure = Structure::of(chain);
    let law = |members: &[usize]| {
        let inner = irreducible(Mat::from_fn(members.len(), members.len(), |a, b| chain[(members[a], members[b])]));
        let mut law = vec![0.0; chain.rows()];
        members.iter().zip(inner).for_each(|(&j, x)| law[j] = x);
        law
    };
    let laws: Vec<Vec<f64>> = structure.closed.iter().map(|c| law(&c.members)).collect();
    let limit = if let [only] = &laws[..] { only.clone() } else { by_elimination(chain.clone(), start.to_vec()).0 };
    (structure.closed.into_iter().map(|c| c.members).collect(), laws, limit)
}

/// The probability of ending in each closed class of a chain, `s x classes`.
///
/// ```
/// use metastate::Mat;
/// use metastate::kinetics::fates_of_chain;
///
/// // From 1 the chain ends in 0 three times of four, else in 2.
/// let (_, fates) = fates_of_chain(&Mat::from_vec(3, 3, vec![1.0, 0.0, 0.0, 0.3, 0.6, 0.1, 0.0, 0.0, 1.0])?);
/// assert!((fates[(1, 0)] - 0.75).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
#[must_use]
pub fn fates_of_chain(chain: &Mat) -> (Structure, Mat) {
    let structure = Structure::of(chain);
    let (s, classes) = (chain.rows(), structure.closed.len());
    let mut out = Mat::zeros(s, classes);
    let t = &structure.transient;
    let q = Mat::from_fn(t.len(), t.len(), |a, b| chain[(t[a], t[b])]);
    let into = |members: &[usize]| t.iter().map(|&j| members.iter().map(|&k| chain[(j, k)]).sum::<f64>()).collect::<Vec<f64>>();
    let each: Vec<Vec<f64>> = structure.closed.iter().map(|c| into(&c.members)).collect();
    let exit: Vec<f64> = (0..t.len()).map(|a| each.iter().map(|e| e[a]).sum()).collect();
    for (k, (class, reward)) in structure.closed.iter().zip(&each).enumerate() {
        class.members.iter().for_each(|&j| out[(j, k)] = 1.0);
        t.iter().zip(collected(&q, &exit, reward)).for_each(|(&j, x)| out[(j, k)] = x.min(1.0));
    }
    (structure, out)
}

/// The modes of the projection. Where noise puts an eigenvalue outside the unit circle that the structure does not put on it, the stochastic chain's own stand in.
fn times(projected: &Mat, chain: &Mat, structure: &Structure) -> Vec<Mode> {
    let unit = structure.on_unit_circle();
    let found = modes(projected, unit);
    if takes_over(&found, chain, unit) { modes(chain, unit) } else { found }
}

/// Whether the chain's own modes stand in for the projection's.
fn takes_over(found: &[Mode], chain: &Mat, unit: usize) -> bool {
    found.iter().skip(unit).any(|m| m.modulus() >= 1.0) || found.len() < chain.rows()
}

/// A number with four digits.
pub(crate) fn short(x: f64) -> String {
    let digits = if x.abs() >= 1.0 && x.is_finite() { (3 - x.abs().log10().floor() as i32).max(0) as usize } else { 4 };
    format!("{x:.digits$}")
}

/// `W^T C W` and `W^T D_C W` of counts, for whoever has them in parts.
pub(crate) fn moments_of_counts(w: &Mat, counts: &Csr) -> Moments {
    Moments::of_counts(w, counts)
}
