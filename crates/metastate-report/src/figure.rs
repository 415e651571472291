//! Figures with several series: lines, single points, bars of error, a legend. The axes are those of [`crate::chart`].

use std::fmt::Write;

use crate::chart::{Scale, tick};
use crate::map::{COLOURS, escaped};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 52.0;

/// One series of a figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Joined by a line, in this order.
    pub line: Vec<(f64, f64)>,
    /// Single points.
    pub points: Vec<(f64, f64)>,
    /// `(x, low, high)`: grey bars.
    pub bars: Vec<(f64, f64, f64)>,
    /// A dashed line, for a fit or for somebody else's values.
    pub dashed: bool,
}

/// A figure with logarithmic axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// On top.
    pub title: String,
    /// Below.
    pub x: String,
    /// At the left.
    pub y: String,
    /// What is shown.
    pub series: Vec<Series>,
}

impl Figure {
    /// The whole picture; `None` when there is nothing to show.
    pub fn svg(&self) -> Option<String> {
        let (x0, x1, y0, y1) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, TOP);
        let places = || {
            self.series
                .iter()
                .flat_map(|s| s.line.iter().chain(&s.points).copied().chain(s.bars.iter().flat_map(|b| [(b.0, b.1), (b.0, b.2)])))
        };
        let sx = Scale::new(places().map(|p| p.0), true, x0, x1, 0.04)?;
        let sy = Scale::new(places().map(|p| p.1), true, y0, y1, 0.05)?;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n\
             <title>{0}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{0}</text>\n",
            escaped(&self.title)
        );
        for t in sx.ticks() {
            let x = sx.at(t);
            let label = tick(t);
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {y0}V{y1}\" stroke=\"#e4e4e4\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                y0 + 16.0
            );
        }
        for t in sy.ticks() {
            let y = sy.at(t);
            let label = tick(t);
            let _ = writeln!(
                out,
                "<path d=\"M{x0} {y:.1}H{x1}\" stroke=\"#e4e4e4\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                x0 - 6.0,
                y + 4.0
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{x0} {y1}V{y0}H{x1}\" stroke=\"#333\" fill=\"none\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            0.5 * (x0 + x1),
            HEIGHT - 14.0,
            escaped(&self.x),
            0.5 * (y0 + y1),
            escaped(&self.y)
        );
        for (k, series) in self.series.iter().enumerate() {
            let colour = COLOURS[k % COLOURS.len()];
            let shown = |p: &&(f64, f64)| p.0 > 0.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
            for (x, low, high) in series.bars.iter().filter(|b| b.0 > 0.0 && b.1 > 0.0 && b.2.is_finite()) {
                let _ = writeln!(
                    out,
                    "<path d=\"M{0:.1} {1:.1}V{2:.1}\" stroke=\"#999\" stroke-width=\"5\" stroke-opacity=\".55\"/>",
                    sx.at(*x),
                    sy.at(*low),
                    sy.at(*high)
                );
            }
            let line: Vec<String> = series.line.iter().filter(shown).map(|p| format!("{:.1},{:.1}", sx.at(p.0), sy.at(p.1))).collect();
            if line.len() > 1 {
                let dash = if series.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
                let _ =
                    writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>", line.join(" "));
            }
            for p in series.points.iter().filter(shown) {
                let _ = writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\" fill=\"{colour}\"/>", sx.at(p.0), sy.at(p.1));
            }
            let y = TOP + 8.0 + 18.0 * k as f64;
            let dash = if series.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {y:.1}h18\" stroke=\"{colour}\" stroke-width=\"2.4\"{dash}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x1 + 10.0,
                x1 + 33.0,
                y + 4.0,
                escaped(&series.name)
            );
        }
        Some(out + "</svg>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_finite_numbers_only_and_escape_their_names() {
        let series = Series {
            name: "a < b".into(),
            line: vec![(1.0, 2.0), (10.0, 0.0), (100.0, 5.0)],
            points: vec![(1.0, f64::NAN), (2.0, 3.0)],
            bars: vec![(2.0, 1.0, 4.0)],
            dashed: true,
        };
        let figure = Figure { title: "t & u".into(), x: "x".into(), y: "y".into(), series: vec![series] };
        let svg = figure.svg().unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("a &lt; b") && svg.contains("t &amp; u"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(Figure { series: vec![], ..figure }.svg().is_none());
    }
}
