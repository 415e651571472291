//! The zones: a table, and where places are known the merged cells as GeoJSON and GeoParquet.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Float64Array, UInt32Array, UInt64Array};
use metastate::Label;
use metastate::aggregate::polygons::{Corner, Polygon, outline};
use metastate::aggregate::{Partition, ZoneFlows, cell_of};
use metastate::linalg::{Mat, largest_entry};
use parquet::file::metadata::KeyValue;
use serde_json::{Value, json};

use crate::parquet_table;
use crate::tables::{NAMED, csv_field};

/// Digits after the point of a corner in degrees: a ten-thousandth of a metre.
const TO_DIGITS: f64 = 1e9;
/// Well-known binary: the numbers of its kinds of shapes, and the mark of little-endian numbers.
const WKB_POLYGON: u32 = 3;
const WKB_MULTIPOLYGON: u32 = 6;
const LITTLE_ENDIAN: u8 = 1;

/// Zones with all that their files tell.
#[derive(Debug, Clone, Copy)]
pub struct ZoneSet<'a> {
    /// Who is where.
    pub partition: &'a Partition,
    /// What moves between them.
    pub flows: Option<&'a ZoneFlows>,
    /// Labels of the states.
    pub labels: &'a [Label],
    /// Weights of the states.
    pub xi: &'a [f64],
    /// Memberships.
    pub u: &'a Mat,
    /// Centres of the cells and their side in degrees, where the states are cells.
    pub cells: Option<(&'a [(f64, f64)], f64)>,
}

