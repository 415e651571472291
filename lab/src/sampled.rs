//! Section 6.2: chains seen through a trajectory.

use std::time::Instant;

use metastate::fit::{FitObserver, Stage};
use metastate::proof::{Candidate, prove};
use metastate::solve::{Control, Effort, Factors, Observer, Phase, Problem, Progress, Settings, Solution, Start, Status, StopRule, solve};
use metastate::workspace::errors::relative_duality_gap;
use metastate::workspace::grow::{AscentSearch, ascend};
use metastate::workspace::refit::least_squares;
use metastate::workspace::relaxation::{self, Relaxation};
use metastate::{FitOptions, Mat, fit};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::instance::Instance;
use crate::paper::EPSILON;

/// A solution in the columns of the paper's tables.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Solved {
    pub lambda: f64,
    pub rank: usize,
    pub objective: f64,
    pub rel_re: f64,
    /// From the first sweep to the last: no evaluation, and for the paper's algorithm no relaxation either.
    pub seconds: f64,
    /// relLE1, relLE2, GE, relDG.
    pub errors: [f64; 4],
    /// The certified gap; none where nothing was proven.
    pub proven: Option<f64>,
    pub sweeps: usize,
    pub status: String,
}

impl Solved {
    pub fn new(solution: &Solution, rel_re: f64, watch: &Watch) -> Self {
        let e = &solution.errors;
        let status = if watch.cycled && solution.status == Status::Interrupted { "cycle" } else { solution.status.as_str() };
        Solved {
            lambda: solution.lambda,
            rank: solution.rank(),
            objective: solution.objective.value,
            rel_re,
            seconds: watch.seconds(),
            errors: [e.rel_le1, e.rel_le2, e.ge, e.rel_dg],
            proven: proven_gap(solution),
            sweeps: solution.sweeps,
            status: status.into(),
        }
    }
}

/// `(F - lower bound) / F` where the lower bound was proven. A bound that only steered is none.
pub fn proven_gap(solution: &Solution) -> Option<f64> {
    solution.certified_gap()
}

/// The same for a point of the relaxation: how far its value is above the proven lower bound.
fn proven_gap_of(problem: &Problem, x: &Relaxation) -> Option<f64> {
    let (proven, _) = prove(problem, &[Candidate { a: &x.a, b: &x.b, mu: &x.mu }], f64::INFINITY, &Effort::default());
    Some(proven.gap(x.value))
}

/// Watches the clock and, in paper mode, for cycles.
///
/// The paper's Algorithm 1 may append a column for a decrease of 1e-5 and remove it again for a rise: the text does not say what ends
/// this. Here it ends when a locally solved point has no fewer columns than an earlier one and F is not lower by 1e-5, the paper's own
/// measure of a decrease worth a column.
pub struct Watch {
    paper_mode: bool,
    begun: Option<Instant>,
    ended: Option<Instant>,
    created: Instant,
    limit: Option<f64>,
    seen: Vec<(usize, f64)>,
    pub cycled: bool,
}

/// The paper's decrease.
const WORTH_A_COLUMN: f64 = 1e-5;

impl Watch {
    /// With a limit in seconds, if any.
    pub fn new(paper_mode: bool, limit: Option<f64>) -> Self {
        Watch { paper_mode, begun: None, ended: None, created: Instant::now(), limit, seen: Vec::new(), cycled: false }
    }

    fn seconds(&self) -> f64 {
        let begun = if self.paper_mode { self.begun.unwrap_or(self.created) } else { self.created };
        self.ended.unwrap_or_else(Instant::now).duration_since(begun).as_secs_f64()
    }
}

impl Observer for Watch {
    fn progress(&mut self, p: &Progress) -> Control {
        match p.phase {
            Phase::Relaxing => {}
            Phase::Solving => _ = self.begun.get_or_insert_with(Instant::now),
            Phase::Certifying => self.ended = Some(Instant::now()),
            Phase::Checking if self.paper_mode => {
                if self.seen.iter().any(|(rank, value)| *rank <= p.rank && value * (1.0 - WORTH_A_COLUMN) <= p.objective) {
                    self.cycled = true;
                    return Control::Interrupt;
                }
                self.seen.push((p.rank, p.objective));
            }
            Phase::Checking => {}
        }
        let up = self.limit.is_some_and(|l| self.created.elapsed().as_secs_f64() > l) && p.phase != Phase::Certifying;
        if up { Control::TimeUp } else { Control::Continue }
    }
}

/// relRE along lambda.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PathResult {
    /// Where the parabola through the lowest point and its neighbours has its minimum, and the minimum.
    pub lambda: f64,
    pub rel_re: f64,
    /// Falling in lambda.
    pub points: Vec<Point>,
    /// Proven at the lowest point: how far it is from the optimum. Of the first trajectory of a chain only, for the time it takes.
    pub proven: Option<f64>,
    pub rel_se: f64,
    pub sigma: [f64; 3],
}

/// One lambda of a path.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Point {
    pub lambda: f64,
    pub rel_re: f64,
    pub rank: usize,
    /// The certified gap; none where nothing was proven.
    pub proven: Option<f64>,
}

