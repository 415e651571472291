//! From the inputs to a chain, the same way for `fit`, `verify` and `--resume`.

use metastate::fit::Parts;
use metastate::kinetics::Classes;
use metastate::{Chain, Connected, Estimate, Given, Label, RowWeights, SlicedCounts, StateIndex, TwoSided, WeightsBy};
use metastate_ingest::{As, CountedStates, Data as Ingest, Ingested, InputRecord, Logged, MatrixValues, ReadProgress, SecondCounts};
use metastate_report::{FileRecord, Ground, Outline};

use crate::args::{ConnectedKind, FitArgs, Init, InputArgs, WeightsKind};
use crate::control::{self, ControlledData};
use crate::error::{CliError, Result};
use crate::places;
use crate::zone_names::ZoneNames;

/// The data of a fit, with what is known about the files behind them.
pub struct Dataset {
    /// The chain, and the counts in parts.
    pub data: metastate::Data,
    /// Centres of the cells, in the order of the chain's states.
    pub coordinates: Option<Vec<(f64, f64)>>,
    /// The same of the destinations, where they are another set.
    pub destination_coordinates: Option<Vec<(f64, f64)>>,
    /// What people call the states, where `--places` says it; empty for those it does not know.
    pub names: Option<Vec<String>>,
    /// What the states are on the map, where they have places.
    pub ground: Option<Ground>,
    /// Names that somebody gave to zones.
    pub zone_names: Option<ZoneNames>,
    /// Which bytes it came from.
    pub inputs: Vec<FileRecord>,
    /// What the inputs were read as, in one line.
    pub read_as: String,
    /// Rows read.
    pub rows: u64,
    /// Rows counted.
    pub rows_counted: u64,
    /// Things worth telling the user.
    pub hints: Vec<String>,
    /// What was tried in each state, where the data are records of a controlled chain.
    pub control: Option<ControlledData>,
}

impl Dataset {
    /// P, xi and labels.
    pub fn chain(&self) -> &Chain {
        self.data.chain()
    }

    /// The side of a cell in degrees, where the states are squares.
    pub fn cell(&self) -> Option<f64> {
        self.ground.and_then(Ground::side)
    }

    /// Whether people would know zones by the names of their states: cells are named by their corners, and numbers are no names.
    pub fn zones_have_names(&self) -> bool {
        let texts = || self.chain().index().labels().all(|l| matches!(l, Label::Text(_)));
        self.zone_names.is_some() || self.names.is_some() || (!self.ground.is_some_and(Ground::is_cells) && texts())
    }

    /// The chain that tables, zones and times speak of: the same, or the chain without its slices.
    pub fn shown_chain(&self) -> &Chain {
        self.data.going_on().unwrap_or(self.data.chain())
    }

    /// The counts in parts; none for a transition matrix.
    pub fn parts(&self) -> Option<&Parts> {
        self.data.parts()
    }
}

/// Refuses what a transition matrix cannot give, before anything is solved. Where the number of meta-states is to be chosen, the choice itself refuses.
fn check_matrix(fit: &FitArgs) -> Result<()> {
    if fit.bootstrap > 0 && !(fit.chooses() && fit.rank.is_none()) {
        return Err(CliError::bad("E-CLI-ARGUMENT", "a transition matrix has no transitions that --bootstrap could draw anew")
            .remedy("give counts, or leave out --bootstrap"));
    }
    Ok(())
}

/// Reads the inputs.
pub fn ingest(input: &InputArgs, keep_frames: bool, progress: &mut dyn ReadProgress) -> Result<Ingested> {
    let mut settings = crate::inputs::settings(input)?;
    settings.keep_frames = keep_frames;
    Ok(metastate_ingest::read(&input.inputs, &settings, progress)?)
}

/// Reads the inputs and estimates the chain.
pub fn load(input: &InputArgs, fit: &FitArgs, progress: &mut dyn ReadProgress) -> Result<Dataset> {
    control::check(input, fit)?;
    check_slices(input.slice.is_some(), fit)?;
    estimate(ingest(input, fit.needs_parts(), progress)?, fit)
}

/// Estimates the chain behind what was read; named states get their places.
pub fn estimate(ingested: Ingested, fit: &FitArgs) -> Result<Dataset> {
    let mut data = chain_of(ingested, fit)?;
    places::apply(&mut data, fit)?;
    ZoneNames::apply(&mut data, fit)?;
    Ok(data)
}

