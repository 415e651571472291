//! What is computed for each table: sizes, trajectories, and how long a cell takes.

use crate::paper::{self, Sampled};

/// What to reproduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Section 6.1: exact matrices.
    TableExact,
    /// Section 6.2: the dimension d.
    TableD,
    /// Section 6.2: r/d.
    TableR,
    /// Section 6.2: n/d^2.
    TableN,
    /// Section 6.3: taxi trips.
    Taxi,
    /// Everything.
    All,
}

impl What {
    /// Whether `other` is part of this.
    pub fn holds(self, other: What) -> bool {
        self == What::All || self == other
    }
}

/// The whole thing, or a small version of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The paper's sizes.
    Full,
    /// Small chains; the paper has no values for them.
    Quick,
}

/// A sampled chain: d states, r hidden ones, `ratio * d^2` transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub d: usize,
    pub r: usize,
    pub ratio: u64,
}

/// One column of a table of 6.2.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub key: Key,
    pub paper: Option<Sampled>,
}

/// One line of a regression table: relRE* at these keys against `x`.
#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    pub paper: Option<paper::Line>,
    pub keys: Vec<Key>,
}

/// What is changed in an exact problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// The paper's algorithm with its local rule at 1e-5 instead of 1e-3.
    Strict,
    /// The paper's algorithm with local solves to the end: by our solver, to KKT residuals of 1e-3.
    Converged,
    /// The paper's algorithm with a threshold well below sigma_r.
    SmallThreshold,
    /// Our solver by the exact rule, with as many columns as it wants.
    MoreColumns,
}

/// A piece of work that is done whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// An exact matrix, by the paper's solver or by ours.
    Exact { d: usize, lambda: f64, paper_mode: bool },
    /// The same matrix with one thing changed, to see what the change explains.
    ExactVariant { d: usize, lambda: f64, variant: Variant },
    /// relRE along lambda, and its minimum.
    Path { key: Key, trajectory: u64 },
    /// The paper's algorithm at its lambda*, for one of its two thresholds or (2) for one below sigma_r.
    Palm { key: Key, trajectory: u64, threshold: usize, lambda: Option<f64> },
    /// The same along lambda, warm restarts.
    PalmPath { key: Key, trajectory: u64 },
    /// Our solver at the paper's lambda* and rank.
    Fixed { key: Key, trajectory: u64, lambda: Option<f64>, rank: usize },
    /// Our default: nothing known.
    Default { key: Key, trajectory: u64 },
    /// Taxi trips of one file at one lambda, as a share of lambda_max.
    Taxi { file: usize, ratio: f64 },
    /// Our default on that file.
    TaxiDefault { file: usize },
    /// One of the places where the paper's text leaves a choice.
    Trap { number: usize },
}

impl Cell {
    /// The name of its file.
    pub fn name(&self) -> String {
        let key = |k: &Key, t: &u64| format!("d{}-r{}-n{}-t{t}", k.d, k.r, k.ratio);
        match self {
            Cell::Exact { d, lambda, paper_mode } => {
                format!("exact-d{d}-lambda{lambda:.2e}-{}", if *paper_mode { "paper" } else { "default" })
            }
            Cell::ExactVariant { d, lambda, variant } => format!("exact-d{d}-lambda{lambda:.2e}-{variant:?}").to_lowercase(),
            Cell::Path { key: k, trajectory } => format!("path-{}", key(k, trajectory)),
            Cell::Palm { key: k, trajectory, threshold, .. } => format!("palm-{}-e{}", key(k, trajectory), threshold + 1),
            Cell::PalmPath { key: k, trajectory } => format!("palmpath-{}", key(k, trajectory)),
            Cell::Fixed { key: k, trajectory, .. } => format!("fixed-{}", key(k, trajectory)),
            Cell::Default { key: k, trajectory } => format!("default-{}", key(k, trajectory)),
            Cell::Taxi { file, ratio } => format!("taxi-{file}-ratio{ratio}"),
            Cell::TaxiDefault { file } => format!("taxi-{file}-default"),
            Cell::Trap { number } => format!("trap-{number}"),
        }
    }

