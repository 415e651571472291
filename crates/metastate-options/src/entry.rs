//! What the catalogue says of one option.

use std::path::PathBuf;

use metastate::WeightPower;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::OptionError;

/// What an option's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No value: it is given or not.
    Flag,
    /// A finite number.
    Number,
    /// A whole number, zero or more.
    Integer,
    /// Any text.
    Text,
    /// The name of a file or folder.
    Path,
    /// One of [`Entry::words`].
    Word,
    /// A number of bytes, such as 4G.
    Bytes,
}

/// How many values an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Many {
    /// One (or none, for a flag).
    One,
    /// One each time it is given, or all that follow for a positional one.
    Repeated,
    /// Several at once, separated by commas.
    Commas,
    /// Those that follow, at least one.
    Following,
    /// Those that follow, or none.
    FollowingOrNone,
}

/// A word that may be given, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it is typed.
    pub name: String,
    /// What it means.
    pub help: String,
}

/// Which numbers are allowed.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Whether this one is.
    pub holds: fn(f64) -> bool,
    /// The same in words: the second half of the sentence that begins "--folds is 1; ".
    pub said: &'static str,
}

/// Whether a text is allowed, and what is said where it is not.
pub type TextRule = (fn(&str) -> bool, &'static str);

/// One option.
#[derive(Debug, Clone)]
pub struct Entry {
    /// As it is typed, without the dashes: `lambda-ratio`.
    pub name: String,
    /// What it does, for somebody who does not know.
    pub help: String,
    /// What stands for its value in the help.
    pub value_name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// How many values it takes.
    pub many: Many,
    /// The words allowed, where its kind is [`Kind::Word`].
    pub words: Vec<Word>,
    /// Its default, as it would be typed; none where leaving it out means something of its own.
    pub default: Option<String>,
    /// Which numbers are allowed.
    pub bounds: Option<Bounds>,
    /// Names of options that cannot be given together with it.
    pub conflicts: Vec<&'static str>,
    /// Names of options without which it means nothing.
    pub requires: Vec<&'static str>,
    /// Whether it is told by its place among the words of a command, not by its name.
    pub positional: bool,
    /// Whether it must be given.
    pub required: bool,
    /// The option that it need not be given with.
    pub unless: Option<&'static str>,
    /// Whether its value may begin with a hyphen.
    pub allow_hyphens: bool,
    /// What a text must be, where not every text is allowed: whether this one is, and what is allowed.
    pub texts: Option<TextRule>,
}

/// A group of options: a struct with a catalogue.
pub trait Options: Serialize + DeserializeOwned + Default + Clone + 'static {
    /// Its heading in the help; none for the common one.
    const HEADING: Option<&'static str>;

    /// What the catalogue says of its fields, in their order.
    fn entries() -> &'static [Entry];

    /// What must hold between several options of the group.
    fn rules(&self) -> Result<(), OptionError>;

    /// Refuses values outside their bounds, and options that contradict each other. This is the one place where options are checked.
    fn check(&self) -> Result<(), OptionError> {
        let values = serde_json::to_value(self).unwrap_or_default();
        for entry in Self::entries() {
            let Some(bounds) = &entry.bounds else { continue };
            match &values[entry.key()] {
                Value::Array(list) => {
                    if let Some(met) = list.iter().find(|v| v.as_f64().is_some_and(|x| !(bounds.holds)(x))) {
                        return Err(OptionError::holds(&entry.name, met, bounds.said));
                    }
                }
                met => {
                    if met.as_f64().is_some_and(|x| !(bounds.holds)(x)) {
                        return Err(OptionError::value(&entry.name, told(met).unwrap_or_default(), bounds.said));
                    }
                }
            }
        }
        self.rules()
    }
}

/// No two options of the group have to do with each other.
pub(crate) fn free<T>(_: &T) -> Result<(), OptionError> {
    Ok(())
}

/// What the type of a field says about its option.
pub(crate) trait Typed {
    const KIND: Kind;
    const MANY: Many = Many::One;
    fn words() -> Vec<Word> {
        Vec::new()
    }
}

macro_rules! typed {
    ($($type:ty => $kind:ident),+ $(,)?) => { $(impl Typed for $type { const KIND: Kind = Kind::$kind; })+ };
}
typed!(bool => Flag, f64 => Number, usize => Integer, u64 => Integer, String => Text, PathBuf => Path);

impl<T: Typed> Typed for Option<T> {
    const KIND: Kind = T::KIND;
    const MANY: Many = T::MANY;
    fn words() -> Vec<Word> {
        T::words()
    }
}

