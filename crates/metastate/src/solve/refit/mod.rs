//! The refit: the rank is kept, the penalty is dropped. The penalised solution is biased towards few, short columns; at the rank
//! that it found, least squares or the likelihood come several times nearer to the truth (relRE of the paper's section 6.2).

mod at_rank;
mod kernel;
mod least_squares;
mod likelihood;
mod merge;
mod observed;
mod starts;
mod table;

pub use at_rank::SpectralFits;
pub use least_squares::{LeastSquares, least_squares};
pub use likelihood::{Likelihood, LikelihoodSettings, likelihood, likelihood_watched};
pub(crate) use merge::merge_nearest;
pub use observed::{Observed, marginal_law};
pub use starts::{BestRefit, RefitStart, StartOutcome, Starts, likelihood_best_start};
