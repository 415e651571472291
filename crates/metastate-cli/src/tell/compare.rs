//! The comparison for people.

use comfy_table::{ContentArrangement, Table, presets};
use metastate_tasks::compare::Compared;

/// The table and the verdicts.
pub fn describe(compared: &Compared) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["method", "held-out LL", "se", "sq. error", "smoothing", "coherence", "ARI", "NMI", "zones", "seconds", ""]);
    let shown = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    for r in &compared.methods {
        table.add_row([
            format!("{}{}", if r.ours { "* " } else { "  " }, r.method),
            shown(r.log_likelihood),
            shown(r.log_likelihood_se),
            shown(r.squared_error),
            r.smoothing.map_or_else(
                || "-".to_owned(),
                |x| if x < 0.01 { format!("{x:.0e}") } else { format!("{:.3}", x).trim_end_matches('0').trim_end_matches('.').to_owned() },
            ),
            shown(r.coherence),
            shown(r.ari),
            shown(r.nmi),
            r.zones.map_or_else(|| "-".to_owned(), |z| z.to_string()),
            format!("{:.2}", r.seconds),
            r.note.clone().unwrap_or_default(),
        ]);
    }
    let lambda = compared.lambda.zip(compared.lambda_max).map_or_else(String::new, |(l, most)| {
        let prior = compared.prior.map_or_else(String::new, |x| format!(", prior {x} ({})", compared.prior_is));
        format!("lambda {l:.4e} ({:.3e} of lambda_max){prior}, ", l / most)
    });
    let mut text = format!(
        "{} states, {} transitions; {} meta-states ({}), {} folds ({}); * is this package\nsmoothing {}{}\n{lambda}hard meta-states by {}\n{table}\n",
        compared.states,
        compared.transitions,
        compared.rank,
        compared.rank_is,
        compared.folds,
        compared.folds_are,
        compared.smoothing.map_or_else(String::new, |x| format!("{x}, ")),
        compared.smoothing_is,
        compared.hard
    );
    compared.verdicts.iter().for_each(|v| text += &format!("{v}\n"));
    compared.ledger.iter().for_each(|e| text += &format!("left out, {}: {} {}\n", e.reason, e.count, e.unit));
    compared.hints.iter().for_each(|hint| text += &format!("hint: {hint}\n"));
    text + &format!("written to {}", compared.out)
}
