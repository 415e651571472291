//! `states.csv` with its twin, `metastates.csv` and `latent.csv`: every field, and the names of the columns.

use metastate::Mat;
use metastate::solve::Factors;
use metastate::workspace::plain::{latent_matrix, limit_law};

use super::checks::{Checks, ExpectedCell, Named, ROUNDING, header};
use super::subject::Subject;
use super::twin::{self, Column};

/// A stationary law may miss being one by the rounding of U's row sums,
const STATIONARY: f64 = 1e-10;
/// and lie so far from the one that a very long run ends in.
const LIMIT: f64 = 1e-6;
/// An entry of K below this is known to few digits, or to none.
const DUST: f64 = 1e-9;
/// Anchor states and destinations named for each meta-state.
const NAMED: usize = 5;

/// All three, and the Parquet twin.
pub fn check(checks: &mut Checks, subject: &Subject) {
    checks.table("states.csv", states(subject));
    checks.table("states.parquet", states_twin(subject));
    checks.table("metastates.csv", metastates(subject));
    if subject.goes_on() {
        // With slices, all of them together.
        checks.table("latent.csv", latent(subject));
    } else {
        checks.table("destinations.csv", destinations(subject));
    }
}

fn names(subject: &Subject) -> Vec<String> {
    let first: &[&str] = if subject.data.names.is_some() { &["label", "name"] } else { &["label"] };
    let mut names = header(&[first, &["weight", "metastate", "zone"]].concat(), subject.u().cols(), &["membership"]);
    if subject.data.coordinates.is_some() {
        names.extend(["lon".to_owned(), "lat".to_owned()]);
    }
    names
}

/// Labels, weights and coordinates of the data, memberships of the factors and the largest of them, each to the letter; zones are a
/// check of their own.
fn states(subject: &Subject) -> Option<String> {
    let (u, xi) = (subject.u(), subject.data.chain().xi());
    let row = |i: usize| -> Vec<ExpectedCell> {
        let metastate = ExpectedCell::Is((home(u.row(i)) + 1).to_string());
        let mut row = vec![ExpectedCell::Is(subject.labels[i].clone())];
        row.extend(subject.data.names.iter().map(|names| ExpectedCell::Is(names[i].clone())));
        row.extend([ExpectedCell::number(xi[i]), metastate, ExpectedCell::Free]);
        row.extend(u.row(i).iter().map(|x| ExpectedCell::number(*x)));
        row.extend(subject.data.coordinates.iter().flat_map(|c| [ExpectedCell::number(c[i].0), ExpectedCell::number(c[i].1)]));
        row
    };
    let rows: Vec<Vec<ExpectedCell>> = (0..u.rows()).map(row).collect();
    Named::new(subject.result.states.clone()).difference(&names(subject), &rows)
}

/// The same values as in the CSV, which is checked by itself.
fn states_twin(subject: &Subject) -> Option<String> {
    let twin = match twin::read(subject.folder, "states.parquet", subject.labels.len()) {
        Ok(twin) => twin,
        Err(why) => return Some(why),
    };
    let names = names(subject);
    if !twin.columns.iter().map(|c| &c.0).eq(&names) {
        return Some("other columns".to_owned());
    }
    let csv = Named::new(subject.result.states.clone());
    for (name, column) in &twin.columns {
        let field = |i: usize| csv.field(i, name).unwrap_or_default();
        let wrong = match column {
            Column::Texts(all) => (0..all.len().max(csv.rows.len())).find(|&i| all.get(i).is_none_or(|x| x != field(i))),
            Column::Numbers(all) => {
                let same = |i: usize, x: &f64| field(i).parse::<f64>().is_ok_and(|y| y == *x || (y.is_nan() && x.is_nan()));
                (0..all.len().max(csv.rows.len())).find(|&i| all.get(i).is_none_or(|x| !same(i, x)))
            }
            Column::Bytes(_) => Some(0),
        };
        if let Some(i) = wrong {
            return Some(format!("row {}, {name}: states.csv says {}", i + 1, field(i)));
        }
    }
    None
}

/// The rows with the largest keys, ties by weight and then by row: by sorting all of them.
fn first_by(count: usize, rows: usize, key: impl Fn(usize) -> f64, xi: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|&a, &b| key(b).total_cmp(&key(a)).then(xi[b].total_cmp(&xi[a])).then(a.cmp(&b)));
    order.truncate(count);
    order
}

/// The largest membership decides; the lower number where two are equal.
pub fn home(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best })
}

/// Sizes by the largest membership, masses, anchors, destinations with their shares, and the stationary law.
fn metastates(subject: &Subject) -> Option<String> {
    let (Factors { u, v }, xi) = (&subject.going_on(), subject.data.chain().xi());
    let (d, n, s, named, named_ends) = (u.rows(), v.rows(), u.cols(), NAMED.min(u.rows()), NAMED.min(v.rows()));
    // Of two destinations with the same share the heavier state comes first, where they are states.
    let weights: Vec<f64> = if subject.goes_on() { xi.to_vec() } else { vec![0.0; n] };
    let mut names = header(&["metastate", "size", "mass"], named, &["anchor", "membership"]);
    names.extend(header(&[], named_ends, &["destination", "share"]));
    names.extend(subject.goes_on().then(|| "stationary".to_owned()));
    let (mut size, mut mass) = (vec![0; s], vec![0.0; s]);
    for i in 0..d {
        size[home(u.row(i))] += 1;
        mass.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += xi[i] * u);
    }
    let row = |k: usize| -> Vec<ExpectedCell> {
        let mut row = vec![ExpectedCell::Is((k + 1).to_string()), ExpectedCell::Is(size[k].to_string()), ExpectedCell::Near(mass[k])];
        let anchors = first_by(named, d, |i| u[(i, k)], xi);
        row.extend(anchors.into_iter().flat_map(|i| [ExpectedCell::Is(subject.labels[i].clone()), ExpectedCell::number(u[(i, k)])]));
        let to = first_by(named_ends, n, |j| v[(j, k)], &weights);
        row.extend(to.into_iter().flat_map(|j| [ExpectedCell::Is(subject.destinations[j].clone()), ExpectedCell::number(v[(j, k)])]));
        row.extend(subject.goes_on().then_some(ExpectedCell::Free));
        row
    };
    let rows: Vec<Vec<ExpectedCell>> = (0..s).map(row).collect();
    let table = Named::new(subject.result.metastates.clone());
    table.difference(&names, &rows).or_else(|| subject.goes_on().then(|| stationary(&table, u, v, xi)).flatten())
}

