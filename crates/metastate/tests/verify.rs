//! The checker itself, against values computed by brute force, and proofs that its checks can fail.

mod nuclear;

mod common;

use common::npz_array;
use metastate::verify::{BoundProof, Claimed, Reported, Witness, compare, recompute};
use metastate::{Csr, DenseOperator, Error, LowRankOperator, Mat, Operator, SparseOperator};

/// A stream of numbers in (0, 1).
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn simplex(&mut self, n: usize) -> Vec<f64> {
        let x: Vec<f64> = (0..n).map(|_| -self.next().ln()).collect();
        let sum: f64 = x.iter().sum();
        x.iter().map(|x| x / sum).collect()
    }

    /// U (rows sum to one) and V (columns sum to one).
    fn factors(&mut self, d: usize, s: usize) -> (Mat, Mat) {
        let rows: Vec<Vec<f64>> = (0..d).map(|_| self.simplex(s)).collect();
        let columns: Vec<Vec<f64>> = (0..s).map(|_| self.simplex(d)).collect();
        (Mat::from_fn(d, s, |i, j| rows[i][j]), Mat::from_fn(d, s, |i, j| columns[j][i]))
    }

    fn stochastic(&mut self, d: usize) -> Mat {
        let rows: Vec<Vec<f64>> = (0..d).map(|_| self.simplex(d)).collect();
        Mat::from_fn(d, d, |i, j| rows[i][j])
    }
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1e-300), "found {found:e}, expected {expected:e}");
}

/// `A B^T`, formed.
fn outer(a: &Mat, b: &Mat) -> Mat {
    Mat::from_fn(a.rows(), b.rows(), |i, j| (0..a.cols()).map(|k| a[(i, k)] * b[(j, k)]).sum())
}

