//! A bar chart as a plain SVG picture.

use std::fmt::Write;

use crate::sheet::escaped;

/// Width of a picture.
const WIDTH: f64 = 560.0;
/// The bars: room for the title, from bar to bar, where they begin, and the lengths of the smallest and of what is added for the largest.
const BARS_TOP: f64 = 34.0;
const BAR_STEP: f64 = 24.0;
const BAR_LEFT: f64 = 160.0;
const BAR_LEAST: f64 = 20.0;
const BAR_MORE: f64 = 240.0;
/// From the upper edge of a bar to the base line of the text beside it, and from its end to the number.
const BAR_TEXT: f64 = 14.0;
const BAR_GAP: f64 = 6.0;

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
    use super::bar_chart;

    #[test]
    fn names_are_escaped_and_no_bar_is_no_number_long() {
        let chart = bar_chart("scores", &[("ours".into(), -6.5, true), ("<rival>".into(), f64::NAN, false)]);
        assert!(chart.contains("&lt;rival&gt;") && !chart.contains("width=\"NaN\""));
    }
}
