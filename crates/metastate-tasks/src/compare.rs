//! `metastate compare`: this method and its rivals, scored on the same held-out transitions. It says when we lose.

use std::time::Instant;

use metastate::aggregate::rivals::{self, Fitted, Hard, Method, RivalSettings, Training};
use metastate::aggregate::{Neighbours, Overlap, Partition, ZoneFlows};
use metastate::fit::Parts;
use metastate::solve::lambda_max;
use metastate::solve::refit::LikelihoodSettings;
use metastate::solve::score::{Smoothing, score};
use metastate::solve::select::{SelectSettings, select_prior};
use metastate::{Folds, Label, WeightPower};
use metastate_ingest::{Data, Ingested};
use metastate_report::folder::Draft;
use metastate_report::page::comparison;
use metastate_report::{Claim, LedgerRecord, ZoneSet, bar_chart, csv_field, number, zone_map};
use serde::Serialize;

use crate::args::{self, CompareArgs, CompareCommand, FitArgs, HardKind, Options};
use crate::data;
use crate::error::{CliError, Result};
use crate::place;
use crate::progress::Reporter;
use crate::reference::{self, Reference};
use crate::stop::{Doing, Stopper};
use crate::watch::WatchReading;

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
    pub folds: usize,
    pub lambda: f64,
    pub lambda_max: f64,
    /// Of the likelihood refit, when it is among the methods.
    pub prior: Option<f64>,
    pub prior_is: &'static str,
    pub folds_are: String,
    pub smoothing: f64,
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
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // named as the columns of compare.csv
pub struct Row {
    pub method: &'static str,
    pub ours: bool,
    pub log_likelihood: Option<f64>,
    pub log_likelihood_se: Option<f64>,
    pub squared_error: Option<f64>,
    pub squared_error_se: Option<f64>,
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
    let methods = chosen(&compare.methods)?;
    compare.check()?;
    let beside = compare.places.iter().chain(&compare.reference_from).cloned();
    place::keep(&compare.out, place::inputs(&command.input).into_iter().chain(beside))?;
    let _claim = Claim::folder(&compare.out, compare.force)?;

    stopper.doing(Doing::Reading);
    let mut watch = WatchReading { reporter, stopper };
    let ingested = ingest(&mut watch)?;
    let hints = ingested.hints.clone();
    let Data::Counts(counted) = ingested.data else {
        return Err(CliError::bad("E-CLI-ARGUMENT", "the input is a transition matrix; folds can only be held out of counts")
            .remedy("give the transitions or their counts"));
    };
    let fit = FitArgs { weight_power: compare.weight_power, ..FitArgs::with_ratio(1.0) };
    let loaded = data::from_counted(counted, &fit)?;
    let chain = loaded.chain();
    let parts = loaded.parts().ok_or(metastate::Error::Empty { what: "the list of transitions" })?;
    let counts = parts.counts();
    let labels: Vec<Label> = chain.index().labels().collect();
    let names: Vec<String> = labels.iter().map(Label::to_string).collect();
    let cells = loaded.coordinates.as_deref().zip(loaded.cell);
    let reference = reference::load(compare, &command.input, &names, cells, &mut watch)?;
    let neighbours = match (&compare.places, cells) {
        (Some(file), _) => Some(Neighbours::of_points(&reference::places(file, &compare.label, &names)?)),
        (None, Some((centres, side))) => Some(Neighbours::of_cells(centres, side)),
        _ => None,
    };
    stopper.doing(Doing::Working);
    reporter.say(format!("{} states, {} transitions, {} pairs", chain.states(), chain.transitions(), chain.nonzeros()));
    let power = chain.weight_power();
    let whole = Training::new(counts.clone(), power)?;
    let most = lambda_max(whole.p(), whole.weights(), seed)?;
    let prior = if methods.contains(&Method::LikelihoodRefit) { Some(strength(compare, parts, seed, reporter)?) } else { None };
    let base = RivalSettings {
        rank: compare.rank,
        lambda: most,
        likelihood: LikelihoodSettings { prior: prior.unwrap_or(0.0), ..LikelihoodSettings::default() },
        seed,
    };
    let lambda = match (compare.lambda, compare.lambda_ratio) {
        (Some(x), _) => x,
        (None, Some(ratio)) => ratio * most,
        (None, None) => {
            reporter.spin("lambda");
            rivals::largest_lambda(&whole, &base, most)?
        }
    };
    let settings = RivalSettings { lambda, ..base };
    let folds = parts.folds(compare.folds, seed)?;
    let trainings: Vec<Training> = (0..folds.len()).map(|f| Ok(Training::new(folds.training(f)?, power)?)).collect::<Result<_>>()?;
    let hard = match compare.hard {
        HardKind::Kmeans => Hard::KMeans,
        HardKind::Membership => Hard::Membership,
    };

