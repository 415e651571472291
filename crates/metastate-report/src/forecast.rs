//! What `metastate forecast` hands out: one document, or a folder of tables.
//!
//! Meta-states are numbered from 1 everywhere. A time is a number of steps times the lag. Numbers that are infinite or not defined are
//! `null` in the document, `inf` and `NaN` in the tables.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::folder::Draft;
use crate::tables::{csv_field, number};

/// Everything.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)] // the names say it; the rows below are documented
pub struct Forecast {
    pub result: String,
    /// `factors` or `refit`.
    pub model: String,
    /// Where the chain of the meta-states comes from: `data` (estimated on the data at the memberships found) or `factors` (`V^T U`, which prior and penalty shrink).
    pub kinetics: String,
    pub states: usize,
    pub rank: usize,
    /// Frames a step.
    pub lag: usize,
    /// K, row by row.
    pub latent: Vec<Vec<f64>>,
    /// One closed class, hence one stationary law.
    pub unique_stationary_law: bool,
    /// What is unusual about the chain: several laws, transient meta-states, periods.
    pub structure: Option<String>,
    pub classes: Vec<StationaryClass>,
    pub metastates: Vec<IdentityRow>,
    /// `unique`, `turns` or `undecided`.
    pub joint_rotation: String,
    /// Largest change of a membership in another factorisation of the same X that was formed.
    pub joint_rotation_change: Option<f64>,
    pub timescales: Vec<TimescaleRow>,
    pub passage: Vec<PassageRow>,
    pub committors: Vec<CommittorRow>,
    /// Reactive flux and rate between every two meta-states.
    pub rates: Vec<RateRow>,
    /// The ways that carry it.
    pub pathways: Vec<PathwayRow>,
    /// Where meta-states end that are left for good; empty for a chain with one closed class and nothing else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fates: Vec<FateRow>,
    /// Where the forecast starts, in words.
    pub start: String,
    pub forecasts: Vec<Prediction>,
    /// How the first step was blended with the counts, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blend: Option<BlendRecord>,
    /// What goes on in one slice, where one was asked for; the forecasts then speak of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<SliceForecast>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hitting: Vec<HittingRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub check: Vec<CheckRow>,
    pub hints: Vec<String>,
    /// The law of every state, for `stationary.csv`.
    #[serde(skip)]
    pub stationary: Vec<LawRow>,
}

/// Flows between meta-states in one slice.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct SliceForecast {
    pub slice: String,
    /// Share of all transitions that fall into it.
    pub share: f64,
    /// From the meta-state of a row to that of a column, as shares of all transitions of all slices.
    pub flows: Vec<Vec<f64>>,
    /// The same with each row a law; a row of zeros where nothing leaves then.
    pub chain: Vec<Vec<f64>>,
}

/// Each state's counts shrunk towards the model, and what that is worth: mean log-likelihoods a held-out transition.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct BlendRecord {
    /// Transitions of the model that stand beside a state's own.
    pub pseudo_counts: f64,
    pub log_likelihood: f64,
    pub log_likelihood_model: f64,
    pub log_likelihood_counts: f64,
    /// Ahead of the better of the two, with its standard error.
    pub ahead: f64,
    pub ahead_se: f64,
}

/// A closed class of meta-states and its law.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct StationaryClass {
    pub members: Vec<usize>,
    pub period: usize,
    /// Over all meta-states; zero outside the class.
    pub law: Vec<f64>,
}

/// One meta-state: what identifies it, and how far.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct IdentityRow {
    pub metastate: usize,
    pub states: usize,
    pub stationary: f64,
    pub stationary_low: Option<f64>,
    pub stationary_high: Option<f64>,
    /// `K_jj`.
    pub stay: f64,
    pub return_time: f64,
    pub share: f64,
    pub share_low: f64,
    pub share_high: f64,
    /// 0: no other profile could stand in its place.
    pub ambiguity: f64,
    pub purest: f64,
    pub anchor_states: usize,
    pub anchors: Vec<String>,
    pub exclusive_destinations: usize,
    pub exclusive: Vec<String>,
}

