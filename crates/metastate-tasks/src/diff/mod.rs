//! `metastate diff`: what is different between two results, over the states that both have.

mod files;

use std::collections::HashMap;
use std::path::Path;

use metastate::Mat;
use metastate::aggregate::{Answer, Difference, Partition};
use metastate_report::{Claim, Ground, SavedResult, load_extras, load_zone_flows, zone_colour};
use serde::Serialize;

use crate::args::DiffArgs;
use crate::error::{CliError, Result};
use crate::report;

/// What is different.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// The two results, as they were named.
    pub results: [String; 2],
    /// Which states were compared.
    pub states: StatesCompared,
    /// Agreement of the zones beyond chance on the common states, each counted once: 1 for the same zones, 0 as good as chance.
    pub adjusted_rand: Option<f64>,
    /// Mutual information of the zones over the mean of their entropies, on the common states, each counted once.
    pub normalised_mutual_information: Option<f64>,
    /// Share of the weight of the common states that stayed in its zone.
    pub stayed: f64,
    /// Common states that lie in another zone than the partner of theirs.
    pub moved: usize,
    /// Half the sum of the absolute differences of the flows between matched zones: 0 for the same flows, 1 for others altogether. None where a result has no flows.
    pub flows_apart: Option<f64>,
    /// Zones of the first with their partners, then zones of the second that have none.
    pub zones: Vec<ZonePair>,
    /// Common states that moved, the heaviest first.
    pub moves: Vec<Move>,
    /// Flows between matched zones, those that changed most first.
    pub flows: Vec<FlowChange>,
    /// Things worth knowing.
    pub hints: Vec<String>,
    /// The folder that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
    #[serde(skip)]
    material: Material,
}

/// Which states were compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatesCompared {
    /// In both results.
    pub common: usize,
    /// In the first only, and their share of its departures.
    pub only_first: usize,
    #[allow(missing_docs)]
    pub only_first_mass: f64,
    /// In the second only, and their share of its departures.
    pub only_second: usize,
    #[allow(missing_docs)]
    pub only_second_mass: f64,
}

/// A zone and its partner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZonePair {
    /// Number and name in the first.
    pub first: Option<usize>,
    #[allow(missing_docs)]
    pub first_name: Option<String>,
    /// Number and name in the second.
    pub second: Option<usize>,
    #[allow(missing_docs)]
    pub second_name: Option<String>,
    /// Common states in both of the two.
    pub stayed: usize,
    /// Common states of the first zone that lie elsewhere in the second result.
    pub left: usize,
    /// Common states of the second zone that lay elsewhere in the first result.
    pub came: usize,
    /// Share of all departures in each result, of all its states.
    pub first_mass: Option<f64>,
    #[allow(missing_docs)]
    pub second_mass: Option<f64>,
}

/// A state that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// Its label, and what people call it.
    pub label: String,
    #[allow(missing_docs)]
    pub name: String,
    /// Its zone in each result, from 1.
    pub first: usize,
    #[allow(missing_docs)]
    pub second: usize,
    /// Its share of all departures in each result.
    pub first_mass: f64,
    #[allow(missing_docs)]
    pub second_mass: f64,
    /// How much of its membership lies in other meta-states than before.
    pub shift: f64,
}

/// What moves between two zones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowChange {
    /// From and to, by the numbers of the first result.
    pub from: usize,
    #[allow(missing_docs)]
    pub to: usize,
    /// Share of all transitions in each result.
    pub first: f64,
    #[allow(missing_docs)]
    pub second: f64,
    /// The second less the first.
    pub change: f64,
}

