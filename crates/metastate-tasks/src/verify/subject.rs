//! What is checked: the folder, the data it claims to rest on, and the options.

use std::path::Path;

use metastate::Mat;
use metastate::solve::Factors;
use metastate_report::{Ground, Outline, SavedResult};

use crate::args::{Clusters, FitArgs, RefitKind};
use crate::data;

/// A folder beside its data.
pub struct Subject<'a> {
    /// Where it is.
    pub folder: &'a Path,
    /// What its main files hold.
    pub result: &'a SavedResult,
    /// The recorded options.
    pub fit: &'a FitArgs,
    /// The data, read and counted anew.
    pub data: &'a data::Dataset,
    /// Whether the command had a time limit, which may have ended the refit before it was at rest, or the draws.
    pub limited: bool,
    /// Labels of the states.
    pub labels: Vec<String>,
    /// Labels of the destinations: the same, or those of the other set.
    pub destinations: Vec<String>,
}

impl<'a> Subject<'a> {
    /// `None`, with the reason, when U and V are not of the size of these data: nothing else makes sense then.
    pub fn new(
        folder: &'a Path,
        result: &'a SavedResult,
        fit: &'a FitArgs,
        data: &'a data::Dataset,
        limited: bool,
    ) -> Result<Self, String> {
        let (d, n) = (data.chain().states(), data.chain().p().cols());
        for (name, x) in [("factors.npz", Some(&result.factors)), ("refit.npz", result.refit.as_ref())] {
            if let Some(Factors { u, v }) = x.filter(|x| (x.u.rows(), x.v.rows(), x.v.cols()) != (d, n, x.u.cols()) || x.u.cols() == 0) {
                return Err(format!("{name} holds U of {} x {} and V of {} x {}", u.rows(), u.cols(), v.rows(), v.cols()));
            }
        }
        if result.xi.len() != d {
            return Err(format!("factors.npz holds {} weights", result.xi.len()));
        }
        let labels = data.chain().index().labels().map(|l| l.to_string()).collect();
        let destinations = data.shown_chain().destinations().labels().map(|l| l.to_string()).collect();
        if data.data.slices() != result.slices.as_ref() {
            return Err("slices.npz, or the labels of the slices, are not those of these data".to_owned());
        }
        Ok(Subject { folder, result, fit, data, limited, labels, destinations })
    }

    /// Draws that the result must rest on: those asked for. Where the time was up there are all or none.
    pub fn draws(&self) -> usize {
        if self.limited && self.result.summary.uncertainty.is_none() { 0 } else { self.fit.bootstrap }
    }

    /// What the tables speak of: the refit where one was asked for. A file that should not be there speaks for nobody.
    pub fn model(&self) -> &'a Factors {
        match (&self.result.refit, self.fit.refit_kind()) {
            (Some(refit), RefitKind::LeastSquares | RefitKind::Likelihood) => refit,
            _ => &self.result.factors,
        }
    }

    /// The same where the chain goes on, summed by plain loops: with slices, V over all slices.
    pub fn going_on(&self) -> Factors {
        let model = self.model();
        let Some(slices) = self.data.data.slices() else { return model.clone() };
        let mut v = Mat::zeros(self.labels.len(), model.v.cols());
        for (row, (_, state)) in slices.columns().iter().enumerate() {
            (0..v.cols()).for_each(|j| v[(*state as usize, j)] += model.v[(row, j)]);
        }
        Factors { u: model.u.clone(), v }
    }

    /// The chain that tables, zones and times speak of.
    pub fn chain(&self) -> &'a metastate::Chain {
        self.data.shown_chain()
    }

    /// Memberships.
    pub fn u(&self) -> &'a Mat {
        &self.model().u
    }

    /// How many zones there are, empty ones included.
    pub fn zone_count(&self) -> usize {
        match self.fit.hard() {
            Clusters::Count(k) => k,
            _ => self.model().rank(),
        }
    }

    /// The zone of each state, from 0, as `states.csv` tells it.
    pub fn zones(&self) -> Result<Vec<usize>, String> {
        let told = self.result.column("zone").map_err(|_| "states.csv has no column zone".to_owned())?;
        let zone = |text: &String| text.parse::<usize>().ok().filter(|z| (1..=self.zone_count()).contains(z)).map(|z| z - 1);
        if told.len() != self.data.chain().states() {
            return Err(format!("states.csv has {} rows", told.len()));
        }
        told.iter().map(|text| zone(text).ok_or_else(|| format!("no zone is called {text}"))).collect()
    }

    /// Whether the chain goes on from where it arrives.
    pub fn goes_on(&self) -> bool {
        self.data.data.going_on().is_some()
    }

    /// Whether the states are on a map.
    pub fn on_a_map(&self) -> bool {
        self.data.coordinates.is_some()
    }

    /// Whether zones have outlines: places may stay points.
    pub fn has_outlines(&self) -> bool {
        self.on_a_map() && self.data.ground != Some(Ground::Other(Outline::Points))
    }

    /// What people call a state, or its label.
    pub fn state_name(&self, i: usize) -> &str {
        let name = self.data.names.as_ref().map(|names| names[i].as_str());
        name.filter(|name| !name.is_empty()).unwrap_or(&self.labels[i])
    }
}
