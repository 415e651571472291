//! Options of `fit`: what to solve ([`FitArgs`], part of the answer) and how to run it ([`RunArgs`], no part of it).

use std::path::PathBuf;

use metastate::WeightPower;
use metastate::fit::{self, FOLDS, PATH_FLOOR, PATH_POINTS};
use metastate::solve::{GAP, Settings, Solver, Start, StopRule, TOLERANCE};

use super::InputArgs;
use super::values::{Clusters, Init};
use crate::entry::{allowed, free};
use crate::error::{OptionError, OptionProblem};

// The library's defaults are the defaults of the options: each number stands in one place.
pub use metastate::fit::PAPER_MAX_RANK;
pub use metastate::solve::MAX_RANK;

options! {
    /// What to solve.
    FitArgs, Some("Fit"), FitArgs::consistent, {
        /// How much each further meta-state costs in the objective: a larger value gives fewer meta-states. Its unit is that of the objective, which depends on
        /// the data; --lambda-ratio has no unit. Without either, lambda and the number of meta-states are chosen on held-out data.
        lambda: Option<f64> = None => |e| e.bounds(allowed::POSITIVE).conflicts("lambda-ratio");
        /// The same cost as a share of lambda_max, the value above which a single meta-state is best. Shares between 0.9 (few meta-states) and 0.01
        /// (many) are usual.
        lambda_ratio: Option<f64> = None => |e| e.value("R").bounds(allowed::POSITIVE);
        /// Which convex problem is solved and proven. In the paper's problem a state weighs as much as its share of the data, and all directions cost the same.
        /// Its solution is drawn towards the mean, so a refit is made as well and shown; nothing is proven about the refit. In the whitened problem rows and
        /// columns are weighted so that the noise is the same everywhere, and the directions that the likelihood found cost a fifth of the others. Its solution
        /// is less drawn towards the mean, and it is itself shown and proven (docs/whitened.md). It needs counts, and its lambda follows from the noise.
        objective: ObjectiveKind = ObjectiveKind::Paper => |e| e;
        /// Use exactly this many meta-states; their number is not searched for. A lambda is then found at which the solution has this many and is drawn only a
        /// little towards the mean. The prior of the refit is still chosen on held-out data. Where no lambda gives this many, only the refit has them, and the
        /// result says so. A transition matrix has no transitions to hold out, so its refit has no prior unless --prior gives one.
        rank: Option<usize> = None => |e| e.value("K").bounds(allowed::METASTATES).conflicts("lambda").conflicts("lambda-ratio");
        /// Number of meta-states that the solver starts with; it adds and removes some while it runs. Without it, as many as the convex relaxation of the
        /// problem has.
        start_rank: Option<usize> = None => |e| e;
        /// Never use more meta-states than this; 300 with --as-in-paper. Where more would lower the objective, the result has the status rank-cap.
        max_rank: Option<usize> = None => |e| e.default_is(MAX_RANK);
        /// Solve as the paper does: PALM with Barzilai-Borwein steps from a random start with --start-rank meta-states (a tenth of the states unless given, at
        /// most 300); a local solve ends when the objective falls by less than 1e-3 over 30 steps; one meta-state is added at a time, if that lowers the
        /// objective by 1e-5; meta-states are merged below an absolute threshold (5e-5 unless --redundancy-absolute is given); the exact rule stops at 1e-3
        /// (--gap) unless --stop is given. This is slower than the default and ends further from the optimum. The paper does not say what ends a cycle of
        /// adding and merging: here it ends after 20,000 sweeps, or at --time-limit.
        as_in_paper: bool = false => |e| e;
        /// The method that lowers the objective at a fixed number of meta-states; palm-bb with --as-in-paper. The others are there for comparison with
        /// the paper.
        solver: Option<SolverKind> = None => |e| e.default_is(SolverKind::Fast.word());
        /// When to stop: at a proven gap to the best possible objective, or by one of the paper's two rules, which prove nothing; exact with
        /// --as-in-paper.
        stop: Option<StopKind> = None => |e| e.default_is(StopKind::Certificate.word());
        /// How well a local solution must satisfy its optimality conditions: the largest relative KKT residual. Smaller is more exact and slower.
        tolerance: f64 = TOLERANCE => |e| e;
        /// How far above the best possible value the objective may provably be, as a share of the objective. Smaller is more exact and slower.
        gap: f64 = GAP => |e| e;
        /// Remove a meta-state where the others can take its place and the model changes by less than this share of the norm of the data. Without it,
        /// 1e-4.
        redundancy_relative: Option<f64> = None => |e| e.conflicts("redundancy-absolute");
        /// Remove a meta-state where the others can take its place and the model changes by less than this number, whatever the norm of the data. This is
        /// the paper's threshold; 5e-5 with --as-in-paper.
        redundancy_absolute: Option<f64> = None => |e| e;
        /// Which transitions give a state its weight in the objective: the more of them, the more its row counts.
        weights_by: WeightsKind = WeightsKind::Departures => |e| e;
        /// The power to which the weights of the states are raised in the objective. Take 0.5 where rare states matter.
        #[serde(with = "super::values::weight_power")]
        weight_power: WeightPower = WeightPower::One => |e| e.value("1|0.5|0");
        /// Which states are kept: all, or the largest set of states that can all reach each other. The ledger counts what is left out. Where the data do not
        /// connect two states, the time between them is infinite; for states that the chain leaves and never enters again, the result says where the chain
        /// ends.
        connected: ConnectedKind = ConnectedKind::All => |e| e;
        /// With --connected largest: a transition between two states counts for this only where it was seen at least this many times.
        connected_at: u64 = 1 => |e| e.value("N");
        /// Origins and destinations are two different sets, for example homes and workplaces, or warehouses and customers. A name that is found on both sides
        /// stands for two states, and no state is left out because it is never left or never reached. The result has states.csv for the origins and
        /// destinations.csv for the destinations; there is no latent chain, and there are no times and no forecasts.
        bipartite: bool = false => |e| e;
        /// Compute kinetics with detailed balance, on the meta-states and on all states, as for molecules in equilibrium: the most likely reversible chain is
        /// estimated first, and the times are computed from it.
        reversible: bool = false => |e| e;
        /// Where the solver starts: at a spectral solution, at random (the default with --as-in-paper), or at the solution in the folder of an earlier
        /// result; states that it does not have start between its meta-states.
        init: Option<Init> = None => |e| e.value("random|spectral|RESULT").default_is("spectral");
        /// The true transition matrix (a .npy file) or its two factors, where they are known. The result then says how far the answer is from it.
        truth: Option<String> = None => |e| e.value("P.npy|U.npy,V.npy");
        /// How each state gets one meta-state (its zone): by k-means on the memberships, with K clusters or with one for each meta-state (rank), or by its
        /// largest membership. Without it: membership after a refit, otherwise rank.
        clusters: Option<Clusters> = None
            => |e| e.value("K|rank|membership").texts(|t| t.parse::<Clusters>().is_ok(), "it must be a number, rank or membership");
        /// Fit the memberships a second time, with the number of meta-states found and without the cost lambda, which blurs them. The refit is written to
        /// refit.npz, and the tables, the page and the forecasts show it. Without this option: likelihood where lambda is chosen, otherwise none.
        refit: Option<RefitKind> = None => |e| e;
        /// Strength of the prior in the likelihood refit: the number of transitions that it adds to every state. Without it,
        /// chosen on held-out data. A transition matrix has no transitions to hold out: there it is 0 unless given, and the unit is the weight of an average
        /// state (state i counts as xi_i times the number of states).
        prior: Option<f64> = None => |e| e.value("C").bounds(allowed::NOT_NEGATIVE);
        /// Number of parts into which the data are cut where something is chosen: each part is held out once, and a fit to the other parts is scored on it.
        folds: usize = FOLDS => |e| e.value("K").bounds(allowed::FOLDS);
        /// Number of values of lambda on the path, from lambda_max downwards, where a path is asked for (`metastate path`, --as-in-paper).
        points: usize = PATH_POINTS => |e| e;
        /// Smallest lambda of the path, as a share of lambda_max.
        floor: f64 = PATH_FLOOR => |e| e.value("SHARE");
        /// Table with a row for each named state (a station, an airport, a zone): its label, longitude and latitude, and perhaps a name. The page then has a
        /// map, and the page and the tables have the names.
        places: Option<PathBuf> = None => |e| e;
        /// Name of the column of --places that has the states' labels.
        label: String = "label".to_owned() => |e| e.value("COL");
        /// Name of the column of --places with the names of the states, as readers know them. Without it, the column `name` where there is one.
        name: Option<String> = None => |e| e.value("COL").requires("places");
        /// Name of the column of --places with the longitude in degrees.
        lon: String = "lon".to_owned() => |e| e.value("COL");
        /// Name of the column of --places with the latitude in degrees.
        lat: String = "lat".to_owned() => |e| e.value("COL");
        /// Which area each place of --places covers on the map and in zones.geojson.
        outline: OutlineKind = OutlineKind::Voronoi => |e| e.requires("places");
        /// Table with names for zones: the columns zone (its number) and name, or label (a state in it) and name. Without it, a zone has the name of the state
        /// that belongs to it most.
        zone_names: Option<PathBuf> = None => |e| e.value("FILE");
        /// Number of data sets that are drawn from the fitted model (for trajectories: from blocks of frames) and fitted again. They give 90 % intervals of
        /// memberships and timescales. 50 are usual; 0 for no intervals. Needs a likelihood refit.
        bootstrap: usize = 0 => |e| e.bounds(allowed::DRAWS);
    }
}