fn column_length(m: &Mat, j: usize) -> f64 {
    m.column(j).iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn weighted_distance2(xi: &[f64], a: &Mat, b: &Mat) -> f64 {
    (0..a.rows()).map(|i| (0..a.cols()).map(|j| (xi[i] * (a[(i, j)] - b[(i, j)])).powi(2)).sum::<f64>()).sum()
}

/// mu, relLE1, relLE2 and W as the paper prints them, with X and the gradient formed.
fn by_the_book(p: &Mat, xi: &[f64], lambda: f64, u: &Mat, v: &Mat) -> (Vec<f64>, f64, f64, Mat) {
    let (d, s, x) = (p.rows(), u.cols(), outer(u, v));
    let gradient = Mat::from_fn(d, d, |i, j| xi[i] * xi[i] * (x[(i, j)] - p[(i, j)]));
    let gv = outer(&gradient, &v.transposed());
    let gu = outer(&gradient.transposed(), &u.transposed());
    let ratio: Vec<f64> = (0..s).map(|j| column_length(v, j) / column_length(u, j)).collect();
    let mut mu = vec![0.0; d];
    for i in 0..d {
        let (mut total, mut count) = (0.0, 0.0);
        for j in 0..s {
            if u[(i, j)] != 0.0 {
                total += lambda * u[(i, j)] * ratio[j] + gv[(i, j)];
                count += 1.0;
            }
        }
        mu[i] = total / count;
    }
    let (mut e1, mut s1, mut e2, mut s2) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..d {
        for j in 0..s {
            let (t1, t2) = (lambda * u[(i, j)] * ratio[j], lambda * v[(i, j)] / ratio[j]);
            let level: f64 = (0..d).map(|k| mu[k] * u[(k, j)]).sum();
            e1 += ((mu[i] - gv[(i, j)]).max(0.0) - t1).abs();
            e2 += ((level - gu[(i, j)]).max(0.0) - t2).abs();
            s1 += t1.abs();
            s2 += t2.abs();
        }
    }
    let w = Mat::from_fn(d, d, |i, j| (mu[i] - gradient[(i, j)]) / lambda);
    (mu, e1 / s1, e2 / s2, w)
}

#[test]
fn two_states_by_hand() {
    // P = [[0.9, 0.1], [0.2, 0.8]], one column: X = 1 v^T with v = (0.6, 0.4).
    let p = DenseOperator::new(Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8]).unwrap());
    let u = Mat::from_vec(2, 1, vec![1.0, 1.0]).unwrap();
    let v = Mat::from_vec(2, 1, vec![0.6, 0.4]).unwrap();
    let found = recompute(&Claimed { p: &p, weights: &[1.0, 2.0], lambda: 0.5, u: &u, v: &v }, None, Some(&p), 0).unwrap();
    assert_eq!(found.rank, 1);
    assert!(found.feasibility.worst() < 1e-15);
    // 1/2 (0.3^2 + 0.3^2) + 4/2 (0.4^2 + 0.4^2) = 0.09 + 0.64.
    close(found.fidelity, 0.73, 1e-14);
    close(found.regularizer, 2f64.sqrt() * 0.52f64.sqrt(), 1e-14);
    close(found.objective, 0.73 + 0.5 * 1.04f64.sqrt(), 1e-14);
    // 2 * 0.73 / (0.82 + 4 * 0.68).
    close(found.rel_re.unwrap(), 1.46 / 3.54, 1e-14);
    assert_eq!(found.rel_se, Some(0.0));

    // Omega° on a grid of the two quarter circles.
    let (_, le1, le2, w) = by_the_book(&Mat::from_vec(2, 2, vec![0.9, 0.1, 0.2, 0.8]).unwrap(), &[1.0, 2.0], 0.5, &u, &v);
    close(found.rel_le2, le2, 1e-12);
    assert!(found.rel_le1 < 1e-14 && le1 < 1e-14, "one membership a row satisfies its condition by the choice of mu");
    let mut omega = f64::NEG_INFINITY;
    for k in 0..=4000 {
        let (a, b) = (k as f64 / 4000.0 * std::f64::consts::FRAC_PI_2).sin_cos();
        let (x, y) = (w[(0, 0)] * a + w[(1, 0)] * b, w[(0, 1)] * a + w[(1, 1)] * b);
        omega = omega.max(if x <= 0.0 && y <= 0.0 { x.max(y) } else { x.max(0.0).hypot(y.max(0.0)) });
    }
    assert!((found.ge + 1.0 - omega).abs() < 1e-6 * omega, "{} {omega}", found.ge + 1.0);

    // The optimum over a fine grid of all rank-two points lies above the bound.
    let mut lowest = f64::INFINITY;
    let grid: Vec<f64> = (0..=20).map(|k| k as f64 / 20.0).collect();
    for &a in &grid {
        for &b in &grid {
            for &c in &grid {
                for &e in &grid {
                    let u = [[a, 1.0 - a], [b, 1.0 - b]];
                    let v = [[c, e], [1.0 - c, 1.0 - e]];
                    let x = |i: usize, j: usize| u[i][0] * v[j][0] + u[i][1] * v[j][1];
                    let fit = 0.5 * ((0.9 - x(0, 0)).powi(2) + (0.1 - x(0, 1)).powi(2))
                        + 2.0 * ((0.2 - x(1, 0)).powi(2) + (0.8 - x(1, 1)).powi(2));
                    let omega: f64 = (0..2).map(|k| u[0][k].hypot(u[1][k]) * v[0][k].hypot(v[1][k])).sum();
                    lowest = lowest.min(fit + 0.5 * omega);
                }
            }
        }
    }
    assert!(found.lower_bound <= lowest);
    assert!(found.lower_bound >= 0.98 * lowest, "bound {} of {lowest}", found.lower_bound);
}

