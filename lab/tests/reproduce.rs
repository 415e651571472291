//! `metastate-reproduce --quick`: a small version of everything, resumed, cut off, refused.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A folder for one test, removed at its end.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Runs and expects this exit code; hands back standard output and standard error.
    fn expect(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_metastate-reproduce"));
        let output = command.current_dir(self.0.path()).args(arguments).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (status, out, err) = (output.status.code(), text(output.stdout), text(output.stderr));
        assert_eq!(status, Some(code), "{arguments:?}\n{out}\n{err}");
        (out, err)
    }
}

/// Trips between the cells of a small town with three quarters, columns named as in the TLC's files.
fn trips(place: &Place) {
    let mut out = String::from("pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude\n");
    let mut state = 12_345u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let coordinate = |x: u64, y: u64| (-73.9995 + 0.001 * x as f64, 40.7505 + 0.001 * y as f64);
    for _ in 0..20_000 {
        let (x, y) = (next(12), next(9));
        // Four in five stay in their quarter.
        let quarter = if next(5) > 0 { x / 4 } else { next(3) };
        let (a, b) = (coordinate(x, y), coordinate(4 * quarter + next(4), next(9)));
        writeln!(out, "{},{},{},{}", a.0, a.1, b.0, b.1).unwrap();
    }
    place.write("trips.csv", out);
}

fn number(text: &str, key: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    json[key].as_f64().unwrap()
}

#[test]
fn a_small_version_of_everything() {
    let place = Place::new();
    trips(&place);
    let all = ["all", "--quick", "--trajectories", "1", "--data", "trips.csv", "--out", "lab", "--json"];
    // Cut off at once: nothing computed, and the document says what is missing.
    let (out, err) = place.expect(0, &[&all[..], &["--time-limit", "0"]].concat());
    assert!(number(&out, "computed") == 0.0 && err.contains("cells, 0 of them finished; about"), "{err}");
    assert!(String::from_utf8(place.read("lab/reproduction.md")).unwrap().contains("**Not computed in this run"));
    // Not over the cells of another run without a word.
    let (_, err) = place.expect(2, &all);
    assert!(err.contains("--resume"), "{err}");
    let (_, err) = place.expect(2, &[&all[..], &["--resume", "--seed", "7"]].concat());
    assert!(err.contains("another run"), "{err}");

    let (out, err) = place.expect(0, &[&all[..], &["--resume"]].concat());
    let cells = number(&out, "computed");
    assert!(cells > 30.0 && number(&out, "found") == 0.0, "{out}\n{err}");
    let document = String::from_utf8(place.read("lab/reproduction.md")).unwrap();
    for part in ["## 6.1", "(`table-d`)", "(`table-r`)", "(`table-n`)", "## 6.3", "### 1. Step sizes", "### 8. ξ counts", "B₁", "B₂", "B₃"]
    {
        assert!(document.contains(part), "{part} is missing\n{document}");
    }
    for figure in ["path-d", "best-d", "path-r", "best-r", "path-n", "best-n", "taxi-0-default"] {
        let svg = String::from_utf8(place.read(&format!("lab/reproduction/{figure}.svg"))).unwrap();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && document.contains(&format!("reproduction/{figure}.svg")), "{figure}");
    }
    assert!(!document.contains("NaN") && !document.contains("Not computed"), "{document}");

    // relRE* falls about as 1/n: the slope of the table, not a constant of the code.
    let slope = document.lines().find(|l| l.starts_with("| r/d = 0.02 | smallest along λ")).unwrap();
    let slope: f64 = slope.split('|').nth(5).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!((-1.2..-0.7).contains(&slope), "{slope}");

    // One cell lost: only that one is computed again, and the document is the same but for times.
    std::fs::remove_file(place.path("lab/cells/fixed-d150-r3-n10-t1.json")).unwrap();
    let (out, _) = place.expect(0, &[&all[..], &["--resume"]].concat());
    assert_eq!((number(&out, "computed"), number(&out, "found")), (1.0, cells - 1.0));
    let again = String::from_utf8(place.read("lab/reproduction.md")).unwrap();
    let untimed = |text: &str| text.lines().filter(|l| !l.contains("pieces of work")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(untimed(&document), untimed(&again));

    // A cell cut in two is named, not used.
    place.write("lab/cells/fixed-d150-r3-n10-t1.json", "{\"schema\":\"metastate-lab-1\",");
    let (_, err) = place.expect(2, &[&all[..], &["--resume"]].concat());
    assert!(err.contains("fixed-d150-r3-n10-t1.json"), "{err}");
}

#[test]
fn taxi_without_trips_is_refused_before_anything_is_written() {
    let place = Place::new();
    for what in ["taxi", "all"] {
        let (_, err) = place.expect(2, &[what, "--quick", "--out", "lab"]);
        assert!(err.contains("--data"), "{err}");
    }
    let (_, err) = place.expect(2, &["taxi", "--quick", "--out", "lab", "--data", "nowhere"]);
    assert!(err.contains("nowhere"), "{err}");
    let (_, err) = place.expect(2, &["taxi", "--quick", "--out", "lab", "--data", "."]);
    assert!(err.contains("nyc_taxi_trips_"), "{err}");
    assert_eq!(std::fs::read_dir(place.0.path()).unwrap().count(), 0);
}
