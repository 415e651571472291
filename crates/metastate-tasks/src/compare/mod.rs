//! `metastate compare`: this method and its rivals, scored on the same held-out transitions. It says when we lose.

mod contenders;
mod slices;
mod table;

use std::time::Instant;

use metastate::aggregate::rivals::{Fitted, FittedModel, Rival};
use metastate::aggregate::{Neighbours, Overlap, Partition};
use metastate::compare::{Arena, Contender, Part};
use metastate::fit::{FitObserver, FitOptions, Lambda, Refit, RefitKind, Unfinished};
use metastate::solve::{Control, Observer, Progress};
use metastate::workspace::score::Smoothing;
use metastate::{Label, WeightPower};
use metastate_ingest::{Data, Ingested};
use metastate_report::{Claim, Ground, LedgerRecord, MapLook, zone_colour, zone_map};
use serde::Serialize;

use crate::args::{self, CompareArgs, CompareCommand, FitArgs, HardKind, Options};
use crate::data::{self, Dataset};
use crate::error::{CliError, Result};
use crate::memory::{self, Estimate, Work};
use crate::place;
use crate::progress::Reporter;
use crate::reference::{self, Reference};
use crate::stop::{Doing, Stopper};
use crate::watch::WatchReading;
use contenders::{Entrant, States, entrants};

/// Above this many states, a model that must be scored row by row is left out.
const ROW_BY_ROW: usize = 20_000;
/// Share of the map's corners that a picture may leave out on each side, so that one far cell does not shrink all others.
const OUTLIERS: f64 = 0.02;

/// What was compared.
#[derive(Debug, Serialize)]
#[allow(missing_docs)] // named as in compare.json
pub struct Compared {
    pub states: usize,
    pub transitions: f64,
    pub rank: usize,
    pub rank_is: &'static str,
    pub folds: usize,
    /// Of this package's fit to all data, when it is among the methods.
    pub lambda: Option<f64>,
    pub lambda_max: Option<f64>,
    pub prior: Option<f64>,
    pub prior_is: &'static str,
    pub folds_are: String,
    /// As given; without it each row has its own.
    pub smoothing: Option<f64>,
    pub smoothing_is: &'static str,
    #[serde(with = "args::weight_power")]
    pub weight_power: WeightPower,
    pub hard: &'static str,
    pub neighbouring_pairs: Option<usize>,
    pub reference: Option<String>,
    pub seed: u64,
    pub methods: Vec<Row>,
    pub verdicts: Vec<String>,
    pub ledger: Vec<LedgerRecord>,
    pub hints: Vec<String>,
    pub out: String,
}

/// One method. Scores are means over the folds, with their standard errors; the rest is from the fit to all data.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs)] // named as the columns of compare.csv
pub struct Row {
    pub method: String,
    pub ours: bool,
    pub log_likelihood: Option<f64>,
    pub log_likelihood_se: Option<f64>,
    pub squared_error: Option<f64>,
    pub squared_error_se: Option<f64>,
    /// Share of the marginal law, or pseudo-counts a state for the counts and the blend, that served it best.
    pub smoothing: Option<f64>,
    pub coherence: Option<f64>,
    pub coherence_same: Option<f64>,
    pub coherence_chance: Option<f64>,
    pub zones: Option<usize>,
    pub ari: Option<f64>,
    pub nmi: Option<f64>,
    pub seconds: f64,
    pub note: Option<String>,
}

/// Reads, fits all methods to all data and to each fold's training part, scores, writes.
pub fn run(command: &CompareCommand, seed: u64, reporter: &mut Reporter, stopper: &Stopper) -> Result<Compared> {
    run_on(command, seed, reporter, stopper, |watch| data::ingest(&command.input, true, watch))
}

