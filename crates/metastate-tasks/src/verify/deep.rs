//! `--deep`: the held-out scores of the chosen rank and its two neighbours, fitted again on the same folds by plain expectation and maximisation
//! without anything of the solver's. They start from the published model itself, with two meta-states merged or one split for a neighbour, and from
//! states that lie far apart; of each fold the best counts. So these fits have an advantage: where even so the claim is better, it is too good.

use metastate::Mat;
use metastate::workspace::plain::{Fold, anchored, climb, factor_scores, independent_scores, mean_and_error, merged, shares, split};
use metastate::workspace::score::Smoothing;
use metastate_report::ChoiceRecord;
use rayon::prelude::*;

use super::checks::{Checks, Named};
use super::subject::Subject;

/// Passes a fit, and what ten of them must gain a transition for it to go on.
const PASSES: usize = 400;
const TOLERANCE: f64 = 1e-6;
/// A claim may be ahead of what was found here by so many standard errors of the fold differences,
const ERRORS: f64 = 3.0;
/// and by this share of what the rank is ahead of the marginal law: two climbs of one hill do not end at the same height.
const SHARE: f64 = 0.01;
/// and in any case by so much a transition: rank one has nothing to be ahead of.
const LEAST: f64 = 1e-4;
/// Meta-states that are split in turn for the start of one more.
const SPLITS: usize = 3;

/// The rows of `ranks.csv` about the chosen rank and its neighbours.
pub fn check(checks: &mut Checks, subject: &Subject, record: &ChoiceRecord, ranks: &Named, folds: &[Fold]) {
    let chosen = record.rank;
    let prior = used_prior(record, ranks, chosen);
    let model = subject.model();
    let smoothing = Smoothing::default().share;
    let floor: Vec<f64> = folds.iter().map(|f| independent_scores(*f, smoothing).log_likelihood).collect();
    if model.u.cols() != chosen {
        return checks.not_checked(
            "held-out scores of the ranks and priors",
            "as in the file",
            "the published model has another rank: no start",
        );
    }
    for rank in chosen.saturating_sub(1).max(1)..=chosen + 1 {
        let row = (0..ranks.rows.len()).find(|&r| ranks.field(r, "model") == Some(&rank.to_string()));
        let Some(row) = row.filter(|&r| ranks.field(r, "first_look") == Some("")) else { continue };
        let starts = starts(subject, &model.u, &model.v, rank);
        let found: Vec<f64> = folds.par_iter().map(|fold| best_score(*fold, &starts, rank, prior, smoothing)).collect();
        let (mean, _) = mean_and_error(&found);
        // How far folds differ in what a fit gains over the marginal law: the two fits of one fold share the rest.
        let gains: Vec<f64> = found.iter().zip(&floor).map(|(f, i)| f - i).collect();
        let (gain, error) = mean_and_error(&gains);
        let allowed = ERRORS * error + SHARE * gain.abs() + LEAST;
        let claim = ranks.number(row, "held_out");
        let name = format!("held-out score of rank {rank}, fitted again");
        checks.add(&name, format!("{claim:.6}"), format!("{mean:.6}, {allowed:.1e} better is allowed"), claim <= mean + allowed);
    }
    checks.not_checked("held-out scores of the other ranks and priors", "as in the file", "the choice rests on those above");
}

/// The prior with which the ranks were compared: the one whose score is the row's, else the one chosen in the end.
fn used_prior(record: &ChoiceRecord, ranks: &Named, chosen: usize) -> f64 {
    let row = (0..ranks.rows.len()).find(|&r| ranks.field(r, "model") == Some(&chosen.to_string()));
    let score = row.map_or(f64::NAN, |r| ranks.number(r, "held_out"));
    record.priors.iter().find(|p| p.held_out.log_likelihood == score).map_or(record.prior, |p| p.prior)
}

/// Where fits of this rank start.
fn starts(subject: &Subject, u: &Mat, v: &Mat, rank: usize) -> Vec<(Mat, Mat)> {
    let Some(parts) = subject.data.parts() else { return Vec::new() };
    match rank.cmp(&u.cols()) {
        std::cmp::Ordering::Equal => vec![(u.clone(), v.clone())],
        std::cmp::Ordering::Less => vec![merged(parts.counts(), u, v)],
        std::cmp::Ordering::Greater => {
            let mass = shares(parts.counts(), u);
            let mut heaviest: Vec<usize> = (0..u.cols()).collect();
            heaviest.sort_by(|a, b| mass[*b].total_cmp(&mass[*a]));
            heaviest.into_iter().take(SPLITS).map(|k| split(u, v, k)).collect()
        }
    }
}

/// The best score that any of the starts leads to.
fn best_score(fold: Fold, starts: &[(Mat, Mat)], rank: usize, prior: f64, smoothing: f64) -> f64 {
    let own = anchored(fold.training, rank);
    let score = |(u, v): &(Mat, Mat)| {
        let x = climb(fold.training, u, v, prior, PASSES, TOLERANCE);
        factor_scores(fold, &x.u, &x.v, smoothing).log_likelihood
    };
    starts.iter().chain([&own]).map(score).fold(f64::NEG_INFINITY, f64::max)
}
