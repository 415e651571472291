//! Zones as a plain SVG picture, and a bar chart: no fonts, scripts or links from outside.

use std::fmt::Write;

use metastate::aggregate::polygons::Polygon;

/// Colours that stay apart for colour-blind eyes (Okabe and Ito), then their darker sisters.
pub(crate) const COLOURS: [&str; 16] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#003f63", "#8a5f00", "#005a42", "#7a4864",
    "#2a6b8c", "#803800", "#90882a", "#555555",
];
/// Width of a picture.
const WIDTH: f64 = 560.0;
/// Room for the title above a map.
const TITLE: f64 = 30.0;
/// A map is never more than so many times as high as it is wide.
const TALLEST: f64 = 4.0;
/// Cells of empty room around the zones.
const MARGIN: i64 = 2;
/// No more than this share of the corners is left out at each side, whatever is asked for.
const MOST_CUT: f64 = 0.4;
/// Degrees of longitude are never drawn narrower than this share of their length at the equator: a map reaches no pole.
const NARROWEST: f64 = 0.05;
/// The bars: room for the title, from bar to bar, where they begin, and the lengths of the smallest and of what is added for the largest.
const BARS_TOP: f64 = 34.0;
const BAR_STEP: f64 = 24.0;
const BAR_LEFT: f64 = 160.0;
const BAR_LEAST: f64 = 20.0;
const BAR_MORE: f64 = 240.0;
/// From the upper edge of a bar to the base line of the text beside it, and from its end to the number.
const BAR_TEXT: f64 = 14.0;
const BAR_GAP: f64 = 6.0;

/// The legend of a map: zones in a row, from row to row, and from the map to the first.
const LEGEND_COLUMNS: usize = 8;
const LEGEND_ROW: f64 = 18.0;
const LEGEND_GAP: f64 = 8.0;

/// A text inside SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The zones of a partition in their places. `side` is the side of a cell in degrees; `within` cuts the view to the middle of the
/// map: the share of corners, from each side, that may be left out.
pub fn zone_map(title: &str, zones: &[Vec<Polygon>], side: f64, within: f64) -> String {
    let corners = || zones.iter().flatten().flat_map(|p| &p.outer);
    let range = |mut values: Vec<i64>| {
        values.sort_unstable();
        let cut = (within.clamp(0.0, MOST_CUT) * values.len() as f64) as usize;
        match values[..] {
            [] => (0, 1),
            _ => (values[cut] - MARGIN, values[values.len() - 1 - cut] + MARGIN),
        }
    };
    let ((west, east), (south, north)) = (range(corners().map(|c| c.0).collect()), range(corners().map(|c| c.1).collect()));
    // Degrees of longitude are shorter away from the equator.
    let narrow = ((south + north) as f64 / 2.0 * side).to_radians().cos().abs().max(NARROWEST);
    let scale = WIDTH / ((east - west) as f64 * narrow);
    let height = ((north - south) as f64 * scale).min(TALLEST * WIDTH);
    let below = legend_height(zones.len());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {0:.0}\" width=\"{WIDTH:.0}\" height=\"{0:.0}\" role=\"img\">\n<title>{1}</title>\n\
         <desc>Map, north is up: {2} zones made of square cells of {side} degrees, each zone in its colour; colours come again after {3} zones.</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        height + TITLE + below,
        escaped(title),
        zones.len(),
        COLOURS.len()
    );
    for (z, polygons) in zones.iter().enumerate() {
        let mut path = String::new();
        for ring in polygons.iter().flat_map(|p| std::iter::once(&p.outer).chain(&p.holes)) {
            for (k, &(x, y)) in ring.iter().enumerate() {
                let (x, y) = ((x - west) as f64 * narrow * scale, TITLE + (north - y) as f64 * scale);
                let _ = write!(path, "{}{x:.1} {y:.1}", if k == 0 { "M" } else { "L" });
            }
            path.push('Z');
        }
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"{}\" fill-rule=\"evenodd\" stroke=\"#fff\" stroke-width=\"0.3\"><title>zone {}</title></path>",
            COLOURS[z % COLOURS.len()],
            z + 1
        );
    }
    // Last, on white: cells outside the view may reach up here.
    let _ = writeln!(
        out,
        "<rect width=\"100%\" height=\"28\" fill=\"#fff\"/><text x=\"8\" y=\"20\" font-family=\"sans-serif\" font-size=\"15\">{}</text>",
        escaped(title)
    );
    legend(&mut out, zones.len(), height + TITLE);
    out + "</svg>\n"
}

