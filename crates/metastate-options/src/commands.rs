//! The commands: what each does, examples, and which groups of options it has.

use std::sync::LazyLock;

use crate::entry::{Entry, Options};
use crate::groups::*;

/// What the program does.
pub const ABOUT: &str = "Finds the few hidden meta-states behind a Markov chain with many states, and says how good the answer is";

/// Examples at the end of the program's help.
pub const EXAMPLES: &str = "Examples:
  metastate demo
  metastate fit trips.parquet --from pickup_zone --to dropoff_zone --lambda-ratio 0.5 --out out/zones
  metastate fit walk.npy --as trajectories --lag 50 --lambda-ratio 0.1 --out out/protein
  metastate verify out/zones
  metastate forecast out/zones --from 'Penn Station' --steps 3
  metastate explain E-INGEST-COLUMN

Exit codes: 0 done, 2 bad arguments or bad input (nothing written), 1 anything else, 130 interrupted (checkpoint kept).";

/// A group of options under its heading.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its heading in the help.
    pub heading: Option<&'static str>,
    /// Its options.
    pub entries: &'static [Entry],
}

/// A command.
#[derive(Debug, Clone)]
pub struct Command {
    /// As it is typed.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Examples, and what else is worth knowing.
    pub examples: &'static str,
    /// Its options, without those of all commands.
    pub groups: Vec<Group>,
    /// Commands of its own.
    pub commands: Vec<Command>,
}

impl Command {
    fn new(name: &'static str, about: &'static str, examples: &'static str) -> Self {
        Command { name, about, examples, groups: Vec::new(), commands: Vec::new() }
    }

    fn with<T: Options>(mut self) -> Self {
        self.groups.push(Group { heading: T::HEADING, entries: T::entries() });
        self
    }

    /// All options, those of all commands last.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> + use<> {
        let own: Vec<&'static [Entry]> = self.groups.iter().map(|g| g.entries).collect();
        own.into_iter().flatten().chain(common())
    }

    /// An option by its name.
    pub fn entry(&self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|e| e.name == name)
    }
}

/// The options of all commands.
pub fn common() -> &'static [Entry] {
    Common::entries()
}

/// All commands.
pub fn commands() -> &'static [Command] {
    static ALL: LazyLock<Vec<Command>> = LazyLock::new(all);
    &ALL
}

/// A command by its name: `fit`, or `simulate planted`.
pub fn find(name: &str) -> Option<&'static Command> {
    let mut words = name.split_whitespace();
    let first = words.next()?;
    let mut found = commands().iter().find(|c| c.name == first)?;
    for word in words {
        found = found.commands.iter().find(|c| c.name == word)?;
    }
    Some(found)
}

