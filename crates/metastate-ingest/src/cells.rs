//! Coordinates to square cells, by floor as in the paper (section 6.4).

use metastate::Label;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::settings::{BoundingBox, InputSettings};

/// A grid of square cells, in degrees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    cell: f64,
    bbox: Option<BoundingBox>,
    /// Digits after the point that print a corner exactly.
    decimals: usize,
}

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
        let cell = settings.cell;
        // Below 1e-6 degrees (a decimetre) cells are finer than any device; 32-bit cell numbers hold down to 1e-7.
        if !(1e-6..=90.0).contains(&cell) {
            return Err(IngestError::new(Code::Option, "--cell must lie within 1e-6 and 90 degrees")
                .value(cell.to_string())
                .remedy("0.001 is about a hundred metres"));
        }
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
        let text = format!("{cell}");
        let decimals = text.split_once('.').map_or(0, |(_, d)| d.len()).min(12);
        Ok(Grid { cell, bbox: settings.bbox, decimals })
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

    /// Both cell numbers in one: within the ranges checked above each fits into 32 bits.
    fn key(&self, (lon, lat): (f64, f64)) -> i64 {
        let (x, y) = ((lon / self.cell).floor() as i32, (lat / self.cell).floor() as i32);
        i64::from(x) << 32 | i64::from(y as u32)
    }

    /// The lower left corner, printed with as many digits as the side of a cell has: `-73.987,40.750`.
    pub fn label(&self, key: i64) -> Label {
        let (x, y) = numbers(key);
        // Rounding to the printed digits also takes away the 1e-17 that a product of decimals leaves behind.
        let print = |n: i32| format!("{:.*}", self.decimals, f64::from(n) * self.cell);
        Label::Text(format!("{},{}", print(x), print(y)).into_boxed_str())
    }

    /// Side of a cell in degrees.
    pub fn side(&self) -> f64 {
        self.cell
    }

    /// Digits after the point in a label.
    pub fn decimals(&self) -> usize {
        self.decimals
    }

    /// Only trips inside of it are counted.
    pub fn bbox(&self) -> Option<BoundingBox> {
        self.bbox
    }

    /// Longitude and latitude of the centre.
    pub fn centre(&self, key: i64) -> (f64, f64) {
        let (x, y) = numbers(key);
        ((f64::from(x) + 0.5) * self.cell, (f64::from(y) + 0.5) * self.cell)
    }
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
            assert!(Grid::new(&InputSettings { cell, ..InputSettings::default() }).is_err());
        }
    }
}
