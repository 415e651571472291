//! The problem: `F(U, V) = 1/2 ||Xi (P - U V^T)||_F^2 + lambda sum_j ||U_j|| ||V_j||`, U row-stochastic, V
//! column-stochastic (the paper's (4.1)). X = U V^T is never formed: all is written in `Q = P V`, `B = P^T Xi^2 U` and the
//! Gram matrices `G = V^T V`, `A = U^T Xi^2 U`.
//!
//! The same in other coordinates ([`Frame`]): row i of U sums to `totals_i`, columns of V have `sum_j measure_j v_j = 1`, and norms are taken in a [`Metric`]. The paper's problem has ones and no
//! metric. Multiplying by one changes no bit, so both are one program.

use std::sync::Arc;

use super::metric::Metric;
use crate::error::{Error, Result};
use crate::linalg::{Mat, Operator, thin};

/// Largest number of states for which a vanishing residual is recomputed entry by entry.
const DENSE_RESIDUAL: usize = 6000;

/// Below this share of `||Xi P||^2` a fidelity is all rounding and is summed entry by entry.
const ALL_ROUNDING: f64 = 1e-10;
/// Below this share of `||Xi P||^2` a published fidelity is summed entry by entry.
const CANCELLED: f64 = 1e-4;

/// The data, the weights and lambda.
///
/// The example of [`solve`](super::solve) states one and solves it.
#[derive(Debug, Clone)]
pub struct Problem<'a> {
    /// P.
    pub p: &'a dyn Operator,
    /// The diagonal of Xi: the share xi of each state raised to the power of the objective, [`Chain::weights`](crate::Chain::weights).
    pub weights: &'a [f64],
    /// The diagonal of Xi^2: the squares of the weights.
    pub xi2: Vec<f64>,
    /// The cost of one unit of Omega.
    pub lambda: f64,
    /// `||Xi P||_F^2`.
    pub data_norm2: f64,
    /// What the rows and columns of X sum to, and the prices of directions.
    pub frame: Arc<Frame>,
}

/// The coordinates in which a problem is written: `X measure = totals`, atoms cost `||L u|| ||R v||`.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What each row of U sums to; ones in the paper's problem.
    pub totals: Vec<f64>,
    /// The weights with which each column of V sums to one; ones in the paper's problem.
    pub measure: Vec<f64>,
    /// L and R; none where every direction costs the same.
    pub metric: Option<Arc<Metric>>,
    plain: bool,
}

impl Frame {
    /// The paper's.
    #[must_use]
    pub fn plain(rows: usize, cols: usize) -> Self {
        Frame { totals: vec![1.0; rows], measure: vec![1.0; cols], metric: None, plain: true }
    }

    /// Totals and measure must be positive.
    pub fn new(totals: Vec<f64>, measure: Vec<f64>, metric: Option<Arc<Metric>>) -> Result<Self> {
        let wrong = |x: &&f64| !(x.is_finite() && **x > 0.0);
        if let Some(x) = totals.iter().chain(&measure).find(wrong) {
            return Err(Error::Setting { name: "a weight", value: x.to_string(), allowed: "weights must be positive" });
        }
        let size = |what, expected, found| if expected == found { Ok(()) } else { Err(Error::SizeMismatch { what, expected, found }) };
        if let Some(metric) = &metric {
            size("the directions of the rows", totals.len(), metric.left.basis().rows())?;
            size("the directions of the columns", measure.len(), metric.right.basis().rows())?;
        }
        Ok(Frame { totals, measure, metric, plain: false })
    }

    /// Whether all totals and measures are one.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// The same coordinates with other prices.
    pub fn with_metric(&self, metric: Option<Arc<Metric>>) -> Result<Self> {
        Frame::new(self.totals.clone(), self.measure.clone(), metric)
    }

