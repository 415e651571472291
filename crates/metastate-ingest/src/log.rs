//! Logs of controlled chains record by record: state, action, next state and reward, in the order of their episodes. Counting does not need the order and is done elsewhere; this is for
//! checks on held-out episodes.

use arrow::array::{Array, Float64Array};
use metastate::plan::{Log, Records};
use metastate::{Label, Ledger, LedgerUnit, StateIndex};
use rayon::prelude::*;

use crate::cells::{Grid, Place};
use crate::codes::Code;
use crate::columns::numbers;
use crate::error::{IngestError, Result};
use crate::filter::Filter;
use crate::labels::{LabelSet, MISSING, sorted_order};
use crate::ordered::{TimeKind, mixed, ordered_bits, times};
use crate::progress::{Phase, ReadProgress, tell};
use crate::settings::InputSettings;
use crate::source::{self, Source};
use crate::table::{Batch, Tables};
use crate::trips::{plan_filter, slot, where_true};

/// The columns that a log has beside those of a trip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogColumns {
    /// What was done.
    pub action: String,
    /// What was paid.
    pub reward: Option<String>,
    /// The episode; every record stands alone without it.
    pub id: Option<String>,
    /// The order within an episode; that of the rows without it.
    pub time: Option<String>,
}

/// Bytes that a record takes while it is read and put in order.
const BYTES_A_RECORD: u64 = 80;

/// Where the ends of a step stand.
enum Ends {
    Labels([usize; 2]),
    Points([usize; 4], Box<Grid>),
}

struct Plan {
    wanted: Vec<String>,
    ends: Ends,
    action: usize,
    reward: Option<usize>,
    id: Option<usize>,
    time: Option<usize>,
    filter: Option<(Filter, Vec<usize>)>,
}

/// What one unit of work gives.
#[derive(Default)]
struct Unit {
    states: LabelSet,
    actions: LabelSet,
    ids: LabelSet,
    steps: Vec<Step>,
    kind: Option<TimeKind>,
    ledger: Ledger,
}

#[derive(Clone, Copy)]
struct Step {
    id: u32,
    from: u32,
    action: u32,
    to: u32,
    time: i64,
    reward: f64,
}

/// Records with what is known about how they were read.
#[derive(Debug, Clone)]
pub struct Logged {
    /// The records, with their ledger.
    pub log: Log,
    /// Rows read.
    pub rows: u64,
    /// Rows that became records; with the ledger's they add up to `rows`.
    pub kept: u64,
    /// Things worth telling the user.
    pub hints: Vec<String>,
}

/// Reads files as a log. The columns of states are those of the settings.
pub fn read_log(inputs: &[String], settings: &InputSettings, columns: &LogColumns, progress: &mut dyn ReadProgress) -> Result<Logged> {
    read(&source::resolve(inputs)?, settings, columns, progress)
}

/// The same from sources that are open.
pub(crate) fn read(sources: &[Source], settings: &InputSettings, columns: &LogColumns, progress: &mut dyn ReadProgress) -> Result<Logged> {
    let plan = Plan::new(settings, columns)?;
    let stored: u64 = sources.iter().map(|s| s.bytes).sum();
    let mut tables = Tables::open(sources, &plan.wanted, settings.unpack_limit(stored), &settings.text)?;
    let most = settings.memory_limit.map_or(usize::MAX, |l| usize::try_from(l / BYTES_A_RECORD).unwrap_or(usize::MAX));
    let mut all = Unit::default();
    let rows = tables.scan(
        progress,
        |feed, _| {
            let mut unit = Unit::default();
            feed(&mut |batch| plan.take(batch, &mut unit))?;
            Ok(unit)
        },
        |units| units.into_iter().try_for_each(|unit| all.append(unit, &plan, most)),
    )?;
    tell(progress, Phase::Sorting, rows, 0, 0)?;
    if all.steps.is_empty() {
        return Err(crate::assemble::nothing_left(&all.ledger, rows, "rows", &sources[0].name));
    }
    if plan.id.is_some() {
        // Episodes by their names, so that nothing depends on the order of the rows.
        let mut place = vec![0; all.ids.labels.len()];
        sorted_order(&all.ids.labels).iter().enumerate().for_each(|(new, old)| place[*old as usize] = new as u32);
        all.steps.iter_mut().for_each(|s| s.id = place[s.id as usize]);
        all.steps.par_sort_by_key(|s| (s.id, s.time)); // stable: equal times stay in the order of the file
    }
    let kept = all.steps.len() as u64;
    let mut hints = std::mem::take(&mut tables.hints);
    if let Ends::Labels([from, to]) = &plan.ends
        && from == to
    {
        hints.push(format!("--from and --to name the same column `{}`, so that every step ends where it began", plan.wanted[*from]));
    }
    let log = all.into_log(&plan).map_err(|e| IngestError::from_core(e, Some(&sources[0].name)))?;
    Ok(Logged { log, rows, kept, hints })
}

