//! Result folders of strangers: every command that reads one ends in an answer or in a sentence, soon, and writes nowhere but where it was told to.

mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Place, planted_counts, text, triplets_csv};
use metastate_report::npz::{Array, npz_bytes, read_npz};
use metastate_report::{csv_field, hash, parse_csv};
use serde_json::{Value, json};

/// Longer than any command takes here, by far.
const PATIENCE: Duration = Duration::from_secs(20);

/// A copy of an honest result.
struct Folder(PathBuf);

impl Folder {
    fn json(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.0.join(file);
        let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    }

    fn npz(&self, file: &str, change: impl FnOnce(&mut Vec<Array>)) {
        let path = self.0.join(file);
        let mut arrays = read_npz(&path).unwrap();
        change(&mut arrays);
        std::fs::write(path, npz_bytes(&arrays).unwrap()).unwrap();
    }

    /// An array of an archive: other numbers of rows and columns, all numbers alike.
    fn reshape(&self, file: &str, name: &str, shape: &[usize], value: f64) {
        self.npz(file, |arrays| {
            let array = arrays.iter_mut().find(|a| a.name == name).unwrap();
            array.data = vec![value; shape.iter().product()];
            array.shape = shape.to_vec();
        });
    }

    fn csv(&self, file: &str, change: impl FnOnce(&mut Vec<Vec<String>>)) {
        let path = self.0.join(file);
        let mut rows = parse_csv(&text(&std::fs::read(&path).unwrap())).unwrap();
        change(&mut rows);
        let line = |row: &Vec<String>| row.iter().map(|f| csv_field(f)).collect::<Vec<_>>().join(",") + "\n";
        std::fs::write(path, rows.iter().map(line).collect::<String>()).unwrap();
    }

    fn column(&self, file: &str, row: usize, name: &str, to: &str) {
        self.csv(file, |rows| {
            let at = rows[0].iter().position(|h| h == name).unwrap();
            rows[row][at] = to.to_owned();
        });
    }

    /// The hashes of all listed files as they are now, so that no hash gives the forger away.
    fn rehash(&self) {
        self.json("summary.json", |summary| {
            for (name, sha256) in summary["files"].as_object_mut().into_iter().flatten() {
                let path = self.0.join(name);
                if path.symlink_metadata().is_ok_and(|m| m.is_file()) {
                    *sha256 = hash::of_bytes(&std::fs::read(path).unwrap()).into();
                }
            }
        });
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// An honest result at `out`, with a refit and a choice, of twelve states with coordinates.
fn honest() -> Place {
    let place = Place::new();
    let mut trips = String::from("a,b,c,d\n");
    let mut at = 0usize;
    for (i, j, n) in planted_counts(12, 3) {
        for _ in 0..n {
            at += 1;
            // Twelve cells in a row; a little noise that stays inside of them.
            let lon = |k: usize| 0.1 * k as f64 + 0.02 + 0.001 * (at % 5) as f64;
            trips += &format!("{:.4},0.05,{:.4},0.05\n", lon(i), lon(j));
        }
    }
    place.write("trips.csv", trips);
    let trips = ["trips.csv", "--from-lon", "a", "--from-lat", "b", "--to-lon", "c", "--to-lat", "d", "--cell", "0.1"];
    place.expect(0, &[&["fit", "--out", "out"], &trips[..]].concat());
    place.write("new.csv", triplets_csv(&[(0, 1, 3), (1, 0, 2)]));
    place
}

/// Runs, and ends what does not end by itself. Hands back the exit code (none: a signal, or the patience was at its end), and what was said.
fn patient(place: &Place, arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = place.command(arguments).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |from: &mut dyn std::io::Read| {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let reader = std::thread::spawn(move || read(&mut err));
    let other = std::thread::spawn(move || read(&mut out));
    let begun = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if begun.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(3)),
        }
    };
    (code, reader.join().unwrap() + &other.join().unwrap())
}

