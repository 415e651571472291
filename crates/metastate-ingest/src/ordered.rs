//! Trajectories in a table with an id or a time: rows are brought into order first.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use metastate::{Ledger, LedgerUnit};
use rayon::prelude::*;

use crate::codes::Code;
use crate::error::{IngestError, Result};
use crate::filter::{Filter, time as parse_time};
use crate::labels::{LabelSet, MISSING};
use crate::progress::{Phase, ReadProgress, tell};
use crate::settings::InputSettings;
use crate::table::{Batch, Tables};
use crate::trajectories::{Reading, is_unassigned};

/// Bytes that a frame takes while it waits to be put in order.
const BYTES_A_FRAME: u64 = std::mem::size_of::<Frame>() as u64;

/// Which columns are what.
pub(crate) struct Plan<'p> {
    pub state: usize,
    pub id: Option<usize>,
    pub time: Option<usize>,
    pub filter: Option<(Filter, Vec<usize>)>,
    pub names: &'p [String],
}

/// What one unit of work gives: a state for each frame, [`MISSING`] for a gap.
#[derive(Default)]
pub(crate) struct Unit {
    pub file: usize,
    pub labels: LabelSet,
    pub states: Vec<u32>,
    ids: LabelSet,
    id_of: Vec<u32>,
    times: Vec<i64>,
    kind: Option<TimeKind>,
    pub ledger: Ledger,
}

impl Unit {
    pub fn of(file: usize) -> Self {
        Unit { file, ..Unit::default() }
    }
}

/// Times are compared as integers; fractions by the order of their bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TimeKind {
    Integer,
    Fraction,
    /// Microseconds since 1970.
    Moment,
    /// Nanoseconds since 1970, where the file has them.
    FineMoment,
}

impl Plan<'_> {
    /// The frames of a batch. Rows that the condition leaves out stay as gaps: closing them would invent transitions.
    pub fn take(&self, batch: &Batch<'_>, unit: &mut Unit) -> Result<()> {
        let mut states = unit.labels.ids(batch, self.state, &self.names[self.state])?;
        let minus_one = unit.labels.labels.iter().position(is_unassigned).map(|k| k as u32);
        let keep = self.filter.as_ref().map(|(filter, slots)| filter.keep(batch, slots)).transpose()?;
        let ids = self.id.map(|k| unit.ids.ids(batch, k, &self.names[k])).transpose()?;
        let times = self.time.map(|k| times(batch, k, &self.names[k])).transpose()?;
        let note = |ledger: &mut Ledger, reason: &str, kind: LedgerUnit, i: usize| batch.leave_out(ledger, reason, kind, 1.0, i);
        for (i, state) in states.iter_mut().enumerate() {
            if keep.as_ref().is_some_and(|k| !k.value(i)) {
                *state = MISSING;
                note(&mut unit.ledger, "where-not-true", LedgerUnit::Rows, i);
            } else if *state == MISSING || Some(*state) == minus_one {
                *state = MISSING;
                note(&mut unit.ledger, "unassigned-frame", LedgerUnit::Frames, i);
            }
        }
        if ids.is_none() && times.is_none() {
            unit.states.append(&mut states);
            return Ok(());
        }
        let (time_values, kind) = times.unwrap_or_else(|| (vec![Some(0); batch.rows], TimeKind::Integer));
        merge_kind(unit, kind, batch, self.time.map_or("", |k| &self.names[k]))?;
        let fraction = unit.kind == Some(TimeKind::Fraction) && kind == TimeKind::Integer;
        for i in 0..batch.rows {
            let id = ids.as_ref().map_or(unit.file as u32, |list| list[i]);
            // A row without a place in any trajectory cannot even be a gap.
            if id == MISSING {
                note(&mut unit.ledger, "id-missing", LedgerUnit::Rows, i);
                continue;
            }
            let Some(t) = time_values[i] else {
                note(&mut unit.ledger, "time-missing", LedgerUnit::Rows, i);
                continue;
            };
            unit.id_of.push(id);
            unit.times.push(if fraction { ordered_bits(t as f64) } else { t });
            unit.states.push(states[i]);
        }
        Ok(())
    }
}

/// Whole numbers become fractions when fractions turn up in the same column.
fn merge_kind(unit: &mut Unit, kind: TimeKind, batch: &Batch<'_>, name: &str) -> Result<()> {
    unit.kind = Some(match (unit.kind, kind) {
        (None, k) => k,
        (Some(a), b) if a == b => a,
        (Some(TimeKind::Integer), TimeKind::Fraction) => {
            unit.times.iter_mut().for_each(|t| *t = ordered_bits(*t as f64));
            TimeKind::Fraction
        }
        (Some(TimeKind::Fraction), TimeKind::Integer) => TimeKind::Fraction,
        _ => return Err(mixed().file(batch.file).column(name)),
    });
    Ok(())
}