    /// Stochastic factors in these coordinates: row i of U times its total, row j of V over its measure.
    #[must_use]
    pub fn enter(&self, x: &Factors) -> Factors {
        let mut inside = x.clone();
        if !self.plain {
            thin::scale_rows(&mut inside.u, &self.totals);
            thin::for_each_row_mut(&mut inside.v, |j, row| row.iter_mut().for_each(|v| *v /= self.measure[j]));
        }
        inside
    }

    /// The way back.
    #[must_use]
    pub fn leave(&self, mut x: Factors) -> Factors {
        if !self.plain {
            thin::for_each_row_mut(&mut x.u, |i, row| row.iter_mut().for_each(|u| *u /= self.totals[i]));
            thin::scale_rows(&mut x.v, &self.measure);
        }
        x
    }

    /// `sum_j measure_j m_jk` of every column.
    pub(crate) fn measured(&self, m: &Mat) -> Vec<f64> {
        match self.plain {
            true => thin::column_sums(m),
            false => thin::fold_rows(m, |sums, j, row| sums.iter_mut().zip(row).for_each(|(s, x)| *s += self.measure[j] * x)),
        }
    }

    /// `||totals||^2` and `||measure||^2`: the numbers of rows and columns, where all are one.
    pub(crate) fn squares(&self) -> (f64, f64) {
        (self.totals.iter().map(|t| t * t).sum(), self.measure.iter().map(|c| c * c).sum())
    }
}

/// The two parts of F.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// `g = 1/2 ||Xi (P - U V^T)||_F^2`.
    pub fidelity: f64,
    /// `sum_j ||U_j|| ||V_j||`, not yet multiplied by lambda.
    pub regularizer: f64,
    /// `g + lambda * regularizer`.
    pub value: f64,
}

/// `U` (`m x s`, rows sum to one) and `V` (`n x s`, columns sum to one).
///
/// ```
/// use metastate::Mat;
/// use metastate::solve::Factors;
///
/// let u = Mat::from_vec(3, 2, vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0])?;
/// let v = Mat::from_vec(3, 2, vec![0.0, 0.5, 0.0, 0.5, 1.0, 0.0])?;
/// let mut model = Factors { u, v };
/// assert_eq!(model.mass(&[0.4, 0.4, 0.2]), [0.2, 0.8]);
/// model.order_by_mass(&[0.4, 0.4, 0.2]); // the heavier meta-state becomes the first
/// assert_eq!(model.u.row(0), [1.0, 0.0]);
/// # Ok::<(), metastate::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Factors {
    /// Memberships: the probability that state i acts as meta-state j.
    pub u: Mat,
    /// Destinations: where meta-state j goes.
    pub v: Mat,
}

impl Factors {
    /// Number of columns s.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.u.cols()
    }

    /// Keeps the columns named and makes the rows of U sum to one again.
    pub fn keep_columns(&mut self, keep: &[usize]) {
        self.u = self.u.select_columns(keep);
        self.v = self.v.select_columns(keep);
        self.normalise_rows();
    }

    /// Keeps the columns named and makes the rows of U sum again to what they should.
    pub(crate) fn keep_columns_in(&mut self, keep: &[usize], frame: &Frame) {
        self.keep_columns(keep);
        thin::scale_rows(&mut self.u, &frame.totals);
    }

    /// The mass of each meta-state, `sum_i share_i u_ij`.
    #[must_use]
    pub fn mass(&self, shares: &[f64]) -> Vec<f64> {
        thin::fold_rows(&self.u, |sums, i, row| sums.iter_mut().zip(row).for_each(|(s, u)| *s += shares[i] * u))
    }

    /// The columns from the largest mass to the smallest.
    pub(crate) fn by_mass(&self, shares: &[f64]) -> Vec<usize> {
        let mass = self.mass(shares);
        let mut order: Vec<usize> = (0..mass.len()).collect();
        order.sort_by(|&a, &b| mass[b].total_cmp(&mass[a]));
        order
    }

    /// Meta-state 1 is the one with the largest mass, and so on.
    pub fn order_by_mass(&mut self, shares: &[f64]) {
        let order = self.by_mass(shares);
        self.u = self.u.select_columns(&order);
        self.v = self.v.select_columns(&order);
    }

    /// Divides each row of U by its sum; a row without mass becomes uniform.
    pub fn normalise_rows(&mut self) {
        thin::for_each_row_mut(&mut self.u, |_, row| {
            let sum: f64 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|x| *x /= sum);
            } else {
                let share = 1.0 / row.len() as f64;
                row.fill(share);
            }
        });
    }
}

