//! The forecast for people.

use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use metastate_report::{Forecast, SliceForecast, TimescaleRow};

use super::meanings;

/// Eigenvalues shown, and the largest rank whose passage times are shown as a square.
const MODES: usize = 10;
const SQUARE: usize = 12;
/// Up to so many meta-states the square has room for intervals.
const WITH_ENDS: usize = 6;

/// Tables, one after another.
pub fn describe(f: &Forecast, out: Option<&Path>) -> String {
    let mut parts = vec![format!("{} meta-states behind {} states ({}), one step is {} frame(s)", f.rank, f.states, f.model, f.lag)];
    parts.extend(f.structure.iter().map(|sentence| format!("note: {sentence}")));
    parts.push(metastates(f));
    parts.push(identity(f));
    parts.push(modes(f));
    if f.rank <= SQUARE {
        parts.push(passage(f));
    }
    if f.rank <= SQUARE && !f.rates.is_empty() {
        parts.push(rates(f));
    }
    if !f.fates.is_empty() {
        parts.push(fates(f));
    }
    parts.extend(f.slice.as_ref().filter(|_| f.rank <= SQUARE).map(slice));
    parts.push(predictions(f));
    if !f.hitting.is_empty() {
        parts.push(hitting(f));
    }
    if !f.check.is_empty() {
        parts.push(lags(f));
        parts.push(check(f));
    }
    parts.push(meanings::of(f));
    parts.extend(f.hints.iter().map(|hint| format!("hint: {hint}")));
    parts.extend(out.map(|place| format!("written to {}", place.display())));
    parts.join("\n\n")
}

