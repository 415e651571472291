//! How lambda and the rank were chosen: `ranks.csv`, `path.csv` and the record must tell one story, the stated rule must pick what was picked, and
//! the baselines are scored again.

use metastate::workspace::plain::{Fold, FoldScore, empirical_scores, independent_scores, mean_and_error};
use metastate::workspace::score::Smoothing;
use metastate_report::{ChoiceRecord, ScoreRecord, StatusWord, number};

use super::checks::{Checks, Named, header};
use super::command::TypedCommand;
use super::deep;
use super::status::ProvenAgain;
use super::subject::Subject;
use crate::error::Result as CliResult;

/// Means over folds are summed in one order or another.
const ROUNDING: f64 = 1e-10;
/// A baseline scored here may differ by so much of itself.
const SCORE: f64 = 1e-9;

/// The sentence says that a choice is clear where the rank below is worse by so many standard errors.
const TOLD_CLEAR: f64 = 3.0;
/// Numbers of the path that follow from each other may differ by so much of themselves.
const FOLLOWS: f64 = 1e-9;
/// lambda of a point follows from its place.
const PLACE: f64 = 1e-12;
/// A score of nothing is nothing but for this.
const NO_SCORE: f64 = 1e-12;

const RANKS: [&str; 8] =
    ["model", "held_out", "standard_error", "squared_error", "behind_best", "behind_standard_error", "chosen", "first_look"];
const PATH: [&str; 19] = [
    "lambda",
    "lambda_ratio",
    "rank",
    "objective",
    "fidelity",
    "regularizer",
    "certified_gap",
    "rel_le1",
    "rel_le2",
    "ge",
    "rel_dg",
    "status",
    "sweeps",
    "held_out",
    "standard_error",
    "squared_error",
    "refit_held_out",
    "refit_standard_error",
    "chosen",
];

/// The sentence about prediction must say what the three scores say.
fn wrong_verdict(record: &ChoiceRecord) -> Option<String> {
    let (ours, error) = (record.held_out.log_likelihood, record.held_out.standard_error);
    let others =
        [("the smoothed counts", record.empirical.held_out.log_likelihood), ("one law for all states", record.independent.log_likelihood)];
    let wrong = others.iter().find(|(name, score)| {
        let word = if ours > score + error {
            "better than"
        } else if ours < score - error {
            "worse than"
        } else {
            "as well as"
        };
        !record.verdict.contains(&format!("{word} {name} ({score:.4})"))
    });
    let score = format!("({ours:.4} nats each, standard error {error:.1e})");
    match wrong {
        Some((name, _)) => Some(format!("another sentence about {name}")),
        None => (!record.verdict.contains(&score)).then(|| "another score".to_owned()),
    }
}

/// All about the choice.
pub fn check(checks: &mut Checks, subject: &Subject, typed: Option<&TypedCommand>, proven: &ProvenAgain, deep: bool) -> CliResult<()> {
    let record = &subject.result.summary.choice;
    // Of a transition matrix nothing is held out: its rank was given.
    let of_matrix = subject.data.parts().is_none() && subject.fit.rank.is_some();
    if !subject.fit.chooses() || of_matrix {
        if record.is_some() {
            checks.table("choice", Some("nothing was to be chosen".to_owned()));
        }
        return Ok(());
    }
    let Some(record) = record else {
        checks.table("choice", Some("no record in summary.json".to_owned()));
        return Ok(());
    };
    checks.table("choice.verdict", wrong_verdict(record));
    let Some(parts) = subject.data.parts() else {
        checks.table("choice", Some("there are no counts to choose on".to_owned()));
        return Ok(());
    };
    let (ranks, path) = match (Named::read(subject.folder, "ranks.csv"), Named::read(subject.folder, "path.csv")) {
        (Ok(ranks), Ok(path)) => (ranks, path),
        (ranks, path) => {
            checks.table("choice", ranks.err().or(path.err()));
            return Ok(());
        }
    };
    let folds = parts.folds(subject.fit.folds, subject.result.summary.seed)?;
    let transitions: f64 = folds.whole().values().iter().sum();
    checks.table("ranks.csv", wrong_ranks(subject, record, &ranks, transitions).err());
    checks.table("choice", wrong_record(subject, record, &ranks, &path, &parts.how()).err());
    let whole_path = typed.map_or_else(|| path.field(0, "held_out").is_some_and(|f| !f.is_empty()), |t| t.whole_path);
    checks.table("path.csv", wrong_path(subject, record, &ranks, &path, whole_path, proven).err());
    checks.not_checked("path.csv: errors, status and sweeps of each point", "as in the file", "the path is not solved again");
    if whole_path {
        checks.not_checked("path.csv: held-out scores", "as in the file", "the path is not solved again on the folds");
    }
    let parts: Vec<_> = (0..folds.len()).map(|f| (folds.training(f), folds.held_out(f))).collect();
    let each: Vec<Fold> = parts.iter().map(|(training, held_out)| Fold { training, held_out }).collect();
    baselines(checks, record, &ranks, &each);
    let name = "held-out scores of the ranks and priors";
    match deep {
        true => deep::check(checks, subject, record, &ranks, &each),
        false => checks.not_checked(name, "as in the file", "only with --deep, the chosen rank and its neighbours"),
    }
    Ok(())
}

