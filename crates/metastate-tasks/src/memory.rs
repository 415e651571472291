//! How much memory a fit will need, said before it is taken. Running out of it ends a process without a word, so what cannot fit is refused in a sentence.

use metastate_ingest::available_memory;

use crate::args::{FitArgs, InputArgs};
use crate::error::{CliError, Result};

/// Numbers that the solver holds a state: thin matrices of as many columns as there may be meta-states, ...
const MATRICES: u64 = 60;
/// ... and lists. Measured as the high-water mark of fits of 5,000 states with up to 5 and up to 50 meta-states.
const LISTS: u64 = 200;
/// Bytes a pair of counted states: the counts, and the matrix by rows and by columns; a half more for each part that is held out.
const BYTES_A_PAIR: u64 = 48;
/// The same for a matrix that was given, which may be dense.
const BYTES_AN_ENTRY: u64 = 24;
/// What the program itself needs.
const PROGRAM: u64 = 32 << 20;

/// Bytes that a fit of so many states and pairs takes, about; counted pairs, or those of a matrix that was given.
pub fn estimate(fit: &FitArgs, states: usize, pairs: usize, counted: bool) -> u64 {
    let columns = (fit.most_metastates() as u64).min(states as u64);
    let parts = if counted && fit.needs_parts() { fit.folds as u64 } else { 0 };
    let each = if counted { BYTES_A_PAIR } else { BYTES_AN_ENTRY };
    let factors = 8u64.saturating_mul(states as u64).saturating_mul(MATRICES.saturating_mul(columns).saturating_add(LISTS));
    factors.saturating_add((pairs as u64).saturating_mul(each).saturating_mul(1 + parts / 2)).saturating_add(PROGRAM)
}

/// Refuses a fit that will not find the memory that it needs.
pub fn check(input: &InputArgs, fit: &FitArgs, states: usize, pairs: usize, counted: bool) -> Result<()> {
    let needed = estimate(fit, states, pairs, counted);
    let (limit, of) = match input.memory_limit {
        Some(limit) => (limit, "--memory-limit is"),
        None => (available_memory(), "there is memory for"),
    };
    if needed <= limit {
        return Ok(());
    }
    let gigabytes = |bytes: u64| format!("{:.2} GB", bytes as f64 / 1e9);
    let fewer = (2..fit.most_metastates()).rev().find(|k| {
        let smaller = FitArgs { rank: None, max_rank: Some(*k), ..fit.clone() };
        estimate(&smaller, states, pairs, counted) <= limit
    });
    let remedy = match fewer {
        Some(k) => format!("--max-rank {k} needs less; --min-share leaves out states that hardly occur; a larger --memory-limit insists"),
        None => {
            "leave out states that hardly occur with --min-share, use a machine with more memory, or insist with a larger --memory-limit"
                .to_owned()
        }
    };
    let what = format!(
        "a fit of {states} states and {pairs} pairs with up to {} meta-states would need about {}, and {of} {}",
        fit.most_metastates(),
        gigabytes(needed),
        gigabytes(limit)
    );
    Err(CliError::bad("E-DATA-TOO-LARGE", what).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_allowed_and_what_does_not_gets_a_remedy() {
        let (fit, mut input) = (FitArgs::with_ratio(0.5), InputArgs::default());
        assert!(check(&input, &fit, 1000, 10_000, true).is_ok());
        input.memory_limit = Some(1_500_000_000);
        let refused = check(&input, &fit, 300_000, 3_000_000, true).unwrap_err();
        let told = refused.to_string();
        assert!(refused.exit() == 2 && told.contains("300000 states") && told.contains("--max-rank"), "{told}");
        let fewer = FitArgs { max_rank: Some(3), ..fit };
        assert!(check(&input, &fewer, 300_000, 3_000_000, true).is_ok());
        assert!(check(&input, &fewer, usize::MAX, usize::MAX, true).is_err());
    }
}
