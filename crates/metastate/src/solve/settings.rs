//! What the caller may choose. It is checked once, before the solve.

use super::local::BbFormula;
use super::problem::Factors;
use crate::error::{Error, Result};
use crate::proof::Effort;

/// The local solver.
///
/// A field of [`Settings`], whose example sets another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Solver {
    /// Majorised blocks with Anderson acceleration.
    #[default]
    Fast,
    /// The paper's PALM with Barzilai-Borwein steps and the non-monotone search.
    PalmBb(BbFormula),
    /// The paper's PALM with the theoretical steps (5.4): correct, and very slow.
    PalmLipschitz,
}

/// When Algorithm 1 may stop.
///
/// The example of [`Settings`] sets one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StopRule {
    /// The certified relative gap is at most this.
    Certificate {
        /// `(F - lower bound) / F`.
        gap: f64,
    },
    /// The paper's exact rule: projected ascent finds nothing above `1 + tolerance`.
    Exact {
        /// epsilon_Exa of section 5.2.1.
        tolerance: f64,
    },
    /// The paper's early rule: none of so many random directions is above 1.
    Early {
        /// N of section 5.2.1; the paper uses 5000.
        directions: usize,
    },
}

/// When a local solve ends.
///
/// A field of [`Settings`], whose example sets another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LocalStop {
    /// relLE1 and relLE2 are at most the tolerance.
    Kkt,
    /// The paper's (5.6): the mean of the last `window` values is within `decrease` of the present one.
    Decrease {
        /// Values averaged; the paper uses 30.
        window: usize,
        /// Relative decrease; the paper uses 1e-3.
        decrease: f64,
    },
}

/// Where to start.
///
/// A field of [`Settings`], whose example sets another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Start {
    /// From the solution of the nuclear relaxation.
    #[default]
    Spectral,
    /// Uniform on the simplices, as in the paper.
    Random,
    /// From given factors.
    Given(Box<Factors>),
}

/// How near to linear dependence atoms must be to be merged: `||Xi Delta||_F` at most this.
///
/// A field of [`Settings`], whose example sets another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Redundancy {
    /// Times `||Xi P||_F`; and F may not rise by more than the local tolerance.
    Relative(f64),
    /// An absolute number (the paper's 5e-5 and 1.5e-4), however F changes.
    Absolute(f64),
}

/// Where redundant columns are sought. The paper leaves it open, and the rank at the end depends on it.
///
/// A field of [`Settings`], whose example sets another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Removal {
    /// Among combinations of the atoms `U_j V_j^T` as they are, as many columns at once as the threshold allows.
    #[default]
    AllAtOnce,
    /// The same, one column at a time.
    OneByOne,
    /// Among combinations of the atoms scaled to length one, as many at once as the threshold allows.
    UnitAtoms,
}

/// Never more columns than this, unless the caller says otherwise. People can neither name nor draw more; where more would be better, the result says so.
pub const MAX_RANK: usize = 50;

/// Never more columns than this in the paper's own mode.
pub const PAPER_MAX_RANK: usize = 300;

/// KKT residual to reach, unless the caller says otherwise.
pub const TOLERANCE: f64 = 1e-5;
/// Certified gap to reach, unless the caller says otherwise.
pub const GAP: f64 = 1e-3;

/// All choices but lambda.
///
/// ```
/// use metastate::solve::{Settings, StopRule};
///
/// let sharper = Settings { stop: StopRule::Certificate { gap: 1e-5 }, ..Settings::default() };
/// assert!(sharper.check(100, 100).is_ok());
/// let impossible = Settings { max_rank: 0, ..Settings::default() };
/// assert!(impossible.check(100, 100).is_err());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Local solver.
    pub solver: Solver,
    /// When to stop.
    pub stop: StopRule,
    /// When a local solve ends.
    pub local_stop: LocalStop,
    /// KKT residual to reach.
    pub tolerance: f64,
    /// Where to start.
    pub start: Start,
    /// Columns at the start; by default as many as the relaxation has.
    pub start_rank: Option<usize>,
    /// Never more columns than this.
    pub max_rank: usize,
    /// When columns are merged.
    pub redundancy: Redundancy,
    /// Where columns to be merged are sought.
    pub removal: Removal,
    /// Columns appended at once; the paper appends one.
    pub append_at_once: usize,
    /// Relative decrease of F that an appended column must bring; the paper asks for 1e-5.
    pub append_decrease: f64,
    /// Columns of U shorter than this are removed (the paper's eps0).
    pub epsilon0: f64,
    /// Random starts of the projected ascent (as many random directions, and as many single states).
    pub ascent_starts: usize,
    /// Sweeps in all.
    pub max_sweeps: usize,
    /// Work put into the proof at the end.
    pub certificate: Effort,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            solver: Solver::Fast,
            stop: StopRule::Certificate { gap: GAP },
            local_stop: LocalStop::Kkt,
            tolerance: TOLERANCE,
            start: Start::Spectral,
            start_rank: None,
            max_rank: MAX_RANK,
            redundancy: Redundancy::Relative(1e-4),
            removal: Removal::AllAtOnce,
            append_at_once: 8,
            append_decrease: 1e-8,
            epsilon0: 1e-14,
            ascent_starts: 16,
            max_sweeps: 20_000,
            certificate: Effort::default(),
            seed: 0,
        }
    }
}