impl Plan {
    fn new(settings: &InputSettings, columns: &LogColumns) -> Result<Self> {
        let cannot = [
            ("--weight", settings.weight.is_some()),
            ("--min-share", settings.min_share != 0.0),
            ("--max-self-share", settings.max_self_share.is_some()),
        ];
        if let Some((option, _)) = cannot.iter().find(|(_, given)| *given) {
            return Err(IngestError::new(Code::Option, format!("{option} cannot be used with --action"))
                .remedy("leave it out; every record counts once"));
        }
        let missing =
            |option: &str| IngestError::new(Code::Option, format!("{option} is missing")).remedy("a log needs --from, --action and --to");
        let mut wanted = Vec::new();
        let points = settings.coordinate_columns();
        let ends = if points.iter().any(|(_, c)| c.is_some()) {
            let mut slots = [0; 4];
            for (at, (option, column)) in slots.iter_mut().zip(points) {
                *at = slot(&mut wanted, column.as_ref().ok_or_else(|| missing(option))?);
            }
            Ends::Points(slots, Box::new(Grid::new(settings)?))
        } else {
            let from = settings.from.as_ref().ok_or_else(|| missing("--from"))?;
            let to = settings.to.as_ref().ok_or_else(|| missing("--to"))?;
            Ends::Labels([slot(&mut wanted, from), slot(&mut wanted, to)])
        };
        if columns.time.is_some() && columns.id.is_none() {
            return Err(IngestError::new(Code::Option, "--time orders the records of an episode, and --id is missing")
                .remedy("name the column of the episode with --id, or leave out --time"));
        }
        let mut also = |name: &Option<String>| name.as_ref().map(|n| slot(&mut wanted, n));
        let (reward, id, time) = (also(&columns.reward), also(&columns.id), also(&columns.time));
        let action = slot(&mut wanted, &columns.action);
        let filter = plan_filter(settings, &mut wanted)?;
        Ok(Plan { wanted, ends, action, reward, id, time, filter })
    }

    fn take(&self, batch: &Batch<'_>, unit: &mut Unit) -> Result<()> {
        let filtered = where_true(self.filter.as_ref(), batch, false, &mut unit.ledger)?;
        let batch = filtered.as_ref().unwrap_or(batch);
        let name = |k: usize| self.wanted[k].as_str();
        let (from, to) = self.ends(batch, unit)?;
        let action = unit.actions.ids(batch, self.action, name(self.action))?;
        let reward = self.reward.map(|k| rewards(batch, k, name(k))).transpose()?;
        let id = self.id.map(|k| unit.ids.ids(batch, k, name(k))).transpose()?;
        let time = self.time.map(|k| times(batch, k, name(k))).transpose()?;
        let kind = time.as_ref().map(|t| t.1);
        unit.kind = join(&mut unit.steps, unit.kind, kind, name(self.time.unwrap_or(0)))?;
        let widen = unit.kind == Some(TimeKind::Fraction) && kind == Some(TimeKind::Integer);
        for i in 0..batch.rows {
            let when = time.as_ref().map_or(Some(0), |t| t.0[i]);
            let paid = reward.as_ref().map_or(Some(0.0), |r| r[i]);
            let out = match () {
                () if from[i] == MISSING || to[i] == MISSING => "label-missing",
                () if action[i] == MISSING => "action-missing",
                () if id.as_ref().is_some_and(|id| id[i] == MISSING) => "id-missing",
                () => match (when, paid) {
                    (None, _) => "time-missing",
                    (_, None) => "reward-missing",
                    (Some(time), Some(reward)) => {
                        let time = if widen { ordered_bits(time as f64) } else { time };
                        let id = id.as_ref().map_or(0, |id| id[i]);
                        unit.steps.push(Step { id, from: from[i], action: action[i], to: to[i], time, reward });
                        continue;
                    }
                },
            };
            batch.leave_out(&mut unit.ledger, out, LedgerUnit::Rows, 1.0, i);
        }
        Ok(())
    }

    /// The states of each row; [`MISSING`] where there is none.
    fn ends(&self, batch: &Batch<'_>, unit: &mut Unit) -> Result<(Vec<u32>, Vec<u32>)> {
        let name = |k: usize| self.wanted[k].as_str();
        match &self.ends {
            Ends::Labels([from, to]) => Ok((unit.states.ids(batch, *from, name(*from))?, unit.states.ids(batch, *to, name(*to))?)),
            Ends::Points(slots, grid) => {
                let columns: Vec<Float64Array> = slots.iter().map(|k| numbers(batch, *k, name(*k))).collect::<Result<_>>()?;
                let get = |c: usize, i: usize| if columns[c].is_null(i) { f64::NAN } else { columns[c].value(i) };
                let mut states = |i: usize| match grid.place((get(0, i), get(1, i)), (get(2, i), get(3, i))) {
                    Place::Cells(a, b) => (unit.states.integer(a), unit.states.integer(b)),
                    _ => (MISSING, MISSING),
                };
                Ok((0..batch.rows).map(&mut states).unzip())
            }
        }
    }
}

