//! Options of `reproduce`.

use std::path::PathBuf;

use crate::entry::{Many, allowed, free};

options! {
    /// What is reproduced.
    ReproduceArgs, None, free, {
        /// Which part of the paper's section 6 to compute.
        what: ReproduceWhat = ReproduceWhat::All => |e| e.value("WHAT").positional().required();
        /// Take small chains, so that everything is done in about a minute. The paper has no values for them to compare with.
        quick: bool = false => |e| e;
        /// The folder for the document, its figures and the finished pieces of work.
        out: PathBuf = PathBuf::new() => |e| e.value("DIR").required();
        /// Continue from the finished pieces of work in the folder.
        resume: bool = false => |e| e;
        /// Largest number of trajectories of each kind. The paper has 5.
        trajectories: u64 = 5 => |e| e.bounds(allowed::SOME);
        /// Begin no further piece of work after this many seconds. The document then says what is missing.
        time_limit: Option<f64> = None => |e| e.value("SECONDS");
        /// Taxi trips: files of the records of New York's TLC, or a folder that holds nyc_taxi_trips_*.parquet.
        data: Vec<PathBuf> = Vec::new() => |e| e.many(Many::Following);
    }
}

words! {
    /// What to reproduce.
    ReproduceWhat {
        /// Table with exact transition matrices
        TableExact,
        /// Table with growing numbers of states
        TableD,
        /// Table with growing numbers of hidden states
        TableR,
        /// Table with growing numbers of transitions
        TableN,
        /// New York's taxi trips; needs --data
        Taxi,
        /// All of them; needs --data
        All,
    }
}
