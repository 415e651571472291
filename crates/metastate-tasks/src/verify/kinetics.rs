//! The chain of the meta-states and its times, against the data.

use metastate::Mat;
use metastate::fit::CONFIDENCE;
use metastate::kinetics::{Classes, Scale, interval, modes_of};
use metastate::workspace::plain;
use metastate::workspace::small;
use metastate_report::{KineticsRecord, SavedKinetics, load_extras, load_kinetics};

use super::checks::Checks;
use super::subject::Subject;

/// The projection may miss its equation by this much, and the stochastic matrix next to it, which is found by iteration, its conditions by that much.
const CLOSE: f64 = 1e-7;
const NEIGHBOUR: f64 = 1e-4;
/// Columns of U count as independent when the eigenvalues of their Gram matrix are within this share of each other: below it rounding decides.
const INDEPENDENT: f64 = 1e-8;
/// Steps of the projection, at most.
const MOST_STEPS: usize = 4;
/// Times may differ by this share.
const SAME_TIME: f64 = 1e-6;

/// `kinetics.npz`, the record in the summary, and what the page shows.
pub fn check(checks: &mut Checks, subject: &Subject) {
    let told = &subject.result.summary.kinetics;
    if !subject.goes_on() {
        return checks.table("kinetics", told.is_some().then(|| "there are none: no transition can follow another".to_owned()));
    }
    let (Some(told), Ok(Some(saved))) = (told, load_kinetics(subject.folder)) else {
        return checks.table("kinetics", Some("no record, or no kinetics.npz".to_owned()));
    };
    checks.table("kinetics", wrong(subject, told, &saved).err());
    let chain = subject.chain();
    let plainly = Classes::of(chain.p()).connected() && !subject.fit.reversible;
    let name = "kinetics: the chain of the data";
    let (gram, through) = plain::kinetic_moments(subject.u(), chain.p(), chain.departures(), told.steps.min(MOST_STEPS));
    if !plainly {
        checks.hash_only(name, "with detailed balance, or of states that are not all connected");
    } else if !told.told_apart || !independent(&gram) {
        checks.hash_only(name, "the memberships nearly depend on each other, so that many chains fit alike");
    } else {
        checks.table(name, wrong_chain(&gram, &through, &saved, told.steps).err());
    }
    checks.hash_only("kinetics: passage times between states, parts of the data", "not computed again");
}

fn demand(it_is: bool, what: &str) -> Result<(), String> {
    if it_is { Ok(()) } else { Err(what.to_owned()) }
}

/// The record and the page against the matrices.
fn wrong(subject: &Subject, told: &KineticsRecord, saved: &SavedKinetics) -> Result<(), String> {
    let s = subject.u().cols();
    demand(saved.chain.rows() == s, "chain: not one row a meta-state")?;
    let parts = subject.data.data.uncertain(subject.draws() > 0, subject.fit.reversible, subject.result.summary.seed);
    demand(saved.part_chains.len() == parts.map_or(0, |p| p.parts()), "part_chains: the data have another number of parts")?;
    wrong_intervals(told, saved)?;
    let chain = subject.chain();
    let (gram, _) = plain::kinetic_moments(subject.u(), chain.p(), chain.departures(), 0);
    let alike = least_correlation(&gram) <= INDEPENDENT || !Classes::of(chain.p()).connected();
    demand(told.told_apart || alike, "told_apart: the memberships can be told apart")?;
    demand(told.told_apart || !told.carries, "carries: meta-states that cannot be told apart carry no times")?;
    demand(told.reversible == subject.fit.reversible, "reversible: another option")?;
    demand(told.lag == subject.result.summary.lag(), "lag: another one")?;
    let times: Vec<Option<f64>> = modes_of(&saved.projected, &saved.chain)
        .iter()
        .skip(1)
        .map(|m| (m.timescale.is_finite()).then_some(told.lag * m.timescale))
        .collect();
    let same = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= SAME_TIME * b.abs(),
        (a, b) => a == b,
    };
    let all_same = |list: &[Option<f64>]| list.len() == times.len() && list.iter().zip(&times).all(|(a, b)| same(a, b));
    demand(all_same(&told.timescales), "timescales: not those of kinetics.npz")?;
    let classes = Classes::of(subject.chain().p());
    let sizes: Vec<usize> = classes.closed_by_size().iter().map(|&c| classes.sizes[c as usize]).collect();
    demand(told.closed_classes == sizes, "closed_classes: the data have others")?;
    demand(told.transient_states == classes.transient_states(), "transient_states: the data have others")?;
    let Some(story) = load_extras(subject.folder, subject.labels.len()).map_err(|e| e.to_string())?.kinetics else {
        return Err("page.json shows none".to_owned());
    };
    let shown: Vec<Option<f64>> = story.modes.iter().map(|m| m.timescale).collect();
    demand(all_same(&shown), "page.json: other timescales")?;
    let rows: Vec<f64> = story.chain.into_iter().flatten().collect();
    demand(rows == saved.chain.as_slice(), "page.json: another chain")
}

/// The intervals of the timescales, from what each part of the data adds.
fn wrong_intervals(told: &KineticsRecord, saved: &SavedKinetics) -> Result<(), String> {
    let parts = &saved.part_timescales;
    let modes = if parts.rows() > 0 { modes_of(&saved.projected, &saved.chain) } else { Vec::new() };
    let own = modes.iter().skip(1).enumerate().map(|(k, m)| {
        let (low, high) = interval(m.timescale, (0..parts.rows()).map(|b| parts[(b, k)]), Scale::Times, CONFIDENCE);
        [low, high].map(|t| t.is_finite().then_some(told.lag * t))
    });
    let same = |a: &Option<f64>, b: &Option<f64>| a == b || a.zip(*b).is_some_and(|(a, b)| (a - b).abs() <= SAME_TIME * b.abs());
    let all = own.len() == told.timescale_intervals.len()
        && own.zip(&told.timescale_intervals).all(|([low, high], told)| same(&low, &told.0) && same(&high, &told.1));
    demand(all, "timescale_intervals: not those of kinetics.npz")
}

/// Whether the columns of U are far enough from each other for the projection to be one matrix only: `U^T D U` has no eigenvalue near zero.
fn independent(gram: &Mat) -> bool {
    small::symmetric_eigen(gram).is_some_and(|(values, _)| values.first() > values.last().map(|v| v * INDEPENDENT).as_ref())
}

/// The smallest eigenvalue of the correlations `g_jk / sqrt(g_jj g_kk)`: near zero where some memberships follow from others.
fn least_correlation(gram: &Mat) -> f64 {
    let scale = |j: usize| 1.0 / gram[(j, j)].max(f64::MIN_POSITIVE).sqrt();
    let correlations = Mat::from_fn(gram.rows(), gram.cols(), |j, k| gram[(j, k)] * scale(j) * scale(k));
    small::symmetric_eigen(&correlations).and_then(|(values, _)| values.first().copied()).unwrap_or(0.0)
}

/// The matrices against the data.
fn wrong_chain(gram: &Mat, through: &Mat, saved: &SavedKinetics, steps: usize) -> Result<(), String> {
    demand(steps <= MOST_STEPS, "steps: never so many")?;
    let (off, beside) =
        (plain::projection_residual(gram, through, &saved.projected), plain::neighbour_residual(gram, &saved.projected, &saved.chain));
    demand(off <= CLOSE, &format!("projected: misses its equation by {off:.1e}"))?;
    demand(beside <= NEIGHBOUR, &format!("chain: misses its conditions by {beside:.1e}"))
}
