//! Families of chains on which a proof may break: symmetric ones, degenerate ones, planted ones, noisy ones.
//!
//! Symmetry is what hurts most. Many equal singular values make a small Krylov space, ties between supports, and optima that no
//! local search leaves. Each family is a list of chains of different sizes; nothing here is random but by the seeds written down.

use std::f64::consts::PI;

use metastate::simulate::{planted, planted_groups};
use metastate::{Chain, Counts, Estimate, Given, Mat, StateIndex, WeightPower};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "hostile.rs"]
mod hostile;

/// A chain with a name by which it can be made again.
pub struct Instance {
    pub family: &'static str,
    pub name: String,
    pub chain: Chain,
}

/// One count matrix, entry by entry.
type Triplets = Vec<(u32, u32, f64)>;

/// A family under construction.
struct Family {
    name: &'static str,
    members: Vec<Instance>,
}

impl Family {
    fn new(name: &'static str) -> Self {
        Family { name, members: Vec::new() }
    }

    fn add(&mut self, name: String, chain: Chain) {
        self.members.push(Instance { family: self.name, name: format!("{} {name}", self.name), chain });
    }

    /// From counts, weights by departures.
    fn counts(&mut self, name: String, d: usize, triplets: &Triplets) {
        let counts = Counts::from_triplets(StateIndex::numbered(d), triplets).expect("counts of a family");
        self.add(name, Chain::estimate(&counts, &Estimate::default()).expect("chain of a family"));
    }

    /// The same with each transition counted once, `xi^(1/2)`.
    fn counts_half(&mut self, name: String, d: usize, triplets: &Triplets) {
        let counts = Counts::from_triplets(StateIndex::numbered(d), triplets).expect("counts of a family");
        let options = Estimate { weight_power: WeightPower::Half, ..Estimate::default() };
        self.add(format!("{name}, half power"), Chain::estimate(&counts, &options).expect("chain of a family"));
    }

    /// From edges without direction, one count each way.
    fn graph(&mut self, name: String, d: usize, edges: &[(usize, usize)]) {
        self.counts(name, d, &both_ways(edges));
    }

    /// From a nonnegative matrix, every entry stored; rows are divided by their sums.
    fn given(&mut self, name: String, mut p: Mat, xi: Vec<f64>) {
        divide_rows(&mut p);
        self.add(name, Chain::from_dense(p, Given::weights(xi)).expect("chain of a family"));
    }
}

fn both_ways(edges: &[(usize, usize)]) -> Triplets {
    edges.iter().flat_map(|&(i, j)| [(i as u32, j as u32, 1.0), (j as u32, i as u32, 1.0)]).collect()
}

fn divide_rows(p: &mut Mat) {
    for i in 0..p.rows() {
        let sum: f64 = p.row(i).iter().sum();
        p.row_mut(i).iter_mut().for_each(|x| *x /= sum);
    }
}

fn even(d: usize) -> Vec<f64> {
    vec![1.0; d]
}

fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// All positive entries of a matrix of counts.
fn entries(m: &Mat) -> Triplets {
    let all = (0..m.rows()).flat_map(|i| (0..m.cols()).map(move |j| (i as u32, j as u32, m[(i, j)])));
    all.filter(|(_, _, n)| *n > 0.0).collect()
}

fn star() -> Family {
    let mut f = Family::new("star");
    for leaves in [2, 5, 12, 20, 30, 39, 60, 99] {
        let edges: Vec<_> = (1..=leaves).map(|i| (0, i)).collect();
        f.graph(format!("{leaves} leaves"), leaves + 1, &edges);
    }
    let edges: Vec<_> = (1..=30).map(|i| (0, i)).collect();
    f.counts_half("30 leaves".into(), 31, &both_ways(&edges));
    f
}

fn bipartite() -> Family {
    let mut f = Family::new("bipartite");
    for (a, b) in [(2, 2), (2, 5), (5, 5), (3, 17), (10, 20), (4, 50)] {
        let edges: Vec<_> = (0..a).flat_map(|i| (0..b).map(move |j| (i, a + j))).collect();
        f.graph(format!("{a} and {b}"), a + b, &edges);
    }
    f
}