impl Settings {
    /// The paper's own choices: PALM-BB from `start_rank` random columns, rule (5.6), one column at a time, exact stopping.
    #[must_use]
    pub fn paper(start_rank: usize, epsilon: f64) -> Self {
        Settings {
            solver: Solver::PalmBb(BbFormula::default()),
            stop: StopRule::Exact { tolerance: 1e-3 },
            local_stop: LocalStop::Decrease { window: 30, decrease: 1e-3 },
            start: Start::Random,
            start_rank: Some(start_rank),
            max_rank: start_rank.max(PAPER_MAX_RANK),
            redundancy: Redundancy::Absolute(epsilon),
            append_at_once: 1,
            append_decrease: 1e-5,
            ..Settings::default()
        }
    }

    /// Every value in its range, for so many rows and columns.
    pub fn check(&self, rows: usize, cols: usize) -> Result<()> {
        let positive = |name, value: f64| in_range(name, value, value > 0.0 && value.is_finite(), "it must be a positive number");
        let at_least_one = |name, value: usize| in_range(name, value as f64, value >= 1, "it must be at least 1");
        positive("the tolerance", self.tolerance)?;
        positive("epsilon0", self.epsilon0)?;
        match self.stop {
            StopRule::Certificate { gap } => positive("the gap", gap)?,
            StopRule::Exact { tolerance } => positive("the tolerance of the exact rule", tolerance)?,
            StopRule::Early { directions } => at_least_one("the number of directions", directions)?,
        }
        if let LocalStop::Decrease { window, decrease } = self.local_stop {
            at_least_one("the window of the local stopping rule", window)?;
            positive("the decrease of the local stopping rule", decrease)?;
        }
        match self.redundancy {
            Redundancy::Relative(x) => in_range("the relative redundancy", x, (0.0..1.0).contains(&x), "it must lie in [0, 1)")?,
            Redundancy::Absolute(x) => in_range("the absolute redundancy", x, x >= 0.0 && x.is_finite(), "it must be zero or more")?,
        }
        at_least_one("the largest rank", self.max_rank)?;
        at_least_one("the number of columns appended at once", self.append_at_once)?;
        at_least_one("the number of sweeps", self.max_sweeps)?;
        in_range(
            "the decrease asked of a new column",
            self.append_decrease,
            (0.0..1.0).contains(&self.append_decrease),
            "it must lie in [0, 1)",
        )?;
        in_range(
            "the failure probability of the certificate",
            self.certificate.failure_probability,
            self.certificate.failure_probability > 0.0 && self.certificate.failure_probability < 1.0,
            "it must lie strictly between 0 and 1",
        )?;
        if let Some(rank) = self.start_rank {
            in_range("the rank at the start", rank as f64, rank >= 1, "it must be at least 1")?;
            in_range("the rank at the start", rank as f64, rank <= self.max_rank, "it must not exceed the largest rank")?;
        }
        if let Start::Given(x) = &self.start {
            check_factors(x, rows, cols)?;
        }
        Ok(())
    }
}

fn in_range(name: &'static str, value: f64, fine: bool, allowed: &'static str) -> Result<()> {
    if fine { Ok(()) } else { Err(Error::Setting { name, value: value.to_string(), allowed }) }
}

/// Sums of factors that come from outside may differ from one by this much.
const SUM_ALLOWED: f64 = 1e-6;

/// Sizes, finiteness, signs and sums of factors that come from outside.
pub fn check_factors(x: &Factors, rows: usize, cols: usize) -> Result<()> {
    let sized = |what, expected, found| if expected == found { Ok(()) } else { Err(Error::SizeMismatch { what, expected, found }) };
    sized("U (rows)", rows, x.u.rows())?;
    sized("V (rows)", cols, x.v.rows())?;
    sized("V (columns)", x.u.cols(), x.v.cols())?;
    if x.rank() == 0 {
        return Err(Error::Empty { what: "the list of columns of U" });
    }
    for (what, m) in [("U", &x.u), ("V", &x.v)] {
        if let Some((row, column, value)) = m.first_not_finite() {
            return Err(Error::NotFinite { what, row, column, value });
        }
        if let Some(at) = m.as_slice().iter().position(|x| *x < 0.0) {
            return Err(Error::Negative { what, row: at / m.cols(), column: at % m.cols(), value: m.as_slice()[at] });
        }
    }
    let far = |sum: f64| (sum - 1.0).abs() > SUM_ALLOWED;
    if let Some(row) = (0..rows).find(|&i| far(x.u.row(i).iter().sum())) {
        return Err(Error::Setting {
            name: "a row sum of U",
            value: format!("{} in row {row}", x.u.row(row).iter().sum::<f64>()),
            allowed: "every row of U must sum to 1",
        });
    }
    if let Some((j, sum)) = crate::linalg::thin::column_sums(&x.v).into_iter().enumerate().find(|(_, s)| far(*s)) {
        return Err(Error::Setting {
            name: "a column sum of V",
            value: format!("{sum} in column {j}"),
            allowed: "every column of V must sum to 1",
        });
    }
    Ok(())
}
