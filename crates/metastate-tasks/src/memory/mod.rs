//! What a fit will need, said before it begins: memory, stage by stage, and minutes. Running out of memory ends a process without a word, so what cannot fit is refused in a sentence.
//!
//! All of the arithmetic is here: bytes in this file, seconds in `time`, and both doors reach it through [`Estimate`].

mod time;

use metastate_ingest::{Sizes, available_memory};
use serde::Serialize;

use crate::args::{FitArgs, InputArgs, MEMORY, ObjectiveKind, RefitKind};
use crate::error::{CliError, Result};

/// Bytes of a number.
const F64: u64 = 8;
/// A counted pair by row, and once more by column: a column number and a count each.
const PAIR: u64 = 12;
/// A pair in the table that counts rows of data: sixteen bytes a slot, seven of ten slots used at most, and twice as many slots as before whenever they are.
const PAIR_WHILE_COUNTING: u64 = 40;
/// An entry of a transition matrix that was given, with its transpose and its reader's triplets.
const ENTRY: u64 = 40;
/// A label that is no number of its own, in the index and in the tables.
const LABEL: u64 = 150;
/// Lists of one number a state: weights, shares, places, multipliers and the like.
const LISTS: u64 = 40;
/// A pair in the list of its fold.
const FOLDED: u64 = 5;
/// Up to so many pairs all folds are laid out at once (`solve::select::search`).
const LAID_OUT: u64 = 10_000_000;
/// Columns of the relaxation beyond the most meta-states, and at its start (`solve::adaptive`).
const RELAXED: u64 = 16;
/// Lanczos vectors of a look at the relaxation, both sides.
const LOOKED: u64 = 48;
/// Numbers that the vectors of a proof may take (`proof::norm`), and vectors it begins with.
const LANCZOS_ROOM: u64 = 200_000_000;
const LANCZOS_STEPS: u64 = 60;
/// Directions of a thorough search for a pair that pays, beside the meta-states' own, and matrices that it holds of each (`solve::grow`).
const DIRECTIONS: u64 = 60;
const IMAGES: u64 = 5;
/// Up to so many states the proof factorises a dense matrix (`proof::Effort`), and holds so many of its size.
const CHOLESKY_STATES: u64 = 3000;
const DENSE_MATRICES: u64 = 5;
/// Bytes that the acceleration of the solver may hold (`solve::local::fast`), and sweeps it remembers.
const HISTORY: u64 = 1 << 28;
const REMEMBERED: u64 = 9;
/// Columns of directions followed in the search for lambda_max, from few starts and from many.
const FEW_STARTS: u64 = 20;
const MANY_STARTS: u64 = 45;
/// From so many pairs on there are few (`solve::lambda_max`).
const DEAR: u64 = 1_000_000;
/// The spectral basis has so many columns more than the rank, the start of the likelihood so many.
const BASIS: u64 = 16;
const SPARE: u64 = 4;
/// What the program itself needs.
const PROGRAM: u64 = 40 << 20;

/// What the estimate is of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Work {
    /// The states; of two sets the larger one.
    pub states: u64,
    /// Pairs counted, or entries of the matrix.
    pub pairs: u64,
    /// Meta-states at most.
    pub metastates: u64,
    /// Whether there are counts, not probabilities.
    pub counted: bool,
    /// Whether rows of data are counted first, in a table of pairs.
    pub from_rows: bool,
    /// Parts of which each is held out; none where nothing is.
    pub folds: u64,
    /// Whether lambda, and maybe the number of meta-states, is searched for.
    pub chooses: bool,
    /// Whether the number of meta-states is.
    pub searches: bool,
    /// Whether there is a refit by likelihood.
    pub refits: bool,
    /// Draws of the bootstrap.
    pub draws: u64,
    /// Whether the whole path is solved, on all folds.
    pub whole_path: bool,
}

