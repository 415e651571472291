//! Two answers about the same states: which zone of the one stands for which of the other, and which states moved.

use super::agreement::Overlap;
use crate::linalg::Mat;
use crate::linalg::assignment::cheapest_assignment;

/// One answer, on the states that both have, in the same order.
///
/// See the example of [`Difference`].
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// The zone of each state, from 0.
    pub zone: &'a [u32],
    /// How many zones there are; some may have none of these states.
    pub zones: usize,
    /// Memberships, one row a state.
    pub memberships: &'a Mat,
    /// Share of each state in its own data; they need not sum to one.
    pub share: &'a [f64],
}

/// How two answers differ.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::{Answer, Difference};
///
/// // The same zones under other numbers, but for the last state.
/// let hard = |zone: &[u32]| Mat::from_fn(4, 2, |i, j| f64::from(u8::from(zone[i] as usize == j)));
/// let (first, second, share) = ([0, 0, 1, 1], [1, 1, 0, 1], [0.25; 4]);
/// let (u, v) = (hard(&first), hard(&second));
/// let a = Answer { zone: &first, zones: 2, memberships: &u, share: &share };
/// let b = Answer { zone: &second, zones: 2, memberships: &v, share: &share };
/// let found = Difference::between(&a, &b);
/// assert_eq!(found.partner, [Some(1), Some(0)]);
/// assert_eq!((found.moved, found.stayed), (vec![false, false, false, true], 0.75));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// For each zone of the first answer the zone of the second that stands for it: the pairs that share the most weight together. A zone that shares none with its partner has none.
    pub partner: Vec<Option<usize>>,
    /// The weight that zone `a` of the first and `b` of the second share: the mean of the two shares of each state, all of them together one.
    pub shared: Mat,
    /// Agreement of the two partitions beyond chance, each state counted once; none with fewer than two states.
    pub adjusted_rand: Option<f64>,
    /// Their mutual information over the mean of their entropies, each state counted once.
    pub normalised_mutual_information: Option<f64>,
    /// For each state whether it left its zone: whether it lies elsewhere than in the partner of its zone.
    pub moved: Vec<bool>,
    /// For each state half the absolute difference of its memberships, meta-states matched as zones are: 0 where it belongs as it did, 1 where it belongs to other meta-states altogether.
    pub shift: Vec<f64>,
    /// The share of the weight that stayed.
    pub stayed: f64,
}

impl Difference {
    /// Compares two answers on their common states.
    #[must_use]
    pub fn between(a: &Answer, b: &Answer) -> Self {
        let (of_a, of_b): (f64, f64) = (a.share.iter().sum(), b.share.iter().sum());
        let weight = |i: usize| 0.5 * (a.share[i] / of_a.max(f64::MIN_POSITIVE) + b.share[i] / of_b.max(f64::MIN_POSITIVE));
        let mut shared = Mat::zeros(a.zones, b.zones);
        for i in 0..a.zone.len() {
            shared[(a.zone[i] as usize, b.zone[i] as usize)] += weight(i);
        }
        let partner = partners(&shared);
        let moved: Vec<bool> = (0..a.zone.len()).map(|i| partner[a.zone[i] as usize] != Some(b.zone[i] as usize)).collect();
        let overlap = Overlap::of_labels(a.zone, b.zone);
        let stayed = (0..moved.len()).filter(|&i| !moved[i]).map(weight).sum();
        Difference {
            shift: shift(a.memberships, b.memberships, weight),
            shared,
            adjusted_rand: overlap.adjusted_rand(),
            normalised_mutual_information: overlap.normalised_mutual_information(),
            moved,
            partner,
            stayed,
        }
    }
}

/// The pairs with the largest sum; those that share nothing are none.
fn partners(shared: &Mat) -> Vec<Option<usize>> {
    let (rows, columns) = (shared.rows(), shared.cols());
    let inside = |a: usize, b: usize| a < rows && b < columns;
    let place = cheapest_assignment(rows.max(columns), |a, b| if inside(a, b) { -shared[(a, b)] } else { 0.0 });
    (0..rows).map(|a| Some(place[a]).filter(|&b| inside(a, b) && shared[(a, b)] > 0.0)).collect()
}

