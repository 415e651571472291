//! A page without any script: sentences, pictures and tables. Pictures are images, so that nothing in them can run.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::comparison::short;
use super::{STYLE, hash_source, text};
use crate::tables::parse_csv;

/// A table under a title.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// Above it.
    pub title: &'a str,
    /// What its columns mean.
    pub note: &'a str,
    /// The table.
    pub csv: &'a str,
}

/// The whole page; pictures are SVG, with their names.
pub fn standing_page(title: &str, said: &str, pictures: &[(String, String)], sections: &[Section], hints: &[String]) -> String {
    let title = text(title);
    let figures: String = pictures
        .iter()
        .map(|(name, svg)| {
            let source = STANDARD.encode(svg.as_bytes());
            format!("<section class=\"card\"><img alt=\"map, {}\" src=\"data:image/svg+xml;base64,{source}\"></section>\n", text(name))
        })
        .collect();
    let tables: String = sections
        .iter()
        .map(|s| {
            format!("<section class=\"card\"><h2>{}</h2><p class=\"note\">{}</p>{}</section>\n", text(s.title), text(s.note), table(s.csv))
        })
        .collect();
    let hints = match hints {
        [] => String::new(),
        hints => {
            let items: String = hints.iter().map(|hint| format!("<li>{}</li>", text(hint))).collect();
            format!("<section class=\"card\"><h2>Hints</h2><ul>{items}</ul></section>\n")
        }
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header><div class=\"brand\"><span aria-hidden=\"true\" class=\"mark\"></span>metastate</div></header>\n<main id=\"main\">\n<h1>{title}</h1>\n\
         <p class=\"verdict\">{}</p>\n<div class=\"grid2\">{figures}</div>\n{tables}{hints}</main>\n</body>\n</html>\n",
        hash_source(STYLE),
        text(said)
    )
}

fn table(csv: &str) -> String {
    let rows = parse_csv(csv).unwrap_or_default();
    let mut out = String::from("<div class=\"scroll\"><table>");
    for (k, row) in rows.iter().enumerate() {
        let cell = |cell: &String| match k {
            0 => format!("<th scope=\"col\">{}</th>", text(cell).replace('_', " ")),
            _ => format!("<td>{}</td>", text(&short(cell))),
        };
        out += &format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>());
    }
    out + "</table></div>"
}

#[cfg(test)]
mod tests {
    use super::{Section, standing_page};

    #[test]
    fn labels_from_strangers_stay_text() {
        let bad = "<script>alert(1)</script>";
        let section = Section { title: bad, note: bad, csv: &format!("a_b,{bad}\n1.23456789,{bad}\n") };
        let page = standing_page(bad, bad, &[("<i>".into(), "<svg/>".into())], &[section], &[bad.to_owned()]);
        assert!(!page.contains("<script") && !page.contains("<i>"), "{page}");
        assert!(page.contains("<th scope=\"col\">a b</th>") && page.contains("<td>1.2346</td>"), "{page}");
    }
}
