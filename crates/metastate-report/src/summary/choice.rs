//! `choice` of `summary.json`: how lambda, the rank and the prior were chosen on held-out transitions.

use metastate::workspace::select::{Attempt, Choice, HeldOut};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was chosen, by which scores. Scores are means over the folds, in nats a transition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceRecord {
    /// What was chosen and why.
    pub sentence: String,
    /// The rank that was chosen: the smallest within one standard error of the best.
    pub rank: usize,
    /// The rank with the best held-out log-likelihood.
    pub best_rank: usize,
    /// A lambda whose solution has that rank: the smallest found at which no further meta-state pays, or a smaller one where that keeps too few; with the whole path, the largest of it whose solution has that rank, or the smallest where none has.
    pub lambda: f64,
    /// The strength of the prior of the likelihood refit, in transitions a state.
    pub prior: f64,
    /// By how many standard errors the next smaller rank is behind; null where there is none or the number is not finite.
    pub clearness_standard_errors: Option<f64>,
    /// Whether the best rank is the highest that was allowed.
    pub at_the_limit: bool,
    /// Number of folds.
    pub folds: usize,
    /// How the folds were made, in words.
    pub folds_are: String,
    /// The share of the marginal law that is mixed into every model before it is scored.
    pub smoothing: f64,
    /// What the chosen rank and prior scored.
    pub held_out: ChosenScore,
    /// The counted matrix at its best pseudo-count, on the same folds.
    pub empirical: EmpiricalRecord,
    /// One law for all states, on the same folds.
    pub independent: ScoreRecord,
    /// Whether the model predicts held-out transitions better than those two, in one sentence.
    #[serde(default)]
    pub verdict: String,
    /// The priors that were tried.
    pub priors: Vec<PriorRecord>,
}

/// The score of what was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenScore {
    /// Log-likelihood a transition, less `selection_bias`.
    pub log_likelihood: f64,
    /// The same before that was taken off.
    pub uncorrected: f64,
    /// By how much choosing on the same folds flatters the score.
    pub selection_bias: f64,
    /// Standard error of the mean over the folds.
    pub standard_error: f64,
    /// Weighted squared error.
    pub squared_error: f64,
    /// The prior that goes with the score.
    pub prior: f64,
}

/// The score of a model on the folds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreRecord {
    /// Log-likelihood a transition.
    pub log_likelihood: f64,
    /// Standard error of the mean over the folds.
    pub standard_error: f64,
    /// Weighted squared error.
    pub squared_error: f64,
}

/// The counted matrix as a model of itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmpiricalRecord {
    /// Transitions by the marginal law that were added to every state.
    pub pseudo_counts: f64,
    /// What it scored.
    pub held_out: ScoreRecord,
}

/// One prior that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriorRecord {
    /// Its strength, in transitions a state.
    pub prior: f64,
    /// What it scored.
    pub held_out: ScoreRecord,
}

/// What the choice itself does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceFrame {
    /// What was chosen and why, lambda included.
    pub sentence: String,
    /// lambda.
    pub lambda: f64,
    /// Number of folds that were asked for.
    pub folds: usize,
    /// How the folds were made, in words.
    pub folds_are: String,
    /// The smoothing of all scores.
    pub smoothing: f64,
}

impl From<&HeldOut> for ScoreRecord {
    fn from(h: &HeldOut) -> Self {
        ScoreRecord { log_likelihood: h.log_likelihood(), standard_error: h.standard_error(), squared_error: h.squared_error() }
    }
}

impl From<&Attempt> for PriorRecord {
    fn from(attempt: &Attempt) -> Self {
        PriorRecord { prior: attempt.prior, held_out: (&attempt.held_out).into() }
    }
}

impl From<&Choice> for ChosenScore {
    fn from(choice: &Choice) -> Self {
        let h = &choice.chosen.held_out;
        ChosenScore {
            log_likelihood: choice.log_likelihood(),
            uncorrected: h.log_likelihood(),
            selection_bias: choice.selection_bias(),
            standard_error: h.standard_error(),
            squared_error: h.squared_error(),
            prior: choice.chosen.prior,
        }
    }
}

impl ChoiceRecord {
    /// Of a choice and what lies about it.
    pub fn new(choice: &Choice, frame: ChoiceFrame) -> Self {
        let record = ChoiceRecord {
            verdict: String::new(),
            sentence: frame.sentence,
            rank: choice.rank,
            best_rank: choice.best_rank,
            lambda: frame.lambda,
            prior: choice.prior,
            clearness_standard_errors: Some(choice.clearness()).filter(|c| c.is_finite()),
            at_the_limit: choice.at_the_limit,
            folds: frame.folds,
            folds_are: frame.folds_are,
            smoothing: frame.smoothing,
            held_out: choice.into(),
            empirical: EmpiricalRecord { pseudo_counts: choice.empirical.0, held_out: (&choice.empirical.1).into() },
            independent: (&choice.independent).into(),
            priors: choice.priors.iter().map(PriorRecord::from).collect(),
        };
        ChoiceRecord { verdict: record.prediction(), ..record }
    }

    /// Whether the model predicts held-out transitions better than the counts, smoothed as serves them best, and than one law for all states.
    fn prediction(&self) -> String {
        let (ours, counts, one) = (self.held_out.log_likelihood, self.empirical.held_out.log_likelihood, self.independent.log_likelihood);
        let error = self.held_out.standard_error;
        let beside = |other: f64, name: &str| {
            let word = match ours - other {
                d if d > error => "better than",
                d if d < -error => "worse than",
                _ => "as well as",
            };
            format!("{word} {name} ({other:.4})")
        };
        let advice = if ours < counts - error { "; for prediction alone the smoothed counts are the better model" } else { "" };
        format!(
            "this model predicts held-out transitions ({ours:.4} nats each, standard error {error:.1e}) {} and {}{advice}",
            beside(counts, "the smoothed counts"),
            beside(one, "one law for all states")
        )
    }
}
