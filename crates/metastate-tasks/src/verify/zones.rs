//! The zones and the files about them.

use std::collections::BTreeSet;

use metastate::Mat;
use metastate::aggregate::Partition;
use metastate::workspace::plain::{best_inertia, distinct_rows, inertia, numbered_best, zone_flows};
use metastate_report::{Ground, Outline, inside};
use serde_json::{Value, json};

use super::checks::{Checks, ExpectedCell, Named, ROUNDING, header, near};
use super::grounds;
use super::shapes::{self, Ring, Shape};
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
    let told = ExpectedZones::new(subject, zones);
    checks.table("zones.csv", told.csv(subject));
    if subject.goes_on() {
        checks.table("zone_flows.csv", told.flow_table(subject));
    }
    if subject.on_a_map() {
        checks.table("zones.geojson", told.geojson(subject));
    }
    if subject.has_outlines() {
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
struct ExpectedZones {
    zones: Vec<usize>,
    sizes: Vec<usize>,
    masses: Vec<f64>,
    /// What moves between the zones, where the chain goes on from where it arrives.
    trade: Option<ExpectedTrade>,
}

/// Moves between zones.
struct ExpectedTrade {
    inflow: Vec<f64>,
    outflow: Vec<f64>,
    self_share: Vec<f64>,
    flows: Mat,
}

impl ExpectedTrade {
    fn new(flows: Mat) -> Self {
        let k = flows.rows();
        let others = |z: usize, f: &dyn Fn(usize) -> f64| (0..k).filter(|&b| b != z).map(f).sum::<f64>();
        let outflow: Vec<f64> = (0..k).map(|z| others(z, &|b| flows[(z, b)])).collect();
        let inflow = (0..k).map(|z| others(z, &|a| flows[(a, z)])).collect();
        let share = |z: usize| if flows[(z, z)] + outflow[z] > 0.0 { flows[(z, z)] / (flows[(z, z)] + outflow[z]) } else { 0.0 };
        let self_share = (0..k).map(share).collect();
        ExpectedTrade { inflow, outflow, self_share, flows }
    }
}

impl ExpectedZones {
    fn new(subject: &Subject, zones: Vec<usize>) -> Self {
        let (chain, k) = (subject.chain(), subject.zone_count());
        let (mut sizes, mut masses) = (vec![0; k], vec![0.0; k]);
        for (i, &z) in zones.iter().enumerate() {
            sizes[z] += 1;
            masses[z] += chain.xi()[i];
        }
        let trade = subject.goes_on().then(|| ExpectedTrade::new(zone_flows(chain.p(), chain.departures(), &zones, k)));
        ExpectedZones { zones, sizes, masses, trade }
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
        let u = subject.u();
        let table = match Named::read(subject.folder, "zones.csv") {
            Ok(table) => table,
            Err(why) => return Some(why),
        };
        let mut names: Vec<String> = self.properties(0).iter().map(|p| p.0.to_owned()).collect();
        names.insert(1, "name".to_owned());
        names.extend(header(&["metastate"], NAMED, &["anchor", "membership"]));
        if self.trade.is_some() {
            names.extend(header(&[], NAMED, &["destination", "share"]));
        }
        if let Some(wrong) = table.wrong_shape(&names, Some(self.sizes.len())) {
            return Some(wrong);
        }
        let mut rows = Vec::new();
        let zone_names = self.names(subject);
        for z in 0..self.sizes.len() {
            let Some(leading) = self.leading(subject, z, table.number(z, "metastate")) else {
                return Some(format!("row {}, metastate: another one has more of its mass", z + 1));
            };
            let anchors = self.anchors(subject, z, leading);
            let mut row = vec![ExpectedCell::Is((z + 1).to_string())];
            // Where two meta-states have the same mass of the zone, another state may speak for it.
            let spoken_for = subject.state_name(*anchors.first().unwrap_or(&0));
            row.push(match zone_names[z].is_empty() && !anchors.is_empty() {
                true => ExpectedCell::Is(spoken_for.to_owned()),
                false => ExpectedCell::Is(zone_names[z].clone()),
            });
            row.push(ExpectedCell::Is(self.sizes[z].to_string()));
            row.extend(self.properties(z).iter().skip(2).map(|p| ExpectedCell::Near(p.1)));
            row.push(ExpectedCell::Free);
            row.extend((0..NAMED).flat_map(|k| match anchors.get(k) {
                Some(&i) => [ExpectedCell::Is(subject.labels[i].clone()), ExpectedCell::number(u[(i, leading)])],
                None => [ExpectedCell::Is(String::new()), ExpectedCell::Is(String::new())],
            }));
            row.extend((0..2 * NAMED).filter(|_| self.trade.is_some()).map(|_| ExpectedCell::Free));
            rows.push(row);
        }
        let wrong = |trade: &ExpectedTrade, z: usize| self.wrong_destinations(trade, &table, z).map(|why| format!("row {}, {why}", z + 1));
        let all = |trade: &ExpectedTrade| (0..self.sizes.len()).find_map(|z| wrong(trade, z));
        table.difference(&names, &rows).or_else(|| self.trade.as_ref().and_then(all))
    }

    /// The states of a zone that belong most to a meta-state, then by weight.
    fn anchors(&self, subject: &Subject, z: usize, leading: usize) -> Vec<usize> {
        let (u, xi) = (subject.u(), subject.data.chain().xi());
        let mut anchors: Vec<usize> = self.members(z).collect();
        anchors.sort_by(|&a, &b| u[(b, leading)].total_cmp(&u[(a, leading)]).then(xi[b].total_cmp(&xi[a])).then(a.cmp(&b)));
        anchors
    }

    /// The names that somebody gave to zones; empty where a zone is called as its strongest anchor.
    fn names(&self, subject: &Subject) -> Vec<String> {
        let zones = self.zones.iter().map(|z| *z as u32).collect();
        let partition = Partition::numbered(zones, subject.data.chain().xi(), self.sizes.len());
        let given = subject.data.zone_names.as_ref().map(|names| names.of(&partition, &subject.labels).0);
        given.unwrap_or_else(|| vec![String::new(); self.sizes.len()])
    }

    /// `zone_flows.csv`: its transitions added up again, one by one.
    fn flow_table(&self, subject: &Subject) -> Option<String> {
        let (chain, k) = (subject.chain(), self.sizes.len());
        let names = match Named::read(subject.folder, "zones.csv") {
            Ok(table) => (0..k).map(|z| table.field(z, "name").unwrap_or_default().to_owned()).collect::<Vec<String>>(),
            Err(why) => return Some(why),
        };
        let table = match Named::read(subject.folder, "zone_flows.csv") {
            Ok(table) => table,
            Err(why) => return Some(why),
        };
        let mut trips = vec![vec![0.0; k]; k];
        for (i, j, n) in chain.counts().into_iter().flat_map(metastate::Csr::triplets) {
            trips[self.zones[i as usize]][self.zones[j as usize]] += n;
        }
        let counted = chain.counts().is_some();
        let header: &[&str] = match counted {
            true => &["from_zone", "from_name", "to_zone", "to_name", "transitions", "share", "share_of_departures"],
            false => &["from_zone", "from_name", "to_zone", "to_name", "share", "share_of_departures"],
        };
        let flows = &self.trade.as_ref()?.flows;
        let row = |a: usize, b: usize| {
            let out: f64 = (0..k).map(|b| flows[(a, b)]).sum();
            let mut row = vec![
                ExpectedCell::Is((a + 1).to_string()),
                ExpectedCell::Is(names[a].clone()),
                ExpectedCell::Is((b + 1).to_string()),
                ExpectedCell::Is(names[b].clone()),
            ];
            row.extend(counted.then(|| ExpectedCell::Near(trips[a][b])));
            row.extend([ExpectedCell::Near(flows[(a, b)]), ExpectedCell::Near(if out > 0.0 { flows[(a, b)] / out } else { 0.0 })]);
            row
        };
        let rows: Vec<Vec<ExpectedCell>> = (0..k * k).map(|n| row(n / k, n % k)).collect();
        table.difference(&header.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>(), &rows)
    }

    /// The zones that receive most, with their shares of the departures. Of equal shares either may come first.
    fn wrong_destinations(&self, ExpectedTrade { flows, .. }: &ExpectedTrade, table: &Named, z: usize) -> Option<String> {
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

    /// The ground of the zone, by the rule of what its states are on the map.
    fn wrong_shape(&self, subject: &Subject, z: usize, shape: Option<Shape>) -> Option<String> {
        let (Some(places), Some(ground)) = (&subject.data.coordinates, subject.data.ground) else { return None };
        let Some(shape) = shape else { return Some(format!("zone {}: no multipolygon", z + 1)) };
        let wrong = match ground {
            Ground::Squares(side) => {
                let at = |x: f64| (x / side - 0.5).round();
                let near_enough = |p: &(f64, f64)| at(p.0).abs() < 1e15 && at(p.1).abs() < 1e15;
                let cells = self.members(z).map(|i| places[i]).filter(near_enough).map(|p| (at(p.0) as i64, at(p.1) as i64)).collect();
                shapes::wrong(&shape, &cells, side)
            }
            Ground::Other(Outline::Hexagons) => {
                let hexagons: Vec<Ring> = self.members(z).filter_map(|i| metastate_ingest::hexagon(&subject.labels[i])).collect();
                grounds::wrong_hexagons(&shape, &hexagons)
            }
            Ground::Other(Outline::Voronoi) => grounds::wrong_voronoi(&shape, z, &self.zones, places),
            Ground::Other(Outline::Hull) => grounds::wrong_hull(&shape, &self.members(z).map(|i| places[i]).collect::<Vec<_>>()),
            Ground::Other(Outline::Points) => None,
        };
        wrong.map(|why| format!("zone {}: {why}", z + 1))
    }

    fn geojson(&self, subject: &Subject) -> Option<String> {
        let text = match inside::read_text(subject.folder, "zones.geojson") {
            Ok(text) => text,
            Err(why) => return Some(why.to_string()),
        };
        let map: Value = serde_json::from_str(&text).unwrap_or_default();
        let known: Vec<usize> = match (&subject.data.coordinates, subject.data.ground) {
            (Some(places), Some(ground)) if !ground.is_cells() => {
                (0..places.len()).filter(|&i| places[i].0.is_finite() && places[i].1.is_finite()).collect()
            }
            _ => Vec::new(),
        };
        let k = self.sizes.len();
        let Some(features) = map["features"].as_array().filter(|f| f.len() == k + known.len() && map["type"] == "FeatureCollection") else {
            return Some("not one feature a zone, and one a place".to_owned());
        };
        let names = match Named::read(subject.folder, "zones.csv") {
            Ok(table) => (0..k).map(|z| table.field(z, "name").unwrap_or_default().to_owned()).collect::<Vec<String>>(),
            Err(why) => return Some(why),
        };
        let zones = features[..k].iter().enumerate().find_map(|(z, feature)| self.wrong_zone_feature(subject, z, feature, &names[z]));
        zones.or_else(|| known.iter().zip(&features[k..]).find_map(|(&i, feature)| self.wrong_place(subject, i, feature, &features[..k])))
    }

    fn wrong_zone_feature(&self, subject: &Subject, z: usize, feature: &Value, name: &str) -> Option<String> {
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
        if told["kind"] != "zone" || told["name"] != name {
            return Some(format!("zone {}: its name is {name}", z + 1));
        }
        // Further than these: kind, name, metastate and fill.
        if count != expected.len() + 4 || feature["type"] != "Feature" || !told["fill"].is_string() {
            return Some(format!("zone {}: other properties", z + 1));
        }
        if subject.has_outlines() {
            if feature["geometry"]["type"] != "MultiPolygon" {
                return Some(format!("zone {}: no multipolygon", z + 1));
            }
            return self.wrong_shape(subject, z, shapes::from_geojson(&feature["geometry"]["coordinates"]));
        }
        let places = subject.data.coordinates.as_deref().unwrap_or_default();
        let members: Vec<(f64, f64)> = self.members(z).map(|i| places[i]).filter(|p| p.0.is_finite() && p.1.is_finite()).collect();
        let same = feature["geometry"] == json!({ "type": "MultiPoint", "coordinates": members });
        (!same).then(|| format!("zone {}: other points", z + 1))
    }

    /// A place: its label and name, where it belongs, and a geometry that holds it.
    fn wrong_place(&self, subject: &Subject, i: usize, feature: &Value, zones: &[Value]) -> Option<String> {
        let (told, label) = (&feature["properties"], &subject.labels[i]);
        let own = home(subject.u().row(i));
        let (place, zone) = (subject.data.coordinates.as_ref()?[i], self.zones[i]);
        let number = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
        let numbers = [
            ("zone", (zone + 1) as f64),
            ("metastate", (own + 1) as f64),
            ("membership", subject.u()[(i, own)]),
            ("weight", subject.data.chain().xi()[i]),
        ];
        if let Some((name, x)) = numbers.iter().find(|(name, x)| !near(number(name), *x)) {
            return Some(format!("place {label}, {name}: should be {x}"));
        }
        let name = subject.data.names.as_ref().map_or(Value::Null, |names| json!(names[i]));
        if told["kind"] != "place"
            || told["label"] != label.as_str()
            || told["name"] != name
            || told["fill"] != zones[zone]["properties"]["fill"]
        {
            return Some(format!("place {label}: another label, name or colour"));
        }
        let geometry = &feature["geometry"];
        let holds = match geometry["type"].as_str() {
            Some("Point") => geometry["coordinates"] == json!([place.0, place.1]),
            Some("Polygon") => {
                let rings: Vec<Ring> = serde_json::from_value(geometry["coordinates"].clone()).unwrap_or_default();
                grounds::holds(&vec![rings], place)
            }
            _ => false,
        };
        (!holds).then(|| format!("place {label}: its geometry does not hold it"))
    }

    fn geoparquet(&self, subject: &Subject) -> Option<String> {
        let file = match twin::read(subject.folder, "zones.parquet", self.sizes.len()) {
            Ok(file) => file,
            Err(why) => return Some(why),
        };
        let names = file.columns.iter().map(|c| c.0.as_str());
        let numbers = self.properties(0);
        let expected = ["zone", "name"].into_iter().chain(numbers.iter().skip(1).map(|p| p.0)).chain(["metastate", "geometry"]);
        if !names.eq(expected) {
            return Some("other columns".to_owned());
        }
        let table = match Named::read(subject.folder, "zones.csv") {
            Ok(table) => table,
            Err(why) => return Some(why),
        };
        let Column::Texts(called) = &file.columns[1].1 else { return Some("no names".to_owned()) };
        if called.len() != self.sizes.len() || (0..called.len()).any(|z| table.field(z, "name") != Some(called[z].as_str())) {
            return Some("other names than zones.csv has".to_owned());
        }
        let without_names: Vec<&(String, Column)> = file.columns.iter().filter(|c| c.0 != "name").collect();
        let mut bounds: Option<[f64; 4]> = None;
        for z in 0..self.sizes.len() {
            for ((name, x), (_, column)) in self.properties(z).iter().zip(&without_names) {
                let found = if let Column::Numbers(all) = column { all.get(z).copied() } else { None };
                if !found.is_some_and(|f| near(f, *x)) {
                    return Some(format!("zone {}, {name}: should be {x}", z + 1));
                }
            }
            let Column::Numbers(metastates) = &without_names[numbers.len()].1 else { return Some("no meta-states".to_owned()) };
            if self.leading(subject, z, metastates.get(z).copied().unwrap_or(f64::NAN)).is_none() {
                return Some(format!("zone {}, metastate: another one has more of its mass", z + 1));
            }
            let Column::Bytes(shapes) = &without_names[numbers.len() + 1].1 else { return Some("no geometry".to_owned()) };
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
