//! The page: what it is made of is checked, and then it is made anew and compared byte by byte.

use std::collections::BTreeSet;

use metastate::Label;
use metastate::aggregate::Partition;
use metastate::workspace::Row;
use metastate_report::{FitResult, Ground, SlicedV, inside, load_extras, pictures};
use serde_json::Value;

use super::checks::{Checks, Named};
use super::subject::Subject;

/// The pictures are kept as single precision; sums of another order differ by a few units in the last place.
const PICTURE: f64 = 1e-5;
/// Bins a side, at most.
const MOST_BINS: usize = 160;

/// `page.json`, `report.html` and `plots/`. Hands back the names of the files that were made anew.
pub fn check(checks: &mut Checks, subject: &Subject) -> BTreeSet<String> {
    let text = inside::read_text(subject.folder, "page.json").unwrap_or_default();
    let page: Value = serde_json::from_str(&text).unwrap_or_default();
    checks.table("page.json", wrong_data(subject, &page).err());
    checks.hash_only("page.json: the solver's way, zones along the path, a rival's zones", "not computed again");
    let names = ["report.html", "plots"];
    let version = env!("CARGO_PKG_VERSION");
    let summary = &subject.result.summary;
    let remade = if summary.version == version { remake(subject) } else { Err(format!("made by version {}", summary.version)) };
    match remade {
        Ok(files) => {
            let wrong = |name: &String, made: &String| inside::read(subject.folder, name).map_or(true, |found| found != made.as_bytes());
            for of in names {
                let mut changed = files.iter().filter(|(name, _)| name.starts_with(of)).filter(|(name, made)| wrong(name, made));
                checks.table(of, changed.next().map(|(name, _)| format!("{name} is not the one that these numbers make")));
            }
            files.into_iter().map(|f| f.0).collect()
        }
        Err(why) if summary.version == version => {
            names.iter().for_each(|name| checks.table(name, Some(why.clone())));
            BTreeSet::new()
        }
        Err(why) => {
            names.iter().for_each(|name| checks.not_checked(name, "as in the folder", &format!("{why}; metastate report writes it again")));
            BTreeSet::new()
        }
    }
}

/// Page and plots from the data, the factors, and what was checked before.
fn remake(subject: &Subject) -> Result<Vec<(String, String)>, String> {
    let extras = load_extras(subject.folder, subject.labels.len()).map_err(|e| e.to_string())?;
    let zones: Vec<u32> = subject.zones()?.into_iter().map(|z| z as u32).collect();
    let partition = Partition::numbered(zones, subject.data.chain().xi(), subject.zone_count());
    let zone_names = crate::report::zone_names(subject.folder, subject.zone_count()).map_err(|e| e.to_string())?;
    let labels: Vec<Label> = subject.data.chain().index().labels().collect();
    let shown = subject.going_on();
    let destinations: Option<Vec<Label>> = (!subject.goes_on()).then(|| subject.data.chain().destinations().labels().collect());
    let result = FitResult {
        labels: &labels,
        destinations: destinations.as_deref(),
        xi: subject.data.chain().xi(),
        coordinates: subject.data.coordinates.as_deref(),
        names: subject.data.names.as_deref(),
        ground: extras.ground(subject.data.coordinates.as_deref()),
        zone_names: &zone_names,
        zones_have_names: extras.zones_have_names,
        factors: &subject.result.factors,
        model: &shown,
        partition: &partition,
        flows: None,
        trips: None,
        refit: None,
        witness: &subject.result.witness,
        slices: subject.data.data.slices().map(|slices| SlicedV { slices, v: &subject.model().v }),
        extra: &[],
    };
    Ok(pictures(&subject.result.summary, &result, &extras))
}

