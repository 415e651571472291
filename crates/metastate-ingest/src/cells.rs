//! Coordinates to cells: squares, by floor as in the paper (section 6.4), or the hexagons of H3.

use h3o::{CellIndex, LatLng, Resolution};
use metastate::Label;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::settings::{BoundingBox, CellSize, InputSettings};

/// A grid of cells, and the box that trips must lie in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    kind: GridKind,
    bbox: Option<BoundingBox>,
}

#[derive(Debug, Clone, Copy)]
enum GridKind {
    /// The side in degrees, and the digits after the point that print a corner exactly.
    Squares {
        side: f64,
        decimals: usize,
    },
    Hexagons(Resolution),
}

/// Beyond this latitude hardly anybody lives: points there are more often longitudes in the wrong column.
const POLAR: f64 = 66.5;

/// Where a trip by coordinates goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// Both ends in cells.
    Cells(i64, i64),
    /// A coordinate is missing or NaN.
    Missing,
    /// Outside the box; `fits_swapped` when exchanging longitude and latitude would bring both ends inside.
    Outside { fits_swapped: bool },
    /// No place on earth.
    OutOfRange { fits_swapped: bool },
}

impl Grid {
    pub fn new(settings: &InputSettings) -> Result<Self> {
        // Below 1e-6 degrees (a decimetre) cells are finer than any device; 32-bit cell numbers hold down to 1e-7.
        let kind = match settings.cell {
            CellSize::Degrees(side) if (1e-6..=90.0).contains(&side) => {
                let decimals = format!("{side}").split_once('.').map_or(0, |(_, d)| d.len()).min(12);
                GridKind::Squares { side, decimals }
            }
            CellSize::H3(level) if level <= 15 => GridKind::Hexagons(Resolution::try_from(level).unwrap_or(Resolution::Eight)),
            other => {
                return Err(IngestError::new(Code::Option, "--cell must lie within 1e-6 and 90 degrees, or within h3:0 and h3:15")
                    .value(other.to_string())
                    .remedy("0.001 is about a hundred metres, h3:9 about two hundred"));
            }
        };
        if let Some(b) = settings.bbox {
            let value = format!("{},{},{},{}", b.west, b.south, b.east, b.north);
            let refuse = |sentence: &str, remedy: &str| {
                Err(IngestError::new(Code::Coordinates, sentence).column("--bbox").value(value.clone()).remedy(remedy))
            };
            if [b.west, b.south, b.east, b.north].iter().any(|x| !x.is_finite()) {
                return refuse("the box holds a value that is not a number", "give west,south,east,north in degrees");
            }
            if b.south.abs() > 90.0 || b.north.abs() > 90.0 || b.west.abs() > 180.0 || b.east.abs() > 180.0 {
                return refuse("the box reaches beyond the earth", "give west,south,east,north in degrees, in this order");
            }
            if b.west >= b.east || b.south >= b.north {
                return refuse(
                    "the box is empty: west must be below east and south below north",
                    "give west,south,east,north in this order",
                );
            }
        }
        Ok(Grid { kind, bbox: settings.bbox })
    }

    /// The cells of a trip, or why it has none.
    #[inline]
    pub fn place(&self, from: (f64, f64), to: (f64, f64)) -> Place {
        let all = [from.0, from.1, to.0, to.1];
        if all.iter().any(|x| x.is_nan()) {
            return Place::Missing;
        }
        let on_earth = |(lon, lat): (f64, f64)| lon.abs() <= 180.0 && lat.abs() <= 90.0;
        let inside = |(lon, lat): (f64, f64)| match &self.bbox {
            Some(b) => lon >= b.west && lon <= b.east && lat >= b.south && lat <= b.north,
            None => on_earth((lon, lat)),
        };
        if inside(from) && inside(to) {
            return Place::Cells(self.key(from), self.key(to));
        }
        let fits_swapped = inside((from.1, from.0)) && inside((to.1, to.0));
        if on_earth(from) && on_earth(to) { Place::Outside { fits_swapped } } else { Place::OutOfRange { fits_swapped } }
    }

    /// Whether the point is longitude 0, latitude 0, where devices are that know no place.
    #[inline]
    pub fn is_null_island((lon, lat): (f64, f64)) -> bool {
        lon.abs() < 1e-6 && lat.abs() < 1e-6
    }

    /// Whether the point lies near a pole, and would not with longitude and latitude exchanged.
    #[inline]
    pub fn is_polar_only_as_given((lon, lat): (f64, f64)) -> bool {
        lat.abs() > POLAR && lon.abs() < POLAR
    }

    /// Squares: both cell numbers in one; within the ranges checked above each fits into 32 bits. Hexagons: their index.
    fn key(&self, (lon, lat): (f64, f64)) -> i64 {
        match self.kind {
            GridKind::Squares { side, .. } => {
                let (x, y) = ((lon / side).floor() as i32, (lat / side).floor() as i32);
                i64::from(x) << 32 | i64::from(y as u32)
            }
            // Finite coordinates, which `place` has seen to, always have a cell.
            GridKind::Hexagons(level) => LatLng::new(lat, lon).map_or(0, |at| u64::from(at.to_cell(level)) as i64),
        }
    }

