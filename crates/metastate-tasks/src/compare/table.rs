//! What a comparison leaves: table, record, chart, maps and page, in a folder that appears whole or not at all.

use metastate_report::folder::Draft;
use metastate_report::page::comparison;
use metastate_report::{bar_chart, csv_field, number};

use super::Compared;
use crate::args::CompareArgs;
use crate::error::{CliError, Result};

impl Compared {
    fn csv(&self) -> String {
        let mut out = String::from(
            "method,ours,log_likelihood,log_likelihood_se,squared_error,squared_error_se,smoothing,coherence,coherence_same,coherence_chance,zones,ari,nmi,seconds,note\n",
        );
        let field = |x: Option<f64>| x.map_or_else(String::new, number);
        for r in &self.methods {
            let numbers = [
                r.log_likelihood,
                r.log_likelihood_se,
                r.squared_error,
                r.squared_error_se,
                r.smoothing,
                r.coherence,
                r.coherence_same,
                r.coherence_chance,
            ];
            let numbers: Vec<String> = numbers.into_iter().map(field).collect();
            out += &format!(
                "{},{},{},{},{},{},{},{}\n",
                csv_field(&r.method),
                r.ours,
                numbers.join(","),
                r.zones.map_or_else(String::new, |z| z.to_string()),
                field(r.ari),
                field(r.nmi),
                number(r.seconds),
                csv_field(r.note.as_deref().unwrap_or(""))
            );
        }
        out
    }
}

/// Writes it.
pub fn write(compared: &Compared, maps: &[(String, String)], compare: &CompareArgs) -> Result<()> {
    let draft = Draft::begin(&compare.out)?;
    let csv = compared.csv();
    draft.file("compare.csv", csv.as_bytes())?;
    let json = serde_json::to_string_pretty(compared).map_err(|e| CliError::failed("E-CLI-WRITE", e.to_string()))?;
    draft.file("compare.json", format!("{json}\n").as_bytes())?;
    let record = serde_json::from_str(&json).unwrap_or_default();
    let mut bars: Vec<(String, f64, bool)> =
        compared.methods.iter().filter_map(|r| Some((r.method.clone(), r.log_likelihood?, r.ours))).collect();
    bars.sort_by(|a, b| b.1.total_cmp(&a.1));
    let chart = bar_chart("Held-out log-likelihood a transition", &bars);
    let mut pictures = vec![("compare".to_owned(), chart)];
    pictures.extend(maps.iter().map(|(name, svg)| (format!("map-{}", file_name(name)), svg.clone())));
    // By name, as a folder lists them: `report` makes the same page.
    pictures.sort();
    for (name, svg) in &pictures {
        draft.file(&format!("{name}.svg"), svg.as_bytes())?;
    }
    draft.file("report.html", comparison(&record, &csv, &pictures).as_bytes())?;
    Ok(draft.finish(compare.force)?)
}

/// A name that every file system takes: names of results and columns come from elsewhere.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
}
