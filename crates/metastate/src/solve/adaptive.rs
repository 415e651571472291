//! The paper's Algorithm 1: solve locally, remove redundant columns, check globally, append columns, and again; with the
//! relaxation in front of it, which supplies the start and the lower bound, and the certificate behind it.

use super::errors;
use super::grow::{self, Append, AscentSearch};
use super::kkt::{LocalErrors, Products, multiplier_and_errors};
use super::lambda_max::rank_one;
use super::local::{Fast, LocalSolver, Palm, StepRule};
use super::observe::{Control, Event, Observer, Phase, Progress};
use super::problem::{Factors, Problem};
use super::relaxation::{self, Relaxation};
use super::settings::{LocalStop, Settings, Solver, Start, StopRule};
use super::shrink;
use super::solution::{Errors, Solution, Status};
use super::start;
use super::steer::{self, Steering};
use crate::error::Result;
use crate::linalg::{Mat, thin};
use crate::proof::{self, Candidate, Proven, Witness};

/// Sweeps after which the local solver forgets its history, so that a run can be taken up there bit for bit.
const SAFE_INTERVAL: usize = 250;
/// Sweeps between two looks at the KKT residuals.
const KKT_INTERVAL: usize = 5;
/// While columns still come and go, local solves end here or earlier.
const COARSE_TOLERANCE: f64 = 1e-3;
/// A local solve whose value falls by less than this share over [`STALL_WINDOW`] sweeps has reached the floor of rounding.
const FLOOR: f64 = 1e-13;
/// Sweeps over which progress is judged.
const STALL_WINDOW: usize = 50;
/// While columns come and go: once [`STALL_WINDOW`] sweeps gain less than this share of what the bound leaves open, a new
/// column is the better investment.
const SLOW_WHILE_GROWING: f64 = 0.02;
/// While polishing below the wanted gap: the same, with more patience.
const SLOW_WHILE_POLISHING: f64 = 1e-3;
/// `Omega°(W) - 1` below this is nothing to append.
const NOTHING_TO_APPEND: f64 = 1e-7;
/// Points combined by the fast solver's acceleration.
const ACCELERATION_MEMORY: usize = 8;
/// Columns that the relaxation starts with.
const RELAXATION_RANK: usize = 16;
/// The same where the settings ask for more columns at the start, at most.
const MOST_RELAXATION_RANK: usize = 64;
/// The relaxation is solved to this precision, ...
const RELAXATION_PRECISION: f64 = 1e-4;
/// ... or to this share of the wanted gap where that is less.
const OF_THE_GAP: f64 = 0.1;
/// Singular values of the relaxation's X below this share of the largest do not become columns at the start.
const WORTH_A_COLUMN: f64 = 1e-2;
/// Up to this number of states both dual points are proven; beyond, the solution's own only where it promises more.
const BOTH_POINTS: usize = 400;
/// Removing columns may raise F by this share before any column was appended.
pub(super) const RISE_BEFORE_GROWTH: f64 = 1e-6;

/// Afterwards by this share of the decrease that appending asks for: were it as much, the two would chase each other.
const RISE_AFTER_GROWTH: f64 = 0.1;
/// Local solves end at this share of what the last global check found: well below it.
const COARSE_SHARE: f64 = 0.1;
/// A new column that lowers F only with a smaller share of U than this is not appended.
const SMALLEST_KAPPA: f64 = 1e-8;

/// Everything that a run needs to go on. Taken at safe points; [`resume`] continues from it bit for bit.
///
/// The example of [`resume`] keeps one and goes on from it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The present point.
    pub factors: Factors,
    /// The relaxation behind the bound.
    pub relaxation: Relaxation,
    /// The bound that the run steers by: a guess, or what was proven of the relaxation (see `proved`).
    pub bound: Steering,
    /// Whether the relaxation's bound was proven. It replaces the guess, and the run goes on where it turned out too low.
    pub proved: bool,
    /// Local solves so far.
    pub round: usize,
    /// Sweeps so far.
    pub sweeps: usize,
    /// Whether the present local solve goes to the full tolerance.
    pub polishing: bool,
    /// KKT residual at which local solves end while columns come and go: well below what the last global check found.
    pub coarse: f64,
    /// Whether columns were ever appended.
    pub grown: bool,
    /// Whether a local solve is under way (or the global check is next).
    pub solving: bool,
    /// Values of F in the present local solve.
    pub values: Vec<f64>,
}