/// Every pair within a block `inside` times, a link of one count from each block to the next.
fn blocks_of(sizes: &[usize], inside: f64) -> (usize, Triplets) {
    let starts: Vec<usize> = sizes.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
    let mut t = Triplets::new();
    for (&first, &n) in starts.iter().zip(sizes) {
        for i in first..first + n {
            t.extend((first..first + n).map(|j| (i as u32, j as u32, inside)));
        }
    }
    for k in 0..starts.len() {
        let (a, b) = (starts[k] as u32, starts[(k + 1) % starts.len()] as u32);
        t.extend([(a, b, 1.0), (b, a, 1.0)]);
    }
    (sizes.iter().sum(), t)
}

fn block() -> Family {
    let mut f = Family::new("block");
    let shapes: [&[usize]; 8] = [&[3, 3], &[2, 9], &[5, 5, 5], &[4, 4, 4, 4], &[2, 4, 8, 16], &[7; 5], &[6; 6], &[1, 3, 9, 27, 30]];
    for (k, sizes) in shapes.into_iter().enumerate() {
        let inside = [1.0, 10.0, 100.0][k % 3];
        let (d, t) = blocks_of(sizes, inside);
        f.counts(format!("{sizes:?}, {inside} within"), d, &t);
    }
    let (d, t) = blocks_of(&[5, 10, 20], 10.0);
    f.counts_half("[5, 10, 20], 10 within".into(), d, &t);
    f
}

fn tree() -> Family {
    let mut f = Family::new("tree");
    for depth in 1..=5 {
        let d = (1 << (depth + 1)) - 1;
        let edges: Vec<_> = (1..d).map(|i| ((i - 1) / 2, i)).collect();
        f.graph(format!("binary, depth {depth}"), d, &edges);
    }
    for d in [8, 25, 60] {
        let mut rng = rng(d as u64);
        let edges: Vec<_> = (1..d).map(|i| (rng.random_range(0..i), i)).collect();
        f.graph(format!("random, {d} states"), d, &edges);
    }
    f
}

fn ring() -> Family {
    let mut f = Family::new("ring");
    for d in [3, 4, 6, 9, 16, 33, 64] {
        f.graph(format!("{d}"), d, &(0..d).map(|i| (i, (i + 1) % d)).collect::<Vec<_>>());
    }
    f
}

fn path() -> Family {
    let mut f = Family::new("path");
    for d in [2, 3, 5, 10, 21, 48] {
        f.graph(format!("{d}"), d, &(1..d).map(|i| (i - 1, i)).collect::<Vec<_>>());
    }
    f
}

/// `A B^T` with small whole numbers.
fn low_rank_integers(d: usize, r: usize, most: u32, seed: u64) -> Mat {
    let mut rng = rng(seed);
    let mut draw = |_: usize, _: usize| f64::from(rng.random_range(0..=most));
    let (a, b) = (Mat::from_fn(d, r, &mut draw), Mat::from_fn(d, r, &mut draw));
    // One more in the first column keeps every row and column alive.
    Mat::from_fn(d, d, |i, j| (0..r).map(|k| (a[(i, k)] + f64::from(k == 0)) * (b[(j, k)] + f64::from(k == 0))).sum())
}

fn integers() -> Family {
    let mut f = Family::new("low-rank integers");
    for (d, r, most) in [(5, 2, 1), (8, 2, 3), (12, 3, 1), (20, 4, 2), (35, 5, 4), (60, 3, 1), (100, 6, 2)] {
        f.counts(format!("{d} states, rank {r}"), d, &entries(&low_rank_integers(d, r, most, (d * r) as u64)));
    }
    f
}