impl ZoneSet<'_> {
    fn count(&self) -> usize {
        self.partition.clusters()
    }

    /// Mean membership of the zone's states in each meta-state, by weight.
    fn mean_membership(&self, zone: usize) -> Vec<f64> {
        let mut mean = vec![0.0; self.u.cols()];
        for i in self.members(zone) {
            mean.iter_mut().zip(self.u.row(i)).for_each(|(m, u)| *m += self.xi[i] * u);
        }
        let total = self.partition.masses[zone];
        mean.iter_mut().for_each(|m| *m /= if total > 0.0 { total } else { 1.0 });
        mean
    }

    fn members(&self, zone: usize) -> impl Iterator<Item = usize> + '_ {
        self.partition.labels.iter().enumerate().filter(move |(_, z)| **z as usize == zone).map(|(i, _)| i)
    }

    /// The meta-state that most of the zone's mass belongs to.
    fn leading_metastate(&self, zone: usize) -> usize {
        largest_entry(&self.mean_membership(zone))
    }

    /// The states of the zone with the largest membership in its leading meta-state, then weight.
    fn anchors(&self, zone: usize) -> Vec<usize> {
        let j = self.leading_metastate(zone);
        let mut members: Vec<usize> = self.members(zone).collect();
        members.sort_by(|&a, &b| self.u[(b, j)].total_cmp(&self.u[(a, j)]).then(self.xi[b].total_cmp(&self.xi[a])).then(a.cmp(&b)));
        members.truncate(NAMED);
        members
    }

    /// `zones.csv`.
    pub fn table(&self) -> String {
        let mut out = String::from("zone,size,mass");
        out.push_str(if self.flows.is_some() { ",inflow,outflow,self_share,metastate" } else { ",metastate" });
        (1..=NAMED).for_each(|k| push(&mut out, format_args!(",anchor_{k}")));
        if self.flows.is_some() {
            (1..=NAMED).for_each(|k| push(&mut out, format_args!(",destination_{k},share_{k}")));
        }
        out.push('\n');
        for z in 0..self.count() {
            push(&mut out, format_args!("{},{},{:?}", z + 1, self.partition.sizes[z], self.partition.masses[z]));
            if let Some(trade) = self.flows.map(|f| f.trade(z)) {
                push(&mut out, format_args!(",{:?},{:?},{:?}", trade.inflow, trade.outflow, trade.self_share));
            }
            push(&mut out, format_args!(",{}", self.leading_metastate(z) + 1));
            let anchors = self.anchors(z);
            (0..NAMED).for_each(|k| {
                let name = anchors.get(k).map_or_else(String::new, |&i| csv_field(&self.labels[i].to_string()));
                push(&mut out, format_args!(",{name}"));
            });
            if let Some(to) = self.flows.map(|f| f.destinations(z)) {
                (0..NAMED).for_each(|k| match to.get(k) {
                    Some((b, share)) => push(&mut out, format_args!(",{},{share:?}", b + 1)),
                    None => out.push_str(",,"),
                });
            }
            out.push('\n');
        }
        out
    }

    /// The outline of each zone in whole cells, and the side of a cell. `None` when places or the size of a cell are unknown.
    pub fn outlines(&self) -> Option<(Vec<Vec<Polygon>>, f64)> {
        let (places, side) = self.cells?;
        let of_zone = |z: usize| outline(self.members(z).filter_map(|i| cell_of(places[i], side)));
        Some(((0..self.count()).map(of_zone).collect(), side))
    }

    /// `zones.geojson`: one feature a zone (RFC 7946: longitude first, outer rings counter-clockwise).
    pub fn geojson(&self) -> Option<String> {
        let (outlines, side) = self.outlines()?;
        let features: Vec<Value> = outlines
            .iter()
            .enumerate()
            .map(|(z, polygons)| {
                let ring = |ring: &Vec<Corner>| ring.iter().map(|c| json!([degrees(c.0, side), degrees(c.1, side)])).collect::<Vec<_>>();
                let polygon = |p: &Polygon| std::iter::once(&p.outer).chain(&p.holes).map(ring).collect::<Vec<_>>();
                let mut properties = json!({
                    "zone": z + 1, "metastate": self.leading_metastate(z) + 1, "size": self.partition.sizes[z], "mass": self.partition.masses[z]
                });
                if let Some(trade) = self.flows.map(|f| f.trade(z)) {
                    properties["inflow"] = json!(trade.inflow);
                    properties["outflow"] = json!(trade.outflow);
                    properties["self_share"] = json!(trade.self_share);
                }
                json!({
                    "type": "Feature",
                    "properties": properties,
                    "geometry": { "type": "MultiPolygon", "coordinates": polygons.iter().map(polygon).collect::<Vec<_>>() }
                })
            })
            .collect();
        Some(json!({ "type": "FeatureCollection", "features": features }).to_string() + "\n")
    }

    /// `zones.parquet`: the same as GeoParquet 1.1, geometry as well-known binary in longitude and latitude.
    pub fn geoparquet(&self) -> Option<Result<Vec<u8>, String>> {
        let (outlines, side) = self.outlines()?;
        Some(self.geoparquet_bytes(&outlines, side))
    }

    fn geoparquet_bytes(&self, outlines: &[Vec<Polygon>], side: f64) -> Result<Vec<u8>, String> {
        let numbers = |f: &dyn Fn(usize) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values((0..self.count()).map(f))) };
        let shapes: Vec<Vec<u8>> = outlines.iter().map(|polygons| well_known_binary(polygons, side)).collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("zone", Arc::new(UInt32Array::from_iter_values((1..=self.count()).map(|z| z as u32)))),
            ("size", Arc::new(UInt64Array::from_iter_values(self.partition.sizes.iter().map(|&n| n as u64)))),
            ("mass", numbers(&|z| self.partition.masses[z])),
        ];
        if let Some(flows) = self.flows {
            columns.extend([
                ("inflow", numbers(&|z| flows.trade(z).inflow)),
                ("outflow", numbers(&|z| flows.trade(z).outflow)),
                ("self_share", numbers(&|z| flows.trade(z).self_share)),
            ]);
        }
        columns.extend([
            (
                "metastate",
                Arc::new(UInt32Array::from_iter_values((0..self.count()).map(|z| self.leading_metastate(z) as u32 + 1))) as ArrayRef,
            ),
            ("geometry", Arc::new(BinaryArray::from_iter_values(&shapes))),
        ]);
        let corners = outlines.iter().flatten().flat_map(|p| &p.outer);
        let (mut low, mut high) = ((f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY));
        for &(x, y) in corners {
            let (lon, lat) = (degrees(x, side), degrees(y, side));
            (low, high) = ((low.0.min(lon), low.1.min(lat)), (high.0.max(lon), high.1.max(lat)));
        }
        let mut column = json!({ "encoding": "WKB", "geometry_types": ["MultiPolygon"], "orientation": "counterclockwise" });
        if low.0 <= high.0 {
            column["bbox"] = json!([low.0, low.1, high.0, high.1]);
        }
        let geo = json!({ "version": "1.1.0", "primary_column": "geometry", "columns": { "geometry": column } });
        let columns = columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
        parquet_table::bytes(columns, Some(KeyValue::new("geo".to_owned(), geo.to_string())))
    }
}

