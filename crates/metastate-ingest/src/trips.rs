//! Trips: one row a move, from label to label or from point to point; and counts given as rows.

use std::sync::Arc;

use arrow::array::{Array, Float64Array};
use metastate::{Ledger, LedgerUnit};

use crate::assemble::{Ends, Pairs};
use crate::cells::{Grid, Place};
use crate::codes::Code;
use crate::columns::{finite, numbers, weights};
use crate::counter::{LocalCounter, PairBatch, PairCounter};
use crate::error::{IngestError, Result};
use crate::filter::Filter;
use crate::labels::{LabelSet, MISSING};
use crate::progress::ReadProgress;
use crate::second::{Joined, Second, SecondLabel, Side, Tally};
use crate::settings::InputSettings;
use crate::source::Source;
use crate::table::{Batch, Tables};

/// Which columns are read, and what for.
pub(crate) struct Plan {
    pub wanted: Vec<String>,
    pub ends: PlanEnds,
    pub weight: Option<usize>,
    second: Option<PlanSecond>,
    filter: Option<(Filter, Vec<usize>)>,
}

pub(crate) enum PlanEnds {
    Labels([usize; 2]),
    Points([usize; 4], Grid),
}

/// The second label, with the places of its columns.
struct PlanSecond {
    asked: SecondLabel,
    slot: usize,
    value: Option<usize>,
    /// Reasons for the ledger.
    missing: String,
    value_missing: String,
}

impl PlanSecond {
    fn new(asked: &SecondLabel, wanted: &mut Vec<String>) -> Self {
        PlanSecond {
            slot: slot(wanted, &asked.expression.column),
            value: asked.value.as_ref().map(|name| slot(wanted, name)),
            missing: format!("{}-missing", asked.option),
            value_missing: "reward-missing".to_owned(),
            asked: asked.clone(),
        }
    }
}

/// Distinct columns in the order asked for.
pub(crate) fn slot(wanted: &mut Vec<String>, name: &str) -> usize {
    wanted.iter().position(|w| w == name).unwrap_or_else(|| {
        wanted.push(name.to_owned());
        wanted.len() - 1
    })
}

/// The condition, with the places of its columns.
pub(crate) fn plan_filter(settings: &InputSettings, wanted: &mut Vec<String>) -> Result<Option<(Filter, Vec<usize>)>> {
    let Some(text) = &settings.where_ else { return Ok(None) };
    let filter = Filter::parse(text)?;
    let slots = filter.columns().iter().map(|c| slot(wanted, c)).collect();
    Ok(Some((filter, slots)))
}

/// The rows of which the condition is true; the others go into the ledger, with the weight of one each where rows have none of their own. None without a condition.
pub(crate) fn where_true<'b>(
    condition: Option<&(Filter, Vec<usize>)>,
    batch: &Batch<'b>,
    weighted: bool,
    ledger: &mut Ledger,
) -> Result<Option<Batch<'b>>> {
    let Some((filter, slots)) = condition else { return Ok(None) };
    let keep = filter.keep(batch, slots)?;
    let out = (batch.rows - keep.true_count()) as u64;
    ledger.add("where-not-true", LedgerUnit::Rows, out, if weighted { 0.0 } else { out as f64 }, [] as [String; 0]);
    batch.filter(&keep).map(Some)
}

impl Plan {
    pub fn new(settings: &InputSettings, defaults: Option<[&str; 3]>) -> Result<Self> {
        let mut wanted = Vec::new();
        let points = settings.coordinate_columns();
        let ends = if points.iter().any(|(_, c)| c.is_some()) {
            if settings.from.is_some() || settings.to.is_some() {
                return Err(IngestError::new(Code::Option, "both labels (--from, --to) and coordinates (--from-lon ...) are named")
                    .remedy("name one or the other"));
            }
            let mut slots = [0; 4];
            for (at, (option, column)) in slots.iter_mut().zip(points) {
                let Some(column) = column else {
                    return Err(IngestError::new(Code::Option, format!("{option} is missing"))
                        .remedy("trips by coordinates need --from-lon, --from-lat, --to-lon and --to-lat"));
                };
                *at = slot(&mut wanted, column);
            }
            PlanEnds::Points(slots, Grid::new(settings)?)
        } else {
            let name = |given: &Option<String>, option: &str, k: usize| match (given, defaults) {
                (Some(name), _) => Ok(name.clone()),
                (None, Some(names)) => Ok(names[k].to_owned()),
                (None, None) => Err(IngestError::new(Code::Option, format!("{option} is missing"))
                    .remedy("trips need --from and --to, or --from-lon, --from-lat, --to-lon and --to-lat")),
            };
            if settings.bbox.is_some() {
                return Err(IngestError::new(Code::Option, "--bbox needs coordinates")
                    .remedy("name --from-lon, --from-lat, --to-lon and --to-lat, or leave --bbox out"));
            }
            let (from, to) = (name(&settings.from, "--from", 0)?, name(&settings.to, "--to", 1)?);
            PlanEnds::Labels([slot(&mut wanted, &from), slot(&mut wanted, &to)])
        };
        let weight = settings.weight.clone().or(defaults.map(|d| d[2].to_owned())).map(|name| slot(&mut wanted, &name));
        let second = settings.second.as_ref().map(|asked| PlanSecond::new(asked, &mut wanted));
        let filter = plan_filter(settings, &mut wanted)?;
        Ok(Plan { wanted, ends, weight, second, filter })
    }
}