/// Poisson counts with the given means.
fn poisson_of(means: &Mat, scale: f64, seed: u64) -> Mat {
    let mut rng = rng(seed);
    let mut m = Mat::from_fn(means.rows(), means.cols(), |i, j| {
        let mean = scale * means[(i, j)];
        if mean > 0.0 { Poisson::new(mean).expect("a positive mean").sample(&mut rng) } else { 0.0 }
    });
    // Nobody is left without a transition.
    (0..m.rows()).for_each(|i| m[(i, i)] += f64::from(m.row(i).iter().all(|x| *x == 0.0)));
    m
}

fn poisson() -> Family {
    let mut f = Family::new("poisson");
    for (d, r, scale) in [(6, 2, 0.3), (10, 2, 3.0), (16, 3, 0.5), (24, 4, 1.0), (40, 3, 0.2), (70, 5, 2.0), (100, 4, 0.1)] {
        let m = poisson_of(&low_rank_integers(d, r, 2, d as u64), scale, 7);
        f.counts(format!("{d} states, rank {r}, scale {scale}"), d, &entries(&m));
    }
    let m = poisson_of(&low_rank_integers(24, 3, 2, 5), 0.7, 8);
    f.counts_half("24 states, rank 3, scale 0.7".into(), 24, &entries(&m));
    f
}

fn clique(first: usize, n: usize) -> Vec<(usize, usize)> {
    (first..first + n).flat_map(|i| (i + 1..first + n).map(move |j| (i, j))).collect()
}

fn lollipop() -> Family {
    let mut f = Family::new("lollipop");
    for (head, tail) in [(3, 2), (5, 5), (10, 10), (20, 8), (12, 40)] {
        let mut edges = clique(0, head);
        edges.extend((head..head + tail).map(|i| (i - 1, i)));
        f.graph(format!("{head} and {tail}"), head + tail, &edges);
    }
    f
}

fn barbell() -> Family {
    let mut f = Family::new("barbell");
    for (bell, bar) in [(3, 0), (4, 2), (8, 0), (10, 5), (25, 3)] {
        let mut edges = clique(0, bell);
        edges.extend(clique(bell + bar, bell));
        edges.extend((bell..=bell + bar).map(|i| (i - 1, i)));
        f.graph(format!("{bell}, bar {bar}"), 2 * bell + bar, &edges);
    }
    f
}

fn torus() -> Family {
    let mut f = Family::new("torus");
    for (a, b) in [(3, 3), (4, 4), (3, 7), (6, 6), (8, 9)] {
        let at = |i: usize, j: usize| (i % a) * b + j % b;
        let cells = (0..a).flat_map(|i| (0..b).map(move |j| (i, j)));
        let edges: Vec<_> = cells.flat_map(|(i, j)| [(at(i, j), at(i + 1, j)), (at(i, j), at(i, j + 1))]).collect();
        f.graph(format!("{a} by {b}"), a * b, &edges);
    }
    f
}

fn wheel() -> Family {
    let mut f = Family::new("wheel");
    for rim in [3, 6, 13, 29, 60] {
        let edges: Vec<_> = (1..=rim).flat_map(|i| [(0, i), (i, i % rim + 1)]).collect();
        f.graph(format!("{rim} on the rim"), rim + 1, &edges);
    }
    f
}

/// Some transitions out of every state, drawn at random, and a cycle so that all hang together.
fn digraph_of(d: usize, degree: usize, most: u32, seed: u64) -> Triplets {
    let mut rng = rng(seed);
    let mut t: Triplets = (0..d).map(|i| (i as u32, ((i + 1) % d) as u32, 1.0)).collect();
    for i in 0..d as u32 {
        t.extend((0..degree).map(|_| (i, rng.random_range(0..d as u32), f64::from(rng.random_range(1..=most)))));
    }
    t
}

fn digraph() -> Family {
    let mut f = Family::new("sparse digraph");
    for (d, degree, most) in [(5, 1, 1), (11, 2, 5), (20, 2, 1), (30, 3, 50), (50, 1, 1), (90, 4, 9)] {
        f.counts(format!("{d} states, degree {degree}"), d, &digraph_of(d, degree, most, d as u64));
    }
    f.counts_half("30 states, degree 2".into(), 30, &digraph_of(30, 2, 9, 1));
    f
}