options! {
    /// How to run a fit. None of this changes a converged answer.
    RunArgs, Some("Run"), free, {
        /// The result folder to write. It is written completely or not at all.
        out: PathBuf = PathBuf::new() => |e| e.value("DIR").required_unless("estimate");
        /// Only say how much memory and how many minutes each stage of the run would take. Nothing is fitted or written. The estimate rests on the sizes of the
        /// data and on about a second of measuring; the sizes are read from the headers of the inputs where these are matrices, and are otherwise found by
        /// counting.
        estimate: bool = false => |e| e;
        /// Replace the folder if there is one already.
        force: bool = false => |e| e;
        /// Seconds between two checkpoints, which are kept in DIR.checkpoint until the run is done.
        checkpoint_every: f64 = 60.0 => |e| e.value("SECONDS").bounds(allowed::SECONDS);
        /// Continue from the checkpoint of an interrupted run. Inputs and options must be the same as in that run; the answer is the same to the last bit.
        resume: bool = false => |e| e;
        /// Stop this many seconds after the start of the command and write the best answer so far, with the gap that is proven for it. If rank and lambda are
        /// still being chosen at that time, there is no answer yet: the command says so, and --resume continues from there.
        time_limit: Option<f64> = None => |e| e.value("SECONDS").bounds(allowed::SECONDS);
    }
}

