//! Small multiples for papers: the flows between meta-states, one square for each slice.

use std::fmt::Write;

use metastate::aggregate::SliceFlows;
use metastate::solve::Factors;

use crate::result::{FitResult, SlicedV};
use crate::sheet::escaped;

/// A panel, the room between two, and how many stand beside each other.
const SIDE: f64 = 120.0;
const GAP: f64 = 14.0;
const TITLE: f64 = 18.0;
const ACROSS: usize = 6;
const TOP: f64 = 44.0;
/// Panels and elements at most: more are no picture.
const MOST_PANELS: usize = 48;
const MOST_ELEMENTS: usize = 60_000;

/// One panel a slice; none where they would be too many.
pub(crate) fn slices(result: &FitResult, sliced: &SlicedV) -> Option<String> {
    let SlicedV { slices, v } = sliced;
    let (count, s) = (slices.len(), v.cols());
    if count > MOST_PANELS || count * s * s > MOST_ELEMENTS {
        return None;
    }
    let told_apart = Factors { u: result.model.u.clone(), v: (*v).clone() };
    let found = SliceFlows::new(&told_apart, slices, result.xi).ok()?;
    let most = found.flows.iter().flat_map(|f| f.as_slice()).copied().fold(f64::MIN_POSITIVE, f64::max);
    let across = count.min(ACROSS);
    let (width, height) = (GAP + across as f64 * (SIDE + GAP), TOP + count.div_ceil(ACROSS) as f64 * (SIDE + TITLE + GAP));
    let unit = SIDE / s as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"{GAP}\" y=\"20\" font-size=\"14\">Flows between {s} meta-states, slice by slice</text>\n<text x=\"{GAP}\" y=\"36\" fill=\"#555\">row: from, column: to; the area of a square is the share of all transitions, on one scale in all panels</text>\n",
        escaped("Flows between meta-states in each slice"),
        escaped(&format!(
            "{count} panels of {s} by {s} squares, one panel a slice in their order; rows are left, columns are entered, and the area of a square is the share of all transitions."
        ))
    );
    // Writing to a String cannot fail.
    for (h, label) in slices.labels().labels().enumerate() {
        let (x0, y0) = (GAP + (h % ACROSS) as f64 * (SIDE + GAP), TOP + (h / ACROSS) as f64 * (SIDE + TITLE + GAP) + TITLE);
        let total: f64 = found.flows[h].as_slice().iter().sum();
        let _ = writeln!(
            out,
            "<text x=\"{x0:.1}\" y=\"{:.1}\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{:.1} %</text><rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"#f4f4f4\"/>",
            y0 - 5.0,
            escaped(&label.to_string()),
            x0 + SIDE,
            y0 - 5.0,
            100.0 * total
        );
        for j in 0..s {
            for (k, x) in found.flows[h].row(j).iter().enumerate() {
                let side = unit * (x / most).sqrt();
                if side > 0.05 {
                    let (x, y) = (x0 + (k as f64 + 0.5) * unit - side / 2.0, y0 + (j as f64 + 0.5) * unit - side / 2.0);
                    let _ = write!(out, "<path d=\"M{x:.1} {y:.1}h{side:.2}v{side:.2}h-{side:.2}z\" fill=\"#08306b\"/>");
                }
            }
        }
        out.push('\n');
    }
    Some(out + "</svg>\n")
}
