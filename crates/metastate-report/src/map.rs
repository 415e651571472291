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
        let cut = (within.clamp(0.0, 0.4) * values.len() as f64) as usize;
        match values[..] {
            [] => (0, 1),
            _ => (values[cut] - 2, values[values.len() - 1 - cut] + 2),
        }
    };
    let ((west, east), (south, north)) = (range(corners().map(|c| c.0).collect()), range(corners().map(|c| c.1).collect()));
    // Degrees of longitude are shorter away from the equator.
    let narrow = ((south + north) as f64 / 2.0 * side).to_radians().cos().abs().max(0.05);
    let scale = WIDTH / ((east - west) as f64 * narrow);
    let height = ((north - south) as f64 * scale).min(4.0 * WIDTH);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {:.0}\" width=\"{WIDTH:.0}\" height=\"{:.0}\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        height + 30.0,
        height + 30.0,
        escaped(title)
    );
    for (z, polygons) in zones.iter().enumerate() {
        let mut path = String::new();
        for ring in polygons.iter().flat_map(|p| std::iter::once(&p.outer).chain(&p.holes)) {
            for (k, &(x, y)) in ring.iter().enumerate() {
                let (x, y) = ((x - west) as f64 * narrow * scale, 30.0 + (north - y) as f64 * scale);
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
    out + "</svg>\n"
}

/// Horizontal bars from the smallest value on, the best one on top where `bars` are sorted so; strong where ours.
pub fn bar_chart(title: &str, bars: &[(String, f64, bool)]) -> String {
    let finite = || bars.iter().map(|b| b.1).filter(|x| x.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let span = if high > low { high - low } else { 1.0 };
    let height = 40.0 + 24.0 * bars.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>{0}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"8\" y=\"20\" font-size=\"15\">{0}</text>\n",
        escaped(title)
    );
    for (k, (name, value, ours)) in bars.iter().enumerate() {
        let y = 34.0 + 24.0 * k as f64;
        let length = if value.is_finite() { 20.0 + 240.0 * (value - low) / span } else { 0.0 };
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{:.0}\">{}</text><rect x=\"160\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"18\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.0}\">{value:.4}</text>",
            y + 14.0,
            escaped(name),
            if *ours { "#0072b2" } else { "#bbbbbb" },
            166.0 + length,
            y + 14.0
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
        assert!(map.contains("a &lt; b &amp; &quot;c&quot;") && map.ends_with("</svg>\n"));
        assert!(zone_map("empty", &[], 0.001, 0.0).ends_with("</svg>\n"));
        let chart = bar_chart("scores", &[("ours".into(), -6.5, true), ("<rival>".into(), f64::NAN, false)]);
        assert!(chart.contains("&lt;rival&gt;") && !chart.contains("width=\"NaN\""));
    }
}