words! {
    /// `--objective`.
    ObjectiveKind {
        /// The paper's, with a refit beside it
        Paper,
        /// Rows and columns weighted so that the noise is the same everywhere; directions that the likelihood found cost less
        Whitened,
    }
}

words! {
    /// `--outline`.
    OutlineKind {
        /// For each place the area that is nearer to it than to any other place, within the hull of all places
        Voronoi,
        /// A convex hull around the places of a zone
        Hull,
        /// No area: places are drawn as points
        Points,
    }
}

words! {
    /// `--solver`.
    SolverKind {
        /// Exact minimisation of an upper bound in each block, with Anderson acceleration
        Fast,
        /// The paper's PALM with Barzilai-Borwein steps
        PalmBb,
        /// The paper's PALM with the step sizes of its theory; very slow
        PalmLipschitz,
    }
}

words! {
    /// `--stop`.
    StopKind {
        /// When the proven gap is at most --gap
        Certificate,
        /// The paper's exact rule, to --gap
        Exact,
        /// The paper's early rule with 5000 random directions
        Early,
    }
}

words! {
    /// `--weights-by`.
    WeightsKind {
        /// Those that leave the state
        Departures,
        /// Those that enter the state
        Arrivals,
    }
}

words! {
    /// `--connected`.
    ConnectedKind {
        /// All states
        All,
        /// The largest set of states that can all reach each other
        Largest,
    }
}

words! {
    /// `--refit`.
    RefitKind {
        /// No second fit
        None,
        /// By least squares
        LeastSquares,
        /// By maximum likelihood, with a prior (--prior)
        Likelihood,
    }
}