fn all() -> Vec<Command> {
    let simulate = vec![
        Command::new(
            "planted",
            "One of the paper's chains P = U V^T: a folder with U.npy, V.npy, xi.npy and P.npy or counts.csv",
            "Example:\n  metastate simulate planted --states 1000 --rank 10 --out planted",
        )
        .with::<PlantedArgs>(),
        Command::new(
            "trajectory",
            "One trajectory of such a chain: .npy (64-bit integers) or .txt (one line)",
            "Example:\n  metastate simulate trajectory --states 200 --rank 5 --steps 1000000 --out walk.npy",
        )
        .with::<TrajectoryArgs>(),
        Command::new(
            "city",
            "A toy city: trips with coordinates as .csv or .parquet, the zones of its cells beside them",
            "Example:\n  metastate simulate city --trips 200000 --out trips.parquet",
        )
        .with::<CityArgs>(),
        Command::new(
            "controlled",
            "A controlled chain P_a = U_a V^T and a log of it: a folder with log.csv, U.npy, V.npy and rewards.npy",
            "Example:\n  metastate simulate controlled --states 200 --actions 3 --rank 4 --episodes 400 --out warehouse",
        )
        .with::<ControlledArgs>(),
        Command::new(
            "groups",
            "A large sparse chain with planted groups of states: its counts as .npz, the group of each state beside them",
            "Example:\n  metastate simulate groups --states 1000000 --groups 20 --transitions 100 --out groups.npz",
        )
        .with::<GroupsArgs>(),
    ];
    vec![
        Command::new("fit", "Find the meta-states, write a result folder", FIT).with::<InputArgs>().with::<FitArgs>().with::<RunArgs>(),
        Command::new(
            "path",
            "Solve a whole path of lambdas, choose lambda and rank by held-out score, write a result folder with path.csv",
            PATH,
        )
        .with::<InputArgs>()
        .with::<FitArgs>()
        .with::<RunArgs>(),
        Command::new("count", "Only count, write a counts file that can be merged with others", COUNT)
            .with::<InputArgs>()
            .with::<CountArgs>(),
        Command::new("verify", "Check a saved result again with code of its own, independent of the solver", VERIFY).with::<VerifyArgs>(),
        Command::new("report", "Write the page of a result again, with other names or places where they are given", REPORT)
            .with::<ReportArgs>(),
        Command::new("diff", "Compare two results: which zones correspond, which states moved, which flows changed", DIFF)
            .with::<DiffArgs>(),
        Command::new("forecast", "n-step forecasts, stationary law, timescales and passage times from the latent chain", FORECAST)
            .with::<ForecastArgs>(),
        Command::new("plan", "Find what to do in each state from the log of a controlled chain, and check it on held-out records", PLAN)
            .with::<PlanArgs>(),
        Command::new("compare", "Compare this method with others on the same held-out data", COMPARE)
            .with::<InputArgs>()
            .with::<CompareArgs>(),
        Command::new("assign", "Memberships for states that were not in the fit, from their own transitions", ASSIGN)
            .with::<AssignArgs>()
            .with::<InputArgs>(),
        Command {
            commands: simulate,
            ..Command::new(
                "simulate",
                "Chains with a known answer: planted ones, trajectories, a toy city with trips, a million states in groups, controlled ones",
                SIMULATE,
            )
        },
        Command::new("reproduce", "Compute the paper's tables and figures, each value next to the printed one", REPRODUCE)
            .with::<ReproduceArgs>(),
        Command::new("demo", "A first look in two minutes: simulates a city, finds its zones, writes a result folder", DEMO)
            .with::<DemoArgs>(),
        Command::new("explain", "What an error code means and what to do", EXPLAIN).with::<ExplainArgs>(),
        Command::new("completions", "Completions for a shell, on standard output", COMPLETIONS).with::<CompletionsArgs>(),
        Command::new("man", "The manual pages of all commands, for man, into a folder", MAN).with::<ManArgs>(),
    ]
}

const FIT: &str = "Examples:
  metastate fit trips.csv --from start --to end --refit likelihood --out out/trips
  metastate fit 'taxi-*.parquet' --from-lon plon --from-lat plat --to-lon dlon --to-lat dlat --cell 0.001 --min-share 1e-4 \\
      --where \"service = 'yellow'\" --lambda 3e-8 --out out/taxi
  metastate fit counts.mtx --lambda-ratio 0.3 --stop exact --out out/exact --checkpoint-every 60
  metastate fit counts.mtx --lambda-ratio 0.3 --stop exact --out out/exact --resume";

const PATH: &str = "Examples:
  metastate path counts.csv --out out/path
  metastate path walk.npy --as trajectories --lag 50 --points 30 --floor 0.001 --max-rank 20 --refit likelihood --out out/protein

The folder is that of `fit` at the lambda chosen, with path.csv beside it. An interrupted path goes on with --resume.";

const COUNT: &str = "Examples:
  metastate count january.parquet --from start --to end --out january-counts.parquet
  metastate fit 'january-counts.parquet' 'february-counts.parquet' --lambda-ratio 0.5 --out out/both
  metastate count warehouse.trips --from start --to end --print-sql --dialect spark";

