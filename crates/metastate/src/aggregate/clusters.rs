//! Hard meta-states: k-means++ with many replicates on the rows of U (section 6.4 of the paper), or the largest membership.
//!
//! A replicate has its own stream of random numbers and the best one is chosen by inertia, then by its number: the labels do
//! not depend on the number of threads. Labels are ordered by mass, so that "zone 1" is the heaviest one in every run.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::linalg::assignment::cheapest_assignment;
use crate::linalg::{Mat, wide};

/// Points side by side, one a SIMD lane.
const LANES: usize = 8;
type Lane = [f64; LANES];

/// The paper's number of replicates.
pub const REPLICATES: usize = 500;
/// Below this many replicates a bad start is likely to win.
const FEWEST_REPLICATES: usize = 10;
/// One in so many replicates is followed to the end.
const FOLLOWED: usize = 4;
/// The others end when a pass lowers the inertia by less than this share.
const ROUGH: f64 = 1e-4;
/// Distances in one coordinate, summed over points, centres and replicates, that are spent at most (a pass is done about 30 times).
const WORK: f64 = 4e8;

/// How to cluster.
///
/// See the example of [`kmeans`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMeans {
    /// Number of clusters.
    pub clusters: usize,
    /// Independent starts; the best one is kept.
    pub replicates: usize,
    /// Passes a replicate, at most.
    pub passes: usize,
    /// Seed of all starts.
    pub seed: u64,
}

impl KMeans {
    /// So many clusters of a set of this size: 500 replicates, fewer (never below 10) where the set is large.
    #[must_use]
    pub fn new(clusters: usize, points: usize, coordinates: usize, seed: u64) -> Self {
        let pass = (points * coordinates.max(1) * clusters).max(1) as f64;
        let replicates = ((WORK / pass) as usize).clamp(FEWEST_REPLICATES, REPLICATES);
        KMeans { clusters, replicates, passes: 300, seed }
    }
}

/// A partition of the states.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::Partition;
///
/// let memberships = Mat::from_fn(3, 2, |i, j| if (i < 2) == (j == 0) { 0.8 } else { 0.2 });
/// let zones = Partition::by_membership(&memberships, &[0.5, 0.3, 0.2]);
/// assert_eq!((zones.labels, zones.sizes), (vec![0, 0, 1], vec![2, 1]));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Partition {
    /// The cluster of each state, from 0.
    pub labels: Vec<u32>,
    /// States in each.
    pub sizes: Vec<usize>,
    /// `sum of weights` of the states in each.
    pub masses: Vec<f64>,
}

impl Partition {
    /// From any labels below `clusters`: renumbered by falling mass, ties by size, then by the first state in it.
    #[must_use]
    pub fn ordered_by_mass(labels: &[u32], weights: &[f64], clusters: usize) -> Self {
        let (mut sizes, mut masses, mut first) = (vec![0; clusters], vec![0.0; clusters], vec![usize::MAX; clusters]);
        for (i, &l) in labels.iter().enumerate() {
            let l = l as usize;
            sizes[l] += 1;
            masses[l] += weights[i];
            first[l] = first[l].min(i);
        }
        let mut order: Vec<usize> = (0..clusters).collect();
        order.sort_by(|&a, &b| masses[b].total_cmp(&masses[a]).then(sizes[b].cmp(&sizes[a])).then(first[a].cmp(&first[b])));
        let mut place = vec![0u32; clusters];
        order.iter().enumerate().for_each(|(new, &old)| place[old] = new as u32);
        Partition {
            labels: labels.iter().map(|&l| place[l as usize]).collect(),
            sizes: order.iter().map(|&l| sizes[l]).collect(),
            masses: order.iter().map(|&l| masses[l]).collect(),
        }
    }

    /// From any labels below `clusters`, which keep their numbers.
    #[must_use]
    pub fn numbered(labels: Vec<u32>, weights: &[f64], clusters: usize) -> Self {
        let (mut sizes, mut masses) = (vec![0; clusters], vec![0.0; clusters]);
        for (l, w) in labels.iter().zip(weights) {
            sizes[*l as usize] += 1;
            masses[*l as usize] += w;
        }
        Partition { labels, sizes, masses }
    }

    /// Every state goes where its membership is largest (the lower number when two are equal); zones are numbered as the columns.
    #[must_use]
    pub fn by_membership(u: &Mat, weights: &[f64]) -> Self {
        let labels: Vec<u32> = u.largest_entries().map(|j| j as u32).collect();
        Partition::numbered(labels, weights, u.cols())
    }

