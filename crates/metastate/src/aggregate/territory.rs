//! Room for places that are points: the part of the plane that is nearer to a place than to any other (Voronoi), within a little more than the hull of all of
//! them; and convex hulls.

use std::collections::HashMap;

use super::polygons::Corner;

type Point = (f64, f64);

/// Corners of territories are whole numbers of this many degrees: a centimetre.
pub const UNIT: f64 = 1e-7;
/// A single place gets this much room, in degrees.
const LONE: f64 = 0.005;
/// Around a place in a hull, in degrees: one or two places have an outline, too.
const HULL_ROOM: f64 = 5e-4;
/// Degrees of longitude are never taken for shorter than this share of those at the equator.
const NARROWEST: f64 = 0.05;

/// The territory of each place as a convex ring of corners in [`UNIT`]s, counter-clockwise; none for places that are not known (NaN) and for those that
/// another one stands on already.
#[must_use]
pub fn voronoi(places: &[Point]) -> Vec<Vec<Corner>> {
    let mut rings = vec![Vec::new(); places.len()];
    let narrow = squeeze(places);
    // One place on each spot.
    let mut first: HashMap<Corner, usize> = HashMap::new();
    let mut sites: Vec<(usize, Point)> = Vec::new();
    for (i, &(lon, lat)) in places.iter().enumerate().filter(|(_, p)| known(p)) {
        if let std::collections::hash_map::Entry::Vacant(spot) = first.entry(corner((lon, lat))) {
            spot.insert(i);
            sites.push((i, (lon * narrow, lat)));
        }
    }
    let points: Vec<Point> = sites.iter().map(|s| s.1).collect();
    let beside = neighbours(&points);
    let frame = frame(&points, &beside);
    let mut corners = Corners::default();
    for (k, (i, at)) in sites.iter().enumerate() {
        let ring = beside[k].iter().fold(frame.clone(), |ring, &other| nearer(&ring, *at, points[other]));
        let mut ring: Vec<Corner> = ring.iter().map(|&(x, y)| corners.snap((x / narrow, y))).collect();
        ring.dedup();
        while ring.len() > 1 && ring.first() == ring.last() {
            ring.pop();
        }
        rings[*i] = ring;
    }
    rings
}

/// The smallest convex ring around these places and a little room for each, in [`UNIT`]s, counter-clockwise.
pub fn hull(places: &[Point]) -> Vec<Corner> {
    let known: Vec<Point> = places.iter().filter(|p| known(p)).copied().collect();
    widened(&known, HULL_ROOM).into_iter().map(corner).collect()
}

/// Rings of corners in degrees as whole [`UNIT`]s; corners that differ by rounding only become one.
pub fn snapped<'a>(rings: impl IntoIterator<Item = &'a [Point]>) -> Vec<Vec<Corner>> {
    let mut corners = Corners::default();
    rings.into_iter().map(|ring| ring.iter().map(|&at| corners.snap(at)).collect()).collect()
}

fn known(place: &Point) -> bool {
    place.0.is_finite() && place.1.is_finite()
}

fn corner((lon, lat): Point) -> Corner {
    ((lon / UNIT).round() as i64, (lat / UNIT).round() as i64)
}

/// How much shorter a degree of longitude is than one of latitude, in the middle of these places.
fn squeeze(places: &[Point]) -> f64 {
    let (sum, count) = places.iter().filter(|p| known(p)).fold((0.0, 0.0), |(s, n), p| (s + p.1, n + 1.0));
    (sum / f64::max(count, 1.0)).to_radians().cos().max(NARROWEST)
}

/// Those whose territories may touch: neighbours in the Delaunay triangulation; on a line, the ones before and after.
fn neighbours(points: &[Point]) -> Vec<Vec<usize>> {
    let mut beside = vec![Vec::new(); points.len()];
    let input: Vec<delaunator::Point> = points.iter().map(|p| delaunator::Point { x: p.0, y: p.1 }).collect();
    let triangles = if points.len() > 2 { delaunator::triangulate(&input).triangles } else { Vec::new() };
    for t in triangles.chunks_exact(3) {
        for k in 0..3 {
            beside[t[k]].extend([t[(k + 1) % 3], t[(k + 2) % 3]]);
        }
    }
    if triangles.is_empty() {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| points[a].0.total_cmp(&points[b].0).then(points[a].1.total_cmp(&points[b].1)));
        for pair in order.windows(2) {
            beside[pair[0]].push(pair[1]);
            beside[pair[1]].push(pair[0]);
        }
    }
    for list in &mut beside {
        list.sort_unstable();
        list.dedup();
    }
    beside
}

/// The hull of all places, wider by half the usual distance between neighbours, so that places on its border have room too.
fn frame(points: &[Point], beside: &[Vec<usize>]) -> Vec<Point> {
    let distance = |a: Point, b: Point| (a.0 - b.0).hypot(a.1 - b.1);
    let mut nearest: Vec<f64> = beside
        .iter()
        .enumerate()
        .filter_map(|(k, list)| list.iter().map(|&o| distance(points[k], points[o])).min_by(f64::total_cmp))
        .collect();
    nearest.sort_by(f64::total_cmp);
    let room = nearest.get(nearest.len() / 2).map_or(LONE, |d| d / 2.0).max(UNIT * 100.0);
    widened(points, room)
}