    let mut rows = Vec::new();
    let mut maps = Vec::new();
    for &method in &methods {
        stopper.go_on()?;
        reporter.spin(method.name());
        let clock = Instant::now();
        let fitted = rivals::fit(method, &whole, &settings);
        let seconds = clock.elapsed().as_secs_f64();
        let (row, map) = match fitted {
            Err(e) => (failed(method, seconds, e.to_string()), None),
            Ok(fitted) => {
                let partition = fitted.partition(chain.xi(), hard, seed)?;
                let mut row = judged(method, seconds, partition.as_ref(), neighbours.as_ref(), reference.as_ref());
                row_scores(&mut row, method, &folds, &trainings, &settings, compare.smoothing)?;
                let set = partition.as_ref().zip(memberships(&fitted)).zip(cells).and_then(|((partition, u), cells)| {
                    let flows = ZoneFlows::new(chain.p(), chain.departures(), partition);
                    let set = ZoneSet { partition, flows: Some(&flows), labels: &labels, xi: chain.xi(), u, cells: Some(cells) };
                    set.outlines().map(|(zones, side)| {
                        zone_map(&format!("{}, {} zones", method.name(), partition.clusters()), &zones, side, OUTLIERS)
                    })
                });
                (row, set.map(|svg| (method.name(), svg)))
            }
        };
        rows.push(row);
        maps.extend(map);
    }
    let verdicts = verdicts(&rows);
    let compared = Compared {
        states: chain.states(),
        transitions: chain.transitions(),
        rank: compare.rank,
        folds: folds.len(),
        lambda,
        lambda_max: most,
        prior,
        prior_is: if compare.prior.is_some() { "given" } else { "chosen on inner folds" },
        folds_are: parts.how(),
        smoothing: compare.smoothing,
        weight_power: compare.weight_power,
        hard: if hard == Hard::KMeans { "k-means on the memberships" } else { "largest membership" },
        neighbouring_pairs: neighbours.as_ref().map(|n| n.pairs().len()),
        reference: compare.reference.clone(),
        seed,
        methods: rows,
        verdicts,
        ledger: LedgerRecord::list(chain.ledger()),
        hints,
        out: compare.out.display().to_string(),
    };
    reporter.spin("writing");
    let mut state = stopper.lock();
    write(&compared, &maps, compare)?;
    state.doing = Doing::Done;
    reporter.clear();
    Ok(compared)
}

/// The strength of the prior of our likelihood refit, as given or chosen on folds inside the training part of the first fold. It is
/// chosen once: the other folds use it too, although their held-out transitions had a part in the choice of this one number.
fn strength(compare: &CompareArgs, parts: &Parts, seed: u64, reporter: &mut Reporter) -> Result<f64> {
    if let Some(given) = compare.prior {
        return Ok(given);
    }
    reporter.spin("prior");
    let settings = SelectSettings { smoothing: Smoothing { share: compare.smoothing }, seed, ..SelectSettings::default() };
    Ok(select_prior(&parts.inner_folds(compare.folds, seed)?, compare.rank, &settings)?.0)
}

fn memberships(fitted: &Fitted) -> Option<&metastate::Mat> {
    match &fitted.model {
        rivals::FittedModel::Factors(x) => Some(&x.u),
        _ => None,
    }
}