pub(crate) fn mixed() -> IngestError {
    IngestError::new(Code::Type, "this column holds times of different kinds (numbers, dates, nanoseconds), so it has no order")
        .remedy("write all times in one way")
}

/// The order of floating numbers as the order of integers.
pub(crate) fn ordered_bits(x: f64) -> i64 {
    let bits = (if x == 0.0 { 0.0 } else { x }).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

pub(crate) type Times = (Vec<Option<i64>>, TimeKind);

pub(crate) fn times(batch: &Batch<'_>, slot: usize, name: &str) -> Result<Times> {
    let array = &batch.columns[slot];
    let unusable = || {
        IngestError::new(Code::Type, format!("a column of type {} cannot be a time", array.data_type()))
            .file(batch.file)
            .column(name)
            .remedy("use numbers, dates or texts of these")
    };
    let whole = |array: &dyn Array| -> Vec<Option<i64>> { array.as_primitive::<Int64Type>().iter().collect() };
    match array.data_type() {
        DataType::Utf8 => texts(batch, array.as_string::<i32>().iter(), name),
        DataType::Dictionary(..) => {
            let plain = cast(array, &DataType::Utf8).map_err(|_| unusable())?;
            texts(batch, plain.as_string::<i32>().iter(), name)
        }
        kind if kind.is_integer() && *kind != DataType::UInt64 => {
            Ok((whole(&cast(array, &DataType::Int64).map_err(|_| unusable())?), TimeKind::Integer))
        }
        kind if kind.is_numeric() => {
            let wide = cast(array, &DataType::Float64).map_err(|_| unusable())?;
            let values = wide.as_primitive::<Float64Type>().iter().map(|x| x.filter(|x| !x.is_nan()).map(ordered_bits)).collect();
            Ok((values, TimeKind::Fraction))
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let (moments, kind) = match array.data_type() {
                DataType::Timestamp(TimeUnit::Nanosecond, _) => (array.clone(), TimeKind::FineMoment),
                _ => (cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None)).map_err(|_| unusable())?, TimeKind::Moment),
            };
            Ok((whole(&cast(&moments, &DataType::Int64).map_err(|_| unusable())?), kind))
        }
        _ => Err(unusable()),
    }
}

/// Whole numbers, then fractions, then dates: the first kind that reads all texts.
fn texts<'t>(batch: &Batch<'_>, texts: impl Iterator<Item = Option<&'t str>>, name: &str) -> Result<Times> {
    let all: Vec<Option<&str>> = texts.map(|t| t.map(str::trim).filter(|t| !t.is_empty())).collect();
    let read = |f: &dyn Fn(&str) -> Option<i64>| -> Option<Vec<Option<i64>>> {
        all.iter().map(|t| t.map(f).map_or(Some(None), |v| v.map(Some))).collect()
    };
    if let Some(values) = read(&|t| t.parse().ok()) {
        return Ok((values, TimeKind::Integer));
    }
    let fraction = |t: &str| t.parse::<f64>().ok().filter(|x| !x.is_nan()).map(ordered_bits);
    if let Some(values) = read(&fraction) {
        return Ok((values, TimeKind::Fraction));
    }
    if let Some(values) = read(&parse_time) {
        return Ok((values, TimeKind::Moment));
    }
    let numeric = all.iter().flatten().next().is_some_and(|t| fraction(t).is_some());
    let bad = all.iter().position(|t| t.is_some_and(|t| if numeric { fraction(t).is_none() } else { parse_time(t).is_none() }));
    let i = bad.unwrap_or(0);
    let e = IngestError::new(Code::Number, "this is neither a number nor a date, as a time must be").value(all[i].unwrap_or(""));
    Err(batch.at(e.remedy("write times as numbers, or as 2015-12-01 08:30:00"), i, name))
}

/// One frame waiting to be put in order.
#[derive(Clone, Copy)]
struct Frame {
    time: i64,
    id: u32,
    state: u32,
}

/// All frames, as far as they are read.
#[derive(Default)]
struct OrderedFrames {
    list: Vec<Frame>,
    ids: LabelSet,
    kind: Option<TimeKind>,
}

impl OrderedFrames {
    /// Takes in the frames of one unit.
    fn add(&mut self, unit: Unit, plan: &Plan<'_>, settings: &InputSettings, reading: &mut Reading) -> Result<()> {
        let states: Vec<u32> = unit.labels.labels.iter().map(|l| reading.states.label(l)).collect();
        let numbers: Vec<u32> = unit.ids.labels.iter().map(|l| self.ids.label(l)).collect();
        reading.window.ledger.merge(&unit.ledger);
        let convert = self.merge_kind(unit.kind, plan)?;
        let most = settings.memory_limit.map_or(usize::MAX, |l| usize::try_from(l / BYTES_A_FRAME).unwrap_or(usize::MAX));
        if self.list.len() + unit.states.len() > most {
            return Err(IngestError::new(
                Code::TooLarge,
                format!("sorting more than {} rows would exceed the memory limit", self.list.len()),
            )
            .remedy("raise --memory-limit, or sort the file by id and time and give one file a trajectory"));
        }
        for ((&id, &time), &state) in unit.id_of.iter().zip(&unit.times).zip(&unit.states) {
            self.list.push(Frame {
                time: if convert { ordered_bits(time as f64) } else { time },
                id: if plan.id.is_some() { numbers[id as usize] } else { id },
                state: if state == MISSING { MISSING } else { states[state as usize] },
            });
        }
        Ok(())
    }