#[test]
fn every_figure_by_brute_force() {
    let (d, s, lambda) = (30, 4, 0.02);
    let mut stream = Stream(1);
    let (p, truth) = (stream.stochastic(d), stream.stochastic(d));
    let xi: Vec<f64> = (0..d).map(|_| 0.2 + stream.next()).collect();
    let (mut u, v) = stream.factors(d, s);
    // Some memberships are zero, and one is a tiny leftover of a projection.
    for i in 0..10 {
        u[(i, 1)] += u[(i, 0)];
        u[(i, 0)] = 0.0;
    }
    u[(3, 0)] = 1e-13;
    let operator = DenseOperator::new(p.clone());
    let truth_operator = DenseOperator::new(truth.clone());
    let found = recompute(&Claimed { p: &operator, weights: &xi, lambda, u: &u, v: &v }, None, Some(&truth_operator), 7).unwrap();

    u[(3, 0)] = 0.0; // the book says "not zero"; the threshold must treat the leftover as zero
    let x = outer(&u, &v);
    let fidelity = 0.5 * weighted_distance2(&xi, &p, &x);
    let regularizer: f64 = (0..s).map(|j| column_length(&u, j) * column_length(&v, j)).sum();
    let objective = fidelity + lambda * regularizer;
    close(found.fidelity, fidelity, 1e-11);
    close(found.regularizer, regularizer, 1e-11);
    close(found.objective, objective, 1e-11);
    let (mu, le1, le2, w) = by_the_book(&p, &xi, lambda, &u, &v);
    close(found.rel_le1, le1, 1e-9);
    close(found.rel_le2, le2, 1e-9);

    // GE: no random pair of nonnegative unit vectors does better, and the norm of W is never passed.
    let wf = faer::Mat::from_fn(d, d, |i, j| w[(i, j)]);
    assert!(found.ge + 1.0 <= wf.singular_values().unwrap()[0] * (1.0 + 1e-12));
    for _ in 0..2000 {
        let (a, b) = (stream.simplex(d), stream.simplex(d));
        let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let value: f64 = (0..d).map(|i| a[i] * (0..d).map(|j| w[(i, j)] * b[j]).sum::<f64>()).sum();
        assert!(value / length(&a) / length(&b) <= found.ge + 1.0);
    }
    // relDG with the paper's printed g*.
    let pf = faer::Mat::from_fn(d, d, |i, j| p[(i, j)]);
    let m = faer::Mat::from_fn(d, d, |i, j| -lambda / (found.ge + 1.0) * w[(i, j)]);
    close(found.rel_dg, (objective + nuclear::conjugate(&pf, &xi, &m)) / objective, 1e-9);

    let zero = Mat::zeros(d, d);
    close(found.rel_re.unwrap(), weighted_distance2(&xi, &x, &truth) / weighted_distance2(&xi, &truth, &zero), 1e-11);
    close(found.rel_se.unwrap(), weighted_distance2(&xi, &p, &truth) / weighted_distance2(&xi, &truth, &zero), 1e-12);
    assert_eq!(mu.len(), d);
    assert_eq!(found.bound_proof, BoundProof::Dense);
    close(found.certified_gap, (found.objective - found.lower_bound) / found.objective, 1e-14);
}

#[test]
fn a_bound_from_one_point_holds_at_all_others() {
    let d = 30;
    let mut stream = Stream(2);
    let p = DenseOperator::new(stream.stochastic(d));
    let xi: Vec<f64> = (0..d).map(|_| 0.2 + stream.next()).collect();
    for lambda in [1.0, 0.1, 0.01, 1e-4] {
        let (mut bounds, mut objectives) = (Vec::new(), Vec::new());
        for k in 0..12 {
            let (u, v) = stream.factors(d, 1 + k % 6);
            let (a, b) = stream.factors(d, 3);
            let mu: Vec<f64> = (0..d).map(|_| lambda * (stream.next() - 0.5)).collect();
            let witness = (k % 2 == 0).then_some(Witness { a: &a, b: &b, mu: &mu, clip: None });
            let found = recompute(&Claimed { p: &p, weights: &xi, lambda, u: &u, v: &v }, witness, None, k as u64).unwrap();
            bounds.push(found.lower_bound);
            objectives.push(found.objective);
        }
        // And the memorising point X = P, which fits exactly at the price of d columns.
        let identity = Mat::from_fn(d, d, |i, j| if i == j { 1.0 } else { 0.0 });
        let rows = Mat::from_fn(d, d, |i, j| p_entry(&p, j, i));
        objectives.push(recompute(&Claimed { p: &p, weights: &xi, lambda, u: &identity, v: &rows }, None, None, 0).unwrap().objective);
        let (highest, lowest) = (bounds.iter().fold(0.0f64, |m, x| m.max(*x)), objectives.iter().fold(f64::INFINITY, |m, x| m.min(*x)));
        assert!(highest <= lowest, "lambda {lambda}: bound {highest} above objective {lowest}");
        assert!(highest > 0.0);
    }
}

