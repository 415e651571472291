//! The word for why the solver stopped, against the options and the numbers.

use metastate::solve::Settings;
use metastate_report::{StatusWord, Summary};

use super::checks::Checks;
use super::command::TypedCommand;
use crate::args::{FitArgs, StopKind};

/// A proof made here may be weaker than the one behind the claim, but by no more than this share of the gap asked for.
const MOST_SLACK: f64 = 0.05;

/// What this program proved itself.
pub struct ProvenAgain {
    /// `(F - bound) / F`; none where nothing could be proven.
    pub gap: Option<f64>,
    /// By how much that may be above the gap of the result, in the same unit, for reasons that are understood.
    pub slack: f64,
}

/// Whether the word may stand.
pub fn check(checks: &mut Checks, summary: &Summary, fit: &FitArgs, typed: Option<&TypedCommand>, proven: &ProvenAgain) {
    let found = wrong(summary, fit, typed, proven);
    checks.add("status", summary.status, found.clone().unwrap_or_else(|| "allowed".to_owned()), found.is_none());
}

fn wrong(summary: &Summary, fit: &FitArgs, typed: Option<&TypedCommand>, proven: &ProvenAgain) -> Option<String> {
    let unless = |it_is: bool, why: &str| (!it_is).then(|| why.to_owned());
    match summary.status {
        StatusWord::Certified => {
            let slack = proven.slack.clamp(0.0, MOST_SLACK * fit.gap);
            let told = proven.gap.map_or_else(|| "nothing".to_owned(), |g| format!("{g:.2e}"));
            match fit.stop() {
                StopKind::Certificate if proven.gap.is_some_and(|g| g <= fit.gap + slack) => None,
                StopKind::Certificate => Some(format!("asked for a gap of {:.2e}, proven is {told}", fit.gap)),
                _ => Some("no rule of these options certifies".to_owned()),
            }
        }
        StatusWord::Early => unless(fit.stop() == StopKind::Early, "needs --stop early"),
        StatusWord::RankCap => {
            let chosen = summary.choice.as_ref().map_or(usize::MAX, |c| c.rank);
            let most = fit.most_metastates().min(chosen);
            (summary.rank < most).then(|| format!("{} meta-states, and {most} were allowed", summary.rank))
        }
        StatusWord::IterationLimit => {
            let most = Settings::default().max_sweeps;
            (summary.iterations < most).then(|| format!("{} sweeps, and {most} were allowed", summary.iterations))
        }
        StatusWord::TimeLimit => {
            let limit = typed.map_or_else(|| summary.command.contains("time_limit="), |t| t.command.run.time_limit.is_some());
            unless(limit, "the command has no time limit")
        }
        // A downward word: no claim that anything was reached.
        StatusWord::Stationary | StatusWord::Interrupted => None,
    }
}
