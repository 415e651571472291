//! Outlines of zones that are not made of squares, checked by the rules that they should follow and not by how they were made.

use super::shapes::{Ring, Shape};

/// Corners are written to a centimetre; what is nearer to a border than this many degrees may lie on either side of it.
const BORDER: f64 = 1e-6;
/// How far rounding may move a corner.
const CORNER: f64 = 2e-7;
/// A hull runs this far around its places, in degrees.
const ROOM: f64 = 5e-4;
/// Spots that are looked at in each direction.
const SPOTS: usize = 40;
/// Distances that are computed at most for one zone.
const WORK: usize = 4_000_000;
/// Areas may differ by so much of themselves: corners are rounded.
const AREA: f64 = 1e-3;

/// Corners of a hexagon are looked at this share of the way from its middle: clear of its border.
const INNER: f64 = 0.95;
/// A corner of a hull is near a place up to so many times the room around it.
const NEAR: f64 = 1.1;

type Place = (f64, f64);

/// Whether a spot lies inside: it is in an odd number of rings of some polygon.
pub fn holds(shape: &Shape, (x, y): Place) -> bool {
    let crosses = |w: &[Place]| (w[0].1 > y) != (w[1].1 > y) && x < (w[1].0 - w[0].0) * (y - w[0].1) / (w[1].1 - w[0].1) + w[0].0;
    shape.iter().any(|polygon| polygon.iter().map(|ring| ring.windows(2).filter(|w| crosses(w)).count()).sum::<usize>() % 2 == 1)
}

/// Twice the area, positive where a ring runs counter-clockwise.
fn area(ring: &[Place]) -> f64 {
    let (x0, y0) = ring.first().copied().unwrap_or_default();
    ring.windows(2).map(|w| (w[0].0 - x0) * (w[1].1 - y0) - (w[1].0 - x0) * (w[0].1 - y0)).sum()
}

/// Rings closed; outer ones counter-clockwise, holes clockwise.
fn wrong_rings(shape: &Shape) -> Option<String> {
    for polygon in shape {
        for (k, ring) in polygon.iter().enumerate() {
            if ring.len() < 4 || ring.first() != ring.last() {
                return Some("a ring that is open".to_owned());
            }
            if (area(ring) > 0.0) != (k == 0) {
                return Some("a ring that runs the wrong way".to_owned());
            }
        }
    }
    None
}

/// Each hexagon lies inside, and together they are as large as the shape.
pub fn wrong_hexagons(shape: &Shape, hexagons: &[Ring]) -> Option<String> {
    if let Some(why) = wrong_rings(shape) {
        return Some(why);
    }
    let inner = |ring: &Ring| -> Vec<Place> {
        let n = ring.len() as f64;
        let (x, y) = ring.iter().fold((0.0, 0.0), |(a, b), p| (a + p.0 / n, b + p.1 / n));
        ring.iter().map(|p| (x + INNER * (p.0 - x), y + INNER * (p.1 - y))).chain([(x, y)]).collect()
    };
    if hexagons.iter().flat_map(inner).any(|spot| !holds(shape, spot)) {
        return Some("a hexagon of the zone lies outside".to_owned());
    }
    let closed = |ring: &Ring| -> Ring { ring.iter().chain(ring.first()).copied().collect() };
    let expected: f64 = hexagons.iter().map(|h| area(&closed(h))).sum();
    let found: f64 = shape.iter().flatten().map(|ring| area(ring)).sum();
    ((found - expected).abs() > AREA * expected.abs()).then(|| "another area than its hexagons have".to_owned())
}

/// A convex ring that runs around all places of the zone and comes near some of them at every corner.
pub fn wrong_hull(shape: &Shape, members: &[Place]) -> Option<String> {
    if let Some(why) = wrong_rings(shape) {
        return Some(why);
    }
    let known: Vec<Place> = members.iter().copied().filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
    if known.is_empty() {
        return (!shape.is_empty()).then(|| "an outline around no place".to_owned());
    }
    let [polygon] = &shape[..] else { return Some("not one polygon".to_owned()) };
    let [ring] = &polygon[..] else { return Some("a hull with a hole".to_owned()) };
    if known.iter().any(|p| !holds(shape, *p)) {
        return Some("a place of the zone lies outside".to_owned());
    }
    let far = |c: &Place| known.iter().all(|p| (p.0 - c.0).hypot(p.1 - c.1) > NEAR * ROOM);
    if ring.iter().any(far) {
        return Some("a corner that is near no place of the zone".to_owned());
    }
    // Corners are rounded, which bends a straight border by as much as that.
    let length = |a: Place, b: Place| (b.0 - a.0).hypot(b.1 - a.1);
    let dented =
        |a: Place, b: Place, c: Place| (b.0 - a.0) * (c.1 - b.1) - (b.1 - a.1) * (c.0 - b.0) < -CORNER * (length(a, b) + length(b, c));
    let open = &ring[..ring.len() - 1];
    let n = open.len();
    (0..n).any(|k| dented(open[k], open[(k + 1) % n], open[(k + 2) % n])).then(|| "a ring that is not convex".to_owned())
}