/// Solves the problem. Never converging is no error: see [`Status`].
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Problem, Settings, lambda_max, solve};
/// use metastate::{Silent, Status};
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let lambda = 0.1 * lambda_max(chain.p(), chain.weights(), 0)?;
/// let problem = Problem::new(chain.p(), chain.weights(), lambda)?;
/// let solution = solve(&problem, &Settings::default(), &mut Silent)?;
/// assert_eq!(solution.status, Status::Certified); // the gap is at most 1e-3, and that is proven
/// assert_eq!(solution.rank(), 2);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn solve(problem: &Problem, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
    settings.check(problem.rows(), problem.cols())?;
    let mut stop: Option<Ended> = None;
    let state = begin(problem, settings, observer, &mut stop);
    Ok(AdaptiveRun::new(problem, settings, observer, state, stop).into_solution())
}

/// Continues a run from a safe point, to the same bits as if it had never stopped.
///
/// ```
/// use metastate::simulate::planted;
/// use metastate::solve::{Observer, Problem, Settings, Snapshot, lambda_max, resume, solve};
/// use metastate::Silent;
///
/// /// Keeps the first safe point.
/// struct First(Option<Snapshot>);
/// impl Observer for First {
///     fn safe_point(&mut self, snapshot: &Snapshot) {
///         self.0.get_or_insert_with(|| snapshot.clone());
///     }
/// }
///
/// let chain = planted(20, 2, 1)?.chain()?;
/// let problem = Problem::new(chain.p(), chain.weights(), 0.1 * lambda_max(chain.p(), chain.weights(), 0)?)?;
/// let mut first = First(None);
/// let whole = solve(&problem, &Settings::default(), &mut first)?;
/// let resumed = resume(&problem, &Settings::default(), first.0.unwrap(), &mut Silent)?;
/// assert_eq!(resumed.factors, whole.factors);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn resume(problem: &Problem, settings: &Settings, snapshot: Snapshot, observer: &mut dyn Observer) -> Result<Solution> {
    settings.check(problem.rows(), problem.cols())?;
    super::settings::check_factors(&snapshot.factors, problem.rows(), problem.cols())?;
    Ok(AdaptiveRun::new(problem, settings, observer, snapshot, None).into_solution())
}

/// The relaxation, then the first point.
fn begin(problem: &Problem, settings: &Settings, observer: &mut dyn Observer, stop: &mut Option<Ended>) -> Snapshot {
    let full_rank = problem.rows().min(problem.cols());
    let relax_rank = settings.start_rank.unwrap_or(0).clamp(RELAXATION_RANK, MOST_RELAXATION_RANK).min(full_rank);
    // A start is stochastic factors, whatever the coordinates of the problem.
    let given = if let Start::Given(x) = &settings.start { Some(problem.frame.enter(x)) } else { None };
    let first = match &given {
        Some(x) => x.v.clone(),
        None => relaxation::random_row_space(problem, relax_rank, settings.seed),
    };
    let cap = (settings.max_rank + RELAXATION_RANK).min(full_rank);
    let precision =
        if let StopRule::Certificate { gap } = settings.stop { (OF_THE_GAP * gap).min(RELAXATION_PRECISION) } else { RELAXATION_PRECISION };
    let solved = relaxation::solve(problem, first, cap, precision, settings.certificate.seed, |rank, steering| {
        let progress = Progress { phase: Phase::Relaxing, round: 0, sweep: 0, rank, objective: f64::INFINITY, local: None, steering };
        observer.event(&Event::Bounded { rank }, &progress);
        match observer.progress(&progress) {
            Control::Continue => true,
            Control::Interrupt => {
                *stop = Some(Ended::Interrupted);
                false
            }
            Control::TimeUp => {
                *stop = Some(Ended::TimeLimit);
                false
            }
        }
    });
    let (relaxation, bound) = solved.unwrap_or_else(|| trivial_bound(problem));
    let factors = match &settings.start {
        Start::Given(x) => given.unwrap_or_else(|| (**x).clone()),
        Start::Random => start::random(problem, settings.start_rank.unwrap_or(relaxation.rank()).min(settings.max_rank), settings.seed),
        Start::Spectral => {
            let worth = relaxation.spectrum.iter().filter(|s| **s > WORTH_A_COLUMN * relaxation.spectrum[0]).count();
            let rank = settings.start_rank.unwrap_or(worth).clamp(1, settings.max_rank);
            match start::spectral_in(&problem.frame, &relaxation, rank) {
                Some(x) if settings.start_rank.is_none_or(|wanted| wanted == x.rank()) => x,
                Some(x) => start::widen(problem, x, rank, settings.seed),
                None => start::random(problem, rank, settings.seed),
            }
        }
    };
    Snapshot {
        factors,
        relaxation,
        bound,
        proved: false,
        round: 0,
        sweeps: 0,
        polishing: false,
        coarse: settings.tolerance.max(COARSE_TOLERANCE),
        grown: false,
        solving: true,
        values: Vec::new(),
    }
}

