//! The outline of a set of square cells: one polygon for each part that hangs together by edges, with its holes.
//!
//! Every cell contributes its four edges, counter-clockwise; edges that two cells share run against each other and cancel. What
//! is left is chained into rings with the cells on the left hand: outer rings run counter-clockwise, holes clockwise, as RFC 7946
//! asks. Where two cells touch at a corner only, a ring turns left (stays with its cell) if they belong to different parts, and right
//! (goes over to the other) if to the same part: the two voids at that corner are then apart, so no ring meets a corner twice.

use std::collections::{BTreeMap, BTreeSet};

/// A corner of the grid, in whole cells.
pub type Corner = (i64, i64);

type Ring = Vec<Corner>;

/// One outer ring and its holes, each closed (the first corner comes again at the end), without corners on straight lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polygon {
    /// Counter-clockwise.
    pub outer: Vec<Corner>,
    /// Clockwise.
    pub holes: Vec<Vec<Corner>>,
}

/// The polygons that these cells (by their lower left corners) cover, from the south-west on.
pub fn outline(cells: impl IntoIterator<Item = Corner>) -> Vec<Polygon> {
    let cells: BTreeSet<Corner> = cells.into_iter().collect();
    let part_of = parts(&cells);
    let mut rings: BTreeMap<usize, (Vec<Ring>, Vec<Ring>)> = BTreeMap::new();
    // An edge by its start and direction; its left cell is the one that it belongs to.
    let mut edges: BTreeSet<Edge> = BTreeSet::new();
    for &(x, y) in &cells {
        let open = [(x, y - 1), (x + 1, y), (x, y + 1), (x - 1, y)];
        let starts = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)];
        for side in 0..4 {
            if !cells.contains(&open[side]) {
                edges.insert((starts[side], side as u8));
            }
        }
    }
    let mut open = edges.clone();
    while let Some(&first) = open.first() {
        let ring = follow(first, &edges, &mut open, &part_of);
        let (outer, holes) = rings.entry(part_of[&left_cell(first)]).or_default();
        if doubled_area(&ring) > 0 { outer.push(ring) } else { holes.push(ring) }
    }
    // A part that hangs together by edges has exactly one outer ring.
    rings.into_values().flat_map(|(outer, holes)| outer.into_iter().map(move |outer| Polygon { outer, holes: holes.clone() })).collect()
}

const STEP: [Corner; 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];

fn left_cell(((x, y), side): Edge) -> Corner {
    match side {
        0 => (x, y),
        1 => (x - 1, y),
        2 => (x - 1, y - 1),
        _ => (x, y - 1),
    }
}

type Edge = (Corner, u8);

/// The edge after this one on its ring.
fn after(((x, y), side): Edge, edges: &BTreeSet<Edge>, part_of: &BTreeMap<Corner, usize>) -> Edge {
    let corner = (x + STEP[side as usize].0, y + STEP[side as usize].1);
    let [left, straight, right] = [1, 0, 3].map(|turn| (corner, (side + turn) % 4));
    let same_part = |edge: Edge| part_of.get(&left_cell(edge)) == part_of.get(&left_cell(((x, y), side)));
    if edges.contains(&right) && same_part(right) {
        right
    } else if edges.contains(&left) {
        left
    } else {
        straight
    }
}

/// The corners of the ring that begins with this edge; its edges are taken out of the open ones.
fn follow(first: Edge, edges: &BTreeSet<Edge>, open: &mut BTreeSet<Edge>, part_of: &BTreeMap<Corner, usize>) -> Vec<Corner> {
    let mut ring = Vec::new();
    let mut edge = first;
    loop {
        open.remove(&edge);
        let next = after(edge, edges, part_of);
        if next.1 != edge.1 {
            ring.push(next.0);
        }
        edge = next;
        // Each edge follows exactly one other, so a ring ends where it began; an edge met before would mean the same.
        if edge == first || !open.contains(&edge) {
            break;
        }
    }
    // From the lowest corner on, so that equal sets give equal rings.
    let start = (0..ring.len()).min_by_key(|&k| (ring[k].1, ring[k].0)).unwrap_or(0);
    ring.rotate_left(start);
    ring.extend(ring.first().copied());
    ring
}

/// Twice the area inside a ring, positive when it runs counter-clockwise.
#[must_use]
pub fn doubled_area(ring: &[Corner]) -> i64 {
    ring.windows(2).map(|w| w[0].0 * w[1].1 - w[1].0 * w[0].1).sum()
}

