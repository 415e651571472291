//! Numbers and tables in Markdown.

use std::fmt::Write;

/// Three digits, as the paper prints them.
pub fn short(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.2e}") }
}

/// Two digits.
pub fn rough(x: f64) -> String {
    if x == 0.0 { "0".into() } else { format!("{x:.1e}") }
}

/// A certified gap; a dash where nothing was proven.
pub fn proven(gap: Option<f64>) -> String {
    gap.map_or_else(|| "-".into(), rough)
}

/// The mean of certified gaps; a dash where one of them was not proven: a mean of the others would flatter.
pub fn mean_proven(gaps: impl IntoIterator<Item = Option<f64>>) -> String {
    let all: Option<Vec<f64>> = gaps.into_iter().collect();
    proven(all.filter(|gaps| !gaps.is_empty()).map(|gaps| gaps.iter().sum::<f64>() / gaps.len() as f64))
}

/// Ours over the paper's, in per cent.
pub fn deviation(ours: f64, paper: f64) -> f64 {
    100.0 * (ours / paper - 1.0)
}

/// The same, in bold above ten.
pub fn told(ours: f64, paper: f64) -> String {
    let x = deviation(ours, paper);
    let text = format!("{x:+.0} %").replace("-0 %", "0 %").replace("+0 %", "0 %");
    if x.abs() > 10.0 { format!("**{text}**") } else { text }
}

/// A bar would end the field.
fn safe(field: &str) -> String {
    field.replace("||", "‖").replace('|', "\\|")
}

/// A Markdown table.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(|f| safe(f)).collect();
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(out, "| {} |", row.iter().map(|f| safe(f)).collect::<Vec<_>>().join(" | "));
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_above_ten_per_cent_stand_out() {
        assert_eq!((told(1.04, 1.0), told(1.2, 1.0), told(0.8, 1.0)), ("+4 %".into(), "**+20 %**".into(), "**-20 %**".into()));
        assert_eq!((proven(Some(2e-3)), proven(None)), ("2.0e-3".into(), "-".into()));
        assert_eq!((mean_proven([Some(1e-3), Some(3e-3)]), mean_proven([Some(1e-3), None])), ("2.0e-3".into(), "-".into()));
        assert_eq!(mean_proven([]), "-");
        assert_eq!(told(0.9999, 1.0), "0 %");
        assert_eq!(table(&["a", "b"], &[vec!["1".into(), "2".into()]]), "| a | b |\n|---|---|\n| 1 | 2 |\n\n");
        assert_eq!(table(&["||x||"], &[]), "| ‖x‖ |\n|---|\n\n");
    }
}
