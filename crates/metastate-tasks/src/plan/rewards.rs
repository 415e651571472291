//! Rewards from a file, in place of those of the log.

use std::collections::HashMap;
use std::path::Path;

use metastate::plan::{Log, Tried};
use metastate::{Label, Mat, StateIndex};
use metastate_ingest::side::SideTable;
use metastate_report::{FileRecord, hash};

use crate::error::{CliError, Result};

/// What is paid, by what the file names.
enum By {
    /// For doing something in a state.
    Pair(HashMap<(Label, Label), f64>),
    /// For doing anything in a state.
    State(HashMap<Label, f64>),
    /// For arriving somewhere.
    Next(HashMap<Label, f64>),
}

/// Labels of states and of actions.
type Names<'a> = (&'a StateIndex, &'a StateIndex);

/// A table of rewards.
pub struct GivenRewards {
    by: By,
    /// Which bytes it came from.
    pub file: FileRecord,
}

impl GivenRewards {
    /// A table with the column `reward`, and `state` and `action`, or `state`, or `to`.
    pub fn read(path: &Path) -> Result<Self> {
        let table = SideTable::read(path, &["reward"], &["state", "action", "to"])?;
        let (bytes, sha256) = hash::of_file(path)?;
        let file = FileRecord { name: path.display().to_string(), role: "rewards".to_owned(), bytes, sha256 };
        let reward = table.required("reward")?;
        let refuse = |sentence: &str| {
            CliError::bad("E-CLI-ARGUMENT", sentence.to_owned())
                .at(path.display().to_string())
                .remedy("give the columns state, action and reward (for taking this action in this state), or state and reward (for any action in this state), or to and reward (for arriving in this state)")
        };
        let label = |row: usize, column: usize| table.value(row, column).map(Label::from);
        let (state, action, to) = (table.column("state"), table.column("action"), table.column("to"));
        let list = |column: usize| -> Result<HashMap<Label, f64>> {
            let mut all = HashMap::new();
            for row in 0..table.rows() {
                let name = label(row, column).ok_or_else(|| refuse("a row of this table of rewards names no state"))?;
                if all.insert(name.clone(), table.number(row, reward)?).is_some() {
                    return Err(refuse(&format!("this table of rewards names the state `{}` twice", name.to_string().escape_debug())));
                }
            }
            Ok(all)
        };
        let by = match (state, action, to) {
            (Some(state), Some(action), None) => {
                let mut all = HashMap::new();
                for row in 0..table.rows() {
                    let (Some(s), Some(a)) = (label(row, state), label(row, action)) else {
                        return Err(refuse("a row of this table of rewards names no state or no action"));
                    };
                    if all.insert((s, a), table.number(row, reward)?).is_some() {
                        return Err(refuse("this table of rewards names a pair of state and action twice"));
                    }
                }
                By::Pair(all)
            }
            (Some(state), None, None) => By::State(list(state)?),
            (None, None, Some(to)) => By::Next(list(to)?),
            _ => return Err(refuse("it is not clear what this table of rewards pays for")),
        };
        Ok(GivenRewards { by, file })
    }

    /// What the rewards are paid for, in words.
    pub fn kind(&self) -> &'static str {
        match self.by {
            By::Pair(_) => "state and action",
            By::State(_) => "state",
            By::Next(_) => "next state",
        }
    }

    /// What a record is paid.
    fn of(&self, (states, actions): Names<'_>, state: u32, action: u32, next: u32) -> Result<f64> {
        let label = |s: u32| states.label(s as usize);
        let (found, what) = match &self.by {
            By::Pair(all) => {
                let (s, a) = (label(state), actions.label(action as usize));
                (all.get(&(s.clone(), a.clone())), format!("`{s}` and action `{a}`"))
            }
            By::State(all) => (all.get(&label(state)), format!("`{}`", label(state))),
            By::Next(all) => (all.get(&label(next)), format!("`{}`", label(next))),
        };
        found.copied().ok_or_else(|| {
            CliError::bad("E-CLI-ARGUMENT", format!("this table of rewards has no row for the state {}", what.escape_debug()))
                .at(self.file.name.clone())
                .remedy("give a row for each; a reward may be 0")
        })
    }

    /// What each pair is paid in the fitted model.
    pub fn at_pairs(&self, names: Names<'_>, tried: &Tried, u: &Mat, v: &Mat) -> Result<Vec<f64>> {
        let pairs = &tried.pairs;
        if !matches!(self.by, By::Next(_)) {
            return (0..pairs.len()).map(|p| self.of(names, pairs.state[p], pairs.action[p], pairs.state[p])).collect();
        }
        // theta = V^T reward, and a pair is paid U theta.
        let mut theta = vec![0.0; v.cols()];
        for (j, next) in tried.reached.iter().enumerate() {
            let reward = self.of(names, *next, 0, *next)?;
            theta.iter_mut().zip(v.row(j)).for_each(|(t, v)| *t += v * reward);
        }
        Ok((0..pairs.len()).map(|p| u.row(p).iter().zip(&theta).map(|(u, t)| u * t).sum()).collect())
    }

    /// The log, paid so.
    pub fn pays(&self, log: Log) -> Result<Log> {
        let r = log.records();
        let names = (log.states(), log.actions());
        let rewards: Vec<f64> = (0..r.len()).map(|i| self.of(names, r.from[i], r.action[i], r.to[i])).collect::<Result<_>>()?;
        Ok(log.paid(rewards)?)
    }
}
