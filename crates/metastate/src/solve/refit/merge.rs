//! Two meta-states made one: those whose next steps are most alike.

use std::ops::Range;

use crate::linalg::thin;
use crate::solve::problem::Factors;

/// Merges the pair (j, k) that costs the least likelihood when each state keeps its membership: with masses `m = U^T share` and the
/// mean law `v = (m_j v_j + m_k v_k) / (m_j + m_k)`, that is `m_j KL(v_j | v) + m_k KL(v_k | v)`. A single meta-state is not changed.
pub(crate) fn merge_nearest(x: &mut Factors, share: &[f64]) {
    let s = x.rank();
    if s < 2 {
        return;
    }
    let mass = x.mass(share);
    let (j, k) = nearest_pair(x, &mass);
    let both = (mass[j] + mass[k]).max(f64::MIN_POSITIVE);
    let (a, b) = (mass[j] / both, mass[k] / both);
    thin::for_each_row_mut(&mut x.u, |_, row| row[j] += row[k]);
    thin::for_each_row_mut(&mut x.v, |_, row| row[j] = a * row[j] + b * row[k]);
    let keep: Vec<usize> = (0..s).filter(|l| *l != k).collect();
    x.keep_columns(&keep);
}

/// The pair that costs the least; of several such pairs the first. One pass over the rows of V: `O(d s^2)`.
fn nearest_pair(x: &Factors, mass: &[f64]) -> (usize, usize) {
    let s = x.rank();
    let h = |p: f64| if p > 0.0 { p * p.ln() } else { 0.0 };
    // m_j KL(v_j | v) + m_k KL(v_k | v) = m_j H_j + m_k H_k - (m_j + m_k) H, with H = sum_i h(v_i) of each law, h(p) = p ln p.
    let alone = thin::fold_rows(&x.v, |sums, _, row| sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += h(*v)));
    let both = |j: usize, k: usize| (mass[j] + mass[k]).max(f64::MIN_POSITIVE);
    let pairs: Vec<(usize, usize)> = (0..s).flat_map(|j| (j + 1..s).map(move |k| (j, k))).collect();
    let of_rows = |rows: Range<usize>| {
        let mut sums = vec![0.0; pairs.len()];
        for row in rows.map(|i| x.v.row(i)) {
            sums.iter_mut().zip(&pairs).for_each(|(sum, &(j, k))| *sum += h((mass[j] * row[j] + mass[k] * row[k]) / both(j, k)));
        }
        sums
    };
    let add = |sum: &mut Vec<f64>, part: Vec<f64>| sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
    let together = thin::sum_blocks(x.v.rows(), LOGARITHM * pairs.len(), of_rows, add).unwrap_or_default();
    let cost = |(&(j, k), h): (&(usize, usize), f64)| (mass[j] * alone[j] + mass[k] * alone[k] - both(j, k) * h, (j, k));
    let least = pairs.iter().zip(together).map(cost).reduce(|best, next| if next.0 < best.0 { next } else { best });
    least.map_or((0, 1), |(_, pair)| pair)
}

/// Operations that a logarithm is worth.
const LOGARITHM: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Mat;

    #[test]
    fn the_two_most_alike_become_one_and_the_law_of_all_stays() {
        let u = Mat::from_vec(3, 3, vec![1.0, 0.0, 0.0, 0.2, 0.5, 0.3, 0.0, 0.1, 0.9]).unwrap();
        let v = Mat::from_vec(3, 3, vec![0.8, 0.1, 0.15, 0.1, 0.2, 0.25, 0.1, 0.7, 0.6]).unwrap();
        let share = [0.2, 0.3, 0.5];
        let law = |x: &Factors| -> Vec<f64> {
            (0..3).map(|j| (0..3).map(|i| share[i] * (0..x.rank()).map(|k| x.u[(i, k)] * x.v[(j, k)]).sum::<f64>()).sum()).collect()
        };
        let mut x = Factors { u, v };
        let before = law(&x);
        merge_nearest(&mut x, &share);
        assert_eq!(x.rank(), 2);
        // Columns 2 and 3 are one now; their masses are 0.2 and 0.54.
        assert!((x.u[(1, 1)] - 0.8).abs() < 1e-15 && (x.u[(1, 0)] - 0.2).abs() < 1e-15);
        assert!((x.v[(0, 1)] - (0.2 * 0.1 + 0.54 * 0.15) / 0.74).abs() < 1e-15);
        assert!(law(&x).iter().zip(&before).all(|(a, b)| (a - b).abs() < 1e-15));
        merge_nearest(&mut x, &share);
        merge_nearest(&mut x, &share);
        assert_eq!(x.rank(), 1);
    }
}