impl<'a> Problem<'a> {
    /// Checks lambda and the sizes, once.
    pub fn new(p: &'a dyn Operator, weights: &'a [f64], lambda: f64) -> Result<Self> {
        if !(lambda.is_finite() && lambda > 0.0) {
            return Err(Error::Setting { name: "lambda", value: lambda.to_string(), allowed: "it must be a positive number" });
        }
        if weights.len() != p.rows() {
            return Err(Error::SizeMismatch { what: "the list of weights", expected: p.rows(), found: weights.len() });
        }
        if let Some(i) = weights.iter().position(|w| !(w.is_finite() && *w > 0.0)) {
            return Err(Error::Setting {
                name: "a weight",
                value: format!("{} for state {i}", weights[i]),
                allowed: "weights must be positive",
            });
        }
        let xi2 = weights.iter().map(|w| w * w).collect();
        let frame = Arc::new(Frame::plain(p.rows(), p.cols()));
        Ok(Problem { p, weights, xi2, lambda, data_norm2: p.weighted_norm_squared(weights), frame })
    }

    /// The same in other coordinates. Prices of directions need rows that weigh the same.
    pub fn in_frame(p: &'a dyn Operator, weights: &'a [f64], lambda: f64, frame: Arc<Frame>) -> Result<Self> {
        let size = |what, expected, found| if expected == found { Ok(()) } else { Err(Error::SizeMismatch { what, expected, found }) };
        size("the totals of the rows", p.rows(), frame.totals.len())?;
        size("the measures of the columns", p.cols(), frame.measure.len())?;
        if frame.metric.is_some() && weights.iter().any(|w| *w != 1.0) {
            return Err(Error::Setting {
                name: "a weight",
                value: "a number other than 1".to_owned(),
                allowed: "with prices of directions all rows must weigh 1",
            });
        }
        Ok(Problem { frame, ..Problem::new(p, weights, lambda)? })
    }

    /// `||L u_j||` of every column.
    #[must_use]
    pub fn u_norms(&self, u: &Mat) -> Vec<f64> {
        match &self.frame.metric {
            None => thin::column_norms(u),
            Some(metric) => metric.left.norms_squared(u).iter().map(|n| n.sqrt()).collect(),
        }
    }

    /// `||R v_j||` of every column; `g` is `V^T V`.
    #[must_use]
    pub fn v_norms(&self, v: &Mat, g: &Mat) -> Vec<f64> {
        match &self.frame.metric {
            None => diagonal_roots(g),
            Some(metric) => metric.right.norms_squared(v).iter().map(|n| n.sqrt()).collect(),
        }
    }

