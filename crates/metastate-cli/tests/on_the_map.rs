//! Places of named states, their ground on the map, names of zones, and what is different between two results.

mod common;

use common::{Place, planted_counts, text, triplets_csv};
use serde_json::Value;

/// Sixty stations in four quarters, each a cluster of fifteen.
fn stations() -> Place {
    let place = Place::new();
    place.write("counts.csv", triplets_csv(&planted_counts(60, 4)));
    let mut table = String::from("id,called,x,y\n");
    for i in 0..60_u32 {
        let (east, north) = (f64::from(i % 2), f64::from(i / 2 % 2));
        let (dx, dy) = (0.01 * f64::from(i / 4 % 4), 0.01 * f64::from(i / 16));
        table += &format!("{i},Stop {i},{:.3},{:.3}\n", 10.0 + 0.1 * east + dx, 54.0 + 0.1 * north + dy);
    }
    place.write("stations.csv", table);
    place
}

const FIT: [&str; 4] = ["fit", "counts.csv", "--lambda-ratio", "0.3"];
const NAMED: [&str; 10] = ["--places", "stations.csv", "--label", "id", "--name", "called", "--lon", "x", "--lat", "y"];

fn fit(place: &Place, out: &str, more: &[&str]) -> String {
    place.expect(0, &[&FIT[..], &["--out", out], more].concat()).0
}

fn json(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&place.read(name)).unwrap()
}

fn rows(place: &Place, name: &str) -> Vec<Vec<String>> {
    metastate_report::parse_csv(&text(&place.read(name))).unwrap()
}

/// A spot inside a polygon of GeoJSON, by counting crossings.
fn inside(polygon: &Value, (x, y): (f64, f64)) -> bool {
    let ring: Vec<(f64, f64)> = serde_json::from_value(polygon[0].clone()).unwrap();
    let crossings =
        ring.windows(2).filter(|w| (w[0].1 > y) != (w[1].1 > y) && x < (w[1].0 - w[0].0) * (y - w[0].1) / (w[1].1 - w[0].1) + w[0].0);
    crossings.count() % 2 == 1
}

#[test]
fn stations_have_ground_names_and_a_table_of_trips() {
    let place = stations();
    fit(&place, "out", &NAMED);
    let (checked, _) = place.expect(0, &["verify", "out"]);
    for line in ["zones.geojson", "zones.parquet", "zone_flows.csv"] {
        assert!(checked.contains(line), "{line}\n{checked}");
    }
    let map = json(&place, "out/zones.geojson");
    let features = map["features"].as_array().unwrap();
    let zones = rows(&place, "out/zones.csv").len() - 1;
    assert_eq!(features.len(), zones + 60);
    // Each station is on its own ground, under its label and its name.
    for (i, feature) in features[zones..].iter().enumerate() {
        let told = &feature["properties"];
        assert_eq!((told["label"].as_str().unwrap(), told["name"].as_str().unwrap()), (&*i.to_string(), &*format!("Stop {i}")));
        let station = &rows(&place, "stations.csv")[i + 1];
        let spot = (station[2].parse().unwrap(), station[3].parse().unwrap());
        assert!(inside(&feature["geometry"]["coordinates"], spot), "{i}");
        let zone = &features[told["zone"].as_u64().unwrap() as usize - 1];
        assert_eq!(told["fill"], zone["properties"]["fill"]);
        assert!(zone["geometry"]["coordinates"].as_array().unwrap().iter().any(|p| inside(p, spot)));
    }
    // A zone has the same colour and the same name on the map, in the tables and on the page.
    let svg = text(&place.read("out/plots/map.svg"));
    let page = text(&place.read("out/report.html"));
    for (z, row) in rows(&place, "out/zones.csv")[1..].iter().enumerate() {
        let told = &features[z]["properties"];
        assert_eq!(told["name"], row[1]);
        assert!(row[1].starts_with("Stop ") && row[8..10].concat().starts_with(row[1].trim_start_matches("Stop ")), "{row:?}");
        let fill = told["fill"].as_str().unwrap();
        assert!(svg.contains(&format!("fill=\"{fill}\" fill-rule=\"evenodd\"")), "{fill}");
        assert!(svg.contains(&format!(">{} {}</text>", z + 1, row[1])));
        assert!(page.contains(fill) && page.contains(&row[1]));
    }
    // All transitions are in the table of trips, in whole numbers.
    let trips = rows(&place, "out/zone_flows.csv");
    assert_eq!(trips.len(), zones * zones + 1);
    let counted: u64 = planted_counts(60, 4).iter().map(|c| c.2).sum();
    assert_eq!(trips[1..].iter().map(|r| r[4].parse::<f64>().unwrap()).sum::<f64>(), counted as f64);
    // Somebody else's trips, ground, or name is a lie that verify sees, also where the hash was made to match.
    let trips = format!(",{},", trips[1][4]);
    let lies: [(&str, &str, &str); 4] = [
        ("zone_flows.csv", &trips, ",1.0,"),
        ("zones.csv", "Stop", "Halt"),
        ("zones.geojson", "\"name\":\"Stop 7\"", "\"name\":\"Stop 8\""),
        ("zones.geojson", "[10.", "[11."),
    ];
    for (file, was, becomes) in lies {
        let name = format!("out/{file}");
        let (kept, summary) = (place.read(&name), place.read("out/summary.json"));
        let told = text(&kept).replacen(was, becomes, 1);
        assert_ne!(told, text(&kept), "{file}");
        let hash = |bytes: &[u8]| metastate_report::hash::of_bytes(bytes);
        place.write(&name, &told);
        place.write("out/summary.json", text(&summary).replace(&hash(&kept), &hash(told.as_bytes())));
        let (found, _) = place.expect(1, &["verify", "out"]);
        assert!(found.lines().any(|l| l.contains(file) && l.contains("NO")), "{file}\n{found}");
        place.write(&name, kept);
        place.write("out/summary.json", summary);
    }
}