/// When not even the relaxation can be handled (numbers beyond the range of f64): zero is a lower bound of F.
fn trivial_bound(problem: &Problem) -> (Relaxation, Steering) {
    let (m, n) = (problem.rows(), problem.cols());
    let flat = Mat::from_fn(m, 1, |_, _| 1.0);
    let even = Mat::from_fn(n, 1, |_, _| 1.0 / n as f64);
    let relaxation = Relaxation { a: flat, b: even, mu: vec![0.0; m], spectrum: vec![1.0], value: f64::INFINITY };
    (relaxation, Steering::new(0.0))
}

/// Why the loop ended. It becomes a [`Status`] only when the proof is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    GapReached,
    Stationary,
    Early,
    RankCap,
    IterationLimit,
    TimeLimit,
    Interrupted,
}

impl Ended {
    /// The word for the result. *Certified* needs a proof of the gap that was asked for, whatever the loop believed.
    fn status(self, rule: StopRule, gap: Option<f64>) -> Status {
        let reached = matches!((rule, gap), (StopRule::Certificate { gap: asked }, Some(gap)) if gap <= asked);
        match self {
            Ended::Interrupted => Status::Interrupted,
            Ended::TimeLimit => Status::TimeLimit,
            _ if reached => Status::Certified,
            Ended::GapReached | Ended::Stationary => Status::Stationary,
            Ended::Early => Status::Early,
            Ended::RankCap => Status::RankCap,
            Ended::IterationLimit => Status::IterationLimit,
        }
    }
}

/// What the global check concluded.
enum NextStep {
    Stop(Ended),
    Polish,
    Grow(Vec<grow::Violation>),
}

struct AdaptiveRun<'a> {
    problem: &'a Problem<'a>,
    settings: &'a Settings,
    observer: &'a mut dyn Observer,
    solver: Box<dyn LocalSolver>,
    state: Snapshot,
    value: f64,
    local: Option<LocalErrors>,
    stop: Option<Ended>,
    /// What was proven of the relaxation's point.
    proven: Option<(Proven, Witness)>,
}

impl<'a> AdaptiveRun<'a> {
    fn new(
        problem: &'a Problem<'a>,
        settings: &'a Settings,
        observer: &'a mut dyn Observer,
        mut state: Snapshot,
        stop: Option<Ended>,
    ) -> Self {
        let solver: Box<dyn LocalSolver> = match settings.solver {
            Solver::Fast => Box::new(Fast::new(ACCELERATION_MEMORY)),
            Solver::PalmBb(formula) => Box::new(Palm::new(StepRule::BarzilaiBorwein(formula))),
            Solver::PalmLipschitz => Box::new(Palm::new(StepRule::Lipschitz { epsilon0: settings.epsilon0 })),
        };
        // The paper's local rule knows one precision only.
        state.polishing |= matches!(settings.local_stop, LocalStop::Decrease { .. });
        let value = problem.objective(&state.factors).value;
        AdaptiveRun { problem, settings, observer, solver, state, value, local: None, stop, proven: None }
    }

    /// Algorithm 1.
    fn into_solution(mut self) -> Solution {
        while self.stop.is_none() {
            if self.state.solving {
                self.solve_locally();
                continue;
            }
            if self.remove_redundant() {
                continue;
            }
            match self.check_globally() {
                NextStep::Stop(status) => self.stop = Some(status),
                NextStep::Polish => self.next_round(true),
                NextStep::Grow(violations) => self.append(&violations),
            }
        }
        self.finish()
    }

