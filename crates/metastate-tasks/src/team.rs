//! The processes that this one works with, where `mpirun` has started several. All of them go the same way through the same program; one of them, the first, leads: it alone tells the user and
//! writes files.

use std::sync::{Arc, OnceLock};

use metastate::linalg::team::{Share, Team};
use metastate::solve::Control;
use metastate::{Counts, Csr};
use metastate_ingest::CountedStates;

use crate::args::{ConnectedKind, FitArgs, InputArgs, ObjectiveKind};
use crate::error::{CliError, Result};

static TEAM: OnceLock<Arc<dyn Team>> = OnceLock::new();

/// From now on this process is one of these.
pub fn join(team: Arc<dyn Team>) {
    // Whoever joins twice stays with the first.
    let _ = TEAM.set(team);
}

/// The processes; none where this is the only one.
pub fn here() -> Option<&'static Arc<dyn Team>> {
    TEAM.get()
}

/// Whether this process tells and writes.
pub fn leads() -> bool {
    here().is_none_or(|team| team.rank() == 0)
}

/// One number of each process, for all of them.
fn everybodys(team: &Arc<dyn Team>, own: f64) -> Vec<f64> {
    let mut all = vec![0.0; team.size()];
    all[team.rank()] = own;
    team.gather(&mut all, &(1..=team.size()).collect::<Vec<_>>());
    all
}

/// What all processes do: they go on only together. To be called by all of them at the same place.
pub fn agree(own: Control) -> Control {
    let Some(team) = here() else { return own };
    let weight = match own {
        Control::Continue => 0.0,
        Control::TimeUp => 1.0,
        Control::Interrupt => 2.0,
    };
    match everybodys(team, weight).into_iter().fold(0.0, f64::max) {
        x if x >= 2.0 => Control::Interrupt,
        x if x >= 1.0 => Control::TimeUp,
        _ => Control::Continue,
    }
}

/// Nobody goes on before all have come here.
pub fn wait() {
    agree(Control::Continue);
}

/// Refuses, before any data is read, what several processes cannot do together yet.
pub fn check(input: &InputArgs, fit: &FitArgs, whole_path: bool) -> Result<()> {
    if here().is_none() {
        return Ok(());
    }
    let asked = [
        ("`metastate path`", whole_path),
        ("--objective whitened", fit.objective == ObjectiveKind::Whitened),
        ("--bootstrap", fit.bootstrap > 0),
        ("--bipartite", fit.bipartite),
        ("--reversible", fit.reversible),
        ("--truth", fit.truth.is_some()),
        ("--connected largest", fit.connected != ConnectedKind::All),
        ("--min-share", input.min_share > 0.0),
        ("--max-self-share", input.max_self_share.is_some()),
        ("--where", input.where_.is_some()),
        ("--weight", input.weight.is_some()),
    ];
    match asked.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((what, _)) => Err(CliError::bad("E-CLI-TEAM", format!("{what} is for one process, and mpirun started several"))
            .remedy("leave it out, or start one process; states are filtered when the counts are made: metastate count with --min-share, then its file with --shard")),
    }
}

/// From the shards that this process has read to its share of the counts: contiguous rows in the order of all states, about as many entries as the others have.
pub fn divide(counted: CountedStates) -> Result<CountedStates> {
    let Some(team) = here() else { return Ok(counted) };
    let foreign = |sentence: &str| CliError::bad("E-INGEST-SHARD", sentence).remedy("count the shards again");
    let index = counted.counts.index().clone();
    // Every shard names all states, those without a pair of its own too.
    let names = index.labels().fold(0xcbf2_9ce4_8422_2325u64, |hash, label| {
        label.to_string().bytes().chain([0]).fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    });
    // As many bits as a number holds exactly.
    let names = everybodys(team, (names >> 12) as f64);
    if names.iter().any(|n| *n != names[0]) {
        return Err(foreign("the shards do not name the same states"));
    }
    let d = index.len();
    let one = Share::balanced(Arc::clone(team), |_| 1.0, d);
    let mut entries: Vec<f64> = (0..d).map(|i| counted.counts.csr().row(i).0.len() as f64).collect();
    one.add_up(&mut entries);
    let share = Share::balanced(Arc::clone(team), |i| 1.0 + entries[i], d);
    let csr = Csr::dealt(d, d, counted.counts.csr().triplets(), share);
    let (ledger, lag, mode) = (counted.counts.ledger().clone(), counted.counts.lag(), counted.counts.mode());
    let CountedStates { coordinates, cell, rows, kept, hints, sum_of_parts, .. } = counted;
    let mut counts = Counts::from_csr(index, csr)?.with_lag(lag, mode)?;
    *counts.ledger_mut() = ledger;
    let told = sum_of_parts.unwrap_or(f64::NAN);
    if !((counts.transitions() - told).abs() <= 1e-9 * told) {
        return Err(foreign("the shards together do not hold as many transitions as each of them says"));
    }
    Ok(CountedStates { counts, coordinates, cell, rows, kept, hints, frames: None, second: None, sum_of_parts: None })
}
