//! How connected zones are on the map: the share of neighbouring places that lie in the same zone, against the share that
//! zones of the same sizes, dealt to the places at random, would have.

use std::collections::BTreeMap;

/// Neighbours looked for around a place that is no cell.
const NEAREST: usize = 6;

/// Spatial coherence of a partition.
///
/// See the example of [`Neighbours`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Coherence {
    /// Neighbouring pairs.
    pub pairs: usize,
    /// Share of them in one zone.
    pub same: f64,
    /// The same expected by chance: `sum_z q_z^2`, q_z the share of the pairs' ends in zone z.
    pub chance: f64,
    /// `(same - chance) / (1 - chance)`: 1 where no border runs between zones, 0 as good as chance.
    pub corrected: f64,
}

/// Pairs of places that are neighbours, each pair once, lower number first.
///
/// ```
/// use metastate::aggregate::Neighbours;
///
/// // Four cells in a row.
/// let neighbours = Neighbours::of_cells(&[(0.5, 0.5), (1.5, 0.5), (2.5, 0.5), (3.5, 0.5)], 1.0);
/// assert_eq!(neighbours.pairs(), [(0, 1), (1, 2), (2, 3)]);
/// let together = neighbours.coherence(&[0, 0, 1, 1]).unwrap();
/// assert_eq!((together.same, neighbours.coherence(&[0, 1, 0, 1]).unwrap().same), (2.0 / 3.0, 0.0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neighbours(Vec<(u32, u32)>);

impl Neighbours {
    /// Square cells that share an edge; places that are not finite have no neighbours.
    #[must_use]
    pub fn of_cells(centres: &[(f64, f64)], side: f64) -> Self {
        let at: BTreeMap<(i64, i64), u32> =
            centres.iter().enumerate().filter_map(|(i, &place)| Some((cell_of(place, side)?, i as u32))).collect();
        let mut pairs = Vec::new();
        for (&(x, y), &i) in &at {
            for other in [(x + 1, y), (x, y + 1)] {
                if let Some(&j) = at.get(&other) {
                    pairs.push((i.min(j), i.max(j)));
                }
            }
        }
        pairs.sort_unstable();
        Neighbours(pairs)
    }

    /// Points: i and j are neighbours when one is among the six nearest of the other. Degrees of longitude count by the cosine of
    /// the mean latitude.
    #[must_use]
    pub fn of_points(places: &[(f64, f64)]) -> Self {
        let known: Vec<usize> = (0..places.len()).filter(|&i| places[i].0.is_finite() && places[i].1.is_finite()).collect();
        let mean = known.iter().map(|&i| places[i].1).sum::<f64>() / known.len().max(1) as f64;
        let narrow = mean.to_radians().cos();
        let distance2 = |i: usize, j: usize| ((places[i].0 - places[j].0) * narrow).powi(2) + (places[i].1 - places[j].1).powi(2);
        let mut pairs = Vec::new();
        for &i in &known {
            let mut others: Vec<usize> = known.iter().copied().filter(|&j| j != i).collect();
            let nearer = |a: &usize, b: &usize| distance2(i, *a).total_cmp(&distance2(i, *b)).then(a.cmp(b));
            if others.len() > NEAREST {
                others.select_nth_unstable_by(NEAREST, nearer);
                others.truncate(NEAREST);
            }
            pairs.extend(others.iter().map(|&j| (i.min(j) as u32, i.max(j) as u32)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        Neighbours(pairs)
    }

    /// The pairs.
    #[must_use]
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// How coherent this partition is on the map; `None` without neighbours.
    #[must_use]
    pub fn coherence(&self, labels: &[u32]) -> Option<Coherence> {
        if self.0.is_empty() {
            return None;
        }
        let mut ends: BTreeMap<u32, f64> = BTreeMap::new();
        let mut same = 0.0;
        for &(i, j) in &self.0 {
            let (a, b) = (labels[i as usize], labels[j as usize]);
            *ends.entry(a).or_insert(0.0) += 1.0;
            *ends.entry(b).or_insert(0.0) += 1.0;
            same += f64::from(u8::from(a == b));
        }
        let pairs = self.0.len() as f64;
        let same = same / pairs;
        let chance: f64 = ends.values().map(|n| (n / (2.0 * pairs)).powi(2)).sum();
        let corrected = if chance >= 1.0 { 0.0 } else { (same - chance) / (1.0 - chance) };
        Some(Coherence { pairs: self.0.len(), same, chance, corrected })
    }
}

/// Cells farther out than this cannot be told from their neighbours by a number.
const FARTHEST_CELL: f64 = 1e15;

/// The cell whose centre this is, in whole cells; `None` for places that are not finite or too far away to number.
#[must_use]
pub fn cell_of((lon, lat): (f64, f64), side: f64) -> Option<(i64, i64)> {
    let number = |x: f64| {
        let n = (x / side - 0.5).round();
        (n.abs() < FARTHEST_CELL).then_some(n as i64)
    };
    Some((number(lon)?, number(lat)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(width: usize, height: usize) -> Vec<(f64, f64)> {
        (0..width * height).map(|i| (-74.0 + (0.5 + (i % width) as f64) * 0.001, 40.0 + (0.5 + (i / width) as f64) * 0.001)).collect()
    }

    #[test]
    fn cells_have_the_neighbours_of_a_grid() {
        let all = Neighbours::of_cells(&grid(5, 4), 0.001);
        assert_eq!(all.pairs().len(), 4 * 4 + 5 * 3);
        assert!(all.pairs().contains(&(0, 1)) && all.pairs().contains(&(0, 5)) && !all.pairs().contains(&(0, 6)));
        let unknown = Neighbours::of_cells(&[(f64::NAN, f64::NAN), (0.0005, 0.0005)], 0.001);
        assert_eq!((unknown.pairs().len(), unknown.coherence(&[0, 0])), (0, None));
    }

    #[test]
    fn halves_hang_together_and_a_chessboard_does_not() {
        let all = Neighbours::of_cells(&grid(10, 10), 0.001);
        let halves: Vec<u32> = (0..100).map(|i| u32::from(i % 10 >= 5)).collect();
        let c = all.coherence(&halves).unwrap();
        assert!((c.same - 170.0 / 180.0).abs() < 1e-14 && (c.chance - 0.5).abs() < 1e-14);
        assert!((c.corrected - (c.same - 0.5) / 0.5).abs() < 1e-14);
        let chess: Vec<u32> = (0..100).map(|i| (i % 10 + i / 10) as u32 % 2).collect();
        assert_eq!(all.coherence(&chess).unwrap().corrected, -1.0);
        assert_eq!(all.coherence(&[0; 100]).unwrap().corrected, 0.0);
    }

    #[test]
    fn points_are_neighbours_of_the_nearest() {
        // Two far clusters of eight: nobody looks across.
        let places: Vec<(f64, f64)> = (0..16).map(|i| (if i < 8 { 0.0 } else { 50.0 } + 0.1 * (i % 8) as f64, 40.0)).collect();
        let all = Neighbours::of_points(&places);
        assert!(all.pairs().iter().all(|&(i, j)| (i < 8) == (j < 8)));
        assert!(all.pairs().contains(&(0, 1)) && all.pairs().contains(&(0, 6)) && !all.pairs().contains(&(0, 7)));
    }
}
