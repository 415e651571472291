//! `compare --slice`: zones that all slices share, against zones of each slice alone, zones that ignore the slice, and one law a slice, on the same folds.

use std::time::Instant;

use metastate::aggregate::{Neighbours, Partition};
use metastate::compare::{SliceMethod, score_slices, zones_of_each};
use metastate::fit::{Rank, fit};
use metastate_report::LedgerRecord;

use super::{Compared, Row, Watch, mean_and_error, options, told};
use crate::args::CompareArgs;
use crate::data::Dataset;
use crate::error::{CliError, Result};
use crate::progress::Reporter;
use crate::stop::Stopper;

/// Options that speak of methods and groups which slices do not have.
pub fn check(compare: &CompareArgs) -> Result<()> {
    let given = [
        ("methods", !compare.methods.is_empty()),
        ("with", !compare.with.is_empty()),
        ("groups", !compare.groups.is_empty()),
        ("reference", compare.reference.is_some()),
        ("smoothing", compare.smoothing.is_some()),
        ("hard", compare.hard.is_some()),
        ("places", compare.places.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(CliError::bad(
            "E-CLI-ARGUMENT",
            format!("--slice compares four ways to tell slices apart, and --{option} speaks of something else"),
        )
        .remedy(format!("leave out --{option}, or --slice"))),
        None => Ok(()),
    }
}

/// Everybody fits and is judged.
pub fn contest(compare: &CompareArgs, loaded: &Dataset, seed: u64, reporter: &mut Reporter, stopper: &Stopper) -> Result<Compared> {
    let (data, chain) = (&loaded.data, loaded.shown_chain());
    let (Some(parts), Some(whole)) = (data.parts(), data.slices()) else {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the data have no slices").remedy("name them with --slice"));
    };
    let mut watch = Watch(stopper);
    let folds = parts.folds(compare.folds, seed)?;
    let mut recipe = options(compare)?.seed(seed);
    if let Some(rank) = compare.rank {
        recipe = recipe.rank(Rank::Given(rank))?;
    }
    reporter.say(format!("{} states, {} slices, {} transitions", chain.states(), whole.len(), chain.transitions()));
    let counts = whole.whole_counts(parts.counts())?;
    let alone =
        metastate::Data::from_counts(&metastate::Counts::from_csr(chain.index().clone(), counts)?, &metastate::Estimate::default())?;
    let (mut rows, mut rank_of_shared) = (Vec::new(), 0);
    let (mut lambda, mut lambda_max) = (None, None);
    for method in SliceMethod::ALL {
        stopper.go_on()?;
        reporter.say(method.name());
        let clock = Instant::now();
        let mut row = Row { method: method.name().to_owned(), ours: method == SliceMethod::Shared, ..Row::default() };
        let mut rank = rank_of_shared;
        let mut partition: Option<Partition> = None;
        match method {
            SliceMethod::Shared => {
                let model = fit(data, &recipe, &mut watch).map_err(|e| told(e, stopper))?;
                (rank, lambda, lambda_max) = (model.rank(), Some(model.solution.lambda), Some(model.lambda_max));
                rank_of_shared = rank;
                partition = Some(model.zones);
            }
            SliceMethod::Ignoring if alone.chain().states() == chain.states() => {
                let model = fit(&alone, &recipe, &mut watch).map_err(|e| told(e, stopper))?;
                rank = model.rank();
                partition = Some(model.zones);
            }
            _ => {}
        }
        let score = score_slices(data, &folds, method, rank, seed)?;
        (row.log_likelihood, row.log_likelihood_se) = mean_and_error(&score.folds);
        row.smoothing = Some(score.smoothing);
        let places = loaded.coordinates.as_deref().zip(loaded.cell());
        match (&partition, places) {
            (Some(partition), _) => {
                row.zones = Some(partition.sizes.iter().filter(|n| **n > 0).count());
                let coherence = places.and_then(|(centres, side)| Neighbours::of_cells(centres, side).coherence(&partition.labels));
                row.coherence = coherence.map(|c| c.corrected);
                row.coherence_same = coherence.map(|c| c.same);
                row.coherence_chance = coherence.map(|c| c.chance);
            }
            (None, Some((centres, side))) if method == SliceMethod::Alone => {
                let of_each = zones_of_each(data, score.rank, score.prior, seed)?;
                row.coherence = mean_coherence(&of_each, centres, side);
            }
            _ => {}
        }
        row.note = Some(match method {
            SliceMethod::OneLaw => "the arrivals of the slice, whatever the origin".to_owned(),
            SliceMethod::Alone => format!(
                "{} meta-states for each slice and a prior of {} transitions a state served it best; coherence is the mean over slices",
                score.rank, score.prior
            ),
            _ => format!("{} meta-states; a prior of {} transitions a state served it best", score.rank, score.prior),
        });
        row.seconds = clock.elapsed().as_secs_f64();
        rows.push(row);
    }
    Ok(Compared {
        states: chain.states(),
        transitions: chain.transitions(),
        rank: rank_of_shared,
        rank_is: if compare.rank.is_some() { "given" } else { "of the shared zones, chosen on all data by the recipe" },
        folds: folds.len(),
        lambda,
        lambda_max,
        prior: None,
        prior_is: "for each method the best on the other folds",
        folds_are: parts.how(),
        smoothing: None,
        smoothing_is: "for each method the best on the other folds, a share of the slice's own arrivals",
        weight_power: compare.weight_power,
        hard: "largest membership",
        neighbouring_pairs: loaded.coordinates.as_deref().zip(loaded.cell()).map(|(c, side)| Neighbours::of_cells(c, side).pairs().len()),
        reference: None,
        seed,
        verdicts: verdict(&rows),
        methods: rows,
        ledger: LedgerRecord::list(data.chain().ledger()),
        hints: loaded.hints.clone(),
        out: compare.out.display().to_string(),
    })
}

/// The mean over the slices, each by itself on the states that are left in it.
fn mean_coherence(of_each: &[(Vec<usize>, Vec<u32>)], centres: &[(f64, f64)], side: f64) -> Option<f64> {
    let one = |(states, labels): &(Vec<usize>, Vec<u32>)| {
        let places: Vec<(f64, f64)> = states.iter().map(|&i| centres[i]).collect();
        Neighbours::of_cells(&places, side).coherence(labels).map(|c| c.corrected)
    };
    let found: Vec<f64> = of_each.iter().filter_map(one).filter(|c| c.is_finite()).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

/// Whether shared zones are best, in plain words.
fn verdict(rows: &[Row]) -> Vec<String> {
    let score = |r: &Row| r.log_likelihood.unwrap_or(f64::NEG_INFINITY);
    let (Some(ours), Some(best)) =
        (rows.iter().find(|r| r.ours), rows.iter().filter(|r| !r.ours).max_by(|a, b| score(a).total_cmp(&score(b))))
    else {
        return Vec::new();
    };
    let (mine, theirs, rival) = (score(ours), score(best), &best.method);
    let question = "held-out log-likelihood of where trips lead, origin and slice known";
    vec![if mine > theirs {
        format!("{question}: shared zones are best ({mine:.4}; the best other way is {rival} with {theirs:.4})")
    } else {
        format!("{question}: shared zones LOSE to {rival} ({theirs:.4}; shared zones {mine:.4})")
    }]
}
