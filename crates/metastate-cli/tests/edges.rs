//! Problems at the edge: each gets a whole result that every command reads, or a sentence.

mod common;

use common::{Place, text};
use metastate_report::npz::npy_bytes;

/// Fits, and hands the result to every command that reads one.
fn whole(place: &Place, input: &str, more: &[&str]) {
    let _ = std::fs::remove_dir_all(place.path("out"));
    let out = place.run(&[&["fit", input, "--out", "out"], more].concat());
    assert_eq!(out.status.code(), Some(0), "{input} {more:?}: {}", text(&out.stderr));
    for arguments in [&["verify", "out"][..], &["report", "out"], &["forecast", "out", "--steps", "1,50"]] {
        place.expect(0, arguments);
    }
    let summary = text(&place.read("out/summary.json"));
    let value: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert!(["rel_le1", "rel_le2", "ge", "rel_dg"].iter().all(|key| value["errors"][key].is_number()), "{input} {more:?}: {summary}");
    for file in ["states.csv", "metastates.csv", "latent.csv", "path.csv"].iter().filter(|f| place.path("out").join(f).exists()) {
        let table = text(&place.read(&format!("out/{file}")));
        assert!(!table.contains("NaN") && !table.contains("inf,"), "{input} {more:?}, {file}:\n{table}");
    }
}

#[test]
fn degenerate_problems_get_whole_results() {
    let place = Place::new();
    let triplets = |entries: &dyn Fn(usize, usize) -> f64, d: usize| {
        let lines =
            (0..d * d).filter(|k| entries(k / d, k % d) > 0.0).map(|k| format!("{},{},{:e}\n", k / d, k % d, entries(k / d, k % d)));
        format!("from,to,count\n{}", lines.collect::<String>())
    };
    place.write("one-law.csv", triplets(&|_, j| 10.0 * (j + 1) as f64, 4));
    place.write("same-but-one.csv", triplets(&|i, j| 10.0 * (j + 1) as f64 + if i == 0 && j == 0 { 1e-9 } else { 0.0 }, 4));
    place.write("heavy.csv", "from,to,count\na,a,1e15\na,b,1\nb,a,1\nb,c,1\nc,a,2\n");
    place.write("cycle.csv", triplets(&|i, j| if j == (i + 1) % 5 { 7.0 } else { 0.0 }, 5));
    place.write("alone.csv", triplets(&|i, j| if i == j { 7.0 } else { 0.0 }, 4));
    place.write("twins.csv", triplets(&|i, j| 1.0 + 20.0 * f64::from(u8::from(i / 2 == j / 2)), 6));
    place.write("tiny.csv", triplets(&|i, j| 1e-300 * (1 + (i * j) % 3) as f64, 4));
    for input in ["one-law.csv", "same-but-one.csv", "heavy.csv", "cycle.csv", "alone.csv", "twins.csv", "tiny.csv"] {
        for more in [&["--lambda-ratio", "0.3"][..], &["--lambda-ratio", "10"], &["--lambda", "1e-300"]] {
            whole(&place, input, more);
        }
    }
    for input in ["one-law.csv", "heavy.csv", "twins.csv"] {
        whole(&place, input, &["--folds", "2", "--max-rank", "3"]);
    }
    whole(&place, "twins.csv", &["--lambda-ratio", "0.1", "--solver", "palm-bb", "--start-rank", "9"]);
}

#[test]
fn numbers_that_no_answer_can_hold_are_refused_in_a_sentence() {
    let place = Place::new();
    place.write("apart.csv", "from,to,count\na,b,1e-200\nb,a,1e100\nb,b,1e100\na,a,1e-200\n");
    let (_, err) = place.expect(2, &["fit", "apart.csv", "--lambda-ratio", "0.3", "--out", "out"]);
    assert!(err.contains("too small to be told from nothing") && err.contains("--min-share"), "{err}");
    place.write("denormal.csv", "from,to,count\na,b,1e-320\nb,a,2e-320\nb,b,3e-320\na,a,1e-320\n");
    let (_, err) =
        place.expect(2, &["fit", "denormal.csv", "--lambda-ratio", "0.3", "--refit", "likelihood", "--prior", "0.1", "--out", "out"]);
    assert!(err.contains("E-DATA-SCALE") && err.contains("add up to"), "{err}");
    assert!(!place.path("out").exists());
}

#[test]
fn given_matrices_that_never_mix_are_told_of() {
    let place = Place::new();
    let write = |name: &str, p: &[f64]| place.write(name, npy_bytes(&[3, 3], p));
    write("absorbing.npy", &[1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.2, 0.3, 0.5]);
    let (told, _) = place.expect(0, &["fit", "absorbing.npy", "--as", "matrix", "--lambda", "0.01", "--out", "absorbing"]);
    assert!(told.contains("single absorbing state") && told.contains("fates"), "{told}");
    place.expect(0, &["verify", "absorbing"]);
    write("apart.npy", &[0.5, 0.5, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 1.0]);
    let (_, err) = place.expect(0, &["fit", "apart.npy", "--as", "matrix", "--lambda", "0.01", "--out", "out"]);
    assert!(err.contains("2 closed classes"), "{err}");
    place.expect(0, &["verify", "out"]);
}

