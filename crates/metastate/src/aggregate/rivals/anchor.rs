//! The anchor-state method (Duan, Ke and Wang 2019): right singular vectors of the counts, divided by the first one (SCORE), lie in a
//! simplex whose vertices are the states that only one meta-state reaches; hunting them gives V, regression on V gives U.

use super::{RivalSettings, Training};
use crate::aggregate::clusters::{KMeans, kmeans};
use crate::error::Result;
use crate::linalg::singular::{MatrixFree, TruncatedSvd, truncated_svd};
use crate::linalg::thin::scale_rows;
use crate::linalg::{Mat, Operator, small, thin};
use crate::solve::Factors;
use crate::solve::local::project_rows;
use crate::solve::start::successive_projections;

/// Local centres a vertex among which the vertices are hunted: means of neighbours suffer less from noise than single states.
const CENTRES_PER_VERTEX: usize = 10;
/// Starts of the clustering that finds them.
const STARTS: usize = 10;

/// Passes of each start, at most.
const PASSES: usize = 100;
/// Entries of the first singular vector up to this are states that nobody reaches.
const NOT_REACHED: f64 = 1e-12;

/// `N diag(arrivals)^-1/2` with N the counts.
struct ScaledCounts<'a> {
    p: &'a dyn Operator,
    departures: &'a [f64],
    scale: Vec<f64>,
}

impl MatrixFree for ScaledCounts<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.departures.len(), self.scale.len())
    }

    fn times(&self, x: &Mat, out: &mut Mat) {
        let mut scaled = x.clone();
        scale_rows(&mut scaled, &self.scale);
        self.p.apply(&scaled, out);
        scale_rows(out, self.departures);
    }

    fn transposed_times(&self, y: &Mat, out: &mut Mat) {
        let mut scaled = y.clone();
        scale_rows(&mut scaled, self.departures);
        self.p.apply_transpose(&scaled, out);
        scale_rows(out, &self.scale);
    }
}

/// U and V.
pub fn factors(training: &Training, settings: &RivalSettings) -> Result<Factors> {
    let mut arrivals = Mat::default();
    let departures = Mat::from_fn(training.rows(), 1, |i, _| training.departures()[i]);
    training.p().apply_transpose(&departures, &mut arrivals);
    let arrivals = arrivals.into_vec();
    let n = arrivals.len();
    let scale: Vec<f64> = arrivals.iter().map(|n| if *n > 0.0 { 1.0 / n.sqrt() } else { 0.0 }).collect();
    let scaled = ScaledCounts { p: training.p(), departures: training.departures(), scale };
    let h = truncated_svd(&scaled, &TruncatedSvd::new(settings.rank, settings.seed)).right;
    let r = h.cols();
    // The first vector has one sign (Perron); states that nobody reaches have no ratio.
    let sign = if (0..n).map(|j| h[(j, 0)]).sum::<f64>() < 0.0 { -1.0 } else { 1.0 };
    let reached: Vec<usize> = (0..n).filter(|&j| sign * h[(j, 0)] > NOT_REACHED).collect();
    let ratios = Mat::from_fn(reached.len(), r, |k, c| if c == 0 { 1.0 } else { h[(reached[k], c)] / h[(reached[k], 0)] });
    let vertices = hunt(&ratios, &reached.iter().map(|&j| arrivals[j]).collect::<Vec<_>>(), settings)?;
    // Weights of each ratio with respect to the vertices (the column of ones makes them sum to one), cut at zero.
    let mut w = Mat::default();
    thin::product(&ratios, &small::pseudo_inverse(&vertices), &mut w);
    let mut v = Mat::zeros(n, w.cols());
    for (k, &j) in reached.iter().enumerate() {
        let row = w.row(k);
        let sum: f64 = row.iter().map(|x| x.max(0.0)).sum();
        if sum > 0.0 {
            let size = h[(j, 0)].abs() * arrivals[j].sqrt() / sum;
            v.row_mut(j).iter_mut().zip(row).for_each(|(v, w)| *v = size * w.max(0.0));
        }
    }
    let sums = thin::column_sums(&v);
    let marginal = training.observed().marginal();
    thin::for_each_row_mut(&mut v, |j, row| {
        row.iter_mut().zip(&sums).for_each(|(x, s)| *x = if *s > 0.0 { *x / s } else { marginal[j] });
    });
    // min_u ||diag(m)^-1/2 (p_i - V u)||: the noise of an entry is as large as its mean.
    let mut weighted = v.clone();
    let inverse: Vec<f64> = marginal.iter().map(|m| 1.0 / m).collect();
    scale_rows(&mut weighted, &inverse);
    let gram = thin::cross_gram(&v, &weighted);
    let mut q = Mat::default();
    training.p().apply(&weighted, &mut q);
    let mut u = Mat::default();
    thin::product(&q, &small::pseudo_inverse(&gram), &mut u);
    project_rows(&mut u);
    Ok(Factors { u, v })
}

/// The outermost of many local means.
fn hunt(ratios: &Mat, weights: &[f64], settings: &RivalSettings) -> Result<Mat> {
    let (n, r) = (ratios.rows(), ratios.cols());
    let clusters = (CENTRES_PER_VERTEX * r).min(n);
    let found = kmeans(ratios, weights, &KMeans { clusters, replicates: STARTS, passes: PASSES, seed: settings.seed })?.partition;
    let mut centres = Mat::zeros(clusters, r);
    for i in 0..n {
        let c = found.labels[i] as usize;
        let size = found.sizes[c] as f64;
        centres.row_mut(c).iter_mut().zip(ratios.row(i)).for_each(|(m, x)| *m += x / size);
    }
    let vertices = successive_projections(&centres, r);
    Ok(Mat::from_fn(vertices.len(), r, |l, j| centres[(vertices[l], j)]))
}