impl Work {
    /// A fit with these options.
    pub fn new(fit: &FitArgs, states: u64, pairs: u64, counted: bool) -> Self {
        Work {
            states,
            pairs,
            metastates: (fit.most_metastates() as u64).min(states).max(1),
            counted,
            from_rows: false,
            folds: if counted && fit.needs_parts() { fit.folds as u64 } else { 0 },
            chooses: fit.chooses(),
            searches: fit.chooses() && fit.rank.is_none(),
            refits: fit.refit_kind() == RefitKind::Likelihood || fit.objective == ObjectiveKind::Whitened,
            draws: fit.bootstrap as u64,
            whole_path: false,
        }
    }

    /// A matrix of one row a state and so many columns.
    fn thin(&self, columns: u64) -> u64 {
        F64.saturating_mul(self.states).saturating_mul(columns)
    }

    /// What stands from the first stage to the last.
    fn data(&self) -> u64 {
        let each = if self.counted { 2 * PAIR } else { ENTRY };
        let labels = if self.from_rows { LABEL } else { 0 };
        PROGRAM
            .saturating_add(self.pairs.saturating_mul(each))
            .saturating_add(self.thin(LISTS))
            .saturating_add(self.states.saturating_mul(labels))
    }

    /// Reading: the data, and what they are made of.
    fn reading(&self) -> u64 {
        let counting = if self.from_rows { PAIR_WHILE_COUNTING + PAIR } else { 0 };
        self.data().max(PROGRAM.saturating_add(self.pairs.saturating_mul(counting)).saturating_add(self.states.saturating_mul(2 * LABEL)))
    }

    /// lambda_max: both sides of the directions, their images, and the single column beside them.
    fn lambda_max(&self) -> u64 {
        self.data().saturating_add(self.thin(4 * if self.pairs > DEAR { FEW_STARTS } else { MANY_STARTS }))
    }

    /// A fit by likelihood: three points of both factors, padded to four columns, the spectral basis, and the starts.
    fn likelihood(&self) -> u64 {
        let s = self.metastates + SPARE;
        self.thin(6 * s + 4 * s + 4 * (self.metastates + BASIS))
    }

    /// The choice: the folds, those that are laid out, and the fits to them.
    fn choosing(&self) -> u64 {
        let held = if self.chooses && self.counted { self.pairs.saturating_mul(FOLDED * self.folds.max(1) / 2 + FOLDED) } else { 0 };
        let at_once = if self.pairs > LAID_OUT { 1 } else { self.folds.max(1) };
        let laid_out = self.pairs.saturating_mul(2 * PAIR).saturating_mul(if self.folds > 0 { at_once } else { 0 });
        let fits = self.likelihood().saturating_mul(if self.folds > 0 { at_once.min(2) } else { 1 });
        self.data().saturating_add(held).saturating_add(laid_out).saturating_add(fits)
    }

    /// The solve: the relaxation with a look at its dual point, then sweeps with what they remember, searches, the proof.
    fn solving(&self) -> u64 {
        let widest = self.metastates + RELAXED;
        let relaxation = self.thin(2 * widest);
        let looks = self.thin(2 * widest + widest + LOOKED);
        let remembered = self.thin(4 * self.metastates).saturating_mul(REMEMBERED).min(HISTORY);
        let sweeps = self.thin(12 * self.metastates).saturating_add(remembered);
        let lanczos = self.thin(LANCZOS_STEPS).min(F64 * LANCZOS_ROOM);
        let dense = if self.states <= CHOLESKY_STATES { self.thin(DENSE_MATRICES * self.states) } else { 0 };
        let proof = self.thin(4 * widest + 2 * self.metastates).saturating_add(lanczos).saturating_add(dense);
        let search = self.thin(IMAGES * (self.metastates + DIRECTIONS) + 2 * self.metastates);
        self.data().saturating_add(relaxation).saturating_add(looks.max(sweeps).max(search).max(proof))
    }

    /// The refit: a fit by likelihood beside the solution with its witness.
    fn refit(&self) -> u64 {
        let kept = self.thin(2 * self.metastates + 2 * (self.metastates + RELAXED));
        self.data().saturating_add(kept).saturating_add(self.likelihood())
    }

    /// Zones, kinetics, tables and page: both answers, the witness, and a few columns.
    fn writing(&self) -> u64 {
        let kept = self.thin(4 * self.metastates + 2 * (self.metastates + RELAXED));
        self.data().saturating_add(kept).saturating_add(self.thin(3 * self.metastates)).saturating_add(self.states.saturating_mul(LABEL))
    }