/// What is forged, the words by which it is refused (by one of the commands at least), and how it is done.
type Forgery = (&'static str, &'static str, fn(&Folder, &Place));

fn forged_sizes() -> Vec<Forgery> {
    vec![
        ("xi is twice as long", "xi", |f, _| f.reshape("factors.npz", "xi", &[24], 1.0 / 24.0)),
        ("xi is empty", "xi", |f, _| f.reshape("factors.npz", "xi", &[0], 0.0)),
        ("xi is not a number", "xi", |f, _| f.reshape("factors.npz", "xi", &[12], f64::NAN)),
        ("xi is a matrix", "xi", |f, _| f.reshape("factors.npz", "xi", &[12, 1], 1.0 / 12.0)),
        ("a refit U without columns", "refit.npz", |f, _| f.reshape("refit.npz", "U", &[12, 0], 0.0)),
        ("a refit without columns", "refit.npz", |f, _| {
            f.reshape("refit.npz", "U", &[12, 0], 0.0);
            f.reshape("refit.npz", "V", &[12, 0], 0.0);
        }),
        ("a refit V with two columns", "refit.npz", |f, _| f.reshape("refit.npz", "V", &[12, 2], 1.0 / 12.0)),
        ("a taller U", "factors.npz", |f, _| f.reshape("factors.npz", "U", &[13, 3], 1.0 / 3.0)),
        ("a taller V", "factors.npz", |f, _| f.reshape("factors.npz", "V", &[13, 3], 1.0 / 13.0)),
        ("a taller refit", "refit.npz", |f, _| {
            f.reshape("refit.npz", "U", &[13, 3], 1.0 / 3.0);
            f.reshape("refit.npz", "V", &[13, 3], 1.0 / 13.0);
        }),
        ("everything taller", "13 states", |f, _| {
            for file in ["factors.npz", "refit.npz"] {
                f.reshape(file, "U", &[13, 3], 1.0 / 3.0);
                f.reshape(file, "V", &[13, 3], 1.0 / 13.0);
            }
            f.reshape("factors.npz", "xi", &[13], 1.0 / 13.0);
        }),
        ("a U of a hundred thousand columns", "columns", |f, _| {
            for file in ["factors.npz", "refit.npz"] {
                f.reshape(file, "U", &[12, 100_000], 1e-5);
                f.reshape(file, "V", &[12, 100_000], 1.0 / 12.0);
            }
        }),
        ("U is not a number", "U", |f, _| f.reshape("refit.npz", "U", &[12, 3], f64::NAN)),
        ("a shorter left factor", "certificate.npz", |f, _| f.reshape("certificate.npz", "a", &[5, 2], 0.1)),
        ("another number of multipliers", "certificate.npz", |f, _| f.reshape("certificate.npz", "mu", &[3], 0.1)),
        ("more excess than vectors", "certificate.npz", |f, _| f.reshape("certificate.npz", "excess", &[40], 0.1)),
        ("a shorter states.csv", "states.csv", |f, _| f.csv("states.csv", |rows| rows.truncate(7))),
        ("an empty states.csv", "states.csv", |f, _| std::fs::write(f.0.join("states.csv"), "").unwrap()),
        ("a states.csv with a short row", "states.csv", |f, _| f.csv("states.csv", |rows| rows[3].truncate(2))),
        ("a label twice", "states.csv", |f, _| f.csv("states.csv", |rows| rows[3][0] = rows[4][0].clone())),
        ("a zone of four billion", "zone", |f, _| f.column("states.csv", 2, "zone", "4000000000")),
        ("a zone that is no number", "zone", |f, _| f.column("states.csv", 2, "zone", "NaN")),
        ("no place at all", "states.csv", |f, _| f.column("states.csv", 2, "lon", "1e300")),
    ]
}

