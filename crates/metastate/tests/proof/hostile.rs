//! Families that were made up to hurt: nonnegative rank far above rank, all singular values equal or all of them different by orders, rows that differ in their last digits, counts of very
//! different size, nested supports.

use metastate::Mat;
use rand::RngExt;

use super::{Family, Triplets, divide_rows, entries, even, rng};

/// All of them.
pub const FAMILIES: [fn() -> Family; 12] =
    [disjointness, kronecker, hadamard, planes, staircase, hilbert, nearly_one, two_scales, tournament, half_graph, intervals, paley];

/// `(1 - |a and b|)^2` over all subsets a, b of n things: rank below `n^2`, nonnegative rank at least `1.5^n`.
fn disjointness() -> Family {
    let mut f = Family::new("disjointness");
    for n in 2..=6 {
        let d = 1usize << n;
        let p = Mat::from_fn(d, d, |a, b| (1.0 - f64::from((a & b).count_ones())).powi(2));
        f.given(format!("subsets of {n}"), p, even(d));
    }
    f
}

/// Chains of chains of chains: the same singular values again and again, at several scales.
fn kronecker() -> Family {
    let mut f = Family::new("kronecker");
    for (n, levels, stay) in [(2, 3, 0.9), (2, 5, 0.99), (3, 3, 0.8), (4, 3, 0.95), (2, 6, 0.6)] {
        let d = usize::pow(n, levels);
        let inside = |i: usize, j: usize| if i == j { stay } else { (1.0 - stay) / (n - 1) as f64 };
        let p = Mat::from_fn(d, d, |i, j| (0..levels).map(|l| inside(i / n.pow(l) % n, j / n.pow(l) % n)).product());
        f.given(format!("{n}^{levels}, stay {stay}"), p, even(d));
    }
    f
}

/// `1 + H` with the signs of Sylvester: every singular value but the first is the same.
fn hadamard() -> Family {
    let mut f = Family::new("hadamard");
    for n in 1..=6 {
        let d = 1usize << n;
        let p = Mat::from_fn(d, d, |i, j| if (i & j).count_ones() % 2 == 0 { 2.0 } else { 0.0 });
        f.given(format!("order {d}"), p.clone(), even(d));
        f.given(format!("order {d}, uneven"), p, (0..d).map(|i| 1.0 / (1.0 + i as f64)).collect());
    }
    f
}

/// Lines of a projective plane of prime order q by their points.
fn planes() -> Family {
    let mut f = Family::new("projective plane");
    for q in [2usize, 3, 5, 7] {
        let mut points: Vec<[usize; 3]> = vec![[0, 0, 1]];
        points.extend((0..q).map(|z| [0, 1, z]));
        points.extend((0..q).flat_map(|y| (0..q).map(move |z| [1, y, z])));
        let d = points.len();
        let on = |i: usize, j: usize| (0..3).map(|k| points[i][k] * points[j][k]).sum::<usize>().is_multiple_of(q);
        f.given(format!("order {q}"), Mat::from_fn(d, d, |i, j| f64::from(on(i, j))), even(d));
    }
    f
}

/// From state i to any state up to i.
fn staircase() -> Family {
    let mut f = Family::new("staircase");
    for (d, lean) in [(3, 0), (8, 1), (20, 0), (45, 2), (90, 0)] {
        let p = Mat::from_fn(d, d, |i, j| if j <= i { (1 + j).pow(lean) as f64 } else { 0.0 });
        f.given(format!("{d} steps, lean {lean}"), p, even(d));
    }
    f
}

/// `1 / (i + j + 1)`: singular values fall by an order each.
fn hilbert() -> Family {
    let mut f = Family::new("hilbert");
    for (d, power) in [(3, 1), (10, 1), (25, 4), (60, 2)] {
        f.given(format!("{d} states, power {power}"), Mat::from_fn(d, d, |i, j| ((1 + i + j) as f64).powi(-power)), even(d));
    }
    f
}

/// Rows that differ from one another by almost nothing.
fn nearly_one() -> Family {
    let mut f = Family::new("nearly one");
    for (d, off) in [(4, 1e-3), (10, 1e-6), (20, 1e-9), (40, 1e-12), (60, 1e-7)] {
        let mut rng = rng(d as u64);
        let law: Vec<f64> = (0..d).map(|_| 0.1 + rng.random::<f64>()).collect();
        f.given(format!("{d} states, off by {off}"), Mat::from_fn(d, d, |_, j| law[j] * (1.0 + off * rng.random::<f64>())), even(d));
    }
    f
}

/// Counts of one and counts of a billion in one table.
fn two_scales() -> Family {
    let mut f = Family::new("two scales");
    for (d, heavy) in [(5, 1e3), (12, 1e6), (30, 1e9), (70, 1e9)] {
        let mut rng = rng(d as u64);
        let mut t: Triplets = (0..d as u32).map(|i| (i, (i + 1) % d as u32, 1.0)).collect();
        for _ in 0..4 * d {
            let size = if rng.random::<f64>() < 0.1 { heavy } else { 1.0 };
            t.push((rng.random_range(0..d as u32), rng.random_range(0..d as u32), size));
        }
        f.counts(format!("{d} states, {heavy:e}"), d, &t);
        f.counts_half(format!("{d} states, {heavy:e}"), d, &t);
    }
    f
}

/// Of every two states one leads to the other.
fn tournament() -> Family {
    let mut f = Family::new("tournament");
    for d in [3, 7, 15, 40] {
        let mut rng = rng(d as u64);
        let mut p = Mat::zeros(d, d);
        for i in 0..d {
            p[(i, (i + 1) % d)] = 1.0;
            (i + 1..d).for_each(|j| if rng.random() { p[(i, j)] = 1.0 } else { p[(j, i)] = 1.0 });
        }
        f.counts(format!("{d} states"), d, &entries(&p));
    }
    f
}

/// Left i and right j are joined where i <= j.
fn half_graph() -> Family {
    let mut f = Family::new("half graph");
    for n in [2, 5, 12, 30] {
        let edges: Vec<_> = (0..n).flat_map(|i| (i..n).map(move |j| (i, n + j))).collect();
        f.graph(format!("{n} and {n}"), 2 * n, &edges);
    }
    f
}

/// Each state leads evenly to an interval of states; the intervals overlap.
fn intervals() -> Family {
    let mut f = Family::new("intervals");
    for (d, width) in [(6, 2), (15, 6), (40, 9), (80, 33)] {
        let mut rng = rng((d * width) as u64);
        let mut p = Mat::zeros(d, d);
        for i in 0..d {
            let (from, long) = (rng.random_range(0..d), rng.random_range(1..=width));
            (from..(from + long).min(d)).for_each(|j| p[(i, j)] = 1.0);
        }
        divide_rows(&mut p);
        f.given(format!("{d} states, up to {width}"), p, (0..d).map(|_| 0.1 + rng.random::<f64>()).collect());
    }
    f
}

/// Neighbours differ by a square modulo a prime: strongly regular, two singular values beside the first.
fn paley() -> Family {
    let mut f = Family::new("paley");
    for q in [5usize, 13, 29, 61] {
        let square = |x: usize| (1..q).any(|y| y * y % q == x);
        let edges: Vec<_> = (0..q).flat_map(|i| (i + 1..q).map(move |j| (i, j))).filter(|(i, j)| square(j - i)).collect();
        f.graph(format!("{q}"), q, &edges);
    }
    f
}
