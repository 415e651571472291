//! README and guide: every `sh` block is typed into a shell, in order; what is said to be printed is printed; links lead somewhere; what is generated is up to date.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Place, planted_counts};

/// Renews generated files where this variable is set.
const RENEW: &str = "METASTATE_RENEW";
/// Stands for anything in a line that is said to be printed: seconds, digits that differ from machine to machine, what was left out.
const ANYTHING: char = '…';
/// What a document may show in a `console` block, which is not executed: these build the program itself, or look at pages.
const NOT_EXECUTED: [&str; 7] = [
    "scripts/demo",
    "scripts/test",
    "cargo install --path crates/metastate-cli",
    "pip install .",
    "xdg-open ",
    "mdbook build docs/guide",
    "cargo build --release --target ",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A fenced block.
struct Block {
    language: String,
    text: String,
    /// Whether it stands right under another one.
    under: bool,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut open, mut last): (Option<Block>, usize) = (None, usize::MAX - 1);
    for (at, line) in markdown.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        open = match (open, fence) {
            (None, Some(language)) => Some(Block { language: language.trim().to_owned(), text: String::new(), under: at == last + 1 }),
            (None, None) => None,
            (Some(block), Some(_)) => {
                found.push(block);
                last = at;
                None
            }
            (Some(mut block), None) => {
                block.text += line;
                block.text.push('\n');
                Some(block)
            }
        };
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// Whether what was printed has a line like this one, of which `…` may be anything.
fn printed(output: &str, wanted: &str) -> bool {
    let parts: Vec<&str> = wanted.trim().split(ANYTHING).collect();
    output.lines().any(|line| {
        let line = line.trim();
        if parts.len() == 1 {
            return line == parts[0];
        }
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        let Some(mut rest) = line.strip_prefix(first) else { return false };
        for part in &parts[1..parts.len() - 1] {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    })
}

/// Types the `sh` blocks of a document into a shell, one after the other; a `text` block right after one is what it prints.
fn execute(document: &Path, place: &Place) -> usize {
    let program = Path::new(env!("CARGO_BIN_EXE_metastate")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let (mut executed, mut output) = (0, None);
    for Block { language, text, under } in blocks(&read(document)) {
        match language.as_str() {
            "sh" => {
                let done = Command::new("bash")
                    .args(["-euo", "pipefail", "-c", &text])
                    .current_dir(place.path(""))
                    .env("PATH", &path)
                    .env("HOME", place.path(""))
                    .output()
                    .expect("bash is needed to run what the documents show");
                let told = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
                assert!(done.status.success(), "{}:\n{text}ends with {}:\n{told}", document.display(), done.status);
                executed += 1;
                output = Some(told);
                continue;
            }
            "text" => {
                if let Some(output) = output.as_ref().filter(|_| under) {
                    for line in text.lines().filter(|l| !l.trim().is_empty() && l.trim() != "…") {
                        assert!(
                            printed(output, line),
                            "{} says that this is printed:\n{line}\nbut this was:\n{output}",
                            document.display()
                        );
                    }
                }
            }
            "console" => {
                for line in text.lines() {
                    assert!(NOT_EXECUTED.iter().any(|known| line.starts_with(known)), "{}: nobody executes {line}", document.display());
                }
            }
            "python" | "rust" => {} // executed by the tests of the Python package, and as a doctest
            other => panic!("{}: a block of the kind `{other}`, which nothing executes", document.display()),
        }
        output = None;
    }
    executed
}

fn chapters() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("docs/guide/src"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "md") && p.file_name().is_some_and(|n| n != "SUMMARY.md"))
        .collect();
    found.sort();
    found
}

/// A folder with the data of the guide in `data`.
fn with_data() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    for file in std::fs::read_dir(root().join("docs/guide/data")).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), place.path("data").join(file.file_name())).unwrap();
        }
    }
    place
}

#[test]
fn the_readme_can_be_typed() {
    let place = Place::new();
    let rows = |move_on: usize| {
        let pairs = planted_counts(32, 8).into_iter().flat_map(|(i, j, n)| std::iter::repeat_n((i, j), n as usize));
        let lines = pairs.map(|(i, j)| format!("{},{}\n", i + move_on, j)).collect::<String>();
        "start,end\n".to_owned() + &lines
    };
    place.write("trips.csv", rows(0));
    place.write("new.csv", rows(32));
    assert!(execute(&root().join("README.md"), &place) > 0);
}

