//! The refit: that it is there, what it is worth by plain loops over the data, and that it is a refit and not just any pair of factors.

use metastate::solve::Factors;
use metastate::workspace::plain::{
    Prior, climb, climb_with, descend, fidelity, log_likelihood, marginal, most_penalised, penalised, shares,
};
use metastate::{Chain, Csr, Mat, Operator};
use metastate_report::{LeastSquaresRecord, LikelihoodRecord, RefitRecord, StartWord, number};

use super::checks::Checks;
use super::subject::Subject;
use crate::args::RefitKind;

/// Passes of plain expectation and maximisation from the published refit,
const FURTHER_PASSES: usize = 20;
/// and what they may gain a transition: the refit ends when two passes gain less than 1e-8, or after 500; by then they gain little.
const FURTHER_GAIN: f64 = 1e-3;
/// What the least share of a prior is of an even one.
const LEAST_SHARE: f64 = 1e-3;
/// Results of earlier versions do not tell the prior's shares: nats that a prior with other shares may move a transition that is all prior.
const ANOTHER_PRIOR: f64 = 0.1;
/// The same for least squares, as a share: that refit ends when five sweeps gain less than 1e-8 of it, or after 2000.
const FURTHER_SHARE: f64 = 1e-2;

/// Sums of laws are one, and sums over all data the same, but for this share.
const SUM: f64 = 1e-9;
/// A fidelity may differ by this share of itself, of that of one meta-state, and of the data.
const FIDELITY: (f64, f64, f64) = (1e-7, 1e-11, 1e-20);
/// Nothing but rounding is a fidelity below this share of the data: errors of less than 1e-8 of the entries.
const ROUNDING: f64 = 1e-16;
/// The refit is no worse than where it began, but for this share.
const NO_WORSE: f64 = 1e-6;

/// The record and the factors.
pub fn check(checks: &mut Checks, subject: &Subject, truth: Option<&dyn Operator>) {
    let summary = &subject.result.summary;
    let kind = match subject.fit.refit_kind() {
        RefitKind::None => {
            if summary.refit.is_some() || subject.result.refit.is_some() {
                checks.table("refit", Some("none was asked for".to_owned()));
            }
            return;
        }
        RefitKind::LeastSquares => "least-squares",
        RefitKind::Likelihood => "likelihood",
    };
    let (Some(told), Some(refit)) = (&summary.refit, &subject.result.refit) else {
        let gone = if summary.refit.is_none() { "no record in summary.json" } else { "no refit.npz" };
        return checks.table("refit", Some(gone.to_owned()));
    };
    checks.table("refit", wrong_record(subject, told, refit, kind));
    checks.table("refit.npz", not_stochastic(refit).then(|| "factors that are not stochastic".to_owned()));
    let chain = subject.data.chain();
    match told {
        RefitRecord::LeastSquares(told) => least_squares(checks, subject, told, refit),
        RefitRecord::Likelihood(told) => likelihood(checks, subject, told, refit),
    }
    if let Some(truth) = truth {
        let (found, reported) = (recovery(chain, refit, truth), told.rel_re().unwrap_or(f64::NAN));
        checks.add("refit rel_re", number(reported), number(found), (reported - found).abs() <= 1e-6 * found);
    }
    checks.not_checked("refit sweeps, passes, converged, tried", kind, "how it came about");
}

/// Kind, rank and prior.
fn wrong_record(subject: &Subject, told: &RefitRecord, refit: &Factors, kind: &str) -> Option<String> {
    let summary = &subject.result.summary;
    let chosen = summary.choice.as_ref().map(|c| c.rank);
    let rank = refit.u.cols();
    if told.kind() != kind {
        return Some(format!("kind: {kind} was asked for"));
    }
    if told.rank() != rank {
        return Some(format!("rank: the factors have {rank}"));
    }
    // Data with fewer directions than were chosen have a refit of fewer.
    // A solution with more meta-states than states has some that the refit does not need.
    let superfluous = summary.rank > refit.u.rows();
    if rank > chosen.unwrap_or(summary.rank) || (chosen.is_none() && rank != summary.rank && !superfluous) {
        return Some(format!("rank: {} was found", chosen.unwrap_or(summary.rank)));
    }
    let prior = subject.fit.prior.or(summary.choice.as_ref().map(|c| c.prior));
    let wrong = kind == "likelihood" && prior.is_some_and(|c| told.prior() != Some(c));
    wrong.then(|| format!("prior: should be {}", number(prior.unwrap_or(f64::NAN))))
}

