//! What charts and figures share: the sheet they are drawn on, with its title, its grid and its two axes.

use std::fmt::Write;

use crate::chart::{AxisScale, tick};

/// A text inside SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The grid, and the lines and bars that are drawn in no colour of a series.
const GRID: &str = "#e4e4e4";
pub(crate) const INK: &str = "#333";

/// From the middle of a text of 12 pixels to its base line.
pub(crate) const TO_BASE_LINE: f64 = 4.0;
/// From an axis to the texts at its ticks: below it and beside it.
const TICK_BELOW: f64 = 16.0;
pub(crate) const TICK_BESIDE: f64 = 6.0;
/// From the lower edge of the sheet to the name of the axis there, so that its letters stay inside.
const NAME_ABOVE_EDGE: f64 = 14.0;

/// A sheet and its margins, in pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sheet {
    pub width: f64,
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    /// Where the name of the upright axis stands, from the left edge.
    pub name_from_left: f64,
}

/// What the axes span: from x0 to x1, and from y0 (below) up to y1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub x0: f64,
    pub x1: f64,
    pub y0: f64,
    pub y1: f64,
}

impl Sheet {
    pub(crate) fn area(&self) -> Area {
        Area { x0: self.left, x1: self.width - self.right, y0: self.height - self.bottom, y1: self.top }
    }

    /// The beginning of the file, what it shows in words, the white ground and the title.
    pub(crate) fn begin(&self, title: &str, words: &str) -> String {
        let Sheet { width, height, left, .. } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n\
             <title>{0}</title>\n<desc>{1}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{left}\" y=\"20\" font-size=\"14\">{0}</text>\n",
            escaped(title),
            escaped(words)
        )
    }

    /// Grid, ticks, the two axes and their names.
    pub(crate) fn axes(&self, out: &mut String, (sx, sy): (&AxisScale, &AxisScale), x_name: &str, y_name: &str) {
        let Area { x0, x1, y0, y1 } = self.area();
        // Writing to a String cannot fail.
        for t in sx.ticks() {
            let x = sx.at(t);
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {y0}V{y1}\" stroke=\"{GRID}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                y0 + TICK_BELOW,
                tick(t)
            );
        }
        for t in sy.ticks() {
            let y = sy.at(t);
            let _ = writeln!(
                out,
                "<path d=\"M{x0} {y:.1}H{x1}\" stroke=\"{GRID}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                x0 - TICK_BESIDE,
                y + TO_BASE_LINE,
                tick(t)
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{x0} {y1}V{y0}H{x1}\" stroke=\"{INK}\" fill=\"none\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text transform=\"translate({} {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            0.5 * (x0 + x1),
            self.height - NAME_ABOVE_EDGE,
            escaped(x_name),
            self.name_from_left,
            0.5 * (y0 + y1),
            escaped(y_name)
        );
    }
}
