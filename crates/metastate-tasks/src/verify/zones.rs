//! The zones and the files about them.

use std::collections::BTreeSet;

use metastate::linalg::Mat;
use metastate::verify::plain::{best_inertia, distinct_rows, inertia, numbered_best, zone_flows};
use metastate_report::inside;
use serde_json::{Value, json};

use super::checks::{Cell, Checks, Named, ROUNDING, header, near};
use super::shapes::{self, Shape};
use super::subject::Subject;
use super::tables::home;
use super::twin::{self, Column};
use crate::args::Clusters;

/// Anchor states and destinations named for each zone.
const NAMED: usize = 5;
/// Starts of k-means made here, fewer where a pass is costly.
const STARTS: usize = 10;
/// k-means ends where its start leads. The best of many starts may miss the best of these few, with a hundred clusters by some hundredths, never by a
/// tenth: that share of the inertia is allowed.
const LOOSER: f64 = 0.1;
/// Distances in one coordinate that a pass may take: for all starts together, and for k-means to be tried again at all.
const WORK: usize = 20_000_000;
const MOST_WORK: usize = 100_000_000;

/// Zones, then their table and their two maps.
pub fn check(checks: &mut Checks, subject: &Subject) {
    let zones = match subject.zones() {
        Ok(zones) => zones,
        Err(why) => return checks.table("zones", Some(why)),
    };
    let wrong = wrong_zones(checks, subject, &zones);
    checks.table("zones", wrong);
    let told = Told::new(subject, zones);
    checks.table("zones.csv", told.csv(subject));
    if subject.has_cells() {
        checks.table("zones.geojson", told.geojson(subject));
        checks.table("zones.parquet", told.geoparquet(subject));
    }
}

/// Whether every state is where the stated rule puts it.
fn wrong_zones(checks: &mut Checks, subject: &Subject, zones: &[usize]) -> Option<String> {
    let (u, xi, k) = (subject.u(), subject.data.chain().xi(), subject.zone_count());
    // With more meta-states than states there cannot be a cluster for each: the largest membership decides.
    let too_many = subject.fit.hard() == Clusters::Rank && u.cols() > u.rows();
    if subject.fit.hard() == Clusters::Membership || too_many {
        let stray = (0..zones.len()).find(|&i| zones[i] != home(u.row(i)));
        return stray.map(|i| format!("row {}: not the largest membership", i + 1));
    }
    let filled = zones.iter().collect::<BTreeSet<_>>().len();
    let distinct = distinct_rows(u, k);
    if filled < k.min(distinct) {
        return Some(format!("{filled} zones have states, {} were to be found", k.min(distinct)));
    }
    let mut mass = vec![0.0; k];
    zones.iter().zip(xi).for_each(|(&z, x)| mass[z] += x);
    if let Clusters::Count(_) = subject.fit.hard() {
        if let Some(z) = (1..k).find(|&z| mass[z] > mass[z - 1] + ROUNDING) {
            return Some(format!("zone {} is heavier than zone {z}", z + 1));
        }
    } else if !numbered_best(u, xi, zones, ROUNDING) {
        return Some("zones are not numbered as the meta-states they share most with".to_owned());
    }
    let (found, stray) = inertia(u, zones, k, ROUNDING);
    if let Some(i) = stray {
        return Some(format!("row {}: nearer to another zone", i + 1));
    }
    let pass = u.rows() * k * u.cols();
    if pass > MOST_WORK {
        checks.not_checked("k-means from other starts", number_word(found), "too many states");
        return None;
    }
    let best = best_inertia(u, k, (WORK / pass.max(1)).clamp(1, STARTS), subject.result.summary.seed);
    (found > (1.0 + LOOSER) * best + ROUNDING).then(|| format!("inertia {found:.6e}, a few starts find {best:.6e}"))
}

fn number_word(x: f64) -> String {
    format!("inertia {x:.6e}")
}

/// What the files should tell.
struct Told {
    zones: Vec<usize>,
    sizes: Vec<usize>,
    masses: Vec<f64>,
    /// What moves between the zones, where the chain goes on from where it arrives.
    trade: Option<Trade>,
}

/// Moves between zones.
struct Trade {
    inflow: Vec<f64>,
    outflow: Vec<f64>,
    self_share: Vec<f64>,
    flows: Mat,
}

impl Trade {
    fn new(flows: Mat) -> Self {
        let k = flows.rows();
        let others = |z: usize, f: &dyn Fn(usize) -> f64| (0..k).filter(|&b| b != z).map(f).sum::<f64>();
        let outflow: Vec<f64> = (0..k).map(|z| others(z, &|b| flows[(z, b)])).collect();
        let inflow = (0..k).map(|z| others(z, &|a| flows[(a, z)])).collect();
        let share = |z: usize| if flows[(z, z)] + outflow[z] > 0.0 { flows[(z, z)] / (flows[(z, z)] + outflow[z]) } else { 0.0 };
        let self_share = (0..k).map(share).collect();
        Trade { inflow, outflow, self_share, flows }
    }
}