#[test]
fn a_truth_that_is_none_is_refused() {
    let place = Place::new();
    place.write("counts.csv", "from,to,count\n0,1,5\n1,0,4\n1,1,7\n0,0,6\n");
    for (p, what) in [
        ([0.5, 0.5, f64::NAN, 1.0], "NaN in row 2, column 1"),
        ([0.5, 0.6, 0.5, 0.5], "row 1 sums to 1.1"),
        ([-0.5, 1.5, 0.5, 0.5], "-0.5 in row 1"),
    ] {
        place.write("p.npy", npy_bytes(&[2, 2], &p));
        let (_, err) = place.expect(2, &["fit", "counts.csv", "--lambda-ratio", "0.3", "--truth", "p.npy", "--out", "out"]);
        assert!(err.contains("E-CLI-TRUTH") && err.contains(what), "{err}");
    }
    place.write("u.npy", npy_bytes(&[2, 1], &[1.0, 0.5]));
    place.write("v.npy", npy_bytes(&[2, 1], &[0.5, 0.5]));
    let (_, err) = place.expect(2, &["fit", "counts.csv", "--lambda-ratio", "0.3", "--truth", "u.npy,v.npy", "--out", "out"]);
    assert!(err.contains("row 2 sums to 0.5"), "{err}");
}

#[test]
fn memory_and_time_are_asked_for_before_they_are_taken() {
    let place = Place::new();
    // So many that the proof needs no dense matrix.
    place.expect(0, &["simulate", "planted", "--states", "3200", "--rank", "4", "--steps", "64000", "--out", "chain"]);
    let fit = ["fit", "chain/counts.csv", "--lambda-ratio", "0.5", "--out", "out"];
    let (_, err) = place.expect(2, &[&fit[..], &["--memory-limit", "60M"]].concat());
    assert!(err.contains("E-DATA-TOO-LARGE") && err.contains(" states and ") && err.contains("--max-rank"), "{err}");
    // Under an address limit of the shell, the same without being asked.
    let script = format!(
        "ulimit -v 400000; exec {} fit chain/counts.csv --lambda-ratio 0.5 --max-rank 300 --out out",
        env!("CARGO_BIN_EXE_metastate")
    );
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(2) && told.contains("there is memory for"), "{told}");
    // A choice that has no time ends in a sentence, and keeps what it has.
    let (_, err) = place.expect(1, &["fit", "chain/counts.csv", "--time-limit", "0.5", "--out", "out"]);
    assert!(err.contains("E-CLI-TIME-LIMIT") && err.contains("--resume"), "{err}");
    assert!(!place.path("out").exists());
}