fn legend_height(zones: usize) -> f64 {
    LEGEND_ROW * zones.div_ceil(LEGEND_COLUMNS) as f64 + if zones > 0 { LEGEND_GAP } else { 0.0 }
}

/// Below the map, on white: which colour is which zone.
fn legend(out: &mut String, zones: usize, top: f64) {
    let _ = writeln!(out, "<rect y=\"{top:.1}\" width=\"100%\" height=\"{:.1}\" fill=\"#fff\"/>", legend_height(zones));
    for z in 0..zones {
        let x = 8.0 + (z % LEGEND_COLUMNS) as f64 * (WIDTH - 16.0) / LEGEND_COLUMNS as f64;
        let y = top + LEGEND_GAP + LEGEND_ROW * (z / LEGEND_COLUMNS) as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"11\" height=\"11\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-family=\"sans-serif\" font-size=\"12\">zone {}</text>",
            COLOURS[z % COLOURS.len()],
            x + 15.0,
            y + 10.0,
            z + 1
        );
    }
}

/// Horizontal bars from the smallest value on, the best one on top where `bars` are sorted so; strong where ours.
pub fn bar_chart(title: &str, bars: &[(String, f64, bool)]) -> String {
    let finite = || bars.iter().map(|b| b.1).filter(|x| x.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let span = if high > low { high - low } else { 1.0 };
    let height = BARS_TOP + BAR_GAP + BAR_STEP * bars.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>{0}</title>\n<desc>Bars, one a method, those of this package in blue: {1}.</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"8\" y=\"20\" font-size=\"15\">{0}</text>\n",
        escaped(title),
        escaped(&bars.iter().map(|(name, value, _)| format!("{name} {value:.4}")).collect::<Vec<_>>().join(", "))
    );
    for (k, (name, value, ours)) in bars.iter().enumerate() {
        let y = BARS_TOP + BAR_STEP * k as f64;
        let length = if value.is_finite() { BAR_LEAST + BAR_MORE * (value - low) / span } else { 0.0 };
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{:.0}\">{}</text><rect x=\"{BAR_LEFT}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"18\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.0}\">{value:.4}</text>",
            y + BAR_TEXT,
            escaped(name),
            if *ours { "#0072b2" } else { "#bbbbbb" },
            BAR_LEFT + BAR_GAP + length,
            y + BAR_TEXT
        );
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use metastate::aggregate::polygons::outline;

    #[test]
    fn pictures_are_well_formed_and_escape_their_titles() {
        let zones = vec![outline([(0, 0), (1, 0)]), outline([(0, 1)])];
        let map = zone_map("a < b & \"c\"", &zones, 0.001, 0.0);
        assert_eq!(map.matches("<path ").count(), 2);
        assert!(map.contains("<desc>Map, north is up: 2 zones") && map.contains(">zone 2</text>"), "{map}");
        assert!(map.contains("a &lt; b &amp; &quot;c&quot;") && map.ends_with("</svg>\n"));
        assert!(zone_map("empty", &[], 0.001, 0.0).ends_with("</svg>\n"));
        let chart = bar_chart("scores", &[("ours".into(), -6.5, true), ("<rival>".into(), f64::NAN, false)]);
        assert!(chart.contains("&lt;rival&gt;") && !chart.contains("width=\"NaN\""));
    }
}
