//! A second label of each record, beside the two ends of its move: the slice it belongs to (`--slice`), the action that was taken (`--action`).

use std::collections::HashMap;
use std::str::FromStr;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{DatePart, cast, date_part};
use arrow::datatypes::{DataType, Int32Type, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, Offset, TimeDelta, TimeZone};
use metastate::{Csr, Label, StateIndex};

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::filter::time;
use crate::labels::{LabelSet, MISSING};
use crate::table::Batch;

/// What is read off a column: its values as they are, or a part of its dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    /// The column.
    pub column: String,
    /// The part of its dates; none for the values themselves.
    pub part: Option<PartOfDate>,
}

/// A part of a date, in the zone that the column is marked with and as its text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartOfDate {
    /// 0 to 23.
    Hour,
    /// 1 is Monday, 7 is Sunday.
    Weekday,
    /// 1 to 12.
    Month,
    /// The day, as `2015-12-01`.
    Date,
}

const PARTS: [(PartOfDate, &str); 4] =
    [(PartOfDate::Hour, "hour"), (PartOfDate::Weekday, "weekday"), (PartOfDate::Month, "month"), (PartOfDate::Date, "date")];

impl PartOfDate {
    /// The word for it.
    pub fn name(self) -> &'static str {
        PARTS.iter().find(|(part, _)| *part == self).map_or("", |(_, name)| name)
    }
}

impl FromStr for Expression {
    type Err = String;

    /// `COL`, or `hour(COL)`, `weekday(COL)`, `month(COL)`, `date(COL)`; a column of unusual name stands in double quotes.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let unquoted = |t: &str| match t.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
            Some(inner) if !inner.is_empty() => inner.to_owned(),
            _ => t.to_owned(),
        };
        let text = text.trim();
        let call = text.strip_suffix(')').and_then(|t| t.split_once('('));
        let Some((word, inner)) = call.filter(|(word, _)| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic())) else {
            if text.is_empty() {
                return Err("no column is named; give COL, hour(COL), weekday(COL), month(COL) or date(COL)".to_owned());
            }
            return Ok(Expression { column: unquoted(text), part: None });
        };
        let part = PARTS.iter().find(|(_, name)| name.eq_ignore_ascii_case(word)).map(|(part, _)| *part);
        match (part, inner.trim()) {
            (None, _) => Err(format!(
                "`{word}` is none of hour, weekday, month, date; a column that is called `{text}` stands in double quotes: '\"{text}\"'"
            )),
            (Some(_), "") => Err(format!("`{word}` names no column; give {word}(COL)")),
            (part, inner) => Ok(Expression { column: unquoted(inner), part }),
        }
    }
}

impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.part {
            None => write!(f, "{}", self.column),
            Some(part) => write!(f, "{}({})", part.name(), self.column),
        }
    }
}

impl Expression {
    /// The numbers of the labels of a batch, [`MISSING`] where a record has none.
    pub(crate) fn ids(&self, batch: &Batch<'_>, slot: usize, labels: &mut LabelSet) -> Result<Vec<u32>> {
        let Some(part) = self.part else { return labels.ids(batch, slot, &self.column) };
        let failed = |e: String| {
            IngestError::new(Code::Type, format!("{self} cannot be computed from this column ({e})"))
                .file(batch.file)
                .column(&self.column)
                .remedy("name a column of dates or times, or of texts such as 2015-12-01 08:30:00")
        };
        let moments = self.moments(batch, slot)?;
        let get = |part: DatePart| -> Result<Vec<Option<i32>>> {
            let values = date_part(&moments, part).map_err(|e| failed(e.to_string()))?;
            Ok(values.as_primitive::<Int32Type>().iter().collect())
        };
        let whole = |values: Vec<Option<i32>>, labels: &mut LabelSet| {
            values.into_iter().map(|v| v.map_or(MISSING, |v| labels.integer(i64::from(v)))).collect()
        };
        Ok(match part {
            PartOfDate::Hour => whole(get(DatePart::Hour)?, labels),
            PartOfDate::Weekday => whole(get(DatePart::DayOfWeekMonday1)?, labels),
            PartOfDate::Month => whole(get(DatePart::Month)?, labels),
            PartOfDate::Date => {
                let (years, months, days) = (get(DatePart::Year)?, get(DatePart::Month)?, get(DatePart::Day)?);
                let mut known: HashMap<(i32, i32, i32), u32> = HashMap::new();
                let mut id = |day: (i32, i32, i32)| {
                    *known.entry(day).or_insert_with(|| labels.text(&format!("{:04}-{:02}-{:02}", day.0, day.1, day.2)))
                };
                (0..years.len())
                    .map(|i| match (years[i], months[i], days[i]) {
                        (Some(year), Some(month), Some(day)) => id((year, month, day)),
                        _ => MISSING,
                    })
                    .collect()
            }
        })
    }

