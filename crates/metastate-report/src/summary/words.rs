//! Words of `summary.json` that mean one thing each.

use std::fmt;

use metastate::proof::Method;
use metastate::solve::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the solver stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusWord {
    /// The gap asked for was reached, and that is proven.
    Certified,
    /// No way to improve the answer was found; a proof is missing.
    Stationary,
    /// The early rule was met: random directions showed no improvement.
    Early,
    /// No more meta-states were allowed.
    RankCap,
    /// No more sweeps were allowed.
    IterationLimit,
    /// Time was up.
    TimeLimit,
    /// Somebody stopped the run.
    Interrupted,
}

impl StatusWord {
    /// All of them.
    pub const ALL: [StatusWord; 7] = [
        StatusWord::Certified,
        StatusWord::Stationary,
        StatusWord::Early,
        StatusWord::RankCap,
        StatusWord::IterationLimit,
        StatusWord::TimeLimit,
        StatusWord::Interrupted,
    ];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            StatusWord::Certified => "certified",
            StatusWord::Stationary => "stationary",
            StatusWord::Early => "early",
            StatusWord::RankCap => "rank-cap",
            StatusWord::IterationLimit => "iteration-limit",
            StatusWord::TimeLimit => "time-limit",
            StatusWord::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Status> for StatusWord {
    fn from(status: Status) -> Self {
        match status {
            Status::Certified => StatusWord::Certified,
            Status::Stationary => StatusWord::Stationary,
            Status::Early => StatusWord::Early,
            Status::RankCap => StatusWord::RankCap,
            Status::IterationLimit => StatusWord::IterationLimit,
            Status::TimeLimit => StatusWord::TimeLimit,
            Status::Interrupted => StatusWord::Interrupted,
        }
    }
}

/// How the lower bound was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoundProof {
    /// All singular values of the dual point are known, because the matrix has low rank.
    LowRank,
    /// By a Cholesky factorisation.
    Cholesky,
    /// By Chebyshev polynomials of the dual point, applied to random vectors, with a stated probability of failure.
    Chebyshev,
    /// By Lanczos iterations from random starts, with a stated probability of failure: results of earlier versions.
    Lanczos,
    /// Zero is a lower bound of every objective.
    Trivial,
    /// There is no proof and no bound.
    #[serde(rename = "not proven")]
    NotProven,
}

impl BoundProof {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            BoundProof::LowRank => "low-rank",
            BoundProof::Cholesky => "cholesky",
            BoundProof::Chebyshev => "chebyshev",
            BoundProof::Lanczos => "lanczos",
            BoundProof::Trivial => "trivial",
            BoundProof::NotProven => "not proven",
        }
    }
}

impl fmt::Display for BoundProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Option<Method>> for BoundProof {
    fn from(method: Option<Method>) -> Self {
        match method {
            Some(Method::LowRank) => BoundProof::LowRank,
            Some(Method::Cholesky) => BoundProof::Cholesky,
            Some(Method::Chebyshev { .. }) => BoundProof::Chebyshev,
            Some(Method::Trivial) => BoundProof::Trivial,
            // A method that this crate has no word for is not called proven.
            None | Some(_) => BoundProof::NotProven,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_as_they_are_called() {
        for word in StatusWord::ALL {
            assert_eq!(serde_json::to_string(&word).unwrap(), format!("\"{word}\""));
        }
        for proof in [
            BoundProof::LowRank,
            BoundProof::Cholesky,
            BoundProof::Chebyshev,
            BoundProof::Lanczos,
            BoundProof::Trivial,
            BoundProof::NotProven,
        ] {
            assert_eq!(serde_json::to_string(&proof).unwrap(), format!("\"{proof}\""));
        }
    }

    #[test]
    fn the_solver_and_the_folder_use_the_same_words() {
        use Status::*;
        for status in [Certified, Stationary, Early, RankCap, IterationLimit, TimeLimit, Interrupted] {
            assert_eq!(StatusWord::from(status).as_str(), status.as_str());
        }
        for method in [Method::Trivial, Method::LowRank, Method::Cholesky, Method::Chebyshev { failure_probability: 1e-9 }] {
            assert_eq!(BoundProof::from(Some(method)).as_str(), method.as_str());
        }
        assert_eq!(BoundProof::from(None).as_str(), "not proven");
    }
}