fn p_entry(p: &dyn Operator, i: usize, j: usize) -> f64 {
    let mut entry = 0.0;
    p.row(i).for_each(p.rows(), |column, x| {
        if column == j {
            entry = x;
        }
    });
    entry
}

#[test]
fn a_huge_lambda_has_an_answer_that_is_proven() {
    let d = 20;
    let mut stream = Stream(3);
    let p = stream.stochastic(d);
    let xi: Vec<f64> = (0..d).map(|_| 0.5 + stream.next()).collect();
    let lambda = 50.0;
    // min over v of 1/2 sum_i xi_i^2 ||p_i - v||^2 + lambda sqrt(d) ||v||, sum v = 1; v stays positive.
    let total: f64 = xi.iter().map(|x| x * x).sum();
    let mean: Vec<f64> = (0..d).map(|j| (0..d).map(|i| xi[i] * xi[i] * p[(i, j)]).sum::<f64>()).collect();
    let mut v = vec![1.0 / d as f64; d];
    for _ in 0..20_000 {
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let slope: Vec<f64> = (0..d).map(|j| total * v[j] - mean[j] + lambda * (d as f64).sqrt() * v[j] / length).collect();
        let level = slope.iter().sum::<f64>() / d as f64;
        (0..d).for_each(|j| v[j] -= 1e-4 * (slope[j] - level));
    }
    let (u, v) = (Mat::from_fn(d, 1, |_, _| 1.0), Mat::from_vec(d, 1, v).unwrap());
    let found = recompute(&Claimed { p: &DenseOperator::new(p), weights: &xi, lambda, u: &u, v: &v }, None, None, 0).unwrap();
    assert!(found.rel_le1 < 1e-12 && found.rel_le2 < 1e-9, "{found:?}");
    assert!(found.ge.abs() < 1e-9, "{found:?}");
    assert!((-1e-13..1e-9).contains(&found.certified_gap), "{found:?}");
    assert!(found.rel_dg.abs() < 1e-9, "{found:?}");
}

#[test]
fn the_form_of_p_does_not_matter() {
    let (d, r) = (40, 3);
    let mut stream = Stream(4);
    let (left, right) = stream.factors(d, r);
    let dense = outer(&left, &right);
    let triplets: Vec<(u32, u32, f64)> =
        (0..d).flat_map(|i| (0..d).map(move |j| (i as u32, j as u32))).map(|(i, j)| (i, j, dense[(i as usize, j as usize)])).collect();
    let forms: [Box<dyn Operator>; 3] = [
        Box::new(DenseOperator::new(dense.clone())),
        Box::new(SparseOperator::new(Csr::from_triplets(d, d, &triplets).unwrap(), vec![]).unwrap()),
        Box::new(LowRankOperator::new(left, right).unwrap()),
    ];
    let xi: Vec<f64> = (0..d).map(|_| 0.2 + stream.next()).collect();
    let (u, v) = stream.factors(d, 3);
    let found: Vec<_> = forms
        .iter()
        .map(|p| recompute(&Claimed { p: p.as_ref(), weights: &xi, lambda: 0.05, u: &u, v: &v }, None, Some(forms[1].as_ref()), 0).unwrap())
        .collect();
    for other in &found[1..] {
        let claims = Reported { rel_se: None, ..Reported::from(&found[0]) };
        for check in compare(&claims, other) {
            assert!(check.agrees, "{check:?}");
        }
        assert!(other.rel_se.unwrap() < 1e-28);
    }

    // A uniform row that is implied equals one that is stored.
    let mut stored = dense;
    stored.row_mut(5).fill(1.0 / d as f64);
    let implied: Vec<_> = triplets.into_iter().filter(|t| t.0 != 5).collect();
    let implied = SparseOperator::new(Csr::from_triplets(d, d, &implied).unwrap(), vec![5]).unwrap();
    let stored = recompute(&Claimed { p: &DenseOperator::new(stored), weights: &xi, lambda: 0.05, u: &u, v: &v }, None, None, 0).unwrap();
    let implied = recompute(&Claimed { p: &implied, weights: &xi, lambda: 0.05, u: &u, v: &v }, None, None, 0).unwrap();
    assert!(compare(&Reported::from(&stored), &implied).iter().all(|c| c.agrees));
}