/// The same on data from elsewhere.
pub fn run_on(
    command: &CompareCommand,
    seed: u64,
    reporter: &mut Reporter,
    stopper: &Stopper,
    ingest: impl FnOnce(&mut WatchReading) -> Result<Ingested>,
) -> Result<Compared> {
    let compare = &command.compare;
    crate::inputs::refuse_actions(&command.input, "compare")?;
    contenders::methods(&compare.methods)?;
    compare.check()?;
    if command.input.slice.is_some() {
        slices::check(compare)?;
    }
    let beside = compare.places.iter().chain(&compare.reference_from).chain(&compare.groups_from).chain(&compare.with).cloned();
    place::keep(&compare.out, place::inputs(&command.input).into_iter().chain(beside))?;
    let _claim = Claim::folder(&compare.out, compare.force)?;

    stopper.doing(Doing::Reading);
    let mut watch = WatchReading { reporter, stopper };
    let ingested = ingest(&mut watch)?;
    let Data::Counts(_) = &ingested.data else {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the input is a transition matrix; folds can only be held out of counts")
            .remedy("give the transitions or their counts"));
    };
    let fit = FitArgs { weight_power: compare.weight_power, ..FitArgs::with_ratio(1.0) };
    let loaded = data::estimate(ingested, &fit)?;
    if command.input.slice.is_some() {
        stopper.doing(Doing::Working);
        let compared = slices::contest(compare, &loaded, seed, reporter, stopper)?;
        let mut state = stopper.lock();
        table::write(&compared, &[], compare)?;
        state.doing = Doing::Done;
        reporter.clear();
        return Ok(compared);
    }
    let judge = Judge::new(command, &loaded, &mut watch)?;
    let states = States { chain: loaded.chain(), names: &judge.names, cells: judge.cells };
    let entrants = entrants(command, &states, &loaded.inputs, seed, &mut watch)?;
    stopper.doing(Doing::Working);
    let chain = loaded.chain();
    reporter.say(format!("{} states, {} transitions, {} pairs", chain.states(), chain.transitions(), chain.nonzeros()));

    let (compared, maps) = contest(compare, &loaded, &judge, &entrants, seed, reporter, stopper)?;
    reporter.spin("writing");
    let mut state = stopper.lock();
    table::write(&compared, &maps, compare)?;
    state.doing = Doing::Done;
    reporter.clear();
    Ok(compared)
}

/// What a comparison would take: this package's method fits the data and every training part, and its rivals are quicker.
pub fn estimate(command: &CompareCommand, reporter: &mut Reporter, stopper: &Stopper) -> Result<Estimate> {
    let compare = &command.compare;
    contenders::methods(&compare.methods)?;
    let fit = FitArgs {
        rank: compare.rank,
        lambda: compare.lambda,
        lambda_ratio: compare.lambda_ratio,
        prior: compare.prior,
        folds: compare.folds,
        weight_power: compare.weight_power,
        ..FitArgs::default()
    };
    let times = 1.0 + compare.folds as f64;
    if let Some(found) = memory::sizes(&command.input)? {
        let work = Work::new(&fit, found.states, found.pairs, true);
        return Estimate::new(work, &command.input, "from the headers".to_owned(), times);
    }
    let mut watch = WatchReading { reporter, stopper };
    let loaded = data::estimate(data::ingest(&command.input, true, &mut watch)?, &fit)?;
    reporter.clear();
    let (chain, rows) = (loaded.chain(), loaded.rows);
    let work = Work { from_rows: true, ..Work::new(&fit, chain.states() as u64, chain.nonzeros() as u64, true) };
    Estimate::new(work, &command.input, format!("counted in {rows} rows"), times)
}

/// Everybody fits and is judged. Beside the table, the map of each entrant that has one, under its name.
fn contest(
    compare: &CompareArgs,
    loaded: &Dataset,
    judge: &Judge,
    entrants: &[Entrant],
    seed: u64,
    reporter: &mut Reporter,
    stopper: &Stopper,
) -> Result<(Compared, Vec<(String, String)>)> {
    reporter.spin(if compare.rank.is_some() { "folds" } else { "choosing" });
    let mut contest = Contest::begin(compare, loaded, judge, seed, stopper)?;
    let (mut rows, mut maps) = (Vec::new(), Vec::new());
    for entrant in entrants {
        stopper.go_on()?;
        reporter.say(entrant.name.clone());
        let (row, map) = contest.enter(entrant)?;
        rows.push(row);
        maps.extend(map.map(|svg| (entrant.name.clone(), svg)));
    }
    let ours = entrants.iter().any(|e| uses_ours(&e.contender));
    Ok((contest.compared(rows, ours)?, maps))
}

/// A contest under way.
struct Contest<'a> {
    compare: &'a CompareArgs,
    loaded: &'a Dataset,
    judge: &'a Judge<'a>,
    seed: u64,
    stopper: &'a Stopper,
    arena: Arena<'a>,
    /// What our own fit took: every entrant that stands on it is told so.
    seconds_of_ours: f64,
}

