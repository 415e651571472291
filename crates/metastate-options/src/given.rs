//! What a user gave, from the words of a command or from names and values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::commands::{self, Command};
use crate::entry::{Entry, Many, Options, nearest, told};
use crate::error::{Door, OptionError, OptionProblem, option_name};

/// The options that were given to a command, each in the shape of its struct's field.
#[derive(Debug, Clone)]
pub struct Given {
    command: &'static Command,
    door: Door,
    values: BTreeMap<String, Value>,
}

impl Given {
    /// Nothing yet.
    pub fn new(command: &'static Command, door: Door) -> Self {
        Given { command, door, values: BTreeMap::new() }
    }

    /// The command that they are given to.
    pub fn command(&self) -> &'static Command {
        self.command
    }

    /// The names of the options that were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    fn entry(&self, name: &str) -> Result<&'static Entry, OptionError> {
        let name = if self.door == Door::Python { option_name(name) } else { name.to_owned() };
        self.command.entry(&name).ok_or_else(|| {
            let near = nearest(&name, self.command.entries().filter(|e| !e.positional).map(|e| e.name.as_str()));
            OptionError::new(&name, OptionProblem::Unknown(self.command.name.to_owned(), near.map(str::to_owned)))
        })
    }

    /// One option and its value: a text as it was typed, or any value. `Null` leaves it to its default. A repeatable option adds to what was given
    /// before.
    pub fn give(&mut self, name: &str, value: Value) -> Result<(), OptionError> {
        let entry = self.entry(name)?;
        if value.is_null() {
            return Ok(());
        }
        let met = match &value {
            Value::String(text) => format!("`{text}`"),
            other => told(other).unwrap_or_else(|| other.to_string()),
        };
        let shaped = entry.shaped(&value).map_err(|allowed| OptionError::value(&entry.name, met, allowed))?;
        match (self.values.get_mut(&entry.name), shaped) {
            (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
            (_, shaped) => {
                self.values.insert(entry.name.clone(), shaped);
            }
        }
        Ok(())
    }

    /// Refuses what is missing (but for `except`), and options that exclude or need each other.
    pub fn complete(&self, except: &[&str]) -> Result<(), OptionError> {
        for entry in self.command.entries() {
            let Some(value) = self.values.get(&entry.name) else {
                let excused = entry.unless.is_some_and(|other| self.values.contains_key(other));
                if entry.required && !excused && !except.contains(&entry.name.as_str()) {
                    return Err(OptionError::new(&entry.name, OptionProblem::Missing));
                }
                continue;
            };
            let given = |other: &&&str| self.values.contains_key(**other);
            if let Some(other) = entry.conflicts.iter().find(given) {
                return Err(OptionError::new(&entry.name, OptionProblem::Conflict((*other).to_owned())));
            }
            // A default needs nothing, also where it is told: Python hands over all of its parameters.
            let as_without = value.is_string() && value.as_str() == entry.default.as_deref();
            if let Some(other) = entry.requires.iter().find(|other| !as_without && !given(other)) {
                return Err(OptionError::new(&entry.name, OptionProblem::Needs((*other).to_owned())));
            }
        }
        Ok(())
    }

    /// A group of options, with defaults for what was not given.
    pub fn group<T: Options>(&self) -> Result<T, OptionError> {
        let own = T::entries().iter().filter_map(|e| Some((e.key(), self.values.get(&e.name)?.clone())));
        let values: Map<String, Value> = own.collect();
        serde_json::from_value(Value::Object(values)).map_err(|e| OptionError::new("", OptionProblem::Sentence(e.to_string())))
    }

    /// The same, with its values checked.
    pub fn checked<T: Options>(&self) -> Result<T, OptionError> {
        let group: T = self.group()?;
        group.check()?;
        Ok(group)
    }
}