    /// A square by its lower left corner, printed with as many digits as its side has: `-73.987,40.750`. A hexagon by its index: `882a1072a7fffff`.
    pub fn label(&self, key: i64) -> Label {
        match self.kind {
            GridKind::Squares { side, decimals } => {
                let (x, y) = numbers(key);
                // Rounding to the printed digits also takes away the 1e-17 that a product of decimals leaves behind.
                let print = |n: i32| format!("{:.*}", decimals, f64::from(n) * side);
                Label::Text(format!("{},{}", print(x), print(y)).into_boxed_str())
            }
            GridKind::Hexagons(_) => Label::Text(format!("{:x}", key as u64).into_boxed_str()),
        }
    }

    /// What the cells are.
    pub fn size(&self) -> CellSize {
        match self.kind {
            GridKind::Squares { side, .. } => CellSize::Degrees(side),
            GridKind::Hexagons(level) => CellSize::H3(u8::from(level)),
        }
    }

    /// The side of squares, and the digits after the point in their labels; none for hexagons.
    pub fn squares(&self) -> Option<(f64, usize)> {
        if let GridKind::Squares { side, decimals } = self.kind { Some((side, decimals)) } else { None }
    }

    /// Only trips inside of it are counted.
    pub fn bbox(&self) -> Option<BoundingBox> {
        self.bbox
    }

    /// Longitude and latitude of the centre.
    pub fn centre(&self, key: i64) -> (f64, f64) {
        match self.kind {
            GridKind::Squares { side, .. } => {
                let (x, y) = numbers(key);
                ((f64::from(x) + 0.5) * side, (f64::from(y) + 0.5) * side)
            }
            GridKind::Hexagons(_) => hexagon_centre(key as u64).unwrap_or((f64::NAN, f64::NAN)),
        }
    }
}

/// The corners of a cell of H3 that is named by its index, counter-clockwise, as longitude and latitude; none where this is no such cell.
pub fn hexagon(label: &str) -> Option<Vec<(f64, f64)>> {
    let cell = CellIndex::try_from(u64::from_str_radix(label, 16).ok()?).ok()?;
    Some(cell.boundary().iter().map(|corner| (corner.lng(), corner.lat())).collect())
}

/// Longitude and latitude of the centre of a cell of H3; none where this is no such cell.
pub(crate) fn hexagon_centre(index: u64) -> Option<(f64, f64)> {
    let centre = LatLng::from(CellIndex::try_from(index).ok()?);
    Some((centre.lng(), centre.lat()))
}

fn numbers(key: i64) -> (i32, i32) {
    ((key >> 32) as i32, key as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(bbox: Option<&str>) -> Grid {
        let bbox = bbox.map(|b| b.parse().unwrap());
        Grid::new(&InputSettings { bbox, ..InputSettings::default() }).unwrap()
    }

    #[test]
    fn cells_are_named_by_their_corner() {
        let g = grid(None);
        let Place::Cells(a, b) = g.place((-73.9865, 40.7501), (0.0004, -0.0004)) else { panic!() };
        assert_eq!(g.label(a).to_string(), "-73.987,40.750");
        assert_eq!(g.label(b).to_string(), "0.000,-0.001");
        let (lon, lat) = g.centre(a);
        assert!((lon + 73.9865).abs() < 1e-9 && (lat - 40.7505).abs() < 1e-9);
    }

    #[test]
    fn every_trip_has_one_reason() {
        let g = grid(Some("-80,30,-60,50"));
        assert_eq!(g.place((-74.0, 40.0), (0.0, 0.0)), Place::Outside { fits_swapped: false });
        assert_eq!(g.place((40.0, -74.0), (41.0, -73.0)), Place::Outside { fits_swapped: true });
        assert_eq!(g.place((f64::NAN, 40.0), (0.0, 0.0)), Place::Missing);
        assert_eq!(g.place((f64::INFINITY, 40.0), (0.0, 0.0)), Place::OutOfRange { fits_swapped: false });
        assert_eq!(grid(None).place((40.0, -120.0), (41.0, -121.0)), Place::OutOfRange { fits_swapped: true });
    }

    #[test]
    fn boxes_must_be_boxes() {
        for bad in ["-60,30,-80,50", "-80,50,-60,30", "30,-80,50,-100", "NaN,1,2,3"] {
            let settings = InputSettings { bbox: Some(bad.parse().unwrap()), ..InputSettings::default() };
            assert_eq!(Grid::new(&settings).unwrap_err().code(), "E-INGEST-COORDINATES", "{bad}");
        }
        assert!("1,2,3".parse::<BoundingBox>().is_err());
        for cell in [0.0, -1.0, f64::NAN, 1e-9] {
            assert!(Grid::new(&InputSettings { cell: CellSize::Degrees(cell), ..InputSettings::default() }).is_err());
        }
        assert!(Grid::new(&InputSettings { cell: CellSize::H3(16), ..InputSettings::default() }).is_err());
        assert!("h3:16".parse::<CellSize>().is_err() && "h3:".parse::<CellSize>().is_err() && "wide".parse::<CellSize>().is_err());
    }

    #[test]
    fn hexagons_are_named_by_their_index() {
        let g = Grid::new(&InputSettings { cell: "h3:8".parse().unwrap(), ..InputSettings::default() }).unwrap();
        let Place::Cells(a, b) = g.place((-73.9857, 40.7484), (-73.9857, 40.7485)) else { panic!() };
        assert_eq!(a, b);
        // The Empire State Building, as Uber's own library names its cell.
        assert_eq!(g.label(a).to_string(), "882a100d2dfffff");
        let (lon, lat) = g.centre(a);
        assert!((lon + 73.9857).abs() < 0.01 && (lat - 40.7484).abs() < 0.01, "{lon} {lat}");
        assert_eq!(g.size().to_string(), "h3:8");
    }
}
