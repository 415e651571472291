//! Every number of the latent chain against dense linear algebra on X, formed: chains reversible and not, reducible and periodic.

mod common;

use common::{Stream, outer};
use metastate::aggregate::latent::{
    LatentChain, Lumped, Rotation, aligned, chapman_kolmogorov, identify, largest_rotation, normalised, projected_spectrum,
};
use metastate::workspace::small;
use metastate::{Counts, Error, Mat, StateIndex};

struct Case {
    name: &'static str,
    u: Mat,
    v: Mat,
}

/// `X = D^-1 B W B^T` is reversible: `D X` is symmetric.
fn reversible(d: usize, s: usize, seed: u64) -> Case {
    let mut stream = Stream(seed);
    let mut b = stream.stochastic(s, d).transposed();
    // Metastable: each state belongs mostly to one profile.
    (0..d).for_each(|i| b.row_mut(i).iter_mut().enumerate().for_each(|(j, x)| *x *= if i % s == j { 1.0 } else { 0.02 }));
    let sums: Vec<f64> = (0..s).map(|j| b.column(j).iter().sum()).collect();
    let v = Mat::from_fn(d, s, |i, j| b[(i, j)] / sums[j]);
    let w = stream.simplex(s);
    let u = Mat::from_fn(d, s, |i, j| v[(i, j)] * w[j] / (0..s).map(|k| v[(i, k)] * w[k]).sum::<f64>());
    Case { name: "reversible", u, v }
}

fn random(d: usize, s: usize, seed: u64) -> Case {
    let f = Stream(seed).factors(d, s);
    Case { name: "random", u: f.u, v: f.v }
}

/// Meta-state j leads mostly to states that act as j + 1: strongly non-reversible, complex eigenvalues near the unit circle.
fn turning(d: usize, s: usize, seed: u64) -> Case {
    let mut stream = Stream(seed);
    let (u, noise) = (stream.stochastic(d, s), stream.stochastic(s, d));
    let u = Mat::from_fn(d, s, |i, j| 0.05 * u[(i, j)] + if i % s == j { 0.95 } else { 0.0 });
    let rows = (0..s).map(|j| (0..d).filter(|i| i % s == (j + 1) % s).count() as f64).collect::<Vec<_>>();
    let v = Mat::from_fn(d, s, |i, j| 0.05 * noise[(j, i)] + if i % s == (j + 1) % s { 0.95 / rows[j] } else { 0.0 });
    Case { name: "turning", u, v }
}

fn cases() -> Vec<Case> {
    vec![reversible(23, 4, 1), random(17, 3, 2), turning(30, 5, 3), random(9, 6, 4), reversible(40, 2, 5), random(700, 3, 6)]
}

/// `A x = b` by Gauss with row pivots.
fn dense_solve(a: &Mat, b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let (mut a, mut b) = (a.clone(), b.to_vec());
    for k in 0..n {
        let p = (k..n).max_by(|&i, &j| a[(i, k)].abs().total_cmp(&a[(j, k)].abs())).unwrap();
        (0..n).for_each(|j| a.as_mut_slice().swap(p * n + j, k * n + j));
        b.swap(p, k);
        for i in k + 1..n {
            let f = a[(i, k)] / a[(k, k)];
            (k..n).for_each(|j| a[(i, j)] -= f * a[(k, j)]);
            b[i] -= f * b[k];
        }
    }
    for k in (0..n).rev() {
        b[k] = (b[k] - (k + 1..n).map(|j| a[(k, j)] * b[j]).sum::<f64>()) / a[(k, k)];
    }
    b
}

