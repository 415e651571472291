//! Options of `plan`.

use std::path::PathBuf;

use metastate::fit::FOLDS;

use crate::entry::{allowed, free};

options! {
    /// What is planned.
    PlanArgs, None, free, {
        /// The result folder of a fit with --action. The plan is written into it.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// What a reward one step later is worth beside one now: at least 0, below 1. With 0.95 a plan looks about 20 steps ahead, with 0.99 about 100.
        discount: f64 = 0.0 => |e| e.value("G").required().bounds(allowed::DISCOUNT);
        /// Table of rewards in place of those of the log: with the columns state, action and reward (paid for doing it there), state and reward (for doing anything there), or to and reward (paid
        /// on arrival).
        reward: Option<PathBuf> = None => |e| e.value("FILE");
        /// Let the policy take actions that were never tried in a state, too, at what they did in states that are reached alike. Without it they are left out, because nothing is known of them.
        untried: bool = false => |e| e;
        /// Do not read the log again: no check on held-out records, and no bound.
        no_check: bool = false => |e| e;
        /// Number of parts into which the log is cut for the check, whole episodes where it has them: each is held out once.
        folds: usize = FOLDS => |e| e.value("K").bounds(allowed::FOLDS);
    }
}