    /// The stages with their bytes, by the names that `seconds` has in `summary.json`.
    pub fn stages(&self) -> Vec<(&'static str, u64)> {
        let mut stages = vec![("reading", self.reading()), ("lambda_max", self.lambda_max())];
        if self.chooses {
            stages.push(("choosing", self.choosing()));
        }
        stages.push(("solving", self.solving()));
        if self.refits {
            stages.push(("refit", self.refit()));
        }
        stages.push(("zones", self.writing()));
        stages
    }

    /// Bytes of the stage that needs most.
    pub fn bytes(&self) -> u64 {
        self.stages().iter().map(|s| s.1).max().unwrap_or(PROGRAM)
    }
}

/// What a run may use, and who says so.
fn limit(input: &InputArgs) -> (u64, &'static str) {
    match input.memory_limit {
        Some(limit) => (limit, "--memory-limit"),
        None => (available_memory(), "the machine or its control group"),
    }
}

/// Refuses a fit that will not find the memory that it needs.
pub fn check(input: &InputArgs, fit: &FitArgs, states: usize, pairs: usize, counted: bool) -> Result<()> {
    let work = |fit: &FitArgs| Work::new(fit, states as u64, pairs as u64, counted);
    let (needed, (limit, of)) = (work(fit).bytes(), limit(input));
    if needed <= limit {
        return Ok(());
    }
    let of = if of.starts_with("--") { "--memory-limit is" } else { "there is memory for" };
    let fewer =
        (2..fit.most_metastates()).rev().find(|k| work(&FitArgs { rank: None, max_rank: Some(*k), ..fit.clone() }).bytes() <= limit);
    let remedy = match fewer {
        Some(k) => format!("--max-rank {k} needs less; --min-share leaves out states that hardly occur; a larger --memory-limit insists"),
        None => {
            "leave out states that hardly occur with --min-share, use a machine with more memory, or insist with a larger --memory-limit"
                .to_owned()
        }
    };
    let what = format!(
        "a fit of {states} states and {pairs} pairs with up to {} meta-states would need about {}, and {of} {}",
        fit.most_metastates(),
        gigabytes(needed),
        gigabytes(limit)
    );
    Err(CliError::bad("E-DATA-TOO-LARGE", what).remedy(remedy))
}

/// The same before anything is read, where headers say how much there is.
pub fn check_sizes(input: &InputArgs, fit: &FitArgs) -> Result<()> {
    match sizes(input)? {
        // A matrix of zeros and ones for the most part: how many entries count is known when it was read.
        Some(found) if !found.dense => check(input, fit, found.states as usize, found.pairs as usize, !found.probabilities),
        _ => Ok(()),
    }
}

/// What the headers say, where the inputs are matrices.
pub fn sizes(input: &InputArgs) -> Result<Option<Sizes>> {
    if input.inputs.iter().any(|name| name == "-" || name == MEMORY) {
        return Ok(None);
    }
    Ok(metastate_ingest::sizes(&input.inputs, &crate::inputs::settings(input)?)?)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

/// Memory and time of one stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageNeeds {
    /// The stage, as `seconds` of `summary.json` names it.
    pub stage: &'static str,
    /// Bytes while it runs.
    pub bytes: u64,
    /// Seconds.
    pub seconds: f64,
}

/// What `--estimate` answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// What the estimate is of.
    pub work: Work,
    /// How the sizes are known.
    pub sizes_from: String,
    /// Stage by stage.
    pub stages: Vec<StageNeeds>,
    /// Bytes of the stage that needs most.
    pub bytes: u64,
    /// Seconds of all.
    pub seconds: f64,
    /// Bytes that the run may use.
    pub limit: u64,
    /// Who says so.
    pub limit_from: &'static str,
    /// Whether the run would begin.
    pub fits: bool,
    /// What the seconds rest on, in words.
    pub rests_on: String,
}

