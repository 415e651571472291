//! Figures with several series: lines, single points, bars of error, a legend. The axes are those of [`crate::chart`].

use std::fmt::Write;

use crate::chart::AxisScale;
use crate::sheet::{Area, Sheet, TO_BASE_LINE, escaped};

/// Room at the right is for the legend.
const SHEET: Sheet = Sheet { width: 640.0, height: 400.0, left: 76.0, right: 150.0, top: 36.0, bottom: 52.0, name_from_left: 16.0 };
/// Empty room at both ends of an axis, as a share of what it shows.
const ROOM_BESIDE: f64 = 0.04;
const ROOM_ABOVE: f64 = 0.05;
/// Colours of series: Okabe and Ito's, then their darker sisters.
const COLOURS: [&str; 16] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#003f63", "#8a5f00", "#005a42", "#7a4864",
    "#2a6b8c", "#803800", "#90882a", "#555555",
];
/// The legend: below the top of the axes, from line to line, from the axes to the stroke and to the name.
const LEGEND_TOP: f64 = 8.0;
const LEGEND_LINE: f64 = 18.0;
const LEGEND_STROKE: f64 = 10.0;
const LEGEND_NAME: f64 = 33.0;

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
        let Area { x0, x1, y0, y1 } = SHEET.area();
        let places = || {
            self.series
                .iter()
                .flat_map(|s| s.line.iter().chain(&s.points).copied().chain(s.bars.iter().flat_map(|b| [(b.0, b.1), (b.0, b.2)])))
        };
        let sx = AxisScale::new(places().map(|p| p.0), true, x0, x1, ROOM_BESIDE)?;
        let sy = AxisScale::new(places().map(|p| p.1), true, y0, y1, ROOM_ABOVE)?;
        let names: Vec<&str> = self.series.iter().map(|s| s.name.as_str()).collect();
        let mut out = SHEET.begin(&self.title, &format!("{} against {}, both on logarithmic axes: {}.", self.y, self.x, names.join(", ")));
        SHEET.axes(&mut out, (&sx, &sy), &self.x, &self.y);
        for (k, series) in self.series.iter().enumerate() {
            series.draw(&mut out, &sx, &sy, k);
            series.draw_legend(&mut out, k);
        }
        Some(out + "</svg>\n")
    }
}

impl Series {
    fn dash(&self) -> &'static str {
        if self.dashed { " stroke-dasharray=\"5 4\"" } else { "" }
    }

    /// Bars of error, then the line, then the points; what has no place on logarithmic axes is left out.
    fn draw(&self, out: &mut String, sx: &AxisScale, sy: &AxisScale, k: usize) {
        let (colour, dash) = (COLOURS[k % COLOURS.len()], self.dash());
        let shown = |p: &&(f64, f64)| p.0 > 0.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
        // Writing to a String cannot fail.
        for (x, low, high) in self.bars.iter().filter(|b| b.0 > 0.0 && b.1 > 0.0 && b.2.is_finite()) {
            let _ = writeln!(
                out,
                "<path d=\"M{0:.1} {1:.1}V{2:.1}\" stroke=\"#999\" stroke-width=\"5\" stroke-opacity=\".55\"/>",
                sx.at(*x),
                sy.at(*low),
                sy.at(*high)
            );
        }
        let line: Vec<String> = self.line.iter().filter(shown).map(|p| format!("{:.1},{:.1}", sx.at(p.0), sy.at(p.1))).collect();
        if line.len() > 1 {
            let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>", line.join(" "));
        }
        for p in self.points.iter().filter(shown) {
            let _ = writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\" fill=\"{colour}\"/>", sx.at(p.0), sy.at(p.1));
        }
    }

    fn draw_legend(&self, out: &mut String, k: usize) {
        let (colour, dash, right) = (COLOURS[k % COLOURS.len()], self.dash(), SHEET.area().x1);
        let y = SHEET.top + LEGEND_TOP + LEGEND_LINE * k as f64;
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {y:.1}h18\" stroke=\"{colour}\" stroke-width=\"2.4\"{dash}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            right + LEGEND_STROKE,
            right + LEGEND_NAME,
            y + TO_BASE_LINE,
            escaped(&self.name)
        );
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
