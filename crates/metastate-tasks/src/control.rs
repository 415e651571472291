//! Controlled chains in a fit: what was tried, and the tables about it.

use std::sync::Arc;

use metastate::fit::Refit;
use metastate::plan::{Log, Rewards, Tried, rewards};
use metastate::{Model, StateIndex};
use metastate_ingest::Logged;
use metastate_report::{ACTIONS_FILE, ControlRecord, PAIRS_FILE, REWARDS_FILE, RewardsRecord, actions_csv, pairs_csv, rewards_csv};

use crate::args::{FitArgs, Init, InputArgs};
use crate::error::{CliError, Result};

/// Pairs of state and action with what came of them.
pub struct ControlledData {
    /// Labels of the states, left or reached.
    pub states: StateIndex,
    /// Labels of the actions.
    pub actions: StateIndex,
    /// What was tried.
    pub tried: Tried,
    /// The records themselves, where they came from memory: nobody could read them again.
    pub log: Option<Arc<Log>>,
}

/// Refuses what goes with states, not with pairs of state and action.
pub fn check(input: &InputArgs, fit: &FitArgs) -> Result<()> {
    let refused = |option: &str, why: &str| {
        Err(CliError::bad("E-CLI-ARGUMENT", format!("--action and --{option} do not go together: {why}"))
            .remedy(format!("leave out --{option}")))
    };
    match input.action {
        None => Ok(()),
        Some(_) if fit.bipartite => refused("bipartite", "with actions, states and next states share their names"),
        Some(_) if fit.places.is_some() => refused("places", "rows are pairs of state and action, which have no place on a map"),
        Some(_) if fit.reversible => refused("reversible", "a chain under many actions has no detailed balance"),
        Some(_) if matches!(fit.init(), Init::Result(_)) => {
            refused("init", "a fit with actions starts at a spectral solution or at random")
        }
        Some(_) => Ok(()),
    }
}

impl ControlledData {
    /// What was tried in a log.
    pub fn new(logged: Logged, in_memory: bool) -> Result<Self> {
        let tried = logged.log.tried()?;
        let (states, actions) = (logged.log.states().clone(), logged.log.actions().clone());
        let log = in_memory.then(|| Arc::new(logged.log));
        Ok(ControlledData { states, actions, tried, log })
    }

    /// States at which something was tried.
    pub fn left(&self) -> usize {
        (0..self.states.len()).filter(|s| !self.tried.pairs.of(*s).is_empty()).count()
    }

    /// Rewards at the memberships that are shown.
    pub fn rewards(&self, model: &Model) -> Option<Rewards> {
        self.tried.paid.as_ref().map(|paid| rewards(&self.tried, paid, model.memberships()))
    }

    /// For `summary.json`.
    pub fn record(&self, model: &Model, rewards: Option<&Rewards>) -> ControlRecord {
        let prior = match &model.refit {
            Some(Refit::Likelihood { prior, .. }) => *prior,
            _ => 0.0,
        };
        let left = self.left();
        ControlRecord {
            states: self.states.len(),
            actions: self.actions.len(),
            pairs: self.tried.pairs.len(),
            untried: left * self.actions.len() - self.tried.pairs.len(),
            ends: self.states.len() - left,
            scarce: self.tried.fewer_than(prior),
            rewards: rewards.map(|r| RewardsRecord { within: r.within, between: r.between, leaning: r.leaning }),
        }
    }

    /// `pairs.csv`, `rewards.csv`, `actions.csv`.
    pub fn files(&self, model: &Model, rewards: Option<&Rewards>) -> Vec<(&'static str, Vec<u8>)> {
        let Tried { pairs, reached, records, paid, .. } = &self.tried;
        let paid = rewards.zip(paid.as_ref());
        let mut files = vec![
            (PAIRS_FILE, pairs_csv(pairs, &self.states, &self.actions, records, paid).into_bytes()),
            (ACTIONS_FILE, actions_csv(pairs, reached, model.memberships(), model.destinations(), &self.actions).into_bytes()),
        ];
        files.extend(rewards.map(|r| (REWARDS_FILE, rewards_csv(r).into_bytes())));
        files
    }
}

/// What a person wants to know of a log, in a few lines.
pub fn in_words(c: &ControlRecord) -> String {
    let mut text = format!("{} states, {} actions: {} pairs were tried, {} were not", c.states, c.actions, c.pairs, c.untried);
    if c.ends > 0 {
        text += &format!("; {} states were reached and never left, and count as end states", c.ends);
    }
    if c.scarce > 0 {
        text += &format!("; {} pairs have fewer records than the prior has, so that they rest mostly on the other pairs", c.scarce);
    }
    text.push('\n');
    match &c.rewards {
        Some(r) => text += &format!("rewards: those of {} pairs rest mostly on their meta-states\n", r.leaning),
        None => text += "rewards: the log has none; name their column with --reward, or give them to the plan as a file\n",
    }
    text
}