fn demand(it_is: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if it_is { Ok(()) } else { Err(what()) }
}

/// Means of log-likelihoods differ by less than this for no reason.
const EDGE: f64 = 1e-12;

/// Equal but for the rounding of means.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * b.abs().max(1.0)
}

/// Ranks, ascending (or the one that was given), then the two baselines; what each is behind the best; the smallest of those fitted with care that is within one standard error is the
/// one chosen, and its neighbours are there.
fn wrong_ranks(subject: &Subject, record: &ChoiceRecord, table: &Named, transitions: f64) -> Result<(), String> {
    if let Some(wrong) = table.wrong_shape(&header(&RANKS, 0, &[]), None) {
        return Err(wrong);
    }
    let tried = table.rows.len().saturating_sub(2);
    let name = |r: usize| table.field(r, "model").unwrap_or_default();
    for (r, expected) in [(tried, "empirical"), (tried + 1, "independent")] {
        demand(name(r) == expected, || format!("row {}, model: should be {expected}", r + 1))?;
    }
    let ranks: Vec<usize> = (0..tried).map(|r| name(r).parse().unwrap_or(0)).collect();
    let ascending = ranks.first().is_some_and(|first| *first >= 1) && ranks.windows(2).all(|w| w[0] < w[1]);
    demand(ascending, || "model: ranks, ascending, were expected".to_owned())?;
    let careful: Vec<usize> = (0..tried).filter(|&r| table.field(r, "first_look") == Some("")).collect();
    let score = |r: usize| table.number(r, "held_out");
    let best = careful.iter().copied().reduce(|a, b| if score(b) > score(a) { b } else { a });
    let best = best.ok_or_else(|| "no rank was fitted with care".to_owned())?;
    for r in 0..table.rows.len() {
        let (behind, error) = (table.number(r, "behind_best"), table.number(r, "behind_standard_error"));
        demand(close(behind, score(best) - score(r)), || {
            format!("row {}, behind_best: should be {}", r + 1, number(score(best) - score(r)))
        })?;
        demand(error >= 0.0 && (r != best || (error == 0.0 && behind == 0.0)), || format!("row {}, behind_standard_error", r + 1))?;
        let first_look = r < tried && !careful.contains(&r);
        let own = table.field(r, "standard_error").unwrap_or_default();
        demand(own.is_empty() == first_look, || format!("row {}, standard_error", r + 1))?;
    }
    // On the very edge of one standard error either answer is right: the rank chosen may be within it, and no smaller one clearly is.
    let within =
        |r: usize, slack: f64| table.number(r, "behind_best") <= table.number(r, "behind_standard_error").max(1.0 / transitions) + slack;
    let rank = record.rank;
    let may_be = careful.iter().any(|&r| ranks[r] == rank && within(r, EDGE));
    let smaller = careful.iter().any(|&r| ranks[r] < rank && within(r, -EDGE));
    demand(may_be && !smaller, || {
        let picked = careful.iter().find(|&&r| within(r, 0.0)).map_or(0, |r| ranks[*r]);
        format!("the rule picks {picked} meta-states")
    })?;
    demand(record.best_rank == ranks[best], || format!("best_rank: the table has {}", ranks[best]))?;
    for r in 0..table.rows.len() {
        let said = table.field(r, "chosen");
        demand(said == Some(if r < tried && ranks[r] == rank { "yes" } else { "" }), || format!("row {}, chosen", r + 1))?;
    }
    if let Some(given) = subject.fit.rank {
        demand(ranks == [given], || format!("only {given} meta-states were to be tried"))?;
        return demand(!record.at_the_limit, || "at_the_limit: the rank was given".to_owned());
    }
    let most = subject.fit.max_rank().min(subject.labels.len());
    demand(ranks.iter().all(|r| *r <= most), || format!("more than {most} meta-states, which is the most allowed"))?;
    for beside in [rank.saturating_sub(1), rank.saturating_add(1)].into_iter().filter(|r| (1..=most).contains(r)) {
        demand(ranks.contains(&beside), || format!("rank {beside} was not tried, and the choice rests on it"))?;
    }
    let at_the_limit = ranks[best] == most;
    demand(record.at_the_limit == at_the_limit, || format!("at_the_limit: should be {at_the_limit}"))
}