#[test]
fn a_state_without_weight_keeps_the_bound_finite() {
    let d = 12;
    let mut stream = Stream(8);
    let p = DenseOperator::new(stream.stochastic(d));
    let mut xi: Vec<f64> = (0..d).map(|_| 0.2 + stream.next()).collect();
    xi[4] = 0.0;
    let (u, v) = stream.factors(d, 2);
    let found = recompute(&Claimed { p: &p, weights: &xi, lambda: 0.01, u: &u, v: &v }, None, None, 0).unwrap();
    assert!(found.lower_bound > 0.0 && found.lower_bound <= found.objective, "{found:?}");
}

#[test]
fn every_check_can_fail() {
    let d = 25;
    let mut stream = Stream(5);
    let p = DenseOperator::new(stream.stochastic(d));
    let truth = DenseOperator::new(stream.stochastic(d));
    let xi: Vec<f64> = (0..d).map(|_| 0.2 + stream.next()).collect();
    let (u, v) = stream.factors(d, 3);
    let found = recompute(&Claimed { p: &p, weights: &xi, lambda: 0.05, u: &u, v: &v }, None, Some(&truth), 0).unwrap();
    let honest = Reported::from(&found);
    // Random factors explain less than one meta-state does: there is no explained gap to state.
    assert_eq!((compare(&honest, &found).len(), honest.explained_gap), (15, None));
    assert!(compare(&honest, &found).iter().all(|c| c.agrees));
    assert_eq!(compare(&Reported::default(), &found).len(), 1, "only the constraints are checked when nothing is claimed");

    // A change by a thousandth: in either direction where there is one right value, to the better where there is a search.
    let change = |x: Option<f64>, by: f64| x.map(|x| x + by * x.abs());
    let lies: Vec<(&str, Reported)> = [1e-3, -1e-3]
        .into_iter()
        .flat_map(|by| {
            [
                ("fidelity", Reported { fidelity: change(honest.fidelity, by), ..honest }),
                ("regularizer", Reported { regularizer: change(honest.regularizer, by), ..honest }),
                ("objective", Reported { objective: change(honest.objective, by), ..honest }),
                ("objective_of_one", Reported { objective_of_one: change(honest.objective_of_one, by), ..honest }),
                ("explained_gap as stated", Reported { explained_gap: Some(by), ..honest }),
                ("rel_le1", Reported { rel_le1: change(honest.rel_le1, by), ..honest }),
                ("rel_le2", Reported { rel_le2: change(honest.rel_le2, by), ..honest }),
                ("rel_re", Reported { rel_re: change(honest.rel_re, by), ..honest }),
                ("rel_se", Reported { rel_se: change(honest.rel_se, by), ..honest }),
            ]
        })
        .chain([
            ("rank", Reported { rank: Some(2), ..honest }),
            ("ge", Reported { ge: Some(found.ge_of_columns - 1e-3), ..honest }),
            ("rel_dg", Reported { rel_dg: change(honest.rel_dg, -1e-3), ..honest }),
            ("lower_bound", Reported { lower_bound: change(honest.lower_bound, 1e-3), ..honest }),
            ("certified_gap", Reported { certified_gap: change(honest.certified_gap, -1e-3), ..honest }),
            ("objective", Reported { objective: Some(f64::NAN), ..honest }),
            ("lower_bound", Reported { lower_bound: Some(f64::NAN), ..honest }),
            ("ge", Reported { ge: Some(f64::NAN), ..honest }),
        ])
        .collect();
    for (name, lie) in lies {
        let failed: Vec<_> = compare(&lie, &found).into_iter().filter(|c| !c.agrees).map(|c| c.name).collect();
        // The gap as stated follows from objective and bound, and relDG from GE: those fail together.
        let together = ["certified_gap as stated", "rel_dg"];
        assert!(failed.contains(&name) && failed.iter().all(|f| *f == name || together.contains(f)), "{name}: {failed:?}");
    }

    // A claim that cannot be recomputed does not stand.
    let no_truth = recompute(&Claimed { p: &p, weights: &xi, lambda: 0.05, u: &u, v: &v }, None, None, 0).unwrap();
    assert!(compare(&honest, &no_truth).iter().any(|c| c.name == "rel_re" && !c.agrees));

    // Constraints: a row sum, a column sum, a sign.
    let flagged = |u: &Mat, v: &Mat| {
        let found = recompute(&Claimed { p: &p, weights: &xi, lambda: 0.05, u, v }, None, None, 0).unwrap();
        let checks = compare(&Reported::default(), &found);
        (!checks[0].agrees, found.feasibility)
    };
    let mut bad = u.clone();
    bad[(7, 1)] += 1e-3;
    let (caught, how) = flagged(&bad, &v);
    assert!(caught && (how.row_sum_error - 1e-3).abs() < 1e-12 && how.column_sum_error < 1e-12);
    let mut bad = v.clone();
    bad[(7, 1)] += 1e-3;
    let (caught, how) = flagged(&u, &bad);
    assert!(caught && (how.column_sum_error - 1e-3).abs() < 1e-12);
    let mut bad = u.clone();
    bad[(7, 0)] += bad[(7, 1)] + 1e-3;
    bad[(7, 1)] = -1e-3;
    let (caught, how) = flagged(&bad, &v);
    assert!(caught && (how.most_negative + 1e-3).abs() < 1e-15 && how.row_sum_error < 1e-12);
}

