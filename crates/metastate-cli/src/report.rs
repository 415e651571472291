//! `metastate report`: the page and the plots, made at the end of a fit and made anew from a folder.

use std::path::Path;

use metastate::aggregate::rivals::svd_partition;
use metastate::aggregate::{Partition, ZoneFlows};
use metastate::solve::bootstrap::assign;
use metastate::{Chain, Label};
use metastate_report::FitResult;
use metastate_report::page::{Extras, Heat, Rival};
use serde::Serialize;

use crate::error::Result;
use crate::watch::Trace;

/// Above this number of states the rival's map is not worth its time.
const MOST_STATES_OF_RIVAL: usize = 20_000;

/// What the page shows beyond the tables.
pub fn extras(chain: &Chain, result: &FitResult, trace: Trace, seed: u64) -> Result<Extras> {
    let rank = result.partition.clusters();
    let wanted = result.coordinates.is_some() && rank > 1 && chain.states() <= MOST_STATES_OF_RIVAL;
    let rival = wanted.then(|| svd_partition(chain.p(), chain.weights(), rank, seed)).transpose()?;
    Ok(Extras {
        cell: result.cell,
        heat: Some(Heat::new(chain.p(), chain.xi(), result.model, result.partition)),
        trace: trace.points,
        events: trace.events,
        rival: rival.map(|r| Rival { name: "SVD with k-means".to_owned(), zones: in_our_order(result.partition, &r, result.xi) }),
        path: None,
    })
}

/// The rival's zones, numbered so that they share as much weight as possible with ours of the same number.
fn in_our_order(ours: &Partition, theirs: &Partition, xi: &[f64]) -> Vec<u16> {
    let k = ours.clusters().max(theirs.clusters());
    let mut shared = vec![0.0; k * k];
    for (i, x) in xi.iter().enumerate() {
        shared[theirs.labels[i] as usize * k + ours.labels[i] as usize] += x;
    }
    let place = assign(k, |theirs, ours| -shared[theirs * k + ours]);
    theirs.labels.iter().map(|&z| place[z as usize] as u16).collect()
}

/// What was made.
#[derive(Debug, Serialize)]
pub struct Made {
    page: String,
    bytes: usize,
}

impl Made {
    /// For people.
    pub fn describe(&self) -> String {
        format!("written {} ({:.1} MB); open it in a browser", self.page, self.bytes as f64 / 1e6)
    }
}

/// Makes the page of a folder anew.
pub fn run(place: &Path) -> Result<Made> {
    let loaded = metastate_report::load(place)?;
    let extras = metastate_report::load_extras(place)?;
    let labels: Vec<Label> = loaded.column("label")?.into_iter().map(|l| Label::from(l.as_str())).collect();
    let hard: Vec<u32> = loaded.numbers("metastate")?.into_iter().map(|z| (z as u32).saturating_sub(1)).collect();
    let clusters = hard.iter().max().map_or(0, |m| *m as usize + 1);
    let partition = Partition::numbered(hard, &loaded.xi, clusters);
    let coordinates: Option<Vec<(f64, f64)>> = match (loaded.numbers("lon"), loaded.numbers("lat")) {
        (Ok(lon), Ok(lat)) => Some(lon.into_iter().zip(lat).collect()),
        _ => None,
    };
    let refit = metastate_report::load_refit(place)?;
    let result = FitResult {
        labels: &labels,
        xi: &loaded.xi,
        coordinates: coordinates.as_deref(),
        cell: extras.cell,
        factors: &loaded.factors,
        model: refit.as_ref().unwrap_or(&loaded.factors),
        partition: &partition,
        flows: &ZoneFlows::default(),
        witness_a: &loaded.witness.0,
        witness_b: &loaded.witness.1,
        witness_mu: &loaded.witness.2,
        extra: &[],
    };
    let bytes = metastate_report::remake(place, &loaded.summary, &result, &extras)?;
    Ok(Made { page: place.join("report.html").display().to_string(), bytes })
}