/// The row of a model in `ranks.csv`.
fn row_of(ranks: &Named, model: &str) -> Option<usize> {
    (0..ranks.rows.len()).find(|&r| ranks.field(r, "model") == Some(model))
}

/// The record says what the tables say.
fn wrong_record(subject: &Subject, record: &ChoiceRecord, ranks: &Named, path: &Named, how: &str) -> Result<(), String> {
    let summary = &subject.result.summary;
    let rank = record.rank;
    let row = row_of(ranks, &rank.to_string()).ok_or_else(|| "rank: not in ranks.csv".to_owned())?;
    let same_scores = |told: &ScoreRecord, row: usize| {
        let columns = [(told.log_likelihood, "held_out"), (told.standard_error, "standard_error"), (told.squared_error, "squared_error")];
        columns.iter().all(|(x, column)| *x == ranks.number(row, column))
    };
    for (what, told, row) in [
        ("empirical", &record.empirical.held_out, row_of(ranks, "empirical")),
        ("independent", &record.independent, row_of(ranks, "independent")),
    ] {
        let row = row.ok_or_else(|| format!("{what}: not in ranks.csv"))?;
        demand(same_scores(told, row), || format!("{what}: ranks.csv has other scores"))?;
    }
    // The score of the rank, with the prior of the table or with the one chosen in the end; less what choosing flatters it by.
    let held_out = &record.held_out;
    demand(held_out.selection_bias >= 0.0 && close(held_out.log_likelihood, held_out.uncorrected - held_out.selection_bias), || {
        "held_out: uncorrected less selection_bias is another".to_owned()
    })?;
    demand(held_out.prior == record.prior, || "held_out: the score of another prior".to_owned())?;
    let told = ScoreRecord {
        log_likelihood: held_out.uncorrected,
        standard_error: held_out.standard_error,
        squared_error: held_out.squared_error,
    };
    let same_prior = record.priors.iter().find(|p| p.prior == record.prior).is_some_and(|p| p.held_out == told);
    demand(same_prior || same_scores(&told, row), || "held_out: ranks.csv has other scores".to_owned())?;
    demand(record.folds == subject.fit.folds, || "folds: not as many as asked for".to_owned())?;
    demand(record.folds_are == how, || "folds_are: these data are cut otherwise".to_owned())?;
    let smoothing = Smoothing::default().share;
    demand(record.smoothing == smoothing, || format!("smoothing: should be {smoothing}"))?;
    let best = record.priors.iter().reduce(|a, b| if b.held_out.log_likelihood > a.held_out.log_likelihood { b } else { a });
    demand(best.is_some_and(|b| record.prior == b.prior), || "prior: another of those tried is better".to_owned())?;

    let at = (0..path.rows.len()).find(|&r| path.field(r, "chosen") == Some("yes"));
    let lambda = at.map_or(f64::NAN, |r| path.number(r, "lambda"));
    demand(record.lambda == lambda && summary.lambda == lambda, || "lambda: path.csv chose another".to_owned())?;
    wrong_clearness(record, ranks, rank, row)?;
    wrong_sentence(summary, record, rank, lambda)
}

