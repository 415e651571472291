//! `report.html`: one page that opens from disk, offline. The template, the style and the script are files of their own; what
//! they show is one JSON document inside the page. Labels come from strangers' files, so nothing from outside is ever markup:
//! the script writes text only, the JSON cannot end its element, and the page's own policy forbids every other script, every
//! style and every address.

mod comparison;
mod data;
mod extras;
mod heat;
mod slices;
mod standing;

pub use comparison::comparison;
pub use extras::{
    ActionStory, ControlStory, Ends, Extras, FateStory, KineticsStory, LagStory, PathPoint, PathStory, RankChange, RankPoint, RanksStory,
    RivalZones, StoryMode, TracePoint, Zoning,
};
pub use heat::Heat;
pub use standing::{Section, standing_page};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::result::FitResult;
use crate::summary::Summary;

const TEMPLATE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/page.css");
/// The page's figures, and before them those of kinetics, which the page calls.
const SCRIPT: &str = concat!(include_str!("assets/kinetics.js"), include_str!("assets/page.js"));

/// The whole page.
pub fn render(summary: &Summary, result: &FitResult, extras: &Extras) -> String {
    let sentence = data::sentence(summary, result);
    let page = data::collect(summary, result, extras);
    // Maps with text keys and plain numbers always serialise.
    let json = serde_json::to_string(&page).unwrap_or_default();
    let parts = [
        ("{{POLICY}}", policy()),
        ("{{TITLE}}", text(&sentence)),
        ("{{SENTENCE}}", text(&sentence)),
        ("{{STYLE}}", STYLE.to_owned()),
        ("{{DATA}}", inside_script(&json)),
        ("{{SCRIPT}}", SCRIPT.to_owned()),
    ];
    fill(TEMPLATE, &parts)
}

/// Every mark is looked up in the template alone, never in what was filled in.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((at, (mark, part))) = parts.iter().filter_map(|p| rest.find(p.0).map(|at| (at, p))).min_by_key(|found| found.0) {
        out.push_str(&rest[..at]);
        out.push_str(part);
        rest = &rest[at + mark.len()..];
    }
    out + rest
}

/// Only this script and this style, and no network at all.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        hash_source(SCRIPT),
        hash_source(STYLE)
    )
}

/// As the policy names what it allows.
fn hash_source(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// As text between tags or in a quoted attribute.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// JSON that no parser of HTML can mistake for the end of its element. All of these can stand in strings only.
fn inside_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::{fill, inside_script, text};

    #[test]
    fn what_was_filled_in_is_not_searched_again() {
        let parts = [("{{A}}", "{{B}}".to_owned()), ("{{B}}", "b".to_owned())];
        assert_eq!(fill("1{{A}}2{{B}}3", &parts), "1{{B}}2b3");
    }

    #[test]
    fn hostile_text_stays_text() {
        let label = "</script><script>alert(1)</script><!--\u{2028}&\"'";
        let json = inside_script(&serde_json::to_string(label).unwrap());
        assert!(!json.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), label);
        assert!(!text(label).contains(['<', '>', '"', '\'']));
    }
}
