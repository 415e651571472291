//! Records of what was done and what came of it, and the pairs of state and action behind them.

use std::ops::Range;

use crate::chain::TwoSided;
use crate::counts::{Label, StateIndex};
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::linalg::Csr;

/// Stands between state and action in the label of a row.
pub const BETWEEN: &str = " | ";

/// Records as columns, in order: states and actions by their number in the lists of labels.
///
/// The example of [`Log`] has some.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    /// The state in which something was done.
    pub from: Vec<u32>,
    /// What was done.
    pub action: Vec<u32>,
    /// The next state.
    pub to: Vec<u32>,
    /// What was paid; none where the log has no rewards.
    pub reward: Option<Vec<f64>>,
    /// Where each episode begins, ascending from 0; none where the records stand alone.
    pub episodes: Option<Vec<usize>>,
}

impl Records {
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.from.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from.is_empty()
    }
}

/// A log: labels and records, checked against each other.
///
/// ```
/// use metastate::StateIndex;
/// use metastate::plan::{Log, Records};
///
/// let records = Records { from: vec![0, 1], action: vec![0, 0], to: vec![1, 0], reward: Some(vec![0.0, 1.0]), episodes: None };
/// let log = Log::new(StateIndex::numbered(2), StateIndex::numbered(1), records)?;
/// assert_eq!(log.tried()?.pairs.len(), 2);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Log {
    states: StateIndex,
    actions: StateIndex,
    records: Records,
    ledger: Ledger,
}

impl Log {
    /// Checks that every number is one of a label, that rewards are finite, and that episodes begin in order.
    pub fn new(states: StateIndex, actions: StateIndex, records: Records) -> Result<Self> {
        let n = records.len();
        if n == 0 {
            return Err(Error::Empty { what: "the log" });
        }
        for (what, found) in [("the actions of the log", records.action.len()), ("the next states of the log", records.to.len())] {
            if found != n {
                return Err(Error::SizeMismatch { what, expected: n, found });
            }
        }
        let checks =
            [("state", &records.from, states.len()), ("action", &records.action, actions.len()), ("next state", &records.to, states.len())];
        for (what, column, len) in checks {
            if let Some(x) = column.iter().find(|x| **x as usize >= len) {
                return Err(Error::IndexOutOfRange { what, index: u64::from(*x), len });
            }
        }
        if let Some(reward) = &records.reward {
            if reward.len() != n {
                return Err(Error::SizeMismatch { what: "the rewards of the log", expected: n, found: reward.len() });
            }
            if let Some(row) = reward.iter().position(|r| !r.is_finite()) {
                return Err(Error::NotFinite { what: "the rewards of the log", row, column: 0, value: reward[row] });
            }
        }
        if let Some(starts) = &records.episodes {
            let in_order = starts.first() == Some(&0) && starts.windows(2).all(|w| w[0] < w[1]) && starts.last().is_some_and(|s| *s < n);
            if !in_order {
                return Err(Error::Setting {
                    name: "the list of episodes",
                    value: format!("{} beginnings for {n} records", starts.len()),
                    allowed: "episodes begin at ascending records, the first at record 0",
                });
            }
        }
        Ok(Log { states, actions, records, ledger: Ledger::new() })
    }

    /// The same log with what was left out of it.
    #[must_use]
    pub fn with_ledger(self, ledger: Ledger) -> Self {
        Log { ledger, ..self }
    }

    /// Labels of the states, left or reached.
    #[must_use]
    pub fn states(&self) -> &StateIndex {
        &self.states
    }

    /// Labels of the actions.
    #[must_use]
    pub fn actions(&self) -> &StateIndex {
        &self.actions
    }

    /// The records.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// What was left out.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The same records with these rewards.
    pub fn paid(self, rewards: Vec<f64>) -> Result<Self> {
        let records = Records { reward: Some(rewards), ..self.records };
        Ok(Log::new(self.states, self.actions, records)?.with_ledger(self.ledger))
    }

    /// The same records paid otherwise: `paid(state, action, next state)`.
    pub fn paid_by(mut self, paid: impl Fn(u32, u32, u32) -> f64) -> Self {
        let r = &self.records;
        let rewards = r.from.iter().zip(&r.action).zip(&r.to).map(|((s, a), t)| paid(*s, *a, *t)).collect();
        self.records.reward = Some(rewards);
        self
    }

    /// The rectangular chain of the log, for the recipe.
    pub fn sides(&self, tried: &Tried) -> Result<TwoSided> {
        tried.sides(&self.states, &self.actions, &self.ledger)
    }

    /// What was tried, and what came of it.
    pub fn tried(&self) -> Result<Tried> {
        Tried::of(self)
    }

    /// Number of episodes, or of records where there are none.
    pub(super) fn units(&self) -> usize {
        self.records.episodes.as_ref().map_or(self.records.len(), Vec::len)
    }