/// Rewards: numbers below zero, too, but finite ones.
fn rewards(batch: &Batch<'_>, slot: usize, name: &str) -> Result<Vec<Option<f64>>> {
    let values = numbers(batch, slot, name)?;
    let one = |i: usize| match values.is_null(i) {
        true => Ok(None),
        false if values.value(i).is_finite() => Ok(Some(values.value(i))),
        false => {
            let e = IngestError::new(Code::NotFinite, "a reward must be a finite number").value(values.value(i).to_string());
            Err(batch.at(e.remedy("correct it, or leave the row out with --where"), i, name))
        }
    };
    (0..batch.rows).map(one).collect()
}

/// Brings times of two kinds together: whole numbers become fractions where fractions turn up.
fn join(steps: &mut [Step], known: Option<TimeKind>, new: Option<TimeKind>, name: &str) -> Result<Option<TimeKind>> {
    match (known, new) {
        (None, kind) | (kind, None) => Ok(kind),
        (Some(a), Some(b)) if a == b => Ok(known),
        (Some(TimeKind::Integer), Some(TimeKind::Fraction)) => {
            steps.iter_mut().for_each(|s| s.time = ordered_bits(s.time as f64));
            Ok(new)
        }
        (Some(TimeKind::Fraction), Some(TimeKind::Integer)) => Ok(known),
        _ => Err(mixed().column(name)),
    }
}

impl Unit {
    fn append(&mut self, mut unit: Unit, plan: &Plan, most: usize) -> Result<()> {
        self.ledger.merge(&unit.ledger);
        if self.steps.len() + unit.steps.len() > most {
            return Err(IngestError::new(
                Code::TooLarge,
                format!("putting more than {} records in order would exceed the memory limit", self.steps.len()),
            )
            .remedy("raise --memory-limit, or plan with --no-check"));
        }
        let kind = join(&mut self.steps, self.kind, unit.kind, plan.time.map_or("", |k| &plan.wanted[k]))?;
        if kind != unit.kind {
            unit.steps.iter_mut().for_each(|s| s.time = ordered_bits(s.time as f64));
        }
        self.kind = kind;
        let number = |of: &LabelSet, to: &mut LabelSet| -> Vec<u32> { of.labels.iter().map(|l| to.label(l)).collect() };
        let (states, actions) = (number(&unit.states, &mut self.states), number(&unit.actions, &mut self.actions));
        let ids = number(&unit.ids, &mut self.ids);
        self.steps.extend(unit.steps.into_iter().map(|s| Step {
            id: ids.get(s.id as usize).copied().unwrap_or(0),
            from: states[s.from as usize],
            to: states[s.to as usize],
            action: actions[s.action as usize],
            ..s
        }));
        Ok(())
    }

    /// States and actions that records have, by their names in order.
    fn into_log(self, plan: &Plan) -> metastate::Result<Log> {
        let name = |l: &Label| match (&plan.ends, l) {
            (Ends::Points(_, grid), Label::Integer(key)) => grid.label(*key),
            _ => l.clone(),
        };
        let (states, state_of) = in_order(&self.states, self.steps.iter().flat_map(|s| [s.from, s.to]), name)?;
        let (actions, action_of) = in_order(&self.actions, self.steps.iter().map(|s| s.action), Label::clone)?;
        let episodes = plan.id.map(|_| {
            let begins = |i: &usize| *i == 0 || self.steps[*i].id != self.steps[*i - 1].id;
            (0..self.steps.len()).filter(begins).collect()
        });
        let records = Records {
            from: self.steps.iter().map(|s| state_of[s.from as usize]).collect(),
            action: self.steps.iter().map(|s| action_of[s.action as usize]).collect(),
            to: self.steps.iter().map(|s| state_of[s.to as usize]).collect(),
            reward: plan.reward.map(|_| self.steps.iter().map(|s| s.reward).collect()),
            episodes,
        };
        Ok(Log::new(states, actions, records)?.with_ledger(self.ledger))
    }
}

/// The labels that are used, sorted; and for each number of the set its place among them.
fn in_order(set: &LabelSet, used: impl Iterator<Item = u32>, name: impl Fn(&Label) -> Label) -> metastate::Result<(StateIndex, Vec<u32>)> {
    let mut met = vec![false; set.labels.len()];
    used.for_each(|k| met[k as usize] = true);
    let kept: Vec<usize> = (0..met.len()).filter(|k| met[*k]).collect();
    let names: Vec<Label> = kept.iter().map(|k| name(&set.labels[*k])).collect();
    let mut place = vec![MISSING; met.len()];
    let order = sorted_order(&names);
    order.iter().enumerate().for_each(|(new, k)| place[kept[*k as usize]] = new as u32);
    Ok((StateIndex::from_labels(order.iter().map(|k| names[*k as usize].clone()).collect())?, place))
}
