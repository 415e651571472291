//! Logs of controlled chains: what was tried, what was paid, the latent chain of each action. By plain loops; the regression of rewards by elimination.

use metastate::Mat;
use metastate::plan::Tried;
use metastate_report::RefitRecord;

use super::checks::{Checks, ExpectedCell, Named};
use super::subject::Subject;
use crate::control::ControlledData;

/// Estimates that were computed in another order differ by this, relative to the largest of them.
pub const ESTIMATE: f64 = 1e-7;
/// Added to the diagonal of the normal equations, as documented.
const RIDGE: f64 = 1e-9;
/// Rounds of the two variances, as documented.
const ROUNDS: usize = 5;

/// `control` of the summary, `pairs.csv`, `rewards.csv` and `actions.csv`.
pub fn check(checks: &mut Checks, subject: &Subject) {
    let told = &subject.result.summary.control;
    let Some(control) = &subject.data.control else {
        if told.is_some() {
            checks.table("control", Some("these data have no actions".to_owned()));
        }
        return;
    };
    let again = control.tried.paid.as_ref().map(|_| Again::new(&control.tried, subject.u()));
    checks.table("control", wrong_record(subject, control, again.as_ref()));
    checks.table("pairs.csv", wrong_pairs(subject, control, again.as_ref()));
    checks.table("actions.csv", wrong_actions(subject, control));
    if let Some(again) = &again {
        checks.table("rewards.csv", wrong_rewards(subject, again));
    }
}

/// Rewards, estimated a second time.
pub struct Again {
    theta: Vec<f64>,
    theta_error: Vec<f64>,
    /// What each pair is paid.
    pub pair: Vec<f64>,
    pair_error: Vec<f64>,
    within: f64,
    between: f64,
    leaning: usize,
}

/// `A x = b` for several right-hand sides, by elimination with row exchanges.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = a.len();
    for k in 0..n {
        let best = (k..n).fold(k, |best, i| if a[i][k].abs() > a[best][k].abs() { i } else { best });
        a.swap(k, best);
        b.swap(k, best);
        if a[k][k] == 0.0 {
            return vec![vec![f64::NAN; b[0].len()]; n];
        }
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            for j in 0..b[i].len() {
                b[i][j] -= factor * b[k][j];
            }
        }
    }
    for k in (0..n).rev() {
        for j in 0..b[k].len() {
            let known: f64 = (k + 1..n).map(|i| a[k][i] * b[i][j]).sum();
            b[k][j] = (b[k][j] - known) / a[k][k];
        }
    }
    b
}