fn chosen(names: &[String]) -> Result<Vec<Method>> {
    if names.is_empty() {
        return Ok(Method::ALL.to_vec());
    }
    let find = |name: &String| {
        Method::ALL.into_iter().find(|m| m.name() == name.trim()).ok_or_else(|| {
            let all: Vec<&str> = Method::ALL.iter().map(|m| m.name()).collect();
            CliError::bad("E-CLI-ARGUMENT", format!("--methods: there is no method `{name}`"))
                .remedy(format!("the methods are {}", all.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

fn failed(method: Method, seconds: f64, note: String) -> Row {
    Row {
        method: method.name(),
        ours: method.is_ours(),
        log_likelihood: None,
        log_likelihood_se: None,
        squared_error: None,
        squared_error_se: None,
        coherence: None,
        coherence_same: None,
        coherence_chance: None,
        zones: None,
        ari: None,
        nmi: None,
        seconds,
        note: Some(note),
    }
}

/// What the partition is worth.
fn judged(
    method: Method,
    seconds: f64,
    partition: Option<&Partition>,
    neighbours: Option<&Neighbours>,
    reference: Option<&Reference>,
) -> Row {
    let coherence = partition.zip(neighbours).and_then(|(p, n)| n.coherence(&p.labels));
    let overlap = partition.zip(reference).map(|(p, r)| Overlap::new(r.pairs.iter().map(|&(i, l, w)| (p.labels[i], l, w))));
    Row {
        coherence: coherence.map(|c| c.corrected),
        coherence_same: coherence.map(|c| c.same),
        coherence_chance: coherence.map(|c| c.chance),
        zones: partition.map(|p| p.sizes.iter().filter(|n| **n > 0).count()),
        ari: overlap.as_ref().and_then(Overlap::adjusted_rand),
        nmi: overlap.as_ref().and_then(Overlap::normalised_mutual_information),
        note: None,
        ..failed(method, seconds, String::new())
    }
}

/// Fits to the training part of each fold, scores on the rest.
fn row_scores(row: &mut Row, method: Method, folds: &Folds, parts: &[Training], settings: &RivalSettings, smoothing: f64) -> Result<()> {
    if method == Method::SvdClipped && parts[0].rows() > ROW_BY_ROW {
        row.note = Some(format!("not scored: every row must be formed, and there are more than {ROW_BY_ROW} states"));
        return Ok(());
    }
    let (mut likelihoods, mut errors) = (Vec::new(), Vec::new());
    for (f, training) in parts.iter().enumerate() {
        if folds.held_out(f).nonzeros() == 0 {
            row.note = Some("a fold holds no transitions".into());
            continue;
        }
        let fitted = rivals::fit(method, training, settings)?;
        let found = score(fitted.score_model(), training.observed().counts(), folds.held_out(f), Smoothing { share: smoothing })?;
        likelihoods.push(found.log_likelihood);
        errors.push(found.squared_error);
    }
    (row.log_likelihood, row.log_likelihood_se) = mean_and_error(&likelihoods);
    (row.squared_error, row.squared_error_se) = mean_and_error(&errors);
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
    let best = |rows: &mut dyn Iterator<Item = &Row>, of: fn(&Row) -> Option<f64>, high: bool| -> Option<(&'static str, f64)> {
        let sign = if high { 1.0 } else { -1.0 };
        let found: Vec<(&'static str, f64)> = rows.filter_map(|r| Some((r.method, of(r)?))).collect();
        found.into_iter().max_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)))
    };
    let mut out = Vec::new();
    for (what, of, high) in measures {
        let ours = best(&mut rows.iter().filter(|r| r.ours), of, high);
        let theirs = best(&mut rows.iter().filter(|r| !r.ours), of, high);
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
    out
}

impl Compared {
    fn csv(&self) -> String {
        let mut out = String::from(
            "method,ours,log_likelihood,log_likelihood_se,squared_error,squared_error_se,coherence,coherence_same,coherence_chance,zones,ari,nmi,seconds,note\n",
        );
        let field = |x: Option<f64>| x.map_or_else(String::new, number);
        for r in &self.methods {
            let numbers = [
                r.log_likelihood,
                r.log_likelihood_se,
                r.squared_error,
                r.squared_error_se,
                r.coherence,
                r.coherence_same,
                r.coherence_chance,
            ];
            let numbers: Vec<String> = numbers.into_iter().map(field).collect();
            out += &format!(
                "{},{},{},{},{},{},{},{}\n",
                r.method,
                r.ours,
                numbers.join(","),
                r.zones.map_or_else(String::new, |z| z.to_string()),
                field(r.ari),
                field(r.nmi),
                number(r.seconds),
                csv_field(r.note.as_deref().unwrap_or(""))
            );
        }
        out
    }
}

fn write(compared: &Compared, maps: &[(&str, String)], compare: &CompareArgs) -> Result<()> {
    let draft = Draft::begin(&compare.out)?;
    let csv = compared.csv();
    draft.file("compare.csv", csv.as_bytes())?;
    let json = serde_json::to_string_pretty(compared).map_err(|e| CliError::failed("E-CLI-WRITE", e.to_string()))?;
    draft.file("compare.json", format!("{json}\n").as_bytes())?;
    let record = serde_json::from_str(&json).unwrap_or_default();
    let mut bars: Vec<(String, f64, bool)> =
        compared.methods.iter().filter_map(|r| Some((r.method.to_owned(), r.log_likelihood?, r.ours))).collect();
    bars.sort_by(|a, b| b.1.total_cmp(&a.1));
    let chart = bar_chart("Held-out log-likelihood a transition", &bars);
    let mut pictures = vec![("compare".to_owned(), chart)];
    pictures.extend(maps.iter().map(|(name, svg)| (format!("map-{name}"), svg.clone())));
    // By name, as a folder lists them: `report` makes the same page.
    pictures.sort();
    for (name, svg) in &pictures {
        draft.file(&format!("{name}.svg"), svg.as_bytes())?;
    }
    draft.file("report.html", comparison(&record, &csv, &pictures).as_bytes())?;
    Ok(draft.finish(compare.force)?)
}