impl<T: Typed> Typed for Vec<T> {
    const KIND: Kind = T::KIND;
    const MANY: Many = Many::Repeated;
    fn words() -> Vec<Word> {
        T::words()
    }
}

impl Typed for WeightPower {
    const KIND: Kind = Kind::Word;
    fn words() -> Vec<Word> {
        let word = |name: &str, help: &str| Word { name: name.to_owned(), help: help.to_owned() };
        vec![
            word("1", "A state weighs as its share, as in the paper"),
            word("0.5", "Every transition counts once, so that rare states count more"),
            word("0", "Every state counts the same"),
        ]
    }
}

/// `lambda_ratio`, `as_` and `PalmBb` become `lambda-ratio`, `as` and `palm-bb`.
pub(crate) fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.trim_end_matches('_').chars() {
        match c {
            '_' => out.push('-'),
            c if c.is_ascii_uppercase() => {
                if !out.is_empty() {
                    out.push('-');
                }
                out.push(c.to_ascii_lowercase());
            }
            c => out.push(c),
        }
    }
    out
}

/// The lines of a comment as one text.
pub(crate) fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// A value as it would be typed; none for what stands for "not given".
pub(crate) fn told(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Array(list) => (!list.is_empty()).then(|| list.iter().filter_map(told).collect::<Vec<_>>().join(",")),
        Value::Number(number) => Some(match number.as_f64() {
            // 60 rather than 60.0, 1e-5 rather than 0.00001.
            Some(x) if number.is_f64() && x.fract() == 0.0 && x.abs() < 1e15 => format!("{x}"),
            Some(x) if number.is_f64() => format!("{x:?}"),
            _ => number.to_string(),
        }),
    }
}

impl Entry {
    pub(crate) fn of<T: Typed>(field: &str, help: &[&str]) -> Self {
        Entry {
            name: kebab(field),
            help: joined(help),
            value_name: match T::KIND {
                Kind::Flag => "",
                Kind::Number => "X",
                Kind::Integer => "N",
                Kind::Text => "TEXT",
                Kind::Path => "FILE",
                Kind::Word => "WORD",
                Kind::Bytes => "BYTES",
            },
            kind: T::KIND,
            many: T::MANY,
            words: T::words(),
            default: None,
            bounds: None,
            conflicts: Vec::new(),
            requires: Vec::new(),
            positional: false,
            required: false,
            unless: None,
            allow_hyphens: false,
            texts: None,
        }
    }

    /// Its name in JSON and in the structs.
    pub fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Whether it takes a value.
    pub fn takes_value(&self) -> bool {
        self.kind != Kind::Flag
    }

    pub(crate) fn value(self, value_name: &'static str) -> Self {
        Entry { value_name, ..self }
    }

    pub(crate) fn bounds(self, bounds: Bounds) -> Self {
        Entry { bounds: Some(bounds), ..self }
    }

    /// The default of an option that is left open in the struct because it depends on others.
    pub(crate) fn default_is(self, default: impl ToString) -> Self {
        Entry { default: Some(default.to_string()), ..self }
    }

    pub(crate) fn conflicts(mut self, other: &'static str) -> Self {
        self.conflicts.push(other);
        self
    }

    pub(crate) fn requires(mut self, other: &'static str) -> Self {
        self.requires.push(other);
        self
    }

    pub(crate) fn positional(self) -> Self {
        Entry { positional: true, ..self }
    }

    pub(crate) fn required(self) -> Self {
        Entry { required: true, ..self }
    }

    /// Must be given, but with this other option.
    pub(crate) fn required_unless(self, other: &'static str) -> Self {
        Entry { required: true, unless: Some(other), ..self }
    }

    pub(crate) fn hyphens(self) -> Self {
        Entry { allow_hyphens: true, ..self }
    }

    pub(crate) fn many(self, many: Many) -> Self {
        Entry { many, ..self }
    }

    pub(crate) fn bytes(self) -> Self {
        Entry { kind: Kind::Bytes, value_name: "BYTES", ..self }
    }

    pub(crate) fn texts(self, holds: fn(&str) -> bool, allowed: &'static str) -> Self {
        Entry { texts: Some((holds, allowed)), ..self }
    }

    /// A value as it was given (a text as it was typed, or a value from Python) in the shape that the struct has; otherwise what is allowed.
    pub fn shaped(&self, value: &Value) -> Result<Value, String> {
        if self.many == Many::One {
            return match value {
                // A list for an option that is one text, such as the four numbers of a box.
                Value::Array(_) if self.kind == Kind::Text => self.one(&Value::String(told(value).unwrap_or_default())),
                _ => self.one(value),
            };
        }
        let split = |text: &str| text.split(',').map(|part| Value::String(part.trim().to_owned())).collect::<Vec<_>>();
        let parts = match value {
            Value::Array(list) if self.many == Many::Commas => {
                list.iter().flat_map(|v| v.as_str().map_or_else(|| vec![v.clone()], split)).collect()
            }
            Value::Array(list) => list.clone(),
            Value::String(text) if self.many == Many::Commas => split(text),
            single => vec![single.clone()],
        };
        Ok(Value::Array(parts.iter().map(|part| self.one(part)).collect::<Result<_, _>>()?))
    }