impl From<ObjectiveKind> for fit::ObjectiveKind {
    fn from(kind: ObjectiveKind) -> Self {
        match kind {
            ObjectiveKind::Paper => fit::ObjectiveKind::Paper,
            ObjectiveKind::Whitened => fit::ObjectiveKind::Whitened,
        }
    }
}

impl From<RefitKind> for fit::RefitKind {
    fn from(kind: RefitKind) -> Self {
        match kind {
            RefitKind::None => fit::RefitKind::None,
            RefitKind::LeastSquares => fit::RefitKind::LeastSquares,
            RefitKind::Likelihood => fit::RefitKind::Likelihood,
        }
    }
}

/// `metastate fit`, and `metastate path`.
#[derive(Debug, Clone, PartialEq)]
pub struct FitCommand {
    /// The inputs.
    pub input: InputArgs,
    /// What to solve.
    pub fit: FitArgs,
    /// How to run it.
    pub run: RunArgs,
}

impl FitArgs {
    /// Never more meta-states than this.
    pub fn max_rank(&self) -> usize {
        self.max_rank.unwrap_or(if self.as_in_paper { PAPER_MAX_RANK } else { MAX_RANK })
    }

    /// The most meta-states that the answer may have.
    pub fn most_metastates(&self) -> usize {
        self.rank.unwrap_or_else(|| self.max_rank())
    }

    /// The library's settings in this mode: what is not given has their values.
    fn by_default(&self) -> Settings {
        if self.as_in_paper { Settings::paper(1, 0.0) } else { Settings::default() }
    }

    /// The local solver.
    pub fn solver(&self) -> SolverKind {
        self.solver.unwrap_or_else(|| match self.by_default().solver {
            Solver::Fast => SolverKind::Fast,
            Solver::PalmBb(_) => SolverKind::PalmBb,
            Solver::PalmLipschitz => SolverKind::PalmLipschitz,
        })
    }

    /// When to stop.
    pub fn stop(&self) -> StopKind {
        self.stop.unwrap_or_else(|| match self.by_default().stop {
            StopRule::Certificate { .. } => StopKind::Certificate,
            StopRule::Exact { .. } => StopKind::Exact,
            StopRule::Early { .. } => StopKind::Early,
        })
    }

    /// Where to start.
    pub fn init(&self) -> Init {
        self.init.clone().unwrap_or_else(|| match self.by_default().start {
            Start::Random => Init::Random,
            Start::Spectral | Start::Given(_) => Init::Spectral,
        })
    }

    /// Whether lambda is to be chosen.
    pub fn chooses(&self) -> bool {
        self.lambda.is_none() && self.lambda_ratio.is_none()
    }

    /// Whether the data is needed in parts.
    pub fn needs_parts(&self) -> bool {
        self.chooses() || self.bootstrap > 0 || (self.refit_kind() == RefitKind::Likelihood && self.prior.is_none())
    }

    /// The second fit: the one that is given, otherwise the library's for these options.
    pub fn refit_kind(&self) -> RefitKind {
        self.refit.unwrap_or_else(|| match fit::RefitKind::unless_given(self.chooses(), self.objective.into()) {
            fit::RefitKind::None => RefitKind::None,
            fit::RefitKind::LeastSquares => RefitKind::LeastSquares,
            fit::RefitKind::Likelihood => RefitKind::Likelihood,
        })
    }

    /// How states get their one meta-state: as given, otherwise as the library does it for these options.
    pub fn hard(&self) -> Clusters {
        self.clusters.unwrap_or_else(|| match fit::Clusters::unless_given(self.refit_kind().into(), self.objective.into()) {
            fit::Clusters::Rank => Clusters::Rank,
            fit::Clusters::Membership => Clusters::Membership,
            fit::Clusters::Count(k) => Clusters::Count(k),
        })
    }

    /// What was not given, written out: as it stands in the result.
    pub fn resolved(&self) -> Self {
        FitArgs {
            max_rank: Some(self.max_rank()),
            solver: Some(self.solver()),
            stop: Some(self.stop()),
            init: Some(self.init()),
            refit: Some(self.refit_kind()),
            clusters: Some(self.hard()),
            ..self.clone()
        }
    }

    /// This lambda ratio, everything else by default.
    pub fn with_ratio(ratio: f64) -> Self {
        FitArgs { lambda_ratio: Some(ratio), ..FitArgs::default() }
    }

