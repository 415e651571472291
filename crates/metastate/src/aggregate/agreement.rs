//! How well two partitions agree: the adjusted Rand index and the normalised mutual information, from their table of overlaps.

use std::collections::BTreeMap;

/// How much weight falls into cluster `a` of the one and `b` of the other.
///
/// ```
/// use metastate::aggregate::Overlap;
///
/// // The same groups under other names.
/// assert_eq!(Overlap::of_labels(&[0, 0, 1, 1], &[7, 7, 3, 3]).adjusted_rand(), Some(1.0));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overlap {
    cells: BTreeMap<(u32, u32), f64>,
}

impl Overlap {
    /// From pairs of labels with their weights.
    pub fn new(pairs: impl IntoIterator<Item = (u32, u32, f64)>) -> Self {
        let mut cells = BTreeMap::new();
        for (a, b, w) in pairs {
            *cells.entry((a, b)).or_insert(0.0) += w;
        }
        Overlap { cells }
    }

    /// Two labelings of the same states, each state counted once.
    #[must_use]
    pub fn of_labels(a: &[u32], b: &[u32]) -> Self {
        Overlap::new(a.iter().zip(b).map(|(&a, &b)| (a, b, 1.0)))
    }

    fn margins(&self) -> (BTreeMap<u32, f64>, BTreeMap<u32, f64>, f64) {
        let (mut rows, mut columns, mut total) = (BTreeMap::new(), BTreeMap::new(), 0.0);
        for (&(a, b), &w) in &self.cells {
            *rows.entry(a).or_insert(0.0) += w;
            *columns.entry(b).or_insert(0.0) += w;
            total += w;
        }
        (rows, columns, total)
    }

    /// Adjusted Rand index (Hubert and Arabie 1985): 1 for the same partition, 0 as good as chance. `None` without two items.
    #[must_use]
    pub fn adjusted_rand(&self) -> Option<f64> {
        let pairs = |n: f64| n * (n - 1.0) / 2.0;
        let (rows, columns, total) = self.margins();
        if total < 2.0 {
            return None;
        }
        let together: f64 = self.cells.values().map(|&n| pairs(n)).sum();
        let (in_rows, in_columns): (f64, f64) = (rows.values().map(|&n| pairs(n)).sum(), columns.values().map(|&n| pairs(n)).sum());
        let expected = in_rows * in_columns / pairs(total);
        let most = 0.5 * (in_rows + in_columns);
        Some(if most == expected { 1.0 } else { (together - expected) / (most - expected) })
    }

    /// Mutual information over the mean of the two entropies: 1 for the same partition, 0 when they are independent.
    #[must_use]
    pub fn normalised_mutual_information(&self) -> Option<f64> {
        let (rows, columns, total) = self.margins();
        if total <= 0.0 {
            return None;
        }
        let entropy =
            |parts: &BTreeMap<u32, f64>| -> f64 { parts.values().filter(|n| **n > 0.0).map(|n| -(n / total) * (n / total).ln()).sum() };
        let information: f64 =
            self.cells.iter().filter(|(_, n)| **n > 0.0).map(|((a, b), n)| n / total * (n * total / (rows[a] * columns[b])).ln()).sum();
        let mean = 0.5 * (entropy(&rows) + entropy(&columns));
        Some(if mean == 0.0 { 1.0 } else { (information / mean).clamp(0.0, 1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // scikit-learn 1.9: adjusted_rand_score and normalized_mutual_info_score of these labels.
        let (a, b) = ([0, 0, 0, 1, 1, 1, 2, 2, 2, 2], [0, 0, 1, 1, 1, 2, 2, 2, 2, 0]);
        let overlap = Overlap::of_labels(&a, &b);
        assert!((overlap.adjusted_rand().unwrap() - EXPECTED_ARI).abs() < 1e-14);
        assert!((overlap.normalised_mutual_information().unwrap() - EXPECTED_NMI).abs() < 1e-14);
    }

    const EXPECTED_ARI: f64 = 0.20454545454545456;
    const EXPECTED_NMI: f64 = 0.44270128334605;

    #[test]
    fn names_do_not_matter_and_chance_is_zero() {
        let same = Overlap::of_labels(&[0, 0, 1, 1, 2], &[7, 7, 3, 3, 0]);
        assert_eq!(same.adjusted_rand(), Some(1.0));
        assert!((same.normalised_mutual_information().unwrap() - 1.0).abs() < 1e-14);
        // Independent by construction.
        let independent = Overlap::new((0..4).flat_map(|a| (0..3).map(move |b| (a, b, 50.0))));
        assert!(independent.adjusted_rand().unwrap().abs() < 0.01);
        assert!(independent.normalised_mutual_information().unwrap() < 1e-12);
        assert_eq!(Overlap::default().adjusted_rand(), None);
        // Where chance would do better, the index is below zero.
        let (a, b): (Vec<u32>, Vec<u32>) = (0..60).map(|i| (i % 3, i / 3 % 4)).unzip();
        assert!(Overlap::of_labels(&a, &b).adjusted_rand().unwrap() < 0.0);
    }

    #[test]
    fn weights_count_as_repeated_items() {
        let weighted = Overlap::new([(0, 0, 3.0), (0, 1, 1.0), (1, 1, 2.0)]);
        let repeated = Overlap::of_labels(&[0, 0, 0, 0, 1, 1], &[0, 0, 0, 1, 1, 1]);
        assert_eq!(weighted, repeated);
    }
}
