//! Section 6.3: the taxi trips, their zones by the paper's method and by the SVD rival at the same number.

use std::path::PathBuf;

use metastate::aggregate::rivals::svd_partition;
use metastate::aggregate::{KMeans, Neighbours, REPLICATES, kmeans};
use metastate::fit::{FOLDS, Parts};
use metastate::solve::{BbFormula, Problem, Settings, Solver, Start, StopRule, lambda_max, solve};
use metastate::workspace::refit::{LikelihoodSettings, Observed, Starts, likelihood_best_start};
use metastate::workspace::select::{SelectSettings, select_prior};
use metastate::{Chain, Data, Estimate, FitOptions, Folds, fit};
use metastate_ingest::{BoundingBox, Data as Ingest, InputSettings, Silent, read};
use serde::{Deserialize, Serialize};

use crate::sampled::{Solved, Watch};
use crate::{Error, Result, maps};

/// A file of trips, prepared as in the paper.
pub struct Trips {
    pub file: usize,
    data: Data,
    places: Vec<(f64, f64)>,
    neighbours: Neighbours,
    side: f64,
    lambda_max: f64,
    facts: Facts,
}

/// What the preprocessing gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Facts {
    pub name: String,
    pub states: usize,
    pub transitions: f64,
    pub rows: u64,
    /// The largest entry of P.
    pub largest: f64,
}

/// Column names: longitude and latitude of pick-up and drop-off.
const NAMES: [[&str; 4]; 2] = [
    ["pickup_lon", "pickup_lat", "dropoff_lon", "dropoff_lat"],
    ["pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"],
];
/// Cells that nobody leaves (garages, stuck receivers) are left out: the paper does not speak of them.
const MOST_SELF: f64 = 0.99;
/// Seconds that early stopping may take.
const LIMIT: f64 = 60.0;

impl Trips {
    /// The paper's preprocessing: box, 0.001 degree cells, pick-up share at least 1e-4; xi by pick-ups.
    pub fn read(files: &[PathBuf], file: usize, seed: u64) -> Result<Self> {
        let path = files.get(file).ok_or_else(|| Error::NoData("there is no such file".into()))?;
        let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        let settings = |columns: &[&str; 4], yellow: bool| InputSettings {
            from_lon: Some(columns[0].into()),
            from_lat: Some(columns[1].into()),
            to_lon: Some(columns[2].into()),
            to_lat: Some(columns[3].into()),
            bbox: Some(BoundingBox { west: -80.07, south: 30.69, east: -60.92, north: 50.85 }),
            where_: yellow.then(|| "service = 'yellow'".into()),
            min_share: 1e-4,
            max_self_share: Some(MOST_SELF),
            ..InputSettings::default()
        };
        let input = [path.display().to_string()];
        // The trips beside the repository name their service; the TLC's own files hold one service each and name columns differently.
        let ingested = read(&input, &settings(&NAMES[0], true), &mut Silent)
            .or_else(|first| read(&input, &settings(&NAMES[1], false), &mut Silent).map_err(|_| first))?;
        let Ingest::Counts(counted) = ingested.data else { return Err(Error::NoData(format!("{name} holds no trips"))) };
        let data = Data::from_counts(&counted.counts, &Estimate::default())?;
        let chain = data.chain();
        let counts = data.parts().map(Parts::counts).ok_or_else(|| Error::NoData(format!("{name} holds no trips")))?;
        let (Some(all), Some(side)) = (counted.coordinates, counted.cell.and_then(|c| c.side())) else {
            return Err(Error::NoData(format!("{name} has no coordinates")));
        };
        let places: Vec<(f64, f64)> = chain.kept().iter().map(|&i| all[i]).collect();
        let neighbours = Neighbours::of_cells(&places, side);
        let most = lambda_max(chain.p(), chain.weights(), seed)?;
        let of_row = |(_, n): (&[u32], &[f64])| n.iter().copied().fold(0.0, f64::max) / n.iter().sum::<f64>();
        let largest = (0..counts.rows()).map(|i| of_row(counts.row(i))).fold(0.0, f64::max);
        let facts = Facts { name, states: chain.states(), transitions: chain.transitions(), rows: counted.rows, largest };
        Ok(Trips { file, data, places, neighbours, side, lambda_max: most, facts })
    }

    fn chain(&self) -> &Chain {
        self.data.chain()
    }

    fn coherence(&self, labels: &[u32]) -> f64 {
        self.neighbours.coherence(labels).map_or(0.0, |c| c.corrected)
    }

    fn zones(&self, points: &metastate::Mat, k: usize, seed: u64) -> Result<Vec<u32>> {
        let how = KMeans { replicates: REPLICATES, ..KMeans::new(k, points.rows(), points.cols(), seed) };
        Ok(kmeans(points, self.chain().xi(), &how)?.partition.labels)
    }
}