    /// Sweeps until the local rule is met.
    fn solve_locally(&mut self) {
        self.solver.restart();
        self.observer.safe_point(&self.state);
        loop {
            if self.state.sweeps >= self.settings.max_sweeps {
                self.stop.get_or_insert(Ended::IterationLimit);
                self.solver.settle(&mut self.state.factors);
                return;
            }
            let sweep = self.solver.sweep(self.problem, &mut self.state.factors);
            self.value = sweep.value;
            self.state.sweeps += 1;
            self.state.values.push(sweep.value);
            self.prune();
            if self.locally_converged() {
                self.solver.settle(&mut self.state.factors);
                self.state.solving = false;
                return;
            }
            self.watch(Phase::Solving);
            if self.stop.is_some() {
                self.solver.settle(&mut self.state.factors);
                return;
            }
            if self.state.values.len().is_multiple_of(SAFE_INTERVAL) {
                self.solver.restart();
                self.observer.safe_point(&self.state);
            }
        }
    }

    /// Drops columns of U without length (the paper's preprocessing of each step).
    fn prune(&mut self) {
        let norms = thin::column_norms(&self.state.factors.u);
        let keep: Vec<usize> = (0..norms.len()).filter(|&j| norms[j] > self.settings.epsilon0).collect();
        if keep.len() < norms.len() && !keep.is_empty() {
            self.state.factors.keep_columns_in(&keep, &self.problem.frame);
            self.solver.restart();
        }
    }

    fn locally_converged(&mut self) -> bool {
        let values = &self.state.values;
        let n = values.len();
        match self.settings.local_stop {
            LocalStop::Decrease { window, decrease } => {
                if n <= window {
                    return false;
                }
                let mean = values[n - 1 - window..n - 1].iter().sum::<f64>() / window as f64;
                (mean - values[n - 1]) / values[n - 1] < decrease
            }
            LocalStop::Kkt => {
                if !n.is_multiple_of(KKT_INTERVAL) {
                    return false;
                }
                let products = Products::at(self.problem, &self.state.factors);
                let errors = multiplier_and_errors(self.problem, &self.state.factors, &products).1;
                self.local = Some(errors);
                let goal = if self.state.polishing { self.settings.tolerance } else { self.state.coarse };
                // Below the wanted gap no more columns will come: on to the polish.
                let settled = !self.state.polishing && self.gap_reached();
                errors.worst() <= goal || settled || self.stalled()
            }
        }
    }

    fn gap_reached(&self) -> bool {
        matches!(self.settings.stop, StopRule::Certificate { gap } if self.state.bound.gap(self.value) <= gap)
    }

    /// Whether more sweeps at this rank are not worth their time: see the constants. A polish that has not reached the
    /// wanted gap goes on to the KKT tolerance, but for one at the rank limit, which cannot reach it.
    fn stalled(&self) -> bool {
        let values = &self.state.values;
        let Some(then) = values.len().checked_sub(1 + STALL_WINDOW).map(|at| values[at]) else { return false };
        let (gained, open) = (then - self.value, (self.value - self.state.bound.guess()).max(0.0));
        let no_more = self.gap_reached() || self.state.factors.rank() >= self.settings.max_rank;
        let share = match (self.state.polishing, no_more) {
            (false, _) => SLOW_WHILE_GROWING,
            (true, true) => SLOW_WHILE_POLISHING,
            (true, false) => 0.0,
        };
        gained <= (share * open).max(FLOOR * self.value)
    }

    /// Merges atoms that are nearly linearly dependent; the next local solve goes on with fewer columns.
    fn remove_redundant(&mut self) -> bool {
        let from = self.state.factors.rank();
        let rise = if self.state.grown { RISE_AFTER_GROWTH * self.settings.append_decrease } else { RISE_BEFORE_GROWTH };
        let Some((shorter, value)) = shrink::without_redundant(self.problem, &self.state.factors, self.value, self.settings, rise) else {
            return false;
        };
        self.state.factors = shorter;
        self.value = value;
        let to = self.state.factors.rank();
        self.next_round(false);
        self.tell(Event::Removed { from, to });
        true
    }