fn dense_product(a: &Mat, b: &Mat) -> Mat {
    Mat::from_fn(a.rows(), b.cols(), |i, j| (0..a.cols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

fn dense_power(x: &Mat, n: u64) -> Mat {
    let mut out = Mat::from_fn(x.rows(), x.rows(), |i, j| f64::from(u8::from(i == j)));
    (0..n).for_each(|_| out = dense_product(&out, x));
    out
}

/// The dense stationary law: one column of `(I - X)^T` replaced by the sum.
fn dense_law(x: &Mat) -> Vec<f64> {
    let d = x.rows();
    let a = Mat::from_fn(d, d, |i, j| if i == d - 1 { 1.0 } else { f64::from(u8::from(i == j)) - x[(j, i)] });
    let mut b = vec![0.0; d];
    b[d - 1] = 1.0;
    dense_solve(&a, &b)
}

/// `h = reward + X_TT h` on the states outside `inside`; zero inside.
fn dense_outside(x: &Mat, inside: &[bool], reward: impl Fn(usize) -> f64) -> Vec<f64> {
    let t: Vec<usize> = (0..x.rows()).filter(|&i| !inside[i]).collect();
    let a = Mat::from_fn(t.len(), t.len(), |i, j| f64::from(u8::from(i == j)) - x[(t[i], t[j])]);
    let h = dense_solve(&a, &t.iter().map(|&i| reward(i)).collect::<Vec<_>>());
    let mut out = vec![0.0; x.rows()];
    t.iter().zip(h).for_each(|(&i, h)| out[i] = h);
    out
}

fn hard(u: &Mat) -> Vec<usize> {
    (0..u.rows()).map(|i| (0..u.cols()).fold(0, |b, j| if u[(i, j)] > u[(i, b)] { j } else { b })).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (n, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * b.abs().max(1.0), "{what} at {n}: {a} against {b}");
    }
}

fn uniform(d: usize) -> Vec<f64> {
    vec![1.0 / d as f64; d]
}

#[test]
fn the_non_zero_spectrum_of_x_is_that_of_k() {
    for c in cases().iter().filter(|c| c.u.rows() < 100) {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let x = outer(&c.u, &c.v);
        let mut dense = small::eigenvalues(&x).unwrap();
        dense.sort_by(|a, b| b.0.hypot(b.1).total_cmp(&a.0.hypot(a.1)));
        let modes = chain.spectrum();
        assert_eq!(modes.len(), c.u.cols());
        // Each of ours is among the dense ones, the rest of which vanish; and all power sums agree, so none is counted twice.
        for m in &modes {
            let nearest = dense.iter().map(|e| (e.0 - m.re).hypot(e.1 - m.im)).fold(f64::INFINITY, f64::min);
            assert!(nearest < 1e-9, "{}: {m:?}", c.name);
        }
        dense[modes.len()..].iter().for_each(|e| assert!(e.0.hypot(e.1) < 1e-7, "{}: {e:?}", c.name));
        for n in 1..=4u64 {
            let power = dense_power(&x, n);
            let trace: f64 = (0..x.rows()).map(|i| power[(i, i)]).sum();
            let sum: f64 = modes.iter().map(|m| m.modulus().powi(n as i32) * (n as f64 * m.im.atan2(m.re)).cos()).sum();
            assert!((trace - sum).abs() < 1e-10, "{} power {n}: {trace} {sum}", c.name);
        }
        assert!((modes[0].re - 1.0).abs() < 1e-12 && modes[0].timescale.is_infinite());
        for m in &modes[1..] {
            assert!((m.timescale - -1.0 / m.modulus().ln()).abs() < 1e-9 * m.timescale.max(1.0));
        }
        match c.name {
            "reversible" => modes.iter().for_each(|m| assert!(m.im.abs() < 1e-9, "{m:?}")),
            "turning" => {
                assert!(modes.iter().filter(|m| m.im.abs() > 0.1).count() >= 4, "{modes:?}");
                // s = 5 in a circle: the slowest pair turns once in five steps.
                assert!((modes[1].turn - 5.0).abs() < 0.1 || (modes[1].turn - 2.5).abs() < 0.1, "{modes:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn the_stationary_law_is_that_of_x() {
    for c in cases() {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let laws = chain.stationary(&uniform(chain.states())).unwrap();
        assert_eq!((laws.laws.len(), laws.structure.sentence()), (1, None));
        let x = outer(&c.u, &c.v);
        assert_close(&laws.limit_states, &dense_law(&x), 1e-12, c.name);
        assert_close(&laws.limit, &dense_law(chain.k()), 1e-12, c.name);
        assert!((laws.limit.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    }
}

#[test]
fn forecasts_are_powers_of_x() {
    for c in cases().iter().filter(|c| c.u.rows() < 100) {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let x = outer(&c.u, &c.v);
        let start = Stream(99).simplex(chain.states());
        for n in [0, 1, 2, 3, 7, 20] {
            let power = dense_power(&x, n);
            let expected: Vec<f64> = (0..x.rows()).map(|j| (0..x.rows()).map(|i| start[i] * power[(i, j)]).sum()).collect();
            assert_close(&chain.after(&start, n).unwrap(), &expected, 1e-13, c.name);
        }
        // Far ahead, and still a law.
        let far = chain.after(&start, u64::MAX).unwrap();
        assert_close(&far, &chain.stationary(&start).unwrap().limit_states, 1e-10, c.name);
        assert!((far.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn hitting_times_solve_the_dense_system() {
    for c in cases() {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let x = outer(&c.u, &c.v);
        for set in [vec![0], vec![1, 4, 5], (0..chain.states()).filter(|i| i % 3 == 0).collect::<Vec<_>>()] {
            let inside: Vec<bool> = (0..chain.states()).map(|i| set.contains(&i)).collect();
            let found = chain.hitting_times(&inside).unwrap();
            let h = dense_outside(&x, &inside, |_| 1.0);
            let expected: Vec<f64> = (0..chain.states())
                .map(|i| if inside[i] { 1.0 + (0..chain.states()).map(|j| x[(i, j)] * h[j]).sum::<f64>() } else { h[i] })
                .collect();
            assert_close(&found, &expected, 1e-9, c.name);
        }
    }
}

#[test]
fn passage_times_between_meta_states_at_both_levels() {
    for c in cases() {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let (s, k) = (chain.rank(), chain.k());
        let found = chain.mean_first_passage();
        let law = chain.stationary(&uniform(chain.states())).unwrap();
        for target in 0..s {
            let inside: Vec<bool> = (0..s).map(|j| j == target).collect();
            let h = dense_outside(k, &inside, |_| 1.0);
            let expected: Vec<f64> = (0..s).map(|j| if j == target { 1.0 / law.limit[j] } else { h[j] }).collect();
            assert_close(&found.column(target), &expected, 1e-9, c.name);
        }
        // Sets of states.
        let part = hard(&c.u);
        let lumped = Lumped::new(&chain, &part, s).unwrap();
        let times = lumped.mean_first_passage(&chain, &part, &law.limit_states).unwrap();
        let x = outer(&c.u, &c.v);
        for b in 0..s {
            let inside: Vec<bool> = part.iter().map(|p| *p == b).collect();
            if lumped.sizes()[b] == 0 {
                assert!((0..s).all(|a| times[(a, b)].is_infinite() || times[(a, b)].is_nan()));
                continue;
            }
            let h = dense_outside(&x, &inside, |_| 1.0);
            for a in (0..s).filter(|&a| a != b && lumped.sizes()[a] > 0) {
                let members: Vec<usize> = (0..part.len()).filter(|&i| part[i] == a).collect();
                let mass: f64 = members.iter().map(|&i| law.limit_states[i]).sum();
                let expected = members.iter().map(|&i| law.limit_states[i] * h[i]).sum::<f64>() / mass;
                assert!((times[(a, b)] - expected).abs() < 1e-9 * expected, "{}: {} {expected}", c.name, times[(a, b)]);
            }
            // Kac: the mean return time is one over the share.
            let mass: f64 = (0..part.len()).filter(|&i| inside[i]).map(|i| law.limit_states[i]).sum();
            assert!((times[(b, b)] * mass - 1.0).abs() < 1e-9, "{}", c.name);
        }
    }
}

#[test]
fn committors_solve_the_dense_systems_forward_and_backward() {
    for c in cases() {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let (s, k) = (chain.rank(), chain.k());
        let law = dense_law(k);
        let reversed = Mat::from_fn(s, s, |j, l| law[l] * k[(l, j)] / law[j]);
        let x = outer(&c.u, &c.v);
        let part = hard(&c.u);
        for a in 0..s {
            for b in (0..s).filter(|&b| b != a) {
                let found = chain.committor(a, b).unwrap();
                let ends: Vec<bool> = (0..s).map(|j| j == a || j == b).collect();
                let mut forward = dense_outside(k, &ends, |j| k[(j, b)]);
                forward[b] = 1.0;
                assert_close(&found.forward, &forward, 1e-11, c.name);
                let mut backward = dense_outside(&reversed, &ends, |j| reversed[(j, a)]);
                backward[a] = 1.0;
                let given = found.backward.unwrap();
                assert_close(&given, &backward, 1e-11, c.name);
                let gap = given.iter().zip(&forward).map(|(q, f)| (q + f - 1.0).abs()).fold(0.0, f64::max);
                match c.name {
                    "reversible" => assert!(gap < 1e-10, "q- = 1 - q+ where time has no direction: {gap}"),
                    "turning" => assert!(gap > 0.05, "{gap}"),
                    _ => {}
                }
                // Sets of states.
                let inside: Vec<bool> = part.iter().map(|p| *p == a || *p == b).collect();
                if !part.contains(&a) || !part.contains(&b) {
                    continue;
                }
                let into = |i: usize| (0..part.len()).filter(|&j| part[j] == b).map(|j| x[(i, j)]).sum::<f64>();
                let mut expected = dense_outside(&x, &inside, into);
                part.iter().enumerate().filter(|(_, p)| **p == b).for_each(|(i, _)| expected[i] = 1.0);
                assert_close(&chain.committor_of_states(&part, s, a, b).unwrap(), &expected, 1e-10, c.name);
                if part.len() > 100 {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_check_predicts_with_dense_powers_and_finds_wrong_counts() {
    for c in cases().iter().filter(|c| c.u.rows() < 100) {
        let chain = LatentChain::new(&c.u, &c.v).unwrap();
        let (d, s) = (chain.states(), chain.rank());
        let x = outer(&c.u, &c.v);
        let part = hard(&c.u);
        let lumped = Lumped::new(&chain, &part, s).unwrap();
        let departures = Stream(5).simplex(d);
        for n in [1, 2, 5] {
            let power = dense_power(&x, n);
            let triplets: Vec<(u32, u32, f64)> =
                (0..d * d).map(|e| ((e / d) as u32, (e % d) as u32, 1e5 * departures[e / d] * power[(e / d, e % d)])).collect();
            let counts = Counts::from_triplets(StateIndex::numbered(d), &triplets).unwrap();
            let counts = aligned(&counts, &StateIndex::numbered(d)).unwrap();
            assert_eq!(counts.lost, 0.0);
            let entries = chapman_kolmogorov(&chain, &lumped, &part, &counts.counts, n, 1.0).unwrap();
            for e in &entries {
                let of = |p: usize| (0..d).filter(|&i| part[i] == p).collect::<Vec<_>>();
                let mass: f64 = of(e.from).iter().map(|&i| departures[i]).sum();
                let flow: f64 = of(e.from)
                    .iter()
                    .flat_map(|&i| of(e.to).into_iter().map(move |j| (i, j)))
                    .map(|(i, j)| departures[i] * power[(i, j)])
                    .sum();
                assert!((e.predicted - flow / mass).abs() < 1e-12 && (e.counted - flow / mass).abs() < 1e-12, "{}: {e:?}", c.name);
                assert!(e.agrees() && e.low <= e.counted && e.counted <= e.high && e.high - e.low < 0.3, "{e:?}");
            }
            // The projection gives K^n back whatever the departures are.
            let modes = projected_spectrum(&c.u, &counts.counts).unwrap();
            let own = chain.spectrum();
            for m in own.iter().filter(|m| m.modulus() > 1e-3) {
                let (r, a) = (m.modulus().powi(n as i32), n as f64 * m.im.atan2(m.re));
                let nearest = modes.iter().map(|p| (p.re - r * a.cos()).hypot(p.im - r * a.sin())).fold(f64::INFINITY, f64::min);
                assert!(nearest < 1e-8, "{} at {n}: {m:?} {modes:?}", c.name);
            }
            // Counts of one step are not those of five.
            if n == 1 {
                let wrong = chapman_kolmogorov(&chain, &lumped, &part, &counts.counts, 5, 1.0).unwrap();
                assert!(c.name == "random" || wrong.iter().any(|e| !e.agrees()), "{}", c.name);
            }
        }
    }
}

/// Two groups that never meet, and a transient third.
fn reducible() -> Case {
    let u = Mat::from_vec(5, 3, vec![1., 0., 0., 1., 0., 0., 0., 1., 0., 0., 1., 0., 0.25, 0.5, 0.25]).unwrap();
    let v = Mat::from_vec(5, 3, vec![0.3, 0., 0.2, 0.7, 0., 0.2, 0., 0.6, 0.1, 0., 0.4, 0.1, 0., 0., 0.4]).unwrap();
    Case { name: "reducible", u, v }
}

#[test]
fn several_stationary_laws_are_told_and_the_start_decides() {
    let c = reducible();
    let chain = LatentChain::new(&c.u, &c.v).unwrap();
    let x = outer(&c.u, &c.v);
    let mut start = vec![0.0; 5];
    start[4] = 1.0;
    let laws = chain.stationary(&start).unwrap();
    assert_eq!(laws.laws, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
    assert_eq!(laws.structure.transient, [2]);
    let sentence = laws.structure.sentence().unwrap();
    assert!(sentence.contains("several stationary laws") && sentence.contains("{1} and {2}") && sentence.contains('3'), "{sentence}");
    let far = dense_power(&x, 400);
    assert_close(&laws.limit_states, far.row(4), 1e-12, "limit");
    assert_close(&chain.after(&start, 400).unwrap(), far.row(4), 1e-12, "forecast");
    // Never met, or not for certain: infinite, and probabilities that add up to less than one.
    let times = chain.mean_first_passage();
    assert!(times[(0, 1)].is_infinite() && times[(2, 1)].is_infinite() && times[(0, 0)] == 1.0 && times[(2, 2)].is_infinite());
    let to_1 = chain.hitting_times(&[true, true, false, false, false]).unwrap();
    assert!(to_1[2].is_infinite() && to_1[4].is_infinite() && to_1[0] == 1.0);
    let q = chain.committor(0, 1).unwrap();
    assert!(q.backward.is_none());
    let expected = dense_outside(chain.k(), &[true, true, false], |j| chain.k()[(j, 1)]);
    assert!((q.forward[2] - expected[2]).abs() < 1e-14 && (q.forward[2] - 4.0 / 9.0).abs() < 1e-14);
    let modes = chain.spectrum();
    assert!(modes[0].timescale.is_infinite() && modes[1].timescale.is_infinite() && modes[2].timescale < 10.0);
}

#[test]
fn a_periodic_chain_is_told_and_never_settles() {
    // Three groups in a circle, nothing else: K is a permutation.
    let u = Mat::from_fn(6, 3, |i, j| f64::from(u8::from(i / 2 == j)));
    let v = Mat::from_fn(6, 3, |i, j| if i / 2 == (j + 1) % 3 { 0.5 } else { 0.0 });
    let chain = LatentChain::new(&u, &v).unwrap();
    let laws = chain.stationary(&uniform(6)).unwrap();
    assert_eq!((laws.structure.closed.len(), laws.structure.closed[0].period), (1, 3));
    assert!(laws.structure.sentence().unwrap().contains("period 3"));
    assert_close(&laws.limit_states, &uniform(6), 1e-15, "law");
    assert!(chain.spectrum().iter().all(|m| m.timescale.is_infinite() && (m.modulus() - 1.0).abs() < 1e-12));
    let start = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_close(&chain.after(&start, 3_000_000_001).unwrap(), &[0.0, 0.0, 0.5, 0.5, 0.0, 0.0], 1e-15, "forecast");
    // An absorbing meta-state beside: one law, all of it there.
    let u = Mat::from_fn(4, 2, |i, j| f64::from(u8::from(i / 2 == j)));
    let v = Mat::from_vec(4, 2, vec![0.45, 0., 0.45, 0., 0.1, 0.5, 0., 0.5]).unwrap();
    let chain = LatentChain::new(&u, &v).unwrap();
    let laws = chain.stationary(&uniform(4)).unwrap();
    assert_eq!(laws.limit, [0.0, 1.0]);
    assert!(laws.structure.sentence().unwrap().contains("left for ever"));
    assert!((chain.mean_first_passage()[(0, 1)] - 10.0).abs() < 1e-12);
}

/// All alternatives found must be factorisations of the same X: checked by the interval's ends in the two-column case, where
/// the room is known in closed form.
#[test]
fn the_room_of_two_meta_states_is_known_in_closed_form() {
    let mut stream = Stream(12);
    for _ in 0..20 {
        let f = stream.factors(12, 2);
        let chain = LatentChain::new(&f.u, &f.v).unwrap();
        let xi = stream.simplex(12);
        for (j, id) in identify(&chain, &xi).unwrap().iter().enumerate() {
            let k = 1 - j;
            let high = (0..12).map(|i| f.u[(i, k)] / f.u[(i, j)]).fold(f64::INFINITY, f64::min);
            let low = -(0..12).map(|i| f.v[(i, j)] / f.v[(i, k)]).fold(f64::INFINITY, f64::min);
            let share: f64 = (0..12).map(|i| xi[i] * f.u[(i, j)]).sum();
            assert!((id.share - share).abs() < 1e-14);
            assert!((id.share_high / share - 1.0 - high).abs() < 1e-9, "{id:?} {high}");
            assert!((id.share_low / share - 1.0 - low).abs() < 1e-9, "{id:?} {low}");
            let distance = |r: f64| 0.5 * (0..12).map(|i| ((f.v[(i, j)] + r * f.v[(i, k)]) / (1.0 + r) - f.v[(i, j)]).abs()).sum::<f64>();
            assert!((id.ambiguity - distance(low).max(distance(high))).abs() < 1e-9, "{id:?}");
            assert!(id.ambiguity > 0.0);
        }
        assert!(matches!(largest_rotation(&chain), Rotation::Turns(size) if size > 1e-3), "{:?}", largest_rotation(&chain));
    }
}

/// With three columns the room is a polygon: all its corners, by crossing every two of its sides.
#[test]
fn the_room_of_three_meta_states_is_the_polygon_of_all_corners() {
    let mut stream = Stream(21);
    let mut cut = 0;
    for _ in 0..30 {
        let f = stream.factors(14, 3);
        let chain = LatentChain::new(&f.u, &f.v).unwrap();
        let xi = stream.simplex(14);
        for (j, id) in identify(&chain, &xi).unwrap().iter().enumerate() {
            let others = [(j + 1) % 3, (j + 2) % 3];
            let high = others.map(|k| (0..14).map(|i| f.u[(i, k)] / f.u[(i, j)]).fold(f64::INFINITY, f64::min));
            // Sides a . r <= b.
            let mut sides = vec![([1.0, 0.0], high[0]), ([0.0, 1.0], high[1])];
            sides.extend((0..14).map(|i| ([-f.v[(i, others[0])], -f.v[(i, others[1])]], f.v[(i, j)])));
            let mut corners = Vec::new();
            for (n, (a, b)) in sides.iter().enumerate() {
                for (c, e) in &sides[n + 1..] {
                    let det = a[0] * c[1] - a[1] * c[0];
                    let r = [(b * c[1] - a[1] * e) / det, (a[0] * e - b * c[0]) / det];
                    if sides.iter().all(|(g, h)| g[0] * r[0] + g[1] * r[1] <= h + 1e-12) {
                        corners.push(r);
                    }
                }
            }
            let sums = corners.iter().map(|r| 1.0 + r[0] + r[1]);
            let (low, most) = (sums.clone().fold(1.0, f64::min), sums.fold(1.0, f64::max));
            assert!((id.share_low / id.share - low).abs() < 1e-8 && (id.share_high / id.share - most).abs() < 1e-8, "{id:?} {low} {most}");
            let distance = |r: &[f64; 2]| {
                let v = |i: usize| (f.v[(i, j)] + r[0] * f.v[(i, others[0])] + r[1] * f.v[(i, others[1])]) / (1.0 + r[0] + r[1]);
                0.5 * (0..14).map(|i| (v(i) - f.v[(i, j)]).abs()).sum::<f64>()
            };
            let farthest = corners.iter().map(distance).fold(0.0, f64::max);
            assert!(id.ambiguity <= farthest + 1e-8 && id.ambiguity >= 0.5 * farthest, "{} {farthest}", id.ambiguity);
            cut += usize::from(corners.len() > 4);
        }
    }
    assert!(cut > 10, "polygons that are no boxes: {cut}");
}

#[test]
fn anchors_on_both_sides_leave_no_room_and_missing_ones_do() {
    let mut stream = Stream(3);
    let (d, s) = (60, 4);
    let mut f = stream.factors(d, s);
    // State j acts as j only; state s + j is reached from j only.
    for j in 0..s {
        f.u.row_mut(j).fill(0.0);
        f.u[(j, j)] = 1.0;
        for k in (0..s).filter(|&k| k != j) {
            f.v[(s + j, k)] = 0.0;
        }
    }
    for j in 0..s {
        let sum: f64 = f.v.column(j).iter().sum();
        (0..d).for_each(|i| f.v[(i, j)] /= sum);
    }
    let xi = stream.simplex(d);
    let chain = LatentChain::new(&f.u, &f.v).unwrap();
    for (j, id) in identify(&chain, &xi).unwrap().iter().enumerate() {
        assert_eq!((id.anchors.clone(), id.exclusive.clone(), id.ambiguity), (vec![j], vec![s + j], 0.0));
        assert_eq!((id.purest, id.share_low, id.share_high), (1.0, id.share, id.share));
    }
    assert_eq!(largest_rotation(&chain), Rotation::Unique);
    // Without the anchor of meta-state 2, only its own profile gets room; the alternative is formed and compared.
    let row = stream.simplex(s);
    f.u.row_mut(2).copy_from_slice(&row);
    let chain = LatentChain::new(&f.u, &f.v).unwrap();
    let ids = identify(&chain, &xi).unwrap();
    assert!(ids[2].ambiguity > 1e-4 && ids[2].share_high > ids[2].share && ids[2].anchors.is_empty(), "{:?}", ids[2]);
    assert!([0, 1, 3].iter().all(|&j| ids[j].ambiguity == 0.0), "{ids:?}");
    let high: Vec<f64> =
        (0..s).map(|k| (0..d).filter(|&i| f.u[(i, 2)] > 0.0).map(|i| f.u[(i, k)] / f.u[(i, 2)]).fold(f64::INFINITY, f64::min)).collect();
    let sum: f64 = (0..s).filter(|&k| k != 2).map(|k| high[k]).sum();
    assert!((ids[2].share_high / ids[2].share - 1.0 - sum).abs() < 1e-9);
    let b = |k: usize| if k == 2 { 1.0 } else { high[k] };
    let mut other = f.clone();
    for i in 0..d {
        let row: Vec<f64> = f.u.row(i).to_vec();
        (0..s).for_each(|k| other.u[(i, k)] = if k == 2 { row[2] * (1.0 + sum) } else { row[k] - row[2] * high[k] });
        other.v[(i, 2)] = (0..s).map(|k| f.v[(i, k)] * b(k)).sum::<f64>() / (1.0 + sum);
    }
    assert!(other.u.as_slice().iter().all(|x| *x > -1e-15));
    assert_close(outer(&other.u, &other.v).as_slice(), outer(&f.u, &f.v).as_slice(), 1e-14, "the same X");
    assert!(matches!(largest_rotation(&chain), Rotation::Turns(_)), "{:?}", largest_rotation(&chain));
}

#[test]
fn a_meta_state_that_nobody_acts_as_is_wholly_ambiguous_and_breaks_nothing() {
    let u = Mat::from_vec(3, 2, vec![1., 0., 1., 0., 1., 0.]).unwrap();
    let v = Mat::from_vec(3, 2, vec![0.5, 1., 0.25, 0., 0.25, 0.]).unwrap();
    let chain = LatentChain::new(&u, &v).unwrap();
    let ids = identify(&chain, &uniform(3)).unwrap();
    assert_eq!((ids[1].ambiguity, ids[1].share), (1.0, 0.0));
    assert_eq!(largest_rotation(&chain), Rotation::Undecided);
    let lumped = Lumped::new(&chain, &[0, 0, 0], 2).unwrap();
    let times = lumped.mean_first_passage(&chain, &[0, 0, 0], &uniform(3)).unwrap();
    assert!(times[(0, 1)].is_infinite() && times[(1, 0)].is_nan() && times[(0, 0)] == 1.0);
}

#[test]
fn bad_factors_and_bad_questions_get_a_sentence() {
    let c = random(6, 2, 1);
    let said = |e: Error, what: &str| assert!(e.to_string().contains(what), "{e}");
    said(LatentChain::new(&Mat::zeros(0, 0), &Mat::zeros(0, 0)).unwrap_err(), "empty");
    said(LatentChain::new(&c.u, &Mat::zeros(5, 2)).unwrap_err(), "V (rows) has size 5, but 6");
    said(LatentChain::new(&c.u, &Mat::zeros(6, 2)).unwrap_err(), "the sum of a column of V is 0 in column 0");
    let changed = |at: usize, x: f64| {
        let mut u = c.u.clone();
        u.as_mut_slice()[at] = x;
        u
    };
    said(LatentChain::new(&changed(3, f64::NAN), &c.v).unwrap_err(), "U holds NaN at row 1, column 1");
    said(LatentChain::new(&changed(3, -0.5), &c.v).unwrap_err(), "U holds the negative value -0.5 at row 1");
    said(LatentChain::new(&changed(3, 7.0), &c.v).unwrap_err(), "the sum of a row of U");
    let chain = LatentChain::new(&c.u, &c.v).unwrap();
    said(chain.after(&[1.0], 3).unwrap_err(), "the law over states has size 1");
    said(chain.hitting_times(&[true]).unwrap_err(), "size 1");
    said(chain.committor(0, 0).unwrap_err(), "must differ");
    said(chain.committor(0, 2).unwrap_err(), "meta-state 2 is out of range");
    said(Lumped::new(&chain, &[0, 0, 0, 0, 0, 3], 2).unwrap_err(), "part 3 is out of range");
    said(normalised(&[0.0, 0.0]).unwrap_err(), "empty");
    said(normalised(&[1.0, -1.0]).unwrap_err(), "negative");
    said(normalised(&[1.0, f64::INFINITY]).unwrap_err(), "inf");
    let counts = aligned(&Counts::from_triplets(StateIndex::numbered(3), &[(0, 2, 4.0)]).unwrap(), &StateIndex::numbered(2)).unwrap();
    assert_eq!((counts.lost, counts.counts.nonzeros()), (4.0, 0));
    said(projected_spectrum(&c.u, &counts.counts).unwrap_err(), "the count matrix (rows) has size 2");
    said(projected_spectrum(&c.u.clone(), &metastate::Csr::from_triplets(6, 6, &[]).unwrap()).unwrap_err(), "empty");
}

#[test]
fn one_thread_or_three_give_the_same_bits() {
    let f = Stream(8).factors(5000, 7);
    let xi = Stream(9).simplex(5000);
    let counts: Vec<(u32, u32, f64)> = (0..40_000u32).map(|n| (n % 5000, (n * 7919) % 5000, 1.0 + f64::from(n % 5))).collect();
    let counts = metastate::Csr::from_triplets(5000, 5000, &counts).unwrap();
    let all = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let chain = LatentChain::new(&f.u, &f.v).unwrap();
            let part = hard(&f.u);
            let lumped = Lumped::new(&chain, &part, 7).unwrap();
            let laws = chain.stationary(&xi).unwrap();
            let numbers = [
                chain.k().as_slice().to_vec(),
                laws.limit_states.clone(),
                chain.after(&xi, 17).unwrap(),
                lumped.mean_first_passage(&chain, &part, &xi).unwrap().into_vec(),
                chain.committor_of_states(&part, 7, 1, 2).unwrap(),
                projected_spectrum(&f.u, &counts).unwrap().iter().flat_map(|m| [m.re, m.im]).collect(),
                chapman_kolmogorov(&chain, &lumped, &part, &counts, 3, 2.0).unwrap().iter().flat_map(|e| [e.predicted, e.low]).collect(),
                identify(&chain, &xi).unwrap().iter().flat_map(|i| [i.share_low, i.share_high, i.ambiguity]).collect(),
            ];
            numbers.concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        })
    };
    assert_eq!(all(1), all(3));
}
