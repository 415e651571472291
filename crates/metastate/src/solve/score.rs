//! How well a model predicts transitions that it has not seen: the log-likelihood a transition, and the weighted squared error.
//!
//! A model may call a transition impossible that then happens. So every model is scored with one and the same stated smoothing,
//! `p~_ij = (1 - e) p_ij + e m_j`, e = [`Smoothing::share`], m the marginal law of the training data ([`marginal_law`]).

use super::problem::Factors;
use super::refit::marginal_law;
use crate::error::{Error, Result};
use crate::linalg::{Csr, thin};

/// The share of the marginal law that is mixed into every model before its likelihood is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothing {
    /// e, above 0 and at most 1.
    pub share: f64,
}

impl Default for Smoothing {
    fn default() -> Self {
        Smoothing { share: 1e-3 }
    }
}

/// A model of transitions.
#[derive(Debug, Clone, Copy)]
pub enum Model<'a> {
    /// `U V^T`.
    LowRank(&'a Factors),
    /// The training counts with `pseudo` further transitions a state by the marginal law: `(n_ij + c m_j) / (n_i + c)`; the
    /// marginal law itself where a state was never left.
    Empirical {
        /// c.
        pseudo: f64,
    },
    /// Between the two: the training counts with `pseudo` further transitions a state by its row of `U V^T`, `(n_ij + c x_ij) / (n_i + c)`; that row itself where a state
    /// was never left.
    Blend {
        /// U and V.
        factors: &'a Factors,
        /// c.
        pseudo: f64,
    },
    /// The marginal law, whatever the state: rank one.
    Independent,
    /// Any other model, by its rows: `O(n)` a row with held-out departures.
    Rows(&'a dyn RowModel),
}

/// Numbers of pseudo-counts a state that counts are tried with: from a tenth to a hundred thousand, two a decade.
pub(crate) fn pseudo_counts() -> impl Iterator<Item = f64> {
    (-2..=10).map(|k| 10f64.powf(0.5 * f64::from(k)))
}

/// A model known by its rows.
pub trait RowModel: Sync + std::fmt::Debug {
    /// Number of rows and of columns.
    fn size(&self) -> (usize, usize);
    /// The law of the next state after i, one number a column.
    fn row(&self, i: usize, out: &mut [f64]);
}

/// Scores on held-out transitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// `sum n_ij ln p~_ij / n`.
    pub log_likelihood: f64,
    /// `||Xi (Q - X)||_F^2 / ||Xi Q||_F^2`: Q the held-out empirical matrix, Xi the held-out shares of departures, X the model
    /// without smoothing. Rows without held-out departures have no part in it.
    pub squared_error: f64,
    /// Held-out transitions.
    pub transitions: f64,
}

/// Scores the model, made from the training counts, on held-out counts. `O(nnz s + d s^2)`.
pub fn score(model: Model, training: &Csr, held_out: &Csr, smoothing: Smoothing) -> Result<Score> {
    Ok(score_at(model, training, held_out, &[smoothing])?[0])
}