/// The words of a command as a shell reads them: parts in single quotes are taken as they are, a backslash protects the letter after it.
pub fn shell_words(command: &str) -> Vec<String> {
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

/// Reads the words of a command, without the name of the program: the command (and its own one, for `simulate`), then options as `--name value`,
/// `--name=value` or `--flag`, and values told by their place. After `--` there are no options.
pub fn read_words(words: &[String]) -> Result<Given, OptionError> {
    let sentence = |text: String| OptionError::new("", OptionProblem::Sentence(text));
    // Options of all commands may stand before the command.
    let (mut before, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at).filter(|w| w.starts_with("--")) {
        let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        let entry = commands::common().iter().find(|e| e.name == name);
        let entry = entry.ok_or_else(|| sentence(format!("there is no option --{name} before the command")))?;
        let length = if entry.takes_value() && !word.contains('=') { 2 } else { 1 };
        before.extend(words[at..].iter().take(length).cloned());
        at += length;
    }
    let name = words.get(at).ok_or_else(|| sentence("no command is named".to_owned()))?;
    let mut command = commands::find(name).ok_or_else(|| sentence(format!("there is no command {name}")))?;
    at += 1;
    if let Some(inner) = words.get(at).and_then(|word| command.commands.iter().find(|c| c.name == word)) {
        (command, at) = (inner, at + 1);
    }
    let mut given = Given::new(command, Door::Command);
    let mut positions = Vec::new();
    let rest: Vec<&String> = before.iter().chain(&words[at.min(words.len())..]).collect();
    let mut k = 0;
    while k < rest.len() {
        let word = rest[k].as_str();
        k += 1;
        if word == "--" {
            positions.extend(rest[k..].iter().map(|w| (*w).clone()));
            break;
        }
        let Some(named) = word.strip_prefix("--") else {
            positions.push(word.to_owned());
            continue;
        };
        let (name, value) = named.split_once('=').map_or((named, None), |(name, value)| (name, Some(value)));
        let entry = given.entry(name)?;
        let is_value = |k: usize| rest.get(k).is_some_and(|w| !w.starts_with("--"));
        match (entry.takes_value(), value) {
            (false, None) => given.give(name, Value::Bool(true))?,
            (false, Some(_)) => return Err(sentence(format!("--{name} takes no value"))),
            (true, Some(value)) => given.give(name, Value::String(value.to_owned()))?,
            (true, None) if matches!(entry.many, Many::Following | Many::FollowingOrNone) => {
                let mut list = Vec::new();
                while is_value(k) {
                    list.push(Value::String(rest[k].clone()));
                    k += 1;
                }
                given.give(name, Value::Array(list))?;
            }
            (true, None) => {
                let value = rest.get(k).ok_or_else(|| sentence(format!("--{name} needs a value")))?;
                given.give(name, Value::String((*value).clone()))?;
                k += 1;
            }
        }
    }
    let mut positions = positions.into_iter();
    for entry in command.entries().filter(|e| e.positional) {
        if entry.many == Many::One {
            positions.next().map(|word| given.give(&entry.name, Value::String(word))).transpose()?;
        } else {
            let all: Vec<Value> = positions.by_ref().map(Value::String).collect();
            if !all.is_empty() {
                given.give(&entry.name, Value::Array(all))?;
            }
        }
    }
    if let Some(word) = positions.next() {
        return Err(sentence(format!("`{word}` was not expected")));
    }
    given.complete(&[])?;
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CityArgs, Common, FitArgs, ForecastArgs, InputArgs, RunArgs};

    fn read(command: &str) -> Result<Given, OptionError> {
        read_words(&shell_words(command))
    }

    #[test]
    fn words_come_back_from_their_quotes() {
        assert_eq!(
            shell_words("fit 'a b.csv' --where 'x = '\\''y'\\''' --from ''"),
            ["fit", "a b.csv", "--where", "x = 'y'", "--from", ""]
        );
    }

    #[test]
    fn a_command_is_read_as_it_was_typed() {
        let given = read("--seed 7 fit a.csv --lambda-ratio=0.3 b.csv --as-in-paper --out out --bbox -1,2,3,4 -- --c.csv").unwrap();
        let (input, fit, run): (InputArgs, FitArgs, RunArgs) = (given.group().unwrap(), given.group().unwrap(), given.group().unwrap());
        assert_eq!(input.inputs, ["a.csv", "b.csv", "--c.csv"]);
        assert_eq!(input.bbox.as_deref(), Some("-1,2,3,4"));
        assert_eq!((fit.lambda_ratio, fit.as_in_paper, fit.max_rank()), (Some(0.3), true, 300));
        assert_eq!((run.out.to_str(), given.group::<Common>().unwrap().seed), (Some("out"), 7));
        let asked: ForecastArgs = read("forecast r --from a --from b --steps 1,10 --check --lags 2").unwrap().group().unwrap();
        assert_eq!((asked.from, asked.steps, asked.check), (vec!["a".into(), "b".into()], vec![1, 10], Some(Vec::new())));
        assert!(read("fit a.csv --estimate").unwrap().group::<RunArgs>().unwrap().estimate);
        assert_eq!(read("simulate city --out t.csv").unwrap().group::<CityArgs>().unwrap().trips, 400_000);
    }

    #[test]
    fn what_is_wrong_gets_a_sentence() {
        let refusals = [
            ("fit --best", "fit has no option --best"),
            ("fit a.csv", "--out must be given"),
            ("fit a.csv --resume", "--out must be given"),
            ("fit --out o", "--inputs must be given"),
            ("fit a --out o --lambda 1 --lambda-ratio 1", "--lambda cannot be given together with --lambda-ratio"),
            ("fit a --out o --gap nan", "--gap is `nan`; it must be a number"),
            ("fit a --out o --solver fats", "--solver is `fats`; it must be one of fast, palm-bb, palm-lipschitz (did you mean fast?)"),
            ("fit a --out o --max-rank -3", "--max-rank is `-3`; it must be a whole number, zero or more"),
            ("fit a --out o --memory-limit 4Q", "--memory-limit is `4Q`; `q` is no unit; use K, M, G or T"),
            ("fit a --out o --clusters some", "--clusters is `some`; it must be a number, rank or membership"),
            ("forecast r --lags 2", "--lags means nothing without --check"),
            ("verify a b", "`b` was not expected"),
            ("fits a", "there is no command fits"),
        ];
        for (command, sentence) in refusals {
            assert_eq!(read(command).unwrap_err().to_string(), sentence, "{command}");
        }
        let near = read("fit a --out o --max-rang 3").unwrap_err();
        assert_eq!(near.advice(Door::Command).unwrap(), "did you mean --max-rank?");
    }

    #[test]
    fn python_gives_names_and_values() {
        let mut given = Given::new(commands::find("fit").unwrap(), Door::Python);
        for (name, value) in [
            ("lam", serde_json::json!(1e-3)),
            ("max_rank", serde_json::json!(7.0)),
            ("bbox", serde_json::json!([-1, 2.5, 3, 4])),
            ("weight_power", serde_json::json!(0.5)),
            ("clusters", serde_json::json!(3)),
            ("memory_limit", serde_json::json!("4K")),
            ("from_column", serde_json::json!("start")),
            ("prior", Value::Null),
        ] {
            given.give(name, value).unwrap();
        }
        let (input, fit): (InputArgs, FitArgs) = (given.checked().unwrap(), given.checked().unwrap());
        assert_eq!((fit.lambda, fit.max_rank(), fit.prior), (Some(1e-3), 7, None));
        assert_eq!((fit.weight_power, fit.clusters), (metastate::WeightPower::Half, Some(crate::Clusters::Count(3))));
        assert_eq!((input.bbox.as_deref(), input.memory_limit), (Some("-1,2.5,3,4"), Some(4096)));
        assert_eq!(input.from.as_deref(), Some("start"));
        given.give("prior", serde_json::json!(-1)).unwrap();
        let refused = given.checked::<FitArgs>().unwrap_err();
        assert_eq!(refused.told(Door::Python), "prior is -1; it must be zero or a positive number");
        assert_eq!(given.give("max_rang", 1.into()).unwrap_err().advice(Door::Python).unwrap(), "did you mean max_rank?");
    }
}
