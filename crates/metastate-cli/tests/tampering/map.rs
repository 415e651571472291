//! Lies about zones on a map.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch};
use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::judge::Found::By;
use crate::judge::Lie;
use crate::tools::{other, times, word};

/// Which zone a cell is in.
pub const ZONES: &[Lie] = &[
    ("all states in one zone", By("zones"), |c, _| c.zones(|_| "1".to_owned())),
    ("zones 1 and 2 exchanged", By("zones"), |c, _| {
        c.zones(|z| {
            if z == "1" {
                "2".to_owned()
            } else if z == "2" {
                "1".to_owned()
            } else {
                z.to_owned()
            }
        });
    }),
    ("zones by the label's last digit", By("zones"), |c, _| {
        c.csv("states.csv", |rows| rows.iter_mut().skip(1).enumerate().for_each(|(k, row)| row[3] = (k % 3 + 1).to_string()));
    }),
    ("a zone that does not exist", By("zones"), |c, _| c.field("states.csv", 1, "zone", word("9"))),
    ("one state in another meta-state", By("states.csv"), |c, _| c.field("states.csv", 1, "metastate", other)),
    ("zones told as meta-states", By("states.csv"), |c, _| {
        c.csv("states.csv", |rows| rows[1..].iter_mut().for_each(|row| row[2] = row[3].clone()))
    }),
];

/// Where the cells are.
pub const PLACES: &[Lie] = &[
    ("another place of a state", By("states.csv"), |c, _| c.field("states.csv", 1, "lon", times(1.001))),
    ("longitude and latitude named each other", By("states.csv"), |c, _| {
        c.csv("states.csv", |rows| {
            let n = rows[0].len();
            rows[0].swap(n - 2, n - 1);
        });
    }),
    ("another latitude in states.parquet", By("states.parquet"), |c, _| c.parquet_column("states.parquet", "lat", 1.1, "lat")),
];

/// What the zones are, in tables and on maps.
pub const TABLES: &[Lie] = &[
    ("less outflow in zones.csv", By("zones.csv"), |c, _| c.field("zones.csv", 2, "outflow", times(0.5))),
    ("a larger zone in zones.csv", By("zones.csv"), |c, _| c.field("zones.csv", 2, "size", word("99"))),
    ("another share in zones.csv", By("zones.csv"), |c, _| c.field("zones.csv", 2, "share_1", times(1.1))),
    ("another property in zones.geojson", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| m["features"][0]["properties"]["inflow"] = json!(0.5))
    }),
    ("another meta-state of a zone in zones.geojson", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| m["features"][0]["properties"]["metastate"] = json!(99))
    }),
    ("another meta-state of a zone in zones.parquet", By("zones.parquet"), |c, _| c.parquet_number("zones.parquet", "metastate", 99)),
    ("a further property in zones.geojson", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| m["features"][0]["properties"]["title"] = json!("Centre"))
    }),
    ("a zone less in zones.geojson", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| drop(m["features"].as_array_mut().unwrap().pop()))
    }),
];

/// Their shapes.
pub const SHAPES: &[Lie] = &[
    ("shapes of two zones exchanged", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| {
            let (a, b) = (m["features"][0]["geometry"].clone(), m["features"][1]["geometry"].clone());
            (m["features"][0]["geometry"], m["features"][1]["geometry"]) = (b, a);
        });
    }),
    ("a corner moved", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| {
            let corner = &mut m["features"][0]["geometry"]["coordinates"][0][0][1][0];
            *corner = (corner.as_f64().unwrap() + 0.01).into();
        });
    }),
    ("a part of a zone left out", By("zones.geojson"), |c, _| {
        c.json("zones.geojson", |m| drop(m["features"][0]["geometry"]["coordinates"].as_array_mut().unwrap().pop()));
    }),
];

/// The zones in Parquet.
pub const PARQUET: &[Lie] = &[
    ("another value in zones.parquet", By("zones.parquet"), |c, _| c.parquet_column("zones.parquet", "mass", 1.1, "mass")),
    ("another name in zones.parquet", By("zones.parquet"), |c, _| c.parquet_column("zones.parquet", "mass", 1.0, "weight")),
    ("shapes turned round in zones.parquet", By("zones.parquet"), |c, _| {
        c.parquet("zones.parquet", |batch| {
            let shapes = batch.column(8).as_any().downcast_ref::<BinaryArray>().unwrap();
            let turned: Vec<Vec<u8>> = (0..batch.num_rows()).rev().map(|k| shapes.value(k).to_vec()).collect();
            let turned: ArrayRef = Arc::new(BinaryArray::from_iter_values(&turned));
            let mut columns = batch.columns().to_vec();
            columns[8] = turned;
            RecordBatch::try_new(batch.schema(), columns).unwrap()
        });
    }),
    ("zones.parquet without its description", By("zones.parquet"), |c, _| {
        let path = c.0.join("zones.parquet");
        let batch = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap())
            .unwrap()
            .build()
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let schema = Arc::new(Schema::new(batch.schema().fields().clone()));
        let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }),
];

/// The page and its settings.
pub const PAGE: &[Lie] = &[
    ("larger cells on the page", By("page.json"), |c, _| c.json("page.json", |page| page["cell"] = json!(0.02))),
    ("a plot of the map replaced", By("plots"), |c, _| std::fs::write(c.0.join("plots/map.svg"), "<svg/>").unwrap()),
    ("another number of zones in the settings", By("settings and command"), |c, _| c.set("/settings/fit/clusters", json!("4"))),
];
