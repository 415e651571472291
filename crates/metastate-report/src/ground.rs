//! The ground that states cover on a map, and the outlines of zones on it. Squares and hexagons are what they are; places that are points get room by the
//! rule that was asked for (`--outline`).

use metastate::Label;
use metastate::aggregate::{Partition, cell_of};
use metastate::workspace::polygons::{Corner, Polygon, dissolve, outline};
use metastate::workspace::territory::{UNIT, hull, snapped, voronoi};
use serde::{Deserialize, Serialize};

type Place = (f64, f64);

/// What a state is on the map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ground {
    /// A square cell with this side in degrees.
    Squares(f64),
    /// Anything that has no side.
    Other(Outline),
}

/// How zones get an outline where states are no squares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outline {
    /// Hexagons of H3, which the labels name.
    Hexagons,
    /// Points, each with the ground that is nearer to it than to any other.
    Voronoi,
    /// Points, a convex hull around those of a zone.
    Hull,
    /// Points, which stay points.
    Points,
}

/// Zones on a map, and the states in them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shapes {
    /// The outline of each zone; empty where states stay points.
    pub zones: Vec<Vec<Polygon>>,
    /// Corners are whole numbers of so many degrees.
    pub unit: f64,
    /// The known places of each zone.
    pub places: Vec<Vec<Place>>,
    /// The share of each of these places.
    pub weights: Vec<Vec<f64>>,
    /// Whether places are drawn as dots, because no outline tells where they are.
    pub dots: bool,
    /// What a state is called: cell or place.
    pub word: &'static str,
}

impl Ground {
    /// Cells of a grid, not places of somebody's list.
    pub fn is_cells(self) -> bool {
        matches!(self, Ground::Squares(_) | Ground::Other(Outline::Hexagons))
    }

    /// The side of a square cell.
    pub fn side(self) -> Option<f64> {
        if let Ground::Squares(side) = self { Some(side) } else { None }
    }

    /// The rule for what is no square.
    pub fn outline(self) -> Option<Outline> {
        if let Ground::Other(outline) = self { Some(outline) } else { None }
    }

    /// The ground of each state as a ring of corners in [`UNIT`]s, counter-clockwise and not closed; none for squares, and where states stay points.
    pub fn rings(self, labels: &[Label], places: &[Place]) -> Option<Vec<Vec<Corner>>> {
        match self {
            Ground::Other(Outline::Voronoi) => Some(voronoi(places)),
            Ground::Other(Outline::Hexagons) => {
                let hexagons: Vec<Vec<Place>> =
                    labels.iter().map(|l| metastate_ingest::hexagon(&l.to_string()).unwrap_or_default()).collect();
                Some(snapped(hexagons.iter().map(Vec::as_slice)))
            }
            _ => None,
        }
    }

    /// The zones of a partition on the map.
    pub fn shapes(self, labels: &[Label], places: &[Place], partition: &Partition, xi: &[f64]) -> Shapes {
        let members = |z: usize| (0..partition.labels.len()).filter(move |&i| partition.labels[i] as usize == z);
        let zones = || 0..partition.clusters();
        let known = |i: &usize| places[*i].0.is_finite() && places[*i].1.is_finite();
        let of_zone = |z: usize| members(z).filter(known).map(|i| places[i]).collect::<Vec<Place>>();
        let (outlines, unit) = match self {
            Ground::Squares(side) => (zones().map(|z| outline(members(z).filter_map(|i| cell_of(places[i], side)))).collect(), side),
            Ground::Other(Outline::Hull) => (zones().map(|z| dissolve(&[hull(&of_zone(z))])).collect(), UNIT),
            Ground::Other(Outline::Points) => (vec![Vec::new(); partition.clusters()], UNIT),
            Ground::Other(Outline::Hexagons | Outline::Voronoi) => {
                let rings = self.rings(labels, places).unwrap_or_default();
                let shape = |z: usize| dissolve(&members(z).map(|i| rings[i].clone()).collect::<Vec<_>>());
                (zones().map(shape).collect(), UNIT)
            }
        };
        Shapes {
            zones: outlines,
            unit,
            places: zones().map(of_zone).collect(),
            weights: zones().map(|z| members(z).filter(known).map(|i| xi[i]).collect()).collect(),
            dots: matches!(self, Ground::Other(Outline::Hull | Outline::Points)),
            word: if self.is_cells() { "cell" } else { "place" },
        }
    }
}