    /// The same zones, numbered so that zone j shares as much membership as possible with column j of U: then colours and columns of
    /// tables mean the same thing. For as many zones as columns.
    #[must_use]
    pub fn numbered_as_columns(&self, u: &Mat, weights: &[f64]) -> Self {
        let k = self.clusters();
        let mut shared = Mat::zeros(k, k.max(u.cols()));
        for (i, &z) in self.labels.iter().enumerate() {
            let row = shared.row_mut(z as usize);
            row.iter_mut().zip(u.row(i)).for_each(|(s, u)| *s += weights[i] * u);
        }
        let place = cheapest_assignment(k, |zone, column| -shared[(zone, column)]);
        Partition::numbered(self.labels.iter().map(|&z| place[z as usize] as u32).collect(), weights, k)
    }

    /// Number of clusters, empty ones included.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.sizes.len()
    }
}

/// What k-means found.
///
/// See the example of [`kmeans`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Clustered {
    /// Who is where, ordered by mass.
    pub partition: Partition,
    /// Sum of squared distances to the centres.
    pub inertia: f64,
}

/// Clusters the rows of `points`; `weights` (one a row) order the labels and play no other part.
///
/// Where fewer rows are distinct than clusters were asked for, some clusters stay empty.
///
/// ```
/// use metastate::Mat;
/// use metastate::aggregate::{KMeans, kmeans};
///
/// let points = Mat::from_vec(4, 1, vec![0.0, 0.1, 5.0, 5.1])?;
/// let found = kmeans(&points, &[0.1, 0.1, 0.4, 0.4], &KMeans::new(2, 4, 1, 0))?;
/// assert_eq!(found.partition.labels, [1, 1, 0, 0]); // the heavier cluster is number 0
/// assert!((found.inertia - 0.01).abs() < 1e-12);
/// # Ok::<(), metastate::Error>(())
/// ```
pub fn kmeans(points: &Mat, weights: &[f64], settings: &KMeans) -> Result<Clustered> {
    let (n, k) = (points.rows(), settings.clusters);
    if k == 0 || k > n {
        return Err(Error::Setting {
            name: "the number of clusters",
            value: k.to_string(),
            allowed: "it must be between 1 and the number of states",
        });
    }
    if settings.replicates == 0 {
        return Err(Error::Setting { name: "the number of replicates", value: "0".into(), allowed: "at least one is needed" });
    }
    if weights.len() != n {
        return Err(Error::SizeMismatch { what: "the list of weights", expected: n, found: weights.len() });
    }
    if let Some((row, column, value)) = points.first_not_finite() {
        return Err(Error::NotFinite { what: "the set of points", row, column, value });
    }
    let set = PointSet::new(points);
    let order = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    // Most replicates end far above the best: all go down roughly, the best of them again and to the end.
    let rough = |scratch: &mut Scratch, r: usize| (scratch.replicate(&set, settings, r as u64, ROUGH), r);
    let mut reached: Vec<(f64, usize)> = (0..settings.replicates).into_par_iter().map_init(|| Scratch::new(&set, k), rough).collect();
    reached.sort_by(order);
    reached.truncate((settings.replicates / FOLLOWED).max(FEWEST_REPLICATES));
    let to_the_end = |scratch: &mut Scratch, (_, r): (f64, usize)| {
        let inertia = scratch.replicate(&set, settings, r as u64, 0.0);
        ((inertia, r), std::mem::take(&mut scratch.labels))
    };
    let ((inertia, _), labels) = reached
        .into_par_iter()
        .map_init(|| Scratch::new(&set, k), to_the_end)
        .min_by(|a, b| order(&a.0, &b.0))
        .ok_or(Error::Empty { what: "the list of replicates" })?;
    Ok(Clustered { partition: Partition::ordered_by_mass(&labels[..n], weights, k), inertia })
}

/// The points in groups of [`LANES`]: coordinate `j` of a group is one lane. The last group is filled up with copies of the last
/// point, which weigh nothing.
struct PointSet {
    points: usize,
    coordinates: usize,
    lanes: Vec<Lane>,
}

impl PointSet {
    fn new(points: &Mat) -> Self {
        let (n, p) = (points.rows(), points.cols());
        let lanes = (0..n.div_ceil(LANES))
            .flat_map(|g| (0..p).map(move |j| std::array::from_fn(|l| points[((g * LANES + l).min(n - 1), j)])))
            .collect();
        PointSet { points: n, coordinates: p, lanes }
    }