/// By how many standard errors the next smaller rank is behind; known from the table where the rank chosen is the best.
fn wrong_clearness(record: &ChoiceRecord, ranks: &Named, rank: usize, row: usize) -> Result<(), String> {
    let told = record.clearness_standard_errors;
    let smaller = rank.checked_sub(1).and_then(|r| row_of(ranks, &r.to_string()));
    let expected = match smaller {
        None => None,
        Some(below) if record.best_rank == rank => {
            let (behind, error) = (ranks.number(below, "behind_best"), ranks.number(below, "behind_standard_error"));
            Some(behind / error).filter(|c| c.is_finite())
        }
        // The mean of the differences is known, its error is not: only the sign can be told.
        Some(below) => {
            let ahead = ranks.number(row, "held_out") - ranks.number(below, "held_out");
            return demand(told.is_none_or(|c| c * ahead >= 0.0), || "clearness_standard_errors: the sign is wrong".to_owned());
        }
    };
    let same = match (told, expected) {
        (Some(a), Some(b)) => (a - b).abs() <= FOLLOWS * b.abs().max(1.0),
        (a, b) => a == b,
    };
    demand(same, || format!("clearness_standard_errors: should be {expected:?}"))
}

/// The numbers in the sentence are those of the record; it stands among the hints, too.
fn wrong_sentence(summary: &metastate_report::Summary, record: &ChoiceRecord, rank: usize, lambda: f64) -> Result<(), String> {
    let sentence = &record.sentence;
    let plural = if rank == 1 { "meta-state" } else { "meta-states" };
    let must_hold = [
        format!("({:.5} a transition", record.held_out.log_likelihood),
        format!("over {} folds", record.folds),
        format!("empirical P {:.5}", record.empirical.held_out.log_likelihood),
        format!("independent {:.5})", record.independent.log_likelihood),
        format!("{lambda:.4e}"),
    ];
    demand(sentence.starts_with(&format!("{rank} {plural}:")), || "sentence: another rank".to_owned())?;
    if let Some(part) = must_hold.iter().find(|part| !sentence.contains(part.as_str())) {
        return Err(format!("sentence: should hold `{part}`"));
    }
    let clear = record.clearness_standard_errors;
    let word = match clear {
        None => "there is no smaller rank",
        Some(c) if c >= TOLD_CLEAR => "; clear: ",
        Some(_) => "; not clear: ",
    };
    let as_asked_for = sentence.contains("as asked for");
    demand(sentence.contains(word) || (clear.is_none() && (rank > 1 || as_asked_for)), || format!("sentence: should hold `{word}`"))?;
    demand(summary.hints.contains(sentence), || "sentence: not among the hints".to_owned())
}

/// lambda as the options say, the parts of the objective adding up, the point chosen, and no objective or gap that the solution published here
/// contradicts.
fn wrong_path(
    subject: &Subject,
    record: &ChoiceRecord,
    ranks: &Named,
    path: &Named,
    whole: bool,
    proven: &ProvenAgain,
) -> Result<(), String> {
    if let Some(wrong) = path.wrong_shape(&header(&PATH, 0, &[]), None) {
        return Err(wrong);
    }
    let (summary, fit) = (&subject.result.summary, subject.fit);
    let lambda_max = summary.lambda_max.unwrap_or(f64::NAN);
    let wanted = record.rank;
    // Without the whole path, and but for the paper's own mode, the solution published here is its only point.
    let only = !whole && !fit.as_in_paper;
    let limit = if whole { fit.most_metastates() } else { wanted };
    let rank = |r: usize| path.number(r, "rank") as usize;
    let n = path.rows.len();
    demand(n >= 1 && n <= fit.points, || format!("{n} points, and {} were asked for", fit.points))?;
    let chosen = (0..n).find(|&r| rank(r) >= wanted).unwrap_or(n - 1);
    for r in 0..n {
        let wrong = |what: &str| format!("row {}, {what}", r + 1);
        let lambda = path.number(r, "lambda");
        let on_grid = lambda_max * fit.floor.powf(r as f64 / (fit.points - 1) as f64);
        let expected = if only { summary.lambda } else { on_grid };
        demand((lambda - expected).abs() <= PLACE * expected, || wrong(&format!("lambda: should be {}", number(expected))))?;
        let ratio = path.number(r, "lambda_ratio");
        demand(close(ratio, lambda / lambda_max), || wrong("lambda_ratio"))?;
        demand(rank(r) >= 1 && rank(r) <= fit.most_metastates(), || wrong("rank"))?;
        let ends = if only { r == 0 } else { rank(r) >= limit || r + 1 == fit.points };
        demand((r + 1 == n) == ends, || wrong("rank: the path ends elsewhere"))?;
        demand(!only || rank(r) == summary.rank, || wrong(&format!("rank: should be {}", summary.rank)))?;
        let (objective, fidelity, regularizer) = (path.number(r, "objective"), path.number(r, "fidelity"), path.number(r, "regularizer"));
        let sum = fidelity + lambda * regularizer;
        demand(fidelity >= 0.0 && regularizer > 0.0 && (objective - sum).abs() <= FOLLOWS * sum, || {
            wrong("objective: not the sum of its parts")
        })?;
        // What was published is an answer at every lambda: no bound there may lie above it.
        let (gap, here) = (path.number(r, "certified_gap"), summary.fidelity + lambda * summary.regularizer);
        demand(gap.is_nan() || objective * (1.0 - gap) <= here * (1.0 + FOLLOWS), || {
            wrong("certified_gap: the published solution is better")
        })?;
        // The best objective grows with lambda, and no faster than in proportion: the bound proven here holds there, too.
        let floor = proven.gap.map_or(0.0, |g| (1.0 - g) * summary.objective * (lambda / summary.lambda).min(1.0));
        demand(objective >= floor * (1.0 - FOLLOWS), || wrong("objective: below what is possible"))?;
        demand(StatusWord::ALL.iter().any(|word| path.field(r, "status") == Some(word.as_str())), || wrong("status: no such word"))?;
        let scores = ["held_out", "standard_error", "squared_error"];
        let given = |column: &&str| path.field(r, column).is_some_and(|f| f.parse::<f64>().is_ok());
        demand(scores.iter().all(|c| given(c) == whole), || wrong("held_out: the whole path, or none of it"))?;
        let of_rank = row_of(ranks, &rank(r).to_string());
        let refit = |column: &str| of_rank.and_then(|at| ranks.field(at, column)).unwrap_or_default();
        let same = path.field(r, "refit_held_out") == Some(refit("held_out"))
            && path.field(r, "refit_standard_error") == Some(refit("standard_error"));
        demand(same, || wrong("refit_held_out: ranks.csv has another"))?;
        demand(path.field(r, "chosen") == Some(if r == chosen { "yes" } else { "" }), || wrong("chosen"))?;
    }
    Ok(())
}

