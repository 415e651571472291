//! The parser of the command, built from the catalogue of options.

use clap::builder::{PossibleValue, PossibleValuesParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use metastate_options::{self as options, Common, Door, Entry, Given, Kind, Many, Options};
use metastate_tasks::error::Result;
use serde_json::Value;

/// Wider lines are hard to read.
const MOST_COLUMNS: usize = 110;

/// `metastate` with all its commands.
pub fn program() -> Command {
    root("metastate")
        .about(options::ABOUT)
        .after_help(options::EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(options::commands().iter().map(|c| with_options(Command::new(c.name), c)))
}

/// A program of its own that does what one command does.
pub fn program_of(name: &'static str, command: &'static options::Command) -> Command {
    with_options(root(name), command)
}

fn root(name: &'static str) -> Command {
    let common = Common::entries().iter().map(|entry| argument(entry, None).global(true));
    Command::new(name).version(env!("CARGO_PKG_VERSION")).max_term_width(MOST_COLUMNS).args(common)
}

fn with_options(made: Command, command: &'static options::Command) -> Command {
    let made = made.about(command.about).after_help(command.examples);
    if !command.commands.is_empty() {
        let inner = command.commands.iter().map(|c| with_options(Command::new(c.name), c));
        return made.subcommand_required(true).arg_required_else_help(true).subcommands(inner);
    }
    made.args(command.groups.iter().flat_map(|group| group.entries.iter().map(|entry| argument(entry, group.heading))))
}

fn argument(entry: &'static Entry, heading: Option<&'static str>) -> Arg {
    let mut arg = Arg::new(entry.name.as_str()).help(entry.help.as_str());
    if let Some(heading) = heading {
        arg = arg.help_heading(heading);
    }
    if !entry.positional {
        arg = arg.long(entry.name.as_str());
    }
    arg = arg.conflicts_with_all(entry.conflicts.iter().copied());
    arg = match entry.unless {
        Some(other) => arg.required_unless_present(other),
        None => arg.required(entry.required),
    };
    for other in &entry.requires {
        arg = arg.requires(*other);
    }
    if entry.kind == Kind::Flag {
        return arg.action(ArgAction::SetTrue);
    }
    arg = arg.value_name(entry.value_name).value_parser(parser(entry)).allow_hyphen_values(entry.allow_hyphens);
    arg = match entry.many {
        Many::One => arg.action(ArgAction::Set),
        Many::Repeated if entry.positional => arg.action(ArgAction::Append).num_args(1..),
        Many::Repeated | Many::Commas => arg.action(ArgAction::Append),
        Many::Following => arg.action(ArgAction::Append).num_args(1..),
        Many::FollowingOrNone => arg.action(ArgAction::Append).num_args(0..),
    };
    if matches!(entry.kind, Kind::Number | Kind::Integer) {
        // So that a negative number is refused with what is allowed, not as an unknown option.
        arg = arg.allow_negative_numbers(true);
    }
    if entry.kind == Kind::Path || entry.value_name == "INPUT" {
        arg = arg.value_hint(ValueHint::AnyPath);
    }
    match &entry.default {
        Some(default) => arg.default_value(default.as_str()),
        None => arg,
    }
}

/// Words are told to clap, which names them in the help and in completions. Other values are looked at by the catalogue; they stay texts here.
fn parser(entry: &'static Entry) -> ValueParser {
    if entry.kind == Kind::Word {
        let words = entry.words.iter().map(|word| PossibleValue::new(word.name.as_str()).help(word.help.as_str()));
        return PossibleValuesParser::new(words).into();
    }
    ValueParser::from(move |text: &str| entry.shaped(&Value::String(text.to_owned())).map(|_| text.to_owned()))
}

/// What was typed. Ends the process with a sentence where that cannot be read, and after `--help`.
pub fn typed(program: Command) -> Result<Given> {
    let matches = program.get_matches();
    let (mut name, mut inner) = (String::new(), &matches);
    while let Some((word, within)) = inner.subcommand() {
        name = format!("{name} {word}");
        inner = within;
    }
    // clap has found the command among those of the catalogue.
    options::find(&name).map_or_else(|| unreachable!("no command {name}"), |command| given(command, inner))
}

/// What was typed for a program of one command.
pub fn typed_of(name: &'static str, command: &'static options::Command) -> Result<Given> {
    given(command, &program_of(name, command).get_matches())
}

fn given(command: &'static options::Command, matches: &ArgMatches) -> Result<Given> {
    let mut given = Given::new(command, Door::Command);
    for entry in command.entries() {
        if matches.value_source(&entry.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let texts = || matches.get_many::<String>(&entry.name).into_iter().flatten().cloned().map(Value::String);
        let value = match (entry.kind, entry.many) {
            (Kind::Flag, _) => Value::Bool(true),
            (_, Many::One) => texts().next().unwrap_or_default(),
            _ => Value::Array(texts().collect()),
        };
        given.give(&entry.name, value)?;
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use metastate_options::{FitArgs, ForecastArgs, read_words, shell_words};

    #[test]
    fn clap_accepts_the_catalogue() {
        program().debug_assert();
    }

    #[test]
    fn clap_and_the_reader_of_recorded_commands_read_the_same() {
        let lines = [
            "--seed 3 fit a.csv b.csv --lambda-ratio 0.3 --as-in-paper --weight-power 0.5 --out o --bbox -1,2,3,4 --memory-limit 2K",
            "path - --as trajectories --points 6 --out=o --force --redundancy-absolute 1e-4 --quiet",
            "forecast r --from -a --from b --steps 1,2 --steps 7 --check x y --lags 3",
            "reproduce taxi --data a b --out o --quick",
            "simulate planted --states 20 --out p --seed 18446744073709551615",
            "compare a.csv --rank 3 --methods svd,nmf --out o -- --b.csv",
        ];
        for line in lines {
            let words = shell_words(line);
            let matches = program().try_get_matches_from(std::iter::once("metastate".to_owned()).chain(words.clone())).unwrap();
            let read = read_words(&words).unwrap();
            let mut inner = &matches;
            while let Some((_, within)) = inner.subcommand() {
                inner = within;
            }
            let parsed = given(read.command(), inner).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{read:?}"), "{line}");
        }
        let given = read_words(&shell_words("fit a --out o")).unwrap();
        assert_eq!(given.group::<FitArgs>().unwrap(), FitArgs::default());
        assert_eq!(ForecastArgs::default().lags, [1, 2, 5, 10]);
    }
}