/// What tables and maps are made of beside the above.
#[derive(Debug, Clone, PartialEq, Default)]
struct Material {
    /// One row a state of either result.
    rows: Vec<StateRow>,
    /// Maps of the two results in the colours of the first, where places are known.
    maps: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
struct StateRow {
    label: String,
    name: String,
    zones: [Option<usize>; 2],
    masses: [Option<f64>; 2],
    shift: Option<f64>,
    moved: Option<bool>,
}

/// A result, read.
struct DiffSide {
    loaded: SavedResult,
    labels: Vec<String>,
    names: Vec<String>,
    partition: Partition,
    zone_names: Vec<String>,
    /// The sum of all weights.
    total: f64,
    flows: Option<Mat>,
    places: Option<(Vec<(f64, f64)>, Ground)>,
}

impl DiffSide {
    fn read(place: &Path) -> Result<Self> {
        let loaded = metastate_report::load(place)?;
        if let Some(name) = loaded.changed.first() {
            return Err(CliError::failed("E-CLI-RESULT", format!("{name} is not the file that `metastate fit` wrote"))
                .at(place.display().to_string())
                .remedy("it was changed or damaged afterwards; fit again"));
        }
        let labels: Vec<String> = loaded.labels().iter().map(|l| l.to_string()).collect();
        let names = loaded.column("name").unwrap_or_else(|_| vec![String::new(); labels.len()]);
        let partition = report::partition(place, &loaded)?;
        let coordinates = loaded.coordinates()?;
        let ground = load_extras(place, labels.len())?.ground(coordinates.as_deref());
        let flows = if loaded.destinations.is_none() { load_zone_flows(place, partition.clusters())?.map(|f| f.0) } else { None };
        Ok(DiffSide {
            zone_names: report::zone_names(place, partition.clusters())?,
            total: loaded.xi.iter().sum(),
            places: coordinates.zip(ground),
            labels,
            names,
            partition,
            flows,
            loaded,
        })
    }

    fn zone(&self, i: usize) -> usize {
        self.partition.labels[i] as usize
    }

    fn mass(&self, i: usize) -> f64 {
        self.loaded.xi[i] / self.total
    }

    fn zone_mass(&self, z: usize) -> f64 {
        self.partition.masses[z] / self.total
    }

