//! The recorded command against the recorded options: who edits one of them must edit the other, and then the rest must fit it.

use metastate_report::Summary;
use serde_json::Value;

use super::checks::Checks;
use crate::args::{Common, FitArgs, FitCommand, InputArgs, OptionError, read_words, shell_words};
use crate::settings;

/// What the recorded command asks for.
pub struct TypedCommand {
    /// All its options.
    pub command: FitCommand,
    /// Whether it is `path`.
    pub whole_path: bool,
    seed: u64,
}

/// Reads the recorded command by the catalogue of options. `None` for a call from Python.
pub fn read(summary: &Summary) -> Result<Option<TypedCommand>, String> {
    let words = shell_words(&summary.command);
    match words.split_first() {
        Some((program, rest)) if program == "metastate" => typed(rest).map(Some),
        _ => Ok(None),
    }
}

fn typed(words: &[String]) -> Result<TypedCommand, String> {
    let told = |e: OptionError| e.to_string();
    let given = read_words(words).map_err(told)?;
    let whole_path = match given.command().name {
        "fit" => false,
        "path" => true,
        _ => return Err("it is neither fit nor path".to_owned()),
    };
    let command = FitCommand { input: given.group().map_err(told)?, fit: given.group().map_err(told)?, run: given.group().map_err(told)? };
    Ok(TypedCommand { command, whole_path, seed: given.group::<Common>().map_err(told)?.seed })
}

/// Whether two values are the same. Folders of earlier versions have the power of the weights as a text, so a text that is a number is that
/// number.
fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let number = |v: &Value| v.as_f64().or_else(|| v.as_str()?.parse().ok());
    a == b || a.zip(b).is_some_and(|(a, b)| number(a).is_some_and(|x| number(b) == Some(x)))
}

/// The first option that the two tell differently.
fn difference(typed: &Value, recorded: &Value) -> Option<String> {
    let (Some(typed), Some(recorded)) = (typed.as_object(), recorded.as_object()) else { return Some("no options".to_owned()) };
    let names = typed.keys().chain(recorded.keys());
    let mut differing = names.filter(|name| !same(typed.get(*name), recorded.get(*name)));
    differing.next().map(|name| format!("{name}: the command says {}", typed.get(name).unwrap_or(&Value::Null)))
}

/// Settings, seed and words, against the command.
pub fn check(checks: &mut Checks, summary: &Summary, input: &InputArgs, fit: &FitArgs, typed: &Result<Option<TypedCommand>, String>) {
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
