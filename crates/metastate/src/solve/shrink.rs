//! Removing redundant dimensions (the paper's section 5.2.3). If `sum_j alpha_j U_j V_j^T = 0`, columns can be merged without
//! changing X. The atoms' Gram matrix `H = (U^T Xi^2 U) o (V^T V)` has such alphas as its null vectors; for near-null ones,
//! a vertex of `{theta : N theta <= 1}` (columns of N the alphas) zeroes as many columns at once.

use microlp::{ComparisonOp, OptimizationDirection};

use super::problem::{Factors, Problem};
use super::settings::{Redundancy, Removal, Settings};
use crate::linalg::{Mat, small, thin};

/// A multiplier `1 - (N theta)_j` below this counts as zero.
const VANISHED: f64 = 1e-9;

/// Tries to remove as many columns as `||Xi Delta||_F <= epsilon` allows, `Delta = sum_j (N theta)_j U_j V_j^T`.
/// Returns the shorter factors, or `None` if no column can go.
#[must_use]
pub fn remove_redundant(problem: &Problem, x: &Factors, epsilon: f64, removal: Removal) -> Option<Factors> {
    let s = x.rank();
    if s < 2 {
        return None;
    }
    let (a, g) = (thin::weighted_gram(&x.u, &problem.xi2), thin::gram(&x.v));
    let atoms = Mat::from_fn(s, s, |j, k| a[(j, k)] * g[(j, k)]);
    let (vectors, mut null) = near_null(&atoms, epsilon, removal)?;
    while null > 0 {
        let candidates = Preference::ALL.iter().filter_map(|preference| vertex(&vectors, null, &atoms, *preference));
        let nearest = candidates.map(|rest| (dropped_norm(&rest, &atoms), rest)).min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, rest)) = nearest.filter(|(norm, _)| *norm <= epsilon) {
            let keep: Vec<usize> = (0..s).filter(|&j| rest[j] > VANISHED).collect();
            if !keep.is_empty() && keep.len() < s {
                let mut shorter = x.clone();
                thin::for_each_row_mut(&mut shorter.u, |_, row| row.iter_mut().zip(&rest).for_each(|(u, r)| *u *= r));
                shorter.keep_columns_in(&keep, &problem.frame);
                return Some(shorter);
            }
        }
        // Near-null vectors of the larger eigenvalues spoilt it: try with fewer.
        null = if null > 8 { null * 3 / 4 } else { null - 1 };
    }
    None
}

/// The same as the settings ask for it, with F after it, where F (now `value`) does not rise by more than the share `rise`; the paper's absolute threshold does not ask what F does.
#[must_use]
pub fn without_redundant(problem: &Problem, x: &Factors, value: f64, settings: &Settings, rise: f64) -> Option<(Factors, f64)> {
    let epsilon = match settings.redundancy {
        Redundancy::Relative(share) => share * problem.data_norm2.sqrt(),
        Redundancy::Absolute(epsilon) => epsilon,
    };
    let shorter = remove_redundant(problem, x, epsilon, settings.removal)?;
    let after = problem.objective(&shorter).value;
    let too_much = matches!(settings.redundancy, Redundancy::Relative(_)) && after > (1.0 + rise) * value;
    (!too_much).then_some((shorter, after))
}

/// Combinations of the atoms, the smallest first, and how many of them are worth a try.
fn near_null(atoms: &Mat, epsilon: f64, removal: Removal) -> Option<(Mat, usize)> {
    let s = atoms.rows();
    if removal == Removal::UnitAtoms {
        let length: Vec<f64> = (0..s).map(|j| atoms[(j, j)].max(f64::MIN_POSITIVE).sqrt()).collect();
        let unit = Mat::from_fn(s, s, |j, k| atoms[(j, k)] / (length[j] * length[k]));
        let (_, vectors) = small::symmetric_eigen(&unit)?;
        return Some((Mat::from_fn(s, s, |j, k| vectors[(j, k)] / length[j]), s - 1));
    }
    let (values, vectors) = small::symmetric_eigen(atoms)?;
    // With unit alphas and some entry of N theta equal to one, ||N theta|| >= 1: an eigenvalue above epsilon^2 cannot be in.
    let small = values.iter().take(s - 1).take_while(|v| **v <= epsilon * epsilon).count();
    Some((vectors, if removal == Removal::OneByOne { small.min(1) } else { small }))
}

/// `||Xi Delta||_F` for the multipliers `1 - N theta` kept.
fn dropped_norm(rest: &[f64], atoms: &Mat) -> f64 {
    let gone: Vec<f64> = rest.iter().map(|r| 1.0 - r).collect();
    let mut image = vec![0.0; gone.len()];
    thin::row_times(&gone, atoms, &mut image);
    thin::dot(&gone, &image).max(0.0).sqrt()
}

/// Which columns a vertex should rather remove. The linear programs differ in their objective only; the vertex that changes
/// X least is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Preference {
    Light,
    Heavy,
    First,
    Last,
}

impl Preference {
    const ALL: [Preference; 4] = [Preference::Light, Preference::Heavy, Preference::First, Preference::Last];

    /// The reward for `(N theta)_j`; `norms` are the atoms' norms.
    fn reward(self, j: usize, norms: &[f64]) -> f64 {
        match self {
            Preference::Light => 1.0 / norms[j],
            Preference::Heavy => -1.0 / norms[j],
            Preference::First => norms.len() as f64 - j as f64,
            Preference::Last => j as f64 + 1.0,
        }
    }
}

/// A vertex of the linear program may lie outside by this much.
const OUTSIDE: f64 = 1e-7;

/// A vertex of `{theta : N theta <= 1}` where N holds the first `null` eigenvectors; returns `1 - N theta >= 0`, with at least
/// `null` zeros.
fn vertex(vectors: &Mat, null: usize, atoms: &Mat, preference: Preference) -> Option<Vec<f64>> {
    let s = vectors.rows();
    let norms: Vec<f64> = (0..s).map(|j| atoms[(j, j)].max(f64::MIN_POSITIVE).sqrt()).collect();
    let rewards: Vec<f64> = (0..s).map(|j| preference.reward(j, &norms)).collect();
    let scale = rewards.iter().fold(0.0f64, |m, r| m.max(r.abs()));
    let mut program = microlp::Problem::new(OptimizationDirection::Maximize);
    let theta: Vec<_> = (0..null)
        .map(|k| {
            let gain: f64 = (0..s).map(|j| vectors[(j, k)] * rewards[j] / scale).sum();
            program.add_var(gain, (f64::NEG_INFINITY, f64::INFINITY))
        })
        .collect();
    for j in 0..s {
        let terms: Vec<_> = theta.iter().enumerate().map(|(k, t)| (*t, vectors[(j, k)])).collect();
        program.add_constraint(terms.as_slice(), ComparisonOp::Le, 1.0);
    }
    let solution = program.solve().ok()?.into_solution().ok()?;
    let rest: Vec<f64> =
        (0..s).map(|j| 1.0 - theta.iter().enumerate().map(|(k, t)| vectors[(j, k)] * solution.var_value(*t)).sum::<f64>()).collect();
    // The crate's answer is checked, not believed.
    rest.iter().all(|r| r.is_finite() && *r >= -OUTSIDE).then(|| rest.into_iter().map(|r| r.max(0.0)).collect())
}