fn forged_options() -> Vec<Forgery> {
    vec![
        ("a million million zones", "clusters", |f, _| {
            f.json("summary.json", |s| s["settings"]["fit"]["clusters"] = json!("1000000000000"));
        }),
        ("a million million folds", "folds", |f, _| {
            f.json("summary.json", |s| s["settings"]["fit"]["folds"] = json!(1_000_000_000_000u64))
        }),
        ("no folds", "folds", |f, _| f.json("summary.json", |s| s["settings"]["fit"]["folds"] = json!(0))),
        ("a rank without end", "rank", |f, _| {
            f.json("summary.json", |s| {
                s["choice"]["rank"] = json!(u64::MAX);
                s["choice"]["best_rank"] = json!(u64::MAX);
                s["refit"]["rank"] = json!(u64::MAX);
            });
        }),
        ("a lag without end", "lag", |f, _| f.json("summary.json", |s| s["settings"]["input"]["lag"] = json!(u64::MAX))),
        ("cells without side", "cell", |f, _| {
            f.json("summary.json", |s| s["settings"]["input"]["cell"] = json!(0.0));
            f.json("page.json", |p| p["cell"] = json!(0.0));
        }),
        ("cells of no size", "cell", |f, _| f.json("page.json", |p| p["cell"] = json!(1e-300))),
        ("heat without bins", "page.json", |f, _| f.json("page.json", |p| p["heat"]["bins"] = json!(0))),
        ("heat with more bins than numbers", "page.json", |f, _| f.json("page.json", |p| p["heat"]["bins"] = json!(5_000_000_000u64))),
        ("heat with fewer numbers", "page.json", |f, _| f.json("page.json", |p| p["heat"]["counted"] = json!([1.0]))),
        ("a point chosen that is none", "page.json", |f, _| f.json("page.json", |p| p["path"]["chosen"] = json!(u64::MAX))),
        ("sixty thousand zones of a rival", "page.json", |f, _| f.json("page.json", |p| p["rival"]["zones"] = json!(vec![65_535; 12]))),
        ("a summary nested a million deep", "summary.json", |f, _| {
            std::fs::write(f.0.join("summary.json"), "[".repeat(1_000_000)).unwrap();
        }),
    ]
}

/// A zip whose directory names the same bytes many times over: each name unpacks to as much as there is.
fn overlapping(entries: usize) -> Vec<u8> {
    let npy = metastate_report::npz::npy_bytes(&[12, 3000], &vec![0.25; 36_000]);
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&npy).unwrap();
    let packed = packed.finish().unwrap();
    let crc = {
        let mut crc = flate2::Crc::new();
        crc.update(&npy);
        crc.sum()
    };
    let fields = |name: &str| {
        let mut out = Vec::new();
        out.extend([20, 0, 0, 0, 8, 0, 0, 0, 0, 0]); // version, flags, deflate, time, date
        out.extend(crc.to_le_bytes());
        out.extend((packed.len() as u32).to_le_bytes());
        out.extend((npy.len() as u32).to_le_bytes());
        out.extend((name.len() as u16).to_le_bytes());
        out.extend([0, 0]);
        out
    };
    let name = |k: usize| match k {
        0 => "U.npy".to_owned(),
        1 => "V.npy".to_owned(),
        k => format!("{k:05}"),
    };
    let mut out = [&b"PK\x03\x04"[..], &fields(&name(0)), name(0).as_bytes(), &packed].concat();
    let directory = out.len();
    for k in 0..entries {
        out.extend(b"PK\x01\x02\x14\x00");
        out.extend(fields(&name(k)));
        out.extend([0; 2 + 2 + 2 + 4]); // comment, disk, attributes
        out.extend(0u32.to_le_bytes()); // all at the same place
        out.extend(name(k).as_bytes());
    }
    let size = out.len() - directory;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((entries as u16).to_le_bytes());
    out.extend((entries as u16).to_le_bytes());
    out.extend((size as u32).to_le_bytes());
    out.extend((directory as u32).to_le_bytes());
    out.extend([0, 0]);
    out
}