/// What one unit of work gives.
#[derive(Default)]
struct Unit {
    labels: LabelSet,
    batch: PairBatch,
    /// Rows beside weights, when both are needed.
    rows: Option<PairBatch>,
    /// Second labels, each with the state that it joins.
    joined: Joined,
    kept: u64,
    /// Pairs beyond which the batch is compacted.
    room: usize,
    ledger: Ledger,
    odd: Odd,
}

/// Rows whose coordinates are worth a word.
#[derive(Debug, Default, Clone, Copy)]
struct Odd {
    /// Left out, and inside with longitude and latitude exchanged.
    fits_swapped: u64,
    /// Counted, with an end at longitude 0, latitude 0.
    null_island: u64,
    /// Counted, with both ends near a pole that would not be exchanged.
    polar: u64,
}

impl Odd {
    fn add(&mut self, more: Odd) {
        self.fits_swapped += more.fits_swapped;
        self.null_island += more.null_island;
        self.polar += more.polar;
    }
}

/// A row group may hold any number of rows; its pairs are added up when they become so many.
const ROOM: usize = 2 << 20;

impl Unit {
    fn push(&mut self, from: u32, to: u32, weight: f64, second: Option<(&SecondOf<'_>, usize)>) {
        self.kept += 1;
        let (from, to) = match second {
            None => (from, to),
            Some((second, i)) => second.join(&mut self.joined, i, from, to, weight),
        };
        push(&mut self.batch, from, to, weight);
        if let Some(rows) = &mut self.rows {
            push(rows, from, to, 1.0);
        }
    }

    fn make_room(&mut self) {
        if self.batch.pairs.len() > self.room {
            self.batch.compact();
            self.rows.iter_mut().for_each(PairBatch::compact);
            self.room = ROOM.max(2 * self.batch.pairs.len());
        }
    }
}

/// Reads trips, or counts as rows when `defaults` names their columns.
pub(crate) fn read(
    sources: &[Source],
    settings: &InputSettings,
    defaults: Option<[&str; 3]>,
    progress: &mut dyn ReadProgress,
) -> Result<Pairs> {
    let plan = Plan::new(settings, defaults)?;
    let stored: u64 = sources.iter().map(|s| s.bytes).sum();
    let mut tables = Tables::open(sources, &plan.wanted, settings.unpack_limit(stored), &settings.text)?;
    let mut all = CountedTrips::new(&plan, settings);
    let count_rows = all.rows_counter.is_some();
    let rows = tables.scan(
        progress,
        |feed, _| {
            let batch = PairBatch { pairs: Vec::new(), weights: plan.weight.map(|_| Vec::new()) };
            let rows = count_rows.then(PairBatch::default);
            let mut unit = Unit { batch, rows, room: ROOM, ..Unit::default() };
            feed(&mut |batch| {
                plan.take(batch, &mut unit)?;
                unit.make_room();
                Ok(())
            })?;
            Ok(unit)
        },
        |units| all.add(units),
    )?;
    all.check_places(&plan, rows, &sources[0].name)?;
    let mut hints = std::mem::take(&mut tables.hints);
    hints.extend(plan.hints(&all.odd, all.kept));
    let CountedTrips { counter, rows_counter, states, joined, side, ledger, kept, .. } = all;
    Ok(Pairs {
        counter: Box::new(counter),
        rows_counter: rows_counter.map(|c| Box::new(c) as Box<dyn PairCounter>),
        second: side.map(|side| Second {
            side,
            labels: joined.labels.labels,
            pairs: joined.pairs,
            values: settings.second.as_ref().and_then(|s| s.value.as_ref()).map(|_| joined.values),
        }),
        labels: states.labels,
        pinned: Vec::new(),
        ends: match plan.ends {
            PlanEnds::Labels(_) => Ends::Labels,
            PlanEnds::Points(_, grid) => Ends::Cells(grid),
        },
        ledger,
        noun: "rows",
        rows,
        kept,
        hints,
    })
}

/// What all units of work gave so far.
struct CountedTrips {
    counter: LocalCounter,
    /// Filters on states are told in rows; with weights, rows are counted beside them.
    rows_counter: Option<LocalCounter>,
    states: LabelSet,
    joined: Joined,
    /// The end that the second label joins, where there is one.
    side: Option<Side>,
    ledger: Ledger,
    kept: u64,
    odd: Odd,
}

impl CountedTrips {
    fn new(plan: &Plan, settings: &InputSettings) -> Self {
        let filters_states = settings.min_share > 0.0 || settings.max_self_share.is_some();
        let count_rows = plan.weight.is_some() && filters_states;
        CountedTrips {
            counter: LocalCounter::new(settings.memory_limit),
            rows_counter: count_rows.then(|| LocalCounter::new(settings.memory_limit)),
            states: LabelSet::default(),
            joined: Joined::default(),
            side: plan.second.as_ref().map(|s| s.asked.side),
            ledger: Ledger::new(),
            kept: 0,
            odd: Odd::default(),
        }
    }