/// Places lie in the ground of their own zone, and so does every spot whose nearest place is one of the zone's, as far as any ground reaches.
pub fn wrong_voronoi(shape: &Shape, z: usize, zones: &[usize], places: &[Place]) -> Option<String> {
    if let Some(why) = wrong_rings(shape) {
        return Some(why);
    }
    let known: Vec<usize> = (0..places.len()).filter(|&i| places[i].0.is_finite() && places[i].1.is_finite()).collect();
    let narrow = known.iter().map(|&i| places[i].1).sum::<f64>() / known.len().max(1) as f64;
    let narrow = narrow.to_radians().cos().max(0.05);
    let ends = |f: fn(&Place) -> f64| {
        known.iter().map(|&i| f(&places[i])).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)))
    };
    let ((west, east), (south, north)) = (ends(|p| p.0), ends(|p| p.1));
    let side = ((WORK / known.len().max(1)) as f64).sqrt().min(SPOTS as f64) as usize;
    // On a lattice that no border is likely to run along.
    let at = |k: usize, (low, high): (f64, f64)| low + (high - low) * (k as f64 + 0.437) / side.max(1) as f64;
    for k in 0..side * side {
        let spot = (at(k % side, (west, east)), at(k / side, (south, north)));
        let distance = |i: usize| ((places[i].0 - spot.0) * narrow).hypot(places[i].1 - spot.1);
        let (mut nearest, mut other) = ((f64::INFINITY, usize::MAX), f64::INFINITY);
        for &i in &known {
            let d = distance(i);
            if d < nearest.0 {
                if nearest.1 != usize::MAX && zones[nearest.1] != zones[i] {
                    other = nearest.0;
                }
                nearest = (d, i);
            } else if zones[i] != zones[nearest.1] {
                other = other.min(d);
            }
        }
        let inside = holds(shape, spot);
        let ours = nearest.1 != usize::MAX && zones[nearest.1] == z;
        // Beyond the hull of all places nothing has ground, and near a border either side may.
        if other - nearest.0 < BORDER || (ours && !inside && outside_the_hull(&known, places, spot)) {
            continue;
        }
        if inside != ours {
            return Some(format!("the spot {:.5}, {:.5} lies in the ground of another zone", spot.0, spot.1));
        }
    }
    let stray = |i: &usize| {
        zones[*i] == z
            && !holds(shape, places[*i])
            && !known.iter().any(|j| j != i && (places[*j].0 - places[*i].0).hypot(places[*j].1 - places[*i].1) < BORDER)
    };
    known.iter().find(|i| stray(i)).map(|i| format!("its place at {:.5}, {:.5} lies outside", places[*i].0, places[*i].1))
}

/// Whether a line through the spot has all places on one side of it: tried in many directions.
fn outside_the_hull(known: &[usize], places: &[Place], spot: Place) -> bool {
    (0..90).any(|k| {
        let turn = f64::from(k) * std::f64::consts::TAU / 90.0;
        known.iter().all(|&i| (places[i].0 - spot.0) * turn.cos() + (places[i].1 - spot.1) * turn.sin() < 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ground_that_is_not_the_zones_is_found() {
        // Two places; the border runs half-way.
        let (places, zones) = ([(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)], [0, 1, 1, 0]);
        let half = |west: f64, east: f64| vec![vec![vec![(west, -0.2), (east, -0.2), (east, 1.2), (west, 1.2), (west, -0.2)]]];
        assert_eq!(wrong_voronoi(&half(-0.2, 0.5), 0, &zones, &places), None);
        assert!(wrong_voronoi(&half(-0.2, 0.6), 0, &zones, &places).is_some());
        assert!(wrong_voronoi(&half(-0.2, 0.3), 0, &zones, &places).is_some());
        assert!(wrong_voronoi(&half(-0.2, 0.5), 1, &zones, &places).is_some());
        assert!(wrong_voronoi(&Shape::new(), 0, &zones, &places).is_some());
        let backwards: Shape = vec![vec![half(-0.2, 0.5)[0][0].iter().rev().copied().collect()]];
        assert!(wrong_voronoi(&backwards, 0, &zones, &places).is_some());
    }

    #[test]
    fn a_hull_is_convex_and_near_its_places() {
        let r = 3e-4;
        let ring = vec![(-r, -r), (r, -r), (r, r), (-r, r), (-r, -r)];
        assert_eq!(wrong_hull(&vec![vec![ring.clone()]], &[(0.0, 0.0)]), None);
        assert!(wrong_hull(&vec![vec![ring.clone()]], &[(0.0, 0.0), (0.1, 0.0)]).is_some(), "a place outside");
        let wide: Ring = ring.iter().map(|(x, y)| (10.0 * x, *y)).collect();
        assert!(wrong_hull(&vec![vec![wide]], &[(0.0, 0.0)]).is_some());
        let dented = vec![(-r, -r), (r, -r), (0.1 * r, 0.0), (r, r), (-r, r), (-r, -r)];
        assert!(wrong_hull(&vec![vec![dented]], &[(0.0, 0.0)]).is_some());
    }
}