#[test]
fn a_result_gets_its_map_afterwards() {
    let place = stations();
    fit(&place, "late", &[]);
    assert!(!place.path("late/zones.geojson").exists());
    let (_, refused) = place.expect(2, &["report", "late", "--outline", "hull"]);
    assert!(refused.contains("give their places with --places"), "{refused}");
    place.expect(0, &[&["report", "late"], &NAMED[..]].concat());
    place.expect(0, &["verify", "late", "--quiet"]);
    // The same files as if the fit had known them; only the rival's map needs the data.
    fit(&place, "early", &NAMED);
    for file in ["states.csv", "zones.csv", "zones.geojson", "zones.parquet", "zone_flows.csv", "factors.npz", "plots/map.svg"] {
        assert!(place.read(&format!("late/{file}")) == place.read(&format!("early/{file}")), "{file}");
    }
    for outline in ["hull", "points", "voronoi"] {
        place.expect(0, &["report", "late", "--outline", outline]);
        place.expect(0, &["verify", "late", "--quiet"]);
        assert_eq!(place.path("late/zones.parquet").exists(), outline != "points");
    }
    // From another folder, files are found where they are.
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    place.write("elsewhere/names.csv", "label,name\n0,The Old Town\n1,The Harbour\nnobody,Ghost\n");
    let elsewhere = place.path("elsewhere");
    let done = place.command(&["report", "../late", "--zone-names", "names.csv"]).current_dir(&elsewhere).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    place.expect(0, &["verify", "late", "--quiet"]);
    let named: Vec<String> = rows(&place, "late/zones.csv")[1..].iter().map(|r| r[1].clone()).collect();
    assert!(named.contains(&"The Old Town".to_owned()) && named.contains(&"The Harbour".to_owned()), "{named:?}");
    assert!(text(&place.read("late/plots/map.svg")).contains("The Old Town"));
    let hints = json(&place, "late/summary.json")["hints"].to_string();
    assert!(hints.contains("Ghost; there is no such state"), "{hints}");
    // A file that says something else afterwards is found.
    place.write("elsewhere/names.csv", "label,name\n0,The New Town\n");
    place.expect(1, &["verify", "late", "--quiet"]);
}