fn forged_files() -> Vec<Forgery> {
    vec![
        ("overlapping entries", "overlap", |f, _| std::fs::write(f.0.join("factors.npz"), overlapping(900)).unwrap()),
        ("a second U under U.npy.npy", "U.npy", |f, _| {
            f.npz("factors.npz", |arrays| {
                let mut second = arrays[0].clone();
                second.name = "U.npy".to_owned();
                arrays[0].data.iter_mut().for_each(|x| *x = 1.0 / 3.0);
                arrays.insert(0, second);
            });
        }),
        ("the input is /dev/zero", "regular file", |f, _| {
            f.json("summary.json", |s| {
                s["inputs"][0]["name"] = json!("/dev/zero");
                s["settings"]["input"]["inputs"] = json!(["/dev/zero"]);
            });
        }),
        ("the input is a link to /dev/zero", "regular file", |f, place| {
            let _ = std::os::unix::fs::symlink("/dev/zero", place.path("endless"));
            f.json("summary.json", |s| s["inputs"][0]["name"] = json!("endless"));
        }),
        ("the truth is /dev/zero", "regular file", |f, _| {
            f.json("summary.json", |s| {
                s["settings"]["fit"]["truth"] = json!("/dev/zero");
                s["inputs"].as_array_mut().unwrap().push(json!({ "name": "/dev/zero", "role": "truth", "bytes": 1, "sha256": "" }));
            });
        }),
        ("a table is a FIFO", "regular file", |f, _| {
            std::fs::remove_file(f.0.join("latent.csv")).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(f.0.join("latent.csv")).status().unwrap().success());
        }),
        ("the summary is a FIFO", "regular file", |f, _| {
            std::fs::remove_file(f.0.join("summary.json")).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(f.0.join("summary.json")).status().unwrap().success());
        }),
        ("a table is a link to /dev/zero", "link", |f, _| {
            std::fs::remove_file(f.0.join("states.csv")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", f.0.join("states.csv")).unwrap();
        }),
        ("page.json is a link to a file outside", "link", |f, place| {
            place.write("secret.json", std::fs::read(f.0.join("page.json")).unwrap());
            std::fs::remove_file(f.0.join("page.json")).unwrap();
            std::os::unix::fs::symlink(place.path("secret.json"), f.0.join("page.json")).unwrap();
        }),
        ("zones.geojson is a FIFO", "regular file", |f, _| {
            std::fs::remove_file(f.0.join("zones.geojson")).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(f.0.join("zones.geojson")).status().unwrap().success());
        }),
        ("a listed file that leads out of the folder", "summary.json", |f, _| {
            f.json("summary.json", |s| s["files"]["/dev/zero"] = json!(""));
        }),
    ]
}

/// Every command that reads a result.
fn commands(folder: &str, k: usize) -> Vec<Vec<String>> {
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    vec![
        words(&["verify", folder]),
        words(&["verify", folder, "--deep", "--quiet"]),
        words(&["report", folder]),
        words(&["forecast", folder, "--steps", "1,5"]),
        words(&["assign", folder, "new.csv", "--as", "counts", "--out", &format!("assigned-{k}.csv")]),
        words(&[
            "fit",
            "trips.csv",
            "--from-lon",
            "a",
            "--from-lat",
            "b",
            "--to-lon",
            "c",
            "--to-lat",
            "d",
            "--cell",
            "0.1",
            "--lambda-ratio",
            "0.5",
            "--init",
            folder,
            "--out",
            &format!("again-{k}"),
        ]),
    ]
}