fn periodic() -> Family {
    let mut f = Family::new("nearly periodic");
    for (d, period, slip) in [(4, 4, 1e-2), (9, 3, 1e-3), (12, 4, 0.1), (20, 5, 1e-6), (40, 2, 1e-2)] {
        // Phase k leads evenly to phase k + 1; a small share goes anywhere.
        let in_phase = (d / period) as f64;
        let p = Mat::from_fn(d, d, |i, j| slip / d as f64 + if (i + 1) % period == j % period { (1.0 - slip) / in_phase } else { 0.0 });
        f.given(format!("{d} states, period {period}, slip {slip}"), p, even(d));
    }
    for d in [7, 15] {
        let t: Triplets = (0..d as u32).flat_map(|i| [(i, (i + 1) % d as u32, 100.0), (i, i, 1.0)]).collect();
        f.counts(format!("cycle of {d}, hesitating"), d, &t);
    }
    f
}

fn sink() -> Family {
    let mut f = Family::new("sink");
    for (d, back) in [(3, 1.0), (6, 1e-2), (12, 1.0), (25, 1e-3), (50, 0.1)] {
        // All states drift to the last one, which hardly lets go.
        let last = d as u32 - 1;
        let mut t: Triplets = (0..last).flat_map(|i| [(i, i + 1, 2.0), (i, i, 1.0), (i, last, 1.0)]).collect();
        t.extend([(last, last, 1e3), (last, 0, back)]);
        f.counts(format!("{d} states, {back} back"), d, &t);
    }
    f
}

fn hubs() -> Family {
    let mut f = Family::new("hub of hubs");
    for (hubs, leaves) in [(2, 2), (3, 4), (5, 5), (4, 12), (9, 9)] {
        let hub = |h: usize| 1 + h * (leaves + 1);
        let edges: Vec<_> =
            (0..hubs).flat_map(|h| std::iter::once((0, hub(h))).chain((1..=leaves).map(move |l| (hub(h), hub(h) + l)))).collect();
        f.graph(format!("{hubs} with {leaves} leaves each"), hub(hubs), &edges);
    }
    f
}

fn hypercube() -> Family {
    let mut f = Family::new("hypercube");
    for n in 1..=6 {
        let d = 1 << n;
        let edges: Vec<_> = (0..d).flat_map(|i| (0..n).map(move |b| (i, i ^ (1 << b)))).filter(|(i, j)| i < j).collect();
        f.graph(format!("dimension {n}"), d, &edges);
    }
    f
}

fn kneser() -> Family {
    let mut f = Family::new("kneser");
    for n in [5, 6, 8] {
        // Pairs of n things; two pairs are neighbours when they share nothing. n = 5 is the Petersen graph.
        let pairs = clique(0, n);
        let apart = |a: &(usize, usize), b: &(usize, usize)| a.0 != b.0 && a.0 != b.1 && a.1 != b.0 && a.1 != b.1;
        let edges: Vec<_> = clique(0, pairs.len()).into_iter().filter(|&(i, j)| apart(&pairs[i], &pairs[j])).collect();
        f.graph(format!("pairs of {n}"), pairs.len(), &edges);
    }
    for couples in [2, 3, 8, 20] {
        let edges: Vec<_> = clique(0, 2 * couples).into_iter().filter(|(i, j)| i / 2 != j / 2).collect();
        f.graph(format!("everybody but the partner, {couples} couples"), 2 * couples, &edges);
    }
    f
}

/// A permutation, drawn at random.
fn shuffled(d: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut order: Vec<usize> = (0..d).collect();
    (1..d).for_each(|i| order.swap(i, rng.random_range(0..=i)));
    order
}

