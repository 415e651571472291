//! From counted pairs to `Counts`: the filters on states, the order of states, the last checks.

use metastate::{CountMode, Counts, Csr, Label, Ledger, LedgerUnit, StateIndex};

use crate::cells::Grid;
use crate::codes::Code;
use crate::counter::PairCounter;
use crate::error::{IngestError, Result};
use crate::labels::sorted_order;
use crate::second::{Second, SecondCounts, Side};
use crate::settings::{CellSize, InputSettings};

/// A state that stays with at least this share is worth a hint.
const NEAR_ABSORBING: f64 = 0.99;

/// What the labels of [`Pairs`] mean.
pub(crate) enum Ends {
    Labels,
    /// Integers that stand for cells of this grid.
    Cells(Grid),
}

/// Everything counted, before any state is left out.
pub(crate) struct Pairs {
    pub counter: Box<dyn PairCounter>,
    /// Rows by pair, where weights are counted instead and rows are needed for the ledger.
    pub rows_counter: Option<Box<dyn PairCounter>>,
    /// What the numbers of one end stand for, where a second label joins it.
    pub second: Option<Second>,
    pub labels: Vec<Label>,
    /// States to keep although no pair has them.
    pub pinned: Vec<u32>,
    pub ends: Ends,
    pub ledger: Ledger,
    /// What `rows` counts, for messages.
    pub noun: &'static str,
    /// Rows seen, and rows that were counted.
    pub rows: u64,
    pub kept: u64,
    pub hints: Vec<String>,
}

/// Counts with what is known about their states.
#[derive(Debug, Clone)]
pub struct CountedStates {
    /// The counts, with their ledger.
    pub counts: Counts,
    /// Longitude and latitude of each state's centre, where known.
    pub coordinates: Option<Vec<(f64, f64)>>,
    /// What the cells are, for cells.
    pub cell: Option<CellSize>,
    /// Rows (frames for trajectories, entries for matrices) read.
    pub rows: u64,
    /// Those counted; with the ledger's rows they add up to `rows`.
    pub kept: u64,
    /// Things worth telling the user.
    pub hints: Vec<String>,
    /// The frames of trajectories by state number, [`NO_STATE`](metastate::workspace::folds::NO_STATE) between pieces, when they were asked for.
    pub frames: Option<Vec<u32>>,
    /// The same counts with the second label told apart, where one was asked for.
    pub second: Option<SecondCounts>,
}

/// Hands out each counted pair by its two states. With a second label the same states come once for each label.
fn visit_states(counter: &mut dyn PairCounter, second: Option<&Second>, each: &mut dyn FnMut(u32, u32, f64)) -> Result<()> {
    match second {
        None => counter.visit(each),
        Some(second) => counter.visit(&mut |i, j, w| {
            let (i, j) = second.ends(i, j);
            each(i, j, w);
        }),
    }
}

impl Pairs {
    /// Applies `--min-share` and `--max-self-share`, sorts the states by label, builds the counts.
    pub fn into_counts(mut self, settings: &InputSettings, file: &str) -> Result<CountedStates> {
        check_shares(settings)?;
        let d = self.labels.len();
        let (mut departures, mut selfs) = (vec![0.0f64; d], vec![0.0f64; d]);
        // A label met only in rows that were left out is no state.
        let mut keep = vec![false; d];
        visit_states(self.counter.as_mut(), self.second.as_ref(), &mut |i, j, w| {
            departures[i as usize] += w;
            (keep[i as usize], keep[j as usize]) = (true, true);
            if i == j {
                selfs[i as usize] += w;
            }
        })?;
        self.pinned.iter().for_each(|&i| keep[i as usize] = true);
        let total: f64 = departures.iter().sum();
        if self.kept == 0 || total == 0.0 {
            return Err(nothing_left(&self.ledger, self.rows, self.noun, file));
        }
        if settings.min_share > 0.0 {
            let before = keep.clone();
            keep.iter_mut().zip(&departures).for_each(|(k, n)| *k = *k && *n >= settings.min_share * total);
            self.leave_out(&keep, "below-min-share", &before)?;
        }
        if let Some(most) = settings.max_self_share {
            let before = keep.clone();
            let mut inside = vec![0.0f64; d];
            visit_states(self.counter.as_mut(), self.second.as_ref(), &mut |i, j, w| {
                if before[i as usize] && before[j as usize] {
                    inside[i as usize] += w;
                }
            })?;
            (0..d).for_each(|i| keep[i] = before[i] && selfs[i] <= most * inside[i]);
            self.leave_out(&keep, "above-max-self-share", &before)?;
        }
        self.build(&keep, file)
    }