    fn check_globally(&mut self) -> NextStep {
        self.watch(Phase::Checking);
        if let Some(status) = self.stop {
            return NextStep::Stop(status);
        }
        let x = &self.state.factors;
        let (mu, local) = multiplier_and_errors(self.problem, x, &Products::at(self.problem, x));
        self.local = Some(local);
        let seed = self.settings.seed.wrapping_add(self.state.round as u64);
        let rank = x.rank();
        let polishing = self.state.polishing;
        let done = |ended| if polishing { NextStep::Stop(ended) } else { NextStep::Polish };
        let reached = self.gap_reached() && (!polishing || self.gap_is_proven());
        match self.settings.stop {
            StopRule::Certificate { .. } if reached => done(Ended::GapReached),
            // At the rank limit nothing can be appended, whatever a search would find.
            StopRule::Certificate { .. } if rank >= self.settings.max_rank => done(Ended::RankCap),
            StopRule::Early { directions } => {
                let found = grow::probe(self.problem, &self.state.factors, &mu, directions, seed);
                self.tell(Event::Checked { support: found.value });
                if found.value <= 1.0 { done(Ended::Early) } else { self.grow_by(vec![found]) }
            }
            rule => {
                let slack = if let StopRule::Exact { tolerance } = rule { tolerance } else { NOTHING_TO_APPEND };
                let search = AscentSearch { starts: self.settings.ascent_starts, steps: grow::STEPS_TO_GROW, seed, thorough: false };
                let ascend = |search: &AscentSearch| grow::ascend(self.problem, &self.state.factors, &mu, search, 1.0 + slack);
                let (mut support, mut found) = ascend(&search);
                // Before the search is believed that nothing is there, it looks everywhere.
                if found.is_empty() {
                    (support, found) = ascend(&AscentSearch { thorough: true, ..search });
                }
                self.state.coarse =
                    (COARSE_SHARE * (support - 1.0)).clamp(self.settings.tolerance, COARSE_TOLERANCE.max(self.settings.tolerance));
                self.tell(Event::Checked { support });
                if found.is_empty() { done(Ended::Stationary) } else { self.grow_by(found) }
            }
        }
    }

    /// The guess says that the gap is reached: is it? What was proven takes the place of the guess, so that the run goes on from the truth.
    fn gap_is_proven(&mut self) -> bool {
        if !self.settings.certificate.prove {
            return true;
        }
        if !self.state.proved {
            let found = self.prove_relaxation();
            self.state.bound = Steering::new(found);
            self.state.proved = true;
        }
        self.gap_reached()
    }

    /// The bound that is proven of the relaxation's point; proven once.
    fn prove_relaxation(&mut self) -> f64 {
        let Relaxation { a, b, mu, .. } = &self.state.relaxation;
        let candidate = Candidate { a, b, mu };
        let enough = self.enough(self.value);
        if self.proven.is_none() {
            let progress = self.progress(Phase::Certifying);
            let go_on = &mut || self.observer.progress(&progress) == Control::Continue;
            self.proven = Some(proof::prove_watched(self.problem, &[candidate], enough, &self.settings.certificate, go_on));
        }
        self.proven.as_ref().map_or(0.0, |(proven, _)| proven.lower_bound())
    }

    /// A bound that leaves half of the gap asked for is enough; without a gap to reach, nothing is.
    fn enough(&self, objective: f64) -> f64 {
        if let StopRule::Certificate { gap } = self.settings.stop { (1.0 - 0.5 * gap) * objective } else { f64::INFINITY }
    }

    fn grow_by(&self, violations: Vec<grow::Violation>) -> NextStep {
        match (self.state.factors.rank() < self.settings.max_rank, self.state.polishing) {
            (true, _) => NextStep::Grow(violations),
            (false, true) => NextStep::Stop(Ended::RankCap),
            (false, false) => NextStep::Polish,
        }
    }

    fn append(&mut self, violations: &[grow::Violation]) {
        let from = self.state.factors.rank();
        let settings = Append {
            at_once: self.settings.append_at_once.min(self.settings.max_rank - from),
            decrease: self.settings.append_decrease,
            smallest_kappa: SMALLEST_KAPPA,
        };
        match grow::append(self.problem, &self.state.factors, violations, &settings) {
            Some(longer) => {
                self.value = self.problem.objective(&longer).value;
                self.state.factors = longer;
                self.state.grown = true;
                self.next_round(false);
                self.tell(Event::Appended { from, to: self.state.factors.rank() });
            }
            None if self.state.polishing => self.stop = Some(Ended::Stationary),
            None => self.next_round(true),
        }
    }

