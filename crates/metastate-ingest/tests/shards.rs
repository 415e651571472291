//! Parts of a count: together they are the whole, and what is not a whole is refused.

use std::path::Path;

use metastate_ingest::{As, CountedStates, Data, InputSettings, Silent, read, write_counts};

fn some(s: &str) -> Option<String> {
    Some(s.to_owned())
}

fn counted(inputs: &[String], settings: &InputSettings) -> CountedStates {
    match read(inputs, settings, &mut Silent).unwrap_or_else(|e| panic!("{} {e}", e.code())).data {
        Data::Counts(counted) => counted,
        Data::Matrix(_) => panic!("counts were expected"),
    }
}

/// Counts one part, or the whole, into a file.
fn file_of(place: &Path, input: &str, settings: &InputSettings, part: Option<&str>) -> String {
    let settings = InputSettings { part: part.map(|p| p.parse().unwrap()), ..settings.clone() };
    let read = read(&[input.to_owned()], &settings, &mut Silent).unwrap_or_else(|e| panic!("{e}"));
    let Data::Counts(counted) = read.data else { panic!("counts were expected") };
    let out = place.join(format!("{}.parquet", part.unwrap_or("whole").replace('/', "-of-")));
    write_counts(&out, &counted, &read.inputs, &settings).unwrap();
    out.display().to_string()
}

fn parts(place: &Path, input: &str, settings: &InputSettings, of: usize) -> Vec<String> {
    (1..=of).map(|k| file_of(place, input, settings, Some(&format!("{k}/{of}")))).collect()
}

/// A small generator: the tests need rows, not chance.
fn rows(n: usize, mut each: impl FnMut(u64, usize) -> String) -> String {
    let mut seed = 5u64;
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    (0..n).map(|k| each(next(), k)).collect()
}