fn push(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
}

/// A corner of the grid in degrees.
pub(crate) fn degrees(corner: i64, side: f64) -> f64 {
    (corner as f64 * side * TO_DIGITS).round() / TO_DIGITS
}

/// A multipolygon, little-endian.
fn well_known_binary(polygons: &[Polygon], side: f64) -> Vec<u8> {
    let header = |out: &mut Vec<u8>, kind: u32, count: usize| {
        out.push(LITTLE_ENDIAN);
        out.extend(kind.to_le_bytes());
        out.extend((count as u32).to_le_bytes());
    };
    let mut out = Vec::new();
    header(&mut out, WKB_MULTIPOLYGON, polygons.len());
    for p in polygons {
        header(&mut out, WKB_POLYGON, 1 + p.holes.len());
        for ring in std::iter::once(&p.outer).chain(&p.holes) {
            out.extend((ring.len() as u32).to_le_bytes());
            for &(x, y) in ring {
                out.extend(degrees(x, side).to_le_bytes());
                out.extend(degrees(y, side).to_le_bytes());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_the_same_zones() {
        let side = 0.001;
        let places: Vec<(f64, f64)> =
            (0..9).map(|i| (-74.0 + (0.5 + (i % 3) as f64) * side, 40.0 + (0.5 + (i / 3) as f64) * side)).collect();
        let hard: Vec<u32> = (0..9).map(|i| u32::from(i == 4)).collect();
        let xi = [1.0 / 9.0; 9];
        let partition = Partition::ordered_by_mass(&hard, &xi, 2);
        let u = Mat::from_fn(9, 2, |i, j| if (i == 4) == (j == 0) { 1.0 } else { 0.0 });
        let flows = ZoneFlows { flows: Mat::from_vec(2, 2, vec![0.6, 0.2, 0.1, 0.1]).unwrap() };
        let labels: Vec<Label> = (0..9).map(|i| Label::Text(format!("cell, {i}").into())).collect();
        let set = ZoneSet { partition: &partition, flows: Some(&flows), labels: &labels, xi: &xi, u: &u, cells: Some((&places, side)) };
        let map: Value = serde_json::from_str(&set.geojson().unwrap()).unwrap();
        let ring = &map["features"][0]["geometry"]["coordinates"][0];
        assert_eq!(ring.as_array().unwrap().len(), 2, "the middle cell is a hole of zone 1");
        assert_eq!(ring[0][0], json!([-74.0, 40.0]));
        let rows = crate::tables::parse_csv(&set.table()).unwrap();
        assert_eq!(
            &rows[1][..7],
            ["1", "8", &format!("{:?}", partition.masses[0]), "0.1", "0.2", &format!("{:?}", 0.6 / (0.6 + 0.2)), "2"]
        );
        assert_eq!(rows[2][7], "cell, 4");
        // Zone 1 leads to meta-state 2 in the table and on the map alike.
        let told = |z: usize| (map["features"][z]["properties"]["zone"].clone(), map["features"][z]["properties"]["metastate"].clone());
        assert_eq!([told(0), told(1)], [(json!(1), json!(2)), (json!(2), json!(1))]);
        assert!(rows.iter().all(|r| r.len() == rows[0].len()));
        let bytes = set.geoparquet().unwrap().unwrap();
        assert!(bytes.windows(8).any(|w| w == b"\"geometr"));
        let none = ZoneSet { cells: None, ..set };
        assert!(none.geojson().is_none() && none.geoparquet().is_none());
    }

    #[test]
    fn well_known_binary_by_hand() {
        let square = outline([(0, 0)]);
        let bytes = well_known_binary(&square, 0.5);
        assert_eq!(bytes.len(), 9 + 9 + 4 + 5 * 16);
        assert_eq!(&bytes[..9], [1, 6, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(&bytes[22..30], 0.0_f64.to_le_bytes());
        assert_eq!(&bytes[38..46], 0.5_f64.to_le_bytes());
    }
}