    fn next_round(&mut self, polishing: bool) {
        self.state.round += 1;
        self.state.polishing = polishing || matches!(self.settings.local_stop, LocalStop::Decrease { .. });
        self.state.solving = true;
        self.state.values.clear();
    }

    fn progress(&self, phase: Phase) -> Progress {
        Progress {
            phase,
            round: self.state.round,
            sweep: self.state.sweeps,
            rank: self.state.factors.rank(),
            objective: self.value,
            local: self.local,
            steering: self.state.bound,
        }
    }

    fn tell(&mut self, event: Event) {
        let progress = self.progress(Phase::Checking);
        self.observer.event(&event, &progress);
    }

    fn watch(&mut self, phase: Phase) {
        let progress = self.progress(phase);
        match self.observer.progress(&progress) {
            Control::Continue => {}
            Control::Interrupt => self.stop = Some(Ended::Interrupted),
            Control::TimeUp => self.stop = Some(Ended::TimeLimit),
        }
    }

    /// The better of two proofs: of the relaxation's point, and of the solution's own where that promises more or costs little.
    fn prove(&mut self, factors: &Factors, mu: &[f64], objective: f64) -> (Proven, Witness) {
        let problem = self.problem;
        let own = Relaxation { a: factors.u.clone(), b: factors.v.clone(), mu: mu.to_vec(), spectrum: Vec::new(), value: objective };
        let guess = steer::look(problem, &own, self.settings.certificate.seed).map_or(0.0, |(bound, _)| bound.guess());
        let relaxed = self.prove_relaxation();
        let cached = self.proven.take();
        let own = (guess > relaxed || problem.larger_side() <= BOTH_POINTS).then(|| {
            let candidate = Candidate { a: &own.a, b: &own.b, mu: &own.mu };
            let (enough, progress) = (self.enough(objective), self.progress(Phase::Certifying));
            let go_on = &mut || self.observer.progress(&progress) == Control::Continue;
            proof::prove_watched(problem, &[candidate], enough, &self.settings.certificate, go_on)
        });
        let larger = |a: (Proven, Witness), b: (Proven, Witness)| if b.0.lower_bound() > a.0.lower_bound() { b } else { a };
        match (cached, own) {
            (Some(a), Some(b)) => larger(a, b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => proof::prove(problem, &[], f64::INFINITY, &self.settings.certificate),
        }
    }

    /// Recomputes every published number from the factors.
    fn finish(mut self) -> Solution {
        let ended = self.stop.unwrap_or(Ended::Stationary);
        self.watch(Phase::Certifying);
        let problem = self.problem;
        let mut factors = std::mem::take(&mut self.state.factors);
        factors.order_by_mass(problem.weights);
        let objective = problem.published_objective(&factors);
        let (mu, local) = multiplier_and_errors(problem, &factors, &Products::at(problem, &factors));
        let search = AscentSearch::to_report(problem, &factors, self.settings.ascent_starts, self.settings.seed);
        let (support, _) = grow::ascend(problem, &factors, &mu, &search, f64::INFINITY);

        let proven = self.settings.certificate.prove.then(|| self.prove(&factors, &mu, objective.value));
        let (proof, witness) =
            proven.map_or_else(|| (None, Witness::none(problem.rows(), problem.cols())), |(proof, witness)| (Some(proof), witness));
        let status = ended.status(self.settings.stop, proof.as_ref().map(|p| p.gap(objective.value)));
        let errors = Errors {
            rel_le1: local.rel_le1,
            rel_le2: local.rel_le2,
            ge: support - 1.0,
            rel_dg: errors::relative_duality_gap(problem, &factors, &mu, support, objective.value),
            rel_re: None,
            rel_se: None,
        };
        let factors = problem.frame.leave(factors);
        Solution {
            factors,
            status,
            lambda: problem.lambda,
            objective,
            errors,
            mu,
            proof,
            objective_of_one: problem.published_objective(&rank_one(problem)).value,
            witness,
            rounds: self.state.round + 1,
            sweeps: self.state.sweeps,
        }
    }
}