    fn groups(&self) -> usize {
        self.points.div_ceil(LANES)
    }

    #[inline(always)]
    fn group(&self, g: usize) -> &[Lane] {
        &self.lanes[g * self.coordinates..(g + 1) * self.coordinates]
    }

    fn coordinate(&self, i: usize, j: usize) -> f64 {
        self.lanes[(i / LANES) * self.coordinates + j][i % LANES]
    }

    /// Points of the last group that are real.
    fn real(&self, g: usize) -> usize {
        (self.points - g * LANES).min(LANES)
    }
}

/// `||x - c||^2` for the points of a group.
#[inline(always)]
fn distances(group: &[Lane], centre: &[f64]) -> Lane {
    let mut sum = [0.0; LANES];
    for (x, c) in group.iter().zip(centre) {
        for l in 0..LANES {
            let difference = x[l] - c;
            sum[l] += difference * difference;
        }
    }
    sum
}

/// What one replicate needs, kept from one to the next.
struct Scratch {
    centres: Vec<f64>,
    sums: Vec<f64>,
    counts: Vec<usize>,
    labels: Vec<u32>,
    /// Squared distance to the nearest centre.
    nearest: Vec<Lane>,
    trial: Vec<Lane>,
    best_trial: Vec<Lane>,
    cumulative: Vec<f64>,
}

impl Scratch {
    fn new(set: &PointSet, k: usize) -> Self {
        let (p, groups) = (set.coordinates, set.groups());
        let lanes = || vec![[0.0; LANES]; groups];
        Scratch {
            centres: vec![0.0; k * p],
            sums: vec![0.0; k * p],
            counts: vec![0; k],
            labels: Vec::new(),
            nearest: lanes(),
            trial: lanes(),
            best_trial: lanes(),
            cumulative: vec![0.0; groups * LANES],
        }
    }

    /// One start and its descent, until no point moves or a pass gains less than the share `tolerance`; the labels stay in
    /// `self.labels`.
    fn replicate(&mut self, set: &PointSet, settings: &KMeans, number: u64, tolerance: f64) -> f64 {
        // An odd multiplier that is not the increment with which seeds are stretched: streams of neighbours share nothing.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed ^ (number + 1).wrapping_mul(0xd134_2543_de82_ef95));
        self.spread(set, settings.clusters, &mut rng);
        self.labels.clear();
        self.labels.resize(set.groups() * LANES, u32::MAX);
        self.sums.fill(0.0);
        self.counts.fill(0);
        let mut inertia = f64::INFINITY;
        for _ in 0..settings.passes {
            let (sum, moved) = self.assign(set);
            let little = tolerance > 0.0 && inertia - sum < tolerance * sum;
            inertia = sum;
            if !moved || little {
                break;
            }
            self.refill_empty(set);
            self.centre(set.coordinates);
        }
        inertia
    }

    /// Greedy k-means++ (Arthur and Vassilvitskii): each centre is the best of a few drawn by their squared distance to those
    /// before it.
    fn spread(&mut self, set: &PointSet, k: usize, rng: &mut Xoshiro256PlusPlus) {
        let trials = 2 + (k as f64).ln() as usize;
        let first = rng.random_range(0..set.points);
        self.put_centre(set, 0, first);
        self.nearest.fill([f64::INFINITY; LANES]);
        measure(set, &self.centres[..set.coordinates], &self.nearest, &mut self.trial);
        std::mem::swap(&mut self.nearest, &mut self.trial);
        for c in 1..k {
            let mut sum = 0.0;
            for (at, d) in self.cumulative[..set.points].iter_mut().zip(self.nearest.as_flattened()) {
                sum += d;
                *at = sum;
            }
            let (mut best, mut lowest) = (0, f64::INFINITY);
            for _ in 0..trials {
                let mark = rng.random::<f64>() * sum;
                let i = self.cumulative[..set.points].partition_point(|&x| x <= mark).min(set.points - 1);
                self.put_centre(set, c, i);
                let p = set.coordinates;
                let value = measure(set, &self.centres[c * p..(c + 1) * p], &self.nearest, &mut self.trial);
                if value < lowest {
                    (best, lowest) = (i, value);
                    std::mem::swap(&mut self.best_trial, &mut self.trial);
                }
            }
            self.put_centre(set, c, best);
            std::mem::swap(&mut self.nearest, &mut self.best_trial);
        }
    }