    /// The same data at another lambda.
    #[must_use]
    pub fn at_lambda(&self, lambda: f64) -> Problem<'a> {
        Problem { lambda, ..self.clone() }
    }

    /// Number of rows m, the states that are left.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.weights.len()
    }

    /// Number of columns n, the states that are reached.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.p.cols()
    }

    /// The larger of the two: what a routine that may cost its square asks for.
    #[must_use]
    pub fn larger_side(&self) -> usize {
        self.rows().max(self.cols())
    }

    /// `Q = P V`.
    pub fn times_v(&self, v: &Mat, q: &mut Mat) {
        self.p.apply(v, q);
    }

    /// `B = P^T Xi^2 U`.
    pub fn transposed_times_u(&self, u: &Mat, b: &mut Mat) {
        self.p.apply_transpose_weighted(&self.xi2, u, b);
    }

    /// F and its parts, from scratch.
    #[must_use]
    pub fn objective(&self, x: &Factors) -> Objective {
        let mut q = Mat::default();
        self.times_v(&x.v, &mut q);
        let cross = self.weighted_inner(&q, &x.u);
        let (a, g) = (thin::weighted_gram(&x.u, &self.xi2), thin::gram(&x.v));
        self.objective_from(x, cross, &a, &g)
    }

    /// F for a published result: where the fidelity is a small difference of large numbers, it is summed entry by entry.
    #[must_use]
    pub fn published_objective(&self, x: &Factors) -> Objective {
        let mut found = self.objective(x);
        if found.fidelity < CANCELLED * self.data_norm2 && self.larger_side() <= DENSE_RESIDUAL {
            found.fidelity = self.fidelity_by_rows(x);
            found.value = found.fidelity + self.lambda * found.regularizer;
        }
        found
    }

    /// F from `<Xi^2 Q, U> = <B, V>`, A and G; recomputed entry by entry when the difference would be all rounding.
    pub(crate) fn objective_from(&self, x: &Factors, cross: f64, a: &Mat, g: &Mat) -> Objective {
        let mut fidelity = self.fidelity_from(cross, a, g);
        if fidelity < ALL_ROUNDING * self.data_norm2 && self.larger_side() <= DENSE_RESIDUAL {
            fidelity = self.fidelity_by_rows(x);
        }
        let regularizer = regularizer(&self.u_norms(&x.u), &self.v_norms(&x.v, g));
        Objective { fidelity, regularizer, value: fidelity + self.lambda * regularizer }
    }

    /// `g = 1/2 ||Xi P||^2 - <B, V> + 1/2 <A, G>`.
    pub(crate) fn fidelity_from(&self, cross: f64, a: &Mat, g: &Mat) -> f64 {
        (0.5 * self.data_norm2 - cross + 0.5 * thin::dot(a.as_slice(), g.as_slice())).max(0.0)
    }

    /// `1/2 sum_i Xi_i^2 ||p_i - V u_i||^2`, free of cancellation, `O(m n s)`.
    fn fidelity_by_rows(&self, x: &Factors) -> f64 {
        let (m, n) = (self.rows(), self.cols());
        let residual = |rows: std::ops::Range<usize>| {
            let mut row = vec![0.0; n];
            rows.map(|i| {
                for (r, v) in row.iter_mut().zip(x.v.as_slice().chunks_exact(x.rank())) {
                    *r = -thin::dot(x.u.row(i), v);
                }
                self.p.row(i).for_each(n, |j, p| row[j] += p);
                0.5 * self.xi2[i] * thin::dot(&row, &row)
            })
            .sum::<f64>()
        };
        thin::sum_blocks(m, 2 * n * x.rank(), residual, |a, b| *a += b).unwrap_or(0.0)
    }

    /// `<Xi^2 M, N>`.
    #[must_use]
    pub fn weighted_inner(&self, m: &Mat, n: &Mat) -> f64 {
        thin::sum_over_rows(m.rows(), 2 * m.cols(), |i| self.xi2[i] * thin::dot(m.row(i), n.row(i)))
    }
}

/// `sum_j ||U_j|| ||V_j||` from the columns' norms.
#[must_use]
pub fn regularizer(u_norms: &[f64], v_norms: &[f64]) -> f64 {
    thin::dot(u_norms, v_norms)
}

/// `a / n` for a column's length n; zero where it has none, since the norm's subgradients there hold zero.
pub(crate) fn ratio(a: f64, n: f64) -> f64 {
    if n > 0.0 { (a / n).min(f64::MAX) } else { 0.0 }
}

/// Column norms from a Gram matrix.
fn diagonal_roots(g: &Mat) -> Vec<f64> {
    (0..g.rows()).map(|j| g[(j, j)].max(0.0).sqrt()).collect()
}
