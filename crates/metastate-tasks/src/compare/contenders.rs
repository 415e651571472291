//! Who takes part in a comparison: the methods that are built in, results of earlier fits, and groups of the states from elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use metastate::aggregate::Partition;
use metastate::aggregate::rivals::Hard;
use metastate::compare::Contender;
use metastate::fit::{Lambda, Rank};
use metastate::solve::Factors;
use metastate::{Chain, FitOptions, Mat};
use metastate_ingest::ReadProgress;
use metastate_report::{FileRecord, SavedResult};

use crate::args::{CompareArgs, CompareCommand, HardKind};
use crate::error::{CliError, Result};
use crate::reference::{self, Cells};
use crate::settings;
use crate::verify::recorded_options;

/// Somebody who takes part.
pub struct Entrant {
    /// In the table.
    pub name: String,
    /// Who it is.
    pub contender: Contender,
    /// Whether this package made it.
    pub ours: bool,
    /// How its memberships become hard meta-states, where it has no partition of its own.
    pub hard: Hard,
    /// A partition to judge and draw instead of what the fit to all data gives.
    pub partition: Option<Partition>,
    /// What a reader of the table should know.
    pub note: Option<String>,
}

/// The states as the tables of others name them.
pub struct States<'a> {
    /// P, xi and labels.
    pub chain: &'a Chain,
    /// Their labels.
    pub names: &'a [String],
    /// Where they are, where they are cells.
    pub cells: Cells<'a>,
}

/// All that were asked for: the methods, then results, then groups.
pub fn entrants(
    command: &CompareCommand,
    states: &States,
    inputs: &[FileRecord],
    seed: u64,
    progress: &mut dyn ReadProgress,
) -> Result<Vec<Entrant>> {
    let compare = &command.compare;
    let mut all: Vec<Entrant> = methods(&compare.methods)?.into_iter().map(|method| built_in(method, compare)).collect();
    for folder in &compare.with {
        all.push(result(folder, states, inputs, seed)?);
    }
    for column in &compare.groups {
        let found =
            reference::load(column, compare.groups_from.as_deref(), &compare.label, &command.input, states.names, states.cells, progress)?;
        all.push(groups(column, &found.pairs, states.chain.xi()));
    }
    let mut names = HashSet::new();
    match all.iter().find(|e| !names.insert(e.name.as_str())) {
        None => Ok(all),
        Some(twice) => Err(CliError::bad("E-CLI-ARGUMENT", format!("two rows of the table would be called `{}`", twice.name))
            .remedy("name each method, result and column once, and results whose folders have different names")),
    }
}

