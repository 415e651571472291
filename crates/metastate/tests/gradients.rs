//! The objective against brute force, and its gradient by slope: `F(x + tD) - F(x) - t <grad F, D>` falls as `t^2`.

mod common;

use common::{Stream, column_length, formed, outer};
use metastate::solve::{Factors, Problem};
use metastate::workspace::kkt::Products;
use metastate::{Csr, DenseOperator, LowRankOperator, Mat, Operator, SparseOperator};

/// P in each of its forms; the sparse one has two implicit uniform rows and few entries, the filled one is nearly full.
fn forms(m: usize, n: usize, stream: &mut Stream) -> Vec<(&'static str, Box<dyn Operator>)> {
    let few = sparse(m, n, 5, vec![3, 17], stream);
    assert!(few.nonzeros() * 5 < m * n, "stays sparse");
    let nearly_full = sparse(m, n, n, vec![0], stream);
    let hidden = stream.factors_between(m, n, 4);
    vec![
        ("sparse", Box::new(few)),
        ("nearly full", Box::new(nearly_full)),
        ("dense", Box::new(DenseOperator::new(stream.stochastic(m, n)))),
        ("low rank", Box::new(LowRankOperator::new(hidden.u, hidden.v).unwrap())),
    ]
}

/// As many rows as columns, fewer, and more.
fn all_forms(stream: &mut Stream) -> Vec<(&'static str, Box<dyn Operator>)> {
    [(60, 60), (60, 130), (90, 40)].into_iter().flat_map(|(m, n)| forms(m, n, stream)).collect()
}

fn sparse(m: usize, n: usize, a_row: usize, uniform: Vec<u32>, stream: &mut Stream) -> SparseOperator {
    let mut triplets = Vec::new();
    for i in (0..m as u32).filter(|i| !uniform.contains(i)) {
        stream.simplex(a_row).into_iter().for_each(|p| triplets.push((i, stream.below(n) as u32, p)));
    }
    SparseOperator::new(Csr::from_triplets(m, n, &triplets).unwrap(), uniform).unwrap()
}

/// `Xi^2 (U G - Q) + lambda U diag(||V_j|| / ||U_j||)` and `V A - B + lambda V diag(||U_j|| / ||V_j||)`.
fn gradient(problem: &Problem, x: &Factors) -> Factors {
    let Products { q, b, g, a, .. } = Products::at(problem, x);
    let (m, n, s) = (problem.rows(), problem.cols(), x.rank());
    let ratio: Vec<f64> = (0..s).map(|j| column_length(&x.v, j) / column_length(&x.u, j)).collect();
    let (ug, va) = (outer(&x.u, &g), outer(&x.v, &a)); // G and A are symmetric
    Factors {
        u: Mat::from_fn(m, s, |i, j| problem.xi2[i] * (ug[(i, j)] - q[(i, j)]) + problem.lambda * x.u[(i, j)] * ratio[j]),
        v: Mat::from_fn(n, s, |i, j| va[(i, j)] - b[(i, j)] + problem.lambda * x.v[(i, j)] / ratio[j]),
    }
}

fn inner(a: &Mat, b: &Mat) -> f64 {
    a.as_slice().iter().zip(b.as_slice()).map(|(x, y)| x * y).sum()
}

fn moved(x: &Factors, direction: &Factors, t: f64) -> Factors {
    let step = |x: &Mat, d: &Mat| Mat::from_fn(x.rows(), x.cols(), |i, j| x[(i, j)] + t * d[(i, j)]);
    Factors { u: step(&x.u, &direction.u), v: step(&x.v, &direction.v) }
}

/// Least-squares slope of `log error` against `log t`.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(t, e)| (t.ln(), e.ln())).collect();
    let n = logs.len() as f64;
    let (mx, my) = logs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    logs.iter().map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / logs.iter().map(|(x, _)| (x - mx).powi(2)).sum::<f64>()
}