impl Again {
    fn new(tried: &Tried, u: &Mat) -> Self {
        let (m, s) = (u.rows(), u.cols());
        let paid = tried.paid.clone().unwrap_or_default();
        let n = &tried.records;
        let line = |weight: &dyn Fn(usize) -> f64| -> (Vec<f64>, Vec<Vec<f64>>) {
            let (mut normal, mut right) = (vec![vec![0.0; s]; s], vec![0.0; s]);
            for p in 0..m {
                for k in 0..s {
                    right[k] += weight(p) * u[(p, k)] * paid.mean[p];
                    for l in 0..s {
                        normal[k][l] += weight(p) * u[(p, k)] * u[(p, l)];
                    }
                }
            }
            let trace: f64 = (0..s).map(|k| normal[k][k]).sum();
            (0..s).for_each(|k| normal[k][k] += RIDGE * trace / s as f64);
            let unit = (0..s).map(|k| (0..s).map(|l| if k == l { 1.0 } else { 0.0 }).collect()).collect();
            let theta = solve(normal.clone(), right.into_iter().map(|x| vec![x]).collect()).into_iter().map(|row| row[0]).collect();
            (theta, solve(normal, unit))
        };
        let at = |theta: &[f64], p: usize| (0..s).map(|k| u[(p, k)] * theta[k]).sum::<f64>();
        let (mut theta, mut inverse) = line(&|p| n[p]);
        let about: f64 = (0..m).map(|p| n[p] * (paid.mean[p] - at(&theta, p)).powi(2)).sum();
        let (rows, repeats): (f64, f64) = (m as f64 - s as f64, n.iter().map(|n| n - 1.0).sum());
        let sigma2 = if repeats > 0.0 { paid.spread.iter().sum::<f64>() / repeats } else { about / rows.max(1.0) };
        let mut tau2 = 0.0;
        for _ in 0..if sigma2 > 0.0 { ROUNDS } else { 0 } {
            let squares: f64 = (0..m).map(|p| n[p] / sigma2 * (paid.mean[p] - at(&theta, p)).powi(2)).sum();
            let (sum, sum2) = n.iter().fold((0.0, 0.0), |(a, b), n| (a + n / sigma2, b + (n / sigma2).powi(2)));
            let scale = sum - s as f64 * sum2 / sum;
            tau2 = if rows <= 0.0 || scale <= 0.0 { 0.0 } else { ((squares - rows) / scale).max(0.0) };
            (theta, inverse) = line(&|p| 1.0 / (sigma2 / n[p] + tau2));
        }
        let exact = sigma2 == 0.0;
        let scale = if exact { about / rows.max(1.0) } else { 1.0 };
        let theta_error: Vec<f64> = (0..s).map(|k| (inverse[k][k].max(0.0) * scale).sqrt()).collect();
        let between = if exact { (about / n.iter().sum::<f64>().max(1.0)).sqrt() } else { tau2.sqrt() };
        let (mut pair, mut pair_error, mut leaning) = (vec![0.0; m], vec![0.0; m], 0);
        for p in 0..m {
            let own = if exact { 1.0 } else { tau2 / (tau2 + sigma2 / n[p]) };
            leaning += usize::from(own < 0.5);
            pair[p] = at(&theta, p) + own * (paid.mean[p] - at(&theta, p));
            let spread: f64 = (0..s).map(|k| (0..s).map(|l| u[(p, k)] * inverse[k][l] * u[(p, l)]).sum::<f64>()).sum();
            pair_error[p] = (own * sigma2 / n[p] + (1.0 - own).powi(2) * spread).max(0.0).sqrt();
        }
        Again { theta, theta_error, pair, pair_error, within: sigma2.sqrt(), between, leaning }
    }
}

/// Whether two lists are the same estimates.
pub fn alike(found: &[f64], expected: &[f64]) -> Option<usize> {
    let size = expected.iter().fold(1.0f64, |a, x| a.max(x.abs()));
    (0..expected.len().max(found.len()))
        .find(|&k| !matches!((found.get(k), expected.get(k)), (Some(a), Some(b)) if (a - b).abs() <= ESTIMATE * size))
}

fn wrong_record(subject: &Subject, control: &ControlledData, again: Option<&Again>) -> Option<String> {
    let Some(told) = &subject.result.summary.control else { return Some("the summary has none".to_owned()) };
    let pairs = &control.tried.pairs;
    let mut left = vec![false; control.states.len()];
    pairs.state.iter().for_each(|s| left[*s as usize] = true);
    let left = left.iter().filter(|l| **l).count();
    let prior = match &subject.result.summary.refit {
        Some(RefitRecord::Likelihood(refit)) => refit.prior,
        _ => 0.0,
    };
    let scarce = control.tried.records.iter().filter(|n| **n < prior).count();
    let counted = [
        ("states", told.states, control.states.len()),
        ("actions", told.actions, control.actions.len()),
        ("pairs", told.pairs, pairs.len()),
        ("untried", told.untried, left * control.actions.len() - pairs.len()),
        ("ends", told.ends, control.states.len() - left),
        ("scarce", told.scarce, scarce),
    ];
    if let Some((name, _, expected)) = counted.iter().find(|(_, a, b)| a != b) {
        return Some(format!("{name} should be {expected}"));
    }
    match (&told.rewards, again) {
        (None, None) => None,
        (Some(r), Some(again)) => {
            if alike(&[r.within, r.between], &[again.within, again.between]).is_some() {
                return Some(format!("rewards: should vary by {} within pairs and {} between them", again.within, again.between));
            }
            // A pair on the edge may fall on either side.
            let off = r.leaning.abs_diff(again.leaning) as f64;
            (off > 1.0 + ESTIMATE * pairs.len() as f64).then(|| format!("rewards: {} pairs lean", again.leaning))
        }
        _ => Some("rewards: there are some only on one side".to_owned()),
    }
}