fn not_stochastic(Factors { u, v }: &Factors) -> bool {
    let rows = (0..u.rows()).map(|i| (u.row(i).iter().sum::<f64>() - 1.0).abs());
    let columns = (0..v.cols()).map(|k| ((0..v.rows()).map(|j| v[(j, k)]).sum::<f64>() - 1.0).abs());
    let bad = |x: &f64| !(*x >= 0.0 && x.is_finite());
    u.as_slice().iter().chain(v.as_slice()).any(bad) || rows.chain(columns).any(|miss| miss > SUM)
}

/// The fidelity, no worse than before the refit, nor than that of one meta-state.
fn least_squares(checks: &mut Checks, subject: &Subject, told: &LeastSquaresRecord, refit: &Factors) {
    let chain = subject.data.chain();
    let found = fidelity(chain.p(), chain.weights(), &refit.u, &refit.v);
    let one = rank_one(chain);
    let scale = fidelity(chain.p(), chain.weights(), &one.u, &one.v);
    let reported = told.fidelity;
    let agrees = (reported - found).abs() <= FIDELITY.0 * found.abs() + FIDELITY.1 * scale + FIDELITY.2 * squares(chain);
    checks.add("refit fidelity", number(reported), number(found), agrees);
    let rounding = ROUNDING * squares(chain);
    let mut most = scale;
    if refit.u.cols() == subject.result.factors.u.cols() {
        most = most.min(fidelity(chain.p(), chain.weights(), &subject.result.factors.u, &subject.result.factors.v));
    }
    checks.add(
        "refit is no worse than what it started from",
        number(found),
        format!("at most {}", number(most)),
        found <= most * (1.0 + NO_WORSE) + rounding,
    );
    let (u, v) = descend(chain.p(), chain.weights(), &refit.u, &refit.v, FURTHER_PASSES);
    let gain = (found - fidelity(chain.p(), chain.weights(), &u, &v)) / found;
    let agrees = gain <= FURTHER_SHARE || found <= SUM * scale + rounding;
    checks.add(
        "refit is at rest",
        format!("at most {FURTHER_SHARE:.0e} of itself"),
        format!("{gain:.1e} in {FURTHER_PASSES} steps"),
        agrees,
    );
}

/// `||Xi P||_F^2`.
fn squares(chain: &Chain) -> f64 {
    let row = |i: usize| {
        let mut sum = 0.0;
        chain.p().row(i).for_each(chain.p().cols(), |_, x| sum += x * x);
        sum
    };
    chain.weights().iter().enumerate().map(|(i, w)| w * w * row(i)).sum()
}

/// `v = sum xi_i^2 p_i / sum xi_i^2`: the best of rank one.
fn rank_one(chain: &Chain) -> Factors {
    let n = chain.p().cols();
    let (mut law, mut total) = (vec![0.0; n], 0.0);
    for (i, w) in chain.weights().iter().enumerate() {
        chain.p().row(i).for_each(n, |j, x| law[j] += w * w * x);
        total += w * w;
    }
    Factors { u: Mat::from_fn(chain.states(), 1, |_, _| 1.0), v: Mat::from_fn(n, 1, |j, _| law[j] / total) }
}

/// The likelihood with and without the prior; further passes find little to gain.
fn likelihood(checks: &mut Checks, subject: &Subject, told: &LikelihoodRecord, refit: &Factors) {
    // What was counted, or for a given matrix its weights times its rows, and the prior in the same unit.
    let Ok((counts, unit)) = subject.data.data.transitions() else {
        return checks.table("refit log_likelihood", Some("the data have no transitions".to_owned()));
    };
    let found = log_likelihood(&counts, &refit.u, &refit.v);
    let reported = told.log_likelihood;
    checks.add("refit log_likelihood", number(reported), number(found), (reported - found).abs() <= SUM * found.abs());
    let strength = unit * told.prior;
    if !strength.is_finite() {
        return checks.table("refit is at rest", Some("no prior in the record".to_owned()));
    }
    let prior = prior_of(checks, subject, told, refit, &counts).map(|shares| Prior { strength, shares, marginal: marginal(&counts) });
    let unfinished = subject.limited && !told.converged;
    match prior {
        Some(prior) => with_its_prior(checks, told, refit, &counts, &prior, unfinished),
        None => with_some_prior(checks, told, refit, &counts, strength, unfinished),
    }
}