/// Between two lambdas of a path.
const STEP: f64 = 1.25;
/// Where a path starts, in units of the noise level; the first trajectory's, which is drawn, a little higher.
const FROM: [f64; 2] = [2.2, 6.0];
/// Relative gap at which the relaxation ends, by the bound that steers it.
const PRECISION: f64 = 3e-4;
/// Lambdas at most.
const MOST_POINTS: usize = 24;

/// relRE of the convex problem's solution from large lambda down, warm restarts, until it has risen.
///
/// The solution is that of the nuclear relaxation: `O(nnz k + d k^2)` a sweep at any rank, and no rank has to be given. How far it is
/// from the nonnegative solution is measured in [`crate::traps`].
pub fn path(instance: &Instance) -> Result<PathResult> {
    let noise = instance.noise_level();
    let r = instance.key.r;
    let problem = Problem::new(instance.chain().p(), instance.chain().weights(), noise)?;
    let cap = (16 * r + 40).min(instance.key.d / 2);
    let drawn = usize::from(instance.trajectory == 1);
    let mut lambda = FROM[drawn] * noise;
    let mut row_space: Mat = relaxation::random_row_space(&problem, (r + 6).min(cap), instance.trajectory);
    let mut points: Vec<Point> = Vec::new();
    let mut lowest: Option<(f64, f64, Relaxation)> = None;
    while points.len() < MOST_POINTS {
        let Some((point, x)) = relaxed(instance, &problem.at_lambda(lambda), &mut row_space, cap) else { break };
        points.push(point);
        if lowest.as_ref().is_none_or(|(error, ..)| point.rel_re < *error) {
            lowest = Some((point.rel_re, lambda, x));
        }
        let n = points.len();
        if n > 2 && points[n - 1].rel_re > points[n - 2].rel_re {
            break;
        }
        lambda /= STEP;
    }
    let (lambda, rel_re) = minimum(&points);
    let proven = lowest.filter(|_| instance.trajectory == 1).and_then(|(_, at, x)| proven_gap_of(&problem.at_lambda(at), &x));
    Ok(PathResult { lambda, rel_re, points, proven, rel_se: instance.sampling(), sigma: instance.sigma() })
}

/// The relaxation at one lambda, as far as it steers itself: nothing is proven. `row_space` is where it starts and where it ended.
pub fn relaxed(instance: &Instance, problem: &Problem, row_space: &mut Mat, cap: usize) -> Option<(Point, Relaxation)> {
    let (x, _) = relaxation::solve(problem, row_space.clone(), cap, PRECISION, 0, |_, _| true)?;
    *row_space = x.b.clone();
    let rel_re = instance.recovery(&Factors { u: x.a.clone(), v: x.b.clone() });
    Some((Point { lambda: problem.lambda, rel_re, rank: x.spectrum.len(), proven: None }, x))
}

/// Of the parabola in `(ln lambda, ln relRE)` through the lowest point and its two neighbours; the point itself at an end.
fn minimum(points: &[Point]) -> (f64, f64) {
    let Some(best) = (0..points.len()).min_by(|&a, &b| points[a].rel_re.total_cmp(&points[b].rel_re)) else { return (f64::NAN, f64::NAN) };
    let itself = (points[best].lambda, points[best].rel_re);
    if best == 0 || best + 1 == points.len() {
        return itself;
    }
    let at = |k: usize| (points[k].lambda.ln(), points[k].rel_re.ln());
    let ((x0, y0), (x1, y1), (x2, y2)) = (at(best - 1), at(best), at(best + 1));
    let (left, right) = ((y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1));
    let curvature = (right - left) / (x2 - x0);
    if curvature.is_nan() || curvature <= 0.0 {
        return itself;
    }
    // y = y1 + s (x - x1) + c (x - x1)^2.
    let slope = left + curvature * (x1 - x0);
    let shift = -slope / (2.0 * curvature);
    ((x1 + shift).exp(), (y1 + 0.5 * slope * shift).exp())
}

/// The paper's algorithm: PALM-BB, printed rules, s0 = 0.1 d as the captions say.
pub fn palm(instance: &Instance, threshold: usize, lambda: Option<f64>) -> Result<Solved> {
    let lambda = lambda.unwrap_or_else(|| 1.2 * instance.noise_level());
    let problem = Problem::new(instance.chain().p(), instance.chain().weights(), lambda)?;
    let settings = palm_settings(instance, threshold);
    let mut watch = Watch::new(true, None);
    let solution = solve(&problem, &settings, &mut watch)?;
    Ok(Solved::new(&solution, instance.recovery(&solution.factors), &watch))
}

/// The third threshold, as a share of sigma_r.
pub const BELOW_SIGMA: f64 = 0.4;

fn palm_settings(instance: &Instance, threshold: usize) -> Settings {
    let start = instance.key.d / 10;
    // Beyond the paper's two: one that cannot take a true meta-state.
    let epsilon = EPSILON.get(threshold).copied().unwrap_or_else(|| BELOW_SIGMA * instance.sigma()[1]);
    Settings { max_sweeps: 5000, ..Settings::paper(start, epsilon) }
}