    /// What is asked of the common states, by their rows.
    fn of(&self, rows: &[usize]) -> (Vec<u32>, Mat, Vec<f64>) {
        let u = &self.loaded.model().u;
        (
            rows.iter().map(|&i| self.partition.labels[i]).collect(),
            Mat::from_fn(rows.len(), u.cols(), |k, j| u[(rows[k], j)]),
            rows.iter().map(|&i| self.mass(i)).collect(),
        )
    }
}

/// Compares two results; with `--out`, writes tables and a page.
pub fn run(asked: &DiffArgs) -> Result<Diff> {
    let _claim = asked.out.as_deref().map(|out| Claim::folder(out, asked.force)).transpose()?;
    if let Some(out) = &asked.out {
        crate::place::keep(out, [asked.first.clone(), asked.second.clone()])?;
    }
    let (a, b) = (DiffSide::read(&asked.first)?, DiffSide::read(&asked.second)?);
    let place: HashMap<&str, usize> = b.labels.iter().enumerate().map(|(j, l)| (l.as_str(), j)).collect();
    let (rows_a, rows_b): (Vec<usize>, Vec<usize>) =
        a.labels.iter().enumerate().filter_map(|(i, l)| Some((i, *place.get(l.as_str())?))).unzip();
    if rows_a.is_empty() {
        return Err(CliError::bad(
            "E-CLI-RESULT",
            format!(
                "the two results have no state in common: one has `{}`, the other `{}`",
                a.labels[0].escape_debug(),
                b.labels[0].escape_debug()
            ),
        )
        .at(asked.second.display().to_string())
        .remedy("compare results over the same cells, stations or microstates: the same --cell, the same labels"));
    }
    let (za, ua, wa) = a.of(&rows_a);
    let (zb, ub, wb) = b.of(&rows_b);
    let found = Difference::between(
        &Answer { zone: &za, zones: a.partition.clusters(), memberships: &ua, share: &wa },
        &Answer { zone: &zb, zones: b.partition.clusters(), memberships: &ub, share: &wb },
    );
    let (flows, flows_apart) = flows(&a, &b, &found.partner);
    let mut diff = Diff {
        results: [asked.first.display().to_string(), asked.second.display().to_string()],
        states: StatesCompared {
            common: rows_a.len(),
            only_first: a.labels.len() - rows_a.len(),
            only_first_mass: (1.0 - wa.iter().sum::<f64>()).max(0.0),
            only_second: b.labels.len() - rows_b.len(),
            only_second_mass: (1.0 - wb.iter().sum::<f64>()).max(0.0),
        },
        adjusted_rand: found.adjusted_rand,
        normalised_mutual_information: found.normalised_mutual_information,
        stayed: found.stayed,
        moved: found.moved.iter().filter(|m| **m).count(),
        flows_apart,
        zones: zone_pairs(&a, &b, &found, (&za, &zb)),
        moves: Vec::new(),
        flows,
        hints: hints(&a, &b),
        out: None,
        material: Material { rows: state_rows(&a, &b, &found, (&rows_a, &rows_b)), maps: maps(&a, &b, &found.partner) },
    };
    diff.moves = moves(&diff.material.rows);
    if let Some(out) = &asked.out {
        diff.out = Some(out.display().to_string());
        files::write(&diff, out, asked.force)?;
    }
    Ok(diff)
}

/// Zones of the first with their partners, then those of the second that nobody has for a partner.
fn zone_pairs(a: &DiffSide, b: &DiffSide, found: &Difference, (za, zb): (&[u32], &[u32])) -> Vec<ZonePair> {
    let pair = |first: Option<usize>, second: Option<usize>| {
        let here = |i: usize| first == Some(za[i] as usize);
        let there = |i: usize| second == Some(zb[i] as usize);
        let count = |test: &dyn Fn(usize) -> bool| (0..za.len()).filter(|&i| test(i)).count();
        ZonePair {
            first: first.map(|z| z + 1),
            first_name: first.map(|z| a.zone_names[z].clone()),
            second: second.map(|z| z + 1),
            second_name: second.map(|z| b.zone_names[z].clone()),
            stayed: count(&|i| here(i) && there(i)),
            left: count(&|i| here(i) && !there(i)),
            came: count(&|i| there(i) && !here(i)),
            first_mass: first.map(|z| a.zone_mass(z)),
            second_mass: second.map(|z| b.zone_mass(z)),
        }
    };
    let mut pairs: Vec<ZonePair> = found.partner.iter().enumerate().map(|(z, partner)| pair(Some(z), *partner)).collect();
    let alone = (0..b.partition.clusters()).filter(|z| !found.partner.contains(&Some(*z)));
    pairs.extend(alone.map(|z| pair(None, Some(z))));
    pairs
}

/// All states of both, those of the first in their order and then those of the second alone.
fn state_rows(a: &DiffSide, b: &DiffSide, found: &Difference, (rows_a, rows_b): (&[usize], &[usize])) -> Vec<StateRow> {
    let mut of_a: Vec<Option<usize>> = vec![None; a.labels.len()];
    rows_a.iter().enumerate().for_each(|(k, &i)| of_a[i] = Some(k));
    let mut in_both = vec![false; b.labels.len()];
    rows_b.iter().for_each(|&j| in_both[j] = true);
    let first = |i: usize| {
        let common = of_a[i];
        let j = common.map(|k| rows_b[k]);
        StateRow {
            label: a.labels[i].clone(),
            name: a.names[i].clone(),
            zones: [Some(a.zone(i) + 1), j.map(|j| b.zone(j) + 1)],
            masses: [Some(a.mass(i)), j.map(|j| b.mass(j))],
            shift: common.map(|k| found.shift[k]),
            moved: common.map(|k| found.moved[k]),
        }
    };
    let second = |j: usize| StateRow {
        label: b.labels[j].clone(),
        name: b.names[j].clone(),
        zones: [None, Some(b.zone(j) + 1)],
        masses: [None, Some(b.mass(j))],
        shift: None,
        moved: None,
    };
    (0..a.labels.len()).map(first).chain((0..b.labels.len()).filter(|&j| !in_both[j]).map(second)).collect()
}

/// The states that moved, the heaviest first.
fn moves(rows: &[StateRow]) -> Vec<Move> {
    let of_row = |row: &StateRow| {
        Some(Move {
            label: row.label.clone(),
            name: row.name.clone(),
            first: row.zones[0]?,
            second: row.zones[1]?,
            first_mass: row.masses[0]?,
            second_mass: row.masses[1]?,
            shift: row.shift?,
        })
    };
    let mut moves: Vec<Move> = rows.iter().filter(|row| row.moved == Some(true)).filter_map(of_row).collect();
    let weight = |m: &Move| m.first_mass + m.second_mass;
    moves.sort_by(|x, y| weight(y).total_cmp(&weight(x)).then_with(|| x.label.cmp(&y.label)));
    moves
}

/// Flows between zones that have partners on both ends, and how far the two tables are apart, unmatched zones included.
fn flows(a: &DiffSide, b: &DiffSide, partner: &[Option<usize>]) -> (Vec<FlowChange>, Option<f64>) {
    let (Some(fa), Some(fb)) = (&a.flows, &b.flows) else { return (Vec::new(), None) };
    let mut changes = Vec::new();
    let (mut apart, mut matched) = (0.0, 0.0);
    for from in 0..fa.rows() {
        for to in 0..fa.cols() {
            let first = fa[(from, to)];
            let Some(second) = partner[from].zip(partner[to]).map(|(f, t)| fb[(f, t)]) else {
                apart += first;
                continue;
            };
            (apart, matched) = (apart + (second - first).abs(), matched + second);
            if first > 0.0 || second > 0.0 {
                changes.push(FlowChange { from: from + 1, to: to + 1, first, second, change: second - first });
            }
        }
    }
    let all: f64 = fb.as_slice().iter().sum();
    changes.sort_by(|x, y| y.change.abs().total_cmp(&x.change.abs()).then((x.from, x.to).cmp(&(y.from, y.to))));
    (changes, Some((0.5 * (apart + (all - matched).max(0.0))).min(1.0)))
}

/// What makes the two unlike before any zone is looked at.
fn hints(a: &DiffSide, b: &DiffSide) -> Vec<String> {
    let (x, y) = (&a.loaded.summary, &b.loaded.summary);
    let mut hints = Vec::new();
    let (one, other) = (a.loaded.model().rank(), b.loaded.model().rank());
    if one != other {
        hints.push(format!("the first result has {one} meta-states, the second {other}: zones that were split or joined count as moved; --rank gives both the same number"));
    }
    if x.lag() != y.lag() {
        hints.push(format!("one step is {} time steps of the data in the first result and {} in the second", x.lag(), y.lag()));
    }
    if x.destinations.is_some() || y.destinations.is_some() {
        hints.push("origins and destinations are two sets: the origins are compared, and there are no flows between zones".to_owned());
    } else if a.flows.is_none() || b.flows.is_none() {
        hints.push("a result of an earlier version has no table of flows: they are not compared".to_owned());
    }
    hints
}

/// Both on the map, zones of the second in the colours of their partners.
fn maps(a: &DiffSide, b: &DiffSide, partner: &[Option<usize>]) -> Vec<(String, String)> {
    let mut of_b: Vec<Option<usize>> = vec![None; b.partition.clusters()];
    partner.iter().enumerate().filter_map(|(z, p)| Some((z, (*p)?))).for_each(|(z, p)| of_b[p] = Some(z));
    // Zones without a partner have colours that nobody else has.
    let mut fresh = a.partition.clusters();
    let mut next = || {
        fresh += 1;
        zone_colour(fresh - 1)
    };
    let colours_a: Vec<String> = (0..a.partition.clusters()).map(zone_colour).collect();
    let colours_b: Vec<String> = of_b.iter().map(|own| own.map_or_else(&mut next, zone_colour)).collect();
    [(a, "first", colours_a), (b, "second", colours_b)]
        .into_iter()
        .filter_map(|(side, word, colours)| Some((word.to_owned(), files::map(side, word, &colours)?)))
        .collect()
}