impl<'a> Contest<'a> {
    fn begin(compare: &'a CompareArgs, loaded: &'a Dataset, judge: &'a Judge<'a>, seed: u64, stopper: &'a Stopper) -> Result<Self> {
        let clock = Instant::now();
        let options = options(compare)?;
        let arena = Arena::new(&loaded.data, compare.folds, compare.rank, &options, seed, &mut Watch(stopper));
        let arena = arena.map_err(|e| told(e, stopper))?;
        let seconds_of_ours = if compare.rank.is_none() { clock.elapsed().as_secs_f64() } else { 0.0 };
        Ok(Contest { compare, loaded, judge, seed, stopper, arena, seconds_of_ours })
    }

    /// One entrant fits and is judged: its row of the table, and its map where it has one.
    fn enter(&mut self, entrant: &Entrant) -> Result<(Row, Option<String>)> {
        let (stopper, xi) = (self.stopper, self.loaded.chain().xi());
        let mut watch = Watch(stopper);
        let clock = Instant::now();
        if uses_ours(&entrant.contender) {
            self.arena.ours(Part::Whole, &mut watch).map_err(|e| told(e, stopper))?;
            self.seconds_of_ours += clock.elapsed().as_secs_f64();
        }
        let clock = Instant::now();
        let fitted = self.arena.fit(&entrant.contender, Part::Whole, &mut watch);
        let shared = if uses_ours(&entrant.contender) { self.seconds_of_ours } else { 0.0 };
        let seconds = shared + clock.elapsed().as_secs_f64();
        stopper.go_on()?;
        let row = Row { method: entrant.name.clone(), ours: entrant.ours, seconds, ..Row::default() };
        let fitted = match fitted {
            Err(e) => return Ok((Row { note: Some(e.to_string()), ..row }, None)),
            Ok(fitted) => fitted,
        };
        let partition = match &entrant.partition {
            Some(partition) => Some(partition.clone()),
            None => fitted.partition(xi, entrant.hard, self.seed)?,
        };
        let mut row = self.judge.partition(row, partition.as_ref());
        row.note.clone_from(&entrant.note);
        score(&mut row, &fitted, entrant, &mut self.arena, self.compare.smoothing, &mut watch).map_err(|e| told(e, stopper))?;
        Ok((row, self.judge.map(&entrant.name, partition.as_ref(), &fitted, xi)))
    }

    /// The table with what it rests on; `ours` says whether our own fit is behind any row of it.
    fn compared(mut self, rows: Vec<Row>, ours: bool) -> Result<Compared> {
        let (compare, loaded, stopper) = (self.compare, self.loaded, self.stopper);
        let (rank, folds) = (self.arena.rank(), self.arena.folds().len());
        let model = if ours { Some(self.arena.ours(Part::Whole, &mut Watch(stopper)).map_err(|e| told(e, stopper))?) } else { None };
        let prior = model.and_then(|m| m.refit.as_ref()).and_then(|refit| match refit {
            Refit::Likelihood { prior, .. } => Some(*prior),
            Refit::LeastSquares(_) => None,
        });
        let chain = loaded.chain();
        Ok(Compared {
            states: chain.states(),
            transitions: chain.transitions(),
            rank,
            rank_is: if compare.rank.is_some() { "given" } else { "chosen on all data by the recipe" },
            folds,
            lambda: model.map(|m| m.solution.lambda),
            lambda_max: model.map(|m| m.lambda_max),
            prior,
            prior_is: if compare.prior.is_some() { "given" } else { "on all data; chosen anew on each training part" },
            folds_are: loaded.parts().map(|p| p.how()).unwrap_or_default(),
            smoothing: compare.smoothing,
            smoothing_is: if compare.smoothing.is_some() { "given" } else { "for each method the best on the other folds" },
            weight_power: compare.weight_power,
            hard: match compare.hard {
                Some(HardKind::Kmeans) => "k-means on the memberships",
                Some(HardKind::Membership) => "largest membership",
                None => "k-means on the memberships, for our refits by the largest membership",
            },
            neighbouring_pairs: self.judge.neighbours.as_ref().map(|n| n.pairs().len()),
            reference: compare.reference.clone(),
            seed: self.seed,
            verdicts: verdicts(&rows),
            methods: rows,
            ledger: LedgerRecord::list(chain.ledger()),
            hints: loaded.hints.clone(),
            out: compare.out.display().to_string(),
        })
    }
}