fn chain_of(ingested: Ingested, fit: &FitArgs) -> Result<Dataset> {
    let inputs = ingested
        .inputs
        .iter()
        .map(|r| FileRecord { name: r.name.clone(), role: "data".into(), bytes: r.bytes, sha256: r.sha256.clone() })
        .collect();
    let mut hints = ingested.hints;
    if ingested.inputs.iter().any(|r| r.name == "-") {
        hints.push(
            "the data came from standard input: to recheck the result, send the same data in again (... | metastate verify RESULT)"
                .to_owned(),
        );
    }
    match ingested.data {
        _ if fit.bipartite && ingested.as_ == As::Trajectories => Err(trajectories_are_one_set()),
        Ingest::Counts(counted) => Ok(Dataset { inputs, read_as: ingested.read_as, hints, ..from_counted(counted, fit)? }),
        Ingest::Log(logged) => Ok(Dataset { inputs, read_as: ingested.read_as, hints, ..from_log(logged, &ingested.inputs, fit)? }),
        Ingest::Matrix(_) if fit.bipartite => {
            Err(CliError::bad("E-CLI-ARGUMENT", "--bipartite reads transitions, and this is a matrix of probabilities")
                .remedy("give trips or counts"))
        }
        Ingest::Matrix(matrix) => {
            check_matrix(fit)?;
            let weights = matrix.weights.map_or(RowWeights::Stationary, RowWeights::Given);
            let given = Given { weights, weight_power: fit.weight_power, index: Some(matrix.index), connected: connected(fit) };
            let stationary = given.weights == RowWeights::Stationary;
            let made = match matrix.values {
                MatrixValues::Sparse(p) => Chain::from_sparse(p, given),
                MatrixValues::Dense(p) => Chain::from_dense(p, given),
            };
            let chain = made.map_err(|e| absorbed(e, stationary))?;
            hints.extend(weights_of_parts(&chain, stationary));
            Ok(Dataset {
                data: metastate::Data::from_matrix(chain),
                coordinates: None,
                destination_coordinates: None,
                names: None,
                ground: None,
                zone_names: None,
                inputs,
                read_as: ingested.read_as,
                rows: matrix.entries,
                rows_counted: matrix.entries,
                hints,
                control: None,
            })
        }
    }
}

/// A matrix whose stationary law has one state only: the others lead into it and never come back.
fn absorbed(e: metastate::Error, stationary: bool) -> CliError {
    match e {
        metastate::Error::OneState { label } if stationary => CliError::bad(
            "E-DATA-ONE-STATE",
            format!("the stationary law of this matrix is all on one state ({label}): the others lead into it and never come back, so they have no weight"),
        )
        .remedy("give the weights of the states with --weights, such as how often a trajectory begins in each of them"),
        other => other.into(),
    }
}

/// What a user must know of the weights where the matrix has no stationary law of its own for all its states.
fn weights_of_parts(chain: &Chain, stationary: bool) -> Option<String> {
    let classes = Classes::of(chain.p());
    let closed = classes.closed_by_size().len();
    match classes.transient_states() {
        _ if !stationary => None,
        0 if closed > 1 => Some(format!(
            "the matrix has {closed} closed classes and so several stationary laws; the weights are those of the law that a uniform start leads to; --weights gives others"
        )),
        0 => None,
        _ => Some(
            "some states are left for ever and have no stationary share, so every state weighs the same; --weights gives other weights"
                .to_owned(),
        ),
    }
}

/// Frames of a trajectory are origin and destination at once.
fn trajectories_are_one_set() -> CliError {
    CliError::bad("E-CLI-ARGUMENT", "--bipartite reads trips from one set to another; the frames of a trajectory are one set")
        .remedy("leave out --bipartite, or give trips or counts")
}

/// Which states are kept.
fn connected(fit: &FitArgs) -> Connected {
    match fit.connected {
        ConnectedKind::All => Connected::All,
        ConnectedKind::Largest => Connected::Largest(fit.connected_at),
    }
}

/// Slices at most: each is a panel of the page and a part of every profile.
const MOST_SLICES: usize = 1000;

