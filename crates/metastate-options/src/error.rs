//! What is wrong with an option, in the words of the door it came through.

use std::fmt;

use serde_json::Value;

use crate::entry::told;

/// Who gave the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The command: options are called `--lambda-ratio`.
    Command,
    /// Python: options are called `lambda_ratio`.
    Python,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionProblem {
    /// A value that is not allowed, and what is, as a clause of its own.
    Value {
        /// The value.
        met: String,
        /// What is allowed: "it must be ...".
        allowed: String,
    },
    /// The same of one value among several.
    Holds {
        /// The value.
        met: String,
        /// What is allowed.
        allowed: String,
    },
    /// It cannot be given together with another one.
    Conflict(String),
    /// It contradicts another one, and why.
    Contradicts(&'static str, &'static str),
    /// It means nothing without another one.
    Needs(String),
    /// It must be given.
    Missing,
    /// There is no such option; the command, and what may have been meant.
    Unknown(String, Option<String>),
    /// Anything else: a sentence that calls options as the command does.
    Sentence(String),
}

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    /// The option, as the catalogue calls it.
    pub option: String,
    /// What is wrong.
    pub problem: OptionProblem,
    /// What to do, calling options as the command does.
    pub remedy: Option<String>,
}

/// Options that Python calls otherwise: their names are words of the language, or would say little as a parameter.
const PYTHON_NAMES: [(&str, &str); 5] =
    [("lambda", "lam"), ("as", "kind"), ("from", "from_column"), ("to", "to_column"), ("with", "with_results")];

/// The parameter that an option is in Python.
pub fn python_name(option: &str) -> String {
    PYTHON_NAMES.iter().find(|(name, _)| *name == option).map_or_else(|| option.replace('-', "_"), |(_, python)| (*python).to_owned())
}

/// The option that a parameter of Python stands for.
pub fn option_name(parameter: &str) -> String {
    PYTHON_NAMES.iter().find(|(_, python)| *python == parameter).map_or_else(|| parameter.replace('_', "-"), |(name, _)| (*name).to_owned())
}

impl Door {
    /// What this door calls an option.
    pub fn name(self, option: &str) -> String {
        match self {
            Door::Command => format!("--{option}"),
            Door::Python => python_name(option),
        }
    }

    /// A sentence in which options are called as the command calls them, in the words of this door.
    pub fn words(self, sentence: &str) -> String {
        if self == Door::Command {
            return sentence.to_owned();
        }
        let mut out = String::new();
        let mut rest = sentence;
        while let Some(at) = rest.find("--") {
            let after = &rest[at + 2..];
            let length = after.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(after.len());
            out += &rest[..at];
            out += &if length == 0 { "--".to_owned() } else { python_name(&after[..length]) };
            rest = &after[length..];
        }
        out + rest
    }
}

impl OptionError {
    pub(crate) fn new(option: &str, problem: OptionProblem) -> Self {
        OptionError { option: option.to_owned(), problem, remedy: None }
    }

    pub(crate) fn value(option: &str, met: impl ToString, allowed: impl ToString) -> Self {
        OptionError::new(option, OptionProblem::Value { met: met.to_string(), allowed: allowed.to_string() })
    }

    pub(crate) fn holds(option: &str, met: &Value, allowed: impl ToString) -> Self {
        OptionError::new(option, OptionProblem::Holds { met: told(met).unwrap_or_default(), allowed: allowed.to_string() })
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        OptionError { remedy: Some(remedy.into()), ..self }
    }

    /// The sentence, in the words of a door.
    pub fn told(&self, door: Door) -> String {
        let name = door.name(&self.option);
        match &self.problem {
            OptionProblem::Value { met, allowed } => format!("{name} is {met}; {}", door.words(allowed)),
            OptionProblem::Holds { met, allowed } => format!("{name} holds {met}; {}", door.words(allowed)),
            OptionProblem::Conflict(other) => format!("{name} cannot be given together with {}", door.name(other)),
            OptionProblem::Contradicts(other, why) => format!("{name} contradicts {}: {}", door.name(other), door.words(why)),
            OptionProblem::Needs(other) => format!("{name} means nothing without {}", door.name(other)),
            OptionProblem::Missing => format!("{name} must be given"),
            OptionProblem::Unknown(command, _) => match door {
                Door::Command => format!("{command} has no option {name}"),
                Door::Python => format!("{command} has no option '{name}'"),
            },
            OptionProblem::Sentence(sentence) => door.words(sentence),
        }
    }

    /// What to do, in the words of a door.
    pub fn advice(&self, door: Door) -> Option<String> {
        match &self.problem {
            OptionProblem::Unknown(_, Some(near)) => Some(format!("did you mean {}?", door.name(near))),
            _ => self.remedy.as_deref().map(|remedy| door.words(remedy)),
        }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(Door::Command))
    }
}

impl std::error::Error for OptionError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_door_has_its_words() {
        let e = OptionError::new("solver", OptionProblem::Contradicts("as-in-paper", "the paper's is another"))
            .remedy("leave out --solver, or give --lambda and --redundancy-absolute");
        assert_eq!(e.told(Door::Command), "--solver contradicts --as-in-paper: the paper's is another");
        assert_eq!(e.told(Door::Python), "solver contradicts as_in_paper: the paper's is another");
        assert_eq!(e.advice(Door::Python).unwrap(), "leave out solver, or give lam and redundancy_absolute");
        assert_eq!(Door::Python.words("a -- b --x"), "a -- b x");
        assert_eq!(option_name(&python_name("from")), "from");
    }
}
