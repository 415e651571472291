//! Line charts as plain SVG, clean enough for a paper: linear or logarithmic axes with round ticks, lines, bars of error, a step
//! line on a second axis.

use std::fmt::Write;

use crate::sheet::escaped;
use crate::sheet::{Area, INK, Sheet, TICK_BESIDE, TO_BASE_LINE};

/// Room at the right is for the ticks of the second axis.
const SHEET: Sheet = Sheet { width: 640.0, height: 360.0, left: 82.0, right: 62.0, top: 36.0, bottom: 52.0, name_from_left: 18.0 };
/// Colours of the line, of the point that is pointed out, and of the second axis.
const FIRST: &str = "#0072b2";
const MARKED: &str = "#d55e00";
const SECOND: &str = "#b97f00";

/// Empty room at both ends of an axis, as a share of what it shows: little beside a line, more beside bars, which are wide.
const ROOM_OF_LINES: f64 = 0.02;
const ROOM_OF_BARS: f64 = 0.06;
const ROOM_ABOVE: f64 = 0.06;
/// Up to this number of points each is marked; more would hide the line.
const MOST_MARKS: usize = 60;
/// A bar fills this share of its place and is never wider than so many pixels.
const BAR_SHARE: f64 = 0.6;
const WIDEST_BAR: f64 = 40.0;
/// From the right edge of the sheet to the name of the second axis.
const NAME_FROM_RIGHT: f64 = 14.0;
/// From the right end of the legend to its mark.
const LEGEND_MARK: f64 = 52.0;
/// Half the width of the strokes at the ends of an interval.
const HALF_STROKE: f64 = 4.0;

/// An axis of so many decades has ticks at powers of ten, and shows at most so many of them.
const DECADES: f64 = 2.0;
const MOST_DECADES: f64 = 7.0;
/// A shorter one has about so many steps between ticks, and never more ticks than fit.
const STEPS: f64 = 5.0;
const MOST_TICKS: usize = 20;

/// One axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis<'a> {
    pub name: &'a str,
    pub log: bool,
}

/// A chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chart<'a> {
    pub title: &'a str,
    pub x: Axis<'a>,
    pub y: Axis<'a>,
    /// Points with the half length of their error bar (zero: none), ascending or descending in x.
    pub points: &'a [(f64, f64, f64)],
    /// Ends of intervals `(x, low, high)` that are not symmetric about a point.
    pub spans: &'a [(f64, f64, f64)],
    /// A line between the points, or a bar down to the axis for each.
    pub line: bool,
    /// A second quantity as steps, from zero up on an axis of its own.
    pub steps: Option<(&'a str, &'a [(f64, f64)])>,
    /// A point to point out.
    pub marked: Option<usize>,
}

/// From values to places.
pub(crate) struct AxisScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl AxisScale {
    /// `None` when there is nothing to show.
    pub(crate) fn new(values: impl Iterator<Item = f64>, log: bool, from: f64, to: f64, room: f64) -> Option<AxisScale> {
        let usable = |x: &f64| x.is_finite() && (!log || *x > 0.0);
        let map = |x: f64| if log { x.log10() } else { x };
        let (low, high) = values.filter(usable).map(map).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        if low > high {
            return None;
        }
        let pad = if high > low { room * (high - low) } else { 0.5 };
        Some(AxisScale { low: low - pad, high: high + pad, from, to, log })
    }

    pub(crate) fn at(&self, x: f64) -> f64 {
        let x = if self.log { x.log10() } else { x };
        self.from + (x - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Round numbers, four to eight of them.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let span = self.high - self.low;
        if self.log && span >= DECADES {
            let every = (span / MOST_DECADES).ceil().max(1.0) as i32;
            return (self.low.ceil() as i32..=self.high.floor() as i32).filter(|e| e % every == 0).map(|e| 10f64.powi(e)).collect();
        }
        if self.log {
            let decades = self.low.floor() as i32..=self.high.ceil() as i32;
            let fine = decades.flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(e)));
            let fine: Vec<f64> = fine.filter(|t| (self.low..=self.high).contains(&t.log10())).collect();
            if fine.len() >= 3 {
                return fine;
            }
        }
        // A logarithmic axis shorter than that is nearly linear: round numbers of the values themselves.
        let (low, high) = if self.log { (10f64.powf(self.low), 10f64.powf(self.high)) } else { (self.low, self.high) };
        let raw = (high - low) / STEPS;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= raw).unwrap_or(10.0 * power);
        let first = (low / step).ceil() as i64;
        (first..).map(|k| k as f64 * step).take_while(|t| *t <= high).take(MOST_TICKS).collect()
    }
}

