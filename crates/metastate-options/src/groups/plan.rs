//! Options of `plan`.

use std::path::PathBuf;

use metastate::fit::FOLDS;

use crate::entry::{allowed, free};

options! {
    /// What is planned.
    PlanArgs, None, free, {
        /// The result folder of a fit with --action. The plan is written into it.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// What a reward one step later is worth, as a share of what it is worth now: at least 0, below 1. With 0.95 a plan looks about 20 steps ahead, with
        /// 0.99 about 100.
        discount: f64 = 0.0 => |e| e.value("G").required().bounds(allowed::DISCOUNT);
        /// Table of rewards to use instead of those in the log. Its columns are state, action and reward (for taking this action in this state), or state and
        /// reward (for any action in this state), or to and reward (for arriving in this state).
        reward: Option<PathBuf> = None => |e| e.value("FILE");
        /// Also let the policy take actions that were never tried in a state. What they do there is guessed from what they did in similar states, those that
        /// are reached through the same meta-states. Without it such actions are not taken, because nothing is known about them.
        untried: bool = false => |e| e;
        /// Do not read the log again: the plan is then not checked on held-out records and has no bound.
        no_check: bool = false => |e| e;
        /// Number of parts into which the log is cut for the check: each is held out once. Episodes are not cut.
        folds: usize = FOLDS => |e| e.value("K").bounds(allowed::FOLDS);
    }
}