    /// The chain that it belongs to: the trajectory, d, n/d^2, r.
    fn chain(&self) -> (u64, usize, u64, usize) {
        match self {
            Cell::Path { key, trajectory }
            | Cell::Palm { key, trajectory, .. }
            | Cell::PalmPath { key, trajectory }
            | Cell::Fixed { key, trajectory, .. }
            | Cell::Default { key, trajectory } => (*trajectory, key.d, key.ratio, key.r),
            _ => (0, 0, 0, 0),
        }
    }

    /// When it is done: something of everything first, then more trajectories and the large chains.
    fn turn(&self) -> usize {
        let printed = |k: &Key| TABLES.iter().any(|t| rows(*t, Scale::Full).iter().any(|r| r.key == *k));
        match self {
            Cell::Exact { d, .. } if *d <= 2000 => 0,
            Cell::Trap { .. } | Cell::Exact { paper_mode: false, .. } => 0,
            Cell::Taxi { file: 0, .. } | Cell::TaxiDefault { file: 0 } => 2,
            Cell::ExactVariant { .. } => 4,
            Cell::Default { key, .. } if key.d >= 1000 => 5,
            Cell::Exact { .. } => 5,
            Cell::Taxi { .. } | Cell::TaxiDefault { .. } => 5,
            Cell::Path { key, trajectory: 1 } if key.d <= 1200 && !printed(key) => 3,
            chain => match chain.chain() {
                (_, d, ..) if d > 1200 => 7,
                (1, ..) => 1,
                _ => 6,
            },
        }
    }

    /// Seconds that it takes on two cores: a model fitted to measured runs, good to a factor of about two.
    pub fn seconds(&self) -> f64 {
        let size = |k: &Key| (k.d as f64 / 1000.0).powi(2) * (k.r as f64 / 10.0).max(0.3);
        let simulating = |k: &Key| 1.2e-8 * k.ratio as f64 * (k.d * k.d) as f64;
        match self {
            Cell::Exact { d, paper_mode: true, .. } => 4.0 * (*d as f64 / 1000.0),
            Cell::ExactVariant { variant: Variant::SmallThreshold, d, .. } => 2.0 * (*d as f64 / 1000.0),
            Cell::ExactVariant { d, .. } => 17.0 * (*d as f64 / 1000.0),
            Cell::Exact { d, .. } => 0.1 * (*d as f64 / 1000.0).powf(1.5),
            Cell::Path { key, .. } => simulating(key) + 13.6 * size(key),
            Cell::Palm { key, .. } => simulating(key) + 5.6 * size(key),
            Cell::PalmPath { key, .. } => simulating(key) + 70.0 * size(key),
            Cell::Fixed { key, .. } => simulating(key) + 3.5 * size(key),
            Cell::Default { key, .. } => simulating(key) + 4.0 + 11.5 * size(key),
            Cell::Taxi { .. } => 20.0,
            Cell::TaxiDefault { .. } => 8.0,
            Cell::Trap { .. } => 3.0,
        }
    }
}

/// Shares of lambda_max at which the taxi trips are solved: by early stopping they give 1 to 9 zones on a day, 5 to 30 on a sample.
const TAXI_RATIOS: [f64; 11] = [0.085, 0.0775, 0.07, 0.06, 0.05, 0.045, 0.044, 0.0425, 0.0395, 0.039, 0.0385];

/// The shares of lambda_max for one scale.
pub fn taxi_ratios(scale: Scale) -> &'static [f64] {
    if scale == Scale::Full { &TAXI_RATIOS } else { &TAXI_RATIOS[4..5] }
}
/// The number of places where the paper's text leaves a choice.
pub const TRAPS: usize = 10;

/// The tables of 6.2.
const TABLES: [What; 3] = [What::TableD, What::TableR, What::TableN];

/// The rows of 6.1.
pub fn exact_rows(scale: Scale) -> Vec<(usize, f64)> {
    match scale {
        Scale::Full => paper::EXACT.iter().map(|e| (e.d, e.lambda)).collect(),
        // lambda scales as about 1/d^2.
        Scale::Quick => [1e-6, 1e-7, 1e-8].map(|l| (200, 25.0 * l)).to_vec(),
    }
}