/// As short as it can be read back to four digits.
pub(crate) fn tick(x: f64) -> String {
    let size = x.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) { format!("{x:.0e}") } else { format!("{}", (x * 1e6).round() / 1e6) }
}

impl Chart<'_> {
    /// The whole picture; `None` when there is nothing to show.
    pub fn svg(&self) -> Option<String> {
        let Area { x0, x1, y0, y1 } = SHEET.area();
        let room = if self.line { ROOM_OF_LINES } else { ROOM_OF_BARS };
        let sx = AxisScale::new(self.points.iter().map(|p| p.0), self.x.log, x0, x1, room)?;
        let ends = self.points.iter().flat_map(|p| [p.1 - p.2, p.1 + p.2]).chain(self.spans.iter().flat_map(|p| [p.1, p.2]));
        let sy = AxisScale::new(ends, self.y.log, y0, y1, ROOM_ABOVE)?;
        let mut out = SHEET.begin(self.title, &self.words());
        SHEET.axes(&mut out, (&sx, &sy), self.x.name, self.y.name);
        self.draw_steps(&mut out, &sx);
        if self.line {
            self.draw_line(&mut out, &sx, &sy);
        }
        self.draw_points(&mut out, &sx, &sy);
        self.draw_spans(&mut out, &sx, &sy);
        self.draw_legend(&mut out);
        Some(out + "</svg>\n")
    }

    /// What is shown, for those who do not see it.
    fn words(&self) -> String {
        let scale = |axis: &Axis| if axis.log { format!("{} (logarithmic)", axis.name) } else { axis.name.to_owned() };
        let shown: Vec<&(f64, f64, f64)> = self.points.iter().filter(|p| self.usable(p)).collect();
        let mut words =
            format!("{} against {}, {} {}", scale(&self.y), scale(&self.x), shown.len(), if self.line { "points" } else { "bars" });
        let (low, high) = shown.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p.1), b.max(p.1)));
        if low <= high {
            let _ = write!(words, " from {} to {}", tick(low), tick(high));
        }
        if let Some((name, _)) = self.steps {
            let _ = write!(words, "; {name} as steps, on the axis at the right");
        }
        if let Some(p) = self.marked.and_then(|k| self.points.get(k)).filter(|p| self.usable(p)) {
            let _ = write!(words, "; chosen: {} {}", self.x.name, tick(p.0));
        }
        if !self.spans.is_empty() {
            words += "; upright strokes are intervals";
        }
        words + "."
    }

    /// Names of what the axes do not name: at the right end of the line of the title.
    fn draw_legend(&self, out: &mut String) {
        let right = SHEET.area().x1;
        if self.marked.is_some() {
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"16\" r=\"5\" fill=\"{MARKED}\"/><text x=\"{right}\" y=\"20\" text-anchor=\"end\">chosen</text>",
                right - LEGEND_MARK
            );
        }
    }

    /// Whether a point has a place on these axes.
    fn usable(&self, p: &(f64, f64, f64)) -> bool {
        p.0.is_finite() && p.1.is_finite() && (!self.y.log || p.1 > 0.0) && (!self.x.log || p.0 > 0.0)
    }

    /// The second quantity with its own axis at the right.
    fn draw_steps(&self, out: &mut String, sx: &AxisScale) {
        let Area { x1, y0, y1, .. } = SHEET.area();
        let Some((name, steps)) = self.steps else { return };
        let Some(sr) = AxisScale::new(steps.iter().map(|p| p.1).chain([0.0]), false, y0, y1, 0.0) else { return };
        // Writing to a String cannot fail.
        let mut path = String::new();
        for (k, (x, y)) in steps.iter().enumerate() {
            let _ = if k == 0 {
                write!(path, "M{:.1} {:.1}", sx.at(*x), sr.at(*y))
            } else {
                write!(path, "H{:.1}V{:.1}", sx.at(*x), sr.at(*y))
            };
        }
        let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{SECOND}\" stroke-dasharray=\"4 3\"/>");
        for t in sr.ticks() {
            let (x, y) = (x1 + TICK_BESIDE, sr.at(t) + TO_BASE_LINE);
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{SECOND}\">{}</text>", tick(t));
        }
        let _ = writeln!(
            out,
            "<text transform=\"translate({:.1} {:.1}) rotate(90)\" text-anchor=\"middle\" fill=\"{SECOND}\">{}</text>",
            SHEET.width - NAME_FROM_RIGHT,
            0.5 * (y0 + y1),
            escaped(name)
        );
    }

    fn draw_line(&self, out: &mut String, sx: &AxisScale, sy: &AxisScale) {
        let usable = self.points.iter().filter(|p| self.usable(p));
        let places: Vec<String> = usable.map(|p| format!("{:.1},{:.1}", sx.at(p.0), sy.at(p.1))).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{FIRST}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"/>",
            places.join(" ")
        );
    }

    /// Marks on the line, or bars down to the axis, with their bars of error.
    fn draw_points(&self, out: &mut String, sx: &AxisScale, sy: &AxisScale) {
        let Area { x0, x1, y0, .. } = SHEET.area();
        let few = self.points.len() <= MOST_MARKS;
        for (k, p) in self.points.iter().enumerate().filter(|(_, p)| self.usable(p)) {
            let (x, y) = (sx.at(p.0), sy.at(p.1));
            if !self.line {
                let wide = (BAR_SHARE * (x1 - x0) / self.points.len() as f64).min(WIDEST_BAR);
                let _ = writeln!(out, "<path d=\"M{x:.1} {y0}V{y:.1}\" stroke=\"{FIRST}\" stroke-width=\"{wide:.1}\"/>");
            }
            if p.2 > 0.0 {
                let low = if self.y.log && p.1 <= p.2 { y0 } else { sy.at(p.1 - p.2) };
                let _ = writeln!(out, "<path d=\"M{x:.1} {low:.1}V{:.1}\" stroke=\"{INK}\"/>", sy.at(p.1 + p.2));
            }
            if self.line && few {
                let (radius, fill) = if self.marked == Some(k) { (5.5, MARKED) } else { (3.0, FIRST) };
                let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\"/>");
            }
        }
    }

    /// Intervals. An end that lies beyond the picture (infinite) is drawn to its edge.
    fn draw_spans(&self, out: &mut String, sx: &AxisScale, sy: &AxisScale) {
        let clipped = |y: f64| if y.is_finite() && (!self.y.log || y > 0.0) { sy.at(y) } else { SHEET.area().y1 };
        for &(x, low, high) in self.spans {
            let (x, low, high) = (sx.at(x), clipped(low), clipped(high));
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {low:.1}V{high:.1}M{0:.1} {low:.1}h{1}M{0:.1} {high:.1}h{1}\" stroke=\"{INK}\" fill=\"none\"/>",
                x - HALF_STROKE,
                2.0 * HALF_STROKE
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64, f64)], log: bool) -> Option<String> {
        let axis = |name| Axis { name, log };
        Chart {
            title: "a <b>",
            x: axis("x"),
            y: axis("y"),
            points,
            spans: &[(1.0, 2.0, f64::INFINITY)],
            line: true,
            steps: Some(("rank", &[(1.0, 1.0), (10.0, 4.0)])),
            marked: Some(0),
        }
        .svg()
    }

    #[test]
    fn charts_have_finite_numbers_only() {
        for log in [false, true] {
            let svg = chart(&[(1.0, 3.0, 0.5), (10.0, 0.02, 0.0), (100.0, f64::NAN, 0.0), (1000.0, 0.0, 0.0)], log).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("a &lt;b&gt;"), "{svg}");
            assert!(svg.contains("rank as steps") && svg.contains("; chosen: x 1; upright strokes are intervals."), "{svg}");
            assert!(svg.contains(">chosen</text>") && svg.contains("<desc>y"), "{svg}");
        }
        assert!(chart(&[], true).is_none());
        assert!(chart(&[(1.0, 1.0, 0.0)], true).is_some());
    }

    #[test]
    fn ticks_are_round_and_few() {
        for (low, high, log) in
            [(0.0, 1.0, false), (-3.2, 17.0, false), (1e-9, 1e-6, true), (2.0, 7.0, true), (1.7, 2.6, true), (1e-12, 1.0, true)]
        {
            let ticks = AxisScale::new([low, high].into_iter(), log, 0.0, 1.0, 0.0).unwrap().ticks();
            assert!((2..=9).contains(&ticks.len()), "{low} {high}: {ticks:?}");
        }
    }
}
