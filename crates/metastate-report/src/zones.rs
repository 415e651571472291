//! The zones: a table, and where places are known the merged cells as GeoJSON and GeoParquet.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use metastate::Label;
use metastate::Mat;
use metastate::aggregate::{Partition, ZoneFlows};
use metastate::workspace::largest_entry;
use metastate::workspace::polygons::{Corner, Polygon};
use metastate::workspace::territory::UNIT;
use parquet::file::metadata::KeyValue;
use serde_json::{Value, json};

use crate::ground::{Ground, Outline, Shapes};
use crate::tables::{NAMED, csv_field};
use crate::{colours, parquet_table};

/// Digits after the point of a corner in degrees: a ten-thousandth of a metre.
const TO_DIGITS: f64 = 1e9;
/// Well-known binary: the numbers of its kinds of shapes, and the mark of little-endian numbers.
const WKB_POLYGON: u32 = 3;
const WKB_MULTIPOLYGON: u32 = 6;
const LITTLE_ENDIAN: u8 = 1;

/// The file of the trips between zones.
pub const ZONE_FLOWS_FILE: &str = "zone_flows.csv";

/// Zones with all that their files tell.
#[derive(Debug, Clone, Copy)]
pub struct ZoneSet<'a> {
    /// Who is where.
    pub partition: &'a Partition,
    /// What moves between them.
    pub flows: Option<&'a ZoneFlows>,
    /// The same in transitions, where they were counted.
    pub trips: Option<&'a Mat>,
    /// Labels of the states.
    pub labels: &'a [Label],
    /// What people call the states, where that is known.
    pub state_names: Option<&'a [String]>,
    /// What the zones are called; each by its strongest anchor where nothing is said.
    pub names: Option<&'a [String]>,
    /// Weights of the states.
    pub xi: &'a [f64],
    /// Memberships.
    pub u: &'a Mat,
    /// Where the states are, and what they are on the map.
    pub places: Option<(&'a [(f64, f64)], Ground)>,
    /// Whether zones are numbered as meta-states, whose colours they then have.
    pub alike: bool,
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

    /// The states of the zone with the largest membership in its leading meta-state, then weight; with that membership.
    fn anchors(&self, zone: usize) -> Vec<(usize, f64)> {
        let j = self.leading_metastate(zone);
        let mut members: Vec<usize> = self.members(zone).collect();
        members.sort_by(|&a, &b| self.u[(b, j)].total_cmp(&self.u[(a, j)]).then(self.xi[b].total_cmp(&self.xi[a])).then(a.cmp(&b)));
        members.truncate(NAMED);
        members.into_iter().map(|i| (i, self.u[(i, j)])).collect()
    }

    fn state_name(&self, i: usize) -> String {
        self.state_names.map(|names| names[i].clone()).filter(|name| !name.is_empty()).unwrap_or_else(|| self.labels[i].to_string())
    }

    /// What each zone is called: as was said, else as its strongest anchor; nothing where it is empty.
    pub fn zone_names(&self) -> Vec<String> {
        let own = |z: usize| self.anchors(z).first().map_or_else(String::new, |a| self.state_name(a.0));
        let said = |z: usize| self.names.and_then(|names| names.get(z)).filter(|name| !name.is_empty()).cloned();
        (0..self.count()).map(|z| said(z).unwrap_or_else(|| own(z))).collect()
    }

    /// `zones.csv`.
    pub fn table(&self) -> String {
        let mut out = String::from("zone,name,size,mass");
        out.push_str(if self.flows.is_some() { ",inflow,outflow,self_share,metastate" } else { ",metastate" });
        (1..=NAMED).for_each(|k| push(&mut out, format_args!(",anchor_{k},membership_{k}")));
        if self.flows.is_some() {
            (1..=NAMED).for_each(|k| push(&mut out, format_args!(",destination_{k},share_{k}")));
        }
        out.push('\n');
        for (z, name) in self.zone_names().iter().enumerate() {
            push(&mut out, format_args!("{},{},{},{:?}", z + 1, csv_field(name), self.partition.sizes[z], self.partition.masses[z]));
            if let Some(trade) = self.flows.map(|f| f.trade(z)) {
                push(&mut out, format_args!(",{:?},{:?},{:?}", trade.inflow, trade.outflow, trade.self_share));
            }
            push(&mut out, format_args!(",{}", self.leading_metastate(z) + 1));
            let anchors = self.anchors(z);
            (0..NAMED).for_each(|k| match anchors.get(k) {
                Some(&(i, membership)) => {
                    push(&mut out, format_args!(",{},{membership:?}", csv_field(&self.labels[i].to_string())));
                }
                None => out.push_str(",,"),
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

    /// `zone_flows.csv`: one row a pair of zones, also where nothing moves.
    pub fn flow_table(&self) -> Option<String> {
        let ZoneFlows { flows } = self.flows?;
        let names: Vec<String> = self.zone_names().iter().map(|name| csv_field(name)).collect();
        let mut out = String::from("from_zone,from_name,to_zone,to_name,");
        out.push_str(if self.trips.is_some() { "transitions,share,share_of_departures\n" } else { "share,share_of_departures\n" });
        for a in 0..self.count() {
            let departures: f64 = flows.row(a).iter().sum();
            for b in 0..self.count() {
                push(&mut out, format_args!("{},{},{},{},", a + 1, names[a], b + 1, names[b]));
                if let Some(trips) = self.trips {
                    push(&mut out, format_args!("{:?},", trips[(a, b)]));
                }
                let share = flows[(a, b)];
                push(&mut out, format_args!("{share:?},{:?}\n", if departures > 0.0 { share / departures } else { 0.0 }));
            }
        }
        Some(out)
    }

    /// The outline of each zone; none where places are unknown.
    pub fn shapes(&self) -> Option<Shapes> {
        let (places, ground) = self.places?;
        Some(ground.shapes(self.labels, places, self.partition, self.xi))
    }

    /// The colour of each zone.
    pub fn colours(&self) -> Vec<String> {
        (0..self.count()).map(|z| colours::of_zone(z, self.alike, self.u.cols())).collect()
    }

    /// `zones.geojson`: one feature a zone, and where the states are places of a list one a place after them (RFC 7946: longitude first, outer rings
    /// counter-clockwise).
    pub fn geojson(&self) -> Option<String> {
        let (places, ground) = self.places?;
        let shapes = self.shapes()?;
        let mut features = self.zone_features(&shapes);
        if !ground.is_cells() {
            features.extend(self.place_features(places, ground));
        }
        Some(json!({ "type": "FeatureCollection", "features": features }).to_string() + "\n")
    }

    fn zone_features(&self, shapes: &Shapes) -> Vec<Value> {
        let (names, fills) = (self.zone_names(), self.colours());
        let feature = |z: usize| {
            let ring =
                |ring: &Vec<Corner>| ring.iter().map(|c| json!([degrees(c.0, shapes.unit), degrees(c.1, shapes.unit)])).collect::<Vec<_>>();
            let polygon = |p: &Polygon| std::iter::once(&p.outer).chain(&p.holes).map(ring).collect::<Vec<_>>();
            let mut properties = json!({
                "kind": "zone", "zone": z + 1, "name": names[z], "metastate": self.leading_metastate(z) + 1, "size": self.partition.sizes[z],
                "mass": self.partition.masses[z], "fill": fills[z]
            });
            if let Some(trade) = self.flows.map(|f| f.trade(z)) {
                properties["inflow"] = json!(trade.inflow);
                properties["outflow"] = json!(trade.outflow);
                properties["self_share"] = json!(trade.self_share);
            }
            let points = shapes.dots && shapes.zones[z].is_empty();
            let geometry = match points {
                true => json!({ "type": "MultiPoint", "coordinates": shapes.places[z] }),
                false => json!({ "type": "MultiPolygon", "coordinates": shapes.zones[z].iter().map(polygon).collect::<Vec<_>>() }),
            };
            json!({ "type": "Feature", "properties": properties, "geometry": geometry })
        };
        (0..self.count()).map(feature).collect()
    }

    /// Each place that is known: its own ground where it has some, else the point.
    fn place_features(&self, places: &[(f64, f64)], ground: Ground) -> Vec<Value> {
        let rings = ground.rings(self.labels, places).unwrap_or_default();
        let fills = self.colours();
        let feature = |i: usize| {
            let zone = self.partition.labels[i] as usize;
            let home = largest_entry(self.u.row(i));
            let mut properties = json!({
                "kind": "place", "label": self.labels[i].to_string(), "zone": zone + 1, "metastate": home + 1, "membership": self.u[(i, home)],
                "weight": self.xi[i], "fill": fills[zone]
            });
            if let Some(names) = self.state_names {
                properties["name"] = json!(names[i]);
            }
            let corner = |c: &Corner| json!([degrees(c.0, UNIT), degrees(c.1, UNIT)]);
            let geometry = match rings.get(i).filter(|ring| ring.len() > 2) {
                Some(ring) => {
                    let closed: Vec<Value> = ring.iter().chain(ring.first()).map(corner).collect();
                    json!({ "type": "Polygon", "coordinates": [closed] })
                }
                None => json!({ "type": "Point", "coordinates": [places[i].0, places[i].1] }),
            };
            json!({ "type": "Feature", "properties": properties, "geometry": geometry })
        };
        (0..places.len()).filter(|&i| places[i].0.is_finite() && places[i].1.is_finite()).map(feature).collect()
    }

    /// `zones.parquet`: the zones as GeoParquet 1.1, geometry as well-known binary in longitude and latitude; none where they have no outline.
    pub fn geoparquet(&self) -> Option<Result<Vec<u8>, String>> {
        let shapes = self.shapes()?;
        let outlined = !self.places.is_some_and(|(_, ground)| ground == Ground::Other(Outline::Points));
        outlined.then(|| self.geoparquet_bytes(&shapes.zones, shapes.unit))
    }

    fn geoparquet_bytes(&self, outlines: &[Vec<Polygon>], side: f64) -> Result<Vec<u8>, String> {
        let numbers = |f: &dyn Fn(usize) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values((0..self.count()).map(f))) };
        let shapes: Vec<Vec<u8>> = outlines.iter().map(|polygons| well_known_binary(polygons, side)).collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("zone", Arc::new(UInt32Array::from_iter_values((1..=self.count()).map(|z| z as u32)))),
            ("name", Arc::new(StringArray::from_iter_values(self.zone_names()))),
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
        let trips = Mat::from_vec(2, 2, vec![60.0, 20.0, 10.0, 10.0]).unwrap();
        let set = ZoneSet {
            partition: &partition,
            flows: Some(&flows),
            trips: Some(&trips),
            labels: &labels,
            state_names: None,
            names: None,
            xi: &xi,
            u: &u,
            places: Some((&places, Ground::Squares(side))),
            alike: false,
        };
        let map: Value = serde_json::from_str(&set.geojson().unwrap()).unwrap();
        let ring = &map["features"][0]["geometry"]["coordinates"][0];
        assert_eq!(ring.as_array().unwrap().len(), 2, "the middle cell is a hole of zone 1");
        assert_eq!(ring[0][0], json!([-74.0, 40.0]));
        let rows = crate::tables::parse_csv(&set.table()).unwrap();
        assert_eq!(
            &rows[1][..8],
            ["1", "cell, 0", "8", &format!("{:?}", partition.masses[0]), "0.1", "0.2", &format!("{:?}", 0.6 / (0.6 + 0.2)), "2"]
        );
        assert_eq!(rows[2][8..10], ["cell, 4", "1.0"]);
        // Zone 1 leads to meta-state 2 in the table and on the map alike.
        let told = |z: usize| (map["features"][z]["properties"]["zone"].clone(), map["features"][z]["properties"]["metastate"].clone());
        assert_eq!([told(0), told(1)], [(json!(1), json!(2)), (json!(2), json!(1))]);
        assert!(rows.iter().all(|r| r.len() == rows[0].len()));
        let bytes = set.geoparquet().unwrap().unwrap();
        assert!(bytes.windows(8).any(|w| w == b"\"geometr"));
        let none = ZoneSet { places: None, ..set };
        assert!(none.geojson().is_none() && none.geoparquet().is_none());
        let flows = crate::tables::parse_csv(&set.flow_table().unwrap()).unwrap();
        assert_eq!(flows[2], ["1", "cell, 0", "2", "cell, 4", "20.0", "0.2", "0.25"]);
        assert_eq!(flows.len(), 5);
    }

    #[test]
    fn places_keep_their_names_and_get_ground() {
        let places = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (f64::NAN, f64::NAN), (1.0, 1.0)];
        let xi = [0.2; 5];
        let partition = Partition::numbered(vec![0, 1, 0, 1, 1], &xi, 2);
        let u = Mat::from_fn(5, 2, |i, j| if partition.labels[i] as usize == j { 0.75 } else { 0.25 });
        let labels: Vec<Label> = (0..5).map(Label::Integer).collect();
        let names: Vec<String> = ["Old Town", "", "Harbour", "Nowhere", "Airport"].map(str::to_owned).to_vec();
        let called = ["".to_owned(), "East".to_owned()];
        let set = |outline| ZoneSet {
            partition: &partition,
            flows: None,
            trips: None,
            labels: &labels,
            state_names: Some(&names),
            names: Some(&called),
            xi: &xi,
            u: &u,
            places: Some((&places, Ground::Other(outline))),
            alike: true,
        };
        let map = |outline| -> Value { serde_json::from_str(&set(outline).geojson().unwrap()).unwrap() };
        let voronoi = map(Outline::Voronoi);
        let features = voronoi["features"].as_array().unwrap();
        // Two zones, and the four places that are known.
        assert_eq!(features.len(), 6);
        let zone = &features[1]["properties"];
        assert_eq!([&zone["kind"], &zone["name"], &zone["fill"]], [&json!("zone"), &json!("East"), &json!("#e69f00")]);
        assert_eq!(features[0]["properties"]["name"], "Old Town", "a zone that nobody named is called as its strongest anchor");
        let place = &features[4];
        assert_eq!(
            [&place["properties"]["label"], &place["properties"]["name"], &place["properties"]["zone"]],
            [&json!("2"), &json!("Harbour"), &json!(1)]
        );
        assert_eq!(place["geometry"]["type"], "Polygon");
        // The border between west and east runs half-way: the ground of a zone is one polygon.
        let ring = features[0]["geometry"]["coordinates"].as_array().unwrap();
        assert_eq!(ring.len(), 1);
        let east = |c: &Value| c[0].as_f64().unwrap();
        let farthest = ring[0][0].as_array().unwrap().iter().map(east).fold(f64::MIN, f64::max);
        assert!((farthest - 0.5).abs() < 1e-6, "{farthest}");
        let points = map(Outline::Points);
        assert_eq!(points["features"][1]["geometry"], json!({ "type": "MultiPoint", "coordinates": [[1.0, 0.0], [1.0, 1.0]] }));
        assert!(set(Outline::Points).geoparquet().is_none() && set(Outline::Hull).geoparquet().unwrap().is_ok());
        assert_eq!(map(Outline::Hull)["features"][2]["geometry"]["type"], "Point");
    }

    #[test]
    fn well_known_binary_by_hand() {
        let square = metastate::workspace::polygons::outline([(0, 0)]);
        let bytes = well_known_binary(&square, 0.5);
        assert_eq!(bytes.len(), 9 + 9 + 4 + 5 * 16);
        assert_eq!(&bytes[..9], [1, 6, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(&bytes[22..30], 0.0_f64.to_le_bytes());
        assert_eq!(&bytes[38..46], 0.5_f64.to_le_bytes());
    }
}