    /// Tells the ledger which states go and how many rows with them.
    fn leave_out(&mut self, keep: &[bool], reason: &str, before: &[bool]) -> Result<()> {
        let was = |i: usize| before[i];
        let gone = |i: u32, j: u32| was(i as usize) && was(j as usize) && !(keep[i as usize] && keep[j as usize]);
        let (mut rows, mut weight) = (0.0f64, 0.0f64);
        let second = self.second.as_ref();
        visit_states(self.counter.as_mut(), second, &mut |i, j, w| weight += if gone(i, j) { w } else { 0.0 })?;
        match &mut self.rows_counter {
            Some(counter) => visit_states(counter.as_mut(), second, &mut |i, j, n| rows += if gone(i, j) { n } else { 0.0 })?,
            None => rows = weight,
        }
        let states: Vec<usize> = (0..keep.len()).filter(|&i| was(i) && !keep[i]).collect();
        let examples: Vec<String> = states.iter().take(5).map(|&i| self.name(i).to_string()).collect();
        self.ledger.add(reason, LedgerUnit::States, states.len() as u64, 0.0, examples);
        self.ledger.add(reason, LedgerUnit::Rows, rows as u64, weight, [] as [String; 0]);
        self.kept -= (rows as u64).min(self.kept);
        Ok(())
    }

    fn name(&self, i: usize) -> Label {
        match (&self.ends, &self.labels[i]) {
            (Ends::Cells(grid), Label::Integer(key)) => grid.label(*key),
            (_, label) => label.clone(),
        }
    }

    fn build(mut self, keep: &[bool], file: &str) -> Result<CountedStates> {
        let kept_states: Vec<usize> = (0..keep.len()).filter(|&i| keep[i]).collect();
        let names: Vec<Label> = kept_states.iter().map(|&i| self.name(i)).collect();
        let order = sorted_order(&names);
        let mut place = vec![u32::MAX; keep.len()];
        order.iter().enumerate().for_each(|(new, &k)| place[kept_states[k as usize]] = new as u32);
        let csr = match &self.second {
            None => by_rows(self.counter.as_mut(), &place, names.len())?,
            Some(second) => summed(self.counter.as_mut(), second, &place, names.len())?,
        };
        let second = self.second.take().map(|s| told_apart(s, self.counter.as_mut(), &place, names.len(), file)).transpose()?;
        // The largest thing so far, and no longer needed.
        drop(self.counter);
        if csr.nonzeros() == 0 {
            return Err(nothing_left(&self.ledger, self.rows, self.noun, file));
        }
        if let [only] = names.as_slice() {
            return Err(IngestError::from_core(metastate::Error::OneState { label: only.to_string() }, Some(file)));
        }
        let labels: Vec<Label> = order.iter().map(|&k| names[k as usize].clone()).collect();
        let (coordinates, cell) = match &self.ends {
            Ends::Labels => (None, None),
            Ends::Cells(grid) => {
                let centre = |k: &u32| match &self.labels[kept_states[*k as usize]] {
                    Label::Integer(key) => grid.centre(*key),
                    Label::Text(_) => (f64::NAN, f64::NAN), // cells are always integers here
                };
                (Some(order.iter().map(centre).collect()), Some(grid.size()))
            }
        };
        let core = |e| IngestError::from_core(e, Some(file));
        let mut counts = Counts::from_csr(StateIndex::from_labels(labels).map_err(core)?, csr).map_err(core)?;
        let mut all = self.ledger;
        all.merge(counts.ledger());
        *counts.ledger_mut() = all;
        let mut hints = self.hints;
        hints.extend(near_absorbing_hint(&counts));
        hints.extend(twins_hint(counts.index()));
        hints.extend(few_hint(&counts));
        Ok(CountedStates { counts, coordinates, cell, rows: self.rows, kept: self.kept, hints, frames: None, second })
    }
}