/// The methods of these names; all of them where none is named.
pub fn methods(names: &[String]) -> Result<Vec<Contender>> {
    let all = Contender::all();
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        all.iter().find(|m| m.name() == name.trim()).cloned().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(Contender::name).collect();
            CliError::bad("E-CLI-ARGUMENT", format!("--methods: there is no method `{name}`"))
                .remedy(format!("the methods are {}", names.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

fn built_in(contender: Contender, compare: &CompareArgs) -> Entrant {
    let hard = match (compare.hard, &contender) {
        (Some(HardKind::Membership), _) | (None, Contender::LikelihoodRefit | Contender::LeastSquaresRefit) => Hard::Membership,
        (Some(HardKind::Kmeans), _) | (None, _) => Hard::KMeans,
    };
    Entrant { name: contender.name().to_owned(), ours: contender.is_ours(), contender, hard, partition: None, note: None }
}

/// A result of an earlier fit. One of these very files has seen what is held out: its options are used anew on each training part. One of other files is scored as it is.
fn result(folder: &Path, states: &States, inputs: &[FileRecord], seed: u64) -> Result<Entrant> {
    let saved = metastate_report::load(folder)?;
    let (_, fit) = recorded_options(folder, &saved)?;
    let ours: HashSet<&str> = inputs.iter().map(|f| f.sha256.as_str()).collect();
    let has_seen = saved.summary.inputs.iter().any(|f| f.role == "data" && ours.contains(f.sha256.as_str()));
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let name = format!("result {}", shown.file_name().map_or_else(|| shown.display().to_string(), |n| n.to_string_lossy().into_owned()));
    let places = places(&saved, folder, states.names)?;
    let known = places.iter().filter(|p| p.is_some()).count();
    let zone_of = |row: usize| saved.states[row + 1].get(3).and_then(|z| z.parse::<u32>().ok());
    let zones: Vec<(usize, u32, f64)> = places.iter().enumerate().filter_map(|(i, p)| Some((i, zone_of((*p)?)?, 1.0))).collect();
    let partition = Some(majority(&zones, states.chain.xi()).0);
    let (contender, how) = match has_seen {
        true => {
            let rank = saved.model().rank();
            let mut options: FitOptions = settings::recipe(&fit, false, seed, states.chain)?.0.bootstrap(0)?;
            if fit.chooses() {
                options = options.lambda(Lambda::Chosen)?.max_rank(rank.max(fit.max_rank()))?.rank(Rank::Given(rank))?;
            }
            (
                Contender::Recipe { options: Box::new(options), weight_power: fit.weight_power },
                "fitted anew on each part with the result's own options, because the result has seen these files".to_owned(),
            )
        }
        false => {
            let missing = states.names.len() - known;
            let others = if missing > 0 { format!("; {missing} states are not in it and get its mean row") } else { String::new() };
            (Contender::Fixed(Box::new(matched(&saved, &places))), format!("as it is: fitted on other files{others}"))
        }
    };
    Ok(Entrant { name, contender, ours: true, hard: Hard::Membership, partition, note: Some(how) })
}

/// The row of each of our states in a result.
fn places(saved: &SavedResult, folder: &Path, names: &[String]) -> Result<Vec<Option<usize>>> {
    let at: HashMap<&str, usize> =
        saved.states.iter().skip(1).enumerate().filter_map(|(i, row)| Some((row.first()?.as_str(), i))).collect();
    let places: Vec<Option<usize>> = names.iter().map(|name| at.get(name.as_str()).copied()).collect();
    if places.iter().all(Option::is_none) {
        return Err(CliError::bad("E-CLI-RESULT", "none of its states is in these inputs")
            .at(folder.display().to_string())
            .remedy("give a result whose states have the names of these inputs"));
    }
    Ok(places)
}

/// The model of a result for our states: one that it does not know has its mean membership, and nobody goes there.
fn matched(saved: &SavedResult, places: &[Option<usize>]) -> Factors {
    let model = saved.model();
    let mass = model.mass(&saved.xi);
    let total: f64 = mass.iter().sum();
    let u = Mat::from_fn(places.len(), model.rank(), |i, k| places[i].map_or(mass[k] / total, |p| model.u[(p, k)]));
    let mut v = Mat::from_fn(places.len(), model.rank(), |i, k| places[i].map_or(0.0, |p| model.v[(p, k)]));
    // Destinations that are not among our states cannot be met here.
    for k in 0..v.cols() {
        let sum: f64 = (0..v.rows()).map(|i| v[(i, k)]).sum();
        (0..v.rows()).filter(|_| sum > 0.0).for_each(|i| v[(i, k)] /= sum);
    }
    Factors { u, v }
}

/// Groups from a column.
fn groups(column: &str, pairs: &[(usize, u32, f64)], xi: &[f64]) -> Entrant {
    let (partition, without) = majority(pairs, xi);
    let of_their_own = if without > 0 { format!(", {without} states without a value are one of them") } else { String::new() };
    let note = Some(format!("{} groups{of_their_own}", partition.clusters()));
    let contender = Contender::Groups(partition.clone());
    Entrant { name: format!("groups {column}"), contender, ours: false, hard: Hard::Membership, partition: Some(partition), note }
}

/// Each state to the label that it carries most; those without any are one part. How many are without.
fn majority(pairs: &[(usize, u32, f64)], xi: &[f64]) -> (Partition, usize) {
    let mut carried: Vec<BTreeMap<u32, f64>> = vec![BTreeMap::new(); xi.len()];
    pairs.iter().for_each(|&(i, label, weight)| *carried[i].entry(label).or_default() += weight);
    // The lower label of equals.
    let most =
        |of: &BTreeMap<u32, f64>| of.iter().fold(None, |best: Option<(u32, f64)>, (&l, &w)| best.filter(|b| b.1 >= w).or(Some((l, w))));
    let of_each: Vec<Option<u32>> = carried.iter().map(|c| most(c).map(|b| b.0)).collect();
    let used: BTreeMap<Option<u32>, u32> =
        of_each.iter().collect::<std::collections::BTreeSet<_>>().into_iter().zip(0..).map(|(l, n)| (*l, n)).collect();
    let labels: Vec<u32> = of_each.iter().map(|l| used[l]).collect();
    (Partition::ordered_by_mass(&labels, xi, used.len()), of_each.iter().filter(|l| l.is_none()).count())
}