#[test]
fn wrong_input_is_refused_by_name() {
    let d = 6;
    let mut stream = Stream(6);
    let dense = stream.stochastic(d);
    let p = DenseOperator::new(dense.clone());
    let xi = vec![1.0; d];
    let (u, v) = stream.factors(d, 2);
    let (u5, v5) = stream.factors(5, 2);
    let (u3, _) = stream.factors(d, 3);
    let code = |p: &dyn Operator, xi: &[f64], lambda: f64, u: &Mat, v: &Mat, w: Option<Witness>, t: Option<&dyn Operator>| {
        recompute(&Claimed { p, weights: xi, lambda, u, v }, w, t, 0).map_err(|e| e.code())
    };
    assert!(code(&p, &xi, 0.1, &u, &v, None, None).is_ok());
    assert_eq!(code(&p, &xi[1..], 0.1, &u, &v, None, None), Err("E-DATA-SIZE"));
    assert_eq!(code(&p, &xi, 0.1, &u5, &v, None, None), Err("E-DATA-SIZE"));
    assert_eq!(code(&p, &xi, 0.1, &u, &v5, None, None), Err("E-DATA-SIZE"));
    assert_eq!(code(&p, &xi, 0.1, &u3, &v, None, None), Err("E-DATA-SIZE"));
    assert_eq!(code(&p, &xi, 0.1, &Mat::zeros(d, 0), &Mat::zeros(d, 0), None, None), Err("E-DATA-EMPTY"));
    for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(code(&p, &xi, lambda, &u, &v, None, None), Err("E-SETTING"));
    }
    let witness = |mu| Some(Witness { a: &u, b: &v, mu, clip: None });
    assert_eq!(code(&p, &xi, 0.1, &u, &v, witness(&xi[1..]), None), Err("E-DATA-SIZE"));
    assert_eq!(code(&p, &xi, 0.1, &u, &v, witness(&[f64::NAN; 6]), None), Err("E-DATA-NOT-FINITE"));
    assert_eq!(code(&p, &[1.0, 1.0, -1.0, 1.0, 1.0, 1.0], 0.1, &u, &v, None, None), Err("E-DATA-NEGATIVE"));
    let mut broken = u.clone();
    broken[(2, 1)] = f64::NAN;
    assert_eq!(code(&p, &xi, 0.1, &broken, &v, None, None), Err("E-DATA-NOT-FINITE"));
    let mut broken = dense;
    broken[(2, 1)] = f64::INFINITY;
    assert_eq!(code(&DenseOperator::new(broken), &xi, 0.1, &u, &v, None, None), Err("E-DATA-NOT-FINITE"));
    let small = DenseOperator::new(stream.stochastic(5));
    assert_eq!(code(&p, &xi, 0.1, &u, &v, None, Some(&small)), Err("E-DATA-SIZE"));
    let low = LowRankOperator::new(u.clone(), Mat::from_fn(d, 2, |_, _| f64::NAN)).unwrap();
    assert_eq!(code(&low, &xi, 0.1, &u, &v, None, None), Err("E-DATA-NOT-FINITE"));
    let empty = DenseOperator::new(Mat::zeros(0, 0));
    let none = Mat::zeros(0, 1);
    assert!(matches!(
        recompute(&Claimed { p: &empty, weights: &[], lambda: 0.1, u: &none, v: &none }, None, None, 0),
        Err(Error::Empty { .. })
    ));
    // Absurd sizes of numbers are no reason to panic.
    let huge = Mat::from_fn(d, 2, |_, _| 1e200);
    let _ = recompute(&Claimed { p: &p, weights: &xi, lambda: 1e-300, u: &huge, v: &huge }, None, None, 0);
    let _ = recompute(&Claimed { p: &p, weights: &vec![0.0; d], lambda: 0.1, u: &u, v: &v }, None, None, 0).unwrap();
}