/// What is asked of the recipe, but for rank, folds and seed: its own defaults unless given.
fn options(compare: &CompareArgs) -> Result<FitOptions> {
    let mut options = FitOptions::default().refit(RefitKind::Likelihood);
    options = match (compare.lambda, compare.lambda_ratio) {
        (Some(x), _) => options.lambda(Lambda::Given(x))?,
        (None, Some(ratio)) => options.lambda(Lambda::Ratio(ratio))?,
        (None, None) => options,
    };
    match compare.prior {
        Some(prior) => Ok(options.prior(prior)?),
        None => Ok(options),
    }
}

/// Whether the fit of this package is needed.
fn uses_ours(contender: &Contender) -> bool {
    contender.is_ours() || matches!(contender, Contender::Blend)
}

/// An interruption is told as such.
fn told(error: metastate::Error, stopper: &Stopper) -> CliError {
    stopper.go_on().err().unwrap_or_else(|| error.into())
}

/// Lets a fit be stopped; nothing is kept.
struct Watch<'a>(&'a Stopper);

impl Watch<'_> {
    fn control(&self) -> Control {
        if self.0.must_end() { Control::Interrupt } else { Control::Continue }
    }
}

impl Observer for Watch<'_> {
    fn progress(&mut self, _: &Progress) -> Control {
        self.control()
    }
}

impl FitObserver for Watch<'_> {
    fn path_progress(&mut self, _: &Progress) -> Control {
        self.control()
    }
    fn keep(&mut self, _: &Unfinished) -> Control {
        self.control()
    }
    fn look(&mut self) -> Control {
        self.control()
    }
}

/// What partitions are judged by, and how they are drawn.
struct Judge<'a> {
    labels: Vec<Label>,
    names: Vec<String>,
    cells: reference::Cells<'a>,
    reference: Option<Reference>,
    neighbours: Option<Neighbours>,
}

impl<'a> Judge<'a> {
    fn new(command: &CompareCommand, loaded: &'a Dataset, watch: &mut WatchReading) -> Result<Self> {
        let compare = &command.compare;
        let labels: Vec<Label> = loaded.chain().index().labels().collect();
        let names: Vec<String> = labels.iter().map(Label::to_string).collect();
        let cells = loaded.coordinates.as_deref().zip(loaded.cell());
        let load = |column: &String| {
            reference::load(column, compare.reference_from.as_deref(), &compare.label, &command.input, &names, cells, watch)
        };
        let reference = compare.reference.as_ref().map(load).transpose()?;
        let neighbours = match (&compare.places, cells) {
            (Some(file), _) => Some(Neighbours::of_points(&reference::places(file, &compare.label, &names)?)),
            (None, Some((centres, side))) => Some(Neighbours::of_cells(centres, side)),
            _ => None,
        };
        Ok(Judge { labels, names, cells, reference, neighbours })
    }

    /// What the partition is worth.
    fn partition(&self, row: Row, partition: Option<&Partition>) -> Row {
        let coherence = partition.zip(self.neighbours.as_ref()).and_then(|(p, n)| n.coherence(&p.labels));
        let overlap =
            partition.zip(self.reference.as_ref()).map(|(p, r)| Overlap::new(r.pairs.iter().map(|&(i, l, w)| (p.labels[i], l, w))));
        Row {
            coherence: coherence.map(|c| c.corrected),
            coherence_same: coherence.map(|c| c.same),
            coherence_chance: coherence.map(|c| c.chance),
            zones: partition.map(|p| p.sizes.iter().filter(|n| **n > 0).count()),
            ari: overlap.as_ref().and_then(Overlap::adjusted_rand),
            nmi: overlap.as_ref().and_then(Overlap::normalised_mutual_information),
            ..row
        }
    }