impl Told {
    fn new(subject: &Subject, zones: Vec<usize>) -> Self {
        let (chain, k) = (subject.data.chain(), subject.zone_count());
        let (mut sizes, mut masses) = (vec![0; k], vec![0.0; k]);
        for (i, &z) in zones.iter().enumerate() {
            sizes[z] += 1;
            masses[z] += chain.xi()[i];
        }
        let trade = subject.goes_on().then(|| Trade::new(zone_flows(chain.p(), chain.departures(), &zones, k)));
        Told { zones, sizes, masses, trade }
    }

    fn members(&self, zone: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.zones.len()).filter(move |&i| self.zones[i] == zone)
    }

    /// The meta-state (from 0) that a file calls the leading one of a zone, when it may: none has more of the zone's mass. Which of two with equal
    /// mass, rounding decides.
    fn leading(&self, subject: &Subject, z: usize, told: f64) -> Option<usize> {
        let (u, xi) = (subject.u(), subject.data.chain().xi());
        let mut mass = vec![0.0; u.cols()];
        self.members(z).for_each(|i| mass.iter_mut().zip(u.row(i)).for_each(|(m, u)| *m += xi[i] * u));
        let most = mass.iter().copied().fold(0.0, f64::max);
        (0..mass.len()).find(|&j| told == (j + 1) as f64 && mass[j] >= most - ROUNDING)
    }

    /// `zones.csv`.
    fn csv(&self, subject: &Subject) -> Option<String> {
        let (u, xi) = (subject.u(), subject.data.chain().xi());
        let table = match Named::read(subject.folder, "zones.csv") {
            Ok(table) => table,
            Err(why) => return Some(why),
        };
        let mut names: Vec<String> = self.properties(0).iter().map(|p| p.0.to_owned()).collect();
        names.extend(header(&["metastate"], NAMED, &["anchor"]));
        if self.trade.is_some() {
            names.extend(header(&[], NAMED, &["destination", "share"]));
        }
        if let Some(wrong) = table.wrong_shape(&names, Some(self.sizes.len())) {
            return Some(wrong);
        }
        let mut rows = Vec::new();
        for z in 0..self.sizes.len() {
            let Some(leading) = self.leading(subject, z, table.number(z, "metastate")) else {
                return Some(format!("row {}, metastate: another one has more of its mass", z + 1));
            };
            let mut row = vec![Cell::Is((z + 1).to_string()), Cell::Is(self.sizes[z].to_string())];
            row.extend(self.properties(z).iter().skip(2).map(|p| Cell::Near(p.1)));
            row.push(Cell::Free);
            let mut anchors: Vec<usize> = self.members(z).collect();
            anchors.sort_by(|&a, &b| u[(b, leading)].total_cmp(&u[(a, leading)]).then(xi[b].total_cmp(&xi[a])).then(a.cmp(&b)));
            row.extend((0..NAMED).map(|k| Cell::Is(anchors.get(k).map_or_else(String::new, |&i| subject.labels[i].clone()))));
            row.extend((0..2 * NAMED).filter(|_| self.trade.is_some()).map(|_| Cell::Free));
            rows.push(row);
        }
        let wrong = |trade: &Trade, z: usize| self.wrong_destinations(trade, &table, z).map(|why| format!("row {}, {why}", z + 1));
        let all = |trade: &Trade| (0..self.sizes.len()).find_map(|z| wrong(trade, z));
        table.difference(&names, &rows).or_else(|| self.trade.as_ref().and_then(all))
    }

    /// The zones that receive most, with their shares of the departures. Of equal shares either may come first.
    fn wrong_destinations(&self, Trade { flows, .. }: &Trade, table: &Named, z: usize) -> Option<String> {
        let out: f64 = flows.row(z).iter().sum();
        let mut shares: Vec<f64> = (0..self.sizes.len()).filter(|b| *b != z && flows[(z, *b)] > 0.0).map(|b| flows[(z, b)] / out).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        let mut named = BTreeSet::new();
        for k in 0..NAMED {
            let (name, share) = (format!("destination_{}", k + 1), format!("share_{}", k + 1));
            let (to, told) = (table.field(z, &name).unwrap_or_default(), table.field(z, &share).unwrap_or_default());
            let Some(expected) = shares.get(k) else {
                if !(to.is_empty() && told.is_empty()) {
                    return Some(format!("{name}: there is no further one"));
                }
                continue;
            };
            let to = to.parse::<usize>().ok().filter(|b| (1..=self.sizes.len()).contains(b) && *b != z + 1 && named.insert(*b));
            let told = told.parse::<f64>().unwrap_or(f64::NAN);
            if !near(told, *expected) || !to.is_some_and(|b| near(flows[(z, b - 1)] / out, told)) {
                return Some(format!("{name} and {share}: should have {}", metastate_report::number(*expected)));
            }
        }
        None
    }

    fn properties(&self, z: usize) -> Vec<(&'static str, f64)> {
        let mut all = vec![("zone", (z + 1) as f64), ("size", self.sizes[z] as f64), ("mass", self.masses[z])];
        if let Some(t) = &self.trade {
            all.extend([("inflow", t.inflow[z]), ("outflow", t.outflow[z]), ("self_share", t.self_share[z])]);
        }
        all
    }

    /// The cells of the zone, by their lower left corners.
    fn wrong_shape(&self, subject: &Subject, z: usize, shape: Option<Shape>) -> Option<String> {
        let (Some(places), Some(side)) = (&subject.data.coordinates, subject.data.cell) else { return None };
        let at = |x: f64| (x / side - 0.5).round();
        let near_enough = |p: &(f64, f64)| at(p.0).abs() < 1e15 && at(p.1).abs() < 1e15;
        let cells = self.members(z).map(|i| places[i]).filter(near_enough).map(|p| (at(p.0) as i64, at(p.1) as i64)).collect();
        match shape {
            None => Some(format!("zone {}: no multipolygon", z + 1)),
            Some(shape) => shapes::wrong(&shape, &cells, side).map(|why| format!("zone {}: {why}", z + 1)),
        }
    }

    fn geojson(&self, subject: &Subject) -> Option<String> {
        let text = match inside::read_text(subject.folder, "zones.geojson") {
            Ok(text) => text,
            Err(why) => return Some(why.to_string()),
        };
        let map: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(features) = map["features"].as_array().filter(|f| f.len() == self.sizes.len() && map["type"] == "FeatureCollection")
        else {
            return Some("not one feature a zone".to_owned());
        };
        for (z, feature) in features.iter().enumerate() {
            let told = &feature["properties"];
            let expected = self.properties(z);
            let count = told.as_object().map_or(0, serde_json::Map::len);
            let wrong = expected.iter().find(|(name, x)| !told[*name].as_f64().is_some_and(|f| near(f, *x)));
            if let Some((name, x)) = wrong {
                return Some(format!("zone {}, {name}: should be {x}", z + 1));
            }
            if self.leading(subject, z, told["metastate"].as_f64().unwrap_or(f64::NAN)).is_none() {
                return Some(format!("zone {}, metastate: another one has more of its mass", z + 1));
            }
            if count != expected.len() + 1 || feature["type"] != "Feature" || feature["geometry"]["type"] != "MultiPolygon" {
                return Some(format!("zone {}: other properties, or no multipolygon", z + 1));
            }
            let shape = shapes::from_geojson(&feature["geometry"]["coordinates"]);
            if let Some(wrong) = self.wrong_shape(subject, z, shape) {
                return Some(wrong);
            }
        }
        None
    }

    fn geoparquet(&self, subject: &Subject) -> Option<String> {
        let file = match twin::read(subject.folder, "zones.parquet", self.sizes.len()) {
            Ok(file) => file,
            Err(why) => return Some(why),
        };
        let names = file.columns.iter().map(|c| c.0.as_str());
        let numbers = self.properties(0);
        if !names.eq(numbers.iter().map(|p| p.0).chain(["metastate", "geometry"])) {
            return Some("other columns".to_owned());
        }
        let mut bounds: Option<[f64; 4]> = None;
        for z in 0..self.sizes.len() {
            for ((name, x), (_, column)) in self.properties(z).iter().zip(&file.columns) {
                let found = if let Column::Numbers(all) = column { all.get(z).copied() } else { None };
                if !found.is_some_and(|f| near(f, *x)) {
                    return Some(format!("zone {}, {name}: should be {x}", z + 1));
                }
            }
            let Column::Numbers(metastates) = &file.columns[numbers.len()].1 else { return Some("no meta-states".to_owned()) };
            if self.leading(subject, z, metastates.get(z).copied().unwrap_or(f64::NAN)).is_none() {
                return Some(format!("zone {}, metastate: another one has more of its mass", z + 1));
            }
            let Column::Bytes(shapes) = &file.columns[numbers.len() + 1].1 else { return Some("no geometry".to_owned()) };
            let shape = shapes.get(z).and_then(|bytes| shapes::from_wkb(bytes));
            for &(x, y) in shape.iter().flatten().flatten().flatten() {
                let b = bounds.get_or_insert([x, y, x, y]);
                *b = [b[0].min(x), b[1].min(y), b[2].max(x), b[3].max(y)];
            }
            if let Some(wrong) = self.wrong_shape(subject, z, shape) {
                return Some(wrong);
            }
            if shapes.len() != self.sizes.len() {
                return Some("not one row a zone".to_owned());
            }
        }
        let geo: Value = serde_json::from_str(file.geo.as_deref().unwrap_or_default()).unwrap_or_default();
        let column = &geo["columns"]["geometry"];
        let described = geo["primary_column"] == "geometry" && column["encoding"] == "WKB";
        let same_bounds = bounds.is_none_or(|b| column["bbox"] == json!(b));
        (!described || !same_bounds).then(|| "the text that describes the geometry".to_owned())
    }
}