    /// Takes in units in the order of the files.
    fn add(&mut self, units: Vec<Unit>) -> Result<()> {
        let (mut batches, mut row_batches) = (Vec::with_capacity(units.len()), Vec::new());
        for unit in units {
            let numbers: Vec<u32> = unit.labels.labels.iter().map(|l| self.states.label(l)).collect();
            let joined_numbers = self.side.map(|_| self.joined.take(&unit.joined, &numbers));
            let numbers = Numbers::of(numbers, joined_numbers, self.side);
            self.ledger.merge(&unit.ledger);
            self.odd.add(unit.odd);
            self.kept += unit.kept;
            row_batches.extend(unit.rows.map(|rows| (rows, numbers.clone())));
            batches.push((unit.batch, numbers));
        }
        if let Some(counter) = &mut self.rows_counter {
            counter.add(renumber(row_batches))?;
        }
        self.counter.add(renumber(batches))
    }

    /// Refuses columns that are hardly what they were named as: more rows have no place in them than have one.
    fn check_places(&self, plan: &Plan, rows: u64, file: &str) -> Result<()> {
        check_swapped(plan, rows, self.kept, self.odd.fits_swapped, file)?;
        match self.ledger.get("coordinate-out-of-range", LedgerUnit::Rows).filter(|e| e.count > self.kept) {
            None => Ok(()),
            Some(entry) => Err(IngestError::new(
                Code::Coordinates,
                format!("{} of {rows} rows have coordinates that are no place on earth", entry.count),
            )
            .file(file)
            .value(entry.examples.first().cloned().unwrap_or_default())
            .remedy("longitudes lie within -180 and 180, latitudes within -90 and 90 degrees; check the columns and their unit")),
        }
    }
}

/// What the numbers of a unit are in the data set: of origins, and of destinations.
#[derive(Clone)]
struct Numbers {
    from: Arc<Vec<u32>>,
    to: Arc<Vec<u32>>,
}

impl Numbers {
    fn of(states: Vec<u32>, joined: Option<Vec<u32>>, side: Option<Side>) -> Self {
        let states = Arc::new(states);
        let joined = joined.map_or_else(|| Arc::clone(&states), Arc::new);
        match side {
            Some(Side::Rows) => Numbers { from: joined, to: states },
            _ => Numbers { from: states, to: joined },
        }
    }
}

/// From the numbers of a unit to those of the data set, on all threads.
fn renumber(batches: Vec<(PairBatch, Numbers)>) -> Vec<PairBatch> {
    use rayon::prelude::*;
    batches
        .into_par_iter()
        .map(|(mut batch, numbers)| {
            for pair in &mut batch.pairs {
                *pair = u64::from(numbers.from[(*pair >> 32) as usize]) << 32 | u64::from(numbers.to[*pair as u32 as usize]);
            }
            batch
        })
        .collect()
}

fn check_swapped(plan: &Plan, rows: u64, kept: u64, fits_swapped: u64, file: &str) -> Result<()> {
    let (PlanEnds::Points(slots, _), true) = (&plan.ends, fits_swapped > kept) else { return Ok(()) };
    let [lon, lat, ..] = slots.map(|k| plan.wanted[k].as_str());
    Err(IngestError::new(
        Code::Swapped,
        format!("longitude and latitude seem to be exchanged: of {rows} rows {fits_swapped} would fit exchanged, {kept} fit as they are"),
    )
    .file(file)
    .column(format!("{lon}, {lat}"))
    .remedy("exchange the columns given to --from-lon and --from-lat, and to --to-lon and --to-lat; --bbox is west,south,east,north"))
}

impl Plan {
    /// What is worth telling of the columns and of the coordinates in them.
    fn hints(&self, odd: &Odd, kept: u64) -> Vec<String> {
        let mut hints = Vec::new();
        match &self.ends {
            PlanEnds::Labels([from, to]) if from == to => {
                hints.push(format!("--from and --to name the same column `{}`, so that every trip ends where it began", self.wanted[*from]))
            }
            PlanEnds::Labels(_) => {}
            PlanEnds::Points(slots, _) => {
                if odd.fits_swapped > 0 {
                    hints.push(format!("{} rows left out would fit with longitude and latitude exchanged", odd.fits_swapped));
                }
                if odd.null_island > 0 {
                    hints.push(format!(
                        "{} rows begin or end at longitude 0, latitude 0, where devices are that know no place; --bbox leaves them out",
                        odd.null_island
                    ));
                }
                let name = |k: usize| self.wanted[slots[k]].to_lowercase();
                let says = |k: usize, it: &str, not: &str| name(k).contains(it) && !name(k).contains(not);
                let named_so = says(0, "lat", "lon") || says(1, "lon", "lat") || says(2, "lat", "lon") || says(3, "lon", "lat");
                if 2 * odd.polar > kept || named_so {
                    let [lon, lat, ..] = slots.map(|k| self.wanted[k].as_str());
                    let why =
                        if named_so { "as their names say".to_owned() } else { format!("{} of {kept} trips lie near a pole", odd.polar) };
                    hints.push(format!("longitude (`{lon}`) and latitude (`{lat}`) seem to be exchanged: {why}"));
                }
            }
        }
        hints
    }