/// One eigenvalue at one lag.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct TimescaleRow {
    /// `model`: of K^n. `counted`: of the counts at this lag, projected on the memberships.
    pub source: &'static str,
    pub steps: u64,
    pub lag: u64,
    /// From 1; the first is 1.
    pub mode: usize,
    pub re: f64,
    pub im: f64,
    pub modulus: f64,
    /// `-lag / ln |lambda|`, in frames.
    pub timescale: f64,
    /// Frames a turn takes.
    pub turn: f64,
    /// The interval of the timescale, where the data have parts.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// Mean passage times between two meta-states.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct PassageRow {
    pub from: usize,
    pub to: usize,
    /// Of the latent chain: from acting as `from` to acting as `to`.
    pub steps: f64,
    pub time: f64,
    /// From the states whose largest membership is `from`, as the data have them, to the states of `to`: by the states' own chain, and of X where the kinetics are those of the factors. NaN where it was not
    /// computed.
    pub steps_states: f64,
    pub time_states: f64,
    /// The interval of `time`, where the data have parts.
    pub time_low: Option<f64>,
    pub time_high: Option<f64>,
    /// The interval of `time_states`.
    pub time_states_low: Option<f64>,
    pub time_states_high: Option<f64>,
}

/// A committor at one meta-state.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct CommittorRow {
    pub from: usize,
    pub to: usize,
    pub metastate: usize,
    /// Probability of acting as `to` before acting as `from`.
    pub forward: f64,
    /// Probability of having acted as `from` later than as `to`.
    pub backward: f64,
    /// The interval of `forward`, where the data have parts.
    pub forward_low: Option<f64>,
    pub forward_high: Option<f64>,
}

/// Transition path theory between two meta-states.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct RateRow {
    pub from: usize,
    pub to: usize,
    /// Passages in one frame.
    pub flux: f64,
    /// Passages in one frame while on the way from `from`; one over it is a mean time.
    pub rate: f64,
    pub rate_low: Option<f64>,
    pub rate_high: Option<f64>,
}

/// One way between two meta-states.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct PathwayRow {
    pub from: usize,
    pub to: usize,
    /// Meta-states on the way, both ends included.
    pub way: Vec<usize>,
    /// Passages in one frame.
    pub flux: f64,
    /// Its share of all passages.
    pub share: f64,
}

/// The end of a meta-state.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct FateRow {
    pub metastate: usize,
    /// The meta-states of the closed class.
    pub class: Vec<usize>,
    pub probability: f64,
}

/// The law some steps after the start.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Prediction {
    pub steps: u64,
    /// Over meta-states, by the states' largest membership.
    pub metastates: Vec<f64>,
    /// The likeliest states.
    pub top: Vec<LawRow>,
    /// All states, for `forecast.csv`.
    #[serde(skip)]
    pub law: Vec<LawRow>,
}

/// A probability of one state.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct LawRow {
    pub label: String,
    pub metastate: usize,
    pub probability: f64,
}

/// The way from one state to the set asked for.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct HittingRow {
    pub label: String,
    pub metastate: usize,
    /// Whether the state belongs to the set; its time is then that of the return.
    pub inside: bool,
    pub steps: f64,
    pub time: f64,
}

/// One pair of the Chapman-Kolmogorov check.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct CheckRow {
    pub steps: u64,
    pub lag: u64,
    pub from: usize,
    pub to: usize,
    pub predicted: f64,
    pub counted: f64,
    pub low: f64,
    pub high: f64,
    pub transitions: f64,
    pub agrees: bool,
}

/// Writes the folder, whole or not at all.
pub fn write_forecast(place: &Path, force: bool, f: &Forecast) -> Result<()> {
    let draft = Draft::begin(place)?;
    draft.file("forecast.csv", predictions(f).as_bytes())?;
    draft.file("timescales.csv", timescales(f).as_bytes())?;
    draft.file("passage.csv", passage(f).as_bytes())?;
    draft.file("committors.csv", committors(f).as_bytes())?;
    draft.file("rates.csv", rates(f).as_bytes())?;
    draft.file("pathways.csv", pathways(f).as_bytes())?;
    if !f.fates.is_empty() {
        draft.file("fates.csv", fates(f).as_bytes())?;
    }
    draft.file("stationary.csv", laws("label,metastate,probability\n", "", &f.stationary).as_bytes())?;
    draft.file("identity.csv", identity(f).as_bytes())?;
    if !f.hitting.is_empty() {
        draft.file("hitting.csv", hitting(f).as_bytes())?;
    }
    if !f.check.is_empty() {
        draft.file("ck.csv", check(f).as_bytes())?;
    }
    // Maps with text keys and plain numbers always serialise.
    let document = serde_json::to_string_pretty(f).unwrap_or_default() + "\n";
    draft.file("forecast.json", document.as_bytes())?;
    draft.finish(force)
}

fn line(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
    out.push('\n');
}

fn laws(header: &str, prefix: &str, rows: &[LawRow]) -> String {
    let mut out = header.to_owned();
    rows.iter().for_each(|r| line(&mut out, format_args!("{prefix}{},{},{:?}", csv_field(&r.label), r.metastate, r.probability)));
    out
}

