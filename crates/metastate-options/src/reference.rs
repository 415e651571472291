//! The reference of all options, made of the catalogue.

use std::fmt::Write;

use crate::commands::{Command, commands, common};
use crate::entry::{Entry, Kind, Many};
use crate::error::python_name;

/// `docs/reference/options.md`.
pub fn reference() -> String {
    let mut out = String::from(
        "# All commands and options\n\n\
         Made from the catalogue in `crates/metastate-options`; do not edit. `metastate COMMAND --help` says the same.\n\
         In Python, `--lambda-ratio` is the parameter `lambda_ratio`; the few that have another name there are marked.\n\n",
    );
    for command in commands() {
        section(&mut out, command, "metastate", 2);
    }
    out += "## Options of all commands\n\n";
    table(&mut out, common());
    out
}

fn section(out: &mut String, command: &Command, parent: &str, depth: usize) {
    let name = format!("{parent} {}", command.name);
    // Writing into a String cannot fail.
    let _ = writeln!(out, "{} {name}\n\n{}.\n", "#".repeat(depth), command.about);
    for group in &command.groups {
        if let Some(heading) = group.heading {
            let _ = writeln!(out, "**{heading}**\n");
        }
        table(out, group.entries);
    }
    if command.commands.is_empty() {
        let _ = writeln!(out, "```text\n{}\n```\n", command.examples);
    }
    command.commands.iter().for_each(|inner| section(out, inner, &name, depth + 1));
}

fn table(out: &mut String, entries: &[Entry]) {
    *out += "| option | default | what it does |\n|---|---|---|\n";
    for entry in entries {
        let default = match (&entry.default, entry.required) {
            (Some(text), _) => format!("`{text}`"),
            (None, true) => match entry.unless {
                Some(other) => format!("must be given without `--{other}`"),
                None => "must be given".to_owned(),
            },
            (None, false) => String::new(),
        };
        let _ = writeln!(out, "| {} | {default} | {} |", written(entry), cell(&meaning(entry)));
    }
    out.push('\n');
}

fn written(entry: &Entry) -> String {
    let value = match (entry.kind, entry.many) {
        (Kind::Flag, _) => String::new(),
        (_, Many::FollowingOrNone) => format!(" [{}...]", entry.value_name),
        (_, Many::Following) => format!(" {}...", entry.value_name),
        _ => format!(" {}", entry.value_name),
    };
    let shown = if entry.positional {
        format!("`{}{}`", entry.value_name, if entry.many == Many::One { "" } else { "..." })
    } else {
        format!("`--{}{value}`", entry.name)
    };
    let python = python_name(&entry.name);
    let renamed = if python == entry.key() || entry.positional { String::new() } else { format!(" (Python: `{python}`)") };
    cell(&(shown + &renamed))
}

fn meaning(entry: &Entry) -> String {
    let mut text = entry.help.clone();
    if !entry.words.is_empty() {
        let words: Vec<String> = entry.words.iter().map(|w| format!("`{}`: {}", w.name, w.help)).collect();
        text += &format!("<br>{}", words.join("; "));
    }
    if let Some(bounds) = &entry.bounds {
        let mut said = bounds.said.chars();
        text += &format!("<br>{}{}.", said.next().map(|c| c.to_ascii_uppercase()).unwrap_or_default(), said.as_str());
    }
    if entry.many == Many::Repeated && !entry.positional {
        text += "<br>May be given several times.";
    }
    for (names, how) in [(&entry.conflicts, "Not together with"), (&entry.requires, "Only together with")] {
        if !names.is_empty() {
            text += &format!("<br>{how} {}.", names.iter().map(|n| format!("`--{n}`")).collect::<Vec<_>>().join(", "));
        }
    }
    text
}

/// A vertical bar would end the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