/// Labels and arrivals of the data, the profiles, and the meta-state that sends most to each destination.
fn destinations(subject: &Subject) -> Option<String> {
    let (Factors { u, v }, chain) = (subject.model(), subject.data.chain());
    let places = subject.data.destination_coordinates.as_deref();
    let mut names = header(&["label", "weight", "metastate"], v.cols(), &["profile"]);
    if places.is_some() {
        names.extend(["lon".to_owned(), "lat".to_owned()]);
    }
    let (mut mass, mut arrivals) = (vec![0.0; v.cols()], vec![0.0; v.rows()]);
    for (i, x) in chain.xi().iter().enumerate() {
        mass.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += x * u);
    }
    for i in 0..chain.states() {
        let n = chain.departures()[i];
        chain.p().row(i).for_each(v.rows(), |j, p| arrivals[j] += n * p);
    }
    let total: f64 = arrivals.iter().sum();
    let Some(told) = &subject.result.destinations else { return Some("there is none".to_owned()) };
    let table = Named::new(told.table.clone());
    let row = |j: usize| -> Vec<ExpectedCell> {
        let mut row = vec![ExpectedCell::Is(subject.destinations[j].clone()), ExpectedCell::Near(arrivals[j] / total), ExpectedCell::Free];
        row.extend(v.row(j).iter().map(|x| ExpectedCell::number(*x)));
        row.extend(places.iter().flat_map(|c| [ExpectedCell::number(c[j].0), ExpectedCell::number(c[j].1)]));
        row
    };
    let rows: Vec<Vec<ExpectedCell>> = (0..v.rows()).map(row).collect();
    let sends_most = |j: usize| {
        let sent: Vec<f64> = v.row(j).iter().zip(&mass).map(|(v, m)| v * m).collect();
        let most = sent.iter().copied().fold(0.0, f64::max);
        let told = table.number(j, "metastate");
        (0..sent.len()).any(|k| told == (k + 1) as f64 && sent[k] >= most - ROUNDING)
    };
    let wrong = || (0..v.rows()).find(|&j| !sends_most(j)).map(|j| format!("row {}, metastate: another one sends more there", j + 1));
    table.difference(&names, &rows).or_else(wrong)
}

/// A law a with `a^T K = a^T`, and where there are several, the one that the data's own law leads to.
fn stationary(table: &Named, u: &Mat, v: &Mat, xi: &[f64]) -> Option<String> {
    let k = latent_matrix(u, v);
    let law: Vec<f64> = (0..k.rows()).map(|j| table.number(j, "stationary")).collect();
    let total: f64 = law.iter().sum();
    // NaN fails, too.
    if !((total - 1.0).abs() <= STATIONARY && law.iter().all(|a| *a >= 0.0)) {
        return Some(format!("the column stationary sums to {total}"));
    }
    let moved = |j: usize| (0..k.rows()).map(|i| law[i] * k[(i, j)]).sum::<f64>();
    if let Some(j) = (0..law.len()).find(|&j| (moved(j) - law[j]).abs() > STATIONARY) {
        return Some(format!("row {}: not stationary", j + 1));
    }
    let limit = limit_law(&k, u, xi);
    // Meta-states that hardly ever meet: how they share depends on entries that are nothing but rounding, and every stationary law is right.
    if k.as_slice().iter().any(|x| *x > 0.0 && *x < DUST) && closed_classes(&k) > 1 {
        return None;
    }
    (0..law.len()).find(|&j| (limit[j] - law[j]).abs() > LIMIT).map(|j| format!("row {}, stationary: should be {:.9}", j + 1, limit[j]))
}

/// Sets of meta-states that are never left, when entries below [`DUST`] are taken for none.
fn closed_classes(k: &Mat) -> usize {
    let s = k.rows();
    let mut reaches = vec![vec![false; s]; s];
    for i in 0..s {
        let mut open = vec![i];
        while let Some(j) = open.pop() {
            if !std::mem::replace(&mut reaches[i][j], true) {
                open.extend((0..s).filter(|&l| k[(j, l)] >= DUST));
            }
        }
    }
    // The first of each class speaks for it: whatever it reaches reaches it, too.
    let closed = |i: usize| (0..s).all(|j| !reaches[i][j] || reaches[j][i]);
    (0..s).filter(|&i| closed(i) && (0..i).all(|j| !(reaches[i][j] && reaches[j][i]))).count()
}

/// K = V^T U.
fn latent(subject: &Subject) -> Option<String> {
    let k = latent_matrix(subject.u(), &subject.going_on().v);
    let row =
        |i: usize| std::iter::once(ExpectedCell::Is((i + 1).to_string())).chain(k.row(i).iter().map(|x| ExpectedCell::Near(*x))).collect();
    let rows: Vec<Vec<ExpectedCell>> = (0..k.rows()).map(row).collect();
    Named::new(subject.result.latent.clone()).difference(&header(&["metastate"], k.cols(), &["to"]), &rows)
}
