//! What the tests of the solver share: a stream of numbers, a few chains, and the check of a solution by `verify`.

#![allow(dead_code)] // not every test uses all of it

use metastate::simulate::planted;
use metastate::solve::{Factors, Problem, Settings, Silent, Solution, solve};
use metastate::verify::{Claimed, Recomputed, Reported, compare, recompute};
use metastate::{Chain, Counts, Estimate, Given, Mat, Operator, StateIndex, WeightsBy};

/// A stream of numbers in (0, 1).
pub struct Stream(pub u64);

impl Stream {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() * n as f64) as usize
    }

    pub fn simplex(&mut self, n: usize) -> Vec<f64> {
        let x: Vec<f64> = (0..n).map(|_| -self.next().ln()).collect();
        let sum: f64 = x.iter().sum();
        x.iter().map(|x| x / sum).collect()
    }

    /// Every row on the simplex.
    pub fn stochastic(&mut self, rows: usize, cols: usize) -> Mat {
        let mut m = Mat::zeros(rows, cols);
        (0..rows).for_each(|i| m.row_mut(i).copy_from_slice(&self.simplex(cols)));
        m
    }

    /// U (rows sum to one) and V (columns sum to one).
    pub fn factors(&mut self, d: usize, s: usize) -> Factors {
        self.factors_between(d, d, s)
    }

    /// The same for as many rows and columns as named.
    pub fn factors_between(&mut self, rows: usize, cols: usize, s: usize) -> Factors {
        Factors { u: self.stochastic(rows, s), v: self.stochastic(s, cols).transposed() }
    }
}

/// All entries of P.
pub fn formed(p: &dyn Operator) -> Mat {
    let mut m = Mat::zeros(p.rows(), p.cols());
    (0..p.rows()).for_each(|i| p.row(i).for_each(p.cols(), |j, x| m[(i, j)] = x));
    m
}

/// `A B^T`, formed.
pub fn outer(a: &Mat, b: &Mat) -> Mat {
    Mat::from_fn(a.rows(), b.rows(), |i, j| (0..a.cols()).map(|k| a[(i, k)] * b[(j, k)]).sum())
}

pub fn column_length(m: &Mat, j: usize) -> f64 {
    m.column(j).iter().map(|x| x * x).sum::<f64>().sqrt()
}

pub fn by_arrivals() -> Estimate {
    Estimate { weights_by: WeightsBy::Arrivals, ..Estimate::default() }
}

/// The paper's chain, exact.
pub fn exact(d: usize, r: usize, seed: u64) -> Chain {
    planted(d, r, seed).unwrap().chain().unwrap()
}

/// The same, every entry stored.
pub fn exact_dense(d: usize, r: usize, seed: u64) -> Chain {
    let truth = planted(d, r, seed).unwrap();
    Chain::from_dense(outer(&truth.u, &truth.v), Given::weights(truth.xi)).unwrap()
}

/// A trajectory of `n` steps through the paper's chain.
pub fn sampled(d: usize, r: usize, n: u64, seed: u64) -> Chain {
    Chain::estimate(&planted(d, r, seed).unwrap().sample_counts(n, seed).unwrap(), &by_arrivals()).unwrap()
}

/// Few entries a row, each state in one of `groups` groups; every tenth state is all but absorbing, and the last one was
/// reached and never left: its row is the implicit uniform one.
pub fn sparse_with_near_absorbing_states(d: usize, groups: usize, seed: u64) -> Chain {
    let mut stream = Stream(seed);
    let mut triplets = Vec::new();
    for i in 0..d as u32 - 1 {
        let home = i as usize % groups;
        for _ in 0..8 {
            let group = if stream.next() < 0.8 { home } else { stream.below(groups) };
            let j = (stream.below((d - 1) / groups) * groups + group) as u32;
            triplets.push((i, j, 1.0 + stream.below(20) as f64));
        }
        if i % 10 == 0 {
            triplets.push((i, i, 1e6));
        }
        triplets.push((i, (i + 1) % (d as u32 - 1), 1.0));
    }
    triplets.push((0, d as u32 - 1, 3.0));
    Chain::estimate(&Counts::from_triplets(StateIndex::numbered(d), &triplets).unwrap(), &by_arrivals()).unwrap()
}

