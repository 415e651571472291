//! The tables of what was chosen and of how sure it is: `path.csv`, `ranks.csv`, `uncertainty.csv`.

use metastate::Label;
use metastate::solve::Factors;
use metastate::workspace::bootstrap::Uncertainty;
use metastate::workspace::largest_entry;
use metastate::workspace::path::LambdaPoint;
use metastate::workspace::select::{Choice, HeldOut};

use crate::tables::{csv_field, number};

/// One line a point. The scores of the penalised solution are there for the whole path only; those of the refit belong to the rank.
pub fn path_csv(points: &[LambdaPoint], choice: &Choice, chosen: usize) -> String {
    let mut out = String::from(
        "lambda,lambda_ratio,rank,objective,fidelity,regularizer,certified_gap,rel_le1,rel_le2,ge,rel_dg,status,sweeps,held_out,standard_error,squared_error,refit_held_out,refit_standard_error,chosen\n",
    );
    let or_empty = |x: Option<f64>| x.map_or_else(String::new, number);
    for (k, p) in points.iter().enumerate() {
        let mut fields: Vec<String> = vec![number(p.lambda), number(p.lambda_ratio), p.rank.to_string()];
        fields.extend([p.objective.value, p.objective.fidelity, p.objective.regularizer].map(number));
        fields.push(or_empty(p.certified_gap));
        fields.extend([p.errors.rel_le1, p.errors.rel_le2, p.errors.ge, p.errors.rel_dg].map(number));
        fields.extend([p.status.as_str().to_owned(), p.sweeps.to_string()]);
        let score = p.held_out;
        fields.extend([score.map(|s| s.log_likelihood), score.map(|s| s.standard_error), score.map(|s| s.squared_error)].map(or_empty));
        let refit = choice.mean_score(p.rank);
        fields.extend([refit.map(|s| s.0), refit.and_then(|s| s.1)].map(or_empty));
        fields.push(if k == chosen { "yes".into() } else { String::new() });
        out += &(fields.join(",") + "\n");
    }
    out
}

/// One line a rank, and the two baselines. A first look saw some folds only: its mean is made comparable, and it has no error of its own.
pub fn ranks_csv(choice: &Choice) -> String {
    let mut out = String::from("model,held_out,standard_error,squared_error,behind_best,behind_standard_error,chosen,first_look\n");
    let Some(best) = choice.at(choice.best_rank) else { return out };
    let yes = |it_is: bool| if it_is { "yes" } else { "" };
    let mut line = |name: &str, score: (f64, Option<f64>), h: &HeldOut, chosen: bool, first_look: bool| {
        let (behind, error) = h.behind(&best.held_out);
        let squared_error = (!first_look).then(|| h.squared_error());
        let fields =
            [Some(score.0), score.1, squared_error, Some(behind), Some(error)].map(|x| x.map_or_else(String::new, number)).join(",");
        out += &format!("{name},{fields},{},{}\n", yes(chosen), yes(first_look));
    };
    for r in &choice.ranks {
        let score = choice.mean_score(r.rank).unwrap_or((f64::NAN, None));
        line(&r.rank.to_string(), score, &r.held_out, r.rank == choice.rank, r.first_look);
    }
    for (name, h) in [("empirical", &choice.empirical.1), ("independent", &choice.independent)] {
        line(name, (h.log_likelihood(), Some(h.standard_error())), h, false, false);
    }
    out
}

/// One line a state: where it is, how many draws agree, and for each meta-state the membership with its interval, which always holds it.
pub fn uncertainty_csv(found: &Uncertainty, x: &Factors, labels: &[Label]) -> String {
    let s = x.rank();
    let mut out = String::from("label,metastate,agreement,undecided");
    (1..=s).for_each(|k| out += &format!(",membership_{k},lower_{k},upper_{k}"));
    out.push('\n');
    for (i, label) in labels.iter().enumerate() {
        let row = x.u.row(i);
        let home = largest_entry(row);
        let undecided = if found.undecided[i] { "yes" } else { "no" };
        out += &format!("{},{},{},{undecided}", csv_field(&label.to_string()), home + 1, number(found.agreement[i]));
        (0..s).for_each(|k| out += &format!(",{},{},{}", number(row[k]), number(found.lower[(i, k)]), number(found.upper[(i, k)])));
        out.push('\n');
    }
    out
}