/// The same with several smoothings, one score for each: the rows of the model are made once.
pub fn score_at(model: Model, training: &Csr, held_out: &Csr, smoothings: &[Smoothing]) -> Result<Vec<Score>> {
    smoothings.iter().try_for_each(|smoothing| check(model, training, held_out, *smoothing))?;
    let marginal = marginal_law(training);
    let total: f64 = held_out.values().iter().sum();
    let marginal_norm2 = thin::dot(&marginal, &marginal);
    let gram = match model {
        Model::LowRank(x) | Model::Blend { factors: x, .. } => Some(thin::gram(&x.v)),
        _ => None,
    };
    let s = gram.as_ref().map_or(1, |g| g.rows());
    let part = |rows: std::ops::Range<usize>| {
        let (mut logs, mut error, mut norm) = (vec![0.0; smoothings.len()], 0.0, 0.0);
        let mut p: Vec<f64> = Vec::new();
        let mut product = vec![0.0; s];
        let mut whole_row = if let Model::Rows(_) = model { vec![0.0; training.cols()] } else { Vec::new() };
        for i in rows {
            let (columns, counts) = held_out.row(i);
            let departures: f64 = counts.iter().sum();
            if departures <= 0.0 {
                continue;
            }
            // p at the held-out places, and ||x_i||^2.
            p.clear();
            let own_norm2 = match (model, &gram) {
                (Model::LowRank(x) | Model::Blend { factors: x, .. }, Some(gram)) => {
                    let u = x.u.row(i);
                    thin::row_times(u, gram, &mut product);
                    let law = Law { at: &|j| thin::dot(u, x.v.row(j as usize)), norm2: thin::dot(u, &product) };
                    match model {
                        Model::Blend { pseudo, .. } => shrunk_row(training, i, pseudo, &law, columns, &mut p),
                        _ => {
                            p.extend(columns.iter().map(|&j| (law.at)(j)));
                            law.norm2
                        }
                    }
                }
                (Model::Empirical { pseudo }, _) => {
                    let law = Law { at: &|j| marginal[j as usize], norm2: marginal_norm2 };
                    shrunk_row(training, i, pseudo, &law, columns, &mut p)
                }
                (Model::Rows(x), _) => {
                    x.row(i, &mut whole_row);
                    p.extend(columns.iter().map(|&j| whole_row[j as usize]));
                    thin::dot(&whole_row, &whole_row)
                }
                _ => {
                    p.extend(columns.iter().map(|&j| marginal[j as usize]));
                    marginal_norm2
                }
            };
            let (mut cross, mut own) = (0.0, 0.0);
            for ((&j, &n), &p) in columns.iter().zip(counts).zip(&p) {
                for (log, Smoothing { share: e }) in logs.iter_mut().zip(smoothings) {
                    *log += n * ((1.0 - e) * p + e * marginal[j as usize]).ln();
                }
                cross += n / departures * p;
                own += (n / departures) * (n / departures);
            }
            let weight = (departures / total) * (departures / total);
            error += weight * (own - 2.0 * cross + own_norm2);
            norm += weight * own;
        }
        (logs, error, norm)
    };
    let work = 2 * (held_out.nonzeros() / held_out.rows().max(1) + s) * s;
    let add = |a: &mut (Vec<f64>, f64, f64), b: (Vec<f64>, f64, f64)| {
        a.0.iter_mut().zip(b.0).for_each(|(x, y)| *x += y);
        (a.1, a.2) = (a.1 + b.1, a.2 + b.2);
    };
    let (logs, error, norm) = thin::sum_blocks(held_out.rows(), work, part, add).unwrap_or_else(|| (vec![0.0; smoothings.len()], 0.0, 1.0));
    let one = |log: f64| Score { log_likelihood: log / total, squared_error: error / norm, transitions: total };
    Ok(logs.into_iter().map(one).collect())
}

/// A law of the next state: its entries and its squared length.
struct Law<'a> {
    at: &'a dyn Fn(u32) -> f64,
    norm2: f64,
}

/// The counts of a row shrunk towards a law m, `(n_ij + c m_j) / (n_i + c)`, at the columns named; the squared length of the whole row.
fn shrunk_row(training: &Csr, i: usize, c: f64, law: &Law, wanted: &[u32], p: &mut Vec<f64>) -> f64 {
    let (columns, counts) = training.row(i);
    let n: f64 = counts.iter().sum();
    if n + c <= 0.0 {
        p.extend(wanted.iter().map(|&j| (law.at)(j)));
        return law.norm2;
    }
    // Both lists ascend.
    let mut at = 0;
    p.extend(wanted.iter().map(|&j| {
        while columns.get(at).is_some_and(|&k| k < j) {
            at += 1;
        }
        let seen = if columns.get(at) == Some(&j) { counts[at] } else { 0.0 };
        (seen + c * (law.at)(j)) / (n + c)
    }));
    let (mut squares, mut cross) = (0.0, 0.0);
    for (&j, &x) in columns.iter().zip(counts) {
        squares += x * x;
        cross += x * (law.at)(j);
    }
    (squares + 2.0 * c * cross + c * c * law.norm2) / ((n + c) * (n + c))
}

fn check(model: Model, training: &Csr, held_out: &Csr, smoothing: Smoothing) -> Result<()> {
    let (m, n) = (training.rows(), training.cols());
    let sizes = [("the held-out counts", m, held_out.rows()), ("the held-out counts (columns)", n, held_out.cols())];
    let of_model = match model {
        Model::LowRank(x) | Model::Blend { factors: x, .. } => vec![("U", m, x.u.rows()), ("V", n, x.v.rows())],
        Model::Rows(x) => vec![("the model", m, x.size().0), ("the model (columns)", n, x.size().1)],
        _ => Vec::new(),
    };
    for (what, expected, found) in sizes.into_iter().chain(of_model) {
        if found != expected {
            return Err(Error::SizeMismatch { what, expected, found });
        }
    }
    if held_out.nonzeros() == 0 {
        return Err(Error::Empty { what: "the held-out part" });
    }
    let wrong = |name, value: f64, allowed| Err(Error::Setting { name, value: value.to_string(), allowed });
    if !(smoothing.share > 0.0 && smoothing.share <= 1.0) {
        return wrong("the smoothing of the score", smoothing.share, "it must be above 0 and at most 1");
    }
    match model {
        Model::Empirical { pseudo } | Model::Blend { pseudo, .. } if !(pseudo >= 0.0 && pseudo.is_finite()) => {
            wrong("the number of pseudo-counts", pseudo, "it must be zero or a positive number")
        }
        _ => Ok(()),
    }
}
