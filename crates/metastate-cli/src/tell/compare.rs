//! The comparison for people.

use comfy_table::{ContentArrangement, Table, presets};
use metastate_tasks::compare::Compared;

/// The table and the verdicts.
pub fn describe(compared: &Compared) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["method", "held-out LL", "se", "sq. error", "coherence", "ARI", "NMI", "zones", "seconds", ""]);
    let shown = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    for r in &compared.methods {
        table.add_row([
            format!("{}{}", if r.ours { "* " } else { "  " }, r.method),
            shown(r.log_likelihood),
            shown(r.log_likelihood_se),
            shown(r.squared_error),
            shown(r.coherence),
            shown(r.ari),
            shown(r.nmi),
            r.zones.map_or_else(|| "-".to_owned(), |z| z.to_string()),
            format!("{:.2}", r.seconds),
            r.note.clone().unwrap_or_default(),
        ]);
    }
    let mut text = format!(
        "{} states, {} transitions; {} meta-states, {} folds ({}), smoothing {}; * is this package\nlambda {:.4e} ({:.3e} of lambda_max), prior {}, hard meta-states by {}\n{table}\n",
        compared.states,
        compared.transitions,
        compared.rank,
        compared.folds,
        compared.folds_are,
        compared.smoothing,
        compared.lambda,
        compared.lambda / compared.lambda_max,
        compared.prior.map_or_else(|| "-".to_owned(), |x| format!("{x} ({})", compared.prior_is)),
        compared.hard
    );
    compared.verdicts.iter().for_each(|v| text += &format!("{v}\n"));
    compared.ledger.iter().for_each(|e| text += &format!("left out, {}: {} {}\n", e.reason, e.count, e.unit));
    compared.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
    text + &format!("written to {}", compared.out)
}