fn permutation() -> Family {
    let mut f = Family::new("permutation");
    for (d, noise) in [(3, 0.0), (6, 1e-3), (10, 0.1), (20, 0.5), (40, 1e-2)] {
        let mut rng = rng(d as u64);
        let to = shuffled(d, &mut rng);
        let p = Mat::from_fn(d, d, |i, j| {
            let drawn: f64 = Exp1.sample(&mut rng);
            noise * drawn / d as f64 + f64::from(to[i] == j)
        });
        f.given(format!("{d} states, noise {noise}"), p, even(d));
    }
    f
}

fn lazy() -> Family {
    let mut f = Family::new("lazy");
    for (d, noise) in [(2, 0.1), (5, 1e-2), (12, 1.0), (25, 1e-4), (50, 0.3)] {
        let mut rng = rng(d as u64);
        let p = Mat::from_fn(d, d, |i, j| {
            let drawn: f64 = Exp1.sample(&mut rng);
            noise * drawn / d as f64 + f64::from(i == j)
        });
        let xi = (0..d).map(|_| 0.1 + rng.random::<f64>()).collect();
        f.given(format!("{d} states, noise {noise}"), p, xi);
    }
    f.given("8 states, the identity".into(), Mat::from_fn(8, 8, |i, j| f64::from(i == j)), even(8));
    f
}

/// Rows near rank r.
fn noisy_rows(d: usize, r: usize, noise: f64, rng: &mut Xoshiro256PlusPlus) -> Mat {
    let mut draw = |rows: usize, cols: usize| {
        let mut m = Mat::from_fn(rows, cols, |_, _| Exp1.sample(rng));
        divide_rows(&mut m);
        m
    };
    let (u, v, rest) = (draw(d, r), draw(r, d), draw(d, d));
    Mat::from_fn(d, d, |i, j| (1.0 - noise) * (0..r).map(|k| u[(i, k)] * v[(k, j)]).sum::<f64>() + noise * rest[(i, j)])
}

fn heavy() -> Family {
    let mut f = Family::new("heavy");
    for (d, orders) in [(4, 6.0), (10, 6.0), (20, 3.0), (30, 6.0), (60, 6.0)] {
        let mut rng = rng(d as u64);
        let p = noisy_rows(d, 3, 0.2, &mut rng);
        let xi = (0..d).map(|_| 10f64.powf(-orders * rng.random::<f64>())).collect();
        f.given(format!("{d} states over {orders} orders"), p, xi);
    }
    for d in [8, 25] {
        // One state is nearly all of the data.
        let p = noisy_rows(d, 2, 0.3, &mut rng(d as u64));
        f.given(format!("one of {d}"), p, (0..d).map(|i| if i == 0 { 1.0 } else { 1e-6 }).collect());
    }
    f
}

fn duplicates() -> Family {
    let mut f = Family::new("duplicates");
    for (kinds, copies) in [(2, 2), (3, 3), (4, 6), (5, 12), (3, 30)] {
        let m = low_rank_integers(kinds, kinds, 4, (kinds * copies) as u64);
        let d = kinds * copies;
        f.counts(format!("{copies} copies of {kinds}"), d, &entries(&Mat::from_fn(d, d, |i, j| m[(i % kinds, j % kinds)])));
    }
    f
}

fn soft() -> Family {
    let mut f = Family::new("planted, exact");
    for (d, r) in [(4, 2), (10, 2), (20, 3), (40, 4), (70, 5), (100, 3)] {
        let truth = planted(d, r, (d + r) as u64).expect("a planted chain");
        f.add(format!("{d} states, {r} hidden"), truth.chain().expect("a planted chain"));
    }
    // The same, every entry stored: the low rank is there and nobody says so.
    let truth = planted(30, 3, 4).expect("a planted chain");
    let p = Mat::from_fn(30, 30, |i, j| (0..3).map(|k| truth.u[(i, k)] * truth.v[(j, k)]).sum());
    f.given("30 states, 3 hidden, dense".into(), p, truth.xi);
    f
}

