//! What is different between two results, for people.

use comfy_table::{ContentArrangement, Table, presets};
use metastate_tasks::diff::{Diff, ZonePair};

/// Rows of moved states and of flows that are shown.
const SHOWN: usize = 10;

/// The table of zones, the states and flows that changed most.
pub fn describe(diff: &Diff) -> String {
    let share = |x: f64| format!("{:.2} %", 100.0 * x);
    let index = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    let s = &diff.states;
    let mut text = format!(
        "{} common states; only in the first {} ({} of its departures), only in the second {} ({})\n\
         zones agree by {} (adjusted Rand index), {} (mutual information); {} states moved, {} of the weight stayed\n",
        s.common,
        s.only_first,
        share(s.only_first_mass),
        s.only_second,
        share(s.only_second_mass),
        index(diff.adjusted_rand),
        index(diff.normalised_mutual_information),
        diff.moved,
        share(diff.stayed)
    );
    if let Some(apart) = diff.flows_apart {
        text += &format!("flows between zones: {} of all transitions lead elsewhere\n", share(apart));
    }
    text += &format!("{}\n", zones(&diff.zones));
    if !diff.moves.is_empty() {
        let mut moved = table(&["moved, heaviest first", "from", "to", "mass before", "mass after", "shift"]);
        for m in diff.moves.iter().take(SHOWN) {
            let name = if m.name.is_empty() { m.label.clone() } else { format!("{} ({})", m.name, m.label) };
            moved.add_row([
                name,
                m.first.to_string(),
                m.second.to_string(),
                share(m.first_mass),
                share(m.second_mass),
                format!("{:.2}", m.shift),
            ]);
        }
        text += &format!("{moved}\n");
    }
    let changed: Vec<_> = diff.flows.iter().filter(|f| f.change != 0.0).take(SHOWN).collect();
    if !changed.is_empty() {
        let mut flows = table(&["flow, most changed first", "before", "after", "change"]);
        for f in changed {
            let change = format!("{}{}", if f.change > 0.0 { "+" } else { "" }, share(f.change));
            flows.add_row([format!("{} to {}", f.from, f.to), share(f.first), share(f.second), change]);
        }
        text += &format!("{flows}\n");
    }
    diff.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
    match &diff.out {
        Some(out) => text + &format!("written to {out}; open {out}/diff.html in a browser"),
        None => text.trim_end().to_owned(),
    }
}

fn zones(pairs: &[ZonePair]) -> Table {
    let mut zones = table(&["zone", "is now", "stayed", "left", "came", "mass before", "mass after"]);
    let called = |number: Option<usize>, name: &Option<String>| {
        number.map_or_else(|| "-".to_owned(), |z| format!("{z} {}", name.as_deref().unwrap_or_default()).trim_end().to_owned())
    };
    let share = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{:.2} %", 100.0 * x));
    for z in pairs {
        zones.add_row([
            called(z.first, &z.first_name),
            called(z.second, &z.second_name),
            z.stayed.to_string(),
            z.left.to_string(),
            z.came.to_string(),
            share(z.first_mass),
            share(z.second_mass),
        ]);
    }
    zones
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    table
}