    fn consistent(&self) -> Result<(), OptionError> {
        let sentence = |option: &str, text: String| Err(OptionError::new(option, OptionProblem::Sentence(text)));
        if self.as_in_paper {
            self.as_the_paper_has_it()?;
        }
        if self.objective == ObjectiveKind::Whitened {
            self.as_whitened()?;
        }
        if self.bootstrap > 0 && self.refit_kind() != RefitKind::Likelihood {
            return sentence("bootstrap", "--bootstrap needs --refit likelihood: it says how sure that refit is".to_owned());
        }
        if self.bipartite {
            self.two_sided()?;
        }
        if let (Some(rank), Some(most)) = (self.rank, self.max_rank)
            && rank > most
        {
            return sentence("rank", format!("--rank {rank} is above --max-rank {most}"))
                .map_err(|e| e.remedy("leave out --max-rank: --rank says how many there are"));
        }
        if let Some(rank) = self.start_rank.filter(|r| *r > self.max_rank()) {
            return sentence("start-rank", format!("--start-rank {rank} is above --max-rank {}", self.max_rank()))
                .map_err(|e| e.remedy("raise --max-rank or lower --start-rank"));
        }
        Ok(())
    }

    /// Refuses what belongs to the paper's objective.
    fn as_whitened(&self) -> Result<(), OptionError> {
        let contradictions = [
            (self.lambda.is_some(), "lambda", "the whitened problem's lambda follows from the noise of the data"),
            (self.lambda_ratio.is_some(), "lambda-ratio", "the whitened problem's lambda follows from the noise of the data"),
            (self.as_in_paper, "as-in-paper", "the paper solves its own objective"),
            (self.solver() != SolverKind::Fast, "solver", "the whitened problem is solved by the fast solver"),
            (self.stop() != StopKind::Certificate, "stop", "the whitened problem is solved to a proven gap"),
            (self.init() != Init::Spectral, "init", "the whitened problem is solved from the directions that the likelihood found"),
            (self.start_rank.is_some(), "start-rank", "the whitened problem is solved at the rank that was chosen or given"),
        ];
        match contradictions.iter().find(|(contradicts, ..)| *contradicts) {
            Some((_, option, why)) => Err(OptionError::new(option, OptionProblem::Contradicts("objective whitened", why))
                .remedy(format!("leave out --{option}, or take --objective paper"))),
            None => Ok(()),
        }
    }

    /// Refuses what needs destinations that are origins, too.
    fn two_sided(&self) -> Result<(), OptionError> {
        let contradictions = [
            (self.weights_by == WeightsKind::Arrivals, "weights-by", "origins are only left, so there are no arrivals to weigh them by"),
            (self.connected == ConnectedKind::Largest, "connected", "an origin is never reached, so no states can all reach each other"),
            (self.reversible, "reversible", "a chain from one set to another cannot be reversible"),
            (self.truth.is_some(), "truth", "the truth is compared with chains whose rows and columns are the same states"),
        ];
        match contradictions.iter().find(|(contradicts, ..)| *contradicts) {
            Some((_, option, why)) => Err(OptionError::new(option, OptionProblem::Contradicts("bipartite", why))
                .remedy(format!("leave out --{option}, or --bipartite"))),
            None => Ok(()),
        }
    }

    /// Refuses what contradicts `--as-in-paper`, rather than solving in a way that is neither the paper's nor ours.
    fn as_the_paper_has_it(&self) -> Result<(), OptionError> {
        let contradictions = [
            (self.solver() != SolverKind::PalmBb, "solver", "the paper's local solver is PALM with Barzilai-Borwein steps (palm-bb)"),
            (self.init() != Init::Random, "init", "the paper starts at random"),
            (self.redundancy_relative.is_some(), "redundancy-relative", "the paper's threshold is absolute (--redundancy-absolute)"),
            (self.tolerance != TOLERANCE, "tolerance", "the paper's local solves end when F hardly falls, not at a KKT residual"),
        ];
        match contradictions.iter().find(|(contradicts, ..)| *contradicts) {
            Some((_, option, why)) => Err(OptionError::new(option, OptionProblem::Contradicts("as-in-paper", why))
                .remedy(format!("leave out --{option}, or leave out --as-in-paper and give --solver, --stop and the others one by one"))),
            None => Ok(()),
        }
    }
}