fn all(forgeries: &[Forgery]) {
    let place = honest();
    let mut wrong = Vec::new();
    for (k, (name, words, change)) in forgeries.iter().enumerate() {
        let folder = Folder(place.path(&format!("forged-{k}")));
        copy(&place.path("out"), &folder.0);
        change(&folder, &place);
        let is_file = folder.0.join("summary.json").symlink_metadata().is_ok_and(|m| m.is_file());
        if is_file && serde_json::from_slice::<Value>(&std::fs::read(folder.0.join("summary.json")).unwrap()).is_ok() {
            folder.rehash();
        }
        let mut said = String::new();
        for arguments in commands(&format!("forged-{k}"), k) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let (code, told) = patient(&place, &arguments);
            if !matches!(code, Some(0..=2)) || told.contains("panicked") {
                wrong.push(format!("{name}: {} ends with {code:?}: {}", arguments[0], told.lines().next().unwrap_or_default()));
            }
            said += &told;
        }
        if !said.contains(words) {
            wrong.push(format!("{name}: nobody says `{words}`:\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} forgeries:\n{}", wrong.len(), forgeries.len(), wrong.join("\n"));
}

#[test]
fn forged_sizes_are_refused_in_a_sentence() {
    all(&forged_sizes());
}

#[test]
fn forged_options_are_refused_in_a_sentence() {
    all(&forged_options());
}

#[test]
fn forged_archives_and_files_that_are_none_are_refused_in_a_sentence() {
    all(&forged_files());
}

#[test]
fn a_report_is_written_into_its_folder_and_nowhere_else() {
    let place = honest();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::remove_dir_all(place.path("out/plots")).unwrap();
    std::os::unix::fs::symlink(place.path("elsewhere"), place.path("out/plots")).unwrap();
    let (_, err) = place.expect(1, &["report", "out"]);
    assert!(err.contains("plots") && err.contains("is a link"), "{err}");
    assert_eq!(std::fs::read_dir(place.path("elsewhere")).unwrap().count(), 0);
    // A link in the place of a picture is replaced, and not followed.
    std::fs::remove_file(place.path("out/plots")).unwrap();
    place.expect(0, &["report", "out"]);
    place.write("mine.txt", "mine");
    std::fs::remove_file(place.path("out/report.html")).unwrap();
    std::os::unix::fs::symlink(place.path("mine.txt"), place.path("out/report.html")).unwrap();
    place.expect(0, &["report", "out"]);
    assert_eq!(place.read("mine.txt"), b"mine");
    place.expect(0, &["verify", "out"]);
}

#[test]
fn the_same_damage_has_the_same_exit_code() {
    let place = honest();
    let codes = |folder: &str| -> Vec<Option<i32>> {
        commands(folder, 0).iter().take(5).map(|a| place.run(&a.iter().map(String::as_str).collect::<Vec<_>>()).status.code()).collect()
    };
    // No folder, or a folder that is no result: another argument is needed.
    assert_eq!(codes("absent"), [Some(2); 5]);
    std::fs::create_dir(place.path("empty")).unwrap();
    assert_eq!(codes("empty"), [Some(2); 5]);
    // A result that is damaged.
    let folder = Folder(place.path("short"));
    copy(&place.path("out"), &folder.0);
    let bytes = place.read("out/factors.npz");
    std::fs::write(folder.0.join("factors.npz"), &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(codes("short"), [Some(1); 5]);
}

#[test]
fn pictures_of_a_stranger_show_nothing_of_this_machine_and_have_a_size() {
    let place = honest();
    place.write("counts.csv", triplets_csv(&planted_counts(8, 2)));
    place.expect(0, &["compare", "counts.csv", "--rank", "2", "--methods", "rank-one", "--out", "compared"]);
    place.expect(0, &["report", "compared", "--png"]);
    place.write("compared/huge.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000000\" height=\"1000000\"/>");
    let (code, told) = patient(&place, &["report", "compared", "--png"]);
    assert!(code == Some(1) && told.contains("larger than any picture"), "{code:?} {told}");
    std::fs::remove_file(place.path("compared/huge.svg")).unwrap();
    std::fs::remove_file(place.path("compared/compare.svg")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("compared/compare.svg")).unwrap();
    let (code, told) = patient(&place, &["report", "compared"]);
    assert!(code == Some(1) && told.contains("is a link"), "{code:?} {told}");
}
