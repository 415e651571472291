//! Still pictures of kinetics for papers: timescales against the lag, the Chapman-Kolmogorov check, the reactive flux between two meta-states.

use std::fmt::Write;

use metastate::Mat;
use metastate::kinetics::{Flux, stationary_of_chain};

use crate::chart::AxisScale;
use crate::colours::colour;
use crate::page::{Ends, KineticsStory};
use crate::sheet::{Area, INK, Sheet};

const SHEET: Sheet = Sheet { width: 640.0, height: 400.0, left: 82.0, right: 24.0, top: 36.0, bottom: 52.0, name_from_left: 18.0 };
const ROOM: f64 = 0.04;
/// Net flux below this share of the largest is not drawn; the thickest arrow, and circles from the smallest to the largest share.
const LEAST_FLUX: f64 = 0.01;
const THICKEST: f64 = 7.0;
const CIRCLE: (f64, f64) = (9.0, 24.0);

/// Timescales against the lag, with bands; grey where a process is shorter than its lag.
pub(crate) fn implied(story: &KineticsStory) -> Option<String> {
    let processes = story.lags.iter().map(|l| l.timescales.len()).max().filter(|n| *n > 0 && story.lags.len() > 1)?;
    let line = |k: usize| -> Vec<(f64, Ends)> {
        let of = |t: Option<&Ends>| t.copied().filter(|t| t.0.is_some_and(|t| t > 0.0));
        story.lags.iter().filter_map(|l| Some((l.lag, of(l.timescales.get(k))?))).collect()
    };
    let lines: Vec<Vec<(f64, Ends)>> = (0..processes).map(line).collect();
    let Area { x0, x1, y0, y1 } = SHEET.area();
    let sx = AxisScale::new(story.lags.iter().map(|l| l.lag), true, x0, x1, ROOM)?;
    let values = lines.iter().flatten().flat_map(|(lag, t)| [Some(*lag), t.0, t.1, t.2]).flatten();
    let sy = AxisScale::new(values, true, y0, y1, ROOM)?;
    let mut out = SHEET.begin("Implied timescales", "Timescales in frames against the lag in frames, both logarithmic; bands are 90 % intervals. In the grey area a timescale is shorter than its lag.");
    let inside = |y: f64| y.clamp(y1, y0);
    let first = story.lags.first().map_or(1.0, |l| l.lag);
    let last = story.lags.last().map_or(1.0, |l| l.lag);
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<path d=\"M{0:.1} {y0}L{0:.1} {1:.1}L{2:.1} {3:.1}L{2:.1} {y0}z\" fill=\"#999\" fill-opacity=\"0.2\"/>",
        sx.at(first),
        inside(sy.at(first)),
        sx.at(last),
        inside(sy.at(last))
    );
    SHEET.axes(&mut out, (&sx, &sy), "lag in frames", "timescale in frames");
    for (k, line) in lines.iter().enumerate() {
        let high = line.iter().map(|(lag, t)| (sx.at(*lag), t.2.map_or(y1, |t| inside(sy.at(t)))));
        let low = line.iter().rev().map(|(lag, t)| (sx.at(*lag), t.1.filter(|t| *t > 0.0).map_or(y0, |t| inside(sy.at(t)))));
        let _ = writeln!(out, "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.18\"/>", places(high.chain(low)), colour(k));
        let middle = line.iter().filter_map(|(lag, t)| Some((sx.at(*lag), sy.at(t.0?))));
        draw_line(&mut out, middle, k, true);
    }
    Some(out + "</svg>\n")
}

/// Staying in each meta-state: lines as predicted, points as estimated at each lag.
pub(crate) fn check(story: &KineticsStory) -> Option<String> {
    let s = story.chain.len();
    let lags: Vec<_> = story.lags.iter().filter(|l| l.stays.len() == s && l.predicted.len() == s).collect();
    let Area { x0, x1, y0, y1 } = SHEET.area();
    let sx = AxisScale::new(lags.iter().map(|l| l.lag), true, x0, x1, ROOM).filter(|_| lags.len() > 1)?;
    let sy = AxisScale::new([0.0, 1.0].into_iter(), false, y0, y1, 0.0)?;
    let mut out = SHEET.begin("Chapman-Kolmogorov check", "The probability of being in a meta-state again against the time in frames (logarithmic): lines as the chain predicts it, points as it is estimated at that lag, with 90 % intervals.");
    SHEET.axes(&mut out, (&sx, &sy), "time in frames", "probability of being there again");
    for j in 0..s {
        draw_line(&mut out, lags.iter().map(|l| (sx.at(l.lag), sy.at(l.predicted[j].clamp(0.0, 1.0)))), j, false);
        let aside = if s > 1 { 8.0 * (j as f64 / (s - 1) as f64 - 0.5) } else { 0.0 };
        for l in &lags {
            let (x, (Some(p), low, high)) = (sx.at(l.lag) + aside, l.stays[j]) else { continue };
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{}\"/>", sy.at(p), colour(j));
            if let (Some(low), Some(high)) = (low, high) {
                let _ = writeln!(out, "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"{}\"/>", sy.at(low), sy.at(high), colour(j));
            }
        }
    }
    Some(out + "</svg>\n")
}