/// Half the absolute difference of the memberships of each state, after the meta-states were matched by the weight that they share. What belongs to a meta-state without a partner
/// belongs to none of the other answer.
fn shift(u: &Mat, v: &Mat, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut shared = Mat::zeros(u.cols(), v.cols());
    for i in 0..u.rows() {
        let w = weight(i);
        for (k, x) in u.row(i).iter().enumerate() {
            for (l, y) in v.row(i).iter().enumerate() {
                shared[(k, l)] += w * x.min(*y);
            }
        }
    }
    let partner = partners(&shared);
    let of_state = |i: usize| {
        let kept: f64 = partner.iter().enumerate().filter_map(|(k, l)| Some(u[(i, k)].min(v[(i, (*l)?)]))).sum();
        (1.0 - kept).clamp(0.0, 1.0)
    };
    (0..u.rows()).map(of_state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hard(zone: &[u32], zones: usize) -> Mat {
        Mat::from_fn(zone.len(), zones, |i, k| f64::from(u8::from(zone[i] as usize == k)))
    }

    #[test]
    fn the_same_zones_under_other_numbers_differ_in_nothing() {
        let (a, b) = ([0, 0, 1, 1, 2, 2], [2, 2, 0, 0, 1, 1]);
        let (u, v) = (hard(&a, 3), hard(&b, 3));
        let share = [0.1, 0.2, 0.3, 0.1, 0.2, 0.1];
        let found = Difference::between(
            &Answer { zone: &a, zones: 3, memberships: &u, share: &share },
            &Answer { zone: &b, zones: 3, memberships: &v, share: &share },
        );
        assert_eq!(found.partner, [Some(2), Some(0), Some(1)]);
        assert_eq!((found.adjusted_rand, found.moved.iter().filter(|m| **m).count()), (Some(1.0), 0));
        assert!((found.stayed - 1.0).abs() < 1e-15 && found.shift.iter().all(|s| *s < 1e-15));
    }

    #[test]
    fn a_zone_that_was_split_has_one_partner_and_its_other_half_moved() {
        let (a, b) = ([0, 0, 0, 1, 1], [0, 0, 1, 2, 2]);
        let (u, v) = (hard(&a, 2), hard(&b, 4));
        let (of_a, of_b) = ([2.0, 2.0, 2.0, 2.0, 2.0], [0.1, 0.1, 0.1, 0.1, 0.6]);
        let found = Difference::between(
            &Answer { zone: &a, zones: 2, memberships: &u, share: &of_a },
            &Answer { zone: &b, zones: 4, memberships: &v, share: &of_b },
        );
        // Zone 3 of the second has none of these states: nobody's partner.
        assert_eq!(found.partner, [Some(0), Some(2)]);
        assert_eq!(found.moved, [false, false, true, false, false]);
        assert_eq!(found.shift, [0.0, 0.0, 1.0, 0.0, 0.0]);
        // The state that moved weighs a fifth in the one and a tenth in the other.
        assert!((found.stayed - 0.85).abs() < 1e-15, "{}", found.stayed);
        assert!((found.shared[(0, 1)] - 0.15).abs() < 1e-15);
    }

    #[test]
    fn memberships_shift_by_what_they_do_not_share() {
        let (a, b) = ([0, 1], [0, 1]);
        let u = Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8]).unwrap();
        let v = Mat::from_vec(2, 2, vec![0.6, 0.4, 0.2, 0.8]).unwrap();
        let share = [0.5, 0.5];
        let found = Difference::between(
            &Answer { zone: &a, zones: 2, memberships: &u, share: &share },
            &Answer { zone: &b, zones: 2, memberships: &v, share: &share },
        );
        assert!((found.shift[0] - 0.3).abs() < 1e-15 && found.shift[1].abs() < 1e-15, "{:?}", found.shift);
    }
}
