//! Outlines of zones: read back to the cells that they enclose.

use std::collections::{BTreeMap, BTreeSet};

/// Corners in degrees.
pub type Ring = Vec<(f64, f64)>;
/// Polygons of a zone: the first ring of each runs around it, the others around its holes.
pub type Shape = Vec<Vec<Ring>>;

type Square = (i64, i64);

/// A ten-thousandth of a metre is all that a corner is written with.
const CORNER: f64 = 2e-9;
/// Cells from the origin; beyond, whole numbers are not exact.
const FARTHEST: f64 = 1e15;

/// Why the shape is not that of these cells (by their lower left corners); `None` when it is.
pub fn wrong(shape: &Shape, cells: &BTreeSet<Square>, side: f64) -> Option<String> {
    let mut seen = BTreeSet::new();
    for polygon in shape {
        let rings: Vec<Vec<Square>> = match polygon.iter().map(|ring| corners(ring, side)).collect::<Option<_>>() {
            Some(rings) => rings,
            None => return Some("a corner that is none of the grid, or a ring that is open or slanted".to_owned()),
        };
        // RFC 7946: outer rings counter-clockwise, holes clockwise.
        let turns: Vec<bool> = rings.iter().map(|ring| area(ring) > 0).collect();
        if !turns.iter().enumerate().all(|(k, counter)| *counter == (k == 0)) || rings.is_empty() {
            return Some("a ring that runs the wrong way".to_owned());
        }
        let Some(inside) = enclosed(&rings, cells.len()) else {
            return Some(format!("more cells inside than the {} of the zone", cells.len()));
        };
        if parts(&inside) != 1 {
            return Some("a polygon in several parts".to_owned());
        }
        if inside.iter().any(|cell| !seen.insert(*cell)) {
            return Some("two polygons that overlap".to_owned());
        }
    }
    if seen != *cells {
        return Some(format!("{} cells inside, {} in the zone", seen.len(), cells.len()));
    }
    (shape.len() != parts(cells)).then(|| format!("{} polygons, {} parts", shape.len(), parts(cells)))
}

/// The corners in whole cells: of the grid, closed, every edge along it.
fn corners(ring: &Ring, side: f64) -> Option<Vec<Square>> {
    let whole = |x: f64| {
        let n = (x / side).round();
        ((n * side - x).abs() <= CORNER && n.abs() < FARTHEST).then_some(n as i64)
    };
    let corners: Vec<Square> = ring.iter().map(|&(x, y)| Some((whole(x)?, whole(y)?))).collect::<Option<_>>()?;
    let straight = corners.windows(2).all(|w| (w[0].0 == w[1].0) != (w[0].1 == w[1].1));
    (corners.len() >= 5 && corners.first() == corners.last() && straight).then_some(corners)
}

fn area(ring: &[Square]) -> i128 {
    ring.windows(2).map(|w| i128::from(w[0].0) * i128::from(w[1].1) - i128::from(w[1].0) * i128::from(w[0].1)).sum()
}

/// The cells inside: along each row of cells, between the first and the second upright edge, the third and the fourth, and so on. None when there are more
/// than `most`, found out before they are all there.
fn enclosed(rings: &[Vec<Square>], most: usize) -> Option<BTreeSet<Square>> {
    let mut crossings: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let upright = |w: &[Square]| w[0].1.abs_diff(w[1].1);
    let length = rings.iter().flat_map(|ring| ring.windows(2)).fold(0u64, |sum, w| sum.saturating_add(upright(w)));
    // A cell has two upright edges.
    if length > 2 * most as u64 {
        return None;
    }
    for edge in rings.iter().flat_map(|ring| ring.windows(2)).filter(|w| w[0].0 == w[1].0) {
        (edge[0].1.min(edge[1].1)..edge[0].1.max(edge[1].1)).for_each(|y| crossings.entry(y).or_default().push(edge[0].0));
    }
    let mut cells = BTreeSet::new();
    for (y, mut at) in crossings {
        at.sort_unstable();
        for pair in at.chunks_exact(2) {
            if pair[0].abs_diff(pair[1]) > (most - cells.len()) as u64 {
                return None;
            }
            cells.extend((pair[0]..pair[1]).map(|x| (x, y)));
        }
    }
    Some(cells)
}

/// Parts that hang together by edges.
fn parts(cells: &BTreeSet<Square>) -> usize {
    let (mut left, mut count) = (cells.clone(), 0);
    while let Some(first) = left.pop_first() {
        count += 1;
        let mut open = vec![first];
        while let Some((x, y)) = open.pop() {
            open.extend([(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)].into_iter().filter(|c| left.remove(c)));
        }
    }
    count
}

/// The coordinates of a GeoJSON multipolygon.
pub fn from_geojson(coordinates: &serde_json::Value) -> Option<Shape> {
    serde_json::from_value(coordinates.clone()).ok()
}

/// A multipolygon in well-known binary, little-endian.
pub fn from_wkb(bytes: &[u8]) -> Option<Shape> {
    let mut rest = bytes;
    let mut take = |n: usize| -> Option<&[u8]> {
        let (head, tail) = rest.split_at_checked(n)?;
        rest = tail;
        Some(head)
    };
    let mut shape = Shape::new();
    let number = |b: &[u8]| b.try_into().ok().map(u32::from_le_bytes);
    let begins = |b: &[u8], kind: u32| b[0] == 1 && number(&b[1..5]) == Some(kind);
    let head = take(9)?;
    if !begins(head, 6) {
        return None;
    }
    for _ in 0..number(&head[5..9])? {
        let head = take(9)?;
        if !begins(head, 3) {
            return None;
        }
        let mut polygon = Vec::new();
        for _ in 0..number(&head[5..9])? {
            let mut ring = Ring::new();
            for _ in 0..number(take(4)?)? {
                let corner = take(16)?;
                let degrees = |b: &[u8]| b.try_into().ok().map(f64::from_le_bytes);
                ring.push((degrees(&corner[..8])?, degrees(&corner[8..])?));
            }
            polygon.push(ring);
        }
        shape.push(polygon);
    }
    rest.is_empty().then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_cells_with_a_hole_and_what_is_wrong_with_others() {
        let cells: BTreeSet<Square> = (0..3).flat_map(|x| (0..3).map(move |y| (x, y))).filter(|c| *c != (1, 1)).collect();
        let outer = vec![(0.0, 0.0), (1.5, 0.0), (1.5, 1.5), (0.0, 1.5), (0.0, 0.0)];
        let hole = vec![(0.5, 0.5), (0.5, 1.0), (1.0, 1.0), (1.0, 0.5), (0.5, 0.5)];
        assert_eq!(wrong(&vec![vec![outer.clone(), hole.clone()]], &cells, 0.5), None);
        assert!(wrong(&vec![vec![outer.clone()]], &cells, 0.5).is_some(), "the hole is filled");
        let backwards: Ring = hole.iter().rev().copied().collect();
        assert!(wrong(&vec![vec![outer.clone(), backwards]], &cells, 0.5).is_some());
        let moved: Ring = outer.iter().map(|(x, y)| (x + 0.1, *y)).collect();
        assert!(wrong(&vec![vec![moved, hole]], &cells, 0.5).is_some());
    }
}
