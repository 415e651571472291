//! Options of `simulate`.

use std::path::PathBuf;

use crate::entry::{allowed, free};

options! {
    /// A planted chain.
    PlantedArgs, None, free, {
        /// Number of states.
        states: usize = 1000 => |e| e;
        /// Number of hidden states behind them.
        rank: usize = 10 => |e| e;
        /// Number of transitions to draw and count, into counts.csv. Without it, the transition matrix itself is written (P.npy).
        steps: Option<u64> = None => |e| e;
        /// The folder to write.
        out: PathBuf = PathBuf::new() => |e| e.value("DIR").required();
        /// Replace the folder if there is one already.
        force: bool = false => |e| e;
    }
}

options! {
    /// A trajectory of a planted chain.
    TrajectoryArgs, None, free, {
        /// Number of states.
        states: usize = 1000 => |e| e;
        /// Number of hidden states behind them.
        rank: usize = 10 => |e| e;
        /// Number of transitions in the trajectory.
        steps: usize = 1_000_000 => |e| e;
        /// The file to write; its name ends in .npy or .txt.
        out: PathBuf = PathBuf::new() => |e| e.required();
        /// Replace the file if there is one already.
        force: bool = false => |e| e;
    }
}

options! {
    /// Trips in a toy city.
    CityArgs, None, free, {
        /// Number of trips.
        trips: usize = 400_000 => |e| e;
        /// The file to write; its name ends in .csv or .parquet. The true zones of the cells go to FILE.zones.csv.
        out: PathBuf = PathBuf::new() => |e| e.required();
        /// Replace the files if there are some already.
        force: bool = false => |e| e;
    }
}

options! {
    /// A controlled chain and a log of it.
    ControlledArgs, None, free, {
        /// Number of states.
        states: usize = 500 => |e| e;
        /// Number of actions.
        actions: usize = 4 => |e| e;
        /// Number of hidden states behind them.
        rank: usize = 6 => |e| e;
        /// Number of independent records of each pair of state and action. Not with --episodes.
        each: usize = 20 => |e| e.conflicts("episodes");
        /// Number of episodes, in which actions are taken at random.
        episodes: Option<usize> = None => |e| e;
        /// Number of steps in an episode.
        length: usize = 50 => |e| e.requires("episodes");
        /// Standard deviation of the noise in the rewards.
        noise: f64 = 0.1 => |e| e.bounds(allowed::NOT_NEGATIVE);
        /// The folder to write: log.csv, and the truth in U.npy, V.npy and rewards.npy.
        out: PathBuf = PathBuf::new() => |e| e.value("DIR").required();
        /// Replace the folder if there is one already.
        force: bool = false => |e| e;
    }
}

options! {
    /// A large sparse chain with planted groups.
    GroupsArgs, None, free, {
        /// Number of states.
        states: usize = 100_000 => |e| e;
        /// Number of groups; where a state leads depends on its group alone.
        groups: usize = 20 => |e| e;
        /// Transitions out of a state, on average.
        transitions: usize = 100 => |e| e;
        /// The file to write; its name ends in .npz. The true group of each state goes to FILE.groups.csv.
        out: PathBuf = PathBuf::new() => |e| e.required();
        /// Replace the files if there are some already.
        force: bool = false => |e| e;
    }
}

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub enum SimulateWhat {
    /// The paper's chains.
    Planted(PlantedArgs),
    /// One trajectory of such a chain.
    Trajectory(TrajectoryArgs),
    /// A toy city.
    City(CityArgs),
    /// A controlled chain.
    Controlled(ControlledArgs),
    /// Many states in planted groups.
    Groups(GroupsArgs),
}