    fn put_centre(&mut self, set: &PointSet, c: usize, i: usize) {
        for j in 0..set.coordinates {
            self.centres[c * set.coordinates + j] = set.coordinate(i, j);
        }
    }

    /// Each point to its nearest centre; the sums follow those that moved. Hands back the inertia and whether any did.
    fn assign(&mut self, set: &PointSet) -> (f64, bool) {
        assign_points(set, &self.centres, &mut self.nearest, &mut self.labels, &mut self.sums, &mut self.counts)
    }

    /// A centre that lost all its points takes the one farthest from its own.
    fn refill_empty(&mut self, set: &PointSet) {
        let p = set.coordinates;
        while let Some(empty) = self.counts.iter().position(|&n| n == 0) {
            let distance = self.nearest.as_flattened();
            let far =
                (0..set.points).filter(|&i| self.counts[self.labels[i] as usize] > 1).max_by(|&a, &b| distance[a].total_cmp(&distance[b]));
            let Some(i) = far.filter(|&i| distance[i] > 0.0) else { return };
            let old = self.labels[i] as usize;
            self.counts[old] -= 1;
            self.counts[empty] = 1;
            for j in 0..p {
                let x = set.coordinate(i, j);
                self.sums[old * p + j] -= x;
                self.sums[empty * p + j] = x;
            }
            self.labels[i] = empty as u32;
            self.nearest[i / LANES][i % LANES] = 0.0;
        }
    }

    /// Centres to the means of their points; an empty one stays.
    fn centre(&mut self, p: usize) {
        for (c, &n) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let share = 1.0 / n as f64;
            (0..p).for_each(|j| self.centres[c * p + j] = self.sums[c * p + j] * share);
        }
    }
}

wide! {
    /// Each point to its nearest centre; the inertia and whether any point moved.
    fn assign_points<'w>(
        set: &'w PointSet,
        centres: &'w [f64],
        nearest: &'w mut [Lane],
        labels: &'w mut [u32],
        sums: &'w mut [f64],
        counts: &'w mut [usize],
    ) -> (f64, bool) {
        let p = set.coordinates;
        let (mut inertia, mut moved) = ([0.0; LANES], false);
        for g in 0..set.groups() {
            let group = set.group(g);
            let (mut low, mut which) = ([f64::INFINITY; LANES], [0.0; LANES]);
            for (c, centre) in centres.chunks_exact(p).enumerate() {
                let d = distances(group, centre);
                let c = c as f64;
                for l in 0..LANES {
                    which[l] = if d[l] < low[l] { c } else { which[l] };
                    low[l] = if d[l] < low[l] { d[l] } else { low[l] };
                }
            }
            nearest[g] = low;
            for l in 0..set.real(g) {
                inertia[l] += low[l];
                let (old, new) = (labels[g * LANES + l], which[l] as u32);
                if old != new {
                    moved = true;
                    labels[g * LANES + l] = new;
                    if old != u32::MAX {
                        counts[old as usize] -= 1;
                        (0..p).for_each(|j| sums[old as usize * p + j] -= group[j][l]);
                    }
                    counts[new as usize] += 1;
                    (0..p).for_each(|j| sums[new as usize * p + j] += group[j][l]);
                }
            }
        }
        (inertia.iter().sum(), moved)
    }
}