/// The counts with the second label told apart: only labels and pairs that a counted record has, in their order.
fn told_apart(second: Second, counter: &mut dyn PairCounter, place: &[u32], states: usize, file: &str) -> Result<SecondCounts> {
    let rows = second.side == Side::Rows;
    let mut met = vec![false; second.pairs.len()];
    let mut entries = Vec::new();
    counter.visit(&mut |i, j, w| {
        let (from, to) = second.ends(i, j);
        let (from, to) = (place[from as usize], place[to as usize]);
        if from != u32::MAX && to != u32::MAX {
            let (joined, state) = if rows { (i, to) } else { (j, from) };
            met[joined as usize] = true;
            entries.push((joined, state, w));
        }
    })?;
    let mut of_label = vec![false; second.labels.len()];
    (0..met.len()).filter(|&k| met[k]).for_each(|k| of_label[second.pairs[k].0 as usize] = true);
    let mut number = vec![u32::MAX; second.labels.len()];
    let mut labels = Vec::new();
    for k in sorted_order(&second.labels).into_iter().filter(|&k| of_label[k as usize]) {
        number[k as usize] = labels.len() as u32;
        labels.push(second.labels[k as usize].clone());
    }
    let name = |k: usize| (number[second.pairs[k].0 as usize], place[second.pairs[k].1 as usize]);
    let mut order: Vec<usize> = (0..met.len()).filter(|&k| met[k]).collect();
    order.sort_unstable_by_key(|&k| {
        let (label, state) = name(k);
        if rows { (state, label) } else { (label, state) }
    });
    let mut joined = vec![u32::MAX; met.len()];
    order.iter().enumerate().for_each(|(new, &old)| joined[old] = new as u32);
    for (k, state, _) in &mut entries {
        *k = joined[*k as usize];
        if !rows {
            std::mem::swap(k, state);
        }
    }
    let core = |e| IngestError::from_core(e, Some(file));
    let (m, n) = if rows { (order.len(), states) } else { (states, order.len()) };
    Ok(SecondCounts {
        labels: StateIndex::from_labels(labels).map_err(core)?,
        side: second.side,
        pairs: order.iter().map(|&k| name(k)).collect(),
        counts: Csr::from_triplets(m, n, &entries).map_err(core)?,
        values: second.values.map(|values| order.iter().map(|&k| values[k]).collect()),
    })
}

/// The same where a second label joins one end: a pair then comes once for each label, and is added up.
fn summed(counter: &mut dyn PairCounter, second: &Second, place: &[u32], states: usize) -> Result<Csr> {
    let mut triplets = Vec::new();
    visit_states(counter, Some(second), &mut |i, j, w| {
        let (i, j) = (place[i as usize], place[j as usize]);
        if i != u32::MAX && j != u32::MAX {
            triplets.push((i, j, w));
        }
    })?;
    Csr::from_triplets(states, states, &triplets).map_err(|e| IngestError::from_core(e, None))
}

/// The pairs between states that have a place, row by row. The counter is asked twice, for the lengths of the rows and for what is in them, so that nothing is held but the result.
fn by_rows(counter: &mut dyn PairCounter, place: &[u32], states: usize) -> Result<Csr> {
    let at = |i: u32| place[i as usize];
    let stays = |i: u32, j: u32| at(i) != u32::MAX && at(j) != u32::MAX;
    let mut indptr = vec![0usize; states + 1];
    counter.visit(&mut |i, j, _| {
        if stays(i, j) {
            indptr[at(i) as usize + 1] += 1;
        }
    })?;
    (0..states).for_each(|i| indptr[i + 1] += indptr[i]);
    let mut next = indptr.clone();
    let (mut indices, mut values) = (vec![0u32; indptr[states]], vec![0.0; indptr[states]]);
    counter.visit(&mut |i, j, w| {
        if stays(i, j) {
            let k = &mut next[at(i) as usize];
            (indices[*k], values[*k]) = (at(j), w);
            *k += 1;
        }
    })?;
    let mut row = Vec::new();
    for w in indptr.windows(2) {
        let (columns, counts) = (&mut indices[w[0]..w[1]], &mut values[w[0]..w[1]]);
        if columns.is_sorted() {
            continue;
        }
        row.clear();
        row.extend(columns.iter().copied().zip(counts.iter().copied()));
        row.sort_unstable_by_key(|e: &(u32, f64)| e.0); // each column once
        for (k, (j, n)) in row.iter().enumerate() {
            (columns[k], counts[k]) = (*j, *n);
        }
    }
    Csr::from_parts(states, states, indptr, indices, values).map_err(|e| IngestError::from_core(e, None))
}