fn predictions(f: &Forecast) -> String {
    let mut out = String::from("steps,time,label,metastate,probability\n");
    for p in &f.forecasts {
        out += &laws("", &format!("{},{},", p.steps, u128::from(p.steps) * f.lag as u128), &p.law);
    }
    out
}

fn timescales(f: &Forecast) -> String {
    let mut out = String::from("source,steps,lag,mode,re,im,modulus,timescale,turn,low,high\n");
    for r in &f.timescales {
        let numbers = [r.re, r.im, r.modulus, r.timescale, r.turn].map(number).join(",");
        line(&mut out, format_args!("{},{},{},{},{numbers},{}", r.source, r.steps, r.lag, r.mode, ends(r.low, r.high)));
    }
    out
}

fn passage(f: &Forecast) -> String {
    let mut out = String::from("from,to,steps,time,steps_states,time_states,time_low,time_high,time_states_low,time_states_high\n");
    for r in &f.passage {
        let numbers = [r.steps, r.time, r.steps_states, r.time_states].map(number).join(",");
        line(
            &mut out,
            format_args!("{},{},{numbers},{},{}", r.from, r.to, ends(r.time_low, r.time_high), ends(r.time_states_low, r.time_states_high)),
        );
    }
    out
}

fn committors(f: &Forecast) -> String {
    let mut out = String::from("from,to,metastate,forward,backward,forward_low,forward_high\n");
    for r in &f.committors {
        let interval = ends(r.forward_low, r.forward_high);
        line(&mut out, format_args!("{},{},{},{:?},{:?},{interval}", r.from, r.to, r.metastate, r.forward, r.backward));
    }
    out
}

/// The two ends of an interval; empty where there is none.
fn ends(low: Option<f64>, high: Option<f64>) -> String {
    let field = |x: Option<f64>| x.map(number).unwrap_or_default();
    format!("{},{}", field(low), field(high))
}

fn rates(f: &Forecast) -> String {
    let mut out = String::from("from,to,flux,rate,rate_low,rate_high\n");
    for r in &f.rates {
        line(&mut out, format_args!("{},{},{},{},{}", r.from, r.to, number(r.flux), number(r.rate), ends(r.rate_low, r.rate_high)));
    }
    out
}

fn pathways(f: &Forecast) -> String {
    let mut out = String::from("from,to,way,flux,share\n");
    for r in &f.pathways {
        let way: Vec<String> = r.way.iter().map(usize::to_string).collect();
        line(&mut out, format_args!("{},{},{},{},{}", r.from, r.to, way.join(" > "), number(r.flux), number(r.share)));
    }
    out
}

fn fates(f: &Forecast) -> String {
    let mut out = String::from("metastate,class,probability\n");
    for r in &f.fates {
        let class: Vec<String> = r.class.iter().map(usize::to_string).collect();
        line(&mut out, format_args!("{},{},{}", r.metastate, class.join(" "), number(r.probability)));
    }
    out
}

fn identity(f: &Forecast) -> String {
    let mut out = String::from(
        "metastate,states,stationary,stay,return_time,share,share_low,share_high,ambiguity,purest,anchor_states,anchors,exclusive_destinations,exclusive,stationary_low,stationary_high\n",
    );
    for r in &f.metastates {
        let numbers =
            [r.stationary, r.stay, r.return_time, r.share, r.share_low, r.share_high, r.ambiguity, r.purest].map(number).join(",");
        let names = |list: &[String]| csv_field(&list.join(" | "));
        line(
            &mut out,
            format_args!(
                "{},{},{numbers},{},{},{},{},{}",
                r.metastate,
                r.states,
                r.anchor_states,
                names(&r.anchors),
                r.exclusive_destinations,
                names(&r.exclusive),
                ends(r.stationary_low, r.stationary_high)
            ),
        );
    }
    out
}

fn hitting(f: &Forecast) -> String {
    let mut out = String::from("label,metastate,inside,steps,time\n");
    for r in &f.hitting {
        line(&mut out, format_args!("{},{},{},{:?},{:?}", csv_field(&r.label), r.metastate, r.inside, r.steps, r.time));
    }
    out
}

fn check(f: &Forecast) -> String {
    let mut out = String::from("steps,lag,from,to,predicted,counted,low,high,transitions,agrees\n");
    for r in &f.check {
        let numbers = [r.predicted, r.counted, r.low, r.high, r.transitions].map(number).join(",");
        line(&mut out, format_args!("{},{},{},{},{numbers},{}", r.steps, r.lag, r.from, r.to, r.agrees));
    }
    out
}