fn sampled() -> Family {
    let mut f = Family::new("planted, sampled");
    for (d, r, a_state) in [(5, 2, 20), (12, 2, 10), (25, 3, 100), (50, 4, 30), (100, 5, 200)] {
        let truth = planted(d, r, d as u64).expect("a planted chain");
        let counts = truth.sample_counts((d * a_state) as u64, 3).expect("a walk");
        f.add(format!("{d} states, {r} hidden, {a_state} a state"), Chain::estimate(&counts, &Estimate::default()).expect("a chain"));
    }
    f
}

fn groups() -> Family {
    let mut f = Family::new("planted groups");
    for (d, g, a_row) in [(8, 2, 5), (20, 3, 8), (45, 5, 20), (80, 4, 10), (100, 8, 50)] {
        let drawn = planted_groups(d, g, a_row, d as u64).expect("planted groups");
        f.add(format!("{d} states in {g}, {a_row} a row"), Chain::estimate(&drawn.counts, &Estimate::default()).expect("a chain"));
    }
    f
}

fn anchors() -> Family {
    let mut f = Family::new("anchors");
    for (d, r) in [(5, 2), (12, 3), (24, 4), (48, 6), (80, 3)] {
        // The first r states belong to one meta-state each and each destination profile has a place of its own.
        let mut rng = rng((d * r) as u64);
        let mut u = Mat::from_fn(d, r, |i, k| if i < r { f64::from(i == k) } else { Exp1.sample(&mut rng) });
        let mut v = Mat::from_fn(r, d, |k, j| if j < r { f64::from(j == k) } else { Exp1.sample(&mut rng) });
        divide_rows(&mut u);
        divide_rows(&mut v);
        let p = Mat::from_fn(d, d, |i, j| (0..r).map(|k| u[(i, k)] * v[(k, j)]).sum());
        f.given(format!("{d} states, {r} anchors"), p, (0..d).map(|_| 0.2 + rng.random::<f64>()).collect());
    }
    f
}

fn checkerboard() -> Family {
    let mut f = Family::new("checkerboard");
    for (d, dark, light) in [(4, 1.0, 0.0), (7, 3.0, 1.0), (16, 5.0, 0.0), (32, 10.0, 9.0), (64, 2.0, 0.0)] {
        let m = Mat::from_fn(d, d, |i, j| if (i + j) % 2 == 0 { dark } else { light });
        f.counts(format!("{d} states, {dark} and {light}"), d, &entries(&m));
    }
    f
}

fn rank_one() -> Family {
    let mut f = Family::new("rank one");
    for d in [2, 5, 17, 50] {
        f.counts(format!("{d} states, even"), d, &entries(&Mat::from_fn(d, d, |_, _| 3.0)));
        f.counts(format!("{d} states, uneven"), d, &entries(&Mat::from_fn(d, d, |i, j| ((1 + i % 5) * (1 + j * j % 7)) as f64)));
    }
    f
}

fn halves() -> Family {
    let mut f = Family::new("two halves");
    for n in [1, 3, 7, 15, 30] {
        let mut t = entries(&low_rank_integers(n, 1, 2, n as u64));
        let other = entries(&low_rank_integers(n, 2.min(n), 3, 3 + n as u64));
        t.extend(other.into_iter().map(|(i, j, x)| (i + n as u32, j + n as u32, x)));
        f.counts(format!("{n} and {n}"), 2 * n, &t);
    }
    f
}

fn circulant() -> Family {
    let mut f = Family::new("circulant");
    for (d, row) in [
        (4, vec![0.0, 1.0, 1.0]),
        (5, vec![0.0, 1.0, 2.0, 1.0]),
        (6, vec![0.0, 0.0, 1.0, 2.0, 2.0, 1.0]),
        (12, vec![2.0, 1.0]),
        (24, vec![4.0, 3.0, 2.0, 1.0]),
        (48, vec![1.0, 0.0, 1.0, 0.0, 1.0]),
    ] {
        let p = Mat::from_fn(d, d, |i, j| row.get((j + d - i) % d).copied().unwrap_or(0.0));
        f.given(format!("{d}, {row:?}"), p, even(d));
    }
    f
}