/// Those on which one thing is changed at a time, and what.
pub fn exact_variants(scale: Scale) -> Vec<(usize, f64, &'static [Variant])> {
    let rows = exact_rows(scale);
    let local: &[Variant] = &[Variant::Strict, Variant::Converged, Variant::MoreColumns];
    match scale {
        Scale::Full => {
            let mut all: Vec<_> = rows[1..4].iter().map(|&(d, lambda)| (d, lambda, local)).collect();
            // Where the threshold exceeds sigma_r.
            all.push((5000, 1e-8, &[Variant::SmallThreshold]));
            all
        }
        Scale::Quick => {
            vec![(rows[1].0, rows[1].1, &[Variant::Strict, Variant::Converged, Variant::SmallThreshold, Variant::MoreColumns])]
        }
    }
}

/// Columns at the start of the exact problems.
pub fn exact_start(scale: Scale) -> usize {
    if scale == Scale::Full { 300 } else { 60 }
}

const fn key(d: usize, r: usize, ratio: u64) -> Key {
    Key { d, r, ratio }
}

/// The columns of the table for one of d, r and n.
pub fn rows(what: What, scale: Scale) -> Vec<Row> {
    if scale == Scale::Quick {
        let keys = match what {
            What::TableD => vec![key(100, 2, 10), key(150, 3, 10)],
            What::TableR => vec![key(150, 3, 10), key(150, 5, 10)],
            _ => vec![key(150, 3, 10), key(150, 3, 40)],
        };
        return keys.into_iter().map(|key| Row { key, paper: None }).collect();
    }
    let printed: &[Sampled] = match what {
        What::TableD => &paper::TABLE_D,
        What::TableR => &paper::TABLE_R,
        _ => &paper::TABLE_N,
    };
    printed.iter().map(|p| Row { key: key(p.d, p.r, p.ratio), paper: Some(*p) }).collect()
}

/// The lines of the regression table for one of d, r and n.
pub fn series(what: What, scale: Scale) -> Vec<Series> {
    let lines: [paper::Line; 3] = match what {
        What::TableD => paper::LINES_D,
        What::TableR => paper::LINES_R,
        _ => paper::LINES_N,
    };
    let round = |share: f64, d: usize| (share * d as f64).round() as usize;
    let full = |line: &paper::Line| -> (String, Vec<Key>) {
        let (a, b) = line.fixed;
        match what {
            What::TableD => (format!("n/d² = {b}"), [500, 700, 1000, 1500, 2000].map(|d| key(d, round(a, d), b as u64)).to_vec()),
            What::TableR => {
                (format!("d = {a}"), [0.005, 0.007, 0.01, 0.015].map(|x| key(a as usize, round(x, a as usize), b as u64)).to_vec())
            }
            _ => {
                let most = if b < 0.006 { 500 } else { 200 };
                let ratios = [5, 10, 20, 50, 100, 200, 500].into_iter().filter(|n| *n <= most);
                (format!("r/d = {b}"), ratios.map(|n| key(a as usize, round(b, a as usize), n)).collect())
            }
        }
    };
    match scale {
        Scale::Full => lines
            .iter()
            .map(|line| {
                let (name, keys) = full(line);
                Series { name, paper: Some(*line), keys }
            })
            .collect(),
        Scale::Quick => {
            let (name, keys) = match what {
                What::TableD => ("n/d² = 10", vec![key(100, 2, 10), key(150, 3, 10), key(200, 4, 10)]),
                What::TableR => ("d = 150", vec![key(150, 3, 10), key(150, 5, 10)]),
                _ => ("r/d = 0.02", vec![key(150, 3, 10), key(150, 3, 40), key(150, 3, 160)]),
            };
            vec![Series { name: name.into(), paper: None, keys }]
        }
    }
}

/// Trajectories by size (up to 700, 1000, 1500 states, and beyond), at most `limit`: the paper has five of each. Large chains get
/// fewer, for the time they take.
fn trajectories(key: &Key, by_size: [u64; 4], limit: u64) -> u64 {
    let size = match key.d {
        0..=700 => 0,
        701..=1000 if key.ratio <= 200 => 1,
        701..=1500 => 2,
        _ => 3,
    };
    by_size[size].min(limit)
}

/// Trajectories on which relRE* is found.
pub fn path_trajectories(key: &Key, limit: u64) -> u64 {
    trajectories(key, if key.r <= 5 { [5, 3, 2, 2] } else { [5, 2, 2, 2] }, limit)
}