fn wrong_pairs(subject: &Subject, control: &ControlledData, again: Option<&Again>) -> Option<String> {
    let table = match Named::read(subject.folder, "pairs.csv") {
        Ok(table) => table,
        Err(why) => return Some(why),
    };
    let mut names: Vec<String> = ["state", "action", "records"].map(str::to_owned).to_vec();
    if again.is_some() {
        names.extend(["reward", "reward_error", "mean", "spread"].map(str::to_owned));
    }
    let Tried { pairs, records, paid, .. } = &control.tried;
    let row = |p: usize| -> Vec<ExpectedCell> {
        let state = control.states.label(pairs.state[p] as usize).to_string();
        let mut row = vec![
            ExpectedCell::Is(state),
            ExpectedCell::Is(control.actions.label(pairs.action[p] as usize).to_string()),
            ExpectedCell::number(records[p]),
        ];
        if let Some(paid) = paid {
            row.extend([ExpectedCell::Free, ExpectedCell::Free, ExpectedCell::number(paid.mean[p]), ExpectedCell::number(paid.spread[p])]);
        }
        row
    };
    let rows: Vec<Vec<ExpectedCell>> = (0..pairs.len()).map(row).collect();
    let estimates = || {
        let again = again?;
        let column = |name: &str| (0..pairs.len()).map(|p| table.number(p, name)).collect::<Vec<f64>>();
        [("reward", &again.pair), ("reward_error", &again.pair_error)].into_iter().find_map(|(name, expected)| {
            alike(&column(name), expected).map(|p| format!("row {}, {name}: should be {}", p + 1, expected[p]))
        })
    };
    table.difference(&names, &rows).or_else(estimates)
}

fn wrong_rewards(subject: &Subject, again: &Again) -> Option<String> {
    let table = match Named::read(subject.folder, "rewards.csv") {
        Ok(table) => table,
        Err(why) => return Some(why),
    };
    let names = ["metastate", "reward", "error"].map(str::to_owned);
    let rows: Vec<Vec<ExpectedCell>> =
        (0..again.theta.len()).map(|k| vec![ExpectedCell::Is((k + 1).to_string()), ExpectedCell::Free, ExpectedCell::Free]).collect();
    let column = |name: &str| (0..rows.len()).map(|k| table.number(k, name)).collect::<Vec<f64>>();
    let estimates = || {
        [("reward", &again.theta), ("error", &again.theta_error)].into_iter().find_map(|(name, expected)| {
            alike(&column(name), expected).map(|k| format!("row {}, {name}: should be {}", k + 1, expected[k]))
        })
    };
    table.difference(&names, &rows).or_else(estimates)
}

/// `K_a` state by state.
fn wrong_actions(subject: &Subject, control: &ControlledData) -> Option<String> {
    let table = match Named::read(subject.folder, "actions.csv") {
        Ok(table) => table,
        Err(why) => return Some(why),
    };
    let (u, v, pairs) = (subject.u(), &subject.model().v, &control.tried.pairs);
    let s = v.cols();
    let mut column = vec![None; control.states.len()];
    control.tried.reached.iter().enumerate().for_each(|(j, state)| column[*state as usize] = Some(j));
    let actions = control.actions.len();
    let (mut chain, mut tried) = (vec![0.0; actions * s * s], vec![0.0; actions * s]);
    for p in 0..pairs.len() {
        let (Some(j), a) = (column[pairs.state[p] as usize], pairs.action[p] as usize) else { continue };
        for k in 0..s {
            tried[a * s + k] += v[(j, k)];
            for l in 0..s {
                chain[(a * s + k) * s + l] += v[(j, k)] * u[(p, l)];
            }
        }
    }
    let names = ["action", "from_metastate", "to_metastate", "probability", "tried"].map(str::to_owned);
    let row = |at: usize| -> Vec<ExpectedCell> {
        let (a, k, l) = (at / (s * s), at / s % s, at % s);
        let share = tried[a * s + k];
        vec![
            ExpectedCell::Is(control.actions.label(a).to_string()),
            ExpectedCell::Is((k + 1).to_string()),
            ExpectedCell::Is((l + 1).to_string()),
            ExpectedCell::Near(if share > 0.0 { chain[at] / share } else { 0.0 }),
            ExpectedCell::Near(share),
        ]
    };
    table.difference(&names, &(0..chain.len()).map(row).collect::<Vec<_>>())
}
