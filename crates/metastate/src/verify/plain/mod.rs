//! The rest of a result, computed a second time: held-out scores, refits, zones and the latent chain. Plain loops over plain data, and nothing of
//! what the solver or the aggregation compute with.

mod clusters;
mod held_out;
mod kinetics;
mod latent;
mod likelihood;
mod slices;
mod squares;

pub use clusters::{best_inertia, distinct_rows, inertia, numbered_best, zone_flows};
pub use held_out::{Fold, FoldScore, empirical_scores, factor_scores, independent_scores, mean_and_error};
pub use kinetics::{moments as kinetic_moments, neighbour_residual, projection_residual};
pub use latent::{latent_matrix, limit_law};
pub use likelihood::{
    Climbed, Prior, anchored, climb, climb_with, fidelity, log_likelihood, marginal, merged, most_penalised, penalised, shares, split,
};
pub use slices::{change, slice_flows};
pub use squares::descend;