    /// The column as times on the clock of its own zone, without the zone.
    fn moments(&self, batch: &Batch<'_>, slot: usize) -> Result<ArrayRef> {
        let array = &batch.columns[slot];
        let failed = |why: String| {
            IngestError::new(Code::Type, why)
                .file(batch.file)
                .column(&self.column)
                .remedy("name a column of dates or times, or of texts such as 2015-12-01 08:30:00")
        };
        match array.data_type() {
            DataType::Utf8 => self.read_texts(batch, array),
            DataType::Dictionary(_, value) if **value == DataType::Utf8 => {
                let plain = cast(array, &DataType::Utf8).map_err(|e| failed(e.to_string()))?;
                self.read_texts(batch, &plain)
            }
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None) => Ok(array.clone()),
            DataType::Timestamp(_, Some(zone)) => on_the_clock(array, zone).map_err(failed),
            other => Err(failed(format!("{self} needs dates or times, and this column is {other}"))),
        }
    }

    /// Texts are taken as they are written: `08:30+01:00` is half past eight.
    fn read_texts(&self, batch: &Batch<'_>, array: &ArrayRef) -> Result<ArrayRef> {
        let mut out = arrow::array::TimestampMicrosecondArray::builder(array.len());
        for (i, text) in array.as_string::<i32>().iter().enumerate() {
            match text.map(str::trim).filter(|t| !t.is_empty()) {
                None => out.append_null(),
                Some(text) => match clock(without_offset(text)) {
                    Some(t) => out.append_value(t),
                    None => {
                        let e = IngestError::new(Code::Number, format!("this is not a date or time, so {self} cannot be computed from it"));
                        let remedy = format!(
                            "dates are written 2015-12-01 or 2015-12-01 08:30:00; leave such rows out with --where \"{} <> '{}'\"",
                            self.column,
                            text.chars().take(20).collect::<String>()
                        );
                        return Err(batch.at(e.value(text).remedy(remedy), i, &self.column));
                    }
                },
            }
        }
        Ok(std::sync::Arc::new(out.finish()))
    }
}

/// A date, or a date and a time; the seconds may be left away.
fn clock(text: &str) -> Option<i64> {
    time(text).or_else(|| (text.matches(':').count() == 1).then(|| time(&format!("{text}:00"))).flatten())
}

/// A time without the `Z`, `+01:00` or `-0500` behind it.
fn without_offset(text: &str) -> &str {
    let Some(clock) = text.find(':') else { return text };
    match text[clock..].find(['Z', 'z', '+', '-']) {
        Some(at) => text[..clock + at].trim_end(),
        None => text,
    }
}

/// What clocks in the zone show.
fn on_the_clock(array: &ArrayRef, zone: &str) -> std::result::Result<ArrayRef, String> {
    let wide = DataType::Timestamp(TimeUnit::Microsecond, None);
    // Casting from a zone to none keeps the moment in UTC, whatever the unit.
    let utc = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())))
        .and_then(|a| cast(&a, &wide))
        .map_err(|e| e.to_string())?;
    let plain = utc.as_primitive::<TimestampMicrosecondType>();
    if zone.eq_ignore_ascii_case("utc") || zone == "Z" {
        return Ok(utc);
    }
    let shifted: arrow::array::TimestampMicrosecondArray = if let Some(fixed) = offset(zone) {
        plain.iter().map(|t| t.and_then(|t| t.checked_add(fixed.num_microseconds()?))).collect()
    } else {
        let zone: chrono_tz::Tz = zone.parse().map_err(|_| format!("its zone `{zone}` is not known"))?;
        // At the ends of the calendar the clock of a zone may show a time that there is no number for.
        let local = |t: i64| {
            let utc = DateTime::from_timestamp_micros(t)?.naive_utc();
            Some(utc.checked_add_offset(zone.offset_from_utc_datetime(&utc).fix())?.and_utc().timestamp_micros())
        };
        plain.iter().map(|t| t.and_then(local)).collect()
    };
    Ok(std::sync::Arc::new(shifted))
}