const VERIFY: &str = "Example:
  metastate verify out/zones

Exit code 0 only if every number agrees.";

const REPORT: &str = "Examples:
  metastate report out/zones
  metastate report out/stations --places stations.csv --label station_id --lon lng --lat lat
  metastate report out/stations --zone-names names.csv --outline hull

Then open out/zones/report.html; it needs no network.";

const DIFF: &str = "Examples:
  metastate diff out/january out/february
  metastate diff out/january out/february --out out/changed

States that both results have are compared; the others are counted.";

const FORECAST: &str = "Examples:
  metastate forecast out/protein
  metastate forecast out/zones --from 'Penn Station' --steps 1,2,10 --out out/zones-forecast
  metastate forecast out/zones --to Airport --json
  metastate forecast out/protein --check --lags 1,2,5,10
  metastate forecast out/protein --check other-run.npy --lags 1,4

Times are in frames: steps of the chain times the lag of the fit. Numbers that are infinite or not defined are null in JSON.";

const PLAN: &str = "Examples:
  metastate fit log.csv --from state --action action --to next --reward reward --id episode --time step --out out/robot
  metastate plan out/robot --discount 0.95
  metastate plan out/robot --discount 0.99 --reward costs.csv --no-check

Writes policy.csv (state, action, value), q.parquet and plan.json into the folder of the result, and writes its page again. A later plan replaces this one.";

const COMPARE: &str = "Examples:
  metastate compare trips.csv --from start --to end --rank 8 --out out/compare
  metastate compare walk.parquet --as trajectories --state micro --lag 50 --rank 12 --reference macro --out out/protein
  metastate compare zones.csv --from pickup --to dropoff --weight trips --rank 6 --places centroids.csv --label zone_id --out out/od
  metastate compare zones.csv --from pickup --to dropoff --weight trips --with out/eight --with out/last-year --groups borough --groups-from boroughs.csv --out out/both

For each measure the table says whether this package is the best, or which other method is.";

const ASSIGN: &str = "Examples:
  metastate assign out/zones february.parquet --out february-states.csv
  metastate assign out/zones new.csv --from start --to end --by likelihood --out new-states.csv

Options about reading the inputs that are not given are taken from the fit, and the command says which. Options that contradict the fit (another cell, lag, weight or
column) are refused. Transitions to states that were not in the fit are left out and counted.";

const SIMULATE: &str = "Examples:
  metastate simulate planted --states 1000 --rank 10 --out planted
  metastate simulate trajectory --states 200 --rank 5 --steps 1000000 --out walk.npy
  metastate simulate city --trips 200000 --out trips.parquet
  metastate simulate controlled --episodes 400 --out warehouse
  metastate simulate groups --states 1000000 --out groups.npz";

const REPRODUCE: &str = "Examples:
  metastate reproduce all --quick --data trips.parquet --out out/quick
  metastate reproduce table-exact --out out/exact
  metastate reproduce all --data data --out out/paper
  metastate reproduce all --data data --out out/paper --resume

Writes reproduction.md, reproduction/*.svg and cells/*.json (finished pieces of work) into the folder. The whole run takes an hour or so
on two cores; it says before it starts how long. The work is done by the program metastate-reproduce, which must be beside this one or on the PATH
(cargo build --release -p metastate-lab makes it).";

const DEMO: &str = "Example:
  metastate demo
  metastate demo --out out/city --seed 7";

const EXPLAIN: &str = "Examples:
  metastate explain E-INGEST-COLUMN
  metastate explain          (lists all codes)";

const COMPLETIONS: &str = "Example:
  metastate completions bash > ~/.local/share/bash-completion/completions/metastate";

const MAN: &str = "Example:
  metastate man ~/.local/share/man/metastate/man1 && man -M ~/.local/share/man/metastate metastate-fit";