wide! {
    /// `out = min(nearest, ||x - centre||^2)` and its sum.
    fn measure<'w>(set: &'w PointSet, centre: &'w [f64], nearest: &'w [Lane], out: &'w mut [Lane]) -> f64 {
        let mut sum = [0.0; LANES];
        let whole = set.points / LANES;
        for g in 0..set.groups() {
            let d = distances(set.group(g), centre);
            for l in 0..LANES {
                out[g][l] = if d[l] < nearest[g][l] { d[l] } else { nearest[g][l] };
            }
            if g < whole {
                (0..LANES).for_each(|l| sum[l] += out[g][l]);
            } else {
                (0..set.real(g)).for_each(|l| sum[l] += out[g][l]);
            }
        }
        sum.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_points(n: usize, p: usize, seed: u64) -> Mat {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Mat::from_fn(n, p, |_, _| rng.random::<f64>())
    }

    fn inertia_of(points: &Mat, labels: &[u32], k: usize) -> f64 {
        (0..k as u32)
            .map(|c| {
                let members: Vec<usize> = (0..points.rows()).filter(|&i| labels[i] == c).collect();
                let mean = |j: usize| members.iter().map(|&i| points[(i, j)]).sum::<f64>() / members.len() as f64;
                (0..points.cols()).map(|j| members.iter().map(|&i| (points[(i, j)] - mean(j)).powi(2)).sum::<f64>()).sum::<f64>()
            })
            .sum()
    }

    /// The best partition of all there are.
    fn brute_force(points: &Mat, k: usize) -> f64 {
        let n = points.rows();
        let mut best = f64::INFINITY;
        for code in 0..(k as u64).pow(n as u32) {
            let labels: Vec<u32> = (0..n).map(|i| (code / (k as u64).pow(i as u32) % k as u64) as u32).collect();
            if (0..k as u32).all(|c| labels.contains(&c)) {
                best = best.min(inertia_of(points, &labels, k));
            }
        }
        best
    }

    #[test]
    fn tiny_sets_reach_the_best_of_all_partitions() {
        for (n, p, k, seed) in [(9, 2, 2, 1), (9, 3, 3, 2), (8, 1, 4, 3), (8, 2, 3, 4)] {
            let points = random_points(n, p, seed);
            let found = kmeans(&points, &vec![1.0; n], &KMeans::new(k, n, p, 7)).unwrap();
            let best = brute_force(&points, k);
            assert!((found.inertia - best).abs() < 1e-12, "{n} {p} {k}: {} against {best}", found.inertia);
            assert!((inertia_of(&points, &found.partition.labels, k) - found.inertia).abs() < 1e-12);
        }
    }

    #[test]
    fn the_same_labels_for_any_number_of_threads() {
        let points = random_points(701, 5, 3);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| kmeans(&points, &vec![1.0; 701], &KMeans { clusters: 6, replicates: 40, passes: 300, seed: 5 }).unwrap())
        };
        let one = run(1);
        assert!(run(2) == one && run(8) == one);
    }

    #[test]
    fn labels_fall_by_mass_and_every_state_is_nearest_to_its_own_centre() {
        let points = random_points(500, 3, 8);
        let weights: Vec<f64> = (0..500).map(|i| 1.0 + (i % 7) as f64).collect();
        let found = kmeans(&points, &weights, &KMeans { clusters: 5, replicates: 20, passes: 300, seed: 1 }).unwrap().partition;
        assert!(found.masses.windows(2).all(|w| w[0] >= w[1]), "{:?}", found.masses);
        let centre = |c: u32, j: usize| {
            let members: Vec<usize> = (0..500).filter(|&i| found.labels[i] == c).collect();
            members.iter().map(|&i| points[(i, j)]).sum::<f64>() / members.len() as f64
        };
        let centres = Mat::from_fn(5, 3, |c, j| centre(c as u32, j));
        for i in 0..500 {
            let distance = |c: usize| (0..3).map(|j| (points[(i, j)] - centres[(c, j)]).powi(2)).sum::<f64>();
            let own = distance(found.labels[i] as usize);
            assert!((0..5).all(|c| own <= distance(c) + 1e-12));
        }
    }

    #[test]
    fn equal_points_leave_clusters_empty_and_bad_settings_are_refused() {
        let points = Mat::from_fn(6, 2, |i, _| (i % 2) as f64);
        let found = kmeans(&points, &[1.0; 6], &KMeans::new(4, 6, 2, 0)).unwrap();
        assert_eq!((found.inertia, found.partition.sizes), (0.0, vec![3, 3, 0, 0]));
        assert!(kmeans(&points, &[1.0; 6], &KMeans::new(7, 6, 2, 0)).is_err());
        assert!(kmeans(&points, &[1.0; 5], &KMeans::new(2, 6, 2, 0)).is_err());
        let nan = Mat::from_fn(3, 1, |i, _| if i == 1 { f64::NAN } else { 0.0 });
        assert!(kmeans(&nan, &[1.0; 3], &KMeans::new(2, 3, 1, 0)).is_err());
    }

    #[test]
    fn the_largest_membership_decides() {
        let u = Mat::from_vec(3, 2, vec![0.4, 0.6, 0.5, 0.5, 0.1, 0.9]).unwrap();
        let found = Partition::by_membership(&u, &[0.2, 0.3, 0.5]);
        // Numbered as the columns; of two equal memberships the first decides.
        assert_eq!(found.labels, [1, 0, 1]);
        assert_eq!(found.sizes, [1, 2]);
        // Other numbers for the same zones find their columns again.
        let turned = Partition::numbered(vec![0, 1, 0], &[0.2, 0.3, 0.5], 2);
        assert_eq!(turned.numbered_as_columns(&u, &[0.2, 0.3, 0.5]), found);
    }
}