    /// The records of an episode, or the one record.
    pub(super) fn unit(&self, e: usize) -> Range<usize> {
        match &self.records.episodes {
            None => e..e + 1,
            Some(starts) => starts[e]..starts.get(e + 1).copied().unwrap_or(self.records.len()),
        }
    }
}

/// Pairs of state and action, ordered by state, then action.
///
/// ```
/// use metastate::plan::Pairs;
///
/// // In state 0 actions 0 and 1 were tried, in state 1 action 1.
/// let pairs = Pairs::new(vec![0, 0, 1], vec![0, 1, 1], 2, 2)?;
/// assert_eq!((pairs.of(0), pairs.position(1, 1), pairs.position(1, 0)), (0..2, Some(2), None));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    /// The state of each pair.
    pub state: Vec<u32>,
    /// The action of each pair.
    pub action: Vec<u32>,
    /// The pairs of state s are `first[s]..first[s + 1]`.
    first: Vec<usize>,
    actions: usize,
}

impl Pairs {
    /// From pairs in order, each once.
    pub fn new(state: Vec<u32>, action: Vec<u32>, states: usize, actions: usize) -> Result<Self> {
        if state.len() != action.len() {
            return Err(Error::SizeMismatch { what: "the actions of the pairs", expected: state.len(), found: action.len() });
        }
        for (what, column, len) in [("state", &state, states), ("action", &action, actions)] {
            if let Some(x) = column.iter().find(|x| **x as usize >= len) {
                return Err(Error::IndexOutOfRange { what, index: u64::from(*x), len });
            }
        }
        let ordered = state.iter().zip(&action).zip(state.iter().zip(&action).skip(1)).all(|(a, b)| a < b);
        if !ordered {
            return Err(Error::Setting {
                name: "the list of pairs",
                value: "out of order".to_owned(),
                allowed: "pairs are ordered by state, then action, each once",
            });
        }
        let mut first = vec![0; states + 1];
        state.iter().for_each(|s| first[*s as usize + 1] += 1);
        (0..states).for_each(|s| first[s + 1] += first[s]);
        Ok(Pairs { state, action, first, actions })
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    /// Number of states, tried or not.
    #[must_use]
    pub fn states(&self) -> usize {
        self.first.len() - 1
    }

    /// Number of actions.
    #[must_use]
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The pairs of a state.
    #[must_use]
    pub fn of(&self, state: usize) -> Range<usize> {
        self.first[state]..self.first[state + 1]
    }

    /// The number of a pair.
    #[must_use]
    pub fn position(&self, state: u32, action: u32) -> Option<usize> {
        let range = self.of(state as usize);
        self.action[range.clone()].binary_search(&action).ok().map(|k| range.start + k)
    }
}

/// What was paid at each pair.
///
/// See the example of [`Tried`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paid {
    /// Mean of what was paid; zero where there is no record.
    pub mean: Vec<f64>,
    /// Sum of the squared deviations from that mean.
    pub spread: Vec<f64>,
}

/// The pairs that a log holds, how often each was tried, where it led and what was paid.
///
/// ```
/// use metastate::StateIndex;
/// use metastate::plan::{Log, Records};
///
/// // Action 0 in state 0, twice: once it led to state 1, once it stayed.
/// let records = Records { from: vec![0, 0], action: vec![0, 0], to: vec![1, 0], reward: Some(vec![3.0, 1.0]), episodes: None };
/// let tried = Log::new(StateIndex::numbered(2), StateIndex::numbered(1), records)?.tried()?;
/// assert_eq!((tried.records, tried.paid.unwrap().mean), (vec![2.0], vec![2.0]));
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tried {
    /// The pairs: the rows of the chain.
    pub pairs: Pairs,
    /// The states that were reached: the columns of the chain.
    pub reached: Vec<u32>,
    /// How often each pair led to each of them.
    pub counts: Csr,
    /// Records of each pair.
    pub records: Vec<f64>,
    /// What was paid, where the log says it.
    pub paid: Option<Paid>,
}

impl Tried {
    fn of(log: &Log) -> Result<Self> {
        let (r, actions, states) = (&log.records, log.actions.len(), log.states.len());
        let key = |i: usize| u64::from(r.from[i]) * actions as u64 + u64::from(r.action[i]);
        let mut keys: Vec<u64> = (0..r.len()).map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut first = vec![0; states + 1];
        keys.iter().for_each(|k| first[(k / actions as u64) as usize + 1] += 1);
        (0..states).for_each(|s| first[s + 1] += first[s]);
        let state = keys.iter().map(|k| (k / actions as u64) as u32).collect();
        let action = keys.iter().map(|k| (k % actions as u64) as u32).collect();
        let pairs = Pairs { state, action, first, actions };

        let mut seen = vec![false; states];
        r.to.iter().for_each(|t| seen[*t as usize] = true);
        let reached: Vec<u32> = (0..states as u32).filter(|s| seen[*s as usize]).collect();
        let all = 0..r.len();
        let (counts, records, paid) = Tried::count(log, &pairs, &reached, std::iter::once(all))?;
        Ok(Tried { pairs, reached, counts, records, paid })
    }

