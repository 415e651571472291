//! The folder of a comparison of two results: tables, `diff.json` and a page that stands still.

use std::fmt::Write;
use std::path::Path;

use metastate_report::folder::Draft;
use metastate_report::page::{Section, standing_page};
use metastate_report::{MapLook, csv_field, zone_map};

use super::{Diff, DiffSide};
use crate::error::{CliError, Result};

/// Places, from each side, that may be on the small map only.
const OUTSIDE: f64 = 0.025;
/// Rows of a long table that the page shows; the files have all of them.
const SHOWN: usize = 100;

/// Writes everything, whole or not at all.
pub fn write(diff: &Diff, out: &Path, force: bool) -> Result<()> {
    let draft = Draft::begin(out)?;
    let json = serde_json::to_string_pretty(diff).map_err(|e| CliError::failed("E-CLI-WRITE", e.to_string()))?;
    draft.file("diff.json", (json + "\n").as_bytes())?;
    draft.file("zones.csv", zones(diff).as_bytes())?;
    draft.file("states.csv", states(diff).as_bytes())?;
    draft.file("flows.csv", flows(diff).as_bytes())?;
    for (name, svg) in &diff.material.maps {
        draft.file(&format!("map-{name}.svg"), svg.as_bytes())?;
    }
    draft.file("diff.html", page(diff).as_bytes())?;
    Ok(draft.finish(force)?)
}

/// A result on the map.
pub fn map(side: &DiffSide, word: &str, colours: &[String]) -> Option<String> {
    let (places, ground) = side.places.as_ref()?;
    let labels = side.loaded.labels();
    let title = format!("The {word} result: {} zones", side.partition.clusters());
    let cells = ground.is_cells();
    let names: &[String] = if cells { &[] } else { &side.zone_names };
    Some(zone_map(
        &MapLook { title: &title, colours, names, within: OUTSIDE },
        &ground.shapes(&labels, places, &side.partition, &side.loaded.xi),
    ))
}

fn field<T: std::fmt::Debug>(x: Option<T>) -> String {
    x.map_or_else(String::new, |x| format!("{x:?}"))
}

fn text(x: Option<&String>) -> String {
    x.map_or_else(String::new, |x| csv_field(x))
}

fn zones(diff: &Diff) -> String {
    let mut out = String::from("first,first_name,second,second_name,stayed,left,came,first_mass,second_mass\n");
    for z in &diff.zones {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{}",
            field(z.first),
            text(z.first_name.as_ref()),
            field(z.second),
            text(z.second_name.as_ref()),
            z.stayed,
            z.left,
            z.came,
            field(z.first_mass),
            field(z.second_mass)
        );
    }
    out
}

fn states(diff: &Diff) -> String {
    let mut out = String::from("label,name,first,second,first_mass,second_mass,shift,moved\n");
    for row in &diff.material.rows {
        let moved = row.moved.map_or("", |moved| if moved { "yes" } else { "no" });
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{moved}",
            csv_field(&row.label),
            csv_field(&row.name),
            field(row.zones[0]),
            field(row.zones[1]),
            field(row.masses[0]),
            field(row.masses[1]),
            field(row.shift)
        );
    }
    out
}

fn flows(diff: &Diff) -> String {
    let mut out = String::from("from,to,first,second,change\n");
    for f in &diff.flows {
        let _ = writeln!(out, "{},{},{:?},{:?},{:?}", f.from, f.to, f.first, f.second, f.change);
    }
    out
}

/// Everything on one page, without a script.
fn page(diff: &Diff) -> String {
    let shown = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.4}"));
    let s = &diff.states;
    let said = format!(
        "{} against {}. Of {} common states {} moved; {:.1} % of their weight stayed. Agreement of the zones (adjusted Rand index) {}, mutual information {}{}. \
         Only in the first: {} states ({:.2} % of its departures); only in the second: {} ({:.2} %).",
        diff.results[0],
        diff.results[1],
        s.common,
        diff.moved,
        100.0 * diff.stayed,
        shown(diff.adjusted_rand),
        shown(diff.normalised_mutual_information),
        diff.flows_apart.map_or_else(String::new, |x| format!("; {:.1} % of the flows between zones are different", 100.0 * x)),
        s.only_first,
        100.0 * s.only_first_mass,
        s.only_second,
        100.0 * s.only_second_mass
    );
    let first_rows = |csv: String| csv.lines().take(SHOWN + 1).map(|l| format!("{l}\n")).collect::<String>();
    let mut moved = String::from("label,name,zone before,zone after,mass before,mass after,shift\n");
    for m in diff.moves.iter().take(SHOWN) {
        let _ = writeln!(
            moved,
            "{},{},{},{},{:?},{:?},{:?}",
            csv_field(&m.label),
            csv_field(&m.name),
            m.first,
            m.second,
            m.first_mass,
            m.second_mass,
            m.shift
        );
    }
    let many = |all: usize, what: &str, file: &str| match all > SHOWN {
        true => format!("The first {SHOWN} of {all} {what}; {file} has all of them."),
        false => format!("All {all} {what}; the same table is in {file}."),
    };
    let sections = [
        Section {
            title: "Zones, matched",
            note: "Partners are the zones that share the most weight together, each zone in one pair at most. Stayed, left and came count common states; mass is the share of all departures.",
            csv: &zones(diff),
        },
        Section {
            title: "States that moved",
            note: &format!(
                "{} Shift is the part of a membership that lies in other meta-states than before.",
                many(diff.moves.len(), "states that moved, the heaviest first", "states.csv")
            ),
            csv: &moved,
        },
        Section {
            title: "Flows between zones",
            note: &format!(
                "Shares of all transitions of each result, zones numbered as in the first. {}",
                many(diff.flows.len(), "flows, those that changed most first", "flows.csv")
            ),
            csv: &first_rows(flows(diff)),
        },
    ];
    standing_page("Two results, compared", &said, &diff.material.maps, &sections, &diff.hints)
}