/// The shares of the prior, which are those of the start: as they are told, or as the start has them where that is published.
fn prior_of(checks: &mut Checks, subject: &Subject, told: &LikelihoodRecord, refit: &Factors, counts: &Csr) -> Option<Vec<f64>> {
    let (start, rank) = (&subject.result.factors.u, refit.u.cols());
    let of_start = (told.start == StartWord::PenalisedSolution && start.cols() == rank).then(|| shares(counts, start));
    match told.prior_shares.as_slice() {
        [] => of_start,
        told => {
            checks.table("refit prior_shares", wrong_shares(told, rank, of_start.as_deref()));
            (told.len() == rank).then(|| told.to_vec())
        }
    }
}

/// The prior is known, and with it what was maximised.
fn with_its_prior(checks: &mut Checks, told: &LikelihoodRecord, refit: &Factors, counts: &Csr, prior: &Prior, unfinished: bool) {
    let found = penalised(counts, &refit.u, &refit.v, prior);
    checks.add("refit penalised", number(told.penalised), number(found), (told.penalised - found).abs() <= SUM * found.abs());
    let gain = || climb_with(counts, &refit.u, &refit.v, prior, FURTHER_PASSES, 0.0).gain(found);
    // The prior adds c transitions to every state in U and as many to V: where these outweigh the data, so do they in what was maximised.
    let added = 2.0 * prior.strength * refit.u.rows() as f64;
    at_rest(checks, unfinished, FURTHER_GAIN * (1.0 + added / counts.values().iter().sum::<f64>()), gain);
}

/// Results of earlier versions do not tell the prior's shares: only the ends of the range are known, and the passes made here have other
/// shares than those of the refit, by which they differ in a share of what the prior weighs.
fn with_some_prior(checks: &mut Checks, told: &LikelihoodRecord, refit: &Factors, counts: &Csr, strength: f64, unfinished: bool) {
    let Factors { u, v } = refit;
    let (low, high) = most_penalised(counts, u, v, strength);
    let inside = told.penalised >= low - SUM * low.abs() && told.penalised <= high + SUM * high.abs();
    checks.add("refit penalised", number(told.penalised), format!("between {low:.6} and {high:.6}"), inside);
    let pseudo = strength * u.rows() as f64;
    let most = FURTHER_GAIN + ANOTHER_PRIOR * pseudo / (pseudo + counts.values().iter().sum::<f64>());
    let gain = || {
        let climbed = climb(counts, u, v, strength, FURTHER_PASSES, 0.0);
        climbed.values.last().copied().unwrap_or(f64::NAN) - log_likelihood(counts, u, v)
    };
    at_rest(checks, unfinished, most, gain);
}

/// Further passes gain little, unless the command ended the refit before it came to rest.
fn at_rest(checks: &mut Checks, unfinished: bool, most: f64, gain: impl FnOnce() -> f64) {
    if unfinished {
        return checks.not_checked("refit is at rest", "not converged", "the command had a time limit");
    }
    let gain = gain();
    checks.add(
        "refit is at rest",
        format!("at most {most:.0e} a transition"),
        format!("{gain:.1e} in {FURTHER_PASSES} passes"),
        gain <= most,
    );
}

/// What is wrong with the shares that the prior is told to have had: they are masses, none below a thousandth of an even share before all were
/// divided by their sum, and those of the start where that is known.
fn wrong_shares(told: &[f64], rank: usize, of_start: Option<&[f64]>) -> Option<String> {
    let least = LEAST_SHARE / rank as f64 / (1.0 + LEAST_SHARE);
    let sum: f64 = told.iter().sum();
    if told.len() != rank || !told.iter().all(|a| *a >= least * (1.0 - 1e-9)) || (sum - 1.0).abs() > 1e-9 {
        return Some(format!("they are not {rank} shares of one whole"));
    }
    let other = of_start.is_some_and(|known| known.iter().zip(told).any(|(a, b)| (a - b).abs() > 1e-9));
    other.then(|| "they are not those of the start".to_owned())
}

/// `||Xi (X - P)||^2 / ||Xi P||^2`, P the truth, every entry formed.
fn recovery(chain: &Chain, Factors { u, v }: &Factors, truth: &dyn Operator) -> f64 {
    let d = chain.states();
    let (mut error, mut norm) = (0.0, 0.0);
    let mut row = vec![0.0; d];
    for i in 0..d {
        row.fill(0.0);
        truth.row(i).for_each(d, |j, x| row[j] += x);
        let w = chain.weights()[i] * chain.weights()[i];
        for (j, x) in row.iter().enumerate() {
            let model: f64 = u.row(i).iter().zip(v.row(j)).map(|(u, v)| u * v).sum();
            error += w * (model - x) * (model - x);
            norm += w * x * x;
        }
    }
    error / norm
}
