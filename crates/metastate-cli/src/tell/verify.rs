//! The table of checks for people.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use metastate_tasks::verify::Outcome;

/// The table of checks, and how many agree.
pub fn table(outcome: &Outcome) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["", "reported", "recomputed", "agrees"]);
    for line in &outcome.checks {
        table.add_row([line.name.as_str(), &line.reported, &line.recomputed, line.verdict.word()]);
    }
    let failed = outcome.checks.iter().filter(|c| !c.agrees).count();
    let verdict = match failed {
        0 => format!("all {} checks of {} agree", outcome.checked, outcome.result),
        n => format!("{n} of {} checks of {} DO NOT agree", outcome.checked, outcome.result),
    };
    format!("{table}\n{verdict}; {} further lines are compared by hash only, {} are not checked", outcome.hash_only, outcome.not_checked)
}