/// The net flux of the pair that the page begins with: meta-states at their committor.
pub(crate) fn flux(story: &KineticsStory) -> Option<String> {
    let (from, to) = story.pair?;
    let s = story.chain.len();
    let chain = Mat::from_fn(s, s, |i, j| story.chain[i].get(j).copied().unwrap_or(0.0));
    let flux = Flux::of_chain(&chain, &[from], &[to]).ok().filter(|f| f.total > 0.0)?;
    let law = stationary_of_chain(&chain, &vec![1.0 / s as f64; s]).2;
    let Area { x0, x1, y0, y1 } = SHEET.area();
    let sx = AxisScale::new([0.0, 1.0].into_iter(), false, x0, x1, ROOM)?;
    let mut order: Vec<usize> = (0..s).collect();
    order.sort_by(|&a, &b| flux.forward[a].total_cmp(&flux.forward[b]).then(a.cmp(&b)));
    let mut place = vec![(0.0, 0.0); s];
    for (k, &j) in order.iter().enumerate() {
        let lane = if j == from || j == to { 0.5 } else { lane(k) };
        place[j] = (sx.at(flux.forward[j]), y1 + 24.0 + lane * (y0 - y1 - 48.0));
    }
    let title = format!("Reactive flux from meta-state {} to {}", from + 1, to + 1);
    let words = format!(
        "One passage in {:.4} frames. The position of a meta-state is its committor, arrows are the net flux, circles the stationary shares.",
        story.lag / flux.total
    );
    let mut out = SHEET.begin(&title, &words);
    for t in [0.0, 0.5, 1.0] {
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{t}</text>", sx.at(t), y0 + 16.0);
    }
    let _ = writeln!(
        out,
        "<path d=\"M{x0} {y0}H{x1}\" stroke=\"{INK}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">committor; one passage in {:.4} frames</text>",
        0.5 * (x0 + x1),
        y0 + 36.0,
        story.lag / flux.total
    );
    let radius = |j: usize| CIRCLE.0 + (CIRCLE.1 - CIRCLE.0) * law[j].max(0.0).sqrt();
    let most = flux.net.as_slice().iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (i, j) in (0..s).flat_map(|i| (0..s).map(move |j| (i, j))).filter(|&(i, j)| flux.net[(i, j)] > LEAST_FLUX * most) {
        arrow(&mut out, (place[i], radius(i)), (place[j], radius(j)), 0.8 + THICKEST * flux.net[(i, j)] / most, &colour(i));
    }
    for j in 0..s {
        let (x, y) = place[j];
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#fff\" font-weight=\"bold\">{}</text>",
            radius(j),
            colour(j),
            y + 4.0,
            j + 1
        );
    }
    Some(out + "</svg>\n")
}

/// Heights by golden steps, the middle left to the two ends.
fn lane(k: usize) -> f64 {
    let t = (0.18 + 0.618 * k as f64).fract();
    if t < 0.5 { 0.7 * t } else { 0.3 + 0.7 * t }
}

/// From circle to circle.
fn arrow(out: &mut String, ((ax, ay), ra): ((f64, f64), f64), ((bx, by), rb): ((f64, f64), f64), wide: f64, colour: &str) {
    let length = (bx - ax).hypot(by - ay).max(1e-9);
    let (dx, dy) = ((bx - ax) / length, (by - ay) / length);
    let head = 5.0 + wide;
    let (zx, zy) = (bx - dx * (rb + 1.0), by - dy * (rb + 1.0));
    let (nx, ny) = (zx - dx * head, zy - dy * head);
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {:.1}L{nx:.1} {ny:.1}\" stroke=\"{colour}\" stroke-opacity=\"0.75\" stroke-width=\"{wide:.1}\"/><path d=\"M{zx:.1} {zy:.1}L{:.1} {:.1}L{:.1} {:.1}z\" fill=\"{colour}\"/>",
        ax + dx * ra,
        ay + dy * ra,
        nx - dy * 0.55 * head,
        ny + dx * 0.55 * head,
        nx + dy * 0.55 * head,
        ny - dx * 0.55 * head
    );
}

fn places(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

fn draw_line(out: &mut String, points: impl Iterator<Item = (f64, f64)> + Clone, k: usize, marks: bool) {
    let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>", places(points.clone()), colour(k));
    for (x, y) in points.filter(|_| marks) {
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{}\"/>", colour(k));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::LagStory;

    #[test]
    fn pictures_have_finite_numbers_only_whatever_is_infinite() {
        let look = |lag: f64| LagStory {
            lag,
            timescales: vec![(Some(40.0 * lag), Some(3.0), None), (Some(2.0), None, None), (None, None, None)],
            stays: vec![(Some(0.9), Some(0.8), Some(0.95)), (Some(1.0), None, None)],
            predicted: vec![0.9, 1.0],
        };
        let story = KineticsStory {
            chain: vec![vec![0.9, 0.1], vec![0.2, 0.8]],
            modes: Vec::new(),
            lag: 5.0,
            lags: vec![look(5.0), look(50.0)],
            passage: Vec::new(),
            pair: Some((0, 1)),
            fates: Vec::new(),
        };
        for svg in [implied(&story), check(&story), flux(&story)] {
            let svg = svg.unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.ends_with("</svg>\n"), "{svg}");
        }
        // One passage from 1 to 2 takes a tenth of the first share, 2/3, a step: 5 frames / (2/3 * 0.1).
        assert!(flux(&story).unwrap().contains("one passage in 75.0000 frames"), "{}", flux(&story).unwrap());
        let alone = KineticsStory { lags: vec![look(5.0)], pair: None, ..story };
        assert!(implied(&alone).is_none() && check(&alone).is_none() && flux(&alone).is_none());
    }
}