#[test]
fn what_places_cannot_be_is_said() {
    let place = stations();
    let swapped = text(&place.read("stations.csv")).replace("id,called,x,y", "id,called,y,x");
    place.write("swapped.csv", swapped.replace("10.", "100."));
    let fit = [&FIT[..], &["--out", "no", "--label", "id", "--lon", "x", "--lat", "y", "--places"]].concat();
    let (_, refused) = place.expect(2, &[&fit[..], &["swapped.csv"]].concat());
    assert!(refused.contains("exchanged they are one: --lon y --lat x"), "{refused}");
    let pointed: String =
        text(&place.read("stations.csv")).lines().map(|l| l.replacen(',', ".0,", usize::from(!l.starts_with("id"))) + "\n").collect();
    place.write("pointed.csv", pointed);
    let (_, refused) = place.expect(2, &[&fit[..], &["pointed.csv"]].concat());
    assert!(refused.contains("which has `0.0`") && refused.contains("whole numbers with a decimal point"), "{refused}");
    assert!(!place.path("no").exists());
}

#[test]
fn two_results_are_compared_over_the_states_that_both_have() {
    let place = stations();
    fit(&place, "before", &NAMED);
    let told = place.expect(0, &["diff", "before", "before"]).0;
    assert!(told.contains("60 common states") && told.contains("agree by 1.0000") && told.contains("0 states moved"), "{told}");
    // Another year: stops 0 to 2 are gone, two are new, and stop 4 has gone over to the quarter of stop 5.
    let other = |i: usize| if i == 4 { 5 } else { i };
    let mut csv = String::from("from,to,count\n");
    for (i, j, n) in planted_counts(60, 4) {
        let near = if other(i) % 4 == other(j) % 4 { 20 } else { 1 };
        if i > 2 && j > 2 {
            csv += &format!("{i},{j},{}\n", if n > 18 || i == 4 || j == 4 { near } else { n });
        }
    }
    csv += "new,3,9\n3,new,9\nnewer,7,9\n7,newer,9\n";
    place.write("counts.csv", csv);
    fit(&place, "after", &[]);
    let (told, _) = place.expect(0, &["diff", "before", "after", "--out", "changed"]);
    assert!(told.contains("57 common states; only in the first 3 "), "{told}");
    assert!(told.contains("1 states moved") && told.contains("Stop 4 (4)"), "{told}");
    let (found, _) = place.expect(0, &["diff", "before", "after", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["states"]["only_second"], 2);
    assert_eq!((found["moves"][0]["label"].as_str(), found["moved"].as_u64()), (Some("4"), Some(1)));
    assert!(found["moves"][0]["shift"].as_f64().unwrap() > 0.5);
    assert!(found["adjusted_rand"].as_f64().unwrap() > 0.9);
    // Stayed, left and came add up to the zones.
    let zones = found["zones"].as_array().unwrap();
    let sum = |key: &str| zones.iter().map(|z| z[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("stayed") + sum("left"), sum("left"), sum("came")), (57, 1, 1));
    // One row a state of either, and a page that opens.
    assert_eq!(rows(&place, "changed/states.csv").len(), 1 + 62);
    let page = text(&place.read("changed/diff.html"));
    assert!(page.contains("Zones, matched") && page.contains("Stop 4") && !page.contains("<script"), "{page}");
    assert!(place.path("changed/map-first.svg").exists(), "the first result knows its places");
    // Its own folder is replaced, nobody else's; the results are not overwritten.
    place.expect(2, &["diff", "before", "after", "--out", "changed"]);
    place.expect(0, &["diff", "before", "after", "--out", "changed", "--force"]);
    place.expect(2, &["diff", "before", "after", "--out", "before", "--force"]);
    place.expect(0, &["verify", "after", "--quiet"]);
}

#[test]
fn results_without_a_common_state_are_not_compared() {
    let place = Place::new();
    place.write("a.csv", triplets_csv(&planted_counts(12, 3)));
    let other: String = planted_counts(12, 3).iter().map(|(i, j, n)| format!("x{i},x{j},{n}\n")).collect();
    place.write("b.csv", format!("from,to,count\n{other}"));
    for name in ["a", "b"] {
        place.expect(0, &["fit", &format!("{name}.csv"), "--lambda-ratio", "0.3", "--out", name]);
    }
    let (_, refused) = place.expect(2, &["diff", "a", "b"]);
    assert!(refused.contains("no state in common"), "{refused}");
    place.expect(2, &["diff", "a", "nowhere"]);
}