impl Estimate {
    /// Of this work; calibrates for about a second. `times` is how often the fit is made: once, or once a part for a comparison.
    pub fn new(work: Work, input: &InputArgs, sizes_from: String, times: f64) -> Result<Self> {
        let speed = time::calibrate(&work)?;
        let seconds = speed.seconds(&work);
        let once = |stage: &str| stage == "reading" || stage == "zones";
        let stages: Vec<StageNeeds> = work
            .stages()
            .into_iter()
            .map(|(stage, bytes)| StageNeeds { stage, bytes, seconds: seconds(stage) * if once(stage) { 1.0 } else { times } })
            .collect();
        let (limit, limit_from) = limit(input);
        let bytes = work.bytes();
        let seconds = stages.iter().map(|s| s.seconds).sum();
        let fits = bytes <= limit;
        Ok(Estimate { work, sizes_from, stages, bytes, seconds, limit, limit_from, fits, rests_on: speed.rests_on() })
    }

    /// For people.
    pub fn describe(&self) -> String {
        let w = &self.work;
        let mut out = format!(
            "{} states, {} pairs ({}), up to {} meta-states\n\n  {:<12}{:>12}{:>14}\n",
            w.states, w.pairs, self.sizes_from, w.metastates, "stage", "memory", "time"
        );
        for s in &self.stages {
            out += &format!("  {:<12}{:>12}{:>14}\n", s.stage, gigabytes(s.bytes), duration(s.seconds));
        }
        out += &format!("  {:<12}{:>12}{:>14}\n\n", "in all", gigabytes(self.bytes), duration(self.seconds));
        let allowed = format!("{} ({})", gigabytes(self.limit), self.limit_from);
        out += &match self.fits {
            true => format!("within the memory limit of {allowed}\n"),
            false => format!("MORE than the memory limit of {allowed}: the run would be refused\n"),
        };
        out + &self.rests_on + "; estimated, not measured: the time may be several times as long. Nothing was written."
    }
}

/// Seconds, minutes or hours.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.1} s"),
        s if s < 5400.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_allowed_and_what_does_not_gets_a_remedy() {
        let (fit, mut input) = (FitArgs::with_ratio(0.5), InputArgs::default());
        assert!(check(&input, &fit, 1000, 10_000, true).is_ok());
        input.memory_limit = Some(1_500_000_000);
        let refused = check(&input, &fit, 300_000, 3_000_000, true).unwrap_err();
        let told = refused.to_string();
        assert!(refused.exit() == 2 && told.contains("300000 states") && told.contains("--max-rank"), "{told}");
        let fewer = FitArgs { max_rank: Some(3), ..fit };
        assert!(check(&input, &fewer, 300_000, 3_000_000, true).is_ok());
        assert!(check(&input, &fewer, usize::MAX, usize::MAX, true).is_err());
    }

    #[test]
    fn more_of_anything_needs_no_less() {
        let fit = FitArgs { rank: Some(20), ..FitArgs::default() };
        let at = |states, pairs, rank| Work::new(&FitArgs { rank: Some(rank), ..fit.clone() }, states, pairs, true);
        let first = at(100_000, 2_000_000, 20);
        for larger in [at(200_000, 2_000_000, 20), at(100_000, 4_000_000, 20), at(100_000, 2_000_000, 40)] {
            assert!(larger.bytes() > first.bytes());
        }
        let names: Vec<&str> = first.stages().iter().map(|s| s.0).collect();
        assert_eq!(names, ["reading", "lambda_max", "choosing", "solving", "refit", "zones"]);
        // Rows of data need a table to count in, and labels.
        assert!(Work { from_rows: true, ..first }.reading() > first.reading());
    }

    #[test]
    fn an_estimate_adds_up_and_is_told() {
        let work = Work::new(&FitArgs::with_ratio(0.5), 2000, 40_000, true);
        let input = InputArgs { memory_limit: Some(1 << 20), ..InputArgs::default() };
        let found = Estimate::new(work, &input, "from a test".to_owned(), 1.0).unwrap();
        let sum: f64 = found.stages.iter().map(|s| s.seconds).sum();
        assert!(found.seconds > 0.0 && (found.seconds - sum).abs() < 1e-9 && !found.fits);
        let told = found.describe();
        assert!(told.contains("2000 states, 40000 pairs (from a test)") && told.contains("MORE than"), "{told}");
    }
}