    /// The same pairs and columns with only some of the records.
    pub(super) fn part(&self, log: &Log, units: impl Iterator<Item = Range<usize>> + Clone) -> Result<Tried> {
        let (counts, records, paid) = Tried::count(log, &self.pairs, &self.reached, units)?;
        Ok(Tried { pairs: self.pairs.clone(), reached: self.reached.clone(), counts, records, paid })
    }

    fn count(
        log: &Log,
        pairs: &Pairs,
        reached: &[u32],
        units: impl Iterator<Item = Range<usize>> + Clone,
    ) -> Result<(Csr, Vec<f64>, Option<Paid>)> {
        let r = &log.records;
        let mut column = vec![u32::MAX; log.states.len()];
        reached.iter().enumerate().for_each(|(j, s)| column[*s as usize] = j as u32);
        let row = |i: usize| pairs.position(r.from[i], r.action[i]);
        let m = pairs.len();
        let mut records = vec![0.0; m];
        // One list a pair, laid end to end, then sorted: no map, no list of triplets.
        let mut start = vec![0usize; m + 1];
        for i in units.clone().flatten() {
            if let Some(p) = row(i) {
                records[p] += 1.0;
                start[p + 1] += 1;
            }
        }
        (0..m).for_each(|p| start[p + 1] += start[p]);
        let mut next = start.clone();
        let mut ends = vec![0u32; start[m]];
        let mut paid = r.reward.as_ref().map(|_| Paid { mean: vec![0.0; m], spread: vec![0.0; m] });
        for i in units.clone().flatten() {
            let Some(p) = row(i) else { continue };
            ends[next[p]] = column[r.to[i] as usize];
            next[p] += 1;
            if let (Some(paid), Some(reward)) = (&mut paid, &r.reward) {
                paid.mean[p] += reward[i];
            }
        }
        if let Some(paid) = &mut paid {
            paid.mean.iter_mut().zip(&records).filter(|(_, n)| **n > 0.0).for_each(|(mean, n)| *mean /= n);
        }
        if let (Some(paid), Some(reward)) = (&mut paid, &r.reward) {
            for i in units.flatten() {
                if let Some(p) = row(i) {
                    paid.spread[p] += (reward[i] - paid.mean[p]).powi(2);
                }
            }
        }
        let (mut indptr, mut indices, mut values) = (vec![0usize], Vec::new(), Vec::new());
        for p in 0..m {
            let list = &mut ends[start[p]..start[p + 1]];
            list.sort_unstable();
            for chunk in list.chunk_by(|a, b| a == b) {
                indices.push(chunk[0]);
                values.push(chunk.len() as f64);
            }
            indptr.push(indices.len());
        }
        Ok((Csr::from_parts(m, reached.len(), indptr, indices, values)?, records, paid))
    }

    /// From counts of all states of one list, one row a pair: columns that were never reached go.
    pub fn from_counts(pairs: Pairs, counts: &Csr, paid: Option<Paid>) -> Result<Tried> {
        if counts.rows() != pairs.len() || counts.cols() != pairs.states() {
            return Err(Error::SizeMismatch { what: "the counts of the pairs", expected: pairs.len(), found: counts.rows() });
        }
        let arrivals = counts.column_sums();
        let kept: Vec<usize> = (0..arrivals.len()).filter(|j| arrivals[*j] > 0.0).collect();
        let rows: Vec<usize> = (0..pairs.len()).collect();
        let counts = counts.restrict_sides(&rows, &kept);
        Ok(Tried { pairs, reached: kept.into_iter().map(|s| s as u32).collect(), records: counts.row_sums(), counts, paid })
    }

    /// The rectangular chain: rows are pairs, in their order, columns the states that were reached.
    pub fn sides(&self, states: &StateIndex, actions: &StateIndex, ledger: &Ledger) -> Result<TwoSided> {
        if let Some(label) = actions.labels().map(|l| l.to_string()).find(|l| l.contains(BETWEEN)) {
            return Err(Error::Setting {
                name: "the name of an action",
                value: format!("`{label}`"),
                allowed: "names of actions must not contain ` | `, which stands between state and action in the labels of rows",
            });
        }
        let name = |p: usize| -> Label {
            let (s, a) = (self.pairs.state[p] as usize, self.pairs.action[p] as usize);
            Label::from(format!("{}{BETWEEN}{}", states.label(s), actions.label(a)).as_str())
        };
        Ok(TwoSided {
            origins: StateIndex::from_labels((0..self.pairs.len()).map(name).collect())?,
            destinations: StateIndex::from_labels(self.reached.iter().map(|s| states.label(*s as usize)).collect())?,
            counts: self.counts.clone(),
            ledger: ledger.clone(),
        })
    }

    /// Pairs with fewer than `least` records, of those with any.
    #[must_use]
    pub fn fewer_than(&self, least: f64) -> usize {
        self.records.iter().filter(|n| **n > 0.0 && **n < least).count()
    }
}