    fn one(&self, value: &Value) -> Result<Value, String> {
        let text = || match value {
            Value::Array(_) | Value::Bool(_) => None,
            _ => Some(told(value).unwrap_or_default()),
        };
        match self.kind {
            Kind::Flag => value.as_bool().map(Value::Bool).ok_or_else(|| "it must be true or false".to_owned()),
            Kind::Number => {
                let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|x: &f64| x.is_finite());
                number.map(Value::from).ok_or_else(|| "it must be a number".to_owned())
            }
            Kind::Integer => whole(value).map(Value::from).ok_or_else(|| "it must be a whole number, zero or more".to_owned()),
            Kind::Bytes => match value {
                Value::String(text) => bytes(text).map(Value::from),
                _ => whole(value).map(Value::from).ok_or_else(|| "it must be a number of bytes, or a text such as 4G".to_owned()),
            },
            Kind::Text | Kind::Path => {
                let text = text().ok_or_else(|| "it must be a text".to_owned())?;
                match self.texts {
                    Some((holds, allowed)) if !holds(&text) => Err(allowed.to_owned()),
                    _ => Ok(Value::String(text)),
                }
            }
            Kind::Word => {
                let text = text().unwrap_or_default();
                if self.words.iter().any(|word| word.name == text) {
                    return Ok(Value::String(text));
                }
                let all = self.words.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(", ");
                let near = nearest(&text, self.words.iter().map(|w| w.name.as_str()));
                Err(format!("it must be one of {all}{}", near.map_or_else(String::new, |n| format!(" (did you mean {n}?)"))))
            }
        }
    }
}

fn whole(value: &Value) -> Option<u64> {
    // 2^53: beyond it, a floating-point number no longer tells whole numbers apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let exact = |x: f64| (x.fract() == 0.0 && (0.0..=EXACT).contains(&x)).then_some(x as u64);
    value.as_u64().or_else(|| value.as_f64().filter(|_| value.is_f64()).and_then(exact)).or_else(|| value.as_str()?.trim().parse().ok())
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        other => return Err(format!("`{other}` is no unit; use K, M, G or T")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is no size; write it like 4G"))?;
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too large"))
}

/// What somebody may have meant.
pub(crate) fn nearest<'a>(word: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Below this likeness two names have only a few letters in common.
    const ALIKE: f64 = 0.8;
    let likeness = |name: &str| strsim::jaro_winkler(word, name);
    all.map(|name| (likeness(name), name)).filter(|(alike, _)| *alike > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// The numbers that options allow.
pub(crate) mod allowed {
    use super::Bounds;
    use std::time::Duration;

    pub const POSITIVE: Bounds = Bounds { holds: |x| x > 0.0 && x.is_finite(), said: "it must be a positive number" };
    pub const NOT_NEGATIVE: Bounds = Bounds { holds: |x| x >= 0.0 && x.is_finite(), said: "it must be zero or a positive number" };
    pub const FOLDS: Bounds = Bounds { holds: |x| (2.0..=1000.0).contains(&x), said: "it must be between 2 and 1000" };
    pub const DISCOUNT: Bounds = Bounds { holds: |x| (0.0..1.0).contains(&x), said: "it must be at least 0 and below 1, such as 0.95" };
    pub const SHARE: Bounds = Bounds { holds: |x| x > 0.0 && x <= 1.0, said: "it must be above 0 and at most 1" };
    pub const SECONDS: Bounds = Bounds { holds: |x| Duration::try_from_secs_f64(x).is_ok(), said: "it must be a number of seconds" };
    pub const DRAWS: Bounds = Bounds { holds: |x| x != 1.0, said: "at least 2 draws are needed, 50 are usual" };
    pub const SOME: Bounds = Bounds { holds: |x| x >= 1.0, said: "at least one is needed" };
    pub const METASTATES: Bounds = Bounds { holds: |x| x >= 1.0, said: "at least one meta-state is needed" };
    pub const FRAMES: Bounds = Bounds { holds: |x| x >= 1.0, said: "a step stands for at least one frame" };
    pub const LAGS: Bounds = Bounds { holds: |x| x >= 1.0, said: "a lag is at least 1" };
}