#[test]
fn every_chapter_of_the_guide_can_be_typed() {
    let executed: usize = chapters().iter().map(|chapter| execute(chapter, &with_data())).sum();
    assert!(executed >= 15, "{executed} blocks");
}

#[test]
fn the_summary_names_every_chapter_once() {
    let summary = read(&root().join("docs/guide/src/SUMMARY.md"));
    let named: Vec<String> = links(&summary).into_iter().filter(|l| !l.starts_with("../")).collect();
    let there: Vec<String> = chapters().iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), there.iter().cloned().collect::<BTreeSet<_>>());
    assert_eq!(named.len(), there.len(), "a chapter is named twice");
    let book = read(&root().join("docs/guide/book.toml"));
    assert!(book.contains("[book]") && book.contains("src = \"src\""), "{book}");
}

/// Targets of `[text](target)` and `![text](target)` outside of fences and of `code`.
fn links(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let mut rest = prose.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }
    found
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(root()).unwrap().map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    documents(&root().join("docs"), &mut all);
    let mut checked = 0;
    for document in &all {
        for link in links(&read(document)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, part) = link.split_once('#').map_or((link.as_str(), None), |(file, part)| (file, Some(part)));
            let target = if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: there is no {link}", document.display());
            if let Some(part) = part {
                let there = read(&target).lines().any(|l| l.starts_with('#') && anchor(l) == part);
                assert!(there, "{}: {link} names no heading", document.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked} links in {} documents", all.len());
}

#[test]
fn pictures_are_small_and_told_in_words() {
    let mut all = vec![root().join("README.md")];
    all.extend(chapters());
    for document in all {
        for line in read(&document).lines().filter(|l| l.contains("![")) {
            let words = line.split("![").nth(1).and_then(|l| l.split(']').next()).unwrap_or_default();
            assert!(words.len() > 20, "{}: a picture without words for those who do not see it: {line}", document.display());
        }
    }
    for picture in std::fs::read_dir(root().join("docs/pictures")).unwrap() {
        let picture = picture.unwrap();
        assert!(picture.metadata().unwrap().len() < 300_000, "{}", picture.path().display());
    }
}

#[test]
fn the_reference_of_errors_is_up_to_date() {
    let file = root().join("docs/reference/errors.md");
    let wanted = metastate_tasks::explain::reference();
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == wanted,
        "docs/reference/errors.md is not what `metastate explain` says; renew it with\n  {RENEW}=1 cargo test -p metastate-cli --test guide"
    );
}

#[test]
fn there_is_a_manual_page_for_every_command_and_completions_know_the_options() {
    let place = Place::new();
    place.expect(0, &["man", "pages"]);
    let mut pages: Vec<String> =
        std::fs::read_dir(place.path("pages")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    let (help, _) = place.expect(0, &["--help"]);
    let listed = help.lines().skip_while(|l| !l.starts_with("Commands:")).skip(1).take_while(|l| !l.is_empty());
    for command in listed.filter(|l| l.starts_with("  ") && !l.starts_with("   ")).filter_map(|l| l.split_whitespace().next()) {
        assert!(command == "help" || pages.contains(&format!("metastate-{command}.1")), "{command}: {pages:?}");
    }
    let fit = read(&place.path("pages/metastate-fit.1"));
    assert!(fit.starts_with(".") || fit.contains(".TH"), "{fit}");
    assert!(fit.contains("lambda\\-ratio") && fit.contains("SYNOPSIS"));
    assert!(pages.contains(&"metastate.1".to_owned()) && pages.contains(&"metastate-simulate-city.1".to_owned()), "{pages:?}");
    // A folder with something else in it stays as it is.
    let (_, told) = place.expect(2, &["man", "pages"]);
    assert!(told.contains("E-CLI-EXISTS"), "{told}");
    for shell in ["bash", "zsh", "fish"] {
        let (script, _) = place.expect(0, &["completions", shell]);
        assert!(script.contains("lambda-ratio") && script.contains("forecast"), "{shell}");
    }
}