fn table(title: &str, header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    format!("{title}\n{table}")
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

/// A time or a number of steps, short.
fn short(x: f64) -> String {
    match x {
        x if x.is_nan() => "-".to_owned(),
        x if x.is_infinite() => "never".to_owned(),
        x if x.abs() >= 1e6 => format!("{x:.3e}"),
        x if x.abs() >= 100.0 => format!("{x:.0}"),
        x => format!("{x:.3}"),
    }
}

/// Where the meta-states lead in one slice.
fn slice(s: &SliceForecast) -> String {
    let count = s.chain.len();
    let header = std::iter::once("from".to_owned()).chain((1..=count).map(|k| format!("to {k}"))).chain(["share".to_owned()]).collect();
    let all: f64 = s.share;
    let row = |j: usize| {
        let leaves: f64 = s.flows[j].iter().sum();
        let laws = s.chain[j].iter().map(|p| format!("{p:.3}"));
        std::iter::once((j + 1).to_string()).chain(laws).chain([format!("{:.3}", if all > 0.0 { leaves / all } else { 0.0 })]).collect()
    };
    let title = format!(
        "slice {}, {:.2} % of all transitions: where the meta-states lead, and their share of its departures",
        s.slice,
        100.0 * s.share
    );
    table(&title, header, (0..count).map(row).collect())
}

fn metastates(f: &Forecast) -> String {
    let rows = f.metastates.iter().map(|m| {
        vec![
            m.metastate.to_string(),
            m.states.to_string(),
            format!("{:.4}", m.stationary),
            format!("{:.4}", m.stay),
            short(m.return_time),
            format!("{:.4}", m.share),
            format!("{:.4}..{:.4}", m.share_low, m.share_high),
            format!("{:.4}", m.ambiguity),
            if m.anchors.is_empty() { format!("none (purest {:.2})", m.purest) } else { m.anchors[..m.anchors.len().min(3)].join(" | ") },
        ]
    });
    table(
        "Meta-states",
        words(&["", "states", "stationary", "stay", "return", "share", "possible share", "ambiguity", "anchor states"]),
        rows.collect(),
    )
}

fn identity(f: &Forecast) -> String {
    match (f.joint_rotation.as_str(), f.joint_rotation_change) {
        ("unique", _) => "All together: no other factorisation of the same X lies near this one.".to_owned(),
        (_, Some(size)) => {
            format!("All together: the meta-states can be turned without changing X; a membership may change by {size:.4} or more.")
        }
        _ => "All together: whether the meta-states can be turned without changing X was not decided.".to_owned(),
    }
}

fn modes(f: &Forecast) -> String {
    let own = f.timescales.iter().filter(|t| t.source == "model").take(MODES);
    let value = |t: &TimescaleRow| if t.im == 0.0 { format!("{:.6}", t.re) } else { format!("{:.6} {:+.6} i", t.re, t.im) };
    let interval = |t: &TimescaleRow| t.low.zip(t.high).map_or_else(String::new, |(low, high)| format!("{}..{}", short(low), short(high)));
    let rows = own.map(|t| vec![t.mode.to_string(), value(t), format!("{:.6}", t.modulus), timescale(t), interval(t)]).collect();
    let title = match f.kinetics.as_str() {
        "data" => "Eigenvalues and the times they stand for, in frames, from the data at the memberships found",
        _ => "Eigenvalues and the times they stand for, in frames, of the factors alone",
    };
    table(title, words(&["", "eigenvalue", "modulus", "timescale", "90 %"]), rows)
}

fn timescale(t: &TimescaleRow) -> String {
    if t.timescale.is_infinite() { "for ever".to_owned() } else { short(t.timescale) }
}

/// Between the states of meta-states, by their own chain, where that was computed; else of the latent chain.
fn passage(f: &Forecast) -> String {
    let by_states = f.kinetics == "data" && f.passage.iter().any(|p| p.time_states.is_finite());
    let mut header = vec!["from".to_owned()];
    header.extend((1..=f.rank).map(|k| format!("to {k}")));
    let mut rows: Vec<Vec<String>> = (1..=f.rank).map(|j| vec![j.to_string()]).collect();
    for p in &f.passage {
        let (time, ends) =
            if by_states { (p.time_states, p.time_states_low.zip(p.time_states_high)) } else { (p.time, p.time_low.zip(p.time_high)) };
        let ends = ends.filter(|_| f.rank <= WITH_ENDS && p.from != p.to);
        rows[p.from - 1].push(short(time) + &ends.map_or_else(String::new, |(low, high)| format!(" ({}..{})", short(low), short(high))));
    }
    let title = match by_states {
        true => {
            "Mean first passage times in frames between the states of meta-states, by the states' own chain (90 %; diagonal: return times)"
        }
        false => "Mean first passage times of the latent chain, in frames (diagonal: return times)",
    };
    table(title, header, rows)
}

/// The reactive flux between every two meta-states, with its strongest way.
fn rates(f: &Forecast) -> String {
    let row = |r: &metastate_report::RateRow| {
        let way = f.pathways.iter().find(|p| (p.from, p.to) == (r.from, r.to));
        let nodes = way.map(|p| p.way.iter().map(usize::to_string).collect::<Vec<_>>().join(" > ")).unwrap_or_default();
        let share = way.map(|p| format!("{:.0} %", 100.0 * p.share)).unwrap_or_default();
        vec![format!("{} > {}", r.from, r.to), format!("{:.3e}", r.flux), format!("{:.3e}", r.rate), nodes, share]
    };
    table(
        "Reactive flux, passages in a frame",
        words(&["", "flux", "rate", "strongest way", "of the flux"]),
        f.rates.iter().map(row).collect(),
    )
}

fn fates(f: &Forecast) -> String {
    let class = |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let row =
        |r: &metastate_report::FateRow| vec![r.metastate.to_string(), format!("{{{}}}", class(&r.class)), format!("{:.4}", r.probability)];
    table("Where meta-states end", words(&["meta-state", "closed class", "probability"]), f.fates.iter().map(row).collect())
}

fn predictions(f: &Forecast) -> String {
    let mut rows = Vec::new();
    for p in &f.forecasts {
        for (n, t) in p.top.iter().enumerate() {
            let steps = if n == 0 { p.steps.to_string() } else { String::new() };
            rows.push(vec![steps, t.label.clone(), t.metastate.to_string(), format!("{:.6}", t.probability)]);
        }
    }
    table(&format!("Forecast from {}", f.start), words(&["steps", "state", "meta-state", "probability"]), rows)
}

fn hitting(f: &Forecast) -> String {
    let mut order: Vec<_> = f.hitting.iter().filter(|h| !h.inside).collect();
    order.sort_by(|a, b| a.steps.total_cmp(&b.steps));
    let row = |h: &&metastate_report::HittingRow| vec![h.label.clone(), h.metastate.to_string(), short(h.steps), short(h.time)];
    let near = order.iter().take(5).map(row);
    let far = order.iter().skip(5.max(order.len().saturating_sub(5))).map(row);
    let title = "Mean steps and frames to the states asked for: the nearest and the farthest";
    table(title, words(&["from", "meta-state", "steps", "time"]), near.chain(far).collect())
}

fn lags(f: &Forecast) -> String {
    let shown = f.rank.saturating_sub(1).min(4);
    let mut header = words(&["lag", "from"]);
    header.extend((2..2 + shown).map(|n| format!("timescale {n}")));
    let mut rows = Vec::new();
    let mut add = |name: &str, lag: u64, all: Vec<&TimescaleRow>| {
        let mut row = vec![lag.to_string(), name.to_owned()];
        row.extend(all.iter().skip(1).take(shown).map(|t| timescale(t)));
        rows.push(row);
    };
    add("the model", f.lag as u64, f.timescales.iter().filter(|t| t.source == "model").collect());
    let mut lags: Vec<u64> = f.check.iter().map(|c| c.lag).collect();
    lags.dedup();
    for lag in lags {
        add("counts", lag, f.timescales.iter().filter(|t| t.source == "counted" && t.lag == lag).collect());
    }
    table("Implied timescales against lag, in frames", header, rows)
}

fn check(f: &Forecast) -> String {
    let mut lags: Vec<(u64, u64)> = f.check.iter().map(|c| (c.steps, c.lag)).collect();
    lags.dedup();
    let row = |&(steps, lag): &(u64, u64)| {
        let own = || f.check.iter().filter(move |c| c.steps == steps);
        let difference = own().map(|c| (c.predicted - c.counted).abs()).fold(0.0, f64::max);
        let stays = own().filter(|c| c.from == c.to).map(|c| (c.predicted - c.counted).abs()).fold(0.0, f64::max);
        let inside = format!("{} of {}", own().filter(|c| c.agrees).count(), own().count());
        vec![steps.to_string(), lag.to_string(), inside, format!("{difference:.4}"), format!("{stays:.4}")]
    };
    table(
        "Chapman-Kolmogorov check: predicted against counted, between meta-states (largest membership)",
        words(&["steps", "lag", "inside the 95 % interval", "largest difference", "largest in staying"]),
        lags.iter().map(row).collect(),
    )
}