/// Distances of the corners of a regular polygon from its sides: rank 3, and a nonnegative rank that grows with n. So the nuclear
/// norm and the penalty differ, and no bound of the first kind can close the gap of the second.
fn polygons() -> Family {
    let mut f = Family::new("polygon slack");
    for n in [4, 5, 6, 7, 8, 12, 20] {
        let side = |k: usize| 2.0 * PI * (k as f64 + 0.5) / n as f64;
        let corner = |k: usize| 2.0 * PI * k as f64 / n as f64;
        // The two corners of a side lie on it: exactly zero.
        let on = |i: usize, j: usize| i == j || i == (j + 1) % n;
        let p = Mat::from_fn(n, n, |i, j| if on(i, j) { 0.0 } else { (PI / n as f64).cos() - (corner(i) - side(j)).cos() });
        f.given(format!("{n} corners"), p, even(n));
    }
    // The matrix of rank 3 and nonnegative rank 4, weighted unevenly.
    let p = Mat::from_fn(4, 4, |i, j| f64::from((j + 4 - i) % 4 < 2));
    f.given("4 corners, uneven".into(), p, vec![1.0, 2.0, 4.0, 8.0]);
    // Euclidean distances squared on a line: rank 3, nonnegative rank unbounded.
    for d in [6, 15, 30] {
        f.given(format!("{d} distances"), Mat::from_fn(d, d, |i, j| (i as f64 - j as f64).powi(2)), even(d));
    }
    f
}

fn complete() -> Family {
    let mut f = Family::new("complete");
    for d in [3, 4, 7, 15, 40] {
        f.graph(format!("{d}, no loops"), d, &clique(0, d));
    }
    f
}

fn birth_death() -> Family {
    let mut f = Family::new("birth and death");
    for (d, up) in [(4, 0.5), (10, 0.3), (20, 0.45), (16, 0.2), (50, 0.4)] {
        // Detailed balance: the weight falls by up / (1 - up) a step, over ten orders of magnitude at the longest.
        let p = Mat::from_fn(d, d, |i, j| match (i, j) {
            (i, j) if j == i + 1 => up,
            (i, j) if i == j + 1 || (i == 0 && j == 0) => 1.0 - up,
            (i, j) if i == j && i + 1 == d => up,
            _ => 0.0,
        });
        let fall: f64 = up / (1.0 - up);
        f.given(format!("{d} states, up {up}"), p, (0..d).map(|i| fall.powi(i as i32)).collect());
    }
    f
}

fn dirichlet() -> Family {
    let mut f = Family::new("spiky rows");
    for (d, power) in [(3, 2), (6, 4), (12, 8), (24, 3), (60, 6)] {
        let mut rng = rng((d + power) as u64);
        let p = Mat::from_fn(d, d, |_, _| {
            let drawn: f64 = Exp1.sample(&mut rng);
            drawn.powi(power as i32)
        });
        f.given(format!("{d} states, power {power}"), p, (0..d).map(|_| rng.random::<f64>() + 0.05).collect());
    }
    f
}

fn tiny() -> Family {
    let mut f = Family::new("tiny");
    let two: [[f64; 4]; 5] = [[1.0, 1.0, 1.0, 0.0], [3.0, 1.0, 1.0, 3.0], [1.0, 2.0, 5.0, 1.0], [1e6, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]];
    for m in two {
        f.counts(format!("{m:?}"), 2, &entries(&Mat::from_fn(2, 2, |i, j| m[2 * i + j])));
    }
    for seed in 0..4 {
        f.counts(format!("3 states, {seed}"), 3, &entries(&low_rank_integers(3, 3, 2, seed)));
    }
    f
}

