//! A controlled chain as the folder of its fit tells it.

use std::path::Path;

use metastate::plan::{Extended, Log, Paid, Pairs, Records, Tried};
use metastate::{Csr, Label, StateIndex};
use metastate_report::{PAIRS_FILE, RefitRecord, SavedResult, inside, parse_csv};

use super::rewards::GivenRewards;
use crate::error::{CliError, Result};

/// Pairs, next states and rewards. States are numbered as `pairs.csv` has them, those that are only reached behind them.
pub struct ControlledResult {
    /// Labels of the states.
    pub states: StateIndex,
    /// Labels of the actions.
    pub actions: StateIndex,
    /// The pairs with their records; the counts are not in the folder.
    pub tried: Tried,
    /// What each pair is paid, where the log said it.
    pub rewards: Option<Vec<f64>>,
    /// Transitions that the prior of the refit adds to each pair.
    pub prior: f64,
}

/// The prior where the refit has none: the usual one of a first look.
const USUAL_PRIOR: f64 = 1.0;

impl ControlledResult {
    /// Reads `pairs.csv`, and checks it against the factors.
    pub fn read(folder: &Path, loaded: &SavedResult) -> Result<Self> {
        let (Some(control), Some(ends)) = (&loaded.summary.control, &loaded.destinations) else {
            return Err(CliError::bad("E-CLI-RESULT", "this is no result of a controlled chain, so there is nothing to decide")
                .at(folder.display().to_string())
                .remedy("fit a log with --action (and --reward)"));
        };
        let damaged = |what: String| {
            CliError::failed("E-CLI-RESULT", format!("{PAIRS_FILE} {what}"))
                .at(folder.display().to_string())
                .remedy("the result was changed or damaged; fit again")
        };
        let table =
            parse_csv(&inside::read_text(folder, PAIRS_FILE)?).ok_or_else(|| damaged("has a quote that is never closed".to_owned()))?;
        let Some((header, rows)) = table.split_first() else { return Err(damaged("is empty".to_owned())) };
        let column = |name: &str| header.iter().position(|h| h == name);
        let (Some(state), Some(action), Some(records)) = (column("state"), column("action"), column("records")) else {
            return Err(damaged("has no columns state, action, records".to_owned()));
        };
        if rows.len() != loaded.xi.len() || rows.iter().any(|row| row.len() != header.len()) {
            return Err(damaged(format!("has {} rows; the factors have {}", rows.len(), loaded.xi.len())));
        }
        let number = |row: usize, column: usize| -> Result<f64> {
            rows[row][column]
                .parse::<f64>()
                .ok()
                .filter(|x| x.is_finite())
                .ok_or_else(|| damaged(format!("holds no number in row {}", row + 1)))
        };
        let (mut states, mut actions) = (StateIndex::new(), StateIndex::new());
        let mut names: Vec<Label> = rows.iter().map(|row| Label::from(row[action].as_str())).collect();
        let from: Vec<u32> = rows.iter().map(|row| states.get_or_insert(Label::from(row[state].as_str()))).collect();
        let reached: Vec<u32> = ends.labels().into_iter().map(|label| states.get_or_insert(label)).collect();
        let in_rows = names.clone();
        names.sort_unstable();
        names.dedup();
        names.into_iter().for_each(|name| {
            actions.get_or_insert(name);
        });
        let done: Vec<u32> = in_rows.into_iter().map(|name| actions.get_or_insert(name)).collect();
        let pairs = Pairs::new(from, done, states.len(), actions.len()).map_err(|e| damaged(format!("cannot be used: {e}")))?;
        if (actions.len(), states.len()) != (control.actions, control.states) {
            return Err(damaged(format!("names {} states and {} actions", states.len(), actions.len())));
        }
        let all = |at: usize| (0..rows.len()).map(|p| number(p, at)).collect::<Result<Vec<f64>>>();
        let given = |name: &str| column(name).map(all).transpose();
        let paid = given("mean")?.zip(given("spread")?).map(|(mean, spread)| Paid { mean, spread });
        let rewards = given("reward")?;
        let counts = Csr::from_parts(rows.len(), reached.len(), vec![0; rows.len() + 1], Vec::new(), Vec::new())?;
        let prior = match &loaded.summary.refit {
            Some(RefitRecord::Likelihood(refit)) => refit.prior,
            _ => USUAL_PRIOR,
        };
        Ok(ControlledResult { states, actions, tried: Tried { pairs, reached, counts, records: all(records)?, paid }, rewards, prior })
    }

    /// Records of a pair of the plan; none for one that was guessed.
    pub fn records(&self, all: &Extended, p: usize) -> f64 {
        self.tried.pairs.position(all.pairs.state[p], all.pairs.action[p]).map_or(0.0, |q| self.tried.records[q])
    }

    /// The log in the numbers of this model, paid as the plan is; refused where it is not the one of the fit.
    pub fn numbered(&self, log: Log, given: Option<&GivenRewards>) -> Result<(Log, Tried)> {
        let other = || {
            CliError::bad(
                "E-CLI-ARGUMENT",
                "this log is not the one that was fitted: it has other pairs of state and action, or other numbers of records",
            )
            .remedy("give the log of the fit, or plan without a check")
        };
        let place = |of: &StateIndex, to: &StateIndex| of.labels().map(|l| to.position(&l)).collect::<Option<Vec<u32>>>().ok_or_else(other);
        let (states, actions) = (place(log.states(), &self.states)?, place(log.actions(), &self.actions)?);
        let Records { from, action, to, reward, episodes } = log.records().clone();
        let number = |list: Vec<u32>, place: &[u32]| list.into_iter().map(|k| place[k as usize]).collect::<Vec<u32>>();
        let records = Records { from: number(from, &states), action: number(action, &actions), to: number(to, &states), reward, episodes };
        let mut log = Log::new(self.states.clone(), self.actions.clone(), records)?;
        if let Some(given) = given {
            log = given.pays(log)?;
        }
        let tried = log.tried()?;
        if tried.pairs != self.tried.pairs || tried.reached != self.reached_in_order() || tried.records != self.tried.records {
            return Err(other());
        }
        // Columns as the factors have them.
        let column: Vec<u32> = tried.reached.iter().map(|s| self.tried.reached.iter().position(|r| r == s).unwrap_or(0) as u32).collect();
        let counts = self.columns_of(&tried, &column)?;
        Ok((log, Tried { reached: self.tried.reached.clone(), counts, ..tried }))
    }

    /// Numbers of the states that are reached, ascending.
    fn reached_in_order(&self) -> Vec<u32> {
        let mut all = self.tried.reached.clone();
        all.sort_unstable();
        all
    }

    /// The counts with their columns renumbered.
    fn columns_of(&self, tried: &Tried, column: &[u32]) -> Result<Csr> {
        let triplets: Vec<(u32, u32, f64)> = tried.counts.triplets().map(|(i, j, n)| (i, column[j as usize], n)).collect();
        Ok(Csr::from_triplets(tried.counts.rows(), tried.counts.cols(), &triplets)?)
    }
}
