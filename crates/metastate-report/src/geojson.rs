//! `zones.geojson`: the cells of each zone as polygons, for any map program.

use serde_json::{Value, json};

use crate::result::{FitResult, Zones};

/// One feature for each meta-state, one square for each of its cells. `None` when places or the size of a cell are unknown.
pub(crate) fn zones(result: &FitResult, zones: &Zones) -> Option<String> {
    let (places, side) = (result.coordinates?, result.cell?);
    let square = |(lon, lat): (f64, f64)| {
        let corner = |x: f64, y: f64| json!([round(lon + x * side), round(lat + y * side)]);
        // Counter-clockwise and closed, as RFC 7946 asks.
        json!([[corner(-0.5, -0.5), corner(0.5, -0.5), corner(0.5, 0.5), corner(-0.5, 0.5), corner(-0.5, -0.5)]])
    };
    let features: Vec<Value> = (0..zones.sizes.len())
        .map(|j| {
            let cells = places.iter().zip(&zones.metastate).filter(|(place, k)| **k == j && place.0.is_finite());
            let squares: Vec<Value> = cells.map(|(place, _)| square(*place)).collect();
            json!({
                "type": "Feature",
                "properties": { "metastate": j + 1, "size": zones.sizes[j], "mass": zones.masses[j] },
                "geometry": { "type": "MultiPolygon", "coordinates": squares }
            })
        })
        .collect();
    Some(json!({ "type": "FeatureCollection", "features": features }).to_string() + "\n")
}

/// A ten-thousandth of a metre is enough for a map.
fn round(degrees: f64) -> f64 {
    (degrees * 1e9).round() / 1e9
}