#[test]
fn the_first_order_error_falls_as_the_square_of_the_step() {
    let s = 4;
    let mut stream = Stream(11);
    for (name, p) in all_forms(&mut stream) {
        let (m, n) = (p.rows(), p.cols());
        let xi: Vec<f64> = (0..m).map(|_| 0.2 + stream.next()).collect();
        let one = Problem::new(p.as_ref(), &xi, 1.0).unwrap();
        // From all fit to all penalty.
        for lambda in [1e-4, 0.1, 10.0].map(|share| share * one.data_norm2) {
            let problem = one.at_lambda(lambda);
            let x = stream.factors_between(m, n, s);
            let (here, slopes) = (problem.objective(&x).value, gradient(&problem, &x));
            // Towards another feasible point: rows of D_U and columns of D_V sum to zero, and x + tD is feasible for t in [0, 1].
            let other = stream.factors_between(m, n, s);
            let towards = |to: &Mat, from: &Mat| Mat::from_fn(from.rows(), from.cols(), |i, j| to[(i, j)] - from[(i, j)]);
            let (du, dv) = (towards(&other.u, &x.u), towards(&other.v, &x.v));
            let directions = [
                ("U", Factors { u: du.clone(), v: Mat::zeros(n, s) }),
                ("V", Factors { u: Mat::zeros(m, s), v: dv.clone() }),
                ("both", Factors { u: du, v: dv }),
            ];
            for (block, direction) in directions {
                let along = inner(&slopes.u, &direction.u) + inner(&slopes.v, &direction.v);
                assert!(along.abs() > 1e-6 * here, "{name} {block}: a slope of {along:e} says nothing");
                let points: Vec<(f64, f64)> = (0..8)
                    .map(|k| {
                        let t = 0.1 * 0.5f64.powi(k);
                        (t, (problem.objective(&moved(&x, &direction, t)).value - here - t * along).abs())
                    })
                    .collect();
                let order = slope(&points);
                assert!((order - 2.0).abs() < 0.1, "{name}, {block}, lambda {lambda:e}: order {order}, {points:?}");
            }
        }
    }
}

#[test]
fn the_objective_by_brute_force() {
    let s = 5;
    let mut stream = Stream(12);
    for (name, p) in all_forms(&mut stream) {
        let (m, n) = (p.rows(), p.cols());
        let xi: Vec<f64> = (0..m).map(|_| 10f64.powf(-4.0 * stream.next())).collect();
        let problem = Problem::new(p.as_ref(), &xi, 0.03).unwrap();
        let entries = formed(p.as_ref());
        let norm2: f64 = (0..m).map(|i| xi[i] * xi[i] * entries.row(i).iter().map(|p| p * p).sum::<f64>()).sum();
        assert!((problem.data_norm2 / norm2 - 1.0).abs() < 1e-13);
        for _ in 0..5 {
            let x = stream.factors_between(m, n, s);
            let product = outer(&x.u, &x.v);
            let fidelity: f64 =
                (0..m).map(|i| (0..n).map(|j| 0.5 * (xi[i] * (entries[(i, j)] - product[(i, j)])).powi(2)).sum::<f64>()).sum();
            let regularizer: f64 = (0..s).map(|j| column_length(&x.u, j) * column_length(&x.v, j)).sum();
            let found = problem.objective(&x);
            assert!((found.fidelity - fidelity).abs() < 1e-12 * fidelity, "{name}: {} against {fidelity}", found.fidelity);
            assert!((found.regularizer / regularizer - 1.0).abs() < 1e-13, "{name}");
            assert!((found.value / (fidelity + 0.03 * regularizer) - 1.0).abs() < 1e-12, "{name}");
        }
    }
}

#[test]
fn a_vanishing_residual_is_not_lost_in_cancellation() {
    let d = 70;
    let mut stream = Stream(13);
    let x = stream.factors(d, 3);
    let xi: Vec<f64> = (0..d).map(|_| 0.2 + stream.next()).collect();
    let entries = outer(&x.u, &x.v);
    let triplets: Vec<_> = (0..d * d).map(|k| ((k / d) as u32, (k % d) as u32, entries[(k / d, k % d)])).collect();
    let forms: [Box<dyn Operator>; 3] = [
        Box::new(LowRankOperator::new(x.u.clone(), x.v.clone()).unwrap()),
        Box::new(DenseOperator::new(entries.clone())),
        Box::new(SparseOperator::new(Csr::from_triplets(d, d, &triplets).unwrap(), vec![]).unwrap()),
    ];
    for p in forms {
        let problem = Problem::new(p.as_ref(), &xi, 1e-9).unwrap();
        let exact = problem.objective(&x).fidelity / problem.data_norm2;
        assert!((0.0..1e-25).contains(&exact), "{exact:e}");

        // A residual of known size, far below what the difference of large numbers could show.
        for tiny in [1e-6, 1e-8, 1e-10] {
            let mut near = x.clone();
            for i in 0..d {
                near.u[(i, 0)] += tiny;
                near.u[(i, 1)] -= tiny;
            }
            let gap2: f64 = (0..d).map(|j| (tiny * (x.v[(j, 0)] - x.v[(j, 1)])).powi(2)).sum();
            let expected = 0.5 * xi.iter().map(|w| w * w).sum::<f64>() * gap2;
            let found = problem.objective(&near).fidelity;
            assert!((found / expected - 1.0).abs() < 1e-3, "{tiny:e}: {found:e} against {expected:e}");
        }
    }
}
