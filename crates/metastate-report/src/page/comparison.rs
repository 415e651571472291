//! The page of `compare`: verdicts, the table and the maps, from the files of its folder. It holds no script at all, and
//! its pictures are images, so that nothing in them can run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{STYLE, hash_source, text};
use crate::tables::parse_csv;

/// The whole page: `compare.json`, `compare.csv`, and pictures with their names, the chart of scores first.
pub fn comparison(record: &Value, csv: &str, pictures: &[(String, String)]) -> String {
    let said = |key: &str| match &record[key] {
        Value::String(s) => s.clone(),
        Value::Null => "–".to_owned(),
        other => short(&other.to_string()),
    };
    let title = format!("{} states, {} meta-states: the method and its rivals", said("states"), said("rank"));
    let lines = |key: &str| -> String {
        let items = record[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.map(|line| format!("<li>{}</li>", text(line))).collect()
    };
    let figures: String = pictures
        .iter()
        .map(|(name, svg)| {
            let source = STANDARD.encode(svg.as_bytes());
            format!("<section class=\"card\"><img alt=\"{}\" src=\"data:image/svg+xml;base64,{source}\"></section>\n", text(name))
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><div class=\"brand\"><span aria-hidden=\"true\" class=\"mark\"></span>metastate</div></header>\n<main id=\"main\">\n<h1>{title}</h1>\n\
         <p class=\"verdict\">{} transitions, {} folds ({}), smoothing {} ({}); lambda {}, prior {} ({}); hard meta-states by {}.</p>\n\
         <section class=\"card\"><h2>Verdicts</h2><ul>{}</ul></section>\n\
         <section class=\"card\"><h2>Scores on the same held-out folds</h2><p class=\"note\">Methods of this package are set in bold. Log-likelihood for each \
         transition: higher is better; squared error: lower is better; coherence is 0 for zones that are as scattered as chance, 1 for zones without borders.</p>{}</section>\n<div class=\"grid2\">{figures}</div>\n{}</main>\n</body>\n</html>\n",
        hash_source(STYLE),
        said("transitions"),
        said("folds"),
        text(&said("folds_are")),
        said("smoothing"),
        text(&said("smoothing_is")),
        said("lambda"),
        said("prior"),
        text(&said("prior_is")),
        text(&said("hard")),
        lines("verdicts"),
        table(csv),
        match lines("hints").as_str() {
            "" => String::new(),
            hints => format!("<section class=\"card\"><h2>Hints</h2><ul>{hints}</ul></section>\n"),
        },
    )
}

/// The CSV as a table; the second column says which rows are ours and is not shown itself.
fn table(csv: &str) -> String {
    let rows = parse_csv(csv).unwrap_or_default();
    let shown =
        |row: &[String]| -> Vec<String> { row.iter().enumerate().filter(|(k, _)| *k != 1).map(|(_, cell)| text(&short(cell))).collect() };
    let mut out = String::from("<div class=\"scroll\"><table>");
    for (k, row) in rows.iter().enumerate() {
        let ours = row.get(1).is_some_and(|cell| cell == "true");
        let cells: String = shown(row)
            .iter()
            .map(|cell| match (k, ours) {
                (0, _) => format!("<th scope=\"col\">{}</th>", cell.replace('_', " ")),
                (_, true) => format!("<td><b>{cell}</b></td>"),
                (_, false) => format!("<td>{cell}</td>"),
            })
            .collect();
        out += &format!("<tr>{cells}</tr>\n");
    }
    out + "</table></div>"
}

/// Numbers in five digits, everything else as it is.
pub(super) fn short(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(x) if x.is_finite() && x != 0.0 && x.fract() != 0.0 => {
            let size = x.abs();
            if !(1e-3..1e5).contains(&size) {
                return format!("{x:.3e}");
            }
            let digits = format!("{x:.*}", (4 - size.log10().floor() as i32).clamp(1, 7) as usize);
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Ok(x) if x.is_finite() => x.to_string(),
        _ => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{comparison, short};

    #[test]
    fn names_from_strangers_stay_text() {
        let record = json!({ "states": 3, "rank": 2, "verdicts": ["<script>alert(1)</script>"], "hints": [], "folds_are": "\"><b>" });
        let page = comparison(
            &record,
            "method,ours,log_likelihood,note\na,true,-1.23456789,\"<img src=x>\"\n",
            &[("<i>".into(), "<svg/>".into())],
        );
        for bad in ["<script", "<img src=x", "<i>", "\"><b>\""] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("<b>-1.2346</b>"), "{page}");
    }

    #[test]
    fn five_digits() {
        assert_eq!(
            [short("0.000123456"), short("12.345678"), short("40000.0"), short("0.001"), short("ab")],
            ["1.235e-4", "12.346", "40000", "0.001", "ab"]
        );
    }
}