    /// Brings times of two kinds together, as [`merge_kind`] does within a unit; whether those of the new unit must become fractions.
    fn merge_kind(&mut self, new: Option<TimeKind>, plan: &Plan<'_>) -> Result<bool> {
        match (self.kind, new) {
            (None, kind) => {
                self.kind = kind;
                Ok(false)
            }
            (Some(TimeKind::Integer), Some(TimeKind::Fraction)) => {
                self.list.iter_mut().for_each(|f| f.time = ordered_bits(f.time as f64));
                self.kind = new;
                Ok(false)
            }
            (Some(TimeKind::Fraction), Some(TimeKind::Integer)) => Ok(true),
            (Some(a), Some(b)) if a != b => Err(mixed().column(plan.time.map_or("", |k| &plan.names[k]))),
            _ => Ok(false),
        }
    }

    /// The name of a trajectory, for messages.
    fn name(&self, id: u32) -> String {
        match self.ids.labels.get(id as usize) {
            Some(label) => format!("trajectory {label}"),
            None => format!("file {}", id + 1),
        }
    }

    /// Puts them in the order of id and time.
    fn sort(&mut self, plan: &Plan<'_>, reading: &mut Reading) {
        note_disorder(&self.list, plan, reading);
        self.list.par_sort_by_key(|f| (f.id, f.time)); // stable: equal times stay in the order of the file
        let equal = |w: &&[Frame]| w[0].id == w[1].id && w[0].time == w[1].time;
        let ties = if plan.time.is_some() { self.list.windows(2).filter(equal).count() as u64 } else { 0 };
        if ties > 0 {
            reading.window.ledger.add("equal-times-kept-in-file-order", LedgerUnit::Frames, ties, 0.0, [] as [String; 0]);
            reading.hints.push(format!("{ties} rows have the same id and time as the row before; they were kept in the order of the file"));
        }
    }

    /// Counts the transitions of each trajectory, piece by piece between gaps.
    fn count(&self, reading: &mut Reading) -> Result<()> {
        let mut last = None;
        for frame in &self.list {
            if last.is_some_and(|id| id != frame.id) {
                reading.window.end(|| last.map_or_else(String::new, |id| self.name(id)));
            }
            last = Some(frame.id);
            if frame.state == MISSING {
                reading.window.end(|| self.name(frame.id));
            } else {
                reading.window.push(frame.state)?;
            }
        }
        reading.window.end(|| last.map_or_else(String::new, |id| self.name(id)));
        Ok(())
    }
}

/// Reads all rows, sorts them by id and time, and counts.
pub(crate) fn read(
    tables: &mut Tables<'_>,
    plan: &Plan<'_>,
    settings: &InputSettings,
    reading: &mut Reading,
    progress: &mut dyn ReadProgress,
) -> Result<()> {
    let mut frames = OrderedFrames::default();
    let rows = tables.scan(
        progress,
        |feed, file| {
            let mut unit = Unit::of(file);
            feed(&mut |batch| plan.take(batch, &mut unit))?;
            Ok(unit)
        },
        |units| units.into_iter().try_for_each(|unit| frames.add(unit, plan, settings, reading)),
    )?;
    reading.frames += rows;
    tell(progress, Phase::Sorting, rows, 0, 0)?;
    frames.sort(plan, reading);
    frames.count(reading)
}

/// Rows that come before an earlier row of their trajectory in time.
fn note_disorder(frames: &[Frame], plan: &Plan<'_>, reading: &mut Reading) {
    if plan.time.is_none() {
        return;
    }
    let most = frames.iter().map(|f| f.id).max().map_or(0, |id| id as usize + 1);
    let mut latest = vec![i64::MIN; most];
    let mut disorder = 0u64;
    for f in frames {
        let seen = &mut latest[f.id as usize];
        disorder += u64::from(f.time < *seen);
        *seen = f.time.max(*seen);
    }
    if disorder > 0 {
        reading.window.ledger.add("out-of-time-order-sorted", LedgerUnit::Frames, disorder, 0.0, [] as [String; 0]);
        reading.hints.push(format!("{disorder} rows stood later in the file than in time; they were sorted"));
    }
}