/// The convex hull of circles around these points.
fn widened(points: &[Point], room: f64) -> Vec<Point> {
    let around = |&(x, y): &Point| {
        let corner = move |k: u32| {
            (room * (f64::from(k) * std::f64::consts::FRAC_PI_8).cos(), room * (f64::from(k) * std::f64::consts::FRAC_PI_8).sin())
        };
        (0..16).map(corner).map(move |(dx, dy)| (x + dx, y + dy))
    };
    convex(&points.iter().flat_map(around).collect::<Vec<Point>>())
}

/// The part of a convex ring that is nearer to `at` than to `other`.
fn nearer(ring: &[Point], at: Point, other: Point) -> Vec<Point> {
    // |p - at|^2 <= |p - other|^2 is linear in p.
    let side = |p: Point| (p.0 - at.0).powi(2) + (p.1 - at.1).powi(2) - (p.0 - other.0).powi(2) - (p.1 - other.1).powi(2);
    let mut kept = Vec::with_capacity(ring.len() + 1);
    for (k, &p) in ring.iter().enumerate() {
        let q = ring[(k + 1) % ring.len()];
        let (a, b) = (side(p), side(q));
        if a <= 0.0 {
            kept.push(p);
        }
        if (a < 0.0 && b > 0.0) || (a > 0.0 && b < 0.0) {
            let t = a / (a - b);
            kept.push((p.0 + t * (q.0 - p.0), p.1 + t * (q.1 - p.1)));
        }
    }
    kept
}

/// The convex hull, counter-clockwise (Andrew's monotone chain).
fn convex(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    sorted.dedup();
    if sorted.len() < 3 {
        return sorted;
    }
    let left_of = |a: Point, b: Point, c: Point| (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0) > 0.0;
    let half = |points: &mut dyn Iterator<Item = Point>| {
        let mut chain: Vec<Point> = Vec::new();
        for p in points {
            while chain.len() > 1 && !left_of(chain[chain.len() - 2], chain[chain.len() - 1], p) {
                chain.pop();
            }
            chain.push(p);
        }
        chain.pop();
        chain
    };
    let mut ring = half(&mut sorted.iter().copied());
    ring.extend(half(&mut sorted.iter().rev().copied()));
    ring
}

/// Corners that were met before: the same corner, computed from two sides, differs by rounding only and must be one.
#[derive(Default)]
struct Corners {
    met: HashMap<Corner, Corner>,
}

impl Corners {
    fn snap(&mut self, at: Point) -> Corner {
        let own = corner(at);
        for dx in -1..=1 {
            for dy in -1..=1 {
                if let Some(&known) = self.met.get(&(own.0 + dx, own.1 + dy)) {
                    return known;
                }
            }
        }
        self.met.insert(own, own);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::polygons::dissolve;

    /// Twice the area of a ring that is not closed.
    fn area(ring: &[Corner]) -> f64 {
        (0..ring.len()).map(|k| (ring[k], ring[(k + 1) % ring.len()])).map(|(a, b)| a.0 as f64 * b.1 as f64 - b.0 as f64 * a.1 as f64).sum()
    }

    #[test]
    fn every_spot_belongs_to_the_nearest_place() {
        let mut places: Vec<Point> =
            (0..60).map(|k| ((f64::from(k) * 0.7321).fract() * 0.2 - 74.0, (f64::from(k * k) * 0.3137).fract() * 0.1 + 40.7)).collect();
        places.push((f64::NAN, f64::NAN));
        places.push(places[3]);
        let rings = voronoi(&places);
        assert!(rings[60].is_empty() && rings[61].is_empty(), "a place that is not known, and one on which another stands");
        assert!(rings[..60].iter().all(|r| r.len() > 2 && area(r) > 0.0));
        let narrow = squeeze(&places);
        for (i, ring) in rings[..60].iter().enumerate() {
            for (k, &a) in ring.iter().enumerate() {
                // A spot half-way between the place and an edge.
                let b = ring[(k + 1) % ring.len()];
                let spot = ((a.0 + b.0) as f64 / 4.0 * UNIT + places[i].0 / 2.0, (a.1 + b.1) as f64 / 4.0 * UNIT + places[i].1 / 2.0);
                let d = |p: &Point| ((p.0 - spot.0) * narrow).hypot(p.1 - spot.1);
                assert!(places[..60].iter().all(|p| d(p) >= d(&places[i]) - 1e-6), "edge {k} of place {i}");
            }
        }
        // Together they fill the frame without gaps: one polygon, no holes.
        let all = dissolve(&rings);
        assert_eq!((all.len(), all[0].holes.len()), (1, 0));
    }

    #[test]
    fn few_places_and_places_on_a_line_or_a_grid_have_room() {
        for places in
            [vec![(8.0, 50.0)], vec![(8.0, 50.0), (8.1, 50.0)], (0..5).map(|k| (f64::from(k), f64::from(2 * k))).collect::<Vec<_>>()]
        {
            let rings = voronoi(&places);
            assert!(rings.iter().all(|r| r.len() > 2 && area(r) > 0.0), "{rings:?}");
        }
        let grid: Vec<Point> = (0..25).map(|k| (f64::from(k % 5) * 0.01, f64::from(k / 5) * 0.01)).collect();
        let all = dissolve(&voronoi(&grid));
        assert_eq!((all.len(), all[0].holes.len()), (1, 0));
        let around = hull(&grid);
        assert!(around.contains(&(-5000, 0)) && around.contains(&(405_000, 400_000)), "{around:?}");
        assert!(hull(&grid[..1]).len() > 3);
    }
}
