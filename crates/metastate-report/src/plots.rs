//! `plots/*.svg`: the figures of the page, still and clean, for papers.

use std::fmt::Write;

use metastate::aggregate::Partition;
use metastate::aggregate::latent::LatentChain;

use crate::chart::{Axis, Chart};
use crate::colours;
use crate::kinetic_plots;
use crate::map::{MapLook, zone_map};
use crate::multiples;
use crate::page::{Extras, Heat};
use crate::result::FitResult;
use crate::sheet::escaped;

/// Corners at each side of a map that may lie outside of it.
pub(crate) const OUTSIDE: f64 = 0.025;

/// Bins a side of a still picture: each is an element of its own in the file.
const MOST_CELLS: usize = 80;

/// The least gap that is drawn: smaller ones are rounding.
const LEAST_GAP: f64 = 1e-15;
/// The pictures of the matrices: side of each, where they begin, and the decades from white to blue.
const MATRIX_SIDE: f64 = 300.0;
const MATRIX_TOP: f64 = 32.0;
const MATRIX_LEFT: [f64; 2] = [10.0, 330.0];
const DECADES: f64 = 5.0;

/// File names and pictures.
pub(crate) fn all(result: &FitResult, lag: f64, extras: &Extras) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    let mut add = |name: &str, svg: Option<String>| plots.extend(svg.map(|svg| (format!("{name}.svg"), svg)));
    add("ranks", ranks(extras));
    add("path", path(extras));
    add("convergence", convergence(extras));
    add("timescales", timescales(result, lag, extras));
    if let Some(story) = extras.kinetics.as_ref().filter(|k| k.chain.len() == result.model.rank()) {
        add("implied-timescales", kinetic_plots::implied(story));
        add("chapman-kolmogorov", kinetic_plots::check(story));
        add("flux", kinetic_plots::flux(story));
    }
    add("slices", result.slices.as_ref().and_then(|sliced| multiples::slices(result, sliced)));
    add("matrices", extras.heat.as_ref().map(matrices));
    if let Some((places, ground)) = result.coordinates.zip(extras.ground(result.coordinates)) {
        let alike = result.zones_are_metastates();
        let colours: Vec<String> = (0..result.partition.clusters()).map(|z| colours::of_zone(z, alike, result.model.rank())).collect();
        let names = if result.zones_have_names { result.zone_names } else { &[] };
        let title = format!("{} zones", result.partition.clusters());
        let look = MapLook { title: &title, colours: &colours, names, within: OUTSIDE };
        add("map", Some(zone_map(&look, &ground.shapes(result.labels, places, result.partition, result.xi))));
        if let Some(rival) = extras.rival.as_ref().filter(|r| r.zones.len() == places.len()) {
            let zones: Vec<u32> = rival.zones.iter().map(|z| u32::from(*z)).collect();
            let count = zones.iter().max().map_or(0, |m| *m as usize + 1);
            let theirs = Partition::numbered(zones, result.xi, count);
            let colours: Vec<String> = (0..count).map(|z| colours::of_zone(z, alike, result.model.rank())).collect();
            let look = MapLook { title: &rival.name, colours: &colours, names: &[], within: OUTSIDE };
            add("map-rival", Some(zone_map(&look, &ground.shapes(result.labels, places, &theirs, result.xi))));
        }
    }
    plots
}

/// Numbers of meta-states with what was measured of each on held-out transitions. A bar is one standard error of the difference to the best number: that is what numbers are compared by.
fn ranks(extras: &Extras) -> Option<String> {
    let story = extras.ranks.as_ref().filter(|r| r.points.len() > 1)?;
    let points: Vec<(f64, f64, f64)> = story.points.iter().map(|p| (p.rank as f64, p.score, p.error)).collect();
    let (x, y) = (Axis { name: "meta-states", log: false }, Axis { name: "held-out log-likelihood a transition", log: false });
    let title = "How many meta-states (bars: standard error of the difference to the best)";
    Chart { title, x, y, points: &points, spans: &[], line: true, steps: None, marked: Some(story.chosen) }.svg()
}

fn path(extras: &Extras) -> Option<String> {
    let story = extras.path.as_ref().filter(|p| p.points.len() > 1)?;
    let scored = story.points.iter().any(|p| p.score.is_some());
    let points: Vec<(f64, f64, f64)> = story
        .points
        .iter()
        .map(|p| if scored { (p.lambda, p.score.unwrap_or(f64::NAN), p.se.unwrap_or(0.0)) } else { (p.lambda, p.objective, 0.0) })
        .collect();
    let ranks: Vec<(f64, f64)> = story.points.iter().map(|p| (p.lambda, p.rank as f64)).collect();
    let y = Axis { name: if scored { "held-out log-likelihood a transition" } else { "objective" }, log: false };
    let x = Axis { name: "lambda", log: true };
    Chart { title: "Lambda path", x, y, points: &points, spans: &[], line: true, steps: Some(("rank", &ranks)), marked: Some(story.chosen) }
        .svg()
}

