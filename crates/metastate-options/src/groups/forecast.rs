//! Options of `forecast`.

use std::path::PathBuf;

use crate::entry::{Many, allowed, free};

options! {
    /// What is forecast.
    ForecastArgs, None, free, {
        /// The result folder of a fit.
        result: PathBuf = PathBuf::new() => |e| e.value("RESULT").positional().required();
        /// Name of the state in which the forecast starts. Given several times, it starts in all of them with equal shares. Without it, the start is
        /// distributed over the states as in the data.
        from: Vec<String> = Vec::new() => |e| e.value("LABEL").hyphens();
        /// CSV file with the columns label,weight: the forecast starts in these states with these shares.
        from_law: Option<PathBuf> = None => |e| e.conflicts("from");
        /// For a result that was fitted with --slice: show the flows between the meta-states in this slice, such as the hour 8, and forecast the next step in
        /// it.
        slice: Option<String> = None => |e| e.value("LABEL");
        /// Numbers of steps ahead to forecast, separated by commas.
        steps: Vec<u64> = vec![1] => |e| e.value("N,...").many(Many::Commas);
        /// Number of most likely states to show for each forecast.
        top: usize = 5 => |e| e;
        /// Name of a state: also say how many steps it takes on average to reach it from every other state. Given several times: to reach any of them.
        to: Vec<String> = Vec::new() => |e| e.value("LABEL").hyphens();
        /// Compare the forecasts with transitions counted at several lags (the Chapman-Kolmogorov check), and show the timescales at each lag. The counts come
        /// from the files named here or, if none is named, from the inputs of the result. Write this option after RESULT.
        check: Option<Vec<String>> = None => |e| e.value("INPUT").many(Many::FollowingOrNone);
        /// The lags to count at for --check, as multiples of the fit's own lag, separated by commas.
        lags: Vec<u64> = vec![1, 2, 5, 10] => |e| e.value("N,...").many(Many::Commas).requires("check").bounds(allowed::LAGS);
        /// Number of frames that one step stands for, where the result was fitted to counts made by another program. Without it, the lag of the fit.
        lag: Option<usize> = None => |e| e.bounds(allowed::FRAMES);
        /// Combine counts and model in the first step: a state with many transitions follows its own counts, a state with few follows the model. How strongly
        /// is chosen on held-out transitions. The inputs are read again; further steps follow the chain of the meta-states.
        blend: bool = false => |e| e.conflicts("model");
        /// Which of the result's two models to use. Without it, the refitted one where there is one.
        model: Option<ModelKind> = None => |e| e;
        /// Also write the tables to this folder.
        out: Option<PathBuf> = None => |e| e.value("DIR");
        /// Replace the folder if there is one already.
        force: bool = false => |e| e;
    }
}

words! {
    /// `--model`.
    ModelKind {
        /// The solution of the stated problem, factors.npz
        Factors,
        /// The refitted factors, refit.npz
        Refit,
    }
}