fn near_absorbing() -> Family {
    let mut f = Family::new("near absorbing");
    for (d, g) in [(10, 2), (20, 4), (40, 4), (80, 5)] {
        let mut rng = rng((d * g) as u64);
        let mut t = Triplets::new();
        for i in 0..d {
            for _ in 0..6 {
                let group = if rng.random::<f64>() < 0.8 { i % g } else { rng.random_range(0..g) };
                t.push((i as u32, (rng.random_range(0..d / g) * g + group) as u32, f64::from(rng.random_range(1..20u32))));
            }
            if i % 5 == 0 {
                t.push((i as u32, i as u32, 1e6));
            }
        }
        f.counts(format!("{d} states in {g}"), d, &t);
    }
    f
}

/// Every family of small chains, 2 to 127 states.
pub fn small() -> Vec<Instance> {
    let families: [fn() -> Family; 36] = [
        star,
        bipartite,
        block,
        tree,
        ring,
        path,
        integers,
        poisson,
        lollipop,
        barbell,
        torus,
        wheel,
        digraph,
        periodic,
        sink,
        hubs,
        hypercube,
        kneser,
        permutation,
        lazy,
        heavy,
        duplicates,
        soft,
        sampled,
        groups,
        anchors,
        checkerboard,
        rank_one,
        halves,
        circulant,
        polygons,
        complete,
        birth_death,
        dirichlet,
        tiny,
        near_absorbing,
    ];
    families.iter().chain(&hostile::FAMILIES).flat_map(|family| family().members).collect()
}

/// A few large ones, 1,000 to 6,000 states: equal blocks stored dense (rank 12 and a small Krylov space), planted, sparse, noisy.
pub fn large() -> Vec<Instance> {
    let mut f = Family::new("large");
    for (d, r) in [(1200, 5), (4000, 12)] {
        // Block k leads evenly to itself, and a little to all.
        let p = Mat::from_fn(d, d, |i, j| 0.1 / d as f64 + if i % r == j % r { 0.9 * r as f64 / d as f64 } else { 0.0 });
        f.given(format!("{d} states, {r} equal blocks, dense"), p, even(d));
    }
    for (d, r) in [(1000, 5), (6000, 8)] {
        f.add(format!("{d} states, {r} hidden, exact"), planted(d, r, 1).and_then(|truth| truth.chain()).expect("a planted chain"));
    }
    for (d, g, a_row) in [(1500, 6, 100), (5000, 10, 60)] {
        let drawn = planted_groups(d, g, a_row, 2).expect("planted groups");
        f.add(format!("{d} states in {g} groups"), Chain::estimate(&drawn.counts, &Estimate::default()).expect("a chain"));
    }
    for d in [1000, 3500] {
        f.counts(format!("{d} states, sparse digraph"), d, &digraph_of(d, 5, 9, 3));
    }
    let leaves = 3999;
    f.graph(format!("star, {leaves} leaves"), leaves + 1, &(1..=leaves).map(|i| (0, i)).collect::<Vec<_>>());
    let (d, t) = blocks_of(&[250; 8], 1.0);
    f.counts("8 blocks of 250".into(), d, &t);
    f.members
}

/// Counts from a table `from,to,count` with a heading, states numbered from 0.
pub fn from_csv(family: &'static str, name: String, table: &str) -> Result<Instance, String> {
    let mut triplets = Triplets::new();
    for line in table.lines().skip(1).filter(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split(',').collect();
        let [from, to, count] = cells[..] else { return Err(format!("{name}: {line:?} is not from,to,count")) };
        let number = |x: &str| x.trim().parse::<u32>().map_err(|e| format!("{name}: {x:?}: {e}"));
        let count = count.trim().parse::<f64>().map_err(|e| format!("{name}: {count:?}: {e}"))?;
        triplets.push((number(from)?, number(to)?, count));
    }
    let d = triplets.iter().map(|&(i, j, _)| i.max(j) as usize + 1).max().unwrap_or(0);
    let counts = Counts::from_triplets(StateIndex::numbered(d), &triplets).map_err(|e| e.to_string())?;
    let chain = Chain::estimate(&counts, &Estimate::default()).map_err(|e| e.to_string())?;
    Ok(Instance { family, name: format!("{family} {name}"), chain })
}