fn convergence(extras: &Extras) -> Option<String> {
    let seen = || extras.trace.iter().filter_map(|t| t.objective.map(|f| (t, f)));
    let points: Vec<(f64, f64, f64)> = seen().map(|(t, f)| (t.t, ((f - t.bound) / f).max(LEAST_GAP), 0.0)).collect();
    let ranks: Vec<(f64, f64)> = seen().map(|(t, _)| (t.t, t.rank as f64)).collect();
    let (x, y) = (Axis { name: "seconds", log: false }, Axis { name: "estimated gap while solving", log: true });
    Chart { title: "Convergence", x, y, points: &points, spans: &[], line: true, steps: Some(("rank", &ranks)), marked: None }.svg()
}

fn timescales(result: &FitResult, lag: f64, extras: &Extras) -> Option<String> {
    if result.destinations.is_some() {
        return None;
    }
    let own = || {
        let chain = LatentChain::new(&result.model.u, &result.model.v).ok()?;
        Some(chain.spectrum().iter().skip(1).map(|m| m.timescale.is_finite().then_some(lag * m.timescale)).collect())
    };
    let times: Vec<Option<f64>> = match &extras.kinetics {
        Some(k) => k.modes.iter().map(|m| m.timescale).collect(),
        None => own()?,
    };
    let points: Vec<(f64, f64, f64)> = times.iter().enumerate().filter_map(|(k, t)| Some(((k + 2) as f64, (*t)?, 0.0))).collect();
    let (x, y) = (Axis { name: "eigenvalue", log: false }, Axis { name: "timescale in frames", log: true });
    let spans: Vec<(f64, f64, f64)> = extras
        .timescale_intervals
        .iter()
        .enumerate()
        .filter_map(|(k, (low, high))| Some(((k + 2) as f64, (*low)?, high.unwrap_or(f64::INFINITY))))
        .collect();
    let title = if spans.is_empty() { "Implied timescales" } else { "Implied timescales, with 90 % intervals" };
    Chart { title, x, y, points: &points, spans: &spans, line: false, steps: None, marked: None }.svg()
}

/// Counted and model side by side, five decades from white to blue.
fn matrices(heat: &Heat) -> String {
    let coarse = heat.coarser(MOST_CELLS);
    let heat = &coarse;
    let (n, side) = (heat.bins, MATRIX_SIDE);
    let unit = side / n.max(1) as f64;
    let most = f64::from(heat.counted.iter().copied().fold(f32::MIN_POSITIVE, f32::max));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 370\" width=\"640\" height=\"370\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escaped("Shares of all moves, counted and by the model"),
        escaped(&format!(
            "Two square heat maps of {n} by {n} groups of states in the order of their meta-states, counted at the left and by the model at the right. Rows are left, columns are entered; \
             the darker, the more moves, on a logarithmic scale of {DECADES} decades."
        ))
    );
    for (x0, name, values) in [(MATRIX_LEFT[0], "counted", &heat.counted), (MATRIX_LEFT[1], "model", &heat.model)] {
        let _ = writeln!(out, "<text x=\"{x0}\" y=\"22\">{name}</text>");
        for (at, &value) in values.iter().enumerate() {
            let depth = if value > 0.0 { (1.0 + (f64::from(value) / most).log10() / DECADES).clamp(0.0, 1.0) } else { 0.0 };
            if depth > 0.0 {
                let (x, y) = (x0 + (at % n) as f64 * unit, MATRIX_TOP + (at / n) as f64 * unit);
                let _ = write!(
                    out,
                    "<path d=\"M{x:.1} {y:.1}h{unit:.2}v{unit:.2}h-{unit:.2}z\" fill=\"#08306b\" fill-opacity=\"{depth:.2}\"/>"
                );
            }
        }
        let _ = writeln!(out, "<rect x=\"{x0}\" y=\"{MATRIX_TOP}\" width=\"{side}\" height=\"{side}\" fill=\"none\" stroke=\"#333\"/>");
    }
    matrix_legend(&mut out);
    out + "</svg>\n"
}

/// What rows, columns and colours mean.
fn matrix_legend(out: &mut String) {
    let y = MATRIX_TOP + MATRIX_SIDE + 14.0;
    let _ = writeln!(out, "<text x=\"{}\" y=\"{:.0}\">rows: from, columns: to, by meta-state</text>", MATRIX_LEFT[0], y + 12.0);
    let _ = writeln!(out, "<text x=\"{}\" y=\"{:.0}\">share of the largest</text>", MATRIX_LEFT[1], y + 12.0);
    for k in 0..=DECADES as i32 {
        let (x, depth) = (MATRIX_LEFT[1] + 130.0 + 28.0 * f64::from(k), 1.0 - f64::from(k) / DECADES);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"28\" height=\"10\" fill=\"#08306b\" fill-opacity=\"{depth:.2}\" stroke=\"#ccc\" stroke-width=\".5\"/><text x=\"{:.0}\" y=\"{:.0}\" font-size=\"9\" text-anchor=\"middle\">1e-{k}</text>",
            x + 14.0,
            y + 20.0
        );
    }
}
