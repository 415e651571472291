//! The bootstrap: what it says about itself must hang together. The draws are not made again.

use metastate_report::{UncertaintyRecord, load_extras};

use super::checks::{Checks, ExpectedCell, Named, header};
use super::subject::Subject;
use super::tables::home;

/// A share of the draws times their number is whole but for this.
const WHOLE: f64 = 1e-6;

/// The record and `uncertainty.csv`.
pub fn check(checks: &mut Checks, subject: &Subject) {
    let told = &subject.result.summary.uncertainty;
    if subject.draws() == 0 {
        if told.is_some() {
            checks.table("uncertainty", Some("no draws were asked for".to_owned()));
        }
        return;
    }
    let Some(told) = told else { return checks.table("uncertainty", Some("no record in summary.json".to_owned())) };
    checks.table("uncertainty", wrong(subject, told).err());
    checks.hash_only("uncertainty: intervals, agreement, stability", "the draws are not made again");
}

fn wrong(subject: &Subject, told: &UncertaintyRecord) -> Result<(), String> {
    let s = subject.u().cols();
    let demand = |it_is: bool, what: &str| if it_is { Ok(()) } else { Err(what.to_owned()) };
    demand(told.draws == subject.fit.bootstrap, "draws: not as many as asked for")?;
    let draws = subject.fit.bootstrap as f64;
    let confidence = told.confidence;
    demand(confidence > 0.0 && confidence < 1.0, "confidence: no share")?;
    let how = subject.data.parts().map(|p| p.drawn());
    demand(Some(told.draws_are.as_str()) == how.as_deref(), "draws_are: these data are drawn otherwise")?;
    let shares = &told.stability;
    demand(shares.len() == s && shares.iter().all(|x| (0.0..=1.0).contains(x)), "stability: not one share a meta-state")?;
    let shown = load_extras(subject.folder, subject.labels.len()).map_err(|e| e.to_string())?.timescale_intervals;
    demand(told.timescale_intervals == shown, "timescale_intervals: page.json has others")?;

    let table = Named::read(subject.folder, "uncertainty.csv")?;
    let names = header(&["label", "metastate", "agreement", "undecided"], s, &["membership", "lower", "upper"]);
    let row = |i: usize| -> Vec<ExpectedCell> {
        let membership = subject.u().row(i);
        let mut row = vec![
            ExpectedCell::Is(subject.labels[i].clone()),
            ExpectedCell::Is((home(membership) + 1).to_string()),
            ExpectedCell::Free,
            ExpectedCell::Free,
        ];
        row.extend(membership.iter().flat_map(|x| [ExpectedCell::number(*x), ExpectedCell::Free, ExpectedCell::Free]));
        row
    };
    let rows: Vec<Vec<ExpectedCell>> = (0..subject.labels.len()).map(row).collect();
    if let Some(difference) = table.difference(&names, &rows) {
        return Err(difference);
    }
    let mut undecided = 0;
    for i in 0..table.rows.len() {
        let agreement = table.number(i, "agreement");
        let agreeing = agreement * draws;
        let whole = (agreeing - agreeing.round()).abs() <= WHOLE && (0.0..=1.0).contains(&agreement);
        demand(whole, &format!("row {}, agreement: no share of the draws", i + 1))?;
        let said = table.field(i, "undecided");
        let is = agreement < confidence;
        demand(said == Some(if is { "yes" } else { "no" }), &format!("row {}, undecided: {agreement} of the draws agree", i + 1))?;
        undecided += usize::from(is);
        for k in 1..=s {
            let (low, high) = (table.number(i, &format!("lower_{k}")), table.number(i, &format!("upper_{k}")));
            demand(low <= high && low >= -1e-9 && high <= 1.0 + 1e-9, &format!("row {}, lower_{k} and upper_{k}: no interval", i + 1))?;
        }
    }
    demand(told.undecided_states == undecided, &format!("undecided_states: the table has {undecided}"))
}