fn inputs(place: &Path) -> Vec<(&'static str, String, InputSettings)> {
    let write = |name: &str, text: String| {
        let path = place.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let trips = rows(4000, |r, k| {
        let (from, to) = (r % 41, (r / 41) % 37);
        let from = if k % 97 == 0 { String::new() } else { from.to_string() };
        format!("{from},stop {to},{},{}\n", k % 4, if k % 3 == 0 { "a" } else { "b" })
    });
    let points = rows(3000, |r, k| {
        let at = |r: u64| (-70.0 - (r % 100) as f64 * 0.0017, 40.0 + (r / 100 % 100) as f64 * 0.0013);
        let ((a, b), (c, d)) = (at(r), at(r / 7));
        format!("{a},{},{c},{d}\n", if k % 50 == 0 { "".to_owned() } else { b.to_string() })
    });
    let walks = rows(300, |r, _| {
        (0..r % 17).map(|k| if (r + k) % 23 == 0 { "-1 ".to_owned() } else { format!("s{} ", (r * (k + 3)) % 29) }).collect::<String>()
            + "\n"
    });
    let matrix = rows(500, |r, k| format!("{} {} {}\n", k / 25 + 1, r % 20 + 1, r % 5 + 1));
    let labelled = InputSettings { from: some("from"), to: some("to"), ..InputSettings::default() };
    vec![
        ("trips", write("trips.csv", format!("from,to,n,kind\n{trips}")), InputSettings { where_: some("kind = 'b'"), ..labelled.clone() }),
        ("weights", write("weighted.csv", format!("from,to,n,kind\n{trips}")), InputSettings { weight: some("n"), ..labelled }),
        (
            "points",
            write("points.csv", format!("a,b,c,d\n{points}")),
            InputSettings { from_lon: some("a"), from_lat: some("b"), to_lon: some("c"), to_lat: some("d"), ..InputSettings::default() },
        ),
        ("walks", write("walks.txt", walks), InputSettings { lag: 2, ..InputSettings::default() }),
        (
            "matrix",
            write("counts.mtx", format!("%%MatrixMarket matrix coordinate integer general\n20 20 500\n{matrix}")),
            InputSettings { as_: Some(As::Counts), ..InputSettings::default() },
        ),
    ]
}

#[test]
fn the_parts_together_are_the_whole() {
    for (name, input, settings) in inputs(tempfile::tempdir().unwrap().keep().as_path()) {
        let place = tempfile::tempdir().unwrap();
        let whole = file_of(place.path(), &input, &settings, None);
        // What is left out by share is left out when the parts come together.
        for share in [0.0, 0.01] {
            let reading = InputSettings { min_share: share, ..InputSettings::default() };
            let expected = counted(std::slice::from_ref(&whole), &reading);
            for of in [1, 2, 5, 64] {
                let files = parts(place.path(), &input, &settings, of);
                let mut found = counted(&files, &reading);
                assert_eq!(found.counts, expected.counts, "{name}, {of} parts");
                found.counts = expected.counts.clone();
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{name}, {of} parts");
                // In any order, and as parts of another number.
                let mut mixed = files.clone();
                mixed.reverse();
                assert_eq!(counted(&mixed, &reading).counts.csr(), expected.counts.csr());
                if of == 5 && share == 0.0 {
                    let settings = InputSettings::default();
                    let again: Vec<String> = (1..=3)
                        .map(|k| {
                            let settings = InputSettings { part: Some(format!("{k}/3").parse().unwrap()), ..settings.clone() };
                            let read = read(&files, &settings, &mut Silent).unwrap();
                            let Data::Counts(counted) = read.data else { panic!() };
                            let out = place.path().join(format!("again-{k}.parquet"));
                            write_counts(&out, &counted, &read.inputs, &settings).unwrap();
                            out.display().to_string()
                        })
                        .collect();
                    assert_eq!(counted(&again, &settings).counts, expected.counts);
                }
            }
        }
    }
}

#[test]
fn a_part_holds_the_rows_of_some_states_only() {
    let place = tempfile::tempdir().unwrap();
    let (_, input, settings) = inputs(place.path()).remove(0);
    let mut origins = std::collections::BTreeSet::new();
    for k in 1..=4 {
        let part =
            counted(std::slice::from_ref(&input), &InputSettings { part: Some(format!("{k}/4").parse().unwrap()), ..settings.clone() });
        for (i, _, _) in part.counts.csr().triplets() {
            origins.insert((part.counts.index().label(i as usize).to_string(), k));
        }
    }
    let labels: std::collections::BTreeSet<&String> = origins.iter().map(|(label, _)| label).collect();
    assert_eq!((labels.len(), origins.len()), (41, 41));
}

#[test]
fn what_is_no_whole_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let all = inputs(place.path());
    let (_, input, settings) = &all[0];
    let files = parts(place.path(), input, settings, 3);
    let elsewhere = tempfile::tempdir().unwrap();
    let other_options = InputSettings { where_: some("kind = 'a'"), ..settings.clone() };
    let foreign = parts(elsewhere.path(), input, &other_options, 3);
    let third = tempfile::tempdir().unwrap();
    let longer = third.path().join("trips.csv");
    std::fs::write(&longer, std::fs::read_to_string(input).unwrap() + "1,stop 1,1,b\n").unwrap();
    let other_data = parts(third.path(), &longer.display().to_string(), settings, 3);
    let fourths = parts(place.path(), input, settings, 4);
    let whole = file_of(place.path(), input, settings, None);

    let refused = |names: &[&String], sentence: &str| {
        let names: Vec<String> = names.iter().map(|n| (*n).clone()).collect();
        let e = read(&names, &InputSettings::default(), &mut Silent).unwrap_err();
        assert_eq!(e.code(), "E-INGEST-SHARD", "{e}");
        assert!(e.to_string().contains(sentence), "{e}");
    };
    refused(&[&files[0], &files[2]], "shard 2 of 3 is missing");
    refused(&[&files[1]], "shards 1, 3 of 3 are missing");
    let copy = place.path().join("copy.parquet").display().to_string();
    std::fs::copy(&files[1], &copy).unwrap();
    refused(&[&files[0], &files[1], &copy, &files[2]], "shard 2 of 3 is given twice");
    refused(&[&files[0], &foreign[1], &files[2]], "with other options than");
    refused(&[&files[0], &other_data[1], &files[2]], "from other data than");
    refused(&[&files[0], &files[1], &fourths[2]], "this is one of 4 shards");
    refused(&[&files[0], &files[1], &files[2], &whole], "this counts file is no shard");

    let shares = InputSettings { part: Some("1/2".parse().unwrap()), min_share: 0.1, ..settings.clone() };
    let e = read(std::slice::from_ref(input), &shares, &mut Silent).unwrap_err();
    assert!(e.to_string().contains("--min-share looks at all transitions of a state"), "{e}");
}
