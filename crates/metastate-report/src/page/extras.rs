//! What the page shows and the tables do not hold. It stands in the folder as `page.json`, so that the page can be made anew
//! from the folder alone.

use serde::{Deserialize, Serialize};

use super::heat::Heat;
use crate::ground::{Ground, Outline};
use crate::plan::PlanRecord;
use crate::tables::parse_csv;

/// How the answer came about, and what to lay beside it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Extras {
    /// Side of a cell in degrees, when the states are cells.
    pub cell: Option<f64>,
    /// How places that are no square cells are outlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<Outline>,
    /// Whether zones are told by names, too: their places have some, or somebody gave them.
    #[serde(default)]
    pub zones_have_names: bool,
    /// Data and model in bins.
    pub heat: Option<Heat>,
    /// The solver's way, thinned out.
    pub trace: Vec<TracePoint>,
    /// When columns came and went.
    pub events: Vec<RankChange>,
    /// Another method's hard zones with as many parts.
    pub rival: Option<RivalZones>,
    /// The intervals of the timescales from the bootstrap, in frames (none: infinite); empty without one.
    #[serde(default)]
    pub timescale_intervals: Vec<(Option<f64>, Option<f64>)>,
    /// The numbers of meta-states that were tried.
    #[serde(default)]
    pub ranks: Option<RanksStory>,
    /// The lambda path.
    pub path: Option<PathStory>,
    /// The chain of the meta-states as the data have it.
    #[serde(default)]
    pub kinetics: Option<KineticsStory>,
    /// What actions do, and the plan where there is one. It stands in tables of its own.
    #[serde(skip)]
    pub control: Option<ControlStory>,
}

/// The latent chain of each action, and the plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ControlStory {
    /// `actions.csv`.
    pub actions: Vec<ActionStory>,
    /// `plan.json`.
    pub plan: Option<PlanRecord>,
}

/// One action: its latent chain, and where it was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)] // the names say it
pub struct ActionStory {
    pub name: String,
    pub chain: Vec<Vec<f64>>,
    pub tried: Vec<f64>,
}

/// Actions and meta-states that the page shows, at most.
const MOST_ACTIONS: usize = 24;
const MOST_METASTATES: usize = 60;

impl ControlStory {
    /// Of the text of `actions.csv`.
    pub fn of(text: &str, plan: Option<PlanRecord>) -> Result<Self, String> {
        let wrong = || "is not what `metastate fit` wrote".to_owned();
        let table = parse_csv(text).ok_or_else(wrong)?;
        let rows: Vec<(&str, usize, usize, f64, f64)> = table
            .iter()
            .skip(1)
            .map(|row| match &row[..] {
                [name, from, to, probability, tried] => {
                    let place = |text: &str| text.parse::<usize>().ok().filter(|k| *k >= 1);
                    let share = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
                    Some((name.as_str(), place(from)?, place(to)?, share(probability)?, share(tried)?))
                }
                _ => None,
            })
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        let s = rows.iter().map(|r| r.1).max().unwrap_or(0);
        // No square of a number that stands in a file is formed before it is known to be small.
        if s == 0
            || s > rows.len()
            || !rows.len().is_multiple_of(s * s)
            || rows.iter().enumerate().any(|(k, r)| (r.1, r.2) != (k / s % s + 1, k % s + 1))
        {
            return Err(wrong());
        }
        let action = |block: &[(&str, usize, usize, f64, f64)]| ActionStory {
            name: block[0].0.to_owned(),
            chain: block.chunks(s).map(|row| row.iter().map(|r| r.3).collect()).collect(),
            tried: block.chunks(s).map(|row| row[0].4).collect(),
        };
        let most = if s > MOST_METASTATES { 0 } else { MOST_ACTIONS };
        Ok(ControlStory { actions: rows.chunks(s * s).take(most).map(action).collect(), plan })
    }
}

/// The chain of the meta-states as the data have it: what the page forecasts with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct KineticsStory {
    pub chain: Vec<Vec<f64>>,
    pub modes: Vec<StoryMode>,
    /// Frames in one step.
    #[serde(default = "one")]
    pub lag: f64,
    /// The same data at longer lags.
    #[serde(default)]
    pub lags: Vec<LagStory>,
    /// Mean passage times between the states of two meta-states, in frames; an infinite one is none.
    #[serde(default)]
    pub passage: Vec<Vec<Ends>>,
    /// From and to, from 0: the flux that is drawn first.
    #[serde(default)]
    pub pair: Option<(usize, usize)>,
    /// Where meta-states end, where that is a question at all.
    #[serde(default)]
    pub fates: Vec<FateStory>,
}

impl KineticsStory {
    /// What cannot be shown with so many meta-states.
    fn check(&self, s: usize) -> Option<&'static str> {
        let wrong = [
            (
                self.passage.iter().any(|row| row.len() != s) || !(self.passage.is_empty() || self.passage.len() == s),
                "passage times (`kinetics.passage`)",
            ),
            (self.lags.iter().any(|l| l.lag.is_nan() || l.lag <= 0.0), "a lag (`kinetics.lags`)"),
            (self.pair.is_some_and(|(a, b)| a >= s || b >= s || a == b), "a pair (`kinetics.pair`)"),
            (
                self.fates.iter().any(|f| f.probability.len() != s || !f.members.first().is_some_and(|j| (1..=s).contains(j))),
                "fates (`kinetics.fates`)",
            ),
        ];
        wrong.into_iter().find_map(|(is, what)| is.then_some(what))
    }
}