/// The side of a cell, the two pictures of the matrix, and the path as `path.csv` has it.
fn wrong_data(subject: &Subject, page: &Value) -> Result<(), String> {
    let demand = |it_is: bool, what: &str| if it_is { Ok(()) } else { Err(what.to_owned()) };
    demand(page.is_object(), "cannot be read")?;
    demand(page["cell"].as_f64() == subject.data.cell(), "cell")?;
    let outline = subject.data.ground.and_then(Ground::outline).map_or(Value::Null, |o| serde_json::json!(o));
    demand(page["outline"] == outline, "outline: the options say another")?;
    demand(page["zones_have_names"] == subject.data.zones_have_names(), "zones_have_names")?;
    match subject.goes_on() {
        true => wrong_heat(subject, &page["heat"])?,
        false => demand(page["heat"].is_null(), "heat: there is none")?,
    }
    if let Some(told) = &subject.result.summary.kinetics {
        demand(page["timescale_intervals"] == serde_json::json!(told.timescale_intervals), "timescale_intervals: the summary has others")?;
    }
    let story = &page["path"];
    let Some(choice) = &subject.result.summary.choice else { return demand(story.is_null(), "path: there is none") };
    let table = Named::read(subject.folder, "path.csv")?;
    let points = story["points"].as_array().map(Vec::as_slice).unwrap_or_default();
    demand(story["sentence"] == choice.sentence.as_str(), "path: another sentence")?;
    demand(points.len() == table.rows.len(), "path: not as many points as path.csv")?;
    let number = |x: &Value| x.as_f64().unwrap_or(f64::NAN);
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    for (r, point) in points.iter().enumerate() {
        let own = table.field(r, "held_out").is_some_and(|f| !f.is_empty());
        let columns = if own { ("held_out", "standard_error") } else { ("refit_held_out", "refit_standard_error") };
        for (key, column) in [
            ("lambda", "lambda"),
            ("rank", "rank"),
            ("objective", "objective"),
            ("gap", "certified_gap"),
            ("score", columns.0),
            ("se", columns.1),
        ] {
            demand(same(number(&point[key]), table.number(r, column)), &format!("path, point {}: path.csv has another {column}", r + 1))?;
        }
    }
    let chosen = story["chosen"].as_u64().map(|at| at as usize);
    let marked = chosen.and_then(|at| table.field(at, "chosen"));
    demand(marked == Some("yes"), "path: another point is chosen")
}

/// States in the order of their zones and then of their memberships there, in bins; shares of all moves summed over pairs of bins.
fn wrong_heat(subject: &Subject, heat: &Value) -> Result<(), String> {
    let (x, chain, zones) = (subject.going_on(), subject.chain(), subject.zones()?);
    let (d, s, xi) = (chain.states(), x.rank(), chain.xi());
    let bins = d.min(MOST_BINS);
    let inside = |i: usize| x.u[(i, zones[i].min(s - 1))];
    let mut order: Vec<usize> = (0..d).collect();
    order.sort_by(|&a, &b| zones[a].cmp(&zones[b]).then(inside(b).total_cmp(&inside(a))).then(a.cmp(&b)));
    let mut bin = vec![0; d];
    order.iter().enumerate().for_each(|(at, &i)| bin[i] = at * bins / d);
    let mut width = vec![0.0; bins];
    bin.iter().for_each(|&b| width[b] += 1.0);
    let (mut counted, mut from, mut to) = (vec![vec![0.0; bins]; bins], vec![vec![0.0; s]; bins], vec![vec![0.0; s]; bins]);
    for i in 0..d {
        let out = &mut counted[bin[i]];
        match chain.p().row(i) {
            Row::Uniform => out.iter_mut().zip(&width).for_each(|(o, w)| *o += xi[i] * w / d as f64),
            row => row.for_each(d, |j, p| out[bin[j]] += xi[i] * p),
        }
        (0..s).for_each(|k| from[bin[i]][k] += xi[i] * x.u[(i, k)]);
        (0..s).for_each(|k| to[bin[i]][k] += x.v[(i, k)]);
    }
    let model = |a: usize, b: usize| from[a].iter().zip(&to[b]).map(|(f, t)| f * t).sum::<f64>();
    let most = counted.iter().flatten().copied().fold(0.0, f64::max);
    let told = |key: &str, at: usize| heat[key][at].as_f64().unwrap_or(f64::NAN);
    let size = |key: &str| heat[key].as_array().map_or(0, Vec::len);
    if heat["bins"].as_u64() != Some(bins as u64) || heat["states"].as_u64() != Some(d as u64) {
        return Err("heat: other bins".to_owned());
    }
    if size("counted") != bins * bins || size("model") != bins * bins {
        return Err("heat: another size".to_owned());
    }
    for a in 0..bins {
        for b in 0..bins {
            for (key, expected) in [("counted", counted[a][b]), ("model", model(a, b))] {
                let off = (told(key, a * bins + b) - expected).abs();
                if off.is_nan() || off > PICTURE * (expected + most) {
                    return Err(format!("heat, {key}, bin {}, {}", a + 1, b + 1));
                }
            }
        }
    }
    let up_to = |z: usize| zones.iter().filter(|of| **of <= z).count();
    let borders: Vec<usize> = (0..subject.zone_count() - 1).map(up_to).collect();
    if heat["borders"] == serde_json::json!(borders) { Ok(()) } else { Err("heat: other borders".to_owned()) }
}