/// The polygons that shapes with common edges cover together: counter-clockwise rings, each without its first corner again at the end. Edges that two
/// shapes share run against each other and cancel; what is left is chained, at corners where several rings meet by the sharpest turn to the left, so that
/// a ring stays with its shape. Shapes that do not fit together edge by edge are returned unchanged.
#[must_use]
pub fn dissolve(shapes: &[Vec<Corner>]) -> Vec<Polygon> {
    let closed = |shape: &Vec<Corner>| Polygon { outer: shape.iter().chain(shape.first()).copied().collect(), holes: Vec::new() };
    merged(shapes).unwrap_or_else(|| shapes.iter().filter(|s| s.len() > 2).map(closed).collect())
}

fn merged(shapes: &[Vec<Corner>]) -> Option<Vec<Polygon>> {
    let mut edges: BTreeSet<(Corner, Corner)> = BTreeSet::new();
    for shape in shapes.iter().filter(|s| s.len() > 2) {
        for (k, &a) in shape.iter().enumerate() {
            let b = shape[(k + 1) % shape.len()];
            if a != b && !edges.remove(&(b, a)) {
                edges.insert((a, b));
            }
        }
    }
    let mut rings = Vec::new();
    while let Some(&first) = edges.first() {
        let (mut ring, mut edge) = (vec![first.0], first);
        loop {
            edges.remove(&edge);
            let (from, at) = edge;
            if at == first.0 {
                break;
            }
            ring.push(at);
            let low = (at, (i64::MIN, i64::MIN));
            let next = edges.range(low..).take_while(|e| e.0 == at).max_by(|a, b| turn(from, at, a.1).total_cmp(&turn(from, at, b.1)))?;
            edge = *next;
        }
        rings.push(straightened(ring));
    }
    let (outers, holes): (Vec<Ring>, Vec<Ring>) = rings.into_iter().filter(|r| r.len() > 3).partition(|r| wide_area(r) > 0);
    let mut polygons: Vec<Polygon> = outers.into_iter().map(|outer| Polygon { outer, holes: Vec::new() }).collect();
    for hole in holes {
        let around = polygons.iter_mut().filter(|p| encloses(&p.outer, &hole)).min_by_key(|p| wide_area(&p.outer))?;
        around.holes.push(hole);
    }
    Some(polygons)
}

/// The angle to the left from the way `a -> b` to `b -> c`.
fn turn(a: Corner, b: Corner, c: Corner) -> f64 {
    let (x, y) = ((b.0 - a.0) as f64, (b.1 - a.1) as f64);
    let (p, q) = ((c.0 - b.0) as f64, (c.1 - b.1) as f64);
    (x * q - y * p).atan2(x * p + y * q)
}

/// Closed, from the lowest corner on, without corners on straight lines.
fn straightened(mut ring: Ring) -> Ring {
    let n = ring.len();
    let bends = |k: usize| {
        let (a, b, c) = (ring[(k + n - 1) % n], ring[k], ring[(k + 1) % n]);
        i128::from(b.0 - a.0) * i128::from(c.1 - b.1) != i128::from(b.1 - a.1) * i128::from(c.0 - b.0)
    };
    let kept: Vec<bool> = (0..n).map(bends).collect();
    let mut kept = kept.iter();
    ring.retain(|_| kept.next().copied().unwrap_or(true));
    let start = (0..ring.len()).min_by_key(|&k| (ring[k].1, ring[k].0)).unwrap_or(0);
    ring.rotate_left(start);
    ring.extend(ring.first().copied());
    ring
}

/// [`doubled_area`] for corners whose products a whole number of 64 bits cannot hold.
fn wide_area(ring: &[Corner]) -> i128 {
    ring.windows(2).map(|w| i128::from(w[0].0) * i128::from(w[1].1) - i128::from(w[1].0) * i128::from(w[0].1)).sum()
}

/// Whether a ring runs around another one, by a corner of the inner one that does not lie on the outer one.
fn encloses(outer: &[Corner], inner: &[Corner]) -> bool {
    let Some(&(x, y)) = inner.iter().find(|c| !outer.contains(c)) else { return true };
    let crosses = |w: &[Corner]| {
        let ((x0, y0), (x1, y1)) = (w[0], w[1]);
        (y0 > y) != (y1 > y) && (x as f64) < (x1 - x0) as f64 * (y - y0) as f64 / (y1 - y0) as f64 + x0 as f64
    };
    outer.windows(2).filter(|w| crosses(w)).count() % 2 == 1
}

