//! Where results go: what is replaced, what never is, and two runs that want the same place.

mod common;

use common::{Place, planted_counts, text, triplets_csv};

fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/counts.csv", triplets_csv(&planted_counts(12, 3)));
    place.write("counts.csv", triplets_csv(&planted_counts(12, 3)));
    place
}

const RATIO: [&str; 2] = ["--lambda-ratio", "0.3"];

#[test]
fn an_input_is_never_inside_what_is_replaced() {
    let place = place();
    place.expect(0, &[&["fit", "counts.csv", "--out", "out"], &RATIO[..]].concat());
    // A result folder with somebody's data in it: --force would allow to replace it.
    for (from, to) in [("counts.csv", "mine.csv"), ("counts.csv", "places.csv"), ("counts.csv", "law.csv")] {
        std::fs::copy(place.path(from), place.path("out").join(to)).unwrap();
    }
    place.write("out/law.csv", "label,weight\n0,1\n");
    place.write("out/places.csv", "label,lon,lat,kind\n0,1,1,a\n1,2,2,b\n");
    place.write("out/labels.txt", (0..12).map(|k| format!("{k}\n")).collect::<String>());
    let compare = ["compare", "counts.csv", "--rank", "2", "--methods", "rank-one", "--out", "out", "--force"];
    for arguments in [
        &["compare", "out/mine.csv", "--rank", "2", "--out", "out", "--force"][..],
        &["compare", "out/*.csv", "--rank", "2", "--out", "out", "--force"],
        &[&compare[..], &["--places", "out/places.csv"]].concat(),
        &[&compare[..], &["--reference", "kind", "--reference-from", "out/places.csv"]].concat(),
        &["fit", "out/mine.csv", "--lambda", "1", "--out", "out", "--force"],
        &["fit", "./out/../out/mine.csv", "--lambda", "1", "--out", "out", "--force"],
        &["fit", "counts.csv", "--lambda", "1", "--init", "out", "--out", "out", "--force"],
        &["fit", "counts.csv", "--lambda", "1", "--truth", "out/U.npy,out/mine.csv", "--out", "out", "--force"],
        &["path", "out/mine.csv", "--out", "out", "--force"],
        &["forecast", "out", "--from-law", "out/law.csv", "--out", "out", "--force"],
        &["count", "out/mine.csv", "--as", "counts", "--out", "out/mine.csv", "--force"],
        &["assign", "out", "counts.csv", "--as", "counts", "--out", "out/factors.npz", "--force"],
    ] {
        let before = place.names();
        let (_, err) = place.expect(2, arguments);
        let refused = err.contains("lies in the folder that would be replaced")
            || err.contains("would be overwritten")
            || err.contains("a counts file is Parquet");
        assert!(refused, "{arguments:?}\n{err}");
        assert!(place.path("out/mine.csv").exists() && place.path("out/law.csv").exists(), "{arguments:?}");
        assert_eq!(place.names(), before, "{arguments:?}");
    }
}

#[test]
fn only_what_metastate_wrote_is_replaced() {
    let place = place();
    std::fs::create_dir(place.path("docs")).unwrap();
    place.write("docs/thesis.txt", "three years");
    place.write("file", "mine");
    for command in [
        &["fit", "counts.csv", "--lambda-ratio", "0.3"][..],
        &["compare", "counts.csv", "--rank", "2", "--methods", "rank-one"],
        &["simulate", "planted", "--states", "10", "--rank", "2"],
    ] {
        let (_, err) = place.expect(2, &[command, &["--out", "docs", "--force"]].concat());
        assert!(err.contains("metastate did not write"), "{err}");
        let (_, err) = place.expect(2, &[command, &["--out", "file", "--force"]].concat());
        assert!(err.contains("a file is never replaced by a folder"), "{err}");
        // Its own folder is replaced, and an empty one.
        place.expect(0, &[command, &["--out", "out"]].concat());
        let (_, err) = place.expect(2, &[command, &["--out", "out"]].concat());
        assert!(err.contains("E-CLI-EXISTS"), "{err}");
        place.expect(0, &[command, &["--out", "out", "--force"]].concat());
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
    assert_eq!(place.read("docs/thesis.txt"), b"three years");
    assert_eq!(place.read("file"), b"mine");
    place.expect(0, &[&["fit", "counts.csv", "--out", "out"], &RATIO[..]].concat());
    let (_, err) = place.expect(2, &["count", "counts.csv", "--out", "out", "--force"]);
    assert!(err.contains("a folder is never replaced by a file"), "{err}");
    // A folder with the name of a checkpoint that is none stays.
    std::fs::create_dir(place.path("new.checkpoint")).unwrap();
    place.write("new.checkpoint/notes.txt", "mine");
    place.expect(0, &[&["fit", "counts.csv", "--out", "new"], &RATIO[..]].concat());
    assert_eq!(place.read("new.checkpoint/notes.txt"), b"mine");
}

#[test]
fn a_place_that_cannot_be_written_is_found_out_before_the_work() {
    let place = place();
    // The input does not exist: whoever reads it first says so, and whoever looks at the place first says that.
    for out in [&"x".repeat(250)[..], "counts.csv/out", "/proc/out"] {
        let (_, err) = place.expect(1, &[&["fit", "no-such-file.csv", "--out", out], &RATIO[..]].concat());
        assert!(err.contains("E-CLI-WRITE"), "{err}");
    }
    place.expect(2, &[&["fit", "no-such-file.csv", "--out", "a/b/c"], &RATIO[..]].concat());
    assert_eq!(place.names(), ["counts.csv", "in"], "not even the folders above are left");
}

#[test]
fn one_of_two_runs_into_one_place_is_refused() {
    let place = place();
    let fit = [&["fit", "counts.csv", "--out", "out"], &RATIO[..]].concat();
    for round in 0..4 {
        let children: Vec<_> = (0..4).map(|_| place.command(&fit).spawn().unwrap()).collect();
        let outputs: Vec<_> = children.into_iter().map(|c| c.wait_with_output().unwrap()).collect();
        let done = outputs.iter().filter(|o| o.status.code() == Some(0)).count();
        assert_eq!(done, 1, "round {round}: {:?}", outputs.iter().map(|o| text(&o.stderr)).collect::<Vec<_>>());
        for refused in outputs.iter().filter(|o| o.status.code() != Some(0)) {
            let told = text(&refused.stderr);
            assert!(refused.status.code() == Some(2) && (told.contains("E-CLI-BUSY") || told.contains("E-CLI-EXISTS")), "{told}");
        }
        place.expect(0, &["verify", "out"]);
        assert_eq!(place.names(), ["counts.csv", "in", "out"]);
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
}
