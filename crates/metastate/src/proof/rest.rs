//! (P7) What is left of a dual point beside its known singular vectors, `R = (I - L L^T) W (I - Q Q^T)`, is bounded by random starts.
//!
//! For a Gaussian vector g and a unit vector v, `|<g, v>| <= tau` with probability at most `tau sqrt(2 / pi)`; for q independent ones all at once, with that to the power q. Let v be the singular
//! vector of R for its largest value s. `T_m`, the Chebyshev polynomial of degree m, of `2 R^T R / c^2 - 1` maps the part of g along v to `T_m(2 s^2 / c^2 - 1)` times itself. So the largest length y
//! among the q images has `y >= tau |T_m(2 s^2 / c^2 - 1)|`, but for that probability, and where `y >= tau`,
//!
//! `s^2 <= c^2 (1 + cosh(arcosh(y / tau) / m)) / 2`.
//!
//! It holds for every c. Any c at or a little above s makes it sharp: then y is about `sqrt(n)`, and `arcosh(y / tau)` a number near ten. Three blocks of q vectors are all that is kept, and
//! nothing has to stay orthogonal.
//!
//! Rounding: a step of the recurrence is wrong by `8 rho_0 s / c^2` of the length of its vector at most (rho_0 bounds the rounding of a product with W). What is made at step j comes out multiplied by
//! `U_(m-j)(x)`, `x = 2 s^2 / c^2 - 1`, which for `x >= 1` is at most `(m - j + 1) T_m(x) / T_j(x)`; and `T_j(x) >= x >= s / c`. So beside `T_m(x)` all steps together weigh at most `4 m (m + 1) rho_0 / c` times the
//! longest vector of the recurrence, however large s is. With `c >= 0.9` that is below half of the `10 m^2 rho_0` that is taken off tau. Where s is below c there is nothing to show.

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Effort;
use super::leading::Leading;
use super::near_one::{chebyshev, take_off};
use super::point::DualPoint;
use crate::linalg::{Mat, thin};

/// Random vectors of one try.
const STARTS: usize = 8;
/// Tries of one proof.
pub(super) const TRIES: usize = 4;
/// Degree of the polynomial at the first try; each further one has twice as much.
const STEPS: usize = 30;
/// What rounding may take off the part along v, in units of `m^2 rho_0` times the longest vector.
const ROUNDING: f64 = 10.0;
/// Below this, the rest has no part in the norm.
const CLEAR: f64 = 0.995;
/// c at least: nothing is gained by knowing that the rest is smaller still.
const LEAST_END: f64 = 0.9;
/// Where the rest exceeds 1, a bound that is looser by less than this share of the excess is not made sharper.
const WORTH_MORE_STEPS: f64 = 0.1;

/// What was proven of the rest.
pub(super) struct Rest {
    /// An upper bound of its norm.
    pub norm: f64,
    /// Directions that came out largest: where the norm is above 1, what is missing lies among them.
    pub directions: Mat,
}

/// The probability that any of so many tries does not hold.
pub(super) fn probability(effort: &Effort, tried: usize) -> f64 {
    effort.failure_probability * tried as f64 / TRIES as f64
}

/// Bounds the rest; with more steps as long as the bound is near or above 1 and more of them could bring it below. `go_on` is asked before every try but the first that gives a bound. `tried` counts the tries of
/// one proof, which share its probability; `rounding` is what products with W may be wrong by.
pub(super) fn bound(
    w: &DualPoint,
    leading: &Leading,
    rounding: f64,
    effort: &Effort,
    tried: &mut usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Rest {
    let allowed = effort.failure_probability / TRIES as f64;
    let mut best = Rest { norm: f64::INFINITY, directions: Mat::default() };
    let mut end = LEAST_END;
    while *tried < TRIES && (best.norm.is_infinite() || go_on()) {
        // Every try has its own stream of random numbers: the start must be independent of the matrix.
        let seed = effort.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x5851_f42d + *tried as u64);
        let steps = STEPS << *tried;
        *tried += 1;
        let found = images(w, leading, end, steps, seed);
        let (norm, reached) = found.bound(end, steps, allowed, rounding);
        if norm < best.norm {
            (best.norm, best.directions) = (norm, found.images);
        }
        if best.norm <= CLEAR || best.norm - reached <= WORTH_MORE_STEPS * (reached - 1.0) {
            break;
        }
        // The next c: where the rest seems to be.
        end = reached.max(LEAST_END);
    }
    best
}

/// What became of the random vectors.
struct Images {
    images: Mat,
    /// The longest of them.
    longest: f64,
    /// The longest vector of the whole recurrence.
    longest_of_all: f64,
}

impl Images {
    /// The bound that follows, and an estimate of the norm itself (as if the longest had been a unit vector along v).
    fn bound(&self, end: f64, steps: usize, probability: f64, rounding: f64) -> (f64, f64) {
        let value = |ratio: f64| end * (0.5 * (1.0 + (ratio.max(1.0).acosh() / steps as f64).cosh())).sqrt();
        let share = probability.powf(1.0 / STARTS as f64) * (std::f64::consts::PI / 2.0).sqrt();
        let tau = share - ROUNDING * (steps * steps) as f64 * rounding * self.longest_of_all;
        match self.longest.is_finite() {
            true if tau > 0.0 => (value(self.longest / tau), value(self.longest)),
            true => (f64::INFINITY, value(self.longest)),
            false => (f64::INFINITY, 2.0 * end),
        }
    }
}

/// Fresh Gaussian vectors and what the polynomial makes of them.
fn images(w: &DualPoint, leading: &Leading, end: f64, steps: usize, seed: u64) -> Images {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut start = Mat::from_fn(w.problem.cols(), STARTS, |_, _| StandardNormal.sample(&mut rng));
    take_off(&mut start, &leading.right);
    let (mut image, mut longest_of_all) = (Mat::default(), 0.0);
    let times = |x: &Mat, out: &mut Mat| {
        longest_of_all = longest(x).max(longest_of_all);
        w.apply(x, &mut image);
        take_off(&mut image, &leading.left);
        w.apply_transpose(&image, out);
        take_off(out, &leading.right);
    };
    let images = chebyshev(times, &start, end * end, steps);
    let longest = longest(&images);
    Images { images, longest, longest_of_all }
}

/// The length of the longest column; not a number where one is not.
fn longest(x: &Mat) -> f64 {
    thin::column_norms(x).into_iter().fold(0.0, |most: f64, y| if y.is_nan() { y } else { most.max(y) })
}
