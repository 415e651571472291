//! What the other crates of this workspace, the tests and the experiments use beyond the documented library: internal modules, each under its own name.
//!
//! Nothing here is part of the library's contract. It may change with any version.

macro_rules! rooms {
    ($($room:ident = $($path:ident)::+),* $(,)?) => {
        $(#[allow(missing_docs)] pub mod $room { pub use crate::$($path)::+::*; })*
    };
}

rooms! {
    assignment = linalg::assignment,
    bootstrap = solve::bootstrap,
    errors = solve::errors,
    folds = counts::folds,
    grow = solve::grow,
    kkt = solve::kkt,
    local = solve::local,
    path = solve::path,
    plain = verify::plain,
    polygons = aggregate::polygons,
    problem = solve::problem,
    refit = solve::refit,
    relaxation = solve::relaxation,
    score = solve::score,
    select = solve::select,
    shrink = solve::shrink,
    simplex = linalg::simplex,
    singular = linalg::singular,
    small = linalg::small,
    start = solve::start,
    territory = aggregate::territory,
    thin = linalg::thin,
}

pub use crate::chain::{LEAST_PRIOR, StationaryOptions, Whitened, stationary_law};
pub use crate::linalg::{Row, largest_entry};