    fn take(&self, batch: &Batch<'_>, unit: &mut Unit) -> Result<()> {
        let filtered = where_true(self.filter.as_ref(), batch, self.weight.is_some(), &mut unit.ledger)?;
        let batch = filtered.as_ref().unwrap_or(batch);
        let weights = self.weight.map(|k| weights(batch, k, &self.wanted[k])).transpose()?;
        let second = self.second.as_ref().map(|s| SecondOf::new(s, batch, &mut unit.joined, &self.wanted)).transpose()?;
        let rows = TripRows { batch, weights, second };
        match &self.ends {
            PlanEnds::Labels(slots) => self.take_labels(*slots, &rows, unit),
            PlanEnds::Points(slots, grid) => self.take_points(slots, grid, &rows, unit),
        }
    }

    fn take_labels(&self, [from, to]: [usize; 2], rows: &TripRows<'_, '_>, unit: &mut Unit) -> Result<()> {
        let batch = rows.batch;
        let (from, to) = (unit.labels.ids(batch, from, &self.wanted[from])?, unit.labels.ids(batch, to, &self.wanted[to])?);
        if unit.batch.weights.is_none() && self.second.is_none() && !from.contains(&MISSING) && !to.contains(&MISSING) {
            unit.batch.pairs.extend(from.iter().zip(&to).map(|(&a, &b)| u64::from(a) << 32 | u64::from(b)));
            unit.kept += batch.rows as u64;
            return Ok(());
        }
        let mut ledger = Ledger::new();
        for i in 0..batch.rows {
            let weight = rows.weight(i).and_then(|w| match from[i] == MISSING || to[i] == MISSING {
                true => Err("label-missing"),
                false => rows.has_second(i).map(|()| w),
            });
            match weight {
                Ok(w) => unit.push(from[i], to[i], w, rows.second.as_ref().map(|s| (s, i))),
                Err(reason) => rows.leave_out(&mut ledger, reason, i),
            }
        }
        unit.ledger.merge(&ledger);
        Ok(())
    }