/// A dense chain near rank `r` whose weights span six orders of magnitude.
pub fn widely_weighted(d: usize, r: usize, seed: u64) -> Chain {
    let mut stream = Stream(seed);
    let (hidden, noise) = (stream.factors(d, r), stream.stochastic(d, d));
    let clean = outer(&hidden.u, &hidden.v);
    let p = Mat::from_fn(d, d, |i, j| 0.8 * clean[(i, j)] + 0.2 * noise[(i, j)]);
    let xi = (0..d).map(|_| 10f64.powf(-6.0 * stream.next())).collect();
    Chain::from_dense(p, Given::weights(xi)).unwrap()
}

pub fn problem(chain: &Chain, lambda: f64) -> Problem<'_> {
    Problem::new(chain.p(), chain.weights(), lambda).unwrap()
}

/// A lambda in the units of the data: `share * ||Xi P||_F^2`.
pub fn scaled(chain: &Chain, share: f64) -> Problem<'_> {
    let one = problem(chain, 1.0);
    let lambda = share * one.data_norm2;
    one.at_lambda(lambda)
}

/// What a solution claims.
pub fn claims(solution: &Solution) -> Reported {
    Reported {
        rank: Some(solution.rank()),
        fidelity: Some(solution.objective.fidelity),
        regularizer: Some(solution.objective.regularizer),
        objective: Some(solution.objective.value),
        rel_le1: Some(solution.errors.rel_le1),
        rel_le2: Some(solution.errors.rel_le2),
        ge: Some(solution.errors.ge),
        rel_dg: Some(solution.errors.rel_dg),
        lower_bound: solution.proof.as_ref().map(|p| p.lower_bound()),
        certified_gap: solution.certified_gap(),
        objective_of_one: Some(solution.objective_of_one),
        explained_gap: solution.explained_gap(),
        rel_re: None,
        rel_se: None,
    }
}

/// Feasibility, objective, errors and bound of a solution, recomputed; every claim must stand. GE and relDG rest on local
/// searches, two different ones here and there: where the checker's finds more, that is printed, not refused.
pub fn verified(problem: &Problem, solution: &Solution) -> Recomputed {
    let witness = solution.witness.for_checking();
    let Factors { u, v } = &solution.factors;
    let found =
        recompute(&Claimed { p: problem.p, weights: problem.weights, lambda: problem.lambda, u, v }, Some(witness), None, 0).unwrap();
    for check in compare(&claims(solution), &found) {
        let heuristic = matches!(check.name, "ge" | "rel_dg");
        assert!(check.agrees || heuristic, "{check:?}\n{:?}\n{found:?}", solution.errors);
        if !check.agrees {
            println!("heuristic: {} claimed {:.3e}, found {:.3e}", check.name, check.reported, check.recomputed);
        }
    }
    assert_eq!(solution.lambda, problem.lambda);
    found
}

/// Solves and verifies.
pub fn solved(problem: &Problem, settings: &Settings) -> Solution {
    let solution = solve(problem, settings, &mut Silent).unwrap();
    verified(problem, &solution);
    solution
}

/// An array of numbers in one of NumPy's archives; whole numbers become `f64`.
pub fn npz_array(path: &std::path::Path, name: &str) -> Option<Vec<f64>> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).ok()?).ok()?;
    let values = npyz::NpyFile::new(archive.by_name(&format!("{name}.npy")).ok()?).ok()?;
    if let npyz::DType::Plain(t) = values.dtype()
        && t.type_char() == npyz::TypeChar::Int
    {
        return Some(values.into_vec::<i64>().ok()?.into_iter().map(|x| x as f64).collect());
    }
    values.into_vec::<f64>().ok()
}