/// `+05:30`, `-0800` or `+01`.
fn offset(zone: &str) -> Option<TimeDelta> {
    let (sign, digits) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (digits.parse::<i64>().ok()?, 0),
        4 => (digits.get(..2)?.parse::<i64>().ok()?, digits.get(2..)?.parse::<i64>().ok()?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then(|| TimeDelta::minutes(sign * (60 * hours + minutes)))
}

/// Which end of a move the second label joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A row of the counts is a state and a label: an action is taken where one is.
    Rows,
    /// A column of the counts is a label and a state: a move arrives at a time.
    Columns,
}

/// A second label that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondLabel {
    /// The option that asks, without its dashes: `slice`, `action`. Records without the label are counted as `slice-missing`.
    pub option: &'static str,
    /// Where it stands.
    pub expression: Expression,
    /// Which end it joins.
    pub side: Side,
    /// A column of numbers, such as rewards, that is summed up for each state and label; for [`Side::Rows`].
    pub value: Option<String>,
}

/// Sums of a column of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Records, each with its weight.
    pub weight: f64,
    /// Weight times number.
    pub sum: f64,
    /// Weight times number squared.
    pub squares: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, weight: f64, x: f64) {
        self.merge(&Tally { weight, sum: weight * x, squares: weight * x * x });
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.weight += other.weight;
        self.sum += other.sum;
        self.squares += other.squares;
    }
}

/// Counts with the second label told apart. Without it they are [`CountedStates::counts`](crate::CountedStates), whose states these are.
#[derive(Debug, Clone)]
pub struct SecondCounts {
    /// The second labels that are left, in their order.
    pub labels: StateIndex,
    /// Which end they join.
    pub side: Side,
    /// Label and state of each joined row or column, by numbers: columns by label then state, rows by state then label. Only those that were met.
    pub pairs: Vec<(u32, u32)>,
    /// Rows are states and columns are `pairs`, or rows are `pairs` and columns are states.
    pub counts: Csr,
    /// Sums of the column of numbers for each of `pairs`.
    pub values: Option<Vec<Tally>>,
}

/// Numbers for pairs of a second label and a state, in the order of their first appearance.
#[derive(Default)]
pub(crate) struct Joined {
    pub labels: LabelSet,
    numbers: HashMap<(u32, u32), u32, ahash::RandomState>,
    pub pairs: Vec<(u32, u32)>,
    pub values: Vec<Tally>,
}

impl Joined {
    /// The number of a pair.
    #[inline]
    pub fn number(&mut self, label: u32, state: u32) -> u32 {
        let next = self.pairs.len() as u32;
        let number = *self.numbers.entry((label, state)).or_insert(next);
        if number == next {
            self.pairs.push((label, state));
        }
        number
    }

    /// Adds to the sums of a pair.
    pub fn tally(&mut self, number: u32, tally: &Tally) {
        if self.values.len() <= number as usize {
            self.values.resize(number as usize + 1, Tally::default());
        }
        self.values[number as usize].merge(tally);
    }

    /// Takes in what another has found, whose states have these numbers here; where its pairs are now.
    pub fn take(&mut self, other: &Joined, states: &[u32]) -> Vec<u32> {
        let labels: Vec<u32> = other.labels.labels.iter().map(|l| self.labels.label(l)).collect();
        let numbers: Vec<u32> = other.pairs.iter().map(|&(l, s)| self.number(labels[l as usize], states[s as usize])).collect();
        other.values.iter().zip(&numbers).for_each(|(tally, &number)| self.tally(number, tally));
        numbers
    }
}

/// The same over all records, before any state is left out.
pub(crate) struct Second {
    pub side: Side,
    pub labels: Vec<Label>,
    pub pairs: Vec<(u32, u32)>,
    pub values: Option<Vec<Tally>>,
}

impl Second {
    /// The two states behind a counted pair.
    #[inline]
    pub fn ends(&self, from: u32, to: u32) -> (u32, u32) {
        match self.side {
            Side::Rows => (self.pairs[from as usize].1, to),
            Side::Columns => (from, self.pairs[to as usize].1),
        }
    }
}