/// "No transition is left of 100 rows", with where they went.
pub(crate) fn nothing_left(ledger: &Ledger, rows: u64, noun: &str, file: &str) -> IngestError {
    let reasons: Vec<String> = ledger.iter().map(|e| format!("{}: {} {}", e.reason, e.count, e.unit)).collect();
    let why = if reasons.is_empty() { "none was counted".to_owned() } else { reasons.join(", ") };
    IngestError::new(Code::NothingLeft, format!("no transition is left of {rows} {noun} ({why})"))
        .file(file)
        .remedy("loosen the filter that took most, or check the columns")
}

pub(crate) fn check_shares(settings: &InputSettings) -> Result<()> {
    let refuse = |option: &str, value: f64| {
        Err(IngestError::new(Code::Option, format!("{option} must lie within 0 and 1"))
            .value(value.to_string())
            .remedy("it is a share, not a per cent value"))
    };
    if !(0.0..1.0).contains(&settings.min_share) {
        return refuse("--min-share", settings.min_share);
    }
    match settings.max_self_share {
        Some(most) if !(0.0..=1.0).contains(&most) => refuse("--max-self-share", most),
        _ => Ok(()),
    }
}

/// Garages and stuck receivers: a few states that hardly ever leave distort any spectrum.
fn near_absorbing_hint(counts: &Counts) -> Option<String> {
    let (departures, selfs) = (counts.departures(), counts.self_counts());
    let mut near: Vec<usize> =
        (0..counts.states()).filter(|&i| departures[i] > 0.0 && selfs[i] >= NEAR_ABSORBING * departures[i]).collect();
    if near.is_empty() || near.len() == counts.states() {
        return None;
    }
    near.sort_by(|&a, &b| departures[b].total_cmp(&departures[a]));
    let shown: Vec<String> = near.iter().take(3).map(|&i| counts.index().label(i).to_string()).collect();
    let number = near.len();
    Some(format!(
        "{number} states stay with a share of 0.99 or more (such as {}); they distort the spectrum, --max-self-share 0.99 leaves them out",
        shown.join(" and ")
    ))
}

/// A column of numbers that went through a float somewhere has `217` and `217.0`, which are two states here.
fn twins_hint(index: &StateIndex) -> Option<String> {
    let twin = |label: &Label| match label {
        Label::Text(text) => {
            let whole = text.strip_suffix('0').map(|t| t.trim_end_matches('0'))?.strip_suffix('.')?;
            index.position(&Label::from(whole)).map(|_| (whole.to_owned(), text.to_string()))
        }
        Label::Integer(_) => None,
    };
    let mut twins = index.labels().filter_map(|l| twin(&l));
    let (whole, point) = twins.next()?;
    let more = match twins.count() {
        0 => String::new(),
        n => format!(" (and {n} more such pairs)"),
    };
    Some(format!("the labels `{whole}` and `{point}` are two states{more}: write numbers in one way if they are meant to be the same"))
}

/// So few transitions for each state that hardly anything can be told from them.
const FEW: f64 = 5.0;

/// What to do about data that are too small for any answer.
fn few_hint(counts: &Counts) -> Option<String> {
    let (transitions, states) = (counts.departures().iter().sum::<f64>(), counts.states());
    let each = transitions / states as f64;
    (each < FEW && counts.csr().triplets().all(|(_, _, n)| n.fract() == 0.0)).then(|| {
        format!(
            "{transitions} transitions between {states} states are {each:.1} for each: little can be learnt from so few; give more rows, or fewer states (a larger --cell, --min-share)"
        )
    })
}

impl CountedStates {
    /// Sets lag and mode, for trajectories.
    pub(crate) fn with_lag(mut self, lag: usize, mode: CountMode) -> Result<Self> {
        self.counts = self.counts.with_lag(lag, mode).map_err(|e| IngestError::from_core(e, None))?;
        Ok(self)
    }
}