#[test]
fn what_a_run_would_take_is_said_and_nothing_is_written() {
    let place = Place::new();
    place.expect(0, &["simulate", "groups", "--states", "3000", "--groups", "4", "--transitions", "20", "--out", "groups.npz"]);
    let before = place.names();
    assert_eq!(before, ["groups.npz", "groups.npz.groups.csv"]);
    let estimate = |more: &[&str]| -> serde_json::Value {
        let (out, _) = place.expect(0, &[&["fit", "groups.npz", "--as", "counts", "--rank", "4", "--estimate", "--json"], more].concat());
        serde_json::from_str(&out).unwrap()
    };
    let found = estimate(&[]);
    assert_eq!((found["work"]["states"].as_u64(), found["sizes_from"].as_str()), (Some(3000), Some("from the headers")));
    assert!(
        found["work"]["pairs"].as_u64().is_some_and(|n| n > 30_000) && found["fits"] == true && found["seconds"].as_f64().unwrap() > 0.0
    );
    let names: Vec<&str> = found["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert_eq!(names, ["reading", "lambda_max", "choosing", "solving", "refit", "zones"]);
    // A limit is a promise: what would not keep it is said here, and refused before anything is read.
    let small = estimate(&["--memory-limit", "50M"]);
    assert_eq!((&small["fits"], &small["limit_from"]), (&false.into(), &"--memory-limit".into()));
    let (_, err) = place.expect(2, &["fit", "groups.npz", "--as", "counts", "--rank", "4", "--memory-limit", "50M", "--out", "out"]);
    assert!(err.contains("E-DATA-TOO-LARGE"), "{err}");
    let (told, _) = place.expect(0, &["compare", "groups.npz", "--as", "counts", "--rank", "4", "--estimate"]);
    assert!(told.contains("3000 states") && told.contains("estimated, not measured"), "{told}");
    assert_eq!(place.names(), before);
    // Without it, a place is needed.
    let (_, err) = place.expect(2, &["fit", "groups.npz", "--as", "counts"]);
    assert!(err.contains("--out"), "{err}");
}

#[test]
fn groups_are_read_back_as_they_were_drawn() {
    let place = Place::new();
    place.expect(
        0,
        &["simulate", "groups", "--states", "1200", "--groups", "3", "--transitions", "60", "--seed", "5", "--out", "groups.npz"],
    );
    let drawn = metastate::simulate::planted_groups(1200, 3, 60, 5).unwrap();
    let settings = metastate_ingest::InputSettings { as_: Some(metastate_ingest::As::Counts), ..Default::default() };
    let read = metastate_ingest::read(&[place.path("groups.npz").display().to_string()], &settings, &mut metastate_ingest::Silent).unwrap();
    let metastate_ingest::Data::Counts(counted) = read.data else { panic!("these are counts") };
    assert_eq!(counted.counts.csr(), drawn.counts.csr());
    let groups = text(&place.read("groups.npz.groups.csv"));
    let told: Vec<u32> = groups.lines().skip(1).map(|l| l.split(',').nth(1).unwrap().parse::<u32>().unwrap() - 1).collect();
    assert_eq!(told, drawn.group);
}

/// The command under a limit of its addresses, in kilobytes.
fn under(place: &Place, kilobytes: u64, arguments: &str) -> (Option<i32>, String) {
    let script = format!("ulimit -v {kilobytes}; exec {} {arguments}", env!("CARGO_BIN_EXE_metastate"));
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
    (output.status.code(), text(&output.stderr))
}

#[test]
fn three_hundred_thousand_states_in_a_gigabyte_and_a_half_are_refused_in_a_sentence() {
    let place = Place::new();
    let states = 300_000u64;
    let line = |i: u64| format!("{i},{},2\n{i},{},1\n{i},{},1\n", (i + 20) % states, (i * 7 + 3) % states, (i * 31 + 11) % states);
    place.write("big.csv", (0..states).map(line).fold("from,to,count\n".to_owned(), |text, line| text + &line));
    let (code, told) = under(&place, 1_500_000, "fit big.csv --as counts --lambda-ratio 0.3 --out out");
    assert!(code == Some(2) && told.contains("E-DATA-TOO-LARGE") && told.contains("300000 states"), "{code:?} {told}");
    assert!(told.contains("--max-rank"), "{told}");
    assert!(!place.path("out").exists());
}

#[test]
fn a_dense_matrix_of_29_gigabytes_is_refused_by_its_header() {
    let place = Place::new();
    let states = 60_000u64;
    let words = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({states}, {states}), }}");
    let header = format!("{words:<117}\n");
    let start = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    place.write("p.npy", &start);
    // A file with a hole: as long as the matrix, and nowhere on the disk.
    let file = std::fs::OpenOptions::new().write(true).open(place.path("p.npy")).unwrap();
    file.set_len(start.len() as u64 + 8 * states * states).unwrap();
    // As on a machine of 24 GB.
    let (code, told) = under(&place, 24_000_000, "fit p.npy --as matrix --lambda-ratio 0.3 --out out");
    assert!(code == Some(2) && told.contains("28800000000 bytes") && told.contains("60000 x 60000"), "{code:?} {told}");
    assert!(!place.path("out").exists());
}

#[test]
fn draws_that_have_no_time_are_left_out_and_said_so() {
    let place = Place::new();
    place.write("counts.csv", common::triplets_csv(&common::planted_counts(12, 3)));
    let draws = ["--refit", "likelihood", "--prior", "1", "--bootstrap", "100000"];
    let fit = ["fit", "counts.csv", "--lambda-ratio", "0.3", "--time-limit", "3", "--out", "out"];
    place.expect(0, &[&fit[..], &draws].concat());
    let summary: serde_json::Value = serde_json::from_slice(&place.read("out/summary.json")).unwrap();
    assert!(summary["uncertainty"].is_null() && summary["seconds"]["total"].as_f64().unwrap() < 30.0, "{summary}");
    let hints = summary["hints"].to_string();
    assert!(hints.contains("there are no intervals"), "{hints}");
    place.expect(0, &["verify", "out"]);
    // Without a limit there must be some.
    let forged =
        text(&place.read("out/summary.json")).replace(" --time-limit 3", "").replace("\"time_limit\": 3.0", "\"time_limit\": null");
    place.write("out/summary.json", forged);
    place.expect(1, &["verify", "out"]);
}

#[test]
fn tables_for_spreadsheets_hold_no_formula() {
    let place = Place::new();
    place.write("counts.csv", "from,to,count\n=1+1,b,5\nb,=1+1,4\nb,b,7\n=1+1,=1+1,6\n-3,b,2\nb,-3,2\n");
    place.expect(0, &["fit", "counts.csv", "--lambda-ratio", "0.3", "--out", "out"]);
    let (out, _) = place.expect(0, &["report", "out", "--escape-formulas", "sheets"]);
    assert!(out.contains("sheets"), "{out}");
    let (own, copy) = (text(&place.read("out/states.csv")), text(&place.read("sheets/states.csv")));
    assert!(own.contains("\n=1+1,") && copy.contains("\n'=1+1,") && copy.contains("\n-3,"), "{own}\n{copy}");
    assert_eq!(own, copy.replace("\n'", "\n"));
    place.expect(0, &["verify", "out"]);
    // Nothing is replaced.
    place.expect(2, &["report", "out", "--escape-formulas", "sheets"]);
}