/// The empirical matrix at its best and the marginal law, on the same folds.
fn baselines(checks: &mut Checks, record: &ChoiceRecord, ranks: &Named, folds: &[Fold]) {
    let smoothing = Smoothing::default().share;
    let all = |score: &dyn Fn(Fold) -> FoldScore| -> ScoreRecord {
        let each: Vec<FoldScore> = folds.iter().map(|f| score(*f)).collect();
        let (log_likelihood, standard_error) = mean_and_error(&each.iter().map(|s| s.log_likelihood).collect::<Vec<_>>());
        let squared_error = mean_and_error(&each.iter().map(|s| s.squared_error).collect::<Vec<_>>()).0;
        ScoreRecord { log_likelihood, standard_error, squared_error }
    };
    let tried = (-2..=10).map(|k| 10f64.powf(0.5 * f64::from(k)));
    let scored_at = |pseudo: f64| (pseudo, all(&|fold| empirical_scores(fold, pseudo, smoothing)));
    let best = tried.map(scored_at).reduce(|a, b| if b.1.log_likelihood > a.1.log_likelihood { b } else { a });
    let Some((pseudo, empirical)) = best else { return };
    let told = record.empirical.pseudo_counts;
    checks.add("empirical P: pseudo-counts", number(told), number(pseudo), (told - pseudo).abs() <= SCORE * pseudo);
    for (name, model, found) in [
        ("empirical P on the folds", "empirical", empirical),
        ("independent law on the folds", "independent", all(&|fold| independent_scores(fold, smoothing))),
    ] {
        let row = row_of(ranks, model);
        let at = |column: &str| row.map_or(f64::NAN, |r| ranks.number(r, column));
        // Where there are too many states the squared error is not computed here.
        let close = |told: f64, found: f64| found.is_nan() || (told - found).abs() <= SCORE * found.abs() + NO_SCORE;
        let agrees = close(at("held_out"), found.log_likelihood)
            && close(at("standard_error"), found.standard_error)
            && close(at("squared_error"), found.squared_error);
        let told = |s: [f64; 3]| format!("{:.9} ± {:.2e}, squared {:.6}", s[0], s[1], s[2]);
        let reported = told([at("held_out"), at("standard_error"), at("squared_error")]);
        checks.add(name, reported, told([found.log_likelihood, found.standard_error, found.squared_error]), agrees);
    }
}
