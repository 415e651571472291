//! `compare --slice`: zones that all slices share, against zones of each slice alone, zones that ignore the slice, and one law a slice, on the same folds.

use std::time::Instant;

use metastate::aggregate::{Neighbours, Partition};
use metastate::compare::{SliceMethod, SliceScore, score_slices, zones_of_each};
use metastate::fit::{FitOptions, Parts, Rank, fit};
use metastate::{Counts, Folds, Model, Slices};
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
    let chain = loaded.shown_chain();
    let (Some(parts), Some(slices)) = (loaded.parts(), loaded.data.slices()) else {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the data have no slices").remedy("name them with --slice"));
    };
    let course = Course::new(compare, loaded, (parts, slices), seed)?;
    reporter.say(format!("{} states, {} slices, {} transitions", chain.states(), slices.len(), chain.transitions()));
    let (mut rows, mut shared) = (Vec::new(), SharedFit::default());
    for method in SliceMethod::ALL {
        stopper.go_on()?;
        reporter.say(method.name());
        let clock = Instant::now();
        let (mut rank, mut partition) = (shared.rank, None);
        if let Some(model) = course.fit(method, stopper)? {
            rank = model.rank();
            if method == SliceMethod::Shared {
                shared = SharedFit { rank, lambda: Some(model.solution.lambda), lambda_max: Some(model.lambda_max) };
            }
            partition = Some(model.zones);
        }
        let row = course.row(method, rank, partition.as_ref())?;
        rows.push(Row { seconds: clock.elapsed().as_secs_f64(), ..row });
    }
    Ok(Compared {
        states: chain.states(),
        transitions: chain.transitions(),
        rank: shared.rank,
        rank_is: if compare.rank.is_some() { "given" } else { "of the shared zones, chosen on all data by the recipe" },
        folds: course.folds.len(),
        lambda: shared.lambda,
        lambda_max: shared.lambda_max,
        prior: None,
        prior_is: "for each method the best on the other folds",
        folds_are: parts.how(),
        smoothing: None,
        smoothing_is: "for each method the best on the other folds, a share of the slice's own arrivals",
        weight_power: compare.weight_power,
        hard: "largest membership",
        neighbouring_pairs: course.places().map(|(centres, side)| Neighbours::of_cells(centres, side).pairs().len()),
        reference: None,
        seed,
        verdicts: verdict(&rows),
        methods: rows,
        ledger: LedgerRecord::list(loaded.chain().ledger()),
        hints: loaded.hints.clone(),
        out: compare.out.display().to_string(),
    })
}

/// What the fit with shared zones found. Methods without a fit of their own take its rank.
#[derive(Default)]
struct SharedFit {
    rank: usize,
    lambda: Option<f64>,
    lambda_max: Option<f64>,
}

/// What is the same for all methods: data, folds and recipe.
struct Course<'a> {
    loaded: &'a Dataset,
    /// The same transitions without their slices, for the method that ignores them.
    together: metastate::Data,
    folds: Folds,
    recipe: FitOptions,
    seed: u64,
}

impl<'a> Course<'a> {
    fn new(compare: &CompareArgs, loaded: &'a Dataset, (parts, slices): (&Parts, &Slices), seed: u64) -> Result<Self> {
        let folds = parts.folds(compare.folds, seed)?;
        let mut recipe = options(compare)?.seed(seed);
        if let Some(rank) = compare.rank {
            recipe = recipe.rank(Rank::Given(rank))?;
        }
        let counts = Counts::from_csr(loaded.shown_chain().index().clone(), slices.whole_counts(parts.counts())?)?;
        let together = metastate::Data::from_counts(&counts, &metastate::Estimate::default())?;
        Ok(Course { loaded, together, folds, recipe, seed })
    }

    /// Where the states are, and the side of a cell, where they are cells.
    fn places(&self) -> Option<(&[(f64, f64)], f64)> {
        self.loaded.coordinates.as_deref().zip(self.loaded.cell())
    }

    /// The fit to all data that gives a method its zones. None for methods without zones of the whole, and where states are lost without the slices.
    fn fit(&self, method: SliceMethod, stopper: &Stopper) -> Result<Option<Model>> {
        let data = match method {
            SliceMethod::Shared => &self.loaded.data,
            SliceMethod::Ignoring if self.together.chain().states() == self.loaded.shown_chain().states() => &self.together,
            _ => return Ok(None),
        };
        fit(data, &self.recipe, &mut Watch(stopper)).map(Some).map_err(|e| told(e, stopper))
    }

    /// How a method did on what was held out, and how its zones lie on the map.
    fn row(&self, method: SliceMethod, rank: usize, partition: Option<&Partition>) -> Result<Row> {
        let data = &self.loaded.data;
        let score = score_slices(data, &self.folds, method, rank, self.seed)?;
        let (log_likelihood, log_likelihood_se) = mean_and_error(&score.folds);
        let row = Row {
            method: method.name().to_owned(),
            ours: method == SliceMethod::Shared,
            log_likelihood,
            log_likelihood_se,
            smoothing: Some(score.smoothing),
            note: Some(note(method, &score)),
            ..Row::default()
        };
        Ok(match (partition, self.places()) {
            (Some(partition), places) => {
                let coherence = places.and_then(|(centres, side)| Neighbours::of_cells(centres, side).coherence(&partition.labels));
                Row {
                    zones: Some(partition.sizes.iter().filter(|n| **n > 0).count()),
                    coherence: coherence.map(|c| c.corrected),
                    coherence_same: coherence.map(|c| c.same),
                    coherence_chance: coherence.map(|c| c.chance),
                    ..row
                }
            }
            (None, Some((centres, side))) if method == SliceMethod::Alone => {
                let of_each = zones_of_each(data, score.rank, score.prior, self.seed)?;
                Row { coherence: mean_coherence(&of_each, centres, side), ..row }
            }
            _ => row,
        })
    }
}

/// What a reader of the table should know.
fn note(method: SliceMethod, score: &SliceScore) -> String {
    match method {
        SliceMethod::OneLaw => "the arrivals of the slice, whatever the origin".to_owned(),
        SliceMethod::Alone => format!(
            "{} meta-states for each slice and a prior of {} transitions a state served it best; coherence is the mean over slices",
            score.rank, score.prior
        ),
        _ => format!("{} meta-states; a prior of {} transitions a state served it best", score.rank, score.prior),
    }
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