    fn take_points(&self, slots: &[usize; 4], grid: &Grid, rows: &TripRows<'_, '_>, unit: &mut Unit) -> Result<()> {
        let columns: Vec<Float64Array> = slots.iter().map(|&k| numbers(rows.batch, k, &self.wanted[k])).collect::<Result<_>>()?;
        let get = |c: usize, i: usize| if columns[c].is_null(i) { f64::NAN } else { columns[c].value(i) };
        let mut ledger = Ledger::new();
        for i in 0..rows.batch.rows {
            let (from, to) = ((get(0, i), get(1, i)), (get(2, i), get(3, i)));
            let odd = &mut unit.odd;
            let counted = rows.weight(i).and_then(|w| match grid.place(from, to) {
                Place::Cells(a, b) => rows.has_second(i).map(|()| (a, b, w)),
                Place::Missing => Err("coordinate-missing"),
                Place::Outside { fits_swapped } => {
                    odd.fits_swapped += u64::from(fits_swapped);
                    Err("outside-bbox")
                }
                Place::OutOfRange { fits_swapped } => {
                    odd.fits_swapped += u64::from(fits_swapped);
                    Err("coordinate-out-of-range")
                }
            });
            match counted {
                Ok((a, b, w)) => {
                    odd.null_island += u64::from(Grid::is_null_island(from) || Grid::is_null_island(to));
                    odd.polar += u64::from(Grid::is_polar_only_as_given(from) && Grid::is_polar_only_as_given(to));
                    let (a, b) = (unit.labels.integer(a), unit.labels.integer(b));
                    unit.push(a, b, w, rows.second.as_ref().map(|s| (s, i)));
                }
                Err(reason) => rows.leave_out(&mut ledger, reason, i),
            }
        }
        unit.ledger.merge(&ledger);
        Ok(())
    }
}

/// Rows with what is read of them beside their ends. What says that a row cannot be counted is a reason of the ledger.
struct TripRows<'r, 'b> {
    batch: &'r Batch<'b>,
    weights: Option<Vec<Option<f64>>>,
    second: Option<SecondOf<'r>>,
}

impl TripRows<'_, '_> {
    /// Looked at before the ends of the row, so that a row without weight is counted under this one reason.
    fn weight(&self, i: usize) -> std::result::Result<f64, &str> {
        match self.weights.as_ref().map(|list| list[i]) {
            None => Ok(1.0),
            Some(None) => Err("weight-missing"),
            Some(Some(0.0)) => Err("weight-zero"),
            Some(Some(w)) => Ok(w),
        }
    }

    fn has_second(&self, i: usize) -> std::result::Result<(), &str> {
        self.second.as_ref().and_then(|s| s.missing(i)).map_or(Ok(()), Err)
    }

    fn leave_out(&self, ledger: &mut Ledger, reason: &str, i: usize) {
        let weight = self.weights.as_ref().map_or(1.0, |list| list[i].unwrap_or(0.0));
        self.batch.leave_out(ledger, reason, LedgerUnit::Rows, weight, i);
    }
}

/// The second labels of a batch, row by row.
struct SecondOf<'p> {
    plan: &'p PlanSecond,
    ids: Vec<u32>,
    values: Option<Float64Array>,
}

impl<'p> SecondOf<'p> {
    fn new(plan: &'p PlanSecond, batch: &Batch<'_>, joined: &mut Joined, wanted: &[String]) -> Result<Self> {
        let ids = plan.asked.expression.ids(batch, plan.slot, &mut joined.labels)?;
        let values = plan.value.map(|k| finite(batch, k, &wanted[k])).transpose()?;
        Ok(SecondOf { plan, ids, values })
    }

    /// Why row `i` cannot be counted.
    fn missing(&self, i: usize) -> Option<&'p str> {
        match &self.values {
            _ if self.ids[i] == MISSING => Some(&self.plan.missing),
            Some(values) if values.is_null(i) => Some(&self.plan.value_missing),
            _ => None,
        }
    }

    /// The ends of row `i` with the label joined to one of them.
    fn join(&self, joined: &mut Joined, i: usize, from: u32, to: u32, weight: f64) -> (u32, u32) {
        let (rows, label) = (self.plan.asked.side == Side::Rows, self.ids[i]);
        let number = joined.number(label, if rows { from } else { to });
        if let Some(values) = &self.values {
            let mut tally = Tally::default();
            tally.add(weight, values.value(i));
            joined.tally(number, &tally);
        }
        if rows { (number, to) } else { (from, number) }
    }
}

fn push(batch: &mut PairBatch, from: u32, to: u32, weight: f64) {
    batch.push(from, to);
    if let Some(weights) = &mut batch.weights {
        weights.push(weight);
    }
}