/// The paper's algorithm along lambda with warm restarts, smaller threshold.
pub fn palm_path(instance: &Instance) -> Result<Vec<Point>> {
    let noise = instance.noise_level();
    let problem = Problem::new(instance.chain().p(), instance.chain().weights(), noise)?;
    let mut before: Option<Factors> = None;
    let mut points = Vec::new();
    for factor in [3.0, 2.2, 1.7, 1.4, 1.2, 1.0, 0.85, 0.7] {
        let mut settings = palm_settings(instance, 1);
        if let Some(x) = before.take() {
            settings = Settings { start: Start::Given(Box::new(x)), start_rank: None, ..settings };
        }
        let mut watch = Watch::new(true, None);
        let solution = solve(&problem.at_lambda(factor * noise), &settings, &mut watch)?;
        let rel_re = instance.recovery(&solution.factors);
        points.push(Point { lambda: solution.lambda, rel_re, rank: solution.rank(), proven: proven_gap(&solution) });
        before = Some(solution.factors);
    }
    Ok(points)
}

/// Our solver at the paper's lambda* and rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FixedResult {
    pub solved: Solved,
    /// relRE after the least-squares refit.
    pub least_squares: f64,
    /// The convex problem's solution at the same lambda.
    pub convex: Point,
    /// GE and relDG when the search for `Omega°` is three steps from one random start.
    pub weak: [f64; 2],
}

/// The fast solver with its certificate, no more columns than the paper has.
pub fn fixed(instance: &Instance, lambda: Option<f64>, rank: usize) -> Result<FixedResult> {
    let lambda = lambda.unwrap_or_else(|| 1.2 * instance.noise_level());
    let problem = Problem::new(instance.chain().p(), instance.chain().weights(), lambda)?;
    let settings = Settings { max_rank: rank, stop: StopRule::Certificate { gap: 1e-2 }, tolerance: 1e-4, ..Settings::default() };
    let mut watch = Watch::new(false, None);
    let solution = solve(&problem, &settings, &mut watch)?;
    let squares = least_squares(&problem, &solution.factors, 1e-6, 300);
    let cap = (16 * instance.key.r + 40).min(instance.key.d / 2);
    let mut row_space = solution.witness.b.clone();
    let convex = relaxed(instance, &problem, &mut row_space, cap).map(|(point, _)| point);
    let weak = ascend(
        &problem,
        &solution.factors,
        &solution.mu,
        &AscentSearch { starts: 1, steps: 3, seed: instance.trajectory, thorough: false },
        f64::INFINITY,
    )
    .0;
    let weak = [weak - 1.0, relative_duality_gap(&problem, &solution.factors, &solution.mu, weak, solution.objective.value)];
    let none = Point { lambda, rel_re: 0.0, rank: 0, proven: None };
    Ok(FixedResult {
        solved: Solved::new(&solution, instance.recovery(&solution.factors), &watch),
        least_squares: instance.recovery(&squares.factors),
        convex: convex.unwrap_or(none),
        weak,
    })
}

/// Our default: rank and prior on held-out transitions, lambda the smallest found at which no further meta-state pays, likelihood refit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DefaultResult {
    pub prior: f64,
    pub lambda_max: f64,
    /// The penalised solution at the lambda chosen.
    pub solved: Solved,
    /// relRE of the refit.
    pub refit: f64,
    /// In all.
    pub seconds: f64,
}

/// The default on one trajectory: what `metastate fit` does when nothing is given.
pub fn default(instance: &Instance) -> Result<DefaultResult> {
    let clock = Instant::now();
    let mut watch = Watch::new(false, None);
    let model = fit(&instance.data, &FitOptions::default().seed(instance.trajectory), &mut watch)?;
    let prior = model.chosen.as_ref().map_or(f64::NAN, |c| c.choice.prior);
    Ok(DefaultResult {
        prior,
        lambda_max: model.lambda_max,
        solved: Solved::new(&model.solution, instance.recovery(&model.solution.factors), &watch),
        refit: instance.recovery(model.factors()),
        seconds: clock.elapsed().as_secs_f64(),
    })
}

impl FitObserver for Watch {
    fn stage(&mut self, stage: Stage) {
        // The seconds told are those of the solve at the lambda chosen.
        if stage == Stage::Solving {
            self.created = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_a_parabola_is_found_between_its_points() {
        let point = |x: f64| Point { lambda: x.exp(), rel_re: (2.0 + 3.0 * (x - 0.3) * (x - 0.3)).exp(), rank: 1, proven: None };
        let (lambda, value) = minimum(&[1.0, 0.5, 0.1, -0.4].map(point));
        assert!((lambda.ln() - 0.3).abs() < 1e-12 && (value.ln() - 2.0).abs() < 1e-12);
        // At an end, the point itself.
        assert_eq!(minimum(&[0.5, 0.4].map(point)).0, 0.4f64.exp());
    }
}