/// Trajectories on which the paper's algorithm runs at the paper's lambda*.
pub fn palm_trajectories(key: &Key, limit: u64) -> u64 {
    trajectories(key, [5, 2, 1, 1], limit)
}

/// Trajectories on which our default runs.
pub fn default_trajectories(key: &Key, limit: u64) -> u64 {
    trajectories(key, [2, 1, 1, 1], limit)
}

/// The chains on which the paper's algorithm is followed along lambda, with the table in which they stand.
pub fn palm_path_keys(scale: Scale) -> Vec<(What, Key)> {
    match scale {
        Scale::Full => vec![(What::TableD, key(500, 5, 10)), (What::TableN, key(1000, 5, 200))],
        Scale::Quick => vec![(What::TableD, key(100, 2, 10))],
    }
}

/// Everything to be done in its order, cells of one chain and trajectory one after the other; no cell twice.
pub fn cells(what: What, scale: Scale, limit: u64, files: usize) -> Vec<Cell> {
    let limit = if scale == Scale::Quick { limit.min(2) } else { limit };
    let mut cells: Vec<Cell> = Vec::new();
    if what.holds(What::TableExact) {
        for (d, lambda) in exact_rows(scale) {
            cells.extend([false, true].map(|paper_mode| Cell::Exact { d, lambda, paper_mode }));
        }
        for (d, lambda, variants) in exact_variants(scale) {
            cells.extend(variants.iter().map(|&variant| Cell::ExactVariant { d, lambda, variant }));
        }
    }
    if what != What::Taxi {
        cells.extend((1..=TRAPS).map(|number| Cell::Trap { number }));
    }
    if what.holds(What::Taxi) {
        for file in 0..files {
            cells.extend(taxi_ratios(scale).iter().map(|&ratio| Cell::Taxi { file, ratio }));
            cells.push(Cell::TaxiDefault { file });
        }
    }
    let mut chains: Vec<Cell> = Vec::new();
    for table in TABLES.into_iter().filter(|t| what.holds(*t)) {
        for series in series(table, scale) {
            for key in series.keys {
                chains.extend((1..=path_trajectories(&key, limit)).map(|trajectory| Cell::Path { key, trajectory }));
            }
        }
        for row in rows(table, scale) {
            let (key, lambda) = (row.key, row.paper.map(|p| p.lambda));
            let rank = row.paper.map_or(key.r, |p| p.at[0].rank);
            for trajectory in 1..=path_trajectories(&key, limit) {
                chains.push(Cell::Path { key, trajectory });
                chains.push(Cell::Fixed { key, trajectory, lambda, rank });
            }
            for trajectory in 1..=palm_trajectories(&key, limit) {
                chains.extend([0, 1].map(|threshold| Cell::Palm { key, trajectory, threshold, lambda }));
            }
            chains.push(Cell::Palm { key, trajectory: 1, threshold: 2, lambda });
            chains.extend((1..=default_trajectories(&key, limit)).map(|trajectory| Cell::Default { key, trajectory }));
        }
    }
    let followed = palm_path_keys(scale).into_iter().filter(|(table, _)| what.holds(*table));
    chains.extend(followed.map(|(_, key)| Cell::PalmPath { key, trajectory: 1 }));
    chains.sort_by_key(|c| (c.chain(), c.name()));
    chains.dedup_by_key(|c| c.name());
    cells.extend(chains);
    cells.sort_by_key(Cell::turn);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_comes_twice_and_chains_stay_together() {
        for scale in [Scale::Full, Scale::Quick] {
            let names: Vec<String> = cells(What::All, scale, 5, 2).iter().map(Cell::name).collect();
            let mut sorted = names.clone();
            sorted.sort();
            sorted.dedup();
            assert_eq!(sorted.len(), names.len());
        }
    }

    #[test]
    fn the_parts_are_parts_of_all() {
        let all: Vec<String> = cells(What::All, Scale::Full, 5, 2).iter().map(Cell::name).collect();
        for what in [What::TableExact, What::TableD, What::TableR, What::TableN, What::Taxi] {
            assert!(cells(what, Scale::Full, 5, 2).iter().all(|c| all.contains(&c.name())));
        }
    }
}