/// Refuses what slices cannot have.
fn check_slices(asked: bool, fit: &FitArgs) -> Result<()> {
    let refused = |option: &str, why: &str| {
        Err(CliError::bad("E-CLI-ARGUMENT", format!("--slice and --{option} do not go together: {why}"))
            .remedy(format!("leave out --{option}, or --slice")))
    };
    match asked {
        true if fit.bipartite => refused("bipartite", "flows between zones in a slice need places that are left and reached"),
        true if fit.truth.is_some() => refused("truth", "the truth is compared with chains that have no slices"),
        true if matches!(fit.init(), Init::Result(_)) => refused("init", "a fit with slices starts at a spectral solution or at random"),
        _ => Ok(()),
    }
}

/// Estimates the chain of data with slices.
fn sliced(counted: &CountedStates, second: &SecondCounts, fit: &FitArgs, estimate: &Estimate) -> Result<metastate::Data> {
    check_slices(true, fit)?;
    match second.labels.len() {
        1 => {
            let only = second.labels.label(0).to_string();
            Err(CliError::bad(
                "E-CLI-ARGUMENT",
                format!("all rows are in one slice (`{}`), so nothing can differ between slices", only.escape_debug()),
            )
            .remedy("leave out --slice, or name a column that takes several values"))
        }
        n if n > MOST_SLICES => Err(CliError::bad("E-CLI-ARGUMENT", format!("there are {n} slices; at most {MOST_SLICES} are allowed"))
            .remedy("slice more coarsely: hour(COL), weekday(COL), month(COL), date(COL), or a column with fewer values")),
        _ => {
            let SecondCounts { labels, pairs, counts, .. } = second;
            let told_apart = SlicedCounts { slices: labels.clone(), columns: pairs.clone(), counts: counts.clone() };
            Ok(metastate::Data::sliced(&counted.counts, &told_apart, estimate)?)
        }
    }
}

/// Estimates the chain; states without weight are left out, the others keep their labels and places.
pub fn from_counted(counted: CountedStates, fit: &FitArgs) -> Result<Dataset> {
    let weights_by = match fit.weights_by {
        WeightsKind::Departures => WeightsBy::Departures,
        WeightsKind::Arrivals => WeightsBy::Arrivals,
    };
    let estimate = Estimate { weights_by, weight_power: fit.weight_power, connected: connected(fit) };
    let data = match (&counted.second, &counted.frames) {
        (Some(second), _) => sliced(&counted, second, fit, &estimate)?,
        _ if fit.bipartite => metastate::Data::between(&TwoSided::of(&counted.counts), fit.weight_power)?,
        (None, Some(frames)) => metastate::Data::from_frames(&counted.counts, frames, &estimate)?,
        (None, None) => metastate::Data::from_counts(&counted.counts, &estimate)?,
    };
    let all = counted.counts.index();
    let places = |of: &StateIndex| -> Option<Vec<(f64, f64)>> {
        let known = counted.coordinates.as_ref()?;
        of.labels().map(|label| all.position(&label).map(|i| known[i as usize])).collect()
    };
    let coordinates = places(data.chain().index());
    let destination_coordinates = data.going_on().is_none().then(|| places(data.chain().destinations())).flatten();
    Ok(Dataset {
        data,
        coordinates,
        destination_coordinates,
        names: None,
        ground: counted.cell.map(|cell| cell.side().map_or(Ground::Other(Outline::Hexagons), Ground::Squares)),
        zone_names: None,
        inputs: Vec::new(),
        read_as: String::new(),
        rows: counted.rows,
        rows_counted: counted.kept,
        hints: Vec::new(),
        control: None,
    })
}

/// Estimates the chain of a log: rows are pairs of state and action, columns the next states.
fn from_log(logged: Logged, inputs: &[InputRecord], fit: &FitArgs) -> Result<Dataset> {
    let (rows, rows_counted, ledger) = (logged.rows, logged.kept, logged.log.ledger().clone());
    let control = ControlledData::new(logged, inputs.is_empty())?;
    let sides = control.tried.sides(&control.states, &control.actions, &ledger)?;
    Ok(Dataset {
        data: metastate::Data::between(&sides, fit.weight_power)?,
        coordinates: None,
        destination_coordinates: None,
        names: None,
        ground: None,
        zone_names: None,
        inputs: Vec::new(),
        read_as: String::new(),
        rows,
        rows_counted,
        hints: Vec::new(),
        control: Some(control),
    })
}