/// Instance, lambda, and the objective of a feasible point from an independent implementation.
const OPTIMA: [(&str, f64, f64); 12] = [
    ("exact-60", 0.0001493, 0.00018653688066738519),
    ("exact-60", 1.493e-05, 2.2696023392685058e-05),
    ("exact-60", 1.493e-06, 2.3993404256051526e-06),
    ("exact-200", 1.081e-05, 1.3849017555909592e-05),
    ("exact-200", 1.081e-06, 1.7674036166362168e-06),
    ("exact-200", 1.081e-07, 1.8541953282851874e-07),
    ("noisy-60", 0.0001486, 0.00019671383802462246),
    ("noisy-60", 1.486e-05, 3.2276857892768246e-05),
    ("noisy-60", 1.486e-06, 5.0376694354461876e-06),
    ("noisy-150", 1.856e-05, 2.6613348514864965e-05),
    ("noisy-150", 1.856e-06, 4.989290439304681e-06),
    ("noisy-150", 1.856e-07, 1.2855923353130435e-06),
];

/// P and xi.
fn reference(name: &str) -> Option<(Mat, Vec<f64>)> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference").join(format!("{name}.npz"));
    if name.starts_with("exact") {
        let xi = npz_array(&path, "xi")?;
        return Some((Mat::from_vec(xi.len(), xi.len(), npz_array(&path, "P")?).ok()?, xi));
    }
    let counts = npz_array(&path, "counts")?;
    let d = counts.len().isqrt();
    let sums: Vec<f64> = counts.chunks_exact(d).map(|row| row.iter().sum()).collect();
    let total: f64 = sums.iter().sum();
    Some((Mat::from_fn(d, d, |i, j| counts[i * d + j] / sums[i]), sums.iter().map(|s| s / total).collect()))
}

#[test]
fn bounds_on_the_reference_instances_stay_below_known_objectives() {
    let mut stream = Stream(9);
    for (name, lambda, upper) in OPTIMA {
        let Some((p, xi)) = reference(name) else {
            println!("skipped: the reference instances are not here");
            return;
        };
        let d = p.rows();
        let operator = DenseOperator::new(p);
        let (u, v) = stream.factors(d, 3);
        let found = recompute(&Claimed { p: &operator, weights: &xi, lambda, u: &u, v: &v }, None, None, 0).unwrap();
        println!("{name} {lambda:e}: bound {:.4e} = {:.4} of the optimum", found.lower_bound, found.lower_bound / upper);
        assert!(found.lower_bound <= upper * (1.0 + 1e-12), "{name} {lambda}: {} > {upper}", found.lower_bound);
        assert!(found.lower_bound > 0.0);
        assert!(found.objective >= upper * (1.0 - 1e-12));
    }
}
