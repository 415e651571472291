//! Counting where the data lie: the one query whose result are the triplets that the reader would count.
//!
//! Rows are grouped by what they hold and named afterwards, so that texts are made once a pair and not once a row. Where an engine cannot
//! give the reader's counts, the query ends with a sentence, or none is written: never with other counts.

mod counted;
mod dialect;
mod source;
mod trips;
mod walks;

pub(crate) use counted::Counted;
pub use dialect::Dialect;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::settings::{As, InputSettings};
use source::Table;

/// What the query is to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// `from, to, count`, all filters applied.
    Triplets,
    /// `from, to, count, rows, left_out`: one line more for every reason why rows were left out. The filters on states are the reader's.
    WithLedger,
}

/// The query for these tables (or files, where the engine reads them).
pub fn query(inputs: &[String], settings: &InputSettings, dialect: Dialect, answer: Answer) -> Result<String> {
    crate::assemble::check_shares(settings)?;
    let what = kind(settings)?;
    if let Some(second) = &settings.second {
        let option = second.option;
        return Err(IngestError::new(Code::Option, format!("there is no query that takes --{option} into account"))
            .value(second.expression.to_string())
            .remedy("read the rows themselves, without --print-sql"));
    }
    crate::guess::check_options_of_rows(what, &inputs.join(", "), settings)?;
    let body = match what {
        As::Trips => trips::write(inputs, settings, None, dialect, answer)?,
        As::Counts => trips::write(inputs, settings, Some(["from", "to", "count"]), dialect, answer)?,
        _ => walks::write(inputs, settings, dialect, answer)?,
    };
    Ok(format!("-- Transitions by pair of states, for {}. Times are those of UTC.\n{body}", dialect.name()))
}

pub(crate) fn kind(settings: &InputSettings) -> Result<As> {
    let coordinates = settings.coordinate_columns().iter().any(|(_, c)| c.is_some());
    let walks = settings.state.is_some() || settings.id.is_some() || settings.time.is_some();
    match settings.as_ {
        Some(As::Matrix) => Err(IngestError::new(Code::Option, "a transition matrix has nothing to count, so there is no query for it")
            .remedy("leave out --as matrix")),
        Some(given) => Ok(given),
        None if coordinates || settings.from.is_some() || settings.to.is_some() => Ok(As::Trips),
        None if walks => Ok(As::Trajectories),
        None => Err(IngestError::new(Code::As, "it is not clear what this table holds")
            .remedy("name columns: --from and --to for trips, --state, --id and --time for trajectories, or say --as counts")),
    }
}

/// Lines of a query, written in the order in which an engine reads them.
struct Writer {
    dialect: Dialect,
    steps: Vec<(String, String)>,
}

impl Writer {
    fn new(dialect: Dialect) -> Self {
        Writer { dialect, steps: Vec::new() }
    }

    /// Another named step.
    fn step(&mut self, name: &str, select: impl Into<String>) {
        self.steps.push((name.to_owned(), select.into()));
    }

    /// The names of the result's columns, in their quotes.
    fn names(&self) -> [String; 3] {
        ["from", "to", "count"].map(|n| self.dialect.quoted(n))
    }

    /// The states that `--min-share` and `--max-self-share` leave, then the end. `last` is the step with the named triplets.
    fn finish(mut self, last: &str, settings: &InputSettings, answer: Answer) -> String {
        let [from, to, count] = self.names();
        if answer == Answer::WithLedger {
            let rows = self.dialect.quoted("rows");
            return self.end(&format!("SELECT {from}, {to}, {count}, ms_rows AS {rows}, left_out FROM {last}"));
        }
        let mut last = last.to_owned();
        if settings.min_share > 0.0 {
            let least = self.dialect.number(settings.min_share);
            self.step(
                "ms_frequent",
                format!("SELECT {from} AS state FROM {last} GROUP BY {from}\n  HAVING SUM({count}) >= {least} * (SELECT SUM({count}) FROM {last})"),
            );
            let kept = |end: &str| format!("{end} IN (SELECT state FROM ms_frequent)");
            self.step("ms_kept", format!("SELECT {from}, {to}, {count} FROM {last}\n  WHERE {} AND {}", kept(&from), kept(&to)));
            last = "ms_kept".to_owned();
        }
        if let Some(most) = settings.max_self_share {
            let most = self.dialect.number(most);
            self.step(
                "ms_stuck",
                format!(
                    "SELECT {from} AS state FROM {last} GROUP BY {from}\n  HAVING SUM(CASE WHEN {from} = {to} THEN {count} ELSE 0 END) > {most} * SUM({count})"
                ),
            );
            let free = |end: &str| format!("{end} NOT IN (SELECT state FROM ms_stuck)");
            self.step("ms_moving", format!("SELECT {from}, {to}, {count} FROM {last}\n  WHERE {} AND {}", free(&from), free(&to)));
            last = "ms_moving".to_owned();
        }
        self.end(&format!("SELECT {from}, {to}, {count} FROM {last}"))
    }

    fn end(self, select: &str) -> String {
        let steps: Vec<String> = self.steps.iter().map(|(name, select)| format!("{name} AS (\n  {select}\n)")).collect();
        format!("WITH {}\n{select}\n", steps.join(",\n"))
    }
}

/// `--where` in the engine's words.
fn condition(settings: &InputSettings, table: &Table) -> Result<Option<String>> {
    let Some(text) = &settings.where_ else { return Ok(None) };
    Ok(Some(crate::filter::Filter::parse(text)?.write(table.dialect, table.texts)))
}

#[cfg(test)]
mod tests;
