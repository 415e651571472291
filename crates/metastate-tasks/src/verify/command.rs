//! The recorded command against the recorded options: who edits one of them must edit the other, and then the rest must fit it.

use clap::Parser;
use metastate_report::Summary;
use serde_json::Value;

use super::checks::Checks;
use crate::args::{Cli, Command, FitArgs, FitCommand, InputArgs};
use crate::settings;

/// What the recorded command asks for.
pub struct Typed {
    /// All its options.
    pub command: FitCommand,
    /// Whether it is `path`.
    pub whole_path: bool,
    seed: u64,
}

/// The words of a command as a shell reads them: parts in single quotes are taken as they are.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    let mut letters = command.chars();
    while let Some(c) = letters.next() {
        match (quoted, c) {
            (_, '\'') => (quoted, begun) = (!quoted, true),
            (false, '\\') => word.extend(letters.next()),
            (false, ' ') => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    words
}

/// Reads the recorded command with the command's own parser. `None` for a call from Python.
pub fn read(summary: &Summary) -> Result<Option<Typed>, String> {
    let words = words(&summary.command);
    if words.first().is_none_or(|w| w != "metastate") {
        return Ok(None);
    }
    let cli = Cli::try_parse_from(words).map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())?;
    let (command, whole_path) = match cli.command {
        Command::Fit(command) => (command, false),
        Command::Path(command) => (command, true),
        _ => return Err("it is neither fit nor path".to_owned()),
    };
    Ok(Some(Typed { command: *command, whole_path, seed: cli.common.seed }))
}

/// The first option that the two tell differently.
fn difference(typed: &Value, recorded: &Value) -> Option<String> {
    let (Some(typed), Some(recorded)) = (typed.as_object(), recorded.as_object()) else { return Some("no options".to_owned()) };
    let names = typed.keys().chain(recorded.keys());
    let mut differing = names.filter(|name| typed.get(*name) != recorded.get(*name));
    differing.next().map(|name| format!("{name}: the command says {}", typed.get(name).unwrap_or(&Value::Null)))
}

/// Settings, seed and words, against the command.
pub fn check(checks: &mut Checks, summary: &Summary, input: &InputArgs, fit: &FitArgs, typed: &Result<Option<Typed>, String>) {
    let options = |input: &InputArgs, fit: &FitArgs| serde_json::json!({ "input": input, "fit": fit.resolved() });
    let recorded = options(input, fit);
    // As they were written: an option that this version does not know, or that is missing, shows here.
    let in_file = |key: &str| difference(&recorded[key], &summary.settings[key]).map(|d| d.replace("the command says", "read as"));
    let words = settings::clusters(fit).describe();
    let described = (summary.settings["hard_metastates"] != words.as_str()).then(|| format!("hard_metastates: should be {words}"));
    checks.table("settings", in_file("input").or_else(|| in_file("fit")).or(described));
    let name = "settings and command";
    match typed {
        Err(why) => checks.table(name, Some(format!("the command cannot be read: {why}"))),
        Ok(None) => checks.not_checked(name, &summary.command, "a call from Python"),
        Ok(Some(typed)) => {
            let asked = options(&typed.command.input, &typed.command.fit);
            let differing = difference(&asked["input"], &recorded["input"]).or_else(|| difference(&asked["fit"], &recorded["fit"]));
            let seed = (typed.seed != summary.seed).then(|| format!("seed: the command says {}", typed.seed));
            checks.table(name, differing.or(seed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_come_back_from_their_quotes() {
        assert_eq!(
            words("metastate fit 'a b.csv' --where 'x = '\\''y'\\''' --from ''"),
            ["metastate", "fit", "a b.csv", "--where", "x = 'y'", "--from", ""]
        );
    }
}