    /// A map of the zones, where states are cells.
    fn map(&self, name: &str, partition: Option<&Partition>, fitted: &Fitted, xi: &[f64]) -> Option<String> {
        let partition = partition.filter(|_| fitted.factors().is_some())?;
        let (places, side) = self.cells?;
        let colours: Vec<String> = (0..partition.clusters()).map(zone_colour).collect();
        let title = format!("{name}, {} zones", partition.clusters());
        let look = MapLook { title: &title, colours: &colours, names: &[], within: OUTLIERS };
        Some(zone_map(&look, &Ground::Squares(side).shapes(&self.labels, places, partition, xi)))
    }
}

/// Fits to the training part of each fold, scores on the rest.
fn score(
    row: &mut Row,
    fitted: &Fitted,
    entrant: &Entrant,
    arena: &mut Arena,
    smoothing: Option<f64>,
    watch: &mut Watch,
) -> metastate::Result<()> {
    if matches!(fitted.model, FittedModel::Clipped(_)) && arena.data().chain().states() > ROW_BY_ROW {
        row.note = Some(format!("not scored: every row must be formed, and there are more than {ROW_BY_ROW} states"));
        return Ok(());
    }
    let judged = arena.judge(&entrant.contender, smoothing.map(|share| Smoothing { share }), watch)?;
    let folds = &judged.held_out.folds;
    if folds.len() < arena.folds().len() {
        row.note = Some("a fold holds no transitions".into());
    }
    (row.log_likelihood, row.log_likelihood_se) = mean_and_error(&folds.iter().map(|s| s.log_likelihood).collect::<Vec<_>>());
    (row.squared_error, row.squared_error_se) = mean_and_error(&folds.iter().map(|s| s.squared_error).collect::<Vec<_>>());
    row.smoothing = Some(judged.smoothing);
    Ok(())
}

fn mean_and_error(values: &[f64]) -> (Option<f64>, Option<f64>) {
    let n = values.len() as f64;
    if values.is_empty() {
        return (None, None);
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (Some(mean), Some((variance / n).sqrt()))
}

type Measure = (&'static str, fn(&Row) -> Option<f64>, bool);

/// For each measure, whether the best of ours is the best of all, in plain words.
fn verdicts(rows: &[Row]) -> Vec<String> {
    let measures: [Measure; 5] = [
        ("held-out log-likelihood", |r| r.log_likelihood, true),
        ("held-out squared error", |r| r.squared_error, false),
        ("spatial coherence", |r| r.coherence, true),
        ("agreement with the reference (ARI)", |r| r.ari, true),
        ("agreement with the reference (NMI)", |r| r.nmi, true),
    ];
    fn best<'r>(rows: impl Iterator<Item = &'r Row>, of: fn(&Row) -> Option<f64>, high: bool) -> Option<(&'r str, f64)> {
        let sign = if high { 1.0 } else { -1.0 };
        let found = rows.filter_map(|r| Some((r.method.as_str(), of(r)?)));
        found.max_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)))
    }
    // The blend is between ours and the counts, and so on neither side.
    let blend = Contender::Blend.name();
    let mut out = Vec::new();
    for (what, of, high) in measures {
        let ours = best(rows.iter().filter(|r| r.ours), of, high);
        let theirs = best(rows.iter().filter(|r| !r.ours && r.method != blend), of, high);
        if let (Some((mine, a)), Some((rival, b))) = (ours, theirs) {
            let ahead = if high { a - b } else { b - a };
            out.push(if ahead > 0.0 {
                format!("{what}: ours is best ({mine} {a:.4}; the best rival is {rival} with {b:.4})")
            } else if ahead == 0.0 {
                format!("{what}: a draw ({mine} and {rival}, {a:.4})")
            } else {
                format!("{what}: WE LOSE to {rival} ({b:.4}; our best is {mine} with {a:.4})")
            });
        }
    }
    let likelihood = |name: &str| rows.iter().find(|r| r.method == name).and_then(|r| r.log_likelihood);
    let (model, counts) = (Contender::LikelihoodRefit, Contender::Rival(Rival::Empirical));
    if let (Some(between), Some(model), Some(counts)) = (likelihood(blend), likelihood(model.name()), likelihood(counts.name())) {
        let ahead = between - model.max(counts);
        out.push(if ahead > 0.0 {
            format!("the blend of counts and model predicts better than either: {between:.4} (model {model:.4}, counts {counts:.4})")
        } else {
            format!(
                "the blend of counts and model is no better than the better of the two: {between:.4} (model {model:.4}, counts {counts:.4})"
            )
        });
    }
    out
}