/// The number of the part, joined by edges, that each cell belongs to.
fn parts(cells: &BTreeSet<Corner>) -> BTreeMap<Corner, usize> {
    let mut part = BTreeMap::new();
    let mut number = 0;
    for &start in cells {
        if part.contains_key(&start) {
            continue;
        }
        let mut open = vec![start];
        part.insert(start, number);
        while let Some((x, y)) = open.pop() {
            for (dx, dy) in STEP {
                let next = (x + dx, y + dy);
                if cells.contains(&next) && !part.contains_key(&next) {
                    part.insert(next, number);
                    open.push(next);
                }
            }
        }
        number += 1;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_with_common_edges_become_one() {
        let square = |x: i64, y: i64| vec![(x, y), (x + 10, y), (x + 10, y + 10), (x, y + 10)];
        // A ring of eight squares around nothing.
        let ring: Vec<Vec<Corner>> = (0..9).filter(|k| *k != 4).map(|k| square(10 * (k % 3), 10 * (k / 3))).collect();
        let merged = dissolve(&ring);
        assert_eq!(
            merged,
            [Polygon {
                outer: vec![(0, 0), (30, 0), (30, 30), (0, 30), (0, 0)],
                holes: vec![vec![(10, 10), (10, 20), (20, 20), (20, 10), (10, 10)]],
            }]
        );
        // Two squares that touch at a corner stay two; the same square twice is one.
        assert_eq!(dissolve(&[square(0, 0), square(10, 10)]).len(), 2);
        // A triangle and a square with half an edge in common stay as they are.
        assert_eq!(dissolve(&[square(0, 0), vec![(10, 0), (20, 0), (10, 5)]]).iter().map(|p| wide_area(&p.outer)).sum::<i128>(), 250);
    }
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn area(polygons: &[Polygon]) -> i64 {
        polygons.iter().map(|p| doubled_area(&p.outer) + p.holes.iter().map(|h| doubled_area(h)).sum::<i64>()).sum::<i64>() / 2
    }

    #[test]
    fn a_square_has_four_corners() {
        let block = outline((0..3).flat_map(|x| (0..3).map(move |y| (x, y))));
        assert_eq!(block, [Polygon { outer: vec![(0, 0), (3, 0), (3, 3), (0, 3), (0, 0)], holes: vec![] }]);
        assert!(outline([]).is_empty());
    }

    #[test]
    fn a_ring_has_a_hole_that_runs_clockwise() {
        let ring = outline((0..3).flat_map(|x| (0..3).map(move |y| (x, y))).filter(|c| *c != (1, 1)));
        assert_eq!((ring.len(), ring[0].holes.len()), (1, 1));
        assert_eq!((doubled_area(&ring[0].outer), doubled_area(&ring[0].holes[0])), (18, -2));
    }

    #[test]
    fn cells_that_touch_at_a_corner_are_two_polygons() {
        for cells in [[(0, 0), (1, 1)], [(1, 0), (0, 1)]] {
            let two = outline(cells);
            assert_eq!(two.len(), 2);
            assert!(two.iter().all(|p| p.outer.len() == 5 && p.holes.is_empty()));
        }
        // Two holes that touch at a corner stay two holes.
        let holed = outline((0..4).flat_map(|x| (0..4).map(move |y| (x, y))).filter(|c| ![(1, 1), (2, 2)].contains(c)));
        assert_eq!((holed.len(), holed[0].holes.len(), area(&holed)), (1, 2, 14));
    }

    #[test]
    fn a_ring_closed_at_a_corner_has_a_hole() {
        // The cell in the middle is open to the outside by a corner only: a hole that touches the outer ring there.
        let c = outline((0..3).flat_map(|x| (0..3).map(move |y| (x, y))).filter(|c| ![(1, 1), (2, 2)].contains(c)));
        assert_eq!((c.len(), c[0].holes.len(), area(&c)), (1, 1, 7));
        assert!(c[0].outer.contains(&(2, 2)) && c[0].holes[0].contains(&(2, 2)));
    }

    #[test]
    fn random_sets_keep_their_area_and_no_ring_meets_itself() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for share in [0.2, 0.5, 0.7] {
            let cells: Vec<Corner> = (0..900).map(|i| (i % 30 - 15, i / 30)).filter(|_| rng.random::<f64>() < share).collect();
            let polygons = outline(cells.iter().copied());
            assert_eq!(area(&polygons), cells.len() as i64);
            for p in &polygons {
                assert!(doubled_area(&p.outer) > 0 && p.holes.iter().all(|h| doubled_area(h) < 0));
                for ring in p.holes.iter().chain([&p.outer]) {
                    assert_eq!(ring.first(), ring.last());
                    let corners: BTreeSet<&Corner> = ring.iter().collect();
                    assert_eq!(corners.len(), ring.len() - 1, "a corner comes twice");
                    // No corner on a straight line.
                    for w in ring.windows(3) {
                        assert!((w[1].0 - w[0].0) * (w[2].1 - w[1].1) != (w[1].1 - w[0].1) * (w[2].0 - w[1].0));
                    }
                }
            }
        }
    }
}