fn one() -> f64 {
    1.0
}

/// A number with the two ends of its interval; none is infinite, or not known.
pub type Ends = (Option<f64>, Option<f64>, Option<f64>);

/// The data counted at one lag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LagStory {
    /// In frames.
    pub lag: f64,
    /// In frames, the slowest first.
    pub timescales: Vec<Ends>,
    /// For each meta-state, the probability of being there again.
    pub stays: Vec<Ends>,
    /// The same as the chain of this fit predicts it.
    pub predicted: Vec<f64>,
}

/// Meta-states that are never left together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FateStory {
    /// From 1.
    pub members: Vec<usize>,
    /// For each meta-state, the probability of ending here.
    pub probability: Vec<f64>,
}

/// One eigenvalue after the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct StoryMode {
    pub re: f64,
    pub im: f64,
    /// In frames; none is infinite.
    pub timescale: Option<f64>,
}

/// The least and the largest side of a cell in degrees: anything else is no cell on the map.
const CELL: std::ops::RangeInclusive<f64> = 1e-9..=360.0;

/// Zones beyond the number of states, which are empty.
const SPARE_ZONES: usize = 64;

impl Extras {
    /// What the states with these places are on the map; nothing where there are no places.
    pub fn ground(&self, coordinates: Option<&[(f64, f64)]>) -> Option<Ground> {
        coordinates?;
        Some(self.cell.map_or(Ground::Other(self.outline.unwrap_or(Outline::Points)), Ground::Squares))
    }

    /// Says what is not as the page needs it: somebody may have written this by hand.
    pub fn check(&self, states: usize) -> Result<(), String> {
        let demand = |it_is: bool, what: &str| if it_is { Ok(()) } else { Err(format!("has {what} that cannot be shown")) };
        demand(self.cell.is_none_or(|side| CELL.contains(&side)), "a side of cells (`cell`)")?;
        if let Some(heat) = &self.heat {
            heat.check(states)?;
        }
        if let Some(k) = &self.kinetics {
            k.check(k.chain.len()).map_or(Ok(()), |what| demand(false, what))?;
        }
        let zones = |zones: &Zoning| zones.len() == states && zones.iter().all(|z| usize::from(*z) < states + SPARE_ZONES);
        demand(self.rival.as_ref().is_none_or(|r| zones(&r.zones)), "zones of a rival (`rival`)")?;
        demand(
            self.ranks.as_ref().is_none_or(|r| r.chosen < r.points.len()),
            "a chosen number of meta-states (`ranks.chosen`) that is none of those tried, a number",
        )?;
        let Some(path) = &self.path else { return Ok(()) };
        demand(path.chosen < path.points.len(), "a chosen point of the path (`path.chosen`) that is none, a number")?;
        demand(path.points.iter().filter_map(|p| p.zones.as_ref()).all(zones), "zones along the path (`path.points`)")
    }
}

/// One look at the solver.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct TracePoint {
    /// Seconds since the solve began.
    pub t: f64,
    pub sweep: usize,
    pub rank: usize,
    pub objective: Option<f64>,
    /// The bound that the solver steered by, an estimate.
    pub bound: f64,
    /// The worse of the two local errors.
    pub kkt: Option<f64>,
}

/// Columns appended or removed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct RankChange {
    /// Seconds since the solve began.
    pub t: f64,
    pub from: usize,
    pub to: usize,
}

/// The zone of each state, from 0.
pub type Zoning = Vec<u16>;

/// Another method's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct RivalZones {
    pub name: String,
    pub zones: Zoning,
}

/// How numbers of meta-states did on held-out transitions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RanksStory {
    /// What was chosen and why.
    pub sentence: String,
    /// Number of the chosen point.
    pub chosen: usize,
    /// Ascending.
    pub points: Vec<RankPoint>,
    /// The score of the smoothed counts themselves.
    pub counts: f64,
}

/// One number of meta-states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankPoint {
    /// The number.
    pub rank: usize,
    /// Held-out log-likelihood a transition; of a first look, made comparable.
    pub score: f64,
    /// By how much it is behind the best number, fold by fold,
    pub behind: f64,
    /// and the standard error of that.
    pub error: f64,
    /// Whether it was looked at on some folds only.
    pub first_look: bool,
}

/// A whole lambda path.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathStory {
    /// What was chosen and why.
    pub sentence: String,
    /// Number of the chosen point.
    pub chosen: usize,
    /// From the largest lambda down.
    pub points: Vec<PathPoint>,
}

/// One lambda.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the names say it
pub struct PathPoint {
    pub lambda: f64,
    pub rank: usize,
    pub objective: f64,
    /// Null where nothing was proven.
    pub gap: Option<f64>,
    /// Held-out log-likelihood a transition and its standard error.
    pub score: Option<f64>,
    pub se: Option<f64>,
    /// Hard zones at this lambda, where they were kept.
    pub zones: Option<Zoning>,
}