/// Zones at one lambda.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaxiResult {
    pub facts: Facts,
    pub lambda: f64,
    pub ratio: f64,
    pub solved: Solved,
    /// Coherence beyond chance: the paper's method, the SVD rival, the likelihood refit at the same number of zones.
    pub coherence: [f64; 3],
    /// Of the refit, chosen on held-out trips.
    pub prior: f64,
    /// The pair of maps.
    pub map: String,
}

/// Early stopping from one meta-state, k-means on U, SVD at the same k, and the refit of this solution.
pub fn zones(trips: &Trips, ratio: f64, seed: u64) -> Result<TaxiResult> {
    let lambda = ratio * trips.lambda_max;
    let problem = Problem::new(trips.chain().p(), trips.chain().weights(), lambda)?;
    let settings = Settings {
        solver: Solver::PalmBb(BbFormula::default()),
        stop: StopRule::Early { directions: 5000 },
        start: Start::Random,
        start_rank: Some(1),
        append_at_once: 1,
        max_rank: 30,
        // The rule stops columns from coming; local solves go as far as they must for it, which the paper does not say.
        tolerance: 1e-3,
        seed,
        ..Settings::default()
    };
    let mut watch = Watch::new(false, Some(LIMIT));
    let solution = solve(&problem, &settings, &mut watch)?;
    let k = solution.rank();
    let ours = trips.zones(&solution.factors.u, k, seed)?;
    let theirs = svd_partition(trips.chain().p(), trips.chain().weights(), k, seed)?.labels;
    let (counts, _) = trips.data.transitions()?;
    let folds = Folds::of_trips(&counts, FOLDS, seed)?;
    let prior = select_prior(&folds, k, &SelectSettings::default())?.0;
    let observed = Observed::new(counts)?;
    let refit = likelihood_best_start(
        &observed,
        Starts::new(&solution.factors, k, seed),
        &LikelihoodSettings { prior, ..Default::default() },
        |_, _| true,
    )?;
    let refitted = trips.zones(&refit.fit.factors.u, k, seed)?;
    let title = format!("{k} zones, early stopping");
    let map = maps::pair(&trips.places, trips.side, (&title, &ours), ("SVD partition", &theirs));
    Ok(TaxiResult {
        facts: trips.facts.clone(),
        lambda,
        ratio,
        solved: Solved::new(&solution, 0.0, &watch),
        coherence: [&ours, &theirs, &refitted].map(|z| trips.coherence(z)),
        prior,
        map,
    })
}

/// Our default on these trips.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaxiDefault {
    pub facts: Facts,
    pub solved: Solved,
    pub prior: f64,
    pub lambda_max: f64,
    /// Held-out log-likelihood a trip: ours, the counts at their best smoothing, one law for all.
    pub held_out: [f64; 3],
    /// Coherence of the refit's zones and of the SVD partition at the same k.
    pub coherence: [f64; 2],
    pub map: String,
}

/// What `metastate fit` does when nothing is given.
pub fn default(trips: &Trips, seed: u64) -> Result<TaxiDefault> {
    let mut watch = Watch::new(false, None);
    let model = fit(&trips.data, &FitOptions::default().seed(seed), &mut watch)?;
    let chosen = model.chosen.as_ref().ok_or_else(|| Error::NoData("nothing was chosen".into()))?;
    let k = model.rank();
    let theirs = svd_partition(trips.chain().p(), trips.chain().weights(), k, seed)?.labels;
    let ours = &model.zones.labels;
    let title = format!("{k} zones, default");
    Ok(TaxiDefault {
        facts: trips.facts.clone(),
        solved: Solved::new(&model.solution, 0.0, &watch),
        prior: chosen.choice.prior,
        lambda_max: trips.lambda_max,
        held_out: [chosen.choice.log_likelihood(), chosen.choice.empirical.1.log_likelihood(), chosen.choice.independent.log_likelihood()],
        coherence: [ours, &theirs].map(|z| trips.coherence(z)),
        map: maps::pair(&trips.places, trips.side, (&title, ours), ("SVD partition", &theirs)),
    })
}

#[cfg(test)]
mod tests {
    use metastate::LowRankOperator;
    use metastate::Mat;
    use metastate::simulate::planted;
    use metastate::solve::lambda_max;

    /// The document says that lambda goes with the scale of P: (1 - c) 11^T/d + c P needs c times the lambda, but for 2e-3.
    #[test]
    fn lambda_goes_with_the_scale_of_p() {
        let (d, r) = (200, 4);
        let truth = planted(d, r, 3).unwrap();
        let weights = vec![1.0 / d as f64; d];
        let of = |c: f64| {
            let u = Mat::from_fn(d, r + 1, |i, k| if k < r { c * truth.u[(i, k)] } else { 1.0 - c });
            let v = Mat::from_fn(d, r + 1, |j, k| if k < r { truth.v[(j, k)] } else { 1.0 / d as f64 });
            lambda_max(&LowRankOperator::new(u, v).unwrap(), &weights, 0).unwrap()
        };
        let whole = of(1.0);
        for c in [0.3, 0.1, 0.01] {
            let ratio = of(c) / (c * whole);
            assert!((ratio - 1.0).abs() < 2e-3, "{c}: {ratio}");
        }
    }
}
