//! Two zonings side by side as one small SVG: each zone is one path of horizontal runs of cells.

use std::collections::BTreeMap;
use std::fmt::Write;

use metastate::aggregate::cell_of;

/// Manhattan and what lies next to it: west, south, east, north.
const FRAME: [f64; 4] = [-74.022, 40.698, -73.925, 40.815];
/// Side of a cell in the picture.
const UNIT: f64 = 3.0;
/// The colours of the zones (Okabe and Ito, then darker ones).
const COLOURS: [&str; 16] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#003f63", "#8a5f00", "#005a42", "#7a4864",
    "#2a6b8c", "#803800", "#90882a", "#555555",
];

/// The pair; `side` is a cell's in degrees.
pub fn pair(places: &[(f64, f64)], side: f64, left: (&str, &[u32]), right: (&str, &[u32])) -> String {
    let [west, south, east, north] = FRAME.map(|x| (x / side).round() as i64);
    // Degrees of longitude are shorter away from the equator.
    let across = UNIT * (0.5 * (FRAME[1] + FRAME[3])).to_radians().cos();
    let (width, height) = ((east - west) as f64 * across, (north - south) as f64 * UNIT);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0} {1:.0}\" width=\"{0:.0}\" height=\"{1:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        2.0 * width + 20.0,
        height + 24.0
    );
    for (k, (title, zones)) in [left, right].into_iter().enumerate() {
        let mut rows: BTreeMap<(u32, i64), Vec<i64>> = BTreeMap::new();
        for (place, zone) in places.iter().zip(zones) {
            let Some((x, y)) = cell_of(*place, side) else { continue };
            if (west..east).contains(&x) && (south..north).contains(&y) {
                rows.entry((*zone, north - 1 - y)).or_default().push(x - west);
            }
        }
        let mut paths: BTreeMap<u32, String> = BTreeMap::new();
        for ((zone, y), mut xs) in rows {
            xs.sort_unstable();
            let path = paths.entry(zone).or_default();
            let mut runs: Vec<(i64, i64)> = Vec::new();
            for x in xs {
                match runs.last_mut() {
                    Some((from, n)) if *from + *n == x => *n += 1,
                    _ => runs.push((x, 1)),
                }
            }
            runs.iter().for_each(|(x, n)| _ = write!(path, "M{x} {y}h{n}v1h-{n}z"));
        }
        let shift = k as f64 * (width + 20.0);
        let _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"15\">{title}</text><g transform=\"translate({shift:.0} 22) scale({across:.3} {UNIT})\">",
            shift + 4.0
        );
        for (zone, path) in paths {
            let _ = writeln!(out, "<path d=\"{path}\" fill=\"{}\"/>", COLOURS[zone as usize % COLOURS.len()]);
        }
        out += "</g>\n";
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_cells_of_a_zone_are_one_run() {
        let places: Vec<(f64, f64)> = (0..6).map(|k| (-74.0005 + 0.001 * f64::from(k), 40.7505)).collect();
        let svg = pair(&places, 0.001, ("a", &[0, 0, 0, 1, 1, 0]), ("b", &[0; 6]));
        assert!(svg.contains("h3v1h-3z") && svg.contains("h6v1h-6z") && svg.matches("<path").count() == 3, "{svg}");
    }
}
